"""Lublin's arrivals and the weekly cycle: warped time, published parameters, fits."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models.arrivals.lublin import BUCKET_S, PUBLISHED, Lublin, _mean_gap
from hpcrowd.analysis.models.parts.cycle import Cycle, clock_times, operational_times
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import ModelFitError, QuantityError
from scipy.stats import gamma

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

WEEKLY = Cycle(rates=tuple((np.random.default_rng(5).random(168) + 0.1).tolist()))


def test_weights_are_the_programs() -> None:
    """Half hour (i - 1) mod 48 has the gamma's share between i - 0.5 and i + 0.5, i in 11..58."""
    for kind, (_, _, anum, bnum, _) in PUBLISHED.items():
        i = np.arange(11, 59)
        shares = np.zeros(48)
        shares[(i - 1) % 48] = np.diff(gamma.cdf([i - 0.5, i + 0.5], anum, scale=bnum), axis=0)[0]
        found = Lublin.published(kind).day_weights
        assert (shares / shares.mean()).tolist() == pytest.approx(found.tolist())
    used, fresh = Lublin.published("batch"), Lublin.published("batch")
    before = used.times(2000, np.random.default_rng(6))
    assert (used, hash(used)) == (fresh, hash(fresh))
    assert used != WEEKLY
    lower = used.model_copy(update={"cap_log_s": 5.0})
    after = lower.times(2000, np.random.default_rng(6))
    assert after[-1] < 2000 * np.exp(5) < before[-1]


def walk(gaps: list[float], weights: list[float]) -> list[float]:
    """Return arrival times as the paper tells it: pay bucket by bucket, the rest is a part."""
    times, now, points, bucket, past = [], 0.0, 0.0, 0, 0.0
    for gap in gaps:
        points += gap / BUCKET_S
        while points > weights[bucket]:
            points -= weights[bucket]
            bucket = (bucket + 1) % len(weights)
            now += BUCKET_S
        part = points / weights[bucket]
        now += BUCKET_S * (part - past)
        past = part
        times.append(now)
    return times


def test_time_goes_by_at_the_pace_of_the_weights() -> None:
    """The inverse of the integral gives what paying bucket by bucket gives, over many days."""
    weights = Lublin.published("typeless").day_weights
    gaps = np.random.default_rng(1).exponential(2500, 2000)
    found = clock_times(np.cumsum(gaps), weights, BUCKET_S)
    assert walk(gaps.tolist(), weights.tolist()) == pytest.approx(found.tolist())


@pytest.mark.parametrize("kind", PUBLISHED)
def test_published_gaps(kind: str) -> None:
    """In the time of the day's pace the logs of gaps are gamma of aarr x arar, below the cap."""
    model = Lublin.published(kind)
    count = 40_000
    times = model.times(count, np.random.default_rng(2))
    logs = np.log(np.diff(operational_times(times, model.day_weights, BUCKET_S)))
    shape, scale = model.aarr * model.arar, model.barr
    assert logs.max() < 13
    # The cap takes next to nothing from the typeless kind; the others are compared below it.
    grid = np.linspace(1, 12.5, 24)
    expected = gamma.cdf(grid, shape, scale=scale) / gamma.cdf(13, shape, scale=scale)
    found = np.searchsorted(np.sort(logs), grid) / len(logs)
    assert np.abs(expected - found).max() < 1.63 / np.sqrt(count)
    error = np.exp(logs).std() / np.sqrt(count)
    assert np.exp(logs).mean() == pytest.approx(model.mean_gap_s, abs=4 * error)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_mean_of_a_capped_gap(scale: float) -> None:
    """Known means: exponential logs below a cap, for scales below, at and above 1."""
    x = np.linspace(0, 6.0, 400_001)
    density = gamma.pdf(x, 3.0, scale=scale)
    expected = np.trapezoid(np.exp(x) * density, x) / np.trapezoid(density, x)
    assert expected == pytest.approx(_mean_gap(3.0, scale, 6.0), rel=1e-5)


