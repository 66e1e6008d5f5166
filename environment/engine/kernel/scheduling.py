"""The scheduling pass: start heads, and EASY backfilling.

EASY keeps the results of one pass for the next: as long as only arrivals happened and the shadow
time has not passed, refused jobs would be refused again, so only new jobs are considered. The same
policies without such shortcuts are in ``environment/schedulers``.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.sleeping import next_pending, pending, switch_on
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER


def expect(s: Int64s, expected: Int64Rows, end: int, processors: int) -> None:
    """Note that ``processors`` are expected back at ``end``; rows stay sorted by time."""
    low, high = s[S.EXPECTED_FIRST], s[S.EXPECTED_END]
    while low < high:
        middle = (low + high) >> 1
        if expected[0, middle] <= end:
            low = middle + 1
        else:
            high = middle
    first, last = s[S.EXPECTED_FIRST], s[S.EXPECTED_END]
    if first > 0 and low - first < last - low:
        for i in range(first, low):
            expected[0, i - 1] = expected[0, i]
            expected[1, i - 1] = expected[1, i]
        s[S.EXPECTED_FIRST] = first - 1
        low -= 1
    else:
        for i in range(last, low, -1):
            expected[0, i] = expected[0, i - 1]
            expected[1, i] = expected[1, i - 1]
        s[S.EXPECTED_END] = last + 1
    expected[0, low] = end
    expected[1, low] = processors


def forget(s: Int64s, expected: Int64Rows, end: int, processors: int) -> None:
    """Take one entry (``end``, ``processors``) out again; which of equal ones does not matter."""
    first, last = s[S.EXPECTED_FIRST], s[S.EXPECTED_END]
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if expected[0, middle] < end:
            low = middle + 1
        else:
            high = middle
    while expected[1, low] != processors:
        low += 1
    if low - first < last - low:
        for i in range(low, first, -1):
            expected[0, i] = expected[0, i - 1]
            expected[1, i] = expected[1, i - 1]
        s[S.EXPECTED_FIRST] = first + 1
    else:
        for i in range(low, last - 1):
            expected[0, i] = expected[0, i + 1]
            expected[1, i] = expected[1, i + 1]
        s[S.EXPECTED_END] = last - 1


def estimate(jobs: Int64Rows, s: Int64s, job: int) -> int:
    """Set the estimate of the run time of ``job``, and return it."""
    requested = jobs[S.REQUESTED_TIME, job]
    believed = requested
    if s[S.EXACT]:
        believed = jobs[S.RUN_TIME, job]
        if s[S.KILL]:
            believed = min(believed, requested)
    elif s[S.FACTOR] != s[S.DIVISOR]:
        believed = (2 * requested * s[S.FACTOR] + s[S.DIVISOR]) // (2 * s[S.DIVISOR])
    jobs[S.ESTIMATE, job] = believed
    return believed


def run_from(cluster: Cluster, job: int, start: int) -> None:
    """Run ``job`` from ``start`` on, for as long as it may."""
    jobs, s = cluster.jobs, cluster.s
    run = jobs[S.RUN_TIME, job]
    if s[S.KILL] and run > jobs[S.REQUESTED_TIME, job]:
        run = jobs[S.REQUESTED_TIME, job]
    jobs[S.START, job] = start
    jobs[S.END, job] = start + run
    heap_push(cluster.ends, s[S.RUNNING], start + run, job)
    s[S.RUNNING] += 1


def start_job(cluster: Cluster, job: int) -> None:
    """Start ``job`` now, which was waiting, or as soon as its nodes are switched on.

    Passes believe that it starts now; the next one takes note of a later start.
    """
    jobs, s = cluster.jobs, cluster.s
    at = s[S.NOW]
    if s[S.SLEEPS]:
        at += switch_on(jobs, s, job)
    run_from(cluster, job, at)
    s[S.FREE] -= jobs[S.PROCESSORS, job]
    s[S.WAITING] -= 1
    s[S.ASKED] -= jobs[S.PROCESSORS, job]


def start(cluster: Cluster, job: int) -> None:
    """Start ``job``, and note when it is expected back if that matters.

    If it has to wait for its nodes, it is expected back accordingly later after the pass.
    """
    jobs, s = cluster.jobs, cluster.s
    start_job(cluster, job)
    if s[S.POLICY] == S.EASY:
        expect(s, cluster.expected, s[S.NOW] + jobs[S.ESTIMATE, job], jobs[S.PROCESSORS, job])


def expect_later(cluster: Cluster) -> None:
    """Take note of the jobs of this pass that wait for nodes to be switched on."""
    jobs, s, expected = cluster.jobs, cluster.s, cluster.expected
    while pending(s):
        job = next_pending(s)
        if s[S.POLICY] == S.EASY:
            length, processors = jobs[S.ESTIMATE, job], jobs[S.PROCESSORS, job]
            forget(s, expected, s[S.NOW] + length, processors)
            if s[S.EXPECTED_END] == expected.shape[1]:
                slide(s, expected)
            expect(s, expected, jobs[S.START, job] + length, processors)
            s[S.STALE] = 1


def start_heads(cluster: Cluster) -> bool:
    """Start jobs from the head of the queue while they fit; return whether the queue is left."""
    s, queue = cluster.s, cluster.queue
    head, tail = s[S.QUEUE_HEAD], s[S.QUEUE_TAIL]
    longest = s[S.CLOSES] - s[S.NOW]
    while head < tail:
        need = queue[1, head]
        if need == S.GAP:
            s[S.QUEUE_GAPS] -= 1
        elif need <= s[S.FREE] and queue[2, head] <= longest:
            start(cluster, queue[0, head])
            s[S.STALE] = 1
        else:
            break
        head += 1
    if head == tail:
        head = tail = 0
        s[S.QUEUE_TAIL] = 0
    s[S.QUEUE_HEAD] = head
    if s[S.SCANNED] < head or tail == 0:
        s[S.SCANNED] = head
    return head < tail


def easy_pass(cluster: Cluster) -> None:
    """EASY backfilling: the head holds a reservation, later jobs start if they do not delay it."""
    s, queue, expected = cluster.s, cluster.queue, cluster.expected
    now = s[S.NOW]
    if s[S.STALE] == 0 and s[S.QUEUE_HEAD] < s[S.QUEUE_TAIL] and s[S.SHADOW] >= now:
        i = s[S.SCANNED]
    else:
        if not start_heads(cluster):
            s[S.STALE] = 1
            return
        need = queue[1, s[S.QUEUE_HEAD]]
        back = s[S.FREE]
        shadow = now
        k = s[S.EXPECTED_FIRST]
        while back < need and k < s[S.EXPECTED_END]:
            back += expected[1, k]
            shadow = max(now, expected[0, k])
            k += 1
        while k < s[S.EXPECTED_END] and expected[0, k] <= shadow:
            back += expected[1, k]
            k += 1
        if back < need:  # part of the machine is down
            shadow, back = FOREVER, need
        if (
            shadow > s[S.CLOSES] - queue[2, s[S.QUEUE_HEAD]]
        ):  # all other jobs end before maintenance
            shadow, back = s[S.REOPENS], need
        s[S.SHADOW] = shadow
        s[S.SPARE] = back - need
        s[S.STALE] = 0
        i = s[S.QUEUE_HEAD] + 1
    looks, tail = 0, s[S.QUEUE_TAIL]
    free, spare, latest = s[S.FREE], s[S.SPARE], s[S.SHADOW] - now
    longest = s[S.CLOSES] - now
    while i < tail and free > 0:
        block = i >> S.BLOCK
        first, end = i, min((block + 1) << S.BLOCK, tail)
        most = free if queue[S.LEAST_LENGTH, block] <= latest else min(free, spare)
        if queue[S.LEAST_NEED, block] > most:
            i = end
            continue
        least, shortest = S.GAP, S.GAP
        while i < end and free > 0:
            wanted, length = queue[1, i], queue[2, i]
            ends_in_time = length <= latest
            if wanted <= free and length <= longest and (ends_in_time or wanted <= spare):
                if not ends_in_time:
                    spare -= wanted
                start(cluster, queue[0, i])
                free -= wanted
                queue[1, i] = S.GAP
                s[S.QUEUE_GAPS] += 1
            elif wanted < S.GAP:
                least, shortest = min(least, wanted), min(shortest, length)
            i += 1
        looks += i - first
        if i == end and first == block << S.BLOCK:
            queue[S.LEAST_NEED, block], queue[S.LEAST_LENGTH, block] = least, shortest
    s[S.ALLOWANCE] -= looks // S.LOOKS
    s[S.SPARE] = spare
    s[S.SCANNED] = tail


def close_gaps(s: Int64s, queue: Int64Rows) -> None:
    """Close the gaps in the queue."""
    to = 0
    scanned = s[S.SCANNED]
    for i in range(s[S.QUEUE_HEAD], s[S.QUEUE_TAIL]):
        if i == scanned:
            s[S.SCANNED] = to
        if queue[1, i] != S.GAP:
            queue[0, to] = queue[0, i]
            queue[1, to] = queue[1, i]
            queue[2, to] = queue[2, i]
            to += 1
    for block in range((s[S.QUEUE_TAIL] >> S.BLOCK) + 1):
        queue[S.LEAST_NEED, block] = queue[S.LEAST_LENGTH, block] = 0
    if scanned >= s[S.QUEUE_TAIL]:
        s[S.SCANNED] = to
    s[S.QUEUE_HEAD] = 0
    s[S.QUEUE_TAIL] = to
    s[S.QUEUE_GAPS] = 0


def turned_away(jobs: Int64Rows, job: int, most: int) -> bool:
    """Note that an arriving job is renounced, or larger than ``most``; return whether it is."""
    if jobs[S.STATE, job] == S.RENOUNCED:
        jobs[S.SUBMIT, job] = jobs[S.CLUSTER, job] = S.NEVER
        return True
    if jobs[S.PROCESSORS, job] > most:
        jobs[S.STATE, job] = S.REJECTED
        return True
    return False


def _bound(queue: Int64Rows, at: int) -> None:
    """Lower the bounds of a block to the job at a place in it."""
    block = at >> S.BLOCK
    queue[S.LEAST_NEED, block] = min(queue[S.LEAST_NEED, block], queue[1, at])
    queue[S.LEAST_LENGTH, block] = min(queue[S.LEAST_LENGTH, block], queue[2, at])


def enqueue(cluster: Cluster, job: int) -> None:
    """Put an arriving job at the end of the queue; jobs of one second are ordered by number."""
    jobs, s, queue = cluster.jobs, cluster.s, cluster.queue
    if s[S.PACE] != s[S.PACE_ONE] and jobs[S.RUN_TIME, job] > 0:
        scaled = (2 * jobs[S.RUN_TIME, job] * s[S.PACE_ONE] + s[S.PACE]) // (2 * s[S.PACE])
        jobs[S.RUN_TIME, job] = max(1, scaled)
    at = s[S.QUEUE_TAIL]
    s[S.QUEUE_TAIL] = at + 1
    s[S.WAITING] += 1
    s[S.ASKED] += jobs[S.PROCESSORS, job]
    jobs[S.ENQUEUED, job] = s[S.NOW]
    while at > s[S.QUEUE_HEAD]:
        other = queue[0, at - 1]
        if jobs[S.ENQUEUED, other] < s[S.NOW] or other < job:
            break
        queue[0, at] = other
        queue[1, at] = queue[1, at - 1]
        queue[2, at] = queue[2, at - 1]
        _bound(queue, at)
        at -= 1
    if at < s[S.SCANNED]:
        s[S.STALE] = 1
    queue[0, at] = job
    queue[1, at] = jobs[S.PROCESSORS, job]
    queue[2, at] = estimate(jobs, s, job)
    _bound(queue, at)


def slide(s: Int64s, expected: Int64Rows) -> None:
    """Move the expected ends to the front of their array."""
    first, last = s[S.EXPECTED_FIRST], s[S.EXPECTED_END]
    for i in range(first, last):
        expected[0, i - first] = expected[0, i]
        expected[1, i - first] = expected[1, i]
    s[S.EXPECTED_FIRST] = 0
    s[S.EXPECTED_END] = last - first
