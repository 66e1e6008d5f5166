"""The broker's queue in the arrays that :mod:`environment.engine.kernel.grid_loop` works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.compiled import CompiledEngine, wider, with_room
from hpcrowd.environment.engine.dispatch import Dispatch
from hpcrowd.environment.engine.kernel import grid_loop as G
from hpcrowd.environment.engine.kernel import grid_queue as C
from hpcrowd.environment.engine.kernel import grid_queue as Q
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.grid.policies import (
    FastestCompletion,
    FirstFit,
    GridPolicy,
    LeastLoaded,
    Site,
    WorstFit,
)
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.units import UnitTable

#: Policies that run compiled.
COMPILED = {
    FirstFit: C.FIRST_FIT,
    WorstFit: C.WORST_FIT,
    LeastLoaded: C.LEAST_LOADED,
    FastestCompletion: C.FASTEST_COMPLETION,
}

#: Places that arrays have at first.
FIRST_ROOM = 1024


def dispatches_compiled(engines: Sequence[Engine], policy: GridPolicy) -> bool:
    """Return whether a broker of these clusters runs compiled.

    It does not where platforms change, since a cluster may have to catch up before a job joins it;
    nor where a policy outside the compiled loop keeps the queue that estimates are to look at.
    """
    return type(policy) in COMPILED and all(
        isinstance(engine, CompiledEngine)
        and engine.timeline is None
        and (type(policy) is not FastestCompletion or engine.scalars[S.POLICY] in (S.FCFS, S.EASY))
        for engine in engines
    )


class BrokerArrays:
    """What the kernel knows of a broker, and of all clusters together.

    Parameters
    ----------
    engines
        The clusters.
    policy
        Of the broker, its number in the kernel.

    Attributes
    ----------
    scalars, arrivals, tree, sizes, chain, speeds, pending, counts, free, scratch
        See :mod:`kernel.grid_loop` and :mod:`kernel.grid_queue`.
    """

    def __init__(self, engines: Sequence[Engine], policy: int = C.NONE) -> None:
        widest = max(engine.processors for engine in engines)
        leaves = 1 << widest.bit_length()
        self.scalars = np.zeros(G.GRID_COUNT, np.int64)
        self.scalars[G.BROKER], self.scalars[G.WIDEST] = policy, widest
        self.arrivals = np.zeros((2, FIRST_ROOM), np.int64)
        self.tree = np.full(2 * leaves, FOREVER)
        self.sizes = np.full((2, leaves), UNKNOWN)
        self.chain = np.full((2, FIRST_ROOM), UNKNOWN)
        self.speeds = np.array([engine.speed for engine in engines], np.float64)
        self.pending = np.zeros((len(engines), FIRST_ROOM), np.int64)
        self.counts = np.zeros(len(engines), np.int64)
        self.free = np.zeros(len(engines), np.int64)
        self.scratch = np.zeros((2, FIRST_ROOM), np.int64)

    def of_kernel(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order in which the kernel takes them."""
        return (
            self.arrivals, self.tree, self.sizes, self.chain, self.speeds, self.pending,
            self.counts, self.free, self.scratch,
        )  # fmt: skip

    def enlarge(self, jobs: int) -> None:
        """Make room for so many jobs that wait or run on a cluster."""
        self.scratch = with_room(self.scratch, 2 * jobs + 2)
        if (self.counts == self.pending.shape[1]).any():
            self.pending = wider(self.pending, 2 * self.pending.shape[1])


class CompiledDispatch(Dispatch):
    """A broker's queue; the lock-step of the clusters, compiled, moves the jobs.

    Attributes
    ----------
    arrays
        Where the jobs are.
    """

    def __init__(
        self,
        jobs: JobTable,
        units: UnitTable,
        sites: Sequence[Site],
        policy: GridPolicy,
        number: int,
    ) -> None:
        super().__init__(jobs, units, sites, policy, number)
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
    def _expect(self, rows: Int64s, times: Int64s) -> None:
        arrays, g = self.arrays, self.arrays.scalars
        arrays.arrivals = with_room(arrays.arrivals, 2 * int(g[G.EXPECTED] + len(rows)))
        missing = len(self.jobs) - arrays.chain.shape[1]
        if missing > 0:
            more = np.full((2, max(missing, arrays.chain.shape[1])), UNKNOWN)
            arrays.chain = np.concatenate((arrays.chain, more), axis=1)
        g[G.EXPECTED] = G.push_arrivals(self.jobs.matrix, arrays.arrivals, g[G.EXPECTED], rows)
