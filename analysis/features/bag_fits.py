"""Distributions fitted to the times between bags (Minh 2012, section 3.5.1, Tables 3.9 and 3.10).

Parameters are by maximum likelihood, with the threshold at 0, named and parametrized as in the
thesis. A distance is the largest one between the distribution functions (Kolmogorov-Smirnov).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.features.feature import Unavailable
from environment.errors import QuantityError

#: s; what stands for two bags in the same second, as densities at 0 may be infinite (the value
#: that reaches Table 3.9).
NO_GAP_S = 1e-7

#: Names of the distributions' parameters, in the order of Table 3.9; with ``_s`` they are in s.
PARAMETERS = {
    "generalized_pareto": ("shape", "scale_s"),
    "weibull": ("shape", "scale_s"),
    "lognormal": ("mu", "sigma"),
    "gamma": ("shape", "scale_s"),
    "exponential": ("mean_s",),
}


@dataclass(frozen=True)
class Fit:
    """A distribution fitted to data.

    Attributes
    ----------
    distribution
        A name of :data:`PARAMETERS`.
    parameters
        By name.
    ks
        Largest distance between its distribution function and that of the data.
    """

    distribution: str
    parameters: dict[str, float]
    ks: float


def fit(values: ArrayLike, distribution: str) -> Fit:
    """Return a distribution fitted to times between bags.

    Parameters
    ----------
    values
        s, at least 0, shape (n,); zeros count as :data:`NO_GAP_S`.
    distribution
        A name of :data:`PARAMETERS`.

    Raises
    ------
    Unavailable
        When there are fewer than three values, or all are equal.
    QuantityError
        When the distribution is not known, or a value is negative.
    """
    from scipy import stats

    if distribution not in PARAMETERS:
        raise QuantityError(f"distribution {distribution!r}: choose {', '.join(PARAMETERS)}")
    times = np.asarray(values, np.float64)
    if (times < 0).any():
        raise QuantityError(f"times between bags: {times.min():g} s; they must not be negative")
    if len(times) < 3:
        raise Unavailable(f"{len(times)} times between bags, at least 3 are needed")
    if (times == times[0]).all():
        raise Unavailable("all times between bags are equal")
    found: tuple[float, ...]
    # In units of their mean: the search does not depend on the unit then.
    unit = float(times.mean())
    scaled = np.where(times > 0, times, NO_GAP_S) / unit
    with np.errstate(all="ignore"):  # the search may try what has no likelihood
        if distribution == "generalized_pareto":
            shape, _, scale = stats.genpareto.fit(scaled, floc=0)
            fitted, found = stats.genpareto(shape, scale=scale), (shape, scale * unit)
        elif distribution == "weibull":
            shape, _, scale = stats.weibull_min.fit(scaled, floc=0)
            fitted, found = stats.weibull_min(shape, scale=scale), (shape, scale * unit)
        elif distribution == "lognormal":
            sigma, _, scale = stats.lognorm.fit(scaled, floc=0)
            fitted, found = stats.lognorm(sigma, scale=scale), (np.log(scale * unit), sigma)
        elif distribution == "gamma":
            shape, _, scale = stats.gamma.fit(scaled, floc=0)
            fitted, found = stats.gamma(shape, scale=scale), (shape, scale * unit)
        else:
            scale = scaled.mean()
            found = (scale * unit,)
            fitted = stats.expon(scale=scale)
        ks = float(stats.ks_1samp(scaled, fitted.cdf, method="asymp").statistic)
    named = {
        name: float(number) for name, number in zip(PARAMETERS[distribution], found, strict=True)
    }
    if not np.isfinite([*named.values(), ks]).all():
        raise Unavailable("the fit has no finite parameters")
    return Fit(distribution, named, ks)
