"""Users and energy: budgets, fatigue, work that comes back, and what they mind."""

from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, SessionDefinition, Simulation, State
from hpcrowd.agents.behaviours.cut import Cut
from hpcrowd.agents.behaviours.decisions import DecisionLog, Decisions, What
from hpcrowd.agents.behaviours.energy.triggers import Calendar
from hpcrowd.agents.populations.component_users import Member
from hpcrowd.agents.populations.openness import Consequences
from hpcrowd.agents.populations.semi_open import Roster
from hpcrowd.analysis.accounts.reactions import account, notes_of
from hpcrowd.behaviours import ActivityWindow, BatchOrder, Recorded, SameWindow, SessionGraph
from hpcrowd.environment.clock import DAY, HOUR, WEEK, second_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.errors import QuantityError
from hpcrowd.reactions import Always, Budget, Degrade, Delay, During, LookAgain, Renounce, Switch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.behaviours import ONE_KILOWATT, STOCKHOLM, join, react, renounced
from tests.support.populations import pool_of, simulated, submissions
from tests.support.simulations import both

TOGETHER = {"sessions": SessionDefinition("max", 60), "when": SessionGraph}


def run(jobs, *reactions, **options):
    """Replay jobs with users who react, on a machine whose power is known."""
    return react(jobs, *reactions, acting=[PowerInUse(ONE_KILOWATT)], **options)


# ---- budgets ----------------------------------------------------------------------------------

LETTERS = {State.COMPLETED: "C", State.RENOUNCED: "R", State.KILLED: "K", State.REJECTED: "X"}
TWO_USERS = ((0, HOUR, 5, HOUR, 1), (1, HOUR, 1, HOUR, 2))
LARGE = (9 * HOUR, 2, 10 * HOUR)  # 20 kWh as requested


STORIES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    # Requested times count while jobs run, what was used once they are over.
    "CCRC": (((0, *LARGE), (1, *LARGE), (2, *LARGE), (3, HOUR, 1)), {"kwh": 50}, {}),
    "CC": (((0, HOUR, 1, 4 * HOUR), (HOUR + 1, HOUR, 1, 4 * HOUR)), {"kwh": 5}, {}),
    "CR": (((0, HOUR, 1, 4 * HOUR), (HOUR - 1, HOUR, 1, 4 * HOUR)), {"kwh": 5}, {}),
    "KC": (((0, 9 * HOUR, 1, 2 * HOUR), (3 * HOUR, HOUR, 1)), {"kwh": 3}, {"overrun": "kill"}),
    "XC": (((0, HOUR, 9), (1, HOUR, 8)), {"kwh": 9}, {}),  # a rejected job uses none
    # Each user counts alone; jobs of a unit count one after the other.
    "CCRC alone": (
        [(0, HOUR, 2, HOUR, 1), *((at, HOUR, 1, HOUR, 1 + at % 2) for at in (1, 2, 3))],
        {"kwh": 2},
        {},
    ),
    "CCR": (((0, HOUR, 2),) * 3, {"kwh": 4}, TOGETHER),
    # The budget of a machine: 3 kWh each of 6, or 5 and 1 kWh as they have worked.
    "RC": (TWO_USERS, {"machine_kwh": 6}, {}),
    "CC by record": (TWO_USERS, {"machine_kwh": 6, "fair": "record"}, {}),
    "RR": (TWO_USERS, {"machine_kwh": 5.9, "fair": "record"}, {}),
}


@both
@pytest.mark.parametrize("states", STORIES)
def test_what_counts_against_a_budget(make_jobs, plain, states):
    """Users renounce the jobs that would exceed their budget, and no others."""
    rows, budget, options = STORIES[states]
    jobs = make_jobs(*rows)
    run(jobs, Renounce(Budget(**budget)), plain=plain, **options)
    assert states.split()[0] == "".join(LETTERS[State(one)] for one in jobs.state)


@both
def test_delays_wait_for_the_next_period(make_jobs, plain):
    """What exceeds the budget of January comes on 1 February, 00:00 local time, and counts then."""
    february, march = (second_of(datetime(2024, month, 1), STOCKHOLM) for month in (2, 3))
    jobs = make_jobs((0, HOUR, 2), (HOUR, HOUR, 2), (february + DAY, HOUR, 2))
    run(jobs, Delay(Budget(3)), clock=STOCKHOLM, plain=plain)
    assert [0, february, march] == jobs.submit.tolist()


