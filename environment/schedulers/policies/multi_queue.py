"""Queues with priorities, and limits by user and by queue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import override

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Names
from hpcrowd.environment.schedulers.base import WaitingJob
from hpcrowd.environment.schedulers.held import Charges, Limit
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, check_backfill
from hpcrowd.environment.schedulers.policies.limits import (
    QueueRules,
    by_number,
    numbers_alone,
    parse_values,
    read_queues,
)


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
        :func:`~hpcrowd.environment.schedulers.policies.limits.read_queues`.
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
