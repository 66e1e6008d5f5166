"""Conservative and selective backfilling, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.environment.engine.kernel import gains as G
from hpcrowd.environment.engine.kernel import plan as K
from hpcrowd.environment.engine.kernel import profile as P
from hpcrowd.environment.engine.kernel.arrays import wider, with_room
from hpcrowd.environment.engine.kernel.cluster import NEVER, Cluster
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.schedulers.policies.conservative import PlanningScheduler


#: Places that arrays have at first.
FIRST_ROOM = 256


class PlannedPass(CompiledPass):
    """Conservative backfilling: every job has a reservation."""

    drains = True
    looks_at_all = True

    def __init__(self, scheduler: PlanningScheduler, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        profile = P.Profile(
            np.zeros((0, P.NODE_COLUMNS), np.int64), np.zeros((P.BLOCK_ROWS, 0), np.int64),
            np.zeros(0, np.int64),
        )  # fmt: skip
        spans = G.SPANS, G.CLASSES
        gains = G.Gains(
            np.zeros((G.HOLE_ROWS, G.GAINS + G.TOGETHER), np.int64),
            np.zeros((2, 1 + 3 * G.MEMORY), np.int64), np.full(G.SPANS, -FOREVER, np.int64),
            np.full(spans, FOREVER, np.int64), np.zeros((1 + G.SPANS, G.CLASSES), np.int64),
            np.zeros((2, 0), np.int64),
        )  # fmt: skip
        self.plan = K.Plan(
            profile, gains, np.zeros((K.QUEUE_ROWS, FIRST_ROOM), np.int64),
            Heap(np.zeros((2, FIRST_ROOM), np.int64)),
            np.full((K.RUNNING_ROWS, FIRST_ROOM), NEVER, np.int64),
        )  # fmt: skip
        self.rules = self._rules()
        self._begin(engine.running)

    def _begin(self, running: Int64s) -> None:
        """Draw the plan of a machine on which these jobs run already."""
        engine, state = self.engine, self.engine.state
        self._make_room(0)
        profile = self.plan.profile
        P.clear(profile, state.now, state.free + int(engine.jobs.processors[running].sum()))
        K.take_over_running(engine.arrays(), self.plan, running)
        now = state.now
        for start, end in engine.windows:
            if end > now:  # one that ends now is there until this second's changes
                P.occupy(profile, max(start, now), end, engine.up)

    @override
    def tell(self) -> None:
        rows, starts = self.waiting, self.plan.planned[: self.plan.count]
        has = starts != NEVER
        self.scheduler.starts = dict(zip(rows[has].tolist(), starts[has].tolist(), strict=True))

    @property
    @override
    def waiting(self) -> Int64s:
        return self.plan.job[: self.plan.count].copy()

    @property
    def moves(self) -> int:
        """How many times a job was given a place in the plan."""
        return self.plan.moves

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        self._make_room(0)
        stop: int = K.advance_planned(cluster, remaining, halt, self.plan, self.rules)
        return stop

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays()
        wake: int = K.planned_pass(arrays, self.plan, self.rules, ended, arrived)
        return wake

    def _rules(self) -> K.Rules:
        """Return the rules for reservations."""
        none = np.zeros(0)
        return K.Rules(True, False, np.zeros(0, np.int64), 1, none, np.zeros(0, np.int64), none)

    def _make_room(self, arrived: int) -> None:
        """Give room to the arrays for whatever this pass may put into them."""
        plan = self.plan
        waiting = plan.count + arrived
        jobs = self.engine.state.running + waiting
        if waiting > plan.queue.shape[1]:
            plan.queue = wider(plan.queue, 2 * waiting)
        if plan.dues + jobs > plan.due.table.shape[1]:
            plan.due.table = wider(plan.due.table, 2 * (plan.dues + jobs))
        table = len(self.engine.jobs)
        if table > plan.believed.shape[1]:
            plan.believed = wider(plan.believed, 2 * table, NEVER)
        if 2 * waiting > plan.profile.unused or not len(plan.profile.nodes):
            self._add_nodes(K.OTHER_NODES + jobs + 4 * waiting + 2 * len(self.engine.windows))

    def _add_nodes(self, more: int) -> None:
        """Give room for so many more nodes."""
        profile, gains = self.plan.profile, self.plan.gains
        old, known = len(profile.nodes), profile.blocks.shape[1]
        nodes = max(2 * old, old + more, FIRST_ROOM)
        blocks = K.blocks_for(nodes)
        added = np.zeros((nodes - old, P.NODE_COLUMNS), np.int64)
        profile.nodes = np.concatenate([profile.nodes, added])
        profile.blocks = with_room(profile.blocks, blocks)
        profile.order[known:blocks] = np.arange(known, blocks)
        profile.spare, gains.stack = with_room(profile.spare, nodes), with_room(gains.stack, nodes)
        unused = profile.unused
        np.asarray(profile.spare)[unused : unused + nodes - old] = np.arange(old, nodes)
        profile.unused += nodes - old


class SelectivePass(PlannedPass):
    """Selective backfilling: jobs that have waited long enough get a reservation."""

    @override
    def _rules(self) -> K.Rules:
        policy = self.scheduler
        kinds = len(policy.cuts) + 1
        return K.Rules(
            False, policy.fixed is None, np.array(policy.cuts, np.int64), policy.bound,
            np.zeros(kinds), np.zeros(kinds, np.int64), np.full(kinds, policy.fixed or 1.0),
        )  # fmt: skip

    @override
    def inherit(self, before: SelectivePass, ended: Int64s) -> None:
        rules, old = self.rules, before.rules
        rules.slowdowns, rules.counts, rules.thresholds = old.slowdowns, old.counts, old.thresholds
        self._count(ended)

    @override
    def remember(self, ended: Int64s) -> None:
        self._count(ended)

    @override
    def tell(self) -> None:
        super().tell()
        rules = self.rules
        self.scheduler.hear(np.asarray(rules.slowdowns).tolist(), np.asarray(rules.counts).tolist())

    def _count(self, ended: Int64s) -> None:
        """Count the slowdowns of jobs that ended, if thresholds depend on them."""
        if self.rules.adaptive:
            K.count_slowdowns(self.engine.arrays().jobs, self.rules, ended)
