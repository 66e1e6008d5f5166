"""Schedulers in plain Python: the readable reference, and what to subclass for one's own.

A scheduler is asked once at every instant at which jobs ended or arrived, if any wait, and names
the jobs to start now. The compiled engine runs the same policies; tests hold the two against each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, override


class WaitingJob(NamedTuple):
    """A job in the queue."""

    row: int  #: row in the table of jobs
    processors: int
    requested_time: int  #: s, the user's estimate
    submit: int  #: s since the origin


class RunningJob(NamedTuple):
    """A job that runs."""

    row: int
    processors: int
    expected_end: (
        int  #: s since the origin; never before now, also when the job outruns its request
    )


class Scheduler:
    """Decides which waiting jobs start. Subclass it and write :meth:`select`."""

    #: Name for summaries.
    name = "scheduler"

    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        """Return the jobs to start now, in order.

        Parameters
        ----------
        now
            The present second.
        waiting
            The queue by submission time, then job number.
        running
            The running jobs by expected end.
        free, total
            Processors without a job, and of the whole machine.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define select()")


class FCFS(Scheduler):
    """First come, first served: nobody overtakes."""

    name = "fcfs"

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        for job in waiting:
            if job.processors > free:
                break
            free -= job.processors
            yield job


class EASY(Scheduler):
    """EASY backfilling (Lifka 1995): jobs overtake if they do not delay the head of the queue.

    The head gets a reservation at its *shadow time*, when enough processors are expected back. A
    later job starts now if it is expected to end by then, or if it fits in the processors that are
    spare beside the head at the shadow time.
    """

    name = "easy"

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        started = list(FCFS().select(now, waiting, running, free, total))
        yield from started
        queue = waiting[len(started) :]
        if not queue:
            return
        free -= sum(job.processors for job in started)
        ends = [(job.expected_end, job.processors) for job in running]
        ends += [(now + job.requested_time, job.processors) for job in started]
        shadow, spare = self.reserve(now, queue[0].processors, free, ends)
        for job in queue[1:]:
            if job.processors > free:
                continue
            if now + job.requested_time > shadow:
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
    return shadow, free - processors


#: Names of schedulers that a user may give; ``recorded`` starts each job its recorded wait after
#: its submission, capacity ignored.
SCHEDULER_NAMES = ("fcfs", "easy", "recorded")

#: The policies among them.
SCHEDULERS: dict[str, type[Scheduler]] = {"fcfs": FCFS, "easy": EASY}
