"""Policies on random workloads and real logs: compiled against plain, and which are the same."""

import numpy as np
import pytest
from hpcrowd import jobs_from_trace
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.traces.trace import Conversion
from hpcrowd.policies import Priority
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import (
    backfills,
    clusters,
    keys,
    outcome,
    policies,
    run,
    text,
    workloads,
)

few = settings(max_examples=40)


class InOrder(Priority):
    """Conservative backfilling with a plan that is made anew at each pass."""

    name = "in order"
    backfill = "conservative"

    def score(self, jobs):
        """The earlier, the better; of one second the order is that of the queue."""
        return -jobs.submit


#: Long queues, whose gaps are closed on the way, and many running jobs.
long_queues = st.integers(0, 2**32 - 1)


def check_long(seed, policy, cluster, count):
    """Check that both engines give the same schedule of a long queue."""
    random = np.random.default_rng(seed)
    rows = np.column_stack(
        [
            np.sort(random.integers(0, 8 * count, count)),
            random.integers(0, 900, count),
            np.minimum(random.geometric(0.3, count), 30),
            random.integers(0, 1200, count),
            random.integers(1, 20, count),
            random.integers(1, 4, count),
            random.integers(0, 4, count),
        ]
    ).tolist()
    cluster = cluster | {"processors": int(random.choice([20, 300]))}
    slow = run(rows, policy, cluster, plain=True)
    assert outcome(slow) == outcome(run(rows, policy, cluster, int(random.choice([3, 1024]))))


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@settings(max_examples=5)
@given(seed=long_queues, cluster=clusters)
def test_long_queues(policy, seed, cluster):
    """Gaps in the queue, which the compiled engine closes up, change nothing."""
    check_long(seed, policy, cluster, 150)


@pytest.mark.endurance
@settings(max_examples=40)
@given(long_queues, policies, clusters)
def test_long_queues_of_all_policies(seed, policy, cluster):
    """The same for all policies, at length."""
    check_long(seed, policy, cluster, 400)


#: Pairs of policies that come to the same schedule.
SAME = [
    ("fcfs", "order:by=submit"),
    ("sjf", "order:by=estimate"),
    ("ljf", "order:by=-estimate"),
    ("easy", "easy:backfill=fcfs"),
    ("easy", "easy:order=submit,backfill=fcfs"),
    ("easy", "creasy:alpha=0"),
    ("easy", "multi-queue:user-jobs=1000,queue-processors=1000"),
    ("fcfs", "multi-queue:backfill=none"),
    ("easy:backfill=sjbf", "multi-queue:backfill=sjbf"),
    ("fcfs", "fair-share:backfill=none,by=group"),
    ("easy:backfill=best-fit", "fair-share:backfill=best-fit,by=group"),
    ("selective:threshold=1e9", "selective:threshold=1e9,categories=2/5"),
    ("easy:order=-queue", "multi-queue:priorities=1:1+2:2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
@settings(max_examples=15)
@given(rows=workloads, cluster=clusters)
def test_policies_that_are_the_same(one, other, rows, cluster):
    """Two ways to say one thing give one schedule; of one group, fair share is no order."""
    rows = [(*row[:5], 1, row[6]) for row in rows]
    assert outcome(run(rows, one, cluster)) == outcome(run(rows, other, cluster))


@few
@given(workloads, st.integers(3, 8), keys, backfills)
def test_a_plan_with_one_reservation_is_easy(rows, processors, order, backfill):
    """A plan of free processors comes to the same as a shadow time and spare processors."""
    rows = [(*row[:3], max(row[3], 1), *row[4:]) for row in rows]
    cluster = {"processors": processors, "overrun": "kill", "estimates": "requested"}
    one, planned = (
        run(rows, text("easy", order=order, backfill=backfill, **more), cluster)
        for more in ({}, {"depth": len(rows)})
    )
    assert outcome(one) == outcome(planned)


#: Powers of two and jobs that outrun their estimates, large machines, hundreds that run.
LOGS = (
    ("KTH-SP2", 30, 70), ("LANL-CM5", 20, 6), ("SDSC-DS", 150, 10), ("HPC2N-2002-2.2", 700, 14),
    ("CEA-Curie", 215, 1),
)  # fmt: skip


@few
@given(workloads, clusters)
def test_a_plan_with_all_reservations_is_conservative(rows, cluster):
    """As many reservations as jobs give the plan that priorities make anew at each pass."""
    policies = text("easy", reservations=len(rows) + 1), InOrder()
    one, other = (run(rows, policy, cluster) for policy in policies)
    assert outcome(one) == outcome(other)


@pytest.mark.traces
@pytest.mark.parametrize("policy", POOL_SCHEDULERS)
@pytest.mark.parametrize(
    ("name", "first", "days", "speed"),
    [
        # On nodes of half the speed: long queues, and many jobs outrun estimates.
        pytest.param("KTH-SP2", 60, 7, 0.5, marks=pytest.mark.slow),
        *(pytest.param(*one, 1.0, marks=pytest.mark.endurance) for one in LOGS),
    ],
)
def test_real_logs(read_trace, name, first, days, speed, policy):
    """Both engines do the same with the jobs of some days, with arrays of two sizes."""
    trace = read_trace(name)
    jobs = jobs_from_trace(trace, Conversion(speed=speed)).jobs
    day = (jobs.recorded_submit - jobs.recorded_submit.min()) / DAY - first
    jobs = jobs.take(np.flatnonzero((day >= 0) & (day < days)))
    slow = ran(jobs.copy(), trace.processors, policy, plain=True).jobs
    for room in (32, 4096):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
            patch.setattr("hpcrowd.environment.engine.passes.planned.FIRST_ROOM", room)
            fast = ran(jobs.copy(), trace.processors, policy).jobs
        assert outcome(slow) == outcome(fast)
    assert np.any(slow.start > slow.submit)
