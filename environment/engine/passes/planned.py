"""Conservative and selective backfilling, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import plan as K
from hpcrowd.environment.engine.kernel import profile as P
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.schedulers.conservative import PlanningScheduler
    from hpcrowd.environment.schedulers.selective import Selective


#: Places that arrays have at first.
FIRST_ROOM = 256

#: Searches without success that one walk through the queue remembers.
MISSES = 8

NO_CUTS: Int64s = np.zeros(0, np.int64)


class PlannedPass(CompiledPass):
    """Conservative backfilling: every job has a reservation."""

    #: Whether a job is to have a reservation from its arrival on.
    every = True
    drains = True
    looks_at_all = True

    def __init__(self, scheduler: PlanningScheduler, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        self.cuts = NO_CUTS
        self.adaptive, self.bound = False, 1
        self._slowdowns = self._thresholds = np.zeros(0)
        self._ended = NO_CUTS
        self._m = np.zeros(K.PLACES, np.int64)
        self._m[P.GAIN_FROM] = FOREVER
        self._m[P.BLOCKS] = 1
        self._steps, self._heads = _blocks(FIRST_ROOM // P.WIDTH)
        self._queue = np.zeros((K.QUEUE_ROWS, FIRST_ROOM), np.int64)
        self._due = np.zeros((2, FIRST_ROOM), np.int64)
        self._believed = np.full(FIRST_ROOM, S.NEVER, np.int64)
        self._misses = np.zeros((3, MISSES), np.int64)
        self._begin(engine.running)

    def _begin(self, running: Int64s) -> None:
        """Draw the plan of a machine on which these jobs run already."""
        self._make_room(0)
        engine, s = self.engine, self.engine.scalars
        steps, heads = self._steps, self._heads
        steps[0, P.TIME, 0] = heads[P.SINCE, 0] = s[S.NOW]
        steps[0, P.FREE, 0] = s[S.FREE] + engine.jobs.processors[running].sum()
        heads[P.SIZE, 0] = 1
        heads[P.GAINED, 0] = -1
        profile = P.Profile(steps, heads, self._m)
        plan = K.Plan(profile, self._queue, self._due, self._believed, self._misses)
        K.take_over(S.Cluster(*engine.arrays()), plan, running)
        for start, end in engine.windows:
            P.change(profile, max(start, int(s[S.NOW])), end, -engine.up, 0)

    @override
    def tell(self) -> None:
        rows, starts = self._queue[[K.JOB, K.PLANNED], : self._m[K.COUNT]]
        has = starts != S.NEVER
        self.scheduler.starts = dict(zip(rows[has].tolist(), starts[has].tolist(), strict=True))

    @property
    @override
    def waiting(self) -> Int64s:
        return self._queue[K.JOB, : self._m[K.COUNT]].copy()

    @property
    def moves(self) -> int:
        """How many times a job was given a place in the plan."""
        return int(self._m[K.MOVES])

    @override
    def advance(self, cluster: tuple[Int64s, ...], units: tuple[Int64s, ...], halt: int) -> int:
        self._make_room(0)
        stop: int = K.advance_planned(cluster, units, halt, self._plan(), self._rules())
        return stop

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays()
        wake: int = K.planned_pass(arrays, self._plan(), self._rules(), ended, arrived)
        return wake

    def _plan(self) -> tuple[Int64s, ...]:
        """Return the fields of ``kernel.plan.Plan``, those of its profile first."""
        return (
            self._steps, self._heads, self._m, self._queue, self._due, self._believed, self._misses,
        )  # fmt: skip

    def _rules(self) -> tuple[Any, ...]:
        """Return the fields of ``kernel.plan.Rules``."""
        return (
            self.every, self.adaptive, self.cuts, self.bound, self._slowdowns, self._ended,
            self._thresholds,
        )  # fmt: skip

    def _make_room(self, arrived: int) -> None:
        """Give room to the arrays for whatever this pass may put into them."""
        s, m = self.engine.scalars, self._m
        waiting = int(m[K.COUNT]) + arrived
        jobs = int(s[S.RUNNING]) + waiting
        if waiting > self._queue.shape[1]:
            self._queue = S.wider(self._queue, 2 * waiting)
        if int(m[K.DUE]) + jobs > self._due.shape[1]:
            self._due = S.wider(self._due, 2 * (int(m[K.DUE]) + jobs))
        table = len(self.engine.jobs)
        if table > len(self._believed):
            self._believed = S.wider(self._believed, 2 * table, S.NEVER)
        blocks = K.blocks_for(jobs + int(s[S.EXPECTED_END]))
        if blocks > len(self._steps):
            steps, heads = _blocks(2 * blocks)
            old = len(self._steps)
            steps[:old], heads[:, :old] = self._steps, self._heads
            self._steps, self._heads = steps, heads


class SelectivePass(PlannedPass):
    """Selective backfilling: jobs that have waited long enough get a reservation."""

    every = False

    def __init__(self, scheduler: Selective, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        self.cuts = np.array(scheduler.cuts, np.int64)
        self.adaptive, self.bound = scheduler.fixed is None, scheduler.bound
        self._slowdowns = np.zeros(len(scheduler.cuts) + 1)
        self._ended = np.zeros(len(scheduler.cuts) + 1, np.int64)
        self._thresholds = np.full(len(self._ended), scheduler.fixed or 1.0)

    @override
    def inherit(self, before: SelectivePass, ended: Int64s) -> None:
        self._slowdowns, self._ended = before._slowdowns, before._ended
        self._thresholds = before._thresholds
        self._count(ended)

    @override
    def remember(self, ended: Int64s) -> None:
        self._count(ended)

    @override
    def tell(self) -> None:
        super().tell()
        self.scheduler.hear(self._slowdowns.tolist(), self._ended.tolist())

    def _count(self, ended: Int64s) -> None:
        """Count the slowdowns of jobs that ended, if thresholds depend on them."""
        if self.adaptive:
            K.count_slowdowns(self.engine.jobs.matrix, K.Rules(*self._rules()), ended)


def _blocks(count: int) -> tuple[Int64s, Int64s]:
    """Return unused blocks and their heads."""
    steps = np.zeros((count, 3, P.WIDTH), np.int64)
    heads = np.zeros((P.HEADS, count), np.int64)
    heads[P.BLOCK] = np.arange(count)
    return steps, heads
