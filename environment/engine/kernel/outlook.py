"""When a job would start if it came now: a conservative plan of what runs and waits."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.cluster import Jobs
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.stops import FOREVER


def _step_at(times: Int64s, free: Int64s, count: int, time: int) -> tuple[int, int]:
    """Make ``time`` a step of the plan if it is none; return its place. There must be room."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and times[low] == time:
        return low, count
    for i in range(count, low, -1):
        times[i] = times[i - 1]
        free[i] = free[i - 1]
    times[low] = time
    free[low] = free[low - 1]
    return low, count + 1


def occupy(times: Int64s, free: Int64s, count: int, begin: int, end: int, processors: int) -> int:
    """Take processors from ``begin`` to ``end``; return the number of steps."""
    first, count = _step_at(times, free, count, begin)
    last = count
    if end < FOREVER:
        last, count = _step_at(times, free, count, end)
    for i in range(first, last):
        free[i] -= processors
    return count


def shortage(times: Int64s, free: Int64s, count: int, i: int, processors: int, length: int) -> int:
    """Return the first step with too few processors, within so long from step ``i`` on; or -1."""
    end = times[i] + length
    while i < count and times[i] < end:
        if free[i] < processors:
            return i
        i += 1
    return -1


def earliest(times: Int64s, free: Int64s, count: int, processors: int, length: int) -> int:
    """Return the first time from which so many processors are free for so long; FOREVER if none."""
    i = 0
    while i < count:
        short = shortage(times, free, count, i, processors, length)
        if short < 0:
            return times[i]
        i = short + 1
    return FOREVER


def expected_start(
    jobs: Jobs,
    now: int,
    up: int,
    running: Int64s,
    waiting: Int64s,
    windows: Int64Rows,
    steps: Int64Rows,
    processors: int,
    length: int,
) -> int:
    """Return when a job would start behind all that wait, FOREVER if it never would.

    Each waiting job is planned, in the order of the queue, for the earliest time at which it delays
    none before it.

    Parameters
    ----------
    jobs
        The table of jobs.
    now, up
        The present second, and the processors that are up.
    running, waiting
        Rows of the jobs that run, and of those that wait, in their order.
    windows
        Begin and end (s) of announced maintenance, shape (windows, 2).
    steps
        Room for the plan, shape (2, 2 + 2 * (jobs + windows)).
    processors, length
        Of the job, and the run time (s) that the scheduler would expect.
    """
    times, free = steps[0], steps[1]
    times[0], free[0] = now, up
    count = 1
    for job in running:
        start, lasts = jobs.start[job], jobs.estimate[job]
        end = believed_end(start, lasts, jobs.requested_time[job], now)
        count = occupy(times, free, count, now, end, jobs.processors[job])
    for i in range(len(windows)):
        if windows[i, 1] > now:
            count = occupy(times, free, count, max(now, windows[i, 0]), windows[i, 1], up)
    for job in waiting:
        need, lasts = jobs.processors[job], jobs.estimate[job]
        begin = earliest(times, free, count, need, lasts)
        if begin < FOREVER:
            count = occupy(times, free, count, begin, begin + lasts, need)
    return earliest(times, free, count, processors, length)
