"""The log of decisions of users who make up their work, and of populations that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from population_cases import small_log

from agents.decision_hooks import note_generating
from agents.decision_words import Decision, Decisions
from agents.decisions import DecisionLog, What, Why
from agents.generated import GeneratedUser
from agents.pool_users import BatchPool, PoolMember, add_pool_users
from agents.visits import Visits
from analysis.run import Run
from environment import JobTable, Simulation
from environment.trace import Trace
from scenarios.replay import replay
from scenarios.resample import resample

MADE_UP = ("shmueli-feitelson", "generative")


@pytest.fixture(scope="module")
def log(make_trace: Callable[..., Trace]) -> Trace:
    """Return a log of 12 users, half of them long-term."""
    return small_log(make_trace)


def bytes_of(run: Run) -> bytes:
    """All that became of the jobs."""
    return run.jobs.matrix[:, : len(run.jobs)].tobytes()


def submissions(found: Decisions | None) -> dict[int, Decision]:
    """The submission of each unit; there is one."""
    assert found is not None
    rows = [decision for decision in found if decision.what == What.SUBMITTED]
    assert len(rows) == len({one.unit for one in rows})
    return {one.unit: one for one in rows}


def check_true(run: Run) -> None:
    """Each batch has one submission, its pause after the end of what it waited for."""
    jobs, found = run.jobs, run.decisions
    assert found is not None
    assert run.after is not None
    rows = submissions(found)
    assert sorted(rows) == np.unique(jobs.batch).tolist()
    end: dict[int, int] = {}
    first: dict[int, int] = {}
    for unit, over, submit in zip(
        jobs.batch.tolist(), jobs.end.tolist(), jobs.submit.tolist(), strict=True
    ):
        end[unit] = max(over, end.get(unit, 0))
        first[unit] = min(submit, first.get(unit, submit))
    put_off: dict[int, int] = {}
    for one in found:
        if one.what == What.WAITS:
            put_off[one.unit] = put_off.get(one.unit, 0) + one.seconds
    for unit, one in rows.items():
        assert first[unit] == one.time
        if one.why in (Why.ENDED, Why.BREAK):
            assert first[unit] == end[one.cause] + one.seconds + put_off.get(unit, 0)
            assert one.seconds >= 0
            assert run.after[unit] == one.cause
        else:
            assert one.why in (Why.FIRST, Why.RECORDED)


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
    choices = {"doing": doing, "weeks": 6}
    run, silent = (resample(log, log=one, **choices) for one in (DecisionLog(), None))
    assert bytes_of(silent) == bytes_of(run)
    if doing == "rigid":
        assert {Why.RECORDED} == {one.why for one in submissions(run.decisions).values()}
    else:
        check_true(run)
    assert run.decisions is not None
    noted = [(d.time, d.user, d.what.name) for d in run.decisions if d.what >= What.THERE]
    told = [(v.at, v.user, v.what.name) for v in run.visits]
    assert sorted(told) == sorted(noted)


def test_satisfaction(log: Trace) -> None:
    """Who minds has its mood in the log, and away users have waits."""
    # On a machine of a third of the speed everybody is discontent.
    choices: dict[str, Any] = {
        "satisfaction": "habit", "speed": "0.3x", "weeks": 8,
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


def test_visits_without_a_log() -> None:
    """Visits are noted as before where nobody asks for decisions."""
    assert Visits().log is None
    assert GeneratedUser.unasked == Why.OWN
