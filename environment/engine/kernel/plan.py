"""A plan of reservations kept from pass to pass: conservative and selective backfilling.

A readable version of the same policies is in ``environment/schedulers/conservative.py`` and
``selective.py``. There every pass examines every waiting job. Here a job with a reservation is
examined only if processors became free before its start that it has not been tried on yet and that
are not clearly too few.
"""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.compilation import compiled, inlined
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.believed import believed_end
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.places import Cluster, Units
from hpcrowd.environment.engine.kernel.profile import (
    BEFORE,
    BLOCKS,
    FREE,
    GAIN_FROM,
    LATELY,
    TIME,
    WIDTH,
    Profile,
    after,
    age_gains,
    change,
    earlier,
    earliest,
    fits_now,
    free_now,
    most_gained,
    pass_time,
    position_of,
    read,
)
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.stops import FOREVER

#: Rows of the queue: job, processors, length in the plan (s), planned start or NEVER, whether the
#: job is to have a reservation, submission, category.
JOB, NEED, LENGTH, PLANNED, RESERVED, SUBMITTED, CATEGORY = range(7)
QUEUE_ROWS = 7

#: More places in ``m`` after those of the profile: jobs in the queue, entries of ``due``, whether
#: a job is to find its first place, known misses and where the next goes, changes of reservations.
COUNT, DUE, UNPLACED, MISSES, NEXT_MISS, MOVES = range(3, 9)
PLACES = 9


class Plan(NamedTuple):
    """The plan, and its waiting and running jobs."""

    profile: Profile  #: free processors; its ``m`` has the places above too
    queue: Int64s  #: by submission and job number, see JOB, shape (QUEUE_ROWS, waiting)
    #: believed end (s) and row of running jobs, a heap; entries that ``believed`` does not confirm
    #: are void, shape (2, entries)
    due: Int64s
    believed: Int64s  #: when running jobs are believed to end (s), by row, shape (jobs,)
    #: searches of this walk that found nothing: processors, length, before when (s), shape (3, k)
    misses: Int64s


class Rules(NamedTuple):
    """The rules for reservations."""

    every: bool  #: all, or those whose expansion factor is above their threshold
    adaptive: bool  #: thresholds are the mean slowdowns of the jobs that ended, by category
    cuts: Int64s  #: s, estimates at which the next category begins, shape (categories - 1,)
    bound: int  #: s, run times that slowdowns are computed with are at least this
    slowdowns: Float64s  #: their sums, shape (categories,)
    counts: Int64s  #: jobs that ended, shape (categories,)
    thresholds: Float64s  #: shape (categories,)


@inlined
def plan_of(arrays):
    """Return the plan of the arrays that Python hands over: ``steps``, ``heads``, ``m``, others."""
    steps, heads, m, queue, due, believed, misses = arrays
    return Plan(Profile(steps, heads, m), queue, due, believed, misses)


@compiled
def _expect(cluster, plan, job):
    """Expect a running job to hold its processors until an end after now."""
    jobs, now, m = cluster.jobs, cluster.s[S.NOW], plan.profile.m
    end = believed_end(jobs[S.START, job], jobs[S.ESTIMATE, job], jobs[S.REQUESTED_TIME, job], now)
    change(plan.profile, now, end, -jobs[S.PROCESSORS, job], 0)
    plan.believed[job] = end
    heap_push(plan.due, m[DUE], end, job)
    m[DUE] += 1


@compiled
def take_over(cluster, plan, running):
    """Put jobs that already run into the plan."""
    for k in range(len(running)):
        _expect(cluster, plan, running[k])


@inlined
def take_back(cluster, plan, ended):
    """Free the processors that ended jobs were expected to hold."""
    jobs, now, believed = cluster.jobs, cluster.s[S.NOW], plan.believed
    for k in range(len(ended)):
        job = ended[k]
        if believed[job] > now:
            change(plan.profile, now, believed[job], jobs[S.PROCESSORS, job], BEFORE)
        believed[job] = S.NEVER


@inlined
def expect_longer(cluster, plan):
    """Extend the expected ends of jobs that outran them; return whether there are any."""
    now, m, due = cluster.s[S.NOW], plan.profile.m, plan.due
    any_late = False
    while m[DUE] and due[0, 0] <= now:
        time = due[0, 0]
        job = heap_pop(due, m[DUE])
        m[DUE] -= 1
        if plan.believed[job] == time:
            _expect(cluster, plan, job)
            any_late = True
    return any_late


