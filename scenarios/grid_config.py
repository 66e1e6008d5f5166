"""A grid from a TOML file: its clusters, who works on each, and who submits to the grid.

    broker = "first-fit"
    users = "think-time"
    components = 64

    [clusters.north]
    processors = 100
    trace = "north.swf.gz"
    grid_share = 0.2

    [clusters.south]
    processors = 64
    speed = 1.5
    model = "lublin"
    load = 0.5

    [grid]
    model = "lublin"
    load = 0.4

Everything is checked when the file is read. A mistake is told with the file, the place in it and
the rule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from agents.sessions import SessionDefinition
from environment.errors import QuantityError
from environment.estimates import parse_estimates
from environment.grid import GRID, parse_grid_policy
from environment.mistakes import first_mistake
from environment.predictors.base import Predictor
from environment.schedulers.names import parse_scheduler
from environment.toml_files import read_toml
from scenarios.config import BEHAVIOURS
from scenarios.fields import Strict
from scenarios.population_config import ClusterConfig, UsersConfig, mixture_of, switches_of

#: Grids that come with hpcrowd, by name: their files.
READY = {path.stem: path for path in sorted((Path(__file__).parent / "grids").glob("*.toml"))}


class WorkloadConfig(Strict):
    """Where jobs come from: a trace, or a model."""

    trace: Path | None = Field(
        None, description="in any format, relative to this file; or `archive:NAME`"
    )
    model: str | None = Field(
        None, description="file of a fitted model, or one with published parameters, such as lublin"
    )
    days: float = Field(28, gt=0, description="of a model: days in which jobs arrive")
    load: float | None = Field(
        None,
        gt=0,
        description="of a model: offered load of the cluster; of the grid, over the processors "
        "that local load leaves (Minh 2012, section 6.2)",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.trace is not None and self.model is not None:
            raise ValueError("trace and model: both say where jobs come from; leave one")
        if self.model is None and self.load is not None:
            raise ValueError("load: is for a model; a trace has the load that it has")
        return self

    @property
    def empty(self) -> bool:
        """Whether nobody submits."""
        return self.trace is None and self.model is None


class SiteConfig(WorkloadConfig, ClusterConfig):
    """A cluster of a grid and its own users."""

    speed: float = Field(
        1.0, gt=0, allow_inf_nan=False,
        description="of its nodes, against those that jobs of the grid are measured on; run times "
        "of its own trace or model are those on its own nodes",
    )  # fmt: skip
    grid_share: float = Field(
        0.0, ge=0, le=1, description="share of its users, by lot, who submit to the grid instead"
    )

    @model_validator(mode="after")
    def _knows_free_processors(self) -> Self:
        if parse_scheduler(self.scheduler) is None:
            raise ValueError(
                "scheduler 'recorded': knows no free processors, which a broker asks for; choose "
                "another"
            )
        parse_estimates(self.estimates)
        return self


class GridConfig(Strict):
    """Clusters that make up a grid, and their users."""

    name: str = Field("grid", description="for tables and pictures")
    broker: str = Field(
        "first-fit",
        description="where jobs of the grid go: first-fit, worst-fit, least-loaded, "
        "fastest-completion",
    )
    clusters: dict[str, SiteConfig] = Field(min_length=1, description="by name, in their order")
    grid: WorkloadConfig = Field(
        WorkloadConfig(), description="users of no cluster, who submit to the grid"
    )
    users: str | tuple[UsersConfig, ...] = Field(
        "rigid", description="how all users behave: a name, or entries as in a population file"
    )
    sessions: str = Field("arrival:60m", description="how sessions are told apart")
    components: int | None = Field(
        None,
        description="jobs of the grid wider than this are split into components of at most so many "
        "processors, which start together on several clusters; not given: none is split",
    )
    seed: int = Field(0, ge=0, description="seed of everything random")
    folder: Path = Field(Path(), exclude=True, description="where files that it names are")

    @field_validator("broker")
    @classmethod
    def _known_broker(cls, broker: str) -> str:
        parse_grid_policy(broker)
        return broker

    @field_validator("components")
    @classmethod
    def _some_processors(cls, components: int | None) -> int | None:
        if components is not None and components < 1:
            raise ValueError("a component has 1 processor or more; leave it out to split no job")
        return components

    @field_validator("sessions")
    @classmethod
    def _known_sessions(cls, sessions: str) -> str:
        SessionDefinition.parse(sessions)
        return sessions

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if GRID in self.clusters:
            raise ValueError(f"clusters.{GRID}: the broker is called so; choose another name")
        if self.grid.empty and all(site.empty for site in self.clusters.values()):
            raise ValueError(
                "clusters: nobody submits; give one of them, or grid, a trace or model"
            )
        if isinstance(self.users, str):
            if self.users not in BEHAVIOURS:
                raise ValueError(f"users {self.users!r}: not known; choose {', '.join(BEHAVIOURS)}")
        else:
            mixture_of(self.users, self.folder)
            switches_of(self.users, [*self.clusters, GRID])
        if self.components is not None:
            self._can_split()
        return self

    def _can_split(self) -> None:
        """Make sure that nothing tears components apart, and no predictor would miss them."""
        for name, site in self.clusters.items():
            predicted = isinstance(parse_estimates(self.estimates_of(name)), Predictor)
            if predicted:
                raise ValueError(
                    f"components {self.components}: clusters.{name}.estimates {site.estimates!r}: "
                    "learn from a queue that components do not stand in; choose requested, exact "
                    "or such as 1.5x, or leave components out"
                )
        for place, entry in enumerate(() if isinstance(self.users, str) else self.users):
            if entry.reactions:
                raise ValueError(
                    f"components {self.components}: users[{place}].reactions: users react job by "
                    "job, and what they do to a component would tear its job apart; leave out "
                    "reactions or components"
                )

    def estimates_of(self, name: str) -> str:
        """Return the estimates of a cluster; the file of a model by its path."""
        text = self.clusters[name].estimates
        return str(self.folder / text) if text.endswith(".json") else text

    def behaviour(self) -> Any:
        """Return how users behave, for ``agents.population.add_users``."""
        if isinstance(self.users, str):
            return self.users
        return mixture_of(self.users, self.folder)


def read_grid(source: str, **changes: Any) -> GridConfig:
    """Return the grid of a TOML file, or one that comes with hpcrowd.

    Parameters
    ----------
    source
        A path, or a name of :data:`READY`.
    **changes
        Settings that take the place of those in the file.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, place, value and rule.
    """
    place = READY.get(source, Path(source))
    if place.suffix != ".toml":
        raise QuantityError(
            f"grid {source!r}: neither a file FILE.toml nor a grid that is there; choose "
            f"{', '.join(READY)}"
        )
    values, _ = read_toml(place)
    try:
        return GridConfig(**{"name": place.stem, "folder": place.parent, **values, **changes})
    except ValidationError as error:
        raise QuantityError(f"{place}: {first_mistake(error)}") from None
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from None


def with_share(config: GridConfig, share: float) -> GridConfig:
    """Return a grid whose clusters' users submit to it in this share.

    Raises
    ------
    QuantityError
        When it is not from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise QuantityError(f"grid_share {share}: must be from 0 to 1")
    sites = {
        name: site.model_copy(update={"grid_share": share})
        for name, site in config.clusters.items()
    }
    return config.model_copy(update={"clusters": sites})
