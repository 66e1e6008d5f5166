"""The scheduling pass: start heads, and EASY backfilling.

EASY keeps what one pass learns for the next: while only arrivals happened and the shadow time is
not past, jobs that were refused would be refused again, so only the newcomers are looked at. The
same policies without such short cuts stand in ``environment/schedulers``.
"""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled, inlined
from hpcrowd.environment.engine.kernel.heap import heap_push
from hpcrowd.environment.engine.kernel.places import (
    ALLOWANCE,
    ASKED,
    CLOSES,
    CLUSTER,
    DIVISOR,
    EASY,
    END,
    ENQUEUED,
    ESTIMATE,
    EXACT,
    EXPECTED_END,
    EXPECTED_FIRST,
    FACTOR,
    FREE,
    GAP,
    KILL,
    LOOKS,
    NEVER,
    NOW,
    PACE,
    PACE_ONE,
    POLICY,
    PROCESSORS,
    QUEUE_GAPS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REJECTED,
    RENOUNCED,
    REOPENS,
    REQUESTED_TIME,
    RUN_TIME,
    RUNNING,
    SCANNED,
    SHADOW,
    SPARE,
    STALE,
    START,
    STATE,
    SUBMIT,
    WAITING,
)
from hpcrowd.environment.stops import FOREVER


@compiled
def expect(s, expected, end, processors):
    """Note that ``processors`` are expected back at ``end``; rows stay sorted by time."""
    low, high = s[EXPECTED_FIRST], s[EXPECTED_END]
    while low < high:
        middle = (low + high) >> 1
        if expected[0, middle] <= end:
            low = middle + 1
        else:
            high = middle
    first, last = s[EXPECTED_FIRST], s[EXPECTED_END]
    if first > 0 and low - first < last - low:
        for i in range(first, low):
            expected[0, i - 1] = expected[0, i]
            expected[1, i - 1] = expected[1, i]
        s[EXPECTED_FIRST] = first - 1
        low -= 1
    else:
        for i in range(last, low, -1):
            expected[0, i] = expected[0, i - 1]
            expected[1, i] = expected[1, i - 1]
        s[EXPECTED_END] = last + 1
    expected[0, low] = end
    expected[1, low] = processors


@compiled
def forget(s, expected, end, processors):
    """Take one entry (``end``, ``processors``) out again; which of equal ones does not matter."""
    first, last = s[EXPECTED_FIRST], s[EXPECTED_END]
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
        s[EXPECTED_FIRST] = first + 1
    else:
        for i in range(low, last - 1):
            expected[0, i] = expected[0, i + 1]
            expected[1, i] = expected[1, i + 1]
        s[EXPECTED_END] = last - 1


@compiled
def estimate(jobs, s, job):
    """Note what the scheduler is to believe of the run time of ``job``, and return it."""
    requested = jobs[REQUESTED_TIME, job]
    believed = requested
    if s[EXACT]:
        believed = jobs[RUN_TIME, job]
        if s[KILL]:
            believed = min(believed, requested)
    elif s[FACTOR] != s[DIVISOR]:
        believed = (2 * requested * s[FACTOR] + s[DIVISOR]) // (2 * s[DIVISOR])
    jobs[ESTIMATE, job] = believed
    return believed


@inlined
def run_from(cluster, job, start):
    """Let ``job`` run from ``start`` on, as long as it may."""
    jobs, s = cluster.jobs, cluster.s
    run = jobs[RUN_TIME, job]
    if s[KILL] and run > jobs[REQUESTED_TIME, job]:
        run = jobs[REQUESTED_TIME, job]
    jobs[START, job] = start
    jobs[END, job] = start + run
    heap_push(cluster.ends, s[RUNNING], start + run, job)
    s[RUNNING] += 1


@inlined
def start_job(cluster, job):
    """Start ``job`` now, which was waiting."""
    jobs, s = cluster.jobs, cluster.s
    run_from(cluster, job, s[NOW])
    s[FREE] -= jobs[PROCESSORS, job]
    s[WAITING] -= 1
    s[ASKED] -= jobs[PROCESSORS, job]


@compiled
def start(cluster, job):
    """Start ``job`` now, and note when it is expected back if that matters."""
    jobs, s = cluster.jobs, cluster.s
    start_job(cluster, job)
    if s[POLICY] == EASY:
        expect(s, cluster.expected, s[NOW] + jobs[ESTIMATE, job], jobs[PROCESSORS, job])


@inlined
def start_heads(cluster):
    """Start jobs from the head of the queue while they fit; return whether the queue is left."""
    s, queue = cluster.s, cluster.queue
    head, tail = s[QUEUE_HEAD], s[QUEUE_TAIL]
    longest = s[CLOSES] - s[NOW]
    while head < tail:
        need = queue[1, head]
        if need == GAP:
            s[QUEUE_GAPS] -= 1
        elif need <= s[FREE] and queue[2, head] <= longest:
            start(cluster, queue[0, head])
            s[STALE] = 1
        else:
            break
        head += 1
    if head == tail:
        head = tail = 0
        s[QUEUE_TAIL] = 0
    s[QUEUE_HEAD] = head
    if s[SCANNED] < head or tail == 0:
        s[SCANNED] = head
    return head < tail


