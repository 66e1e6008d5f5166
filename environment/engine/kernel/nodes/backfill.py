"""A cycle of the backfill scheduler; plainly in ``environment.schedulers.slurm.backfill``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.main_pass import (
    BEGUN,
    LIMITED,
    bar_reserved,
    note_begin_times,
    throttled,
    try_start,
    within_limits,
)
from hpcrowd.environment.engine.kernel.nodes.placement import (
    choose,
    clear,
    copy_set,
    has,
    has_as_many,
    keep_only,
    look,
    select,
)
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.preemption import candidates, order_of
from hpcrowd.environment.engine.kernel.nodes.queue import rejoin, waits
from hpcrowd.environment.engine.kernel.nodes.releases import (
    STALE,
    copy_without,
    note_start,
    start_after_releases,
)
from hpcrowd.environment.jobs import Int64Rows, Int64s


def _split(g: Site, count: int, at: int) -> int:
    """Split the span that holds a second beyond its first; return how many spans there are."""
    plan, nodes = g.lists, g.spans
    place = _span(plan, count, at)
    if place == count or plan[N.SPAN_BEGIN, place] >= at:
        return count
    for i in range(count, place + 1, -1):
        for field in range(N.SPAN_BEGIN, N.SPAN_NODES + 1):
            plan[field, i] = plan[field, i - 1]
    plan[N.SPAN_BEGIN, place + 1], plan[N.SPAN_END, place + 1] = at, plan[N.SPAN_END, place]
    plan[N.SPAN_NODES, place + 1] = count
    copy_set(nodes[count], nodes[plan[N.SPAN_NODES, place]])
    plan[N.SPAN_END, place] = at
    return count + 1


def _span(plan: Int64Rows, count: int, at: int) -> int:
    """Return the first span that ends after a second."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if plan[N.SPAN_END, middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


def _keep(g: Site, count: int, begin: int, end: int, shares: int) -> int:
    """Keep the nodes of a choice from one second to another; return how many spans there are."""
    plan, nodes, chosen = g.lists, g.spans, g.c[N.CHOSEN]
    count = _split(g, count, begin)
    count = _split(g, count, end)
    place = _span(plan, count, begin)
    while place < count and plan[N.SPAN_BEGIN, place] < end:
        span = plan[N.SPAN_NODES, place]
        for i in range(shares):
            node = g.nodes[chosen + N.S_NODE, i]
            nodes[span, node >> 6] &= ~(1 << (node & 63))
        place += 1
    return count


def _clashes(g: Site, count: int, begin: int, end: int, shares: int) -> bool:
    """Return whether some nodes of a choice are kept for others within a time."""
    plan, nodes, chosen = g.lists, g.spans, g.c[N.CHOSEN]
    place = _span(plan, count, begin)
    while place < count and plan[N.SPAN_BEGIN, place] < end:
        span = plan[N.SPAN_NODES, place]
        for i in range(shares):
            node = g.nodes[chosen + N.S_NODE, i]
            if not (nodes[span, node >> 6] >> (node & 63)) & 1:
                return True
        place += 1
    return False


def _unplanned(g: Site, count: int, nodes: Int64s, found: Int64s, start: int, end: int) -> int:
    """Find the nodes that are free of plans from start to end; return when to try later, or 0."""
    plan, spans = g.lists, g.spans
    copy_set(found, nodes)
    place, later = _span(plan, count, start), 0
    while place < count:
        after = place + 1 < count
        if plan[N.SPAN_BEGIN, place] > end and (later or not after):
            break
        span = plan[N.SPAN_NODES, place]
        if not later and after:
            # Later spans are worth trying if they have nodes that this one lacks.
            following, more = plan[N.SPAN_NODES, place + 1], 0
            for i in range(len(nodes)):
                more |= nodes[i] & spans[following, i] & ~(found[i] & spans[span, i])
            if more:
                later = plan[N.SPAN_END, place]
        if plan[N.SPAN_BEGIN, place] > end:
            if not later and after:
                later = plan[N.SPAN_END, place + 1]
            break
        for i in range(len(found)):
            found[i] &= spans[span, i]
        place += 1
    return later


