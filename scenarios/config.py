"""What a replay is made of: typed, with its defaults, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agents.mixture import Mixture
from agents.sessions import SessionDefinition
from environment.errors import QuantityError
from environment.estimates import Estimates, parse_estimates
from environment.mistakes import first_mistake
from environment.predictors.base import Predictor
from environment.quantities import parse_factor, parse_processors
from environment.schedulers.base import Scheduler
from environment.schedulers.names import SCHEDULER_NAMES, parse_scheduler
from environment.trace import Conversion
from scenarios.platform_config import PlatformConfig, read_platform
from scenarios.population_config import PopulationConfig, read_population

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
#: ``agents.population.add_users``. Not imported here: looking at options needs no simulation.
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
