"""Who is in a population: how many, when, and that one more changes nobody else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Work
from hpcrowd.agents.populations.component_users import Member
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.openness import Consequences, Openness
from hpcrowd.agents.populations.satisfaction import Requested
from hpcrowd.agents.populations.semi_open import Roster, arrivals_in, draw_roster
from hpcrowd.environment import Clock, Streams
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError

from tests.support.populations import pool_of, record, simulated

WEEKS = 10


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Return a pool of 6 long-term and 20 temporary users of ten weeks."""
    random = np.random.default_rng(5)
    rows = [(user, user * HOUR + week * WEEK, 900, 1, 0) for user in range(6) for week in range(10)]
    for user in range(6, 26):
        first = int(random.integers(WEEK, 8 * WEEK))
        rows += [(user, first + k * DAY, 4000, 2, 300) for k in range(int(random.integers(1, 9)))]
    return Pool.of(Work.of(record(rows)), Clock())


def test_as_many_users_as_in_the_log(pool: Pool) -> None:
    """All long-term users are there once, and on average as many arrive per week."""
    assert (6, 20, 10) == (len(pool.long_term), len(pool.temporary), pool.weeks)
    rosters = [draw_roster(pool, 100, Openness(full=False), Streams(seed)) for seed in range(20)]
    assert [[0, 1, 2, 3, 4, 5]] * 20 == [[m.number for m in one.long_term] for one in rosters]
    mean = np.mean([len(one.temporary) for one in rosters])
    assert pytest.approx(200, abs=4 * np.sqrt(200 / 20)) == mean  # four standard errors


def test_arrivals_may_be_even(pool: Pool) -> None:
    """Two a week, every week; five in two weeks where the mean is 2.5."""
    members = draw_roster(pool, WEEKS, Openness(arrivals="even", full=False), Streams()).temporary
    weeks = [pool.components[m.component].first_week + m.shift for m in members]
    assert sorted([*range(WEEKS), *range(WEEKS)]) == weeks
    even = Openness(arrivals="even")
    assert [2, 3, 2, 3] == [arrivals_in(week, 2.5, even, Streams()) for week in range(4)]


@pytest.mark.parametrize("mean", [0.3, 4.0, 700.0])
def test_arrivals_have_the_mean_and_variance_of_a_poisson_process(mean: float) -> None:
    """Also where the sum over its terms would be of numbers too small to hold."""
    drawn = np.array([arrivals_in(week, mean, Openness(), Streams(3)) for week in range(1500)])
    assert pytest.approx(mean, abs=4 * np.sqrt(mean / 1500)) == drawn.mean()
    assert pytest.approx(mean, rel=0.2) == drawn.var()


def test_load_is_set_by_the_number_of_users(pool: Pool) -> None:
    """Twice the users submit twice the jobs, each at its own pace."""
    once, twice = (
        [len(simulated(pool, draw_roster(pool, 40, Openness(factor), Streams(seed)), weeks=40)[0])
         for seed in range(5)]
        for factor in (1, 2)
    )  # fmt: skip
    assert pytest.approx(2, rel=0.1) == np.mean(twice) / np.mean(once)
    assert pytest.approx(40 * pool.jobs / pool.weeks, rel=0.1) == np.mean(once)


def test_a_larger_population_holds_the_smaller_one(pool: Pool) -> None:
    """With more users those of before are all there, and are the same."""
    members = [
        set(draw_roster(pool, 30, Openness(factor), Streams(1))) for factor in (0.5, 1, 1.3, 2, 5)
    ]
    for smaller, larger in pairwise(members):
        assert smaller < larger
    numbers = [member.number for member in members[-1]]
    assert len(numbers) == len(set(numbers))


def test_numbers_are_apart_also_where_the_user_is_unknown() -> None:
    """A copy of user -1 is not taken for user 999."""
    rows = [(user, week * WEEK, 60, 1, 0) for user in (-1, 999) for week in range(5)]
    numbers = [member.number for member in draw_roster(pool_of(rows), 5, Openness(3), Streams())]
    assert [-1, 999, 9_999, 10_999, 19_999, 20_999] == sorted(numbers)


