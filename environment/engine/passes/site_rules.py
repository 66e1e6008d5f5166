"""The pass of a site's own rules: partitions, limits of users, hours, and an order of the queue.

The same rules without shortcuts are in ``environment/schedulers/policies/site.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.cluster import LOOKS, Cluster, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap, heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.engine.kernel.sleeping import next_pending, pending
from hpcrowd.environment.jobs import Float64s, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.stops import FOREVER, Stop

#: Rows of ``of``, of ``parts`` and of ``users``.
OF_ROWS, PART_ROWS, USER_ROWS = 3, 5, 4

#: No job is the head of a partition yet.
NOBODY = -1


@dataclass(eq=False, slots=True)
class SiteRules:
    """The queue, the partitions and the users."""

    queue: Int64s  #: rows of the waiting jobs in their order, shape (waiting,)
    keys: Float64s  #: their place in the order by row of the job, small ones first, shape (jobs,)
    base: Float64s  #: the part of it that does not depend on the submission, shape (jobs,)
    of: Int64Rows  #: by row of the job, shape (OF_ROWS, jobs)
    parts: Int64Rows  #: shape (PART_ROWS, partitions)
    users: Int64Rows  #: shape (USER_ROWS, users)
    ends: Heap  #: room for expected ends of running jobs
    sign: int = 0  #: 1 for an order by submission, -1 for the latest first
    count: int = 0  #: waiting jobs
    passes: int = 0
    most_jobs: int = FOREVER  #: of a user at once
    most_held: int = FOREVER  #: processors of a user at once
    most_seen: int = FOREVER  #: waiting jobs of a user that a pass considers
    backfill: bool = True
    corrects: bool = False  #: jobs that outrun their estimates are expected to run on for a while
    shut: int = 0  #: rules of hours that hold now, one bit each
    boundary: int = FOREVER  #: when these change, s

    #: Partition and user of a job, and rules of hours that it is under, one bit each.
    part, user, rules = rows("of", OF_ROWS)
    #: Processors of a partition, those held, its head, and that one's reservation.
    size, held, head, shadow, spare = rows("parts", PART_ROWS)
    #: Running jobs of a user, their processors; waiting jobs seen in a pass, and in which.
    jobs, processors, seen, pass_of = rows("users", USER_ROWS)


def charge(site: SiteRules, jobs: Jobs, job: int, count: int) -> None:
    """Count a job as running, or with -1 as no longer running."""
    part, user = site.part[job], site.user[job]
    site.held[part] += count * jobs.processors[job]
    site.jobs[user] += count
    site.processors[user] += count * jobs.processors[job]


def enter(site: SiteRules, jobs: Jobs, job: int) -> None:
    """Put an arriving job into the queue."""
    at = site.count
    submit = jobs.enqueued[job]
    key = site.base[job] + site.sign * submit
    site.keys[job] = key
    while at > 0:
        other = site.queue[at - 1]
        before = jobs.enqueued[other]
        if site.keys[other] < key or (
            site.keys[other] == key and (before < submit or (before == submit and other < job))
        ):
            break
        site.queue[at] = other
        at -= 1
    site.queue[at] = job
    site.count += 1


def considered(site: SiteRules, jobs: Jobs, job: int) -> bool:
    """Return whether neither hours nor limits of its user keep a job from running."""
    if site.rules[job] & site.shut:
        return False
    user = site.user[job]
    if site.pass_of[user] != site.passes:
        site.pass_of[user], site.seen[user] = site.passes, 0
    if site.seen[user] >= site.most_seen:
        return False
    site.seen[user] += 1
    running: int = site.jobs[user]
    if running >= site.most_jobs:
        return False
    return running == 0 or bool(site.processors[user] + jobs.processors[job] <= site.most_held)


def reserve(cluster: Cluster, site: SiteRules, part: int, free: int, need: int) -> None:
    """Set the reservation of the head of a partition, from the ends of the jobs that run there."""
    jobs, now, ends = cluster.jobs, cluster.state.now, site.ends
    count = 0
    for i in range(cluster.state.running):
        job = cluster.ends.job[i]
        if site.part[job] == part:
            end = jobs.start[job] + jobs.estimate[job]
            if end <= now:
                end = now
                if site.corrects:
                    end = believed_end(
                        jobs.start[job], jobs.estimate[job], jobs.requested_time[job], now
                    )
            heap_push(ends, count, end, job)
            count += 1
    shadow = now
    while count > 0 and (free < need or ends.time[0] <= shadow):
        shadow = max(shadow, ends.time[0])
        free += jobs.processors[heap_pop(ends, count)]
        count -= 1
    site.shadow[part], site.spare[part] = shadow, max(free - need, 0)
    if free < need and need <= site.size[part]:
        site.shadow[part] = FOREVER


def site_pass(cluster: Cluster, site: SiteRules, ended: Int64s, arrived: Int64s) -> None:
    """Do one scheduling pass."""
    jobs, state = cluster.jobs, cluster.state
    if state.sleeps:
        while pending(cluster.ledger):
            next_pending(cluster.ledger)
    for job in ended:
        charge(site, jobs, job, -1)
    for job in arrived:
        enter(site, jobs, job)
    if site.count == 0 or state.free <= 0:
        return
    site.passes += 1
    for part in range(site.parts.shape[1]):
        site.head[part] = NOBODY
    state.allowance -= site.count // LOOKS
    kept = 0
    for i in range(site.count):
        job = site.queue[i]
        site.queue[kept] = job
        kept += 1
        if not considered(site, jobs, job):
            continue
        part, need = site.part[job], jobs.processors[job]
        free = state.free  # an empty partition also runs a job that is larger
        if site.held[part] > 0:
            free = min(site.size[part] - site.held[part], free)
        if site.head[part] == NOBODY:
            if need > free:
                site.head[part] = job
                if site.backfill:
                    reserve(cluster, site, part, free, need)
                continue
        elif not site.backfill or need > free:
            continue
        elif jobs.estimate[job] > site.shadow[part] - state.now:
            if need > site.spare[part]:
                continue
            site.spare[part] -= need
        kept -= 1
        start_job(cluster, job)
        charge(site, jobs, job, 1)
        site.seen[site.user[job]] -= 1  # it waits no longer
    site.count = kept


def advance_site(cluster: Cluster, remaining: Int64s, halt: int, site: SiteRules) -> int:
    """Run like ``loop.advance``; return ``PASS`` only if arrays must grow or hours change."""
    state = cluster.state
    while True:
        stop = run(cluster, remaining, halt)
        if stop != Stop.PASS:
            return stop
        arrived = state.queue_tail - state.queue_head
        need = state.running + site.count + arrived
        if (
            state.now >= site.boundary
            or site.count + arrived > len(site.queue)
            or need > site.ends.table.shape[1]
            or need >= cluster.ends.table.shape[1]
        ):
            return Stop.PASS
        site_pass(
            cluster,
            site,
            cluster.expected.ended[: state.expected_end],
            cluster.queue.job[state.queue_head : state.queue_tail],
        )
        state.expected_end = state.queue_head = state.queue_tail = 0
        state.wake = site.boundary
