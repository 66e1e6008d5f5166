"""Clusters that change while jobs run: stories, what cannot be, and what always holds."""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hpcrowd import (
    ClusterSpec,
    JobTable,
    Scheduler,
    SessionDefinition,
    State,
    Work,
    add_users,
)
from hpcrowd.environment.platform.part import Platform
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.platform import Failures, Maintenance, NodesDown, Resize, SpeedChange, SwitchPolicy
from hpcrowd.policies import EASY
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.test_properties import make, outcome, workloads
from tests.environment.schedulers.pool_cases import ran
from tests.support.policies import (
    SIZE,
    Changes,
    downs,
    failures,
    platforms,
    speeds,
)
from tests.support.simulations import account_of, both, simulation_of

#: Policies that do the same.
BOTH = ("fcfs", "easy")


@dataclass
class Story:
    """Jobs of (submission, run time, processors[, request]) on a machine that changes."""

    processors: int
    platform: list[Any]
    jobs: list[tuple[int, ...]]
    #: Columns as they are afterwards.
    found: dict[str, list[Any]]
    policies: tuple[str, ...] = ("easy",)
    more: dict[str, Any] = field(default_factory=dict)
    #: Runs that were stopped, with why and what happened to them, and what is counted.
    stopped: list[tuple[Any, ...]] = field(default_factory=list)
    account: dict[str, int] = field(default_factory=dict)


STORIES = {
    "while half is down, a job that needs all waits": Story(
        4, [NodesDown(7, 200, 2)], [(10, 50, 4), (0, 5, 1)],
        {"start": [200, 0], "end": [250, 5]}, BOTH,
        account={"down_processor_s": 2 * 193, "runs_stopped": 0}),
    "requeued jobs keep their place and run all over again": Story(
        4, [NodesDown(60, 70, 1)], [(0, 100, 4), (10, 50, 4)], {"start": [70, 170]}, BOTH,
        stopped=[(0, 0, 0, 60, "down", "requeue")],
        account={
            "runs_stopped": 1, "runs_requeued": 1, "runs_resubmitted": 0, "lost_processor_s": 240}),
    "maintenance stops who runs into it": Story(
        4, [Maintenance(100, 200, announced=60)], [(0, 300, 2)], {"start": [200]}, BOTH,
        stopped=[(0, 0, 0, 100, "maintenance", "requeue")], account={"maintenance_s": 100}),
    # The head has no shadow time while processors are down: whatever fits runs, however long.
    "jobs overtake whoever waits for a repair": Story(
        4, [NodesDown(15, 100, 2)], [(0, 10, 4), (20, 50, 4), (21, 999, 2), (22, 10, 1)],
        {"start": [0, 1020, 21, 100]}),
    "a window may begin in the second in which another ends": Story(
        4, [Maintenance(5, 20), Maintenance(20, 30)], [(0, 1, 1), (6, 5, 1)], {"start": [0, 30]}),
    # 40 s, then 60 s of work on half speed; 51 s of work: 90 s on half, 6 s of it on double speed.
    "running jobs and those to come follow the speed": Story(
        2, [SpeedChange(40, 0.5), SpeedChange(250, 4)], [(0, 100, 2), (10, 51, 2), (300, 7, 2)],
        {"start": [0, 160, 300], "end": [160, 253, 304]}, BOTH),
    "requested times do not": Story(
        2, [SpeedChange(50, 0.5)], [(0, 100, 2, 120), (130, 100, 2, 120)],
        {"end": [120, 250], "state": [State.KILLED] * 2}, more={"overrun": "kill"}),
    # The head's shadow time is 150; 42 s of the last one fit before, 120 s do not.
    "exact estimates follow the speed": Story(
        4, [SpeedChange(50, 0.5)], [(0, 100, 3), (10, 50, 4), (60, 60, 1), (61, 21, 1)],
        {"start": [0, 150, 250, 61]}, more={"estimates": "exact"}),
    "requeued jobs start again at the present speed": Story(
        2, [SpeedChange(50, 2), NodesDown(60, 70, 1)], [(0, 100, 2)],
        {"start": [70], "end": [120]}, stopped=[(0, 0, 0, 60, "down", "requeue")]),
    "from a date on another policy decides": Story(
        4, [SwitchPolicy(30, "easy")], [(0, 100, 3), (1, 50, 4), (2, 40, 1)],
        {"start": [0, 100, 30]}, ("fcfs",)),
}  # fmt: skip


