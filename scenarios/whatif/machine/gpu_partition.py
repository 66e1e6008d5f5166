"""A new GPU partition.

Covers: new nodes in a partition of their own; jobs that name two partitions; GPUs in use.

Story: jobs wait days for GPUs, and money for one more node is there. The new node becomes a
partition with the rules of the present one, and all jobs that ask for GPUs may run in either:
their users submit to both. Rigid users show how much shorter the queue becomes; users who wait for
their results send the next job sooner, so that part of the gain goes into more work.

Run: ``python -m hpcrowd.scenarios.whatif.machine.gpu_partition [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import NodeType
from hpcrowd.scenarios.whatif.machine.comparison import (
    Change,
    Site,
    ask_for_partitions,
    gpus_of,
    machine_script,
)

NODES = 1  # new ones
CORES = 32  # of each
MEMORY = 262_144  # MB of each
GPUS = {"a100": 4}  # of each, by type
PARTITION = "gpu-new"


def change(site: Site) -> Change:
    """Return the machine with the new nodes, to which GPU jobs go as well."""
    machine, layout = site.machine, Layout(site.machine)
    like = next(
        (one for one in machine.partitions if layout.tres_of(one.name)["gres/gpu"]),
        layout.default_partition,
    )
    name = f"{PARTITION}[1-{NODES}]"
    node = NodeType(name=name, cores=CORES, memory=MEMORY, gpus=GPUS)
    new = like.model_copy(update={"name": PARTITION, "nodes": (name,), "default": False})
    return Change(
        f"{NODES * sum(GPUS.values())} more GPUs in partition {PARTITION}",
        machine.changed(
            nodes=(*machine.nodes, node), partitions=(*layout.partitions.values(), new)
        ),
        ask_for_partitions(
            machine, lambda jobs, row, asked: (*asked, PARTITION) if gpus_of(jobs, row) else asked
        ),
    )


#: Prints what the new partition changes; returns the exit code.
main = machine_script("gpu_partition", change)

if __name__ == "__main__":
    sys.exit(main())
