"""Fitted activity windows: weekly profiles, and pauses that go by at their pace."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, Simulation, Work, add_users
from hpcrowd.agents.behaviours.profiles import PRIOR
from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.analysis.curves import profile_distance, unevenness, weekly_profile
from hpcrowd.behaviours import ActiveTime, Composed, Profiles, SessionGraph, WeeklyProfile
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulations import both

#: Active from 8:00 to 18:00 on Monday to Friday.
OFFICE = np.array([float(hour % 24 in range(8, 18) and hour < 120) for hour in range(168)])

ZONE = ZoneInfo("Europe/Stockholm")
PLAIN = Clock()
#: Clocks begin on Monday, 00:00, a week in which they are put forward, or back.
SPRING, AUTUMN = (
    Clock(int(datetime(1997, month, day, tzinfo=ZONE).timestamp()), ZONE, known=True)
    for month, day in ((3, 24), (10, 20))
)
CLOCKS = st.sampled_from([PLAIN, SPRING, AUTUMN])
SECONDS = st.integers(0, 3 * WEEK)
PAUSES = st.integers(0, 10 * DAY)

#: Weights of the hours of a week, many of them 0.
profiles = st.builds(
    lambda weights, hour: WeeklyProfile(np.maximum(weights, np.arange(168) == hour)),
    st.lists(st.sampled_from([0.0, 0.0, 1e-3, 1.0, 7.5]), min_size=168, max_size=168).map(np.array),
    st.integers(0, 167),
)


def arrival(profile, clock, recorded, released, pause):
    """When a unit with a pause that began at ``recorded`` arrives if it begins at ``released``."""
    units: Any = SimpleNamespace(start=np.array([recorded + pause]))
    user: Any = SimpleNamespace(number=1, model=SimpleNamespace(clock=clock))
    part = ActiveTime(units, Profiles({}, profile))
    part.begin(user)
    release = Release(0, released, Reason.ENDED, pause, -1)
    return part.next_open(user, released + pause, release)


def integral(profile, clock, begin, end):
    """Active seconds from ``begin`` to ``end``, added up second by second."""
    hours = clock.second_of_week(np.arange(begin, end)) // HOUR
    return float(profile.weights[hours].sum())


@given(profiles, CLOCKS, SECONDS, SECONDS, PAUSES)
def test_pauses_that_stay_as_long(profile, clock, recorded, released, pause):
    """A pause that begins at its recorded second takes as long as recorded, whatever the hour.

    So does any pause of who is active at all hours alike.
    """
    assert recorded + pause == arrival(profile, clock, recorded, recorded, pause)
    flat = WeeklyProfile(np.ones(168))
    assert released + pause % DAY == arrival(flat, clock, recorded, released, pause % DAY)


@given(profiles, CLOCKS, SECONDS, SECONDS, PAUSES, st.integers(0, DAY))
def test_never_early_never_out_of_order_never_at_rest(
    profile, clock, recorded, released, pause, more
):
    """Arrivals come after the release, in an hour with a weight, in the order of the pauses."""
    if recorded == released:
        return
    found = arrival(profile, clock, recorded, released, pause)
    assert found >= released
    assert profile.weights[clock.second_of_week(np.array(found)) // HOUR] > 0
    assert found <= arrival(profile, clock, recorded, released, pause + more)
    if recorded != released + more:
        assert found <= arrival(profile, clock, recorded, released + more, pause) + 1


@given(profiles, CLOCKS, SECONDS, SECONDS, st.integers(0, 2 * DAY))
def test_as_many_active_seconds_as_recorded(profile, clock, recorded, released, pause):
    """Second by second, as much activity passes from the release to the arrival as was recorded.

    To within the half second to which arrivals are rounded, also where an hour is missing or comes
    twice.
    """
    if recorded == released:
        return
    found = arrival(profile, clock, recorded, released, pause)
    if found - released > 4 * WEEK:
        return
    expected = integral(profile, clock, recorded, recorded + pause)
    half = 0.5 * profile.weights.max() + 1e-6
    assert pytest.approx(expected, abs=half) == integral(profile, clock, released, found)


@pytest.mark.parametrize(
    ("recorded", "released", "pause", "expected"),
    [
        # Two hours within the day; the second of them continues the next morning.
        (9 * HOUR, 10 * HOUR, 2 * HOUR, 12 * HOUR),
        (9 * HOUR, 17 * HOUR, 2 * HOUR, DAY + 9 * HOUR),
        # Recorded over night, released at noon: only working hours are waited for.
        (17 * HOUR, DAY + 12 * HOUR, 16 * HOUR, DAY + 14 * HOUR),
        # Released at night or at the weekend: from the morning on.
        (9 * HOUR, DAY + 3 * HOUR, HOUR, DAY + 9 * HOUR),
        # All that is left of the day is used up: the next morning, not at closing.
        (9 * HOUR, DAY + 16 * HOUR, 2 * HOUR, 2 * DAY + 8 * HOUR),
        # Recorded weeks are weeks.
        (9 * HOUR, 10 * HOUR, 3 * WEEK + HOUR, 3 * WEEK + 11 * HOUR),
    ],
)
def test_office_hours(recorded, released, pause, expected):
    """Pauses of who works from 8:00 to 18:00 on weekdays."""
    assert expected == arrival(WeeklyProfile(OFFICE), PLAIN, recorded, released, pause)


def test_a_little_later_is_a_little_later():
    """A pause over a change of the clocks that begins a second late ends no hour late."""
    pause = 6 * DAY + 22 * HOUR
    for clock in (SPRING, AUTUMN):
        found = arrival(WeeklyProfile(1 + OFFICE), clock, 9 * HOUR, 9 * HOUR + 1, pause)
        assert 0 < found - 9 * HOUR - pause <= 2


def test_weights_are_relative():
    """A week has as many active seconds as seconds; only proportions count."""
    profile = WeeklyProfile(OFFICE * 1000)
    assert WEEK == pytest.approx(profile.active(WEEK))
    assert 0.0 == profile.active(8 * HOUR)
    assert pytest.approx(168 / 50 * HOUR) == profile.active(9 * HOUR)
    assert [8 * HOUR, 8 * HOUR + 5, DAY + 8 * HOUR, WEEK + 8 * HOUR] == [
        profile.next_active(wall) for wall in (0, 8 * HOUR + 5, 18 * HOUR, 5 * DAY + 7)
    ]


def test_fitted_profile_by_hand(make_jobs):
    """A user's own starts, plus the prior times the share of the hour among all, one added."""
    jobs = make_jobs(
        (0, 1, 1, 1, 1), (2 * HOUR, 1, 1, 1, 1), (WEEK + 5, 1, 1, 1, 1), (7 * HOUR, 1, 1, 1, 2)
    )
    fitted = Profiles.fit(Work.of(jobs).by_session, Clock())
    common = np.ones(168)
    common[[0, 2, 7]] += 2, 1, 1
    common /= 172
    own = np.zeros(168)
    own[[0, 2]] = 2, 1
    for number, counts in ((1, own), (2, np.arange(168) == 7)):
        expected = counts + PRIOR * common
        assert np.allclose(expected / expected.mean(), fitted.of(number).weights)
    assert np.allclose(common / common.mean(), fitted.of(99).weights)