@both
@pytest.mark.parametrize(
    ("name", "policy"), [(name, one) for name in STORIES for one in STORIES[name].policies]
)
def test_stories(make_jobs, name, policy, plain):
    """Jobs start and end when the changes let them; what was stopped and lost is counted."""
    story, more = STORIES[name], STORIES[name].more
    jobs = make_jobs(*story.jobs)
    model = ran(jobs, story.processors, policy, plain=plain, platform=story.platform, **more)
    assert story.found == {column: getattr(jobs, column).tolist() for column in story.found}
    attempts = model.cluster.attempts
    assert story.stopped == [(a.row, a.submit, a.start, a.end, a.cause, a.fate) for a in attempts]
    assert story.account.items() <= account_of(model.cluster, model.time).items()


@both
@pytest.mark.parametrize("policy", ["easy", "conservative", "selective", "wfp3"])
def test_a_job_may_be_taken_back_as_maintenance_ends(make_jobs, policy, plain):
    """Whoever waits starts in that second; the plan is drawn while the window is still there."""
    jobs = make_jobs((0, 5, 2), (30, 5, 2), (31, 5, 4))
    model = simulation_of(jobs, 4, policy, plain=plain, platform=[Maintenance(27, 45)])
    add_users(model, Work.of(jobs), "rigid")
    model.call_at(45, model.cancel, 2)
    model.run()
    assert [0, 45, -1] == jobs.start.tolist()


@both
@pytest.mark.parametrize(
    ("fate", "found"),
    [
        # The next session follows the end of the job that was submitted again.
        ("resubmit", {"submit": [90, 240], "end": [190, 250], "state": [State.COMPLETED] * 2}),
        # It ends for its user in that second, who continues from then.
        ("fail", {"submit": [0, 110], "end": [60, 120], "state": [State.FAILED, State.COMPLETED]}),
    ],
)
def test_users_of_stopped_jobs(make_jobs, fate, found, plain):
    """Users wait for what they submit again, and go on from what failed for good."""
    jobs = make_jobs((0, 100, 4), (150, 10, 1))
    down = NodesDown(60, 70, 4, jobs=fate)
    model = simulation_of(jobs, 4, plain=plain, platform=[down], resubmit_after=30)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", None)))
    model.run()
    assert found == {column: getattr(jobs, column).tolist() for column in found}


WRONG: list[tuple[list[Any], str]] = [
    (
        [NodesDown(-1)],
        "NodesDown with at -1: must be whole seconds from 0 to 9,007,199,254,740,992"),
    ([NodesDown(10, 10)], "NodesDown from 10 to 10 s: must end after it begins"),
    ([NodesDown(0, 9, 0)], "NodesDown with processors 0: must be from 1 to"),
    ([NodesDown(0, 9, 1, "gone")], "NodesDown with jobs 'gone': not known"),
    (
        [NodesDown(0, 9, 3), NodesDown(8, None, 2)],
        "nodes down at 8 s: 5 processors would be down, the cluster has 4"),
    ([NodesDown(0, None, 3), Resize(5, 2)], "nodes down at 5 s: 3 processors would be down"),
    ([Resize(5, 2), Resize(5, 3)], "resize at 5 s: two in the same second"),
    ([SpeedChange(5, 2), SpeedChange(5, 3)], "speed change at 5 s: two"),
    ([SpeedChange(5, 0)], "speed change by 0: must be from 1e-06 to"),
    ([SwitchPolicy(5, "easy"), SwitchPolicy(5, "fcfs")], "switch at 5 s: two"),
    ([SwitchPolicy(5, "recorded")], "to 'recorded': not a scheduler to switch to"),
    (
        [Maintenance(5, 20), Maintenance(19, 30)],
        "maintenance from 19 s: overlaps the one from 5 to 20 s; merge them"),
    ([Failures(0, 5)], "Failures with mean 0: must be from 1 to"),
    ([Failures(5, 5, "normal")], "Failures with distribution 'normal': not known"),
    ([Failures(5, 5, processors=9)], "Failures of nodes with 9 processors: the cluster has 4"),
    ([Failures(5, 5, start=9, until=9)], "Failures from 9 to 9 s: must end"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "text"), WRONG)
