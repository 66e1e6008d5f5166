"""Scores of forecasts: closed forms, properness, coverage with atoms, intervals of differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hpcrowd.analysis.forecast.scores import (
    central_coverage,
    covered,
    crps,
    crps_of_quantiles,
    interval_score,
    mean_difference,
    pinball,
    pit,
    pit_of_quantiles,
    quantiles,
)
from hpcrowd.environment.errors import QuantityError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Values that often tie, as waits of whole seconds do.
VALUES = st.integers(0, 20).map(float)


def normal_crps(outcome: np.ndarray) -> np.ndarray:
    """CRPS of a standard normal forecast (Gneiting and Raftery 2007, equation 21)."""
    z = np.asarray(outcome)
    return z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi)


# ---- CRPS ---------------------------------------------------------------------------------------


def test_crps_of_normal_ensembles() -> None:
    """Ensembles of any size have the closed form in the mean if fair; the plain form is above."""
    draws = np.random.default_rng(0)
    for size, cases in ((2, 200_000), (10, 40_000)):
        members = draws.normal(size=(cases, size))
        for outcome in (-1.0, 0.0, 2.5):
            closed, outcomes = normal_crps(outcome), np.full(cases, outcome)
            assert crps(members, outcomes).mean() == pytest.approx(closed, abs=0.012)
            plain = crps(members, outcomes, fair=False).mean()
            # Half the mean distance of two draws, 2 / sqrt(pi), over the size is missing.
            assert plain == pytest.approx(closed + 1 / math.sqrt(math.pi) / size, abs=0.012)


def test_crps_of_the_quantiles_of_a_normal_forecast() -> None:
    """Many quantiles have the closed form, as ensemble and as quantiles."""
    levels = (np.arange(2000) + 0.5) / 2000
    predicted = norm.ppf(levels)[None, :]
    for outcome in (-3.0, 0.1, 1.0):
        closed = pytest.approx([normal_crps(outcome)], abs=1e-3)
        assert closed == crps_of_quantiles(predicted, [outcome], levels)
        assert closed == crps(predicted, [outcome], fair=False)


@given(st.lists(VALUES, min_size=2, max_size=8), VALUES, st.data())
@settings(max_examples=100, deadline=None)
def test_crps_is_what_its_definition_says(
    members: list[float], outcome: float, data: st.DataObject
) -> None:
    """Error minus half the mean distance, of all pairs or of pairs of different members."""
    size = len(members)
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=size, max_size=size)), float)
    for given_weights, share in (
        (None, np.full(size, 1 / size)),
        (weights, weights / sum(weights)),
    ):
        distance = np.abs(np.subtract.outer(members, members))
        pairs = np.outer(share, share)
        error = share @ np.abs(np.array(members) - outcome)
        plain = error - (pairs * distance).sum() / 2
        fair = error - (pairs * distance).sum() / 2 / (1 - np.trace(pairs))
        assert crps([members], [outcome], given_weights, fair=False) == pytest.approx([plain])
        assert crps([members], [outcome], given_weights) == pytest.approx([fair])


def test_weights_are_like_repeated_members() -> None:
    """A member with the weight 3 is like three such members, in the plain form."""
    assert crps([[1, 5]], [2], [3, 1], fair=False) == crps([[1, 1, 1, 5]], [2], fair=False)
    assert quantiles([[1, 5]], [0.75, 0.76], [3, 1]).tolist() == [[1, 5]]


def test_crps_up_to_a_horizon() -> None:
    """Values beyond the horizon count as the horizon, whatever they are."""
    members = [[10, 50, math.inf, math.inf]]
    assert crps(members, [math.inf], horizon=100) == crps([[10, 50, 100, 100]], [100])
    assert crps(members, [300], horizon=100) == crps(members, [101], horizon=100)
    with pytest.raises(QuantityError, match="give the horizon"):
        crps(members, [3])
    with pytest.raises(QuantityError, match="one member"):
        crps([[3]], [3])


@pytest.mark.parametrize("horizon", [None, 20.0])
def test_the_fair_crps_is_proper(horizon: float | None) -> None:
    """The true law has the best mean score, however few the members, among shifted and scaled."""
    draws = np.random.default_rng(1)
    cases = 40_000
    outcomes, members = draws.exponential(10, cases), draws.exponential(10, (cases, 3))
    truth = crps(members, outcomes, horizon=horizon).mean()
    for scale, shift in ((0.7, 0), (1.4, 0), (1, 3), (0.8, 2), (0, 7)):
        other = crps(scale * members + shift, outcomes, horizon=horizon).mean()
        assert truth < other


def test_the_plain_crps_prefers_too_narrow_small_ensembles() -> None:
    """What the fair form is for: with three members the plain form rewards a wrong spread."""
    draws = np.random.default_rng(2)
    outcomes, members = draws.normal(size=40_000), draws.normal(size=(40_000, 3))
    assert (
        crps(0.6 * members, outcomes, fair=False).mean()
        < crps(members, outcomes, fair=False).mean()
    )
    assert crps(0.6 * members, outcomes).mean() > crps(members, outcomes).mean()


# ---- quantiles, pinball and interval score ------------------------------------------------------


@given(st.lists(VALUES, min_size=1, max_size=9), st.floats(0.01, 0.99))
@settings(max_examples=100, deadline=None)
def test_quantiles_are_the_inverse_distribution(members: list[float], level: float) -> None:
    """The same as numpy's inverse distribution, with and without equal weights."""
    expected = np.quantile(members, level, method="inverted_cdf")
    assert expected == quantiles([members], [level])[0, 0]
    assert expected == quantiles([members], [level], np.full(len(members), 2.0))[0, 0]


