"""Slurm's controller on small machines: stories, with the exact starts, compiled and plain."""

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
from hpcrowd.environment.schedulers.slurm.backfill import BackfillCycle
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation

from tests.environment.machine.machine_cases import Job, Nobody, machine, table
from tests.environment.schedulers import pool_cases
from tests.support.simulations import both, simulation_of

HOUR = 3600


def begun(site, *jobs, placement="slurm", **more):
    """Return a simulation of jobs on a machine."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    return pool_cases.begun(made, site.cores, Slurm(placement), machine=site, **more)


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


def lending(mode, **more):
    """Return a node of one core whose partition ``low`` is preempted by ``high``."""
    return one(
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
    "a job gets the node where it fits best": Story(
        machine(), [{"cores": 3}, {"cores": 1}, WHOLE], [0, 0, 0]),
    "spread takes the emptiest node": Story(
        machine(), [{}, {}, {**WHOLE, "at": 1}], [0, 0, 100], more={"placement": "spread"}),
    "memory and GPUs bound what fits": Story(
        machine(NodeType(name="g1", cores=8, memory=1000, gpus={"a": 2})),
        [
            {"memory_per_node": 600, "run": 50}, {"memory_per_node": 500},
            {"gpus_per_node": 2, "run": 30}, {"gpus": 1, "gpu_type": "a", "run": 15}],
        [0, 50, 0, 30]),
    "whole nodes are shared with nobody": Story(
        machine(), [{"run": 40}, {"run": 60}, {"exclusive": 1, "at": 1, "run": 10}], [0, 0, 1]),
    "an exclusive job waits for an idle node": Story(
        one(4), [{"run": 40}, {"exclusive": 1, "at": 1, "run": 10}], [0, 40]),
    "features choose nodes": Story(
        machine(NodeType(name="a1", cores=1, features=("old",)), NodeType(name="b1", cores=1)),
        [{"features": "old"}, {"features": "old"}, {"features": "new"}], [0, 100, UNKNOWN],
        {2: "BadConstraints"}),
    "backfilling does not delay the first": Story(
        machine(),
        [
            {"cores": 4}, {"cores": 8, "at": 1, "run": 10}, {"cores": 4, "at": 2, "run": 90},
            {"cores": 4, "at": 3, "run": 50, "limit": 200}], [0, 100, 2, 110]),
    "without backfilling the queue is kept": Story(
        machine(scheduling={"backfill": False}),
        [{"cores": 4}, {"cores": 8, "at": 1, "run": 10}, {"cores": 4, "at": 2, "run": 5}],
        [0, 100, 110]),
    "partitions bound nodes and times": Story(
        machine(
            partitions=(
                Partition(name="all", default=True),
                Partition(name="one", nodes=("n1",), max_time=HOUR))),
        [
            {"cores": 4, "partitions": "one"}, {"cores": 4, "partitions": "one"},
            {"partitions": "one", "limit": 2 * HOUR}, {"partitions": "none"}],
        [0, 100, UNKNOWN, UNKNOWN], {2: "PartitionTimeLimit", 3: "InvalidPartition"}),
    "of several partitions the first with room is taken": Story(
        machine(
            partitions=(Partition(name="a", nodes=("n1",)), Partition(name="b", nodes=("n2",)))),
        [{"cores": 4, "partitions": "a"}, {"cores": 4, "partitions": "a,b", "at": 1}], [0, 1]),
    "a higher tier goes first": Story(
        one(partitions=(Partition(name="low"), Partition(name="high", priority_tier=2))),
        [{"partitions": "low"}, {"partitions": "low", "at": 1}, {"partitions": "high", "at": 2}],
        [0, 200, 100]),
    "who used less goes first": Story(sharing(period=10), OF_TWO_USERS, [0, 110, 100]),
    "usage counts a period after the phase": Story(sharing(), OF_TWO_USERS, [0, 100, 110]),
    "usage counts from the phase on": Story(
        sharing(calculation_phase=100), OF_TWO_USERS, [0, 110, 100]),
    "usage does not count before the phase": Story(
        sharing(calculation_phase=101), OF_TWO_USERS, [0, 100, 110]),
    "the oldest goes first": Story(one(priority=BY_AGE), AGING, [0, 50, 100]),
    "unless it is nice": Story(
        one(priority=BY_AGE), [AGING[0], {**AGING[1], "nice": 500}, AGING[2]], [0, 100, 50]),
    "submissions beyond a limit are rejected": Story(
        limited(max_submit=2), [{}, {"at": 1}, {"at": 2}, {"at": 150}], [0, 1, UNKNOWN, 150],
        {2: SUBMITTED}),
    "also within a second, and who leaves makes room": Story(
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
    "of one second the higher tier goes first, and nobody is stopped": Story(
        lending(Preempt.REQUEUE, requeue_delay=5),
        [{"partitions": "low", "run": 50}, {"partitions": "high", "run": 10}], [10, 0]),
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
    "arrays are throttled": Story(
        machine(), [{"array": 7, "task": task, "throttle": 1, "run": 10} for task in range(3)],
        [0, 10, 20]),
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
    "a job whose reservation is over does not keep the run alive": Story(
        machine(reservations=(Reservation(name="past", start=0, end=10),)),
        [{"reservation": "past", "at": 20}], [UNKNOWN]),
    "nor does one at a limit of minutes left to run": Story(
        machine(
            accounts=lab("u1", group_tres_run_minutes={"cpu": 3}),
            scheduling={"enforce_limits": True, "whole_nodes": True},
            partitions=(Partition(name="all", nodes=("n1",)),)),
        [{"limit": 30, "run": 10}, {"limit": 40, "run": 10}], [0, 10]),
    "minutes left to run become fewer": Story(
        machine(
            accounts=lab("u1", group_tres_run_minutes={"cpu": 3}),
            scheduling={"enforce_limits": True}), [{"limit": 100}, {"at": 5, "limit": 100}],
        [0, 20]),
    "jobs without a time get that of their partition": Story(
        machine(partitions=(Partition(name="all", default_time=30, max_time=50),)),
        [{"limit": -1}, {"run": 20, "limit": -1}], [0, 0], ends=[30, 20], more=KILL),
    "jobs are killed at the next check of limits": Story(
        machine(scheduling={"time_limit_period": 30}), [{"limit": 50}, {"at": 5, "run": 20}],
        [0, 5], ends=[60, 25], more=KILL),
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
def test_stories(name, plain):
    """Jobs start, end and are refused as Slurm's rules say."""
    story = STORIES[name]
    model = run(story.site, *story.jobs, plain=plain, **story.more)
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
    "the first waits for resources, the next for its priority": (
        machine(), [{"cores": 8}, {"cores": 8, "at": 1}, {"cores": 8, "at": 2}],
        [0, UNKNOWN, UNKNOWN], ["Resources", "Priority"]),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", WAITING)
