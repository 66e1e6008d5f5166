"""Reproduce Minh 2012, chapter 6: what arrivals do to clusters and grids."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.processes import each_in_processes
from hpcrowd.scenarios.studies.minh2012_arrivals.plan import PROCESSES, Plan, plan_of
from hpcrowd.scenarios.studies.minh2012_arrivals.report import Reproduction
from hpcrowd.scenarios.studies.minh2012_arrivals.study import POLICIES, ClusterRuns, GridRuns
from hpcrowd.scenarios.studies.minh2012_arrivals.tasks import Task, Work
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import (
    LOG,
    PATTERNS,
    Arrivals,
    fit_arrivals,
    stored_arrivals,
)
from hpcrowd.scenarios.studies.minh2012_correlation.experiments import STUDIED
from hpcrowd.scenarios.studies.options import SEED, SHARED_BY, Option, loads_option
from hpcrowd.scenarios.studies.running import find_logs, run_study
from hpcrowd.scenarios.terminal import Progress, say
from hpcrowd.scenarios.unfinished import Interrupted, Unfinished


def arrivals_of(traces: str | os.PathLike[str] | None, log: str = LOG) -> Arrivals:
    """Return arrivals fitted to a log, or the stored ones where there is no folder of traces.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    log
        A name of :data:`hpcrowd.scenarios.studies.minh2012_correlation.plan.STUDIED`.

    Raises
    ------
    QuantityError
        When the log is not known, or is not stored and no folder is given.
    TraceError
        When its trace is missing or cannot be read.
    ModelFitError
        When its arrivals cannot be modelled.
    UnavailableError
        When PyWavelets is not installed.
    """
    if log not in STUDIED:
        raise QuantityError(f"log {log!r}: not known; choose {', '.join(STUDIED)}")
    if traces is None:
        if log != LOG:
            raise QuantityError(f"log {log}: stored are arrivals of {LOG} only; give --traces")
        return stored_arrivals()
    path = find_logs(traces, {log: STUDIED[log]}, [log])[log]
    trace = read_trace(path)
    facts = {"name": log, "source": path.name, "sha256": trace.sha256}
    return fit_arrivals(Workload.from_trace(trace, name=log).submit, facts)


def reproduce_minh2012_arrivals(
    traces: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    *,
    plan: Plan | None = None,
    log: str = LOG,
    processes: int = PROCESSES,
    out: Path | None = None,
) -> Reproduction:
    """Run the experiments of chapter 6.

    Parameters
    ----------
    traces
        Folder with the traces; without one, arrivals are those of :data:`LOG` as stored.
    progress
        Called after each task.
    plan
        What to run; the size of the thesis unless given.
    log
        Whose arrivals.
    processes
        How many share the work; the results do not depend on it.
    out
        Folder of results that will be written: what is done is kept beside it, and what was kept
        there is not done again. None keeps nothing.

    Raises
    ------
    QuantityError
        When there is less than one process, or the log is not known.
    HpcrowdError
        When results of something else are kept beside ``out``.
    """
    plan = plan or Plan()
    if processes < 1:
        raise QuantityError(f"processes {processes}: at least 1")
    if progress is not None:
        progress(f"arrivals of {log}", 0, 1)
    work = Work(plan, arrivals_of(traces, log))
    tasks = work.tasks()
    unfinished = None if out is None else Unfinished.beside(out, whole_plan(work))
    done = run_tasks(work, tasks, processes, progress, unfinished)
    cluster, grid = collect(plan, done)
    return Reproduction(
        cluster=cluster,
        grid=grid,
        jobs=plan.jobs,
        seed=plan.seed,
        settings=plan.settings(),
        log=work.arrivals.log,
    )


def command(
    traces: Annotated[
        Path | None, Option("Folder with traces to fit arrivals to; stored ones if none.")
    ] = None,
    progress: Progress | None = None,
    *,
    quick: Annotated[bool, Option("Fewer workloads of as many jobs: some minutes.")] = False,
    log: Annotated[str, Option("Log that arrivals are fitted to.")] = LOG,
    replications: Annotated[
        int | None, Option("Workloads of each pattern on a cluster; 50, quick 10.")
    ] = None,
    grid_replications: Annotated[
        int | None, Option("Sets of workloads on the grid; 25, quick 6.")
    ] = None,
    jobs: Annotated[int, Option("Jobs of a workload.")] = Plan.jobs,
    loads: Annotated[tuple[float, ...], loads_option("System loads of the cluster.")] = Plan.loads,
    grid_loads: Annotated[tuple[float, ...], loads_option("Grid loads.")] = Plan.grid_loads,
    local_load: Annotated[
        float, Option("Load of each cluster of the grid by local jobs.")
    ] = Plan.local_load,
    widest: Annotated[
        int | None, Option("Processors of the widest job on a cluster; all 64.")
    ] = None,
    local_widest: Annotated[
        float, Option("Widest local job of the grid, a share of its cluster.")
    ] = Plan.local_widest,
    processes: Annotated[int, SHARED_BY] = PROCESSES,
    seed: Annotated[int, SEED] = 0,
    out: Path | None = None,
) -> Reproduction:
    """Run the study with the options of the command line."""
    plan = plan_of(
        quick,
        cluster_replications=replications,
        grid_replications=grid_replications,
        jobs=jobs,
        loads=loads,
        grid_loads=grid_loads,
        local_load=local_load,
        widest=widest,
        local_widest=local_widest,
        seed=seed,
    )
    return reproduce_minh2012_arrivals(
        traces, progress, plan=plan, log=log, processes=processes, out=out
    )


def whole_plan(work: Work) -> dict[str, Any]:
    """Return all that results depend on, as plain data."""
    return {
        "study": Reproduction.name,
        "plan": work.plan.settings(),
        "arrivals": work.arrivals.to_json(),
        "versions": versions(),
    }


def run_tasks(
    work: Work,
    tasks: Sequence[Task],
    processes: int,
    progress: Progress | None,
    unfinished: Unfinished | None,
) -> dict[str, Any]:
    """Return what came of each task by name; what is kept already is not done again."""
    found = {} if unfinished is None else unfinished.results(task.name for task in tasks)
    if found:
        say(f"Going on: {len(found)} of {len(tasks)} tasks are done.")
    left = [task for task in tasks if task.name not in found]
    if progress is not None:
        progress("simulating", len(found), len(tasks))
    try:
        for place, result in each_in_processes(work, left, processes):
            task = left[place]
            found[task.name] = result
            if unfinished is not None:
                unfinished.keep(task.name, result)
            if progress is not None:
                progress(f"simulating: {task.experiment}", len(found), len(tasks))
    except KeyboardInterrupt:
        if unfinished is None:
            raise
        raise Interrupted(
            f"interrupted: {len(found):,} of {plural(len(tasks), 'task')} are done and kept; the "
            "same command does the rest"
        ) from None
    return found


def collect(plan: Plan, results: Mapping[str, Any]) -> tuple[ClusterRuns, GridRuns]:
    """Put what came of the tasks into the arrays of the experiments."""

    def of(experiment: str, numbers: int, replications: int) -> np.ndarray[Any, Any]:
        return np.array(
            [
                [results[Task(experiment, number, r).name] for r in range(replications)]
                for number in range(numbers)
            ]
        )

    patterns = tuple(PATTERNS)
    first = of("cluster", len(patterns), plan.cluster_replications)
    second = of("grid", len(plan.grid_loads), plan.grid_replications)
    # Cluster: pattern, replication, policy, load. Grid: load, replication, measure, two patterns.
    return (
        ClusterRuns(
            plan.machine, plan.loads, tuple(POLICIES), patterns, first.transpose(2, 3, 0, 1)
        ),
        GridRuns(plan.grid_loads, patterns, second.transpose(2, 0, 3, 4, 1)),
    )


def run_minh2012_arrivals(
    traces: Path | None,
    *,
    plan: Plan,
    log: str = LOG,
    processes: int,
    out: Path | None,
    as_json: bool,
) -> bool:
    """Reproduce chapter 6 for the command line; return whether what is required is reached.

    Parameters
    ----------
    traces, log
        Folder with the traces, and whose arrivals; without a folder those that are stored.
    plan, processes
        What to run, and how many processes share it.
    out
        Folder to write; None writes nothing. Until then what is done is kept beside it.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_minh2012_arrivals(
            traces, progress, plan=plan, log=log, processes=processes, out=out
        ),
        out=out,
        as_json=as_json,
    )
