"""The broker's queue, compiled: jobs by submission, with fast search for the first that fits.

Jobs of one size are in a separate list, by submission. A tree over the sizes holds the earliest of
the first jobs of all sizes up to any number of processors. So searching a queue of thousands of
jobs costs no more than one of ten.

The choice of a cluster is also here; the same policies in plain Python are in
``environment/grid/policies.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

FIRST, LAST = 0, 1
NEXT, PLACE = 0, 1


@dataclass(eq=False, slots=True)
class Broker:
    """The broker's queue, and its data on the clusters."""

    #: submission (s) and row of jobs that are to arrive, a heap, shape (2, jobs)
    arrivals: Int64Rows
    #: the earliest place of jobs by size, a heap over ``sizes`` (``tree[1]`` of all), (2 * sizes,)
    tree: Int64s
    sizes: Int64Rows  #: the first and the last job of each size, -1 for none, shape (2, sizes)
    #: the next job of its size, and the place in the order (:func:`place_of`), -1 when it does not
    #: wait, shape (2, jobs)
    chain: Int64Rows
    speeds: Float64s  #: of the nodes of each cluster, shape (clusters,)
    #: rows of jobs of the grid that wait on each cluster, shape (clusters, jobs)
    pending: Int64Rows
    counts: Int64s  #: how many of them, shape (clusters,)
    free: Int64s  #: processors of each cluster that they leave, shape (clusters,)
    scratch: Int64Rows  #: room for a heap of the jobs of one cluster, shape (2, jobs)


#: Places by submission, then by row; there are less than 2**31 rows, and 2**32 seconds are an age.
ROWS = 1 << 31


def place_of(submit: int, row: int) -> int:
    """Return the place of a job in the order of the queue."""
    return submit * ROWS + row


def _renew(tree: Int64s, size: int, place: int) -> None:
    """Note the place of the first job of a size."""
    node = (len(tree) >> 1) + size
    tree[node] = place
    while node > 1:
        node >>= 1
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


def put(broker: Broker, job: int, size: int, place: int) -> None:
    """Put a job into the queue, most often at its end."""
    sizes, chain = broker.sizes, broker.chain
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
        _renew(broker.tree, size, place)
    else:
        chain[NEXT, before] = job


def first_up_to(broker: Broker, most: int) -> int:
    """Return the first job of at most this many processors, -1 if there is none."""
    tree = broker.tree
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
    return broker.sizes[FIRST, at - half]


def remove_first(broker: Broker, size: int) -> None:
    """Take the first job of a size out of the queue."""
    tree, sizes, chain = broker.tree, broker.sizes, broker.chain
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


def count_free(clusters: list[Cluster], broker: Broker) -> int:
    """Fill ``free``, forget the jobs that have started since; return the largest number.

    Free processors are those not in use, minus those of jobs of the grid that wait there.
    """
    pending, counts, free = broker.pending, broker.counts, broker.free
    most = 0
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        jobs = cluster.jobs
        asked, kept = 0, 0
        for i in range(counts[k]):
            job = pending[k, i]
            if jobs[S.START, job] < 0 and jobs[S.STATE, job] == S.UNFINISHED:
                asked += jobs[S.PROCESSORS, job]
                pending[k, kept] = job
                kept += 1
        counts[k] = kept
        free[k] = cluster.s[S.FREE] - asked
        most = max(most, free[k])
    return most


def with_room(free: Int64s, need: int, worst: bool) -> int:
    """Return the first cluster with room, or the one with the most."""
    found = UNKNOWN
    for k in range(len(free)):
        if free[k] >= need and (found == UNKNOWN or (worst and free[k] > free[found])):
            found = k
            if not worst:
                break
    return found


def least_loaded(clusters: list[Cluster], need: int) -> int:
    """Return the large enough cluster with the smallest share of processors used and requested."""
    found = UNKNOWN
    best, over = 0, 1
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        s = cluster.s
        size = s[S.CAPACITY]
        if size >= need:
            used = size - s[S.FREE] + s[S.ASKED]
            if found == UNKNOWN or used * over < best * size:
                found, best, over = k, used, size
    return found


def at_speed(time: int, speed: float) -> int:
    """Return a time on nodes of a speed, as ``hpcrowd.environment.quantities.time_at_speed``."""
    return time if time <= 0 else max(floor(time / speed + 0.5), 1)


def believed(cluster: Cluster, speed: float, job: int) -> int:
    """Return the run time that the scheduler of a cluster would expect."""
    jobs, s = cluster.jobs, cluster.s
    requested = at_speed(jobs[S.REQUESTED_TIME, job], speed)
    if s[S.EXACT]:
        run = at_speed(jobs[S.RUN_TIME, job], speed)
        return min(run, requested) if s[S.KILL] else run
    return (2 * requested * s[S.FACTOR] + s[S.DIVISOR]) // (2 * s[S.DIVISOR])


def completion(cluster: Cluster, broker: Broker, need: int, length: int) -> int:
    """Return when a job would end, with the queue served in order, according to estimates."""
    jobs, s, queue, scratch = cluster.jobs, cluster.s, cluster.queue, broker.scratch
    now, free, held = s[S.NOW], s[S.FREE], 0
    for i in range(s[S.RUNNING]):
        job = cluster.ends[1, i]
        end = max(now, jobs[S.START, job] + jobs[S.ESTIMATE, job])
        heap_push(scratch, held, end, jobs[S.PROCESSORS, job])
        held += 1
    time = now
    for i in range(s[S.QUEUE_HEAD], s[S.QUEUE_TAIL] + 1):
        last = i == s[S.QUEUE_TAIL]
        wanted = need if last else queue[1, i]
        if wanted == S.GAP:
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


def fastest(clusters: list[Cluster], broker: Broker, job: int) -> int:
    """Return the large enough cluster where a job would end first."""
    found, best = UNKNOWN, FOREVER
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        need = cluster.jobs[S.PROCESSORS, job]
        if cluster.s[S.CAPACITY] >= need:
            length = believed(cluster, broker.speeds[k], job)
            end = completion(cluster, broker, need, length)
            if found == UNKNOWN or end < best:
                found, best = k, end
    return found
