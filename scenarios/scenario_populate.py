"""The kind of scenario ``populate``: users made from a workload model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from environment.quantities import parse_processors
from environment.schedulers.names import parse_scheduler
from scenarios.scenario_base import Scenario

if TYPE_CHECKING:
    from agents.decisions import DecisionLog
    from analysis.models.model import WorkloadModel
    from scenarios.staged import Staged


class PopulateScenario(Scenario):
    """Let users made from a workload model work on a cluster, each waiting for its results."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("model", "machine")

    kind: Literal["populate"] = Field(description="users made from a workload model")
    model: str = Field(
        description="file of a fitted model (`hpcrowd fit`), or the name of one with published "
        "parameters (`hpcrowd models`)"
    )
    days: float = Field(28, gt=0, description="days in which users submit")
    load: float | None = Field(
        None, gt=0, description="offered load of the generated workload; the model's unless given"
    )
    machine: int | None = Field(
        None, ge=1, description="processors the model is meant for; its own unless given"
    )
    nodes: str = Field("1x", description="processors of the machine: a number, or a multiple")
    scheduler: str = Field("easy", description="policy, as for replay")
    hears: bool = Field(True, description="false: users act as if each job had started at once")

    @field_validator("nodes", "scheduler")
    @classmethod
    def _makes_sense(cls, value: str, info: Any) -> str:
        if info.field_name == "nodes":
            parse_processors(value, original=1_000_000)
        else:
            parse_scheduler(value)
        return value

    @model_validator(mode="after")
    def _model_is_known(self) -> Self:
        if not self._is_file:
            self.prepare()
        return self

    @property
    def _is_file(self) -> bool:
        return self.model.endswith(".json") or (self.folder / self.model).is_file()

    def files(self) -> dict[str, Path]:
        """Return the file of the model, if it is in one."""
        return {"model": self.folder / self.model} if self._is_file else {}

    def prepare(self) -> WorkloadModel:
        """Read the model."""
        from scenarios.models_command import model_of

        return model_of(str(self.files().get("model", self.model)), self.machine)

    def stage(
        self, prepared: WorkloadModel, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Generate the users."""
        from scenarios.populate import stage_populate

        return stage_populate(
            prepared,
            days=self.days,
            load=self.load,
            machine=self.machine,
            nodes=self.nodes,
            scheduler=self.scheduler,
            hears=self.hears,
            seed=self.seed,
            log=log,
        )

    def label(self) -> str:
        """Return the model, the policy and the machine."""
        return f"{Path(self.model).stem}, {self.scheduler}, nodes {self.nodes}"
