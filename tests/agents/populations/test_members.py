"""Users who do again what a recorded user did, or make it up like one: stories and properties."""

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, State, Streams
from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember
from hpcrowd.agents.populations.semi_open import (
    GroupWork,
    Roster,
    SiteWork,
    add_members,
    draw_roster,
)
from hpcrowd.behaviours import Shifts
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import AsRecorded, ClosedLoop, Member, Openness, SiteModel
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.populations import TWO_USERS, outcome, pool_of, simulated, submissions

LONG, SHORT = 0, 1  # places of components in the pool of two users

#: A temporary user (2) of three Mondays, who is there in the second of six weeks; and a user of a
#: session that lasts over the end of the third week.
THREE = [(1, 0, 60, 1, 0), (1, 6 * WEEK, 60, 1, 0)] + [
    (2, week * WEEK, 60, 1, 0) for week in (1, 2, 3)
]
LATE = [(1, 0, 60, 1, 0), *[(1, 3 * WEEK - 900 + 600 * k, 60, 1, 0) for k in range(4)]]
CAME = 4 * WEEK + DAY + 9 * HOUR


def only(component, shift, number=7):
    """Return a population of one."""
    return Roster((Member(number, component, shift),), ())


@pytest.mark.parametrize("behaviour", [AsRecorded, ClosedLoop])
@pytest.mark.parametrize(
    ("rows", "who", "weeks", "expected", "visits"),
    [
        pytest.param(
            TWO_USERS, (LONG, 0), 6,
            [week * WEEK + hour * HOUR for week, hour in ((0, 10), (2, 11), (3, 10), (5, 11))],
            [(0, 7, "there")], id="a long-term user wraps around",
        ),
        pytest.param(TWO_USERS, (LONG, -1), 4, [WEEK + 11 * HOUR, 2 * WEEK + 10 * HOUR],
                     [(0, 7, "there")], id="and begins at some week of its own"),
        pytest.param(TWO_USERS, (SHORT, 3), 6, [CAME, CAME + 5 * HOUR],
                     [(CAME, 7, "arrived"), (CAME + 6 * HOUR, 7, "done")],
                     id="a temporary user comes and leaves"),
        pytest.param(THREE, (SHORT, -2), 6, [0, WEEK], [(0, 7, "there"), (WEEK + 60, 7, "done")],
                     id="who came before is there with what is left"),
        pytest.param(LATE, (LONG, 0), 3, [0, 3 * WEEK - 900, 3 * WEEK - 300], [(0, 7, "there")],
                     id="a session ends at the horizon"),
    ],
)  # fmt: skip
def test_what_one_user_does(behaviour, rows, who, weeks, expected, visits):
    """Recorded work comes again on the same days and hours, and the user with it."""
    jobs, living, users = simulated(pool_of(rows), only(*who), weeks=weeks, behaviour=behaviour())
    assert expected == submissions(jobs, 7) == jobs.recorded_submit.tolist()
    assert visits == living.visits.notes
    assert [visits[-1][2] == "done"] == [user.done for user in users]


