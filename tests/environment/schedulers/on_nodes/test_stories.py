"""Policies of a pool on machines of nodes: stories, nodes of one core, and random machines."""

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import SchedulerError
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.model import (
    Limits,
    Machine,
    NodeType,
    Partition,
    Qos,
    Reservation,
    SchedulingSettings,
)
from hpcrowd.environment.machine.selection import Stock
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes
from hpcrowd.environment.schedulers.on_nodes.room import Arrays, OpenStock, RoomOverTime
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import reasons_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import Nobody, random_jobs, random_machine, table
from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import clusters, outcome, policies, run, workloads
from tests.support.simulations import simulation_of

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


def simulation(site, policy, *jobs):
    """Return a simulation of jobs."""
    made, at = table(*jobs)
    made.names = {}
    model = simulation_of(made, site.cores, policy, machine=site)
    model.submit(Nobody(), np.arange(len(jobs)), at)
    return model


def starts(site, policy, *jobs):
    """Return the starts of jobs."""
    model = simulation(site, policy, *jobs)
    model.run()
    return model.jobs.start.tolist()


def reasons(site, policy, *jobs, at):
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
WIDE = {"cores": 2, **ON_ONE, "at": 20, "run": 500}
LATER = {"cores": 4, **ON_ONE, "at": 20, "run": 2000}
GPUS = {"gpus_per_node": 2, "partitions": "gpu"}
QUEUES = (GPUS, {**GPUS, "at": 1}, {"cores": 8, "at": 2}, {"at": 3}, {"at": 4, "partitions": "gpu"})
BUSY = ({"cores": 8, "run": 300}, {"cores": 4, "partitions": "gpu", "run": 200})
EITHER = {"cores": 4, "partitions": "cpu,gpu", "at": 1}
SINGLE = Machine(nodes=(NodeType(name="n[1-3]", cores=1),))
WINDOW = PAIR.changed(reservations=(Reservation(name="m", start=100, end=200, maintenance=True),))
KEPT = PAIR.changed(reservations=(Reservation(name="r", start=50, end=400, nodes=("n1",)),))
INSIDE = ({"reservation": "r", "at": 1}, {"reservation": "r", "run": 500, "at": 2})
OTHER = {"cores": 4, **ON_ONE}
LIMITED = PAIR.changed(
    qos=(Qos(name="normal", limits=Limits(max_jobs=1)),),
    scheduling=SchedulingSettings(enforce_limits=True),
)
PASSED = ({}, {"at": 1}, {"user": 2, "at": 2})
PLANS = ("conservative", "wfp3:backfill=conservative")

