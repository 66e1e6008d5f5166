"""When users are at work: recorded sessions that come again, and hours and days at random."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents import (
    PRESETS,
    ActivityWindow,
    ContinuationLaw,
    Recipe,
    RecordedSessions,
    Shifts,
    Work,
    WorkPattern,
)
from hpcrowd.agents.behaviours.activity import WEEKEND, WORKING_DAYS
from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.agents.populations.population import add_users
from hpcrowd.environment import Clock, JobTable, Simulation
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.streams import Streams
from hypothesis import given, settings
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]
STOCKHOLM = ZoneInfo("Europe/Stockholm")
RELEASE = Release(0, 0, Reason.ENDED, 0, -1)

#: Begin on the Monday before clocks are put forward, and on that before they are put back.
SPRING, AUTUMN = (
    Clock(int(datetime(1997, month, day, tzinfo=STOCKHOLM).timestamp()), STOCKHOLM, known=True)
    for month, day in ((3, 24), (10, 20))
)


def user_of(number: int = 1, clock: Clock | None = None, seed: int = 0) -> Any:
    """A user of a run that uses nothing but its clock and its stream."""
    streams = Streams(seed)
    return SimpleNamespace(
        number=number,
        model=SimpleNamespace(clock=clock or Clock()),
        stream=streams.generator("user", number),
    )


def sessions_of(
    jobs: JobTable, clock: Clock | None = None
) -> tuple[Callable[[int], bool], Callable[[int], int]]:
    """Whether user 1 is at work at a second, and when it would submit what is due then."""
    part, user = RecordedSessions(Work.of(jobs).by_batch), user_of(1, clock)
    part.begin(user)
    return lambda at: part.is_open(user, at), lambda at: part.next_open(user, at, RELEASE)


def test_recorded_sessions(make_jobs: MakeJobs) -> None:
    """A session lasts from its first to its last submission; who is absent waits for the next."""
    jobs = make_jobs((9 * HOUR, 5, 1), (9 * HOUR + 1800, 5, 1), (2 * DAY, 5, 1))
    at_work, due = sessions_of(jobs)
    expected = [False, True, True, False, True, False]
    seconds = [9 * HOUR - 1, 9 * HOUR, 9 * HOUR + 1800, 9 * HOUR + 1801, 2 * DAY, 2 * DAY + 1]
    assert expected == [at_work(second) for second in seconds]
    assert [9 * HOUR, 9 * HOUR, 9 * HOUR + 1800, 2 * DAY, 2 * DAY] == list(map(due, seconds[:5]))


def test_sessions_come_again_from_the_week_after(make_jobs: MakeJobs) -> None:
    """Used up, they come again from the week after the last one, on the same days and hours.

    The record reaches from Tuesday of one week to Monday of the next: it comes again every two.
    """
    jobs = make_jobs((DAY + 9 * HOUR, 5, 1), (WEEK + 10 * HOUR, 5, 1), (WEEK + 10.5 * HOUR, 5, 1))
    at_work, due = sessions_of(jobs)
    later = WEEK + 11 * HOUR
    for times in (1, 2, 3):
        again = 2 * WEEK * times
        assert again + DAY + 9 * HOUR == due(later)
        assert again + WEEK + 10 * HOUR == due(again + DAY + 9 * HOUR + 1)
        assert at_work(again + WEEK + 10 * HOUR + 1800)
        assert not at_work(again + WEEK + 10 * HOUR + 1801)
        later = again + WEEK + 10 * HOUR + 1801


@pytest.mark.parametrize(("clock", "hour"), [(SPRING, -HOUR), (AUTUMN, HOUR)])
def test_sessions_keep_their_local_hours(make_jobs: MakeJobs, clock: Clock, hour: int) -> None:
    """After clocks were changed on Sunday, Monday's session begins at the same local time."""
    at_work, due = sessions_of(make_jobs((9 * HOUR, 5, 1), (9 * HOUR + 600, 5, 1)), clock)
    begin = WEEK + 9 * HOUR + hour
    assert begin == due(DAY)
    assert "09:00" == f"{clock.local(begin):%H:%M}"
    assert [False, True, True, False] == [at_work(begin + by) for by in (-1, 0, 600, 601)]
    assert begin + WEEK == due(begin + 601)