def _foretell(g: Site, entry: int, free: Int64s, now: int) -> tuple[int, int]:
    """Return when a job could start on some nodes, and how many shares it would hold; -1 for never.

    Running jobs end at their limits; ends close to each other count as one.
    """
    c, d = g.c, g.options[N.DEMAND, g.entries[N.OPTION, entry]]
    shares = select(g, c[N.STOCK], d, free)
    if shares >= 0:
        return now, shares
    victims = candidates(g, entry, now)
    if victims:
        c[N.ALL_RELEASES] = STALE
        future = copy_without(g, victims)
        look(g, future, d, free)
        shares = choose(g, future, d)
        if shares >= 0:
            return now, shares
    begin, shares = start_after_releases(g, d, free, now, victims)
    if victims:
        c[N.ALL_RELEASES] = STALE
    return begin, shares


def _too_many(g: Site, row: int, partition: int, stamp: int) -> bool:
    """Count jobs of a user, partition or association, and return whether there are too many."""
    c, counts = g.c, g.people
    association = c[N.PARTITIONS] + g.rows[N.ASSOCIATION, row] * 2
    user = c[N.PARTITIONS] + g.rows[N.USER_OF, row] * 2 + 1
    if (
        _is_full(g, partition, c[N.BF_PARTITION], stamp)
        or _is_full(g, association, c[N.BF_ASSOCIATION], stamp)
        or _is_full(g, user, c[N.BF_USER], stamp)
    ):
        return True
    counts[N.COUNTED, partition] += 1
    counts[N.COUNTED, association] += 1
    counts[N.COUNTED, user] += 1
    return False


def _is_full(g: Site, place: int, most: int, stamp: int) -> bool:
    """Return whether as many jobs were counted at a place in this cycle as may; 0: any."""
    counts = g.people
    if counts[N.COUNTED_IN, place] != stamp:
        counts[N.COUNTED_IN, place], counts[N.COUNTED, place] = stamp, 0
    return most != 0 and counts[N.COUNTED, place] >= most


def backfill_cycle(g: Site, now: int) -> None:
    """Start what can start, and plan the others."""
    rows, entries, c = g.rows, g.entries, g.c
    note_begin_times(g, now)
    resolution, partitions = g.c[N.BF_RESOLUTION], g.c[N.PARTITIONS]
    plan, spans = g.lists, g.spans
    plan[N.SPAN_BEGIN, 0] = now // resolution * resolution
    window = (now + g.c[N.BF_WINDOW]) // resolution * resolution
    plan[N.SPAN_END, 0], plan[N.SPAN_NODES, 0] = window, 0
    copy_set(spans[0], g.sets[N.UP])
    count, tested, begun = 1, 0, 0
    c[N.ALL_RELEASES] = STALE
    planned = g.sets[N.WORK + 6]
    clear(planned)
    c[N.STAMP] += 1
    stamp = c[N.STAMP]
    for i in range(c[N.ORDERED]):
        row = entries[N.OWNER, entries[N.PLACED, i]]
        if rows[N.ELIGIBLE, row] <= now:
            rows[N.PLANNED, row] = -1
    order = order_of(g, now)
    for i in range(c[N.ORDERED]):
        entry = entries[order, i]
        row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
        if rows[N.ELIGIBLE, row] > now:
            continue
        if tested >= g.c[N.BF_TESTS]:
            break
        if g.c[N.BF_STARTS] and begun >= g.c[N.BF_STARTS]:
            break
        if not waits(g, entry):
            continue
        partition = g.options[N.PARTITION, option]
        if not g.c[N.LIMIT_STOPS] and not within_limits(g, row, option):
            continue
        array = rows[N.ARRAY, row]
        place = array * partitions + partition
        if array >= 0:
            if g.tasks[N.FIRST_IN, place] == stamp and g.tasks[N.FIRST_TASK, place] >= 0:
                rows[N.REASON, row] = rows[N.REASON, g.tasks[N.FIRST_TASK, place]]
                continue
            if g.tasks[N.TASKS_CYCLE, array] != stamp:
                g.tasks[N.TASKS_CYCLE, array], g.tasks[N.TASKS_PLANNED, array] = stamp, 0
            if g.tasks[N.TASKS_PLANNED, array] >= g.c[N.BF_ARRAY]:
                continue
            g.tasks[N.FIRST_IN, place], g.tasks[N.FIRST_TASK, place] = stamp, row
            if throttled(g, row):
                continue
        if _too_many(g, row, partition, stamp):
            continue
        if not g.rules[N.PARTITION_UP, partition]:
            continue
        done, counted, count = _try(g, count, window, entry, now)
        tested += counted
        if done:
            begun += done == 2
            if array >= 0:
                g.tasks[N.FIRST_TASK, place] = -1
                if done == 1:
                    g.tasks[N.TASKS_PLANNED, array] += 1
    for node in range(g.nodes.shape[1]):
        if has(planned, node) and g.nodes[c[N.STOCK] + N.FREE_CORES, node] > 0:
            c[N.CHANGED], c[N.PLANNED_ON] = now, 1  # nodes that are not full are marked as planned
    rejoin(g)


