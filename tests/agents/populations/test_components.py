"""Pools: who comes in, as what, and what is said when there is too little."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hpcrowd.agents.populations.components import AT_BEGINNING, AT_END
from hpcrowd.agents.populations.openness import PoolRules
from hpcrowd.environment import Clock
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError, TraceError

from tests.support.populations import ONE, TWO_USERS, pool_of

STOCKHOLM = ZoneInfo("Europe/Stockholm")


def test_users_are_long_term_or_temporary() -> None:
    """Who was there for more than half of the log is long-term; weeks count from a Monday."""
    pool = pool_of()
    one, two = pool.components
    assert (1, True, 0, 2, 2) == (one.user, one.long_term, one.first_week, one.last_week, one.jobs)
    assert (2, False, 1, 1, 2) == (two.user, two.long_term, two.first_week, two.last_week, two.jobs)
    assert ((0,), (1,), 3) == (pool.long_term, pool.temporary, pool.weeks)
    assert 1 / 3 == pool.arrivals_per_week


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
    pool = pool_of([(user, at + 5 * DAY, *more) for user, at, *more in TWO_USERS], clock)
    assert "1996-09-30 00:00:00+02:00" == str(pool.clock.local(0))
    local = pool.clock.local(pool.second(0, 0))
    assert "1996-10-01 03:30:00+02:00" == str(local)
    assert local == clock.local(5 * DAY + 10 * HOUR)


def test_moving_by_weeks_keeps_day_and_hour_over_a_change_of_the_clocks() -> None:
    """Four weeks later clocks have been put back: the same local time is an hour later."""
    start = int(datetime(1996, 9, 30, tzinfo=STOCKHOLM).timestamp())
    pool = pool_of(clock=Clock(start, STOCKHOLM, known=True))
    seconds = [10 * HOUR, 4 * WEEK + 11 * HOUR, -WEEK + 10 * HOUR, 10 * HOUR + 5]
    assert seconds == [pool.second(0, *by) for by in ((0,), (4,), (-1,), (0, 5))]


def test_a_log_without_a_start_continues_without() -> None:
    """Where the origin only counts as a Monday it does so in a run."""
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
def test_small_records_are_refused(rows: Any, rules: PoolRules, message: str) -> None:
    """Less than two weeks, or too few users, leave nothing to draw from."""
    with pytest.raises(TraceError, match=message):
        pool_of(rows, rules=rules, source="small.swf")


@pytest.mark.parametrize("rules", [{"edge": 0.5}, {"long_term": 1}, {"least": 0}])
def test_rules_that_make_no_sense(rules: dict[str, Any]) -> None:
    """The name, the value and the rule."""
    with pytest.raises(QuantityError, match="^{} {}: ".format(*next(iter(rules.items())))):
        PoolRules(**rules)
