"""Where a plan of reservations leaves room now: for telling why a job does not start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from environment.jobs import Int64s
from environment.schedulers.base import RunningJob


class Reservation(NamedTuple):
    """Processors kept for a job."""

    row: int
    processors: int
    start: int  #: s since the origin
    length: int  #: s


class Holes:
    """The processors that running jobs and reservations leave, from now on, in arrays.

    What :class:`environment.schedulers.profile.Profile` is for planning, with thousands of
    reservations at once. Reservations of the past second count from now on.

    Parameters
    ----------
    now, free, running
        As for :class:`~environment.schedulers.profile.Profile`.
    held
        The reservations, in the order of the queue.
    windows
        Announced maintenance, from and to, s since the origin.

    Attributes
    ----------
    free_now
        Processors without a job; those kept for reservations count too.
    """

    def __init__(
        self,
        now: int,
        free: int,
        running: Iterable[RunningJob],
        held: Sequence[Reservation],
        windows: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.now = now
        self.free_now = free
        self.held = held
        begins = [max(one.start, now) for one in held]
        ends = [begin + one.length for begin, one in zip(begins, held, strict=True)]
        steps = [(now, free)]
        steps += [(job.expected_end, job.processors) for job in running]
        steps += [(begin, -one.processors) for begin, one in zip(begins, held, strict=True)]
        steps += [(end, one.processors) for end, one in zip(ends, held, strict=True)]
        # Nobody runs into maintenance: processors are away for more than there are.
        steps += [(max(start, now), -CLOSED) for start, _ in windows]
        steps += [(end, CLOSED) for _, end in windows]
        times, changes = np.array(steps, np.int64).T
        self.times, which = np.unique(times, return_inverse=True)
        changed = np.zeros(len(self.times), np.int64)
        np.add.at(changed, which, changes)
        self.free: Int64s = np.cumsum(changed)
        self._rises = self._taken()
        self._over: dict[int, Reservation | None] = {}
        self._begins = np.array(begins, np.int64)
        self._ends = np.array(ends, np.int64)

    def blocker(self, processors: int, length: int) -> Reservation | None:
        """Return whose reservation a job that started now would break first, None for nobody's.

        Where there would be too few processors for several, the last of them in the queue loses it.
        """
        last = int(np.searchsorted(self.times, self.now + length))
        first = int(np.searchsorted(self._rises, -processors, "right"))  # too few there
        return None if first >= last else self._last_over(int(self.times[first]))

    def _taken(self) -> Int64s:
        """Return minus the fewest that were free up to each step, which rises."""
        taken: Int64s = -np.minimum.accumulate(self.free)
        return taken

    def _last_over(self, time: int) -> Reservation | None:
        """Return the last reservation in the queue that holds processors at a time."""
        if time not in self._over:
            over = np.flatnonzero((self._begins <= time) & (time < self._ends))
            self._over[time] = self.held[int(over[-1])] if len(over) else None
        return self._over[time]

    def fill(self, processors: int, length: int) -> None:
        """Let a job start now."""
        end = self.now + length
        last = int(np.searchsorted(self.times, end))
        if last == len(self.times) or self.times[last] != end:
            self.times = np.insert(self.times, last, end)
            self.free = np.insert(self.free, last, self.free[last - 1])
        self.free[:last] -= processors
        self.free_now -= processors
        self._rises = self._taken()


#: Processors, more than any machine has.
CLOSED = 2**40
