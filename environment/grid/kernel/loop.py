"""Several compiled clusters: the compiled form of ``environment/engine/lock_step.py``."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.cluster import OUTSIDE, Cluster, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap, heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import arrive, complete, next_time, schedule
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
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.stops import FOREVER, Stop

# Phases of an instant.
BEGIN, ENDING, REACTING, ARRIVING, SENDING_EARLY, PASSING, SENDING_LATE = range(7)


@dataclass(eq=False, slots=True)
class Instant:
    """The common state of the clusters at one instant."""

    jobs: Jobs  #: of all clusters
    remaining: Int64s  #: how many jobs of each unit are not over, shape (units,)
    over: Int64s  #: rows of jobs over in this phase that users wait for, shape (jobs,)
    units: Int64s  #: units over by that, shape (units,)
    active: Int64s  #: which clusters have a pass, shape (clusters,)
    dues: Int64s  #: when something happens next on each, s, shape (clusters,)
    broker: int = NONE  #: its policy
    widest: int = 0  #: processors of the largest cluster
    time: int = 0
    stage: int = BEGIN  #: phase of the instant
    at: int = 0  #: cluster that the phase has come to; -1 the broker
    noted: int = 0  #: jobs over in this phase, that users wait for
    finished: int = 0  #: units over by that
    events: int = 0  #: so far
    arrived: int = 0  #: events at the broker
    expected: int = 0  #: jobs that are to arrive at the broker
    held: int = 0  #: jobs that it holds
    again: int = FOREVER  #: when the broker is to look again though nothing happens


def push_arrivals(jobs: Jobs, heap: Heap, size: int, rows: Int64s) -> int:
    """Submit jobs to the broker at the times in their column SUBMIT; return how many."""
    for job in rows:
        heap_push(heap, size, jobs.submit[job], job)
        size += 1
    return size


def count_units(instant: Instant) -> bool:
    """Count jobs as finished, lower numbers first; return whether a unit has finished."""
    over, units, remaining = instant.over, instant.units, instant.remaining
    count = instant.noted
    for i in range(1, count):
        job = over[i]
        j = i
        while j > 0 and over[j - 1] > job:
            over[j] = over[j - 1]
            j -= 1
        over[j] = job
    instant.finished = 0
    for i in range(count):
        unit = instant.jobs.unit[over[i]]
        remaining[unit] -= 1
        if remaining[unit] == 0:
            units[instant.finished] = unit
            instant.finished += 1
    instant.noted = 0
    return instant.finished > 0


def gather(cluster: Cluster, instant: Instant) -> bool:
    """Put what a cluster noted as over to the others'; return False when there is no room."""
    state, over = cluster.state, instant.over
    if instant.noted + state.finished > len(over):
        return False
    for i in range(state.finished):
        over[instant.noted] = cluster.finished[i]
        instant.noted += 1
    state.finished = 0
    return True


def arrive_at_broker(instant: Instant, broker: Broker) -> bool:
    """Process the arrivals at the broker now; return False if there is no room."""
    jobs, over, heap = instant.jobs, instant.over, broker.arrivals
    while instant.expected and heap.time[0] == instant.time:
        if instant.noted == len(over):
            return False
        job = heap_pop(heap, instant.expected)
        instant.expected -= 1
        instant.arrived += 1
        if turned_away(jobs, job, instant.widest):
            if jobs.unit[job] >= 0:
                over[instant.noted] = job
                instant.noted += 1
        else:
            put(broker, job, jobs.processors[job], place_of(jobs.submit[job], job))
            instant.held += 1
    return True


def has_room(cluster: Cluster) -> bool:
    """Return whether a job may join the queue of a cluster."""
    state, room = cluster.state, cluster.queue.table.shape[1]
    if state.queue_tail == room and (state.queue_gaps or state.queue_head):
        close_gaps(state, cluster.queue)
    return state.queue_tail < room and state.running < cluster.ends.table.shape[1]


def deliver(cluster: Cluster, speed: float, job: int) -> None:
    """Put a job into the queue of a cluster, with its run time there."""
    jobs = cluster.jobs
    jobs.cluster[job] = cluster.state.number
    if speed != 1.0:
        jobs.run_time[job] = at_speed(jobs.run_time[job], speed)
        jobs.requested_time[job] = at_speed(jobs.requested_time[job], speed)
    enqueue(cluster, job)


def choose(clusters: list[Cluster], instant: Instant, broker: Broker) -> tuple[int, int]:
    """Return the job that is sent on next and its cluster; -1 if all must wait."""
    jobs, policy = instant.jobs, instant.broker
    if policy >= LEAST_LOADED:  # these send on at once
        job = first_up_to(broker, instant.widest)
        if policy == LEAST_LOADED:
            return job, least_loaded(clusters, jobs.processors[job])
        return job, fastest(clusters, broker, job)
    most = count_free(clusters, broker)
    job = first_up_to(broker, most)
    if job == UNKNOWN:
        return job, UNKNOWN
    return job, with_room(broker.free, jobs.processors[job], policy == WORST_FIT)


def send_on(clusters: list[Cluster], instant: Instant, broker: Broker) -> int:
    """Send one job on. Return its cluster, -1 if all must wait, -2 if there is no room."""
    pending, counts = broker.pending, broker.counts
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        need = cluster.state.running + cluster.state.waiting + 1
        if (
            not has_room(cluster)
            or need > broker.scratch.table.shape[1]
            or counts[k] == pending.shape[1]
        ):
            instant.at = k
            return -2
    job, k = choose(clusters, instant, broker)
    if job == UNKNOWN:
        return -1
    remove_first(broker, instant.jobs.processors[job])
    instant.held -= 1
    deliver(clusters[k], broker.speeds[k], job)
    if instant.broker < LEAST_LOADED:
        pending[k, counts[k]] = job
        counts[k] += 1
    instant.active[k] = 1
    return k


