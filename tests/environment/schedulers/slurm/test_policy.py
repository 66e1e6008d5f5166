"""Slurm's controller on small machines: stories, with the exact starts."""

from __future__ import annotations

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
    SchedulingSettings,
)
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.schedulers.slurm.backfill import BackfillCycle
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation

HOUR = 3600

#: Passes follow each event at once, so that stories need no arithmetic.
AT_ONCE = {
    "batch_sched_delay": 0, "sched_interval": 1, "bf_interval": 1, "bf_resolution": 1,
    "time_limit_period": 1,
}  # fmt: skip


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def machine(*nodes: NodeType, scheduling: dict[str, Any] | None = None, **more: Any) -> Machine:
    """Return a machine whose scheduler acts at once; by default two nodes of four cores."""
    settings = SchedulingSettings(**{**AT_ONCE, **(scheduling or {})})
    kinds = nodes or (NodeType(name="n[1-2]", cores=4),)
    return Machine(nodes=kinds, scheduling=settings, **more)


def table(*jobs: dict[str, Any]) -> tuple[JobTable, np.ndarray[Any, Any]]:
    """Return a table of jobs with requests, and their submissions.

    Keys are columns of the table or of requests; ``at`` is the submission, ``limit`` the requested
    time, ``run`` the run time.
    """
    made, requests = JobTable(), Requests(len(jobs))
    made.append(
        len(jobs),
        user=[job.get("user", 1) for job in jobs],
        processors=[job.get("cores", 1) for job in jobs],
        run_time=[job.get("run", 100) for job in jobs],
        requested_time=[job.get("limit", job.get("run", 100)) for job in jobs],
    )
    for row, job in enumerate(jobs):
        for name, value in job.items():
            if name.upper() in Ask.__members__:
                requests.set(row, Ask[name.upper()], value)
    made.requests = requests
    made.names = {"user": {number: f"u{number}" for number in range(10)}}
    return made, np.array([job.get("at", 0) for job in jobs])


def run(site: Machine, *jobs: dict[str, Any], **more: Any) -> Simulation:
    """Run jobs on a machine to the end."""
    made, at = table(*jobs)
    model = Simulation(made, site.cores, Slurm(), machine=site, **more)
    model.submit(Nobody(), np.arange(len(made)), at)
    model.run()
    return model


def starts(site: Machine, *jobs: dict[str, Any], **more: Any) -> list[int]:
    """Return the starts of jobs."""
    found: list[int] = run(site, *jobs, **more).jobs.start.tolist()
    return found


def test_fragments_do_not_add_up() -> None:
    """Two free halves of nodes do not make room for a job that needs one whole node."""
    first = [{"cores": 2, "nodes": 1, "run": 100 + 50 * place} for place in range(4)]
    assert [0, 0, 0, 0] == starts(machine(), *first)
    wide = {"cores": 4, "nodes": 1, "max_nodes": 1, "at": 110, "run": 10}
    # At 110 two cores are free on one node and two will be at 150; a whole node is free at 150.
    assert 150 == starts(machine(), *first, wide)[-1]


def test_a_job_gets_the_node_where_it_fits_best() -> None:
    """A small job goes to the node with the fewest free cores, so that a large one still fits."""
    jobs = [{"cores": 3}, {"cores": 1}, {"cores": 4, "nodes": 1, "max_nodes": 1}]
    assert [0, 0, 0] == starts(machine(), *jobs)


def test_spread_placement_takes_the_emptiest_node() -> None:
    """With spread, a second small job goes to the other node, and a large one has to wait."""
    wide = {"cores": 4, "nodes": 1, "max_nodes": 1, "at": 1}
    made, at = table({"cores": 1}, {"cores": 1}, wide)
    model = Simulation(made, 8, Slurm("spread"), machine=machine())
    model.submit(Nobody(), np.arange(3), at)
    model.run()
    assert [0, 0, 100] == made.start.tolist()


