"""Users who make up their work: exact stories, bounds, poor records; runs, traces, mixtures."""

from dataclasses import dataclass, field, replace

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd import JobTable, Recipe, Simulation, State, Work, add_users, read_swf, replay
from hpcrowd.agents.behaviours.activity import ALL_DAYS
from hpcrowd.agents.generative.shmueli import CALIBRATED, PUBLISHED, Doing
from hpcrowd.behaviours import PRESETS, ActivityWindow, ContinuationLaw, SameWindow
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.errors import QuantityError
from hpcrowd.populations import ShmueliFeitelson, SiteModel
from hpcrowd.scenarios.kinds.population_files import PopulationConfig, UsersConfig

from tests.support.behaviours import EXTREMES
from tests.support.populations import small_log

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


#: Presets that make up their work; the contract of recipes is in tests/agents/behaviours.
GENERATIVE = [name for name, preset in PRESETS.items() if not isinstance(preset, Recipe)]


@pytest.fixture(scope="module")
def trace(make_trace):
    """Twelve users of three groups over eight weeks."""
    return small_log(make_trace)


def columns(jobs, *names):
    """What users decide, and when, job by job."""
    names = names or ("user", "submit", "processors", "run_time", "requested_time", "executable")
    return sorted(zip(*(getattr(jobs, name).tolist() for name in names), strict=True))


@pytest.mark.parametrize("users", GENERATIVE)
@pytest.mark.parametrize("case", EXTREMES)
def test_generative_contract(make_trace, users, case):
    """Same seed, same bytes; all end, and are copies of recorded jobs of their users."""
    rows, processors = EXTREMES[case]
    trace = make_trace(
        *(
            {"submit": submit, "wait": 0, "run": run, "requested_time": run,
             "allocated_processors": width, "requested_processors": width,
             "user": more[0] if more else 1, "status": 1}
            for submit, run, width, *more in rows
        ),
        header=f"; MaxProcs: {processors}",
    )  # fmt: skip
    first, again, other = (replay(trace, users=users, seed=seed).jobs for seed in (0, 0, 1))
    made = "user", "run_time", "processors", "requested_time"
    one, two = (jobs.matrix[:, : len(jobs)].tobytes() for jobs in (first, again))
    assert one == two
    recorded = {(more[0] if more else 1, run, width, run) for _, run, width, *more in rows}
    for jobs in (first, other):
        ran = jobs.state == State.COMPLETED
        assert np.all(ran | (jobs.state == State.REJECTED))
        assert set(columns(jobs, *made)) <= recorded
        assert np.all(jobs.start[ran] >= jobs.submit[ran])
        assert np.all(jobs.recorded_submit == -1)
        assert list(range(1, len(jobs) + 1)) == jobs.number.tolist()


def test_run_leaves_a_trace_to_replay(trace, tmp_path):
    """Think times are in fields 17 and 18, and the trace can be written, read and replayed."""
    run = replay(trace, users="generative")
    assert columns(run.jobs) != columns(replay(trace, users="generative", seed=6).jobs)
    left = run.to_trace()
    waited = left["preceding"] > 0
    assert np.count_nonzero(run.precedence.after >= 0) == np.count_nonzero(waited) > 0
    end = dict(zip(left["number"], left["submit"] + left["wait"] + left["run"], strict=True))
    ends = [end[number] for number in left["preceding"][waited]]
    assert (left["submit"][waited] - ends).tolist() == left["think_time"][waited].tolist()
    assert np.all(left["think_time"][waited] >= 0)
    sizes = left["requested_processors"][np.argsort(left["number"])]
    assert run.jobs.processors.tolist() == sizes.tolist()
    hc.write_results(run, tmp_path / "out", plots=False)
    again = replay(read_swf(tmp_path / "out" / "trace.swf.gz"), users="rigid")
    assert columns(run.jobs) == columns(again.jobs)
    assert run.jobs.start.tolist() == again.jobs.start[np.argsort(again.jobs.number)].tolist()


def population(**others):
    """Group 2 generates, the rest as ``others`` say."""
    generating = UsersConfig(behaviour="generative", groups=(2,))
    return PopulationConfig(users=(generating, UsersConfig(share=1.0, **others)))


@pytest.mark.parametrize("behaviour", ["rigid", "think-time", "fluid"])
def test_mixture_of_replay_and_generation(trace, behaviour):
    """Who replays keeps its jobs and numbers; the others add theirs after them."""
    run = replay(trace, users=population(behaviour=behaviour))
    jobs = run.jobs
    recorded = jobs.recorded_submit >= 0
    assert {2} == set(jobs.group[~recorded].tolist())
    assert {0, 1} == set(jobs.group[recorded].tolist())
    assert trace["number"][trace["group"] != 2].tolist() == jobs.number[recorded].tolist()
    assert len(jobs) == jobs.count(State.COMPLETED)
    assert np.all(np.diff(jobs.number) > 0)
    left = run.to_trace()
    kept = left["group"] != 2
    assert np.count_nonzero(recorded) == np.count_nonzero(kept)
    assert np.any(left["preceding"][~kept] > 0)
    assert (behaviour != "rigid") == bool(np.any(left["preceding"][kept] > 0))
    assert (behaviour == "rigid") == (run.metrics["lateness_mean_s"] == 0)


def test_what_can_be_changed(trace):
    """Law, shifts, horizon and class, but no part that such users do not have."""
    entry = UsersConfig(behaviour="generative", law={"limit": 0.5}, shifts={"day_share": 1.0})
    assert (0.5, 1.0) == (entry.recipe().law.limit, entry.recipe().shifts.day_share)
    with pytest.raises(QuantityError, match=r"think: generative users .* leave it out"):
        UsersConfig(behaviour="generative", think="own").recipe()
    work = Work.of(replay(trace, users="rigid").jobs)
    with pytest.raises(QuantityError, match=r"ShmueliFeitelson: they generate their work.*Casting"):
        add_users(Simulation(work.jobs, 8), work, "generative")
    by_class = replay(trace, users=ShmueliFeitelson).jobs
    assert columns(replay(trace, users="shmueli-feitelson").jobs) == columns(by_class)
    short = replay(trace, users=replace(PUBLISHED, horizon=3 * DAY)).jobs
    assert short.submit.max() < 3 * DAY
