"""What a resampled population is made of: typed, with its defaults, checked before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agents.consequences import FORMULA_NAMES, Consequences
from agents.openness import Openness, PoolRules
from agents.sessions import SessionDefinition
from environment.errors import QuantityError
from environment.estimates import parse_estimates
from environment.mistakes import first_mistake
from environment.quantities import parse_factor, parse_processors
from environment.schedulers.names import SCHEDULER_NAMES, parse_scheduler
from environment.trace import Conversion

if TYPE_CHECKING:
    from agents.components import Pool

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
