"""Users who go on from a second of their record: what they know of it, and what they do next."""

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents.populations.past import Likeness, Past
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.forecasts import ClusterState
from hpcrowd.platform import Maintenance
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.forecasts.forecast_cases import CLOCK, busy_moment, site_log, state_at

#: Users who submit.
SUBMITTING = ("rigid", "think-time", "think-time-windows")

#: 9:00 of day 21, a Monday.
MORNING = 21 * DAY + 9 * HOUR


def table(rows):
    """Return jobs from (submit, start, end, processors, user), -1 for what has not happened."""
    jobs = JobTable(len(rows))
    submit, start, end, wide, user = np.array(rows).T
    jobs.number[:] = np.arange(1, len(rows) + 1)
    jobs.recorded_submit[:], jobs.recorded_start[:], jobs.recorded_end[:] = submit, start, end
    jobs.run_time[:] = np.where(end == UNKNOWN, UNKNOWN, end - start)
    jobs.processors[:], jobs.user[:], jobs.requested_time[:] = wide, user, 4 * HOUR
    jobs.group[:] = jobs.queue[:] = jobs.executable[:] = 1
    return jobs


def sent(outset, number=0, seed=0, *, user=None):
    """Return when users submit in a future, s; all of them, or one."""
    seen: list[Any] = []
    outset.simulate(number, seed, watch=seen.append)
    jobs = seen[0].jobs
    new = np.arange(len(jobs)) >= len(outset.rows) + len(outset.asked_rows)
    mine = new & (jobs.submit != UNKNOWN) & (jobs.user == (jobs.user if user is None else user))
    return np.sort(jobs.submit[mine])


def outset_of(rows, now, horizon, users, clock=CLOCK):
    """Return futures of jobs on a machine of 4 processors."""
    return Outset(ClusterState(table(rows), now, clock, 4), horizon, users=users)


def jobs_of(draw, now):
    """Return some jobs before a second, some of which still run or wait."""
    rows = []
    for submit in sorted(draw(st.lists(st.integers(0, now), min_size=1, max_size=25))):
        start = submit + draw(st.integers(0, 2 * DAY))
        end = start + draw(st.integers(0, 2 * DAY))
        start, end = (at if at <= now else UNKNOWN for at in (start, end))
        rows.append((submit, start, end, 1, draw(st.integers(1, 3))))
    return rows


@settings(max_examples=30)
@given(st.data())
def test_situations_are_those_of_a_plain_computation(data):
    """Silence, jobs that are not over and units of the week before, of each user at any second."""
    now = 20 * DAY
    rows = jobs_of(data.draw, now)
    past = Past(table(rows), now, CLOCK)
    moments = data.draw(st.lists(st.integers(0, now), min_size=1, max_size=6))
    units = past.units
    for place, user in enumerate(past.users.tolist()):
        found = past.features(place, np.array(moments))
        mine = [row for row in rows if row[4] == user]
        first = units.user_first[place : place + 2]
        starts = units.start[first[0] : first[1]].tolist()
        for column, at in enumerate(moments):
            before = [row[0] for row in mine if row[0] <= at]
            over = sum((now if row[2] == UNKNOWN else row[2]) <= at for row in mine)
            week = sum(at - WEEK < start <= at for start in starts)
            silence = np.log1p((at - max(before)) / 60) if before else np.inf
            expected = (silence, np.log1p(len(before) - over), np.log1p(week))
            assert expected == pytest.approx(found[:, column])


@pytest.mark.parametrize("users", SUBMITTING)
def test_nothing_that_comes_later_is_known(users):
    """Two records that differ only after a second have the same futures."""
    log = site_log()
    now = busy_moment(log)
    other = log.copy()
    times = log.recorded_submit, log.recorded_start, log.recorded_end
    later, starts, ends = (column > now for column in times)
    assert later.any()
    assert (ends & ~later).any()
    other.recorded_submit[later] += np.random.default_rng(1).integers(0, DAY, int(later.sum()))
    other.processors[later], other.user[later] = 1, 99
    other.recorded_start[starts] += 2 * DAY
    other.recorded_end[ends] += 3 * DAY
    other.run_time[ends] += HOUR
    one, two = (Outset(state_at(now, jobs), 2 * DAY, users=users) for jobs in (log, other))
    found, other = (vars(outset.simulate(3)) for outset in (one, two))
    assert found.keys() == other.keys()
    assert all(np.array_equal(values, other[name]) for name, values in found.items())


@pytest.mark.parametrize("users", SUBMITTING)
def test_jobs_that_left_the_queue(users):
    """A job that was cancelled before it started has no run time; users may do it again."""
    rows = [(d * DAY + 9 * HOUR, UNKNOWN, d * DAY + 10 * HOUR, 1, 1) for d in range(21)]
    seen: list[Any] = []
    outset = outset_of(rows, MORNING - HOUR, DAY, users)
    future = outset.simulate(0, watch=seen.append)
    assert len(future.submit)
    jobs = seen[0].jobs
    assert (jobs.run_time[jobs.submit != UNKNOWN] >= 0).all()
    assert (future.busy >= 0).all()