def test_one_more_user_changes_nobody_else(pool: Pool) -> None:
    """On a machine for all, regardless of who else is there, a user draws and submits the same."""
    roster = draw_roster(pool, WEEKS, Openness(), Streams(2))
    more = Roster(roster.long_term, (*roster.temporary, Member(99, 3, 1)))
    mind = {"formula": Requested(), "consequences": Consequences(tolerance=0, leave=0.9)}
    alone, _, _ = simulated(pool, roster, weeks=WEEKS, **mind)
    both, living, _ = simulated(pool, more, weeks=WEEKS, **mind)
    others = both.take(np.flatnonzero(both.user != 99))
    assert 0 < np.count_nonzero(both.user == 99)
    assert set(zip(alone.user, alone.submit, alone.end, strict=True)) == set(
        zip(others.user, others.submit, others.end, strict=True)
    )
    assert living.visits.counts()["there"] > 0


def test_a_population_may_be_split_by_shares(pool: Pool) -> None:
    """Every user is in one part, which it draws itself; the parts are about as large as asked."""
    roster = draw_roster(pool, 200, Openness(2), Streams(1))
    parts = roster.split([0.25, 0, 0.75], Streams(1))
    assert sorted(m.number for part in parts for m in part) == sorted(m.number for m in roster)
    assert 0 == len(parts[1])
    assert pytest.approx(0.25, abs=0.06) == len(parts[0]) / len(roster)
    smaller = draw_roster(pool, 200, Openness(1), Streams(1)).split([0.25, 0, 0.75], Streams(1))
    assert set(smaller[0]) < set(parts[0])
    with pytest.raises(QuantityError, match=r"shares 0.5 \+ 0.4: must be 0 or more, and add"):
        roster.split([0.5, 0.4], Streams())


def test_the_first_weeks_are_like_the_others(pool: Pool) -> None:
    """Temporary users who came before are there at first, unless it begins empty."""
    full = draw_roster(pool, WEEKS, Openness(9), Streams())
    empty = draw_roster(pool, WEEKS, Openness(9, full=False), Streams())
    assert set(empty.temporary) < set(full.temporary)
    for member in set(full.temporary) - set(empty.temporary):
        one = pool.components[member.component]
        assert one.first_week + member.shift < 0 <= one.last_week + member.shift


def test_shuffled_users_keep_neither_day_nor_hour(pool: Pool) -> None:
    """Each is moved by a part of its own week."""
    later = [m.later for m in draw_roster(pool, WEEKS, Openness(shuffled=True), Streams())]
    assert len(set(later)) == len(later)
    assert 0 <= min(later) < max(later) < WEEK


def test_an_empty_population_is_refused(pool: Pool) -> None:
    """Where there are only temporary users and few weeks nobody may be there at all."""
    rows = [(0, 0, 60, 1, 0), *[(user, user * WEEK, 60, 1, 0) for user in (*range(1, 8), 9)]]
    with pytest.raises(QuantityError, match=r"users 0.001x: no users in 1 weeks; the log has 0"):
        draw_roster(pool_of(rows), 1, Openness(0.001), Streams(1))
    with pytest.raises(QuantityError, match=r"^weeks 0: "):
        draw_roster(pool, 0, Openness(), Streams())


@pytest.mark.parametrize(
    ("choice", "what"),
    [
        ({"factor": 0}, "users 0x"),
        ({"factor": 1e3}, "users 1000x"),
        ({"arrivals": "x"}, "arrivals"),
    ],
)
def test_choices_that_make_no_sense(choice: dict[str, Any], what: str) -> None:
    """The choice, its value and the rule."""
    with pytest.raises(QuantityError, match=f"^{what}"):
        Openness(**choice)
