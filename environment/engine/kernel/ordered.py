"""The pass of policies without a plan of reservations: an order, limits, backfilling.

The same rules without shortcuts are in ``environment/schedulers/ordered.py``. If the order does not
change with time, the results of one pass hold for the next one as long as only arrivals happened,
as in the pass of EASY in ``scheduling``: only the new jobs are considered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hpcrowd.environment.engine.kernel.accounts import (
    Accounts,
    allowed,
    change_usage,
    hold,
    usage,
)
from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.believed import (
    WIDTH,
    Beliefs,
    believe,
    correct_ends,
    forget_end,
    reserve,
)
from hpcrowd.environment.engine.kernel.cluster import GAP, LOOKS, Cluster, Jobs
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.engine.kernel.sleeping import next_pending, pending
from hpcrowd.environment.jobs import Column, Float64s, Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER, Stop

# Orders of the queue; those from SLOWDOWN on change as time goes on.
(
    BY_SUBMIT,
    BY_ESTIMATE,
    BY_REQUESTED,
    BY_PROCESSORS,
    BY_USER,
    BY_GROUP,
    BY_QUEUE,
    BY_AREA,
    BY_PRIORITY,  # of the queue that the job is in
    BY_SLOWDOWN,
    BY_USAGE,
    BY_CRITICALITY,
    BY_SCORE,  # which is computed before the pass
) = range(13)

#: Columns of the first of these orders, which go by one.
KEY_COLUMNS = (
    *(Column.ENQUEUED, Column.ESTIMATE, Column.REQUESTED_TIME, Column.PROCESSORS),
    *(Column.USER, Column.GROUP, Column.QUEUE),
)

# Orders of backfilling.
NONE, AS_QUEUED, AS_SUBMITTED, SHORTEST, LARGEST, BEST_FIT = range(6)


#: Rows of the queue of an order.
QUEUE_ROWS = 4


@dataclass(eq=False, slots=True)
class Order:
    """The policy's queue and its order."""

    queue: Int64Rows  #: by submission and job number, shape (QUEUE_ROWS, waiting)
    keys: Float64s  #: the place of each in the order of the queue, small ones first, (waiting,)
    chosen: Int64s  #: room for places in the queue, shape (waiting,)
    priorities: Float64s  #: of jobs by row, where the order goes by them, shape (jobs,)
    first: int = 0  #: place in the queue
    last: int = 0
    gaps: int = 0  #: places in the queue left by jobs that started
    head: int = -1  #: the job that blocks the others, -1 not known
    holds: bool = False  #: the results of the last pass still hold
    looked: int = 0  #: the queue before here was refused by the last pass
    passes: int = 0
    by: int = BY_SUBMIT
    column: int = -1  #: of the table, by which the order goes; -1 for none
    backfill: int = NONE
    corrects: bool = False  #: jobs that outrun their estimates are expected to run on for a while
    limited: bool = False
    charged: bool = False  #: usage is charged
    reservations: int = 0  #: jobs that hold them in a plan that each pass makes; 0 for none
    depth: int = 0  #: jobs behind the head that such a pass looks at
    sign: float = 1.0  #: -1 for a descending order
    half_life: float = 1.0  #: s, of usage
    alpha: float = 0.0  #: of criticality, as ``limit`` and ``decline``
    limit: float = 0.0
    decline: float = 0.0

    #: Row, processors (GAP where it has left), estimate (s) and submission (s) of a job.
    job, need, belief, submitted = rows("queue", QUEUE_ROWS)


def fixed_key(jobs: Jobs, order: Order, job: int) -> float:
    """Return the key of a job in an order that does not change; 0 in others."""
    by, column = order.by, order.column
    if column >= 0:
        key = float(jobs.table[column, job])
    elif by == BY_AREA:
        key = float(jobs.processors[job] * jobs.estimate[job])
    elif by == BY_PRIORITY:
        key = order.priorities[job]
    else:
        return 0.0
    return order.sign * key


def renew_keys(order: Order, accounts: Accounts, now: int) -> None:
    """Compute the keys of an order that changes with time."""
    by, sign = order.by, order.sign
    order.passes += 1
    if by == BY_SCORE:
        return
    for i in range(order.first, order.last):
        if order.need[i] == GAP:
            continue
        wait = now - order.submitted[i]
        belief = order.belief[i]
        if by == BY_SLOWDOWN:
            order.keys[i] = sign * ((wait + belief) / max(belief, 1))
        elif by == BY_CRITICALITY:
            slope = order.decline * ((wait + belief) / 60) + 1.0
            order.keys[i] = -(
                wait / 60 + order.alpha * (order.limit * order.decline / (slope * slope))
            )
        else:
            account = accounts.charged[order.job[i]]
            if accounts.seen[account] != order.passes:
                accounts.seen[account] = order.passes
                level = usage(accounts, account, now, order.half_life)
                accounts.key[account] = level / accounts.share[account]
            order.keys[i] = accounts.key[account]


