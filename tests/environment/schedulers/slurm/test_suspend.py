"""Jobs that Slurm suspends to make room: stories, one of them a real Slurm's, and properties."""

import numpy as np
import pytest
from hpcrowd.environment.jobs import State
from hpcrowd.environment.machine.model import NodeType, Partition, Preempt, Qos
from hpcrowd.environment.machine.requests import Ask
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.passes.slurm.test_properties import PLACEMENTS, seeds
from tests.environment.engine.passes.slurm.test_properties import run as run_jobs
from tests.environment.machine.audit import faults
from tests.environment.machine.machine_cases import machine, random_jobs, random_machine
from tests.environment.schedulers.slurm.test_policy import begun, run


def lending(*nodes, **more):
    """Return a machine whose partition ``high`` suspends the jobs of ``low``."""
    return machine(
        *nodes,
        partitions=(
            Partition(name="high", priority_tier=10, preempt_mode=Preempt.OFF),
            Partition(name="low", priority_tier=1),
        ),
        scheduling={"preempt_type": "partition", "preempt_mode": Preempt.SUSPEND, **more},
    )


def test_suspended_jobs_keep_their_place():
    """As of a Slurm 22.05: cores are lent, memory is not, and nobody of their tier gets them.

    By its accounting, its jobs started 1, 0, 54, 12, 18, 0, 0, 15 and 10 s after their submission,
    and the first and sixth were suspended for 23 s and 17 s.
    """
    low, high = {"partitions": "low", "limit": 600}, {"partitions": "high", "limit": 600}
    first, second = {"features": "first"}, {"features": "second"}
    model = run(
        lending(
            NodeType(name="n1", cores=4, memory=1000, features=("first",)),
            NodeType(name="n2", cores=4, memory=1000, features=("second",)),
        ),
        {**low, **first, "at": 0, "cores": 4, "memory_per_node": 300, "run": 40},
        {**high, **first, "at": 5, "cores": 4, "memory_per_node": 300, "run": 15},
        {**low, **first, "at": 8, "cores": 1, "memory_per_node": 10, "run": 5},
        {**high, **first, "at": 8, "cores": 4, "memory_per_node": 500, "run": 5},
        {**high, **first, "at": 8, "cores": 2, "memory_per_node": 100, "run": 3},
        {**low, **second, "at": 12, "cores": 3, "memory_per_node": 100, "run": 40},
        {**high, **second, "at": 16, "cores": 2, "memory_per_node": 100, "run": 12},
        {**low, **second, "at": 19, "cores": 1, "memory_per_node": 10, "run": 5},
        {**high, **second, "at": 19, "exclusive": 1, "memory_per_node": 10, "run": 5},
    )
    jobs = model.jobs
    assert [0, 5, 63, 20, 25, 12, 16, 33, 28] == jobs.start.tolist()
    assert [63, 20, 68, 25, 28, 69, 28, 38, 33] == jobs.end.tolist()
    assert [23, -1, -1, -1, -1, 17, -1, -1, -1] == jobs.paused.tolist()
    assert jobs.run_time.tolist() == jobs.lasted.tolist()
    pauses = model.cluster.engine.scheduler.ledger[0].pauses  # which may touch
    assert (5, 28, 23) == (pauses[0][0], pauses[-1][1], sum(to - since for since, to in pauses))


LOW_AND_HIGH = ({"partitions": "low"}, {"partitions": "high", "at": 40, "run": 500})
NORMAL, URGENT = {"qos": "normal"}, {"at": 10, "run": 20, "qos": "urgent"}
QOS = machine(
    NodeType(name="n1", cores=2),
    qos=(Qos(name="normal"), Qos(name="urgent", preempts=("normal",))),
    scheduling={"preempt_type": "qos", "preempt_mode": Preempt.SUSPEND},
)
FOUR = (NORMAL, NORMAL, URGENT, {**NORMAL, "at": 11, "run": 30})


@pytest.mark.parametrize(
    ("site", "jobs", "starts", "ends"),
    [
        # They need no pass of the scheduler, and their limits do not go on.
        (lending(NodeType(name="n1", cores=1)), LOW_AND_HIGH, [0, 40], [600, 540]),
        (QOS, FOUR, [0, 0, 10, 100], [120, 100, 30, 130]),
    ],
    ids=["nothing waits", "the QOS says so"],
)
def test_suspended_jobs_go_on(site, jobs, starts, ends):
    """They end later by what they were suspended for."""
    made = run(site, *jobs, overrun="kill").jobs
    assert (starts, ends) == (made.start.tolist(), made.end.tolist())
    assert (made.state == State.COMPLETED).all()


