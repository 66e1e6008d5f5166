"""The units that users wait for, and the number of unfinished jobs in each.

A unit is a set of jobs: a session, a batch, a single job. One table serves all clusters of a
simulation, since the jobs of a unit may run on several; a unit finishes with its last job.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hpcrowd.environment.errors import SimulationError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

#: Initial capacity when the first unit is added.
FIRST_ROOM = 256


class UnitTable:
    """The units of a run; see the module.

    Parameters
    ----------
    jobs
        The table of jobs; results of an earlier run in it are erased.

    Attributes
    ----------
    first, rows
        Shapes (units + 1,) and (jobs of units,): unit u of :meth:`define` is
        ``rows[first[u]:first[u + 1]]``. Units of :meth:`add` are not among them.
    remaining
        Unfinished jobs of each unit, shape (units or more,).
    """

    def __init__(self, jobs: JobTable) -> None:
        self.jobs = jobs
        self.first: Int64s = np.zeros(1, np.int64)
        # A view of it that yields plain integers: several times faster to index than arrays.
        self.bounds = memoryview(self.first)
        self.rows: Int64s = np.zeros(0, np.int64)
        self.remaining: Int64s = np.zeros(0, np.int64)
        self._count = 0
        jobs.erase_outcome()

    def __len__(self) -> int:
        return self._count

    def define(self, first: Int64s, rows: Int64s) -> None:
        """Define all units at once: unit u is ``rows[first[u]:first[u + 1]]``, by submission."""
        self.check_rows(rows)
        self.first, self.rows = first, rows
        self.bounds = memoryview(first)
        self.remaining = np.diff(first)
        self._count = len(self.remaining)
        self.jobs.matrix[Column.UNIT, rows] = np.repeat(np.arange(self._count), self.remaining)

    def as_recorded(self, unit: int, at: int) -> tuple[Int64s, Int64s]:
        """Return the rows of a unit and their arrival times from ``at`` on, spaced as recorded."""
        rows = self.rows[self.first[unit] : self.first[unit + 1]]
        recorded = self.jobs.matrix[Column.RECORDED_SUBMIT, rows]
        return rows, recorded - recorded[0] + at

    def add(self, rows: Int64s) -> int:
        """Define one more unit and return its number.

        Raises
        ------
        SimulationError
            If it has no jobs, or jobs that are not in the table.
        """
        if len(rows) == 0:
            raise SimulationError("unit without jobs: it would never finish; give it a job")
        self.check_rows(rows)
        unit = self._count
        if unit == len(self.remaining):
            grown = np.zeros(max(FIRST_ROOM, 2 * unit), np.int64)
            grown[:unit] = self.remaining
            self.remaining = grown
        self._count += 1
        self.remaining[unit] = len(rows)
        self.jobs.matrix[Column.UNIT, rows] = unit
        return unit

    def awaited(self, rows: list[int]) -> list[int]:
        """Return the rows that users wait for."""
        unit = self.jobs.unit
        return [row for row in rows if unit[row] != UNKNOWN]

    def count_over(self, rows: Iterable[int]) -> list[int]:
        """Count jobs as finished, in this order, and return the units that finish with them."""
        finished = []
        for row in rows:
            unit = int(self.jobs.matrix[Column.UNIT, row])
            self.remaining[unit] -= 1
            if self.remaining[unit] == 0:
                finished.append(unit)
        return finished

    def check_rows(self, rows: Int64s) -> None:
        """Check that all rows are in the table of jobs.

        Raises
        ------
        SimulationError
            When one is not.
        """
        count = len(rows)
        if count == 1 and 0 <= rows[0] < len(self.jobs):
            return  # the usual case, without the cost of looking for extremes
        if count and not 0 <= rows.min() <= rows.max() < len(self.jobs):
            raise SimulationError(
                f"rows {rows.min()} to {rows.max()}: the table has {len(self.jobs)} jobs; append "
                "jobs before submitting them"
            )
