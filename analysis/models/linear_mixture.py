"""Mixtures whose shares go linearly with the size of the job, fitted by expectation-maximization.

Component k has the share ``(1 - x) small[k] + x large[k]`` at relative size x from 0 to 1. That is
again a mixture: with probability x the shares ``large`` hold, else ``small``. So every step of the
algorithm is in closed form, the likelihood never falls, and no share leaves 0 to 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, override

import numpy as np

from analysis.models.part import Floats

#: A fit has converged when the mean log-likelihood rises by less in a step; it stops after so many
#: steps anyway.
TOLERANCE, MOST_STEPS = 1e-8, 500

#: Steps of Newton's method for the shape of a gamma; it doubles the digits in each.
NEWTON_STEPS = 6

#: Largest shape of a gamma: values that are all the same would ask for an infinite one.
MOST_SHAPE = 1e6


class Family(ABC):
    """A kind of distribution that mixtures are made of; parameters have shape (components, ...)."""

    #: Parameters of any one component.
    blank: ClassVar[Floats]

    @abstractmethod
    def log_density(self, values: Floats, parameters: Floats) -> Floats:
        """Return the log of the density, shape (components, values)."""

    @abstractmethod
    def likeliest(self, values: Floats, weights: Floats, before: Floats) -> Floats:
        """Return the likeliest parameters; ``weights`` has shape (components, values)."""


@dataclass(frozen=True)
class Exponentials(Family):
    """Exponential distributions by their means, shape (components,), none below ``least``."""

    least: float
    blank: ClassVar[Floats] = np.ones(1)

    @override
    def log_density(self, values: Floats, parameters: Floats) -> Floats:
        return -np.log(parameters)[:, None] - values / parameters[:, None]

    @override
    def likeliest(self, values: Floats, weights: Floats, before: Floats) -> Floats:
        """Return weighted means; a component without weight stays as it was."""
        total = weights.sum(axis=1)
        mean = np.divide(weights @ values, total, out=before.copy(), where=total > 0)
        return np.maximum(mean, self.least)


class Gammas(Family):
    """Gamma distributions by shape and scale, shape (components, 2); of positive values."""

    blank: ClassVar[Floats] = np.ones((1, 2))

    @override
    def log_density(self, values: Floats, parameters: Floats) -> Floats:
        from scipy.special import gammaln

        shape, scale = parameters[:, :1], parameters[:, 1:]
        found: Floats = (
            (shape - 1) * np.log(values) - values / scale - gammaln(shape) - shape * np.log(scale)
        )
        return found

    @override
    def likeliest(self, values: Floats, weights: Floats, before: Floats) -> Floats:
        """Return the likeliest shapes and scales, by Newton's method (Minka 2002)."""
        from scipy.special import digamma, polygamma

        total = weights.sum(axis=1)
        some = total > 0
        mean = np.divide(weights @ values, total, out=np.ones_like(total), where=some)
        logs = np.divide(weights @ np.log(values), total, out=np.zeros_like(total), where=some)
        # The distance of the two means is positive unless all values are the same.
        apart = np.maximum(np.log(mean) - logs, 0.5 / MOST_SHAPE)
        shape = (3 - apart + np.sqrt((apart - 3) ** 2 + 24 * apart)) / (12 * apart)
        for _ in range(NEWTON_STEPS):
            slope = 1 / shape - polygamma(1, shape)
            step = (np.log(shape) - digamma(shape) - apart) / (shape**2 * slope)
            shape = 1 / (1 / shape + step)
        found: Floats = np.where(some[:, None], np.stack([shape, mean / shape], axis=1), before)
        return found


@dataclass(frozen=True)
class LinearMixture:
    """A fitted mixture.

    Attributes
    ----------
    small, large
        Shares of the components at relative size 0 and 1, shape (components,).
    parameters
        Of the components, as the family says.
    log_likelihood
        Mean over the values.
    steps
        That it took.
    converged
        Whether it did so within its steps.
    """

    small: Floats
    large: Floats
    parameters: Floats
    log_likelihood: float
    steps: int
    converged: bool


def fit_linear_mixture(
    values: Floats, size: Floats, family: Family, components: int
) -> LinearMixture:
    """Return the likeliest mixture that is reached from equal parts of the values by their rank.

    Parameters
    ----------
    values
        Shape (values,), at least one.
    size
        Relative sizes from 0 to 1, shape (values,).
    family
        What the components are.
    components
        How many, 1 or more.
    """
    pairs, counts = np.unique(np.stack([values, size]), axis=1, return_counts=True)
    values, size = pairs
    weight = counts / counts.sum()
    rank = np.cumsum(weight) - weight / 2
    group = np.minimum((rank * components).astype(np.int64), components - 1)
    whole = family.likeliest(values, weight[None, :], family.blank)
    parameters = family.likeliest(
        values,
        (group == np.arange(components)[:, None]) * weight,
        np.repeat(whole, components, axis=0),
    )
    small = large = np.full(components, 1 / components)
    last, steps, converged = -np.inf, 0, False
    while steps < MOST_STEPS and not converged:
        steps += 1
        share = np.outer(small, 1 - size) + np.outer(large, size)
        logs = family.log_density(values, parameters)
        top = logs.max(axis=0)
        joint = share * np.exp(logs - top)
        total = joint.sum(axis=0)
        likelihood = float(weight @ (np.log(total) + top))
        converged = likelihood - last < TOLERANCE
        last = likelihood
        belongs = joint / total * weight
        part = np.divide(belongs, share, out=np.zeros_like(share), where=share > 0)
        small, large = (
            _shares(small * (part @ (1 - size)), small),
            _shares(large * (part @ size), large),
        )
        parameters = family.likeliest(values, belongs, parameters)
    return LinearMixture(small, large, parameters, likelihood, steps, converged)


def _shares(weights: Floats, before: Floats) -> Floats:
    total = weights.sum()
    found: Floats = weights / total if total > 0 else before
    return found
