"""Users on a machine of nodes: what they see, and what they ask for instead; exact stories.

That they see what is so at any second is checked against brute force, with the engine's kernels.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hpcrowd import ClusterSpec, State
from hpcrowd.agents.behaviours.on_nodes import (
    AtLimit,
    FairShareBelow,
    FewerGpus,
    LessMemory,
    LessTime,
    SwitchPartition,
)
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.behaviours import DecisionLog, Decisions, Patience
from hpcrowd.environment.machine.model import Account, NodeType, Partition, PrioritySettings, Qos
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.stops import FOREVER
from hpcrowd.reactions import Degrade, Delay, During, ExpectedWait, LookAgain, Switch, Trigger
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import machine, table
from tests.support.behaviours import join, refused
from tests.support.simulations import simulation_of

#: A partition with a node for everything, and one with a node for short jobs.
TWO = (
    Partition(name="normal", nodes=("n1",), default=True),
    Partition(name="debug", nodes=("d1",), max_time=1000),
)

FULL = {"cores": 4, "partitions": "normal"}

#: User 1 has the node of normal until 500.
BUSY = {**FULL, "run": 500, "user": 1}


def two(**more):
    """Return a machine of two partitions with one node of four cores each."""
    nodes = NodeType(name="n1", cores=4), NodeType(name="d1", cores=4)
    return machine(*nodes, **{"partitions": TWO, **more})


def model_of(site, *jobs, asks=True, scheduler="slurm", **more):
    """Return a simulation of jobs on a machine, without users; jobs may ask for processors only."""
    made, at = table(*jobs)
    made.recorded_submit[:] = at
    if not asks:
        made.requests = None
    return simulation_of(made, 4 if site is None else site.cores, scheduler, machine=site, **more)


#: The same on a pool of equal processors.
pool_of = partial(model_of, None, asks=False, scheduler="easy")


def changes(users):
    """Return row, second, request, before and after of each note."""
    return [
        (note.row, note.decided, note.request, note.request_before, note.request_after)
        for note in notes_of(users)
    ]


ALWAYS = During([(0, 10**6)])
ENFORCED = {"scheduling": {"enforce_limits": True}}


def run(model, *reactions, **options):
    """Run with users who submit each job at its recorded second, unless they react."""
    users = join(model, *reactions, **options)
    model.run()
    return users


def limited(**limits):
    """Return the settings of a machine that enforces limits."""
    return {"qos": (Qos(name="normal", limits=limits),), **ENFORCED}


# ---- what users see ---------------------------------------------------------------------------


def test_partitions_at_one_second():
    """Nodes, cores and GPUs that are free, what waits, and the limits of each partition."""
    parts = (
        Partition(name="cpu", nodes=("n[1-2]",), max_time=900, max_nodes=1),
        Partition(name="gpu", nodes=("g1",), up=False),
        Partition(name="all"),
    )
    nodes = NodeType(name="n[1-2]", cores=4), NodeType(name="g1", cores=2, gpus={"a": 4})
    jobs = ("cpu", 3, 0), ("cpu", 4, 0), ("cpu", 2, 0), ("gpu", 1, 1), ("all", 1, 3)
    asked = [{"partitions": part, "cores": cores, "gpus": gpus} for part, cores, gpus in jobs]
    model = model_of(machine(*nodes, partitions=parts), *asked)
    model.cluster.submit(np.arange(5), 0)
    model.run(until=10)
    assert [
        ("cpu", True, 2, 8, 0, 0, 1, 0, 1, 2, 900, 1),
        ("gpu", False, 1, 2, 4, 0, 1, 1, 1, 1, None, None),
        ("all", True, 3, 10, 4, 0, 2, 1, 0, 0, None, None),
    ] == list(model.cluster.look().machine.partitions.values())


def test_standing_of_a_user():
    """Account, QOS, jobs against the limits, and fair share with its rank."""
    accounts = [
        Account(account="a", shares=1, default_qos="few"),
        Account(account="a", user="u1", shares=1, limits={"max_jobs": 1}),
        *(Account(account="a", user=user, shares=1) for user in ("u2", "u3")),
    ]
    few = Qos(name="few", limits={"max_jobs": 2, "max_submit": 9})
    priority = PrioritySettings(weight_fair_share=100, calculation_period=10)
    site = two(qos=(few,), accounts=accounts, priority=priority, **ENFORCED)
    jobs = [{"user": 1, "run": 500}] * 3 + [{"user": 2, "run": 500, "cores": 2}]
    model = model_of(site, *jobs, {"user": 3, "account": "a"})
    model.cluster.submit(np.arange(4), 0)
    model.run(until=35)
    outlook = model.cluster.look().machine
    assert ("a", "few", 1, 2, 1, 9, 2 / 3, 2, 3) == outlook.standing(0)
    assert ("a", "few", 1, 0, 2, 9, 1 / 3, 3, 3) == outlook.standing(3)
    assert ("a", "few", 0, 0, 2, 9, 1.0, 1, 3) == outlook.standing(4)
    assert ["AssocMaxJobsLimit", "", ""] == [outlook.limit(row) for row in (0, 3, 4)]


def test_starts_are_foretold():
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
    assert [(500, "", False), (600, "", False)] == [see.forecast(row) for row in (1, 2)]
    assert (FOREVER, "PartitionTimeLimit", True) == see.forecast(2, "debug")
    assert (20, 600, 20) == tuple(state.expected_start_of(3, to) for to in ("", "normal", "debug"))
    soonest = [see.soonest(row) for row in (3, 2, 5)]
    found = [(name, forecast.start) for name, forecast in soonest]
    assert [("debug", 20), ("normal", 600), ("", FOREVER)] == found
    assert (FOREVER, "InvalidPartition", True) == see.forecast(4)
    assert 3000 == see.forecast(6).start
    assert (600, FOREVER) == (state.expected_start(4, 100), state.expected_start(5, 100))
    assert 20 == see.forecast(1, "debug").start  # if it were submitted there now
    assert see is model.cluster.look().machine  # nothing has happened


def test_a_job_that_left_an_empty_queue_counts_no_more():
    """The last job that waits is taken back; its user may submit another one at the limit."""
    jobs = {**BUSY, "user": 2}, {**FULL, "user": 2}, {"user": 2}
    model = model_of(two(**limited(max_submit=2)), *jobs)
    model.cluster.submit(np.arange(3), np.array([0, 0, 60]))
    model.call_at(50, model.cancel, [1])
    model.run()
    assert [State.COMPLETED, State.CANCELLED, State.COMPLETED] == model.jobs.state.tolist()
    assert {} == model.cluster.engine.refused


parts = st.sampled_from(["normal", "debug", "normal,debug"])
qos, length = st.sampled_from(["normal", "few"]), st.integers(1, 30)
size = st.integers(1, 6), st.integers(1, 4)
job = st.tuples(st.integers(0, 60), length, length, *size, parts, qos)
NAMES = ("at", "run", "limit", "cores", "user", "partitions", "qos")


@settings(max_examples=30)
@given(st.lists(job, min_size=1, max_size=15), st.sampled_from(["slurm", "easy", "conservative"]))
def test_looking_changes_nothing(rows, scheduler):
    """A run in which users look at everything is the same, second for second."""
    jobs = [dict(zip(NAMES, row, strict=True)) for row in rows]
    few = Qos(name="few", limits={"max_jobs": 1})
    weights = PrioritySettings(weight_fair_share=100, weight_age=50, calculation_period=7)
    site = two(qos=(Qos(name="normal"), few), priority=weights, **ENFORCED)
    found = []
    for looks in (False, True):
        model = model_of(site, *jobs, overrun="kill", scheduler=scheduler)
        rows = np.arange(len(model.jobs))
        model.cluster.submit(rows, model.jobs.recorded_submit)

        def look(model=model):
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


# ---- what they ask for instead ----------------------------------------------------------------

SPARED = two(partitions=(*TWO, Partition(name="spare", nodes=("d1",))))
GPUS = machine(NodeType(name="g1", cores=8, memory=1000, gpus={"a": 4}))
ONE = machine(NodeType(name="n1", cores=4))

QUEUE = [
    BUSY,
    {**FULL, "at": 10, "run": 490, "user": 2},  # 10 in debug, 500 in normal
    {**FULL, "at": 20, "run": 20, "limit": 2000, "user": 3},  # too long for debug
    {**FULL, "at": 30, "run": 60, "user": 4},  # behind both in normal
]
GPU_JOBS = [
    {"gpus": 2, "run": 500, "user": 1},
    {"gpus": 4, "at": 10, "run": 100, "limit": 200, "user": 2},
    {"gpus_per_node": 1, "at": 700, "run": 100, "user": 2},
]
GAP = [
    {"cores": 3, "run": 100, "user": 1},
    {"cores": 4, "at": 1, "run": 50, "user": 2},
    {"cores": 1, "at": 10, "run": 60, "limit": 500, "user": 3},
]
MEMORY = [
    {"memory_per_node": 500, "run": 500},
    {"memory_per_node": 900, "at": 10},
    {"memory_per_core": 401, "cores": 2, "at": 200, "user": 2},
    {"memory_per_node": 0, "at": 300, "user": 2},
]
SHORT = During([(10, 11)])
MOVED, LESS_GPUS = ("partition", "normal", "debug"), ((0, "gpus", "2", "1"), (1, "gpus", "4", "2"))


class Crowded(Trigger):
    """An own trigger, which may look at anything that users see."""

    def which(self, user, intention):
        """Look at the cores of normal."""
        see = user.site.look().machine
        return np.array([not see.partitions["normal"].free_cores] * len(intention.rows))


def less_time(requested):
    """Return the change of the job that asks for 500 s."""
    return ((2, "requested_time", "500", str(requested)),)


#: Machine, jobs, what users do, what they change, and starts, run times and requested times.
ASKS: dict[str, tuple[Any, Any, Any, Any, list[int], dict[int, tuple[int, int]]]] = {
    # To the partition with the first start, if it is sooner by more than the margin.
    "margin": (two(), QUEUE, SwitchPartition(ExpectedWait(60), margin=489),
               ((1, *MOVED), (3, *MOVED)), [0, 10, 500, 500], {}),
    "wide margin": (two(), QUEUE, SwitchPartition(ExpectedWait(60), margin=490), ((3, *MOVED),),
                    [0, 500, 990, 30], {}),
    # Without a margin a second is enough; equal starts are no reason.
    "any gain": (two(), [*QUEUE[:2], {**FULL, "at": 30}], SwitchPartition(ALWAYS), ((1, *MOVED),),
                 [0, 10, 500], {}),
    # Where they are sent, but not where the job would be rejected.
    "by name": (two(), [BUSY, {**FULL, "at": 10}, {**FULL, "at": 20, "limit": 1001}],
                SwitchPartition(ALWAYS, to="debug"), ((0, *MOVED), (1, *MOVED)), [0, 500, 20], {}),
    "among": (SPARED, QUEUE[:2], SwitchPartition(ALWAYS, among=("normal", "spare")),
              ((1, "partition", "normal", "spare"),), [0, 10], {}),
    "own trigger": (two(), [BUSY, {**FULL, "at": 10}], SwitchPartition(Crowded(), to="debug"),
                    ((1, *MOVED),), [0, 10], {}),
    # Two GPUs are free at once, four only at 500; with half of them a job takes longer.
    "GPUs": (GPUS, GPU_JOBS, FewerGpus(ALWAYS), LESS_GPUS, [0, 10, 700],
             {0: (1000, 1000), 1: (200, 400)}),
    "root": (GPUS, GPU_JOBS, FewerGpus(ALWAYS, exponent=0.5), LESS_GPUS, [0, 10, 700],
             {0: (707, 707), 1: (141, 283)}),
    "as fast": (GPUS, GPU_JOBS, FewerGpus(ALWAYS, exponent=0), LESS_GPUS, [0, 10, 700], {}),
    # A job that asks for what it needs is backfilled before a wide one; for less, it is killed.
    "exact": (ONE, GAP, LessTime(SHORT, factor=0), less_time(60), [0, 100, 10], {2: (60, 60)}),
    "near": (ONE, GAP, LessTime(SHORT, factor=0.05), less_time(82), [0, 100, 10], {2: (60, 82)}),
    "longer": (ONE, GAP, LessTime(SHORT, factor=0.05, times=1.2), less_time(93), [0, 100, 150],
               {2: (60, 93)}),
    "half": (ONE, GAP, LessTime(SHORT), less_time(280), [0, 100, 150], {2: (60, 280)}),
    "too short": (ONE, GAP, LessTime(SHORT, factor=0, times=0.5), less_time(30), [0, 100, 10],
                  {2: (60, 30)}),
    # Requested times also count on a pool of equal processors.
    "pool": (None, [{"run": 60, "limit": 500}, {"run": 60}], LessTime(ALWAYS, factor=0.25),
             ((0, "requested_time", "500", "170"),), [0, 0], {0: (60, 170)}),
    # Half the memory has room at once; all of a node stays all.
    "memory": (GPUS, MEMORY, LessMemory(During([(1, 1000)])),
               ((1, "memory_per_node", "900", "450"), (2, "memory_per_core", "401", "201")),
               [0, 10, 200, 500], {}),
}  # fmt: skip


@pytest.mark.parametrize("story", ASKS)
def test_users_ask_otherwise(story):
    """What users ask for when their trigger says so, when jobs start then, how long they run."""
    site, jobs, reaction, expected, starts, times = ASKS[story]
    make = pool_of if site is None else partial(model_of, site, overrun="kill")
    model, log = make(*jobs), DecisionLog()
    before = list(zip(model.jobs.run_time, model.jobs.requested_time, strict=True))
    users = run(model, reaction, log=log)
    assert list(expected) == [(row, *change) for row, _, *change in changes(users)]
    assert starts == model.jobs.start.tolist()
    after = [times.get(row, asked) for row, asked in enumerate(before)]
    assert after == list(zip(model.jobs.run_time, model.jobs.requested_time, strict=True))
    killed = [State.KILLED if run > asked else State.COMPLETED for run, asked in after]
    assert killed == model.jobs.state.tolist()
    sums = account(model.jobs, notes_of(users))
    longer = np.array(after)[:, 0] - np.array(before)[:, 0]
    assert int((longer * model.jobs.processors).sum()) == sums["work_added_processor_s"]
    row, what, _, to = expected[-1]
    done = {"partition": "switched", "gpus": "reconfigured"}.get(what, "changed")
    words = f"job {row + 1} {done}, reaction {reaction.name}"
    words += f" to {to}" if what == "partition" else ""
    assert any(one.words().endswith(words) for one in Decisions.of(log))


def test_jobs_that_ask_for_nothing_switch_too():
    """Without requests a job is in the partition of its queue, with its memory and account."""
    debug = Partition(name="debug", nodes=("d1",), allow_accounts=("a",))
    site = machine(
        *(NodeType(name=name, cores=4, memory=1000) for name in ("n1", "d1")),
        partitions=(TWO[0], debug),
        accounts=(Account(account="a"), Account(account="b")),
    )
    model = model_of(site, {"run": 500}, *({"at": at} for at in (5, 6, 7)), asks=False)
    model.jobs.requested_memory[:] = 700 * 1024  # one job on a node
    model.jobs.group[:] = [0, 1, 0, 0]
    model.jobs.names = {**model.jobs.names, "group": {0: "a", 1: "b"}}
    run(model, SwitchPartition(ExpectedWait(0)))
    # The second user has the wrong account for debug.
    assert [0, 500, 6, 106] == model.jobs.start.tolist()


def test_patience_ends_in_another_partition():
    """A job that has waited goes where it would start sooner; while nothing is sooner it stays."""
    jobs = [
        BUSY,
        {**FULL, "partitions": "debug", "run": 200, "limit": 700, "user": 1},
        {**FULL, "at": 10, "run": 50, "user": 2},
        {**FULL, "at": 20, "run": 50, "limit": 2000, "user": 3},
    ]
    model, log = model_of(two(), *jobs), DecisionLog()
    users = run(model, parts={"patience": Patience(60, then="elsewhere")}, log=log)
    # At 70, 130 and 190 the node of debug is expected to be in use until 700; at 250 it is free.
    assert [0, 0, 250, 500] == model.jobs.start.tolist()
    assert [(2, 250, "partition", "normal", "debug")] == changes(users)
    assert [240] == [note.waited for note in notes_of(users)]
    words = [one.words() for one in Decisions.of(log, 2)]
    assert "session 2: job 3 leaves the queue to come again in partition debug" in words


def test_other_clusters_are_left_alone():
    """A job that goes to another cluster keeps its partition."""
    model = model_of(two(), BUSY, {**FULL, "at": 10}, others={"pool": ClusterSpec(4)})
    users = run(model, Switch(ALWAYS, "pool"), SwitchPartition(ALWAYS, to="debug"))
    assert [1, 1] == model.jobs.cluster.tolist()
    assert ["switch", "switch"] == [note.response for note in notes_of(users)]


# ---- fair share and limits --------------------------------------------------------------------


def test_users_wait_because_of_their_fair_share():
    """Whoever has used most goes behind the others, and may wait until the ranks have changed."""
    accounts = [Account(account="a"), *(Account(account="a", user=f"u{one}") for one in (1, 2))]
    weights = PrioritySettings(weight_fair_share=1000, calculation_period=10, half_life=0)
    site = two(partitions=TWO[:1], accounts=accounts, priority=weights)
    three = (0, 100, 1), (50, 30, 1), (60, 150, 2)
    jobs = [{**FULL, "at": at, "run": lasts, "user": user} for at, lasts, user in three]
    # The first one looks every 40 s whether its factor is above 0.6. It is 1/2 until the other
    # one has used more: 440 processor-seconds at 210, after 400.
    model = model_of(site, *jobs)
    assert [] == changes(run(model, LookAgain(FairShareBelow(0.6), every=40)))
    assert [0, 210, 60] == model.jobs.submit.tolist()
    assert [0, 250, 100] == model.jobs.start.tolist()


def test_users_at_a_limit_come_later():
    """While as many of a user's jobs run as may, the next one is put off."""
    enforced = limited(max_jobs=1, max_tres_per_user={"cpu": 4})
    # The first job has ended in the very second of the last.
    jobs = [{"at": at, "user": 1} for at in (0, 50, 100)]
    jobs.insert(2, {"at": 60, "user": 2, "cores": 3, "run": 10})
    for site, second in ((two(**enforced), 80), (two(qos=enforced["qos"]), 50)):
        model = model_of(site, *jobs)
        run(model, Delay(AtLimit(), by=30))
        assert [0, second, 60, 100] == model.jobs.submit.tolist()


