"""Node sharing on or off.

Covers: whole nodes or shared ones; cores that nobody uses although they are taken.

Story: users complain that the jobs of others on their nodes disturb them, and ask for whole nodes;
or nodes are whole today, and the operator wonders what sharing would save. The script asks the
opposite of what the machine does. A job on a whole node counts with all of its cores, so that
cores in use rise when sharing ends, although no more work is done.

Run: ``python -m hpcrowd.scenarios.whatif.machine.node_sharing [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.machine.layout import Layout
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_script

PARTITIONS = ()  # names of those that change; empty for all


def change(site: Site) -> Change:
    """Return the machine with whole nodes if all are shared now, else with shared ones."""
    machine, layout = site.machine, Layout(site.machine)
    chosen = PARTITIONS or tuple(layout.partitions)
    whole = not machine.scheduling.whole_nodes and not any(
        one.exclusive for one in layout.partitions.values() if one.name in chosen
    )
    return Change(
        "Whole nodes for every job" if whole else "Shared nodes",
        machine.changed(
            partitions=[
                one.model_copy(update={"exclusive": whole}) if one.name in chosen else one
                for one in layout.partitions.values()
            ],
            scheduling=machine.scheduling.model_copy(update={"whole_nodes": False}),
        ),
    )


#: Prints what sharing or not changes; returns the exit code.
main = machine_script("node_sharing", change)

if __name__ == "__main__":
    sys.exit(main())
