"""The Hurst parameter: known on fractional noise, shifted by nothing, told where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features.arrivals import arrival_hurst
from hpcrowd.analysis.features.series import SHORTEST, hurst
from hpcrowd.environment.errors import UnavailableError

from tests.analysis.features.feature_cases import fractional_noise, poisson_workload

#: Length and number of the series.
LENGTH, SERIES = 16_384, 12

#: How far estimators may lie from the truth on series of this length, apart from chance: variance
#: and R/S are low where H is high (Taqqu et al. 1995), R/S is high where there is no dependence.
BIAS = {0.5: 0.03, 0.6: 0.02, 0.7: 0.02, 0.8: 0.03, 0.9: 0.05}


@pytest.mark.parametrize("h", BIAS)
def test_fractional_noise_has_its_parameter(h: float) -> None:
    """Each estimator finds the H of fractional Gaussian noise, within chance and its known bias."""
    found = np.array([hurst(fractional_noise(h, LENGTH, seed)).estimates for seed in range(SERIES)])
    chance = 4 * found.std(axis=0, ddof=1) / np.sqrt(SERIES)
    assert (np.abs(found.mean(axis=0) - h) < BIAS[h] + chance).all(), found.mean(axis=0)


def test_mean_and_spread_are_those_of_the_three() -> None:
    """Mean and n - 1 deviation are taken over the three estimates (section 3.2)."""
    found = hurst(fractional_noise(0.7, 2000, 1))
    assert found.mean == pytest.approx(sum(found.estimates) / 3)
    assert found.sd == pytest.approx(np.std(found.estimates, ddof=1))


def test_poisson_arrivals_have_no_long_range_dependence() -> None:
    """Counts of Poisson arrivals have H = 0.5, within chance and bias."""
    found = [arrival_hurst(poisson_workload(40_000, 300, seed)).mean for seed in range(6)]
    chance = 4 * np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(0.5, abs=BIAS[0.5] + chance)


def test_scale_and_shift_of_the_series_do_not_matter() -> None:
    """H of counts is that of rates."""
    series = fractional_noise(0.8, 3000, 3)
    np.testing.assert_allclose(
        hurst(series).estimates, hurst(900 * series + 5e3).estimates, atol=1e-6
    )


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        (np.ones(5000), "does not vary"),
        (np.arange(SHORTEST - 1), f"at least {SHORTEST} are needed"),
        (np.r_[np.zeros(5000), 1.0], "too few block sizes without constant blocks"),
        ([], "0 intervals"),
    ],
)
def test_what_has_no_parameter_says_why(series: object, reason: str) -> None:
    """Constant, short and almost constant series are reported as such, without a warning."""
    with pytest.raises(UnavailableError, match=reason):
        hurst(series)  # type: ignore[arg-type]
