"""When users react: periods and dates, hours of the week, signals, patience."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents import (
    ActivityWindow,
    BatchOrder,
    Composed,
    Delay,
    During,
    OnSignal,
    Reaction,
    RecentWaits,
    Recorded,
    Renounce,
    ReplayUser,
    SessionDefinition,
    WeekHours,
    WeeklyWindow,
    Work,
    add_users,
)
from hpcrowd.environment import (
    Clock,
    JobTable,
    QuantityError,
    Signal,
    SignalError,
    Simulation,
    State,
)
from hpcrowd.environment.clock import DAY, HOUR, WEEK, second_of

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)
STOCKHOLM = Clock(1704697200, ZoneInfo("Europe/Stockholm"), known=True)  # Monday 8:00 there

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


def run(
    jobs: JobTable, *reactions: Reaction, when: Any = Recorded, clock: Clock | None = None,
    processors: int = 8, plain: bool = False,
) -> list[ReplayUser]:  # fmt: skip
    """Replay jobs with users who react; return the users."""
    model = Simulation(jobs, processors, clock=clock, plain=plain)
    work = Work.of(jobs, EVERY_JOB)
    users = add_users(model, work, lambda work: Composed(when(work), reactions=reactions))
    model.run()
    return users


def renounced(jobs: JobTable) -> list[int]:
    """Rows of renounced jobs."""
    return np.flatnonzero(jobs.state == State.RENOUNCED).tolist()


def test_periods_that_touch_are_one(make_jobs: MakeJobs) -> None:
    """A job waits for the end of all periods that touch or overlap, given in any order."""
    jobs = make_jobs((15, 1, 1), (25, 1, 1), (45, 1, 1))
    run(jobs, Delay(During([(20, 30), (10, 20), (12, 28), (40, 50)])))
    assert [30, 30, 50] == jobs.submit.tolist()


def test_dates_are_local(make_jobs: MakeJobs) -> None:
    """A date without an offset is local time of the trace; one with an offset says what it is."""
    jobs = make_jobs((HOUR - 1, 1, 1), (HOUR, 1, 1), (3 * HOUR, 1, 1))
    local = During([(datetime(2024, 1, 8, 9), datetime(2024, 1, 8, 10))])
    zoned = timezone(timedelta(hours=5))
    other = During(
        [(datetime(2024, 1, 8, 15, tzinfo=zoned), datetime(2024, 1, 8, 11, 30, tzinfo=UTC))]
    )
    run(jobs, Delay(local), Delay(other), clock=STOCKHOLM)
    assert [HOUR - 1, 2 * HOUR, 4 * HOUR + HOUR // 2] == jobs.submit.tolist()


def test_a_date_in_summer() -> None:
    """Local dates know of summer time."""
    winter, summer = datetime(2024, 1, 8, 8), datetime(2024, 7, 8, 8)
    assert 0 == second_of(winter, STOCKHOLM)
    assert (summer - winter) == timedelta(seconds=second_of(summer, STOCKHOLM) + HOUR)


def test_a_date_and_a_second(make_jobs: MakeJobs) -> None:
    """Both may be in one period; that it ends is checked before anything runs."""
    jobs = make_jobs((60, 1, 1))
    run(jobs, Delay(During([(50, datetime(2024, 1, 8, 9))])), clock=STOCKHOLM)
    assert [HOUR] == jobs.submit.tolist()
    with pytest.raises(QuantityError, match="5000 to 3600 s of the run; must end after"):
        run(jobs, Delay(During([(5000, datetime(2024, 1, 8, 9))])), clock=STOCKHOLM)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: During([]), "periods: none given"),
        (lambda: During([(5, 5)]), "period 5 to 5: must end after it begins"),
        (lambda: During([(datetime(2024, 2, 1), datetime(2024, 1, 1))]), "must end after"),
        (lambda: WeekHours(WeeklyWindow([(0, WEEK)])), "the whole week, which never ends"),
        (lambda: RecentWaits(), "give a threshold, either wait"),
        (lambda: RecentWaits(1, times=2), "give a threshold, either wait"),
        (lambda: RecentWaits(-1), "recent-waits wait -1: at least 0"),
        (lambda: RecentWaits(5, last=0), "recent-waits last 0: at least 1"),
        (lambda: RecentWaits(5, memory=0), "recent-waits memory 0 s: more than 0"),
        (lambda: OnSignal(PRICE), "give a threshold, either above or below"),
        (lambda: OnSignal(PRICE, above=1, below=2), "give a threshold, either above or below"),
        (lambda: OnSignal(PRICE, above=1, outside="on"), "outside 'on': not known; choose error"),
    ],
)
def test_wrong_triggers(make: Callable[[], Any], told: str) -> None:
    """Each mistake is reported in one line, when the trigger is made."""
    with pytest.raises(QuantityError, match=told):
        make()


def test_dates_need_a_trace_with_a_beginning(make_jobs: MakeJobs) -> None:
    """Without UnixStartTime a date is an error before anything runs."""
    period = During([(datetime(2024, 1, 8), datetime(2024, 1, 9))])
    with pytest.raises(QuantityError, match="the trace has no start time"):
        run(make_jobs((0, 1, 1)), Delay(period))


@both
def test_hours_of_the_week(make_jobs: MakeJobs, plain: bool) -> None:
    """On Monday evening jobs wait for the end of the hours; on Saturday they do not."""
    evenings = WeekHours(ActivityWindow(16 * HOUR, 20 * HOUR))
    jobs = make_jobs((16 * HOUR, 1, 1), (20 * HOUR, 1, 1), (5 * DAY + 17 * HOUR, 1, 1))
    run(jobs, Delay(evenings), plain=plain)
    assert [20 * HOUR, 20 * HOUR, 5 * DAY + 17 * HOUR] == jobs.submit.tolist()


def test_hours_over_midnight_on_sunday() -> None:
    """Hours that continue from Sunday to Monday are one period."""
    week = WeeklyWindow([(6 * DAY + 22 * HOUR, WEEK + 6 * HOUR)])
    assert WEEK + 6 * HOUR == week.next_closed(Clock(), 6 * DAY + 23 * HOUR)
    assert 7 * HOUR == week.next_closed(Clock(), 7 * HOUR)


@pytest.mark.parametrize(("opens", "closes"), [(0, 5), (1, 3), (2, 3), (0, 3)])
def test_hours_when_clocks_change(opens: int, closes: int) -> None:
    """Every second of a day on which clocks change, in spring and autumn, has its next closing."""
    window = WeeklyWindow([(6 * DAY + opens * HOUR, 6 * DAY + closes * HOUR)])
    for month, day in ((3, 31), (10, 27)):
        clock = Clock(int(datetime(2024, month, day, tzinfo=ZoneInfo("Europe/Stockholm"))
                          .timestamp()), ZoneInfo("Europe/Stockholm"), known=True)  # fmt: skip
        seconds = range(0, 8 * HOUR, HOUR // 4)
        expected = [
            next(s for s in range(at, 9 * HOUR, HOUR // 4) if not window.is_open(clock, s))
            for at in seconds
        ]
        assert expected == [window.next_closed(clock, at) for at in seconds]


PRICE = Signal(100 * np.arange(5), np.array([1.0, 5, 5, 1, 7]), source="price.csv")


@both
def test_price_above_a_threshold(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs wait until the price has come down; the last value holds for one step."""
    jobs = make_jobs((99, 1, 1), (100, 1, 1), (250, 1, 1), (300, 1, 1), (450, 1, 1))
    run(jobs, Delay(OnSignal(PRICE, above=4)), plain=plain)
    assert [99, 300, 300, 300, 500] == jobs.submit.tolist()
    run(jobs, Delay(OnSignal(PRICE, below=4)), plain=plain)
    assert [100, 100, 250, 400, 450] == jobs.submit.tolist()


