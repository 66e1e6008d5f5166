"""Every policy on stretches of real logs: the compiled schedule is the plain one, job for job."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.environment import JobTable, Simulation, Trace, jobs_from_trace
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.traces.trace import Conversion

pytestmark = [pytest.mark.traces, pytest.mark.slow]

DAY = 86_400

OUTCOME = ("submit", "estimate", "promised", "start", "end", "state")


def stretch(trace: Trace, first: float, days: float, speed: float = 1.0) -> JobTable:
    """The jobs submitted within a number of days from a day of the log on."""
    jobs = jobs_from_trace(trace, Conversion(speed=speed)).jobs
    submit = jobs.recorded_submit
    begin = submit.min() + first * DAY
    return jobs.take(np.flatnonzero((submit >= begin) & (submit < begin + days * DAY)))


def run(jobs: JobTable, processors: int, scheduler: str, plain: bool, room: int = 256) -> JobTable:
    """The jobs after a run with all submitted as recorded."""
    jobs = jobs.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.engine.passes.planned.FIRST_ROOM", room)
        model = Simulation(jobs, processors, scheduler, plain=plain)
        model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
        model.run()
    return jobs


def check(jobs: JobTable, processors: int, scheduler: str) -> JobTable:
    """Hold both engines, with arrays of two sizes, against each other; return the plain one's."""
    slow = run(jobs, processors, scheduler, plain=True)
    for room in (32, 4096):
        fast = run(jobs, processors, scheduler, plain=False, room=room)
        for name in OUTCOME:
            different = np.flatnonzero(getattr(slow, name) != getattr(fast, name))
            assert 0 == len(different), f"{name} of job {slow.number[different[0]]}"
    return slow


@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
def test_kth(kth: Trace, policy: str) -> None:
    """Ten weeks of KTH."""
    jobs = check(stretch(kth, 30, 70), kth.processors, policy)
    assert len(jobs) > 5000
    assert np.any(jobs.start > jobs.submit)


@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
def test_kth_at_half_speed(kth: Trace, policy: str) -> None:
    """Two weeks of KTH on nodes of half the speed: long queues, and many jobs outrun estimates."""
    jobs = check(stretch(kth, 60, 14, speed=0.5), kth.processors, policy)
    assert np.count_nonzero(jobs.run_time > jobs.estimate) > len(jobs) // 4


@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
@pytest.mark.parametrize(
    ("name", "first", "days"),
    [("LANL-CM5", 20, 6), ("SDSC-DS", 150, 10), ("HPC2N-2002-2.2", 700, 14), ("CEA-Curie", 215, 1)],
)
def test_other_logs(
    read_trace: Callable[[str], Trace], name: str, first: float, days: float, policy: str
) -> None:
    """Powers of two and jobs that outrun their estimates, large machines, hundreds that run."""
    trace = read_trace(name)
    jobs = check(stretch(trace, first, days), trace.processors, policy)
    assert np.any(jobs.start > jobs.submit)
