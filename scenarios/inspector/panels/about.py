"""What the page needs to know of a run before it shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcrowd.agents.presets import PRESETS
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.limits.numbers import LONGEST_DURATION

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: How far beyond the record the clock of the page knows its time zone, s.
BEYOND = 366 * 24 * HOUR


def about(course: Course) -> dict[str, Any]:
    """Return what there is to know of a run at its beginning."""
    moment = course.moment()
    jobs = moment.jobs
    last = max(int(jobs.recorded_submit.max(initial=0)), int(jobs.end.max(initial=0)), course.now)
    return {
        "label": course.label,
        "controls": [
            {
                "name": one.name,
                "label": one.label,
                "choices": list(dict.fromkeys((one.value, *one.choices))) if one.choices else [],
                "value": one.value,
            }
            for one in course.controls
        ],
        "notes": course.notes,
        "played_back": course.played_back,
        "clock": clock_of(moment.clock, last + BEYOND),
        "names": {int(number): name for number, name in jobs.names.get("user", {}).items()},
        "processors": moment.processors,
        "clusters": list(moment.clusters),
        "users_can_change": [] if course.played_back else list(PRESETS),
        **({"power": True} if course.has_power else {}),
        "seeds": any(one.name == "seed" for one in course.controls),
    }


def clock_of(clock: Clock, until: int) -> dict[str, Any]:
    """Return a clock for the browser: the UTC offset from each second on, to ``until``.

    Beyond :data:`LONGEST_DURATION` the last one holds.
    """
    offsets, second = [(0, clock.ahead(0))], 0
    until = min(until, LONGEST_DURATION)
    while (change := clock.next_change(second, until)) is not None:
        offsets.append((change, clock.ahead(change)))
        second = change
    return {
        "unix_start": clock.unix_start,
        "nominal": clock.nominal,
        "zone": str(clock.zone),
        "offsets": offsets,
    }