@settings(max_examples=60)
@given(
    clock=st.sampled_from([Clock(), SPRING, AUTUMN]),
    gaps=st.lists(st.integers(1, 2 * DAY), min_size=1, max_size=8),
    first=st.integers(0, WEEK),
    asked=st.lists(st.integers(0, 6 * WEEK), min_size=1, max_size=10),
)
def test_sessions_against_a_calendar(
    make_jobs: MakeJobs, clock: Clock, gaps: list[int], first: int, asked: list[int]
) -> None:
    """The next session is the first in a calendar with all of them, again and again."""
    submit = first + np.concatenate([[0], np.cumsum(gaps)])
    jobs = make_jobs(*((int(second), 1, 1) for second in submit))
    work = Work.of(jobs)
    at_work, due = sessions_of(jobs, clock)
    rows = work.sessions
    begins = rows.start.tolist()
    ends = jobs.recorded_submit[rows.rows[rows.session_first[1:] - 1]].tolist()

    def monday(second: int) -> datetime:
        day = clock.local(second).replace(tzinfo=None, hour=0, minute=0, second=0)
        return day - timedelta(days=day.weekday())

    weeks = (monday(ends[-1]) - monday(begins[0])).days // 7 + 1

    def moved(second: int, times: int) -> int:
        wall = clock.local(second).replace(tzinfo=None) + times * timedelta(weeks=weeks)
        return int(wall.replace(tzinfo=clock.zone).timestamp()) - clock.unix_start

    calendar = list(zip(begins, ends, strict=True))
    for times in range(1, 8):
        calendar += [
            (moved(begin, times), moved(end, times))
            for begin, end in zip(begins, ends, strict=True)
        ]
    changes = {change for change in (clock.next_change(0, 60 * WEEK),) if change}
    for at in asked:
        if any(abs(at - change) < 2 * DAY for change in changes):
            continue  # what a skipped or repeated hour means is for the other tests
        inside = any(begin <= at <= end for begin, end in calendar)
        following = min(begin for begin, _ in calendar if begin > at)
        if any(abs(following - change) < 2 * DAY for change in changes):
            continue
        assert inside == at_work(at)
        assert (at if inside else following) == due(at)


def test_sessions_in_the_hour_that_comes_twice(make_jobs: MakeJobs) -> None:
    """Sessions recorded around the change end, come again, and never lead back in time."""
    change = 6 * DAY + 3 * HOUR  # 3:00 becomes 2:00
    jobs = make_jobs((change - 600, 5, 1), (change + 600, 5, 1), (change + 3000, 5, 1))
    at_work, due = sessions_of(jobs, AUTUMN)
    assert at_work(change)
    assert not at_work(change + 3001)  # 2:50:01 again, when the wall still shows session time
    for at in range(0, 3 * WEEK, 997):
        assert due(at) >= at
    week_after = datetime(1997, 11, 2, 2, 10, tzinfo=STOCKHOLM).timestamp() - AUTUMN.unix_start
    assert change + 3001 < due(change + 3001) <= week_after + 2400


def test_user_without_a_record_is_always_at_work(make_jobs: MakeJobs) -> None:
    """Who is not among the units the sessions are taken from is never absent."""
    part = RecordedSessions(Work.of(make_jobs((5, 1, 1, 1, 4))).by_batch)
    for number in (1, 9):
        user = user_of(number)
        part.begin(user)
        assert part.is_open(user, 10**6)
        assert 10**6 == part.next_open(user, 10**6, RELEASE)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_story_of_fluid(make_jobs: MakeJobs, plain: bool) -> None:
    """Within a session the own pause, outside the next session, after the last the next week.

    Session 1 is on Monday from 9:00 to 9:20, session 2 on Tuesday and 3 on Wednesday at 9:00. The
    only pause inside is 20 minutes less the run time.
    """
    nine = 9 * HOUR
    jobs = make_jobs(
        (nine, 300, 1), (nine + 1200, 300, 1), (DAY + nine, 60, 1), (2 * DAY + nine, 60, 1)
    )
    jobs.run_time[0] = 600  # ends within session 1: 15 minutes to think, after its end
    jobs.run_time[1] = DAY  # ends on Tuesday, after session 2
    jobs.run_time[2] = DAY  # ends on Thursday, after all
    model = Simulation(jobs, 4, "easy", plain=plain)
    add_users(model, Work.of(jobs), PRESETS["fluid"])
    model.run()
    expected = [nine, nine + 1500, 2 * DAY + nine, WEEK + nine]
    assert expected == jobs.submit.tolist()


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_absent_users_put_off_their_thinking(make_jobs: MakeJobs, plain: bool) -> None:
    """With ``waits`` who is absent submits when it is back; without, it thinks meanwhile too."""
    jobs = make_jobs((17 * HOUR, 1800, 1), (18 * HOUR, 60, 1))  # half an hour to think
    jobs.run_time[0] = 14 * HOUR + 3000  # until 7:50
    found = []
    for waits in (True, False):
        recipe = Recipe("batches", window=ActivityWindow(8 * HOUR, 18 * HOUR), waits=waits)
        model = Simulation(jobs, 4, "easy", plain=plain)
        add_users(model, Work.of(jobs), recipe)
        model.run()
        found.append(int(jobs.submit[1]) - DAY)
    assert [8 * HOUR, 8 * HOUR + 1200] == found


