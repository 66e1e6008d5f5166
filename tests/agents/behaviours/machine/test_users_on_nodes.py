"""Users on a machine of nodes: what they see, and what they ask for instead; exact stories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import (
    Composed,
    DecisionLog,
    Decisions,
    Degrade,
    Delay,
    During,
    ExpectedWait,
    LookAgain,
    Patience,
    Reaction,
    Recorded,
    ReplayUser,
    SessionDefinition,
    Switch,
    Trigger,
    Work,
    add_users,
)
from hpcrowd.agents.behaviours.machine.requests import (
    FewerGpus,
    LessMemory,
    LessTime,
    SwitchPartition,
)
from hpcrowd.agents.behaviours.machine.standing import AtLimit, FairShareBelow
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.environment import ClusterSpec, Simulation, State
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.machine.model import (
    Account,
    Limits,
    Machine,
    NodeType,
    Partition,
    PrioritySettings,
    Qos,
)
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.stops import FOREVER
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.slurm.test_policy import machine, table

ALWAYS = During([(0, 10**6)])
EVERY_JOB = SessionDefinition("arrival", None)

#: A partition with a node for everything, and one with a node for short jobs.
TWO = {
    "partitions": (
        Partition(name="normal", nodes=("n1",), default=True),
        Partition(name="debug", nodes=("d1",), max_time=1000),
    )
}


def two(**more: Any) -> Machine:
    """Return a machine of two partitions with one node of four cores each."""
    return machine(NodeType(name="n1", cores=4), NodeType(name="d1", cores=4), **{**TWO, **more})


def model_of(
    site: Machine, *jobs: dict[str, Any], asks: bool = True, scheduler: str = "slurm", **more: Any
) -> Simulation:
    """Return a simulation of jobs on a machine, without users; jobs may ask for processors only."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    if not asks:
        made.requests = None
    return Simulation(made, site.cores, scheduler, machine=site, **more)


def run(
    model: Simulation,
    *reactions: Reaction,
    patience: Patience | None = None,
    log: DecisionLog | None = None,
) -> list[ReplayUser]:
    """Run with users who submit each job at its recorded second, unless they react."""
    work = Work.of(model.jobs, EVERY_JOB)

    def composed(work: Work) -> Composed:
        return Composed(Recorded(work), reactions=reactions, patience=patience)

    users = add_users(model, work, composed, log=log)
    model.run()
    return users


def changes(users: list[ReplayUser]) -> list[tuple[Any, ...]]:
    """Return row, second, request, before and after of each note."""
    return [
        (note.row, note.decided, note.request, note.request_before, note.request_after)
        for note in notes_of(users)
    ]


FULL = {"cores": 4, "partitions": "normal"}

#: User 1 has the node of normal until 500.
BUSY = {**FULL, "run": 500, "user": 1}


# ---- what users see ---------------------------------------------------------------------------


def test_partitions_at_one_second() -> None:
    """Nodes, cores and GPUs that are free, what waits, and the limits of each partition."""
    site = machine(
        NodeType(name="n[1-2]", cores=4), NodeType(name="g1", cores=2, gpus={"a": 4}),
        partitions=(Partition(name="cpu", nodes=("n[1-2]",), max_time=900, max_nodes=1),
                    Partition(name="gpu", nodes=("g1",), up=False),
                    Partition(name="all")),
    )  # fmt: skip
    model = model_of(
        site,
        {"cores": 3, "partitions": "cpu"},
        {"cores": 4, "partitions": "cpu"},
        {"cores": 2, "partitions": "cpu"},
        {"cores": 1, "partitions": "gpu", "gpus": 1},
        {"cores": 1, "partitions": "all", "gpus": 3},
    )
    model.cluster.submit(np.arange(5), 0)
    model.run(until=10)
    found = model.cluster.look().machine.partitions
    assert [
        ("cpu", True, 2, 8, 0, 0, 1, 0, 1, 2, 900, 1),
        ("gpu", False, 1, 2, 4, 0, 1, 1, 1, 1, None, None),
        ("all", True, 3, 10, 4, 0, 2, 1, 0, 0, None, None),
    ] == list(found.values())


