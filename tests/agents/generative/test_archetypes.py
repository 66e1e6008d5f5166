"""Generative users: their hours, their streams, and what they do when they hear or do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.agents.behaviours.activity import ALL_DAYS, ActivityWindow
from hpcrowd.agents.behaviours.think import ContinuationLaw
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.archetypes import (
    ARCHETYPES,
    DEMO_USERS,
    GROUP_NAMES,
    Debugger,
    DebuggerHabits,
    LargeRunHabits,
    LargeRuns,
    NightScript,
    NightScriptHabits,
    Office,
    ParameterSweeper,
    Stage,
    SweeperHabits,
    demo_population,
)
from hpcrowd.agents.generative.generated import ROUND_TIMES, GeneratedUser, LogNormal, round_request
from hpcrowd.environment import Clock, JobTable, QuantityError, Simulation, State
from hpcrowd.environment.clock import DAY, HOUR, WEEK

from tests.agents.generative.archetype_cases import PLAIN_OFFICE, fixed

MINUTE = 60
FEW = {"debugger": 3, "sweeper": 1, "large-runs": 2, "night-script": 1}


def simulate(
    scheduler: str = "easy",
    counts: dict[str, int] | None = None,
    *,
    hears: bool = True,
    seed: int = 0,
    days: int = 7,
    processors: int = 128,
) -> JobTable:
    """The jobs of a population after its days and the time to drain."""
    jobs = JobTable()
    model = Simulation(jobs, processors, scheduler, seed=seed)
    demo_population(model, FEW if counts is None else counts, horizon=days * DAY, hears=hears)
    model.run()
    return jobs


def alone(
    behaviour: Behaviour[GeneratedUser],
    *,
    processors: int = 128,
    days: int = 1,
    hears: bool = True,
) -> tuple[GeneratedUser, JobTable]:
    """One user on an empty machine, and its jobs."""
    jobs = JobTable()
    model = Simulation(jobs, processors, "fcfs", seed=0)
    user = GeneratedUser(model, 1, behaviour, horizon=days * DAY, hears=hears)
    behaviour.begin(user)
    model.run()
    return user, jobs


def choices(jobs: JobTable, users: Callable[[np.ndarray], np.ndarray] | None = None) -> list:
    """What users decide: user, submission, size, run time and request of each job."""
    which = np.ones(len(jobs), bool) if users is None else users(jobs.user)
    columns = (jobs.user, jobs.submit, jobs.processors, jobs.run_time, jobs.requested_time)
    return sorted(zip(*(column[which].tolist() for column in columns), strict=True))


def test_window_open_and_closed() -> None:
    """A window is open from its first second on, and closed from its last on."""
    window, clock = ActivityWindow(), Clock()
    assert 8 * HOUR == window.next_open(clock, 0)
    assert 8 * HOUR == window.next_open(clock, 8 * HOUR)
    assert 18 * HOUR - 1 == window.next_open(clock, 18 * HOUR - 1)
    assert DAY + 8 * HOUR == window.next_open(clock, 18 * HOUR)
    assert WEEK + 8 * HOUR == window.next_open(clock, 4 * DAY + 20 * HOUR)
    assert not window.is_open(clock, 5 * DAY + 12 * HOUR)


def test_window_keeps_local_time_over_the_change_of_clocks() -> None:
    """The office opens at 8 by the clock on the wall on the day after clocks were changed."""
    zone = ZoneInfo("Europe/Stockholm")
    clock = Clock(unix_start=953852400, zone=zone, known=True)  # Fri 24 March 2000, 00:00
    opening = ActivityWindow().next_open(clock, 20 * HOUR)
    local = clock.local(opening)
    assert ("Mon", 8, 0) == (f"{local:%a}", local.hour, local.minute)
    assert 3 * DAY + 7 * HOUR == opening  # an hour of that weekend is missing


@pytest.mark.parametrize(
    ("opens", "closes", "days"),
    [
        (9 * HOUR, 9 * HOUR, (0,)),
        (-1, HOUR, (0,)),
        (0, DAY + 1, (0,)),
        (0, DAY, ()),
        (0, DAY, (7,)),
    ],
)
def test_impossible_windows_are_refused(opens: int, closes: int, days: tuple[int, ...]) -> None:
    """A window lies on one day and on days of the week."""
    with pytest.raises(QuantityError, match=r"window|days"):
        ActivityWindow(opens, closes, days)


def test_a_shifted_window_stays_on_its_day() -> None:
    """A shift past midnight ends there; the window keeps its length."""
    window = ActivityWindow(22 * HOUR, 23 * HOUR, ALL_DAYS).shifted(3 * HOUR)
    assert (23 * HOUR, DAY) == (window.opens, window.closes)


@pytest.mark.parametrize(
    ("run_time", "factor", "expected"),
    [
        (1, 1.0, 5 * MINUTE),
        (5 * MINUTE, 1.0, 5 * MINUTE),
        (5 * MINUTE + 1, 1.0, 10 * MINUTE),
        (HOUR, 1.5, 2 * HOUR),
        (72 * HOUR, 1.0, 72 * HOUR),
        (72 * HOUR + 1, 1.0, 4 * DAY),
        (HOUR, 0.1, HOUR),
    ],
)
def test_requests_are_round_and_sufficient(run_time: int, factor: float, expected: int) -> None:
    """People ask for the next round time, never for less than the run time."""
    assert expected == round_request(run_time, factor)


def test_log_normal_keeps_its_bounds_and_median() -> None:
    """Half of the draws are above the median (5 standard errors), none outside the bounds."""
    time, stream = LogNormal(600, 1.0, 60, 3600), np.random.default_rng(1)
    drawn = np.array([time.draw(stream) for _ in range(10_000)])
    assert (60, 3600) == (drawn.min(), drawn.max())
    assert pytest.approx(0.5, abs=5 * 0.5 / 100) == float(np.mean(drawn > 600))


def test_debugger_continues_as_published() -> None:
    """The probability to continue is 0.8 at once, and 0.8 / (0.05 * 20 + 1) after 20 minutes."""
    habits = DebuggerHabits()
    assert 0.8 == habits.law.probability(0)
    assert pytest.approx(0.4) == habits.law.probability(20 * MINUTE)


def test_debugger_waits_for_each_result() -> None:
    """With certain patience, a job follows each result after the think time, until the evening."""
    habits = DebuggerHabits(
        office=PLAIN_OFFICE,
        run_time=fixed(HOUR),
        think=fixed(HOUR),
        pause=fixed(HOUR),
        law=ContinuationLaw(1.0, 0.0),
    )
    user, jobs = alone(Debugger(habits), days=2)
    first_day = [hour * HOUR for hour in (8, 10, 12, 14, 16)]
    assert first_day + [DAY + second for second in first_day] == jobs.submit.tolist()
    assert {unit: unit - 1 for unit in range(1, 10)} == user.after


def test_debugger_without_patience_pauses() -> None:
    """A user who never continues comes back after its pause."""
    habits = DebuggerHabits(
        office=PLAIN_OFFICE, run_time=fixed(HOUR), pause=fixed(3 * HOUR), law=ContinuationLaw(0.0)
    )
    _, jobs = alone(Debugger(habits))
    assert [8 * HOUR, 12 * HOUR, 16 * HOUR] == jobs.submit.tolist()


def test_slow_cluster_makes_debuggers_submit_less() -> None:
    """Who hears of results late submits less than who believes that they came at once."""
    counts = {"debugger": 4, "large-runs": 4}
    heard = simulate("fcfs", counts, days=28)
    believed = simulate("fcfs", counts, hears=False, days=28)
    assert np.count_nonzero(heard.group == 1) < np.count_nonzero(believed.group == 1)


def test_sweeper_waits_for_the_whole_bag() -> None:
    """The next bag comes a think time after the last job of the bag has ended, not before."""
    habits = SweeperHabits(
        office=PLAIN_OFFICE,
        jobs=(3, 3),
        processors=(1,),
        run_time=fixed(HOUR),
        unlike=0.0,
        think=fixed(HOUR),
    )
    _, jobs = alone(ParameterSweeper(habits), processors=1)
    assert [8 * HOUR] * 3 + [12 * HOUR] * 3 + [16 * HOUR] * 3 == jobs.submit.tolist()
    assert [0, 0, 0, 1, 1, 1, 2, 2, 2] == jobs.unit.tolist()


def test_oblivious_sweeper_does_not_wait() -> None:
    """Without hearing, the same user takes the bag to be over after its longest run time."""
    habits = SweeperHabits(
        office=PLAIN_OFFICE,
        jobs=(3, 3),
        processors=(1,),
        run_time=fixed(HOUR),
        unlike=0.0,
        think=fixed(HOUR),
    )
    user, jobs = alone(ParameterSweeper(habits), processors=1, hears=False)
    hours = [second // HOUR for second in jobs.submit[::3].tolist()]
    assert [8, 10, 12, 14, 16] == hours
    assert user.submitted == user.finished


def test_large_runs_take_half_the_machine() -> None:
    """One run at a time on half of the machine; the next one the day after it was looked at."""
    habits = LargeRunHabits(office=PLAIN_OFFICE, run_time=fixed(10 * HOUR), look=fixed(DAY))
    _, jobs = alone(LargeRuns(habits), days=7)
    assert {64} == set(jobs.processors.tolist())
    # 8 h, over at 18 h; a day later at 18 h the office is closed.
    assert [8 * HOUR, 2 * DAY + 8 * HOUR, 4 * DAY + 8 * HOUR] == jobs.submit.tolist()


def test_night_script_runs_its_chain_every_night() -> None:
    """Each stage begins when the one before is over, every night of the week, and no one thinks."""
    habits = NightScriptHabits(
        hour=22 * HOUR,
        shift=0,
        stages=(Stage(1, 1, fixed(HOUR), HOUR), Stage(2, 1, fixed(MINUTE), HOUR)),
    )
    _, jobs = alone(NightScript(habits), days=7)
    nights = [day * DAY + 22 * HOUR for day in range(7)]
    assert nights == jobs.submit[jobs.executable == 10].tolist()
    assert [n + HOUR for n in nights for _ in range(2)] == jobs.submit[
        jobs.executable == 11
    ].tolist()


@pytest.mark.parametrize("hears", [False, True])
def test_people_submit_in_their_hours(hears: bool) -> None:
    """Persons submit between 7 and 19 h (8 to 18 h and an hour of shift) on working days only."""
    jobs = simulate(hears=hears, days=14)
    people = jobs.group < 4
    second = jobs.submit[people] % WEEK
    assert second.max() < 5 * DAY
    assert 7 * HOUR <= (second % DAY).min()
    assert (second % DAY).max() < 19 * HOUR


def test_scripts_start_at_night() -> None:
    """The first stage of a night starts between 21 and 23 h, seven nights a week."""
    jobs = simulate(counts={"night-script": 3}, days=7)
    first = jobs.submit[jobs.executable % 10 == 0]
    assert 21 == len(first)
    assert 21 * HOUR <= (first % DAY).min()
    assert (first % DAY).max() <= 23 * HOUR


@pytest.mark.parametrize("hears", [False, True])
def test_jobs_in_jobs_out(hears: bool) -> None:
    """Every job that was submitted runs to its end, and no user waits for anything then."""
    jobs = JobTable()
    model = Simulation(jobs, 128, "easy", seed=3)
    users = demo_population(model, FEW, horizon=7 * DAY, hears=hears)
    model.run()
    assert len(jobs) == jobs.count(State.COMPLETED) > 0
    assert [(user.submitted, user.submitted) for user in users] == [
        (user.submitted, user.finished) for user in users
    ]
    assert jobs.submit.max() < 7 * DAY
    assert np.all(jobs.requested_time >= jobs.run_time)


def test_oblivious_users_do_the_same_under_every_scheduler() -> None:
    """Row for row: who does not hear submits the same jobs, whatever the scheduler does."""
    fcfs = simulate("fcfs", DEMO_USERS, hears=False)
    easy = simulate("easy", DEMO_USERS, hears=False)
    assert not np.array_equal(fcfs.start, easy.start)
    for name in ("user", "submit", "processors", "run_time", "requested_time", "executable"):
        assert getattr(fcfs, name).tolist() == getattr(easy, name).tolist(), name


def test_one_more_user_leaves_the_others_alone() -> None:
    """Another user does not change what oblivious users draw."""
    more = {**FEW, "debugger": 4, "sweeper": 2}
    before, after = simulate(hears=False), simulate(counts=more, hears=False)
    old = set(before.user.tolist())
    assert choices(before) == choices(after, lambda user: np.isin(user, list(old)))
    assert {104, 202} == set(after.user.tolist()) - old


def test_seeds_differ_and_repeat() -> None:
    """The same seed gives the same run; seed 0 is another one than seed 1."""
    assert np.array_equal(simulate(seed=0).matrix, simulate(seed=0).matrix)
    assert choices(simulate(seed=0)) != choices(simulate(seed=1))


def test_small_machines_get_smaller_jobs() -> None:
    """No user asks for more processors than there are."""
    jobs = simulate(processors=3)
    assert 3 == jobs.processors.max()
    assert 0 == jobs.count(State.REJECTED)


@pytest.mark.parametrize("counts", [{"gambler": 1}, {"debugger": 100}, {"debugger": -1}])
def test_impossible_populations_are_refused(counts: dict[str, int]) -> None:
    """Unknown archetypes and counts that clash with the numbering are reported by name."""
    with pytest.raises(QuantityError, match=next(iter(counts))):
        simulate(counts=counts)


def test_every_parameter_is_documented(root: Path) -> None:
    """Each archetype and each of its parameters is on the reference page."""
    text = (root / "docs" / "reference" / "archetypes.md").read_text()
    habits = (Office, DebuggerHabits, SweeperHabits, LargeRunHabits, NightScriptHabits)
    names = [field.name for kind in habits for field in dataclasses.fields(kind)]
    assert [] == [name for name in (*names, *ARCHETYPES) if f"`{name}`" not in text]
    counts = [f"| `{name}` | {group} | {DEMO_USERS[name]} |" for group, name in GROUP_NAMES.items()]
    assert [] == [row for row in counts if row not in text]


def test_round_times_rise() -> None:
    """Round times are in order, so that the first that suffices is the least."""
    assert sorted(set(ROUND_TIMES)) == list(ROUND_TIMES)
