"""What a part of a behaviour says of itself: its name, what it does, and its parameters.

A part is one class. Its first line of documentation says what it does; what may be set are the
fields of a dataclass, each a :func:`setting`. Lists, files of populations and reactions, and
the tables of the documentation are made from that. A new part is a class and a line in
:mod:`hpcrowd.agents.behaviours.parts`::

    @dataclass(frozen=True)
    class Haste:
        factor: float = setting(0.5, "share of a pause", least=0)

    class HastyPauses(Think):
        name, settings, table = "hasty", Haste, "haste"
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, get_type_hints

from hpcrowd.environment.clock import HOUR

#: What numbers are called that could not be found where they are said to come from.
UNCONFIRMED = "unconfirmed"

#: Unit of a time of the day.
AFTER_MIDNIGHT = "s after midnight"


@dataclass(frozen=True)
class Parameter:
    """Something that may be set of a part.

    Attributes
    ----------
    name
        As in a file, or in Python.
    meaning, unit
        In words; the unit is empty for a share or a probability.
    source
        Where the default comes from; empty for a choice that needs none.
    default
        What it is unless given; ``...`` if it must be given.
    least, above, most, below
        Bounds of a number: at least, more than, at most and less than this.
    shown
        How lists show the default.
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
        """The default as lists show it, durations also in hours."""
        text = f"{self.default:g}"
        if self.unit == AFTER_MIDNIGHT:
            text = f"{self.default} ({self.default // HOUR}:{self.default % HOUR // 60:02})"
        elif self.unit == "s" and isinstance(self.default, int):
            text = f"{self.default} ({self.default // HOUR} h)"
        return self.shown.format(text)


def setting(
    default: Any,
    meaning: str,
    unit: str = "",
    source: str = "",
    *,
    name: str = "",
    **more: Any,
) -> Any:
    """Return a field of a dataclass that says what it is.

    Parameters
    ----------
    default
        What it is unless given; ``...`` if it must be given.
    meaning, unit, source
        See :class:`Parameter`.
    name
        What files call it; the name of the field unless given.
    more
        What else a :class:`Parameter` says: bounds of a number, and how lists show the default.
    """
    said = Parameter(name, meaning, unit, source, default, **more)
    if default is ...:
        return field(metadata={"setting": said})
    return field(default=default, metadata={"setting": said})


def parameters_of(kind: type) -> list[Parameter]:
    """Return what the fields of a dataclass say of themselves; those that say nothing are left."""
    hints = get_type_hints(kind)
    return [
        replace(
            said,
            name=said.name or one.name,
            kind=hints[one.name],
            attribute=one.name,
        )
        for one in fields(kind)
        if (said := one.metadata.get("setting")) is not None
    ]


def first_line(kind: type) -> str:
    """Return the first line of a class's documentation: what it does."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]


class Part:
    """A part of a behaviour that decides when work is submitted."""

    #: What recipes and files call it; empty where it has to be given as an object.
    name: ClassVar[str] = ""

    #: Dataclass of what may be set of it, and what files call that; without a name of its own each
    #: setting is one of the behaviour.
    settings: ClassVar[type | None] = None
    table: ClassVar[str] = ""

    #: What else it depends on, which is set elsewhere.
    others: ClassVar[tuple[Parameter, ...]] = ()

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """Return all that it depends on, named as in a file."""
        prefix = f"{cls.table}." if cls.table else ""
        mine = [] if cls.settings is None else parameters_of(cls.settings)
        return [*(replace(one, name=prefix + one.name) for one in mine), *cls.others]
