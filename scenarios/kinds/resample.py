"""Run a population that is resampled from a trace: one configuration, one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.populations.casting import units_after
from hpcrowd.agents.populations.component_users import AsRecorded, ClosedLoop
from hpcrowd.agents.populations.components import Pool
from hpcrowd.agents.populations.made_up import ComponentWork, GroupWork, Living, SiteWork
from hpcrowd.agents.populations.openness import FORMULA_NAMES, Consequences, Openness, PoolRules
from hpcrowd.agents.populations.satisfaction import Formula, formula_of
from hpcrowd.agents.populations.semi_open import add_members, draw_roster
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.analysis.accounts.population import population_accounts
from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import DAY, WEEK, Clock
from hpcrowd.environment.errors import QuantityError, first_mistake
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.quantities import parse_factor, parse_processors
from hpcrowd.environment.schedulers.names import SCHEDULER_NAMES, parse_scheduler
from hpcrowd.environment.schedulers.predictors.base import parse_estimates
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Conversion, Conversions, Trace, jobs_from_trace
from hpcrowd.scenarios.kinds.base import Scenario, same
from hpcrowd.scenarios.kinds.staged import Staged

if TYPE_CHECKING:
    from hpcrowd.analysis.models.model import WorkloadModel


#: What users do while they are there, in a few words.
DOING = {
    "rigid": "submit at the recorded times, moved by whole weeks",
    "think-time": "wait for what they waited for, and think as long",
    "think-time-windows": "the same, and keep their weekly rhythm",
    "mugm": "draw batches of their group (mixed user group model)",
    "shmueli-feitelson": "go on with a session, or not, by the response",
    "generative": "the same, with days and habits of their own",
}

#: Those who make up their work, so that they are used to nothing on record.
MADE_UP = ("mugm", "shmueli-feitelson", "generative")

#: No formula: users take everything as it comes.
NONE = "none"


class ResampleConfig(BaseModel):
    """Everything that a run of a resampled population is made of, apart from the trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weeks: int | None = Field(None, ge=1, description="how long users submit; as the log")
    users: str = Field(
        "1x", description="a multiple of the log's users, or how many a log as long would have"
    )
    doing: Literal[
        "rigid", "think-time", "think-time-windows", "mugm", "shmueli-feitelson", "generative"
    ] = Field("think-time-windows", description=f"what users do: {', '.join(DOING)}")
    satisfaction: str = Field(
        NONE,
        description="what users mind: none; habit (responses against those on record), requested "
        "(waits against requested times), alea (waits that Alea takes as acceptable)",
    )
    consequences: Consequences = Field(
        Consequences(), description="what users make of their satisfaction"
    )
    arrivals: Literal["poisson", "even"] = Field(
        "poisson", description="temporary users per week: drawn around a mean, or as many each week"
    )
    full: bool = Field(
        True, description="who came before the first week and is not done is there at first"
    )
    pool: PoolRules = Field(PoolRules(), description="which users come into the pool, and as what")
    sessions: str = Field("arrival:60m", description="how sessions are told apart")
    unit: Literal["sessions", "batches"] = Field(
        "sessions", description="what users submit at once and wait for"
    )
    scheduler: str = Field("easy", description=f"policy: {', '.join(SCHEDULER_NAMES)}")
    estimates: str = Field("requested", description="what the scheduler believes of run times")
    nodes: str = Field("1x", description="processors: a number, or a multiple of the trace's")
    speed: str = Field("1x", description="speed of the nodes; run times are divided by it")
    requested: str = Field("given", description="requested times, as for replays")
    processors: Literal["requested", "allocated"] = Field(
        "requested", description="which processors field of the trace counts"
    )
    overrun: Literal["keep", "kill"] = Field(
        "keep", description="jobs that outrun their requested time go on, or are killed"
    )
    warmup: int = Field(4, ge=0, description="first weeks that throughput leaves out")
    seed: int = Field(0, ge=0, description="seed of everything random")
    strict: bool = Field(False, description="repairs and drops of jobs are errors")

    @field_validator("satisfaction")
    @classmethod
    def _known_satisfaction(cls, name: str) -> str:
        if name != NONE and name not in FORMULA_NAMES:
            raise ValueError(f"not known; choose {', '.join((NONE, *FORMULA_NAMES))}")
        return name

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """Read every quantity once, and refuse what cannot be, before anything runs."""
        SessionDefinition.parse(self.sessions)
        parse_scheduler(self.scheduler)
        parse_estimates(self.estimates)
        parse_processors(self.nodes, original=1_000_000)
        self.conversion()
        self._users()
        if self.satisfaction != NONE and self.doing == "rigid":
            raise QuantityError(
                f"satisfaction {self.satisfaction}: rigid users mind nothing; choose think-time, "
                "think-time-windows, or satisfaction none"
            )
        if self.satisfaction == "habit" and self.doing in MADE_UP:
            raise QuantityError(
                f"satisfaction habit: {self.doing} users make up their work, there are no "
                "responses that they are used to; choose requested or alea"
            )
        if self.scheduler == "recorded" and self.doing in MADE_UP:
            raise QuantityError(
                f"scheduler recorded: there are no recorded waits of {self.doing} users; choose "
                "another, for example easy"
            )
        if self.weeks is not None and self.warmup >= self.weeks:
            raise QuantityError(
                f"warmup {self.warmup} weeks: less than the {self.weeks} of the run"
            )
        return self

    def _users(self) -> tuple[float, bool]:
        """Return how many users, and whether that is a multiple of the log's."""
        text = self.users.strip()
        if text.isascii() and text.isdigit():
            if int(text) < 1:
                raise QuantityError(f"users {text!r}: at least 1, or a multiple such as 1.5x")
            return float(text), False
        return parse_factor(text, "users"), True

    def openness(self, pool: Pool) -> Openness:
        """Return how many users there are and how they come."""
        count, multiple = self._users()
        factor = count if multiple else count / len(pool.components)
        return Openness(factor, self.arrivals, self.full)

    def conversion(self) -> Conversion:
        """Return how the trace is to be read."""
        return Conversion(
            processors=self.processors,
            requested=self.requested,
            speed=parse_factor(self.speed, "speed"),
            seed=self.seed,
        )

    def plain(self) -> dict[str, Any]:
        """Return the configuration fit for JSON."""
        return self.model_dump(mode="json")

    def label(self) -> str:
        """Return a short name: what users do and mind, scheduler, what differs from defaults."""
        plain, words = self.plain(), [f"resampled {self.doing}"]
        if self.satisfaction != NONE:
            words[0] += f" minding {self.satisfaction}"
        words.append(self.scheduler)
        for name, field in type(self).model_fields.items():
            if name in ("doing", "satisfaction", "scheduler", "strict"):
                continue
            if getattr(self, name) != field.default:
                value = plain[name]
                words.append("other " + name if isinstance(value, dict) else f"{name} {value}")
        return ", ".join(words)


