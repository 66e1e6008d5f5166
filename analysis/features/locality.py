"""Temporal locality: similar run times in succession (Minh 2012, sections 2.3.2 and 3.3.3).

Run times are classified by model-based clustering (section 3.3.1). A run length is how often a
class repeats without a break. The more locality there is, the smaller is the exponent of the Zipf
distribution of run lengths (Eq. 3.1).

Mixtures of normal distributions are fitted by expectation-maximization. The steps are those of
scikit-learn's ``GaussianMixture`` with full covariances, and so are the results but for rounding.
With few dimensions it is several times as fast to go through the coordinates one by one, and equal
points, of which traces have many, are treated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.features.bags import bags
from hpcrowd.analysis.features.feature import Group
from hpcrowd.analysis.features.workload import MOST_COMPONENTS, RESOLUTION_S, Floats, Workload, once
from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.jobs import Int64s

#: Variance of the rounding error, uniform over one resolution, in resolution^2. It is added to the
#: variance of each component, so that none shrinks to a single value.
ROUNDING = 1 / 12

#: Most values that a mixture is fitted to; if there are more, evenly spaced ranks are taken.
SAMPLE = 20_000

#: A fit has converged when the mean log-likelihood rises by less than this in a step
#: (scikit-learn's default); and the most steps of a fit.
TOLERANCE, MOST_STEPS = 1e-3, 500

#: If values are tied, up to this many times more quantiles than components are tried to get as many
#: groups of values as components.
QUANTILES_PER_COMPONENT = 10

#: Range of the exponents. With fewer than 10^15 lengths below 10^15 the likeliest is inside.
EXPONENTS = (1.000_001, 60.0)


#: Added to the number of points of a component, which may have none.
TINY = 10 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points, and how often each is there."""

    columns: Floats  #: the coordinates, shape (dimensions, points)
    count: Floats  #: shape (points,)

    @property
    def size(self) -> int:
        """Number of points, equal ones included."""
        return int(self.count.sum())


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """A mixture of normal distributions."""

    weights: Floats  #: share of each component, shape (components,)
    means: Floats  #: shape (components, dimensions)
    covariances: Floats  #: shape (components, dimensions, dimensions)
    converged: bool = False  #: whether the fit ended before its last step

    @classmethod
    def of_shares(cls, points: Points, shares: Floats, least_variance: float) -> Self:
        """Return the likeliest mixture if it is known what belongs to which component.

        ``shares`` are the extents to which points belong to components, shape (components, points);
        ``least_variance`` is added to each variance.
        """
        there = shares * points.count
        count = there.sum(axis=1) + TINY
        # No product of matrices: a library for these may use threads, which change last digits.
        means = np.einsum("cp,dp->cd", there, points.columns) / count[:, None]
        covariances = np.empty((*means.shape, means.shape[1]))
        off = [column - means[:, row, None] for row, column in enumerate(points.columns)]
        for row, one in enumerate(off):
            weighted = there * one
            for column in range(row + 1):
                both = np.einsum("cp,cp->c", weighted, off[column]) / count
                covariances[:, row, column] = covariances[:, column, row] = both
            covariances[:, row, row] += least_variance
        return cls(count / count.sum(), means, covariances)

    def fitted(
        self, points: Points, *, least_variance: float, tolerance: float, most_steps: int
    ) -> NormalMixture:
        """Return the mixture to which expectation-maximization leads from this one.

        The fit ends when the mean log-likelihood of a point changes by less than the tolerance, or
        after ``most_steps``; ``least_variance`` is added to each variance.
        """
        found, before = self, -np.inf
        for _ in range(most_steps):
            shares, likelihood = found._expected(points)
            found = NormalMixture.of_shares(points, shares, least_variance)
            if abs(likelihood - before) < tolerance:
                return replace(found, converged=True)
            before = likelihood
        return found

    def bic(self, points: Points) -> float:
        """Return the Bayesian information criterion; smaller is better."""
        dimensions = len(points.columns)
        each = 1 + dimensions + dimensions * (dimensions + 1) // 2
        parameters = len(self.weights) * each - 1
        size = points.size
        return float(-2 * size * self._expected(points)[1] + parameters * np.log(size))

    def likeliest(self, columns: Floats) -> Int64s:
        """Return the likeliest component of points of shape (dimensions, points)."""
        return self._log_densities(columns).argmax(axis=0)

    def _expected(self, points: Points) -> tuple[Floats, float]:
        """Return the shares of points in components, and the mean log-likelihood of a point."""
        logs = self._log_densities(points.columns)
        top = logs.max(axis=0)
        logs -= top
        shares = np.exp(logs, out=logs)
        total = shares.sum(axis=0)
        shares /= total
        return shares, float(np.average(top + np.log(total), weights=points.count))

    def _log_densities(self, columns: Floats) -> Floats:
        """Return the log densities of the components, shape (components, points)."""
        roots = np.linalg.inv(np.linalg.cholesky(self.covariances))
        off = [column - self.means[:, row, None] for row, column in enumerate(columns)]
        squares: Floats = np.zeros_like(off[0])
        for row, one in enumerate(off):
            scaled = roots[:, row, row, None] * one
            for column in range(row):
                scaled += roots[:, row, column, None] * off[column]
            squares += np.square(scaled, out=scaled)
        with np.errstate(divide="ignore"):  # a component may have a share of 0
            level = np.log(self.weights) - len(columns) / 2 * np.log(2 * np.pi)
        level += np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        squares *= -0.5
        squares += level[:, None]
        return squares


