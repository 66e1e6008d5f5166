"""Slurm's controller on random machines: nothing in use twice, every limit kept, all accounted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.machine.audit import faults
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import random_jobs, random_machine

PLACEMENTS = ("slurm", "first-fit", "best-fit", "spread")

seeds = st.integers(0, 2**32 - 1)

forms = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def run(
    site: Machine, jobs: JobTable, placement: str, overrun: Any, *, plain: bool = False
) -> Slurm:
    """Run jobs under Slurm to the end, and return the scheduler."""
    policy = Slurm(placement)
    model = Simulation(jobs, site.cores, policy, machine=site, overrun=overrun, plain=plain)
    model.submit(Nobody(), np.arange(len(jobs)), jobs.recorded_submit)
    model.run()
    return policy


@forms
@given(seeds, st.sampled_from(PLACEMENTS), st.sampled_from(["keep", "kill"]))
@settings(deadline=None, max_examples=60)
def test_random_machines_are_never_overcommitted(
    plain: bool, seed: int, placement: str, overrun: str
) -> None:
    """Nodes, limits, throttles and reservations hold, and jobs get what they ask for."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    jobs = random_jobs(rng, site)
    policy = run(site, jobs, placement, overrun, plain=plain)
    assert [] == faults(site, jobs, policy.ledger)
    assert not policy.state.running
    left = np.flatnonzero(jobs.state == State.UNFINISHED).tolist()
    assert set(left) == set(policy.state.waiting)  # jobs in = jobs out


@forms
@given(seeds, st.sampled_from(PLACEMENTS))
@settings(deadline=None, max_examples=30)
def test_all_is_given_back(plain: bool, seed: int, placement: str) -> None:
    """After the last job all is free, and nothing counts on limits but what still waits."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    jobs = random_jobs(rng, site)
    controller = run(site, jobs, placement, "kill", plain=plain).state
    assert controller.stock.cores == controller.layout.cores
    assert controller.stock.memory == controller.layout.memory
    assert controller.stock.gpus == controller.layout.gpus
    for use in controller.limits._use.values():
        assert 0 == use.jobs
        assert not any(use.tres.values())
        assert 0 <= use.submitted <= len(controller.waiting)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_draws_the_same(seed: int) -> None:
    """A seed gives the same machine and jobs, and their run the same table."""
    found = []
    for _ in range(2):
        rng = np.random.default_rng(seed)
        site = random_machine(rng)
        jobs = random_jobs(rng, site)
        run(site, jobs, "slurm", "kill")
        found.append((site, jobs.matrix.tolist()))
    assert found[0] == found[1]


def test_random_machines_show_what_they_are_for() -> None:
    """Of a hundred, some preempt, some keep jobs at limits, in reservations, and of arrays."""
    seen: set[str] = set()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        site = random_machine(rng)
        jobs = random_jobs(rng, site)
        policy = run(site, jobs, "slurm", "kill")
        ran = [one.row for one in policy.ledger]
        assert jobs.requests is not None
        asks = jobs.requests.asked()
        seen |= {ask.name for ask in asks if jobs.requests[ask][ran].max(initial=-1) >= 0}
        seen |= {"preempted" for one in policy.ledger if one.end >= 0}
        seen |= {"again" for row in ran if ran.count(row) > 1}
        seen |= {one.by for one in policy.ledger}
        seen |= {job.reason for job in policy.state.waiting.values()}
    assert {"preempted", "again", "main", "backfill", "RESERVATION", "THROTTLE", "GPUS",
            "FEATURES", "EXCLUSIVE", "BEGIN", "MEMORY_PER_NODE"} <= seen  # fmt: skip