def test_memory_and_gpus_bound_what_fits() -> None:
    """A node with free cores takes no job for whose memory or GPUs it has no room."""
    node = NodeType(name="g1", cores=8, memory=1000, gpus={"a": 2})
    jobs = [
        {"cores": 1, "memory_per_node": 600, "run": 50},
        {"cores": 1, "memory_per_node": 500},
        {"cores": 1, "gpus_per_node": 2, "run": 30},
        {"cores": 1, "gpus": 1, "gpu_type": "a", "run": 15},
    ]
    assert [0, 50, 0, 30] == starts(machine(node), *jobs)


def test_whole_nodes_are_shared_with_nobody() -> None:
    """An exclusive job waits for an idle node, holds all of it, and counts its cores."""
    model = run(machine(), {"run": 40}, {"run": 60}, {"exclusive": 1, "at": 1, "run": 10})
    assert [0, 0, 1] == model.jobs.start.tolist()
    assert 4 == model.jobs.processors[2]
    tight = machine(NodeType(name="n1", cores=4))
    assert [0, 40] == starts(tight, {"run": 40}, {"exclusive": 1, "at": 1, "run": 10})


def test_features_choose_nodes() -> None:
    """A constraint is kept; a job that no node satisfies is rejected."""
    site = machine(NodeType(name="a1", cores=1, features=("old",)), NodeType(name="b1", cores=1))
    model = run(site, {"features": "old"}, {"features": "old"}, {"features": "new"})
    assert [0, 100, UNKNOWN] == model.jobs.start.tolist()
    assert {2: "BadConstraints"} == model.cluster.engine.refused
    assert State.REJECTED == model.jobs.state[2]


def test_backfilling_does_not_delay_the_first() -> None:
    """A short job runs before the wide one, a long one that would delay it does not."""
    site = machine()
    jobs = [
        {"cores": 4, "run": 100},
        {"cores": 8, "at": 1, "run": 10},
        {"cores": 4, "at": 2, "run": 90, "limit": 90},
        {"cores": 4, "at": 3, "run": 50, "limit": 200},
    ]
    assert [0, 100, 2, 110] == starts(site, *jobs)


def test_without_backfilling_the_queue_is_kept() -> None:
    """sched/builtin starts nothing of a partition behind a job that does not fit."""
    site = machine(scheduling={"backfill": False})
    jobs = [{"cores": 4}, {"cores": 8, "at": 1, "run": 10}, {"cores": 4, "at": 2, "run": 5}]
    assert [0, 100, 110] == starts(site, *jobs)


def test_partitions_bound_nodes_and_times() -> None:
    """Jobs stay on the nodes of their partition; beyond its longest time they are rejected."""
    site = machine(
        partitions=(
            Partition(name="all", default=True),
            Partition(name="one", nodes=("n1",), max_time=HOUR),
        )
    )
    model = run(
        site,
        {"cores": 4, "partitions": "one"},
        {"cores": 4, "partitions": "one"},
        {"partitions": "one", "limit": 2 * HOUR},
        {"partitions": "none"},
    )
    assert [0, 100, UNKNOWN, UNKNOWN] == model.jobs.start.tolist()
    expected = {2: "PartitionTimeLimit", 3: "InvalidPartition"}
    assert expected == model.cluster.engine.refused


def test_a_job_for_several_partitions_takes_the_first_with_room() -> None:
    """Of a list of partitions, the one where the job can start is taken."""
    site = machine(
        partitions=(Partition(name="a", nodes=("n1",)), Partition(name="b", nodes=("n2",)))
    )
    jobs = [{"cores": 4, "partitions": "a"}, {"cores": 4, "partitions": "a,b", "at": 1}]
    assert [0, 1] == starts(site, *jobs)


def test_a_higher_tier_goes_first() -> None:
    """Jobs of a partition with a higher tier go before others of higher priority."""
    site = machine(
        NodeType(name="n1", cores=1),
        partitions=(Partition(name="low"), Partition(name="high", priority_tier=2)),
    )
    jobs = [
        {"partitions": "low"},
        {"partitions": "low", "at": 1},
        {"partitions": "high", "at": 2},
    ]
    assert [0, 200, 100] == starts(site, *jobs)


