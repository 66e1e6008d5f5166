"""The plain engine: any scheduler, in readable Python, in the same order of time as compiled."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from environment.engine import Engine
from environment.errors import SchedulerError
from environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from environment.lockstep import LockStep
from environment.schedulers import RunningJob, Scheduler, WaitingJob
from environment.stops import FOREVER, Stop


class PlainEngine(Engine):
    """Runs jobs under a :class:`~environment.schedulers.Scheduler`, or as recorded under None.

    Parameters
    ----------
    jobs, processors, **options
        See :class:`~environment.engine.Engine`.
    scheduler
        Who decides; None starts every job its recorded wait after its submission, whether
        processors are free or not.
    """

    def __init__(
        self,
        jobs: JobTable,
        processors: int,
        scheduler: Scheduler | None,
        **options: Any,
    ) -> None:
        super().__init__(jobs, processors, **options)
        self.scheduler = scheduler
        self._now = 0
        self._free = processors
        self._arrivals: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._queue: list[WaitingJob] = []
        self._running: list[RunningJob] = []
        self._events = 0
        self._alone = LockStep([self], self.units)

    @property
    @override
    def now(self) -> int:
        return self._now

    @property
    @override
    def free(self) -> int:
        return self._free

    @property
    @override
    def events(self) -> int:
        return self._events

    @property
    @override
    def waiting(self) -> Int64s:
        return np.array([job.row for job in self._queue], np.int64)

    @property
    @override
    def running(self) -> Int64s:
        return np.array([row for _, row in self._ends], np.int64)

    @override
    def next_time(self) -> int:
        time = self._arrivals[0][0] if self._arrivals else FOREVER
        return min(time, self._ends[0][0]) if self._ends else time

    @override
    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if len(rows) == 0:
            return
        self.units.check_rows(rows)
        times = np.broadcast_to(np.asarray(at, np.int64), rows.shape)
        self._check_future(int(times.min()))
        self._take(rows)
        for row, time in zip(rows.tolist(), times.tolist(), strict=True):
            self.jobs.matrix[Column.SUBMIT, row] = time
            heapq.heappush(self._arrivals, (time, row))

    @override
    def submit_unit(self, unit: int, at: int) -> None:
        units = self.units
        rows = units.rows[units.first[unit] : units.first[unit + 1]]
        recorded = self.jobs.matrix[Column.RECORDED_SUBMIT, rows]
        self.submit(rows, recorded - recorded[0] + at)

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        stop = self._alone.advance(halt, events)
        self.finished = self._alone.finished
        return stop

    @override
    def pass_to(self, time: int) -> None:
        self._now = time

    @override
    def complete(self) -> list[int]:
        jobs = self.jobs
        over = []
        while self._ends and self._ends[0][0] == self._now:
            row = heapq.heappop(self._ends)[1]
            self._events += 1
            requested = int(jobs.requested_time[row])
            outran = self.kill and jobs.run_time[row] > requested
            jobs.state[row] = State.KILLED if outran else State.COMPLETED
            if self.scheduler is not None:
                self._free += int(jobs.processors[row])
                expected = int(jobs.start[row]) + requested
                del self._running[bisect_left(self._running, (expected, row), key=_by_end)]
            over.append(row)
        return self._awaited(over)

    @override
    def arrive(self) -> list[int]:
        jobs = self.jobs
        over = []
        while self._arrivals and self._arrivals[0][0] == self._now:
            row = heapq.heappop(self._arrivals)[1]
            self._events += 1
            job = WaitingJob(
                row,
                int(jobs.processors[row]),
                int(jobs.requested_time[row]),
                self._now,
            )
            if jobs.state[row] == State.RENOUNCED:
                jobs.submit[row] = jobs.cluster[row] = UNKNOWN
                over.append(row)
            elif job.processors > self.processors:
                jobs.state[row] = State.REJECTED
                over.append(row)
            elif self.scheduler is None:
                wait = jobs.recorded_start[row] - jobs.recorded_submit[row]
                self._start(job, self._now + int(wait))
            else:
                insort(self._queue, job, key=_by_arrival)
        return self._awaited(over)

    def _awaited(self, rows: list[int]) -> list[int]:
        """Return those of the rows that users wait for."""
        if not rows:
            return rows
        unit = self.jobs.unit
        return [row for row in rows if unit[row] != UNKNOWN]

    def _start(self, job: WaitingJob, at: int) -> None:
        run = int(self.jobs.run_time[job.row])
        if self.kill:
            run = min(run, job.requested_time)
        self.jobs.start[job.row] = at
        self.jobs.end[job.row] = at + run
        heapq.heappush(self._ends, (at + run, job.row))

    @override
    def schedule(self) -> None:
        scheduler = self.scheduler
        if scheduler is None or not self._queue:
            return
        waiting = {job.row for job in self._queue}
        chosen = list(
            scheduler.select(
                self._now, tuple(self._queue), self._expectations(), self._free, self.processors
            )
        )
        for job in chosen:
            if job.row not in waiting:
                raise SchedulerError(f"{scheduler.name}: job in row {job.row} is not waiting")
            if job.processors > self._free:
                raise SchedulerError(
                    f"{scheduler.name}: job in row {job.row} needs {job.processors} processors, "
                    f"{self._free} are free at {self._now} s"
                )
            waiting.remove(job.row)
            self._free -= job.processors
            runs = RunningJob(job.row, job.processors, self._now + job.requested_time)
            insort(self._running, runs, key=_by_end)
            self._start(job, self._now)
        if chosen:
            self._queue = [job for job in self._queue if job.row in waiting]

    def _expectations(self) -> tuple[RunningJob, ...]:
        """Return the running jobs by expected end; what is late is expected back now."""
        late = bisect_left(self._running, (self._now, -1), key=_by_end)
        if not late:
            return tuple(self._running)
        overdue = [job._replace(expected_end=self._now) for job in self._running[:late]]
        return tuple(sorted(overdue + self._running[late:], key=_by_end))


def _by_end(job: RunningJob) -> tuple[int, int]:
    return job.expected_end, job.row


def _by_arrival(job: WaitingJob) -> tuple[int, int]:
    return job.submit, job.row
