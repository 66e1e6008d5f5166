"""The processors expected to be free, as a step function of time: a linked list of its steps.

Every reservation has a node where it begins and one where it ends, every running job one where it
is expected to end. Each node begins a step, which lasts until the next node; steps may have no
length. So a reservation that moves only takes its two nodes to other places, mostly a few steps
further.

Consecutive nodes form blocks. A change over a long time adds to whole blocks, not to each node, and
a time is searched among the blocks first.

Nodes of the past stay in the list until their job starts or ends. The step that holds now is that
of the node ``head``. At one time ends come before starts, so no step without length has fewer free
processors than the steps around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import fields, rows
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

#: Columns of nodes, and rows of blocks.
NODE_COLUMNS, BLOCK_ROWS = 5, 8

#: The nodes before and after all others.
FIRST_NODE, LAST_NODE = 0, 1

#: A time before all others, s.
BEFORE_ALL = -1

#: No node: the reservation begins now.
NO_NODE = -1

#: Most nodes in a block.
WIDTH = 24


@dataclass(eq=False, slots=True)
class Profile:
    """The step function."""

    nodes: Int64Rows  #: shape (nodes, NODE_COLUMNS)
    blocks: Int64Rows  #: shape (BLOCK_ROWS, blocks)
    spare: Int64s  #: unused nodes, shape (nodes,)
    head: int = FIRST_NODE  #: of the step that holds now
    now: int = 0
    unused: int = 0  #: nodes
    used: int = 0  #: blocks
    steps: int = 0  #: that a search examined

    #: Of a node: time (s), free processors without what was added to its block, its neighbours, and
    #: the block.
    time, free, next, previous, block = fields("nodes", NODE_COLUMNS)
    #: The blocks in the order of time (after those in use the unused ones), and when the first node
    #: of each is (s); of a block its first node, its nodes, the processors to add to each, its
    #: place in that order, and bounds that ``free`` of its nodes is not below and not above.
    order, since, first, size, added, place, low, high = rows("blocks", BLOCK_ROWS)


def clear(profile: Profile, now: int, free: int) -> None:
    """Empty the list: so many processors are free for ever."""
    nodes, blocks, spare = profile.nodes, profile.blocks, profile.spare
    for node in (FIRST_NODE, LAST_NODE):
        profile.time[node] = FOREVER if node else BEFORE_ALL
        profile.free[node] = free
        profile.next[node] = LAST_NODE
        profile.previous[node] = FIRST_NODE
        profile.block[node] = 0
    for block in range(blocks.shape[1]):
        profile.order[block] = block
    profile.first[0], profile.size[0], profile.added[0], profile.place[0] = FIRST_NODE, 1, 0, 0
    profile.low[0] = profile.high[0] = free
    profile.since[0] = BEFORE_ALL
    for node in range(2, len(nodes)):
        spare[node - 2] = node
    profile.head, profile.now, profile.unused, profile.used = FIRST_NODE, now, len(nodes) - 2, 1


def level(profile: Profile, node: int) -> int:
    """Return the processors free in the step of a node."""
    return profile.free[node] + profile.added[profile.block[node]]


def since(profile: Profile, node: int) -> int:
    """Return when the step of a node begins, not before now."""
    return max(profile.time[node], profile.now)


def node_at(profile: Profile, time: int) -> int:
    """Return the last node that is not later than ``time``."""
    low, count = 0, profile.used
    while count > 1:
        half = count >> 1
        low += half * int(profile.since[low + half] <= time)
        count -= half
    node = profile.first[profile.order[low]]
    following = profile.next[node]
    while profile.time[following] <= time and following != LAST_NODE:
        node = following
        following = profile.next[node]
    return node


def _split(profile: Profile, block: int) -> None:
    """Put the second half of a block into an unused one."""
    place = profile.place[block] + 1
    unused = profile.order[profile.used]
    for k in range(profile.used, place, -1):
        profile.order[k], profile.since[k] = profile.order[k - 1], profile.since[k - 1]
        profile.place[profile.order[k]] = k
    profile.used += 1
    profile.order[place], profile.place[unused] = unused, place
    kept = profile.size[block] >> 1
    node = profile.first[block]
    for _ in range(kept):
        node = profile.next[node]
    profile.first[unused], profile.size[unused] = node, profile.size[block] - kept
    profile.since[place] = profile.time[node]
    profile.added[unused] = profile.added[block]
    profile.low[unused], profile.high[unused] = profile.low[block], profile.high[block]
    for _ in range(profile.size[unused]):
        profile.block[node] = unused
        node = profile.next[node]
    profile.size[block] = kept


def _drop(profile: Profile, block: int) -> None:
    """Put an empty block among the unused ones."""
    profile.used -= 1
    for k in range(profile.place[block], profile.used):
        profile.order[k], profile.since[k] = profile.order[k + 1], profile.since[k + 1]
        profile.place[profile.order[k]] = k
    profile.order[profile.used] = block


def _unite(profile: Profile, place: int) -> None:
    """Merge the block at a place with the next, if together they fill at most half of one."""
    if place < 0 or place + 1 >= profile.used:
        return
    block, other = profile.order[place], profile.order[place + 1]
    size = profile.size[other]
    if profile.size[block] + size > WIDTH // 2:
        return
    more = profile.added[other] - profile.added[block]
    profile.low[block] = min(profile.low[block], profile.low[other] + more)
    profile.high[block] = max(profile.high[block], profile.high[other] + more)
    node = profile.first[other]
    for _ in range(size):
        profile.free[node] += more
        profile.block[node] = block
        node = profile.next[node]
    profile.size[block] += size
    _drop(profile, other)


def set_free(profile: Profile, node: int, free: int) -> None:
    """Set what is free at a node, without what was added to its block."""
    block = profile.block[node]
    profile.free[node] = free
    profile.low[block] = min(profile.low[block], free)
    profile.high[block] = max(profile.high[block], free)


def unlink(profile: Profile, node: int) -> None:
    """Take a node out of the list; if it holds now, the one before it does, just as free."""
    left, right, block = profile.previous[node], profile.next[node], profile.block[node]
    profile.next[left], profile.previous[right] = right, left
    if profile.head == node:
        set_free(profile, left, level(profile, node) - profile.added[profile.block[left]])
        profile.head = left
    profile.size[block] -= 1
    if profile.first[block] == node:
        profile.first[block] = right
        profile.since[profile.place[block]] = profile.time[right]
    if profile.size[block] < WIDTH // 4:
        place = profile.place[block]
        if profile.size[block] == 0:
            _drop(profile, block)
        else:
            _unite(profile, place)
            _unite(profile, place - 1)


def link(profile: Profile, node: int, left: int, time: int, processors: int) -> None:
    """Put a node after another, with so many more processors free than there."""
    right, block = profile.next[left], profile.block[left]
    profile.next[node], profile.previous[node], profile.block[node] = right, left, block
    profile.time[node] = time
    set_free(profile, node, profile.free[left] + processors)
    profile.next[left], profile.previous[right] = node, node
    if left == profile.head and time <= profile.now:
        profile.head = node
    profile.size[block] += 1
    if profile.size[block] > WIDTH:
        _split(profile, block)


def new_node(profile: Profile, time: int) -> int:
    """Return a new node after all that are not later than ``time``, as free as the last of them."""
    left = node_at(profile, time)
    profile.unused -= 1
    node = profile.spare[profile.unused]
    link(profile, node, left, time, 0)
    return node


def end_node(profile: Profile, time: int) -> int:
    """Return a new node before all others at ``time``, as free as the step before it."""
    left = node_at(profile, time - 1)
    profile.unused -= 1
    node = profile.spare[profile.unused]
    link(profile, node, left, time, 0)
    return node


def remove(profile: Profile, node: int) -> None:
    """Take a node out of the list and keep it for another use."""
    unlink(profile, node)
    profile.spare[profile.unused] = node
    profile.unused += 1


def add(profile: Profile, node: int, end: int, processors: int) -> None:
    """Add free processors to the steps from a node up to another, without that."""
    last = profile.block[end] if end != LAST_NODE else -1
    while node != end:
        block = profile.block[node]
        if block != last and profile.first[block] == node:
            profile.added[block] += processors
            place = profile.place[block] + 1
            node = profile.first[profile.order[place]] if place < profile.used else LAST_NODE
        else:
            set_free(profile, node, profile.free[node] + processors)
            node = profile.next[node]


def occupy(profile: Profile, start: int, end: int, processors: int) -> tuple[int, int]:
    """Take processors from ``start`` to ``end``; return the nodes where they begin and end."""
    first = new_node(profile, start)
    last = end_node(profile, end) if end < FOREVER else LAST_NODE
    add(profile, first, last, -processors)
    return first, last


def pass_time(profile: Profile, now: int) -> None:
    """Let it be ``now``."""
    profile.now = now
    head = profile.head
    while profile.time[profile.next[head]] <= now and profile.next[head] != LAST_NODE:
        head = profile.next[head]
    profile.head = head


def next_free(profile: Profile, node: int, processors: int) -> int:
    """Return the first node, from one on, where so many are free; LAST_NODE if there is none."""
    if node == LAST_NODE:
        return node
    block = profile.block[node]
    added = profile.added[block]
    while node != LAST_NODE and profile.block[node] == block:
        if profile.free[node] + added >= processors:
            return node
        node = profile.next[node]
        profile.steps += 1
    for place in range(profile.place[block] + 1, profile.used):
        block = profile.order[place]
        profile.steps += 1
        wanted = processors - profile.added[block]
        if profile.high[block] < wanted:
            continue
        node, bound = profile.first[block], -FOREVER
        for _ in range(profile.size[block]):
            free = profile.free[node]
            if free >= wanted:
                return node
            bound = max(bound, free)
            node = profile.next[node]
        profile.steps += profile.size[block]
        profile.high[block] = bound
    return LAST_NODE


def earliest(profile: Profile, processors: int, length: int) -> int:
    """Return when ``processors`` are first free for ``length`` s, FOREVER if never."""
    node = profile.head
    while True:
        node = next_free(profile, node, processors)
        if node == LAST_NODE:
            return FOREVER
        start = since(profile, node)
        while level(profile, node) >= processors:
            if profile.time[profile.next[node]] - start >= length:
                return start
            node = profile.next[node]


def most_free(profile: Profile, node: int, end: int) -> int:
    """Return a bound that the processors free from a node to another are not above."""
    last = profile.block[end] if end != LAST_NODE else -1
    most = 0
    while node != end:
        block = profile.block[node]
        if block != last and profile.first[block] == node:
            most = max(most, profile.high[block] + profile.added[block])
            place = profile.place[block] + 1
            node = profile.first[profile.order[place]] if place < profile.used else LAST_NODE
        else:
            most = max(most, level(profile, node))
            node = profile.next[node]
    return most


def fits_now(profile: Profile, processors: int, length: int) -> bool:
    """Return whether so many are free so long from now on."""
    return is_free(profile, profile.head, processors, profile.now + length)


def is_free(profile: Profile, node: int, processors: int, until: int) -> bool:
    """Return whether so many are free from a node to a time."""
    while node != LAST_NODE and since(profile, node) < until:
        if level(profile, node) < processors:
            return False
        node = profile.next[node]
    return True


def run_begin(profile: Profile, node: int, processors: int) -> int:
    """Return the first node from which so many are free up to a node where they are."""
    head = profile.head
    last = profile.block[head]
    block, low = -1, FOREVER
    while node != head:
        left = profile.previous[node]
        if profile.block[left] != profile.block[node]:
            if block >= 0 and profile.first[block] == node:  # seen as a whole
                profile.low[block] = low
            block, low = profile.block[left], FOREVER
            if block != last and profile.low[block] + profile.added[block] >= processors:
                node = profile.first[block]
                block = -1
                continue
        if level(profile, left) < processors:
            return node
        low = min(low, profile.free[left])
        node = left
    return node


def run_end(profile: Profile, node: int, processors: int, until: int) -> int:
    """Return the first node, from one on, where fewer are free or that is not before a time."""
    while profile.time[node] < until:
        block = profile.block[node]
        whole = profile.first[block] == node
        if whole and profile.low[block] + profile.added[block] >= processors:
            profile.steps += 1
            place = profile.place[block] + 1
            node = profile.first[profile.order[place]] if place < profile.used else LAST_NODE
            continue
        added, low = profile.added[block], FOREVER
        while node != LAST_NODE and profile.block[node] == block:
            profile.steps += 1
            free = profile.free[node]
            if free + added < processors or profile.time[node] >= until:
                return node
            low = min(low, free)
            node = profile.next[node]
        if whole:
            profile.low[block] = low
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
    node = node_at(profile, max(since_when, known, profile.now))
    begin = -1
    if level(profile, node) >= processors:
        if known <= since_when:  # otherwise this run is too short
            node = run_begin(profile, node, processors)
        begin = since(profile, node)
    while True:
        if begin < 0:
            node = next_free(profile, profile.next[node], processors)
            begin = profile.time[node]
            if begin >= start or begin >= until:
                return -1
        enough = min(begin + length, start)
        node = run_end(profile, profile.next[node], processors, enough)
        if profile.time[node] >= enough:
            return begin
        if profile.time[node] >= until:
            return -1
        begin = -1
