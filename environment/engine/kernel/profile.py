"""The processors expected to be free, as a step function of time, in blocks of steps.

A plan of thousands of jobs has thousands of steps, but a change affects only a few of them. So
steps are kept in blocks of :data:`WIDTH`, and a change moves the steps of one block.
A position is the column of its block times WIDTH, plus its place in the block.
"""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.compilation import compiled, inlined
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

#: Steps in a block; a power of two.
SHIFT = 5
WIDTH = 1 << SHIFT
MASK = WIDTH - 1

#: Rows of ``heads``: the block, the time of its first step, how many it has, the most processors
#: free at a marked step of it (-1 without marks). After the last column stand the unused blocks.
BLOCK, SINCE, SIZE, GAINED = range(4)
HEADS = 4

# Places in ``m``: blocks in use, and where something became free, from and to.
BLOCKS, GAIN_FROM, GAIN_TO = range(3)

# Rows of a block.
TIME, FREE, MARK = range(3)

#: Marks of steps.
BEFORE, LATELY = 1, 2


class Profile(NamedTuple):
    """The step function."""

    #: step i of block b is ``[b, :, i]``: time (s), processors free from then to the next
    #: step (the last for ever), and whether something became free there that not all waiting jobs
    #: have looked at (LATELY in this walk through the queue, BEFORE earlier); (blocks, 3, WIDTH)
    steps: Int64s
    heads: Int64s  #: the blocks in the order of time, see BLOCK, shape (HEADS, blocks)
    m: Int64s  #: counts, see BLOCKS, shape (3,) or more


@inlined
def _block_at(profile, time):
    """Return the block of the step that holds at ``time``; the first, if that is later."""
    heads, m = profile.heads, profile.m
    low, count = 0, m[BLOCKS]
    while count > 1:
        half = count >> 1
        low += half * (heads[SINCE, low + half] <= time)  # no branch to be guessed wrong
        count -= half
    return low


@compiled
def position_of(profile, time):
    """Return the position of the step that holds at ``time``; of the first, if that is later."""
    steps, heads = profile.steps, profile.heads
    low = _block_at(profile, time)
    times = steps[heads[BLOCK, low], TIME]
    begun = 0  # counting all of them needs no branches
    for i in range(heads[SIZE, low]):
        begun += times[i] <= time
    return (low << SHIFT) + max(begun - 1, 0)


@inlined
def after(profile, position):
    """Return the next position, the end of the last block if there is none."""
    heads = profile.heads
    column = position >> SHIFT
    if (position & MASK) + 1 < heads[SIZE, column]:
        return position + 1
    return (column + 1) << SHIFT


@inlined
def before(profile, position):
    """Return the position before one that is not the first."""
    heads = profile.heads
    if position & MASK:
        return position - 1
    column = (position >> SHIFT) - 1
    return (column << SHIFT) + heads[SIZE, column] - 1


@inlined
def read(profile, position, row):
    """Return the values of the step at a position."""
    steps, heads = profile.steps, profile.heads
    return steps[heads[BLOCK, (position >> SHIFT)], row, (position & MASK)]


@inlined
def free_now(profile):
    """Return the processors free at the first step."""
    steps, heads = profile.steps, profile.heads
    return steps[heads[BLOCK, 0], FREE, 0]


@compiled
def _note(profile, column):
    """Update the head of a block."""
    steps, heads = profile.steps, profile.heads
    block = heads[BLOCK, column]
    heads[SINCE, column] = steps[block, TIME, 0]
    gained = -1
    for i in range(heads[SIZE, column]):
        if steps[block, MARK, i]:
            gained = max(gained, steps[block, FREE, i], 0)
    heads[GAINED, column] = gained


@compiled
def _split(profile, column):
    """Put the second half of a full block into an unused one."""
    steps, heads, m = profile
    unused = heads[BLOCK, m[BLOCKS]]
    for k in range(m[BLOCKS], column + 1, -1):
        for row in range(HEADS):
            heads[row, k] = heads[row, k - 1]
    m[BLOCKS] += 1
    block = heads[BLOCK, column]
    half = WIDTH // 2
    for row in range(3):
        for i in range(half, WIDTH):
            steps[unused, row, i - half] = steps[block, row, i]
    heads[BLOCK, column + 1] = unused
    heads[SIZE, column], heads[SIZE, column + 1] = half, WIDTH - half
    _note(profile, column)
    _note(profile, column + 1)