@pytest.mark.parametrize("waits", [True, False])
def test_who_stops_thinking_after_hours_submits_in_the_morning(
    make_jobs: MakeJobs, waits: bool
) -> None:
    """A pause that began within hours and ends after them ends with the next opening."""
    jobs = make_jobs((16 * HOUR, 1800, 1), (17 * HOUR, 60, 1))
    jobs.run_time[0] = HOUR + 2400  # until 17:40
    recipe = Recipe("batches", window=ActivityWindow(8 * HOUR, 18 * HOUR), waits=waits)
    model = Simulation(jobs, 4, "easy")
    add_users(model, Work.of(jobs), recipe)
    model.run()
    assert DAY + 8 * HOUR == jobs.submit[1]


def test_shares_of_the_four_groups() -> None:
    """Days 0.7, weekdays 0.8, independent of each other; the shift is uniform within an hour."""
    part, count = WorkPattern(), 4000
    for number in range(count):
        part.begin(user_of(number))
    windows = [part.windows[number] for number in range(count)]
    by_day = np.array([window.opens < window.closes for window in windows])
    weekdays = np.array([window.days == WORKING_DAYS for window in windows])
    assert {WORKING_DAYS, WEEKEND} == {window.days for window in windows}
    for which, share in (
        (by_day, 0.7),
        (weekdays, 0.8),
        (by_day & weekdays, 0.56),
        (~by_day & ~weekdays, 0.06),
    ):
        assert abs(which.mean() - share) < 5 * np.sqrt(share * (1 - share) / count)
    opens = np.array([window.opens for window in windows])
    closes = np.array([window.closes for window in windows])
    shift = np.where(by_day, opens, closes) - 7.5 * HOUR
    assert [10 * HOUR] == np.unique(np.where(by_day, closes - opens, opens - closes)).tolist()
    assert np.abs(shift).max() <= HOUR
    assert abs(shift.mean()) < 5 * HOUR / np.sqrt(3 * count)  # standard deviation 1 h / sqrt(3)
    assert abs(np.mean(np.abs(shift) < HOUR / 2) - 0.5) < 5 * np.sqrt(0.25 / count)


def test_a_user_keeps_its_hours() -> None:
    """Drawn from the user's own stream: the same with the same seed, whoever else is there."""
    one, other = WorkPattern(), WorkPattern()
    for number in range(20):
        one.begin(user_of(number))
    for number in (15, 3):
        other.begin(user_of(number))
        assert one.windows[number] == other.windows[number]


@pytest.mark.parametrize(
    ("shifts", "day", "night"),
    [
        (Shifts(), [(7.5, 17.5)], [(0, 7.5), (17.5, 24)]),
        (Shifts(0, 12 * HOUR), [(0, 12)], [(12, 24)]),
        (Shifts(12 * HOUR, DAY), [(12, 24)], [(0, 12)]),
        (Shifts(20 * HOUR, 4 * HOUR), [(0, 4), (20, 24)], [(4, 20)]),
    ],
)
def test_night_is_what_the_day_leaves(
    shifts: Shifts, day: list[tuple[float, float]], night: list[tuple[float, float]]
) -> None:
    """Hours of day and night together make 24, also where one of them touches midnight."""
    for by_day, expected in ((True, day), (False, night)):
        pieces = ActivityWindow(*shifts.hours(by_day), (2,)).week.pieces
        assert expected == [((a - 2 * DAY) / HOUR, (b - 2 * DAY) / HOUR) for a, b in pieces]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"day_share": 1.1}, "day_share 1.1: must be between 0 and 1"),
        ({"weekday_share": float("nan")}, "weekday_share nan"),
        ({"shift": -1}, "shift -1 s: at least 0"),
        ({"opens": 5, "closes": 5}, "window 5 to 5 s"),
        ({"opens": 0, "closes": DAY}, "leaves no night for the share 0.3 of users"),
    ],
)
def test_shifts_that_cannot_be(choices: dict[str, Any], message: str) -> None:
    """Shares that are none and hours that leave a user without any are reported before a run."""
    with pytest.raises(QuantityError, match=message):
        Shifts(**choices)
    assert Shifts(0, DAY, day_share=1).hours(by_day=True) == (0, DAY)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_distribution_submits_within_hours(make_jobs: MakeJobs, plain: bool) -> None:
    """Who breaks off is back within its hours; first submissions come as recorded.

    Without the probability to continue, every submission but the first is in a window.
    """
    random = np.random.default_rng(2)
    jobs = make_jobs(
        *sorted(
            (int(at), int(run), 1, int(run), 1 + place % 5)
            for place, (at, run) in enumerate(
                zip(random.integers(0, 3 * WEEK, 300), random.integers(1, 9000, 300), strict=True)
            )
        )
    )
    recipe = Recipe("batches", ContinuationLaw(limit=0), "shifts", waits=True)
    model = Simulation(jobs, 3, "easy", plain=plain, seed=1)
    work = Work.of(jobs)
    users = add_users(model, work, recipe)
    model.run()
    units = work.by_batch
    for user in users:
        behaviour: Any = user.behaviour
        for unit in user.units[1:]:
            at = int(jobs.submit[units.rows[units.first[unit]]])
            assert behaviour.window.is_open(user, at)
