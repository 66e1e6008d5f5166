"""Slurm's controller on small machines: stories, with the exact starts, also by brute force."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.model import (
    Account,
    Limits,
    Machine,
    NodeType,
    Partition,
    Preempt,
    PrioritySettings,
    Qos,
    Reservation,
)
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.passes.slurm.test_properties import PLACEMENTS, seeds
from tests.environment.engine.passes.slurm.test_properties import run as run_jobs
from tests.environment.machine.audit import faults
from tests.environment.machine.machine_cases import Job, machine, suspending, table
from tests.environment.schedulers import pool_cases
from tests.environment.schedulers.slurm.brute import BruteSlurm

HOUR = 3600

#: The controller, and its oracle.
both = pytest.mark.parametrize("by", [Slurm, BruteSlurm])


def begun(site, *jobs, placement="slurm", by=Slurm, **more):
    """Return a simulation of jobs on a machine."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    return pool_cases.begun(made, site.cores, by(placement), machine=site, **more)


def run(site, *jobs, **more):
    """Run jobs on a machine to the end."""
    return begun(site, *jobs, **more).run()


def one(cores=1, **more):
    """Return a machine of one node."""
    return machine(NodeType(name="n1", cores=cores), **more)


def lab(*users, **limits):
    """Return an account with limits, and users of it with equal shares."""
    account = Account(account="lab", limits=Limits(**limits))
    return (account, *(Account(account="lab", user=user, shares=1) for user in users))


def lending(mode, *nodes, **more):
    """Return nodes, or one of one core, whose partition ``low`` is preempted by ``high``."""
    return machine(
        *(nodes or (NodeType(name="n1", cores=1),)),
        partitions=(
            Partition(name="high", priority_tier=2, preempt_mode=Preempt.OFF),
            Partition(name="low", priority_tier=1, preempt_mode=mode),
        ),
        scheduling={"preempt_type": "partition", "preempt_mode": mode, **more},
    )


def limited(**limits):
    """Return two nodes whose QOS ``normal`` has limits, and ``free`` none."""
    return machine(
        qos=(Qos(name="normal", limits=Limits(**limits)), Qos(name="free")),
        scheduling={"enforce_limits": True},
    )


def sharing(**scheduling):
    """Return a node of one core where the fair share of two users counts."""
    period = scheduling.pop("period", 200)
    return one(
        accounts=lab("u1", "u2"),
        priority=PrioritySettings(weight_fair_share=1000, calculation_period=period),
        scheduling=scheduling,
    )


@dataclass
class Story:
    """Jobs on a machine, and the outcome."""

    site: Machine
    jobs: list[Job]
    starts: list[int]
    refused: dict[int, str] = field(default_factory=dict)
    ends: list[int] | None = None
    more: dict[str, Any] = field(default_factory=dict)


#: Needs a whole node.
WHOLE = {"cores": 4, "nodes": 1, "max_nodes": 1}
HALVES = [{"cores": 2, "nodes": 1, "run": 100 + 50 * place} for place in range(4)]
COURSE = {"reservation": "course"}
OF_TWO_USERS = [
    {"user": 1, "account": "lab"},
    {"user": 1, "account": "lab", "at": 1, "run": 10},
    {"user": 2, "account": "lab", "at": 50, "run": 10},
]
BY_AGE = PrioritySettings(weight_age=1000, max_age=1000, calculation_period=1)
AGING = [{"run": 50}, {"at": 1, "run": 50}, {"at": 2, "run": 50}]
ONE_OF_TWO = [{"cores": 3}, {"at": 1, "cores": 4}, {"at": 2, "run": 20, "limit": 20}]
SUBMITTED = "QOSMaxSubmitJobPerUserLimit"
KILL = {"overrun": "kill"}

