"""What holds of every reason: on random workloads, paused at random seconds, under every policy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    Clock,
    Cluster,
    JobTable,
    Look,
    ReasonCode,
    Simulation,
    WaitingReason,
)
from hpcrowd.environment.engine.plain import PlainEngine
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.conservative import PlanningScheduler, Profile, duration
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS, SCHEDULERS
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.stops import FOREVER
from hpcrowd.environment.waiting_reasons import (
    explain,
    reasons_at,
    reasons_of,
    running_jobs,
    waiting_jobs,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.environment.platform.test_properties import platforms
from tests.support.policies import (
    LastRun,
    Rows,
    backfills,
    clusters,
    keys,
    make,
    outcome,
    policies,
    text,
    workloads,
)

pauses = st.integers(0, 90)

#: Sizes for which long queues form.
tight = st.integers(3, 8)


def paused(
    rows: Rows, policy: Any, cluster: dict[str, Any], at: int, *, plain: bool, **more: Any
) -> Simulation:
    """A simulation of these jobs, submitted as recorded, paused at a second."""
    jobs = make(rows)
    estimates = cluster["estimates"]
    if isinstance(estimates, type):
        cluster = cluster | {"estimates": estimates()}
    model = Simulation(jobs, scheduler=policy, plain=plain, **cluster, **more)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    return model.run(until=at)


def check_true(cluster: Cluster, found: list[WaitingReason]) -> None:
    """Check what each reason says against the cluster."""
    engine, jobs = cluster.engine, cluster.jobs
    by_row = {one.row: one for one in found}
    going = [one for one in found if one.code == ReasonCode.CAN_START]
    assert sum(one.asks for one in going) <= max(engine.free, 0)
    for one in found:
        assert one.asks == jobs.processors[one.row]
        assert one.now == engine.now
        assert one.words(Clock())
        match one.code:
            case ReasonCode.NO_ROOM:
                assert one.asks > one.free
            case ReasonCode.HEAD:
                assert one.asks > one.free
                assert one.start == UNKNOWN or one.start >= one.now
            case ReasonCode.TOO_LARGE:
                assert one.asks > one.up == engine.up
            case ReasonCode.MAINTENANCE:
                assert one.asks <= one.free
                assert engine.now + one.lasts > one.reserved == engine.closes
            case ReasonCode.CLOSED:
                assert engine.closed
                assert one.start == engine.reopens >= one.now
            case ReasonCode.BEHIND | ReasonCode.WOULD_DELAY:
                assert by_row[one.blocker].place < one.place or isinstance(
                    engine.scheduler, PlanningScheduler
                )
                assert one.number == jobs.number[one.blocker]
            case ReasonCode.LIMIT:
                assert type(engine.scheduler).charges is not OrderedScheduler.charges
            case ReasonCode.PLANNED:
                assert one.start >= one.now
            case code:
                assert code == ReasonCode.CAN_START
    if not going:
        check_delays(cluster, found)


def check_delays(cluster: Cluster, found: list[WaitingReason]) -> None:
    """Check that each job said to delay the head would: counted at the head's reservation."""
    engine, jobs = cluster.engine, cluster.jobs
    policy = engine.scheduler
    assert policy is not None
    if isinstance(policy, PlanningScheduler):
        check_reservations(cluster, policy, found)
        return
    corrects = engine.predictor is not None
    running = running_jobs(jobs, engine.running, engine.now, corrects=corrects)
    for one in found:
        if one.code != ReasonCode.WOULD_DELAY:
            continue
        assert one.asks <= engine.free
        assert engine.now + one.lasts > one.reserved, "it still runs then"
        back = sum(job.processors for job in running if job.expected_end <= one.reserved)
        left = engine.free - one.asks + back
        assert left < jobs.processors[one.blocker]
        assert left + one.asks >= jobs.processors[one.blocker], "without it the head starts"


