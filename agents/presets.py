"""Named behaviours: a recipe of parts for every published model.

A recipe says which parts a behaviour is composed of, :mod:`composed`. It is a function of
the recorded work, so that it can be handed to :func:`add_users` as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcrowd.agents.behaviours.activity import (
    Activity,
    ActivityWindow,
    RecordedSessions,
    SameWindow,
    Shifts,
    WeeklyWindow,
    WorkPattern,
)
from hpcrowd.agents.behaviours.composed import Composed, Rigid, ThinkTime
from hpcrowd.agents.behaviours.profiles import PRIOR, ActiveTime
from hpcrowd.agents.behaviours.think import (
    Continuation,
    ContinuationLaw,
    LinearThink,
    OwnPauses,
    RecordedPauses,
    Think,
)
from hpcrowd.agents.behaviours.when import BatchOrder, Recorded, SessionGraph, When
from hpcrowd.agents.generative.shmueli import CALIBRATED, PUBLISHED, SiteModel
from hpcrowd.environment.errors import QuantityError

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units


@dataclass(frozen=True)
class Fitted:
    """Activity windows fitted to each user's record, see :class:`ActiveTime`.

    Attributes
    ----------
    prior
        Starts, see :data:`hpcrowd.agents.behaviours.profiles.PRIOR`.
    """

    prior: float = PRIOR


#: Parts that decide which work comes next, by name.
WHEN: dict[str, Callable[[Work], When]] = {
    "recorded": Recorded,
    "sessions": SessionGraph,
    "batches": BatchOrder,
}

#: Parts that decide about pauses, by name; made from the units they are fitted to.
THINK: dict[str, Callable[[Units], Think]] = {
    "recorded": lambda units: RecordedPauses(),
    "linear": LinearThink.fit,
    "own": OwnPauses,
    "continuation": Continuation,
}

#: Parts that tell when users are at work, by name; made from the units that are replayed and those
#: they are fitted to.
WINDOWS: dict[str, Callable[[Units, Units], Activity | None]] = {
    "always": lambda units, fit: None,
    "fitted": ActiveTime,
    "shifts": lambda units, fit: WorkPattern(),
    "sessions": lambda units, fit: RecordedSessions(fit),
}


@dataclass(frozen=True)
class Recipe:
    """Which parts a behaviour is made of.

    Attributes
    ----------
    when
        A name of :data:`WHEN`.
    think
        A name of :data:`THINK`, a line that is given, or the law of another continuation.
    window
        A name of :data:`WINDOWS`, a window that is given, or other parameters of one.
    waits
        Whether a user that is absent puts off its thinking too, see
        :class:`~hpcrowd.agents.behaviours.composed.Composed`.
    reactions
        Reactions beyond the submission time, in their order.

    Raises
    ------
    QuantityError
        When a name is not known, or parts do not go together.
    """

    when: str = "sessions"
    think: str | LinearThink | ContinuationLaw = "recorded"
    window: str | ActivityWindow | WeeklyWindow | Shifts | Fitted = "always"
    waits: bool = False
    reactions: tuple[Reaction, ...] = ()

    def __post_init__(self) -> None:
        for name, known in (("when", WHEN), ("think", THINK), ("window", WINDOWS)):
            value = getattr(self, name)
            if isinstance(value, str) and value not in known:
                raise QuantityError(f"{name} {value!r}: not known; choose {', '.join(known)}")
        if self.when == "recorded" and (self.think, self.window) != ("recorded", "always"):
            raise QuantityError(
                "when 'recorded': submissions at their recorded seconds ask for no think time and "
                "no window; choose when = sessions or batches"
            )
        drawn = self.think in ("own", "continuation") or isinstance(self.think, ContinuationLaw)
        if self.when == "sessions" and drawn:
            raise QuantityError(
                f"think {self.think!r}: draws from pauses inside sessions, and whole sessions have "
                "none; choose when = batches"
            )
        if self.waits and self.window == "always":
            raise QuantityError("waits: nobody is ever absent without a window; give a window")

    def __call__(self, work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
        """Return the behaviour.

        Parameters
        ----------
        work
            The recorded work to be replayed.
        fit
            The recorded work that parts are fitted to; the same unless given.
        """
        if self.when == "recorded" and not self.reactions:
            return Rigid()
        if self == Recipe():
            return ThinkTime(work)
        when = WHEN[self.when](work)
        source = when.units
        if fit is not None:
            source = fit.by_batch if self.when == "batches" else fit.by_session
        return Composed(
            when, self._think(source), self._window(when.units, source), self.reactions,
            waits=self.waits,
        )  # fmt: skip

    def _think(self, fit: Units) -> Think:
        if isinstance(self.think, ContinuationLaw):
            return Continuation(fit, self.think)
        return THINK[self.think](fit) if isinstance(self.think, str) else self.think

    def _window(self, units: Units, fit: Units) -> Activity | None:
        window = self.window
        if isinstance(window, str):
            return WINDOWS[window](units, fit)
        if isinstance(window, Fitted):
            return ActiveTime(units, fit, window.prior)
        return WorkPattern(window) if isinstance(window, Shifts) else SameWindow(window)


#: Presets by the names that users give.
PRESETS: dict[str, Recipe | SiteModel] = {
    # Recorded submissions: Madon et al. 2024, Definition 8.
    "rigid": Recipe("recorded"),
    # Recorded think times between sessions: Madon et al. 2024, section 4.2.
    "think-time": Recipe("sessions"),
    # The same with the rhythm of day and night, the lack of which is discussed in section 7.3.2.
    "think-time-windows": Recipe("sessions", window="fitted"),
    # Zakay and Feitelson 2015, sections VII-A to VII-C.
    "adjusted": Recipe("batches"),
    "distribution": Recipe("batches", "continuation", "shifts", waits=True),
    "fluid": Recipe("batches", "own", "sessions", waits=True),
    # Dynamic think times: Schlagkamp, JSSPP 2015; the second with activity windows.
    "linear": Recipe("batches", "linear"),
    "linear-windows": Recipe("batches", "linear", "fitted"),
    # Users who make up their work: Shmueli and Feitelson 2007 and 2009; the second comes on as many
    # days as recorded.
    "shmueli-feitelson": PUBLISHED,
    "generative": CALIBRATED,
}