STORIES = {
    "two free halves of nodes are no whole node": Story(
        machine(), [*HALVES, {**WHOLE, "at": 110, "run": 10}], [0, 0, 0, 0, 150]),
    "memory and GPUs bound what fits": Story(
        machine(NodeType(name="g1", cores=8, memory=1000, gpus={"a": 2})),
        [
            {"memory_per_node": 600, "run": 50}, {"memory_per_node": 500},
            {"gpus_per_node": 2, "run": 30}, {"gpus": 1, "gpu_type": "a", "run": 15}],
        [0, 50, 0, 30]),
    "whole nodes are shared with nobody": Story(
        machine(), [{"run": 40}, {"run": 60}, {"exclusive": 1, "at": 1, "run": 10}], [0, 0, 1]),
    "backfilling does not delay the first": Story(
        machine(),
        [
            {"cores": 4}, {"cores": 8, "at": 1, "run": 10}, {"cores": 4, "at": 2, "run": 90},
            {"cores": 4, "at": 3, "run": 50, "limit": 200}], [0, 100, 2, 110]),
    "partitions bound nodes and times": Story(
        machine(
            partitions=(
                Partition(name="all", default=True),
                Partition(name="one", nodes=("n1",), max_time=HOUR))),
        [
            {"cores": 4, "partitions": "one"}, {"cores": 4, "partitions": "one"},
            {"partitions": "one", "limit": 2 * HOUR}, {"partitions": "none"}],
        [0, 100, UNKNOWN, UNKNOWN], {2: "PartitionTimeLimit", 3: "InvalidPartition"}),
    "a higher tier goes first": Story(
        one(partitions=(Partition(name="low"), Partition(name="high", priority_tier=2))),
        [{"partitions": "low"}, {"partitions": "low", "at": 1}, {"partitions": "high", "at": 2}],
        [0, 200, 100]),
    "who used less goes first": Story(sharing(period=10), OF_TWO_USERS, [0, 110, 100]),
    "usage does not count before the phase": Story(
        sharing(calculation_phase=101), OF_TWO_USERS, [0, 100, 110]),
    "the oldest goes first, unless it is nice": Story(
        one(priority=BY_AGE), [AGING[0], {**AGING[1], "nice": 500}, AGING[2]], [0, 100, 50]),
    "submissions beyond a limit are rejected, and who leaves makes room": Story(
        one(
            qos=(Qos(name="normal", limits=Limits(max_submit=2)),),
            scheduling={"enforce_limits": True}), [*[{"run": 10}] * 4, {"at": 11}, {"at": 11}],
        [0, 10, UNKNOWN, UNKNOWN, 20, UNKNOWN], {2: SUBMITTED, 3: SUBMITTED, 5: SUBMITTED}),
    "preempted jobs run anew after the delay": Story(
        lending(Preempt.REQUEUE),
        [{"partitions": "low"}, {"partitions": "high", "at": 40, "run": 10}], [161, 40],
        ends=[261, 50]),
    "nobody is preempted in the second of a start": Story(
        lending(Preempt.REQUEUE, requeue_delay=5),
        [{"partitions": "low", "run": 50}, {"partitions": "high", "at": 1, "run": 10}], [11, 1]),
    # As of a Slurm 22.05: one that was requeued does not start before whom it was stopped for.
    "jobs wait behind those whose QOS preempts theirs, whatever the priority": Story(
        one(
            4,
            qos=(
                Qos(name="normal", priority=9), Qos(name="high", preempts=("low",)),
                Qos(name="low")), priority=PrioritySettings(weight_qos=1000),
            scheduling={"preempt_type": "qos", "preempt_mode": Preempt.REQUEUE}),
        [
            {"cores": 4, "run": 12, "qos": "normal"}, {"at": 4, "cores": 4, "run": 4, "qos": "low"},
            {"at": 5, "cores": 4, "run": 4, "qos": "high", "nice": 1000},
            {"at": 6, "cores": 4, "run": 4, "qos": "normal"}], [0, 20, 16, 12]),
    "reservations are entered by their jobs only": Story(
        one(reservations=(Reservation(name="course", start=50, end=100, users=("u2",)),)),
        [{"run": 60}, {"at": 1, "run": 20}, {**COURSE, "at": 2, "user": 2, "run": 30}],
        [100, 1, 50]),
    # As of a Slurm 22.05.
    "a job that does not fit into its reservation blocks that one only": Story(
        machine(
            NodeType(name="n1", cores=4), NodeType(name="n2", cores=4),
            reservations=(Reservation(name="course", start=0, end=3600, nodes=("n2",)),),
            scheduling={"backfill": False}),
        [
            {**COURSE, "cores": 3, "run": 15}, {**COURSE, "at": 2, "cores": 4, "run": 3},
            {**COURSE, "at": 4, "cores": 1, "run": 3}, {"at": 4, "cores": 4, "run": 3}],
        [0, 15, 18, 4]),
    "reservations of others, and for other partitions, reject jobs": Story(
        machine(
            partitions=(Partition(name="all", default=True), Partition(name="few")),
            accounts=(
                Account(account="a"), Account(account="b", parent="a"),
                Account(account="b", user="u3")),
            reservations=(
                Reservation(name="course", start=0, end=500, users=("u2",), accounts=("a",)),
                Reservation(name="bound", start=600, end=900, partition="few"))),
        [
            {"reservation": "curse"}, COURSE, {**COURSE, "user": 2}, {**COURSE, "user": 3},
            {"reservation": "bound"}, {"reservation": "bound", "partitions": "few"}],
        [UNKNOWN, UNKNOWN, 0, 0, UNKNOWN, 600],
        {0: "InvalidReservation", 1: "ReservationAccess", 4: "InvalidReservation"}),
    "a job at its limit at a check ends at once": Story(
        machine(scheduling={"time_limit_period": 30, "limit_check_phase": 20}),
        [{"limit": limit} for limit in (49, 50, 51)], [0, 0, 0], ends=[50, 50, 80], more=KILL),
    "main passes obey the delay": Story(
        machine(scheduling={"batch_sched_delay": 3, "sched_interval": 60, "backfill": False}),
        [{}, {"at": 1}, {"at": 13}], [0, 3, 13]),
    **{
        f"full passes have a rhythm with a phase of {phase} s": Story(
            machine(
                scheduling={"sched_interval": 60, "full_pass_phase": phase, "backfill": False},
                reservations=(Reservation(name="all", start=0, end=50),),
            ),
            [{"at": 30}],
            [start],
        )
        for phase, start in ((0, 90), (25, 55), (55, 85))
    },
    **{
        f"backfilling has a phase of {phase} s": Story(
            one(
                4, scheduling={"bf_interval": 30, "sched_interval": 600, "backfill_phase": phase}
            ),
            ONE_OF_TWO,
            [0, 100, start],
        )
        for phase, start in ((0, 30), (7, 7), (7.5, 8), (29, 29))
    },
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_stories(name, by):
    """Jobs start, end and are refused as Slurm's rules say."""
    story = STORIES[name]
    model = run(story.site, *story.jobs, by=by, **story.more)
    assert story.starts == model.jobs.start.tolist()
    assert story.refused == model.cluster.engine.refused
    if story.ends is not None:
        assert story.ends == model.jobs.end.tolist()


#: Machine, jobs, their starts until 50 s, and why those that wait do so.
WAITING: dict[str, tuple[Machine, list[Job], list[int], list[str]]] = {
    **{
        reason: (limited(**limits), [{}, {"at": 1}, {"at": 2, "qos": "free", "user": 2}],
                 [0, UNKNOWN, 2], [reason])
        for limits, reason in (
            ({"max_jobs": 1}, "QOSMaxJobsPerUserLimit"),
            ({"max_tres_per_user": {"cpu": 1}}, "QOSMaxCpuPerUserLimit"),
            ({"group_jobs": 1}, "QOSGrpJobsLimit"),
            ({"group_tres": {"cpu": 1}}, "QOSGrpCpuLimit"),
        )
    },
    "a limit goes before the nodes that a job lacks, so that it blocks nobody": (
        one(
            4,
            qos=(Qos(name="free"), Qos(name="lean", limits=Limits(max_tres_per_user={"cpu": 3}))),
            scheduling={"enforce_limits": True, "backfill": False}),
        [
            {"cores": 3, "qos": "lean"}, {"at": 1, "cores": 2, "qos": "lean"},
            {"at": 2, "qos": "free", "user": 2}], [0, UNKNOWN, 2], ["QOSMaxCpuPerUserLimit"]),
    "a job whose nodes others keep does not block its partition": (
        machine(
            NodeType(name="n1", cores=4, memory=1000), NodeType(name="n2", cores=4, memory=9000),
            partitions=(
                Partition(name="all", nodes=("n1", "n2"), default=True),
                Partition(name="big", nodes=("n2",), priority_tier=9)),
            scheduling={"backfill": False, "memory_counts": True}),
        [
            {"cores": 3, "partitions": "big", "memory_per_node": 100},
            {"at": 1, "cores": 4, "partitions": "big", "memory_per_node": 100},
            {"at": 2, "memory_per_node": 5000, "partitions": "all"},
            {"at": 3, "memory_per_node": 100, "partitions": "all"}], [0, UNKNOWN, UNKNOWN, 3],
        ["Resources", "ReqNodeNotAvail"]),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", WAITING)
def test_reasons(name, by):
    """A job that waits has Slurm's word for it."""
    site, jobs, starts, reasons = WAITING[name]
    model = begun(site, *jobs, by=by)
    model.run(until=50)
    assert starts == model.jobs.start.tolist()
    scheduler: Any = model.cluster.engine.scheduler
    waiting = scheduler.state.waiting
    assert reasons == [waiting[row].reason for row, at in enumerate(starts) if at == UNKNOWN]
    model.run()
    assert (model.jobs.start != UNKNOWN).all()


@both
def test_what_jobs_got_is_known(by):
    """The cores of whole nodes, the time limit of the partition, and runs that were stopped."""
    site = machine(partitions=(Partition(name="all", default_time=30),))
    made = run(site, {"exclusive": 1, "limit": -1}, by=by).jobs
    assert (4, 30) == (made.processors[0], made.requested_time[0])
    jobs = {"partitions": "low"}, {"partitions": "high", "at": 40, "run": 10}
    (attempt,) = run(lending(Preempt.REQUEUE), *jobs, by=by).cluster.attempts
    found = attempt.start, attempt.end, attempt.cause, attempt.fate
    assert (0, 40, "preempted", "requeue") == found


@both
@pytest.mark.parametrize(
    ("taken", "cycles"), [(3, [1, 31, 61, 91, 121, 151, 181]), (4, [1, 31, 200])]
)
def test_cycles_follow_a_plan_on_nodes_that_are_not_full(taken, cycles, by):
    """Marking a node as planned is a change, and so is taking the mark away, a cycle later."""
    site = one(4, scheduling={"bf_interval": 30, "sched_interval": 600, "backfill_phase": 1})
    model = begun(site, {"cores": taken, "run": 200}, {"at": 1, "cores": 4}, by=by)
    scheduler: Any = model.cluster.engine.scheduler
    seen = set()
    for second in range(1, 203):
        model.run(until=second)
        seen.add(scheduler.state.phases.last_backfill)
    assert [0, 200] == model.jobs.start.tolist()
    assert cycles == sorted(seen - {0})


def test_placement_of_ones_own():
    """A function names nodes in the order in which they are used: here the last one first."""
    model = run(
        machine(), {"cores": 2}, {"cores": 2}, {"cores": 3},
        placement=lambda stock, demand, usable: sorted(usable, reverse=True),
    )  # fmt: skip
    scheduler: Any = model.cluster.engine.scheduler
    held = {one.row: [share.node for share in one.holding] for one in scheduler.ledger}
    assert {0: [1], 1: [1], 2: [0]} == held
    with pytest.raises(QuantityError, match="needs a machine of nodes; give --machine FILE"):
        Simulation(JobTable(), 8, "slurm")


# ---- suspended jobs ----------------------------------------------------------------------------


def test_suspended_jobs_keep_their_place():
    """As of a Slurm 22.05: cores are lent, memory is not, and nobody of their tier gets them.

    By its accounting, its jobs started 1, 0, 54, 12, 18, 0, 0, 15 and 10 s after their submission,
    and the first and sixth were suspended for 23 s and 17 s.
    """
    low, high = {"partitions": "low", "limit": 600}, {"partitions": "high", "limit": 600}
    first, second = {"features": "first"}, {"features": "second"}
    model = run(
        lending(
            Preempt.SUSPEND,
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
        (lending(Preempt.SUSPEND), LOW_AND_HIGH, [0, 40], [600, 540]),
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
        lending(Preempt.SUSPEND, NodeType(name="n1", cores=1, memory=100)),
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
    assert policy.state.stock.cores == policy.layout.cores
    assert policy.state.stock.memory == policy.layout.memory
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
            assert sum(others) + cores <= policy.layout.cores[node]
        for since, to in one.pauses:
            last = (jobs.end[one.row] if to < 0 else to) - 1
            assert since == last + 1 or any(
                cores + sum(held_by(other).get(node, 0) for other, end in runs
                            if other is not one and is_active(other, end, last))
                > policy.layout.cores[node]
                for node, cores in held_by(one).items()
            )  # fmt: skip


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
