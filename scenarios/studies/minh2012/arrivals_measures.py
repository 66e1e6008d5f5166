"""Minh 2012, chapter 6: results of the simulations.

Slowdown is the mean response time over the mean run time (section 5.2.5), not a mean of slowdowns.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.analysis.models.parts.base import ArrivalModel, Poisson
from hpcrowd.analysis.models.parts.wavelet import Wavelet, WaveletZeros
from hpcrowd.analysis.paired import Estimate
from hpcrowd.environment.cluster import ClusterSpec
from hpcrowd.environment.errors import ModelFileError, QuantityError, check_choice
from hpcrowd.environment.files import ModelFormat
from hpcrowd.environment.grid.broker import Grid
from hpcrowd.environment.grid.das3 import DAS3, das3_clusters
from hpcrowd.environment.grid.policies import GRID
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.studies.minh2012.correlation_measures import POLICIES as ALL_POLICIES
from hpcrowd.scenarios.studies.minh2012.correlation_measures import (
    STUDIED,
    RandomJobs,
    Runs,
    Task,
    array_of,
    interval,
    simulated_slowdown,
    tasks_of,
)
from hpcrowd.scenarios.studies.options import SEED, Option, loads_option
from hpcrowd.scenarios.studies.running import find_logs

Floats = NDArray[np.float64]

#: Workloads of each pattern on a cluster and on the grid, and jobs of each (section 6.2).
CLUSTER_REPLICATIONS, GRID_REPLICATIONS, WORKLOAD_JOBS = 50, 25, 63_000

#: Schedulers of the single cluster (section 6.3) by our short names, with their labels and colours.
POLICIES = {name: ALL_POLICIES[name] for name in ("fcfs", "easy", "conservative")}

#: The cluster of Fig. 6.3a.
LEIDEN = "LU"

#: Slowdowns of a run of the grid: of a cluster's local jobs, or for ``grid``, of the grid's jobs
#: since their submission to the broker; of jobs submitted while all six workloads arrive, because
#: only then the load is as stated. ``... all`` includes later jobs. ``LU shared`` is of all jobs
#: that the LU ran, since they joined its queue, including those of the grid.
MEASURES = (*(row.name for row in DAS3), "LU all", "LU shared", "grid", "grid all")

#: Largest system load at which a scheduler keeps up with jobs of all widths that arrive at random
#: (found here): beyond it every pattern is overloaded, and their order means little.
SERVED = {"fcfs": 0.7, "easy": 0.8}

#: Two slowdowns are alike up to this factor, which is hardly visible on bars (chosen here).
ALIKE = 1.1


@dataclass(frozen=True)
class ClusterRuns(Runs):
    """The runs on a single cluster (section 6.4.1)."""

    axes = ("policies", "loads", "patterns")

    machine: int  #: Processors.
    #: The varied settings; names of :data:`POLICIES` and of ``workloads.PATTERNS``.
    policies: tuple[str, ...]
    loads: tuple[float, ...]
    patterns: tuple[str, ...]
    #: Shape (policies, loads, patterns, replications). Replication r has the same run times and
    #: processors everywhere.
    slowdown: Floats


@dataclass(frozen=True)
class GridRuns(Runs):
    """The runs on DAS-3 (section 6.4.2)."""

    axes = ("measures", "loads", "patterns", "patterns")

    measures: tuple[str, ...]  #: See :data:`MEASURES`.
    loads: tuple[float, ...]  #: Grid loads.
    patterns: tuple[str, ...]  #: Patterns of the grid's jobs, and of the background.
    #: Shape (measures, loads, grid patterns, background patterns, replications). Replication r has
    #: the same run times and processors everywhere.
    slowdown: Floats


def log_ratio(over: Floats, under: Floats) -> Estimate:
    """Return the mean logarithm of slowdowns over others of the same replications.

    Slowdowns of bursty workloads are skewed over replications; ratios are much less so.
    """
    return interval(np.log(over) - np.log(under))


# ---- workloads -------------------------------------------------------------------------------
# Run times and processors are uniform and independent, so that workloads differ only in arrivals
# (section 6.1). All patterns have the same run times and processors, and arrive in the same time.
# The patterns are fitted to a log (:func:`fit_arrivals`), or those stored here.

#: s; longest run time; run times are uniform from 1 s on. It is not in the thesis, and matters only
#: for rounding to seconds: times between arrivals grow with it at a given load.
LONGEST_S = 7_200


@dataclass(frozen=True)
class PatternWorkload(RandomJobs):
    """Jobs that arrive in several patterns, one of which is chosen when they are submitted."""

    #: Arrival times by pattern, in mean times between arrivals, rising, shape (jobs,); the last one
    #: is the number of jobs.
    arrivals: Mapping[str, NDArray[np.float64]]

    def submits(self, pattern: str, mean_gap: float) -> Int64s:
        """Return the submit times, s, shape (jobs,); the last one is jobs x ``mean_gap``."""
        found: Int64s = np.asarray(round_half_up(self.arrivals[pattern] * mean_gap), np.int64)
        return found


def drawn(
    models: Mapping[str, ArrivalModel],
    size: int,
    widest: int,
    streams: Streams,
    longest_s: int = LONGEST_S,
) -> PatternWorkload:
    """Return a workload whose models of arrivals, by pattern, all draw from the same stream.

    So the wavelet models have the same coarse rates. Processors are uniform from 1 to ``widest``,
    run times from 1 s to the longest.
    """
    arrivals = {}
    for pattern, model in models.items():
        times = model.times(size, streams.generator("arrivals"))
        arrivals[pattern] = times * (size / times[-1])
    return PatternWorkload(
        streams.generator("run times").integers(1, longest_s, size, endpoint=True),
        streams.generator("processors").integers(1, widest, size, endpoint=True),
        arrivals,
    )


#: The log whose arrivals are stored, by its name in the studies. The thesis does not say to which
#: log it fitted them. On LLNL Thunder the two wavelet models differ as in its chapter 4: the
#: plain one lacks the long pauses, and so the bursts between them.
LOG = "Thunder"

#: s; T, over which arrivals are counted (chapters 4 and 5).
TIME_SCALE_S = 900.0


class Pattern(NamedTuple):
    """A pattern of arrivals (section 6.1)."""

    label: str  #: in words
    model: type[ArrivalModel]


#: Patterns by the index that the thesis gives its workloads, b_N or g_LB, from calm to bursty.
PATTERNS = {
    "N": Pattern("Poisson", Poisson),
    "L": Pattern("long range dependent", Wavelet),
    "LB": Pattern("dependent and bursty", WaveletZeros),
}

#: Identification of a file of such arrivals.
FILES = ModelFormat(
    "hpcrowd arrival patterns", 1, "arrivals of three patterns", "a fit", "fit them again"
)

#: File of the stored arrivals.
STORED = Path(__file__).with_name("Thunder-arrivals.json")


@dataclass(frozen=True)
class Arrivals:
    """Models of the arrivals of each pattern."""

    models: Mapping[str, ArrivalModel]  #: By name of :data:`PATTERNS`.
    log: Mapping[str, Any]  #: The log that they were fitted to: its name, file and checksum.

    def to_json(self) -> dict[str, Any]:
        """Return them as plain data."""
        models = {name: model.model_dump(mode="json") for name, model in self.models.items()}
        return {"log": dict(self.log), "models": models}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str) -> Arrivals:
        """Return what :meth:`to_json` wrote; ModelFileError when ``source`` is damaged."""
        try:
            models = {
                name: pattern.model.model_validate(data["models"][name])
                for name, pattern in PATTERNS.items()
            }
            return cls(models, data["log"])
        except (KeyError, TypeError, ValidationError) as error:
            told = str(error).splitlines()[0]
            raise ModelFileError(f"{source}: damaged, {told}; {FILES.again}") from None


def fit_arrivals(submit: NDArray[np.float64], log: Mapping[str, Any]) -> Arrivals:
    """Return the arrivals of a log in all patterns, and the description of the log.

    Submit times, s, rise, and are of the jobs that completed, as in all the thesis. Raises
    ModelFitError when a pattern cannot be fitted, UnavailableError without PyWavelets.
    """
    workload = Workload.of(submit, 0, settings=Settings(time_scale_s=TIME_SCALE_S))
    models = {name: pattern.model.fit(workload) for name, pattern in PATTERNS.items()}
    return Arrivals(models, log)


def stored_arrivals() -> Arrivals:
    """Return the stored arrivals of :data:`LOG`, which need no trace."""
    return Arrivals.from_json(FILES.read(STORED), STORED.name)


def arrivals_of(traces: str | os.PathLike[str] | None, log: str = LOG) -> Arrivals:
    """Return arrivals fitted to a log of chapter 7, or the stored ones without a folder of traces.

    Raises QuantityError when the log is not known, or is not stored and no folder is given,
    TraceError when its trace is missing or cannot be read, and what :func:`fit_arrivals` raises.
    """
    check_choice("log", log, STUDIED)
    if traces is None:
        if log != LOG:
            raise QuantityError(f"log {log}: only the arrivals of {LOG} are stored; give --traces")
        return stored_arrivals()
    path = find_logs(traces, {log: STUDIED[log]}, [log])[log]
    trace = read_trace(path)
    facts = {"name": log, "source": path.name, "sha256": trace.sha256}
    return fit_arrivals(Workload.from_trace(trace, name=log).submit, facts)


# ---- experiments -----------------------------------------------------------------------------
# A task is a workload on a cluster, or a grid at a load. Every workload is drawn from named streams
# of the seed, so that results do not depend on how many processes share the work, nor on the order
# in which they finish.

#: System loads of the single cluster; the text names 0.8 only.
LOADS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)

#: Grid loads (Fig. 6.3).
GRID_LOADS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: Processors of the single cluster: as many as the LU has, as the thesis does not give its size.
MACHINE = 64

#: Load of each cluster of the grid by its local jobs; not in the thesis.
LOCAL_LOAD = 0.5

#: Widest local job of the grid, as a share of its cluster; not in the thesis. A quarter makes the
#: six workloads last about equally long: the grid's as long as the others at a grid load of 1/3.
LOCAL_WIDEST = 0.25

#: Numbers of workloads of the two forms: the quick one has fewer workloads, not fewer jobs.
FULL = {"cluster_replications": CLUSTER_REPLICATIONS, "grid_replications": GRID_REPLICATIONS}
QUICK = {"cluster_replications": 10, "grid_replications": 6}

#: Policy of the broker (section 6.3).
BROKER = "first-fit"


@dataclass(frozen=True)
class Plan:
    """The plan of the experiments; see :class:`~.arrivals.Minh2012Arrivals`."""

    #: Workloads of each kind, and jobs of each.
    cluster_replications: Annotated[
        int,
        Option(
            "Workloads of each pattern on a cluster; 50, quick 10.", name="seeds", kind=int | None
        ),
    ] = None  # type: ignore[assignment]  # a number once it is made
    grid_replications: Annotated[
        int,
        Option("Sets of workloads on the grid; 25, quick 6.", name="grid_seeds", kind=int | None),
    ] = None  # type: ignore[assignment]  # likewise
    jobs: Annotated[int, Option("Jobs of a workload.")] = WORKLOAD_JOBS
    seed: Annotated[int, SEED] = 0  #: Seed of everything random.
    #: For the single cluster: system loads, processors, and the widest job; None for a job as wide
    #: as the machine.
    loads: Annotated[tuple[float, ...], loads_option("System loads of the cluster.")] = LOADS
    machine: int = MACHINE
    widest: Annotated[int | None, Option("Processors of the widest job on a cluster; all 64.")] = (
        None
    )
    #: For the grid: grid loads, load of each cluster by local jobs, widest local job as a share of
    #: its cluster, widest grid job in processors; None for one as wide as the smallest cluster.
    grid_loads: Annotated[tuple[float, ...], loads_option("Grid loads.")] = GRID_LOADS
    local_load: Annotated[float, Option("Load of each cluster of the grid by local jobs.")] = (
        LOCAL_LOAD
    )
    local_widest: Annotated[
        float, Option("Widest local job of the grid, a share of its cluster.")
    ] = LOCAL_WIDEST
    grid_widest: int | None = None
    #: Whether there are fewer workloads if their number is not given.
    quick: Annotated[bool, Option("Fewer workloads of as many jobs: some minutes.")] = False

    def __post_init__(self) -> None:
        for name, number in (QUICK if self.quick else FULL).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, number)
        smallest = min(row.processors for row in DAS3)
        least = {"cluster_replications": 2, "grid_replications": 2, "jobs": 1_000, "machine": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise QuantityError(f"{name} {getattr(self, name)}: at least {bound}")
        for name, most in (("widest", self.machine), ("grid_widest", smallest)):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise QuantityError(f"{name} {value}: must be from 1 to {most}")
        for load in (*self.loads, *self.grid_loads):
            if not 0 < load < float("inf"):
                raise QuantityError(f"load {load}: must be positive, for example 0.8")
        for loads in (self.loads, self.grid_loads):
            if not loads or len(set(loads)) < len(loads):
                raise QuantityError(f"loads {loads}: give at least one, each once")
        if not 0 < self.local_load < 1:
            raise QuantityError(
                f"local_load {self.local_load}: between 0 and 1, the rest is for the grid"
            )
        if not 0 < self.local_widest <= 1:
            raise QuantityError(f"local_widest {self.local_widest}: a share of the cluster, to 1")

    @property
    def widest_job(self) -> int:
        """Processors of the widest job of the single cluster."""
        return self.machine if self.widest is None else self.widest

    @property
    def widest_grid_job(self) -> int:
        """Processors of the widest grid job, which fits on every cluster."""
        if self.grid_widest is None:
            return min(row.processors for row in DAS3)
        return self.grid_widest

    def widest_local_job(self, processors: int) -> int:
        """Return the processors of the widest local job of a cluster of the grid."""
        return max(1, int(self.local_widest * processors))

    def settings(self) -> dict[str, Any]:
        """Return all settings as plain data, with defaults filled in."""
        found = {**asdict(self), "widest": self.widest_job, "grid_widest": self.widest_grid_job}
        return {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in found.items()
            if name != "quick"
        }


@dataclass(frozen=True)
class Work:
    """What every process needs to run any task."""

    plan: Plan  #: The plan of the experiments.
    arrivals: Arrivals  #: Models of the arrivals of each pattern.

    def tasks(self) -> list[Task]:
        """Return every task; those on the grid, which are longer, first."""
        plan = self.plan
        return [
            *tasks_of("grid", plan.grid_loads, plan.grid_replications),
            *tasks_of("cluster", PATTERNS, plan.cluster_replications),
        ]

    def __call__(self, task: Task) -> list[Any]:
        """Return the slowdowns of all its runs as nested lists."""
        found = self._cluster(task) if task.experiment == "cluster" else self._grid(task)
        plain: list[Any] = found.tolist()
        return plain

    def _cluster(self, task: Task) -> Floats:
        """Return slowdowns of shape (policies, loads)."""
        plan = self.plan
        pattern = [*PATTERNS][task.number]
        streams = Streams(plan.seed).within("minh2012", "arrivals", "cluster", task.replication)
        models = {pattern: self.arrivals.models[pattern]}
        workload = drawn(models, plan.jobs, plan.widest_job, streams)
        return np.array(
            [
                [slowdown_on(workload, pattern, load, plan.machine, policy) for load in plan.loads]
                for policy in POLICIES
            ]
        )

    def _grid(self, task: Task) -> Floats:
        """Return slowdowns of shape (measures, grid patterns, background patterns)."""
        plan, load = self.plan, self.plan.grid_loads[task.number]
        workloads = grid_workloads(plan, self.arrivals, task.replication)
        found = np.full((len(MEASURES), len(PATTERNS), len(PATTERNS)), np.nan)
        for column, own in enumerate(PATTERNS):
            for place, background in enumerate(PATTERNS):
                found[:, column, place] = run_grid(plan, workloads, load, own, background)
        return found


def slowdown_on(
    workload: PatternWorkload, pattern: str, load: float, machine: int, policy: str
) -> float:
    """Run a workload on a single cluster at a system load and return its slowdown."""
    submits = workload.submits(pattern, workload.mean_gap(load, machine))
    return simulated_slowdown(workload.table(submits), machine, POLICIES[policy].scheduler)


def grid_workloads(plan: Plan, arrivals: Arrivals, replication: int) -> dict[str, PatternWorkload]:
    """Return the workloads of the clusters of DAS-3 by name, and that of the grid."""
    streams = Streams(plan.seed).within("minh2012", "arrivals", "grid", replication)
    widest = {
        **{name: plan.widest_local_job(one.processors) for name, one in das3_clusters().items()},
        GRID: plan.widest_grid_job,
    }
    return {
        name: drawn(arrivals.models, plan.jobs, most, streams.within(name))
        for name, most in widest.items()
    }


def run_grid(
    plan: Plan, workloads: dict[str, PatternWorkload], load: float, own: str, background: str
) -> list[float]:
    """Return the slowdowns of a simulation of DAS-3; see :class:`GridRun`."""
    run = GridRun(plan, workloads, load, own, background)
    run.model.run()
    found = run.slowdowns()
    del run
    gc.collect(1)  # a simulation refers to itself: free its 100 MB for the next one
    return found


class GridRun:
    """A simulation of DAS-3 at a grid load: run ``model``, then call :meth:`slowdowns`.

    Workloads are by name of the cluster, and that of the grid; ``own`` and ``background`` are the
    patterns of the grid's jobs and of local jobs. ``rows`` has the rows of each workload,
    ``together`` the time until which all six workloads arrive, s.
    """

    def __init__(
        self,
        plan: Plan,
        workloads: dict[str, PatternWorkload],
        load: float,
        own: str,
        background: str,
    ) -> None:
        clusters = das3_clusters()
        free = sum((1 - plan.local_load) * one.processors for one in clusters.values())
        jobs, self.rows, submits = JobTable(), {}, {}
        for name, workload in workloads.items():
            if name == GRID:
                at = workload.submits(own, workload.mean_gap(load, free))
            else:
                one = clusters[name]
                gap = workload.mean_gap(plan.local_load, one.processors, one.speed)
                at = workload.submits(background, gap)
            self.rows[name], submits[name] = workload.append_to(jobs, at), at
        self.together = min(int(at[-1]) for at in submits.values())
        self.model = model = das3(jobs, clusters)
        self.places = dict(zip(clusters, model.clusters.values(), strict=True))
        for name, cluster in self.places.items():
            cluster.submit(self.rows[name], submits[name])
        model.place(GRID).submit(self.rows[GRID], submits[GRID])

    def slowdowns(self) -> list[float]:
        """Return the slowdowns in the order of :data:`MEASURES`.

        Raises QuantityError when the workloads are so short that one begins after another has
        ended.
        """
        jobs = self.model.jobs
        in_time = jobs.submit <= self.together

        def of(rows: Int64s, since: Int64s) -> float:
            if not len(rows):
                raise QuantityError(
                    f"jobs {len(self.rows[GRID]):,}: no job of some workload is submitted while "
                    "all six arrive; take more jobs"
                )
            # Run times in the table are those on the cluster that ran the job.
            return float((jobs.end - since)[rows].mean() / jobs.run_time[rows].mean())

        found = {f"{name} all": of(rows, jobs.submit) for name, rows in self.rows.items()}
        found |= {name: of(rows[in_time[rows]], jobs.submit) for name, rows in self.rows.items()}
        here = (jobs.cluster == self.places[LEIDEN].number) & in_time
        found[f"{LEIDEN} shared"] = of(np.flatnonzero(here), jobs.enqueued)
        return [found[measure] for measure in MEASURES]


def das3(jobs: JobTable, clusters: dict[str, ClusterSpec]) -> Simulation:
    """Return DAS-3 with its broker; its first cluster is home."""
    return Simulation(jobs, clusters, parts=[Grid(BROKER)])


def collect(plan: Plan, results: Mapping[str, Any]) -> tuple[ClusterRuns, GridRuns]:
    """Put the results of the tasks into the arrays of the experiments."""

    patterns = tuple(PATTERNS)
    first = array_of(results, tasks_of("cluster", PATTERNS, plan.cluster_replications))
    second = array_of(results, tasks_of("grid", plan.grid_loads, plan.grid_replications))
    # Cluster: pattern, replication, policy, load. Grid: load, replication, measure, two patterns.
    return (
        ClusterRuns(
            plan.machine, tuple(POLICIES), plan.loads, patterns, first.transpose(2, 3, 0, 1)
        ),
        GridRuns(MEASURES, plan.grid_loads, patterns, second.transpose(2, 0, 3, 4, 1)),
    )
