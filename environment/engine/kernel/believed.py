"""Expected ends of running jobs, and the reservation of a job that waits for them.

Ends are sorted in blocks, each with the total processors of its jobs: inserting and removing one,
and finding when enough processors are free, is cheap however many jobs run.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.places import ESTIMATE, PROCESSORS, REQUESTED_TIME, START
from hpcrowd.environment.jobs import Int64Blocks, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.stops import FOREVER

#: Most jobs in a block.
WIDTH = 128

# Rows of ``blocks``.
BLOCK, SIZE, HELD = 0, 1, 2

# Places in ``b``.
BLOCKS, SHADOW_TIME, SPARE_THEN, B_COUNT = 0, 1, 2, 3


@dataclass(eq=False, slots=True)
class Beliefs:
    """Expected ends of running jobs in blocks, and the reservation."""

    b: Int64s  #: blocks in use, shadow time (s) and what is spare then, shape (B_COUNT,)
    entries: Int64Blocks  #: ends (s) and rows of jobs, one block a row, shape (2, blocks, WIDTH)
    #: the blocks in the order of time: row in ``entries``, jobs, their processors; from
    #: ``b[BLOCKS]`` on rows that are not used, shape (3, blocks)
    blocks: Int64Rows
    end: Int64s  #: the end (s) by row of the job, shape (jobs,)


def _block_of(beliefs: Beliefs, end: int, job: int) -> int:
    """Return the first block that ends with (``end``, ``job``) or later, or the last block."""
    b, entries, blocks = beliefs.b, beliefs.entries, beliefs.blocks
    low, high = 0, b[BLOCKS] - 1
    while low < high:
        middle = (low + high) >> 1
        block = blocks[BLOCK, middle]
        last = blocks[SIZE, middle] - 1
        time = entries[0, block, last]
        if time < end or (time == end and entries[1, block, last] < job):
            low = middle + 1
        else:
            high = middle
    return low


def _place_in(entries: Int64Blocks, block: int, size: int, end: int, job: int) -> int:
    """Return the place of (``end``, ``job``) in a block."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        time = entries[0, block, middle]
        if time < end or (time == end and entries[1, block, middle] < job):
            low = middle + 1
        else:
            high = middle
    return low


def _add_block(beliefs: Beliefs, at: int) -> None:
    """Put an empty block at ``at``; there must be one left."""
    b, blocks = beliefs.b, beliefs.blocks
    free = blocks[BLOCK, b[BLOCKS]]
    for i in range(b[BLOCKS], at, -1):
        blocks[BLOCK, i] = blocks[BLOCK, i - 1]
        blocks[SIZE, i] = blocks[SIZE, i - 1]
        blocks[HELD, i] = blocks[HELD, i - 1]
    blocks[BLOCK, at] = free
    blocks[SIZE, at] = blocks[HELD, at] = 0
    b[BLOCKS] += 1


def _split(beliefs: Beliefs, jobs: Int64Rows, at: int) -> None:
    """Move the later half of a block into a new one after it."""
    entries, blocks = beliefs.entries, beliefs.blocks
    _add_block(beliefs, at + 1)
    old, new = blocks[BLOCK, at], blocks[BLOCK, at + 1]
    keep = blocks[SIZE, at] // 2
    moved = 0
    for i in range(keep, blocks[SIZE, at]):
        job = entries[1, old, i]
        entries[0, new, i - keep] = entries[0, old, i]
        entries[1, new, i - keep] = job
        moved += jobs[PROCESSORS, job]
    blocks[SIZE, at + 1] = blocks[SIZE, at] - keep
    blocks[HELD, at + 1] = moved
    blocks[SIZE, at] = keep
    blocks[HELD, at] -= moved


