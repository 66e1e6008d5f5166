"""The main scheduler's pass; the plain form is ``environment.schedulers.slurm.controller``."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.nodes import site as N
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
from hpcrowd.environment.engine.kernel.nodes.preemption import choose_victims, order_of
from hpcrowd.environment.engine.kernel.nodes.queue import (
    begin,
    fate_of,
    rejoin,
    stop,
    waits,
)
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.kernel.nodes.suspension import suspend_in_the_way
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

# What comes of trying to start a job.
BEGUN, LIMITED, BUSY, UNAVAILABLE = range(4)


def note_begin_times(site: Site, now: int) -> None:
    """Note why jobs wait that may not start yet."""
    if site.controller.next_eligible == FOREVER:
        return
    for i in range(site.controller.ordered):
        row = site.entries.owner[site.entries.placed[i]]
        if site.rows.eligible[row] > now:
            site.rows.reason[row] = N.BEGIN_TIME


def bar_reserved(site: Site, row: int, start: int, limit: int, nodes: Int64s) -> int:
    """Take nodes out of a set that reservations keep from a job; return the first end of one."""
    settings = site.settings
    ends = 0
    for i in range(settings.reservations):
        begins, until = site.rules.begins[i], site.rules.until[i]
        if site.rows.reservation[row] == i:
            if start < begins or start + limit > until:
                clear(nodes)
                return 0
            if not site.rules.flexible[i]:
                keep_only(nodes, site.sets[settings.reserved + i])
        elif begins < start + limit and until > start:
            remove(nodes, site.sets[settings.reserved + i])
            ends = min(ends, until) if ends else until
    return ends


def try_start(site: Site, entry: int, now: int, allowed: Int64s, by: int) -> int:
    """Start a job if it can on some of the allowed nodes, which are changed."""
    settings, rows = site.settings, site.rows
    row, option = site.entries.owner[entry], site.entries.option[entry]
    d, limit = site.options.demand[option], rows.limit[row]
    if not within_limits(site, row, option):
        return LIMITED
    left = size(allowed) if settings.reservations else 0
    bar_reserved(site, row, now, limit, allowed)
    left -= size(allowed) if settings.reservations else 0
    keep_only(allowed, site.sets[N.UP])
    shares, first, last = select(site, settings.stock, d, allowed), 0, 0
    fits = shares >= 0
    if not fits:
        shares, first, last = choose_victims(site, entry, d, allowed, now)
    # A limit that it would exceed goes before what it would have to wait for.
    if _limited(site, row, option, max(shares, 0)):
        return LIMITED
    if not fits:
        if shares < 0 and by == N.BY_MAIN and not left and _never_fits(site, d, allowed):
            rows.reason[row] = N.NOT_AVAILABLE
            return UNAVAILABLE
        if shares < 0 or fate_of(site, site.lists.victim[first]) != N.SUSPENDED:
            for i in range(first, last):
                if site.lists.in_the_way[i]:
                    stop(site, site.lists.victim[i], now)
            rows.reason[row] = N.RESOURCES
            return BUSY
        suspend_in_the_way(site, first, last, shares, now)
    begin(site, entry, now, shares, by)
    return BEGUN


def _never_fits(site: Site, d: int, allowed: Int64s) -> bool:
    """Return whether a job would not fit on some of its nodes if they were free."""
    settings = site.settings
    nodes, future = site.nodes, settings.future
    wanted = site.sets[settings.sets + site.demands.set[d]]
    missing = 0
    for i in range(len(allowed)):
        missing |= wanted[i] & ~allowed[i]
    if not missing:
        return False
    for node in range(nodes.table.shape[1]):
        nodes.table[future + N.FREE_CORES, node] = nodes.cores[node]
        nodes.table[future + N.FREE_MEMORY, node] = nodes.memory[node]
        nodes.table[future + N.JOBS_HERE, node] = 0
        for kind in range(settings.kinds):
            nodes.table[future + N.FREE_GPUS + kind, node] = nodes.table[
                settings.all_gpus + kind, node
            ]
    return select(site, future, d, allowed) < 0


def within_limits(site: Site, row: int, option: int) -> bool:
    """Return whether no number of jobs is at its limit; an earlier limit is forgotten."""
    if not site.settings.enforced:
        return True
    word = first_limit(
        site, site.options.before[option],
        site.options.before_end[option], site.options.demand[option], site.rows.limit[row], 0,
    )  # fmt: skip
    if word or site.rows.reason[row] > N.NOT_AVAILABLE:
        site.rows.reason[row] = word
    return word == 0


def _limited(site: Site, row: int, option: int, shares: int) -> bool:
    """Return whether a limit forbids what a job would hold, and note which."""
    if not site.settings.enforced:
        return False
    options = site.options
    word = first_limit(
        site, options.after[option], options.after_end[option],
        options.demand[option], site.rows.limit[row], shares,
    )  # fmt: skip
    if word:
        site.rows.reason[row] = word
    return word > 0


def main_pass(site: Site, now: int, full: bool) -> None:
    """Go through the queue by priority; the first that does not fit blocks its partition."""
    c, settings, rows, entries = site.controller, site.settings, site.rows, site.entries
    note_begin_times(site, now)
    c.stamp += 1
    stamp, depth, partitions = c.stamp, 0, settings.partitions
    failed, counts = site.rules.flag, site.rules.counted_too
    for partition in range(partitions):
        failed[partition] = counts[partition] = 0
    for reservation in range(settings.reservations):
        site.rules.tried[reservation] = 0
    available, allowed = site.sets[N.WORK], site.sets[N.WORK + 1]
    copy_set(available, site.sets[N.UP])
    order = order_of(site, now)
    for i in range(c.ordered):
        entry = entries.table[order, i]
        row, option = entries.owner[entry], entries.option[entry]
        if not waits(site, entry) or rows.eligible[row] > now:
            continue
        partition = site.options.partition[option]
        array = rows.array[row]
        if array >= 0:
            place = array * partitions + partition
            if site.tasks.first_in[place] == stamp and site.tasks.first_task[place] >= 0:
                # An array has one reason.
                rows.reason[row] = rows.reason[site.tasks.first_task[place]]
                continue
            site.tasks.first_in[place], site.tasks.first_task[place] = stamp, row
            if throttled(site, row):
                continue
        if settings.partition_depth:
            counts[partition] += 1
            if counts[partition] > settings.partition_depth:
                if rows.reason[row] == N.NONE:
                    rows.reason[row] = N.PRIORITY_WORD
                continue
        if not full and depth > settings.depth:
            break
        depth += 1
        reservation = rows.reservation[row]
        if reservation >= 0 and site.rules.tried[reservation]:
            rows.reason[row] = N.PRIORITY_WORD
            continue
        if failed[partition] and reservation == -1:
            c.changed = now  # Slurm notes that it has looked at the job
            if rows.reason[row] in (N.NONE, N.RESOURCES, N.NODES_KEPT):
                rows.reason[row] = N.PRIORITY_WORD
            continue
        if not site.rules.partition_up[partition]:
            rows.reason[row] = N.PARTITION_DOWN
            continue
        d = site.options.demand[option]
        # Only a job that was at a limit is asked again before its nodes are counted.
        if rows.reason[row] > N.NOT_AVAILABLE and not within_limits(site, row, option):
            continue
        copy_set(allowed, available)
        keep_only(allowed, site.sets[N.MEMBERS + partition])
        if not has_as_many(allowed, site.demands.least[d]):
            rows.reason[row], outcome = N.NODES_KEPT, BUSY
        else:
            copy_set(allowed, available)
            outcome = try_start(site, entry, now, allowed, N.BY_MAIN)
        if outcome == BEGUN:
            if array >= 0:
                site.tasks.first_task[array * partitions + partition] = -1
        elif outcome == BUSY and reservation >= 0:
            site.rules.tried[reservation] = 1
        elif outcome == BUSY or (outcome == LIMITED and settings.limit_stops):
            if now - rows.eligible[row] < settings.bf_least_age:
                continue
            if entries.priority[entry] < settings.bf_least_priority:
                continue
            failed[partition] = 1
            remove(available, site.sets[N.MEMBERS + partition])
    rejoin(site)


def throttled(site: Site, row: int) -> bool:
    """Return whether as many tasks of a job's array run as may."""
    most = site.rows.throttle[row]
    if most and site.tasks.tasks[site.rows.array[row]] >= most:
        site.rows.reason[row] = N.ARRAY_LIMIT
        return True
    return False
