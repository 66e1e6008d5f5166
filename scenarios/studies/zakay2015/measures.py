"""Zakay and Feitelson 2015: Table I with ours, and the required figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, override

import numpy as np

from hpcrowd.agents.behaviours.activity import RecordedSessions, WeeklyWindow, WorkPattern
from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.think import Continuation, OwnPauses
from hpcrowd.agents.behaviours.user import User
from hpcrowd.agents.behaviours.when import BatchOrder, Reason, Release
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import Floats, activity_lengths, weekly_profile
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.render import markdown_table
from hpcrowd.scenarios.studies.running import LOGS, find_logs, swap_ties
from hpcrowd.scenarios.studies.study import Requirement

#: When windows open in the distribution model, s after local midnight (section VII-B).
OPENINGS = (7 * HOUR + HOUR // 2, 17 * HOUR + HOUR // 2)

#: Largest difference of a user's own hours from those, s (section VII-B: RAND).
SHIFT = HOUR


@dataclass(frozen=True)
class Outcome:
    """Measures of a simulation, or of the recorded log.

    A simulation is reduced to this as soon as it has ended, so that a study of many seeds and large
    logs fits into memory.
    """

    written: ClassVar = {
        "seed": "seed", "wait_mean_s": "wait_mean_s", "lateness_mean_s": "lateness_mean_s",
        "queue_mean_jobs": "queue_mean", "submitted_after_last_recorded": "after_last_share",
    }  # fmt: skip

    seed: int  #: Seed of the simulation; -1 for the record.
    wait_mean_s: float | None  #: Mean wait of the jobs that ran.
    lateness_mean_s: float  #: Mean of simulated minus recorded submission.
    profile: Floats  #: Share of submissions in each local hour of the week, shape (168,).
    #: Share of submissions within an hour of 7:30 or 17:30 local time, when windows open in the
    #: distribution model.
    slot_share: float
    #: Share of submissions after the last recorded submission of their user.
    after_last_share: float
    #: Activity length of each user, last minus first submission, by user number, shape (users,).
    activity_s: Int64s
    #: Share of time with 0, 1, ... jobs waiting, from the first to the last recorded submission.
    queue: Floats

    @property
    def queue_mean(self) -> float:
        """Mean number of waiting jobs."""
        return float(self.queue @ np.arange(len(self.queue)))


def outcome_of(run: Run, seed: int) -> Outcome:
    """Return the measures of a simulation."""
    return _measure(run, run.jobs.submit, run.jobs.start, seed)


def recorded_outcome(run: Run) -> Outcome:
    """Return the measures of the log that a run replays."""
    return _measure(run, run.jobs.recorded_submit, run.jobs.recorded_start, -1)


def _measure(run: Run, submit: Int64s, start: Int64s, seed: int) -> Outcome:
    jobs = run.jobs
    recorded = jobs.recorded_submit
    known = submit != UNKNOWN
    ran = known & (start != UNKNOWN)
    wait = (start - submit)[ran]
    users, user = np.unique(jobs.user, return_inverse=True)
    last = np.full(len(users), np.iinfo(np.int64).min)
    np.maximum.at(last, user, recorded)
    return Outcome(
        seed=seed,
        wait_mean_s=float(wait.mean()) if len(wait) else None,
        lateness_mean_s=float((submit - recorded)[known].mean()) if known.any() else 0.0,
        profile=weekly_profile(submit, run.clock),
        slot_share=slot_share(submit[known], run.clock),
        after_last_share=float((submit > last[user]).mean()),
        activity_s=activity_lengths(jobs.user, submit),
        queue=queue_shares(submit[ran], start[ran], int(recorded.min()), int(recorded.max())),
    )


def slot_share(submit: Int64s, clock: Clock) -> float:
    """Return the share of submissions within an hour of an opening (section VII-B)."""
    of_day = clock.second_of_week(submit) % DAY
    inside = np.zeros(len(submit), bool)
    for opening in OPENINGS:
        inside |= (of_day >= opening - SHIFT) & (of_day < opening + SHIFT)
    return float(inside.mean()) if len(submit) else 0.0


def queue_shares(submit: Int64s, start: Int64s, begin: int, until: int) -> Floats:
    """Return the share of time with 0, 1, 2, ... jobs in the queue, of jobs that ran.

    If the time that counts, from ``begin`` until ``until``, is empty, no job is waiting.
    """
    if until <= begin or not len(submit):
        return np.ones(1)
    times = np.concatenate([submit, start])
    steps = np.repeat(np.array([1, -1]), len(submit))
    order = np.argsort(times, kind="stable")  # at one second submissions come first
    level = np.concatenate([[0], np.cumsum(steps[order])])
    edges = np.clip(np.concatenate([[begin], times[order], [until]]), begin, until)
    shares: Floats = np.bincount(level, weights=np.diff(edges)) / (until - begin)
    return shares


def share_distance(a: Floats, b: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two distributions on 0, 1, 2, ..."""
    length = max(len(a), len(b))
    return float(np.abs(np.cumsum(padded(a, length)) - np.cumsum(padded(b, length))).max())


