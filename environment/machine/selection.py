"""What is free on each node, and which nodes a job gets: the plain forms.

A job gets nodes by Slurm's consecutive nodes, first fit, best fit, spread, or a rule of your own. A
rule is called with the nodes that a job could use and how many cores of each, and names nodes until
the job has what it asks. ``slurm`` follows select/cons_tres: nodes of small weight first; among
runs of consecutive usable nodes the smallest that suffices; a job that fits on one node gets the
one with the fewest usable cores. The others are common in the literature on packing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


#: A rule: (stock, demand, nodes that can be used with their cores) -> nodes in the order of use.
Rule = Callable[[Stock, Demand, dict[int, int]], Sequence[int]]


def first_fit(stock: Stock, demand: Demand, usable: dict[int, int]) -> Sequence[int]:
    """Take nodes in the order of weight and place."""
    return sorted(usable, key=lambda node: (stock.layout.weight[node], node))


def best_fit(stock: Stock, demand: Demand, usable: dict[int, int]) -> Sequence[int]:
    """Take the fullest nodes first, small weights before."""
    weight = stock.layout.weight
    return sorted(usable, key=lambda node: (weight[node], stock.cores[node], node))


def spread(stock: Stock, demand: Demand, usable: dict[int, int]) -> Sequence[int]:
    """Take the nodes with the largest share of free cores first, as LLN of slurm.conf does."""
    cores, weight = stock.layout.cores, stock.layout.weight
    return sorted(usable, key=lambda node: (weight[node], -stock.cores[node] / cores[node], node))


#: Rules by name; ``slurm`` is :func:`select` itself.
RULES: dict[str, Rule | None] = {
    "slurm": None,
    "first-fit": first_fit,
    "best-fit": best_fit,
    "spread": spread,
}


def select(stock: Stock, demand: Demand, allowed: int, rule: Rule | None = None) -> Holding | None:
    """Return what a job would hold if it started; None if it does not fit.

    Parameters
    ----------
    stock
        What is free.
    demand
        What the job asks.
    allowed
        The set of nodes that it may use now, besides ``demand.nodes``.
    rule
        The order of nodes; None for Slurm's.
    """
    usable = stock.all_usable(demand.nodes & allowed, demand)
    if len(usable) < demand.least_nodes:
        return None
    found = _choose(stock, demand, usable, rule)
    if found is None and demand.most_nodes < len(usable):
        # A knapsack: the nodes with few cores are left out, the smallest first.
        for least in sorted(set(usable.values()))[:-1]:
            fuller = {node: cores for node, cores in usable.items() if cores > least}
            if len(fuller) < demand.least_nodes:
                break
            found = _choose(stock, demand, fuller, rule)
            if found is not None:
                break
    return found


def _choose(
    stock: Stock, demand: Demand, usable: dict[int, int], rule: Rule | None
) -> Holding | None:
    left = _Left(stock, demand)
    if rule is not None:
        left.use(rule(stock, demand, usable), usable)
        return left.holding
    weight = stock.layout.weight
    runs = _runs(usable, weight)
    while runs and not left.done and left.nodes_left > 0:
        best = _best_run(runs, usable, weight, left)
        run = runs.pop(best)
        if left.nodes_wanted <= 1:
            alone = [node for node in run if left.suffices(node, usable[node])]
            if alone:
                run = [min(alone, key=lambda node: (usable[node], node))]
        left.use(run, usable)
    return left.holding


def _runs(usable: dict[int, int], weight: Sequence[int]) -> list[list[int]]:
    """Return runs of consecutive usable nodes of equal weight."""
    runs: list[list[int]] = []
    for node in usable:
        if runs and runs[-1][-1] == node - 1 and weight[runs[-1][-1]] == weight[node]:
            runs[-1].append(node)
        else:
            runs.append([node])
    return runs


def _best_run(
    runs: list[list[int]], usable: dict[int, int], weight: Sequence[int], left: _Left
) -> int:
    """Return the place of the run to use next."""
    best, best_cores, best_enough = 0, 0, False
    for place, run in enumerate(runs):
        cores = sum(usable[node] for node in run)
        enough = cores >= left.cores and len(run) >= left.nodes_wanted
        if enough and left.gpus:
            kind = left.demand.gpu_kind
            enough = sum(left.stock.free_gpus(node, kind) for node in run) >= left.gpus
        heavier = weight[run[0]] - weight[runs[best][0]]
        if (
            place == 0
            or heavier < 0
            or (
                heavier == 0
                and (
                    (enough and (not best_enough or cores < best_cores))
                    or (not enough and not best_enough and cores > best_cores)
                )
            )
        ):
            best, best_cores, best_enough = place, cores, enough
    return best


class _Left:
    """What a job still lacks while nodes are chosen."""

    def __init__(self, stock: Stock, demand: Demand) -> None:
        self.stock, self.demand = stock, demand
        self.cores, self.gpus = demand.cores, demand.gpus
        self.nodes_wanted, self.nodes_left = demand.least_nodes, demand.most_nodes
        self.shares: list[Share] = []

    @property
    def done(self) -> bool:
        return self.cores <= 0 and self.nodes_wanted <= 0 and self.gpus <= 0

    @property
    def holding(self) -> Holding | None:
        return tuple(sorted(self.shares)) if self.done else None

    def suffices(self, node: int, cores: int) -> bool:
        """Return whether a node alone has all that is left."""
        kind = self.demand.gpu_kind
        return cores >= self.cores and (
            not self.gpus or self.stock.free_gpus(node, kind) >= self.gpus
        )

    def use(self, nodes: Sequence[int], usable: dict[int, int]) -> None:
        """Use nodes until the job has enough."""
        demand, share = self.demand, self.stock.share
        lacking, wanted, left = self.cores, self.nodes_wanted, self.nodes_left
        per_task, least, whole = demand.cores_per_task, demand.least_cores, demand.whole
        for node in nodes:
            if left <= 0 or (lacking <= 0 and wanted <= 0 and self.gpus <= 0):
                break
            cores = usable[node]
            if left == 1 and cores < lacking:
                continue  # one more node is all it may have, and this is too small
            if not whole:
                # A core is kept for each further node that it wants.
                most = lacking - (wanted - 1) * per_task if wanted > 1 else lacking
                cores = most if cores > most else cores
                cores = least if cores < least else cores
            gpus = demand.gpus_per_node
            if self.gpus > 0:
                gpus = max(gpus, min(self.stock.free_gpus(node, demand.gpu_kind), self.gpus))
            self.shares.append(share(node, cores, gpus, demand))
            lacking -= cores
            self.gpus -= gpus if demand.gpus else 0
            wanted -= 1
            left -= 1
        self.cores, self.nodes_wanted, self.nodes_left = lacking, wanted, left
