"""What policies without a plan of reservations share: an order, limits, and EASY's backfilling.

A pass goes through the queue in its order. A job whose user or queue is at a limit is passed over
and holds nothing. The others start while they fit; the first that does not is the *head* of the
queue, and blocks. Without backfilling that is all. With it, the head gets a reservation as in EASY,
and the jobs behind it are tried in an order of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import override

from environment.schedulers.base import RunningJob, Scheduler, WaitingJob
from environment.schedulers.limits import Charges, Held
from environment.schedulers.ordered_reasons import QueueRules, QueueWalk
from environment.schedulers.orders import NO_BACKFILL
from environment.schedulers.reasons import WaitingReason
from environment.stops import FOREVER


class OrderedScheduler(Scheduler):
    """A queue in an order of its own, with or without backfilling; subclass it and write ``key``.

    Attributes
    ----------
    backfill
        In which order the jobs behind the head are tried, one of
        ``environment.schedulers.orders.BACKFILL_MEANING``, or ``none``.
    """

    backfill: str = NO_BACKFILL
    drains = True

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the place of a job in the queue: the smallest is first.

        Ties go by submission, then by job number.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define key()")

    def charges(self, user: int, queue: int) -> Charges:
        """Return what a job of this user and queue counts for: accounts and their limits."""
        return ()

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        held = Held(self.charges, running)
        ends = [(job.expected_end, job.processors) for job in running]
        queue = iter(sorted(waiting, key=lambda job: self.key(job, now)))
        for job in queue:
            if not held.allows(job):
                continue
            if job.processors > free or now + job.estimate > self.closes:
                break
            free -= job.processors
            held.add(job)
            ends.append((now + job.estimate, job.processors))
            yield job
        else:
            return
        if self.backfill == NO_BACKFILL:
            return
        held.add(job)  # who overtakes the head shall not use up its limits either
        shadow, spare = self.reserve(now, job.processors, free, ends)
        if shadow > self.closes - job.estimate:
            shadow, spare = self.reopens, 0  # everybody else ends before the window
        yield from self._backfill(now, list(queue), held, free, shadow, spare)

    @property
    def order_words(self) -> str:
        """The order of the queue in words, such as ``by area``; empty for by submission."""
        return f"by {self.name}"

    @override
    def reasons(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingReason]:
        queue = sorted(waiting, key=lambda job: self.key(job, now))
        overtaken = None if self.backfill == NO_BACKFILL else self._candidates
        rules = QueueRules(self.order_words, self.charges, self.reserve, overtaken)
        return QueueWalk(self, rules, now, queue, running, free, total).reasons()

    def reserve(
        self, now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
    ) -> tuple[int, int]:
        """Return the shadow time of the head and the spare processors, see :func:`reservation`."""
        return reservation(now, processors, free, ends)

    def _backfill(
        self,
        now: int,
        later: Sequence[WaitingJob],
        held: Held,
        free: int,
        shadow: int,
        spare: int,
    ) -> Iterator[WaitingJob]:
        for job in self._candidates(later, shadow - now):
            if job.processors > free or now + job.estimate > self.closes:
                continue
            if not held.allows(job):
                continue
            if now + job.estimate > shadow:
                if job.processors > spare:
                    continue
                spare -= job.processors
            free -= job.processors
            held.add(job)
            yield job

    def _candidates(self, later: Sequence[WaitingJob], hole: int) -> Sequence[WaitingJob]:
        """Return the jobs behind the head in the order of backfilling; ``hole`` s to its start."""
        if self.backfill == "queue":
            return later
        by_submission = sorted(later, key=lambda job: (job.submit, job.row))
        if self.backfill == "fcfs":
            return by_submission
        if self.backfill == "sjbf":
            return sorted(by_submission, key=lambda job: job.estimate)
        if self.backfill == "largest":
            return sorted(by_submission, key=lambda job: -job.processors)
        return sorted(by_submission, key=lambda job: -job.processors * min(job.estimate, hole))


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
