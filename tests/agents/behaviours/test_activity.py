"""When users are at work: windows, recorded sessions, hours at random, and fitted profiles."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, Recipe, Simulation, Work
from hpcrowd.agents.behaviours.activity import WEEKEND, WORKING_DAYS, ActivityWindow
from hpcrowd.agents.behaviours.profiles import PRIOR, ActiveTime, Profiles, WeeklyProfile
from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.presets import PRESETS
from hpcrowd.analysis.curves import profile_distance, unevenness, weekly_profile
from hpcrowd.behaviours import ContinuationLaw, RecordedSessions, Shifts, WeeklyWindow, WorkPattern
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.streams import Streams
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulations import both

MINUTE = 60
RELEASE = Release(0, 0, Reason.ENDED, 0, -1)


def clock_of(zone, monday):
    """A clock whose origin is a local Monday, 00:00."""
    return Clock(int(monday.replace(tzinfo=ZoneInfo(zone)).timestamp()), ZoneInfo(zone), known=True)


#: Weeks in which clocks are put forward, or back, and those in which they are not.
SPRING = clock_of("Europe/Stockholm", datetime(1997, 3, 24))
AUTUMN = clock_of("Europe/Stockholm", datetime(1997, 10, 20))
CLOCKS = [
    SPRING,
    AUTUMN,
    clock_of("America/Los_Angeles", datetime(2001, 10, 22)),
    *(clock_of("Australia/Lord_Howe", datetime(*day)) for day in ((2005, 10, 24), (2006, 3, 27))),
    clock_of("UTC", datetime(2001, 1, 1)),
]

# ---- windows of the local week ----------------------------------------------------------------


def pieces(first, last, longest):
    """Pieces that open between two minutes of the week, and how long they last at most."""
    piece = st.tuples(st.integers(first, last), st.integers(1, longest))
    seconds = piece.map(lambda found: (found[0] * MINUTE, sum(found) * MINUTE))
    return st.lists(seconds, min_size=1, max_size=4)


#: Of the whole week, or short and around 2:00 on Sunday, when clocks change.
windows = pieces(0, 7 * 1440 - 1, 7 * 1440) | pieces(6 * 1440, 6 * 1440 + 300, 90)


@settings(max_examples=60)
@given(st.sampled_from(CLOCKS), windows, st.integers(0, 2 * WEEK // MINUTE - 1))
def test_next_open_is_that_of_every_minute_looked_at(clock, flat, drawn):
    """From each minute, the next opening is what one finds who looks at every minute after it."""
    of_week = clock.second_of_week(np.arange(3 * WEEK // MINUTE) * MINUTE)
    expected = np.zeros(len(of_week), bool)
    for opens, closes in flat:
        expected |= (opens <= of_week) & (of_week < closes)
        expected |= of_week < closes - WEEK
    window, ahead = WeeklyWindow(flat), np.flatnonzero(expected)
    changes = np.flatnonzero(np.diff(expected))[:20].tolist()  # the last minute before each
    for minute in [drawn, *changes, *(change + 1 for change in changes)]:
        if minute < 2 * WEEK // MINUTE:
            assert expected[minute] == window.is_open(clock, minute * MINUTE)
            following = ahead[np.searchsorted(ahead, minute)]
            assert following * MINUTE == window.next_open(clock, minute * MINUTE)


def test_pieces_of_a_window():
    """Pieces that touch are one; over the end of the week they continue on Monday."""
    given = [(100, 200), (0, 50), (200, 300), (250, 260), (WEEK - 10, WEEK + 20)]
    assert [(0, 50), (100, 300), (WEEK - 10, WEEK)] == WeeklyWindow(given).pieces
    assert [(0, WEEK)] == WeeklyWindow([(7, WEEK + 7)]).pieces
    # Who works at night on weekdays is active on Monday at 3:00, not on Saturday at 3:00.
    night, clock = ActivityWindow(18 * HOUR, 6 * HOUR), Clock()
    expected = [(0, 6 * HOUR), (18 * HOUR, DAY + 6 * HOUR)]  # Monday night is one piece
    assert expected == night.week.pieces[:2]
    assert (4 * DAY + 18 * HOUR, 5 * DAY) == night.week.pieces[-1]
    assert [True, False] == [night.is_open(clock, at) for at in (3 * HOUR, 5 * DAY + 3 * HOUR)]
    assert WEEK == night.next_open(clock, 5 * DAY)


@given(st.integers(-DAY, DAY), st.booleans())
def test_shifted_windows_stay_as_long(by, night):
    """Moved by less than a day a window keeps its length, and a day's window stays on its day."""
    window = ActivityWindow(17 * HOUR, 7 * HOUR) if night else ActivityWindow(7 * HOUR, 17 * HOUR)
    moved = window.shifted(by)
    length = sum(closes - opens for opens, closes in window.week.pieces)
    assert length == sum(closes - opens for opens, closes in moved.week.pieces)
    if not night:
        assert moved.closes - moved.opens == 10 * HOUR
        assert max(-7 * HOUR, min(7 * HOUR, by)) == moved.opens - window.opens
    else:
        assert by % DAY == (moved.opens - window.opens) % DAY


