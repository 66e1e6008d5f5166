"""Judge models of users by the weeks that they foresee, not by the next submission.

A model knows the record up to an origin, and nothing of what comes after it: who will submit, how
many jobs, and which users are new. It is drawn many times, and each measure of the weeks after the
origin is a distribution, compared with what was recorded:

=================== ========================================================================
measure             what it is, for each draw
=================== ========================================================================
jobs                number of jobs submitted
processor_hours     their processors x run times
users               number of users who submit
jobs_by_day         jobs submitted in the days after the origin, each 24 hours
load_by_day         processor-hours submitted in these days
users_by_day        users who submit in them
sessions_by_day     sessions that begin in them: an hour without a submission separates two
rhythm_of_day       shares of the jobs in the 24 local hours of the day
rhythm_of_week      shares of the jobs in the 7 local days of the week
autocorrelation     of ln(1 + processor-hours submitted in an hour), at :data:`LAGS`
waits               mean and :data:`WAIT_LEVELS` quantiles of ln(1 + minutes waited), under the
                    scheduler, from the queue at the origin on; of the record under the same one
jobs_by_state       jobs a day by what their users were at the origin, see :data:`STATES`
hours_by_state      processor-hours a day of them
=================== ========================================================================

The score is the CRPS (:func:`hpcrowd.analysis.forecast.scores.crps`), a mean over the values of a
measure; of a forecast without spread it is the absolute error. Beside the users of a forecast
(:data:`~hpcrowd.analysis.forecast.futures.USERS`) there are models of workloads fitted to the same
past, and :data:`REPEATED`, the weeks before the origin once more, which is a single draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.analysis.curves import Floats, log_minutes
from hpcrowd.analysis.forecast.futures import USERS, Outset
from hpcrowd.analysis.forecast.scores import crps, mean_difference
from hpcrowd.analysis.validation.chance import FIRST, Chance, by_chance
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError, TraceError, not_one_of
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.environment.streams import Streams

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.analysis.models.model import WorkloadModel
    from hpcrowd.analysis.paired import Estimate
    from hpcrowd.analysis.validation.validation import Protocol
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.formats.registry import Progress

#: The weeks before the origin, repeated.
REPEATED = "weeks before"

#: Models of workloads that are fitted to the record before the origin, with its weekly cycle: of
#: Lublin and Feitelson 2003, MUGM, and that of Minh's thesis 2012.
WORKLOADS = ("lublin", "mugm", "comprehensive")

#: Users of a forecast who submit something.
GOING_ON = tuple(name for name in USERS if name != "none")

#: All that can be judged.
SOURCES = (REPEATED, *WORKLOADS, *GOING_ON)

#: Measures whose scores have intervals, as they have a value for each day.
DAILY = ("load_by_day", "jobs_by_day", "users_by_day", "sessions_by_day")

#: Measures that are one number.
TOTALS = ("jobs", "processor_hours", "users")

#: Hours between two values that are correlated: an hour, a day, a week.
LAGS = (1, 24, 168)

#: Quantiles of the waits.
WAIT_LEVELS = (0.5, 0.9)

#: What users were at the origin: active within a week, silent for longer, for more than four weeks,
#: or not known yet; and the least silence of each, s.
STATES = {"active": 0, "silent": WEEK, "long silent": 4 * WEEK, "new": 10**12}

#: Ends of the interval whose coverage is counted.
INTERVAL = (0.05, 0.95)


@dataclass
class Month:
    """The jobs that were submitted in the weeks after an origin, recorded or drawn."""

    submit: Int64s  #: s since the origin of the clock, shape (jobs,), as all others.
    run_time: Int64s  #: s.
    processors: Int64s
    requested_time: Int64s  #: s; -1 unknown.
    user: Int64s  #: Numbers; -1 unknown.
    wait: Int64s | None = None  #: s, at least; None before a scheduler was asked.

    @classmethod
    def of(cls, jobs: JobTable, submit: Int64s, rows: Int64s) -> Month:
        """Return the jobs in rows of a table with their submissions, of all its rows."""
        return cls(
            submit[rows].copy(), jobs.run_time[rows].copy(), jobs.processors[rows].copy(),
            jobs.requested_time[rows].copy(), jobs.user[rows].copy(),
        )  # fmt: skip


def measured(month: Month, since: int, days: int, clock: Clock) -> dict[str, Floats]:
    """Return the measures of the days after a second, each of shape (values,)."""
    day = (month.submit - since) // DAY
    hours = month.processors * month.run_time / HOUR
    order = np.lexsort((month.submit, month.user))
    user, submit = month.user[order], month.submit[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(user) != 0) | (np.diff(submit) > ARRIVAL_THRESHOLD)
    active = np.unique(np.column_stack((day, month.user)), axis=0)[:, 0]
    local = clock.second_of_week(month.submit)
    by_hour = np.bincount((month.submit - since) // HOUR, hours, minlength=24 * days)
    found = {
        "jobs": np.array([len(day)], float),
        "processor_hours": np.array([hours.sum()]),
        "users": np.array([len(np.unique(user))], float),
        "jobs_by_day": np.bincount(day, minlength=days).astype(float),
        "load_by_day": np.bincount(day, hours, minlength=days),
        "users_by_day": np.bincount(active, minlength=days).astype(float),
        "sessions_by_day": np.bincount(day[order][begins], minlength=days).astype(float),
        "rhythm_of_day": np.bincount(local % DAY // HOUR, minlength=24) / max(len(day), 1),
        "rhythm_of_week": np.bincount(local // DAY, minlength=7) / max(len(day), 1),
        "autocorrelation": autocorrelation(np.log1p(by_hour)),
    }
    if month.wait is not None:
        waits = log_minutes(month.wait) if len(day) else np.zeros(1)
        found["waits"] = np.array([waits.mean(), *np.quantile(waits, WAIT_LEVELS)])
    return found


def autocorrelation(series: Floats) -> Floats:
    """Return the autocorrelation of an hourly series at :data:`LAGS`; 0 if it does not vary."""
    centred = series - series.mean()
    whole = float((centred**2).sum())
    return np.array([
        float((centred[:-lag] * centred[lag:]).sum()) / whole
        if whole > 0 and lag < len(series)
        else 0.0
        for lag in LAGS
    ])  # fmt: skip


@dataclass
class Cut:
    """A log at an origin: what is known, and what comes in the days after it."""

    jobs: JobTable  #: The whole log, with recorded times.
    clock: Clock
    processors: int
    now: int  #: s; the origin.
    days: int
    scheduler: str = "easy"
    first: Cut | None = None  #: The log at an earlier origin, whose learned model counts here.

    @property
    def until(self) -> int:
        """The end of the days after the origin, s."""
        return self.now + self.days * DAY

    @cached_property
    def known(self) -> Int64s:
        """Rows of the jobs submitted before the origin or at it, in the order of submission."""
        submit = self.jobs.recorded_submit
        rows = np.flatnonzero(submit <= self.now)
        return rows[np.argsort(submit[rows], kind="stable")]

    @cached_property
    def state(self) -> ClusterState:
        """The cluster at the origin; some logs use more processors than their headers say."""
        state = ClusterState.of(self.jobs, self.now, self.clock, self.processors)
        state.processors = max(state.processors, state.used)
        return state

    @cached_property
    def learned(self) -> LearnedModel:
        """The learned model, fitted to the record before the first origin.

        Pauses within sessions change slowly. Fitted before the last origin of KTH and of SDSC-DS,
        ratios of 20 draws differ by less than 0.01, and a fit takes as long as 20 to 100 draws.
        """
        if self.first is not None:
            return self.first.learned
        from hpcrowd.agents.work.recorded import Work
        from hpcrowd.analysis.models.learned import fit_learned

        return fit_learned([(Work.of(self.jobs.take(np.sort(self.known))), self.clock)])

    def recorded(self, shift: int = 0) -> Month:
        """Return the recorded jobs of the days after the origin, or as many days s before it."""
        submit = self.jobs.recorded_submit + shift
        rows = np.flatnonzero((submit > self.now) & (submit < self.until))
        return Month.of(self.jobs, submit, rows)

    def fitted(self, name: str) -> WorkloadModel:
        """Return a model of workloads fitted to what was known."""
        from hpcrowd.analysis.features.workload import Workload
        from hpcrowd.analysis.models.model import fit

        past = self.jobs.take(self.known)
        workload = Workload.of(
            past.recorded_submit, past.run_time, past.processors, clock=self.clock,
            requested_time=past.requested_time, user=past.user, group=past.group,
            executable=past.executable, machine=self.processors,
        )  # fmt: skip
        return fit(name, workload, cycle="weekly")

    def generated(self, model: WorkloadModel, seed: int) -> Month:
        """Return the days after the origin of what a model generates, from their Monday on."""
        from hpcrowd.analysis.models.generation import generate

        into = self.clock.wall(self.now) % WEEK
        drawn = generate(model, days=self.days + into / DAY, seed=seed).drawn
        submit = drawn.submit.astype(np.int64) + self.now - into
        rows = np.flatnonzero((submit > self.now) & (submit < self.until))
        return Month(
            submit[rows], drawn.run_time[rows].astype(np.int64),
            np.minimum(drawn.processors[rows], self.processors),
            drawn.requested_time[rows].astype(np.int64), drawn.user[rows],
        )  # fmt: skip

    @cached_property
    def _seen(self) -> tuple[Int64s, Int64s]:
        """The users known at the origin, ascending, and their last submissions until then, s."""
        past = self.jobs.take(self.known)
        users, place = np.unique(past.user, return_inverse=True)
        last = np.zeros(len(users), np.int64)
        last[place] = past.recorded_submit  # the last one stays, as they are in order
        return users, last

    def account(self, month: Month) -> dict[str, Floats]:
        """Return jobs, and processor-hours, a day by what their users were at the origin."""
        users, last = self._seen
        place = np.minimum(users.searchsorted(month.user), len(users) - 1)
        silence = np.where(users[place] == month.user, self.now - last[place], 10**12)
        state = np.searchsorted(list(STATES.values()), silence, side="right") - 1
        hours = month.processors * month.run_time / HOUR
        return {
            "jobs_by_state": np.bincount(state, minlength=len(STATES)) / self.days,
            "hours_by_state": np.bincount(state, hours, len(STATES)) / self.days,
        }

    def outset(self, users: str) -> Outset:
        """Return what all futures of some users have in common."""
        model = self.learned if users == "learned" else None
        return Outset(self.state, self.days * DAY, self.scheduler, users, model=model)

    def lived(self, outset: Outset, number: int, seed: int) -> Month:
        """Return what users submit in a future, and how long it waits."""
        runs: list[Simulation] = []
        future = outset.simulate(number, seed, runs.append)
        jobs = runs[0].jobs
        given = len(outset.rows) + len(outset.remembered)
        rows = np.flatnonzero((jobs.submit != UNKNOWN) & (jobs.submit <= self.until))
        rows = rows[rows >= given]
        month = Month.of(jobs, jobs.submit, rows)
        month.wait = np.where(future.wait == UNKNOWN, self.until - future.submit, future.wait)
        inside = month.submit < self.until
        return Month(**{name: values[inside] for name, values in vars(month).items()})

    def scheduled(self, month: Month, number: int, seed: int) -> Month:
        """Return a month with the waits of its jobs behind the queue at the origin."""
        outset = self.outset("none")

        def add(simulation: Simulation) -> None:
            asked = np.where(month.requested_time > 0, month.requested_time, month.run_time)
            rows = simulation.jobs.append(
                len(month.submit), user=month.user, processors=month.processors,
                run_time=month.run_time, requested_time=np.maximum(asked, 1),
            )  # fmt: skip
            simulation.submit(_Nobody(), rows, month.submit)

        future = outset.simulate(number, seed, add)
        month.wait = np.where(future.wait == UNKNOWN, self.until - month.submit, future.wait)
        return month


class _Nobody:
    """The one who submitted jobs that do not depend on what happens."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def cuts_of(
    jobs: JobTable, clock: Clock, processors: int, rules: Protocol
) -> tuple[list[Cut], list[str]]:
    """Return a log at each origin of the rules, and why others are left out.

    Raises
    ------
    TraceError
        If no origin has as many days before it, and after it, as models foresee.
    """
    submit = np.sort(jobs.recorded_submit)
    begin, end = int(submit[0]), int(submit[-1])
    if rules.apart is None:
        rank = [min(math.ceil(share * len(submit)), len(submit) - 1) for share in rules.origins]
        places = [
            (f"{share:g}", int(at)) for share, at in zip(rules.origins, submit[rank], strict=True)
        ]
    else:
        first = begin + round(FIRST * (end - begin))
        places = [
            (f"day {(at - begin) // DAY}", at)
            for at in range(first, max(end - rules.days * DAY, first) + 1, rules.apart * DAY)
        ]
    found: list[Cut] = []
    short: list[str] = []
    for name, now in places:
        before, after = (now - begin) / DAY, (end - now) / DAY
        if min(before, after) >= rules.days:
            cut = Cut(jobs, clock, processors, now, rules.days, rules.scheduler)
            cut.first = found[0] if found else None
            found.append(cut)
        else:
            short.append(
                f"origin {name}: the log has {before:.0f} days before it and {after:.0f} after it; "
                f"{rules.days} are needed on both sides"
            )
    if not found:
        raise TraceError(short[-1])
    return found, short


