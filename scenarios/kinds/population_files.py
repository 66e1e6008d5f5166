"""A population from a TOML file: which behaviours, made of which parts, and who has them.

    [[users]]
    behaviour = "fluid"
    share = 0.7

    [[users]]
    behaviour = "think-time"
    share = 0.3
    hours = { opens = "8h", closes = "18h", days = ["Mon", "Tue", "Wed", "Thu", "Fri"] }
    reactions = [{ do = "switch", to = "backup", when = "patience", wait = "6h" }]

    [clusters.backup]
    processors = 64

Everything is checked when the file is read. A mistake is told with the file, the place in it and
the rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from hpcrowd.environment.errors import HpcrowdError, QuantityError, first_mistake
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.environment.schedulers.predictors.base import parse_estimates
from hpcrowd.environment.toml_files import read_toml
from hpcrowd.scenarios.kinds.fields import DAYS, Duration, HoursConfig, Strict
from hpcrowd.scenarios.kinds.reaction_files import reaction_from

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.generative.shmueli import SiteModel
    from hpcrowd.agents.populations.mixture import Mixture
    from hpcrowd.agents.presets import Recipe
    from hpcrowd.environment.cluster import ClusterSpec


class LineConfig(Strict):
    """Think times linear in the response time."""

    slope: float = Field(0.4826, ge=0, description="s of think time per s of response time")
    intercept: Duration = Field(1779, ge=0, description="s, or a duration such as 30m")
    cut: Duration = Field(28_800, gt=0, description="longer recorded think times stay, s")


class LawConfig(Strict):
    """Probability that a session goes on, limit / (decline * response + 1)."""

    limit: float = Field(0.8, ge=0, le=1, description="after an immediate response")
    decline: float = Field(0.05, ge=0, description="per minute of response time")


class ShiftsConfig(Strict):
    """Hours and days by lot."""

    opens: Duration = Field(27_000, description="when the day begins, after midnight")
    closes: Duration = Field(63_000, description="when it ends")
    shift: Duration = Field(3600, ge=0, description="hours are moved by up to this, s")
    day_share: float = Field(0.7, ge=0, le=1, description="of users, the others work at night")
    weekday_share: float = Field(0.8, ge=0, le=1, description="the others work at weekends")


class UsersConfig(Strict):
    """One behaviour and who has it."""

    behaviour: str | None = Field(None, description="a preset, which the parts below change")
    share: float = Field(0, ge=0, le=1, description="probability of each user nobody names")
    groups: tuple[int, ...] = Field((), description="groups, by number, whose users have it")
    users: tuple[int, ...] = Field((), description="users, by number, that have it")
    when: str | None = Field(None, description="which work comes next: recorded, sessions, batches")
    think: str | None = Field(
        None, description="pauses: recorded, linear, own (in sessions), continuation"
    )
    window: str | None = Field(
        None, description="when users are at work: always, fitted, shifts, sessions (recorded)"
    )
    waits: bool | None = Field(
        None, description="whether who is absent puts off its thinking too, not only the submission"
    )
    line: LineConfig | None = Field(None, description="think = linear with a line that is given")
    law: LawConfig | None = Field(None, description="think = continuation with another law")
    hours: HoursConfig | None = Field(None, description="a window that is given")
    shifts: ShiftsConfig | None = Field(None, description="window = shifts with other numbers")
    prior: float | None = Field(
        None, gt=0, description="window = fitted: starts by which profiles are smoothed"
    )

    reactions: tuple[dict[str, Any], ...] = Field(
        (),
        description="what users do instead of submitting: do, when, and settings of both",
    )

    def recipe(self, folder: Path = Path()) -> Recipe | SiteModel:
        """Return what makes the behaviour; files are looked for in ``folder``.

        Raises
        ------
        QuantityError
            When a name is not known or two fields contradict each other.
        """
        from hpcrowd.agents.behaviours.activity import ActivityWindow, Shifts
        from hpcrowd.agents.behaviours.think import ContinuationLaw, LinearThink
        from hpcrowd.agents.generative.shmueli import SiteModel
        from hpcrowd.agents.presets import PRESETS, Fitted, Recipe

        if self.behaviour is not None and self.behaviour not in PRESETS:
            raise QuantityError(
                f"behaviour {self.behaviour!r}: not known; choose {', '.join(PRESETS)}"
            )
        base = Recipe() if self.behaviour is None else PRESETS[self.behaviour]
        if isinstance(base, SiteModel):
            return self._site_model(base)
        changes: dict[str, Any] = {
            name: value
            for name in ("when", "think", "window", "waits")
            if (value := getattr(self, name)) is not None
        }
        if self.line is not None:
            self._only("think", "linear", "line")
            changes["think"] = LinearThink(**self.line.model_dump())
        if self.law is not None:
            self._only("think", "continuation", "law")
            changes["think"] = ContinuationLaw(**self.law.model_dump())
        if self.hours is not None:
            self._only("window", "hours", "hours")
            days = tuple(DAYS.index(day) for day in self.hours.days)
            changes["window"] = ActivityWindow(self.hours.opens, self.hours.closes, days)
        if self.shifts is not None:
            self._only("window", "shifts", "shifts")
            changes["window"] = Shifts(**self.shifts.model_dump())
        if self.prior is not None:
            self._only("window", "fitted", "prior")
            changes["window"] = Fitted(self.prior)
        if self.reactions:
            changes["reactions"] = tuple(self._reactions(folder))
        return replace(base, **changes)

    def _site_model(self, base: SiteModel) -> SiteModel:
        """Return the model of users who make up their work, with its law and its shifts."""
        from hpcrowd.agents.behaviours.activity import Shifts
        from hpcrowd.agents.behaviours.think import ContinuationLaw

        known = {"behaviour", "share", "groups", "users", "law", "shifts"}
        for name in sorted(self.model_fields_set - known):
            raise QuantityError(
                f"{name}: {self.behaviour} users make up their work and have no such part; leave "
                "it out (law and shifts may be given)"
            )
        if self.law is not None:
            base = replace(base, law=ContinuationLaw(**self.law.model_dump()))
        if self.shifts is not None:
            base = replace(base, shifts=Shifts(**self.shifts.model_dump()))
        return base

    def _reactions(self, folder: Path) -> Iterator[Reaction]:
        for place, reaction in enumerate(self.reactions):
            try:
                yield reaction_from(reaction, folder)
            except HpcrowdError as error:
                raise QuantityError(f"reactions[{place}]: {error}") from None

    def _only(self, what: str, value: str, field: str) -> None:
        """Make sure that a field which gives the parameters of a part finds that part."""
        given = {"line": self.line, "law": self.law} if what == "think" else {
            "hours": self.hours, "shifts": self.shifts, "prior": self.prior}  # fmt: skip
        others = [name for name, each in given.items() if each is not None and name != field]
        if others:
            raise QuantityError(f"{field} and {others[0]}: both say what {what} is; leave one")
        if getattr(self, what) not in (None, value):
            raise QuantityError(
                f"{what} {getattr(self, what)!r}: {field} is for {what} {value!r}; leave one"
            )


class ClusterConfig(Strict):
    """A cluster beside the first, for users who switch."""

    processors: int = Field(ge=1, description="its size")
    scheduler: str = Field("easy", description="as `hpcrowd replay --scheduler`")
    estimates: str = Field("requested", description="as `hpcrowd replay --estimates`")
    speed: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="of its nodes, 1 is that of the first cluster"
    )

    @field_validator("scheduler")
    @classmethod
    def _known_scheduler(cls, scheduler: str) -> str:
        parse_scheduler(scheduler)
        return scheduler


class PopulationConfig(Strict):
    """Which behaviours a population has, and what clusters there are for it beside the first."""

    name: str = Field("population", description="for tables and pictures")
    users: tuple[UsersConfig, ...] = Field(min_length=1, description="one entry per behaviour")
    clusters: dict[str, ClusterConfig] = Field({}, description="other clusters by name")
    folder: Path = Field(Path(), exclude=True, description="where files that it names are")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self.mixture()
        if "home" in self.clusters:
            raise ValueError("clusters.home: is the first cluster; choose another name")
        for spec in self._specs().values():
            parse_estimates(spec["estimates"])
        switches_of(self.users, ["home", *self.clusters])
        return self

    def others(self) -> dict[str, ClusterSpec]:
        """Return the other clusters by name."""
        from hpcrowd.environment.cluster import ClusterSpec

        return {name: ClusterSpec(**spec) for name, spec in self._specs().items()}

    def _specs(self) -> dict[str, dict[str, Any]]:
        """Return the other clusters; files of models are found beside this one."""
        specs = {name: cluster.model_dump() for name, cluster in self.clusters.items()}
        for spec in specs.values():
            if spec["estimates"].endswith(".json"):
                spec["estimates"] = str(self.folder / spec["estimates"])
        return specs

    def files(self) -> dict[str, str]:
        """Return the SHA-256 of each file that reactions and estimates name."""
        names = [reaction["file"] for entry in self.users for reaction in entry.reactions
                 if "file" in reaction]  # fmt: skip
        models = [cluster.estimates for cluster in self.clusters.values()]
        names += [model for model in models if model.endswith(".json")]
        return {name: sha256((self.folder / name).read_bytes()).hexdigest() for name in names}

    def mixture(self) -> Mixture:
        """Return the mixture of behaviours.

        Raises
        ------
        QuantityError
            When shares do not add up, or parts do not go together; with the place of the entry.
        """
        return mixture_of(self.users, self.folder)


def switches_of(users: Sequence[UsersConfig], names: Sequence[str]) -> None:
    """Check that who switches to another cluster switches to one of these.

    Raises
    ------
    ValueError
        With the place of the entry.
    """
    for place, entry in enumerate(users):
        for reaction in entry.reactions:
            if reaction.get("do") == "switch" and reaction.get("to") not in names:
                raise ValueError(
                    f"users[{place}]: switch to {reaction.get('to')!r}: no such cluster; "
                    f"choose {', '.join(names)}, or describe it under clusters"
                )


def mixture_of(users: Sequence[UsersConfig], folder: Path) -> Mixture:
    """Return the mixture of behaviours of some entries.

    Parameters
    ----------
    users
        The entries.
    folder
        Where files that they name are.

    Raises
    ------
    QuantityError
        When shares do not add up, or parts do not go together; with the place of the entry.
    """
    from hpcrowd.agents.populations.mixture import Mixture, Part

    parts = []
    for place, entry in enumerate(users):
        try:
            recipe = entry.recipe(folder)
        except QuantityError as error:
            raise QuantityError(f"users[{place}]: {error}") from None
        alone = len(users) == 1 and not (entry.share or entry.groups or entry.users)
        share = 1.0 if alone else entry.share
        parts.append(Part(recipe, share, entry.groups, entry.users))
    return Mixture(parts)


def read_population(path: str | os.PathLike[str]) -> PopulationConfig:
    """Read a population from a TOML file.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, place, value and rule.
    """
    place = Path(path)
    values, _ = read_toml(place)
    try:
        return PopulationConfig(**{"name": place.stem, "folder": place.parent, **values})
    except ValidationError as error:
        raise QuantityError(f"{place}: {first_mistake(error)}") from None
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from None
