"""A cap on power over time: who starts, slows down and is stopped; it is never exceeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work, add_users
from hpcrowd.environment import (
    ClusterSpec,
    JobTable,
    NodesDown,
    Resize,
    Simulation,
    SpeedChange,
    State,
)
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SignalError
from hpcrowd.environment.machine.model import Machine, NodeType
from hpcrowd.environment.power.caps import PowerCap, SpeedLaw
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.draws import DrawTable
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.state.begin import begin_from
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.engine.test_properties import Rows, make, outcome, workloads

MakeJobs = Callable[..., JobTable]

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])

#: Processors of the machine in the properties.
SIZE = 7

#: W of an idle processor, and W that a busy one adds.
IDLE, BUSY = 2.0, 10.0


def power(cap: PowerCap | None, idle: float = IDLE, busy: float = BUSY) -> Power:
    """The description of nodes with one processor."""
    return Power((NodePower("node", idle, busy),), cap=cap)


def over_time(*values: float, step: int = 100) -> Signal:
    """A limit that changes every so often."""
    return Signal(np.arange(len(values)) * step, np.array(values))


def simulate(
    jobs: JobTable, processors: int, cap: PowerCap, scheduler: str = "easy", **options: Any
) -> Simulation:
    """Run with all jobs submitted as recorded."""
    model = Simulation(jobs, processors, scheduler, power=power(cap), **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return model


def attempts(model: Simulation) -> list[tuple[int, int, int, str, str]]:
    """Row, start, end, cause and fate of each run that was stopped."""
    return [(one.row, one.start, one.end, one.cause, one.fate) for one in model.cluster.attempts]


@both
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative"])
def test_a_constant_cap_is_a_smaller_machine(
    make_jobs: MakeJobs, scheduler: str, plain: bool
) -> None:
    """Of four processors two may be busy; a third job waits for one that ends."""
    jobs = make_jobs((0, 50, 1), (0, 80, 1), (5, 10, 1))
    model = simulate(jobs, 4, PowerCap(4 * IDLE + 2 * BUSY), scheduler, plain=plain)
    assert [0, 0, 50] == jobs.start.tolist()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 28.0)] == timeline.caps
    assert [(0, 2)] == timeline.capped
    assert [(0, 1.0)] == timeline.levels


@both
def test_the_head_of_the_queue_does_not_starve(make_jobs: MakeJobs, plain: bool) -> None:
    """EASY reserves for a job that fits under the cap, so that a long small one waits behind it."""
    jobs = make_jobs((0, 50, 2), (1, 10, 3), (2, 500, 1), (3, 40, 1))
    simulate(jobs, 5, PowerCap(5 * IDLE + 3 * BUSY), plain=plain)
    assert [0, 50, 60, 3] == jobs.start.tolist()


@both
def test_nothing_runs_under_a_cap_at_the_idle_power(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs wait while idle processors use up the cap; for ever, they are rejected."""
    jobs = make_jobs((0, 50, 1), (5, 10, 4))
    model = simulate(jobs, 4, PowerCap(over_time(4 * IDLE, 4 * IDLE + 0.1)), plain=plain)
    assert [-1, -1] == jobs.start.tolist()
    assert [State.UNFINISHED] * 2 == jobs.state.tolist()
    assert 2 == len(model.cluster.waiting)
    jobs = make_jobs((0, 50, 1), (5, 10, 4))
    simulate(jobs, 4, PowerCap(4 * IDLE), plain=plain)
    assert [State.REJECTED] * 2 == jobs.state.tolist()


@both
def test_a_job_too_large_for_the_cap_waits_until_it_rises(make_jobs: MakeJobs, plain: bool) -> None:
    """It is not rejected, and smaller jobs run meanwhile."""
    jobs = make_jobs((0, 50, 4), (5, 10, 1))
    simulate(jobs, 4, PowerCap(over_time(28, 48)), plain=plain)
    assert [100, 5] == jobs.start.tolist()


