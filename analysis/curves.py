"""Data of the pictures: levels over time, distributions, weekly profiles, in plain numpy.

Everything is averaged or sampled down to what a picture can show, so that drawing 300,000 jobs
takes no longer than 300. Weekly profiles come as rates, for pictures (:func:`weekly_rates`), and as
shares, to compare runs (:func:`weekly_profile`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.clock import CYCLE, DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.limits.numbers import check_memory

Floats = NDArray[np.float64]

#: Times below this hardly differ, s: users do not plan to the second, and logs have pauses of 0 s.
RESOLUTION = 60.0

#: Hours of a week, the bins of a weekly profile.
WEEK_HOURS = WEEK // HOUR

#: Widths of time bins, s; wider ones are whole days.
BIN_WIDTHS = (1, 5, 15, 60, 300, 900, 1800, *(h * HOUR for h in (1, 2, 3, 4, 6, 8, 12, 24)))

#: Most labels on a time axis.
MOST_LABELS = 13

#: A label may be this far before the beginning, as a part of the span.
NEAR = 0.03

#: Days between labels if the trace does not give its start.
NOMINAL_STEPS = (1, 7, 14, 28, 91, 182, 364, 728, 1820)


def decades(seconds: ArrayLike) -> Floats:
    """Return log10(1 + t / :data:`RESOLUTION`) of times of at least 0 s, same shape."""
    return np.log10(1 + np.asarray(seconds, np.float64) / RESOLUTION)


def log_minutes(seconds: ArrayLike) -> Floats:
    """Return ln(1 + minutes) of times in s; negative ones count as 0."""
    found: Floats = np.log1p(np.maximum(np.asarray(seconds, float), 0) / 60)
    return found


def span_of(jobs: JobTable) -> tuple[int, int] | None:
    """Return the first submission and the last simulated event, s; None if there is none."""
    submit = jobs.submit[jobs.submit != UNKNOWN]
    if not len(submit):
        return None
    last = max(int(submit.max()), int(jobs.start.max()), int(jobs.end.max()))
    return int(submit.min()), last


def activity_lengths(user: Int64s, submit: Int64s) -> Int64s:
    """Return the time from each user's first to its last submission, s, shape (users,).

    This is the activity length of Zakay and Feitelson 2015, section VII: the jobs are given, so a
    user who is active for longer has a lower throughput. Users are by rising number; unknown
    submissions (-1) do not count, and a user who submitted nothing has 0.
    """
    numbers, place = np.unique(user, return_inverse=True)
    known = submit != UNKNOWN
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    last = np.full(len(numbers), UNKNOWN)
    np.minimum.at(first, place[known], submit[known])
    np.maximum.at(last, place[known], submit[known])
    lengths: Int64s = last - np.minimum(first, last)
    return lengths


def time_edges(first: int, last: int, bins: int) -> Int64s:
    """Return at most ``bins`` + 2 equally spaced seconds, at multiples of a round width.

    They cover the span, with one extra bin if it does not begin at a multiple.
    """
    least = (last - first) / bins
    width = next((w for w in BIN_WIDTHS if w >= least), -(-math.ceil(least) // DAY) * DAY)
    begin, end = first // width, max(-(-last // width), first // width + 1)
    return width * np.arange(begin, end + 1, dtype=np.int64)


def mean_level(begin: Int64s, end: Int64s, height: Int64s | Floats, edges: Int64s) -> Floats:
    """Return the time average of a sum of blocks in each bin, shape (bins,).

    Each block adds its height to the level from its begin to its end, s, shape (blocks,). The
    result is exact, because the integral of the level is linear between events.
    """
    if not len(begin):
        return np.zeros(len(edges) - 1)
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(np.concatenate([height, -height])[order])
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times).astype(np.float64))])
    averages: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
    return averages


def processors_in_use(jobs: JobTable, edges: Int64s) -> Floats:
    """Return the processors in use, averaged over each bin, shape (bins,).

    When a job was suspended is not in the table: it counts evenly from start to end, with the part
    of that time in which it ran.
    """
    started = jobs.start != UNKNOWN
    start, height = jobs.start[started], jobs.processors[started]
    end = np.where(jobs.end == UNKNOWN, edges[-1], jobs.end)[started]
    end = np.maximum(end, start)  # stopped while it waited for nodes to be switched on
    paused = jobs.paused[started]
    if (paused > 0).any():
        stay = np.maximum(end - start, 1)
        height = height * (np.maximum(stay - np.maximum(paused, 0), 0) / stay)
    return mean_level(start, end, height, edges)


def jobs_waiting(jobs: JobTable, edges: Int64s, weight: Int64s | None = None) -> Floats:
    """Return the jobs in the queue, averaged over each bin, shape (bins,).

    Jobs that were rejected or renounced count as never having waited. Each job has a weight, such
    as its processors; by default 1.
    """
    waits, end = jobs.waited, jobs.wait_ended
    end = np.where(end == UNKNOWN, edges[-1], end)[waits]
    weight = np.ones(len(jobs), np.int64) if weight is None else weight
    return mean_level(jobs.submit[waits], end, weight[waits], edges)


def size_steps(
    processors: int, sizes: Iterable[tuple[int, int, int]], first: int, last: int
) -> list[tuple[int, int]]:
    """Return the number of processors as steps (second, processors) from ``first`` to ``last``, s.

    ``processors`` is the initial number, all clusters together; ``sizes`` are changes of the size
    of a cluster: s, processors before, processors after.
    """
    steps = [(first, processors)]
    for at, before, after in sorted(sizes):
        if at < last:
            steps.append((max(at, first), steps[-1][1] + after - before))
    return steps


def processor_seconds(
    processors: int, sizes: Iterable[tuple[int, int, int]], first: int, last: int
) -> int:
    """Return the processor-seconds of the machine from ``first`` to ``last``."""
    steps = [*size_steps(processors, sizes, first, last), (last, 0)]
    return sum(size * (end - begin) for (begin, size), (end, _) in pairwise(steps))


def cumulative(times: Int64s, at: Int64s) -> Int64s:
    """Return how many of ``times`` are at or before each of ``at``; unknown ones do not count."""
    known = np.sort(times[times != UNKNOWN])
    return np.searchsorted(known, at, side="right").astype(np.int64)


def present_at(enters: Int64s, leaves: Int64s, at: Int64s, weight: Int64s | int = 1) -> Int64s:
    """Return the total weight of what has entered and not left at some seconds."""
    found = np.zeros(len(at), np.int64)
    weights = np.broadcast_to(weight, len(enters))
    for times, sign in ((enters, 1), (leaves, -1)):
        order = np.argsort(times)
        sums = np.concatenate(([0], np.cumsum(weights[order])))
        found += sign * sums[np.searchsorted(times[order], at, side="right")]
    return found


def exceedance(values: Int64s | Floats, points: int = 160) -> tuple[Floats, Floats] | None:
    """Return (x, share of ``values`` larger than x), x in equal ratios from 1 s to the largest.

    None when no value is above 1.
    """
    if not len(values) or values.max() <= 1:
        return None
    x: Floats = np.geomspace(1.0, float(values.max()), points)
    x[-1] = values.max()  # exact, so that no value is larger
    share: Floats = 1 - np.searchsorted(np.sort(values), x, side="right") / len(values)
    return x, share


#: Bytes for each hour of a trace while its weekly rhythm is measured.
BYTES_PER_HOUR = 75


def weekly_rates(times: Int64s, clock: Clock) -> Floats | None:
    """Return the mean submissions per h in each local hour of the week, from Monday 00:00.

    Partly covered weeks count with the hours covered. None without times.
    """
    times = times[times != UNKNOWN]
    if not len(times):
        return None
    # Hours begin by the local clock, not with the trace: a job at 8:00 is in hour 8, not 7.
    past = int(clock.second_of_week(np.zeros(1, np.int64))[0]) % HOUR
    place = (times + past) // HOUR
    first, last = int(place.min()), int(place.max())
    check_memory(
        f"{last - first + 1:,} hours from the first to the last job",
        (last - first) * BYTES_PER_HOUR,
        "correct the times in the trace",
    )
    hours = np.arange(first, last + 1) * HOUR - past
    hour_of_week = clock.second_of_week(hours) // HOUR
    seen = np.bincount(hour_of_week, minlength=WEEK_HOURS)
    submitted = np.bincount(place - place.min(), minlength=len(hours))
    counts = np.bincount(hour_of_week, weights=submitted, minlength=WEEK_HOURS)
    return np.divide(counts, seen, out=np.zeros(WEEK_HOURS), where=seen > 0)


def time_ticks(clock: Clock, first: int, last: int) -> tuple[list[int], list[str], str]:
    """Return the ticks of a time axis (s), their labels, and its name with the time zone."""
    if clock.nominal:
        step = next(
            (d for d in NOMINAL_STEPS if (last - first) / (d * DAY) < MOST_LABELS),
            NOMINAL_STEPS[-1],
        )
        day = first // DAY // step * step
        if day * DAY < first - NEAR * (last - first):
            day += step
        days = range(day, last // DAY + 1, step)
        name = "days since the origin, which counts as Monday 00:00"
        return [day * DAY for day in days], [str(day) for day in days], name
    # Both ends in the same cycle of the calendar, so that dates can be counted through.
    cycles = clock.cycles(last)
    clock = replace(clock, unix_start=clock.unix_start - cycles * CYCLE)
    begin, end = clock.local(first), clock.local(last)
    length = (last - first) / DAY
    if length < MOST_LABELS:
        marks = _days(begin, end, 1)
        form = "{0:%a} {0.day} {0:%b}"
    elif length < 7 * MOST_LABELS:
        marks = _days(begin - timedelta(days=begin.weekday()), end, 7)
        form = "{0.day} {0:%b}"
    else:
        months = next((m for m in (1, 3, 6, 12) if length / 30.4 / m < MOST_LABELS), 24)
        marks = _months(begin, end, months)
        form = "{0:%b} {1}" if months < 12 else "{1}"
    places = [(round(mark.timestamp()) - clock.unix_start, mark) for mark in marks]
    places = [(second, mark) for second, mark in places if first <= second <= last]
    year = f" {begin.year + 400 * cycles}" if "{1}" not in form else ""
    return (
        [second for second, _ in places],
        [form.format(mark, mark.year + 400 * cycles) for _, mark in places],
        f"local time{year}, {clock.zone}",
    )


def _days(begin: datetime, end: datetime, step: int) -> list[datetime]:
    day = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    return [day + timedelta(days=n) for n in range(0, (end - begin).days + step + 1, step)]


def _months(begin: datetime, end: datetime, step: int) -> list[datetime]:
    midnight = begin.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    first = begin.year * 12 + (begin.month - 1) // step * step
    return [
        midnight.replace(year=month // 12, month=month % 12 + 1)
        for month in range(first, end.year * 12 + end.month + 1, step)
    ]


#: Tolerance for the sum of a profile's shares; a larger deviation cannot be rounding.
SUM_TOLERANCE = 1e-9

#: Hours of a day.
DAY_HOURS = DAY // HOUR


def weekly_profile(submit: Int64s, clock: Clock) -> Floats:
    """Return the share of submissions in each local hour of the week, from Monday 00:00.

    Shares may be compared between runs of different lengths, unlike :func:`weekly_rates`.

    Parameters
    ----------
    submit
        s, in any order; unknown ones (-1) do not count.
    clock
        Local time.

    Returns
    -------
    array
        Shape (168,); adds up to 1, or all 0 where nothing was submitted.
    """
    known = submit[submit != UNKNOWN]
    counts = np.bincount(clock.second_of_week(known) // HOUR, minlength=WEEK_HOURS)
    return counts / max(len(known), 1)


def profile_distance(a: Floats, b: Floats) -> float:
    """Return the total variation distance of two profiles, from 0 (equal) to 1.

    It is half the sum of the absolute differences: the share of jobs that would have to move to
    other hours to turn one profile into the other.

    Parameters
    ----------
    a, b
        Shares, of the same shape; each adds up to 1.

    Raises
    ------
    QuantityError
        When a profile does not add up to 1, such as one without submissions, or the shapes differ.
    """
    if np.shape(a) != np.shape(b):
        raise QuantityError(f"profiles of shapes {np.shape(a)} and {np.shape(b)}: must be the same")
    for profile in (a, b):
        total = float(np.sum(profile))
        if abs(total - 1) > SUM_TOLERANCE:
            raise QuantityError(f"profile with a sum of {total:g}: shares must add up to 1")
    return float(np.abs(np.asarray(a) - b).sum() / 2)


def unevenness(profile: Floats) -> float:
    """Return the distance of a profile from a flat one: 0 flat, towards 1 all in one hour."""
    return profile_distance(profile, np.full(np.shape(profile), 1 / np.size(profile)))
