"""The processors expected to be free, as a step function of time: a linked list of its steps.

Every reservation has a node where it begins and one where it ends, every running job one where it
is expected to end. Each node begins a step, which lasts until the next node; steps may have no
length. So a reservation that moves only takes its two nodes to other places, mostly a few steps
further.

Consecutive nodes form blocks. A change over a long time adds to whole blocks, not to each node, and
a time is searched among the blocks first.

Nodes of the past stay in the list until their job starts or ends. The step that holds now is that
of the node ``m[HEAD]``. At one time ends come before starts, so no step without length has fewer
free processors than the steps around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

# Columns of nodes; FREE is without what was added to the block.
TIME, FREE, NEXT, PREVIOUS, BLOCK = range(5)
NODE_COLUMNS = 5

#: The nodes before and after all others.
FIRST_NODE, LAST_NODE = 0, 1

#: A time before all others, s.
BEFORE_ALL = -1

#: No node: the reservation begins now.
NO_NODE = -1

#: Most nodes in a block.
WIDTH = 24

# Rows of blocks: the blocks in the order of time (after those in use the unused ones), and when the
# first node of each is (s); by block its first node, its nodes, the processors to add to each, its
# place in that order, and bounds that FREE of its nodes is not below and not above.
ORDER, SINCE, FIRST, SIZE, ADDED, PLACE, LOW, HIGH = range(8)
BLOCK_ROWS = 8

# Places in ``m``: node of the step that holds now, now, unused nodes, blocks in use; steps that a
# search examined.
HEAD, NOW, SPARE, BLOCKS, STEPS = range(5)


@dataclass(eq=False, slots=True)
class Profile:
    """The step function."""

    nodes: Int64Rows  #: time (s), free processors, neighbours, block; shape (nodes, NODE_COLUMNS)
    blocks: Int64Rows  #: see ORDER, shape (BLOCK_ROWS, blocks)
    spare: Int64s  #: unused nodes, shape (nodes,)
    m: Int64s  #: counts, see HEAD, shape (5,) or more


def clear(profile: Profile, now: int, free: int) -> None:
    """Empty the list: so many processors are free for ever."""
    nodes, blocks, spare, m = profile.nodes, profile.blocks, profile.spare, profile.m
    for node in (FIRST_NODE, LAST_NODE):
        nodes[node, TIME] = FOREVER if node else BEFORE_ALL
        nodes[node, FREE] = free
        nodes[node, NEXT] = LAST_NODE
        nodes[node, PREVIOUS] = FIRST_NODE
        nodes[node, BLOCK] = 0
    for block in range(blocks.shape[1]):
        blocks[ORDER, block] = block
    blocks[FIRST, 0], blocks[SIZE, 0], blocks[ADDED, 0], blocks[PLACE, 0] = FIRST_NODE, 1, 0, 0
    blocks[LOW, 0] = blocks[HIGH, 0] = free
    blocks[SINCE, 0] = BEFORE_ALL
    for node in range(2, len(nodes)):
        spare[node - 2] = node
    m[HEAD], m[NOW], m[SPARE], m[BLOCKS] = FIRST_NODE, now, len(nodes) - 2, 1


def level(profile: Profile, node: int) -> int:
    """Return the processors free in the step of a node."""
    return profile.nodes[node, FREE] + profile.blocks[ADDED, profile.nodes[node, BLOCK]]


def since(profile: Profile, node: int) -> int:
    """Return when the step of a node begins, not before now."""
    return max(profile.nodes[node, TIME], profile.m[NOW])


def node_at(profile: Profile, time: int) -> int:
    """Return the last node that is not later than ``time``."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    low, count = 0, m[BLOCKS]
    while count > 1:
        half = count >> 1
        low += half * int(blocks[SINCE, low + half] <= time)
        count -= half
    node = blocks[FIRST, blocks[ORDER, low]]
    following = nodes[node, NEXT]
    while nodes[following, TIME] <= time and following != LAST_NODE:
        node = following
        following = nodes[node, NEXT]
    return node


