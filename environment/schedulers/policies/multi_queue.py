"""Queues with priorities, and limits on running jobs and processors.

Limits hold by user, by queue, and by user within a queue. Tables of queues come from a TOML file::

    user-jobs = 10              # of one user on the whole machine, at once
    user-processors = 512

    [[queues]]
    queues = ["gpu", 2]         # by name or number; the limits hold for each by itself
    priority = 10               # large ones first; 0 unless given
    jobs = 40                   # running at once
    processors = 2000
    user-jobs = 2               # of one user in this queue, at once
    user-processors = 64

    [other]                     # queues that are not named
    priority = 1

Everything is checked when the file is read. Error messages name the file, the place in it and the
rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, override

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Names, number_of
from hpcrowd.environment.schedulers.base import WaitingJob
from hpcrowd.environment.schedulers.held import Charges, Limit
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, check_backfill

#: Settings of the limits on users; of queues.
USER = ("user-jobs", "user-processors")
QUEUE = ("priority", "jobs", "processors", *USER)

NO_LIMIT = Limit()


@dataclass(frozen=True)
class QueueRules:
    """The rules of one queue: its priority, and limits of its running jobs and of each user."""

    priority: float = 0.0
    limit: Limit = NO_LIMIT
    user: Limit = NO_LIMIT


NO_RULES = QueueRules()


@dataclass(frozen=True)
class QueueTable:
    """The contents of a file.

    Limits of each user over all queues, rules of queues by name or number, and those of queues that
    are not named.
    """

    user: Limit = NO_LIMIT
    queues: dict[str, QueueRules] = field(default_factory=dict)
    other: QueueRules = NO_RULES


def read_queues(path: str | os.PathLike[str]) -> QueueTable:
    """Read tables of queues from a TOML file; the module's text shows one.

    Raises
    ------
    QuantityError
        If it cannot be read or something in it is wrong; with file, place, value and rule.
    """
    from hpcrowd.environment.files import read_toml

    place = Path(path)
    values, _ = read_toml(place)
    try:
        return _table(values)
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from None


def _table(values: dict[str, Any]) -> QueueTable:
    _only(values, (*USER, "queues", "other"), "")
    queues: dict[str, QueueRules] = {}
    tables = values.get("queues", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise QuantityError("queues: must be tables; write [[queues]] above each")
    for number, table in enumerate(tables):
        place = f"queues[{number}]."
        _only(table, ("queues", *QUEUE), place)
        named = table.get("queues")
        good = isinstance(named, list) and all(type(one) in (int, str) for one in named)
        if not good or not named:
            raise QuantityError(
                f"{place}queues {named!r}: must be names or numbers of queues, for example "
                'queues = ["gpu", 2]'
            )
        for one in map(str, named):
            if one in queues:
                raise QuantityError(f"{place}queues: {one} is named twice; keep one")
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


def parse_values(text: str, what: str, *, positive: bool = False) -> dict[str, float]:
    """Parse values by name or number, as text; none for an empty text.

    Raises
    ------
    QuantityError
        If it does not consist of name or number, colon and value, joined by plus signs.
    """
    values: dict[str, float] = {}
    for part in text.split("+") if text else ():
        who, _, value = (piece.strip() for piece in part.rpartition(":"))
        try:
            amount = float(value)
        except ValueError:
            amount, who = 0, ""
        if not who:
            raise QuantityError(
                f"{what} {text!r}: {part!r} is not name:value; write for example ada:2+17:0.5"
            )
        if not isfinite(amount) or (positive and amount <= 0):
            rule = "positive" if positive else "finite"
            raise QuantityError(f"{what} {text!r}: the value of {who} must be {rule}")
        if who in values:
            raise QuantityError(f"{what} {text!r}: {who} is named twice; keep one")
        values[who] = amount
    return values


def numbers_alone[V](asked: Mapping[str, V]) -> dict[int, V]:
    """Return the values that are given by number, until the names of the trace are known."""
    return {int(who): value for who, value in asked.items() if who.isdecimal()}


def by_number[V](asked: Mapping[str, V], names: Names, field: str, what: str) -> dict[int, V]:
    """Return values by number, for values by name or number of a field of the trace.

    Raises QuantityError, which names the option, if a name is not in the trace, or the same one is
    named twice.
    """
    found: dict[int, V] = {}
    for who, value in asked.items():
        number = number_of(names, field, who)
        if number in found:
            raise QuantityError(f"{what}: {field} {who} is named twice; keep one")
        found[number] = value
    return found


@dataclass(eq=False, repr=False, kw_only=True)
class MultiQueue(OrderedScheduler):
    """Several queues with priorities, and limits on running jobs.

    Jobs of the queue with the highest priority come first, jobs of one priority by submission. A
    job that would put its user or its queue over a limit on running jobs or processors is passed
    over and holds no reservation. The first job that is not passed over and does not fit is the
    head: it holds a reservation as in EASY, or blocks the others if there is no backfilling. Jobs
    that overtake the head must leave room for it in the limits too.

    Such tables are common in batch systems; there is no single source. Our reading: the head counts
    for the limits; a limit on processors includes the job itself, unless nothing else runs there
    (else a job larger than its limit would wait for ever); a limit of a queue counts all its jobs,
    also those of users without limits; jobs of unknown users, or without a queue, count as those of
    one user, or one queue.

    A pass costs time in proportion to the queue; running jobs cost nothing.

    Parameters
    ----------
    file
        Path of a TOML file with a table for each queue, see
        :func:`~hpcrowd.environment.schedulers.policies.multi_queue.read_queues`.
    user_jobs, user_processors
        Limits on the running jobs of each user, over all queues.
    queue_jobs, queue_processors
        Limits on the running jobs of each queue without limits in the file.
    priorities
        Priorities of queues by name or number, such as ``gpu:10+2:5``, others have 0; large ones
        first.
    backfill
        The order in which later jobs are tried, see :class:`~environment.schedulers.easy.EASY`, or
        ``none``.

    Raises
    ------
    QuantityError
        If the file cannot be read, or an option has a wrong value.
    """

    name = "multi-queue"
    compiled = "hpcrowd.environment.engine.passes.ordered:MultiQueuePass"

    file: str = ""
    user_jobs: int | None = None
    user_processors: int | None = None
    queue_jobs: int | None = None
    queue_processors: int | None = None
    priorities: str = ""
    backfill: str = "queue"

    def __post_init__(self) -> None:
        self.file = str(self.file)
        check_backfill(self.backfill, none=True)
        rules = read_queues(self.file) if self.file else None
        self._user = Limit(self.user_jobs, self.user_processors)
        self._other = QueueRules(limit=Limit(self.queue_jobs, self.queue_processors))
        self._asked: dict[str, QueueRules] = {}
        if rules is not None:
            self._user = _or(self._user, rules.user)
            self._other = replace(rules.other, limit=_or(rules.other.limit, self._other.limit))
            limits = self._other.limit
            self._asked = {
                name: replace(queue, limit=_or(queue.limit, limits))
                for name, queue in rules.queues.items()
            }
        for queue, priority in parse_values(self.priorities, "priorities").items():
            if queue in self._asked:
                raise QuantityError(f"priorities: queue {queue} is also in {self.file}; keep one")
            self._asked[queue] = replace(self._other, priority=priority)
        self._queues = numbers_alone(self._asked)

    @override
    def know(self, names: Names) -> None:
        super().know(names)
        self._queues = by_number(self._asked, names, "queue", "queues")

    def rules(self, queue: int) -> QueueRules:
        """Return the rules of a queue."""
        return self._queues.get(queue, self._other)

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return -self.rules(job.queue).priority

    @property
    @override
    def order_words(self) -> str:
        others = (rules.priority != self._other.priority for rules in self._asked.values())
        return "by priority of the queues" if any(others) else ""

    @override
    def charges(self, user: int, queue: int) -> Charges:
        rules = self.rules(queue)
        charges: Charges = (
            (("user", user), self._user),
            (("queue", queue), rules.limit),
            (("user", user, "queue", queue), rules.user),
        )
        return tuple((account, limit) for account, limit in charges if limit)


def _or(limit: Limit, other: Limit) -> Limit:
    """Return ``limit``, with that of ``other`` where it has none."""
    return Limit(
        other.jobs if limit.jobs is None else limit.jobs,
        other.processors if limit.processors is None else limit.processors,
    )
