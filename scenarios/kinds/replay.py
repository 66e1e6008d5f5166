"""Replay a trace: one configuration, one run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.populations.casting import Casting, units_after
from hpcrowd.agents.populations.mixture import Mixture
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.accounts.platform import accounts_of, attempts_of
from hpcrowd.analysis.accounts.reactions import notes_of
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, first_mistake
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import parse_factor, parse_processors
from hpcrowd.environment.schedulers.base import Scheduler
from hpcrowd.environment.schedulers.estimates import Estimates
from hpcrowd.environment.schedulers.names import SCHEDULER_NAMES, parse_scheduler
from hpcrowd.environment.schedulers.predictors.base import Predictor, parse_estimates
from hpcrowd.environment.simulation import RESUBMIT_AFTER, Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.requested_times import RequestedTimes
from hpcrowd.environment.traces.trace import Conversion, Conversions, Trace, jobs_from_trace
from hpcrowd.scenarios.kinds.base import Scenario, checksum, same
from hpcrowd.scenarios.kinds.platform_files import PlatformConfig, read_platform
from hpcrowd.scenarios.kinds.population_files import PopulationConfig, read_population
from hpcrowd.scenarios.kinds.staged import Staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.environment.platform.changes import Change


#: Behaviours by the names of ``agents.presets.PRESETS``, and what users keep, in a few words.
BEHAVIOURS = {
    "rigid": "recorded submissions",
    "think-time": "think times between sessions",
    "think-time-windows": "the same, and their weekly rhythm",
    "adjusted": "think times between batches, order of batches",
    "distribution": "order of batches; hours are drawn",
    "fluid": "order of batches, recorded hours",
    "linear": "order of batches; think by response time",
    "linear-windows": "the same, and their weekly rhythm",
    "shmueli-feitelson": "no submission: work is made up of recorded jobs",
    "generative": "days of presence: work is made up of recorded jobs",
}

#: Makes a behaviour from the recorded work, such as a subclass of ThinkTime; see
#: ``agents.populations.population.add_users``. Not imported here: looking at options needs no
#: simulation.
BehaviourFactory = Callable[..., Any]

Users = str | PopulationConfig | Mixture | BehaviourFactory


class ReplayConfig(BaseModel):
    """Everything that one replay is made of, apart from the trace."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    users: Users = Field(
        "think-time",
        description=f"how users behave: {', '.join(BEHAVIOURS)}; or a population from FILE.toml. "
        "`hpcrowd behaviours` tells what each does",
    )
    sessions: str = Field(
        "arrival:60m",
        description="how sessions are told apart: arrival:60m, arrival:job, last:20m, max:20m, or "
        "preceding (fields 17 and 18)",
    )
    scheduler: str | Scheduler = Field(
        "easy",
        description=f"{', '.join(SCHEDULER_NAMES)} (each job waits as long as recorded); with "
        "options as name:option=value,option=value. `hpcrowd policies` tells what each does",
    )
    estimates: str | Estimates | Predictor = Field(
        "requested",
        description="what the scheduler believes of run times: requested, exact, a multiple of the "
        "requested time such as 1.5x, or a predictor as in `hpcrowd predict`: last-two, nearest, "
        "history:SDSC04, or a FILE.json",
    )
    nodes: str = Field("1x", description="processors: a number, or a multiple of the trace's")
    speed: str = Field("1x", description="speed of the nodes; run times are divided by it")
    requested: str = Field(
        "given",
        description="requested times: given; at-least:2x (at least twice the run time); or "
        "tsafrir:18h or tsafrir:fitted (made up where there is none, +all: for every job)",
    )
    processors: Literal["requested", "allocated"] = Field(
        "requested", description="which processors field of the trace counts"
    )
    overrun: Literal["keep", "kill"] = Field(
        "keep", description="jobs that outrun their requested time go on, or are killed"
    )
    platform: PlatformConfig | None = Field(
        None, description="FILE.toml with what changes of the platform during the run"
    )
    seed: int = Field(0, ge=0, description="seed of everything random")
    strict: bool = Field(False, description="repairs and drops of jobs are errors")

    @field_validator("users")
    @classmethod
    def _known_users(cls, users: Users) -> Users:
        if isinstance(users, str) and users not in BEHAVIOURS:
            raise ValueError(f"not known; choose {', '.join(BEHAVIOURS)}")
        return users

    @field_validator("scheduler")
    @classmethod
    def _known_scheduler(cls, scheduler: str | Scheduler) -> str | Scheduler:
        if isinstance(scheduler, str):
            parse_scheduler(scheduler)
        return scheduler

    @field_validator("estimates")
    @classmethod
    def _known_estimates(cls, estimates: str | Estimates | Predictor) -> Any:
        if isinstance(estimates, str):
            parse_estimates(estimates)
        elif isinstance(estimates, Predictor):
            estimates.check_ready()
        return estimates

    @model_validator(mode="after")
    def _readable_quantities(self) -> Self:
        """Read every quantity once, so that a mistake is told before anything runs."""
        SessionDefinition.parse(self.sessions)
        parse_processors(self.nodes, original=1_000_000)
        self.conversion()
        return self

    def conversion(self) -> Conversion:
        """Return how the trace is to be read."""
        return Conversion(
            processors=self.processors,
            requested=self.requested,
            speed=parse_factor(self.speed, "speed"),
            seed=self.seed,
        )

    def plain(self) -> dict[str, Any]:
        """Return the configuration fit for JSON; own behaviours and schedulers by their names."""
        values = self.model_dump()
        if isinstance(self.users, PopulationConfig):
            values["users"] = self.users.model_dump(mode="json", exclude_none=True)
        elif not isinstance(self.users, str):
            values["users"] = getattr(self.users, "__qualname__", repr(self.users))
        if not isinstance(self.scheduler, str):
            values["scheduler"] = str(self.scheduler)
        settings: dict[str, Any] = getattr(self.estimates, "to_json", dict)()
        name = str(self.estimates)
        values["estimates"] = {"name": name, **settings} if settings else name
        if self.platform is not None:
            values["platform"] = self.platform.model_dump(mode="json", exclude_none=True)
        return values

    def label(self) -> str:
        """Return a short name: users, scheduler, and what differs from the defaults."""
        plain, words = self.plain(), []
        for name, field in type(self).model_fields.items():
            if name in ("users", "scheduler"):
                named = isinstance(plain[name], dict)
                words.append(plain[name]["name"] if named else str(plain[name]))
            elif plain[name] != field.default and name != "strict":
                value = plain[name]
                words.append(f"{name} {value['name'] if isinstance(value, dict) else value}")
        return ", ".join(words)


