"""A cap on power over time: who starts, slows down and is stopped; it is never exceeded."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hpcrowd import State, Work, add_users
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SignalError
from hpcrowd.environment.machine.model import Machine, NodeType
from hpcrowd.environment.platform.part import timeline_of
from hpcrowd.environment.power.caps import PowerCap, SpeedLaw
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.draws import DrawTable
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.platform import NodesDown, Resize, SpeedChange
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.power.power_cases import made
from tests.support.policies import Rows, outcome, workloads
from tests.support.simulations import account_of, both, simulation_of

#: Processors of the machine in the properties.
SIZE = 7

#: W of an idle processor, and W that a busy one adds.
IDLE, BUSY = 2.0, 10.0

NODE = NodePower("node", IDLE, BUSY)


def started(
    rows, processors, cap, scheduler="easy", *, node=NODE, watts=None, measured=None, **options
):
    """A simulation before its run; jobs may draw by their processors, or as measured."""
    jobs = made(rows)
    draw = None if watts is None else DrawTable("processors", watts)
    power = Power((node,), draw, cap=cap)
    in_use = PowerInUse(power, None if measured is None else np.array(measured))
    model = simulation_of(jobs, processors, scheduler, parts=[in_use], **options)
    add_users(model, Work.of(jobs), "rigid")
    return model


def run(rows, processors, cap, *args, **how):
    """The simulation after its run."""
    model = started(rows, processors, cap, *args, **how)
    model.run()
    return model


def attempts(model):
    """Row, start, end, cause and fate of each run that was stopped."""
    return [(one.row, one.start, one.end, one.cause, one.fate) for one in model.cluster.attempts]


def limits(*watts, step=100, **how):
    """A cap with a limit that changes every so often."""
    return PowerCap(Signal(np.arange(len(watts)) * step, np.array(watts)), **how)


def slowed(beta, levels=(1, 0.5)):
    """A law by which power is proportional to the clock."""
    return SpeedLaw(beta, exponent=1, levels=levels)


@dataclass
class Story:
    """Jobs of (submission, run time, processors) under a cap, and the outcome."""

    jobs: Rows
    cap: PowerCap
    start: list[int]
    end: list[int] | None = None
    stopped: tuple[tuple[int, int, int], ...] = ()  #: row, start and end of stopped runs
    capped: list[tuple[int, int]] | None = None
    levels: list[tuple[int, float]] | None = None
    state: State = State.COMPLETED  #: of the last job
    processors: int = 4
    how: dict[str, Any] | None = None


WATTS = {"1": 5.0, "2": 15.0}

#: Four idle processors draw 8 W: under 28 W two may be busy, under 48 W all.
STORIES = {
    "nothing runs at the idle power, and it may rise": Story(
        [(0, 50, 1), (5, 10, 4)], limits(8, 8.1), [-1, -1], state=State.UNFINISHED),
    "a job too large for the cap waits until it rises": Story(
        [(0, 50, 4), (5, 10, 1)], limits(28, 48), [100, 5]),
    "a falling cap puts the newest back": Story(
        [(0, 150, 2), (10, 150, 1), (20, 150, 1)], limits(48, 28), [0, 150, 150],
        stopped=((1, 10, 100), (2, 20, 100)), capped=[(0, 4), (100, 2)]),
    "a newer job that fits is kept": Story(
        [(0, 150, 1), (10, 150, 2), (20, 150, 1)], limits(48, 28), [0, 170, 20],
        stopped=((1, 10, 100),)),
    "stopped jobs may fail": Story(
        [(0, 150, 2), (10, 150, 2)], limits(48, 28, stop="fail"), [0, 10], [150, 100],
        ((1, 10, 100),), state=State.FAILED),
    "a soft cap limits starts only": Story(
        [(0, 150, 2), (10, 150, 2), (110, 10, 1)], limits(48, 28, stop="none"), [0, 10, 160]),
    **{f"the clock is halved, beta {beta}": Story(
        [(0, 100, 4)], limits(48, 28, 48, step=50, law=slowed(beta)), [0], [end],
        levels=[(0, 1.0), (50, 0.5), (100, 1.0)])
        for beta, end in ((1, 125), (0.5, 117), (0, 100))},
    # A limit below the idle power of all may be meant while some are not there.
    "a machine that shrinks with its cap": Story(
        [(0, 50, 2)], limits(28, 7.9, 28), [0],
        how={"platform": [Resize(100, 3), Resize(200, 4)]}),
    # 60 W at 0.8: 30.72 W; at 0.5: 7.5 W
    "the highest clock that fits": Story(
        [(0, 500, 2)] * 3, limits(72, 42.72, 42.71, 19.5, 19.49, 72, law=SpeedLaw(0, levels=(1, 0.8,
        0.5))), [0, 0, 500], stopped=((2, 0, 400),), capped=[(0, 6), (400, 5), (500, 6)],
        levels=[(0, 1.0), (100, 0.8), (200, 0.5), (500, 1.0)], processors=6),
    "processors that are down draw nothing": Story(
        [(1, 150, 2)], PowerCap(30, slowed(1)), [1], [202], capped=[(0, 2)],
        levels=[(0, 1.0), (100, 0.5)],
        how={"node": NodePower("node", 5, 10), "platform": [NodesDown(0, 100, 2)]}),
    # With their share of 8 W when idle, jobs draw 5 and 15 W, so that they add 3 and 13.
    "every start counts as the most demanding job": Story(
        [(0, 50, 1)] * 3 + [(0, 50, 2)], PowerCap(46), [0, 0, 50, 100], capped=[(0, 2)],
        how={"watts": WATTS}),
    "what runs counts with what it draws": Story(
        [(0, 150, 1), (0, 150, 1), (0, 150, 2)], limits(60, 22, 60), [0, 0, 200],
        stopped=((2, 0, 100),), capped=[(0, 4), (100, 1), (200, 4)], how={"watts": WATTS}),
    "what was measured counts, and processors of a node share its idle power": Story(
        [(0, 50, 1)] * 3, PowerCap(38), [0, 0, 50],
        how={"measured": [17.0, -1.0, 12.0], "node": NodePower("n", 8, 10, processors=4)}),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_stories(name, plain):
    """Who starts, ends and is stopped when, and how many processors may be busy at which clock."""
    story = STORIES[name]
    model = run(story.jobs, story.processors, story.cap, plain=plain, **story.how or {})
    jobs, timeline = model.jobs, timeline_of(model.cluster)
    assert story.start == jobs.start.tolist()
    assert story.end in (None, jobs.end.tolist())
    assert story.state == jobs.state[-1]
    assert [(*one, "power", story.cap.stop) for one in story.stopped] == attempts(model)
    assert story.capped in (None, timeline.capped)
    assert story.levels in (None, timeline.levels)
    assert len(story.stopped) == account_of(model.cluster, model.time)["runs_stopped"]


@both
def test_jobs_that_are_made_up_later_count(plain):
    """When a job comes that draws more than any before, fewer processors may be busy."""
    rows = [(0, 5, 1), (20, 50, 1), (20, 50, 1), (20, 50, 1)]
    model = started(rows, 4, PowerCap(4 * IDLE + 30), watts={"2": 17.0}, plain=plain)
    model.run(until=10)
    late = model.jobs.append(1, processors=2, run_time=50, requested_time=50)
    model.cluster.submit(late, 20)
    model.run()
    assert [(0, 3), (10, 2)] == timeline_of(model.cluster).capped
    assert [0, 20, 20, 70, 120] == model.jobs.start.tolist()


def test_a_cap_by_date():
    """Dates are those of the trace; the last limit holds after the end of the signal."""
    start = 1_700_000_000
    dates = start + np.array([-100, 0, 100, 200])
    cap = PowerCap(Signal(dates, np.array([1.0, 28, 28, 48]), True, "cap"))
    model = run([(0, 50, 4), (900, 50, 4)], 4, cap, clock=Clock(start))
    assert [200, 900] == model.jobs.start.tolist()
    assert [(0, 28.0), (200, 48.0)] == timeline_of(model.cluster).caps
    with pytest.raises(SignalError, match="no start time"):
        run([(0, 50, 4)], 4, cap)


def capped(cap, *args, **options):
    """What runs a job of four processors under a cap."""
    return lambda: run([(0, 50, 4)], 4, cap, *args, **options)


SITE = Machine(nodes=(NodeType(name="n[1-4]", cores=1),))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PowerCap(float("nan")), "must be from 0"),
        (lambda: limits(1, -1), "must be from 0"),
        (lambda: PowerCap(1, stop="resubmit"), "requeue"),
        (lambda: SpeedLaw(1.1), "must be from 0 to 1"),
        (lambda: SpeedLaw(0.5, levels=(1, 0.8, 0.8)), "must begin with 1 and fall"),
        (lambda: SpeedLaw(0.5, levels=()), "levels none"),
        (lambda: SpeedLaw(0.5, levels=(1, 0)), "must be from 0.05"),
        # Below the idle power at any second, also of a machine that grows.
        (capped(limits(28, 7.9)), "power cap 7.9 W from 100 s: below the 8 W that 4 idle"),
        (capped(PowerCap(28), platform=[Resize(50, 20)]), "cap 28 W from 50 s: below the 40 W"),
        # No cap for the recorded schedule and machines of nodes.
        (capped(PowerCap(28), "recorded"), "choose a scheduler"),
        (capped(PowerCap(28), machine=SITE), "leave out --machine"),
    ],
)
def test_refusals(call, words):
    """Each is one line with the rule."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        call()


