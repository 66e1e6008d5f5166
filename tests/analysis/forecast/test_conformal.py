"""Recalibrated bounds: coverage of bad forecasts, good ones left alone, waits that still go on."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hpcrowd.analysis.forecast import conformal
from hpcrowd.analysis.forecast.conformal import LEVELS, UNIT, Recalibration, wait_classes
from hpcrowd.analysis.forecast.scores import pinball
from hpcrowd.environment.errors import QuantityError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

#: Normal quantiles at the levels.
SPREAD = norm.ppf(LEVELS)

#: Waits in a test of coverage, and how many become known together.
JOBS, TOGETHER = 4000, 20


def seconds(space: np.ndarray) -> np.ndarray:
    """Return waits from where offsets are added."""
    return UNIT * np.expm1(np.maximum(space, 0))


def forecasts(kind: str, jobs: int = JOBS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds, right or wrong in a certain way, and waits."""
    draws = np.random.default_rng(seed)
    centre = draws.normal(4, 1.5, jobs)
    waits = centre + draws.normal(size=jobs)
    share = np.arange(jobs) / jobs
    width = {"narrow": 0.3, "wide": 3.0}.get(kind, 1.0)
    shift = {
        "low": np.full(jobs, -1.5),
        "high": np.full(jobs, 1.5),
        "drifting": 1.5 * np.sin(6 * share),
        "jumping": np.where(share < 0.5, -1.0, 1.0),
    }.get(kind, np.zeros(jobs))
    return seconds((centre + shift)[:, None] + width * SPREAD), seconds(waits)


def played(
    recalibration: Recalibration,
    raw: np.ndarray,
    waits: np.ndarray,
    classes: np.ndarray | None = None,
    late: int = 0,
) -> np.ndarray:
    """Return the bounds of each job, which becomes known ``late`` jobs after it is forecast."""
    bounds = np.empty_like(raw)
    classes = np.zeros(len(raw), int) if classes is None else classes
    for begin in range(0, len(raw), TOGETHER):
        now = slice(begin, begin + TOGETHER)
        bounds[now] = recalibration.adjusted(raw[now], classes[now])
        ended = slice(max(begin - late, 0), max(begin + TOGETHER - late, 0))
        recalibration.learn(raw[ended], waits[ended], classes=classes[ended])
    return bounds


