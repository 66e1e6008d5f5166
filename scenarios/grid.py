"""Run a grid: workloads of its clusters and of its own, users who submit here or there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from agents.decisions import DecisionLog
from agents.generated import Generating
from agents.population import add_users, maker_of
from agents.sessions import SessionDefinition
from agents.work import Work
from analysis.grid_accounts import grid_accounts
from analysis.models.generate import generate
from analysis.run import Run
from environment.archive import trace_path
from environment.broker import GridSpec
from environment.clock import Clock
from environment.cluster import ClusterSpec
from environment.errors import QuantityError
from environment.formats.registry import read_trace
from environment.grid import GRID
from environment.jobs import UNKNOWN, Column, JobTable
from environment.joined import Joined, join
from environment.quantities import round_half_up
from environment.simulation import Simulation
from environment.streams import Streams
from environment.trace import Trace, jobs_from_trace
from scenarios.grid_components import Split, split_wide
from scenarios.grid_config import GridConfig, WorkloadConfig
from scenarios.models_command import model_of
from scenarios.replay import units_waited_for
from scenarios.staged import Staged


@dataclass
class Workloads:
    """The jobs of a grid: of each cluster, then of the grid itself.

    Attributes
    ----------
    names
        Of the clusters, then ``grid``.
    tables
        The jobs; times are those on nodes as fast as the first cluster's.
    clock
        Local time, of the first trace.
    files
        SHA-256 of the files that were read.
    repaired, dropped
        Jobs repaired and dropped when traces were read, by reason.
    """

    names: list[str]
    tables: list[JobTable]
    clock: Clock
    files: dict[str, str]
    repaired: Counter[str]
    dropped: Counter[str]


def run_grid(
    config: GridConfig,
    *,
    workloads: Workloads | None = None,
    progress: Callable[[Simulation], Any] | None = None,
    log: DecisionLog | None = None,
) -> Run:
    """Run a grid and return what came of it.

    Parameters
    ----------
    config
        The grid, :func:`scenarios.grid_config.read_grid`.
    workloads
        Its jobs, :func:`load_workloads`, where many runs share them; they stay as they are.
    progress
        Called now and then with the simulation.
    log
        Where users note what they decide.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    return stage_grid(config, workloads=workloads, log=log).run(progress)


def stage_grid(
    config: GridConfig, *, workloads: Workloads | None = None, log: DecisionLog | None = None
) -> Staged:
    """Return a grid before it begins; parameters and errors as :func:`run_grid`."""
    began = time.perf_counter()
    streams = Streams(config.seed)
    loaded = load_workloads(config) if workloads is None else workloads
    joined = join(loaded.tables)
    work = Work.of(joined.jobs, SessionDefinition.parse(config.sessions))
    sites = _sites(config, loaded.names, joined, work, streams)
    split = _split(config, loaded.names, joined, work, sites)
    if split is not None:
        work = split.work
    jobs = work.jobs
    clusters = {
        name: ClusterSpec(site.processors, site.scheduler, site.speed, config.estimates_of(name))
        for name, site in config.clusters.items()
    }
    # The first cluster is where others measure their speed.
    first, *others = clusters
    model = Simulation(
        jobs,
        clusters[first].processors,
        clusters[first].scheduler,
        estimates=clusters[first].estimates,
        others={name: _relative(clusters[name], clusters[first].speed) for name in others},
        clock=loaded.clock,
        seed=config.seed,
        grid=GridSpec(config.broker, split is not None and split.any),
        name=first,
    )
    broker = model.broker
    assert broker is not None
    for rows in split.rows if split is not None else ():
        broker.bind(rows)
    behaviour = config.behaviour()
    _check_replays(behaviour)
    users = add_users(model, work, behaviour, sites=sites, log=log)

    def finish() -> Run:
        sizes = {name: cluster.processors for name, cluster in clusters.items()}
        components = split.first_of if split is not None and split.any else None
        accounts = grid_accounts(jobs, broker.submitted, sizes, components)
        if split is not None:
            accounts[GRID] |= {"jobs_split": len(split.first), "components": int(split.count.sum())}
        return Run(
            jobs=jobs,
            processors=sum(cluster.processors for cluster in clusters.values()),
            label=f"{config.name}, {_users(config)}, {config.broker}",
            configuration={
                "kind": "grid",
                **config.model_dump(mode="json"),
                **({"files_sha256": loaded.files} if loaded.files else {}),
            },
            clock=loaded.clock,
            work=work,
            waits=units_waited_for(work, users),
            sites=accounts,
            components=components,
            repaired=loaded.repaired,
            dropped=loaded.dropped,
        )

    return Staged(model, users, finish, work, log, time.perf_counter() - began)


def _users(config: GridConfig) -> str:
    return config.users if isinstance(config.users, str) else "mixed users"


