"""Series of numbers: marginal statistics, distribution functions, autocorrelation, arrivals.

Definitions of Minh 2012, sections 2.1 and 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.quantities import plural

Floats = NDArray[np.float64]

#: Most intervals that arrivals are counted in: beyond it the scale is far too short for the trace.
MOST_INTERVALS = 50_000_000


@dataclass(frozen=True)
class Moments:
    """Marginal statistics of a series (section 2.1.1), in its unit.

    Attributes
    ----------
    count
        How many values.
    mean, median, smallest, largest
        Of them.
    sd
        Standard deviation, from the variance with n - 1.
    """

    count: int
    mean: float
    median: float
    smallest: float
    largest: float
    sd: float

    @property
    def cv(self) -> float:
        """Coefficient of variation, sd / mean."""
        if self.mean == 0:
            raise UnavailableError("the mean is 0")
        return self.sd / self.mean


def moments(values: ArrayLike) -> Moments:
    """Return the marginal statistics of at least two values.

    Raises
    ------
    UnavailableError
        When there are fewer.
    """
    numbers = _series(values, least=2)
    # Equal values have no spread; a sum in floating point may say they do, by a hair.
    equal = bool((numbers == numbers[0]).all())
    return Moments(
        len(numbers),
        float(numbers[0] if equal else numbers.mean()),
        float(np.median(numbers)),
        float(numbers.min()),
        float(numbers.max()),
        0.0 if equal else float(numbers.std(ddof=1)),
    )


def cdf(values: ArrayLike) -> tuple[Floats, Floats]:
    """Return the distinct values and the share of values not larger than each, P(X <= x)."""
    numbers = _series(values, least=1)
    x, count = np.unique(numbers, return_counts=True)
    return x, np.cumsum(count) / len(numbers)


def ccdf(values: ArrayLike) -> tuple[Floats, Floats]:
    """Return the distinct values and the share of values larger than each, P(X > x)."""
    x, share = cdf(values)
    return x, 1 - share


def autocorrelation(values: ArrayLike, lags: int) -> Floats:
    """Return the autocorrelation R(0) to R(lags), shape (lags + 1,); Eq. 2.1.

    Parameters
    ----------
    values
        The series, shape (n,).
    lags
        The largest lag, fewer than n.

    Raises
    ------
    UnavailableError
        When the series is too short, or constant.

    Notes
    -----
    The sum over the n - k pairs is divided by that over all n squares, so that R(0) = 1 and a lag
    that few pairs have counts for less.
    """
    if lags < 0:
        raise QuantityError(f"lags {lags}: must not be negative")
    numbers = _series(values, least=2)
    if lags >= len(numbers):
        raise UnavailableError(f"{len(numbers):,} values, fewer than the lag of {lags:,}")
    if (numbers == numbers[0]).all():
        raise UnavailableError("all values are equal")
    deviation = numbers - numbers.mean()
    size = 1 << (len(numbers) + lags).bit_length()
    power = np.abs(np.fft.rfft(deviation, size)) ** 2
    products = np.fft.irfft(power, size)[: lags + 1]
    found: Floats = products / products[0]
    return found


def interarrivals(times: ArrayLike) -> Floats:
    """Return the times between arrivals, I(n) = t(n) - t(n-1) (section 2.2), shape (n - 1,).

    Parameters
    ----------
    times
        Arrival times, rising.
    """
    return np.diff(_series(times, least=2))


def counts(times: ArrayLike, scale: float) -> Floats:
    """Return how many arrivals each interval of length ``scale`` has (section 2.2).

    Parameters
    ----------
    times
        Arrival times; the first interval begins with the first of them, the last one is that of
        the last.
    scale
        T, in the unit of the times.

    Returns
    -------
    array
        Shape (intervals,).

    Raises
    ------
    UnavailableError
        When there is no arrival, or there would be far too many intervals.
    """
    if not 0 < scale < float("inf"):
        raise QuantityError(f"time scale {scale}: must be positive")
    arrivals = _series(times, least=1)
    place = (arrivals - arrivals.min()) / scale
    if place.max() >= MOST_INTERVALS:
        raise UnavailableError(f"more than {MOST_INTERVALS:,} intervals of {scale:g} s")
    return np.bincount(place.astype(np.int64)).astype(np.float64)


def rates(times: ArrayLike, scale: float) -> Floats:
    """Return the rate process, :func:`counts` divided by the length of the interval."""
    return counts(times, scale) / scale


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return Spearman's correlation of two series, equal values sharing their rank (2.1.3).

    Raises
    ------
    UnavailableError
        When there are fewer than three pairs, or one of the two does not vary.
    """
    from scipy.stats import rankdata

    return pearson(rankdata(_pairs(first)), rankdata(_pairs(second)))


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Return Pearson's correlation of two series; Eq. 2.2. Raises as :func:`spearman`."""
    one, other = _pairs(first), _pairs(second)
    for series in (one, other):
        if (series == series[0]).all():
            raise UnavailableError("one of the two does not vary")
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1))


def _pairs(values: ArrayLike) -> Floats:
    return _series(values, least=3)


def _series(values: ArrayLike, least: int) -> Floats:
    numbers = np.asarray(values, np.float64)
    if len(numbers) < least:
        raise UnavailableError(f"{plural(len(numbers), 'value')}, at least {least} are needed")
    return numbers
