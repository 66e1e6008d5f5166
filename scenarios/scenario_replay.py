"""The kind of scenario ``replay``: a recorded trace, once, with users who react."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from environment.errors import QuantityError
from environment.mistakes import first_mistake
from environment.requested import RequestedTimes
from scenarios.config import ReplayConfig, configure
from scenarios.platform_config import PlatformConfig
from scenarios.population_config import PopulationConfig
from scenarios.scenario_base import Scenario, checksum, same

if TYPE_CHECKING:
    from agents.decisions import DecisionLog
    from environment.trace import Trace
    from scenarios.replay import Prepared
    from scenarios.staged import Staged

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
        from environment.formats.registry import read_trace
        from scenarios.replay import prepare

        trace = read_trace(self.trace_file(self.trace))
        if self._draws_requests:
            return trace
        return prepare(trace, self.config(), follows=self.users != "rigid")

    def stage(
        self, prepared: Trace | Prepared, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Set up the replay."""
        from scenarios.replay import Prepared, stage_replay

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
