"""Members who make up their work: they come and go like the users they are made after."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.agents.behaviours.activity import Shifts
from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.component_users import ClosedLoop
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.made_up import ComponentWork, GroupWork, SiteWork
from hpcrowd.agents.populations.openness import Consequences, Openness
from hpcrowd.agents.populations.satisfaction import Requested
from hpcrowd.agents.populations.semi_open import add_members, draw_roster
from hpcrowd.environment import JobTable, Simulation, Streams
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError

from tests.support.populations import pool_of

#: Two long-term users and a temporary one with three units.
ROWS = [
    *[(1, week * WEEK + 10 * HOUR, HOUR, 1, 0) for week in range(6)],
    *[(2, week * WEEK + 3 * DAY, 2 * HOUR, 2, 0) for week in range(6)],
    *[(3, 2 * WEEK + day * DAY, HOUR, 3, 0) for day in range(3)],
]
JOBS = np.array([600, 60, 60]), np.array([900] * 3), np.array([1, 2, 2])
BATCHES = {1: BatchPool(np.array([0, 1, 3]), *JOBS)}


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Return the pool of three users."""
    return pool_of(ROWS)


def member(number: int, *pauses: int) -> PoolMember:
    """Return a member of a group."""
    return PoolMember(number, 1, 0, np.array(pauses, np.int64))


def groups(pool: Pool) -> GroupWork:
    """Return members who pause for a day, or for an hour."""
    return GroupWork(pool, [member(1, DAY), member(2, DAY), member(3, HOUR)], BATCHES)


def test_members_come_and_go(pool: Pool) -> None:
    """Long-term ones continue to the end; a temporary one leaves like the user it is made after.

    Of a group it draws as many batches; of a site it stays as many days, with jobs of its like.
    """
    weekdays = Shifts(opens=0, closes=DAY, shift=0, day_share=1, weekday_share=1)
    roster = draw_roster(pool, 8, Openness(full=False, arrivals="even"), Streams(1))
    for living in (groups(pool), SiteWork(pool, SiteModel(shifts=weekdays))):
        model = Simulation(JobTable(), 100, "easy", clock=pool.clock, seed=4)
        users = add_members(model, living, roster, horizon=8 * WEEK)
        model.run()
        counts = living.visits.counts()
        assert (2, 1, 1) == (counts["there"], counts["arrived"], counts["done"])
        (guest,) = (user for user in users if user.number not in (1, 2))
        jobs = model.jobs.take(np.flatnonzero(model.jobs.user == guest.number))
        assert [guest] == [user for user in users if user.done]
        assert np.ptp(jobs.submit) <= 2 * DAY + 1
        if isinstance(living, SiteWork):
            assert {3} == set(jobs.processors.tolist())
        else:
            assert 3 == guest.submitted
            assert np.ptp(jobs.submit) < DAY
            assert 0 == (jobs.submit.min() - 2 * WEEK) % WEEK  # on the Monday, 00:00, of some week
            last = [model.jobs.submit[model.jobs.user == number].max() for number in (1, 2)]
            assert min(last) > 8 * WEEK - 2 * DAY


def test_not_all_need_do_the_same(pool: Pool) -> None:
    """Some do again what was recorded, the others make it up, on one machine."""
    model = Simulation(JobTable(), 6, "easy", clock=pool.clock, seed=4)
    roster = draw_roster(pool, 8, Openness(4), Streams(1))
    again, made_up = roster.split([0.5, 0.5], Streams(1))
    users = [
        *add_members(model, ComponentWork(pool, ClosedLoop()), again, horizon=8 * WEEK),
        *add_members(model, groups(pool), made_up, horizon=8 * WEEK),
    ]
    model.run()
    assert len(roster) == len(users)
    recorded = model.jobs.recorded_submit >= 0
    assert {m.number for m in again} >= set(model.jobs.user[recorded].tolist()) != set()
    assert {m.number for m in made_up} >= set(model.jobs.user[~recorded].tolist()) != set()


@pytest.mark.parametrize("kind", ["group", "site"])
def test_made_up_members_mind_their_waits(pool: Pool, kind: str) -> None:
    """On a machine of three processors users of many jobs give up; nobody who has submits more."""
    living = groups(pool) if kind == "group" else SiteWork(pool)
    model = Simulation(JobTable(), 3, "fcfs", clock=pool.clock, seed=4)
    roster = draw_roster(pool, 8, Openness(12), Streams(1))
    mind = Consequences(memory=1, tolerance=0, leave=50, returns=0)
    add_members(model, living, roster, horizon=8 * WEEK, formula=Requested(0.01), consequences=mind)
    model.run()
    gave_up = [visit for visit in living.visits.notes if visit.what == "gave up"]
    assert gave_up
    for visit in gave_up:
        assert visit.at >= model.jobs.submit[model.jobs.user == visit.user].max()


def test_who_is_not_a_member_is_named(pool: Pool) -> None:
    """Each user of the pool is a member whose group has batches."""
    with pytest.raises(QuantityError, match="user 2: in the pool, but not a member"):
        GroupWork(pool, [member(1, DAY)], BATCHES)
    with pytest.raises(QuantityError, match="user 1: no batches of its group 1"):
        GroupWork(pool, [member(number, DAY) for number in (1, 2, 3)], {})
