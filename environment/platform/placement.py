"""The processors that a job is drawn on in a Gantt chart: first fit, computed after the run.

The cluster of a simulation is a pool: a job holds a number of processors, not particular ones. A
Gantt chart needs rows, so here every job gets the lowest consecutive processors that are free while
it runs; if there is no such stretch, the job is split into as few pieces as possible.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from hpcrowd.environment.jobs import Int64s


@dataclass(frozen=True)
class Placement:
    """Pieces of jobs on rows of processors, ordered by the start of their jobs."""

    job: Int64s  #: index of the job of each piece, shape (pieces,)
    row: Int64s  #: its first processor, counted from 0, shape (pieces,)
    height: Int64s  #: number of processors from there on, shape (pieces,)
    #: Number of rows needed: the size of the machine, or more if jobs ran on more processors than
    #: it has (which happens with the scheduler ``recorded`` and in recorded traces).
    rows: int


class FreeRows:
    """Free processors, as stretches of consecutive rows in ascending order.

    Parameters
    ----------
    first, count
        The rows; all are free.
    """

    def __init__(self, first: int, count: int) -> None:
        self._rows = [first] if count else []
        self._counts = [count] if count else []
        self.free = count  #: processors that are free

    def take(self, count: int) -> list[tuple[int, int]]:
        """Take ``count`` of the free processors; return them as stretches (first row, count)."""
        self.free -= count
        for place, found in enumerate(self._counts):
            if found >= count:
                return [self._cut(place, count)]
        taken = []
        while count:
            largest = max(self._counts)
            piece = self._cut(self._counts.index(largest), min(largest, count))
            taken.append(piece)
            count -= piece[1]
        return sorted(taken)

    def give_back(self, row: int, count: int) -> None:
        """Make a stretch free again."""
        self.free += count
        rows, counts = self._rows, self._counts
        place = bisect_left(rows, row)
        if place < len(rows) and rows[place] == row + count:
            count += counts[place]
            del rows[place], counts[place]
        if place and rows[place - 1] + counts[place - 1] == row:
            counts[place - 1] += count
        else:
            rows.insert(place, row)
            counts.insert(place, count)

    def _cut(self, place: int, count: int) -> tuple[int, int]:
        row = self._rows[place]
        if count == self._counts[place]:
            del self._rows[place], self._counts[place]
        else:
            self._rows[place] += count
            self._counts[place] -= count
        return row, count


class Filling:
    """Rows that jobs were given so far, in the order of their starts; later jobs may follow.

    Parameters
    ----------
    machine
        Processors of the machine.
    beyond
        Rows above these, for jobs that the machine has no room for.
    """

    def __init__(self, machine: int, beyond: int) -> None:
        self.machine, self.beyond = machine, beyond
        self._regions = (FreeRows(0, machine), FreeRows(machine, beyond))
        self._held: dict[int, list[tuple[int, int]]] = {}
        self._pieces: list[Int64s] = []
        self._jobs = 0

    def add(self, begin: Int64s, end: Int64s, processors: Int64s) -> None:
        """Give rows to further jobs.

        Parameters
        ----------
        begin, end, processors
            Of all jobs, as in :func:`place`: those that have rows, then the further ones, none of
            which begins before those. An end may have changed if no job began after it yet.
        """
        regions, machine, held = self._regions, self.machine, self._held
        further = np.arange(self._jobs, len(begin))
        self._jobs = len(begin)
        # At an instant: ends, then jobs of no length, which give their rows back at once; then
        # starts.
        later, last = begin[further], end[further]
        order = further[np.lexsort((further, later != last, later))]
        leaving = np.concatenate([np.fromiter(held, np.int64), further])
        leaving = leaving[np.lexsort((leaving, end[leaving]))]
        pieces: list[tuple[int, int, int]] = []
        ends, gone = end[leaving].tolist(), leaving.tolist()
        left = 0
        for job, since, until, size in zip(
            order.tolist(),
            begin[order].tolist(),
            end[order].tolist(),
            processors[order].tolist(),
            strict=True,
        ):
            while left < len(gone) and ends[left] <= since:
                for row, count in held.pop(gone[left], ()):
                    regions[row >= machine].give_back(row, count)
                left += 1
            below = min(size, regions[0].free)
            found = regions[0].take(below) if below else []
            if size > below:
                found += regions[1].take(size - below)
            pieces += [(job, row, count) for row, count in found]
            if since != until:
                held[job] = found
            else:
                for row, count in found:
                    regions[row >= machine].give_back(row, count)
        self._pieces.append(np.array(pieces, np.int64).reshape(-1, 3).T)

    def placement(self) -> Placement:
        """Return the rows of all jobs so far."""
        columns = np.concatenate(self._pieces, axis=1)
        self._pieces = [columns]
        return Placement(columns[0], columns[1], columns[2], self.machine + self.beyond)


def place(begin: Int64s, end: Int64s, processors: Int64s, machine: int) -> Placement:
    """Give each job rows of processors from its begin to its end.

    Parameters
    ----------
    begin, end
        s, shape (jobs,); the end is exclusive.
    processors
        Number that each job holds, shape (jobs,).
    machine
        Processors of the machine. More rows are used only while these do not suffice.

    Returns
    -------
    Placement
        No two jobs are on the same row at the same time, and each has its number of rows. The cost
        grows with the jobs and with the stretches of free rows, not with the processors.
    """
    filling = Filling(machine, rows_beyond(begin, end, processors, machine))
    filling.add(begin, end, processors)
    return filling.placement()


def rows_beyond(begin: Int64s, end: Int64s, processors: Int64s, machine: int) -> int:
    """Return how many more rows than the machine has processors are needed."""
    return max(0, _peak(begin, end, processors) - machine)


def _peak(begin: Int64s, end: Int64s, processors: Int64s) -> int:
    """Return the largest number of processors held at a time, including zero-length jobs."""
    if not len(begin):
        return 0
    length = (end > begin).astype(np.int64)
    times = np.concatenate([end, begin, begin])
    # Ends, then each job of no length alone, then starts.
    kind = np.repeat([0, 1, 2], len(begin))
    changes = np.concatenate([-processors * length, processors * (1 - length), processors * length])
    order = np.lexsort((kind, times))
    level = np.cumsum(np.where(kind[order] == 1, 0, changes[order]))
    return int((level + np.where(kind[order] == 1, changes[order], 0)).max())