def _split(
    config: GridConfig, names: list[str], joined: Joined, work: Work, sites: list[str]
) -> Split | None:
    """Return the work with components of wide jobs; None where the grid does without."""
    if config.components is None:
        return None
    goes = np.array(sites) == GRID
    by_grid = goes[np.searchsorted(work.sessions.users, work.jobs.user)]
    sizes = [cluster.processors for cluster in config.clusters.values()]

    def whose(row: int) -> str:
        place, user = int(joined.table[row]), int(work.jobs.user[row])
        own = user if user == UNKNOWN else user - int(joined.first_user[place])
        return f"of user {own} of {names[place]}"

    return split_wide(work, by_grid, config.components, sizes, whose)


def _relative(spec: ClusterSpec, speed: float) -> ClusterSpec:
    return ClusterSpec(spec.processors, spec.scheduler, spec.speed / speed, spec.estimates)


def _check_replays(behaviour: Any) -> None:
    parts = getattr(behaviour, "parts", None)
    makers = [behaviour] if parts is None else [part.behaviour for part in parts]
    for maker in makers:
        if getattr(maker_of(maker), "generates", False) or isinstance(maker, Generating):
            raise QuantityError(
                f"users {maker}: make up their work for one cluster; in a grid choose users who "
                "replay, such as rigid or think-time"
            )


def load_workloads(config: GridConfig) -> Workloads:
    """Read or generate the jobs of a grid.

    Raises
    ------
    HpcrowdError
        When a trace or a model cannot be used, or there is no room for the load of the grid.
    """
    streams = Streams(config.seed)
    loaded = Workloads([], [], Clock(), {}, Counter(), Counter())
    first = next(iter(config.clusters.values())).speed
    free = 0.0
    for name, site in config.clusters.items():
        table = _table(site, name, site.processors, site.load, config, streams, loaded)
        free += site.processors * max(1 - _offered(table, site.processors), 0)
        _measure(table, site.speed / first)
        loaded.tables.append(table)
        loaded.names.append(name)
    widest = max(site.processors for site in config.clusters.values())
    load = config.grid.load
    if load is not None:
        if free < 1:
            raise QuantityError(
                f"grid.load {load}: the clusters' own users leave no processors free; lower theirs"
            )
        load *= free / widest
    table = _table(config.grid, GRID, widest, load, config, streams, loaded)
    _measure(table, 1 / first)
    loaded.tables.append(table)
    loaded.names.append(GRID)
    return loaded


def _table(
    workload: WorkloadConfig,
    name: str,
    machine: int,
    load: float | None,
    config: GridConfig,
    streams: Streams,
    loaded: Workloads,
) -> JobTable:
    """Return the jobs of a workload, as they are on the nodes that they are meant for."""
    if workload.empty:
        return JobTable()
    trace: Trace
    if workload.trace is not None:
        path = trace_path(workload.trace, folder=config.folder)
        trace = read_trace(path)
        loaded.files[str(workload.trace)] = trace.sha256
        if not any(len(table) for table in loaded.tables):
            loaded.clock = Clock.of(trace.header)
    else:
        source = str(workload.model)
        if source.endswith(".json"):
            place = config.folder / source
            loaded.files[source] = sha256(Path(place).read_bytes()).hexdigest()
            source = str(place)
        seed = int(streams.generator("workload", name).integers(2**32))
        model = model_of(source, machine)
        trace = generate(model, days=workload.days, load=load, machine=machine, seed=seed).trace()
    converted = jobs_from_trace(trace)
    loaded.repaired.update(converted.repaired)
    loaded.dropped.update(converted.dropped)
    return converted.jobs


def _offered(table: JobTable, processors: int) -> float:
    """Return the offered load of a workload on a cluster."""
    if not len(table):
        return 0.0
    span = int(table.recorded_submit.max() - table.recorded_submit.min())
    work = float(table.processors.astype(np.float64) @ table.run_time)
    return work / (processors * span) if span else 1.0


def _measure(table: JobTable, speed: float) -> None:
    """Make times on nodes of a speed those on nodes of speed 1, rounded half up."""
    if speed != 1:
        for column in (Column.RUN_TIME, Column.REQUESTED_TIME):
            times = table.column(column)
            times[:] = np.where(times > 0, np.maximum(round_half_up(times * speed), 1), times)


def _sites(
    config: GridConfig, names: list[str], joined: Joined, work: Work, streams: Streams
) -> list[str]:
    """Return where each user submits to."""
    jobs = joined.jobs
    table = np.zeros(int(jobs.user.max(initial=0)) + 2, np.int64)
    table[jobs.user] = joined.table
    sites = []
    for number in work.sessions.users.tolist():
        place = int(table[number])
        name, own = names[place], number - int(joined.first_user[place])
        share = 0.0 if name == GRID else config.clusters[name].grid_share
        # Each user draws from a stream of its own: whoever joins changes nobody's choice.
        goes = share > 0 and streams.generator("grid", name, own).random() < share
        sites.append(GRID if goes else name)
    return sites
