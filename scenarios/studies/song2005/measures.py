"""Song et al. 2005: groups of users, and how near what MUGM generates comes to a trace.

What was measured on a trace is :class:`TraceOutcomes`, which has the published figures beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.features.series import pearson
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.analysis.models.jobs.mugm import (
    CLUSTERS,
    GROUPS,
    Fitting,
    Mugm,
    Submissions,
    jobs_of,
    run_time_medoids,
)
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.study import Requirement

#: Numbers of groups in Table III.
COUNTS = (2, 4, 6)

#: Numbers of clusters of run times that are tried besides
#: :data:`~hpcrowd.analysis.models.jobs.mugm.CLUSTERS`.
MORE_CLUSTERS = (8, 16)

#: What mixtures are fitted to, by name: the groups; groups with users shuffled among them; all
#: users as one; the groups that other numbers of clusters give.
GROUPED, SHUFFLED, ONE = "groups", "shuffled", "one group"
KINDS = (GROUPED, SHUFFLED, ONE, *(f"{count} clusters" for count in MORE_CLUSTERS))

#: Logs that figures are required on.
REQUIRED_ON = ("KTH", "LANL-CM5")

#: The log and the number of groups whose shares are required, and how near, points.
GROUPS_ON, GROUPS_OF, POINTS = "KTH", 2, 4.0

#: Largest KS distance, and how far the correlation of generated jobs may be from the original one.
MOST_KS, MOST_OFF = 0.05, 0.06

#: The two distances by the names of :class:`Quality`, and of Table IV.
DISTANCES = {"ks_processors": "ks_parallelism", "ks_run_time": "ks_runtime"}

#: The same for people.
TITLES = {"ks_processors": "KS, processors", "ks_run_time": "KS, run time"}

#: Shares of Table III, the names of :class:`Shares`.
SHARES = ("area", "jobs", "users")

#: Where Table II is met to the digit, jobs; printed is 500.
BORDER_MET = 300


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


@dataclass(eq=False)
class Jobs:
    """Jobs of a trace that MUGM is fitted to, and the groups of their users.

    Attributes
    ----------
    workload
        The trace.
    user, processors
        User and processors of each job.
    run_time
        s; run time of each job.
    """

    workload: Workload
    user: Int64s = field(init=False)
    processors: Int64s = field(init=False)
    run_time: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.user, self.processors, self.run_time = jobs_of(self.workload)[:3]

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
        model = Mugm.of_groups(self.workload, label, medoids, Fitting(seed=seed))
        size = len(self.user)
        made = model.jobs(np.arange(float(size)), model.machine, Streams(seed))
        return Quality(
            ks_processors=apart(self.processors, made.processors).ks,
            ks_run_time=apart(self.run_time, made.run_time).ks,
            correlation=pearson(made.processors, made.run_time),
        )


# ---- ours beside the published figures ------------------------------------------------------


def published_log(trace: str) -> dict[str, str]:
    """Return the line of Table I on a log."""
    return next(row for row in published_rows("song2005_table1") if row["trace"] == trace)


def published_jobs(trace: str) -> int:
    """Return how many jobs a log has, Table I."""
    return int(published_log(trace)["jobs"])


def published_groups(trace: str, count: int) -> list[dict[str, Printed]]:
    """Return the shares of Table III by name, a group after the other."""
    return [
        {name: Printed(row[f"{name}_percent"]) for name in SHARES}
        for row in published_rows("song2005_table3")
        if (row["trace"], row["groups"]) == (trace, str(count))
    ]


def published_quality(trace: str) -> dict[str, Printed]:
    """Return the line of Tables IV and V on a log."""
    rows = published_rows("song2005_tables4_5")
    row = next(row for row in rows if row["trace"] == trace)
    return {name: Printed(text) for name, text in row.items() if name != "trace"}


@dataclass
class TraceOutcomes:
    """What was measured on one trace.

    Attributes
    ----------
    trace
        Its name in Table I.
    jobs
        Its jobs.
    groupings
        Users in groups, by the number of groups.
    qualities
        How near generated jobs come, by kind, a value for each seed.
    facts
        Which file it is, and which other versions were there.
    """

    trace: str
    jobs: Jobs
    groupings: dict[int, Grouping]
    qualities: dict[str, list[Quality]]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def workload(self) -> Workload:
        """The trace."""
        return self.jobs.workload

    def mean(self, name: str, kind: str = GROUPED) -> float:
        """Return the mean of a figure of :class:`Quality`."""
        return float(np.mean(self.values(name, kind)))

    def values(self, name: str, kind: str = GROUPED) -> list[float]:
        """Return a figure for each seed."""
        return [getattr(one, name) for one in self.qualities[kind]]

    def both(self, kind: str) -> float:
        """Return the mean of both KS distances."""
        return float(np.mean([self.mean(name, kind) for name in DISTANCES]))

    def users_percent(self, border: int | None = None) -> list[float]:
        """Return Table II: % of users by their number of jobs.

        Parameters
        ----------
        border
            Jobs; in the place of 500.
        """
        counts = np.bincount(np.unique(self.workload.user, return_inverse=True)[1])
        edges = [int(row["least"]) for row in published_rows("song2005_table2")]
        if border is not None:
            edges[edges.index(500)] = border
        found = np.bincount(np.searchsorted(edges, counts, side="right"), minlength=len(edges) + 1)
        return [float(one) for one in 100 * found[1:] / len(counts)]

    def samples_within(self) -> int:
        """Return in how many random samples the required shares of groups are as near, too."""
        printed = published_groups(GROUPS_ON, GROUPS_OF)
        return sum(
            len(one) == GROUPS_OF
            and all(
                abs(getattr(one[group], name) - printed[group][name].value) <= POINTS
                for group in range(GROUPS_OF)
                for name in SHARES
            )
            for one in self.groupings[GROUPS_OF].samples
        )

    @property
    def requirements(self) -> list[Requirement]:
        """What has to be reached on it."""
        return [*self._of_groups(), *self._of_quality()]

    def _of_groups(self) -> list[Requirement]:
        if self.trace != GROUPS_ON:
            return []
        found = []
        ours = self.groupings[GROUPS_OF].shares
        for group, printed in enumerate(published_groups(self.trace, GROUPS_OF)):
            for name in SHARES:
                number = getattr(ours[group], name) if group < len(ours) else 0.0
                found.append(
                    Requirement(
                        self.trace,
                        f"Table III, {GROUPS_OF} groups, group {group + 1}: {name} (%)",
                        f"{number:.1f}",
                        f"{printed[name].text}, within {POINTS:g} points",
                        abs(number - printed[name].value) <= POINTS,
                    )
                )
        return found

    def _of_quality(self) -> list[Requirement]:
        if self.trace not in REQUIRED_ON:
            return []
        ours, shuffled = self.both(GROUPED), self.both(SHUFFLED)
        made, original = self.mean("correlation"), self.jobs.correlation
        return [
            *(
                Requirement(
                    self.trace,
                    f"Table IV, {TITLES[name]}",
                    f"{self.mean(name):.4f}",
                    f"at most {MOST_KS:g}",
                    self.mean(name) <= MOST_KS,
                )
                for name in DISTANCES
            ),
            Requirement(
                self.trace,
                "Table IV, mean of both KS, against shuffled users",
                f"{ours:.4f}",
                f"below {shuffled:.4f}",
                ours < shuffled,
            ),
            Requirement(
                self.trace,
                "Table V, correlation of generated jobs",
                f"{made:.3f}",
                f"{original:.3f}, within {MOST_OFF:g}",
                abs(made - original) <= MOST_OFF,
            ),
        ]
