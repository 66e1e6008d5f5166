"""The kind of scenario ``grid``: several clusters, users of each, and users of the grid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from environment.errors import QuantityError
from environment.formats.base import ARCHIVE_PREFIX
from environment.mistakes import first_mistake
from environment.toml_files import read_toml
from scenarios.grid_config import READY, GridConfig, with_share
from scenarios.scenario_base import Scenario, checksum, same

if TYPE_CHECKING:
    from agents.decisions import DecisionLog
    from scenarios.grid import Workloads
    from scenarios.staged import Staged

#: Settings of a workload that may name files.
NAMING = ("trace", "model")


class GridScenario(Scenario):
    """Run several clusters as a grid; what stands here takes the place of what ``source`` says."""

    PREPARED_FROM: ClassVar[tuple[str, ...]] = ("clusters", "grid", "seed")

    kind: Literal["grid"] = Field(description="several clusters and a broker")
    source: str | None = Field(
        None, description="where it begins: FILE.toml of a grid, or das3; not given: from nothing"
    )
    name: str | None = Field(None, description="for tables and pictures")
    broker: str | None = Field(
        None,
        description="where jobs of the grid go: first-fit, worst-fit, least-loaded, "
        "fastest-completion",
    )
    users: str | list[dict[str, Any]] | None = Field(
        None, description="how all users behave: a name, or entries as in a population file"
    )
    sessions: str | None = Field(None, description="how sessions are told apart")
    components: int | None = same(GridConfig, "components")
    grid_share: float | None = Field(
        None, ge=0, le=1, description="share of all clusters' users who submit to the grid"
    )
    clusters: dict[str, dict[str, Any]] = Field({}, description="by name, as in a grid file")
    grid: dict[str, Any] = Field({}, description="users of no cluster, as in a grid file")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        _ = self.config
        return self

    @cached_property
    def config(self) -> GridConfig:
        """The grid, with files by their paths.

        Raises
        ------
        QuantityError
            When something in it, or in the file where it begins, is wrong.
        """
        values: dict[str, Any] = {}
        if self.source is not None:
            place = READY.get(self.source, self.folder / self.source)
            values = _with_paths(read_toml(place)[0], place.parent)
        mine = _with_paths({"clusters": self.clusters, "grid": self.grid}, self.folder)
        values["grid"] = {**values.get("grid", {}), **mine["grid"]}
        clusters = values.setdefault("clusters", {})
        for name, site in mine["clusters"].items():
            clusters[name] = {**clusters.get(name, {}), **site}
        for name in ("name", "broker", "users", "sessions", "components"):
            if (given := getattr(self, name)) is not None:
                values[name] = given
        try:
            config = GridConfig(**{**values, "seed": self.seed, "folder": self.folder})
        except ValidationError as error:
            raise QuantityError(first_mistake(error)) from None
        return config if self.grid_share is None else with_share(config, self.grid_share)

    def files(self) -> dict[str, Path]:
        """Return the file where it begins, traces, and files of models."""
        found = {}
        if self.source is not None and self.source not in READY:
            found["source"] = self.folder / self.source
            if not found["source"].is_file():
                return found
        for place, workload in (*self.config.clusters.items(), ("grid", self.config.grid)):
            if workload.trace is not None:
                found[f"{place}.trace"] = self.trace_file(workload.trace)
            elif workload.model is not None and workload.model.endswith(".json"):
                found[f"{place}.model"] = self.folder / workload.model
        return found

    def completed(self) -> dict[str, Any]:
        """Return every setting that has a value, those of ``source`` among them."""
        values = self.config.model_dump(mode="json", exclude_none=True)
        values["clusters"] = _with_paths({"clusters": values["clusters"]}, self.folder.absolute())[
            "clusters"
        ]
        values["grid"] = _with_paths({"grid": values["grid"]}, self.folder.absolute())["grid"]
        return {"kind": self.kind, **values}

    def identity(self) -> dict[str, Any]:
        """Return what decides about the results: settings, and contents of all files."""
        found = self.completed()
        for place, workload in (*found["clusters"].items(), ("grid", found["grid"])):
            for name in NAMING:
                path = self.files().get(f"{place}.{name}")
                if path is not None:
                    workload[name] = checksum(path)
        return found

    def prepare(self) -> Workloads:
        """Read or generate the jobs."""
        from scenarios.grid import load_workloads

        return load_workloads(self.config)

    def stage(
        self, prepared: Workloads, log: DecisionLog | None = None, *, watched: bool = False
    ) -> Staged:
        """Set up the grid."""
        from scenarios.grid import stage_grid

        return stage_grid(self.config, workloads=prepared, log=log)

    def label(self) -> str:
        """Return its name, its users and its broker."""
        config = self.config
        users = config.users if isinstance(config.users, str) else "mixed users"
        return f"{config.name}, {users}, {config.broker}"


def _with_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of a grid file with the files that they name by their paths."""
    found = dict(values)

    def named(workload: Any) -> Any:
        if not isinstance(workload, dict):
            return workload
        paths = {
            name: str((folder / workload[name]).absolute())
            for name in NAMING
            if isinstance(workload.get(name), str)
            and (name == "trace" or workload[name].endswith(".json"))
            and not workload[name].startswith(ARCHIVE_PREFIX)
        }
        return {**workload, **paths}

    if isinstance(found.get("clusters"), dict):
        found["clusters"] = {name: named(site) for name, site in found["clusters"].items()}
    if "grid" in found:
        found["grid"] = named(found["grid"])
    return found
