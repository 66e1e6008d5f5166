"""Conservative backfilling, and the plan of reservations that it keeps from pass to pass.

Selective backfilling keeps such a plan, too. :class:`Profile` is the plan as the policies change
it, :class:`Holes` the room that it leaves now, for the reasons why a job does not start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, override

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.schedulers.base import (
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.stops import FOREVER

#: Processors, more than any machine has.
CLOSED = 2**40


class Profile:
    """A step function of free processors over time, from now on.

    Parameters
    ----------
    now, free
        The present second, and the processors without a job.
    running
        The running jobs, which give theirs back at their expected ends.
    """

    def __init__(self, now: int, free: int, running: Iterable[RunningJob] = ()) -> None:
        self.times = [now]
        self.free = [free]
        for job in running:
            self.add(job.expected_end, FOREVER, job.processors)

    def add(self, start: int, end: int, processors: int) -> None:
        """Add free processors from ``start`` to ``end``; a negative number takes them."""
        first, last = self._step(start), self._step(end)
        for i in range(first, last):
            self.free[i] += processors

    def earliest(self, processors: int, duration: int) -> int:
        """Return the earliest time from which so many are free so long, FOREVER if none is."""
        start = self.times[0]
        for i, free in enumerate(self.free):
            if self.times[i] >= start + duration:
                break
            if free < processors:
                start = self.times[i + 1] if i + 1 < len(self.times) else FOREVER
        return start

    def _step(self, time: int) -> int:
        """Return the number of the step that begins at ``time``; begin one if need be."""
        i = bisect_right(self.times, time) - 1
        if time == FOREVER:
            return len(self.times)
        if self.times[i] != time:
            i += 1
            self.times.insert(i, time)
            self.free.insert(i, self.free[i - 1])
        return i


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

    def _resume(self, look: Look) -> None:
        """Put what was planned into the profile of now, as far as it still holds."""
        self._profile = Profile(look.now, look.free, look.running)
        for start, end in self.windows:
            self._profile.add(start, end, -look.total)
        reserved = [job for job in look.waiting if job.row in self.starts]
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
    def select(self, look: Look) -> Iterable[WaitingJob]:
        self._resume(look)
        return [job for job in look.waiting if self._reserve(job) == look.now]


def duration(job: WaitingJob) -> int:
    """Return for how long a job is planned, s."""
    return max(job.estimate, 1)


class Reservation(NamedTuple):
    """Processors kept for a job."""

    row: int
    processors: int
    start: int  #: s since the origin
    length: int  #: s


class Holes:
    """The processors that running jobs and reservations leave, from now on, in arrays.

    What :class:`Profile` is for planning, with thousands of reservations at once. Reservations of
    the past second count from now on.

    Parameters
    ----------
    look
        What the scheduler is shown.
    held
        The reservations, in the order of the queue.
    windows
        Announced maintenance, from and to, s since the origin.

    Attributes
    ----------
    free_now
        Processors without a job; those kept for reservations count too.
    """

    def __init__(
        self,
        look: Look,
        held: Sequence[Reservation],
        windows: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.now = now = look.now
        self.free_now = look.free
        self.held = held
        begins = [max(one.start, now) for one in held]
        ends = [begin + one.length for begin, one in zip(begins, held, strict=True)]
        steps = [(now, look.free)]
        steps += [(job.expected_end, job.processors) for job in look.running]
        steps += [(begin, -one.processors) for begin, one in zip(begins, held, strict=True)]
        steps += [(end, one.processors) for end, one in zip(ends, held, strict=True)]
        # Nobody runs into maintenance: processors are away for more than there are.
        steps += [(max(start, now), -CLOSED) for start, _ in windows]
        steps += [(end, CLOSED) for _, end in windows]
        times, changes = np.array(steps, np.int64).T
        self.times, which = np.unique(times, return_inverse=True)
        changed = np.zeros(len(self.times), np.int64)
        np.add.at(changed, which, changes)
        self.free: Int64s = np.cumsum(changed)
        self._rises = self._taken()
        self._over: dict[int, Reservation | None] = {}
        self._begins = np.array(begins, np.int64)
        self._ends = np.array(ends, np.int64)

    def blocker(self, processors: int, length: int) -> Reservation | None:
        """Return whose reservation a job that started now would break first, None for nobody's.

        Where there would be too few processors for several, the last of them in the queue loses it.
        """
        last = int(np.searchsorted(self.times, self.now + length))
        first = int(np.searchsorted(self._rises, -processors, "right"))  # too few there
        return None if first >= last else self._last_over(int(self.times[first]))

    def _taken(self) -> Int64s:
        """Return minus the fewest that were free up to each step, which rises."""
        taken: Int64s = -np.minimum.accumulate(self.free)
        return taken

    def _last_over(self, time: int) -> Reservation | None:
        """Return the last reservation in the queue that holds processors at a time."""
        if time not in self._over:
            over = np.flatnonzero((self._begins <= time) & (time < self._ends))
            self._over[time] = self.held[int(over[-1])] if len(over) else None
        return self._over[time]

    def fill(self, processors: int, length: int) -> None:
        """Let a job start now."""
        end = self.now + length
        last = int(np.searchsorted(self.times, end))
        if last == len(self.times) or self.times[last] != end:
            self.times = np.insert(self.times, last, end)
            self.free = np.insert(self.free, last, self.free[last - 1])
        self.free[:last] -= processors
        self.free_now -= processors
        self._rises = self._taken()
