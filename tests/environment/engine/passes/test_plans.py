"""Plans of reservations on random workloads: what they promise, and what comes to the same."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hpcrowd import State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.policies import rooms, run, workloads

#: Clusters on which no job runs longer than its estimate.
certain = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact", "2x"]),
    }
)


few = settings(max_examples=40)


def bounded(rows):
    """The jobs, each asking for its run time and that many seconds more."""
    return [(submit, run, need, run + more, *rest) for submit, run, need, more, *rest in rows]


@few
@given(
    workloads,
    certain,
    st.sampled_from(["conservative", "selective", "selective-categorized"]),
    rooms,
    st.booleans(),
)
def test_plans_keep_their_first_promise(rows, cluster, policy, room, plain):
    """Whoever is promised a start has it by then, with upper bounds as estimates."""
    jobs = run(bounded(rows), policy, cluster, room, plain=plain)
    promised, ran = jobs.promised >= 0, jobs.state != State.REJECTED
    assert np.all(jobs.promised[promised] >= jobs.submit[promised])
    assert np.all(jobs.start[promised] <= jobs.promised[promised])
    assert policy != "conservative" or np.array_equal(promised, ran)


#: Runs random queues with other bounds of the kernel's tables than the usual ones.
CASES = """
import sys
import numpy as np
from hpcrowd import JobTable, Simulation
from hpcrowd.policies import parse_scheduler
from hpcrowd.environment.engine.kernel import gains, plan, profile

for bound in sys.argv[1:]:
    name, _, value = bound.partition("=")
    for module in (gains, plan, profile):
        if hasattr(module, name):
            setattr(module, name, int(value))


def run(jobs, processors, policy, plain):
    model = Simulation(jobs.copy(), processors, parse_scheduler(policy), plain=plain)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model.run().jobs.matrix.tolist()


for seed in range(20):
    random = np.random.default_rng(seed)
    count, processors = int(random.integers(20, 60)), int(random.choice([2, 3, 5, 8, 16]))
    times = random.integers(0, 30, count)
    jobs = JobTable()
    jobs.append(
        count,
        processors=random.integers(1, processors + 1, count),
        recorded_submit=np.sort(random.integers(0, random.choice([1, 20, 5 * count]), count)),
        run_time=times,
        requested_time=(times * random.choice([0.5, 1, 1, 2, 3, 8], count)).astype(int) + 1,
    )
    for policy in ("conservative", "selective-categorized"):
        assert run(jobs, processors, policy, False) == run(jobs, processors, policy, True), seed
"""


@pytest.mark.endurance
@pytest.mark.parametrize(
    "bounds",
    [
        ("NEAR=1", "GAINS=4", "TOGETHER=2", "WIDTH=4", "MEMORY=1", "MANY_STEPS=2"),
        ("NEAR=2", "GAINS=32", "TOGETHER=4", "MANY_STEPS=1", "WIDTH=8", "JOBS_A_SPAN=2"),
    ],
    ids=" ".join,
)
def test_schedules_do_not_depend_on_bounds_of_tables(bounds):
    """Full tables, far moves and other blocks, rare in queues of tests, change no schedule.

    The kernel runs as Python, where bounds may be set and numpy checks indexes.
    """
    called = [sys.executable, "-c", CASES, *bounds]
    pure = os.environ | {"HPCROWD_PURE": "1"}
    done = subprocess.run(called, env=pure, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
