"""Conservative backfilling, and the plan of reservations that it keeps from pass to pass.

Selective backfilling keeps such a plan, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.schedulers.base import (
    Look,
    Plan,
    ReasonCode,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.profile import Profile, duration
from hpcrowd.environment.stops import FOREVER


class PlanningScheduler(Scheduler):
    """A scheduler that gives waiting jobs reservations: a start, and processors from then on.

    At each pass the reservations of the last pass are put into the profile of the processors that
    running jobs leave. If a running job has outrun its estimate, there may be too few: then, at the
    first time with a shortage, the last job in the queue with a reservation over that time loses
    it, and so on until the plan holds again.

    A job with an estimate of 0 is planned for 1 s. During announced maintenance the profile has no
    processors. When the platform changes, a new plan is made, and promises may be broken.

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
        self._profile: Plan = Profile(0, total)
        self._recalled = False

    @override
    def changed(self, now: int) -> None:
        self.starts = {}

    @override
    def nothing_waits(self, now: int) -> None:
        super().nothing_waits(now)
        self.starts = {}  # those that ran may come back

    def _resume(self, look: Look) -> None:
        """Put the reservations that still hold into a new profile."""
        reserved = [job for job in look.waiting if job.row in self.starts]
        self.starts = {job.row: self.starts[job.row] for job in reserved}
        if look.nodes is not None:
            plan = look.nodes.plan(look, reserved, self.starts)
            self._profile = plan
            for job in plan.lost:
                del self.starts[job.row]
            return
        self._profile = profile = self._profile_of(look, reserved)
        for time in list(profile.times):
            while profile.free[profile.times.index(time)] < 0:
                starts = ((job, self.starts.get(job.row, FOREVER)) for job in reserved)
                over = [job for job, start in starts if start <= time < start + duration(job)]
                if not over:
                    break
                self._cancel(over[-1])

    def _drawn(self, look: Look, reserved: Sequence[WaitingJob]) -> Plan:
        """Return what running jobs, maintenance and reservations leave; it changes nothing."""
        if look.nodes is not None:
            return look.nodes.plan(look, reserved, self.starts)
        return self._profile_of(look, reserved)

    def _profile_of(self, look: Look, reserved: Iterable[WaitingJob]) -> Profile:
        """Return the processors that running jobs, maintenance and reservations leave.

        Reservations of the past second count from now on.
        """
        profile = Profile(look.now, look.free, look.running)
        for start, end in self.windows:
            profile.add(max(start, look.now), end, -look.total)
        for job in reserved:
            start = max(self.starts[job.row], look.now)
            profile.occupy(job, start, -1)
        return profile

    def _cancel(self, job: WaitingJob) -> None:
        """Cancel the reservation of a job, if it has one."""
        start = self.starts.pop(job.row, None)
        if start is not None:
            self._profile.occupy(job, start, +1)

    def _reserve(self, job: WaitingJob) -> int:
        """Give a job the earliest reservation that delays no other job, and return its start.

        It is never later than the previous one. If there are never enough processors, because part
        of the machine is down, it gets none (FOREVER).
        """
        self._cancel(job)
        start = self._profile.earliest_of(job)
        if start < FOREVER:
            self.starts[job.row] = start
            self._profile.occupy(job, start, -1)
            self.promises[job.row] = start
        return start

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        for place, job in enumerate(look.waiting, 1):
            if job.row in self.starts:
                yield self._planned(job, look, place)
                continue
            found = self.reason(job, look, place)
            fits = found.code == ReasonCode.NOT_CHOSEN
            yield found._replace(code=ReasonCode.CAN_START, note="") if fits else found

    def _planned(self, job: WaitingJob, look: Look, place: int) -> WaitingReason:
        """Return that a job has a reservation."""
        code = ReasonCode.PROMISED if self._recalled else ReasonCode.PLANNED
        found = self.reason(job, look, place)
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


class Conservative(PlanningScheduler):
    """Conservative backfilling with compression: jobs overtake if they delay no job in the queue.

    Every job gets a reservation when it arrives, at the earliest hole in the plan. At every pass
    the plan is compressed: in the order of the queue, each job gives up its reservation and takes
    the earliest one possible, which is never later (Mu'alem and Feitelson 2001; the order is that
    of submission, as in common simulators). So a job never starts later than first promised, as
    long as no job runs longer than its estimate.

    A pass costs, at worst, the number of waiting jobs times the number of steps of the plan; the
    compiled one looks only at jobs that newly freed processors may affect.
    """

    name = "conservative"
    compiled = "hpcrowd.environment.engine.passes.planned:PlannedPass"

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        self._resume(look)
        return [job for job in look.waiting if self._reserve(job) == look.now]
