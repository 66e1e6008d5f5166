"""How satisfied users are, by each formula, and what they make of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents.populations.component_users import Member
from hpcrowd.agents.populations.openness import Consequences
from hpcrowd.agents.populations.satisfaction import Alea, Habit, Requested, acceptable, formula_of
from hpcrowd.agents.populations.semi_open import Roster
from hpcrowd.environment import JobTable
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError

from tests.support.populations import pool_of, record, simulated, submissions

#: A temporary user of three Tuesdays between two others.
ROWS = [
    (1, 0, HOUR, 1, 0),
    (2, WEEK + DAY, HOUR, 1, 0),
    (2, 2 * WEEK + DAY, HOUR, 1, 0),
    (2, 3 * WEEK + DAY, HOUR, 1, 0),
    (3, 8 * WEEK, HOUR, 1, 0),
]
ME = Roster((Member(7, 0, -1),), ())  # the only one who is not at an edge, from the first week on


def done(*, waits: int, run: int = HOUR) -> JobTable:
    """Return two jobs recorded with a wait of 10 min, that waited so long now."""
    jobs = record([(1, 0, HOUR, 1, 600), (1, 100, HOUR, 8, 600)])
    jobs.submit[:] = jobs.recorded_submit
    jobs.start[:] = jobs.submit + waits
    jobs.end[:] = jobs.start + run
    return jobs


BOTH = np.arange(2)


def test_habit_compares_responses_with_those_on_record() -> None:
    """As recorded 0; twice the responses, grace included, 1; half of them -1."""
    assert 0 == Habit()(done(waits=600), BOTH)
    assert 1 == Habit(grace=0)(done(waits=600 + HOUR + 600), BOTH)
    assert pytest.approx(1) == Habit(600)(done(waits=1800 + HOUR), BOTH)
    assert -1 == Habit(grace=0)(done(waits=0, run=2100), BOTH)


def test_requested_compares_waits_with_requested_times() -> None:
    """They asked for 2 h each; waits of 2 h are twice as bad as none."""
    used = math.log2(1 + 600 / 7200)
    assert 0 == Requested()(done(waits=600), BOTH)
    assert pytest.approx(1 - used) == Requested()(done(waits=7200), BOTH)
    assert pytest.approx(-used) == Requested()(done(waits=0), BOTH)
    half = math.log2(3) - math.log2(1 + 600 / 3600)
    assert pytest.approx(half) == Requested(0.5)(done(waits=7200), BOTH)


def test_made_up_work_is_compared_with_no_wait() -> None:
    """Without a record there is nothing that users are used to, but what they asked for."""
    jobs = done(waits=7200)
    jobs.recorded_submit[:] = jobs.recorded_start[:] = jobs.recorded_end[:] = -1
    assert pytest.approx(1) == Requested()(jobs, BOTH)
    with pytest.raises(QuantityError, match="satisfaction habit: user 1 generates its work"):
        Habit()(jobs, BOTH)


def test_acceptable_waits_are_those_of_alea() -> None:
    """Classes by requested time, and the logarithm of the processors."""
    hours = np.array([1, 2.9, 3, 6, 6.9, 7, 12, 23.9, 24, 100, 167.9, 168, 300])
    expected = [1, 2.9, 3, 3, 3.45, 3.5, 4, 23.9 / 3, 8, 25, 167.9 / 4, 42, 60]
    requested = np.rint(hours * HOUR).astype(np.int64)
    one = acceptable(requested, np.ones(13, np.int64)) / HOUR
    assert pytest.approx(expected, abs=1e-3) == one.tolist()
    eight = acceptable(requested, np.full(13, 8))
    assert pytest.approx((math.log(8) + 1) * one * HOUR) == eight


def test_alea_adds_up_the_acceptable_waits_of_a_unit() -> None:
    """Two jobs of 2 h, on 1 and on 8 processors."""
    limit = 7200 * (1 + 1 + math.log(8))
    expected = math.log2(1 + 20000 / limit) - math.log2(1 + 1200 / limit)
    assert pytest.approx(expected) == Alea()(done(waits=10000), BOTH)
    assert Alea(2.0)(done(waits=10000), BOTH) < expected


def test_jobs_that_never_ran_were_answered_at_once() -> None:
    """A rejected job neither waited nor responded."""
    jobs = done(waits=600)
    jobs.start[:] = jobs.end[:] = -1
    assert 0 == Habit()(jobs, BOTH) == Requested()(jobs, BOTH) == Alea()(jobs, BOTH)


def constant(doublings: float) -> Any:
    """Return a formula that always says the same."""
    return lambda jobs, rows: doublings


def test_one_formula_of_ones_own_is_a_function() -> None:
    """Any function of the table and the rows will do; who is content pauses for less time."""
    pool = pool_of(ROWS)
    for doublings, factor in ((0, 1), (-2, 0.5), (2, 2)):
        mind = Consequences(memory=1, elasticity=0.5, leave=0, again=0, absence=10 * WEEK)
        jobs, _, _ = simulated(pool, ME, formula=constant(doublings), consequences=mind, weeks=9)
        pause = round((WEEK - HOUR) * factor)
        first = DAY
        expected = [first + k * (HOUR + pause) for k in range(3)]
        assert expected == submissions(jobs, 7)


def test_long_pauses_do_not_depend_on_the_mood() -> None:
    """They are absences, not reactions."""
    mind = Consequences(memory=1, absence=2 * DAY, again=0)
    jobs, _, _ = simulated(pool_of(ROWS), ME, formula=constant(-3), consequences=mind)
    assert [DAY, WEEK + DAY, 2 * WEEK + DAY] == submissions(jobs, 7)


def test_mood_is_a_moving_average() -> None:
    """A fifth of the way each time, and one unit counts for three doublings at most."""
    mind = Consequences(elasticity=0, leave=0)
    _, _, (user,) = simulated(pool_of(ROWS), ME, formula=constant(50), consequences=mind)
    assert pytest.approx(3 * (1 - 0.8**3)) == user.mood


def test_who_is_unsatisfied_gives_up() -> None:
    """After the first unit, with certainty; what it has not submitted never comes."""
    mind = Consequences(memory=1, tolerance=0, leave=1, returns=0)
    jobs, living, (user,) = simulated(pool_of(ROWS), ME, formula=constant(1), consequences=mind)
    assert [DAY] == submissions(jobs, 7)
    assert [(0, 7, "there"), (DAY + HOUR, 7, "gave up")][1:] == living.visits.notes[1:]
    assert not user.done
    assert 0 == living.visits.remaining


def test_who_goes_away_comes_back_on_the_same_day_and_hour() -> None:
    """Away for a week, it misses the hour of its next work, which comes a week after that."""
    angry = iter([2.0, 0.0, 0.0])
    mind = Consequences(memory=1, tolerance=0, leave=1, returns=1, away=1, elasticity=0)
    jobs, living, _ = simulated(
        pool_of(ROWS), ME, formula=lambda jobs, rows: next(angry), consequences=mind, weeks=9
    )
    assert [DAY, 2 * WEEK + DAY, 3 * WEEK + DAY] == submissions(jobs, 7)
    assert ["arrived", "went away", "came back", "done"] == [
        visit.what for visit in living.visits.notes
    ]
    away, back = (living.visits.notes[k].at for k in (1, 2))
    assert (DAY + HOUR, WEEK) == (away, back - away)


def test_alarms_of_an_absent_user_ring_whole_weeks_later() -> None:
    """Its work of next week comes in the week after it is back."""
    angry = iter([2.0, 0.0, 0.0])
    mind = Consequences(memory=1, tolerance=0, leave=1, returns=1, away=3, elasticity=0)
    jobs, living, _ = simulated(
        pool_of(ROWS), ME, formula=lambda jobs, rows: next(angry), consequences=mind, weeks=30
    )
    weeks = (living.visits.notes[2].at - living.visits.notes[1].at) // WEEK
    # It was to come 23 h earlier in the week than it left: one week later than it is back.
    second = DAY + max(weeks + 1, 1) * WEEK
    assert weeks > 1
    assert [DAY, second, second + WEEK] == submissions(jobs, 7)


def test_who_is_content_begins_again() -> None:
    """A temporary user whose work is done starts again with certainty, and again."""
    mind = Consequences(memory=1, again=1, elasticity=0)
    jobs, living, _ = simulated(pool_of(ROWS), ME, formula=constant(-1), consequences=mind, weeks=7)
    assert [DAY + week * WEEK for week in range(7)] == submissions(jobs, 7)
    assert 2 == living.visits.counts()["went on"]


@pytest.mark.parametrize(
    "setting", [{"memory": 0.5}, {"leave": -1}, {"away": 0}, {"returns": 2}, {"most": math.inf}]
)
def test_consequences_that_make_no_sense(setting: dict[str, float]) -> None:
    """The name, the value and the rule."""
    (name,) = setting
    with pytest.raises(QuantityError, match=f"^{name} "):
        Consequences(**setting)  # type: ignore[arg-type]


def test_unknown_formula() -> None:
    """The message lists which there are."""
    with pytest.raises(QuantityError, match="'x': not known; choose habit, requested, alea"):
        formula_of("x")
