"""The pass of policies without a plan of reservations: an order, limits, backfilling.

The same rules without shortcuts are in ``environment/schedulers/ordered.py``. If the order does not
change with time, the results of one pass hold for the next one as long as only arrivals happened,
as in the pass of EASY in ``scheduling``: only the new jobs are considered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.accounts import (
    KEY,
    SEEN,
    SHARE,
    USAGE,
    Accounts,
    allowed,
    change_usage,
    hold,
    usage,
)
from hpcrowd.environment.engine.kernel.believed import (
    BLOCKS,
    SHADOW_TIME,
    SPARE_THEN,
    WIDTH,
    Beliefs,
    believe,
    correct_ends,
    forget_end,
    reserve,
)
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.engine.kernel.sleeping import next_pending, pending
from hpcrowd.environment.jobs import Float64s, Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

# Rows of ``queue``.
ROW, NEED, BELIEF, SUBMITTED, Q_ROWS = range(5)

# Places in ``q``.
(
    FIRST,  # of the queue
    LAST,
    GAPS,  # places in the queue left by jobs that started
    HEAD,  # the job that blocks the others, -1 not known
    HOLDS,  # the results of the last pass still hold
    LOOKED,  # the queue before here was refused by the last pass
    PASSES,
    ORDER,
    COLUMN,  # of the table, by which the order goes; -1 for none
    BACKFILL,
    CORRECTS,  # jobs that outrun their estimates are expected to run on for a while
    LIMITED,
    CHARGED,  # usage is charged
    RESERVATIONS,  # jobs that hold them in a plan that each pass makes; 0 for passes without one
    DEPTH,  # jobs behind the head that such a pass looks at
    Q_COUNT,
) = range(16)

# Places in ``c``.
SIGN, HALF_LIFE, ALPHA, LIMIT, DECLINE, C_COUNT = range(6)

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
    *(S.ENQUEUED, S.ESTIMATE, S.REQUESTED_TIME, S.PROCESSORS),
    *(S.USER, S.GROUP, S.QUEUE),
)

# Orders of backfilling.
NONE, AS_QUEUED, AS_SUBMITTED, SHORTEST, LARGEST, BEST_FIT = range(6)


@dataclass(eq=False, slots=True)
class Order:
    """The policy's queue and its order."""

    q: Int64s  #: the scalars above, shape (Q_COUNT,)
    c: Float64s  #: the numbers of the policy, shape (C_COUNT,)
    #: row, processors, estimate (s) and submission (s), by submission and job number,
    #: shape (Q_ROWS, waiting)
    queue: Int64Rows
    keys: Float64s  #: the place of each in the order of the queue, small ones first, (waiting,)
    chosen: Int64s  #: room for places in the queue, shape (waiting,)
    priorities: Float64s  #: of jobs by row, where the order goes by them, shape (jobs,)


def fixed_key(jobs: Int64Rows, order: Order, job: int) -> float:
    """Return the key of a job in an order that does not change; 0 in others."""
    by, column = order.q[ORDER], order.q[COLUMN]
    if column >= 0:
        key = float(jobs[column, job])
    elif by == BY_AREA:
        key = float(jobs[S.PROCESSORS, job] * jobs[S.ESTIMATE, job])
    elif by == BY_PRIORITY:
        key = order.priorities[job]
    else:
        return 0.0
    return order.c[SIGN] * key


