"""Passes of policies whose order is a formula over the queue, and passes that make a plan.

The plain ones are in ``schedulers/priority.py`` and ``schedulers/ordered.py``. Before a pass the
formula gets the waiting jobs as columns of a view. That is left out if the order does not matter:
if one job waits, or none fits.
"""

from __future__ import annotations

from math import frexp, isnan, ldexp

import numpy as np

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.kernel.accounts import KEY, SEEN, USAGE, Accounts, usage
from hpcrowd.environment.engine.kernel.believed import Beliefs, correct_ends
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.ordered import (
    AS_SUBMITTED,
    BACKFILL,
    BELIEF,
    BY_SCORE,
    BY_SLOWDOWN,
    CHARGED,
    DEPTH,
    FIRST,
    GAPS,
    HALF_LIFE,
    HEAD,
    HOLDS,
    LAST,
    LOOKED,
    NEED,
    ORDER,
    PASSES,
    RESERVATIONS,
    ROW,
    SUBMITTED,
    Order,
    close_queue,
    expect_later,
    has_room,
    join_queue,
    launch,
    leave,
    ordered_pass,
    renew_keys,
    score,
)
from hpcrowd.environment.engine.kernel.outlook import earliest, occupy, shortage
from hpcrowd.environment.engine.kernel.places import Cluster
from hpcrowd.environment.stops import FOREVER

#: Rows of the view: the arrays of ``schedulers.priority.Queue``.
COLUMNS = 9

# What a pass needs.
NOTHING, PASS_ONLY, SCORES = range(3)

# Binary digits of a score that count, and the largest: as in ``schedulers/priority.py``.
DIGITS, LARGEST_SCORE = 40, 1e300

UNIT = 2.0**DIGITS


@compiled
def prepare(cluster_arrays, order_arrays, belief_arrays, account_arrays, ended, arrived):
    """Take note of what ended and arrived; return what the pass needs."""
    cluster, order = Cluster(*cluster_arrays), Order(*order_arrays)
    beliefs, accounts = Beliefs(*belief_arrays), Accounts(*account_arrays)
    jobs, s, q, queue = cluster.jobs, cluster.s, order.q, order.queue
    if s[S.SLEEPS]:
        expect_later(cluster, order, beliefs)
    for job in ended:
        leave(jobs, order, beliefs, accounts, job)
    for job in arrived:
        join_queue(jobs, order, job)
    if s[S.WAITING] == 0:
        q[FIRST] = q[LAST] = q[GAPS] = q[HOLDS] = q[LOOKED] = 0
        q[HEAD] = -1
        return NOTHING
    if s[S.FREE] < 1:
        return NOTHING
    for i in range(q[FIRST], q[LAST]):
        if queue[NEED, i] <= s[S.FREE]:
            if q[ORDER] == BY_SCORE and s[S.WAITING] > 1:
                return SCORES
            if q[ORDER] == BY_SCORE:
                order.keys[i] = 0.0
            return PASS_ONLY
    return NOTHING


@compiled
def fill(cluster_arrays, order_arrays, account_arrays, view):
    """Write the waiting jobs into the view, and their places into ``chosen``; return how many."""
    cluster, order = Cluster(*cluster_arrays), Order(*order_arrays)
    accounts = Accounts(*account_arrays)
    jobs, now = cluster.jobs, cluster.s[S.NOW]
    q, queue = order.q, order.queue
    q[PASSES] += 1
    count = 0
    for i in range(q[FIRST], q[LAST]):
        if queue[NEED, i] == S.GAP:
            continue
        job = queue[ROW, i]
        view[0, count] = queue[NEED, i]
        view[1, count] = max(jobs[S.REQUESTED_TIME, job], 1)
        view[2, count] = max(queue[BELIEF, i], 1)
        view[3, count] = now - queue[SUBMITTED, i]
        view[4, count] = queue[SUBMITTED, i]
        view[5, count] = jobs[S.USER, job]
        view[6, count] = jobs[S.GROUP, job]
        view[7, count] = jobs[S.QUEUE, job]
        if q[CHARGED]:
            account = accounts.of[USAGE, job]
            if accounts.counts[SEEN, account] != q[PASSES]:
                accounts.counts[SEEN, account] = q[PASSES]
                level = usage(accounts, account, now, order.c[HALF_LIFE])
                accounts.amounts[KEY, account] = level
            view[8, count] = accounts.amounts[KEY, account]
        order.chosen[count] = i
        count += 1
    return count


