"""Several compiled clusters and the queue of their broker, run by one loop.

:mod:`hpcrowd.environment.grid.kernel.loop` does what :mod:`hpcrowd.environment.engine.lock_step`
and :mod:`hpcrowd.environment.grid.broker` do in plain Python; it returns for what only Python can
do: the pass of a policy outside the loop, a change of the platform, or an array that must grow. It
works on the arrays of the engines, each of which can still be used like a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

import numpy as np

from hpcrowd.environment.engine.base import Engine, events_for
from hpcrowd.environment.engine.compiled import NO_JOBS, CompiledEngine
from hpcrowd.environment.engine.kernel.arrays import wider, with_room, without
from hpcrowd.environment.engine.kernel.cluster import EASY, FCFS, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.lock_step import BrokerQueue, LockStep
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.grid.broker import Dispatch
from hpcrowd.environment.grid.kernel import loop as G
from hpcrowd.environment.grid.kernel import queue as Q
from hpcrowd.environment.grid.policies import (
    FastestCompletion,
    FirstFit,
    GridPolicy,
    LeastLoaded,
    Site,
    WorstFit,
)
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.stops import FOREVER, Stop

#: Compiled policies.
COMPILED = {
    FirstFit: Q.FIRST_FIT,
    WorstFit: Q.WORST_FIT,
    LeastLoaded: Q.LEAST_LOADED,
    FastestCompletion: Q.FASTEST_COMPLETION,
}

#: Initial length of arrays, and room for jobs that end at one instant.
FIRST_ROOM, FIRST_OVER = 1024, 256


def dispatches_compiled(engines: Sequence[Engine], policy: GridPolicy) -> bool:
    """Return whether a broker of these clusters runs compiled.

    It does not if platforms change, since a cluster may have to catch up before a job joins it, or
    if a policy outside the compiled loop keeps the queue that completion estimates need.
    """
    return type(policy) in COMPILED and all(
        isinstance(engine, CompiledEngine)
        and engine.timeline is None
        and (type(policy) is not FastestCompletion or engine.state.policy in (FCFS, EASY))
        for engine in engines
    )


class BrokerArrays:
    """The kernel's arrays of a broker, and of all clusters together.

    ``policy`` is the number of the broker's policy in the kernel; for ``instant`` and ``broker``
    see :mod:`hpcrowd.environment.grid.kernel.loop`, and ``queue`` beside it.
    """

    def __init__(self, engines: Sequence[Engine], policy: int = Q.NONE) -> None:
        widest = max(engine.processors for engine in engines)
        leaves, count = 1 << widest.bit_length(), len(engines)
        whole = np.zeros(count, np.int64)
        pairs = np.zeros((2, FIRST_ROOM), np.int64)
        self.broker = Q.Broker(
            Heap(pairs.copy()), np.full(2 * leaves, FOREVER), np.full((2, leaves), UNKNOWN),
            np.full((2, FIRST_ROOM), UNKNOWN),
            np.array([engine.speed for engine in engines], np.float64),
            np.zeros((count, FIRST_ROOM), np.int64), whole.copy(), whole.copy(), Heap(pairs),
        )  # fmt: skip
        over = np.zeros(FIRST_OVER, np.int64)
        self.instant = G.Instant(
            NO_JOBS, np.zeros(0, np.int64), over, over.copy(), whole.copy(), whole, policy, widest
        )

    def enlarge(self, jobs: int) -> None:
        """Make room for ``jobs`` jobs that wait or run on a cluster."""
        broker = self.broker
        broker.scratch.table = with_room(broker.scratch.table, 2 * jobs + 2)
        if max(broker.counts) == broker.pending.shape[1]:
            broker.pending = wider(broker.pending, 2 * broker.pending.shape[1])


class CompiledDispatch(Dispatch):
    """A broker's queue; the compiled lock-step of the clusters moves the jobs in its arrays."""

    def __init__(
        self, jobs: JobTable, units: UnitTable, sites: Sequence[Site], policy: GridPolicy
    ) -> None:
        super().__init__(jobs, units, sites, policy)
        self.arrays = BrokerArrays([site.engine for site in sites], COMPILED[type(policy)])

    @property
    @override
    def waiting(self) -> Int64s:
        place = self.arrays.broker.place
        held = np.flatnonzero(place != UNKNOWN)
        ordered: Int64s = held[np.argsort(place[held])]
        return ordered

    @property
    @override
    def held(self) -> list[tuple[int, ...]]:
        return [(row,) for row in self.waiting.tolist()]

    @override
    def next_time(self) -> int:
        arrays = self.arrays
        return int(arrays.broker.arrivals.time[0]) if arrays.instant.expected else FOREVER

    @override
    def withdraw(self, rows: Int64s) -> None:
        instant = self.arrays.instant
        instant.expected = without(self.arrays.broker.arrivals, instant.expected, rows)

    @override
    def _let_go(self, rows: Int64s) -> None:
        broker, jobs = self.arrays.broker, self.jobs
        held = self.waiting
        self.arrays.instant.held -= len(rows)
        broker.tree[:], broker.sizes[:], broker.chain[:] = FOREVER, UNKNOWN, UNKNOWN
        for row in held[~np.isin(held, rows)].tolist():
            place = Q.place_of(jobs.submit[row], row)
            Q.put(broker, row, jobs.processors[row], place)

    @override
    def _expect(self, rows: Int64s, times: Int64s) -> None:
        broker, instant = self.arrays.broker, self.arrays.instant
        arrivals = broker.arrivals
        arrivals.table = with_room(arrivals.table, 2 * (instant.expected + len(rows)))
        known = broker.chain.shape[1]
        if len(self.jobs) > known:
            broker.chain = wider(broker.chain, max(len(self.jobs), 2 * known), UNKNOWN)
        table = Jobs(self.jobs.matrix)
        instant.expected = G.push_arrivals(table, arrivals, instant.expected, rows)


