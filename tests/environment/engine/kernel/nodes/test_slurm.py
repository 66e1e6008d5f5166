"""Slurm's controller, which is compiled, against brute force, on random machines.

Whatever users do in between, both have the same table, ledger, stopped runs, refusals, queue
with reasons, planned starts and priorities, usage, and free nodes, at each second at which the run
is looked at.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd import SessionDefinition, Work, add_users
from hpcrowd.agents.behaviours.on_nodes import AtLimit, FairShareBelow, LessTime, SwitchPartition
from hpcrowd.behaviours import Composed, Patience, Recorded, SessionGraph
from hpcrowd.environment.jobs import State
from hpcrowd.environment.machine.model import Limits, Partition, Qos, SchedulingSettings
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.reactions import Degrade, Delay, During, LookAgain, QueueLonger, Reaction, Renounce
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.environment.engine.passes.slurm.test_properties import PLACEMENTS, seeds
from tests.environment.machine import machine_cases
from tests.environment.machine.audit import faults
from tests.environment.machine.machine_cases import Nobody, machine, table
from tests.environment.schedulers.slurm.brute import BruteSlurm
from tests.support.simulations import simulation_of

ALWAYS = During([(0, 10**6)])

EVERY_JOB = SessionDefinition("arrival", None)

#: Sessions whose next one waits for the last.
CLOSED = SessionDefinition("last", 1)

#: Smaller seeds are no simpler.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

#: What users may do before they submit.
REACTIONS: list[Callable[[], Reaction]] = [
    lambda: SwitchPartition(ALWAYS),
    lambda: SwitchPartition(ALWAYS, to="some"),
    lambda: LessTime(QueueLonger(2), times=1.5),
    lambda: Delay(AtLimit(), by=7),
    lambda: Delay(FairShareBelow(0.5), by=5),
    lambda: Renounce(QueueLonger(6)),
    lambda: LookAgain(QueueLonger(3), every=4, most=50),  # a queue may be kept for ever
    lambda: Degrade(ALWAYS, factor=0.5),
]


def last_first(stock, demand, usable):
    """Take the last nodes first: a rule of one's own."""
    return sorted(usable, reverse=True)


#: What is drawn of each run.
cases = st.fixed_dictionaries(
    {
        "seed": seeds,  # of the machine and jobs
        "placement": st.sampled_from([*PLACEMENTS, last_first]),
        "overrun": st.sampled_from(["keep", "kill"]),
        # what happens to preempted jobs: what the machine says; users hear of what is cancelled;
        # with tiers, all partitions suspend jobs of those below
        "preempted": st.sampled_from(["", "cancel", "suspend", "tiers"]),
        "room": st.sampled_from([1, 2, 5, 1024]),  # for jobs, at first
        "until": st.lists(st.integers(0, 120), max_size=12),  # seconds to stop at
        "taken": st.lists(st.tuples(st.integers(0, 29), st.integers(0, 60)), max_size=12),
        "who": st.sampled_from(["users", "users", "listener", "nobody"]),
        "reactions": st.lists(st.integers(0, len(REACTIONS) - 1), max_size=2, unique=True),
        "patience": st.sampled_from([None, "later", "smaller", "never", "elsewhere"]),
        "after": st.integers(1, 12),
        "closed": st.booleans(),
        "usage": st.booleans(),  # whether it is weighed, reset and limited
    }
)


class Listener:
    """Notes when each unit is over, and looks at the machine in that second."""

    def __init__(self, model):
        self.model = model
        self.heard: list[Any] = []

    def on_finished(self, unit, now):
        """Note the second, what is free, and a start that is foretold."""
        see = self.model.cluster.look().machine
        free = [(one.free_nodes, one.free_cores) for one in see.partitions.values()]
        waits = self.model.cluster.waiting.tolist()
        self.heard.append((unit, now, free, [see.forecast(row) for row in waits[:2]]))


def take_back(model, plan):
    """Take jobs back at seconds of a plan, if they have come and are not over by then."""

    def cancel(row):
        if model.jobs.state[row] == State.UNFINISHED and model.jobs.submit[row] >= 0:
            model.cancel(row)

    for row, second in plan:
        model.call_at(second, cancel, row % len(model.jobs))


