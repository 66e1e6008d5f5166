"""The nodes of a machine as numbers: what each has, and sets of nodes as bits.

A set of nodes is an integer whose bit ``i`` stands for node ``i``; nodes are in the order of their
names, as Slurm keeps them (slurmctld sorts them by name when they have no topology).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.machine.model import Machine, Partition

_NUMBER = re.compile(r"(\d+)")


def _by_name(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts names with their numbers as numbers."""
    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in _NUMBER.split(name)
        if part
    ]


def bits(nodes: int) -> Iterator[int]:
    """Yield the places of the nodes in a set, in order."""
    text = bin(nodes)[:1:-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)


class Layout:
    """The nodes of a machine.

    Parameters
    ----------
    machine
        The description.

    Attributes
    ----------
    names
        Of the nodes; a node's place in this list is its number.
    cores, memory, weight
        Of each node; memory in MB, and more than any job asks for where it is not limited.
    gpus
        Of each node by type, lists in the order of ``gpu_types``.
    partitions
        By name.
    """

    UNLIMITED = 2**60

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.settings = machine.scheduling
        nodes = sorted(machine.names(), key=lambda node: _by_name(node.name))
        kinds = [machine.nodes[node.kind] for node in nodes]
        self.names = [node.name for node in nodes]
        self.kind = [node.kind for node in nodes]
        self.cores = [kind.cores for kind in kinds]
        self.memory = [kind.memory or self.UNLIMITED for kind in kinds]
        self.weight = [kind.weight for kind in kinds]
        types = sorted({name for kind in machine.nodes for name in kind.gpus})
        self.gpu_types = types
        self.gpus = [[kind.gpus.get(name, 0) for name in types] for kind in kinds]
        self._features = [frozenset(kind.features) for kind in kinds]
        self._having: dict[str, int] = {}
        found = machine.partitions or (Partition(name="all", default=True),)
        self.partitions = {one.name: one for one in found}
        self._place = {name: place for place, name in enumerate(self.names)}
        self._nodes = {one.name: self.nodes_in(one.nodes) for one in found}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def all_nodes(self) -> int:
        """The set of all nodes."""
        return (1 << len(self.names)) - 1

    @cached_property
    def all_cores(self) -> int:
        """Cores of all nodes."""
        return sum(self.cores)

    @property
    def default_partition(self) -> Partition:
        """The partition of jobs that name none: the default, or the first."""
        found = list(self.partitions.values())
        return next((one for one in found if one.default), found[0])

    def nodes_in(self, hosts: tuple[str, ...]) -> int:
        """Return the set of nodes that host lists name.

        Raises
        ------
        QuantityError
            If the machine has no such node.
        """
        if any(text.upper() == "ALL" for text in hosts):
            return self.all_nodes
        found = 0
        for text in hosts:
            for name in expand(text):
                if name not in self._place:
                    raise QuantityError(f"node {name!r}: {not_one_of(name, self.names)}")
                found |= 1 << self._place[name]
        return found

    def nodes_of(self, partition: str) -> int:
        """Return the set of nodes of a partition."""
        return self._nodes[partition]

    def tres_of(self, partition: str) -> dict[str, int]:
        """Return the resources of a partition: cpu, mem (MB), node, gres/gpu."""
        nodes = list(bits(self._nodes[partition]))
        return {
            "cpu": sum(self.cores[node] for node in nodes),
            "mem": sum(self.memory[node] for node in nodes),
            "node": len(nodes),
            "gres/gpu": sum(sum(self.gpus[node]) for node in nodes),
        }

    def having(self, features: str) -> int:
        """Return the set of nodes with features such as ``a&b``, ``a|b`` or ``[a|b]``."""
        if not features:
            return self.all_nodes
        if features not in self._having:
            found = 0
            for place, has in enumerate(self._features):
                if _matches(features, has):
                    found |= 1 << place
            self._having[features] = found
        return self._having[features]

    def gpu_kind(self, name: str) -> int:
        """Return the place of a type of GPU; -1 for any, -2 if the machine has no such type."""
        if not name:
            return -1
        return self.gpu_types.index(name) if name in self.gpu_types else -2


def _matches(features: str, has: frozenset[str]) -> bool:
    """Return whether a node with some features satisfies an expression.

    ``&`` and ``,`` bind as ``|`` does, from left to right, as in Slurm; counts such as ``a*2``
    are read as ``a``, and alternatives in brackets as alternatives.
    """
    text = features.replace("[", "(").replace("]", ")")
    found, operator = True, "&"
    for part in re.findall(r"\([^()]*\)|[&|,]|[^&|,()]+", text):
        if part in "&|,":
            operator = part
            continue
        if part.startswith("("):
            one = _matches(part[1:-1], has)
        else:
            one = part.split("*")[0].strip() in has
        found = (found or one) if operator == "|" else (found and one)
    return found
