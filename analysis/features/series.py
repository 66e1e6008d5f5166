"""Series of numbers: moments, distributions, autocorrelation, arrivals, long range dependence.

Definitions are those of Minh 2012, sections 2.1 and 2.2.

The Hurst parameter is estimated in three ways. Minh 2012 (sections 2.3.1 and 3.2) takes *Aggregate
Variance*, *R/S Statistic* and *Periodogram* of Taqqu, Teverovsky and Willinger, *Estimators for
long-range dependence: an empirical study*, Fractals 3(4), 1995, and reports their mean and standard
deviation. The thesis does not say which sizes and frequencies count; those used here come within
0.02 of its Table 3.2 on the logs HPC2N and Thunder. Libraries (nolds, hurst) only have R/S, and
cannot leave out sizes with constant blocks.

On fractional Gaussian noise of 16,384 values with a known H of 0.5 to 0.8 the mean of the three is
within 0.01 of it; at 0.9 it is 0.02 to 0.03 too low, because variance and R/S are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural

Floats = NDArray[np.float64]

#: Most intervals for counting arrivals; with more, the time scale is far too short for the trace.
MOST_INTERVALS = 50_000_000


@dataclass(frozen=True)
class Moments:
    """Marginal statistics of a series (section 2.1.1), in its unit."""

    count: int  #: number of values

    #: Of the values.
    mean: float
    median: float
    smallest: float
    largest: float
    sd: float  #: standard deviation, from the variance with n - 1

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
        When there are fewer than two.
    """
    numbers = _series(values, least=2)
    # Equal values have no spread; floating-point sums may give a tiny one.
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
    """Return the distinct values and the share of values up to each, P(X <= x)."""
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
    The sum over the n - k pairs is divided by the sum of all n squares, so that R(0) = 1 and lags
    with few pairs are damped.
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
    """Return the number of arrivals in each interval of length ``scale`` (section 2.2).

    Parameters
    ----------
    times
        Arrival times; the first interval begins with the first one, the last interval contains the
        last one.
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
    """Return the rate process: :func:`counts` divided by the length of the interval."""
    return counts(times, scale) / scale


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return Spearman's correlation of two series; equal values share their rank (2.1.3).

    Raises
    ------
    UnavailableError
        When there are fewer than three pairs, or one of the two does not vary.
    """
    from scipy.stats import rankdata

    return pearson(rankdata(_series(first, least=3)), rankdata(_series(second, least=3)))


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Return Pearson's correlation of two series; Eq. 2.2. Raises as :func:`spearman`."""
    one, other = _series(first, least=3), _series(second, least=3)
    for series in (one, other):
        if (series == series[0]).all():
            raise UnavailableError("one of the two does not vary")
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1))


def _series(values: ArrayLike, least: int) -> Floats:
    numbers = np.asarray(values, np.float64)
    if len(numbers) < least:
        raise UnavailableError(f"{plural(len(numbers), 'value')}, at least {least} are needed")
    return numbers


#: Number of block sizes, equally spaced on a log scale, before dropping duplicates (unconfirmed).
SIZES = 50

#: Fewest blocks of the largest size (unconfirmed).
FEWEST_BLOCKS = 5

#: Part of the points, by size, to which a line is fitted (unconfirmed).
VARIANCE_PART = (0.1, 0.7)
RANGE_PART = (0.3, 0.9)

#: Part of the frequencies that counts, from the lowest on (Taqqu et al. 1995 take 10 %; 20 %
#: reproduces the published table).
LOWEST_FREQUENCIES = 0.2

#: Smallest block of R/S, and the power of log10 of the length with which it grows (unconfirmed).
SMALLEST_RANGE, RANGE_POWER = 10, 2

#: Shortest series that is measured; in shorter ones, blocks are too small to fit a line.
SHORTEST = 100


