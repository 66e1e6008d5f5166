"""When a waiting job starts, by a cycle of backfilling on a copy of all arrays."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.backfill import backfill_cycle
from hpcrowd.environment.engine.kernel.nodes.preemption import order_of
from hpcrowd.environment.engine.kernel.nodes.site import Site


def foretell(site: Site, row: int, now: int) -> int:
    """Return when a waiting job starts if it may start from now on; -1 if that is not foretold."""
    site.rows.eligible[row] = min(site.rows.eligible[row], now)
    _leave_out(site, row, now)
    backfill_cycle(site, now)
    if site.rows.status[row] == N.RUNNING:
        return now
    return site.rows.planned[row]


def _leave_out(site: Site, row: int, now: int) -> None:
    """Take out of the queue what comes behind a job in all its partitions, or may not start yet."""
    c, rows, entries = site.controller, site.rows, site.entries
    order, last, to = order_of(site, now), -1, 0
    for i in range(c.ordered):
        if entries.owner[entries.table[order, i]] == row:
            last = i
    c.stamp += 1
    for i in range(last + 1):
        other = entries.owner[entries.table[order, i]]
        if rows.eligible[other] <= now:
            rows.mark[other] = c.stamp
    for i in range(c.ordered):
        entry = entries.placed[i]
        other = entries.owner[entry]
        if rows.mark[other] == c.stamp:
            entries.key[to], entries.placed[to] = entries.key[i], entry
            to += 1
        elif rows.status[other] == N.WAITING:
            rows.status[other] = N.AWAY
            c.waiting -= 1
    c.ordered = to
