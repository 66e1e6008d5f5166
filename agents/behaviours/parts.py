"""The parts that behaviours are made of: their names, and what they say about themselves.

A part is one class. The first line of its docstring is its summary; its parameters are the fields
of a dataclass, each a :func:`setting`. Lists, files of populations and reactions, and the tables of
the documentation are made from them. A new part is a class and a line in a registry below::

    @dataclass(frozen=True)
    class Haste:
        factor: float = setting(0.5, "share of a pause", least=0)

    class HastyPauses(Think):
        name, settings, table = "hasty", Haste, "haste"
"""

from __future__ import annotations

import inspect
import operator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_type_hints

from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.options import REQUIRED, options_of, settings_of
from hpcrowd.environment.registry import Registry, Seam

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.activity import Activity
    from hpcrowd.agents.behaviours.think import Think
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.behaviours.when import When

#: Mark of numbers that could not be verified in their source.
UNCONFIRMED = "unconfirmed"

#: Unit of a time of the day.
AFTER_MIDNIGHT = "s after midnight"


class PartFile(str):
    """The path of a file that a part reads; in a file it is relative to that file's folder."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a part.

    Attributes
    ----------
    name
        Its name in a file, or in Python.
    meaning, unit
        In words; the unit is empty for a share or a probability.
    source
        Source of the default; empty for a choice that needs none.
    default
        Its default; ``...`` if it must be given.
    least, above, most, below
        Bounds of a number: at least, more than, at most and less than this.
    shown
        The default as lists show it.
    kind, attribute
        Type of the value, and its name in Python; filled in by :func:`parameters_of`.
    """

    name: str
    meaning: str
    unit: str = ""
    source: str = ""
    default: Any = ...
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    shown: str = "{}"
    kind: Any = None
    attribute: str = ""

    @property
    def default_words(self) -> str:
        """The default as lists show it, with durations also in hours."""
        text = self.default if isinstance(self.default, str) else f"{self.default:g}"
        if self.unit == AFTER_MIDNIGHT:
            text = f"{self.default} ({self.default // HOUR}:{self.default % HOUR // 60:02})"
        elif self.unit == "s" and isinstance(self.default, int):
            text = f"{self.default} ({self.default // HOUR} h)"
        return self.shown.format(text)

    def checked(self, name: str, value: Any) -> Any:
        """Return a value of the parameter that a text called ``name``.

        Raises
        ------
        QuantityError
            If it is out of bounds.
        """
        rules = (
            (self.least, operator.ge, "at least"), (self.above, operator.gt, "more than"),
            (self.most, operator.le, "at most"), (self.below, operator.lt, "less than"),
        )  # fmt: skip
        for bound, holds, words in rules:
            if bound is not None and not holds(value, bound):
                raise QuantityError(f"{name} {value:g}: must be {words} {bound:g}")
        return value


def setting(
    default: Any,
    meaning: str,
    unit: str = "",
    source: str = "",
    *,
    name: str = "",
    **more: Any,
) -> Any:
    """Return a dataclass field with a description.

    Parameters
    ----------
    default
        The default; ``...`` if it must be given.
    meaning, unit, source
        See :class:`Parameter`.
    name
        Its name in files; the name of the field unless given.
    more
        Other attributes of :class:`Parameter`: bounds of a number, and the shown default.
    """
    said = Parameter(name, meaning, unit, source, default, **more)
    if default is ...:
        return field(metadata={"setting": said})
    return field(default=default, metadata={"setting": said})


def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """Return the parameters of a dataclass: its fields that have a description."""
    return _parameters_of(kind)


@cache  # not above, since type checkers take classes of dataclasses for unhashable there
def _parameters_of(kind: type) -> tuple[Parameter, ...]:
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple(
        replace(
            said,
            name=said.name or one.name,
            kind=hints[one.name],
            attribute=one.name,
        )
        for one in fields(kind)
        if (said := one.metadata.get("setting")) is not None
    )