def compiled_lock_step(
    engines: Sequence[Engine], units: UnitTable, queue: BrokerQueue | None
) -> CompiledLockStep | None:
    """Return what advances engines together; None if one runs alone, or something is plain."""
    compiled = [one for one in engines if isinstance(one, CompiledEngine) and not one.alone]
    if len(compiled) < len(engines):
        return None
    if queue is None or isinstance(queue, CompiledDispatch):
        return CompiledLockStep(compiled, units, queue)
    return None


class CompiledLockStep(LockStep):
    """Advances compiled engines together; see the module's text, and LockStep."""

    def __init__(
        self,
        engines: Sequence[CompiledEngine],
        units: UnitTable,
        dispatch: CompiledDispatch | None = None,
    ) -> None:
        super().__init__(engines, units, dispatch)
        self._compiled = engines
        self._waiting = 0  # when the engines last paused
        self._arrays = BrokerArrays(engines) if dispatch is None else dispatch.arrays

    @property
    @override
    def events(self) -> int:
        return self._arrays.instant.events

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        instant, engines = self._arrays.instant, self._compiled
        allowed = min(self.events + events_for(self._waiting, events), FOREVER)
        while True:
            for engine in engines:
                engine._accept()
            instant.jobs, instant.remaining = Jobs(self.units.jobs.matrix), self.units.remaining
            clusters = [engine.arrays() for engine in engines]
            stop = G.advance_grid(clusters, instant, self._arrays.broker, halt, allowed)
            self.now = instant.time
            self.dispatch.pass_to(self.now)
            if stop == Stop.FINISHED:
                self.finished = np.asarray(instant.units)[: instant.finished].tolist()
            elif stop == Stop.ROOM:
                self._enlarge(instant.at)
                continue
            elif stop == Stop.PASS:
                engines[instant.at].schedule()
                continue
            elif stop == Stop.CHANGE:
                changed: list[Engine] = []
                self._change(changed)
                for place, engine in enumerate(engines):
                    instant.active[place] |= engine in changed
                if not self.finished:
                    continue
                stop = Stop.FINISHED
            elif stop == Stop.PAUSE:
                self._waiting = sum(engine.queue_length for engine in engines) + instant.held
            return Stop(stop)

    @override
    def look_again(self) -> None:
        instant = self._arrays.instant
        if instant.held:
            instant.again = instant.time

    def _enlarge(self, place: int) -> None:
        """Give more room to whatever array is full."""
        engine, instant = self._compiled[place], self._arrays.instant
        noted = instant.noted + engine.state.finished
        if noted >= len(instant.over):
            instant.over = wider(instant.over, len(instant.over) + noted)
            instant.units = np.zeros_like(instant.over)
        if place >= 0:
            engine._enlarge()
            self._arrays.enlarge(len(engine.running) + len(engine.waiting))
