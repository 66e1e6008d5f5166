"""What running jobs give back at their latest ends, and when a waiting job could start with it.

On each node it is known what is free after each of those ends, whatever job looks for room; so that
a start is foretold by going through the ends once, without releasing anything.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.placement import (
    bits_of,
    choose,
    has,
    may_suffice,
    note_usable,
    size,
    take,
    usable_of,
)
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.preemption import copy_stock
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.schedulers.slurm.timing import KILL_WAIT, MOST_TAKEN_OUT, TIME_WINDOW

#: Number of releases if they have not been laid out.
STALE = -1

#: With at most one in so many of all nodes to look at, only their releases are gone through.
FEW_NODES = 4

#: Releases of which it is noted at once what a job could use.
AT_ONCE = 64


def copy_without(g: Site, victims: int) -> int:
    """Copy what is free without the first candidates of preemption, and return its place."""
    future = copy_stock(g)
    for i in range(victims):
        tenure = g.rows[N.TENURE, g.lists[N.VICTIM, i]]
        take(g, future, g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure], 1)
    return future


def lay_out_releases(g: Site, victims: int) -> None:
    """Lay out what is free after each end of a running job, but for candidates of preemption."""
    future, to, out, nodes = copy_without(g, victims), 0, g.releases, g.nodes
    g.c[N.STAMP] += 1
    for i in range(victims):
        g.rows[N.MARK, g.lists[N.VICTIM, i]] = g.c[N.STAMP]
    for place in range(g.c[N.ALL_RUNNING]):
        row = g.lists[N.END_OF, place]
        if g.rows[N.MARK, row] == g.c[N.STAMP]:
            continue
        tenure, end = g.rows[N.TENURE, row], g.lists[N.END_AT, place]
        for i in range(g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure]):
            node = g.held[N.S_NODE, i]
            nodes[future + N.FREE_CORES, node] += g.held[N.S_CORES, i]
            nodes[future + N.FREE_MEMORY, node] += g.held[N.S_MEMORY, i]
            nodes[future + N.JOBS_HERE, node] -= 1
            for kind in range(g.c[N.KINDS]):
                nodes[future + N.FREE_GPUS + kind, node] += g.held[N.S_GPUS + kind, i]
                out[N.R_GPUS + kind, to] = nodes[future + N.FREE_GPUS + kind, node]
            out[N.R_END, to], out[N.R_JOB, to], out[N.R_NODE, to] = end, row, node
            out[N.R_CORES, to] = nodes[future + N.FREE_CORES, node]
            out[N.R_MEMORY, to] = nodes[future + N.FREE_MEMORY, node]
            out[N.R_HERE, to] = nodes[future + N.JOBS_HERE, node]
            to += 1
    g.c[N.ALL_RELEASES], g.c[N.EVENTS_OF], g.c[N.CHAINED] = to, -1, 0


def note_start(g: Site, row: int) -> None:
    """Correct what was laid out for a job that has just started."""
    c, out, held = g.c, g.releases, g.held
    if c[N.ALL_RELEASES] == STALE:
        return
    tenure = g.rows[N.TENURE, row]
    first, last = g.ledger[N.L_FIRST, tenure], g.ledger[N.L_LAST, tenure]
    end, count, stock = (
        g.ledger[N.L_START, tenure] + g.rows[N.LIMIT, row],
        c[N.ALL_RELEASES],
        c[N.STOCK],
    )
    place = 0
    while place < count and (
        out[N.R_END, place] < end or (out[N.R_END, place] == end and out[N.R_JOB, place] < row)
    ):
        place += 1
    added = last - first
    for field in range(N.R_GPUS + c[N.KINDS]):
        for i in range(count - 1, place - 1, -1):
            out[field, i + added] = out[field, i]
    for i in range(first, last):
        node, to = held[N.S_NODE, i], place + i - first
        # When it ends, all is as it would have been without it.
        out[N.R_END, to], out[N.R_JOB, to], out[N.R_NODE, to] = end, row, node
        out[N.R_CORES, to] = g.nodes[stock + N.FREE_CORES, node] + held[N.S_CORES, i]
        out[N.R_MEMORY, to] = g.nodes[stock + N.FREE_MEMORY, node] + held[N.S_MEMORY, i]
        out[N.R_HERE, to] = g.nodes[stock + N.JOBS_HERE, node] - 1
        for kind in range(c[N.KINDS]):
            gpus = g.nodes[stock + N.FREE_GPUS + kind, node] + held[N.S_GPUS + kind, i]
            out[N.R_GPUS + kind, to] = gpus
        for k in range(place):
            if out[N.R_NODE, k] == node:
                out[N.R_CORES, to], out[N.R_MEMORY, to] = out[N.R_CORES, k], out[N.R_MEMORY, k]
                out[N.R_HERE, to] = out[N.R_HERE, k]
                out[N.R_CORES, k] -= held[N.S_CORES, i]
                out[N.R_MEMORY, k] -= held[N.S_MEMORY, i]
                out[N.R_HERE, k] += 1
                for kind in range(c[N.KINDS]):
                    out[N.R_GPUS + kind, to] = out[N.R_GPUS + kind, k]
                    out[N.R_GPUS + kind, k] -= held[N.S_GPUS + kind, i]
    c[N.ALL_RELEASES], c[N.EVENTS_OF], c[N.CHAINED] = count + added, -1, 0


def _next_on(out: Int64Rows, nodes: Int64s, i: int, count: int) -> int:
    """Return the first release from ``i`` on that is on one of some nodes, or ``count``."""
    while i < count:
        node = out[N.R_NODE, i]
        if (nodes[node >> 6] >> (node & 63)) & 1:
            break
        i += 1
    return i


def _mark_releases(g: Site, nodes: Int64s) -> None:
    """Mark the releases that are on some nodes."""
    out, first, count = g.releases, g.nodes[N.FIRST_RELEASE], g.c[N.ALL_RELEASES]
    marks, following = out[N.R_MARKS], out[N.R_NEXT]
    if not g.c[N.CHAINED]:
        for node in range(len(first)):
            first[node] = -1
        for i in range(count - 1, -1, -1):
            following[i] = first[out[N.R_NODE, i]]
            first[out[N.R_NODE, i]] = i
        g.c[N.CHAINED] = 1
    for place in range((count + 63) >> 6):
        marks[place] = 0
    for place in range(len(nodes)):
        word = nodes[place]
        while word:
            i = first[(place << 6) + bits_of((word & -word) - 1)]
            word &= word - 1
            while i >= 0:
                marks[i >> 6] |= 1 << (i & 63)
                i = following[i]


def _next_marked(out: Int64Rows, i: int, count: int) -> int:
    """Return the first release from ``i`` on that is marked, or ``count``."""
    place, last = i >> 6, (count + 63) >> 6
    if place >= last:
        return count
    word = out[N.R_MARKS, place] & (-1 << (i & 63))
    while not word:
        place += 1
        if place == last:
            return count
        word = out[N.R_MARKS, place]
    return (place << 6) + bits_of((word & -word) - 1)


def start_after_releases(g: Site, d: int, free: Int64s, now: int, victims: int) -> tuple[int, int]:
    """Return when a job could start on nodes that were looked at, and its shares; -1 for never.

    Running jobs end at their limits; ends close to each other count as one. The first ``victims``
    candidates of preemption have been let go.
    """
    if g.c[N.ALL_RELEASES] == STALE:
        lay_out_releases(g, victims)
    c, out, job = g.c, g.releases, -1
    if c[N.EVENTS_OF] != d:
        c[N.EVENTS_OF], c[N.EVENTS] = d, 0
    count = c[N.ALL_RELEASES]
    window, barrier, given, end = TIME_WINDOW, 0, 0, 0
    few = size(free) * FEW_NODES <= g.nodes.shape[1]
    if few:
        _mark_releases(g, free)
    i = -1
    while True:
        i = _next_marked(out, i + 1, count) if few else _next_on(out, free, i + 1, count)
        if i >= count:
            break
        node = out[N.R_NODE, i]
        if out[N.R_JOB, i] != job:
            # The next job to end that holds some of the nodes.
            job, its_end = out[N.R_JOB, i], out[N.R_END, i]
            if not given:
                if not barrier:
                    barrier = its_end + window - its_end % window
            elif its_end > barrier + window or given > MOST_TAKEN_OUT:
                while True:
                    window *= 2
                    if its_end <= barrier + window:
                        break
                if may_suffice(g, d):
                    shares = _choose_after(g, d, i, victims)
                    if shares >= 0:
                        return (end if end > now else now + KILL_WAIT), shares
                given = 0
            given += 1
            end = its_end
        if i >= c[N.EVENTS]:
            _learn_events(g, d, i)
        note_usable(g, d, node, out[N.R_USABLE, i], out[N.R_USABLE_GPUS, i])
    if given and may_suffice(g, d):
        shares = _choose_after(g, d, count, victims)
        if shares >= 0:
            return (end if end > now else now + KILL_WAIT), shares
    return -1, -1


def _learn_events(g: Site, d: int, last: int) -> None:
    """Note what a job could use after releases up to one, and some more."""
    c, out, demands = g.c, g.releases, g.demands
    kind, set_of = demands[N.GPU_KIND, d], g.sets[g.c[N.SETS] + demands[N.SET, d]]
    looks_at_gpus = demands[N.GPUS, d] > 0 or demands[N.NODE_GPUS, d] > 0
    for i in range(c[N.EVENTS], min(last + AT_ONCE, c[N.ALL_RELEASES])):
        node, gpus, cores = out[N.R_NODE, i], 0, 0
        if has(set_of, node):
            if looks_at_gpus:
                if kind >= 0:
                    gpus = out[N.R_GPUS + kind, i]
                elif kind == -1:
                    for one in range(c[N.KINDS]):
                        gpus += out[N.R_GPUS + one, i]
            cores = usable_of(
                g, d, node, out[N.R_CORES, i], out[N.R_MEMORY, i], out[N.R_HERE, i], gpus
            )
        out[N.R_USABLE, i], out[N.R_USABLE_GPUS, i] = cores, gpus
        c[N.EVENTS] = i + 1


def _choose_after(g: Site, d: int, count: int, victims: int) -> int:
    """Choose among the nodes that were looked at, after some of the releases."""
    stock = g.c[N.STOCK]
    if g.demands[N.GPUS, d] or g.demands[N.NODE_GPUS, d] or g.c[N.RULE] != N.CONSECUTIVE:
        out, nodes, stock = g.releases, g.nodes, copy_without(g, victims)
        for i in range(count):
            node = out[N.R_NODE, i]
            nodes[stock + N.FREE_CORES, node] = out[N.R_CORES, i]
            for kind in range(g.c[N.KINDS]):
                nodes[stock + N.FREE_GPUS + kind, node] = out[N.R_GPUS + kind, i]
    return choose(g, stock, d)
