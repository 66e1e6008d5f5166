"""Windows of the local week: hours, nights, touching pieces, and clocks put forward and back."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents import ActivityWindow, WeeklyWindow
from hpcrowd.environment import Clock
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hypothesis import given, settings
from hypothesis import strategies as st

MINUTE = 60
STOCKHOLM = ZoneInfo("Europe/Stockholm")

#: Mondays, 00:00 local time, of weeks in which clocks change, and of one in which they do not.
WEEKS = [
    ("Europe/Stockholm", datetime(1997, 3, 24)),
    ("Europe/Stockholm", datetime(1997, 10, 20)),
    ("Europe/Stockholm", datetime(1997, 6, 2)),
    ("America/Los_Angeles", datetime(2001, 10, 22)),
    ("Australia/Lord_Howe", datetime(2005, 10, 24)),
    ("Australia/Lord_Howe", datetime(2006, 3, 27)),
    ("UTC", datetime(2001, 1, 1)),
]

pieces = st.lists(
    st.tuples(st.integers(0, WEEK // MINUTE - 1), st.integers(1, WEEK // MINUTE)).map(
        lambda piece: (piece[0] * MINUTE, min(sum(piece), piece[0] + WEEK // MINUTE) * MINUTE)
    ),
    min_size=1,
    max_size=4,
)
#: Short pieces around 2:00 on Sunday, when clocks change.
nightly = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 90)).map(
        lambda piece: (6 * DAY + piece[0] * MINUTE, 6 * DAY + sum(piece) * MINUTE)
    ),
    min_size=1,
    max_size=3,
)


def clock_of(zone: str, monday: datetime) -> Clock:
    """A clock whose origin is a local Monday, 00:00."""
    return Clock(int(monday.replace(tzinfo=ZoneInfo(zone)).timestamp()), ZoneInfo(zone), known=True)


def minutes_open(clock: Clock, flat: list[tuple[int, int]], weeks: int) -> np.ndarray:
    """Whether some piece covers the local time of each minute, shape (minutes,)."""
    of_week = clock.second_of_week(np.arange(weeks * WEEK // MINUTE) * MINUTE)
    found = np.zeros(len(of_week), bool)
    for opens, closes in flat:
        found |= (opens <= of_week) & (of_week < closes)
        found |= of_week < closes - WEEK
    return found


@settings(max_examples=60)
@given(st.sampled_from(WEEKS), pieces | nightly, st.data())
def test_next_open_is_that_of_every_minute_looked_at(
    week: tuple[str, datetime], flat: list[tuple[int, int]], data: st.DataObject
) -> None:
    """From any minute, the next opening is what one finds who looks at every minute after it.

    Over three weeks, one with a change of the clocks among them; an hour may be missing or come
    twice.
    """
    clock, window = clock_of(*week), WeeklyWindow(flat)
    expected = minutes_open(clock, flat, 3)
    ahead = np.flatnonzero(expected)
    for minute in data.draw(st.lists(st.integers(0, 2 * WEEK // MINUTE - 1), min_size=1)):
        second = minute * MINUTE
        assert expected[minute] == window.is_open(clock, second)
        following = ahead[np.searchsorted(ahead, minute)]
        assert following * MINUTE == window.next_open(clock, second)


@pytest.mark.parametrize("week", WEEKS[:2])
def test_night_of_the_change_minute_by_minute(week: tuple[str, datetime]) -> None:
    """Around the change, every minute of the night is as one sees it on the wall."""
    clock = clock_of(*week)
    sunday = 6 * DAY
    flat = [(sunday + 7800, sunday + 8400), (sunday + 10_200, sunday + 4 * HOUR)]
    window, expected = WeeklyWindow(flat), minutes_open(clock, flat, 2)
    for minute in range(6 * 1440, 6 * 1440 + 400):
        following = minute + int(np.argmax(expected[minute:]))
        assert following * MINUTE == window.next_open(clock, minute * MINUTE)


def test_window_that_the_clocks_skip() -> None:
    """A window within the hour that is missing opens the week after."""
    clock = clock_of(*WEEKS[0])
    window = WeeklyWindow([(6 * DAY + 2 * HOUR, 6 * DAY + 3 * HOUR)])
    monday = datetime(1997, 3, 24, tzinfo=STOCKHOLM)
    following = datetime(1997, 4, 6, 2, tzinfo=STOCKHOLM)
    waits = int((following.astimezone(UTC) - monday.astimezone(UTC)).total_seconds())
    assert waits == window.next_open(clock, 0)


def test_window_that_the_clocks_show_twice() -> None:
    """A window within the hour that comes twice is open twice."""
    clock = clock_of(*WEEKS[1])
    window = WeeklyWindow([(6 * DAY + 2 * HOUR, 6 * DAY + 2 * HOUR + 600)])
    first = 6 * DAY + 2 * HOUR
    assert first == window.next_open(clock, 0)
    assert first + HOUR == window.next_open(clock, first + 600)
    assert first + WEEK + HOUR == window.next_open(clock, first + HOUR + 600)


def test_open_at_the_first_second_closed_at_the_last() -> None:
    """A window is open from its first second on and before its last."""
    clock, window = Clock(), ActivityWindow(8 * HOUR, 18 * HOUR)
    assert [False, True, True, False] == [
        window.is_open(clock, second)
        for second in (8 * HOUR - 1, 8 * HOUR, 18 * HOUR - 1, 18 * HOUR)
    ]
    assert DAY + 8 * HOUR == window.next_open(clock, 18 * HOUR)
    assert 8 * HOUR == window.next_open(clock, 0)
    friday = 4 * DAY + 18 * HOUR
    assert WEEK + 8 * HOUR == window.next_open(clock, friday)


def test_night_is_the_two_ends_of_each_day() -> None:
    """Who works at night on weekdays is active on Monday at 3:00, not on Saturday at 3:00."""
    window = ActivityWindow(18 * HOUR, 6 * HOUR)
    assert [(0, 6 * HOUR)] == window.week.pieces[:1]
    assert (18 * HOUR, DAY + 6 * HOUR) == window.week.pieces[1]  # Monday night is one piece
    assert (4 * DAY + 18 * HOUR, 5 * DAY) == window.week.pieces[-1]
    clock = Clock()
    assert window.is_open(clock, 3 * HOUR)
    assert not window.is_open(clock, 5 * DAY + 3 * HOUR)
    assert WEEK == window.next_open(clock, 5 * DAY)


def test_pieces_are_joined() -> None:
    """Pieces that touch or overlap are one; over the end of the week they continue on Monday."""
    window = WeeklyWindow([(100, 200), (0, 50), (200, 300), (250, 260), (WEEK - 10, WEEK + 20)])
    assert [(0, 50), (100, 300), (WEEK - 10, WEEK)] == window.pieces
    clock = Clock()
    assert [WEEK - 10, 2 * WEEK - 10] == [
        window.next_open(clock, second) for second in (300, WEEK + 300)
    ]
    assert window.is_open(clock, WEEK + 19)
    always = WeeklyWindow([(0, WEEK)])
    assert all(always.next_open(clock, second) == second for second in (0, WEEK - 1, WEEK))
    assert [(0, WEEK)] == WeeklyWindow([(7, WEEK + 7)]).pieces


@given(st.integers(-DAY, DAY), st.booleans())
def test_shifted_windows_stay_as_long(by: int, night: bool) -> None:
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ActivityWindow(8 * HOUR, 8 * HOUR), "window 28800 to 28800 s.*differ"),
        (lambda: ActivityWindow(-1, 5), "window -1 to 5 s"),
        (lambda: ActivityWindow(0, DAY + 1), "window 0 to 86401 s"),
        (lambda: ActivityWindow(0, 5, ()), "window without days: never opens"),
        (lambda: ActivityWindow(0, 5, (7,)), r"days \(7,\): must be days from 0"),
        (lambda: WeeklyWindow([]), "window without hours: never opens"),
        (lambda: WeeklyWindow([(5, 5)]), "window 5 to 5 s of the week: must open"),
        (lambda: WeeklyWindow([(WEEK, WEEK + 5)]), "must open within the week"),
        (lambda: WeeklyWindow([(5, WEEK + 6)]), "close within a week"),
    ],
)
def test_windows_that_never_open_are_refused(make: object, message: str) -> None:
    """What would never open, or not within one day or week, is reported with its hours."""
    with pytest.raises(QuantityError, match=message):
        make()  # type: ignore[operator]


@given(st.sampled_from(WEEKS), st.integers(0, 3 * WEEK), st.integers(0, 400 * DAY))
def test_next_change_of_the_clocks(week: tuple[str, datetime], after: int, length: int) -> None:
    """Until the change local time runs with the time of the run, at the change it does not."""
    clock = clock_of(*week)
    change = clock.next_change(after, after + length)
    end = after + length + 1 if change is None else change
    for second in np.linspace(after, end - 1, 50).astype(int).tolist():
        assert clock.ahead(after) == clock.ahead(second)
    if change is not None:
        assert after < change <= after + length
        assert clock.ahead(change) != clock.ahead(change - 1)


@given(st.sampled_from(WEEKS), st.integers(0, 2 * WEEK))
def test_second_at_is_where_the_wall_shows_it(week: tuple[str, datetime], second: int) -> None:
    """The second of a local time is the first that shows it."""
    clock = clock_of(*week)
    found = clock.second_at(clock.wall(second))
    assert clock.wall(second) == clock.wall(found)
    assert found <= second
    assert found == second or clock.ahead(found) != clock.ahead(second)
    assert clock.wall(second) % WEEK == clock.second_of_week(np.array(second))


def test_second_at_a_time_that_is_skipped() -> None:
    """A local time that the wall never shows is the moment when clocks are put forward."""
    clock = clock_of(*WEEKS[0])
    monday = clock.wall(0)
    change = 6 * DAY + 2 * HOUR
    assert change + monday + HOUR == clock.wall(change)
    for skipped in (0, 1, 1800, 3599):
        assert change == clock.second_at(monday + change + skipped)
    assert change == clock.second_at(monday + change + HOUR)
    assert change - 1 == clock.second_at(monday + change - 1)
