"""Reproduce Minh 2012, chapters 4 and 5: models of arrivals and jobs, fitted, drawn and simulated.

Every workload is drawn from named streams of its seed, so that results do not depend on how many
processes share the work, nor on the order in which they finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.fitting import fit
from hpcrowd.analysis.models.judgement import generated
from hpcrowd.analysis.models.model import WorkloadModel
from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.processes import each_in_processes
from hpcrowd.scenarios.studies.minh2012_correlation.measures import slowdown
from hpcrowd.scenarios.studies.minh2012_features.measures import STUDIED as FEATURES
from hpcrowd.scenarios.studies.minh2012_features.measures import published_jobs
from hpcrowd.scenarios.studies.minh2012_models.arrivals import TIME_SCALES_S, study_arrivals
from hpcrowd.scenarios.studies.minh2012_models.jobs import JobRuns, measured, study_jobs
from hpcrowd.scenarios.studies.minh2012_models.report import Reproduction
from hpcrowd.scenarios.studies.minh2012_models.scheduling import (
    LOADS,
    POLICIES,
    Points,
    Schedule,
    system_of,
)
from hpcrowd.scenarios.studies.minh2012_models.study import TraceModels
from hpcrowd.scenarios.studies.options import TRACES, Option
from hpcrowd.scenarios.studies.running import ARCHIVE, Log, find_versions, log_name, run_study
from hpcrowd.scenarios.terminal import Progress

#: The traces of chapters 4 and 5 by their abbreviations. NorduGrid is in another format, and NIKHEF
#: is not public: files of these names are taken where somebody has converted them.
STUDIED = {
    **{name: FEATURES[name] for name in ("HPC", "LLN", "LAN", "FS2", "FS3")},
    "NOR": Log("NorduGrid*.swf", f"{ARCHIVE}/"),
    "NIK": Log("NIKHEF*.swf", f"{ARCHIVE}/"),
}

#: Seeds of every model.
SEEDS = 10

#: Processes that share the work.
PROCESSES = 2

#: The trace of Fig. 5.3, on which other ways are tried too.
SCHEDULED = "LLN"


@dataclass(frozen=True)
class Way:
    """A way to make the comprehensive model, or to simulate what it generates.

    Attributes
    ----------
    arrivals
        A name of :data:`analysis.models.registry.ARRIVALS`; chapter 5 takes those of chapter 4.
    options
        Of the fit of its jobs.
    time_scale_s
        s; T, of the arrivals.
    widest
        Processors beyond which jobs are left out of all simulations.
    times
        How many times the workloads of the others.
    jobs
        Whether its jobs are measured; the others are simulated only.
    """

    arrivals: str = "wavelet-zeros"
    options: Mapping[str, Any] = field(default_factory=dict)
    time_scale_s: float | None = None
    widest: int | None = None
    times: int = 1
    jobs: bool = False


#: The ways by the names of :data:`WAYS`; the first one is that of the
#: requirements.
PLANNED = {
    "thesis": Way(jobs=True),
    "auto": Way(arrivals="auto", jobs=True),
    "heavy": Way(options={"bag_sizes": "heavy"}, jobs=True),
    "plain": Way(arrivals="wavelet"),
    "hour": Way(time_scale_s=3600),
    "narrow": Way(widest=1024),
    "twice": Way(times=2),
}

#: Instead of the seed of a generated workload: the trace itself.
TRACE = -1


class Task(NamedTuple):
    """A piece of work on a trace."""

    kind: str  #: ``fit``, ``arrivals``, ``jobs`` or ``schedule``
    trace: str
    way: str  #: a name of :data:`PLANNED`; empty for arrivals
    number: int  #: the seed, or the time scale of arrivals in s


@dataclass(frozen=True)
class Work:
    """What every process needs to do any task.

    Attributes
    ----------
    workloads
        By trace.
    models
        By trace and way; empty while they are fitted.
    seeds
        Of generated arrivals.
    """

    workloads: dict[str, Workload]
    models: dict[tuple[str, str], WorkloadModel]
    seeds: Sequence[int]

    def __call__(self, task: Task) -> Any:
        """Return what comes of a task."""
        workload = self.workloads[task.trace]
        if task.kind == "fit":
            return fitted(workload, PLANNED[task.way])
        if task.kind == "arrivals":
            return study_arrivals(workload.submit, float(task.number), self.seeds)
        if task.kind == "schedule" and task.number == TRACE:
            return simulated(workload, PLANNED[task.way])
        model = self.models[task.trace, task.way]
        if task.kind == "jobs":
            return study_jobs(model, workload, task.number)
        return simulated(generated(model, workload, task.number), PLANNED[task.way])


def fitted(workload: Workload, way: Way) -> WorkloadModel:
    """Return the comprehensive model of a workload, made in a way."""
    if way.time_scale_s is not None:
        settings = replace(workload.settings, time_scale_s=way.time_scale_s)
        workload = replace(workload, settings=settings, remarks=[], _known={})
    return fit("comprehensive", workload, arrivals=way.arrivals, options=way.options)


def simulated(workload: Workload, way: Way) -> Points:
    """Return the slowdowns of a workload under each policy at each load."""
    found = np.full((len(POLICIES), len(LOADS)), np.nan)
    processors, left_out = np.zeros(len(LOADS), np.int64), np.ones(len(LOADS))
    for column, load in enumerate(LOADS):
        try:
            system = system_of(workload, load, way.widest)
        except UnavailableError:
            continue
        jobs = workload.take(np.flatnonzero(system.fits))
        processors[column], left_out[column] = system.processors, 1 - system.fits.mean()
        found[:, column] = [slowdown_on(jobs, system.processors, policy) for policy in POLICIES]
    return Points(found, processors, left_out)


def slowdown_on(workload: Workload, processors: int, policy: str) -> float:
    """Run a workload as it is on a system and return its slowdown.

    Requested times are run times (section 7.2.2).
    """
    run_time = np.asarray(round_half_up(workload.run_time), np.int64)
    submit = np.asarray(round_half_up(workload.submit - workload.submit[0]), np.int64)
    jobs = JobTable()
    jobs.append(
        len(workload),
        processors=workload.processors,
        run_time=run_time,
        requested_time=run_time,
        recorded_submit=submit,
        user=1,
    )
    model = Simulation(jobs, processors, policy)
    model.cluster.submit(np.arange(len(jobs)), submit)
    model.run()
    return slowdown(jobs)


def reproduce_minh2012_models(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    seeds: Annotated[int, Option("Workloads generated from each model.", least=2)] = SEEDS,
    processes: int = PROCESSES,
) -> Reproduction:
    """Run the experiments of chapters 4 and 5 on the traces that are there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    seeds
        How many times every model is drawn from.
    processes
        How many share the work; the results do not depend on it.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read or has no job.
    QuantityError
        When there are less than two seeds, or less than one process.
    """
    if seeds < 2:
        raise QuantityError(f"seeds {seeds}: at least 2, for a spread")
    if processes < 1:
        raise QuantityError(f"processes {processes}: at least 1")
    workloads, facts = read_traces(traces, progress)
    ways = {
        (name, way): plan
        for name in workloads
        for way, plan in PLANNED.items()
        if plan.jobs or name == SCHEDULED
    }
    drawn = range(seeds)
    fits = [Task("fit", *place, 0) for place in ways]
    work = Work(workloads, {}, drawn)
    models = {(task.trace, task.way): model for task, model in run(work, fits, processes, progress)}
    tasks = tasks_of(ways, seeds)
    results = dict(run(Work(workloads, models, drawn), tasks, processes, progress))
    return Reproduction(
        traces={
            name: outcome_of(name, workload, facts[name], models, results)
            for name, workload in workloads.items()
        },
        seeds=seeds,
    )


def read_traces(
    traces: str | os.PathLike[str], progress: Progress | None
) -> tuple[dict[str, Workload], dict[str, dict[str, Any]]]:
    """Return the completed jobs of each trace, and which file it is.

    Of several versions the one is taken of which as many jobs completed as Table 3.1 says, or
    nearly as many.
    """
    workloads, facts = {}, {}
    found = find_versions(traces, STUDIED)
    for place, (name, paths) in enumerate(found.items()):
        if progress is not None:
            progress(f"{name}: reading {paths[0].name}", place, len(found))
        read = []
        for path in paths:
            trace = read_trace(path)
            read.append((path, trace, Workload.from_trace(trace, name=log_name(path))))
        path, trace, workload = min(read, key=lambda one: abs(len(one[2]) - published_jobs(name)))
        workloads[name] = workload
        facts[name] = {
            "source": path.name,
            "sha256": trace.sha256,
            "other_versions": [other.name for other in paths if other != path],
        }
    return workloads, facts


def tasks_of(ways: dict[tuple[str, str], Way], seeds: int) -> list[Task]:
    """Return all there is to do once the models are fitted, long tasks first."""
    simulations, jobs, names = [], [], dict.fromkeys(name for name, _ in ways)
    for (name, way), plan in ways.items():
        if name == SCHEDULED or way == next(iter(PLANNED)):
            numbers = [TRACE, *range(plan.times * seeds)]
            simulations += [Task("schedule", name, way, number) for number in numbers]
        if plan.jobs:
            jobs += [Task("jobs", name, way, seed) for seed in range(seeds)]
    arrivals = [Task("arrivals", name, "", scale) for name in names for scale in TIME_SCALES_S]
    return arrivals + simulations + jobs


def run(
    work: Callable[[Task], Any],
    tasks: Sequence[Task],
    processes: int,
    progress: Progress | None,
) -> list[tuple[Task, Any]]:
    """Return each task with what came of it."""
    found = []
    for place, result in each_in_processes(work, tasks, processes):
        found.append((tasks[place], result))
        if progress is not None:
            label = f"{tasks[place].trace}: {tasks[place].kind} {tasks[place].way}"
            progress(label, len(found), len(tasks))
    return found


def outcome_of(
    name: str,
    workload: Workload,
    facts: dict[str, Any],
    models: dict[tuple[str, str], WorkloadModel],
    results: dict[Task, Any],
) -> TraceModels:
    """Return what was found of one trace."""
    here = {task: result for task, result in sorted(results.items()) if task.trace == name}

    def of(kind: str, way: str) -> dict[int, Any]:
        return {t.number: found for t, found in here.items() if (t.kind, t.way) == (kind, way)}

    recorded = measured(workload, workload)
    jobs, schedules = {}, {}
    for way in PLANNED:
        if made := of("jobs", way):
            jobs[way] = JobRuns(
                recorded,
                [one for one, _ in made.values()],
                [naive for _, naive in made.values() if naive is not None],
                models[name, way].arrivals.name,
            )
        if points := of("schedule", way):
            schedules[way] = Schedule(points.pop(TRACE), list(points.values()))
    return TraceModels(
        trace=name,
        workload=workload,
        arrivals={float(scale): found for scale, found in of("arrivals", "").items()},
        jobs=jobs,
        schedules=schedules,
        notes={way: models[name, way].notes for way in PLANNED if (name, way) in models},
        facts=facts,
    )


def run_minh2012_models(traces: Path, *, seeds: int, out: Path | None, as_json: bool) -> bool:
    """Reproduce the study for the command line; return whether all required figures are reached.

    Parameters
    ----------
    traces
        Folder with the traces.
    seeds
        How many times every model is drawn from.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_minh2012_models(traces, progress, seeds=seeds),
        out=out,
        as_json=as_json,
    )
