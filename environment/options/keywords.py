"""What options a class or function has: keyword arguments, and how a text gives them.

Options are the keyword arguments of the constructor or function. A class with ``settings``, a
dataclass, has its fields as options instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import parse_duration

#: Words for yes and no.
WORDS = {"yes": True, "no": False, "true": True, "false": False}

#: Types of options that a text can give, each with its function and its name.
READ: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (WORDS.__getitem__, "yes or no"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "text"),
}

#: No default: the option must be given.
REQUIRED = inspect.Parameter.empty


class Option(NamedTuple):
    """An option of a class or function."""

    attribute: str  #: its name in Python
    kinds: tuple[Any, ...]  #: types that it may have, tried in order; empty if not known
    default: Any = REQUIRED
    about: Any = None  #: its description, if it has one, see ``agents.behaviours.parts.Parameter``

    @property
    def name(self) -> str:
        """Its name in text and files."""
        return getattr(self.about, "name", "") or self.attribute

    @property
    def as_text(self) -> bool:
        """Whether a text can give it."""
        return not self.kinds or any(_plain(one) in READ for one in self.kinds)

    def value(self, text: str) -> Any:
        """Return the value in a text.

        Raises
        ------
        QuantityError
            If it is none, or not within the bounds of the option.
        """
        kinds = [one for one in self.kinds if _plain(one) in READ] or [int, float, bool, str]
        unit = "" if self.about is None else self.about.unit.partition(" ")[0]
        if unit == "s" and text[-1:].isalpha():
            return self.about.checked(self.name, parse_duration(text))
        for kind in kinds:
            try:
                value = READ[_plain(kind)][0](text)
            except (KeyError, ValueError):
                continue
            if get_origin(kind) is Literal and value not in get_args(kind):
                continue
            return value if self.about is None else self.about.checked(self.name, value)
        wanted = " or ".join(
            ", ".join(get_args(one)) if get_origin(one) is Literal else READ[one][1]
            for one in kinds
        )
        raise QuantityError(f"{self.name.replace('_', '-')} must be {wanted}, got {text!r}")


def _plain(kind: Any) -> Any:
    """Return the type of a value; of a choice between words, text."""
    if get_origin(kind) is Literal and all(isinstance(one, str) for one in get_args(kind)):
        return str
    return kind


def keywords_of(kind: Callable[..., Any]) -> dict[str, Option]:
    """Return what a constructor or function takes besides what hpcrowd gives it, by attribute.

    If a constructor passes other keywords on, as ``**more``, those of its base class count too.
    """
    makers: list[Any] = [kind]
    given = 1  # recorded work, of a function that makes a behaviour
    if inspect.isclass(kind):
        makers = [vars(one)["__init__"] for one in kind.__mro__[:-1] if "__init__" in vars(one)]
        given = 1 + getattr(getattr(kind, "seam", None), "given", 0)
    described = {}
    if is_dataclass(kind):
        described = {one.name: one.metadata.get("setting") for one in fields(kind)}
    found: dict[str, Option] = {}
    for maker in makers:
        try:
            parameters = list(inspect.signature(maker).parameters.values())
        except (TypeError, ValueError):  # what is written in C
            break
        hints, places = _hints(maker), 0
        for one in parameters:
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
                places += 1
                if places <= given or one.kind == one.POSITIONAL_ONLY:
                    continue
            elif one.kind != one.KEYWORD_ONLY:
                continue
            hint = hints.get(one.name, one.annotation)
            option = Option(one.name, _kinds(hint, one.default), one.default)
            found.setdefault(one.name, option._replace(about=described.get(one.name)))
        if not any(one.kind == one.VAR_KEYWORD for one in parameters):
            break
    return found


def _hints(maker: Any) -> dict[str, Any]:
    """Return the types of arguments; those that are text if they cannot be found."""
    try:
        return get_type_hints(maker)
    except (NameError, AttributeError, TypeError, SyntaxError):  # names for type checkers only
        return dict(getattr(maker, "__annotations__", {}))


def _kinds(hint: Any, default: Any) -> tuple[Any, ...]:
    if isinstance(hint, str):  # which could not be resolved
        words = {kind.__name__: kind for kind in READ}
        hint = words.get(hint.partition("|")[0].strip(), REQUIRED)
    if hint in (REQUIRED, Any):  # your own need not say what type they take
        return () if default is REQUIRED or default is None else (type(default),)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(one for one in kinds if one is not type(None))


def options_of(kind: Callable[..., Any]) -> dict[str, Option]:
    """Return the options of your own class or function by name: see the module."""
    settings = settings_of(kind)
    if settings is None and _has_own_make(kind):
        return {}
    return {one.name: one for one in keywords_of(settings or kind).values()}


def settings_of(kind: Callable[..., Any]) -> Any:
    """Return the dataclass that declares the options of a class; None if it is the class itself."""
    found = getattr(kind, "settings", None) if inspect.isclass(kind) else None
    return found if is_dataclass(found) and found is not kind else None


def _has_own_make(kind: Callable[..., Any]) -> bool:
    """Return whether a part has a ``make`` of its own, so that its constructor takes no options."""
    bases = kind.__mro__ if inspect.isclass(kind) else ()
    base = next((one for one in bases if "seam" in vars(one)), object)
    return "make" in vars(base) and kind.make.__func__ is not base.make.__func__  # type: ignore
