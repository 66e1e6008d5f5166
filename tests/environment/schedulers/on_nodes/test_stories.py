"""Policies of a pool on small machines of nodes: stories, with the exact starts and reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import Simulation
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.model import (
    Limits,
    Machine,
    NodeType,
    Partition,
    Qos,
    Reservation,
    SchedulingSettings,
)
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.waiting_reasons import reasons_of

#: Two nodes of four cores.
PAIR = Machine(nodes=(NodeType(name="n[1-2]", cores=4),))

#: Two nodes without GPUs, and one with two; a partition each.
WITH_GPUS = Machine(
    nodes=(NodeType(name="n[1-2]", cores=4), NodeType(name="g1", cores=4, gpus={"a": 2})),
    partitions=(
        Partition(name="cpu", nodes=("n[1-2]",), default=True),
        Partition(name="gpu", nodes=("g1",)),
    ),
)

#: Asks for one node.
ON_ONE = {"nodes": 1, "max_nodes": 1}


class Nobody:
    """Submits, and waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def simulation(site: Machine, policy: Any, *jobs: dict[str, Any]) -> Simulation:
    """Return a simulation of jobs.

    Keys are those of requests, and ``at``, ``run``, ``limit``, ``cores`` and ``user``.
    """
    made = JobTable()
    made.append(
        len(jobs),
        user=[job.get("user", 1) for job in jobs],
        processors=[job.get("cores", 1) for job in jobs],
        run_time=[job.get("run", 100) for job in jobs],
        requested_time=[job.get("limit", job.get("run", 100)) for job in jobs],
    )
    made.requests = Requests(len(jobs))
    for row, job in enumerate(jobs):
        for name, value in job.items():
            if name.upper() in Ask.__members__:
                made.requests.set(row, Ask[name.upper()], value)
    model = Simulation(made, site.cores, policy, machine=site)
    model.submit(Nobody(), np.arange(len(jobs)), [job.get("at", 0) for job in jobs])
    return model


def starts(site: Machine, policy: Any, *jobs: dict[str, Any]) -> list[int]:
    """Return the starts of jobs."""
    model = simulation(site, policy, *jobs)
    model.run()
    found: list[int] = model.jobs.start.tolist()
    return found


def reasons(site: Machine, policy: Any, *jobs: dict[str, Any], at: int) -> list[str]:
    """Return why jobs wait at a second."""
    model = simulation(site, policy, *jobs)
    model.run(until=at)
    before = model.jobs.matrix.copy()
    found = [one.words(Clock()) for one in reasons_of(model.cluster)]
    assert (before == model.jobs.matrix).all()
    return found


#: Two cores of the first node until 100, and of the second until 1000; then one needs a whole node.
HALVES = ({"cores": 2, **ON_ONE}, {"cores": 3, **ON_ONE, "run": 1000})
WHOLE = {"cores": 4, **ON_ONE, "at": 10, "run": 50}


def test_a_job_overtakes_where_the_head_will_not_run() -> None:
    """A long job that fits on both nodes gets the one that the head does not wait for."""
    overtaking = {"at": 20, "run": 500}
    # The head waits for the first node, free at 100. The second has one core left.
    assert [0, 0, 100, 20] == starts(PAIR, "easy", *HALVES, WHOLE, overtaking)
    wide = {"cores": 2, **ON_ONE, "at": 20, "run": 500}
    # Two cores on one node are free on the first only: they would delay the head.
    assert [0, 0, 100, 150] == starts(PAIR, "easy", *HALVES, WHOLE, wide)
    # A short one ends before.
    short = {**wide, "run": 80}
    assert [0, 0, 100, 20] == starts(PAIR, "easy", *HALVES, WHOLE, short)


def test_best_placement_is_changed_for_the_head() -> None:
    """A long job leaves the node where it fits best if the head waits for that one."""
    halves = ({"cores": 3, **ON_ONE}, {"cores": 2, **ON_ONE, "run": 1000})
    # The first node has one core free, which the rule of placement would take; but the head waits.
    model = simulation(PAIR, "easy", *halves, WHOLE, {"at": 20, "run": 500})
    model.run()
    assert [0, 0, 100, 20] == model.jobs.start.tolist()
    scheduler: Any = model.cluster.engine.scheduler
    assert [[0], [1], [1], [0]] == [
        [share.node for share in one.holding] for one in scheduler.ledger
    ]


