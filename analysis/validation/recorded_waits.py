"""A machine on which jobs wait as long as jobs like them waited in a record at about that time.

Simulated schedulers are not those of the sites: under EASY most jobs that waited would start at
once. To ask how users answer the waits that they had, each job of a simulation waits as long as the
recorded job nearest in time, of those about as wide and as long. Nothing starts in an outage.

Users learn only when their jobs are over. So jobs start at once on a machine that is never full,
and run for as long as they wait and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

import numpy as np

from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.simulation import Simulation


class Waits:
    """The waits in a record, by time and class of job: wide or not, long or not.

    Parameters
    ----------
    jobs
        The record, with recorded submissions and starts.
    since
        s; for jobs submitted later the waits are those of whole weeks before, if ``repeats``. Then
        only jobs count that had started by then.
    repeats
        Whether that is so; else waits are those of the very time.
    outages
        Begins and ends of times in which nothing starts, s.
    """

    def __init__(
        self, jobs: JobTable, since: int, *, repeats: bool,
        outages: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        self.since, self.repeats, self.outages = since, repeats, outages
        submit, start = jobs.recorded_submit, jobs.recorded_start
        asked = np.where(jobs.requested_time == UNKNOWN, jobs.run_time, jobs.requested_time)
        # Half of the jobs before are wide, and half of them long; what comes is not known.
        before = submit <= since
        self.width = float(np.median(jobs.processors[before]))
        self.length = float(np.median(asked[before]))
        there = start != UNKNOWN
        if repeats:
            there &= start <= since
        order = np.flatnonzero(there)[np.argsort(submit[there], kind="stable")]
        wide, long = jobs.processors[order] > self.width, asked[order] > self.length
        self._by_class: dict[tuple[bool, bool], tuple[Int64s, Int64s]] = {}
        for one in ((False, False), (False, True), (True, False), (True, True)):
            rows = order[(wide == one[0]) & (long == one[1])]
            self._by_class[one] = submit[rows], start[rows] - submit[rows]

    def start(self, submit: int, processors: int, asked: int) -> int:
        """Return when a job starts that asks for so many processors for so many seconds, s."""
        at = submit
        if self.repeats and submit > self.since:
            at -= -(-(submit - self.since) // WEEK) * WEEK
        times, waits = self._by_class[processors > self.width, asked > self.length]
        wait = 0
        if len(times):
            place = int(times.searchsorted(at))
            nearest = min(
                (one for one in (place - 1, place) if 0 <= one < len(times)),
                key=lambda one: abs(int(times[one]) - at),
            )
            wait = int(waits[nearest])
        start = submit + wait
        for begin, end in self.outages:
            if begin <= start < end:
                start = end
        return start


class AsWaited(Part):
    """Lets jobs run for as long as they wait and run, in a simulation with users.

    Parameters
    ----------
    simulation
        It has not run yet; its machine has to be large enough for all jobs at once.
    waits
        The waits.

    Attributes
    ----------
    waited
        s, of the jobs that users submit, by row.
    """

    def __init__(self, simulation: Simulation, waits: Waits) -> None:
        self.simulation, self.waits = simulation, waits
        self.waited: dict[int, int] = {}
        jobs, now = simulation.jobs, simulation.time
        waiting = np.flatnonzero((jobs.state == State.UNFINISHED) & (jobs.start == UNKNOWN))
        self._wait(waiting, jobs.recorded_submit[waiting], now)
        simulation.parts.add(self)

    @override
    def on_unit(self, owner: object, rows: Int64s) -> None:
        jobs, now = self.simulation.jobs, self.simulation.time
        if jobs.submit[rows[0]] == UNKNOWN:  # the jobs of a user that wait already are a unit, too
            self._wait(rows, now + jobs.recorded_submit[rows] - jobs.recorded_submit[rows[0]], now)

    def _wait(self, rows: Int64s, submit: Int64s, now: int) -> None:
        """Make jobs longer by what is left of their waits."""
        jobs = self.simulation.jobs
        asked = np.where(
            jobs.requested_time[rows] == UNKNOWN, jobs.run_time[rows], jobs.requested_time[rows]
        )
        for row, at, width, length in zip(
            rows.tolist(), submit.tolist(), jobs.processors[rows].tolist(), asked.tolist(),
            strict=True,
        ):  # fmt: skip
            wait = max(self.waits.start(at, width, length) - max(at, now), 0)
            self.waited[row] = wait
            jobs.run_time[row] += wait
