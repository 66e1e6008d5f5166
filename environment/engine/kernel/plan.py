"""A plan of reservations kept from pass to pass: conservative and selective backfilling.

A readable version of the same policies is in ``environment/schedulers/policies``,
``conservative.py`` and ``selective.py``. There every pass examines every waiting job against the
whole plan. Here a job with a reservation is only examined if processors became free before its
start, and then only whether it can slide, or fits into what became free (see ``gains.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.cluster import NEVER, Cluster, Jobs
from hpcrowd.environment.engine.kernel.gains import (
    JOBS_A_SPAN,
    SPANS,
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
    may_jump,
    note_span,
    spread,
)
from hpcrowd.environment.engine.kernel.heap import Heap, heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.profile import (
    LAST_NODE,
    NO_NODE,
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
from hpcrowd.environment.stops import FOREVER, Stop

#: Rows of the queue, and of running jobs.
QUEUE_ROWS, RUNNING_ROWS = 11, 2

#: Nodes that a reservation passes one by one; farther ways are over blocks.
NEAR = 32

#: Part of the queue that may pass in walks before the shortest jobs are looked up again.
RENEWED = 8


@dataclass(eq=False, slots=True)
class Plan:
    """The plan, and its waiting and running jobs."""

    profile: Profile  #: free processors
    gains: Gains  #: what became free
    queue: Int64Rows  #: by submission and job number, shape (QUEUE_ROWS, waiting)
    due: (
        Heap  #: believed ends (s) of running jobs; entries that ``until`` does not confirm are void
    )
    believed: Int64Rows  #: by row of the job, shape (RUNNING_ROWS, jobs)
    count: int = 0  #: jobs in the queue
    dues: int = 0  #: entries of ``due``
    unplaced: bool = False  #: a job is to find its first place
    moves: int = 0  #: changes of reservations

    #: Row of the job, processors, length in the plan (s), planned start or NEVER, whether the job
    #: is to have a reservation, submission, category, nodes where the reservation begins and ends,
    #: class of its processors, and the span of its start or a later one if spans are ``fresh``.
    job, need, length, planned, reserved, submitted, category, begin, end, kind, span = rows(
        "queue", QUEUE_ROWS
    )
    #: When running jobs are believed to end (s), and the node of that.
    until, node = rows("believed", RUNNING_ROWS)


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
    jobs, now = cluster.jobs, cluster.state.now
    end = believed_end(jobs.start[job], jobs.estimate[job], jobs.requested_time[job], now)
    node = LAST_NODE
    if end < FOREVER:
        node = end_node(plan.profile, end)
    add(plan.profile, plan.profile.head, node, -jobs.processors[job])
    _believe(plan, job, end, node)


def _believe(plan: Plan, job: int, end: int, node: int) -> None:
    """Note when a running job is believed to end."""
    plan.until[job], plan.node[job] = end, node
    heap_push(plan.due, plan.dues, end, job)
    plan.dues += 1


def take_over_running(cluster: Cluster, plan: Plan, running: Int64s) -> None:
    """Put jobs that already run into the plan."""
    for k in range(len(running)):
        _expect(cluster, plan, running[k])


def take_back(cluster: Cluster, plan: Plan, ended: Int64s) -> None:
    """Free the processors that ended jobs were expected to hold."""
    jobs, now = cluster.jobs, cluster.state.now
    for k in range(len(ended)):
        job = ended[k]
        until, node = plan.until[job], plan.node[job]
        if until > now:
            add(plan.profile, plan.profile.head, node, jobs.processors[job])
            _gain(plan, plan.profile.head, node, jobs.processors[job], 0)
        if until != NEVER and node != LAST_NODE:
            remove(plan.profile, node)
        plan.until[job] = NEVER


def expect_longer(cluster: Cluster, plan: Plan) -> bool:
    """Extend the expected ends of jobs that outran them; return whether there are any."""
    now = cluster.state.now
    any_late = False
    while plan.dues and plan.due.time[0] <= now:
        time = plan.due.time[0]
        job = heap_pop(plan.due, plan.dues)
        plan.dues -= 1
        if plan.until[job] == time:
            remove(plan.profile, plan.node[job])
            _expect(cluster, plan, job)
            any_late = True
    return any_late


def expect_later(cluster: Cluster, plan: Plan) -> None:
    """Take note of the jobs of the last pass that waited for nodes to be switched on."""
    jobs, now = cluster.jobs, cluster.state.now
    while pending(cluster.ledger):
        job = next_pending(cluster.ledger)
        until, node = plan.until[job], plan.node[job]
        if until == NEVER:  # it has ended
            continue
        need = jobs.processors[job]
        if until > now:
            add(plan.profile, plan.profile.head, node, need)
        if node != LAST_NODE:
            remove(plan.profile, node)
        start, length = jobs.start[job], jobs.estimate[job]
        end = start + max(length, 1)
        if end <= now:
            end = believed_end(start, length, jobs.requested_time[job], now)
        node = LAST_NODE
        if end < FOREVER:
            node = end_node(plan.profile, end)
        add(plan.profile, plan.profile.head, node, -need)
        _believe(plan, job, end, node)


def make_room(plan: Plan) -> None:
    """Cancel reservations where processors are too few, the latest in the queue first."""
    profile = plan.profile
    node = profile.head
    while node != LAST_NODE:
        time = since(profile, node)
        while level(profile, node) < 0 and profile.time[profile.next[node]] > time:
            k = plan.count - 1
            while k >= 0:
                start = plan.planned[k]
                if start != NEVER and start <= time < start + plan.length[k]:
                    break
                k -= 1
            if k < 0:  # only running jobs and maintenance
                break
            _cancel(plan, k)
            plan.unplaced = True
            node = node_at(profile, time)
        node = profile.next[node]


def _cancel(plan: Plan, i: int) -> None:
    """Cancel the reservation of a job of the queue."""
    profile = plan.profile
    first = plan.begin[i]
    if profile.time[first] <= profile.now:
        first = profile.head
    add(profile, first, plan.end[i], plan.need[i])
    _gain(plan, first, plan.end[i], plan.need[i], 0)
    remove(profile, plan.begin[i])
    remove(profile, plan.end[i])
    plan.planned[i], plan.begin[i], plan.end[i] = NEVER, NO_NODE, NO_NODE


def _place(jobs: Jobs, plan: Plan, i: int, start: int) -> None:
    """Give a job of the queue its first place in the plan."""
    need, length = plan.need[i], plan.length[i]
    plan.planned[i] = start
    plan.begin[i], plan.end[i] = occupy(plan.profile, start, start + length, need)
    if plan.gains.fresh >= 0:
        plan.span[i] = know_job(plan.gains, start, plan.kind[i], length)
    plan.moves += 1
    job = plan.job[i]
    if jobs.promised[job] == NEVER:
        jobs.promised[job] = start


def _gain(plan: Plan, first: int, last: int, processors: int, late: int) -> None:
    """Note that processors became free from one node to another, and whether in this walk."""
    profile = plan.profile
    gained(plan.gains, since(profile, first), late)
    if not plan.gains.holes or plan.gains.whole:
        if plan.count:
            note_span(
                plan.gains,
                since(profile, first),
                profile.time[last],
                most_free(profile, first, last),
                late,
            )
        plan.gains.fresh = -1
        return
    if plan.gains.fresh < 0:
        _know_queue(plan)
    examine(profile, plan.gains, first, last, processors, late)


def _know_queue(plan: Plan) -> None:
    """Look up the shortest waiting jobs."""
    gains = plan.gains
    count = max(plan.count, 1)
    spans = min(max(count // JOBS_A_SPAN, 1), SPANS)
    forget_jobs(gains, plan.planned[: spans * (count // spans) : count // spans])
    for i in range(plan.count):
        if plan.planned[i] != NEVER:
            plan.span[i] = know_many(gains, plan.planned[i], plan.kind[i], plan.length[i])
    spread(gains)
    gains.fresh = count // RENEWED


def _move(plan: Plan, i: int, found: int) -> None:
    """Move a reservation to an earlier start, and note what that frees."""
    profile = plan.profile
    start, need, length = plan.planned[i], plan.need[i], plan.length[i]
    begin, end = plan.begin[i], plan.end[i]
    left = profile.previous[begin]
    unlink(profile, begin)
    near = NEAR
    while profile.time[left] > found and near:
        set_free(profile, left, profile.free[left] - need)
        left = profile.previous[left]
        near -= 1
    if profile.time[left] > found:
        right = profile.next[left]
        left = node_at(profile, found)
        add(profile, profile.next[left], right, -need)
    link(profile, begin, left, found, -need)
    right = profile.next[end]
    left = profile.previous[end]
    unlink(profile, end)
    freed = right
    near = NEAR
    while profile.time[left] >= found + length and near:
        set_free(profile, left, profile.free[left] + need)
        if profile.time[left] >= start:
            freed = left
        left = profile.previous[left]
        near -= 1
    if profile.time[left] >= found + length:
        after = profile.next[left]
        left = node_at(profile, found + length - 1)
        add(profile, profile.next[left], after, need)
        freed = profile.next[node_at(profile, start - 1)]
    link(profile, end, left, found + length, need)
    if found + length >= start:
        freed = end
    elif profile.time[freed] > start:
        freed = profile.previous[freed]
    plan.planned[i] = found
    plan.moves += 1
    if not plan.gains.whole:
        fill(profile, plan.gains, begin)
    _gain(plan, freed, right, need, 1)


def compress(cluster: Cluster, plan: Plan, every: bool) -> None:
    """Move each job with a reservation, in order, to the earliest possible place.

    A job without any, since part of the machine is down, is tried again later if ``every`` job
    gets a reservation.
    """
    jobs, gains, profile = cluster.jobs, plan.gains, plan.profile
    if gains.gain_from == FOREVER and not plan.unplaced:
        return
    now = cluster.state.now
    plan.unplaced = False
    gains.fresh -= 1
    if gains.fresh < 0 and gains.count and not gains.whole:
        _know_queue(plan)
    for i in range(plan.count):
        if plan.reserved[i] == 0:
            continue
        start = plan.planned[i]
        need = plan.need[i]
        length = plan.length[i]
        if start == NEVER:
            start = earliest(profile, need, length)
            if start == FOREVER:
                plan.reserved[i] = every
            else:
                _place(jobs, plan, i, start)
            continue
        if start == now or start <= gains.gain_from:
            continue
        found = start
        if not gains.whole:
            while gains.begins[plan.span[i]] > start:
                plan.span[i] -= 1
        if may_jump(gains, plan.kind[i], length, plan.span[i]):
            found = jump(profile, gains, need, length, start)
        node = profile.previous[plan.begin[i]]
        if level(profile, node) >= need:
            found = min(found, since(profile, run_begin(profile, node, need)))
        if found < start:
            _move(plan, i, found)
    age(profile, gains, plan.count)


def start_due(cluster: Cluster, plan: Plan) -> int:
    """Start what is planned for now; return the next planned start, FOREVER if there is none."""
    now = cluster.state.now
    to = 0
    wake = FOREVER
    for i in range(plan.count):
        start = plan.planned[i]
        if start == now:
            job = plan.job[i]
            start_job(cluster, job)
            if plan.begin[i] != NO_NODE:
                remove(plan.profile, plan.begin[i])
            _believe(plan, job, now + plan.length[i], plan.end[i])
            continue
        if start != NEVER:
            wake = min(wake, start)
        if to < i:
            for row in range(QUEUE_ROWS):
                plan.queue[row, to] = plan.queue[row, i]
        to += 1
    plan.count = to
    return wake


def _category_of(cuts: Int64s, estimate: int) -> int:
    """Return the category of jobs of an estimate."""
    category = 0
    while category < len(cuts) and estimate >= cuts[category]:
        category += 1
    return category


def join(jobs: Jobs, plan: Plan, rules: Rules, arrived: Int64s) -> None:
    """Put jobs that arrived into the queue, by submission and number."""
    for k in range(len(arrived)):
        job = arrived[k]
        at = plan.count
        plan.count += 1
        submit = jobs.enqueued[job]
        while at > 0 and (
            plan.submitted[at - 1] > submit
            or (plan.submitted[at - 1] == submit and plan.job[at - 1] > job)
        ):
            for row in range(QUEUE_ROWS):
                plan.queue[row, at] = plan.queue[row, at - 1]
            at -= 1
        plan.job[at] = job
        plan.need[at] = jobs.processors[job]
        plan.kind[at], plan.span[at] = class_of(jobs.processors[job]), 0
        plan.length[at] = max(jobs.estimate[job], 1)
        plan.planned[at] = NEVER
        plan.reserved[at] = rules.every
        plan.submitted[at] = submit
        plan.category[at] = _category_of(rules.cuts, jobs.estimate[job])
        plan.begin[at] = plan.end[at] = NO_NODE
        if rules.every:
            plan.unplaced = True


def count_slowdowns(jobs: Jobs, rules: Rules, ended: Int64s) -> None:
    """Add the slowdowns of jobs that ended, by category; thresholds are their means."""
    slowdowns, counts = rules.slowdowns, rules.counts
    for k in range(len(ended)):
        job = ended[k]
        category = _category_of(rules.cuts, jobs.estimate[job])
        run = max(jobs.end[job] - jobs.start[job], rules.bound)
        slowdowns[category] += (jobs.end[job] - jobs.enqueued[job]) / run
        counts[category] += 1
        rules.thresholds[category] = slowdowns[category] / counts[category]


def select_others(cluster: Cluster, plan: Plan, thresholds: Float64s) -> None:
    """Start jobs without a reservation that fit; give one to those who have waited long enough."""
    now, profile = cluster.state.now, plan.profile
    for i in range(plan.count):
        if plan.reserved[i]:
            continue
        need, length = plan.need[i], plan.length[i]
        if fits_now(profile, need, length):
            plan.planned[i] = now
            plan.begin[i], plan.end[i] = occupy(profile, now, now + length, need)
            continue
        waited = now - plan.submitted[i]
        if (waited + length) / length > thresholds[plan.category[i]]:
            start = earliest(profile, need, length)
            if start < FOREVER:
                plan.reserved[i] = 1
                _place(cluster.jobs, plan, i, start)


#: Nodes of a plan without jobs: those before and after all others, and some for maintenance.
OTHER_NODES = 2


def blocks_for(nodes: int) -> int:
    """Return the blocks that so many nodes may need: two neighbours fill a quarter of one."""
    return 8 * nodes // WIDTH + 4


def has_room(cluster: Cluster, plan: Plan, arrived: int) -> bool:
    """Return whether a pass with this many new jobs cannot fill an array."""
    state = cluster.state
    waiting = plan.count + arrived
    return (
        waiting <= plan.queue.shape[1]
        and plan.dues + state.running + waiting <= plan.due.table.shape[1]
        and 2 * waiting <= plan.profile.unused
        and state.running + state.waiting < cluster.ends.table.shape[1]
    )


def planned_pass(cluster: Cluster, plan: Plan, rules: Rules, ended: Int64s, arrived: Int64s) -> int:
    """Do one pass; return the next planned start, FOREVER if there is none."""
    pass_time(plan.profile, cluster.state.now)
    take_back(cluster, plan, ended)
    late = cluster.state.sleeps and pending(cluster.ledger)
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
    state = cluster.state
    while True:
        stop = run(cluster, remaining, halt)
        if stop != Stop.PASS:
            return stop
        if not has_room(cluster, plan, state.queue_tail - state.queue_head):
            return Stop.PASS
        state.wake = planned_pass(
            cluster,
            plan,
            rules,
            cluster.expected.ended[: state.expected_end],
            cluster.queue.job[state.queue_head : state.queue_tail],
        )
        state.expected_end = state.queue_head = state.queue_tail = 0
