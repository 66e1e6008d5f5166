"""A debug partition.

Covers: nodes taken from the others for short jobs; jobs that name two partitions; a higher tier.

Story: people who try out a program wait as long as those who compute for a day. The operator takes
a node of the default partition away, and keeps it for jobs of up to an hour. Short jobs name both
partitions and run where they start first. All others have one node less.

Run: ``python -m hpcrowd.scenarios.whatif.machine.debug_partition [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.model import Partition
from hpcrowd.scenarios.whatif.machine.comparison import (
    Change,
    Site,
    ask_for_partitions,
    gpus_of,
    machine_script,
)

NODES = 1  # the last ones of the default partition
MAX_TIME = HOUR  # longest time limit in it, s
PARTITION = "debug"


def change(site: Site) -> Change:
    """Return the machine with the debug partition, which short jobs name as well."""
    machine, layout = site.machine, Layout(site.machine)
    default = layout.default_partition
    places = list(bits(layout.nodes_of(default.name)))[-NODES:]
    room = sum(layout.cores[place] for place in places)
    taken = sum(1 << place for place in places)
    others = [
        one.model_copy(
            update={"nodes": tuple(layout.names[place] for place in bits(mine & ~taken))}
        )
        for one in layout.partitions.values()
        if (mine := layout.nodes_of(one.name)) & ~taken
    ]
    debug = Partition(
        name=PARTITION,
        nodes=tuple(layout.names[place] for place in places),
        max_time=MAX_TIME,
        priority_tier=1 + max(one.priority_tier for one in others),
    )

    def choose(jobs: JobTable, row: int, asked: tuple[str, ...]) -> tuple[str, ...]:
        short = 0 < jobs.requested_time[row] <= MAX_TIME and jobs.processors[row] <= room
        if short and default.name in asked and not gpus_of(jobs, row):
            return (PARTITION, *asked)
        return asked

    return Change(
        f"Jobs of up to {MAX_TIME // 60} min may use {NODES} node of their own",
        machine.changed(partitions=(*others, debug)),
        ask_for_partitions(machine, choose),
    )


#: Prints what the debug partition changes; returns the exit code.
main = machine_script("debug_partition", change)

if __name__ == "__main__":
    sys.exit(main())
