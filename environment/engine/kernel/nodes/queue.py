"""Jobs in the queue and on the machine: priorities, usage, joining, starting and leaving.

The plain form is ``environment.schedulers.slurm.controller``.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import count_started, count_submitted
from hpcrowd.environment.engine.kernel.nodes.placement import take
from hpcrowd.environment.engine.kernel.nodes.places import Site
from hpcrowd.environment.jobs import Int64Rows, Int64s

#: Jobs that leave the order one by one; if there are more, all are looked at.
FEW = 16

# priorities


def weigh(g: Site, row: int, now: int) -> None:
    """Compute the priority of a job in each of its partitions."""
    rows, entries, factors = g.rows, g.entries, g.weights
    rows[N.WEIGHED, row] = now
    waited = now - rows[N.ELIGIBLE, row] if rows[N.ELIGIBLE, row] <= now else 0
    age = min(max(waited, 0) / g.c[N.MAX_AGE], 1.0)
    share = g.reals[N.SHARE, rows[N.ASSOCIATION, row]]
    first = rows[N.ENTRY, row]
    for entry in range(first, first + rows[N.COUNT, row]):
        if g.c[N.BASIC]:
            entries[N.PRIORITY, entry] = 1
            continue
        option = entries[N.OPTION, entry]
        found = age * g.reals[N.AMOUNTS, N.WEIGHT_AGE]
        found = found + share * g.reals[N.AMOUNTS, N.WEIGHT_SHARE]
        found = found + factors[N.F_SIZE, option] + factors[N.F_PARTITION, option]
        found = found + factors[N.F_QOS, option] + factors[N.F_TRES, option] - rows[N.NICE, row]
        entries[N.PRIORITY, entry] = min(max(int(found), 1), N.MOST_PRIORITY)


def order_key(g: Site, entry: int) -> int:
    """Return a number that is smaller for entries that are tried earlier, but for ties."""
    row, option = g.entries[N.OWNER, entry], g.entries[N.OPTION, entry]
    rank = g.rules[N.TIER_RANK, g.options[N.PARTITION, option]]
    if g.rows[N.RESERVATION, row] == -1:
        rank += g.c[N.PARTITIONS] + 1
    return (rank << N.PRIORITY_BITS) + N.MOST_PRIORITY - g.entries[N.PRIORITY, entry]


def place_entries(g: Site, row: int) -> None:
    """Put the entries of a job in their places in the order."""
    c, order = g.c, g.entries
    first = g.rows[N.ENTRY, row]
    for entry in range(first, first + g.rows[N.COUNT, row]):
        key = order_key(g, entry)
        low = _place(g, key, row, entry)
        for i in range(c[N.ORDERED], low, -1):
            order[N.KEY, i] = order[N.KEY, i - 1]
            order[N.PLACED, i] = order[N.PLACED, i - 1]
        order[N.KEY, low], order[N.PLACED, low] = key, entry
        c[N.ORDERED] += 1


def waits(g: Site, entry: int) -> bool:
    """Return whether the job of an entry waits."""
    return g.rows[N.STATUS, g.entries[N.OWNER, entry]] == N.WAITING


def leaves_order(g: Site, entry: int) -> None:
    """Note that the job of an entry waits no more, so that its entries leave the order."""
    g.lists[N.GONE_OF, g.c[N.GONE]] = g.entries[N.OWNER, entry]
    g.c[N.GONE] += 1


def sweep(g: Site) -> None:
    """Take the entries of jobs that wait no more out of the order."""
    c, order, to = g.c, g.entries, 0
    if c[N.GONE] <= FEW:
        for i in range(c[N.GONE]):
            row = g.lists[N.GONE_OF, i]
            first = g.rows[N.ENTRY, row]
            for entry in range(first, first + g.rows[N.COUNT, row]):
                place = _place(g, order_key(g, entry), row, entry)
                if place < c[N.ORDERED] and order[N.PLACED, place] == entry:
                    c[N.ORDERED] -= 1
                    for k in range(place, c[N.ORDERED]):
                        order[N.KEY, k] = order[N.KEY, k + 1]
                        order[N.PLACED, k] = order[N.PLACED, k + 1]
    else:
        for i in range(c[N.ORDERED]):
            if waits(g, order[N.PLACED, i]):
                order[N.KEY, to], order[N.PLACED, to] = order[N.KEY, i], order[N.PLACED, i]
                to += 1
        c[N.ORDERED] = to
    c[N.GONE] = 0


def _place(g: Site, key: int, row: int, entry: int) -> int:
    """Return the place of an entry in the order, or where it belongs."""
    order, low, high = g.entries, 0, g.c[N.ORDERED]
    while low < high:
        middle = (low + high) >> 1
        if _later(order, key, entry, order[N.KEY, middle], order[N.PLACED, middle]):
            low = middle + 1
        else:
            high = middle
    return low


def order_again(g: Site, now: int) -> None:
    """Compute all priorities, and put the queue in order."""
    c, order = g.c, g.entries
    sweep(g)
    count = c[N.ORDERED]
    for i in range(count):
        entry = order[N.PLACED, i]
        if entry == g.rows[N.ENTRY, order[N.OWNER, entry]]:
            weigh(g, order[N.OWNER, entry], now)
    put_in_order(g)


def put_in_order(g: Site) -> None:
    """Sort the queue by present priorities."""
    order, count = g.entries, g.c[N.ORDERED]
    for i in range(count):
        order[N.KEY, i] = order_key(g, order[N.PLACED, i])
    for start in range(count // 2 - 1, -1, -1):
        _sift(order, start, count)
    for last in range(count - 1, 0, -1):
        for field in range(N.KEY, N.PLACED + 1):
            kept = order[field, 0]
            order[field, 0] = order[field, last]
            order[field, last] = kept
        _sift(order, 0, last)


def _sift(order: Int64Rows, start: int, count: int) -> None:
    """Let an entry sink in a heap whose first entry is the last in the order."""
    i, key, entry = start, order[N.KEY, start], order[N.PLACED, start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(
            order, order[N.KEY, child + 1], order[N.PLACED, child + 1],
            order[N.KEY, child], order[N.PLACED, child],
        ):  # fmt: skip
            child += 1
        if not _later(order, order[N.KEY, child], order[N.PLACED, child], key, entry):
            break
        order[N.KEY, i], order[N.PLACED, i] = order[N.KEY, child], order[N.PLACED, child]
        i = child
    order[N.KEY, i], order[N.PLACED, i] = key, entry


def _later(order: Int64Rows, key: int, entry: int, other_key: int, other: int) -> bool:
    """Return whether an entry comes after another one in the order."""
    if key != other_key:
        return key > other_key
    row, its = order[N.OWNER, entry], order[N.OWNER, other]
    return row > its or (row == its and entry > other)


# usage


def charge(g: Site, association: int, amount: float, seconds: int) -> None:
    """Charge what ran for the last seconds to an association and those above it."""
    kept = g.reals[N.AMOUNTS, N.LEFT_PER_SECOND] ** float(seconds)  # rounds unlike an int power
    while association >= 0:
        g.reals[N.USAGE, association] += amount * seconds * kept
        association = g.people[N.PARENT, association]


def use_up(g: Site) -> None:
    """Compute usage for one calculation period that has ended."""
    c, ledger = g.c, g.ledger
    period = g.c[N.PERIOD]
    begin, end = c[N.CALCULATED], c[N.CALCULATED] + period
    c[N.CALCULATED] = end
    left = g.reals[N.AMOUNTS, N.LEFT_PER_SECOND]
    if left < 1:
        left = left ** float(period)
        for i in range(g.people.shape[1]):
            g.reals[N.USAGE, i] *= left
    to = 0
    for i in range(c[N.OVER]):
        tenure, over = g.lists[N.OVER_OF, i], g.lists[N.OVER_AT, i]
        first, last = max(ledger[N.L_START, tenure], begin), min(over, end)
        if last > first:
            association = g.rows[N.ASSOCIATION, ledger[N.L_ROW, tenure]]
            charge(g, association, ledger[N.L_CORES, tenure] * 1.0, last - first)
        if over > end:
            g.lists[N.OVER_OF, to], g.lists[N.OVER_AT, to] = tenure, over
            to += 1
    c[N.OVER] = to
    row = c[N.FIRST_RUNNING]
    while row >= 0:
        tenure = g.rows[N.TENURE, row]
        first = max(ledger[N.L_START, tenure], begin)
        if end > first:
            association = g.rows[N.ASSOCIATION, row]
            charge(g, association, ledger[N.L_CORES, tenure] * 1.0, end - first)
        row = g.rows[N.NEXT, row]


# joining and leaving


def accept(g: Site, row: int) -> None:
    """Let an arriving job count on limits."""
    g.rows[N.STATUS, row] = N.ACCEPTED
    g.c[N.ALL_ACCEPTED] += 1
    count_submitted(g, g.entries[N.OPTION, g.rows[N.ENTRY, row]], 1)


def join(g: Site, row: int, now: int) -> None:
    """Put a job into the queue."""
    rows, c = g.rows, g.c
    if rows[N.STATUS, row] != N.ACCEPTED:
        accept(g, row)
    c[N.ALL_ACCEPTED] -= 1
    if c[N.NEXT_FULL] < 0:
        c[N.NEXT_FULL] = now + c[N.FULL_PHASE]
    rows[N.STATUS, row] = N.WAITING
    rows[N.SUBMITTED, row] = now
    rows[N.ELIGIBLE, row] = max(now, rows[N.BEGIN, row])
    if rows[N.ELIGIBLE, row] > now:
        c[N.NEXT_ELIGIBLE] = min(c[N.NEXT_ELIGIBLE], rows[N.ELIGIBLE, row])
    rows[N.REASON, row], rows[N.PLANNED, row], rows[N.TENURE, row] = N.NONE, -1, -1
    c[N.ALL_WAITING] += 1
    weigh(g, row, now)
    sweep(g)
    place_entries(g, row)
    c[N.WANTED], c[N.CHANGED], c[N.LOOKED_AT_ALL] = 1, now, -1


def withdraw(g: Site, row: int) -> None:
    """Take a job that waits or was accepted out of the queue."""
    rows, c = g.rows, g.c
    if rows[N.STATUS, row] == N.ACCEPTED:
        c[N.ALL_ACCEPTED] -= 1
    else:
        c[N.ALL_WAITING] -= 1
        leaves_order(g, rows[N.ENTRY, row])
    rows[N.STATUS, row] = N.AWAY
    count_submitted(g, g.entries[N.OPTION, rows[N.ENTRY, row]], -1)
    sweep(g)


def leave(g: Site, row: int, now: int) -> None:
    """Let a job give back what it holds."""
    rows, c, ledger = g.rows, g.c, g.ledger
    tenure = rows[N.TENURE, row]
    first, last = ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure]
    take(g, c[N.STOCK], first, last, 1)
    c[N.BASE_OF] = -1
    count_started(g, ledger[N.L_OPTION, tenure], first, last, -1)
    g.lists[N.OVER_OF, c[N.OVER]], g.lists[N.OVER_AT, c[N.OVER]] = tenure, now
    c[N.OVER] += 1
    if rows[N.ARRAY, row] >= 0:
        g.tasks[N.TASKS, rows[N.ARRAY, row]] -= 1
    before, after = rows[N.BEFORE_IT, row], rows[N.NEXT, row]
    if before >= 0:
        rows[N.NEXT, before] = after
    else:
        c[N.FIRST_RUNNING] = after
    if after >= 0:
        rows[N.BEFORE_IT, after] = before
    else:
        c[N.LAST_RUNNING] = before
    place = place_of_end(g, row)
    c[N.ALL_RUNNING] -= 1
    for i in range(place, c[N.ALL_RUNNING]):
        g.lists[N.END_AT, i], g.lists[N.END_OF, i] = (
            g.lists[N.END_AT, i + 1],
            g.lists[N.END_OF, i + 1],
        )
    rows[N.STATUS, row] = N.AWAY


def place_of_end(g: Site, row: int) -> int:
    """Return the place of a running job among the latest ends, or where it belongs."""
    tenure = g.rows[N.TENURE, row]
    end = g.ledger[N.L_START, tenure] + g.rows[N.LIMIT, row]
    low, high = 0, g.c[N.ALL_RUNNING]
    while low < high:
        middle = (low + high) >> 1
        other = g.lists[N.END_AT, middle]
        if other < end or (other == end and g.lists[N.END_OF, middle] < row):
            low = middle + 1
        else:
            high = middle
    return low


def finish(g: Site, row: int, now: int, killed: bool) -> None:
    """Note that a running job has ended; ``killed`` at its limit or by its user."""
    c, rows = g.c, g.rows
    leave(g, row, now)
    count_submitted(g, g.entries[N.OPTION, rows[N.ENTRY, row]], -1)
    c[N.WANTED], c[N.CHANGED], c[N.LOOKED_AT_ALL] = 1, now, -1
    if killed:
        c[N.URGENT] = 1
    due = c[N.URGENT] or now - c[N.LAST_MAIN] >= g.reals[N.AMOUNTS, N.DELAY]
    if not c[N.ALL_WAITING] and due:
        c[N.LAST_MAIN], c[N.WANTED], c[N.URGENT] = now, 0, 0


def begin(g: Site, entry: int, now: int, shares: int, by: int) -> None:
    """Let a waiting job begin with the chosen shares."""
    c = g.c
    c[N.ALL_WAITING] -= 1
    leaves_order(g, entry)
    first = hold_chosen(g, shares)
    occupy(g, entry, now, first, first + shares, by)
    c[N.CHANGED] = now
    _run(g, g.entries[N.OWNER, entry], now)


def hold_chosen(g: Site, shares: int) -> int:
    """Let the chosen shares be held; return the place of the first."""
    first, chosen = g.c[N.SHARES], g.c[N.CHOSEN]
    for i in range(shares):
        for field in range(g.held.shape[0]):
            g.held[field, first + i] = g.nodes[chosen + field, i]
    g.c[N.SHARES] = first + shares
    take(g, g.c[N.STOCK], first, first + shares, -1)
    g.c[N.BASE_OF] = -1
    return first


def occupy(g: Site, entry: int, start: int, first: int, last: int, by: int) -> None:
    """Note that a job runs from a start on, with shares that are held."""
    rows, entries, c, ledger = g.rows, g.entries, g.c, g.ledger
    row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
    tenure, cores = c[N.TENURES], 0
    for i in range(first, last):
        cores += g.held[N.S_CORES, i]
    c[N.TENURES] = tenure + 1
    ledger[N.L_ROW, tenure] = row
    ledger[N.L_SUBMITTED, tenure] = rows[N.SUBMITTED, row]
    ledger[N.L_ELIGIBLE, tenure] = rows[N.ELIGIBLE, row]
    ledger[N.L_START, tenure], ledger[N.L_END, tenure] = start, -1
    ledger[N.L_BY, tenure], ledger[N.L_OPTION, tenure] = by, option
    ledger[N.L_CORES, tenure] = cores
    ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure] = first, last
    rows[N.STATUS, row], rows[N.TENURE, row], rows[N.REASON, row] = N.RUNNING, tenure, N.NONE
    count_started(g, option, first, last, 1)
    if rows[N.ARRAY, row] >= 0:
        g.tasks[N.TASKS, rows[N.ARRAY, row]] += 1
    before = c[N.LAST_RUNNING]
    rows[N.BEFORE_IT, row], rows[N.NEXT, row] = before, -1
    if before >= 0:
        rows[N.NEXT, before] = row
    else:
        c[N.FIRST_RUNNING] = row
    c[N.LAST_RUNNING] = row
    place = place_of_end(g, row)
    for i in range(c[N.ALL_RUNNING], place, -1):
        g.lists[N.END_AT, i], g.lists[N.END_OF, i] = (
            g.lists[N.END_AT, i - 1],
            g.lists[N.END_OF, i - 1],
        )
    g.lists[N.END_AT, place], g.lists[N.END_OF, place] = start + rows[N.LIMIT, row], row
    c[N.ALL_RUNNING] += 1


def _run(g: Site, row: int, now: int) -> None:
    """Run a job from now on, for as long as it may; limits are checked now and then."""
    jobs, s, c = g.jobs, g.s, g.c
    end = now + jobs[S.RUN_TIME, row] + c[N.LATENCY]
    limit = now + jobs[S.REQUESTED_TIME, row]
    if s[S.KILL] and end > limit:
        end = limit + (c[N.KILL_PHASE] - limit) % c[N.KILL_EVERY]
    jobs[S.START, row], jobs[S.END, row] = now, end
    heap_push(g.ends, s[S.RUNNING], end, row)
    s[S.RUNNING] += 1
    s[S.FREE] -= jobs[S.PROCESSORS, row]
    s[S.WAITING] -= 1
    s[S.ASKED] -= jobs[S.PROCESSORS, row]


def stop(g: Site, row: int, now: int) -> None:
    """Stop a running job to make room; requeued ones join the queue after the pass."""
    rows, c, jobs, s = g.rows, g.c, g.jobs, g.s
    fate = fate_of(g, row)
    tenure = rows[N.TENURE, row]
    leave(g, row, now)
    g.ledger[N.L_END, tenure] = now
    note = c[N.STOPPED]
    g.lists[N.STOPPED_ROW, note], g.lists[N.STOPPED_AT, note] = row, now
    g.lists[N.STOPPED_FATE, note] = fate
    g.lists[N.STOPPED_START, note] = jobs[S.START, row]
    c[N.STOPPED] += 1
    _halt(g.ends, g.s, row)
    s[S.FREE] += jobs[S.PROCESSORS, row]
    if fate == N.REQUEUED:
        jobs[S.START, row] = jobs[S.END, row] = S.NEVER
        s[S.WAITING] += 1
        s[S.ASKED] += jobs[S.PROCESSORS, row]
        g.lists[N.AGAIN_OF, c[N.AGAIN]] = row
        c[N.AGAIN] += 1
        c[N.ALL_WAITING] += 1
        rows[N.STATUS, row], rows[N.SUBMITTED, row] = N.COMING, now
        rows[N.ELIGIBLE, row] = now + c[N.REQUEUE_DELAY]
        c[N.NEXT_ELIGIBLE] = min(c[N.NEXT_ELIGIBLE], rows[N.ELIGIBLE, row])
        rows[N.REASON, row], rows[N.PLANNED, row] = N.BEGIN_TIME, -1
        rows[N.TENURE, row] = -1
        weigh(g, row, now)
    else:
        jobs[S.END, row] = now
        jobs[S.STATE, row] = S.FAILED
        count_submitted(g, g.entries[N.OPTION, rows[N.ENTRY, row]], -1)


def fate_of(g: Site, row: int) -> int:
    """Return what happens to a running job that is preempted."""
    tenure = g.rows[N.TENURE, row]
    fate = g.options[N.FATE, g.ledger[N.L_OPTION, tenure]]
    if fate == N.REQUEUED and not (g.rows[N.REQUEUES, row] and g.c[N.MAY_REQUEUE]):
        return N.CANCELLED
    return fate


def _halt(ends: Int64Rows, s: Int64s, row: int) -> None:
    """Take a job out of the heap of ends."""
    to = 0
    for i in range(s[S.RUNNING]):
        if ends[1, i] != row:
            ends[0, to], ends[1, to] = ends[0, i], ends[1, i]
            to += 1
    for i in range(to):
        heap_push(ends, i, ends[0, i], ends[1, i])
    s[S.RUNNING] = to


def rejoin(g: Site) -> None:
    """Put requeued jobs into the order."""
    sweep(g)
    for i in range(g.c[N.AGAIN]):
        g.rows[N.STATUS, g.lists[N.AGAIN_OF, i]] = N.WAITING
        place_entries(g, g.lists[N.AGAIN_OF, i])
    g.c[N.AGAIN] = 0
