"""Expected ends of running jobs, and the reservation of a job that waits for them.

Ends are sorted in blocks, each with the total processors of its jobs: inserting and removing one,
and finding when enough processors are free, is cheap however many jobs run.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.engine.kernel.cluster import Jobs
from hpcrowd.environment.jobs import Int64Blocks, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.stops import FOREVER

#: Most jobs in a block.
WIDTH = 128

#: Rows of ``blocks``.
BLOCK_ROWS = 3


@dataclass(eq=False, slots=True)
class Beliefs:
    """Expected ends of running jobs in blocks, and the reservation."""

    entries: Int64Blocks  #: ends (s) and rows of jobs, one block a row, shape (2, blocks, WIDTH)
    #: the blocks in the order of time, from ``count`` on those that are not used, shape
    #: (BLOCK_ROWS, blocks)
    blocks: Int64Rows
    end: Int64s  #: the end (s) by row of the job, shape (jobs,)
    count: int = 0  #: blocks in use
    shadow: int = 0  #: when the reservation begins, s
    spare: int = 0  #: processors that it leaves then

    times, jobs = rows("entries", 2)
    #: Row in ``entries``, jobs, and their processors.
    block, size, held = rows("blocks", BLOCK_ROWS)


def _block_of(beliefs: Beliefs, end: int, job: int) -> int:
    """Return the first block that ends with (``end``, ``job``) or later, or the last block."""
    low, high = 0, beliefs.count - 1
    while low < high:
        middle = (low + high) >> 1
        block = beliefs.block[middle]
        last = beliefs.size[middle] - 1
        time = beliefs.times[block, last]
        if time < end or (time == end and beliefs.jobs[block, last] < job):
            low = middle + 1
        else:
            high = middle
    return low


def _place_in(beliefs: Beliefs, block: int, size: int, end: int, job: int) -> int:
    """Return the place of (``end``, ``job``) in a block."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        time = beliefs.times[block, middle]
        if time < end or (time == end and beliefs.jobs[block, middle] < job):
            low = middle + 1
        else:
            high = middle
    return low


def _add_block(beliefs: Beliefs, at: int) -> None:
    """Put an empty block at ``at``; there must be one left."""
    free = beliefs.block[beliefs.count]
    for i in range(beliefs.count, at, -1):
        beliefs.block[i] = beliefs.block[i - 1]
        beliefs.size[i] = beliefs.size[i - 1]
        beliefs.held[i] = beliefs.held[i - 1]
    beliefs.block[at] = free
    beliefs.size[at] = beliefs.held[at] = 0
    beliefs.count += 1


def _split(beliefs: Beliefs, jobs: Jobs, at: int) -> None:
    """Move the later half of a block into a new one after it."""
    _add_block(beliefs, at + 1)
    old, new = beliefs.block[at], beliefs.block[at + 1]
    keep = beliefs.size[at] // 2
    moved = 0
    for i in range(keep, beliefs.size[at]):
        job = beliefs.jobs[old, i]
        beliefs.times[new, i - keep] = beliefs.times[old, i]
        beliefs.jobs[new, i - keep] = job
        moved += jobs.processors[job]
    beliefs.size[at + 1] = beliefs.size[at] - keep
    beliefs.held[at + 1] = moved
    beliefs.size[at] = keep
    beliefs.held[at] -= moved


def believe(beliefs: Beliefs, jobs: Jobs, job: int, end: int) -> None:
    """Note that a running job is expected to end at ``end``."""
    ends = beliefs.end
    ends[job] = end
    if beliefs.count == 0:
        _add_block(beliefs, 0)
    at = _block_of(beliefs, end, job)
    if beliefs.size[at] == beliefs.entries.shape[2]:
        _split(beliefs, jobs, at)
        at = _block_of(beliefs, end, job)
    block, size = beliefs.block[at], beliefs.size[at]
    place = _place_in(beliefs, block, size, end, job)
    for i in range(size, place, -1):
        beliefs.times[block, i] = beliefs.times[block, i - 1]
        beliefs.jobs[block, i] = beliefs.jobs[block, i - 1]
    beliefs.times[block, place] = end
    beliefs.jobs[block, place] = job
    beliefs.size[at] = size + 1
    beliefs.held[at] += jobs.processors[job]


def believe_all(beliefs: Beliefs, jobs: Jobs, running: Int64s) -> None:
    """Note when jobs that already run are expected to end."""
    for job in running:
        believe(beliefs, jobs, job, jobs.start[job] + jobs.estimate[job])


def forget_end(beliefs: Beliefs, jobs: Jobs, job: int) -> None:
    """Remove a job that was expected to run."""
    ends = beliefs.end
    end = ends[job]
    at = _block_of(beliefs, end, job)
    block, size = beliefs.block[at], beliefs.size[at] - 1
    for i in range(_place_in(beliefs, block, size + 1, end, job), size):
        beliefs.times[block, i] = beliefs.times[block, i + 1]
        beliefs.jobs[block, i] = beliefs.jobs[block, i + 1]
    beliefs.size[at] = size
    beliefs.held[at] -= jobs.processors[job]
    if size == 0:
        beliefs.count -= 1
        for i in range(at, beliefs.count):
            beliefs.block[i] = beliefs.block[i + 1]
            beliefs.size[i] = beliefs.size[i + 1]
            beliefs.held[i] = beliefs.held[i + 1]
        beliefs.block[beliefs.count] = block


def correct_ends(beliefs: Beliefs, jobs: Jobs, now: int) -> bool:
    """Raise the expected ends of jobs that outran them; return whether there were any."""
    any_late = False
    while beliefs.count > 0 and beliefs.times[beliefs.block[0], 0] <= now:
        job = beliefs.jobs[beliefs.block[0], 0]
        forget_end(beliefs, jobs, job)
        end = believed_end(jobs.start[job], jobs.estimate[job], jobs.requested_time[job], now)
        believe(beliefs, jobs, job, end)
        any_late = True
    return any_late


def reserve(beliefs: Beliefs, jobs: Jobs, now: int, free: int, need: int) -> None:
    """Set when ``need`` processors are expected to be free, and how many more will be free then.

    Late jobs are expected to end now. The time is FOREVER if there will never be enough.
    """
    back, shadow = free, now
    at, used = 0, beliefs.count
    while at < used and back + beliefs.held[at] < need:
        back += beliefs.held[at]
        at += 1
    i = 0
    while at < used:
        block = beliefs.block[at]
        while i < beliefs.size[at]:
            end = beliefs.times[block, i]
            if back >= need and end > shadow:
                at = used
                break
            back += jobs.processors[beliefs.jobs[block, i]]
            shadow = max(shadow, end)
            i += 1
        at += 1
        i = 0
    if back < need:
        beliefs.shadow, beliefs.spare = FOREVER, 0
    else:
        beliefs.shadow, beliefs.spare = shadow, back - need