def test_closed_loops_follow_the_speed_of_the_machine():
    """Units come as much later as those before took longer, or when the user is at work again."""
    rigid, _, _ = simulated(pool_of(speed=0.5), only(LONG, 0), behaviour=AsRecorded())
    slow, _, _ = simulated(pool_of(speed=0.5), only(LONG, 0))
    late = np.array(submissions(slow, 7)) - np.array(submissions(rigid, 7))
    assert [0, HOUR, 2 * HOUR, 3 * HOUR] == late.tolist()
    assert late.tolist() == (slow.submit - slow.recorded_submit).tolist()
    fast, _, (user,) = simulated(pool_of(speed=1000), only(LONG, 0))
    first, second, *_ = user.graph.nodes
    assert {"start": 10 * HOUR, "jobs": 1} == user.graph.nodes[first]
    assert {"think_time": 2 * WEEK} == user.graph.edges[first, second]
    assert [10 * HOUR, 2 * WEEK + 10 * HOUR + 4] == submissions(fast, 7)[:2]
    rows = [(1, day * DAY + 9 * HOUR, 4 * HOUR, 1, 0) for day in range(28) if day % 7 < 5]
    pool = pool_of(rows, speed=1 / 4)
    free, _, _ = simulated(pool, only(LONG, 0))
    kept, _, _ = simulated(pool, only(LONG, 0), behaviour=ClosedLoop(pool.profiles))
    hours = [set((jobs.submit % DAY // HOUR).tolist()) for jobs in (free, kept)]
    assert [{9, 21}, {9}] == hours
    assert {0, 1, 2, 3, 4} == set((kept.submit // DAY % 7).tolist())


@st.composite
def records(draw):
    """Draw records of a few users and weeks, with waits; one user is there at both ends."""
    weeks = draw(st.integers(3, 6))
    job = st.tuples(
        st.integers(1, 4),  # user
        st.integers(0, weeks * WEEK - 1),  # submission, s
        st.integers(1, 2 * DAY),  # run time, s
        st.integers(1, 3),  # processors
        st.sampled_from([0, 0, 50, 9000]),  # wait, s
    )
    rows = draw(st.lists(job, min_size=1, max_size=24))
    rows += [(9, 0, 60, 1, 0), (9, weeks * WEEK - HOUR, 60, 1, 0)]
    return sorted(rows, key=lambda row: row[1])


@settings(max_examples=25)
@given(records(), st.integers(0, 3))
def test_with_waits_as_recorded_both_submit_the_same(rows, seed):
    """The closed loop is the rigid population where no clocks are changed and no job waits more."""
    pool = pool_of(rows)
    for one in pool.components:  # what runs on when the log comes around again would be waited for
        first, last = one.units.start, one.units.stop
        assume(pool.units.end[first:last].max() - pool.units.start[first] < pool.weeks * WEEK)
    roster = draw_roster(pool, 8, Openness(2), Streams(seed))
    rigid, _, _ = simulated(pool, roster, weeks=8, behaviour=AsRecorded())
    closed, _, _ = simulated(pool, roster, weeks=8)
    assert outcome(rigid) == outcome(closed)


@settings(max_examples=25)
@given(records(), st.integers(0, 3), st.integers(3, 6))
def test_jobs_in_are_jobs_out_and_no_dependency_is_broken(rows, seed, processors):
    """On a machine that is too small everything ends, and nobody comes before its time."""
    pool = pool_of(rows)
    roster = draw_roster(pool, 5, Openness(2), Streams(seed))
    jobs, _, users = simulated(pool, roster, weeks=5, scheduler="fcfs", processors=processors)
    assert len(jobs) == jobs.count(State.COMPLETED)
    assert len(jobs) == sum(np.count_nonzero(jobs.user == user.number) for user in users)
    for user in users:
        units = {}
        for number in user.asked:
            mine = np.flatnonzero(jobs.unit == number)
            units[int(jobs.recorded_submit[mine[0]])] = mine
        for unit in user.component.units:
            for after, think in pool.units.successors[unit]:
                for turn in range(-12, 12):
                    moved = user.member.shift + turn * pool.weeks
                    before = units.get(pool.second(unit, moved))
                    later = units.get(pool.second(after, moved))
                    if before is not None and later is not None:
                        assert jobs.submit[later[0]] >= jobs.end[before].max() + think


#: Two long-term users and a temporary one with three units.
ROWS = [
    *[(1, week * WEEK + 10 * HOUR, HOUR, 1, 0) for week in range(6)],
    *[(2, week * WEEK + 3 * DAY, 2 * HOUR, 2, 0) for week in range(6)],
    *[(3, 2 * WEEK + day * DAY, HOUR, 3, 0) for day in range(3)],
]
JOBS = np.array([600, 60, 60]), np.array([900] * 3), np.array([1, 2, 2])
BATCHES = {1: BatchPool(np.array([0, 1, 3]), *JOBS)}


@pytest.fixture(scope="module")
def pool():
    """Return the pool of three users."""
    return pool_of(ROWS)


def member(number, *pauses):
    """Return a member of a group."""
    return PoolMember(number, 1, 0, np.array(pauses, np.int64))


def groups(pool):
    """Return members who pause for a day, or for an hour."""
    return GroupWork(pool, [member(1, DAY), member(2, DAY), member(3, HOUR)], BATCHES)


def test_members_come_and_go(pool):
    """Long-term ones continue to the end; a temporary one leaves like the user it is made after."""
    weekdays = Shifts(opens=0, closes=DAY, shift=0, day_share=1, weekday_share=1)
    roster = draw_roster(pool, 8, Openness(full=False, arrivals="even"), Streams(1))
    for living in (groups(pool), SiteWork(pool, SiteModel(shifts=weekdays))):
        model = Simulation(JobTable(), 100, "easy", clock=pool.clock, seed=4)
        users = add_members(model, living, roster, horizon=8 * WEEK)
        model.run()
        counts = living.visits.counts()
        assert (2, 1, 1) == (counts["there"], counts["arrived"], counts["done"])
        (guest,) = (user for user in users if user.number not in (1, 2))
        jobs = model.jobs.take(np.flatnonzero(model.jobs.user == guest.number))
        assert [guest] == [user for user in users if user.done]
        assert np.ptp(jobs.submit) <= 2 * DAY + 1
        if isinstance(living, SiteWork):
            assert {3} == set(jobs.processors.tolist())
        else:
            assert 3 == guest.submitted
            assert np.ptp(jobs.submit) < DAY
            assert 0 == (jobs.submit.min() - 2 * WEEK) % WEEK  # on the Monday, 00:00, of some week
            last = [model.jobs.submit[model.jobs.user == number].max() for number in (1, 2)]
            assert min(last) > 8 * WEEK - 2 * DAY


def test_who_is_not_a_member_is_named(pool):
    """Each user of the pool is a member whose group has batches."""
    with pytest.raises(QuantityError, match="user 2: in the pool, but not a member"):
        GroupWork(pool, [member(1, DAY)], BATCHES)
    with pytest.raises(QuantityError, match="user 1: no batches of its group 1"):
        GroupWork(pool, [member(number, DAY) for number in (1, 2, 3)], {})
