"""Policies that keep a plan of reservations: conservative and selective backfilling."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import override

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.schedulers.base import (
    EndedJob,
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


#: s; small jobs are shorter than the first, large ones not shorter than the second: medium are
#: those "from 1,000 to 10,000 seconds" (Minh 2012, section 7.2.2).
CATEGORIES = "1000/10001"

#: Compiled form of both policies.
SELECTIVE_PASS = "hpcrowd.environment.engine.passes.planned:SelectivePass"


@dataclass(eq=False, repr=False, kw_only=True)
class Selective(PlanningScheduler):
    """Selective backfilling (Srinivasan et al. 2002): jobs that waited long get a reservation.

    A job has no reservation until its expansion factor, (wait + estimate) / estimate, exceeds a
    threshold; then it gets the earliest possible one and keeps it, or an earlier one as the plan is
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
        Run times, s, that divide the jobs into categories, each with its own threshold, such as
        ``1000/10001``; ``none`` for one threshold for all. A job belongs to the category of its
        estimate.
    bound
        s; the run time of a shorter job counts as this much in its slowdown.

    Raises
    ------
    QuantityError
        If one of them is not valid.
    """

    name = "selective"
    compiled = SELECTIVE_PASS
    remembers = True

    threshold: str = "adaptive"
    categories: str = "none"
    bound: int = 1

    def __post_init__(self) -> None:
        self.threshold, self.categories = str(self.threshold), str(self.categories)
        self.fixed = None if self.threshold == "adaptive" else _number(self.threshold)
        self.cuts = () if self.categories == "none" else _cuts(self.categories)
        if self.bound < 1:
            raise QuantityError(f"bound {self.bound}: must be at least 1 s")

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

    def hear(self, slowdowns: list[float], ended: list[int]) -> None:
        """Set the sum of slowdowns, and the number of jobs that ended, in each category so far."""
        self._slowdowns, self._ended = slowdowns, ended

    def threshold_of(self, estimate: int) -> float:
        """Return the present threshold for jobs with this estimate."""
        if self.fixed is not None:
            return self.fixed
        category = bisect_right(self.cuts, estimate)
        ended = self._ended[category]
        return self._slowdowns[category] / ended if ended else 1.0

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        now, waiting, reserved = look.now, look.waiting, set(self.starts)
        self._resume(look)
        started = [job for job in waiting if job.row in reserved and self._reserve(job) == now]
        for job in waiting:
            if job.row in reserved:
                continue
            if self._profile.earliest_of(job) == now:
                self._profile.occupy(job, now, -1)
                started.append(job)
            elif (
                self._factor(job, now) > self.threshold_of(job.estimate)
                and self._reserve(job) == now  # on nodes, where looking for room has made some
            ):
                started.append(job)
        return sorted(started, key=lambda job: (job.submit, job.row))

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        now = look.now
        held = [job for job in look.waiting if job.row in self.starts]
        profile = self._drawn(look, held)

        @cache
        def last_over(time: int) -> WaitingJob | None:
            """Return the last in the queue whose reservation holds processors at a time.

            If there are too few processors for several, that one loses it.
            """
            for job in reversed(held):
                start = max(self.starts[job.row], now)
                if start <= time < start + duration(job):
                    return job
            return None

        for place, job in enumerate(look.waiting, 1):
            if job.row in self.starts:
                yield self._planned(job, look, place)
                continue
            found = self.reason(job, look, place)
            if found.code == ReasonCode.NOT_CHOSEN:
                if profile.earliest_of(job) == now:
                    profile.occupy(job, now, -1)
                    look = look._replace(free=look.free - job.processors)
                    yield found._replace(code=ReasonCode.CAN_START, note="")
                    continue
                blocker = last_over(profile.shortage_of(job))
                if blocker is not None:
                    found = found._replace(
                        code=ReasonCode.WOULD_DELAY,
                        note="",
                        blocker=blocker.row,
                        reserved=max(self.starts[blocker.row], now),
                    )
            if found.code in (ReasonCode.NO_ROOM, ReasonCode.WOULD_DELAY):
                found = found._replace(note=self._patience(job, now))
            yield found

    def _factor(self, job: WaitingJob, now: int) -> float:
        """Return the expansion factor of a job if it started now."""
        return (now - job.submit + duration(job)) / duration(job)

    def _patience(self, job: WaitingJob, now: int) -> str:
        """Return in words how close a job is to a reservation."""
        factor, threshold = self._factor(job, now), self.threshold_of(job.estimate)
        if factor > threshold:
            return "gets a reservation next"
        return f"no reservation below a slowdown of {threshold:.2f}, it would have {factor:.2f}"

    @override
    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        category = np.searchsorted(np.array(self.cuts, np.int64), jobs.estimate[ended], "right")
        lasted = np.maximum(jobs.end[ended] - jobs.start[ended], self.bound)
        slowdowns = (jobs.end[ended] - jobs.enqueued[ended]) / lasted
        categories = len(self.cuts) + 1
        self.hear(
            np.bincount(category, slowdowns, categories).tolist(),
            np.bincount(category, minlength=categories).tolist(),
        )
        length = np.maximum(jobs.estimate[waiting], 1)
        factors = (now - jobs.enqueued[waiting] + length) / length
        needed = np.array([self.threshold_of(one) for one in jobs.estimate[waiting].tolist()])
        super().recall(now, jobs, ended, running, waiting[factors > needed])


@dataclass(eq=False, repr=False, kw_only=True)
class SelectiveCategorized(Selective):
    """Selective backfilling with a threshold for each of small, medium and large jobs.

    Small jobs run for less than 1,000 s, large ones for more than 10,000 s (Minh 2012, section
    7.2.2). See :class:`Selective`.
    """

    name = "selective-categorized"
    compiled = SELECTIVE_PASS
    categories: str = CATEGORIES


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