def accounts(*users: str) -> tuple[Account, ...]:
    """Return an account ``lab`` with users of equal shares."""
    lab = Account(account="lab")
    return (lab, *(Account(account="lab", user=user, shares=1) for user in users))


def test_fair_share_lets_go_first_who_used_less() -> None:
    """Of two waiting users, the one without usage goes first, though submitted later."""
    site = machine(
        NodeType(name="n1", cores=1),
        accounts=accounts("u1", "u2"),
        priority=PrioritySettings(weight_fair_share=1000, calculation_period=10),
    )
    jobs = [
        {"user": 1, "account": "lab", "run": 100},
        {"user": 1, "account": "lab", "at": 1, "run": 10},
        {"user": 2, "account": "lab", "at": 50, "run": 10},
    ]
    assert [0, 110, 100] == starts(site, *jobs)


def test_age_and_nice_count() -> None:
    """Without other factors the oldest goes first, unless it is nice."""
    site = machine(
        NodeType(name="n1", cores=1),
        priority=PrioritySettings(weight_age=1000, max_age=1000, calculation_period=1),
    )
    jobs = [{"run": 50}, {"at": 1, "run": 50}, {"at": 2, "run": 50}]
    assert [0, 50, 100] == starts(site, *jobs)
    jobs[1]["nice"] = 500
    assert [0, 100, 50] == starts(site, *jobs)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_jobs=1), "QOSMaxJobsPerUserLimit"),
        (Limits(max_tres_per_user={"cpu": 1}), "QOSMaxCpuPerUserLimit"),
        (Limits(group_jobs=1), "QOSGrpJobsLimit"),
        (Limits(group_tres={"cpu": 1}), "QOSGrpCpuLimit"),
    ],
)
def test_limits_hold_jobs_back_with_slurms_reason(limits: Limits, reason: str) -> None:
    """A job at a limit waits although there is room, says why, and blocks nobody else's."""
    site = machine(
        qos=(Qos(name="normal", limits=limits), Qos(name="free")),
        scheduling={"enforce_limits": True},
    )
    made, at = table({}, {"at": 1}, {"at": 2, "qos": "free", "user": 2})
    policy = Slurm()
    model = Simulation(made, 8, policy, machine=site)
    model.submit(Nobody(), np.arange(3), at)
    model.run(until=50)
    assert [0, UNKNOWN, 2] == made.start.tolist()
    assert reason == policy.state.waiting[1].reason
    model.run()
    assert 100 == made.start[1]


def test_submissions_beyond_a_limit_are_rejected() -> None:
    """MaxSubmit rejects what is submitted while enough waits and runs."""
    site = machine(
        qos=(Qos(name="normal", limits=Limits(max_submit=2)),),
        scheduling={"enforce_limits": True},
    )
    model = run(site, {}, {"at": 1}, {"at": 2}, {"at": 150})
    assert [0, 1, UNKNOWN, 150] == model.jobs.start.tolist()
    assert {2: "QOSMaxSubmitJobPerUserLimit"} == model.cluster.engine.refused


def scavenging(mode: Preempt, **more: Any) -> Machine:
    """Return a node of one core whose partition ``low`` is preempted by ``high``."""
    return machine(
        NodeType(name="n1", cores=1),
        partitions=(
            Partition(name="high", priority_tier=2, preempt_mode=Preempt.OFF),
            Partition(name="low", priority_tier=1, preempt_mode=mode),
        ),
        scheduling={"preempt_type": "partition", "preempt_mode": mode, **more},
    )


def test_preempted_jobs_are_requeued() -> None:
    """The preemptor starts at once; the victim runs anew after the requeue delay."""
    model = run(
        scavenging(Preempt.REQUEUE),
        {"partitions": "low", "run": 100},
        {"partitions": "high", "at": 40, "run": 10},
    )
    assert [161, 40] == model.jobs.start.tolist()
    assert [261, 50] == model.jobs.end.tolist()
    attempt = model.cluster.attempts[0]
    assert (0, 40, "preempted", "requeue") == (
        attempt.start, attempt.end, attempt.cause, attempt.fate
    )  # fmt: skip


