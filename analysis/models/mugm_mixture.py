"""Gaussian mixtures of MUGM: processors and run time of the jobs of a group, both in log2."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from analysis.models.part import Floats
from analysis.models.shares import draw_from
from environment.errors import ModelFitError
from environment.extras import missing
from environment.jobs import Int64s

#: Most components; BIC chooses. The paper names none: 9 is where MCLUST, the method that it cites
#: (Fraley and Raftery 2002), stops by default.
COMPONENTS = 9

#: (log2 units)^2; added to each variance, so that no component shrinks to one recorded value. 0.1
#: in log2 is 7 % of the number of processors or of the run time; chosen here.
LEAST_VARIANCE = 0.01

#: Jobs of a group that a mixture is fitted to; of more, a random sample. Chosen here.
MIXTURE_SAMPLE = 20_000

#: Most steps of a fit; more than it takes.
MOST_STEPS = 300

#: How often a draw outside the range is repeated before it is moved to the bound.
TRIES = 100


class Mixture(BaseModel):
    """Normal distributions of (log2 processors, log2 run time), each with its full covariance."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="share of each component; adds up to 1"
    )
    means: tuple[tuple[float, float], ...] = Field(
        description="log2 processors and log2 run time (s) of each component"
    )
    covariances: tuple[tuple[PositiveFloat, float, PositiveFloat], ...] = Field(
        description="variance of log2 processors, covariance, variance of log2 run time"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not len(self.weights) == len(self.means) == len(self.covariances):
            raise ValueError(
                f"{len(self.weights)} weights, {len(self.means)} means, "
                f"{len(self.covariances)} covariances: give as many of each"
            )
        for first, both, second in self.covariances:
            if not both * both < first * second:
                raise ValueError(f"covariance {both:g}: more than the variances allow")
        return self

    @classmethod
    def fit(
        cls,
        logs: Floats,
        *,
        components: int = COMPONENTS,
        least_variance: float = LEAST_VARIANCE,
        sample: int = MIXTURE_SAMPLE,
        seed: int = 0,
    ) -> Self:
        """Return the likeliest mixture, its number of components by BIC.

        Parameters
        ----------
        logs
            log2 processors and log2 run time of jobs, shape (jobs, 2); at least one.
        components
            Mixtures of 1 to this many are tried.
        least_variance
            Added to each variance.
        sample
            Most jobs that it is fitted to.
        seed
            Draws the sample and where fits start.

        Raises
        ------
        ModelFitError
            When scikit-learn is not installed.
        """
        if len(logs) > sample:
            logs = logs[np.random.default_rng(seed).choice(len(logs), sample, replace=False)]
        different = len(np.unique(logs, axis=0))
        if different == 1:
            return cls(
                weights=(1.0,),
                means=(tuple(logs[0].tolist()),),
                covariances=((least_variance, 0.0, least_variance),),
            )
        best = _best(logs, min(components, different), least_variance, seed)
        # A component that no job belongs to may end with a share of 0.
        there = best.weights_ > 0
        weights, spread = best.weights_[there], best.covariances_[there]
        return cls(
            weights=tuple((weights / weights.sum()).tolist()),
            means=tuple(map(tuple, best.means_[there].tolist())),
            covariances=tuple(
                (float(one[0, 0]), float(one[0, 1]), float(one[1, 1])) for one in spread
            ),
        )

    @cached_property
    def _roots(self) -> Floats:
        """Entries of the lower Cholesky factors, shape (components, 3)."""
        first, both, second = np.asarray(self.covariances).T
        a = np.sqrt(first)
        return np.column_stack([a, both / a, np.sqrt(second - both * both / first)])

    def draw(
        self, count: int, random: np.random.Generator, *, machine: int, longest_s: float
    ) -> tuple[Floats, Int64s]:
        """Return run times (whole s) and processors of so many jobs, in the range.

        What rounds to less than 1 processor, to more than ``machine``, or to a run time below 1 s
        or beyond ``longest_s``, is drawn again from the same component; after :data:`TRIES` times
        it is moved to the bound.
        """
        component = draw_from(np.asarray(self.weights), count, random)
        logs = self._logs(component, random)
        most = np.array([machine, max(longest_s, 1.0)])
        low, high = np.log2(0.5), np.log2(most + 0.5)
        for _ in range(TRIES):
            # Half a unit up to the next whole number: it rounds half up.
            out = np.flatnonzero(((logs < low) | (logs >= high)).any(axis=1))
            if not len(out):
                break
            logs[out] = self._logs(component[out], random)
        whole = np.clip(np.floor(2 ** np.clip(logs, low, high) + 0.5), 1, np.floor(most))
        return whole[:, 1], whole[:, 0].astype(np.int64)

    def _logs(self, component: Int64s, random: np.random.Generator) -> Floats:
        normal = random.standard_normal((len(component), 2))
        a, b, c = self._roots[component].T
        logs = np.asarray(self.means)[component]
        logs[:, 0] += a * normal[:, 0]
        logs[:, 1] += b * normal[:, 0] + c * normal[:, 1]
        return logs


def _best(logs: Floats, components: int, least_variance: float, seed: int) -> Any:
    """Return the mixture of scikit-learn with the smallest BIC."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ModelFitError("model mugm", missing("scikit-learn")) from None
    # One thread: the last digits of sums may depend on how many there are.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # Some numbers of components are hopeless; they lose by BIC.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [
            GaussianMixture(
                number,
                covariance_type="full",
                reg_covar=least_variance,
                max_iter=MOST_STEPS,
                random_state=seed,
            ).fit(logs)
            for number in range(1, components + 1)
        ]
        return min(found, key=lambda mixture: mixture.bic(logs))
