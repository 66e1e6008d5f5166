"""The engine of a cluster: one interface, with a compiled and a plain implementation.

A cluster hands submissions to its engine and lets it advance. :class:`CompiledEngine` runs the
library's schedulers and the recorded schedule in compiled code;
:class:`PlainEngine` runs any :class:`Scheduler` in
plain Python. Both give the same schedule, job for job.

Users wait for the units of a :class:`~hpcrowd.environment.engine.units.UnitTable`. When the last
job of a unit has finished, the engine returns from :meth:`Engine.advance` in the same instant,
before anything else arrives. With several clusters, a :class:`LockStep` advances their engines
through the phases of each instant instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.engine.attempts import RECORDED, Attempt, attempt_of
from hpcrowd.environment.engine.units import UnitTable
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import time_at_pace, time_at_speed
from hpcrowd.environment.schedulers.base import Announced, Scheduler
from hpcrowd.environment.schedulers.estimates import ARRIVED, ENDED, Estimates, Events, Predictor
from hpcrowd.environment.stops import FOREVER, Stop

if TYPE_CHECKING:
    from hpcrowd.environment.engine.changes import Changes
    from hpcrowd.environment.engine.idle import DelayedStart, IdleNodes, Switching
    from hpcrowd.environment.schedulers.past import Past

#: Waiting jobs that passes may look at before an engine returns: about 0.1 to 0.5 s for those that
#: plan the whole queue, and for the others.
MOST_PLANNED, MOST_LOOKS = 2**20, 2**24

#: Jobs by which the queue may grow meanwhile.
GROWTH = 2**10


def events_for(waiting: int, events: int, looks: int = MOST_LOOKS) -> int:
    """Return after how many of the allowed events to return where passes look at the whole queue.

    Ctrl-C and the progress bar are looked at then, however long the queue is.
    """
    return min(events, 1 + looks // (GROWTH + waiting))


class Engine(Announced, ABC):
    """Runs jobs of a table on processors; see the module.

    Parameters
    ----------
    jobs
        The table; its simulated columns are filled during the run.
    processors
        Size of the machine.
    kill
        Stop jobs at their requested time.
    number
        Number of the cluster, for the column CLUSTER.
    speed
        Speed of the nodes: run times and requested times of jobs submitted here are divided by it.
    estimates
        The run times that the scheduler expects: :class:`Estimates`, or a
        predictor, which serves this engine only.
    units
        The units that users wait for, if several engines share them and another object counts; with
        None the engine makes and counts its own, and erases results of an earlier run in ``jobs``.

    Attributes
    ----------
    scheduler
        The plain form of the policy; None for the recorded schedule.
    up
        Processors that are up and that a power cap, if any, lets be busy; schedulers see them as
        the size of the machine.
    closed, windows
        Whether the cluster is closed for maintenance, and announced windows that have not ended,
        from and to, s since the origin.
    pace
        Speed of the nodes relative to the beginning.
    work
        Run times by row at the initial speed, s, of jobs submitted here; None if the speed never
        changes.
    timeline
        Changes of the platform; None if there are none.
    finished
        Units that finish at this instant, after :attr:`~hpcrowd.environment.stops.Stop.FINISHED`.
    latency
        s from the start of a job to its first second; it counts against its limit.
    kill_every, kill_phase
        s between checks of limits, and the second of one of them: jobs are killed at the first
        check at or after their limit.
    began
        The second at which the run began, from a state if it is not 0.
    attempts
        Runs of jobs that were stopped, by changes of the platform or preemption, in order.
    most
        Most processors that a power cap that never changes lets be busy; else the largest size.
    idle
        The idle nodes, if they are switched off after a time; see :meth:`switch_off`.
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
        self.most = processors
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
        self.latency, self.kill_every, self.kill_phase = 0, 1, 0
        self.attempts: list[Attempt] = []
        self.began = 0
        self.idle: IdleNodes | None = None
        self._refused: dict[int, str] = {}
        self.predictor = self.estimates if isinstance(self.estimates, Predictor) else None
        if self.predictor is not None:
            self.predictor.begin(jobs)

    @property
    @abstractmethod
    def now(self) -> int:
        """The present second."""

    @property
    def refused(self) -> dict[int, str]:
        """Why jobs were rejected that asked a machine of nodes for what it refuses, by row."""
        return self._refused

    @property
    def alone(self) -> bool:
        """Whether it cannot advance together with others in compiled code."""
        return self.idle is not None

    def switch_off(self, rule: Switching) -> None:
        """Switch idle nodes off, see :mod:`hpcrowd.environment.engine.idle`; before the run.

        Raises
        ------
        QuantityError
            If starts cannot wait for nodes, or the size changes.
        """
        if self.scheduler is None:
            raise QuantityError(
                "sleep with the recorded schedule: its starts wait for no node; choose a scheduler"
            )
        if self.scheduler.nodes:
            raise QuantityError(
                "sleep on a machine of nodes: only a pool of equal processors switches them off; "
                "leave out --machine"
            )
        if self.timeline is not None:
            raise QuantityError(
                "sleep with platform changes, an adaptive scheduler or a power cap: not possible "
                "together; leave out one of them"
            )
        self._let_idle(rule)

    def _let_idle(self, rule: Switching) -> None:
        """Let all processors be idle since the second at which the run begins."""
        from hpcrowd.environment.engine.idle import IdleNodes

        self.idle = IdleNodes(rule, self.jobs, self.processors, self.began)

    @property
    def delayed(self) -> list[DelayedStart]:
        """Starts that waited for nodes to be switched on, in order."""
        return [] if self.idle is None else self.idle.delayed

    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Submit the jobs in ``rows`` at the seconds ``at`` (one, or one per job)."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if len(rows):
            self.hold(rows, at)
            self._expect(rows)

    def submit_again(self, rows: ArrayLike, at: ArrayLike) -> None:
        """Submit jobs again that were stopped here."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self._check_future(int(np.min(np.asarray(at))))
        self.catch_up()
        self.jobs.matrix[Column.SUBMIT, rows] = at
        if self.scheduler is not None and self.scheduler.nodes:
            self.scheduler.submitted(rows)
        self._expect(rows)

    def hold(self, rows: Int64s, at: ArrayLike) -> None:
        """Note that jobs are submitted here, which arrive by :meth:`let_in` only."""
        self.units.check_rows(rows)
        self._check_future(int(np.asarray(at).min()))
        self._take(rows)
        self.jobs.matrix[Column.SUBMIT, rows] = at

    def let_in(self, row: int) -> None:
        """Let a job arrive now that was held."""
        self.catch_up()
        self._join(row)

    def let_in_again(self, row: int) -> None:
        """Let a job arrive now whose run has ended, and which keeps its submission."""
        if self.scheduler is not None and self.scheduler.nodes:
            self.scheduler.submitted(np.array([row]))
        self.let_in(row)

    @abstractmethod
    def _expect(self, rows: Int64s) -> None:
        """Submit jobs at the times in their column SUBMIT."""

    def submit_unit(self, unit: int, at: int) -> None:
        """Submit a defined unit from ``at`` on, with its jobs spaced as recorded."""
        self.submit(*self.units.as_recorded(unit, at))

    @abstractmethod
    def withdraw(self, rows: Int64s) -> None:
        """Let jobs not arrive that were submitted for later; the table is not changed."""

    def cancel(self, rows: Int64s) -> None:
        """Take jobs back that wait or run here, or are to arrive; their users are not notified.

        A running job stops now, and the scheduler is notified of its end as of any other. A job
        that is to arrive was never submitted then.
        """
        jobs, now = self.jobs, self.now
        waiting, running = self.waiting, self.running
        left, stopped = np.isin(waiting, rows), np.isin(running, rows)
        # Under the recorded schedule jobs run from their start on, which may be yet to come.
        runs = np.isin(rows, running[stopped]) & (jobs.start[rows] <= now)
        here = np.isin(rows, np.concatenate((waiting[left], running[stopped])))
        if here.any():
            self.settle()
        state = jobs.column(Column.STATE)
        state[rows] = np.where(here, State.CANCELLED, State.RENOUNCED)
        jobs.end[rows] = np.where(here, now, UNKNOWN)
        jobs.start[rows[~runs]] = UNKNOWN
        to_come = rows[~here]
        jobs.submit[to_come] = jobs.cluster[to_come] = UNKNOWN
        if len(to_come):
            self.withdraw(to_come)
        if here.any():
            self._take_note(rows[runs], rows[here & ~runs])
            self.take_over(waiting[~left], running[~stopped])

    def look_again(self) -> None:
        """Do nothing: only a broker of several engines may have to look again."""

    @abstractmethod
    def _take_note(self, ended: Int64s, left: Int64s) -> None:
        """Notify the scheduler, once it is settled, of jobs that were stopped or left the queue."""

    @abstractmethod
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        """Run until users must be notified, ``halt``, or about ``events`` events have passed."""

    @abstractmethod
    def next_time(self) -> int:
        """Return when the next completion, arrival or change happens, FOREVER if none is left.

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
    def queue_length(self) -> int:
        """Jobs in the queue."""
        return len(self.waiting)

    @property
    def asked(self) -> int:
        """Processors that the jobs in the queue request."""
        return int(self.jobs.processors[self.waiting].sum())

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
        """Complete the jobs that end now; return the rows of those whose unit someone waits for.

        This and the next three are for :class:`LockStep` and for engines with
        shared units, which they do not count.
        """

    @abstractmethod
    def arrive(self) -> list[int]:
        """Process the arrivals of now; return the finished rows among them that users wait for."""

    def change(self) -> list[int]:
        """Apply the platform changes of now; return the finished rows that users wait for."""
        if self.timeline is None:
            return []
        return self.units.awaited(self.timeline.apply(self.now))

    @property
    @abstractmethod
    def unseen(self) -> Int64s:
        """Rows of the jobs in the queue that the scheduler has not seen yet."""

    def inform(self) -> None:
        """Bring the plain form of the scheduler up to date, for ``Scheduler.reasons``.

        This does not affect the run.
        """
        if self.scheduler is not None:
            self.scheduler.windows = self.windows

    @property
    def change_at(self) -> int:
        """When the platform changes next."""
        return FOREVER if self.timeline is None else self.timeline.next_at

    def stays(self, rows: Int64s) -> Int64s:
        """Return how long jobs hold their processors, s, but for checks of limits."""
        run = self.jobs.run_time[rows] + self.latency
        return np.minimum(run, self.jobs.requested_time[rows]) if self.kill else run

    def note_preempted(self, row: int, start: int, now: int, fate: str) -> None:
        """Note a run of a job that was stopped to make room, with its start, s, and its fate."""
        noted = attempt_of(self.jobs, row, now, "preempted", fate)
        self.attempts.append(replace(noted, start=start))

    def note_recorded(self, row: int, submit: int, now: int) -> None:
        """Note a run that ended now, as in the record, and the second of its submission, s."""
        noted = attempt_of(self.jobs, row, now, RECORDED, "requeue")
        self.attempts.append(replace(noted, submit=submit))

    @property
    def ended_in_pass(self) -> list[int]:
        """The rows, lower first, of jobs that the last pass ended and users wait for; read once."""
        return []

    def deliver(self, row: int) -> None:
        """Put a job that a broker held into the queue now, with its run time here."""
        self.adopt(row)
        self._join(row)
        self.arrive()

    def adopt(self, row: int) -> None:
        """Assign a job to this cluster, and set its run time here."""
        self._take(np.array([row]))

    @abstractmethod
    def _join(self, row: int) -> None:
        """Process the arrival of a job now, whenever its user submitted it."""

    def claim(self, row: int) -> None:
        """Start a job now on free processors, bypassing the queue; its request is its estimate."""
        jobs, now = self.jobs, self.now
        if self.idle is not None:
            raise QuantityError(
                "sleep with jobs on several clusters at once: their components cannot wait for "
                "nodes; leave out the sleep rule or the components"
            )
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
        """Start jobs now: one scheduling pass; none during maintenance."""

    @abstractmethod
    def switch(self, scheduler: Scheduler) -> None:
        """Switch to another scheduler for the queue and the running jobs, from now on.

        It has a pass at this instant. It is not notified of jobs that have ended until now.

        Raises
        ------
        QuantityError
            If the schedule is the recorded one, or the engine cannot run the scheduler.
        """

    @abstractmethod
    def take_over(self, waiting: Int64s, running: Int64s) -> None:
        """Continue with these waiting and running jobs, and the present table and :attr:`up`.

        The scheduler has a pass at this instant. For callers that change running or waiting jobs in
        the table; call :meth:`settle` first, to notify predictor and scheduler of earlier events.

        Parameters
        ----------
        waiting, running
            Rows in any order; submissions, estimates, starts and ends are in the table.
        """

    @abstractmethod
    def settle(self) -> None:
        """Notify predictor and scheduler of jobs that ended and arrived since the last pass."""

    def go_on(self, past: Past, left: Int64s) -> None:
        """Go on from a state; the clock is there, and submissions, starts and ends in the table.

        For :func:`~hpcrowd.environment.state.state.begin_from`, before anything has happened.

        Parameters
        ----------
        past
            The state.
        left
            Rows of jobs that left the queue without a start.

        Raises
        ------
        QuantityError
            If the machine cannot hold what runs.
        """
        jobs, running, waiting, over = self.jobs, past.running, past.waiting, past.over
        self.began = past.now
        here = np.concatenate((running, waiting))
        if self.timeline is not None:
            self.timeline.begin_at(past.now)
        for rows in (here, over, left):
            jobs.matrix[Column.CLUSTER, rows] = self.number
        state = jobs.column(Column.STATE)
        outran = jobs.run_time[over] + self.latency > jobs.requested_time[over]
        outran &= (jobs.requested_time[over] != UNKNOWN) & self.kill
        state[over] = np.where(outran, State.KILLED, State.COMPLETED)
        state[left] = State.CANCELLED
        if self.timeline is not None:
            successor = self.timeline.reviews.begin_at(past.now)
            if successor is not None:
                self._use(successor)
        if self.scheduler is not None:
            self.scheduler.learn_users()
        self._take(here)
        waiting = self._admitted(waiting)
        needs = int(jobs.processors[running].sum())
        up = self.uncapped
        if needs > up:
            raise QuantityError(
                f"running jobs: they need {needs:,} processors, and the machine has {up:,}; "
                "give its size with --processors"
            )
        self._estimate_all(np.concatenate((over, running, waiting)))
        ends = jobs.start[running] + jobs.run_time[running] + self.latency
        if self.kill:
            limits = jobs.start[running] + jobs.requested_time[running]
            checks = limits + (self.kill_phase - limits) % self.kill_every
            ends = np.where(ends > limits, checks, ends)
        jobs.end[running] = np.maximum(ends, past.now + 1)
        jobs.end[waiting] = UNKNOWN
        if self.predictor is not None:
            self._follow(past._replace(waiting=waiting))
        if self.idle is not None:
            self._let_idle(self.idle.rule)
        self._go_on(past._replace(waiting=waiting))

    @property
    def uncapped(self) -> int:
        """Processors that are up, whether a power cap lets them be busy or not."""
        return self.up if self.timeline is None else self.timeline.up

    @property
    def largest(self) -> int:
        """Most processors of a job that arrives; larger ones can never run here."""
        return min(self.processors, self.most)

    def _admitted(self, waiting: Int64s) -> Int64s:
        """Reject waiting jobs that the machine can never run; return the others."""
        jobs, scheduler = self.jobs, self.scheduler
        large = jobs.processors[waiting] > self.processors
        if scheduler is not None and scheduler.nodes:
            for place, row in enumerate(waiting.tolist()):
                word = scheduler.turns_away(row)
                if word:
                    self._refused[row], large[place] = word, True
        jobs.column(Column.STATE)[waiting[large]] = State.REJECTED
        return waiting[~large]

    def _estimate_all(self, rows: Int64s) -> None:
        """Set what the scheduler believes of jobs that are here already, or were."""
        if not isinstance(self.estimates, Estimates):
            return
        jobs, estimates = self.jobs, self.estimates
        requested, run = jobs.requested_time[rows], jobs.run_time[rows]
        run = np.where(run == UNKNOWN, jobs.end[rows] - jobs.start[rows], run)
        if self.kill:
            run = np.where(requested == UNKNOWN, run, np.minimum(run, requested))
        requested = np.where(requested == UNKNOWN, run, requested)
        if estimates.kind == "factor":
            over, under = estimates.ratio.as_integer_ratio()
            requested = (2 * requested * over + under) // (2 * under)
        jobs.estimate[rows] = run if estimates.kind == "exact" else requested

    def _follow(self, past: Past) -> None:
        """Let the predictor hear of the past, and set what it predicted at each arrival.

        A job without run time ends after the arrivals of its second, since it starts after them.
        """
        jobs = self.jobs
        assert self.predictor is not None
        arrived = np.concatenate((past.over, past.running, past.waiting))
        ended = past.over[jobs.state[past.over] == State.COMPLETED]
        row = np.concatenate((ended, arrived))
        time = np.concatenate((jobs.end[ended], jobs.enqueued[arrived]))
        kind = np.repeat([ENDED, ARRIVED], [len(ended), len(arrived)])
        turn = np.where(jobs.start[ended] == jobs.end[ended], 2, 0)
        turn = np.concatenate((turn, np.ones(len(arrived), np.int64)))
        order = np.lexsort((row, turn, time))
        predicted = self.predictor.follow(Events(time[order], row[order], kind[order]))
        jobs.estimate[arrived] = predicted[arrived]

    @abstractmethod
    def _go_on(self, past: Past) -> None:
        """Go on from a state that is in the table, with estimates and expected ends."""

    @abstractmethod
    def _use(self, scheduler: Scheduler) -> None:
        """Use another scheduler from the beginning."""

    def _predict(self, ended: Int64s, arrived: Int64s) -> None:
        """Notify the predictor, if any, of jobs that ended, and predict those that arrived.

        It is notified of each event at its second, even if there was no pass then, as during
        maintenance.
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
        """Note that jobs are submitted here, and set their run times here."""
        self.catch_up()
        matrix = self.jobs.matrix
        matrix[Column.CLUSTER, rows] = self.number
        if self.scheduler is not None and self.scheduler.nodes:
            self.scheduler.submitted(rows)
        if self.speed != 1:
            for column in (Column.RUN_TIME, Column.REQUESTED_TIME):
                matrix[column, rows] = time_at_speed(matrix[column, rows], self.speed)
        if self.work is not None:
            if len(self.work) < len(self.jobs):
                grown = np.full(2 * len(self.jobs), UNKNOWN)
                grown[: len(self.work)] = self.work
                self.work = grown
            self.work[rows] = matrix[Column.RUN_TIME, rows]

    def catch_up(self) -> None:
        """Apply platform changes that happened while there was nothing to do here."""
        if self.timeline is not None:
            self.timeline.catch_up(self.now)

    def _check_switch(self) -> None:
        if self.scheduler is None:
            raise QuantityError(
                "switch from the recorded schedule: it has no policy; begin with a scheduler"
            )

    def _check_future(self, at: int) -> None:
        if at < self.now:
            raise SimulationError(
                f"submission at {at} s: in the past, it is already {self.now} s; submit now or "
                "later"
            )
