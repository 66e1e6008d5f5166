"""Clusters side by side, compiled: what ``environment/engine/lock_step.py`` does in plain Python.

The arrays of all clusters stand together, each with the cluster as its first axis; those of
:mod:`hpcrowd.environment.engine.kernel.loop` are slices of them. The broker's arrays are told in
:mod:`hpcrowd.environment.engine.kernel.grid_queue`.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.grid_queue import (
    LEAST_LOADED,
    NONE,
    WORST_FIT,
    at_speed,
    count_free,
    fastest,
    first_up_to,
    least_loaded,
    place_of,
    put,
    remove_first,
    with_room,
)
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import arrive, complete, next_time, schedule
from hpcrowd.environment.engine.kernel.places import (
    CHANGE,
    CHANGE_AT,
    CLOSED,
    CLUSTER,
    DONE,
    EVENTS,
    FINISHED,
    FINISHED_COUNT,
    HALT,
    NEVER,
    NOW,
    NUMBER,
    OUTSIDE,
    PACE,
    PACE_ONE,
    PASS,
    PAUSE,
    POLICY,
    PROCESSORS,
    QUEUE_GAPS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REJECTED,
    RENOUNCED,
    REQUESTED_TIME,
    ROOM,
    RUN_TIME,
    RUNNING,
    STATE,
    SUBMIT,
    UNIT,
    WAITING,
    WAKE,
    compiled,
)
from hpcrowd.environment.engine.kernel.scheduling import close_gaps, enqueue
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.stops import FOREVER

# Phases of an instant.
BEGIN, ENDING, REACTING, ARRIVING, SENDING_EARLY, PASSING, SENDING_LATE = range(7)

# Places in the array of scalars of all clusters together.
(
    TIME,
    STAGE,  # phase of the instant
    AT,  # cluster that the phase has come to; -1 the broker
    OVER,  # jobs over in this phase, that users wait for
    UNITS,  # units over by that
    TOTAL,  # events so far
    BROKER,  # its policy
    ARRIVED,  # events at the broker
    EXPECTED,  # jobs that are to arrive at the broker
    HELD,  # jobs that it holds
    WIDEST,  # processors of the largest cluster
    GRID_COUNT,
) = range(12)


@compiled
def push_arrivals(jobs, heap, size, rows):
    """Let jobs arrive at the broker at the times in their column SUBMIT; return how many do."""
    for job in rows:
        heap_push(heap, size, jobs[SUBMIT, job], job)
        size += 1
    return size


@compiled
def count_units(jobs, g, over, remaining, units):
    """Count jobs as over, lower numbers first; return whether a unit is over by it."""
    count = g[OVER]
    for i in range(1, count):
        job = over[i]
        j = i
        while j > 0 and over[j - 1] > job:
            over[j] = over[j - 1]
            j -= 1
        over[j] = job
    g[UNITS] = 0
    for i in range(count):
        unit = jobs[UNIT, over[i]]
        remaining[unit] -= 1
        if remaining[unit] == 0:
            units[g[UNITS]] = unit
            g[UNITS] += 1
    g[OVER] = 0
    return g[UNITS] > 0


@compiled
def gather(s, g, finished, over):
    """Put what a cluster noted as over to the others'; return False when there is no room."""
    if g[OVER] + s[FINISHED_COUNT] > len(over):
        return False
    for i in range(s[FINISHED_COUNT]):
        over[g[OVER]] = finished[i]
        g[OVER] += 1
    s[FINISHED_COUNT] = 0
    return True


