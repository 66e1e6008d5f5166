"""What policies without a plan of reservations share: an order, limits, and EASY's backfilling.

A pass goes through the queue in its order. A job whose user or queue is at a limit is passed over
and holds nothing. The others start while they fit; the first that does not is the *head* of the
queue, and blocks. Without backfilling that is all. With it, the head gets a reservation as in EASY,
and the jobs behind it are tried in an order of their own.

:class:`OrderedScheduler` is that pass, :class:`QueueWalk` the reasons why jobs wait in such a
queue, :data:`KEYS` and :data:`BACKFILL_MEANING` the orders that have names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, override

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.base import (
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.limits import Charges, Held
from hpcrowd.environment.stops import FOREVER


class QueueRules(NamedTuple):
    """What a policy says of its queue."""

    order: str  #: the order in words, empty for by submission
    charges: Callable[[int, int], Charges]  #: accounts of a user and queue
    #: (shadow time, spare processors) of a head, see ``schedulers.ordered.reservation``
    reserve: Callable[[int, int, int, Iterable[tuple[int, int]]], tuple[int, int]]
    #: Order in which the jobs behind the head are tried, s from now to its start; None if nobody
    #: overtakes it.
    candidates: Callable[[Sequence[WaitingJob], int], Sequence[WaitingJob]] | None


class QueueWalk:
    """One walk through a queue, for the reasons why its jobs wait.

    It is the walk of :class:`OrderedScheduler`, which explains instead of starting jobs; tests
    compare the two.

    Parameters
    ----------
    policy
        The scheduler, for its name and the maintenance that it knows of.
    rules
        What it says of its queue.
    now, queue, running, free, total
        See :meth:`~hpcrowd.environment.schedulers.base.Scheduler.reasons`, the queue in its order.
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


def slowdown(job: WaitingJob, now: int) -> float:
    """Return the expansion factor of a job if it started now: (wait + estimate) / estimate.

    An estimate below 1 s counts as 1 s in the denominator.
    """
    return (now - job.submit + job.estimate) / max(job.estimate, 1)


#: The keys by name. Ties go by submission, then by job number.
KEYS: dict[str, Callable[[WaitingJob, int], float]] = {
    "submit": lambda job, now: float(job.submit),
    "estimate": lambda job, now: float(job.estimate),
    "requested": lambda job, now: float(job.requested_time),
    "processors": lambda job, now: float(job.processors),
    "area": lambda job, now: float(job.processors * job.estimate),
    "slowdown": slowdown,
    "user": lambda job, now: float(job.user),
    "group": lambda job, now: float(job.group),
    "queue": lambda job, now: float(job.queue),
}

#: What each key is.
KEY_MEANING = {
    "submit": "when it was submitted, s",
    "estimate": "run time that the scheduler believes, s",
    "requested": "run time that the user asked for, s",
    "processors": "processors",
    "area": "processors x estimate",
    "slowdown": "expansion factor so far, (wait + estimate) / estimate; changes as time goes on",
    "user": "number of the user",
    "group": "number of the group",
    "queue": "number of the queue",
}


@dataclass(frozen=True)
class QueueOrder:
    """An order of the queue by one key.

    Attributes
    ----------
    name
        One of :data:`KEYS`.
    descending
        Whether large ones come first; ties go by submission, then job number, all the same.
    """

    name: str
    descending: bool = False

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the place of a job: the smallest is first."""
        key = KEYS[self.name](job, now)
        return -key if self.descending else key

    @property
    def words(self) -> str:
        """Return the order in words, ``by area``; empty for by submission."""
        large = ", large ones first" if self.descending else ""
        return "" if self.name == "submit" and not large else f"by {self.name}{large}"


def parse_order(text: str, what: str = "order") -> QueueOrder:
    """Return the order that ``text`` means: a key, small ones first, or -key, large ones first.

    Raises
    ------
    QuantityError
        When there is no such key.
    """
    order = QueueOrder(text.removeprefix("-"), text.startswith("-"))
    if order.name not in KEYS:
        raise QuantityError(
            f"{what} {text!r}: not known; choose {', '.join(KEYS)}, or one of them after a minus "
            "for large ones first"
        )
    return order


#: Nobody overtakes.
NO_BACKFILL = "none"

#: In which order jobs are tried for backfilling.
BACKFILL_MEANING = {
    "queue": "in the order of the queue",
    "fcfs": "by submission",
    "sjbf": "the shortest estimate first",
    "largest": "the most processors first",
    "best-fit": "what fills most of the time to the reservation first",
}


def check_backfill(text: str, *, none: bool = False) -> str:
    """Return the name of an order of backfilling, if it is one.

    Raises
    ------
    QuantityError
        When it is not.
    """
    known = [*BACKFILL_MEANING, *([NO_BACKFILL] if none else [])]
    if text not in known:
        raise QuantityError(f"backfill {text!r}: not known; choose {', '.join(known)}")
    return text


#: Compiled form of a queue in the order of a key.
KEY_PASS = "hpcrowd.environment.engine.passes.ordered:OrderedPass"


class OrderedScheduler(Scheduler):
    """A queue in an order of its own, with or without backfilling; subclass it and write ``key``.

    Attributes
    ----------
    backfill
        In which order the jobs behind the head are tried, one of
        ``schedulers.ordered.BACKFILL_MEANING``, or ``none``.
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


class KeyScheduler(OrderedScheduler):
    """A queue in the order of one of :data:`KEYS`.

    Attributes
    ----------
    queue_order
        The order.
    """

    queue_order: QueueOrder

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return self.queue_order.key(job, now)

    @property
    @override
    def order_words(self) -> str:
        return self.queue_order.words


def reservation(
    now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Return (shadow time, spare processors) of a job that needs ``processors``.

    Where they will not all be back, because part of the machine is down, the shadow time never
    comes (``hpcrowd.environment.stops.FOREVER``) and nothing is spare then.

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
