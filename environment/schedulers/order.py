"""Queues in an order without backfilling: by a named key, shortest and longest job first."""

from __future__ import annotations

from typing import override

from hpcrowd.environment.schedulers.base import WaitingJob
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, parse_order


class Order(OrderedScheduler):
    """A queue in the order of a key, without backfilling: its head blocks the others.

    After each end and arrival the jobs start in this order while they fit; the first that does not
    makes all others wait, as under FCFS. ``order:by=submit`` is FCFS. A large job may wait without
    end where others keep coming before it: nothing is reserved for it.

    A pass costs time in proportion to the queue for each job that it starts.

    Parameters
    ----------
    by
        A key of ``schedulers.ordered.KEYS``, small ones first, or after a minus with
        large ones first; ties go by submission, then by job number.

    Raises
    ------
    QuantityError
        When there is no such key.
    """

    name = "order"

    def __init__(self, *, by: str = "submit") -> None:
        self.by = by
        self._order = parse_order(by, "by")

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return self._order.key(job, now)

    @property
    @override
    def order_words(self) -> str:
        return self._order.words


class SJF(OrderedScheduler):
    """Shortest job first, by estimate, without backfilling: the shortest blocks if it cannot start.

    The same as ``order:by=estimate``. Short means run time; for few processors first see
    ``order:by=processors``. With backfilling: ``easy:order=estimate``.
    """

    name = "sjf"

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return float(job.estimate)

    @property
    @override
    def order_words(self) -> str:
        return "by estimate"


class LJF(OrderedScheduler):
    """Longest job first, by estimate, without backfilling: the longest blocks if it cannot start.

    The same as ``order:by=-estimate``. Long means run time; for many processors first see
    ``order:by=-processors``. With backfilling: ``easy:order=-estimate``.
    """

    name = "ljf"

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        return -float(job.estimate)

    @property
    @override
    def order_words(self) -> str:
        return "by estimate, large ones first"
