"""Scores, distances and intervals against what theory says; claims over several validations."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.analysis.curves import decades
from hpcrowd.analysis.validation import scores
from hpcrowd.analysis.validation.across import Across, claim_rows, holm, rank_rows
from hpcrowd.analysis.validation.scores import BIN, distances, estimate, resample
from hpcrowd.analysis.validation.validation import RANKED, Score, Validation
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance


def test_intervals_and_decades():
    """Draws that are larger on average are moved back; the seed decides who is drawn."""
    found = estimate(np.array([1.0, 2.0, 2.5, 3.0]))
    assert (1.0, True) == (found.value, found.low < 1 < found.high)
    assert 0.0 == estimate(np.array([0.0, 2.0, 2.5, 3.0]), 0.0).low
    assert {"value": 1.0, "low": None, "high": None} == estimate(np.array([1.0, np.nan])).plain()
    one, again, other = resample(9, 0, 5), resample(9, 0, 5), resample(9, 1, 5)
    assert [1.0] * 9 == one[0].tolist()
    assert [9.0] * 6 == one.sum(axis=1).tolist()
    assert one.tolist() == again.tolist() != other.tolist()
    # Times ten times as long are a decade apart; larger ones are in the last bin.
    seconds, users = np.array([10**5, 10**6, 10**7]), np.zeros(3, np.int64)
    first, longer = (scores.times_histogram(factor * seconds, users, 1) for factor in (1, 10))
    assert pytest.approx(1, abs=2 * BIN) == distances(first, longer, np.ones((1, 1)))["w1"][0]
    assert [[1, 0, 2]] == scores.histogram(np.array([0.9, 2.0, 99.0]), users, 1, 3).tolist()
    assert 0.0 == decades(0)
    assert pytest.approx(1, abs=1e-3) == float(decades(10**7) - decades(10**6))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """95 % intervals of means over users hold the true mean in about 95 % of the cases."""
    random = np.random.default_rng(3)
    weights = resample(60, 0, 400)
    cases, held = 400, 0
    for _ in range(cases):
        own = random.exponential(size=60)
        user = np.repeat(np.arange(60), 5)
        means = scores.user_means(own[user] + random.normal(size=300), user, 60)
        found = estimate(scores.mean_over_users(means, weights))
        held += found.low <= 1.0 <= found.high
    # Percentile intervals of skewed means hold a little less than they say.
    error = 4 * math.sqrt(0.95 * 0.05 / cases)
    assert 0.95 - 0.02 - error <= held / cases <= 0.95 + error
    values, once = np.array([1.0] * 100 + [3.0]), np.ones((1, 3))
    means = scores.user_means(values, np.array([0] * 100 + [2]), 3)
    assert 2.0 == scores.mean_over_users(means, once)[0]
    busy = scores.mean_over_users(means, once, np.array([100.0, 7.0, 1.0]))[0]
    assert pytest.approx(values.mean()) == busy


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(-9, 9),
)
def test_scores_are_those_of_all_pairs(forecasts, y):
    """E|X - y| - E|X - X'| / 2, the second over pairs of draws; missing ones do not count."""
    widest = max(map(len, forecasts))
    draws = np.array([row + [np.nan] * (widest - len(row)) for row in forecasts])
    expected = []
    for row in forecasts:
        between = [abs(one - other) for one, other in combinations(row, 2)] or [0]
        expected.append(np.mean(np.abs(np.array(row) - y)) - np.mean(between) / 2)
    assert expected == pytest.approx(scores.crps(draws, np.full(len(draws), float(y))).tolist())
    with pytest.raises(QuantityError, match="forecast without draws"):
        scores.crps(np.array([[np.nan]]), np.array([0.0]))


counts = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=3, max_size=3)


@given(counts.filter(np.any), counts.filter(np.any))
def test_distances_of_histograms(a, b):
    """Wasserstein's is scipy's; KS and total variation are those of the shares of all users."""
    first, second = np.array(a, float), np.array(b, float)
    found = distances(first, second, np.ones((1, 3)))
    shares = [each.sum(axis=0) / each.sum() for each in (first, second)]
    bins = np.arange(4)
    assert BIN * wasserstein_distance(bins, bins, *shares) == pytest.approx(found["w1"][0])
    below = [max(abs(np.subtract(*shares)[:k].sum()) for k in range(5))]
    assert below == pytest.approx(found["ks"])
    assert 1 - np.minimum(*shares).sum() == pytest.approx(found["tv"][0])


def made(values, spread, seed=0):
    """A validation in which each model has one score in all measures, with some spread."""
    random = np.random.default_rng(seed)
    drawn: dict[str, Any] = {
        name: {
            measure: {statistic: np.append(value, random.normal(value, spread, 400))}
            for measure, statistic in RANKED.items()
        }
        for name, value in values.items()
    }
    order = sorted(values, key=values.__getitem__)
    scores = {
        name: {
            measure: Score({statistic: estimate(drawn[name][measure][statistic])}, None, rank)
            for measure, statistic in RANKED.items()
        }
        for rank, name in enumerate(order, start=1)
    }
    return Validation([], Clock(), {}, scores, {}, {}, {}, {}, drawn)


def test_clear_differences_are_claimed():
    """Who is far ahead everywhere is better, who is far behind worse; ranks follow."""
    across = Across({log: made({"a": 0.1, "b": 0.5, "c": 0.5}, 0.01) for log in ("x", "y")})
    assert {"better"} == {claim.verdict for claim in across.claims("a", ["b", "c"])}
    assert {"worse"} == {claim.verdict for claim in across.claims("b", ["a", "c"])}
    assert 2 * len(RANKED) == len(across.claims("a", ["a", "b"]))
    assert "a" == across.models[0]
    assert ["a", "1.0", str(2 * len(RANKED)), "0", "0"] == rank_rows(across)[0][:5]
    rows = claim_rows(across, "a", ["b", "c"])
    assert ["next_batch", "**0.100** / 0.500 b", "**0.100** / 0.500 b"] == rows[0]


def test_chance_is_hardly_ever_claimed():
    """Among models that differ by chance alone, few tables hold any claim at all."""
    claimed = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        values = dict(zip("abcdefgh", random.normal(0.5, 0.05, 8), strict=True))
        claims = Across({"x": made(values, 0.05, seed)}).claims("a", values)
        claimed += {"="} != {claim.verdict for claim in claims}
    assert claimed <= 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrected_values_are_never_smaller(values):
    """Corrected p values keep their order, are at least as large, and at most 1."""
    found = holm(values)
    assert all(a <= b <= 1 for a, b in zip(values, found, strict=True))
    assert [found[k] for k in np.argsort(values, kind="stable")] == sorted(found)
    assert min(1.0, len(values) * min(values)) == pytest.approx(min(found))
