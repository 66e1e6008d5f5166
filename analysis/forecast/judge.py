"""A judge of forecasts: what they said at many moments of a log, and what came.

At each moment only that is known which was known then. A case holds what was forecast and what
came; corrections that learn from earlier cases (:class:`~analysis.forecast.hindsight.Hindsight`,
:class:`~analysis.forecast.conformal.Recalibration`, :class:`Drift`) are applied afterwards, in the
order of time.

=============== ================================================================================
forecaster      what it says
=============== ================================================================================
futures         the futures of :mod:`hpcrowd.analysis.forecast.futures`, raw
corrected       the same, corrected by what earlier forecasts came to
last week       what was seen a week before
clairvoyant     one replay that knows who will submit what, and all run times: no forecast, but a
                bound on what knowing the users perfectly is worth under the policy
QBETS           bounds of waits only, :mod:`hpcrowd.analysis.forecast.qbets`
=============== ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.curves import Floats, log_minutes, present_at
from hpcrowd.analysis.forecast.futures import Outset, held_between
from hpcrowd.analysis.forecast.hindsight import features_of
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.state.state import ClusterState, begin_from
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.learned.model import LearnedModel

#: How far ahead load, queue and waits are judged, s.
LEADS = (HOUR, DAY, WEEK)

#: Over which time before each of them submissions count for waits, s.
SPANS = (HOUR, 6 * HOUR, DAY)

#: What is judged at each lead.
MEASURES = ("load", "queue", "wait")

#: Days of the log before a moment that are known to it.
KNOWN_DAYS = 120

#: Waiting jobs that are judged at a moment, drawn from all, besides the one just submitted.
JOBS = 12

#: Futures at each moment; the fair CRPS does not depend on how many there are.
FUTURES = 12

#: Earlier cases that corrections of load and queue learn from, and least number of them.
DRIFT_CASES, DRIFT_LEAST = 60, 10


#: Settings that the log under judgement shares with the outsets of its forecasts.
RULES = ("scheduler", "users", "model", "machine", "overrun", "estimates")


@dataclass(frozen=True)
class Subject:
    """The log under judgement, and how it is forecast."""

    jobs: JobTable  #: The log; requested times that it lacks are -1.
    #: Local time, and size of the machine.
    clock: Clock
    processors: int
    #: As of an :class:`~hpcrowd.analysis.forecast.futures.Outset`.
    scheduler: Any = "easy"
    users: str = "think-time"
    model: LearnedModel | None = None
    #: Likewise.
    machine: Any = None
    overrun: str = "keep"
    estimates: Any = "requested"
    futures: int = FUTURES  #: Futures at each moment.
    record: int | None = None  #: How long before a moment accounting begins, s; None for all of it.
    seed: int = 0  #: Of everything random.

    @classmethod
    def of(cls, outset: Outset, seed: int = 0) -> Subject:
        """Return the past of a state as a log, to be forecast like the state itself."""
        state = outset.state
        return cls(
            state.jobs, state.clock, outset.processors or state.processors, seed=seed,
            **_rules(outset),
        )  # fmt: skip

    def outset(self, state: ClusterState) -> Outset:
        """Return what futures of a state have in common."""
        return Outset(state, WEEK, **_rules(self))

    def moments(self, count: int, warm_up: int) -> Int64s:
        """Return rows of jobs whose submissions are the moments, by time.

        They are in the second half of the log, at equal numbers of submissions from each other, up
        to a week before its end; those of the warm-up, from which corrections learn first, in the
        half before.
        """
        order = np.argsort(self.jobs.recorded_submit, kind="stable")
        submit = self.jobs.recorded_submit[order]
        middle = len(order) // 2
        last = max(int(np.searchsorted(submit, submit[-1] - WEEK)) - 1, middle)
        first = int(np.searchsorted(submit, submit[0] + 3 * WEEK))
        early = np.linspace(min(first, middle), middle, warm_up, endpoint=False)
        late = np.linspace(middle, last, count)
        return order[np.concatenate((early, late)).astype(np.int64)]

    def state_at(self, row: int) -> tuple[ClusterState, Int64s]:
        """Return what is known when a job is submitted, and its rows in the log.

        The job itself waits, even if it starts in the same second.
        """
        jobs, now = self.jobs, int(self.jobs.recorded_submit[row])
        submit = jobs.recorded_submit
        rows = np.flatnonzero((submit <= now) & (submit > now - KNOWN_DAYS * DAY))
        if self.record is not None:
            end = jobs.recorded_end[rows]
            rows = rows[(end == UNKNOWN) | (end > now - self.record)]
        state = ClusterState.of(jobs.take(rows), now, self.clock, self.processors)
        mine = int(np.searchsorted(rows, row))
        for column in (state.jobs.recorded_start, state.jobs.recorded_end, state.jobs.run_time):
            column[mine] = UNKNOWN
        state.processors = max(self.processors, state.used)
        return state, rows


@dataclass
class Case:
    """One moment: what was forecast, and what came."""

    now: int  #: s since the origin.
    rows: Int64s  #: The jobs of which the wait is judged, rows in the log.
    fresh: NDArray[np.bool_]  #: Which of them was submitted just then.
    features: Floats  #: Of these jobs, see :data:`~hpcrowd.analysis.forecast.hindsight.FEATURES`.
    start: Int64s  #: When they started, s.
    #: Starts in the futures, infinite beyond the horizon, s, shape (futures, jobs).
    raw: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    #: When they start in the clairvoyant replay, s, infinite likewise.
    sees: Floats = field(default_factory=lambda: np.zeros(0))
    #: By measure: the futures, shape (leads, futures); and what came, was seen a week before, and
    #: is in the clairvoyant replay, shape (leads,); nan where there are no jobs.
    members: dict[str, Floats] = field(default_factory=dict)
    came: dict[str, Floats] = field(default_factory=dict)
    before: dict[str, Floats] = field(default_factory=dict)
    clairvoyant: dict[str, Floats] = field(default_factory=dict)


def _rules(given: Subject | Outset) -> dict[str, Any]:
    """Return the settings that a subject and an outset share."""
    return {name: getattr(given, name) for name in RULES}


def hindcast_at(subject: Subject, row: int) -> Case:
    """Return the situation at the submission of a job, and when jobs that waited then started."""
    return situation_at(subject, row)[0]


def situation_at(subject: Subject, row: int) -> tuple[Case, Outset, Int64s, Int64s, int]:
    """Return a case without futures, its outset, its rows of the log, the judged ones, a seed."""
    state, rows = subject.state_at(row)
    outset = subject.outset(state)
    waiting = state.waiting
    mine = int(np.flatnonzero(rows[waiting] == row)[0])
    others = np.delete(np.arange(len(waiting)), mine)
    draw = Streams(subject.seed).generator("judged", row)
    if len(others) > JOBS:
        others = np.sort(draw.choice(others, JOBS, replace=False))
    judged = np.append(others, mine)
    seed = int(Streams(subject.seed).sequence("moment", row).generate_state(1)[0])
    found = Case(
        state.now, rows[waiting[judged]], np.arange(len(judged)) == len(others),
        features_of(outset, seed)[judged], subject.jobs.recorded_start[rows[waiting[judged]]],
    )  # fmt: skip
    return found, outset, rows, judged, seed


def case_at(subject: Subject, row: int) -> Case:
    """Return the forecast at the submission of a job, and what came."""
    found, outset, rows, judged, seed = situation_at(subject, row)
    state, now, log = outset.state, found.now, subject.jobs
    running = len(state.running)
    futures = [outset.simulate(number, seed) for number in range(subject.futures)]
    starts = np.array([one.start[running:][judged] for one in futures], np.float64)
    found.raw = np.where(starts == UNKNOWN, np.inf, starts)
    each = [_measured(one.submit, one.wait, one.busy, one.queued, state, now) for one in futures]
    found.members = {name: np.stack([one[name] for one in each], axis=1) for name in MEASURES}
    found.came = _recorded(log, state, now)
    found.before = _recorded(log, state, now - WEEK)
    replay, seen = _clairvoyant(subject, state, rows)
    found.clairvoyant = replay
    found.sees = seen[running:][judged]
    return found


def _measured(
    submit: Int64s,
    wait: Int64s,
    busy: Floats,
    queued: Int64s,
    state: ClusterState,
    now: int,
) -> dict[str, Floats]:
    """Return the measures at all leads from series by hour and from waits.

    Waits are cut off at the end of the week, in forecasts as in the record.
    """
    hours = np.array(LEADS) // HOUR - 1
    waits = []
    end = now + WEEK
    cut = np.where(wait == UNKNOWN, end - submit, np.minimum(wait, end - submit))
    for lead, span in zip(LEADS, SPANS, strict=True):
        there = (submit > now + lead - span) & (submit <= now + lead)
        waits.append(log_minutes(cut[there]).mean() if there.any() else np.nan)
    return {
        "load": busy[hours] / state.processors,
        "queue": queued[hours].astype(np.float64),
        "wait": np.array(waits),
    }


def _recorded(log: JobTable, state: ClusterState, now: int) -> dict[str, Floats]:
    """Return the measures of the record in the week after a second."""
    submit, start, end = log.recorded_submit, log.recorded_start, log.recorded_end
    edges = now + np.arange(0, WEEK + HOUR, HOUR)
    runs = (start < edges[-1]) & (end > now)
    busy = held_between(
        np.maximum(start[runs], now), np.minimum(end[runs], edges[-1]), log.processors[runs], edges
    )
    waits = (submit <= edges[-1]) & (start > now)
    queued = present_at(submit[waits], start[waits], edges[1:])
    sent = (submit > now) & (submit <= edges[-1])
    return _measured(submit[sent], start[sent] - submit[sent], busy, queued, state, now)


def _clairvoyant(
    subject: Subject, state: ClusterState, rows: Int64s
) -> tuple[dict[str, Floats], Floats]:
    """Return the measures of a replay that knows the future, and the starts of present jobs."""
    from hpcrowd.environment.simulation import Simulation

    log, now = subject.jobs, state.now
    end = now + WEEK
    outset = Outset(state, WEEK, scheduler=subject.scheduler, users="none")
    present = rows[outset.rows]
    coming = np.flatnonzero((log.recorded_submit > now) & (log.recorded_submit <= end))
    jobs = log.take(np.concatenate((present, coming)))
    jobs.erase_outcome()
    jobs.run_time[:] = jobs.recorded_end - jobs.recorded_start
    jobs.requested_time[:] = np.where(
        jobs.requested_time == UNKNOWN, jobs.run_time, jobs.requested_time
    )
    running, count = len(state.running), len(present)
    jobs.recorded_start[running:count] = UNKNOWN
    simulation = Simulation(jobs, state.processors, subject.scheduler, clock=subject.clock)
    begin_from(simulation, now, np.arange(running), np.arange(running, count))
    new = np.arange(count, len(jobs))
    simulation.cluster.submit(new, jobs.recorded_submit[new])
    simulation.run(until=end)
    start = np.where(
        (jobs.start == UNKNOWN) | (jobs.start > end), np.iinfo(np.int64).max, jobs.start
    )
    begun = jobs.start != UNKNOWN
    edges = now + np.arange(0, WEEK + HOUR, HOUR)
    stops = np.where(jobs.end[begun] == UNKNOWN, edges[-1], np.minimum(jobs.end[begun], edges[-1]))
    busy = held_between(np.maximum(jobs.start[begun], now), stops, jobs.processors[begun], edges)
    there = jobs.enqueued != UNKNOWN
    queued = present_at(jobs.enqueued[there], start[there], edges[1:])
    wait = np.where(jobs.start[new] == UNKNOWN, UNKNOWN, jobs.start[new] - jobs.submit[new])
    found = _measured(jobs.submit[new], wait, busy, queued, state, now)
    seen = np.where(start[:count] == np.iinfo(np.int64).max, np.inf, start[:count])
    return found, seen.astype(np.float64)


class Drift:
    """Corrects ensembles of a number by the errors of earlier ones: moves and widens them.

    The mean is moved by the mean error, and members are spread about it so that the errors that are
    left are as large as the spread says (a regression of ensemble model output statistics with one
    parameter each: Gneiting et al., Monthly Weather Review 133, 2005).
    """

    def __init__(self) -> None:
        self._errors: list[float] = []
        self._variances: list[float] = []

    def learn(self, members: Floats, came: float) -> None:
        """Take note of a forecast and of what came."""
        self._errors.append(came - float(members.mean()))
        self._variances.append(float(members.var(ddof=1)) if len(members) > 1 else 0.0)
        del self._errors[:-DRIFT_CASES], self._variances[:-DRIFT_CASES]

    def corrected(self, members: Floats, least: float = -np.inf, most: float = np.inf) -> Floats:
        """Return the members, moved and spread, within the range that the number can have."""
        if len(self._errors) < DRIFT_LEAST:
            return members
        errors = np.array(self._errors)
        shift = errors.mean()
        spread = np.sqrt(((errors - shift) ** 2).mean() / max(np.mean(self._variances), 1e-12))
        middle = members.mean()
        moved = middle + shift + (members - middle) * np.clip(spread, 0.25, 4.0)
        found: Floats = np.clip(moved, least, most)
        return found


def in_order(cases: Sequence[Case]) -> list[Case]:
    """Return the cases by time."""
    return sorted(cases, key=lambda one: one.now)
