"""Moments of a record, from which a scheduler is tried: what it starts when, job by job.

From the state at a moment a scheduler runs on with the recorded submissions and run times. Errors
do not pile up as in a run of the whole record, so that starts can be compared one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.streams import Streams

#: How far a scheduler runs on from a moment, s (our choice).
REACH = 2 * DAY

#: Most waiting jobs of a moment that are compared, drawn from all (our choice).
MOST_JUDGED = 40

#: Starts count as right within these, s: a minute, ten minutes, an hour.
WITHIN = (60, 600, HOUR)

#: Later than any second of a record.
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Moment:
    """One moment: the jobs that run, then those that wait, then those that are submitted later."""

    now: int  #: s since the origin
    reach: int  #: s, how far the scheduler runs on
    jobs: JobTable
    running: int  #: how many jobs run
    waiting: int  #: how many wait
    #: When the jobs started in the record, s, :data:`NEVER` if not within it, shape (jobs,).
    start: Int64s
    judged: Int64s  #: rows of waiting jobs that are compared
    new: Int64s  #: rows of jobs that are submitted in the first half of the reach
    clock: Clock
    processors: int

    def starts(self, scheduler: str | Scheduler, delays: Int64s | None = None) -> Int64s:
        """Return when a scheduler starts the jobs, s, :data:`NEVER` beyond the reach, (jobs,).

        With ``delays``, shape (jobs,), jobs join the queue that long after the moment or their
        submission, s.
        """
        from hpcrowd.environment.cluster import ClusterSpec
        from hpcrowd.environment.simulation import Simulation
        from hpcrowd.environment.state.state import begin_from

        jobs, present = self.jobs.copy(), self.running + self.waiting
        simulation = Simulation(jobs, ClusterSpec(self.processors, scheduler), clock=self.clock)
        late = np.zeros(len(jobs), np.int64) if delays is None else delays
        rows = np.arange(len(jobs))
        waiting = rows[self.running : present]
        begin_from(simulation, self.now, rows[: self.running], waiting[late[waiting] <= 0])
        coming = np.concatenate((waiting[late[waiting] > 0], rows[present:]))
        when = np.maximum(jobs.recorded_submit[coming], self.now) + late[coming]
        simulation.cluster.submit(coming, when)
        until = self.now + self.reach
        simulation.run(until=until)
        found: Int64s = np.where((jobs.start == UNKNOWN) | (jobs.start > until), NEVER, jobs.start)
        return found


def moments_of(
    jobs: JobTable, clock: Clock, processors: int, rows: Int64s, seed: int = 0, reach: int = REACH
) -> list[Moment]:
    """Return the moments at the submissions of some jobs of a record.

    A job that has not ended in the record runs as long as it requests, one that has not started
    waits; those that left the queue without a start are left out.

    Parameters
    ----------
    jobs
        The record, with recorded times.
    clock, processors
        Local time, and size of the machine.
    rows
        Of the jobs whose submissions are the moments.
    seed
        Of the draw of waiting jobs that are compared.
    reach
        How far schedulers run on, s.
    """
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    left = (start == UNKNOWN) & (end != UNKNOWN)
    begun = np.where(start == UNKNOWN, NEVER, start)
    asked = np.maximum(jobs.requested_time, 1)
    over = np.where(end == UNKNOWN, np.where(start == UNKNOWN, NEVER, start + asked), end)
    runs = np.where(end == UNKNOWN, asked, end - start)
    found = []
    for row in rows.tolist():
        now = int(submit[row])
        known = (submit >= 0) & (submit <= now) & ~left
        running = np.flatnonzero(
            known & (begun <= now) & (over > now) & (np.arange(len(jobs)) != row)
        )
        waits = known & (begun > now)
        waits[row] = not left[row]  # waits, even if it starts in the same second
        waiting = np.flatnonzero(waits)
        waiting = waiting[np.argsort(submit[waiting], kind="stable")]
        coming = np.flatnonzero((submit > now) & (submit <= now + reach) & ~left)
        chosen = np.concatenate((running, waiting, coming))
        table = jobs.take(chosen)
        table.erase_outcome()
        table.run_time[:] = runs[chosen]
        bare = table.requested_time == UNKNOWN
        table.requested_time[bare] = table.run_time[bare]
        table.recorded_start[len(running) :] = UNKNOWN
        first, last = len(running), len(running) + len(waiting)
        judged = first + np.flatnonzero(begun[waiting] <= now + reach)
        if len(judged) > MOST_JUDGED:
            draw = Streams(seed).generator("moment", now)
            judged = np.sort(draw.choice(judged, MOST_JUDGED, replace=False))
        early = (submit[coming] <= now + reach // 2) & (begun[coming] <= now + reach)
        size = max(processors, int(table.processors[:first].sum()))
        found.append(
            Moment(
                now=now,
                reach=reach,
                jobs=table,
                running=first,
                waiting=len(waiting),
                start=begun[chosen],
                judged=judged,
                new=last + np.flatnonzero(early),
                clock=clock,
                processors=size,
            )
        )
    return found


@dataclass(frozen=True)
class Score:
    """How a scheduler does at moments; rows of the arrays are moments."""

    waiting: Float64s  #: waiting jobs started within each of :data:`WITHIN`, shape (moments, 3)
    new: Float64s  #: jobs submitted later, likewise
    counts: Int64s  #: of waiting, and of new jobs that are compared, shape (moments, 2)
    #: sum of the differences of ln(1 + minutes to the start) of waiting jobs, shape (moments,)
    log: Float64s

    @classmethod
    def of(cls, moments: Sequence[Moment], scheduler: str | Scheduler) -> Score:
        """Return the score of a scheduler."""
        return cls.of_starts(moments, [one.starts(scheduler) for one in moments])

    @classmethod
    def of_starts(cls, moments: Sequence[Moment], starts: Sequence[Int64s]) -> Score:
        """Return the score of starts, as those of :meth:`Moment.starts`."""
        rows = [_compare(one, made) for one, made in zip(moments, starts, strict=True)]
        waiting, new, counts, log = zip(*rows, strict=True)
        return cls(np.array(waiting), np.array(new), np.array(counts), np.array(log))

    def at(self, which: NDArray[np.bool_] | Int64s) -> Score:
        """Return the score at some of the moments."""
        return Score(self.waiting[which], self.new[which], self.counts[which], self.log[which])

    @property
    def shares(self) -> Float64s:
        """Shares of waiting jobs that start within a minute, ten minutes, an hour, shape (3,)."""
        found: Float64s = self.waiting.sum(0) / max(int(self.counts[:, 0].sum()), 1)
        return found

    @property
    def new_shares(self) -> Float64s:
        """Likewise of jobs that are submitted later."""
        found: Float64s = self.new.sum(0) / max(int(self.counts[:, 1].sum()), 1)
        return found

    @property
    def value(self) -> float:
        """What a fit makes large: right starts, those within ten minutes most, and near misses."""
        waiting, new = self.shares @ WEIGHTS, self.new_shares @ WEIGHTS
        log = self.log.sum() / max(int(self.counts[:, 0].sum()), 1)
        return float(waiting + NEW_WEIGHT * new - LOG_WEIGHT * log)


#: Weights of starts within each of :data:`WITHIN`, of new jobs next to waiting ones, and of the
#: mean difference of logarithms (our choice: a start within ten minutes is what counts).
WEIGHTS, NEW_WEIGHT, LOG_WEIGHT = np.array([0.2, 0.6, 0.2]), 0.2, 0.03


def _compare(moment: Moment, starts: Int64s) -> tuple[list[int], list[int], tuple[int, int], float]:
    """Return what :class:`Score` has of one moment."""
    end = moment.now + moment.reach
    made, real = np.minimum(starts, end), np.minimum(moment.start, end)
    judged, new = moment.judged, moment.new
    right = []
    for rows in (judged, new):
        off = np.abs(made[rows] - real[rows])
        right.append([int((off <= limit).sum()) for limit in WITHIN])
    minutes = [np.log1p((times[judged] - moment.now) / 60) for times in (made, real)]
    return right[0], right[1], (len(judged), len(new)), float(np.abs(minutes[0] - minutes[1]).sum())
