"""Fitted patience: after which wait users give up a job, as a distribution to draw from.

Time in the queue is cut into bins. In each a job that still waits is given up at a constant rate,
its hazard. The log of the rate is a sum over what its user knew at the submission
(:class:`~hpcrowd.agents.patience.submissions.Submissions`), with a table for each: a row for each
bin, and a column for each level of what was known.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np

from hpcrowd.agents.patience.submissions import BINS, COVARIATES, EDGES, Floats, Submissions
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import ModelFileError
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

#: Files of fitted patience.
FILES = ModelFormat(
    "hpcrowd patience", 1, "fitted patience", "hpcrowd fit patience", "fit it again"
)

#: Waits between which changed minds are counted apart, s; our choice.
BANDS = (0, 120, 600, HOUR, 6 * HOUR)

#: Levels of each covariate; our choice.
LEVELS = 32


@dataclass(frozen=True)
class FittedPatience:
    """How long users let their jobs wait, fitted to logs by ``hpcrowd fit patience``.

    Attributes
    ----------
    cuts
        Values between the levels of each covariate, ascending, shape (``COVARIATES``, levels - 1).
    level
        Log of the rate in each bin, per length of the bin, where all covariates are lowest; shape
        (bins,).
    tables
        What is added to it for the level of each covariate, shape (``COVARIATES``, bins, levels).
    changed
        Share of the jobs given up whose users then submit another like it, by band of the wait;
        shape (``BANDS``,).
    provenance
        The logs, versions and settings that it was fitted with, fit for JSON.
    """

    cuts: Floats
    level: Floats
    tables: Floats
    changed: Floats
    provenance: dict[str, Any] = field(default_factory=dict)

    def hazards(self, found: Submissions, bins: Int64s, rows: Int64s | None = None) -> Floats:
        """Return the hazard of each job in a bin, per length of the bin.

        ``bins`` is one for each job, shape (jobs,), or for each of ``rows``; so is the result.
        """
        added = self.added(at_bins(found, bins, rows), bins)
        return np.asarray(np.exp(self.level[bins] + added.sum(axis=1)))

    def added(self, known: Floats, bins: Int64s) -> Floats:
        """Return what each covariate adds to the log of the rate in a bin, shape as ``known``.

        ``known`` are values of :func:`at_bins`, and ``bins`` one for each row.
        """
        each = zip(known.T, self.cuts, self.tables, strict=True)
        return np.column_stack(
            [
                table[bins, np.searchsorted(cuts, values, side="right")]
                for values, cuts, table in each
            ]
        )

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
        for place, (begin, high) in enumerate(pairwise(EDGES.tolist())):
            low = np.maximum(since[rows], begin)
            share = np.maximum(high - low, 0) / (high - begin)
            used = share * self.hazards(found, np.full(len(rows), place), rows)
            gone = left[rows] < used
            within = left[rows[gone]] / used[gone]
            waits[rows[gone]] = low[gone] + np.floor((high - low[gone]) * within) + 1
            left[rows] -= used
            rows = rows[~gone]
        return waits

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which is complete or absent."""
        arrays = {name: getattr(self, name).tolist() for name in _shapes()}
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
        try:
            arrays = {name: np.array(wire[name], float) for name in _shapes()}
            good = all(arrays[name].shape == shape for name, shape in _shapes().items())
            good &= wire["covariates"] == list(COVARIATES)
            provenance = dict(wire["provenance"])
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise ModelFileError(f"{os.fspath(path)}: damaged; {FILES.again}")
        return cls(**arrays, provenance=provenance)


def _shapes() -> dict[str, tuple[int, ...]]:
    """Return the arrays of a model, and their shapes."""
    known = len(COVARIATES)
    return {
        "cuts": (known, LEVELS - 1),
        "level": (BINS,),
        "tables": (known, BINS, LEVELS),
        "changed": (len(BANDS),),
    }


def at_bins(found: Submissions, bins: Int64s, rows: Int64s | None = None) -> Floats:
    """Return the covariates of jobs, or of rows, for one bin each, shape (jobs, ``COVARIATES``)."""
    rows, known = np.arange(len(bins)) if rows is None else rows, found.covariates
    return np.column_stack([known[rows, at] for at in (0, 1, 2 + bins, 2 + BINS + bins)])


def band_of(waits: Int64s) -> Int64s:
    """Return the band of :data:`BANDS` in which each wait, s, ends."""
    found: Int64s = np.searchsorted(BANDS, waits, side="right") - 1
    return found


def bin_of(waits: Int64s) -> Int64s:
    """Return the bin in which each wait ends, the last for longer ones."""
    found: Int64s = np.searchsorted(EDGES, waits, side="right") - 1
    return np.minimum(found, BINS - 1)
