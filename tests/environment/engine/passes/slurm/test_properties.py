"""Slurm's controller on random machines: jobs in are jobs out, and all is given back.

That nothing is in use twice and every limit is kept is in the audit of all runs.
"""

import numpy as np
from hpcrowd.environment.jobs import State
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.audit import faults
from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.environment.schedulers.pool_cases import ran

PLACEMENTS = ("slurm", "first-fit", "best-fit", "spread")

seeds = st.integers(0, 2**32 - 1)


def run(site, jobs, placement, overrun):
    """Run jobs under Slurm to the end, and return the scheduler."""
    policy = Slurm(placement)
    ran(jobs, site.cores, policy, machine=site, overrun=overrun)
    return policy


@given(seeds, st.sampled_from(PLACEMENTS), st.sampled_from(["keep", "kill"]))
@settings(deadline=None, max_examples=20)
def test_all_is_given_back(seed, placement, overrun):
    """After the last job all is free, and nothing counts on limits but what still waits."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    jobs = random_jobs(rng, site)
    policy = run(site, jobs, placement, overrun)
    controller = policy.state
    assert [] == faults(site, jobs, policy.ledger)
    assert not controller.running
    left = np.flatnonzero(jobs.state == State.UNFINISHED).tolist()
    assert set(left) == set(controller.waiting)
    stock, layout = controller.stock, policy.layout
    assert (layout.cores, layout.memory, layout.gpus) == (stock.cores, stock.memory, stock.gpus)
    used = policy.book.used
    assert not np.delete(np.asarray(used.table), 1, axis=0).any()
    assert all(0 <= count <= len(controller.waiting) for count in used.all_jobs.tolist())
