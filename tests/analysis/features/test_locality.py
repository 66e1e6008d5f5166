"""Temporal locality: classes of run times, run lengths, and the exponent of their distribution."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features.locality import SAMPLE, Classes, classify, run_lengths, zipf_exponent
from hpcrowd.analysis.features.normal_mixtures import NormalMixture, Points
from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.traces.trace import Trace
from numpy.typing import NDArray
from scipy import stats

#: Minh 2012, Table 3.5, for the logs available here.
PUBLISHED = {
    "HPC2N-2002-2.1": 2.26,
    "LLNL-Thunder": 2.92,
    "DAS2-fs1": 2.07,
    "SDSC-DS": 2.91,
}


def run_times(trace: Trace) -> NDArray[np.float64]:
    """Run times of the jobs of status 1 in the order of their submission, ties by job number."""
    kept = (trace["status"] == 1) & (trace["run"] >= 0)
    order = np.lexsort((trace["number"][kept], trace["submit"][kept]))
    return trace["run"][kept][order].astype(np.float64)


def three_groups(seed: int, size: int = 3_000) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Whole times around 100, 5,000 and 80,000 s that never overlap, and the group of each."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 3, size)
    times = random.normal(np.array([100, 5_000, 80_000])[group], np.array([5, 200, 3_000])[group])
    return np.round(times), group


def same(one: Classes, other: Classes) -> bool:
    """Whether two classifications agree in every digit."""
    return (
        np.array_equal(one.labels, other.labels)
        and np.array_equal(one.means, other.means)
        and np.array_equal(one.sds, other.sds)
        and dict(one.bic) == dict(other.bic)
    )


def test_groups_that_are_apart_are_found() -> None:
    """BIC finds three normal groups, their means, deviations, weights and every member."""
    times, group = three_groups(1)
    found = classify(times)
    assert 3 == found.components
    assert np.array_equal(group, found.labels)
    for number, (mean, sd) in enumerate(((100, 5), (5_000, 200), (80_000, 3_000))):
        count = np.count_nonzero(group == number)
        assert abs(found.means[number] - mean) < 4 * sd / count**0.5
        assert abs(found.sds[number] - sd) < 4 * sd / (2 * count) ** 0.5
        assert found.weights[number] == pytest.approx(count / len(times), abs=1e-3)
    assert found.converged
    assert not found.sampled


def test_bic_is_reported_for_all_that_were_tried() -> None:
    """The criterion of each number of components is there, and the smallest is the one chosen."""
    found = classify(three_groups(2)[0], most=6)
    assert list(range(1, 7)) == list(found.bic)
    assert found.components == min(found.bic, key=found.bic.__getitem__)
    assert 6 == found.most


def test_bic_of_one_component_is_the_textbooks() -> None:
    """It is -2 log-likelihood plus two parameters times log n."""
    times = np.round(np.random.default_rng(3).normal(1_000, 100, 500))
    sd = (times.var() + 1 / 12) ** 0.5
    expected = 2 * np.log(500) - 2 * stats.norm.logpdf(times, times.mean(), sd).sum()
    assert expected == pytest.approx(classify(times, most=1).bic[1])


def test_number_is_limited() -> None:
    """No more components than allowed, however many groups there are."""
    assert 2 == classify(three_groups(4)[0], most=2).components


def test_large_data_are_sampled_and_all_classified() -> None:
    """The fit uses a sample, says so, and still every value gets the class it belongs to."""
    times, group = three_groups(5, 30_000)
    found = classify(times, sample=1_000)
    assert 1_000 == found.fitted
    assert found.sampled
    assert "fitted to a sample of 1,000 of 30,000" in found.note
    assert np.array_equal(group, found.labels)


def test_order_of_values_only_orders_the_labels() -> None:
    """A permutation of the values permutes the labels; nothing else changes, nothing is random."""
    times = three_groups(6, 2_500)[0]
    order = np.random.default_rng(7).permutation(len(times))
    one, other = classify(times, sample=800), classify(times[order], sample=800)
    assert np.array_equal(one.labels[order], other.labels)
    assert np.array_equal(one.means, other.means)
    assert same(one, classify(times, sample=800))


@pytest.mark.parametrize("unit", [60, 1e-3, 1e9])
def test_unit_does_not_matter(unit: float) -> None:
    """Values and resolution in another unit give the same classes, in that unit."""
    times = three_groups(8)[0]
    one, other = classify(times), classify(times * unit, resolution=unit)
    assert np.array_equal(one.labels, other.labels)
    np.testing.assert_allclose(other.means, one.means * unit, rtol=1e-9)
    np.testing.assert_allclose(other.sds, one.sds * unit, rtol=1e-9)


def test_huge_values_lose_no_digits() -> None:
    """Spikes a second apart are distinguished also far from 0."""
    values = np.repeat([1e8, 1e8 + 10, 1e8 + 20], 100)
    assert np.array_equal(np.repeat([0, 1, 2], 100), classify(values).labels)


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
    ],
)
def test_degenerate_values(values: list[float], labels: list[int]) -> None:
    """One value, equal ones, three, and heavy ties are classified without a warning."""
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


def test_no_values_are_not_available() -> None:
    """Without values there is nothing to classify, and the reason is reported."""
    with pytest.raises(UnavailableError, match="no run times"):
        classify([])


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"most": 0}, "most 0"), ({"resolution": 0.0}, "resolution 0"), ({"sample": -1}, "sample -1")],
)
def test_settings_are_checked(settings: dict[str, float], told: str) -> None:
    """Numbers that make no sense are refused with name and value."""
    with pytest.raises(QuantityError, match=told):
        classify([1.0, 2.0], **settings)  # type: ignore[arg-type]


def test_values_that_are_not_finite_are_refused() -> None:
    """A run time that is not known must be left out first."""
    with pytest.raises(QuantityError, match="not finite"):
        classify([1.0, np.nan])


def test_no_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are found without scikit-learn."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert 3 == classify([1.0, 2.0, 300.0] * 50).components


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_mixtures_are_those_of_scikit_learn(number: int, dimensions: int) -> None:
    """From the same start, with ties, converged or not; but for rounding."""
    mixture = pytest.importorskip("sklearn.mixture")
    random = np.random.default_rng(dimensions)
    centre = random.integers(0, 4, 600)[:, None] * np.arange(1, dimensions + 1)
    values = np.round(centre + random.normal(0, 0.3, (600, dimensions)), 1)
    distinct, place, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    points = Points(distinct.T, count.astype(np.float64))
    label = np.arange(len(distinct)) % number
    start = NormalMixture.of_shares(points, np.equal(label, np.arange(number)[:, None]) * 1.0, 0.01)
    for steps in (3, 300):
        ours = start.fitted(points, least_variance=0.01, tolerance=1e-3, most_steps=steps)
        theirs = mixture.GaussianMixture(
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


@pytest.mark.parametrize(
    ("labels", "lengths"),
    [
        (list("AAAACCBBB"), [4, 2, 3]),  # Minh 2012, section 2.3.2
        ([], []),
        ([5], [1]),
        ([1, 1, 1], [3]),
        ([1, 2, 1], [1, 1, 1]),
    ],
)
def test_run_lengths(labels: list[object], lengths: list[int]) -> None:
    """A run ends where another label comes."""
    found = run_lengths(labels)
    assert lengths == found.tolist()
    assert np.int64 == found.dtype


@pytest.mark.parametrize("exponent", [1.2, 1.74, 2.26, 3.17, 5.0])
def test_known_exponent_is_found(exponent: float) -> None:
    """Over many samples the estimate is unbiased, and as spread as its standard error says."""
    fits = [
        zipf_exponent(stats.zipf.rvs(exponent, size=4_000, random_state=seed)) for seed in range(60)
    ]
    off = np.array([(fit.exponent - exponent) / fit.standard_error for fit in fits])
    assert abs(off.mean()) < 4 / len(off) ** 0.5
    assert abs(off.std(ddof=1) - 1) < 4 / (2 * len(off)) ** 0.5
    assert all(4_000 == fit.count for fit in fits)


def test_estimate_is_the_likeliest() -> None:
    """Its probabilities sum to one, and no exponent next to it has a higher likelihood."""
    lengths = [1, 1, 1, 2, 1, 5, 1, 3]
    fit = zipf_exponent(lengths)
    best = stats.zipf.logpmf(lengths, fit.exponent).sum()
    for off in (-1e-3, 1e-3):
        assert best > stats.zipf.logpmf(lengths, fit.exponent + off).sum()
    np.testing.assert_allclose(
        fit.probability([1, 2, 7]), stats.zipf.pmf([1, 2, 7], fit.exponent), rtol=1e-9
    )


def test_exponents_at_the_ends_are_found() -> None:
    """One repetition in a million, and nothing but huge lengths, have an exponent and an error."""
    rare = zipf_exponent(np.r_[np.ones(1_000_000), 2])
    assert np.log2(1_000_000) == pytest.approx(rare.exponent, rel=1e-3)
    assert rare.standard_error == pytest.approx(1 / np.log(2), rel=0.01)
    assert 1 < zipf_exponent([10**9]).exponent < 1.06


@pytest.mark.parametrize(
    ("lengths", "reason"), [([], "no bag sizes"), ([1, 1, 1], "all bag sizes are 1")]
)
def test_exponents_that_there_are_not(lengths: list[int], reason: str) -> None:
    """Without lengths, or with none above 1, no exponent is the likeliest; the reason is given."""
    with pytest.raises(UnavailableError, match=reason):
        zipf_exponent(lengths, "bag sizes")


@pytest.mark.parametrize("wrong", [0, -2, 1.5, np.nan, np.inf])
def test_lengths_are_checked(wrong: float) -> None:
    """A length is a whole number from 1 on."""
    with pytest.raises(QuantityError, match=f"lengths: {wrong:g}"):
        zipf_exponent([1, 2, wrong])


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_exponents(read_trace: Callable[[str], Trace], name: str) -> None:
    """Table 3.5 is reached within 0.2 by one rule for all logs; half the sample hardly matters."""
    times = run_times(read_trace(name))
    full, half = classify(times), classify(times, sample=SAMPLE // 2)
    assert full.converged
    exponent = zipf_exponent(run_lengths(full.labels)).exponent
    assert PUBLISHED[name] == pytest.approx(exponent, abs=0.2)
    assert exponent == pytest.approx(zipf_exponent(run_lengths(half.labels)).exponent, abs=0.1)
