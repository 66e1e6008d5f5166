"""A cycle of the backfill scheduler; plainly in ``environment.schedulers.slurm.backfill``."""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.main_pass import (
    BEGUN,
    LIMITED,
    bar_reserved,
    note_begin_times,
    throttled,
    try_start,
)
from hpcrowd.environment.engine.kernel.nodes.placement import (
    copy_set,
    keep_only,
    select,
    take,
)
from hpcrowd.environment.engine.kernel.nodes.preemption import candidates, copy_stock, holds_any
from hpcrowd.environment.engine.kernel.nodes.queue import rejoin, waits
from hpcrowd.environment.schedulers.slurm.timing import KILL_WAIT, MOST_TAKEN_OUT, TIME_WINDOW

# Rows of the plan: begin and end of a span, and where its nodes are.
SPAN_BEGIN, SPAN_END, SPAN_NODES = range(3)

# Rows of ``Scratch.counts``, in which places are stamped with the cycle.
COUNTED, COUNTED_IN = range(2)


@compiled
def _split(plan, nodes, count, at):
    """Split the span that holds a second beyond its first; return how many spans there are."""
    place = _span(plan, count, at)
    if place == count or plan[SPAN_BEGIN, place] >= at:
        return count
    for i in range(count, place + 1, -1):
        for field in range(3):
            plan[field, i] = plan[field, i - 1]
    plan[SPAN_BEGIN, place + 1], plan[SPAN_END, place + 1] = at, plan[SPAN_END, place]
    plan[SPAN_NODES, place + 1] = count
    copy_set(nodes[count], nodes[plan[SPAN_NODES, place]])
    plan[SPAN_END, place] = at
    return count + 1


