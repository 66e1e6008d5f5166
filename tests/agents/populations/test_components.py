"""Pools: who comes in, as what, and what is said when there is too little."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hpcrowd.agents.populations.components import AT_BEGINNING, AT_END
from hpcrowd.agents.populations.openness import PoolRules
from hpcrowd.environment import Clock
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError, TraceError

from tests.support.populations import TWO_USERS, pool_of

STOCKHOLM = ZoneInfo("Europe/Stockholm")


def test_users_are_long_term_or_temporary() -> None:
    """Who was there for more than half of the log is long-term; weeks count from a Monday."""
    pool = pool_of()
    one, two = pool.components
    assert (1, True, 0, 2, 2) == (one.user, one.long_term, one.first_week, one.last_week, one.jobs)
    assert (2, False, 1, 1, 2) == (two.user, two.long_term, two.first_week, two.last_week, two.jobs)
    assert ((0,), (1,), 3) == (pool.long_term, pool.temporary, pool.weeks)
    assert 1 / 3 == pool.arrivals_per_week
    assert "<Pool of 1 long-term and 1 temporary users, 3 weeks>" == repr(pool)


def test_half_of_the_log_is_not_more_than_half() -> None:
    """A user of exactly half of the log is temporary, of a second more long-term."""
    rows = [(1, 0, 60, 1, 0), (1, 4 * WEEK, 60, 1, 0), (2, WEEK, 60, 1, 0)]
    half = pool_of([*rows, (2, 3 * WEEK, 60, 1, 0)])
    more = pool_of([*rows, (2, 3 * WEEK + 1, 60, 1, 0)])
    assert [True, False] == [one.long_term for one in half.components]
    assert [True, True] == [one.long_term for one in more.components]


def test_users_at_the_edges_are_dropped_and_counted() -> None:
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


def test_a_run_begins_on_the_monday_before_the_log() -> None:
    """Second 0 of a run is a Monday, 00:00 local time, whenever the log began."""
    start = int(datetime(1996, 9, 25, 17, 30, tzinfo=STOCKHOLM).timestamp())  # a Wednesday
    clock = Clock(start, STOCKHOLM, known=True)
    rows = [(user, at + 5 * DAY, run, n, wait) for user, at, run, n, wait in TWO_USERS]
    pool = pool_of(rows, clock)
    assert "1996-09-30 00:00:00+02:00" == str(pool.clock.local(0))
    local = pool.clock.local(pool.second(0, 0))
    assert "1996-10-01 03:30:00+02:00" == str(local)
    assert local == clock.local(5 * DAY + 10 * HOUR)


def test_moving_by_weeks_keeps_day_and_hour_over_a_change_of_the_clocks() -> None:
    """Four weeks later clocks have been put back: the same local time is an hour later."""
    start = int(datetime(1996, 9, 30, tzinfo=STOCKHOLM).timestamp())
    pool = pool_of(clock=Clock(start, STOCKHOLM, known=True))
    assert 10 * HOUR == pool.second(0, 0)
    assert 4 * WEEK + 11 * HOUR == pool.second(0, 4)
    assert 10 == pool.clock.local(pool.second(0, 4)).hour
    assert -WEEK + 10 * HOUR == pool.second(0, -1)
    assert 10 * HOUR + 5 == pool.second(0, 0, 5)


def test_a_log_without_a_start_continues_without() -> None:
    """Where the origin only counts as a Monday it does so in a run."""
    rows = [(user, at + WEEK, run, n, wait) for user, at, run, n, wait in TWO_USERS]
    pool = pool_of(rows)
    assert pool.clock.nominal
    assert 10 * HOUR == pool.second(0, 0)


def test_a_short_log_is_refused() -> None:
    """Less than two weeks leave nothing to move by whole weeks."""
    rows = [(1, 0, 60, 1, 0), (2, 10 * DAY, 60, 1, 0)]
    match = r"small.swf: 10.0 days .* at least 14 days: take a longer"
    with pytest.raises(TraceError, match=match):
        pool_of(rows, source="small.swf")


def test_a_small_pool_is_refused() -> None:
    """The message says how many there are, how many it takes, and who was dropped."""
    rows = [*TWO_USERS, (3, 0, 60, 1, 0)]
    with pytest.raises(
        TraceError,
        match=f"a pool of 2 users .dropped: 1 {AT_BEGINNING}.; at least 5 are needed",
    ):
        pool_of(rows, rules=PoolRules())


@pytest.mark.parametrize(
    ("rules", "what"),
    [({"edge": 0.5}, "edge 0.5"), ({"long_term": 1}, "long_term 1"), ({"least": 0}, "least 0")],
)
def test_rules_that_make_no_sense(rules: dict[str, float], what: str) -> None:
    """The name, the value and the rule."""
    with pytest.raises(QuantityError, match=f"^{what}: "):
        PoolRules(**rules)  # type: ignore[arg-type]
