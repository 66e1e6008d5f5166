"""Scores of forecasts and distances of distributions, with their uncertainty.

Times are compared as log10(1 + t / 1 min): a logarithmic scale from minutes to months, on which
times below a minute are nearly the same. One unit is a factor of ten, a *decade*.

Everything measured belongs to a user, and uncertainty comes from resampling users: one user's
actions are alike from week to week, and a few users do most of the work. All models share the same
draws, so that their differences are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import Floats, decades
from hpcrowd.analysis.paired import CONFIDENCE
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.streams import Streams

#: Bins of distributions: width in decades, and number; up to 6 * 10^8 s, twenty years.
BIN, BINS = 0.01, 700

#: Number of resamples of users.
RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A number with its interval over resampled users."""

    value: float  #: The number.
    #: Percentiles of the draws, see :data:`CONFIDENCE`.
    low: float
    high: float

    def plain(self) -> dict[str, float | None]:
        """Return it as plain data, fit for JSON; unknown numbers are null."""
        return {
            name: number if np.isfinite(number := getattr(self, name)) else None
            for name in ("value", "low", "high")
        }


def crps(draws: Floats, observed: Floats) -> Floats:
    """Return the continuous ranked probability score of each forecast; 0 is perfect.

    For a forecast X given by draws and an observation y, the score is E|X - y| - E|X - X'| / 2
    (Gneiting and Raftery 2007, Eq. 21). The second mean is over pairs of different draws, so that
    the expectation does not depend on the number of draws (Ferro 2014). The score of a single value
    is its absolute error. On average over observations, only the true distribution scores best: a
    forecast that is too narrow or too wide scores worse.

    Draws have shape (forecasts, draws); NaN fills up rows with fewer draws. What was observed and
    the score have shape (forecasts,), in the unit of the draws; slightly negative values happen by
    chance.
    """
    ordered = np.sort(draws, axis=1)  # NaN come last
    there = ~np.isnan(ordered)
    count = there.sum(axis=1)
    if not count.all():
        raise QuantityError("forecast without draws: give each at least one")
    ordered = np.where(there, ordered, 0.0)
    error = (np.abs(ordered - observed[:, None]) * there).sum(axis=1) / count
    rank = 2 * np.arange(1, draws.shape[1] + 1) - 1 - count[:, None]
    spread = (rank * ordered).sum(axis=1)
    pairs = count * (count - 1)
    found: Floats = error - np.divide(spread, pairs, where=pairs > 0, out=np.zeros(len(error)))
    return found


def resample(users: int, seed: int, times: int = RESAMPLES) -> Floats:
    """Return how often each user is drawn: first once each, then at random with replacement.

    The shape is (1 + times, users).
    """
    generator = Streams(seed).generator("bootstrap")
    drawn = generator.multinomial(users, np.full(users, 1 / users), size=times)
    return np.concatenate([np.ones((1, users)), drawn.astype(np.float64)])


def estimate(values: Floats, least: float = -np.inf) -> Estimate:
    """Return the first value with the interval of the others, ignoring NaN, shape (rows,).

    Resampling users makes distributions more uneven, and so distances larger; to correct this, the
    draws are shifted so that their mean is the value. The number is at least ``least``.
    """
    value = float(values[0])
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn) or not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"))
    centred = np.maximum(drawn - drawn.mean() + value, least)
    low, high = np.quantile(centred, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, float(low), float(high))


def user_means(scores: Floats, user: NDArray[np.int64], users: int) -> Floats:
    """Return each user's mean score, NaN without scores, shape (users,)."""
    count = np.bincount(user, minlength=users)
    return _ratio(np.bincount(user, scores, minlength=users), count)


def mean_over_users(means: Floats, weights: Floats, share: Floats | None = None) -> Floats:
    """Return the mean of users' means for each row of weights, shape (rows,).

    It is NaN where no user with a score was drawn. Means are those of :func:`user_means`, weights
    of :func:`resample`; users count equally, or with a share each, shape (users,).
    """
    there = np.isfinite(means)
    weights = weights[:, there] if share is None else weights[:, there] * share[there]
    return _ratio(weights @ means[there], weights.sum(axis=1))


def histogram(values: Floats, user: NDArray[np.int64], users: int, bins: int = BINS) -> Floats:
    """Return each user's histogram of bin numbers, shape (users, bins).

    Larger numbers go into the last bin.
    """
    which = np.clip(values.astype(np.int64), 0, bins - 1)
    counts = np.bincount(user * bins + which, minlength=users * bins)
    return counts.reshape(users, bins).astype(np.float64)


def times_histogram(seconds: NDArray[np.int64], user: NDArray[np.int64], users: int) -> Floats:
    """Return each user's histogram of times, in bins of :data:`BIN` decades."""
    return histogram(decades(seconds) / BIN, user, users)


def distances(a: Floats, b: Floats, weights: Floats) -> dict[str, Floats]:
    """Return distances of two distributions for each row of weights, shape (rows,) each.

    ``ks``: largest difference of the distribution functions (Kolmogorov and Smirnov), from 0 to 1;
    ``w1``: the area between them (Wasserstein), in decades; ``tv``: half the sum of the absolute
    differences of shares (total variation), from 0 to 1; NaN if nothing was drawn. Histograms by
    user have shape (users, bins); weights are those of :func:`resample`.
    """
    shares = []
    used = np.flatnonzero(a.any(axis=0) | b.any(axis=0))
    last = int(used[-1]) + 1 if len(used) else 1
    for counts in (a[:, :last], b[:, :last]):
        drawn = weights @ counts
        total = drawn.sum(axis=1, keepdims=True)
        shares.append(_ratio(drawn, np.broadcast_to(total, drawn.shape)))
    difference = shares[0] - shares[1]
    gap = np.abs(np.cumsum(difference, axis=1))
    return {
        "ks": gap.max(axis=1),
        "w1": gap.sum(axis=1) * BIN,
        "tv": np.abs(difference).sum(axis=1) / 2,
    }


def _ratio(over: Floats, under: NDArray[Any]) -> Floats:
    found: Floats = np.divide(over, under, where=under > 0, out=np.full(over.shape, np.nan))
    return found