@compiled
def _span(plan, count, at):
    """Return the first span that ends after a second."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if plan[SPAN_END, middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _keep(plan, nodes, count, begin, end, chosen, shares):
    """Keep the nodes of a choice from one second to another; return how many spans there are."""
    count = _split(plan, nodes, count, begin)
    count = _split(plan, nodes, count, end)
    place = _span(plan, count, begin)
    while place < count and plan[SPAN_BEGIN, place] < end:
        span = nodes[plan[SPAN_NODES, place]]
        for i in range(shares):
            span[chosen[N.S_NODE, i]] = 0
        place += 1
    return count


@compiled
def _clashes(plan, nodes, count, begin, end, chosen, shares):
    """Return whether some nodes of a choice are kept for others within a time."""
    place = _span(plan, count, begin)
    while place < count and plan[SPAN_BEGIN, place] < end:
        span = nodes[plan[SPAN_NODES, place]]
        for i in range(shares):
            if not span[chosen[N.S_NODE, i]]:
                return True
        place += 1
    return False


@compiled
def _unplanned(plan, spans, count, nodes, found, start, end):
    """Find the nodes that are free of plans from start to end; return when to try later, or 0."""
    copy_set(found, nodes)
    place, later = _span(plan, count, start), 0
    while place < count:
        after = place + 1 < count
        if plan[SPAN_BEGIN, place] > end and (later or not after):
            break
        span = spans[plan[SPAN_NODES, place]]
        if not later and after:
            # Later spans are worth trying if they have nodes that this one lacks.
            following, more = spans[plan[SPAN_NODES, place + 1]], 0
            for i in range(len(nodes)):
                more |= nodes[i] & following[i] & ~(found[i] & span[i])
            if more & 1:
                later = plan[SPAN_END, place]
        if plan[SPAN_BEGIN, place] > end:
            if not later and after:
                later = plan[SPAN_END, place + 1]
            break
        keep_only(found, span)
        place += 1
    return later


@compiled
def _foretell(site, asked, queue, state, stock, scratch, entry, free, now):
    """Return when a job could start on some nodes, and how many shares it would hold; -1 for never.

    Running jobs end at their limits; ends close to each other count as one.
    """
    ledger, rows, rule = state.ledger, queue.rows, site.settings[N.RULE]
    d = asked.options[N.DEMAND, queue.entries[N.OPTION, entry]]
    shares = select(site, asked, stock, scratch, d, free, rule)
    if shares >= 0:
        return now, shares
    future = copy_stock(stock, scratch)
    state.c[N.STAMP] += 1
    stamp = state.c[N.STAMP]
    victims = candidates(site, asked, queue, state, scratch, entry, now)
    if victims:
        for i in range(victims):
            row = scratch.victims[0, i]
            rows[N.MARK, row] = stamp
            tenure = rows[N.TENURE, row]
            take(future, state.held, ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure], 1)
        shares = select(site, asked, future, scratch, d, free, rule)
        if shares >= 0:
            return now, shares
    cores, wanted = 0, asked.demands[N.WANTED_CORES, d]
    for node in range(len(free)):
        if free[node]:
            cores += future.cores[node]
    count, window = state.c[N.ALL_RUNNING], TIME_WINDOW
    place = _next_end(queue, state, free, stamp, 0, count)
    if place == count:
        return -1, -1
    first = state.ends[0, place]
    barrier = first + window - first % window
    while place < count:
        taken = 0
        while True:
            end = state.ends[0, place]
            tenure = rows[N.TENURE, state.ends[1, place]]
            for i in range(ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure]):
                if free[state.held[N.S_NODE, i]]:
                    cores += state.held[N.S_CORES, i]
            take(future, state.held, ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure], 1)
            place = _next_end(queue, state, free, stamp, place + 1, count)
            if place == count or state.ends[0, place] > barrier + window:
                break
            taken += 1
            if taken > MOST_TAKEN_OUT:
                break
        while True:
            window *= 2
            if place == count or state.ends[0, place] <= barrier + window:
                break
        if cores < wanted:
            continue
        shares = select(site, asked, future, scratch, d, free, rule)
        if shares >= 0:
            return (end if end > now else now + KILL_WAIT), shares
    return -1, -1


@compiled
def _next_end(queue, state, free, stamp, place, count):
    """Return the place of the next job to end that holds some of the nodes and is not marked."""
    while place < count:
        row = state.ends[1, place]
        if queue.rows[N.MARK, row] != stamp and holds_any(state, queue.rows[N.TENURE, row], free):
            break
        place += 1
    return place


@compiled
def _too_many(site, queue, scratch, row, partition, stamp):
    """Count jobs of a user, partition or association, and return whether there are too many."""
    settings, counts = site.settings, scratch.counts
    partitions = site.partitions.shape[1]
    places = (
        partition,
        partitions + queue.rows[N.ASSOCIATION, row] * 2,
        partitions + queue.rows[N.USER_OF, row] * 2 + 1,
    )
    limits = (settings[N.BF_PARTITION], settings[N.BF_ASSOCIATION], settings[N.BF_USER])
    for i in range(3):
        place = places[i]
        if not limits[i]:
            continue
        if counts[COUNTED_IN, place] != stamp:
            counts[COUNTED_IN, place], counts[COUNTED, place] = stamp, 0
        if counts[COUNTED, place] >= limits[i]:
            return True
    for i in range(3):
        if limits[i]:
            counts[COUNTED, places[i]] += 1
    return False


@compiled
def backfill_cycle(cluster, site, asked, queue, state, stock, scratch, now):
    """Start what can start, and plan the others."""
    rows, entries, order, settings, c = (
        queue.rows, queue.entries, queue.order, site.settings, state.c,
    )  # fmt: skip
    note_begin_times(queue, state, now)
    resolution, partitions = settings[N.BF_RESOLUTION], site.partitions.shape[1]
    plan, spans = scratch.plan, scratch.spans
    plan[SPAN_BEGIN, 0] = now // resolution * resolution
    window = (now + settings[N.BF_WINDOW]) // resolution * resolution
    plan[SPAN_END, 0], plan[SPAN_NODES, 0] = window, 0
    copy_set(spans[0], site.up)
    count, tested, begun = 1, 0, 0
    c[N.STAMP] += 1
    stamp = c[N.STAMP]
    for i in range(c[N.ORDERED]):
        row = entries[N.OWNER, order[N.PLACED, i]]
        if rows[N.ELIGIBLE, row] <= now:
            rows[N.PLANNED, row] = -1
    for i in range(c[N.ORDERED]):
        entry = order[N.PLACED, i]
        row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
        if rows[N.ELIGIBLE, row] > now:
            continue
        if tested >= settings[N.BF_TESTS]:
            break
        if settings[N.BF_STARTS] and begun >= settings[N.BF_STARTS]:
            break
        if not waits(queue, entry):
            continue
        partition = asked.options[N.PARTITION, option]
        if settings[N.ENFORCED]:
            word = first_limit(
                asked, state, scratch, asked.options[N.BEFORE, option],
                asked.options[N.BEFORE_END, option], asked.options[N.DEMAND, option],
                rows[N.LIMIT, row], 0,
            )  # fmt: skip
            if word and not settings[N.LIMIT_STOPS]:
                rows[N.REASON, row] = word
                continue
        array = rows[N.ARRAY, row]
        place = array * partitions + partition
        if array >= 0:
            if state.first[0, place] == stamp and state.first[1, place] >= 0:
                rows[N.REASON, row] = rows[N.REASON, state.first[1, place]]
                continue
            if state.arrays[N.TASKS_CYCLE, array] != stamp:
                state.arrays[N.TASKS_CYCLE, array], state.arrays[N.TASKS_PLANNED, array] = stamp, 0
            if state.arrays[N.TASKS_PLANNED, array] >= settings[N.BF_ARRAY]:
                continue
            state.first[0, place], state.first[1, place] = stamp, row
            if throttled(queue, state, row):
                continue
        if _too_many(site, queue, scratch, row, partition, stamp):
            continue
        if not site.partitions[N.PARTITION_UP, partition]:
            continue
        done, counted, count = _try(
            cluster, site, asked, queue, state, stock, scratch, plan, spans, count, window, entry,
            now,
        )  # fmt: skip
        tested += counted
        if done:
            begun += done == 2
            if array >= 0:
                state.first[1, place] = -1
                if done == 1:
                    state.arrays[N.TASKS_PLANNED, array] += 1
    rejoin(site, asked, queue, state)


@compiled
def _try(
    cluster, site, asked, queue, state, stock, scratch, plan, spans, count, window, entry, now
):  # fmt: skip
    """Start or plan a job.

    Returns
    -------
    tuple
        2 if it started, 1 if it is planned, else 0; whether it counts as tested; how many spans
        the plan has.
    """
    rows, settings, options = queue.rows, site.settings, asked.options
    row, option = queue.entries[N.OWNER, entry], queue.entries[N.OPTION, entry]
    d, limit = options[N.DEMAND, option], rows[N.LIMIT, row]
    nodes = asked.sets[asked.demands[N.SET, d]]
    may, free, trying = scratch.allowed[2], scratch.allowed[3], scratch.allowed[4]
    later, counted, chosen = now, 0, scratch.chosen
    resolution, latest = settings[N.BF_RESOLUTION], now + settings[N.BF_WINDOW]
    while True:
        start = max(later, now)
        copy_set(may, nodes)
        keep_only(may, site.up)
        reservation_ends = bar_reserved(site, queue, row, start, limit, may)
        if start > window:
            return 0, counted, count
        later = _unplanned(plan, spans, count, may, free, start, start + limit)
        if reservation_ends and (not later or reservation_ends < later):
            later = reservation_ends
        there = 0
        for node in range(len(free)):
            there += free[node]
        if there < asked.demands[N.LEAST, d]:
            if not later:
                return 0, counted, count
            continue
        counted = 1
        begin, shares = _foretell(site, asked, queue, state, stock, scratch, entry, free, now)
        if shares < 0:
            if not later:
                return 0, counted, count
            continue
        begin = max(begin, start)
        if begin > now:
            first, last = _slot(begin, limit, resolution)
            if _clashes(plan, spans, count, first, last, chosen, shares):
                later = begin + (resolution if begin == start else 0)
                continue
        else:
            _copy(scratch.kept, chosen, shares)
            copy_set(trying, free)
            outcome = try_start(
                cluster, site, asked, queue, state, stock, scratch, entry, now, trying,
                N.BY_BACKFILL,
            )  # fmt: skip
            if outcome == BEGUN:
                return 2, counted, count
            if outcome == LIMITED:
                return 0, counted, count
            _copy(chosen, scratch.kept, shares)
            later = 0  # it preempts, or nodes are still in use: keep them
        if later and begin > later:
            continue
        if begin > latest:
            rows[N.PLANNED, row] = begin
            return 0, counted, count
        if settings[N.ENFORCED]:
            word = first_limit(
                asked, state, scratch, options[N.AFTER, option], options[N.AFTER_END, option], d,
                limit, 0,
            )  # fmt: skip
            if word:
                rows[N.REASON, row] = word
                return 0, counted, count
        first, last = _slot(begin, limit, resolution)
        if _clashes(plan, spans, count, first, last, chosen, shares):
            later = begin
            continue
        if (
            now - rows[N.ELIGIBLE, row] < settings[N.BF_LEAST_AGE]
            or queue.entries[N.PRIORITY, entry] < settings[N.BF_LEAST_PRIORITY]
            or options[N.NO_PLAN, option]
        ):
            rows[N.PLANNED, row] = begin
            return 0, counted, count
        count = _keep(plan, spans, count, first, last, chosen, shares)
        if rows[N.PLANNED, row] < 0 or begin < rows[N.PLANNED, row]:
            rows[N.PLANNED, row] = begin
        return 1, counted, count


@compiled
def _copy(shares, others, count):
    """Copy shares of a choice."""
    for field in range(shares.shape[0]):
        for i in range(count):
            shares[field, i] = others[field, i]


@compiled
def _slot(begin, limit, resolution):
    """Return begin and end in the plan, rounded to its resolution."""
    end = begin + limit + resolution - 1
    return begin // resolution * resolution, end // resolution * resolution
