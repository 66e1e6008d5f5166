"""The log of decisions is true, complete, and changes nothing, whatever the behaviour."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hpcrowd.agents import Composed, Delay, During, Renounce, SessionDefinition, Work, add_users
from hpcrowd.agents.behaviours.decisions import Decision, DecisionLog, Decisions, What, Why
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.environment import JobTable, Simulation, State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.behaviours.test_contract import workloads
from tests.support.behaviours import RECIPES, SPRING, Rows, factory, outcome, table


def run(
    rows: Rows, make: Any, *, logged: bool = True, **options: Any
) -> tuple[JobTable, Work, list[Any], Decisions]:
    """The jobs after a run, the work, the users, and what they noted."""
    jobs = table(rows)
    work = Work.of(jobs, SessionDefinition.parse("arrival:60m"))
    model = Simulation(jobs, 8, clock=SPRING)
    log = DecisionLog()
    users = add_users(model, work, make, log=log if logged else None, **options)
    model.run()
    return jobs, work, users, Decisions.of(log)


def over(jobs: JobTable, rows: Any) -> int:
    """When the last of some jobs ended; who was rejected ended at once."""
    return max(int(jobs.end[row]) if jobs.end[row] >= 0 else int(jobs.submit[row]) for row in rows)


def check_true(jobs: JobTable, work: Work, users: list[Any], found: Decisions) -> None:
    """Each unit has one submission, at the second of its first job, for a reason that held."""
    submitted: dict[int, list[Decision]] = defaultdict(list)
    waits: dict[int, int] = defaultdict(int)
    latest: dict[int, int] = defaultdict(int)
    for decision in found:
        if decision.what == What.SUBMITTED:
            submitted[decision.unit].append(decision)
        elif decision.what == What.WAITS:
            waits[decision.unit] += decision.seconds
            latest[decision.unit] = max(decision.time, latest[decision.unit])
    for user in users:
        for unit in user.units:
            (one,) = submitted.pop(unit)
            assert user.number == one.user
            assert latest[unit] <= one.time
            rows = user.jobs_of(unit)
            first = int(jobs.submit[rows].min())
            assert first == one.time
            if one.why == Why.RECORDED:
                assert int(jobs.recorded_submit[rows].min()) == first
            elif one.why in (Why.ENDED, Why.BREAK):
                ended = over(jobs, user.jobs_of(one.cause))
                assert first == ended + one.seconds + waits[unit]
            else:
                assert Why.FOLLOWS == one.why
                assert unit - 1 == one.cause
                last = int(jobs.submit[user.jobs_of(unit - 1)].max())
                assert first == last + one.seconds + waits[unit]
    assert {} == submitted


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=8)
@given(rows=workloads())
def test_reasons_are_true(name: str, rows: Rows) -> None:
    """What the log says of each submission holds in the schedule that came out."""
    check_true(*run(rows, factory(RECIPES[name])))


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=8)
@given(rows=workloads())
def test_logging_changes_nothing(name: str, rows: Rows) -> None:
    """The schedule with a log is the schedule without."""
    with_log, without = (run(rows, factory(RECIPES[name]), logged=on)[0] for on in (True, False))
    assert outcome(without) == outcome(with_log)


@settings(max_examples=20)
@given(rows=workloads(), seconds=st.integers(1, 5000))
def test_reactions_are_noted_once(rows: Rows, seconds: int) -> None:
    """Each note of a reaction is a row, and units are submitted once or renounced as a whole.

    Jobs come as much later as their delays say.
    """

    def make(work: Work) -> Composed:
        when = During([(0, 3000), (20_000, 60_000)])
        reactions = [Delay(when, by=seconds, probability=0.5), Renounce(when, probability=0.3)]
        return Composed(BatchOrder(work), reactions=reactions)

    jobs, _, users, found = run(rows, make)
    assert outcome(run(rows, make, logged=False)[0]) == outcome(jobs)
    noted = [decision for decision in found if decision.why == Why.REACTION]
    assert sum(len(user.notes) for user in users) == len(noted)
    units = [decision.unit for decision in found if decision.what == What.SUBMITTED]
    assert len(units) == len(set(units))
    gone = {decision.unit for decision in noted if decision.what == What.RENOUNCED}
    everything = {unit for user in users for unit in user.units}
    assert everything - gone <= set(units) <= everything
    delays: dict[int, int] = defaultdict(int)
    for decision in noted:
        if decision.what == What.DELAYED:
            delays[decision.cause] += decision.seconds
    for decision in found:
        if decision.what != What.SUBMITTED or decision.why != Why.ENDED:
            continue
        if decision.cause in gone:
            continue  # the table does not hold the end of a renounced job
        mine = users[0].jobs_of(decision.unit)
        before = jobs.recorded_submit[mine[0]]
        due = over(jobs, users[0].jobs_of(decision.cause)) + decision.seconds
        for row in mine[jobs.state[mine] != State.RENOUNCED]:
            later = jobs.recorded_submit[row] - before + delays[int(jobs.number[row])]
            assert due + later == jobs.submit[row]
