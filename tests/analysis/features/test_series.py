"""Series: marginal statistics, distribution functions, autocorrelation, arrivals."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import series as s
from hpcrowd.environment.errors import QuantityError, UnavailableError


def test_moments_divide_by_one_less() -> None:
    """The variance has n - 1 below it."""
    found = s.moments([1, 2, 3, 4])
    assert (4, 2.5, 2.5, 1, 4) == (
        found.count,
        found.mean,
        found.median,
        found.smallest,
        found.largest,
    )
    assert found.sd == pytest.approx(np.sqrt(5 / 3))
    assert found.cv == pytest.approx(np.sqrt(5 / 3) / 2.5)


def test_equal_values_have_no_spread() -> None:
    """Values that are equal but no binary fractions have a standard deviation of exactly 0."""
    found = s.moments([0.1] * 7)
    assert (0.0, 0.0, 0.1) == (found.sd, found.cv, found.mean)


def test_what_cannot_be_told_of_a_series_is_said() -> None:
    """One value has no variance; a mean of 0 has no coefficient of variation."""
    with pytest.raises(UnavailableError, match="1 value, at least 2 are needed"):
        s.moments([5])
    with pytest.raises(UnavailableError, match="the mean is 0"):
        _ = s.moments([-1, 1]).cv


def test_distribution_functions_add_up_to_one() -> None:
    """The CDF counts values not larger, the CCDF those larger; equal values are one step."""
    x, share = s.cdf([3, 1, 1, 2])
    assert [1, 2, 3] == x.tolist()
    assert [0.5, 0.75, 1.0] == share.tolist()
    x, above = s.ccdf([3, 1, 1, 2])
    assert [0.5, 0.25, 0.0] == above.tolist()


def test_autocorrelation_of_a_wave_shows_its_period() -> None:
    """A wave of period 24 matches itself at a lag of 24, and its opposite at 12."""
    wave = np.sin(2 * np.pi * np.arange(2400) / 24)
    found = s.autocorrelation(wave, 48)
    assert 49 == len(found)
    assert found[0] == pytest.approx(1)
    assert found[24] == pytest.approx(1 - 24 / 2400, abs=1e-9)
    assert found[12] == pytest.approx(-(1 - 12 / 2400), abs=1e-9)


def test_autocorrelation_is_the_sum_of_products() -> None:
    """The fast transform gives the same as Eq. 2.1 written out."""
    values = np.random.default_rng(1).normal(size=50)
    deviation = values - values.mean()
    plain = [(deviation[: 50 - k] * deviation[k:]).sum() / (deviation**2).sum() for k in range(20)]
    np.testing.assert_allclose(s.autocorrelation(values, 19), plain, atol=1e-12)


def test_noise_has_no_autocorrelation() -> None:
    """Of independent values, 95 % of the lags lie within 1.96 / sqrt(n), give or take."""
    found = s.autocorrelation(np.random.default_rng(2).normal(size=10_000), 1000)[1:]
    inside = np.mean(np.abs(found) < 1.96 / np.sqrt(10_000))
    assert inside == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 1000))


@pytest.mark.parametrize(
    ("values", "lags", "reason"),
    [
        ([1, 1, 1], 1, "all values are equal"),
        ([1, 2], 2, "fewer than the lag"),
        ([1], 0, "1 value,"),
    ],
)
def test_autocorrelation_says_what_it_lacks(values: list[float], lags: int, reason: str) -> None:
    """A constant or short series has none, and says so."""
    with pytest.raises(UnavailableError, match=reason):
        s.autocorrelation(values, lags)


def test_counts_begin_with_the_first_arrival() -> None:
    """Intervals are counted from the first arrival to that of the last; the origin is nothing."""
    assert [2, 0, 1] == s.counts([100, 109.9, 120], 10).tolist()
    assert [2, 0, 1] == s.counts([0, 9.9, 20], 10).tolist()
    assert [0.2, 0, 0.1] == s.rates([0, 9.9, 20], 10).tolist()
    assert [1] == s.counts([7], 10).tolist()


def test_counts_refuse_what_would_fill_the_memory() -> None:
    """Far too short a time scale is reported instead of tried."""
    with pytest.raises(UnavailableError, match="more than 50,000,000 intervals"):
        s.counts([0, 1e9], 1)
    with pytest.raises(QuantityError, match="time scale 0: must be positive"):
        s.counts([0, 1], 0)


def test_equal_values_share_their_rank() -> None:
    """Ranks of ties are averaged, as in section 2.1.3."""
    first, second = [1, 2, 2, 3], [1, 3, 2, 4]
    ranks = np.array([1, 2.5, 2.5, 4]), np.array([1, 3, 2, 4])
    expected = np.corrcoef(*ranks)[0, 1]
    assert s.spearman(first, second) == pytest.approx(expected)
    assert s.spearman(np.arange(9), np.exp(np.arange(9))) == pytest.approx(1)
    assert s.pearson(np.arange(9), -2.0 * np.arange(9)) == pytest.approx(-1)


@pytest.mark.parametrize("correlation", [s.spearman, s.pearson])
def test_correlation_with_a_constant_is_not_available(correlation: object) -> None:
    """What does not vary correlates with nothing; two pairs say nothing either."""
    with pytest.raises(UnavailableError, match="one of the two does not vary"):
        correlation([1, 2, 3], [5, 5, 5])  # type: ignore[operator]
    with pytest.raises(UnavailableError, match="at least 3 are needed"):
        correlation([1, 2], [2, 1])  # type: ignore[operator]


def test_interarrivals_recreate_the_arrivals() -> None:
    """They keep the whole information (section 2.2)."""
    times = np.array([3.0, 3.0, 10.0, 11.5])
    np.testing.assert_allclose(times, times[0] + np.r_[0, np.cumsum(s.interarrivals(times))])