def test_fitted_in_local_time(make_jobs):
    """Submissions at 8:00 before and after the clocks change count in the same hour."""
    jobs = make_jobs((8 * HOUR, 1, 1), (WEEK + 7 * HOUR, 1, 1))
    fitted = Profiles.fit(Work.of(jobs).by_session, SPRING)
    assert 8 == int(np.argmax(fitted.of(1).weights))
    assert np.count_nonzero(fitted.of(1).weights > fitted.of(1).weights[0]) == 1


@both
def test_story_of_two_evenings(make_jobs, plain):
    """A job that runs two hours longer than recorded moves the next over the night.

    Of two hours to think, one is left for the next morning.
    """
    jobs = make_jobs((14 * HOUR, HOUR, 1), (17 * HOUR, 60, 1))
    jobs.run_time[0] = 3 * HOUR
    work = Work.of(jobs)
    model = Simulation(jobs, 4, "easy", plain=plain)

    def behaviour(work):
        window = ActiveTime(work.by_session, Profiles({}, WeeklyProfile(OFFICE)))
        return Composed(SessionGraph(work), window=window)

    add_users(model, work, behaviour)
    model.run()
    assert [14 * HOUR, DAY + 9 * HOUR] == jobs.submit.tolist()


# ---- profiles as shares, and the distance between two of them -----------------------------------

TIMES = st.lists(st.integers(0, 10 * WEEK), min_size=1).map(np.array)


def test_shares_are_in_local_hours_of_the_week():
    """Monday 1 January 2001, 00:00 UTC, is 1:00 in Stockholm; unknown submissions do not count."""
    clock = Clock(zone=ZoneInfo("Europe/Stockholm"), known=True)
    profile = weekly_profile(np.array([0, 1800, WEEK, 3 * HOUR, -1]), clock)
    assert (168,) == profile.shape
    assert {1: 0.75, 4: 0.25} == {int(hour): profile[hour] for hour in np.flatnonzero(profile)}


def test_what_cannot_be_compared():
    """Without submissions all shares are 0 and no distance is made up; nor of a day and a week."""
    nobody = weekly_profile(np.array([-1]), PLAIN)
    assert 0.0 == nobody.sum()
    with pytest.raises(QuantityError, match="profile with a sum of 0: shares must add up to 1"):
        profile_distance(nobody, nobody)
    with pytest.raises(QuantityError, match=r"shapes \(1,\) and \(2,\): must be the same"):
        profile_distance(np.array([1.0]), np.array([0.5, 0.5]))


@given(TIMES, TIMES, TIMES)
def test_distance_is_a_metric(a, b, c):
    """It is 0 for the same, the same both ways, at most 1, and no detour is shorter."""
    p, q, r = (weekly_profile(times, PLAIN) for times in (a, b, c))
    assert 0.0 == profile_distance(p, p)
    assert profile_distance(p, q) == profile_distance(q, p)
    assert profile_distance(p, q) <= 1 + 1e-12
    assert profile_distance(p, r) <= profile_distance(p, q) + profile_distance(q, r) + 1e-12


def test_distance_is_the_share_that_moved():
    """Of four jobs in one hour, those that move to another hour are the distance."""
    profiles = [
        weekly_profile(np.where(np.arange(4) < moved, 5 * HOUR, 0), PLAIN) for moved in (0, 1, 4)
    ]
    assert [0.0, 0.25, 1.0] == [profile_distance(profiles[0], other) for other in profiles]


def test_unevenness_from_flat_to_one_hour():
    """A job in every hour of the week is flat; all jobs in one hour are as uneven as can be."""
    flat = weekly_profile(np.arange(168) * HOUR, PLAIN)
    assert pytest.approx(0, abs=1e-12) == unevenness(flat)
    assert pytest.approx(167 / 168) == unevenness(weekly_profile(np.array([7]), PLAIN))
