"""EASY backfilling, and the reservation of the head of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from environment.schedulers.base import RunningJob, Scheduler, WaitingJob
from environment.schedulers.fcfs import FCFS
from environment.stops import FOREVER


class EASY(Scheduler):
    """EASY backfilling (Lifka 1995): jobs overtake if they do not delay the head of the queue.

    The head gets a reservation at its *shadow time*, when enough processors are expected back. A
    later job starts now if it is expected to end by then, or if it fits in the processors that are
    spare beside the head at the shadow time.
    """

    name = "easy"
    drains = True

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        heads = FCFS()
        heads.windows = self.windows
        started = list(heads.select(now, waiting, running, free, total))
        yield from started
        queue = waiting[len(started) :]
        if not queue:
            return
        free -= sum(job.processors for job in started)
        ends = [(job.expected_end, job.processors) for job in running]
        ends += [(now + job.estimate, job.processors) for job in started]
        shadow, spare = self.reserve(now, queue[0].processors, free, ends)
        if shadow > self.closes - queue[0].estimate:
            shadow, spare = self.reopens, 0  # everybody else ends before the window
        for job in queue[1:]:
            if job.processors > free or now + job.estimate > self.closes:
                continue
            if now + job.estimate > shadow:
                if job.processors > spare:
                    continue
                spare -= job.processors
            free -= job.processors
            yield job

    def reserve(
        self, now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
    ) -> tuple[int, int]:
        """Return the shadow time of the head and the spare processors, see :func:`reservation`."""
        return reservation(now, processors, free, ends)


def reservation(
    now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Return (shadow time, spare processors) of a job that needs ``processors``.

    Where they will not all be back, because part of the machine is down, the shadow time never
    comes (``environment.stops.FOREVER``) and nothing is spare then.

    Parameters
    ----------
    now, free
        The present second and the processors without a job.
    ends
        (expected end, processors) of the running jobs.
    """
    shadow = now
    for end, freed in sorted(ends):
        if free >= processors and end > shadow:
            break
        free += freed
        shadow = max(shadow, end)
    if free < processors:
        return FOREVER, 0
    return shadow, free - processors
