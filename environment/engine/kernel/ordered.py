"""The pass of policies without a plan of reservations: an order, limits, backfilling.

The same rules without short cuts stand in ``environment/schedulers/ordered.py``. Where the order
does not change as time goes on, what one pass learned holds for the next while only arrivals
happened, as in the pass of EASY in ``scheduling``: only the newcomers are looked at.

Rows of ``queue``: job, processors, estimate, submission, by submission and job number. ``keys``
holds the place of each in the order of the queue, small ones first. ``q`` holds the scalars below,
``c`` the numbers of the policy.
"""

from __future__ import annotations

from math import inf

from hpcrowd.environment.engine.kernel.accounts import (
    KEY,
    SEEN,
    SHARE,
    USAGE,
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
    believe,
    correct_ends,
    forget_end,
    reserve,
)
from hpcrowd.environment.engine.kernel.loop import advance
from hpcrowd.environment.engine.kernel.places import (
    ALLOWANCE,
    CLOSES,
    END,
    ENQUEUED,
    ESTIMATE,
    EXPECTED_END,
    FREE,
    GAP,
    GROUP,
    LOOKS,
    NOW,
    PASS,
    PROCESSORS,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REOPENS,
    REQUESTED_TIME,
    RUNNING,
    USER,
    WAITING,
    WAKE,
    compiled,
    inlined,
)
from hpcrowd.environment.engine.kernel.scheduling import start_job
from hpcrowd.environment.stops import FOREVER

# Rows of ``queue``.
ROW, NEED, BELIEF, SUBMITTED, Q_ROWS = range(5)

# Places in ``q``.
(
    FIRST,  # of the queue
    LAST,
    GAPS,  # places in the queue left by jobs that started
    HEAD,  # the job that blocks the others, -1 not known
    HOLDS,  # what the last pass learned holds
    LOOKED,  # the queue before here was refused by the last pass
    PASSES,
    ORDER,
    BACKFILL,
    CORRECTS,  # who outruns what was believed is believed to go on for a while
    LIMITED,
    CHARGED,  # usage is charged
    Q_COUNT,
) = range(13)

# Places in ``c``.
SIGN, HALF_LIFE, ALPHA, LIMIT, DECLINE, C_COUNT = range(6)

# Orders of the queue; those from SLOWDOWN on change as time goes on.
(
    BY_SUBMIT,
    BY_ESTIMATE,
    BY_REQUESTED,
    BY_PROCESSORS,
    BY_AREA,
    BY_USER,
    BY_GROUP,
    BY_QUEUE,
    BY_PRIORITY,  # of the queue that the job is in
    BY_SLOWDOWN,
    BY_USAGE,
    BY_CRITICALITY,
) = range(12)

# Orders of backfilling.
NONE, AS_QUEUED, AS_SUBMITTED, SHORTEST, LARGEST, BEST_FIT = range(6)


@inlined
def fixed_key(jobs, q, c, priorities, job):
    """Return the key of a job in an order that does not change; 0 in others."""
    order = q[ORDER]
    if order == BY_SUBMIT:
        key = float(jobs[ENQUEUED, job])
    elif order == BY_ESTIMATE:
        key = float(jobs[ESTIMATE, job])
    elif order == BY_REQUESTED:
        key = float(jobs[REQUESTED_TIME, job])
    elif order == BY_PROCESSORS:
        key = float(jobs[PROCESSORS, job])
    elif order == BY_AREA:
        key = float(jobs[PROCESSORS, job] * jobs[ESTIMATE, job])
    elif order == BY_USER:
        key = float(jobs[USER, job])
    elif order == BY_GROUP:
        key = float(jobs[GROUP, job])
    elif order == BY_QUEUE:
        key = float(jobs[QUEUE, job])
    elif order == BY_PRIORITY:
        key = priorities[job]
    else:
        return 0.0
    return c[SIGN] * key


@compiled
def renew_keys(q, c, queue, keys, accounts, amounts, of, now):
    """Compute the keys of an order that changes as time goes on."""
    order, sign = q[ORDER], c[SIGN]
    q[PASSES] += 1
    for i in range(q[FIRST], q[LAST]):
        if queue[NEED, i] == GAP:
            continue
        wait = now - queue[SUBMITTED, i]
        belief = queue[BELIEF, i]
        if order == BY_SLOWDOWN:
            keys[i] = sign * ((wait + belief) / max(belief, 1))
        elif order == BY_CRITICALITY:
            slope = c[DECLINE] * ((wait + belief) / 60) + 1.0
            keys[i] = -(wait / 60 + c[ALPHA] * (c[LIMIT] * c[DECLINE] / (slope * slope)))
        else:
            account = of[USAGE, queue[ROW, i]]
            if accounts[SEEN, account] != q[PASSES]:
                accounts[SEEN, account] = q[PASSES]
                level = usage(accounts, amounts, account, now, c[HALF_LIFE])
                amounts[KEY, account] = level / amounts[SHARE, account]
            keys[i] = amounts[KEY, account]