@pytest.mark.parametrize("last", [500, 90_000])
def test_signal_that_is_too_short(make_jobs: MakeJobs, last: int) -> None:
    """Recorded submissions outside the signal are an error before anything runs, or off."""
    jobs = make_jobs((450, 1, 1), (last, 1, 1))
    with pytest.raises(SignalError, match=rf"price.csv: covers 0 to 500 s .* from 450 to {last} s"):
        run(jobs, Delay(OnSignal(PRICE, above=4)))
    run(jobs, Delay(OnSignal(PRICE, above=4, outside="off")))
    assert [500, last] == jobs.submit.tolist()


def test_late_users_find_no_signal(make_jobs: MakeJobs) -> None:
    """Who comes after the end of the signal, later than recorded, is left alone."""
    jobs = make_jobs((0, 450, 8, 450, 1), (0, 10, 8, 10, 2), (20, 10, 1, 10, 2))
    run(jobs, Renounce(OnSignal(PRICE, above=0)), when=BatchOrder)
    assert [0, 1, 2] == renounced(jobs)
    jobs = make_jobs((0, 600, 8, 600, 1), (0, 10, 8, 10, 2), (20, 10, 1, 10, 2))
    run(jobs, Renounce(OnSignal(PRICE, above=4)), when=BatchOrder)
    assert [] == renounced(jobs)
    assert 620 == jobs.submit[2]


