"""Fitted patience: after which wait users give up a job, as a distribution to draw from.

Time in the queue is cut into bins. In each a job that still waits is given up at a constant rate,
its hazard. The log of the rate is a sum over what its user knew at the submission
(:class:`~hpcrowd.agents.patience.submissions.Submissions`), the bin, and the local hour.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from hpcrowd.agents.patience.submissions import COVARIATES, Floats, Submissions
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

#: Files of fitted patience.
FILES = ModelFormat(
    "hpcrowd patience", 1, "fitted patience", "hpcrowd fit patience", "fit it again"
)

#: Edges of the bins of waits, s: from seconds to 16 days. Our choice: finer where more jobs are
#: given up, and never longer than a part of the day until a user has waited for days.
EDGES = np.array(
    [
        *(0, 10, 20, 40, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700, HOUR, 5400),
        *range(2 * HOUR, DAY, 2 * HOUR),
        *range(DAY, 4 * DAY, 4 * HOUR),
        *range(4 * DAY, 16 * DAY + 1, 8 * HOUR),
    ],
    np.int64,
)

#: Bins.
BINS = len(EDGES) - 1

#: Hours of a weekday, then those of the weekend.
HOURS = 48


@dataclass(frozen=True)
class FittedPatience:
    """How long users let their jobs wait, fitted to logs by ``hpcrowd fit patience``.

    Attributes
    ----------
    level
        Log of the rate in each bin, per length of the bin, shape (bins,).
    hours
        What the local hour adds, 24 of weekdays and 24 of the weekend.
    weights
        What one more of each covariate adds, shape (``COVARIATES``,).
    provenance
        The logs, versions and settings that it was fitted with, fit for JSON.
    """

    level: Floats
    hours: Floats
    weights: Floats
    provenance: dict[str, Any] = field(default_factory=dict)

    def hazards(self, found: Submissions, bins: Int64s) -> Floats:
        """Return the hazard of each job in a bin, per length of the bin.

        ``bins`` is one for each job, shape (jobs,); so is the result.
        """
        rate = found.covariates @ self.weights + self.level[bins]
        rate += self.hours[hour_of(found.wall + EDGES[bins])]
        return np.asarray(np.exp(rate))

    def draw(
        self, found: Submissions, generator: np.random.Generator, after: Int64s | None = None
    ) -> Int64s:
        """Return after which wait each user gives up, s, at least 1.

        Parameters
        ----------
        found
            The submissions.
        generator
            Source of randomness; each job takes one number.
        after
            s; how long each is known to have waited without being given up: patience is then drawn
            among those that last longer. 0 unless given.

        Returns
        -------
        :data:`~hpcrowd.environment.stops.FOREVER` for users who do not give up within the bins.
        """
        jobs = len(found)
        since = np.zeros(jobs, np.int64) if after is None else np.asarray(after, np.int64)
        left = generator.exponential(size=jobs)  # to be used up by hazards, bin by bin
        waits = np.full(jobs, FOREVER)
        rows = np.arange(jobs)
        for place in range(BINS):
            low, high = np.maximum(since[rows], EDGES[place]), EDGES[place + 1]
            share = np.maximum(high - low, 0) / (high - EDGES[place])
            hazard = self.hazards(found.take(rows), np.full(len(rows), place))
            used = hazard * share
            gone = (left[rows] < used) & (share > 0)
            within = left[rows[gone]] / used[gone]
            waits[rows[gone]] = low[gone] + np.floor((high - low[gone]) * within) + 1
            left[rows] -= used
            rows = rows[~gone]
            if not len(rows):
                break
        return waits

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which is complete or absent."""
        arrays = {name: getattr(self, name).tolist() for name in ("level", "hours", "weights")}
        FILES.write({**arrays, "covariates": COVARIATES, "provenance": self.provenance}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read it from a file.

        Raises
        ------
        ModelFileError
            In one line, if it is not such a file, or of another version.
        """
        wire = FILES.read(path)
        sizes = {"level": BINS, "hours": HOURS, "weights": len(COVARIATES)}
        try:
            arrays = {name: np.array(wire[name], float) for name in sizes}
            good = all(len(arrays[name]) == size for name, size in sizes.items())
            good &= wire["covariates"] == list(COVARIATES)
            provenance = dict(wire["provenance"])
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise ModelFileError(f"{os.fspath(path)}: damaged; {FILES.again}")
        return cls(**arrays, provenance=provenance)


def hour_of(wall: Int64s) -> Int64s:
    """Return the hour of :attr:`FittedPatience.hours` of local times, s since a Monday, 00:00."""
    hours: Int64s = wall // HOUR % 24 + np.where(wall // DAY % 7 >= 5, 24, 0)
    return hours


def bin_of(waits: Int64s) -> Int64s:
    """Return the bin in which each wait ends, the last for longer ones."""
    found: Int64s = np.searchsorted(EDGES, waits, side="right") - 1
    return np.minimum(found, BINS - 1)
