"""The idle processors of an engine, of which whole nodes are switched off after a time.

The rule, the same in both engines and in an account of the states afterwards:

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.engine.kernel import sleeping
from hpcrowd.environment.jobs import Int64s, JobTable

#: Entries that a ledger has room for at first.
FIRST_ROOM = 1024


class DelayedStart(NamedTuple):
    """A start that waited for nodes to be switched on."""

    row: int  #: row of the job in the table
    decided: int  #: s since the origin; from then on it held its processors
    start: int  #: s since the origin, when all of them were on


@dataclass(frozen=True)
class Switching:
    """When nodes are switched off, and how long switching takes."""

    after: int  #: s that a node is idle before it is switched off
    spare: int  #: idle processors that stay on, whole nodes
    node: int  #: processors of a node
    on_time: int  #: s
    off_time: int  #: s

    def ledger(self, processors: int, begin: int, room: int, moves: int = 0) -> sleeping.Ledger:
        """Return the ledger of a machine of which all processors are idle since ``begin``, s.

        It has room for that many entries, and for that many moves that it notes.
        """
        table = np.zeros((sleeping.ROWS, room), np.int64)
        made = sleeping.Ledger(table, np.zeros(4 * moves, np.int64))
        made.after, made.on_time, made.off_time = self.after, self.on_time, self.off_time
        made.node, made.spare = self.node, self.spare
        made.idle, made.last = processors, 1
        made.since[0], made.held[0] = begin, processors
        return made


class IdleNodes:
    """The idle processors of a machine.

    Parameters
    ----------
    rule
        When nodes are switched off, and how long switching takes.
    jobs
        The table.
    processors
        All of the machine, idle from ``begin`` on.
    begin
        s since the origin.
    """

    def __init__(self, rule: Switching, jobs: JobTable, processors: int, begin: int) -> None:
        self.rule, self.jobs = rule, jobs
        self.ledger = rule.ledger(processors, begin, FIRST_ROOM)
        self._earlier: list[DelayedStart] = []  # that the ledger has no room for
        self._left_early: set[tuple[int, int]] = set()

    @property
    def delayed(self) -> list[DelayedStart]:
        """Starts that waited for nodes to be switched on, in order."""
        return self._earlier + self._noted()

    def _noted(self) -> list[DelayedStart]:
        starts = np.asarray(self.ledger.table)[4:, : self.ledger.delayed].T.tolist()
        return [DelayedStart(*one) for one in starts]

    def stopped_early(self, now: int, running: Int64s) -> Iterator[DelayedStart]:
        """Yield starts that are yet to come of jobs that are not among the running ones, once."""
        still = set(running.tolist())
        longest = self.rule.on_time + self.rule.off_time
        for one in chain(reversed(self._noted()), reversed(self._earlier)):
            if one.decided + longest <= now:
                return
            key = one.row, one.start
            if one.start > now and one.row not in still and key not in self._left_early:
                self._left_early.add(key)
                yield one

    def make_room(self, starts: int) -> None:
        """Make room in the ledger for a pass with that many starts.

        Starts that the policy has not taken note of stay in it, at its front.
        """
        ledger = self.ledger
        if sleeping.make_room(ledger, starts):
            return
        blocks, offs = ledger.last - ledger.first, ledger.off_last - ledger.off_first
        pending, old = ledger.delayed - ledger.seen, np.asarray(ledger.table)
        room = max(old.shape[1], 4 * (blocks + offs + starts + pending) + 64)
        made = np.zeros((sleeping.ROWS, room), np.int64)
        made[:2, :blocks] = old[:2, ledger.first : ledger.last]
        made[2:4, :offs] = old[2:4, ledger.off_first : ledger.off_last]
        made[4:, :pending] = old[4:, ledger.seen : ledger.delayed]
        self._earlier += self._noted()[: ledger.seen]
        ledger.first, ledger.last, ledger.off_first, ledger.off_last = 0, blocks, 0, offs
        ledger.seen, ledger.delayed, ledger.table = 0, pending, made

    def balance(
        self, now: int, free: int, waiting: int, early: Sequence[DelayedStart] = ()
    ) -> None:
        """Let as many processors be without a job as there are now.

        Parameters
        ----------
        now, free, waiting
            The present second, the processors without a job, and how many jobs wait.
        early
            Starts that are yet to come of jobs that were stopped.
        """
        ledger = self.ledger
        for one in early:
            self.make_room(waiting)
            sleeping.give(ledger, now, self.jobs.processors[one.row], one.start)
        self.make_room(waiting)
        sleeping.balance(ledger, now, free)
        ledger.seen = ledger.delayed

    def start(self, row: int, now: int, run: int) -> int:
        """Take processors for a job of ``run`` s; return when all of them are on, s."""
        return now + sleeping.take_for(self.ledger, row, now, self.jobs.processors[row], run)
