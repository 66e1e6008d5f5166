"""The state machine of users who make up their work: exact stories, bounds, and poor records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hpcrowd.agents import ActivityWindow, SameWindow, ShmueliFeitelson, SiteModel, Work
from hpcrowd.agents.behaviours.activity import ALL_DAYS
from hpcrowd.agents.behaviours.think import ContinuationLaw
from hpcrowd.agents.generative.shmueli import CALIBRATED, Doing, SiteUser
from hpcrowd.environment import JobTable, QuantityError, Simulation, State
from hpcrowd.environment.clock import DAY, HOUR, WEEK

MakeJobs = Callable[..., JobTable]

STAY, LEAVE = ContinuationLaw(limit=1.0, decline=0.0), ContinuationLaw(limit=0.0)
OFFICE = SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))
ALWAYS = SameWindow(ActivityWindow(0, DAY, ALL_DAYS))


@dataclass(frozen=True)
class Noting(ContinuationLaw):
    """A law that notes the response times it is asked for, s."""

    asked: list[float] = field(default_factory=list)

    def probability(self, response: float) -> float:
        """Note, and answer as always."""
        self.asked.append(response)
        return super().probability(response)


def one_user(
    record: JobTable,
    law: ContinuationLaw,
    window: SameWindow = ALWAYS,
    *,
    processors: int = 1,
    **choices: int | str,
) -> tuple[Simulation, SiteUser]:
    """A user of a record, who has begun."""
    model = Simulation(JobTable(), processors, "fcfs", seed=1)
    chosen = SiteModel(law=law, **choices)  # type: ignore[arg-type]
    behaviour = ShmueliFeitelson(Work.of(record), model=chosen, window=window)
    user = behaviour.join(model, 0)
    behaviour.begin(user)
    return model, user


@pytest.fixture
def record(make_jobs: MakeJobs) -> JobTable:
    """One job of 100 s after another: a think time of 600 s and a break of 7200 s."""
    return make_jobs((0, 100, 1), (700, 100, 1), (8000, 100, 1))


def test_who_stays_thinks_until_the_evening(record: JobTable) -> None:
    """A batch follows each response after the think time; after hours, the next morning."""
    model, _ = one_user(record, STAY, OFFICE, horizon=2 * DAY)
    model.run()
    day = list(range(8 * HOUR, 18 * HOUR, 700))
    assert day + [DAY + second for second in day] == model.jobs.submit.tolist()


def test_who_leaves_takes_breaks(record: JobTable) -> None:
    """A batch follows each response after the break."""
    model, _ = one_user(record, LEAVE, OFFICE, horizon=DAY)
    model.run()
    assert list(range(8 * HOUR, 18 * HOUR, 7300)) == model.jobs.submit.tolist()


def test_nobody_comes_at_the_weekend(record: JobTable) -> None:
    """From Friday evening the user sleeps until Monday."""
    model, _ = one_user(record, LEAVE, OFFICE, horizon=WEEK + 9 * HOUR)
    model.run()
    days = sorted(set((model.jobs.submit // DAY).tolist()))
    assert [0, 1, 2, 3, 4, 7] == days


def test_states_follow_each_other(record: JobTable) -> None:
    """Asleep in the night, waiting for the job, thinking after it; ``until`` says how long."""
    model, user = one_user(record, STAY, OFFICE, horizon=DAY)
    seen = [(user.state, user.until)]
    for second in (8 * HOUR, 8 * HOUR + 100, 8 * HOUR + 700):
        model.run(until=second - 1)
        seen.append((user.state, user.until))
        model.run(until=second + 1)
        seen.append((user.state, user.until))
    model.run()
    seen.append((user.state, user.until))
    assert [
        (Doing.ASLEEP, 8 * HOUR),
        (Doing.ASLEEP, 8 * HOUR),
        (Doing.WAITING, -1),
        (Doing.WAITING, -1),
        (Doing.THINKING, 8 * HOUR + 700),
        (Doing.THINKING, 8 * HOUR + 700),
        (Doing.WAITING, -1),
        (Doing.ASLEEP, -1),
    ] == seen


def test_user_waits_for_the_whole_batch(make_jobs: MakeJobs) -> None:
    """The response is that of the job that ended last; the think time begins at its end."""
    record = make_jobs((0, 100, 1), (10, 100, 1), (710, 100, 1), (720, 100, 1))
    law = Noting(limit=1.0, decline=0.0)
    model, user = one_user(record, law, horizon=2000)
    model.run()
    # On one processor the second job waits for the first: over after 200 s, and 600 s of thought.
    assert [0, 10, 800, 810, 1600, 1610] == model.jobs.submit.tolist()
    assert [190, 190, 190] == law.asked
    assert [0, 0, 1, 1, 2, 2] == model.jobs.unit.tolist()
    assert {1: 0, 2: 1} == user.after


def test_probability_falls_with_the_response(record: JobTable) -> None:
    """Users whose jobs take 19 min continue after 0.8 / (0.05 * 19 + 1) of them (5 std. errors)."""
    jobs = record.copy()
    jobs.run_time[:] = 19 * 60
    model, _ = one_user(jobs, ContinuationLaw(), horizon=20 * WEEK)
    model.run()
    pauses = model.jobs.submit[1:] - model.jobs.end[:-1]
    assert {600, 7200} == set(pauses.tolist())
    p = 0.8 / (0.05 * 19 + 1)
    assert pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / len(pauses))) == np.mean(pauses == 600)


def test_jobs_come_again_over_batches(make_jobs: MakeJobs) -> None:
    """A drawn job is submitted as often in succession as drawn, also in the next batches."""
    record = make_jobs(
        *[(place * 200, 100, 1 + place // 4, 60 * (1 + place // 4)) for place in range(8)]
    )
    model, _ = one_user(record, STAY, processors=2, horizon=DAY)
    model.run()
    sizes = model.jobs.processors.reshape(-1)[: len(model.jobs) // 4 * 4].reshape(-1, 4)
    assert np.all(sizes == sizes[:, :1])
    assert {1, 2} == set(sizes[:, 0].tolist())
    assert np.all(model.jobs.requested_time == 60 * model.jobs.processors)


def test_nothing_comes_from_the_horizon_on(make_jobs: MakeJobs) -> None:
    """A batch is cut where the horizon is, and no other follows."""
    record = make_jobs(*[(10 * place, 500, 1) for place in range(5)])
    model, user = one_user(record, STAY, processors=5, horizon=25)
    model.run()
    assert [0, 10, 20] == model.jobs.submit.tolist()
    assert 3 == model.jobs.count(State.COMPLETED)
    assert (1, 1, Doing.ASLEEP) == (user.submitted, user.finished, user.state)


def test_horizon_is_the_span_of_the_record(record: JobTable) -> None:
    """Unless another is given, users submit until the second of the last recorded submission."""
    model, user = one_user(record, STAY)
    model.run()
    assert 8001 == user.horizon
    assert 7700 == model.jobs.submit.max()


def test_first_wake_is_the_first_submission(record: JobTable) -> None:
    """A user begins at its first recorded second, or somewhere in the first week."""
    jobs = record.copy()
    jobs.recorded_submit[:] += 500
    model, _ = one_user(jobs, STAY)
    model.run()
    assert 500 == model.jobs.submit.min()
    _, user = one_user(jobs, STAY, wakes="first-week", horizon=WEEK)
    assert 0 <= user.wakes < WEEK
    assert 500 != user.wakes


def test_larger_jobs_than_the_machine_are_answered_at_once(make_jobs: MakeJobs) -> None:
    """A rejected job is over when it arrives, with a response time of 0, and the user goes on."""
    record = make_jobs((0, 100, 8), (700, 100, 8))
    law = Noting(limit=1.0, decline=0.0)
    model, _ = one_user(record, law, processors=4, horizon=1300)
    model.run()
    assert [0, 600, 1200] == model.jobs.submit.tolist()
    assert 3 == model.jobs.count(State.REJECTED)
    assert [0, 0, 0] == law.asked


def test_a_single_job_makes_a_user(make_jobs: MakeJobs) -> None:
    """Without any recorded pause a session is one batch, and breaks last their longest."""
    model, _ = one_user(make_jobs((0, 100, 1)), STAY, horizon=DAY)
    model.run()
    assert [0, 28_900, 57_800] == model.jobs.submit.tolist()


def test_presence_as_recorded(make_jobs: MakeJobs) -> None:
    """A user comes on as many days as recorded, from its first to its last (5 std. errors)."""
    days = [day for day in range(400) if day % 4 == 0]
    record = make_jobs(*[(day * DAY + 10 * HOUR, 100, 1) for day in days])
    model, user = one_user(record, LEAVE, presence="recorded", horizon=500 * DAY)
    model.run()
    came = np.unique(model.jobs.submit // DAY)
    assert pytest.approx(100 / 397) == user.attendance
    assert pytest.approx(100, abs=5 * np.sqrt(397 * 0.25 * 0.75)) == len(came)
    assert 0 == came[0]
    assert came[-1] <= 396


def test_nights_are_days_from_noon_to_noon(make_jobs: MakeJobs) -> None:
    """Who works over midnight comes for whole nights, Sunday's from Monday 0:00 on."""
    nights = SameWindow(ActivityWindow(20 * HOUR, 4 * HOUR))
    record = make_jobs(*[(day * DAY + 20 * HOUR, 100, 1) for day in range(0, 400, 4)])
    model, user = one_user(record, LEAVE, nights, presence="recorded", horizon=400 * DAY)
    model.run()
    assert DAY // 2 == user.turn
    assert pytest.approx(100 / 397 * 7 / 6) == user.attendance
    seconds = model.jobs.submit - DAY // 2
    hours = {
        night: set((seconds[seconds // DAY == night] % DAY // HOUR).tolist())
        for night in np.unique(seconds // DAY).tolist()
    }
    assert all(8 in begun for night, begun in hours.items() if night % 7 in range(4))
    assert all(12 in begun for night, begun in hours.items() if night % 7 == 6)
    assert all(night % 7 != 5 for night in hours)


def test_presence_reaches_at_least_one_opening(make_jobs: MakeJobs) -> None:
    """Who submitted once, after hours, comes on the next of its days."""
    record = make_jobs((20 * HOUR, 100, 1))
    model, _ = one_user(record, LEAVE, OFFICE, presence="recorded", horizon=WEEK)
    model.run()
    assert DAY + 8 * HOUR == model.jobs.submit[0]
    assert model.jobs.submit.max() < 2 * DAY


@pytest.mark.parametrize(
    "choice",
    [
        {"presence": "never"},
        {"wakes": "late"},
        {"horizon": 0},
        {"longest_break": 0},
        {"longest_gap": -1},
        {"least": 0},
    ],
)
def test_impossible_parameters_are_refused(choice: dict[str, int | str]) -> None:
    """A wrong parameter is named with its value and the rule."""
    (name,) = choice
    with pytest.raises(QuantityError, match=f"{name}.*(choose|at least|or more)"):
        SiteModel(**choice)  # type: ignore[arg-type]


def test_another_record_to_draw_from(make_jobs: MakeJobs) -> None:
    """With ``fit``, users come from one record and what they draw from another."""
    users = make_jobs((0, 1, 1, 1, 5), (100, 1, 1, 1, 6))
    other = make_jobs((0, 77, 1, 1, 5), (300, 77, 1, 1, 9))
    model = Simulation(JobTable(), 4, "fcfs")
    behaviour = replace(CALIBRATED, horizon=WEEK)(Work.of(users), Work.of(other))
    joined = [behaviour.join(model, place) for place in range(2)]
    for user in joined:
        behaviour.begin(user)
    model.run()
    assert [5, 6] == sorted(set(model.jobs.user.tolist()))
    assert {77} == set(model.jobs.run_time.tolist())