def configure(**choices: Any) -> ReplayConfig:
    """Return a configuration; a wrong choice is told in one line.

    Raises
    ------
    QuantityError
        Naming the choice, its value and the rule.
    """
    users = choices.get("users")
    if isinstance(users, str) and users.endswith(".toml"):
        choices["users"] = read_population(users)
    if isinstance(platform := choices.get("platform"), str):
        choices["platform"] = read_platform(platform)
    try:
        return ReplayConfig(**choices)
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None


@dataclass
class Prepared:
    """A trace that is ready to be replayed: what runs of different speeds and seeds may share.

    Attributes
    ----------
    trace
        What was recorded.
    converted
        Its jobs, on nodes of the recorded speed.
    record
        The sessions of all users.
    """

    trace: Trace
    converted: Conversions
    record: Work


def prepare(trace: Trace, config: ReplayConfig, *, follows: bool = False) -> Prepared:
    """Convert a trace and find its sessions.

    Parameters
    ----------
    trace
        What was recorded.
    config
        Its ``processors``, ``requested``, ``sessions`` and ``strict`` count, and its ``seed`` where
        requested times are drawn.
    follows
        Find also what waits for what, which is found when first asked for otherwise.

    Raises
    ------
    HpcrowdError
        When the trace cannot be replayed so.
    """
    conversion = replace(config.conversion(), speed=1.0)
    converted = jobs_from_trace(trace, conversion, strict=config.strict)
    definition = SessionDefinition.parse(config.sessions)
    record = Work.recorded(trace, converted, definition, strict=config.strict)
    if follows:
        _ = record.dependencies, record.by_session
        if record.chains is None:
            _ = record.by_batch
    return Prepared(trace, converted, record)