def test_standing_of_a_user() -> None:
    """Account, QOS, jobs against the limits, and fair share with its rank."""
    site = two(
        qos=(Qos(name="few", limits=Limits(max_jobs=2, max_submit=9)),),
        accounts=(
            Account(account="a", shares=1, default_qos="few"),
            Account(account="a", user="u1", shares=1, limits=Limits(max_jobs=1)),
            Account(account="a", user="u2", shares=1),
            Account(account="a", user="u3", shares=1),
        ),
        priority=PrioritySettings(weight_fair_share=100, calculation_period=10),
        scheduling={"enforce_limits": True},
    )
    jobs = [{"user": 1, "run": 500}] * 3 + [{"user": 2, "run": 500, "cores": 2}]
    model = model_of(site, *jobs, {"user": 3, "account": "a"})
    model.cluster.submit(np.arange(4), 0)
    model.run(until=35)
    outlook = model.cluster.look().machine
    assert ("a", "few", 1, 2, 1, 9, 2 / 3, 2, 3) == outlook.standing(0)
    assert ("a", "few", 1, 0, 2, 9, 1 / 3, 3, 3) == outlook.standing(3)
    assert ("a", "few", 0, 0, 2, 9, 1.0, 1, 3) == outlook.standing(4)
    assert ["AssocMaxJobsLimit", "", ""] == [outlook.limit(row) for row in (0, 3, 4)]


def test_standing_is_that_of_now_on_a_quiet_machine() -> None:
    """Usage counts up to the last period also when nothing has happened since."""
    site = two(priority=PrioritySettings(weight_fair_share=1, calculation_period=10, half_life=0))
    model = model_of(site, {"user": 1, "run": 900}, {"user": 2, "run": 900, "cores": 2, "at": 50})
    model.cluster.submit(np.arange(2), np.array([0, 50]))
    model.run(until=75)
    assert (1, 2) == tuple(model.cluster.look().machine.standing(row).rank for row in (1, 0))
    model.run(until=200)  # 1 core for 200 s, 2 cores for 150 s
    assert (2, 1) == tuple(model.cluster.look().machine.standing(row).rank for row in (1, 0))


def test_starts_are_foretold() -> None:
    """By priority: of what is to be submitted, in any partition, and of what waits."""
    jobs = [
        BUSY,
        {**FULL, "at": 10, "run": 100, "user": 2},
        {**FULL, "at": 20, "run": 900, "limit": 2000},
        {"partitions": "debug,normal", "cores": 4},
        {"partitions": "nowhere", "cores": 1},
        {"partitions": "normal", "cores": 5},
        {"partitions": "normal", "cores": 1, "begin": 3000},
    ]
    model = model_of(two(), *jobs)
    model.cluster.submit(np.arange(2), np.array([0, 10]))
    model.run(until=20)
    state = model.cluster.look()
    see = state.machine
    assert (500, "", False) == see.forecast(1)
    assert (600, "", False) == see.forecast(2)
    assert (FOREVER, "PartitionTimeLimit", True) == see.forecast(2, "debug")
    assert (20, 600, 20) == tuple(state.expected_start_of(3, to) for to in ("", "normal", "debug"))
    assert ("debug", 20) == (see.soonest(3)[0], see.soonest(3)[1].start)
    assert ("normal", 600) == (see.soonest(2)[0], see.soonest(2)[1].start)
    assert (FOREVER, "InvalidPartition", True) == see.forecast(4)
    assert ("", FOREVER) == (see.soonest(5)[0], see.soonest(5)[1].start)
    assert 3000 == see.forecast(6).start
    assert (600, FOREVER) == (state.expected_start(4, 100), state.expected_start(5, 100))
    assert 20 == see.forecast(1, "debug").start  # if it were submitted there now
    assert see is model.cluster.look().machine  # nothing has happened