def test_quantiles_beyond_the_horizon_are_infinite() -> None:
    """Half the members within the horizon give the median, not the upper quantiles."""
    found = quantiles([[3, math.inf, 1, math.inf]], [0.25, 0.5, 0.51, 0.95])
    assert [[1, 3, math.inf, math.inf]] == found.tolist()


@given(st.lists(VALUES, min_size=3, max_size=30), st.sampled_from(LEVELS), VALUES)
@settings(max_examples=100, deadline=None)
def test_the_pinball_loss_is_proper(outcomes: list[float], level: float, other: float) -> None:
    """Of a set of outcomes, their quantile has the smallest mean loss."""

    def loss(value: float) -> float:
        return float(pinball(np.full((len(outcomes), 1), value), outcomes, [level]).mean())

    best = float(quantiles([outcomes], [level])[0, 0])
    assert loss(best) <= loss(other) + 1e-9


def test_pinball_loss_by_hand() -> None:
    """Above the quantile level times the distance, below 1 - level times it."""
    assert [[0.5 * 4, 0.9 * 2]] == pinball([[6, 8]], [10], [0.5, 0.9]).tolist()
    assert pytest.approx(0.1 * 5) == pinball([[15]], [10], [0.9]).item()
    assert [[math.inf, 0]] == pinball([[5, math.inf]], [math.inf], [0.5, 0.9]).tolist()
    with pytest.raises(QuantityError, match=r"levels \[0.9, 0.5\]: ascending"):
        pinball([[6, 8]], [10], [0.9, 0.5])
    with pytest.raises(QuantityError, match=r"shape \(1, 2\): give \(cases, 1\)"):
        pinball([[6, 8]], [10], [0.9])


def test_interval_score_by_hand_and_by_pinball_losses() -> None:
    """Width plus penalty; which is the sum of the pinball losses of the ends, scaled."""
    assert [10, 10 + 20 * 2, 10 + 20 * 3] == pytest.approx(
        interval_score([5, 5, 5], [15, 15, 15], [5, 3, 18], 0.9).tolist()
    )
    outcomes = np.random.default_rng(3).normal(size=50)
    ends = np.tile([-1.0, 2.0], (50, 1))
    losses = pinball(ends, outcomes, [0.05, 0.95]).sum(axis=1) * 2 / 0.1
    assert losses == pytest.approx(interval_score(ends[:, 0], ends[:, 1], outcomes, 0.9))


