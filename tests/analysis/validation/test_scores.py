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


def crps_of_normal(y: float) -> float:
    """Score of a standard normal forecast when y is observed (Gneiting and Raftery 2007)."""
    density = math.exp(-y * y / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(y / math.sqrt(2))) / 2
    return y * (2 * below - 1) + 2 * density - 1 / math.sqrt(math.pi)


def test_single_value_scores_its_error() -> None:
    """A forecast of one value, drawn once or many times, scores its absolute error."""
    draws = np.array([[3.0, np.nan, np.nan], [3.0, 3.0, 3.0]])
    assert [2.0, 2.0] == crps(draws, np.array([5.0, 5.0])).tolist()


@pytest.mark.parametrize("count", [2, 5, 50])
@pytest.mark.parametrize("y", [0.0, 1.5])
def test_expected_score_does_not_depend_on_the_draws(count: int, y: float) -> None:
    """The mean score of drawn forecasts is that of the distribution, however few the draws."""
    draws = np.random.default_rng(1).normal(size=(40_000, count))
    scores = crps(draws, np.full(len(draws), y))
    error = 4 * scores.std() / math.sqrt(len(scores))
    assert pytest.approx(crps_of_normal(y), abs=error) == scores.mean()


@pytest.mark.parametrize("width", [0.0, 0.5, 2.0])
def test_only_the_truth_is_best(width: float) -> None:
    """Forecasts that are too narrow or too wide score worse than the true distribution."""
    random = np.random.default_rng(2)
    observed = random.normal(size=20_000)
    draws = random.normal(size=(20_000, 10))
    difference = crps(width * draws, observed) - crps(draws, observed)
    assert difference.mean() > 4 * difference.std() / math.sqrt(len(difference))


def test_missing_draws_do_not_count() -> None:
    """A forecast with fewer draws scores as if it had only those; one without any is an error."""
    few = crps(np.array([[4.0, np.nan, 1.0]]), np.array([2.0]))
    assert crps(np.array([[1.0, 4.0]]), np.array([2.0])).tolist() == few.tolist()
    with pytest.raises(QuantityError, match="forecast without draws"):
        crps(np.array([[np.nan]]), np.array([0.0]))


def test_decades_are_factors_of_ten() -> None:
    """0 s is 0; a long time and ten times as long are one apart."""
    assert 0.0 == decades(0)
    assert pytest.approx(1, abs=1e-3) == float(decades(10**7) - decades(10**6))


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
    """A third that moves two bins up: KS and total variation 1/3, Wasserstein 2/3 of a bin."""
    users = np.zeros(3, np.int64)
    before = histogram(np.array([0.0, 1.0, 2.0]), users, 1, 5)
    after = histogram(np.array([2.0, 1.0, 2.0]), users, 1, 5)
    found = distances(before, after, np.ones((1, 1)))
    assert [1 / 3, 2 / 3 * BIN, 1 / 3] == pytest.approx([found[n][0] for n in ("ks", "w1", "tv")])


def test_a_shift_of_a_decade_has_the_area_of_one() -> None:
    """Times ten times as long: Wasserstein says 1 decade."""
    seconds = np.array([10**5, 10**6, 10**7])
    users = np.zeros(3, np.int64)
    shifted = times_histogram(10 * seconds, users, 1)
    found = distances(times_histogram(seconds, users, 1), shifted, np.ones((1, 1)))
    assert pytest.approx(1, abs=2 * BIN) == float(found["w1"][0])


def test_every_user_counts_the_same_unless_told() -> None:
    """A user's hundred scores weigh as much as another's one; or as much as shares say."""
    scores = np.array([1.0] * 100 + [3.0])
    means = user_means(scores, np.array([0] * 100 + [2]), 3)
    once = np.ones((1, 3))
    assert 2.0 == mean_over_users(means, once)[0]
    busy = mean_over_users(means, once, np.array([100.0, 7.0, 1.0]))[0]
    assert pytest.approx(scores.mean()) == busy


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % intervals of means over 60 users hold the true mean in about 95 % of the cases."""
    random = np.random.default_rng(3)
    weights = resample(60, 0, 400)
    cases, held = 400, 0
    for _ in range(cases):
        own = random.exponential(size=60)
        user = np.repeat(np.arange(60), 5)
        scores = own[user] + random.normal(size=300)
        found = estimate(mean_over_users(user_means(scores, user, 60), weights))
        held += found.low <= 1.0 <= found.high
    # Percentile intervals of skewed means hold a little less than they say.
    error = 4 * math.sqrt(0.95 * 0.05 / cases)
    assert 0.95 - 0.02 - error <= held / cases <= 0.95 + error


def test_interval_is_around_the_value() -> None:
    """Draws that are larger on average are moved back; nothing falls below what is possible."""
    found = estimate(np.array([1.0, 2.0, 2.5, 3.0]))
    assert (1.0, True) == (found.value, found.low < 1 < found.high)
    assert 0.0 == estimate(np.array([0.0, 2.0, 2.5, 3.0]), 0.0).low
    assert {"value": 1.0, "low": None, "high": None} == estimate(np.array([1.0, np.nan])).plain()


def test_users_are_drawn_by_seed() -> None:
    """The first row is everybody once; the same seed draws the same, another seed others."""
    one, again, other = resample(9, 0, 5), resample(9, 0, 5), resample(9, 1, 5)
    assert [1.0] * 9 == one[0].tolist()
    assert [9.0] * 6 == one.sum(axis=1).tolist()
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
