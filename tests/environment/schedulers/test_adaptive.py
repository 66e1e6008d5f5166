"""Tests of the adaptive scheduler: what it looks at, and which policy takes over when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work, add_users
from hpcrowd.environment import (
    Adaptive,
    JobTable,
    Look,
    NodesDown,
    QuantityError,
    SchedulerError,
    Simulation,
    SwitchPolicy,
    parse_scheduler,
)
from hpcrowd.environment.clock import DAY, HOUR, WEEK

# Compiles loops that the other quick tests do not need.
pytestmark = pytest.mark.slow

engines = pytest.mark.parametrize("plain", [False, True])

#: Every state has its own policy.
STATES = {
    "overload-positive": "sjf",
    "overload-negative": "fcfs",
    "underload-positive": "easy",
    "underload-negative": "conservative",
}


def adaptive(**options: object) -> str:
    """Text of an adaptive scheduler whose states have different policies."""
    return "adaptive:" + ",".join(f"{key}={value}" for key, value in (STATES | options).items())


def run(
    rows: list[tuple[int, int, int]],
    processors: int,
    scheduler: str,
    *,
    plain: bool = False,
    **options: Any,
) -> Simulation:
    """Run jobs of (submission, processors, run time), estimated exactly."""
    jobs = JobTable()
    submit, need, length = np.array(rows).T
    jobs.append(
        len(rows),
        recorded_submit=submit,
        processors=need,
        run_time=length,
        requested_time=length,
        user=np.arange(len(rows)),
    )
    model = Simulation(jobs, processors, scheduler, plain=plain, **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return model


def test_states_pick_policies() -> None:
    """More waits than fits on the machine: overloaded; below 0: negative; no telling: positive."""
    scheduler = parse_scheduler(adaptive(overload=0.5))
    assert isinstance(scheduler, Adaptive)
    assert "easy" == scheduler.policy(4, 8, 0.1)
    assert "easy" == scheduler.policy(4, 8, float("nan"))
    assert "conservative" == scheduler.policy(4, 8, -0.1)
    assert "sjf" == scheduler.policy(5, 8, 0.0)
    assert "fcfs" == scheduler.policy(5, 8, -0.1)


@engines
def test_overload_is_seen_at_the_next_look(plain: bool) -> None:
    """EASY starts job 3 next to job 0; from the look at 10 s on SJF lets job 2 go first.

    At 10 s jobs of 4 + 3 processors wait for a machine of 4. At 110 s nothing waits any more.
    """
    rows = [(0, 3, 100), (1, 4, 20), (2, 3, 10), (3, 1, 5)]
    model = run(rows, 4, adaptive(every="10s"), plain=plain)
    assert [0, 110, 100, 3] == model.jobs.start.tolist()
    account = model.cluster.account(model.time)
    assert {"easy": 30, "sjf": 100} == account["policies_s"]
    assert 2 == account["policy_switches"]


@engines
def test_two_weeks_tell_the_sign(plain: bool) -> None:
    """Where the long jobs of the last two weeks were narrow, the third week is negative."""
    rows = [
        (week * WEEK + k * HOUR, 4 - k if week < 2 else 1 + k, (k + 1) * 600)
        for week in range(4)
        for k in range(4)
    ]
    rows.append((4 * WEEK + DAY, 1, 100))
    model = run(rows, 4, adaptive(), plain=plain)
    in_charge = model.cluster.account(model.time)["policies_s"]
    # Week 1 looks back on week 0 alone; week 3 on one of each sign, whose mean is 0.
    assert {"easy": 2 * WEEK + DAY + 100, "conservative": 2 * WEEK} == in_charge


@engines
def test_looks_go_on_as_long_as_they_can_help(plain: bool) -> None:
    """With a node down for good job 0 never fits; a look lets job 1 overtake; then the run ends."""
    states = {"every": "10s", "underload-positive": "fcfs", "overload-positive": "easy"}
    platform = [NodesDown(1)]
    model = run([(2, 4, 100), (3, 1, 20)], 4, adaptive(**states), plain=plain, platform=platform)
    assert [-1, 10] == model.jobs.start.tolist()
    assert model.time < DAY


@engines
def test_selective_knows_who_ended_before_it_took_over(plain: bool) -> None:
    """Its threshold is the mean slowdown of all jobs so far, 1 and 5, not of those under it.

    At 300 s job 3 has waited for its expansion factor of 1.8: not enough for a reservation that
    keeps job 4 from overtaking. It is where the threshold is 1.
    """
    rows = [(0, 4, 100), (0, 4, 25), (210, 3, 100), (220, 4, 100), (300, 1, 200)]
    starts = {
        policy: run(
            rows, 4, "fcfs", plain=plain, platform=[SwitchPolicy(200, policy)]
        ).jobs.start.tolist()
        for policy in ("selective", "selective:threshold=1")
    }
    assert [0, 100, 210, 500, 300] == starts["selective"]
    assert [0, 100, 210, 310, 410] == starts["selective:threshold=1"]


@engines
def test_a_switch_at_a_date_begins_and_ends_it(plain: bool) -> None:
    """Adaptive from 100 s on, overloaded at once; FCFS for good from 300 s on."""
    rows = [(0, 4, 1000), (1, 4, 10), (2, 4, 10)]
    platform = [SwitchPolicy(100, adaptive()), SwitchPolicy(300, "fcfs")]
    model = run(rows, 4, "ljf", plain=plain, platform=platform)
    in_charge = model.cluster.account(model.time)["policies_s"]
    assert {"ljf": 100, "sjf": 200, "fcfs": model.time - 300} == in_charge


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("adaptive:overload-positive=easier", "scheduler 'easier': not known"),
        ("adaptive:overload-positive=recorded", "'recorded': not a policy to switch to"),
        ("adaptive:underload-negative=adaptive", "'adaptive': not a policy to switch to"),
        ("adaptive:every=0s", "every '0s': must be at least 1 s"),
        ("adaptive:every=often", "duration 'often'"),
        ("adaptive:overload=-1", "overload -1.0: must be 0 or more"),
        ("adaptive:overload=inf", "overload inf: must be 0 or more"),
    ],
)
def test_wrong_options_are_reported(text: str, said: str) -> None:
    """Each in one line."""
    with pytest.raises(QuantityError, match=said):
        parse_scheduler(text)


def test_options_of_a_policy_go_in() -> None:
    """As many as have no comma between them; the text says it all again."""
    text = "adaptive:underload-positive=easy:backfill=sjbf"
    scheduler = parse_scheduler(text)
    assert text == str(scheduler)
    assert "easy:backfill=sjbf" == getattr(scheduler, "policies")[0]  # noqa: B009


def test_it_selects_no_jobs_itself() -> None:
    """A direct call is refused; use a simulation."""
    with pytest.raises(SchedulerError, match="give it to a Simulation"):
        Adaptive().select(Look(0, [], [], 4, 4))


@engines
def test_nothing_is_checked_before_the_first_job(
    monkeypatch: pytest.MonkeyPatch, *, plain: bool
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
        starts.append(run(moved, 4, adaptive(), plain=plain).jobs.start - begin)
        counts.append(len(checks))
    assert np.array_equal(*starts)
    assert counts[0] <= counts[1] <= counts[0] + 2