def test_what_ended_this_second_has_left() -> None:
    """A user who hears of the end of a job sees its node free, although no pass has been since."""
    model = model_of(two(), BUSY, {**FULL, "at": 500})
    seen: list[Any] = []

    class Listener:
        def on_finished(self, unit: int, now: int) -> None:
            see = model.cluster.look().machine
            seen.append((now, see.partitions["normal"].free_nodes, see.forecast(1).start))

    model.submit(Listener(), np.array([0]), 0)
    model.run()
    assert [(500, 1, 500)] == seen


def test_no_start_is_foretold_at_a_limit() -> None:
    """Slurm foretells nothing for a job that a limit keeps; its word is the reason."""
    site = two(
        qos=(Qos(name="normal", limits=Limits(max_jobs=1)),), scheduling={"enforce_limits": True}
    )
    model = model_of(site, {"run": 500}, {"run": 10}, {"run": 10, "user": 2})
    model.cluster.submit([0], 0)
    model.run(until=5)
    see = model.cluster.look().machine
    assert (FOREVER, "QOSMaxJobsPerUserLimit", False) == see.forecast(1)
    assert 5 == see.forecast(2).start


def test_new_users_have_a_place_by_priority() -> None:
    """A start is foretold with the fair share of the user: behind those who have used less."""
    site = two(priority=PrioritySettings(weight_fair_share=1000, calculation_period=10))
    model = model_of(
        site,
        BUSY,
        {**FULL, "at": 100, "run": 50, "user": 2},
        {**FULL, "at": 100, "run": 70, "user": 1},
        {**FULL, "at": 100, "run": 70, "user": 3},
    )
    model.cluster.submit(np.arange(2), np.array([0, 100]))
    model.run(until=110)
    see = model.cluster.look().machine
    assert (500, 550) == (see.forecast(1).start, see.forecast(2).start)
    # Of a user with the same factor, the job that was submitted first goes first.
    assert 550 == see.forecast(3).start
    model.cluster.submit([2], 110)
    model.run(until=111)
    # Users without usage go before the one who has used all.
    assert (550, 550) == (
        model.cluster.look().machine.forecast(2).start,
        model.cluster.look().machine.forecast(3).start,
    )


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_a_job_that_left_an_empty_queue_counts_no_more(plain: bool) -> None:
    """The last job that waits is taken back; its user may submit another one at the limit."""
    site = two(
        qos=(Qos(name="normal", limits=Limits(max_submit=2)),), scheduling={"enforce_limits": True}
    )
    model = model_of(site, {**BUSY, "user": 2}, {**FULL, "user": 2}, {"user": 2}, plain=plain)
    model.cluster.submit(np.arange(3), np.array([0, 0, 60]))
    model.call_at(50, model.cancel, [1])
    model.run()
    assert [State.COMPLETED, State.CANCELLED, State.COMPLETED] == model.jobs.state.tolist()
    assert {} == model.cluster.engine.refused


jobs_of_a_run = st.lists(
    st.fixed_dictionaries(
        {
            "at": st.integers(0, 60),
            "run": st.integers(1, 30),
            "limit": st.integers(1, 60),
            "cores": st.integers(1, 6),
            "user": st.integers(1, 4),
            "partitions": st.sampled_from(["normal", "debug", "normal,debug", "low"]),
            "qos": st.sampled_from(["normal", "few"]),
        }
    ),
    min_size=1,
    max_size=15,
)