@compiled
def join_queue(jobs, q, c, queue, keys, priorities, job):
    """Put an arriving job into the queue."""
    at = q[LAST]
    q[LAST] = at + 1
    submit = jobs[ENQUEUED, job]
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
    queue[NEED, at] = jobs[PROCESSORS, job]
    queue[BELIEF, at] = jobs[ESTIMATE, job]
    queue[SUBMITTED, at] = submit
    keys[at] = fixed_key(jobs, q, c, priorities, job)
    if moved or (q[HEAD] >= 0 and keys[at] < keys[q[HEAD]]):
        q[HEAD] = -1
        q[HOLDS] = 0


@compiled
def leave(jobs, s, q, c, entries, blocks, b, believed, accounts, amounts, of, job):
    """Let a job that ended give back what it held."""
    forget_end(jobs, b, entries, blocks, believed, job)
    q[HOLDS] = 0
    if q[LIMITED]:
        hold(jobs, accounts, of, job, -1)
        q[HEAD] = -1
    if q[CHARGED]:
        change_usage(jobs, accounts, amounts, of, job, -1, jobs[END, job], c[HALF_LIFE])


@compiled
def launch(
    jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed, accounts, amounts, of, at
):
    """Start the job at a place in the queue."""
    job = queue[ROW, at]
    start_job(jobs, s, ends, job)
    believe(jobs, b, entries, blocks, believed, job, s[NOW] + queue[BELIEF, at])
    if q[LIMITED]:
        hold(jobs, accounts, of, job, 1)
    if q[CHARGED]:
        change_usage(jobs, accounts, amounts, of, job, 1, s[NOW], c[HALF_LIFE])
    queue[NEED, at] = GAP
    keys[at] = inf
    q[GAPS] += 1
    while q[FIRST] < q[LAST] and queue[NEED, q[FIRST]] == GAP:
        q[FIRST] += 1
        q[GAPS] -= 1


@compiled
def first_in_order(q, queue, keys, accounts, of):
    """Return the place of the first job in the order that is not at a limit, -1 for none."""
    found, least = -1, inf
    limited = q[LIMITED]
    for i in range(q[FIRST], q[LAST]):
        if keys[i] < least and not (
            limited and not allowed(accounts, of, queue[ROW, i], queue[NEED, i])
        ):
            found, least = i, keys[i]
    return found


@inlined
def fits(q, queue, accounts, of, i, free, spare, hole, longest):
    """Return whether a job may overtake the head."""
    need = queue[NEED, i]
    return (
        need <= free
        and queue[BELIEF, i] <= longest
        and (queue[BELIEF, i] <= hole or need <= spare)
        and not (q[LIMITED] and not allowed(accounts, of, queue[ROW, i], need))
    )


@inlined
def score(q, queue, keys, i, hole):
    """Return the place of a job in the order of backfilling, small ones first."""
    backfill = q[BACKFILL]
    if backfill == SHORTEST:
        return float(queue[BELIEF, i])
    if backfill == LARGEST:
        return -float(queue[NEED, i])
    if backfill == BEST_FIT:
        return -float(queue[NEED, i] * min(queue[BELIEF, i], hole))
    return keys[i]


@compiled
def overtake(
    jobs, s, ends, q, c, queue, keys, chosen, entries, blocks, b, believed, accounts, amounts, of,
    first,
):  # fmt: skip
    """Start jobs from ``first`` on that do not delay the head, in the order of backfilling."""
    hole, spare = b[SHADOW_TIME] - s[NOW], b[SPARE_THEN]
    longest = s[CLOSES] - s[NOW]
    backfill = q[BACKFILL]
    if backfill == AS_SUBMITTED or (
        backfill == AS_QUEUED and q[ORDER] == BY_SUBMIT and c[SIGN] > 0
    ):
        i = first
        while i < q[LAST] and s[FREE] > 0:
            if fits(q, queue, accounts, of, i, s[FREE], spare, hole, longest):
                if queue[BELIEF, i] > hole:
                    spare -= queue[NEED, i]
                launch(jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed,
                       accounts, amounts, of, i)  # fmt: skip
            i += 1
    elif s[FREE] > 0:
        count = 0
        free = s[FREE]
        for i in range(first, q[LAST]):
            if fits(q, queue, accounts, of, i, free, spare, hole, longest):
                chosen[count] = i
                count += 1
        while count > 0 and s[FREE] > 0:
            kept, best, least = 0, -1, inf
            for k in range(count):
                i = chosen[k]
                if fits(q, queue, accounts, of, i, s[FREE], spare, hole, longest):
                    chosen[kept] = i
                    kept += 1
                    place = score(q, queue, keys, i, hole)
                    if best < 0 or place < least:
                        best, least = i, place
            count = kept
            if best < 0:
                break
            if queue[BELIEF, best] > hole:
                spare -= queue[NEED, best]
            launch(jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed,
                   accounts, amounts, of, best)  # fmt: skip
    b[SPARE_THEN] = spare
    q[LOOKED] = q[LAST]