# What holds of every schedule.

laws = st.none() | st.builds(
    SpeedLaw,
    beta=st.sampled_from([0, 0.3, 1]),
    exponent=st.sampled_from([1, 2.4, 3]),
    levels=st.sampled_from([(1, 0.9, 0.8, 0.7, 0.6), (1, 0.5)]),
)
#: The last limit lets everything run that the machine can run at all.
signals = st.lists(
    st.floats(SIZE * IDLE, SIZE * (IDLE + BUSY) + 5), min_size=2, max_size=8
).map(lambda values: limits(*values, 1000, step=9).limit)  # fmt: skip
caps = st.builds(
    PowerCap, signals | st.floats(SIZE * IDLE, 100), laws, st.sampled_from(["requeue", "fail"])
)
downs = st.builds(
    lambda at, lasts, processors: NodesDown(at, at + lasts, processors),
    st.integers(0, 60),
    st.integers(1, 30),
    st.integers(1, 3),
)
platforms = st.tuples(
    st.lists(downs, max_size=2),
    st.lists(st.integers(0, 60).map(lambda at: Resize(at, 6)), max_size=1),
    st.lists(st.builds(SpeedChange, st.integers(0, 60), st.sampled_from([0.5, 2])), max_size=1),
).map(lambda kinds: [change for kind in kinds for change in kind])
schedulers = st.sampled_from(["fcfs", "easy", "conservative", "sjf"])
draws = st.dictionaries(st.sampled_from("1234567"), st.floats(0, 30), max_size=4)


