"""Bags of tasks, the gaps between them, classes of run times, and runs of the same class."""

import sys
import warnings

import numpy as np
import pytest
from hpcrowd.analysis.features.bags import NO_GAP_S, SAME, bags, fit, same_job_gaps
from hpcrowd.analysis.features.feature import value_of
from hpcrowd.analysis.features.locality import (
    NormalMixture,
    Points,
    classify,
    run_lengths,
    zipf_exponent,
)
from hpcrowd.environment.errors import HpcrowdError, QuantityError, UnavailableError
from hpcrowd.features import FEATURES, Settings, Workload
from scipy import stats
from sklearn.mixture import GaussianMixture


def sizes(workload):
    """Return the sizes of bags."""
    return bags(workload).size


@pytest.mark.parametrize(("find", "given", "more", "expected"), [
    (sizes, ([0, 100, 201, 250], 10), {}, [2, 2]),
    (sizes, ([0, 100, 201, 250], 10), {"settings": Settings(bag_gap_s=99)}, [1, 1, 2]),
    (sizes, ([0, 100, 201, 250], 10), {"settings": Settings(bag_gap_s=101)}, [4]),
    (sizes, ([0, 0, 0], 10), {"user": [1, 2, 1]}, [1, 1, 1]),
    # User, group, queue, executable, request and processors have to agree (section 2.3.3).
    *((sizes, ([0, 1, 2, 3], 10), {column: [1, 1, 2, 2]}, [2, 2]) for column in SAME),
    # Who knows the result may have reacted to it (section 3.4); unknown waits say nothing.
    (same_job_gaps, ([0, 50, 300], [60, 10, 5]), {"wait": 0}, [50]),
    (same_job_gaps, ([0, 50, 300], [60, 10, 5]), {}, [50, 250]),
])  # fmt: skip
def test_a_gap_of_a_hundred_seconds_is_still_a_bag(find, given, more, expected):
    """Like neighbours within 100 s form a bag; a second more, or another's job, ends it."""
    assert expected == find(Workload.of(*given, **more)).tolist()


@pytest.mark.parametrize(("workload", "expected"), [
    (Workload.of([0, 10, 1000], [60, 120, 20], [2, 2, 5], requested_time=[200, 200, 20],
                 wait=[30, 10, 0]),
     {"jobs_in_bags_share": 2 / 3, "bag_size_mean": 2, "bag_size_max": 2,
      "bag_run_time_cv_mean": 1 / 3, "bag_duration_mean_s": 10, "bag_duration_short_share": 1,
      "bag_use_of_estimates": 180 / 400, "bag_occupation_share": 360 / 460,
      "bag_interarrival_mean_s": "1 value, at least 2 are needed", "bag_wait_share": 1,
      "bag_job_run_time_mean_s": 90, "bag_same_job_gap_share": 1}),
    # Bags that took no time have no CV, and are left out of the mean.
    (Workload.of([0, 1, 500, 501], [0, 0, 10, 30]), {"bag_run_time_cv_mean": 0.5}),
    (Workload.of([0, 1], 0), {"bag_run_time_cv_mean": "all run times are 0"}),
    # Single jobs alone: no bag to measure, but bags of one do arrive.
    (Workload.of([0, 1000, 2000], 10),
     {"jobs_in_bags_share": 0, "bag_interarrival_mean_s": 1000,
      "bag_size_mean": "no bag of two jobs or more"}),
])  # fmt: skip
def test_features_of_bags_of_a_tiny_workload(workload, expected):
    """Shares, means and occupation, worked out by hand; what is missing says why."""
    for name, one in expected.items():
        found = value_of(FEATURES[name], workload)
        if isinstance(one, str):
            assert one == found.reason
        else:
            assert found.number == pytest.approx(one), name


@pytest.mark.parametrize(("distribution", "frozen", "truth"), [
    ("generalized_pareto", stats.genpareto(0.8, scale=40), {"shape": 0.8, "scale_s": 40}),
    ("weibull", stats.weibull_min(0.6, scale=90), {"shape": 0.6, "scale_s": 90}),
    ("lognormal", stats.lognorm(1.5, scale=np.exp(3)), {"mu": 3, "sigma": 1.5}),
    ("gamma", stats.gamma(0.5, scale=400), {"shape": 0.5, "scale_s": 400}),
    ("exponential", stats.expon(scale=180), {"mean_s": 180}),
])  # fmt: skip
def test_a_fit_finds_known_parameters(distribution, frozen, truth):
    """On several samples the mean of each parameter is the true one, within chance."""
    fits = [
        fit(frozen.rvs(3000, random_state=np.random.default_rng(seed)), distribution)
        for seed in range(12)
    ]
    for name, true in truth.items():
        found = np.array([one.parameters[name] for one in fits])
        chance = 4 * found.std(ddof=1) / np.sqrt(len(found))
        assert found.mean() == pytest.approx(true, abs=chance), name
    # The distance that a fit names is that of its distribution function.
    times = np.sort(np.random.default_rng(3).gamma(0.7, 400, 2000))
    found, steps = fit(times, distribution), np.arange(2001) / 2000
    apart = np.abs([found.cdf(times) - steps[1:], found.cdf(times) - steps[:-1]]).max()
    assert found.ks == pytest.approx(apart, abs=1e-9)


