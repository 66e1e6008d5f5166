"""The compiled engine: owner of the arrays that compiled code works on.

That code is :mod:`hpcrowd.environment.engine.kernel.loop` and, for most policies, a pass:
FCFS and EASY without options run in the compiled loop; any other policy is a
:class:`~hpcrowd.environment.engine.passes.base.CompiledPass`. When the policy or the platform
changes, the table of jobs is brought up to date with what runs and waits; everything else that the
engine keeps is then rebuilt from it (:meth:`CompiledEngine.take_over`).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.engine.base import MOST_PLANNED, Engine, events_for
from hpcrowd.environment.engine.kernel import loop
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel import sleeping as L
from hpcrowd.environment.engine.kernel.arrays import wider, with_room, without
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.sleeping import make_room, prepare
from hpcrowd.environment.engine.passes.base import (
    CompiledPass,
    compiled_pass,
    is_built_in,
    runs_compiled,
)
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Column, Int64Rows, Int64s, JobTable
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.stops import FOREVER, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpcrowd.environment.machine.past import Past
    from hpcrowd.environment.power.description import NodePower
    from hpcrowd.environment.power.sleep import DelayedStart, SleepRule

#: Policies of the compiled loop itself, by name.
POLICIES = {"fcfs": S.FCFS, "easy": S.EASY, "recorded": S.RECORDED}

#: Places that arrays have at first.
FIRST_ROOM = 1024


class Owned:
    """An array of an engine; when it is replaced, compiled code gets another ``Cluster``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, engine: CompiledEngine, owner: type) -> Int64s:
        found: Int64s = engine.__dict__[self._name]
        return found

    def __set__(self, engine: CompiledEngine, array: Int64s) -> None:
        engine.__dict__[self._name] = array
        engine._cluster = None


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
    scalars, ends
        What passes of policies work on; see ``hpcrowd.environment.engine.kernel``.

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
        self._cluster: Cluster | None = None
        self._matrix: Int64s | None = None
        s = self.scalars = np.zeros(S.COUNT, np.int64)
        self._state = memoryview(s)  # yields plain integers, several times faster
        s[S.WAKE] = FOREVER
        s[S.FACTOR] = s[S.DIVISOR] = 1
        if isinstance(self.estimates, Estimates):  # a predictor's are set later
            s[S.EXACT] = self.estimates.kind == "exact"
            if self.estimates.kind == "factor":
                s[S.FACTOR], s[S.DIVISOR] = self.estimates.ratio.as_integer_ratio()
        s[S.KILL] = self.kill
        s[S.NUMBER] = self.number
        s[S.SHARED] = self.shared
        s[S.FREE] = processors
        self._set_platform()
        s[S.STALE] = 1
        self._sorted = np.zeros(0, np.int64)
        self._heap = np.zeros((2, FIRST_ROOM), np.int64)
        self._queue = np.zeros((S.QUEUE_ROWS, FIRST_ROOM), np.int64)
        self.ends = np.zeros((2, FIRST_ROOM), np.int64)
        self._expected = np.zeros((2, FIRST_ROOM), np.int64)
        self._finished = np.zeros(FIRST_ROOM, np.int64)
        self._pending: list[Int64s] = []
        self._foretold: Int64s = np.zeros(0, np.int64)
        self._unheard: Int64s = np.zeros(0, np.int64)
        self._policy: CompiledPass | None = None
        self._set_policy(scheduler)

    scalars = Owned()
    _sorted = Owned()
    _heap = Owned()
    _queue = Owned()
    ends = Owned()
    _expected = Owned()
    _finished = Owned()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made of the arrays, as those of a copy are others."""
        return vars(self) | {"_cluster": None}

    def arrays(self) -> Cluster:
        """Return the arrays as compiled code takes them; others after the next submission."""
        matrix = self.jobs.matrix
        if self._cluster is None or self._matrix is not matrix:
            self._matrix = matrix
            self._cluster = Cluster(
                matrix, self.scalars, self._sorted, self._heap, self._queue, self.ends,
                self._expected, self._finished,
            )  # fmt: skip
        return self._cluster

    @override
    def _begin_sleep(self, rule: SleepRule, node: NodePower, begin: int) -> None:
        from hpcrowd.environment.power.sleep import ledger_of

        self._keep(ledger_of(rule, node, self.processors, begin, FIRST_ROOM))

    def _keep(self, ledger: Int64s) -> None:
        """Keep a ledger of idle nodes behind the scalars."""
        s = self.scalars = np.concatenate((self.scalars[: S.COUNT], ledger))
        self._state = memoryview(s)
        s[S.SLEEPS] = 1

    @property
    @override
    def delayed(self) -> list[DelayedStart]:
        if self.sleep is None:
            return []
        from hpcrowd.environment.power.sleep import noted_starts

        return self._delayed + noted_starts(self.scalars[S.COUNT :])

    @override
    def _latest_delays(self) -> Iterator[DelayedStart]:
        from hpcrowd.environment.power.sleep import noted_starts

        noted = noted_starts(self.scalars[S.COUNT :])
        return chain(reversed(noted), reversed(self._delayed))

    def _make_ledger_room(self) -> None:
        """Give more room to the ledger of idle nodes, if a pass could need it."""
        from hpcrowd.environment.power.sleep import wider_ledger

        ledger, waiting = self.scalars[S.COUNT :], self._state[S.WAITING]
        if not make_room(ledger, waiting):
            wider_one, noted = wider_ledger(ledger, waiting)
            self._delayed += noted
            self._keep(wider_one)

    def _balance(self, early: list[DelayedStart]) -> None:
        """Bring the ledger of idle nodes up to date; jobs ``early`` stopped before their start."""
        for one in early:
            self._make_ledger_room()
            processors = self.jobs.processors[one.row]
            ledger = self.scalars[S.COUNT :]
            L.give(ledger, self.now, processors, one.start, ledger[:0])
        self._make_ledger_room()
        ledger = self.scalars[S.COUNT :]
        L.balance(ledger, self.now, self.free)
        ledger[L.SEEN] = ledger[L.DELAYED]

    @property
    @override
    def now(self) -> int:
        return self._state[S.NOW]

    @property
    @override
    def refused(self) -> dict[int, str]:
        return self._refused if self._policy is None else self._refused | self._policy.refused

    @property
    @override
    def free(self) -> int:
        return int(self.scalars[S.FREE])

    @property
    @override
    def events(self) -> int:
        return int(self.scalars[S.EVENTS])

    @property
    @override
    def waiting(self) -> Int64s:
        queue = self._queue[:, self.scalars[S.QUEUE_HEAD] : self.scalars[S.QUEUE_TAIL]]
        waiting: Int64s = queue[0, queue[1] != S.GAP]
        if self._policy is not None:  # the queue holds what the policy has not seen yet
            waiting = np.concatenate((self._policy.waiting, waiting))
        return waiting

    @property
    def queue(self) -> Int64Rows:
        """The queue, see ``kernel.places.Cluster``."""
        return self._queue

    @property
    @override
    def queue_length(self) -> int:
        return self._state[S.WAITING]

    @property
    @override
    def asked(self) -> int:
        return self._state[S.ASKED]

    @property
    @override
    def unseen(self) -> Int64s:
        if self._policy is not None:
            s = self.scalars
            return self._queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]].copy()
        waiting = self.waiting
        if self.scalars[S.PHASE] == S.COMPLETIONS:
            return waiting[:0]
        unseen: Int64s = waiting[self.jobs.enqueued[waiting] == self.now]
        return unseen

    @property
    @override
    def running(self) -> Int64s:
        return self.ends[1, : self.scalars[S.RUNNING]].copy()

    @property
    @override
    def arriving(self) -> bool:
        s = self.scalars
        return bool(self._pending or s[S.HEAP_SIZE] or s[S.SORTED_NEXT] < s[S.SORTED_END])

    @override
    def next_time(self) -> int:
        self._accept()
        return loop.next_time(self.jobs.matrix, self.scalars, self._sorted, self._heap, self.ends)

    @override
    def _expect(self, rows: Int64s) -> None:
        self._pending.append(rows)

    @override
    def _join(self, row: int) -> None:
        self._accept()
        s = self.scalars
        self._reserve(int(s[S.HEAP_SIZE]) + 1)
        heap_push(self._heap, s[S.HEAP_SIZE], s[S.NOW], row)
        s[S.HEAP_SIZE] += 1

    @override
    def submit_unit(self, unit: int, at: int) -> None:
        if at < self._state[S.NOW]:
            self._check_future(at)
        units = self.units
        first, last = units.bounds[unit], units.bounds[unit + 1]
        timeline = self.timeline
        changes = timeline is not None and not timeline.quiet
        if self.speed != 1 or changes or self._on_nodes:
            self._take(units.rows[first:last])
        self._reserve(self._state[S.HEAP_SIZE] + last - first)
        loop.submit_unit(self.arrays(), at, first, last, units.rows)

    @override
    def withdraw(self, rows: Int64s) -> None:
        self._accept()
        s = self.scalars
        left = self._sorted[s[S.SORTED_NEXT] : s[S.SORTED_END]]
        left = left[~np.isin(left, rows)]
        s[S.SORTED_END] = s[S.SORTED_NEXT] + len(left)
        self._sorted[s[S.SORTED_NEXT] : s[S.SORTED_END]] = left
        s[S.HEAP_SIZE] = without(self._heap, int(s[S.HEAP_SIZE]), rows)

    @override
    def _take_note(self, ended: Int64s, left: Int64s) -> None:
        self._unheard = np.concatenate((self._unheard, np.sort(ended)))

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        if self._pending:
            self._accept()
        self._state[S.FINISHED_COUNT] = 0
        if self._policy is not None and self._policy.looks_at_all:
            events = events_for(self._state[S.WAITING], events, MOST_PLANNED)
        self._state[S.ALLOWANCE] = events
        while True:
            # A predictor is called before each pass, so with one all passes happen outside.
            policy = self._policy if self.predictor is None else None  # may change meanwhile
            if policy is None:
                stop = loop.run(self.arrays(), self.units.remaining, halt)
            else:
                stop = policy.advance(self.arrays(), self.units.remaining, halt)
            if stop == Stop.FINISHED:
                self.finished = self._told()
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
            self._finished = np.zeros(2 * len(rows), np.int64)
        loop.count_over(self.arrays(), self.units.remaining, rows)
        self.finished = self._told()
        return bool(self.finished)

    @override
    def pass_to(self, time: int) -> None:
        self.scalars[S.NOW] = time

    @override
    def complete(self) -> list[int]:
        self.scalars[S.FINISHED_COUNT] = 0
        while not loop.complete(self.arrays(), self.units.remaining):
            self._enlarge()
        return self._told()

    @override
    def arrive(self) -> list[int]:
        self._accept()
        self.scalars[S.FINISHED_COUNT] = 0
        while not loop.arrive(self.arrays(), self.units.remaining):
            self._enlarge()
        return self._told()

    @override
    def schedule(self) -> None:
        if self.closed:
            self.scalars[S.WAKE] = FOREVER
            return
        while self._state[S.SLEEPS] and not prepare(self.scalars):
            self._make_ledger_room()
        if self._policy is not None:
            self._pass()
            return
        while not loop.schedule(self.arrays()):
            self._enlarge()

    def _pass(self) -> None:
        """Run the pass of a policy outside the loop."""
        s, policy = self.scalars, self._policy
        assert policy is not None
        ended = self._expected[0, : s[S.EXPECTED_END]]
        arrived = self._queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]]
        self._foretell(ended, arrived)
        need = int(s[S.RUNNING] + s[S.WAITING])
        if need >= self.ends.shape[1]:
            self.ends = wider(self.ends, 2 * need)
        s[S.WAKE] = policy.schedule(ended, arrived)
        s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0

    def _told(self) -> list[int]:
        """Return the jobs or units that the last phase noted as finished."""
        told: list[int] = self._finished[: self._state[S.FINISHED_COUNT]].tolist()
        return told

    def _accept(self) -> None:
        """Sort bulk submissions; put a few later submissions into the heap."""
        if not self._pending:
            return
        pending = self._pending
        rows = pending[0] if len(pending) == 1 else np.concatenate(pending)
        pending.clear()
        if (
            self.scalars[S.SORTED_NEXT] == self.scalars[S.SORTED_END]
            and len(rows) > FIRST_ROOM // 8
        ):
            at = self.jobs.matrix[Column.SUBMIT, rows]
            self._sorted = rows[np.lexsort((rows, at))]
            self.scalars[S.SORTED_NEXT], self.scalars[S.SORTED_END] = 0, len(rows)
        else:
            self._reserve(int(self.scalars[S.HEAP_SIZE]) + len(rows))
            loop.submit_jobs(self.arrays(), rows)

    def _reserve(self, arrivals: int) -> None:
        if arrivals > self._heap.shape[1]:
            self._heap = wider(self._heap, 2 * arrivals)

    def _enlarge(self) -> None:
        """Give more room to whatever array is full."""
        if self._state[S.SLEEPS]:
            self._make_ledger_room()
        s = self.scalars
        if s[S.QUEUE_TAIL] >= self._queue.shape[1]:
            self._queue = wider(self._queue, 2 * self._queue.shape[1])
        if s[S.FINISHED_COUNT] >= len(self._finished):
            self._finished = wider(self._finished, 2 * len(self._finished))
        need = int(s[S.RUNNING] + s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD])
        if need >= self.ends.shape[1]:
            self.ends = wider(self.ends, 2 * need)
        waiting = int(s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD])
        if int(s[S.EXPECTED_END]) + waiting >= self._expected.shape[1]:
            self._expected = wider(self._expected, 2 * (int(s[S.EXPECTED_END]) + waiting))

    def _set_policy(self, scheduler: Scheduler | None) -> None:
        """Use the loop, or a pass outside it, for the scheduler."""
        self.scheduler, self._policy = scheduler, None
        self._on_nodes = scheduler is not None and scheduler.nodes
        if scheduler is None:
            self.scalars[S.POLICY] = S.RECORDED
        elif is_built_in(scheduler) and self.predictor is None:
            self.scalars[S.POLICY] = POLICIES[scheduler.name]
        else:
            policy = compiled_pass(scheduler)
            if policy is None:
                raise QuantityError(f"scheduler {scheduler}: not compiled; run it with plain=True")
            self.scalars[S.POLICY] = S.OUTSIDE
            self._policy = policy(scheduler, self)

    def _set_platform(self) -> None:
        """Pass the present platform to the kernel."""
        s = self.scalars
        s[S.CAPACITY] = self.largest
        s[S.CHANGE_AT], s[S.CLOSED] = self.change_at, self.closed
        s[S.CLOSES], s[S.REOPENS] = self.closes, self.reopens
        s[S.PACE], s[S.PACE_ONE] = self.pace.as_integer_ratio()

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
        early = self._stopped_early(running)
        jobs, s = self.jobs, self.scalars
        waiting = waiting[np.lexsort((waiting, jobs.enqueued[waiting]))]
        running = running[np.lexsort((running, jobs.end[running]))]  # a sorted array is a heap
        self.ends = with_room(self.ends, 2 * (len(running) + len(waiting)))
        self.ends[:, : len(running)] = jobs.end[running], running
        s[S.RUNNING], s[S.WAITING] = len(running), len(waiting)
        s[S.ASKED] = jobs.processors[waiting].sum()
        s[S.FREE] = self.up
        if self.scheduler is not None:
            s[S.FREE] -= jobs.processors[running].sum()
        if s[S.SLEEPS]:
            self._balance(early)
            s = self.scalars  # others if the ledger grew
        self._queue = with_room(self._queue, 2 * len(waiting))
        estimates = jobs.estimate[waiting]
        self._queue[: S.LEAST_NEED, : len(waiting)] = waiting, jobs.processors[waiting], estimates
        self._queue[S.LEAST_NEED :] = 0
        s[S.QUEUE_HEAD] = s[S.QUEUE_GAPS] = s[S.SCANNED] = 0
        s[S.QUEUE_TAIL] = len(waiting)
        s[S.STALE] = 1
        s[S.EXPECTED_FIRST] = s[S.EXPECTED_END] = 0
        s[S.WAKE] = s[S.NOW]
        self._foretold = waiting  # estimates are made once, when a job arrives
        self._set_platform()
        before = self._policy
        self._set_policy(self.scheduler)
        if before is not None and self._policy is not None:
            self._policy.inherit(before, self._unheard)
        self._unheard = self._unheard[:0]
        if s[S.POLICY] == S.EASY:
            expected = jobs.start[running] + jobs.estimate[running]
            order = np.argsort(expected, kind="stable")
            self._expected = with_room(self._expected, 2 * (len(running) + len(waiting)))
            processors = jobs.processors[running]
            self._expected[:, : len(running)] = expected[order], processors[order]
            s[S.EXPECTED_END] = len(running)

    @override
    def inform(self) -> None:
        if self.scheduler is not None:
            self.scheduler.begin(self.up)
            if self._policy is not None:
                self._policy.tell()
        super().inform()

    @override
    def settle(self) -> None:
        s = self.scalars
        if self._policy is not None:
            ended = self._expected[0, : s[S.EXPECTED_END]]
            arrived = self._queue[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]]
            self._foretell(ended, arrived)
            self._foretold = self.waiting
            self._unheard = np.concatenate((self._unheard, ended))
            s[S.EXPECTED_END] = 0

    def _foretell(self, ended: Int64s, arrived: Int64s) -> None:
        """Notify the predictor, but not again of arrivals that a new pass is shown again."""
        if self.predictor is not None:
            self._predict(ended, arrived[~np.isin(arrived, self._foretold)])
        self._foretold = self._foretold[:0]
