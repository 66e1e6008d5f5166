"""Draining a rack on Monday.

Covers: a reservation for maintenance; jobs that do not start because they would run into it.

Story: electricians need one rack on Monday from 8 to 18 o'clock. No job may run there then, so the
scheduler starts no job on these nodes whose time limit reaches into Monday morning: the rack runs
empty over the weekend, but for short jobs. The table shows what the day costs.

The machine of nodes has all its nodes from the first second to the last; a reservation says when
they may not be used. Nodes that fail without notice, come or go during a run, or change their
speed belong to changes of the platform, which are for pools of equal processors: with a machine
they are refused in one line.

Run: ``python -m hpcrowd.scenarios.whatif.machine.drain_rack [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.model import Reservation
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_script
from hpcrowd.scenarios.whatif.scripts import covered, in_week

WEEK = 0  # counted from 0 at the first Monday of the log
DAY_OF_WEEK = 0  # Monday
HOURS = (8 * HOUR, 18 * HOUR)  # local time, s of the day
RACK = 1 / 3  # of the nodes of the default partition, the first ones


def change(site: Site) -> Change:
    """Return the machine with the reservation."""
    machine, layout = site.machine, Layout(site.machine)
    clock = Clock.of(site.trace.header)
    begin, end = (in_week(clock, WEEK, DAY_OF_WEEK, time) for time in HOURS)
    covered(site.trace, end, f"the end of the work in week {WEEK}, see WEEK")
    places = list(bits(layout.nodes_of(layout.default_partition.name)))
    rack = places[: max(1, round(RACK * len(places)))]
    work = Reservation(
        name="rack",
        start=begin,
        end=end,
        nodes=tuple(layout.names[place] for place in rack),
        maintenance=True,
    )
    return Change(
        f"{len(rack)} nodes reserved from {clock.local(begin):%a %Y-%m-%d %H:%M} to "
        f"{clock.local(end):%H:%M}",
        machine.changed(reservations=(*machine.reservations, work)),
    )


#: Prints what the work on the rack costs; returns the exit code.
main = machine_script("drain_rack", change)

if __name__ == "__main__":
    sys.exit(main())
