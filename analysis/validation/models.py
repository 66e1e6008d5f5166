"""Models of users that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcrowd.agents.behaviours.profiles import ActiveTime
from hpcrowd.agents.generative.shmueli import SiteModel
from hpcrowd.agents.learned.heldout import PAUSE_PRIOR
from hpcrowd.agents.populations.population import Mixture
from hpcrowd.agents.presets import PRESETS, Preset, Recipe
from hpcrowd.environment.errors import QuantityError, not_one_of

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.analysis.models.users.learned import Settings

#: Baselines that models should beat: pauses pooled over all users, and pooled pauses after similar
#: response times.
POOLED, SIMILAR = "pooled", "similar"

#: Both baselines.
BASELINES = (POOLED, SIMILAR)

#: The learned model, fitted to what came before the origin; and fitted to other logs.
LEARNED, ELSEWHERE = "learned", "learned elsewhere"


@dataclass(frozen=True)
class UserModel:
    """A user model under test.

    Attributes
    ----------
    name
        Name in tables.
    behaviour
        A recipe, a mixture of recipes or preset names, or users who generate their work.
    prior
        Pauses of all users as a prior, see
        :class:`~hpcrowd.agents.learned.heldout.PausePool`.
    similar
        Draw pauses after similar responses, see :class:`~agents.learned.heldout.SimilarPauses`.
    elsewhere
        A learned model that was fitted to other logs, instead of one fitted before the origin.
    fit
        Settings of the fit of a learned model; the defaults unless given.
    """

    name: str
    behaviour: Preset | Mixture
    prior: float = PAUSE_PRIOR
    similar: bool = False
    elsewhere: LearnedModel | None = None
    fit: Settings | None = None

    @classmethod
    def of(cls, name: str) -> UserModel:
        """Return the model of a preset name, or one of :data:`BASELINES`.

        Raises
        ------
        QuantityError
            When there is no such name.
        """
        if name in BASELINES:
            return cls(name, PRESETS["adjusted"], float("inf"), name == SIMILAR)
        recipe = PRESETS.get(name)
        if recipe is None:
            raise QuantityError(f"users {name!r}: {not_one_of(name, PRESETS)}")
        return cls(name, recipe)

    @property
    def generates(self) -> bool:
        """Whether its users generate their work: then there is no submission to forecast."""
        return isinstance(self.behaviour, SiteModel)

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes it is made of; empty for users who generate their work."""
        if self.generates:
            return []
        if isinstance(self.behaviour, Mixture):
            return [_recipe(part.behaviour) for part in self.behaviour.parts]
        return [_recipe(self.behaviour)]

    @property
    def inside_recorded(self) -> bool:
        """Whether some users submit whole sessions, whose inside is as recorded."""
        return any(recipe.when == "sessions" for recipe in self.recipes)

    @property
    def circular(self) -> bool:
        """Whether it uses recorded pauses or times of the part that it is tested on."""
        return any(
            recipe.when == "recorded"
            or not recipe.think_part.draws
            or recipe.window_part is ActiveTime
            for recipe in self.recipes
        )


def _recipe(behaviour: object) -> Recipe:
    found: object = PRESETS.get(behaviour) if isinstance(behaviour, str) else behaviour
    if not isinstance(found, Recipe):
        raise QuantityError(
            f"users {behaviour!r}: cannot be validated; give presets or recipes of parts"
        )
    if found.reactions:
        raise QuantityError(
            f"reactions {type(found.reactions[0]).__name__}: their effect on jobs is not in the "
            "record, so it cannot be validated; leave them out"
        )
    return found
