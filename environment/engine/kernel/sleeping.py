"""Idle nodes that are switched off: the ledger of idle processors, and what passes do about it.

``environment/engine/idle.py`` says the rules. A pass decides as if all nodes were on. A job whose
nodes are off holds its processors from then on and starts when they are on; after the pass its
expected end is set right.

For an account, functions note each move of processors between the states below.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

# States of processors: on without a job; on, for a job of which other nodes are not on yet; being
# switched off; off; being switched on; running a job.
ON, WAITING, SWITCHING_OFF, ASLEEP, SWITCHING_ON, RUNNING, STATES = range(7)

#: Rows of a ledger.
ROWS = 7


@dataclass(eq=False, slots=True)
class Ledger:
    """Idle processors: in blocks of those that are on, and of those that were switched off."""

    table: Int64Rows  #: shape (ROWS, entries)
    #: moves for an account: second, from, to, how many, one after the other; room for none in an
    #: engine
    moves: Int64s
    after: int = 0  #: s that a node is idle before it is switched off
    on_time: int = 0  #: s
    off_time: int = 0  #: s
    node: int = 1  #: processors of a node
    spare: int = 0  #: processors that are kept on
    idle: int = 0  #: processors without a job
    kept: int = 0  #: of these, those that are on and will not be switched off
    first: int = 0  #: block
    last: int = 0
    off_first: int = 0  #: entry of what was switched off
    off_last: int = 0
    delayed: int = 0  #: starts that are noted
    seen: int = 0  #: of these, those that the policy took note of
    noted: int = 0  #: moves
    switched_on: int = 0  #: nodes
    switched_off: int = 0

    #: Blocks that are on since a second (s), and their processors; when nodes were switched off,
    #: and their processors; starts that had to wait: job, second of the decision, start.
    since, held, off_at, off_held, job, decided, start = rows("table", ROWS)


def _note(ledger: Ledger, at: int, source: int, target: int, count: int) -> None:
    """Note a move of processors between states, if anyone wants to know."""
    moves, place = ledger.moves, 4 * ledger.noted
    if place + 4 <= len(moves):
        moves[place], moves[place + 1] = at, source
        moves[place + 2], moves[place + 3] = target, count
    if len(moves):
        ledger.noted += 1


def settle(ledger: Ledger, now: int) -> None:
    """Switch off the nodes whose time is up."""
    node, spare = ledger.node, ledger.spare
    while ledger.first < ledger.last:
        first = ledger.first
        off = ledger.since[first] + ledger.after
        if off > now:
            return
        ledger.first = first + 1
        count = ledger.held[first]
        stay = count % node
        lacks = spare - ledger.kept - stay
        if lacks > 0:
            stay += min(count - stay, (lacks + node - 1) // node * node)
        ledger.kept += stay
        count -= stay
        if count:
            last = ledger.off_last
            ledger.off_last = last + 1
            ledger.off_at[last] = off
            ledger.off_held[last] = count
            ledger.switched_off += count // node
            _note(ledger, off, ON, SWITCHING_OFF, count)
            _note(ledger, off + ledger.off_time, SWITCHING_OFF, ASLEEP, count)


def give(ledger: Ledger, now: int, count: int, ready: int) -> None:
    """Take note of processors that are without a job from now on, and on from ``ready`` on."""
    settle(ledger, now)
    ledger.idle += count
    at = ledger.last
    while at > ledger.first and ledger.since[at - 1] > ready:
        at -= 1
    if at > ledger.first and ledger.since[at - 1] == ready:
        ledger.held[at - 1] += count
        return
    for i in range(ledger.last, at, -1):
        ledger.since[i] = ledger.since[i - 1]
        ledger.held[i] = ledger.held[i - 1]
    ledger.since[at], ledger.held[at] = ready, count
    ledger.last += 1


def on_now(ledger: Ledger, now: int) -> int:
    """Return how many idle processors are on; the ledger is settled."""
    found = ledger.kept
    for i in range(ledger.first, ledger.last):
        if ledger.since[i] <= now:
            found += ledger.held[i]
    return found


def take(ledger: Ledger, now: int, count: int) -> int:
    """Take idle processors for a job; return how many s it waits until all of them are on."""
    settle(ledger, now)
    need, delay = count, 0
    at = ledger.last  # blocks from here on are being switched on
    while at > ledger.first and ledger.since[at - 1] > now:
        at -= 1
    end = at
    while need and at > ledger.first:
        part = min(need, ledger.held[at - 1])
        ledger.held[at - 1] -= part
        need -= part
        if ledger.held[at - 1]:
            break
        at -= 1
    if at < end:  # close the gap
        for i in range(end, ledger.last):
            ledger.since[i - end + at] = ledger.since[i]
            ledger.held[i - end + at] = ledger.held[i]
        ledger.last -= end - at
    part = min(need, ledger.kept)
    ledger.kept -= part
    need -= part
    if need == 0:
        _note(ledger, now, ON, RUNNING, count)
    else:
        if need < count:
            _note(ledger, now, ON, WAITING, count - need)
        while need and ledger.first < ledger.last:
            first = ledger.first
            ready, part = ledger.since[first], min(need, ledger.held[first])
            ledger.held[first] -= part
            if ledger.held[first] == 0:
                ledger.first += 1
            need -= part
            delay = max(delay, ready - now)
            _note(ledger, ready, ON, WAITING, part)
        while need and ledger.off_first < ledger.off_last:
            first, node = ledger.off_first, ledger.node
            part = min(need, ledger.off_held[first])
            woken = (part + node - 1) // node * node
            ledger.off_held[first] -= woken
            off = max(now, ledger.off_at[first] + ledger.off_time)
            if ledger.off_held[first] == 0:
                ledger.off_first += 1
            need -= part
            ready = off + ledger.on_time
            delay = max(delay, ready - now)
            ledger.switched_on += woken // node
            _note(ledger, off, ASLEEP, SWITCHING_ON, woken)
            _note(ledger, ready, SWITCHING_ON, ON, woken)
            _note(ledger, ready, ON, WAITING, part)
            if woken > part:
                ledger.idle -= woken - part
                give(ledger, now, woken - part, ready)
        _note(ledger, now + delay, WAITING, RUNNING, count - need)
    ledger.idle -= count - need
    return delay


def take_for(ledger: Ledger, job: int, now: int, need: int, run: int) -> int:
    """Take processors for a job of ``run`` s, and note its start if it waits; return for how long.

    A job without length leaves the nodes that are on as they are, however many such jobs run
    within a second.
    """
    if run == 0:
        settle(ledger, now)
        if on_now(ledger, now) >= need:
            return 0
    delay = take(ledger, now, need)
    if delay:
        at = ledger.delayed
        ledger.job[at], ledger.decided[at], ledger.start[at] = job, now, now + delay
        ledger.delayed += 1
    return delay


def make_room(ledger: Ledger, starts: int) -> bool:
    """Move what there is to the front of its room; return whether that many starts have room."""
    room, more = ledger.table.shape[1], starts + 3
    blocks, offs = ledger.last - ledger.first, ledger.off_last - ledger.off_first
    if ledger.delayed + starts > room or 2 * (blocks + offs + more) > room:
        return False
    if ledger.last + more > room:
        _slide(ledger.since, ledger.first, ledger.last)
        _slide(ledger.held, ledger.first, ledger.last)
        ledger.first, ledger.last = 0, blocks
    if ledger.off_last + blocks + more > room:
        _slide(ledger.off_at, ledger.off_first, ledger.off_last)
        _slide(ledger.off_held, ledger.off_first, ledger.off_last)
        ledger.off_first, ledger.off_last = 0, offs
    return True


def _slide(entries: Int64s, first: int, last: int) -> None:
    """Move entries to the front of their room."""
    for i in range(first, last):
        entries[i - first] = entries[i]


def balance(ledger: Ledger, now: int, idle: int) -> None:
    """Let as many processors be without a job as there are now."""
    more = idle - ledger.idle
    if more > 0:
        give(ledger, now, more, now)
    elif more < 0:
        take(ledger, now, -more)


def replay(
    ledger: Ledger,
    acquired: Int64s,
    released: Int64s,
    order: Int64s,
    processors: Int64s,
    end: int,
    starts: Int64s,
) -> int:
    """Take and give back the processors of runs; return the first that finds too few, else -1.

    Parameters
    ----------
    ledger
        With all processors idle, and room for twice the runs. Its moves are filled; it counts
        those that had no room, too.
    acquired, released, processors
        By run, s, s and how many; each is released after it was acquired.
    order
        Runs by when they are released.
    end
        s; what comes then, or later, is left out.
    starts
        Filled with the second at which each run has all its processors on, s.
    """
    given = 0
    for run in range(len(acquired) + 1):
        until = acquired[run] if run < len(acquired) else FOREVER
        until = min(until, end)
        while given < len(order) and released[order[given]] <= until:
            job = order[given]
            at = released[job]
            if at >= end:
                break
            ready = max(at, starts[job])
            _note(ledger, ready, RUNNING, ON, processors[job])
            give(ledger, at, processors[job], ready)
            given += 1
        if until >= end:
            settle(ledger, end)
            return -1
        if processors[run] > ledger.idle:
            return run
        starts[run] = until + take(ledger, until, processors[run])
    return -1


def pending(ledger: Ledger) -> bool:
    """Return whether there are delayed starts that the policy has not taken note of."""
    return ledger.seen < ledger.delayed


def next_pending(ledger: Ledger) -> int:
    """Return the row of the next of them, which then counts as noted."""
    ledger.seen += 1
    return ledger.job[ledger.seen - 1]
