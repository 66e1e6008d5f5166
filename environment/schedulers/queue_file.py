"""Tables of queues from a TOML file.

    user-jobs = 10              # of one user on the whole machine, at once
    user-processors = 512

    [[queues]]
    queues = [1, 2]             # their numbers in the trace; each has the limits of its own
    priority = 10               # large ones first; 0 unless given
    jobs = 40                   # running at once
    processors = 2000
    user-jobs = 2               # of one user in this queue, at once
    user-processors = 64

    [other]                     # queues that are not named
    priority = 1

Everything is checked when the file is read. A mistake is told with the file, the place in it and
the rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from environment.errors import QuantityError
from environment.schedulers.limits import Limit
from environment.toml_files import read_toml

#: Settings of the limits on users; of queues.
USER = ("user-jobs", "user-processors")
QUEUE = ("priority", "jobs", "processors", *USER)

NO_LIMIT = Limit()


@dataclass(frozen=True)
class QueueRules:
    """What holds for one queue.

    Attributes
    ----------
    priority
        Large ones first.
    limit
        On the running jobs of the queue.
    user
        On those of each user in it.
    """

    priority: float = 0.0
    limit: Limit = NO_LIMIT
    user: Limit = NO_LIMIT


NO_RULES = QueueRules()


@dataclass(frozen=True)
class QueueTable:
    """What a file says.

    Attributes
    ----------
    user
        Limits of each user over all queues.
    queues
        Rules of queues by number.
    other
        Rules of queues that are not named.
    """

    user: Limit = NO_LIMIT
    queues: dict[int, QueueRules] = field(default_factory=dict)
    other: QueueRules = NO_RULES


def read_queues(path: str | os.PathLike[str]) -> QueueTable:
    """Read tables of queues from a TOML file; the module's text shows one.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, place, value and rule.
    """
    place = Path(path)
    values, _ = read_toml(place)
    try:
        return _table(values)
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from None


def _table(values: dict[str, Any]) -> QueueTable:
    _only(values, (*USER, "queues", "other"), "")
    queues: dict[int, QueueRules] = {}
    tables = values.get("queues", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise QuantityError("queues: must be tables; write [[queues]] above each")
    for number, table in enumerate(tables):
        place = f"queues[{number}]."
        _only(table, ("queues", *QUEUE), place)
        named = table.get("queues")
        if not isinstance(named, list) or not named or not all(type(one) is int for one in named):
            raise QuantityError(
                f"{place}queues {named!r}: must be numbers of queues, for example queues = [1, 2]"
            )
        for one in named:
            if one in queues:
                raise QuantityError(f"{place}queues: {one} is named twice; leave one")
            queues[one] = _rules(table, place)
    other = values.get("other", {})
    if not isinstance(other, dict):
        raise QuantityError("other: must be a table; write [other] above it")
    _only(other, QUEUE, "other.")
    return QueueTable(_user(values, ""), queues, _rules(other, "other."))


def _rules(table: dict[str, Any], place: str) -> QueueRules:
    priority = table.get("priority", 0)
    if type(priority) not in (int, float) or not isfinite(priority):
        raise QuantityError(f"{place}priority {priority!r}: must be a number")
    limit = Limit(_whole(table, "jobs", place), _whole(table, "processors", place))
    return QueueRules(float(priority), limit, _user(table, place))


def _user(table: dict[str, Any], place: str) -> Limit:
    jobs, processors = USER
    return Limit(_whole(table, jobs, place), _whole(table, processors, place))


def _whole(table: dict[str, Any], name: str, place: str) -> int | None:
    value = table.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise QuantityError(f"{place}{name} {value!r}: must be a whole number of at least 1")
    return value


def _only(table: dict[str, Any], known: Iterable[str], place: str) -> None:
    for name in table:
        if name not in known:
            raise QuantityError(f"{place}{name}: not a setting; choose {', '.join(known)}")
