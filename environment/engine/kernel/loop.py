"""The compiled cluster: arrivals, queue, running jobs and scheduling pass in one resumable loop.

:func:`advance` works on the arrays of a :class:`Cluster`, which its engine owns. It runs until
users must be notified, a given time is reached, or room runs out, and continues from there at the
next call. The order within an instant is that of ``docs/background/time.md``:
completions, users' reactions, arrivals, then one scheduling pass.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.scheduling import (
    close_gaps,
    easy_pass,
    enqueue,
    estimate,
    expect_later,
    forget,
    run_from,
    slide,
    start_heads,
    turned_away,
)
from hpcrowd.environment.engine.kernel.sleeping import prepare
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER


def submit_unit(cluster: Cluster, at: int, first: int, last: int, unit_rows: Int64s) -> None:
    """Submit the jobs ``unit_rows[first:last]`` from ``at`` on, spaced as recorded."""
    jobs, s, heap = cluster.jobs, cluster.s, cluster.heap
    shift = at - jobs[S.RECORDED_SUBMIT, unit_rows[first]]
    for i in range(first, last):
        job = unit_rows[i]
        time = jobs[S.RECORDED_SUBMIT, job] + shift
        jobs[S.SUBMIT, job] = time
        jobs[S.CLUSTER, job] = s[S.NUMBER]
        heap_push(heap, s[S.HEAP_SIZE], time, job)
        s[S.HEAP_SIZE] += 1


def submit_jobs(cluster: Cluster, rows: Int64s) -> None:
    """Submit jobs at the times in their column SUBMIT."""
    jobs, s = cluster.jobs, cluster.s
    for job in rows:
        heap_push(cluster.heap, s[S.HEAP_SIZE], jobs[S.SUBMIT, job], job)
        s[S.HEAP_SIZE] += 1


def _over(cluster: Cluster, remaining: Int64s, job: int) -> None:
    """Count a job as finished for its user; note the unit if this was its last job.

    If another object counts, note the job.
    """
    s, finished = cluster.s, cluster.finished
    unit = cluster.jobs[S.UNIT, job]
    if unit >= 0:
        if s[S.SHARED]:
            finished[s[S.FINISHED_COUNT]] = job
            s[S.FINISHED_COUNT] += 1
            return
        remaining[unit] -= 1
        if remaining[unit] == 0:
            finished[s[S.FINISHED_COUNT]] = unit
            s[S.FINISHED_COUNT] += 1


def count_over(cluster: Cluster, remaining: Int64s, rows: Int64s) -> None:
    """Count jobs as finished that a platform change ended; ``finished`` has room for them."""
    for job in rows:
        _over(cluster, remaining, job)


def next_time(
    jobs: Int64Rows, s: Int64s, arrivals: Int64s, heap: Int64Rows, ends: Int64Rows
) -> int:
    """Return the time of the next completion or arrival, or of a change that may matter."""
    time = FOREVER
    if s[S.RUNNING]:
        time = ends[0, 0]
    if s[S.HEAP_SIZE] and heap[0, 0] < time:
        time = heap[0, 0]
    if s[S.SORTED_NEXT] < s[S.SORTED_END]:
        time = min(time, jobs[S.SUBMIT, arrivals[s[S.SORTED_NEXT]]])
    if s[S.WAITING] and s[S.WAKE] < time:
        time = s[S.WAKE]
    if s[S.CHANGE_AT] < time and (time < FOREVER or s[S.WAITING]):
        time = s[S.CHANGE_AT]
    return time


def complete(cluster: Cluster, remaining: Int64s) -> bool:
    """Complete the jobs that end now; return False if a list is full."""
    jobs, s, ends, expected = cluster.jobs, cluster.s, cluster.ends, cluster.expected
    now = s[S.NOW]
    while s[S.RUNNING] and ends[0, 0] == now:
        if s[S.FINISHED_COUNT] == len(cluster.finished) or s[S.EXPECTED_END] == expected.shape[1]:
            return False
        job = heap_pop(ends, s[S.RUNNING])
        s[S.RUNNING] -= 1
        s[S.EVENTS] += 1
        s[S.ALLOWANCE] -= 1
        state = S.COMPLETED
        if s[S.KILL] and jobs[S.RUN_TIME, job] > jobs[S.REQUESTED_TIME, job]:
            state = S.KILLED
        jobs[S.STATE, job] = state
        if s[S.POLICY] != S.RECORDED:
            s[S.FREE] += jobs[S.PROCESSORS, job]
            s[S.STALE] = 1
            if s[S.POLICY] == S.EASY:
                forget(
                    s, expected, jobs[S.START, job] + jobs[S.ESTIMATE, job], jobs[S.PROCESSORS, job]
                )
            elif s[S.POLICY] == S.OUTSIDE:
                expected[0, s[S.EXPECTED_END]] = job
                s[S.EXPECTED_END] += 1
        _over(cluster, remaining, job)
    return True


def arrive(cluster: Cluster, remaining: Int64s) -> bool:
    """Process the arrivals of now; return False if an array is full."""
    jobs, s, arrivals, heap = cluster.jobs, cluster.s, cluster.sorted, cluster.heap
    queue, ends = cluster.queue, cluster.ends
    now = s[S.NOW]
    while True:
        job = -1
        if s[S.SORTED_NEXT] < s[S.SORTED_END]:
            candidate = arrivals[s[S.SORTED_NEXT]]
            if jobs[S.SUBMIT, candidate] == now:
                job = candidate
        from_heap = s[S.HEAP_SIZE] > 0 and heap[0, 0] == now and (job < 0 or heap[1, 0] < job)
        if job < 0 and not from_heap:
            return True
        if s[S.QUEUE_TAIL] == queue.shape[1]:
            if s[S.QUEUE_GAPS] or s[S.QUEUE_HEAD]:
                close_gaps(s, queue)
            if s[S.QUEUE_TAIL] > queue.shape[1] // 2:
                return False
        if s[S.RUNNING] == ends.shape[1] or s[S.FINISHED_COUNT] == len(cluster.finished):
            return False
        if from_heap:
            job = heap_pop(heap, s[S.HEAP_SIZE])
            s[S.HEAP_SIZE] -= 1
        else:
            s[S.SORTED_NEXT] += 1
        s[S.EVENTS] += 1
        s[S.ALLOWANCE] -= 1
        if turned_away(jobs, job, s[S.CAPACITY]):
            _over(cluster, remaining, job)
        elif s[S.POLICY] == S.RECORDED:
            jobs[S.ENQUEUED, job] = now
            estimate(jobs, s, job)
            run_from(cluster, job, now + jobs[S.RECORDED_START, job] - jobs[S.RECORDED_SUBMIT, job])
        else:
            enqueue(cluster, job)


def schedule(cluster: Cluster) -> bool:
    """Do one scheduling pass; return False if an array could become full in it."""
    s, queue, expected = cluster.s, cluster.queue, cluster.expected
    if s[S.POLICY] == S.RECORDED:
        return True
    waiting = s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]
    if s[S.RUNNING] + waiting > cluster.ends.shape[1]:
        return False
    if s[S.EXPECTED_END] + waiting > expected.shape[1]:
        if s[S.EXPECTED_FIRST] < waiting:
            return False
        slide(s, expected)
    s[S.WAKE] = FOREVER
    if s[S.POLICY] == S.EASY:
        easy_pass(cluster)
    else:
        start_heads(cluster)
    if s[S.SLEEPS]:
        expect_later(cluster)
    if s[S.QUEUE_GAPS] > 64 and 2 * s[S.QUEUE_GAPS] > s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]:
        close_gaps(s, queue)
    return True


def run(cluster: Cluster, remaining: Int64s, halt: int) -> int:
    """Run until users must be notified or ``halt``; return why it stopped, a :class:`Stop`."""
    s = cluster.s
    while True:
        if s[S.PHASE] == S.COMPLETIONS:
            time = next_time(cluster.jobs, s, cluster.sorted, cluster.heap, cluster.ends)
            if time > halt:
                s[S.NOW] = max(s[S.NOW], halt)
                return S.HALT
            if time == FOREVER:
                return S.DONE
            if s[S.ALLOWANCE] <= 0 and not s[S.FINISHED_COUNT]:
                return S.PAUSE
            s[S.NOW] = time
            if not complete(cluster, remaining):
                return S.ROOM
            s[S.PHASE] = S.REACTIONS
            if s[S.FINISHED_COUNT]:
                return S.FINISHED
        if s[S.PHASE] == S.REACTIONS:
            if halt <= s[S.NOW]:
                return S.HALT
            s[S.PHASE] = S.ARRIVALS
        if not arrive(cluster, remaining):
            return S.ROOM
        if s[S.FINISHED_COUNT]:
            s[S.PHASE] = S.REACTIONS
            return S.FINISHED
        if s[S.CHANGE_AT] == s[S.NOW]:
            s[S.PHASE] = S.REACTIONS  # reactions of users also arrive now
            return S.CHANGE
        if s[S.CLOSED]:
            s[S.WAKE] = FOREVER
            s[S.PHASE] = S.COMPLETIONS
            continue
        if s[S.SLEEPS] and not prepare(s):
            return S.ROOM
        if s[S.POLICY] == S.OUTSIDE:
            s[S.PHASE] = S.COMPLETIONS
            return S.PASS
        if not schedule(cluster):
            return S.ROOM
        s[S.PHASE] = S.COMPLETIONS
