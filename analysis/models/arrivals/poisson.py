"""Poisson arrivals: independent exponential times between jobs."""

from __future__ import annotations

from typing import ClassVar, Self, override

import numpy as np
from pydantic import Field

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Floats
from hpcrowd.environment.errors import ModelFitError, QuantityError


class Poisson(ArrivalModel):
    """Arrivals at random: no bursts, no dependence, no rhythm.

    What the models of chapter 6 of Minh 2012 are held against.
    """

    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "arrivals at random, one rate"
    source: ClassVar[str] = "Minh 2012, section 6.1"

    mean_gap_s: float = Field(gt=0, description="s; mean time between two arrivals")

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:
        submit = workload.submit
        if len(submit) < 2 or submit[-1] <= submit[0]:
            raise ModelFitError(
                f"arrivals {cls.name}: {len(submit)} jobs", "two at different times are needed"
            )
        return cls(mean_gap_s=float(submit[-1] - submit[0]) / (len(submit) - 1))

    @classmethod
    def published(cls, model: str, gap_s: float | None, note: str) -> Self:
        """Return the arrivals that go with the published parameters of a model of jobs.

        Raises
        ------
        QuantityError
            When the mean time between them is not known, as of a model that was fitted.
        """
        if gap_s is None:
            raise QuantityError(
                f"model {model}: published_gap_s is not known of a model that was fitted; take "
                "the arrivals that were fitted with it"
            )
        return cls(mean_gap_s=gap_s, notes=(note,))

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        return np.cumsum(random.exponential(self.mean_gap_s, count))