def test_reasons(name, plain):
    """A job that waits has Slurm's word for it."""
    site, jobs, starts, reasons = WAITING[name]
    model = begun(site, *jobs, plain=plain)
    model.run(until=50)
    assert starts == model.jobs.start.tolist()
    scheduler: Any = model.cluster.engine.scheduler
    waiting = scheduler.state.waiting
    assert reasons == [waiting[row].reason for row, at in enumerate(starts) if at == UNKNOWN]
    model.run()
    assert (model.jobs.start != UNKNOWN).all()


@both
def test_what_jobs_got_is_known(plain):
    """The cores of whole nodes, the time limit of the partition, and runs that were stopped."""
    site = machine(partitions=(Partition(name="all", default_time=30),))
    made = run(site, {"exclusive": 1, "limit": -1}, plain=plain).jobs
    assert (4, 30) == (made.processors[0], made.requested_time[0])
    jobs = {"partitions": "low"}, {"partitions": "high", "at": 40, "run": 10}
    (attempt,) = run(lending(Preempt.REQUEUE), *jobs, plain=plain).cluster.attempts
    found = attempt.start, attempt.end, attempt.cause, attempt.fate
    assert (0, 40, "preempted", "requeue") == found


def test_preempted_jobs_may_be_cancelled():
    """With PreemptMode=CANCEL, or without requeueing, the victim is over; its user hears of it."""
    heard: list[tuple[int, int]] = []

    class Owner(Nobody):
        def on_finished(self, unit, now):
            heard.append((unit, now))

    made, _ = table({"partitions": "low"}, {"partitions": "high", "run": 10})
    model = simulation_of(made, 1, Slurm(), machine=lending(Preempt.CANCEL))
    owner = Owner()
    model.submit(owner, np.array([0]), 0)
    model.submit(owner, np.array([1]), 40)
    model.run()
    assert (State.FAILED, 40) == (made.state[0], made.end[0])
    assert [(0, 40), (1, 50)] == heard
    assert "fail" == model.cluster.attempts[0].fate


@both
def test_waiting_and_running_jobs_can_be_taken_back(plain):
    """Cancelled jobs leave the queue, or give back their nodes at once."""
    model = begun(one(), {}, {"at": 1}, {"at": 2, "run": 10}, plain=plain)
    model.call_at(20, model.cancel, 1)
    model.call_at(30, model.cancel, 0)
    model.run()
    assert [0, UNKNOWN, 30] == model.jobs.start.tolist()


@pytest.mark.parametrize(
    ("taken", "cycles"), [(3, [1, 31, 61, 91, 121, 151, 181]), (4, [1, 31, 200])]
)
def test_cycles_follow_a_plan_on_nodes_that_are_not_full(taken, cycles, monkeypatch):
    """Marking a node as planned is a change, and so is taking the mark away, a cycle later."""
    seen: list[int] = []
    plan = BackfillCycle.run

    def count(cycle):
        seen.append(cycle.now)
        plan(cycle)

    monkeypatch.setattr(BackfillCycle, "run", count)
    site = one(4, scheduling={"bf_interval": 30, "sched_interval": 600, "backfill_phase": 1})
    model = run(site, {"cores": taken, "run": 200}, {"at": 1, "cores": 4}, plain=True)
    assert [0, 200] == model.jobs.start.tolist()
    assert cycles == seen


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
