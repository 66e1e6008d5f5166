"""A submission is the sum of its parts, for all users who make up their work, on random work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Casting, Consequences, SessionDefinition, Work
from hpcrowd.agents.behaviours.decisions import Decision, DecisionLog, Decisions, What, Why
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.generative.archetypes import ARCHETYPES, demo_population
from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember, add_pool_users
from hpcrowd.agents.generative.shmueli import PUBLISHED
from hpcrowd.agents.populations.component_users import AsRecorded, ClosedLoop
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.made_up import ComponentWork, GroupWork, Living, SiteWork
from hpcrowd.agents.populations.openness import Openness, PoolRules
from hpcrowd.agents.populations.satisfaction import Formula, Habit, Requested
from hpcrowd.agents.populations.semi_open import add_members, draw_roster
from hpcrowd.agents.presets import PRESETS
from hpcrowd.environment import JobTable, Simulation, Streams
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.behaviours.decision_cases import check_gone, check_sums
from tests.agents.behaviours.test_contract import workloads
from tests.support.behaviours import SPRING, Rows, table
from tests.support.populations import record

#: Weeks that populations live.
WEEKS = 4

#: Users who are soon discontent, leave often and come back often.
TOUCHY = Consequences(leave=1.0, tolerance=0.0, returns=0.7, away=1.0, again=1.0)

seconds = st.integers(300, 12 * HOUR)


@st.composite
def weekly_records(draw: st.DrawFn) -> JobTable:
    """Jobs of up to four users over three weeks, most of them by day."""
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(1, 4),
                st.integers(0, 20),
                st.integers(0, DAY - 1),
                seconds,
                st.integers(1, 4),
                st.integers(0, 3 * HOUR),
            ),
            min_size=2,
            max_size=25,
        )
    )
    # A log of several weeks, whatever else is drawn.
    jobs += [(1, 0, 9 * HOUR, HOUR, 1, 0), (1, 20, 9 * HOUR, HOUR, 1, 0)]
    rows = [(user, day * DAY + at, run, width, wait) for user, day, at, run, width, wait in jobs]
    return record(sorted(rows, key=lambda row: row[1]))


def groups(pool: Pool) -> GroupWork:
    """Members who draw from three batches, whoever they are."""
    users = pool.work.sessions.users.tolist()
    batches = BatchPool(
        np.array([0, 1, 3]), np.array([60, HOUR, 5]), np.array([90, HOUR, 9]), np.array([1, 4, 2])
    )
    pauses = np.array([0, HOUR, 2 * DAY])
    members = [PoolMember(user, 0, 0, pauses) for user in users]
    return GroupWork(pool, members, {0: batches})


LIVING: dict[str, Callable[[Pool], Living]] = {
    "rigid": lambda pool: ComponentWork(pool, AsRecorded()),
    "think-time": lambda pool: ComponentWork(pool, ClosedLoop()),
    "think-time-windows": lambda pool: ComponentWork(pool, ClosedLoop(pool.profiles)),
    "groups": groups,
    "shmueli-feitelson": lambda pool: SiteWork(pool, PUBLISHED),
    "generative": lambda pool: SiteWork(pool, PRESETS["generative"]),  # type: ignore[arg-type]
}


def lived(
    jobs: JobTable,
    make: Callable[[Pool], Living],
    *,
    formula: Formula | None,
    log: DecisionLog | None,
    seed: int,
) -> tuple[JobTable, list[Decision], list[Any]]:
    """The jobs of a population, what it decided, and its visits."""
    pool = Pool.of(Work.of(jobs.copy()), SPRING, PoolRules(least=1))
    living = make(pool)
    model = Simulation(JobTable(), 4, clock=SPRING, seed=seed)
    living.visits.log = log
    users = add_members(
        model,
        living,
        draw_roster(living.pool, WEEKS, Openness(), Streams(seed)),
        horizon=SPRING.second_at(SPRING.wall(0) + WEEKS * WEEK),
        formula=formula,
        consequences=TOUCHY,
    )
    if log is not None:
        note_generating(log, users)
    model.run()
    return model.jobs, [] if log is None else list(Decisions.of(log)), living.visits.notes


@pytest.mark.parametrize("doing", LIVING)
@settings(max_examples=12)
@given(jobs=weekly_records(), minds=st.booleans(), seed=st.integers(0, 9))
def test_populations(doing: str, jobs: JobTable, minds: bool, seed: int) -> None:
    """Members of populations, content or not; who is gone does nothing, and nothing changes."""
    log = DecisionLog()
    makes_up = doing in ("groups", "shmueli-feitelson", "generative")
    how: dict[str, Any] = {"seed": seed, "formula": None}
    if minds and doing != "rigid":
        how["formula"] = Requested() if makes_up else Habit()
    after, found, visits = lived(jobs, LIVING[doing], log=log, **how)
    silent, _, _ = lived(jobs, LIVING[doing], log=None, **how)
    assert silent.matrix[:, : len(silent)].tobytes() == after.matrix[:, : len(after)].tobytes()
    check_sums(after, found)
    check_gone(found)
    noted = sorted((one.time, one.user, one.what.name) for one in found if one.what >= What.THERE)
    assert noted == sorted((visit.at, visit.user, visit.what.name) for visit in visits)
    if doing != "think-time-windows":
        assert Why.PACE not in {one.why for one in found}


@pytest.mark.parametrize("users", ["shmueli-feitelson", "generative"])
@settings(max_examples=15)
@given(rows=workloads(), seed=st.integers(0, 9))
def test_site_users(users: str, rows: Rows, seed: int) -> None:
    """Users of a site on random records, also of jobs that the machine cannot run."""
    work = Work.of(table(rows), SessionDefinition.parse("arrival:60m"))
    casting = Casting.of(work, users, Streams(seed))
    model = Simulation(casting.jobs, 4, clock=SPRING, seed=seed)
    log = DecisionLog()
    casting.join(model, log=log)
    model.run()
    found = list(Decisions.of(log))
    check_sums(model.jobs, found)
    assert {Why.FIRST, Why.ENDED, Why.BREAK, Why.WINDOW} >= {one.why for one in found}


@pytest.mark.parametrize("hears", [True, False])
@settings(max_examples=15)
@given(runs=st.lists(seconds, min_size=1, max_size=4), pauses=st.lists(seconds, min_size=1),
       wakes=st.lists(seconds, min_size=1, max_size=4), seed=st.integers(0, 9))  # fmt: skip
def test_pool_users(
    hears: bool, runs: list[int], pauses: list[int], wakes: list[int], seed: int
) -> None:
    """Users of a pool, whether they hear of their results or not."""
    model = Simulation(JobTable(), 2, seed=seed)
    count = len(runs)
    pool = BatchPool(np.arange(count + 1), np.array(runs), np.array(runs), np.full(count, 2))
    members = [PoolMember(k, 1, wake, np.array(pauses)) for k, wake in enumerate(wakes)]
    users = add_pool_users(model, members, {1: pool}, horizon=2 * DAY, hears=hears)
    log = DecisionLog()
    note_generating(log, users)
    model.run()
    check_sums(model.jobs, list(Decisions.of(log)), hears=hears)


@pytest.mark.parametrize("hears", [True, False])
@settings(max_examples=15)
@given(counts=st.fixed_dictionaries({name: st.integers(0, 2) for name in ARCHETYPES}),
       seed=st.integers(0, 99), processors=st.sampled_from([32, 128]))  # fmt: skip
def test_archetypes(hears: bool, counts: dict[str, int], seed: int, processors: int) -> None:
    """People with office hours and nightly scripts, whether they hear of their results or not."""
    model = Simulation(JobTable(), processors, clock=SPRING, seed=seed)
    users = demo_population(model, counts, horizon=10 * DAY, hears=hears)
    log = DecisionLog()
    note_generating(log, users)
    model.run()
    found = list(Decisions.of(log))
    check_sums(model.jobs, found, hears=hears)
    assert Why.OWN not in {one.why for one in found}
    wakes = {one.user for one in found if one.why in (Why.FIRST, Why.HOUR)}
    assert {one.user for one in found} == wakes
