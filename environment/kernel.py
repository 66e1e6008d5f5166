"""The compiled cluster: arrivals, queue, running jobs and scheduling pass in one resumable loop.

:func:`advance` works on plain arrays that :class:`environment.engine.CompiledEngine` owns. It runs
until users must hear something, a given time is reached, or room runs out, and goes on from there
at the next call. The order within an instant is that of ``docs/background/time.md``: completions,
users' reactions, arrivals, then one scheduling pass.

EASY keeps what one pass learns for the next: while only arrivals happened and the shadow time is
not past, jobs that were refused would be refused again, so only the newcomers are looked at
(:func:`_easy`). ``environment/schedulers.py`` has the same policies without such short cuts.
"""

from __future__ import annotations

from enum import IntEnum

from numba import njit

from environment.jobs import Column, State
from environment.stops import FOREVER, Stop

# Columns and states as plain integers, which compiled code takes as constants.
PROCESSORS, RUN_TIME, REQUESTED_TIME = (
    int(Column.PROCESSORS),
    int(Column.RUN_TIME),
    int(Column.REQUESTED_TIME),
)
RECORDED_SUBMIT, RECORDED_START = int(Column.RECORDED_SUBMIT), int(Column.RECORDED_START)
SUBMIT, START, END = int(Column.SUBMIT), int(Column.START), int(Column.END)
UNIT, STATE = int(Column.UNIT), int(Column.STATE)
COMPLETED, KILLED, REJECTED = int(State.COMPLETED), int(State.KILLED), int(State.REJECTED)

# Policies.
FCFS, EASY, RECORDED = 0, 1, 2

# Phases of an instant.
COMPLETIONS, REACTIONS, ARRIVALS = 0, 1, 2


DONE, FINISHED, HALT, PAUSE, ROOM = (int(stop) for stop in Stop)


class S(IntEnum):
    """Places in the array of scalars."""

    NOW = 0
    PHASE = 1
    POLICY = 2
    KILL = 3  #: stop jobs at their requested time
    CAPACITY = 4
    FREE = 5
    SORTED_NEXT = 6  #: first not yet arrived job of the sorted arrivals
    SORTED_END = 7
    HEAP_SIZE = 8
    QUEUE_HEAD = 9
    QUEUE_TAIL = 10
    QUEUE_GAPS = 11  #: places in the queue left by backfilled jobs
    RUNNING = 12
    EXPECTED_FIRST = 13
    EXPECTED_END = 14
    FINISHED_COUNT = 15
    STALE = 16  #: what the last EASY pass learned does not hold any more
    SHADOW = 17
    SPARE = 18  #: processors that the head leaves free at the shadow time
    SCANNED = 19  #: the queue before here was refused by the last pass
    ALLOWANCE = 20  #: events until PAUSE
    EVENTS = 21  #: completions and arrivals so far
    RELEASE = 22  #: dependencies are followed here instead of by users
    COUNT = 23


(
    NOW,
    PHASE,
    POLICY,
    KILL,
    CAPACITY,
    FREE,
    SORTED_NEXT,
    SORTED_END,
    HEAP_SIZE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUE_GAPS,
    RUNNING,
    EXPECTED_FIRST,
    EXPECTED_END,
    FINISHED_COUNT,
    STALE,
    SHADOW,
    SPARE,
    SCANNED,
    ALLOWANCE,
    EVENTS,
    RELEASE,
    _,
) = (int(place) for place in S)

#: No reference counting: the functions only work on arrays that their caller holds, and counting
#: at every inner call made a run five times slower (1.0 against 0.2 microseconds a job, KTH-SP2).
compiled = njit(cache=True, _nrt=False)  # type: ignore[call-overload]

#: A gap in the queue asks for more processors than any machine has.
GAP = FOREVER


