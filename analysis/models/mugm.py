"""MUGM, the mixed user group model of Song, Ernemann and Yahyapour (2005).

Users are grouped by the classes of jobs that they submit; each group has a model of processors and
run times of its own, and each generated job a user of its group.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from analysis.features.sizes import is_power_of_two
from analysis.features.workload import Workload
from analysis.models.mugm_clusters import SAMPLE, Submissions, run_time_medoids
from analysis.models.mugm_mixture import COMPONENTS, LEAST_VARIANCE, MIXTURE_SAMPLE, Mixture
from analysis.models.part import Drawn, Floats, JobModel
from analysis.models.shares import draw_from
from environment.errors import ModelFitError, QuantityError
from environment.jobs import Int64s
from environment.streams import Streams

#: Groups of users (section V-A: 4 cover the workloads) and clusters of run times (section IV-B:
#: more did not help).
GROUPS, CLUSTERS = 4, 4

#: How powers of two are reached: ``met``, so that their share comes out; ``paper``, where each size
#: is rounded with that share as probability, which overshoots, as some are powers already.
Powers = Literal["met", "paper"]


class UserGroup(BaseModel):
    """Users who submit alike, and what their jobs are like."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    jobs: tuple[PositiveInt, ...] = Field(
        min_length=1, description="jobs of each user of the group in the trace, most first"
    )
    area: float = Field(ge=0, le=1, description="share of run time x processors in the trace")
    mixture: Mixture = Field(description="G: processors and run time of a job, in log2")
    powers: float = Field(ge=0, le=1, description="f: share of jobs on a power of two processors")
    powers_drawn: float = Field(ge=0, le=1, description="h: that share as the mixture draws it")

    @property
    def size(self) -> int:
        """Jobs of the group in the trace."""
        return sum(self.jobs)

    def rounded_share(self, rule: Powers) -> float:
        """Return the probability to round a job's processors to a power of two.

        It is (f - h) / (1 - h) to meet f: a share h is one before rounding. Where h is larger
        already, nothing is rounded.
        """
        if rule == "paper":
            return self.powers
        if self.powers_drawn >= min(self.powers, 1.0):
            return 0.0
        return (self.powers - self.powers_drawn) / (1 - self.powers_drawn)


