"""Common base of policies without a plan of reservations: order, limits, and EASY's backfilling.

A pass goes through the queue in its order. A job whose user or queue is at a limit is passed over
and holds nothing. The others start while they fit; the first that does not fit is the *head* of the
queue, and blocks. With backfilling, the head gets a reservation as in EASY, and the jobs behind it
are tried in a separate order. Or a plan is made in which several, or all, hold reservations.

:class:`OrderedScheduler` is that pass, which also explains why the other jobs wait;
:data:`KEYS` and :data:`BACKFILL_MEANING` are the named orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, override

from hpcrowd.environment.errors import QuantityError, check_choice, not_one_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.base import (
    Look,
    Plan,
    ReasonCode,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.held import Charges, Held
from hpcrowd.environment.schedulers.profile import Profile
from hpcrowd.environment.stops import FOREVER


def slowdown(job: WaitingJob, now: int) -> float:
    """Return the expansion factor of a job if it started now: (wait + estimate) / estimate.

    An estimate below 1 s counts as 1 s in the denominator.
    """
    return (now - job.submit + job.estimate) / max(job.estimate, 1)


class Key(NamedTuple):
    """A key to order a queue by."""

    meaning: str
    of: Callable[[WaitingJob, int], float]  #: of a job at a second


#: The keys by name. Ties go by submission, then by job number.
KEYS = {
    "submit": Key("when it was submitted, s", lambda job, now: job.submit),
    "estimate": Key("run time that the scheduler expects, s", lambda job, now: job.estimate),
    "requested": Key("run time that the user requested, s", lambda job, now: job.requested_time),
    "processors": Key("processors", lambda job, now: job.processors),
    "area": Key("processors x estimate", lambda job, now: job.processors * job.estimate),
    "slowdown": Key(
        "expansion factor so far, (wait + estimate) / estimate; changes with time", slowdown
    ),
    "user": Key("number of the user", lambda job, now: job.user),
    "group": Key("number of the group", lambda job, now: job.group),
    "queue": Key("number of the queue", lambda job, now: job.queue),
}


@dataclass(frozen=True)
class QueueOrder:
    """An order of the queue by one key.

    Attributes
    ----------
    name
        One of :data:`KEYS`.
    descending
        Whether large ones come first; ties still go by submission, then job number.
    """

    name: str
    descending: bool = False

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the place of a job: the smallest is first."""
        key = KEYS[self.name].of(job, now)
        return -key if self.descending else key

    @property
    def words(self) -> str:
        """Return the order in words, ``by area``; empty if by submission."""
        large = ", large ones first" if self.descending else ""
        return "" if self.name == "submit" and not large else f"by {self.name}{large}"


def parse_order(text: str, what: str = "order") -> QueueOrder:
    """Parse an order: a key, small ones first, or -key, large ones first.

    Raises
    ------
    QuantityError
        When there is no such key.
    """
    order = QueueOrder(text.removeprefix("-"), text.startswith("-"))
    if order.name not in KEYS:
        raise QuantityError(
            f"{what} {text!r}: {not_one_of(text, KEYS)}, or one of them with a minus for large "
            "ones first"
        )
    return order


#: No backfilling.
NO_BACKFILL = "none"

#: The backfilling that plans all waiting jobs, in the order of the queue, anew at each pass.
CONSERVATIVE = "conservative"

#: Orders in which jobs are tried for backfilling.
BACKFILL_MEANING = {
    "queue": "in the order of the queue",
    "fcfs": "by submission",
    "sjbf": "the shortest estimate first",
    "largest": "the most processors first",
    "best-fit": "what fills most of the time to the reservation first",
}


def check_backfill(text: str, *, none: bool = False) -> None:
    """Check that a text is the name of an order of backfilling.

    Raises
    ------
    QuantityError
        When it is not.
    """
    known = [*BACKFILL_MEANING, *([NO_BACKFILL] if none else [])]
    check_choice("backfill", text, known)


#: Compiled form of a queue in the order of a key.
KEY_PASS = "hpcrowd.environment.engine.passes.ordered:OrderedPass"


