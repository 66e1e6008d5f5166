"""The scheduling pass: start heads, and EASY backfilling.

EASY keeps the results of one pass for the next: as long as only arrivals happened and the shadow
time has not passed, refused jobs would be refused again, so only new jobs are considered. The same
policies without such shortcuts are in ``environment/schedulers``.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.cluster import (
    BLOCK,
    EASY,
    GAP,
    LOOKS,
    NEVER,
    Cluster,
    ClusterState,
    Expected,
    Jobs,
    Queue,
)
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.sleeping import (
    balance,
    make_room,
    next_pending,
    pending,
    take_for,
)
from hpcrowd.environment.jobs import State
from hpcrowd.environment.stops import FOREVER


def expect(state: ClusterState, expected: Expected, end: int, processors: int) -> None:
    """Note that ``processors`` are expected back at ``end``; rows stay sorted by time."""
    low, high = state.expected_first, state.expected_end
    while low < high:
        middle = (low + high) >> 1
        if expected.end[middle] <= end:
            low = middle + 1
        else:
            high = middle
    first, last = state.expected_first, state.expected_end
    if first > 0 and low - first < last - low:
        for i in range(first, low):
            expected.end[i - 1] = expected.end[i]
            expected.processors[i - 1] = expected.processors[i]
        state.expected_first = first - 1
        low -= 1
    else:
        for i in range(last, low, -1):
            expected.end[i] = expected.end[i - 1]
            expected.processors[i] = expected.processors[i - 1]
        state.expected_end = last + 1
    expected.end[low] = end
    expected.processors[low] = processors


def forget(state: ClusterState, expected: Expected, end: int, processors: int) -> None:
    """Take one entry (``end``, ``processors``) out again; which of equal ones does not matter."""
    first, last = state.expected_first, state.expected_end
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if expected.end[middle] < end:
            low = middle + 1
        else:
            high = middle
    while expected.processors[low] != processors:
        low += 1
    if low - first < last - low:
        for i in range(low, first, -1):
            expected.end[i] = expected.end[i - 1]
            expected.processors[i] = expected.processors[i - 1]
        state.expected_first = first + 1
    else:
        for i in range(low, last - 1):
            expected.end[i] = expected.end[i + 1]
            expected.processors[i] = expected.processors[i + 1]
        state.expected_end = last - 1


def estimate(jobs: Jobs, state: ClusterState, job: int) -> int:
    """Set the estimate of the run time of ``job``, and return it."""
    requested = jobs.requested_time[job]
    believed = requested
    if state.exact:
        believed = jobs.run_time[job]
        if state.kill:
            believed = min(believed, requested)
    elif state.factor != state.divisor:
        believed = (2 * requested * state.factor + state.divisor) // (2 * state.divisor)
    jobs.estimate[job] = believed
    return believed


def prepare(cluster: Cluster) -> bool:
    """Take note of processors that are free again; return whether a pass has room in the ledger."""
    ledger, state = cluster.ledger, cluster.state
    if not make_room(ledger, state.waiting):
        return False
    balance(ledger, state.now, state.free)
    return True


def run_from(cluster: Cluster, job: int, start: int) -> None:
    """Run ``job`` from ``start`` on, for as long as it may."""
    jobs, state = cluster.jobs, cluster.state
    run = jobs.run_time[job]
    if state.kill and run > jobs.requested_time[job]:
        run = jobs.requested_time[job]
    jobs.start[job] = start
    jobs.end[job] = start + run
    heap_push(cluster.ends, state.running, start + run, job)
    state.running += 1


def start_job(cluster: Cluster, job: int) -> None:
    """Start ``job`` now, which was waiting, or as soon as its nodes are switched on.

    Passes believe that it starts now; the next one takes note of a later start.
    """
    jobs, state = cluster.jobs, cluster.state
    at = state.now
    if state.sleeps:
        run = jobs.run_time[job]
        if state.kill:
            run = min(run, jobs.requested_time[job])
        at += take_for(cluster.ledger, job, at, jobs.processors[job], run)
    run_from(cluster, job, at)
    state.free -= jobs.processors[job]
    state.waiting -= 1
    state.asked -= jobs.processors[job]


def start(cluster: Cluster, job: int) -> None:
    """Start ``job``, and note when it is expected back if that matters.

    If it has to wait for its nodes, it is expected back accordingly later after the pass.
    """
    jobs, state = cluster.jobs, cluster.state
    start_job(cluster, job)
    if state.policy == EASY:
        expect(state, cluster.expected, state.now + jobs.estimate[job], jobs.processors[job])


def expect_later(cluster: Cluster) -> None:
    """Take note of the jobs of this pass that wait for nodes to be switched on."""
    jobs, state, expected = cluster.jobs, cluster.state, cluster.expected
    while pending(cluster.ledger):
        job = next_pending(cluster.ledger)
        if state.policy == EASY:
            length, processors = jobs.estimate[job], jobs.processors[job]
            forget(state, expected, state.now + length, processors)
            if state.expected_end == expected.table.shape[1]:
                slide(state, expected)
            expect(state, expected, jobs.start[job] + length, processors)
            state.stale = True


def start_heads(cluster: Cluster) -> bool:
    """Start jobs from the head of the queue while they fit; return whether the queue is left."""
    state, queue = cluster.state, cluster.queue
    head, tail = state.queue_head, state.queue_tail
    longest = state.closes - state.now
    while head < tail:
        need = queue.need[head]
        if need == GAP:
            state.queue_gaps -= 1
        elif need <= state.free and queue.length[head] <= longest:
            start(cluster, queue.job[head])
            state.stale = True
        else:
            break
        head += 1
    if head == tail:
        head = tail = 0
        state.queue_tail = 0
    state.queue_head = head
    if state.scanned < head or tail == 0:
        state.scanned = head
    return head < tail


def reserve_head(cluster: Cluster) -> None:
    """Set when the head is expected to start, the shadow time, and what it leaves free then.

    It starts as soon as enough of the running jobs are expected to have ended (Lifka 1995).
    """
    state, expected = cluster.state, cluster.expected
    need, length = cluster.queue.need[state.queue_head], cluster.queue.length[state.queue_head]
    now, last = state.now, state.expected_end
    free, shadow, k = state.free, now, state.expected_first
    while free < need and k < last:
        free += expected.processors[k]
        shadow = max(now, expected.end[k])
        k += 1
    while k < last and expected.end[k] <= shadow:
        free += expected.processors[k]
        k += 1
    if free < need:  # part of the machine is down
        shadow, free = FOREVER, need
    if shadow > state.closes - length:  # all other jobs end before maintenance
        shadow, free = state.reopens, need
    state.shadow, state.spare = shadow, free - need


def easy_pass(cluster: Cluster) -> None:
    """EASY backfilling: the head holds a reservation, later jobs start if they do not delay it."""
    state, queue = cluster.state, cluster.queue
    now = state.now
    if not state.stale and state.queue_head < state.queue_tail and state.shadow >= now:
        i = state.scanned
    else:
        if not start_heads(cluster):
            state.stale = True
            return
        reserve_head(cluster)
        state.stale = False
        i = state.queue_head + 1
    looks, tail = 0, state.queue_tail
    free, spare, latest = state.free, state.spare, state.shadow - now
    longest = state.closes - now
    while i < tail and free > 0:
        block = i >> BLOCK
        first, end = i, min((block + 1) << BLOCK, tail)
        most = free if queue.least_length[block] <= latest else min(free, spare)
        if queue.least_need[block] > most:
            i = end
            continue
        least, shortest = GAP, GAP
        while i < end and free > 0:
            wanted, length = queue.need[i], queue.length[i]
            ends_in_time = length <= latest
            if wanted <= free and length <= longest and (ends_in_time or wanted <= spare):
                if not ends_in_time:
                    spare -= wanted
                start(cluster, queue.job[i])
                free -= wanted
                queue.need[i] = GAP
                state.queue_gaps += 1
            elif wanted < GAP:
                least, shortest = min(least, wanted), min(shortest, length)
            i += 1
        looks += i - first
        if i == end and first == block << BLOCK:
            queue.least_need[block], queue.least_length[block] = least, shortest
    state.allowance -= looks // LOOKS
    state.spare = spare
    state.scanned = tail


def close_gaps(state: ClusterState, queue: Queue) -> None:
    """Close the gaps in the queue."""
    to = 0
    scanned = state.scanned
    for i in range(state.queue_head, state.queue_tail):
        if i == scanned:
            state.scanned = to
        if queue.need[i] != GAP:
            queue.job[to] = queue.job[i]
            queue.need[to] = queue.need[i]
            queue.length[to] = queue.length[i]
            to += 1
    for block in range((state.queue_tail >> BLOCK) + 1):
        queue.least_need[block] = queue.least_length[block] = 0
    if scanned >= state.queue_tail:
        state.scanned = to
    state.queue_head = 0
    state.queue_tail = to
    state.queue_gaps = 0


def turned_away(jobs: Jobs, job: int, most: int) -> bool:
    """Note that an arriving job is renounced, or larger than ``most``; return whether it is."""
    if jobs.state[job] == State.RENOUNCED:
        jobs.submit[job] = jobs.cluster[job] = NEVER
        return True
    if jobs.processors[job] > most:
        jobs.state[job] = State.REJECTED
        return True
    return False


def _bound(state: ClusterState, queue: Queue, at: int) -> None:
    """Lower the bounds of a block, which EASY looks at, to the job at a place in it."""
    if state.policy != EASY:
        return
    block = at >> BLOCK
    queue.least_need[block] = min(queue.least_need[block], queue.need[at])
    queue.least_length[block] = min(queue.least_length[block], queue.length[at])


def enqueue(cluster: Cluster, job: int) -> None:
    """Put an arriving job at the end of the queue; jobs of one second are ordered by number."""
    jobs, state, queue = cluster.jobs, cluster.state, cluster.queue
    if state.pace != state.pace_one and jobs.run_time[job] > 0:
        scaled = (2 * jobs.run_time[job] * state.pace_one + state.pace) // (2 * state.pace)
        jobs.run_time[job] = max(1, scaled)
    at = state.queue_tail
    state.queue_tail = at + 1
    state.waiting += 1
    state.asked += jobs.processors[job]
    jobs.enqueued[job] = state.now
    while at > state.queue_head:
        other = queue.job[at - 1]
        if jobs.enqueued[other] < state.now or other < job:
            break
        queue.job[at] = other
        queue.need[at] = queue.need[at - 1]
        queue.length[at] = queue.length[at - 1]
        _bound(state, queue, at)
        at -= 1
    if at < state.scanned:
        state.stale = True
    queue.job[at] = job
    queue.need[at] = jobs.processors[job]
    queue.length[at] = estimate(jobs, state, job)
    _bound(state, queue, at)


def slide(state: ClusterState, expected: Expected) -> None:
    """Move the expected ends to the front of their array."""
    first, last = state.expected_first, state.expected_end
    for i in range(first, last):
        expected.end[i - first] = expected.end[i]
        expected.processors[i - first] = expected.processors[i]
    state.expected_first = 0
    state.expected_end = last - first