@compiled
def arrive_at_broker(jobs, g, heap, tree, sizes, chain, over):
    """Let arrive at the broker what arrives now; return False when there is no room."""
    while g[EXPECTED] and heap[0, 0] == g[TIME]:
        if g[OVER] == len(over):
            return False
        job = heap_pop(heap, g[EXPECTED])
        g[EXPECTED] -= 1
        g[ARRIVED] += 1
        size = jobs[PROCESSORS, job]
        if jobs[STATE, job] == RENOUNCED or size > g[WIDEST]:
            if jobs[STATE, job] == RENOUNCED:
                jobs[SUBMIT, job] = jobs[CLUSTER, job] = NEVER
            else:
                jobs[STATE, job] = REJECTED
            if jobs[UNIT, job] >= 0:
                over[g[OVER]] = job
                g[OVER] += 1
        else:
            put(tree, sizes, chain, job, size, place_of(jobs[SUBMIT, job], job))
            g[HELD] += 1
    return True


@compiled
def has_room(s, queue, ends):
    """Return whether a job may join the queue of a cluster."""
    if s[QUEUE_TAIL] == queue.shape[1] and (s[QUEUE_GAPS] or s[QUEUE_HEAD]):
        close_gaps(s, queue)
    return s[QUEUE_TAIL] < queue.shape[1] and s[RUNNING] < ends.shape[1]


@compiled
def deliver(jobs, s, queue, speed, job):
    """Let a job join the queue of a cluster, as long as it runs there."""
    jobs[CLUSTER, job] = s[NUMBER]
    if speed != 1.0:
        jobs[RUN_TIME, job] = at_speed(jobs[RUN_TIME, job], speed)
        jobs[REQUESTED_TIME, job] = at_speed(jobs[REQUESTED_TIME, job], speed)
    if s[PACE] != s[PACE_ONE] and jobs[RUN_TIME, job] > 0:
        scaled = (2 * jobs[RUN_TIME, job] * s[PACE_ONE] + s[PACE]) // (2 * s[PACE])
        jobs[RUN_TIME, job] = max(1, scaled)
    enqueue(jobs, s, queue, job)


@compiled
def choose(jobs, every, queues, ends, g, tree, sizes, speeds, pending, counts, free, scratch):
    """Return the job that goes on next and its cluster; -1 when all have to wait."""
    policy = g[BROKER]
    if policy >= LEAST_LOADED:  # these send on at once
        job = first_up_to(tree, sizes, g[WIDEST])
        if policy == LEAST_LOADED:
            return job, least_loaded(every, jobs[PROCESSORS, job])
        return job, fastest(jobs, every, queues, ends, scratch, speeds, job)
    most = count_free(jobs, every, pending, counts, free)
    job = first_up_to(tree, sizes, most)
    if job == UNKNOWN:
        return job, UNKNOWN
    return job, with_room(free, jobs[PROCESSORS, job], policy == WORST_FIT)


@compiled
def send_on(
    jobs, every, queues, ends, g, tree, sizes, chain, speeds, pending, counts, free, scratch, active
):
    """Send one job on. Return its cluster, -1 when all have to wait, -2 when there is no room."""
    for k in range(len(every)):
        need = every[k, RUNNING] + every[k, WAITING] + 1
        if (
            not has_room(every[k], queues[k], ends[k])
            or need > scratch.shape[1]
            or counts[k] == pending.shape[1]
        ):
            g[AT] = k
            return -2
    job, k = choose(
        jobs, every, queues, ends, g, tree, sizes, speeds, pending, counts, free, scratch
    )
    if job == UNKNOWN:
        return -1
    remove_first(tree, sizes, chain, jobs[PROCESSORS, job])
    g[HELD] -= 1
    deliver(jobs, every[k], queues[k], speeds[k], job)
    if g[BROKER] < LEAST_LOADED:
        pending[k, counts[k]] = job
        counts[k] += 1
    active[k] = 1
    return k


