"""A plan of reservations, which conservative and selective backfilling keep from pass to pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from environment.jobs import UNKNOWN, Int64s, JobTable
from environment.schedulers.base import RunningJob, Scheduler, WaitingJob
from environment.schedulers.profile import Profile
from environment.schedulers.reasons import ReasonCode, WaitingReason
from environment.stops import FOREVER


class PlanningScheduler(Scheduler):
    """A scheduler that gives waiting jobs reservations: a start, and processors from then on.

    At each pass the reservations of the last one are put into the profile of the processors that
    running jobs leave. Where a running job outran its estimate there may be too few: at the first
    time at which that is so the job that stands latest in the queue, of those with a reservation
    over that time, loses it; and so on until the plan holds again.

    A job without a run time, as estimated, is planned for 1 s. Announced maintenance is a stretch
    of the profile without processors. When the platform changes, the plan is drawn anew, and
    promises may be broken.

    Attributes
    ----------
    starts
        Planned starts by the rows of jobs, s since the origin.
    """

    plans = True
    drains = True

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        self.starts: dict[int, int] = {}
        self._profile = Profile(0, total)
        self._recalled = False

    @override
    def changed(self, now: int) -> None:
        self.starts = {}

    def _resume(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> None:
        """Put what was planned into the profile of now, as far as it still holds."""
        self._profile = Profile(now, free, running)
        for start, end in self.windows:
            self._profile.add(start, end, -total)
        reserved = [job for job in waiting if job.row in self.starts]
        self.starts = {job.row: self.starts[job.row] for job in reserved}
        for job in reserved:
            self._occupy(job, self.starts[job.row], -1)
        for time in list(self._profile.times):
            while self._free_at(time) < 0:
                over = [job for job in reserved if self._covers(job, time)]
                if not over:
                    break
                self._cancel(over[-1])

    def _free_at(self, time: int) -> int:
        return self._profile.free[self._profile.times.index(time)]

    def _covers(self, job: WaitingJob, time: int) -> bool:
        start = self.starts.get(job.row, FOREVER)
        return start <= time < start + duration(job)

    def _occupy(self, job: WaitingJob, start: int, sign: int) -> None:
        self._profile.add(start, start + duration(job), sign * job.processors)

    def _cancel(self, job: WaitingJob) -> None:
        """Take the reservation of a job, if it has one."""
        start = self.starts.pop(job.row, None)
        if start is not None:
            self._occupy(job, start, +1)

    def _reserve(self, job: WaitingJob) -> int:
        """Give a job the earliest reservation that delays nobody else, and return its start.

        It is never later than the one it had. Where the job finds no processors at all, because
        part of the machine is down, there is none (FOREVER).
        """
        self._cancel(job)
        start = self._profile.earliest(job.processors, duration(job))
        if start < FOREVER:
            self.starts[job.row] = start
            self._occupy(job, start, -1)
            self.promises[job.row] = start
        return start

    @override
    def reasons(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingReason]:
        for place, job in enumerate(waiting, 1):
            if job.row in self.starts:
                yield self._planned(job, now, free, total, place)
                continue
            found = self.reason(job, now, free, total, place)
            fits = found.code == ReasonCode.NOT_CHOSEN
            yield found._replace(code=ReasonCode.CAN_START, note="") if fits else found

    def _planned(
        self, job: WaitingJob, now: int, free: int, total: int, place: int
    ) -> WaitingReason:
        """Return that a job has a reservation."""
        code = ReasonCode.PROMISED if self._recalled else ReasonCode.PLANNED
        found = self.reason(job, now, free, total, place)
        start = self.starts[job.row]
        return found._replace(code=code, start=start, reserved=UNKNOWN, up=UNKNOWN, note="")

    @override
    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        promised = jobs.promised[waiting]
        known = promised != UNKNOWN
        self.starts = dict(zip(waiting[known].tolist(), promised[known].tolist(), strict=True))
        self._recalled = True

    @override
    def wake(self, now: int) -> int | None:
        return min((start for start in self.starts.values() if start > now), default=None)


def duration(job: WaitingJob) -> int:
    """Return for how long a job is planned, s."""
    return max(job.estimate, 1)
