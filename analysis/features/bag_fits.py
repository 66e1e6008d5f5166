"""Distributions fitted to the times between bags (Minh 2012, section 3.5.1, Tables 3.9 and 3.10).

Parameters are by maximum likelihood, with the threshold at 0, named and parametrized as in the
thesis. A distance is the largest one between the distribution functions (Kolmogorov-Smirnov).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from environment.errors import QuantityError, UnavailableError
from environment.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

#: s; what stands for two bags in the same second, as densities at 0 may be infinite (the value
#: that reaches Table 3.9).
NO_GAP_S = 1e-7

#: How far a search for the largest likelihood may end from it, relative; four digits of Table 3.9
#: need more than scipy's own 1e-4.
SEARCH_WITHIN = 1e-9

#: Most steps of such a search; it takes some two hundred.
MOST_STEPS = 10_000

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

    def cdf(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return its distribution function at times in s, same shape."""
        return np.asarray(cdf_of(self.distribution, self.parameters)(np.asarray(times, float)))


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
    UnavailableError
        When there are fewer than three values, or all are equal.
    QuantityError
        When the distribution is not known, or a value is negative.
    """
    if distribution not in PARAMETERS:
        raise QuantityError(f"distribution {distribution!r}: choose {', '.join(PARAMETERS)}")
    times = np.asarray(values, np.float64)
    if (times < 0).any():
        raise QuantityError(f"times between bags: {times.min():g} s; they must not be negative")
    if len(times) < 3:
        raise UnavailableError(f"{plural(len(times), 'time')} between bags, at least 3 are needed")
    if (times == times[0]).all():
        raise UnavailableError("all times between bags are equal")
    # In units of their mean: the search does not depend on the unit then.
    unit = float(times.mean())
    scaled = np.where(times > 0, times, NO_GAP_S) / unit
    with np.errstate(all="ignore"):  # the search may try what has no likelihood
        found: tuple[float, ...]
        if distribution == "exponential":
            found = (scaled.mean() * unit,)
        else:
            family = _families()[distribution]
            shape, _, scale = family.fit(scaled, floc=0, optimizer=_search)
            found = (shape, scale * unit)
            if distribution == "lognormal":
                found = (np.log(scale * unit), shape)
        named = {
            name: float(number)
            for name, number in zip(PARAMETERS[distribution], found, strict=True)
        }
        if not np.isfinite([*named.values()]).all():
            raise UnavailableError("the fit has no finite parameters")
        ks = distance(times, distribution, named)
    if not np.isfinite(ks):
        raise UnavailableError("the fit has no finite parameters")
    return Fit(distribution, named, ks)


def distance(values: ArrayLike, distribution: str, parameters: Mapping[str, float]) -> float:
    """Return the largest distance between the distribution functions of a fit and of data.

    Parameters
    ----------
    values, distribution
        As for :func:`fit`.
    parameters
        By the names of :data:`PARAMETERS`.
    """
    from scipy import stats

    times = np.asarray(values, np.float64)
    times = np.where(times > 0, times, NO_GAP_S)
    return float(stats.ks_1samp(times, cdf_of(distribution, parameters), method="asymp").statistic)


def cdf_of(distribution: str, parameters: Mapping[str, float]) -> Callable[[Any], NDArray[Any]]:
    """Return the distribution function of times in s; ``parameters`` as for :func:`distance`."""
    from scipy import stats

    first, *others = (parameters[name] for name in PARAMETERS[distribution])
    if distribution == "exponential":
        made = stats.expon(scale=first)
    elif distribution == "lognormal":
        made = stats.lognorm(others[0], scale=np.exp(first))
    else:
        made = _families()[distribution](first, scale=others[0])
    return made.cdf  # type: ignore[no-any-return]


def _families() -> dict[str, Any]:
    """Return the distributions with a shape and a scale, as scipy has them."""
    from scipy import stats

    return {
        "generalized_pareto": stats.genpareto,
        "weibull": stats.weibull_min,
        "lognormal": stats.lognorm,
        "gamma": stats.gamma,
    }


def _search(
    negative: Callable[..., float], start: ArrayLike, args: tuple[Any, ...] = (), disp: int = 0
) -> Any:
    """Search as scipy does, but on until nothing moves."""
    from scipy.optimize import fmin

    ends = {"xtol": SEARCH_WITHIN, "ftol": SEARCH_WITHIN, "maxiter": MOST_STEPS}
    return fmin(negative, start, args=args, disp=disp, **ends)
