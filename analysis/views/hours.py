"""When a user is at work, as far as its behaviour has hours: windows and profiles of the week."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.activity import SameWindow, WorkPattern
from agents.component_users import ClosedLoop, ComponentUser
from agents.composed import Composed
from agents.decision_hooks import NotedWindow
from agents.office import OfficeWorker
from agents.profiles import ActiveTime, Profiles
from agents.satisfaction import Minding
from agents.shmueli import ShmueliFeitelson
from agents.windows import ActivityWindow, WeeklyWindow

if TYPE_CHECKING:
    from agents.user import User
    from analysis.curves import Floats


@dataclass(frozen=True)
class Hours:
    """When a user is at work.

    Attributes
    ----------
    pieces
        Windows in which it may submit: open and close, s after Monday 00:00 local time; None where
        it has none.
    weights
        Its activity in each hour of the week, 1 on average, shape (168,); None where it has none.
    """

    pieces: list[tuple[int, int]] | None = None
    weights: Floats | None = None


def hours_of(user: User | None) -> Hours:
    """Return the hours of a user, none where its behaviour has none or the user is not there."""
    if user is None:
        return Hours()
    behaviour: Any = user.behaviour
    if isinstance(behaviour, Minding):
        behaviour = behaviour.inner
    if isinstance(behaviour, OfficeWorker):
        return Hours(_pieces(behaviour.window))
    if isinstance(behaviour, ClosedLoop) and isinstance(user, ComponentUser):
        profiles = behaviour.profiles
        weights = None if profiles is None else profiles.of(user.component.user).weights
        return Hours(weights=weights)
    if not isinstance(behaviour, Composed | ShmueliFeitelson):
        return Hours()
    window = behaviour.window
    if isinstance(window, NotedWindow):
        window = window.inner
    if isinstance(window, SameWindow):
        return Hours(_pieces(window.window))
    if isinstance(window, WorkPattern) and user.number in window.windows:
        return Hours(_pieces(window.windows[user.number]))
    if isinstance(window, ActiveTime) and isinstance(window.profiles, Profiles):
        return Hours(weights=window.profiles.of(user.number).weights)
    return Hours()


def _pieces(window: Any) -> list[tuple[int, int]] | None:
    if isinstance(window, ActivityWindow):
        window = window.week
    return window.pieces if isinstance(window, WeeklyWindow) else None
