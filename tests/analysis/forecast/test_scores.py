"""Scores of forecasts: definitions, closed forms, intervals of differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.forecast.scores import (
    covered,
    crps,
    mean_difference,
    pinball,
    quantiles,
)
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

#: Values that often tie, as waits of whole seconds do.
VALUES = st.integers(0, 20).map(float)


@given(st.lists(VALUES, min_size=2, max_size=8), VALUES, st.data())
def test_crps_is_what_its_definition_says(members, outcome, data):
    """Error minus half the mean distance, of all pairs or of pairs of different members."""
    size = len(members)
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=size, max_size=size)), float)
    for some, share in ((None, np.full(size, 1 / size)), (weights, weights / sum(weights))):
        distance = np.abs(np.subtract.outer(members, members))
        pairs = np.outer(share, share)
        error = share @ np.abs(np.array(members) - outcome)
        plain = error - (pairs * distance).sum() / 2
        fair = error - (pairs * distance).sum() / 2 / (1 - np.trace(pairs))
        assert crps([members], [outcome], some, fair=False) == pytest.approx([plain])
        assert crps([members], [outcome], some) == pytest.approx([fair])


@pytest.mark.parametrize("outcome", [-3.0, 0.1, 1.0])
def test_crps_of_a_normal_forecast(outcome):
    """Many quantiles have the closed form (Gneiting and Raftery 2007), fair ensembles its mean."""
    levels = (np.arange(2000) + 0.5) / 2000
    closed = outcome * (2 * norm.cdf(outcome) - 1) + 2 * norm.pdf(outcome) - 1 / math.sqrt(math.pi)
    predicted = norm.ppf(levels)[None, :]
    assert [closed] == pytest.approx(crps(predicted, [outcome], fair=False), abs=1e-3)
    members = np.random.default_rng(0).normal(size=(40_000, 3))
    assert closed == pytest.approx(crps(members, np.full(40_000, outcome)).mean(), abs=0.012)


def test_crps_up_to_a_horizon():
    """Values beyond the horizon count as the horizon, whatever they are."""
    members = [[10, 50, math.inf, math.inf]]
    assert crps(members, [math.inf], horizon=100) == crps([[10, 50, 100, 100]], [100])
    assert crps(members, [300], horizon=100) == crps(members, [101], horizon=100)


@given(st.lists(VALUES, min_size=1, max_size=9), st.floats(0.01, 0.99), VALUES)
def test_quantiles_are_the_inverse_distribution(members, level, other):
    """The same as numpy's, with and without equal weights; no other value has a smaller loss."""
    expected = np.quantile(members, level, method="inverted_cdf")
    assert expected == quantiles([members], [level])[0, 0]
    assert expected == quantiles([members], [level], np.full(len(members), 2.0))[0, 0]
    best, worse = (
        pinball(np.full((len(members), 1), value), members, [level]).mean()
        for value in (expected, other)
    )
    assert best <= worse + 1e-9


def test_scores_by_hand():
    """Quantiles and pinball losses; what is beyond the horizon is infinite."""
    found = quantiles([[3, math.inf, 1, math.inf]], [0.25, 0.5, 0.51, 0.95])
    assert [[1, 3, math.inf, math.inf]] == found.tolist()
    assert [[1, 5]] == quantiles([[1, 5]], [0.75, 0.76], [3, 1]).tolist()
    assert [[0.5 * 4, 0.9 * 2]] == pinball([[6, 8]], [10], [0.5, 0.9]).tolist()
    assert pytest.approx(0.1 * 5) == pinball([[15]], [10], [0.9]).item()
    assert [[math.inf, 0]] == pinball([[5, math.inf]], [math.inf], [0.5, 0.9]).tolist()


def test_coverage_with_atoms():
    """A closed central half from 0 on holds the whole atom: 60 % of waits are 0, 10 % infinite."""
    draws = np.random.default_rng(50)
    waits = draws.exponential(100, (20_000, 51))
    waits[draws.random(waits.shape) < 0.6] = 0
    waits[draws.random(waits.shape) < 0.1] = math.inf
    ends = quantiles(waits[:, 1:], [0.25, 0.75])
    assert 0.7 < covered(ends[:, 0], ends[:, 1], waits[:, 0]) < 0.8


def test_intervals_of_differences_cover_dependent_scores():
    """Blocks cover the mean of correlated differences far better than single cases do."""
    draws = np.random.default_rng(8)
    hits = {"blocks": 0, "single": 0}
    for _ in range(100):
        series = np.convolve(draws.normal(size=460), np.ones(12), "valid")[:400]
        for name, block in (("blocks", 30), ("single", 1)):
            found = mean_difference(series + 1, np.ones(400), draws, block=block)
            hits[name] += found.low <= 0 <= found.high
    assert hits["single"] < 60 < 83 < hits["blocks"]


def test_differences_are_paired():
    """What the cases share leaves no trace; the mean is exact, the block length by default."""
    draws = np.random.default_rng(9)
    shared = draws.exponential(1000, 300)
    found = mean_difference(shared + 2 + draws.normal(size=300), shared, draws)
    assert found.low < 2 < found.high
    assert (300, True) == (found.count, found.half_width < 0.2)
    few = mean_difference([1, 2, 3], [0, 0, 0], draws)
    assert (2, None, None, 3) == (few.mean, few.low, few.high, few.count)


WRONG: dict[str, Callable[[], Any]] = {
    "give the horizon": lambda: crps([[10, math.inf]], [3]),
    "one member": lambda: crps([[3]], [3]),
    r"members of shape \(2,\)": lambda: crps([1, 2], [1]),
    "one for each of 1": lambda: crps([[1, 2]], [1, 2]),
    "not numbers": lambda: crps([[1, math.nan]], [1]),
    "weights of members": lambda: quantiles([[1, 2]], [0.5], [0, 0]),
    r"levels \[0.9, 0.5\]: ascending": lambda: pinball([[6, 8]], [10], [0.9, 0.5]),
    r"shape \(1, 2\): give \(cases, 1\)": lambda: pinball([[6, 8]], [10], [0.9]),
    "one of each case": lambda: mean_difference([1, 2], [1], np.random.default_rng(0)),
    "leave such cases": lambda: mean_difference([math.inf], [1], np.random.default_rng(0)),
    "block 0": lambda: mean_difference([1, 1], [1, 2], np.random.default_rng(0), block=0),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_one_line(words):
    """Members, outcomes, levels and weights that do not fit say what does."""
    with pytest.raises(QuantityError, match=words):
        WRONG[words]()