class Mugm(JobModel):
    """Groups of users by descending squash area (run time x processors), each with its mixture.

    Jobs with a run time of 0 are left out. Users are numbered from 1 through the groups, in each
    the most active first; groups from 1.
    """

    name: ClassVar[str] = "mugm"
    title: ClassVar[str] = "groups of users who submit alike, each with its mixture"
    source: ClassVar[str] = "Song, Ernemann and Yahyapour 2005, sections III to V"

    groups: tuple[UserGroup, ...] = Field(min_length=1, description="largest squash area first")
    run_time_medoids: tuple[float, ...] = Field(
        min_length=1, description="log2 s; medoids of the clusters of run times, rising"
    )
    machine: int = Field(ge=1, description="processors of the machine of the trace")
    longest_s: float = Field(ge=1, description="s; the longest run time, which no draw exceeds")
    powers_of_two: Powers = Field("met", description="met, or paper: how they are reached")

    @classmethod
    @override
    def fit(
        cls,
        workload: Workload,
        *,
        groups: int = GROUPS,
        clusters: int = CLUSTERS,
        components: int = COMPONENTS,
        powers: Powers = "met",
        sample: int = SAMPLE,
        mixture_sample: int = MIXTURE_SAMPLE,
        least_variance: float = LEAST_VARIANCE,
        seed: int = 0,
    ) -> Self:
        """Return the model of a workload.

        Parameters
        ----------
        workload
            Jobs with users; those without a known one count as one user's.
        groups
            K, groups of users.
        clusters
            Clusters of run times.
        components
            Most components of a group's mixture; BIC chooses.
        powers
            How powers of two are reached, see :data:`Powers`.
        sample
            Run times that medoids are sought among, evenly spaced by rank.
        mixture_sample
            Most jobs that a mixture is fitted to.
        least_variance
            (log2 units)^2; added to each variance.
        seed
            Where mixtures start, and which jobs they are fitted to.

        Raises
        ------
        ModelFitError
            When no job has a run time, or a library is not installed.
        QuantityError
            When an option makes no sense.
        """
        for name, number in (
            ("groups", groups), ("clusters", clusters), ("components", components),
            ("sample", sample), ("mixture_sample", mixture_sample),
        ):  # fmt: skip
            if not isinstance(number, int) or number < 1:
                raise QuantityError(f"model mugm: {name} {number}: must be 1 or more, whole")
        if not 0 < least_variance < float("inf"):
            raise QuantityError(f"model mugm: least_variance {least_variance}: must be positive")
        if powers not in ("met", "paper"):
            raise QuantityError(f"model mugm: powers {powers!r}: choose met or paper")
        user, processors, run_time, notes = jobs_of(workload)
        logs = np.log2(run_time)
        medoids = run_time_medoids(logs, clusters, sample=sample)
        submitted = Submissions.of(user, processors, logs, medoids)
        label = submitted.groups(groups)
        if label.max() + 1 < groups:
            notes.append(f"{label.max() + 1} groups of users instead of {groups}: too few differ")
        return cls.of_groups(
            workload, label, medoids,
            notes=notes, powers=powers, components=components, least_variance=least_variance,
            mixture_sample=mixture_sample, seed=seed,
        )  # fmt: skip

    @classmethod
    def of_groups(
        cls,
        workload: Workload,
        label: Int64s,
        medoids: Floats,
        *,
        notes: list[str],
        powers: Powers = "met",
        components: int = COMPONENTS,
        least_variance: float = LEAST_VARIANCE,
        mixture_sample: int = MIXTURE_SAMPLE,
        seed: int = 0,
    ) -> Self:
        """Return the model of a workload whose users are grouped already.

        Parameters
        ----------
        workload
            The jobs.
        label
            Group of each user in the order of user numbers, from 0 on, shape (users,).
        medoids
            Of run times, log2 s.
        notes
            What is to be told.
        powers, components, least_variance, mixture_sample, seed
            As for :meth:`fit`.
        """
        user, processors, run_time, _ = jobs_of(workload)
        _, place = np.unique(user, return_inverse=True)
        logs = np.column_stack([np.log2(processors), np.log2(run_time)])
        machine = max(workload.machine or 1, int(processors.max()))
        longest = max(1.0, float(run_time.max()))
        area = run_time * processors
        of_job = label[place]
        total = np.bincount(of_job, area)
        made = []
        for group in np.argsort(-total, kind="stable").tolist():
            mine = of_job == group
            mixture = Mixture.fit(
                logs[mine],
                components=components,
                least_variance=least_variance,
                sample=mixture_sample,
                seed=seed,
            )
            _, drawn = mixture.draw(
                mixture_sample, np.random.default_rng(seed), machine=machine, longest_s=longest
            )
            counts = np.bincount(place[mine])
            made.append(
                UserGroup(
                    jobs=tuple(np.sort(counts[counts > 0])[::-1].tolist()),
                    area=min(1.0, float(total[group] / total.sum())),
                    mixture=mixture,
                    powers=float(is_power_of_two(processors[mine]).mean()),
                    powers_drawn=float(is_power_of_two(drawn).mean()),
                )
            )
        return cls(
            groups=tuple(made),
            run_time_medoids=tuple(medoids.tolist()),
            machine=machine,
            longest_s=longest,
            powers_of_two=powers,
            notes=tuple(notes),
        )

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        size = len(arrivals)
        random = streams.generator("jobs")
        shares = np.array([group.size for group in self.groups], np.float64)
        of_job = draw_from(shares, size, random)
        run_time, processors = np.empty(size), np.empty(size, np.int64)
        user = np.empty(size, np.int64)
        first = 1
        for place, group in enumerate(self.groups):
            mine = np.flatnonzero(of_job == place)
            own = streams.generator("jobs", "group", place + 1)
            run_time[mine], processors[mine] = self.draw_group(
                place + 1, len(mine), own, machine=machine
            )
            user[mine] = first + draw_from(np.array(group.jobs, np.float64), len(mine), own)
            first += len(group.jobs)
        return Drawn.of(arrivals, run_time, processors, user=user, group=of_job + 1)

    def draw_group(
        self, group: int, count: int, random: np.random.Generator, *, machine: int | None = None
    ) -> tuple[Floats, Int64s]:
        """Return run times (s) and processors of jobs of one group alone.

        Parameters
        ----------
        group
            Its number, from 1 on.
        count
            How many jobs.
        random
            The stream to draw from.
        machine
            Processors of the machine, which no job exceeds; None takes that of the trace.

        Raises
        ------
        QuantityError
            When there is no such group.
        """
        if not 1 <= group <= len(self.groups):
            raise QuantityError(f"model mugm: group {group}: choose 1 to {len(self.groups)}")
        one, most = self.groups[group - 1], machine or self.machine
        run_time, processors = one.mixture.draw(
            count, random, machine=most, longest_s=self.longest_s
        )
        chosen = random.random(count) < one.rounded_share(self.powers_of_two)
        processors[chosen] = nearest_power(processors[chosen], most)
        return run_time, processors

    @cached_property
    def users(self) -> tuple[Int64s, ...]:
        """Numbers of the users of each group."""
        sizes = [len(group.jobs) for group in self.groups]
        return tuple(np.split(np.arange(1, sum(sizes) + 1), np.cumsum(sizes)[:-1]))


def jobs_of(workload: Workload) -> tuple[Int64s, Int64s, Floats, list[str]]:
    """Return user, processors and run time of the jobs that count, and what is to be told.

    Raises
    ------
    ModelFitError
        When there are none.
    """
    keep = workload.run_time > 0
    notes = []
    if not keep.any():
        raise ModelFitError(
            f"model mugm: {len(workload)} jobs", "none has a run time above 0; take another trace"
        )
    if not keep.all():
        notes.append(f"{int((~keep).sum()):,} jobs with a run time of 0 left out")
    user = workload.user[keep]
    unknown = int((user < 0).sum())
    if unknown:
        notes.append(f"{unknown:,} jobs without a user: one user for all of them")
    return user, workload.processors[keep], workload.run_time[keep], notes


def nearest_power(processors: Int64s, machine: int) -> Int64s:
    """Return the nearest power of two in log2, within the machine."""
    nearest = np.floor(np.log2(processors) + 0.5)
    most = np.floor(np.log2(machine))
    return (2 ** np.minimum(nearest, most)).astype(np.int64)
