"""Schedulers by name: ``easy``, or with options ``name:option=value,option=value``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import UnionType
from typing import Any, get_args, get_type_hints

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import Names
from hpcrowd.environment.registry import Registry, own, place_of, said
from hpcrowd.environment.schedulers.base import Scheduler, options_of

#: Not a policy: starts each job its recorded wait after its submission, ignoring capacity.
RECORDED = "recorded"

#: Policies by name; a new one is its class and an entry here.
SCHEDULERS: Registry[type[Scheduler]] = Registry(
    {
        "fcfs": "hpcrowd.environment.schedulers.order:FCFS",
        "easy": "hpcrowd.environment.schedulers.easy:EASY",
        "conservative": "hpcrowd.environment.schedulers.conservative:Conservative",
        "selective": "hpcrowd.environment.schedulers.selective:Selective",
        "selective-categorized": "hpcrowd.environment.schedulers.selective:SelectiveCategorized",
        "sjf": "hpcrowd.environment.schedulers.order:SJF",
        "ljf": "hpcrowd.environment.schedulers.order:LJF",
        "order": "hpcrowd.environment.schedulers.order:Order",
        "multi-queue": "hpcrowd.environment.schedulers.multi_queue:MultiQueue",
        "fair-share": "hpcrowd.environment.schedulers.fair_share:FairShare",
        "creasy": "hpcrowd.environment.schedulers.creasy:Creasy",
        "wfp3": "hpcrowd.environment.schedulers.priority:WFP3",
        "unicef": "hpcrowd.environment.schedulers.priority:Unicef",
        "multifactor": "hpcrowd.environment.schedulers.priority:Multifactor",
        "slurm": "hpcrowd.environment.schedulers.slurm.policy:Slurm",
        "adaptive": "hpcrowd.environment.schedulers.adaptive:Adaptive",
    }
)

#: Those that run a pool of equal processors without further ado.
POOL_SCHEDULERS = tuple(name for name in SCHEDULERS if name != "slurm")

#: All valid names.
SCHEDULER_NAMES = (*SCHEDULERS, RECORDED)

#: Words for yes and no.
_WORDS = {"yes": True, "no": False}


def parse_scheduler(text: str) -> Scheduler | None:
    """Return the scheduler described by ``text``, None for ``recorded``.

    Options are the keyword arguments of the policy, in text with ``-`` for ``_``.

    Raises
    ------
    QuantityError
        If there is no such scheduler or option, or the value is wrong.

    Examples
    --------
    >>> str(parse_scheduler("easy"))
    'easy'
    """
    name, colon, rest = text.partition(":")
    if name == RECORDED and not colon:
        return None
    if name not in SCHEDULERS:
        place = place_of(text)
        if place is None:
            raise QuantityError(
                f"scheduler {text!r}: {not_one_of(name, SCHEDULER_NAMES)}, or FILE.py:CLASS"
            )
        return own_scheduler(own("scheduler", text), text)
    policy = SCHEDULERS[name]
    options = parse_options("scheduler", text, policy, rest.split(",") if colon else ())
    try:
        return policy(**options)
    except QuantityError as error:
        raise QuantityError(f"scheduler {text!r}: {error}") from None


def scheduler_for(given: str | Scheduler, names: Names) -> Scheduler | None:
    """Return the scheduler of a run, which knows the names in its trace; None for ``recorded``.

    Parameters
    ----------
    given
        A scheduler, or the text of one.
    names
        Names of users, groups and queues.

    Raises
    ------
    QuantityError
        If there is no such scheduler, or it has an option with a name that is not in the trace.
    """
    made = parse_scheduler(given) if isinstance(given, str) else given
    if made is not None:
        try:
            made.know(names)
        except QuantityError as error:
            raise QuantityError(f"scheduler {str(given)!r}: {error}") from None
    return made


def own_scheduler(thing: Any, text: str = "") -> Scheduler:
    """Return your own scheduler, from a class, an object, or the place of one.

    Parameters
    ----------
    thing
        A subclass of :class:`Scheduler`, or one of its objects.
    text
        Its place, with options for the class; empty for none.

    Raises
    ------
    QuantityError
        If it is neither, or cannot be made with these options.
    """
    text = text or getattr(thing, "__name__", repr(thing))
    place = place_of(text)
    given = place.options.split(",") if place is not None and place.options else []
    if isinstance(thing, Scheduler) and not given:
        return thing
    if not (inspect.isclass(thing) and issubclass(thing, Scheduler)):
        kind = "a class" if inspect.isclass(thing) else type(thing).__name__
        raise QuantityError(
            f"scheduler {text!r}: {kind}, not a subclass of Scheduler; subclass it and define "
            "select()"
        )
    options = parse_options("scheduler", text, thing, given)
    try:
        return thing(**options)
    except Exception as error:
        message = str(error) if isinstance(error, QuantityError) else said(error)
        raise QuantityError(f"scheduler {text!r}: {message}") from error


def parse_options(
    what: str, text: str, kind: type[Any], parts: Iterable[str], also: str = ""
) -> dict[str, Any]:
    """Return the keyword arguments for options in text, ``option=value`` each.

    Parameters
    ----------
    what, text
        The kind of object, and the whole text, for messages.
    kind
        The class whose constructor takes them.
    parts
        The options.
    also
        Other valid options, for messages.

    Raises
    ------
    QuantityError
        If there is no such option, it is given twice, or the value is wrong.
    """
    known = _kinds(kind)
    options: dict[str, Any] = {}
    for part in parts:
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if option not in known or not equals or option in options:
            rule = "given twice" if option in options else "not an option of it"
            place = place_of(text)
            name = text.partition(":")[0] if place is None else f"{place.module}:{place.name}"
            cure = f"write {name}" + (f":option=value with {', '.join(known)}" if known else "")
            raise QuantityError(f"{what} {text!r}: {option or part!r} is {rule}; {cure}{also}")
        try:
            options[option] = _WORDS[value] if known[option] is bool else known[option](value)
        except (KeyError, ValueError):
            wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[known[option]]
            raise QuantityError(
                f"{what} {text!r}: {option} must be {wanted}, got {value!r}"
            ) from None
    return {option.replace("-", "_"): value for option, value in options.items()}


def _kinds(kind: type[Any]) -> dict[str, type[Any]]:
    """Return the types of the options that can be given as text."""
    maker: Any = kind.__init__ if inspect.isclass(kind) else kind
    hints, found = get_type_hints(maker), {}
    for option, default in options_of(kind).items():
        hint = hints.get(option, type(default))  # your own need not say what type they take
        first = get_args(hint)[0] if isinstance(hint, UnionType) else hint
        if first in (bool, int, float, str):
            found[option.replace("_", "-")] = first
    return found
