"""The compiled cluster: arrivals, queue, running jobs and scheduling pass in one resumable loop.

:func:`advance` works on the arrays of a :class:`Cluster`, which its engine owns. It runs until
users must hear something, a given time is reached, or room runs out, and goes on from there at the
next call. The order within an instant is that of ``docs/background/time.md``:
completions, users' reactions, arrivals, then one scheduling pass.
"""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled, inlined
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
    NOW,
    NUMBER,
    OUTSIDE,
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
    RELEASE,
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
    Cluster,
    Units,
)
from hpcrowd.environment.engine.kernel.scheduling import (
    close_gaps,
    easy_pass,
    enqueue,
    estimate,
    forget,
    run_from,
    slide,
    start_heads,
    turned_away,
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
def _release(cluster, units, unit):
    """Follow the dependencies of a finished unit: fixed think times, without a call of its user."""
    jobs, s, heap = cluster.jobs, cluster.s, cluster.heap
    links, edges = units.links, units.edges
    now = s[NOW]
    for edge in range(links[unit, 0], links[unit + 1, 0]):
        after = edges[edge, 0]
        links[after, 2] = max(links[after, 2], now + edges[edge, 1])
        links[after, 1] -= 1
        if links[after, 1] == 0:
            first, last = links[after, 3], links[after + 1, 3]
            submit_unit(jobs, s, heap, links[after, 2], first, last, units.rows)


@inlined
def _over(cluster, units, job):
    """Count a job as over for its user; note the unit when it was the last job of it.

    Where others count, note the job.
    """
    s, finished, remaining = cluster.s, cluster.finished, units.remaining
    unit = cluster.jobs[UNIT, job]
    if unit >= 0:
        if s[SHARED]:
            finished[s[FINISHED_COUNT]] = job
            s[FINISHED_COUNT] += 1
            return
        remaining[unit] -= 1
        if remaining[unit] == 0:
            if s[RELEASE] and unit < len(units.links) - 1:
                _release(cluster, units, unit)
            else:
                finished[s[FINISHED_COUNT]] = unit
                s[FINISHED_COUNT] += 1


@compiled
def count_over(cluster, units, rows):
    """Count jobs as over that a change of the platform ended; ``finished`` has room for them."""
    for job in rows:
        _over(cluster, units, job)


@compiled
def next_time(cluster):
    """Return the time of the next completion or arrival, or of a change that may matter."""
    jobs, s, arrivals, heap = cluster.jobs, cluster.s, cluster.sorted, cluster.heap
    time = FOREVER
    if s[RUNNING]:
        time = cluster.ends[0, 0]
    if s[HEAP_SIZE] and heap[0, 0] < time:
        time = heap[0, 0]
    if s[SORTED_NEXT] < s[SORTED_END]:
        time = min(time, jobs[SUBMIT, arrivals[s[SORTED_NEXT]]])
    if s[WAITING] and s[WAKE] < time:
        time = s[WAKE]
    if s[CHANGE_AT] < time and (time < FOREVER or s[WAITING]):
        time = s[CHANGE_AT]
    return time


@inlined
def complete(cluster, units):
    """Let end what ends now; return False when a list is full."""
    jobs, s, ends, expected = cluster.jobs, cluster.s, cluster.ends, cluster.expected
    now = s[NOW]
    while s[RUNNING] and ends[0, 0] == now:
        if s[FINISHED_COUNT] == len(cluster.finished) or s[EXPECTED_END] == expected.shape[1]:
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
        _over(cluster, units, job)
    return True


@inlined
def arrive(cluster, units):
    """Let arrive what arrives now; return False when an array is full."""
    jobs, s, arrivals, heap = cluster.jobs, cluster.s, cluster.sorted, cluster.heap
    queue, ends = cluster.queue, cluster.ends
    now = s[NOW]
    while True:
        job = -1
        if s[SORTED_NEXT] < s[SORTED_END]:
            candidate = arrivals[s[SORTED_NEXT]]
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
        if s[RUNNING] == ends.shape[1] or s[FINISHED_COUNT] == len(cluster.finished):
            return False
        if from_heap:
            job = heap_pop(heap, s[HEAP_SIZE])
            s[HEAP_SIZE] -= 1
        else:
            s[SORTED_NEXT] += 1
        s[EVENTS] += 1
        s[ALLOWANCE] -= 1
        if turned_away(jobs, job, s[CAPACITY]):
            _over(cluster, units, job)
        elif s[POLICY] == RECORDED:
            jobs[ENQUEUED, job] = now
            estimate(jobs, s, job)
            run_from(cluster, job, now + jobs[RECORDED_START, job] - jobs[RECORDED_SUBMIT, job])
        else:
            enqueue(cluster, job)


@inlined
def schedule(cluster):
    """Do one scheduling pass; return False when an array could become full in it."""
    s, queue, expected = cluster.s, cluster.queue, cluster.expected
    if s[POLICY] == RECORDED:
        return True
    waiting = s[QUEUE_TAIL] - s[QUEUE_HEAD]
    if s[RUNNING] + waiting > cluster.ends.shape[1]:
        return False
    if s[EXPECTED_END] + waiting > expected.shape[1]:
        if s[EXPECTED_FIRST] < waiting:
            return False
        slide(s, expected)
    s[WAKE] = FOREVER
    if s[POLICY] == EASY:
        easy_pass(cluster)
    else:
        start_heads(cluster)
    if s[QUEUE_GAPS] > 64 and 2 * s[QUEUE_GAPS] > s[QUEUE_TAIL] - s[QUEUE_HEAD]:
        close_gaps(s, queue)
    return True


@compiled
def advance(cluster_arrays, unit_arrays, halt):
    """Run until users must hear something or ``halt``; return why it stopped, a :class:`Stop`.

    Python hands over the fields of a :class:`Cluster` and of :class:`Units`.
    """
    cluster, units = Cluster(*cluster_arrays), Units(*unit_arrays)
    s = cluster.s
    while True:
        if s[PHASE] == COMPLETIONS:
            time = next_time(cluster)
            if time > halt:
                s[NOW] = max(s[NOW], halt)
                return HALT
            if time == FOREVER:
                return DONE
            if s[ALLOWANCE] <= 0 and not s[FINISHED_COUNT]:
                return PAUSE
            s[NOW] = time
            if not complete(cluster, units):
                return ROOM
            s[PHASE] = REACTIONS
            if s[FINISHED_COUNT]:
                return FINISHED
        if s[PHASE] == REACTIONS:
            if halt <= s[NOW]:
                return HALT
            s[PHASE] = ARRIVALS
        if not arrive(cluster, units):
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
        if not schedule(cluster):
            return ROOM
        s[PHASE] = COMPLETIONS
