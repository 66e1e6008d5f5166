"""Queues in an order without backfilling: first come, shortest, longest first, or by a key."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.schedulers.ordered import KEY_PASS, KeyScheduler, QueueOrder, parse_order


class FCFS(KeyScheduler):
    """First come, first served: no job overtakes another."""

    name = "fcfs"
    compiled = KEY_PASS
    queue_order = QueueOrder("submit")


class SJF(KeyScheduler):
    """Shortest job first, by estimate, without backfilling: the shortest blocks if it cannot start.

    The same as ``order:by=estimate``. Short means run time; for few processors first see
    ``order:by=processors``. With backfilling: ``easy:order=estimate``.
    """

    name = "sjf"
    compiled = KEY_PASS
    queue_order = QueueOrder("estimate")


class LJF(KeyScheduler):
    """Longest job first, by estimate, without backfilling: the longest blocks if it cannot start.

    The same as ``order:by=-estimate``. Long means run time; for many processors first see
    ``order:by=-processors``. With backfilling: ``easy:order=-estimate``.
    """

    name = "ljf"
    compiled = KEY_PASS
    queue_order = QueueOrder("estimate", descending=True)


@dataclass(eq=False, repr=False, kw_only=True)
class Order(KeyScheduler):
    """A queue in the order of a key, without backfilling: its head blocks the others.

    After each end and arrival the jobs start in this order while they fit; the first that does not
    fit makes all others wait, as under FCFS. ``order:by=submit`` is FCFS. A job may wait for ever
    if others keep coming before it.

    A pass costs time in proportion to the queue for each job that it starts.

    Parameters
    ----------
    by
        A key of ``hpcrowd.environment.schedulers.ordered.KEYS``, small ones first, or after a
        minus with large ones first; ties go by submission, then by job number.

    Raises
    ------
    QuantityError
        If there is no such key.
    """

    name = "order"
    compiled = KEY_PASS

    by: str = "submit"

    def __post_init__(self) -> None:
        self.queue_order = parse_order(self.by, "by")