def replay(
    trace: Trace,
    config: ReplayConfig | None = None,
    *,
    compiled: bool = False,
    progress: Callable[[Simulation], Any] | None = None,
    prepared: Prepared | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Replay a trace and return the run.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration; or give its fields as ``choices``.
    compiled
        Let the engine follow think times by itself; same schedule, but users are not told.
    progress
        Called now and then with the simulation.
    prepared
        What :func:`prepare` made of this trace with these settings; it is used up. None prepares.
    log
        Where users note what they decide; the schedule is the same. Users are called then, also
        with ``compiled``.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from hpcrowd.environment import parse_swf
    >>> trace = parse_swf("1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    >>> replay(trace, scheduler="fcfs", nodes="4").metrics["jobs_completed"]
    1
    """
    config = config or configure(**choices)
    return stage_replay(trace, config, compiled=compiled, prepared=prepared, log=log).run(progress)


def stage_replay(
    trace: Trace,
    config: ReplayConfig,
    *,
    compiled: bool = False,
    prepared: Prepared | None = None,
    log: DecisionLog | None = None,
) -> Staged:
    """Return the replay of a trace before it begins; parameters and errors as :func:`replay`."""
    population = config.users if isinstance(config.users, PopulationConfig) else None
    began = time.perf_counter()
    prepared = prepared or prepare(trace, config)
    converted, record = prepared.converted, prepared.record
    recorded = record.jobs.recorded_end - record.jobs.recorded_start
    record.jobs.run_time[:] = config.conversion().run_time(recorded)
    clock = Clock.of(trace.header)
    processors = parse_processors(config.nodes, trace.processors if "x" in config.nodes else 1)
    behaviour: Any = population.mixture() if population else config.users
    casting = Casting.of(record, behaviour, Streams(config.seed))
    jobs, work = casting.jobs, casting.replayed
    others = population.others() if population else {}
    platform: list[Change] = []
    if (changes := config.platform) is not None:
        sizes = {name: spec.processors for name, spec in others.items()}
        changes.check(clock, {"home": processors} | sizes)
        platform = changes.of(clock)
        others = {
            name: replace(spec, platform=changes.of(clock, name)) for name, spec in others.items()
        }
    model = Simulation(
        jobs,
        processors,
        config.scheduler,
        estimates=config.estimates,
        overrun=config.overrun,
        clock=clock,
        seed=config.seed,
        others=others or None,
        platform=platform,
        resubmit_after=RESUBMIT_AFTER if changes is None else changes.resubmit_after,
    )
    users, generated = casting.join(model, compiled=compiled, log=log)

    def finish() -> Run:
        return Run(
            jobs=jobs,
            processors=sum(cluster.processors for cluster in model.clusters.values()),
            label=config.label(),
            configuration=_configuration(config),
            clock=clock,
            trace=trace,
            source_row=_source_row(converted.source_row[casting.rows], len(jobs)),
            work=work,
            after=units_after(model, generated) if generated else None,
            waits=[] if work is None else units_waited_for(work, users),
            reactions=notes_of(users),
            platform=accounts_of(model),
            attempts=attempts_of(model),
            repaired=converted.repaired,
            dropped=converted.dropped,
        )

    everybody = [*users, *generated]
    return Staged(model, everybody, finish, work, log, time.perf_counter() - began)


def _source_row(replayed: Int64s, jobs: int) -> Int64s:
    """Return the places of the replayed jobs in the trace, then -1 for those of a user's own."""
    return np.concatenate([replayed, np.full(jobs - len(replayed), UNKNOWN)])


def _configuration(config: ReplayConfig) -> dict[str, Any]:
    """Return all that is needed to run it again, fit for JSON."""
    found = {"kind": "replay", **config.plain()}
    files = config.users.files() if isinstance(config.users, PopulationConfig) else {}
    if config.platform is not None and config.platform.file:
        files[config.platform.file] = config.platform.sha256
    if isinstance(config.estimates, str) and config.estimates.endswith(".json"):
        files[config.estimates] = sha256(Path(config.estimates).read_bytes()).hexdigest()
    if files:
        found["files_sha256"] = files
    return found


def units_waited_for(
    work: Work, users: Sequence[ReplayUser]
) -> list[tuple[Units, NDArray[np.bool_]]]:
    """Return the units of users who waited for the units before, each with which of them did."""
    waiting: dict[int, tuple[Units, NDArray[np.bool_]]] = {}
    for user in users:
        behaviour = user.behaviour
        if behaviour.when.reacts if isinstance(behaviour, Composed) else behaviour.reacts:
            units = behaviour.units or work.by_session
            _, which = waiting.setdefault(id(units), (units, np.zeros(len(units), bool)))
            which[user.units.start : user.units.stop] = True
    return list(waiting.values())


_QUEUE_FILE = re.compile(r"(?<=file=)[^,]+")


class ReplayScenario(Scenario):
    """Replay a trace once, with users who react to what the cluster does to them."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = (
        "trace", "processors", "requested", "sessions", "strict",
    )  # fmt: skip

    kind: Literal["replay"] = Field(description="a recorded trace, with users who react")
    trace: str = Field(description="trace in any format, or `archive:NAME`")
    users: str | dict[str, Any] = same(ReplayConfig, "users")
    sessions: str = same(ReplayConfig, "sessions")
    scheduler: str = same(ReplayConfig, "scheduler")
    estimates: str = same(ReplayConfig, "estimates")
    nodes: str = same(ReplayConfig, "nodes")
    speed: str = same(ReplayConfig, "speed")
    requested: str = same(ReplayConfig, "requested")
    processors: Literal["requested", "allocated"] = same(ReplayConfig, "processors")
    overrun: Literal["keep", "kill"] = same(ReplayConfig, "overrun")
    platform: str | dict[str, Any] | None = same(ReplayConfig, "platform")
    strict: bool = same(ReplayConfig, "strict")

    @field_validator("users", "sessions", "scheduler", "estimates", "nodes", "speed", "requested",
                     "platform")  # fmt: skip
    @classmethod
    def _makes_sense(cls, value: Any, info: Any) -> Any:
        """Check each setting by itself, so that a mistake is told with its name."""
        if value is not None:
            configure(**_resolved({info.field_name: value}, info.data.get("folder", Path())))
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        self.config()
        return self

    def config(self) -> ReplayConfig:
        """Return the configuration of the replay; files by their paths.

        Raises
        ------
        QuantityError
            When something in it, or in a file that it names, is wrong.
        """
        names = ReplayConfig.model_fields
        return configure(**_resolved({name: getattr(self, name) for name in names}, self.folder))

    def files(self) -> dict[str, Path]:
        """Return the trace, and files of users, platform, estimates and queues."""
        found = {"trace": self.trace_file(self.trace)}
        for name in ("users", "platform"):
            value = getattr(self, name)
            if isinstance(value, str) and value.endswith(".toml"):
                found[name] = self.folder / value
        if self.estimates.endswith(".json"):
            found["estimates"] = self.folder / self.estimates
        return found

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value; populations and platforms with theirs."""
        values = super().completed()
        config = self.config()
        values["scheduler"] = _queues_in(self.scheduler, self.folder.absolute())
        for name, part in (("users", config.users), ("platform", config.platform)):
            if isinstance(values.get(name), dict) and isinstance(
                part, PopulationConfig | PlatformConfig
            ):
                values[name] = part.model_dump(mode="json", exclude_none=True)
        return values

    def identity(self) -> dict[str, Any]:
        """Return what decides about the results: settings, and contents of all files."""
        found = super().identity()
        population = self.config().users
        if isinstance(population, PopulationConfig):
            found["files_of_users"] = population.files()
        queues = _QUEUE_FILE.search(self.scheduler)
        if queues:
            path = self.folder / queues[0]
            found["scheduler"] = _QUEUE_FILE.sub(checksum(path), self.scheduler)
        return found

    def sharing(self) -> dict[str, Any]:
        """Return what decides about the converted trace, or the trace where each run converts."""
        found = super().sharing()
        if self._draws_requests:
            return {"kind": found["kind"], "trace": found["trace"]}
        return found | {"follows": self.users != "rigid"}

    @property
    def _draws_requests(self) -> bool:
        """Whether requested times are drawn, so that no two seeds have the same jobs."""
        rule = RequestedTimes.parse(self.requested)
        return rule.fitted or rule.model is not None

    def prepare(self) -> Trace | Prepared:
        """Read the trace; convert it and find its sessions where that is the same for all seeds."""
        from hpcrowd.environment.traces.formats.registry import read_trace

        trace = read_trace(self.trace_file(self.trace))
        if self._draws_requests:
            return trace
        return prepare(trace, self.config(), follows=self.users != "rigid")

    def stage(
        self, prepared: Trace | Prepared, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Set up the replay."""

        ready = prepared if isinstance(prepared, Prepared) else None
        return stage_replay(
            prepared.trace if isinstance(prepared, Prepared) else prepared,
            self.config(),
            # The same schedule as with users that are called one by one, at a fraction of the time.
            compiled=self.users == "think-time" and not watched,
            prepared=ready,
            log=log,
        )

    def label(self) -> str:
        """Return the name of the trace and what differs from the defaults."""
        return f"{Path(self.trace).name}, {self.config().label()}"


def _resolved(choices: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return choices for :func:`configure`: files by their paths, tables as what they describe."""
    found = dict(choices)
    users, platform = found.get("users"), found.get("platform")
    if isinstance(users, str) and users.endswith(".toml"):
        found["users"] = str(folder / users)
    elif isinstance(users, dict):
        found["users"] = _table(PopulationConfig, {**users, "folder": folder})
    if isinstance(platform, str):
        found["platform"] = str(folder / platform)
    elif isinstance(platform, dict):
        found["platform"] = _table(PlatformConfig, platform)
    if str(found.get("estimates", "")).endswith(".json"):
        found["estimates"] = str(folder / found["estimates"])
    if "scheduler" in found:
        found["scheduler"] = _queues_in(found["scheduler"], folder)
    return found


def _table[Config: (PopulationConfig, PlatformConfig)](
    config: type[Config], values: dict[str, Any]
) -> Config:
    try:
        return config(**values)
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None


def _queues_in(scheduler: str, folder: Path) -> str:
    """Return the text of a scheduler with the path of its table of queues, if it has one."""
    return _QUEUE_FILE.sub(lambda found: str(folder / found[0]), scheduler)