@given(st.sampled_from(CLOCKS), st.integers(0, 3 * WEEK), st.integers(0, 400 * DAY))
def test_next_change_of_the_clocks(clock, after, length):
    """Until the change local time runs with the time of the run, at the change it does not."""
    change = clock.next_change(after, after + length)
    end = after + length + 1 if change is None else change
    for second in np.linspace(after, end - 1, 50).astype(int).tolist():
        assert clock.ahead(after) == clock.ahead(second)
    if change is not None:
        assert after < change <= after + length
        assert clock.ahead(change) != clock.ahead(change - 1)


@given(st.sampled_from(CLOCKS), st.integers(0, 2 * WEEK))
def test_second_at_is_where_the_wall_shows_it(clock, second):
    """The second of a local time is the first that shows it, or the change that skips it."""
    found = clock.second_at(clock.wall(second))
    assert clock.wall(second) == clock.wall(found)
    assert found <= second
    assert found == second or clock.ahead(found) != clock.ahead(second)
    assert clock.wall(second) % WEEK == clock.second_of_week(np.array(second))
    change = 6 * DAY + 2 * HOUR
    wall = SPRING.wall(0) + change
    found_by = {by: SPRING.second_at(wall + by) - change for by in (-1, 0, 1, 1800, 3599, HOUR)}
    assert {-1: -1, 0: 0, 1: 0, 1800: 0, 3599: 0, HOUR: 0} == found_by


# ---- recorded sessions ------------------------------------------------------------------------


def user_of(number=1, clock=None, seed=0):
    """A user of a run that uses nothing but its clock and its stream."""
    stream = Streams(seed).generator("user", number)
    model = SimpleNamespace(clock=clock or Clock())
    return SimpleNamespace(number=number, model=model, stream=stream)


def sessions_of(jobs, clock=None, number=1):
    """Whether a user is at work at a second, and when it would submit what is due then."""
    part, user = RecordedSessions(Work.of(jobs).by_batch), user_of(number, clock)
    part.begin(user)
    return lambda at: part.is_open(user, at), lambda at: part.next_open(user, at, RELEASE)


@pytest.mark.parametrize(("clock", "hour"), [(Clock(), 0), (SPRING, -HOUR), (AUTUMN, HOUR)])
def test_sessions_keep_their_local_hours(make_jobs, clock, hour):
    """Used up, they come again the week after, at the same local time if clocks were changed."""
    jobs = make_jobs((9 * HOUR, 5, 1), (9 * HOUR + 600, 5, 1))
    at_work, due = sessions_of(jobs, clock)
    begin = WEEK + 9 * HOUR + hour
    assert begin == due(DAY)
    assert [False, True, True, False] == [at_work(begin + by) for by in (-1, 0, 600, 601)]
    assert begin + WEEK == due(begin + 601)
    for number in (0, 9):  # who has no sessions is never absent
        at_work, due = sessions_of(jobs, clock, number)
        assert (True, 10**6) == (at_work(10**6), due(10**6))