def test_preempted_jobs_may_be_cancelled() -> None:
    """With PreemptMode=CANCEL, or without requeueing, the victim is over; its user hears of it."""
    heard: list[tuple[int, int]] = []

    class Owner(Nobody):
        def on_finished(self, unit: int, now: int) -> None:
            heard.append((unit, now))

    site = scavenging(Preempt.CANCEL)
    made, _ = table({"partitions": "low"}, {"partitions": "high", "run": 10})
    model = Simulation(made, 1, Slurm(), machine=site)
    owner = Owner()
    model.submit(owner, np.array([0]), 0)
    model.submit(owner, np.array([1]), 40)
    model.run()
    assert State.FAILED == made.state[0]
    assert 40 == made.end[0]
    assert [(0, 40), (1, 50)] == heard
    assert "fail" == model.cluster.attempts[0].fate


def test_arrays_are_throttled() -> None:
    """Of an array with %1 one task runs at a time, though there is room."""
    tasks = [{"array": 7, "task": task, "throttle": 1, "run": 10} for task in range(3)]
    assert [0, 10, 20] == starts(machine(), *tasks)


def test_reservations_are_entered_by_their_jobs_only() -> None:
    """Others do not run into a reservation; its own job waits for it to begin."""
    site = machine(
        NodeType(name="n1", cores=1),
        reservations=(Reservation(name="course", start=50, end=100, users=("u2",)),),
    )
    jobs = [
        {"run": 60},
        {"at": 1, "run": 20},
        {"at": 2, "user": 2, "reservation": "course", "run": 30},
    ]
    assert [100, 1, 50] == starts(site, *jobs)


def test_a_reservation_blocks_itself_only() -> None:
    """As of a Slurm 22.05: one job that does not fit keeps those behind it in its reservation."""
    site = machine(
        NodeType(name="n1", cores=4),
        NodeType(name="n2", cores=4),
        reservations=(Reservation(name="course", start=0, end=3600, nodes=("n2",)),),
        scheduling={"backfill": False},
    )
    course = {"reservation": "course"}
    jobs = [
        {**course, "cores": 3, "run": 15},
        {**course, "at": 2, "cores": 4, "run": 3},
        {**course, "at": 4, "cores": 1, "run": 3},
        {"at": 4, "cores": 4, "run": 3},
    ]
    assert [0, 15, 18, 4] == starts(site, *jobs)


def test_preemptors_go_first() -> None:
    """As of a Slurm 22.05: jobs wait behind those whose QOS preempts theirs, whatever the priority.

    So one that was requeued does not start again before the job that it was stopped for.
    """
    site = machine(
        NodeType(name="n1", cores=4),
        qos=(Qos(name="normal", priority=9), Qos(name="high", preempts=("low",)), Qos(name="low")),
        priority=PrioritySettings(weight_qos=1000),
        scheduling={"preempt_type": "qos", "preempt_mode": Preempt.REQUEUE},
    )
    jobs = [
        {"cores": 4, "run": 12, "qos": "normal"},
        {"at": 4, "cores": 4, "run": 4, "qos": "low"},
        {"at": 5, "cores": 4, "run": 4, "qos": "high", "nice": 1000},
        {"at": 6, "cores": 4, "run": 4, "qos": "normal"},
    ]
    assert [0, 20, 16, 12] == starts(site, *jobs)


def test_reservations_of_others_reject_jobs() -> None:
    """One that does not exist, is not for the partition, or for the user or account, is refused."""
    site = machine(
        partitions=(Partition(name="all", default=True), Partition(name="few")),
        accounts=(
            Account(account="a"),
            Account(account="b", parent="a"),
            Account(account="b", user="u3"),
        ),
        reservations=(
            Reservation(name="course", start=0, end=500, users=("u2",), accounts=("a",)),
            Reservation(name="bound", start=600, end=900, partition="few"),
        ),
    )
    jobs = [
        {"reservation": "curse"},
        {"reservation": "course"},
        {"reservation": "course", "user": 2},
        {"reservation": "course", "user": 3},
        {"reservation": "bound"},
        {"reservation": "bound", "partitions": "few"},
    ]
    model = run(site, *jobs)
    expected = {0: "InvalidReservation", 1: "ReservationAccess", 4: "InvalidReservation"}
    assert expected == model.cluster.engine.refused
    assert [UNKNOWN, UNKNOWN, 0, 0, UNKNOWN, 600] == model.jobs.start.tolist()