def populate(model, case):
    """Let jobs be submitted, react, and be taken back; return what is heard on the way."""
    listener, at = Listener(model), model.jobs.recorded_submit
    if case["who"] == "nobody":
        model.submit(Nobody(), np.arange(len(at)), at)
    elif case["who"] == "listener":
        for row, second in enumerate(at.tolist()):
            model.submit(listener, np.array([row]), second)
    else:
        closed, then = case["closed"], case["patience"]
        patience = None if then is None else Patience(case["after"], then=then, after=3)
        kinds = [REACTIONS[number]() for number in case["reactions"]]
        first = SessionGraph if closed else Recorded
        add_users(
            model,
            Work.of(model.jobs, CLOSED if closed else EVERY_JOB),
            lambda work: Composed(first(work), reactions=kinds, patience=patience),
        )
    take_back(model, case["taken"])
    return listener.heard


def look(policy, model, *, within):
    """Return all that can be known of a run, and what users see if it stopped before a pass.

    In the middle of a second nobody can see what the controller hears of in its next pass.
    """
    state, jobs, engine = policy.state, model.jobs, model.cluster.engine
    queue = sorted(model.cluster.waiting.tolist())
    found: dict[str, Any] = {
        "now": engine.now,
        "table": jobs.matrix[:, : len(jobs)].tolist(),
        "requests": None if jobs.requests is None else jobs.requests.matrix.tolist(),
        "ledger": policy.ledger,
        "attempts": list(engine.attempts),
        "refused": dict(engine.refused),
        "queue": queue,
    }
    if within:
        see = model.cluster.look().machine
        seen = {"see": list(see.partitions.values()), "foretold": list(map(see.forecast, queue))}
        return found | seen
    return found | {
        "waiting": {
            row: (job.reason, job.planned, job.priority, job.factors, job.eligible, job.submitted)
            for row, job in sorted(state.waiting.items())
        },
        "running": {
            row: (job.start, job.by, job.partition, job.holding, job.eligible)
            for row, job in state.running.items()
        },
        "usage": [(one.name, one.user, one.usage, one.factor) for one in state.shares.all],
        "free": (state.stock.cores, state.stock.memory, state.stock.gpus, state.stock.jobs),
        "phases": state.phases,
    }


def compare(site, jobs, case):
    """Check that both give the same at each stop and at the end; return that of Slurm."""
    both, heard = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", case["room"])
        for by in (BruteSlurm, Slurm):
            policy, how = by(case["placement"]), {"overrun": case["overrun"], "seed": 1}
            how["clock"] = machine_cases.BEFORE_RESET
            model = simulation_of(jobs.copy(), site.cores, policy, machine=site, **how)
            both.append((policy, model))
            heard.append(populate(model, case))
        last = 200 if case.get("usage") else None  # usage may keep jobs waiting until next week
        for second in (*sorted(case["until"]), last):
            brute, found = (
                look(policy, model.run(second), within=second != last) for policy, model in both
            )
            different = {key for key, value in brute.items() if value != found[key]}
            assert {} == {key: (brute[key], found[key]) for key in different}, f"until {second}"
    assert heard[0] == heard[1]
    return both[1]


def drawn(seed, most=30, *, tiers=False):
    """Return a random machine and jobs."""
    rng = np.random.default_rng(seed)
    if tiers:
        site, jobs = machine_cases.suspending(rng, most)
    else:
        site = machine_cases.random_machine(rng)
        jobs = machine_cases.random_jobs(rng, site, most)
    jobs.recorded_start[:] = jobs.recorded_submit
    jobs.recorded_end[:] = jobs.recorded_submit + jobs.run_time
    return site, jobs


def check(case):
    """Check a run of a random machine."""
    how = case["preempted"]
    site, jobs = drawn(case["seed"], 20 if case["who"] == "users" else 30, tiers=how == "tiers")
    if how in ("cancel", "suspend") and site.scheduling.preempt_type != "none":
        rules = {**dict(site.scheduling), "preempt_mode": how}
        site = site.changed(scheduling=SchedulingSettings(**rules))
    if case.get("usage"):
        site = machine_cases.with_usage_rules(site, case["seed"])
    compare(site, jobs, case)


