"""Futures of a cluster: run times that are drawn, and what all futures have in common."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.curves import present_at
from hpcrowd.analysis.forecast.futures import (
    BEYOND,
    Asked,
    Outset,
    RunTimes,
    held_between,
)
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.state.state import ClusterState
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.forecasts.forecast_cases import (
    CLOCK,
    PROCESSORS,
    contents,
    scheduled,
    state_at,
)

NOW = 30 * DAY


def made(over, running=(), waiting=(), processors=1000):
    """Return a state at :data:`NOW` of jobs: user, processors, request, and run time or elapsed, s.

    Those that wait were submitted one second after each other.
    """
    jobs = JobTable()

    def add(user, wide, request, submit, **more):
        jobs.append(
            1, user=user, processors=wide, requested_time=request, recorded_submit=submit, **more
        )

    for end, (*job, run) in enumerate(over, NOW - len(over)):
        add(*job, end - run, recorded_start=end - run, recorded_end=end, run_time=run)
    for *job, elapsed in running:
        add(*job, NOW - elapsed, recorded_start=NOW - elapsed)
    for at, job in enumerate(waiting, NOW - len(waiting)):
        add(*job, at)
    jobs.group[:] = jobs.queue[:] = jobs.executable[:] = 1
    return ClusterState(jobs, NOW, CLOCK, processors)


def draws(state, times=200):
    """Return many draws of the run times of what runs and waits, shape (times, jobs)."""
    known = RunTimes.of(state, Outset(state, DAY).rows)
    return np.array([known.draw(np.random.default_rng(n)) for n in range(times)])


JOB = st.tuples(st.integers(1, 3), st.integers(1, 8), st.sampled_from([-1, 0, 600, 7200]))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(JOB, st.integers(0, 9000))),
    st.lists(st.tuples(JOB, st.integers(0, 9000)), max_size=6),
    st.lists(JOB, max_size=6),
)
def test_what_runs_runs_longer_than_it_has(over, running, waiting):
    """Whatever is known, a drawn run time exceeds what has passed, and is a second at least."""
    state = made([(*a, b) for a, b in over], [(*a, b) for a, b in running], waiting)
    found = draws(state, 5)
    elapsed = [passed for _, passed in running]
    assert (found[:, : len(running)] > elapsed).all()
    assert (found >= 1).all()


def test_draws_are_run_times_of_jobs_alike_or_scaled():
    """Of the same user and request; of what runs only those that ran longer."""
    times = [100, 200, 300, 400, 4000]
    state = made([(1, 4, 7200, run) for run in times], [(1, 4, 7200, 250)], [(1, 4, 7200)])
    found = draws(state)
    assert {300, 400, 4000} == set(found[:, 0].tolist())
    assert set(times) == set(found[:, 1].tolist())
    # A job that asks for twice the time runs for twice the time, if nothing else is known.
    state = made([(1, 4, 3600, 900)] * 5, waiting=[(1, 4, 7200), (2, 4, 7200), (1, 4, -1)])
    found = draws(state, 50)
    assert {1800} == set(found[:, :2].ravel().tolist())
    assert {900} == set(found[:, 2].tolist())


@pytest.mark.parametrize(("over", "user", "run", "low", "high"), [
    ([(1, 4, 3600, 100)] * 20 + [(2, 4, 3600, 3000)] * 20, 1, 100, 0.9, 1),
    ([(1, 4, 3600, 100)] * 20 + [(2, 4, 3600, 3000)] * 20, 3, 100, 0.4, 0.6),
    ([(1, 4, 3600, 100)] * 150 + [(1, 4, 3600, 3000)] * 150, 1, 3000, 0.75, 1),
], ids=["own jobs", "without a past", "recent jobs"])  # fmt: skip
def test_whose_jobs_count_more(over, user, run, low, high):
    """Most draws are from the user's own recent jobs; somebody without a past does as all."""
    found = draws(made(over, waiting=[(user, 4, 3600)]), 300)
    assert low < (found == run).mean() <= high


def test_what_nobody_has_seen():
    """Longer than all before: up to the request, and beyond it for a share of what has passed."""
    over = [(1, 1, 3600, 60)] * 9
    found = draws(made(over, [(1, 1, 3600, 600), (1, 1, 3600, 5000), (9, 1, -1, 5000)]))
    assert 601 <= found[:, 0].min() < 1000
    assert 3300 < found[:, 0].max() <= 3600
    for column in (1, 2):
        assert 5001 <= found[:, column].min() < 6000
        assert 9000 < found[:, column].max() <= 5000 * (1 + BEYOND) + 60
    assert (draws(made([], [(1, 1, -1, 50)], [(1, 1, 100)]), 50) > [50, 0]).all()