def join_queue(jobs: Jobs, order: Order, job: int) -> None:
    """Put an arriving job into the queue."""
    at = order.last
    order.last = at + 1
    submit = jobs.enqueued[job]
    moved = False
    while at > order.first and (
        order.submitted[at - 1] > submit
        or (order.submitted[at - 1] == submit and order.job[at - 1] > job)
    ):
        for row in range(QUEUE_ROWS):
            order.queue[row, at] = order.queue[row, at - 1]
        order.keys[at] = order.keys[at - 1]
        at -= 1
        moved = True
    order.job[at] = job
    order.need[at] = jobs.processors[job]
    order.belief[at] = jobs.estimate[job]
    order.submitted[at] = submit
    order.keys[at] = fixed_key(jobs, order, job)
    if moved or (order.head >= 0 and order.keys[at] < order.keys[order.head]):
        order.head = -1
        order.holds = False


def leave(jobs: Jobs, order: Order, beliefs: Beliefs, accounts: Accounts, job: int) -> None:
    """Release the processors and limits of a job that ended."""
    forget_end(beliefs, jobs, job)
    order.holds = False
    if order.limited:
        hold(accounts, jobs, job, -1)
        order.head = -1
    if order.charged:
        change_usage(accounts, jobs, job, -1, jobs.end[job], order.half_life)


def _least(order: Order) -> int:
    """Return the shortest time for which jobs are expected to run when they start, s."""
    return 1 if order.corrects or order.reservations else 0


def expect_later(cluster: Cluster, order: Order, beliefs: Beliefs) -> None:
    """Take note of the jobs of the last pass that waited for nodes to be switched on."""
    jobs = cluster.jobs
    while pending(cluster.ledger):
        job = next_pending(cluster.ledger)
        forget_end(beliefs, jobs, job)
        believe(beliefs, jobs, job, jobs.start[job] + max(jobs.estimate[job], _least(order)))
        order.holds = False


def launch(cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts, at: int) -> None:
    """Start the job at a place in the queue."""
    jobs, now = cluster.jobs, cluster.state.now
    job = order.job[at]
    start_job(cluster, job)
    believe(beliefs, jobs, job, now + max(order.belief[at], _least(order)))
    if order.limited:
        hold(accounts, jobs, job, 1)
    if order.charged:
        change_usage(accounts, jobs, job, 1, now, order.half_life)
    order.need[at] = GAP
    order.keys[at] = inf
    order.gaps += 1
    while order.first < order.last and order.need[order.first] == GAP:
        order.first += 1
        order.gaps -= 1


def first_in_order(order: Order, accounts: Accounts) -> int:
    """Return the place of the first job in the order that is not at a limit, -1 for none."""
    found, least = -1, inf
    limited = order.limited
    for i in range(order.first, order.last):
        if order.keys[i] < least and not (
            limited and not allowed(accounts, order.job[i], order.need[i])
        ):
            found, least = i, order.keys[i]
    return found


def fits(
    order: Order, accounts: Accounts, i: int, free: int, spare: int, hole: int, longest: int
) -> bool:
    """Return whether a job may overtake the head."""
    need = order.need[i]
    return (
        need <= free
        and order.belief[i] <= longest
        and (order.belief[i] <= hole or need <= spare)
        and not (order.limited and not allowed(accounts, order.job[i], need))
    )


def score(order: Order, i: int, hole: int) -> float:
    """Return the place of a job in the order of backfilling, small ones first."""
    backfill = order.backfill
    if backfill == SHORTEST:
        return float(order.belief[i])
    if backfill == LARGEST:
        return -float(order.need[i])
    if backfill == BEST_FIT:
        return -float(order.need[i] * min(order.belief[i], hole))
    return order.keys[i]


def overtake(
    cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts, first: int
) -> None:
    """Start jobs from ``first`` on that do not delay the head, in the order of backfilling."""
    state = cluster.state
    chosen = order.chosen
    hole, spare = beliefs.shadow - state.now, beliefs.spare
    longest = state.closes - state.now
    backfill = order.backfill
    if backfill == AS_SUBMITTED or (
        backfill == AS_QUEUED and order.by == BY_SUBMIT and order.sign > 0
    ):
        i = first
        while i < order.last and state.free > 0:
            if fits(order, accounts, i, state.free, spare, hole, longest):
                if order.belief[i] > hole:
                    spare -= order.need[i]
                launch(cluster, order, beliefs, accounts, i)
            i += 1
    elif state.free > 0:
        count = 0
        free = state.free
        for i in range(first, order.last):
            if fits(order, accounts, i, free, spare, hole, longest):
                chosen[count] = i
                count += 1
        while count > 0 and state.free > 0:
            kept, best, least = 0, -1, inf
            for k in range(count):
                i = chosen[k]
                if fits(order, accounts, i, state.free, spare, hole, longest):
                    chosen[kept] = i
                    kept += 1
                    place = score(order, i, hole)
                    if best < 0 or place < least:
                        best, least = i, place
            count = kept
            if best < 0:
                break
            if order.belief[best] > hole:
                spare -= order.need[best]
            launch(cluster, order, beliefs, accounts, best)
    beliefs.spare = spare
    order.looked = order.last