def test_a_fit_finds_what_it_was_drawn_from() -> None:
    """Weights in local time, mean and spread of logs of gaps, and the rate come back."""
    model = Lublin.published("typeless")
    submit = model.times(50_000, np.random.default_rng(3))
    found = Lublin.fit(Workload.of(submit, 1))
    expected = model.day_weights
    busy = expected > 0.3
    assert np.array(found.weights)[busy] == pytest.approx(expected[busy], rel=0.25)
    shape = model.aarr * model.arar
    assert shape * model.barr == pytest.approx(found.aarr * found.barr, rel=0.02)
    assert model.barr == pytest.approx(found.barr, rel=0.05)
    assert found.mean_gap_s == pytest.approx(submit[-1] / len(submit), rel=0.02)
    assert "counts as Monday 00:00" in found.notes[0]
    submit = np.arange(400) * DAY / 4 + np.random.default_rng(5).uniform(0, 300, 400)
    clock = Clock(unix_start=6 * HOUR, known=True)
    found = Lublin.fit(Workload.of(submit, 1, clock=clock))
    assert [0, 12, 24, 36] == np.flatnonzero(np.array(found.weights) > 0).tolist()


def test_hours_without_arrivals_stay_empty() -> None:
    """Nothing is put into hours of rate 0, whatever rounding does."""
    cycle = Cycle(rates=tuple(np.isin(np.arange(168), [10, 30]) * 1.0))
    inside = cycle.warp(np.arange(500.0, 8 * WEEK, 997.0))
    assert {10, 30} == set((inside % WEEK // HOUR).astype(int))
    # Half a week is used up at the end of hour 10, a whole one at the end of hour 30.
    edges = cycle.warp(np.sort(np.r_[np.arange(0, 8 * WEEK, 997.0), np.arange(1, 9) * WEEK / 2]))
    assert {10, 11, 30, 31} >= set((edges % WEEK // HOUR).astype(int))


def test_a_cycle_is_fitted() -> None:
    """Hours have the rates that jobs were drawn with; short or empty traces are reported."""
    times = np.sort(np.random.default_rng(4).uniform(0, 20 * WEEK, 100_000))
    workload = Workload.of(WEEKLY.warp(times), 1)
    rates = np.array(WEEKLY.rates) / np.mean(WEEKLY.rates)
    found = np.array(Cycle.fit(workload).rates)
    assert rates == pytest.approx(found, abs=5 * np.sqrt(rates.max() * 168 / len(times)))
    daily = np.array(Cycle.fit(workload, weekly=False).rates).reshape(7, 24)
    assert found.reshape(7, 24).mean(axis=0) == pytest.approx(daily[3])
    with pytest.raises(ModelFitError, match="a week or more is needed"):
        Cycle.fit(poisson_workload(100, 300, 1))
    with pytest.raises(ModelFitError, match="fewer than 2 jobs"):
        Cycle.fit(Workload.of([1], 1))
    assert "no arrivals in" in Cycle.fit(bursty_workload(1500, 2)).notes[-1]


def test_what_cannot_be_fitted() -> None:
    """Few jobs, one second and equal gaps are one line; a fit that is far off has a note."""
    for submit in ([0.0], [0.0, 5.0], [7.0] * 50, list(np.arange(0, 86_400 * 2, 1800.0))):
        with pytest.raises(ModelFitError, match=r"arrivals lublin: .*poisson"):
            Lublin.fit(Workload.of(submit, 1))
    short = Lublin.fit(poisson_workload(200, 30, 1))
    assert {1.0} == set(short.weights)
    with pytest.raises(QuantityError, match="kind 'soup': not known; choose batch"):
        Lublin.published("soup")  # type: ignore[arg-type]
    submit = np.repeat(np.arange(60) * 2.5 * DAY, 3000)
    found = Lublin.fit(Workload.of(submit, 1))
    assert "mean of ln(gap in s)" in found.notes[-1]
    assert found.mean_gap_s == pytest.approx(np.diff(submit).mean(), rel=0.01)


def test_a_cycle_keeps_the_mean_rate() -> None:
    """Whole weeks stay in place, order and inverse hold, and each hour gets its share."""
    times = np.sort(np.random.default_rng(4).uniform(0, 50 * WEEK, 40_000))
    warped = WEEKLY.warp(times)
    assert (np.diff(warped) >= 0).all()
    assert times == pytest.approx(WEEKLY.unwarp(warped))
    weeks = np.arange(5.0) * WEEK
    assert weeks == pytest.approx(WEEKLY.warp(weeks))
    hours = np.bincount((warped % WEEK // HOUR).astype(int), minlength=168) / len(times) * 168
    expected = np.array(WEEKLY.rates) / np.mean(WEEKLY.rates)
    assert np.abs(hours - expected).max() < 5 * np.sqrt(expected.max() * 168 / len(times))
    start, clock = 3.5 * DAY, np.array([0.0, 100.0, 9 * DAY])
    whole = WEEKLY.unwarp(clock + start)
    assert (whole - whole[0]) == pytest.approx(WEEKLY.unwarp(clock, start))