def test_limits_on_submissions_hold_within_a_second() -> None:
    """Of jobs that arrive together, those beyond the limit are rejected; who leaves makes room."""
    site = machine(
        NodeType(name="n1", cores=1),
        qos=(Qos(name="normal", limits=Limits(max_submit=2)),),
        scheduling={"enforce_limits": True},
    )
    model = run(site, *[{"run": 10}] * 4, {"at": 11}, {"at": 11})
    assert {2: "QOSMaxSubmitJobPerUserLimit", 3: "QOSMaxSubmitJobPerUserLimit",
            5: "QOSMaxSubmitJobPerUserLimit"} == model.cluster.engine.refused  # fmt: skip
    assert [0, 10, UNKNOWN, UNKNOWN, 20, UNKNOWN] == model.jobs.start.tolist()


def test_jobs_without_a_time_get_that_of_their_partition() -> None:
    """Without a requested time, the default of the partition is the limit, and kills."""
    site = machine(partitions=(Partition(name="all", default_time=30, max_time=50),))
    made = run(site, {"run": 100, "limit": -1}, {"run": 20, "limit": -1}, overrun="kill").jobs
    assert [30, 20] == made.end.tolist()
    assert [30, 30] == made.requested_time.tolist()


def test_jobs_are_not_preempted_in_the_second_of_their_start() -> None:
    """What has just started goes on until another pass; then it is requeued."""
    site = machine(
        NodeType(name="n1", cores=1),
        partitions=(Partition(name="low", preempt_mode="requeue"),
                    Partition(name="high", priority_tier=2, preempt_mode="off")),
        scheduling={"preempt_type": "partition", "preempt_mode": "requeue", "requeue_delay": 5},
    )  # fmt: skip
    jobs = [{"partitions": "low", "run": 50}, {"partitions": "high", "at": 1, "run": 10}]
    assert [11, 1] == starts(site, *jobs)
    # Both come in one second; the one of the higher tier goes first, and nobody is stopped.
    assert [10, 0] == starts(site, jobs[0], jobs[1] | {"at": 0})


def test_runs_end_at_limits_of_minutes_left_to_run() -> None:
    """A job above such a limit stays in the queue when all others have ended, and the run ends."""
    limits = Limits(group_tres_run_minutes={"cpu": 3})
    site = machine(
        accounts=(Account(account="a", limits=limits), Account(account="a", user="u1")),
        scheduling={"enforce_limits": True, "whole_nodes": True},
        partitions=(Partition(name="all", nodes=("n1",)),),
    )
    model = run(site, {"limit": 30, "run": 10}, {"limit": 40, "run": 10})
    assert [0, 10] == model.jobs.start.tolist()


def test_minutes_left_to_run_become_fewer() -> None:
    """A job waits until what running jobs may still use leaves room for all that it may use."""
    limits = Limits(group_tres_run_minutes={"cpu": 3})
    site = machine(
        accounts=(Account(account="a", limits=limits), Account(account="a", user="u1")),
        scheduling={"enforce_limits": True},
    )
    assert [0, 20] == starts(site, {"limit": 100}, {"at": 5, "limit": 100})


def test_jobs_are_killed_at_the_next_check_of_limits() -> None:
    """With overrun=kill, a job beyond its limit ends at a multiple of the checking period."""
    site = machine(scheduling={"time_limit_period": 30})
    made = run(site, {"run": 100, "limit": 50}, {"at": 5, "run": 20}, overrun="kill").jobs
    assert [60, 25] == made.end.tolist()
    assert [State.KILLED, State.COMPLETED] == made.state.tolist()