def draws(cut: Cut, source: str, count: int, seed: int = 0) -> Iterator[Month]:
    """Draw the days after an origin from a source, one of :data:`SOURCES`, with waits.

    The weeks before are one draw, whatever the count.
    """
    if source == REPEATED:
        yield cut.scheduled(cut.recorded(cut.days * DAY), 0, seed)
    elif source in WORKLOADS:
        model = cut.fitted(source)
        for number in range(count):
            own = Streams(seed).within("month", number).sequence(source).generate_state(1)[0]
            yield cut.scheduled(cut.generated(model, int(own)), number, seed)
    elif source in GOING_ON:
        outset = cut.outset(source)
        for number in range(count):
            yield cut.lived(outset, number, seed)
    else:
        raise QuantityError(f"users {source!r}: {not_one_of(source, SOURCES)}")


@dataclass
class Judgement:
    """The measures of all draws from all origins of a log, and of the record."""

    clock: Clock
    origins: list[int]  #: s.
    settings: dict[str, Any]  #: Fit for JSON.
    #: By origin: of the record by measure, shape (values,); of each source, shape (draws, values).
    record: list[dict[str, Floats]] = field(default_factory=list)
    drawn: list[dict[str, dict[str, Floats]]] = field(default_factory=list)
    chance: dict[str, Chance] = field(default_factory=dict)  #: By measure; see :mod:`.chance`.

    @property
    def sources(self) -> list[str]:
        """Names of the sources."""
        return list(self.drawn[0])

    def scores(self, source: str, measure: str) -> list[Floats]:
        """Return the CRPS of each value, by origin, in units of the measure; (values,) each."""
        found = []
        for record, drawn in zip(self.record, self.drawn, strict=True):
            members, outcomes = drawn[source][measure].T, record[measure]
            if members.shape[1] == 1:
                found.append(np.abs(members[:, 0] - outcomes))
            else:
                found.append(crps(members, outcomes))
        return found

    def scale(self, measure: str) -> float:
        """Return the mean of a recorded measure, which scores are given in; 1 where it is 0."""
        mean = float(np.mean([np.abs(one[measure]).mean() for one in self.record]))
        return mean if mean > 0 else 1.0

    def score(self, source: str, measure: str) -> float:
        """Return the mean CRPS over values and origins, as a share of the recorded mean."""
        values = self.scores(source, measure)
        return float(np.mean([one.mean() for one in values])) / self.scale(measure)

    def coverage(self, source: str, measure: str) -> float | None:
        """Return the share of recorded values in the 90 % interval; None for a single draw."""
        inside = []
        for record, drawn in zip(self.record, self.drawn, strict=True):
            members = drawn[source][measure]
            if len(members) == 1:
                return None
            low, high = np.quantile(members, INTERVAL, axis=0)
            inside.append(((low <= record[measure]) & (record[measure] <= high)).mean())
        return float(np.mean(inside))

    def ratios(self, source: str, measure: str) -> Floats:
        """Return the mean over the draws by what was recorded, shape (origins,)."""
        pairs = zip(self.record, self.drawn, strict=True)
        return np.array([
            float(drawn[source][measure].mean()) / max(float(record[measure].mean()), 1e-9)
            for record, drawn in pairs
        ])  # fmt: skip

    def whole(self, source: str, measure: str) -> float:
        """Return the sum of the means over the draws by the sum of what was recorded."""
        drawn = sum(float(one[source][measure].mean()) for one in self.drawn)
        return drawn / max(sum(float(one[measure].mean()) for one in self.record), 1e-9)

    def gain(self, source: str, measure: str, rival: str = REPEATED) -> Estimate:
        """Return a source's mean CRPS minus a rival's, as :meth:`score`, with its interval.

        Days in a row are resampled together (:func:`~hpcrowd.analysis.forecast.scores.
        mean_difference`).
        """
        first, second = (np.concatenate(self.scores(name, measure)) for name in (source, rival))
        unit = self.scale(measure)
        generator = Streams(self.settings["seed"]).generator("month", measure)
        return mean_difference(first / unit, second / unit, generator)


