"""Mixtures of normal distributions by expectation-maximization, in one dimension or a few.

The steps are those of scikit-learn's ``GaussianMixture`` with full covariances, and so are the
results but for rounding. With few dimensions it is several times as fast to go through the
coordinates one by one, and equal points, of which traces have many, are treated once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s

Floats = NDArray[np.float64]

#: Added to the number of points of a component, which may have none.
TINY = 10 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points, and how often each is there.

    Attributes
    ----------
    columns
        The coordinates, shape (dimensions, points).
    count
        Shape (points,).
    """

    columns: Floats
    count: Floats

    @property
    def size(self) -> int:
        """Number of points, equal ones included."""
        return int(self.count.sum())


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """A mixture of normal distributions.

    Attributes
    ----------
    weights
        Share of each component, shape (components,).
    means
        Shape (components, dimensions).
    covariances
        Shape (components, dimensions, dimensions).
    converged
        Whether the fit ended before its last step.
    """

    weights: Floats
    means: Floats
    covariances: Floats
    converged: bool = False

    @classmethod
    def of_shares(cls, points: Points, shares: Floats, least_variance: float) -> Self:
        """Return the likeliest mixture if it is known what belongs to which component.

        Parameters
        ----------
        points
            What the mixture is of.
        shares
            To what extent points belong to components, shape (components, points).
        least_variance
            Added to each variance.
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

        Parameters
        ----------
        points
            What the mixture is of.
        least_variance
            Added to each variance.
        tolerance
            The fit ends when the mean log-likelihood of a point changes by less.
        most_steps
            Number of steps after which it ends anyway.
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
