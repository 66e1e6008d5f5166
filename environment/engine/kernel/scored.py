"""Passes of policies whose order is a formula over the queue, and passes that make a plan.

The plain ones are in ``schedulers/policies/priority.py`` and ``schedulers/ordered.py``. Before a
pass the formula gets the waiting jobs as columns of a view. That is left out if the order does not
matter: if one job waits, or none fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, isnan, ldexp

from hpcrowd.environment.engine.kernel.accounts import Accounts, usage
from hpcrowd.environment.engine.kernel.believed import Beliefs, correct_ends
from hpcrowd.environment.engine.kernel.cluster import GAP, Cluster
from hpcrowd.environment.engine.kernel.formula import evaluate
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.ordered import (
    AS_SUBMITTED,
    BY_SCORE,
    BY_SLOWDOWN,
    Order,
    close_queue,
    has_room,
    launch,
    ordered_pass,
    renew_keys,
    score,
    take_note,
)
from hpcrowd.environment.engine.kernel.outlook import earliest, occupy, shortage
from hpcrowd.environment.jobs import Float64Rows, Float64s, Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER, Stop

# What a pass needs.
NOTHING, PASS_ONLY, SCORES = range(3)

# Binary digits of a score that count, and the largest: as in ``schedulers/policies/priority.py``.
DIGITS, LARGEST_SCORE = 40, 1e300

UNIT = 2.0**DIGITS

#: Added to a number below :data:`UNIT` and taken away again it leaves a whole one, the even of two.
ROUNDER = 1.5 * 2.0**52


@dataclass(eq=False, slots=True)
class Formula:
    """A formula over the queue as ``engine/passes/formula.py`` traces it, and its room."""

    steps: Int64Rows  #: none where it has to be called
    numbers: Float64s
    #: the columns of ``schedulers.policies.priority.Queue``, then room for results, shape (rows,
    #: waiting)
    view: Float64Rows
    scores: Float64s  #: shape (waiting,)


def prepare(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    ended: Int64s,
    arrived: Int64s,
) -> int:
    """Take note of what ended and arrived; return what the pass needs."""
    state = cluster.state
    if not take_note(cluster, order, beliefs, accounts, ended, arrived):
        return NOTHING
    for i in range(order.first, order.last):
        if order.need[i] <= state.free:
            if order.by == BY_SCORE and state.waiting > 1:
                return SCORES
            if order.by == BY_SCORE:
                order.keys[i] = 0.0
            return PASS_ONLY
    return NOTHING


def fill(cluster: Cluster, order: Order, accounts: Accounts, view: Float64Rows) -> int:
    """Write the waiting jobs into the view, and their places into ``chosen``; return how many."""
    jobs, now = cluster.jobs, cluster.state.now
    order.passes += 1
    count = 0
    for i in range(order.first, order.last):
        if order.need[i] == GAP:
            continue
        job = order.job[i]
        view[0, count] = order.need[i]
        view[1, count] = max(jobs.requested_time[job], 1)
        view[2, count] = max(order.belief[i], 1)
        view[3, count] = now - order.submitted[i]
        view[4, count] = order.submitted[i]
        view[5, count] = jobs.user[job]
        view[6, count] = jobs.group[job]
        view[7, count] = jobs.queue[job]
        if order.charged:
            account = accounts.charged[job]
            if accounts.seen[account] != order.passes:
                accounts.seen[account] = order.passes
                level = usage(accounts, account, now, order.half_life)
                accounts.key[account] = level
            view[8, count] = accounts.key[account]
        order.chosen[count] = i
        count += 1
    return count


def take(order: Order, scores: Float64s, count: int) -> bool:
    """Set the keys of the queue to the scores; return whether all of them are numbers."""
    for k in range(count):
        score = min(max(scores[k], -LARGEST_SCORE), LARGEST_SCORE)
        if isnan(scores[k]):
            return False
        part, power = frexp(score)
        rounded = part * UNIT + ROUNDER - ROUNDER
        order.keys[order.chosen[k]] = -ldexp(rounded / UNIT, power)
    return True


def _sift(keys: Float64s, chosen: Int64s, i: int, count: int) -> None:
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


def _pop(keys: Float64s, chosen: Int64s, count: int) -> int:
    """Move the first place of a heap behind it; return how many are left."""
    chosen[0], chosen[count - 1] = chosen[count - 1], chosen[0]
    _sift(keys, chosen, 0, count - 1)
    return count - 1


def plan_pass(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    windows: Int64Rows,
    steps: Int64Rows,
    total: int,
) -> None:
    """Plan jobs in the order of the queue, and start those whose time is now.

    Behind the last that may hold a reservation, jobs start that delay none of these, in the order
    of backfilling.
    """
    state, now, times, free = cluster.state, cluster.state.now, steps[0], steps[1]
    count = _lay_out(cluster, beliefs, windows, steps, total)
    if order.by >= BY_SLOWDOWN:
        renew_keys(order, accounts, now)
    keys, chosen, left = order.keys, order.chosen, 0
    for at in range(order.first, order.last):
        if order.need[at] != GAP:
            chosen[left] = at
            left += 1
    for i in range(left // 2 - 1, -1, -1):
        _sift(keys, chosen, i, left)
    kept, deep, hole = 0, left, 0
    while (
        left and deep and kept < order.reservations and state.free >= 1
    ):  # else nothing can start now
        left, deep = _pop(keys, chosen, left), deep - 1
        at = chosen[left]
        need, lasts = order.need[at], max(order.belief[at], 1)
        begin = earliest(times, free, count, need, lasts)
        if begin < FOREVER:
            count = occupy(times, free, count, begin, begin + lasts, need)
        if begin == now:
            launch(cluster, order, beliefs, accounts, at)
            continue
        if kept == 0:
            hole, deep = begin - now, min(left, order.depth)
        kept += 1
    later = min(left, deep) if state.free >= 1 else 0
    for _ in range(later):
        left = _pop(keys, chosen, left)
    _backfill(cluster, order, beliefs, accounts, steps, count, left, later, hole)
    order.holds, order.head = False, -1
    if order.gaps > 64 and 2 * order.gaps > order.last - order.first:
        close_queue(order)


def _lay_out(
    cluster: Cluster, beliefs: Beliefs, windows: Int64Rows, steps: Int64Rows, total: int
) -> int:
    """Lay out what running jobs and maintenance leave free; return the number of steps."""
    jobs, state, now = cluster.jobs, cluster.state, cluster.state.now
    times, free, running = steps[0], steps[1], cluster.ends.job
    correct_ends(beliefs, jobs, now)
    times[0], free[0] = now, state.free
    for i in range(state.running):
        free[0] += jobs.processors[running[i]]
    count = 1
    for i in range(state.running):
        job = running[i]
        count = occupy(times, free, count, now, beliefs.end[job], jobs.processors[job])
    for i in range(len(windows)):
        if windows[i, 1] > now:
            count = occupy(times, free, count, max(now, windows[i, 0]), windows[i, 1], total)
    return count


def _backfill(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    steps: Int64Rows,
    count: int,
    left: int,
    later: int,
    hole: int,
) -> None:
    """Start those of the next ``later`` jobs, from ``left`` on, that delay no reservation."""
    state, chosen, times, free = cluster.state, order.chosen, steps[0], steps[1]
    now = state.now
    while later:
        best, least, fitting = -1, 0.0, 0
        for k in range(left, left + later):
            at = chosen[k]
            need, lasts = order.need[at], max(order.belief[at], 1)
            if need <= state.free and shortage(times, free, count, 0, need, lasts) < 0:
                chosen[left + fitting] = at
                fitting += 1
                place = float(at) if order.backfill == AS_SUBMITTED else score(order, at, hole)
                if best < 0 or place < least or (place == least and at < best):
                    best, least = at, place
        later = fitting
        if best >= 0:
            need, lasts = order.need[best], max(order.belief[best], 1)
            count = occupy(times, free, count, now, now + lasts, need)
            launch(cluster, order, beliefs, accounts, best)


def compute(formula: Formula, count: int, now: int, total: int, free: int) -> None:
    """Compute the scores of the jobs in the view."""
    evaluate(formula.steps, formula.numbers, formula.view, count, now, total, free, formula.scores)


def one_pass(
    cluster: Cluster,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    windows: Int64Rows,
    steps: Int64Rows,
    total: int,
) -> None:
    """Do a pass in the order of the keys."""
    if order.reservations:
        plan_pass(cluster, order, beliefs, accounts, windows, steps, total)
    else:
        none = cluster.sorted[:0]
        ordered_pass(cluster, order, beliefs, accounts, none, none)


def _begin(cluster: Cluster, order: Order, beliefs: Beliefs, accounts: Accounts) -> int:
    """Take note of what ended and arrived since the last pass; return what the next one needs."""
    state = cluster.state
    ended = cluster.expected.ended[: state.expected_end]
    arrived = cluster.queue.job[state.queue_head : state.queue_tail]
    needs = prepare(cluster, order, beliefs, accounts, ended, arrived)
    state.expected_end = state.queue_head = state.queue_tail = 0
    state.wake = FOREVER
    return needs


def advance_scored(
    cluster: Cluster,
    remaining: Int64s,
    halt: int,
    order: Order,
    beliefs: Beliefs,
    accounts: Accounts,
    windows: Int64Rows,
    steps: Int64Rows,
    total: int,
    formula: Formula,
) -> int:
    """Run like ``loop.run``; return ``PASS`` if an array must grow, or for lack of scores.

    That is the case where the formula has no steps, or where no number came out.
    """
    state = cluster.state
    while True:
        stop = run(cluster, remaining, halt)
        if stop != Stop.PASS:
            return stop
        if not has_room(cluster, order, beliefs, state.queue_tail - state.queue_head):
            return Stop.PASS
        needs = _begin(cluster, order, beliefs, accounts)
        if needs == SCORES:
            if len(formula.steps) == 0:
                return Stop.PASS
            count = fill(cluster, order, accounts, formula.view)
            compute(formula, count, state.now, total, state.free)
            if not take(order, formula.scores, count):
                return Stop.PASS
        if needs != NOTHING:
            one_pass(cluster, order, beliefs, accounts, windows, steps, total)
