"""The compiled engine: owner of the arrays that :mod:`environment.kernel.loop` works on."""

from __future__ import annotations

from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from environment.engine import Engine
from environment.errors import QuantityError
from environment.jobs import Column, Int64s, JobTable
from environment.kernel import cache, loop
from environment.kernel import places as S
from environment.stops import FOREVER, Stop

cache.drop_stale()

#: Policies that are compiled, by the name a user gives.
POLICIES = {"fcfs": S.FCFS, "easy": S.EASY, "recorded": S.RECORDED}

#: Places that arrays have at first.
FIRST_ROOM = 1024


class CompiledEngine(Engine):
    """Runs FCFS, EASY or the recorded schedule in compiled code.

    Parameters
    ----------
    jobs, processors, **options
        See :class:`~environment.engine.Engine`.
    policy
        A name of :data:`POLICIES`.
    """

    def __init__(self, jobs: JobTable, processors: int, policy: str, **options: Any) -> None:
        super().__init__(jobs, processors, **options)
        self.policy = policy
        s = self._s = np.zeros(S.COUNT, np.int64)
        self._state = memoryview(s)  # yields plain integers, several times faster
        s[S.POLICY] = POLICIES[policy]
        s[S.KILL] = self.kill
        s[S.NUMBER] = self.number
        s[S.SHARED] = self.shared
        s[S.CAPACITY] = s[S.FREE] = processors
        s[S.STALE] = 1
        self._sorted = np.zeros(0, np.int64)
        self._heap = np.zeros((2, FIRST_ROOM), np.int64)
        self._queue = np.zeros((3, FIRST_ROOM), np.int64)
        self._ends = np.zeros((2, FIRST_ROOM), np.int64)
        self._expected = np.zeros((2, FIRST_ROOM), np.int64)
        self._finished = np.zeros(FIRST_ROOM, np.int64)
        self._links = np.zeros((1, 4), np.int64)
        self._edges = np.zeros((0, 2), np.int64)
        self._pending: list[Int64s] = []

    @property
    @override
    def now(self) -> int:
        return self._state[S.NOW]

    @property
    @override
    def free(self) -> int:
        return int(self._s[S.FREE])

    @property
    @override
    def events(self) -> int:
        return int(self._s[S.EVENTS])

    @property
    @override
    def waiting(self) -> Int64s:
        queue = self._queue[:, self._s[S.QUEUE_HEAD] : self._s[S.QUEUE_TAIL]]
        waiting: Int64s = queue[0, queue[1] != S.GAP]
        return waiting

    @property
    @override
    def running(self) -> Int64s:
        return self._ends[1, : self._s[S.RUNNING]].copy()

    @override
    def next_time(self) -> int:
        self._accept()
        return int(loop.next_time(self.jobs.matrix, self._s, self._sorted, self._heap, self._ends))

    @override
    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if len(rows) == 0:
            return
        self.units.check_rows(rows)
        self._check_future(int(np.min(np.asarray(at))))
        self._take(rows)
        self.jobs.matrix[Column.SUBMIT, rows] = at
        self._pending.append(rows)

    @override
    def submit_unit(self, unit: int, at: int) -> None:
        if at < self._state[S.NOW]:
            self._check_future(at)
        units = self.units
        first, last = units.bounds[unit], units.bounds[unit + 1]
        if self.speed != 1:
            self._take(units.rows[first:last])
        self._reserve(self._state[S.HEAP_SIZE] + last - first)
        loop.submit_unit(self.jobs.matrix, self._s, self._heap, at, first, last, units.rows)

    def follow(self, first_edge: Int64s, successor: Int64s, think: Int64s) -> None:
        """Let the engine itself release units when those they wait for are over.

        The units that were defined and wait for none have to be submitted; the others start at the
        latest end of a predecessor plus its think time.

        Parameters
        ----------
        first_edge
            Shape (units + 1,): the edges that leave unit u are ``first_edge[u]`` to
            ``first_edge[u + 1]``.
        successor, think
            Shape (edges,): the unit that waits, and its think time, s.

        Raises
        ------
        QuantityError
            When there are several clusters, on any of which jobs of a unit may run.
        """
        if self.shared:
            raise QuantityError(
                "compiled users: they work on one cluster and there are several; leave out "
                "compiled=True"
            )
        units = len(self.units)
        self._links = np.zeros((units + 1, 4), np.int64)
        self._links[:, 0] = first_edge
        self._links[:units, 1] = np.bincount(successor, minlength=units)
        self._links[:, 3] = self.units.first
        self._edges = np.stack([successor, think], axis=1)
        self._s[S.RELEASE] = 1
        self._reserve(len(self.jobs))

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        if self._pending:
            self._accept()
        s = self._s
        self._state[S.FINISHED_COUNT] = 0
        self._state[S.ALLOWANCE] = events
        while True:
            stop = loop.advance(
                self.jobs.matrix,
                s,
                self._sorted,
                self._heap,
                self._queue,
                self._ends,
                self._expected,
                self.units.remaining,
                self._finished,
                self._links,
                self._edges,
                self.units.rows,
                halt,
            )
            if stop == Stop.FINISHED:
                self.finished = self._told()
                return Stop.FINISHED
            if stop != Stop.ROOM:
                return Stop(stop)
            self._enlarge()

    @override
    def pass_to(self, time: int) -> None:
        self._s[S.NOW] = time

    @override
    def complete(self) -> list[int]:
        self._s[S.FINISHED_COUNT] = 0
        while not loop.complete(
            self.jobs.matrix,
            self._s,
            self._heap,
            self._ends,
            self._expected,
            self.units.remaining,
            self._finished,
            self._links,
            self._edges,
            self.units.rows,
        ):
            self._enlarge()
        return self._told()

    @override
    def arrive(self) -> list[int]:
        self._accept()
        self._s[S.FINISHED_COUNT] = 0
        while not loop.arrive(
            self.jobs.matrix,
            self._s,
            self._sorted,
            self._heap,
            self._queue,
            self._ends,
            self.units.remaining,
            self._finished,
            self._links,
            self._edges,
            self.units.rows,
        ):
            self._enlarge()
        return self._told()

    @override
    def schedule(self) -> None:
        while not loop.schedule(self.jobs.matrix, self._s, self._queue, self._ends, self._expected):
            self._enlarge()

    def _told(self) -> list[int]:
        """Return what the last phase noted as over."""
        told: list[int] = self._finished[: self._state[S.FINISHED_COUNT]].tolist()
        return told

    def _accept(self) -> None:
        """Sort what was submitted in bulk; put a few later submissions into the heap."""
        if not self._pending:
            return
        rows = np.concatenate(self._pending)
        self._pending.clear()
        if self._s[S.SORTED_NEXT] == self._s[S.SORTED_END] and len(rows) > FIRST_ROOM // 8:
            at = self.jobs.matrix[Column.SUBMIT, rows]
            self._sorted = rows[np.lexsort((rows, at))]
            self._s[S.SORTED_NEXT], self._s[S.SORTED_END] = 0, len(rows)
        else:
            # Who follows dependencies needs room for all that may be released meanwhile.
            every = self._s[S.RELEASE]
            self._reserve(len(self.jobs) if every else int(self._s[S.HEAP_SIZE]) + len(rows))
            loop.submit_jobs(self.jobs.matrix, self._s, self._heap, rows)

    def _reserve(self, arrivals: int) -> None:
        if arrivals > self._heap.shape[1]:
            self._heap = _wider(self._heap, 2 * arrivals)

    def _enlarge(self) -> None:
        """Give more room to whatever array is full."""
        s = self._s
        if s[S.QUEUE_TAIL] >= self._queue.shape[1]:
            self._queue = _wider(self._queue, 2 * self._queue.shape[1])
        if s[S.FINISHED_COUNT] >= len(self._finished):
            self._finished = _wider(self._finished[None], 2 * len(self._finished))[0]
        need = int(s[S.RUNNING] + s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD])
        if need >= self._ends.shape[1]:
            self._ends = _wider(self._ends, 2 * need)
        waiting = int(s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD])
        if int(s[S.EXPECTED_END]) + waiting >= self._expected.shape[1]:
            self._expected = _wider(self._expected, 2 * (int(s[S.EXPECTED_END]) + waiting))


def _wider(array: Int64s, columns: int) -> Int64s:
    wider = np.zeros((array.shape[0], columns), np.int64)
    wider[:, : array.shape[1]] = array
    return wider