def _try(g: Site, count: int, window: int, entry: int, now: int) -> tuple[int, int, int]:
    """Start or plan a job.

    Returns
    -------
    tuple
        2 if it started, 1 if it is planned, else 0; whether it counts as tested; how many spans
        the plan has.
    """
    rows, options = g.rows, g.options
    row, option = g.entries[N.OWNER, entry], g.entries[N.OPTION, entry]
    d, limit = options[N.DEMAND, option], rows[N.LIMIT, row]
    nodes = g.sets[g.c[N.SETS] + g.demands[N.SET, d]]
    may, free, trying = g.sets[N.WORK + 2], g.sets[N.WORK + 3], g.sets[N.WORK + 4]
    later, counted, chosen, kept = now, 0, g.c[N.CHOSEN], g.c[N.KEPT_CHOICE]
    resolution, latest = g.c[N.BF_RESOLUTION], now + g.c[N.BF_WINDOW]
    while True:
        start = max(later, now)
        copy_set(may, nodes)
        keep_only(may, g.sets[N.UP])
        reservation_ends = bar_reserved(g, row, start, limit, may)
        if start > window:
            return 0, counted, count
        later = _unplanned(g, count, may, free, start, start + limit)
        if reservation_ends and (not later or reservation_ends < later):
            later = reservation_ends
        if not has_as_many(free, g.demands[N.LEAST, d]):
            if not later:
                return 0, counted, count
            continue
        counted = 1
        begin, shares = _foretell(g, entry, free, now)
        if shares < 0:
            if not later:
                return 0, counted, count
            continue
        if begin < start:
            g.c[N.CHANGED], begin = now, start  # others' plans put it off
        if begin > now:
            first, last = _slot(begin, limit, resolution)
            if _clashes(g, count, first, last, shares):
                later = begin + (resolution if begin == start else 0)
                continue
        else:
            _copy(g, kept, chosen, shares)
            copy_set(trying, free)
            outcome = try_start(
                g, entry, now, trying,
                N.BY_BACKFILL,
            )  # fmt: skip
            if outcome == BEGUN:
                note_start(g, row)
                return 2, counted, count
            if outcome == LIMITED:
                return 0, counted, count
            g.c[N.ALL_RELEASES] = STALE  # it may have stopped others
            _copy(g, chosen, kept, shares)
            later = 0  # it preempts, or nodes are still in use: keep them
        if later and begin > later:
            continue
        if begin > latest:
            rows[N.PLANNED, row] = begin
            return 0, counted, count
        if g.c[N.ENFORCED]:
            word = first_limit(
                g, options[N.AFTER, option], options[N.AFTER_END, option], d,
                limit, 0,
            )  # fmt: skip
            if word:
                rows[N.REASON, row] = word
                return 0, counted, count
        first, last = _slot(begin, limit, resolution)
        if _clashes(g, count, first, last, shares):
            later = begin
            continue
        if (
            now - rows[N.ELIGIBLE, row] < g.c[N.BF_LEAST_AGE]
            or g.entries[N.PRIORITY, entry] < g.c[N.BF_LEAST_PRIORITY]
            or options[N.NO_PLAN, option]
        ):
            rows[N.PLANNED, row] = begin
            return 0, counted, count
        count = _keep(g, count, first, last, shares)
        if rows[N.PLANNED, row] < 0 or begin < rows[N.PLANNED, row]:
            rows[N.PLANNED, row] = begin
            for i in range(shares):
                node = g.nodes[chosen + N.S_NODE, i]
                g.sets[N.WORK + 6, node >> 6] |= 1 << (node & 63)
        return 1, counted, count


def _copy(g: Site, to: int, source: int, shares: int) -> None:
    """Copy the shares of a choice from one place to another."""
    for field in range(N.S_GPUS + g.c[N.KINDS]):
        for i in range(shares):
            g.nodes[to + field, i] = g.nodes[source + field, i]


def _slot(begin: int, limit: int, resolution: int) -> tuple[int, int]:
    """Return begin and end in the plan, rounded to its resolution."""
    end = begin + limit + resolution - 1
    return begin // resolution * resolution, end // resolution * resolution
