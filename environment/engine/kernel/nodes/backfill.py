"""A cycle of the backfill scheduler; sched/backfill of Slurm.

The plan is a list of spans of time with the nodes that no planned job holds; a planned job holds
whole nodes, rounded to ``bf_resolution``. A waiting job, by priority, starts if it can with nodes
that are free of plans until its limit; otherwise its start is foretold by letting running jobs end
in order of their limits, and its nodes are kept from then on.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.main_pass import (
    BEGUN,
    BUSY,
    bar_reserved,
    limited,
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
from hpcrowd.environment.engine.kernel.nodes.preemption import candidates, order_of
from hpcrowd.environment.engine.kernel.nodes.queue import rejoin, waits
from hpcrowd.environment.engine.kernel.nodes.releases import (
    STALE,
    copy_without,
    note_start,
    start_after_releases,
)
from hpcrowd.environment.engine.kernel.nodes.site import Lists, Site
from hpcrowd.environment.jobs import Int64s


def _split(site: Site, count: int, at: int) -> int:
    """Split the span that holds a second beyond its first; return how many spans there are."""
    plan, nodes = site.lists, site.spans
    place = _span(plan, count, at)
    if place == count or plan.span_begin[place] >= at:
        return count
    for i in range(count, place + 1, -1):
        for field in range(N.SPAN_BEGIN, N.SPAN_NODES + 1):
            plan.table[field, i] = plan.table[field, i - 1]
    plan.span_begin[place + 1], plan.span_end[place + 1] = at, plan.span_end[place]
    plan.span_nodes[place + 1] = count
    copy_set(nodes[count], nodes[plan.span_nodes[place]])
    plan.span_end[place] = at
    return count + 1


def _span(plan: Lists, count: int, at: int) -> int:
    """Return the first span that ends after a second."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if plan.span_end[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


def _keep(site: Site, count: int, begin: int, end: int, shares: int) -> int:
    """Keep the nodes of a choice from one second to another; return how many spans there are."""
    plan, nodes, chosen = site.lists, site.spans, site.settings.chosen
    count = _split(site, count, begin)
    count = _split(site, count, end)
    place = _span(plan, count, begin)
    while place < count and plan.span_begin[place] < end:
        span = plan.span_nodes[place]
        for i in range(shares):
            node = site.nodes.table[chosen + N.S_NODE, i]
            nodes[span, node >> 6] &= ~(1 << (node & 63))
        place += 1
    return count


def _clashes(site: Site, count: int, begin: int, end: int, shares: int) -> bool:
    """Return whether some nodes of a choice are kept for others within a time."""
    plan, nodes, chosen = site.lists, site.spans, site.settings.chosen
    place = _span(plan, count, begin)
    while place < count and plan.span_begin[place] < end:
        span = plan.span_nodes[place]
        for i in range(shares):
            node = site.nodes.table[chosen + N.S_NODE, i]
            if not (nodes[span, node >> 6] >> (node & 63)) & 1:
                return True
        place += 1
    return False


def _unplanned(site: Site, count: int, nodes: Int64s, found: Int64s, start: int, end: int) -> int:
    """Find the nodes that are free of plans from start to end; return when to try later, or 0."""
    plan, spans = site.lists, site.spans
    copy_set(found, nodes)
    place, later = _span(plan, count, start), 0
    while place < count:
        after = place + 1 < count
        if plan.span_begin[place] > end and (later or not after):
            break
        span = plan.span_nodes[place]
        if not later and after:
            # Later spans are worth trying if they have nodes that this one lacks.
            following, more = plan.span_nodes[place + 1], 0
            for i in range(len(nodes)):
                more |= nodes[i] & spans[following, i] & ~(found[i] & spans[span, i])
            if more:
                later = plan.span_end[place]
        if plan.span_begin[place] > end:
            if not later and after:
                later = plan.span_end[place + 1]
            break
        for i in range(len(found)):
            found[i] &= spans[span, i]
        place += 1
    return later


