"""Switching idle nodes off after a time, on a pool of equal processors.

The rule, the same in both engines and in the account of the states afterwards:

- Idle processors form blocks by the second since when they are idle; those of one second are one
  block. When the run begins, all processors are idle since then.
- When a block has been idle for ``after``, its whole nodes are switched off: of a block of 10
  processors on nodes of 4, two nodes; the 2 processors left stay on. Of these nodes, as many as are
  needed stay on until ``spare`` idle processors are kept on. What is kept on is not switched off
  until a job has used it.
- A node is off ``off_time`` after it was switched off, and on ``on_time`` after it was switched on.
  One that is being switched off is switched on when it is off.
- A job takes those idle the shortest first, so that others can sleep; then those kept on; then
  those being switched on, the first to be on first; then those that are off, the longest off first.
  Off nodes are switched on as a whole: processors that the job does not need are idle and count as
  such from when they are on.
- The job holds its processors from the decision on, and starts when all of them are on. The
  scheduler decides as if all nodes were on, and expects the end of the job accordingly later from
  its next pass on.
- A job that is stopped before it starts gives its processors back at once, but none of them is
  used before that start.

Switching takes no part in the choice of jobs: a job that EASY starts behind the head may delay it
by the time to switch nodes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.engine.kernel import sleeping as L
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.power.description import NodePower


@dataclass(frozen=True)
class SleepRule:
    """When idle nodes are switched off.

    Attributes
    ----------
    after
        s that a node is idle before it is switched off.
    spare
        Idle processors that stay on, rounded up to whole nodes.

    Raises
    ------
    QuantityError
        If ``after`` is below 1 s, or ``spare`` is negative.
    """

    after: int
    spare: int = 0

    def __post_init__(self) -> None:
        if self.after < 1:
            raise QuantityError(f"sleep after {self.after} s: must be at least 1 s")
        if self.spare < 0:
            raise QuantityError(f"sleep spare {self.spare}: must be 0 or more processors")


class DelayedStart(NamedTuple):
    """A start that waited for nodes to be switched on."""

    row: int  #: row of the job in the table
    decided: int  #: s since the origin; from then on it held its processors
    start: int  #: s since the origin, when all of them were on


class IdleNodes:
    """The idle processors of a machine: the rule of the module in plain Python.

    Parameters
    ----------
    rule, node
        When nodes are switched off, and how long switching takes.
    processors
        All of the machine, idle from ``begin`` on.
    begin
        s since the origin.

    Attributes
    ----------
    idle
        Processors without a job.
    """

    def __init__(self, rule: SleepRule, node: NodePower, processors: int, begin: int = 0) -> None:
        self.rule, self.node = rule, node
        self.idle = processors
        self._spare = _whole(rule.spare, node)
        self._blocks = [[begin, processors]]  # on since, and how many, by time
        self._kept = 0
        self._off: list[list[int]] = []  # when they were switched off, and processors, by time

    def give(self, now: int, count: int, ready: int | None = None) -> None:
        """Take note of processors that are without a job now, and on from ``ready`` on."""
        self._settle(now)
        ready = now if ready is None else ready
        self.idle += count
        at = len(self._blocks)
        while at and self._blocks[at - 1][0] > ready:
            at -= 1
        if at and self._blocks[at - 1][0] == ready:
            self._blocks[at - 1][1] += count
        else:
            self._blocks.insert(at, [ready, count])

    def take(self, now: int, count: int) -> int:
        """Take idle processors for a job; return how many s it waits until all of them are on."""
        self._settle(now)
        blocks, node = self._blocks, self.node
        self.idle -= count
        delay = 0
        on = [block for block in blocks if block[0] <= now]
        for block in reversed(on):
            part = min(count, block[1])
            block[1] -= part
            count -= part
        part = min(count, self._kept)
        self._kept -= part
        count -= part
        for block in blocks[len(on) :]:
            part = min(count, block[1])
            block[1] -= part
            count -= part
            if part:
                delay = max(delay, block[0] - now)
        self._blocks = [block for block in blocks if block[1]]
        while count:
            off_at, off = self._off[0]
            part = min(count, off)
            woken = _whole(part, node)
            self._off[0][1] -= woken
            if off == woken:
                self._off.pop(0)
            count -= part
            ready = max(now, off_at + node.off_time) + node.on_time
            delay = max(delay, ready - now)
            if woken > part:
                self.idle -= woken - part
                self.give(now, woken - part, ready)
        return delay

    def start(self, now: int, count: int, run: int) -> int:
        """Take idle processors for a job of ``run`` s; return how many s it waits.

        A job without length leaves the nodes that are on as they are, however many such jobs run
        within a second.
        """
        self._settle(now)
        on = self._kept + sum(block[1] for block in self._blocks if block[0] <= now)
        return 0 if run == 0 and on >= count else self.take(now, count)

    def balance(self, now: int, idle: int) -> None:
        """Let as many processors be without a job as there are now."""
        if idle > self.idle:
            self.give(now, idle - self.idle)
        elif idle < self.idle:
            self.take(now, self.idle - idle)

    def _settle(self, now: int) -> None:
        """Switch off the nodes whose time is up."""
        while self._blocks and self._blocks[0][0] + self.rule.after <= now:
            since, count = self._blocks.pop(0)
            stay = count % self.node.processors
            lacks = self._spare - self._kept - stay
            if lacks > 0:
                stay += min(count - stay, _whole(lacks, self.node))
            self._kept += stay
            if count > stay:
                self._off.append([since + self.rule.after, count - stay])


def _whole(processors: int, node: NodePower) -> int:
    """Return processors rounded up to whole nodes."""
    return -(-processors // node.processors) * node.processors


def ledger_of(
    rule: SleepRule, node: NodePower, processors: int, begin: int, room: int, moves: int = 0
) -> L.Ledger:
    """Return the ledger of the compiled code: all processors are idle since ``begin``.

    Parameters
    ----------
    rule, node, processors, begin
        As for :class:`IdleNodes`.
    room, moves
        Entries, and noted moves, that it has room for.
    """
    made = L.Ledger(np.zeros((L.ROWS, room), np.int64), np.zeros(4 * moves, np.int64))
    made.after, made.on_time, made.off_time = rule.after, node.on_time, node.off_time
    made.node, made.spare = node.processors, _whole(rule.spare, node)
    made.idle, made.last = processors, 1
    made.since[0], made.held[0] = begin, processors
    return made


def widen_ledger(ledger: L.Ledger, starts: int) -> list[DelayedStart]:
    """Give a ledger room for a pass with as many starts; return the starts noted so far.

    Those that the policy has not taken note of stay in the ledger, too, at its front.
    """
    blocks, offs = ledger.last - ledger.first, ledger.off_last - ledger.off_first
    pending, old = ledger.delayed - ledger.seen, np.asarray(ledger.table)
    room = max(old.shape[1], 4 * (blocks + offs + starts + pending) + 64)
    made = np.zeros((L.ROWS, room), np.int64)
    made[:2, :blocks] = old[:2, ledger.first : ledger.last]
    made[2:4, :offs] = old[2:4, ledger.off_first : ledger.off_last]
    made[4:, :pending] = old[4:, ledger.seen : ledger.delayed]
    noted = noted_starts(ledger)[: ledger.seen]
    ledger.first, ledger.last, ledger.off_first, ledger.off_last = 0, blocks, 0, offs
    ledger.seen, ledger.delayed, ledger.table = 0, pending, made
    return noted


def noted_starts(ledger: L.Ledger) -> list[DelayedStart]:
    """Return the delayed starts in a ledger, in order."""
    starts = np.asarray(ledger.table)[4:, : ledger.delayed].T.tolist()
    return [DelayedStart(*one) for one in starts]


class Stopped(Protocol):
    """A run of a job that was stopped, see ``engine.attempts``."""

    @property
    def row(self) -> int:
        """Row of the job in the table."""

    @property
    def start(self) -> int:
        """When the run began, s since the origin."""

    @property
    def end(self) -> int:
        """When it was stopped, s since the origin."""

    @property
    def processors(self) -> int:
        """What it held."""


class Holdings(NamedTuple):
    """Runs that hold processors, by the second of the decision; those of a second by start."""

    acquired: Int64s  #: s since the origin, the decision to start
    started: Int64s  #: s since the origin, the start
    released: Int64s  #: s since the origin, the end; ``end`` of the account if it is later
    processors: Int64s
    rows: Int64s  #: rows of the jobs in the table


def holdings(
    jobs: JobTable,
    cluster: int,
    delayed: Sequence[DelayedStart],
    stopped: Sequence[Stopped],
    end: int,
) -> Holdings:
    """Return all runs of a cluster until a second, with when they got and gave back processors.

    Parameters
    ----------
    jobs, cluster
        The table, and the number of the cluster in it.
    delayed
        Of its engine.
    stopped
        Runs that are not in the table, of ``engine.attempts.runs_of``.
    end
        s since the origin; runs that go on count until then.
    """
    rows = np.flatnonzero((jobs.cluster == cluster) & (jobs.start != UNKNOWN))
    start = jobs.start[rows]
    stop = np.where(jobs.end[rows] == UNKNOWN, end, jobs.end[rows])
    # Of a second, those that did not wait came first (turn -1), and the others in order.
    turn = np.full(len(rows), -1)
    runs = np.stack([start, start, stop, rows, turn, jobs.processors[rows]])
    noted = np.array(delayed, np.int64).reshape(-1, 3).T
    places = np.minimum(np.searchsorted(rows, noted[0]), len(rows) - 1)
    known = np.zeros(noted.shape[1], np.bool_)
    if len(rows):
        known = (rows[places] == noted[0]) & (start[places] == noted[2])
    runs[0, places[known]], runs[4, places[known]] = noted[1, known], np.flatnonzero(known)
    others = {(one.row, one.start): one for one in stopped}
    turns = {}
    more = []
    for place in np.flatnonzero(~known).tolist():
        row, decided, begin = noted[:, place].tolist()
        left = int(jobs.end[row])
        if (row, begin) in others:
            turns[row, begin] = decided, place
        elif decided <= left <= begin:  # cancelled before it started
            more.append((decided, begin, left, row, place, int(jobs.processors[row])))
    for (row, begin), one in others.items():
        decided, place = turns.get((row, begin), (begin, -1))
        more.append((decided, begin, one.end, row, place, one.processors))
    found = np.concatenate([runs, np.array(more, np.int64).reshape(-1, 6).T], axis=1)
    found = found[:, found[0] < end]
    found = found[:, np.lexsort((found[3], found[4], found[0]))]
    acquired, started, released, rows, _, processors = found
    return Holdings(acquired, started, np.minimum(released, end), processors, rows)


@dataclass(frozen=True, eq=False)
class SleepStates:
    """What all processors of a machine do, over time.

    At any time each processor is in one of these states; those of a second add up to the size.

    Attributes
    ----------
    edges
        Where each step begins, and the end of the last one, s since the origin, ascending, shape
        (steps + 1,).
    on
        Processors of nodes that are on, without a job, shape (steps,), as the next ones.
    waiting
        Processors that are on and held by a job of which other nodes are not on yet: they draw what
        idle ones draw.
    switching_off, asleep, switching_on
        Processors of nodes that are being switched off, that are off, and that are being switched
        on, for a job or along with those for a job.
    running
        Processors that run jobs, from their start on.
    starts
        When each run of the account started, s, in the order of the runs; those that began at the
        end or later have -1.
    switched_on, switched_off
        Nodes that were switched on and off, each time counted, until the end.
    """

    edges: Int64s
    on: Int64s
    waiting: Int64s
    switching_off: Int64s
    asleep: Int64s
    switching_on: Int64s
    running: Int64s
    starts: Int64s
    switched_on: int
    switched_off: int


def sleep_states(
    acquired: ArrayLike,
    released: ArrayLike,
    processors: ArrayLike,
    size: int,
    rule: SleepRule | None,
    node: NodePower,
    begin: int,
    end: int,
) -> SleepStates:
    """Return what the processors of a machine do while some runs hold them.

    It goes through the ledger of the engine again. Runs without length leave it as it is.

    Parameters
    ----------
    acquired, released, processors
        By run: the decision to start it, s, its end, s, and how many it holds; by decision, those
        of a second in the order of their starts, as from :func:`holdings`.
    size
        Processors of the machine.
    rule
        None if all nodes stay on.
    node
        How long switching takes.
    begin, end
        s since the origin; runs that were decided before count from ``begin`` on.

    Raises
    ------
    QuantityError
        If the runs hold more processors than there are, or are not in order.
    """
    whole_end = max(end, begin + 1)
    acquired = np.maximum(np.asarray(acquired, np.int64), begin)
    released, processors = np.asarray(released, np.int64), np.asarray(processors, np.int64)
    if np.any(np.diff(acquired) < 0):
        raise QuantityError("sleep states: runs must be in the order of their decisions")
    starts = np.full(len(acquired), UNKNOWN)
    kept = np.flatnonzero(released > acquired)
    starts[released <= acquired] = acquired[released <= acquired]
    begun, over, held = acquired[kept], released[kept], processors[kept]
    order = np.argsort(over, kind="stable")
    never = SleepRule(max(2 * (whole_end - begin), 1))
    at = np.full(len(kept), UNKNOWN)
    room = 4 * len(kept) + 64
    while True:
        ledger = ledger_of(rule or never, node, size, begin, 2 * len(kept) + 8, room)
        short = L.replay(ledger, begun, over, order, held, whole_end, at)
        if short >= 0:
            raise QuantityError(
                f"sleep states: {held[short]} processors taken at {begun[short]} s, "
                f"{ledger.idle} of {size} are without a job; give all runs of this machine"
            )
        if ledger.noted <= room:
            break
        room = ledger.noted
    starts[kept] = at
    noted = np.asarray(ledger.moves)[: 4 * ledger.noted].reshape(-1, 4)
    switched = ledger.switched_on, ledger.switched_off
    return _states(noted, size, begin, whole_end, starts, switched)


def sleep_states_of_nodes(
    nodes: ArrayLike,
    begins: ArrayLike,
    ends: ArrayLike,
    count: int,
    rule: SleepRule | None,
    node: NodePower,
    begin: int,
    end: int,
) -> SleepStates:
    """Return what the nodes of a machine would do under a rule that holds no job up.

    Of a machine of nodes, whose schedule knows nothing of the rule: a node sleeps between two jobs
    if it is idle long enough to be switched off after ``rule.after`` and on again by the start of
    the next, as if that were known ahead. So this is the most that can be saved without a delay.
    All numbers of the states are nodes; ``waiting`` is 0, and ``starts`` is empty.

    Parameters
    ----------
    nodes, begins, ends
        By run and node: the number of the node, and from when to when it holds a job, s; in any
        order, and jobs may share a node.
    count
        Nodes of the machine, numbered from 0.
    rule
        None if all stay on; ``spare`` must be 0.
    node
        How long switching takes.
    begin, end
        s since the origin; nodes are idle since ``begin``.

    Raises
    ------
    QuantityError
        If the rule keeps spare nodes.
    """
    if rule is not None and rule.spare:
        raise QuantityError(
            f"sleep spare {rule.spare}: not on a machine of nodes, of which each is seen by "
            "itself; leave it out"
        )
    end = max(end, begin + 1)
    at = np.asarray(nodes, np.int64)
    first = np.clip(np.asarray(begins, np.int64), begin, end)
    last = np.clip(np.asarray(ends, np.int64), begin, end)
    # Each node begins with a run without length, and ends with one.
    every, nothing = np.arange(count), np.zeros(count, np.int64)
    at = np.concatenate((every, at[last > first], every))
    first, last = (
        np.concatenate((nothing + begin, times[last > first], nothing + end))
        for times in (first, last)
    )
    order = np.lexsort((last, first, at))
    at, first, last = at[order], first[order], last[order]
    apart = at * (end - begin + 1)  # so that the latest end so far is that of the same node
    latest = np.maximum.accumulate(last + apart) - apart
    gaps = (at[1:] == at[:-1]) & (first[1:] > latest[:-1])
    idle, busy = latest[:-1][gaps], first[1:][gaps]
    parts = [(begin + nothing, L.ON, L.RUNNING), (idle, L.RUNNING, L.ON), (busy, L.ON, L.RUNNING)]
    switched = (0, 0)
    if rule is not None:
        off = idle + rule.after
        again = np.where(busy < end, busy - node.on_time, end)
        sleeps = np.where(busy < end, off + node.off_time <= again, off < end)
        wakes = sleeps & (busy < end)
        parts += [
            (off[sleeps], L.ON, L.SWITCHING_OFF),
            (off[sleeps] + node.off_time, L.SWITCHING_OFF, L.ASLEEP),
            (again[wakes], L.ASLEEP, L.SWITCHING_ON),
            (busy[wakes], L.SWITCHING_ON, L.ON),
        ]
        switched = int(wakes.sum()), int(sleeps.sum())
    moves = np.concatenate(
        [
            np.stack([time, *(np.full(len(time), one) for one in (source, target, 1))], axis=1)
            for time, source, target in parts
        ]
    )
    return _states(moves, count, begin, end, np.zeros(0, np.int64), switched)


def _states(
    moves: Int64s, size: int, begin: int, end: int, starts: Int64s, switched: tuple[int, int]
) -> SleepStates:
    """Return the states that all moves lead to."""
    edges, counts = _steps(moves, size, begin, end)
    return SleepStates(
        edges,
        on=counts[:, L.ON],
        waiting=counts[:, L.WAITING],
        switching_off=counts[:, L.SWITCHING_OFF],
        asleep=counts[:, L.ASLEEP],
        switching_on=counts[:, L.SWITCHING_ON],
        running=counts[:, L.RUNNING],
        starts=starts,
        switched_on=switched[0],
        switched_off=switched[1],
    )


def _steps(moves: Int64s, size: int, begin: int, end: int) -> tuple[Int64s, Int64s]:
    """Return edges, and how many processors are in each state in each step."""
    moves = moves[moves[:, 0] < end]
    time, source, target, count = moves[np.argsort(moves[:, 0], kind="stable")].T
    change = np.zeros((len(time) + 1, L.STATES), np.int64)
    change[0, L.ON] = size
    every = np.arange(1, len(time) + 1)
    change[every, target] = count
    change[every, source] -= count
    time = np.append(begin, time)
    last_of = np.append(time[1:] > time[:-1], True)
    return np.append(time[last_of], end), np.cumsum(change, axis=0)[last_of]
