"""The contract of behaviours: what every part and every preset keeps, whatever the workload.

The log of decisions is true, complete, and changes nothing.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hpcrowd import Recipe, State, Work, replay
from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions, What, Why
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.behaviours import Composed
from hpcrowd.environment.traces.trace import gave_up
from hpcrowd.reactions import Delay, During, Renounce
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.behaviours import RECIPES, draws, holds, lively, outcome, run, table, workloads

every = pytest.mark.parametrize("name", RECIPES)

DEFINITIONS = st.sampled_from(
    ["arrival:60m", "arrival:job", "arrival:2s", "last:20m", "last:2s+cut:3s", "max:20m", "max:0s"]
)


def over(jobs, rows):
    """When the last of some jobs ended; who was rejected ended at once."""
    return max(int(jobs.end[row]) if jobs.end[row] >= 0 else int(jobs.submit[row]) for row in rows)


def told_truly(recipe, jobs, work, found):
    """Check that each unit has one submission, when its first job came, for a reason that held."""
    units = work.by_batch if recipe.when == "batches" else work.by_session
    submitted = {one.unit: one for one in found if one.what == What.SUBMITTED}
    assert len(units) == len(submitted) == sum(one.what == What.SUBMITTED for one in found)
    waits = Counter[int]()
    for one in found:
        if one.what == What.WAITS:
            waits[one.unit] += one.seconds
            assert one.time <= submitted[one.unit].time

    rows_of = np.split(units.rows, units.first[1:-1])
    for unit, one in submitted.items():
        rows = rows_of[unit]
        first = int(jobs.submit[rows].min())
        assert (int(jobs.user[rows[0]]), first) == (one.user, one.time)
        if one.why == Why.RECORDED:
            assert int(jobs.recorded_submit[rows].min()) == first
        elif one.why in (Why.ENDED, Why.BREAK):
            assert first == over(jobs, rows_of[one.cause]) + one.seconds + waits[unit]
        else:
            assert (Why.FOLLOWS, unit - 1) == (one.why, one.cause)
            assert first == jobs.submit[rows_of[unit - 1]].max() + one.seconds + waits[unit]


def comes_exactly(recipe, jobs, work):
    """Check the second of each unit of users with recorded pauses, from the ends of the others.

    A session comes after the latest end plus think time; a batch after the later of an end and the
    submission before it: the submission if both are in one second, unless that batch has ended.
    """
    batches = recipe.when == "batches"
    units = work.by_batch if batches else work.by_session
    edges, rows = units.dependencies, np.split(units.rows, units.first[1:-1])
    waits: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for edge, after in enumerate(edges.successor.tolist()):
        waits[after].append((int(edges.predecessor[edge]), int(edges.think[edge])))
    opening = set(units.user_first[:-1].tolist())
    for unit in range(len(units)):
        found = int(jobs.submit[rows[unit][0]])
        ends = {before: over(jobs, rows[before]) for before, _ in waits[unit]}
        if unit in opening or not (batches or ends):
            expected = {int(units.start[unit])}
        elif not batches:
            expected = {max(ends[before] + think for before, think in waits[unit])}
        else:
            sent, ended = int(jobs.submit[rows[unit - 1]].max()), max(ends.values(), default=-1)
            follows, thinks = sent + units.inter_arrival[unit], ended + units.think_time[unit]
            last = {before for before, end in ends.items() if end == ended}
            expected = {int(thinks if ended > sent else follows)}
            if ended == sent and unit - 1 in last:
                expected = {int(thinks)} if len(last) == 1 else {int(thinks), int(follows)}
        assert found in expected, unit


@every
@settings(max_examples=12)
@given(rows=workloads(), definition=DEFINITIONS, scheduler=st.sampled_from(["fcfs", "easy"]))
def test_contract(name, rows, definition, scheduler):
    """On random workloads all promises hold; engine and log change nothing, a seed only chance."""
    recipe, jobs, log = RECIPES[name], table(rows), DecisionLog()
    how: dict[str, Any] = {"processors": 5, "definition": definition, "scheduler": scheduler}
    found, work = run(jobs, recipe, **how, log=log)
    holds(recipe, found, work, 5)
    told_truly(recipe, found, work, Decisions.of(log))
    plain, _ = run(jobs, recipe, **how, plain=True)
    assert outcome(plain) == outcome(found)
    other, work = run(jobs, recipe, **how, seed=1)
    holds(recipe, other, work, 5)
    if not draws(recipe):
        assert outcome(found) == outcome(other)


#: Batch 2 waits for batch 0, which ends when batch 1 is submitted; a batch that ends at once.
TIE = [(0, 4500, 1, 1, 4000), (4000, 10_000, 1), (8000, 10, 1)]
TIE_WITH_ITSELF = [(0, 100, 1, 1, 0), (300, 10, 1)]
#: Of the two that the third waits for, the first to end has the longer think time.
LATEST = [(0, 10, 1), (1, 99, 1, 1, 49), (200, 10, 1)]


@pytest.mark.parametrize("when", ["sessions", "batches"])
@settings(max_examples=40)
@given(rows=workloads(), definition=DEFINITIONS, processors=st.sampled_from([1, 5, 100]))
@example(rows=lively(1, 2), definition="arrival:60m", processors=1)
@example(rows=lively(1, 2), definition="arrival:job", processors=1)
@example(rows=TIE, definition="arrival:60m", processors=100)
@example(rows=TIE_WITH_ITSELF, definition="arrival:60m", processors=100)
@example(rows=LATEST, definition="arrival:job", processors=100)
def test_recorded_pauses_are_exact(when, rows, definition, processors):
    """Users who only keep their recorded pauses come at the second that the rules give."""
    recipe = Recipe(when)
    how: dict[str, Any] = {"definition": definition, "processors": processors}
    comes_exactly(recipe, *run(table(rows), recipe, **how))


PRESETS = [name for name in RECIPES if " x " not in name]


def keeps_the_record(recipe):
    """Whether nothing moves as long as nothing runs other than recorded."""
    if recipe.think != "recorded":
        return False
    return recipe.window in ("always", "fitted", *(() if recipe.waits else ("sessions",)))


@pytest.mark.parametrize("name", [name for name, each in RECIPES.items() if keeps_the_record(each)])
def test_as_recorded_if_it_runs_as_recorded(name):
    """With recorded pauses and none or a fitted window, a record with waits stays as it is."""
    recipe, random = RECIPES[name], np.random.default_rng(5)
    submit = np.sort(random.integers(0, 2_000_000, 400))
    run_time, user, wait = (
        random.integers(*span, 400) for span in ((0, 20_000), (1, 4), (0, 5000))
    )
    columns = submit, run_time, np.full(400, 2), user, run_time, wait
    jobs = table([tuple(row) for row in np.transpose(columns).tolist()])
    for definition in ("arrival:60m", "arrival:job", "last:20m", "max:20m", "last:20m+cut:1h"):
        found, _ = run(jobs, recipe, scheduler="recorded", definition=definition)
        assert jobs.recorded_submit.tolist() == found.submit.tolist(), definition


LOGS = [
    "CEA-Curie-2011-2.1-cln", "DAS2-fs1-2003-1", "HPC2N-2002-2.1-cln", "HPC2N-2002-2.2-cln",
    "KTH-SP2-1996-2.1-cln", "LANL-CM5-1994-4.1-cln", "LCG-2005-1", "LLNL-Thunder-2007-1.1-cln",
    "NASA-iPSC-1993-3.1-cln", "SDSC-DS-2004-2.1-cln",
]  # fmt: skip
CUTS = ["arrival:job", "last:20m", "max:20m", "last:20m+cut:1h"]


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "sessions"),
    [*((log, "arrival:60m") for log in LOGS), *(("KTH-SP2", sessions) for sessions in CUTS)],
)
def test_record_is_a_fixed_point(read_trace, log, sessions):
    """With recorded waits and run times, users submit every job at its recorded second."""
    trace = read_trace(log)
    for users in ("adjusted", "think-time", "think-time-windows"):
        jobs = replay(trace, users=users, scheduler="recorded", sessions=sessions).jobs
        assert 0 == np.count_nonzero(jobs.submit != jobs.recorded_submit), users
        assert 0 == np.count_nonzero(jobs.wait_ended != jobs.recorded_start), users
        given_up = np.count_nonzero(gave_up(trace))
        assert given_up == jobs.count(State.CANCELLED), users
        assert len(jobs) - given_up == jobs.count(State.COMPLETED), users


@pytest.mark.parametrize("name", [n for n, each in RECIPES.items() if each.when == "batches"])
def test_chance_is_used_where_it_is_said(name):
    """With pauses and sessions to choose from, another seed makes another run where it may."""
    recipe, jobs = RECIPES[name], table(lively(1, 2))
    first, second = (run(jobs, recipe, seed=seed)[0] for seed in (0, 1))
    assert draws(recipe) == (outcome(first) != outcome(second))


def test_every_part_is_there():
    """The suite runs over the products of all named parts and over all presets."""
    assert (8, 50) <= (len(PRESETS), len(RECIPES) - len(PRESETS))
    assert "batches x own x sessions x waits" in RECIPES


@pytest.mark.parametrize(
    "name", [name for name, each in RECIPES.items() if draws(each) and each.window != "fitted"]
)
def test_users_do_not_draw_from_each_other(name):
    """With room for all, a user's submissions are the same regardless of who else is there."""
    recipe = RECIPES[name]
    together, alone = table(lively(1, 2, 3)), table(lively(1, 3))
    units = Work.of(alone).by_batch
    for user in (0, 1):  # each has pauses of all kinds of its own to draw from
        mine = units.user == user
        for inside in (0, 1):
            which = mine & (units.continues == inside) & (units.inter_arrival >= 0)
            assert np.any((units.think_time[which] >= 0) & (units.think_time[which] < 8 * 3600))
    found, _ = run(together, recipe, processors=10_000)
    without, _ = run(alone, recipe, processors=10_000)
    assert found.submit[found.user != 2].tolist() == without.submit.tolist()