def test_contradictions(make_jobs, changes, text):
    """What is wrong is named with its value and the rule."""
    with pytest.raises(QuantityError, match=re.escape(text)):
        simulation_of(make_jobs((0, 1, 1)), 4, platform=changes)


def test_changes_that_need_others(make_jobs):
    """Nobody submits again before the job was stopped; a recorded schedule has no processors."""
    with pytest.raises(QuantityError, match="recorded schedule has no processors"):
        simulation_of(make_jobs((0, 1, 1)), 4, "recorded", platform=[NodesDown(1)])
    with pytest.raises(QuantityError, match="resubmit_after -1 s"):
        simulation_of(make_jobs((0, 1, 1)), 4, resubmit_after=-1)


def fitting(self, look):
    """Start whatever fits."""
    return [job for job in look.waiting if job.processors <= look.free][:1]


def test_schedulers_that_do_not_know_of_windows(make_jobs):
    """One that says it does and starts a job into one is stopped, others see no such jobs."""
    careless = type("Careless", (EASY,), {"name": "careless", "select": fitting})
    with pytest.raises(SchedulerError, match="into the maintenance at 50 s"):
        ran(make_jobs((0, 100, 1)), 4, careless(), platform=[Maintenance(50, 60)])
    unaware = type("Unaware", (Scheduler,), {"name": "unaware", "select": fitting})
    jobs = make_jobs((0, 100, 1), (0, 50, 1))
    ran(jobs, 4, unaware(), platform=[Maintenance(50, 60)])
    assert [60, 0] == jobs.start.tolist()


def test_job_that_can_never_end(make_jobs, monkeypatch):
    """Failures that leave a job no time to run are an error, not a run without end."""
    monkeypatch.setattr("hpcrowd.environment.platform.timeline.LARGEST_RESTARTS", 20)
    with pytest.raises(SimulationError, match="job 1 was stopped 20 times"):
        ran(make_jobs((0, 1000, 1)), 1, "easy", platform=[Failures(5, 1)])


@both
def test_failures_do_not_keep_a_run_alive(make_jobs, plain):
    """Where a job waits for ever, random failures do not continue for ever."""
    jobs = make_jobs((0, 10, 1), (20, 10, 4))
    ran(jobs, 4, "easy", platform=[NodesDown(15, None, 1), Failures(50, 10)], plain=plain)
    assert -1 == jobs.start[1]


few = settings(max_examples=15)


def simulate(rows, platform, scheduler="easy", users="rigid", **options):
    """The simulation after the run."""
    jobs = make(rows)
    options = {"resubmit_after": 5, "seed": 3} | options
    model = simulation_of(jobs, SIZE, scheduler, platform=platform, **options)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", 2)), users)
    return model.run()


def story(model):
    """All that came out."""
    jobs = model.jobs
    others = jobs.run_time.tolist(), model.time, list(model.cluster.attempts)
    return outcome(jobs), *others, account_of(model.cluster, model.time)


@few
@given(workloads, st.lists(downs | failures, max_size=4), st.booleans())
def test_never_more_in_use_than_up(rows, platform, plain):
    """While nodes fail and come back, runs never hold more processors than are up."""
    platform = [
        change if isinstance(change, Failures) else NodesDown(change.at, change.until, 1)
        for change in platform
    ]
    jobs = make(rows)
    model = simulation_of(jobs, SIZE, platform=platform, plain=plain)
    add_users(model, Work.of(jobs), "rigid")
    engine = model.cluster.engine
    for until in range(0, 120, 3):
        model.run(until=until)
        running = engine.running
        assert engine.up - int(jobs.processors[running].sum()) == engine.free
        assert 0 <= engine.free <= engine.up <= SIZE