def test_what_cannot_be_fitted_is_said():
    """Too few or equal times have no fit; a gap of 0 s stands for 1e-7 s."""
    for times, distribution, error, words in (
        ([1, 2], "gamma", UnavailableError, "2 times between bags"),
        ([5, 5, 5], "gamma", UnavailableError, "all times between bags are equal"),
        ([1, 2, -1], "gamma", QuantityError, "-1 s; must not be negative"),
        ([1, 2, 3], "zipf", QuantityError, "'zipf': choose generalized_pareto"),
    ):
        with pytest.raises(error, match=words):
            fit(times, distribution)
    found, logs = fit([0, 10, 1000], "lognormal").parameters, np.log([NO_GAP_S, 10, 1000])
    assert (logs.mean(), logs.std()) == pytest.approx((found["mu"], found["sigma"]))


def three_groups(seed, size=3000):
    """Whole times around 100, 5,000 and 80,000 s that never overlap, and the group of each."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 3, size)
    times = random.normal(np.array([100, 5_000, 80_000])[group], np.array([5, 200, 3_000])[group])
    return np.round(times), group


def test_groups_that_are_apart_are_found():
    """BIC, reported for all that were tried, finds three normal groups and every member."""
    times, group = three_groups(1)
    found, count = classify(times, most=6), np.bincount(group)
    assert (3, True, False) == (found.components, found.converged, found.sampled)
    assert np.array_equal(group, found.labels)
    sds = np.array([5, 200, 3_000])
    assert (np.abs(found.means - [100, 5_000, 80_000]) < 4 * sds / count**0.5).all()
    assert (np.abs(found.sds - sds) < 4 * sds / (2 * count) ** 0.5).all()
    assert count / len(times) == pytest.approx(found.weights, abs=1e-3)
    assert list(range(1, 7)) == list(found.bic)
    assert 2 == classify(times, most=2).components


def test_large_data_are_sampled_and_all_classified():
    """The fit uses a sample, says so, and still every value gets the class it belongs to."""
    times, group = three_groups(5, 30_000)
    found = classify(times, sample=1_000)
    assert (1_000, True) == (found.fitted, found.sampled)
    assert "fitted to a sample of 1,000 of 30,000" in found.note
    assert np.array_equal(group, found.labels)


@pytest.mark.parametrize(("values", "labels"), [
    ([7], [0]),
    ([0, 0], [0, 0]),
    ([5.0] * 1_000, [0] * 1_000),
    ([10, 1_000, 100_000], [0, 1, 2]),
    ([0, 0, 0, 0, 900, 900, 900], [0, 0, 0, 0, 1, 1, 1]),
    ([0] * 999 + [86_400], [0] * 999 + [1]),
    ([0] * 5_000 + list(range(1_000, 2_000)), [0] * 5_000 + [1] * 1_000),
    # Spikes a second apart are distinguished also far from 0.
    ([1e8] * 99 + [1e8 + 10] * 99 + [1e8 + 20] * 99, [0] * 99 + [1] * 99 + [2] * 99),
])  # fmt: skip
def test_degenerate_values(values, labels, monkeypatch):
    """One value, equal ones, three, and heavy ties are classified without a warning or an extra."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    found = classify(values, most=3)
    # Beyond the classes that must be apart, a broad one may be split.
    assert labels == list(np.minimum(found.labels, max(labels)))
    assert np.all(found.sds >= 12**-0.5 * (1 - 1e-9))
    assert np.isfinite([*found.bic.values(), *found.means, *found.weights]).all()


@pytest.mark.parametrize("exponent", [1.2, 2.26, 5.0])
def test_known_exponent_is_found(exponent):
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


@pytest.mark.parametrize(("find", "values", "told"), [
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
])  # fmt: skip
def test_what_has_no_classes_or_exponent(find, values, told):
    """Values that there are not, and settings that make no sense, are reported as such."""
    with pytest.raises(HpcrowdError, match=told):
        find(**values)


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_mixtures_are_those_of_scikit_learn(number, dimensions):
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


def test_runs_and_exponents_at_the_ends():
    """A run ends where another label comes; rare repetitions and huge lengths have an exponent."""
    for labels, lengths in (("AAAACCBBB", [4, 2, 3]), ("", []), ("A", [1]), ("ABA", [1, 1, 1])):
        assert lengths == run_lengths(list(labels)).tolist()
    rare = zipf_exponent(np.r_[np.ones(1_000_000), 2])
    assert np.log2(1_000_000) == pytest.approx(rare.exponent, rel=1e-3)
    assert rare.standard_error == pytest.approx(1 / np.log(2), rel=0.01)
