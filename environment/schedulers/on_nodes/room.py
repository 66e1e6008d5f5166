"""What is free on each node: now, and from now on in steps of time, as arrays.

The steps are those at which something changes. Whether a job has room in each of them is found for
all steps at once; the answer for one start is then that of the plain stock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import le
from typing import NamedTuple, override

import numpy as np

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.selection import Holding, Share, Stock
from hpcrowd.environment.stops import FOREVER


class Place(NamedTuple):
    """Where a job runs, or could: a partition, and what it holds on nodes."""

    partition: str
    holding: Holding

    @property
    def nodes(self) -> int:
        """The set of its nodes."""
        found = 0
        for share in self.holding:
            found |= 1 << share.node
        return found


class OpenStock(Stock):
    """A stock that knows the set of nodes with a free core, and how many cores are free in all."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.count()

    def count(self) -> None:
        """Count the free cores anew, after they were set."""
        self.free = sum(self.cores)
        self.open = sum(1 << node for node, cores in enumerate(self.cores) if cores > 0)

    @override
    def copy(self) -> OpenStock:
        """Return an independent copy."""
        other = object.__new__(OpenStock)
        vars(other).update(vars(super().copy()), free=self.free, open=self.open)
        return other

    def free_on(self, nodes: int) -> int:
        """Return the free cores of a set of nodes."""
        if nodes == self.layout.all_nodes:
            return self.free
        return sum(self.cores[node] for node in bits(nodes & self.open))

    def holds(self, holding: Holding) -> bool:
        """Return whether all that a job would hold is free."""
        return all(
            share.cores <= self.cores[share.node]
            and share.memory <= self.memory[share.node]
            and all(map(le, share.gpus, self.gpus[share.node]))
            for share in holding
        )

    @override
    def _change(self, holding: Iterable[Share], sign: int) -> None:
        super()._change(holding, sign)
        for share in holding:
            self.free += sign * share.cores
            if self.cores[share.node] > 0:
                self.open |= 1 << share.node
            else:
                self.open &= ~(1 << share.node)


#: Amounts of a node, in order: free cores, minus the jobs on it, free MB, then free GPUs by type.
CORES, IDLE, MEMORY, GPUS = 0, 1, 2, 3

#: Changes up to which each is made by itself; more are summed up over all steps.
FEW = 4

#: Holdings that are kept as arrays.
MOST_ARRAYS = 20_000

#: A change: start and end, s since the origin, what a job holds, and 1 to free it, -1 to take it.
Change = tuple[int, int, Holding, int]


class Arrays:
    """Holdings and sets of nodes as arrays, kept from pass to pass."""

    def __init__(self) -> None:
        self._holdings: dict[int, tuple[Holding, Int64s, Int64s]] = {}
        self._sets: dict[int, Int64s] = {}

    def of(self, holding: Holding) -> tuple[Int64s, Int64s]:
        """Return the nodes of a holding, and its amounts, shape (nodes, amounts)."""
        if id(holding) not in self._holdings:
            if len(self._holdings) >= MOST_ARRAYS:
                self._holdings.clear()
            nodes = np.array([share.node for share in holding], np.int64)
            amounts = np.array([(one.cores, 1, one.memory, *one.gpus) for one in holding], np.int64)
            self._holdings[id(holding)] = holding, nodes, amounts
        return self._holdings[id(holding)][1:]

    def nodes(self, nodes: int) -> Int64s:
        """Return a set of nodes, in order."""
        if nodes not in self._sets:
            self._sets[nodes] = np.array(list(bits(nodes)), np.int64)
        return self._sets[nodes]


