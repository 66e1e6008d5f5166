"""A population from a TOML file: behaviours, their parts, and which users have them.

    [[users]]
    behaviour = "fluid"
    share = 0.7

    [[users]]
    behaviour = "think-time"
    share = 0.3
    hours = { opens = "8h", closes = "18h", days = ["Mon", "Tue", "Wed", "Thu", "Fri"] }
    reactions = [{ do = "switch", to = "backup", when = "recent-waits", wait = "6h" }]

    [clusters.backup]
    processors = 64

Everything is checked when the file is read. An error message gives the file, the place in it and
the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, override

from pydantic import Field, create_model, field_validator, model_validator

from hpcrowd.agents.behaviours.activity import SameWindow
from hpcrowd.agents.behaviours.parts import THINK, WHEN, WINDOWS, Part, parameters_of
from hpcrowd.agents.behaviours.patience import Patience
from hpcrowd.agents.presets import own_behaviour
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.limits.inputs import read_bytes
from hpcrowd.environment.limits.numbers import LEAST_SPEED, MOST_PROCESSORS, MOST_SPEED
from hpcrowd.environment.registry import NotLoaded, located, or_your_own, place_of
from hpcrowd.environment.schedulers.estimates import parse_estimates
from hpcrowd.scenarios.kinds.fields import FileConfig, SchedulerChoice, Strict
from hpcrowd.scenarios.kinds.part_files import make, optional, reactions_from, settings_model

if TYPE_CHECKING:
    from hpcrowd.agents.generative.shmueli import SiteModel
    from hpcrowd.agents.populations.population import Mixture
    from hpcrowd.agents.presets import Preset, Recipe
    from hpcrowd.environment.cluster import ClusterSpec


#: Parts that may have settings, by what they decide.
PARTS: dict[str, tuple[type[Part], ...]] = {
    "think": tuple(THINK.values()),
    "window": (SameWindow, *WINDOWS.values()),
    "patience": (Patience,),
}


class _Entry(Strict):
    """The settings of an entry that do not depend on the available parts."""

    behaviour: str | None = Field(None, description="a preset, which the parts below change")
    share: float = Field(0, ge=0, le=1, description="probability for each user who is not named")
    groups: tuple[int | str, ...] = Field(
        (), description="groups, by name or number, whose users have it"
    )
    users: tuple[int | str, ...] = Field((), description="users, by name or number, that have it")
    when: str | None = Field(None, description=f"which work comes next: {', '.join(WHEN)}")
    think: str | None = Field(None, description=f"pauses: {', '.join(THINK)}")
    window: str | None = Field(None, description=f"when users are at work: {', '.join(WINDOWS)}")
    waits: bool | None = Field(
        None, description="whether absent users postpone thinking too, not only the submission"
    )


def _settings() -> dict[str, Any]:
    """Return a setting for each part that has settings, or one for each of them."""
    found: dict[str, Any] = {}
    for what, parts in PARTS.items():
        for part in parts:
            if part.settings is None:
                continue
            if part.table:
                text = f"settings of {what} = {part.name}"
                model = settings_model(part.settings)
                found[part.table] = (model | None, Field(None, description=text))
                continue
            for one in parameters_of(part.settings):
                found[one.name] = optional(one, f"{what} = {part.name}")
    return found


if TYPE_CHECKING:
    _EntryWithParts = _Entry
else:
    _EntryWithParts = create_model("_EntryWithParts", __base__=_Entry, **_settings())


class UsersConfig(_EntryWithParts):
    """One behaviour and its users."""

    reactions: tuple[dict[str, Any], ...] = Field(
        (),
        description="what users do instead of submitting: do, when, and settings of both",
    )

    @field_validator("patience", mode="before")
    @classmethod
    def _fitted(cls, given: Any) -> Any:
        """Take ``fitted:FILE`` for a table with the file."""
        if not isinstance(given, str):
            return given
        name, _, file = given.partition(":")
        if name != "fitted" or not file:
            raise ValueError("a table, or fitted:FILE with a file of `hpcrowd fit patience`")
        return {"fitted": file}

    def recipe(self, folder: Path = Path()) -> Recipe | SiteModel | Callable[..., Any]:
        """Return the recipe or the maker of the behaviour; paths are relative to ``folder``."""
        from hpcrowd.agents.generative.shmueli import SiteModel
        from hpcrowd.agents.presets import PRESETS, Recipe

        if self.behaviour is not None and self.behaviour not in PRESETS:
            raise QuantityError(
                f"behaviour {self.behaviour!r}: {not_one_of(self.behaviour, PRESETS)}, "
                f"{or_your_own(self.behaviour)}"
            )
        of_file = PRESETS.file_in(self.behaviour) is not None
        if self.behaviour is not None and place_of(self.behaviour) is not None and not of_file:
            return self._own(located(self.behaviour, folder))
        base: Preset = Recipe()
        if self.behaviour is not None:
            base = PRESETS[PRESETS.located(self.behaviour, folder)]
        if isinstance(base, SiteModel):
            return self._site_model(base)
        changes: dict[str, Any] = {
            name: located(value, folder) if isinstance(value, str) else value
            for name in ("when", "think", "window", "waits")
            if (value := getattr(self, name)) is not None
        }
        for what, parts in PARTS.items():
            given = [(part, name) for part in parts if (name := self._given(part))]
            if len(given) > 1:
                (_, first), (_, second) = given[:2]
                raise QuantityError(f"{first} and {second}: both set {what}; give only one")
            for part, name in given:
                if changes.get(what, part.name) != part.name:
                    raise QuantityError(
                        f"{what} {changes[what]!r}: {name} is for {what} {part.name!r}; give one"
                    )
                changes[what] = self._made(part, folder)
        if self.reactions:
            changes["reactions"] = tuple(reactions_from(self.reactions, folder))
        assert isinstance(base, Recipe)
        return replace(base, **changes)

    def _own(self, text: str) -> Callable[..., Any]:
        """Return the maker of your own behaviour, which has no parts that a file sets."""
        for name in sorted(self.model_fields_set - {"behaviour", "share", "groups", "users"}):
            raise QuantityError(
                f"{name}: {text} has no such part; give its options behind another colon, or make "
                "the behaviour of parts"
            )
        return own_behaviour(text)

    def _site_model(self, base: SiteModel) -> SiteModel:
        """Return the model of users who generate their work, with its law and its shifts."""
        of_model = {part.table: part for part in base.parts}
        known = {"behaviour", "share", "groups", "users", *of_model}
        for name in sorted(self.model_fields_set - known):
            raise QuantityError(
                f"{name}: {self.behaviour} users generate their work and have no such part; leave "
                f"it out ({' and '.join(of_model)} may be given)"
            )
        changes = {name: self._made(part) for name, part in of_model.items() if self._given(part)}
        return replace(base, **changes)

    def _given(self, part: type[Part]) -> str:
        """Return the name of the first given setting of a part, empty for none."""
        if part.settings is None:
            return ""
        names = [part.table] if part.table else [one.name for one in parameters_of(part.settings)]
        return next((name for name in names if getattr(self, name) is not None), "")

    def _made(self, part: type[Part], folder: Path = Path()) -> Any:
        """Return the settings of a part, as an object of their class."""
        assert part.settings is not None
        if part.table:
            return make(part.settings, getattr(self, part.table), folder)
        mine = {one.name for one in parameters_of(part.settings)}
        values = self.model_dump(include=mine, exclude_none=True)
        return make(part.settings, settings_model(part.settings)(**values), folder)


class ClusterConfig(Strict):
    """A second or further cluster, for users who switch."""

    processors: int = Field(ge=1, le=MOST_PROCESSORS, description="its size")
    scheduler: SchedulerChoice = Field("easy", description="as `hpcrowd replay --scheduler`")
    estimates: str = Field("requested", description="as `hpcrowd replay --estimates`")
    speed: float = Field(
        1.0,
        ge=LEAST_SPEED,
        le=MOST_SPEED,
        allow_inf_nan=False,
        description="of its nodes, 1 is that of the first cluster",
    )


class PopulationConfig(FileConfig):
    """The behaviours of a population, and its clusters other than the first."""

    DESCRIBES: ClassVar[str] = "a population"

    name: str = Field("population", description="for tables and pictures")
    users: tuple[UsersConfig, ...] = Field(min_length=1, description="one entry per behaviour")
    clusters: dict[str, ClusterConfig] = Field({}, description="other clusters by name")
    free: dict[str, Any] = Field(
        {},
        exclude=True,
        description="parameters that `hpcrowd calibrate` finds, with their priors; all others "
        "ignore them",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        with suppress(NotLoaded):
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
        """Return the other clusters; paths of models are relative to the folder of this file."""
        specs = {name: cluster.model_dump() for name, cluster in self.clusters.items()}
        for spec in specs.values():
            if spec["estimates"].endswith(".json"):
                spec["estimates"] = str(self.folder / spec["estimates"])
        return specs

    @override
    def sums(self) -> dict[str, str]:
        """Return the checksums of the files that it names; its own is in the settings."""
        names = [reaction["file"] for entry in self.users for reaction in entry.reactions
                 if "file" in reaction]  # fmt: skip
        models = [cluster.estimates for cluster in self.clusters.values()]
        names += [model for model in models if model.endswith(".json")]
        patience = [getattr(entry, "patience", None) for entry in self.users]
        names += [one.fitted for one in patience if one is not None and one.fitted]
        return {name: sha256(read_bytes(self.folder / name)).hexdigest() for name in names}

    def mixture(self) -> Mixture:
        """Return the mixture of behaviours; a mistake names the place of its entry."""
        return mixture_of(self.users, self.folder)


def switches_of(users: Sequence[UsersConfig], names: Sequence[str]) -> None:
    """Check that users switch only to clusters with these names; a mistake names its entry."""
    for place, entry in enumerate(users):
        for reaction in entry.reactions:
            if reaction.get("do") == "switch" and reaction.get("to") not in names:
                raise ValueError(
                    f"users[{place}]: switch to {reaction.get('to')!r}: no such cluster; "
                    f"choose {', '.join(names)}, or describe it under clusters"
                )


def mixture_of(users: Sequence[UsersConfig], folder: Path) -> Mixture:
    """Return the mixture of behaviours of some entries, which name files relative to a folder.

    That shares do not add up, or parts do not go together, is an error with the place of the entry.
    """
    from hpcrowd.agents.populations.population import Mixture, Part

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