@inlined
def easy_pass(cluster):
    """EASY backfilling: the head holds a reservation, later jobs start if they do not delay it."""
    s, queue, expected = cluster.s, cluster.queue, cluster.expected
    now = s[NOW]
    if s[STALE] == 0 and s[QUEUE_HEAD] < s[QUEUE_TAIL] and s[SHADOW] >= now:
        i = s[SCANNED]
    else:
        if not start_heads(cluster):
            s[STALE] = 1
            return
        need = queue[1, s[QUEUE_HEAD]]
        back = s[FREE]
        shadow = now
        k = s[EXPECTED_FIRST]
        while back < need and k < s[EXPECTED_END]:
            back += expected[1, k]
            shadow = max(now, expected[0, k])
            k += 1
        while k < s[EXPECTED_END] and expected[0, k] <= shadow:
            back += expected[1, k]
            k += 1
        if back < need:  # part of the machine is down
            shadow, back = FOREVER, need
        if shadow > s[CLOSES] - queue[2, s[QUEUE_HEAD]]:  # everybody else ends before maintenance
            shadow, back = s[REOPENS], need
        s[SHADOW] = shadow
        s[SPARE] = back - need
        s[STALE] = 0
        i = s[QUEUE_HEAD] + 1
    first, tail = i, s[QUEUE_TAIL]
    free, spare, latest = s[FREE], s[SPARE], s[SHADOW] - now
    longest = s[CLOSES] - now
    while i < tail and free > 0:
        wanted = queue[1, i]
        if wanted <= free and queue[2, i] <= longest:
            ends_in_time = queue[2, i] <= latest
            if ends_in_time or wanted <= spare:
                if not ends_in_time:
                    spare -= wanted
                start(cluster, queue[0, i])
                free -= wanted
                queue[1, i] = GAP
                s[QUEUE_GAPS] += 1
        i += 1
    s[ALLOWANCE] -= (i - first) // LOOKS
    s[SPARE] = spare
    s[SCANNED] = tail


@compiled
def close_gaps(s, queue):
    """Move the waiting jobs together."""
    to = 0
    scanned = s[SCANNED]
    for i in range(s[QUEUE_HEAD], s[QUEUE_TAIL]):
        if i == scanned:
            s[SCANNED] = to
        if queue[1, i] != GAP:
            queue[0, to] = queue[0, i]
            queue[1, to] = queue[1, i]
            queue[2, to] = queue[2, i]
            to += 1
    if scanned >= s[QUEUE_TAIL]:
        s[SCANNED] = to
    s[QUEUE_HEAD] = 0
    s[QUEUE_TAIL] = to
    s[QUEUE_GAPS] = 0


@inlined
def turned_away(jobs, job, most):
    """Note that an arriving job is renounced, or larger than ``most``; return whether it is."""
    if jobs[STATE, job] == RENOUNCED:
        jobs[SUBMIT, job] = jobs[CLUSTER, job] = NEVER
        return True
    if jobs[PROCESSORS, job] > most:
        jobs[STATE, job] = REJECTED
        return True
    return False


@inlined
def enqueue(cluster, job):
    """Put an arriving job at the end of the queue; jobs of one second stand by number."""
    jobs, s, queue = cluster.jobs, cluster.s, cluster.queue
    if s[PACE] != s[PACE_ONE] and jobs[RUN_TIME, job] > 0:
        scaled = (2 * jobs[RUN_TIME, job] * s[PACE_ONE] + s[PACE]) // (2 * s[PACE])
        jobs[RUN_TIME, job] = max(1, scaled)
    at = s[QUEUE_TAIL]
    s[QUEUE_TAIL] = at + 1
    s[WAITING] += 1
    s[ASKED] += jobs[PROCESSORS, job]
    jobs[ENQUEUED, job] = s[NOW]
    while at > s[QUEUE_HEAD]:
        other = queue[0, at - 1]
        if jobs[ENQUEUED, other] < s[NOW] or other < job:
            break
        queue[0, at] = other
        queue[1, at] = queue[1, at - 1]
        queue[2, at] = queue[2, at - 1]
        at -= 1
    if at < s[SCANNED]:
        s[STALE] = 1
    queue[0, at] = job
    queue[1, at] = jobs[PROCESSORS, job]
    queue[2, at] = estimate(jobs, s, job)


@compiled
def slide(s, expected):
    """Move the expected ends to the front of their array."""
    first, last = s[EXPECTED_FIRST], s[EXPECTED_END]
    for i in range(first, last):
        expected[0, i - first] = expected[0, i]
        expected[1, i - first] = expected[1, i]
    s[EXPECTED_FIRST] = 0
    s[EXPECTED_END] = last - first
