"""Who is there after the first days of a forecast: users of a stretch of the record."""

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.agents.populations.past import Past
from hpcrowd.agents.populations.turnover import Stretches, Turnover
from hpcrowd.environment.clock import DAY, HOUR, WEEK

#: Monday of week 12, 0:00, and the stretch that is asked for.
NOW = 12 * WEEK
BEGIN, UNTIL = NOW + WEEK, NOW + 4 * WEEK


def record(make_jobs, weeks_of, until=12):
    """The past of users who submit at noon of every day of some weeks, each from, to."""
    rows = [
        (week * WEEK + day * DAY + 12 * HOUR + user, 600, 1, 3600, user)
        for user, (begin, end) in weeks_of.items()
        for week in range(begin, min(end, until))
        for day in range(7)
    ]
    return Past(make_jobs(*sorted(rows)).as_recorded(), until * WEEK, Clock())


#: One is always there, two left after week 3, three came in week 8.
THREE = {1: (0, 12), 2: (0, 4), 3: (8, 12)}


def drawn_of(past, turnover, times, begin=BEGIN, until=UNTIL):
    """Who was drawn, several times: the known and the others by their records' places."""
    stretches = Stretches(past, begin, until, turnover)
    for number in range(times):
        yield stretches.draw(np.random.default_rng(number))


def test_users_are_those_of_one_stretch(make_jobs):
    """Without chance for users, exactly those are there who were, new if they were new then."""
    past = record(make_jobs, THREE)
    seen = set()
    for known, others in drawn_of(past, Turnover(drawn=0), 200):
        moments = {later.moment for later in (*known.values(), *others)}
        assert 1 == len(moments)
        moment = moments.pop()
        assert moment + UNTIL - BEGIN <= NOW
        assert 0 == (moment - BEGIN) % DAY
        assert (moment < 4 * WEEK - HOUR) == (1 in known)  # the place of user 2
        assert (moment > 8 * WEEK + 13 * HOUR) == (2 in known)  # it was there before
        came = moment < 8 * WEEK + 12 * HOUR <= moment + UNTIL - BEGIN
        assert ([2] if came else []) == [later.place for later in others]
        assert 0 in known
        seen.add(moment)
    assert len(seen) > 20


def test_recent_stretches_are_likelier_and_weekends_stay(make_jobs):
    """Most stretches are of the last weeks, and begin on the same day of the week."""
    past = record(make_jobs, THREE)
    rules = Turnover(drawn=0)
    moments = np.array([
        known[0].moment for known, _ in drawn_of(past, rules, 300)
    ])  # fmt: skip
    assert (moments >= NOW - 5 * WEEK).mean() > 0.4
    assert (moments < NOW - 8 * WEEK).any()
    assert ((moments - BEGIN) % WEEK == 0).mean() > 0.4


def test_as_many_users_as_in_the_record_are_there_in_the_mean(make_jobs):
    """Where it is drawn how often each is there, the number varies around that of the record."""
    past = record(make_jobs, dict.fromkeys(range(1, 21), (0, 12)))
    rules = Turnover(drawn=1, shape=0.5)
    counts = [len(known) + len(others) for known, others in drawn_of(past, rules, 400)]
    variance = 20 * (1 + 1 / rules.shape)  # of Poisson numbers with gamma means
    assert 20 == pytest.approx(np.mean(counts), abs=4 * np.sqrt(variance / 400))
    assert variance == pytest.approx(np.var(counts), rel=0.4)
    known = [known for known, _ in drawn_of(past, Turnover(drawn=1), 20)]
    assert any(place != later.place for each in known for place, later in each.items())


def test_who_was_there_before_is_somebody_of_the_first_days(make_jobs):
    """The work of users who had been there goes to those who would fall silent, one for one."""
    # Users 1 to 5 were there until week 9, 6 to 8 since week 9; only the latter are there now.
    weeks = dict.fromkeys(range(1, 6), (0, 9)) | dict.fromkeys(range(6, 9), (9, 12))
    past = record(make_jobs, weeks)
    stretches = Stretches(past, BEGIN, UNTIL, Turnover(drawn=0))
    now = np.arange(5, 8)  # their places
    whose = np.where(np.isin(np.arange(8), now), np.arange(8), -1)
    before = stretches.submit_before(whose, np.full(8, NOW - WEEK))
    assert set(now.tolist()) == before
    assert set() == stretches.submit_before(whose, np.full(8, NOW))
    exchanged = 0
    for number in range(60):
        plain, others = stretches.draw(np.random.default_rng(number))
        found, new = stretches.draw(np.random.default_rng(number), before)
        assert others == new
        assert sorted(plain.values()) == sorted(found.values())
        if set(plain) <= set(range(5)) and plain and not others:
            assert before < set(found)
            assert 5 == len(found)
            exchanged += 1
        elif before & set(plain):
            assert before & set(plain) <= set(found)
    assert exchanged > 10


def test_a_short_record_has_no_stretches(make_jobs):
    """Users go on from their own moments unless a record is two weeks longer than a stretch."""
    assert record(make_jobs, {1: (0, 12)}).begin == 12 * HOUR + 1
    for weeks, enough in ((3, False), (4, False), (6, True)):
        past = record(make_jobs, {1: (0, 12)}, until=weeks)
        now = weeks * WEEK
        assert enough == Stretches(past, now + WEEK, now + 4 * WEEK).enough
    assert not Stretches(past, now + WEEK, now + WEEK).enough