def padded(shares: Floats, length: int) -> Floats:
    """Return shares with zeros up to a length."""
    full = np.zeros(length)
    full[: len(shares)] = shares
    return full


def mean_shares(many: list[Floats]) -> Floats:
    """Return the mean of distributions on 0, 1, 2, ... of different lengths."""
    length = max(len(shares) for shares in many)
    mean: Floats = np.mean([padded(shares, length) for shares in many], axis=0)
    return mean


#: The rows of Table I, and our name of each user model (section VII).
MODELS = {
    "conventional": "rigid",
    "adjusted": "adjusted",
    "distribution": "distribution",
    "fluid": "fluid",
}

#: The columns of Table I by our names of the logs, in the order in which we show them.
COLUMNS = {
    "KTH": "KTH",
    "HPC2N": "HPC2N",
    "LANL-CM5": "CM5",
    "SDSC-DS": "SDSC-DS",
    "CEA": "CEA",
    "SDSC-SP2": "SDSC-SP2",
    "BLUE": "BLUE",
    "Intrepid": "Intrepid",
}

#: The logs of the study, in the order in which they are shown.
STUDIED = {name: LOGS[name] for name in COLUMNS}

#: Settings of all simulations: the defaults of a replay. The paper does not give its settings; see
#: the readings in ``docs/studies/zakay2015.md``.
COMMON = {"job_processors": "requested", "requested": "given", "overrun": "keep"}

#: Settings that differ by log. The jobs of CEA Curie ran on 80,640 processors in thin nodes;
#: the other 12,672 of the header's MaxProcs are in fat and hybrid nodes (note in its header).
SETTINGS = {"CEA": {"processors": "80640"}}

#: Simulations with FIFO, in addition to those of Table I, for Figure 10 (section VIII).
FIFO_MODELS = ("conventional", "fluid")

#: Every simulation: user model and scheduler.
SIMULATIONS = (*((model, "easy") for model in MODELS), *((model, "fcfs") for model in FIFO_MODELS))


def simulate(trace: Trace, log: str, model: str, scheduler: str = "easy", **changes: Any) -> Run:
    """Run one simulation; ``changes`` replace fields of the configuration.

    Model and scheduler are a name of :data:`MODELS`, and a scheduler of a replay.
    """
    choices: dict[str, Any] = {
        "users": MODELS[model],
        "scheduler": scheduler,
        "given_up": "drop",
        **COMMON,
        **SETTINGS.get(log, {}),
        **changes,
    }
    return replay(trace, **choices)


#: The log with a required ratio of fluid to adjusted, and the accepted deviation, chosen by us
#: beforehand.
REQUIRED_LOG, REQUIRED_WITHIN = "KTH", 0.05


@dataclass
class LogOutcomes:
    """The simulations of one log."""

    written: ClassVar = {
        "trace": "facts", "settings": "settings", "seeds": "seeds", "simulations": "outcomes",
    }  # fmt: skip

    log: str  #: A name of :data:`COLUMNS`.
    recorded: Outcome  #: The log itself.
    #: Outcomes by :data:`SIMULATIONS`, one for each seed.
    outcomes: dict[tuple[str, str], list[Outcome]]
    #: Jobs of ``adjusted`` that were not submitted at their recorded second, although each job
    #: waited as long as recorded (section VII: none).
    moved: int
    user_jobs: np.ndarray  #: Jobs of each user, by user number, shape (users,).
    #: The trace, and what was dropped or repaired.
    facts: dict[str, Any] = field(default_factory=dict)
    #: Settings of all simulations of the log.
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """Number of seeds that were run."""
        return len(self.of("conventional"))

    def of(self, model: str, scheduler: str = "easy") -> list[Outcome]:
        """Return the outcomes of a simulation, one for each seed."""
        return self.outcomes[model, scheduler]

    def mean(
        self, measure: Callable[[Outcome], float], model: str, scheduler: str = "easy"
    ) -> float:
        """Return the mean over seeds of a measure of a simulation."""
        return float(np.mean([measure(outcome) for outcome in self.of(model, scheduler)]))

    def waits(self, model: str) -> np.ndarray:
        """Return the mean wait under EASY of each seed, s, shape (seeds,); 0 where nothing ran."""
        return np.array([outcome.wait_mean_s or 0.0 for outcome in self.of(model)])

    def ratio(self, model: str, to: str) -> Spread:
        """Return the mean wait of a model over that of another: of the means, and seed by seed."""
        own, other = self.waits(model), self.waits(to)
        if not other.all():
            return Spread(None, None, None)
        each = own / other
        return Spread(float(own.mean() / other.mean()), float(each.min()), float(each.max()))

    @property
    def requirements(self) -> Iterator[Requirement]:
        """The required figures."""
        yield Requirement(
            self.log,
            "adjusted users under the recorded schedule submit at the recorded seconds",
            f"{self.moved:,} jobs moved",
            "none",
            self.moved == 0,
        )
        if self.log != REQUIRED_LOG:
            return
        published = published_waits(self.log)
        target = published["fluid"] / published["adjusted"]
        found = self.ratio("fluid", "adjusted").mean
        yield Requirement(
            self.log,
            "mean wait, fluid / adjusted",
            "-" if found is None else f"{found:.2f}",
            f"{target:.2f} ± {REQUIRED_WITHIN}",
            found is not None and abs(found - target) <= REQUIRED_WITHIN,
        )
        waits = [float(self.waits(model).mean()) for model in ("fluid", "adjusted", "conventional")]
        yield Requirement(
            self.log,
            "mean wait, fluid < adjusted < conventional",
            " < ".join(f"{wait:,.0f}" for wait in waits)
            if waits == sorted(waits)
            else ", ".join(f"{wait:,.0f}" for wait in waits),
            "in this order",
            waits[0] < waits[1] < waits[2],
        )