def test_suspended_jobs_can_be_taken_back():
    """Their memory is free then, and the time in which they were suspended is known."""
    model = begun(
        lending(NodeType(name="n1", cores=1, memory=100)),
        {"partitions": "low", "memory_per_node": 60, "run": 100},
        {"partitions": "high", "at": 10, "memory_per_node": 40, "run": 50},
        {"partitions": "high", "at": 20, "memory_per_node": 60, "run": 5},
    )
    made = model.run(until=30).jobs
    assert {0, 1} == set(model.cluster.engine.running.tolist())
    model.cluster.cancel([0])
    model.run()
    assert (30, 20, State.CANCELLED) == (made.end[0], made.paused[0], made.state[0])
    assert [10, 60] == made.start[1:].tolist()
    assert [60, 65] == made.end[1:].tolist()


@given(seeds, st.sampled_from(PLACEMENTS), st.sampled_from(["keep", "kill"]))
@settings(deadline=None, max_examples=8)
def test_suspended_jobs_keep_what_is_theirs(seed, placement, overrun):
    """Nobody of their tier gets their cores; they go on when those are free, and all is accounted.

    That nobody gets their memory and GPUs, and that cores are not in use twice, is in the audit.
    """
    rng = np.random.default_rng(seed)
    site, jobs = suspending(rng)
    policy = run_jobs(site, jobs, placement, overrun)
    assert [] == faults(site, jobs, policy.ledger)
    controller = policy.state
    assert controller.stock.cores == controller.layout.cores
    assert controller.stock.memory == controller.layout.memory
    tiers = {one.name: one.priority_tier for one in site.partitions}
    runs = [(one, int(jobs.end[one.row]) if one.end < 0 else one.end) for one in policy.ledger]
    for one, _ in runs:
        for node, cores in held_by(one).items():
            others = [
                held_by(other).get(node, 0)
                for other, end in runs
                if other.start <= one.start < end and tiers[other.partition] >= tiers[one.partition]
                and (other.start, other.row) != (one.start, one.row)
                and (other.start < one.start or runs.index((other, end)) < runs.index((one, _)))
            ]  # fmt: skip
            assert sum(others) + cores <= controller.layout.cores[node]
        for since, to in one.pauses:
            last = (jobs.end[one.row] if to < 0 else to) - 1
            assert since == last + 1 or any(
                cores + sum(held_by(other).get(node, 0) for other, end in runs
                            if other is not one and is_active(other, end, last))
                > controller.layout.cores[node]
                for node, cores in held_by(one).items()
            )  # fmt: skip


def suspending(rng):
    """Return a machine on which partitions of higher tiers suspend jobs, and jobs for all three."""
    site = random_machine(rng)
    jobs = random_jobs(rng, site, 40)
    assert jobs.requests is not None
    jobs.recorded_submit[:] = rng.integers(0, 60, len(jobs))
    for row in range(len(jobs)):
        jobs.requests.set(row, Ask.PARTITIONS, ("all", "some", "rest")[rng.integers(3)])
    tier = [
        one.model_copy(update={"priority_tier": place, "preempt_mode": None})
        for place, one in enumerate(site.partitions, 1)
    ]
    how = site.scheduling.model_copy(
        update={"preempt_type": "partition", "preempt_mode": Preempt.SUSPEND}
    )
    return site.model_copy(update={"partitions": tuple(tier), "scheduling": how}), jobs


@pytest.mark.slow
def test_random_machines_suspend():
    """Of a hundred, more than twenty suspend jobs, some of them twice."""
    counts = []
    for seed in range(100):
        policy = run_jobs(*suspending(np.random.default_rng(seed)), "slurm", "kill")
        counts.append([len(one.pauses) for one in policy.ledger])
    assert 20 < sum(any(one) for one in counts)
    assert 2 <= max(max(one, default=0) for one in counts)


def held_by(one):
    """Return the cores of a run by node."""
    return {share.node: share.cores for share in one.holding}


def is_active(one, end, now):
    """Return whether a run goes on in a second, not suspended."""
    return one.start <= now < end and not any(
        since <= now and (to < 0 or now < to) for since, to in one.pauses
    )
