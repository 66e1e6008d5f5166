"""The setting of what users do instead of submitting as usual, and what came of reactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, override

from pydantic import Field

from hpcrowd.scenarios.kinds.base import Beginning, Scenario, read_by

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.analysis.parts import RunPart
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.scenarios.kinds.part_files import ReactionsConfig as Reactions
else:
    Reactions = Any


class ReactingUsers(Scenario):
    """Users of a run may react, by what they are."""

    @override
    def results(self, model: Simulation, begins: Beginning) -> list[RunPart]:
        found = super().results(model, begins)
        users: list[User] = [one for one in model.agents if getattr(one, "notes", None)]
        if users:
            from hpcrowd.analysis.accounts.reactions import Reactions, notes_of

            found.append(Reactions(rows=notes_of(users), jobs=begins.jobs))
        return found


class ReactionsSettings(ReactingUsers):
    """Reactions of all users of a run."""

    AFTER: ClassVar[Mapping[str, str]] = {"reactions": "consequences"}

    reactions: Reactions | None = Field(
        None,
        description="TOML file of what users do instead of submitting as usual, tables "
        "[[reactions]] as in a population",
    )

    _readable_reactions = read_by(
        "reactions", "hpcrowd.scenarios.kinds.part_files:ReactionsConfig", entries="reactions"
    )


#: The settings by kind of run.
SETTINGS = {"replay": ReactingUsers, "resample": ReactionsSettings}