@settings(max_examples=60)
@given(
    clock=st.sampled_from([Clock(), SPRING, AUTUMN]),
    gaps=st.lists(st.integers(1, 2 * DAY), min_size=1, max_size=8),
    first=st.integers(0, WEEK),
    asked=st.lists(st.integers(0, 6 * WEEK), min_size=1, max_size=10),
)
def test_sessions_against_a_calendar(make_jobs, clock, gaps, first, asked):
    """The next session is the first in a calendar with all of them, again and again."""
    submit = first + np.concatenate([[0], np.cumsum(gaps)])
    jobs = make_jobs(*((int(second), 1, 1) for second in submit))
    at_work, due = sessions_of(jobs, clock)
    rows = Work.of(jobs).sessions
    begins = rows.start.tolist()
    ends = jobs.recorded_submit[rows.rows[rows.session_first[1:] - 1]].tolist()

    def monday(second):
        day = clock.local(second).replace(tzinfo=None, hour=0, minute=0, second=0)
        return day - timedelta(days=day.weekday())

    weeks = (monday(ends[-1]) - monday(begins[0])).days // 7 + 1

    def moved(second, times):
        if not times:
            return second
        wall = clock.local(second).replace(tzinfo=None) + times * timedelta(weeks=weeks)
        return int(wall.replace(tzinfo=clock.zone).timestamp()) - clock.unix_start

    calendar = [
        (moved(begin, times), moved(end, times))
        for times in range(8)
        for begin, end in zip(begins, ends, strict=True)
    ]
    change = clock.next_change(0, 60 * WEEK)
    edges = [second for pair in calendar for second in pair if second < 6 * WEEK]
    for at in asked + edges + [second + 1 for second in edges]:
        inside = any(begin <= at <= end for begin, end in calendar)
        following = min(begin for begin, _ in calendar if begin > at)
        # What a skipped or repeated hour means is for the other tests.
        if change and min(abs(at - change), abs(following - change)) < 2 * DAY:
            continue
        assert inside == at_work(at)
        assert (at if inside else following) == due(at)


def test_sessions_in_the_hour_that_comes_twice(make_jobs):
    """Sessions recorded around the change end, come again, and never lead back in time."""
    change = 6 * DAY + 3 * HOUR  # 3:00 becomes 2:00
    jobs = make_jobs((change - 600, 5, 1), (change + 600, 5, 1), (change + 3000, 5, 1))
    at_work, due = sessions_of(jobs, AUTUMN)
    assert at_work(change)
    assert not at_work(change + 3001)  # 2:50:01 again, when the wall still shows session time
    assert all(due(at) >= at for at in range(0, 3 * WEEK, 997))
    week_after = AUTUMN.second_at(AUTUMN.wall(0) + WEEK + 6 * DAY + 2 * HOUR + 600)
    assert change + 3001 < due(change + 3001) <= week_after + 2400


# ---- stories ----------------------------------------------------------------------------------


@both
def test_story_of_fluid(make_jobs, plain):
    """Within a session the own pause, outside the next session, after the last the next week."""
    nine = 9 * HOUR  # sessions on Monday from 9:00 to 9:20, on Tuesday and on Wednesday at 9:00
    days = [(day * DAY + nine, 60, 1) for day in (1, 2)]
    jobs = make_jobs((nine, 300, 1), (nine + 1200, 300, 1), *days)
    jobs.run_time[0] = 600  # ends within session 1: 15 minutes to think, after its end
    jobs.run_time[1] = DAY  # ends on Tuesday, after session 2
    jobs.run_time[2] = DAY  # ends on Thursday, after all
    model = Simulation(jobs, 4, "easy", plain=plain)
    add_users(model, Work.of(jobs), PRESETS["fluid"])
    model.run()
    assert [nine, nine + 1500, 2 * DAY + nine, WEEK + nine] == jobs.submit.tolist()