@few
@given(workloads, speeds, st.booleans())
def test_work_is_conserved(rows, platform, plain):
    """Run time times speed adds up to the work of each job, to a second per change."""
    jobs = simulate(rows, platform, plain=plain).jobs
    work = np.array([row[3] for row in rows])
    changes = sorted(platform, key=lambda change: change.at)
    for row in np.flatnonzero(jobs.state == State.COMPLETED):
        begin, end = int(jobs.start[row]), int(jobs.end[row])
        edges = [0, *(change.at for change in changes), 10**9]
        paces = np.cumprod([1.0, *(change.factor for change in changes)])
        pieces = [
            (max(0, min(end, last) - max(begin, first)), pace)
            for (first, last), pace in zip(pairwise(edges), paces, strict=True)
        ]
        done = sum(lasts * pace for lasts, pace in pieces)
        used = [pace for lasts, pace in pieces if lasts] or [1.0]
        # Each rounding moves a run time by half a second, or up to 1 s where less would be left.
        slack = sum(used)
        assert abs(done - work[row]) <= slack + 1e-6


@few
@given(workloads, platforms, st.sampled_from(sorted(POOL_SCHEDULERS)), st.booleans())
def test_a_cluster_next_to_another_changes_as_alone(rows, platform, scheduler, plain):
    """What a cluster does does not depend on others that users do not submit to."""
    alone = simulate(rows, platform, scheduler, plain=plain, users="think-time")
    change = Platform([Failures(10, 10), Resize(5, 8)], cluster="north")
    beside = simulate(
        rows, platform, scheduler, plain=plain, users="think-time",
        others={"north": ClusterSpec(3)}, parts=[change],
    )  # fmt: skip
    assert story(alone)[:-1] == story(beside)[:-1]


def strikes(platform, seed=3):
    """Return when each job of a full machine was stopped: time, job and fate."""
    jobs = JobTable()
    jobs.append(SIZE, processors=1, run_time=10**6, requested_time=10**6)
    model = simulation_of(jobs, SIZE, platform=platform, seed=seed)
    model.cluster.submit(np.arange(SIZE), 0)
    model.run(until=1000)
    return [(one.end, one.number, one.fate) for one in model.cluster.attempts]


seeds = st.integers(0, 2**32 - 1)


@few
@given(seeds, st.permutations([2, 3, 4]))
def test_a_change_draws_the_same_wherever_it_is_in_the_list(seed, order):
    """Changes put before, behind or between others redraw none of them."""
    watched = [NodesDown(100, 200, 2), NodesDown(900, None, 1)]
    others: Changes = [NodesDown(300, 350, 3), NodesDown(400, 500, 2), SpeedChange(10**6, 2)]
    alone = strikes(watched, seed)
    mixed = [([*watched, *others])[i] for i in (*order, 0, 1)]
    seconds = {end for end, _, _ in alone}
    assert alone == [one for one in strikes(mixed, seed) if one[0] in seconds]


def test_processes_of_failures_are_independent():
    """A process keeps its seconds when another is put before it, and two equal ones differ.

    The fate of jobs, and whether a mean is written as 100 or 100.0, changes no draw.
    """
    process, other = Failures(100, 1), Failures(50, 1)
    alone, both, twice = (
        {end for end, _, _ in strikes(many)}
        for many in ([process], [other, process], [process, process])
    )
    assert alone
    assert alone < both
    assert len(alone) < len(twice)
    requeue, fail = (strikes([NodesDown(100, 200, 2, jobs=fate)]) for fate in ("requeue", "fail"))
    assert [one[:2] for one in requeue] == [one[:2] for one in fail]
    assert strikes([Failures(100, 1)]) == strikes([Failures(100.0, 1.0)])
