"""The main scheduler's pass; slurm.conf(5), SchedulerParameters."""

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
    if limited(site, row, option, max(shares, 0)):
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
        site.options.before_end[option], option, site.rows.limit[row], 0,
    )  # fmt: skip
    if word or site.rows.reason[row] > N.NOT_AVAILABLE:
        site.rows.reason[row] = word
    return word == 0


def limited(site: Site, row: int, option: int, shares: int) -> bool:
    """Return whether a limit forbids what a job would hold, and note which."""
    if not site.settings.enforced:
        return False
    options = site.options
    word = first_limit(
        site, options.after[option], options.after_end[option],
        option, site.rows.limit[row], shares,
    )  # fmt: skip
    if word:
        site.rows.reason[row] = word
    return word > 0


def main_pass(site: Site, now: int, full: bool) -> None:
    """Go through the queue by priority; the first that does not fit blocks its partition."""
    c, settings, rows, entries = site.controller, site.settings, site.rows, site.entries
    note_begin_times(site, now)
    c.stamp += 1
    depth, failed = 0, site.rules.flag
    for partition in range(settings.partitions):
        failed[partition] = site.rules.counted_too[partition] = 0
    for reservation in range(settings.reservations):
        site.rules.tried[reservation] = 0
    available = site.sets[N.WORK]
    copy_set(available, site.sets[N.UP])
    order = order_of(site, now)
    for i in range(c.ordered):
        entry = entries.table[order, i]
        row, option = entries.owner[entry], entries.option[entry]
        if not waits(site, entry) or rows.eligible[row] > now:
            continue
        partition, reservation = site.options.partition[option], rows.reservation[row]
        if not _comes_to_turn(site, row, partition):
            continue
        if not full and depth > settings.depth:
            break
        depth += 1
        if _is_behind(site, row, partition, now):
            continue
        # Only a job that was at a limit is asked again before its nodes are counted.
        if rows.reason[row] > N.NOT_AVAILABLE and not within_limits(site, row, option):
            continue
        outcome = _start_on(site, entry, now, available)
        if outcome == BEGUN:
            if rows.array[row] >= 0:
                place = rows.array[row] * settings.partitions + partition
                site.tasks.first_task[place] = -1
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


def _comes_to_turn(site: Site, row: int, partition: int) -> bool:
    """Return whether a job is looked at: as the first of its array, and not too deep in the queue.

    Otherwise why it waits is noted.
    """
    c, settings, rows, tasks = site.controller, site.settings, site.rows, site.tasks
    if rows.array[row] >= 0:
        place = rows.array[row] * settings.partitions + partition
        if tasks.first_in[place] == c.stamp and tasks.first_task[place] >= 0:
            rows.reason[row] = rows.reason[tasks.first_task[place]]  # an array has one reason
            return False
        tasks.first_in[place], tasks.first_task[place] = c.stamp, row
        if throttled(site, row):
            return False
    if settings.partition_depth:
        counts = site.rules.counted_too
        counts[partition] += 1
        if counts[partition] > settings.partition_depth:
            if rows.reason[row] == N.NONE:
                rows.reason[row] = N.PRIORITY_WORD
            return False
    return True


def _is_behind(site: Site, row: int, partition: int, now: int) -> bool:
    """Return whether a job waits behind others, or its partition is down; why is noted."""
    rows, reservation = site.rows, site.rows.reservation[row]
    if reservation >= 0 and site.rules.tried[reservation]:
        rows.reason[row] = N.PRIORITY_WORD
        return True
    if site.rules.flag[partition] and reservation == -1:
        site.controller.changed = now  # Slurm notes that it has looked at the job
        if rows.reason[row] in (N.NONE, N.RESOURCES, N.NODES_KEPT):
            rows.reason[row] = N.PRIORITY_WORD
        return True
    if not site.rules.partition_up[partition]:
        rows.reason[row] = N.PARTITION_DOWN
        return True
    return False


def _start_on(site: Site, entry: int, now: int, available: Int64s) -> int:
    """Start a job on available nodes if its partition has enough of them."""
    row, option = site.entries.owner[entry], site.entries.option[entry]
    allowed, partition = site.sets[N.WORK + 1], site.options.partition[option]
    copy_set(allowed, available)
    keep_only(allowed, site.sets[N.MEMBERS + partition])
    if not has_as_many(allowed, site.demands.least[site.options.demand[option]]):
        site.rows.reason[row] = N.NODES_KEPT
        return BUSY
    copy_set(allowed, available)
    return try_start(site, entry, now, allowed, N.BY_MAIN)


def throttled(site: Site, row: int) -> bool:
    """Return whether as many tasks of a job's array run as may."""
    most = site.rows.throttle[row]
    if most and site.tasks.tasks[site.rows.array[row]] >= most:
        site.rows.reason[row] = N.ARRAY_LIMIT
        return True
    return False