@both
@pytest.mark.parametrize(
    ("begins", "lasts", "waits", "expected"),
    [
        # Absent when its job ends at 7:50, it thinks when it is back, or meanwhile.
        (17 * HOUR, 14 * HOUR + 3000, True, 8 * HOUR),
        (17 * HOUR, 14 * HOUR + 3000, False, 8 * HOUR + 1200),
        # A pause that began at 17:40 ends with the next opening.
        (16 * HOUR, HOUR + 2400, True, 8 * HOUR),
        (16 * HOUR, HOUR + 2400, False, 8 * HOUR),
    ],
)
def test_absent_users_put_off_their_thinking(make_jobs, plain, begins, lasts, waits, expected):
    """When a job comes on the next day for which the user thinks half an hour."""
    jobs = make_jobs((begins, 1800, 1), (begins + HOUR, 60, 1))
    jobs.run_time[0] = lasts
    recipe = Recipe("batches", window=ActivityWindow(8 * HOUR, 18 * HOUR), waits=waits)
    model = Simulation(jobs, 4, "easy", plain=plain)
    add_users(model, Work.of(jobs), recipe)
    model.run()
    assert DAY + expected == jobs.submit[1]


# ---- hours at random --------------------------------------------------------------------------


def test_shares_of_the_four_groups():
    """Days 0.7, weekdays 0.8, independent of each other; the shift is uniform within an hour."""
    part, count = WorkPattern(), 4000
    for number in range(count):
        part.begin(user_of(number))
    windows = [part.windows[number] for number in range(count)]
    by_day = np.array([window.opens < window.closes for window in windows])
    weekdays = np.array([window.days == WORKING_DAYS for window in windows])
    assert {WORKING_DAYS, WEEKEND} == {window.days for window in windows}
    both_of, none_of = by_day & weekdays, ~by_day & ~weekdays
    for which, share in ((by_day, 0.7), (weekdays, 0.8), (both_of, 0.56), (none_of, 0.06)):
        assert abs(which.mean() - share) < 5 * np.sqrt(share * (1 - share) / count)
    opens = np.array([window.opens for window in windows])
    closes = np.array([window.closes for window in windows])
    shift = np.where(by_day, opens, closes) - 7.5 * HOUR
    assert [10 * HOUR] == np.unique(np.where(by_day, closes - opens, opens - closes)).tolist()
    assert np.abs(shift).max() <= HOUR
    assert abs(shift.mean()) < 5 * HOUR / np.sqrt(3 * count)  # standard deviation 1 h / sqrt(3)
    assert abs(np.mean(np.abs(shift) < HOUR / 2) - 0.5) < 5 * np.sqrt(0.25 / count)
    # From the user's own stream: the same with the same seed, whoever else is there.
    other = WorkPattern()
    for number in (15, 3):
        other.begin(user_of(number))
        assert part.windows[number] == other.windows[number]


@pytest.mark.parametrize(
    ("shifts", "day", "night"),
    [
        (Shifts(), [(7.5, 17.5)], [(0, 7.5), (17.5, 24)]),
        (Shifts(0, 12 * HOUR), [(0, 12)], [(12, 24)]),
        (Shifts(12 * HOUR, DAY), [(12, 24)], [(0, 12)]),
        (Shifts(20 * HOUR, 4 * HOUR), [(0, 4), (20, 24)], [(4, 20)]),
        (Shifts(0, DAY, day_share=1), [(0, 24)], None),
    ],
)
def test_night_is_what_the_day_leaves(shifts, day, night):
    """Hours of day and night together make 24, also where one of them touches midnight."""
    for by_day, expected in ((True, day), (False, night)):
        if expected is not None:
            pieces = ActivityWindow(*shifts.hours(by_day), (2,)).week.pieces
            assert expected == [((a - 2 * DAY) / HOUR, (b - 2 * DAY) / HOUR) for a, b in pieces]


@both
def test_distribution_submits_within_hours(make_jobs, plain):
    """Who never continues is back within its hours; first submissions come as recorded."""
    random = np.random.default_rng(2)
    columns = random.integers(0, 3 * WEEK, 300), random.integers(1, 9000, 300)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    users = [(at, run, 1, run, 1 + place % 5) for place, (at, run) in enumerate(rows)]
    jobs = make_jobs(*sorted(users))
    recipe = Recipe("batches", ContinuationLaw(limit=0), "shifts", waits=True)
    model, work = Simulation(jobs, 3, "easy", plain=plain, seed=1), Work.of(jobs)
    units = work.by_batch
    members = add_users(model, work, recipe)
    model.run()
    for user in members:
        behaviour: Any = user.behaviour
        for unit in user.units[1:]:
            at = int(jobs.submit[units.rows[units.first[unit]]])
            assert behaviour.window.is_open(user, at)


