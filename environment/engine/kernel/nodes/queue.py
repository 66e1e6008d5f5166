"""Jobs in the queue and on the machine: priorities, usage, joining, starting and leaving."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.cluster import NEVER
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.limits import (
    billed,
    count_started,
    count_submitted,
    held_amount,
)
from hpcrowd.environment.engine.kernel.nodes.placement import take
from hpcrowd.environment.engine.kernel.nodes.site import Entries, Site
from hpcrowd.environment.jobs import State

#: Jobs that leave the order one by one; if there are more, all are looked at.
FEW = 16

# priorities


def age_factor(eligible: int, now: int, max_age: int) -> float:
    """Return the age factor: for how much of ``max_age`` s a job could have started, at most 1."""
    return min(max(now - eligible, 0) / max_age, 1.0)


def weigh(site: Site, row: int, now: int) -> None:
    """Compute the priority of a job in each of its partitions."""
    settings, rows, entries, factors = site.settings, site.rows, site.entries, site.weights
    rows.weighed[row] = now
    age = age_factor(rows.eligible[row], now, settings.max_age)
    share = site.fair_share.factor[rows.association[row]]
    first = rows.entry[row]
    for entry in range(first, first + rows.count[row]):
        if settings.basic:
            entries.priority[entry] = 1
            continue
        option = entries.option[entry]
        found = age * settings.weight_age
        found = found + share * settings.weight_share
        found = found + factors.size[option] + factors.partition[option]
        found = found + factors.qos[option] + factors.tres[option] - rows.nice[row]
        entries.priority[entry] = min(max(int(found), 1), N.MOST_PRIORITY)


def order_key(site: Site, entry: int) -> int:
    """Return a number that is smaller for entries that are tried earlier, but for ties."""
    row, option = site.entries.owner[entry], site.entries.option[entry]
    rank = site.rules.tier_rank[site.options.partition[option]]
    if site.rows.reservation[row] == -1:
        rank += site.settings.partitions + 1
    return (rank << N.PRIORITY_BITS) + N.MOST_PRIORITY - site.entries.priority[entry]


def place_entries(site: Site, row: int) -> None:
    """Put the entries of a job in their places in the order."""
    order = site.entries
    first = site.rows.entry[row]
    for entry in range(first, first + site.rows.count[row]):
        key = order_key(site, entry)
        low = _place(site, key, row, entry)
        for i in range(site.controller.ordered, low, -1):
            order.key[i] = order.key[i - 1]
            order.placed[i] = order.placed[i - 1]
        order.key[low], order.placed[low] = key, entry
        site.controller.ordered += 1


def waits(site: Site, entry: int) -> bool:
    """Return whether the job of an entry waits."""
    return site.rows.status[site.entries.owner[entry]] == N.WAITING


def leaves_order(site: Site, entry: int) -> None:
    """Note that the job of an entry waits no more, so that its entries leave the order."""
    site.lists.gone_of[site.controller.gone] = site.entries.owner[entry]
    site.controller.gone += 1


def sweep(site: Site) -> None:
    """Take the entries of jobs that wait no more out of the order."""
    c = site.controller
    order, to = site.entries, 0
    if c.gone <= FEW:
        for i in range(c.gone):
            row = site.lists.gone_of[i]
            first = site.rows.entry[row]
            for entry in range(first, first + site.rows.count[row]):
                place = _place(site, order_key(site, entry), row, entry)
                if place < c.ordered and order.placed[place] == entry:
                    c.ordered -= 1
                    for k in range(place, c.ordered):
                        order.key[k] = order.key[k + 1]
                        order.placed[k] = order.placed[k + 1]
    else:
        for i in range(c.ordered):
            if waits(site, order.placed[i]):
                order.key[to], order.placed[to] = order.key[i], order.placed[i]
                to += 1
        c.ordered = to
    c.gone = 0


def _place(site: Site, key: int, row: int, entry: int) -> int:
    """Return the place of an entry in the order, or where it belongs."""
    order, low, high = site.entries, 0, site.controller.ordered
    while low < high:
        middle = (low + high) >> 1
        if _later(order, key, entry, order.key[middle], order.placed[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def order_again(site: Site, now: int) -> None:
    """Compute all priorities, and put the queue in order."""
    order = site.entries
    sweep(site)
    count = site.controller.ordered
    for i in range(count):
        entry = order.placed[i]
        if entry == site.rows.entry[order.owner[entry]]:
            weigh(site, order.owner[entry], now)
    put_in_order(site)


def put_in_order(site: Site) -> None:
    """Sort the queue by present priorities."""
    order, count = site.entries, site.controller.ordered
    for i in range(count):
        order.key[i] = order_key(site, order.placed[i])
    for start in range(count // 2 - 1, -1, -1):
        _sift(order, start, count)
    for last in range(count - 1, 0, -1):
        for field in range(N.KEY, N.PLACED + 1):
            kept = order.table[field, 0]
            order.table[field, 0] = order.table[field, last]
            order.table[field, last] = kept
        _sift(order, 0, last)


def _sift(order: Entries, start: int, count: int) -> None:
    """Let an entry sink in a heap whose first entry is the last in the order."""
    i, key, entry = start, order.key[start], order.placed[start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(
            order, order.key[child + 1], order.placed[child + 1],
            order.key[child], order.placed[child],
        ):  # fmt: skip
            child += 1
        if not _later(order, order.key[child], order.placed[child], key, entry):
            break
        order.key[i], order.placed[i] = order.key[child], order.placed[child]
        i = child
    order.key[i], order.placed[i] = key, entry


def _later(order: Entries, key: int, entry: int, other_key: int, other: int) -> bool:
    """Return whether an entry comes after another one in the order."""
    if key != other_key:
        return key > other_key
    row, its = order.owner[entry], order.owner[other]
    return row > its or (row == its and entry > other)


# usage


def charge(site: Site, association: int, amount: float, seconds: int) -> None:
    """Charge what ran for the last seconds to an association and those above it."""
    kept = site.settings.left_per_second ** float(seconds)  # rounds unlike an int power
    while association >= 0:
        site.fair_share.usage[association] += amount * seconds * kept
        association = site.people.parent[association]


def bill(site: Site, tenure: int, seconds: int) -> None:
    """Charge a tenure what it ran for the last seconds, where that counts."""
    charge(site, site.rows.association[site.ledger.row[tenure]], site.bills.rate[tenure], seconds)
    if not site.settings.minutes:
        return
    option, spent = site.ledger.option[tenure], site.spent
    for i in range(site.options.uses[option], site.options.uses_end[option]):
        use = site.checks.charged[i]
        kept = spent.kept[use] ** float(seconds)
        for tres in range(site.settings.billing + 1):
            amount = site.bills.table[N.BILL_ROWS + tres, tenure]
            spent.table[N.SPENT_ROWS + tres, use] += amount * seconds * kept


def use_up(site: Site) -> None:
    """Compute usage for one calculation period that has ended; what was before may be reset."""
    c, ledger = site.controller, site.ledger
    period = site.settings.period
    begin, end = c.calculated, c.calculated + period
    c.calculated = end
    left, reset = site.settings.left_per_second, end >= c.next_reset
    if left < 1 or reset:
        left = 0.0 if reset else left ** float(period)
        for i in range(site.people.table.shape[1]):
            site.fair_share.usage[i] *= left
    if site.settings.minutes:
        for i in range(site.spent.table.shape[1]):
            left = 0.0 if reset else site.spent.left[i]
            for tres in range(site.settings.billing + 1):
                site.spent.table[N.SPENT_ROWS + tres, i] *= left
    to = 0
    for i in range(c.over):
        tenure, over = site.lists.over_of[i], site.lists.over_at[i]
        first, last = max(ledger.start[tenure], begin), min(over, end)
        if last > first:
            bill(site, tenure, last - first)
        if over > end:
            site.lists.over_of[to], site.lists.over_at[to] = tenure, over
            to += 1
    c.over = to
    row = c.first_running
    while row >= 0:
        tenure = site.rows.tenure[row]
        first = max(ledger.start[tenure], begin)
        if end > first:
            bill(site, tenure, end - first)
        row = site.rows.next[row]


# joining and leaving


def accept(site: Site, row: int) -> None:
    """Let an arriving job count on limits."""
    site.rows.status[row] = N.ACCEPTED
    site.controller.accepted += 1
    count_submitted(site, site.entries.option[site.rows.entry[row]], 1)


def join(site: Site, row: int, now: int) -> None:
    """Put a job into the queue."""
    c, rows = site.controller, site.rows
    if rows.status[row] != N.ACCEPTED:
        accept(site, row)
    c.accepted -= 1
    if c.next_full < 0:
        c.next_full = now + site.settings.full_phase
    rows.status[row] = N.WAITING
    rows.submitted[row] = now
    rows.eligible[row] = max(now, rows.begin[row])
    if rows.eligible[row] > now:
        c.next_eligible = min(c.next_eligible, rows.eligible[row])
    rows.reason[row], rows.planned[row], rows.tenure[row] = N.NONE, -1, -1
    c.waiting += 1
    weigh(site, row, now)
    sweep(site)
    place_entries(site, row)
    c.wanted, c.changed, c.looked_at_all = 1, now, -1


def withdraw(site: Site, row: int) -> None:
    """Take a job that waits or was accepted out of the queue."""
    rows = site.rows
    if rows.status[row] == N.ACCEPTED:
        site.controller.accepted -= 1
    else:
        site.controller.waiting -= 1
        leaves_order(site, rows.entry[row])
    rows.status[row] = N.AWAY
    count_submitted(site, site.entries.option[rows.entry[row]], -1)
    sweep(site)


def leave(site: Site, row: int, now: int) -> None:
    """Let a job give back what it holds."""
    lists, c, rows, ledger = site.lists, site.controller, site.rows, site.ledger
    tenure = rows.tenure[row]
    first, last = ledger.first[tenure], ledger.last[tenure]
    take(site, site.settings.stock, first, last, 1)
    c.base_of = -1
    count_started(site, ledger.option[tenure], first, last, -1)
    lists.over_of[c.over], lists.over_at[c.over] = tenure, now
    c.over += 1
    if rows.array[row] >= 0:
        site.tasks.tasks[rows.array[row]] -= 1
    before, after = rows.before_it[row], rows.next[row]
    if before >= 0:
        rows.next[before] = after
    else:
        c.first_running = after
    if after >= 0:
        rows.before_it[after] = before
    else:
        c.last_running = before
    forget_end(site, row)
    pause, paused = rows.pause[row], site.jobs.paused
    if pause >= 0:  # taken back while it was suspended
        paused[row] = max(paused[row], 0) + now - site.pauses.begin[pause]
        rows.pause[row] = -1
    c.running -= 1
    rows.status[row] = N.AWAY


def latest_end(site: Site, row: int) -> int:
    """Return when a running job ends at the latest, s."""
    return site.ledger.start[site.rows.tenure[row]] + site.rows.limit[row] + site.rows.rested[row]


def note_end(site: Site, row: int, count: int) -> None:
    """Put a running job among the latest ends, of which there are ``count``."""
    lists, place = site.lists, _place_of_end(site, row, count)
    for i in range(count, place, -1):
        lists.end_at[i], lists.end_of[i] = lists.end_at[i - 1], lists.end_of[i - 1]
    lists.end_at[place], lists.end_of[place] = latest_end(site, row), row


def forget_end(site: Site, row: int) -> None:
    """Take a running job out of the latest ends."""
    lists, count = site.lists, site.controller.running
    for i in range(_place_of_end(site, row, count), count - 1):
        lists.end_at[i], lists.end_of[i] = lists.end_at[i + 1], lists.end_of[i + 1]


def _place_of_end(site: Site, row: int, count: int) -> int:
    """Return the place of a running job among the latest ends, or where it belongs."""
    end = latest_end(site, row)
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        other = site.lists.end_at[middle]
        if other < end or (other == end and site.lists.end_of[middle] < row):
            low = middle + 1
        else:
            high = middle
    return low


def finish(site: Site, row: int, now: int, killed: bool) -> None:
    """Note that a running job has ended; ``killed`` at its limit or by its user."""
    c, rows = site.controller, site.rows
    leave(site, row, now)
    count_submitted(site, site.entries.option[rows.entry[row]], -1)
    c.wanted, c.changed, c.looked_at_all = 1, now, -1
    if killed:
        c.urgent = 1
    due = c.urgent or now - c.last_main >= site.settings.delay
    if not c.waiting and due:
        c.last_main, c.wanted, c.urgent = now, 0, 0


def begin(site: Site, entry: int, now: int, shares: int, by: int) -> None:
    """Let a waiting job begin with the chosen shares."""
    site.controller.waiting -= 1
    leaves_order(site, entry)
    first = hold_chosen(site, shares)
    occupy(site, entry, now, first, first + shares, by)
    site.controller.changed = now
    _run(site, site.entries.owner[entry], now)


def hold_chosen(site: Site, shares: int) -> int:
    """Let the chosen shares be held; return the place of the first."""
    c = site.controller
    first, chosen = c.shares, site.settings.chosen
    for i in range(shares):
        for field in range(site.held.table.shape[0]):
            site.held.table[field, first + i] = site.nodes.table[chosen + field, i]
    c.shares = first + shares
    take(site, site.settings.stock, first, first + shares, -1)
    c.base_of = -1
    return first


def occupy(site: Site, entry: int, start: int, first: int, last: int, by: int) -> None:
    """Note that a job runs from a start on, with shares that are held."""
    c, rows, entries, ledger = site.controller, site.rows, site.entries, site.ledger
    row, option = entries.owner[entry], entries.option[entry]
    tenure, held, settings = c.tenures, site.held, site.settings
    c.tenures = tenure + 1
    ledger.row[tenure] = row
    ledger.submitted[tenure] = rows.submitted[row]
    ledger.eligible[tenure] = rows.eligible[row]
    ledger.start[tenure], ledger.end[tenure] = start, -1
    ledger.by[tenure], ledger.option[tenure] = by, option
    ledger.first[tenure], ledger.last[tenure] = first, last
    cost, counts = billed(site, option, held.table, 0, first, last), site.weights.counts[option]
    site.bills.rate[tenure] = cost * counts
    if settings.minutes:
        for tres in range(settings.billing):
            amount = held_amount(held.table, 0, settings.kinds, first, last, tres)
            site.bills.table[N.BILL_ROWS + tres, tenure] = amount * counts
        site.bills.table[N.BILL_ROWS + settings.billing, tenure] = int(cost) * counts
    rows.status[row], rows.tenure[row], rows.reason[row] = N.RUNNING, tenure, N.NONE
    count_started(site, option, first, last, 1)
    if rows.array[row] >= 0:
        site.tasks.tasks[rows.array[row]] += 1
    before = c.last_running
    rows.before_it[row], rows.next[row] = before, -1
    if before >= 0:
        rows.next[before] = row
    else:
        c.first_running = row
    c.last_running = row
    rows.suspended[row] = rows.pause[row] = -1
    rows.rested[row] = 0
    note_end(site, row, c.running)
    c.running += 1


def _run(site: Site, row: int, now: int) -> None:
    """Run a job from now on, for as long as it may; limits are checked now and then."""
    settings, jobs, state = site.settings, site.jobs, site.state
    end = now + jobs.run_time[row] + settings.latency
    limit = now + jobs.requested_time[row]
    if state.kill and end > limit:
        end = limit + (settings.kill_phase - limit) % settings.kill_every
    jobs.start[row], jobs.end[row] = now, end
    heap_push(site.ends, state.running, end, row)
    state.running += 1
    state.free -= jobs.processors[row]
    state.waiting -= 1
    state.asked -= jobs.processors[row]


def stop(site: Site, row: int, now: int) -> None:
    """Stop a running job to make room; requeued ones join the queue after the pass."""
    c, rows, jobs, state = site.controller, site.rows, site.jobs, site.state
    fate = fate_of(site, row)
    tenure = rows.tenure[row]
    leave(site, row, now)
    site.ledger.end[tenure] = now
    note = c.stopped
    site.lists.stopped_row[note], site.lists.stopped_at[note] = row, now
    site.lists.stopped_fate[note] = fate
    site.lists.stopped_start[note] = jobs.start[row]
    c.stopped += 1
    halt(site, row)
    state.free += jobs.processors[row]
    if fate == N.REQUEUED:
        jobs.start[row] = jobs.end[row] = jobs.paused[row] = NEVER
        state.waiting += 1
        state.asked += jobs.processors[row]
        site.lists.again_of[c.again] = row
        c.again += 1
        c.waiting += 1
        rows.status[row], rows.submitted[row] = N.COMING, now
        rows.eligible[row] = now + site.settings.requeue_delay
        c.next_eligible = min(c.next_eligible, rows.eligible[row])
        rows.reason[row], rows.planned[row] = N.BEGIN_TIME, -1
        rows.tenure[row] = -1
        weigh(site, row, now)
    else:
        jobs.end[row] = now
        jobs.state[row] = State.FAILED
        count_submitted(site, site.entries.option[rows.entry[row]], -1)


def fate_of(site: Site, row: int) -> int:
    """Return what happens to a running job that is preempted."""
    tenure = site.rows.tenure[row]
    fate = site.options.fate[site.ledger.option[tenure]]
    if fate == N.REQUEUED and not (site.rows.requeues[row] and site.settings.may_requeue):
        return N.CANCELLED
    return fate


def halt(site: Site, row: int) -> None:
    """Take a job out of the heap of ends."""
    state, ends = site.state, site.ends
    to = 0
    for i in range(state.running):
        if ends.job[i] != row:
            ends.time[to], ends.job[to] = ends.time[i], ends.job[i]
            to += 1
    for i in range(to):
        heap_push(ends, i, ends.time[i], ends.job[i])
    state.running = to


def rejoin(site: Site) -> None:
    """Put requeued jobs into the order."""
    sweep(site)
    for i in range(site.controller.again):
        site.rows.status[site.lists.again_of[i]] = N.WAITING
        place_entries(site, site.lists.again_of[i])
    site.controller.again = 0
