"""Every policy on stretches of real logs: the compiled schedule is the plain one, job for job."""

import numpy as np
import pytest
from hpcrowd import jobs_from_trace
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.traces.trace import Conversion

from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import outcome

pytestmark = [pytest.mark.traces]


def stretch(trace, first, days, speed=1.0):
    """The jobs submitted within a number of days from a day of the log on."""
    jobs = jobs_from_trace(trace, Conversion(speed=speed)).jobs
    submit = jobs.recorded_submit
    begin = submit.min() + first * DAY
    return jobs.take(np.flatnonzero((submit >= begin) & (submit < begin + days * DAY)))


def check(jobs, processors, scheduler):
    """Hold both engines, with arrays of two sizes, against each other; return the plain one's."""
    slow = ran(jobs.copy(), processors, scheduler, plain=True).jobs
    for room in (32, 4096):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
            patch.setattr("hpcrowd.environment.engine.passes.planned.FIRST_ROOM", room)
            fast = ran(jobs.copy(), processors, scheduler).jobs
        assert outcome(slow) == outcome(fast)
    assert np.any(slow.start > slow.submit)
    return slow


@pytest.mark.slow
@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
def test_kth_at_half_speed(kth, policy):
    """A week of KTH on nodes of half the speed: long queues, and many jobs outrun estimates."""
    jobs = check(stretch(kth, 60, 7, speed=0.5), kth.processors, policy)
    assert np.count_nonzero(jobs.run_time > jobs.estimate) > len(jobs) // 4


@pytest.mark.endurance
@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
@pytest.mark.parametrize(
    ("name", "first", "days"),
    [
        ("KTH-SP2", 30, 70),
        ("LANL-CM5", 20, 6),
        ("SDSC-DS", 150, 10),
        ("HPC2N-2002-2.2", 700, 14),
        ("CEA-Curie", 215, 1),
    ],
)
def test_other_logs(read_trace, name, first, days, policy):
    """Powers of two and jobs that outrun their estimates, large machines, hundreds that run."""
    trace = read_trace(name)
    check(stretch(trace, first, days), trace.processors, policy)
