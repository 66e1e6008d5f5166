"""Minh 2012, chapter 7: the experiments, workload by workload.

Every workload is drawn from a named stream of the seed, so that results do not depend on how many
processes share the work, nor on the order in which they finish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features.workload import COMPLETED
from hpcrowd.analysis.features.workload import Workload as LogWorkload
from hpcrowd.analysis.models.jobs.locality import Locality, control_correlation
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.schedulers.correlation import rank_correlation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_correlation.measures import (
    DEGREES,
    LOCALITY_POLICIES,
    POLICIES,
    REPLICATIONS,
    WORKLOAD_JOBS,
    CorrelationRuns,
    Floats,
    LocalityRuns,
    simulated_slowdown,
)
from hpcrowd.scenarios.studies.minh2012_correlation.workloads import Workload, modelled
from hpcrowd.scenarios.studies.options import SEED, Option, loads_option
from hpcrowd.scenarios.studies.running import ARCHIVE, LOGS, Log

#: The log of the first experiment, HPC of the thesis, and its machine (section 7.3.1).
HPC, HPC_PROCESSORS = "HPC2N", 240

#: The logs of the study: HPC2N is required, the others are used if available.
STUDIED = {
    HPC: LOGS["HPC2N"],
    "DAS2-fs1": Log("DAS2-fs1-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "SDSC-DS": LOGS["SDSC-DS"],
    "Thunder": Log("LLNL-Thunder-2007-1*-cln.swf", f"{ARCHIVE}/l_llnl_thunder/"),
    "KTH": LOGS["KTH"],
    "LANL-CM5": LOGS["LANL-CM5"],
    "CEA": LOGS["CEA"],
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
    """The plan of the experiments; see :class:`~.study.Minh2012Correlation`.

    Attributes
    ----------
    replications, jobs
        Workloads of each kind, and jobs of each.
    loads, degrees, policies
        Settings of the first experiment.
    seed
        Seed of everything random.
    locality_loads, locality_policies, cases
        Settings of the second one.
    """

    replications: Annotated[
        int, Option("Workloads at each degree of correlation.", name="seeds")
    ] = REPLICATIONS
    jobs: Annotated[int, Option("Jobs of a workload.")] = WORKLOAD_JOBS
    loads: Annotated[tuple[float, ...], loads_option("System loads, 1 is all of the machine.")] = (
        LOADS
    )
    seed: Annotated[int, SEED] = 0
    degrees: tuple[float, ...] = DEGREES
    policies: tuple[str, ...] = tuple(POLICIES)
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
    """What every process needs to run any task.

    Attributes
    ----------
    plan
        The plan of the experiments.
    models, machines
        Models and processors of the logs, by name.
    cases
        Cases of the plan whose log is available.
    """

    plan: Plan
    models: dict[str, Locality]
    machines: dict[str, int]
    cases: tuple[Case, ...]

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
    """Run a workload at a system load and return its slowdown.

    Parameters
    ----------
    workload, load, machine
        See :meth:`~hpcrowd.scenarios.studies.minh2012_correlation.workloads.Workload.jobs`.
    policy
        A name of :data:`~hpcrowd.scenarios.studies.minh2012_correlation.measures.POLICIES`.
    """
    return simulated_slowdown(workload.jobs(load, machine), machine, POLICIES[policy].scheduler)


def completed_jobs(trace: Trace, name: str = "") -> LogWorkload:
    """Return the jobs that completed, status 1, as in all the thesis, by submission.

    Raises
    ------
    TraceError
        When there is none.
    """
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