#: A suspended job is taken back.
LEAVES = {
    "seed": 608, "placement": "first-fit", "overrun": "keep", "preempted": "suspend", "room": 1,
    "until": [], "taken": [(9, 42)], "who": "listener", "reactions": [], "patience": None,
    "after": 11, "closed": False,
}  # fmt: skip

#: A user looks at its standing in the second in which it has joined the accounts.
JOINS = {
    "seed": 16475, "placement": "best-fit", "overrun": "kill", "preempted": "", "room": 1,
    "until": [], "taken": [], "who": "users", "reactions": [7, 4], "patience": "elsewhere",
    "after": 6, "closed": False,
}  # fmt: skip


@settings(phases=PHASES, max_examples=8)
@given(cases)
@example(JOINS)
@example(LEAVES)
def test_slurm_does_as_brute_force(case):
    """At any second at which the run is stopped, and at the end, whatever users do."""
    check(case)


@pytest.mark.endurance
@settings(phases=PHASES, max_examples=500)
@given(cases)
def test_slurm_does_as_brute_force_often(case):
    """For many more machines."""
    check(case)


#: Jobs that come at their recorded seconds.
ALONE = {
    "placement": "slurm", "overrun": "kill", "room": 1024, "until": [], "taken": [],
    "who": "nobody",
}  # fmt: skip


@pytest.mark.slow
def test_what_is_compared_happens():
    """Of a hundred machines some preempt, throttle, reject, backfill, and keep jobs waiting."""
    seen: set[str] = set()
    for seed in range(100):
        site, jobs = drawn(seed)
        policy, model = compare(site, jobs, ALONE)
        requests, ran = model.jobs.requests, [run.row for run in policy.ledger]
        assert requests is not None
        assert [] == faults(site, model.jobs, policy.ledger)
        seen |= {ask.name for ask in requests.asked() if requests[ask][ran].max(initial=-1) >= 0}
        seen |= {one.fate for one in model.cluster.attempts}
        seen |= {run.by for run in policy.ledger}
        seen |= {"again" for row in ran if ran.count(row) > 1}
        seen |= {"refused" for _ in model.cluster.engine.refused}
        seen |= {job.reason for job in policy.state.waiting.values()}
    assert {"requeue", "again", "main", "backfill", "refused", "RESERVATION", "THROTTLE", "GPUS",
            "FEATURES", "EXCLUSIVE", "BEGIN", "MEMORY_PER_NODE"} <= seen  # fmt: skip


def test_runs_end_though_users_would_look_for_ever():
    """Jobs of partitions that are down wait; users look elsewhere until nothing else happens."""
    site = machine(partitions=tuple(Partition(name=name, up=False) for name in ("one", "other")))
    jobs, at = table({}, {"at": 3, "user": 2})
    jobs.recorded_submit[:] = at
    model = simulation_of(jobs, site.cores, "slurm", machine=site)
    patience, work = Patience(5, then="elsewhere"), Work.of(jobs, EVERY_JOB)
    add_users(model, work, lambda work: Composed(Recorded(work), patience=patience))
    model.run()
    assert [State.UNFINISHED] * 2 == jobs.state.tolist()
    assert model.time < 100


@pytest.mark.parametrize("scheduler", ["slurm", "easy"])
def test_what_is_taken_back_makes_room_at_once(scheduler):
    """A user with one job at most takes a waiting one back, which empties the queue; then another.

    The last job runs on the node of a job that was taken back while nothing else was there.
    """
    one = Qos(name="normal", limits=Limits(max_submit=1))
    site = machine(qos=(one,), scheduling={"enforce_limits": True})
    jobs, at = table(
        {"cores": 8, "run": 50, "user": 1},
        {"cores": 8, "at": 1, "user": 2},
        {"cores": 8, "at": 5, "run": 10**6, "user": 2},
        {"cores": 8, "at": 200, "user": 2},
    )
    model = simulation_of(jobs, site.cores, scheduler, machine=site)
    model.submit(Nobody(), np.arange(len(jobs)), at)
    take_back(model, [(1, 5), (2, 199)])
    model.run()
    assert {} == model.cluster.engine.refused
    ran = [State.COMPLETED, State.CANCELLED, State.CANCELLED, State.COMPLETED]
    assert ran == model.jobs.state.tolist()
    assert [0, -1, 50, 200] == model.jobs.start.tolist()
