"""The broker's queue, compiled: jobs by submission, of which the first that fits is found fast.

Jobs of one size stand in a list of their own, by submission; over the sizes there is a tree that
knows the earliest of the first jobs of all sizes up to any number of processors. So a queue of
thousands costs no more to look through than one of ten.

Arrays: ``sizes`` holds the first and the last job of each size, -1 none, shape (2, sizes);
``chain`` the next job of its size and the place in the order (:func:`place_of`), -1 when it does
not wait, shape (2, jobs); ``tree`` the earliest place, a heap over ``sizes`` (``tree[1]`` of all),
shape (2 * sizes,).
"""

from __future__ import annotations

from math import floor

from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.places import (
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
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.stops import FOREVER

FIRST, LAST = 0, 1
NEXT, PLACE = 0, 1


#: Places by submission, then by row; there are less than 2**31 rows, and 2**32 seconds are an age.
ROWS = 1 << 31


@compiled
def place_of(submit, row):
    """Return the place of a job in the order of the queue."""
    return submit * ROWS + row


@compiled
def _renew(tree, size, place):
    """Note the place of the first job of a size."""
    node = (len(tree) >> 1) + size
    tree[node] = place
    while node > 1:
        node >>= 1
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@compiled
def put(tree, sizes, chain, job, size, place):
    """Put a job into the queue, most often at its end."""
    chain[PLACE, job] = place
    last = sizes[LAST, size]
    before, after = last, UNKNOWN
    if last != UNKNOWN and chain[PLACE, last] > place:  # an earlier number came in the same second
        before, after = UNKNOWN, sizes[FIRST, size]
        while chain[PLACE, after] < place:
            before, after = after, chain[NEXT, after]
    chain[NEXT, job] = after
    if after == UNKNOWN:
        sizes[LAST, size] = job
    if before == UNKNOWN:
        sizes[FIRST, size] = job
        _renew(tree, size, place)
    else:
        chain[NEXT, before] = job


@compiled
def first_up_to(tree, sizes, most):
    """Return the first job of at most so many processors, -1 if there is none."""
    half = len(tree) >> 1
    low, high = half, half + min(most, half - 1) + 1
    earliest, at = FOREVER, 0
    while low < high:
        if low & 1:
            if tree[low] < earliest:
                earliest, at = tree[low], low
            low += 1
        if high & 1:
            high -= 1
            if tree[high] < earliest:
                earliest, at = tree[high], high
        low >>= 1
        high >>= 1
    if earliest == FOREVER:
        return UNKNOWN
    while at < half:
        at = 2 * at if tree[2 * at] == earliest else 2 * at + 1
    return sizes[FIRST, at - half]


@compiled
def remove_first(tree, sizes, chain, size):
    """Take the first job of a size out of the queue."""
    job = sizes[FIRST, size]
    after = chain[NEXT, job]
    chain[PLACE, job] = UNKNOWN
    sizes[FIRST, size] = after
    if after == UNKNOWN:
        sizes[LAST, size] = UNKNOWN
        _renew(tree, size, FOREVER)
    else:
        _renew(tree, size, chain[PLACE, after])


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
    """Return a time on nodes of a speed, as ``hpcrowd.environment.quantities.time_at_speed``."""
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