@settings(max_examples=40)
@given(jobs_of_a_run, st.integers(1, 20), st.sampled_from(["slurm", "easy", "conservative"]))
def test_looking_changes_nothing(jobs: list[dict[str, Any]], period: int, scheduler: str) -> None:
    """A run in which users look at everything is the same, second for second."""
    parts = (*TWO["partitions"], Partition(name="low", priority_tier=0, preempt_mode="requeue"))
    site = two(
        partitions=parts,
        qos=(Qos(name="normal"), Qos(name="few", limits=Limits(max_jobs=1))),
        priority=PrioritySettings(
            weight_fair_share=100, weight_age=50, max_age=20, calculation_period=period,
            half_life=100,
        ),
        scheduling={"enforce_limits": True, "preempt_type": "partition",
                    "preempt_mode": "requeue", "requeue_delay": 3, "batch_sched_delay": 2,
                    "sched_interval": 7, "bf_interval": 4},
    )  # fmt: skip
    found = []
    for looks in (False, True):
        model = model_of(site, *jobs, overrun="kill", scheduler=scheduler)
        rows = np.arange(len(model.jobs))
        model.cluster.submit(rows, model.jobs.recorded_submit)

        def look(model: Simulation = model) -> None:
            see = model.cluster.look().machine
            _ = see.partitions
            for row in np.flatnonzero(model.jobs.start < 0).tolist():
                _ = see.standing(row), see.limit(row), see.forecast(row), see.soonest(row)
            _ = see.forecast_of(3, 10)

        for second in range(0, 130, 3) if looks else ():
            model.call_at(second, look)
        model.run()
        assert not (model.jobs.state == State.UNFINISHED).any()
        found.append(model.jobs.matrix.tolist())
    assert found[0] == found[1]


# ---- another partition ------------------------------------------------------------------------


def test_users_switch_to_the_partition_that_starts_first() -> None:
    """Where that is sooner by more than the margin, and the job is not too long."""
    jobs = [
        BUSY,
        {**FULL, "at": 10, "run": 490, "user": 2},  # 10 in debug, 500 in normal
        {**FULL, "at": 20, "run": 20, "limit": 2000, "user": 3},  # too long for debug
        {**FULL, "at": 30, "run": 60, "user": 4},  # behind both in normal
    ]
    model, log = model_of(two(), *jobs), DecisionLog()
    users = run(model, SwitchPartition(ExpectedWait(60), margin=489), log=log)
    assert [
        (1, 10, "partition", "normal", "debug"),
        (3, 30, "partition", "normal", "debug"),
    ] == changes(users)
    assert [0, 10, 500, 500] == model.jobs.start.tolist()
    words = [one.words() for one in Decisions.of(log, 4)]
    assert "session 3: job 4 switched, reaction switch-partition expected-wait to debug" in words
    model = model_of(two(), *jobs)
    users = run(model, SwitchPartition(ExpectedWait(60), margin=490))
    assert [(3, 30, "partition", "normal", "debug")] == changes(users)
    assert [0, 500, 990, 30] == model.jobs.start.tolist()


def test_users_switch_for_any_gain() -> None:
    """Without a margin a second is enough; equal starts are no reason."""
    jobs = [BUSY, {**FULL, "at": 10, "run": 490, "user": 2}, {**FULL, "at": 30, "user": 3}]
    model = model_of(two(), *jobs)
    users = run(model, SwitchPartition(ALWAYS))
    assert [(1, 10, "partition", "normal", "debug")] == changes(users)
    assert [0, 10, 500] == model.jobs.start.tolist()  # both would start the third at 500
    sums = account(model.jobs, notes_of(users))
    assert 4 * 1090 == sums["work_recorded_processor_s"] == sums["work_done_processor_s"]


def test_users_look_at_the_partitions_that_they_know() -> None:
    """With `among` only these count."""
    parts = (*TWO["partitions"], Partition(name="spare", nodes=("d1",)))
    model = model_of(two(partitions=parts), BUSY, {**FULL, "at": 10})
    users = run(model, SwitchPartition(ALWAYS, among=("normal", "spare")))
    assert [(1, 10, "partition", "normal", "spare")] == changes(users)


def test_a_partition_by_name() -> None:
    """Users go where they are sent, but not where the job would be rejected."""
    jobs = [BUSY, {**FULL, "at": 10}, {**FULL, "at": 20, "limit": 1001},
            {**FULL, "at": 30, "partitions": "debug"}]  # fmt: skip
    model = model_of(two(), *jobs)
    users = run(model, SwitchPartition(ALWAYS, to="debug"))
    assert [(0, "normal", "debug"), (1, "normal", "debug")] == [
        (row, before, after) for row, _, _, before, after in changes(users)
    ]
    assert [0, 500, 20, 600] == model.jobs.start.tolist()