def test_scores_of_quantiles_prefer_the_truth() -> None:
    """True quantiles have better mean scores than too wide, too narrow or shifted ones."""
    outcomes = np.random.default_rng(4).normal(size=20_000)
    truth = norm.ppf(LEVELS)

    def scores(predicted: np.ndarray) -> tuple[float, float]:
        wide = np.tile(predicted, (len(outcomes), 1))
        return (
            float(crps_of_quantiles(wide, outcomes, LEVELS).mean()),
            float(interval_score(wide[:, 0], wide[:, -1], outcomes, 0.9).mean()),
        )

    for other in (0.7 * truth, 1.4 * truth, truth + 0.3):
        assert all(best < worse for best, worse in zip(scores(truth), scores(other), strict=True))


# ---- coverage -----------------------------------------------------------------------------------


def uniform(values: np.ndarray) -> float:
    """Return the largest distance of the distribution of values from the uniform one."""
    ordered = np.sort(values)
    return float(np.abs(ordered - (np.arange(len(ordered)) + 0.5) / len(ordered)).max())


@pytest.mark.parametrize("size", [1, 4, 50])
def test_the_pit_is_uniform_with_atoms(size: int) -> None:
    """Ensembles of waits of which 60 % are 0 and 10 % beyond the horizon are calibrated."""
    draws = np.random.default_rng(size)
    waits = draws.exponential(100, (20_000, size + 1))
    waits[draws.random(waits.shape) < 0.6] = 0
    waits[draws.random(waits.shape) < 0.1] = math.inf
    values = pit(waits[:, 1:], waits[:, 0], draws)
    assert uniform(values) < 1.63 / math.sqrt(20_000)
    assert [0.5, 0.9] == pytest.approx(central_coverage(values, [0.5, 0.9]).tolist(), abs=0.012)


def test_closed_intervals_cover_more_with_atoms() -> None:
    """A central half from 0 on holds the whole atom, which says nothing about the forecast."""
    draws = np.random.default_rng(4)
    waits = np.where(draws.random((5000, 41)) < 0.6, 0, draws.exponential(100, (5000, 41)))
    ends = quantiles(waits[:, 1:], [0.25, 0.75])
    assert 0.7 < covered(ends[:, 0], ends[:, 1], waits[:, 0]) < 0.8
    values = pit(waits[:, 1:], waits[:, 0], draws)
    assert [0.5] == pytest.approx(central_coverage(values, [0.5]).tolist(), abs=0.02)


def test_the_pit_shows_wrong_spread() -> None:
    """Too narrow ensembles cover too little, too wide ones too much."""
    draws = np.random.default_rng(5)
    outcomes, members = draws.normal(size=5000), draws.normal(size=(5000, 40))
    narrow, wide = (
        central_coverage(pit(scale * members, outcomes, draws), [0.5, 0.9]) for scale in (0.5, 2)
    )
    assert (narrow < [0.35, 0.7]).all()
    assert (wide > [0.7, 0.99]).all()


def test_the_pit_with_weights() -> None:
    """Members drawn from another law and weighted to the right one are calibrated."""
    draws = np.random.default_rng(6)
    members, outcomes = draws.uniform(0, 1, (4000, 200)), draws.beta(2, 1, 4000)
    values = pit(members, outcomes, draws, weights=2 * members)
    assert uniform(values) < 0.03
    assert uniform(pit(members, outcomes, draws)) > 0.1