def taken_by(kind: type) -> tuple[Parameter, ...]:
    """Return what a table of a file may set of a class: its parameters; of your own class also the
    keyword arguments without a description.
    """
    described = parameters_of(settings_of(kind) or kind)
    if kind.__module__.partition(".")[0] == "hpcrowd":
        return described
    taken = {one.attribute for one in options_of(kind).values()}
    described = tuple(one for one in described if one.attribute in taken)
    names = {one.attribute for one in described}
    return described + tuple(
        Parameter(
            one.name,
            "",
            default=... if one.default is REQUIRED else one.default,
            kind=one.kinds[0] if len(one.kinds) == 1 and one.as_text else Any,
            attribute=one.attribute,
        )
        for one in options_of(kind).values()
        if one.attribute not in names
    )


def first_line(kind: type) -> str:
    """Return the first line of a class's docstring."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]


class Part:
    """A part of a behaviour that decides when work is submitted."""

    #: How your own is given.
    seam: ClassVar[Seam]

    #: Its name in recipes and files; empty if it must be given as an object.
    name: ClassVar[str] = ""

    #: Dataclass of its settings, and the name of their table in files; without a name, each setting
    #: belongs to the behaviour.
    settings: ClassVar[type | None] = None
    table: ClassVar[str] = ""

    #: Other parameters that it depends on, which are set elsewhere.
    others: ClassVar[tuple[Parameter, ...]] = ()

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """Return all parameters that it depends on, named as in a file."""
        prefix = f"{cls.table}." if cls.table else ""
        mine = () if cls.settings is None else parameters_of(cls.settings)
        return [*(replace(one, name=prefix + one.name) for one in mine), *cls.others]


class Reaction:
    """Changes the planned submissions of users. Shared by users of a behaviour; subclass it."""

    seam: ClassVar = Seam("Reaction", 'reactions = [{{ do = "{0}" }}] in a file of users')

    #: Its entry in the log of decisions.
    logged: ClassVar[What] = What.CHANGED

    #: Whether :meth:`heard` must be called.
    listens = False

    #: Whether it may look again later, and so is asked before those that change jobs.
    looks = False

    #: Whether it submits jobs itself, so that graphs of its users cannot be changed.
    submits = False

    #: Whether it lets users submit to other clusters.
    elsewhere = False

    def begin(self, user: ReplayUser) -> None:
        """Prepare for a user, before the run begins."""

    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        """Take notice of the end of a unit."""

    def react(self, user: ReplayUser, intention: Any) -> None:
        """Change the planned submission of a unit, an ``Intention``, or leave it."""
        raise NotImplementedError(f"{type(self).__name__} must define react()")

    def is_busy(self, user: ReplayUser) -> bool:
        """Return whether it still has jobs of a user to submit."""
        return False


class Trigger:
    """Says when users react. May be shared by users and reactions; subclass it."""

    seam: ClassVar = Seam(
        "Trigger", 'reactions = [{{ do = "delay", by = "1h", when = "{0}" }}] in a file of users'
    )

    #: One word for tables and files; triggers that say the same in another way have the same.
    when: ClassVar[str] = "own"

    #: Whether :meth:`heard` wants to be called.
    listens: ClassVar[bool] = False

    #: Whether :meth:`until` knows when it ends.
    ends: ClassVar[bool] = False

    def begin(self, user: ReplayUser) -> None:
        """Prepare for a user, before the run begins."""

    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        """Take notice of the end of a unit."""

    def which(self, user: ReplayUser, intention: Any) -> NDArray[np.bool_]:
        """Return for which jobs of an ``Intention`` it is active, shape (jobs,)."""
        raise NotImplementedError(f"{type(self).__name__} has to define which()")

    def until(self, user: ReplayUser, at: int) -> int:
        """Return when it is next not active, ``at`` being a second at which it is."""
        raise NotImplementedError(f"{type(self).__name__} has no end")


#: Parts that decide which work comes next; each is made from recorded work.
WHEN: Registry[type[When]] = Registry(
    {
        "recorded": "hpcrowd.agents.behaviours.when:Recorded",
        "sessions": "hpcrowd.agents.behaviours.when:SessionGraph",
        "batches": "hpcrowd.agents.behaviours.when:BatchOrder",
    },
    own="when",
    of="hpcrowd.agents.behaviours.when:When",
)

#: Parts that decide about pauses.
THINK: Registry[type[Think]] = Registry(
    {
        "recorded": "hpcrowd.agents.behaviours.think:RecordedPauses",
        "linear": "hpcrowd.agents.behaviours.think:LinearThink",
        "own": "hpcrowd.agents.behaviours.think:OwnPauses",
        "continuation": "hpcrowd.agents.behaviours.think:Continuation",
        "learned": "hpcrowd.agents.learned.think:LearnedPauses",
    },
    own="think",
    of="hpcrowd.agents.behaviours.think:Think",
)

#: Parts that decide when users are at work. Fixed hours have no name: they are given as such.
WINDOWS: Registry[type[Activity]] = Registry(
    {
        "always": "hpcrowd.agents.behaviours.activity:Always",
        "fitted": "hpcrowd.agents.behaviours.profiles:ActiveTime",
        "shifts": "hpcrowd.agents.behaviours.activity:WorkPattern",
        "sessions": "hpcrowd.agents.behaviours.activity:RecordedSessions",
    },
    own="window",
    of="hpcrowd.agents.behaviours.activity:Activity",
)

#: What users do instead of submitting as usual.
RESPONSES: Registry[type[Reaction]] = Registry(
    {
        "delay": "hpcrowd.agents.behaviours.reactions:Delay",
        "degrade": "hpcrowd.agents.behaviours.energy.sufficiency:Degrade",
        "reconfigure": "hpcrowd.agents.behaviours.energy.sufficiency:Reconfigure",
        "renounce": "hpcrowd.agents.behaviours.energy.sufficiency:Renounce",
        "look-again": "hpcrowd.agents.behaviours.reactions:LookAgain",
        "switch": "hpcrowd.agents.behaviours.reactions:Switch",
        "switch-partition": "hpcrowd.agents.behaviours.on_nodes:SwitchPartition",
        "fewer-gpus": "hpcrowd.agents.behaviours.on_nodes:FewerGpus",
        "less-time": "hpcrowd.agents.behaviours.on_nodes:LessTime",
        "less-memory": "hpcrowd.agents.behaviours.on_nodes:LessMemory",
        "cut": "hpcrowd.agents.behaviours.cut:Cut",
    },
    own="reaction",
    of="hpcrowd.agents.behaviours.parts:Reaction",
)

#: Triggers of reactions by name, each in its forms.
TRIGGERS: Registry[Sequence[type[Trigger]]] = Registry(
    {
        "during": "hpcrowd.agents.behaviours.triggers:DURING",
        "recent-waits": "hpcrowd.agents.behaviours.triggers:RECENT_WAITS",
        "signal": "hpcrowd.agents.behaviours.energy.triggers:SIGNAL",
        "queue": "hpcrowd.agents.behaviours.triggers:QUEUE",
        "expected-wait": "hpcrowd.agents.behaviours.triggers:EXPECTED_WAIT",
        "fair-share": "hpcrowd.agents.behaviours.on_nodes:FAIR_SHARE",
        "at-limit": "hpcrowd.agents.behaviours.on_nodes:AT_LIMIT",
        "budget": "hpcrowd.agents.behaviours.energy.triggers:BUDGET",
        "always": "hpcrowd.agents.behaviours.triggers:ALWAYS",
    },
    own="trigger",
    of="hpcrowd.agents.behaviours.parts:Trigger",
)


class Note(NamedTuple):
    """The change that one reaction made to one job. Work is processors times run time."""

    row: int  #: of the job in the table
    reaction: str  #: name of the reaction
    response: str  #: its kind: delay, degrade, reconfigure, renounce, switch, cut, fewer-gpus
    decided: int  #: s; when the unit of work was due
    processors: int  #: before
    run_time: int  #: s; before
    processors_after: int  #: 0 if the job was renounced
    run_time_after: int  #: s; 0 if the job was renounced
    delay: int = 0  #: s; how much later the job is submitted
    cluster: str = ""  #: the cluster it went to instead, empty if it stayed
    waited: int = 0  #: s; in the queue, for a job that left it
    request: str = ""  #: what else it asked for otherwise: partition, requested_time, gpus; task
    request_before: str = ""  #: its name, s, GPUs or MB
    request_after: str = ""

    @property
    def logged(self) -> tuple[What, int]:
        """How the log of decisions names the change, and by how many s it delays the job."""
        response = RESPONSES.get(self.response)
        what = What.CHANGED if response is None else response.logged
        return what, self.delay if self.response == "delay" else UNKNOWN