def renew_keys(order: Order, accounts: Accounts, now: int) -> None:
    """Compute the keys of an order that changes with time."""
    q, c, queue, keys = order.q, order.c, order.queue, order.keys
    by, sign = q[ORDER], c[SIGN]
    q[PASSES] += 1
    if by == BY_SCORE:
        return
    for i in range(q[FIRST], q[LAST]):
        if queue[NEED, i] == S.GAP:
            continue
        wait = now - queue[SUBMITTED, i]
        belief = queue[BELIEF, i]
        if by == BY_SLOWDOWN:
            keys[i] = sign * ((wait + belief) / max(belief, 1))
        elif by == BY_CRITICALITY:
            slope = c[DECLINE] * ((wait + belief) / 60) + 1.0
            keys[i] = -(wait / 60 + c[ALPHA] * (c[LIMIT] * c[DECLINE] / (slope * slope)))
        else:
            account = accounts.of[USAGE, queue[ROW, i]]
            if accounts.counts[SEEN, account] != q[PASSES]:
                accounts.counts[SEEN, account] = q[PASSES]
                level = usage(accounts, account, now, c[HALF_LIFE])
                accounts.amounts[KEY, account] = level / accounts.amounts[SHARE, account]
            keys[i] = accounts.amounts[KEY, account]


def join_queue(jobs: Int64Rows, order: Order, job: int) -> None:
    """Put an arriving job into the queue."""
    q, queue, keys = order.q, order.queue, order.keys
    at = q[LAST]
    q[LAST] = at + 1
    submit = jobs[S.ENQUEUED, job]
    moved = False
    while at > q[FIRST] and (
        queue[SUBMITTED, at - 1] > submit
        or (queue[SUBMITTED, at - 1] == submit and queue[ROW, at - 1] > job)
    ):
        for row in range(Q_ROWS):
            queue[row, at] = queue[row, at - 1]
        keys[at] = keys[at - 1]
        at -= 1
        moved = True
    queue[ROW, at] = job
    queue[NEED, at] = jobs[S.PROCESSORS, job]
    queue[BELIEF, at] = jobs[S.ESTIMATE, job]
    queue[SUBMITTED, at] = submit
    keys[at] = fixed_key(jobs, order, job)
    if moved or (q[HEAD] >= 0 and keys[at] < keys[q[HEAD]]):
        q[HEAD] = -1
        q[HOLDS] = 0


def leave(jobs: Int64Rows, order: Order, beliefs: Beliefs, accounts: Accounts, job: int) -> None:
    """Release the processors and limits of a job that ended."""
    q = order.q
    forget_end(beliefs, jobs, job)
    q[HOLDS] = 0
    if q[LIMITED]:
        hold(accounts, jobs, job, -1)
        q[HEAD] = -1
    if q[CHARGED]:
        change_usage(accounts, jobs, job, -1, jobs[S.END, job], order.c[HALF_LIFE])


def _least(q: Int64s) -> int:
    """Return the shortest time for which jobs are expected to run when they start, s."""
    return 1 if q[CORRECTS] or q[RESERVATIONS] else 0


def expect_later(cluster: Cluster, order: Order, beliefs: Beliefs) -> None:
    """Take note of the jobs of the last pass that waited for nodes to be switched on."""
    jobs, s, q = cluster.jobs, cluster.s, order.q
    while pending(s):
        job = next_pending(s)
        forget_end(beliefs, jobs, job)
        believe(beliefs, jobs, job, jobs[S.START, job] + max(jobs[S.ESTIMATE, job], _least(q)))
        q[HOLDS] = 0


def launch(cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts, at: int) -> None:
    """Start the job at a place in the queue."""
    jobs, now = cluster.jobs, cluster.s[S.NOW]
    q, queue = order.q, order.queue
    job = queue[ROW, at]
    start_job(cluster, job)
    believe(beliefs, jobs, job, now + max(queue[BELIEF, at], _least(q)))
    if q[LIMITED]:
        hold(accounts, jobs, job, 1)
    if q[CHARGED]:
        change_usage(accounts, jobs, job, 1, now, order.c[HALF_LIFE])
    queue[NEED, at] = S.GAP
    order.keys[at] = inf
    q[GAPS] += 1
    while q[FIRST] < q[LAST] and queue[NEED, q[FIRST]] == S.GAP:
        q[FIRST] += 1
        q[GAPS] -= 1


