"""Recalibrated bounds: coverage of bad forecasts, good ones left alone, waits that still go on."""

import doctest
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.forecast import conformal, qbets
from hpcrowd.analysis.forecast.conformal import LEVELS, UNIT, Recalibration, wait_classes
from hpcrowd.analysis.forecast.scores import pinball
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

#: Normal quantiles at the levels.
SPREAD = norm.ppf(LEVELS)

#: Waits in a test of coverage, and how many become known together.
JOBS, TOGETHER = 4000, 20


def seconds(space):
    """Return waits from where offsets are added."""
    return UNIT * np.expm1(np.maximum(space, 0))


def forecasts(kind, jobs=JOBS, seed=0):
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


def played(recalibration, raw, waits, classes=None, late=0):
    """Return the bounds of each job, which becomes known ``late`` jobs after it is forecast."""
    bounds = np.empty_like(raw)
    classes = np.zeros(len(raw), int) if classes is None else classes
    for begin in range(0, len(raw), TOGETHER):
        now = slice(begin, begin + TOGETHER)
        bounds[now] = recalibration.adjusted(raw[now], classes[now])
        ended = slice(max(begin - late, 0), max(begin + TOGETHER - late, 0))
        recalibration.learn(raw[ended], waits[ended], classes=classes[ended])
    return bounds


def missed(bounds, waits):
    """Return how far the share of waits at or below a bound is from its level, at most."""
    return float(np.abs((waits[:, None] <= bounds).mean(axis=0) - LEVELS).max())


