"""The main scheduler's pass; the plain form is ``environment.schedulers.slurm.controller``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import first_limit
from hpcrowd.environment.engine.kernel.nodes.placement import (
    clear,
    copy_set,
    has_as_many,
    keep_only,
    remove,
    select,
    size,
)
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.engine.kernel.nodes.preemption import candidates, choose_victims, order_of
from hpcrowd.environment.engine.kernel.nodes.queue import begin, rejoin, stop, waits
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

# What comes of trying to start a job.
BEGUN, LIMITED, BUSY, UNAVAILABLE = range(4)


def note_begin_times(g: Site, now: int) -> None:
    """Note why jobs wait that may not start yet."""
    if g.c[N.NEXT_ELIGIBLE] == FOREVER:
        return
    for i in range(g.c[N.ORDERED]):
        row = g.entries[N.OWNER, g.entries[N.PLACED, i]]
        if g.rows[N.ELIGIBLE, row] > now:
            g.rows[N.REASON, row] = N.BEGIN_TIME


def bar_reserved(g: Site, row: int, start: int, limit: int, nodes: Int64s) -> int:
    """Take nodes out of a set that reservations keep from a job; return the first end of one."""
    ends = 0
    for i in range(g.c[N.RESERVATIONS]):
        begins, until = g.rules[N.FROM, i], g.rules[N.UNTIL, i]
        if g.rows[N.RESERVATION, row] == i:
            if start < begins or start + limit > until:
                clear(nodes)
                return 0
            if not g.rules[N.FLEXIBLE, i]:
                keep_only(nodes, g.sets[g.c[N.RESERVED] + i])
        elif begins < start + limit and until > start:
            remove(nodes, g.sets[g.c[N.RESERVED] + i])
            ends = min(ends, until) if ends else until
    return ends


def try_start(g: Site, entry: int, now: int, allowed: Int64s, by: int) -> int:
    """Start a job if it can on some of the allowed nodes, which are changed."""
    rows = g.rows
    row, option = g.entries[N.OWNER, entry], g.entries[N.OPTION, entry]
    d, limit = g.options[N.DEMAND, option], rows[N.LIMIT, row]
    if not within_limits(g, row, option):
        return LIMITED
    left = size(allowed) if g.c[N.RESERVATIONS] else 0
    bar_reserved(g, row, now, limit, allowed)
    left -= size(allowed) if g.c[N.RESERVATIONS] else 0
    keep_only(allowed, g.sets[N.UP])
    shares = select(g, g.c[N.STOCK], d, allowed)
    if shares < 0:
        count = candidates(g, entry, now)
        if count:
            shares, removed = choose_victims(g, d, allowed, count)
            if shares >= 0:
                if _limited(g, row, option, shares):
                    return LIMITED
                for i in range(removed):
                    if g.lists[N.IN_THE_WAY, i]:
                        other = g.lists[N.VICTIM, i]
                        stop(g, other, now)
                rows[N.REASON, row] = N.RESOURCES
                return BUSY
        # A limit that it would exceed goes before what it would have to wait for.
        if _limited(g, row, option, 0):
            return LIMITED
        if by == N.BY_MAIN and not left and _never_fits(g, d, allowed):
            rows[N.REASON, row] = N.NOT_AVAILABLE
            return UNAVAILABLE
        rows[N.REASON, row] = N.RESOURCES
        return BUSY
    if _limited(g, row, option, shares):
        return LIMITED
    begin(g, entry, now, shares, by)
    return BEGUN


def _never_fits(g: Site, d: int, allowed: Int64s) -> bool:
    """Return whether a job would not fit on some of its nodes if they were free."""
    nodes, future, wanted = g.nodes, g.c[N.FUTURE], g.sets[g.c[N.SETS] + g.demands[N.SET, d]]
    missing = 0
    for i in range(len(allowed)):
        missing |= wanted[i] & ~allowed[i]
    if not missing:
        return False
    for node in range(nodes.shape[1]):
        nodes[future + N.FREE_CORES, node] = nodes[N.CORES, node]
        nodes[future + N.FREE_MEMORY, node] = nodes[N.MEMORY, node]
        nodes[future + N.JOBS_HERE, node] = 0
        for kind in range(g.c[N.KINDS]):
            nodes[future + N.FREE_GPUS + kind, node] = nodes[g.c[N.ALL_GPUS] + kind, node]
    return select(g, future, d, allowed) < 0


def within_limits(g: Site, row: int, option: int) -> bool:
    """Return whether no number of jobs is at its limit; an earlier limit is forgotten."""
    if not g.c[N.ENFORCED]:
        return True
    word = first_limit(
        g, g.options[N.BEFORE, option],
        g.options[N.BEFORE_END, option], g.options[N.DEMAND, option], g.rows[N.LIMIT, row], 0,
    )  # fmt: skip
    if word or g.rows[N.REASON, row] > N.NOT_AVAILABLE:
        g.rows[N.REASON, row] = word
    return word == 0


def _limited(g: Site, row: int, option: int, shares: int) -> bool:
    """Return whether a limit forbids what a job would hold, and note which."""
    if not g.c[N.ENFORCED]:
        return False
    options = g.options
    word = first_limit(
        g, options[N.AFTER, option], options[N.AFTER_END, option],
        options[N.DEMAND, option], g.rows[N.LIMIT, row], shares,
    )  # fmt: skip
    if word:
        g.rows[N.REASON, row] = word
    return word > 0


def main_pass(g: Site, now: int, full: bool) -> None:
    """Go through the queue by priority; the first that does not fit blocks its partition."""
    rows, entries, c = g.rows, g.entries, g.c
    note_begin_times(g, now)
    c[N.STAMP] += 1
    stamp, depth, partitions = c[N.STAMP], 0, g.c[N.PARTITIONS]
    failed, counts = g.rules[N.FLAG], g.rules[N.COUNTED_TOO]
    for partition in range(partitions):
        failed[partition] = counts[partition] = 0
    for reservation in range(c[N.RESERVATIONS]):
        g.rules[N.TRIED, reservation] = 0
    available, allowed = g.sets[N.WORK], g.sets[N.WORK + 1]
    copy_set(available, g.sets[N.UP])
    order = order_of(g, now)
    for i in range(c[N.ORDERED]):
        entry = entries[order, i]
        row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
        if not waits(g, entry) or rows[N.ELIGIBLE, row] > now:
            continue
        partition = g.options[N.PARTITION, option]
        array = rows[N.ARRAY, row]
        if array >= 0:
            place = array * partitions + partition
            if g.tasks[N.FIRST_IN, place] == stamp and g.tasks[N.FIRST_TASK, place] >= 0:
                # An array has one reason.
                rows[N.REASON, row] = rows[N.REASON, g.tasks[N.FIRST_TASK, place]]
                continue
            g.tasks[N.FIRST_IN, place], g.tasks[N.FIRST_TASK, place] = stamp, row
            if throttled(g, row):
                continue
        if c[N.PARTITION_DEPTH]:
            counts[partition] += 1
            if counts[partition] > c[N.PARTITION_DEPTH]:
                if rows[N.REASON, row] == N.NONE:
                    rows[N.REASON, row] = N.PRIORITY_WORD
                continue
        if not full and depth > c[N.DEPTH]:
            break
        depth += 1
        reservation = rows[N.RESERVATION, row]
        if reservation >= 0 and g.rules[N.TRIED, reservation]:
            rows[N.REASON, row] = N.PRIORITY_WORD
            continue
        if failed[partition] and reservation == -1:
            c[N.CHANGED] = now  # Slurm notes that it has looked at the job
            if rows[N.REASON, row] in (N.NONE, N.RESOURCES, N.NODES_KEPT):
                rows[N.REASON, row] = N.PRIORITY_WORD
            continue
        if not g.rules[N.PARTITION_UP, partition]:
            rows[N.REASON, row] = N.PARTITION_DOWN
            continue
        d = g.options[N.DEMAND, option]
        # Only a job that was at a limit is asked again before its nodes are counted.
        if rows[N.REASON, row] > N.NOT_AVAILABLE and not within_limits(g, row, option):
            continue
        copy_set(allowed, available)
        keep_only(allowed, g.sets[N.MEMBERS + partition])
        if not has_as_many(allowed, g.demands[N.LEAST, d]):
            rows[N.REASON, row], outcome = N.NODES_KEPT, BUSY
        else:
            copy_set(allowed, available)
            outcome = try_start(g, entry, now, allowed, N.BY_MAIN)
        if outcome == BEGUN:
            if array >= 0:
                g.tasks[N.FIRST_TASK, array * partitions + partition] = -1
        elif outcome == BUSY and reservation >= 0:
            g.rules[N.TRIED, reservation] = 1
        elif outcome == BUSY or (outcome == LIMITED and c[N.LIMIT_STOPS]):
            if now - rows[N.ELIGIBLE, row] < c[N.BF_LEAST_AGE]:
                continue
            if entries[N.PRIORITY, entry] < c[N.BF_LEAST_PRIORITY]:
                continue
            failed[partition] = 1
            remove(available, g.sets[N.MEMBERS + partition])
    rejoin(g)


def throttled(g: Site, row: int) -> bool:
    """Return whether as many tasks of a job's array run as may."""
    most = g.rows[N.THROTTLE, row]
    if most and g.tasks[N.TASKS, g.rows[N.ARRAY, row]] >= most:
        g.rows[N.REASON, row] = N.ARRAY_LIMIT
        return True
    return False
