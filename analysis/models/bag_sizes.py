"""Sizes of bags of tasks: the Zipf distribution of the thesis, and one with a heavier tail."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from analysis.features.locality import zipf_exponent
from analysis.models.part import Floats
from analysis.models.shares import draw_from
from environment.jobs import Int64s

Bools = NDArray[np.bool_]

#: Exponents of the sizes of real bags that are looked at: nearly all the largest, nearly all 2.
EXPONENTS = (-1e6, 60.0)

#: How bag sizes may be distributed.
Sizes = Literal["zipf", "heavy"]


class BagSizes(BaseModel):
    """What is known of the bags of a workload; single jobs are bags of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    zipf: float | None = Field(
        None, gt=1, description="exponent of the Zipf distribution of all sizes; null: all are 1"
    )
    single: float = Field(1.0, ge=0, le=1, description="share of the bags that are single jobs")
    exponent: float = Field(
        0.0, description="exponent of the other sizes, from 2 to the largest, that gives their mean"
    )
    largest: int = Field(1, ge=1, description="jobs of the largest bag")
    single_of_class: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        min_length=1, description="a_k, share of single jobs in each class of run times"
    )

    @model_validator(mode="after")
    def _has_bags(self) -> Self:
        if (self.zipf is None) != (self.largest == 1):
            raise ValueError(f"zipf {self.zipf} with a largest bag of {self.largest}")
        if self.single < 1 and self.largest == 1:
            raise ValueError(f"single {self.single}: without larger bags it is 1")
        return self

    @classmethod
    def fit(cls, size: Int64s, size_of_job: Int64s, labels: Int64s) -> Self:
        """Return what is known of bags.

        Parameters
        ----------
        size
            Jobs of each bag, shape (bags,).
        size_of_job
            Jobs of the bag of each job, shape (jobs,).
        labels
            Class of each job, from 0 on; every class has jobs.
        """
        shares = np.bincount(labels, size_of_job == 1) / np.bincount(labels)
        single_of_class, largest = tuple(shares.tolist()), int(size.max())
        if largest == 1:
            return cls(single_of_class=single_of_class)
        real = size[size > 1]
        return cls(
            zipf=zipf_exponent(size, "bag sizes").exponent,
            single=1 - len(real) / len(size),
            exponent=_exponent(float(real.mean()), largest),
            largest=largest,
            single_of_class=single_of_class,
        )

    @cached_property
    def shares(self) -> Floats:
        """Share of each size from 1 to the largest, of the distribution with the heavier tail.

        Single jobs have their own share; sizes from 2 to the largest follow a Zipf distribution
        with a cut-off, whose exponent gives their mean. Our own, beyond the thesis.
        """
        if self.largest == 1:
            return np.ones(1)
        return np.append(self.single, (1 - self.single) * _shares(self.exponent, self.largest))

    def draw(self, count: int, kind: Sizes, random: np.random.Generator) -> Int64s:
        """Return the sizes of so many bags, at most ``count`` jobs each."""
        if self.zipf is None:
            return np.ones(count, np.int64)
        if kind == "zipf":
            return np.minimum(random.zipf(self.zipf, count), count).astype(np.int64)
        return draw_from(self.shares, count, random) + 1

    def classes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the shares of classes of single jobs and of jobs of bags (section 5.1.2).

        Where there are none of the one, those of the other stand.
        """
        single = np.asarray(self.single_of_class) * weights
        bags = weights - single
        whole = single.sum(), bags.sum()
        if min(whole) <= 0:
            return weights / weights.sum(), weights / weights.sum()
        return single / whole[0], bags / whole[1]


def _shares(exponent: float, largest: int) -> Floats:
    """Return the shares of sizes from 2 to the largest."""
    logs = -exponent * np.log(np.arange(2, largest + 1))
    shares = np.exp(logs - logs.max())
    found: Floats = shares / shares.sum()
    return found


def _exponent(mean: float, largest: int) -> float:
    """Return the exponent that gives sizes from 2 to the largest their mean."""
    from scipy.optimize import brentq

    sizes = np.arange(2, largest + 1)
    flattest, steepest = EXPONENTS

    def above(exponent: float) -> float:
        return float(_shares(exponent, largest) @ sizes) - mean

    if above(flattest) <= 0:
        return flattest
    if above(steepest) >= 0:
        return steepest
    return float(brentq(above, flattest, steepest))
