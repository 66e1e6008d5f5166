"""Switching idle nodes off: when, which runs held processors, and what processors did over time.

:mod:`hpcrowd.environment.engine.idle` says how nodes are switched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.engine.idle import DelayedStart, Switching
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

    def of(self, node: NodePower) -> Switching:
        """Return the rule for a machine of such nodes."""
        spare = -(-self.spare // node.processors) * node.processors
        return Switching(self.after, spare, node.processors, node.on_time, node.off_time)


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
        ledger = (rule or never).of(node).ledger(size, begin, 2 * len(kept) + 8, room)
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
