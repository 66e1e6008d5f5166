"""Poisson arrivals: independent exponential times between jobs."""

from __future__ import annotations

from typing import ClassVar, Self, override

import numpy as np
from pydantic import Field

from hpcrowd.analysis.models.parts.base import ArrivalModel, Floats
from hpcrowd.environment.errors import ModelFitError


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
    def fit(cls, submit: Floats) -> Self:
        if len(submit) < 2 or submit[-1] <= submit[0]:
            raise ModelFitError(
                f"arrivals {cls.name}: {len(submit)} jobs", "two at different times are needed"
            )
        return cls(mean_gap_s=float(submit[-1] - submit[0]) / (len(submit) - 1))

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        return np.cumsum(random.exponential(self.mean_gap_s, count))
