"""The contract of behaviours: what every part and every preset keeps, whatever the workload."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.agents import Recipe, Work
from hpcrowd.environment import State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.behaviours import (
    EXTREMES,
    HYPERACTIVE,
    RECIPES,
    Rows,
    draws,
    factory,
    holds,
    lively,
    outcome,
    run,
    table,
)

every = pytest.mark.parametrize("name", RECIPES)

DEFINITIONS = st.sampled_from(
    ["arrival:60m", "arrival:job", "arrival:2s", "last:20m", "last:2s+cut:3s", "max:20m", "max:0s"]
)


@st.composite
def workloads(draw: st.DrawFn) -> Rows:
    """Up to 25 jobs of up to three users, within seconds, hours or weeks; ties everywhere."""
    scale = draw(st.sampled_from([1, 300, 20_000]))
    small = st.integers(0, 8)
    job = st.tuples(
        st.integers(0, 30), small, st.integers(1, 6), st.integers(1, 3), small, small, small
    )
    rows = draw(st.lists(job, min_size=1, max_size=25))
    return [
        (submit * scale, recorded * scale, width, user, runs * scale, wait * scale, asks * scale)
        for submit, recorded, width, user, runs, wait, asks in sorted(rows)
    ]


@every
@settings(max_examples=15)
@given(rows=workloads(), definition=DEFINITIONS, scheduler=st.sampled_from(["fcfs", "easy"]))
def test_contract(name: str, rows: Rows, definition: str, scheduler: str) -> None:
    """On random workloads all promises hold, both engines agree, and a run repeats itself.

    Nobody's dependency is broken, batches keep their order, units their shape; jobs in are jobs
    out. With another seed only what is left to chance may change.
    """
    recipe, jobs = RECIPES[name], table(rows)
    make = factory(recipe)
    how = {"processors": 5, "definition": definition, "scheduler": scheduler}
    found, work = run(jobs, make, **how)
    holds(recipe, found, work, 5)
    again, _ = run(jobs, make, **how)
    assert outcome(found) == outcome(again)
    plain, _ = run(jobs, make, **how, plain=True)
    assert outcome(plain) == outcome(found)
    other, work = run(jobs, make, **how, seed=1)
    holds(recipe, other, work, 5)
    if not draws(recipe):
        assert outcome(found) == outcome(other)


@every
def test_extremes(name: str) -> None:
    """On made workloads at the edge of what there is, all promises hold."""
    recipe = RECIPES[name]
    make = factory(recipe)
    for case, (rows, processors) in EXTREMES.items():
        jobs = table(rows)
        for definition in ("arrival:60m", "last:20m"):
            how = {"processors": processors, "definition": definition}
            found, work = run(jobs, make, **how)
            holds(recipe, found, work, processors)
            plain, _ = run(jobs, make, **how, plain=True)
            assert outcome(plain) == outcome(found), case


@every
def test_user_with_20_000_jobs(name: str) -> None:
    """A user with 20,000 jobs, some sessions long, is no trouble."""
    recipe, jobs = RECIPES[name], table(HYPERACTIVE)
    found, work = run(jobs, factory(recipe))
    holds(recipe, found, work, 8)
    assert 5 == found.count(State.REJECTED)


def keeps_the_record(recipe: Recipe) -> bool:
    """Whether nothing moves as long as nothing runs other than recorded."""
    if recipe.think != "recorded":
        return False
    return recipe.window in ("always", "fitted") or (
        recipe.window == "sessions" and not recipe.waits
    )


@pytest.mark.parametrize("name", [name for name, each in RECIPES.items() if keeps_the_record(each)])
def test_as_recorded_if_it_runs_as_recorded(name: str) -> None:
    """With recorded pauses and none or a fitted window, a record with waits stays as it is."""
    recipe = RECIPES[name]
    random = np.random.default_rng(5)
    rows = [
        (int(submit), int(run), 2, int(user), int(run), int(wait))
        for submit, run, user, wait in zip(
            np.sort(random.integers(0, 2_000_000, 400)),
            random.integers(0, 20_000, 400),
            random.integers(1, 4, 400),
            random.integers(0, 5000, 400),
            strict=True,
        )
    ]
    jobs = table(rows)
    for definition in ("arrival:60m", "arrival:job", "last:20m", "max:20m", "last:20m+cut:1h"):
        found, _ = run(jobs, factory(recipe), scheduler="recorded", definition=definition)
        assert jobs.recorded_submit.tolist() == found.submit.tolist(), definition


@pytest.mark.parametrize("name", [n for n, each in RECIPES.items() if each.when == "batches"])
def test_chance_is_used_where_it_is_said(name: str) -> None:
    """With pauses and sessions to choose from, another seed makes another run where it may."""
    recipe, jobs = RECIPES[name], table(lively(1, 2))
    first, second = (run(jobs, factory(recipe), seed=seed)[0] for seed in (0, 1))
    assert draws(recipe) == (outcome(first) != outcome(second))


def test_every_part_is_there() -> None:
    """The suite runs over the products of all named parts and over all presets."""
    assert 8 <= len([name for name in RECIPES if " x " not in name])
    assert 50 == len([name for name in RECIPES if " x " in name])
    assert "batches x own x sessions x waits" in RECIPES


@pytest.mark.parametrize("name", [name for name, each in RECIPES.items() if draws(each)])
def test_users_do_not_draw_from_each_other(name: str) -> None:
    """With room for all, a user's submissions are the same regardless of who else is there."""
    recipe = RECIPES[name]
    if recipe.window == "fitted":
        return  # smoothed by what all users do
    together, alone = table(lively(1, 2, 3)), table(lively(1, 3))
    units = Work.of(alone).by_batch
    for user in (0, 1):  # each has pauses of all kinds of its own to draw from
        mine = units.user == user
        for inside in (0, 1):
            which = mine & (units.continues == inside) & (units.inter_arrival >= 0)
            assert np.any(units.think_time[which] >= 0)
            assert np.any((units.think_time[which] >= 0) & (units.think_time[which] < 8 * 3600))
    found, _ = run(together, recipe, processors=10_000)
    without, _ = run(alone, recipe, processors=10_000)
    assert found.submit[found.user != 2].tolist() == without.submit.tolist()
