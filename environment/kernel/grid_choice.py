"""Which cluster gets a job of the grid, compiled; in plain Python it stands in environment/grid.py.

The state of all clusters stands together: ``every`` holds a row of scalars for each, ``queues`` and
``ends`` an array each; ``free`` is filled with the processors that the broker counts as free.
"""

from __future__ import annotations

from math import floor

from environment.jobs import UNKNOWN
from environment.kernel.heap import heap_pop, heap_push
from environment.kernel.places import (
    ASKED,
    CAPACITY,
    DIVISOR,
    ESTIMATE,
    EXACT,
    FACTOR,
    FREE,
    GAP,
    KILL,
    NOW,
    PROCESSORS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REQUESTED_TIME,
    RUN_TIME,
    RUNNING,
    START,
    compiled,
)
from environment.stops import FOREVER

#: Policies by their number; NONE is a simulation without a broker. From LEAST_LOADED on, jobs are
#: sent on at once.
NONE, FIRST_FIT, WORST_FIT, LEAST_LOADED, FASTEST_COMPLETION = range(5)


@compiled
def count_free(jobs, every, pending, counts, free):
    """Fill ``free``, forget the jobs that have started since; return the largest number.

    Free are processors that nobody uses, less those of jobs of the grid that wait there.
    """
    most = 0
    for k in range(len(every)):
        asked, kept = 0, 0
        for i in range(counts[k]):
            job = pending[k, i]
            if jobs[START, job] < 0:
                asked += jobs[PROCESSORS, job]
                pending[k, kept] = job
                kept += 1
        counts[k] = kept
        free[k] = every[k, FREE] - asked
        most = max(most, free[k])
    return most


@compiled
def with_room(free, need, worst):
    """Return the first cluster with room, or the one with the most."""
    found = UNKNOWN
    for k in range(len(free)):
        if free[k] >= need and (found == UNKNOWN or (worst and free[k] > free[found])):
            found = k
            if not worst:
                break
    return found


@compiled
def least_loaded(every, need):
    """Return the cluster large enough with the smallest share of processors used and asked for."""
    found = UNKNOWN
    best, over = 0, 1
    for k in range(len(every)):
        size = every[k, CAPACITY]
        if size >= need:
            used = size - every[k, FREE] + every[k, ASKED]
            if found == UNKNOWN or used * over < best * size:
                found, best, over = k, used, size
    return found


@compiled
def at_speed(time, speed):
    """Return a time on nodes of a speed, as ``environment.quantities.time_at_speed``."""
    return time if time <= 0 else max(floor(time / speed + 0.5), 1)


@compiled
def believed(jobs, s, speed, job):
    """Return the run time that the scheduler of a cluster would believe."""
    requested = at_speed(jobs[REQUESTED_TIME, job], speed)
    if s[EXACT]:
        run = at_speed(jobs[RUN_TIME, job], speed)
        return min(run, requested) if s[KILL] else run
    return (2 * requested * s[FACTOR] + s[DIVISOR]) // (2 * s[DIVISOR])


@compiled
def completion(jobs, s, queue, ends, scratch, need, length):
    """Return when a job would end, the queue served in its order by what is believed."""
    now, free, held = s[NOW], s[FREE], 0
    for i in range(s[RUNNING]):
        job = ends[1, i]
        end = max(now, jobs[START, job] + jobs[ESTIMATE, job])
        heap_push(scratch, held, end, jobs[PROCESSORS, job])
        held += 1
    time = now
    for i in range(s[QUEUE_HEAD], s[QUEUE_TAIL] + 1):
        last = i == s[QUEUE_TAIL]
        wanted = need if last else queue[1, i]
        if wanted == GAP:
            continue
        while free < wanted:
            if held == 0:
                return FOREVER
            time = max(time, scratch[0, 0])
            free += heap_pop(scratch, held)
            held -= 1
        if last:
            break
        free -= wanted
        heap_push(scratch, held, time + queue[2, i], wanted)
        held += 1
    return time + length


@compiled
def fastest(jobs, every, queues, ends, scratch, speeds, job):
    """Return the cluster large enough where a job would end first."""
    need = jobs[PROCESSORS, job]
    found, best = UNKNOWN, FOREVER
    for k in range(len(every)):
        if every[k, CAPACITY] >= need:
            length = believed(jobs, every[k], speeds[k], job)
            end = completion(jobs, every[k], queues[k], ends[k], scratch, need, length)
            if found == UNKNOWN or end < best:
                found, best = k, end
    return found
