"""The state machine of users who make up their work: exact stories, bounds, and poor records."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation, State, Work
from hpcrowd.agents.behaviours.activity import ALL_DAYS
from hpcrowd.agents.generative.shmueli import CALIBRATED, Doing
from hpcrowd.behaviours import ActivityWindow, ContinuationLaw, SameWindow
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import ShmueliFeitelson, SiteModel

Rows = list[tuple[int, ...]]

STAY, LEAVE = ContinuationLaw(limit=1.0, decline=0.0), ContinuationLaw(limit=0.0)
OFFICE = SameWindow(ActivityWindow(8 * HOUR, 18 * HOUR))
ALWAYS = SameWindow(ActivityWindow(0, DAY, ALL_DAYS))

#: Jobs of 100 s with a think time of 600 s and a break of 7200 s between them.
PLAIN: Rows = [(0, 100, 1), (700, 100, 1), (8000, 100, 1)]


@dataclass(frozen=True)
class Noting(ContinuationLaw):
    """A law that notes the response times it is asked for, s."""

    asked: list[float] = field(default_factory=list)

    def probability(self, response):
        """Note, and answer as always."""
        self.asked.append(response)
        return super().probability(response)


def one_user(record, law, window=ALWAYS, *, processors=1, **choices):
    """A user of a record, who has begun."""
    model = Simulation(JobTable(), processors, "fcfs", seed=1)
    behaviour = ShmueliFeitelson(
        Work.of(record), model=SiteModel(law=law, **choices), window=window
    )
    user = behaviour.join(model, 0)
    behaviour.begin(user)
    return model, user


OFFICE_DAY = list(range(8 * HOUR, 18 * HOUR, 700))


@pytest.mark.parametrize(
    ("rows", "law", "window", "choices", "expected"),
    [
        pytest.param(PLAIN, STAY, OFFICE, {"horizon": 2 * DAY},
                     OFFICE_DAY + [DAY + at for at in OFFICE_DAY], id="thinks until the evening"),
        pytest.param(PLAIN, LEAVE, OFFICE, {"horizon": DAY},
                     list(range(8 * HOUR, 18 * HOUR, 7300)), id="takes breaks"),
        pytest.param([(500 + at, *more) for at, *more in PLAIN], STAY, ALWAYS, {"horizon": 600},
                     [500], id="begins at its first submission"),
        pytest.param(PLAIN, STAY, ALWAYS, {}, list(range(0, 8001, 700)),
                     id="until the last recorded submission"),
        pytest.param([(0, 100, 1)], STAY, ALWAYS, {"horizon": DAY}, [0, 28_900, 57_800],
                     id="breaks without any on record last their longest"),
        pytest.param([(20 * HOUR, 100, 1)], LEAVE, OFFICE,
                     {"presence": "recorded", "horizon": WEEK},
                     [DAY + 8 * HOUR, DAY + 16 * HOUR + 100], id="comes on at least one day"),
    ],
)  # fmt: skip
def test_days_of_a_user(make_jobs, rows, law, window, choices, expected):
    """A batch follows each response after the think time or break, in the hours of the user."""
    model, _ = one_user(make_jobs(*rows), law, window, **choices)
    model.run()
    assert expected == model.jobs.submit.tolist()


@pytest.mark.parametrize(
    ("rows", "processors", "horizon", "submits", "units", "asked", "state"),
    [
        # On one processor the second job of a batch waits for the first: over after 200 s.
        pytest.param(
            [(0, 100, 1), (10, 100, 1), (710, 100, 1), (720, 100, 1)], 1, 2000,
            [0, 10, 800, 810, 1600, 1610], [0, 0, 1, 1, 2, 2], [190] * 3, State.COMPLETED,
            id="the whole batch is waited for",
        ),
        pytest.param([(10 * place, 500, 1) for place in range(5)], 5, 25, [0, 10, 20], [0] * 3,
                     [500], State.COMPLETED, id="a batch is cut at the horizon"),
        pytest.param([(0, 100, 8), (700, 100, 8)], 4, 1300, [0, 600, 1200], [0, 1, 2], [0] * 3,
                     State.REJECTED, id="larger jobs than the machine are answered at once"),
    ],
)  # fmt: skip
def test_responses_of_batches(make_jobs, rows, processors, horizon, submits, units, asked, state):
    """The response is that of the job that ended last; the think time begins at its end."""
    law = Noting(limit=1.0, decline=0.0)
    model, user = one_user(make_jobs(*rows), law, processors=processors, horizon=horizon)
    model.run()
    jobs = model.jobs
    assert (submits, units, asked) == (jobs.submit.tolist(), jobs.unit.tolist(), law.asked)
    assert {unit: unit - 1 for unit in range(1, len(asked))} == user.after
    assert len(jobs) == jobs.count(state)
    assert (len(asked), len(asked), Doing.ASLEEP) == (user.submitted, user.finished, user.state)


def test_probability_falls_with_the_response(make_jobs):
    """Users whose jobs take 19 min continue after 0.8 / (0.05 * 19 + 1) of them (5 std. errors)."""
    jobs = make_jobs(*PLAIN)
    jobs.run_time[:] = 19 * 60
    model, _ = one_user(jobs, ContinuationLaw(), horizon=20 * WEEK)
    model.run()
    pauses = model.jobs.submit[1:] - model.jobs.end[:-1]
    assert {600, 7200} == set(pauses.tolist())
    p = 0.8 / (0.05 * 19 + 1)
    assert pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / len(pauses))) == np.mean(pauses == 600)


def test_jobs_come_again_over_batches(make_jobs):
    """A drawn job is submitted as often in succession as drawn, also in the next batches."""
    record = make_jobs(*[(at * 200, 100, 1 + at // 4, 60 * (1 + at // 4)) for at in range(8)])
    model, _ = one_user(record, STAY, processors=2, horizon=DAY)
    model.run()
    sizes = model.jobs.processors[: len(model.jobs) // 4 * 4].reshape(-1, 4)
    assert np.all(sizes == sizes[:, :1])
    assert {1, 2} == set(sizes[:, 0].tolist())
    assert np.all(model.jobs.requested_time == 60 * model.jobs.processors)


def test_where_users_and_their_habits_come_from(make_jobs):
    """Users wake in the first week if told so; they may draw from another record than their own."""
    record = make_jobs((500, 100, 1), (1200, 100, 1))
    _, user = one_user(record, STAY, wakes="first-week", horizon=WEEK)
    assert 0 <= user.wakes < WEEK
    assert 500 != user.wakes
    users = make_jobs((0, 1, 1, 1, 5), (100, 1, 1, 1, 6))
    other = make_jobs((0, 77, 1, 1, 5), (300, 77, 1, 1, 9))
    model = Simulation(JobTable(), 4, "fcfs")
    behaviour = replace(CALIBRATED, horizon=WEEK)(Work.of(users), Work.of(other))
    for place in range(2):
        behaviour.begin(behaviour.join(model, place))
    model.run()
    assert [5, 6] == np.unique(model.jobs.user).tolist()
    assert [77] == np.unique(model.jobs.run_time).tolist()


def test_presence_as_recorded(make_jobs):
    """Users come on as many days as recorded, those who work over midnight on as many nights."""
    record = make_jobs(*[(day * DAY + 10 * HOUR, 100, 1) for day in range(0, 400, 4)])
    model, user = one_user(record, LEAVE, presence="recorded", horizon=500 * DAY)
    model.run()
    came = np.unique(model.jobs.submit // DAY)
    assert pytest.approx(100 / 397) == user.attendance
    assert pytest.approx(100, abs=5 * np.sqrt(397 * 0.25 * 0.75)) == len(came)
    assert 0 == came[0] < came[-1] <= 396
    nights = SameWindow(ActivityWindow(20 * HOUR, 4 * HOUR))
    record = make_jobs(*[(day * DAY + 20 * HOUR, 100, 1) for day in range(0, 400, 4)])
    model, user = one_user(record, LEAVE, nights, presence="recorded", horizon=400 * DAY)
    model.run()
    assert DAY // 2 == user.turn
    assert pytest.approx(100 / 397 * 7 / 6) == user.attendance
    nights = (model.jobs.submit - DAY // 2) // DAY
    assert {0, 1, 2, 3, 4, 6} == set((nights % 7).tolist())


@pytest.mark.parametrize(
    "choice",
    [{"presence": "never"}, {"wakes": "late"}, {"horizon": 0}, {"longest_break": 0},
     {"longest_gap": -1}, {"least": 0}],
)  # fmt: skip
def test_impossible_parameters_are_refused(choice):
    """A wrong parameter is named with its value and the rule."""
    (name,) = choice
    with pytest.raises(QuantityError, match=f"{name}.*(choose|at least|or more)"):
        SiteModel(**choice)
