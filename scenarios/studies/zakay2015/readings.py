"""How far the figures of Zakay and Feitelson 2015 depend on what the paper does not say.

Covers: Table I under other settings and other readings of the text, and why fluid users wait
longer than adjusted ones on some logs.

Story: the paper leaves three things open: which processors and requested times count, what happens
to jobs that exceed their request, and when a session ends. The first two affect the absolute waits,
the third which batches continue a session. Two changes of the fluid model separate its effects:
with each user's sessions moved by random hours, users no longer come at the same time of the week;
and if a batch that began a session, and was released by the submission before, always waits for the
next session, sessions no longer run together.

The tables are generated parts of the study's page, and take some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, override

import numpy as np

from hpcrowd.agents.behaviours.activity import RecordedSessions, WeeklyWindow, WorkPattern
from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.think import Continuation, OwnPauses
from hpcrowd.agents.behaviours.user import User
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Release
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.render import markdown_table
from hpcrowd.scenarios.studies.running import find_logs, swap_ties
from hpcrowd.scenarios.studies.zakay2015.measures import MODELS, published_waits
from hpcrowd.scenarios.studies.zakay2015.study import STUDIED, simulate

#: Seeds of each simulation here.
SEEDS = 5

#: Logs on which other settings and readings are tried.
TRIED = ("KTH", "LANL-CM5", "SDSC-DS")


class OverAtLast(RecordedSessions):
    """A session ends with its last submission, not after it."""

    @override
    def spans(self, user: User, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
        begins, ends = super().spans(user, first, last)
        return begins, ends - 1


class UntilJobsEnd(RecordedSessions):
    """A session lasts until its last job has ended, or the next one begins."""

    @override
    def spans(self, user: User, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
        begins, _ = super().spans(user, first, last)
        # Batches of a session do not overlap, so its last one ends last.
        ends = self._units.end[last]
        ends[:-1] = np.minimum(ends[:-1], begins[1:] - 1)
        return begins, ends


class MovedByHours(RecordedSessions):
    """The sessions of each user are moved by some hours of a week, drawn once."""

    @override
    def spans(self, user: User, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
        begins, ends = super().spans(user, first, last)
        by = int(user.stream.integers(WEEK // HOUR)) * HOUR
        return begins + by, ends + by


class SessionsApart(Composed):
    """Fluid users, but a batch that began a session goes to the next one if only released by the
    submission of the batch before.
    """

    @override
    def arrival(self, user: User, release: Release) -> int:
        window = self.window
        if (
            release.reason == Reason.FOLLOWS
            and isinstance(window, RecordedSessions)
            and not self.when.units.continues[release.unit]
        ):
            return window.next_session(user, release.at)
        return super().arrival(user, release)


class EveningPattern(WorkPattern):
    """A night on weekdays begins in the evening of a weekday and ends on the next morning."""

    def __init__(self) -> None:
        super().__init__()
        self.nights: dict[int, WeeklyWindow] = {}

    @override
    def begin(self, user: User) -> None:
        super().begin(user)
        window = self.windows[user.number]
        if window.opens > window.closes:
            hours = [(d * DAY + window.opens, (d + 1) * DAY + window.closes) for d in window.days]
            self.nights[user.number] = WeeklyWindow(hours)

    @override
    def is_open(self, user: User, at: int) -> bool:
        night = self.nights.get(user.number)
        return night.is_open(user.model.clock, at) if night else super().is_open(user, at)

    @override
    def next_open(self, user: User, at: int, release: Release) -> int:
        night = self.nights.get(user.number)
        if night is None:
            return super().next_open(user, at, release)
        return night.next_open(user.model.clock, at)


def fluid_with(
    sessions: Callable[..., RecordedSessions], whole: type[Composed] = Composed
) -> Callable[[Work], Composed]:
    """Return fluid users with other sessions."""

    def made(work: Work) -> Composed:
        units = work.by_batch
        return whole(BatchOrder(work), OwnPauses(units), sessions(units), waits=True)

    return made


def evenings(work: Work) -> Composed:
    """Return distribution users whose nights begin on their days."""
    return Composed(BatchOrder(work), Continuation(work.by_batch), EveningPattern(), waits=True)


@dataclass(frozen=True)
class Reading:
    """Another reading of the text, or another setting."""

    words: str  #: The difference in words.
    changes: Mapping[str, Any] = field(default_factory=dict)  #: Fields of the configuration.
    #: The user models that it changes; the others are as chosen.
    models: tuple[str, ...] = tuple(MODELS)


READINGS = (
    Reading("as chosen"),
    Reading("allocated processors (field 5)", {"job_processors": "allocated"}),
    Reading("requested times at least the run time", {"requested": "at-least:1x"}),
    Reading("jobs killed at their requested time", {"overrun": "kill"}),
    Reading(
        "a session ends with its last submission",
        {"users": fluid_with(OverAtLast)},
        ("fluid",),
    ),
    Reading(
        "a session lasts until its last job has ended",
        {"users": fluid_with(UntilJobsEnd)},
        ("fluid",),
    ),
    Reading("nights begin on their days", {"users": evenings}, ("distribution",)),
)

#: Changes of the fluid model that separate its effects.
EFFECTS: dict[str, Callable[[Work], Composed]] = {
    "moved": fluid_with(MovedByHours),
    "apart": fluid_with(RecordedSessions, SessionsApart),
}

READING_HEADING = (
    "log", "reading", *(f"{model} (s)" for model in MODELS),
    "adjusted / conventional", "distribution / adjusted", "fluid / adjusted",
)  # fmt: skip

EFFECT_HEADING = (
    "log", "adjusted (s)", "fluid (s)", "fluid, sessions moved by hours (s)",
    "fluid, sessions kept apart (s)", "sessions run together", "fluid later by (days)",
)  # fmt: skip


def waits(log: str, trace: Trace, model: str, seeds: int = SEEDS, **changes: Any) -> float:
    """Return the mean over seeds of the mean wait of a simulation, s."""
    found = []
    for seed in range(seeds):
        run = simulate(swap_ties(trace, seed) if seed else trace, log, model, seed=seed, **changes)
        found.append(run.metrics["wait_mean_s"] or 0.0)
    return float(np.mean(found))


def reading_rows(
    log: str, trace: Trace, readings: Sequence[Reading] = READINGS, seeds: int = SEEDS
) -> list[list[str]]:
    """Return the rows of the table of readings of a log: mean waits and their ratios."""
    rows = []
    usual = {model: waits(log, trace, model, seeds) for model in MODELS}
    for reading in readings:
        found = dict(usual)
        if reading.changes:
            for model in reading.models:
                found[model] = waits(log, trace, model, seeds, **reading.changes)
        rows.append(_reading_row(log, reading.words, found, ",.0f"))
    published = {model: float(wait) for model, wait in published_waits(log).items()}
    return [*rows, _reading_row(log, "published", published, ",.0f")]


def _reading_row(log: str, words: str, found: Mapping[str, float], form: str) -> list[str]:
    ratios = (("adjusted", "conventional"), ("distribution", "adjusted"), ("fluid", "adjusted"))
    return [
        log,
        words,
        *(f"{found[model]:{form}}" for model in MODELS),
        *(f"{found[one] / found[other]:.2f}" if found[other] else "-" for one, other in ratios),
    ]


def effect_row(log: str, trace: Trace, seeds: int = SEEDS) -> list[str]:
    """Return a row of the table of effects on the waits of fluid users."""
    fluid = simulate(trace, log, "fluid")
    adjusted = simulate(trace, log, "adjusted")
    later = (fluid.jobs.submit - adjusted.jobs.submit).mean() / DAY
    return [
        log,
        f"{waits(log, trace, 'adjusted', seeds):,.0f}",
        f"{waits(log, trace, 'fluid', seeds):,.0f}",
        *(f"{waits(log, trace, 'fluid', seeds, users=users):,.0f}" for users in EFFECTS.values()),
        f"{100 * run_together(fluid):.0f} %",
        f"{later:.0f}",
    ]


def run_together(run: Run) -> float:
    """Return the share of sessions that began within an hour of the previous submission.

    In the record it is 0, since an hour without a submission ends a session.
    """
    if run.work is None:
        return 0.0
    units, submit = run.work.by_batch, run.jobs.submit[run.work.by_batch.rows]
    first = np.minimum.reduceat(submit, units.first[:-1])
    last = np.maximum.reduceat(submit, units.first[:-1])
    begins = np.flatnonzero((units.continues == 0) & (units.inter_arrival >= 0))
    gap = first[begins] - last[begins - 1]
    return float((gap <= HOUR).mean()) if len(begins) else 0.0


def readings_parts(traces: str | Path) -> dict[str, str]:
    """Return the generated parts of the page that come from this file."""
    logs = {name: read_trace(path) for name, path in find_logs(traces, STUDIED).items()}
    readings = [row for log in TRIED if log in logs for row in reading_rows(log, logs[log])]
    effects = [effect_row(log, trace) for log, trace in logs.items()]
    return {
        "readings": markdown_table(READING_HEADING, readings, 2),
        "effects": markdown_table(EFFECT_HEADING, effects, 1),
    }