def _foretell(site: Site, entry: int, free: Int64s, now: int) -> tuple[int, int]:
    """Return when a job could start on some nodes, and how many shares it would hold; -1 for never.

    Running jobs end at their limits; ends close to each other count as one.
    """
    d = site.options.demand[site.entries.option[entry]]
    shares = select(site, site.settings.stock, d, free)
    if shares >= 0:
        return now, shares
    victims = candidates(site, entry, now)
    if victims:
        site.controller.releases = STALE
        future = copy_without(site, victims)
        look(site, future, d, free)
        shares = choose(site, future, d)
        if shares >= 0:
            return now, shares
    begin, shares = start_after_releases(site, d, free, now, victims)
    if victims:
        site.controller.releases = STALE
    return begin, shares


def _too_many(site: Site, row: int, partition: int, stamp: int) -> bool:
    """Count jobs of a user, partition or association, and return whether there are too many."""
    settings, counts = site.settings, site.people
    association = settings.partitions + site.rows.association[row] * 2
    user = settings.partitions + site.rows.user_of[row] * 2 + 1
    if (
        _is_full(site, partition, settings.bf_partition, stamp)
        or _is_full(site, association, settings.bf_association, stamp)
        or _is_full(site, user, settings.bf_user, stamp)
    ):
        return True
    counts.counted[partition] += 1
    counts.counted[association] += 1
    counts.counted[user] += 1
    return False


def _is_full(site: Site, place: int, most: int, stamp: int) -> bool:
    """Return whether as many jobs were counted at a place in this cycle as may; 0: any."""
    counts = site.people
    if counts.counted_in[place] != stamp:
        counts.counted_in[place], counts.counted[place] = stamp, 0
    return most != 0 and counts.counted[place] >= most


def backfill_cycle(site: Site, now: int) -> None:
    """Start what can start, and plan the others."""
    c, settings, rows, entries = site.controller, site.settings, site.rows, site.entries
    note_begin_times(site, now)
    resolution, plan = settings.bf_resolution, site.lists
    plan.span_begin[0] = now // resolution * resolution
    window = (now + settings.bf_window) // resolution * resolution
    plan.span_end[0], plan.span_nodes[0] = window, 0
    copy_set(site.spans[0], site.sets[N.UP])
    count, tested, begun = 1, 0, 0
    c.releases = STALE
    planned = site.sets[N.WORK + 6]
    clear(planned)
    c.stamp += 1
    stamp = c.stamp  # foretelling counts on
    for i in range(c.ordered):
        row = entries.owner[entries.placed[i]]
        if rows.eligible[row] <= now:
            rows.planned[row] = -1
    order = order_of(site, now)
    for i in range(c.ordered):
        entry = entries.table[order, i]
        row, option = entries.owner[entry], entries.option[entry]
        if rows.eligible[row] > now:
            continue
        if tested >= settings.bf_tests:
            break
        if settings.bf_starts and begun >= settings.bf_starts:
            break
        if not waits(site, entry):
            continue
        partition = site.options.partition[option]
        if not settings.limit_stops and not within_limits(site, row, option):
            continue
        array = rows.array[row]
        if array >= 0 and not _comes_to_turn(site, row, partition, stamp):
            continue
        if _too_many(site, row, partition, stamp):
            continue
        if not site.rules.partition_up[partition]:
            continue
        done, counted, count = _try(site, count, window, entry, now)
        tested += counted
        begun += done == 2
        if done and array >= 0:
            site.tasks.first_task[array * settings.partitions + partition] = -1
            site.tasks.tasks_planned[array] += done == 1
    for node in range(site.nodes.table.shape[1]):
        if has(planned, node) and site.nodes.table[settings.stock + N.FREE_CORES, node] > 0:
            c.changed, c.planned_on = now, 1  # nodes that are not full are marked as planned
    rejoin(site)


def _comes_to_turn(site: Site, row: int, partition: int, stamp: int) -> bool:
    """Return whether a task is looked at: the first of its array, if not too many are planned."""
    rows, tasks, array = site.rows, site.tasks, site.rows.array[row]
    place = array * site.settings.partitions + partition
    if tasks.first_in[place] == stamp and tasks.first_task[place] >= 0:
        rows.reason[row] = rows.reason[tasks.first_task[place]]
        return False
    if tasks.tasks_cycle[array] != stamp:
        tasks.tasks_cycle[array], tasks.tasks_planned[array] = stamp, 0
    if tasks.tasks_planned[array] >= site.settings.bf_array:
        return False
    tasks.first_in[place], tasks.first_task[place] = stamp, row
    return not throttled(site, row)