@dataclass(frozen=True, eq=False)
class Classes:
    """Values classified by a mixture of normal distributions."""

    #: Class of each value: the number of its most probable component, shape (values,).
    labels: Int64s

    #: Of the components by rising mean, shape (components,); means and standard deviations in the
    #: unit of the values.
    weights: Floats
    means: Floats
    sds: Floats

    #: Bayesian information criterion by number of components, for all numbers tried; the smallest
    #: decides. Densities are per resolution. A number is missing if values are so tied that
    #: quantiles cannot form that many groups.
    bic: Mapping[int, float]
    most: int  #: most components allowed
    fitted: int  #: number of values that the mixture was fitted to
    converged: bool  #: whether the fit converged within its steps

    @property
    def components(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def sampled(self) -> bool:
        """Whether the mixture was fitted to a sample; all values are classified in any case."""
        return self.fitted < len(self.labels)

    @property
    def note(self) -> str:
        """How the classes were found, in words."""
        tried = f"{self.components} classes of run times by BIC, among up to {self.most}"
        return tried + (
            f", fitted to a sample of {self.fitted:,} of {len(self.labels):,}"
            if self.sampled
            else ""
        )


@dataclass(frozen=True)
class Zipf:
    """A Zipf distribution of lengths, with probability x^-exponent / zeta(exponent), x = 1, 2, ...

    The exponent, above 1, is the maximum-likelihood one of ``count`` lengths; its standard error is
    from the curvature of the likelihood.
    """

    exponent: float
    standard_error: float
    count: int

    def probability(self, lengths: ArrayLike) -> Floats:
        """Return the probability of lengths of at least 1."""
        from scipy.special import zeta

        found: Floats = np.asarray(lengths, np.float64) ** -self.exponent / zeta(self.exponent)
        return found


def classify(
    values: ArrayLike,
    *,
    most: int = MOST_COMPONENTS,
    resolution: float = RESOLUTION_S,
    sample: int = SAMPLE,
) -> Classes:
    """Classify values so that similar ones are in the same class.

    The values are run times in s, not their logarithms, rounded to the resolution. Mixtures of 1 to
    ``most`` components are tried, fitted to at most ``sample`` values, and BIC chooses.

    Raises
    ------
    UnavailableError
        When there are no values.
    QuantityError
        When a value is not finite, or another argument is not positive.

    Notes
    -----
    The thesis (section 3.3.1) uses MCLUST: mixtures of normal distributions by
    expectation-maximization, with their number chosen by BIC. As there, each component has its own
    variance. Each fit starts from groups of values between quantiles, and a sample takes evenly
    spaced ranks, so that nothing is random.
    """
    given = np.asarray(values, np.float64)
    for name, number in (("most", most), ("resolution", resolution), ("sample", sample)):
        if not 0 < number < float("inf"):
            raise QuantityError(f"{name} {number}: must be positive")
    if not len(given):
        raise UnavailableError("no run times")
    if not np.isfinite(given).all():
        raise QuantityError("values: one is not finite; leave such values out")
    # In units of the resolution, fits do not depend on the unit.
    distinct, place = np.unique(given / resolution, return_inverse=True)
    ordered = np.sort(given / resolution)
    if len(ordered) > sample:
        ordered = ordered[(2 * np.arange(sample) + 1) * len(ordered) // (2 * sample)]
    if ordered[0] == ordered[-1]:
        return _one_class(given, ordered[0] * resolution, resolution, most, len(ordered))
    values, count = np.unique(ordered, return_counts=True)
    points = Points(values[None], count.astype(np.float64))
    mixtures = {len(one.weights): one for one in _mixtures(points, ordered, most)}
    bic = {number: found.bic(points) for number, found in mixtures.items()}
    best = mixtures[min(bic, key=bic.__getitem__)]
    component = best.likeliest(distinct[None])
    rank = np.empty(len(best.weights), np.int64)
    order = np.argsort(best.means[:, 0], kind="stable")
    rank[order] = np.arange(len(order))
    return Classes(
        labels=rank[component][place],
        weights=best.weights[order],
        means=best.means[order, 0] * resolution,
        sds=np.sqrt(best.covariances[order, 0, 0]) * resolution,
        bic=bic,
        most=most,
        fitted=len(ordered),
        converged=best.converged,
    )


def run_lengths(labels: ArrayLike) -> Int64s:
    """Return how often each label repeats before another one comes, shape (runs,).

    For A A A A C C B B B these are 4, 2, 3 (the example of section 2.3.2).
    """
    series = np.asarray(labels)
    if not len(series):
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(series[1:] != series[:-1]) + 1
    return np.diff(ends, prepend=0, append=len(series)).astype(np.int64)


def zipf_exponent(lengths: ArrayLike, what: str = "lengths") -> Zipf:
    """Return the maximum-likelihood Zipf distribution of lengths, whole numbers from 1 on.

    ``what`` is their name, for messages.

    Raises
    ------
    UnavailableError
        When there are no lengths, or all are 1: then the likelihood rises with the exponent
        without limit.
    QuantityError
        When a length is not a whole number from 1 on.

    Notes
    -----
    Discrete maximum likelihood, Eq. 3.1 with support 1, 2, ...; a line fitted to the log-log
    histogram does not reproduce the published exponents.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import zetac

    numbers = np.asarray(lengths, np.float64)
    if not len(numbers):
        raise UnavailableError(f"no {what}")
    wrong = ~(np.isfinite(numbers) & (numbers >= 1) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise QuantityError(f"{what}: {numbers[wrong][0]:g}; must be whole numbers from 1 on")
    mean_log = float(np.log(numbers).mean())
    if mean_log == 0:
        raise UnavailableError(f"all {what} are 1, no exponent is the likeliest")

    def log_zeta(exponent: float) -> float:
        return float(np.log1p(zetac(exponent)))

    found = minimize_scalar(
        lambda exponent: exponent * mean_log + log_zeta(exponent),
        bounds=EXPONENTS,
        method="bounded",
        options={"xatol": 1e-9},
    )
    exponent = float(found.x)
    # The second derivative of log zeta is the variance of the logs, that is the information of one
    # length. The step is relative to the distance from the pole at 1.
    step = 1e-3 * (exponent - 1)
    around = log_zeta(exponent + step) + log_zeta(exponent - step) - 2 * log_zeta(exponent)
    return Zipf(exponent, step / float(np.sqrt(len(numbers) * around)), len(numbers))


def _mixtures(points: Points, ordered: Floats, most: int) -> Iterator[NormalMixture]:
    """Yield fitted mixtures of 1, 2, ... components, if there are enough groups of values."""
    tried: set[int] = set()
    (values,) = points.columns
    for quantiles in range(1, QUANTILES_PER_COMPONENT * most + 1):
        cuts = _cuts(ordered, quantiles)
        number = len(cuts) + 1
        if number > most:
            return
        if number in tried:
            continue
        tried.add(number)
        group = np.searchsorted(cuts, values)
        count = np.bincount(group, points.count)
        mean = np.bincount(group, points.count * values) / count
        off = points.count * (values - mean[group]) ** 2
        variance = np.bincount(group, off) / count + ROUNDING
        start = NormalMixture(count / count.sum(), mean[:, None], variance[:, None, None])
        yield start.fitted(
            points, least_variance=ROUNDING, tolerance=TOLERANCE, most_steps=MOST_STEPS
        )


def _cuts(ordered: Floats, quantiles: int) -> Floats:
    """Return the largest value of each group except the last; ties stay together, none is empty."""
    last = np.arange(1, quantiles) * len(ordered) // quantiles - 1
    cuts: Floats = np.unique(ordered[last[last >= 0]])
    inner: Floats = cuts[cuts < ordered[-1]]
    return inner


def _one_class(given: Floats, value: float, resolution: float, most: int, fitted: int) -> Classes:
    """Return the single class of values that do not vary."""
    information = fitted * np.log(2 * np.pi * ROUNDING) + 2 * np.log(fitted)
    return Classes(
        labels=np.zeros(len(given), np.int64),
        weights=np.ones(1),
        means=np.array([value]),
        sds=np.array([resolution * ROUNDING**0.5]),
        bic={1: float(information)},
        most=most,
        fitted=fitted,
        converged=True,
    )


@once
def classes_of_run_times(workload: Workload) -> Classes:
    """Return the classes of run times, in the order of submission.

    Raises
    ------
    UnavailableError
        When there are no jobs.
    """
    scales = workload.settings
    found = classify(workload.run_time, most=scales.components, resolution=scales.resolution_s)
    workload.remarks.append(found.note)
    return found


@once
def repetitions(workload: Workload) -> Int64s:
    """Return the run lengths: the lengths of repetitions of similar run times."""
    if len(workload) < 2:
        raise UnavailableError("fewer than 2 jobs")
    return run_lengths(classes_of_run_times(workload).labels)


@once
def repetition_zipf(workload: Workload) -> Zipf:
    """Return the Zipf distribution of run lengths (Table 3.5)."""
    return zipf_exponent(repetitions(workload), "run lengths")


@once
def bag_zipf(workload: Workload) -> Zipf:
    """Return the Zipf distribution of the sizes of bags, including single jobs (Fig. 3.5)."""
    return zipf_exponent(bags(workload).size, "bag sizes")


GROUP = Group("locality", "Temporal locality", by_order=True)


@GROUP.feature("classes of run times", "Minh 2012, section 3.3.1", by_order=False)
def run_time_classes(workload: Workload) -> int:
    """Components of the mixture of normal distributions of run times, chosen by BIC."""
    return classes_of_run_times(workload).components


@GROUP.feature("run length, mean", "Minh 2012, section 2.3.2")
def run_length_mean(workload: Workload) -> float:
    """Successive jobs whose run times are in the same class."""
    return float(np.mean(repetitions(workload)))


@GROUP.feature("run length, longest", "Minh 2012, section 2.3.2")
def run_length_max(workload: Workload) -> int:
    """The longest repetition."""
    return int(repetitions(workload).max())


@GROUP.feature("Zipf exponent of run lengths", "Minh 2012, Eq. 3.1, Table 3.5")
def run_length_zipf_exponent(workload: Workload) -> float:
    """Maximum-likelihood exponent: the smaller, the more locality."""
    return repetition_zipf(workload).exponent


@GROUP.feature("Zipf exponent of bag sizes", "Minh 2012, section 3.4, Fig. 3.5")
def bag_size_zipf_exponent(workload: Workload) -> float:
    """Maximum-likelihood exponent of bag sizes, including single jobs."""
    return bag_zipf(workload).exponent