@compiled
def _drop(profile, column):
    """Put an empty block among the unused ones."""
    heads, m = profile.heads, profile.m
    block = heads[BLOCK, column]
    m[BLOCKS] -= 1
    for k in range(column, m[BLOCKS]):
        for row in range(HEADS):
            heads[row, k] = heads[row, k + 1]
    heads[BLOCK, m[BLOCKS]] = block


@compiled
def _unite_blocks(profile, column):
    """Merge a block with the next, if together they fill at most half of one."""
    steps, heads, m = profile
    if column < 0 or column + 1 >= m[BLOCKS]:
        return
    size, more = heads[SIZE, column], heads[SIZE, column + 1]
    if size + more > WIDTH // 2:
        return
    block, other = heads[BLOCK, column], heads[BLOCK, column + 1]
    for row in range(3):
        for i in range(more):
            steps[block, row, size + i] = steps[other, row, i]
    heads[SIZE, column] = size + more
    _drop(profile, column + 1)
    _note(profile, column)


@compiled
def _begin_step(profile, time):
    """Begin a step at ``time`` and return its position."""
    steps, heads = profile.steps, profile.heads
    position = position_of(profile, time)
    if read(profile, position, TIME) == time:
        return position
    column = position >> SHIFT
    if heads[SIZE, column] == WIDTH:
        _split(profile, column)
        position = position_of(profile, time)
        column = position >> SHIFT
    block, at = heads[BLOCK, column], (position & MASK) + 1
    for row in range(3):
        for i in range(heads[SIZE, column], at, -1):
            steps[block, row, i] = steps[block, row, i - 1]
        steps[block, row, at] = steps[block, row, at - 1]
    steps[block, TIME, at] = time
    heads[SIZE, column] += 1
    return position + 1


@compiled
def _unite(profile, position):
    """Merge a step with the one before it, if they are the same."""
    steps, heads = profile.steps, profile.heads
    if position == 0:
        return
    left = before(profile, position)
    for row in (FREE, MARK):
        if read(profile, position, row) != read(profile, left, row):
            return
    column, at = (position >> SHIFT), (position & MASK)
    block = heads[BLOCK, column]
    heads[SIZE, column] -= 1
    size = heads[SIZE, column]
    if size == 0:
        _drop(profile, column)
        return
    for row in range(3):
        for i in range(at, size):
            steps[block, row, i] = steps[block, row, i + 1]
    heads[SINCE, column] = steps[block, TIME, 0]
    if size < WIDTH // 4:
        _unite_blocks(profile, column)
        _unite_blocks(profile, column - 1)


@compiled
def change(profile, start, end, processors, mark):
    """Add free processors from ``start`` to ``end``, and mark the steps between."""
    steps, heads, m = profile
    first = _begin_step(profile, start)
    blocks, last = m[BLOCKS], FOREVER
    if end < FOREVER:
        last = _begin_step(profile, end)
        if m[BLOCKS] > blocks:
            first = position_of(profile, start)
    column, i = first >> SHIFT, first & MASK
    while column < m[BLOCKS] and (column << SHIFT) <= last:
        block, size = heads[BLOCK, column], heads[SIZE, column]
        if column == last >> SHIFT:
            size = last & MASK
        for k in range(i, size):
            steps[block, FREE, k] += processors
            steps[block, MARK, k] |= mark
        if mark or heads[GAINED, column] >= 0:
            _note(profile, column)
        column += 1
        i = 0
    if mark:
        m[GAIN_FROM] = min(m[GAIN_FROM], start)
        m[GAIN_TO] = max(m[GAIN_TO], end)
    blocks = m[BLOCKS]
    if end < FOREVER:
        _unite(profile, last)
        if m[BLOCKS] < blocks:
            first = position_of(profile, start)
    _unite(profile, first)


@compiled
def pass_time(profile, now):
    """Remove the steps in the past."""
    steps, heads = profile.steps, profile.heads
    position = position_of(profile, now)
    for _ in range(position >> SHIFT):
        _drop(profile, 0)
    gone = position & MASK
    block = heads[BLOCK, 0]
    heads[SIZE, 0] -= gone
    if gone:
        for row in range(3):
            for i in range(heads[SIZE, 0]):
                steps[block, row, i] = steps[block, row, i + gone]
    steps[block, TIME, 0] = now
    _note(profile, 0)


