"""Song et al. 2005: groups of users, and how near what MUGM generates comes to a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.series import pearson
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.models.jobs.mugm import (
    CLUSTERS,
    GROUPS,
    Mugm,
    Submissions,
    jobs_of,
    run_time_medoids,
)
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams

#: Numbers of groups in Table III.
COUNTS = (2, 4, 6)

#: Numbers of clusters of run times that are tried besides
#: :data:`~hpcrowd.analysis.models.jobs.mugm.CLUSTERS`.
MORE_CLUSTERS = (8, 16)

#: What mixtures are fitted to, by name: the groups; groups with users shuffled among them; all
#: users as one; the groups that other numbers of clusters give.
GROUPED, SHUFFLED, ONE = "groups", "shuffled", "one group"
KINDS = (GROUPED, SHUFFLED, ONE, *(f"{count} clusters" for count in MORE_CLUSTERS))


@dataclass(frozen=True)
class Shares:
    """What a group has of all, %.

    Attributes
    ----------
    area, jobs, users
        Of run time x processors, of the jobs, and of the users.
    """

    area: float
    jobs: float
    users: float


@dataclass(frozen=True, eq=False)
class Grouping:
    """Users in groups, by descending area.

    Attributes
    ----------
    count
        How many groups were asked for.
    label
        Group of each user in the order of user numbers, from 0 on, shape (users,).
    shares
        Of each group.
    samples
        The same from medoids of random samples of run times, a line for each sample.
    staying
        %; mean share of the jobs whose group stays when medoids come from a random sample.
    """

    count: int
    label: Int64s
    shares: tuple[Shares, ...]
    samples: tuple[tuple[Shares, ...], ...] = ()
    staying: float | None = None

    def ranges(self, group: int, name: str) -> tuple[float, float] | None:
        """Return the smallest and the largest share of a group over the samples; None of none."""
        found = [getattr(one[group], name) for one in self.samples if group < len(one)]
        return (min(found), max(found)) if found else None


@dataclass(frozen=True)
class Quality:
    """How near generated jobs come to those of the trace.

    Attributes
    ----------
    ks_processors, ks_run_time
        Kolmogorov-Smirnov distances.
    correlation
        Pearson's of processors and run time of the generated jobs, on raw values.
    """

    ks_processors: float
    ks_run_time: float
    correlation: float


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs of a trace that MUGM is fitted to, and the groups of their users.

    Attributes
    ----------
    workload
        The trace.
    """

    workload: Workload

    @cached_property
    def _columns(self) -> tuple[Int64s, Int64s, Floats]:
        return jobs_of(self.workload)[:3]

    @property
    def user(self) -> Int64s:
        """User of each job."""
        return self._columns[0]

    @property
    def processors(self) -> Int64s:
        """Processors of each job."""
        return self._columns[1]

    @property
    def run_time(self) -> Floats:
        """s; run time of each job."""
        return self._columns[2]

    @cached_property
    def place(self) -> Int64s:
        """User of each job by place among the users."""
        return np.unique(self.user, return_inverse=True)[1]

    @property
    def correlation(self) -> float:
        """Pearson's correlation of processors and run time, on raw values."""
        return pearson(self.processors, self.run_time)

    def medoids(self, clusters: int = CLUSTERS, seed: int | None = None) -> Floats:
        """Return medoids of run times, those of a random sample if there is a seed."""
        random = None if seed is None else np.random.default_rng(seed)
        return run_time_medoids(np.log2(self.run_time), clusters, random=random)

    def groups(self, count: int, medoids: Floats) -> Int64s:
        """Return the group of each user by descending area, from 0 on."""
        logs = np.log2(self.run_time)
        label = Submissions.of(self.user, self.processors, logs, medoids).groups(count)
        rank = np.argsort(np.argsort(-self._area_of(label), kind="stable"), kind="stable")
        return rank[label]

    def shares(self, label: Int64s) -> tuple[Shares, ...]:
        """Return the shares of each group."""
        area = self._area_of(label)
        jobs, users = np.bincount(label[self.place]), np.bincount(label)
        return tuple(
            Shares(*(float(100 * one[group] / one.sum()) for one in (area, jobs, users)))
            for group in range(len(area))
        )

    def _area_of(self, label: Int64s) -> Floats:
        return np.bincount(label[self.place], self.run_time * self.processors)

    def grouping(self, count: int, seeds: Sequence[int]) -> Grouping:
        """Return users in groups, and what becomes of these in random samples, one for a seed."""
        label = self.groups(count, self.medoids())
        samples, staying = [], []
        for seed in seeds:
            other = self.groups(count, self.medoids(seed=seed))
            samples.append(self.shares(other))
            staying.append(self._staying(label, other))
        return Grouping(
            count,
            label,
            self.shares(label),
            tuple(samples),
            float(np.mean(staying)) if staying else None,
        )

    def _staying(self, label: Int64s, other: Int64s) -> float:
        """Return % of jobs in the same group, groups matched such that they are as many as can."""
        from scipy.optimize import linear_sum_assignment

        table = np.zeros((label.max() + 1, other.max() + 1))
        np.add.at(table, (label[self.place], other[self.place]), 1)
        rows, columns = linear_sum_assignment(table, maximize=True)
        return float(100 * table[rows, columns].sum() / table.sum())

    def quality(self, kind: str, seed: int) -> Quality:
        """Return how near generated jobs come, as many as the trace has.

        Parameters
        ----------
        kind
            One of :data:`KINDS`.
        seed
            Where mixtures start, what is drawn, and how users are shuffled.
        """
        clusters = int(kind.split()[0]) if kind.endswith("clusters") else CLUSTERS
        medoids = self.medoids(clusters)
        label = self.groups(1 if kind == ONE else GROUPS, medoids)
        if kind == SHUFFLED:
            label = np.random.default_rng(seed).permutation(label)
        model = Mugm.of_groups(self.workload, label, medoids, notes=[], seed=seed)
        size = len(self.user)
        made = model.jobs(np.arange(float(size)), model.machine, Streams(seed))
        return Quality(
            ks_processors=apart(self.processors, made.processors).ks,
            ks_run_time=apart(self.run_time, made.run_time).ks,
            correlation=pearson(made.processors, made.run_time),
        )
