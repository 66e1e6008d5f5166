"""What switches idle nodes off, without a ledger in compiled code: an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

from hpcrowd.environment.engine.idle import DelayedStart, IdleNodes, Switching
from hpcrowd.environment.jobs import JobTable


class PlainIdleNodes(IdleNodes):
    """The idle processors of a machine: the rule of ``engine/idle.py`` in the plainest form."""

    def __init__(self, rule: Switching, jobs: JobTable, processors: int, begin: int) -> None:
        super().__init__(rule, jobs, processors, begin)
        self.idle = processors
        self._starts: list[DelayedStart] = []
        self._blocks = [[begin, processors]]  # on since, and how many, by time
        self._kept = 0
        self._off: list[list[int]] = []  # when they were switched off, and processors, by time

    def give(self, now: int, count: int, ready: int | None = None) -> None:
        """Take note of processors that are without a job now, and on from ``ready`` on."""
        self._settle(now)
        ready = now if ready is None else ready
        self.idle += count
        at = len(self._blocks)
        while at and self._blocks[at - 1][0] > ready:
            at -= 1
        if at and self._blocks[at - 1][0] == ready:
            self._blocks[at - 1][1] += count
        else:
            self._blocks.insert(at, [ready, count])

    def take(self, now: int, count: int) -> int:
        """Take idle processors for a job; return how many s it waits until all of them are on."""
        self._settle(now)
        blocks = self._blocks
        self.idle -= count
        delay = 0
        on = [block for block in blocks if block[0] <= now]
        for block in reversed(on):
            part = min(count, block[1])
            block[1] -= part
            count -= part
        part = min(count, self._kept)
        self._kept -= part
        count -= part
        for block in blocks[len(on) :]:
            part = min(count, block[1])
            block[1] -= part
            count -= part
            if part:
                delay = max(delay, block[0] - now)
        self._blocks = [block for block in blocks if block[1]]
        while count:
            off_at, off = self._off[0]
            part = min(count, off)
            woken = self._whole(part)
            self._off[0][1] -= woken
            if off == woken:
                self._off.pop(0)
            count -= part
            ready = max(now, off_at + self.rule.off_time) + self.rule.on_time
            delay = max(delay, ready - now)
            if woken > part:
                self.idle -= woken - part
                self.give(now, woken - part, ready)
        return delay

    @override
    def start(self, row: int, now: int, run: int) -> int:
        count = int(self.jobs.processors[row])
        self._settle(now)
        on = self._kept + sum(block[1] for block in self._blocks if block[0] <= now)
        start = now if run == 0 and on >= count else now + self.take(now, count)
        if start > now:
            self._starts.append(DelayedStart(row, now, start))
        return start

    @override
    def balance(
        self, now: int, free: int, waiting: int, early: Sequence[DelayedStart] = ()
    ) -> None:
        for one in early:
            self.give(now, int(self.jobs.processors[one.row]), one.start)
        if free > self.idle:
            self.give(now, free - self.idle)
        elif free < self.idle:
            self.take(now, self.idle - free)

    @override
    def _noted(self) -> list[DelayedStart]:
        return list(self._starts)

    def _settle(self, now: int) -> None:
        """Switch off the nodes whose time is up."""
        while self._blocks and self._blocks[0][0] + self.rule.after <= now:
            since, count = self._blocks.pop(0)
            stay = count % self.rule.node
            lacks = self.rule.spare - self._kept - stay
            if lacks > 0:
                stay += min(count - stay, self._whole(lacks))
            self._kept += stay
            if count > stay:
                self._off.append([since + self.rule.after, count - stay])

    def _whole(self, processors: int) -> int:
        """Return processors rounded up to whole nodes."""
        return -(-processors // self.rule.node) * self.rule.node
