"""Schedulers by name: ``easy``, or with options ``name:option=value,option=value``."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_type_hints

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.adaptive import Adaptive
from hpcrowd.environment.schedulers.base import Scheduler, options_of
from hpcrowd.environment.schedulers.conservative import Conservative
from hpcrowd.environment.schedulers.creasy import Creasy
from hpcrowd.environment.schedulers.easy import EASY
from hpcrowd.environment.schedulers.fair_share import FairShare
from hpcrowd.environment.schedulers.multi_queue import MultiQueue
from hpcrowd.environment.schedulers.order import FCFS, LJF, SJF, Order
from hpcrowd.environment.schedulers.selective import Selective, SelectiveCategorized

#: Starts each job its recorded wait after its submission, capacity ignored; no policy.
RECORDED = "recorded"

#: Policies by the name a user gives; a new one is its class and an entry here.
SCHEDULERS: dict[str, type[Scheduler]] = {
    policy.name: policy
    for policy in (
        FCFS,
        EASY,
        Conservative,
        Selective,
        SelectiveCategorized,
        SJF,
        LJF,
        Order,
        MultiQueue,
        FairShare,
        Creasy,
        Adaptive,
    )
}

#: All names that a user may give.
SCHEDULER_NAMES = (*SCHEDULERS, RECORDED)

#: Words for yes and no.
_WORDS = {"yes": True, "no": False}


def parse_scheduler(text: str) -> Scheduler | None:
    """Return the scheduler that ``text`` means, None for ``recorded``.

    Options are the keyword arguments of the policy, in text with ``-`` for ``_``.

    Raises
    ------
    QuantityError
        When there is no such scheduler or option, or it does not take that value.

    Examples
    --------
    >>> str(parse_scheduler("easy"))
    'easy'
    """
    name, colon, rest = text.partition(":")
    if name == RECORDED and not colon:
        return None
    if name not in SCHEDULERS:
        raise QuantityError(f"scheduler {text!r}: not known; choose {', '.join(SCHEDULER_NAMES)}")
    policy = SCHEDULERS[name]
    known = [option.replace("_", "-") for option in options_of(policy)]
    options: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if option not in known or not equals or option in options:
            rule = "named twice" if option in options else "not an option of it"
            cure = (
                f"write {name}:option=value with {', '.join(known)}" if known else f"write {name}"
            )
            raise QuantityError(f"scheduler {text!r}: {option or part!r} is {rule}; {cure}")
        options[option] = _value(text, policy, option, value)
    try:
        return policy(**{option.replace("-", "_"): value for option, value in options.items()})
    except QuantityError as error:
        raise QuantityError(f"scheduler {text!r}: {error}") from None


def _value(text: str, policy: type[Scheduler], option: str, value: str) -> Any:
    """Return what ``value`` means for this option."""
    hint = get_type_hints(policy.__init__)[option.replace("-", "_")]
    kind = next((one for one in get_args(hint) if one is not NoneType), hint)
    try:
        if kind is bool:
            return _WORDS[value]
        return kind(value) if kind in (int, float) else value
    except (KeyError, ValueError):
        wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
        raise QuantityError(
            f"scheduler {text!r}: {option} must be {wanted}, got {value!r}"
        ) from None