def _try(site: Site, count: int, window: int, entry: int, now: int) -> tuple[int, int, int]:
    """Start or plan a job.

    Returns
    -------
    tuple
        2 if it started, 1 if it is planned, else 0; whether it counts as tested; how many spans
        the plan has.
    """
    settings, rows, options = site.settings, site.rows, site.options
    row, option = site.entries.owner[entry], site.entries.option[entry]
    d, limit, resolution = options.demand[option], rows.limit[row], settings.bf_resolution
    nodes = site.sets[settings.sets + site.demands.set[d]]
    may, free = site.sets[N.WORK + 2], site.sets[N.WORK + 3]
    later, counted = now, 0
    while True:
        start = max(later, now)
        copy_set(may, nodes)
        keep_only(may, site.sets[N.UP])
        reservation_ends = bar_reserved(site, row, start, limit, may)
        if start > window:
            return 0, counted, count
        later = _unplanned(site, count, may, free, start, start + limit)
        if reservation_ends and (not later or reservation_ends < later):
            later = reservation_ends
        shares, begin = -1, 0
        if has_as_many(free, site.demands.least[d]):
            counted = 1
            begin, shares = _foretell(site, entry, free, now)
        if shares < 0:
            if not later:
                return 0, counted, count
            continue
        if begin < start:
            site.controller.changed, begin = now, start  # others' plans put it off
        first, last = _slot(begin, limit, resolution)
        if begin <= now:
            outcome = _start(site, entry, now, free, shares)
            if outcome != BUSY:
                return 2 if outcome == BEGUN else 0, counted, count
            later = 0  # it preempts, or nodes are still in use: keep them
        elif _clashes(site, count, first, last, shares):
            later = begin + (resolution if begin == start else 0)
            continue
        if later and begin > later:
            continue
        if begin > now + settings.bf_window:
            rows.planned[row] = begin
            return 0, counted, count
        if limited(site, row, option, 0):
            return 0, counted, count
        if not _clashes(site, count, first, last, shares):
            planned, count = _plan(site, count, entry, begin, shares, now)
            return planned, counted, count
        later = begin


def _start(site: Site, entry: int, now: int, free: Int64s, shares: int) -> int:
    """Start a job if it can; its choice of shares stands if it cannot."""
    settings, trying = site.settings, site.sets[N.WORK + 4]
    _copy(site, settings.kept_choice, settings.chosen, shares)
    copy_set(trying, free)
    outcome = try_start(site, entry, now, trying, N.BY_BACKFILL)
    if outcome == BEGUN:
        note_start(site, site.entries.owner[entry])
    elif outcome == BUSY:
        site.controller.releases = STALE  # it may have stopped others
        _copy(site, settings.chosen, settings.kept_choice, shares)
    return outcome


def _plan(site: Site, count: int, entry: int, begin: int, shares: int, now: int) -> tuple[int, int]:
    """Keep the chosen nodes for a job; return whether that was done, and how many spans there are.

    Nothing is kept for jobs that are too young or unimportant, or of a QOS that says so.
    """
    settings, rows, nodes = site.settings, site.rows, site.nodes
    row, option = site.entries.owner[entry], site.entries.option[entry]
    if (
        now - rows.eligible[row] < settings.bf_least_age
        or site.entries.priority[entry] < settings.bf_least_priority
        or site.options.no_plan[option]
    ):
        rows.planned[row] = begin
        return 0, count
    first, last = _slot(begin, rows.limit[row], settings.bf_resolution)
    count = _keep(site, count, first, last, shares)
    if rows.planned[row] < 0 or begin < rows.planned[row]:
        rows.planned[row] = begin
        for i in range(shares):
            node = nodes.table[settings.chosen + N.S_NODE, i]
            site.sets[N.WORK + 6, node >> 6] |= 1 << (node & 63)
    return 1, count


def _copy(site: Site, to: int, source: int, shares: int) -> None:
    """Copy the shares of a choice from one place to another."""
    for field in range(N.S_GPUS + site.settings.kinds):
        for i in range(shares):
            site.nodes.table[to + field, i] = site.nodes.table[source + field, i]


def _slot(begin: int, limit: int, resolution: int) -> tuple[int, int]:
    """Return begin and end in the plan, rounded to its resolution."""
    end = begin + limit + resolution - 1
    return begin // resolution * resolution, end // resolution * resolution
