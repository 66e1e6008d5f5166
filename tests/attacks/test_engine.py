"""The engine far from what is usual: huge times, and outages at the second of an end."""

import numpy as np
import pytest
from hpcrowd import State
from hpcrowd.platform import NodesDown
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import outcome, run, workloads
from tests.support.simulations import both, recorded, simulation_of

#: Policies that compare times with each other alone.
SCALED = ("fcfs", "easy", "sjf", "ljf", "easy:backfill=sjbf")

POLICIES = (*SCALED, "conservative", "selective", "fair-share", "creasy")

machines = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact"]),
    }
)


@both
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("fate", ["requeue", "resubmit", "fail"])
def test_each_policy_meets_outages_at_ends(policy, fate, plain):
    """A job that ends in the second of an outage has ended, under every policy and fate."""
    jobs = recorded(np.zeros(1, int), 5, processors=2, user=1)
    down = NodesDown(5, 9, 2, fate)
    model = simulation_of(jobs, 2, policy, platform=[down], plain=plain)
    model.cluster.submit(np.arange(1), jobs.recorded_submit)
    model.run()
    assert ([5], [State.COMPLETED]) == (jobs.end.tolist(), jobs.state.tolist())


def check_scaling(rows, policy, machine, factor):
    """Check that with all times longer by a factor, everything happens later by it."""
    found = outcome(run(rows, policy, machine))
    for name in ("submit", "start", "end", "estimate"):
        found[name] = [at if at < 0 else factor * at for at in found[name]]
    long = [(*(factor * at for at in row[:2]), row[2], factor * row[3], *row[4:]) for row in rows]
    for plain in (False, True):
        later = outcome(run(long, policy, machine, plain=plain))
        assert {**found, "promised": later["promised"]} == later


factors = st.sampled_from([7, 3600, 2**40])


@settings(max_examples=40)
@given(workloads, st.sampled_from(SCALED), machines, factors)
def test_longer_times_are_later_ones(rows, policy, machine, factor):
    """In both engines, up to times near 2**49 s."""
    check_scaling(rows, policy, machine, factor)


@pytest.mark.endurance
@settings(max_examples=5000)
@given(workloads, st.sampled_from(SCALED), machines, factors)
def test_longer_times_are_later_ones_often(rows, policy, machine, factor):
    """The same for many more runs."""
    check_scaling(rows, policy, machine, factor)
