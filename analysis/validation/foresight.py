"""How well models foresee what users do after an event: an outage, a holiday, a lasting change.

This is the question behind every what-if. Models are fitted to what came before the event's first
second, and decide from then on. What they foresee is *when* users submit: the jobs, and for how
long each waits, are those of the record, so an outage is in the recorded waits of its jobs. Some
days after the event are compared with as many days of the weeks before it, of the same weekdays:

=========== ====================================================================================
measure     what it is
=========== ====================================================================================
jobs        jobs submitted
sessions    sessions begun, found again in the simulated times
users       users who submit
think_time  median pause between sessions, from the end of what a session waited for, s
=========== ====================================================================================

Counted are sessions that begin in those days, and only users who had submitted before: a session
that has begun goes on as recorded, and new users come at their recorded second in every model. The
error of a model is the natural logarithm of what it says over the record, which is also the error
of its ratio of after over before. *No change* says that all is as in the weeks before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.analysis.curves import RESOLUTION, Floats
from hpcrowd.analysis.paired import CONFIDENCE
from hpcrowd.analysis.validation.events import Event
from hpcrowd.analysis.validation.futures import observe, simulate_second
from hpcrowd.analysis.validation.models import Parts, UserModel
from hpcrowd.analysis.validation.scores import (
    BIN,
    RESAMPLES,
    Estimate,
    mean_over_users,
)
from hpcrowd.environment.clock import DAY, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import Progress

#: What is compared.
MEASURES = ("jobs", "sessions", "users", "think_time")

#: Days after an event that are compared: the first, three, and a fortnight.
HORIZONS = (1, 3, 14)

#: Weeks before an event that say what is usual, as for finding events.
WEEKS_BEFORE = 4

#: Fewest jobs in as many days before an event for its effect to be measured.
LEAST_JOBS = 20

#: Natural logarithm of the least recorded change whose direction is judged: by a fifth.
CHANGED = float(np.log(1.2))

#: Largest number of events of each kind that models are asked about, and days between two.
MOST_EVENTS, APART = 3, 7

#: Simulations of each model after each event.
SEEDS = 2

#: Names of the baseline, and of the kind of days on which nothing was found.
NO_CHANGE, ORDINARY = "no change", "ordinary"

#: What was measured in some days, by name of the measure.
Numbers = dict[str, float]


@dataclass(frozen=True)
class Asked:
    """An event that models were asked about."""

    event: Event  #: The event.
    #: What was measured before and after it, by days.
    usual: dict[int, Numbers]
    recorded: dict[int, Numbers]
    #: What models say of the days after it, by name and days.
    foreseen: dict[str, dict[int, Numbers]]
    #: Jobs on each day after it, by model, and those usual and recorded, shape (days,).
    daily: dict[str, Floats]

    def change(self, days: int, measure: str, model: str = "") -> float:
        """Return the logarithm of after over before; NaN if there is too little before.

        Of a name of :data:`MEASURES` in that many days, as a model says; without a model as
        recorded.
        """
        before, after = self.usual[days], self.recorded[days]
        if model:
            after = before if model == NO_CHANGE else self.foreseen[model][days]
        if before["jobs"] < LEAST_JOBS:
            return float("nan")
        # Half of one more on both sides, so that none at all is a finite number.
        more = 0.0 if measure == "think_time" else 0.5
        return float(np.log((after[measure] + more) / (before[measure] + more)))

    def error(self, days: int, measure: str, model: str) -> float:
        """Return the error of a model: its change less the recorded one."""
        return self.change(days, measure, model) - self.change(days, measure)

    def right(self, days: int, measure: str, model: str) -> float:
        """Return 1 if a model has the direction right, 0 if not, NaN if little changed."""
        came = self.change(days, measure)
        if not abs(came) >= CHANGED or model == NO_CHANGE:
            return float("nan")
        return float(np.sign(self.change(days, measure, model)) == np.sign(came))

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, fit for JSON."""

        def by_days(numbers: dict[int, Numbers]) -> dict[str, Any]:
            return {
                str(days): {
                    name: value if np.isfinite(value) else None for name, value in found.items()
                }
                for days, found in numbers.items()
            }

        return {
            "event": self.event.plain(),
            "usual": by_days(self.usual),
            "recorded": by_days(self.recorded),
            "foreseen": {name: by_days(found) for name, found in self.foreseen.items()},
            "jobs_by_day": {name: values.tolist() for name, values in self.daily.items()},
        }


