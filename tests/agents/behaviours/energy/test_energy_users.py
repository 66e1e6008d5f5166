"""Users and energy: budgets, fatigue, work that comes back, and what they mind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents import (
    ActivityWindow,
    Always,
    BatchOrder,
    Budget,
    Composed,
    Cut,
    DecisionLog,
    Decisions,
    Degrade,
    Delay,
    During,
    LookAgain,
    Reaction,
    Recipe,
    Reconfigure,
    Recorded,
    Renounce,
    ReplayUser,
    SameWindow,
    SessionDefinition,
    SessionGraph,
    Switch,
    Work,
    add_users,
)
from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.energy.budget import Calendar
from hpcrowd.agents.populations.component_users import Member
from hpcrowd.agents.populations.openness import Consequences
from hpcrowd.agents.populations.semi_open import Roster
from hpcrowd.analysis import account, notes_of
from hpcrowd.environment import Clock, JobTable, QuantityError, Simulation, State
from hpcrowd.environment.clock import DAY, HOUR, WEEK, second_of
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios import reaction_from
from hpcrowd.scenarios.kinds.population_files import read_population
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.populations import pool_of, simulated, submissions

MakeJobs = Callable[..., JobTable]
EVERY_JOB = SessionDefinition("arrival", None)
STOCKHOLM = Clock(1704697200, ZoneInfo("Europe/Stockholm"), known=True)  # Monday 2024-01-08 8:00

both = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])


class OneKilowatt:
    """Power of a machine whose processors draw 1 kW each, but only while they are busy."""

    def __init__(self, jobs: JobTable) -> None:
        self.jobs = jobs

    def energy(self, rows: Any) -> Any:
        """Return what jobs need, kWh."""
        return self.jobs.processors[rows] * self.jobs.run_time[rows] / HOUR

    def requested_energy(self, rows: Any) -> Any:
        """Return what they need if they run for as long as requested, kWh."""
        return self.jobs.processors[rows] * self.jobs.requested_time[rows] / HOUR


def run(
    jobs: JobTable,
    *reactions: Reaction,
    when: Any = Recorded,
    processors: int = 8,
    log: DecisionLog | None = None,
    power: bool = True,
    parts: dict[str, Any] | None = None,
    sessions: SessionDefinition = EVERY_JOB,
    **options: Any,
) -> list[ReplayUser]:
    """Replay jobs with users who react; return the users."""
    model = Simulation(jobs, processors, **options)
    model.power = OneKilowatt(jobs) if power else None  # type: ignore[attr-defined,assignment,unused-ignore]
    work = Work.of(jobs, sessions)

    def maker(work: Work) -> Composed:
        return Composed(when(work), reactions=reactions, **(parts or {}))

    users = add_users(model, work, maker, log=log)
    model.run()
    return users


def renounced(jobs: JobTable) -> list[int]:
    """Rows of renounced jobs."""
    return np.flatnonzero(jobs.state == State.RENOUNCED).tolist()


# ---- budgets ----------------------------------------------------------------------------------


@both
def test_a_budget_is_used_up_by_requested_times(make_jobs: MakeJobs, plain: bool) -> None:
    """Jobs of 20 kWh each: the third exceeds 50 kWh while the others run, a small one does not."""
    jobs = make_jobs((0, 9 * HOUR, 2, 10 * HOUR), (1, 9 * HOUR, 2, 10 * HOUR),
                     (2, 9 * HOUR, 2, 10 * HOUR), (3, HOUR, 1, HOUR))  # fmt: skip
    run(jobs, Renounce(Budget(50)), plain=plain)
    assert [2] == renounced(jobs)


@both
def test_a_budget_counts_what_was_used_once_jobs_are_over(make_jobs: MakeJobs, plain: bool) -> None:
    """Both ask for 4 h and run for 1 h: the second fits after the first, and not beside it."""
    jobs = make_jobs((0, HOUR, 1, 4 * HOUR), (HOUR + 1, HOUR, 1, 4 * HOUR))
    run(jobs, Renounce(Budget(5)), plain=plain)
    assert [] == renounced(jobs)
    jobs = make_jobs((0, HOUR, 1, 4 * HOUR), (HOUR - 1, HOUR, 1, 4 * HOUR))
    run(jobs, Renounce(Budget(5)), plain=plain)
    assert [1] == renounced(jobs)


def test_killed_jobs_have_used_what_they_ran(make_jobs: MakeJobs) -> None:
    """A job that is killed after 2 of 9 hours has used 2 kWh."""
    jobs = make_jobs((0, 9 * HOUR, 1, 2 * HOUR), (3 * HOUR, HOUR, 1, HOUR))
    run(jobs, Renounce(Budget(3)), overrun="kill")
    assert [State.KILLED, State.COMPLETED] == jobs.state.tolist()


def test_rejected_jobs_use_nothing(make_jobs: MakeJobs) -> None:
    """A job that is too large for the machine leaves the whole budget to the next."""
    jobs = make_jobs((0, HOUR, 9), (1, HOUR, 8))
    run(jobs, Renounce(Budget(9)))
    assert [State.REJECTED, State.COMPLETED] == jobs.state.tolist()


@both
def test_each_user_counts_alone(make_jobs: MakeJobs, plain: bool) -> None:
    """One user has used up its budget, the other has not."""
    jobs = make_jobs((0, HOUR, 2, HOUR, 1), (1, HOUR, 1, HOUR, 2), (2, HOUR, 1, HOUR, 1),
                     (3, HOUR, 1, HOUR, 2))  # fmt: skip
    run(jobs, Renounce(Budget(2)), plain=plain)
    assert [2] == renounced(jobs)


def test_the_budget_of_a_machine_is_divided(make_jobs: MakeJobs) -> None:
    """Equally: 3 kWh each of 6; as recorded: 5 and 1 kWh, as they have worked."""

    def made() -> JobTable:
        return make_jobs((0, HOUR, 5, HOUR, 1), (1, HOUR, 1, HOUR, 2))

    jobs = made()
    run(jobs, Renounce(Budget(machine_kwh=6)))
    assert [0] == renounced(jobs)
    jobs = made()
    run(jobs, Renounce(Budget(machine_kwh=6, fair="record")))
    assert [] == renounced(jobs)
    jobs = made()
    run(jobs, Renounce(Budget(machine_kwh=5.9, fair="record")))
    assert [0, 1] == renounced(jobs)


@both
def test_delays_wait_for_the_next_month(make_jobs: MakeJobs, plain: bool) -> None:
    """What exceeds the budget of January comes on 1 February, 00:00 local time, and counts then."""
    february = second_of(datetime(2024, 2, 1), STOCKHOLM)
    jobs = make_jobs((0, HOUR, 2), (HOUR, HOUR, 2), (february + DAY, HOUR, 2))
    run(jobs, Delay(Budget(3)), clock=STOCKHOLM, plain=plain)
    march = second_of(datetime(2024, 3, 1), STOCKHOLM)
    assert [0, february, march] == jobs.submit.tolist()


def test_a_budget_of_a_week(make_jobs: MakeJobs) -> None:
    """Weeks begin on Monday, 00:00: 16 h before the clock of this run."""
    jobs = make_jobs((0, HOUR, 2), (HOUR, HOUR, 2))
    run(jobs, Delay(Budget(3, per="week")), clock=STOCKHOLM)
    assert [0, WEEK - 8 * HOUR] == jobs.submit.tolist()


def test_months_are_those_of_the_local_calendar() -> None:
    """March is an hour shorter in Stockholm, October an hour longer; a leap February has 29 d."""
    calendar = Calendar(STOCKHOLM, "month")
    begins = [second_of(datetime(2024, month, 1), STOCKHOLM) for month in range(2, 13)]
    assert begins == [calendar.end(place) for place in range(11)]
    long = {2: 29 * DAY, 3: 31 * DAY - HOUR, 10: 31 * DAY + HOUR}
    assert long == {
        month: calendar.end(month - 1) - calendar.end(month - 2) for month in sorted(long)
    }
    for place, begin in enumerate(begins):
        assert (place, place + 1) == (calendar.place(begin - 1), calendar.place(begin))


@given(
    st.integers(0, 20 * 366 * DAY),
    st.sampled_from(["month", "week"]),
    st.sampled_from(["Europe/Stockholm", "America/Sao_Paulo", "Australia/Lord_Howe", "UTC"]),
)
@settings(max_examples=60)  # fmt: skip
def test_every_second_is_in_one_period(second: int, per: str, zone: str) -> None:
    """Periods follow each other; each begins on the first day, by the clock of the zone."""
    clock = Clock(946_684_800, ZoneInfo(zone), known=True)  # 2000-01-01, UTC
    calendar = Calendar(clock, per)
    place = calendar.place(second)
    end = calendar.end(place)
    assert second < end
    assert place == 0 or calendar.end(place - 1) <= second
    first = clock.local(end)
    assert (first.day if per == "month" else first.weekday() + 1) == 1
    assert first.hour <= 1  # 1 where clocks are put forward at midnight


def test_the_year_10000_has_months() -> None:
    """Beyond the last date of Python the calendar repeats."""
    clock = Clock(253_339_228_800)
    calendar = Calendar(clock, "month")
    length = calendar.end(40) - calendar.end(39)
    assert 28 * DAY <= length <= 31 * DAY


def test_two_reactions_share_a_budget(make_jobs: MakeJobs) -> None:
    """It counts each job once: degraded first, renounced only if that is not enough."""
    budget = Budget(6)
    jobs = make_jobs((0, HOUR, 4), (1, HOUR, 4), (2, HOUR, 4))
    run(jobs, Degrade(budget), Renounce(budget))
    assert [4, 2, 2] == jobs.processors.tolist()
    assert [2] == renounced(jobs)


def test_jobs_of_a_unit_count_one_after_the_other(make_jobs: MakeJobs) -> None:
    """Of three jobs submitted together the third exceeds the budget."""
    jobs = make_jobs((0, HOUR, 2), (0, HOUR, 2), (0, HOUR, 2))
    run(jobs, Renounce(Budget(4)), sessions=SessionDefinition("max", 60), when=SessionGraph)
    assert [2] == renounced(jobs)


def test_a_unit_that_is_put_off_is_counted_when_it_comes(make_jobs: MakeJobs) -> None:
    """Meanwhile the user submits other work, which has the budget for itself."""
    jobs = make_jobs((0, HOUR, 3), (10, HOUR, 3), (200, HOUR, 1))
    budget = Budget(5)
    run(jobs, LookAgain(During([(0, 5)]), every=100), Renounce(budget))
    assert [0] == renounced(jobs)
    assert [UNKNOWN, 10, 200] == jobs.submit.tolist()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(), "budget: give either kwh, of each user, or machine_kwh"),
        (lambda: Budget(1, machine_kwh=2), "budget: give either kwh, of each user, or machine_kwh"),
        (lambda: Budget(-1), "budget kwh -1: must be 0 or more"),
        (lambda: Budget(machine_kwh=float("nan")), "budget machine_kwh nan: must be 0 or more"),
        (lambda: Budget(1, fair="never"), "budget fair 'never': not known; choose equal"),  # type: ignore[arg-type]
        (lambda: Budget(1, per="day"), "budget per 'day': not known; choose month"),  # type: ignore[arg-type]
        (lambda: Renounce(Always(), fatigue=2), "fatigue 2: must be between 0 and 1"),
        (lambda: Renounce(Always(), recovery=0), "recovery 0 s: must be more than 0"),
        (lambda: Renounce(Always(), rebound=-1), "rebound -1: must be between 0 and 1"),
        (lambda: Degrade(Always(), rebound_after=0), "rebound_after 0 s: must be more than 0"),
    ],
)  # fmt: skip
def test_mistakes_give_one_line(make: Callable[[], Any], words: str) -> None:
    """What makes no sense is refused when the part is made."""
    with pytest.raises(QuantityError) as caught:
        make()
    assert str(caught.value).startswith(words)


def test_a_budget_needs_a_description_of_power(make_jobs: MakeJobs) -> None:
    """Without it the run does not begin."""
    with pytest.raises(QuantityError, match="trigger budget: needs a description of power; give"):
        run(make_jobs((0, 1, 1)), Renounce(Budget(1)), power=False)


jobs_of_a_run = st.lists(
    st.tuples(
        st.integers(0, 3 * WEEK),
        st.integers(1, 2 * HOUR),
        st.integers(1, 8),
        st.integers(1, 2 * HOUR),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=20,
)
mechanics = st.sampled_from([Recorded, SessionGraph, BatchOrder])


@given(jobs_of_a_run, mechanics)
@settings(max_examples=20)
def test_budgets_at_their_ends(make_jobs: MakeJobs, rows: list[Any], when: Any) -> None:
    """A large budget changes nothing; with a budget of 0 all jobs are concerned."""
    plain, large, none = (make_jobs(*rows) for _ in range(3))
    run(plain, when=when)
    run(large, Renounce(Budget(1e9)), when=when)
    assert (plain.matrix == large.matrix).all()
    run(none, Renounce(Budget(0)), when=when)
    assert len(rows) == none.count(State.RENOUNCED)


@given(jobs_of_a_run, mechanics, st.floats(0.5, 30))
@settings(max_examples=20)
def test_nobody_exceeds_its_budget(
    make_jobs: MakeJobs, rows: list[Any], when: Any, kwh: float
) -> None:
    """Users who renounce keep to it each week, where jobs run no longer than requested."""
    rows = [(at, min(run, asked), size, asked, user) for at, run, size, asked, user in rows]
    jobs = make_jobs(*rows)
    run(jobs, Renounce(Budget(kwh, per="week")), when=when)
    ran = jobs.state == State.COMPLETED
    energy = np.where(ran, jobs.processors * jobs.run_time / HOUR, 0)
    for user in np.unique(jobs.user):
        weeks = np.bincount(jobs.submit[ran & (jobs.user == user)] // WEEK,
                            energy[ran & (jobs.user == user)])  # fmt: skip
        assert weeks.max(initial=0) <= kwh * (1 + 1e-8)


# ---- fatigue ----------------------------------------------------------------------------------


def spaced(make_jobs: MakeJobs, count: int, gap: int, users: int = 1) -> JobTable:
    """Return jobs of users who submit one each ``gap`` s."""
    rows = [(gap * one, 1, 1, 1, user) for one in range(count) for user in range(1, users + 1)]
    return make_jobs(*rows)


def test_whoever_tires_at_once_follows_the_first_request_only(make_jobs: MakeJobs) -> None:
    """With a fatigue of 0 the second request is seen and not followed."""
    jobs = spaced(make_jobs, 4, 10)
    run(jobs, Renounce(Always(), fatigue=0.0))
    assert [0] == renounced(jobs)


def test_requests_are_forgotten(make_jobs: MakeJobs) -> None:
    """Every 30 s; after 100 s a request is forgotten, also one that was not followed."""
    jobs = spaced(make_jobs, 9, 30)
    run(jobs, Renounce(Always(), fatigue=0.0, recovery=30))
    assert list(range(9)) == renounced(jobs)
    jobs = make_jobs((0, 1, 1), (60, 1, 1), (110, 1, 1), (230, 1, 1))
    run(jobs, Renounce(Always(), fatigue=0.0, recovery=100))
    assert [0, 3] == renounced(jobs)


def test_a_unit_is_one_request(make_jobs: MakeJobs) -> None:
    """All jobs of a session are asked for together; the next session is the second request."""
    jobs = make_jobs((0, 1, 1), (1, 1, 1), (1000, 1, 1), (1001, 1, 1))
    run(jobs, Renounce(Always(), fatigue=0.0), sessions=SessionDefinition("max", 60),
        when=SessionGraph)  # fmt: skip
    assert [0, 1] == renounced(jobs)


def test_looking_again_is_the_same_request(make_jobs: MakeJobs) -> None:
    """A user who waits for the end of a period does not tire of looking."""
    jobs = make_jobs((0, 1, 1), (1000, 1, 1))
    run(jobs, LookAgain(During([(0, 500), (1000, 1500)]), every=100, fatigue=0.0))
    assert [500, 1000] == jobs.submit.tolist()


def test_fewer_follow_each_time(make_jobs: MakeJobs) -> None:
    """Of 2,000 users a half follows the first request, a quarter the second, an eighth the next."""
    jobs = spaced(make_jobs, 3, 10, users=2000)
    run(jobs, Renounce(Always(), probability=0.5, fatigue=0.5))
    followed = (jobs.state == State.RENOUNCED).reshape(3, 2000).mean(axis=1)
    expected = np.array([0.5, 0.25, 0.125])
    assert (abs(expected - followed) < 5 * np.sqrt(expected * (1 - expected) / 2000)).all()


@given(jobs_of_a_run, mechanics, st.sampled_from([1.0, 0.5]))
@settings(max_examples=20)
def test_who_never_tires_does_as_before(
    make_jobs: MakeJobs, rows: list[Any], when: Any, probability: float
) -> None:
    """Defaults given or not are the same; and who tires follows no request that others ignore."""
    tables = []
    for more in ({}, {"fatigue": 1.0, "recovery": 1, "rebound": 0.0}, {"fatigue": 0.7}):
        jobs = make_jobs(*rows)
        run(jobs, Renounce(Always(), probability=probability, **more), when=when)  # type: ignore[arg-type]
        tables.append(jobs)
    assert (tables[0].matrix == tables[1].matrix).all()
    assert set(renounced(tables[2])) <= set(renounced(tables[0]))


# ---- rebound ----------------------------------------------------------------------------------


@both
def test_a_renounced_job_comes_back(make_jobs: MakeJobs, plain: bool) -> None:
    """For its user it is over now; an hour later a new job like it comes, with what it asked."""
    jobs = make_jobs((0, 100, 3, 200), (150, 10, 1))  # the second thinks for 50 s
    log = DecisionLog()
    reaction = Renounce(During([(0, 1)]), rebound=1.0, rebound_after=HOUR)
    users = run(jobs, reaction, when=SessionGraph, log=log, plain=plain)
    assert [State.RENOUNCED, State.COMPLETED, State.COMPLETED] == jobs.state.tolist()
    assert [UNKNOWN, 50, HOUR] == jobs.submit.tolist()
    assert [3, 100, 200, 1, 3] == [
        int(column[2])
        for column in (jobs.processors, jobs.run_time, jobs.requested_time, jobs.user, jobs.number)
    ]
    assert [UNKNOWN, 0] == [int(jobs.recorded_submit[2]), int(jobs.session[2])]
    assert (2, 2) == (users[0].submitted, users[0].finished)
    words = [one.words() for one in Decisions.of(log) if one.what == What.RETURNED]
    assert ["session 0: job 3 returned, reaction renounce during"] == words
    accounts = account(jobs, notes_of(users))
    assert (310, 310, 300, 300, 1, 1) == tuple(
        accounts[name]
        for name in ("work_recorded_processor_s", "work_done_processor_s", "work_lost_processor_s",
                     "work_returned_processor_s", "jobs", "jobs_returned")
    )  # fmt: skip


@both
def test_what_a_degraded_job_lacks_comes_back(make_jobs: MakeJobs, plain: bool) -> None:
    """5 of 8 processors are taken away: a job of 5 comes, for the same run time."""
    jobs = make_jobs((0, 100, 8, 150))
    users = run(jobs, Degrade(Always(), factor=0.4, rebound=1.0, rebound_after=60), plain=plain)
    assert [3, 5] == jobs.processors.tolist()
    assert [(0, 100), (60, 160)] == list(zip(jobs.start.tolist(), jobs.end.tolist(), strict=True))
    accounts = account(jobs, notes_of(users))
    assert (800, 800) == (accounts["work_recorded_processor_s"], accounts["work_done_processor_s"])


def test_it_comes_back_when_the_user_is_at_work(make_jobs: MakeJobs) -> None:
    """A job of Monday, 10:00, would come back at 22:00; it comes at 8:00 on Tuesday."""
    jobs = make_jobs((10 * HOUR, 100, 1))
    window = SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))
    run(jobs, Renounce(Always(), rebound=1.0, rebound_after=12 * HOUR), when=SessionGraph,
        parts={"window": window})  # fmt: skip
    assert [UNKNOWN, DAY + 8 * HOUR] == jobs.submit.tolist()


def test_nothing_comes_back_of_users_who_left(make_jobs: MakeJobs) -> None:
    """A user who is removed meanwhile submits nothing more."""
    jobs = make_jobs((0, 100, 1))
    model = Simulation(jobs, 8)
    reaction = Renounce(Always(), rebound=1.0, rebound_after=1000)
    [user] = add_users(model, Work.of(jobs), Recipe("recorded", reactions=(reaction,)))
    model.run(until=500)
    user.remove()
    model.run()
    assert [State.RENOUNCED] == jobs.state.tolist()


def test_returned_work_counts_against_the_budget(make_jobs: MakeJobs) -> None:
    """2 of 4 kWh come back: the next job of 2 kWh would exceed 5 kWh."""
    jobs = make_jobs((0, HOUR, 4), (3 * HOUR, HOUR, 2), (4 * HOUR, HOUR, 1))
    run(jobs, Degrade(During([(0, 10)]), rebound=1.0, rebound_after=HOUR), Renounce(Budget(5)))
    assert [1] == renounced(jobs)


def test_nothing_comes_back_under_the_recorded_schedule(make_jobs: MakeJobs) -> None:
    """It has no record: one line before the run."""
    with pytest.raises(QuantityError, match="rebound 1: under the recorded schedule"):
        run(make_jobs((0, 1, 1)), Renounce(Always(), rebound=1.0), scheduler="recorded")


RESPONSES: tuple[Callable[..., Reaction], ...] = (
    lambda trigger, **more: Degrade(trigger, factor=0.4, **more),
    Renounce,
)


@given(
    jobs_of_a_run,
    mechanics,
    st.lists(
        st.tuples(st.sampled_from(RESPONSES), st.sampled_from([0.0, 0.5, 1.0]),
                  st.sampled_from([1.0, 0.5]), st.sampled_from([1.0, 0.6])),
        min_size=1, max_size=2,
    ),
)  # fmt: skip
@settings(max_examples=25)
def test_jobs_in_are_jobs_out(
    make_jobs: MakeJobs, rows: list[Any], when: Any, given: list[Any]
) -> None:
    """All jobs end, with those that came back; work adds up; both engines do the same, twice."""
    seen = []
    for plain in (False, True, False):
        jobs = make_jobs(*rows)
        recorded = int((jobs.processors * jobs.run_time).sum())
        reactions = [
            respond(Budget(3), rebound=rebound, rebound_after=DAY, probability=p, fatigue=fatigue)
            for respond, rebound, p, fatigue in given
        ]
        users = run(jobs, *reactions, Reconfigure(During([(0, DAY)])), when=when, plain=plain)
        accounts = account(jobs, notes_of(users))
        assert len(jobs) == jobs.count(State.COMPLETED) + jobs.count(State.RENOUNCED)
        assert len(jobs) == len(rows) + accounts["jobs_returned"]
        assert len(jobs) == len(set(jobs.number.tolist()))
        assert recorded == accounts["work_recorded_processor_s"]
        assert accounts["work_done_processor_s"] == (
            recorded - accounts["work_lost_processor_s"] + accounts["work_added_processor_s"]
            + accounts["work_returned_processor_s"]
        )  # fmt: skip
        assert accounts["work_returned_processor_s"] <= accounts["work_lost_processor_s"]
        seen.append((jobs.matrix[:, : len(jobs)].tolist(), notes_of(users)))
    assert seen[0] == seen[1] == seen[2]


# ---- populations that come and go -------------------------------------------------------------

#: A temporary user of four Tuesdays between two others.
TUESDAYS = (
    (1, 0, HOUR, 1, 0),
    *((2, week * WEEK + DAY, HOUR, 4, 0) for week in range(1, 5)),
    (3, 8 * WEEK, HOUR, 1, 0),
)
ME = Roster((Member(7, 0, -1),), ())


def population(*reactions: Reaction, **more: Any) -> tuple[JobTable, Any]:
    """Return the jobs of a population of the one user who comes on Tuesdays, and the user."""
    options: dict[str, Any] = {"scheduler": "easy", "weeks": 9, **more}
    jobs, _, [user] = simulated(pool_of(TUESDAYS), ME, reactions=reactions, **options)
    return jobs, user


def test_users_who_come_and_go_react() -> None:
    """The first Tuesday is in the period: delayed, renounced or degraded there, the others not."""
    first = During([(0, 2 * DAY)])
    pause = WEEK - HOUR
    jobs, _ = population(Delay(first))
    assert [2 * DAY + week * WEEK for week in range(4)] == submissions(jobs, 7)
    jobs, user = population(Renounce(first))
    assert [UNKNOWN, *(DAY + pause + week * WEEK for week in range(3))] == submissions(jobs, 7)
    assert 4 == user.finished
    jobs, _ = population(Degrade(first))
    assert [2, 4, 4, 4] == jobs.processors.tolist()


def test_lost_work_of_a_population_comes_back() -> None:
    """Its units are as without it, and it is not submitted after the horizon."""
    first = Always()
    jobs, user = population(Degrade(first, rebound=1.0, rebound_after=HOUR))
    assert [2] * 8 == jobs.processors.tolist()
    assert 4 == user.finished
    assert 8 == jobs.count(State.COMPLETED)
    assert sorted(jobs.unit.tolist()) == jobs.unit.tolist()
    jobs, _ = population(Degrade(first, rebound=1.0, rebound_after=9 * WEEK))
    assert 4 == len(jobs)


def test_half_of_a_population_follows_in_its_own_draws() -> None:
    """Fatigue and probability work for made-up jobs; the same seed gives the same run."""
    tables = []
    for _ in range(2):
        jobs, _ = population(Renounce(Always(), probability=0.5, fatigue=0.5, rebound=0.5))
        tables.append(jobs.matrix[:, : len(jobs)].tolist())
    assert tables[0] == tables[1]
    jobs, _ = population(Renounce(Always(), fatigue=0.0))
    assert [0] == renounced(jobs)


def test_users_mind_what_they_are_asked() -> None:
    """A unit all of whose jobs were changed counts for the doublings that are asked for."""
    moods = []
    for asked in (0.0, 1.0):
        mind = Consequences(memory=1, elasticity=0, leave=0, again=0, asked=asked)
        reaction = Degrade(During([(0, 2 * DAY)]))
        for weeks in (1, 9):
            _, user = population(reaction, formula=lambda jobs, rows: 0.0, consequences=mind,
                                 weeks=weeks)  # fmt: skip
            moods.append(user.mood)
    assert [0, 0, 1, 0] == moods  # asked once, in the first week, and used to it later
    with pytest.raises(QuantityError, match="asked -1: at least 0"):
        Consequences(asked=-1)


@pytest.mark.parametrize(
    "reaction", [LookAgain(Always()), Cut(Always(), limit=5), Switch(Always(), "other")]
)
def test_some_reactions_need_a_record(reaction: Reaction) -> None:
    """They put off or divide recorded units, or need another cluster: one line before the run."""
    with pytest.raises(QuantityError, match="not for a population that comes and goes"):
        population(reaction)


# ---- files ------------------------------------------------------------------------------------

HALF = """
[[users]]
behaviour = "adjusted"