def configure_resample(**choices: Any) -> ResampleConfig:
    """Return a configuration; a wrong choice is told in one line.

    Raises
    ------
    QuantityError
        Naming the choice, its value and the rule.
    """
    try:
        return ResampleConfig(**choices)
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None


def resample(
    trace: Trace,
    config: ResampleConfig | None = None,
    *,
    model: WorkloadModel | None = None,
    formula: Formula | None = None,
    progress: Callable[[Simulation], Any] | None = None,
    log: DecisionLog | None = None,
    **choices: Any,
) -> Run:
    """Let a population resampled from a trace work on a cluster, and return the run.

    Second 0 of the run is the Monday, 00:00 local time, at or before the first submission of the
    trace. Recorded times in its table are those of the rigid population: moved by whole weeks.

    Parameters
    ----------
    trace
        What was recorded.
    config
        The configuration; or give its fields as ``choices``.
    model
        For users who do ``mugm``: the model, fitted already; fitted to the trace unless given.
    formula
        How satisfied users are, instead of one that has a name.
    progress
        Called now and then with the simulation.
    log
        Where users note what they decide, and when they come and go.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.
    """
    config = config or configure_resample(**choices)
    return stage_resample(trace, config, model=model, formula=formula, log=log).run(progress)


def stage_resample(
    trace: Trace,
    config: ResampleConfig,
    *,
    model: WorkloadModel | None = None,
    formula: Formula | None = None,
    log: DecisionLog | None = None,
) -> Staged:
    """Return a resampled population before it begins; parameters and errors as :func:`resample`."""
    began = time.perf_counter()
    own = {} if formula is None else {"formula": getattr(formula, "__qualname__", repr(formula))}
    if formula is None and config.satisfaction != NONE:
        formula = formula_of(config.satisfaction)
    if formula is not None and config.doing == "rigid":
        raise QuantityError("formula: rigid users mind nothing; choose think-time or another")
    pool, converted = pool_of(trace, config)
    living = _living(trace, pool, config, model)
    people = living.pool
    weeks = pool.weeks if config.weeks is None else config.weeks
    if config.warmup >= weeks:
        raise QuantityError(
            f"warmup {config.warmup} weeks: less than the {weeks} of the run, as long as the log"
        )
    openness = config.openness(people)
    roster = draw_roster(people, weeks, openness, Streams(config.seed))
    size = trace.processors if "x" in config.nodes else 1
    jobs = JobTable()
    simulation = Simulation(
        jobs,
        parse_processors(config.nodes, size),
        config.scheduler,
        estimates=config.estimates,
        overrun=config.overrun,
        clock=people.clock,
        seed=config.seed,
    )
    living.visits.log = log
    users = add_members(
        simulation,
        living,
        roster,
        horizon=people.clock.second_at(people.clock.wall(0) + weeks * WEEK),
        formula=formula,
        consequences=config.consequences,
    )
    if log is not None:
        note_generating(log, users)

    def finish() -> Run:
        return Run(
            jobs=jobs,
            processors=simulation.cluster.processors,
            label=config.label(),
            configuration={
                "kind": "resample",
                **config.plain(),
                **own,
                "trace": Path(trace.source).name,
                "files_sha256": {Path(trace.source).name: trace.sha256},
            },
            clock=people.clock,
            after=None if config.doing == "rigid" else units_after(simulation, users),
            population={
                "pool": pool_accounts(people),
                **population_accounts(
                    jobs,
                    living.visits,
                    people.clock,
                    weeks=weeks,
                    warmup=config.warmup,
                    processors=simulation.cluster.processors,
                    speed=parse_factor(config.speed, "speed"),
                    expected=openness.factor * people.jobs / people.weeks,
                ),
            },
            visits=living.visits.notes,
            repaired=converted.repaired,
            dropped=converted.dropped,
        )

    return Staged(simulation, users, finish, None, log, time.perf_counter() - began)


