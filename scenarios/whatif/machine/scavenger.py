"""Preemption for a scavenger queue.

Covers: partitions that preempt others; runs that are stopped, and the work that is lost with them.

Story: a partition of the lowest tier fills nodes that nobody else uses. Today its jobs stay on
their nodes until they end, and everyone else waits for them. With preemption they are stopped as
soon as a job of another partition needs their nodes, and start again from the beginning. The table
shows what the others gain, and how much work is thrown away for it.

Run: ``python -m hpcrowd.scenarios.whatif.machine.scavenger [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_script

PARTITION = "scavenger"
MODE = Preempt.REQUEUE  # what happens to a preempted job; CANCEL throws it away


def change(site: Site) -> Change:
    """Return the machine on which all other partitions preempt the jobs of one."""
    machine = site.machine
    names = [one.name for one in machine.partitions]
    if PARTITION not in names:
        raise QuantityError(
            f"partition {PARTITION!r}: {not_one_of(PARTITION, names)}; see PARTITION"
        )
    partitions = [
        one.model_copy(
            update={"priority_tier": 0, "preempt_mode": MODE}
            if one.name == PARTITION
            else {"priority_tier": one.priority_tier + 1, "preempt_mode": Preempt.OFF}
        )
        for one in machine.partitions
    ]
    preempting = {"preempt_type": "partition", "preempt_mode": MODE}
    return Change(
        f"Partition {PARTITION} is preempted ({MODE})",
        machine.changed(
            partitions=partitions, scheduling=machine.scheduling.model_copy(update=preempting)
        ),
    )


#: Prints what preemption changes; returns the exit code.
main = machine_script("scavenger", change)

if __name__ == "__main__":
    sys.exit(main())
