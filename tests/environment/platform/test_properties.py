"""What holds of every schedule on a platform that changes, and compiled against plain."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hpcrowd.agents import SessionDefinition, Work, add_users
from hpcrowd.environment import (
    Adaptive,
    ClusterSpec,
    Failures,
    JobTable,
    Maintenance,
    NodesDown,
    Resize,
    Simulation,
    SpeedChange,
    State,
)
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS, parse_scheduler
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.test_properties import Rows, make, outcome, workloads
from tests.support.policies import (
    SIZE,
    Platform,
    downs,
    failures,
    platforms,
    resizes,
    speeds,
)

few = settings(max_examples=25)


def simulate(
    rows: Rows, platform: Platform, scheduler: str = "easy", users: str = "rigid", **options: Any
) -> Simulation:
    """The simulation after the run."""
    jobs = make(rows)
    options = {"resubmit_after": 5, "seed": 3} | options
    model = Simulation(jobs, SIZE, scheduler, platform=platform, **options)
    add_users(model, Work.of(jobs, SessionDefinition("arrival", 2)), users)
    return model.run()


def story(model: Simulation) -> tuple[Any, ...]:
    """All that came out."""
    jobs = model.jobs
    others = jobs.run_time.tolist(), model.time, list(model.cluster.attempts)
    return outcome(jobs), *others, model.cluster.account(model.time)


@few
@given(workloads, platforms, st.booleans())
def test_jobs_in_are_jobs_out(rows: Rows, platform: Platform, plain: bool) -> None:
    """Every job ends in one way, and the accounts tell of each run that did not come to its end."""
    model = simulate(rows, platform, plain=plain)
    jobs, attempts = model.jobs, model.cluster.attempts
    assert len(rows) == sum(jobs.count(state) for state in State)
    completed = jobs.state == State.COMPLETED
    lasted = (jobs.end - jobs.start)[completed]
    assert jobs.run_time[completed].tolist() == lasted.tolist()
    failed = [attempt.row for attempt in attempts if attempt.fate == "fail"]
    assert sorted(failed) == np.flatnonzero(jobs.state == State.FAILED).tolist()
    unfinished = jobs.state == State.UNFINISHED
    assert np.all(jobs.start[unfinished] == -1)
    # Whoever never ran at all cannot have been too small for what is up in the end.
    assert np.all(jobs.start[jobs.state == State.REJECTED] == -1)
    assert np.all(jobs.submit >= 0)


@few
@given(workloads, st.lists(downs | failures, max_size=4), st.booleans())
def test_never_more_in_use_than_up(rows: Rows, platform: Platform, plain: bool) -> None:
    """While nodes fail and come back, runs never hold more processors than are up."""
    platform = [
        change if isinstance(change, Failures) else NodesDown(change.at, change.until, 1)
        for change in platform
    ]
    jobs = make(rows)
    model = Simulation(jobs, SIZE, platform=platform, plain=plain)
    add_users(model, Work.of(jobs), "rigid")
    engine = model.cluster.engine
    for until in range(0, 120, 3):
        model.run(until=until)
        running = engine.running
        assert engine.up - int(jobs.processors[running].sum()) == engine.free
        assert 0 <= engine.free <= engine.up <= SIZE


@few
@given(workloads, resizes)
def test_shrinking_never_starts_more_than_fit(rows: Rows, platform: Platform) -> None:
    """After the machine shrank nothing starts until running jobs have made room."""
    jobs = simulate(rows, platform).jobs
    for row in np.flatnonzero(jobs.end > jobs.start):
        at, size = jobs.start[row], SIZE
        for change in sorted(platform, key=lambda change: change.at):
            size = change.processors if change.at <= at else size
        runs = (jobs.start <= at) & (jobs.end > at) & (jobs.start >= 0)
        assert jobs.processors[runs].sum() <= size


@few
@given(workloads, speeds, st.booleans())
def test_work_is_conserved(rows: Rows, platform: Platform, plain: bool) -> None:
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
@given(workloads, st.sampled_from(sorted(POOL_SCHEDULERS)), st.booleans(), st.integers(0, 60))
def test_changes_that_change_nothing(rows: Rows, scheduler: str, plain: bool, at: int) -> None:
    """The size and the speed that there are, and failures of nobody, leave the schedule alone.

    But plans of reservations are drawn again at any change that reaches the cluster.
    """
    rows = [(*row[:5], row[3] + row[5], row[6]) for row in rows]
    made = parse_scheduler(scheduler)
    at += 10**6 * (isinstance(made, Adaptive) or made.plans)  # an adaptive one has planners
    idle = [
        SpeedChange(at, 1),
        Resize(at, SIZE),
        Failures(5, 5, start=10**6),
        NodesDown(10**7),
        Maintenance(10**7, 10**7 + 1),
    ]
    alone = outcome(simulate(rows, [], scheduler, plain=plain).jobs)
    assert alone == outcome(simulate(rows, idle, scheduler, plain=plain).jobs)


@few
@given(workloads, platforms, st.sampled_from(sorted(POOL_SCHEDULERS)), st.booleans())
def test_a_cluster_next_to_another_changes_as_alone(
    rows: Rows, platform: Platform, scheduler: str, plain: bool
) -> None:
    """What a cluster does does not depend on others that users do not submit to."""
    alone = simulate(rows, platform, scheduler, plain=plain, users="think-time")
    others = {"north": ClusterSpec(3, platform=[Failures(10, 10), Resize(5, 8)])}
    beside = simulate(rows, platform, scheduler, plain=plain, users="think-time", others=others)
    assert story(alone)[:-1] == story(beside)[:-1]


def strikes(platform: Platform, seed: int = 3, count: int = SIZE) -> list[tuple[int, int, str]]:
    """Return when each job of a machine, full unless told, was stopped: time, job and fate."""
    jobs = JobTable()
    jobs.append(count, processors=1, run_time=10**6, requested_time=10**6)
    model = Simulation(jobs, SIZE, platform=platform, seed=seed)
    model.cluster.submit(np.arange(count), 0)
    model.run(until=1000)
    return [(one.end, one.number, one.fate) for one in model.cluster.attempts]


seeds = st.integers(0, 2**32 - 1)


@few
@given(seeds, st.permutations([2, 3, 4]))
def test_a_change_draws_the_same_wherever_it_is_in_the_list(seed: int, order: list[int]) -> None:
    """Changes put before, behind or between others redraw none of them."""
    watched = [NodesDown(100, 200, 2), NodesDown(900, None, 1)]
    others: Platform = [NodesDown(300, 350, 3), NodesDown(400, 500, 2), SpeedChange(10**6, 2)]
    alone = strikes(watched, seed)
    mixed = [([*watched, *others])[i] for i in (*order, 0, 1)]
    seconds = {end for end, _, _ in alone}
    assert alone == [one for one in strikes(mixed, seed) if one[0] in seconds]


@few
@given(seeds, st.integers(1, SIZE))
def test_processes_of_failures_are_independent(seed: int, busy: int) -> None:
    """One keeps its seconds whatever runs and is put before it, and two equal ones differ."""
    process, other = Failures(100, 1), Failures(50, 1)
    alone, less, both, twice = (
        {end for end, _, _ in strikes(many, seed, jobs)}
        for many, jobs in (
            ([process], SIZE), ([process], busy), ([other, process], SIZE), ([process] * 2, SIZE)
        )
    )  # fmt: skip
    assert less <= alone <= both
    assert not alone or len(alone) < len(twice)


def test_fates_are_compared_on_the_same_failures() -> None:
    """The fate of jobs, and whether a mean is written as 100 or 100.0, changes no draw."""
    requeue = strikes([NodesDown(100, 200, 2)])
    fail = strikes([NodesDown(100, 200, 2, jobs="fail")])
    assert [one[:2] for one in requeue] == [one[:2] for one in fail]
    assert strikes([Failures(100, 1)]) == strikes([Failures(100.0, 1.0)])
