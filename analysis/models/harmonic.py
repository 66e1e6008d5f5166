"""Sizes of jobs: a harmonic distribution that emphasizes small sizes and powers of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.features.sizes import is_power_of_two
from analysis.models.part import Floats
from analysis.models.shares import draw_from
from environment.jobs import Int64s

#: Bounds of what is fitted: the order, and the logs of the two factors.
ORDERS, LOG_FACTORS = (0.0, 20.0), (-12.0, 12.0)


@dataclass(frozen=True)
class Harmonic:
    """P(n) proportional to n^-order, times a factor for small n and one for powers of two.

    Attributes
    ----------
    order
        Of the harmonic distribution.
    small_sizes
        Sizes up to this one are small, processors.
    small_factor, power_factor
        How many times more likely small sizes and powers of two are.
    """

    order: float
    small_sizes: int
    small_factor: float
    power_factor: float

    def probability(self, machine: int) -> Floats:
        """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,)."""
        size = np.arange(1, machine + 1)
        weight = -self.order * np.log(size)
        weight += np.log(self.small_factor) * (size <= self.small_sizes)
        weight += np.log(self.power_factor) * is_power_of_two(size)
        likely = np.exp(weight - weight.max())
        found: Floats = likely / likely.sum()
        return found

    def draw(self, count: int, machine: int, random: np.random.Generator) -> Int64s:
        """Return sizes, processors, shape (count,)."""
        return draw_from(self.probability(machine), count, random) + 1


def fit_harmonic(processors: Int64s, machine: int, small_sizes: int) -> tuple[Harmonic, list[str]]:
    """Return the likeliest distribution of sizes, and what is to be said of it.

    Parameters
    ----------
    processors
        Of the jobs, shape (jobs,), at most ``machine``.
    machine
        Processors of the machine.
    small_sizes
        Sizes up to this one are small.

    Notes
    -----
    Order and factors are the parameters of an exponential family, so that the likelihood has one
    maximum: where the means of log n, of "small" and of "power of two" are those of the jobs.
    """
    from scipy.optimize import minimize

    size = np.arange(1, machine + 1)
    features = np.stack([-np.log(size), size <= small_sizes, is_power_of_two(size)]).astype(float)
    # What does not vary over the sizes of the machine tells nothing, and keeps its factor of 1.
    varies = np.ptp(features, axis=1) > 0
    mean = features[:, processors - 1].mean(axis=1)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weight = parameters @ features
        likely = np.exp(weight - weight.max())
        total = likely.sum()
        value = np.log(total) + weight.max() - parameters @ mean
        return float(value), (features @ likely / total - mean) * varies

    bounds = [
        limits if some else (start, start)
        for limits, some, start in zip(
            (ORDERS, LOG_FACTORS, LOG_FACTORS), varies, (1.5, 0.0, 0.0), strict=True
        )
    ]
    found = minimize(
        loss, np.array([1.5, 0.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"ftol": 1e-13, "gtol": 1e-8, "maxiter": 500},
    ).x  # fmt: skip
    order, small, power = (float(value) for value in found)
    notes = [
        f"sizes: {what} is at the bound of what is tried"
        for what, value, (low, high), some in zip(
            ("order", "factor of small sizes", "factor of powers of two"),
            (order, small, power),
            (ORDERS, LOG_FACTORS, LOG_FACTORS),
            varies,
            strict=True,
        )
        if some and not low + 1e-6 < value < high - 1e-6
    ]
    return Harmonic(order, small_sizes, float(np.exp(small)), float(np.exp(power))), notes
