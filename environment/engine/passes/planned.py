"""Conservative and selective backfilling, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.environment.engine.kernel import gains as G
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import plan as K
from hpcrowd.environment.engine.kernel import profile as P
from hpcrowd.environment.engine.kernel.arrays import Groups, wider, with_room
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.schedulers.conservative import PlanningScheduler
    from hpcrowd.environment.schedulers.selective import Selective


#: Places that arrays have at first.
FIRST_ROOM = 256

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
        self._groups = Groups()
        self._slowdowns = self._thresholds = np.zeros(0)
        self._ended = NO_CUTS
        self._m = np.zeros(K.PLACES, np.int64)
        self._m[G.GAIN_FROM] = self._m[G.LATE_FROM] = FOREVER
        self._m[G.SPANS_USED] = 1
        self._nodes = np.zeros((0, P.NODE_COLUMNS), np.int64)
        self._blocks = np.zeros((P.BLOCK_ROWS, 0), np.int64)
        self._spare = np.zeros(0, np.int64)
        self._noted = np.zeros((G.COLUMNS, G.GAINS + G.TOGETHER), np.int64)
        self._refused = np.zeros((2, 1 + 3 * G.MEMORY), np.int64)
        self._begins = np.full(G.SPANS, -FOREVER, np.int64)
        self._shortest = np.full((G.SPANS, G.CLASSES), FOREVER, np.int64)
        self._longest = np.zeros((G.SPANS, G.CLASSES), np.int64)
        self._stack = np.zeros((2, 0), np.int64)
        self._queue = np.zeros((K.QUEUE_ROWS, FIRST_ROOM), np.int64)
        self._due = np.zeros((2, FIRST_ROOM), np.int64)
        self._believed = np.full((2, FIRST_ROOM), S.NEVER, np.int64)
        self._begin(engine.running)

    def _begin(self, running: Int64s) -> None:
        """Draw the plan of a machine on which these jobs run already."""
        engine, s = self.engine, self.engine.scalars
        self._make_room(0)
        profile = self._profile()
        P.clear(profile, s[S.NOW], s[S.FREE] + engine.jobs.processors[running].sum())
        K.take_over_running(engine.arrays(), self._plan(), running)
        now = int(s[S.NOW])
        for start, end in engine.windows:
            if end > now:  # one that ends now is there until this second's changes
                P.occupy(profile, max(start, now), end, engine.up)

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
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        self._make_room(0)
        stop: int = K.advance_planned(cluster, remaining, halt, self._plan(), self._rules())
        return stop

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays()
        wake: int = K.planned_pass(arrays, self._plan(), self._rules(), ended, arrived)
        return wake

    def _plan(self) -> K.Plan:
        of = self._groups.of
        gains = of(
            G.Gains, self._noted, self._refused, self._begins, self._shortest, self._longest,
            self._stack,
        )  # fmt: skip
        return of(K.Plan, self._profile(), gains, self._queue, self._due, self._believed)

    def _profile(self) -> P.Profile:
        return self._groups.of(P.Profile, self._nodes, self._blocks, self._spare, self._m)

    def _rules(self) -> K.Rules:
        return self._groups.of(
            K.Rules, self.every, self.adaptive, self.cuts, self.bound, self._slowdowns, self._ended,
            self._thresholds,
        )  # fmt: skip

    def _make_room(self, arrived: int) -> None:
        """Give room to the arrays for whatever this pass may put into them."""
        s, m = self.engine.scalars, self._m
        waiting = int(m[K.COUNT]) + arrived
        jobs = int(s[S.RUNNING]) + waiting
        if waiting > self._queue.shape[1]:
            self._queue = wider(self._queue, 2 * waiting)
        if int(m[K.DUE]) + jobs > self._due.shape[1]:
            self._due = wider(self._due, 2 * (int(m[K.DUE]) + jobs))
        table = len(self.engine.jobs)
        if table > self._believed.shape[1]:
            self._believed = wider(self._believed, 2 * table, S.NEVER)
        if 2 * waiting > int(m[P.SPARE]) or not len(self._nodes):
            self._add_nodes(K.OTHER_NODES + jobs + 4 * waiting + 2 * len(self.engine.windows))

    def _add_nodes(self, more: int) -> None:
        """Give room for so many more nodes."""
        m, old = self._m, len(self._nodes)
        nodes = max(2 * old, old + more, FIRST_ROOM)
        blocks = K.blocks_for(nodes)
        self._nodes = np.concatenate([self._nodes, np.zeros((nodes - old, P.NODE_COLUMNS), int)])
        order = np.arange(self._blocks.shape[1], blocks)
        self._blocks = with_room(self._blocks, blocks)
        self._blocks[P.ORDER, order] = order
        self._spare = with_room(self._spare, nodes)
        self._stack = with_room(self._stack, nodes)
        spare = int(m[P.SPARE])
        self._spare[spare : spare + nodes - old] = np.arange(old, nodes)
        m[P.SPARE] += nodes - old


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
            K.count_slowdowns(self.engine.jobs.matrix, self._rules(), ended)
