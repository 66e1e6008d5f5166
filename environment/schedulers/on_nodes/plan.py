"""A plan of reservations on nodes: which job starts when, and where, as running jobs end.

A job gets the earliest start at which nodes have room for it until it ends, next to all that is
planned. If at each second there is room, but not on the same nodes throughout, the jobs planned
from then on are placed anew, in the order of their starts; none of them starts later. So on nodes
of one core the starts are those of the pool, where only numbers count.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.machine.selection import Holding
from hpcrowd.environment.schedulers.base import Look, WaitingJob
from hpcrowd.environment.schedulers.on_nodes.room import (
    Change,
    OpenStock,
    Place,
    RoomOverTime,
)
from hpcrowd.environment.schedulers.profile import duration
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes

#: Times that a job's plan is laid out anew without success before only what is planned counts.
MOST_FAILURES = 3


class Kept(NamedTuple):
    """A reservation."""

    job: WaitingJob
    start: int  #: s since the origin
    place: Place

    def change(self, sign: int) -> Change:
        """Return the change of what is free when it is given up (1), or made (-1)."""
        return self.start, self.end, self.place.holding, sign

    @property
    def end(self) -> int:
        """When it ends, s since the origin."""
        return self.start + duration(self.job)


class NodePlan:
    """What running jobs and reservations leave on each node from now on.

    Jobs have a reservation in the order of the queue, with their starts by row; the plan ``before``
    has their places, if there is one.

    Attributes
    ----------
    lost
        Jobs whose reservations no longer hold, as running jobs outran their estimates: at the first
        second without room for a job, the last one in the queue that holds nodes then which it
        could use.
    """

    def __init__(
        self,
        nodes: Nodes,
        look: Look,
        reserved: Sequence[WaitingJob],
        starts: dict[int, int],
        before: NodePlan | None,
    ) -> None:
        self.nodes, self.now = nodes, look.now
        self.lost: list[WaitingJob] = []
        self._rank = {job.row: place for place, job in enumerate(look.waiting)}
        self._leaving = [(job.expected_end, nodes.running[job.row].holding) for job in look.running]
        self._found: dict[int, tuple[int, Place]] = {}
        self._given_up: dict[int, Kept] = {}
        old = {} if before is None else before.kept
        self.kept: dict[int, Kept] = {
            job.row: old[job.row]._replace(job=job)
            for job in reserved
            if job.row in old and starts[job.row] == old[job.row].start >= look.now
        }
        self._room = RoomOverTime(nodes.layout, nodes.stock, nodes.arrays, look.now, nodes.turns)
        leaving: list[Change] = [(end, FOREVER, held, 1) for end, held in self._leaving]
        self._room.change(leaving + [one.change(-1) for one in self.kept.values()])
        if len(self.kept) < len(reserved) or self._room.short:
            self._place_anew([(job, max(starts[job.row], look.now)) for job in reserved])

    # for schedulers

    def earliest_of(self, job: WaitingJob) -> int:
        """Return when a job could start first, s since the origin; FOREVER if never.

        It is never later than the reservation that the job has just given up.
        """
        asks = self.nodes.waiting[job.row]
        old = self._given_up.pop(job.row, None)
        if self.nodes.limited(asks):
            return FOREVER
        if old is not None and old.start == self.now and self.nodes.limited(asks, old.place):
            old = None
        found = self._earliest(job, asks, old)
        if found is None:
            return FOREVER
        self._found[job.row] = found
        return found[0]

    def shortage_of(self, job: WaitingJob) -> int:
        """Return when a job that started now would lack room first; FOREVER if it has enough."""
        asks, end = self.nodes.waiting[job.row], self.now + duration(job)
        begins = [time for time in self._room.times if time < end]
        for begin, until in zip(begins, [*begins[1:], end], strict=True):
            if self._place(asks, self.now, until) is None:
                return begin
        return FOREVER

    def occupy(self, job: WaitingJob, start: int, sign: int) -> None:
        """Keep room for a job from ``start`` (-1), as found before, or give it up (1).

        A job that is kept room from now on starts.
        """
        if sign > 0:
            self._given_up[job.row] = one = self.kept.pop(job.row)
            self._room.change([one.change(1)])
            return
        found, place = self._found.pop(job.row, (UNKNOWN, None))
        if place is None or found != start:
            found_now = self._place(self.nodes.waiting[job.row], start, start + duration(job))
            assert found_now is not None, "occupy() follows earliest_of() or shortage_of()"
            place = found_now
        one = Kept(job, start, place)
        self._room.change([one.change(-1)])
        if start > self.now:
            self.kept[job.row] = one
        else:
            self.nodes.start(job.row, place)
            self._leaving.append((one.end, place.holding))

    # starts

    def _earliest(
        self, job: WaitingJob, asks: QueuedJob, old: Kept | None
    ) -> tuple[int, Place] | None:
        """Return the first start of a job, not later than its old one, and its place."""
        lasts, failures = duration(job), 0
        until = FOREVER if old is None else old.end
        times, usable, begins = self._room.times, {}, set()
        for name in asks.partitions:
            demand = asks.demands[name]
            usable[name] = self._room.usable(demand, until)
            begins.update(self._room.starts(demand, usable[name], lasts))
        for step in sorted(begins):
            begin = times[step]
            if old is not None and begin >= old.start:
                break
            end = begin + lasts
            place = self._place(asks, begin, end, usable)
            if place is None and failures < MOST_FAILURES:
                place = self._shuffle(job, begin)
                failures += place is None
            if place is None:
                continue
            if begin == self.now and self.nodes.limited(asks, place):
                if not self.nodes.running:
                    return None  # no end of a job will change that
                continue
            return begin, place
        return None if old is None else (old.start, old.place)

    def _place(
        self,
        asks: QueuedJob,
        begin: int,
        end: int,
        usable: dict[str, Int64s] | None = None,
    ) -> Place | None:
        """Return where a job could run from one second to another.

        The cores that it could use in each step, by partition, give a quick answer.
        """
        first, last = self._room.steps(begin, end)
        names = set(asks.partitions)
        if usable is not None:
            for name, cores in usable.items():
                demand, least = asks.demands[name], cores[first:last].min(axis=0)
                if (least > 0).sum() < demand.least_nodes or least.sum() < demand.cores:
                    names.discard(name)
        if not names:
            return None
        return self.nodes.room(asks, self._room.stock(first, last), begin, end - begin)

    # placing anew

    def _shuffle(self, job: WaitingJob, begin: int) -> Place | None:
        """Return a place for a job from ``begin`` on, for which later starts are placed anew.

        None if one of them would have no room at its start; then nothing has changed.
        """
        later = [one for one in self.kept.values() if one.start >= begin]
        if not later:
            return None
        step = self._room.steps(begin, begin + 1)
        stock = self._room.stock(*step)
        ends = [one for one in self._leaving if one[0] > begin]
        for one in self.kept.values():
            if one.start == begin:
                stock.give(one.place.holding)
            elif one.start < begin < one.end:
                ends.append((one.end, one.place.holding))
        queue = [(job, begin), *((one.job, one.start) for one in later)]
        placed, lost = self._in_turn(stock, ends, queue, patient=False)
        if lost:
            return None
        place = placed.pop(job.row).place
        self._adopt(placed)
        return place

    def _place_anew(self, queue: list[tuple[WaitingJob, int]]) -> None:
        """Place all reservations anew, in the order of their starts; some may be lost."""
        placed, self.lost = self._in_turn(
            self.nodes.stock.copy(), self._leaving, queue, patient=True
        )
        self._adopt(placed)
        gone = [self.kept.pop(job.row) for job in self.lost if job.row in self.kept]
        self._room.change([one.change(1) for one in gone])

    def _adopt(self, placed: dict[int, Kept]) -> None:
        """Let reservations move."""
        moved = [one for one in placed.values() if self.kept.get(one.job.row) != one]
        before = [self.kept[one.job.row] for one in moved if one.job.row in self.kept]
        self._room.change([one.change(1) for one in before] + [one.change(-1) for one in moved])
        self.kept |= placed

    def _in_turn(
        self,
        stock: OpenStock,
        ends: Sequence[tuple[int, Holding]],
        queue: Sequence[tuple[WaitingJob, int]],
        *,
        patient: bool,
    ) -> tuple[dict[int, Kept], list[WaitingJob]]:
        """Place jobs in the order of their starts, each where it was if it can.

        Returns the reservations by row, and the jobs that have none. The stock is what is free at
        the first of the starts, and ``ends`` says when what is in use becomes free. When a job has
        no room, ``patient`` is to go on without the last job in its way, else that ends it.
        """
        nodes, rank = self.nodes, self._rank
        leaving = [(end, place, held) for place, (end, held) in enumerate(ends)]
        heapq.heapify(leaving)
        queue = sorted(queue, key=lambda one: (one[1], rank[one[0].row]))
        placed: dict[int, Kept] = {}
        lost: dict[int, WaitingJob] = {}
        for number, (job, start) in enumerate(queue):
            while leaving and leaving[0][0] <= start:
                stock.give(heapq.heappop(leaving)[2])
            asks, old = nodes.waiting[job.row], self.kept.get(job.row)
            while job.row not in lost:
                if old is not None and old.start == start and stock.holds(old.place.holding):
                    place: Place | None = old.place
                else:
                    place = nodes.room(asks, stock, start, duration(job))
                if place is not None:
                    placed[job.row] = one = Kept(job, start, place)
                    stock.take(place.holding)
                    heapq.heappush(leaving, (one.end, len(ends) + number, place.holding))
                    break
                if not patient:
                    return placed, [job]
                usable = nodes.usable(asks)
                active = [one for one in placed.values()
                          if one.end > start and one.place.nodes & usable]  # fmt: skip
                rivals = [one.job for one in active] + [
                    other
                    for other, begin in queue[number:]
                    if begin == start and other.row not in lost
                    and nodes.usable(nodes.waiting[other.row]) & usable
                ]  # fmt: skip
                last = max(rivals, key=lambda one: rank[one.row])
                lost[last.row] = last
                if last.row in placed:
                    gone = placed.pop(last.row)
                    stock.give(gone.place.holding)
                    leaving = [one for one in leaving if one[2] is not gone.place.holding]
                    heapq.heapify(leaving)
        return placed, list(lost.values())
