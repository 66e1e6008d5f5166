"""The compiled cluster: arrivals, queue, running jobs and scheduling pass in one resumable loop.

:func:`advance` works on plain arrays that :class:`CompiledEngine` owns. It
runs until users must hear something, a given time is reached, or room runs out, and goes on from
there at the next call. The order within an instant is that of ``docs/background/time.md``:
completions, users' reactions, arrivals, then one scheduling pass.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.places import (
    ALLOWANCE,
    ARRIVALS,
    CAPACITY,
    CHANGE,
    CHANGE_AT,
    CLOSED,
    CLUSTER,
    COMPLETED,
    COMPLETIONS,
    DONE,
    EASY,
    END,
    ENQUEUED,
    ESTIMATE,
    EVENTS,
    EXPECTED_END,
    EXPECTED_FIRST,
    FINISHED,
    FINISHED_COUNT,
    FREE,
    HALT,
    HEAP_SIZE,
    KILL,
    KILLED,
    NEVER,
    NOW,
    NUMBER,
    OUTSIDE,
    PACE,
    PACE_ONE,
    PASS,
    PAUSE,
    PHASE,
    POLICY,
    PROCESSORS,
    QUEUE_GAPS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REACTIONS,
    RECORDED,
    RECORDED_START,
    RECORDED_SUBMIT,
    REJECTED,
    RELEASE,
    RENOUNCED,
    REQUESTED_TIME,
    ROOM,
    RUN_TIME,
    RUNNING,
    SHARED,
    SORTED_END,
    SORTED_NEXT,
    STALE,
    START,
    STATE,
    SUBMIT,
    UNIT,
    WAITING,
    WAKE,
    compiled,
    inlined,
)
from hpcrowd.environment.engine.kernel.scheduling import (
    close_gaps,
    easy_pass,
    enqueue,
    estimate,
    forget,
    slide,
    start_heads,
)
from hpcrowd.environment.stops import FOREVER


@compiled
def submit_unit(jobs, s, heap, at, first, last, unit_rows):
    """Let the jobs ``unit_rows[first:last]`` arrive from ``at`` on, as far apart as recorded."""
    shift = at - jobs[RECORDED_SUBMIT, unit_rows[first]]
    for i in range(first, last):
        job = unit_rows[i]
        time = jobs[RECORDED_SUBMIT, job] + shift
        jobs[SUBMIT, job] = time
        jobs[CLUSTER, job] = s[NUMBER]
        heap_push(heap, s[HEAP_SIZE], time, job)
        s[HEAP_SIZE] += 1


@compiled
def submit_jobs(jobs, s, heap, rows):
    """Let jobs arrive at the times in their column SUBMIT."""
    for job in rows:
        heap_push(heap, s[HEAP_SIZE], jobs[SUBMIT, job], job)
        s[HEAP_SIZE] += 1


@compiled
def _release(jobs, s, heap, unit, links, edges, unit_rows):
    """Follow the dependencies of a finished unit: fixed think times, without a call of its user.

    ``links`` holds a row for each unit: first edge, dependencies left, earliest start, first of
    ``unit_rows``; ``edges`` one for each edge: successor, think time. What is used together stands
    together, since users' units are far apart in memory.
    """
    now = s[NOW]
    for edge in range(links[unit, 0], links[unit + 1, 0]):
        after = edges[edge, 0]
        links[after, 2] = max(links[after, 2], now + edges[edge, 1])
        links[after, 1] -= 1
        if links[after, 1] == 0:
            first, last = links[after, 3], links[after + 1, 3]
            submit_unit(jobs, s, heap, links[after, 2], first, last, unit_rows)


@inlined
def _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows):
    """Count a job as over for its user; note the unit when it was the last job of it.

    Where others count, note the job.
    """
    unit = jobs[UNIT, job]
    if unit >= 0:
        if s[SHARED]:
            finished[s[FINISHED_COUNT]] = job
            s[FINISHED_COUNT] += 1
            return
        remaining[unit] -= 1
        if remaining[unit] == 0:
            if s[RELEASE] and unit < len(links) - 1:
                _release(jobs, s, heap, unit, links, edges, unit_rows)
            else:
                finished[s[FINISHED_COUNT]] = unit
                s[FINISHED_COUNT] += 1


@compiled
def count_over(jobs, s, heap, rows, remaining, finished, links, edges, unit_rows):
    """Count jobs as over that a change of the platform ended; ``finished`` has room for them."""
    for job in rows:
        _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows)


@compiled
def next_time(jobs, s, sorted_arrivals, heap, ends):
    """Return the time of the next completion or arrival, or of a change that may matter."""
    time = FOREVER
    if s[RUNNING]:
        time = ends[0, 0]
    if s[HEAP_SIZE] and heap[0, 0] < time:
        time = heap[0, 0]
    if s[SORTED_NEXT] < s[SORTED_END]:
        time = min(time, jobs[SUBMIT, sorted_arrivals[s[SORTED_NEXT]]])
    if s[WAITING] and s[WAKE] < time:
        time = s[WAKE]
    if s[CHANGE_AT] < time and (time < FOREVER or s[WAITING]):
        time = s[CHANGE_AT]
    return time


@inlined
def complete(jobs, s, heap, ends, expected, remaining, finished, links, edges, unit_rows):
    """Let end what ends now; return False when a list is full.

    For a policy outside, ``expected`` is the list of jobs that ended since its last pass.
    """
    now = s[NOW]
    while s[RUNNING] and ends[0, 0] == now:
        if s[FINISHED_COUNT] == len(finished) or s[EXPECTED_END] == expected.shape[1]:
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
                forget(s, expected, jobs[START, job] + jobs[ESTIMATE, job], jobs[PROCESSORS, job])
            elif s[POLICY] == OUTSIDE:
                expected[0, s[EXPECTED_END]] = job
                s[EXPECTED_END] += 1
        _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows)
    return True


@inlined
def arrive(
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
        if s[QUEUE_TAIL] == queue.shape[1]:
            if s[QUEUE_GAPS] or s[QUEUE_HEAD]:
                close_gaps(s, queue)
            if s[QUEUE_TAIL] > queue.shape[1] // 2:
                return False
        if s[RUNNING] == ends.shape[1] or s[FINISHED_COUNT] == len(finished):
            return False
        if from_heap:
            job = heap_pop(heap, s[HEAP_SIZE])
            s[HEAP_SIZE] -= 1
        else:
            s[SORTED_NEXT] += 1
        s[EVENTS] += 1
        s[ALLOWANCE] -= 1
        renounced = jobs[STATE, job] == RENOUNCED
        if renounced or jobs[PROCESSORS, job] > s[CAPACITY]:
            if renounced:
                jobs[SUBMIT, job] = jobs[CLUSTER, job] = NEVER
            else:
                jobs[STATE, job] = REJECTED
            _over(jobs, s, heap, job, remaining, finished, links, edges, unit_rows)
        elif s[POLICY] == RECORDED:
            run = jobs[RUN_TIME, job]
            if s[KILL] and run > jobs[REQUESTED_TIME, job]:
                run = jobs[REQUESTED_TIME, job]
            jobs[ENQUEUED, job] = now
            start = now + jobs[RECORDED_START, job] - jobs[RECORDED_SUBMIT, job]
            jobs[START, job] = start
            jobs[END, job] = start + run
            estimate(jobs, s, job)
            heap_push(ends, s[RUNNING], start + run, job)
            s[RUNNING] += 1
        else:
            if s[PACE] != s[PACE_ONE] and jobs[RUN_TIME, job] > 0:
                scaled = (2 * jobs[RUN_TIME, job] * s[PACE_ONE] + s[PACE]) // (2 * s[PACE])
                jobs[RUN_TIME, job] = max(1, scaled)
            enqueue(jobs, s, queue, job)


@inlined
def schedule(jobs, s, queue, ends, expected):
    """Do one scheduling pass; return False when an array could become full in it."""
    if s[POLICY] == RECORDED:
        return True
    waiting = s[QUEUE_TAIL] - s[QUEUE_HEAD]
    if s[RUNNING] + waiting > ends.shape[1]:
        return False
    if s[EXPECTED_END] + waiting > expected.shape[1]:
        if s[EXPECTED_FIRST] < waiting:
            return False
        slide(s, expected)
    s[WAKE] = FOREVER
    if s[POLICY] == EASY:
        easy_pass(jobs, s, queue, ends, expected)
    else:
        start_heads(jobs, s, queue, ends, expected)
    if s[QUEUE_GAPS] > 64 and 2 * s[QUEUE_GAPS] > s[QUEUE_TAIL] - s[QUEUE_HEAD]:
        close_gaps(s, queue)
    return True


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
                s[NOW] = max(s[NOW], halt)
                return HALT
            if time == FOREVER:
                return DONE
            if s[ALLOWANCE] <= 0 and not s[FINISHED_COUNT]:
                return PAUSE
            s[NOW] = time
            if not complete(
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
        if not arrive(
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
            return ROOM
        if s[FINISHED_COUNT]:
            s[PHASE] = REACTIONS
            return FINISHED
        if s[CHANGE_AT] == s[NOW]:
            s[PHASE] = REACTIONS  # what users do about it arrives now too
            return CHANGE
        if s[CLOSED]:
            s[WAKE] = FOREVER
            s[PHASE] = COMPLETIONS
            continue
        if s[POLICY] == OUTSIDE:
            s[PHASE] = COMPLETIONS
            return PASS
        if not schedule(jobs, s, queue, ends, expected):
            return ROOM
        s[PHASE] = COMPLETIONS