def test_the_pit_of_quantiles() -> None:
    """Five true quantiles of waits with an atom at 0 are calibrated at their levels."""
    draws = np.random.default_rng(7)
    waits = np.where(draws.random(20_000) < 0.5, 0, draws.exponential(100, 20_000))
    ends = np.where(np.array(LEVELS) <= 0.5, 0, -100 * np.log(2 * (1 - np.array(LEVELS))))
    values = pit_of_quantiles(np.tile(ends, (20_000, 1)), waits, LEVELS, draws)
    assert list(LEVELS) == pytest.approx([(values <= level).mean() for level in LEVELS], abs=0.012)
    assert [0.5, 0.9] == pytest.approx(central_coverage(values, [0.5, 0.9]).tolist(), abs=0.012)


def test_the_pit_of_quantiles_by_hand() -> None:
    """Linear between quantiles; within the range of levels at and beyond the ends."""

    def value(outcome: float, predicted: tuple[float, ...] = (10, 20, 20, 40, math.inf)) -> float:
        draws = np.random.default_rng(0)
        return float(pit_of_quantiles([predicted], [outcome], LEVELS, draws)[0])

    random = np.random.default_rng(0).random()
    assert pytest.approx(0.05 + 0.2 * 0.3) == value(13)
    assert pytest.approx(0.5 + 0.25 * 0.5) == value(30)
    assert pytest.approx(0.25 + 0.25 * random) == value(20)
    assert pytest.approx(0.05 * random) == value(10) == value(3)
    assert pytest.approx(0.75) == value(40)
    assert pytest.approx(0.75 + 0.2 * random) == value(50)
    assert pytest.approx(0.95 + 0.05 * random) == value(99, (1, 2, 3, 4, 5))
    assert pytest.approx(0.95 * random) == value(0, (0, 0, 0, 0, 0))


# ---- differences --------------------------------------------------------------------------------


def test_intervals_of_differences_cover_dependent_scores() -> None:
    """Blocks cover the mean of correlated differences far better than single cases do."""
    draws = np.random.default_rng(8)
    hits = {"blocks": 0, "single": 0}
    for _ in range(100):
        noise = draws.normal(size=460)
        series = np.convolve(noise, np.ones(12), "valid")[:400]
        for name, block in (("blocks", 30), ("single", 1)):
            found = mean_difference(series + 1, np.ones(400), draws, block=block)
            hits[name] += found.low <= 0 <= found.high
    assert hits["single"] < 60 < 83 < hits["blocks"]


def test_differences_are_paired() -> None:
    """What the cases share leaves no trace; the mean is exact, the block length by default."""
    draws = np.random.default_rng(9)
    shared = draws.exponential(1000, 300)
    found = mean_difference(shared + 2 + draws.normal(size=300), shared, draws)
    assert found.low < 2 < found.high
    assert found.half_width < 0.2
    assert 300 == found.count
    few = mean_difference([1, 2, 3], [0, 0, 0], draws)
    assert (2, None, None, 3) == (few.mean, few.low, few.high, few.count)
    with pytest.raises(QuantityError, match="give one of each case from both"):
        mean_difference([1, 2], [1], draws)
    with pytest.raises(QuantityError, match="leave such cases out"):
        mean_difference([1, math.inf], [1, 2], draws)
    with pytest.raises(QuantityError, match="block 0"):
        mean_difference([1, 1], [1, 2], draws, block=0)


def test_wrong_shapes_are_one_line() -> None:
    """Members, outcomes and weights that do not fit say so."""
    with pytest.raises(QuantityError, match=r"members of shape \(2,\)"):
        crps([1, 2], [1])
    with pytest.raises(QuantityError, match="one for each of 1"):
        crps([[1, 2]], [1, 2])
    with pytest.raises(QuantityError, match="weights of members"):
        quantiles([[1, 2]], [0.5], [0, 0])
    with pytest.raises(QuantityError, match="not numbers"):
        crps([[1, math.nan]], [1])
    with pytest.raises(QuantityError, match="coverage 90"):
        interval_score([1], [2], [3], 90)
