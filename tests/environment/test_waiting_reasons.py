"""Why jobs wait: words in tiny stories, and what holds of every reason on random workloads."""

import copy
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hpcrowd import Clock, ClusterSpec, JobTable, Scheduler, Simulation
from hpcrowd.environment.clock import DAY, moment
from hpcrowd.environment.clock import HOUR as H
from hpcrowd.environment.engine.plain import PlainEngine
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.schedulers.policies.conservative import PlanningScheduler
from hpcrowd.environment.schedulers.profile import Profile, duration
from hpcrowd.environment.waiting_reasons import running_jobs, waiting_jobs
from hpcrowd.errors import QuantityError
from hpcrowd.grids import Grid
from hpcrowd.platform import Maintenance, NodesDown, SwitchPolicy
from hpcrowd.policies import FCFS, Look, ReasonCode, RunningJob, WaitingJob, reasons_at, reasons_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import begun, ran
from tests.support.policies import (
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
from tests.support.simulations import both, simulation_of

#: Eight processors. Job 1 runs on six from Monday 00:00 to 04:00. Job 2 needs four of them; job 3
#: is long, job 4 short, job 5 too wide to start now, job 6 short and of the user of job 1.
#: (submission, run time, processors, requested time, user, group, queue)
STORY: Rows = [
    (0, 4 * H, 6, 4 * H, 1, 1, 1),
    (60, 2 * H, 4, 2 * H, 2, 1, 1),
    (120, 5 * H, 2, 5 * H, 3, 1, 2),
    (180, 3 * H, 1, 3 * H, 3, 1, 2),
    (240, 1 * H, 5, 1 * H, 4, 1, 2),
    (300, 1 * H, 3, 1 * H, 1, 1, 3),
]  # fmt: skip

#: Job 1 holds the whole machine until 04:00; the others differ in length and width.
FULL: Rows = [
    (0, 4 * H, 8, 4 * H, 1, 1, 1),
    (60, 2 * H, 4, 2 * H, 2, 1, 1),
    (120, 5 * H, 2, 5 * H, 3, 1, 2),
    (180, 1 * H, 5, 1 * H, 4, 1, 2),
]  # fmt: skip

#: The head needs the whole machine.
WIDE: Rows = [
    STORY[0], (60, 2 * H, 8, 2 * H, 2, 1, 1), STORY[2], (180, 5 * H, 1, 3 * H, 3, 1, 2)
]  # fmt: skip
KEPT: Rows = [
    STORY[0], (60, 600, 8, 600, 2, 1, 1), (1200, 60, 1, 60, 4, 1, 1),
    (1300, 5 * H, 2, 5 * H, 3, 1, 2),
]  # fmt: skip
TOO_WIDE: Rows = [(0, 4 * H, 3, 4 * H, 1, 1, 1), (60, H, 8, H, 2, 1, 1), (90, H, 4, H, 3, 1, 1)]


def words(found):
    """Reasons in words, by job number, in their order."""
    return {one.row + 1: one.words(Clock()) for one in found}


def told(policy, rows=STORY, *, until=H, processors=8, **more):
    """The reasons given at 01:00, or at another second."""
    return words(reasons_of(begun(make(rows), processors, policy, **more).run(until=until).cluster))


NONE_FREE = "processors, none is free"
BEHIND = "waits behind job 2: fcfs allows no overtaking"
HEAD = "first in the queue: requests 4 processors, {}; start expected Mon 04:00"
AT_LIMIT = "user {} is at its limit of 1 job at once"
WAITS = "none is free; no reservation below a slowdown of 1.50, it would have"
TOO_LARGE = "too large for the processors that are up: requests 8, 6 up"
WINDOW = {"platform": [Maintenance(5 * H, 30 * H)]}
DOWN = {"platform": [NodesDown(30, None, 2, "fail")], "until": 120, "seed": 0}
ANNOUNCED = "would run into the maintenance announced for Mon 05:00: expected to run {}.0 h"


def in_order(by, places):
    """The reasons of those in FULL, from the first in an order to the last: job: processors."""
    first, *others = places
    start = f"first {by}: requests {places[first]} {NONE_FREE}; start expected Mon 04:00"
    return {first: start} | {
        job: f"place {place} {by}: requests {places[job]} {NONE_FREE}"
        for place, job in enumerate(others, 2)
    }


#: Policy, jobs, what else is given, and the words by job.
WORDS: dict[str, tuple[str, Rows, dict[str, Any], dict[int, str]]] = {
    "the head of fcfs knows when it may start, the others who is before them": (
        "fcfs", STORY, {},
        {2: HEAD.format("2 are free"), 3: BEHIND, 4: BEHIND, 5: BEHIND, 6: BEHIND}),
    # Job 3 takes what is spare next to the head at 04:00, so there is no room for the rest.
    "easy": (
        "easy", STORY, {},
        {
            2: HEAD.format("none is free"), 4: "requests 1 processor, none is free",
            5: f"requests 5 {NONE_FREE}", 6: f"requests 3 {NONE_FREE}"}),
    "a head that needs the whole machine leaves nothing spare": (
        "easy", WIDE, {"until": 150},
        {
            2: "first in the queue: requests 8 processors, 2 are free; start expected Mon 04:00",
            3: "fits, but would delay job 2 (reserved Mon 04:00): expected to run 5.0 h"}),
    "another order is reported with places, where others overtake": (
        "easy:order=-processors", FULL, {},
        in_order("by processors, large ones first", {4: 5, 2: 4, 3: 2})),
    "an order without overtaking": (
        "sjf", FULL, {},
        {4: f"first by estimate: requests 5 {NONE_FREE}; start expected Mon 04:00",
         2: "place 2 by estimate: waits behind job 4: sjf allows no overtaking",
         3: "place 3 by estimate: waits behind job 4: sjf allows no overtaking"}),
    "creasy": ("creasy", FULL, {}, in_order("by seniority and criticality", {4: 5, 2: 4, 3: 2})),
    "its plan": (
        "wfp3:backfill=conservative", FULL, {},
        {4: "planned for Mon 04:00", 2: "planned for Mon 05:00", 3: "planned for Mon 04:00"}),
    "conservative tells its plan": (
        "conservative", FULL, {},
        {2: "planned for Mon 04:00", 3: "planned for Mon 04:00", 4: "planned for Mon 06:00"}),
    "selective shows who has a reservation, and how far the others are": (
        "selective:threshold=1.5", FULL, {},
        {
            2: f"requests 4 processors, {WAITS} 1.49", 3: f"requests 2 processors, {WAITS} 1.19",
            4: f"requests 5 {NONE_FREE}; gets a reservation next"}),
    "an arrival makes it look": (
        "selective:threshold=1.5", [*FULL, (H - 1, 60, 1, 60, 5, 1, 1)], {},
        {4: "planned for Mon 04:00"}),
    "selective keeps reservations": (
        "selective:threshold=1.5", KEPT, {},
        {2: "planned for Mon 04:00",
         4: "fits, but would delay job 2 (reserved Mon 04:00): expected to run 5.0 h; no "
            "reservation below a slowdown of 1.50, it would have 1.13"}),
    "a limit is named with whose it is": (
        "multi-queue:user-jobs=1", STORY, {"processors": 9}, {4: AT_LIMIT.format(3)}),
    "the head counts": (
        "multi-queue:user-jobs=1", [*STORY[:2], (90, H, 1, H, 2, 1, 1)], {},
        {3: f"{AT_LIMIT.format(2)}, with job 2, which goes first"}),
    "a limit of processors": (
        "multi-queue:queue-processors=7", [STORY[0], (60, H, 2, H, 2, 1, 1)], {},
        {2: "requests 2 processors, queue 1 holds 6 and may hold 7"}),
    "fair share tells the place": (
        "fair-share", [STORY[0], (60, H, 3, H, 1, 1, 1), (120, 2 * H, 4, 2 * H, 2, 1, 1)], {},
        {
            3: "first by fair share: requests 4 processors, 2 are free; start expected Mon 04:00",
            2: "place 2 by fair share: requests 3 processors, 2 are free"}),
    "adaptive shows the reasons of the policy in charge": (
        "adaptive", STORY, {"platform": [SwitchPolicy(30 * 60, "fcfs")]}, {5: BEHIND}),
    "jobs would run into maintenance": (
        "easy", STORY[:3], {**WINDOW, "until": 150}, {3: ANNOUNCED.format(5)}),
    "the cluster is closed": (
        "easy", STORY[:2], {**WINDOW, "until": 6 * H}, {2: "cluster is closed until Tue 06:00"}),
    "it opens": (
        "easy", STORY[:2], {**WINDOW, "until": 30 * H}, {2: "cluster is closed and opens now"}),
    **{f"{policy}: larger than what is up": (policy, TOO_WIDE, DOWN, {2: TOO_LARGE})
       for policy in ("fcfs", "easy", "conservative", "selective", "fair-share")},
    "a job that outruns its estimate is believed to end any moment": (
        "easy", [(0, 4 * H, 8, H, 1, 1, 1), (60, H, 8, H, 2, 1, 1)], {"until": 2 * H},
        {2: f"first in the queue: requests 8 {NONE_FREE}; "
            "start expected at any moment, as jobs run longer than expected"}),
    # Job 1 has ended at this second, and the scheduler has its pass only after arrivals.
    "the pass is still to come": (
        "easy", STORY[:2], {"until": 4 * H}, {2: "fits: may start at the next scheduling pass"}),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", WORDS)
def test_words(name, plain):
    """Each job hears what keeps it waiting."""
    policy, rows, given, expected = WORDS[name]
    found = told(policy, rows, plain=plain, **given)
    assert expected == {job: found[job] for job in expected}
    assert [*expected] == [job for job in found if job in expected]


@both
@pytest.mark.parametrize("policy", ["easy", "sjf", "conservative"])
def test_arrived_and_not_looked_at(policy, plain):
    """A user whose job is rejected at once sees who has come, before the pass of its second."""
    found: dict[int, str] = {}
    jobs = make([*STORY[:2], (H, H, 2, H, 3, 1, 1), (H, H, 99, H, 3, 1, 1)])
    model = Simulation(jobs, 8, policy, plain=plain)

    class Listener:
        def on_finished(self, unit, now):
            found.update(words(reasons_of(model.cluster)))

    model.cluster.submit(np.arange(3), jobs.recorded_submit[:3])
    model.submit(Listener(), np.array([3]), H)
    model.run()
    assert [2, 3] == sorted(found)
    assert "arrived in this second, not considered yet" == found[3]


@both
def test_recorded_schedule(plain):
    """Jobs have their recorded starts, also when played back."""
    jobs = make(STORY[:2])
    jobs.recorded_start[1] = 3 * H
    model = begun(jobs, 8, "recorded", plain=plain).run(until=H)
    assert {2: "recorded to start Mon 03:00"} == words(reasons_of(model.cluster))
    model.run()
    assert {2: "recorded to start Mon 03:00"} == words(reasons_at(jobs, H, "recorded", 8))


class Odd(Scheduler):
    """Starts jobs with an odd number of processors only, and says nothing of why."""

    name = "odd"

    def select(self, look):
        """The first odd one that fits."""
        odd = [job for job in look.waiting if job.processors % 2]
        return [job for job in odd if job.processors <= look.free][:1]


class Narrow(FCFS):
    """FCFS for narrow jobs only; does not explain that."""

    name = "narrow"

    def select(self, look):
        """As FCFS, of the narrow ones."""
        narrow = [job for job in look.waiting if job.processors < 3]
        return super().select(look._replace(waiting=narrow))


class ByUser(OrderedScheduler):
    """Your own order; explains itself."""

    name = "seat"

    def key(self, job, now):
        """Large numbers first."""
        return -job.user


TWO = (60, H, 2, H, 2, 1, 1)


@pytest.mark.parametrize(
    ("kind", "rows", "expected"),
    [
        (Odd, [(0, 4 * H, 7, 4 * H, 1, 1, 1), TWO, STORY[4]],
         {2: "requests 2 processors, 1 is free", 3: "requests 5 processors, 1 is free"}),
        (Odd, [(0, 4 * H, 5, 4 * H, 1, 1, 1), TWO],
         {2: "odd did not choose it: requests 2 processors, 3 are free"}),
        (Narrow, [STORY[1]], {1: "narrow did not choose it: requests 4 processors, 8 are free"}),
        (ByUser, FULL, {3: "place 2 by seat: waits behind job 4: seat allows no overtaking"}),
    ],
)  # fmt: skip
def test_schedulers_of_ones_own(kind, rows, expected):
    """Without its own words: processors, and its name; with an order: all that follows."""
    found = told(kind(), rows)
    assert expected == {job: found[job] for job in expected}


@both
@pytest.mark.parametrize("policy", ["first-fit", "least-loaded"])
def test_jobs_with_the_broker_of_a_grid(policy, plain):
    """No cluster has as many free; a job that was sent on waits at its cluster."""
    jobs = JobTable()
    jobs.append(3, processors=[3, 4, 2], run_time=H, requested_time=H, user=1)
    others = {"fast": ClusterSpec(2, "easy", 2.0)}
    model = simulation_of(jobs, 4, "easy", others=others, grid=Grid(policy), plain=plain)
    broker = model.place(GRID)
    broker.submit([0, 1, 2], [0, 1, 2])
    model.run(until=30)
    held, waiting = words(reasons_of(broker)), words(reasons_of(model.cluster))
    if policy == "least-loaded":
        expected = "first in the queue: requests 4 processors, 1 is free; start expected Mon 01:00"
        assert ({}, {2: expected}) == (held, waiting)
        return
    assert {2: "no cluster of the grid has 4 free"} == held
    model.run()
    again = words(reasons_at(jobs, 30, "easy", 4, cluster=0))
    assert {2: "held by the broker of the grid: requests 4 processors"} == again


def test_components_that_are_to_start_together():
    """Each waits for room for all."""
    jobs = JobTable()
    jobs.append(3, processors=[3, 3, 2], run_time=H, requested_time=H, user=1)
    others = {"fast": ClusterSpec(2, "easy")}
    model = simulation_of(jobs, 4, "easy", others=others, grid=Grid("first-fit", True))
    broker = broker_of(model)
    assert broker is not None
    broker.submit([0], [0])
    broker.submit_together([1, 2], 1)
    model.run(until=30)
    together = "its 2 components are to start together"
    assert {
        2: f"no cluster of the grid has 3 free; {together}",
        3: f"no cluster of the grid has 2 free; {together}",
    } == words(reasons_of(broker))
    model.run(until=H)
    expected = "fits: may start at the next scheduling pass"
    assert {2: expected, 3: expected} == words(reasons_of(broker))


def test_played_back():
    """From the table of a run that has ended, also during maintenance; plans as promised."""
    jobs = ran(make(STORY), 8, "easy").jobs
    closed = reasons_at(jobs, H, FCFS(), 8, windows=[(1800, 2 * H)])
    assert {"cluster is closed until Mon 02:00"} == set(words(closed).values())
    with pytest.raises(QuantityError, match="processors -1: must be 0 or more"):
        reasons_at(jobs, H, "easy", -1)
    jobs = ran(make([(0, 2 * H, 8, H, 1, 1, 1), STORY[1]]), 8, "conservative").jobs
    found = words(reasons_at(jobs, 90 * 60, "conservative", 8))
    assert {2: "promised to start by Mon 01:00, which has passed"} == found


def test_moments_near_and_far():
    """Near by day and time, else with the date, or the week where the trace has no start."""
    clock = Clock(int(datetime(2024, 1, 8, tzinfo=UTC).timestamp()), known=True)
    assert "Tue 14:02" == moment(clock, DAY + 14 * H + 125, near=0)
    assert "Mon 2024-01-15 00:00" == moment(clock, 7 * DAY, near=0)
    assert "week 2 Mon 00:00" == moment(Clock(), 7 * DAY, near=0)
    assert "Mon 2024-01-15 00:00:00" == moment(clock, 7 * DAY)


def test_without_a_table_rows_are_named():
    """A scheduler that is asked itself knows no job numbers."""
    waiting = [WaitingJob(7, 4, H, 0), WaitingJob(9, 2, H, 0)]
    running = [RunningJob(3, 6, 2 * H)]
    _, second = FCFS().reasons(Look(0, waiting, running, 2, 8))
    assert "waits behind the job in row 7: fcfs allows no overtaking" == second.words(Clock())


pauses = st.integers(0, 90)

#: Sizes for which long queues form.
tight = st.integers(3, 8)

few = settings(max_examples=20)


def paused(rows, policy, cluster, at, *, plain, **more):
    """A simulation of these jobs, submitted as recorded, paused at a second."""
    cluster = options_of(cluster)
    return begun(make(rows), scheduler=policy, plain=plain, **cluster, **more).run(until=at)


def check_true(cluster, found):
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


def check_delays(cluster, found):
    """Check that each job said to delay another would: counted at its start, or in the plan."""
    engine, jobs = cluster.engine, cluster.jobs
    policy = engine.scheduler
    planned = getattr(policy, "starts", {})  # none before the first pass
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
@given(cases, policies, pauses, st.integers(0, 5))
def test_each_job_has_one_true_reason(case, policy, at, limit):
    """Compiled and plain give the same, one reason a job, each true; asking changes nothing.

    A limit gives the first reasons, rows give theirs, in the same order.
    """
    case = case | {"policy": policy}
    told, ends = [], [begun_case(case, plain=False).run().jobs.matrix.tolist()]
    for plain in (True, False):
        model = begun_case(case, plain=plain).run(until=at)
        found = reasons_of(model.cluster)
        assert sorted(one.row for one in found) == sorted(model.cluster.waiting.tolist())
        check_true(model.cluster, found)
        assert found == reasons_of(model.cluster), "asking changes no answer"
        assert found[:limit] == reasons_of(model.cluster, limit=limit)
        assert found[::2] == reasons_of(model.cluster, rows=[one.row for one in found[::2]])
        told.append(found)
        ends.append(model.run().jobs.matrix.tolist())
    assert told[0] == told[1]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.endurance
@settings(max_examples=500)
@given(cases, policies, pauses, st.integers(0, 5))
def test_each_job_has_one_true_reason_often(case, policy, at, limit):
    """The same for many more runs."""
    test_each_job_has_one_true_reason.hypothesis.inner_test(case, policy, at, limit)


@few
@given(workloads, policies, clusters, pauses)
def test_who_can_start_is_whom_the_scheduler_selects(rows, policy, cluster, at):
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
def test_jobs_start_when_they_are_told(rows, policy, processors, at):
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
def test_played_back_as_live(rows, policy, processors, at):
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
def test_usage_is_recalled(rows, by, life, at):
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
