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
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.options import REQUIRED, options_of, settings_of
from hpcrowd.environment.registry import Registry, Seam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpcrowd.agents.behaviours.activity import Activity
    from hpcrowd.agents.behaviours.reactions import Response
    from hpcrowd.agents.behaviours.think import Think
    from hpcrowd.agents.behaviours.triggers import Trigger
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
RESPONSES: Registry[type[Response]] = Registry(
    {
        "delay": "hpcrowd.agents.behaviours.reactions:Delay",
        "degrade": "hpcrowd.agents.behaviours.energy.sufficiency:Degrade",
        "reconfigure": "hpcrowd.agents.behaviours.energy.sufficiency:Reconfigure",
        "renounce": "hpcrowd.agents.behaviours.energy.sufficiency:Renounce",
        "look-again": "hpcrowd.agents.behaviours.reactions:LookAgain",
        "switch": "hpcrowd.agents.behaviours.reactions:Switch",
        "switch-partition": "hpcrowd.agents.behaviours.machine.requests:SwitchPartition",
        "fewer-gpus": "hpcrowd.agents.behaviours.machine.requests:FewerGpus",
        "less-time": "hpcrowd.agents.behaviours.machine.requests:LessTime",
        "less-memory": "hpcrowd.agents.behaviours.machine.requests:LessMemory",
        "cut": "hpcrowd.agents.behaviours.tasks.cut:Cut",
    },
    own="reaction",
    of="hpcrowd.agents.behaviours.reactions:Reaction",
)

#: Triggers of reactions by name, each in its forms.
TRIGGERS: Registry[Sequence[type[Trigger]]] = Registry(
    {
        "during": "hpcrowd.agents.behaviours.triggers:DURING",
        "recent-waits": "hpcrowd.agents.behaviours.triggers:RECENT_WAITS",
        "signal": "hpcrowd.agents.behaviours.triggers:SIGNAL",
        "queue": "hpcrowd.agents.behaviours.triggers:QUEUE",
        "expected-wait": "hpcrowd.agents.behaviours.triggers:EXPECTED_WAIT",
        "fair-share": "hpcrowd.agents.behaviours.machine.standing:FAIR_SHARE",
        "at-limit": "hpcrowd.agents.behaviours.machine.standing:AT_LIMIT",
        "budget": "hpcrowd.agents.behaviours.energy.budget:BUDGET",
        "always": "hpcrowd.agents.behaviours.triggers:ALWAYS",
    },
    own="trigger",
    of="hpcrowd.agents.behaviours.triggers:Trigger",
)
