"""A run as a whole: what the page knows of it, its numbers until now, its load over all time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.energy.part import carbon_text, energy_text
from hpcrowd.analysis.metrics import bounded_slowdown
from hpcrowd.analysis.numbers import mean_of, time_text
from hpcrowd.analysis.pictures.power import power_text
from hpcrowd.analysis.views.load import lateness_now, load_table
from hpcrowd.analysis.views.moment import Moment, averages
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.limits.numbers import LONGEST_DURATION

if TYPE_CHECKING:
    from hpcrowd.analysis.views.moment import Moment
    from hpcrowd.environment.jobs import Int64s
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


def numbers(
    moment: Moment, *, until: int | None = None, more: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the numbers of a run until now, and ``more`` numbers after them.

    Waits and slowdowns are of the jobs that have started, or ended; the utilization is the part of
    the processor-seconds since the first submission, and until ``until``, that were in use.
    """
    jobs, now = moment.jobs, moment.now if until is None else until
    started, ended = moment.started, moment.ended
    wait = mean_of(jobs.start[started] - jobs.submit[started])
    response = jobs.end[ended] - jobs.submit[ended]
    slowdown = mean_of(bounded_slowdown(response, jobs.lasted[ended]))
    late = lateness_now(moment).mean
    waiting = moment.waiting
    values = [
        number("wait_mean_s", "Mean wait", "s", wait, "lower"),
        number("bounded_slowdown_mean", "Mean bounded slowdown", "", slowdown, "lower"),
        number("utilization", "Utilization", "%", utilization_until(moment, now), ""),
        number("jobs_running", "Jobs running", "jobs", int(moment.running.sum()), ""),
        number("jobs_waiting", "Jobs in the queue", "jobs", int(waiting.sum()), "lower"),
        number(
            "processors_asked", "Processors requested by the queue", "processors",
            int(jobs.processors[waiting].sum()), "lower",
        ),
        number("lateness_mean_s", "Mean lateness", "s", late, "lower"),
        number("jobs_completed", "Jobs finished", "jobs", int(ended.sum()), "higher"),
    ]  # fmt: skip
    if given_up := int(moment.given_up.sum()):
        values.append(number("jobs_given_up", "Jobs given up", "jobs", given_up, "lower"))
    return {"until": now, "values": [*values, *more]}


def utilization_until(moment: Moment, now: int) -> float | None:
    """Return the part of the processor-seconds until a second that were in use, in percent."""
    first = moment.first
    if now <= first:
        return None
    moment = moment.by_run
    jobs, started = moment.jobs, moment.started
    end = np.where(moment.ended, jobs.end, now)[started]
    lasted = end - jobs.start[started] - np.maximum(jobs.paused[started], 0)
    used = float((lasted * jobs.processors[started]).sum())
    size, _ = averages(moment.steps, np.array([first, now]))
    return 100 * used / (float(size[0]) * (now - first)) if size[0] else None


def number(
    key: str, words: str, unit: str, value: float | None, better: str, text: str = ""
) -> dict[str, Any]:
    """Return a number with its words and its text, which is made from it unless given."""
    return {
        "key": key, "words": words, "unit": unit, "value": value,
        "text": text or _text(value, unit), "better": better,
    }  # fmt: skip


def _text(value: float | None, unit: str) -> str:
    if value is None or unit == "s":
        return time_text(value)
    if unit == "%":
        return f"{value:.1f} %"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def energy_numbers(course: Course) -> list[dict[str, Any]]:
    """Return energy, carbon and cost so far and the power now, as far as they are known.

    Of a folder of results only the totals of the whole run are known, so they are there at its end.
    """
    account = course.energy_account()
    totals = course.energy_of_all if account is None else account.so_far()
    if not totals:
        return []
    kwh = totals["energy_kwh"]
    found = [number("energy_kwh", "Energy", "kWh", kwh, "lower", energy_text(kwh))]
    if "carbon_kg" in totals:
        kg = totals["carbon_kg"]
        found.append(number("carbon_kg", "Carbon", "kg", kg, "lower", carbon_text(kg)))
    if "cost" in totals:
        cost, unit = totals["cost"], totals["currency"]
        text = f"{cost:,.2f} {unit}".rstrip()
        found.append(number("energy_cost", "Cost of energy", unit, cost, "lower", text))
    if "power_kw" in totals:
        kw = totals["power_kw"]
        found.append(number("power_now_kw", "Power now", "kW", kw, "", power_text(kw)))
    return found


#: Part of the machine in use from which an hour with a queue is busy.
BUSY = 0.5


def timeline(course: Course, *, whole: bool) -> dict[str, Any]:
    """Return the run so far in bins; its numbers, too, if that is the ``whole`` run."""
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
