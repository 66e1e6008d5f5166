"""Replay a trace: one configuration, one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.population import BEHAVIOURS, Work, add_users
from agents.sessions import SessionDefinition
from agents.user import Behaviour, ReplayUser
from analysis.run import Run
from environment.clock import Clock
from environment.cluster import SCHEDULER_NAMES
from environment.errors import QuantityError
from environment.quantities import parse_factor, parse_processors
from environment.schedulers import Scheduler
from environment.simulation import Simulation
from environment.trace import Conversion, Trace, jobs_from_trace

#: Makes a behaviour from the recorded work, such as a subclass of ThinkTime.
BehaviourFactory = Callable[[Work], Behaviour[ReplayUser]]


class ReplayConfig(BaseModel):
    """Everything that one replay is made of, apart from the trace."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    users: str | BehaviourFactory = Field(
        "think-time", description="rigid: recorded submissions; think-time: recorded think times"
    )
    sessions: str = Field(
        "arrival:60m",
        description="how sessions are told apart: arrival:60m, arrival:job, last:20m, max:20m",
    )
    scheduler: str | Scheduler = Field(
        "easy", description="fcfs, easy, or recorded (each job waits as long as recorded)"
    )
    nodes: str = Field("1x", description="processors: a number, or a multiple of the trace's")
    speed: str = Field("1x", description="speed of the nodes; run times are divided by it")
    requested: str = Field(
        "given",
        description="requested times: given, or at-least:2x (at least twice the run time)",
    )
    processors: Literal["requested", "allocated"] = Field(
        "requested", description="which processors field of the trace counts"
    )
    overrun: Literal["keep", "kill"] = Field(
        "keep", description="jobs that outrun their requested time go on, or are killed"
    )
    seed: int = Field(0, ge=0, description="seed of everything random")
    strict: bool = Field(False, description="repairs and drops of jobs are errors")

    @field_validator("users")
    @classmethod
    def _known_users(cls, users: str | BehaviourFactory) -> str | BehaviourFactory:
        if isinstance(users, str) and users not in BEHAVIOURS:
            raise ValueError(f"not known; choose {' or '.join(BEHAVIOURS)}")
        return users

    @field_validator("scheduler")
    @classmethod
    def _known_scheduler(cls, scheduler: str | Scheduler) -> str | Scheduler:
        if isinstance(scheduler, str) and scheduler not in SCHEDULER_NAMES:
            raise ValueError(f"not known; choose {', '.join(SCHEDULER_NAMES)}")
        return scheduler

    def conversion(self) -> Conversion:
        """Return how the trace is to be read."""
        return Conversion(
            processors=self.processors,
            requested=self.requested,
            speed=parse_factor(self.speed, "speed"),
        )

    def plain(self) -> dict[str, Any]:
        """Return the configuration fit for JSON; own behaviours and schedulers by their names."""
        values = self.model_dump()
        if not isinstance(self.users, str):
            values["users"] = getattr(self.users, "__qualname__", repr(self.users))
        if not isinstance(self.scheduler, str):
            values["scheduler"] = self.scheduler.name
        return values

    def label(self) -> str:
        """Return a short name: users, scheduler, and what differs from the defaults."""
        plain, words = self.plain(), []
        for name, field in type(self).model_fields.items():
            if name in ("users", "scheduler"):
                words.append(str(plain[name]))
            elif plain[name] != field.default and name != "strict":
                words.append(f"{name} {plain[name]}")
        return ", ".join(words)


def configure(**choices: Any) -> ReplayConfig:
    """Return a configuration; a wrong choice is told in one line.

    Raises
    ------
    QuantityError
        Naming the choice, its value and the rule.
    """
    try:
        return ReplayConfig(**choices)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1])
        rule = first["msg"].removeprefix("Value error, ")
        raise QuantityError(f"{name} {first['input']!r}: {rule}") from None


def replay(
    trace: Trace,
    config: ReplayConfig | None = None,
    *,
    compiled: bool = False,
    progress: Callable[[Simulation], Any] | None = None,
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

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from environment import parse_swf
    >>> trace = parse_swf("1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1")
    >>> replay(trace, scheduler="fcfs", nodes="4").metrics["jobs_completed"]
    1
    """
    config = config or configure(**choices)
    began = time.perf_counter()
    converted = jobs_from_trace(trace, config.conversion(), strict=config.strict)
    jobs = converted.jobs
    work = Work.of(jobs, SessionDefinition.parse(config.sessions))
    clock = Clock.of(trace.header)
    model = Simulation(
        jobs,
        parse_processors(config.nodes, trace.processors if "x" in config.nodes else 1),
        config.scheduler,
        overrun=config.overrun,
        clock=clock,
        seed=config.seed,
    )
    users = add_users(model, work, config.users, compiled=compiled)
    prepared = time.perf_counter()
    model.run(progress=progress)
    ended = time.perf_counter()
    return Run(
        jobs=jobs,
        processors=model.cluster.processors,
        label=config.label(),
        configuration={"kind": "replay", **config.plain()},
        clock=clock,
        trace=trace,
        source_row=converted.source_row,
        work=work,
        reacted=users[0].behaviour.reacts,
        repaired=converted.repaired,
        dropped=converted.dropped,
        wall_s={"prepare": round(prepared - began, 3), "simulate": round(ended - prepared, 3)},
    )
