"""The plain engine: any scheduler, in readable Python, with the event order of the compiled one."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, NamedTuple, override

import numpy as np

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.lock_step import LockStep
from hpcrowd.environment.errors import HpcrowdError, SchedulerError, echo
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.quantities import time_at_pace
from hpcrowd.environment.registry import said
from hpcrowd.environment.schedulers.arithmetic import believed_end
from hpcrowd.environment.schedulers.base import EndedJob, Look, RunningJob, Scheduler, WaitingJob
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.stops import FOREVER, Stop

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.past import Past

#: Columns of the table by the fields of what schedulers see of a job, after its row.
OWNER = [Column.USER, Column.GROUP, Column.QUEUE]
WAITING = np.array(
    [Column.PROCESSORS, Column.ESTIMATE, Column.ENQUEUED, Column.REQUESTED_TIME, *OWNER]
)
RUNNING = np.array([Column.PROCESSORS, Column.START, *OWNER])
ENDED = np.array(
    [Column.PROCESSORS, Column.ESTIMATE, Column.ENQUEUED, Column.START, Column.END, *OWNER]
)


class _Suspended(NamedTuple):
    """A suspended job: since when, and how long it still runs, in truth and as expected, s."""

    since: int
    left: int
    expected: int


class PlainEngine(Engine):
    """Runs jobs under a :class:`~environment.schedulers.base.Scheduler`, or as recorded under None.

    Parameters
    ----------
    jobs, processors, **options
        See :class:`~hpcrowd.environment.engine.base.Engine`.
    scheduler
        The scheduler; None starts every job its recorded wait after its submission, whether
        processors are free or not.
    """

    now = 0
    events = 0
    free = 0

    def __init__(
        self,
        jobs: JobTable,
        processors: int,
        scheduler: Scheduler | None,
        **options: Any,
    ) -> None:
        super().__init__(jobs, processors, **options)
        self.scheduler = scheduler
        self.free = processors
        self._arrivals: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._queue: list[WaitingJob] = []
        self._running: list[RunningJob] = []
        self._expected: dict[int, int] = {}
        self._ended: list[int] = []
        self._arrived: list[int] = []
        self._stopped: list[int] = []
        self._suspended: dict[int, _Suspended] = {}
        self._wake = FOREVER
        self._corrects = self.predictor is not None or (scheduler is not None and scheduler.plans)
        if scheduler is not None:
            scheduler.begin(processors)
        self._alone = LockStep([self], self.units)

    @property
    @override
    def alone(self) -> bool:
        return True

    @property
    @override
    def waiting(self) -> Int64s:
        here = [(job.submit, job.row) for job in self._queue]
        arrived = [(int(self.jobs.enqueued[row]), row) for row in self._arrived]
        return np.array([row for _, row in sorted(here + arrived)], np.int64)

    @property
    @override
    def unseen(self) -> Int64s:
        return np.array(self._arrived, np.int64)

    @property
    @override
    def running(self) -> Int64s:
        return np.array([*(row for _, row in self._ends), *self._suspended], np.int64)

    @override
    def next_time(self) -> int:
        time = self._arrivals[0][0] if self._arrivals else FOREVER
        if self._queue:
            time = min(time, self._wake)
        if self._ends:
            time = min(time, self._ends[0][0])
        if time < FOREVER or self._queue or self._arrived:
            time = min(time, self.change_at)
        return time

    @property
    @override
    def arriving(self) -> bool:
        return bool(self._arrivals)

    @override
    def _join(self, row: int) -> None:
        heapq.heappush(self._arrivals, (self.now, row))

    @override
    def _expect(self, rows: Int64s) -> None:
        times = self.jobs.submit[rows]
        for row, time in zip(rows.tolist(), times.tolist(), strict=True):
            heapq.heappush(self._arrivals, (time, row))

    @override
    def withdraw(self, rows: Int64s) -> None:
        gone = set(rows.tolist())
        self._arrivals = [one for one in self._arrivals if one[1] not in gone]
        heapq.heapify(self._arrivals)

    @override
    def _take_note(self, ended: Int64s, left: Int64s) -> None:
        if self.scheduler is None:
            return
        if len(ended):
            self.scheduler.ended(self.now, [self._as_ended(row) for row in np.sort(ended).tolist()])
        self.scheduler.taken_back(np.sort(left))

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        stop = self._alone.advance(halt, events)
        self.finished = self._alone.finished
        return stop

    @override
    def pass_to(self, time: int) -> None:
        self.now = time

    @override
    def complete(self) -> list[int]:
        jobs = self.jobs
        over = []
        while self._ends and self._ends[0][0] == self.now:
            row = heapq.heappop(self._ends)[1]
            self.events += 1
            run = jobs.run_time[row] + self.latency
            outran = self.kill and run > jobs.requested_time[row]
            jobs.matrix[Column.STATE, row] = State.KILLED if outran else State.COMPLETED
            if self.scheduler is not None:
                self.free += int(jobs.processors[row])
                expected = self._expected.pop(row)
                del self._running[bisect_left(self._running, (expected, row), key=_by_end)]
                self._ended.append(row)
            over.append(row)
        return self.units.awaited(over) if over else over

    @override
    def arrive(self) -> list[int]:
        jobs = self.jobs
        over = []
        while self._arrivals and self._arrivals[0][0] == self.now:
            row = heapq.heappop(self._arrivals)[1]
            self.events += 1
            if jobs.state[row] == State.RENOUNCED:
                jobs.submit[row] = jobs.cluster[row] = UNKNOWN
                over.append(row)
            elif jobs.processors[row] > self.largest or self._refuses(row):
                jobs.matrix[Column.STATE, row] = State.REJECTED
                over.append(row)
            elif self.scheduler is None:
                jobs.enqueued[row] = self.now
                self._estimate(row)
                wait = jobs.recorded_start[row] - jobs.recorded_submit[row]
                self._start(row, self.now + int(wait))
            else:
                if self.pace != 1:
                    jobs.run_time[row] = time_at_pace(jobs.run_time[row], self.pace)
                jobs.enqueued[row] = self.now
                self._estimate(row)
                self._arrived.append(row)
        return self.units.awaited(over) if over else over

    def _refuses(self, row: int) -> bool:
        """Return whether the machine of nodes rejects an arriving job, and note why."""
        if self.scheduler is None or not self.scheduler.nodes:
            return False
        reason = self.scheduler.refuses(row)
        if reason:
            self._refused[row] = reason
        return bool(reason)

    def _estimate(self, row: int) -> None:
        requested, run = int(self.jobs.requested_time[row]), int(self.jobs.run_time[row])
        if isinstance(self.estimates, Estimates):
            requested = self.estimates.of(requested, min(run, requested) if self.kill else run)
        self.jobs.estimate[row] = requested  # a predictor sets it at the next pass

    def _start(self, row: int, at: int) -> None:
        end = at + int(self.jobs.run_time[row]) + self.latency
        if self.kill and end > (limit := at + int(self.jobs.requested_time[row])):
            end = limit + (self.kill_phase - limit) % self.kill_every
        self.jobs.start[row] = at
        self.jobs.end[row] = end
        heapq.heappush(self._ends, (end, row))

    @override
    def schedule(self) -> None:
        scheduler = self.scheduler
        if scheduler is None:
            return
        if self.idle is not None:
            self.idle.balance(self.now, self.free, len(self._queue) + len(self._arrived))
        if self.closed:
            self._wake = FOREVER
            return
        self.settle()
        self._wake = FOREVER
        if not self._queue:
            scheduler.nothing_waits(self.now)
            if scheduler.resumes:
                self._switch_on_and_off(scheduler)
            return
        scheduler.windows = self.windows
        shown = self._queue
        if self.windows and not scheduler.drains:
            shown = [job for job in shown if self.now + job.estimate <= self.closes]
        queue = {job.row: job for job in shown}
        look = Look(self.now, tuple(shown), self._expectations(), self.free, self.up)
        found: Any = ()
        try:
            found = scheduler.select(look)
            chosen = list(found)
        except HpcrowdError:
            raise
        except Exception as error:
            if found is None:
                raise SchedulerError(
                    f"{scheduler.name}: select() returned None at {self.now} s; it must return the "
                    "jobs to start, or yield them"
                ) from None
            raise self._failed("select", error) from error
        if scheduler.stops:
            self._preempt(scheduler)
        if scheduler.suspends or scheduler.resumes:
            self._switch_on_and_off(scheduler)
        for job in chosen:
            if not isinstance(job, WaitingJob):
                raise SchedulerError(
                    f"{scheduler.name}: select() returned {echo(job)} at {self.now} s; it must "
                    "return jobs of look.waiting, not rows or others"
                )
            if job.row not in queue:
                raise SchedulerError(
                    f"{scheduler.name}: job in row {job.row} is not waiting at {self.now} s; name "
                    "each job of look.waiting once"
                )
            waiting = queue.pop(job.row)
            if waiting.processors > self.free:
                raise SchedulerError(
                    f"{scheduler.name}: job in row {job.row} needs {waiting.processors} "
                    f"processors, {self.free} are free at {self.now} s"
                )
            if self.now + waiting.estimate > self.closes:
                raise SchedulerError(
                    f"{scheduler.name}: job in row {job.row} is expected to run for "
                    f"{waiting.estimate} s from {self.now} s, into the maintenance at "
                    f"{self.closes} s; keep to Scheduler.windows, or set drains = False"
                )
            self.free -= waiting.processors
            start = self.now
            if self.idle is not None:
                run = int(self.stays(np.array([job.row]))[0])
                start = self.idle.start(job.row, start, run)
            self._expected[job.row] = start + max(waiting.estimate, self._corrects)
            self._start(job.row, start)
            insort(self._running, self._as_running(job.row), key=_by_end)
        if chosen:
            started = {job.row for job in chosen}
            self._queue = [job for job in self._queue if job.row not in started]
        self._note(scheduler)

    def _preempt(self, scheduler: Scheduler) -> None:
        """Stop the jobs that a scheduler preempts; requeued ones wait again."""
        jobs, now = self.jobs, self.now
        stops = dict(scheduler.stops)
        scheduler.stops.clear()
        rows = np.array(sorted(stops), np.int64)
        self._ends = [one for one in self._ends if one[1] not in stops]
        heapq.heapify(self._ends)
        self._running = [one for one in self._running if one.row not in stops]
        self.free += int(jobs.processors[rows].sum())
        for row in rows.tolist():
            del self._expected[row]
            self.note_preempted(row, int(jobs.start[row]), now, stops[row])
        requeued = np.array([row for row in rows.tolist() if stops[row] == "requeue"], np.int64)
        failed = np.setdiff1d(rows, requeued)
        jobs.start[requeued] = jobs.end[requeued] = jobs.paused[requeued] = UNKNOWN
        for row in requeued.tolist():
            insort(self._queue, self._as_waiting(row), key=_by_arrival)
        jobs.end[failed] = now
        jobs.column(Column.STATE)[failed] = State.FAILED
        self._stopped = failed.tolist()

    def _switch_on_and_off(self, scheduler: Scheduler) -> None:
        """Suspend the jobs that a scheduler suspends, and let others go on."""
        jobs, now = self.jobs, self.now
        for row in scheduler.suspends:
            self._suspended[row] = _Suspended(
                now, int(jobs.end[row]) - now, self._expected.pop(row) - now
            )
            self.free += int(jobs.processors[row])
            jobs.end[row] = UNKNOWN
        for row in scheduler.resumes:
            paused = self._suspended.pop(row)
            self.free -= int(jobs.processors[row])
            jobs.end[row] = now + paused.left
            jobs.paused[row] = max(jobs.paused[row], 0) + now - paused.since
            heapq.heappush(self._ends, (int(jobs.end[row]), row))
            self._expected[row] = now + max(paused.expected, self._corrects)
            insort(self._running, self._as_running(row), key=_by_end)
        if scheduler.suspends:
            gone = set(scheduler.suspends)
            self._ends = [one for one in self._ends if one[1] not in gone]
            heapq.heapify(self._ends)
            self._running = [one for one in self._running if one.row not in gone]
        scheduler.suspends.clear()
        scheduler.resumes.clear()

    @override
    def cancel(self, rows: Int64s) -> None:
        paused = {row: one for row in rows.tolist() if (one := self._suspended.get(row))}
        super().cancel(rows)
        for row, one in paused.items():
            self.jobs.paused[row] = max(self.jobs.paused[row], 0) + self.now - one.since

    @property
    @override
    def ended_in_pass(self) -> list[int]:
        ended, self._stopped = self._stopped, []
        return self.units.awaited(ended) if ended else ended

    @override
    def switch(self, scheduler: Scheduler) -> None:
        self._check_switch()
        self.settle()
        waiting, running = self.waiting, self.running
        self._use(scheduler)
        assert self.scheduler is not None  # checked above
        scheduler = self.scheduler
        if scheduler.remembers:
            scheduler.ended(
                self.now, [self._as_ended(row) for row in self.jobs.ended(self.number).tolist()]
            )
        self.take_over(waiting, running)

    @override
    def _use(self, scheduler: Scheduler) -> None:
        assert self.scheduler is not None  # not the recorded schedule
        self.scheduler = scheduler = self.scheduler.successor(scheduler)
        self._corrects = self.predictor is not None or scheduler.plans
        scheduler.begin(self.up)

    @override
    def _go_on(self, past: Past) -> None:
        scheduler = self.scheduler
        assert scheduler is not None  # checked before
        self._lay_out(past.waiting, past.running)
        ended = [self._as_ended(row) for row in past.over.tolist()]
        scheduler.go_on(past, tuple(self._running), ended)
        scheduler.changed(self.now)

    @override
    def take_over(self, waiting: Int64s, running: Int64s) -> None:
        self._lay_out(waiting, running)
        if self.scheduler is not None:
            self.scheduler.take_over(self.now, tuple(self._running))
            self.scheduler.changed(self.now)

    def _lay_out(self, waiting: Int64s, running: Int64s) -> None:
        """Take note of what waits and runs, from the table."""
        jobs, idle = self.jobs, self.idle
        early = [] if idle is None else [*idle.stopped_early(self.now, running)]
        still = set(running.tolist())
        self._suspended = {row: one for row, one in self._suspended.items() if row in still}
        running = np.array(
            [row for row in running.tolist() if row not in self._suspended], np.int64
        )
        ends = jobs.start[running] + jobs.estimate[running] + np.maximum(jobs.paused[running], 0)
        self._expected = dict(zip(running.tolist(), ends.tolist(), strict=True))
        self._running = sorted(map(self._as_running, running.tolist()), key=_by_end)
        self._ends = sorted(zip(jobs.end[running].tolist(), running.tolist(), strict=True))
        self._queue = sorted(map(self._as_waiting, waiting.tolist()), key=_by_arrival)
        self.free = self.up
        self._wake = self.now
        if self.scheduler is not None:
            self.free -= int(jobs.processors[running].sum())
        if idle is not None:
            idle.balance(self.now, self.free, len(self._queue), early)

    @override
    def settle(self) -> None:
        scheduler, ended, arrived = self.scheduler, self._ended, self._arrived
        if scheduler is None:
            return
        if self.predictor is not None:
            self._predict(np.array(ended, np.int64), np.array(arrived, np.int64))
        if ended:
            try:
                scheduler.ended(self.now, [self._as_ended(row) for row in ended])
            except Exception as error:
                raise self._failed("ended", error) from error
        for row in arrived:
            insort(self._queue, self._as_waiting(row), key=_by_arrival)
        self._ended, self._arrived = [], []

    def _note(self, scheduler: Scheduler) -> None:
        """Note when to call the scheduler again, and its promises."""
        try:
            wake = scheduler.wake(self.now)
        except Exception as error:
            raise self._failed("wake", error) from error
        if wake is not None:
            if not isinstance(wake, int | np.integer):
                raise SchedulerError(
                    f"{scheduler.name}: wake() returned {echo(wake)} at {self.now} s; it must "
                    "return a whole second or None"
                )
            if wake <= self.now:
                raise SchedulerError(
                    f"{scheduler.name}: wake() returned {wake} s, but it is already "
                    f"{self.now} s; it must return a later second or None"
                )
            self._wake = wake
        for row, start in scheduler.promises.items():
            if self.jobs.promised[row] == UNKNOWN:
                self.jobs.promised[row] = start
        scheduler.promises.clear()

    def _failed(self, method: str, error: Exception) -> SchedulerError:
        """Return the error of a scheduler that raised one."""
        assert self.scheduler is not None
        return SchedulerError(f"{self.scheduler.name}: {method}() at {self.now} s: {said(error)}")

    def _as_waiting(self, row: int) -> WaitingJob:
        return WaitingJob(row, *self.jobs.matrix[WAITING, row].tolist())

    def _as_running(self, row: int) -> RunningJob:
        processors, *known = self.jobs.matrix[RUNNING, row].tolist()
        return RunningJob(row, processors, self._expected[row], *known)

    def _as_ended(self, row: int) -> EndedJob:
        return EndedJob(row, *self.jobs.matrix[ENDED, row].tolist())

    def _expectations(self) -> tuple[RunningJob, ...]:
        """Return the running jobs by expected end; late jobs are expected to end now, or later.

        Schedulers that plan ahead or use predictions expect them to run on for a while.
        """
        late = bisect_left(self._running, (self.now + self._corrects, -1), key=_by_end)
        if not late:
            return tuple(self._running)
        if not self._corrects:
            overdue = [job._replace(expected_end=self.now) for job in self._running[:late]]
            return tuple(sorted(overdue + self._running[late:], key=_by_end))
        jobs = self.jobs
        for job in self._running[:late]:
            estimate, requested = int(jobs.estimate[job.row]), int(jobs.requested_time[job.row])
            self._expected[job.row] = believed_end(job.start, estimate, requested, self.now)
        again = [job._replace(expected_end=self._expected[job.row]) for job in self._running]
        self._running = sorted(again, key=_by_end)
        return tuple(self._running)


def _by_end(job: RunningJob) -> tuple[int, int]:
    return job.expected_end, job.row


def _by_arrival(job: WaitingJob) -> tuple[int, int]:
    return job.submit, job.row
