"""Several compiled clusters: the compiled form of ``environment/engine/lock_step.py``."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import arrive, complete, next_time, schedule
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.scheduling import close_gaps, enqueue, turned_away
from hpcrowd.environment.grid.kernel.queue import (
    LEAST_LOADED,
    NONE,
    WORST_FIT,
    Broker,
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
from hpcrowd.environment.jobs import UNKNOWN, Int64Rows, Int64s
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
    AGAIN,  # when the broker is to look again though nothing happens
    GRID_COUNT,
) = range(13)


@dataclass(eq=False, slots=True)
class Instant:
    """The common state of the clusters at one instant."""

    jobs: Int64Rows  #: the table of jobs, that of all clusters, shape (columns, jobs)
    remaining: Int64s  #: how many jobs of each unit are not over, shape (units,)
    g: Int64s  #: the scalars above, shape (GRID_COUNT,)
    over: Int64s  #: rows of jobs over in this phase that users wait for, shape (jobs,)
    units: Int64s  #: units over by that, shape (units,)
    active: Int64s  #: which clusters have a pass, shape (clusters,)
    dues: Int64s  #: when something happens next on each, s, shape (clusters,)


def push_arrivals(jobs: Int64Rows, heap: Int64Rows, size: int, rows: Int64s) -> int:
    """Submit jobs to the broker at the times in their column SUBMIT; return how many."""
    for job in rows:
        heap_push(heap, size, jobs[S.SUBMIT, job], job)
        size += 1
    return size


def count_units(instant: Instant) -> bool:
    """Count jobs as finished, lower numbers first; return whether a unit has finished."""
    g, over, units, remaining = instant.g, instant.over, instant.units, instant.remaining
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
        unit = instant.jobs[S.UNIT, over[i]]
        remaining[unit] -= 1
        if remaining[unit] == 0:
            units[g[UNITS]] = unit
            g[UNITS] += 1
    g[OVER] = 0
    return g[UNITS] > 0


def gather(cluster: Cluster, instant: Instant) -> bool:
    """Put what a cluster noted as over to the others'; return False when there is no room."""
    s, g, over = cluster.s, instant.g, instant.over
    if g[OVER] + s[S.FINISHED_COUNT] > len(over):
        return False
    for i in range(s[S.FINISHED_COUNT]):
        over[g[OVER]] = cluster.finished[i]
        g[OVER] += 1
    s[S.FINISHED_COUNT] = 0
    return True


def arrive_at_broker(instant: Instant, broker: Broker) -> bool:
    """Process the arrivals at the broker now; return False if there is no room."""
    jobs, g, over, heap = instant.jobs, instant.g, instant.over, broker.arrivals
    while g[EXPECTED] and heap[0, 0] == g[TIME]:
        if g[OVER] == len(over):
            return False
        job = heap_pop(heap, g[EXPECTED])
        g[EXPECTED] -= 1
        g[ARRIVED] += 1
        if turned_away(jobs, job, g[WIDEST]):
            if jobs[S.UNIT, job] >= 0:
                over[g[OVER]] = job
                g[OVER] += 1
        else:
            put(broker, job, jobs[S.PROCESSORS, job], place_of(jobs[S.SUBMIT, job], job))
            g[HELD] += 1
    return True


def has_room(cluster: Cluster) -> bool:
    """Return whether a job may join the queue of a cluster."""
    s, room = cluster.s, cluster.queue.shape[1]
    if s[S.QUEUE_TAIL] == room and (s[S.QUEUE_GAPS] or s[S.QUEUE_HEAD]):
        close_gaps(s, cluster.queue)
    return s[S.QUEUE_TAIL] < room and s[S.RUNNING] < cluster.ends.shape[1]


def deliver(cluster: Cluster, speed: float, job: int) -> None:
    """Put a job into the queue of a cluster, with its run time there."""
    jobs = cluster.jobs
    jobs[S.CLUSTER, job] = cluster.s[S.NUMBER]
    if speed != 1.0:
        jobs[S.RUN_TIME, job] = at_speed(jobs[S.RUN_TIME, job], speed)
        jobs[S.REQUESTED_TIME, job] = at_speed(jobs[S.REQUESTED_TIME, job], speed)
    enqueue(cluster, job)


def choose(clusters: list[Cluster], instant: Instant, broker: Broker) -> tuple[int, int]:
    """Return the job that is sent on next and its cluster; -1 if all must wait."""
    jobs, policy = instant.jobs, instant.g[BROKER]
    if policy >= LEAST_LOADED:  # these send on at once
        job = first_up_to(broker, instant.g[WIDEST])
        if policy == LEAST_LOADED:
            return job, least_loaded(clusters, jobs[S.PROCESSORS, job])
        return job, fastest(clusters, broker, job)
    most = count_free(clusters, broker)
    job = first_up_to(broker, most)
    if job == UNKNOWN:
        return job, UNKNOWN
    return job, with_room(broker.free, jobs[S.PROCESSORS, job], policy == WORST_FIT)


def send_on(clusters: list[Cluster], instant: Instant, broker: Broker) -> int:
    """Send one job on. Return its cluster, -1 if all must wait, -2 if there is no room."""
    g, pending, counts = instant.g, broker.pending, broker.counts
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        need = cluster.s[S.RUNNING] + cluster.s[S.WAITING] + 1
        if not has_room(cluster) or need > broker.scratch.shape[1] or counts[k] == pending.shape[1]:
            g[AT] = k
            return -2
    job, k = choose(clusters, instant, broker)
    if job == UNKNOWN:
        return -1
    remove_first(broker, instant.jobs[S.PROCESSORS, job])
    g[HELD] -= 1
    deliver(clusters[k], broker.speeds[k], job)
    if g[BROKER] < LEAST_LOADED:
        pending[k, counts[k]] = job
        counts[k] += 1
    instant.active[k] = 1
    return k