def test_jobs_that_ask_for_nothing_switch_too() -> None:
    """Without requests a job is in the partition of its queue, with its memory and account."""
    site = machine(
        NodeType(name="n1", cores=4, memory=1000), NodeType(name="d1", cores=4, memory=1000),
        partitions=(*TWO["partitions"][:1],
                    Partition(name="debug", nodes=("d1",), allow_accounts=("a",))),
        accounts=(Account(account="a"), Account(account="b")),
    )  # fmt: skip
    jobs = [{"run": 500}, {"at": 5}, {"at": 6}, {"at": 7}]
    model = model_of(site, *jobs, asks=False)
    model.jobs.requested_memory[:] = 700 * 1024  # one job on a node
    model.jobs.group[:] = [0, 1, 0, 0]
    model.jobs.names = {**model.jobs.names, "group": {0: "a", 1: "b"}}
    run(model, SwitchPartition(ExpectedWait(0)))
    # The second user has the wrong account for debug.
    assert [0, 500, 6, 106] == model.jobs.start.tolist()


# ---- fair share and limits --------------------------------------------------------------------


def test_users_wait_because_of_their_fair_share() -> None:
    """Whoever has used most goes behind the others, and may wait until the ranks have changed."""
    site = two(
        partitions=TWO["partitions"][:1],
        accounts=[Account(account="a")]
        + [Account(account="a", user=f"u{number}") for number in (1, 2)],
        priority=PrioritySettings(weight_fair_share=1000, calculation_period=10, half_life=0),
    )
    jobs = [
        {**FULL, "run": 100, "user": 1},
        {**FULL, "at": 50, "run": 30, "user": 1},
        {**FULL, "at": 60, "run": 150, "user": 2},
    ]
    model = model_of(site, *jobs)
    run(model)
    assert [0, 250, 100] == model.jobs.start.tolist()
    # Now the first one looks every 40 s whether its factor is above 0.6. It is 1/2 until the other
    # one has used more: 440 processor-seconds at 210, after 400.
    model = model_of(site, *jobs)
    users = run(model, LookAgain(FairShareBelow(0.6), every=40))
    assert [0, 210, 60] == model.jobs.submit.tolist()
    assert [0, 250, 100] == model.jobs.start.tolist()
    assert [] == changes(users)


def test_users_at_a_limit_come_later() -> None:
    """While as many of a user's jobs run as may, the next one is put off."""
    site = two(
        qos=(Qos(name="normal", limits=Limits(max_jobs=1, max_tres_per_user={"cpu": 4})),),
        scheduling={"enforce_limits": True},
    )
    jobs = [
        {"run": 100, "user": 1},
        {"at": 50, "user": 1},
        {"at": 60, "user": 2, "cores": 3, "run": 10},
        {"at": 100, "user": 1},
    ]
    model = model_of(site, *jobs)
    run(model, Delay(AtLimit(), by=30))
    # At 100 the first job has ended in this very second.
    assert [0, 80, 60, 100] == model.jobs.submit.tolist()
    free = two(qos=site.qos)  # no limit is enforced
    model = model_of(free, *jobs)
    run(model, Delay(AtLimit(), by=30))
    assert [0, 50, 60, 100] == model.jobs.submit.tolist()