def test_a_job_for_other_nodes_is_in_another_queue() -> None:
    """Under FCFS a job that waits for GPUs holds up only those that could use its nodes."""
    gpu = {"gpus_per_node": 2, "partitions": "gpu"}
    jobs = (gpu, {**gpu, "at": 1}, {"cores": 8, "at": 2}, {"at": 3}, {"at": 4, "partitions": "gpu"})
    assert [0, 100, 2, 102, 100] == starts(WITH_GPUS, "fcfs", *jobs)
    # Each queue has a head with a reservation, which the last job does not delay.
    assert [0, 100, 2, 102, 4] == starts(WITH_GPUS, "easy", *jobs)
    start = "Resources; start expected Mon 00:01"
    assert [start, start] == reasons(WITH_GPUS, "easy", *jobs, at=10)


def test_lists_of_partitions() -> None:
    """A job with several partitions gets the first with room, or the one that is free first."""
    busy = ({"cores": 8, "run": 300}, {"cores": 4, "partitions": "gpu", "run": 200})
    either = {"cores": 4, "partitions": "cpu,gpu", "at": 1}
    assert [0, 0, 200] == starts(WITH_GPUS, "easy", *busy, either)
    assert [0, 0, 200] == starts(WITH_GPUS, "conservative", *busy, either)
    model = simulation(WITH_GPUS, "easy", either, {**either, "at": 2}, {**either, "at": 3})
    model.run()
    scheduler: Any = model.cluster.engine.scheduler
    assert ["cpu", "cpu", "gpu"] == [one.partition for one in scheduler.ledger]


def test_conservative_plans_node_by_node() -> None:
    """A job is planned where nodes have room until it ends, and delays nothing planned before."""
    later = {"cores": 4, **ON_ONE, "at": 20, "run": 2000}
    small = {"at": 30, "run": 900}
    # The whole-node jobs are planned for 100 on the first node, one after the other; the small one
    # has the last core of the second node until the plan needs it.
    assert [0, 0, 100, 150, 30] == starts(PAIR, "conservative", *HALVES, WHOLE, later, small)
    # Until 1000 plus something there is a plan only on the first node.
    longer = {**small, "run": 3000}
    assert [0, 0, 100, 150, 30] == starts(PAIR, "conservative", *HALVES, WHOLE, later, longer)


def test_a_late_job_moves_the_plan_to_other_nodes() -> None:
    """A reservation goes to another node if a job outruns its estimate where it was to be."""
    nodes = Machine(nodes=(NodeType(name="n[1-3]", cores=1),))
    jobs = (
        {"run": 200, "limit": 100},  # outruns its limit
        {"run": 110}, {"run": 400},
        {"cores": 2, "at": 1, "run": 10},  # planned for 110 on the first two nodes
        {"at": 2, "run": 5, "limit": 500},
    )  # fmt: skip
    found = starts(nodes, "conservative", *jobs)
    assert [0, 0, 0] == found[:3]
    assert found[4] == 110  # the late job has the other node, and the pair has to wait
    assert found[3] == 200


def test_reservations_are_kept_free() -> None:
    """A job that would run into maintenance waits for its end; a short one runs before it."""
    site = PAIR.model_copy(
        update={"reservations": (Reservation(name="m", start=100, end=200, maintenance=True),)}
    )
    long, short = {"run": 150}, {"run": 100, "at": 0}
    for policy in ("fcfs", "easy", "conservative", "wfp3:backfill=conservative"):
        assert [200, 0 if policy != "fcfs" else 200] == starts(site, policy, long, short)
    assert ["ReqNodeNotAvail, Reserved for maintenance; start expected Mon 00:03"] == reasons(
        site, "easy", long, at=50
    )


def test_jobs_of_a_reservation() -> None:
    """A job that names a reservation runs on its nodes, within it; no other one does."""
    kept = Reservation(name="r", start=50, end=400, nodes=("n1",))
    site = PAIR.model_copy(update={"reservations": (kept,)})
    inside, too_long = {"reservation": "r", "at": 1}, {"reservation": "r", "run": 500, "at": 2}
    other = {"cores": 4, **ON_ONE, "at": 3}
    found = starts(site, "fcfs", inside, too_long, other, {**other, "run": 40, "at": 4})
    assert [50, UNKNOWN, 3, 4] == found
    assert ["Reservation", "Reservation"] == reasons(site, "fcfs", inside, too_long, at=10)


def test_reasons_of_nodes() -> None:
    """Reasons are those of the pool where they hold, and else Slurm's words."""
    wide = {"cores": 2, **ON_ONE, "at": 20, "run": 500}
    later = {"at": 25, "begin": 500}
    found = reasons(PAIR, "easy", *HALVES, {**WHOLE, "cores": 3}, wide, later, at=30)
    assert [
        "Resources; start expected Mon 00:01",
        "fits, but would delay job 3 (reserved Mon 00:01): expected to run 8.3 min",
        "BeginTime",
    ] == found
    spread = ({"cores": 3, **ON_ONE}, {"cores": 3, **ON_ONE}, {"cores": 2, **ON_ONE, "at": 1})
    for policy in ("fcfs", "multi-queue", LastFirst()):
        assert "Resources" in reasons(PAIR, policy, *spread, at=5)[0]


