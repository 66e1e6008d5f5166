"""The compiled cluster: arrivals, queue, running jobs and scheduling pass in one resumable loop.

:func:`advance` works on the arrays of a :class:`Cluster`, which its engine owns. It runs until
users must be notified, a given time is reached, or room runs out, and continues from there at the
next call. The order within an instant is that of ``docs/background/time.md``:
completions, users' reactions, arrivals, then one scheduling pass.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.cluster import (
    ARRIVALS,
    COMPLETIONS,
    EASY,
    OUTSIDE,
    REACTIONS,
    RECORDED,
    Cluster,
)
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.scheduling import (
    close_gaps,
    easy_pass,
    enqueue,
    estimate,
    expect_later,
    forget,
    prepare,
    run_from,
    slide,
    start_heads,
    turned_away,
)
from hpcrowd.environment.jobs import Int64s, State
from hpcrowd.environment.stops import FOREVER, Stop


def submit_unit(cluster: Cluster, at: int, first: int, last: int, unit_rows: Int64s) -> None:
    """Submit the jobs ``unit_rows[first:last]`` from ``at`` on, spaced as recorded."""
    jobs, state, heap = cluster.jobs, cluster.state, cluster.arrivals
    shift = at - jobs.recorded_submit[unit_rows[first]]
    for i in range(first, last):
        job = unit_rows[i]
        time = jobs.recorded_submit[job] + shift
        jobs.submit[job] = time
        jobs.cluster[job] = state.number
        heap_push(heap, state.arriving, time, job)
        state.arriving += 1


def submit_jobs(cluster: Cluster, rows: Int64s) -> None:
    """Submit jobs at the times in their column SUBMIT."""
    jobs, state = cluster.jobs, cluster.state
    for job in rows:
        heap_push(cluster.arrivals, state.arriving, jobs.submit[job], job)
        state.arriving += 1


def over(cluster: Cluster, remaining: Int64s, job: int) -> None:
    """Count a job as finished for its user; note the unit if this was its last job.

    If another object counts, note the job.
    """
    state, finished = cluster.state, cluster.finished
    unit = cluster.jobs.unit[job]
    if unit >= 0:
        if state.shared:
            finished[state.finished] = job
            state.finished += 1
            return
        remaining[unit] -= 1
        if remaining[unit] == 0:
            finished[state.finished] = unit
            state.finished += 1


def count_over(cluster: Cluster, remaining: Int64s, rows: Int64s) -> None:
    """Count jobs as finished that a platform change ended; ``finished`` has room for them."""
    for job in rows:
        over(cluster, remaining, job)


def next_time(cluster: Cluster) -> int:
    """Return the time of the next completion or arrival, or of a change that may matter."""
    state, arrivals = cluster.state, cluster.arrivals
    time = FOREVER
    if state.running:
        time = cluster.ends.time[0]
    if state.arriving and arrivals.time[0] < time:
        time = arrivals.time[0]
    if state.sorted_next < state.sorted_end:
        time = min(time, cluster.jobs.submit[cluster.sorted[state.sorted_next]])
    if state.waiting and state.wake < time:
        time = state.wake
    if state.change_at < time and (time < FOREVER or state.waiting):
        time = state.change_at
    return time


def complete(cluster: Cluster, remaining: Int64s) -> bool:
    """Complete the jobs that end now; return False if a list is full."""
    jobs, state, ends, expected = cluster.jobs, cluster.state, cluster.ends, cluster.expected
    now = state.now
    while state.running and ends.time[0] == now:
        if state.finished == len(cluster.finished) or state.expected_end == expected.table.shape[1]:
            return False
        job = heap_pop(ends, state.running)
        state.running -= 1
        state.events += 1
        state.allowance -= 1
        outran = state.kill and jobs.run_time[job] > jobs.requested_time[job]
        jobs.state[job] = State.KILLED if outran else State.COMPLETED
        if state.policy != RECORDED:
            state.free += jobs.processors[job]
            state.stale = True
            if state.policy == EASY:
                forget(state, expected, jobs.start[job] + jobs.estimate[job], jobs.processors[job])
            elif state.policy == OUTSIDE:
                expected.ended[state.expected_end] = job
                state.expected_end += 1
        over(cluster, remaining, job)
    return True


def arrive(cluster: Cluster, remaining: Int64s) -> bool:
    """Process the arrivals of now; return False if an array is full."""
    jobs, state, arrivals = cluster.jobs, cluster.state, cluster.arrivals
    queue, ends = cluster.queue, cluster.ends
    now = state.now
    while True:
        job = -1
        if state.sorted_next < state.sorted_end:
            candidate = cluster.sorted[state.sorted_next]
            if jobs.submit[candidate] == now:
                job = candidate
        from_heap = state.arriving > 0 and arrivals.time[0] == now
        from_heap = from_heap and (job < 0 or arrivals.job[0] < job)
        if job < 0 and not from_heap:
            return True
        if state.queue_tail == queue.table.shape[1]:
            if state.queue_gaps or state.queue_head:
                close_gaps(state, queue)
            if state.queue_tail > queue.table.shape[1] // 2:
                return False
        if state.running == ends.table.shape[1] or state.finished == len(cluster.finished):
            return False
        if from_heap:
            job = heap_pop(arrivals, state.arriving)
            state.arriving -= 1
        else:
            state.sorted_next += 1
        state.events += 1
        state.allowance -= 1
        if turned_away(jobs, job, state.capacity):
            over(cluster, remaining, job)
        elif state.policy == RECORDED:
            jobs.enqueued[job] = now
            estimate(jobs, state, job)
            run_from(cluster, job, now + jobs.recorded_start[job] - jobs.recorded_submit[job])
        else:
            enqueue(cluster, job)


def schedule(cluster: Cluster) -> bool:
    """Do one scheduling pass; return False if an array could become full in it."""
    state, queue, expected = cluster.state, cluster.queue, cluster.expected
    if state.policy == RECORDED:
        return True
    waiting = state.queue_tail - state.queue_head
    if state.running + waiting > cluster.ends.table.shape[1]:
        return False
    if state.expected_end + waiting > expected.table.shape[1]:
        if state.expected_first < waiting:
            return False
        slide(state, expected)
    state.wake = FOREVER
    if state.policy == EASY:
        easy_pass(cluster)
    else:
        start_heads(cluster)
    if state.sleeps:
        expect_later(cluster)
    if state.queue_gaps > 64 and 2 * state.queue_gaps > state.queue_tail - state.queue_head:
        close_gaps(state, queue)
    return True


def run(cluster: Cluster, remaining: Int64s, halt: int) -> int:
    """Run until users must be notified or ``halt``; return why it stopped, a :class:`Stop`."""
    state = cluster.state
    while True:
        if state.phase == COMPLETIONS:
            time = next_time(cluster)
            if time > halt:
                state.now = max(state.now, halt)
                return Stop.HALT
            if time == FOREVER:
                return Stop.DONE
            if state.allowance <= 0 and not state.finished:
                return Stop.PAUSE
            state.now = time
            if not complete(cluster, remaining):
                return Stop.ROOM
            state.phase = REACTIONS
            if state.finished:
                return Stop.FINISHED
        if state.phase == REACTIONS:
            if halt <= state.now:
                return Stop.HALT
            state.phase = ARRIVALS
        if not arrive(cluster, remaining):
            return Stop.ROOM
        if state.finished:
            state.phase = REACTIONS
            return Stop.FINISHED
        if state.change_at == state.now:
            state.phase = REACTIONS  # reactions of users also arrive now
            return Stop.CHANGE
        if state.closed:
            state.wake = FOREVER
            state.phase = COMPLETIONS
            continue
        if state.sleeps and not prepare(cluster):
            return Stop.ROOM
        if state.policy == OUTSIDE:
            state.phase = COMPLETIONS
            return Stop.PASS
        if not schedule(cluster):
            return Stop.ROOM
        state.phase = COMPLETIONS
