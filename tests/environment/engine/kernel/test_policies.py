"""Policies on random workloads: compiled against plain, and policies that come to the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, State, WaitingJob
from hpcrowd.environment.schedulers.ordered import parse_order
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import (
    Rows,
    backfills,
    clusters,
    keys,
    outcome,
    policies,
    rooms,
    run,
    text,
    workloads,
)


@settings(max_examples=400)
@given(workloads, policies, clusters, rooms)
def test_compiled_equals_plain(rows: Rows, policy: str, cluster: dict[str, Any], room: int) -> None:
    """Every policy gives the same schedule compiled and plain, job for job."""
    slow = run(rows, policy, cluster, plain=True)
    fast = run(rows, policy, cluster, room)
    assert outcome(slow) == outcome(fast)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), policies, clusters)
def test_compiled_equals_plain_on_long_queues(
    seed: int, policy: str, cluster: dict[str, Any]
) -> None:
    """Long queues, whose gaps are closed on the way, and many running jobs."""
    random = np.random.default_rng(seed)
    count = 400
    rows = np.column_stack(
        [
            np.sort(random.integers(0, 3000, count)),
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


@given(workloads, policies, clusters, st.booleans())
def test_no_policy_loses_a_job_or_overcommits(
    rows: Rows, policy: str, cluster: dict[str, Any], plain: bool
) -> None:
    """Every job that fits the machine runs, and no processor is held twice."""
    jobs = run(rows, policy, cluster, plain=plain)
    assert np.array_equal(jobs.processors > cluster["processors"], jobs.state == State.REJECTED)
    assert np.array_equal(jobs.state != State.REJECTED, jobs.end >= 0)
    for time in set(jobs.start.tolist()) - {-1}:
        runs = (jobs.start <= time) & (jobs.end > time) & (jobs.start >= 0)
        assert jobs.processors[runs].sum() <= cluster["processors"]


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
    ("easy:order=-queue", "multi-queue:priorities=1:1+2:2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
@settings(max_examples=40)
@given(rows=workloads, cluster=clusters)
def test_policies_that_are_the_same(
    one: str, other: str, rows: Rows, cluster: dict[str, Any]
) -> None:
    """Two ways to say one thing give one schedule."""
    assert outcome(run(rows, one, cluster)) == outcome(run(rows, other, cluster))


@given(workloads, clusters, st.sampled_from(["none", "queue", "sjbf", "best-fit"]))
def test_fair_share_with_one_user(rows: Rows, cluster: dict[str, Any], backfill: str) -> None:
    """With one user, fair share is FCFS, or EASY."""
    rows = [(*row[:4], 1, *row[5:]) for row in rows]
    other = "fcfs" if backfill == "none" else f"easy:backfill={backfill}"
    expected = run(rows, other, cluster)
    assert outcome(expected) == outcome(run(rows, f"fair-share:backfill={backfill}", cluster))


#: Orders in which no job ever passes another while both wait.
lasting = keys.filter(lambda key: not key.endswith("slowdown"))


@given(workloads, st.integers(3, 8), lasting, backfills)
def test_head_is_never_delayed(rows: Rows, processors: int, order: str, backfill: str) -> None:
    """Where estimates hold, the first job that has to wait starts as if nobody overtook it.

    All jobs arrive at once, and the head is the first in the order that does not fit.
    """
    rows = [(0, row[1] + 1, min(row[2], processors), row[1] + 1, *row[4:]) for row in rows]
    cluster = {"processors": processors, "overrun": "keep", "estimates": "requested"}
    strict = run(rows, text("order", by=order), cluster)
    filled = run(rows, text("easy", order=order, backfill=backfill), cluster)
    late = np.flatnonzero(strict.start > 0)
    if len(late):
        key = parse_order(order).key
        head = min(late, key=lambda row: key(as_waiting(strict, row), 0))
        assert filled.start[head] <= strict.start[head]


def as_waiting(jobs: JobTable, row: int) -> WaitingJob:
    """A job as the scheduler sees it."""
    names = ("processors", "estimate", "submit", "requested_time", "user", "group", "queue")
    return WaitingJob(row, *(int(getattr(jobs, name)[row]) for name in names))


@settings(max_examples=200)
@given(workloads, policies, policies, clusters, rooms, st.integers(0, 40))
def test_policies_take_over_from_each_other(
    rows: Rows, first: str, second: str, cluster: dict[str, Any], room: int, at: int
) -> None:
    """A policy that takes over queue and running jobs does so alike, compiled and plain."""
    slow = run(rows, first, cluster, plain=True, switch=(at, second))
    assert outcome(slow) == outcome(run(rows, first, cluster, room, switch=(at, second)))


@given(workloads, policies, clusters, st.integers(0, 40))
def test_a_pass_may_be_replaced(rows: Rows, policy: str, cluster: dict[str, Any], at: int) -> None:
    """Where the machine changes, the same scheduler continues with what it knows of the past."""
    slow = run(rows, policy, cluster, plain=True, switch=(at, None))
    assert outcome(slow) == outcome(run(rows, policy, cluster, switch=(at, None)))