def due(cluster: Cluster) -> int:
    """Return when something happens next on a cluster."""
    return next_time(cluster.jobs, cluster.s, cluster.sorted, cluster.heap, cluster.ends)


def next_instant(clusters: list[Cluster], instant: Instant, broker: Broker) -> int:
    """Return when something happens next, FOREVER for never; count the events so far."""
    g = instant.g
    time = min(broker.arrivals[0, 0] if g[EXPECTED] else FOREVER, g[AGAIN])
    total = g[ARRIVED]
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        instant.dues[k] = due(cluster)
        time = min(time, instant.dues[k])
        total += cluster.s[S.EVENTS]
    g[TOTAL] = total
    return time


def complete_all(clusters: list[Cluster], instant: Instant) -> bool:
    """Complete the jobs that end now, from cluster ``AT`` on; return False if a list is full."""
    g = instant.g
    while g[AT] < len(clusters):
        if instant.active[g[AT]]:
            cluster: Cluster = clusters[g[AT]]
            if not (complete(cluster, instant.remaining) and gather(cluster, instant)):
                return False
        g[AT] += 1
    return True


def arrive_all(clusters: list[Cluster], instant: Instant) -> bool:
    """Process the arrivals of now, from cluster ``AT`` on; return False if a list is full."""
    g = instant.g
    while g[AT] < len(clusters):
        cluster: Cluster = clusters[g[AT]]
        # What is over already was noted before there was no room.
        if due(cluster) == g[TIME] or cluster.s[S.FINISHED_COUNT]:
            instant.active[g[AT]] = 1
            if not (arrive(cluster, instant.remaining) and gather(cluster, instant)):
                return False
        g[AT] += 1
    return True


def schedule_all(clusters: list[Cluster], instant: Instant) -> int:
    """Do the passes of clusters from ``AT`` on; return ROOM or PASS where one stops, else DONE."""
    g, active = instant.g, instant.active
    while g[AT] < len(clusters):
        k = g[AT]
        if active[k]:
            cluster: Cluster = clusters[k]
            s = cluster.s
            if s[S.CLOSED]:
                s[S.WAKE] = FOREVER
            elif s[S.POLICY] == S.OUTSIDE:
                active[k] = 0
                return S.PASS
            elif not schedule(cluster):
                return S.ROOM
            active[k] = 0
        g[AT] += 1
    return S.DONE


def _pass_to(clusters: list[Cluster], time: int) -> None:
    """Move the clocks of all clusters."""
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        cluster.s[S.NOW] = time


def advance_grid(
    clusters: list[Cluster], instant: Instant, broker: Broker, halt: int, allowed: int
) -> int:
    """Run as ``LockStep.advance`` does; return why it stopped, a :class:`Stop`.

    After ``ROOM``, ``PASS`` the cluster in question is the one at ``AT``.
    """
    g, active = instant.g, instant.active
    early = g[BROKER] >= LEAST_LOADED  # these send on at once
    while True:
        if g[STAGE] == BEGIN:
            time = next_instant(clusters, instant, broker)
            if time > halt:
                g[TIME] = max(g[TIME], halt)
                _pass_to(clusters, g[TIME])
                return S.HALT
            if time == FOREVER:
                return S.DONE
            if g[TOTAL] >= allowed:
                return S.PAUSE
            g[TIME] = time
            g[AGAIN] = FOREVER
            _pass_to(clusters, time)
            for k in range(len(clusters)):
                active[k] = instant.dues[k] == time
            g[AT] = 0
            g[STAGE] = ENDING
        if g[STAGE] == ENDING:
            if not complete_all(clusters, instant):
                return S.ROOM
            g[STAGE] = REACTING
            if count_units(instant):
                return S.FINISHED
        if g[STAGE] == REACTING:
            if halt <= g[TIME]:
                return S.HALT
            g[AT] = -1
            g[STAGE] = ARRIVING
        if g[STAGE] == ARRIVING:
            if g[AT] < 0:
                if not arrive_at_broker(instant, broker):
                    return S.ROOM
                g[AT] = 0
            if not arrive_all(clusters, instant):
                return S.ROOM
            changes = False
            for k in range(len(clusters)):
                cluster: Cluster = clusters[k]
                changes = changes or cluster.s[S.CHANGE_AT] == g[TIME]
            if count_units(instant):
                g[STAGE] = REACTING
                return S.FINISHED
            if changes:
                g[STAGE] = REACTING  # reactions of users also arrive now
                return S.CHANGE
            g[STAGE] = SENDING_EARLY
        if g[STAGE] == SENDING_EARLY:
            while early and g[HELD]:
                if send_on(clusters, instant, broker) == -2:
                    return S.ROOM
            g[AT] = 0
            g[STAGE] = PASSING
        if g[STAGE] == PASSING:
            stop = schedule_all(clusters, instant)
            if stop != S.DONE:
                return stop
            g[STAGE] = SENDING_LATE
        if g[BROKER] != NONE and g[HELD]:
            sent = send_on(clusters, instant, broker)
            if sent == -2:
                return S.ROOM
            if sent >= 0:
                g[AT] = sent
                g[STAGE] = PASSING
                continue
        g[STAGE] = BEGIN