def test_distributions_are_calibrated():
    """Of jobs with independent times the place of each in its distribution is uniform."""
    rng, places = np.random.default_rng(5), []
    for _ in range(150):
        past = [(1, 4, 10 * HOUR, int(run)) for run in rng.lognormal(7, 1, 120)]
        elapsed = np.append(rng.integers(0, 3000, 4), [0] * 4)
        true = rng.lognormal(7, 1, 8)
        while (short := true <= elapsed).any():
            true[short] = rng.lognormal(7, 1, short.sum())
        running = [(1, 4, 10 * HOUR, int(passed)) for passed in elapsed[:4]]
        state = made(past, running, [(1, 4, 10 * HOUR)] * 4)
        known = RunTimes.of(state, Outset(state, DAY).rows)
        for job, (values, sums) in enumerate(zip(known.values, known.weights, strict=True)):
            below = np.searchsorted(values, true[job])
            places.append(float(sums[below - 1]) if below else 0.0)
    tenths = np.arange(0.1, 1, 0.1)
    for found in np.array(places).reshape(150, 2, 4).swapaxes(0, 1):
        shares = (found.ravel()[:, None] <= tenths).mean(axis=0)
        assert shares == pytest.approx(tenths, abs=4 * np.sqrt(0.25 / found.size))


def test_draws_follow_the_weights_and_jobs_alike_go_together():
    """Each job alone has its distribution; two alike are equal more often than by chance."""
    over = [(1, 4, 3600, 100 * (1 + place % 10)) for place in range(100)]
    state = made(over, waiting=[(1, 4, 3600), (1, 4, 3600), (1, 2, 3600)])
    found, known = draws(state, 2000), RunTimes.of(state, Outset(state, DAY).rows)
    for job in range(3):
        shares = [(found[:, job] <= run).mean() for run in (300, 700)]
        places = np.searchsorted(known.values[job], [300, 700], side="right") - 1
        assert known.weights[job][places] == pytest.approx(shares, abs=0.05)
    alike, other = ((found[:, 0] == found[:, job]).mean() for job in (1, 2))
    assert alike > 0.28
    assert other < 0.15


def test_more_jobs_change_no_other_draw():
    """A job that one would submit is drawn after all others."""
    first = Outset(state_at(), DAY)
    more = replace(first, asked=[Asked(2, HOUR, user=1, count=2), Asked(1, 60)])
    one, two = (each.run_times.draw(np.random.default_rng(1)) for each in (first, more))
    assert len(one) + 3 == len(two)
    assert one.tolist() == two[: len(one)].tolist()


RECORD = st.tuples(
    st.integers(0, 500), st.integers(1, 900), st.integers(1, PROCESSORS), st.integers(0, 600)
)


@settings(max_examples=40)
@given(st.lists(RECORD, min_size=1, max_size=25), st.integers(500, 1500))
def test_a_future_with_known_run_times_is_the_run(rows, now):
    """Cut from a run of EASY after the last submission, it goes on as that run."""
    log = scheduled([(at, run, wide, run + more, 1) for at, run, wide, more in sorted(rows)])
    outset = Outset(state_at(now, log), 10 * DAY, users="none")
    mine, start, end = outset.rows, log.recorded_start[outset.rows], log.recorded_end[outset.rows]
    known, ones = log.run_time[mine][:, None].astype(float), np.ones((len(mine), 1))
    outset.__dict__["run_times"] = RunTimes(mine, [*known], [*ones], np.arange(len(mine)))
    future = outset.simulate(0)
    assert start.tolist() == future.start.tolist()
    assert end.tolist() == future.end.tolist()
    work = ((end - np.maximum(now, start)) * log.processors[mine]).sum()
    assert work == pytest.approx(future.busy.sum() * outset.horizon / len(future.busy))


def test_a_pair_is_equal_without_a_difference():
    """The same outset again, and one with processors that nobody needs, are the same futures."""
    for some in ({"users": "think-time"}, {"users": "rigid", "estimates": "last-two"}):
        outset = Outset(state_at(), 2 * DAY, **some)
        both = ([one.simulate(n) for n in (0, 4)] for one in (outset, replace(outset)))
        assert contents(next(both)) == contents(next(both))
    assert len(outset.remembered)
    rigid = Outset(state_at(), 2 * DAY, users="rigid", processors=500)
    wide = replace(rigid, processors=1000)
    assert contents([rigid.simulate(2)]) == contents([wide.simulate(2)])


FULL = [(1, 4, 2 * HOUR, HOUR)]


