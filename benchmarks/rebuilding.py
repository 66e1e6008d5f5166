"""Conservative backfilling as in textbooks: every pass makes a new plan.

It gives the schedule of the library's, which keeps its plan from pass to pass, and is what that is
measured against. It is compiled too, runs in the same loop and on the same profile.
"""

from __future__ import annotations

from typing import Any, override

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
    WAKE,
    Cluster,
    Units,
)
from hpcrowd.environment.engine.kernel.plan import (
    COUNT,
    DUE,
    JOB,
    LENGTH,
    NEED,
    PLANNED,
    Rules,
    has_room,
    join,
    make_room,
    plan_of,
    start_due,
)
from hpcrowd.environment.engine.kernel.profile import (
    BLOCK,
    BLOCKS,
    GAINED,
    MARK,
    SINCE,
    SIZE,
    TIME,
    change,
    earliest,
)
from hpcrowd.environment.engine.kernel.profile import FREE as FREE_THEN
from hpcrowd.environment.engine.passes.planned import PlannedPass


@compiled
def lay_out(cluster, plan):
    """Make a new plan from the running jobs and the reservations of the last pass."""
    jobs, s, ends = cluster.jobs, cluster.s, cluster.ends
    profile, queue = plan.profile, plan.queue
    steps, heads, m = profile
    now = s[NOW]
    block = heads[BLOCK, 0]
    m[BLOCKS] = 1
    heads[SINCE, 0], heads[SIZE, 0], heads[GAINED, 0] = now, 1, -1
    steps[block, TIME, 0], steps[block, MARK, 0] = now, 0
    steps[block, FREE_THEN, 0] = s[FREE]
    for k in range(s[RUNNING]):
        steps[block, FREE_THEN, 0] += jobs[PROCESSORS, ends[1, k]]
    for k in range(s[RUNNING]):
        job = ends[1, k]
        change(profile, now, plan.believed[job], -jobs[PROCESSORS, job], 0)
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        if start != NEVER:
            change(profile, start, start + queue[LENGTH, i], -queue[NEED, i], 0)


@compiled
def expect_longer(cluster, plan, ended):
    """Forget ends of jobs that ended, raise those that are past; return whether any are."""
    jobs, now = cluster.jobs, cluster.s[NOW]
    m, due, believed = plan.profile.m, plan.due, plan.believed
    for k in range(len(ended)):
        believed[ended[k]] = NEVER
    late = False
    while m[DUE] and due[0, 0] <= now:
        time = due[0, 0]
        job = heap_pop(due, m[DUE])
        m[DUE] -= 1
        if believed[job] == time:
            late = True
            believed[job] = believed_end(
                jobs[START, job], jobs[ESTIMATE, job], jobs[REQUESTED_TIME, job], now
            )
            heap_push(due, m[DUE], believed[job], job)
            m[DUE] += 1
    return late


@compiled
def reserve(jobs, queue, i, start):
    """Note the start that a job is to have."""
    queue[PLANNED, i] = start
    if jobs[PROMISED, queue[JOB, i]] == NEVER:
        jobs[PROMISED, queue[JOB, i]] = start


@compiled
def rebuilding_pass(cluster_arrays, plan_arrays, rules_given, ended, arrived):
    """Do one pass; return the next planned start."""
    cluster, plan, rules = Cluster(*cluster_arrays), plan_of(plan_arrays), Rules(*rules_given)
    jobs, profile, queue = cluster.jobs, plan.profile, plan.queue
    late = expect_longer(cluster, plan, ended)
    lay_out(cluster, plan)
    if late:
        make_room(plan)
    join(jobs, plan, rules, arrived)
    for i in range(profile.m[COUNT]):
        start, need, length = queue[PLANNED, i], queue[NEED, i], queue[LENGTH, i]
        if start != NEVER:
            change(profile, start, start + length, need, 0)
        start = earliest(profile, need, length)
        change(profile, start, start + length, -need, 0)
        reserve(jobs, queue, i, start)
    return start_due(cluster, plan)


@compiled
def advance_rebuilding(cluster_arrays, unit_arrays, halt, plan_arrays, rules):
    """Run as ``plan.advance_planned`` does."""
    cluster, plan = Cluster(*cluster_arrays), plan_of(plan_arrays)
    s, arrived, ended = cluster.s, cluster.queue, cluster.expected
    while True:
        stop = run(cluster, Units(*unit_arrays), halt)
        if stop != PASS:
            return stop
        if not has_room(cluster, plan, s[QUEUE_TAIL] - s[QUEUE_HEAD]):
            return PASS
        s[WAKE] = rebuilding_pass(
            cluster_arrays,
            plan_arrays,
            rules,
            ended[0, : s[EXPECTED_END]],
            arrived[0, s[QUEUE_HEAD] : s[QUEUE_TAIL]],
        )
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0


class RebuildingPass(PlannedPass):
    """Conservative backfilling that keeps nothing but the reservations; no platform changes."""

    @override
    def advance(self, cluster: tuple[Any, ...], units: tuple[Any, ...], halt: int) -> int:
        self._make_room(0)
        stop: int = advance_rebuilding(cluster, units, halt, self._plan(), self._rules())
        return stop

    @override
    def schedule(self, ended: Any, arrived: Any) -> int:
        self._make_room(len(arrived))
        arrays = self.engine.arrays()
        wake: int = rebuilding_pass(arrays, self._plan(), self._rules(), ended, arrived)
        return wake
