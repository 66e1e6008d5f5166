"""Named behaviours: a recipe of parts for every published model.

A recipe lists the parts of a behaviour, see :mod:`composed`. It is a function of the recorded work,
so that it can be passed to :func:`add_users` directly.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from hpcrowd.agents.behaviours.parts import THINK, WHEN, WINDOWS, Part, Reaction
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.options import made, made_by_own, options_in, settings_of
from hpcrowd.environment.registry import (
    Registry,
    articled,
    check_kind,
    check_objects,
    is_a,
    name_of,
    or_your_own,
    own,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hpcrowd.agents.behaviours.activity import Activity, ActivityWindow, Shifts, WeeklyWindow
    from hpcrowd.agents.behaviours.composed import Composed
    from hpcrowd.agents.behaviours.parts import Parameter
    from hpcrowd.agents.behaviours.profiles import Fitted
    from hpcrowd.agents.behaviours.think import ContinuationLaw, LinearThink, Think
    from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
    from hpcrowd.agents.behaviours.when import When
    from hpcrowd.agents.work.recorded import Work


class Preset(Protocol):
    """A named behaviour: a :class:`Recipe`, or what makes users who make up their work."""

    @property
    def when(self) -> str:
        """What the next piece of work waits for."""

    @property
    def think(self) -> Any:
        """How long pauses are."""

    @property
    def window(self) -> Any:
        """When users are at work."""

    @property
    def waits(self) -> bool:
        """Whether an absent user does not think until back."""

    @property
    def does(self) -> str:
        """What users keep, in a few words."""

    @property
    def source(self) -> str:
        """The source of the model."""

    def parameters(self) -> list[Parameter]:
        """Return the parameters of its parts, with their defaults."""

    def check(self) -> None:
        """Read the files of its parts, so that mistakes show."""

    def __call__(self, work: Work) -> Behaviour[Any]:
        """Return the behaviour, for users with this recorded work."""


@dataclass(frozen=True)
class Recipe:
    """The parts of a behaviour, by the names of :mod:`hpcrowd.agents.behaviours.parts`.

    Attributes
    ----------
    when
        A name of :data:`WHEN`.
    think
        A name of :data:`THINK`, or the settings of one: a line, or another law of continuation.
    window
        A name of :data:`WINDOWS`, the settings of one, or a given window.
    waits
        Whether an absent user does not think until back, see
        :class:`~hpcrowd.agents.behaviours.composed.Composed`.
    reactions
        Reactions beyond the submission time, in order.
    patience
        How long jobs may wait in the queue, a ``Patience``; None for ever.
    does, source
        What users keep, in a few words, and the source of the model; of a named behaviour.

    Raises
    ------
    QuantityError
        If a name is not known, or parts cannot be combined.
    """

    when: str = "sessions"
    think: str | LinearThink | ContinuationLaw | Any = "recorded"
    window: str | ActivityWindow | WeeklyWindow | Shifts | Fitted | Any = "always"
    waits: bool = False
    reactions: tuple[Reaction, ...] = ()
    patience: Any = None
    does: str = field(default="", compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, known in (("when", WHEN), ("think", THINK), ("window", WINDOWS)):
            value = getattr(self, name)
            if isinstance(value, str) and value not in known:
                raise QuantityError(
                    f"{name} {value!r}: {not_one_of(value, known)}, {or_your_own(value)}"
                )
            if isinstance(value, type | Part) and not any(_taking(value, known.values())):
                raise QuantityError(
                    f"{name}: {is_a(value)}; a recipe takes a name, settings, or the place of your "
                    "own as FILE.py:NAME; Composed takes objects"
                )
        if not isinstance(self.reactions, tuple | list):
            raise QuantityError(f"reactions: {is_a(self.reactions)}; write a tuple of them")
        check_objects("reactions", self.reactions, Reaction)
        if self.when == "recorded" and (self.think, self.window) != ("recorded", "always"):
            raise QuantityError(
                "when 'recorded': submissions at recorded seconds use no think time and no window; "
                "choose when = sessions or batches"
            )
        if self.when == "sessions" and self.think_part.draws:
            raise QuantityError(
                f"think {self.think!r}: draws from pauses within sessions, but units are whole "
                "sessions; choose when = batches"
            )
        for name in ("when", "think", "window"):
            if place_of(getattr(self, name)) is not None:
                part = WHEN[self.when] if name == "when" else getattr(self, f"{name}_part")
                _settings(name, getattr(self, name), part)
        if self.waits and self.window == "always":
            raise QuantityError("waits: without a window no user is ever absent; give a window")

    @property
    def think_part(self) -> type[Think]:
        """The part that decides about pauses."""
        if isinstance(self.think, str):
            return THINK[self.think]
        found = next(_taking(self.think, THINK.values()), None)
        if found is None:
            raise QuantityError(f"think: {is_a(self.think)}; give a name of one, or its settings")
        return found

    @property
    def window_part(self) -> type[Activity]:
        """The part that decides when users are at work."""
        if isinstance(self.window, str):
            return WINDOWS[self.window]
        from hpcrowd.agents.behaviours.activity import SameWindow

        return next(_taking(self.window, WINDOWS.values()), SameWindow)

    def parameters(self) -> list[Parameter]:
        """Return the parameters of the parts, with their defaults."""
        parts = (WHEN[self.when], self.think_part, self.window_part)
        return [one for part in parts for one in part.parameters()]

    def check(self) -> None:
        """Read the files of its parts, so that mistakes show.

        Raises
        ------
        QuantityError
            If one cannot be used.
        """
        for settings in (self.think, self.window):
            if (check := getattr(settings, "check", None)) is not None:
                check()

    def __call__(self, work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
        """Return the behaviour.

        Parameters
        ----------
        work
            The recorded work to be replayed.
        fit
            The recorded work that parts are fitted to; the same unless given.
        """
        from hpcrowd.agents.behaviours.composed import Composed, Rigid, ThinkTime

        if self.when == "recorded" and not self.reactions and self.patience is None:
            return Rigid()
        if self == Recipe():
            return ThinkTime(work)
        part = WHEN[self.when]
        options = _settings("when", self.when, part)
        when: When = made_by_own(partial(made, part, (work,), options), "when", self.when)
        source = when.units
        if fit is not None:
            source = fit.by_batch if self.when == "batches" else fit.by_session
        settings = _settings("think", self.think, self.think_part)
        make: Callable[..., Any] = partial(self.think_part.make, source, settings)
        think = made_by_own(make, "think", str(self.think))
        settings = _settings("window", self.window, self.window_part)
        make = partial(self.window_part.make, when.units, source, settings)
        window = made_by_own(make, "window", str(self.window))
        return Composed(
            when, think, window, self.reactions, waits=self.waits, patience=self.patience
        )


def _taking[P: Part](settings: Any, parts: Iterable[type[P]]) -> Iterator[type[P]]:
    """Yield the parts that these are the settings of."""
    for part in parts:
        if part.settings is not None and isinstance(settings, part.settings):
            yield part


def _settings(what: str, value: Any, part: type[Part]) -> Any:
    """Return the settings or options of a part; None where only its name is given."""
    if not isinstance(value, str):
        return value
    given, kind = options_in(what, value, part), settings_of(part)
    return made_by_own(partial(kind, **given), what, value) if given and kind else given or None


def own_behaviour(
    users: str | Callable[..., Any], of: type[Behaviour[Any]] | None = None
) -> Callable[[Any], Behaviour[Any]]:
    """Return a function from recorded work, or a pool of users, to your own behaviour.

    Parameters
    ----------
    users
        A subclass of ``Behaviour`` whose constructor takes the work or pool, a function that does
        the same, or a :class:`Recipe`; or the place of one, with options.
    of
        ``ClosedLoop`` for users who are drawn from a pool, not those of a trace.

    Raises
    ------
    QuantityError
        If it is something else, or has no such options.
    """
    from hpcrowd.agents.behaviours.composed import Composed
    from hpcrowd.agents.behaviours.user import Behaviour

    of_pool, of = of is not None, of or Behaviour
    thing = own("users", users) if isinstance(users, str) else users
    text = users if isinstance(users, str) else name_of(users)
    if inspect.isclass(thing) or not callable(thing):
        for_pool = inspect.isclass(thing) and not issubclass(thing, Composed)
        both = for_pool and of_pool and issubclass(thing, Behaviour)
        check_kind("users", text, thing, thing if both else of)
    options = options_in("users", text, thing)

    def make(work: Any) -> Behaviour[Any]:
        found = made_by_own(partial(made, thing, (work,), options), "users", text)
        if not isinstance(found, Behaviour) or (of_pool and isinstance(found, Composed)):
            raise QuantityError(
                f"users {text!r}: makes {is_a(found)}, not {articled(of.seam.kind)}; return one"
            )
        return found

    make.generates = getattr(thing, "generates", False)  # type: ignore[attr-defined]
    return make


#: Behaviours by the names that users give.
PRESETS: Registry[Preset] = Registry(
    {
        "rigid": Recipe(
            "recorded",
            does="recorded submissions",
            source="Madon et al. 2024, Definition 8",
        ),
        "think-time": Recipe(
            "sessions",
            does="think times between sessions",
            source="Madon et al. 2024, section 4.2",
        ),
        "think-time-windows": Recipe(
            "sessions",
            window="fitted",
            does="the same, and their weekly rhythm",
            source="the same; windows: own, for the loss reported in section 7.3.2",
        ),
        "adjusted": Recipe(
            "batches",
            does="think times between batches, order of batches",
            source="Zakay and Feitelson 2015, section VII-A",
        ),
        "distribution": Recipe(
            "batches",
            "continuation",
            "shifts",
            waits=True,
            does="order of batches; hours are drawn",
            source="Zakay and Feitelson 2015, section VII-B",
        ),
        "fluid": Recipe(
            "batches",
            "own",
            "sessions",
            waits=True,
            does="order of batches, recorded hours",
            source="Zakay and Feitelson 2015, section VII-C",
        ),
        # Dynamic think times, the second with activity windows.
        "linear": Recipe(
            "batches",
            "linear",
            does="order of batches; think by response time",
            source="Schlagkamp, JSSPP 2015 (abstract only)",
        ),
        "linear-windows": Recipe(
            "batches",
            "linear",
            "fitted",
            does="the same, and their weekly rhythm",
            source="the same; windows: own",
        ),
        # What people did in such a situation, by a model fitted to records.
        "learned": Recipe(
            "batches",
            "learned",
            does="order of batches; pauses of people in such a situation",
            source="own, see the study of validation",
        ),
        # Users who make up their work; the second comes on as many days as recorded.
        "shmueli-feitelson": "hpcrowd.agents.generative.shmueli:PUBLISHED",
        "generative": "hpcrowd.agents.generative.shmueli:CALIBRATED",
    },
    own="users",
    from_files={"learned": "hpcrowd.agents.learned.think:preset_from"},
)


def preset_of(behaviour: Composed) -> str | None:
    """Return the name of the preset with the same parts, None if there is none."""
    # Parts whose decisions are noted are wrapped.
    found = [
        type(getattr(part, "inner", part))
        for part in (behaviour.when, behaviour.think, behaviour.window)
    ]
    for name, preset in PRESETS.items():
        if isinstance(preset, Recipe):
            window = type(None) if preset.window == "always" else preset.window_part
            if found == [WHEN[preset.when], preset.think_part, window]:
                return name
    return None