def test_main_passes_obey_the_delay() -> None:
    """A pass comes batch_sched_delay seconds after the last one at the earliest."""
    site = machine(scheduling={"batch_sched_delay": 3, "sched_interval": 60, "backfill": False})
    assert [0, 3, 13] == starts(site, {}, {"at": 1}, {"at": 13})


@pytest.mark.parametrize(("phase", "start"), [(0, 90), (25, 55), (55, 85)])
def test_full_passes_have_a_rhythm_of_their_own(phase: int, start: int) -> None:
    """They come every sched_interval seconds, whatever passes submissions cause in between."""
    site = machine(
        scheduling={"sched_interval": 60, "full_pass_phase": phase, "backfill": False},
        reservations=(Reservation(name="all", start=0, end=50),),
    )
    assert start == starts(site, {"at": 30})[0]


def test_a_job_at_a_limit_of_cores_keeps_nobody_waiting() -> None:
    """Its limit goes before the nodes it lacks, so that the job behind it may start."""
    lean = Qos(name="lean", limits=Limits(max_tres_per_user={"cpu": 3}))
    site = machine(
        NodeType(name="n1", cores=4),
        qos=(Qos(name="free"), lean),
        scheduling={"enforce_limits": True, "backfill": False},
    )
    jobs = [
        {"cores": 3, "run": 100, "qos": "lean"},
        {"at": 1, "cores": 2, "qos": "lean"},
        {"at": 2, "qos": "free", "user": 2},
    ]
    made, at = table(*jobs)
    policy = Slurm()
    model = Simulation(made, 4, policy, machine=site)
    model.submit(Nobody(), np.arange(3), at)
    model.run(until=50)
    assert [0, UNKNOWN, 2] == made.start.tolist()
    assert "QOSMaxCpuPerUserLimit" == policy.state.waiting[1].reason


def test_a_job_without_its_nodes_does_not_block_its_partition() -> None:
    """Where other partitions keep the nodes with memory, smaller jobs of its partition start."""
    site = machine(
        NodeType(name="n1", cores=4, memory=1000),
        NodeType(name="n2", cores=4, memory=9000),
        partitions=(
            Partition(name="all", nodes=("n1", "n2"), default=True),
            Partition(name="big", nodes=("n2",), priority_tier=9),
        ),
        scheduling={"backfill": False, "memory_counts": True},
    )
    jobs = [
        {"cores": 3, "partitions": "big", "memory_per_node": 100},
        {"at": 1, "cores": 4, "partitions": "big", "memory_per_node": 100},
        {"at": 2, "memory_per_node": 5000, "partitions": "all"},
        {"at": 3, "memory_per_node": 100, "partitions": "all"},
    ]
    made, at = table(*jobs)
    policy = Slurm()
    model = Simulation(made, 8, policy, machine=site)
    model.submit(Nobody(), np.arange(4), at)
    model.run(until=50)
    assert [0, UNKNOWN, UNKNOWN, 3] == made.start.tolist()
    words = [policy.state.waiting[row].reason for row in (1, 2)]
    assert ["Resources", "ReqNodeNotAvail"] == words


def test_jobs_that_can_never_start_do_not_keep_the_run_alive() -> None:
    """A job whose reservation is over stays unfinished, and the run ends."""
    site = machine(reservations=(Reservation(name="past", start=0, end=10),))
    model = run(site, {"reservation": "past", "at": 20})
    assert State.UNFINISHED == model.jobs.state[0]


def test_waiting_and_running_jobs_can_be_taken_back() -> None:
    """Cancelled jobs leave the queue, or give back their nodes at once."""
    site = machine(NodeType(name="n1", cores=1))
    made, at = table({"run": 100}, {"at": 1}, {"at": 2, "run": 10})
    model = Simulation(made, 1, Slurm(), machine=site)
    model.submit(Nobody(), np.arange(3), at)
    model.call_at(20, model.cancel, 1)
    model.call_at(30, model.cancel, 0)
    model.run()
    assert [0, UNKNOWN, 30] == made.start.tolist()


