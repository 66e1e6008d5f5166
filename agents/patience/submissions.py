"""What users know when they submit a job, which decides how long they let it wait.

All of it is known at the submission: a job of the user counts among those that came before from the
second in which it started or left the queue. So the same functions serve for logs, from which
patience is fitted, and for simulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN, Int64s

Floats = NDArray[np.float64]

#: Latest jobs of a user alike that say how often it gives up such jobs; twice as many of all of its
#: jobs, and of both at about a wait. Our choice by the first half of SDSC-DS, as all numbers
#: here.
LATEST = 10

#: Latest jobs of everybody that say how often users of the site give up.
LATEST_OF_ALL = 1000

#: Wait up to which as many jobs are given up as in each doubling of it after that, s.
SOON = 30

#: Jobs given up for each unit of ``log(1 + wait / SOON)`` where nothing is known yet.
RATE = 0.05

#: Jobs given up that weigh as much as what is known of everybody, and of a user in general.
PRIOR, PRIOR_OF_OWN = 1.0, 0.25

#: Edges of the bins of waits, s: from seconds to 16 days. Our choice: finer where more jobs are
#: given up.
EDGES = np.array(
    [
        *(0, 10, 20, 40, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700, HOUR, 5400),
        *(HOUR * hours for hours in (2, 3, 4, 6, 8, 12, 18, 24, 36)),
        *(DAY * days for days in (2, 3, 4, 6, 8, 12, 16)),
    ],
    np.int64,
)

#: Bins.
BINS = len(EDGES) - 1

#: Bins before and after each from which a user's own patience at such waits is known, and the jobs
#: given up that weigh as much there as its patience in general. Our choice by the first half of
#: SDSC-DS (concordance .714; .700 with five fixed bands, see docs/studies/patience.md).
AROUND, PRIOR_THEN = 2, 0.1

#: What hazards depend on.
COVARIATES = ("own", "alike", "own then", "alike then")


@dataclass(frozen=True)
class Submissions:
    """Submissions of jobs, and what their users knew then; arrays of shape (jobs,).

    Attributes
    ----------
    covariates
        How often jobs were given up, relative to :data:`RATE`, as logs; shape (jobs, 2 + 2 bins):
        those of the user, and of the user with about the same processors and requested time and in
        the same queue; then of the user at waits of about each bin, and of those alike.
    """

    covariates: Floats

    @classmethod
    def of(
        cls,
        user: ArrayLike,
        processors: ArrayLike,
        requested_time: ArrayLike,
        queue: ArrayLike,
        submit: ArrayLike,
        wait: ArrayLike,
        gave_up: ArrayLike,
    ) -> Self:
        """Return the submissions of a log, or of a simulation until now; all of shape (jobs,).

        Parameters
        ----------
        user, queue
            Numbers.
        processors
            Processors that each asks for.
        requested_time
            s; 0 or less is unknown.
        submit
            s of the run, in any order.
        wait
            s from the submission until the job started or left the queue; -1 if it waits still.
        gave_up
            Whether it left the queue without a start.
        """
        user, queue, submit, wait, requested = (
            np.asarray(one).astype(np.int64) for one in (user, queue, submit, wait, requested_time)
        )
        gone, size = np.asarray(gave_up, bool), np.maximum(np.asarray(processors, float), 1)
        over = np.where(wait == UNKNOWN, np.iinfo(np.int64).max, submit + wait)
        minutes = np.log2(1 + np.maximum(requested, 0) / 60)
        alike = np.column_stack([user, queue, np.rint(2 * minutes), np.rint(np.log2(size))])
        mine = _Past(user, submit, over)
        same = _Past(alike.astype(np.int64), submit, over)
        exposed = _exposure(np.maximum(wait, 0))
        everybody = _Past(np.zeros_like(user), submit, over).rates(
            exposed, gone, np.ones(len(user)), PRIOR, LATEST_OF_ALL
        )
        own = mine.rates(exposed, gone, everybody, PRIOR)
        lately = mine.rates(exposed, gone, own, PRIOR_OF_OWN, 2 * LATEST)
        theirs = same.rates(exposed, gone, lately, PRIOR_OF_OWN, LATEST)
        found = [own, theirs]
        for past, towards, before in ((mine, own, True), (same, theirs, False)):
            for place in range(BINS):
                low, high = EDGES[[max(place - AROUND, 0), min(place + 1 + AROUND, BINS)]]
                there = _exposure(np.clip(wait, low, high)) - _exposure(low)
                left = gone & (wait >= low) & (wait < high)
                at = past.rates(there, left, towards, PRIOR_THEN) if before else towards
                found.append(past.rates(there, left, at, PRIOR_THEN, 2 * LATEST))
        return cls(np.log(np.column_stack(found)))

    def __len__(self) -> int:
        return len(self.covariates)

    def take(self, rows: Int64s | NDArray[np.bool_]) -> Self:
        """Return those of some rows, or of a mask."""
        return type(self)(self.covariates[rows])


def groups(keys: Int64s) -> list[Int64s]:
    """Return the rows of each distinct key, of shape (rows,) or (rows, columns)."""
    if not len(keys):
        return []
    _, place = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(place.ravel()[order])) + 1)


def _exposure(wait: Int64s) -> Floats:
    """Return how many jobs would have been given up in waits, s, at the usual rate."""
    return np.asarray(RATE * np.log1p(wait / SOON))


class _Past:
    """What was over, of jobs of the same key, when each was submitted.

    Parameters are of shape (jobs,), keys also (jobs, columns); ``over`` is the second at which a
    job started or left, late if it waits still.
    """

    def __init__(self, keys: Int64s, submit: Int64s, over: Int64s) -> None:
        self._ends = np.empty(len(submit), np.int64)  # jobs of a key together, as they were over
        self._first, self._before = np.empty((2, len(submit)), np.int64)  # places among these
        place = 0
        for rows in groups(keys):
            ends = rows[np.argsort(over[rows], kind="stable")]
            self._ends[place : place + len(rows)] = ends
            self._first[rows] = place
            self._before[rows] = place + np.searchsorted(over[ends], submit[rows], side="left")
            place += len(rows)

    def rates(
        self,
        exposed: Floats,
        gone: NDArray[np.bool_],
        towards: Floats,
        prior: float,
        latest: int | None = None,
    ) -> Floats:
        """Return the rate at which the latest were given up, relative to the usual one.

        It is the mean of a gamma distribution, whose prior has the mean ``towards`` and weighs as
        much as ``prior`` jobs given up (empirical Bayes). All of the past counts unless ``latest``
        is given. Arrays are of shape (jobs,).
        """
        before, first = self._before, self._first
        if latest is not None:
            first = np.maximum(first, before - latest)
        left, seen = (
            np.concatenate([[0.0], np.cumsum(one[self._ends])]) for one in (gone, exposed)
        )
        found: Floats = (left[before] - left[first] + prior * towards) / (
            seen[before] - seen[first] + prior
        )
        return found