@given(
    st.integers(0, 20 * 366 * DAY),
    st.sampled_from(["month", "week"]),
    st.sampled_from(["Europe/Stockholm", "America/Sao_Paulo", "Australia/Lord_Howe", "UTC"]),
)
@settings(max_examples=60)
def test_every_second_is_in_one_period(second, per, zone):
    """Periods follow each other; each begins on the first day, by the clock of the zone.

    Beyond the last date of Python, in the year 10000, the calendar repeats.
    """
    clock = Clock(946_684_800, ZoneInfo(zone), known=True)  # 2000-01-01, UTC
    calendar = Calendar(clock, per)
    place = calendar.place(second)
    end = calendar.end(place)
    assert second < end
    assert (place, place + 1) == (calendar.place(end - 1), calendar.place(end))
    assert place == 0 or calendar.end(place - 1) <= second
    first = clock.local(end)
    assert (first.day if per == "month" else first.weekday() + 1) == 1
    assert first.hour <= 1  # 1 where clocks are put forward at midnight
    days = (28, 31) if per == "month" else (7, 7)
    for beyond, at in ((calendar, place + 1), (Calendar(Clock(253_339_228_800), per), 40)):
        length = beyond.end(at) - beyond.end(at - 1)
        assert days[0] * DAY - HOUR <= length <= days[1] * DAY + HOUR


def test_reactions_share_a_budget(make_jobs):
    """It counts each job once, when it comes: degraded, renounced if that is not enough."""
    budget = Budget(6)
    jobs = make_jobs((0, HOUR, 4), (1, HOUR, 4), (2, HOUR, 4))
    run(jobs, Degrade(budget), Renounce(budget))
    assert ([4, 2, 2], [2]) == (jobs.processors.tolist(), renounced(jobs))
    # A job that is renounced for another reason uses nothing.
    jobs = make_jobs((0, HOUR, 4), (10, HOUR, 4))
    run(jobs, Renounce(During([(0, 1)])), Renounce(Budget(4)))
    assert [0] == renounced(jobs)
    # While a unit is put off the user submits other work, which has the budget for itself.
    jobs = make_jobs((0, HOUR, 3), (10, HOUR, 3), (200, HOUR, 1))
    run(jobs, LookAgain(During([(0, 5)]), every=100), Renounce(Budget(5)))
    assert [UNKNOWN, 10, 200] == jobs.submit.tolist()
    # 2 of 4 kWh come back: the next job of 2 kWh would exceed 5 kWh.
    jobs = make_jobs((0, HOUR, 4), (3 * HOUR, HOUR, 2), (4 * HOUR, HOUR, 1))
    run(jobs, Degrade(During([(0, 10)]), rebound=1.0, rebound_after=HOUR), Renounce(Budget(5)))
    assert [1] == renounced(jobs)


def test_what_a_run_lacks_is_told_before_it_begins(make_jobs):
    """A budget needs a description of power; nothing comes back under the recorded schedule."""
    with pytest.raises(QuantityError, match="trigger budget: needs a description of power; give"):
        react(make_jobs((0, 1, 1)), Renounce(Budget(1)))
    with pytest.raises(QuantityError, match="rebound 1: under the recorded schedule"):
        run(make_jobs((0, 1, 1)), Renounce(Always(), rebound=1.0), scheduler="recorded")


length = st.integers(1, 2 * HOUR)
job = st.tuples(st.integers(0, 3 * WEEK), length, st.integers(1, 8), length, st.integers(1, 3))
jobs_of_a_run = st.lists(job, min_size=1, max_size=20)
mechanics = st.sampled_from([Recorded, SessionGraph, BatchOrder])