# ---- other policies ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative"])
def test_users_see_partitions_under_other_policies(scheduler):
    """Starts are foretold by a conservative plan on the nodes, and users go elsewhere."""
    long, short = {"at": 10, "run": 90000, "user": 2}, {"at": 20, "run": 50, "user": 3}
    jobs = BUSY, FULL | long, FULL | short
    model = model_of(two(), *jobs, scheduler=scheduler)
    model.cluster.submit([0, 1], model.jobs.recorded_submit[:2])
    model.run(until=20)
    see = model.cluster.look().machine
    forecasts = see.forecast(1), see.forecast(2), see.forecast(2, "debug")
    assert [500, 90500, 20] == [one.start for one in forecasts]
    assert (FOREVER, "PartitionTimeLimit", True) == see.forecast(1, "debug")
    normal = see.partitions["normal"]
    assert (0, 0, 1, 4) == (normal.free_nodes, normal.free_cores, normal.waiting, normal.asked)
    assert (1, 0) == (see.standing(0).running, see.standing(0).waiting)
    # A job that leaves the queue and comes back in the same second asks for its new partition.
    model = model_of(two(), BUSY, {**FULL, "at": 10, "run": 50, "user": 2}, scheduler=scheduler)
    users = run(model, parts={"patience": Patience(60, then="elsewhere")})
    assert [(1, 70, "partition", "normal", "debug")] == changes(users)
    assert [0, 70] == model.jobs.start.tolist()


