"""How satisfied users are, by each formula, and what they make of it."""

import math

import numpy as np
import pytest
from hpcrowd.agents.populations.satisfaction import Alea, Habit, Requested, acceptable, formula_of
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import Consequences, Member, Roster

from tests.support.populations import pool_of, record, simulated, submissions

#: A temporary user of three Tuesdays between two others.
ROWS = [(1, 0, HOUR, 1, 0), *[(2, week * WEEK + DAY, HOUR, 1, 0) for week in (1, 2, 3)],
        (3, 8 * WEEK, HOUR, 1, 0)]  # fmt: skip
ME = Roster((Member(7, 0, -1),), ())  # the only one who is not at an edge, from the first week on
BOTH = np.arange(2)


def done(*, waits, run=HOUR):
    """Return two jobs recorded with a wait of 10 min, that waited so long now."""
    jobs = record([(1, 0, HOUR, 1, 600), (1, 100, HOUR, 8, 600)])
    jobs.submit[:] = jobs.recorded_submit
    jobs.start[:] = jobs.submit + waits
    jobs.end[:] = jobs.start + run
    return jobs


#: What users are used to, in doublings: 10 min of wait for requested times of 2 h; and the longest
#: acceptable waits of two jobs on 1 and 8 processors, s.
USED, LIMIT = math.log2(1 + 600 / 7200), 7200 * (1 + 1 + math.log(8))


@pytest.mark.parametrize(
    ("formula", "happened", "expected"),
    [
        # As recorded 0; twice the responses, grace included, 1; half of them -1.
        (Habit(), {"waits": 600}, 0),
        (Habit(grace=0), {"waits": 600 + HOUR + 600}, 1),
        (Habit(grace=0), {"waits": 0, "run": 2100}, -1),
        # Waits of as long as was asked for are twice as bad as none.
        (Requested(), {"waits": 600}, 0),
        (Requested(), {"waits": 7200}, 1 - USED),
        (Requested(0.5), {"waits": 7200}, math.log2(3) - math.log2(1 + 600 / 3600)),
        # Alea adds up the acceptable waits of a unit.
        (Alea(), {"waits": 10000}, math.log2(1 + 20000 / LIMIT) - math.log2(1 + 1200 / LIMIT)),
        (Alea(2.0), {"waits": 10000},
         math.log2(1 + 10000 / LIMIT) - math.log2(1 + 600 / LIMIT)),
    ],
)  # fmt: skip
def test_formulas(formula, happened, expected):
    """Each formula compares waits or responses with those that users accept, in doublings."""
    assert pytest.approx(expected) == formula(done(**happened), BOTH)


def test_work_without_a_record_or_a_run():
    """Who made up work is only used to what was asked for; what never ran was answered at once."""
    jobs = done(waits=7200)
    jobs.recorded_submit[:] = jobs.recorded_start[:] = jobs.recorded_end[:] = -1
    assert pytest.approx(1) == Requested()(jobs, BOTH)
    with pytest.raises(QuantityError, match="satisfaction habit: user 1 generates its work"):
        Habit()(jobs, BOTH)
    jobs = done(waits=600)
    jobs.start[:] = jobs.end[:] = -1
    assert 0 == Habit()(jobs, BOTH) == Requested()(jobs, BOTH) == Alea()(jobs, BOTH)


def test_acceptable_waits_are_those_of_alea():
    """Classes by requested time, and the logarithm of the processors."""
    hours = np.array([1, 2.9, 3, 6, 6.9, 7, 12, 23.9, 24, 100, 167.9, 168, 300])
    expected = [1, 2.9, 3, 3, 3.45, 3.5, 4, 23.9 / 3, 8, 25, 167.9 / 4, 42, 60]
    requested = np.rint(hours * HOUR).astype(np.int64)
    one = acceptable(requested, np.ones(13, np.int64)) / HOUR
    assert pytest.approx(expected, abs=1e-3) == one.tolist()
    eight = acceptable(requested, np.full(13, 8))
    assert pytest.approx((math.log(8) + 1) * one * HOUR) == eight


def lived(doublings, weeks=6, **mind):
    """Return when a user submits, its visits and itself; a formula says a number, or several."""
    said = iter(doublings) if isinstance(doublings, list) else None
    jobs, living, (user,) = simulated(
        pool_of(ROWS), ME, weeks=weeks, consequences=Consequences(memory=1, **mind),
        formula=lambda jobs, rows: doublings if said is None else next(said),
    )  # fmt: skip
    return submissions(jobs, 7), living.visits, user


@pytest.mark.parametrize(("doublings", "factor"), [(0, 1), (-2, 0.5), (2, 2)])
def test_who_is_content_pauses_for_less_time(doublings, factor):
    """Any function of the table and the rows is a formula; pauses follow it."""
    step = HOUR + round((WEEK - HOUR) * factor)
    found, _, _ = lived(doublings, 9, elasticity=0.5, leave=0, again=0, absence=10 * WEEK)
    assert [DAY, DAY + step, DAY + 2 * step] == found


def test_what_users_make_of_it():
    """Long pauses are absences; moods are averages; who is unsatisfied goes, or begins again."""
    assert [DAY, WEEK + DAY, 2 * WEEK + DAY] == lived(-3, absence=2 * DAY, again=0)[0]
    mind = Consequences(elasticity=0, leave=0)
    _, _, (user,) = simulated(pool_of(ROWS), ME, formula=lambda *_: 50, consequences=mind)
    assert pytest.approx(3 * (1 - 0.8**3)) == user.mood
    found, visits, user = lived(1.0, tolerance=0, leave=1, returns=0)
    assert [DAY] == found
    assert [(DAY + HOUR, 7, "gave up")] == visits.notes[1:]
    assert (False, 0) == (user.done, visits.remaining)
    found, visits, _ = lived(-1, 7, again=1, elasticity=0)
    assert [DAY + week * WEEK for week in range(7)] == found
    assert 2 == visits.counts()["went on"]


@pytest.mark.parametrize(("away", "weeks"), [(1, 9), (3, 30)])
def test_who_goes_away_comes_back_on_the_same_day_and_hour(away, weeks):
    """It misses the hour of its next work, which comes on that day of the week when it is back."""
    found, visits, _ = lived(
        [2.0, 0.0, 0.0], weeks, tolerance=0, leave=1, returns=1, away=away, elasticity=0
    )
    assert ["arrived", "went away", "came back", "done"] == [visit.what for visit in visits.notes]
    (left, back) = (visits.notes[place].at for place in (1, 2))
    absent, rest = divmod(back - left, WEEK)
    assert (DAY + HOUR, 0, away > 1) == (left, rest, absent > 1)
    # It was to come an hour earlier in the week than it left: a week later than it is back.
    second = DAY + (absent + 1) * WEEK
    assert [DAY, second, second + WEEK] == found


@pytest.mark.parametrize(
    "setting", [{"memory": 0.5}, {"leave": -1}, {"away": 0}, {"returns": 2}, {"most": math.inf}]
)
def test_consequences_that_make_no_sense(setting):
    """The name, the value and the rule; unknown formulas with those that there are."""
    with pytest.raises(QuantityError, match=f"^{next(iter(setting))} "):
        Consequences(**setting)
    with pytest.raises(QuantityError, match="'x': not known; choose habit, requested, alea"):
        formula_of("x")