def pool_of(trace: Trace, config: ResampleConfig) -> tuple[Pool, Conversions]:
    """Return the pool of a trace, and how the trace was read.

    Raises
    ------
    TraceError
        When the trace cannot be used, is too short, or has too few users.
    """
    converted = jobs_from_trace(trace, config.conversion(), strict=config.strict)
    definition = SessionDefinition.parse(config.sessions)
    work = Work.recorded(trace, converted, definition, strict=config.strict)
    name = Path(trace.source).name
    clock = Clock.of(trace.header)
    return Pool.of(work, clock, config.pool, unit=config.unit, source=name), converted


def pool_accounts(pool: Pool) -> dict[str, Any]:
    """Return what is in a pool and what was dropped, fit for JSON."""
    return {
        "weeks": pool.weeks,
        "users_long_term": len(pool.long_term),
        "users_temporary": len(pool.temporary),
        "arrivals_per_week": pool.arrivals_per_week,
        "jobs": pool.jobs,
        "users_dropped": dict(pool.dropped_users),
        "jobs_dropped": dict(pool.dropped_jobs),
    }


def _living(
    trace: Trace, pool: Pool, config: ResampleConfig, model: WorkloadModel | None
) -> Living:
    """Return what users do."""
    if config.doing == "rigid":
        return ComponentWork(pool, AsRecorded())
    if config.doing == "think-time":
        return ComponentWork(pool, ClosedLoop())
    if config.doing == "think-time-windows":
        return ComponentWork(pool, ClosedLoop(pool.profiles))
    if config.doing == "mugm":
        return _group_work(trace, pool, config, model)
    preset = PRESETS[config.doing]
    assert isinstance(preset, SiteModel)
    return SiteWork(pool, preset)