def first_in_order(order: Order, accounts: Accounts) -> int:
    """Return the place of the first job in the order that is not at a limit, -1 for none."""
    q, queue, keys = order.q, order.queue, order.keys
    found, least = -1, inf
    limited = q[LIMITED]
    for i in range(q[FIRST], q[LAST]):
        if keys[i] < least and not (
            limited and not allowed(accounts, queue[ROW, i], queue[NEED, i])
        ):
            found, least = i, keys[i]
    return found


def fits(
    order: Order, accounts: Accounts, i: int, free: int, spare: int, hole: int, longest: int
) -> bool:
    """Return whether a job may overtake the head."""
    queue = order.queue
    need = queue[NEED, i]
    return (
        need <= free
        and queue[BELIEF, i] <= longest
        and (queue[BELIEF, i] <= hole or need <= spare)
        and not (order.q[LIMITED] and not allowed(accounts, queue[ROW, i], need))
    )


def score(order: Order, i: int, hole: int) -> float:
    """Return the place of a job in the order of backfilling, small ones first."""
    backfill, queue = order.q[BACKFILL], order.queue
    if backfill == SHORTEST:
        return float(queue[BELIEF, i])
    if backfill == LARGEST:
        return -float(queue[NEED, i])
    if backfill == BEST_FIT:
        return -float(queue[NEED, i] * min(queue[BELIEF, i], hole))
    return order.keys[i]


def overtake(
    cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts, first: int
) -> None:
    """Start jobs from ``first`` on that do not delay the head, in the order of backfilling."""
    s, b = cluster.s, beliefs.b
    q, c, queue, chosen = order.q, order.c, order.queue, order.chosen
    hole, spare = b[SHADOW_TIME] - s[S.NOW], b[SPARE_THEN]
    longest = s[S.CLOSES] - s[S.NOW]
    backfill = q[BACKFILL]
    if backfill == AS_SUBMITTED or (
        backfill == AS_QUEUED and q[ORDER] == BY_SUBMIT and c[SIGN] > 0
    ):
        i = first
        while i < q[LAST] and s[S.FREE] > 0:
            if fits(order, accounts, i, s[S.FREE], spare, hole, longest):
                if queue[BELIEF, i] > hole:
                    spare -= queue[NEED, i]
                launch(cluster, order, beliefs, accounts, i)
            i += 1
    elif s[S.FREE] > 0:
        count = 0
        free = s[S.FREE]
        for i in range(first, q[LAST]):
            if fits(order, accounts, i, free, spare, hole, longest):
                chosen[count] = i
                count += 1
        while count > 0 and s[S.FREE] > 0:
            kept, best, least = 0, -1, inf
            for k in range(count):
                i = chosen[k]
                if fits(order, accounts, i, s[S.FREE], spare, hole, longest):
                    chosen[kept] = i
                    kept += 1
                    place = score(order, i, hole)
                    if best < 0 or place < least:
                        best, least = i, place
            count = kept
            if best < 0:
                break
            if queue[BELIEF, best] > hole:
                spare -= queue[NEED, best]
            launch(cluster, order, beliefs, accounts, best)
    b[SPARE_THEN] = spare
    q[LOOKED] = q[LAST]


def start_in_order(cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts) -> None:
    """Start jobs in the order while they fit; set the one that does not, -1 for none."""
    s, q, queue = cluster.s, order.q, order.queue
    head = q[HEAD]
    while True:
        if head < 0:
            head = first_in_order(order, accounts)
            s[S.ALLOWANCE] -= (q[LAST] - q[FIRST]) // S.LOOKS
        if (
            head < 0
            or queue[NEED, head] > s[S.FREE]
            or queue[BELIEF, head] > s[S.CLOSES] - s[S.NOW]
        ):
            q[HEAD] = head
            return
        launch(cluster, order, beliefs, accounts, head)
        head = -1


