"""Jobs that are held between their submission and the queue, and jobs that are run again.

Times are checked against what Slurm's manual says of each option, by hand.
"""

import copy
import heapq
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hpcrowd import Simulation, State
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.environment.holds.held import Holds, hold
from hpcrowd.environment.holds.rules import Condition, Parent, Rules
from hpcrowd.environment.platform.changes import NodesDown
from hpcrowd.environment.schedulers.base import ReasonCode
from hpcrowd.environment.traces.formats.common.site_columns import EarlierRun
from hpcrowd.environment.waiting_reasons import reasons_at, reasons_of
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.environment.schedulers.slurm.brute import BruteSlurm
from tests.support.simulations import Owner, both, recorded, simulation_of

ANY, OK, NOT_OK = Condition


def rules_of(jobs, **known):
    """Rules of which some are known; delays and failures are given by row."""
    delay, failed = np.zeros(jobs, np.int64), np.zeros(jobs, bool)
    for row, seconds in known.pop("delay", {}).items():
        delay[row] = seconds
    for row, did in known.pop("failed", {}).items():
        failed[row] = did
    return Rules(delay, failed, **known)


def held(jobs, rules, **options):
    """A machine of four processors whose jobs are held, all of them one unit of one owner."""
    model, owner = simulation_of(jobs, 4, **options), Owner()
    hold(model, rules)
    model.submit(owner, np.arange(len(jobs)), jobs.recorded_submit.copy())
    return model, owner


def holds_of(model):
    """Return what holds the jobs of a run."""
    holds = model.parts.of(Holds)
    assert holds is not None
    return holds


def after(*parents):
    """What a job waits for."""
    return tuple(Parent(*one) for one in parents)


DONE, KILLED, GONE, TOO_LARGE = State.COMPLETED, State.KILLED, State.CANCELLED, State.REJECTED
EITHER = after((0, OK), (1, OK))


@dataclass
class Story:
    """Jobs of (submission, run time, processors), rules for them, and the outcome."""

    jobs: list[tuple[int, ...]]
    rules: dict[str, Any]
    start: list[int]
    state: list[State] | None = None  #: all completed unless given
    heard: int | None = None
    causes: dict[str, int] | None = None
    end: list[int] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def ended(condition, failed, goes_on):
    """One waits for a job to end in a way, and another for that one."""
    return Story(
        [(0, 10, 1), (0, 20, 1), (0, 30, 1)],
        {"failed": {0: failed}, "parents": {1: after((0, condition)), 2: after((1, OK))}},
        [0, 10, 30] if goes_on else [0, -1, -1],
        [DONE] * 3 if goes_on else [DONE, GONE, GONE],
        heard=60 if goes_on else 10,
        end=[10, 30, 60] if goes_on else [10, 10, 10],
    )


def stopped(fate, start):
    """Nodes take a job along for which another one waits."""
    platform = [NodesDown(50, 70, 4, fate)]
    return Story(
        [(0, 100, 4), (0, 10, 1)], {"parents": {1: after((0, OK))}},
        [70 if start > 0 else 0, start], [DONE, DONE] if start > 0 else [State.FAILED, GONE],
        options={"platform": platform, "resubmit_after": 10},
    )  # fmt: skip


