"""What a job asks of the nodes of a partition, worked out from its request and the machine.

The rules are those of sbatch(1) and of Slurm's select/cons_tres: cores in multiples of what a task
takes, memory for each node or core, GPUs for each node or the job, features, whole nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, JobTable, name_of
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Partition
from hpcrowd.environment.requests import Ask, Requests

#: Any number of nodes.
ANY = 2**31


@dataclass(frozen=True)
class Demand:
    """What one job asks in one partition.

    Attributes
    ----------
    nodes
        Bits of the nodes that it may use at all: partition and features.
    least_nodes, most_nodes
        How many nodes.
    cores
        In all.
    cores_per_task
        Cores on a node are a multiple of this.
    least_cores, most_cores
        On each node.
    memory_per_node, memory_per_core
        MB; 0 for none. ``whole_memory`` for all of the node's.
    gpus, gpus_per_node
        In all, and on each node; ``gpu_kind`` is the place of the type, -1 for any.
    whole
        Whether it gets whole nodes, which must be idle.
    """

    nodes: int
    least_nodes: int
    most_nodes: int
    cores: int
    cores_per_task: int = 1
    least_cores: int = 1
    most_cores: int = ANY
    memory_per_node: int = 0
    memory_per_core: int = 0
    whole_memory: bool = False
    gpus: int = 0
    gpus_per_node: int = 0
    gpu_kind: int = -1
    whole: bool = False

    @cached_property
    def cores_only(self) -> bool:
        """Whether a node with enough free cores has all that it asks of one."""
        memory = self.memory_per_node or self.memory_per_core or self.whole_memory
        return not (self.whole or memory or self.gpus_per_node)


def partitions_asked(layout: Layout, jobs: JobTable, row: int) -> tuple[str, ...]:
    """Return the partitions that a job names, in its order; perhaps unknown ones.

    Without a request it is the one that its queue is called after, or else the default one.
    """
    named = "" if jobs.requests is None else jobs.requests.word(Ask.PARTITIONS, row)
    wanted = tuple(dict.fromkeys(name.strip() for name in named.split(",") if name.strip()))
    if wanted:
        return wanted
    queue = name_of(jobs.names, "queue", int(jobs.queue[row]))
    return (queue if queue in layout.partitions else layout.default_partition.name,)


def demand_of(layout: Layout, partition: Partition, jobs: JobTable, row: int) -> Demand:
    """Return what a job asks for in a partition.

    Without ``jobs.requests`` it asks for processors and memory only.
    """
    requests = jobs.requests

    def asked(ask: Ask) -> int:
        return UNKNOWN if requests is None else int(requests[ask][row])

    machine, nodes = layout.machine, layout.nodes_of(partition.name)
    per_task = max(asked(Ask.CORES_PER_TASK), 1)
    tasks, per_node = asked(Ask.TASKS), asked(Ask.TASKS_PER_NODE)
    least, most = max(asked(Ask.NODES), 1), asked(Ask.MAX_NODES)
    most = ANY if most < 1 else most
    if tasks < 1:
        tasks = -(-int(jobs.processors[row]) // per_task)
        if per_node > 0 and asked(Ask.NODES) > 0:
            tasks = max(tasks, per_node * least)
    if per_node > 0:
        least = max(least, -(-tasks // per_node))
    if requests is not None:
        nodes &= layout.having(requests.word(Ask.FEATURES, row))
    least = max(least, partition.min_nodes)
    if partition.max_nodes is not None:
        most = min(most, partition.max_nodes)
    cores = max(tasks * per_task, least)
    if layout.settings.whole_nodes:
        whole = True
    else:
        whole = partition.exclusive or asked(Ask.EXCLUSIVE) == 1
    memory_node, memory_core = _memory(layout, partition, jobs, row)
    gpus, gpus_node = max(asked(Ask.GPUS), 0), max(asked(Ask.GPUS_PER_NODE), 0)
    per_gpu_task = asked(Ask.GPUS_PER_TASK)
    if per_gpu_task > 0:
        if per_node > 0:
            gpus_node = max(gpus_node, per_gpu_task * per_node)
        else:
            gpus = max(gpus, per_gpu_task * tasks)
    kind = -1
    if requests is not None and (gpus or gpus_node):
        kind = layout.gpu_kind(requests.word(Ask.GPU_TYPE, row))
    counted = machine.scheduling.memory_counts
    return Demand(
        nodes=nodes,
        least_nodes=least,
        most_nodes=most,
        cores=cores,
        cores_per_task=per_task,
        least_cores=max(per_node, 1) * per_task if per_node > 0 and most == least else per_task,
        most_cores=min(
            per_node * per_task if per_node > 0 else ANY, partition.max_cores_per_node or ANY
        ),
        memory_per_node=max(memory_node, 0) if counted else 0,
        memory_per_core=max(memory_core, 0) if counted else 0,
        whole_memory=counted and memory_node == 0,
        gpus=gpus,
        gpus_per_node=gpus_node,
        gpu_kind=kind,
        whole=whole,
    )


def _memory(layout: Layout, partition: Partition, jobs: JobTable, row: int) -> tuple[int, int]:
    """Return MB per node and per core; -1 for neither, and 0 per node for all of it."""
    requests: Requests | None = jobs.requests
    node = core = UNKNOWN
    if requests is not None:
        node = int(requests[Ask.MEMORY_PER_NODE][row])
        core = int(requests[Ask.MEMORY_PER_CORE][row])
    if node == core == UNKNOWN and jobs.requested_memory[row] > 0:
        core = int(np.ceil(jobs.requested_memory[row] / 1024))
    if node == UNKNOWN and core == UNKNOWN:
        settings = layout.settings
        for of_node, of_core in (
            (partition.default_memory_per_node, partition.default_memory_per_core),
            (settings.default_memory_per_node, settings.default_memory_per_core),
        ):
            if of_node:
                return of_node, UNKNOWN
            if of_core:
                return UNKNOWN, of_core
    return node, core