def choose_events(
    events: Sequence[Event], jobs: JobTable, most: int = MOST_EVENTS, ordinary: int = 0
) -> list[Event]:
    """Return the largest events of each kind, with enough days around them, in order of time.

    There are at most ``most`` of each kind, and for comparison that many ``ordinary`` days on which
    nothing was found for as many days as possible.
    """
    low = int(jobs.recorded_submit.min()) + WEEKS_BEFORE * WEEK
    high = int(jobs.recorded_submit.max()) - max(HORIZONS) * DAY
    chosen: list[Event] = []
    for kind in sorted({event.kind for event in events}):
        alike = sorted((one for one in events if one.kind == kind), key=_size, reverse=True)
        found = 0
        for event in alike:
            apart = all(abs(event.begin - one.begin) >= APART * DAY for one in chosen)
            if found < most and low <= event.begin <= high and apart:
                chosen.append(event)
                found += 1
    taken = [event.begin for event in events]
    for _ in range(ordinary):
        days = np.arange(low, high, DAY)
        gaps = [min((abs(day - one) for one in taken), default=high - low) for day in days]
        if not gaps or max(gaps) < APART * DAY:
            break
        at = int(days[int(np.argmax(gaps))])
        chosen.append(Event(ORDINARY, at, at, 0.0, 0.0, 1.0))
        taken.append(at)
    return sorted(chosen, key=lambda event: event.begin)


def _size(event: Event) -> float:
    if event.lasting:
        return abs(float(np.log((event.after + 1) / (event.before + 1))))
    return (event.before - event.after) * (event.end - event.begin)


def foresee_events(
    jobs: JobTable,
    models: Sequence[UserModel],
    clock: Clock,
    events: Sequence[Event],
    *,
    seeds: int = SEEDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Asked]:
    """Ask models how users' submissions change after each event, with some simulations each.

    The jobs have recorded waits, and models replay jobs and do not use what comes after the event.
    An HpcrowdError is raised when a model cannot be asked, or fitted to what came before an event.
    """
    for model in models:
        if model.generates:
            raise QuantityError(
                f"users {model.name}: generate their work, so there is no work of the days after "
                "an event; leave them out"
            )
    found: list[Asked] = []
    for place, event in enumerate(events):
        parts = Parts.of(jobs, clock, at=event.begin, days=max(HORIZONS))
        stretches = _Stretches(parts)
        foreseen: dict[str, dict[int, Numbers]] = {}
        recorded, usual = stretches.after(jobs.as_recorded()), stretches.before()
        daily = {"usual": usual[1], "recorded": recorded[1]}
        for number, model in enumerate(models):
            if progress is not None:
                done = place * len(models) + number
                progress(f"{event.kind} {place + 1} of {len(events)}, {model.name}", done,
                         len(events) * len(models))  # fmt: skip
            runs = [
                stretches.after(simulate_second(parts, model, seed=seed + k)) for k in range(seeds)
            ]
            foreseen[model.name] = {
                days: _mean([each[days] for each, _ in runs]) for days in HORIZONS
            }
            daily[model.name] = np.mean([each for _, each in runs], axis=0)
        found.append(Asked(event, usual[0], recorded[0], foreseen, daily))
    return found