class RoomOverTime:
    """Free amounts of each node in each step.

    The first step begins now, with what is free now, others at ``turns``. ``times`` are the begins
    of the steps, s since the origin; the last one has no end.
    """

    def __init__(
        self,
        layout: Layout,
        stock: OpenStock,
        arrays: Arrays,
        now: int,
        turns: Sequence[int],
    ) -> None:
        self.layout, self._arrays = layout, arrays
        self.times = [now]
        self._free = np.empty((1, GPUS + len(layout.gpu_types), len(layout)), np.int64)
        self._free[0, CORES], self._free[0, MEMORY] = stock.cores, stock.memory
        self._free[0, IDLE] = stock.jobs
        self._free[0, IDLE] *= -1
        if layout.gpu_types:
            self._free[0, GPUS:] = np.array(stock.gpus).T
        self._split(set(turns))

    @property
    def short(self) -> bool:
        """Whether more is taken somewhere than there is."""
        free = self._free
        return bool((free[:, CORES] < 0).any() or (free[:, MEMORY:] < 0).any())

    def change(self, changes: Sequence[Change]) -> None:
        """Free, or take, what jobs hold for some time."""
        self._split({time for start, end, _, _ in changes for time in (start, end)})
        if len(changes) <= FEW:
            for start, end, holding, sign in changes:
                nodes, amounts = self._arrays.of(holding)
                self._free[self._step(start) : self._step(end), :, nodes] += sign * amounts.T
            return
        steps = np.zeros_like(self._free)
        for start, end, holding, sign in changes:
            nodes, amounts = self._arrays.of(holding)
            steps[self._step(start), :, nodes] += sign * amounts
            if end < FOREVER:
                steps[self._step(end), :, nodes] -= sign * amounts
        self._free += np.cumsum(steps, axis=0)

    def _step(self, time: int) -> int:
        """Return the number of the first step that begins at or after a time."""
        return bisect_left(self.times, time)

    def _split(self, times: set[int]) -> None:
        """Let steps begin at some times."""
        more = {time for time in times if time < FOREVER and not self._begins(time)}
        if not more:
            return
        old, self.times = np.array(self.times), sorted({*self.times, *more})
        self._free = self._free[np.searchsorted(old, self.times, "right") - 1]

    def _begins(self, time: int) -> bool:
        """Return whether a step begins at a time."""
        step = self._step(time)
        return step < len(self.times) and self.times[step] == time

    # room

    def usable(self, demand: Demand, until: int) -> Int64s:
        """Return how many cores a job could use of its nodes, as ``Stock.usable`` does.

        Shape (steps, nodes); steps that begin before ``until``.
        """
        nodes = self._arrays.nodes(demand.nodes)
        free = self._free[: self._step(until)]
        free = free if len(nodes) == len(self.layout) else free[:, :, nodes]
        cores = np.minimum(free[:, CORES], demand.most_cores)
        if demand.cores_only:
            if demand.cores_per_task > 1:
                cores -= cores % demand.cores_per_task
            cores[cores < demand.least_cores] = 0
            return cores
        memory = free[:, MEMORY]
        bad = np.zeros_like(cores, bool)
        if demand.whole:
            bad |= free[:, IDLE] != 0
        if demand.whole_memory:
            bad |= memory < np.array(self.layout.memory)[nodes]
        elif demand.memory_per_node:
            bad |= memory < demand.memory_per_node
        if demand.memory_per_core and demand.whole:
            sizes = np.array(self.layout.cores)[nodes]
            bad |= memory < demand.memory_per_core * sizes
        elif demand.memory_per_core:
            cores = np.minimum(cores, memory // demand.memory_per_core)
        if demand.gpus_per_node:
            kinds = [demand.gpu_kind] if demand.gpu_kind >= 0 else range(free.shape[1] - GPUS)
            gpus = sum(free[:, GPUS + kind] for kind in kinds)
            bad |= gpus < demand.gpus_per_node
        cores -= cores % demand.cores_per_task
        cores[bad | (cores < demand.least_cores)] = 0
        return cores

    def starts(self, demand: Demand, usable: Int64s, lasts: int) -> list[int]:
        """Return the steps from which on each has, by itself, room for a job until it ends.

        What is tested does not suffice: numbers of nodes and cores.
        """
        enough = (usable > 0).sum(axis=1) >= demand.least_nodes
        enough &= usable.sum(axis=1) >= demand.cores
        count = len(usable)
        times = np.array(self.times[:count])
        short = np.append(np.flatnonzero(~enough), count)
        nexts = short[np.searchsorted(short, np.arange(count))]
        ends = np.searchsorted(times, times + lasts)
        found: list[int] = np.flatnonzero(enough & (nexts >= ends)).tolist()
        return found

    def steps(self, begin: int, end: int) -> tuple[int, int]:
        """Return the first step of a time that begins with a step, and the first after it."""
        return self._step(begin), self._step(end)

    def stock(self, first: int, last: int) -> OpenStock:
        """Return what is free throughout the steps from ``first`` to before ``last``."""
        free = self._free[first] if last == first + 1 else self._free[first:last].min(axis=0)
        stock = OpenStock.__new__(OpenStock)
        stock.layout, stock._no_gpus = self.layout, (0,) * len(self.layout.gpu_types)
        stock.cores, stock.memory = free[CORES].tolist(), free[MEMORY].tolist()
        stock.jobs = (-free[IDLE]).tolist()
        stock.gpus = free[GPUS:].T.tolist()
        stock.count()
        return stock
