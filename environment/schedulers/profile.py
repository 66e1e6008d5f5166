"""The processors that running jobs, maintenance and reservations leave free over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from hpcrowd.environment.schedulers.base import RunningJob, WaitingJob
from hpcrowd.environment.stops import FOREVER


class Profile:
    """A step function of free processors over time, from now on.

    Parameters
    ----------
    now, free
        The present second, and the processors without a job.
    running
        The running jobs, which give theirs back at their expected ends.
    """

    def __init__(self, now: int, free: int, running: Iterable[RunningJob] = ()) -> None:
        self.times = [now]
        self.free = [free]
        for job in running:
            self.add(job.expected_end, FOREVER, job.processors)

    def add(self, start: int, end: int, processors: int) -> None:
        """Add free processors from ``start`` to ``end``; a negative number takes them."""
        first, last = self._step(start), self._step(end)
        for i in range(first, last):
            self.free[i] += processors

    def earliest(self, processors: int, duration: int) -> int:
        """Return when ``processors`` are first free for ``duration`` s, FOREVER if never."""
        start = self.times[0]
        for i, free in enumerate(self.free):
            if self.times[i] >= start + duration:
                break
            if free < processors:
                start = self.times[i + 1] if i + 1 < len(self.times) else FOREVER
        return start

    def earliest_of(self, job: WaitingJob) -> int:
        """Return when a job could start first; FOREVER if never."""
        return self.earliest(job.processors, duration(job))

    def shortage_of(self, job: WaitingJob) -> int:
        """Return when, if a job started now, processors are first lacking; FOREVER if never."""
        return self.shortage(job.processors, duration(job))

    def occupy(self, job: WaitingJob, start: int, sign: int) -> None:
        """Take the processors of a job from its start on (-1), or add them (1)."""
        self.add(start, start + duration(job), sign * job.processors)

    def shortage(self, processors: int, duration: int) -> int:
        """Return when, within ``duration`` s, fewer are free first; FOREVER if there are enough."""
        for time, free in zip(self.times, self.free, strict=True):
            if time >= self.times[0] + duration:
                break
            if free < processors:
                return time
        return FOREVER

    def _step(self, time: int) -> int:
        """Return the number of the step that begins at ``time``; begin one if need be."""
        i = bisect_right(self.times, time) - 1
        if time == FOREVER:
            return len(self.times)
        if self.times[i] != time:
            i += 1
            self.times.insert(i, time)
            self.free.insert(i, self.free[i - 1])
        return i


def duration(job: WaitingJob) -> int:
    """Return the planned duration of a job, s."""
    return max(job.estimate, 1)
