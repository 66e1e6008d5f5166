"""Jobs in the queue and on the machine: priorities, usage, joining, starting and leaving.

The plain form is ``environment.schedulers.slurm.controller``.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.nodes import places as N
from hpcrowd.environment.engine.kernel.nodes.limits import count_started, count_submitted
from hpcrowd.environment.engine.kernel.nodes.placement import take

# priorities


@compiled
def weigh(site, asked, queue, state, row, now):
    """Compute the priority of a job in each of its partitions."""
    rows, entries, amounts, settings = queue.rows, queue.entries, site.amounts, site.settings
    rows[N.WEIGHED, row] = now
    waited = now - rows[N.ELIGIBLE, row] if rows[N.ELIGIBLE, row] <= now else 0
    age = min(max(waited, 0) / settings[N.MAX_AGE], 1.0)
    share = state.shares[rows[N.ASSOCIATION, row]]
    first = rows[N.ENTRY, row]
    for entry in range(first, first + rows[N.COUNT, row]):
        if settings[N.BASIC]:
            entries[N.PRIORITY, entry] = 1
            continue
        factors, option = asked.factors, entries[N.OPTION, entry]
        found = age * amounts[N.WEIGHT_AGE] + share * amounts[N.WEIGHT_SHARE]
        found = found + factors[N.F_SIZE, option] + factors[N.F_PARTITION, option]
        found = found + factors[N.F_QOS, option] + factors[N.F_TRES, option] - rows[N.NICE, row]
        entries[N.PRIORITY, entry] = min(max(np.int64(found), 1), N.MOST_PRIORITY)


@compiled
def order_key(site, asked, queue, entry):
    """Return a number that is smaller for entries that are tried earlier, but for ties."""
    row, option = queue.entries[N.OWNER, entry], queue.entries[N.OPTION, entry]
    rank = site.partitions[N.TIER_RANK, asked.options[N.PARTITION, option]]
    if queue.rows[N.RESERVATION, row] == -1:
        rank += site.partitions.shape[1] + 1
    return (rank << N.PRIORITY_BITS) + N.MOST_PRIORITY - queue.entries[N.PRIORITY, entry]


@compiled
def place_entries(site, asked, queue, state, row):
    """Put the entries of a job in their places in the order."""
    c, order, entries = state.c, queue.order, queue.entries
    first = queue.rows[N.ENTRY, row]
    for entry in range(first, first + queue.rows[N.COUNT, row]):
        key = order_key(site, asked, queue, entry)
        low, high = 0, c[N.ORDERED]
        while low < high:
            middle = (low + high) >> 1
            other = order[N.PLACED, middle]
            owner = entries[N.OWNER, other]
            if order[N.KEY, middle] < key or (
                order[N.KEY, middle] == key and (owner < row or (owner == row and other < entry))
            ):
                low = middle + 1
            else:
                high = middle
        for i in range(c[N.ORDERED], low, -1):
            order[N.KEY, i] = order[N.KEY, i - 1]
            order[N.PLACED, i] = order[N.PLACED, i - 1]
        order[N.KEY, low], order[N.PLACED, low] = key, entry
        c[N.ORDERED] += 1


@compiled
def waits(queue, entry):
    """Return whether the job of an entry waits."""
    return queue.rows[N.STATUS, queue.entries[N.OWNER, entry]] == N.WAITING


@compiled
def sweep(queue, state):
    """Take the entries of jobs that wait no more out of the order."""
    c, order, to = state.c, queue.order, 0
    if not c[N.GONE]:
        return
    for i in range(c[N.ORDERED]):
        if waits(queue, order[N.PLACED, i]):
            order[N.KEY, to], order[N.PLACED, to] = order[N.KEY, i], order[N.PLACED, i]
            to += 1
    c[N.ORDERED], c[N.GONE] = to, 0


@compiled
def order_again(site, asked, queue, state, now):
    """Compute all priorities, and put the queue in order."""
    c, order, entries = state.c, queue.order, queue.entries
    sweep(queue, state)
    count = c[N.ORDERED]
    for i in range(count):
        entry = order[N.PLACED, i]
        if entry == queue.rows[N.ENTRY, entries[N.OWNER, entry]]:
            weigh(site, asked, queue, state, entries[N.OWNER, entry], now)
    for i in range(count):
        order[N.KEY, i] = order_key(site, asked, queue, order[N.PLACED, i])
    for start in range(count // 2 - 1, -1, -1):
        _sift(order, entries, start, count)
    for last in range(count - 1, 0, -1):
        for field in range(2):
            kept = order[field, 0]
            order[field, 0] = order[field, last]
            order[field, last] = kept
        _sift(order, entries, 0, last)


@compiled
def _sift(order, entries, start, count):
    """Let an entry sink in a heap whose first entry is the last in the order."""
    i, key, entry = start, order[N.KEY, start], order[N.PLACED, start]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _later(
            entries, order[N.KEY, child + 1], order[N.PLACED, child + 1],
            order[N.KEY, child], order[N.PLACED, child],
        ):  # fmt: skip
            child += 1
        if not _later(entries, order[N.KEY, child], order[N.PLACED, child], key, entry):
            break
        order[N.KEY, i], order[N.PLACED, i] = order[N.KEY, child], order[N.PLACED, child]
        i = child
    order[N.KEY, i], order[N.PLACED, i] = key, entry


@compiled
def _later(entries, key, entry, other_key, other):
    """Return whether an entry comes after another one in the order."""
    if key != other_key:
        return key > other_key
    row, its = entries[N.OWNER, entry], entries[N.OWNER, other]
    return row > its or (row == its and entry > other)


# usage


@compiled
def charge(site, state, association, amount, seconds):
    """Charge what ran for the last seconds to an association and those above it."""
    kept = site.amounts[N.LEFT_PER_SECOND] ** seconds
    while association >= 0:
        state.usage[association] += amount * seconds * kept
        association = state.parents[association]


@compiled
def use_up(site, queue, state):
    """Compute usage for one calculation period that has ended."""
    c, usage, ledger = state.c, state.usage, state.ledger
    period = site.settings[N.PERIOD]
    begin, end = c[N.CALCULATED], c[N.CALCULATED] + period
    c[N.CALCULATED] = end
    left = site.amounts[N.LEFT_PER_SECOND]
    if left < 1:
        left = left**period
        for i in range(len(usage)):
            usage[i] *= left
    to = 0
    for i in range(c[N.OVER]):
        tenure, over = state.over[0, i], state.over[1, i]
        first, last = max(ledger[N.L_START, tenure], begin), min(over, end)
        if last > first:
            association = queue.rows[N.ASSOCIATION, ledger[N.L_ROW, tenure]]
            charge(site, state, association, ledger[N.L_CORES, tenure] * 1.0, last - first)
        if over > end:
            state.over[0, to], state.over[1, to] = tenure, over
            to += 1
    c[N.OVER] = to
    row = c[N.FIRST_RUNNING]
    while row >= 0:
        tenure = queue.rows[N.TENURE, row]
        first = max(ledger[N.L_START, tenure], begin)
        if end > first:
            association = queue.rows[N.ASSOCIATION, row]
            charge(site, state, association, ledger[N.L_CORES, tenure] * 1.0, end - first)
        row = queue.rows[N.NEXT, row]


# joining and leaving


@compiled
def join(site, asked, queue, state, row, now):
    """Put a job into the queue."""
    rows, c = queue.rows, state.c
    rows[N.STATUS, row] = N.WAITING
    rows[N.SUBMITTED, row] = now
    rows[N.ELIGIBLE, row] = max(now, rows[N.BEGIN, row])
    rows[N.REASON, row], rows[N.PLANNED, row], rows[N.TENURE, row] = N.NONE, -1, -1
    c[N.ALL_WAITING] += 1
    count_submitted(asked, state, queue.entries[N.OPTION, rows[N.ENTRY, row]], 1)
    weigh(site, asked, queue, state, row, now)
    sweep(queue, state)
    place_entries(site, asked, queue, state, row)
    c[N.WANTED], c[N.CHANGED], c[N.LOOKED_AT_ALL] = 1, now, -1


@compiled
def withdraw(asked, queue, state, row):
    """Take a waiting job out of the queue."""
    rows, c = queue.rows, state.c
    rows[N.STATUS, row] = N.AWAY
    c[N.ALL_WAITING] -= 1
    c[N.GONE] += rows[N.COUNT, row]
    count_submitted(asked, state, queue.entries[N.OPTION, rows[N.ENTRY, row]], -1)
    sweep(queue, state)


@compiled
def leave(asked, queue, state, stock, row, now):
    """Let a job give back what it holds."""
    rows, c, ledger = queue.rows, state.c, state.ledger
    tenure = rows[N.TENURE, row]
    first, last = ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure]
    take(stock, state.held, first, last, 1)
    count_started(asked, state, ledger[N.L_OPTION, tenure], state.held, first, last, -1)
    state.over[0, c[N.OVER]], state.over[1, c[N.OVER]] = tenure, now
    c[N.OVER] += 1
    if rows[N.ARRAY, row] >= 0:
        state.arrays[N.TASKS, rows[N.ARRAY, row]] -= 1
    before, after = rows[N.BEFORE_IT, row], rows[N.NEXT, row]
    if before >= 0:
        rows[N.NEXT, before] = after
    else:
        c[N.FIRST_RUNNING] = after
    if after >= 0:
        rows[N.BEFORE_IT, after] = before
    else:
        c[N.LAST_RUNNING] = before
    place = place_of_end(queue, state, row)
    c[N.ALL_RUNNING] -= 1
    for i in range(place, c[N.ALL_RUNNING]):
        state.ends[0, i], state.ends[1, i] = state.ends[0, i + 1], state.ends[1, i + 1]
    rows[N.STATUS, row] = N.AWAY


@compiled
def place_of_end(queue, state, row):
    """Return the place of a running job among the latest ends, or where it belongs."""
    tenure = queue.rows[N.TENURE, row]
    end = state.ledger[N.L_START, tenure] + queue.rows[N.LIMIT, row]
    low, high = 0, state.c[N.ALL_RUNNING]
    while low < high:
        middle = (low + high) >> 1
        other = state.ends[0, middle]
        if other < end or (other == end and state.ends[1, middle] < row):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def finish(site, asked, queue, state, stock, row, now, killed):
    """Note that a running job has ended; ``killed`` at its limit or by its user."""
    c, rows = state.c, queue.rows
    leave(asked, queue, state, stock, row, now)
    count_submitted(asked, state, queue.entries[N.OPTION, rows[N.ENTRY, row]], -1)
    c[N.WANTED], c[N.CHANGED], c[N.LOOKED_AT_ALL] = 1, now, -1
    if killed:
        c[N.URGENT] = 1
    due = c[N.URGENT] or now - c[N.LAST_MAIN] >= site.amounts[N.DELAY]
    if not c[N.ALL_WAITING] and due:
        c[N.LAST_MAIN], c[N.WANTED], c[N.URGENT] = now, 0, 0


@compiled
def begin(cluster, asked, queue, state, stock, scratch, entry, now, shares, by):
    """Let a waiting job begin with the chosen shares."""
    rows, entries, c, ledger = queue.rows, queue.entries, state.c, state.ledger
    row, option = entries[N.OWNER, entry], entries[N.OPTION, entry]
    tenure, first = c[N.TENURES], c[N.SHARES]
    cores = 0
    for i in range(shares):
        for field in range(state.held.shape[0]):
            state.held[field, first + i] = scratch.chosen[field, i]
        cores += scratch.chosen[N.S_CORES, i]
    c[N.TENURES], c[N.SHARES] = tenure + 1, first + shares
    ledger[N.L_ROW, tenure] = row
    ledger[N.L_SUBMITTED, tenure] = rows[N.SUBMITTED, row]
    ledger[N.L_ELIGIBLE, tenure] = rows[N.ELIGIBLE, row]
    ledger[N.L_START, tenure], ledger[N.L_END, tenure] = now, -1
    ledger[N.L_BY, tenure], ledger[N.L_OPTION, tenure] = by, option
    ledger[N.L_CORES, tenure] = cores
    ledger[N.L_FIRST, tenure], ledger[N.L_LAST, tenure] = first, first + shares
    rows[N.STATUS, row], rows[N.TENURE, row], rows[N.REASON, row] = N.RUNNING, tenure, N.NONE
    c[N.ALL_WAITING] -= 1
    c[N.GONE] += rows[N.COUNT, row]
    take(stock, state.held, first, first + shares, -1)
    count_started(asked, state, option, state.held, first, first + shares, 1)
    if rows[N.ARRAY, row] >= 0:
        state.arrays[N.TASKS, rows[N.ARRAY, row]] += 1
    last = c[N.LAST_RUNNING]
    rows[N.BEFORE_IT, row], rows[N.NEXT, row] = last, -1
    if last >= 0:
        rows[N.NEXT, last] = row
    else:
        c[N.FIRST_RUNNING] = row
    c[N.LAST_RUNNING] = row
    place = place_of_end(queue, state, row)
    for i in range(c[N.ALL_RUNNING], place, -1):
        state.ends[0, i], state.ends[1, i] = state.ends[0, i - 1], state.ends[1, i - 1]
    state.ends[0, place], state.ends[1, place] = now + rows[N.LIMIT, row], row
    c[N.ALL_RUNNING] += 1
    c[N.CHANGED] = now
    _run(cluster, c, row, now)


@compiled
def _run(cluster, c, row, now):
    """Run a job from now on, for as long as it may; limits are checked now and then."""
    jobs, s = cluster.jobs, cluster.s
    end = now + jobs[S.RUN_TIME, row] + c[N.LATENCY]
    limit = now + jobs[S.REQUESTED_TIME, row]
    if s[S.KILL] and end > limit:
        end = limit + (c[N.KILL_PHASE] - limit) % c[N.KILL_EVERY]
    jobs[S.START, row], jobs[S.END, row] = now, end
    heap_push(cluster.ends, s[S.RUNNING], end, row)
    s[S.RUNNING] += 1
    s[S.FREE] -= jobs[S.PROCESSORS, row]
    s[S.WAITING] -= 1
    s[S.ASKED] -= jobs[S.PROCESSORS, row]


@compiled
def stop(cluster, site, asked, queue, state, stock, row, now):
    """Stop a running job to make room; requeued ones join the queue after the pass."""
    rows, c, jobs, s = queue.rows, state.c, cluster.jobs, cluster.s
    fate = fate_of(site, asked, queue, state, row)
    tenure = rows[N.TENURE, row]
    leave(asked, queue, state, stock, row, now)
    state.ledger[N.L_END, tenure] = now
    note = c[N.STOPPED]
    state.stopped[N.STOPPED_ROW, note], state.stopped[N.STOPPED_AT, note] = row, now
    state.stopped[N.STOPPED_FATE, note] = fate
    state.stopped[N.STOPPED_START, note] = jobs[S.START, row]
    c[N.STOPPED] += 1
    _halt(cluster, row)
    s[S.FREE] += jobs[S.PROCESSORS, row]
    if fate == N.REQUEUED:
        jobs[S.START, row] = jobs[S.END, row] = S.NEVER
        s[S.WAITING] += 1
        s[S.ASKED] += jobs[S.PROCESSORS, row]
        state.again[c[N.AGAIN]] = row
        c[N.AGAIN] += 1
        c[N.ALL_WAITING] += 1
        rows[N.STATUS, row], rows[N.SUBMITTED, row] = N.COMING, now
        rows[N.ELIGIBLE, row] = now + site.settings[N.REQUEUE_DELAY]
        rows[N.REASON, row], rows[N.PLANNED, row] = N.BEGIN_TIME, -1
        rows[N.TENURE, row] = -1
        weigh(site, asked, queue, state, row, now)
    else:
        jobs[S.END, row] = now
        jobs[S.STATE, row] = S.FAILED
        count_submitted(asked, state, queue.entries[N.OPTION, rows[N.ENTRY, row]], -1)


@compiled
def fate_of(site, asked, queue, state, row):
    """Return what happens to a running job that is preempted."""
    tenure = queue.rows[N.TENURE, row]
    fate = asked.options[N.FATE, state.ledger[N.L_OPTION, tenure]]
    if fate == N.REQUEUED and not (queue.rows[N.REQUEUES, row] and site.settings[N.MAY_REQUEUE]):
        return N.CANCELLED
    return fate


@compiled
def _halt(cluster, row):
    """Take a job out of the heap of ends."""
    ends, s = cluster.ends, cluster.s
    to = 0
    for i in range(s[S.RUNNING]):
        if ends[1, i] != row:
            ends[0, to], ends[1, to] = ends[0, i], ends[1, i]
            to += 1
    for i in range(to):
        heap_push(ends, i, ends[0, i], ends[1, i])
    s[S.RUNNING] = to


@compiled
def rejoin(site, asked, queue, state):
    """Put requeued jobs into the order."""
    sweep(queue, state)
    for i in range(state.c[N.AGAIN]):
        queue.rows[N.STATUS, state.again[i]] = N.WAITING
        place_entries(site, asked, queue, state, state.again[i])
    state.c[N.AGAIN] = 0
