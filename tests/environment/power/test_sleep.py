"""Idle nodes that are switched off: stories, both engines, and the account of the states."""

import pickle

import numpy as np
import pytest
from hpcrowd import ClusterSpec, Simulation, Work, add_users
from hpcrowd.environment.engine.attempts import runs_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.power.sleep import (
    SleepRule,
    holdings,
    sleep_states,
    sleep_states_of_nodes,
)
from hpcrowd.environment.state.state import begin_from
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.power.idle_nodes import PlainIdleNodes
from tests.environment.power.power_cases import made
from tests.support.policies import outcome, policies, workloads
from tests.support.simulations import both, simulation_of

#: Two processors; 30 s to switch on, 5 s to switch off.
NODE = NodePower("node", idle=100, processor=10, processors=2, on_time=30, off_time=5)
MINUTE = SleepRule(60)

nodes = st.builds(
    NodePower,
    name=st.just("node"),
    idle=st.just(100.0),
    processor=st.just(10.0),
    processors=st.integers(1, 3),
    on_time=st.integers(1, 9),
    off_time=st.integers(0, 4),
)
rules = st.builds(SleepRule, after=st.integers(1, 9), spare=st.integers(0, 3))
clusters = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "scheduler": policies,
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact", "0.5x", "last-two"]),
    }
)


def simulate(rows, rule, node=NODE, *, users="rigid", cancel=None, **cluster):
    """The simulation after its run; at a second, jobs of one user that are here are taken back."""
    jobs = made(rows)
    work = Work.of(jobs, None)
    model = simulation_of(jobs, **cluster)
    if rule is not None:
        model.cluster.engine.switch_off(rule.of(node))
    add_users(model, work, users)
    if cancel is not None:
        model.run(until=cancel[0])
        here = np.concatenate((model.cluster.waiting, model.cluster.running))
        model.cluster.cancel(here[jobs.user[here] == cancel[1]])
    model.run()
    return model


def states_of(model, rule, node=NODE):
    """The states of the processors, and the recorded starts."""
    engine, end = model.cluster.engine, model.time + 100
    stopped = runs_of(model.jobs, engine.attempts).stopped
    held = holdings(model.jobs, 0, engine.delayed, stopped, end)
    found = sleep_states(
        held.acquired, held.released, held.processors, engine.processors, rule, node, 0, end
    )
    return found, held.started.tolist()


@both
def test_story(plain):
    """Idle nodes sleep after a minute; a job that needs them starts when they are on again.

    At 60 s, 4 of 8 processors have been idle since the beginning: one node stays on as a spare, one
    is off. The others, idle since 10 s, are off at 70 s. At 100 s two jobs want all of them.
    """
    rule = SleepRule(60, spare=1)
    rows = [(0, 10, 4), (100, 20, 6), (100, 30, 2), (130, 10, 3)]
    model = simulate(rows, rule, processors=8, scheduler="easy", plain=plain)
    assert [0, 130, 130, 150] == model.jobs.start.tolist()
    assert [(1, 100, 130), (2, 100, 130)] == model.cluster.engine.delayed
    found, _ = states_of(model, rule)
    assert [0, 10, 60, 65, 70, 75, 100, 130, 150, 160, 220, 225, 260] == found.edges.tolist()
    assert [4, 8, 6, 6, 2, 2, 0, 0, 3, 8, 4, 4] == found.on.tolist()
    assert [0, 0, 0, 2, 2, 6, 0, 0, 0, 0, 0, 4] == found.asleep.tolist()
    assert [0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0] == found.switching_on.tolist()
    assert [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0] == found.waiting.tolist()
    assert (3, 5) == (found.switched_on, found.switched_off)


#: Two jobs that reserve: the second waits for the end of the first, at 180 s. The third may go
#: before it, since 111 s + 65 s is before that, but ends at 206 s. The fourth fits as well then:
#: until 183 s, as it seems. Its node is on at 141 s, like the third one's.
LATER = [(100, 50, 2), (110, 10, 4), (111, 65, 1), (112, 71, 1)]


@both
@pytest.mark.parametrize(
    ("rows", "processors", "scheduler", "start", "on"),
    [
        ([(62, 10, 1)], 2, "easy", [65 + 30], 1),
        ([(100, 50, 1), (110, 50, 1), (131, 5, 1)], 4, "easy", [130, 130, 161], 2),
        ([(0, 10, 1), (100, 10, 1), (101, 10, 2)], 2, "easy", [0, 100, 110], 0),
        (LATER, 4, "easy", [130, 212, 141, 141], 2),
        (LATER, 4, "conservative", [130, 212, 141, 141], 2),
    ],
    ids=["off before on", "all of a node is on", "part of a node stays on", "easy", "conservative"],
)
def test_when_nodes_are_on(rows, processors, scheduler, start, on, plain):
    """Whole nodes are switched, on when they are off; from the next pass on true ends count."""
    model = simulate(rows, MINUTE, processors=processors, scheduler=scheduler, plain=plain)
    assert start == model.jobs.start.tolist()
    assert on == states_of(model, MINUTE)[0].switched_on


@both
def test_a_job_that_is_cancelled_early_holds_nobody_up(plain):
    """Processors of a job cancelled before its start are free at once, and on at that start."""
    others = [(0, 111, 1, 111, 3)] * 2  # whose processors are on before those of the cancelled one
    rows = [*others, (100, 50, 1, 50, 1), (112, 7, 4, 7, 2)]  # who wakes a node of two
    model = simulate(rows, MINUTE, processors=4, plain=plain, cancel=(110, 1))
    assert [0, 0, UNKNOWN, 130] == model.jobs.start.tolist()
    assert [111, 111, 110, 137] == model.jobs.end.tolist()
    found, started = states_of(model, MINUTE)
    assert [0, 0, 130, 130] == started == found.starts.tolist()
    assert 1 == found.switched_on