def test_reasons_are_slurms_words() -> None:
    """The first waiting job waits for resources, the next for its priority."""
    made, at = table({"cores": 8}, {"cores": 8, "at": 1}, {"cores": 8, "at": 2})
    policy = Slurm()
    model = Simulation(made, 8, policy, machine=machine())
    model.submit(Nobody(), np.arange(3), at)
    model.run(until=50)
    found = [policy.state.waiting[row].reason for row in (1, 2)]
    assert ["Resources", "Priority"] == found


def test_a_machine_needs_a_policy_that_knows_it() -> None:
    """slurm without a machine is one line that says what to give."""
    with pytest.raises(QuantityError, match="needs a machine of nodes; give --machine FILE"):
        Simulation(JobTable(), 8, "slurm")


def test_the_check_of_limits_has_a_phase() -> None:
    """Checks are whole periods from the phase; a job at its limit just then ends at once."""
    site = machine(scheduling={"time_limit_period": 30, "limit_check_phase": 20})
    jobs = [{"run": 100, "limit": limit} for limit in (49, 50, 51)]
    assert [50, 50, 80] == run(site, *jobs, overrun="kill").jobs.end.tolist()


@pytest.mark.parametrize(("phase", "start"), [(0, 30), (7, 7), (7.5, 8), (29, 29)])
def test_backfilling_has_a_phase(phase: float, start: int) -> None:
    """No cycle comes before the phase, and later ones keep its rhythm."""
    site = machine(
        NodeType(name="n1", cores=4),
        scheduling={"bf_interval": 30, "sched_interval": 600, "backfill_phase": phase},
    )
    jobs = [
        {"cores": 3, "run": 100}, {"at": 1, "cores": 4}, {"at": 2, "run": 20, "limit": 20},
    ]  # fmt: skip
    assert start == starts(site, *jobs)[2]


@pytest.mark.parametrize(
    ("taken", "cycles"), [(3, [1, 31, 61, 91, 121, 151, 181]), (4, [1, 31, 200])]
)
def test_cycles_follow_a_plan_on_nodes_that_are_not_full(
    taken: int, cycles: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marking a node as planned is a change, and so is taking the mark away, a cycle later."""
    seen: list[int] = []
    plan = BackfillCycle.run

    def count(cycle: BackfillCycle) -> None:
        seen.append(cycle.now)
        plan(cycle)

    monkeypatch.setattr(BackfillCycle, "run", count)
    site = machine(
        NodeType(name="n1", cores=4),
        scheduling={"bf_interval": 30, "sched_interval": 600, "backfill_phase": 1},
    )
    assert [0, 200] == starts(site, {"cores": taken, "run": 200}, {"at": 1, "cores": 4}, plain=True)
    assert cycles == seen


@pytest.mark.parametrize(
    ("phase", "found"), [(0, [0, 100, 110]), (100, [0, 110, 100]), (101, [0, 100, 110])]
)
def test_the_calculation_of_priorities_has_a_phase(phase: int, found: list[int]) -> None:
    """Usage counts from the first calculation on, which comes at the phase or a period later."""
    site = machine(
        NodeType(name="n1", cores=1),
        accounts=accounts("u1", "u2"),
        priority=PrioritySettings(weight_fair_share=1000, calculation_period=200),
        scheduling={"calculation_phase": phase},
    )
    jobs = [
        {"user": 1, "account": "lab", "run": 100},
        {"user": 1, "account": "lab", "at": 1, "run": 10},
        {"user": 2, "account": "lab", "at": 50, "run": 10},
    ]
    assert found == starts(site, *jobs)


def test_placement_of_ones_own() -> None:
    """A function names nodes in the order in which they are used: here the last one first."""

    def last_first(stock: Any, demand: Any, usable: dict[int, int]) -> list[int]:
        return sorted(usable, reverse=True)

    made, at = table({"cores": 2}, {"cores": 2}, {"cores": 3})
    policy = Slurm(last_first)
    model = Simulation(made, 8, policy, machine=machine())
    model.submit(Nobody(), np.arange(3), at)
    model.run()
    held = {one.row: [share.node for share in one.holding] for one in policy.ledger}
    assert {0: [1], 1: [1], 2: [0]} == held