@compiled
def advance_grid(
    jobs, every, sorted_arrivals, heaps, queues, ends, expected, finished, active, dues,
    g, over, units, remaining, links, edges, unit_rows,
    arrivals, tree, sizes, chain, speeds, pending, counts, free, scratch,
    halt, allowed,
):  # fmt: skip
    """Run as ``LockStep.advance`` does; return why it stopped, a :class:`Stop`.

    After ``ROOM``, ``PASS`` the cluster in question is the one at ``AT``.
    """
    clusters = len(every)
    early = g[BROKER] >= LEAST_LOADED  # these send on at once
    while True:
        if g[STAGE] == BEGIN:
            time = arrivals[0, 0] if g[EXPECTED] else FOREVER
            total = g[ARRIVED]
            for k in range(clusters):
                dues[k] = next_time(jobs, every[k], sorted_arrivals[k], heaps[k], ends[k])
                time = min(time, dues[k])
                total += every[k, EVENTS]
            g[TOTAL] = total
            if time > halt:
                g[TIME] = max(g[TIME], halt)
                for k in range(clusters):
                    every[k, NOW] = g[TIME]
                return HALT
            if time == FOREVER:
                return DONE
            if total >= allowed:
                return PAUSE
            g[TIME] = time
            for k in range(clusters):
                every[k, NOW] = time
                active[k] = dues[k] == time
            g[AT] = 0
            g[STAGE] = ENDING
        if g[STAGE] == ENDING:
            while g[AT] < clusters:
                k = g[AT]
                if active[k]:
                    if not complete(
                        jobs, every[k], heaps[k], ends[k], expected[k], remaining, finished[k],
                        links, edges, unit_rows,
                    ):  # fmt: skip
                        return ROOM
                    if not gather(every[k], g, finished[k], over):
                        return ROOM
                g[AT] += 1
            g[STAGE] = REACTING
            if count_units(jobs, g, over, remaining, units):
                return FINISHED
        if g[STAGE] == REACTING:
            if halt <= g[TIME]:
                return HALT
            g[AT] = -1
            g[STAGE] = ARRIVING
        if g[STAGE] == ARRIVING:
            if g[AT] < 0:
                if not arrive_at_broker(jobs, g, arrivals, tree, sizes, chain, over):
                    return ROOM
                g[AT] = 0
            changes = False
            while g[AT] < clusters:
                k = g[AT]
                due = next_time(jobs, every[k], sorted_arrivals[k], heaps[k], ends[k])
                if due == g[TIME] or every[k, FINISHED_COUNT]:  # the latter after ROOM
                    active[k] = 1
                    if not arrive(
                        jobs, every[k], sorted_arrivals[k], heaps[k], queues[k], ends[k],
                        remaining, finished[k], links, edges, unit_rows,
                    ):  # fmt: skip
                        return ROOM
                    if not gather(every[k], g, finished[k], over):
                        return ROOM
                g[AT] += 1
            for k in range(clusters):
                changes = changes or every[k, CHANGE_AT] == g[TIME]
            if count_units(jobs, g, over, remaining, units):
                g[STAGE] = REACTING
                return FINISHED
            if changes:
                g[STAGE] = REACTING  # what users do about it arrives now too
                return CHANGE
            g[STAGE] = SENDING_EARLY
        if g[STAGE] == SENDING_EARLY:
            while early and g[HELD]:
                if send_on(
                    jobs, every, queues, ends, g, tree, sizes, chain, speeds, pending, counts,
                    free, scratch, active,
                ) == -2:  # fmt: skip
                    return ROOM
            g[AT] = 0
            g[STAGE] = PASSING
        if g[STAGE] == PASSING:
            while g[AT] < clusters:
                k = g[AT]
                if active[k]:
                    if every[k, CLOSED]:
                        every[k, WAKE] = FOREVER
                    elif every[k, POLICY] == OUTSIDE:
                        active[k] = 0
                        return PASS
                    elif not schedule(jobs, every[k], queues[k], ends[k], expected[k]):
                        return ROOM
                    active[k] = 0
                g[AT] += 1
            g[STAGE] = SENDING_LATE
        if g[BROKER] != NONE and g[HELD]:
            sent = send_on(
                jobs, every, queues, ends, g, tree, sizes, chain, speeds, pending, counts, free,
                scratch, active,
            )  # fmt: skip
            if sent == -2:
                return ROOM
            if sent >= 0:
                g[AT] = sent
                g[STAGE] = PASSING
                continue
        g[STAGE] = BEGIN
