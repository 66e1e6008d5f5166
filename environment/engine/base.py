"""What runs the jobs of a cluster: one interface, a compiled and a plain implementation.

A cluster hands submissions to its engine and lets it advance. :class:`CompiledEngine` runs the
library's schedulers and the recorded schedule in compiled code;
:class:`PlainEngine` runs any :class:`Scheduler` in
plain Python. Both give the same schedule, job for job.

Users wait for the units of a :class:`~hpcrowd.environment.engine.units.UnitTable`. When the last
job of a unit is over, the engine comes back from :meth:`Engine.advance` in the same instant, before
anything else arrives. Where there are several clusters, a :class:`LockStep` leads
their engines through the phases of each instant instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import time_at_pace, time_at_speed
from hpcrowd.environment.schedulers.base import Announced, Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.predictors.base import Predictor
from hpcrowd.environment.stops import FOREVER, Stop


class Changes(Protocol):
    """What changes an engine as time goes on, see ``platform.timeline.Timeline``."""

    next_at: int

    def apply(self, now: int) -> list[int]:
        """Change what changes at ``now``; return rows of the jobs that are over by that."""

    def catch_up(self, now: int) -> None:
        """Do what happened before ``now`` while nothing ran, waited or was to arrive."""


class Engine(Announced, ABC):
    """Runs jobs of a table on processors; see the module's text.

    Parameters
    ----------
    jobs
        The table; its simulated columns are filled as the run goes on.
    processors
        Size of the machine.
    kill
        Stop jobs at their requested time.
    number
        Number of the cluster, for the column CLUSTER.
    speed
        Speed of the nodes: run times and requested times of jobs submitted here are divided by it.
    estimates
        What the scheduler believes of run times: :class:`Estimates`, or a
        predictor, which serves this engine only.
    units
        What users wait for, where several engines share it and others count; None makes a table of
        its own, which this engine counts, and erases what an earlier run left in ``jobs``.

    Attributes
    ----------
    scheduler
        The plain form of the policy; None for the recorded schedule.
    up
        Processors that are up, what schedulers are told as the size of the machine.
    closed, windows
        Whether there is maintenance, and the windows that are announced and not over, from and to,
        s since the origin.
    pace
        Speed of the nodes, where that at the beginning is 1.
    work
        Run times by row at the speed of the beginning, s, of what was submitted here; None where
        the speed never changes.
    timeline
        What changes of the platform and when; None for nothing.
    finished
        Units that are over at this instant, after :attr:`~hpcrowd.environment.stops.Stop.FINISHED`.
    """

    scheduler: Scheduler | None

    def __init__(
        self,
        jobs: JobTable,
        processors: int,
        *,
        kill: bool = False,
        number: int = 0,
        speed: float = 1.0,
        estimates: Estimates | Predictor | None = None,
        units: UnitTable | None = None,
    ) -> None:
        self.jobs = jobs
        self.processors = self.up = processors
        self.kill = kill
        self.number = number
        self.speed = speed
        self.estimates = Estimates() if estimates is None else estimates
        self.shared = units is not None
        self.units = UnitTable(jobs) if units is None else units
        self.finished: Sequence[int] = ()
        self.closed = False
        self.pace = Fraction(1)
        self.work: Int64s | None = None
        self.timeline: Changes | None = None
        self.predictor = self.estimates if isinstance(self.estimates, Predictor) else None
        if self.predictor is not None:
            self.predictor.begin(jobs)

    @property
    @abstractmethod
    def now(self) -> int:
        """The present second."""

    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let the jobs in ``rows`` arrive at the seconds ``at`` (one, or one per job)."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if len(rows):
            self.units.check_rows(rows)
            self._check_future(int(np.min(np.asarray(at))))
            self._take(rows)
            self.jobs.matrix[Column.SUBMIT, rows] = at
            self._expect(rows)

    def submit_again(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Let jobs arrive again that were stopped here."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self._check_future(int(np.min(np.asarray(at))))
        self._catch_up()
        self.jobs.matrix[Column.SUBMIT, rows] = at
        self._expect(rows)

    @abstractmethod
    def _expect(self, rows: Int64s) -> None:
        """Let jobs arrive at the times in their column SUBMIT."""

    def submit_unit(self, unit: int, at: int) -> None:
        """Let a unit that was defined arrive from ``at`` on, its jobs as far apart as recorded."""
        self.submit(*self.units.as_recorded(unit, at))

    @abstractmethod
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        """Run until users must hear something, ``halt``, or about ``events`` events have passed."""

    @abstractmethod
    def next_time(self) -> int:
        """Return when the next completion, arrival or change happens, FOREVER when none is left.

        Changes of the platform count while jobs run, wait or are to arrive.
        """

    @property
    @abstractmethod
    def arriving(self) -> bool:
        """Whether jobs are to arrive."""

    @property
    @abstractmethod
    def free(self) -> int:
        """Processors that are up without a job; negative while more are held than are up."""

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

    @abstractmethod
    def pass_to(self, time: int) -> None:
        """Move the clock, with nothing due before."""

    @abstractmethod
    def complete(self) -> list[int]:
        """Let end what ends now; return the rows over that users wait for.

        This and the next three are for :class:`LockStep` and for engines with
        shared units, which they do not count.
        """

    @abstractmethod
    def arrive(self) -> list[int]:
        """Let arrive what arrives now; return the rows over by that which users wait for."""

    def change(self) -> list[int]:
        """Change of the platform what changes now; return the rows over that users wait for."""
        if self.timeline is None:
            return []
        return self.units.awaited(self.timeline.apply(self.now))

    @property
    @abstractmethod
    def unseen(self) -> Int64s:
        """Rows of the jobs in the queue at which the scheduler has not looked at all."""

    def inform(self) -> None:
        """Let the plain form of the scheduler know what it would know, for ``Scheduler.reasons``.

        Nothing that the run depends on changes.
        """
        if self.scheduler is not None:
            self.scheduler.windows = self.windows

    @property
    def change_at(self) -> int:
        """When the platform changes next."""
        return FOREVER if self.timeline is None else self.timeline.next_at

    def stays(self, rows: Int64s) -> Int64s:
        """Return for how long jobs hold their processors from start to end, s."""
        run = self.jobs.run_time[rows]
        return np.minimum(run, self.jobs.requested_time[rows]) if self.kill else run

    def deliver(self, row: int) -> None:
        """Let a job that a broker held join the queue now, as long as it runs here."""
        self.adopt(row)
        self._join(row)
        self.arrive()

    def adopt(self, row: int) -> None:
        """Note that a job is of this cluster now, and let it need as long as it does here."""
        self._take(np.array([row]))

    @abstractmethod
    def _join(self, row: int) -> None:
        """Let a job arrive now, whenever its user submitted it."""

    def claim(self, row: int) -> None:
        """Start a job now on free processors, past the queue; it is taken at its word."""
        jobs, now = self.jobs, self.now
        self.settle()
        waiting, running = self.waiting, self.running
        if self.pace != 1:
            jobs.run_time[row] = time_at_pace(jobs.run_time[row], self.pace)
        jobs.enqueued[row] = jobs.start[row] = now
        jobs.estimate[row] = jobs.requested_time[row]
        jobs.end[row] = now + int(self.stays(np.array([row]))[0])
        self.take_over(waiting, np.append(running, row))

    @abstractmethod
    def schedule(self) -> None:
        """Start jobs now: one scheduling pass; none while there is maintenance."""

    @abstractmethod
    def switch(self, scheduler: Scheduler) -> None:
        """Let another scheduler take over the queue and the running jobs, from now on.

        It has a pass at this instant. What ended until now it does not hear.

        Raises
        ------
        QuantityError
            When the schedule is the recorded one, or the engine cannot run the scheduler.
        """

    @abstractmethod
    def take_over(self, waiting: Int64s, running: Int64s) -> None:
        """Go on with these jobs waiting and running, as the table and :attr:`up` have it now.

        The scheduler has a pass at this instant. For whoever changes what runs or waits in the
        table of jobs; predictor and scheduler must have heard what happened before, :meth:`settle`.

        Parameters
        ----------
        waiting, running
            Rows in any order; submissions, estimates, starts and ends stand in the table.
        """

    @abstractmethod
    def settle(self) -> None:
        """Let predictor and scheduler hear what ended and arrived since the last pass."""

    def _predict(self, ended: Int64s, arrived: Int64s) -> None:
        """Let the predictor, if any, learn from jobs that ended and foretell those that arrived.

        It hears of everything at the second at which it happened, also where there was no pass
        then, as during maintenance.
        """
        if self.predictor is None:
            return
        jobs, predictor = self.jobs, self.predictor
        ended = ended[jobs.state[ended] == State.COMPLETED]
        ends, submits = jobs.end[ended], jobs.enqueued[arrived]
        for now in sorted({*ends.tolist(), *submits.tolist()}):
            rows = np.sort(ended[ends == now])
            if len(rows):
                predictor.ended(rows, now)
            rows = np.sort(arrived[submits == now])
            if len(rows):
                predictor.arrived(rows, now)
                jobs.estimate[rows] = predictor.predict(rows, now)

    def _take(self, rows: Int64s) -> None:
        """Note that jobs are submitted here, and let them need as long as they do here."""
        self._catch_up()
        matrix = self.jobs.matrix
        matrix[Column.CLUSTER, rows] = self.number
        if self.speed != 1:
            for column in (Column.RUN_TIME, Column.REQUESTED_TIME):
                matrix[column, rows] = time_at_speed(matrix[column, rows], self.speed)
        if self.work is not None:
            if len(self.work) < len(self.jobs):
                grown = np.full(2 * len(self.jobs), UNKNOWN)
                grown[: len(self.work)] = self.work
                self.work = grown
            self.work[rows] = matrix[Column.RUN_TIME, rows]

    def _catch_up(self) -> None:
        """Let the platform change as it did while nothing was to be done here."""
        if self.timeline is not None:
            self.timeline.catch_up(self.now)

    def _check_switch(self) -> None:
        if self.scheduler is None:
            raise QuantityError(
                "switch from the recorded schedule: it knows no processors; begin with a scheduler"
            )

    def _check_future(self, at: int) -> None:
        if at < self.now:
            raise SimulationError(
                f"submission at {at} s: it is {self.now} s already; submit now or later"
            )
