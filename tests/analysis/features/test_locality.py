"""Temporal locality: classes of run times, run lengths, and the exponent of their distribution."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.features.locality import classify, run_lengths, zipf_exponent
from hpcrowd.analysis.features.normal_mixtures import NormalMixture, Points
from hpcrowd.environment.errors import HpcrowdError
from numpy.typing import NDArray
from scipy import stats
from sklearn.mixture import GaussianMixture


def three_groups(seed: int, size: int = 3_000) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Whole times around 100, 5,000 and 80,000 s that never overlap, and the group of each."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 3, size)
    times = random.normal(np.array([100, 5_000, 80_000])[group], np.array([5, 200, 3_000])[group])
    return np.round(times), group


def test_groups_that_are_apart_are_found() -> None:
    """BIC, reported for all that were tried, finds three normal groups and every member."""
    times, group = three_groups(1)
    found = classify(times, most=6)
    assert 3 == found.components
    assert np.array_equal(group, found.labels)
    for number, (mean, sd) in enumerate(((100, 5), (5_000, 200), (80_000, 3_000))):
        count = np.count_nonzero(group == number)
        assert abs(found.means[number] - mean) < 4 * sd / count**0.5
        assert abs(found.sds[number] - sd) < 4 * sd / (2 * count) ** 0.5
        assert found.weights[number] == pytest.approx(count / len(times), abs=1e-3)
    assert (True, False) == (found.converged, found.sampled)
    assert list(range(1, 7)) == list(found.bic)
    assert found.components == min(found.bic, key=found.bic.__getitem__)
    assert 2 == classify(times, most=2).components


def test_large_data_are_sampled_and_all_classified() -> None:
    """The fit uses a sample, says so, and still every value gets the class it belongs to."""
    times, group = three_groups(5, 30_000)
    found = classify(times, sample=1_000)
    assert (1_000, True) == (found.fitted, found.sampled)
    assert "fitted to a sample of 1,000 of 30,000" in found.note
    assert np.array_equal(group, found.labels)


def test_order_of_values_only_orders_the_labels() -> None:
    """A permutation of the values permutes the labels; nothing else changes, nothing is random."""
    times = three_groups(6, 2_500)[0]
    order = np.random.default_rng(7).permutation(len(times))
    one, other, again = (classify(each, sample=800) for each in (times, times[order], times))
    assert np.array_equal(one.labels[order], other.labels)
    assert np.array_equal(one.labels, again.labels)
    for found in (other, again):
        assert np.array_equal(one.means, found.means)
        assert dict(one.bic) == dict(again.bic)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([7], [0]),
        ([0, 0], [0, 0]),
        ([5.0] * 1_000, [0] * 1_000),
        ([10, 1_000, 100_000], [0, 1, 2]),
        ([0, 0, 0, 0, 900, 900, 900], [0, 0, 0, 0, 1, 1, 1]),
        ([0] * 999 + [86_400], [0] * 999 + [1]),
        ([0] * 5_000 + list(range(1_000, 2_000)), [0] * 5_000 + [1] * 1_000),
        # Spikes a second apart are distinguished also far from 0.
        ([1e8] * 99 + [1e8 + 10] * 99 + [1e8 + 20] * 99, [0] * 99 + [1] * 99 + [2] * 99),
    ],
)
def test_degenerate_values(
    values: list[float], labels: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value, equal ones, three, and heavy ties are classified without a warning or an extra."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    found = classify(values, most=3)
    # Beyond the classes that must be apart, a broad one may be split.
    assert labels == list(np.minimum(found.labels, max(labels)))
    assert np.all(found.sds >= 12**-0.5 * (1 - 1e-9))
    assert np.isfinite([*found.bic.values(), *found.means, *found.weights]).all()


def test_heavy_ties_leave_room_for_the_other_values() -> None:
    """Where nearly all values are equal, the few others still get as many groups as are tried."""
    times, group = three_groups(9)
    found = classify(np.concatenate([np.zeros(20 * len(times)), times]), sample=100_000)
    assert np.array_equal(group + 1, found.labels[-len(times) :])


@pytest.mark.parametrize("exponent", [1.2, 2.26, 5.0])
def test_known_exponent_is_found(exponent: float) -> None:
    """Over many samples the estimate is the likeliest, unbiased, and as spread as it says."""
    lengths = [stats.zipf.rvs(exponent, size=4_000, random_state=seed) for seed in range(60)]
    fits = [zipf_exponent(one) for one in lengths]
    off = np.array([(fit.exponent - exponent) / fit.standard_error for fit in fits])
    assert abs(off.mean()) < 4 / len(off) ** 0.5
    assert abs(off.std(ddof=1) - 1) < 4 / (2 * len(off)) ** 0.5
    assert {4_000} == {fit.count for fit in fits}
    best = stats.zipf.logpmf(lengths[0], fits[0].exponent).sum()
    for step in (-1e-3, 1e-3):
        assert best > stats.zipf.logpmf(lengths[0], fits[0].exponent + step).sum()
    expected = stats.zipf.pmf([1, 2, 7], fits[0].exponent)
    np.testing.assert_allclose(fits[0].probability([1, 2, 7]), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("find", "values", "told"),
    [
        (classify, {"values": []}, "no run times"),
        (classify, {"values": [1.0, np.nan]}, "not finite"),
        (classify, {"values": [1.0, 2.0], "most": 0}, "most 0"),
        (classify, {"values": [1.0, 2.0], "resolution": 0.0}, "resolution 0"),
        (classify, {"values": [1.0, 2.0], "sample": -1}, "sample -1"),
        (zipf_exponent, {"lengths": [], "what": "bag sizes"}, "no bag sizes"),
        (zipf_exponent, {"lengths": [1, 1, 1], "what": "bag sizes"}, "all bag sizes are 1"),
        (zipf_exponent, {"lengths": [1, 2, 0]}, "lengths: 0"),
        (zipf_exponent, {"lengths": [1, 2, 1.5]}, "lengths: 1.5"),
        (zipf_exponent, {"lengths": [1, 2, np.nan]}, "lengths: nan"),
        (zipf_exponent, {"lengths": [1, 2, np.inf]}, "lengths: inf"),
    ],
)
def test_what_has_no_classes_or_exponent(
    find: Callable[..., object], values: dict[str, Any], told: str
) -> None:
    """Values that there are not, and settings that make no sense, are reported as such."""
    with pytest.raises(HpcrowdError, match=told):
        find(**values)


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_mixtures_are_those_of_scikit_learn(number: int, dimensions: int) -> None:
    """From the same start, with ties, converged or not; but for rounding."""
    random = np.random.default_rng(dimensions)
    centre = random.integers(0, 4, 600)[:, None] * np.arange(1, dimensions + 1)
    values = np.round(centre + random.normal(0, 0.3, (600, dimensions)), 1)
    distinct, place, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    points = Points(distinct.T, count.astype(np.float64))
    label = np.arange(len(distinct)) % number
    start = NormalMixture.of_shares(points, np.equal(label, np.arange(number)[:, None]) * 1.0, 0.01)
    for steps in (3, 300):
        ours = start.fitted(points, least_variance=0.01, tolerance=1e-3, most_steps=steps)
        theirs = GaussianMixture(
            number, weights_init=start.weights, means_init=start.means,
            precisions_init=np.linalg.inv(start.covariances), reg_covar=0.01, max_iter=steps,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence
            theirs.fit(values)
        assert theirs.converged_ == ours.converged
        for name in ("weights", "means", "covariances"):
            expected = getattr(theirs, f"{name}_")
            assert expected == pytest.approx(getattr(ours, name), rel=1e-6, abs=1e-6)
        assert theirs.bic(values) == pytest.approx(ours.bic(points), rel=1e-9)
        assert theirs.predict(values).tolist() == ours.likeliest(distinct.T)[place].tolist()


def test_runs_and_exponents_at_the_ends() -> None:
    """A run ends where another label comes; rare repetitions and huge lengths have an exponent."""
    for labels, lengths in (("AAAACCBBB", [4, 2, 3]), ("", []), ("A", [1]), ("ABA", [1, 1, 1])):
        assert lengths == run_lengths(list(labels)).tolist()
    rare = zipf_exponent(np.r_[np.ones(1_000_000), 2])
    assert np.log2(1_000_000) == pytest.approx(rare.exponent, rel=1e-3)
    assert rare.standard_error == pytest.approx(1 / np.log(2), rel=0.01)
    assert 1 < zipf_exponent([10**9]).exponent < 1.06
