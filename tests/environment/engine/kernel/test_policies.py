"""Policies on random workloads: compiled against plain, and policies that come to the same."""

import numpy as np
import pytest
from hpcrowd.environment.schedulers.ordered import parse_order
from hpcrowd.policies import Priority, WaitingJob
from hypothesis import given, settings
from hypothesis import strategies as st

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


@few
@given(workloads, clusters)
def test_a_plan_with_all_reservations_is_conservative(rows, cluster):
    """As many reservations as jobs give the plan that priorities make anew at each pass."""
    policies = text("easy", reservations=len(rows) + 1), InOrder()
    one, other = (run(rows, policy, cluster) for policy in policies)
    assert outcome(one) == outcome(other)


#: Two processors free, a head that needs four, and others behind it, of which one is short.
BEHIND = [(0, 100, 2, 100), (1, 100, 4, 100), (2, 90, 3, 90), (3, 150, 2, 150), (4, 50, 2, 50)]


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        ("easy", [0, 100, 200, 290, 4]),  # the last ends before the head starts
        ("easy:depth=2", [0, 100, 200, 290, 290]),
        ("easy:depth=3", [0, 100, 200, 290, 4]),
    ],
)
def test_depth(policy, starts):
    """Jobs further behind the head than the depth do not overtake it."""
    rows = [(*row, 1, 1, 0) for row in BEHIND]
    cluster = {"processors": 4, "overrun": "kill", "estimates": "requested"}
    assert starts == run(rows, policy, cluster).start.tolist()


#: Orders in which no job ever passes another while both wait.
lasting = keys.filter(lambda key: not key.endswith("slowdown"))


@few
@given(workloads, st.integers(3, 8), lasting, backfills | st.just("conservative"))
def test_head_is_never_delayed(rows, processors, order, backfill):
    """Where estimates hold, the first job that has to wait starts as if nobody overtook it.

    All jobs arrive at once, and the head is the first in the order that does not fit.
    """
    rows = [(0, row[1] + 1, min(row[2], processors), row[1] + 1, *row[4:]) for row in rows]
    cluster = {"processors": processors, "overrun": "keep", "estimates": "requested"}
    policy = text("easy", order=order, backfill=backfill)
    if backfill == "conservative":
        policy, order = backfill, "submit"
    strict, filled = (run(rows, one, cluster) for one in (text("order", by=order), policy))
    late = np.flatnonzero(strict.start > 0)
    if len(late):
        key = parse_order(order).key
        head = min(late, key=lambda row: key(as_waiting(strict, row), 0))
        assert filled.start[head] <= strict.start[head]


def as_waiting(jobs, row):
    """A job as the scheduler sees it."""
    names = ("processors", "estimate", "submit", "requested_time", "user", "group", "queue")
    return WaitingJob(row, *(int(getattr(jobs, name)[row]) for name in names))