@dataclass(frozen=True)
class Spread:
    """A figure over seeds: mean, smallest and largest value; None if there is none."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Cell:
    """A figure of Table I with ours."""

    #: Its place.
    log: str
    model: str
    ours: Spread  #: Mean wait over seeds, s.
    published: int  #: As printed, s.
    #: Our ratio to the mean wait of these models.
    to_conventional: Spread
    to_adjusted: Spread
    #: The same of the printed figures.
    published_to_conventional: float
    published_to_adjusted: float


def published_waits(log: str) -> dict[str, int]:
    """Return the column of a log in Table I: mean wait by user model, s."""
    return {
        row["user_model"]: int(Printed(row[COLUMNS[log]]).value)
        for row in published_rows("zakay2015_table1")
    }


def cells_of(log: LogOutcomes) -> Iterator[Cell]:
    """Yield the figures of a log, model by model."""
    published = published_waits(log.log)
    for model in MODELS:
        waits = log.waits(model)
        yield Cell(
            log=log.log,
            model=model,
            ours=Spread(float(waits.mean()), float(waits.min()), float(waits.max())),
            published=published[model],
            to_conventional=log.ratio(model, "conventional"),
            to_adjusted=log.ratio(model, "adjusted"),
            published_to_conventional=published[model] / published["conventional"],
            published_to_adjusted=published[model] / published["adjusted"],
        )


# ---- how far the figures depend on what the paper does not say --------------------------------
# The paper leaves three things open: which processors and requested times count, what happens to
# jobs that exceed their request, and when a session ends. The first two affect the absolute waits,
# the third which batches continue a session. Two changes of the fluid model separate its effects,
# which make fluid users wait longer than adjusted ones on some logs: with each user's sessions
# moved by random hours, users no longer come at the same time of the week; and if a batch that
# began a session, and was released by the submission before, always waits for the next session,
# sessions no longer run together. The tables take some minutes.

#: Seeds of each of these simulations.
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
        "a session ends with its last submission", {"users": fluid_with(OverAtLast)}, ("fluid",)
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


def waits(log: str, trace: Trace, model: str, **changes: Any) -> float:
    """Return the mean over seeds of the mean wait of a simulation, s."""
    found = []
    for seed in range(SEEDS):
        run = simulate(swap_ties(trace, seed) if seed else trace, log, model, seed=seed, **changes)
        found.append(run.metrics["wait_mean_s"] or 0.0)
    return float(np.mean(found))


def reading_rows(log: str, trace: Trace, readings: Sequence[Reading] = READINGS) -> list[list[str]]:
    """Return the rows of the table of readings of a log: mean waits and their ratios."""
    rows = []
    usual = {model: waits(log, trace, model) for model in MODELS}
    for reading in readings:
        found = dict(usual)
        if reading.changes:
            for model in reading.models:
                found[model] = waits(log, trace, model, **reading.changes)
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


def effect_row(log: str, trace: Trace) -> list[str]:
    """Return a row of the table of effects on the waits of fluid users."""
    fluid = simulate(trace, log, "fluid")
    adjusted = simulate(trace, log, "adjusted")
    later = (fluid.jobs.submit - adjusted.jobs.submit).mean() / DAY
    return [
        log,
        f"{waits(log, trace, 'adjusted'):,.0f}",
        f"{waits(log, trace, 'fluid'):,.0f}",
        *(f"{waits(log, trace, 'fluid', users=users):,.0f}" for users in EFFECTS.values()),
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
    """Return the generated parts of the page that need these additional runs."""
    logs = {name: read_trace(path) for name, path in find_logs(traces, STUDIED).items()}
    readings = [row for log in TRIED if log in logs for row in reading_rows(log, logs[log])]
    effects = [effect_row(log, trace) for log, trace in logs.items()]
    return {
        "readings": markdown_table(READING_HEADING, readings, 2),
        "effects": markdown_table(EFFECT_HEADING, effects, 1),
    }
