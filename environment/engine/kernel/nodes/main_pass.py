"""The main scheduler's pass; the plain form is ``environment.schedulers.slurm.controller``."""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.placement import (
    copy_set,
    keep_only,
    remove,
    select,
)
from hpcrowd.environment.engine.kernel.nodes.preemption import candidates, choose_victims
from hpcrowd.environment.engine.kernel.nodes.queue import begin, rejoin, stop, waits

# What comes of trying to start a job.
BEGUN, LIMITED, BUSY = range(3)


@compiled
def note_begin_times(queue, state, now):
    """Note why jobs wait that may not start yet."""
    for i in range(state.c[N.ORDERED]):
        row = queue.entries[N.OWNER, queue.order[N.PLACED, i]]
        if queue.rows[N.ELIGIBLE, row] > now:
            queue.rows[N.REASON, row] = N.BEGIN_TIME


@compiled
def bar_reserved(site, queue, row, start, limit, nodes):
    """Take nodes out of a set that reservations keep from a job; return the first end of one."""
    ends = 0
    for i in range(site.reservations.shape[1]):
        begins, until = site.reservations[N.FROM, i], site.reservations[N.UNTIL, i]
        if queue.rows[N.RESERVATION, row] == i:
            if start < begins or start + limit > until:
                for node in range(len(nodes)):
                    nodes[node] = 0
                return 0
            if not site.reservations[N.FLEXIBLE, i]:
                keep_only(nodes, site.reserved[i])
        elif begins < start + limit and until > start:
            remove(nodes, site.reserved[i])
            ends = min(ends, until) if ends else until
    return ends


@compiled
def try_start(cluster, site, asked, queue, state, stock, scratch, entry, now, allowed, by):
    """Start a job if it can on some of the allowed nodes, which are changed."""
    rows = queue.rows
    row, option = queue.entries[N.OWNER, entry], queue.entries[N.OPTION, entry]
    d, limit = asked.options[N.DEMAND, option], rows[N.LIMIT, row]
    if site.settings[N.ENFORCED]:
        word = first_limit(
            asked, state, scratch, asked.options[N.BEFORE, option],
            asked.options[N.BEFORE_END, option], d, limit, 0,
        )  # fmt: skip
        if word:
            rows[N.REASON, row] = word
            return LIMITED
    bar_reserved(site, queue, row, now, limit, allowed)
    keep_only(allowed, site.up)
    shares = select(site, asked, stock, scratch, d, allowed, site.settings[N.RULE])
    if shares < 0:
        count = candidates(site, asked, queue, state, scratch, entry, now)
        if count:
            shares, removed = choose_victims(
                site, asked, queue, state, stock, scratch, d, allowed, count
            )
            if shares >= 0:
                if _limited(site, asked, queue, state, scratch, row, option, shares):
                    return LIMITED
                for i in range(removed):
                    if scratch.victims[3, i]:
                        other = scratch.victims[0, i]
                        stop(cluster, site, asked, queue, state, stock, other, now)
        rows[N.REASON, row] = N.RESOURCES
        return BUSY
    if _limited(site, asked, queue, state, scratch, row, option, shares):
        return LIMITED
    begin(cluster, asked, queue, state, stock, scratch, entry, now, shares, by)
    return BEGUN


@compiled
def _limited(site, asked, queue, state, scratch, row, option, shares):
    """Return whether a limit forbids what a job would hold, and note which."""
    if not site.settings[N.ENFORCED]:
        return False
    options = asked.options
    word = first_limit(
        asked, state, scratch, options[N.AFTER, option], options[N.AFTER_END, option],
        options[N.DEMAND, option], queue.rows[N.LIMIT, row], shares,
    )  # fmt: skip
    if word:
        queue.rows[N.REASON, row] = word
    return word > 0


@compiled
def main_pass(cluster, site, asked, queue, state, stock, scratch, now, full):
    """Go through the queue by priority; the first that does not fit blocks its partition."""
    rows, entries, order, settings, c = (
        queue.rows, queue.entries, queue.order, site.settings, state.c,
    )  # fmt: skip
    note_begin_times(queue, state, now)
    c[N.STAMP] += 1
    stamp, depth, partitions = c[N.STAMP], 0, site.partitions.shape[1]
    failed, counts = scratch.flags[0], scratch.flags[1]
    for partition in range(partitions):
        failed[partition] = counts[partition] = 0
    available, allowed = scratch.allowed[0], scratch.allowed[1]
    copy_set(available, site.up)
    for i in range(c[N.ORDERED]):
        entry = order[N.PLACED, i]
        row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
        if not waits(queue, entry) or rows[N.ELIGIBLE, row] > now:
            continue
        partition = asked.options[N.PARTITION, option]
        array = rows[N.ARRAY, row]
        if array >= 0:
            place = array * partitions + partition
            if state.first[0, place] == stamp and state.first[1, place] >= 0:
                rows[N.REASON, row] = rows[N.REASON, state.first[1, place]]  # an array has one
                continue
            state.first[0, place], state.first[1, place] = stamp, row
            if throttled(queue, state, row):
                continue
        if settings[N.PARTITION_DEPTH]:
            counts[partition] += 1
            if counts[partition] > settings[N.PARTITION_DEPTH]:
                if rows[N.REASON, row] == N.NONE:
                    rows[N.REASON, row] = N.PRIORITY_WORD
                continue
        if not full and depth > settings[N.DEPTH]:
            break
        depth += 1
        if failed[partition] and rows[N.RESERVATION, row] == -1:
            c[N.CHANGED] = now  # Slurm notes that it has looked at the job
            if rows[N.REASON, row] in (N.NONE, N.RESOURCES, N.NODES_KEPT):
                rows[N.REASON, row] = N.PRIORITY_WORD
            continue
        if not site.partitions[N.PARTITION_UP, partition]:
            rows[N.REASON, row] = N.PARTITION_DOWN
            continue
        d = asked.options[N.DEMAND, option]
        if settings[N.ENFORCED]:
            word = first_limit(
                asked, state, scratch, asked.options[N.BEFORE, option],
                asked.options[N.BEFORE_END, option], d, rows[N.LIMIT, row], 0,
            )  # fmt: skip
            if word:
                rows[N.REASON, row] = word
                continue
        there = 0
        for node in range(len(available)):
            there += available[node] & site.members[partition, node]
        if there < asked.demands[N.LEAST, d]:
            rows[N.REASON, row], outcome = N.NODES_KEPT, BUSY
        else:
            copy_set(allowed, available)
            outcome = try_start(
                cluster, site, asked, queue, state, stock, scratch, entry, now, allowed, N.BY_MAIN
            )
        if outcome == BEGUN:
            if array >= 0:
                state.first[1, array * partitions + partition] = -1
        elif outcome == BUSY or settings[N.LIMIT_STOPS]:
            if now - rows[N.ELIGIBLE, row] < settings[N.BF_LEAST_AGE]:
                continue
            if entries[N.PRIORITY, entry] < settings[N.BF_LEAST_PRIORITY]:
                continue
            failed[partition] = 1
            remove(available, site.members[partition])
    rejoin(site, asked, queue, state)


@compiled
def throttled(queue, state, row):
    """Return whether as many tasks of a job's array run as may."""
    most = queue.rows[N.THROTTLE, row]
    if most and state.arrays[N.TASKS, queue.rows[N.ARRAY, row]] >= most:
        queue.rows[N.REASON, row] = N.ARRAY_LIMIT
        return True
    return False
