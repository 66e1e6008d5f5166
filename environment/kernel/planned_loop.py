"""The compiled cluster under a policy with a plan: its passes need no call from outside."""

from __future__ import annotations

from environment.kernel.loop import advance
from environment.kernel.places import (
    EXPECTED_END,
    NOW,
    PASS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RUNNING,
    WAITING,
    WAKE,
    compiled,
)
from environment.kernel.plan import (
    COUNT,
    DUE,
    compress,
    count_slowdowns,
    expect_longer,
    join,
    make_room,
    select_others,
    start_due,
    take_back,
)
from environment.kernel.profile import WIDTH, pass_time

#: Blocks of a plan that are always to spare.
SPARE_BLOCKS = 5 * 256 // WIDTH


@compiled
def blocks_for(jobs):
    """Return the blocks that a plan may need in a pass, with so many jobs running, waiting or over.

    Steps begin and end with jobs, and with places that jobs left in this walk or the last. Two
    blocks beside each other may fill as little as a quarter of one, since only smaller ones unite.
    """
    return 8 * 6 * jobs // WIDTH + SPARE_BLOCKS


@compiled
def has_room(s, ends, m, steps, queue, due, arrived):
    """Return whether a pass with so many newcomers cannot fill an array."""
    waiting = m[COUNT] + arrived
    jobs = s[RUNNING] + waiting
    return (
        waiting <= queue.shape[1]
        and m[DUE] + jobs <= due.shape[1]
        and blocks_for(jobs + s[EXPECTED_END]) <= len(steps)
        and s[RUNNING] + s[WAITING] < ends.shape[1]
    )


@compiled
def planned_pass(
    jobs, s, ends, m, steps, heads, queue, due, believed, misses, every, adaptive, cuts, bound,
    slowdowns, counts, thresholds, ended, arrived,
):  # fmt: skip
    """Do one pass; return the next planned start, FOREVER if there is none.

    ``every`` job has a reservation, or those whose expansion factor is above its threshold;
    ``adaptive`` thresholds are the mean slowdowns of the jobs that ended, by category.
    """
    take_back(jobs, s, steps, heads, m, believed, ended)
    pass_time(steps, heads, m, s[NOW])
    if expect_longer(jobs, s, steps, heads, m, believed, due):
        make_room(steps, heads, m, queue)
    join(jobs, m, queue, arrived, every, cuts)
    compress(jobs, s, steps, heads, m, queue, misses, every)
    if not every:
        if adaptive:
            count_slowdowns(jobs, ended, cuts, bound, slowdowns, counts, thresholds)
        select_others(jobs, s, steps, heads, m, queue, thresholds)
    return start_due(jobs, s, m, queue, ends, believed, due)


@compiled
def advance_planned(
    jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished, links, edges,
    unit_rows, halt,
    m, steps, heads, queue, due, believed, misses, every, adaptive, cuts, bound, slowdowns, counts,
    thresholds,
):  # fmt: skip
    """Run as ``loop.advance`` does; return ``PASS`` only when an array has to grow for it."""
    while True:
        stop = advance(jobs, s, sorted_arrivals, heap, arrived, ends, ended, remaining, finished,
                       links, edges, unit_rows, halt)  # fmt: skip
        if stop != PASS:
            return stop
        if not has_room(s, ends, m, steps, queue, due, s[QUEUE_TAIL] - s[QUEUE_HEAD]):
            return PASS
        s[WAKE] = planned_pass(
            jobs, s, ends, m, steps, heads, queue, due, believed, misses, every, adaptive, cuts,
            bound, slowdowns, counts, thresholds, ended[0, : s[EXPECTED_END]],
            arrived[0, s[QUEUE_HEAD] : s[QUEUE_TAIL]],
        )  # fmt: skip
        s[EXPECTED_END] = s[QUEUE_HEAD] = s[QUEUE_TAIL] = 0
