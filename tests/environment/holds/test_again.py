"""Jobs that are run again as recorded: each run happens, and users wait for all of them."""

import heapq
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hpcrowd import State
from hpcrowd.environment.errors import SimulationError
from hpcrowd.environment.holds.held import Holds, hold
from hpcrowd.environment.holds.rules import Rules
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.traces.runs import EarlierRun
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.support.simulations import Owner, simulation_of

PROCESSORS = 4

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
        size, run = draw(st.integers(1, PROCESSORS)), draw(st.integers(1, 30))
        found.append((draw(times), wait, run, size, tuple(runs)))
    return found


def simulated(log, scheduler, **options):
    """Return a simulation of a log, and the owner of its jobs, all one unit."""
    jobs = JobTable(len(log))
    submit, wait, run, size = np.array([one[:4] for one in log]).T
    jobs.number[:] = np.arange(1, len(log) + 1)
    jobs.user[:], jobs.processors[:], jobs.run_time[:] = 1, size, run
    jobs.requested_time[:] = 40
    jobs.recorded_submit[:], jobs.recorded_start[:] = submit, submit + wait
    jobs.recorded_end[:] = submit + wait + run
    rules = Rules.none(len(log))
    rules.runs = {row: one[4] for row, one in enumerate(log) if one[4]}
    model, owner = simulation_of(jobs, PROCESSORS, scheduler, **options), Owner()
    hold(model, rules)
    model.submit(owner, np.arange(len(log)), submit)
    return model, owner


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
    queue, free, found = [], PROCESSORS, {row: [] for row in range(len(log))}
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
    model.run()
    holds = model.parts.of(Holds)
    assert holds is not None
    holds.restore()
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
        jobs.requests = deepcopy(drawn.requests)
        model = simulation_of(jobs, machine.cores, scheduler, machine=machine, plain=plain)
        rules = Rules.none(len(jobs))
        rules.runs = runs
        hold(model, rules)
        model.submit(Owner(), np.arange(len(jobs)), jobs.recorded_submit.copy())
        model.run()
        seen.append((runs_of(model), jobs.state.tolist()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
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
    holds = model.parts.of(Holds)
    assert holds is not None
    holds.restore()
    assert (State.UNFINISHED, -1, 1) == (
        model.jobs.state[0],
        model.jobs.end[0],
        len(model.cluster.attempts),
    )
