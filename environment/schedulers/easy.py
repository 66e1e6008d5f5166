"""EASY backfilling."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.ordered import (
    KEY_PASS,
    KeyScheduler,
    check_backfill,
    parse_order,
)


@dataclass(eq=False, repr=False, kw_only=True)
class EASY(KeyScheduler):
    """EASY backfilling: jobs overtake if they do not delay the head of the queue.

    The head gets a reservation at its *shadow time*, when enough processors are expected to be
    free. A later job starts now if it is expected to end by then, or if it fits into the processors
    that the head leaves free at the shadow time. Source: Lifka 1995.

    Backfilling in the order ``sjbf`` (shortest job backfilled first) is that of Tsafrir, Etsion and
    Feitelson 2007, as in their simulator: the queue itself stays first come, first served.
    ``largest`` and ``best-fit`` are named in the literature without details; here ``best-fit``
    repeatedly takes the job with the largest processors x min(estimate, shadow time - now). Ties
    are broken by submission, then by number (unconfirmed).

    With more ``reservations``, or a ``depth``, each pass makes a plan, as conservative backfilling
    does: in the order of the queue each job gets the earliest start, until as many as may hold
    reservations start later; the others start if they delay none of these. A job with an estimate
    of 0 is planned for 1 s, and one that outruns its estimate is expected to run on.

    A pass costs time in proportion to the queue; running jobs cost nothing. Without options, a pass
    for arrivals between two ends only looks at the jobs that arrived. One that plans costs, at
    worst, the number of jobs that it looks at times the number of steps of the plan.

    Parameters
    ----------
    backfill
        The order in which later jobs are tried: ``queue`` (the order of the queue), ``fcfs`` (by
        submission), ``sjbf`` (shortest estimate first), ``largest`` (most processors first) or
        ``best-fit``.
    order
        The order of the queue: a key of ``hpcrowd.environment.schedulers.ordered.KEYS``, with a
        minus for large ones first. Its first job is the head.
    reservations
        How many jobs hold reservations: the head, and the next that cannot start.
    depth
        How many jobs behind the head a pass looks at, in the order of the queue; all if not given.

    Raises
    ------
    QuantityError
        If there is no such order, or a number is below 1.
    """

    name = "easy"
    compiled = KEY_PASS

    backfill: str = "queue"
    order: str = "submit"
    reservations: int = 1
    depth: int | None = None

    def __post_init__(self) -> None:
        check_backfill(self.backfill)
        self.queue_order = parse_order(self.order)
        for name, number in (("reservations", self.reservations), ("depth", self.depth)):
            if number is not None and number < 1:
                raise QuantityError(f"{name} {number}: must be at least 1")
