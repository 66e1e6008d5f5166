"""Conservative backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from hpcrowd.environment.schedulers.base import RunningJob, WaitingJob
from hpcrowd.environment.schedulers.plan import PlanningScheduler


class Conservative(PlanningScheduler):
    """Conservative backfilling with compression: jobs overtake if they delay nobody in the queue.

    Every job gets a reservation when it arrives, at the earliest hole in the plan. At every pass
    the plan is compressed: in the order of the queue each job gives its reservation up and takes
    the earliest there is then, which is never later (Mu'alem and Feitelson 2001; the order is that
    of submission, as in common simulators). So a job never starts later than it was promised first,
    as long as no job runs longer than its estimate.

    A pass costs, at worst, the number of waiting jobs times the number of steps of the plan; the
    compiled one looks only at jobs to which something that became free may matter.
    """

    name = "conservative"
    compiled = "hpcrowd.environment.engine.passes.planned:PlannedPass"

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        self._resume(now, waiting, running, free, total)
        return [job for job in waiting if self._reserve(job) == now]
