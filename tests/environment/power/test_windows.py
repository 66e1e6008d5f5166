"""Jobs wait for a window of clean or cheap energy before they join the queue."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import State
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.cluster import ClusterSpec
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.holds.held import Holds, hold
from hpcrowd.environment.holds.rules import Condition, Parent, Rules
from hpcrowd.environment.power.windows import StartWindow, best_start, forecast
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.streams import Streams
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.simulations import Owner, both, simulation_of

#: g/kWh: dirty for two hours, clean for one, dirty again.
NOON = Steps(np.array([0, 2, 3, 24]) * HOUR, np.array([400.0, 100.0, 300.0]))


def waiting(jobs, policy, steps=NOON, rules=None, *, submit=True, **options):
    """A machine of four processors whose jobs wait for a window, all of them one unit."""
    model, owner = simulation_of(jobs, 4, **options), Owner()
    rules = Rules.none(len(jobs)) if rules is None else rules
    hold(model, replace(rules, window=policy.rule(steps, model.streams, model.clock)))
    if submit:
        model.submit(owner, np.arange(len(jobs)), jobs.recorded_submit.copy())
    return model, owner, model.parts.of(Holds)


def steps_of(edges, values):
    """A signal."""
    return Steps(np.array(edges), np.array(values))


FALLING = Steps(np.arange(200) * 900, -np.arange(199.0))
INDIA = {"clock": Clock(zone=ZoneInfo("Asia/Kolkata"))}  # 5:30 ahead
CHEAPER = steps_of([0, 3600, 7200], [100.0, 90.0])
BELOW = steps_of([0, 3600, 7200], [-100.0, -110.0])


@pytest.mark.parametrize(
    ("steps", "now", "slack", "how", "start"),
    [
        # Starts are now, and the multiples of the step on the clock on the wall.
        (FALLING, 60, 3 * HOUR, {"length": HOUR, "step": HOUR}, 3 * HOUR),
        (FALLING, 60, 3 * HOUR, {"length": HOUR, "step": HOUR} | INDIA, 2 * HOUR + 1800),
        # A gain must be worth it; negative prices count by their size.
        *((steps, 0, 3600, {"length": 1800, "min_gain": gain}, start)
          for steps in (CHEAPER, BELOW) for gain, start in ((0.1, 3600), (0.11, 0))),
    ],
)  # fmt: skip
def test_best_of_all_starts(steps, now, slack, how, start):
    """The start with the smallest mean over the length; of equals the earliest."""
    assert start == best_start(steps, now, slack, **how)


signals = st.builds(
    lambda lengths, values: steps_of(
        [0, *np.cumsum(lengths[: len(values)]).tolist()], values[: len(lengths)]
    ),
    st.lists(st.integers(1, 7000), min_size=1, max_size=30),
    st.lists(st.floats(-500, 900).map(lambda one: round(one, 1)), min_size=1, max_size=30),
)


@settings(max_examples=60)
@given(
    signals, st.integers(0, 90_000), st.integers(0, 60_000), st.integers(0, 40_000),
    st.sampled_from([300, 900, 1800, 7200]), st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_no_start_is_better(steps, now, slack, length, step, gain):
    """No other start within the slack has a smaller mean, and both ways to search it agree."""
    found = best_start(steps, now, slack, length, step, min_gain=gain)
    assert now <= found <= now + slack
    assert found == now or found % step == 0
    other = range(now + -now % step, now + slack + 1, step)
    length = max(length, 1)
    # Beyond its end a signal goes on with its last value.
    longer = Steps(np.append(steps.edges, 10**6), np.append(steps.values, steps.values[-1]))
    best = min(float(longer.mean(one, one + length)) for one in [now, *other])
    if not gain:
        assert float(longer.mean(found, found + length)) == pytest.approx(best, abs=1e-6)
    policy = StartWindow(slack=slack, step=step, min_gain=gain)
    rule = policy.rule(steps, Streams(0))
    assert [found] == rule.starts([1], [length], [now])


@settings(max_examples=40)
@given(signals, st.integers(0, 90_000), st.integers(0, 60_000), st.floats(-500, 900))
@example(steps_of([0, 10, 20], [5.0, 3.0]), 0, 5, 4.0)  # low only after its slack
def test_first_second_below_a_threshold(steps, now, slack, threshold):
    """A job starts in the first second within its slack that is not above it, else at once."""
    rule = StartWindow(slack=slack, threshold=threshold).rule(steps, Streams(0))
    seconds = np.arange(now, now + slack + 1)
    low = seconds[steps.at(seconds) <= threshold]
    assert [int(low[0]) if len(low) and slack else now] == rule.starts([1], [100], [now])


PRICE = Steps(np.array([0, 1, 2, 5, 6]) * HOUR, np.array([50.0, -10.0, 80.0, 20.0]))


@both
@pytest.mark.parametrize(
    ("policy", "steps", "run", "delay", "parents", "start", "causes"),
    [
        # The third could start at 2:10, in the same clean hour.
        (StartWindow(slack=2 * HOUR), NOON, [600] * 3, 1800, {2: 1},
         [2 * HOUR, 2 * HOUR, 2 * HOUR + 600], {"window of clean energy": 2, "dependency": 1}),
        (StartWindow("price", slack=4 * HOUR), PRICE, [HOUR] * 2, 0, {1: 0},
         [HOUR, 5 * HOUR], {"window of cheap energy": 2}),
        (StartWindow(shortest=600), NOON, [600, 599], 0, {},
         [2 * HOUR, 0], {"window of clean energy": 1}),
    ],
    ids=["other reasons first", "a window of its own", "not the short ones"],
)  # fmt: skip
def test_who_waits_how_long(make_jobs, policy, steps, run, delay, parents, start, causes, plain):
    """The window is chosen when all else lets a job go, and its slack counts from then."""
    jobs = make_jobs(*((0, length, 1) for length in run))
    after = {row: (Parent(one, Condition.OK),) for row, one in parents.items()}
    rules = replace(Rules.none(len(jobs)), parents=after)
    rules.delay[0] = delay
    model, _, holds = waiting(jobs, policy, steps, rules, plain=plain)
    model.run()
    assert start == jobs.start.tolist()
    assert causes == holds.account()["causes"]


@both
def test_taken_back_and_put_off(make_jobs, plain):
    """Users take back what waits for its window; what they put off gets another window."""
    jobs = make_jobs((0, 600, 1), (0, 600, 1), (500, 600, 1), (0, 600, 1))
    model, owner, _ = waiting(jobs, StartWindow(), plain=plain)
    model.run(until=400)
    model.cancel([0, 2])
    model.put_off(np.array([1]), 3 * HOUR)
    model.run()
    assert [State.CANCELLED, State.COMPLETED, State.RENOUNCED, State.COMPLETED] == [
        State(one) for one in jobs.state.tolist()
    ]
    assert [400, -1] == jobs.end[[0, 2]].tolist()
    assert [3 * HOUR, 2 * HOUR] == jobs.start[[1, 3]].tolist()
    assert [3 * HOUR + 600] == owner.heard


@both
def test_jobs_that_are_added_later(make_jobs, plain):
    """Jobs that users make up wait as well; the first window of withdrawn ones lets none in."""
    jobs = make_jobs((0, 600, 1), (1000, 600, 1), (1000, 600, 1))
    model, owner, _ = waiting(jobs, StartWindow(slack=3 * HOUR), plain=plain)
    model.run(until=300)
    model.withdraw(np.array([1, 2]))
    model.cluster.submit([1], 4 * HOUR)
    rows = jobs.append(2, user=7, processors=1, run_time=600, requested_time=600)
    model.submit(owner, rows, [HOUR, 5 * HOUR])
    model.run()
    assert [2 * HOUR, 4 * HOUR, -1, 2 * HOUR, 5 * HOUR] == jobs.start.tolist()


@both
def test_speed_of_another_cluster(make_jobs, plain):
    """The length is the requested time at the cluster that a job is submitted to."""
    steps = Steps(np.array([0, 2, 3, 24]) * HOUR, np.array([200.0, 100.0, 500.0]))
    jobs = make_jobs((0, 8 * HOUR, 1), (0, 8 * HOUR, 1))
    others = {"fast": ClusterSpec(4, speed=8.0)}
    model, owner, _ = waiting(jobs, StartWindow(), steps, submit=False, plain=plain, others=others)
    model.submit(owner, np.array([0]), 0)
    model.submit(owner, np.array([1]), 0, "fast")
    model.run()
    assert [0, 2 * HOUR] == jobs.start.tolist()


def test_only_some():
    """A share of the users takes part; shares are nested."""
    few, many = (StartWindow(share=one).rule(NOON, Streams(3)) for one in (0.3, 0.6))
    users = range(500)
    assert all(many.moves(user) for user in users if few.moves(user))
    assert 0.3 == pytest.approx(np.mean([few.moves(user) for user in users]), abs=0.08)
    assert not StartWindow(share=0.0).rule(NOON, Streams(3)).moves(1)


def test_slack_by_requested_time():
    """Up to the largest one."""
    policy = StartWindow(slack_factor=1.5, most_slack=4 * HOUR)
    assert [1500, 4 * HOUR, 0] == [policy.slack_of(one) for one in (1000, 4 * HOUR, -1)]
    rule = policy.rule(NOON, Streams(0))
    assert [5400, 2 * HOUR] == rule.starts([1, 1], [HOUR, 2 * HOUR], [0, 0])


def test_wrong_forecasts():
    """Noise is relative to the mean; there is none for no error."""
    long = Steps(np.arange(5001), np.full(5000, 200.0))
    assert long is forecast(long, 0.0, Streams(0))
    assert 20 == pytest.approx(forecast(long, 0.1, Streams(1)).values.std(), rel=0.05)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"follow": "wind"}, "start window, follow 'wind': not known; choose carbon, price"),
        ({"slack": -1}, "start window: slack -1: must be 0 or more"),
        ({"step": 0}, "start window: step 0 s: must be 1 s or more"),
        ({"share": 1.5}, "start window: share 1.5: from 0 to 1"),
        ({"forecast_error": float("nan")}, "start window: forecast_error nan: must be 0 or more"),
    ],
)
def test_mistakes(wrong, message):
    """Are refused in one line."""
    with pytest.raises(QuantityError, match=message):
        StartWindow(**wrong)


@both
def test_units_of_users(make_jobs, plain):
    """Units wait as their jobs do, spaced as recorded; those whose windows are open do not."""
    jobs = make_jobs((0, 600, 1), (1800, 600, 1), (0, 600, 1))
    model, owner, holds = waiting(jobs, StartWindow(), submit=False, plain=plain)
    model.own_units(np.array([0, 2, 3]), np.arange(3), [owner, owner])
    model.cluster.submit_unit(0, HOUR)
    model.cluster.submit_unit(1, 5 * HOUR)
    model.run()
    assert [HOUR, HOUR + 1800, 5 * HOUR] == jobs.submit.tolist()
    assert [2 * HOUR, 2 * HOUR, 5 * HOUR] == jobs.start.tolist()
    assert [2 * HOUR + 600, 5 * HOUR + 600] == owner.heard
    assert 2 == holds.account()["jobs_held"]
