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

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.cluster import GAP, Cluster
from hpcrowd.environment.engine.kernel.heap import Heap, heap_pop, heap_push
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64Rows, Int64s, State
from hpcrowd.environment.stops import FOREVER


@dataclass(eq=False, slots=True)
class Broker:
    """The broker's queue, and its data on the clusters."""

    arrivals: Heap  #: submissions (s) of jobs that are to arrive
    #: the earliest place of jobs by size, a heap over ``sizes`` (``tree[1]`` of all), (2 * sizes,)
    tree: Int64s
    sizes: Int64Rows  #: shape (2, sizes)
    chain: Int64Rows  #: shape (2, jobs)
    speeds: Float64s  #: of the nodes of each cluster, shape (clusters,)
    #: rows of jobs of the grid that wait on each cluster, shape (clusters, jobs)
    pending: Int64Rows
    counts: Int64s  #: how many of them, shape (clusters,)
    free: Int64s  #: processors of each cluster that they leave, shape (clusters,)
    scratch: Heap  #: room for the jobs of one cluster

    #: The first and the last job of each size, -1 for none.
    first, last = rows("sizes", 2)
    #: The next job of its size, and its place in the order (:func:`place_of`), -1 when it does not
    #: wait.
    next, place = rows("chain", 2)


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
    broker.place[job] = place
    last = broker.last[size]
    before, after = last, UNKNOWN
    if last != UNKNOWN and broker.place[last] > place:  # an earlier number came in the same second
        before, after = UNKNOWN, broker.first[size]
        while broker.place[after] < place:
            before, after = after, broker.next[after]
    broker.next[job] = after
    if after == UNKNOWN:
        broker.last[size] = job
    if before == UNKNOWN:
        broker.first[size] = job
        _renew(broker.tree, size, place)
    else:
        broker.next[before] = job


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
    return broker.first[at - half]


def remove_first(broker: Broker, size: int) -> None:
    """Take the first job of a size out of the queue."""
    tree = broker.tree
    job = broker.first[size]
    after = broker.next[job]
    broker.place[job] = UNKNOWN
    broker.first[size] = after
    if after == UNKNOWN:
        broker.last[size] = UNKNOWN
        _renew(tree, size, FOREVER)
    else:
        _renew(tree, size, broker.place[after])


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
            if jobs.start[job] < 0 and jobs.state[job] == State.UNFINISHED:
                asked += jobs.processors[job]
                pending[k, kept] = job
                kept += 1
        counts[k] = kept
        free[k] = cluster.state.free - asked
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
        state = cluster.state
        size = state.capacity
        if size >= need:
            used = size - state.free + state.asked
            if found == UNKNOWN or used * over < best * size:
                found, best, over = k, used, size
    return found


def at_speed(time: int, speed: float) -> int:
    """Return a time on nodes of a speed, as ``hpcrowd.environment.quantities.time_at_speed``."""
    return time if time <= 0 else max(floor(time / speed + 0.5), 1)


def believed(cluster: Cluster, speed: float, job: int) -> int:
    """Return the run time that the scheduler of a cluster would expect."""
    jobs, state = cluster.jobs, cluster.state
    requested = at_speed(jobs.requested_time[job], speed)
    if state.exact:
        run = at_speed(jobs.run_time[job], speed)
        return min(run, requested) if state.kill else run
    return (2 * requested * state.factor + state.divisor) // (2 * state.divisor)


def completion(cluster: Cluster, broker: Broker, need: int, length: int) -> int:
    """Return when a job would end, with the queue served in order, according to estimates."""
    jobs, state, queue, scratch = cluster.jobs, cluster.state, cluster.queue, broker.scratch
    now, free, held = state.now, state.free, 0
    for i in range(state.running):
        job = cluster.ends.job[i]
        end = max(now, jobs.start[job] + jobs.estimate[job])
        heap_push(scratch, held, end, jobs.processors[job])
        held += 1
    time = now
    for i in range(state.queue_head, state.queue_tail + 1):
        last = i == state.queue_tail
        wanted = need if last else queue.need[i]
        if wanted == GAP:
            continue
        while free < wanted:
            if held == 0:
                return FOREVER
            time = max(time, scratch.time[0])
            free += heap_pop(scratch, held)
            held -= 1
        if last:
            break
        free -= wanted
        heap_push(scratch, held, time + queue.length[i], wanted)
        held += 1
    return time + length


def fastest(clusters: list[Cluster], broker: Broker, job: int) -> int:
    """Return the large enough cluster where a job would end first."""
    found, best = UNKNOWN, FOREVER
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        need = cluster.jobs.processors[job]
        if cluster.state.capacity >= need:
            length = believed(cluster, broker.speeds[k], job)
            end = completion(cluster, broker, need, length)
            if found == UNKNOWN or end < best:
                found, best = k, end
    return found
