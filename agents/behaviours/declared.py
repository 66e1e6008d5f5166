"""Self-description of the parts of a behaviour: name, summary and parameters.

A part is one class. The first line of its docstring is its summary; its parameters are the fields
of a dataclass, each a :func:`setting`. Lists, files of populations and reactions, and the tables of
the documentation are made from them. A new part is a class and a line in
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

#: Mark of numbers that could not be verified in their source.
UNCONFIRMED = "unconfirmed"

#: Unit of a time of the day.
AFTER_MIDNIGHT = "s after midnight"


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


def parameters_of(kind: type) -> list[Parameter]:
    """Return the parameters of a dataclass: its fields that have a description."""
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
    """Return the first line of a class's docstring."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]


class Part:
    """A part of a behaviour that decides when work is submitted."""

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
        mine = [] if cls.settings is None else parameters_of(cls.settings)
        return [*(replace(one, name=prefix + one.name) for one in mine), *cls.others]