def due(cluster: Cluster) -> int:
    """Return when something happens next on a cluster."""
    return next_time(cluster)


def next_instant(clusters: list[Cluster], instant: Instant, broker: Broker) -> int:
    """Return when something happens next, FOREVER for never; count the events so far."""
    time = min(broker.arrivals.time[0] if instant.expected else FOREVER, instant.again)
    total = instant.arrived
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        instant.dues[k] = due(cluster)
        time = min(time, instant.dues[k])
        total += cluster.state.events
    instant.events = total
    return time


def complete_all(clusters: list[Cluster], instant: Instant) -> bool:
    """Complete the jobs that end now, from cluster ``AT`` on; return False if a list is full."""
    while instant.at < len(clusters):
        if instant.active[instant.at]:
            cluster: Cluster = clusters[instant.at]
            if not (complete(cluster, instant.remaining) and gather(cluster, instant)):
                return False
        instant.at += 1
    return True


def arrive_all(clusters: list[Cluster], instant: Instant) -> bool:
    """Process the arrivals of now, from cluster ``AT`` on; return False if a list is full."""
    while instant.at < len(clusters):
        cluster: Cluster = clusters[instant.at]
        # What is over already was noted before there was no room.
        if due(cluster) == instant.time or cluster.state.finished:
            instant.active[instant.at] = 1
            if not (arrive(cluster, instant.remaining) and gather(cluster, instant)):
                return False
        instant.at += 1
    return True


def schedule_all(clusters: list[Cluster], instant: Instant) -> int:
    """Do the passes of clusters from ``AT`` on; return ROOM or PASS where one stops, else DONE."""
    active = instant.active
    while instant.at < len(clusters):
        k = instant.at
        if active[k]:
            cluster: Cluster = clusters[k]
            state = cluster.state
            if state.closed:
                state.wake = FOREVER
            elif state.policy == OUTSIDE:
                active[k] = 0
                return Stop.PASS
            elif not schedule(cluster):
                return Stop.ROOM
            active[k] = 0
        instant.at += 1
    return Stop.DONE


def _pass_to(clusters: list[Cluster], time: int) -> None:
    """Move the clocks of all clusters."""
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        cluster.state.now = time


def _changes(clusters: list[Cluster], now: int) -> bool:
    """Return whether a platform changes now."""
    for k in range(len(clusters)):
        cluster: Cluster = clusters[k]
        if cluster.state.change_at == now:
            return True
    return False


def _begin(
    clusters: list[Cluster], instant: Instant, broker: Broker, halt: int, allowed: int
) -> int:
    """Go to the next instant; return why there is none, a :class:`Stop`, or -1."""
    time = next_instant(clusters, instant, broker)
    if time > halt:
        instant.time = max(instant.time, halt)
        _pass_to(clusters, instant.time)
        return Stop.HALT
    if time == FOREVER:
        return Stop.DONE
    if instant.events >= allowed:
        return Stop.PAUSE
    instant.time = time
    instant.again = FOREVER
    _pass_to(clusters, time)
    for k in range(len(clusters)):
        instant.active[k] = instant.dues[k] == time
    instant.at = 0
    instant.stage = ENDING
    return -1


def advance_grid(
    clusters: list[Cluster], instant: Instant, broker: Broker, halt: int, allowed: int
) -> int:
    """Run as ``LockStep.advance`` does; return why it stopped, a :class:`Stop`.

    After ``ROOM``, ``PASS`` the cluster in question is the one at ``AT``.
    """
    early = instant.broker >= LEAST_LOADED  # these send on at once
    while True:
        if instant.stage == BEGIN:
            stop = _begin(clusters, instant, broker, halt, allowed)
            if stop >= 0:
                return stop
        if instant.stage == ENDING:
            if not complete_all(clusters, instant):
                return Stop.ROOM
            instant.stage = REACTING
            if count_units(instant):
                return Stop.FINISHED
        if instant.stage == REACTING:
            if halt <= instant.time:
                return Stop.HALT
            instant.at = -1
            instant.stage = ARRIVING
        if instant.stage == ARRIVING:
            if instant.at < 0:
                if not arrive_at_broker(instant, broker):
                    return Stop.ROOM
                instant.at = 0
            if not arrive_all(clusters, instant):
                return Stop.ROOM
            changes = _changes(clusters, instant.time)
            if count_units(instant):
                instant.stage = REACTING
                return Stop.FINISHED
            if changes:
                instant.stage = REACTING  # reactions of users also arrive now
                return Stop.CHANGE
            instant.stage = SENDING_EARLY
        if instant.stage == SENDING_EARLY:
            while early and instant.held:
                if send_on(clusters, instant, broker) == -2:
                    return Stop.ROOM
            instant.at = 0
            instant.stage = PASSING
        if instant.stage == PASSING:
            stop = schedule_all(clusters, instant)
            if stop != Stop.DONE:
                return stop
            instant.stage = SENDING_LATE
        if instant.broker != NONE and instant.held:
            sent = send_on(clusters, instant, broker)
            if sent == -2:
                return Stop.ROOM
            if sent >= 0:
                instant.at = sent
                instant.stage = PASSING
                continue
        instant.stage = BEGIN
