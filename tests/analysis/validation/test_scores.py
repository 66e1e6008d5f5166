"""Scores, distances and intervals against what theory says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hpcrowd.analysis.curves import decades
from hpcrowd.analysis.validation.scores import (
    BIN,
    crps,
    distances,
    estimate,
    histogram,
    mean_over_users,
    resample,
    times_histogram,
    user_means,
)
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("count", [2, 5, 50])
@pytest.mark.parametrize("y", [0.0, 1.5])
def test_expected_score_does_not_depend_on_the_draws(count: int, y: float) -> None:
    """The mean score of draws is that of a normal forecast (Gneiting and Raftery 2007)."""
    density = math.exp(-y * y / 2) / math.sqrt(2 * math.pi)
    expected = y * math.erf(y / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi)
    draws = np.random.default_rng(1).normal(size=(40_000, count))
    scores = crps(draws, np.full(len(draws), y))
    error = 4 * scores.std() / math.sqrt(len(scores))
    assert pytest.approx(expected, abs=error) == scores.mean()


COUNTS = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=3, max_size=3)


@given(COUNTS, COUNTS)
def test_distances_of_histograms(a: list[list[int]], b: list[list[int]]) -> None:
    """They are 0 for the same, the same both ways, and KS is at most the total variation."""
    first, second = np.array(a, float), np.array(b, float)
    first[0, 0] += 1
    second[0, 3] += 1
    weights = np.ones((1, 3))
    same, there, back = (
        distances(*pair, weights) for pair in ((first, first), (first, second), (second, first))
    )
    assert {"ks": 0.0, "w1": 0.0, "tv": 0.0} == {
        name: float(value[0]) for name, value in same.items()
    }
    for name, value in there.items():
        assert pytest.approx(float(value[0])) == float(back[name][0])
    assert 0 <= there["ks"][0] <= there["tv"][0] + 1e-12 <= 1 + 2e-12


def test_distances_by_hand() -> None:
    """A third that moves two bins up, and times ten times as long, which are a decade apart."""
    users, once = np.zeros(3, np.int64), np.ones((1, 1))
    before = histogram(np.array([0.0, 1.0, 2.0]), users, 1, 5)
    after = histogram(np.array([2.0, 1.0, 2.0]), users, 1, 5)
    found = distances(before, after, once)
    assert [1 / 3, 2 / 3 * BIN, 1 / 3] == pytest.approx([found[n][0] for n in ("ks", "w1", "tv")])
    seconds = np.array([10**5, 10**6, 10**7])
    first, longer = (times_histogram(factor * seconds, users, 1) for factor in (1, 10))
    assert pytest.approx(1, abs=2 * BIN) == float(distances(first, longer, once)["w1"][0])
    assert 0.0 == decades(0)
    assert pytest.approx(1, abs=1e-3) == float(decades(10**7) - decades(10**6))


def test_interval_is_around_the_value() -> None:
    """Draws that are larger on average are moved back; the seed decides who is drawn."""
    found = estimate(np.array([1.0, 2.0, 2.5, 3.0]))
    assert (1.0, True) == (found.value, found.low < 1 < found.high)
    assert 0.0 == estimate(np.array([0.0, 2.0, 2.5, 3.0]), 0.0).low
    assert {"value": 1.0, "low": None, "high": None} == estimate(np.array([1.0, np.nan])).plain()
    one, again, other = resample(9, 0, 5), resample(9, 0, 5), resample(9, 1, 5)
    assert [1.0] * 9 == one[0].tolist()
    assert [9.0] * 6 == one.sum(axis=1).tolist()
    assert one.tolist() == again.tolist() != other.tolist()


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % intervals of means over users hold the true mean in about 95 % of the cases."""
    random = np.random.default_rng(3)
    weights = resample(60, 0, 400)
    cases, held = 400, 0
    for _ in range(cases):
        own = random.exponential(size=60)
        user = np.repeat(np.arange(60), 5)
        found = estimate(
            mean_over_users(user_means(own[user] + random.normal(size=300), user, 60), weights)
        )
        held += found.low <= 1.0 <= found.high
    # Percentile intervals of skewed means hold a little less than they say.
    error = 4 * math.sqrt(0.95 * 0.05 / cases)
    assert 0.95 - 0.02 - error <= held / cases <= 0.95 + error
    scores, once = np.array([1.0] * 100 + [3.0]), np.ones((1, 3))
    means = user_means(scores, np.array([0] * 100 + [2]), 3)
    assert 2.0 == mean_over_users(means, once)[0]
    busy = mean_over_users(means, once, np.array([100.0, 7.0, 1.0]))[0]
    assert pytest.approx(scores.mean()) == busy


def test_scores_of_few_draws() -> None:
    """A forecast of one value scores its absolute error; missing draws do not count."""
    draws = np.array([[3.0, np.nan, np.nan], [3.0, 3.0, 3.0]])
    assert [2.0, 2.0] == crps(draws, np.array([5.0, 5.0])).tolist()
    few = crps(np.array([[4.0, np.nan, 1.0]]), np.array([2.0]))
    assert crps(np.array([[1.0, 4.0]]), np.array([2.0])).tolist() == few.tolist()
    with pytest.raises(QuantityError, match="forecast without draws"):
        crps(np.array([[np.nan]]), np.array([0.0]))