def start_in_order(cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts) -> None:
    """Start jobs in the order while they fit; set the one that does not, -1 for none."""
    state = cluster.state
    head = order.head
    while True:
        if head < 0:
            head = first_in_order(order, accounts)
            state.allowance -= (order.last - order.first) // LOOKS
        if (
            head < 0
            or order.need[head] > state.free
            or order.belief[head] > state.closes - state.now
        ):
            order.head = head
            return
        launch(cluster, order, beliefs, accounts, head)
        head = -1


def close_queue(order: Order) -> None:
    """Close the gaps in the queue."""
    to, head, looked = 0, -1, order.looked
    for i in range(order.first, order.last):
        if i == order.looked:
            looked = to
        if order.need[i] != GAP:
            if i == order.head:
                head = to
            for row in range(QUEUE_ROWS):
                order.queue[row, to] = order.queue[row, i]
            order.keys[to] = order.keys[i]
            to += 1
    if order.looked >= order.last:
        looked = to
    order.first, order.last, order.gaps = 0, to, 0
    order.head, order.looked = head, min(looked, to)


def take_note(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    ended: Int64s,
    arrived: Int64s,
) -> bool:
    """Take note of what ended and arrived; return whether a job waits and a processor is free."""
    jobs, state = cluster.jobs, cluster.state
    if state.sleeps:
        expect_later(cluster, order, beliefs)
    for job in ended:
        leave(jobs, order, beliefs, accounts, job)
    for job in arrived:
        join_queue(jobs, order, job)
    if state.waiting == 0:
        order.first = order.last = order.gaps = order.looked = 0
        order.holds = False
        order.head = -1
    return state.waiting > 0 and state.free > 0


def ordered_pass(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    ended: Int64s,
    arrived: Int64s,
) -> None:
    """Do one scheduling pass."""
    jobs, state = cluster.jobs, cluster.state
    now = state.now
    if not take_note(cluster, order, beliefs, accounts, ended, arrived):
        return
    if order.corrects and correct_ends(beliefs, jobs, now):
        order.holds = False
    changing = order.by >= BY_SLOWDOWN
    if changing:
        renew_keys(order, accounts, now)
        order.head = -1
    if not order.holds or changing or now > beliefs.shadow:
        start_in_order(cluster, order, beliefs, accounts)
        order.holds = False
        first = order.first
    else:
        first = order.looked
    head = order.head
    if head >= 0 and order.backfill != NONE:
        if not order.holds:
            reserve(beliefs, jobs, now, state.free, order.need[head])
            if beliefs.shadow > state.closes - order.belief[head]:
                beliefs.shadow, beliefs.spare = state.reopens, 0  # others end before maintenance
        if order.limited:
            hold(accounts, jobs, order.job[head], 1)
        state.allowance -= (order.last - first) // LOOKS
        overtake(cluster, order, beliefs, accounts, first)
        if order.limited:
            hold(accounts, jobs, order.job[head], -1)
        order.holds = True
    if order.gaps > 64 and 2 * order.gaps > order.last - order.first:
        close_queue(order)


def has_room(cluster: Cluster, order: Order, beliefs: Beliefs, arrived: int) -> bool:
    """Return whether a pass with this many new jobs cannot fill an array."""
    state, room = cluster.state, order.queue.shape[1]
    if order.last + arrived > room and (order.gaps or order.first):
        close_queue(order)
    jobs = state.running + state.waiting
    return (
        order.last + arrived <= room
        and jobs < cluster.ends.table.shape[1]
        and 2 * beliefs.count + jobs // (WIDTH // 2) + 2 <= beliefs.blocks.shape[1]
    )


def advance_ordered(
    cluster: Cluster,
    remaining: Int64s,
    halt: int,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
) -> int:
    """Run like ``loop.advance``; return ``PASS`` only if an array must grow for it."""
    state = cluster.state
    while True:
        stop = run(cluster, remaining, halt)
        if stop != Stop.PASS:
            return stop
        if not has_room(cluster, order, beliefs, state.queue_tail - state.queue_head):
            return Stop.PASS
        ordered_pass(
            cluster,
            order,
            beliefs,
            accounts,
            cluster.expected.ended[: state.expected_end],
            cluster.queue.job[state.queue_head : state.queue_tail],
        )
        state.expected_end = state.queue_head = state.queue_tail = 0
        state.wake = FOREVER