def close_queue(order: Order) -> None:
    """Close the gaps in the queue."""
    q, queue, keys = order.q, order.queue, order.keys
    to, head, looked = 0, -1, q[LOOKED]
    for i in range(q[FIRST], q[LAST]):
        if i == q[LOOKED]:
            looked = to
        if queue[NEED, i] != S.GAP:
            if i == q[HEAD]:
                head = to
            for row in range(Q_ROWS):
                queue[row, to] = queue[row, i]
            keys[to] = keys[i]
            to += 1
    if q[LOOKED] >= q[LAST]:
        looked = to
    q[FIRST], q[LAST], q[GAPS] = 0, to, 0
    q[HEAD], q[LOOKED] = head, min(looked, to)


def take_note(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    ended: Int64s,
    arrived: Int64s,
) -> bool:
    """Take note of what ended and arrived; return whether a job waits and a processor is free."""
    jobs, s, q = cluster.jobs, cluster.s, order.q
    if s[S.SLEEPS]:
        expect_later(cluster, order, beliefs)
    for job in ended:
        leave(jobs, order, beliefs, accounts, job)
    for job in arrived:
        join_queue(jobs, order, job)
    if s[S.WAITING] == 0:
        q[FIRST] = q[LAST] = q[GAPS] = q[HOLDS] = q[LOOKED] = 0
        q[HEAD] = -1
    return s[S.WAITING] > 0 and s[S.FREE] > 0


def ordered_pass(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    ended: Int64s,
    arrived: Int64s,
) -> None:
    """Do one scheduling pass."""
    jobs, s, q, b = cluster.jobs, cluster.s, order.q, beliefs.b
    now = s[S.NOW]
    if not take_note(cluster, order, beliefs, accounts, ended, arrived):
        return
    if q[CORRECTS] and correct_ends(beliefs, jobs, now):
        q[HOLDS] = 0
    changing = q[ORDER] >= BY_SLOWDOWN
    if changing:
        renew_keys(order, accounts, now)
        q[HEAD] = -1
    if q[HOLDS] == 0 or changing or now > b[SHADOW_TIME]:
        start_in_order(cluster, order, beliefs, accounts)
        q[HOLDS] = 0
        first = q[FIRST]
    else:
        first = q[LOOKED]
    head = q[HEAD]
    if head >= 0 and q[BACKFILL] != NONE:
        if q[HOLDS] == 0:
            reserve(beliefs, jobs, now, s[S.FREE], order.queue[NEED, head])
            if b[SHADOW_TIME] > s[S.CLOSES] - order.queue[BELIEF, head]:
                b[SHADOW_TIME], b[SPARE_THEN] = s[S.REOPENS], 0  # others end before maintenance
        if q[LIMITED]:
            hold(accounts, jobs, order.queue[ROW, head], 1)
        s[S.ALLOWANCE] -= (q[LAST] - first) // S.LOOKS
        overtake(cluster, order, beliefs, accounts, first)
        if q[LIMITED]:
            hold(accounts, jobs, order.queue[ROW, head], -1)
        q[HOLDS] = 1
    if q[GAPS] > 64 and 2 * q[GAPS] > q[LAST] - q[FIRST]:
        close_queue(order)


def has_room(cluster: Cluster, order: Order, beliefs: Beliefs, arrived: int) -> bool:
    """Return whether a pass with this many new jobs cannot fill an array."""
    s, q, room = cluster.s, order.q, order.queue.shape[1]
    if q[LAST] + arrived > room and (q[GAPS] or q[FIRST]):
        close_queue(order)
    jobs = s[S.RUNNING] + s[S.WAITING]
    return (
        q[LAST] + arrived <= room
        and jobs < cluster.ends.shape[1]
        and 2 * beliefs.b[BLOCKS] + jobs // (WIDTH // 2) + 2 <= beliefs.blocks.shape[1]
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
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    while True:
        stop = run(cluster, remaining, halt)
        if stop != S.PASS:
            return stop
        if not has_room(cluster, order, beliefs, s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]):
            return S.PASS
        ordered_pass(
            cluster,
            order,
            beliefs,
            accounts,
            ended[0, : s[S.EXPECTED_END]],
            arrived[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]],
        )
        s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0
        s[S.WAKE] = FOREVER
