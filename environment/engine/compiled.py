"""The compiled engine: owner of the arrays that compiled code works on.

That code is :mod:`hpcrowd.environment.engine.kernel.loop` and, for most policies, a pass:
FCFS and EASY without options run in the compiled loop; any other policy is a
:class:`~hpcrowd.environment.engine.passes.base.CompiledPass`. When the policy or the platform
changes, the table of jobs is brought up to date with what runs and waits; everything else that the
engine keeps is then rebuilt from it (:meth:`CompiledEngine.take_over`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.base import MOST_PLANNED, Engine, events_for
from hpcrowd.environment.engine.kernel import loop
from hpcrowd.environment.engine.kernel.arrays import wider, with_room, without
from hpcrowd.environment.engine.kernel.cluster import (
    COMPLETIONS,
    EASY,
    FCFS,
    GAP,
    OUTSIDE,
    QUEUE_ROWS,
    RECORDED,
    Cluster,
    ClusterState,
    Expected,
    Jobs,
    Queue,
)
from hpcrowd.environment.engine.kernel.heap import Heap, heap_push
from hpcrowd.environment.engine.kernel.scheduling import prepare
from hpcrowd.environment.engine.kernel.sleeping import ROWS as LEDGER_ROWS
from hpcrowd.environment.engine.kernel.sleeping import Ledger
from hpcrowd.environment.engine.passes.base import (
    CompiledPass,
    PassOnNodes,
    compiled_pass,
    is_built_in,
    runs_compiled,
)
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.stops import FOREVER, Stop

if TYPE_CHECKING:
    from hpcrowd.environment.engine.idle import Switching
    from hpcrowd.environment.schedulers.past import Past

#: Policies of the compiled loop itself, by name.
POLICIES = {"fcfs": FCFS, "easy": EASY, "recorded": RECORDED}

#: Places that arrays have at first.
FIRST_ROOM = 1024

NONE: Int64s = np.zeros(0, np.int64)

NO_JOBS = Jobs(np.zeros((len(Column), 0), np.int64))


class CompiledEngine(Engine):
    """Runs a scheduler of the library, or the recorded schedule, in compiled code.

    Parameters
    ----------
    jobs, processors, **options
        See :class:`~hpcrowd.environment.engine.base.Engine`.
    scheduler
        A scheduler, its text, None or ``recorded``.

    Attributes
    ----------
    state, cluster
        What compiled code works on; see ``hpcrowd.environment.engine.kernel.cluster``. The jobs of
        the latter are up to date in :meth:`arrays`.

    Raises
    ------
    QuantityError
        When the scheduler is not of the library, or not known.
    """

    def __init__(
        self, jobs: JobTable, processors: int, scheduler: Scheduler | str | None, **options: Any
    ) -> None:
        super().__init__(jobs, processors, **options)
        if isinstance(scheduler, str):
            scheduler = parse_scheduler(scheduler)
        self._matrix: Int64s | None = None
        state = self.state = ClusterState()
        if isinstance(self.estimates, Estimates):  # a predictor's are set later
            state.exact = self.estimates.kind == "exact"
            if self.estimates.kind == "factor":
                state.factor, state.divisor = self.estimates.ratio.as_integer_ratio()
        state.kill, state.number, state.shared = self.kill, self.number, self.shared
        state.free = processors
        self._set_platform()
        pairs = np.zeros((2, FIRST_ROOM), np.int64)
        self._finished = np.zeros(FIRST_ROOM, np.int64)
        self.cluster = Cluster(
            Jobs(jobs.matrix), state, NONE, Heap(pairs.copy()),
            Queue(np.zeros((QUEUE_ROWS, FIRST_ROOM), np.int64)), Heap(pairs.copy()),
            Expected(pairs), self._finished,
            Ledger(np.zeros((LEDGER_ROWS, 0), np.int64), NONE),
        )  # fmt: skip
        self._room = FIRST_ROOM  # for arrivals
        self._pending: list[Int64s] = []
        self._foretold = self._unheard = NONE
        self._policy: CompiledPass | None = None
        self._set_policy(scheduler)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the table of jobs as compiled code has it, which a copy makes of its own."""
        one = self.cluster
        alone = Cluster(
            NO_JOBS, one.state, one.sorted, one.arrivals, one.queue, one.ends, one.expected,
            one.finished, one.ledger,
        )  # fmt: skip
        return vars(self) | {"cluster": alone, "_matrix": None, "_finished": None}

    @property
    @override
    def alone(self) -> bool:
        return self.idle is not None or self._on_nodes

    def arrays(self) -> Cluster:
        """Return the state and arrays as compiled code takes them."""
        matrix = self.jobs.matrix
        if self._matrix is not matrix:  # the table has grown, or this is a copy
            self._matrix, self.cluster.jobs = matrix, Jobs(matrix)
            self._finished = np.asarray(self.cluster.finished)
        return self.cluster

    @override
    def _let_idle(self, rule: Switching) -> None:
        super()._let_idle(rule)
        assert self.idle is not None  # made above
        self.cluster.ledger, self.state.sleeps = self.idle.ledger, True

    @property
    @override
    def now(self) -> int:
        return self.state.now

    @property
    @override
    def refused(self) -> dict[int, str]:
        return self._refused if self._policy is None else self._refused | self._policy.refused

    @property
    @override
    def free(self) -> int:
        return self.state.free

    @property
    @override
    def events(self) -> int:
        return self.state.events

    @property
    @override
    def waiting(self) -> Int64s:
        queue, present = self.cluster.queue, slice(self.state.queue_head, self.state.queue_tail)
        waiting: Int64s = queue.job[present][queue.need[present] != GAP]
        if self._policy is not None:  # the queue holds what the policy has not seen yet
            waiting = np.concatenate((self._policy.waiting, waiting))
        return waiting

    @property
    @override
    def queue_length(self) -> int:
        return self.state.waiting

    @property
    @override
    def asked(self) -> int:
        return self.state.asked

    @property
    @override
    def unseen(self) -> Int64s:
        if self._policy is not None:
            state = self.state
            return self.cluster.queue.job[state.queue_head : state.queue_tail].copy()
        waiting = self.waiting
        if self.state.phase == COMPLETIONS:
            return waiting[:0]
        unseen: Int64s = waiting[self.jobs.enqueued[waiting] == self.now]
        return unseen

    @property
    @override
    def running(self) -> Int64s:
        running: Int64s = self.cluster.ends.job[: self.state.running].copy()
        if self._policy is not None and len(suspended := self._policy.suspended):
            running = np.concatenate((running, suspended))
        return running

    @property
    @override
    def arriving(self) -> bool:
        state = self.state
        return bool(self._pending or state.arriving or state.sorted_next < state.sorted_end)

    @override
    def next_time(self) -> int:
        self._accept()
        return loop.next_time(self.arrays())

    @override
    def _expect(self, rows: Int64s) -> None:
        self._pending.append(rows)

    @override
    def _join(self, row: int) -> None:
        self._accept()
        state = self.state
        self._reserve(state.arriving + 1)
        heap_push(self.cluster.arrivals, state.arriving, state.now, row)
        state.arriving += 1

    @override
    def submit_unit(self, unit: int, at: int) -> None:
        if at < self.state.now:
            self._check_future(at)
        units = self.units
        first, last = units.bounds[unit], units.bounds[unit + 1]
        timeline = self.timeline
        changes = timeline is not None and not timeline.quiet
        if self.speed != 1 or changes or self._on_nodes:
            self._take(units.rows[first:last])
        self._reserve(self.state.arriving + last - first)
        loop.submit_unit(self.arrays(), at, first, last, units.rows)

    @override
    def withdraw(self, rows: Int64s) -> None:
        self._accept()
        state = self.state
        coming = np.asarray(self.cluster.sorted)
        left = coming[state.sorted_next : state.sorted_end]
        left = left[~np.isin(left, rows)]
        state.sorted_end = state.sorted_next + len(left)
        coming[state.sorted_next : state.sorted_end] = left
        state.arriving = without(self.cluster.arrivals, state.arriving, rows)

    @override
    def _take_note(self, ended: Int64s, left: Int64s) -> None:
        self._unheard = np.concatenate((self._unheard, np.sort(ended)))

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        if self._pending:
            self._accept()
        self.state.finished = 0
        if self._policy is not None and self._policy.looks_at_all:
            events = events_for(self.state.waiting, events, MOST_PLANNED)
        self.state.allowance = events
        while True:
            # A predictor is called before each pass, so with one those of pools happen outside.
            alone = self.predictor is None or self._on_nodes
            policy = self._policy if alone else None  # may change meanwhile
            if policy is None:
                stop = loop.run(self.arrays(), self.units.remaining, halt)
            else:
                stop = policy.advance(self.arrays(), self.units.remaining, halt)
            if stop == Stop.FINISHED:
                self.finished = self._noted()
                return Stop.FINISHED
            if stop == Stop.PASS:
                self._pass()
            elif stop == Stop.CHANGE:
                if self._change():
                    return Stop.FINISHED
            elif stop == Stop.ROOM:
                self._enlarge()
            else:
                return Stop(stop)

    def _change(self) -> bool:
        """Apply platform changes; return whether units finish because of them."""
        rows = np.array(self.change(), np.int64)
        self._accept()
        if len(rows) > len(self._finished):
            self._finished = self.cluster.finished = np.zeros(2 * len(rows), np.int64)
        loop.count_over(self.arrays(), self.units.remaining, rows)
        self.finished = self._noted()
        return bool(self.finished)

    @override
    def pass_to(self, time: int) -> None:
        self.state.now = time

    @override
    def complete(self) -> list[int]:
        self.state.finished = 0
        policy = self._policy
        complete = policy.complete if isinstance(policy, PassOnNodes) else loop.complete
        while not complete(self.arrays(), self.units.remaining):
            self._enlarge()
        return self._noted()

    @override
    def arrive(self) -> list[int]:
        self._accept()
        self.state.finished = 0
        policy = self._policy
        arrive = policy.arrive if isinstance(policy, PassOnNodes) else loop.arrive
        while not arrive(self.arrays(), self.units.remaining):
            self._enlarge()
        return self._noted()

    @property
    @override
    def ended_in_pass(self) -> list[int]:
        if self._policy is None:
            return []
        ended, self._policy.ended_now = self._policy.ended_now, []
        return self.units.awaited(ended) if ended else ended

    @override
    def schedule(self) -> None:
        if self.closed:
            self.state.wake = FOREVER
            return
        while self.idle is not None and not prepare(self.arrays()):
            self.idle.make_room(self.state.waiting)
        if self._policy is not None:
            self._pass()
            return
        while not loop.schedule(self.arrays()):
            self._enlarge()

    def predict(self) -> None:
        """Let the predictor hear of jobs that ended, and predict those that arrived."""
        self._foretell(*self._news())

    def _news(self) -> tuple[Int64s, Int64s]:
        """Return the jobs that ended, and those that arrived, since the last pass."""
        state = self.state
        ended = self.cluster.expected.ended[: state.expected_end]
        return ended, self.cluster.queue.job[state.queue_head : state.queue_tail]

    def _pass(self) -> None:
        """Run the pass of a policy outside the loop."""
        state, policy, cluster = self.state, self._policy, self.cluster
        assert policy is not None
        ended, arrived = self._news()
        self._foretell(ended, arrived)
        need = int(state.running + state.waiting)
        if need >= cluster.ends.table.shape[1]:
            cluster.ends.table = wider(cluster.ends.table, 2 * need)
        state.wake = policy.schedule(ended, arrived)
        state.expected_end = state.queue_head = state.queue_tail = 0

    def _noted(self) -> list[int]:
        """Return the jobs or units that the last phase noted as finished."""
        noted: list[int] = self._finished[: self.state.finished].tolist()
        return noted

    def _accept(self) -> None:
        """Sort bulk submissions; put a few later submissions into the heap."""
        if not self._pending:
            return
        pending = self._pending
        rows = pending[0] if len(pending) == 1 else np.concatenate(pending)
        pending.clear()
        if self.state.sorted_next == self.state.sorted_end and len(rows) > FIRST_ROOM // 8:
            at = self.jobs.matrix[Column.SUBMIT, rows]
            self.cluster.sorted = rows[np.lexsort((rows, at))]
            self.state.sorted_next, self.state.sorted_end = 0, len(rows)
        else:
            self._reserve(self.state.arriving + len(rows))
            loop.submit_jobs(self.arrays(), rows)

    def _reserve(self, arrivals: int) -> None:
        if arrivals > self._room:
            self._room = 2 * arrivals
            self.cluster.arrivals.table = wider(self.cluster.arrivals.table, self._room)

    def _enlarge(self) -> None:
        """Give more room to whatever array is full."""
        if self.idle is not None:
            self.idle.make_room(self.state.waiting)
        state, cluster = self.state, self.cluster
        queue, ends, expected = cluster.queue, cluster.ends, cluster.expected
        if state.queue_tail >= queue.table.shape[1]:
            queue.table = wider(queue.table, 2 * queue.table.shape[1])
        if state.finished >= len(self._finished):
            self._finished = cluster.finished = wider(self._finished, 2 * len(self._finished))
        waiting = state.queue_tail - state.queue_head
        if state.running + waiting >= ends.table.shape[1]:
            ends.table = wider(ends.table, 2 * (state.running + waiting))
        if state.expected_end + waiting >= expected.table.shape[1]:
            expected.table = wider(expected.table, 2 * (state.expected_end + waiting))

    def _set_policy(self, scheduler: Scheduler | None) -> None:
        """Use the loop, or a pass outside it, for the scheduler."""
        self.scheduler, self._policy = scheduler, None
        self._on_nodes = scheduler is not None and scheduler.nodes
        if scheduler is None:
            self.state.policy = RECORDED
        elif is_built_in(scheduler) and self.predictor is None:
            self.state.policy = POLICIES[scheduler.name]
        else:
            policy = compiled_pass(scheduler)
            if policy is None:
                raise QuantityError(f"scheduler {scheduler}: not compiled; run it with plain=True")
            self.state.policy = OUTSIDE
            self._policy = policy(scheduler, self)

    def _set_platform(self) -> None:
        """Pass the present platform to the kernel."""
        state = self.state
        state.capacity = self.largest
        state.change_at, state.closed = self.change_at, self.closed
        state.closes, state.reopens = self.closes, self.reopens
        state.pace, state.pace_one = self.pace.as_integer_ratio()

    @override
    def catch_up(self) -> None:
        if self.timeline is not None and not self.timeline.quiet:
            super().catch_up()
            self._set_platform()

    @override
    def change(self) -> list[int]:
        rows = super().change()
        self._set_platform()
        return rows

    @override
    def switch(self, scheduler: Scheduler) -> None:
        self._check_switch()
        if not runs_compiled(scheduler):
            raise QuantityError(f"scheduler {scheduler}: not compiled; run it with plain=True")
        self.settle()
        waiting, running = self.waiting, self.running
        self._use(scheduler)
        self.take_over(waiting, running)
        if self._policy is not None and scheduler.remembers:
            self._policy.remember(self.jobs.ended(self.number))

    @override
    def _use(self, scheduler: Scheduler) -> None:
        self.scheduler, self._policy = scheduler, None

    @override
    def _go_on(self, past: Past) -> None:
        self.take_over(past.waiting, past.running)
        if self._policy is not None:
            self._policy.go_on(past)

    @override
    def take_over(self, waiting: Int64s, running: Int64s) -> None:
        idle, jobs, state = self.idle, self.jobs, self.state
        early = [] if idle is None else [*idle.stopped_early(self.now, running)]
        waiting = waiting[np.lexsort((waiting, jobs.enqueued[waiting]))]
        running = running[jobs.end[running] != UNKNOWN]  # that of suspended ones is put off
        running = running[np.lexsort((running, jobs.end[running]))]  # a sorted array is a heap
        cluster, together = self.cluster, 2 * (len(running) + len(waiting))
        cluster.ends.table = with_room(cluster.ends.table, together)
        cluster.ends.time[: len(running)] = jobs.end[running]
        cluster.ends.job[: len(running)] = running
        state.running, state.waiting = len(running), len(waiting)
        state.asked = int(jobs.processors[waiting].sum())
        state.free = self.up
        if self.scheduler is not None:
            state.free -= int(jobs.processors[running].sum())
        if idle is not None:
            idle.balance(self.now, state.free, state.waiting, early)
        queue = cluster.queue
        queue.table = with_room(queue.table, 2 * len(waiting))
        queue.job[: len(waiting)], queue.need[: len(waiting)] = waiting, jobs.processors[waiting]
        queue.length[: len(waiting)] = jobs.estimate[waiting]
        queue.least_need[:] = queue.least_length[:] = 0
        state.queue_head = state.queue_gaps = state.scanned = 0
        state.queue_tail = len(waiting)
        state.stale = True
        state.expected_first = state.expected_end = 0
        state.wake = state.now
        self._foretold = waiting  # estimates are made once, when a job arrives
        self._set_platform()
        before = self._policy
        self._set_policy(self.scheduler)
        if before is not None and self._policy is not None:
            self._policy.inherit(before, self._unheard)
        self._unheard = self._unheard[:0]
        if state.policy == EASY:
            expected = jobs.start[running] + jobs.estimate[running]
            order = np.argsort(expected, kind="stable")
            cluster.expected.table = with_room(cluster.expected.table, together)
            cluster.expected.end[: len(running)] = expected[order]
            cluster.expected.processors[: len(running)] = jobs.processors[running][order]
            state.expected_end = len(running)

    @override
    def inform(self) -> None:
        if self.scheduler is not None:
            self.scheduler.begin(self.up)
            if self._policy is not None:
                self._policy.tell()
        super().inform()

    @override
    def settle(self) -> None:
        state = self.state
        if self._policy is not None:
            ended, arrived = self._news()
            self._foretell(ended, arrived)
            self._foretold = self.waiting
            self._unheard = np.concatenate((self._unheard, ended))
            state.expected_end = 0

    def _foretell(self, ended: Int64s, arrived: Int64s) -> None:
        """Notify the predictor, but not again of arrivals that a new pass is shown again."""
        if self.predictor is not None:
            self._predict(ended, arrived[~np.isin(arrived, self._foretold)])
        self._foretold = self._foretold[:0]
