"""The compiled pass of all policies without a plan of reservations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.kernel import accounts as A
from hpcrowd.environment.engine.kernel import believed as B
from hpcrowd.environment.engine.kernel import ordered as Q
from hpcrowd.environment.engine.kernel import scored as P
from hpcrowd.environment.engine.kernel.arrays import wider
from hpcrowd.environment.engine.kernel.cluster import GAP, Cluster
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.schedulers.ordered import CONSERVATIVE, OrderedScheduler
from hpcrowd.environment.schedulers.policies.fair_share import Usage
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.past import Past

#: Orders by the name of their key.
ORDERS = {
    "submit": Q.BY_SUBMIT,
    "estimate": Q.BY_ESTIMATE,
    "requested": Q.BY_REQUESTED,
    "processors": Q.BY_PROCESSORS,
    "area": Q.BY_AREA,
    "user": Q.BY_USER,
    "group": Q.BY_GROUP,
    "queue": Q.BY_QUEUE,
    "slowdown": Q.BY_SLOWDOWN,
}

#: Orders of backfilling by name.
BACKFILLS = {
    "none": Q.NONE,
    "queue": Q.AS_QUEUED,
    "fcfs": Q.AS_SUBMITTED,
    "sjbf": Q.SHORTEST,
    "largest": Q.LARGEST,
    "best-fit": Q.BEST_FIT,
    CONSERVATIVE: Q.AS_QUEUED,
}

#: Places that arrays have at first, and blocks of ends.
FIRST_ROOM, FIRST_BLOCKS = 1024, 16

#: For orders without one.
NO_FORMULA = P.Formula(np.zeros((0, 0), np.int64), np.zeros(0), np.zeros((0, 0)), np.zeros(0))


class OrderedPass(CompiledPass):
    """Orders the queue, applies limits and backfills, in compiled code.

    Running jobs and their expected ends are in one place, ``engine.kernel.believed``;
    free processors, which may be negative, in the state of the engine.

    Parameters
    ----------
    scheduler, engine
        See :class:`~hpcrowd.environment.engine.passes.base.CompiledPass`.
    """

    drains = True

    def __init__(self, scheduler: Any, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        order = self.order = Q.Order(
            np.zeros((Q.QUEUE_ROWS, FIRST_ROOM), np.int64), np.zeros(FIRST_ROOM),
            np.zeros(FIRST_ROOM, np.int64), np.zeros(0),
        )  # fmt: skip
        blocks = np.zeros((B.BLOCK_ROWS, FIRST_BLOCKS), np.int64)
        entries = np.zeros((2, FIRST_BLOCKS, B.WIDTH), np.int64)
        self.beliefs = B.Beliefs(entries, blocks, np.zeros(0, np.int64))
        self.beliefs.block[:] = np.arange(FIRST_BLOCKS)
        self.accounts = A.Accounts(
            np.zeros((A.COUNT_ROWS, 0), np.int64), np.zeros((A.AMOUNT_ROWS, 0)),
            np.zeros((A.LIMITS + 1, 0), np.int64),
        )  # fmt: skip
        order.corrects = engine.predictor is not None
        order.backfill = BACKFILLS[getattr(scheduler, "backfill", "none")]
        if scheduler.plans:
            every = scheduler.backfill == CONSERVATIVE
            order.reservations = FOREVER if every else scheduler.reservations
            order.depth = FOREVER if scheduler.depth is None else scheduler.depth
        self._steps = np.zeros((2, 0), np.int64)  # of the plan
        order.limited = isinstance(scheduler, OrderedScheduler) and (
            type(scheduler).charges is not OrderedScheduler.charges
        )
        self._set_order()
        order.column = Q.KEY_COLUMNS[order.by] if order.by < len(Q.KEY_COLUMNS) else -1
        self._numbers: dict[Hashable, int] = {}
        self._known = 0
        self._take_over(engine.running)

    def _set_order(self) -> None:
        """Set the order of the queue; by default the key of a ``KeyScheduler``."""
        order = self.scheduler.queue_order
        self.order.by, self.order.sign = ORDERS[order.name], -1 if order.descending else 1

    def _take_over(self, running: Int64s) -> None:
        """Count jobs that already run; their usage counts from now on."""
        now = self.engine.now
        self._make_room(0)
        jobs = self.engine.arrays().jobs
        B.believe_all(self.beliefs, jobs, running)
        if self.order.limited:
            for job in running.tolist():
                A.hold(self.accounts, jobs, job, 1)
        if self.order.charged:
            for job in running.tolist():
                self._charge(job, 1, now)

    def _charge(self, job: int, count: int, now: int) -> None:
        """Note the start (``count`` 1) or end (-1) of a job on its account."""
        jobs, half_life = self.engine.arrays().jobs, self.order.half_life
        A.change_usage(self.accounts, jobs, job, count, now, half_life)

    @override
    def inherit(self, before: Any, ended: Int64s) -> None:
        if not self.order.charged:
            return
        for job in ended.tolist():
            before._charge(job, -1, int(self.engine.jobs.end[job]))
        now, half_life = self.engine.now, self.order.half_life
        for holder, old in before._numbers.items():
            used = A.usage(before.accounts, old, now, half_life)
            account = self._account(holder, share=self.scheduler.share(holder))
            self.accounts.used[account] = used
            self.accounts.since[account] = now

    @override
    def go_on(self, past: Past) -> None:
        super().go_on(past)
        if not self.order.charged:
            return
        jobs, over, running = self.engine.jobs, past.over, past.running
        self.accounts.since[:] = self.accounts.held[:] = 0
        self.accounts.used[:] = 0.0
        rows = np.concatenate((over, over, running))
        times = np.concatenate((jobs.start[over], jobs.end[over], jobs.start[running]))
        counts = np.repeat([1, -1, 1], [len(over), len(over), len(running)])
        order = np.argsort(times, kind="stable")
        A.charge_past(
            self.accounts, self.engine.arrays().jobs,
            rows[order], counts[order], times[order], self.order.half_life,
        )  # fmt: skip

    @override
    def tell(self) -> None:
        if self.order.charged:
            used, since, held = self.accounts.used, self.accounts.since, self.accounts.held
            self.scheduler.usages = {
                holder: Usage(float(used[i]), int(since[i]), int(held[i]))
                for holder, i in self._numbers.items()
            }

    @property
    @override
    def waiting(self) -> Int64s:
        order, present = self.order, slice(self.order.first, self.order.last)
        waiting: Int64s = order.job[present][order.need[present] != GAP]
        return waiting

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        arrays = self.order, self.beliefs, self.accounts
        if self.order.reservations:
            return P.advance_scored(cluster, remaining, halt, *arrays, *self._plan(), NO_FORMULA)
        return Q.advance_ordered(cluster, remaining, halt, *arrays)

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays(), self.order, self.beliefs, self.accounts
        if not self.order.reservations:
            Q.ordered_pass(*arrays, ended, arrived)
        elif P.prepare(*arrays, ended, arrived) != P.NOTHING:
            P.one_pass(*arrays, *self._plan())
        return FOREVER

    def _plan(self) -> tuple[Int64Rows, Int64Rows, int]:
        """Return what a pass that plans needs besides: windows, room for the plan, processors."""
        engine = self.engine
        windows = np.array(engine.windows, np.int64).reshape(-1, 2)
        if self.order.reservations:
            most = engine.arrays().ends.table.shape[1] + len(self.order.keys) + len(windows)
            if self._steps.shape[1] < 2 + 2 * most:
                self._steps = np.zeros((2, 4 + 4 * most), np.int64)
        return windows, self._steps, engine.up

    def _make_room(self, arrived: int) -> None:
        """Give more room to whatever array could become full in a pass."""
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        need = self.order.last + arrived
        order, beliefs, state = self.order, self.beliefs, self.engine.state
        if need > len(order.keys):
            order.queue, order.keys = wider(order.queue, 2 * need), wider(order.keys, 2 * need)
            order.chosen = wider(order.chosen, 2 * need)
        jobs = state.running + state.waiting
        blocks = 2 * beliefs.count + jobs // (B.WIDTH // 2) + 2
        old = beliefs.blocks.shape[1]
        if blocks > old:
            beliefs.blocks = wider(beliefs.blocks, 2 * blocks)
            beliefs.block[old:] = np.arange(old, 2 * blocks)
            entries = np.zeros((2, 2 * blocks, B.WIDTH), np.int64)
            entries[:, :old] = beliefs.entries
            beliefs.entries = entries

    def _learn_jobs(self) -> None:
        """Note accounts and priorities of jobs that the table did not have yet."""
        jobs, policy = self.engine.jobs, self.scheduler
        first, room = self._known, jobs.matrix.shape[1]
        self._known = len(jobs)
        if room > len(self.beliefs.end):
            self.beliefs.end = wider(self.beliefs.end, room)
        users, queues = jobs.user[first:], jobs.queue[first:]
        if self.order.limited or self.order.charged:
            if room > self.accounts.of.shape[1]:
                self.accounts.of = wider(self.accounts.of, room, -1)
            of = np.asarray(self.accounts.of)[:, first : len(jobs)]
        if self.order.limited:
            pairs, which = np.unique(np.stack([users, queues]), axis=1, return_inverse=True)
            charged = np.full((A.LIMITS, pairs.shape[1]), -1)
            for place, (user, queue) in enumerate(pairs.T.tolist()):
                for row, (account, limit) in enumerate(policy.charges(user, queue)):
                    charged[row, place] = self._account(account, limit.jobs, limit.processors)
            of[: A.LIMITS] = charged[:, which.ravel()]
        if self.order.charged:
            holders = users if policy.by == "user" else jobs.group[first:]
            numbers, which = np.unique(holders, return_inverse=True)
            charged = np.array(
                [self._account(number, share=policy.share(number)) for number in numbers.tolist()]
            )
            of[A.LIMITS] = charged[which]
        if self.order.by == Q.BY_PRIORITY:
            if room > len(self.order.priorities):
                self.order.priorities = wider(self.order.priorities, room)
            numbers, which = np.unique(queues, return_inverse=True)
            order = np.array([-policy.rules(number).priority for number in numbers.tolist()])
            np.asarray(self.order.priorities)[first : len(jobs)] = order[which]

    def _account(
        self,
        account: Hashable,
        jobs: int | None = None,
        processors: int | None = None,
        share: float = 1.0,
    ) -> int:
        """Return the number of an account, a new one the first time."""
        number = self._numbers.setdefault(account, len(self._numbers))
        accounts = self.accounts
        if number >= accounts.counts.shape[1]:
            accounts.counts = wider(accounts.counts, 2 * number + 16)
            accounts.amounts = wider(accounts.amounts, 2 * number + 16)
        if number == len(self._numbers) - 1:
            most = [FOREVER if limit is None else limit for limit in (jobs, processors)]
            accounts.most_jobs[number], accounts.most_held[number] = most
            accounts.share[number] = share
        return number


class CreasyPass(OrderedPass):
    """The queue is ordered by seniority and criticality."""

    @override
    def _set_order(self) -> None:
        policy, order = self.scheduler, self.order
        self.order.by = Q.BY_CRITICALITY
        order.alpha, order.limit, order.decline = policy.alpha, policy.limit, policy.decline


class MultiQueuePass(OrderedPass):
    """The queue is ordered by the priority of the queues."""

    @override
    def _set_order(self) -> None:
        self.order.by = Q.BY_PRIORITY


class FairSharePass(OrderedPass):
    """The queue is ordered by decayed usage over share."""

    @override
    def _set_order(self) -> None:
        self.order.by, self.order.charged = Q.BY_USAGE, True
        self.order.half_life = self.scheduler.half_life_s
