"""The models of Feitelson 1996 and 1997: sizes, correlated run times, repeated executions.

Our sources give the form of the model; its numbers are in programs that we do not have. They are
therefore parameters, whose defaults are marked as unconfirmed.

:func:`size_shares` is the distribution of sizes; :func:`find_runs` finds repeated executions, and
:func:`repeated` makes them. The two versions are at the end; their common part is
:class:`Feitelson`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from hpcrowd.analysis.features.jobs import is_power_of_two
from hpcrowd.analysis.features.locality import zipf_exponent
from hpcrowd.analysis.features.workload import Workload, once, whole
from hpcrowd.analysis.models.jobs.lublin import Exponentials, fit_linear_mixture
from hpcrowd.analysis.models.parts.base import ArrivalModel, Drawn, Floats, JobModel, Poisson
from hpcrowd.analysis.models.parts.users import UserShares, chosen_users, draw_from, gap_for_load
from hpcrowd.environment.errors import ModelFitError, UnavailableError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.limits.numbers import check_memory
from hpcrowd.environment.streams import Streams

#: Fitted parameters of sizes: name, bounds and start of the search, for the order and the logs of
#: the two factors.
SOUGHT = (
    ("order", (0.0, 20.0), 1.5),
    ("factor of small sizes", (-12.0, 12.0), 0.0),
    ("factor of powers of two", (-12.0, 12.0), 0.0),
)


def size_shares(
    machine: int, order: float, small_sizes: int, small_factor: float, power_factor: float
) -> Floats:
    """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,).

    It is proportional to n^-order, times a factor for n up to ``small_sizes`` and one for powers of
    two.
    """
    size = _sizes(machine)
    weight = -order * np.log(size)
    weight += np.log(small_factor) * (size <= small_sizes)
    weight += np.log(power_factor) * is_power_of_two(size)
    likely = np.exp(weight - weight.max())
    found: Floats = likely / likely.sum()
    return found


def fit_sizes(
    processors: Int64s, machine: int, small_sizes: int
) -> tuple[dict[str, float], list[str]]:
    """Return the maximum-likelihood order and factors of :func:`size_shares`, with notes.

    Order and factors are the parameters of an exponential family, so the likelihood has a single
    maximum: where the means of log n, of "small" and of "power of two" match those of the jobs,
    none of which is larger than the machine.
    """
    from scipy.optimize import minimize

    size = _sizes(machine)
    features = np.stack([-np.log(size), size <= small_sizes, is_power_of_two(size)]).astype(float)
    # A property that does not vary over the machine's sizes cannot be fitted: its factor stays 1.
    varies = np.ptp(features, axis=1) > 0
    mean = features[:, processors - 1].mean(axis=1)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weight = parameters @ features
        likely = np.exp(weight - weight.max())
        total = likely.sum()
        value = np.log(total) + weight.max() - parameters @ mean
        return float(value), (features @ likely / total - mean) * varies

    bounds = [
        limits if some else (start, start)
        for (_, limits, start), some in zip(SOUGHT, varies, strict=True)
    ]
    found = minimize(
        loss, np.array([start for _, _, start in SOUGHT]), jac=True, method="L-BFGS-B",
        bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-8, "maxiter": 500},
    ).x  # fmt: skip
    notes = [
        f"sizes: {what} is at the bound of its range"
        for (what, (low, high), _), value, some in zip(SOUGHT, found, varies, strict=True)
        if some and not low + 1e-6 < value < high - 1e-6
    ]
    order, small, power = found
    factors = {"small_factor": float(np.exp(small)), "power_factor": float(np.exp(power))}
    return {"order": float(order), **factors}, notes


#: Bytes for each size or repetition in these distributions, with copies on the way.
BYTES_PER_SIZE = 32


def _sizes(machine: int) -> Int64s:
    """Return all sizes of jobs, from 1 to those of the machine."""
    check_memory(f"processors {machine:,}", machine * BYTES_PER_SIZE, "take a smaller machine")
    return np.arange(1, machine + 1)


def length_shares(exponent: float, most: int) -> Floats:
    """Return the probability that a job is executed 1 to ``most`` times, shape (most,).

    It is proportional to r^-exponent, a truncated Zipf distribution.
    """
    check_memory(f"{most:,} repetitions", most * BYTES_PER_SIZE, "fit the model again")
    weight = np.arange(1, most + 1) ** -exponent
    return weight / weight.sum()


@dataclass(frozen=True)
class Found:
    """Repeated executions in a workload: index of each first one, rising, and their number."""

    first: Int64s
    lengths: Int64s


@once
def find_runs(workload: Workload) -> Found:
    """Return the repeated executions of a workload.

    A repetition is a job with the same number of processors and the same executable as the previous
    job of the same user, whatever the time between. Unknown executables count as equal, unknown
    users as one user. Arrivals and jobs are fitted to the same runs.
    """
    order = np.argsort(workload.user, kind="stable")
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for column in (workload.user, workload.executable, workload.processors):
        begins[1:] |= np.diff(column[order]) != 0
    first = np.flatnonzero(begins)
    lengths = np.diff(first, append=len(order))
    place = order[first]
    by_arrival = np.argsort(place, kind="stable")
    return Found(place[by_arrival], lengths[by_arrival])


def cut_runs(start: Int64s, lengths: Int64s, run_time: Int64s, jobs: int) -> Int64s:
    """Return run lengths without executions too late to be among the first ``jobs`` submissions.

    There are as many runs as jobs or more, by rising first submission (s), with the run time of
    each of their executions (s); at least as many jobs are left.
    """

    def by(second: int) -> Int64s:
        """Return how many executions of each run are submitted by a second."""
        since = second - start
        passed = np.where(run_time > 0, since // np.maximum(run_time, 1) + 1, lengths)
        return np.where(since < 0, 0, np.minimum(passed, lengths))

    enough = bisect_left(
        range(len(start) - 1), jobs, key=lambda run: int(by(int(start[run])).sum())
    )
    return by(int(start[enough]))


def repeated(
    start: Int64s,
    lengths: Int64s,
    run_time: Int64s,
    processors: Int64s,
    user: Int64s,
    group: Int64s,
) -> Drawn:
    """Return the jobs of runs as a flat list, as if no job ever waited.

    Each repetition is submitted in the second in which the previous execution ends. Columns are of
    runs, but run times (s) are those of each execution, run by run, shape (jobs,).
    """
    run = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    before = np.cumsum(run_time) - run_time
    submit = start[run] + before - before[first[run]]
    # Stable: a job that ends in the second of its submission stays ahead of its own repetition.
    order = np.argsort(submit, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    follows = np.full(len(order), UNKNOWN)
    follows[1:] = place[:-1]
    follows[first[lengths > 0]] = UNKNOWN
    return Drawn.of(
        submit[order].astype(np.float64),
        run_time[order].astype(np.float64),
        processors[run[order]],
        user=user[run[order]],
        group=group[run[order]],
        executable=run[order] + 1,
        bag=run[order],
        follows=follows[order],
    )


#: Order of the harmonic distribution of sizes; exponent of the Zipf distribution of run lengths.
ORDER, REPETITIONS = 1.5, 2.5

#: Sizes that count as small: "using only less than 10 nodes".
SMALL_SIZES = 9

#: Factors of small sizes and powers of two; unconfirmed, the paper gives none.
SMALL_FACTOR, POWER_FACTOR = 1.5, 3.0

#: Longest series of repetitions; unconfirmed.
MOST_REPETITIONS = 1000

#: s; smallest mean run time that whole seconds can resolve.
LEAST_MEAN_S = 0.5


class Feitelson(JobModel):
    """The common part of both versions.

    Sizes are harmonic with emphasis on some. Run times are hyperexponential; the probability of
    each stage is linear in size / machine. The number of executions of a job follows a Zipf
    distribution, and each repetition is submitted when the previous execution ends.
    """

    source: ClassVar[str] = (
        "Feitelson, JSSPP 1996, and page m_feitelson96 of the Parallel Workloads Archive"
    )

    #: Number of stages of run times in a fit.
    stages: ClassVar[int]

    #: Published run times: unit (s), means, probabilities for the smallest and the largest jobs.
    run_times: ClassVar[tuple[float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]]

    order: float = Field(ORDER, ge=0, description="order of the harmonic distribution of sizes")
    small_sizes: int = Field(
        SMALL_SIZES, ge=1, description="processors; sizes up to this one are small (unconfirmed)"
    )
    small_factor: float = Field(
        SMALL_FACTOR, gt=0, description="factor by which small sizes are likelier (unconfirmed)"
    )
    power_factor: float = Field(
        POWER_FACTOR,
        gt=0,
        description="factor by which powers of two are likelier (unconfirmed)",
    )
    unit_s: float = Field(1.0, gt=0, description="s; unit of the mean run times")
    means: tuple[PositiveFloat, ...] = Field(
        min_length=1, description="unit_s; mean run time of each stage, rising (unconfirmed)"
    )
    shares_small: tuple[float, ...] = Field(
        min_length=1, description="probability of each stage for the smallest jobs (unconfirmed)"
    )
    shares_large: tuple[float, ...] = Field(
        min_length=1,
        description="probability of each stage for jobs as large as the machine (unconfirmed)",
    )
    repetitions: float = Field(
        REPETITIONS, gt=1, description="exponent of the Zipf distribution of run lengths"
    )
    most_repetitions: int = Field(
        MOST_REPETITIONS, ge=1, description="jobs; the longest series (unconfirmed)"
    )
    repeats: Literal["same", "new"] = Field(
        "same",
        description="run time of a repetition: that of the first execution, or a new draw "
        "(unconfirmed)",
    )
    published_gap_s: float | None = Field(
        None, gt=0, description="s; mean time between first executions, if not fitted "
        "(chosen here, for an offered load of 0.7)",
    )  # fmt: skip
    users: UserShares = Field(description="users who submit; every series has one user")

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if np.any(np.diff(self.means) < 0):
            raise ValueError("means: must be rising")
        for name in ("shares_small", "shares_large"):
            shares = getattr(self, name)
            if len(shares) != len(self.means):
                raise ValueError(f"{name}: {len(shares)} shares for {len(self.means)} means")
            if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
                raise ValueError(f"{name}: must be at least 0 and add up to 1")
        return self

    def size_shares(self, machine: int) -> Floats:
        """Return the probability of each size, shape (machine,)."""
        return size_shares(
            machine, self.order, self.small_sizes, self.small_factor, self.power_factor
        )

    @property
    def length_shares(self) -> Floats:
        """Probability of each run length, shape (most_repetitions,)."""
        return length_shares(self.repetitions, self.most_repetitions)

    def mean_run_time(self, processors: Int64s, machine: int) -> Floats:
        """Return the mean run time of jobs of a size, s, of the shape of ``processors``."""
        found: Floats = self._shares(processors, machine) @ np.array(self.means) * self.unit_s
        return found

    @classmethod
    @override
    def fit(cls, workload: Workload, *, repeats: Literal["same", "new"] = "same") -> Self:
        """Return the model of a workload.

        Order and factors of sizes and the exponent of run lengths are maximum-likelihood estimates;
        stages of run times and their probabilities come from expectation-maximization. A run is a
        sequence of a user's jobs with the same executable and number of processors; the longest run
        is that of the workload. ``small_sizes`` is kept.

        With ``repeats="same"`` repetitions take as long as the first execution; ``new`` is a new
        draw.
        """
        check_choice("repeats", repeats, ("same", "new"))
        if not len(workload):
            raise ModelFitError(f"model {cls.name}: 0 jobs", "one or more are needed")
        machine = workload.machine or int(workload.processors.max())
        processors = np.minimum(workload.processors, machine)
        small_sizes = min(SMALL_SIZES, machine)
        sizes, notes = fit_sizes(processors, machine, small_sizes)
        mixture = fit_linear_mixture(
            workload.run_time, processors / machine, Exponentials(LEAST_MEAN_S), cls.stages
        )
        order = np.argsort(mixture.parameters, kind="stable")
        if not mixture.converged:
            notes.append(f"run times: not converged after {mixture.steps} steps")
        series = find_runs(workload)
        exponent = REPETITIONS
        try:
            exponent = zipf_exponent(series.lengths, "run lengths").exponent
        except UnavailableError:
            notes.append("no job is repeated")
        return cls(
            **sizes,
            small_sizes=small_sizes,
            means=tuple(mixture.parameters[order].tolist()),
            shares_small=tuple(mixture.small[order].tolist()),
            shares_large=tuple(mixture.large[order].tolist()),
            repetitions=exponent,
            most_repetitions=int(series.lengths.max()),
            repeats=repeats,
            users=UserShares.fit(workload),
            notes=tuple(f"{cls.name}: {note}" for note in notes),
        )

    @classmethod
    @override
    def arriving(cls, workload: Workload) -> Workload:
        """Return the first executions, to which arrivals are fitted."""
        return workload.take(find_runs(workload).first)

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        unit_s, means, small, large = cls.run_times
        made = cls(
            small_sizes=min(SMALL_SIZES, machine),
            unit_s=unit_s,
            means=means,
            shares_small=small,
            shares_large=large,
            users=chosen_users(),
            notes=(
                f"{cls.name}: order of sizes, exponent of run lengths and the form of run times "
                "are published; means, probabilities, factors and arrivals are unconfirmed",
            ),
        )
        gap = gap_for_load(made.work(machine), machine)
        return made.model_copy(update={"published_gap_s": gap})

    @override
    def published_arrivals(self) -> ArrivalModel:
        note = "arrivals: the paper gives no mean; chosen here for an offered load of 0.7"
        return Poisson.published(self.name, self.published_gap_s, note)

    def work(self, machine: int) -> float:
        """Return the mean processors x s of a first execution with its repetitions."""
        size = _sizes(machine)
        one = self.size_shares(machine) @ (size * self.mean_run_time(size, machine))
        lengths = self.length_shares
        return float(one) * float(lengths @ np.arange(1, len(lengths) + 1))

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        """Return as many jobs as there are arrivals of first executions: the earliest ones."""
        random = streams.generator("jobs")
        count = len(arrivals)
        lengths = draw_from(self.length_shares, count, random) + 1
        size = draw_from(self.size_shares(machine), count, random) + 1
        user, group = self.users.assign(count, streams.generator("users"))
        start = whole(arrivals)
        if self.repeats == "same":
            times = self._run_times(size, machine, random)
            lengths = cut_runs(start, lengths, times, count)
            times = np.repeat(times, lengths)
        else:
            times = self._run_times(np.repeat(size, lengths), machine, random)
        drawn = repeated(start, lengths, times, size, user, group).first(count)
        if self.repeats == "new":
            # A common request would have to be long enough for the longest of the series.
            drawn.bag = np.arange(count)
        return drawn

    def _run_times(self, size: Int64s, machine: int, random: np.random.Generator) -> Int64s:
        """Return run times in whole s, as a repetition comes in the second in which a job ends."""
        edges = np.cumsum(self._shares(size, machine), axis=1)[:, :-1]
        stage = (edges <= random.random(len(size))[:, None]).sum(axis=1)
        mean = np.array(self.means)[stage] * self.unit_s
        return whole(random.exponential(mean))

    def _shares(self, size: Int64s, machine: int) -> Floats:
        """Return the probability of each stage, shape (jobs, stages)."""
        part = (size / machine)[..., None]
        found: Floats = (1 - part) * np.array(self.shares_small) + part * np.array(
            self.shares_large
        )
        return found


#: Mean run times of the two stages of 1996 in arbitrary units, their probabilities for the
#: smallest jobs and for those as large as the machine; unconfirmed. Their mean is 1.3 to 2.5 units;
#: the page says "around 2".
MEANS_1996, SMALL_1996, LARGE_1996 = (1.0, 7.0), (0.95, 0.05), (0.75, 0.25)

#: s; length of the arbitrary unit of 1996. Chosen here.
UNIT_1996_S = 1000.0

#: The same for the three stages of 1997, in s. The number of stages is unconfirmed, and the numbers
#: are chosen here so that the mean is that of 1996 with our unit.
MEANS_1997, SMALL_1997, LARGE_1997 = (60.0, 900.0, 7200.0), (0.5, 0.4, 0.1), (0.3, 0.4, 0.3)


class Feitelson1996(Feitelson):
    """The first version: run times in arbitrary units, in two stages."""

    name: ClassVar[str] = "feitelson96"
    title: ClassVar[str] = "harmonic sizes, hyperexponential run times, repeated executions"
    stages: ClassVar[int] = 2
    run_times = UNIT_1996_S, MEANS_1996, SMALL_1996, LARGE_1996


class Feitelson1997(Feitelson):
    """The second version, which the archive recommends: run times in s, in three stages."""

    name: ClassVar[str] = "feitelson97"
    title: ClassVar[str] = "the same with run times in seconds, in three stages"
    stages: ClassVar[int] = 3
    run_times = 1.0, MEANS_1997, SMALL_1997, LARGE_1997
