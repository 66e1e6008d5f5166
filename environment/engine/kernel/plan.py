"""A plan of reservations kept from pass to pass: conservative and selective backfilling.

A readable version of the same policies is in ``environment/schedulers/conservative.py`` and
``selective.py``. There every pass examines every waiting job against the whole plan. Here a job
with a reservation is only examined if processors became free before its start, and then only
whether it can slide, or fits into what became free (see ``gains.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.gains import (
    FRESH,
    GAIN_FROM,
    HOLES,
    JOBS_A_SPAN,
    NOTED,
    SPANS,
    WHOLE,
    Gains,
    age,
    class_of,
    examine,
    fill,
    forget_jobs,
    gained,
    jump,
    know_job,
    know_many,
    note_span,
    spread,
)
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.profile import (
    FREE,
    HEAD,
    LAST_NODE,
    NEXT,
    NO_NODE,
    NOW,
    PREVIOUS,
    SPARE,
    TIME,
    WIDTH,
    Profile,
    add,
    earliest,
    end_node,
    fits_now,
    level,
    link,
    most_free,
    node_at,
    occupy,
    pass_time,
    remove,
    run_begin,
    set_free,
    since,
    unlink,
)
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.engine.kernel.sleeping import next_pending, pending
from hpcrowd.environment.jobs import Float64s, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.stops import FOREVER

#: Rows of the queue: job, processors, length in the plan (s), planned start or NEVER, whether the
#: job is to have a reservation, submission, category, nodes where the reservation begins and ends,
#: class of its processors.
JOB, NEED, LENGTH, PLANNED, RESERVED, SUBMITTED, CATEGORY, BEGIN, END, KIND = range(10)
QUEUE_ROWS = 10

#: Rows of running jobs: when they are believed to end (s), the node of that.
UNTIL, NODE = range(2)

#: More places in ``m`` after those of the profile and the gains: jobs in the queue, entries of
#: ``due``, whether a job is to find its first place, changes of reservations.
COUNT, DUE, UNPLACED, MOVES = range(14, 18)
PLACES = 18

#: Nodes that a reservation passes one by one; farther ways are over blocks.
NEAR = 32

#: Part of the queue that may pass in walks before the shortest jobs are looked up again.
RENEWED = 8


@dataclass(eq=False, slots=True)
class Plan:
    """The plan, and its waiting and running jobs."""

    profile: Profile  #: free processors; its ``m`` has the places above too
    gains: Gains  #: what became free
    queue: Int64Rows  #: by submission and job number, see JOB, shape (QUEUE_ROWS, waiting)
    #: believed end (s) and row of running jobs, a heap; entries that ``believed`` does not confirm
    #: are void, shape (2, entries)
    due: Int64Rows
    believed: Int64Rows  #: see UNTIL, by row of the job, shape (2, jobs)


@dataclass(eq=False, slots=True)
class Rules:
    """The rules for reservations."""

    every: bool  #: all, or those whose expansion factor is above their threshold
    adaptive: bool  #: thresholds are the mean slowdowns of the jobs that ended, by category
    cuts: Int64s  #: s, estimates at which the next category begins, shape (categories - 1,)
    bound: int  #: s, run times that slowdowns are computed with are at least this
    slowdowns: Float64s  #: their sums, shape (categories,)
    counts: Int64s  #: jobs that ended, shape (categories,)
    thresholds: Float64s  #: shape (categories,)


def _expect(cluster: Cluster, plan: Plan, job: int) -> None:
    """Expect a running job to hold its processors until an end after now."""
    jobs, now, m = cluster.jobs, cluster.s[S.NOW], plan.profile.m
    end = believed_end(jobs[S.START, job], jobs[S.ESTIMATE, job], jobs[S.REQUESTED_TIME, job], now)
    node = LAST_NODE
    if end < FOREVER:
        node = end_node(plan.profile, end)
    add(plan.profile, m[HEAD], node, -jobs[S.PROCESSORS, job])
    _believe(plan, job, end, node)


def _believe(plan: Plan, job: int, end: int, node: int) -> None:
    """Note when a running job is believed to end."""
    m = plan.profile.m
    plan.believed[UNTIL, job], plan.believed[NODE, job] = end, node
    heap_push(plan.due, m[DUE], end, job)
    m[DUE] += 1


def take_over_running(cluster: Cluster, plan: Plan, running: Int64s) -> None:
    """Put jobs that already run into the plan."""
    for k in range(len(running)):
        _expect(cluster, plan, running[k])


def take_back(cluster: Cluster, plan: Plan, ended: Int64s) -> None:
    """Free the processors that ended jobs were expected to hold."""
    jobs, now, believed = cluster.jobs, cluster.s[S.NOW], plan.believed
    for k in range(len(ended)):
        job = ended[k]
        until, node = believed[UNTIL, job], believed[NODE, job]
        if until > now:
            add(plan.profile, plan.profile.m[HEAD], node, jobs[S.PROCESSORS, job])
            _gain(plan, plan.profile.m[HEAD], node, jobs[S.PROCESSORS, job], 0)
        if until != S.NEVER and node != LAST_NODE:
            remove(plan.profile, node)
        believed[UNTIL, job] = S.NEVER


def expect_longer(cluster: Cluster, plan: Plan) -> bool:
    """Extend the expected ends of jobs that outran them; return whether there are any."""
    now, m, due, believed = cluster.s[S.NOW], plan.profile.m, plan.due, plan.believed
    any_late = False
    while m[DUE] and due[0, 0] <= now:
        time = due[0, 0]
        job = heap_pop(due, m[DUE])
        m[DUE] -= 1
        if believed[UNTIL, job] == time:
            remove(plan.profile, believed[NODE, job])
            _expect(cluster, plan, job)
            any_late = True
    return any_late


def expect_later(cluster: Cluster, plan: Plan) -> None:
    """Take note of the jobs of the last pass that waited for nodes to be switched on."""
    jobs, now, m = cluster.jobs, cluster.s[S.NOW], plan.profile.m
    while pending(cluster.s):
        job = next_pending(cluster.s)
        until, node = plan.believed[UNTIL, job], plan.believed[NODE, job]
        if until == S.NEVER:  # it has ended
            continue
        need = jobs[S.PROCESSORS, job]
        if until > now:
            add(plan.profile, m[HEAD], node, need)
        if node != LAST_NODE:
            remove(plan.profile, node)
        start, length = jobs[S.START, job], jobs[S.ESTIMATE, job]
        end = start + max(length, 1)
        if end <= now:
            end = believed_end(start, length, jobs[S.REQUESTED_TIME, job], now)
        node = LAST_NODE
        if end < FOREVER:
            node = end_node(plan.profile, end)
        add(plan.profile, m[HEAD], node, -need)
        _believe(plan, job, end, node)


def make_room(plan: Plan) -> None:
    """Cancel reservations where processors are too few, the latest in the queue first."""
    profile, queue = plan.profile, plan.queue
    nodes, m = profile.nodes, profile.m
    node = m[HEAD]
    while node != LAST_NODE:
        time = since(profile, node)
        while level(profile, node) < 0 and nodes[nodes[node, NEXT], TIME] > time:
            k = m[COUNT] - 1
            while k >= 0:
                start = queue[PLANNED, k]
                if start != S.NEVER and start <= time < start + queue[LENGTH, k]:
                    break
                k -= 1
            if k < 0:  # only running jobs and maintenance
                break
            _cancel(plan, k)
            m[UNPLACED] = 1
            node = node_at(profile, time)
        node = nodes[node, NEXT]


def _cancel(plan: Plan, i: int) -> None:
    """Cancel the reservation of a job of the queue."""
    profile, queue = plan.profile, plan.queue
    first = queue[BEGIN, i]
    if profile.nodes[first, TIME] <= profile.m[NOW]:
        first = profile.m[HEAD]
    add(profile, first, queue[END, i], queue[NEED, i])
    _gain(plan, first, queue[END, i], queue[NEED, i], 0)
    remove(profile, queue[BEGIN, i])
    remove(profile, queue[END, i])
    queue[PLANNED, i], queue[BEGIN, i], queue[END, i] = S.NEVER, NO_NODE, NO_NODE


def _place(jobs: Int64Rows, plan: Plan, i: int, start: int) -> None:
    """Give a job of the queue its first place in the plan."""
    queue, m = plan.queue, plan.profile.m
    need, length = queue[NEED, i], queue[LENGTH, i]
    queue[PLANNED, i] = start
    queue[BEGIN, i], queue[END, i] = occupy(plan.profile, start, start + length, need)
    if m[FRESH] >= 0:
        know_job(plan.gains, m, start, need, length)
    m[MOVES] += 1
    job = queue[JOB, i]
    if jobs[S.PROMISED, job] == S.NEVER:
        jobs[S.PROMISED, job] = start


def _gain(plan: Plan, first: int, last: int, processors: int, late: int) -> None:
    """Note that processors became free from one node to another, and whether in this walk."""
    profile, m = plan.profile, plan.profile.m
    gained(m, since(profile, first), late)
    if not m[HOLES] or m[WHOLE]:
        if m[COUNT]:
            note_span(
                plan.gains,
                m,
                since(profile, first),
                profile.nodes[last, TIME],
                most_free(profile, first, last),
                late,
            )
        m[FRESH] = -1
        return
    if m[FRESH] < 0:
        _know_queue(plan)
    examine(profile, plan.gains, first, last, processors, late)


def _know_queue(plan: Plan) -> None:
    """Look up the shortest waiting jobs."""
    queue, gains, m = plan.queue, plan.gains, plan.profile.m
    count = max(m[COUNT], 1)
    spans = min(max(count // JOBS_A_SPAN, 1), SPANS)
    forget_jobs(gains, m, queue[PLANNED, : spans * (count // spans) : count // spans])
    for i in range(m[COUNT]):
        if queue[PLANNED, i] != S.NEVER:
            know_many(gains, m, queue[PLANNED, i], queue[KIND, i], queue[LENGTH, i])
    spread(gains, m)
    m[FRESH] = count // RENEWED


def _move(plan: Plan, i: int, found: int) -> None:
    """Move a reservation to an earlier start, and note what that frees."""
    profile, queue = plan.profile, plan.queue
    nodes, m = profile.nodes, profile.m
    start, need, length = queue[PLANNED, i], queue[NEED, i], queue[LENGTH, i]
    begin, end = queue[BEGIN, i], queue[END, i]
    left = nodes[begin, PREVIOUS]
    unlink(profile, begin)
    near = NEAR
    while nodes[left, TIME] > found and near:
        set_free(profile, left, nodes[left, FREE] - need)
        left = nodes[left, PREVIOUS]
        near -= 1
    if nodes[left, TIME] > found:
        right = nodes[left, NEXT]
        left = node_at(profile, found)
        add(profile, nodes[left, NEXT], right, -need)
    link(profile, begin, left, found, -need)
    right = nodes[end, NEXT]
    left = nodes[end, PREVIOUS]
    unlink(profile, end)
    freed = right
    near = NEAR
    while nodes[left, TIME] >= found + length and near:
        set_free(profile, left, nodes[left, FREE] + need)
        if nodes[left, TIME] >= start:
            freed = left
        left = nodes[left, PREVIOUS]
        near -= 1
    if nodes[left, TIME] >= found + length:
        after = nodes[left, NEXT]
        left = node_at(profile, found + length - 1)
        add(profile, nodes[left, NEXT], after, need)
        freed = nodes[node_at(profile, start - 1), NEXT]
    link(profile, end, left, found + length, need)
    if found + length >= start:
        freed = end
    elif nodes[freed, TIME] > start:
        freed = nodes[freed, PREVIOUS]
    queue[PLANNED, i] = found
    m[MOVES] += 1
    if not m[WHOLE]:
        fill(profile, plan.gains, begin)
    _gain(plan, freed, right, need, 1)


def compress(cluster: Cluster, plan: Plan, every: bool) -> None:
    """Move each job with a reservation, in order, to the earliest possible place.

    A job without any, since part of the machine is down, is tried again later if ``every`` job
    gets a reservation.
    """
    jobs, queue, gains, profile = cluster.jobs, plan.queue, plan.gains, plan.profile
    nodes, m = profile.nodes, profile.m
    if m[GAIN_FROM] == FOREVER and m[UNPLACED] == 0:
        return
    now = cluster.s[S.NOW]
    m[UNPLACED] = 0
    m[FRESH] -= 1
    if m[FRESH] < 0 and m[NOTED] and not m[WHOLE]:
        _know_queue(plan)
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
        if start == now or start <= m[GAIN_FROM]:
            continue
        found = jump(profile, gains, need, queue[KIND, i], length, start)
        node = nodes[queue[BEGIN, i], PREVIOUS]
        if level(profile, node) >= need:
            found = min(found, since(profile, run_begin(profile, node, need)))
        if found < start:
            _move(plan, i, found)
    age(gains, m, m[COUNT])


def start_due(cluster: Cluster, plan: Plan) -> int:
    """Start what is planned for now; return the next planned start, FOREVER if there is none."""
    now, queue, m = cluster.s[S.NOW], plan.queue, plan.profile.m
    to = 0
    wake = FOREVER
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        if start == now:
            job = queue[JOB, i]
            start_job(cluster, job)
            if queue[BEGIN, i] != NO_NODE:
                remove(plan.profile, queue[BEGIN, i])
            _believe(plan, job, now + queue[LENGTH, i], queue[END, i])
            continue
        if start != S.NEVER:
            wake = min(wake, start)
        if to < i:
            for row in range(QUEUE_ROWS):
                queue[row, to] = queue[row, i]
        to += 1
    m[COUNT] = to
    return wake


def _category_of(cuts: Int64s, estimate: int) -> int:
    """Return the category of jobs of an estimate."""
    category = 0
    while category < len(cuts) and estimate >= cuts[category]:
        category += 1
    return category


def join(jobs: Int64Rows, plan: Plan, rules: Rules, arrived: Int64s) -> None:
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
        queue[KIND, at] = class_of(jobs[S.PROCESSORS, job])
        queue[LENGTH, at] = max(jobs[S.ESTIMATE, job], 1)
        queue[PLANNED, at] = S.NEVER
        queue[RESERVED, at] = rules.every
        queue[SUBMITTED, at] = submit
        queue[CATEGORY, at] = _category_of(rules.cuts, jobs[S.ESTIMATE, job])
        queue[BEGIN, at] = queue[END, at] = NO_NODE
        if rules.every:
            m[UNPLACED] = 1


def count_slowdowns(jobs: Int64Rows, rules: Rules, ended: Int64s) -> None:
    """Add the slowdowns of jobs that ended, by category; thresholds are their means."""
    slowdowns, counts = rules.slowdowns, rules.counts
    for k in range(len(ended)):
        job = ended[k]
        category = _category_of(rules.cuts, jobs[S.ESTIMATE, job])
        run = max(jobs[S.END, job] - jobs[S.START, job], rules.bound)
        slowdowns[category] += (jobs[S.END, job] - jobs[S.ENQUEUED, job]) / run
        counts[category] += 1
        rules.thresholds[category] = slowdowns[category] / counts[category]


def select_others(cluster: Cluster, plan: Plan, thresholds: Float64s) -> None:
    """Start jobs without a reservation that fit; give one to those who have waited long enough."""
    now, profile, queue = cluster.s[S.NOW], plan.profile, plan.queue
    for i in range(profile.m[COUNT]):
        if queue[RESERVED, i]:
            continue
        need, length = queue[NEED, i], queue[LENGTH, i]
        if fits_now(profile, need, length):
            queue[PLANNED, i] = now
            queue[BEGIN, i], queue[END, i] = occupy(profile, now, now + length, need)
            continue
        waited = now - queue[SUBMITTED, i]
        if (waited + length) / length > thresholds[queue[CATEGORY, i]]:
            start = earliest(profile, need, length)
            if start < FOREVER:
                queue[RESERVED, i] = 1
                _place(cluster.jobs, plan, i, start)


#: Nodes of a plan without jobs: those before and after all others, and some for maintenance.
OTHER_NODES = 2


def blocks_for(nodes: int) -> int:
    """Return the blocks that so many nodes may need: two neighbours fill a quarter of one."""
    return 8 * nodes // WIDTH + 4


def has_room(cluster: Cluster, plan: Plan, arrived: int) -> bool:
    """Return whether a pass with this many new jobs cannot fill an array."""
    s, m = cluster.s, plan.profile.m
    waiting = m[COUNT] + arrived
    return (
        waiting <= plan.queue.shape[1]
        and m[DUE] + s[S.RUNNING] + waiting <= plan.due.shape[1]
        and 2 * waiting <= m[SPARE]
        and s[S.RUNNING] + s[S.WAITING] < cluster.ends.shape[1]
    )


def planned_pass(cluster: Cluster, plan: Plan, rules: Rules, ended: Int64s, arrived: Int64s) -> int:
    """Do one pass; return the next planned start, FOREVER if there is none."""
    pass_time(plan.profile, cluster.s[S.NOW])
    take_back(cluster, plan, ended)
    late = cluster.s[S.SLEEPS] and pending(cluster.s)
    if late:
        expect_later(cluster, plan)
    if expect_longer(cluster, plan) or late:
        make_room(plan)
    join(cluster.jobs, plan, rules, arrived)
    compress(cluster, plan, rules.every)
    if not rules.every:
        if rules.adaptive:
            count_slowdowns(cluster.jobs, rules, ended)
        select_others(cluster, plan, rules.thresholds)
    return start_due(cluster, plan)


def advance_planned(
    cluster: Cluster, remaining: Int64s, halt: int, plan: Plan, rules: Rules
) -> int:
    """Run like ``loop.advance``; return ``PASS`` only if an array must grow for it."""
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    while True:
        stop = run(cluster, remaining, halt)
        if stop != S.PASS:
            return stop
        if not has_room(cluster, plan, s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]):
            return S.PASS
        s[S.WAKE] = planned_pass(
            cluster,
            plan,
            rules,
            ended[0, : s[S.EXPECTED_END]],
            arrived[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]],
        )
        s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0
