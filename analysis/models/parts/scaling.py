"""What a job asks of a machine, scaled to another number of processors.

Memory per core is kept, and so are GPUs per core, in whole GPUs. A job that was packed on as few
nodes as possible stays so; one that was spread keeps its cores per node. Tasks stay as wide as they
are, or as the number of processors divides by. All of it stays within what the nodes of the
partition have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from pydantic import Field, NonNegativeInt, PositiveInt

from hpcrowd.analysis.models.parts.base import Numbers
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.quantities import round_half_up


@dataclass(frozen=True)
class Room:
    """What jobs can have in a partition; on nodes that differ, on the largest.

    Attributes
    ----------
    cores, nodes
        In all.
    node_cores, node_gpus, node_memory
        On a node; memory in MB, 0 if it is not known.
    longest_s
        Longest requested time, s; infinite if it is not known.
    """

    cores: int
    nodes: int
    node_cores: int
    node_gpus: int = 0
    node_memory: int = 0
    longest_s: float = float("inf")

    def most_nodes(self, cores: int) -> int:
        """Return the most nodes of a job: more than are known if it has more cores than they."""
        return max(self.nodes, -(-cores // self.node_cores))


class SeenRoom(Numbers):
    """What jobs of a partition had at most in a trace."""

    partitions: str = Field(description="the partitions that they name")
    cores: PositiveInt = Field(description="cores of a job")
    nodes: PositiveInt = Field(description="nodes of a job")
    node_cores: PositiveInt = Field(description="cores on a node")
    node_gpus: NonNegativeInt = Field(0, description="GPUs on a node")
    node_memory: NonNegativeInt = Field(0, description="MB; memory on a node")
    longest_s: NonNegativeInt = Field(0, description="s; requested time, 0 if it is not known")

    @classmethod
    def of(cls, partitions: str, used: list[tuple[int, ...]]) -> Self:
        """Return the most of what jobs of a partition had, as :meth:`Asked.used` says it."""
        names = [name for name in cls.model_fields if name != "partitions"]
        most = [max(column) for column in zip(*used, strict=True)]
        return cls(partitions=partitions, **dict(zip(names, most, strict=True)))

    @property
    def room(self) -> Room:
        """The room that a partition has as far as is known."""
        return Room(
            self.cores, self.nodes, self.node_cores, self.node_gpus, self.node_memory,
            self.longest_s or float("inf"),
        )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What one job asks of a machine.

    Attributes
    ----------
    values
        Numbers and texts by request; what is missing is not asked for.
    """

    values: dict[Ask, Any]

    @classmethod
    def of(cls, named: dict[str, int | str]) -> Self:
        """Return what the requests of some names say."""
        return cls({Ask[name.upper()]: value for name, value in named.items()})

    def number(self, ask: Ask) -> int:
        """Return a number; :data:`UNKNOWN` if it is not asked for."""
        found: int = self.values.get(ask, UNKNOWN)
        return found

    @cached_property
    def partitions(self) -> str:
        """The partitions that it names; empty for none."""
        return str(self.values.get(Ask.PARTITIONS, ""))

    @property
    def nodes(self) -> int:
        """Least nodes; 1 if it does not ask for more."""
        return max(self.number(Ask.NODES), 1)

    def gpus(self, cores: int) -> int:
        """Return the GPUs of the whole job; 0 for none."""
        tasks = self.number(Ask.TASKS)
        if tasks < 1:
            tasks = -(-cores // max(self.number(Ask.CORES_PER_TASK), 1))
        return max(
            self.number(Ask.GPUS),
            self.number(Ask.GPUS_PER_NODE) * self.nodes,
            self.number(Ask.GPUS_PER_TASK) * tasks,
            0,
        )

    def used(self, cores: int, limit: float) -> tuple[int, ...]:
        """Return what such a job has, in the order of the fields of :class:`SeenRoom`.

        Parameters
        ----------
        cores
            Its processors.
        limit
            Its requested time, s; negative if it is not known.
        """
        nodes = min(self.nodes, cores)
        on_node = -(-cores // nodes)
        return (
            cores,
            nodes,
            on_node,
            -(-self.gpus(cores) // nodes),
            round_half_up(self.memory_per_core(cores) * on_node),
            max(round_half_up(limit), 0),
        )

    def memory_per_core(self, cores: int) -> float:
        """Return MB for each core; 0 if it does not ask for any, or for all of the node."""
        of_core, of_node = self.number(Ask.MEMORY_PER_CORE), self.number(Ask.MEMORY_PER_NODE)
        return float(max(of_core, 0)) or max(of_node, 0) * min(self.nodes, cores) / cores


def scaled(asked: Asked, before: int, cores: int, room: Room) -> dict[Ask, Any]:
    """Return what a job asks for on another number of cores.

    Parameters
    ----------
    asked, before
        What it asked for, and for how many cores.
    cores
        How many it has now.
    room
        What its partition has room for.
    """
    found = dict(asked.values)
    memory = asked.memory_per_core(before)
    gpus = asked.gpus(before)
    if gpus:
        gpus = max(round_half_up(gpus * cores / before), 1)
    nodes = _nodes(asked, before, cores, room)
    if gpus and room.node_gpus:
        nodes = max(nodes, min(-(-gpus // room.node_gpus), cores, room.most_nodes(cores)))
        gpus = min(gpus, nodes * room.node_gpus)
    on_node = -(-cores // nodes)
    if room.node_memory and memory * on_node > room.node_memory:
        memory = room.node_memory / on_node
    if Ask.NODES in found:
        found[Ask.NODES] = nodes
    if Ask.MAX_NODES in found:
        most = asked.number(Ask.MAX_NODES)
        found[Ask.MAX_NODES] = nodes if most == asked.nodes else max(most, nodes)
    if Ask.MEMORY_PER_CORE in found:
        found[Ask.MEMORY_PER_CORE] = max(int(memory), 1)
    if found.get(Ask.MEMORY_PER_NODE, 0) > 0:
        found[Ask.MEMORY_PER_NODE] = max(int(memory * on_node), 1)
    _scale_tasks(found, asked, cores, nodes)
    _scale_gpus(found, gpus, nodes)
    return found


def _nodes(asked: Asked, before: int, cores: int, room: Room) -> int:
    """Return the nodes of a job on another number of cores."""
    on_node, memory = room.node_cores, asked.memory_per_core(before)
    if room.node_memory and memory:
        on_node = max(min(on_node, int(room.node_memory / memory)), 1)
    packed = -(-cores // on_node)
    if asked.nodes > -(-before // on_node):
        packed = max(packed, round_half_up(cores * asked.nodes / before))
    return max(min(packed, cores, room.most_nodes(cores)), 1)


def _scale_tasks(found: dict[Ask, Any], asked: Asked, cores: int, nodes: int) -> None:
    """Set the tasks of a job: as wide as before, if its cores divide by that."""
    width = max(asked.number(Ask.CORES_PER_TASK), 1)
    width = next(one for one in range(min(width, cores), 0, -1) if cores % one == 0)
    if Ask.CORES_PER_TASK in found:
        found[Ask.CORES_PER_TASK] = width
    if Ask.TASKS in found:
        found[Ask.TASKS] = cores // width
    if Ask.TASKS_PER_NODE in found:
        found[Ask.TASKS_PER_NODE] = -(-(cores // width) // nodes)


def _scale_gpus(found: dict[Ask, Any], gpus: int, nodes: int) -> None:
    """Set the GPUs of a job, for each node if it asked so."""
    asked = [ask for ask in (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK) if ask in found]
    for ask in asked:
        del found[ask]
    if gpus and asked == [Ask.GPUS_PER_NODE] and gpus % nodes == 0:
        found[Ask.GPUS_PER_NODE] = gpus // nodes
    elif gpus:
        found[Ask.GPUS] = gpus
