"""What options a class or function has, and objects that are made with them.

Options are the keyword arguments of the constructor or function, which a text can give. A class
with ``settings``, a dataclass, has its fields as options instead; it gets them by their names, or
as one object.

Schedulers, behaviours and their parts are all made here, whether a text names them, as in
``mine.py:Tired:factor=3``, a table of a file, or Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from hpcrowd.environment.errors import HpcrowdError, QuantityError, nearest
from hpcrowd.environment.quantities import parse_duration, plural
from hpcrowd.environment.registry import articled, place_of, said

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

        Raises QuantityError if it is none, or not within the bounds of the option.
        """
        kinds = [one for one in self.kinds if _plain(one) in READ] or [int, float, bool, str]
        unit = "" if self.about is None else self.about.unit.partition(" ")[0]
        if unit == "s" and (text[-1:].isalpha() or text.strip().isdigit()):
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


def made(kind: Callable[..., Any], given: Sequence[Any] = (), options: Any = None) -> Any:
    """Return an object of a class, or what a function makes.

    Raises QuantityError if an argument is missing, or its constructor does not take the fields of
    its ``settings``.

    Parameters
    ----------
    kind
        The class or function.
    given
        Arguments that come first.
    options
        Its options by attribute; an object of its ``settings``; None for the defaults.
    """
    settings, taken = settings_of(kind), keywords_of(kind)
    if settings is None or (not options and not taken):
        return _called(kind, given, options or {})
    if options is None or isinstance(options, Mapping):
        options = _called(settings, (), options or {})
    names = [one.name for one in fields(settings) if one.init]
    if set(names) <= set(taken):
        return _called(kind, given, {name: getattr(options, name) for name in names})
    if taken and not set(names) & set(taken):
        return _called(kind, (*given, options), {})
    raise QuantityError(
        f"its __init__ does not take {', '.join(one for one in names if one not in taken)}; write "
        f"def __init__(self, {', '.join(names)}), as {settings.__name__} has these fields"
    )


def _called(kind: Callable[..., Any], given: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return what a class or function makes of arguments that fit."""
    try:
        inspect.signature(kind).bind(*given, **options)
    except ValueError:  # what is written in C need not say what it takes
        pass
    except TypeError as error:
        missing = [
            one.name.replace("_", "-") for one in keywords_of(kind).values()
            if one.default is REQUIRED and one.attribute not in options
        ]  # fmt: skip
        cure = f"give it as the option {' and '.join(missing)}=VALUE"
        if not missing:
            cure = f"it is called with {plural(len(given), 'argument')}, and its options by name"
        raise QuantityError(f"{error}; {cure}") from None
    return kind(*given, **options)


def made_by_own(make: Callable[..., Any], what: str, text: str, *given: Any) -> Any:
    """Return what your own class or function makes of something.

    Raises
    ------
    QuantityError
        In one line, with its place, if it raises an exception.
    """
    try:
        return make(*given)
    except QuantityError as error:
        if str(error).startswith(f"{what} {text!r}"):
            raise
        raise QuantityError(f"{what} {text!r}: {error}") from None
    except HpcrowdError:
        raise
    except Exception as error:
        raise QuantityError(f"{what} {text!r}: {said(error)}") from error


def options_in(what: str, text: str, kind: Callable[..., Any]) -> dict[str, Any]:
    """Return the options that a place such as ``mine.py:Tired:factor=3`` gives, by attribute.

    Raises
    ------
    QuantityError
        As :func:`parse_options`.
    """
    place = place_of(text)
    if place is None or not place.options:
        return {}
    return parse_options(what, text, kind, place.options.split(","))


def parse_options(
    what: str, text: str, kind: Callable[..., Any], parts: Iterable[str], also: str = ""
) -> dict[str, Any]:
    """Return the keyword arguments for options in text, ``option=value`` each.

    Raises QuantityError if an option is unknown or given twice, or its value is wrong.

    Parameters
    ----------
    what, text
        The kind of object, and the whole text, for messages.
    kind
        The class whose constructor takes them, or a function.
    also
        Other valid options, for messages.
    """
    known = {name.replace("_", "-"): one for name, one in options_of(kind).items()}
    shown = [name for name, one in known.items() if one.as_text]
    options: dict[str, Any] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        one = known.get(name)
        place = place_of(text)
        if one is not None and not one.as_text and equals:
            is_a = articled(getattr(one.kinds[0], "__name__", "value"))
            raise QuantityError(
                f"{what} {text!r}: {name} takes {is_a}, which a text cannot say; write a class or "
                "function that sets it"
            )
        if one is None or not equals or one.attribute in options:
            rule = "given twice" if one and one.attribute in options else "not an option of it"
            if one is not None and not equals:
                rule = "without a value"
            start = text.partition(":")[0] if place is None else f"{place.module}:{place.name}"
            cure = f"write {start}" + (f":option=value with {', '.join(shown)}" if shown else "")
            if not shown and place is not None:
                cure = f"it takes none; {cure}"
            near = nearest(name, shown) if one is None else ""
            raise QuantityError(f"{what} {text!r}: {name or part!r} is {rule}; {near}{cure}{also}")
        try:
            options[one.attribute] = one.value(value)
        except QuantityError as error:
            raise QuantityError(f"{what} {text!r}: {error}") from None
    return options