def steps(history, seconds):
    """The value at each second, from the seconds at which it changes."""
    at, values = np.array(history).T
    return values[np.searchsorted(at, np.arange(seconds), side="right") - 1]


def busy_processors(model, each):
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


@given(workloads, caps, schedulers, st.fixed_dictionaries(
    {"watts": st.none() | draws, "platform": platforms, "plain": st.booleans()}
))  # fmt: skip
def test_no_cap_is_exceeded_at_any_second(rows, cap, scheduler, how):
    """Idle power of what is up, and of the jobs that run at the present clock; no job is lost."""
    model = run(rows, SIZE, cap, scheduler, **how)
    known = how["watts"] or {}
    each = np.array([known.get(str(size), IDLE + BUSY) - IDLE for size in range(SIZE + 1)])
    timeline = timeline_of(model.cluster)
    busy, added = busy_processors(model, np.maximum(each, 0))
    up = steps([(at, there) for at, _, there in timeline.history], len(busy))
    clock = steps(timeline.levels, len(busy)) if timeline.levels else np.ones(len(busy))
    exponent = 1 if cap.law is None else cap.law.exponent
    drawn = np.maximum(up, busy) * IDLE + added * clock**exponent
    limit = np.full(len(busy), 0.0 if isinstance(cap.limit, Signal) else cap.limit)
    if isinstance(cap.limit, Signal):
        limit = steps([*zip(cap.limit.times, cap.limit.values, strict=True)], len(busy))
        assert State.UNFINISHED not in model.jobs.state
    assert np.all(drawn <= limit * (1 + 1e-12))
    assert len(rows) == sum(model.jobs.count(state) for state in State)


@given(workloads, caps, platforms, schedulers, st.sampled_from(["keep", "kill"]))
def test_compiled_equals_plain(rows, cap, platform, scheduler, overrun):
    """Both engines give the same schedule, the same stopped runs and the same clock."""
    stories = []
    for plain in (True, False):
        model = run(rows, SIZE, cap, scheduler, platform=platform, plain=plain, overrun=overrun)
        found = timeline_of(model.cluster)
        history = found.caps, found.capped, found.levels, found.history
        stories.append((outcome(model.jobs), attempts(model), *history))
    assert stories[0] == stories[1]


@given(workloads, st.integers(1, SIZE), schedulers, st.booleans())
def test_a_constant_cap_schedules_as_a_smaller_machine(rows, size, scheduler, plain):
    """With equal power per processor the schedule is the one of fewer processors, job for job.

    A cap at the full power, whatever the clock might do, changes nothing.
    """
    rows = [(*row[:2], min(row[2], size), *row[3:]) for row in rows]
    law = SpeedLaw(0.5) if size == SIZE else None
    limited = run(rows, SIZE, PowerCap(SIZE * IDLE + size * BUSY, law), scheduler, plain=plain)
    small = run(rows, size, None, scheduler, plain=plain)
    assert outcome(small.jobs) == outcome(limited.jobs)


@given(workloads, caps, st.booleans())
def test_work_is_conserved(rows, cap, plain):
    """Run time times pace adds up to the work of each job, to a second per change of the clock."""
    model = run(rows, SIZE, cap, plain=plain)
    jobs, levels = model.jobs, timeline_of(model.cluster).levels
    beta = 0 if cap.law is None else cap.law.beta
    last = int(jobs.end.max()) + 1
    pace = np.array([float(1 / (1 + beta * (1 / f - 1))) for f in steps(levels, last)])
    work = np.array([row[1] for row in rows])
    for row in np.flatnonzero(jobs.state == State.COMPLETED):
        run_at = slice(jobs.start[row], jobs.end[row])
        changes = 1 + sum(run_at.start < at < run_at.stop for at, _ in levels)
        assert abs(float(pace[run_at].sum()) - work[row]) <= changes