@compiled
def make_room(plan):
    """Cancel reservations where processors are too few, the latest in the queue first."""
    profile, queue, m = plan.profile, plan.queue, plan.profile.m
    position = 0
    while position < m[BLOCKS] * WIDTH:
        time = read(profile, position, TIME)
        while time < FOREVER and read(profile, position, FREE) < 0:
            k = m[COUNT] - 1
            coming = FOREVER  # the first reservation after this time
            while k >= 0:
                start = queue[PLANNED, k]
                if start != S.NEVER and start <= time < start + queue[LENGTH, k]:
                    break
                if start > time:
                    coming = min(coming, start)
                k -= 1
            if k < 0:  # only running jobs and maintenance, until perhaps later in the step
                time = coming
                if time < FOREVER:
                    position = position_of(profile, time)
                continue
            queue[PLANNED, k] = S.NEVER
            m[UNPLACED] = 1
            change(profile, start, start + queue[LENGTH, k], queue[NEED, k], BEFORE)
            position = position_of(profile, time)
        position = after(profile, position)


@inlined
def _place(jobs, plan, i, start):
    """Give a job of the queue its place in the plan."""
    queue = plan.queue
    queue[PLANNED, i] = start
    change(plan.profile, start, start + queue[LENGTH, i], -queue[NEED, i], 0)
    plan.profile.m[MOVES] += 1
    job = queue[JOB, i]
    if jobs[S.PROMISED, job] == S.NEVER:
        jobs[S.PROMISED, job] = start


@compiled
def _known_misses(m, misses, need, length):
    """Return before when no start is possible, since jobs that need no more found none."""
    known = -1
    for k in range(m[MISSES]):
        if misses[0, k] <= need and misses[1, k] <= length:
            known = max(known, misses[2, k])
    return known


@compiled
def _note_misses(m, misses, need, length, start):
    """Note that a job of this size and length found no start before ``start``."""
    for k in range(m[MISSES]):
        if misses[0, k] >= need and misses[1, k] >= length and misses[2, k] <= start:
            misses[0, k], misses[1, k], misses[2, k] = need, length, start
            return
    k = m[NEXT_MISS]
    misses[0, k], misses[1, k], misses[2, k] = need, length, start
    m[MISSES] = max(m[MISSES], k + 1)
    m[NEXT_MISS] = (k + 1) % misses.shape[1]


@compiled
def _forget_misses(m, misses, since):
    """Processors became free from ``since`` on: keep only searches that end before that."""
    for k in range(m[MISSES]):
        misses[2, k] = min(misses[2, k], since - misses[1, k] + 1)


@inlined
def compress(cluster, plan, every):
    """Move each job with a reservation, in order, to the earliest possible place.

    A job without any, since part of the machine is down, is tried again later if ``every`` job
    gets a reservation.
    """
    jobs, queue, misses = cluster.jobs, plan.queue, plan.misses
    profile, m = plan.profile, plan.profile.m
    if m[GAIN_FROM] == FOREVER and m[UNPLACED] == 0:
        return
    now = cluster.s[S.NOW]
    most = most_gained(profile)
    m[MISSES] = m[NEXT_MISS] = m[UNPLACED] = 0
    for i in range(m[COUNT]):
        if queue[RESERVED, i] == 0:
            continue
        start = queue[PLANNED, i]
        need = queue[NEED, i]
        length = queue[LENGTH, i]
        if start == S.NEVER:
            start = earliest(profile, need, length)
            if start == FOREVER:
                queue[RESERVED, i] = every
            else:
                _place(jobs, plan, i, start)
            continue
        if start == now or start <= m[GAIN_FROM] or need > most:
            continue
        known = _known_misses(m, misses, need, length)
        if known >= start:
            known = start - 1  # its own place was not free for jobs that found nothing
        found = earlier(profile, need, length, start, known)
        if found < 0:
            _note_misses(m, misses, need, length, start)
            continue
        _note_misses(m, misses, need, length, found)
        change(profile, start, start + length, need, LATELY)
        _place(jobs, plan, i, found)
        _forget_misses(m, misses, start)
        position = position_of(profile, start)
        while position < m[BLOCKS] * WIDTH and read(profile, position, TIME) < start + length:
            most = max(most, read(profile, position, FREE))
            position = after(profile, position)
    if m[GAIN_FROM] < FOREVER:
        age_gains(profile)


@inlined
def start_due(cluster, plan):
    """Start what is planned for now; return the next planned start, FOREVER if there is none."""
    now, queue, m = cluster.s[S.NOW], plan.queue, plan.profile.m
    to = 0
    wake = FOREVER
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        if start == now:
            job = queue[JOB, i]
            end = now + queue[LENGTH, i]
            start_job(cluster, job)
            plan.believed[job] = end
            heap_push(plan.due, m[DUE], end, job)
            m[DUE] += 1
            continue
        if start != S.NEVER:
            wake = min(wake, start)
        if to < i:
            for row in range(QUEUE_ROWS):
                queue[row, to] = queue[row, i]
        to += 1
    m[COUNT] = to
    return wake


@inlined
def _category_of(cuts, estimate):
    """Return the category of jobs of an estimate."""
    category = 0
    while category < len(cuts) and estimate >= cuts[category]:
        category += 1
    return category