def _group_work(
    trace: Trace, pool: Pool, config: ResampleConfig, model: WorkloadModel | None
) -> GroupWork:
    """Return the groups of a mixed user group model, with the users of a workload it generates."""
    from hpcrowd.analysis.features.workload import Workload
    from hpcrowd.analysis.models.generation import generate
    from hpcrowd.analysis.models.population import population
    from hpcrowd.analysis.models.registry import fit

    model = model or fit("mugm", Workload.from_trace(trace), cycle="weekly")
    made = generate(model, days=pool.weeks * WEEK / DAY, seed=config.seed)
    users = population(made)
    invented = made.trace()
    jobs = jobs_from_trace(invented, config.conversion()).jobs
    work = Work.of(jobs, SessionDefinition.parse(config.sessions))
    people = Pool.of(work, Clock(known=True), config.pool, unit=config.unit, source=model.name)
    speed = parse_factor(config.speed, "speed")
    return GroupWork(people, users.members, {g: b.at_speed(speed) for g, b in users.pools.items()})


class ResampleScenario(Scenario):
    """Let a population resampled from a trace work on a cluster."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("trace",)

    kind: Literal["resample"] = Field(description="a population like that of a trace")
    trace: str = Field(description="trace in any format, or `archive:NAME`")
    weeks: int | None = same(ResampleConfig, "weeks")
    users: str = same(ResampleConfig, "users")
    doing: str = same(ResampleConfig, "doing")
    satisfaction: str = same(ResampleConfig, "satisfaction")
    consequences: dict[str, Any] = same(ResampleConfig, "consequences")
    arrivals: Literal["poisson", "even"] = same(ResampleConfig, "arrivals")
    full: bool = same(ResampleConfig, "full")
    pool: dict[str, Any] = same(ResampleConfig, "pool")
    sessions: str = same(ResampleConfig, "sessions")
    unit: Literal["sessions", "batches"] = same(ResampleConfig, "unit")
    scheduler: str = same(ResampleConfig, "scheduler")
    estimates: str = same(ResampleConfig, "estimates")
    nodes: str = same(ResampleConfig, "nodes")
    speed: str = same(ResampleConfig, "speed")
    requested: str = same(ResampleConfig, "requested")
    processors: Literal["requested", "allocated"] = same(ResampleConfig, "processors")
    overrun: Literal["keep", "kill"] = same(ResampleConfig, "overrun")
    warmup: int = same(ResampleConfig, "warmup")
    strict: bool = same(ResampleConfig, "strict")

    @field_validator("users", "doing", "satisfaction", "consequences", "pool", "sessions",
                     "scheduler", "estimates", "nodes", "speed", "requested")  # fmt: skip
    @classmethod
    def _makes_sense(cls, value: Any, info: Any) -> Any:
        """Check each setting by itself, so that a mistake is told with its name."""
        # Whoever minds something is to react, and who generates has no habit.
        choices = {"doing": "think-time"} if info.field_name == "satisfaction" else {}
        configure_resample(**choices, **{info.field_name: value})
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        self.config()
        return self

    def config(self) -> ResampleConfig:
        """Return the configuration.

        Raises
        ------
        QuantityError
            When settings do not go together.
        """
        return configure_resample(
            **{name: getattr(self, name) for name in ResampleConfig.model_fields}
        )

    def files(self) -> dict[str, Path]:
        """Return the trace."""
        return {"trace": self.trace_file(self.trace)}

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, those of tables among them."""
        plain = self.config().model_dump(mode="json", exclude_none=True)
        tables = {name: plain[name] for name in ("consequences", "pool")}
        return {**super().completed(), **tables}

    def prepare(self) -> Trace:
        """Read the trace."""
        from hpcrowd.environment.traces.formats.registry import read_trace

        return read_trace(self.trace_file(self.trace))

    def stage(
        self, prepared: Trace, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Draw the population."""

        return stage_resample(prepared, self.config(), log=log)

    def label(self) -> str:
        """Return the name of the trace, what users do, and what differs from the defaults."""
        return f"{Path(self.trace).name}, {self.config().label()}"
