"""Classes of jobs by run time: run times and processors of each class.

Minh 2012, sections 5.1.1, 5.1.3 and Algorithm 2: a mixture of normal distributions, and the
processors of the jobs of each class.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from hpcrowd.analysis.features.locality import classes_of_run_times
from hpcrowd.analysis.features.workload import RESOLUTION_S, Workload
from hpcrowd.analysis.models.parts.base import Floats, Numbers
from hpcrowd.environment.errors import ModelFitError, UnavailableError
from hpcrowd.environment.jobs import Int64s


def pair_counts(first: Int64s, second: Int64s) -> tuple[tuple[int, int, int], ...]:
    """Return the distinct pairs with their counts."""
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    return tuple(zip(*pairs.tolist(), counts.tolist(), strict=True))


class JobClasses(Numbers):
    """A mixture of run times, with the processors of the jobs of each class.

    The thesis draws a class of parallelism from Pr(c, l), then one of the jobs with both labels
    (Algorithms 1 and 2). Both steps together draw from the distribution of processors among the
    jobs with the label of the run time, which is done here in one step.
    """

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="p_k, share of each class; adds up to 1"
    )
    means_s: tuple[NonNegativeFloat, ...] = Field(
        min_length=1, description="s; mean run time of each class, rising"
    )
    sds_s: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="s; standard deviation of each class"
    )
    processors: tuple[tuple[int, int, int], ...] = Field(
        min_length=1,
        description="class, from 0 on; processors; number of jobs of the class that need this many",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        size = len(self.weights)
        if not size == len(self.means_s) == len(self.sds_s):
            raise ValueError(
                f"{size} weights, {len(self.means_s)} means and {len(self.sds_s)} deviations"
            )
        counts = np.asarray(self.processors)
        if set(counts[:, 0].tolist()) != set(range(size)) or counts[:, 1:].min() < 1:
            raise ValueError(f"processors: each of {size} classes must have jobs with processors")
        return self

    @classmethod
    def fit(cls, workload: Workload, model: str) -> tuple[Self, Int64s]:
        """Return the classes of a workload, and the class of each job, shape (jobs,).

        Components of the mixture that are never the most probable have no jobs, so their processors
        are unknown: they are left out.

        Raises
        ------
        ModelFitError
            When there are no jobs, or the mixture cannot be fitted.
        """
        if not len(workload):
            raise ModelFitError(f"model {model}: 0 jobs", "at least one is needed")
        try:
            found = classes_of_run_times(workload)
        except UnavailableError as error:
            raise ModelFitError(f"model {model}: classes of run times", str(error)) from None
        used, labels = np.unique(found.labels, return_inverse=True)
        weights = found.weights[used] / found.weights[used].sum()
        classes = cls(
            weights=tuple(weights.tolist()),
            means_s=tuple(np.maximum(found.means[used], 0).tolist()),
            sds_s=tuple(found.sds[used].tolist()),
            processors=pair_counts(labels, workload.processors),
        )
        return classes, labels.astype(np.int64)

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def _counts(self) -> Int64s:
        """Rows of class, processors and number of jobs, by class, shape (rows, 3)."""
        counts = np.asarray(self.processors, np.int64)
        return counts[np.lexsort((counts[:, 1], counts[:, 0]))]

    def draw_run_times(
        self,
        classes: Int64s,
        random: np.random.Generator,
        *,
        least_s: tuple[float, ...] = (),
        most_s: tuple[float, ...] = (),
    ) -> Floats:
        """Return a run time in whole seconds for each class.

        The normal distribution of each class is truncated where values round to less than 0, as if
        these were drawn again. The thesis does not say what it does; chosen here.

        Parameters
        ----------
        classes
            From 0 on, shape (jobs,).
        random
            The stream to draw from.
        least_s, most_s
            s; shortest and longest run time of each class; by default 0 and no bound.
        """
        from scipy.special import ndtr, ndtri

        means, sds = np.asarray(self.means_s), np.asarray(self.sds_s)
        least = np.asarray(least_s or (0.0,) * len(self))
        most = np.asarray(most_s or (np.inf,) * len(self))
        below = ndtr((least - RESOLUTION_S / 2 - means) / sds)
        above = ndtr((most + RESOLUTION_S / 2 - means) / sds)
        share = below[classes] + (above - below)[classes] * random.random(len(classes))
        # A share that rounds to 1 would give an infinite time.
        times = means[classes] + sds[classes] * ndtri(np.minimum(share, np.nextafter(1, 0)))
        whole: Floats = np.clip(np.floor(times + RESOLUTION_S / 2), least[classes], most[classes])
        return whole

    def draw_processors(self, classes: Int64s, machine: int, random: np.random.Generator) -> Int64s:
        """Return processors for each class, drawn from those of its jobs.

        Numbers above the machine are left out; if all numbers of a class are, it gets the whole
        machine.
        """
        fits = self._counts[self._counts[:, 1] <= machine]
        ends = np.cumsum(fits[:, 2])
        jobs = np.bincount(fits[:, 0], fits[:, 2], len(self)).astype(np.int64)
        before = np.cumsum(jobs) - jobs
        one = before[classes] + (random.random(len(classes)) * jobs[classes]).astype(np.int64)
        place = np.searchsorted(ends, one, side="right")
        padded = np.append(fits[:, 1], machine)
        return np.where(jobs[classes] > 0, padded[np.minimum(place, len(fits))], machine)

    def notes_on(self, machine: int) -> list[str]:
        """Return a note if the machine is smaller than some jobs of the trace."""
        counts = self._counts
        share = float(counts[counts[:, 1] > machine, 2].sum() / counts[:, 2].sum())
        if not share:
            return []
        return [
            f"{100 * share:.2g} % of the jobs of the trace need more than {machine:,} processors; "
            "these numbers of processors are not drawn"
        ]
