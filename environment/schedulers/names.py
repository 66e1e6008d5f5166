"""Schedulers by name: ``easy``, or with options ``name:option=value,option=value``."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.jobs import Names
from hpcrowd.environment.options import made, made_by_own, options_in, parse_options
from hpcrowd.environment.registry import Registry, check_kind, name_of, or_your_own, own, place_of
from hpcrowd.environment.schedulers.base import Scheduler

#: Not a policy: starts each job its recorded wait after its submission, ignoring capacity.
RECORDED = "recorded"

#: Policies by name; a new one is its class and an entry here.
SCHEDULERS: Registry[type[Scheduler]] = Registry(
    {
        "fcfs": "hpcrowd.environment.schedulers.order:FCFS",
        "easy": "hpcrowd.environment.schedulers.easy:EASY",
        "conservative": "hpcrowd.environment.schedulers.policies.conservative:Conservative",
        "selective": "hpcrowd.environment.schedulers.policies.conservative:Selective",
        "selective-categorized": "hpcrowd.environment.schedulers.policies.conservative:"
        "SelectiveCategorized",
        "sjf": "hpcrowd.environment.schedulers.order:SJF",
        "ljf": "hpcrowd.environment.schedulers.order:LJF",
        "order": "hpcrowd.environment.schedulers.order:Order",
        "multi-queue": "hpcrowd.environment.schedulers.policies.multi_queue:MultiQueue",
        "fair-share": "hpcrowd.environment.schedulers.policies.fair_share:FairShare",
        "site": "hpcrowd.environment.schedulers.policies.site:Site",
        "creasy": "hpcrowd.environment.schedulers.policies.priority:Creasy",
        "wfp3": "hpcrowd.environment.schedulers.policies.priority:WFP3",
        "unicef": "hpcrowd.environment.schedulers.policies.priority:Unicef",
        "multifactor": "hpcrowd.environment.schedulers.policies.priority:Multifactor",
        "fitted": "hpcrowd.environment.state.fitted:Fitted",
        "slurm": "hpcrowd.environment.schedulers.slurm.policy:Slurm",
        "adaptive": "hpcrowd.environment.schedulers.policies.adaptive:Adaptive",
    }
)

#: Those that run a pool of equal processors without further ado.
POOL_SCHEDULERS = tuple(name for name in SCHEDULERS if name not in ("slurm", "fitted"))

#: All valid names.
SCHEDULER_NAMES = (*SCHEDULERS, RECORDED)


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
                f"scheduler {text!r}: {not_one_of(name, SCHEDULER_NAMES)}, {or_your_own(text)}"
            )
        return own_scheduler(own("scheduler", text), text)
    policy = SCHEDULERS[name]
    options = parse_options("scheduler", text, policy, rest.split(",") if colon else ())
    try:
        return policy(**options)
    except QuantityError as error:
        raise QuantityError(f"scheduler {text!r}: {error}") from None


def controls(given: str | Scheduler) -> bool:
    """Return whether a scheduler does itself what else a log says: see ``Scheduler.controls``."""
    made = parse_scheduler(given) if isinstance(given, str) else given
    return made is not None and made.controls


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
    text = text or name_of(thing)
    place = place_of(text)
    if isinstance(thing, Scheduler) and not (place and place.options):
        return thing
    check_kind("scheduler", text, thing, Scheduler)
    options = options_in("scheduler", text, thing)
    return cast("Scheduler", made_by_own(partial(made, thing, (), options), "scheduler", text))