def believe(beliefs: Beliefs, jobs: Int64Rows, job: int, end: int) -> None:
    """Note that a running job is expected to end at ``end``."""
    b, entries, blocks, ends = beliefs.b, beliefs.entries, beliefs.blocks, beliefs.end
    ends[job] = end
    if b[BLOCKS] == 0:
        _add_block(beliefs, 0)
    at = _block_of(beliefs, end, job)
    if blocks[SIZE, at] == entries.shape[2]:
        _split(beliefs, jobs, at)
        at = _block_of(beliefs, end, job)
    block, size = blocks[BLOCK, at], blocks[SIZE, at]
    place = _place_in(entries, block, size, end, job)
    for i in range(size, place, -1):
        entries[0, block, i] = entries[0, block, i - 1]
        entries[1, block, i] = entries[1, block, i - 1]
    entries[0, block, place] = end
    entries[1, block, place] = job
    blocks[SIZE, at] = size + 1
    blocks[HELD, at] += jobs[PROCESSORS, job]


def believe_all(beliefs: Beliefs, jobs: Int64Rows, running: Int64s) -> None:
    """Note when jobs that already run are expected to end."""
    for job in running:
        believe(beliefs, jobs, job, jobs[START, job] + jobs[ESTIMATE, job])


def forget_end(beliefs: Beliefs, jobs: Int64Rows, job: int) -> None:
    """Remove a job that was expected to run."""
    b, entries, blocks, ends = beliefs.b, beliefs.entries, beliefs.blocks, beliefs.end
    end = ends[job]
    at = _block_of(beliefs, end, job)
    block, size = blocks[BLOCK, at], blocks[SIZE, at] - 1
    for i in range(_place_in(entries, block, size + 1, end, job), size):
        entries[0, block, i] = entries[0, block, i + 1]
        entries[1, block, i] = entries[1, block, i + 1]
    blocks[SIZE, at] = size
    blocks[HELD, at] -= jobs[PROCESSORS, job]
    if size == 0:
        b[BLOCKS] -= 1
        for i in range(at, b[BLOCKS]):
            blocks[BLOCK, i] = blocks[BLOCK, i + 1]
            blocks[SIZE, i] = blocks[SIZE, i + 1]
            blocks[HELD, i] = blocks[HELD, i + 1]
        blocks[BLOCK, b[BLOCKS]] = block


def correct_ends(beliefs: Beliefs, jobs: Int64Rows, now: int) -> bool:
    """Raise the expected ends of jobs that outran them; return whether there were any."""
    b, entries, blocks = beliefs.b, beliefs.entries, beliefs.blocks
    any_late = False
    while b[BLOCKS] > 0 and entries[0, blocks[BLOCK, 0], 0] <= now:
        job = entries[1, blocks[BLOCK, 0], 0]
        forget_end(beliefs, jobs, job)
        end = believed_end(jobs[START, job], jobs[ESTIMATE, job], jobs[REQUESTED_TIME, job], now)
        believe(beliefs, jobs, job, end)
        any_late = True
    return any_late


def reserve(beliefs: Beliefs, jobs: Int64Rows, now: int, free: int, need: int) -> None:
    """Set when ``need`` processors are expected to be free, and how many more will be free then.

    Late jobs are expected to end now. The time is FOREVER if there will never be enough.
    """
    b, entries, blocks = beliefs.b, beliefs.entries, beliefs.blocks
    back, shadow = free, now
    at, used = 0, b[BLOCKS]
    while at < used and back + blocks[HELD, at] < need:
        back += blocks[HELD, at]
        at += 1
    i = 0
    while at < used:
        block = blocks[BLOCK, at]
        while i < blocks[SIZE, at]:
            end = entries[0, block, i]
            if back >= need and end > shadow:
                at = used
                break
            back += jobs[PROCESSORS, entries[1, block, i]]
            shadow = max(shadow, end)
            i += 1
        at += 1
        i = 0
    if back < need:
        b[SHADOW_TIME], b[SPARE_THEN] = FOREVER, 0
    else:
        b[SHADOW_TIME], b[SPARE_THEN] = shadow, back - need
