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
from hpcrowd.environment.schedulers.names import SCHEDULERS
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.waiting_reasons import (
    explain,
    reasons_at,
    reasons_of,
    running_jobs,
    waiting_jobs,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import begun
from tests.support.policies import (
    LastRun,
    Rows,
    backfills,
    cases,
    clusters,
    keys,
    make,
    options_of,
    policies,
    text,
    workloads,
)
from tests.support.policies import begun as begun_case

pauses = st.integers(0, 90)

#: Sizes for which long queues form.
tight = st.integers(3, 8)

few = settings(max_examples=20)


def paused(
    rows: Rows, policy: Any, cluster: dict[str, Any], at: int, *, plain: bool, **more: Any
) -> Simulation:
    """A simulation of these jobs, submitted as recorded, paused at a second."""
    cluster = options_of(cluster)
    return begun(make(rows), scheduler=policy, plain=plain, **cluster, **more).run(until=at)


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
    """Check that each job said to delay another would: counted at its start, or in the plan."""
    engine, jobs = cluster.engine, cluster.jobs
    policy = engine.scheduler
    planned = policy.starts if isinstance(policy, PlanningScheduler) else {}
    plans = isinstance(policy, PlanningScheduler)
    running = running_jobs(
        jobs, engine.running, engine.now, corrects=plans or engine.predictor is not None
    )
    held = [job for job in waiting_jobs(jobs, engine.waiting) if job.row in planned]
    for one in found:
        if one.code != ReasonCode.WOULD_DELAY or (plans and engine.closed):
            continue
        assert one.asks <= engine.free
        if plans:
            plan = Profile(engine.now, engine.free, running)
            for job in held:
                begin = planned[job.row]
                plan.add(begin, begin + duration(job), -job.processors)
            plan.add(engine.now, engine.now + max(one.lasts, 1), -one.asks)
            short = next(t for t, free in zip(plan.times, plan.free, strict=True) if free < 0)
            over = [
                job.row
                for job in held
                if planned[job.row] <= short < planned[job.row] + duration(job)
            ]
            assert (over[-1], planned[one.blocker]) == (one.blocker, one.reserved)
            continue
        assert engine.now + one.lasts > one.reserved, "it still runs then"
        back = sum(job.processors for job in running if job.expected_end <= one.reserved)
        left = engine.free - one.asks + back
        assert left < jobs.processors[one.blocker] <= left + one.asks, "without it the head starts"


@few
@given(cases, policies, pauses)
def test_each_job_has_one_true_reason(case: dict[str, Any], policy: str, at: int) -> None:
    """Compiled and plain tell the same, one reason a job, each true; asking changes nothing."""
    case = case | {"policy": policy}
    told, ends = [], [begun_case(case, plain=False).run().jobs.matrix.tolist()]
    for plain in (True, False):
        model = begun_case(case, plain=plain).run(until=at)
        found = reasons_of(model.cluster)
        assert sorted(one.row for one in found) == sorted(model.cluster.waiting.tolist())
        check_true(model.cluster, found)
        assert found == reasons_of(model.cluster), "asking changes no answer"
        told.append(found)
        ends.append(model.run().jobs.matrix.tolist())
    assert told[0] == told[1]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.endurance
@settings(max_examples=500)
@given(cases, policies, pauses)
def test_each_job_has_one_true_reason_often(*drawn: Any) -> None:
    """The same for many more runs."""
    test_each_job_has_one_true_reason.hypothesis.inner_test(*drawn)  # type: ignore[attr-defined]


@few
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


#: Orders in which no job ever passes another while both wait, and plans.
lasting = keys.filter(lambda key: not key.endswith("slowdown"))
foretelling = (
    st.sampled_from(["fcfs", "conservative", "selective:threshold=1"])
    | st.builds(lambda order, how: text("easy", order=order, backfill=how), lasting, backfills)
    | st.builds(lambda by: text("order", by=by), lasting)
)


@few
@given(workloads, foretelling, tight, st.integers(31, 90))
def test_jobs_start_when_they_are_told(rows: Rows, policy: str, processors: int, at: int) -> None:
    """Where run times are what is believed and nobody else comes; planned ones may be earlier."""
    cluster = {"processors": processors, "overrun": "kill", "estimates": "exact"}
    rows = [(row[0], max(row[1], 1), *row[2:]) for row in rows]
    model = paused(rows, policy, cluster, at, plain=False)
    found = reasons_of(model.cluster)
    start = model.run().jobs.start
    for one in found:
        if one.code == ReasonCode.HEAD:
            assert one.start == start[one.row]
        if one.code == ReasonCode.CAN_START:
            assert at == start[one.row]
        if one.code == ReasonCode.PLANNED:
            assert start[one.row] <= one.start


@few
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


@few
@given(workloads, st.sampled_from(["user", "group"]), st.sampled_from(["7s", "1h"]), pauses)
def test_usage_is_recalled(rows: Rows, by: str, life: str, at: int) -> None:
    """Usage that decays is the same from the table of a run that has ended, but for rounding."""
    policy = text("fair-share", **{"half-life": life, "by": by})
    cluster = {"processors": 5, "overrun": "keep", "estimates": "requested"}
    model = paused(rows, policy, cluster, at, plain=True)
    scheduler: Any = model.cluster.engine.scheduler
    usages = {holder: scheduler.usage(holder, at) for holder in range(-1, 4)}
    jobs = model.run().jobs
    assume(not np.any(jobs.start == at))
    reasons_at(jobs, at, scheduler, 5)
    found = {holder: scheduler.usage(holder, at) for holder in usages}
    assert pytest.approx(usages, abs=1e-6) == found


@few
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
    starts, estimates, requests = [0, 0, 9, 0], [20, 5, 0, 9], [20, 100, 0, 99]
    jobs.append(4, processors=1, start=starts, estimate=estimates, requested_time=requests)
    rows = np.arange(4)
    late = running_jobs(jobs, rows, 9, corrects=False)
    assert [(1, 9), (2, 9), (3, 9), (0, 20)] == [(job.row, job.expected_end) for job in late]
    corrected = running_jobs(jobs, rows, 9, corrects=True)
    found = [(job.row, job.expected_end) for job in corrected]
    assert [(2, 10), (0, 20), (1, 65), (3, 69)] == found
    assert [] == list(explain(SCHEDULERS["easy"](), Look(0, [], [], 1, 1)))
