"""Random workloads x policies x behaviours x platforms; HPCROWD_ATTACK multiplies the cases.

The generator prefers what breaks schedulers: ties, jobs without length, times up to 2**52, requests
below run times, outages at seconds at which jobs end, everything at once, no think time.
"""

import os
from itertools import product
from typing import Any

import numpy as np
import pytest
from hpcrowd import JobTable, State, Work, add_users
from hpcrowd.platform import Maintenance, NodesDown, Resize

from tests.support.simulations import simulation_of

#: Multiplies the number of random cases.
ATTACK = float(os.environ.get("HPCROWD_ATTACK", "1"))

POLICIES = (
    "fcfs", "easy", "conservative", "selective", "sjf", "ljf", "fair-share", "creasy",
    "easy:backfill=sjbf",
)  # fmt: skip

Case = dict[str, Any]


def case(seed):
    """A random run."""
    rng = np.random.default_rng([11, seed])
    count, size = int(rng.integers(1, 25)), int(rng.integers(2, 9))
    policy = str(rng.choice(POLICIES))
    # Plans look at late jobs step by step, so that late jobs of 2**40 s keep them busy.
    plans = policy in ("conservative", "selective")
    unit = int(rng.choice([1, 1, 1, 3600] if plans else [1, 1, 1, 3600, 2**40]))
    run = rng.choice([0, 1, 1, 5, 10], count) * unit
    at = np.sort(rng.choice([0, 0, 5, 10, 20], count)) * (rng.random() < 0.8) * unit
    jobs = {
        "recorded_submit": at,
        "recorded_start": at,
        "recorded_end": at + run,
        "run_time": run,
        "requested_time": np.maximum(run + rng.integers(-3, 4, count) * unit, 0),
        "processors": rng.integers(1, size + 2, count),
        "user": rng.integers(1, 4, count),
    }
    changes: list[Any] = []
    if rng.random() < 0.5:
        second = int(rng.choice([1, 5, 10, 15])) * unit
        fate: Any = str(rng.choice(["requeue", "resubmit", "fail"]))
        changes.append(NodesDown(second, second + 5 * unit, int(rng.integers(1, size + 1)), fate))
        if rng.random() < 0.5:
            changes.append(Resize(12 * unit, size + int(rng.integers(0, 4))))
        if rng.random() < 0.5:
            changes.append(Maintenance(20 * unit, 25 * unit, 10 * unit, fate))
    return {
        "jobs": jobs,
        "users": str(rng.choice(["rigid", "think-time"])),
        "cluster": {
            "processors": size,
            "scheduler": policy,
            "overrun": str(rng.choice(["keep", "kill"])),
            "estimates": str(rng.choice(["requested", "exact", "1.5x"])),
            "platform": changes,
        },
    }


def simulate(one, plain=False):
    """Run a case."""
    jobs = JobTable()
    jobs.append(len(one["jobs"]["user"]), **one["jobs"])
    model = simulation_of(jobs, **one["cluster"], plain=plain)
    add_users(model, Work.of(jobs), one["users"])
    return model.run()


def outcome(model):
    """What happened to every job."""
    names = ("submit", "start", "end", "state")
    return {name: getattr(model.jobs, name).tolist() for name in names}


def check_scaling(one, model):
    """With all times seven times as long, everything happens seven times as late."""
    if one["users"] != "rigid" or one["cluster"]["platform"]:
        return
    if one["cluster"]["scheduler"] not in ("fcfs", "easy", "sjf", "ljf", "easy:backfill=sjbf"):
        return
    if one["cluster"]["estimates"] == "1.5x" or one["jobs"]["run_time"].max() > 2**42:
        return
    fixed = ("processors", "user")
    longer = {name: col * (1 if name in fixed else 7) for name, col in one["jobs"].items()}
    found = simulate({**one, "jobs": longer}).jobs
    for name in ("start", "end"):
        times = getattr(model.jobs, name)
        assert np.where(times >= 0, 7 * times, times).tolist() == getattr(found, name).tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_meets_outages_at_ends(policy):
    """A job that ends in the second of an outage has ended, under every policy and fate."""
    for fate, plain in product(("requeue", "resubmit", "fail"), (False, True)):
        one = case(0)
        one["jobs"] = {name: np.zeros(1, np.int64) for name in one["jobs"]}
        one["jobs"] |= {name: np.array([5]) for name in ("run_time", "requested_time")}
        one["jobs"] |= {"processors": np.array([2]), "user": np.array([1])}
        down: Any = NodesDown(5, 9, 2, fate)
        one["cluster"] |= {"scheduler": policy, "processors": 2, "platform": [down]}
        model = simulate(one, plain)
        assert ([5], [State.COMPLETED]) == (model.jobs.end.tolist(), model.jobs.state.tolist())


@pytest.mark.endurance
@pytest.mark.parametrize("part", range(4))
def test_the_engine_under_attack(part):
    """Compiled is plain, and longer times are later ones; properties of the engine check more."""
    count = int(2500 * ATTACK)
    for seed in range(part * count, (part + 1) * count):
        one = case(seed)
        model = simulate(one)
        assert outcome(simulate(one, plain=True)) == outcome(model), f"case {seed}"
        check_scaling(one, model)