@both
def test_a_falling_cap_stops_the_newest(make_jobs: MakeJobs, plain: bool) -> None:
    """Without a speed law, what does not fit is put back into the queue, the oldest kept."""
    jobs = make_jobs((0, 150, 2), (10, 150, 1), (20, 150, 1))
    model = simulate(jobs, 4, PowerCap(over_time(48, 28)), plain=plain)
    assert [(1, 10, 100, "power", "requeue"), (2, 20, 100, "power", "requeue")] == attempts(model)
    assert [0, 150, 150] == jobs.start.tolist()
    account = model.cluster.account(model.time)
    assert (0, 2) == (account["down_processor_s"], account["runs_stopped"])
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 4, 4)] == timeline.history
    assert [(0, 4), (100, 2)] == timeline.capped


@both
def test_a_newer_job_that_fits_is_kept(make_jobs: MakeJobs, plain: bool) -> None:
    """The wide job of the middle is stopped, not the narrow one after it."""
    jobs = make_jobs((0, 150, 1), (10, 150, 2), (20, 150, 1))
    model = simulate(jobs, 4, PowerCap(over_time(48, 28)), plain=plain)
    assert [(1, 10, 100, "power", "requeue")] == attempts(model)
    assert [0, 170, 20] == jobs.start.tolist()


@both
def test_stopped_jobs_may_fail(make_jobs: MakeJobs, plain: bool) -> None:
    """With this fate they end when the cap falls."""
    jobs = make_jobs((0, 150, 2), (10, 150, 2))
    model = simulate(jobs, 4, PowerCap(over_time(48, 28), stop="fail"), plain=plain)
    assert [(1, 10, 100, "power", "fail")] == attempts(model)
    assert [State.COMPLETED, State.FAILED] == jobs.state.tolist()
    assert [150, 100] == jobs.end.tolist()


@both
def test_a_soft_cap_limits_starts_only(make_jobs: MakeJobs, plain: bool) -> None:
    """What runs continues beyond the cap; the next job waits until there is room under it."""
    jobs = make_jobs((0, 150, 2), (10, 150, 2), (110, 10, 1))
    model = simulate(jobs, 4, PowerCap(over_time(48, 28), stop="none"), plain=plain)
    assert [] == attempts(model)
    assert [0, 10, 160] == jobs.start.tolist()


@both
@pytest.mark.parametrize(("beta", "end"), [(1.0, 125), (0.5, 117), (0.0, 100)])
def test_a_falling_cap_slows_down(make_jobs: MakeJobs, plain: bool, beta: float, end: int) -> None:
    """The clock is halved from 50 to 100; by beta the run time of that part doubles or stays."""
    law = SpeedLaw(beta, exponent=1, levels=(1, 0.5))
    jobs = make_jobs((0, 100, 4))
    model = simulate(jobs, 4, PowerCap(over_time(48, 28, 48, step=50), law), plain=plain)
    assert [0] == jobs.start.tolist()
    assert [end] == jobs.end.tolist()
    assert [end] == jobs.run_time.tolist()
    assert [] == attempts(model)
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 1.0), (50, 0.5), (100, 1.0)] == timeline.levels


@both
def test_jobs_start_at_the_clock_of_the_machine(make_jobs: MakeJobs, plain: bool) -> None:
    """At half the clock twice the processors may be busy, and a job takes twice as long."""
    law = SpeedLaw(1, exponent=1, levels=(1, 0.5))
    jobs = make_jobs((0, 90, 3), (60, 20, 1), (61, 20, 1))
    simulate(jobs, 4, PowerCap(over_time(48, 28, step=50), law), plain=plain)
    assert [0, 60, 100] == jobs.start.tolist()
    assert [130, 100, 140] == jobs.end.tolist()


@both
def test_the_highest_clock_that_fits(make_jobs: MakeJobs, plain: bool) -> None:
    """What runs chooses the level; only what does not fit at the lowest is stopped."""
    law = SpeedLaw(0, levels=(1, 0.8, 0.5))
    jobs = make_jobs((0, 500, 2), (0, 500, 2), (0, 500, 2))
    # 60 W at 0.8: 30.72 W; at 0.5: 7.5 W
    limits = over_time(72, 12 + 30.72, 12 + 30.71, 12 + 7.5, 12 + 7.49, 72)
    model = simulate(jobs, 6, PowerCap(limits, law), plain=plain)
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 1.0), (100, 0.8), (200, 0.5), (500, 1.0)] == timeline.levels
    assert [(0, 6), (400, 5), (500, 6)] == timeline.capped
    assert [(2, 0, 400, "power", "requeue")] == attempts(model)


