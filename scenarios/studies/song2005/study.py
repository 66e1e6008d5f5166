"""Song et al. 2005: groups of users and what MUGM generates, ours beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.song2005.measures import (
    COUNTS,
    GROUPED,
    KINDS,
    SHUFFLED,
    Grouping,
    Jobs,
    Quality,
)
from hpcrowd.scenarios.studies.song2005.statements import claims_of
from hpcrowd.scenarios.studies.study import Claim, Requirement, Study

#: Seeds of each fit unless said otherwise.
SEEDS = 8

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

#: Shares of Table III, by the names of :class:`~scenarios.studies.song2005.measures.Shares`.
SHARES = {"area": "area", "jobs": "jobs", "users": "users"}

#: Where Table II is met to the digit, jobs; printed is 500.
BORDER_MET = 300


def published_log(trace: str) -> dict[str, str]:
    """Return the line of Table I on a log."""
    return next(row for row in published_rows("song2005_table1") if row["trace"] == trace)


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
        """Return the mean of a figure of :class:`~scenarios.studies.song2005.measures.Quality`."""
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

    def requirements(self) -> list[Requirement]:
        """Return what has to be reached on it."""
        return [*self._of_groups(), *self._of_quality()]

    def _of_groups(self) -> list[Requirement]:
        if self.trace != GROUPS_ON:
            return []
        found = []
        ours = self.groupings[GROUPS_OF].shares
        for group, printed in enumerate(published_groups(self.trace, GROUPS_OF)):
            for name, title in SHARES.items():
                number = getattr(ours[group], name) if group < len(ours) else 0.0
                found.append(
                    Requirement(
                        self.trace,
                        f"Table III, {GROUPS_OF} groups, group {group + 1}: {title} (%)",
                        f"{number:.1f}",
                        f"{printed[name].text}, within {POINTS:g} points",
                        abs(number - printed[name].value) <= POINTS,
                    )
                )
        return found

    def _of_quality(self) -> list[Requirement]:
        if self.trace not in REQUIRED_ON:
            return []
        found = [
            Requirement(
                self.trace,
                f"Table IV, {TITLES[name]}",
                f"{self.mean(name):.4f}",
                f"at most {MOST_KS:g}",
                self.mean(name) <= MOST_KS,
            )
            for name in DISTANCES
        ]
        ours, shuffled = self.both(GROUPED), self.both(SHUFFLED)
        found.append(
            Requirement(
                self.trace,
                "Table IV, mean of both KS, against shuffled users",
                f"{ours:.4f}",
                f"below {shuffled:.4f}",
                ours < shuffled,
            )
        )
        made, original = self.mean("correlation"), self.jobs.correlation
        found.append(
            Requirement(
                self.trace,
                "Table V, correlation of generated jobs",
                f"{made:.3f}",
                f"{original:.3f}, within {MOST_OFF:g}",
                abs(made - original) <= MOST_OFF,
            )
        )
        return found


@dataclass
class Comparison(Study[Requirement]):
    """Our figures beside the published ones.

    Attributes
    ----------
    traces
        What was measured, by the name of the log.
    seeds
        How many of each fit.
    """

    traces: dict[str, TraceOutcomes]
    seeds: int

    @property
    def absent(self) -> list[str]:
        """Logs of Table I that were not there."""
        names = [row["trace"] for row in published_rows("song2005_table1")]
        return [name for name in names if name not in self.traces]

    @cached_property
    def requirements(self) -> Sequence[Requirement]:
        """What has to be reached."""
        return [need for one in self.traces.values() for need in one.requirements()]

    @cached_property
    def claims(self) -> list[Claim]:
        """Every statement of the text on every trace that it can be checked on."""
        return claims_of(self.traces)


def outcomes(
    trace: str,
    workload: Workload,
    qualities: Mapping[str, Sequence[Quality]],
    seeds: Sequence[int],
    facts: dict[str, Any] | None = None,
) -> TraceOutcomes:
    """Return what was measured on a trace, with its groups.

    Parameters
    ----------
    trace
        Its name in Table I.
    workload
        Its jobs, of any status.
    qualities
        How near generated jobs come, by kind.
    seeds
        Of the random samples that the groups are tried with.
    facts
        Which file it is.
    """
    jobs = Jobs(workload)
    groupings = {count: jobs.grouping(count, seeds) for count in COUNTS}
    return TraceOutcomes(
        trace, jobs, groupings, {kind: list(qualities[kind]) for kind in KINDS}, facts or {}
    )