def test_limits_of_the_site() -> None:
    """Limits of the site hold; a job at one is passed over, with Slurm's word for it."""
    site = Machine(
        nodes=PAIR.nodes,
        qos=(Qos(name="normal", limits=Limits(max_jobs=1)),),
        scheduling=SchedulingSettings(enforce_limits=True),
    )
    jobs = ({}, {"at": 1}, {"user": 2, "at": 2})
    for policy in ("fcfs", "easy", "conservative", "selective", "wfp3:backfill=conservative"):
        assert [0, 100, 2] == starts(site, policy, *jobs)
        assert ["QOSMaxJobsPerUserLimit"] == reasons(site, policy, *jobs, at=10)


def test_throttled_arrays() -> None:
    """No more tasks of an array run at once than it says."""
    task = {"array": 1, "throttle": 2}
    assert [0, 0, 100] == starts(PAIR, "easy", task, task, task)
    assert ["JobArrayTaskLimit"] == reasons(PAIR, "easy", task, task, task, at=10)


def test_jobs_that_can_never_run() -> None:
    """They are rejected, with Slurm's word."""
    jobs = (
        {"cores": 5, **ON_ONE}, {"features": "none"}, {"partitions": "no"}, {"gpus_per_node": 1},
        {"cores": 2, **ON_ONE},
    )  # fmt: skip
    model = simulation(PAIR, "easy", *jobs)
    model.run()
    assert [State.REJECTED] * 4 + [State.COMPLETED] == model.jobs.state.tolist()
    words = ["BadConstraints", "BadConstraints", "InvalidPartition", "BadConstraints"]
    assert words == [model.cluster.engine.refused[row] for row in range(4)]


# ---- one's own scheduler ----------------------------------------------------------------------


class LastFirst(Scheduler):
    """Whoever came last starts first, where nodes have room."""

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Go through the queue from behind."""
        assert look.nodes is not None
        for job in reversed(look.waiting):
            if look.nodes.fits(job):
                yield job


class Blind(Scheduler):
    """Starts everything that there are processors for."""

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Return the queue as far as it goes."""
        return [job for job in look.waiting if job.processors <= look.free]


class SmallFirst(OrderedScheduler):
    """The job with the fewest processors first."""

    backfill = "queue"

    def key(self, job: WaitingJob, now: int) -> float:
        """Return the processors."""
        return job.processors


def test_own_scheduler_sees_the_nodes() -> None:
    """What it has yielded so far is in use on the nodes that it sees."""
    jobs = [{"cores": 3, **ON_ONE} for _ in range(4)]
    assert [100, 100, 0, 0] == starts(PAIR, LastFirst(), *jobs)


def test_own_scheduler_that_starts_too_much() -> None:
    """One line names the scheduler, the job, the second and Slurm's reason, and says the cure."""
    jobs = [{"cores": 3, **ON_ONE, "at": 7}, {"cores": 3, **ON_ONE, "at": 7}, {"cores": 2, "at": 7}]
    assert [7, 7, 7] == starts(PAIR, Blind(), *jobs)
    with pytest.raises(SchedulerError) as error:
        starts(PAIR, Blind(), *jobs[:2], {**jobs[2], **ON_ONE})
    assert (
        "Blind: job in row 2 cannot start at 7 s: Resources; start only jobs for which "
        "look.nodes.fits(job) is true"
    ) == str(error.value)


def test_own_order_gets_backfilling_on_nodes() -> None:
    """A subclass of OrderedScheduler keeps its order, and overtakes as EASY does."""
    large = {"cores": 4, **ON_ONE, "at": 10, "run": 50}
    jobs = (*HALVES, large, {"cores": 3, **ON_ONE, "at": 11, "run": 50}, {"at": 12, "run": 500})
    assert [0, 0, 150, 100, 12] == starts(PAIR, SmallFirst(), *jobs)


def test_adaptive_hands_the_nodes_over() -> None:
    """The policy that takes over knows what runs where."""
    jobs = [{"cores": 3, **ON_ONE, "run": 100 + 7 * place, "at": place} for place in range(12)]
    model = simulation(PAIR, "adaptive:every=60,overload-positive=sjf", *jobs)
    model.run()
    assert (model.jobs.state == State.COMPLETED).all()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert timeline.reviews.switches > 0


def test_policies_that_run_nodes_themselves_are_not_switched_to() -> None:
    """``slurm`` runs its machine from the beginning."""
    with pytest.raises(QuantityError, match="adaptive with 'slurm': not a policy to switch to"):
        simulation(PAIR, "adaptive:overload-positive=slurm")
