"""The plain engine: any scheduler, in readable Python, in the same order of time as compiled."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import override

import numpy as np
from numpy.typing import ArrayLike

from environment.engine import Engine
from environment.errors import SchedulerError
from environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from environment.schedulers import RunningJob, Scheduler, WaitingJob
from environment.stops import FOREVER, Stop


class PlainEngine(Engine):
    """Runs jobs under a :class:`~environment.schedulers.Scheduler`, or as recorded under None.

    Parameters
    ----------
    jobs, processors, kill
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
        *,
        kill: bool = False,
    ) -> None:
        super().__init__(jobs, processors, kill=kill)
        self.scheduler = scheduler
        self._now = 0
        self._free = processors
        self._arrivals: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._queue: list[WaitingJob] = []
        self._running: list[RunningJob] = []
        self._over: list[int] = []
        self._events = 0
        self._instant = self._instants()
        self._halt = FOREVER
        self._allowance = 0

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
        times = [heap[0][0] for heap in (self._arrivals, self._ends) if heap]
        return min(times, default=FOREVER)

    @override
    def submit(self, rows: ArrayLike, at: ArrayLike) -> None:
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        self._check_rows(rows)
        times = np.broadcast_to(np.asarray(at, np.int64), rows.shape)
        for row, time in zip(rows.tolist(), times.tolist(), strict=True):
            self._check_future(time)
            self.jobs.matrix[Column.SUBMIT, row] = time
            heapq.heappush(self._arrivals, (time, row))

    @override
    def submit_unit(self, unit: int, at: int) -> None:
        rows = self.unit_rows[self.unit_first[unit] : self.unit_first[unit + 1]]
        recorded = self.jobs.matrix[Column.RECORDED_SUBMIT, rows]
        self.submit(rows, recorded - recorded[0] + at)

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        self._halt = halt
        self._allowance = min(self._events + events, FOREVER)
        stop = next(self._instant)
        if stop is Stop.FINISHED:
            self.finished, self._over = self._over, []
        return stop

    def _instants(self) -> Iterator[Stop]:
        """Go from instant to instant; yield wherever :meth:`advance` has to come back."""
        while True:
            time = self.next_time()
            if time > self._halt:
                self._now = max(self._now, self._halt)
                yield Stop.HALT
                continue
            if time == FOREVER:
                yield Stop.DONE
                continue
            if self._events >= self._allowance:
                yield Stop.PAUSE
                continue
            self._now = time
            self._complete()
            if self._over:
                yield Stop.FINISHED
            while self._halt <= self._now:
                yield Stop.HALT
            while self._arrive():
                yield Stop.FINISHED
                while self._halt <= self._now:
                    yield Stop.HALT
            if self.scheduler is not None:
                self._schedule(self.scheduler)

    def _complete(self) -> None:
        """Let end what ends now."""
        while self._ends and self._ends[0][0] == self._now:
            row = heapq.heappop(self._ends)[1]
            self._events += 1
            outran = self.jobs.run_time[row] > self.jobs.requested_time[row]
            self.jobs.state[row] = State.KILLED if self.kill and outran else State.COMPLETED
            if self.scheduler is not None:
                self._free += int(self.jobs.processors[row])
                expected = self.jobs.start[row] + self.jobs.requested_time[row]
                del self._running[bisect_left(self._running, (expected, row), key=_by_end)]
            self._count_over(row)

    def _arrive(self) -> bool:
        """Let arrive what arrives now; return whether a unit is over by it."""
        while self._arrivals and self._arrivals[0][0] == self._now:
            row = heapq.heappop(self._arrivals)[1]
            self._events += 1
            job = WaitingJob(
                row,
                int(self.jobs.processors[row]),
                int(self.jobs.requested_time[row]),
                self._now,
            )
            if self.jobs.state[row] == State.RENOUNCED:
                self.jobs.submit[row] = UNKNOWN
                self._count_over(row)
            elif job.processors > self.processors:
                self.jobs.state[row] = State.REJECTED
                self._count_over(row)
            elif self.scheduler is None:
                wait = self.jobs.recorded_start[row] - self.jobs.recorded_submit[row]
                self._start(job, self._now + int(wait))
            else:
                insort(self._queue, job, key=_by_arrival)
        return bool(self._over)

    def _start(self, job: WaitingJob, at: int) -> None:
        run = int(self.jobs.run_time[job.row])
        if self.kill:
            run = min(run, job.requested_time)
        self.jobs.start[job.row] = at
        self.jobs.end[job.row] = at + run
        heapq.heappush(self._ends, (at + run, job.row))

    def _schedule(self, scheduler: Scheduler) -> None:
        """Ask the scheduler and start what it names."""
        if not self._queue:
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

    def _count_over(self, row: int) -> None:
        unit = self.jobs.unit[row]
        if unit >= 0:
            self.remaining[unit] -= 1
            if self.remaining[unit] == 0:
                self._over.append(int(unit))


def _by_end(job: RunningJob) -> tuple[int, int]:
    return job.expected_end, job.row


def _by_arrival(job: WaitingJob) -> tuple[int, int]:
    return job.submit, job.row