@both
def test_processors_that_are_down_draw_nothing(make_jobs: MakeJobs, plain: bool) -> None:
    """Two that are down leave their idle power to others, which slow down as they come up."""
    law = SpeedLaw(1, exponent=1, levels=(1, 0.5))
    down = NodesDown(0, 100, 2)
    # Idle 4 x 5 W; with two down there are 10 W more, enough for one more processor.
    jobs = make_jobs((1, 150, 2))
    model = Simulation(jobs, 4, power=power(PowerCap(30, law), 5, 10), platform=[down], plain=plain)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 2)] == timeline.capped
    assert [(0, 4, 4), (0, 4, 2), (100, 4, 4)] == timeline.history
    assert [(0, 1.0), (100, 0.5)] == timeline.levels
    assert [1, 202] == [int(jobs.start[0]), int(jobs.end[0])]


@both
def test_a_run_that_begins_beyond_the_cap(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs that run already slow down at once, those that wait run at that clock."""
    law = SpeedLaw(1, exponent=1, levels=(1, 0.5))
    jobs = make_jobs((0, 100, 4), (5, 10, 4))
    jobs.start[0] = 0
    model = Simulation(jobs, 4, power=power(PowerCap(28, law)), plain=plain)
    begin_from(model, 10, np.array([0]), np.array([1]))
    model.run()
    assert [190, 210] == jobs.end.tolist()


def with_draw(
    jobs: JobTable, watts: dict[str, float], cap: PowerCap, by: Any = "processors", **options: Any
) -> Simulation:
    """The simulation after a run in which jobs draw by their processors or their user."""
    node = NodePower("node", IDLE, BUSY)
    description = Power((node,), DrawTable(by, watts), cap=cap)
    model = Simulation(jobs, 4, power=description, **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return model


@both
def test_every_start_counts_as_the_most_demanding_job(make_jobs: MakeJobs, plain: bool) -> None:
    """One processor more of a frugal job would fit, but one of the other job would not."""
    jobs = make_jobs((0, 50, 1), (0, 50, 1), (0, 50, 1), (0, 50, 2))
    # With their share of 4 x 2 W when idle, jobs draw 5 and 15 W, so that they add 3 and 13.
    cap = PowerCap(4 * IDLE + 38)
    model = with_draw(jobs, {"1": 5.0, "2": 15.0}, cap, plain=plain)
    assert [0, 0, 50, 100] == jobs.start.tolist()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 2)] == timeline.capped


@both
def test_what_runs_counts_with_what_it_draws(make_jobs: MakeJobs, plain: bool) -> None:
    """Frugal jobs run on under a cap under which only one processor could be demanding."""
    jobs = make_jobs((0, 150, 1), (0, 150, 1), (0, 150, 2))
    cap = PowerCap(over_time(60, 22, 60))
    model = with_draw(jobs, {"1": 5.0, "2": 15.0}, cap, plain=plain)
    assert [(2, 0, 100, "power", "requeue")] == attempts(model)
    assert [0, 0, 200] == jobs.start.tolist()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 4), (100, 1), (200, 4)] == timeline.capped


def test_measured_power_counts(make_jobs: MakeJobs) -> None:
    """What was measured of jobs is set before the run, and counts like a draw."""
    jobs = make_jobs((0, 50, 1), (0, 50, 1), (0, 50, 1))
    model = Simulation(jobs, 4, power=power(PowerCap(4 * IDLE + 30)))
    assert model.power is not None
    model.power.measured = np.array([17.0, -1.0, 12.0])
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    assert [0, 0, 50] == jobs.start.tolist()


@both
def test_jobs_that_are_made_up_later_count(make_jobs: MakeJobs, plain: bool) -> None:
    """When a job comes that draws more than any before, fewer processors may be busy."""
    jobs = make_jobs((0, 5, 1), (20, 50, 1), (20, 50, 1), (20, 50, 1))
    node = NodePower("node", IDLE, BUSY)
    draw = DrawTable("processors", {"2": 17.0})
    description = Power((node,), draw, cap=PowerCap(4 * IDLE + 30))
    model = Simulation(jobs, 4, power=description, plain=plain)
    add_users(model, Work.of(jobs), "rigid")
    model.run(until=10)
    rows = jobs.append(1, processors=2, run_time=50, requested_time=50)
    model.cluster.submit(rows, 20)
    model.run()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 3), (10, 2)] == timeline.capped
    assert [0, 20, 20, 70, 120] == jobs.start.tolist()


def test_several_processors_of_a_node_share_its_idle_power(make_jobs: MakeJobs) -> None:
    """A node of four processors with 10 W leaves 20 of 30 W for busy ones."""
    jobs = make_jobs((0, 50, 1), (0, 50, 1), (0, 50, 1))
    node = NodePower("n", 10, 9.9, processors=4)
    model = Simulation(jobs, 4, power=Power((node,), cap=PowerCap(30)))
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    assert [0, 0, 50] == jobs.start.tolist()


def test_a_cap_by_date(make_jobs: MakeJobs) -> None:
    """Dates are those of the trace; the last limit holds after the end of the signal."""
    start = 1_700_000_000
    limits = Signal(start + np.array([-100, 0, 100, 200]), np.array([1.0, 28, 28, 48]), True, "cap")
    jobs = make_jobs((0, 50, 4), (900, 50, 4))
    model = simulate(jobs, 4, PowerCap(limits), clock=Clock(start))
    assert [200, 900] == jobs.start.tolist()
    timeline = model.cluster.timeline
    assert timeline is not None
    assert [(0, 28.0), (200, 48.0)] == timeline.caps
    with pytest.raises(SignalError, match="no start time"):
        simulate(make_jobs((0, 50, 4)), 4, PowerCap(limits))


def refused(call: Callable[[], object]) -> str:
    """Return the one line of an error."""
    with pytest.raises(QuantityError) as found:
        call()
    message = str(found.value)
    assert "\n" not in message
    return message


def test_a_cap_below_the_idle_power_is_refused(make_jobs: MakeJobs) -> None:
    """At any second, also of a machine that grows."""
    jobs = make_jobs((0, 50, 4))
    assert (
        "power cap 7.9 W from 100 s: below the 8 W that 4 idle processors draw; raise the cap, or "
        "shrink the machine with a Resize"
    ) == refused(lambda: simulate(jobs, 4, PowerCap(over_time(28, 7.9))))
    assert "power cap 28 W from 50 s: below the 40 W" in refused(
        lambda: simulate(jobs, 4, PowerCap(28), platform=[Resize(50, 20)])
    )
    simulate(jobs, 4, PowerCap(over_time(28, 7.9, 28)), platform=[Resize(100, 3), Resize(200, 4)])


def test_where_there_can_be_no_cap(make_jobs: MakeJobs) -> None:
    """The recorded schedule, machines of nodes and clusters other than the first have none."""
    jobs = make_jobs((0, 50, 4))
    cap = PowerCap(28)
    assert "choose a scheduler" in refused(lambda: simulate(jobs, 4, cap, "recorded"))
    machine = Machine(nodes=(NodeType(name="n[1-4]", cores=1),))
    assert "leave out --machine" in refused(lambda: simulate(jobs, 4, cap, machine=machine))
    others = {"north": ClusterSpec(4, power=power(cap))}
    assert "only the first cluster" in refused(lambda: Simulation(jobs, 4, others=others))


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: PowerCap(-1), "must be from 0"),
        (lambda: PowerCap(float("nan")), "must be from 0"),
        (lambda: PowerCap(over_time(1, -1)), "must be from 0"),
        (lambda: PowerCap(1, stop="resubmit"), "requeue"),  # type: ignore[arg-type]
        (lambda: SpeedLaw(1.1), "must be from 0 to 1"),
        (lambda: SpeedLaw(0.5, levels=(0.9, 0.8)), "levels 0.9, 0.8: must begin with 1"),
        (lambda: SpeedLaw(0.5, levels=(1, 0.8, 0.8)), "must begin with 1 and fall"),
        (lambda: SpeedLaw(0.5, levels=()), "levels none"),
        (lambda: SpeedLaw(0.5, levels=(1, 0)), "must be from 0.05"),
    ],
)
def test_caps_and_laws_that_have_no_meaning(make: Callable[[], object], rule: str) -> None:
    """Each is refused with the rule."""
    assert rule in refused(make)


# What holds of every schedule.

laws = st.none() | st.builds(
    SpeedLaw,
    beta=st.sampled_from([0, 0.3, 1]),
    exponent=st.sampled_from([1, 2.4, 3]),
    levels=st.sampled_from([(1, 0.9, 0.8, 0.7, 0.6), (1, 0.5)]),
)
limits = st.lists(st.floats(SIZE * IDLE, SIZE * (IDLE + BUSY) + 5), min_size=2, max_size=8).map(
    lambda values: over_time(*values, step=9)
)
#: The last limit lets everything run that the machine can run at all.
caps = st.builds(
    lambda limit, law, stop: PowerCap(limit, law, stop),
    limits.map(lambda one: over_time(*one.values, 1000, step=9)) | st.floats(SIZE * IDLE, 100),
    laws,
    st.sampled_from(["requeue", "fail"]),
)
downs = st.builds(
    lambda at, lasts, processors: NodesDown(at, at + lasts, processors),
    st.integers(0, 60),
    st.integers(1, 30),
    st.integers(1, 3),
)
shrinks = st.integers(0, 60).map(lambda at: Resize(at, 6))
platforms = st.tuples(
    st.lists(downs, max_size=2),
    st.lists(shrinks, max_size=1),
    st.lists(st.builds(SpeedChange, st.integers(0, 60), st.sampled_from([0.5, 2])), max_size=1),
).map(lambda kinds: [change for kind in kinds for change in kind])
schedulers = st.sampled_from(["fcfs", "easy", "conservative", "sjf"])


def run(rows: Rows, cap: PowerCap | None, scheduler: str, **options: Any) -> Simulation:
    """The simulation after the run."""
    jobs = make(rows)
    model = Simulation(jobs, SIZE, scheduler, power=power(cap), **options)
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    return model


def steps(history: list[tuple[int, float]], seconds: int) -> np.ndarray:
    """The value at each second, from the seconds at which it changes."""
    at, values = np.array(history).T
    found: np.ndarray = values[np.searchsorted(at, np.arange(seconds), side="right") - 1]
    return found


def busy_processors(model: Simulation, each: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Busy processors at each second, and what they add in W at full clock.

    From the jobs and the runs that were stopped, with W per processor by the size of jobs.
    """
    jobs = model.jobs
    ran = jobs.start >= 0
    runs = [*zip(jobs.start[ran], jobs.end[ran], jobs.processors[ran], strict=True)]
    # The last run of a job that failed is in the table and in the list of attempts.
    runs += [
        (one.start, one.end, one.processors) for one in model.cluster.attempts if one.fate != "fail"
    ]
    last = max([1, *(end for _, end, _ in runs)])
    busy, added = np.zeros(last, np.int64), np.zeros(last)
    for start, end, held in runs:
        busy[start:end] += held
        added[start:end] += held * each[held]
    return busy, added


def check_never_exceeded(model: Simulation, cap: PowerCap, each: np.ndarray) -> None:
    """Compare the power at each second, computed from the schedule, with the cap."""
    timeline = model.cluster.timeline
    assert timeline is not None
    busy, added = busy_processors(model, each)
    up = steps([(at, there) for at, _, there in timeline.history], len(busy))
    clock = steps(timeline.levels, len(busy)) if timeline.levels else np.ones(len(busy))
    exponent = 1 if cap.law is None else cap.law.exponent
    watts = np.maximum(up, busy) * IDLE + added * clock**exponent
    if isinstance(cap.limit, Signal):
        limit = steps([*zip(cap.limit.times, cap.limit.values, strict=True)], len(busy))
    else:
        limit = np.full(len(busy), cap.limit)
    assert np.all(watts <= limit * (1 + 1e-12))


@settings(max_examples=150)
@given(workloads, caps, platforms, schedulers, st.booleans())
def test_no_cap_is_exceeded_at_any_second(
    rows: Rows, cap: PowerCap, platform: list[Any], scheduler: str, plain: bool
) -> None:
    """Idle power of what is up, and of the jobs that run at the present clock."""
    model = run(rows, cap, scheduler, platform=platform, plain=plain)
    check_never_exceeded(model, cap, np.full(SIZE + 1, BUSY))
    # Jobs in are jobs out.
    assert len(rows) == sum(model.jobs.count(state) for state in State)
    if isinstance(cap.limit, Signal):
        waits = model.jobs.state == State.UNFINISHED
        assert not np.any(waits)


@settings(max_examples=150)
@given(
    workloads,
    caps,
    platforms,
    st.dictionaries(st.sampled_from("1234567"), st.floats(0, 30), max_size=4),
    st.booleans(),
)
def test_no_cap_is_exceeded_where_jobs_draw_differently(
    rows: Rows, cap: PowerCap, platform: list[Any], watts: dict[str, float], plain: bool
) -> None:
    """The same with W per processor by the size of jobs."""
    jobs = make(rows)
    model = Simulation(
        jobs,
        SIZE,
        power=Power((NodePower("node", IDLE, BUSY),), DrawTable("processors", watts), cap=cap),
        platform=platform,
        plain=plain,
    )
    add_users(model, Work.of(jobs), "rigid")
    model.run()
    each = np.array([watts.get(str(size), IDLE + BUSY) for size in range(SIZE + 1)])
    check_never_exceeded(model, cap, np.maximum(each - IDLE, 0))


@settings(max_examples=150)
@given(workloads, caps, platforms, schedulers, st.sampled_from(["keep", "kill"]))
def test_compiled_equals_plain(
    rows: Rows, cap: PowerCap, platform: list[Any], scheduler: str, overrun: str
) -> None:
    """Both engines give the same schedule, the same stopped runs and the same clock."""
    stories = []
    for plain in (True, False):
        model = run(rows, cap, scheduler, platform=platform, plain=plain, overrun=overrun)
        timeline = model.cluster.timeline
        assert timeline is not None
        history = timeline.caps, timeline.capped, timeline.levels, timeline.history
        stories.append((outcome(model.jobs), attempts(model), *history))
    assert stories[0] == stories[1]


@settings(max_examples=150)
@given(workloads, st.integers(1, SIZE), schedulers, st.booleans())
def test_a_constant_cap_schedules_as_a_smaller_machine(
    rows: Rows, size: int, scheduler: str, plain: bool
) -> None:
    """With equal power per processor the schedule is the one of fewer processors, job for job."""
    rows = [(*row[:4], min(row[4], size), *row[5:]) for row in rows]
    capped = run(rows, PowerCap(SIZE * IDLE + size * BUSY), scheduler, plain=plain)
    jobs = make(rows)
    small = Simulation(jobs, size, scheduler, plain=plain)
    add_users(small, Work.of(jobs), "rigid")
    small.run()
    assert outcome(jobs) == outcome(capped.jobs)


@settings(max_examples=150)
@given(workloads, caps, st.booleans())
def test_work_is_conserved(rows: Rows, cap: PowerCap, plain: bool) -> None:
    """Run time times pace adds up to the work of each job, to a second per change of the clock."""
    model = run(rows, cap, "easy", plain=plain)
    jobs, timeline = model.jobs, model.cluster.timeline
    assert timeline is not None
    beta = 0 if cap.law is None else cap.law.beta
    last = int(jobs.end.max()) + 1
    pace = np.array([float(1 / (1 + beta * (1 / f - 1))) for f in steps(timeline.levels, last)])
    work = np.array([row[3] for row in rows])
    for row in np.flatnonzero(jobs.state == State.COMPLETED):
        run_at = slice(jobs.start[row], jobs.end[row])
        changes = 1 + sum(run_at.start < at < run_at.stop for at, _ in timeline.levels)
        assert abs(float(pace[run_at].sum()) - work[row]) <= changes


@settings(max_examples=150)
@given(workloads, schedulers, st.booleans())
def test_a_cap_that_never_binds_changes_nothing(rows: Rows, scheduler: str, plain: bool) -> None:
    """With a cap above the full power the schedule is the one without."""
    loose = PowerCap(SIZE * (IDLE + BUSY), SpeedLaw(0.5))
    assert outcome(run(rows, None, scheduler, plain=plain).jobs) == outcome(
        run(rows, loose, scheduler, plain=plain).jobs
    )
