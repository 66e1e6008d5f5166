"""MUGM, the mixed user group model of Song, Ernemann and Yahyapour (2005).

Users are grouped by the classes of jobs that they submit. Each group has its own model of
processors and run times, and each generated job has a user of its group. Classes and groups are
clusters by k-medoids; the model of a group is a mixture of normal distributions in log2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from hpcrowd.analysis.features.jobs import is_power_of_two
from hpcrowd.analysis.features.locality import NormalMixture, Points
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import Drawn, Floats, JobModel, Numbers
from hpcrowd.analysis.models.parts.users import draw_from, like
from hpcrowd.environment.errors import ModelFitError, QuantityError, echo, missing
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams

#: Number of values in the search for medoids of run times, as in CLARA. 1,000 evenly spaced ranks
#: give the exact optimum to within a few seconds on KTH-SP2 and LANL-CM5; chosen here.
SAMPLE = 2000

#: Most users in the search for medoids; if there are more, those with the most jobs are taken.
#: Chosen here, as the matrix of distances has the square of it.
MOST_USERS = 4000

#: Most swaps of PAM; far more than needed.
MOST_SWAPS = 1000


def parallelism_class(processors: Int64s) -> Int64s:
    """Return floor(log2 p + 0.5), the nearest power of two of each job (section IV-B)."""
    return np.floor(np.log2(processors) + 0.5).astype(np.int64)


def run_time_medoids(
    log_run_time: Floats,
    clusters: int,
    *,
    sample: int = SAMPLE,
    random: np.random.Generator | None = None,
) -> Floats:
    """Return the medoids of run times, rising, in log2 s (section IV-B).

    The distance is (log2 r - log2 r')^2, as printed in the paper. If there are fewer distinct run
    times than clusters, each is a cluster. ``sample`` values are searched: a random sample, as in
    CLARA, or without ``random`` evenly spaced ranks, so that nothing is random.

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
    return np.searchsorted((medoids[1:] + medoids[:-1]) / 2, log_run_time)


@dataclass(frozen=True, eq=False)
class Submissions:
    """The shares of each user's jobs in the classes of jobs (section IV-C)."""

    #: User numbers, rising, and the number of jobs of each, shape (users,).
    users: Int64s
    place: Int64s  #: index in ``users`` of each job's user, shape (jobs,)

    #: Feature vectors: fractions over the classes, each adds up to 1, shape (users, classes).
    shares: Floats
    jobs: Int64s

    @classmethod
    def of(cls, user: Int64s, processors: Int64s, log_run_time: Floats, medoids: Floats) -> Self:
        """Return the shares; a class combines a class of parallelism and a cluster of run times."""
        users, place = np.unique(user, return_inverse=True)
        joint = parallelism_class(processors) * len(medoids) + run_time_class(log_run_time, medoids)
        classes, column = np.unique(joint, return_inverse=True)
        size = (len(users), len(classes))
        count = np.bincount(place * size[1] + column, minlength=size[0] * size[1]).reshape(size)
        jobs = count.sum(axis=1)
        return cls(users, place, count / jobs[:, None], jobs)

    def distance(self, users: Int64s, others: Int64s) -> Floats:
        """Return ||a - a'|| times (jobs of both) / (all jobs), shape (users, others)."""
        from scipy.spatial.distance import cdist

        both = self.jobs[users][:, None] + self.jobs[others]
        found: Floats = cdist(self.shares[users], self.shares[others]) * both / self.jobs.sum()
        return found

    def groups(self, count: int) -> Int64s:
        """Return the group of each user from 0 on, shape (users,); none is empty.

        There are at most ``count`` groups: no more than users, and fewer if medoids have equal
        shares.

        Raises
        ------
        ModelFitError
            When the library is not installed.
        """
        everyone = np.arange(len(self.users))
        if len(everyone) <= count:
            return everyone
        sought = np.sort(np.argsort(-self.jobs, kind="stable")[:MOST_USERS])
        medoids = sought[_medoids(self.distance(sought, sought), count)]
        nearest = self.distance(everyone, medoids).argmin(axis=1)
        return np.unique(nearest, return_inverse=True)[1]


def _medoids(distance: Floats, count: int) -> Int64s:
    """Return the indices of medoids by PAM: BUILD, then the best SWAP until none improves.

    The loop of the paper's Fig. 7, which moves each medoid within its own cluster, ends in poor
    optima.
    """
    try:
        import kmedoids
    except ImportError:
        raise ModelFitError("model mugm", missing("kmedoids")) from None
    found = kmedoids.fastpam1(distance, count, max_iter=MOST_SWAPS, init="build")
    return np.asarray(found.medoids, np.int64)


#: Most components; BIC chooses. The paper gives no number: 9 is the default of MCLUST, the method
#: that it cites (Fraley and Raftery 2002).
COMPONENTS = 9

#: (log2 units)^2; added to each variance, so that no component shrinks to one recorded value. 0.1
#: in log2 is 7 % of the number of processors or of the run time; chosen here.
LEAST_VARIANCE = 0.01

#: Most jobs of a group for the fit of a mixture; if there are more, a random sample. Chosen here.
MIXTURE_SAMPLE = 20_000

#: Most steps of a fit; more than needed.
MOST_STEPS = 300

#: Change of the mean log-likelihood of a job at which a fit ends.
TOLERANCE = 1e-3

#: How often a draw outside the range is repeated before it is set to the bound.
TRIES = 100


@dataclass(frozen=True)
class Fitting:
    """Settings for fitting mixtures."""

    components: int = COMPONENTS  #: most components; mixtures of 1 to this many are tried
    least_variance: float = LEAST_VARIANCE  #: (log2 units)^2; added to each variance
    sample: int = MIXTURE_SAMPLE  #: most jobs for a fit
    seed: int = 0  #: seed of the sample and of the starts of fits


class Mixture(Numbers):
    """Normal distributions of (log2 processors, log2 run time), each with its full covariance."""

    weights: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="share of each component; adds up to 1"
    )
    means: tuple[tuple[float, float], ...] = Field(
        description="log2 processors and log2 run time (s) of each component"
    )
    covariances: tuple[tuple[PositiveFloat, float, PositiveFloat], ...] = Field(
        description="variance of log2 processors, covariance, variance of log2 run time"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not len(self.weights) == len(self.means) == len(self.covariances):
            raise ValueError(
                f"{len(self.weights)} weights, {len(self.means)} means, "
                f"{len(self.covariances)} covariances: give as many of each"
            )
        for first, both, second in self.covariances:
            if not both * both < first * second:
                raise ValueError(f"covariance {both:g}: more than the variances allow")
        return self

    @classmethod
    def fit(cls, logs: Floats, how: Fitting) -> Self:
        """Return the maximum-likelihood mixture, with the number of components chosen by BIC.

        ``logs`` are log2 processors and log2 run time of at least one job, shape (jobs, 2).

        Raises
        ------
        ModelFitError
            When scikit-learn is not installed.
        """
        if len(logs) > how.sample:
            chosen = np.random.default_rng(how.seed).choice(len(logs), how.sample, replace=False)
            logs = logs[chosen]
        different = len(np.unique(logs, axis=0))
        if different == 1:
            return cls(
                weights=(1.0,),
                means=(tuple(logs[0].tolist()),),
                covariances=((how.least_variance, 0.0, how.least_variance),),
            )
        best = _best(logs, min(how.components, different), how)
        # A component without jobs may end with a share of 0.
        there = best.weights > 0
        weights, spread = best.weights[there], best.covariances[there]
        return cls(
            weights=tuple((weights / weights.sum()).tolist()),
            means=tuple(map(tuple, best.means[there].tolist())),
            covariances=tuple(
                (float(one[0, 0]), float(one[0, 1]), float(one[1, 1])) for one in spread
            ),
        )

    @cached_property
    def _roots(self) -> Floats:
        """Entries of the lower Cholesky factors, shape (components, 3)."""
        first, both, second = np.asarray(self.covariances).T
        a = np.sqrt(first)
        return np.column_stack([a, both / a, np.sqrt(second - both * both / first)])

    def draw(
        self, count: int, random: np.random.Generator, *, machine: int, longest_s: float
    ) -> tuple[Floats, Int64s]:
        """Return run times (whole s) and processors of jobs, within their ranges.

        A draw that rounds to less than 1 processor, to more than ``machine``, or to a run time
        below 1 s or above ``longest_s`` is repeated from the same component; after :data:`TRIES`
        times it is set to the bound.
        """
        component = draw_from(np.asarray(self.weights), count, random)
        logs = self._logs(component, random)
        most = np.array([machine, max(longest_s, 1.0)])
        low, high = np.log2(0.5), np.log2(most + 0.5)
        for _ in range(TRIES):
            # Limits are half a unit off whole numbers, as values are rounded half up.
            out = np.flatnonzero(((logs < low) | (logs >= high)).any(axis=1))
            if not len(out):
                break
            logs[out] = self._logs(component[out], random)
        whole = np.clip(np.floor(2 ** np.clip(logs, low, high) + 0.5), 1, np.floor(most))
        return whole[:, 1], whole[:, 0].astype(np.int64)

    def _logs(self, component: Int64s, random: np.random.Generator) -> Floats:
        normal = random.standard_normal((len(component), 2))
        a, b, c = self._roots[component].T
        logs = np.asarray(self.means)[component]
        logs[:, 0] += a * normal[:, 0]
        logs[:, 1] += b * normal[:, 0] + c * normal[:, 1]
        return logs


def _best(logs: Floats, components: int, how: Fitting) -> NormalMixture:
    """Return the mixture with the smallest BIC; fits start from clusters by k-means."""
    distinct, first, count = np.unique(logs, axis=0, return_index=True, return_counts=True)
    points = Points(np.ascontiguousarray(distinct.T), count.astype(np.float64))
    found = []
    for number, cluster in _clusters(logs, components, how.seed):
        shares = np.equal(cluster[first], np.arange(number)[:, None]).astype(np.float64)
        start = NormalMixture.of_shares(points, shares, how.least_variance)
        fitted = start.fitted(
            points,
            least_variance=how.least_variance,
            tolerance=TOLERANCE,
            most_steps=MOST_STEPS,
        )
        found.append(fitted)
    return min(found, key=lambda mixture: mixture.bic(points))


def _clusters(logs: Floats, most: int, seed: int) -> Iterator[tuple[int, Int64s]]:
    """Yield 1, 2, ... with the clusters of jobs by k-means, each from 0 on, shape (jobs,)."""
    try:
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ModelFitError("model mugm", missing("scikit-learn")) from None
    for number in range(1, most + 1):
        # More threads would not be faster and may change the last digits of sums.
        with threadpool_limits(limits=1):
            label = KMeans(number, n_init=1, random_state=seed).fit(logs).labels_
        yield number, label


#: Groups of users (section V-A: 4 cover the workloads) and clusters of run times (section IV-B:
#: more did not help).
GROUPS, CLUSTERS = 4, 4

#: How the share of powers of two is reached: ``met`` matches it; ``paper`` rounds each size with
#: the share as probability, which overshoots, as some sizes already are powers.
Powers = Literal["met", "paper"]


class UserGroup(Numbers):
    """Users who submit alike, and the distribution of their jobs."""

    jobs: tuple[PositiveInt, ...] = Field(
        min_length=1, description="jobs of each user of the group in the trace, in falling order"
    )
    area: float = Field(ge=0, le=1, description="share of run time x processors in the trace")
    mixture: Mixture = Field(description="G: processors and run time of a job, log2")
    powers: float = Field(ge=0, le=1, description="f: share of jobs on a power of two processors")
    powers_drawn: float = Field(ge=0, le=1, description="h: that share as the mixture draws it")

    @property
    def size(self) -> int:
        """Number of jobs of the group in the trace."""
        return sum(self.jobs)

    def rounded_share(self, rule: Powers) -> float:
        """Return the probability of rounding a job's processors to a power of two.

        To match f it is (f - h) / (1 - h), as a share h are powers before rounding. If h is larger
        than f, nothing is rounded.
        """
        if rule == "paper":
            return self.powers
        if self.powers_drawn >= min(self.powers, 1.0):
            return 0.0
        return (self.powers - self.powers_drawn) / (1 - self.powers_drawn)


class Mugm(JobModel):
    """Groups of users by descending squash area (run time x processors), each with its mixture.

    Jobs with a run time of 0 are left out. Users are numbered from 1 across the groups, within a
    group by falling activity; groups are numbered from 1.
    """

    name: ClassVar[str] = "mugm"
    title: ClassVar[str] = "groups of users who submit alike, each with its mixture"
    source: ClassVar[str] = "Song, Ernemann and Yahyapour 2005, sections III to V"
    kind: ClassVar[str] = "group"

    groups: tuple[UserGroup, ...] = Field(min_length=1, description="largest squash area first")
    run_time_medoids: tuple[float, ...] = Field(
        min_length=1, description="log2 s; medoids of the clusters of run times, rising"
    )
    machine: int = Field(ge=1, description="processors of the machine of the trace")
    longest_s: float = Field(ge=1, description="s; the longest run time, which no draw exceeds")
    powers_of_two: Powers = Field("met", description="met or paper: how their share is reached")

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
            Jobs with users; jobs of unknown users count as one user's.
        groups
            K, number of groups of users.
        clusters
            Number of clusters of run times.
        components
            Most components of a group's mixture; BIC chooses.
        powers
            How powers of two are reached, see :data:`Powers`.
        sample
            Number of run times in the search for medoids, evenly spaced by rank.
        mixture_sample
            Most jobs for the fit of a mixture.
        least_variance
            (log2 units)^2; added to each variance.
        seed
            Seed of the starts of mixtures and of the samples of jobs.

        Raises
        ------
        ModelFitError
            When no job has a run time, or a library is not installed.
        QuantityError
            When an option is out of range.
        """
        for name, number in (
            ("groups", groups), ("clusters", clusters), ("components", components),
            ("sample", sample), ("mixture_sample", mixture_sample),
        ):  # fmt: skip
            if not isinstance(number, int) or number < 1:
                raise QuantityError(f"model mugm: {name} {echo(number)}: must be 1 or more, whole")
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
        how = Fitting(components, least_variance, mixture_sample, seed)
        return cls.of_groups(workload, label, medoids, how, notes=notes, powers=powers)

    @classmethod
    def of_groups(
        cls,
        workload: Workload,
        label: Int64s,
        medoids: Floats,
        how: Fitting,
        *,
        notes: Sequence[str] = (),
        powers: Powers = "met",
    ) -> Self:
        """Return the model of a workload with given groups of users.

        ``label`` is the group of each user, from 0 on, in the order of user numbers; ``medoids``
        are those of run times, log2 s.
        """
        user, processors, run_time, _ = jobs_of(workload)
        _, place = np.unique(user, return_inverse=True)
        logs = np.column_stack([np.log2(processors), np.log2(run_time)])
        machine = max(workload.machine or 1, int(processors.max()))
        longest = max(1.0, float(run_time.max()))
        area = run_time * processors
        of_job = label[place]
        total = np.bincount(of_job, area)
        made: list[UserGroup] = []
        kinds = np.zeros(len(workload), np.int64)
        counted = np.flatnonzero(workload.run_time > 0)
        for group in np.argsort(-total, kind="stable").tolist():
            mine = of_job == group
            kinds[counted[mine]] = len(made) + 1
            mixture = Mixture.fit(logs[mine], how)
            random = np.random.default_rng(how.seed)
            _, drawn = mixture.draw(how.sample, random, machine=machine, longest_s=longest)
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
        found = cls(
            groups=tuple(made),
            run_time_medoids=tuple(medoids.tolist()),
            machine=machine,
            longest_s=longest,
            powers_of_two=powers,
            notes=tuple(notes),
        )
        found._kinds = kinds
        return found

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

    def resized(self, users: int) -> Self:
        """Return about as many users as wanted, at least one a group, who submit like these."""
        before = sum(len(group.jobs) for group in self.groups)
        groups = []
        for group in self.groups:
            count = max(1, round(users * len(group.jobs) / before))
            jobs = tuple(np.asarray(group.jobs)[like(group.jobs, count)].tolist())
            groups.append(group.model_copy(update={"jobs": jobs}))
        made = self.model_copy(update={"groups": tuple(groups)})
        vars(made).pop("users", None)  # it is kept once computed
        return made

    def draw_group(
        self, group: int, count: int, random: np.random.Generator, *, machine: int | None = None
    ) -> tuple[Floats, Int64s]:
        """Return run times (s) and processors of jobs of one group, by its number from 1 on.

        No job exceeds the machine, by default that of the trace.

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
    """Return user, processors and run time of the jobs that count, with notes.

    Raises
    ------
    ModelFitError
        When there are no such jobs.
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
        notes.append(f"{unknown:,} jobs without a user: count as one user's")
    return user, workload.processors[keep], workload.run_time[keep], notes


def nearest_power(processors: Int64s, machine: int) -> Int64s:
    """Return the nearest power of two in log2, within the machine."""
    return 2 ** np.minimum(parallelism_class(processors), int(np.log2(machine)))
