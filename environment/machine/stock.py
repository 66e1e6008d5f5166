"""What is free on each node, and which jobs hold what: the plain form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout, bits


class Share(NamedTuple):
    """What a job holds on one node."""

    node: int
    cores: int
    memory: int  #: MB
    gpus: tuple[int, ...]  #: by type


#: What a job holds on all its nodes, by node.
Holding = tuple[Share, ...]


class Stock:
    """Free cores, memory and GPUs of each node.

    Parameters
    ----------
    layout
        The nodes.

    Attributes
    ----------
    cores, memory, gpus, jobs
        Free cores and MB, free GPUs by type, and the number of jobs, of each node.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.cores = list(layout.cores)
        self.memory = list(layout.memory)
        self.gpus = [list(one) for one in layout.gpus]
        self.jobs = [0] * len(layout)
        self._no_gpus = (0,) * len(layout.gpu_types)

    def copy(self) -> Stock:
        """Return an independent copy."""
        other = object.__new__(Stock)
        other.layout, other._no_gpus = self.layout, self._no_gpus
        other.cores, other.memory = list(self.cores), list(self.memory)
        other.gpus = [list(one) for one in self.gpus]
        other.jobs = list(self.jobs)
        return other

    def take(self, holding: Iterable[Share]) -> None:
        """Let a job hold its shares."""
        self._change(holding, -1)

    def give(self, holding: Iterable[Share]) -> None:
        """Let a job give its shares back."""
        self._change(holding, 1)

    def _change(self, holding: Iterable[Share], sign: int) -> None:
        for node, cores, memory, gpus in holding:
            self.cores[node] += sign * cores
            self.memory[node] += sign * memory
            self.jobs[node] -= sign
            for kind, count in enumerate(gpus):
                self.gpus[node][kind] += sign * count

    def all_usable(self, nodes: int, demand: Demand) -> dict[int, int]:
        """Return the nodes of a set that a job could use, in order, with their cores."""
        found = {}
        if demand.cores_only:
            free, least, most = self.cores, demand.least_cores, demand.most_cores
            for node in bits(nodes):
                cores = free[node] if free[node] < most else most
                cores -= cores % demand.cores_per_task
                if cores >= least:
                    found[node] = cores
            return found
        for node in bits(nodes):
            cores = self.usable(node, demand)
            if cores:
                found[node] = cores
        return found

    def usable(self, node: int, demand: Demand) -> int:
        """Return how many cores of a node a job could use; 0 if it cannot use the node."""
        cores = self.cores[node]
        if demand.whole and self.jobs[node]:
            return 0
        cores = min(cores, demand.most_cores)
        memory = self.memory[node]
        if demand.whole_memory:
            if memory < self.layout.memory[node]:
                return 0
        elif memory < demand.memory_per_node:
            return 0
        if demand.memory_per_core:
            per_core = demand.memory_per_core
            if demand.whole:
                if memory < per_core * self.layout.cores[node]:
                    return 0
            else:
                cores = min(cores, memory // per_core)
        if demand.gpus_per_node and self.free_gpus(node, demand.gpu_kind) < demand.gpus_per_node:
            return 0
        cores -= cores % demand.cores_per_task
        return cores if cores >= demand.least_cores else 0

    def free_gpus(self, node: int, kind: int) -> int:
        """Return the free GPUs of a node, of one type, or of all with -1."""
        if kind == -2:
            return 0
        return sum(self.gpus[node]) if kind < 0 else self.gpus[node][kind]

    def share(self, node: int, cores: int, gpus: int, demand: Demand) -> Share:
        """Return what a job holds on a node of which it uses some cores and GPUs."""
        if demand.cores_only and not gpus:
            return Share(node, cores, 0, self._no_gpus)
        if demand.whole:
            cores = self.layout.cores[node]
        if demand.whole_memory:
            memory = self.layout.memory[node]
        else:
            memory = demand.memory_per_node or demand.memory_per_core * cores
        held, left = [], gpus
        for kind, free in enumerate(self.gpus[node]):
            if demand.whole:
                held.append(self.layout.gpus[node][kind])
                continue
            fits = left if demand.gpu_kind in (-1, kind) else 0
            held.append(min(free, fits))
            left -= held[-1]
        return Share(node, cores, memory, tuple(held))
