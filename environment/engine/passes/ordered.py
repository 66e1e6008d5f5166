"""The compiled pass of all policies without a plan of reservations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.kernel import accounts as A
from hpcrowd.environment.engine.kernel import believed as B
from hpcrowd.environment.engine.kernel import ordered as Q
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import scored as P
from hpcrowd.environment.engine.kernel.arrays import Groups, wider
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.schedulers.fair_share import Usage
from hpcrowd.environment.schedulers.ordered import CONSERVATIVE, OrderedScheduler
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.machine.past import Past

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
    free processors, which may be negative, in the scalars of the engine.

    Parameters
    ----------
    scheduler, engine
        See :class:`~hpcrowd.environment.engine.passes.base.CompiledPass`.
    """

    drains = True

    def __init__(self, scheduler: Any, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        self._groups = Groups()
        q = self._q = np.zeros(Q.Q_COUNT, np.int64)
        c = self._c = np.zeros(Q.C_COUNT)
        q[Q.HEAD] = -1
        q[Q.CORRECTS] = engine.predictor is not None
        q[Q.BACKFILL] = BACKFILLS[getattr(scheduler, "backfill", "none")]
        if scheduler.plans:
            every = scheduler.backfill == CONSERVATIVE
            q[Q.RESERVATIONS] = FOREVER if every else scheduler.reservations
            q[Q.DEPTH] = FOREVER if scheduler.depth is None else scheduler.depth
        self._steps = np.zeros((2, 0), np.int64)  # of the plan
        q[Q.LIMITED] = isinstance(scheduler, OrderedScheduler) and (
            type(scheduler).charges is not OrderedScheduler.charges
        )
        c[Q.SIGN], c[Q.HALF_LIFE] = 1, 1
        self._set_order()
        by = q[Q.ORDER]
        q[Q.COLUMN] = Q.KEY_COLUMNS[by] if by < len(Q.KEY_COLUMNS) else -1
        self._queue = np.zeros((Q.Q_ROWS, FIRST_ROOM), np.int64)
        self._keys = np.zeros(FIRST_ROOM)
        self._chosen = np.zeros(FIRST_ROOM, np.int64)
        self._entries = np.zeros((2, FIRST_BLOCKS, B.WIDTH), np.int64)
        self._blocks = np.zeros((3, FIRST_BLOCKS), np.int64)
        self._blocks[B.BLOCK] = np.arange(FIRST_BLOCKS)
        self._b = np.zeros(B.B_COUNT, np.int64)
        self._believed = np.zeros(0, np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._accounts = np.zeros((A.A_COUNT, 0), np.int64)
        self._amounts = np.zeros((A.M_COUNT, 0))
        self._of = np.zeros((A.O_COUNT, 0), np.int64)
        self._priorities = np.zeros(0)
        self._known = 0
        self._take_over(engine.running)

    def _set_order(self) -> None:
        """Set the order of the queue; by default the key of a ``KeyScheduler``."""
        order = self.scheduler.queue_order
        self._q[Q.ORDER], self._c[Q.SIGN] = ORDERS[order.name], -1 if order.descending else 1

    def _take_over(self, running: Int64s) -> None:
        """Count jobs that already run; their usage counts from now on."""
        now = self.engine.now
        self._make_room(0)
        matrix = self.engine.jobs.matrix
        B.believe_all(self._beliefs(), matrix, running)
        if self._q[Q.LIMITED]:
            for job in running.tolist():
                A.hold(self._held(), matrix, job, 1)
        if self._q[Q.CHARGED]:
            for job in running.tolist():
                self._charge(job, 1, now)

    def _charge(self, job: int, count: int, now: int) -> None:
        """Note the start (``count`` 1) or end (-1) of a job on its account."""
        matrix, half_life = self.engine.jobs.matrix, self._c[Q.HALF_LIFE]
        A.change_usage(self._held(), matrix, job, count, now, half_life)

    @override
    def inherit(self, before: Any, ended: Int64s) -> None:
        if not self._q[Q.CHARGED]:
            return
        for job in ended.tolist():
            before._charge(job, -1, int(self.engine.jobs.end[job]))
        now, half_life = self.engine.now, self._c[Q.HALF_LIFE]
        for holder, old in before._numbers.items():
            used = A.usage(before._held(), old, now, half_life)
            account = self._account(holder, share=self.scheduler.share(holder))
            self._amounts[A.USED, account] = used
            self._accounts[A.SINCE, account] = now

    @override
    def go_on(self, past: Past) -> None:
        super().go_on(past)
        if not self._q[Q.CHARGED]:
            return
        jobs, over, running = self.engine.jobs, past.over, past.running
        self._accounts[[A.SINCE, A.HELD]], self._amounts[A.USED] = 0, 0.0
        rows = np.concatenate((over, over, running))
        times = np.concatenate((jobs.start[over], jobs.end[over], jobs.start[running]))
        counts = np.repeat([1, -1, 1], [len(over), len(over), len(running)])
        order = np.argsort(times, kind="stable")
        A.charge_past(
            self._held(), jobs.matrix,
            rows[order], counts[order], times[order], self._c[Q.HALF_LIFE],
        )  # fmt: skip

    @override
    def tell(self) -> None:
        if self._q[Q.CHARGED]:
            used, accounts = self._amounts[A.USED], self._accounts
            self.scheduler.usages = {
                holder: Usage(float(used[i]), int(accounts[A.SINCE, i]), int(accounts[A.HELD, i]))
                for holder, i in self._numbers.items()
            }

    @property
    @override
    def waiting(self) -> Int64s:
        queue = self._queue[:, self._q[Q.FIRST] : self._q[Q.LAST]]
        waiting: Int64s = queue[Q.ROW, queue[Q.NEED] != S.GAP]
        return waiting

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        arrays = self._order(), self._beliefs(), self._held()
        if self._q[Q.RESERVATIONS]:
            return P.advance_scored(cluster, remaining, halt, *arrays, *self._plan(), NO_FORMULA)
        return Q.advance_ordered(cluster, remaining, halt, *arrays)

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays(), self._order(), self._beliefs(), self._held()
        if not self._q[Q.RESERVATIONS]:
            Q.ordered_pass(*arrays, ended, arrived)
        elif P.prepare(*arrays, ended, arrived) != P.NOTHING:
            P.one_pass(*arrays, *self._plan())
        return FOREVER

    def _plan(self) -> tuple[Int64Rows, Int64Rows, int]:
        """Return what a pass that plans needs besides: windows, room for the plan, processors."""
        engine = self.engine
        windows = np.array(engine.windows, np.int64).reshape(-1, 2)
        if self._q[Q.RESERVATIONS]:
            most = engine.ends.shape[1] + self._queue.shape[1] + len(windows)
            if self._steps.shape[1] < 2 + 2 * most:
                self._steps = np.zeros((2, 4 + 4 * most), np.int64)
        return windows, self._steps, engine.up

    def _order(self) -> Q.Order:
        return self._groups.of(
            Q.Order, self._q, self._c, self._queue, self._keys, self._chosen, self._priorities
        )

    def _beliefs(self) -> B.Beliefs:
        return self._groups.of(B.Beliefs, self._b, self._entries, self._blocks, self._believed)

    def _held(self) -> A.Accounts:
        return self._groups.of(A.Accounts, self._accounts, self._amounts, self._of)

    def _make_room(self, arrived: int) -> None:
        """Give more room to whatever array could become full in a pass."""
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        need = int(self._q[Q.LAST]) + arrived
        if need > self._queue.shape[1]:
            self._queue = wider(self._queue, 2 * need)
            self._keys = wider(self._keys, 2 * need)
            self._chosen = wider(self._chosen, 2 * need)
        s = self.engine.scalars
        jobs = int(s[S.RUNNING] + s[S.WAITING])
        blocks = 2 * int(self._b[B.BLOCKS]) + jobs // (B.WIDTH // 2) + 2
        old = self._blocks.shape[1]
        if blocks > old:
            self._blocks = wider(self._blocks, 2 * blocks)
            self._blocks[B.BLOCK, old:] = np.arange(old, 2 * blocks)
            entries = np.zeros((2, 2 * blocks, B.WIDTH), np.int64)
            entries[:, :old] = self._entries
            self._entries = entries

    def _learn_jobs(self) -> None:
        """Note accounts and priorities of jobs that the table did not have yet."""
        jobs, policy = self.engine.jobs, self.scheduler
        first, room = self._known, jobs.matrix.shape[1]
        self._known = len(jobs)
        if room > len(self._believed):
            self._believed = wider(self._believed, room)
        users, queues = jobs.user[first:], jobs.queue[first:]
        if self._q[Q.LIMITED] or self._q[Q.CHARGED]:
            if room > self._of.shape[1]:
                self._of = wider(self._of, room, -1)
            of = self._of[:, first : len(jobs)]
        if self._q[Q.LIMITED]:
            pairs, which = np.unique(np.stack([users, queues]), axis=1, return_inverse=True)
            charged = np.full((A.LIMITS, pairs.shape[1]), -1)
            for place, (user, queue) in enumerate(pairs.T.tolist()):
                for row, (account, limit) in enumerate(policy.charges(user, queue)):
                    charged[row, place] = self._account(account, limit.jobs, limit.processors)
            of[: A.LIMITS] = charged[:, which.ravel()]
        if self._q[Q.CHARGED]:
            holders = users if policy.by == "user" else jobs.group[first:]
            numbers, which = np.unique(holders, return_inverse=True)
            charged = np.array(
                [self._account(number, share=policy.share(number)) for number in numbers.tolist()]
            )
            of[A.USAGE] = charged[which]
        if self._q[Q.ORDER] == Q.BY_PRIORITY:
            if room > len(self._priorities):
                self._priorities = wider(self._priorities, room)
            numbers, which = np.unique(queues, return_inverse=True)
            order = np.array([-policy.rules(number).priority for number in numbers.tolist()])
            self._priorities[first : len(jobs)] = order[which]

    def _account(
        self,
        account: Hashable,
        jobs: int | None = None,
        processors: int | None = None,
        share: float = 1.0,
    ) -> int:
        """Return the number of an account, a new one the first time."""
        number = self._numbers.setdefault(account, len(self._numbers))
        if number >= self._accounts.shape[1]:
            self._accounts = wider(self._accounts, 2 * number + 16)
            self._amounts = wider(self._amounts, 2 * number + 16)
        if number == len(self._numbers) - 1:
            most = [FOREVER if limit is None else limit for limit in (jobs, processors)]
            self._accounts[[A.MOST_JOBS, A.MOST_HELD], number] = most
            self._amounts[A.SHARE, number] = share
        return number


class CreasyPass(OrderedPass):
    """The queue is ordered by seniority and criticality."""

    @override
    def _set_order(self) -> None:
        policy, c = self.scheduler, self._c
        self._q[Q.ORDER] = Q.BY_CRITICALITY
        c[Q.ALPHA], c[Q.LIMIT], c[Q.DECLINE] = policy.alpha, policy.limit, policy.decline


class MultiQueuePass(OrderedPass):
    """The queue is ordered by the priority of the queues."""

    @override
    def _set_order(self) -> None:
        self._q[Q.ORDER] = Q.BY_PRIORITY


class FairSharePass(OrderedPass):
    """The queue is ordered by decayed usage over share."""

    @override
    def _set_order(self) -> None:
        self._q[Q.ORDER], self._q[Q.CHARGED] = Q.BY_USAGE, True
        self._c[Q.HALF_LIFE] = self.scheduler.half_life_s
