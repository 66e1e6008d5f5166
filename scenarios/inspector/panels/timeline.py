"""The whole run at a glance: load and queue over time, outages, where it is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.views.load import load_table
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.inspector.panels.numbers import numbers
from hpcrowd.scenarios.inspector.panels.power import energy_numbers

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Part of the machine in use from which an hour with a queue is busy.
BUSY = 0.5


def timeline(course: Course, *, whole: bool) -> dict[str, Any]:
    """Return the run so far in bins.

    Parameters
    ----------
    course
        The run.
    whole
        Whether it has come to its end; then its numbers are those of the whole run.
    """
    moment = course.moment()
    frame = load_table(moment, None)
    jobs = moment.jobs
    recorded = int(jobs.recorded_submit.max(initial=0))
    busy, busiest = busy_hours(moment, whole=whole)
    return {
        "edges": np.append(frame["begin_s"].to_numpy(), frame["end_s"].iloc[-1]),
        "in_use": frame["processors_in_use"].to_numpy().round(2),
        "waiting": frame["jobs_waiting"].to_numpy().round(2),
        "size": frame["processors"].to_numpy(),
        "up": frame["processors_up"].to_numpy(),
        "outages": outages_of(moment),
        "first": moment.first,
        "last": _end_of(moment) if whole else max(course.now, recorded),
        "until": course.now,
        "done": whole,
        "busy": busy,
        "busiest": busiest,
        "numbers": numbers(moment, until=_end_of(moment), more=energy_numbers(course))
        if whole
        else None,
    }


def _end_of(moment: Moment) -> int:
    """Return the first second of a whole run at which everything has happened."""
    if moment.waiting.any():  # and never starts
        return moment.now
    return min(moment.now, int(moment.jobs.end.max(initial=moment.first)) + 1)


def outages_of(moment: Moment) -> list[tuple[int, int, int]]:
    """Return when processors were down or closed: begin and end, s, and how many."""
    steps = [one for one in moment.steps if one.at < moment.now]
    ends = [one.at for one in steps[1:]] + [moment.now] * bool(steps)
    return [
        (one.at, end, one.size - one.up)
        for one, end in zip(steps, ends, strict=True)
        if one.up < one.size and end > one.at
    ]


def busy_hours(moment: Moment, *, whole: bool) -> tuple[int | None, int | None]:
    """Return the first busy hour so far, and the busiest, as seconds since the origin.

    In the first, jobs wait and at least :data:`BUSY` of the machine is in use. In the busiest, the
    waiting jobs ask for the most processors, or, where none ever wait, the most are in use. Of a
    whole run of less than a day, both are the busiest second after a job came or started.
    """
    clock = moment.clock
    first = moment.first + -clock.wall(moment.first) % HOUR  # full hours on the clock
    jobs, started = moment.jobs, moment.started
    begins = jobs.start[started]
    if not len(begins):
        return None, None
    # At a second, what begins in it has not been seen yet, and what ends in it has ended.
    left = np.where(started, jobs.start + 1, np.where(moment.never_ran, jobs.end, moment.now + 1))
    end = np.where(moment.ended, jobs.end, moment.now + 1)
    # Only the first hour after something happened can be the first busy or the busiest.
    events = np.concatenate([jobs.submit[moment.submitted] + 1, begins + 1, left, end, [first]])
    hours = np.unique(first + -(-(events - first) // HOUR) * HOUR)
    hours = hours[(hours >= first) & (hours <= moment.now)]
    short = whole and int(jobs.end[started].max()) - moment.first < DAY
    if short:
        hours = np.unique(np.concatenate([jobs.submit[moment.submitted], begins])) + 1
    if not len(hours):
        return None, None
    waiting = _level(jobs.submit + 1, left, jobs.processors, moment.submitted, hours)
    used = _level(jobs.start + 1, end, jobs.processors, started, hours)
    loaded = np.flatnonzero((waiting > 0) & (used >= BUSY * moment.processors))
    busiest = int(np.argmax(waiting if waiting.any() else used))
    if short:
        return int(hours[busiest]), int(hours[busiest])
    return (int(hours[loaded[0]]) if len(loaded) else None), int(hours[busiest])


def _level(begin: Int64s, end: Int64s, weight: Int64s, which: Any, times: Int64s) -> Int64s:
    """Return the sum of the weights of what is there at each time, shape of ``times``.

    Something is there from its begin until before its end.
    """
    found: Int64s = np.zeros(len(times), np.int64)
    for sign, column in ((1, begin), (-1, end)):
        total = np.zeros(len(times) + 1, np.int64)
        np.add.at(total, np.searchsorted(times, column[which]), sign * weight[which])
        found += np.cumsum(total)[:-1]
    return found
