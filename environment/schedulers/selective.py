"""Selective backfilling: reservations for those who have waited long enough."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import override

from environment.errors import QuantityError
from environment.schedulers.base import EndedJob, RunningJob, WaitingJob
from environment.schedulers.plan import PlanningScheduler, duration

#: s; small jobs are shorter than the first, large ones not shorter than the second: medium are
#: those "from 1,000 to 10,000 seconds" (Minh 2012, section 7.2.2).
CATEGORIES = "1000/10001"


class Selective(PlanningScheduler):
    """Selective backfilling (Srinivasan et al. 2002): whoever has waited long gets a reservation.

    A job has no reservation until its expansion factor, (wait + estimate) / estimate, exceeds a
    threshold; then it gets the earliest there is and keeps it, or an earlier one as the plan is
    compressed. The others start whenever they delay no reservation. The threshold is the mean
    slowdown of the jobs that have ended so far, 1 before the first.

    In a pass, the plan is compressed first, in the order of the queue; then each job without a
    reservation, in the same order, starts now if it fits for the whole of its estimate, else gets a
    reservation if it has waited long enough.

    Parameters
    ----------
    threshold
        ``adaptive``, or a number of at least 1 that never changes.
    categories
        Run times, s, that part the jobs into categories, each with a threshold of its own, such as
        ``1000/10001``; ``none`` for one threshold for all. A job belongs to the category of its
        estimate.
    bound
        s; the run time of a shorter job counts as this much in its slowdown.

    Raises
    ------
    QuantityError
        When one of them is not of that kind.
    """

    name = "selective"
    remembers = True

    def __init__(
        self, *, threshold: str = "adaptive", categories: str = "none", bound: int = 1
    ) -> None:
        self.threshold = str(threshold)
        self.categories = str(categories)
        self.bound = bound
        self.fixed = None if self.threshold == "adaptive" else _number(self.threshold)
        self.cuts = () if self.categories == "none" else _cuts(self.categories)
        if bound < 1:
            raise QuantityError(f"bound {bound}: must be at least 1 s")

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        self._slowdowns = [0.0] * (len(self.cuts) + 1)
        self._ended = [0] * (len(self.cuts) + 1)

    @override
    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        for job in jobs:
            category = bisect_right(self.cuts, job.estimate)
            self._slowdowns[category] += (job.end - job.submit) / max(
                job.end - job.start, self.bound
            )
            self._ended[category] += 1

    def threshold_of(self, estimate: int) -> float:
        """Return the threshold that holds now for jobs with this estimate."""
        if self.fixed is not None:
            return self.fixed
        category = bisect_right(self.cuts, estimate)
        ended = self._ended[category]
        return self._slowdowns[category] / ended if ended else 1.0

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        reserved = set(self._starts)
        self._resume(now, waiting, running, free, total)
        started = [job for job in waiting if job.row in reserved and self._reserve(job) == now]
        for job in waiting:
            if job.row in reserved:
                continue
            length = duration(job)
            if self._profile.earliest(job.processors, length) == now:
                self._occupy(job, now, -1)
                started.append(job)
            elif (now - job.submit + length) / length > self.threshold_of(job.estimate):
                self._reserve(job)
        return started


class SelectiveCategorized(Selective):
    """Selective backfilling with a threshold for each of small, medium and large jobs.

    Small jobs run for less than 1,000 s, large ones for more than 10,000 s (Minh 2012, section
    7.2.2). See :class:`Selective`.
    """

    name = "selective-categorized"

    def __init__(
        self, *, threshold: str = "adaptive", categories: str = CATEGORIES, bound: int = 1
    ) -> None:
        super().__init__(threshold=threshold, categories=categories, bound=bound)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number < float("inf"):
        raise QuantityError(f"threshold {text!r}: must be adaptive, or a number of at least 1")
    return number


def _cuts(text: str) -> tuple[int, ...]:
    parts = text.split("/")
    cuts = tuple(int(part) for part in parts if part.isdecimal())
    if len(cuts) < len(parts) or cuts[0] < 1 or any(b <= a for a, b in pairwise(cuts)):
        raise QuantityError(
            f"categories {text!r}: must be none, or rising run times in s such as {CATEGORIES}"
        )
    return cuts
