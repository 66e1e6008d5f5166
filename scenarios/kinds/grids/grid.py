"""Run a grid: several clusters with their own users, and users who submit to a broker.

A TOML file describes a grid: its clusters, the users of each, and the users of the grid::

    broker = "first-fit"
    users = "think-time"
    components = 64

    [clusters.north]
    processors = 100
    trace = "north.swf.gz"
    grid_share = 0.2

    [clusters.south]
    processors = 64
    speed = 1.5
    model = "lublin"
    load = 0.5

    [grid]
    model = "lublin"
    load = 0.4

    [[platform.changes]]
    do = "resize"
    cluster = "south"
    at = 604800
    processors = 32

Everything is checked when the file is read. An error message gives the file, the place in it and
the rule.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, override

import numpy as np
from pydantic import Field, field_validator, model_validator

from hpcrowd.agents.presets import own_behaviour
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.files import read_toml
from hpcrowd.environment.grid.policies import GRID, parse_grid_policy
from hpcrowd.environment.jobs import UNKNOWN, Column, JobTable, Joined, join
from hpcrowd.environment.limits.inputs import is_input
from hpcrowd.environment.limits.numbers import (
    LEAST_DAYS,
    LEAST_LOAD,
    LEAST_SPEED,
    MOST_DAYS,
    MOST_LOAD,
    MOST_SPEED,
)
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.registry import NotLoaded, located, place_of
from hpcrowd.environment.schedulers.estimates import Predictor, parse_estimates
from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import is_collected, trace_path
from hpcrowd.environment.traces.trace import assumed, counted, jobs_from_trace
from hpcrowd.scenarios.kinds.base import (
    Beginning,
    Staged,
    Watch,
    checksum,
    laid_over,
    with_parts,
    with_settings,
)
from hpcrowd.scenarios.kinds.fields import Sessions, read_as
from hpcrowd.scenarios.kinds.parts.platform import PlatformSettings
from hpcrowd.scenarios.kinds.population_files import (
    ClusterConfig,
    UsersConfig,
    mixture_of,
    switches_of,
)
from hpcrowd.scenarios.kinds.replay import BEHAVIOURS, units_waited_for
from hpcrowd.scenarios.kinds.trace_settings import TraceReading, map_file

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.analysis.run import Run
    from hpcrowd.scenarios.kinds.grids.components import Split


#: Grids that come with hpcrowd, by name: their files.
READY = {path.stem: path for path in sorted((Path(__file__).parent).glob("*.toml"))}

#: Settings of a workload that may name files.
NAMING = ("trace", "model", "map")


class WorkloadConfig(TraceReading):
    """The source of jobs: a trace, or a model."""

    trace: Path | None = Field(
        None, description="in any format, relative to this file; or `archive:NAME`"
    )
    model: str | None = Field(
        None, description="file of a fitted model, or one with published parameters, such as lublin"
    )
    days: float = Field(
        28, ge=LEAST_DAYS, le=MOST_DAYS, description="of a model: days in which jobs arrive"
    )
    load: float | None = Field(
        None,
        ge=LEAST_LOAD,
        le=MOST_LOAD,
        description="of a model: offered load of the cluster; of the grid, over the processors "
        "that local load leaves (Minh 2012, section 6.2)",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.trace is not None and self.model is not None:
            raise ValueError("trace and model: both are sources of jobs; give only one")
        if self.model is None and self.load is not None:
            raise ValueError("load: is for a model; the load of a trace is fixed")
        return self

    @property
    def empty(self) -> bool:
        """Whether no user submits."""
        return self.trace is None and self.model is None


class SiteConfig(WorkloadConfig, ClusterConfig):
    """A cluster of a grid and its own users."""

    speed: float = Field(
        1.0, ge=LEAST_SPEED, le=MOST_SPEED, allow_inf_nan=False,
        description="of its nodes, relative to those that times of grid jobs refer to; run times "
        "of its own trace or model refer to its own nodes",
    )  # fmt: skip
    grid_share: float = Field(
        0.0, ge=0, le=1, description="share of its users, drawn at random, who submit to the grid"
    )

    @model_validator(mode="after")
    def _knows_free_processors(self) -> Self:
        if self.scheduler == RECORDED:
            raise ValueError(
                "scheduler 'recorded': does not count free processors, as a broker needs; choose "
                "another"
            )
        parse_estimates(self.estimates)
        return self


@with_parts
class GridConfig(PlatformSettings):
    """Run several clusters as a grid; settings here replace those of ``source``."""

    INPUT: ClassVar[str] = "source"
    NEEDS_INPUT: ClassVar[bool] = False
    AFTER: ClassVar[Mapping[str, str]] = {"platform": "components"}
    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("clusters", "grid", "seed")

    kind: Literal["grid"] = Field("grid", description="several clusters and a broker")
    source: str | None = Field(
        None,
        exclude=True,
        description="grid that the other settings change: FILE.toml or das3; none unless given",
    )
    name: str = Field("grid", description="for tables and pictures")
    broker: Annotated[str, read_as(parse_grid_policy)] = Field(
        "first-fit",
        description="where jobs of the grid go: first-fit, worst-fit, least-loaded, "
        "fastest-completion",
    )
    grid_share: float | None = Field(
        None,
        ge=0,
        le=1,
        exclude=True,
        description="share of all clusters' users who submit to the grid; 0 isolates them",
    )
    clusters: dict[str, SiteConfig] = Field({}, description="by name, in their order")
    grid: WorkloadConfig = Field(
        WorkloadConfig(), description="users without a cluster, who submit to the grid"
    )
    users: str | tuple[UsersConfig, ...] = Field(
        "rigid", description="how users behave: a name, or entries as in a population file"
    )
    sessions: Sessions = Field(
        "arrival:60m", description="how submissions form sessions, such as arrival:60m"
    )
    components: int | None = Field(
        None,
        description="split jobs of the grid into components of at most this many processors, which "
        "start together on several clusters; none is split unless given",
    )

    @model_validator(mode="before")
    @classmethod
    def _begin_with_source(cls, values: Any) -> Any:
        """Replace settings of ``source`` by those given, and copy the share into all clusters."""
        found = dict(values)
        source = found.get("source")
        if isinstance(source, str):
            place = READY.get(source, Path(found.get("folder", "")) / source)
            if not is_input(place):
                raise QuantityError(f"source {str(place)!r}: no such file")
            began = _with_paths(read_toml(place)[0], place.parent)
            began.pop("seed", None)
            found = laid_over(began, found)
        if found.get("grid_share") is not None and isinstance(found.get("clusters"), dict):
            share = {"grid_share": found["grid_share"]}
            found["clusters"] = {
                name: laid_over(site, share) if isinstance(site, dict) else site
                for name, site in found["clusters"].items()
            }
        return found

    @field_validator("components")
    @classmethod
    def _some_processors(cls, components: int | None) -> int | None:
        if components is not None and components < 1:
            raise ValueError("a component has 1 processor or more; leave it out to split no job")
        return components

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.clusters:
            raise ValueError("clusters: missing; describe at least one")
        if GRID in self.clusters:
            raise ValueError(f"clusters.{GRID}: name of the broker; choose another")
        if self.grid.empty and all(site.empty for site in self.clusters.values()):
            raise ValueError(
                "clusters: no user submits; give one of them, or grid, a trace or model"
            )
        if not isinstance(self.users, str):
            switches_of(self.users, [*self.clusters, GRID])
        elif place_of(self.users) is None and self.users not in BEHAVIOURS:
            raise ValueError(f"users {self.users!r}: {not_one_of(self.users, BEHAVIOURS)}")
        with suppress(NotLoaded):
            if place_of(users := self.behaviour()) is not None:
                own_behaviour(users)
        if self.components is not None:
            self._can_split()
        return self

    def _can_split(self) -> None:
        """Check that reactions do not separate components, and that no predictor misses them."""
        for name, site in self.clusters.items():
            predicted = isinstance(parse_estimates(self.estimates_of(name)), Predictor)
            if predicted:
                raise ValueError(
                    f"components {self.components}: clusters.{name}.estimates {site.estimates!r}: "
                    "learn from a queue that does not contain components; choose requested, exact "
                    "or such as 1.5x, or leave components out"
                )
        if self.platform is not None and any(one.do == "speed" for one in self.platform.changes):
            raise ValueError(
                f"components {self.components}: the platform has a change of speed, and components "
                "of a job take equally long; leave out the change or components"
            )
        for place, entry in enumerate(() if isinstance(self.users, str) else self.users):
            if entry.reactions:
                raise ValueError(
                    f"components {self.components}: users[{place}].reactions: users react job by "
                    "job, and a reaction to one component would separate it from its job; leave "
                    "out reactions or components"
                )

    def estimates_of(self, name: str) -> str:
        """Return the estimates of a cluster; for a file of a model, its path."""
        text = self.clusters[name].estimates
        return str(self.folder / text) if text.endswith(".json") else text

    def behaviour(self) -> Any:
        """Return how users behave, for ``hpcrowd.agents.populations.population.add_users``."""
        if isinstance(self.users, str):
            return located(self.users, self.folder)
        return mixture_of(self.users, self.folder)

    @override
    def label(self) -> str:
        users = self.users if isinstance(self.users, str) else "mixed users"
        return f"{self.name}, {users}, {self.broker}"

    @override
    def files(self) -> dict[str, Path]:
        """Return the file of ``source``, the traces, and the files of models."""
        found = super().files()
        if self.source is not None and self.source not in READY:
            found["source"] = self.folder / self.source
        for place, workload in (*self.clusters.items(), ("grid", self.grid)):
            if workload.trace is not None:
                found[f"{place}.trace"] = self.trace_file(workload.trace)
                if workload.map is not None:
                    found[f"{place}.map"] = map_file(workload.map, self.folder)
            elif workload.model is not None and workload.model.endswith(".json"):
                found[f"{place}.model"] = self.folder / workload.model
        return found

    @override
    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, including those of ``source``."""
        found = self.model_dump(mode="json", exclude_none=True)
        values = {name: found[name] for name in self.settings() if name in found}
        return {"kind": self.kind, **_with_paths(values, self.folder.absolute())}

    @override
    def identity(self) -> dict[str, Any]:
        found, files = self.completed(), self.files()
        for place, workload in (*found["clusters"].items(), ("grid", found["grid"])):
            for name in NAMING:
                path = files.get(f"{place}.{name}")
                if path is not None:
                    workload[name] = checksum(path)
        return found

    @override
    def prepare(self) -> Workloads:
        """Read or generate the jobs."""
        return load_workloads(self)

    @override
    def stage(self, prepared: Workloads, log: DecisionLog | None = None) -> Staged:
        """Set up the grid."""
        from hpcrowd.agents.populations.population import add_users
        from hpcrowd.agents.work.recorded import Work
        from hpcrowd.agents.work.sessions import SessionDefinition
        from hpcrowd.analysis.accounts.grid import Sites, grid_accounts
        from hpcrowd.analysis.accounts.platform import accounts_of
        from hpcrowd.analysis.run import Precedence, Reading
        from hpcrowd.environment.cluster import ClusterSpec
        from hpcrowd.environment.grid.broker import Grid, broker_of

        began = time.perf_counter()
        streams = Streams(self.seed)
        joined = join(prepared.tables)
        work = Work.of(joined.jobs, SessionDefinition.parse(self.sessions))
        sites = _sites(self, prepared.names, joined, work, streams)
        split = _split(self, prepared.names, joined, work, sites)
        if split is not None:
            work = split.work
        jobs = work.jobs
        first = next(iter(self.clusters.values())).speed
        clusters = {
            name: ClusterSpec(
                site.processors, site.scheduler, site.speed / first, self.estimates_of(name)
            )
            for name, site in self.clusters.items()
        }
        grid = Grid(self.broker, split is not None and split.any)
        begins = Beginning(jobs, clusters, prepared.clock)
        model = self.simulation(begins, parts=[grid])
        broker = broker_of(model)
        assert broker is not None
        for rows in split.rows if split is not None else ():
            broker.bind(rows)
        behaviour = self.behaviour()
        _check_replays(behaviour)
        users = add_users(model, work, behaviour, sites=sites, log=log)

        files = prepared.files | self.sums()
        clock = prepared.clock.note if files else ""
        notes = [*counted(prepared.repaired, prepared.dropped), *assumed(clock=clock)]

        def finish() -> Run:
            sizes = {name: cluster.processors for name, cluster in clusters.items()}
            components = split.first_of if split is not None and split.any else None
            platform = accounts_of(model)
            accounts = grid_accounts(jobs, broker.submitted, sizes, components, platform)
            if split is not None:
                accounts[GRID]["jobs_split"] = len(split.first)
                accounts[GRID]["components"] = int(split.count.sum())
            return self.ended(
                model,
                begins,
                Sites(accounts, components),
                processors=sum(cluster.processors for cluster in clusters.values()),
                configuration=self.described(sums=files),
                work=work,
                precedence=Precedence(waits=units_waited_for(work, users)),
                reading=Reading(repaired=prepared.repaired, dropped=prepared.dropped),
            )

        return Staged(model, users, finish, work, log, time.perf_counter() - began, notes)


