"""What running jobs give back at their latest ends, and when a waiting job could start with it.

On each node it is known what is free after each of those ends, whatever job looks for room; so that
a start is foretold by going through the ends once, without releasing anything.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.placement import (
    bits_of,
    choose,
    has,
    lend,
    may_suffice,
    note_usable,
    size,
    take,
    usable_of,
)
from hpcrowd.environment.engine.kernel.nodes.preemption import copy_stock
from hpcrowd.environment.engine.kernel.nodes.queue import fate_of
from hpcrowd.environment.engine.kernel.nodes.site import Releases, Site
from hpcrowd.environment.jobs import Int64s

#: Number of releases if they have not been laid out.
STALE = -1

#: With at most one in so many of all nodes to look at, only their releases are gone through.
FEW_NODES = 4

#: Releases of which it is noted at once what a job could use.
AT_ONCE = 64


def copy_without(site: Site, victims: int) -> int:
    """Copy what is free without the first candidates of preemption, and return its place."""
    future = copy_stock(site)
    for i in range(victims):
        row = site.lists.victim[i]
        tenure = site.rows.tenure[row]
        first, last = site.ledger.first[tenure], site.ledger.last[tenure]
        if fate_of(site, row) == N.SUSPENDED:
            lend(site, future, first, last)
        else:
            take(site, future, first, last, 1)
    return future


def lay_out_releases(site: Site, victims: int) -> None:
    """Lay out what is free after each end of a running job, but for candidates of preemption."""
    c = site.controller
    future, to, out, nodes = copy_without(site, victims), 0, site.releases, site.nodes
    c.stamp += 1
    for i in range(victims):
        site.rows.mark[site.lists.victim[i]] = c.stamp
    for place in range(c.running):
        row = site.lists.end_of[place]
        if site.rows.mark[row] == c.stamp:
            continue
        tenure, end = site.rows.tenure[row], site.lists.end_at[place]
        for i in range(site.ledger.first[tenure], site.ledger.last[tenure]):
            node = site.held.node[i]
            nodes.table[future + N.FREE_CORES, node] += site.held.cores[i]
            nodes.table[future + N.FREE_MEMORY, node] += site.held.memory[i]
            nodes.table[future + N.JOBS_HERE, node] -= 1
            for kind in range(site.settings.kinds):
                nodes.table[future + N.FREE_GPUS + kind, node] += site.held.table[
                    N.S_GPUS + kind, i
                ]
                out.table[N.R_GPUS + kind, to] = nodes.table[future + N.FREE_GPUS + kind, node]
            out.end[to], out.job[to], out.node[to] = end, row, node
            out.cores[to] = nodes.table[future + N.FREE_CORES, node]
            out.memory[to] = nodes.table[future + N.FREE_MEMORY, node]
            out.here[to] = nodes.table[future + N.JOBS_HERE, node]
            to += 1
    c.releases, c.events_of, c.chained = to, -1, 0


def note_start(site: Site, row: int) -> None:
    """Correct what was laid out for a job that has just started."""
    c, settings, out, held = site.controller, site.settings, site.releases, site.held
    if c.releases == STALE:
        return
    tenure = site.rows.tenure[row]
    first, last = site.ledger.first[tenure], site.ledger.last[tenure]
    end = site.ledger.start[tenure] + site.rows.limit[row]
    count, stock = c.releases, settings.stock
    place = 0
    while place < count and (
        out.end[place] < end or (out.end[place] == end and out.job[place] < row)
    ):
        place += 1
    added = last - first
    for field in range(N.R_GPUS + settings.kinds):
        for i in range(count - 1, place - 1, -1):
            out.table[field, i + added] = out.table[field, i]
    for i in range(first, last):
        node, to = held.node[i], place + i - first
        # When it ends, all is as it would have been without it.
        out.end[to], out.job[to], out.node[to] = end, row, node
        out.cores[to] = site.nodes.table[stock + N.FREE_CORES, node] + held.cores[i]
        out.memory[to] = site.nodes.table[stock + N.FREE_MEMORY, node] + held.memory[i]
        out.here[to] = site.nodes.table[stock + N.JOBS_HERE, node] - 1
        for kind in range(settings.kinds):
            gpus = (
                site.nodes.table[stock + N.FREE_GPUS + kind, node] + held.table[N.S_GPUS + kind, i]
            )
            out.table[N.R_GPUS + kind, to] = gpus
        for k in range(place):
            if out.node[k] == node:
                out.cores[to], out.memory[to] = out.cores[k], out.memory[k]
                out.here[to] = out.here[k]
                out.cores[k] -= held.cores[i]
                out.memory[k] -= held.memory[i]
                out.here[k] += 1
                for kind in range(settings.kinds):
                    out.table[N.R_GPUS + kind, to] = out.table[N.R_GPUS + kind, k]
                    out.table[N.R_GPUS + kind, k] -= held.table[N.S_GPUS + kind, i]
    c.releases, c.events_of, c.chained = count + added, -1, 0


def _next_on(out: Releases, nodes: Int64s, i: int, count: int) -> int:
    """Return the first release from ``i`` on that is on one of some nodes, or ``count``."""
    while i < count:
        node = out.node[i]
        if (nodes[node >> 6] >> (node & 63)) & 1:
            break
        i += 1
    return i


def _mark_releases(site: Site, nodes: Int64s) -> None:
    """Mark the releases that are on some nodes."""
    c = site.controller
    out, first, count = site.releases, site.nodes.first_release, c.releases
    marks, following = out.marks, out.next
    if not c.chained:
        for node in range(len(first)):
            first[node] = -1
        for i in range(count - 1, -1, -1):
            following[i] = first[out.node[i]]
            first[out.node[i]] = i
        c.chained = 1
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


def _next_marked(out: Releases, i: int, count: int) -> int:
    """Return the first release from ``i`` on that is marked, or ``count``."""
    place, last = i >> 6, (count + 63) >> 6
    if place >= last:
        return count
    word = out.marks[place] & (-1 << (i & 63))
    while not word:
        place += 1
        if place == last:
            return count
        word = out.marks[place]
    return (place << 6) + bits_of((word & -word) - 1)


def start_after_releases(
    site: Site, d: int, free: Int64s, now: int, victims: int
) -> tuple[int, int]:
    """Return when a job could start on nodes that were looked at, and its shares; -1 for never.

    Running jobs end at their limits; ends close to each other count as one. Which are close depends
    on all jobs that run, wherever they do: Slurm peeks at the next one, without asking whether its
    nodes are of use. The first ``victims`` candidates of preemption have been let go.
    """
    c = site.controller
    if c.releases == STALE:
        lay_out_releases(site, victims)
    out, job, last = site.releases, -1, -1
    if c.events_of != d:
        c.events_of, c.events = d, 0
    count = c.releases
    window, barrier, given, end = N.TIME_WINDOW, 0, 0, 0
    few = size(free) * FEW_NODES <= site.nodes.table.shape[1]
    if few:
        _mark_releases(site, free)
    i = -1
    while True:
        i = _next_marked(out, i + 1, count) if few else _next_on(out, free, i + 1, count)
        if i >= count:
            break
        node = out.node[i]
        if out.job[i] != job:
            # The next job to end that holds some of the nodes.
            if not barrier:
                barrier = out.end[i] + window - out.end[i] % window
            else:
                while out.job[last] == job:
                    last += 1
                following = out.end[last]
                if following > barrier + window or given > N.MOST_TAKEN_OUT:
                    while True:
                        window *= 2
                        if following <= barrier + window:
                            break
                    if may_suffice(site, d):
                        shares = _choose_after(site, d, i, victims)
                        if shares >= 0:
                            return (end if end > now else now + N.KILL_WAIT), shares
                    given = 0
            job = out.job[i]
            given += 1
            end = out.end[i]
        last = i
        if i >= c.events:
            _learn_events(site, d, i)
        note_usable(site, d, node, out.usable[i], out.usable_gpus[i])
    if given and may_suffice(site, d):
        shares = _choose_after(site, d, count, victims)
        if shares >= 0:
            return (end if end > now else now + N.KILL_WAIT), shares
    return -1, -1


def _learn_events(site: Site, d: int, last: int) -> None:
    """Note what a job could use after releases up to one, and some more."""
    c, out, demands = site.controller, site.releases, site.demands
    kind, set_of = demands.gpu_kind[d], site.sets[site.settings.sets + demands.set[d]]
    looks_at_gpus = demands.gpus[d] > 0 or demands.node_gpus[d] > 0
    for i in range(c.events, min(last + AT_ONCE, c.releases)):
        node, gpus, cores = out.node[i], 0, 0
        if has(set_of, node):
            if looks_at_gpus:
                if kind >= 0:
                    gpus = out.table[N.R_GPUS + kind, i]
                elif kind == -1:
                    for one in range(site.settings.kinds):
                        gpus += out.table[N.R_GPUS + one, i]
            cores = usable_of(site, d, node, out.cores[i], out.memory[i], out.here[i], gpus)
        out.usable[i], out.usable_gpus[i] = cores, gpus
        c.events = i + 1


def _choose_after(site: Site, d: int, count: int, victims: int) -> int:
    """Choose among the nodes that were looked at, after some of the releases."""
    settings = site.settings
    stock = settings.stock
    if site.demands.gpus[d] or site.demands.node_gpus[d] or settings.rule != N.CONSECUTIVE:
        out, nodes, stock = site.releases, site.nodes, copy_without(site, victims)
        for i in range(count):
            node = out.node[i]
            nodes.table[stock + N.FREE_CORES, node] = out.cores[i]
            for kind in range(settings.kinds):
                nodes.table[stock + N.FREE_GPUS + kind, node] = out.table[N.R_GPUS + kind, i]
    return choose(site, stock, d)
