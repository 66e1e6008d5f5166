"""Pools and populations: who comes in, as what, how many and when."""

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, Streams, Work
from hpcrowd.agents.populations.components import AT_BEGINNING, AT_END, Pool
from hpcrowd.agents.populations.semi_open import Roster, arrivals_in, draw_roster
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError, TraceError
from hpcrowd.populations import Consequences, Member, Openness, PoolRules, Requested

from tests.support.populations import ONE, TWO_USERS, pool_of, record, simulated

STOCKHOLM = ZoneInfo("Europe/Stockholm")


def test_users_are_long_term_or_temporary():
    """Who was there for more than half of the log is long-term; weeks count from a Monday."""
    pool = pool_of()
    one, two = pool.components
    assert (1, True, 0, 2, 2) == (one.user, one.long_term, one.first_week, one.last_week, one.jobs)
    assert (2, False, 1, 1, 2) == (two.user, two.long_term, two.first_week, two.last_week, two.jobs)
    assert ((0,), (1,), 3) == (pool.long_term, pool.temporary, pool.weeks)
    assert 1 / 3 == pool.arrivals_per_week
    rows = [(1, 0, 60, 1, 0), (1, 4 * WEEK, 60, 1, 0), (2, WEEK, 60, 1, 0)]
    half = pool_of([*rows, (2, 3 * WEEK, 60, 1, 0)])
    more = pool_of([*rows, (2, 3 * WEEK + 1, 60, 1, 0)])
    assert [True, False] == [one.long_term for one in half.components]
    assert [True, True] == [one.long_term for one in more.components]


def test_users_at_the_edges_are_dropped_and_counted():
    """Who was active only in the first or last 5 % of the log is not in the pool."""
    edge = 20 * WEEK // 20
    rows = [
        (1, 0, 60, 1, 0), (1, 20 * WEEK, 60, 1, 0),
        (2, edge, 60, 1, 0), (3, edge + 1, 60, 1, 0),
        (4, 20 * WEEK - edge, 60, 1, 0), (4, 20 * WEEK - 7, 60, 1, 0),
        (5, 20 * WEEK - edge - 1, 60, 1, 0),
    ]  # fmt: skip
    pool = pool_of(rows)
    assert [1, 3, 5] == [one.user for one in pool.components]
    assert {AT_BEGINNING: 1, AT_END: 1} == dict(pool.dropped_users)
    assert {AT_BEGINNING: 1, AT_END: 2} == dict(pool.dropped_jobs)
    assert 5 == len(pool_of(rows, rules=PoolRules(edge=0, least=1)).components)


def test_a_run_begins_on_a_monday_and_keeps_local_time():
    """Second 0 is a Monday, 00:00; moving by weeks keeps day and hour when clocks are changed."""
    start = int(datetime(1996, 9, 25, 17, 30, tzinfo=STOCKHOLM).timestamp())  # a Wednesday
    clock = Clock(start, STOCKHOLM, known=True)
    pool = pool_of([(user, at + 5 * DAY, *more) for user, at, *more in TWO_USERS], clock)
    assert "1996-09-30 00:00:00+02:00" == str(pool.clock.local(0))
    local = pool.clock.local(pool.second(0, 0))
    assert "1996-10-01 03:30:00+02:00" == str(local)
    assert local == clock.local(5 * DAY + 10 * HOUR)
    start = int(datetime(1996, 9, 30, tzinfo=STOCKHOLM).timestamp())
    pool = pool_of(clock=Clock(start, STOCKHOLM, known=True))
    seconds = [10 * HOUR, 4 * WEEK + 11 * HOUR, -WEEK + 10 * HOUR, 10 * HOUR + 5]
    assert seconds == [pool.second(0, *by) for by in ((0,), (4,), (-1,), (0, 5))]
    pool = pool_of([(user, at + WEEK, *more) for user, at, *more in TWO_USERS])
    assert (True, 10 * HOUR) == (pool.clock.nominal, pool.second(0, 0))


@pytest.mark.parametrize(
    ("rows", "rules", "message"),
    [
        ([(1, 0, 60, 1, 0), (2, 10 * DAY, 60, 1, 0)], ONE,
         "small.swf: 10.0 days .* at least 14 days: take a longer"),
        ([*TWO_USERS, (3, 0, 60, 1, 0)], PoolRules(),
         f"a pool of 2 users .dropped: 1 {AT_BEGINNING}.; at least 5 are needed"),
    ],
)  # fmt: skip
def test_small_records_are_refused(rows, rules, message):
    """Less than two weeks, or too few users, leave nothing to draw from."""
    with pytest.raises(TraceError, match=message):
        pool_of(rows, rules=rules, source="small.swf")


WEEKS = 10


@pytest.fixture(scope="module")
def pool():
    """Return a pool of 6 long-term and 20 temporary users of ten weeks."""
    random = np.random.default_rng(5)
    rows = [(user, user * HOUR + week * WEEK, 900, 1, 0) for user in range(6) for week in range(10)]
    for user in range(6, 26):
        first = int(random.integers(WEEK, 8 * WEEK))
        rows += [(user, first + k * DAY, 4000, 2, 300) for k in range(int(random.integers(1, 9)))]
    return Pool.of(Work.of(record(rows)), Clock())


