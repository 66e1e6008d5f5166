"""What is free on the nodes, with a quick answer where that is nothing; and places of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from operator import le
from typing import NamedTuple, override

from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.stock import Holding, Share, Stock


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
    """A stock that also knows which nodes have a free core, and how many cores are free in all.

    Attributes
    ----------
    open
        The set of nodes with a free core.
    free
        Free cores of all nodes.
    """

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