#: Active from 8:00 to 18:00 on Monday to Friday.
OFFICE = np.array([float(hour % 24 in range(8, 18) and hour < 120) for hour in range(168)])

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


@given(profiles, st.sampled_from([Clock(), *CLOCKS]), SECONDS, SECONDS, PAUSES)
def test_pauses_that_stay_as_long(profile, clock, recorded, released, pause):
    """Pauses that begin at their recorded second, and those of who is active at all hours alike."""
    assert recorded + pause == arrival(profile, clock, recorded, recorded, pause)
    flat = WeeklyProfile(np.ones(168))
    assert released + pause % DAY == arrival(flat, clock, recorded, released, pause % DAY)


@given(profiles, st.sampled_from([Clock(), *CLOCKS]), SECONDS, SECONDS, PAUSES, st.integers(0, DAY))
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


@given(profiles, st.sampled_from([Clock(), *CLOCKS]), SECONDS, SECONDS, st.integers(0, 2 * DAY))
def test_as_many_active_seconds_as_recorded(profile, clock, recorded, released, pause):
    """As much activity passes from the release to the arrival as was recorded, within rounding."""
    if recorded == released:
        return
    found = arrival(profile, clock, recorded, released, pause)
    if found - released > 4 * WEEK:
        return
    expected = integral(profile, clock, recorded, recorded + pause)
    half = 0.5 * profile.weights.max() + 1e-6
    assert pytest.approx(expected, abs=half) == integral(profile, clock, released, found)


def test_weights_are_relative():
    """A week has as many active seconds as seconds; only proportions count; weeks are weeks."""
    profile = WeeklyProfile(OFFICE * 1000)
    assert WEEK == pytest.approx(profile.active(WEEK))
    assert 0.0 == profile.active(8 * HOUR)
    assert pytest.approx(168 / 50 * HOUR) == profile.active(9 * HOUR)
    assert [8 * HOUR, 8 * HOUR + 5, DAY + 8 * HOUR, WEEK + 8 * HOUR] == [
        profile.next_active(wall) for wall in (0, 8 * HOUR + 5, 18 * HOUR, 5 * DAY + 7)
    ]
    assert 3 * WEEK + 11 * HOUR == arrival(profile, Clock(), 9 * HOUR, 10 * HOUR, 3 * WEEK + HOUR)


def test_fitted_profile_by_hand(make_jobs):
    """A user's own starts, plus the prior times the share of the local hour among all, plus one."""
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
    # 8:00 before and after the clocks change is the same hour.
    jobs = make_jobs((8 * HOUR, 1, 1), (WEEK + 7 * HOUR, 1, 1))
    found = Profiles.fit(Work.of(jobs).by_session, SPRING).of(1).weights
    assert [8] == np.flatnonzero(found > found[0]).tolist()


def test_how_far_and_how_uneven_profiles_are():
    """Shares are in local hours, unknown submissions do not count; nothing is made up of none."""
    clock = Clock(zone=ZoneInfo("Europe/Stockholm"), known=True)  # Monday, 1:00
    found = weekly_profile(np.array([0, 1800, WEEK, 3 * HOUR, -1]), clock)
    assert {1: 0.75, 4: 0.25} == {int(hour): found[hour] for hour in np.flatnonzero(found)}
    one, other = (weekly_profile(np.where(np.arange(4) < n, 5 * HOUR, 0), Clock()) for n in (0, 1))
    assert [0.25, 0.25] == [profile_distance(one, other), profile_distance(other, one)]
    flat = weekly_profile(np.arange(168) * HOUR, Clock())
    assert pytest.approx((0, 167 / 168), abs=1e-12) == (unevenness(flat), unevenness(one))
    nobody = weekly_profile(np.array([-1]), Clock())
    assert 0.0 == nobody.sum()
    with pytest.raises(QuantityError, match="profile with a sum of 0: shares must add up to 1"):
        profile_distance(nobody, nobody)
    with pytest.raises(QuantityError, match=r"shapes \(1,\) and \(2,\): must be the same"):
        profile_distance(np.array([1.0]), np.array([0.5, 0.5]))