def test_how_many_users_come(pool):
    """As many as in the log on average, or evenly; twice the users submit twice the jobs."""
    assert (6, 20, 10) == (len(pool.long_term), len(pool.temporary), pool.weeks)
    rosters = [draw_roster(pool, 100, Openness(full=False), Streams(seed)) for seed in range(20)]
    assert [[0, 1, 2, 3, 4, 5]] * 20 == [[m.number for m in one.long_term] for one in rosters]
    mean = np.mean([len(one.temporary) for one in rosters])
    assert pytest.approx(200, abs=4 * np.sqrt(200 / 20)) == mean  # four standard errors
    members = draw_roster(pool, WEEKS, Openness(arrivals="even", full=False), Streams()).temporary
    weeks = [pool.components[m.component].first_week + m.shift for m in members]
    assert sorted([*range(WEEKS), *range(WEEKS)]) == weeks
    even = Openness(arrivals="even")
    assert [2, 3, 2, 3] == [arrivals_in(week, 2.5, even, Streams()) for week in range(4)]
    once, twice = (
        [len(simulated(pool, draw_roster(pool, 40, Openness(factor), Streams(seed)), weeks=40)[0])
         for seed in range(5)]
        for factor in (1, 2)
    )  # fmt: skip
    assert pytest.approx(2, rel=0.1) == np.mean(twice) / np.mean(once)
    assert pytest.approx(40 * pool.jobs / pool.weeks, rel=0.1) == np.mean(once)


@pytest.mark.parametrize("mean", [0.3, 4.0, 700.0])  # its terms are too small to hold
def test_arrivals_have_the_mean_and_variance_of_a_poisson_process(mean):
    """The number of users who come in a week."""
    drawn = np.array([arrivals_in(week, mean, Openness(), Streams(3)) for week in range(1500)])
    assert pytest.approx(mean, abs=4 * np.sqrt(mean / 1500)) == drawn.mean()
    assert pytest.approx(mean, rel=0.2) == drawn.var()


def test_a_larger_population_holds_the_smaller_one(pool):
    """Users of before are all there, and the same; numbers are apart, also where one is unknown."""
    members = [
        set(draw_roster(pool, 30, Openness(factor), Streams(1))) for factor in (0.5, 1, 1.3, 2, 5)
    ]
    for smaller, larger in pairwise(members):
        assert smaller < larger
    numbers = [member.number for member in members[-1]]
    assert len(numbers) == len(set(numbers))
    rows = [(user, week * WEEK, 60, 1, 0) for user in (-1, 999) for week in range(5)]
    numbers = [member.number for member in draw_roster(pool_of(rows), 5, Openness(3), Streams())]
    assert [-1, 999, 9_999, 10_999, 19_999, 20_999] == sorted(numbers)


def test_one_more_user_changes_nobody_else(pool):
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


def test_a_population_may_be_split_by_shares(pool):
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


def test_the_first_weeks_are_like_the_others(pool):
    """Temporary users who came before are there unless it begins empty; shuffled ones are moved."""
    full = draw_roster(pool, WEEKS, Openness(9), Streams())
    empty = draw_roster(pool, WEEKS, Openness(9, full=False), Streams())
    assert set(empty.temporary) < set(full.temporary)
    for member in set(full.temporary) - set(empty.temporary):
        one = pool.components[member.component]
        assert one.first_week + member.shift < 0 <= one.last_week + member.shift
    later = [m.later for m in draw_roster(pool, WEEKS, Openness(shuffled=True), Streams())]
    assert len(set(later)) == len(later)
    assert 0 <= min(later) < max(later) < WEEK


def test_an_empty_population_is_refused(pool):
    """Where there are only temporary users and few weeks nobody may be there at all."""
    rows = [(0, 0, 60, 1, 0), *[(user, user * WEEK, 60, 1, 0) for user in (*range(1, 8), 9)]]
    with pytest.raises(QuantityError, match=r"users 0.001x: no users in 1 weeks; the log has 0"):
        draw_roster(pool_of(rows), 1, Openness(0.001), Streams(1))
    with pytest.raises(QuantityError, match=r"^weeks 0: "):
        draw_roster(pool, 0, Openness(), Streams())


@pytest.mark.parametrize(
    ("kind", "choice", "what"),
    [
        (PoolRules, {"edge": 0.5}, "edge 0.5: "),
        (PoolRules, {"long_term": 1}, "long_term 1: "),
        (PoolRules, {"least": 0}, "least 0: "),
        (Openness, {"factor": 0}, "users 0x"),
        (Openness, {"factor": 1e3}, "users 1000x"),
        (Openness, {"arrivals": "x"}, "arrivals"),
    ],
)
def test_choices_that_make_no_sense(kind, choice, what):
    """The choice, its value and the rule."""
    with pytest.raises(QuantityError, match=f"^{what}"):
        kind(**choice)