@given(jobs_of_a_run, mechanics, st.floats(0.5, 30))
@settings(max_examples=20)
def test_nobody_exceeds_its_budget(make_jobs, rows, when, kwh):
    """Users keep to it each week; a large one changes nothing, one of 0 leaves nothing."""
    rows = [(at, min(run, asked), size, asked, user) for at, run, size, asked, user in rows]
    jobs, untouched, large, none = (make_jobs(*rows) for _ in range(4))
    run(jobs, Renounce(Budget(kwh, per="week")), when=when)
    ran = jobs.state == State.COMPLETED
    energy = np.where(ran, jobs.processors * jobs.run_time / HOUR, 0)
    for user in np.unique(jobs.user):
        mine = ran & (jobs.user == user)
        weeks = np.bincount(jobs.submit[mine] // WEEK, energy[mine])
        assert weeks.max(initial=0) <= kwh * (1 + 1e-8)
    run(untouched, when=when)
    run(large, Renounce(Budget(1e9)), when=when)
    assert (untouched.matrix == large.matrix).all()
    run(none, Renounce(Budget(0)), when=when)
    assert len(rows) == none.count(State.RENOUNCED)


# ---- fatigue ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "recovery", "options", "followed"),
    [
        (
            [(10 * one, 1, 1) for one in range(4)],
            1000,
            {},
            [0],
        ),  # the second request is seen and not followed
        ([(30 * one, 1, 1) for one in range(9)], 30, {}, list(range(9))),
        # Also one that was not followed is forgotten only after 100 s.
        ([(0, 1, 1), (60, 1, 1), (110, 1, 1), (230, 1, 1)], 100, {}, [0, 3]),
        # All jobs of a session are one request.
        ([(0, 1, 1), (1, 1, 1), (1000, 1, 1), (1001, 1, 1)], 2000, TOGETHER, [0, 1]),
    ],
)
def test_who_tires_at_once_follows_one_request(make_jobs, rows, recovery, options, followed):
    """With a fatigue of 0 only a request is followed before which all others are forgotten."""
    jobs = make_jobs(*rows)
    run(jobs, Renounce(Always(), fatigue=0.0, recovery=recovery), **options)
    assert followed == renounced(jobs)
    # To look again until a period has ended is the same request.
    jobs = make_jobs((0, 1, 1), (1000, 1, 1))
    run(jobs, LookAgain(During([(0, 500), (1000, 1500)]), every=100, fatigue=0.0))
    assert [500, 1000] == jobs.submit.tolist()


def test_fewer_follow_each_time(make_jobs):
    """Of 1,000 users a half follows the first request, a quarter the second; half of it is back."""
    rows = [(10 * one, 1, 1, 1, user) for one in range(3) for user in range(1, 1001)]
    jobs = make_jobs(*rows)
    run(jobs, Renounce(Always(), probability=0.5, fatigue=0.5, rebound=0.5))
    followed = (jobs.state[:3000] == State.RENOUNCED).reshape(3, 1000).mean(axis=1)
    expected = np.array([0.5, 0.25, 0.125])
    assert (abs(expected - followed) < 5 * np.sqrt(expected * (1 - expected) / 1000)).all()
    lost = len(renounced(jobs))
    assert abs(len(jobs) - 3000 - lost / 2) < 5 * np.sqrt(lost / 4)


# ---- rebound ----------------------------------------------------------------------------------


@both
def test_a_renounced_job_comes_back(make_jobs, plain):
    """For its user it is over now; an hour later a new job like it comes, with what it asked."""
    jobs = make_jobs((0, 100, 3, 200), (150, 10, 1))  # the second thinks for 50 s
    log = DecisionLog()
    reaction = Renounce(During([(0, 1)]), rebound=1.0, rebound_after=HOUR)
    users = run(jobs, reaction, when=SessionGraph, log=log, plain=plain)
    assert [State.RENOUNCED, State.COMPLETED, State.COMPLETED] == jobs.state.tolist()
    assert [UNKNOWN, 50, HOUR] == jobs.submit.tolist()
    columns = jobs.processors, jobs.run_time, jobs.requested_time, jobs.user, jobs.number
    assert [3, 100, 200, 1, 3] == [int(column[2]) for column in columns]
    assert [UNKNOWN, 0] == [int(jobs.recorded_submit[2]), int(jobs.session[2])]
    assert (2, 2) == (users[0].submitted, users[0].finished)
    words = [one.words() for one in Decisions.of(log) if one.what == What.RETURNED]
    assert ["session 0: job 3 returned, reaction renounce during"] == words
    accounts = account(jobs, notes_of(users))
    work = [accounts[f"work_{one}_processor_s"] for one in ("recorded", "done", "lost", "returned")]
    assert [310, 310, 300, 300] == work
    assert (1, 1) == (accounts["jobs"], accounts["jobs_returned"])


