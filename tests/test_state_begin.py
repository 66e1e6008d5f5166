"""A run that begins from a state goes on as the run that the state was cut from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.begin import begin_from

PROCESSORS = 16

#: Policies with a plan: a state does not hold their reservations.
PLANNING = ("conservative", "selective", "selective-categorized", "adaptive")


def workload(seed: int, count: int = 300) -> JobTable:
    """Return jobs of five users who ask for somewhat more than the machine has."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 4000, count) // rng.choice([1, 20], count)
    processors = np.minimum(2 ** rng.integers(0, 4, count), PROCESSORS)
    gap = run.mean() * processors.mean() / PROCESSORS / 1.2
    jobs = JobTable()
    jobs.append(
        count,
        number=np.arange(count) + 1,
        user=rng.integers(0, 5, count),
        group=rng.integers(0, 2, count),
        queue=rng.integers(0, 3, count),
        executable=rng.integers(0, 4, count),
        processors=processors,
        run_time=run,
        requested_time=np.maximum(run * rng.choice([0.7, 1, 2, 5], count), 1).astype(np.int64),
        recorded_submit=np.cumsum(rng.exponential(gap, count)).astype(np.int64),
    )
    return jobs


def cut_at(jobs: JobTable, now: int) -> tuple[JobTable, list[Any]]:
    """Return what a state knows of a run, and rows that run, wait, are over and are to come."""
    known = jobs.copy()
    known.recorded_submit[:] = jobs.submit
    known.recorded_start[:] = np.where(jobs.start <= now, jobs.start, UNKNOWN)
    known.recorded_end[:] = np.where(jobs.end <= now, jobs.end, UNKNOWN)
    here = (jobs.submit <= now) & (jobs.submit != UNKNOWN) & (jobs.state != State.REJECTED)
    started, over = known.recorded_start != UNKNOWN, known.recorded_end != UNKNOWN
    running, waiting = here & started & ~over, here & ~started & ~over
    parts = running, waiting, here & over, jobs.submit > now
    return known, [np.flatnonzero(rows) for rows in parts]


def twice(
    policy: str, plain: bool, seed: int = 1, part: float = 0.5, **options: Any
) -> tuple[JobTable, JobTable, int]:
    """Return the table of a whole run, that of one which goes on from a state, and the second."""
    jobs = workload(seed)
    whole = Simulation(jobs, PROCESSORS, policy, plain=plain, **options)
    whole.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    whole.run()
    now = int(np.quantile(jobs.submit, part))
    known, (running, waiting, over, later) = cut_at(jobs, now)
    other = Simulation(known, PROCESSORS, policy, plain=plain, **options)
    begin_from(other, now, running, waiting, over)
    other.cluster.submit(later, known.recorded_submit[later])
    other.run()
    assert len(running) > 1
    assert len(waiting) > 5
    return jobs, known, now


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        *(name for name in POOL_SCHEDULERS if name not in PLANNING),
        "easy:backfill=sjbf",
        "multi-queue:user-jobs=2,priorities=1:5",
        "fair-share:by=group,shares=1:3,half-life=2h",
        "wfp3:backfill=conservative",
    ],
)
def test_it_goes_on_exactly(policy: str, plain: bool) -> None:
    """Every policy without reservations starts all jobs when it would have."""
    jobs, known, _ = twice(policy, plain)
    for column in ("submit", "enqueued", "estimate", "start", "end", "state"):
        assert np.array_equal(getattr(known, column), getattr(jobs, column)), column