def check_reservations(
    cluster: Cluster, policy: PlanningScheduler, found: list[WaitingReason]
) -> None:
    """Check that each job said to delay another would: drawn into a plan, that loses its place."""
    engine, jobs = cluster.engine, cluster.jobs
    if engine.closed:
        return
    waiting = waiting_jobs(jobs, engine.waiting)
    held = [job for job in waiting if job.row in policy.starts]
    running = running_jobs(jobs, engine.running, engine.now, corrects=True)
    for one in found:
        if one.code != ReasonCode.WOULD_DELAY:
            continue
        assert one.asks <= engine.free
        plan = Profile(engine.now, engine.free, running)
        for job in held:
            begin = policy.starts[job.row]
            plan.add(begin, begin + duration(job), -job.processors)
        plan.add(engine.now, engine.now + max(one.lasts, 1), -one.asks)
        short = next(time for time, free in zip(plan.times, plan.free, strict=True) if free < 0)
        over = [
            job.row
            for job in held
            if policy.starts[job.row] <= short < policy.starts[job.row] + duration(job)
        ]
        assert over[-1] == one.blocker
        assert policy.starts[one.blocker] == one.reserved


@settings(max_examples=400)
@given(workloads, policies, clusters, pauses)
def test_each_job_has_one_true_reason(
    rows: Rows, policy: str, cluster: dict[str, Any], at: int
) -> None:
    """Compiled and plain tell the same, one reason a job, each true; asking changes nothing."""
    told = []
    for plain in (True, False):
        model = paused(rows, policy, cluster, at, plain=plain)
        found = reasons_of(model.cluster)
        assert sorted(one.row for one in found) == sorted(model.cluster.waiting.tolist())
        check_true(model.cluster, found)
        assert found == reasons_of(model.cluster), "asking changes no answer"
        told.append(found)
        model.run()
        undisturbed = paused(rows, policy, cluster, FOREVER - 1, plain=plain)
        assert outcome(undisturbed.jobs) == outcome(model.jobs)
    assert told[0] == told[1]


@settings(max_examples=200)
@given(
    rows=workloads,
    platform=platforms,
    scheduler=st.sampled_from(sorted(POOL_SCHEDULERS)),
    at=pauses,
    estimates=st.sampled_from(["requested", "exact", "0.5x"]),
)
def test_on_a_platform_that_changes(
    rows: Rows, platform: list[Any], scheduler: str, at: int, estimates: str
) -> None:
    """Maintenance, processors that are down and other policies: the same holds."""
    told = []
    for plain in (True, False):
        cluster = {"processors": 7, "estimates": estimates}
        model = paused(rows, scheduler, cluster, at, plain=plain, platform=platform)
        found = reasons_of(model.cluster)
        assert sorted(one.row for one in found) == sorted(model.cluster.waiting.tolist())
        check_true(model.cluster, found)
        told.append(found)
    assert told[0] == told[1]


@settings(max_examples=300)
@given(workloads, policies, clusters, pauses)
def test_who_can_start_is_whom_the_scheduler_selects(
    rows: Rows, policy: str, cluster: dict[str, Any], at: int
) -> None:
    """Policies without a plan: the walk that explains and the one that decides are the same."""
    model = paused(rows, policy, cluster, at, plain=True)
    engine, jobs = model.cluster.engine, model.jobs
    assert isinstance(engine, PlainEngine)
    scheduler = engine.scheduler
    assert scheduler is not None
    corrects = engine.predictor is not None or scheduler.plans
    running = running_jobs(jobs, engine.running, engine.now, corrects=corrects)
    found = [one for one in reasons_of(model.cluster) if one.code == ReasonCode.CAN_START]
    assert tuple(running) == engine._expectations(), "what is believed of running jobs"
    if not isinstance(scheduler, PlanningScheduler):
        waiting = waiting_jobs(jobs, engine.waiting)
        copied = copy.deepcopy(scheduler)
        look = Look(engine.now, waiting, running, engine.free, engine.up)
        chosen = copied.select(look)
        assert {job.row for job in chosen} == {one.row for one in found}


#: Orders in which no job ever passes another while both wait.
lasting = keys.filter(lambda key: not key.endswith("slowdown"))


@settings(max_examples=200)
@given(
    workloads,
    st.just("fcfs")
    | st.builds(lambda order, how: text("easy", order=order, backfill=how), lasting, backfills)
    | st.builds(lambda by: text("order", by=by), lasting),
    tight,
    st.integers(31, 90),
)
def test_the_head_starts_when_it_is_told(rows: Rows, policy: str, processors: int, at: int) -> None:
    """Where run times are what is believed and nobody else comes, the first start is the true one.

    Those that can start now do so at once.
    """
    cluster = {"processors": processors, "overrun": "keep", "estimates": "exact"}
    model = paused(rows, policy, cluster, at, plain=False)
    found = reasons_of(model.cluster)
    model.run()
    for one in found:
        if one.code == ReasonCode.HEAD:
            assert one.start == model.jobs.start[one.row]
        if one.code == ReasonCode.CAN_START:
            assert at == model.jobs.start[one.row]


