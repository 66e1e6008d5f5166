"""Conservative backfilling as in textbooks: at every pass the whole plan is laid out anew.

It gives the schedule of the library's, which keeps its plan from pass to pass, and is what that is
measured against. It is compiled too, runs in the same loop and on the same profile.
"""

from __future__ import annotations

from typing import Any, override

from hpcrowd.environment.engine.kernel.believed import believed_end
from hpcrowd.environment.engine.kernel.heap import heap_pop, heap_push
from hpcrowd.environment.engine.kernel.loop import advance
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
    compiled,
)
from hpcrowd.environment.engine.kernel.plan import (
    COUNT,
    DUE,
    JOB,
    LENGTH,
    NEED,
    PLANNED,
    has_room,
    join,
    make_room,
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
from hpcrowd.environment.engine.passes.planned import NO_CUTS, PlannedPass


@compiled
def lay_out(jobs, s, steps, heads, m, queue, ends, believed):
    """Draw the plan anew from the jobs that run and the reservations of the last pass."""
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
        change(steps, heads, m, now, believed[job], -jobs[PROCESSORS, job], 0)
    for i in range(m[COUNT]):
        start = queue[PLANNED, i]
        if start != NEVER:
            change(steps, heads, m, start, start + queue[LENGTH, i], -queue[NEED, i], 0)


@compiled
def expect_longer(jobs, s, m, due, believed, ended):
    """Forget ends of jobs that ended, raise those that are past; return whether any are."""
    now = s[NOW]
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
def rebuilding_pass(jobs, s, ends, m, steps, heads, queue, due, believed, cuts, ended, arrived):
    """Do one pass; return the next planned start."""
    late = expect_longer(jobs, s, m, due, believed, ended)
    lay_out(jobs, s, steps, heads, m, queue, ends, believed)
    if late:
        make_room(steps, heads, m, queue)
    join(jobs, m, queue, arrived, True, cuts)
    for i in range(m[COUNT]):
        start, need, length = queue[PLANNED, i], queue[NEED, i], queue[LENGTH, i]
        if start != NEVER:
            change(steps, heads, m, start, start + length, need, 0)
        start = earliest(steps, heads, m, need, length)
        change(steps, heads, m, start, start + length, -need, 0)
        reserve(jobs, queue, i, start)
    return start_due(jobs, s, m, queue, ends, believed, due)


@compiled
def advance_rebuilding(
    jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished, links, edges,
    unit_rows, halt, m, steps, heads, queue, due, believed, cuts,
):  # fmt: skip
    """Run as ``planned_loop.advance_planned`` does."""
    while True:
        stop = advance(jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished,
                       links, edges, unit_rows, halt)  # fmt: skip
        if stop != PASS:
            return stop
        if not has_room(s, ends, m, steps, queue, due, s[QUEUE_TAIL] - s[QUEUE_HEAD]):
            return PASS
        s[WAKE] = rebuilding_pass(
            jobs, s, ends, m, steps, heads, queue, due, believed, cuts,
            ended[0, : s[EXPECTED_END]], arrived[0, s[QUEUE_HEAD] : s[QUEUE_TAIL]],
        )  # fmt: skip
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0


class RebuildingPass(PlannedPass):
    """Conservative backfilling that keeps nothing but the reservations; no platform changes."""

    @override
    def advance(self, engine: tuple[Any, ...]) -> int:
        self._make_room(0)
        stop: int = advance_rebuilding(*engine, *self._arrays()[:-1], NO_CUTS)
        return stop

    @override
    def schedule(self, ended: Any, arrived: Any) -> int:
        self._make_room(len(arrived))
        engine = self.engine
        wake: int = rebuilding_pass(
            engine.jobs.matrix,
            engine.scalars,
            engine.ends,
            *self._arrays()[:-1],
            NO_CUTS,
            ended,
            arrived,
        )
        return wake
