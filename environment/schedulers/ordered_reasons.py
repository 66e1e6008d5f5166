"""Why jobs wait in a queue with an order, limits and EASY's backfilling.

The walk through the queue is that of :class:`environment.schedulers.ordered.OrderedScheduler`, told
instead of done; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from environment.jobs import UNKNOWN
from environment.schedulers.base import RunningJob, Scheduler, WaitingJob
from environment.schedulers.limits import Charges, Held
from environment.schedulers.reasons import ReasonCode, WaitingReason
from environment.stops import FOREVER


class QueueRules(NamedTuple):
    """What a policy says of its queue."""

    order: str  #: the order in words, empty for by submission
    charges: Callable[[int, int], Charges]  #: accounts of a user and queue
    #: (shadow time, spare processors) of a head, see ``environment.schedulers.ordered.reservation``
    reserve: Callable[[int, int, int, Iterable[tuple[int, int]]], tuple[int, int]]
    #: Order in which the jobs behind the head are tried, s from now to its start; None if nobody
    #: overtakes it.
    candidates: Callable[[Sequence[WaitingJob], int], Sequence[WaitingJob]] | None


class QueueWalk:
    """One walk through a queue.

    Parameters
    ----------
    policy
        The scheduler, for its name and the maintenance that it knows of.
    rules
        What it says of its queue.
    now, queue, running, free, total
        See :meth:`~environment.schedulers.base.Scheduler.reasons`, the queue in its order.
    """

    def __init__(
        self,
        policy: Scheduler,
        rules: QueueRules,
        now: int,
        queue: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> None:
        self.policy = policy
        self.rules = rules
        self.now = now
        self.queue = queue
        self.free = free
        self.total = total
        self.held = Held(rules.charges, running)
        self._ends = [(job.expected_end, job.processors) for job in running]

    def reasons(self) -> Iterator[WaitingReason]:
        """Yield the reasons in the order of the queue."""
        for place, job in enumerate(self.queue, 1):
            limit = self.held.limit_of(job)
            if limit is not None:
                yield self._at_limit(job, place, limit)
            elif not self._fits(job) or self._runs_into_maintenance(job):
                yield from self._from_head(place)
                return
            else:
                self._ends.append((self.now + job.estimate, job.processors))
                yield self._start(job, place)

    def _from_head(self, place: int) -> Iterator[WaitingReason]:
        """Yield the reasons of the head, and of those behind it."""
        head, later = self.queue[place - 1], self.queue[place:]
        closes = self.policy.closes
        shadow, spare = self.rules.reserve(self.now, head.processors, self.free, self._ends)
        if shadow > closes - head.estimate:
            shadow, spare = self.policy.reopens, 0
        found = self._reason(head, place)
        fits = found.code == ReasonCode.NOT_CHOSEN
        if found.code == ReasonCode.NO_ROOM or fits:
            found = found._replace(code=ReasonCode.HEAD)
        if found.code != ReasonCode.TOO_LARGE:
            found = found._replace(start=UNKNOWN if shadow == FOREVER else shadow)
        yield found
        if self.rules.candidates is None:
            for behind, job in enumerate(later, place + 1):
                yield self._behind(job, behind, head)
            return
        self.held.add(head)
        places = {job.row: behind for behind, job in enumerate(later, place + 1)}
        told: list[WaitingReason | None] = [None] * len(later)
        for job in self.rules.candidates(later, shadow - self.now):
            behind = places[job.row]
            told[behind - place - 1], spare = self._candidate(job, behind, head, shadow, spare)
        yield from filter(None, told)

    def _candidate(
        self, job: WaitingJob, place: int, head: WaitingJob, shadow: int, spare: int
    ) -> tuple[WaitingReason, int]:
        """Return why a job behind the head waits, and the spare processors left."""
        found = self._reason(job, place)
        if found.code != ReasonCode.NOT_CHOSEN:
            return found, spare
        limit = self.held.limit_of(job)
        if limit is not None:
            return self._at_limit(job, place, limit, head), spare
        if self.now + job.estimate > shadow:
            if job.processors > spare:
                found = found._replace(
                    code=ReasonCode.WOULD_DELAY, note="", blocker=head.row, reserved=shadow
                )
                return found, spare
            spare -= job.processors
        return self._start(job, place), spare

    def _fits(self, job: WaitingJob) -> bool:
        return job.processors <= self.free

    def _runs_into_maintenance(self, job: WaitingJob) -> bool:
        return self.now + job.estimate > self.policy.closes

    def _reason(self, job: WaitingJob, place: int) -> WaitingReason:
        """Return what processors and maintenance tell; NOT_CHOSEN for nothing."""
        found = self.policy.reason(job, self.now, self.free, self.total, place)
        return found._replace(order=self.rules.order) if self.rules.order else found

    def _start(self, job: WaitingJob, place: int) -> WaitingReason:
        found = self._reason(job, place)._replace(code=ReasonCode.CAN_START, note="")
        self.free -= job.processors
        self.held.add(job)
        return found

    def _behind(self, job: WaitingJob, place: int, head: WaitingJob) -> WaitingReason:
        found = self._reason(job, place)
        if found.code == ReasonCode.TOO_LARGE:
            return found
        return found._replace(
            code=ReasonCode.BEHIND, note=self.policy.name, blocker=head.row, reserved=UNKNOWN
        )

    def _at_limit(
        self, job: WaitingJob, place: int, limit: str, head: WaitingJob | None = None
    ) -> WaitingReason:
        """Return that a limit holds a job back, or would if the head ran too."""
        found = self._reason(job, place)
        if found.code == ReasonCode.TOO_LARGE:
            return found
        blocker = UNKNOWN
        if head is not None:
            self.held.add(head, -1)
            without = self.held.limit_of(job)
            self.held.add(head)
            if without is None:
                blocker = head.row
            else:
                limit = without
        return found._replace(code=ReasonCode.LIMIT, note=limit, blocker=blocker, reserved=UNKNOWN)
