"""The models of Feitelson 1996 and 1997: sizes, run times that go with them, repeated executions.

What the papers at hand say is the form of the model; its numbers stand in programs that are not at
hand. So the numbers are parameters, whose defaults are marked as unconfirmed.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, field_validator, model_validator

from analysis.features.workload import Workload
from analysis.models.arrivals_poisson import Poisson
from analysis.models.harmonic import Harmonic, fit_harmonic
from analysis.models.linear_mixture import Exponentials, fit_linear_mixture
from analysis.models.part import ArrivalModel, Drawn, Floats, JobModel
from analysis.models.runs import RunLengths, cut_runs, find_runs, repeated
from analysis.models.users import UserShares
from environment.errors import ModelFitError, QuantityError
from environment.jobs import Int64s
from environment.quantities import round_half_up
from environment.streams import Streams

#: Order of the harmonic distribution of sizes, and of the Zipf distribution of run lengths.
ORDER, REPETITIONS = 1.5, 2.5

#: Sizes that count as small: "using only less than 10 nodes".
SMALL_SIZES = 9

#: Factors of small sizes and powers of two; unconfirmed, the paper gives none.
SMALL_FACTOR, POWER_FACTOR = 1.5, 3.0

#: Longest series of repetitions; unconfirmed.
MOST_REPETITIONS = 1000

#: s; mean run time below which whole seconds tell nothing.
LEAST_MEAN_S = 0.5


class Feitelson(JobModel):
    """What both versions have in common.

    Sizes are harmonic with emphasis; run times are hyperexponential, the probability of each stage
    linear in size / machine; a job is repeated as often as a Zipf distribution says, and each
    repetition is submitted when the one before ends.
    """

    source: ClassVar[str] = (
        "Feitelson, JSSPP 1996, and page m_feitelson96 of the Parallel Workloads Archive"
    )

    #: Stages of the run times that a fit uses.
    stages: ClassVar[int]

    order: float = Field(ORDER, ge=0, description="order of the harmonic distribution of sizes")
    small_sizes: int = Field(
        SMALL_SIZES, ge=1, description="processors; sizes up to this one are small (unconfirmed)"
    )
    small_factor: float = Field(
        SMALL_FACTOR, gt=0, description="how many times likelier small sizes are (unconfirmed)"
    )
    power_factor: float = Field(
        POWER_FACTOR, gt=0, description="how many times likelier powers of two are (unconfirmed)"
    )
    unit_s: float = Field(1.0, gt=0, description="s; unit of the mean run times")
    means: tuple[float, ...] = Field(
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
        description="run time of a repetition: that of the first execution, or drawn anew "
        "(unconfirmed)",
    )
    published_gap_s: float | None = Field(
        None, gt=0, description="s; mean time between first executions, where not fitted "
        "(chosen here, for an offered load of 0.7)",
    )  # fmt: skip
    users: UserShares = Field(description="who submits; every series has one user")

    @field_validator("means")
    @classmethod
    def _positive(cls, means: tuple[float, ...]) -> tuple[float, ...]:
        if min(means) <= 0 or any(np.diff(means) < 0):
            raise ValueError("must be positive and rising")
        return means

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        for name in ("shares_small", "shares_large"):
            shares = getattr(self, name)
            if len(shares) != len(self.means):
                raise ValueError(f"{name}: {len(shares)} shares for {len(self.means)} means")
            if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
                raise ValueError(f"{name}: must be at least 0 and add up to 1")
        return self

    @property
    def sizes(self) -> Harmonic:
        """The distribution of sizes."""
        return Harmonic(self.order, self.small_sizes, self.small_factor, self.power_factor)

    @property
    def runs(self) -> RunLengths:
        """The distribution of run lengths."""
        return RunLengths(self.repetitions, self.most_repetitions)

    def mean_run_time(self, processors: Int64s, machine: int) -> Floats:
        """Return the mean run time of jobs of a size, s, of the shape of ``processors``."""
        found: Floats = self._shares(processors, machine) @ np.array(self.means) * self.unit_s
        return found

    @classmethod
    @override
    def fit(cls, workload: Workload, *, repeats: Literal["same", "new"] = "same") -> Self:
        """Return the model of a workload.

        Order and factors of sizes and the exponent of run lengths are the likeliest ones, stages
        of run times and their probabilities are found by expectation-maximization. A run length
        counts jobs in sequence of a user with the same executable and as many processors; the
        longest one is that of the workload. ``small_sizes`` is kept.

        Parameters
        ----------
        workload
            What to fit to.
        repeats
            ``same``: repetitions take as long as the first execution; ``new``: drawn anew.
        """
        if repeats not in ("same", "new"):
            raise QuantityError(f"repeats {repeats!r}: not known; choose same or new")
        if not len(workload):
            raise ModelFitError(f"model {cls.name}: 0 jobs", "one or more are needed")
        machine = workload.machine or int(workload.processors.max())
        processors = np.minimum(workload.processors, machine)
        sizes, notes = fit_harmonic(processors, machine, min(SMALL_SIZES, machine))
        mixture = fit_linear_mixture(
            workload.run_time, processors / machine, Exponentials(LEAST_MEAN_S), cls.stages
        )
        order = np.argsort(mixture.parameters, kind="stable")
        if not mixture.converged:
            notes.append(f"run times: not converged after {mixture.steps} steps")
        series = find_runs(workload)
        exponent, told = series.exponent(REPETITIONS)
        return cls(
            order=sizes.order,
            small_sizes=sizes.small_sizes,
            small_factor=sizes.small_factor,
            power_factor=sizes.power_factor,
            means=tuple(mixture.parameters[order].tolist()),
            shares_small=tuple(mixture.small[order].tolist()),
            shares_large=tuple(mixture.large[order].tolist()),
            repetitions=exponent,
            most_repetitions=int(series.lengths.max()),
            repeats=repeats,
            users=UserShares.fit(workload),
            notes=tuple(f"{cls.name}: {note}" for note in [*notes, *told]),
        )

    @classmethod
    @override
    def arriving(cls, workload: Workload) -> Workload:
        """Return the first executions, to which arrivals are fitted: repetitions follow."""
        return workload.take(find_runs(workload).first)

    @override
    def published_arrivals(self) -> ArrivalModel:
        if self.published_gap_s is None:
            raise QuantityError(
                f"model {self.name}: published_gap_s is not known of a model that was fitted; take "
                "the arrivals that were fitted with it"
            )
        return Poisson(
            mean_gap_s=self.published_gap_s,
            notes=("arrivals: the paper gives no mean; chosen here for an offered load of 0.7",),
        )

    def work(self, machine: int) -> float:
        """Return processors x s that a first execution and its repetitions need in the mean."""
        size = np.arange(1, machine + 1)
        one = self.sizes.probability(machine) @ (size * self.mean_run_time(size, machine))
        return float(one) * self.runs.mean

    @override
    def jobs(self, arrivals: Floats, machine: int, streams: Streams) -> Drawn:
        """Return as many jobs as there are arrivals of first executions, the first to come."""
        random = streams.generator("jobs")
        count = len(arrivals)
        lengths = self.runs.draw(count, random)
        size = self.sizes.draw(count, machine, random)
        user, group = self.users.assign(count, streams.generator("users"))
        start = np.asarray(round_half_up(arrivals))
        if self.repeats == "same":
            times = self._run_times(size, machine, random)
            lengths = cut_runs(start, lengths, times, count)
            times = np.repeat(times, lengths)
        else:
            times = self._run_times(np.repeat(size, lengths), machine, random)
        drawn = repeated(start, lengths, times, size, user, group).first(count)
        if self.repeats == "new":
            # One request for all would have to be long enough for the longest of the series.
            drawn.bag = np.arange(count)
        return drawn

    def _run_times(self, size: Int64s, machine: int, random: np.random.Generator) -> Int64s:
        """Return run times in whole s: a repetition comes in the second in which one ends."""
        edges = np.cumsum(self._shares(size, machine), axis=1)[:, :-1]
        stage = (edges <= random.random(len(size))[:, None]).sum(axis=1)
        mean = np.array(self.means)[stage] * self.unit_s
        found: Int64s = np.asarray(round_half_up(random.exponential(mean)))
        return found

    def _shares(self, size: Int64s, machine: int) -> Floats:
        """Return the probability of each stage, shape (jobs, stages)."""
        part = (size / machine)[..., None]
        found: Floats = (1 - part) * np.array(self.shares_small) + part * np.array(
            self.shares_large
        )
        return found
