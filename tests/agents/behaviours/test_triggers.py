"""When users react: periods and dates, hours of the week, signals, patience."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, SessionDefinition, State
from hpcrowd.behaviours import ActivityWindow, BatchOrder, WeeklyWindow
from hpcrowd.environment.clock import DAY, HOUR, WEEK, second_of
from hpcrowd.errors import QuantityError, SignalError
from hpcrowd.power import Signal
from hpcrowd.reactions import Delay, During, OnSignal, RecentWaits, Renounce, Trigger, WeekHours

from tests.support.behaviours import EVERY_JOB, STOCKHOLM, react, renounced
from tests.support.simulations import both

MONDAY = datetime(2024, 1, 8)
ZONED = MONDAY.replace(hour=15, tzinfo=timezone(timedelta(hours=5)))
#: The last value holds for one step.
PRICE = Signal(100 * np.arange(5), np.array([1.0, 5, 5, 1, 7]), source="price.csv")


NINE, TEN = MONDAY.replace(hour=9), MONDAY.replace(hour=10)
DUE = [99, 100, 250, 300, 450]

STORIES: dict[str, tuple[Trigger, list[int], list[int]]] = {
    # Periods that touch or overlap are one, given in any order.
    "touch": (During([(20, 30), (10, 20), (12, 28), (40, 50)]), [15, 25, 45], [30, 30, 50]),
    # A date without an offset is local time of the trace; one with an offset says what it is.
    "local": (During([(NINE, TEN)]), [HOUR - 1, HOUR], [HOUR - 1, 2 * HOUR]),
    "zoned": (During([(ZONED, datetime(2024, 1, 8, 11, 30, tzinfo=UTC))]),
              [2 * HOUR - 1, 3 * HOUR], [2 * HOUR - 1, 4 * HOUR + HOUR // 2]),
    "both": (During([(50, NINE)]), [49, 60], [49, HOUR]),
    # On Monday evening jobs wait for the end of the hours; on Saturday they do not.
    "hours": (WeekHours(ActivityWindow(16 * HOUR, 20 * HOUR)),
              [8 * HOUR, 12 * HOUR, 5 * DAY + 9 * HOUR],
              [12 * HOUR, 12 * HOUR, 5 * DAY + 9 * HOUR]),
    # Until the price has come down, or up.
    "above": (OnSignal(PRICE, above=4), DUE, [99, 300, 300, 300, 500]),
    "below": (OnSignal(PRICE, below=4), DUE, [100, 100, 250, 400, 450]),
}  # fmt: skip


@both
@pytest.mark.parametrize("story", STORIES)
def test_delays_wait_for_the_end(make_jobs, plain, story):
    """Jobs due while a trigger is active come when it has ended; the others as recorded."""
    trigger, due, expected = STORIES[story]
    jobs = make_jobs(*((at, 1, 1) for at in due))
    react(jobs, Delay(trigger), clock=STOCKHOLM, plain=plain)
    assert expected == jobs.submit.tolist()


def test_dates_are_checked_before_anything_runs(make_jobs):
    """Local dates know of summer time, have to end, and need a trace with a beginning."""
    assert (182 * 24 - 1) * HOUR == second_of(datetime(2024, 7, 8, 8), STOCKHOLM)
    jobs, period = make_jobs((60, 1, 1)), During([(5000, datetime(2024, 1, 8, 9))])
    with pytest.raises(QuantityError, match="5000 to 3600 s of the run; must end after"):
        react(jobs, Delay(period), clock=STOCKHOLM)
    with pytest.raises(QuantityError, match="the trace has no start time"):
        react(jobs, Delay(During([(datetime(2024, 1, 8), datetime(2024, 1, 9))])))


def test_hours_over_midnight_on_sunday():
    """Hours that continue from Sunday to Monday are one period."""
    week = WeeklyWindow([(6 * DAY + 22 * HOUR, WEEK + 6 * HOUR)])
    assert WEEK + 6 * HOUR == week.next_closed(Clock(), 6 * DAY + 23 * HOUR)
    assert 7 * HOUR == week.next_closed(Clock(), 7 * HOUR)


@pytest.mark.parametrize(("opens", "closes"), [(0, 5), (1, 3), (2, 3), (0, 3), (2.25, 3)])
@pytest.mark.parametrize(("month", "day"), [(3, 31), (10, 27)])
def test_hours_when_clocks_change(month, day, opens, closes):
    """Every second of a day on which clocks change, in spring and autumn, has its next closing."""
    window = WeeklyWindow([(6 * DAY + int(opens * HOUR), 6 * DAY + closes * HOUR)])
    zone = ZoneInfo("Europe/Stockholm")
    clock = Clock(int(datetime(2024, month, day, tzinfo=zone).timestamp()), zone, known=True)
    seconds = range(0, 8 * HOUR, HOUR // 4)
    expected = [
        next(s for s in range(at, 9 * HOUR, HOUR // 4) if not window.is_open(clock, s))
        for at in seconds
    ]
    assert expected == [window.next_closed(clock, at) for at in seconds]


@pytest.mark.parametrize("last", [500, 90_000])
def test_signal_that_is_too_short(make_jobs, last):
    """Recorded submissions outside the signal are an error before anything runs, or off."""
    jobs = make_jobs((450, 1, 1), (last, 1, 1))
    with pytest.raises(SignalError, match=rf"price.csv: covers 0 to 500 s .* from 450 to {last} s"):
        react(jobs, Delay(OnSignal(PRICE, above=4)))
    react(jobs, Delay(OnSignal(PRICE, above=4, outside="off")))
    assert [500, last] == jobs.submit.tolist()


def test_late_users_find_no_signal(make_jobs):
    """Who comes after the end of the signal, later than recorded, is left alone."""
    for length, above, expected in ((450, 0, [0, 1, 2]), (600, 4, [])):
        jobs = make_jobs((0, length, 8, length, 1), (0, 10, 8, 10, 2), (20, 10, 1, 10, 2))
        react(jobs, Renounce(OnSignal(PRICE, above=above)), when=BatchOrder)
        assert expected == renounced(jobs)
    assert 620 == jobs.submit[2]


def patient(jobs, trigger, plain=False, times=1, **options):
    """Rows that users with this patience renounce, where jobs wait as recorded."""
    reactions = [Renounce(trigger, name=str(number)) for number in range(times)]
    react(jobs, *reactions, when=BatchOrder, scheduler="recorded", plain=plain, **options)
    return renounced(jobs)


BATCHES = SessionDefinition("arrival", 60)

#: Means of the last two before each job: -, -, 30, 25, 25, 40.
WAITS = (50, 10, 40, 10, 70, 0)


@both
@pytest.mark.parametrize(
    ("waits", "trigger", "expected"),
    [
        # Before two jobs have ended nothing happens.
        (WAITS, RecentWaits(40, last=2), []),
        (WAITS, RecentWaits(39, last=2), [5]),
        # Lost before the third job, it is never found again: no new waits are heard of.
        (WAITS, RecentWaits(29, last=2), [2, 3, 4, 5]),
        # Lost at 200 s over jobs that ended at 60 and 120 s; the first is forgotten after 310 s.
        (WAITS, RecentWaits(29, last=2, memory=250), [2, 3]),
        # The sum of waits against a multiple of the sum of run times.
        ((31, 31, 0), RecentWaits(times=3, last=2), [2]),
        ((31, 31, 0), RecentWaits(times=3.1, last=2), []),
    ],
)
def test_recent_waits(make_jobs, plain, waits, trigger, expected):  # fmt: skip
    """A user loses patience over the waits of its last jobs; each run begins without a memory."""
    for times in (1, 2):  # a trigger that two reactions share hears of each job once
        jobs = make_jobs(*((100 * place, 10, 1) for place in range(len(waits))))
        jobs.recorded_start[:] += np.array(waits)
        jobs.recorded_end[:] += np.array(waits)
        assert expected == patient(jobs, trigger, plain, times)


def test_jobs_that_never_ran_do_not_count(make_jobs):
    """Rejected jobs have no wait."""
    jobs = make_jobs((0, 10, 9), (100, 10, 1), (200, 10, 1), (300, 10, 1))
    react(jobs, Renounce(RecentWaits(0, last=2)), when=BatchOrder)
    assert [State.REJECTED, *[State.COMPLETED] * 3] == jobs.state.tolist()


@both
def test_jobs_of_a_batch_count_by_their_ends(make_jobs, plain):
    """Of a batch, the jobs that ended last count, whatever the order of submission."""
    # The first of the batch waits longest but ends first.
    jobs = make_jobs((0, 10, 1), (0, 100, 1), (5, 90, 1), (200, 1, 1))
    jobs.recorded_start[0] += 20
    jobs.recorded_end[0] += 20
    for last, sessions, expected in ((2, BATCHES, []), (3, BATCHES, [3]), (1, EVERY_JOB, [])):
        assert expected == patient(jobs, RecentWaits(0, last=last), plain, sessions=sessions)