def _split(profile: Profile, block: int) -> None:
    """Put the second half of a block into an unused one."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    place = blocks[PLACE, block] + 1
    unused = blocks[ORDER, m[BLOCKS]]
    for k in range(m[BLOCKS], place, -1):
        blocks[ORDER, k], blocks[SINCE, k] = blocks[ORDER, k - 1], blocks[SINCE, k - 1]
        blocks[PLACE, blocks[ORDER, k]] = k
    m[BLOCKS] += 1
    blocks[ORDER, place], blocks[PLACE, unused] = unused, place
    kept = blocks[SIZE, block] >> 1
    node = blocks[FIRST, block]
    for _ in range(kept):
        node = nodes[node, NEXT]
    blocks[FIRST, unused], blocks[SIZE, unused] = node, blocks[SIZE, block] - kept
    blocks[SINCE, place] = nodes[node, TIME]
    for row in (ADDED, LOW, HIGH):
        blocks[row, unused] = blocks[row, block]
    for _ in range(blocks[SIZE, unused]):
        nodes[node, BLOCK] = unused
        node = nodes[node, NEXT]
    blocks[SIZE, block] = kept


def _drop(profile: Profile, block: int) -> None:
    """Put an empty block among the unused ones."""
    blocks, m = profile.blocks, profile.m
    m[BLOCKS] -= 1
    for k in range(blocks[PLACE, block], m[BLOCKS]):
        blocks[ORDER, k], blocks[SINCE, k] = blocks[ORDER, k + 1], blocks[SINCE, k + 1]
        blocks[PLACE, blocks[ORDER, k]] = k
    blocks[ORDER, m[BLOCKS]] = block


def _unite(profile: Profile, place: int) -> None:
    """Merge the block at a place with the next, if together they fill at most half of one."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    if place < 0 or place + 1 >= m[BLOCKS]:
        return
    block, other = blocks[ORDER, place], blocks[ORDER, place + 1]
    size = blocks[SIZE, other]
    if blocks[SIZE, block] + size > WIDTH // 2:
        return
    more = blocks[ADDED, other] - blocks[ADDED, block]
    blocks[LOW, block] = min(blocks[LOW, block], blocks[LOW, other] + more)
    blocks[HIGH, block] = max(blocks[HIGH, block], blocks[HIGH, other] + more)
    node = blocks[FIRST, other]
    for _ in range(size):
        nodes[node, FREE] += more
        nodes[node, BLOCK] = block
        node = nodes[node, NEXT]
    blocks[SIZE, block] += size
    _drop(profile, other)


def set_free(profile: Profile, node: int, free: int) -> None:
    """Set the FREE of a node."""
    blocks, block = profile.blocks, profile.nodes[node, BLOCK]
    profile.nodes[node, FREE] = free
    blocks[LOW, block] = min(blocks[LOW, block], free)
    blocks[HIGH, block] = max(blocks[HIGH, block], free)


def unlink(profile: Profile, node: int) -> None:
    """Take a node out of the list; if it holds now, the one before it does, just as free."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    left, right, block = nodes[node, PREVIOUS], nodes[node, NEXT], nodes[node, BLOCK]
    nodes[left, NEXT], nodes[right, PREVIOUS] = right, left
    if m[HEAD] == node:
        set_free(profile, left, level(profile, node) - blocks[ADDED, nodes[left, BLOCK]])
        m[HEAD] = left
    blocks[SIZE, block] -= 1
    if blocks[FIRST, block] == node:
        blocks[FIRST, block] = right
        blocks[SINCE, blocks[PLACE, block]] = nodes[right, TIME]
    if blocks[SIZE, block] < WIDTH // 4:
        place = blocks[PLACE, block]
        if blocks[SIZE, block] == 0:
            _drop(profile, block)
        else:
            _unite(profile, place)
            _unite(profile, place - 1)


def link(profile: Profile, node: int, left: int, time: int, processors: int) -> None:
    """Put a node after another, with so many more processors free than there."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    right, block = nodes[left, NEXT], nodes[left, BLOCK]
    nodes[node, NEXT], nodes[node, PREVIOUS], nodes[node, BLOCK] = right, left, block
    nodes[node, TIME] = time
    set_free(profile, node, nodes[left, FREE] + processors)
    nodes[left, NEXT], nodes[right, PREVIOUS] = node, node
    if left == m[HEAD] and time <= m[NOW]:
        m[HEAD] = node
    blocks[SIZE, block] += 1
    if blocks[SIZE, block] > WIDTH:
        _split(profile, block)


