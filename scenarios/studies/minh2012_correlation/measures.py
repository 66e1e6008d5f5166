"""Minh 2012, chapter 7: results of the simulations, and Table 7.1 with ours.

Slowdown is the mean response time over the mean run time (section 5.2.5), not a mean of slowdowns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.schedulers.correlation import expected_correlation, weekly_correlations
from hpcrowd.environment.simulation import Simulation

Floats = NDArray[np.float64]

#: Degrees of correlation (section 7.3.1).
DEGREES = (-1.0, -0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

#: Replications of each point, and jobs of a workload (section 7.2.1).
REPLICATIONS, WORKLOAD_JOBS = 20, 70_000

#: Share of weeks whose sign is predicted, on average over twelve traces (section 7.4).
FORETOLD = 0.74


class Policy(NamedTuple):
    """A scheduler of the study."""

    scheduler: str  #: its name in ``hpcrowd.environment.schedulers``
    label: str  #: its name in the thesis
    colour: str  #: a name of ``hpcrowd.analysis.pictures.plots.COLOURS``


#: The policies of section 7.2.2 by our short names.
POLICIES = {
    "fcfs": Policy("fcfs", "FIFO", "grey"),
    "easy": Policy("easy", "Aggressive", "blue"),
    "conservative": Policy("conservative", "Conservative", "green"),
    "selective-uncategorized": Policy("selective", "Uncategorized Selective", "vermilion"),
    "selective-categorized": Policy("selective-categorized", "Categorized Selective", "purple"),
}

#: The policies in the experiment on locality (section 7.3.2).
LOCALITY_POLICIES = ("easy", "fcfs")


def slowdown(jobs: JobTable) -> float:
    """Return the mean response time of a run over the mean run time (section 5.2.5)."""
    return float((jobs.end - jobs.submit).mean() / jobs.run_time.mean())


def simulated_slowdown(jobs: JobTable, machine: int, scheduler: str) -> float:
    """Run jobs, submitted as recorded, on a machine of this size; return the slowdown."""
    model = Simulation(jobs, machine, scheduler)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit.copy())
    model.run()
    return slowdown(jobs)


def interval(values: Floats) -> Estimate:
    """Return the mean of independent replications with its interval."""
    return t_interval(values.tolist())


class Runs:
    """Slowdowns of many runs.

    Attributes
    ----------
    axes
        Fields with the varied settings along the first axes of the slowdowns.
    """

    axes: ClassVar[tuple[str, ...]]
    slowdown: Floats

    def of(self, *places: object) -> Floats:
        """Return the slowdowns at values on the first axes, such as a policy and a load."""
        pairs = zip(self.axes, places, strict=False)
        found: Floats = self.slowdown[tuple(getattr(self, axis).index(at) for axis, at in pairs)]
        return found


@dataclass(frozen=True)
class CorrelationRuns(Runs):
    """The runs without locality, at every degree of correlation (section 7.3.1).

    Attributes
    ----------
    degrees, loads, policies
        The varied settings; policies are names of :data:`POLICIES`.
    correlation
        Spearman's of each workload, shape (degrees, replications).
    slowdown
        Shape (policies, loads, degrees, replications). Replication r has the same run times and the
        same gaps between arrivals, but for their scale, everywhere.
    """

    axes = ("policies", "loads", "degrees")

    degrees: tuple[float, ...]
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    correlation: Floats
    slowdown: Floats


@dataclass(frozen=True)
class LocalityRuns:
    """The runs with and without locality of one kind of workload (section 7.3.2).

    Attributes
    ----------
    name
        Name for output.
    log
        The log of the jobs.
    degree
        Spearman's correlation to set by Control_Correlation; None leaves it as modelled.
    machine
        Processors.
    loads, policies
        The varied settings.
    correlation
        Spearman's of each workload, shape (replications,); the same with and without locality.
    slowdown
        Shape (policies, 2, loads, replications), first with locality, then without.
    """

    name: str
    log: str
    degree: float | None
    machine: int
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    correlation: Floats
    slowdown: Floats

    def of(self, policy: str) -> tuple[Floats, Floats]:
        """Return the slowdowns with and without locality, each of shape (loads, replications)."""
        on, off = self.slowdown[self.policies.index(policy)]
        return on, off


class Correlation(NamedTuple):
    """A figure of Table 7.1 with ours."""

    workload: str
    degree: float
    correlation_mean: float
    correlation_deviation: float  #: of the workloads, with n - 1
    published_mean: str
    published_deviation: str


# ---- how well signs are predicted: section 7.4 -------------------------------------------------


@dataclass(frozen=True)
class ForetoldSigns:
    """How often the sign of a week's correlation was predicted.

    Attributes
    ----------
    correlation
        Correlation of each week, nan where there is none, shape (weeks,).
    expected
        Prediction from the two weeks before, nan where there is none, shape (weeks,).
    """

    correlation: Floats
    expected: Floats

    @property
    def compared(self) -> int:
        """Number of weeks that have a correlation and a prediction."""
        return int(np.count_nonzero(self._both))

    @property
    def right(self) -> int:
        """Number of those weeks whose sign was predicted."""
        both = self._both
        return int(np.count_nonzero((self.correlation >= 0)[both] == (self.expected >= 0)[both]))

    @property
    def positive(self) -> int:
        """Number of those weeks whose correlation was not negative."""
        return int(np.count_nonzero((self.correlation >= 0)[self._both]))

    @property
    def share(self) -> float | None:
        """Share of :attr:`compared` that was predicted; None without any."""
        return self.right / self.compared if self.compared else None

    @property
    def commoner(self) -> float | None:
        """Share that the commoner sign, known only afterwards, predicts; None without any."""
        compared = self.compared
        return max(self.positive, compared - self.positive) / compared if compared else None

    @property
    def _both(self) -> NDArray[np.bool_]:
        both: NDArray[np.bool_] = ~(np.isnan(self.correlation) | np.isnan(self.expected))
        return both


def foretold_signs(submit: Int64s, run_time: Int64s, processors: Int64s) -> ForetoldSigns:
    """Return the correlation of each week and the mean of the two weeks before.

    Weeks are counted from the first submission. The run times of all jobs of the two weeks are
    taken as known, as in section 7.4; a scheduler knows only those of jobs that have ended, see
    :class:`~hpcrowd.environment.schedulers.correlation.WeeklyCorrelation`.

    Parameters
    ----------
    submit
        Submissions, s, shape (jobs,).
    run_time, processors
        Run times (s) and processors of the same jobs.
    """
    weeks = weekly_correlations(submit, run_time, processors)
    expected = np.array([expected_correlation(weeks[:week]) for week in range(len(weeks))])
    return ForetoldSigns(weeks, expected)
