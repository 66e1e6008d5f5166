"""Downey's model of 1997: jobs with an average parallelism and work, both log-uniform.

Jobs are moldable: parallelism and work belong to the job, the number of processors is a choice, and
the run time follows from the speedup.
"""

from __future__ import annotations

from typing import ClassVar, Self, override

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Drawn, Floats, JobModel, Poisson
from hpcrowd.analysis.models.parts.users import UserShares, chosen_users, gap_for_load
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.streams import Streams


def speedup(processors: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return the speedup of a job over one processor.

    Written from memory, not confirmed by the source: Downey, *A Model For Speedup of Parallel
    Programs*, 1997. With n processors, an average parallelism of A (at least 1; no job is faster
    than that), and sigma, the variance of parallelism in its square (at least 0), it is with little
    variance (sigma <= 1)

        S = A n / (A + sigma (n - 1) / 2)                    for n <= A
        S = A n / (sigma (A - 1/2) + n (1 - sigma / 2))      for A <= n <= 2 A - 1
        S = A                                                beyond

    and with much variance

        S = n A (sigma + 1) / (sigma (n + A - 1) + A)        for n <= A + A sigma - sigma
        S = A                                                beyond
    """
    n, a, s = np.broadcast_arrays(
        *(np.asarray(each, np.float64) for each in (processors, parallelism, sigma))
    )
    # Denominators are positive where their branch applies; elsewhere the values are not used.
    little = np.where(
        n <= a,
        a * n / (a + s * (n - 1) / 2),
        np.where(n <= 2 * a - 1, a * n / np.maximum(s * (a - 0.5) + n * (1 - s / 2), 0.5), a),
    )
    much = np.where(n <= a + a * s - s, n * a * (s + 1) / (s * (n + a - 1) + a), a)
    return np.where(s <= 1, little, much)


#: Processors x s; least and most work of a job. Chosen here: our source gives no numbers.
LEAST_WORK, MOST_WORK = 10.0, 1e6

#: Variance of parallelism; unconfirmed.
LEAST_SIGMA, MOST_SIGMA = 0.0, 2.0

#: s; replaces a run time of 0 s.
SHORTEST_S = 0.5

#: Number of points for means over parallelism and sigma.
POINTS, SIGMA_POINTS = 512, 64


class Downey(JobModel):
    """Log-uniform parallelism and work; a job gets as many processors as its parallelism.

    That rule is ours: our source does not say how processors are chosen. Powers of two are no more
    likely than other sizes, as the model's author intended.
    """

    name: ClassVar[str] = "downey"
    title: ClassVar[str] = "log-uniform parallelism and work, run times by the speedup"
    source: ClassVar[str] = "Downey 1997, and page m_downey97 of the Parallel Workloads Archive"

    parallelism_min: float = Field(1.0, ge=1, description="processors; least average parallelism")
    parallelism_max: float = Field(
        ge=1, description="processors; largest average parallelism (unconfirmed: the machine)"
    )
    work_min: float = Field(
        LEAST_WORK, gt=0, description="processors x s; least work of a job (unconfirmed)"
    )
    work_max: float = Field(
        MOST_WORK, gt=0, description="processors x s; most work of a job (unconfirmed)"
    )
    sigma_min: float = Field(
        LEAST_SIGMA, ge=0, description="least variance of parallelism (unconfirmed)"
    )
    sigma_max: float = Field(
        MOST_SIGMA, ge=0, description="largest variance of parallelism, uniform (unconfirmed)"
    )
    published_gap_s: float | None = Field(
        None, gt=0, description="s; mean time between jobs, if not fitted (chosen here, for an "
        "offered load of 0.7)",
    )  # fmt: skip
    users: UserShares = Field(description="who submits")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for name in ("parallelism", "work", "sigma"):
            low, high = getattr(self, f"{name}_min"), getattr(self, f"{name}_max")
            if low > high:
                raise ValueError(f"{name}_min {low:g}: must not be above {name}_max {high:g}")
        return self

    @classmethod
    @override
    def fit(cls, workload: Workload) -> Self:
        """Return the model of a workload.

        Jobs are assumed to run on as many processors as their average parallelism; their work is
        run time x mean speedup there. Both ranges end where the straight line fitted to the
        distribution over the log (least squares over the jobs) reaches 0 and 1. Sigma is kept, as
        run times on one number of processors do not determine it.
        """
        if not len(workload):
            raise ModelFitError(f"model {cls.name}: 0 jobs", "one or more are needed")
        sizes, place = np.unique(workload.processors, return_inverse=True)
        sigma = _middles(LEAST_SIGMA, MOST_SIGMA, SIGMA_POINTS)
        gain = np.log(speedup(sizes[:, None], sizes[:, None], sigma)).mean(axis=1)
        time = np.maximum(workload.run_time, SHORTEST_S)
        low, high = _range(np.log(workload.processors))
        work = _range(np.log(time) + gain[place])
        return cls(
            parallelism_min=max(float(np.exp(low)), 1.0),
            parallelism_max=max(float(np.exp(high)), 1.0),
            work_min=float(np.exp(work[0])),
            work_max=float(np.exp(work[1])),
            users=UserShares.fit(workload),
        )

    @classmethod
    @override
    def published(cls, machine: int) -> Self:
        made = cls(
            parallelism_max=machine,
            users=chosen_users(),
            notes=(
                f"{cls.name}: log-uniform parallelism and work are published; their ranges, the "
                "speedup and sigma are unconfirmed, the choice of processors is ours",
            ),
        )
        gap = gap_for_load(made.mean_demand(machine), machine)
        return made.model_copy(update={"published_gap_s": gap})

    @override
    def published_arrivals(self) -> ArrivalModel:
        return Poisson.published(
            self.name,
            self.published_gap_s,
            "arrivals: Poisson in two parts of the day in the paper, whose numbers we do not have; "
            "one rate here, chosen for an offered load of 0.7",
        )

    def mean_demand(self, machine: int) -> float:
        """Return the mean processors x s that a job occupies; this is more than its work."""
        logs = _middles(np.log(self.parallelism_min), np.log(self.parallelism_max), POINTS)
        parallelism = np.exp(logs)
        size = _sizes(parallelism, machine)
        sigma = _middles(self.sigma_min, self.sigma_max, SIGMA_POINTS)
        spent = size[:, None] / speedup(size[:, None], parallelism[:, None], sigma)
        return float(spent.mean()) * self.mean_work

    @property
    def mean_work(self) -> float:
        """Mean work of a job, processors x s."""
        ratio = self.work_max / self.work_min
        span = np.log(ratio)
        return float((self.work_max - self.work_min) / span) if span > 0 else self.work_min

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        random = streams.generator("jobs")
        count = len(arrivals)
        parallelism, work = (
            np.exp(random.uniform(np.log(low), np.log(high), count))
            for low, high in (
                (self.parallelism_min, self.parallelism_max),
                (self.work_min, self.work_max),
            )
        )
        sigma = random.uniform(self.sigma_min, self.sigma_max, count)
        size = _sizes(parallelism, machine)
        user, group = self.users.assign(count, streams.generator("users"))
        return Drawn.of(
            arrivals, work / speedup(size, parallelism, sigma), size, user=user, group=group
        )


def _sizes(parallelism: Floats, machine: int) -> Int64s:
    """Return the processors of jobs: their average parallelism, rounded, at most the machine."""
    return np.clip(np.floor(parallelism + 0.5), 1, machine).astype(np.int64)


def _middles(low: float, high: float, count: int) -> Floats:
    """Return evenly spaced points: the middles of equal parts of a range."""
    return low + (high - low) * (np.arange(count) + 0.5) / count


def _range(logs: Floats) -> tuple[float, float]:
    """Return where the line fitted to a distribution reaches 0 and 1."""
    values, counts = np.unique(logs, return_counts=True)
    share = counts / counts.sum()
    middle = np.cumsum(share) - share / 2
    mean = float(share @ values)
    variance = float(share @ (values - mean) ** 2)
    slope = float(share @ ((values - mean) * (middle - 0.5)))
    if not slope > 0:
        return mean, mean
    return mean - variance / slope / 2, mean + variance / slope / 2