[[users.reactions]]
do = "delay"
when = "signal"
file = "carbon.csv"     # g/kWh
above = 300
share = 0.5             # half of the users
fatigue = 0.9           # each request seen in the last weeks is followed a tenth less
recovery = "30d"

[[users.reactions]]
do = "degrade"
when = "budget"
kwh = 2.5               # each user, each month
rebound = 0.3
rebound_after = "7d"
"""

CARBON = "time,value\n0,400\n1000,200\n2000,200\n"


def test_half_of_the_users_delay_while_carbon_is_high(make_jobs: MakeJobs, tmp_path: Path) -> None:
    """From a file: half of 400 users wait for clean energy, within what chance allows."""
    (tmp_path / "carbon.csv").write_text(CARBON)
    (tmp_path / "half.toml").write_text(HALF)
    config = read_population(tmp_path / "half.toml")
    jobs = make_jobs(*((200, 10, 1, 10, user) for user in range(1, 401)))
    model = Simulation(jobs, 500)
    model.power = OneKilowatt(jobs)  # type: ignore[attr-defined,assignment,unused-ignore]
    add_users(model, Work.of(jobs), config.mixture())
    model.run()
    delayed = jobs.submit == 1000
    assert (delayed | (jobs.submit == 200)).all()
    assert abs(delayed.mean() - 0.5) < 5 * np.sqrt(0.25 / 400)
    _, degrade = config.users[0].recipe(tmp_path).reactions  # type: ignore[union-attr]
    assert (0.3, WEEK, 2.5) == (degrade.rebound, degrade.rebound_after, degrade.trigger.kwh)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"kwh": 5, "machine_kwh": 6}, "budget: give either kwh"),
        ({"kwh": -5}, "kwh -5: Input should be greater than or equal to 0"),
        ({"kwh": 5, "per": "day"}, "per 'day'"),
    ],
)
def test_mistakes_in_files_give_one_line(config: dict[str, Any], words: str) -> None:
    """They name the setting."""
    with pytest.raises(QuantityError) as caught:
        reaction_from({"do": "delay", "when": "budget", **config})
    assert words in str(caught.value)
