"""Tests of the adaptive scheduler: what it looks at, and which policy takes over when."""

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import SchedulerError
from hpcrowd.platform import NodesDown, SwitchPolicy
from hpcrowd.policies import Adaptive, Look, parse_scheduler

from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import text
from tests.support.simulations import account_of, both, recorded

#: Every state has its own policy.
STATES = {
    "overload-positive": "sjf",
    "overload-negative": "fcfs",
    "underload-positive": "easy",
    "underload-negative": "conservative",
}


def adaptive(**options):
    """Text of an adaptive scheduler whose states have different policies."""
    return text("adaptive", **(STATES | options))


def run(rows, scheduler, **options):
    """Run jobs of (submission, processors, run time), estimated exactly, on four processors."""
    submit, need, length = np.array(rows).T
    return ran(recorded(submit, length, processors=need), 4, scheduler, **options)


def test_states_pick_policies():
    """More waits than fits on the machine: overloaded; below 0: negative; no telling: positive."""
    scheduler = parse_scheduler(adaptive(overload=0.5))
    assert isinstance(scheduler, Adaptive)
    states = [(4, 0.1), (4, float("nan")), (4, -0.1), (5, 0.0), (5, -0.1)]
    expected = ["easy", "easy", "conservative", "sjf", "fcfs"]
    assert expected == [scheduler.policy(wanted, 8, sign) for wanted, sign in states]
    with pytest.raises(SchedulerError, match="give it to a Simulation"):
        scheduler.select(Look(0, [], [], 4, 4))


#: Where the long jobs of the last two weeks were narrow, the third week is negative.
WEEKS = [
    (week * WEEK + k * HOUR, 4 - k if week < 2 else 1 + k, (k + 1) * 600)
    for week in range(4)
    for k in range(4)
]
LONG = [(0, 4, 1000), (1, 4, 10), (2, 4, 10)]
FIRST = {"every": "10s", "underload-positive": "fcfs", "overload-positive": "easy"}
#: Jobs with slowdowns 1 and 5. At 300 s job 3 has waited for its expansion factor of 1.8: not
#: enough for a reservation that keeps job 4 from overtaking, unless the threshold is 1.
KNOWN = [(0, 4, 100), (0, 4, 25), (210, 3, 100), (220, 4, 100), (300, 1, 200)]

#: Jobs, policy, changes of the platform, starts, and seconds under each policy.
STORIES: dict[str, tuple[Any, str, list[Any], list[int] | None, dict[str, int]]] = {
    # EASY starts job 3 next to job 0; from the look at 10 s on, at which jobs of 4 + 3 processors
    # wait, SJF lets job 2 go first. At 110 s nothing waits any more.
    "overload is seen at the next look": (
        [(0, 3, 100), (1, 4, 20), (2, 3, 10), (3, 1, 5)], adaptive(every="10s"), [],
        [0, 110, 100, 3], {"easy": 30, "sjf": 100}),
    # Week 1 looks back on week 0 alone; week 3 on one of each sign, whose mean is 0.
    "two weeks tell the sign": (
        [*WEEKS, (4 * WEEK + DAY, 1, 100)], adaptive(), [], None,
        {"easy": 2 * WEEK + DAY + 100, "conservative": 2 * WEEK}),
    # With a node down for good job 0 never fits; a look lets job 1 overtake; then the run ends.
    "looks go on as long as they can help": (
        [(2, 4, 100), (3, 1, 20)], adaptive(**FIRST), [NodesDown(1)], [-1, 10],
        {"fcfs": 10}),
    "selective knows who ended before it took over": (
        KNOWN, "fcfs", [SwitchPolicy(200, "selective")], [0, 100, 210, 500, 300],
        {"fcfs": 200, "selective": 400}),
    "with a threshold of 1 it needs not": (
        KNOWN, "fcfs", [SwitchPolicy(200, "selective:threshold=1")], [0, 100, 210, 310, 410],
        {"fcfs": 200, "selective:threshold=1": 410}),
    "a switch at a date begins and ends it": (
        LONG, "ljf", [SwitchPolicy(100, adaptive()), SwitchPolicy(300, "fcfs")], [0, 1000, 1010],
        {"ljf": 100, "sjf": 200, "fcfs": 720}),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_stories(name, plain):
    """The policy in charge is that of the state, and the schedule is that of the policy."""
    rows, scheduler, platform, starts, in_charge = STORIES[name]
    model = run(rows, scheduler, plain=plain, platform=platform)
    assert starts is None or starts == model.jobs.start.tolist()
    assert in_charge.items() <= account_of(model.cluster, model.time)["policies_s"].items()


@both
def test_nothing_is_checked_before_the_first_job(monkeypatch, plain):
    """Submissions in Unix time give the schedule of those from 0 on, with as many checks."""
    checks: list[int] = []
    policy = Adaptive.policy

    def counted(self, wanted, up, correlation):
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
