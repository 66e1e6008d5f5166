"""Named behaviours: a recipe of parts for every published model.

A recipe lists the parts of a behaviour, see :mod:`composed`. It is a function of the recorded work,
so that it can be passed to :func:`add_users` directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hpcrowd.agents.behaviours.parts import THINK, WHEN, WINDOWS, PartFile
from hpcrowd.environment.errors import HpcrowdError, QuantityError, echo, not_one_of
from hpcrowd.environment.registry import Registry, own, place_of, said
from hpcrowd.environment.schedulers.names import parse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hpcrowd.agents.behaviours.activity import Activity, ActivityWindow, Shifts, WeeklyWindow
    from hpcrowd.agents.behaviours.composed import Composed
    from hpcrowd.agents.behaviours.parts import Parameter, Part
    from hpcrowd.agents.behaviours.patience import Patience
    from hpcrowd.agents.behaviours.profiles import Fitted
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.behaviours.think import ContinuationLaw, LinearThink, Think
    from hpcrowd.agents.behaviours.user import Behaviour, ReplayUser
    from hpcrowd.agents.behaviours.when import When
    from hpcrowd.agents.generative.shmueli import SiteModel
    from hpcrowd.agents.work.recorded import Work


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
        How long jobs may wait in the queue; None for ever.
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
    patience: Patience | None = None
    does: str = field(default="", compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, known in (("when", WHEN), ("think", THINK), ("window", WINDOWS)):
            value = getattr(self, name)
            if isinstance(value, str) and value not in known:
                raise QuantityError(f"{name} {value!r}: {not_one_of(value, known)}")
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
        if place_of(self.when) is not None:
            _ = WHEN[self.when]  # so that mistakes show before anything runs
        if place_of(self.think) is not None:
            _settings(self.think, self.think_part)
        if place_of(self.window) is not None:
            _settings(self.window, self.window_part)
        if self.waits and self.window == "always":
            raise QuantityError("waits: without a window no user is ever absent; give a window")

    @property
    def think_part(self) -> type[Think]:
        """The part that decides about pauses."""
        if isinstance(self.think, str):
            return THINK[self.think]
        return next(_taking(self.think, THINK.values()))

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
        part: Callable[[Work], When] = WHEN[self.when]
        when = made_by_own(part, "when", self.when, work)
        source = when.units
        if fit is not None:
            source = fit.by_batch if self.when == "batches" else fit.by_session
        think = self.think_part.make(source, _settings(self.think, self.think_part))
        settings = _settings(self.window, self.window_part)
        window = self.window_part.make(when.units, source, settings)
        return Composed(
            when, think, window, self.reactions, waits=self.waits, patience=self.patience
        )


def _taking[P: Part](settings: Any, parts: Iterable[type[P]]) -> Iterator[type[P]]:
    """Yield the parts that these are the settings of."""
    for part in parts:
        if part.settings is not None and isinstance(settings, part.settings):
            yield part


def _settings(value: Any, part: type[Part]) -> Any:
    """Return the settings of a part; None where only its name is given."""
    if not isinstance(value, str):
        return value
    place = place_of(value)
    if place is None or not place.options:
        return None
    kind = part.settings or object
    given = parse_options("part", value, kind, place.options.split(","))
    return made_by_own(partial(kind, **given), "part", value)


def made_by_own(make: Callable[..., Any], what: str, text: str, *given: Any) -> Any:
    """Return what your own class or function makes of something.

    Raises
    ------
    QuantityError
        In one line, if it raises an exception.
    """
    try:
        return make(*given)
    except HpcrowdError:
        raise
    except Exception as error:
        raise QuantityError(f"{what} {text!r}: {said(error)}") from error


def own_behaviour(text: str) -> Callable[[Any], Behaviour[Any]]:
    """Return a function from recorded work, or a pool of users, to the behaviour at a place.

    What is there is a subclass of ``Behaviour`` whose constructor takes the work or pool, a
    function that does the same, or a :class:`Recipe`.

    Raises
    ------
    QuantityError
        If there is something else, or it has no such options.
    """
    from hpcrowd.agents.behaviours.user import Behaviour

    thing, place = own("users", text), place_of(text)
    assert place is not None
    options = {}
    if place.options:
        options = parse_options("users", text, thing, place.options.split(","))
    if not callable(thing):
        raise QuantityError(
            f"users {text!r}: {type(thing).__name__}; must be a subclass of Behaviour, or a "
            "function from the recorded work to a behaviour"
        )

    def make(work: Any) -> Behaviour[Any]:
        made = made_by_own(partial(thing, **options), "users", text, work)
        if not isinstance(made, Behaviour):
            raise QuantityError(f"users {text!r}: made {echo(made)}, which is no Behaviour")
        return made

    return make


#: Behaviours by the names that users give.
PRESETS: Registry[Recipe | SiteModel] = Registry(
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
    from_files={"learned": "hpcrowd.agents.presets:learned_from"},
)


def learned_from(file: str) -> Recipe:
    """Return the preset ``learned`` with the model of a file."""
    from hpcrowd.agents.learned.think import Learned

    preset = PRESETS["learned"]
    assert isinstance(preset, Recipe)
    return replace(preset, think=Learned(PartFile(file)))


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
