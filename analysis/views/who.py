"""What users are called by what they do: the behaviours of a mixed population, in a word or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents.activity import RecordedSessions, WorkPattern
from agents.behaviours import Rigid, ThinkTime
from agents.composed import Composed
from agents.profiles import ActiveTime
from agents.satisfaction import Minding
from agents.shmueli import ShmueliFeitelson
from agents.think import Continuation, LinearThink, OwnPauses, RecordedPauses
from agents.when import BatchOrder, Recorded, SessionGraph

if TYPE_CHECKING:
    from agents.user import User

#: Presets by the parts that they are made of: when, think, window.
PRESET_PARTS: dict[tuple[type, type, type], str] = {
    (Recorded, RecordedPauses, type(None)): "rigid",
    (SessionGraph, RecordedPauses, type(None)): "think-time",
    (SessionGraph, RecordedPauses, ActiveTime): "think-time-windows",
    (BatchOrder, RecordedPauses, type(None)): "adjusted",
    (BatchOrder, Continuation, WorkPattern): "distribution",
    (BatchOrder, OwnPauses, RecordedSessions): "fluid",
    (BatchOrder, LinearThink, type(None)): "linear",
    (BatchOrder, LinearThink, ActiveTime): "linear-windows",
}


def behaviours_of(users: Mapping[int, User]) -> dict[int, str]:
    """Return what users do by their numbers; nothing where all do the same."""
    words: dict[int, str] = {}
    found = {}
    for number, user in users.items():
        behaviour = user.behaviour
        key = id(behaviour)
        if key not in words:
            words[key] = behaviour_words(behaviour)
        found[number] = words[key]
    return found if len(set(found.values())) > 1 else {}


def places_of(users: Mapping[int, User]) -> dict[int, str]:
    """Return where users submit to by their numbers; nothing where all go to one place."""
    found = {
        number: str(site.name)
        for number, user in users.items()
        if (site := getattr(user, "site", None)) is not None
    }
    return found if len(set(found.values())) > 1 else {}


def behaviour_words(behaviour: Any) -> str:
    """Return the name of the preset that a behaviour is made as, else of its parts.

    What users do instead of submitting is added: ``think-time; switch, delay``.
    """
    if isinstance(behaviour, Minding):
        return behaviour_words(behaviour.inner)
    if isinstance(behaviour, Rigid):
        return "rigid"
    if isinstance(behaviour, ThinkTime):
        return "think-time"
    if isinstance(behaviour, ShmueliFeitelson):
        return "generative" if behaviour.model.presence == "recorded" else "shmueli-feitelson"
    if not isinstance(behaviour, Composed):
        return type(behaviour).__name__
    # Parts whose decisions are noted stand in a wrapping.
    parts = [
        getattr(part, "inner", part) for part in (behaviour.when, behaviour.think, behaviour.window)
    ]
    kinds = [type(part) for part in parts]
    name = PRESET_PARTS.get((kinds[0], kinds[1], kinds[2]))
    if name is None:
        name = ", ".join(kind.__name__ for kind in kinds if kind is not type(None))
    reactions = [type(one).__name__.lower() for one in behaviour.reactions]
    return f"{name}; {', '.join(reactions)}" if reactions else name
