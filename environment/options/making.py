"""Objects of classes, and results of functions, with options, from text or from Python.

Schedulers, behaviours and their parts are all made here, whether a text names them, as in
``mine.py:Tired:factor=3``, a table of a file, or Python. A class with ``settings`` gets them by the
names of its fields, or as one object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from hpcrowd.environment.errors import HpcrowdError, QuantityError, nearest
from hpcrowd.environment.options.keywords import REQUIRED, keywords_of, options_of, settings_of
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.registry import articled, place_of, said


def made(kind: Callable[..., Any], given: Sequence[Any] = (), options: Any = None) -> Any:
    """Return an object of a class, or what a function makes.

    Parameters
    ----------
    kind
        The class or function.
    given
        Arguments that come first.
    options
        Its options by attribute; an object of its ``settings``; None for the defaults.

    Raises
    ------
    QuantityError
        If an argument is missing, or its constructor does not take the fields of its ``settings``.
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

    Parameters
    ----------
    what, text
        The kind of object, and the whole text, for messages.
    kind
        The class whose constructor takes them, or a function.
    parts
        The options.
    also
        Other valid options, for messages.

    Raises
    ------
    QuantityError
        If an option is unknown or given twice, or its value is wrong.
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
