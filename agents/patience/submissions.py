"""What users know when they submit a job, which decides how long they let it wait.

All of it is known at the submission: a job of the user counts among those that came before from the
second in which it started or left the queue. So the same functions serve for logs, from which
patience is fitted, and for simulations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.jobs import UNKNOWN, Int64s

Floats = NDArray[np.float64]

#: Latest jobs of a user that say how often it gives up; our choice, by SDSC-DS, where 5 to 200 and
#: all were tried.
LATEST = 20

#: Latest jobs of everybody that say how often users of the site give up; our choice.
LATEST_OF_ALL = 1000

#: Jobs that weigh as much as what is known of a user's jobs in all; our choice.
PRIOR = 5.0

#: Share of jobs that are given up where nothing is known yet: between those of logs, 4 to 12 %.
SHARE = 0.05

#: Names of the columns of :attr:`Submissions.covariates`.
COVARIATES = ("everybody", "own", "alike", "processors", "request", "waiting")


@dataclass(frozen=True)
class Submissions:
    """Submissions of jobs, and what their users knew then; arrays of shape (jobs,).

    Attributes
    ----------
    wall
        Local time of the submission, s since a Monday, 00:00.
    requested_time
        s; 0 or less is unknown.
    covariates
        Numbers that hazards depend on, shape (jobs, ``COVARIATES``): log odds of giving up of the
        latest jobs of everybody, of the user, and of the user's jobs alike; log2 of processors and
        of minutes requested; log2 of 1 + other jobs of the user that wait.
    """

    wall: Int64s
    requested_time: Int64s
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
        clock: Clock,
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
        clock
            Local time.
        """
        user, queue, submit, wait, requested = (
            np.asarray(one).astype(np.int64) for one in (user, queue, submit, wait, requested_time)
        )
        gone, size = np.asarray(gave_up, bool), np.maximum(np.asarray(processors, float), 1)
        over = np.where(wait == UNKNOWN, np.iinfo(np.int64).max, submit + wait)
        nobody = np.full(len(submit), SHARE)
        minutes = np.log2(1 + np.maximum(requested, 0) / 60)
        alike = np.column_stack([user, queue, np.rint(2 * minutes), np.rint(np.log2(size))])

        def shares(keys: Int64s, latest: int, prior: Floats) -> Floats:
            return _shares(keys, submit, over, gone, latest, prior)

        everybody = shares(np.zeros_like(user), LATEST_OF_ALL, nobody)
        own = shares(user, LATEST, everybody)
        same = shares(alike.astype(np.int64), LATEST, own)
        covariates = [
            *(np.log(one / (1 - one)) for one in (everybody, own, same)),
            np.log2(size),
            minutes,
            np.log2(1 + _waiting(user, submit, over)),
        ]
        return cls(clock.walls(submit), requested, np.column_stack(covariates))

    def __len__(self) -> int:
        return len(self.wall)

    def take(self, rows: Int64s | NDArray[np.bool_]) -> Self:
        """Return those of some rows, or of a mask."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))


def groups(keys: Int64s) -> list[Int64s]:
    """Return the rows of each distinct key, of shape (rows,) or (rows, columns)."""
    if not len(keys):
        return []
    _, place = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(place.ravel()[order])) + 1)


def _shares(
    keys: Int64s, submit: Int64s, over: Int64s, gone: NDArray[np.bool_], latest: int, prior: Floats
) -> Floats:
    """Return the share given up of the latest jobs of the same key that were over at a submission.

    It is shrunk towards ``prior``, which weighs as much as :data:`PRIOR` jobs.
    """
    found = np.empty(len(submit))
    for rows in groups(keys):
        ends = rows[np.argsort(over[rows], kind="stable")]
        left = np.concatenate([[0], np.cumsum(gone[ends])])
        before = np.searchsorted(over[ends], submit[rows], side="left")
        first = np.maximum(before - latest, 0)
        share = left[before] - left[first] + PRIOR * prior[rows]
        found[rows] = share / (before - first + PRIOR)
    return found


def _waiting(user: Int64s, submit: Int64s, over: Int64s) -> Int64s:
    """Return how many other jobs of its user wait when each is submitted."""
    found = np.empty(len(submit), np.int64)
    for rows in groups(user):
        sent = np.searchsorted(np.sort(submit[rows]), submit[rows], side="left")
        found[rows] = sent - np.searchsorted(np.sort(over[rows]), submit[rows], side="left")
    return np.maximum(found, 0)