# ---- other policies ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative"])
def test_users_see_partitions_under_other_policies(scheduler: str) -> None:
    """Starts are foretold by a conservative plan on the nodes, and users switch as under Slurm."""
    jobs = [
        BUSY,
        {**FULL, "at": 10, "run": 90000, "user": 2},
        {**FULL, "at": 20, "run": 50, "user": 3},
    ]
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    model = Simulation(made, 8, scheduler, machine=two())
    model.cluster.submit([0, 1], at[:2])
    model.run(until=20)
    see = model.cluster.look().machine
    assert (500, 90500, 20) == tuple(
        one.start for one in (see.forecast(1), see.forecast(2), see.forecast(2, "debug"))
    )
    assert (FOREVER, "PartitionTimeLimit", True) == see.forecast(1, "debug")
    normal = see.partitions["normal"]
    assert (0, 0, 1, 4) == (normal.free_nodes, normal.free_cores, normal.waiting, normal.asked)
    assert (1, 0) == (see.standing(0).running, see.standing(0).waiting)
    users = run(Simulation(made, 8, scheduler, machine=two()), SwitchPartition(ExpectedWait(60)))
    assert [(2, 20, "partition", "normal", "debug")] == changes(users)
    assert [0, 500, 20] == made.start.tolist()


def test_patience_elsewhere_under_another_policy() -> None:
    """A job that leaves the queue and comes back in the same second asks for its new partition."""
    made, at = table(BUSY, {**FULL, "at": 10, "run": 50, "user": 2})
    made.recorded_submit[:] = at
    users = run(Simulation(made, 8, machine=two()), patience=Patience(60, then="elsewhere"))
    assert [(1, 70, "partition", "normal", "debug")] == changes(users)
    assert [0, 70] == made.start.tolist()


def test_other_policies_count_no_usage() -> None:
    """Users cannot react to a fair share that nobody keeps."""
    made, at = table({})
    made.recorded_submit[:] = at
    with pytest.raises(QuantityError, match="trigger fair-share: this scheduler counts no usage"):
        run(Simulation(made, 8, machine=two()), Delay(FairShareBelow(0.5), by=1))


# ---- less ---------------------------------------------------------------------------------------

GPUS = machine(NodeType(name="g1", cores=8, memory=1000, gpus={"a": 4}))


def test_fewer_gpus_start_sooner_and_run_longer() -> None:
    """Two GPUs are free at once, four only at 500; with half of them a job takes longer."""
    jobs = [
        {"gpus": 2, "run": 500, "user": 1},
        {"gpus": 4, "at": 10, "run": 100, "limit": 200, "user": 2},
        {"gpus_per_node": 1, "at": 700, "run": 100, "user": 2},
    ]
    for exponent, run_time, limit in ((1.0, 200, 400), (0.5, 141, 283), (0.0, 100, 200)):
        model, log = model_of(GPUS, *jobs), DecisionLog()
        users = run(model, FewerGpus(ALWAYS, exponent=exponent, share=1), log=log)
        assert [0, 10, 700] == model.jobs.start.tolist()
        assert [(0, 0, "gpus", "2", "1"), (1, 10, "gpus", "4", "2")] == changes(users)
        assert (run_time, limit) == (model.jobs.run_time[1], model.jobs.requested_time[1])
        sums = account(model.jobs, notes_of(users))
        assert 700 == sums["work_recorded_processor_s"]
        added = run_time - 100 + round(500 * 2**exponent) - 500
        assert added == sums["work_added_processor_s"]
        words = [one.words() for one in Decisions.of(log, 2)]
        assert "session 1: job 2 reconfigured, reaction fewer-gpus during" == words[0]


def test_less_time_fits_into_a_gap() -> None:
    """A job that asks for what it needs is backfilled before a wide one."""
    site = machine(NodeType(name="n1", cores=4))
    jobs = [
        {"cores": 3, "run": 100, "user": 1},
        {"cores": 4, "at": 1, "run": 50, "user": 2},
        {"cores": 1, "at": 10, "run": 60, "limit": 500, "user": 3},
    ]
    assert [0, 100, 150] == starts_with(site, jobs)
    for reaction, requested, begins in (
        (LessTime(ALWAYS, factor=0.0), 60, 10),
        (LessTime(ALWAYS, factor=0.05), 82, 10),
        (LessTime(ALWAYS, factor=0.05, times=1.2), 93, 150),
        (LessTime(ALWAYS), 280, 150),
        (LessTime(ALWAYS, factor=0, times=0.5), 30, 10),
    ):
        model = model_of(site, *jobs, overrun="kill")
        users = run(model, reaction)
        assert (requested, begins) == (model.jobs.requested_time[2], model.jobs.start[2])
        killed = requested < 60
        assert (State.KILLED if killed else State.COMPLETED) == model.jobs.state[2]
        assert (2, 10, "requested_time", "500", str(requested)) in changes(users)


