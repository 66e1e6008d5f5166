"""Idle nodes that are switched off: the ledger of idle processors, and what passes do about it.

``environment/power/sleep.py`` says the rules; :class:`~hpcrowd.environment.power.sleep.IdleNodes`
is the same in readable Python. The ledger is one array of integers, behind the scalars of the
engine: first the places below, then rooms for blocks of idle processors (on since, and how many),
for nodes that were switched off (when, and processors), and for starts that had to wait (row of the
job, second of the decision, start). A pass decides as if all nodes were on. A job whose nodes are
off holds its processors from then on and starts when they are on; after the pass its expected end
is set right.

For an account, functions note each move of processors between the states below in ``moves``:
second, from, to, how many. An engine passes an empty array.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.jobs import Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

# Places in the ledger.
(
    AFTER,  # s that a node is idle before it is switched off
    ON_TIME,  # s
    OFF_TIME,  # s
    NODE,  # processors of a node
    SPARE,  # processors that are kept on
    IDLE,  # processors without a job
    KEPT,  # of these, those that are on and will not be switched off
    FIRST,  # block
    LAST,
    OFF_FIRST,  # entry of what was switched off
    OFF_LAST,
    DELAYED,  # starts that are noted
    SEEN,  # of these, those that the policy took note of
    ROOM,  # blocks, entries and starts that there is room for, each
    MOVES,  # noted moves
    SWITCHED_ON,  # nodes
    SWITCHED_OFF,
    HEAD,  # places before the rooms
) = range(18)

#: Integers for each of the blocks, entries and starts that there is room for.
EACH = 7

# States of processors: on without a job; on, for a job of which other nodes are not on yet; being
# switched off; off; being switched on; running a job.
ON, WAITING, SWITCHING_OFF, ASLEEP, SWITCHING_ON, RUNNING, STATES = range(7)


def _note(ledger: Int64s, moves: Int64s, at: int, source: int, target: int, count: int) -> None:
    """Note a move of processors between states, if anyone wants to know."""
    place = 4 * ledger[MOVES]
    if place + 4 <= len(moves):
        moves[place], moves[place + 1] = at, source
        moves[place + 2], moves[place + 3] = target, count
    if len(moves):
        ledger[MOVES] += 1


def settle(ledger: Int64s, now: int, moves: Int64s) -> None:
    """Switch off the nodes whose time is up."""
    since, held = HEAD, HEAD + ledger[ROOM]
    node, spare = ledger[NODE], ledger[SPARE]
    while ledger[FIRST] < ledger[LAST]:
        first = ledger[FIRST]
        off = ledger[since + first] + ledger[AFTER]
        if off > now:
            return
        ledger[FIRST] = first + 1
        count = ledger[held + first]
        stay = count % node
        lacks = spare - ledger[KEPT] - stay
        if lacks > 0:
            stay += min(count - stay, (lacks + node - 1) // node * node)
        ledger[KEPT] += stay
        count -= stay
        if count:
            last = ledger[OFF_LAST]
            ledger[OFF_LAST] = last + 1
            ledger[HEAD + 2 * ledger[ROOM] + last] = off
            ledger[HEAD + 3 * ledger[ROOM] + last] = count
            ledger[SWITCHED_OFF] += count // node
            _note(ledger, moves, off, ON, SWITCHING_OFF, count)
            _note(ledger, moves, off + ledger[OFF_TIME], SWITCHING_OFF, ASLEEP, count)


def give(ledger: Int64s, now: int, count: int, ready: int, moves: Int64s) -> None:
    """Take note of processors that are without a job from now on, and on from ``ready`` on."""
    settle(ledger, now, moves)
    ledger[IDLE] += count
    since, held = HEAD, HEAD + ledger[ROOM]
    at = ledger[LAST]
    while at > ledger[FIRST] and ledger[since + at - 1] > ready:
        at -= 1
    if at > ledger[FIRST] and ledger[since + at - 1] == ready:
        ledger[held + at - 1] += count
        return
    for i in range(ledger[LAST], at, -1):
        ledger[since + i] = ledger[since + i - 1]
        ledger[held + i] = ledger[held + i - 1]
    ledger[since + at], ledger[held + at] = ready, count
    ledger[LAST] += 1


def on_now(ledger: Int64s, now: int) -> int:
    """Return how many idle processors are on; the ledger is settled."""
    since, held = HEAD, HEAD + ledger[ROOM]
    found = ledger[KEPT]
    for i in range(ledger[FIRST], ledger[LAST]):
        if ledger[since + i] <= now:
            found += ledger[held + i]
    return found


def take(ledger: Int64s, now: int, count: int, moves: Int64s) -> int:
    """Take idle processors for a job; return how many s it waits until all of them are on."""
    settle(ledger, now, moves)
    since, held = HEAD, HEAD + ledger[ROOM]
    off_at, off_held = HEAD + 2 * ledger[ROOM], HEAD + 3 * ledger[ROOM]
    need, delay = count, 0
    at = ledger[LAST]  # blocks from here on are being switched on
    while at > ledger[FIRST] and ledger[since + at - 1] > now:
        at -= 1
    end = at
    while need and at > ledger[FIRST]:
        part = min(need, ledger[held + at - 1])
        ledger[held + at - 1] -= part
        need -= part
        if ledger[held + at - 1]:
            break
        at -= 1
    if at < end:  # close the gap
        for i in range(end, ledger[LAST]):
            ledger[since + i - end + at] = ledger[since + i]
            ledger[held + i - end + at] = ledger[held + i]
        ledger[LAST] -= end - at
    part = min(need, ledger[KEPT])
    ledger[KEPT] -= part
    need -= part
    if need == 0:
        _note(ledger, moves, now, ON, RUNNING, count)
    else:
        if need < count:
            _note(ledger, moves, now, ON, WAITING, count - need)
        while need and ledger[FIRST] < ledger[LAST]:
            first = ledger[FIRST]
            ready, part = ledger[since + first], min(need, ledger[held + first])
            ledger[held + first] -= part
            if ledger[held + first] == 0:
                ledger[FIRST] += 1
            need -= part
            delay = max(delay, ready - now)
            _note(ledger, moves, ready, ON, WAITING, part)
        while need and ledger[OFF_FIRST] < ledger[OFF_LAST]:
            first, node = ledger[OFF_FIRST], ledger[NODE]
            part = min(need, ledger[off_held + first])
            woken = (part + node - 1) // node * node
            ledger[off_held + first] -= woken
            off = max(now, ledger[off_at + first] + ledger[OFF_TIME])
            if ledger[off_held + first] == 0:
                ledger[OFF_FIRST] += 1
            need -= part
            ready = off + ledger[ON_TIME]
            delay = max(delay, ready - now)
            ledger[SWITCHED_ON] += woken // node
            _note(ledger, moves, off, ASLEEP, SWITCHING_ON, woken)
            _note(ledger, moves, ready, SWITCHING_ON, ON, woken)
            _note(ledger, moves, ready, ON, WAITING, part)
            if woken > part:
                ledger[IDLE] -= woken - part
                give(ledger, now, woken - part, ready, moves)
        _note(ledger, moves, now + delay, WAITING, RUNNING, count - need)
    ledger[IDLE] -= count - need
    return delay


def note_start(ledger: Int64s, row: int, decided: int, start: int) -> None:
    """Note a start that waits for nodes to be switched on."""
    place = HEAD + 4 * ledger[ROOM] + 3 * ledger[DELAYED]
    ledger[place], ledger[place + 1], ledger[place + 2] = row, decided, start
    ledger[DELAYED] += 1


def make_room(ledger: Int64s, starts: int) -> bool:
    """Move what there is to the front of its room; return whether that many starts have room."""
    room, more = ledger[ROOM], starts + 3
    blocks, offs = ledger[LAST] - ledger[FIRST], ledger[OFF_LAST] - ledger[OFF_FIRST]
    if ledger[DELAYED] + starts > room or 2 * (blocks + offs + more) > room:
        return False
    if ledger[LAST] + more > room:
        _slide(ledger, HEAD, ledger[FIRST], ledger[LAST])
        _slide(ledger, HEAD + room, ledger[FIRST], ledger[LAST])
        ledger[FIRST], ledger[LAST] = 0, blocks
    if ledger[OFF_LAST] + blocks + more > room:
        _slide(ledger, HEAD + 2 * room, ledger[OFF_FIRST], ledger[OFF_LAST])
        _slide(ledger, HEAD + 3 * room, ledger[OFF_FIRST], ledger[OFF_LAST])
        ledger[OFF_FIRST], ledger[OFF_LAST] = 0, offs
    return True


def _slide(ledger: Int64s, base: int, first: int, last: int) -> None:
    """Move places to the front of their room."""
    for i in range(first, last):
        ledger[base + i - first] = ledger[base + i]


def balance(ledger: Int64s, now: int, idle: int) -> None:
    """Let as many processors be without a job as there are now."""
    more = idle - ledger[IDLE]
    if more > 0:
        give(ledger, now, more, now, ledger[:0])
    elif more < 0:
        take(ledger, now, -more, ledger[:0])


def replay(
    ledger: Int64s,
    acquired: Int64s,
    released: Int64s,
    order: Int64s,
    processors: Int64s,
    end: int,
    starts: Int64s,
    moves: Int64s,
) -> int:
    """Take and give back the processors of runs; return the first that finds too few, else -1.

    Parameters
    ----------
    ledger
        With all processors idle, and room for twice the runs.
    acquired, released, processors
        By run, s, s and how many; each is released after it was acquired.
    order
        Runs by when they are released.
    end
        s; what comes then, or later, is left out.
    starts
        Filled with the second at which each run has all its processors on, s.
    moves
        Filled, see the module, but for the first one, shape (4 * moves,). Their number is in the
        ledger, whether they all had room or not.
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
            _note(ledger, moves, ready, RUNNING, ON, processors[job])
            give(ledger, at, processors[job], ready, moves)
            given += 1
        if until >= end:
            settle(ledger, end, moves)
            return -1
        if processors[run] > ledger[IDLE]:
            return run
        starts[run] = until + take(ledger, until, processors[run], moves)
    return -1


