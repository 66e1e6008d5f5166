"""Minh 2012, chapter 7: results of the simulations, and Table 7.1 with ours.

Slowdown is the mean response time over the mean run time (section 5.2.5), not a mean of slowdowns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.features.workload import COMPLETED
from hpcrowd.analysis.features.workload import Workload as LogWorkload
from hpcrowd.analysis.models.jobs.locality import Locality, control_correlation
from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.schedulers.policies.adaptive import (
    expected_correlation,
    rank_correlation,
    weekly_correlations,
)
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.options import SEED, Option, loads_option
from hpcrowd.scenarios.studies.running import LOGS

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

#: The two that Figure 7.4 compares.
CATEGORIZED, UNCATEGORIZED = "selective-categorized", "selective-uncategorized"

#: From this load on the system is overloaded (section 7.3.2).
OVERLOADED = 1.0

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


def above(estimate: Estimate) -> bool:
    """Return whether the whole interval lies above 0."""
    return estimate.low is not None and estimate.low > 0


def below(estimate: Estimate) -> bool:
    """Return whether the whole interval lies below 0."""
    return estimate.high is not None and estimate.high < 0


def decided(yes: bool, no: bool) -> bool | None:
    """Return whether a rule holds: None if the intervals decide neither yes nor no."""
    return True if yes else False if no else None


def load_name(load: float) -> str:
    """Return the name of a load as a setting."""
    return f"load {load:g}"


def number(value: float) -> str:
    """Return a slowdown, or a difference of two, with three digits."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