@compiled
def heap_push(heap, size, time, job):
    """Put (time, job) into the binary heap in rows 0 and 1 of ``heap``, which holds ``size``."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[0, parent] < time or (heap[0, parent] == time and heap[1, parent] < job):
            break
        heap[0, i] = heap[0, parent]
        heap[1, i] = heap[1, parent]
        i = parent
    heap[0, i] = time
    heap[1, i] = job


@compiled
def heap_pop(heap, size):
    """Take the first of ``size`` entries out of the heap and return its job."""
    first = heap[1, 0]
    size -= 1
    time, job = heap[0, size], heap[1, size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap[0, other] < heap[0, child]
            or (heap[0, other] == heap[0, child] and heap[1, other] < heap[1, child])
        ):
            child = other
        if time < heap[0, child] or (time == heap[0, child] and job < heap[1, child]):
            break
        heap[0, i] = heap[0, child]
        heap[1, i] = heap[1, child]
        i = child
    heap[0, i] = time
    heap[1, i] = job
    return first


@compiled
def _expect(s, expected, end, processors):
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
def _forget(s, expected, end, processors):
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
def _start(jobs, s, ends, expected, job):
    """Start ``job`` now."""
    now = s[NOW]
    run = jobs[RUN_TIME, job]
    if s[KILL] and run > jobs[REQUESTED_TIME, job]:
        run = jobs[REQUESTED_TIME, job]
    jobs[START, job] = now
    jobs[END, job] = now + run
    s[FREE] -= jobs[PROCESSORS, job]
    heap_push(ends, s[RUNNING], now + run, job)
    s[RUNNING] += 1
    if s[POLICY] == EASY:
        _expect(s, expected, now + jobs[REQUESTED_TIME, job], jobs[PROCESSORS, job])


@compiled
def _start_heads(jobs, s, queue, ends, expected):
    """Start jobs from the head of the queue while they fit; return whether the queue is left."""
    head, tail = s[QUEUE_HEAD], s[QUEUE_TAIL]
    while head < tail:
        need = queue[1, head]
        if need == GAP:
            s[QUEUE_GAPS] -= 1
        elif need <= s[FREE]:
            _start(jobs, s, ends, expected, queue[0, head])
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


@compiled
def _easy(jobs, s, queue, ends, expected):
    """EASY backfilling: the head holds a reservation, later jobs start if they do not delay it."""
    now = s[NOW]
    if s[STALE] == 0 and s[QUEUE_HEAD] < s[QUEUE_TAIL] and s[SHADOW] >= now:
        i = s[SCANNED]
    else:
        if not _start_heads(jobs, s, queue, ends, expected):
            s[STALE] = 1
            return
        need = queue[1, s[QUEUE_HEAD]]
        back = s[FREE]
        shadow = now
        k = s[EXPECTED_FIRST]
        while back < need:
            back += expected[1, k]
            shadow = max(now, expected[0, k])
            k += 1
        while k < s[EXPECTED_END] and expected[0, k] <= shadow:
            back += expected[1, k]
            k += 1
        s[SHADOW] = shadow
        s[SPARE] = back - need
        s[STALE] = 0
        i = s[QUEUE_HEAD] + 1
    tail = s[QUEUE_TAIL]
    free, spare, latest = s[FREE], s[SPARE], s[SHADOW] - now
    while i < tail and free > 0:
        wanted = queue[1, i]
        if wanted <= free:
            ends_in_time = queue[2, i] <= latest
            if ends_in_time or wanted <= spare:
                if not ends_in_time:
                    spare -= wanted
                _start(jobs, s, ends, expected, queue[0, i])
                free -= wanted
                queue[1, i] = GAP
                s[QUEUE_GAPS] += 1
        i += 1
    s[SPARE] = spare
    s[SCANNED] = tail


@compiled
def _close_gaps(s, queue):
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


@compiled
def _enqueue(jobs, s, queue, job):
    """Put an arriving job at the end of the queue; jobs of one second stand by number."""
    at = s[QUEUE_TAIL]
    s[QUEUE_TAIL] = at + 1
    while at > s[QUEUE_HEAD]:
        other = queue[0, at - 1]
        if jobs[SUBMIT, other] < s[NOW] or other < job:
            break
        queue[0, at] = other
        queue[1, at] = queue[1, at - 1]
        queue[2, at] = queue[2, at - 1]
        at -= 1
    if at < s[SCANNED]:
        s[STALE] = 1
    queue[0, at] = job
    queue[1, at] = jobs[PROCESSORS, job]
    queue[2, at] = jobs[REQUESTED_TIME, job]


@compiled
def _release(jobs, s, heap, unit, links, edges, unit_rows):
    """Follow the dependencies of a finished unit: fixed think times, without a call of its user.

    ``links`` rows: first edge, dependencies left, earliest start, first row of each unit;
    ``edges`` rows: successor, think time.
    """
    now = s[NOW]
    for edge in range(links[0, unit], links[0, unit + 1]):
        after = edges[0, edge]
        links[2, after] = max(links[2, after], now + edges[1, edge])
        links[1, after] -= 1
        if links[1, after] == 0:
            submit_unit(jobs, s, heap, after, links[2, after], links[3], unit_rows)


@compiled
def submit_unit(jobs, s, heap, unit, at, first_row, unit_rows):
    """Let the jobs of ``unit`` arrive from ``at`` on, as far apart as they were recorded."""
    first, last = first_row[unit], first_row[unit + 1]
    shift = at - jobs[RECORDED_SUBMIT, unit_rows[first]]
    for i in range(first, last):
        job = unit_rows[i]
        time = jobs[RECORDED_SUBMIT, job] + shift
        jobs[SUBMIT, job] = time
        heap_push(heap, s[HEAP_SIZE], time, job)
        s[HEAP_SIZE] += 1


@compiled
def submit_jobs(jobs, s, heap, rows):
    """Let jobs arrive at the times in their column SUBMIT."""
    for job in rows:
        heap_push(heap, s[HEAP_SIZE], jobs[SUBMIT, job], job)
        s[HEAP_SIZE] += 1


@compiled
def _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows):
    """Count a job as over for its user; note the unit when it was the last job of it."""
    unit = jobs[UNIT, job]
    if unit >= 0:
        remaining[unit] -= 1
        if remaining[unit] == 0:
            if s[RELEASE]:
                _release(jobs, s, heap, unit, links, edges, unit_rows)
            else:
                finished[s[FINISHED_COUNT]] = unit
                s[FINISHED_COUNT] += 1


@compiled
def next_time(jobs, s, sorted_arrivals, heap, ends):
    """Return the time of the next completion or arrival."""
    time = FOREVER
    if s[RUNNING]:
        time = ends[0, 0]
    if s[HEAP_SIZE] and heap[0, 0] < time:
        time = heap[0, 0]
    if s[SORTED_NEXT] < s[SORTED_END]:
        time = min(time, jobs[SUBMIT, sorted_arrivals[s[SORTED_NEXT]]])
    return time


@compiled
def _complete(jobs, s, heap, ends, expected, remaining, finished, links, edges, unit_rows):
    """Let end what ends now; return False when the list of finished units is full."""
    now = s[NOW]
    while s[RUNNING] and ends[0, 0] == now:
        if s[FINISHED_COUNT] == len(finished):
            return False
        job = heap_pop(ends, s[RUNNING])
        s[RUNNING] -= 1
        s[EVENTS] += 1
        s[ALLOWANCE] -= 1
        state = COMPLETED
        if s[KILL] and jobs[RUN_TIME, job] > jobs[REQUESTED_TIME, job]:
            state = KILLED
        jobs[STATE, job] = state
        if s[POLICY] != RECORDED:
            s[FREE] += jobs[PROCESSORS, job]
            s[STALE] = 1
            if s[POLICY] == EASY:
                _forget(
                    s, expected, jobs[START, job] + jobs[REQUESTED_TIME, job], jobs[PROCESSORS, job]
                )
        _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows)
    return True


@compiled
def _arrive(
    jobs, s, sorted_arrivals, heap, queue, ends, remaining, finished, links, edges, unit_rows
):
    """Let arrive what arrives now; return False when an array is full."""
    now = s[NOW]
    while True:
        job = -1
        if s[SORTED_NEXT] < s[SORTED_END]:
            candidate = sorted_arrivals[s[SORTED_NEXT]]
            if jobs[SUBMIT, candidate] == now:
                job = candidate
        from_heap = s[HEAP_SIZE] > 0 and heap[0, 0] == now and (job < 0 or heap[1, 0] < job)
        if job < 0 and not from_heap:
            return True
        if (
            s[QUEUE_TAIL] == queue.shape[1]
            or s[RUNNING] == ends.shape[1]
            or s[FINISHED_COUNT] == len(finished)
        ):
            return False
        if from_heap:
            job = heap_pop(heap, s[HEAP_SIZE])
            s[HEAP_SIZE] -= 1
        else:
            s[SORTED_NEXT] += 1
        s[EVENTS] += 1
        s[ALLOWANCE] -= 1
        if jobs[PROCESSORS, job] > s[CAPACITY]:
            jobs[STATE, job] = REJECTED
            _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows)
        elif s[POLICY] == RECORDED:
            run = jobs[RUN_TIME, job]
            if s[KILL] and run > jobs[REQUESTED_TIME, job]:
                run = jobs[REQUESTED_TIME, job]
            start = now + jobs[RECORDED_START, job] - jobs[RECORDED_SUBMIT, job]
            jobs[START, job] = start
            jobs[END, job] = start + run
            heap_push(ends, s[RUNNING], start + run, job)
            s[RUNNING] += 1
        else:
            _enqueue(jobs, s, queue, job)


@compiled
def advance(
    jobs,
    s,
    sorted_arrivals,
    heap,
    queue,
    ends,
    expected,
    remaining,
    finished,
    links,
    edges,
    unit_rows,
    halt,
):
    """Run until users must hear something or ``halt``; return why it stopped, a :class:`Stop`."""
    while True:
        if s[PHASE] == COMPLETIONS:
            time = next_time(jobs, s, sorted_arrivals, heap, ends)
            if time > halt:
                s[NOW] = halt
                return HALT
            if time == FOREVER:
                return DONE
            if s[ALLOWANCE] <= 0:
                return PAUSE
            s[NOW] = time
            if not _complete(
                jobs, s, heap, ends, expected, remaining, finished, links, edges, unit_rows
            ):
                return ROOM
            s[PHASE] = REACTIONS
            if s[FINISHED_COUNT]:
                return FINISHED
        if s[PHASE] == REACTIONS:
            if halt <= s[NOW]:
                return HALT
            s[PHASE] = ARRIVALS
        if not _arrive(
            jobs,
            s,
            sorted_arrivals,
            heap,
            queue,
            ends,
            remaining,
            finished,
            links,
            edges,
            unit_rows,
        ):
            if s[QUEUE_TAIL] == queue.shape[1] and (s[QUEUE_GAPS] or s[QUEUE_HEAD]):
                _close_gaps(s, queue)
                if s[QUEUE_TAIL] <= queue.shape[1] // 2:
                    continue
            return ROOM
        if s[FINISHED_COUNT]:
            s[PHASE] = REACTIONS
            return FINISHED
        if s[POLICY] != RECORDED:
            waiting = s[QUEUE_TAIL] - s[QUEUE_HEAD]
            if (
                s[RUNNING] + waiting > ends.shape[1]
                or s[EXPECTED_END] + waiting > expected.shape[1]
            ):
                if s[EXPECTED_FIRST] >= waiting and s[RUNNING] + waiting <= ends.shape[1]:
                    _slide(s, expected)
                    continue
                return ROOM
            if s[POLICY] == EASY:
                _easy(jobs, s, queue, ends, expected)
            else:
                _start_heads(jobs, s, queue, ends, expected)
            if s[QUEUE_GAPS] > 64 and 2 * s[QUEUE_GAPS] > s[QUEUE_TAIL] - s[QUEUE_HEAD]:
                _close_gaps(s, queue)
        s[PHASE] = COMPLETIONS


@compiled
def _slide(s, expected):
    """Move the expected ends to the front of their array."""
    first, last = s[EXPECTED_FIRST], s[EXPECTED_END]
    for i in range(first, last):
        expected[0, i - first] = expected[0, i]
        expected[1, i - first] = expected[1, i]
    s[EXPECTED_FIRST] = 0
    s[EXPECTED_END] = last - first
