"""The kind of scenario ``resample``: a population like that of a trace, open at both ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from scenarios.resample_config import ResampleConfig, configure_resample
from scenarios.scenario_base import Scenario, Watch

if TYPE_CHECKING:
    from analysis.run import Run
    from environment.trace import Trace


def _same(name: str) -> Any:
    """Return default and meaning of a field of the configuration."""
    field = ResampleConfig.model_fields[name]
    return Field(field.default, description=field.description)


def _table(name: str) -> Any:
    """Return the same of a field that is a table."""
    return Field({}, description=ResampleConfig.model_fields[name].description)


class ResampleScenario(Scenario):
    """Let a population resampled from a trace work on a cluster."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("trace",)

    kind: Literal["resample"] = Field(description="a population like that of a trace")
    trace: str = Field(description="trace in the Standard Workload Format, or .gz")
    weeks: int | None = _same("weeks")
    users: str = _same("users")
    doing: str = _same("doing")
    satisfaction: str = _same("satisfaction")
    consequences: dict[str, Any] = _table("consequences")
    arrivals: Literal["poisson", "even"] = _same("arrivals")
    full: bool = _same("full")
    pool: dict[str, Any] = _table("pool")
    sessions: str = _same("sessions")
    unit: Literal["sessions", "batches"] = _same("unit")
    scheduler: str = _same("scheduler")
    estimates: str = _same("estimates")
    nodes: str = _same("nodes")
    speed: str = _same("speed")
    requested: str = _same("requested")
    processors: Literal["requested", "allocated"] = _same("processors")
    overrun: Literal["keep", "kill"] = _same("overrun")
    warmup: int = _same("warmup")
    strict: bool = _same("strict")

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
        return {"trace": self.folder / self.trace}

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, those of tables among them."""
        plain = self.config().model_dump(mode="json", exclude_none=True)
        tables = {name: plain[name] for name in ("consequences", "pool")}
        return {**super().completed(), **tables}

    def prepare(self) -> Trace:
        """Read the trace."""
        from environment.swf import read_swf

        return read_swf(self.folder / self.trace)

    def run(self, prepared: Trace, progress: Watch | None = None) -> Run:
        """Draw the population and let it work."""
        from scenarios.resample import resample

        return resample(prepared, self.config(), progress=progress)

    def label(self) -> str:
        """Return the name of the trace, what users do, and what differs from the defaults."""
        return f"{Path(self.trace).name}, {self.config().label()}"
