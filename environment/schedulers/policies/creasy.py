"""CREASY: EASY with a priority for jobs whose delay would make users leave."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import override

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.base import WaitingJob
from hpcrowd.environment.schedulers.ordered import OrderedScheduler, check_backfill

#: min^2; with this value a job with an immediate response weighs as much as one that has waited for
#: a day: 0.04 per min x 36,000 min^2 = 1,440 min. Unconfirmed.
ALPHA = 36_000.0

#: Probability to continue after an immediate response (Shmueli and Feitelson 2007, after STARS).
LIMIT = 0.8

#: 1/min, decline of the probability with the response time (the same source).
DECLINE = 0.05


@dataclass(eq=False, repr=False, kw_only=True)
class Creasy(OrderedScheduler):
    """CREASY (Shmueli and Feitelson 2009): seniority against criticality, with EASY backfilling.

    Users whose job has a response time of RT minutes continue their session with the probability
    P = limit / (decline * RT + 1). The *criticality* of a job is how much a further delay lowers
    that probability, |dP/dRT| = limit * decline / (decline * RT + 1)^2 per minute, where RT is the
    response time if the job starts now: its wait plus its estimate. Its *seniority* is its wait in
    minutes. The queue is ordered by seniority + alpha * criticality, the largest first; its head
    holds a reservation as in EASY.

    From the sources that we have: CREASY is EASY with a priority of these two, weighted by alpha,
    and the law of P. Our reading, unconfirmed: the sum, its units, the value of alpha, RT as wait
    plus estimate, and backfilling in the order of priority too. With alpha = 0 it is EASY.

    A pass costs time in proportion to the queue, since all priorities change with time.

    Parameters
    ----------
    alpha
        min^2, weight of the criticality, unconfirmed.
    limit
        The probability to continue after an immediate response.
    decline
        1/min, decline of that probability.
    backfill
        The order in which later jobs are tried, see
        :class:`~hpcrowd.environment.schedulers.easy.EASY`.

    Raises
    ------
    QuantityError
        If a number is negative or not finite, or the limit is not a probability.
    """

    name = "creasy"
    compiled = "hpcrowd.environment.engine.passes.ordered:CreasyPass"

    alpha: float = ALPHA
    limit: float = LIMIT
    decline: float = DECLINE
    backfill: str = "queue"

    def __post_init__(self) -> None:
        for what in ("alpha", "limit", "decline"):
            value = getattr(self, what)
            if not (isfinite(value) and value >= 0):
                raise QuantityError(f"creasy: {what} {value}: must be 0 or more")
        if self.limit > 1:
            raise QuantityError(
                f"creasy: limit {self.limit}: is a probability and must be at most 1"
            )
        check_backfill(self.backfill)

    @override
    def key(self, job: WaitingJob, now: int) -> float:
        wait = now - job.submit
        slope = self.decline * ((wait + job.estimate) / 60) + 1.0
        return -(wait / 60 + self.alpha * (self.limit * self.decline / (slope * slope)))

    @property
    @override
    def order_words(self) -> str:
        return "by seniority and criticality"
