"""The nodes of a machine under a policy that knows only processors.

They hold what is free and who holds it, and find room for jobs: partitions, features, memory, GPUs,
whole nodes, reservations, and the limits of the site with Slurm's words for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, override

from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import Holding, select
from hpcrowd.environment.schedulers.base import Look, WaitingJob
from hpcrowd.environment.schedulers.on_nodes.plan import NodePlan
from hpcrowd.environment.schedulers.on_nodes.room import Arrays, OpenStock, Place
from hpcrowd.environment.schedulers.on_nodes.walk import NodesPass
from hpcrowd.environment.schedulers.ordered import OrderedScheduler
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob, Tenure
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook  # circle: for its type only


class Nodes(SiteRules):
    """The nodes of a machine, with the jobs that wait for them and run on them.

    Attributes
    ----------
    now
        The present second.
    waiting, running
        The jobs by row, with what they ask; :attr:`QueuedJob.holding` is what they hold.
    shut_out
        Rows of waiting jobs that no policy could start when they were last looked at.
    ledger
        What each job held, in the order of their starts.
    planner
        Foretells starts, once somebody has asked for one.
    """

    def __init__(self, machine: Machine, jobs: JobTable) -> None:
        super().__init__(machine, ranked=False)
        self.admission = Admission(self, jobs)
        self.stock = OpenStock(self.layout)
        self.now = 0
        self.waiting: dict[int, QueuedJob] = {}
        self.running: dict[int, QueuedJob] = {}
        self.shut_out: set[int] = set()
        self._watched: set[int] = set()  # jobs that are shut out, or may be later
        self.ledger: list[Tenure] = []
        self._tasks: Counter[int] = Counter()  # running tasks by array
        self.arrays = Arrays()
        self._plan: NodePlan | None = None
        self.planner: SlurmBook | None = None

    def sketch(self) -> Nodes:
        """Return a copy to try what would start; what it starts does not start here."""
        other = object.__new__(Nodes)
        vars(other).update(vars(self))
        other.stock, other.limits = self.stock.copy(), self.limits.copy()
        other.waiting = {row: copy(job) for row, job in self.waiting.items()}
        other.running, other.ledger = dict(self.running), []
        other._tasks = self._tasks.copy()
        return other

    # the queue

    def join(self, row: int) -> None:
        """Let a job join the queue."""
        self.waiting[row] = job = self.admission.queued(row, self.now)
        if self.shut(job) or job.reservation:
            self._watched.add(row)
        self.limits.submitted(job)

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        self.limits.submitted(self.waiting.pop(row), -1)
        self._watched.discard(row)

    def start(self, row: int, place: Place) -> None:
        """Let a waiting job start now."""
        job = self.waiting.pop(row)
        job.partition, job.holding, job.start = place.partition, place.holding, self.now
        self.stock.take(place.holding)
        self._note_start(job)

    def seat(self, job: QueuedJob) -> None:
        """Take note of a job that runs already, with what it holds, which is taken."""
        self.limits.submitted(job)
        self._note_start(job)

    def _note_start(self, job: QueuedJob) -> None:
        self.running[job.row] = job
        self.ledger.append(Tenure.of(job, job.start))
        self.limits.started(job)
        self._tasks[job.array] += 1

    def finish(self, row: int) -> None:
        """Let a running job give back what it holds."""
        job = self.running.pop(row)
        self.stock.give(job.holding)
        self.limits.started(job, -1)
        self.limits.submitted(job, -1)
        self._tasks[job.array] -= 1

    def update(self, waiting: Sequence[WaitingJob], now: int) -> Sequence[WaitingJob]:
        """Take note of the queue at a second, and return the jobs that a policy may start."""
        self.now = now
        for job in waiting:
            if job.row not in self.waiting:
                self.join(job.row)
        if not self._watched:
            return waiting
        self._watched &= {job.row for job in waiting}
        self.shut_out = {row for row in self._watched if self.shut(self.waiting[row])}
        return tuple(job for job in waiting if job.row not in self.shut_out)

    # what keeps a job from starting

    def shut(self, job: QueuedJob) -> str:
        """Return why no policy could start a job now, in Slurm's words; empty if one could."""
        if job.eligible > self.now:
            return "BeginTime"
        for one, _ in self.reservations:
            if job.reservation == one.name and not (
                one.start <= self.now <= one.end - max(job.limit, 1)
            ):
                return "Reservation"
        return "" if any(self._up(name) for name in job.partitions) else "PartitionDown"

    def _up(self, partition: str) -> bool:
        return self.layout.partitions[partition].up

    def limited(self, job: QueuedJob, place: Place | None = None) -> str:
        """Return the limit that keeps a job from running in ``place``, or in any partition."""
        if job.throttle and self._tasks[job.array] >= job.throttle:
            return "JobArrayTaskLimit"
        if not self.limits.enforced:
            return ""
        if place is not None:
            return self.limits.before(job, place.partition) or self.limits.after(
                job, *place, self.now
            )
        word = ""
        for name in job.partitions:
            word = self.limits.before(job, name) or self.limits.after(job, name, now=self.now)
            if not word:
                return ""
        return word

    @override
    def barred(self, job: QueuedJob, begin: int, lasts: int) -> int:
        return super().barred(job, begin, max(lasts, job.limit, 1))

    @property
    def turns(self) -> list[int]:
        """When reservations begin and end after now, s since the origin, in order."""
        times = {time for one, _ in self.reservations for time in (one.start, one.end)}
        return sorted(time for time in times if time > self.now)

    def usable(self, job: QueuedJob) -> int:
        """Return the set of nodes that a job could ever use."""
        return reduce(or_, (job.demands[name].nodes for name in job.partitions), 0)

    def why(self, job: QueuedJob, lasts: int) -> str:
        """Return why a job cannot start now, in Slurm's words; empty if it can."""
        limit = self.shut(job) or self.limited(job)
        if limit:
            return limit
        place = self.room(job, self.stock, self.now, lasts)
        if place is not None:
            return self.limited(job, place)
        barred = self.barred(job, self.now, lasts)
        if not barred or self.room(job, self.stock, self.now, lasts, free_of_bars=True) is None:
            return "Resources"
        if job.reservation:
            return "Reservation"
        kept = [one for one, nodes in self.reservations if nodes & barred and one.maintenance]
        return "ReqNodeNotAvail, Reserved for maintenance" if kept else "ReqNodeNotAvail"

    # room

    def room(
        self,
        job: QueuedJob,
        stock: OpenStock,
        at: int,
        lasts: int,
        without: int = 0,
        *,
        free_of_bars: bool = False,
    ) -> Place | None:
        """Return the first partition of a job with room for it, and what it would hold there.

        The stock is what is free at its start, s since the origin; it is expected to run for
        ``lasts`` s, and must not use the nodes ``without``. Reservations count unless
        ``free_of_bars``.
        """
        allowed = stock.open & ~without
        if self.reservations and not free_of_bars:
            allowed &= ~self.barred(job, at, lasts)
        for name in job.partitions:
            demand = job.demands[name]
            if demand.cores > stock.free or not self._up(name):
                continue
            holding = select(stock, demand, allowed, self.rule)
            if holding is not None:
                return Place(name, holding)
        return None

    def earliest(
        self, job: QueuedJob, lasts: int, ends: Sequence[tuple[int, Holding]]
    ) -> tuple[int, OpenStock, Place | None]:
        """Return when a job could start, what is free then, and where it would run.

        FOREVER if it could not, as running jobs end: ``ends`` are their expected ends and holdings.
        """
        stock = self.stock.copy()
        leaving = sorted(ends, key=lambda one: one[0])
        times = {self.now, *(end for end, _ in leaving), *self.turns}
        gone = 0
        for time in sorted(times):
            while gone < len(leaving) and leaving[gone][0] <= time:
                stock.give(leaving[gone][1])
                gone += 1
            place = self.room(job, stock, time, lasts)
            if place is not None:
                return time, stock, place
        return FOREVER, stock, None

    # what schedulers see

    def fits(self, job: WaitingJob) -> bool:
        """Return whether a waiting job can start now."""
        known = self.waiting.get(job.row)
        return known is not None and not self.why(known, job.estimate)

    def walk(
        self, policy: OrderedScheduler, look: Look, note: Callable[..., None] | None
    ) -> Iterator[WaitingJob]:
        """Yield the jobs that a policy with an order starts now: ``OrderedScheduler._walk``."""
        return NodesPass(self, policy, look, note).run()

    def plan(self, look: Look, reserved: Sequence[WaitingJob], starts: dict[int, int]) -> NodePlan:
        """Return what running jobs and reservations leave from now on, node by node."""
        self._plan = NodePlan(self, look, reserved, starts, self._plan)
        return self._plan
