"""Minh 2012, chapters 4 and 5: models of arrivals and jobs, fitted, drawn and simulated.

Every workload is drawn from named streams of its seed, so that results do not depend on how many
processes share the work, nor on the order in which they finish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.judgement import generated
from hpcrowd.analysis.models.model import WorkloadModel, fit
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.scenarios.studies.minh2012_correlation.measures import simulated_slowdown
from hpcrowd.scenarios.studies.minh2012_correlation.workloads import RandomJobs
from hpcrowd.scenarios.studies.minh2012_models.arrivals import TIME_SCALES_S, study_arrivals
from hpcrowd.scenarios.studies.minh2012_models.jobs import JobRuns, measured, study_jobs
from hpcrowd.scenarios.studies.minh2012_models.measures import SCHEDULED, TraceModels
from hpcrowd.scenarios.studies.minh2012_models.scheduling import (
    LOADS,
    POLICIES,
    Points,
    Schedule,
    system_of,
)


@dataclass(frozen=True)
class Way:
    """A way to make the comprehensive model, or to simulate its workloads.

    Attributes
    ----------
    words
        Its description.
    arrivals
        A name of :data:`~analysis.models.model.ARRIVALS`; chapter 5 uses those of chapter 4.
    options
        Options of the fit of its jobs.
    time_scale_s
        s; T, of the arrivals.
    widest
        Processors beyond which jobs are left out of all simulations.
    times
        Number of workloads, as a multiple of that of the others.
    jobs
        Whether its jobs are measured; the others are simulated only.
    """

    words: str
    arrivals: str = "wavelet-zeros"
    options: Mapping[str, Any] = field(default_factory=dict)
    time_scale_s: float | None = None
    widest: int | None = None
    times: int = 1
    jobs: bool = False


#: The ways by name; the requirements are for the first one.
PLANNED = {
    "thesis": Way("as in the thesis: arrivals `wavelet-zeros`, the model of chapter 4", jobs=True),
    "auto": Way("arrivals `auto`, as `hpcrowd fit` makes it", arrivals="auto", jobs=True),
    "heavy": Way('bag sizes `"heavy"`', options={"bag_sizes": "heavy"}, jobs=True),
    "plain": Way("arrivals `wavelet`", arrivals="wavelet"),
    "hour": Way("arrivals at T = 3600 s", time_scale_s=3600),
    "narrow": Way("jobs of more than 1,024 processors left out at all loads", widest=1024),
    "twice": Way("twice as many workloads", times=2),
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
        """Return the result of a task."""
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
    jobs = RandomJobs(run_time, workload.processors).table(submit)
    return simulated_slowdown(jobs, processors, policy)


def tasks_of(ways: dict[tuple[str, str], Way], seeds: int) -> list[Task]:
    """Return all tasks to do once the models are fitted, long tasks first."""
    simulations, jobs, names = [], [], dict.fromkeys(name for name, _ in ways)
    for (name, way), plan in ways.items():
        if name == SCHEDULED or way == next(iter(PLANNED)):
            numbers = [TRACE, *range(plan.times * seeds)]
            simulations += [Task("schedule", name, way, number) for number in numbers]
        if plan.jobs:
            jobs += [Task("jobs", name, way, seed) for seed in range(seeds)]
    arrivals = [Task("arrivals", name, "", scale) for name in names for scale in TIME_SCALES_S]
    return arrivals + simulations + jobs


def outcome_of(
    name: str,
    workload: Workload,
    facts: dict[str, Any],
    models: dict[tuple[str, str], WorkloadModel],
    results: dict[Task, Any],
) -> TraceModels:
    """Return the results of one trace."""
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
