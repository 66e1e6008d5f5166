"""Clusters of MUGM: classes of jobs, and groups of users by what they submit (Song et al. 2005).

Both use k-medoids by PAM with its BUILD and SWAP phases; the loop that Fig. 7 of the paper draws,
which moves each medoid within its own cluster, ends in poor optima.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from analysis.models.part import Floats
from environment.errors import ModelFitError
from environment.extras import missing
from environment.jobs import Int64s

#: Values that medoids of run times are sought among, as CLARA does. Evenly spaced by rank, 1,000
#: give the exact optimum to within a few seconds on KTH-SP2 and LANL-CM5; chosen here.
SAMPLE = 2000

#: Users that medoids are sought among; of more, those with most jobs are taken. Chosen here: the
#: matrix of distances has the square of it.
MOST_USERS = 4000

#: Most swaps of PAM; far more than it takes.
MOST_SWAPS = 1000


def parallelism_class(processors: Int64s) -> Int64s:
    """Return floor(log2 p + 0.5), the nearest power of two of each job (section IV-B)."""
    found: Int64s = np.floor(np.log2(processors) + 0.5).astype(np.int64)
    return found


def run_time_medoids(
    log_run_time: Floats,
    clusters: int,
    *,
    sample: int = SAMPLE,
    random: np.random.Generator | None = None,
) -> Floats:
    """Return the medoids of run times, rising, in log2 s (section IV-B).

    The distance is (log2 r - log2 r')^2, as the paper prints it. Fewer different run times than
    clusters are a cluster each.

    Parameters
    ----------
    log_run_time
        log2 of s, shape (jobs,).
    clusters
        How many.
    sample
        Among how many values they are sought.
    random
        Draws the sample as CLARA does; None takes evenly spaced ranks, which leaves nothing to
        chance.

    Raises
    ------
    ModelFitError
        When the library is not installed.
    """
    ordered = np.sort(log_run_time)
    if len(ordered) > sample:
        if random is None:
            ordered = ordered[(2 * np.arange(sample) + 1) * len(ordered) // (2 * sample)]
        else:
            ordered = np.sort(random.choice(ordered, sample, replace=False))
    distinct = np.unique(ordered)
    if len(distinct) <= clusters:
        return distinct
    return np.sort(ordered[_medoids((ordered[:, None] - ordered) ** 2, clusters)])


def run_time_class(log_run_time: Floats, medoids: Floats) -> Int64s:
    """Return the cluster of each job, that of the nearest medoid, from 0 on."""
    found: Int64s = np.searchsorted((medoids[1:] + medoids[:-1]) / 2, log_run_time)
    return found


@dataclass(frozen=True, eq=False)
class Submissions:
    """Which share of each user's jobs falls into which class of jobs (section IV-C).

    Attributes
    ----------
    users
        Their numbers, rising, shape (users,).
    place
        User of each job by place in ``users``, shape (jobs,).
    shares
        Feature vectors: fractions over the classes, each adds up to 1, shape (users, classes).
    jobs
        How many each user has, shape (users,).
    """

    users: Int64s
    place: Int64s
    shares: Floats
    jobs: Int64s

    @classmethod
    def of(cls, user: Int64s, processors: Int64s, log_run_time: Floats, medoids: Floats) -> Self:
        """Return those of jobs; a class is a class of parallelism and a cluster of run times."""
        users, place = np.unique(user, return_inverse=True)
        joint = parallelism_class(processors) * len(medoids) + run_time_class(log_run_time, medoids)
        classes, column = np.unique(joint, return_inverse=True)
        size = (len(users), len(classes))
        count = np.bincount(place * size[1] + column, minlength=size[0] * size[1]).reshape(size)
        jobs = count.sum(axis=1)
        return cls(users, place, count / jobs[:, None], jobs)

    @cached_property
    def most_active(self) -> Int64s:
        """Places of the users that medoids are sought among."""
        return np.sort(np.argsort(-self.jobs, kind="stable")[:MOST_USERS])

    def distance(self, users: Int64s, others: Int64s) -> Floats:
        """Return ||a - a'|| times (jobs of both) / (all jobs), shape (users, others)."""
        from scipy.spatial.distance import cdist

        both = self.jobs[users][:, None] + self.jobs[others]
        found: Floats = cdist(self.shares[users], self.shares[others]) * both / self.jobs.sum()
        return found

    def groups(self, count: int) -> Int64s:
        """Return the group of each user from 0 on, shape (users,); none is empty.

        There are at most ``count``: as many as users if there are fewer, and fewer where medoids
        submit exactly alike.

        Raises
        ------
        ModelFitError
            When the library is not installed.
        """
        everyone = np.arange(len(self.users))
        if len(everyone) <= count:
            return everyone
        sought = self.most_active
        medoids = sought[_medoids(self.distance(sought, sought), count)]
        nearest = self.distance(everyone, medoids).argmin(axis=1)
        found: Int64s = np.unique(nearest, return_inverse=True)[1]
        return found


def _medoids(distance: Floats, count: int) -> Int64s:
    """Return the places of medoids: PAM, BUILD and then the best SWAP until none improves."""
    try:
        import kmedoids
    except ImportError:
        raise ModelFitError("model mugm", missing("kmedoids")) from None
    found = kmedoids.fastpam1(distance, count, max_iter=MOST_SWAPS, init="build")
    return np.asarray(found.medoids, np.int64)
