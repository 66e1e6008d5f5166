"""Output of events and of what models foresaw: as rows for tables, as plain data, as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hpcrowd.analysis.validation.events import Event
from hpcrowd.analysis.validation.foresight import MEASURES, Asked, Verdict
from hpcrowd.analysis.validation.scores import Estimate
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.quantities import format_duration

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
            *(_factor(one.change(days, measure, model)) for model in ("", *one.foreseen)),
        ]
        for one in asked
    ]


def _factor(change: float) -> str:
    return "" if math.isnan(change) else f"{math.exp(change):.2f}"


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
                        (*_place(one.event, clock), days, source, measure, _csv(each[measure]),
                         _csv(change))
                    )  # fmt: skip
    return rows


def _place(event: Event, clock: Clock) -> tuple[Any, ...]:
    local = clock.local(event.begin).isoformat()
    return event.kind, event.what, local, event.begin, event.end


def _csv(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