class OrderedScheduler(Scheduler):
    """A queue in a custom order, with or without backfilling; subclass it and define ``key``.

    Attributes
    ----------
    backfill
        The order in which the jobs behind the head are tried, one of
        ``schedulers.ordered.BACKFILL_MEANING``, or ``none``.
    reservations
        How many jobs hold reservations, of those that cannot start; if more than one, in a plan.
    depth
        How many jobs behind the head a pass that plans looks at; None for all.
    """

    backfill: str = NO_BACKFILL
    reservations: int = 1
    depth: int | None = None
    drains = True

    @property
    @override
    def plans(self) -> bool:  # type: ignore[override]
        return self.backfill == CONSERVATIVE or self.reservations > 1 or self.depth is not None

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the place of a job in the queue: the smallest is first.

        Ties go by submission, then by job number.
        """
        raise NotImplementedError(f"{type(self).__name__} must define key()")

    def charges(self, user: int, queue: int) -> Charges:
        """Return the accounts of a job of this user and queue, with their limits."""
        return ()

    def held_at(self, look: Look) -> Held:
        """Return what accounts hold at the start of a pass; nothing is counted without limits."""
        limited = getattr(self.charges, "__func__", None) is not OrderedScheduler.charges
        return Held(self.charges, look.running if limited else (), self.names)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        return self._walk(look)

    @property
    def order_words(self) -> str:
        """The order of the queue in words, such as ``by area``; empty for by submission."""
        return f"by {self.name}"

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        told: dict[int, WaitingReason] = {}
        free = look.free

        def note(job: WaitingJob, code: ReasonCode | None = None, **more: Any) -> None:
            found = self.reason(job, look._replace(free=free))
            if code is not None and found.code != ReasonCode.TOO_LARGE:
                found = found._replace(code=code, **more)
            told[job.row] = found

        for job in self._walk(look, note):
            note(job, ReasonCode.CAN_START, note="")
            free -= job.processors
        for place, job in enumerate(self._in_order(look), 1):
            yield told[job.row]._replace(place=place, order=self.order_words)

    def reserve(
        self, now: int, processors: int, free: int, ends: Iterable[tuple[int, int]]
    ) -> tuple[int, int]:
        """Return (shadow time, spare processors) of a job that needs ``processors``.

        If there will never be enough, because part of the machine is down, the shadow time is
        ``hpcrowd.environment.stops.FOREVER`` and nothing is spare.

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

    def _in_order(self, look: Look) -> list[WaitingJob]:
        now = look.now
        return sorted(look.waiting, key=lambda job: self.key(job, now))

    def _walk(self, look: Look, note: Callable[..., None] | None = None) -> Iterator[WaitingJob]:
        """Yield the jobs to start now, in order.

        Parameters
        ----------
        look
            See :meth:`select`.
        note
            Called with each job that does not start. If something other than processors and
            maintenance keeps it from starting, the code and the fields of its reason follow.
        """
        if self.plans:
            yield from self._plan(look, note)
            return
        if look.nodes is not None:
            yield from look.nodes.walk(self, look, note)
            return
        now, free, closes = look.now, look.free, self.closes
        held = self.held_at(look)
        begun: list[tuple[int, int]] = []
        queue = iter(self._in_order(look))
        for head in queue:
            limit = held.limit_of(head)
            if limit is not None:
                if note is not None:
                    note(head, ReasonCode.LIMIT, note=limit, reserved=UNKNOWN)
                continue
            if head.processors > free or now + head.estimate > closes:
                break
            free -= head.processors
            held.add(head)
            begun.append((now + head.estimate, head.processors))
            yield head
        else:
            return
        if self.backfill == NO_BACKFILL and note is None:
            return
        ends = [(job.expected_end, job.processors) for job in look.running]
        shadow, spare = self.reserve(now, head.processors, free, ends + begun)
        if shadow > closes - head.estimate:
            shadow, spare = self.reopens, 0  # all other jobs end before the window
        if note is not None:
            code = ReasonCode.HEAD if head.processors > free else ReasonCode.MAINTENANCE
            note(head, code, start=UNKNOWN if shadow == FOREVER else shadow)
            if self.backfill == NO_BACKFILL:
                for job in queue:
                    note(job, ReasonCode.BEHIND, note=self.name, blocker=head.row, reserved=UNKNOWN)
                return
        held.add(head)  # jobs that overtake the head must not use up its limits either
        for job in self._candidates(list(queue), shadow - now):
            if job.processors > free or now + job.estimate > closes:
                if note is not None:
                    note(job)
                continue
            limit = held.limit_of(job)
            if limit is not None:
                if note is not None:
                    held.add(head, -1)
                    without = held.limit_of(job)
                    held.add(head)
                    blocker = UNKNOWN if without else head.row
                    note(job, ReasonCode.LIMIT, note=without or limit, blocker=blocker)
                continue
            if now + job.estimate > shadow:
                if job.processors > spare:
                    if note is not None:
                        code = ReasonCode.WOULD_DELAY
                        note(job, code, note="", blocker=head.row, reserved=shadow)
                    continue
                spare -= job.processors
            free -= job.processors
            held.add(job)
            yield job

    def _plan(self, look: Look, note: Callable[..., None] | None = None) -> Iterator[WaitingJob]:
        """Yield the jobs to start now by a plan that is made anew; see :meth:`_walk`.

        In the order of the queue each job gets the earliest start, until as many as may hold
        reservations start later. The others start if they delay none of these. Limits of users and
        queues are not looked at.
        """
        now, free, queue = look.now, look.free, self._in_order(look)
        plan, kept = self._empty_plan(look), list[tuple[WaitingJob, int]]()
        most = len(queue) if self.backfill == CONSERVATIVE else self.reservations
        last = place = len(queue)  # behind what a pass looks at
        for place, job in enumerate(queue):
            if len(kept) == most or place == last:
                break
            start = plan.earliest_of(job)
            if start < FOREVER:
                plan.occupy(job, start, -1)
            if start == now:
                free -= job.processors
                yield job
                continue
            if not kept and self.depth is not None:
                last = min(place + 1 + self.depth, last)
            kept.append((job, start))
            if note is not None:
                known = {"code": ReasonCode.PLANNED, "start": start, "note": ""}
                note(job, **(known if start < FOREVER else {}))
        else:
            return
        for job in self._candidates(queue[place:last], kept[0][1] - now):
            if job.processors > free or now + job.estimate > self.closes:
                if note is not None:
                    note(job)
            elif plan.earliest_of(job) == now:
                plan.occupy(job, now, -1)
                free -= job.processors
                yield job
            elif note is not None:
                short = plan.shortage_of(job)
                for one, start in kept:
                    if start <= short < start + max(one.estimate, 1):
                        code = ReasonCode.WOULD_DELAY
                        note(job, code, note="", blocker=one.row, reserved=start)
                        break
                else:
                    note(job)
        if note is not None:
            for job in queue[last:]:
                note(job)

    def _empty_plan(self, look: Look) -> Plan:
        """Return what running jobs and maintenance leave."""
        if look.nodes is not None:
            return look.nodes.plan(look, (), {})
        profile = Profile(look.now, look.free, look.running)
        for begin, end in self.windows:
            profile.add(max(begin, look.now), end, -look.total)
        return profile

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