@inlined
def join(jobs, plan, rules, arrived):
    """Put jobs that arrived into the queue, by submission and number."""
    queue, m = plan.queue, plan.profile.m
    for k in range(len(arrived)):
        job = arrived[k]
        at = m[COUNT]
        m[COUNT] += 1
        submit = jobs[S.ENQUEUED, job]
        while at > 0 and (
            queue[SUBMITTED, at - 1] > submit
            or (queue[SUBMITTED, at - 1] == submit and queue[JOB, at - 1] > job)
        ):
            for row in range(QUEUE_ROWS):
                queue[row, at] = queue[row, at - 1]
            at -= 1
        queue[JOB, at] = job
        queue[NEED, at] = jobs[S.PROCESSORS, job]
        queue[LENGTH, at] = max(jobs[S.ESTIMATE, job], 1)
        queue[PLANNED, at] = S.NEVER
        queue[RESERVED, at] = rules.every
        queue[SUBMITTED, at] = submit
        queue[CATEGORY, at] = _category_of(rules.cuts, jobs[S.ESTIMATE, job])
        if rules.every:
            m[UNPLACED] = 1


@compiled
def count_slowdowns(jobs, rules, ended):
    """Add the slowdowns of jobs that ended, by category; thresholds are their means."""
    slowdowns, counts = rules.slowdowns, rules.counts
    for k in range(len(ended)):
        job = ended[k]
        category = _category_of(rules.cuts, jobs[S.ESTIMATE, job])
        run = max(jobs[S.END, job] - jobs[S.START, job], rules.bound)
        slowdowns[category] += (jobs[S.END, job] - jobs[S.ENQUEUED, job]) / run
        counts[category] += 1
        rules.thresholds[category] = slowdowns[category] / counts[category]


@compiled
def select_others(cluster, plan, thresholds):
    """Start jobs without a reservation that fit; give one to those who have waited long enough."""
    now, profile, queue = cluster.s[S.NOW], plan.profile, plan.queue
    for i in range(profile.m[COUNT]):
        if queue[RESERVED, i]:
            continue
        need, length = queue[NEED, i], queue[LENGTH, i]
        if need <= free_now(profile) and fits_now(profile, need, length):
            queue[PLANNED, i] = now
            change(profile, now, now + length, -need, 0)
            continue
        waited = now - queue[SUBMITTED, i]
        if (waited + length) / length > thresholds[queue[CATEGORY, i]]:
            start = earliest(profile, need, length)
            if start < FOREVER:
                queue[RESERVED, i] = 1
                _place(cluster.jobs, plan, i, start)


#: Spare blocks of a plan.
SPARE_BLOCKS = 5 * 256 // WIDTH


@compiled
def blocks_for(jobs):
    """Return the blocks that a plan may need in a pass, with so many jobs running, waiting or over.

    Steps begin and end with jobs, and with places that jobs left in this walk or the last. Two
    blocks beside each other may fill as little as a quarter of one, since only smaller ones unite.
    """
    return 8 * 6 * jobs // WIDTH + SPARE_BLOCKS


@inlined
def has_room(cluster, plan, arrived):
    """Return whether a pass with this many new jobs cannot fill an array."""
    s, m = cluster.s, plan.profile.m
    waiting = m[COUNT] + arrived
    jobs = s[S.RUNNING] + waiting
    return (
        waiting <= plan.queue.shape[1]
        and m[DUE] + jobs <= plan.due.shape[1]
        and blocks_for(jobs + s[S.EXPECTED_END]) <= len(plan.profile.steps)
        and s[S.RUNNING] + s[S.WAITING] < cluster.ends.shape[1]
    )


@compiled
def planned_pass(cluster_arrays, plan_arrays, rules_given, ended, arrived):
    """Do one pass; return the next planned start, FOREVER if there is none."""
    cluster, plan, rules = Cluster(*cluster_arrays), plan_of(plan_arrays), Rules(*rules_given)
    take_back(cluster, plan, ended)
    pass_time(plan.profile, cluster.s[S.NOW])
    if expect_longer(cluster, plan):
        make_room(plan)
    join(cluster.jobs, plan, rules, arrived)
    compress(cluster, plan, rules.every)
    if not rules.every:
        if rules.adaptive:
            count_slowdowns(cluster.jobs, rules, ended)
        select_others(cluster, plan, rules.thresholds)
    return start_due(cluster, plan)


@compiled
def advance_planned(cluster_arrays, unit_arrays, halt, plan_arrays, rules):
    """Run like ``loop.advance``; return ``PASS`` only if an array must grow for it."""
    cluster, units, plan = Cluster(*cluster_arrays), Units(*unit_arrays), plan_of(plan_arrays)
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    while True:
        stop = run(cluster, units, halt)
        if stop != S.PASS:
            return stop
        if not has_room(cluster, plan, s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]):
            return S.PASS
        s[S.WAKE] = planned_pass(
            cluster_arrays,
            plan_arrays,
            rules,
            ended[0, : s[S.EXPECTED_END]],
            arrived[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]],
        )
        s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0