def test_less_time_on_a_pool() -> None:
    """Requested times also count on a pool of equal processors."""
    made, at = table({"run": 60, "limit": 500}, {"run": 60})
    made.recorded_submit[:], made.requests = at, None
    users = run(Simulation(made, 4), LessTime(ALWAYS, factor=0.25))
    assert [170, 60] == made.requested_time.tolist()
    assert [(0, 0, "requested_time", "500", "170")] == changes(users)


def test_less_memory_fits() -> None:
    """Half the memory per core, or per node, has room at once; all of a node stays all."""
    jobs = [
        {"memory_per_node": 500, "run": 500},
        {"memory_per_node": 900, "at": 10},
        {"memory_per_core": 401, "cores": 2, "at": 200, "user": 2},
        {"memory_per_node": 0, "at": 300, "user": 2},
    ]
    model = model_of(GPUS, *jobs)
    users = run(model, LessMemory(During([(1, 1000)])))
    assert [0, 10, 200, 500] == model.jobs.start.tolist()
    assert [
        (1, 10, "memory_per_node", "900", "450"),
        (2, 200, "memory_per_core", "401", "201"),
    ] == changes(users)


def starts_with(site: Machine, jobs: list[dict[str, Any]], *reactions: Reaction) -> list[int]:
    """Return the starts of jobs whose users have some reactions."""
    model = model_of(site, *jobs)
    run(model, *reactions)
    found: list[int] = model.jobs.start.tolist()
    return found


def test_fewer_processors_are_fewer_tasks_and_nodes() -> None:
    """A request follows when a reaction, or patience, changes the processors."""
    site = machine(NodeType(name="n[1-4]", cores=4))
    asked = {"cores": 12, "nodes": 3, "max_nodes": 3, "tasks": 6, "tasks_per_node": 2,
             "cores_per_task": 2}  # fmt: skip
    model = model_of(site, asked, {**asked, "cores": 8, "tasks": 4, "nodes": 2, "max_nodes": 2,
                                   "at": 200})  # fmt: skip
    run(model, Degrade(During([(0, 10)]), factor=1 / 3))
    requests = model.jobs.requests
    assert requests is not None
    assert [4, 8] == model.jobs.processors.tolist()
    assert [[1, 2], [1, 2], [2, 4], [2, 2], [2, 2]] == [
        requests[ask].tolist()
        for ask in (Ask.NODES, Ask.MAX_NODES, Ask.TASKS, Ask.TASKS_PER_NODE, Ask.CORES_PER_TASK)
    ]
    model = model_of(site, {"cores": 12, "run": 500}, {**asked, "at": 1})
    users = run(model, patience=Patience(50, then="smaller", factor=0.25))
    assert [0, 51] == model.jobs.start.tolist()
    assert [(1, 12, 100, 3, 400)] == [
        (one.row, one.processors, one.run_time, one.processors_after, one.run_time_after)
        for one in notes_of(users)
    ]
    assert 3 == model.jobs.processors[1]


# ---- patience -----------------------------------------------------------------------------------


def test_patience_ends_in_another_partition() -> None:
    """A job that has waited goes where it would start sooner; while nothing is sooner it stays."""
    jobs = [
        BUSY,
        {**FULL, "partitions": "debug", "run": 200, "limit": 700, "user": 1},
        {**FULL, "at": 10, "run": 50, "user": 2},
        {**FULL, "at": 20, "run": 50, "limit": 2000, "user": 3},
    ]
    model, log = model_of(two(), *jobs), DecisionLog()
    users = run(model, patience=Patience(60, then="elsewhere"), log=log)
    # At 70, 130 and 190 the node of debug is expected to be in use until 700; at 250 it is free.
    assert [0, 0, 250, 500] == model.jobs.start.tolist()
    assert [(2, 250, "partition", "normal", "debug")] == changes(users)
    assert [240] == [note.waited for note in notes_of(users)]
    words = [one.words() for one in Decisions.of(log, 2)]
    assert "session 2: job 3 leaves the queue to come again in partition debug" in words