class _Stretches:
    """The days before and after an event."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        sessions = parts.work.sessions
        self.record = parts.work.jobs.as_recorded()
        self.start = sessions.start[parts.work.jobs.session]
        first = np.full(len(sessions.users), np.iinfo(np.int64).max)
        np.minimum.at(first, parts.place, parts.work.jobs.recorded_submit)
        self.first = first[parts.place]

    def after(self, run: JobTable) -> tuple[dict[int, Numbers], Floats]:
        """Return what was measured in the days after the event, and jobs day by day."""
        numbers = {days: self._measure(run, self.parts.since, days) for days in HORIZONS}
        return numbers, self._daily(run, self.parts.since)

    def before(self) -> tuple[dict[int, Numbers], Floats]:
        """Return the mean of what was measured in as many days before, and jobs day by day."""
        numbers = {
            days: _mean([self._measure(self.record, at, days) for at in self._begins(days)])
            for days in HORIZONS
        }
        daily = [self._daily(self.record, at) for at in self._begins(max(HORIZONS))]
        return numbers, np.mean(daily, axis=0)

    def _begins(self, days: int) -> list[int]:
        """Return the begins of stretches of days before the event that begin on its weekday."""
        weeks = -(-days // 7)
        return [self.parts.since - k * WEEK for k in range(weeks, WEEKS_BEFORE + 1, weeks)]

    def _rows(self, run: JobTable, begin: int, days: int) -> Int64s:
        """Return the rows of sessions that begin in a stretch, of users seen before it."""
        inside = (run.submit >= begin) & (run.submit < begin + days * DAY)
        return np.flatnonzero(inside & (self.start >= begin) & (self.first < begin))

    def _measure(self, run: JobTable, begin: int, days: int) -> Numbers:
        found = observe(self.parts, run, self._rows(run, begin, days))
        jobs, pauses = found["jobs"][:, 0], np.cumsum(found["think_time"].sum(axis=0))
        middle = float("nan")
        if pauses[-1]:
            place = int(np.searchsorted(pauses, pauses[-1] / 2))
            middle = (10 ** ((place + 0.5) * BIN) - 1) * RESOLUTION
        return {
            "jobs": float(jobs.sum()),
            "sessions": float(found["sessions"].sum()),
            "users": float((jobs > 0).sum()),
            "think_time": middle,
        }

    def _daily(self, run: JobTable, begin: int) -> Floats:
        days = max(HORIZONS)
        at = run.submit[self._rows(run, begin, days)]
        return np.bincount((at - begin) // DAY, minlength=days).astype(np.float64)


def _mean(runs: Sequence[Numbers]) -> Numbers:
    """Return the mean of numbers measured several times, without those that are unknown."""
    found: Numbers = {}
    for name in MEASURES:
        values = np.array([each[name] for each in runs])
        known = values[np.isfinite(values)]
        found[name] = float(known.mean()) if len(known) else float("nan")
    return found


@dataclass(frozen=True)
class Verdict:
    """How well a model foresees a measure in some days after events."""

    #: Of what.
    model: str
    measure: str
    days: int
    events: int  #: Number of events that count.
    error: Estimate  #: Mean absolute error of the logarithm of the ratio of after over before.
    bias: Estimate  #: Mean error; positive if the model has too much.
    gain: Estimate  #: Error of "no change" less that of the model; positive if the model is better.
    #: Share of the events that changed the measure by a fifth or more whose direction is right.
    right: Estimate

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, fit for JSON."""
        return {
            name: value.plain() if isinstance(value, Estimate) else value
            for name, value in vars(self).items()
        }


def verdicts(logs: Mapping[str, Sequence[Asked]], seed: int = 0) -> list[Verdict]:
    """Return how well each model foresees each measure, over all events of all logs.

    What was asked comes by log; each must have the same models. Intervals are those of resamples:
    of logs, if there are several, and of the events in each.
    """
    asked = [one for each in logs.values() for one in each]
    if not asked:
        return []
    weights = _resamples([len(each) for each in logs.values()], seed)
    found = []
    for measure in MEASURES:
        for days in HORIZONS:
            still = np.array([abs(one.error(days, measure, NO_CHANGE)) for one in asked])
            for model in (NO_CHANGE, *asked[0].foreseen):
                error = np.array([one.error(days, measure, model) for one in asked])
                right = np.array([one.right(days, measure, model) for one in asked])
                found.append(
                    Verdict(
                        model,
                        measure,
                        days,
                        int(np.isfinite(error).sum()),
                        _estimate(np.abs(error), weights),
                        _estimate(error, weights),
                        _estimate(still - np.abs(error), weights),
                        _estimate(right, weights),
                    )
                )
    return found


def _resamples(sizes: Sequence[int], seed: int) -> Floats:
    """Return how often each event is drawn: first once each, then at random, shape (rows, n)."""
    generator = Streams(seed).generator("events")
    edges = np.concatenate([[0], np.cumsum(sizes)])
    found = np.zeros((1 + RESAMPLES, int(edges[-1])))
    found[0] = 1
    for row in found[1:]:
        for log in generator.integers(len(sizes), size=len(sizes)):
            low, high = int(edges[log]), int(edges[log + 1])
            if high > low:
                np.add.at(row, generator.integers(low, high, size=high - low), 1)
    return found