@settings(max_examples=20)
@given(rows=workloads(), seconds=st.integers(1, 5000))
def test_reactions_are_noted_once(rows, seconds):
    """Units are submitted once or renounced as a whole, as much later as their delays say."""

    def make(work):
        when = During([(0, 3000), (20_000, 60_000)])
        reactions = [Delay(when, by=seconds, probability=0.5), Renounce(when, probability=0.3)]
        return Composed(BatchOrder(work), reactions=reactions)

    log = DecisionLog()
    jobs, work = run(table(rows), make, log=log)
    assert outcome(run(table(rows), make)[0]) == outcome(jobs)
    units, found = work.by_batch, list(Decisions.of(log))
    rows_of = np.split(units.rows, units.first[1:-1])
    noted = {what: [one for one in found if one.what == what] for what in What}
    submitted = [one.unit for one in noted[What.SUBMITTED]]
    assert len(submitted) == len(set(submitted))
    renounced = noted[What.RENOUNCED]
    gone = {one.unit for one in renounced}
    everything = set(range(len(units)))
    assert everything - gone <= set(submitted) <= everything
    numbers = jobs.number[jobs.state == State.RENOUNCED]
    assert sorted(numbers.tolist()) == sorted(one.cause for one in renounced)
    late = Counter[int]()
    for one in noted[What.DELAYED]:
        late[one.cause] += one.seconds
    for one in noted[What.SUBMITTED]:
        if one.why != Why.ENDED or one.cause in gone:
            continue  # the table does not hold the end of a renounced job
        mine = rows_of[one.unit]
        due = over(jobs, rows_of[one.cause]) + one.seconds - int(jobs.recorded_submit[mine[0]])
        for row in mine[jobs.state[mine] != State.RENOUNCED].tolist():
            expected = due + jobs.recorded_submit[row] + late[int(jobs.number[row])]
            assert expected == jobs.submit[row]
