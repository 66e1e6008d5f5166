"""Natural experiments: what happened to a machine and its users in the course of a log.

=========== ======================================================================================
kind        what it is
=========== ======================================================================================
outage      jobs wait, but for hours nothing starts, and in the end nothing runs
holiday     on some days in a row users submit far less than on the same days of the weeks around
capacity    the most processors in use on a day change for good
load        the work submitted a day changes for good, at least by half
waits       waits change for good, at least to double or half
queue       a queue of some weight is used for the first time, or the last time
=========== ======================================================================================

Only the jobs are looked at; :func:`header_notes` says what the header of the log adds. Changes for
good are found by :mod:`ruptures` (PELT: Killick, Fearnhead and Eckley, Journal of the American
Statistical Association 107, 2012), on daily values between which a week makes no difference, and
kept if the four weeks before and after differ beyond chance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from hpcrowd.analysis.curves import Floats, present_at
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError, missing
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace

#: Hours without a start that are an outage, at least, and their largest probability by chance.
OUTAGE_HOURS, OUTAGE_CHANCE = 4, 1e-6

#: Share of the usual use, at most, to which it falls in an outage.
OUTAGE_USE = 0.05

#: Weeks before and after a day that it is compared with.
AROUND = 4

#: Share of the usual submissions, at most, on a holiday, and the fewest such days in a row.
HOLIDAY_SHARE, HOLIDAY_DAYS = 0.35, 2

#: Days before and after a change for good that are compared, and the largest p value.
BESIDE, CHANCE = 28, 1e-3

#: Factors between the days before and after, at least.
FACTORS = {"capacity": 1.15, "load": 1.5, "waits": 2.0}

#: Share of the jobs in the days after the first use of a queue, or before its last, at least, and
#: their least number.
QUEUE_SHARE, QUEUE_JOBS = 0.05, 20

#: Keys of a header that may say what happened to a machine.
KEYS = ("Note", "Information", "StartTime", "EndTime")

#: Numbers of jobs that a cleaning filter of the Parallel Workloads Archive removed.
FILTER = re.compile(r"job>=(\d+) and job<=(\d+)")

#: Penalty of a further change, in units of the logarithm of the number of days.
PENALTY = 3.0


@dataclass(frozen=True)
class Event:
    """Something that happened to a machine or its users."""

    kind: str  #: One of the kinds of the module.
    #: s; a change for good has the same second twice.
    begin: int
    end: int
    #: The quantity that changed, before and after the begin: starts an hour, submissions a day,
    #: processors, processor-days a day, the median wait in s, or jobs a day of a queue.
    before: float
    after: float
    chance: float  #: Probability of as much by chance.
    what: str = ""  #: Which queue.

    @property
    def lasting(self) -> bool:
        """Whether it is a change for good."""
        return self.begin == self.end

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, fit for JSON."""
        return {
            "kind": self.kind,
            "begin_s": self.begin,
            "end_s": self.end,
            "before": self.before,
            "after": self.after,
            "chance": self.chance,
            **({"what": self.what} if self.what else {}),
        }


def find_events(jobs: JobTable, clock: Clock) -> list[Event]:
    """Return what happened in the course of a log with recorded waits, in the order of time.

    A QuantityError is raised if the log lasts less than eight weeks, or ruptures is not installed.
    """
    span = int(jobs.recorded_submit.max() - jobs.recorded_submit.min())
    if span < 2 * AROUND * 7 * DAY:
        raise QuantityError(
            f"events: the log lasts {span / DAY:.0f} days; {2 * AROUND * 7} are needed to see "
            "what is usual"
        )
    found = [*_outages(jobs), *_holidays(jobs, clock), *_changes(jobs, clock), *_queues(jobs)]
    return sorted(found, key=lambda event: (event.begin, event.kind))


def _outages(jobs: JobTable) -> list[Event]:
    origin = int(jobs.recorded_submit.min())
    hours = int(jobs.recorded_submit.max() - origin) // HOUR + 1
    grid = origin + HOUR * np.arange(hours + 1)
    starts = np.histogram(jobs.recorded_start, grid)[0]
    queue = present_at(jobs.recorded_submit, jobs.recorded_start, grid[:-1])
    use = present_at(jobs.recorded_start, jobs.recorded_end, grid, jobs.processors)[1:]
    window = AROUND * 7 * 24
    usual = _around(starts.astype(float), window)
    usual_use = _around(use.astype(float), window)
    found = []
    for low, high in _runs((starts == 0) & (queue > 0)):
        lasts = high - low
        chance = float(np.exp(-usual[low] * lasts))
        falls = use[low:high].min() <= OUTAGE_USE * usual_use[low]
        if lasts >= OUTAGE_HOURS and chance < OUTAGE_CHANCE and falls:
            begin, end = int(grid[low]), int(grid[high])
            found.append(Event("outage", begin, end, float(usual[low]), 0.0, chance))
    return found