def _estimate(values: Floats, weights: Floats) -> Estimate:
    """Return the mean of known values, with the percentiles of its resamples; none of a single."""
    means = mean_over_users(values, weights)
    if np.isfinite(values).sum() < 2:
        return Estimate(float(means[0]), float("nan"), float("nan"))
    drawn = means[1:][np.isfinite(means[1:])]
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(means[0]), float(low), float(high))


# ---- rows for tables, plain data, CSV ------------------------------------------------------------

#: Headings of the table of events.
EVENTS = ("event", "local time", "lasts", "before", "after", "unit", "by chance")

#: The unit of what changed, by kind.
UNITS = {
    "outage": "starts/h",
    "holiday": "users/day",
    "capacity": "processors",
    "load": "processor-days/day",
    "waits": "s",
    "queue": "jobs/day",
}

#: Columns of the table in comma-separated values.
COLUMNS = ("event", "what", "local", "begin_s", "end_s", "days", "source", "measure", "value",
           "log_change")  # fmt: skip


def event_rows(events: Iterable[Event], clock: Clock) -> list[list[str]]:
    """Return the rows of a table of events, with the headings :data:`EVENTS`."""
    return [
        [
            name_of(event),
            f"{clock.local(event.begin):%Y-%m-%d %H:%M}",
            "" if event.lasting else format_duration(event.end - event.begin),
            number(event.before),
            number(event.after),
            UNITS[event.kind],
            f"{event.chance:.0e}",
        ]
        for event in events
    ]


def name_of(event: Event) -> str:
    """Return the kind of an event, or the queue that it is about."""
    return event.what or event.kind


def number(value: float) -> str:
    """Return a number with at least two digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def asked_rows(asked: Iterable[Asked], clock: Clock, days: int, measure: str) -> list[list[str]]:
    """Return a row for each event: the factor of the change recorded, and said by each model."""
    return [
        [
            name_of(one.event),
            f"{clock.local(one.event.begin):%Y-%m-%d %H:%M}",
            *(
                _shown(math.exp(one.change(days, measure, model)), ".2f")
                for model in ("", *one.foreseen)
            ),
        ]
        for one in asked
    ]


def verdict_rows(found: Sequence[Verdict], measures: Iterable[str], days: int) -> list[list[str]]:
    """Return a row for each model: its errors, and how often its direction is right."""
    chosen = list(measures)
    rows = []
    for model in dict.fromkeys(one.model for one in found):
        mine = {one.measure: one for one in found if one.model == model and one.days == days}
        rows.append(
            [
                model,
                *(interval(mine[measure].error) for measure in chosen),
                interval(mine["jobs"].right),
            ]
        )
    return rows


def interval(found: Estimate) -> str:
    """Return a number with its interval; empty if it is not known."""
    if math.isnan(found.value):
        return ""
    if math.isnan(found.low):
        return f"{found.value:.2f}"
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def plain(events: Iterable[Event], clock: Clock) -> list[dict[str, Any]]:
    """Return events with their local times as plain data, fit for JSON."""
    return [{**one.plain(), "local": clock.local(one.begin).isoformat()} for one in events]


def csv_rows(
    events: Iterable[Event], asked: Iterable[Asked], clock: Clock
) -> list[tuple[Any, ...]]:
    """Return rows with the columns :data:`COLUMNS`.

    Of events that models were not asked about there are two, of what changed, ``before`` and
    ``after``. Of others there is one for each number of days, source (``usual``, ``recorded`` or
    a model) and measure.
    """
    rows: list[tuple[Any, ...]] = []
    for event in events:
        for source, value in (("before", event.before), ("after", event.after)):
            rows.append((*_place(event, clock), "", source, UNITS[event.kind], f"{value:.6g}", ""))
    for one in asked:
        sources = {"usual": one.usual, "recorded": one.recorded, **one.foreseen}
        for source, numbers in sources.items():
            for days, each in numbers.items():
                for measure in MEASURES:
                    model = "" if source == "recorded" else source
                    change = 0.0 if source == "usual" else one.change(days, measure, model)
                    rows.append(
                        (*_place(one.event, clock), days, source, measure, _shown(each[measure]),
                         _shown(change))
                    )  # fmt: skip
    return rows


def _place(event: Event, clock: Clock) -> tuple[Any, ...]:
    local = clock.local(event.begin).isoformat()
    return event.kind, event.what, local, event.begin, event.end


def _shown(value: float, form: str = ".6g") -> str:
    return "" if math.isnan(value) else format(value, form)