@pytest.mark.parametrize("kind", ["narrow", "wide", "low", "high", "drifting", "jumping"])
def test_bad_forecasts_get_the_coverage(kind):
    """Each level covers its share, however wrong the forecast is, and the loss is smaller."""
    raw, waits = forecasts(kind)
    assert missed(raw, waits) > 0.09
    bounds = played(Recalibration(), raw, waits)
    half = slice(JOBS // 2 if kind not in ("drifting", "jumping") else 0, None)
    assert missed(bounds, waits) < 0.035
    assert missed(bounds[half], waits[half]) < 0.035
    assert pinball(bounds, waits, LEVELS).mean() < 0.9 * pinball(raw, waits, LEVELS).mean()


@pytest.mark.parametrize("late", [200, 1000])
@pytest.mark.parametrize("kind", ["narrow", "low"])
def test_late_outcomes_do(kind, late):
    """Waits that are known hundreds of jobs later still give the coverage, without overshoot."""
    raw, waits = forecasts(kind, 6000)
    bounds = played(Recalibration(), raw, waits, late=late)
    assert missed(bounds[late + 1000 :], waits[late + 1000 :]) < 0.03


def test_calibrated_forecasts_stay_nearly_as_they_are():
    """Right bounds are off by less than a tenth of the spread, and score as well within 2 %.

    Before the first outcome, they are given back to the last bit.
    """
    raw, waits = forecasts("right")
    assert (np.sort(raw, axis=1) == Recalibration(classes=3).adjusted(raw)).all()
    bounds = played(Recalibration(), raw, waits)
    moved = np.log1p(bounds / UNIT) - np.log1p(raw / UNIT)
    assert np.abs(moved).mean() < 0.1
    assert np.abs(moved[JOBS // 2 :]).max() < 0.45
    assert missed(bounds, waits) < 0.02
    assert pinball(bounds, waits, LEVELS).mean() < 1.02 * pinball(raw, waits, LEVELS).mean()


@pytest.mark.parametrize("wrong", [False, True])
def test_waits_of_zero(wrong):
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
    assert ((waits[:, None] < bounds).mean(axis=0) <= np.array(LEVELS) + 0.02).all()
    assert ((waits[:, None] <= bounds).mean(axis=0) >= np.array(LEVELS) - 0.02).all()
    # Half a minute at most, where the bound was a minute off.
    assert (np.median(bounds[JOBS // 2 :, :3], axis=0) < 5).all()


def test_bounds_recover_from_idle_times():
    """Thousands of waits of 0 wind nothing up: when jobs wait again, the bounds follow."""
    idle, raw = np.zeros(3000), np.tile([0.0, 0, 0, 60, 600], (6000, 1))
    waits = np.concatenate((idle, np.random.default_rng(3).exponential(3600, 3000)))
    assert missed(played(Recalibration(), raw, waits)[4000:], waits[4000:]) < 0.06


def test_classes_get_the_coverage_each():
    """Opposite errors in two classes cancel in one offset, not with one for each class.

    Classes of waits are those below 30 min, 2 h, 12 h, and beyond.
    """
    medians = [0, 1799, 1800, 7199, 7200, 43_199, 43_200, math.inf]
    assert [0, 0, 1, 1, 2, 2, 3, 3] == wait_classes(medians).tolist()
    raw, waits = forecasts("right", 8000)
    classes = np.arange(8000) % 2
    raw = np.where(classes[:, None] == 0, raw * 3, raw / 3)
    one = played(Recalibration(), raw, waits)
    two = played(Recalibration(classes=2), raw, waits, classes)
    for kind in (0, 1):
        chosen = (classes == kind) & (np.arange(8000) > 1000)
        assert missed(one[chosen], waits[chosen]) > 0.2
        assert missed(two[chosen], waits[chosen]) < 0.03


def test_rare_classes_follow_the_common_offset():
    """A class without outcomes has the common offset; with a few it has nearly that."""
    raw, waits = forecasts("low", 2000)
    recalibration = Recalibration(classes=3)
    played(recalibration, raw, waits, np.zeros(2000, int))
    common, before, new = (row.copy() for row in recalibration.offsets())
    assert new == pytest.approx(recalibration.common)
    assert new == pytest.approx(common, abs=0.4)
    recalibration.learn(raw[:1], [1e6], classes=[1])
    moved = recalibration.offsets()[1] - before
    assert ((moved > 0) & (moved < 0.1)).all()


def test_a_waiting_job_is_a_miss_of_the_bounds_that_passed():
    """Bounds below the elapsed wait learn at once, the others when more is known; each once."""
    recalibration = Recalibration()
    raw = [[60.0, 300, 600, 1200, 3600]]
    known = recalibration.learn(raw, [700], [True])
    assert [[True, True, True, False, False]] == known.tolist()
    offsets = recalibration.common.copy()
    assert [True] * 3 + [False] * 2 == (offsets > 0).tolist()
    assert not offsets[3:].any()
    assert known.tolist() == recalibration.learn(raw, [800], [True], known=known).tolist()
    assert (offsets == recalibration.common).all()
    assert recalibration.learn(raw, [1300], [False], known=known).all()
    assert (offsets[:3] == recalibration.common[:3]).all()
    assert recalibration.common[3] > 0 > recalibration.common[4]
    assert [1] * 5 == recalibration.outcomes.tolist()
    # A bound beyond the horizon is neither moved nor learned from.
    open_ended = Recalibration()
    raw[0][3:] = math.inf, math.inf
    assert [[True, True, True, False, False]] == open_ended.learn(raw, [50]).tolist()
    assert not open_ended.common[3:].any()
    assert np.isinf(open_ended.adjusted(raw)[0, 3:]).all()


def test_censored_waits_give_the_coverage():
    """Jobs asked after every hour while they wait, and learned when they start, are covered."""
    raw, waits = forecasts("low", JOBS, seed=4)
    recalibration, bounds = Recalibration(), np.empty_like(raw)
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
    assert missed(bounds[JOBS // 2 :], waits[JOBS // 2 :]) < 0.03


@given(st.lists(st.lists(st.floats(0, 1e7), min_size=6, max_size=6), min_size=1, max_size=12))
def test_bounds_are_monotone_and_not_negative(rows):
    """Whatever was learned, bounds ascend with the level, and no wait is below 0."""
    table = np.array(rows)
    recalibration = Recalibration(classes=2, rate=1)
    kinds = np.arange(len(table)) % 2
    recalibration.learn(table[:, :5], table[:, 5], classes=kinds)
    bounds = recalibration.adjusted(table[:, :5], kinds)
    assert ((bounds >= 0) & np.isfinite(bounds)).all()
    assert (np.diff(bounds, axis=1) >= 0).all()


@pytest.mark.parametrize("module", [conformal, qbets])
def test_examples(module):
    """The examples in modules are right."""
    found = doctest.testmod(module)
    assert 0 == found.failed < found.attempted


WRONG: dict[str, Callable[[Recalibration], Any]] = {
    r"levels \[0.5, 0.5\]: ascending": lambda _: Recalibration((0.5, 0.5)),
    "rate 0": lambda _: Recalibration(rate=0),
    "classes 0": lambda _: Recalibration(classes=0),
    r"shape \(1, 2\): give \(jobs, 1\)": lambda one: one.adjusted([[1, 2]]),
    "bounds that are negative": lambda one: one.adjusted([[-1]]),
    "from 0 to 0": lambda one: one.adjusted([[1]], [1]),
    "one wait of 0 s or more": lambda one: one.learn([[1]], [-1]),
    "pass it as censored": lambda one: one.learn([[1]], [math.inf]),
    "censored of shape": lambda one: one.learn([[1]], [1], [True, False]),
    "known of shape": lambda one: one.learn([[1]], [1], known=[True]),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_one_line(words):
    """Levels, rates, classes, bounds and waits that do not fit say what does."""
    with pytest.raises(QuantityError, match=words):
        WRONG[words](Recalibration((0.5,)))