@settings(max_examples=200)
@given(workloads, st.sampled_from(["conservative", "selective:threshold=1"]), tight, pauses)
def test_nobody_starts_later_than_planned(
    rows: Rows, policy: str, processors: int, at: int
) -> None:
    """Where nobody runs longer than believed, under a plan that all or most have a place in."""
    cluster = {"processors": processors, "overrun": "kill", "estimates": "requested"}
    rows = [(*row[:3], max(row[1], row[3], 1), *row[4:]) for row in rows]
    model = paused(rows, policy, cluster, at, plain=False)
    found = reasons_of(model.cluster)
    model.run()
    for one in found:
        if one.code == ReasonCode.PLANNED:
            assert model.jobs.start[one.row] <= one.start


@settings(max_examples=200)
@given(workloads, policies, tight, pauses)
def test_played_back_as_live(rows: Rows, policy: str, processors: int, at: int) -> None:
    """At a second at which nothing happens a finished run shows what it showed then.

    Plans are not kept: there the start promised first stands for the one that is planned.
    """
    cluster = {"processors": processors, "overrun": "keep", "estimates": "requested"}
    model = paused(rows, policy, cluster, at, plain=False)
    live = reasons_of(model.cluster)
    planning = isinstance(model.cluster.engine.scheduler, PlanningScheduler)
    model.run()
    jobs = model.jobs
    assume(not np.any((jobs.submit == at) | (jobs.end == at) | (jobs.start == at)))
    again = reasons_at(jobs, at, policy, processors)
    assert sorted(one.row for one in live) == sorted(one.row for one in again)
    if policy == "conservative":
        assert {ReasonCode.PROMISED} >= {one.code for one in again}
        assert [jobs.promised[one.row] for one in live] == [one.start for one in again]
    elif not planning and not policy.startswith("fair-share"):
        assert live == again


@settings(max_examples=100)
@given(workloads, st.sampled_from(["user", "group"]), st.sampled_from(["7s", "1h"]), pauses)
def test_usage_is_recalled(rows: Rows, by: str, life: str, at: int) -> None:
    """Usage that decays is the same from the table of a run that has ended, but for rounding."""
    policy = text("fair-share", **{"half-life": life, "by": by})
    cluster = {"processors": 5, "overrun": "keep", "estimates": "requested"}
    model = paused(rows, policy, cluster, at, plain=True)
    scheduler: Any = model.cluster.engine.scheduler
    usages = {holder: scheduler.usage(holder, at) for holder in range(-1, 4)}
    model.run()
    jobs = model.jobs
    assume(not np.any(jobs.start == at))
    reasons_at(jobs, at, scheduler, 5)
    for holder, expected in usages.items():
        assert pytest.approx(expected, abs=1e-6) == scheduler.usage(holder, at)


@given(workloads, policies, pauses, st.integers(0, 5))
def test_only_what_is_asked_for(rows: Rows, policy: str, at: int, limit: int) -> None:
    """A limit gives the first reasons, rows give theirs, in the same order."""
    cluster = {"processors": 4, "overrun": "keep", "estimates": LastRun}
    model = paused(rows, policy, cluster, at, plain=False)
    found = reasons_of(model.cluster)
    assert found[:limit] == reasons_of(model.cluster, limit=limit)
    wanted = [one.row for one in found[::2]]
    assert found[::2] == reasons_of(model.cluster, rows=wanted)


def test_jobs_of_the_table_as_the_scheduler_sees_them() -> None:
    """Expected ends: of a job on time, of a late one, and of one without a run time."""
    jobs = JobTable()
    jobs.append(3, processors=1, start=[0, 0, 9], estimate=[20, 5, 0], requested_time=[20, 100, 0])
    rows = np.arange(3)
    late = running_jobs(jobs, rows, 9, corrects=False)
    assert [(1, 9), (2, 9), (0, 20)] == [(job.row, job.expected_end) for job in late]
    corrected = running_jobs(jobs, rows, 9, corrects=True)
    assert [(2, 10), (0, 20), (1, 65)] == [(job.row, job.expected_end) for job in corrected]
    assert [] == list(explain(SCHEDULERS["easy"](), Look(0, [], [], 1, 1)))