class Runs:
    """Slowdowns of many runs."""

    #: Fields with the varied settings along the first axes of the slowdowns.
    axes: ClassVar[tuple[str, ...]]
    slowdown: Floats

    def of(self, *places: object) -> Floats:
        """Return the slowdowns at values on the first axes, such as a policy and a load."""
        pairs = zip(self.axes, places, strict=False)
        found: Floats = self.slowdown[tuple(getattr(self, axis).index(at) for axis, at in pairs)]
        return found

    def each(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values on all axes, the replication, and the slowdown of every run."""
        for places in product(*(getattr(self, axis) for axis in self.axes)):
            for replication, slowdown in enumerate(self.of(*places)):
                yield (*places, replication, slowdown)


@dataclass(frozen=True)
class CorrelationRuns(Runs):
    """The runs without locality, at every degree of correlation (section 7.3.1)."""

    axes = ("policies", "loads", "degrees")

    #: The varied settings; policies are names of :data:`POLICIES`.
    degrees: tuple[float, ...]
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    correlation: Floats  #: Spearman's of each workload, shape (degrees, replications).
    #: Shape (policies, loads, degrees, replications). Replication r has the same run times and the
    #: same gaps between arrivals, but for their scale, everywhere.
    slowdown: Floats


@dataclass(frozen=True)
class LocalityRuns:
    """The runs with and without locality of one kind of workload (section 7.3.2)."""

    name: str  #: Name for output.
    log: str  #: The log of the jobs.
    #: Spearman's correlation to set by Control_Correlation; None leaves it as modelled.
    degree: float | None
    machine: int  #: Processors.
    #: The varied settings.
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    #: Spearman's of each workload, shape (replications,); the same with and without locality.
    correlation: Floats
    #: Shape (policies, 2, loads, replications), first with locality, then without.
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

    written: ClassVar = ("correlation", "expected", "compared", "right")

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
    :class:`~hpcrowd.environment.schedulers.policies.adaptive.WeeklyCorrelation`.

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


# ---- workloads -------------------------------------------------------------------------------
# As in the thesis run times and processors come from a model that keeps their distributions,
# correlation and locality, see :mod:`hpcrowd.analysis.models.jobs.locality`; arrivals are Poisson.


@dataclass(frozen=True)
class RandomJobs:
    """Jobs whose arrivals are chosen when they are submitted."""

    run_time: Int64s  #: s on nodes of speed 1, shape (jobs,).
    processors: Int64s  #: Of the same jobs.

    def __len__(self) -> int:
        return len(self.run_time)

    def mean_gap(self, load: float, processors: float, speed: float = 1.0) -> float:
        """Return the mean time between arrivals, s, that makes a load; 1 is all of the processors.

        Load is arrival rate x E[run time x processors] / processors (sections 5.2.5 and 6.2);
        processors are those of the machine, or those free in all clusters of a grid, and run times
        are divided by the speed of the nodes. Raises QuantityError when the load is not positive.
        """
        if not 0 < load < float("inf"):
            raise QuantityError(f"load {load}: must be positive, for example 0.8")
        work = float((self.run_time * self.processors).mean()) / speed
        return work / (load * processors)

    def table(self, submits: Int64s) -> JobTable:
        """Return the table of the jobs; requested times are run times (section 7.2.2)."""
        jobs = JobTable()
        self.append_to(jobs, submits)
        return jobs

    def append_to(self, jobs: JobTable, submits: Int64s) -> Int64s:
        """Add the jobs to a table and return their rows."""
        return jobs.append(
            len(self),
            processors=self.processors,
            run_time=self.run_time,
            requested_time=self.run_time,
            recorded_submit=submits,
            user=1,
        )


@dataclass(frozen=True)
class Workload(RandomJobs):
    """Jobs that arrive at random, at a rate given by a load."""

    gaps: NDArray[np.float64]  #: Times between arrivals in units of their mean, shape (jobs,).

    def jobs(self, load: float, machine: int) -> JobTable:
        """Return the table of jobs that arrive at a system load on a machine of this size.

        Raises QuantityError when the load is not positive, or a job does not fit on the machine.
        """
        arrivals = round_half_up(np.cumsum(self.gaps * self.mean_gap(load, machine)))
        largest = int(self.processors.max(initial=0))
        if largest > machine:
            raise QuantityError(f"machine {machine}: a job needs {largest:,} processors")
        return self.table(arrivals)

    def with_processors(self, processors: Int64s) -> Workload:
        """Return the same jobs with other processors."""
        return replace(self, processors=processors)

    def with_run_times_shuffled(self, random: np.random.Generator) -> Workload:
        """Return the workload without locality and correlation: run times in random order."""
        return replace(self, run_time=self.run_time[random.permutation(len(self))])

    def shuffled(self, random: np.random.Generator) -> Workload:
        """Return the workload without locality: its jobs in random order, arrivals as before."""
        order = random.permutation(len(self))
        return replace(self, run_time=self.run_time[order], processors=self.processors[order])


def modelled(model: Locality, size: int, machine: int, streams: Streams) -> Workload:
    """Return a workload of the model of a log, with its locality and correlation."""
    # The model does not use arrivals; they depend on the load.
    jobs = model.jobs(np.zeros(size), machine, streams)
    gaps = streams.generator("gaps").standard_exponential(size)
    return Workload(jobs.run_time.astype(np.int64), jobs.processors, gaps)


# ---- experiments -----------------------------------------------------------------------------
# Every workload is drawn from a named stream of the seed, so that results do not depend on how many
# processes share the work, nor on the order in which they finish.

#: The log of the first experiment, HPC of the thesis, and its machine (section 7.3.1).
HPC, HPC_PROCESSORS = "HPC2N", 240

#: The logs of the study: HPC2N is required, the others are used if available.
STUDIED = {
    name: LOGS[name] for name in (HPC, "DAS2-fs1", "SDSC-DS", "Thunder", "KTH", "LANL-CM5", "CEA")
}

#: The abbreviations of those logs that are in Table 3.1, which gives their numbers of jobs.
TABLED = {HPC: "HPC", "DAS2-fs1": "FS1", "SDSC-DS": "SDD", "Thunder": "LLN"}

#: System loads of the first experiment; those of the thesis are not given.
LOADS = (0.7, 0.8, 0.9)

#: System loads of the second one: under and over 1, as the axes of Figure 7.5.
LOCALITY_LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4)


class Case(NamedTuple):
    """Workloads of the second experiment."""

    log: str
    degree: float | None  #: correlation to set; None leaves it as modelled


#: The thesis has FS3, FS0 and FS2 of DAS-2 with correlations of -0.2, 0 and +0.4, which are not in
#: the archive. Here models of three logs with about these correlations, and the one of DAS-2 that
#: is in the archive with its correlation set.
CASES = (
    Case("HPC2N", None),
    Case("SDSC-DS", None),
    Case("Thunder", None),
    Case("DAS2-fs1", -0.2),
    Case("DAS2-fs1", 0.0),
    Case("DAS2-fs1", 0.4),
)


@dataclass(frozen=True)
class Plan:
    """The plan of the experiments; see :class:`~.correlation.Minh2012Correlation`."""

    #: Workloads of each kind, and jobs of each.
    replications: Annotated[
        int, Option("Workloads at each degree of correlation.", name="seeds")
    ] = REPLICATIONS
    jobs: Annotated[int, Option("Jobs of a workload.")] = WORKLOAD_JOBS
    #: loads, degrees, policies: Settings of the first experiment.
    loads: Annotated[tuple[float, ...], loads_option("System loads, 1 is all of the machine.")] = (
        LOADS
    )
    seed: Annotated[int, SEED] = 0  #: Seed of everything random.
    degrees: tuple[float, ...] = DEGREES
    policies: tuple[str, ...] = tuple(POLICIES)
    #: Settings of the second one.
    locality_loads: tuple[float, ...] = LOCALITY_LOADS
    locality_policies: tuple[str, ...] = LOCALITY_POLICIES
    cases: tuple[Case, ...] = CASES

    def __post_init__(self) -> None:
        for name, least in (("replications", 2), ("jobs", 100)):
            if getattr(self, name) < least:
                raise QuantityError(f"{name} {getattr(self, name)}: at least {least}")
        for load in (*self.loads, *self.locality_loads):
            if not 0 < load < float("inf"):
                raise QuantityError(f"load {load}: must be positive, for example 0.8")
        if not self.loads or len(set(self.loads)) < len(self.loads):
            raise QuantityError(f"loads {self.loads}: give at least one, each once")


class Task(NamedTuple):
    """A piece of work: one replication of one setting of an experiment."""

    experiment: str
    number: int  #: place of the setting, such as a degree, a case or a load
    replication: int

    @property
    def name(self) -> str:
        """The name of its results."""
        return f"{self.experiment}-{self.number}-{self.replication}"


def tasks_of(experiment: str, settings: Sized, replications: int) -> list[Task]:
    """Return the tasks of an experiment, replication by replication."""
    return [
        Task(experiment, number, replication)
        for replication in range(replications)
        for number in range(len(settings))
    ]


def array_of(results: Mapping[str, Any], tasks: Sequence[Task]) -> np.ndarray[Any, Any]:
    """Return the results of the tasks of an experiment, shape (settings, replications, ...)."""
    _, numbers, replications = tasks[-1]
    first = np.array([results[task.name] for task in tasks])
    shaped = first.reshape(replications + 1, numbers + 1, *first.shape[1:])
    return np.ascontiguousarray(shaped.swapaxes(0, 1))


@dataclass(frozen=True)
class Work:
    """What every process needs to run any task."""

    plan: Plan  #: The plan of the experiments.
    #: Models and processors of the logs, by name.
    models: dict[str, Locality]
    machines: dict[str, int]
    cases: tuple[Case, ...]  #: Cases of the plan whose log is available.

    def tasks(self) -> list[Task]:
        """Return every workload to simulate."""
        plan = self.plan
        return [
            *tasks_of("correlation", plan.degrees, plan.replications),
            *tasks_of("locality", self.cases, plan.replications),
        ]

    def __call__(self, task: Task) -> tuple[float, Floats]:
        """Return the correlation of the workload, and the slowdowns of all runs on it."""
        if task.experiment == "correlation":
            return self._correlation(task)
        return self._locality(task)

    def _correlation(self, task: Task) -> tuple[float, Floats]:
        """Return slowdowns of shape (policies, loads)."""
        plan = self.plan
        degree = plan.degrees[task.number]
        streams = Streams(plan.seed).within("minh2012", "correlation", task.replication)
        workload = modelled(self.models[HPC], plan.jobs, HPC_PROCESSORS, streams)
        workload = workload.with_run_times_shuffled(streams.generator("shuffle"))
        workload = with_degree(workload, degree, streams.generator("control", degree))
        found = [
            [slowdown_of(workload, load, HPC_PROCESSORS, policy) for load in plan.loads]
            for policy in plan.policies
        ]
        return rank_correlation(workload.run_time, workload.processors), np.array(found)

    def _locality(self, task: Task) -> tuple[float, Floats]:
        """Return slowdowns of shape (policies, 2, loads), with locality and without."""
        plan, case = self.plan, self.cases[task.number]
        machine = self.machines[case.log]
        streams = Streams(plan.seed).within("minh2012", "locality", case.log, task.replication)
        workload = modelled(self.models[case.log], plan.jobs, machine, streams)
        if case.degree is not None:
            ends = with_degree(workload, 1.0, streams.generator("ends"))
            largest = rank_correlation(ends.run_time, ends.processors)
            degree = min(max(case.degree / largest, -1.0), 1.0)
            random = streams.generator("control", case.degree)
            workload = with_degree(workload, degree, random)
        both = (workload, workload.shuffled(streams.generator("shuffle")))
        found = [
            [
                [slowdown_of(one, load, machine, policy) for load in plan.locality_loads]
                for one in both
            ]
            for policy in plan.locality_policies
        ]
        return rank_correlation(workload.run_time, workload.processors), np.array(found)


def with_degree(workload: Workload, degree: float, random: np.random.Generator) -> Workload:
    """Return a workload with its processors reassigned by Control_Correlation."""
    (dealt,) = control_correlation(workload.run_time, workload.processors, [degree], random)
    return workload.with_processors(dealt)


def slowdown_of(workload: Workload, load: float, machine: int, policy: str) -> float:
    """Run a workload at a system load under one of :data:`POLICIES`; return its slowdown."""
    return simulated_slowdown(workload.jobs(load, machine), machine, POLICIES[policy].scheduler)


def completed_jobs(trace: Trace, name: str = "") -> LogWorkload:
    """Return the jobs that completed, status 1, as in all the thesis; TraceError without any."""
    if not (trace["status"] == COMPLETED).any():
        raise TraceError(f"{trace.source}: no job has status 1, completed; take another trace")
    return LogWorkload.from_trace(trace, name=name)


def collect(
    work: Work, results: Mapping[str, tuple[float, Floats]]
) -> tuple[CorrelationRuns, list[LocalityRuns]]:
    """Put the results of the tasks, by name, into the arrays of the experiments."""
    plan, tasks = work.plan, work.tasks()

    def of(experiment: str, place: int) -> Floats:
        mine = [task for task in tasks if task.experiment == experiment]
        return array_of({task.name: results[task.name][place] for task in mine}, mine)

    first = CorrelationRuns(
        plan.degrees,
        plan.loads,
        plan.policies,
        of("correlation", 0),
        np.moveaxis(of("correlation", 1), (0, 1), (2, 3)),
    )
    second = [
        LocalityRuns(
            name=case_name(case),
            log=case.log,
            degree=case.degree,
            machine=work.machines[case.log],
            loads=plan.locality_loads,
            policies=plan.locality_policies,
            correlation=of("locality", 0)[number],
            slowdown=np.moveaxis(of("locality", 1)[number], 0, -1),
        )
        for number, case in enumerate(work.cases)
    ]
    return first, second


def case_name(case: Case) -> str:
    """Return the name of a case: its log, and the correlation if that was set."""
    if case.degree is None:
        return case.log
    return f"{case.log}, {case.degree:+.1f}" if case.degree else f"{case.log}, 0"
