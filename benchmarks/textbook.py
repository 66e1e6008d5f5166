"""Conservative backfilling as in simulators: a list of steps, made again at every pass.

It gives the schedule of the library's, which keeps its plan from pass to pass, and is what that is
measured against. It is compiled too, and runs in the same loop.
"""

from __future__ import annotations

from typing import Any, override

import numpy as np

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel.believed import believed_end
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import run
from hpcrowd.environment.engine.kernel.places import (
    ESTIMATE,
    EXPECTED_END,
    FREE,
    NEVER,
    NOW,
    PASS,
    PROCESSORS,
    PROMISED,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REQUESTED_TIME,
    RUNNING,
    START,
    WAITING,
    WAKE,
    Cluster,
)
from hpcrowd.environment.engine.kernel.plan import (
    COUNT,
    DUE,
    JOB,
    LENGTH,
    NEED,
    PLANNED,
    UNTIL,
    Rules,
    has_room,
    join,
    plan_of,
    start_due,
)
from hpcrowd.environment.engine.passes.planned import PlannedPass

#: Rows of the list: time, processors free from then on.
TIME, THEN = range(2)


@compiled
def step_at(plan, count, time):
    """Return the place of the step that holds at ``time``."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if plan[TIME, middle] <= time:
            low = middle
        else:
            high = middle
    return low


@compiled
def begin_step(plan, count, time):
    """Let a step begin at ``time``; return how many there are then."""
    at = step_at(plan, count, time)
    if plan[TIME, at] == time:
        return count
    for row in range(2):
        for i in range(count, at + 1, -1):
            plan[row, i] = plan[row, i - 1]
    plan[TIME, at + 1] = time
    plan[THEN, at + 1] = plan[THEN, at]
    return count + 1


@compiled
def unite(plan, count, time):
    """Merge the step at ``time`` with the one before, if they are the same."""
    at = step_at(plan, count, time)
    if at == 0 or plan[THEN, at] != plan[THEN, at - 1]:
        return count
    for row in range(2):
        for i in range(at, count - 1):
            plan[row, i] = plan[row, i + 1]
    return count - 1


@compiled
def add(plan, count, start, end, processors):
    """Add free processors from ``start`` to ``end``; return how many steps there are then."""
    count = begin_step(plan, count, start)
    count = begin_step(plan, count, end)
    for i in range(step_at(plan, count, start), step_at(plan, count, end)):
        plan[THEN, i] += processors
    count = unite(plan, count, end)
    return unite(plan, count, start)


@compiled
def first_hole(plan, count, processors, length):
    """Return when enough processors are first free for long enough."""
    start = plan[TIME, 0]
    enough = True
    for i in range(count):
        if not enough:
            start = plan[TIME, i]
        elif plan[TIME, i] - start >= length:
            return start
        enough = plan[THEN, i] >= processors
    return start


@compiled
def expect_longer(cluster, kept, ended):
    """Forget ends of jobs that ended, raise those that are past; return whether any are."""
    jobs, now = cluster.jobs, cluster.s[NOW]
    m, due, until = kept.profile.m, kept.due, kept.believed[UNTIL]
    for k in range(len(ended)):
        until[ended[k]] = NEVER
    late = False
    while m[DUE] and due[0, 0] <= now:
        time = due[0, 0]
        job = heap_pop(due, m[DUE])
        m[DUE] -= 1
        if until[job] == time:
            late = True
            until[job] = believed_end(
                jobs[START, job], jobs[ESTIMATE, job], jobs[REQUESTED_TIME, job], now
            )
            heap_push(due, m[DUE], until[job], job)
            m[DUE] += 1
    return late


@compiled
def reserve(jobs, queue, i, start):
    """Note the start that a job is to have."""
    queue[PLANNED, i] = start
    if jobs[PROMISED, queue[JOB, i]] == NEVER:
        jobs[PROMISED, queue[JOB, i]] = start


@compiled
def cancel(plan, count, m, queue):
    """Cancel reservations where processors are too few, the latest in the queue first."""
    at = 0
    while at < count:
        k = m[COUNT] - 1
        while k >= 0 and plan[THEN, at] < 0:
            start, end = queue[PLANNED, k], queue[PLANNED, k] + queue[LENGTH, k]
            if start != NEVER and start <= plan[TIME, at] < end:
                time = plan[TIME, at]
                count = add(plan, count, start, end, queue[NEED, k])
                at = step_at(plan, count, time)
                queue[PLANNED, k] = NEVER
            k -= 1
        at += 1
    return count


@compiled
def textbook_pass(cluster_arrays, plan_arrays, rules_given, plan, ended, arrived):
    """Do one pass; return the next planned start."""
    cluster, kept, rules = Cluster(*cluster_arrays), plan_of(plan_arrays), Rules(*rules_given)
    jobs, s, ends = cluster.jobs, cluster.s, cluster.ends
    m, queue = kept.profile.m, kept.queue
    now = s[NOW]
    late = expect_longer(cluster, kept, ended)
    plan[TIME, 0], plan[THEN, 0] = now, s[FREE]
    for k in range(s[RUNNING]):
        plan[THEN, 0] += jobs[PROCESSORS, ends[1, k]]
    count = 1
    for k in range(s[RUNNING]):
        job = ends[1, k]
        count = add(plan, count, now, kept.believed[UNTIL, job], -jobs[PROCESSORS, job])
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        count = add(plan, count, start, start + queue[LENGTH, i], -queue[NEED, i])
    if late:
        count = cancel(plan, count, m, queue)
    join(jobs, kept, rules, arrived)
    for i in range(m[COUNT]):
        start, need, length = queue[PLANNED, i], queue[NEED, i], queue[LENGTH, i]
        if start != NEVER:
            count = add(plan, count, start, start + length, need)
        start = first_hole(plan, count, need, length)
        count = add(plan, count, start, start + length, -need)
        reserve(jobs, queue, i, start)
    return start_due(cluster, kept)


@compiled
def advance_textbook(cluster_arrays, remaining, halt, plan_arrays, rules, plan):
    """Run as ``plan.advance_planned`` does."""
    cluster, kept = Cluster(*cluster_arrays), plan_of(plan_arrays)
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    while True:
        stop = run(cluster, remaining, halt)
        if stop != PASS:
            return stop
        room = 4 * (s[RUNNING] + s[WAITING]) + 8 <= plan.shape[1]
        if not room or not has_room(cluster, kept, s[QUEUE_TAIL] - s[QUEUE_HEAD]):
            return PASS
        s[WAKE] = textbook_pass(
            cluster_arrays,
            plan_arrays,
            rules,
            plan,
            ended[0, : s[EXPECTED_END]],
            arrived[0, s[QUEUE_HEAD] : s[QUEUE_TAIL]],
        )
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0


class TextbookPass(PlannedPass):
    """Conservative backfilling that keeps nothing but the reservations; no platform changes."""

    _list = np.zeros((2, 1024), np.int64)

    @override
    def advance(self, cluster: tuple[Any, ...], remaining: Any, halt: int) -> int:
        self._make_room(0)
        stop: int = advance_textbook(
            cluster, remaining, halt, self._plan(), self._rules(), self._list
        )
        return stop

    @override
    def schedule(self, ended: Any, arrived: Any) -> int:
        self._make_room(len(arrived))
        engine = self.engine
        jobs = int(engine.scalars[RUNNING] + engine.scalars[WAITING])
        if 4 * jobs + 8 > self._list.shape[1]:
            self._list = np.zeros((2, 8 * jobs), np.int64)
        wake: int = textbook_pass(
            engine.arrays(), self._plan(), self._rules(), self._list, ended, arrived
        )
        return wake
