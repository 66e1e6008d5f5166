"""Series: marginal statistics, distributions, arrivals, Hurst; how far workloads are apart."""

import numpy as np
import pytest
from hpcrowd.analysis.features import series as s
from hpcrowd.analysis.features.series import SHORTEST, hurst
from hpcrowd.analysis.features.stats import VARIABLES, Apart, Difference, apart
from hpcrowd.environment.errors import HpcrowdError, UnavailableError
from hpcrowd.features import FEATURES, distance_of, measure

from tests.analysis.features import feature_cases as made


def test_statistics_are_as_defined():
    """All are as defined: a variance has n - 1 below it, and is exactly 0 for equal values."""
    found = s.moments([1, 2, 3, 4])
    numbers = (found.count, found.mean, found.median, found.smallest, found.largest)
    assert (4, 2.5, 2.5, 1, 4) == numbers
    assert found.sd == pytest.approx(np.sqrt(5 / 3))
    assert found.cv == pytest.approx(np.sqrt(5 / 3) / 2.5)
    found = s.moments([0.1] * 7)
    assert (0.0, 0.0, 0.1) == (found.sd, found.cv, found.mean)
    # The CDF counts values not larger, the CCDF those larger; equal values are one step.
    x, share = s.cdf([3, 1, 1, 2])
    assert ([1, 2, 3], [0.5, 0.75, 1.0]) == (x.tolist(), share.tolist())
    assert [0.5, 0.25, 0.0] == s.ccdf([3, 1, 1, 2])[1].tolist()
    # The fast transform gives the same as Eq. 2.1 written out.
    values = np.random.default_rng(1).normal(size=50)
    deviation = values - values.mean()
    plain = [(deviation[: 50 - k] * deviation[k:]).sum() / (deviation**2).sum() for k in range(20)]
    np.testing.assert_allclose(s.autocorrelation(values, 19), plain, atol=1e-12)
    # Intervals are counted from the first arrival to that of the last; the origin is nothing.
    assert [2, 0, 1] == s.counts([100, 109.9, 120], 10).tolist()
    assert [0.2, 0, 0.1] == s.rates([0, 9.9, 20], 10).tolist()
    assert [1] == s.counts([7], 10).tolist()
    assert [0, 7, 1.5] == s.interarrivals([3.0, 3.0, 10.0, 11.5]).tolist()
    # Ranks of ties are averaged, as in section 2.1.3.
    ranks = np.array([1, 2.5, 2.5, 4]), np.array([1, 3, 2, 4])
    expected = np.corrcoef(*ranks)[0, 1]
    assert s.spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(expected)
    assert s.spearman(np.arange(9), np.exp(np.arange(9))) == pytest.approx(1)
    assert s.pearson(np.arange(9), -2.0 * np.arange(9)) == pytest.approx(-1)


#: How far estimators may lie from the truth on series of this length, apart from chance: variance
#: and R/S are low where H is high (Taqqu et al. 1995), R/S is high where there is no dependence.
BIAS = {0.5: 0.03, 0.6: 0.02, 0.7: 0.02, 0.8: 0.03, 0.9: 0.05}


@pytest.mark.parametrize("h", BIAS)
def test_fractional_noise_has_its_hurst_parameter(h):
    """Each estimator finds the H of fractional Gaussian noise, within chance and its known bias."""
    found = np.array(
        [hurst(made.fractional_noise(h, 16_384, seed)).estimates for seed in range(12)]
    )
    chance = 4 * found.std(axis=0, ddof=1) / np.sqrt(12)
    assert (np.abs(found.mean(axis=0) - h) < BIAS[h] + chance).all(), found.mean(axis=0)


def test_mean_and_spread_of_hurst_are_those_of_the_three():
    """Mean and n - 1 deviation are of the three (section 3.2); scale and shift do not matter."""
    series = made.fractional_noise(0.7, 2000, 1)
    found = hurst(series)
    assert found.mean == pytest.approx(sum(found.estimates) / 3)
    assert found.sd == pytest.approx(np.std(found.estimates, ddof=1))
    np.testing.assert_allclose(found.estimates, hurst(900 * series + 5e3).estimates, atol=1e-6)


@pytest.mark.parametrize(("measure", "values", "reason"), [
    (s.moments, ([5],), "1 value, at least 2 are needed"),
    (lambda values: s.moments(values).cv, ([-1, 1],), "the mean is 0"),
    (s.autocorrelation, ([1, 1, 1], 1), "all values are equal"),
    (s.autocorrelation, ([1, 2], 2), "fewer than the lag"),
    (s.autocorrelation, ([1], 0), "1 value,"),
    (s.counts, ([0, 1e9], 1), "more than 50,000,000 intervals"),
    (s.counts, ([0, 1], 0), "time scale 0: must be positive"),
    (s.spearman, ([1, 2, 3], [5, 5, 5]), "one of the two does not vary"),
    (s.pearson, ([1, 2], [2, 1]), "at least 3 are needed"),
    (hurst, (np.ones(5000),), "does not vary"),
    (hurst, (np.arange(SHORTEST - 1),), f"at least {SHORTEST} are needed"),
    (hurst, (np.r_[np.zeros(5000), 1.0],), "too few block sizes without constant blocks"),
    (hurst, ([],), "0 intervals"),
])  # fmt: skip
def test_what_cannot_be_told_of_a_series_is_said(measure, values, reason):
    """Short, constant and far too long series are reported as such, without a warning."""
    with pytest.raises(HpcrowdError, match=reason):
        measure(*values)


def test_a_workload_is_not_apart_from_itself():
    """Every distance and every difference is 0."""
    one = measure(made.bursty_workload(500, 1), FEATURES.values())
    found = distance_of(one, one)
    assert set(VARIABLES) == set(found.distributions)
    for name, distribution in found.distributions.items():
        assert Apart(0, 0, 0) == distribution, name
    known = [d for d in found.differences.values() if isinstance(d, Difference)]
    assert len(known) > 80
    assert {0} == {one.difference for one in known}


def test_distances_of_shifted_values_are_known():
    """A shift moves everything by itself."""
    values = np.arange(100.0)
    for shift, ks in ((10, 0.1), (1000, 1)):
        found = apart(values, values + shift)
        assert (ks, shift) == pytest.approx((found.ks, found.wasserstein))
        assert found.wasserstein_relative == pytest.approx(shift / 49.5)
    assert apart([0, 0], [1]).wasserstein_relative is None
    with pytest.raises(UnavailableError, match="no values"):
        apart([], [1])
    # Difference and relative difference; none relative to 0.
    for both, relative in (((2, 3), 0.5), ((-2, -1), 0.5), ((3, 4), 1 / 3), ((0, 1), None)):
        assert (1, relative) == (Difference(*both).difference, Difference(*both).relative)


def test_what_one_side_lacks_is_reported():
    """The second workload has no waits: no distance of waits, and it is said whose they are."""
    first = measure(made.poisson_workload(500, 300, 1), FEATURES.values())
    second = measure(made.poisson_workload(500, 300, 1, wait=-1), FEATURES.values())
    found = distance_of(first, second)
    assert "no waits recorded" == found.distributions["wait"]
    assert "second: no waits recorded" == found.differences["wait_mean_s"]
    wire = found.to_json()
    assert "no waits recorded" == wire["not_available"]["wait (distribution)"]
    nothing = {"ks": 0.0, "wasserstein": 0.0, "wasserstein_relative": 0.0, "unit": "s"}
    assert nothing == wire["distributions"]["run_time"]
