"""Several compiled clusters and the queue of their broker, run by one loop.

:mod:`hpcrowd.environment.grid.kernel.loop` does what :mod:`hpcrowd.environment.engine.lock_step`
and :mod:`hpcrowd.environment.grid.dispatch` do in plain Python; it returns for what only Python can
do: the pass of a policy outside the loop, a change of the platform, or an array that must grow. It
works on the arrays of the engines, each of which can still be used like a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

import numpy as np

from hpcrowd.environment.engine.base import Engine, events_for
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.arrays import Groups, wider, with_room, without
from hpcrowd.environment.engine.lock_step import BrokerQueue, LockStep
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.grid.dispatch import Dispatch
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
        and (type(policy) is not FastestCompletion or engine.scalars[S.POLICY] in (S.FCFS, S.EASY))
        for engine in engines
    )


class BrokerArrays:
    """The kernel's arrays of a broker, and of all clusters together.

    Parameters
    ----------
    engines
        The clusters.
    policy
        Number of the broker's policy in the kernel.

    Attributes
    ----------
    scalars, arrivals, tree, sizes, chain, speeds, pending, counts, free, scratch
        See :mod:`hpcrowd.environment.grid.kernel.loop`, and ``Broker`` in ``queue`` beside it.
    """

    def __init__(self, engines: Sequence[Engine], policy: int = Q.NONE) -> None:
        widest = max(engine.processors for engine in engines)
        leaves = 1 << widest.bit_length()
        self.scalars = np.zeros(G.GRID_COUNT, np.int64)
        self.scalars[G.BROKER], self.scalars[G.WIDEST] = policy, widest
        self.scalars[G.AGAIN] = FOREVER
        self.arrivals = np.zeros((2, FIRST_ROOM), np.int64)
        self.tree = np.full(2 * leaves, FOREVER)
        self.sizes = np.full((2, leaves), UNKNOWN)
        self.chain = np.full((2, FIRST_ROOM), UNKNOWN)
        self.speeds = np.array([engine.speed for engine in engines], np.float64)
        self.pending = np.zeros((len(engines), FIRST_ROOM), np.int64)
        self.counts = np.zeros(len(engines), np.int64)
        self.free = np.zeros(len(engines), np.int64)
        self.scratch = np.zeros((2, FIRST_ROOM), np.int64)
        self._groups = Groups()

    def of_kernel(self) -> Q.Broker:
        """Return the arrays as compiled code takes them; others once one has grown."""
        return self._groups.of(
            Q.Broker, self.arrivals, self.tree, self.sizes, self.chain, self.speeds, self.pending,
            self.counts, self.free, self.scratch,
        )  # fmt: skip

    def enlarge(self, jobs: int) -> None:
        """Make room for ``jobs`` jobs that wait or run on a cluster."""
        self.scratch = with_room(self.scratch, 2 * jobs + 2)
        if (self.counts == self.pending.shape[1]).any():
            self.pending = wider(self.pending, 2 * self.pending.shape[1])


class CompiledDispatch(Dispatch):
    """A broker's queue; the compiled lock-step of the clusters moves the jobs.

    Attributes
    ----------
    arrays
        The arrays with the jobs.
    """

    def __init__(
        self, jobs: JobTable, units: UnitTable, sites: Sequence[Site], policy: GridPolicy
    ) -> None:
        super().__init__(jobs, units, sites, policy)
        self.arrays = BrokerArrays([site.engine for site in sites], COMPILED[type(policy)])

    @property
    @override
    def waiting(self) -> Int64s:
        place = self.arrays.chain[Q.PLACE]
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
        return int(arrays.arrivals[0, 0]) if arrays.scalars[G.EXPECTED] else FOREVER

    @override
    def withdraw(self, rows: Int64s) -> None:
        arrays, g = self.arrays, self.arrays.scalars
        g[G.EXPECTED] = without(arrays.arrivals, int(g[G.EXPECTED]), rows)

    @override
    def _let_go(self, rows: Int64s) -> None:
        arrays, jobs = self.arrays, self.jobs
        held = self.waiting
        arrays.scalars[G.HELD] -= len(rows)
        arrays.tree[:], arrays.sizes[:], arrays.chain[:] = FOREVER, UNKNOWN, UNKNOWN
        broker = arrays.of_kernel()
        for row in held[~np.isin(held, rows)].tolist():
            place = Q.place_of(jobs.submit[row], row)
            Q.put(broker, row, jobs.processors[row], place)

    @override
    def _expect(self, rows: Int64s, times: Int64s) -> None:
        arrays, g = self.arrays, self.arrays.scalars
        arrays.arrivals = with_room(arrays.arrivals, 2 * int(g[G.EXPECTED] + len(rows)))
        missing = len(self.jobs) - arrays.chain.shape[1]
        if missing > 0:
            more = np.full((2, max(missing, arrays.chain.shape[1])), UNKNOWN)
            arrays.chain = np.concatenate((arrays.chain, more), axis=1)
        g[G.EXPECTED] = G.push_arrivals(self.jobs.matrix, arrays.arrivals, g[G.EXPECTED], rows)


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
    """Advances compiled engines together; see the module's text.

    Parameters
    ----------
    engines, units, dispatch
        See :class:`~hpcrowd.environment.engine.lock_step.LockStep`; all compiled.
    """

    def __init__(
        self,
        engines: Sequence[CompiledEngine],
        units: UnitTable,
        dispatch: CompiledDispatch | None = None,
    ) -> None:
        super().__init__(engines, units, dispatch)
        self._compiled = engines
        self._waiting = 0  # when the engines last paused
        self._broker = BrokerArrays(engines) if dispatch is None else dispatch.arrays
        self._groups = Groups()
        self._active = np.zeros(len(engines), np.int64)
        self._dues = np.zeros(len(engines), np.int64)
        self._over = np.zeros(FIRST_OVER, np.int64)
        self._units = np.zeros(FIRST_OVER, np.int64)

    @property
    @override
    def events(self) -> int:
        return int(self._broker.scalars[G.TOTAL])

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        g, engines = self._broker.scalars, self._compiled
        allowed = min(self.events + events_for(self._waiting, events), FOREVER)
        while True:
            for engine in engines:
                engine._accept()
            instant = self._groups.of(
                G.Instant, self.units.jobs.matrix, self.units.remaining, g, self._over,
                self._units, self._active, self._dues,
            )  # fmt: skip
            clusters = [engine.arrays() for engine in engines]
            stop = G.advance_grid(clusters, instant, self._broker.of_kernel(), halt, allowed)
            self.now = int(g[G.TIME])
            self.dispatch.pass_to(self.now)
            if stop == Stop.FINISHED:
                self.finished = self._units[: g[G.UNITS]].tolist()
            elif stop == Stop.ROOM:
                self._enlarge(int(g[G.AT]))
                continue
            elif stop == Stop.PASS:
                engines[g[G.AT]].schedule()
                continue
            elif stop == Stop.CHANGE:
                changed: list[Engine] = []
                self._change(changed)
                for place, engine in enumerate(engines):
                    self._active[place] |= engine in changed
                if not self.finished:
                    continue
                stop = Stop.FINISHED
            elif stop == Stop.PAUSE:
                self._waiting = int(sum(engine.queue_length for engine in engines) + g[G.HELD])
            return Stop(stop)

    @override
    def look_again(self) -> None:
        g = self._broker.scalars
        if g[G.HELD]:
            g[G.AGAIN] = g[G.TIME]

    def _enlarge(self, place: int) -> None:
        """Give more room to whatever array is full."""
        engine = self._compiled[place]
        noted = self._broker.scalars[G.OVER] + engine.scalars[S.FINISHED_COUNT]
        if noted >= len(self._over):
            self._over = np.append(self._over, np.zeros(noted, np.int64))
            self._units = np.zeros_like(self._over)
        if place >= 0:
            engine._enlarge()
            self._broker.enlarge(len(engine.running) + len(engine.waiting))