@dataclass
class Workloads:
    """The jobs of a grid: of each cluster, then of the grid itself."""

    names: list[str]  #: of the clusters, then ``grid``
    tables: list[JobTable]  #: the jobs; times are those on nodes of the first cluster
    clock: Clock  #: local time, of the first trace
    files: dict[str, str]  #: SHA-256 of the files that were read
    #: Jobs repaired and dropped when traces were read, by reason.
    repaired: Counter[str]
    dropped: Counter[str]


def read_grid(source: str, **changes: Any) -> GridConfig:
    """Return the grid of a TOML file, or one that comes with hpcrowd.

    Parameters
    ----------
    source
        A path, or a name of :data:`READY`.
    **changes
        Settings that replace those in the file.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, place, value and rule.
    """
    place = READY.get(source, Path(source))
    if place.suffix != ".toml":
        raise QuantityError(
            f"grid {source!r}: neither a file FILE.toml nor a known grid; choose {', '.join(READY)}"
        )
    values, _ = read_toml(place)
    if isinstance(changes.get("platform"), str):  # relative to here, not to the grid's file
        changes["platform"] = str(Path(changes["platform"]).absolute())
    found = {"name": place.stem, "folder": place.parent, **values, **changes}
    return GridConfig.configure(place, **found)


@with_settings(GridConfig)
def run_grid(
    config: GridConfig | str | os.PathLike[str] | Mapping[str, Any],
    *,
    workloads: Workloads | None = None,
    progress: Watch | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Run a grid and return the run.

    Parameters
    ----------
    config
        The grid, or its file; settings by name replace those of a file.
    workloads
        Its jobs, from :func:`load_workloads`, if many runs share them; they are not changed.
    progress
        Called now and then with the simulation.
    log
        Log for the decisions of users.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    if isinstance(config, Mapping):
        config = GridConfig.configure(**{**config, **choices})
    elif not isinstance(config, GridConfig):
        config = read_grid(os.fspath(config), **choices)
    elif choices:
        raise QuantityError(
            f"{next(iter(choices))}: the grid is made already; give its file, or set it there"
        )
    loaded = config.prepare() if workloads is None else workloads
    return config.stage(loaded, log).run(progress)


def _split(
    config: GridConfig, names: list[str], joined: Joined, work: Work, sites: list[str]
) -> Split | None:
    """Return the work with components of wide jobs; None if the grid does not split jobs."""
    from hpcrowd.scenarios.kinds.grids.components import split_wide

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


def _check_replays(behaviour: Any) -> None:
    from hpcrowd.agents.generative.generated import Generating
    from hpcrowd.agents.populations.population import maker_of

    parts = getattr(behaviour, "parts", None)
    makers = [behaviour] if parts is None else [part.behaviour for part in parts]
    for maker in makers:
        if getattr(maker_of(maker), "generates", False) or isinstance(maker, Generating):
            raise QuantityError(
                f"users {maker}: generate their work for one cluster; in a grid choose users who "
                "replay, such as rigid or think-time"
            )


def load_workloads(config: GridConfig) -> Workloads:
    """Read or generate the jobs of a grid."""
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
    """Return the jobs of a workload, with times on the nodes that they are meant for."""
    from hpcrowd.analysis.models.generation import generate
    from hpcrowd.analysis.models.model import model_of
    from hpcrowd.environment.traces.formats.registry import read_trace

    if workload.empty:
        return JobTable()
    if workload.trace is not None:
        path = trace_path(workload.trace, folder=config.folder)
        trace = read_trace(path, options=workload.reading(config.folder))
        loaded.files[str(workload.trace)] = trace.sha256
        if not any(len(table) for table in loaded.tables):
            loaded.clock = Clock.of(trace.header)
    else:
        source = str(workload.model)
        if source.endswith(".json"):
            place = config.folder / source
            loaded.files[source] = checksum(place)
            source = str(place)
        seed = int(streams.generator("workload", name).integers(2**32))
        model = model_of(source, machine)
        trace = generate(
            model, days=workload.days, load=load, processors=machine, seed=seed
        ).trace()
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
    """Convert times on nodes of a speed to times on nodes of speed 1, rounded half up."""
    if speed != 1:
        for column in (Column.RUN_TIME, Column.REQUESTED_TIME):
            times = table.column(column)
            times[:] = np.where(times > 0, np.maximum(round_half_up(times * speed), 1), times)


def _sites(
    config: GridConfig, names: list[str], joined: Joined, work: Work, streams: Streams
) -> list[str]:
    """Return the cluster, or the grid, that each user submits to."""
    jobs = joined.jobs
    table = np.zeros(int(jobs.user.max(initial=0)) + 2, np.int64)
    table[jobs.user] = joined.table
    sites = []
    for number in work.sessions.users.tolist():
        place = int(table[number])
        name, own = names[place], number - int(joined.first_user[place])
        share = 0.0 if name == GRID else config.clusters[name].grid_share
        # Each user has its own random stream: additional users change no other user's choice.
        goes = share > 0 and streams.generator("grid", name, own).random() < share
        sites.append(GRID if goes else name)
    return sites


def _with_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of a grid file with the names of files made paths."""
    found = dict(values)

    def named(workload: Any) -> Any:
        if not isinstance(workload, dict):
            return workload
        paths = {
            name: str((map_file(text, folder) if name == "map" else folder / text).absolute())
            for name in NAMING
            if isinstance(text := workload.get(name), str)
            and (name != "model" or text.endswith(".json"))
            and not is_collected(text)
        }
        if isinstance(workload.get("scheduler"), str):
            paths["scheduler"] = located(workload["scheduler"], folder.absolute())
        return {**workload, **paths}

    if isinstance(found.get("clusters"), dict):
        found["clusters"] = {name: named(site) for name, site in found["clusters"].items()}
    if "grid" in found:
        found["grid"] = named(found["grid"])
    if isinstance(found.get("platform"), str):
        found["platform"] = str((folder / found["platform"]).absolute())
    if isinstance(found.get("users"), str):
        found["users"] = located(found["users"], folder.absolute())
    return found
