"""A pass of a queue in order on nodes, with EASY's backfilling: ``OrderedScheduler._walk`` there.

The rule is that of the pool. In place of free processors there are nodes with room; in place of
*spare* processors, the head of the queue must still fit at its shadow time where a later job runs
longer. Jobs that share no node with a head that waits are a queue of their own, with a head of
their own: a job for GPUs does not keep nodes without them idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.selection import Holding
from hpcrowd.environment.schedulers.base import Look, ReasonCode, WaitingJob
from hpcrowd.environment.schedulers.on_nodes.room import OpenStock, Place
from hpcrowd.environment.schedulers.ordered import NO_BACKFILL, OrderedScheduler
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes


@dataclass(eq=False)
class Head:
    """The first job of a queue that does not fit.

    Attributes
    ----------
    nodes
        The set of nodes that it could use.
    shadow
        s; when it is expected to start; -1 before that is known.
    stock, place
        What is free at that time, and where it would run then.
    spare
        Free cores of its nodes at that time, more than it asks.
    """

    job: WaitingJob
    asks: QueuedJob
    nodes: int
    shadow: int = UNKNOWN
    stock: OpenStock | None = None
    place: Place | None = None
    spare: int = 0


class NodesPass:
    """A pass of a policy with an order; see ``OrderedScheduler._walk``."""

    def __init__(
        self,
        nodes: Nodes,
        policy: OrderedScheduler,
        look: Look,
        note: Callable[..., None] | None,
    ) -> None:
        self.nodes, self.policy, self.now, self.note = nodes, policy, look.now, note
        self.look, self.free = look, look.free
        self.held = policy.held_at(look)
        self.heads: list[Head] = []
        self.ends: list[tuple[int, Holding]] | None = None
        self.begun: list[WaitingJob] = []

    def run(self) -> Iterator[WaitingJob]:
        """Yield the jobs that start now."""
        blocked, later = 0, []
        ordered = iter(self.policy._in_order(self.look))
        everything = self.nodes.layout.all_nodes
        quick = self.note is None and self.policy.backfill == NO_BACKFILL
        for job in ordered:
            asks = self.nodes.waiting[job.row]
            usable = self.nodes.usable(asks)
            if usable & blocked:
                later.append(job)
                continue
            if self._at_limit(job, asks):
                continue
            place = self._room(job, asks)
            if place is not None:
                if not self._exceeds(job, asks, place):
                    yield self._start(job, place)
                continue
            blocked |= usable
            head = Head(job, asks, usable)
            self.heads.append(head)
            self.held.add(job)  # jobs that overtake it must not use up its limits
            if blocked == everything:
                later += [] if quick else ordered
                break
        if not self.heads or quick:
            return
        if self.note is not None or self.policy.backfill == "best-fit":
            for head in self.heads:
                self._reserve(head)
        if self.policy.backfill == NO_BACKFILL:
            for job in later:
                self._tell(job, ReasonCode.BEHIND, note=self.policy.name, blocker=self._before(job))
            return
        for job in self.policy._candidates(later, self.heads[0].shadow - self.now):
            asks = self.nodes.waiting[job.row]
            place = self._room(job, asks)
            if place is None:
                self._tell_no_room(job, asks)
            elif not (self._at_limit(job, asks) or self._exceeds(job, asks, place)):
                found = self._beside_heads(job, asks, place)
                if found is not None:
                    yield self._start(job, found)

    def _room(self, job: WaitingJob, asks: QueuedJob, without: int = 0) -> Place | None:
        if job.processors > self.free:
            return None
        return self.nodes.room(asks, self.nodes.stock, self.now, job.estimate, without)

    def _start(self, job: WaitingJob, place: Place) -> WaitingJob:
        self.nodes.start(job.row, place)
        self.free -= job.processors
        self.held.add(job)
        self.begun.append(job)
        return job

    # heads

    def _reserve(self, head: Head) -> None:
        """Find when the head of a queue can start as running jobs end."""
        running = self.nodes.running
        ends = [(job.expected_end, running[job.row].holding) for job in self.look.running]
        ends += [(self.now + job.estimate, running[job.row].holding) for job in self.begun]
        lasts = head.job.estimate
        head.shadow, head.stock, head.place = self.nodes.earliest(head.asks, lasts, ends)
        if head.place is not None:
            least = min(one.cores for one in head.asks.demands.values())
            head.spare = head.stock.free_on(head.nodes) - least
        start = UNKNOWN if head.shadow == FOREVER else head.shadow
        if head.job.processors > self.free:
            self._tell(head.job, ReasonCode.HEAD, start=start)
        else:
            word = self.nodes.why(head.asks, lasts)
            self._tell(head.job, ReasonCode.SITE, note=word, start=start)

    def _beside_heads(self, job: WaitingJob, asks: QueuedJob, place: Place) -> Place | None:
        """Return a place in which a job delays no head; None, and the reason, if there is none."""
        end = self.now + job.estimate
        for one in self.heads:
            if one.shadow < 0:
                self._reserve(one)
        longer = [one for one in self.heads if end > one.shadow and self._meets(one, asks)]
        blocker = self._delayed(longer, place)
        if blocker is not None and self._may_avoid(blocker, asks):
            apart = 0
            for one in longer:
                apart |= 0 if one.place is None else one.place.nodes
            other = self._room(job, asks, apart)
            if other is not None and not self.nodes.limited(asks, other):
                place, blocker = other, self._delayed(longer, other)
        if blocker is not None:
            self._tell(
                job, ReasonCode.WOULD_DELAY, note="", blocker=blocker.job.row,
                reserved=blocker.shadow,
            )  # fmt: skip
            return None
        for one in longer:
            if one.stock is not None:
                one.stock.take(place.holding)
                one.spare -= _cores(place.holding, one.nodes)
                if one.place is not None and one.place.nodes & place.nodes:
                    one.place = self._again(one)
        return place

    def _may_avoid(self, head: Head, asks: QueuedJob) -> bool:
        """Return whether a job may leave a head enough if it gets other nodes."""
        least = min(one.cores for one in asks.demands.values())
        return least <= head.spare or bool(self.nodes.usable(asks) & ~head.nodes)

    def _meets(self, head: Head, asks: QueuedJob) -> bool:
        return bool(head.nodes & self.nodes.usable(asks))

    def _delayed(self, heads: list[Head], place: Place) -> Head | None:
        """Return the first head that would not fit at its shadow time beside a job."""
        for one in heads:
            if one.stock is None or one.place is None or not one.place.nodes & place.nodes:
                continue
            if _cores(place.holding, one.nodes) > one.spare:
                return one
            one.stock.take(place.holding)
            fits = self._again(one)
            one.stock.give(place.holding)
            if fits is None:
                return one
        return None

    def _again(self, head: Head) -> Place | None:
        """Return where a head would run at its shadow time, as it is now."""
        assert head.stock is not None
        return self.nodes.room(head.asks, head.stock, head.shadow, head.job.estimate)

    def _before(self, job: WaitingJob) -> int:
        """Return the row of the head that a job waits behind."""
        asks = self.nodes.waiting[job.row]
        return next(one.job.row for one in self.heads if self._meets(one, asks))

    # limits, and reasons

    def _at_limit(self, job: WaitingJob, asks: QueuedJob) -> bool:
        """Return whether a limit of the policy or of the site keeps a job from starting."""
        limit = self.held.limit_of(job)
        if limit is not None:
            blocker = UNKNOWN
            if self.note is not None and self.heads:
                blocker = self._head_at_limit(job)
            self._tell(job, ReasonCode.LIMIT, note=limit, blocker=blocker, reserved=UNKNOWN)
            return True
        word = self.nodes.limited(asks)
        if word:
            self._tell(job, ReasonCode.SITE, note=word)
        return bool(word)

    def _head_at_limit(self, job: WaitingJob) -> int:
        """Return the row of a head without which the policy's limit would not keep a job."""
        for head in self.heads:
            self.held.add(head.job, -1)
            without = self.held.limit_of(job)
            self.held.add(head.job)
            if without is None:
                return head.job.row
        return UNKNOWN

    def _exceeds(self, job: WaitingJob, asks: QueuedJob, place: Place) -> bool:
        """Return whether what a job would hold is beyond a limit of the site."""
        word = self.nodes.limited(asks, place)
        if word:
            self._tell(job, ReasonCode.SITE, note=word)
        return bool(word)

    def _tell_no_room(self, job: WaitingJob, asks: QueuedJob) -> None:
        if self.note is None:
            return
        if job.processors > self.free:
            self.note(job)
        else:
            self.note(job, ReasonCode.SITE, note=self.nodes.why(asks, job.estimate))

    def _tell(self, job: WaitingJob, code: ReasonCode, **more: Any) -> None:
        if self.note is not None:
            self.note(job, code, **more)


def _cores(holding: Holding, nodes: int) -> int:
    """Return the cores that a holding has on a set of nodes."""
    return sum(share.cores for share in holding if nodes >> share.node & 1)
