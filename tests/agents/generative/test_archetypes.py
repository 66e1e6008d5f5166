"""Archetypes of generative users: exact days of each, and what holds for whole populations."""

import dataclasses

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, State
from hpcrowd.agents.generative import archetypes
from hpcrowd.agents.generative.generated import ROUND_TIMES, GeneratedUser, LogNormal, round_request
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import LargeRuns, Office, ParameterSweeper, demo_population


def fixed(seconds):
    """Return a time without chance."""
    return LogNormal(max(seconds, 1), 0.0, seconds, seconds)


#: An office that opens at 8 for everybody, where work begins at once and requests are exact.
PLAIN_OFFICE = Office(shift=0, settle=fixed(0), factor=(1.0, 1.0))

FEW = {"debugger": 3, "sweeper": 1, "large-runs": 2, "night-script": 1}


def simulate(scheduler="easy", counts=None, *, days=7, processors=128, seed=0, hears=True):
    """The jobs of a population after its days and the time to drain, and its users."""
    model = Simulation(JobTable(), processors, scheduler, seed=seed)
    users = demo_population(model, counts or FEW, horizon=days * DAY, hears=hears)
    model.run()
    return model.jobs, users


def choices(jobs):
    """What users decide: user, submission, size, run time and request of each job."""
    columns = (jobs.user, jobs.submit, jobs.processors, jobs.run_time, jobs.requested_time)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


BAGS = archetypes.SweeperHabits(
    PLAIN_OFFICE, (3, 3), (1,), run_time=fixed(HOUR), unlike=0.0, think=fixed(HOUR)
)
RUNS = archetypes.LargeRunHabits(office=PLAIN_OFFICE, run_time=fixed(10 * HOUR), look=fixed(DAY))


@pytest.mark.parametrize(
    ("behaviour", "processors", "days", "hears", "hours"),
    [
        # The whole bag is waited for; who does not hear does not wait.
        (ParameterSweeper(BAGS), 1, 1, True, [8] * 3 + [12] * 3 + [16] * 3),
        (ParameterSweeper(BAGS), 1, 1, False, sorted([8, 10, 12, 14, 16] * 3)),
        # Over at 18 h; a day later at 18 h the office is closed.
        (LargeRuns(RUNS), 128, 7, True, [8, 48 + 8, 96 + 8]),
    ],
)
def test_days_of_a_user(behaviour, processors, days, hears, hours):
    """One user submits at the hours that its habits give; the log of decisions has more stories."""
    model = Simulation(JobTable(), processors, "fcfs", seed=0)
    user = GeneratedUser(model, 1, behaviour, horizon=days * DAY, hears=hears)
    behaviour.begin(user)
    model.run()
    assert [hour * HOUR for hour in hours] == model.jobs.submit.tolist()
    assert user.submitted == user.finished == 1 + model.jobs.unit.max()
    assert {unit: unit - 1 for unit in range(1, user.submitted)} == user.after
    if isinstance(behaviour, LargeRuns):
        assert {64} == set(model.jobs.processors.tolist())


@pytest.mark.parametrize(
    ("run_time", "factor", "expected"),
    [(1, 1.0, 300), (300, 1.0, 300), (301, 1.0, 600), (HOUR, 1.5, 2 * HOUR), (HOUR, 0.1, HOUR),
     (72 * HOUR, 1.0, 72 * HOUR), (72 * HOUR + 1, 1.0, 4 * DAY)],
)  # fmt: skip
def test_requests_are_round_and_sufficient(run_time, factor, expected):
    """People ask for the next round time, never for less than the run time."""
    assert expected == round_request(run_time, factor)
    assert sorted(set(ROUND_TIMES)) == list(ROUND_TIMES)


def test_log_normal_keeps_its_bounds_and_median():
    """Half of the draws are above the median (5 standard errors), none outside the bounds."""
    time, stream = LogNormal(600, 1.0, 60, 3600), np.random.default_rng(1)
    drawn = np.array([time.draw(stream) for _ in range(10_000)])
    assert (60, 3600) == (drawn.min(), drawn.max())
    assert pytest.approx(0.5, abs=5 * 0.5 / 100) == float(np.mean(drawn > 600))


@pytest.mark.parametrize("hears", [False, True])
def test_populations_keep_their_hours_and_finish(hears):
    """Persons submit on working days from 7 to 19 h, scripts from 21 to 23 h; all jobs end."""
    jobs, users = simulate(hears=hears, days=14, seed=3)
    assert len(jobs) == jobs.count(State.COMPLETED) > 0
    assert all(user.submitted == user.finished > 0 for user in users)
    assert jobs.submit.max() < 14 * DAY
    assert np.all(jobs.requested_time >= jobs.run_time)
    second = jobs.submit[jobs.group < 4] % WEEK
    assert second.max() < 5 * DAY
    assert 7 * HOUR <= (second % DAY).min() < (second % DAY).max() < 19 * HOUR
    first = jobs.submit[(jobs.group == 4) & (jobs.executable % 10 == 0)]
    assert list(range(14)) == (first // DAY).tolist()
    assert 21 * HOUR <= (first % DAY).min() <= (first % DAY).max() <= 23 * HOUR


def test_users_mind_the_machine_and_no_others():
    """No user asks for more processors than there are; another one changes nobody else."""
    jobs, _ = simulate(processors=3)
    assert (3, 0) == (jobs.processors.max(), jobs.count(State.REJECTED))
    before, _ = simulate(hears=False)
    after, _ = simulate(counts={**FEW, "debugger": 4, "sweeper": 2}, hears=False)
    new = np.isin(after.user, [104, 202])
    assert {104, 202} == set(after.user[new].tolist())
    assert choices(before) == choices(after.take(np.flatnonzero(~new)))


@pytest.mark.parametrize("counts", [{"gambler": 1}, {"debugger": 100}, {"debugger": -1}])
def test_impossible_populations_are_refused(counts):
    """Unknown archetypes and counts that clash with the numbering are reported by name."""
    with pytest.raises(QuantityError, match=next(iter(counts))):
        simulate(counts=counts)


def test_every_parameter_is_documented(root):
    """Each archetype and each of its parameters is on the reference page."""
    text = (root / "docs" / "reference" / "archetypes.md").read_text()
    kinds = "Office", "DebuggerHabits", "SweeperHabits", "LargeRunHabits", "NightScriptHabits"
    habits = [getattr(archetypes, kind) for kind in kinds]
    names = [field.name for kind in habits for field in dataclasses.fields(kind)]
    assert [] == [name for name in (*names, *archetypes.ARCHETYPES) if f"`{name}`" not in text]
    for group, name in archetypes.GROUP_NAMES.items():
        assert f"| `{name}` | {group} | {archetypes.DEMO_USERS[name]} |" in text
