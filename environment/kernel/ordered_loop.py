"""The compiled cluster under a policy of ``ordered``: its passes need no call from outside."""

from __future__ import annotations

from environment.kernel.believed import BLOCKS, WIDTH
from environment.kernel.loop import advance
from environment.kernel.ordered import FIRST, GAPS, LAST, close_queue, ordered_pass
from environment.kernel.places import (
    EXPECTED_END,
    PASS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RUNNING,
    WAITING,
    WAKE,
    compiled,
)
from environment.stops import FOREVER


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