def _runs(quiet: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where each quiet stretch begins and ends."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], quiet.astype(int), [0]])))
    return [(low, high) for low, high in edges.reshape(-1, 2).tolist()]


def _holidays(jobs: JobTable, clock: Clock) -> list[Event]:
    days, counts = _daily(jobs, clock, np.ones(len(jobs)), of_users=True)
    found: list[Event] = []
    usual = np.array(
        [
            np.median([counts[k] for week in range(-AROUND, AROUND + 1)
                       if week and 0 <= (k := day + 7 * week) < len(counts)] or [0])
            for day in range(len(counts))
        ]
    )  # fmt: skip
    for low, high in _runs(counts < HOLIDAY_SHARE * usual):
        chance = float(np.exp(-(usual[low:high] - counts[low:high]).sum()))
        if high - low >= HOLIDAY_DAYS and chance < CHANCE:
            begin, end = (clock.second_at(int(days[low]) * DAY),
                          clock.second_at(int(days[high - 1] + 1) * DAY))  # fmt: skip
            found.append(Event("holiday", begin, end, float(usual[low:high].mean()),
                               float(counts[low:high].mean()), chance))  # fmt: skip
    return found


def _changes(jobs: JobTable, clock: Clock) -> list[Event]:
    try:
        import ruptures
    except ImportError:
        raise QuantityError(f"events: {missing('ruptures')}") from None
    days, work = _daily(jobs, clock, jobs.processors * jobs.run_time / DAY)
    _, waits = _daily(
        jobs, clock, np.maximum(jobs.recorded_start - jobs.recorded_submit, 0).astype(float),
        median=True,
    )  # fmt: skip
    origin = clock.second_at(int(days[0]) * DAY)
    grid = origin + HOUR * np.arange(24 * len(days) + 1)
    use = present_at(jobs.recorded_start, jobs.recorded_end, grid, jobs.processors)[1:]
    peak = use.reshape(-1, 24).max(axis=1)
    found = []
    for kind, values, floor in (
        ("capacity", peak, 1.0),
        ("load", work, 1.0),
        ("waits", waits, 60.0),
    ):
        series = np.log(np.maximum(values, 0) + floor)
        weekly = _around(series, 7)
        spread = 1.4826 * float(np.median(np.abs(np.diff(series)))) / np.sqrt(2) or 1.0
        cuts = (
            ruptures.KernelCPD(kernel="linear", min_size=14)
            .fit(weekly / spread)
            .predict(pen=PENALTY * 7 * np.log(len(series)))
        )
        for cut in cuts[:-1]:
            before, after = values[max(cut - BESIDE, 0) : cut], values[cut : cut + BESIDE]
            if min(len(before), len(after)) < BESIDE // 2:
                continue
            chance = float(mannwhitneyu(before, after).pvalue)
            old, new = (float(np.median(part)) for part in (before, after))
            factor = (new + floor) / (old + floor)
            if chance < CHANCE and max(factor, 1 / factor) >= FACTORS[kind]:
                at = clock.second_at(int(days[cut]) * DAY)
                found.append(Event(kind, at, at, old, new, chance))
    return found


def _queues(jobs: JobTable) -> list[Event]:
    """Return the first and last uses of queues, in the middle of a log."""
    submit, queue = jobs.recorded_submit, jobs.queue
    low, high = int(submit.min()), int(submit.max())
    found = []
    for number in np.unique(queue[queue != UNKNOWN]).tolist():
        mine = submit[queue == number]
        for at, begin, appears in (
            (int(mine.min()), int(mine.min()), True),
            (int(mine.max()) + 1, int(mine.max()) + 1 - BESIDE * DAY, False),
        ):
            if not low + BESIDE * DAY <= at <= high - BESIDE * DAY:
                continue
            end = begin + BESIDE * DAY
            count = int(((mine >= begin) & (mine < end)).sum())
            total = int(((submit >= begin) & (submit < end)).sum())
            if count >= max(QUEUE_JOBS, QUEUE_SHARE * total):
                rates = (0.0, count / BESIDE) if appears else (count / BESIDE, 0.0)
                found.append(Event("queue", at, at, *rates, 0.5**count, f"queue {number}"))
    return found


def header_notes(trace: Trace, clock: Clock) -> list[str]:
    """Return what the header of a log says about its time, one line each.

    These are its begin and end, its notes, and when the jobs were submitted that a cleaning filter
    of the Parallel Workloads Archive removed: by the numbers of the jobs around them.
    """
    found = []
    for key, value in trace.header.entries():
        if key not in KEYS:
            continue
        for line in value.splitlines():
            if "://" in line:
                continue
            dates = ""
            if numbers := FILTER.search(line):
                low, high = (int(number) for number in numbers.groups())
                around = np.searchsorted(trace["number"], [low, high])
                begin, end = (
                    clock.local(int(trace["submit"][min(place, len(trace) - 1)]))
                    for place in around
                )
                dates = f": {begin:%Y-%m-%d} to {end:%Y-%m-%d}"
            found.append(f"{key}: {' '.join(line.split())}{dates}")
    return found


def _daily(
    jobs: JobTable, clock: Clock, values: Floats, *, median: bool = False, of_users: bool = False
) -> tuple[Int64s, Floats]:
    """Return the local days of a log, and the sum or median of values of what was submitted then.

    With ``of_users`` the days' numbers of users who submitted.
    """
    day = clock.walls(jobs.recorded_submit) // DAY
    days = np.arange(int(day.min()), int(day.max()) + 1)
    place = day - days[0]
    if of_users:
        user = np.unique(jobs.user, return_inverse=True)[1]
        pairs = np.unique(place * (int(user.max()) + 1) + user) // (int(user.max()) + 1)
        return days, np.bincount(pairs, minlength=len(days)).astype(float)
    if not median:
        return days, np.bincount(place, values, minlength=len(days))
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], np.arange(len(days) + 1))
    medians = [
        float(np.median(values[order[low:high]])) if high > low else np.nan
        for low, high in pairwise(first.tolist())
    ]
    return days, _filled(np.array(medians))


def _filled(values: Floats) -> Floats:
    """Return values where gaps are filled by interpolation."""
    known = np.isfinite(values)
    return np.interp(np.arange(len(values)), np.flatnonzero(known), values[known])


def _around(values: Floats, window: int) -> Floats:
    """Return the mean of the values in a window around each, shorter at the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    low, high = np.maximum(place - window // 2, 0), np.minimum(place + window // 2 + 1, len(values))
    found: Floats = (sums[high] - sums[low]) / (high - low)
    return found