def shares(bounds: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Return the share of waits at or below the bound of each level."""
    return (waits[:, None] <= bounds).mean(axis=0)


# ---- coverage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["narrow", "wide", "low", "high", "drifting", "jumping"])
def test_bad_forecasts_get_the_coverage(kind: str) -> None:
    """Each level covers its share, however wrong the forecast is, and the loss is smaller."""
    raw, waits = forecasts(kind)
    assert np.abs(shares(raw, waits) - LEVELS).max() > 0.09
    bounds = played(Recalibration(), raw, waits)
    assert np.abs(shares(bounds, waits) - LEVELS).max() < 0.035
    half = slice(JOBS // 2, None) if kind not in ("drifting", "jumping") else slice(None)
    assert np.abs(shares(bounds[half], waits[half]) - LEVELS).max() < 0.035
    assert pinball(bounds, waits, LEVELS).mean() < 0.9 * pinball(raw, waits, LEVELS).mean()


@pytest.mark.parametrize("late", [200, 1000])
def test_late_outcomes_do(late: int) -> None:
    """Waits that are known hundreds of jobs later still give the coverage, without overshoot."""
    for kind in ("narrow", "low"):
        raw, waits = forecasts(kind, 6000)
        bounds = played(Recalibration(), raw, waits, late=late)[late + 1000 :]
        assert np.abs(shares(bounds, waits[late + 1000 :]) - LEVELS).max() < 0.03


def test_the_bound_on_the_coverage_holds() -> None:
    """The miscoverage of any sequence is what the offset has moved, over steps and outcomes."""
    draws = np.random.default_rng(1)
    recalibration = Recalibration((0.9,))
    # A forecaster out to fool it: the bound is far off, on the other side every 300 jobs.
    waits = np.exp(draws.normal(8, 1, JOBS))
    raw = np.where(np.arange(JOBS) % 600 < 300, waits / 5, waits * 5)[:, None]
    bounds = played(recalibration, raw, waits)
    assert shares(bounds, waits) == pytest.approx([0.9], abs=0.05)


def test_calibrated_forecasts_stay_nearly_as_they_are() -> None:
    """Right bounds are off by less than a tenth of the spread, and score as well within 2 %."""
    raw, waits = forecasts("right")
    recalibration = Recalibration()
    bounds = played(recalibration, raw, waits)
    moved = np.log1p(bounds / UNIT) - np.log1p(raw / UNIT)
    assert np.abs(moved).mean() < 0.1
    assert np.abs(moved[JOBS // 2 :]).max() < 0.45
    assert np.abs(shares(bounds, waits) - LEVELS).max() < 0.02
    assert pinball(bounds, waits, LEVELS).mean() < 1.02 * pinball(raw, waits, LEVELS).mean()


def test_nothing_changes_before_the_first_outcome() -> None:
    """Bounds are given back to the last bit."""
    raw, _ = forecasts("right", 50)
    assert (np.sort(raw, axis=1) == Recalibration(classes=3).adjusted(raw)).all()


@pytest.mark.parametrize("wrong", [False, True])
def test_waits_of_zero(wrong: bool) -> None:
    """With 60 % waits of 0 the lower bounds are 0 or nearly so, and the upper ones cover."""
    draws = np.random.default_rng(2)
    centre = draws.normal(4, 1.5, JOBS)
    none = draws.random(JOBS) < 0.6
    waits = np.where(none, 0, seconds(centre + draws.normal(size=JOBS)))
    inner = norm.ppf((np.array(LEVELS[3:]) - 0.6) / 0.4)
    raw = np.concatenate((np.zeros((JOBS, 3)), seconds(centre[:, None] + inner)), axis=1)
    if wrong:
        raw = raw / 3 + 60
    bounds = played(Recalibration(), raw, waits)
    below = (waits[:, None] < bounds).mean(axis=0)
    assert (below <= np.array(LEVELS) + 0.02).all()
    assert (shares(bounds, waits) >= np.array(LEVELS) - 0.02).all()
    # Half a minute at most, where the bound was a minute off.
    assert (np.median(bounds[JOBS // 2 :, :3], axis=0) < 5).all()


def test_bounds_recover_from_idle_times() -> None:
    """Thousands of waits of 0 wind nothing up: when jobs wait again, the bounds follow."""
    idle, raw = np.zeros(3000), np.tile([0.0, 0, 0, 60, 600], (6000, 1))
    draws = np.random.default_rng(3)
    waits = np.concatenate((idle, draws.exponential(3600, 3000)))
    bounds = played(Recalibration(), raw, waits)[4000:]
    assert np.abs(shares(bounds, waits[4000:]) - LEVELS).max() < 0.06


# ---- classes ------------------------------------------------------------------------------------


def test_classes_of_waits() -> None:
    """Below 30 min, 2 h, 12 h, and beyond."""
    medians = [0, 1799, 1800, 7199, 7200, 43_199, 43_200, math.inf]
    assert [0, 0, 1, 1, 2, 2, 3, 3] == wait_classes(medians).tolist()


def test_classes_get_the_coverage_each() -> None:
    """Opposite errors in two classes cancel in one offset, not with one for each class."""
    raw, waits = forecasts("right", 8000)
    classes = np.arange(8000) % 2
    raw = np.where(classes[:, None] == 0, raw * 3, raw / 3)
    one = played(Recalibration(), raw, waits)
    two = played(Recalibration(classes=2), raw, waits, classes)
    for kind in (0, 1):
        chosen = (classes == kind) & (np.arange(8000) > 1000)
        assert np.abs(shares(one[chosen], waits[chosen]) - LEVELS).max() > 0.2
        assert np.abs(shares(two[chosen], waits[chosen]) - LEVELS).max() < 0.03


def test_rare_classes_follow_the_common_offset() -> None:
    """A class without outcomes has the common offset; with a few it has nearly that."""
    raw, waits = forecasts("low", 2000)
    recalibration = Recalibration(classes=3)
    played(recalibration, raw, waits, np.zeros(2000, int))
    common, new = recalibration.offsets()[0], recalibration.offsets()[2]
    assert new == pytest.approx(recalibration.common)
    assert new == pytest.approx(common, abs=0.4)
    before = recalibration.offsets()[1].copy()
    recalibration.learn(raw[:1], [1e6], classes=[1])
    moved = recalibration.offsets()[1] - before
    assert (moved > 0).all()
    assert (moved < 0.1).all()


# ---- waits that go on ---------------------------------------------------------------------------


def test_a_waiting_job_is_a_miss_of_the_bounds_that_passed() -> None:
    """Bounds below the elapsed wait learn at once, the others when more is known; each once."""
    recalibration = Recalibration()
    raw = [[60.0, 300, 600, 1200, 3600]]
    known = recalibration.learn(raw, [700], [True])
    assert [[True, True, True, False, False]] == known.tolist()
    offsets = recalibration.common.copy()
    assert (offsets[:3] > 0).all()
    assert not offsets[3:].any()
    again = recalibration.learn(raw, [800], [True], known=known)
    assert again.tolist() == known.tolist()
    assert (offsets == recalibration.common).all()
    assert recalibration.learn(raw, [1300], [False], known=known).all()
    assert (offsets[:3] == recalibration.common[:3]).all()
    assert recalibration.common[3] > 0 > recalibration.common[4]
    assert [1] * 5 == recalibration.outcomes.tolist()


def test_censored_waits_give_the_coverage() -> None:
    """Jobs asked after every hour while they wait, and learned when they start, are covered."""
    raw, waits = forecasts("low", JOBS, seed=4)
    recalibration = Recalibration()
    bounds = np.empty_like(raw)
    asked = 300.0 * np.arange(JOBS)  # submitted every five minutes
    known = np.zeros(raw.shape, bool)
    waiting: list[int] = []
    for job in range(JOBS):
        bounds[job] = recalibration.adjusted(raw[job : job + 1])[0]
        waiting.append(job)
        if job % 12 == 0:
            chosen = np.array(waiting)
            elapsed = asked[job] - asked[chosen]
            late = waits[chosen] > elapsed
            known[chosen] = recalibration.learn(
                raw[chosen], np.minimum(waits[chosen], elapsed), late, known=known[chosen]
            )
            waiting = chosen[late].tolist()
    assert known[: JOBS // 2].mean() > 0.99
    late_half = slice(JOBS // 2, None)
    assert np.abs(shares(bounds[late_half], waits[late_half]) - LEVELS).max() < 0.03


def test_infinite_bounds_stay() -> None:
    """A bound beyond the horizon is neither moved nor learned from."""
    recalibration = Recalibration()
    raw = [[60.0, 300, 600, math.inf, math.inf]]
    assert [[True, True, True, False, False]] == recalibration.learn(raw, [50]).tolist()
    assert not recalibration.common[3:].any()
    assert np.isinf(recalibration.adjusted(raw)[0, 3:]).all()


# ---- what holds always --------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(0, 1e7), min_size=6, max_size=6), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_bounds_are_monotone_and_not_negative(rows: list[list[float]]) -> None:
    """Whatever was learned, bounds ascend with the level, and no wait is below 0."""
    table = np.array(rows)
    recalibration = Recalibration(classes=2, rate=1)
    kinds = np.arange(len(table)) % 2
    recalibration.learn(table[:, :5], table[:, 5], classes=kinds)
    bounds = recalibration.adjusted(table[:, :5], kinds)
    assert (bounds >= 0).all()
    assert (np.diff(bounds, axis=1) >= 0).all()
    assert np.isfinite(bounds).all()


def test_examples() -> None:
    """The example in the module is right."""
    assert 0 == doctest.testmod(conformal).failed


def test_wrong_input_is_one_line() -> None:
    """Levels, rates, classes, bounds and waits that do not fit say what does."""
    with pytest.raises(QuantityError, match=r"levels \[0.5, 0.5\]: ascending"):
        Recalibration((0.5, 0.5))
    with pytest.raises(QuantityError, match="rate 0"):
        Recalibration(rate=0)
    with pytest.raises(QuantityError, match="classes 0"):
        Recalibration(classes=0)
    recalibration = Recalibration((0.5,))
    with pytest.raises(QuantityError, match=r"shape \(1, 2\): give \(jobs, 1\)"):
        recalibration.adjusted([[1, 2]])
    with pytest.raises(QuantityError, match="bounds that are negative"):
        recalibration.adjusted([[-1]])
    with pytest.raises(QuantityError, match="from 0 to 0"):
        recalibration.adjusted([[1]], [1])
    with pytest.raises(QuantityError, match="one wait of 0 s or more"):
        recalibration.learn([[1]], [-1])
    with pytest.raises(QuantityError, match="pass it as censored"):
        recalibration.learn([[1]], [math.inf])
    with pytest.raises(QuantityError, match="censored of shape"):
        recalibration.learn([[1]], [1], [True, False])
    with pytest.raises(QuantityError, match="known of shape"):
        recalibration.learn([[1]], [1], known=[True])
