"""Tests of the adaptive scheduler: what it looks at, and which policy takes over when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    Adaptive,
    JobTable,
    Look,
    NodesDown,
    SchedulerError,
    Simulation,
    SwitchPolicy,
    parse_scheduler,
)
from hpcrowd.environment.clock import DAY, HOUR, WEEK

from tests.environment.schedulers.pool_cases import both, ran
from tests.support.policies import text

# Compiles loops that the other quick tests do not need.
pytestmark = pytest.mark.slow

#: Every state has its own policy.
STATES = {
    "overload-positive": "sjf",
    "overload-negative": "fcfs",
    "underload-positive": "easy",
    "underload-negative": "conservative",
}


def adaptive(**options: object) -> str:
    """Text of an adaptive scheduler whose states have different policies."""
    return text("adaptive", **(STATES | options))


def run(rows: list[tuple[int, int, int]], scheduler: str, **options: Any) -> Simulation:
    """Run jobs of (submission, processors, run time), estimated exactly, on four processors."""
    jobs = JobTable()
    submit, need, length = np.array(rows).T
    jobs.append(len(rows), processors=need, run_time=length, requested_time=length)
    jobs.recorded_submit[:] = submit
    return ran(jobs, 4, scheduler, **options)


def test_states_pick_policies() -> None:
    """More waits than fits on the machine: overloaded; below 0: negative; no telling: positive."""
    scheduler = parse_scheduler(adaptive(overload=0.5))
    assert isinstance(scheduler, Adaptive)
    states = [(4, 0.1), (4, float("nan")), (4, -0.1), (5, 0.0), (5, -0.1)]
    expected = ["easy", "easy", "conservative", "sjf", "fcfs"]
    assert expected == [scheduler.policy(wanted, 8, sign) for wanted, sign in states]
    with pytest.raises(SchedulerError, match="give it to a Simulation"):
        scheduler.select(Look(0, [], [], 4, 4))


@both
def test_overload_is_seen_at_the_next_look(plain: bool) -> None:
    """EASY starts job 3 next to job 0; from the look at 10 s on SJF lets job 2 go first.

    At 10 s jobs of 4 + 3 processors wait for a machine of 4. At 110 s nothing waits any more.
    """
    rows = [(0, 3, 100), (1, 4, 20), (2, 3, 10), (3, 1, 5)]
    model = run(rows, adaptive(every="10s"), plain=plain)
    assert [0, 110, 100, 3] == model.jobs.start.tolist()
    account = model.cluster.account(model.time)
    assert {"easy": 30, "sjf": 100} == account["policies_s"]
    assert 2 == account["policy_switches"]


@both
def test_two_weeks_tell_the_sign(plain: bool) -> None:
    """Where the long jobs of the last two weeks were narrow, the third week is negative."""
    rows = [
        (week * WEEK + k * HOUR, 4 - k if week < 2 else 1 + k, (k + 1) * 600)
        for week in range(4)
        for k in range(4)
    ]
    rows.append((4 * WEEK + DAY, 1, 100))
    model = run(rows, adaptive(), plain=plain)
    in_charge = model.cluster.account(model.time)["policies_s"]
    # Week 1 looks back on week 0 alone; week 3 on one of each sign, whose mean is 0.
    assert {"easy": 2 * WEEK + DAY + 100, "conservative": 2 * WEEK} == in_charge


@both
def test_looks_go_on_as_long_as_they_can_help(plain: bool) -> None:
    """With a node down for good job 0 never fits; a look lets job 1 overtake; then the run ends."""
    states = {"every": "10s", "underload-positive": "fcfs", "overload-positive": "easy"}
    platform = [NodesDown(1)]
    model = run([(2, 4, 100), (3, 1, 20)], adaptive(**states), plain=plain, platform=platform)
    assert [-1, 10] == model.jobs.start.tolist()
    assert model.time < DAY


@both
def test_selective_knows_who_ended_before_it_took_over(plain: bool) -> None:
    """Its threshold is the mean slowdown of all jobs so far, 1 and 5, not of those under it.

    At 300 s job 3 has waited for its expansion factor of 1.8: not enough for a reservation that
    keeps job 4 from overtaking. It is where the threshold is 1.
    """
    rows = [(0, 4, 100), (0, 4, 25), (210, 3, 100), (220, 4, 100), (300, 1, 200)]
    starts = {
        policy: run(
            rows, "fcfs", plain=plain, platform=[SwitchPolicy(200, policy)]
        ).jobs.start.tolist()
        for policy in ("selective", "selective:threshold=1")
    }
    assert [0, 100, 210, 500, 300] == starts["selective"]
    assert [0, 100, 210, 310, 410] == starts["selective:threshold=1"]


@both
def test_a_switch_at_a_date_begins_and_ends_it(plain: bool) -> None:
    """Adaptive from 100 s on, overloaded at once; FCFS for good from 300 s on."""
    rows = [(0, 4, 1000), (1, 4, 10), (2, 4, 10)]
    platform = [SwitchPolicy(100, adaptive()), SwitchPolicy(300, "fcfs")]
    model = run(rows, "ljf", plain=plain, platform=platform)
    in_charge = model.cluster.account(model.time)["policies_s"]
    assert {"ljf": 100, "sjf": 200, "fcfs": model.time - 300} == in_charge


@both
def test_nothing_is_checked_before_the_first_job(
    monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    """Submissions in Unix time give the schedule of those from 0 on, with as many checks."""
    checks: list[int] = []
    policy = Adaptive.policy

    def counted(self: Adaptive, wanted: int, up: int, correlation: float) -> str:
        checks.append(wanted)
        return policy(self, wanted, up, correlation)

    monkeypatch.setattr(Adaptive, "policy", counted)
    rows = [(60 * k, 1 + k % 4, 500 * (1 + k % 7)) for k in range(40)]
    later = 2_700 * WEEK
    starts, counts = [], []
    for begin in (0, later):
        moved = [(submit + begin, need, length) for submit, need, length in rows]
        checks.clear()
        starts.append(run(moved, adaptive(), plain=plain).jobs.start - begin)
        counts.append(len(checks))
    assert np.array_equal(*starts)
    assert counts[0] <= counts[1] <= counts[0] + 2
