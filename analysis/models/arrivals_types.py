"""Arrivals of two kinds of jobs, batch and interactive, each with arrivals of its own."""

from __future__ import annotations

from typing import ClassVar, Self, override

import numpy as np
from pydantic import Field

from analysis.features.workload import Workload
from analysis.models.arrivals_lublin import Lublin
from analysis.models.part import ArrivalModel, Floats
from environment.jobs import Int64s

#: Kinds of jobs; these are their queues in the authors' program.
INTERACTIVE, BATCH = 0, 1

#: Fewest jobs of a kind that it is told apart with (chosen here).
FEWEST = 100


class LublinTypes(ArrivalModel):
    """Lublin's arrivals of batch and of interactive jobs, merged by the next one to come."""

    name: ClassVar[str] = "lublin-types"
    title: ClassVar[str] = "the same for batch and interactive jobs apart"
    source: ClassVar[str] = Lublin.source

    batch: Lublin = Field(description="arrivals of batch jobs")
    interactive: Lublin = Field(description="arrivals of interactive jobs")

    @classmethod
    @override
    def fit(cls, submit: Floats) -> Self:
        """Return the same arrivals for both kinds, each at half the rate: nothing is known."""
        both = Lublin.fit(submit[::2])
        return cls(batch=both, interactive=both, notes=both.notes)

    @classmethod
    @override
    def fit_workload(cls, workload: Workload) -> ArrivalModel:
        """Return the arrivals of both kinds, or Lublin's of all jobs where there is one kind.

        Jobs of queue 0 are interactive, as in logs of the Parallel Workloads Archive.
        """
        kinds = kinds_of(workload)
        if kinds is None:
            return Lublin.fit_workload(workload)
        found = [
            Lublin.fit_workload(workload.take(np.flatnonzero(kinds == kind)))
            for kind in (BATCH, INTERACTIVE)
        ]
        return cls(batch=found[0], interactive=found[1])

    @classmethod
    def published(cls) -> Self:
        """Return the model with the authors' parameters."""
        return cls(batch=Lublin.published("batch"), interactive=Lublin.published("interactive"))

    @property
    def interactive_share(self) -> float:
        """Share of interactive jobs in the mean."""
        batch, interactive = 1 / self.batch.mean_gap_s, 1 / self.interactive.mean_gap_s
        return interactive / (batch + interactive)

    @override
    def times(self, count: int, random: np.random.Generator) -> Floats:
        return self.times_and_kinds(count, random)[0]

    @override
    def times_and_kinds(self, count: int, random: np.random.Generator) -> tuple[Floats, Int64s]:
        times = np.concatenate(
            [self.batch.times(count, random), self.interactive.times(count, random)]
        )
        first = np.argsort(times, kind="stable")[:count]
        return times[first], np.where(first < count, BATCH, INTERACTIVE)


def kinds_of(workload: Workload) -> Int64s | None:
    """Return the kind of each job by its queue; None where there are too few of one kind."""
    kinds = np.where(workload.queue == INTERACTIVE, INTERACTIVE, BATCH)
    few = np.bincount(kinds, minlength=2).min() < FEWEST
    return None if few else kinds