def new_node(profile: Profile, time: int) -> int:
    """Return a new node after all that are not later than ``time``, as free as the last of them."""
    m = profile.m
    left = node_at(profile, time)
    m[SPARE] -= 1
    node = profile.spare[m[SPARE]]
    link(profile, node, left, time, 0)
    return node


def end_node(profile: Profile, time: int) -> int:
    """Return a new node before all others at ``time``, as free as the step before it."""
    m = profile.m
    left = node_at(profile, time - 1)
    m[SPARE] -= 1
    node = profile.spare[m[SPARE]]
    link(profile, node, left, time, 0)
    return node


def remove(profile: Profile, node: int) -> None:
    """Take a node out of the list and keep it for another use."""
    unlink(profile, node)
    profile.spare[profile.m[SPARE]] = node
    profile.m[SPARE] += 1


def add(profile: Profile, node: int, end: int, processors: int) -> None:
    """Add free processors to the steps from a node up to another, without that."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    last = nodes[end, BLOCK] if end != LAST_NODE else -1
    while node != end:
        block = nodes[node, BLOCK]
        if block != last and blocks[FIRST, block] == node:
            blocks[ADDED, block] += processors
            place = blocks[PLACE, block] + 1
            node = blocks[FIRST, blocks[ORDER, place]] if place < m[BLOCKS] else LAST_NODE
        else:
            set_free(profile, node, nodes[node, FREE] + processors)
            node = nodes[node, NEXT]


def occupy(profile: Profile, start: int, end: int, processors: int) -> tuple[int, int]:
    """Take processors from ``start`` to ``end``; return the nodes where they begin and end."""
    first = new_node(profile, start)
    last = end_node(profile, end) if end < FOREVER else LAST_NODE
    add(profile, first, last, -processors)
    return first, last


def pass_time(profile: Profile, now: int) -> None:
    """Let it be ``now``."""
    nodes, m = profile.nodes, profile.m
    m[NOW] = now
    head = m[HEAD]
    while nodes[nodes[head, NEXT], TIME] <= now and nodes[head, NEXT] != LAST_NODE:
        head = nodes[head, NEXT]
    m[HEAD] = head


def next_free(profile: Profile, node: int, processors: int) -> int:
    """Return the first node, from one on, where so many are free; LAST_NODE if there is none."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    if node == LAST_NODE:
        return node
    block = nodes[node, BLOCK]
    added = blocks[ADDED, block]
    while node != LAST_NODE and nodes[node, BLOCK] == block:
        if nodes[node, FREE] + added >= processors:
            return node
        node = nodes[node, NEXT]
        m[STEPS] += 1
    for place in range(blocks[PLACE, block] + 1, m[BLOCKS]):
        block = blocks[ORDER, place]
        m[STEPS] += 1
        wanted = processors - blocks[ADDED, block]
        if blocks[HIGH, block] < wanted:
            continue
        node, bound = blocks[FIRST, block], -FOREVER
        for _ in range(blocks[SIZE, block]):
            free = nodes[node, FREE]
            if free >= wanted:
                return node
            bound = max(bound, free)
            node = nodes[node, NEXT]
        m[STEPS] += blocks[SIZE, block]
        blocks[HIGH, block] = bound
    return LAST_NODE


def earliest(profile: Profile, processors: int, length: int) -> int:
    """Return when ``processors`` are first free for ``length`` s, FOREVER if never."""
    nodes, m = profile.nodes, profile.m
    node = m[HEAD]
    while True:
        node = next_free(profile, node, processors)
        if node == LAST_NODE:
            return FOREVER
        start = since(profile, node)
        while level(profile, node) >= processors:
            if nodes[nodes[node, NEXT], TIME] - start >= length:
                return start
            node = nodes[node, NEXT]


