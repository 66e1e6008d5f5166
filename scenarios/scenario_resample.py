"""The kind of scenario ``resample``: a population like that of a trace, open at both ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from scenarios.resample_config import ResampleConfig, configure_resample
from scenarios.scenario_base import Scenario, same

if TYPE_CHECKING:
    from agents.decisions import DecisionLog
    from environment.trace import Trace
    from scenarios.staged import Staged


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
        from environment.formats.registry import read_trace

        return read_trace(self.trace_file(self.trace))

    def stage(
        self, prepared: Trace, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Draw the population."""
        from scenarios.resample import stage_resample

        return stage_resample(prepared, self.config(), log=log)

    def label(self) -> str:
        """Return the name of the trace, what users do, and what differs from the defaults."""
        return f"{Path(self.trace).name}, {self.config().label()}"