# ---- in the engine -------------------------------------------------------------------------------


def prepare(s: Int64s) -> bool:
    """Take note of processors that are free again; return whether a pass has room in the ledger."""
    ledger = s[S.COUNT :]
    if not make_room(ledger, s[S.WAITING]):
        return False
    balance(ledger, s[S.NOW], s[S.FREE])
    return True


def switch_on(jobs: Int64Rows, s: Int64s, job: int) -> int:
    """Take idle processors for a job that starts; return how many s it waits for its nodes.

    A job without length leaves the nodes that are on as they are, however many such jobs run
    within a second.
    """
    ledger, now, need = s[S.COUNT :], s[S.NOW], jobs[S.PROCESSORS, job]
    run = jobs[S.RUN_TIME, job]
    if s[S.KILL]:
        run = min(run, jobs[S.REQUESTED_TIME, job])
    if run == 0:
        settle(ledger, now, ledger[:0])
        if on_now(ledger, now) >= need:
            return 0
    delay = take(ledger, now, need, ledger[:0])
    if delay:
        note_start(ledger, job, now, now + delay)
    return delay


def pending(s: Int64s) -> int:
    """Return how many delayed starts the policy has not taken note of."""
    return s[S.COUNT + DELAYED] - s[S.COUNT + SEEN]


def next_pending(s: Int64s) -> int:
    """Return the row of the next of them, which then counts as noted."""
    ledger = s[S.COUNT :]
    place = HEAD + 4 * ledger[ROOM] + 3 * ledger[SEEN]
    ledger[SEEN] += 1
    return ledger[place]