@compiled
def start_in_order(
    jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed, accounts, amounts, of
):
    """Start jobs in the order while they fit; set the one that does not, -1 for none."""
    head = q[HEAD]
    while True:
        if head < 0:
            head = first_in_order(q, queue, keys, accounts, of)
            s[ALLOWANCE] -= (q[LAST] - q[FIRST]) // LOOKS
        if head < 0 or queue[NEED, head] > s[FREE] or queue[BELIEF, head] > s[CLOSES] - s[NOW]:
            q[HEAD] = head
            return
        launch(jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed,
               accounts, amounts, of, head)  # fmt: skip
        head = -1


@compiled
def close_queue(q, queue, keys):
    """Move the waiting jobs together."""
    to, head, looked = 0, -1, q[LOOKED]
    for i in range(q[FIRST], q[LAST]):
        if i == q[LOOKED]:
            looked = to
        if queue[NEED, i] != GAP:
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


@compiled
def ordered_pass(
    jobs, s, ends, q, c, queue, keys, chosen, entries, blocks, b, believed, accounts, amounts, of,
    priorities, ended, arrived, ended_count, arrived_first, arrived_last,
):  # fmt: skip
    """Do one scheduling pass."""
    now = s[NOW]
    for i in range(ended_count):
        leave(jobs, s, q, c, entries, blocks, b, believed, accounts, amounts, of, ended[0, i])
    for i in range(arrived_first, arrived_last):
        join_queue(jobs, q, c, queue, keys, priorities, arrived[0, i])
    if s[WAITING] == 0:
        q[FIRST] = q[LAST] = q[GAPS] = q[HOLDS] = q[LOOKED] = 0
        q[HEAD] = -1
        return
    if s[FREE] < 1:
        return
    if q[CORRECTS] and correct_ends(jobs, b, entries, blocks, believed, now):
        q[HOLDS] = 0
    changing = q[ORDER] >= BY_SLOWDOWN
    if changing:
        renew_keys(q, c, queue, keys, accounts, amounts, of, now)
        q[HEAD] = -1
    if q[HOLDS] == 0 or changing or now > b[SHADOW_TIME]:
        start_in_order(jobs, s, ends, q, c, queue, keys, entries, blocks, b, believed,
                       accounts, amounts, of)  # fmt: skip
        q[HOLDS] = 0
        first = q[FIRST]
    else:
        first = q[LOOKED]
    head = q[HEAD]
    if head >= 0 and q[BACKFILL] != NONE:
        if q[HOLDS] == 0:
            reserve(jobs, b, entries, blocks, now, s[FREE], queue[NEED, head])
            if b[SHADOW_TIME] > s[CLOSES] - queue[BELIEF, head]:
                b[SHADOW_TIME], b[SPARE_THEN] = s[REOPENS], 0  # others end before maintenance
        if q[LIMITED]:
            hold(jobs, accounts, of, queue[ROW, head], 1)
        s[ALLOWANCE] -= (q[LAST] - first) // LOOKS
        overtake(jobs, s, ends, q, c, queue, keys, chosen, entries, blocks, b, believed,
                 accounts, amounts, of, first)  # fmt: skip
        if q[LIMITED]:
            hold(jobs, accounts, of, queue[ROW, head], -1)
        q[HOLDS] = 1
    if q[GAPS] > 64 and 2 * q[GAPS] > q[LAST] - q[FIRST]:
        close_queue(q, queue, keys)


@compiled
def has_room(s, ends, q, queue, keys, blocks, b, arrived):
    """Return whether a pass with so many newcomers cannot fill an array."""
    if q[LAST] + arrived > queue.shape[1] and (q[GAPS] or q[FIRST]):
        close_queue(q, queue, keys)
    jobs = s[RUNNING] + s[WAITING]
    return (
        q[LAST] + arrived <= queue.shape[1]
        and jobs < ends.shape[1]
        and 2 * b[BLOCKS] + jobs // (WIDTH // 2) + 2 <= blocks.shape[1]
    )


@compiled
def advance_ordered(
    jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished, links, edges,
    unit_rows, halt,
    q, c, queue, keys, chosen, entries, blocks, b, believed, accounts, amounts, of, priorities,
):  # fmt: skip
    """Run as ``loop.advance`` does; return ``PASS`` only when an array has to grow for it."""
    while True:
        stop = advance(jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished,
                       links, edges, unit_rows, halt)  # fmt: skip
        if stop != PASS:
            return stop
        newcomers = s[QUEUE_TAIL] - s[QUEUE_HEAD]
        if not has_room(s, ends, q, queue, keys, blocks, b, newcomers):
            return PASS
        ordered_pass(
            jobs, s, ends, q, c, queue, keys, chosen, entries, blocks, b, believed, accounts,
            amounts, of, priorities, ended, arrived, s[EXPECTED_END], s[QUEUE_HEAD], s[QUEUE_TAIL],
        )  # fmt: skip
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0
        s[WAKE] = FOREVER