def waits_of(make_jobs: MakeJobs, *waits: int, apart: int = 100) -> JobTable:
    """One user's jobs of 10 s, the first ones waiting for so long under the recorded schedule."""
    jobs = make_jobs(*[(apart * place, 10, 1) for place in range(len(waits))])
    jobs.recorded_start[:] += np.array(waits)
    jobs.recorded_end[:] += np.array(waits)
    return jobs


def patient(jobs: JobTable, patience: RecentWaits, plain: bool, again: int = 1) -> list[int]:
    """Rows that a user with this patience renounces, where jobs wait as recorded."""
    model = Simulation(jobs, 8, "recorded", plain=plain)
    reactions = [Renounce(patience, name=str(n)) for n in range(again)]
    add_users(model, Work.of(jobs, EVERY_JOB), lambda w: Composed(BatchOrder(w), None, None,
                                                                  reactions))  # fmt: skip
    model.run()
    return renounced(jobs)


@both
def test_patience_over_the_last_jobs(make_jobs: MakeJobs, plain: bool) -> None:
    """The mean of the last two waits counts; before two jobs have ended nothing happens."""
    # Means before each job: -, -, 30, 25, 25, 40.
    waits = (50, 10, 40, 10, 70, 0)
    assert [] == patient(waits_of(make_jobs, *waits), RecentWaits(40, last=2), plain)
    assert [5] == patient(waits_of(make_jobs, *waits), RecentWaits(39, last=2), plain)
    # Lost before the third job, it is never found again: no new waits are heard of.
    assert [2, 3, 4, 5] == patient(waits_of(make_jobs, *waits), RecentWaits(29, last=2), plain)


@both
def test_patience_comes_back(make_jobs: MakeJobs, plain: bool) -> None:
    """Waits that ended longer ago than the memory do not count; then there are too few."""
    waits = (50, 10, 40, 10, 70, 0)
    # Lost at 200 s over jobs that ended at 60 and 120 s; the first is forgotten after 310 s.
    patience = RecentWaits(29, last=2, memory=250)
    assert [2, 3] == patient(waits_of(make_jobs, *waits), patience, plain)


@both
def test_patience_as_a_multiple_of_run_times(make_jobs: MakeJobs, plain: bool) -> None:
    """The sum of waits is compared with a multiple of the sum of run times."""
    waits = (31, 31, 0)
    assert [2] == patient(waits_of(make_jobs, *waits), RecentWaits(times=3, last=2), plain)
    assert [] == patient(waits_of(make_jobs, *waits), RecentWaits(times=3.1, last=2), plain)


@both
def test_patience_that_reactions_share(make_jobs: MakeJobs, plain: bool) -> None:
    """A trigger that two reactions share hears of each job once."""
    waits = (50, 10, 0)
    assert [] == patient(waits_of(make_jobs, *waits), RecentWaits(49, last=2), plain, again=2)


def test_patience_forgets_between_runs(make_jobs: MakeJobs) -> None:
    """One trigger may serve several runs; each begins without a memory of the one before."""
    patience = RecentWaits(29, last=2)
    for _ in range(2):
        assert [2] == patient(waits_of(make_jobs, 50, 10, 0), patience, plain=False)


def test_jobs_that_never_ran_do_not_count(make_jobs: MakeJobs) -> None:
    """Rejected jobs have no wait."""
    jobs = make_jobs((0, 10, 9), (100, 10, 1), (200, 10, 1), (300, 10, 1))
    run(jobs, Renounce(RecentWaits(0, last=2)), when=BatchOrder)
    assert [State.REJECTED, *[State.COMPLETED] * 3] == jobs.state.tolist()


@both
def test_patience_counts_jobs_of_a_batch_by_their_ends(make_jobs: MakeJobs, plain: bool) -> None:
    """Of a batch, the jobs that ended last count, whatever the order of submission."""
    # The first of the batch waits longest but ends first.
    jobs = make_jobs((0, 10, 1), (0, 100, 1), (5, 90, 1), (200, 1, 1))
    jobs.recorded_start[0] += 20
    jobs.recorded_end[0] += 20
    model = Simulation(jobs, 8, "recorded", plain=plain)
    work = Work.of(jobs, SessionDefinition("arrival", 60))
    reaction = Renounce(RecentWaits(0, last=2))
    add_users(model, work, lambda w: Composed(BatchOrder(w), reactions=[reaction]))
    model.run()
    assert [] == renounced(jobs)