@both
def test_what_a_degraded_job_lacks_comes_back(make_jobs, plain):
    """5 of 8 processors are taken away: a job of 5 comes, for the same run time."""
    jobs = make_jobs((0, 100, 8, 150))
    run(jobs, Degrade(Always(), factor=0.4, rebound=1.0, rebound_after=60), plain=plain)
    assert [3, 5] == jobs.processors.tolist()
    assert ([0, 60], [100, 160]) == (jobs.start.tolist(), jobs.end.tolist())


def test_it_comes_back_when_the_user_is_at_work(make_jobs):
    """A job of 10:00 would come back at 22:00; it comes at 8:00, or not if the user has left."""
    reaction = Renounce(Always(), rebound=1.0, rebound_after=12 * HOUR)
    window = {"window": SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))}
    for leaves in (False, True):
        jobs = make_jobs((10 * HOUR, 100, 1))
        model = Simulation(jobs, 8)
        [user] = join(model, reaction, when=SessionGraph, parts=window)
        model.run(until=20 * HOUR)
        if leaves:
            user.remove()
        model.run()
        assert [UNKNOWN, DAY + 8 * HOUR][: 2 - leaves] == jobs.submit.tolist()


# ---- populations that come and go -------------------------------------------------------------

#: A temporary user of four Tuesdays between two others.
TUESDAYS = (
    (1, 0, HOUR, 1, 0),
    *((2, week * WEEK + DAY, HOUR, 4, 0) for week in range(1, 5)),
    (3, 8 * WEEK, HOUR, 1, 0),
)
ME = Roster((Member(7, 0, -1),), ())
FIRST = During([(0, 2 * DAY)])


def population(*reactions, **more):
    """Return the jobs of a population of the one user who comes on Tuesdays, and the user."""
    options: dict[str, Any] = {"scheduler": "easy", "weeks": 9, **more}
    jobs, _, [user] = simulated(pool_of(TUESDAYS), ME, reactions=reactions, **options)
    return jobs, user


def test_users_who_come_and_go_react():
    """The first Tuesday is in the period: delayed, renounced or degraded there, the others not."""
    jobs, _ = population(Delay(FIRST))
    assert [2 * DAY + week * WEEK for week in range(4)] == submissions(jobs, 7)
    jobs, user = population(Renounce(FIRST))
    later = [DAY + WEEK - HOUR + week * WEEK for week in range(3)]
    assert ([UNKNOWN, *later], 4) == (submissions(jobs, 7), user.finished)
    jobs, _ = population(Degrade(FIRST))
    assert [2, 4, 4, 4] == jobs.processors.tolist()
    jobs, _ = population(Renounce(Always(), fatigue=0.0))
    assert [0] == renounced(jobs)


def test_lost_work_of_a_population_comes_back():
    """Its units are as without it, and it is not submitted after the horizon."""
    jobs, user = population(Degrade(Always(), rebound=1.0, rebound_after=HOUR))
    assert ([2] * 8, 4, 8) == (jobs.processors.tolist(), user.finished, jobs.count(State.COMPLETED))
    assert sorted(jobs.unit.tolist()) == jobs.unit.tolist()
    jobs, _ = population(Degrade(Always(), rebound=1.0, rebound_after=9 * WEEK))
    assert 4 == len(jobs)
    # Draws work for made-up jobs; the same seed gives the same run.
    half = partial(Renounce, Always(), probability=0.5, fatigue=0.5, rebound=0.5)
    one, other = (population(half())[0] for _ in range(2))
    assert one.matrix[:, : len(one)].tolist() == other.matrix[:, : len(other)].tolist()


def test_users_mind_what_they_are_asked():
    """A unit all of whose jobs were changed counts for the doublings that are asked for."""
    moods = []
    for asked in (0.0, 1.0):
        mind = Consequences(memory=1, elasticity=0, leave=0, again=0, asked=asked)
        for weeks in (1, 9):
            options = {"consequences": mind, "weeks": weeks}
            _, user = population(Degrade(FIRST), formula=lambda jobs, rows: 0.0, **options)
            moods.append(user.mood)
    assert [0, 0, 1, 0] == moods  # asked once, in the first week, and used to it later


def test_some_reactions_need_a_record():
    """They put off or divide recorded units, or need another cluster: one line before the run."""
    for reaction in (LookAgain(Always()), Cut(Always(), limit=5), Switch(Always(), "other")):
        with pytest.raises(QuantityError, match="not for a population that comes and goes"):
            population(reaction)
