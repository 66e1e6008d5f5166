"""The log of decisions of users who make up their work, and of populations that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents.behaviours.decisions import Decision, DecisionLog, Decisions, What, Why
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.behaviours.think import ContinuationLaw
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.archetypes import (
    Debugger,
    DebuggerHabits,
    NightScript,
    NightScriptHabits,
    ParameterSweeper,
    Stage,
    SweeperHabits,
)
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.agents.generative.pool_users import (
    BatchPool,
    DrawFromPool,
    PoolMember,
    add_pool_users,
)
from hpcrowd.agents.populations.openness import Visits
from hpcrowd.analysis.run import Run
from hpcrowd.environment import JobTable, Simulation
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.replay import replay
from hpcrowd.scenarios.kinds.resample import resample

from tests.agents.behaviours.decision_cases import check_gone, check_sums
from tests.agents.generative.archetype_cases import PLAIN_OFFICE, fixed
from tests.support.populations import small_log

MADE_UP = ("shmueli-feitelson", "generative")


@pytest.fixture(scope="module")
def log(make_trace: Callable[..., Trace]) -> Trace:
    """Return a log of 12 users, half of them long-term."""
    return small_log(make_trace)


def bytes_of(run: Run) -> bytes:
    """The outcome of all jobs."""
    return run.jobs.matrix[:, : len(run.jobs)].tobytes()


def submissions(found: Decisions | None) -> dict[int, Decision]:
    """The submission of each unit; there is one."""
    assert found is not None
    rows = [decision for decision in found if decision.what == What.SUBMITTED]
    assert len(rows) == len({one.unit for one in rows})
    return {one.unit: one for one in rows}


def check_true(run: Run) -> None:
    """Each batch has one submission, at the sum of its parts, and follows what the run says."""
    assert run.decisions is not None
    assert run.after is not None
    check_sums(run.jobs, run.decisions)
    check_gone(run.decisions)
    for unit, one in submissions(run.decisions).items():
        assert run.after[unit] == one.cause


@pytest.mark.parametrize("users", MADE_UP)
def test_site_users(log: Trace, users: str) -> None:
    """Users of a site say what they waited for, whether they rested, and when they slept."""
    run, silent = (replay(log, users=users, log=one) for one in (DecisionLog(), None))
    assert bytes_of(silent) == bytes_of(run)
    assert silent.decisions is None
    check_true(run)
    assert run.decisions is not None
    assert {Why.FIRST, Why.BREAK, Why.WINDOW} <= {one.why for one in run.decisions}


@pytest.mark.parametrize("doing", ["rigid", "think-time", "think-time-windows", "generative"])
def test_populations(log: Trace, doing: str) -> None:
    """Members of a population say why they submit; who comes and goes is there as well."""
    choices = {"users": doing, "days": 42}
    run, silent = (resample(log, log=one, **choices) for one in (DecisionLog(), None))
    assert bytes_of(silent) == bytes_of(run)
    if doing == "rigid":
        assert {Why.RECORDED} == {one.why for one in submissions(run.decisions).values()}
    else:
        check_true(run)
    assert run.decisions is not None
    paces = [one for one in run.decisions if one.why == Why.PACE]
    assert (doing == "think-time-windows") == bool(paces)
    noted = [(d.time, d.user, d.what.name) for d in run.decisions if d.what >= What.THERE]
    told = [(v.at, v.user, v.what.name) for v in run.visits]
    assert sorted(told) == sorted(noted)


def test_satisfaction(log: Trace) -> None:
    """Who minds has its mood in the log, and away users have waits."""
    # On a machine of a third of the speed everybody is discontent.
    choices: dict[str, Any] = {
        "satisfaction": "habit", "speed": "0.3x", "days": 56,
        "consequences": {"leave": 1.0, "tolerance": 0.1, "returns": 1.0, "away": 1.0},
    }  # fmt: skip
    run, silent = (resample(log, log=one, **choices) for one in (DecisionLog(), None))
    assert bytes_of(silent) == bytes_of(run)
    check_true(run)
    assert run.decisions is not None
    away = [one for one in run.decisions if one.what == What.WENT_AWAY]
    assert away
    assert all(one.mood > 0.1 and one.why == Why.MOOD for one in away)
    assert any(one.why == Why.AWAY for one in run.decisions)


@pytest.mark.parametrize("hears", [True, False])
def test_pool_users(hears: bool) -> None:
    """A batch from a pool follows the end of the one before, or what an oblivious user takes."""
    model = Simulation(JobTable(), 1)
    pool = BatchPool(*(np.array(values) for values in ([0, 1], [60], [60], [1])))
    members = [PoolMember(number, 1, wakes=5, pauses=np.array([10])) for number in (1, 2)]
    users = add_pool_users(model, members, {1: pool}, horizon=100, hears=hears)
    book = DecisionLog()
    note_generating(book, users)
    model.run()
    found = [(d.time, d.user, d.why, d.unit, d.cause, d.seconds) for d in Decisions.of(book)]
    # The second user waits for the machine: it hears of its end at 125, after its horizon.
    expected = [
        (5, 1, Why.FIRST, 0, -1, -1),
        (5, 2, Why.FIRST, 1, -1, -1),
        (75, 1, Why.ENDED, 2, 0, 10),
        (75, 2, Why.ENDED, 3, 1, 10),
    ]
    assert expected[: 3 if hears else 4] == found


def told(behaviour: Behaviour[GeneratedUser], *, days: int, hears: bool = True) -> list[Any]:
    """Rows of one user on an empty machine: time, what, why, unit, cause, seconds."""
    model = Simulation(JobTable(), 128, "fcfs", seed=0)
    user = GeneratedUser(model, 1, behaviour, horizon=days * DAY, hears=hears)
    book = DecisionLog()
    behaviour.begin(user)
    note_generating(book, [user])
    model.run()
    return [(d.time, d.what, d.why, d.unit, d.cause, d.seconds) for d in Decisions.of(book)]


#: Tests of 60 s, each an hour after the end of the one before.
STEADY = {"office": PLAIN_OFFICE, "processors": (1,), "run_time": fixed(60), "think": fixed(HOUR)}


@pytest.mark.parametrize("hears", [True, False])
def test_office_worker_thinks_into_the_evening(hears: bool) -> None:
    """Who thinks for long after the office has closed waits for it, which is no think time."""
    habits = SweeperHabits(
        PLAIN_OFFICE, jobs=(2, 2), run_time=fixed(60), unlike=0.0, think=fixed(7 * HOUR)
    )
    evening = 8 * HOUR + 60 + 7 * HOUR
    assert [
        (0, What.WAITS, Why.WINDOW, 0, -1, 8 * HOUR),
        (8 * HOUR, What.SUBMITTED, Why.FIRST, 0, -1, -1),
        (evening, What.SUBMITTED, Why.ENDED, 1, 0, 7 * HOUR),
        (evening + 60 + 7 * HOUR, What.WAITS, Why.WINDOW, 2, 1, DAY - 2 * (7 * HOUR + 60)),
        (DAY + 8 * HOUR, What.SUBMITTED, Why.ENDED, 2, 1, 7 * HOUR),
    ] == told(ParameterSweeper(habits), days=2, hears=hears)[:5]


def test_session_of_a_debugger() -> None:
    """Inside a session a debugger thinks, and nothing is left of the wait before it."""
    habits = DebuggerHabits(**STEADY, law=ContinuationLaw(1.0, 0.0))
    at = [8 * HOUR + each * (HOUR + 60) for each in range(10)]
    rows = told(Debugger(habits), days=1)
    assert [(0, What.WAITS, Why.WINDOW, 0, -1, 8 * HOUR)] == rows[:1]
    assert [(at[0], What.SUBMITTED, Why.FIRST, 0, -1, -1)] == rows[1:2]
    assert [
        (at[unit], What.SUBMITTED, Why.ENDED, unit, unit - 1, HOUR) for unit in range(1, 10)
    ] == rows[2:11]


def test_break_of_a_debugger() -> None:
    """Who does not continue takes a break, and comes back in its hours."""
    habits = DebuggerHabits(**STEADY, pause=fixed(6 * HOUR), law=ContinuationLaw(0.0))
    second = 14 * HOUR + 60
    assert [
        (second, What.SUBMITTED, Why.BREAK, 1, 0, 6 * HOUR),
        (second + 60 + 6 * HOUR, What.WAITS, Why.WINDOW, 2, 1, 12 * HOUR - 120),
        (DAY + 8 * HOUR, What.SUBMITTED, Why.BREAK, 2, 1, 6 * HOUR),
    ] == told(Debugger(habits), days=2)[2:5]


def test_night_script() -> None:
    """A script comes at its hour, and continues as soon as a stage has ended."""
    stages = (Stage(1, 1, fixed(60), 60), Stage(1, 1, fixed(90), 90))
    habits = NightScriptHabits(hour=21 * HOUR, shift=0, stages=stages)
    assert [
        (21 * HOUR, What.SUBMITTED, Why.HOUR, 0, -1, -1),
        (21 * HOUR + 60, What.SUBMITTED, Why.ENDED, 1, 0, 0),
        (DAY + 21 * HOUR, What.SUBMITTED, Why.HOUR, 2, -1, -1),
        (DAY + 21 * HOUR + 60, What.SUBMITTED, Why.ENDED, 3, 2, 0),
    ] == told(NightScript(habits), days=2)


class Hasty(DrawFromPool):
    """Submits the next batch as soon as one has ended, without an alarm."""

    def finished(self, user: Any, unit: int, now: int) -> None:
        """Go on at once."""
        if now < 4 * WEEK:
            self.wake(user, unit)


def test_what_made_an_alarm_late_is_forgotten() -> None:
    """Only what an alarm submits was late with it: what follows without one is not."""
    model = Simulation(JobTable(), 1)
    pool = BatchPool(*(np.array(values) for values in ([0, 1], [WEEK], [WEEK], [1])))
    hasty = Hasty([PoolMember(1, 1, 5, np.array([10]))], {1: pool})
    user = GeneratedUser(model, 1, hasty, group=1, horizon=5 * WEEK)
    user.absent_until = 10
    book = DecisionLog()
    note_generating(book, [user])
    user.behaviour.begin(user)
    model.run()
    assert [
        (5, What.WAITS, Why.AWAY, WEEK),
        (WEEK + 5, What.SUBMITTED, Why.FIRST, -1),
        (2 * WEEK + 5, What.SUBMITTED, Why.ENDED, 0),
        (3 * WEEK + 5, What.SUBMITTED, Why.ENDED, 0),
    ] == [(d.time, d.what, d.why, d.seconds) for d in Decisions.of(book)]


def test_visits_without_a_log() -> None:
    """Visits are noted as before where nobody asks for decisions."""
    assert Visits().log is None
    assert GeneratedUser.unasked == Why.OWN