def test_held_jobs_and_processors_that_are_down():
    """Nor does anything wait behind them; they have no start in any future."""
    state = made([(1, 4, 2 * HOUR, 5400)] * 5, FULL, [(1, 4, HOUR), (2, 4, HOUR)], processors=4)
    held = replace(state, held={int(state.waiting[0]): "JobHeldUser"})
    for number in range(3):
        runs, first, second = Outset(held, DAY, users="none").simulate(number).start.tolist()
        assert (NOW - HOUR, UNKNOWN) == (runs, first)
        assert NOW + 1800 == second
    # Unless the size for the futures says otherwise.
    state = replace(made([(1, 4, 600, 500)] * 5, waiting=[(1, 4, 600)] * 2, processors=8), down=4)
    outset = Outset(state, DAY, users="none")
    assert [NOW, NOW + 500] == outset.simulate(0).start.tolist()
    assert [NOW, NOW] == replace(outset, processors=8).simulate(0).start.tolist()


def test_asked_jobs_are_in_the_queue():
    """Behind those that wait; as many as asked for, at the end of the rows."""
    state = made([(1, 4, 2 * HOUR, 5400)] * 5, FULL, [(1, 4, 2 * HOUR)], processors=4)
    asked = [Asked(4, 2 * HOUR, user=1, count=2), Asked(4, 600, user=1)]
    start = Outset(state, 3 * DAY, users="none", asked=asked).simulate(0).start
    assert start.tolist()[:4] == [NOW - HOUR, NOW + 1800, NOW + 1800 + 5400, NOW + 1800 + 10800]
    assert state.jobs is not Outset(state, DAY, asked=asked).with_asked.jobs
    assert 7 == len(state.jobs)


@pytest.mark.parametrize("closed", [(HOUR, 9 * HOUR), (-HOUR, 9 * HOUR)])
def test_nothing_starts_in_closed_times(closed):
    """A job that would not be over by then starts after them, a short one before; then as ever."""
    state = made([(1, 4, 7200, 7000)] * 5, waiting=[(1, 4, 7200), (2, 1, 600)], processors=4)
    window = NOW + closed[0], NOW + closed[1]
    free = Outset(state, DAY, users="none").simulate(0).start
    assert NOW == free[0]
    start = Outset(replace(state, closed=(window,)), DAY, users="none").simulate(0).start.tolist()
    assert window[1] == start[0]
    assert (NOW if closed[0] > 0 else window[1]) <= start[1]
    assert not window[0] <= start[1] < window[1]
    over = replace(state, closed=((NOW - DAY, NOW - 1),))
    assert free.tolist() == Outset(over, DAY, users="none").simulate(0).start.tolist()


def test_a_policy_with_a_memory_knows_the_past():
    """Fair-share lets the one go first who has used less; EASY the one who came first."""
    state = made([(1, 4, 2 * HOUR, 5400)] * 30 + [(2, 4, 2 * HOUR, 5400)], FULL,
                 [(1, 4, 2 * HOUR), (2, 4, 2 * HOUR)], processors=4)  # fmt: skip
    starts = {}
    for name in ("easy", "fair-share", "multifactor"):
        outset = Outset(state, DAY, users="none", scheduler=name)
        assert (len(outset.remembered) > 0) == (name != "easy")
        starts[name] = outset.simulate(0).start.tolist()[1:]
    first, second = NOW + 1800, NOW + 1800 + 5400
    assert [first, second] == starts["easy"]
    assert [second, first] == starts["fair-share"] == starts["multifactor"]


@pytest.mark.parametrize(("settings", "message"), [
    ({"horizon": 0}, "horizon 0 s: must be more than 0"),
    ({"users": "nobody"}, "users 'nobody': cannot go on from a state; choose"),
    ({"users": "learned"}, "users 'learned': cannot go on"),
])  # fmt: skip
def test_what_cannot_be(settings, message):
    """One line says it."""
    with pytest.raises(QuantityError, match=message):
        Outset(state_at(), **({"horizon": DAY} | settings)).simulate(0)


SPAN = st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 9))


@settings(max_examples=60)
@given(st.lists(SPAN, max_size=12), st.integers(1, 7), st.integers(0, 30))
def test_series_are_those_of_a_plain_count(spans, step, first):
    """Processors held in each step, and what is present at seconds, counted second by second."""
    edges = first + np.arange(0, 8 * step, step)
    start, last, wide = np.array(spans, np.int64).reshape(-1, 3).T
    end = start + last
    seconds = np.arange(edges[0], edges[-1])
    each = [int(wide[(start <= at) & (end > at)].sum()) for at in seconds]
    expected = np.reshape(each, (len(edges) - 1, step)).mean(axis=1)
    assert expected == pytest.approx(held_between(start, end, wide, edges))
    there = [int(wide[(start <= at) & (end > at)].sum()) for at in edges]
    assert there == present_at(start, end, edges, wide).tolist()
