"""Jobs that run and wait when a run begins; the plain form is ``schedulers.slurm.past``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.limits import count_submitted
from hpcrowd.environment.engine.kernel.nodes.main_pass import bar_reserved
from hpcrowd.environment.engine.kernel.nodes.placement import copy_set, select, take
from hpcrowd.environment.engine.kernel.nodes.queue import (
    hold_chosen,
    occupy,
    put_in_order,
    weigh,
)
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.jobs import Int64Rows, Int64s


def seat_all(
    site: Site, running: Int64s, entries: Int64s, counts: Int64s, starts: Int64s, shares: Int64Rows
) -> int:
    """Let jobs run since their starts; return the place of one that has no room, -1 for none.

    Then nothing is held.

    Parameters
    ----------
    g
        All arrays.
    running, starts
        Rows by start, and the starts, s.
    entries, counts
        First entry of each job to try, and how many; becomes the entry with which it runs.
    shares
        First and end of the shares that each is known to hold; both equal where it is not known.
    """
    settings = site.settings
    allowed, lacks = site.sets[N.WORK + 1], -1
    for k in range(len(running)):
        take(site, settings.stock, shares[0, k], shares[1, k], -1)
    site.controller.base_of = -1
    for k in range(len(running)):
        if shares[0, k] < shares[1, k]:
            continue
        found = -1
        first, row = entries[k], running[k]
        for turn in range(2 * counts[k]):
            # It keeps out of reservations if it can in any partition.
            one = first + turn % counts[k]
            copy_set(allowed, site.sets[N.UP])
            if turn < counts[k]:
                bar_reserved(site, row, starts[k], site.rows.limit[row], allowed)
            demand = site.options.demand[site.entries.option[one]]
            entries[k], found = one, select(site, settings.stock, demand, allowed)
            if found >= 0:
                break
        if found < 0:
            lacks = k
            break
        shares[0, k] = hold_chosen(site, found)
        shares[1, k] = shares[0, k] + found
    for k in range(len(running)):
        if lacks >= 0:
            take(site, settings.stock, shares[0, k], shares[1, k], 1)
        else:
            count_submitted(site, site.entries.option[site.rows.entry[running[k]]], 1)
            occupy(site, entries[k], starts[k], shares[0, k], shares[1, k], N.BY_MAIN)
    site.controller.base_of = -1
    return lacks


def queue_all(site: Site, waiting: Int64s, weighed: Int64s) -> None:
    """Let jobs wait whose priorities were computed at the given seconds."""
    c, rows, order = site.controller, site.rows, site.entries
    for k in range(len(waiting)):
        row = waiting[k]
        count_submitted(site, order.option[rows.entry[row]], 1)
        rows.status[row] = N.WAITING
        c.waiting += 1
        weigh(site, row, weighed[k])
        for entry in range(rows.entry[row], rows.entry[row] + rows.count[row]):
            order.placed[c.ordered] = entry
            c.ordered += 1
    put_in_order(site)
