"""Reproduce Minh 2012, chapter 7: what correlation and locality do to schedulers.

Every workload is drawn from a named stream of the seed, so that results do not depend on how many
processes share the work, nor on the order in which they finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.analysis import features
from hpcrowd.analysis.models.jobs.locality import Locality, control_correlation
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.correlation import rank_correlation
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace
from hpcrowd.scenarios.processes import each_in_processes
from hpcrowd.scenarios.studies.minh2012_correlation.foretold import foretold_signs
from hpcrowd.scenarios.studies.minh2012_correlation.plan import (
    COMPLETED,
    HPC,
    HPC_PROCESSORS,
    PROCESSES,
    STUDIED,
    Case,
    Plan,
)
from hpcrowd.scenarios.studies.minh2012_correlation.report import Reproduction
from hpcrowd.scenarios.studies.minh2012_correlation.study import (
    POLICIES,
    CorrelationRuns,
    Floats,
    LocalityRuns,
    slowdown,
)
from hpcrowd.scenarios.studies.minh2012_correlation.workloads import Sample, Workload, modelled
from hpcrowd.scenarios.studies.running import find_logs, run_study
from hpcrowd.scenarios.terminal import Progress


class Task(NamedTuple):
    """A workload to simulate: one degree, or one case, of one replication."""

    experiment: str  #: ``correlation`` or ``locality``
    number: int  #: place of the degree, or of the case
    replication: int


@dataclass(frozen=True)
class Work:
    """What every process needs to run any task.

    Attributes
    ----------
    plan
        What is to be run.
    models, machines
        Models and processors of the logs, by name.
    cases
        Cases of the plan whose log is there.
    """

    plan: Plan
    models: dict[str, Locality]
    machines: dict[str, int]
    cases: tuple[Case, ...]

    def tasks(self) -> list[Task]:
        """Return every workload to simulate."""
        replications = range(self.plan.replications)
        return [
            *(
                Task("correlation", d, r)
                for r in replications
                for d in range(len(self.plan.degrees))
            ),
            *(Task("locality", c, r) for r in replications for c in range(len(self.cases))),
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
    """Return a workload with its processors dealt out anew by Control_Correlation."""
    (dealt,) = control_correlation(workload.run_time, workload.processors, [degree], random)
    return workload.with_processors(dealt)


def slowdown_of(workload: Workload, load: float, machine: int, policy: str) -> float:
    """Run a workload at a system load and return its slowdown.

    Parameters
    ----------
    workload, load, machine
        See :meth:`~hpcrowd.scenarios.studies.minh2012_correlation.workloads.Workload.jobs`.
    policy
        A name of :data:`~hpcrowd.scenarios.studies.minh2012_correlation.study.POLICIES`.
    """
    jobs = workload.jobs(load, machine)
    model = Simulation(jobs, machine, POLICIES[policy].scheduler)
    model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit.copy())
    model.run()
    return slowdown(jobs)


def completed_jobs(trace: Trace) -> tuple[Int64s, Sample]:
    """Return submissions, run times and processors of the jobs that completed, by submission.

    Raises
    ------
    TraceError
        When there is none.
    """
    made = jobs_from_trace(trace)
    jobs = made.jobs
    rows = np.flatnonzero(trace["status"][made.source_row] == COMPLETED)
    if not len(rows):
        raise TraceError(f"{trace.source}: no job has status 1, completed; take another trace")
    rows = rows[np.argsort(jobs.recorded_submit[rows], kind="stable")]
    sample = Sample(jobs.run_time[rows], jobs.processors[rows])
    return jobs.recorded_submit[rows], sample


def reproduce_minh2012_correlation(
    traces: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    plan: Plan | None = None,
    processes: int = PROCESSES,
) -> Reproduction:
    """Run the experiments of chapter 7 on the logs that are there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    plan
        What to run; the size of the thesis unless given.
    processes
        How many share the work; the results do not depend on it.

    Raises
    ------
    TraceError
        When the trace of HPC2N is missing, or one cannot be read.
    ModelFitError
        When a log cannot be modelled; scikit-learn is needed.
    QuantityError
        When there is less than one process.
    """
    plan = plan or Plan()
    if processes < 1:
        raise QuantityError(f"processes {processes}: at least 1")
    paths = find_logs(traces, STUDIED, [HPC])
    workloads, machines, weeks, logs = {}, {}, {}, {}
    for place, (log, path) in enumerate(paths.items()):
        if progress is not None:
            progress(f"{log}: reading {path.name}", place, len(paths))
        trace = read_trace(path)
        submit, sample = completed_jobs(trace)
        machines[log] = trace.processors
        workloads[log] = features.Workload.of(submit, *sample, name=log)
        weeks[log] = foretold_signs(submit, *sample)
        logs[log] = {
            "source": Path(trace.source).name,
            "sha256": trace.sha256,
            "processors": trace.processors,
            "jobs_completed": len(submit),
            "correlation": rank_correlation(*sample),
        }
    cases = tuple(case for case in plan.cases if case.log in workloads)
    needed = {HPC, *(case.log for case in cases)}
    models = {log: Locality.fit(workloads[log]) for log in STUDIED if log in needed}
    work = Work(plan, models, machines, cases)
    correlation, locality = collect(work, run_tasks(work, work.tasks(), processes, progress))
    return Reproduction(
        correlation=correlation,
        locality=locality,
        weeks=weeks,
        jobs=plan.jobs,
        seed=plan.seed,
        logs=logs,
        absent=[log for log in STUDIED if log not in paths],
    )


def run_tasks(
    work: Callable[[Task], Any],
    tasks: Sequence[Task],
    processes: int,
    progress: Progress | None,
) -> Iterator[tuple[Task, Any]]:
    """Yield each task with what came of it, as they finish."""
    if progress is not None:
        progress("simulating", 0, len(tasks))
    for done, (place, result) in enumerate(each_in_processes(work, tasks, processes), 1):
        if progress is not None:
            progress(f"simulating: {tasks[place].experiment}", done, len(tasks))
        yield tasks[place], result


def collect(
    work: Work, results: Iterable[tuple[Task, tuple[float, Floats]]]
) -> tuple[CorrelationRuns, list[LocalityRuns]]:
    """Put what came of the tasks into the arrays of the experiments."""
    plan = work.plan
    degrees, replications, cases = len(plan.degrees), plan.replications, len(work.cases)
    correlations = {
        "correlation": np.full((degrees, replications), np.nan),
        "locality": np.full((cases, replications), np.nan),
    }
    shapes = {
        "correlation": (degrees, replications, len(plan.policies), len(plan.loads)),
        "locality": (
            cases, replications, len(plan.locality_policies), 2, len(plan.locality_loads),
        ),
    }  # fmt: skip
    slowdowns = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    for (experiment, number, replication), (correlation, found) in results:
        correlations[experiment][number, replication] = correlation
        slowdowns[experiment][number, replication] = found
    first = CorrelationRuns(
        plan.degrees,
        plan.loads,
        plan.policies,
        correlations["correlation"],
        np.moveaxis(slowdowns["correlation"], (0, 1), (2, 3)),
    )
    second = [
        LocalityRuns(
            name=case_name(case),
            log=case.log,
            degree=case.degree,
            machine=work.machines[case.log],
            loads=plan.locality_loads,
            policies=plan.locality_policies,
            correlation=correlations["locality"][number],
            slowdown=np.moveaxis(slowdowns["locality"][number], 0, -1),
        )
        for number, case in enumerate(work.cases)
    ]
    return first, second


def case_name(case: Case) -> str:
    """Return what a case is called: its log, and the correlation where that was set."""
    if case.degree is None:
        return case.log
    return f"{case.log}, {case.degree:+.1f}" if case.degree else f"{case.log}, 0"


def run_minh2012_correlation(
    traces: Path, *, plan: Plan, processes: int, out: Path | None, as_json: bool
) -> bool:
    """Reproduce chapter 7 for the command line; return whether the required figures are reached.

    Parameters
    ----------
    traces
        Folder with the traces.
    plan, processes
        What to run, and how many processes share it.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_minh2012_correlation(
            traces, progress, plan=plan, processes=processes
        ),
        out=out,
        as_json=as_json,
    )