def judge(
    jobs: JobTable,
    clock: Clock,
    processors: int,
    rules: Protocol,
    sources: Sequence[str] = SOURCES,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Judgement:
    """Judge sources by the days after each origin; those with too few days are left out.

    Parameters
    ----------
    jobs, clock, processors
        The log with recorded times, local time, and the size of the machine.
    rules
        Origins or the days between them, days, scheduler, and ``month_draws``.
    sources
        Some of :data:`SOURCES`; :data:`REPEATED` is always added.
    seed
        Of everything random.
    progress
        Called before each step.

    Raises
    ------
    HpcrowdError
        If a name is not known, a model cannot be fitted, or the log is too short for all origins.
    """
    names = list(dict.fromkeys((REPEATED, *sources)))
    for name in names:
        if name not in SOURCES:
            raise QuantityError(f"users {name!r}: {not_one_of(name, SOURCES)}")
    cuts, short = cuts_of(jobs, clock, processors, rules)
    settings = {
        "origins": list(rules.origins) if rules.apart is None else "months",
        "apart": rules.apart, "days": rules.days, "scheduler": rules.scheduler,
        "draws": rules.month_draws, "seed": seed, "processors": processors, "left_out": short,
    }  # fmt: skip
    found = Judgement(clock, [cut.now for cut in cuts], settings)
    found.chance = by_chance(jobs, rules, Streams(seed).generator("month", "chance"))
    for place, cut in enumerate(cuts):

        def summary(month: Month, cut: Cut = cut) -> dict[str, Floats]:
            return measured(month, cut.now, cut.days, clock) | cut.account(month)

        found.record.append(summary(cut.scheduled(cut.recorded(), 0, seed)))
        drawn: dict[str, dict[str, Floats]] = {}
        for step, name in enumerate(names):
            if progress is not None:
                label = f"{name}, origin {place + 1} of {len(cuts)}"
                progress(label, place * len(names) + step, len(names) * len(cuts))
            each = [summary(month) for month in draws(cut, name, rules.month_draws, seed)]
            drawn[name] = {key: np.stack([one[key] for one in each]) for key in each[0]}
        found.drawn.append(drawn)
    return found
