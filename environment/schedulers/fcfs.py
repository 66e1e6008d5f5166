"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from hpcrowd.environment.schedulers.base import RunningJob, Scheduler, WaitingJob, WaitingReason
from hpcrowd.environment.schedulers.ordered import QueueRules, QueueWalk, reservation


class FCFS(Scheduler):
    """First come, first served: nobody overtakes."""

    name = "fcfs"
    drains = True

    @override
    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        for job in waiting:
            if job.processors > free or now + job.estimate > self.closes:
                break
            free -= job.processors
            yield job

    @override
    def reasons(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingReason]:
        rules = QueueRules("", lambda user, queue: (), reservation, None)
        return QueueWalk(self, rules, now, waiting, running, free, total).reasons()
