"""A site that keeps its own rules: users with habits, and EASY with nothing else in its way."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from hpcrowd.analysis.forecast.futures import Future
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.state import ClusterState

#: 2024-01-08, a Monday, 00:00 UTC is second 0.
CLOCK = Clock(1_704_672_000, known=True)

#: Size of the machine.
PROCESSORS = 16


@cache
def site_log(weeks: int = 5, users: int = 6, seed: int = 0) -> JobTable:
    """Return the log of some weeks, scheduled by EASY; requests exceed run times.

    On weekdays each user submits a few jobs a day, in bursts; its run times are log-normal about a
    median of its own.
    """
    draw = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int, int]] = []
    for user in range(1, users + 1):
        median = int(draw.integers(HOUR, 3 * HOUR))
        for day in range(7 * weeks):
            if day % 7 >= 5 and draw.random() < 0.7:
                continue
            for _ in range(draw.poisson(1.2)):
                at = day * DAY + int(draw.normal(13, 3) * HOUR) % DAY
                processors = int(2 ** draw.integers(0, 4))
                for _ in range(1 + draw.poisson(1.0)):
                    run = min(int(median * np.exp(0.8 * draw.standard_normal())) + 1, 12 * HOUR)
                    rows.append((at, run, processors, 12 * HOUR, user))
                    at += int(draw.exponential(600))
    return scheduled(sorted(rows))


def scheduled(rows: list[tuple[int, int, int, int, int]], processors: int = PROCESSORS) -> JobTable:
    """Return the record of jobs that EASY starts: submission, run time, processors, request, user.

    All in s.
    """
    jobs = JobTable(len(rows))
    at, run, wide, request, user = np.array(rows).T
    jobs.number[:] = np.arange(1, len(rows) + 1)
    jobs.recorded_submit[:], jobs.run_time[:], jobs.processors[:] = at, run, wide
    jobs.requested_time[:], jobs.user[:] = request, user
    jobs.group[:] = jobs.queue[:] = jobs.executable[:] = 1
    simulation = Simulation(jobs, processors, "easy", clock=CLOCK)
    simulation.cluster.submit(np.arange(len(jobs)), at)
    simulation.run()
    jobs = jobs.copy()
    jobs.recorded_start[:], jobs.recorded_end[:] = jobs.start, jobs.end
    jobs.erase_outcome()
    return jobs


def busy_moment(jobs: JobTable, waiting: int = 3) -> int:
    """Return a second, in the second half of a log, at which at least as many jobs wait."""
    for at in sorted(jobs.recorded_submit.tolist())[len(jobs) // 2 :]:
        there = (jobs.recorded_submit <= at) & (jobs.recorded_start > at)
        if int(there.sum()) >= waiting:
            return int(at)
    raise AssertionError("the machine is never so busy")


def state_at(now: int | None = None, jobs: JobTable | None = None) -> ClusterState:
    """Return the state of the site at a second, a busy one unless given."""
    jobs = site_log() if jobs is None else jobs
    return ClusterState.of(jobs, busy_moment(jobs) if now is None else now, CLOCK, PROCESSORS)


def swf_of(jobs: JobTable, path: Path, *, requests: bool = True) -> Path:
    """Write a log as a trace, and return its path."""
    lines = ["; Version: 2.2", f"; MaxProcs: {PROCESSORS}", f"; UnixStartTime: {CLOCK.unix_start}",
             "; TimeZoneString: UTC"]  # fmt: skip
    for row in range(len(jobs)):
        submit, start = int(jobs.recorded_submit[row]), int(jobs.recorded_start[row])
        run, wide = int(jobs.run_time[row]), int(jobs.processors[row])
        asked = int(jobs.requested_time[row]) if requests else UNKNOWN
        lines.append(
            f"{jobs.number[row]} {submit} {start - submit} {run} {wide} -1 -1 {wide} {asked} -1 1 "
            f"{jobs.user[row]} 1 1 1 1 -1 -1"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def contents(futures: Sequence[Future]) -> list[bytes]:
    """Return the bytes of futures."""
    return [
        b"".join(np.asarray(one).tobytes() for one in vars(future).values()) for future in futures
    ]