STORIES = {
    "a chain, though all are there and fit": Story(
        [(0, 10, 1), (0, 20, 1), (0, 30, 1), (0, 5, 1)],
        {"parents": {0: after((1, OK)), 2: after((0, OK))}}, [20, 0, 30, 0], heard=60,
        causes={"dependency": 2}),
    "after success": ended(OK, False, True),
    "no success": ended(OK, True, False),
    "after a failure": ended(NOT_OK, True, True),
    "no failure": ended(NOT_OK, False, False),
    "after any end": ended(ANY, True, True),
    "jobs that were killed have failed": Story(
        [(0, 30, 1, 20), (0, 10, 1), (0, 10, 1)],
        {"parents": {1: after((0, OK)), 2: after((0, NOT_OK))}}, [0, -1, 20], [KILLED, GONE, DONE],
        end=[20, 20, 30], options={"overrun": "kill"}),
    "one of several is enough with a question mark": Story(
        [(0, 10, 1), (0, 20, 1), (0, 5, 1), (0, 5, 1)],
        {"failed": {0: True}, "parents": {2: EITHER, 3: EITHER}, "either": frozenset({2})},
        [0, 0, 20, -1], [DONE, DONE, DONE, GONE], end=[10, 20, 25, 10]),
    "two tasks at a time, but not before their earliest start": Story(
        [(0, 10, 1)] * 5,
        {"delay": {2: 25}, "array": dict.fromkeys(range(5), 7), "throttle": {7: 2}},
        [0, 0, 25, 10, 10], causes={"throttle": 2, "earliest start or hold": 1}),
    "a singleton waits for earlier jobs of its name": Story(
        [(0, 50, 1), (5, 10, 1), (6, 10, 1), (7, 1, 1)],
        {"name_of": {0: 3, 1: 3, 2: 3}, "singletons": frozenset({1})}, [0, 50, 6, 7]),
    "a job that is rejected has not ended with success": Story(
        [(0, 10, 9), (0, 10, 1), (0, 10, 1)],
        {"parents": {1: after((0, OK)), 2: after((0, ANY))}}, [-1, -1, 0], [TOO_LARGE, GONE, DONE],
        heard=10),
    "jobs that wait for each other are let go one by one": Story(
        [(0, 10, 1)] * 2, {"parents": {0: after((1, ANY)), 1: after((0, ANY))}}, [0, 10]),
    "stopped, and back in the queue": stopped("requeue", 170),
    "stopped, and submitted again": stopped("resubmit", 170),
    "stopped for good": stopped("fail", -1),
    "recorded waits contain what held jobs back": Story(
        [(0, 10, 1), (0, 10, 1)], {"parents": {1: after((0, ANY))}}, [0, 0],
        options={"scheduler": "recorded"}),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", STORIES)
def test_stories(make_jobs, name, plain):
    """Who may start when, who never may and is cancelled, and when all of it is over."""
    told = STORIES[name]
    jobs = make_jobs(*told.jobs)
    model, owner = held(jobs, rules_of(len(jobs), **told.rules), plain=plain, **told.options)
    model.run()
    assert told.start == jobs.start.tolist()
    assert (told.state or [DONE] * len(jobs)) == jobs.state.tolist()
    assert told.end in (None, jobs.end.tolist())
    assert 1 == len(owner.heard)
    assert told.heard in (None, *owner.heard)
    account = holds_of(model).account()
    assert set(holds_of(model).preceding()) <= set(told.rules.get("parents", {}))
    assert told.causes in (None, account["causes"])
    assert jobs.state.tolist().count(GONE) == account["jobs_never_eligible"]
    notes = {"waited for a job that waited for it: let go": 1} if "each other" in name else {}
    assert notes == account["notes"]


@both
def test_taking_back(make_jobs, plain):
    """Held jobs can be taken back, also before they come; who waits for them goes on."""
    jobs = make_jobs((0, 100, 1), (0, 10, 1), (0, 10, 1), (50, 10, 1), (0, 10, 1))
    parents = {1: after((0, ANY)), 2: after((1, ANY)), 4: after((3, ANY)), 3: after((0, ANY))}
    model, owner = held(jobs, rules_of(5, parents=parents), plain=plain)
    model.run(until=20)
    assert [1, 2, 4] == list(model.cluster.held)
    assert holds_of(model).keeps_jobs()
    model.cancel([1, 3])
    model.run()
    assert [State.CANCELLED, State.RENOUNCED] == [jobs.state[1], jobs.state[3]]
    assert ([20, -1], [0, -1]) == (jobs.end[[1, 3]].tolist(), jobs.submit[[1, 3]].tolist())
    assert [20, 20] == jobs.start[[2, 4]].tolist()
    assert [100] == owner.heard


@both
def test_put_off(make_jobs, plain):
    """A held job that is submitted again later waits from then on."""
    jobs = make_jobs((0, 100, 1), (0, 10, 1), (0, 10, 1))
    rules = rules_of(3, parents={1: after((0, ANY)), 2: after((0, ANY))})
    model, owner = held(jobs, rules, plain=plain)
    model.run(until=20)
    model.put_off(np.array([1]), 150)
    model.put_off(np.array([2]), 60)
    model.run()
    assert [150, 100] == jobs.start[1:].tolist()
    assert [150, 60] == jobs.submit[1:].tolist()
    assert [160] == owner.heard


@both
def test_nobody_submits_it(make_jobs, plain):
    """A job whose other is never submitted goes on when nothing else is left to happen."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1), (0, 10, 1))
    model = Simulation(jobs, 4, plain=plain)
    hold(model, rules_of(3, parents={1: after((0, OK)), 2: after((1, OK))}))
    model.submit(Owner(), np.array([1, 2]), 0)
    model.run()
    assert [-1, 0, 10] == jobs.start.tolist()


@both
def test_why_it_waits(make_jobs, plain):
    """Live and in results; a copy of the run holds its own."""
    jobs = make_jobs((0, 100, 1), (0, 10, 1))
    model, _ = held(jobs, rules_of(2, parents={1: after((0, ANY))}), plain=plain)
    told = reasons_of(model.run(until=20).cluster)
    other = copy.deepcopy(model)  # which goes on by itself
    other.cancel([0])
    other.run()
    assert 20 == other.jobs.start[1]
    assert [(1, ReasonCode.HELD)] == [(one.row, one.code) for one in told]
    assert "not eligible yet; held by dependency" == told[0].words(Clock())
    model.run()
    again = reasons_at(jobs, 20, "easy", 4, held=True)
    assert ["not eligible yet"] == [one.words(Clock()) for one in again]


@st.composite
def cases(draw):
    """Jobs, and rules for them without circles."""
    count = draw(st.integers(2, 12))
    job = st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 5))
    jobs = sorted(draw(st.lists(job, min_size=count, max_size=count)))
    rows = st.integers(0, count - 1)
    parents = {
        row: tuple(Parent(one, draw(st.sampled_from(Condition))) for one in sorted(others))
        for row in range(1, count)
        if (others := draw(st.sets(st.integers(0, row - 1), max_size=2)))
    }
    array = {row: row % 2 for row in draw(st.sets(rows))}
    return jobs, {
        "delay": draw(st.dictionaries(rows, st.integers(0, 50))),
        "failed": draw(st.dictionaries(rows, st.booleans())),
        "parents": parents,
        "either": frozenset(draw(st.sets(rows))),
        "array": array,
        "throttle": {0: draw(st.integers(1, 3)), 1: draw(st.integers(1, 3))},
        "name_of": {row: row % 3 for row in range(count)},
        "singletons": frozenset(draw(st.sets(rows, max_size=3))),
    }


@settings(max_examples=60)
@given(cases(), st.sampled_from(["fcfs", "easy", "conservative"]), st.integers(0, 60))
def test_nothing_comes_too_early(make_jobs, case, policy, pause):
    """Compiled and plain agree, also after a pause; and all rules hold of what came out."""
    told, known = case
    runs = []
    for plain in (False, True):
        jobs = make_jobs(*told)
        model, owner = held(jobs, rules_of(len(told), **known), scheduler=policy, plain=plain)
        model.run(until=pause)
        model.run()
        runs.append(jobs)
        assert 1 == len(owner.heard)
        assert not holds_of(model).keeps_jobs()
    assert np.array_equal(runs[0].matrix, runs[1].matrix)
    jobs = runs[0]
    assert State.UNFINISHED not in jobs.state.tolist()
    entered = jobs.enqueued >= 0
    late = jobs.enqueued - jobs.submit
    delay = rules_of(len(told), **known).delay
    assert (late[entered] >= delay[entered]).all()
    for row, parents in known["parents"].items():
        over = [one for one in parents if 0 <= jobs.end[one.row] <= jobs.enqueued[row]]
        over += [one for one in parents if jobs.state[one.row] == State.REJECTED]
        if entered[row]:
            assert over if row in known["either"] else len(over) >= len(parents)
    for which, most in known["throttle"].items():
        mine = np.array([row for row, one in known["array"].items() if one == which], np.int64)
        mine = mine[entered[mine] & (jobs.end[mine] > jobs.enqueued[mine])]
        at = jobs.enqueued[mine]
        assert all(int(((at <= now) & (jobs.end[mine] > now)).sum()) <= most for now in at)


def test_choices():
    """Rules that hold nothing are none; what else may hold jobs is named."""
    assert not rules_of(4)
    with pytest.raises(QuantityError, match="holds"):
        ReplayConfig.configure(holds="all")


# ---- runs that are repeated --------------------------------------------------------------------

POLICIES = ("easy", "conservative", "selective", "multifactor", "recorded")

times = st.integers(0, 30)


@st.composite
def logs(draw):
    """Jobs as (submission, wait, run time, processors, earlier runs)."""
    found = []
    for _ in range(draw(st.integers(1, 8))):
        runs, since = [], 0
        for _ in range(draw(st.integers(0, 3))):
            start = since + draw(times)
            end = start + draw(st.integers(1, 30))
            since = end + draw(st.sampled_from((0, 0, 1, 2, 9)))
            runs.append(EarlierRun(start, end, since, 1, "REQUEUED"))
        wait = max(since, runs[-1].end + 1 if runs else 0) + draw(times)
        size, run = draw(st.integers(1, 4)), draw(st.integers(1, 30))
        found.append((draw(times), wait, run, size, tuple(runs)))
    return found


def simulated(log, scheduler, **options):
    """Return a simulation of a log, and the owner of its jobs, all one unit."""
    submit, wait, run, size = np.array([one[:4] for one in log]).T
    jobs = recorded(submit, run, wait, user=1, processors=size, requested_time=40)
    runs = {row: one[4] for row, one in enumerate(log) if one[4]}
    return held(jobs, rules_of(len(log), runs=runs), scheduler=scheduler, **options)


def runs_of(model):
    """Return start and end of each run of each job, by row."""
    found = {row: [] for row in range(len(model.jobs))}
    for one in model.cluster.attempts:
        found[one.row].append((one.start, one.end))
    for row, runs in found.items():
        runs.append((int(model.jobs.start[row]), int(model.jobs.end[row])))
    return found


def first_come(log):
    """Return the runs under FCFS by an account of each second with events."""
    lengths = [[one.end - one.start for one in job[4]] + [job[2]] for job in log]
    events = [(job[0], 1, row) for row, job in enumerate(log)]  # ends before arrivals
    heapq.heapify(events)
    queue, free, found = [], 4, {row: [] for row in range(len(log))}
    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, arrives, row = heapq.heappop(events)
            if arrives:
                queue.append((now, row))
                continue
            free += log[row][3]
            done = len(found[row])
            if done < len(lengths[row]):
                before = log[row][4][done - 1]
                heapq.heappush(events, (now + max(before.again - before.end, 1), 1, row))
        queue.sort()
        while queue and log[queue[0][1]][3] <= free:
            _, row = queue.pop(0)
            free -= log[row][3]
            end = now + lengths[row][len(found[row])]
            found[row].append((now, end))
            heapq.heappush(events, (end, 0, row))
    return found


@given(logs())
def test_each_run_is_on_the_schedule(log):
    """Under FCFS as an account by hand has it; the user hears of the last end, once."""
    model, owner = simulated(log, "fcfs")
    model.run()
    found = runs_of(model)
    assert first_come(log) == found
    assert [max(end for runs in found.values() for _, end in runs)] == owner.heard


@settings(max_examples=50)
@given(logs(), st.sampled_from(POLICIES), st.integers(0, 200))
def test_plain_and_compiled_agree(log, scheduler, until):
    """Also about a moment in the middle; runs have the recorded lengths, and none overlap."""
    seen = []
    for plain in (False, True):
        model, _ = simulated(log, scheduler, plain=plain)
        model.run(until=until)
        middle = model.cluster.waiting.tolist(), sorted(model.cluster.running.tolist())
        model.run()
        seen.append((middle, runs_of(model), model.jobs.submit.tolist()))
    assert seen[0] == seen[1]
    for row, runs in seen[0][1].items():
        lengths = [one.end - one.start for one in log[row][4]] + [log[row][2]]
        assert lengths == [end - start for start, end in runs]
        assert all(one[1] < other[0] for one, other in pairwise(runs))
    assert all(model.jobs.state == State.COMPLETED)


@given(logs())
def test_the_recorded_schedule_is_the_record(log):
    """Each run is where it was, and the table says again what was recorded."""
    model, _ = simulated(log, "recorded")
    holds_of(model.run()).restore()
    for row, runs in runs_of(model).items():
        submit, wait, run, _, earlier = log[row]
        # A run that began in the second of the end before begins a second later.
        expected, last = [], -1
        for start, length in [(one.start, one.end - one.start) for one in earlier] + [(wait, run)]:
            start = max(submit + start, last + 1)
            expected.append((start, start + length))
            last = start + length
        assert expected == runs
        assert submit + wait == model.jobs.recorded_start[row]


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("slurm", "easy", "conservative")))
def test_on_a_machine_of_nodes(seed, scheduler):
    """The engines agree, also about jobs that are preempted; the audit checks what they held."""
    chance = np.random.default_rng(seed)
    machine = random_machine(chance)
    drawn = random_jobs(chance, machine)
    runs = {}
    for row in chance.integers(len(drawn), size=4).tolist():
        length, gap = chance.integers(16, size=2).tolist()
        runs[row] = (EarlierRun(0, length, length + gap, 1, "REQUEUED"),)
    seen = []
    for plain in (False, True):
        jobs = drawn.copy()
        jobs.requests = copy.deepcopy(drawn.requests)
        policy = BruteSlurm() if plain and scheduler == "slurm" else scheduler
        model = simulation_of(jobs, machine.cores, policy, machine=machine, plain=plain)
        hold(model, rules_of(len(jobs), runs=runs))
        model.submit(Owner(), np.arange(len(jobs)), jobs.recorded_submit.copy())
        model.run()
        seen.append((runs_of(model), jobs.state.tolist()))
    assert seen[0] == seen[1]


@both
@pytest.mark.parametrize(
    ("at", "runs"),
    [
        (5, [(0, 5)]),  # in its first run
        (12, [(0, 10), (-1, 12)]),  # before it is submitted again
        (40, [(0, 10), (20, 40)]),  # in its last run
    ],
)
def test_a_user_may_take_it_back(plain, at, runs):
    """Its unit is over then."""
    log = [(0, 50, 30, 1, (EarlierRun(0, 10, 20, 1, "REQUEUED"),))]
    model, owner = simulated(log, "easy", plain=plain)
    model.run(until=at)
    model.cancel(0)
    model.run()
    assert [runs, State.CANCELLED, [at]] == [runs_of(model)[0], model.jobs.state[0], owner.heard]


def test_a_run_in_the_middle_is_unfinished():
    """A job whose run ends in the last second is not over; it cannot be taken back in it."""
    log = [(0, 50, 30, 1, (EarlierRun(0, 10, 20, 1, "REQUEUED"),))]
    model, _ = simulated(log, "easy")
    model.run(until=10)
    with pytest.raises(SimulationError, match="it is failed"):
        model.cancel(0)
    holds_of(model).restore()
    assert (State.UNFINISHED, -1) == (model.jobs.state[0], model.jobs.end[0])
    assert 1 == len(model.cluster.attempts)