def pairs(now, busy_until=0):
    """Return a user who does A at 9:00 each day, for an hour, and B 10 min after its end.

    Until ``now``, on a machine of 4 processors. If it is busy with a job of user 2, which runs for
    6 h whenever it does, A waits for it.
    """
    of_day = ((9 * HOUR, HOUR, 1), (10 * HOUR + 600, HOUR, 1), (12 * HOUR, 6 * HOUR, 2))
    rows = [
        (day * DAY + at, day * DAY + at, day * DAY + at + run, 4, user)
        for day in range(now // DAY + 1)
        for at, run, user in of_day
        if day * DAY + at <= now
    ]
    if busy_until:
        last = max(place for place, row in enumerate(rows) if row[4] == 1)
        rows[last] = (rows[last][0], UNKNOWN, UNKNOWN, 4, 1)
        start = busy_until - 6 * HOUR
        rows.append((start, start, UNKNOWN, 4, 2))
    rows = [(*row[:2], UNKNOWN if row[2] > now else row[2], *row[3:]) for row in rows]
    jobs = table(sorted(rows))
    jobs.requested_time[jobs.user == 2] = 12 * HOUR
    return ClusterState(jobs, now, CLOCK, 4)


def today(times):
    """Return the times of day 21, min since its 9:00."""
    return [(at - MORNING) // 60 for at in times.tolist() if at < 22 * DAY]


def test_users_wait_for_what_is_pending():
    """B comes when A is over, which waits until 13:00 if the machine is busy; rigid ones go on."""
    for users, busy in (("think-time", 240 + 70), ("rigid", 70)):
        for until, expected in ((0, 70), (MORNING + 4 * HOUR, busy)):
            outset = Outset(pairs(MORNING + HOUR // 2, until), DAY, users=users)
            assert [expected] == today(sent(outset, user=1))


def test_a_chain_of_a_block_waits():
    """On a machine that is down B comes later; after a block users go on from another moment."""
    now = MORNING - HOUR
    closed = Maintenance(MORNING - 60, MORNING + 5 * HOUR, announced=60, jobs="run")
    outset = Outset(pairs(now), DAY - 2 * HOUR, users="think-time")
    assert [0, 70] == today(sent(outset, user=1))
    late = replace(outset, platform=[closed])
    assert [0, 5 * 60 + 70] == today(sent(late, user=1))
    assert [0, 70] == today(sent(replace(late, users="rigid"), user=1))
    outset = Outset(pairs(MORNING - HOUR), 20 * DAY, users="think-time", likeness=Likeness(block=2))
    for users in SUBMITTING:
        times = sent(replace(outset, users=users), user=1)
        days = np.unique(times // DAY)
        assert days.tolist() == list(range(21, 41)), users


def test_users_with_a_short_record_do_as_others():
    """One whose first job came just now goes on from moments of others, and only of these."""
    state = pairs(MORNING - HOUR)
    jobs = state.jobs.copy()
    times = {"requested_time": HOUR, "recorded_submit": state.now, "recorded_start": state.now}
    jobs.append(1, user=7, group=1, queue=1, executable=1, processors=1, **times)
    past, alone = (Past(jobs, state.now, CLOCK, how) for how in (Likeness(), Likeness(prior=0.0)))
    place = past.users.tolist().index(7)
    stream = np.random.default_rng(0)
    assert {0, 1} >= {int(past.first_moments(stream)[0][place]) for _ in range(50)}
    assert UNKNOWN == alone.first_moments(stream)[0][place]


def test_moments_that_are_like_now_are_preferred():
    """A user with a job that runs goes on from moments with a job that ran."""
    hours = [24 * day + (9 if day % 2 == 0 else 17) for day in range(60)]  # at 9:30 every other day
    rows = [(hour * HOUR, hour * HOUR, (hour + 1) * HOUR, 1, 1) for hour in hours]
    now = 60 * DAY + 9 * HOUR + 1800
    past = Past(table([*rows, (now - 1800, now - 1800, UNKNOWN, 1, 1)]), now, CLOCK)
    _, when = zip(*(past.first_moments(np.random.default_rng(n)) for n in range(100)), strict=True)
    even = np.mean([int(one[0]) // DAY % 2 == 0 for one in when])
    assert even > 0.9


def test_new_users_come_as_before():
    """As many a week as in the last weeks on average, at the time of the week of one of these."""
    draw = np.random.default_rng(3)
    count = draw.poisson(4, 20)
    times = np.repeat(np.arange(20) * WEEK, count) + draw.integers(0, WEEK, count.sum())
    rows = [(at, at, at + 60, 1, user) for user, at in enumerate(sorted(times.tolist()), 1)]
    now = 20 * WEEK
    past = Past(table(rows), now, CLOCK)
    found = [past.new_users(now + WEEK, np.random.default_rng(n)) for n in range(400)]
    expected = np.mean(count[-past.likeness.arrivals :])
    assert expected == pytest.approx(np.mean([len(one) for one in found]), rel=0.1)
    firsts = past.units.start[past.units.user_first[:-1]]
    assert any(found[:20])
    for one in found[:20]:
        moments = {moment for _, moment in one}
        assert len(moments) <= 1
        for place, moment in one:
            assert 0 == (now - moment) % WEEK
            assert moment < firsts[place] <= moment + WEEK


def test_new_users_are_new_and_submit():
    """They have numbers of their own, and do what those did whose record they go on with."""
    times = [week * WEEK + DAY + one * HOUR for week in range(12) for one in range(3)]
    rows = [(at, at, at + HOUR, 1, user) for user, at in enumerate(times, 1)]
    outset = outset_of(rows, 12 * WEEK, WEEK, "rigid")
    seen: list[Any] = []
    outset.simulate(0, watch=seen.append)
    jobs = seen[0].jobs
    new = jobs.user > 36
    assert {37, 38, 39} == set(jobs.user[new].tolist())
    assert [DAY, DAY + HOUR, DAY + 2 * HOUR] == sorted((jobs.submit[new] - 12 * WEEK).tolist())
    # In its first weeks most users of a record are new, which says nothing about the next week.
    young = Past(table([(DAY, DAY, 2 * DAY, 1, 1)]), 2 * WEEK, CLOCK)
    assert [] == young.new_users(3 * WEEK, np.random.default_rng(0))


#: 2024-02-26, a Monday, 00:00 in Berlin is second 0; clocks are put forward on 2024-03-31.
BERLIN = Clock(1_708_902_000, ZoneInfo("Europe/Berlin"), known=True)


@pytest.mark.parametrize("users", SUBMITTING)
def test_local_time_is_kept_when_clocks_change(users):
    """Somebody who begins at 9:00 does so before and after the change, but for pauses across it."""
    # Users who wait pause as long as ever across the change; with windows they come minutes later.
    nines = [BERLIN.second_at(day * DAY + 9 * HOUR + BERLIN.wall(0)) for day in range(60)]
    for day in (32, 37):
        now = nines[day] - 2 * HOUR
        rows = [(at, at, at + 600, 1, 1) for at in nines if at < now]
        times = sent(outset_of(rows, now, 6 * DAY, users, BERLIN), user=1)
        assert len(times) >= 5
        late = np.array([BERLIN.wall(at) % DAY - 9 * HOUR for at in times.tolist()])
        assert (late[: 2 if day == 32 else None] == 0).all()  # until Saturday
        assert ((late >= 0) & (late <= (0 if users == "rigid" else HOUR))).all()


@pytest.mark.parametrize("users", SUBMITTING)
@pytest.mark.parametrize("hours", [2, 4, 8, 20, 30, 72])
def test_users_go_on_after_short_records(hours, users):
    """They submit about as many jobs per day as before, also when the record is long over."""
    now, hour = 40 * DAY, HOUR
    rows = [
        (at + 400 * user, at + 400 * user, at + 400 * user + 900, 1, user)
        for at in range(now - hours * hour, now, hour)
        for user in range(1, 5)
    ]
    days = (sent(outset_of(rows, now, 5 * DAY, users)) - now) // DAY
    assert np.bincount(days, minlength=5)[:5] / (4 * 24) == pytest.approx(np.ones(5), abs=0.35)


def test_learned_users_go_on():
    """They submit what they did before, with pauses of the model; not the same in each future."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    from hpcrowd import Work
    from hpcrowd.analysis.models.learned import Settings, fit_learned

    log = site_log()
    model = fit_learned([(Work.of(log), CLOCK)], Settings(trees=4, leaf=5))
    outset = Outset(state_at(), 3 * DAY, users="learned", model=model)
    first, second = (sent(outset, number) for number in range(2))
    assert len(first)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, sent(outset, 0))
    assert ((first >= outset.state.now) & (first <= outset.state.now + 3 * DAY)).all()


def test_the_first_days_are_whole():
    """Who goes on from a moment of the last days goes on until the stretch begins, not for less."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.analysis.models.learned import Settings, fit_learned

    # User 2 came five days ago: whatever follows its moments is shorter than the first days.
    now = 20 * WEEK
    days = {1: range(20 * 7), 2: range(20 * 7 - 5, 20 * 7)}
    rows = [
        (day * DAY + at * HOUR + user, day * DAY + at * HOUR + user, day * DAY + 13 * HOUR, 1, user)
        for user, those in days.items()
        for day in those
        for at in (11, 12)
    ]
    jobs = table(sorted(rows))
    model = fit_learned([(Work.of(jobs), CLOCK)], Settings(trees=2, leaf=5))
    outset = Outset(
        ClusterState(jobs, now, CLOCK, 4), 4 * WEEK, users="learned", model=model,
        likeness=Likeness(prior=0.0),
    )  # fmt: skip
    for number in range(5):
        week = np.unique((sent(outset, number, user=2) - now) // DAY)[:7]
        assert list(range(7)) == week.tolist()
