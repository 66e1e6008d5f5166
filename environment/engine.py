"""What runs the jobs of a cluster: one interface, a compiled and a plain implementation.

A cluster hands submissions to its engine and lets it advance. :class:`CompiledEngine` runs FCFS,
EASY and the recorded schedule in compiled code; :class:`environment.plain.PlainEngine` runs any
:class:`~environment.schedulers.Scheduler` in plain Python. Both give the same schedule, job for
job.

*Units* are what users wait for: sets of jobs (a session, a batch, a single job). When the last job
of a unit is over, the engine comes back from :meth:`Engine.advance` in the same instant, before
anything else arrives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from environment.errors import SimulationError
from environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from environment.stops import FOREVER, Stop


class Engine(ABC):
    """Runs jobs of a table on processors; see the module's text.

    Parameters
    ----------
    jobs
        The table; its simulated columns are filled as the run goes on.
    processors
        Size of the machine.
    kill
        Stop jobs at their requested time.

    Attributes
    ----------
    finished
        Units that are over at this instant, after :attr:`~environment.stops.Stop.FINISHED`.
    """

    def __init__(self, jobs: JobTable, processors: int, *, kill: bool = False) -> None:
        self.jobs = jobs
        self.processors = processors
        self.kill = kill
        self.finished: Sequence[int] = ()
        self.unit_first: Int64s = np.zeros(1, np.int64)
        self.unit_rows: Int64s = np.zeros(0, np.int64)
        self.remaining: Int64s = np.zeros(0, np.int64)
        self._units = 0
        # What an earlier run left in the table would be taken for this one's.
        for column in (Column.SUBMIT, Column.START, Column.END, Column.UNIT):
            jobs.matrix[column] = UNKNOWN
        jobs.matrix[Column.STATE] = State.UNFINISHED

    @property
    @abstractmethod
    def now(self) -> int:
        """The present second."""

    @abstractmethod
    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let the jobs in ``rows`` arrive at the seconds ``at`` (one, or one per job)."""

    @abstractmethod
    def submit_unit(self, unit: int, at: int) -> None:
        """Let a unit of :meth:`set_units` arrive from ``at`` on, its jobs as recorded apart."""

    @abstractmethod
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        """Run until users must hear something, ``halt``, or about ``events`` events have passed."""

    @abstractmethod
    def next_time(self) -> int:
        """Return when the next completion or arrival happens, FOREVER when none is left."""

    @property
    @abstractmethod
    def free(self) -> int:
        """Processors without a job."""

    @property
    @abstractmethod
    def waiting(self) -> Int64s:
        """Rows of the jobs in the queue, in its order."""

    @property
    @abstractmethod
    def running(self) -> Int64s:
        """Rows of the jobs that run, in no particular order."""

    @property
    @abstractmethod
    def events(self) -> int:
        """Completions and arrivals so far."""

    def set_units(self, first: Int64s, rows: Int64s) -> None:
        """Define all units at once: unit u is ``rows[first[u]:first[u + 1]]``, by submission."""
        self._check_rows(rows)
        self.unit_first, self.unit_rows = first, rows
        self.remaining = np.diff(first)
        self._units = len(self.remaining)
        unit = self.jobs.matrix[Column.UNIT]
        unit[rows] = np.repeat(np.arange(self._units), self.remaining)

    def add_unit(self, rows: Int64s) -> int:
        """Define one more unit, of jobs given to :meth:`submit`, and return its number."""
        if len(rows) == 0:
            raise SimulationError("unit without jobs: nobody would ever hear of its end")
        self._check_rows(rows)
        unit = self._units
        if unit == len(self.remaining):
            grown = np.zeros(max(256, 2 * unit), np.int64)
            grown[:unit] = self.remaining
            self.remaining = grown
        self._units += 1
        self.remaining[unit] = len(rows)
        self.jobs.matrix[Column.UNIT, rows] = unit
        return unit

    def _check_rows(self, rows: Int64s) -> None:
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.jobs):
            raise SimulationError(
                f"rows {rows.min()} to {rows.max()}: the table has {len(self.jobs)} jobs; append "
                "jobs before submitting them"
            )

    def _check_future(self, at: int) -> None:
        if at < self.now:
            raise SimulationError(
                f"submission at {at} s: it is {self.now} s already; submit now or later"
            )