@dataclass(frozen=True)
class Hurst:
    """The Hurst parameter of a series."""

    #: The three estimates; 0.5 without long range dependence, towards 1 with more.
    aggregated_variance: float
    rescaled_range: float
    periodogram: float

    @property
    def estimates(self) -> tuple[float, float, float]:
        """The three estimates."""
        return self.aggregated_variance, self.rescaled_range, self.periodogram

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.estimates))

    @property
    def sd(self) -> float:
        """Their standard deviation, with n - 1."""
        return float(np.std(self.estimates, ddof=1))


def hurst(values: ArrayLike) -> Hurst:
    """Return the Hurst parameter of a series by all three estimators.

    Parameters
    ----------
    values
        The series, such as counts of arrivals, shape (n,).

    Raises
    ------
    UnavailableError
        When the series is too short, or does not vary.
    """
    series = _checked(values)
    return Hurst(aggregated_variance(series), rescaled_range(series), periodogram(series))


def aggregated_variance(series: Floats) -> float:
    """Return H from the variance of block means, which falls as m^(2H - 2) with block size m."""
    sizes = _sizes(1, len(series))
    return 1 + _slope(*_points(series, sizes[sizes > 1], _variance_of_means), *VARIANCE_PART) / 2


def rescaled_range(series: Floats) -> float:
    """Return H from the range of cumulative deviations over the standard deviation, as m^H.

    Sizes at which some block does not vary are left out.
    """
    smallest = max(SMALLEST_RANGE, np.log10(len(series)) ** RANGE_POWER)
    return _slope(*_points(series, _sizes(smallest, len(series)), _log_range), *RANGE_PART)


def periodogram(series: Floats) -> float:
    """Return H from the power at low frequencies f, which falls as f^(1 - 2H)."""
    power = np.abs(np.fft.rfft(series)) ** 2
    place = np.arange(1, int(LOWEST_FREQUENCIES * (len(power) - 1)) + 1)
    seen = power[place] > 0
    if np.count_nonzero(seen) < 3:
        raise UnavailableError("no power at low frequencies")
    logs = np.log10(place[seen]), np.log10(power[place[seen]])
    return float((1 - np.polyfit(*logs, 1)[0]) / 2)


def _checked(values: ArrayLike) -> Floats:
    series = np.asarray(values, np.float64)
    if len(series) < SHORTEST:
        raise UnavailableError(f"{len(series):,} intervals, at least {SHORTEST} are needed")
    if (series == series[0]).all():
        raise UnavailableError("the series does not vary")
    return series


def _sizes(smallest: float, length: int) -> Int64s:
    """Return distinct block sizes, rising."""
    spaced = np.geomspace(smallest, max(length / FEWEST_BLOCKS, smallest), SIZES)
    # Floating point may put a power of ten slightly below itself.
    return np.unique(np.floor(spaced * (1 + 1e-12)).astype(np.int64))


def _points(
    series: Floats, sizes: Int64s, measure: Callable[[Floats], float | None]
) -> tuple[Floats, Floats]:
    """Return log sizes and the measure on blocks of each size, without sizes that give None."""
    found = []
    for size in sizes:
        number = measure(series[: len(series) // size * size].reshape(-1, size))
        if number is not None:
            found.append((np.log10(size), number))
    return np.array([x for x, _ in found]), np.array([y for _, y in found])


def _variance_of_means(blocks: Floats) -> float | None:
    variance = float(blocks.mean(axis=1).var(ddof=1))
    return float(np.log10(variance)) if variance > 0 else None


def _log_range(blocks: Floats) -> float | None:
    deviation = blocks - blocks.mean(axis=1, keepdims=True)
    sd = np.sqrt((deviation**2).mean(axis=1))
    if (np.ptp(blocks, axis=1) == 0).any():
        return None
    path = np.cumsum(deviation, axis=1)
    return float(np.log10(np.ptp(path, axis=1) / sd).mean())


def _slope(x: Floats, y: Floats, first: float, last: float) -> float:
    """Return the slope of a line through a part of the points."""
    part = slice(int(first * len(x)), int(last * len(x)))
    if len(x[part]) < 3:
        raise UnavailableError("too few block sizes without constant blocks")
    return float(np.polyfit(x[part], y[part], 1)[0])