@compiled
def take(order_arrays, scores, count):
    """Set the keys of the queue to the scores; return whether all of them are numbers."""
    order = Order(*order_arrays)
    for k in range(count):
        score = min(max(scores[k], -LARGEST_SCORE), LARGEST_SCORE)
        if isnan(scores[k]):
            return False
        part, power = frexp(score)
        order.keys[order.chosen[k]] = -ldexp(np.rint(part * UNIT) / UNIT, power)
    return True


@compiled
def _sift(keys, chosen, i, count):
    """Let a place sink in a heap of places by key, then by place."""
    place = chosen[i]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count:
            one, two = chosen[child], chosen[child + 1]
            if keys[two] < keys[one] or (keys[two] == keys[one] and two < one):
                child += 1
        below = chosen[child]
        if keys[place] < keys[below] or (keys[place] == keys[below] and place < below):
            break
        chosen[i] = below
        i = child
    chosen[i] = place


@compiled
def _pop(keys, chosen, count):
    """Move the first place of a heap behind it; return how many are left."""
    chosen[0], chosen[count - 1] = chosen[count - 1], chosen[0]
    _sift(keys, chosen, 0, count - 1)
    return count - 1


@compiled
def plan_pass(cluster_arrays, order_arrays, belief_arrays, account_arrays, windows, steps, total):
    """Plan jobs in the order of the queue, and start those whose time is now.

    Behind the last that may hold a reservation, jobs start that delay none of these, in the order
    of backfilling.
    """
    cluster, order = Cluster(*cluster_arrays), Order(*order_arrays)
    beliefs, accounts = Beliefs(*belief_arrays), Accounts(*account_arrays)
    jobs, s, q, queue = cluster.jobs, cluster.s, order.q, order.queue
    now = s[S.NOW]
    correct_ends(beliefs, jobs, now)
    times, free = steps[0], steps[1]
    times[0], free[0] = now, s[S.FREE]
    for i in range(s[S.RUNNING]):
        free[0] += jobs[S.PROCESSORS, cluster.ends[1, i]]
    count = 1
    for i in range(s[S.RUNNING]):
        job = cluster.ends[1, i]
        count = occupy(times, free, count, now, beliefs.end[job], jobs[S.PROCESSORS, job])
    for i in range(len(windows)):
        if windows[i, 1] > now:
            count = occupy(times, free, count, max(now, windows[i, 0]), windows[i, 1], total)
    if q[ORDER] >= BY_SLOWDOWN:
        renew_keys(order, accounts, now)
    keys, chosen, left = order.keys, order.chosen, 0
    for at in range(q[FIRST], q[LAST]):
        if queue[NEED, at] != S.GAP:
            chosen[left] = at
            left += 1
    for i in range(left // 2 - 1, -1, -1):
        _sift(keys, chosen, i, left)
    kept, deep, hole = 0, left, 0
    while left and deep and kept < q[RESERVATIONS] and s[S.FREE] >= 1:  # else nothing can start now
        left, deep = _pop(keys, chosen, left), deep - 1
        at = chosen[left]
        need, lasts = queue[NEED, at], max(queue[BELIEF, at], 1)
        begin = earliest(times, free, count, need, lasts)
        if begin < FOREVER:
            count = occupy(times, free, count, begin, begin + lasts, need)
        if begin == now:
            launch(cluster, order, beliefs, accounts, at)
            continue
        if kept == 0:
            hole, deep = begin - now, min(left, q[DEPTH])
        kept += 1
    later = min(left, deep) if s[S.FREE] >= 1 else 0
    for _ in range(later):
        left = _pop(keys, chosen, left)
    while later:
        best, least, fitting = -1, 0.0, 0
        for k in range(left, left + later):
            at = chosen[k]
            need, lasts = queue[NEED, at], max(queue[BELIEF, at], 1)
            if need <= s[S.FREE] and shortage(times, free, count, 0, need, lasts) < 0:
                chosen[left + fitting] = at
                fitting += 1
                place = float(at) if q[BACKFILL] == AS_SUBMITTED else score(order, at, hole)
                if best < 0 or place < least or (place == least and at < best):
                    best, least = at, place
        later = fitting
        if best >= 0:
            need, lasts = queue[NEED, best], max(queue[BELIEF, best], 1)
            count = occupy(times, free, count, now, now + lasts, need)
            launch(cluster, order, beliefs, accounts, best)
    q[HOLDS], q[HEAD] = 0, -1
    if q[GAPS] > 64 and 2 * q[GAPS] > q[LAST] - q[FIRST]:
        close_queue(order)


@compiled
def score_by(scorer, view, count, now, total, free, scores):
    """Let compiled code compute the scores."""
    scorer(view, count, now, total, free, scores)


@compiled
def one_pass(cluster_arrays, order_arrays, belief_arrays, account_arrays, windows, steps, total):
    """Do a pass in the order of the keys."""
    if Order(*order_arrays).q[RESERVATIONS]:
        plan_pass(
            cluster_arrays, order_arrays, belief_arrays, account_arrays, windows, steps, total
        )
    else:
        none = Cluster(*cluster_arrays).sorted[:0]
        ordered_pass(cluster_arrays, order_arrays, belief_arrays, account_arrays, none, none)


@compiled
def _begin(cluster_arrays, order_arrays, belief_arrays, account_arrays):
    """Take note of what ended and arrived since the last pass; return what the next one needs."""
    cluster = Cluster(*cluster_arrays)
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    needs = prepare(
        cluster_arrays, order_arrays, belief_arrays, account_arrays,
        ended[0, : s[S.EXPECTED_END]], arrived[0, s[S.QUEUE_HEAD] : s[S.QUEUE_TAIL]],
    )  # fmt: skip
    s[S.EXPECTED_END] = s[S.QUEUE_HEAD] = s[S.QUEUE_TAIL] = 0
    s[S.WAKE] = FOREVER
    return needs


@compiled
def advance_scored(
    cluster_arrays, remaining, halt, order_arrays, belief_arrays, account_arrays, windows, steps,
    total, view, scores, scorer,
):  # fmt: skip
    """Run like ``loop.advance``; return ``PASS`` if an array must grow, or no number came out."""
    cluster = Cluster(*cluster_arrays)
    order, beliefs = Order(*order_arrays), Beliefs(*belief_arrays)
    s = cluster.s
    while True:
        stop = run(cluster, remaining, halt)
        if stop != S.PASS:
            return stop
        if not has_room(cluster, order, beliefs, s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]):
            return S.PASS
        needs = _begin(cluster_arrays, order_arrays, belief_arrays, account_arrays)
        if needs == SCORES:
            count = fill(cluster_arrays, order_arrays, account_arrays, view)
            scorer(view, count, s[S.NOW], total, s[S.FREE], scores)
            if not take(order_arrays, scores, count):
                return S.PASS
        if needs != NOTHING:
            one_pass(
                cluster_arrays, order_arrays, belief_arrays, account_arrays, windows, steps, total
            )


@compiled
def advance_to_scores(
    cluster_arrays, remaining, halt, order_arrays, belief_arrays, account_arrays, windows, steps,
    total,
):  # fmt: skip
    """Run like ``loop.advance``; return ``PASS`` if an array must grow, or scores are needed."""
    cluster = Cluster(*cluster_arrays)
    order, beliefs = Order(*order_arrays), Beliefs(*belief_arrays)
    s = cluster.s
    while True:
        stop = run(cluster, remaining, halt)
        if stop != S.PASS:
            return stop
        if not has_room(cluster, order, beliefs, s[S.QUEUE_TAIL] - s[S.QUEUE_HEAD]):
            return S.PASS
        needs = _begin(cluster_arrays, order_arrays, belief_arrays, account_arrays)
        if needs == SCORES:
            return S.PASS
        if needs == PASS_ONLY:
            one_pass(
                cluster_arrays, order_arrays, belief_arrays, account_arrays, windows, steps, total
            )
