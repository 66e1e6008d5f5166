"""What futures say: when jobs start and end, how busy the machine will be, how long users wait.

Bounds are those of :mod:`hpcrowd.analysis.forecast.bounds`, infinite beyond the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.forecast.bounds import (
    BOUNDS,
    FANS,
    Fan,
    Waits,
    bounds,
    by_step,
    days_between,
    edges_before_now,
    fans_of,
    flat_frame,
    known,
    local_bounds,
    local_time,
    over_futures,
)
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.futures import Asked
from hpcrowd.analysis.forecast.scores import quantiles
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.analysis.forecast.futures import Future, Outset
    from hpcrowd.analysis.forecast.site_bounds import Track
    from hpcrowd.environment.simulation import Simulation

#: A job that starts within this time starts at once, s (our choice: users do not see the
#: difference, and resource managers have a pass about as often).
AT_ONCE = 60

#: Jobs that all futures together must have at the rate of the record, so that none is an error (our
#: choice: a Poisson process has none with a probability of 5e-5).
LEAST_EXPECTED = 10

#: Keys of ``forecast.json``, and their meaning.
MEANING = {
    "now_s": "second of the state, since the origin; ..._local_time is the same in ISO 8601",
    "until_s": "the horizon, s since the origin",
    "futures": "number of futures",
    "processors": "size of the machine",
    "bounds": "share of futures at or below p5, p25, p50, p75, p95; null: beyond the horizon, or, "
    "beside a median that is not, withheld",
    "jobs": "jobs that wait, by submission, then those that one would submit now",
    "jobs.number": "job number; null for a job that one would submit",
    "jobs.id": "its name in the resource manager; empty if it has none",
    "jobs.count": "how many jobs one would submit; the first start and the last end are given",
    "jobs.start_s": "bounds of the start, recalibrated where a recalibration was given",
    "jobs.raw_start_s": "the same before recalibration",
    "jobs.end_s": "bounds of the end, moved as those of the start; null if futures stop before it",
    "jobs.starts_within_horizon": "probability that it starts within the horizon",
    "jobs.starts_at_once": f"probability that it starts within {AT_ONCE} s",
    "promise": "what the bounds of starts promise, in words",
    "track": "earlier forecasts from the record that can be judged, how many of them were in the "
    "90 % and the 50 % bounds, and the moment of the first; null without hindcasts",
    "jobs.held": "whether it does not start by itself, such as a job that its user holds",
    "jobs.reason": "why it waits now, in the words of the resource manager, if it gave a reason, "
    "and of the scheduler of the futures",
    "submitted_per_day": "jobs that users submit, mean of the futures; null if these stop before",
    "recorded_per_day": "jobs that users submitted in the record, recorded in record_s seconds",
    "fans": "by quantity: one value for each step, bounds and mean over futures",
    "fans.begin_s": "first second of each step",
    **{f"fans.{name}": words for name, words in FANS.items()},
    "waits": "waits of the jobs that users submit, by local day and class of processors",
    "waits.jobs_mean": "mean number of such jobs",
    "waits.started_share": "share of them that start within the horizon",
    "waits.mean_wait_s": "bounds of the mean wait, with waits cut off at the horizon",
    "waits.median_wait_s": "bounds of the median wait",
    "before": "the record before now, by step; not known before its first submission",
}


class Recalibrates(Protocol):
    """What corrects bounds of waits by how earlier ones fared."""

    def adjusted(self, raw: Floats, /) -> Floats:
        """Return bounds, s from now, same shape (jobs, levels); infinite ones may stay so."""


@dataclass(frozen=True)
class JobAnswer:
    """When a job starts and ends."""

    number: int | None  #: Its number; None for a job that one would submit.
    #: Its user's number, -1 if not known, and name.
    user: int
    user_name: str
    #: Processors, and requested time, s, -1 if not known.
    processors: int
    requested: int
    #: How many such jobs one would submit at once; their first start and their last end count.
    count: int
    submitted: int  #: s since the origin.
    #: Bounds of the start, recalibrated if asked for, and raw; s since the origin, shape (levels,),
    #: infinite beyond the horizon.
    start: Floats
    raw_start: Floats
    end: Floats | None  #: Bounds of the end; None if the futures stop when all jobs have started.
    #: Probabilities that it starts within the horizon, and within :data:`AT_ONCE`.
    within: float
    at_once: float
    #: Why it waits now, in the words of the resource manager first; empty if it gave none, and it
    #: starts in the first pass.
    reason: str
    held: bool = False  #: Whether it does not start by itself.
    id: str = ""  #: Its name in the resource manager, such as ``47_3``; empty if it has none.

    @property
    def name(self) -> str:
        """What to call it: its name or number, or its size and requested time."""
        if self.number is not None:
            return f"job {self.id or self.number}"
        return name_of_asked(Asked(self.processors, self.requested, count=self.count))

    def to_dict(self, clock: Clock) -> dict[str, Any]:
        """Return it as plain data, see :data:`MEANING`."""
        return {
            "number": self.number,
            "id": self.id,
            "user": known(self.user),
            "user_name": self.user_name,
            "processors": self.processors,
            "requested_time_s": known(self.requested),
            "count": self.count,
            "submitted_s": self.submitted,
            "start_s": bounds(self.start, whole=True),
            "start_local_time": local_bounds(clock, self.start),
            "raw_start_s": bounds(self.raw_start, whole=True),
            "end_s": None if self.end is None else bounds(self.end, whole=True),
            "end_local_time": None if self.end is None else local_bounds(clock, self.end),
            "starts_within_horizon": self.within,
            "starts_at_once": self.at_once,
            "held": self.held,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Submissions:
    """How many jobs users submit, and how many they did."""

    #: Jobs per day in the mean of the futures; None if these stop when all jobs have started.
    per_day: float | None
    #: Jobs in the record, and its length, s: from its first submission until now.
    recorded: int
    record: int

    @classmethod
    def of(cls, outset: Outset, futures: Sequence[Future]) -> Submissions:
        """Count the submissions of futures, and those of their state."""
        count = sum(len(one.submit) for one in futures)
        days = len(futures) * outset.horizon / DAY
        submits = outset.state.jobs.recorded_submit
        record = outset.state.now - int(submits.min(initial=outset.state.now))
        return cls(None if outset.jobs_only else count / days, len(submits), record)

    @property
    def recorded_per_day(self) -> float:
        """Jobs per day of the record, which counts as one second long at least."""
        return self.recorded * DAY / max(self.record, 1)

    @property
    def words(self) -> str:
        """Both as a sentence."""
        return (
            f"Users submit {self.per_day or 0:,.1f} jobs per day in the futures; the record of "
            f"{format_duration(self.record)} has {plural(self.recorded, 'job')}, "
            f"{self.recorded_per_day:,.1f} per day."
        )

    def check(self, outset: Outset, futures: int) -> None:
        """Raise a QuantityError if users who submitted jobs do nothing in any future.

        In futures that are shorter than the record and than a day it may be night.
        """
        expected = self.recorded_per_day * outset.horizon / DAY * futures
        if (
            self.per_day == 0
            and outset.users != "none"
            and expected >= LEAST_EXPECTED
            and outset.horizon >= min(self.record, DAY)
        ):
            raise QuantityError(
                f"users {outset.users}: submit no job in {plural(futures, 'future')}, but the "
                f"record of {format_duration(self.record)} has {plural(self.recorded, 'job')}; "
                "give a longer one (--past), or --users none for futures in which nobody submits"
            )


@dataclass(frozen=True)
class Answers:
    """What the futures of a state say."""

    #: The second of the state, and the horizon, s since the origin.
    now: int
    until: int
    clock: Clock  #: Local time.
    processors: int  #: Size of the machine.
    futures: int  #: How many there are.
    #: The policy, and what users do, in words.
    scheduler: str
    users: str
    submissions: Submissions  #: How many jobs users submit.
    #: For each job that waits, by submission, then for those that one would submit.
    jobs: tuple[JobAnswer, ...]
    fans: Mapping[str, Fan]  #: By name; empty if the futures stop when all jobs have started.
    #: Edges of the steps of fans, and of those before now, s since the origin.
    edges: Int64s
    edges_before: Int64s
    waits: Waits | None  #: Waits of the jobs that users submit; None if there are no fans.
    recalibrated: bool = False  #: Whether starts are recalibrated.
    promise: str = ""  #: What the bounds of starts promise.
    track: Track | None = None  #: How such bounds fared, if that is known.
    source: str = ""  #: Where the state comes from.
    notes: tuple[str, ...] = ()  #: What reading the state dropped or assumed.

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, fit for JSON; :data:`MEANING` says what it means."""
        clock = self.clock
        fans = by_step(clock, self.edges, {name: fan.bounds for name, fan in self.fans.items()})
        for name, fan in self.fans.items():
            fans[name]["mean"] = fan.mean.tolist()
        return {
            "now_s": self.now,
            "now_local_time": local_time(clock, self.now),
            "until_s": self.until,
            "until_local_time": local_time(clock, self.until),
            "source": self.source,
            "processors": self.processors,
            "futures": self.futures,
            "scheduler": self.scheduler,
            "users": self.users,
            "submitted_per_day": self.submissions.per_day,
            "recorded_per_day": self.submissions.recorded_per_day,
            "recorded": self.submissions.recorded,
            "record_s": self.submissions.record,
            "recalibrated": self.recalibrated,
            "promise": self.promise,
            "track": None if self.track is None else self.track._asdict(),
            "notes": list(self.notes),
            "bounds": dict(zip(BOUNDS, LEVELS, strict=True)),
            "jobs": [one.to_dict(clock) for one in self.jobs],
            "fans": fans,
            "waits": self._wait_rows(),
            "before": {
                "begin_s": self.edges_before[:-1].tolist(),
                **{name: fan.before.tolist() for name, fan in self.fans.items()},
            },
            "meaning": MEANING,
        }

    def _wait_rows(self) -> list[dict[str, Any]]:
        """Return the waits of each class on each day that has jobs; the last day is all of them."""
        waits, rows = self.waits, []
        if waits is None:
            return []
        mean, median = (over_futures(one) for one in (waits.mean, waits.median))
        jobs, started = waits.jobs.sum(axis=0), waits.started.sum(axis=0)
        for size, day in zip(*np.nonzero(jobs), strict=True):
            whole = day == len(waits.days) - 1
            begin, end = (0, -1) if whole else (day, day + 1)
            first, last = int(waits.days[begin]), int(waits.days[end])
            rows.append(
                {
                    "processors": waits.classes[size],
                    "day": "all" if whole else self.clock.date(first),
                    "begin_s": first,
                    "end_s": last,
                    "jobs_mean": float(jobs[size, day] / self.futures),
                    "started_share": float(started[size, day] / jobs[size, day]),
                    "mean_wait_s": bounds(mean[:, size, day]),
                    "median_wait_s": bounds(median[:, size, day]),
                }
            )
        return rows

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables: ``jobs``, ``fans`` (a row for each step and quantity) and ``waits``.

        Columns are the keys of :meth:`to_dict`; bounds have one each, such as ``start_p50_s`` and
        ``start_p50_local_time``.
        """
        import pandas as pd

        found = self.to_dict()
        steps = []
        for name in self.fans:
            fan = pd.DataFrame(found["fans"][name])
            fan.insert(0, "begin_local_time", found["fans"]["begin_local_time"])
            fan.insert(0, "begin_s", found["fans"]["begin_s"])
            fan.insert(0, "quantity", name)
            steps.append(fan)
        jobs, waits = found["jobs"], found["waits"]
        # Tables without rows have their columns.
        return {
            "jobs": flat_frame(jobs or [NO_JOB.to_dict(self.clock)])[: len(jobs)],
            "fans": pd.concat(steps, ignore_index=True) if steps else pd.DataFrame(),
            "waits": flat_frame(waits or [NO_WAIT])[: len(waits)],
        }


#: Value of a cell of a table if there is nothing to say.
NOTHING = np.full(len(LEVELS), np.nan)
NO_JOB = JobAnswer(
    None, UNKNOWN, "", 0, UNKNOWN, 1, 0, start=NOTHING, raw_start=NOTHING, end=NOTHING, within=0.0,
    at_once=0.0, reason="",
)  # fmt: skip
NO_WAIT: dict[str, Any] = {
    "processors": "", "day": "", "begin_s": 0, "end_s": 0, "jobs_mean": 0.0, "started_share": 0.0,
    "mean_wait_s": bounds(NOTHING), "median_wait_s": bounds(NOTHING),
}  # fmt: skip


def answers_of(
    outset: Outset,
    futures: Sequence[Future],
    *,
    recalibration: Recalibrates | None = None,
    reasons: Mapping[int, str] | None = None,
) -> Answers:
    """Return what one or more futures of an outset say.

    A recalibration corrects the bounds of starts; without one they are raw. Reasons why jobs wait
    are those of :func:`reasons_now` unless given. A QuantityError is raised if futures are missing,
    or one is not of this outset.
    """
    check_futures(outset, futures)
    state, until = outset.state, outset.state.now + outset.horizon
    reasons = reasons_now(outset) if reasons is None else reasons
    steps = 0 if outset.jobs_only else outset.horizon // outset.step
    edges = state.now + outset.step * np.arange(steps + 1)
    edges_before = edges_before_now(outset)
    waits = None
    if steps:
        waits = Waits.of(futures, until, days_between(state.clock, state.now, until))
    return Answers(
        now=state.now,
        until=until,
        clock=state.clock,
        processors=outset.processors or state.processors,
        futures=len(futures),
        scheduler=str(outset.scheduler),
        users=outset.users,
        submissions=Submissions.of(outset, futures),
        jobs=tuple(_jobs(outset, futures, reasons, recalibration)),
        fans=fans_of(outset, futures, steps, edges_before) if steps else {},
        edges=edges,
        edges_before=edges_before,
        waits=waits,
        recalibrated=recalibration is not None,
        source=Path(state.source).name,
        notes=tuple(state.notes),
    )


def name_of_asked(one: Asked) -> str:
    """Return what to call a job that one would submit: ``64 processors for 6.0 h``."""
    lasts = "" if one.requested == UNKNOWN else f" for {format_duration(one.requested)}"
    text = f"{plural(one.processors, 'processor')}{lasts}"
    return f"{one.count:,} x {text}" if one.count > 1 else text


def check_futures(outset: Outset, futures: Sequence[Future]) -> None:
    """Raise a QuantityError if futures are missing, or one is not of an outset."""
    if not futures:
        raise QuantityError("no future: nothing to say; simulate one or more")
    jobs = len(outset.rows) + sum(one.count for one in outset.asked)
    steps = -(-outset.horizon // outset.step)
    for one in futures:
        if len(one.start) != jobs or len(one.busy) != steps:
            raise QuantityError(
                f"future {one.number}: has {plural(len(one.start), 'job')} and "
                f"{plural(len(one.busy), 'step')}, its state {jobs:,} and {steps:,}; give the "
                "outset that it was simulated from"
            )


def reasons_now(outset: Outset) -> dict[int, str]:
    """Return why jobs wait now, by their place in :attr:`Future.start`.

    The words of the resource manager come first, where it gave a reason. Those of the scheduler
    after its first pass follow; jobs that start in it have none.
    """
    from hpcrowd.environment.waiting_reasons import reasons_of

    kept: list[Simulation] = []
    first = copy(outset)  # what it has computed already is kept
    first.horizon, first.users = 1, "none"
    first.simulate(0, watch=kept.append)
    state, clock = outset.state, outset.state.clock
    found = {one.row: one.words(clock) for one in reasons_of(kept[0].cluster)}
    for place, row in enumerate(outset.rows.tolist()):
        said = state.placed[row].reason if row in state.placed else ""
        if row in state.held:
            found[place] = f"held: {state.held[row]}"
        elif said:
            here = found.get(place, "")
            found[place] = f"{said}; in the futures: {here}" if here else said
    return found


def starts_of(outset: Outset, futures: Sequence[Future]) -> tuple[Floats, Floats]:
    """Return starts and ends of the jobs with an answer, s since the origin.

    Both of shape (jobs, futures), infinite beyond the horizon; the first start and the last end of
    jobs that one would submit together.
    """
    first = len(outset.state.running)
    start, end = (
        np.array([getattr(one, name)[first:] for one in futures], np.float64).T
        for name in ("start", "end")
    )
    start[start == UNKNOWN], end[end == UNKNOWN] = np.inf, np.inf
    waiting = len(outset.rows) - first
    parts, place = [(start[:waiting], end[:waiting])], waiting
    for one in outset.asked:
        some = slice(place, place + one.count)
        parts.append((start[some].min(axis=0)[None], end[some].max(axis=0)[None]))
        place += one.count
    starts, ends = zip(*parts, strict=True)
    return np.concatenate(starts), np.concatenate(ends)


def _jobs(
    outset: Outset,
    futures: Sequence[Future],
    reasons: Mapping[int, str],
    recalibration: Recalibrates | None,
) -> list[JobAnswer]:
    """Return the answers on jobs."""
    state, now, until = outset.state, outset.state.now, outset.state.now + outset.horizon
    start, end = starts_of(outset, futures)
    if not len(start):
        return []
    raw, ends = quantiles(start, LEVELS), quantiles(end, LEVELS)
    starts = raw
    if recalibration is not None:
        starts = now + np.asarray(recalibration.adjusted(raw - now), np.float64)
        starts = np.where(starts > until, np.inf, starts)
        # A job ends as much later as it starts later than in the futures.
        known = np.isfinite(starts) & np.isfinite(raw)
        moved = np.subtract(starts, raw, out=np.zeros(raw.shape), where=known)
        ends = np.where(np.isfinite(starts), ends + moved, starts)
    within, at_once = np.isfinite(start).mean(axis=1), (start <= now + AT_ONCE).mean(axis=1)
    chances = getattr(recalibration, "chances", None)
    if chances is not None:
        within, at_once = chances(until - now), chances(AT_ONCE)
    jobs, first, found = state.jobs, len(state.running), []
    places = list(range(first, len(outset.rows)))
    for number, place in enumerate(places):
        row = int(outset.rows[place])
        found.append(
            JobAnswer(
                int(jobs.number[row]), int(jobs.user[row]), jobs.who(int(jobs.user[row])),
                int(jobs.processors[row]), int(jobs.requested_time[row]), 1,
                int(jobs.recorded_submit[row]), starts[number], raw[number],
                None if outset.jobs_only else ends[number], float(within[number]),
                float(at_once[number]), reasons.get(place, ""), row in state.held,
                jobs.names.get("job", {}).get(int(jobs.number[row]), ""),
            )
        )  # fmt: skip
    place = len(outset.rows)
    for number, one in enumerate(outset.asked, len(places)):
        user = "" if one.user == UNKNOWN else jobs.who(one.user)
        found.append(
            JobAnswer(
                None, one.user, user, one.processors, one.requested, one.count, now,
                starts[number], raw[number], None if outset.jobs_only else ends[number],
                float(within[number]), float(at_once[number]), reasons.get(place, ""),
            )
        )  # fmt: skip
        place += one.count
    return found