# ---- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reaction", "told"),
    [
        (SwitchPartition(ALWAYS), "reaction switch-partition during: needs a machine of nodes; "),
        (FewerGpus(ALWAYS, name="thrift"), "reaction thrift: needs a machine of nodes; give"),
        (LessMemory(ALWAYS), "reaction less-memory during: needs a machine of nodes; give"),
        (Delay(FairShareBelow(0.5), by=1), "trigger fair-share: needs a machine of nodes; give"),
        (Delay(AtLimit(), by=1), "trigger at-limit: needs a machine of nodes; give --machine FILE"),
    ],
)
def test_a_pool_has_no_partitions(reaction: Reaction, told: str) -> None:
    """Before anything runs, one line says that such users need a machine of nodes."""
    made, at = table({})
    made.recorded_submit[:] = at
    with pytest.raises(QuantityError) as caught:
        run(Simulation(made, 4), reaction)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    with pytest.raises(QuantityError, match="partitions: a pool of equal processors has none"):
        _ = Simulation(made, 4).cluster.look().machine
    with pytest.raises(QuantityError, match="patience elsewhere: needs a machine of nodes"):
        run(Simulation(made, 4), patience=Patience(5, then="elsewhere"))


def test_partitions_that_are_not_there() -> None:
    """A name is checked before anything runs."""
    told = r"during: partition 'debgu': not known; did you mean debug\?"
    for wrong in ({"to": "debgu"}, {"among": ("debgu",)}):
        with pytest.raises(QuantityError, match=told):
            run(model_of(two(), {}), SwitchPartition(ALWAYS, **wrong))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: FewerGpus(ALWAYS, factor=1), "fewer-gpus factor 1: between 0 and 1"),
        (lambda: FewerGpus(ALWAYS, exponent=-1), "fewer-gpus exponent -1: 0 or more"),
        (lambda: LessMemory(ALWAYS, factor=0), "less-memory factor 0: between 0 and 1"),
        (lambda: LessTime(ALWAYS, factor=1), "less-time factor 1: 0 to less than 1"),
        (lambda: LessTime(ALWAYS, times=-1), "less-time times -1: 0 or more"),
        (lambda: SwitchPartition(ALWAYS, margin=-1), "switch-partition margin -1 s: must be 0"),
        (lambda: FairShareBelow(0), "fair-share below 0: more than 0"),
    ],
)
def test_numbers_out_of_range(make: Any, told: str) -> None:
    """One line with the value, and the cure."""
    with pytest.raises(QuantityError, match=told):
        make()


def test_other_clusters_are_left_alone() -> None:
    """A job that goes to another cluster keeps its partition."""
    model = model_of(two(), BUSY, {**FULL, "at": 10}, others={"pool": ClusterSpec(4)})
    users = run(model, Switch(ALWAYS, "pool"), SwitchPartition(ALWAYS, to="debug"))
    assert [1, 1] == model.jobs.cluster.tolist()
    assert ["switch", "switch"] == [note.response for note in notes_of(users)]


def test_triggers_of_your_own_on_nodes() -> None:
    """A trigger may look at anything that users see."""

    class Crowded(Trigger):
        def which(self, user: ReplayUser, intention: Any) -> Any:
            see = user.site.look().machine
            return np.array([not see.partitions["normal"].free_cores] * len(intention.rows))

    model = model_of(two(), BUSY, {**FULL, "at": 10})
    run(model, SwitchPartition(Crowded(), to="debug"))
    assert [0, 10] == model.jobs.start.tolist()