@compiled
def earliest(profile, processors, length):
    """Return when ``processors`` are first free for ``length`` s, FOREVER if never."""
    steps, heads, m = profile
    start = heads[SINCE, 0]
    enough = True
    for column in range(m[BLOCKS]):
        block = heads[BLOCK, column]
        for i in range(heads[SIZE, column]):
            time = steps[block, TIME, i]
            if not enough:
                start = time
            elif time - start >= length:
                return start
            enough = steps[block, FREE, i] >= processors
    return start if enough else FOREVER


@compiled
def fits_now(profile, processors, length):
    """Return whether so many are free so long from the first step on."""
    steps, heads, m = profile
    until = heads[SINCE, 0] + length
    for column in range(m[BLOCKS]):
        block = heads[BLOCK, column]
        for i in range(heads[SIZE, column]):
            if steps[block, TIME, i] >= until:
                return True
            if steps[block, FREE, i] < processors:
                return False
    return True


@inlined
def _run_begin(profile, position, processors):
    """Return the first position from which so many are free up to ``position``."""
    while position > 0:
        left = before(profile, position)
        if read(profile, left, FREE) < processors:
            break
        position = left
    return position


@compiled
def earlier(profile, processors, length, start, known):
    """Return the earliest start before ``start`` of a job that is planned there, -1 for none.

    Only what became free is looked at: nothing else can let a job start earlier; and no start
    before ``known``, where nothing is long enough. The job's own place, from ``start`` on, is free
    for itself.
    """
    steps, heads, m = profile
    position = position_of(profile, max(known, m[GAIN_FROM]))
    if known < m[GAIN_FROM] and read(profile, position, FREE) >= processors:
        position = _run_begin(profile, position, processors)
    column, i = position >> SHIFT, position & MASK
    begin = -1
    while column < m[BLOCKS]:
        if begin < 0 and heads[GAINED, column] < processors:
            column += 1
            i = 0
            if column < m[BLOCKS] and heads[SINCE, column] >= start:
                return -1
            # A run may have begun in the blocks that were passed over.
            if (
                column < m[BLOCKS]
                and heads[GAINED, column] >= processors
                and read(profile, column << SHIFT, FREE) >= processors
            ):
                left = _run_begin(profile, column << SHIFT, processors)
                begin = max(read(profile, left, TIME), known)
            continue
        block, size = heads[BLOCK, column], heads[SIZE, column]
        while i < size:
            time = steps[block, TIME, i]
            if begin >= 0 and time - begin >= length:
                return begin
            if time >= start:
                if begin < 0:
                    return -1
                # The own place is reached, so how long this run is does not matter.
                position = position_of(profile, begin)
                left = _run_begin(profile, position, processors)
                return read(profile, left, TIME)
            if steps[block, FREE, i] < processors:
                begin = -1
            elif begin < 0:
                begin = max(time, known)
            i += 1
        column += 1
        i = 0
    if begin < 0:
        return -1
    left = _run_begin(profile, position_of(profile, begin), processors)
    return read(profile, left, TIME)


@compiled
def most_gained(profile):
    """Return the most free processors at a marked step."""
    heads, m = profile.heads, profile.m
    most = -1
    column = _block_at(profile, m[GAIN_FROM])
    while column < m[BLOCKS] and heads[SINCE, column] < m[GAIN_TO]:
        most = max(most, heads[GAINED, column])
        column += 1
    return most


@compiled
def age_gains(profile):
    """After a walk through the queue: remove older marks, keep those made in the walk."""
    steps, heads, m = profile
    first = _block_at(profile, m[GAIN_FROM])
    column = _block_at(profile, m[GAIN_TO])
    end = FOREVER if column + 1 == m[BLOCKS] else heads[SINCE, column + 1]
    m[GAIN_FROM], m[GAIN_TO] = FOREVER, 0
    while column >= first:
        since = heads[SINCE, column]
        if heads[GAINED, column] >= 0:
            block = heads[BLOCK, column]
            to = 0
            for i in range(heads[SIZE, column]):
                mark = steps[block, MARK, i] >> 1
                if mark:
                    m[GAIN_FROM] = min(m[GAIN_FROM], steps[block, TIME, i])
                    m[GAIN_TO] = max(m[GAIN_TO], end)
                free = steps[block, FREE, i]
                if (
                    to == 0
                    or free != steps[block, FREE, to - 1]
                    or mark != steps[block, MARK, to - 1]
                ):
                    steps[block, TIME, to] = steps[block, TIME, i]
                    steps[block, FREE, to] = free
                    steps[block, MARK, to] = mark
                    to += 1
            heads[SIZE, column] = to
            _note(profile, column)
            _unite_blocks(profile, column)
        end = since
        column -= 1
