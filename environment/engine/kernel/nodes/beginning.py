"""Jobs that run and wait when a run begins; the plain form is ``schedulers.slurm.past``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import count_submitted
from hpcrowd.environment.engine.kernel.nodes.main_pass import bar_reserved
from hpcrowd.environment.engine.kernel.nodes.placement import copy_set, select, take
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.queue import (
    hold_chosen,
    occupy,
    put_in_order,
    weigh,
)
from hpcrowd.environment.jobs import Int64Rows, Int64s


def seat_all(
    g: Site, running: Int64s, entries: Int64s, counts: Int64s, starts: Int64s, shares: Int64Rows
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
    allowed, lacks = g.sets[N.WORK + 1], -1
    for k in range(len(running)):
        take(g, g.c[N.STOCK], shares[0, k], shares[1, k], -1)
    g.c[N.BASE_OF] = -1
    for k in range(len(running)):
        if shares[0, k] < shares[1, k]:
            continue
        found = -1
        first, row = entries[k], running[k]
        for turn in range(2 * counts[k]):
            # It keeps out of reservations if it can in any partition.
            one = first + turn % counts[k]
            copy_set(allowed, g.sets[N.UP])
            if turn < counts[k]:
                bar_reserved(g, row, starts[k], g.rows[N.LIMIT, row], allowed)
            demand = g.options[N.DEMAND, g.entries[N.OPTION, one]]
            entries[k], found = one, select(g, g.c[N.STOCK], demand, allowed)
            if found >= 0:
                break
        if found < 0:
            lacks = k
            break
        shares[0, k] = hold_chosen(g, found)
        shares[1, k] = shares[0, k] + found
    for k in range(len(running)):
        if lacks >= 0:
            take(g, g.c[N.STOCK], shares[0, k], shares[1, k], 1)
        else:
            count_submitted(g, g.entries[N.OPTION, g.rows[N.ENTRY, running[k]]], 1)
            occupy(g, entries[k], starts[k], shares[0, k], shares[1, k], N.BY_MAIN)
    g.c[N.BASE_OF] = -1
    return lacks


def queue_all(g: Site, waiting: Int64s, weighed: Int64s) -> None:
    """Let jobs wait whose priorities were computed at the given seconds."""
    c, rows, order = g.c, g.rows, g.entries
    for k in range(len(waiting)):
        row = waiting[k]
        count_submitted(g, order[N.OPTION, rows[N.ENTRY, row]], 1)
        rows[N.STATUS, row] = N.WAITING
        c[N.ALL_WAITING] += 1
        weigh(g, row, weighed[k])
        for entry in range(rows[N.ENTRY, row], rows[N.ENTRY, row] + rows[N.COUNT, row]):
            order[N.PLACED, c[N.ORDERED]] = entry
            c[N.ORDERED] += 1
    put_in_order(g)