def test_fewer_processors_are_fewer_tasks_and_nodes():
    """A request follows when a reaction, or patience, changes the processors."""
    site = machine(NodeType(name="n[1-4]", cores=4))
    names = Ask.NODES, Ask.MAX_NODES, Ask.TASKS, Ask.TASKS_PER_NODE, Ask.CORES_PER_TASK
    asked = dict(zip((one.name.lower() for one in names), (3, 3, 6, 2, 2), strict=True))
    smaller = {"cores": 8, "nodes": 2, "max_nodes": 2, "tasks": 4, "at": 200}
    model = model_of(site, {**asked, "cores": 12}, {**asked, **smaller})
    run(model, Degrade(During([(0, 10)]), factor=1 / 3))
    requests = model.jobs.requests
    assert requests is not None
    assert [4, 8] == model.jobs.processors.tolist()
    expected = [[1, 2], [1, 2], [2, 4], [2, 2], [2, 2]]
    assert expected == [requests[ask].tolist() for ask in names]
    model = model_of(site, {"cores": 12, "run": 500}, {**asked, "cores": 12, "at": 1})
    users = run(model, parts={"patience": Patience(50, then="smaller", factor=0.25)})
    assert [0, 51] == model.jobs.start.tolist()
    assert [(1, 12, 100, 3, 400)] == [
        (one.row, one.processors, one.run_time, one.processors_after, one.run_time_after)
        for one in notes_of(users)
    ]