@given(workloads, clusters, rules, nodes, st.sampled_from(["rigid", "think-time"]))
@settings(max_examples=60)
def test_compiled_equals_plain(rows, cluster, rule, node, users):
    """Both engines give the same schedule and the same delays, and the account the same again."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compiled", "idle"):
            patch.setattr(f"hpcrowd.environment.engine.{name}.FIRST_ROOM", 8)
        fast = simulate(rows, rule, node, users=users, **cluster)
        patch.setattr("hpcrowd.environment.engine.idle.IdleNodes", PlainIdleNodes)
        plain = simulate(rows, rule, node, users=users, plain=True, **cluster)
    assert outcome(plain.jobs) == outcome(fast.jobs)
    assert plain.cluster.engine.delayed == fast.cluster.engine.delayed
    found, started = states_of(fast, rule, node)
    assert started == found.starts.tolist()


cancels = st.tuples(st.integers(0, 60), st.integers(1, 3))


@given(workloads, clusters, rules, nodes, cancels, st.booleans())
@settings(max_examples=40)
def test_each_processor_is_in_one_state(rows, cluster, rule, node, cancel, plain):
    """The states add up to the machine, and the running ones are those of the jobs."""
    model = simulate(rows, rule, node, cancel=cancel, plain=plain, **cluster)
    found, _ = states_of(model, rule, node)
    counts = np.stack(
        [found.on, found.waiting, found.switching_off, found.asleep, found.switching_on]
    )
    assert (counts >= 0).all()
    jobs, begins = model.jobs, found.edges[:-1, None]
    ran = jobs.start != UNKNOWN
    runs = (jobs.start[ran] <= begins) & (begins < jobs.end[ran])
    assert (runs @ jobs.processors[ran]).tolist() == found.running.tolist()
    assert {cluster["processors"]} == set((counts.sum(axis=0) + found.running).tolist())
    assert (found.switching_off % node.processors == 0).all()
    assert (found.asleep % node.processors == 0).all()


def test_nodes_sleep_between_jobs_that_are_far_enough_apart():
    """Of a machine of nodes each node sleeps where it can be on again by the start of a job.

    Node 0 is idle from 10 s to 200 s, node 1 for the first 94 s, 1 s too short for 60 + 5 + 30 s,
    and from 150 s on; node 2 never has a job.
    """
    runs = [(0, 0, 10), (0, 200, 250), (1, 94, 120), (1, 100, 150)]
    found = sleep_states_of_nodes(*np.array(runs).T, 3, MINUTE, NODE, 0, 300)
    assert [0, 10, 60, 65, 70, 75, 94, 150, 170, 200, 210, 215, 250, 300] == found.edges.tolist()
    assert [2, 3, 2, 2, 1, 1, 0, 1, 1, 1, 0, 0, 1] == found.on.tolist()
    assert [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0] == found.switching_off.tolist()
    assert [0, 0, 0, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2] == found.asleep.tolist()
    assert [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] == found.switching_on.tolist()
    assert [1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0] == found.running.tolist()
    assert (1, 3) == (found.switched_on, found.switched_off)
    always = sleep_states_of_nodes(*np.array(runs).T, 3, None, NODE, 0, 300)
    assert {3} == set((always.on + always.running).tolist())


@both
def test_a_run_that_begins_from_a_state(plain):
    """All processors are idle since then but for those that jobs run on."""
    jobs = made([(900, 150, 2, 200, 1), (1100, 10, 4)])
    jobs.recorded_start[1] = jobs.recorded_end[:] = UNKNOWN
    model = Simulation(jobs, processors=4, scheduler="easy", plain=plain)
    model.cluster.engine.switch_off(MINUTE.of(NODE))
    begin_from(model, 1000, np.array([0]), np.array([], np.int64))
    model.cluster.submit(np.array([1]), 1100)
    model.run()
    assert [900, 1130] == jobs.start.tolist()


@both
def test_several_clusters(plain):
    """The rule is that of the first cluster; others run as they do, and copies go on alike."""
    jobs = made([(100, 9, 2)] * 2)
    power, others = Power((NODE,), sleep=MINUTE), {"other": ClusterSpec(4)}
    model = simulation_of(jobs, processors=4, others=others, parts=[PowerInUse(power)], plain=plain)
    for row, name in enumerate(("home", "other")):
        model.clusters[name].submit(np.array([row]), 100)
    model.run(until=110)
    for one in (pickle.loads(pickle.dumps(model)), model):
        one.run()
        assert [(0, 100, 130)] == one.cluster.engine.delayed
        assert [130, 100] == one.jobs.start.tolist()


def run_by(scheduler):
    """What runs a job on a machine that sleeps."""
    return lambda: simulate([(0, 1, 1)], MINUTE, processors=2, scheduler=scheduler)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (run_by("recorded"), "recorded schedule: its starts wait for no node"),
        (run_by("adaptive"), "sleep with platform changes, an adaptive"),
        (lambda: SleepRule(0), "sleep after 0 s: must be at least 1 s"),
        (lambda: SleepRule(60, -1), "sleep spare -1: must be 0 or more"),
        (lambda: sleep_states([0, 5], [9, 9], [2, 3], 4, MINUTE, NODE, 0, 20),
         "3 processors taken at 5 s, 2 of 4 are without"),
    ],
)  # fmt: skip
def test_refusals(call, words):
    """Settings that exclude a sleep rule are refused in one line, as are wrong numbers."""
    with pytest.raises(QuantityError, match=words):
        call()
