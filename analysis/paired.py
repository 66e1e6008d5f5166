"""Means and differences with confidence intervals, paired by seed or user where possible.

Intervals over seeds are Student's, as runs are independent, or from the bootstrap (Efron 1979,
percentile interval) where results are heavy-tailed. Intervals over users always come from the
bootstrap, because the differences of users are skewed and heavy-tailed; whole users are resampled,
so that the values of a user stay together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpcrowd.analysis.curves import Floats
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams

#: Confidence of every interval.
CONFIDENCE = 0.95

#: Samples of the bootstrap: enough for two digits of a 95 % interval (Efron and Tibshirani 1993,
#: section 12.5 asks for 1,000 or more).
RESAMPLES = 2000

#: Most numbers that the bootstrap draws at once, to limit memory whatever the number of users.
AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval."""

    mean: float  #: mean of the values, or of the differences

    #: Ends of the interval with :data:`CONFIDENCE`; None with too few values.
    low: float | None
    high: float | None
    count: int  #: number of values or pairs

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def text(self, digits: int = 1, per: float = 1.0) -> str:
        """Return it with half its interval, such as ``5.9 ± 0.2``; the mean alone without one.

        ``digits`` is the number of digits after the point; ``per`` is the unit, such as 0.01 for
        percent of a share.
        """
        text = f"{round(self.mean / per, digits) + 0.0:,.{digits}f}"  # no minus before a zero
        half = self.half_width
        return text if half is None else f"{text} ± {half / per:,.{digits}f}"


@dataclass(frozen=True)
class Difference:
    """A difference to the first, absolute and relative."""

    estimate: Estimate  #: the absolute difference

    #: The difference over the absolute value of the first; None if that is 0.
    relative: float | None

    #: Kind of interval: ``pairs`` of the same seed, ``groups`` of different seeds (Welch), or empty
    #: without an interval.
    by: str = ""


@dataclass(frozen=True)
class UserDifference:
    """The difference to the first, user by user."""

    #: Means over the paired users.
    first: float
    other: float

    #: Mean difference over users, each counted once, with its bootstrap interval.
    estimate: Estimate
    median: float  #: median difference

    #: Shares of users whose value is smaller or larger than in the first.
    better: float
    worse: float

    #: Number of users left out because they have the metric on one side only.
    only_first: int
    only_other: int


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of independent values with Student's interval; none for a single value."""
    data = np.asarray(values, np.float64)
    count = len(data)
    mean = float(data.mean())
    if count < 2:
        return Estimate(mean, None, None, count)
    half = _t_quantile(count - 1, confidence) * float(data.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)


def welch(first: Sequence[float], other: Sequence[float]) -> Estimate:
    """Return the difference of two means with Welch's interval (1947); none with a single value."""
    a, b = np.asarray(first, np.float64), np.asarray(other, np.float64)
    mean = float(b.mean() - a.mean())
    if min(len(a), len(b)) < 2:
        return Estimate(mean, None, None, len(a) + len(b))
    parts = [float(x.var(ddof=1)) / len(x) for x in (a, b)]
    if not sum(parts):
        return Estimate(mean, mean, mean, len(a) + len(b))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True)
    )
    half = _t_quantile(freedom) * math.sqrt(sum(parts))
    return Estimate(mean, mean - half, mean + half, len(a) + len(b))


def seed_difference(
    first: Mapping[int | None, float], other: Mapping[int | None, float]
) -> Difference:
    """Return the difference of a metric between two groups of runs, given its value by seed.

    It is paired by seed if both share at least two seeds; otherwise it is the difference of the
    means, with Welch's interval if both have at least two runs.
    """
    seeds = [seed for seed in first if seed in other and seed is not None]
    if len(seeds) > 1:
        base = float(np.mean([first[seed] for seed in seeds]))
        estimate = t_interval([other[seed] - first[seed] for seed in seeds])
        by = "pairs"
    else:
        base = float(np.mean(list(first.values())))
        estimate = welch(list(first.values()), list(other.values()))
        by = "" if estimate.low is None else "groups"
    return Difference(estimate, estimate.mean / abs(base) if base else None, by)