# ---- mistakes -----------------------------------------------------------------------------------


NEEDS = "needs a machine of nodes; give --machine FILE"
MISSPELT = "during: partition 'debgu': not known; did you mean debug?"


@pytest.mark.parametrize(
    ("make", "reactions", "told"),
    [
        (pool_of, [SwitchPartition(ALWAYS)], f"reaction switch-partition during: {NEEDS}"),
        (pool_of, [FewerGpus(ALWAYS, name="thrift")], f"reaction thrift: {NEEDS}"),
        (pool_of, [LessMemory(ALWAYS)], f"reaction less-memory during: {NEEDS}"),
        (pool_of, [Delay(FairShareBelow(0.5), by=1)], f"trigger fair-share: {NEEDS}"),
        (pool_of, [Delay(AtLimit(), by=1)], f"trigger at-limit: {NEEDS}"),
        (pool_of, [], f"patience elsewhere: {NEEDS}"),
        (partial(model_of, two(), scheduler="easy"), [Delay(FairShareBelow(0.5), by=1)],
         "trigger fair-share: this scheduler counts no usage"),
        (partial(model_of, two()), [SwitchPartition(ALWAYS, to="debgu")], MISSPELT),
        (partial(model_of, two()), [SwitchPartition(ALWAYS, among=("debgu",))], MISSPELT),
    ],
)  # fmt: skip
def test_what_machines_do_not_have(make, reactions, told):
    """What a pool has not, and names of partitions, are refused in a line before all runs."""
    parts = {} if reactions else {"patience": Patience(5, then="elsewhere")}
    refused(lambda: run(make({}), *reactions, parts=parts), told)
    look = pool_of({}).cluster.look()
    refused(lambda: look.machine, "partitions: a pool of equal processors has none")