def most_free(profile: Profile, node: int, end: int) -> int:
    """Return a bound that the processors free from a node to another are not above."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    last = nodes[end, BLOCK] if end != LAST_NODE else -1
    most = 0
    while node != end:
        block = nodes[node, BLOCK]
        if block != last and blocks[FIRST, block] == node:
            most = max(most, blocks[HIGH, block] + blocks[ADDED, block])
            place = blocks[PLACE, block] + 1
            node = blocks[FIRST, blocks[ORDER, place]] if place < m[BLOCKS] else LAST_NODE
        else:
            most = max(most, level(profile, node))
            node = nodes[node, NEXT]
    return most


def fits_now(profile: Profile, processors: int, length: int) -> bool:
    """Return whether so many are free so long from now on."""
    return is_free(profile, profile.m[HEAD], processors, profile.m[NOW] + length)


def is_free(profile: Profile, node: int, processors: int, until: int) -> bool:
    """Return whether so many are free from a node to a time."""
    while node != LAST_NODE and since(profile, node) < until:
        if level(profile, node) < processors:
            return False
        node = profile.nodes[node, NEXT]
    return True


def run_begin(profile: Profile, node: int, processors: int) -> int:
    """Return the first node from which so many are free up to a node where they are."""
    nodes, blocks, head = profile.nodes, profile.blocks, profile.m[HEAD]
    last = nodes[head, BLOCK]
    block, low = -1, FOREVER
    while node != head:
        left = nodes[node, PREVIOUS]
        if nodes[left, BLOCK] != nodes[node, BLOCK]:
            if block >= 0 and blocks[FIRST, block] == node:  # seen as a whole
                blocks[LOW, block] = low
            block, low = nodes[left, BLOCK], FOREVER
            if block != last and blocks[LOW, block] + blocks[ADDED, block] >= processors:
                node = blocks[FIRST, block]
                block = -1
                continue
        if level(profile, left) < processors:
            return node
        low = min(low, nodes[left, FREE])
        node = left
    return node


def run_end(profile: Profile, node: int, processors: int, until: int) -> int:
    """Return the first node, from one on, where fewer are free or that is not before a time."""
    nodes, blocks, m = profile.nodes, profile.blocks, profile.m
    while nodes[node, TIME] < until:
        block = nodes[node, BLOCK]
        whole = blocks[FIRST, block] == node
        if whole and blocks[LOW, block] + blocks[ADDED, block] >= processors:
            m[STEPS] += 1
            place = blocks[PLACE, block] + 1
            node = blocks[FIRST, blocks[ORDER, place]] if place < m[BLOCKS] else LAST_NODE
            continue
        added, low = blocks[ADDED, block], FOREVER
        while node != LAST_NODE and nodes[node, BLOCK] == block:
            m[STEPS] += 1
            free = nodes[node, FREE]
            if free + added < processors or nodes[node, TIME] >= until:
                return node
            low = min(low, free)
            node = nodes[node, NEXT]
        if whole:
            blocks[LOW, block] = low
    return node


def begin_in(
    profile: Profile,
    since_when: int,
    until: int,
    processors: int,
    length: int,
    start: int,
    known: int,
) -> int:
    """Return the earliest start before ``start``, in a run of free steps that meets a time span.

    Parameters
    ----------
    profile
        The profile.
    since_when, until
        The span, s.
    processors, length
        What is to be free, and for how long (s).
    start
        The present start; the own place, from there on, is free for the job itself.
    known
        No start before that is possible, -1 if that is not known.

    Returns
    -------
    int
        -1 for none.
    """
    nodes, m = profile.nodes, profile.m
    node = node_at(profile, max(since_when, known, m[NOW]))
    begin = -1
    if level(profile, node) >= processors:
        if known <= since_when:  # otherwise this run is too short
            node = run_begin(profile, node, processors)
        begin = since(profile, node)
    while True:
        if begin < 0:
            node = next_free(profile, nodes[node, NEXT], processors)
            begin = nodes[node, TIME]
            if begin >= start or begin >= until:
                return -1
        enough = min(begin + length, start)
        node = run_end(profile, nodes[node, NEXT], processors, enough)
        if nodes[node, TIME] >= enough:
            return begin
        if nodes[node, TIME] >= until:
            return -1
        begin = -1