STORIES: dict[str, tuple[Machine, str, tuple[dict[str, Any], ...], list[int]]] = {
    # The head waits for the first node, free at 100. The second has one core left.
    "a long job overtakes on the node that the head does not wait for": (
        PAIR, "easy", (*HALVES, WHOLE, {"at": 20, "run": 500}), [0, 0, 100, 20]),
    "two cores of one node are free on the first only: they would delay the head": (
        PAIR, "easy", (*HALVES, WHOLE, WIDE), [0, 0, 100, 150]),
    "under fcfs who waits for GPUs holds up those that could use its nodes": (
        WITH_GPUS, "fcfs", QUEUES, [0, 100, 2, 102, 100]),
    "each queue has a head with a reservation, which the last does not delay": (
        WITH_GPUS, "easy", QUEUES, [0, 100, 2, 102, 4]),
    "of several partitions the one that is free first": (
        WITH_GPUS, "easy", (*BUSY, EITHER), [0, 0, 200]),
    # The whole-node jobs are planned for 100 on the first node, one after the other; the small one
    # has the last core of the second node until the plan needs it.
    "a plan has room node by node": (
        PAIR, "conservative", (*HALVES, WHOLE, LATER, {"at": 30, "run": 900}),
        [0, 0, 100, 150, 30]),
    # The pair is planned for 110 on the first two nodes; the late job has one of them.
    "a late job moves the plan to other nodes": (
        SINGLE, "conservative",
        ({"run": 200, "limit": 100}, {"run": 110}, {"run": 400},
         {"cores": 2, "at": 1, "run": 10}, {"at": 2, "run": 5, "limit": 500}),
        [0, 0, 0, 200, 110]),
    "no job runs into maintenance; under fcfs nobody overtakes": (
        WINDOW, "fcfs", ({"run": 150}, {}), [200, 200]),
    **{f"{policy}: a short job runs before it": (WINDOW, policy, ({"run": 150}, {}), [200, 0])
       for policy in ("easy", *PLANS)},
    "jobs of a reservation run on its nodes, within it; no other one does": (
        KEPT, "fcfs", (*INSIDE, {**OTHER, "at": 3}, {**OTHER, "at": 4, "run": 40}),
        [50, UNKNOWN, 3, 4]),
    **{f"{policy}: a job at a limit is passed over": (LIMITED, policy, PASSED, [0, 100, 2])
       for policy in ("fcfs", "easy", "selective", *PLANS)},
    "no more tasks of an array run at once than it says": (
        PAIR, "easy", ({"array": 1, "throttle": 2},) * 3, [0, 0, 100]),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_stories(name):
    """Jobs start when the rule of the policy and the nodes say."""
    site, policy, jobs, expected = STORIES[name]
    assert expected == starts(site, policy, *jobs)


def test_throttled_tasks_have_no_expected_start():
    """As long as as many tasks of their array run as may; tasks that just ended count no more."""
    jobs, _ = table(*({"array": 1, "throttle": 2},) * 3)
    model, heard = simulation_of(jobs, 8, "easy", machine=PAIR), []

    class Listener(Nobody):
        def on_finished(self, unit, now):
            heard.append((now, model.cluster.look().machine.forecast(2).start))

    for row, user in enumerate((Listener(), Nobody(), Nobody())):
        model.submit(user, np.array([row]), 0)
    model.run(until=50)
    assert model.cluster.look().machine.forecast(2) == (FOREVER, "JobArrayTaskLimit", False)
    model.run()
    assert [(100, 100)] == heard


def test_best_placement_is_changed_for_the_head():
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


START = "Resources; start expected Mon 00:01"


@pytest.mark.parametrize(
    ("site", "policy", "jobs", "at", "expected"),
    [
        (WITH_GPUS, "easy", QUEUES, 10, [START, START]),
        (WINDOW, "easy", ({"run": 150},), 50,
         ["ReqNodeNotAvail, Reserved for maintenance; start expected Mon 00:03"]),
        (KEPT, "fcfs", INSIDE, 10, ["Reservation", "Reservation"]),
        (PAIR, "easy", (*HALVES, {**WHOLE, "cores": 3}, WIDE, {"at": 25, "begin": 500}), 30,
         [START, "fits, but would delay job 3 (reserved Mon 00:01): expected to run 8.3 min",
          "BeginTime"]),
        *((LIMITED, policy, PASSED, 10, ["QOSMaxJobsPerUserLimit"])
          for policy in ("fcfs", "easy", "selective", *PLANS)),
        (PAIR, "easy", ({"array": 1, "throttle": 2},) * 3, 10, ["JobArrayTaskLimit"]),
    ],
)  # fmt: skip
def test_reasons(site, policy, jobs, at, expected):
    """Reasons are those of the pool where they hold, and else Slurm's words."""
    assert expected == reasons(site, policy, *jobs, at=at)


@pytest.mark.parametrize("policy", ["fcfs", "multi-queue", "last first"])
def test_reasons_of_fragments(policy):
    """Cores that are free on two nodes are no room for a job that needs them on one."""
    spread = ({"cores": 3, **ON_ONE}, {"cores": 3, **ON_ONE}, {"cores": 2, **ON_ONE, "at": 1})
    scheduler = LastFirst() if policy == "last first" else policy
    assert "Resources" in reasons(PAIR, scheduler, *spread, at=5)[0]


def test_jobs_that_can_never_run():
    """They are rejected, with Slurm's word."""
    five, gpus = {"cores": 5, **ON_ONE}, {"gpus_per_node": 1}
    model = simulation(PAIR, "easy", five, {"features": "none"}, {"partitions": "no"}, gpus)
    model.run()
    words = ["BadConstraints", "BadConstraints", "InvalidPartition", "BadConstraints"]
    assert dict(enumerate(words)) == model.cluster.engine.refused
    assert (model.jobs.state == State.REJECTED).all()


# ---- your own scheduler ----------------------------------------------------------------------


class LastFirst(Scheduler):
    """Whoever came last starts first, where nodes have room."""

    def select(self, look):
        """Go through the queue from behind."""
        assert look.nodes is not None
        for job in reversed(look.waiting):
            if look.nodes.fits(job):
                yield job


def test_own_scheduler_sees_the_nodes():
    """What it has yielded so far is in use on the nodes that it sees."""
    jobs = [{"cores": 3, **ON_ONE} for _ in range(4)]
    assert [100, 100, 0, 0] == starts(PAIR, LastFirst(), *jobs)


def test_own_scheduler_that_starts_too_much():
    """One line names the scheduler, the job, the second and Slurm's reason, and says the cure."""

    class Blind(Scheduler):
        def select(self, look):
            return [job for job in look.waiting if job.processors <= look.free]

    jobs = [{"cores": 3, **ON_ONE, "at": 7}, {"cores": 3, **ON_ONE, "at": 7}, {"cores": 2, "at": 7}]
    assert [7, 7, 7] == starts(PAIR, Blind(), *jobs)
    with pytest.raises(SchedulerError) as error:
        starts(PAIR, Blind(), *jobs[:2], {**jobs[2], **ON_ONE})
    assert (
        "Blind: job in row 2 cannot start at 7 s: Resources; start only jobs for which "
        "look.nodes.fits(job) is true"
    ) == str(error.value)


def test_own_order_gets_backfilling_on_nodes():
    """A subclass of OrderedScheduler keeps its order, and overtakes as EASY does."""

    class SmallFirst(OrderedScheduler):
        backfill = "queue"

        def key(self, job, now):
            return job.processors

    large = {"cores": 4, **ON_ONE, "at": 10, "run": 50}
    jobs = (*HALVES, large, {"cores": 3, **ON_ONE, "at": 11, "run": 50}, {"at": 12, "run": 500})
    assert [0, 0, 150, 100, 12] == starts(PAIR, SmallFirst(), *jobs)


def test_adaptive_hands_the_nodes_over():
    """The policy that takes over knows what runs where."""
    jobs = [{"cores": 3, **ON_ONE, "run": 100 + 7 * place, "at": place} for place in range(12)]
    model = simulation(PAIR, "adaptive:every=60s,overload-positive=sjf", *jobs)
    model.run()
    assert (model.jobs.state == State.COMPLETED).all()
    timeline = model.cluster.engine.timeline
    assert timeline is not None
    assert timeline.reviews.switches > 0


#: Time limits are checked every second, as in a pool.
EVERY_SECOND = SchedulingSettings(time_limit_period=1)

#: Policies of each kind: by order, with limits, with a plan kept or made anew, and by state.
KINDS = (
    "fcfs", "easy", "easy:backfill=sjbf", "easy:backfill=best-fit,order=-area", "sjf",
    "multi-queue:user-jobs=2", "fair-share", "creasy", "wfp3", "unicef:backfill=conservative",
    "conservative", "selective", "adaptive:every=5s", "easy:reservations=2,depth=9",
)  # fmt: skip

seeds = st.integers(0, 2**32 - 1)


def single(processors):
    """Nodes of one core: a pool, described as a machine."""
    return Machine(nodes=(NodeType(name=f"n[1-{processors}]", cores=1),), scheduling=EVERY_SECOND)


@given(workloads, st.one_of(policies, st.sampled_from(KINDS)), clusters)
@settings(max_examples=25)
def test_nodes_of_one_core_are_a_pool(rows, policy, cluster):
    """Each policy gives the schedule of the pool, promises too, on random workloads."""
    pool = outcome(run(rows, policy, cluster, plain=True))
    assert pool == outcome(run(rows, policy, cluster | {"machine": single(cluster["processors"])}))


def drawn(seed):
    """Return a random machine, with all that bounds where a job may run, and jobs."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    return site, random_jobs(rng, site, 25)


def simulate(site, jobs, policy, **more):
    """Run jobs on a machine to the end; it is audited, as all runs are."""
    return ran(jobs, site.cores, policy, machine=site, **more)


@pytest.mark.parametrize("policy", [*KINDS, LastFirst])
@settings(max_examples=5)
@given(seed=seeds, estimates=st.sampled_from(["exact", "requested"]))
def test_nothing_is_used_twice(policy, seed, estimates):
    """On random machines every job gets what it asks where it may, and all that can end."""
    site, jobs = drawn(seed)
    scheduler = policy if isinstance(policy, str) else policy()
    model = simulate(site, jobs, scheduler, estimates=estimates, overrun="kill")
    if policy in ("fcfs", "easy", "conservative", "wfp3"):
        left = [one.words(Clock()) for one in reasons_of(model.cluster)]
        assert not [one for one in left if "Resources" in one or "fits" in one]


@pytest.mark.parametrize("policy", ["selective", "adaptive:every=5s"])
def test_a_reservation_that_turns_out_to_be_for_now_is_a_start(policy):
    """No job holds nodes without running, for which others would wait for ever."""
    site, jobs = drawn(236)
    model = simulate(site, jobs, policy, estimates="requested", overrun="kill")
    assert not [one for one in reasons_of(model.cluster) if "planned" in one.words(Clock())]


@given(seeds)
@settings(max_examples=10)
def test_no_job_starts_later_than_promised(seed):
    """Under conservative backfilling a job starts when promised, or earlier, if none runs late."""
    site, jobs = drawn(seed)
    jobs.requested_time[:] = np.maximum(jobs.requested_time, 1)
    jobs.run_time[:] = np.minimum(jobs.run_time, jobs.requested_time)
    assert jobs.requests is not None
    for row in range(len(jobs)):
        jobs.requests.set(row, Ask.THROTTLE, UNKNOWN)
    simulate(site.changed(scheduling=EVERY_SECOND), jobs, "conservative")
    ran = jobs.start != UNKNOWN
    assert (jobs.promised[ran] != UNKNOWN).all()
    assert (jobs.start[ran] <= jobs.promised[ran]).all()


@given(seeds)
@settings(max_examples=25)
def test_arrays_know_what_a_stock_knows(seed):
    """What a job could use of each node is the same for all steps at once as one by one."""
    site, jobs = drawn(seed)
    nodes = Nodes(site, jobs)
    for row in range(len(jobs)):
        if not nodes.admission.refusal(row):
            nodes.join(row)
    room = RoomOverTime(nodes.layout, nodes.stock, Arrays(), 0, ())
    stock: Stock = OpenStock(nodes.layout)
    for job in nodes.waiting.values():
        for demand in job.demands.values():
            asked = room.usable(demand, FOREVER)
            plain = [stock.usable(node, demand) for node in bits(demand.nodes)]
            assert plain == asked[-1].tolist()
        place = nodes.room(job, room.stock(len(room.times) - 1, len(room.times)), 0, 1)
        if place is not None:
            begin = room.times[-1] + 1
            room.change([(begin, FOREVER, place.holding, -1)])
            stock.take(place.holding)