def bootstrap_mean(
    values: Floats, generator: np.random.Generator, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the mean with its percentile bootstrap interval; none for a single value.

    There is at least one value, of a user or seed. The draws from the stream depend only on their
    number.
    """
    count = len(values)
    if count < 2:
        return Estimate(float(values.mean()), None, None, count)
    means = []
    step = max(1, AT_ONCE // count)
    for done in range(0, RESAMPLES, step):
        drawn = generator.integers(count, size=(min(step, RESAMPLES - done), count))
        means.append(values[drawn].mean(axis=1))
    return _around(values, np.concatenate(means), confidence)


def _around(values: Floats, drawn: Floats, confidence: float) -> Estimate:
    """Return the mean of values with quantiles between which that share of what is drawn lies."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def over_seeds(values: Sequence[float], kind: str, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean over seeds, one at least, with its interval; none for a single value.

    The kind is ``student`` or ``bootstrap``, for intervals of the mean; or ``predictive``, for
    quantiles of the values themselves.
    """
    if len(values) > 1 and min(values) == max(values):  # their mean may differ in the last digit
        return Estimate(values[0], values[0], values[0], len(values))
    if kind == "student" or len(values) == 1:
        return t_interval(values, confidence)
    data = np.asarray(values, np.float64)
    if kind == "predictive":  # unlike an interval of the mean, it does not shrink with more values
        return _around(data, data, confidence)
    return bootstrap_mean(data, Streams(0).generator("sweep"), confidence)


def ratio_over_seeds(
    pairs: Sequence[tuple[float, float]], kind: str, confidence: float = CONFIDENCE
) -> Estimate | None:
    """Return the geometric mean of ratios with its interval; None if no pair has one.

    A pair is the value of a seed and the one that it is divided by; both must be positive, or it is
    left out. The interval is that of the logarithms of the ratios, see :func:`over_seeds`.
    """
    logs = [math.log(value / base) for value, base in pairs if value > 0 and base > 0]
    if not logs:
        return None
    found = over_seeds(logs, kind, confidence)
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return Estimate(math.exp(found.mean), low, high, found.count)


def paired_values(
    first: tuple[Int64s, Floats], other: tuple[Int64s, Floats]
) -> tuple[Floats, Floats]:
    """Return the values of the users who are in both, in the same order."""
    _, in_first, in_other = np.intersect1d(
        first[0], other[0], assume_unique=True, return_indices=True
    )
    return first[1][in_first], other[1][in_other]


def user_difference(
    first: tuple[Int64s, Floats], other: tuple[Int64s, Floats], seed: int = 0
) -> UserDifference | None:
    """Return the users' difference to the first; None if no user has the metric on both sides.

    Each side has rising user numbers and their values. The stream ``compare`` of the bootstrap is
    the same for every metric and group.
    """
    a, b = paired_values(first, other)
    if not len(a):
        return None
    difference: Floats = b - a
    return UserDifference(
        first=float(a.mean()),
        other=float(b.mean()),
        estimate=bootstrap_mean(difference, Streams(seed).generator("compare")),
        median=float(np.median(difference)),
        better=float((difference < 0).mean()),
        worse=float((difference > 0).mean()),
        only_first=len(first[0]) - len(a),
        only_other=len(other[0]) - len(a),
    )


def mean_by_user(found: Sequence[tuple[Int64s, Floats]]) -> tuple[Int64s, Floats]:
    """Return users and their values, averaged over the runs in which they have the metric."""
    users, where = np.unique(np.concatenate([users for users, _ in found]), return_inverse=True)
    total = np.bincount(where, weights=np.concatenate([values for _, values in found]))
    means: Floats = total / np.bincount(where)
    return users, means


def _t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return the half width of an interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
