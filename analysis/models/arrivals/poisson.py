"""Poisson arrivals: independent exponential times between jobs."""

from __future__ import annotations

from typing import ClassVar, Self, override

import numpy as np
from pydantic import Field

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Floats
from hpcrowd.environment.errors import ModelFitError, QuantityError


class Poisson(ArrivalModel):
    """Random arrivals: no bursts, no dependence, no cycles.

    Minh 2012 compares the models of chapter 6 with them.
    """

    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "random arrivals with one rate"
    source: ClassVar[str] = "Minh 2012, section 6.1"

    mean_gap_s: float = Field(gt=0, description="s; mean time between two arrivals")

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:
        submit = workload.submit
        if len(submit) < 2 or submit[-1] <= submit[0]:
            raise ModelFitError(
                f"arrivals {cls.name}: {len(submit)} jobs",
                "two at different times are needed",
            )
        return cls(mean_gap_s=float(submit[-1] - submit[0]) / (len(submit) - 1))

    @classmethod
    def published(cls, model: str, gap_s: float | None, note: str) -> Self:
        """Return arrivals for the published parameters of a model of jobs.

        Raises
        ------
        QuantityError
            When their mean gap is unknown, as for a fitted model.
        """
        if gap_s is None:
            raise QuantityError(
                f"model {model}: published_gap_s is unknown for a fitted model; take the arrivals "
                "that were fitted with it"
            )
        return cls(mean_gap_s=gap_s, notes=(note,))

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        return np.cumsum(random.exponential(self.mean_gap_s, count))
