"""Slurm's controller in plain Python: the queue, the main scheduler's pass, and when they happen.

Passes of the main scheduler come ``batch_sched_delay`` seconds after the last at the earliest when
jobs were submitted or have ended, at once when a killed job has left its nodes, and every
``sched_interval`` seconds with the whole queue, whatever passes there were in between. Cycles of
the backfill scheduler come ``bf_interval`` seconds after the end of the last. Priorities are
computed at submission, and anew every ``calculation_period`` seconds (slurmctld; slurm.conf(5),
SchedulerParameters).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.model import Machine, Preempt
from hpcrowd.environment.machine.past import Phases
from hpcrowd.environment.machine.selection import RULES, Rule, select
from hpcrowd.environment.machine.stock import Holding, Stock
from hpcrowd.environment.schedulers.slurm.backfill import BackfillCycle
from hpcrowd.environment.schedulers.slurm.limits import LimitKeeper
from hpcrowd.environment.schedulers.slurm.preemption import Preemption
from hpcrowd.environment.schedulers.slurm.priority import Priorities
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Shares
from hpcrowd.environment.schedulers.slurm.timing import LOOK_EVERY, MOST_PASSES
from hpcrowd.environment.stops import FOREVER

#: Reason of jobs whose nodes are kept for others, in Slurm's words.
NODES_KEPT = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)

#: Reason of jobs that do not fit on the nodes that are left, even if those were free.
NOT_AVAILABLE = "ReqNodeNotAvail"

#: Reasons that the main scheduler may replace by ``Priority``.
PASSING = frozenset({"None", "Resources", NODES_KEPT})


class Stopped(NamedTuple):
    """A running job that is stopped to make room."""

    job: QueuedJob
    fate: Preempt
    holding: Holding


class Controller:
    """The scheduler of a machine.

    Parameters
    ----------
    machine
        Its description.
    rule
        The rule of placement, one of :data:`~hpcrowd.environment.machine.selection.RULES`, or a
        function.

    Attributes
    ----------
    stock
        What is free.
    up
        The set of nodes that are up.
    waiting, running
        Jobs by row, in the order of submission.
    started, stopped
        Since they were last read: jobs that were started, and those that were preempted.
    suspended, resumed
        Since they were last read: jobs that were suspended, and those that went on.
    """

    def __init__(
        self,
        machine: Machine,
        rule: str | Rule = "slurm",
    ) -> None:
        self.layout = Layout(machine)
        self.settings = machine.scheduling
        self.rule = RULES[rule] if isinstance(rule, str) else rule
        if self.rule is None and self.settings.least_loaded:
            self.rule = RULES["spread"]
        self.stock = Stock(self.layout)
        self.up = self.layout.all_nodes
        self.shares = Shares(machine)
        self.limits = LimitKeeper(self.layout)
        self.priorities = Priorities(self.layout)
        self.preemption = Preemption(self.layout)
        self.waiting: dict[int, QueuedJob] = {}
        self.running: dict[int, QueuedJob] = {}
        self.started: list[QueuedJob] = []
        self.stopped: list[Stopped] = []
        self.suspended: list[QueuedJob] = []
        self.resumed: list[QueuedJob] = []
        self._tasks: dict[int, int] = {}  # running tasks by array
        self._wanted = self._urgent = False
        self._looked_at_all = -1  # the second of the last pass over the whole queue
        self._last_main = -(2**40)
        self._next_full = -1  # unknown before the first submission
        self._next_backfill = self.settings.backfill_phase
        self._last_backfill = 0
        self._changed = -1  # the second of the last change of a job or node
        self._planned = False  # whether the last cycle marked nodes as planned
        self._over: list[tuple[QueuedJob, int, int]] = []  # ran since the last calculation
        self._reservations = [
            (one, self.layout.nodes_in(one.nodes)) for one in machine.reservations
        ]
        self.at(0)
        self.shares.rank()

    def copy(self) -> Controller:
        """Return an independent copy, to foretell with."""
        other = copy(self)
        other.stock, other.limits = self.stock.copy(), self.limits.copy()
        other.shares = self.shares.copy()

        def own(job: QueuedJob) -> QueuedJob:
            twin = copy(job)
            twin.association = other.shares.all[job.association.place]
            return twin

        other.waiting = {row: own(job) for row, job in self.waiting.items()}
        other.running = {row: own(job) for row, job in self.running.items()}
        other._over = [(own(job), start, over) for job, start, over in self._over]
        other.started, other.stopped, other._tasks = [], [], dict(self._tasks)
        other.suspended, other.resumed = [], []
        return other

    def at(self, now: int) -> None:
        """Begin at a second, without usage or priorities from before."""
        phase = self.settings.calculation_phase
        self._calculated = now - -phase % self.priorities.settings.calculation_period

    @property
    def calculated(self) -> int:
        """Until when usage and priorities have been computed, s."""
        return self._calculated

    @property
    def next_backfill(self) -> float:
        """When the next cycle of backfilling may come, s."""
        return self._next_backfill

    def restore(
        self,
        waiting: Iterable[QueuedJob],
        running: Iterable[QueuedJob],
        over: Iterable[tuple[QueuedJob, int, int]],
        phases: Phases,
    ) -> None:
        """Take over the jobs and the times of another form of the controller, or of a state.

        Parameters
        ----------
        waiting, running, over
            Jobs that wait, by submission; that run, by start; and that ended since the last
            calculation, with start and end, s.
        phases
            What it did last when.
        """
        for job in waiting:
            self.waiting[job.row] = job
            self.limits.submitted(job)
        for job in running:
            self.running[job.row] = job
            self.limits.submitted(job)
            self.limits.started(job)
            self.stock.take(job.holding)
            if job.array >= 0:
                self._tasks[job.array] = self._tasks.get(job.array, 0) + 1
        self._over = list(over)
        self._calculated, self._changed = phases.calculated, phases.changed
        self._last_main, self._last_backfill = phases.last_main, phases.last_backfill
        self._next_full, self._looked_at_all = phases.next_full, phases.looked_at_all
        self._next_backfill, self._planned = phases.next_backfill, phases.planned
        self._wanted, self._urgent = phases.wanted, phases.urgent

    @property
    def phases(self) -> Phases:
        """What it did last when, and what comes next."""
        return Phases(
            calculated=self._calculated,
            last_main=self._last_main,
            next_full=self._next_full,
            looked_at_all=self._looked_at_all,
            last_backfill=self._last_backfill,
            next_backfill=self._next_backfill,
            changed=self._changed,
            planned=self._planned,
            wanted=self._wanted,
            urgent=self._urgent,
        )

    def phases_at(self, now: int) -> Phases:
        """Return the phases of a controller that begins in the middle: every pass is due now."""
        period = self.priorities.settings.calculation_period
        return Phases(
            calculated=self._calculated + (now - self._calculated) // period * period,
            last_main=self._last_main,
            next_full=now,
            looked_at_all=-1,
            last_backfill=self._last_backfill,
            next_backfill=max(float(now), self.settings.backfill_phase),
            changed=now,
        )

    def weigh_again(self, times: Iterable[int]) -> None:
        """Compute the priorities of the waiting jobs as at these seconds, one each."""
        for job, time in zip(self.waiting.values(), times, strict=True):
            self._weigh(job, int(time))

    def is_current(self, now: int) -> bool:
        """Return whether usage and priorities have been computed for all periods until now."""
        return self._calculated + self.priorities.settings.calculation_period > now

    # events

    def submit(self, job: QueuedJob, now: int) -> None:
        """Put a job into the queue."""
        self._pass_quietly(now)
        self.calculate(now)
        self.waiting[job.row] = job
        self.limits.submitted(job)
        if self._next_full < 0:
            self._next_full = now + self.settings.full_pass_phase
        self._weigh(job, now)
        self._wanted, self._changed, self._looked_at_all = True, now, -1

    def finish(self, row: int, now: int, *, killed: bool = False) -> None:
        """Note that a running job has ended; ``killed`` at its limit or by its user."""
        self._pass_quietly(now)
        self.calculate(now)
        job = self.running[row]
        self._leave(job, now)
        self.limits.submitted(job, -1)
        self._wanted, self._changed, self._looked_at_all = True, now, -1
        self._urgent |= killed
        if not self.waiting and self._due(now):
            self._last_main, self._wanted, self._urgent = now, False, False

    def nothing_waits(self, now: int) -> None:
        """Note that the pass of a second finds nothing that waits."""
        self._resume(now)
        if self._wanted and self._due(now):
            self._last_main, self._wanted, self._urgent = now, False, False

    def _due(self, now: int) -> bool:
        return self._urgent or now - self._last_main >= self.settings.batch_sched_delay

    def _pass_quietly(self, now: int) -> None:
        """Note the passes and cycles until now in which the queue was empty.

        Nothing is called for them, but they decide when the next ones come.
        """
        if self.waiting:
            return
        settings, due = self.settings, math.ceil(self._last_main + self.settings.batch_sched_delay)
        if self._wanted and due < now:
            self._last_main, self._wanted, self._urgent = due, False, False
        if settings.sched_interval > 0 and 0 <= self._next_full < now:
            every = settings.sched_interval
            last = now - 1 - (now - 1 - self._next_full) % every
            self._last_main, self._next_full = max(self._last_main, last), last + every
        if settings.backfill:
            at = max(math.ceil(self._next_backfill), self._changed)
            while at < now and self._changed >= self._last_backfill:
                self._cycle_at(at)
                at = max(math.ceil(self._next_backfill), self._changed)

    def _cycle_at(self, now: int) -> None:
        """Note that a cycle of backfilling happens; after a quiet time the rhythm begins anew."""
        settings, late = self.settings, max(now - self._next_backfill, 0)
        self._next_backfill += late // LOOK_EVERY * LOOK_EVERY
        self._next_backfill += settings.bf_interval + settings.cycle_time
        self._last_backfill = now
        if self._planned:
            self._changed, self._planned = now, False

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        self.limits.submitted(self.waiting.pop(row), -1)

    def note_change(self, now: int) -> None:
        """Note that jobs have changed, so that backfilling has something to look at."""
        self._changed = now

    def plan_on(self, nodes: int, now: int) -> None:
        """Mark nodes as planned that are not full; a change, now and when the mark is removed."""
        self._planned = any(self.stock.cores[node] > 0 for node in bits(nodes))
        if self._planned:
            self._changed = now

    def _leave(self, job: QueuedJob, now: int) -> None:
        """Let a job give back what it holds."""
        del self.running[job.row]
        self.stock.give(job.holding)
        if job.suspended >= 0:
            job.paused += now - job.suspended
            job.suspended = UNKNOWN
        self.limits.started(job, -1)
        self._over.append((job, job.start, now))
        if job.array >= 0:
            self._tasks[job.array] -= 1

    # time

    def next_at(self, now: int) -> int:
        """Return when to be called again although nothing happens; FOREVER if that is no use."""
        if self._stuck(now):
            return FOREVER
        times = []
        if self.settings.backfill and self._changed >= self._last_backfill:
            times.append(max(math.ceil(self._next_backfill), now + 1))
        if self._wanted:
            delay = self.settings.batch_sched_delay
            times.append(max(int(self._last_main + delay), now + 1))
        if self.settings.sched_interval > 0:
            times.append(max(self._next_full, now + 1))
        for job in self.waiting.values():
            if job.eligible > now:
                times.append(job.eligible)
        return min(times, default=now + 1)

    def _stuck(self, now: int) -> bool:
        """Return whether the waiting jobs cannot start unless others are submitted.

        That is so after a pass over the whole queue when nothing runs, and time changes nothing:
        no reservation and no begin time is to come, and no limit on decaying usage is reached.
        """
        return (
            not self.running
            and not self._wanted
            and all(one.end <= self._looked_at_all for one, _ in self._reservations)
            and all(
                job.eligible <= self._looked_at_all and not job.reason.endswith("CPUMinutesLimit")
                for job in self.waiting.values()
            )
        )

    def run(self, now: int) -> None:
        """Do the passes that are due at a second."""
        self._pass_quietly(now)
        self.calculate(now)
        self._resume(now)
        settings = self.settings
        full = settings.sched_interval > 0 and now >= self._next_full
        due = self._wanted and now - self._last_main >= settings.batch_sched_delay
        if full or due or self._urgent:
            if full or due:
                self._last_main = now
            if full:
                self._next_full = now + settings.sched_interval
            for _ in range(MOST_PASSES):
                self._wanted = self._urgent = False
                stopped = len(self.stopped)
                self._main(now, full)
                if len(self.stopped) == stopped:
                    break
            self._looked_at_all = now if full else -1
        if (
            settings.backfill
            and now >= self._next_backfill
            and self._changed >= self._last_backfill
        ):
            self._cycle_at(now)
            stopped = len(self.stopped)
            BackfillCycle(self, now).run()
            if len(self.stopped) > stopped:
                self._main(now, False)
        # Jobs that were suspended in this pass may have freed more than was needed.
        self._resume(now)

    def calculate(self, now: int) -> None:
        """Compute usage and priorities for each calculation period that has ended."""
        period, passed = self.priorities.settings.calculation_period, False
        while self._calculated + period <= now:
            begin, end = self._calculated, self._calculated + period
            self._calculated = end
            self.shares.decay(end - begin)
            left = []
            for job, start, over in self._over:
                self._charge(job, max(start, begin), min(over, end))
                if over > end:
                    left.append((job, start, over))
            self._over = left
            for job in self.running.values():
                self._charge(job, max(job.start, begin), end)
            passed = True
        if passed:
            # Nothing asked for those of earlier periods.
            self.shares.rank()
            if self.waiting:
                self._changed = now
            for job in self.waiting.values():
                self._weigh(job, self._calculated)

    def _charge(self, job: QueuedJob, begin: int, end: int) -> None:
        if end > begin:
            amount = float(job.cores)
            self.shares.charge(job.association, amount, end - begin)

    def _weigh(self, job: QueuedJob, now: int) -> None:
        """Compute the priority of a job in each of its partitions."""
        job.factors = {name: self.priorities.of(job, name, now) for name in job.partitions}
        job.priority = {name: factors.total for name, factors in job.factors.items()}

    # the queue

    def ordered(self, now: int, *, backfill: bool = False) -> list[tuple[QueuedJob, str]]:
        """Return waiting jobs with a partition each, in the order in which they are tried."""
        partitions = self.layout.partitions
        found = []
        for job in self.waiting.values():
            if job.eligible > now:
                job.reason = "BeginTime"
                continue
            for name in job.partitions:
                tier = partitions[name].priority_tier
                reserved = bool(job.reservation)
                key = (not reserved, -tier, -job.priority[name], job.row)
                found.append((key, job, name))
        found.sort(key=lambda one: one[0])
        return self.preemption.preemptors_first([(job, name) for _, job, name in found])

    def throttled(self, job: QueuedJob) -> bool:
        """Return whether as many tasks of its array run as may."""
        if job.throttle and self._tasks.get(job.array, 0) >= job.throttle:
            job.reason = "JobArrayTaskLimit"
            return True
        return False

    def reserved(self, job: QueuedJob, start: int, limit: int) -> tuple[int, int]:
        """Return the nodes that reservations keep from a job, and when the first of them ends."""
        barred, ends = 0, 0
        for one, nodes in self._reservations:
            if job.reservation == one.name:
                if start < one.start or start + limit > one.end:
                    return self.layout.all_nodes, 0
                if not one.flexible:
                    barred |= self.layout.all_nodes & ~nodes
            elif one.start < start + limit and one.end > start:
                barred |= nodes
                ends = min(ends, one.end) if ends else one.end
        return barred, ends

    # the main scheduler

    def _main(self, now: int, full: bool) -> None:
        """Go through the queue by priority; the first that does not fit blocks its partition."""
        settings, layout = self.settings, self.layout
        available, failed = self.up, set()
        tried: set[str] = set()  # reservations in which a job did not fit
        rejected: dict[tuple[int, str], QueuedJob] = {}
        depth = 0
        counts: dict[str, int] = {}
        for job, partition in self.ordered(now):
            if job.holding:
                continue
            if job.array >= 0:
                first = rejected.setdefault((job.array, partition), job)
                if first is not job:
                    job.reason = first.reason  # an array has one reason
                    continue
                if self.throttled(job):
                    continue
            if settings.partition_job_depth:
                counts[partition] = counts.get(partition, 0) + 1
                if counts[partition] > settings.partition_job_depth:
                    if job.reason == "None":
                        job.reason = "Priority"
                    continue
            if not full and depth > settings.default_queue_depth:
                break
            depth += 1
            if job.reservation in tried:
                job.reason = "Priority"
                continue
            if partition in failed and not job.reservation:
                self._changed = now  # Slurm notes that it has looked at the job
                if job.reason in PASSING:
                    job.reason = "Priority"
                continue
            if not layout.partitions[partition].up:
                job.reason = "PartitionDown"
                continue
            # Only a job that was at a limit is asked again before its nodes are counted.
            if is_limit(job.reason) and not self.within_limits(job, partition):
                continue
            demand = job.demands[partition]
            there = available & layout.nodes_of(partition)
            if there.bit_count() < demand.least_nodes:
                job.reason, outcome = NODES_KEPT, "busy"
            else:
                outcome = self.start(job, partition, now, available, "main")
            if outcome == "started":
                rejected.pop((job.array, partition), None)
            elif outcome == "busy" and job.reservation:
                tried.add(job.reservation)
            elif outcome == "busy" or (outcome == "limit" and settings.assoc_limit_stop):
                waited = now - job.eligible
                if waited < settings.bf_min_age_reserve:
                    continue
                if job.priority[partition] < settings.bf_min_prio_reserve:
                    continue
                failed.add(partition)
                available &= ~layout.nodes_of(partition)

    def start(self, job: QueuedJob, partition: str, now: int, allowed: int, by: str) -> str:
        """Start a job if it can on some of the allowed nodes.

        Returns
        -------
        str
            ``started``; ``limit`` if a limit forbids it; ``unavailable`` if the main scheduler has
            not the nodes for it even when they are free; ``busy`` if nodes are in use or others are
            preempted for it.
        """
        demand = job.demands[partition]
        if not self.within_limits(job, partition):
            return "limit"
        barred, _ = self.reserved(job, now, job.limit)
        nodes = allowed & self.up & ~barred
        holding = select(self.stock, demand, nodes, self.rule)
        if holding is None:
            victims = self.preemption.candidates(job, partition, self.running.values(), now)
            if victims:
                found = self.preemption.choose(self.stock, demand, nodes, victims, self.rule)
                if found is not None:
                    if self._limited(job, partition, now, found[0]):
                        return "limit"
                    return self._preempt(job, partition, now, *found, by)
            # A limit that it would exceed goes before what it would have to wait for.
            if self._limited(job, partition, now):
                return "limit"
            if by == "main" and not allowed & barred and self._never_fits(job, partition, nodes):
                job.reason = NOT_AVAILABLE
                return "unavailable"
            job.reason = "Resources"
            return "busy"
        if self._limited(job, partition, now, holding):
            return "limit"
        self.begin(job, partition, now, holding, by)
        return "started"

    def _preempt(
        self,
        job: QueuedJob,
        partition: str,
        now: int,
        holding: Holding,
        victims: Sequence[QueuedJob],
        by: str,
    ) -> str:
        """Make room for a job; it starts at once if nobody has to leave."""
        going = [other for other in victims if self.preemption.fate(other) != Preempt.SUSPEND]
        if going:
            for other in going:
                self._stop(other, now)
            job.reason = "Resources"
            return "busy"
        for other in self.preemption.in_the_way(holding, victims, self.running.values()):
            self._suspend(other, now)
        self.begin(job, partition, now, holding, by)
        return "started"

    def _suspend(self, job: QueuedJob, now: int) -> None:
        job.suspended = self._changed = now
        if job in self.resumed:  # in this second: as if it had not been
            self.resumed.remove(job)
        else:
            self.suspended.append(job)

    def _resume(self, now: int) -> None:
        """Let suspended jobs go on whose cores are free again."""
        if self.preemption.suspends:
            for job in self.preemption.may_go_on(self.running.values()):
                job.paused += now - job.suspended
                job.suspended = UNKNOWN
                if job in self.suspended:  # in this second: as if it had not been
                    self.suspended.remove(job)
                else:
                    self.resumed.append(job)
                self._changed = now

    def _never_fits(self, job: QueuedJob, partition: str, nodes: int) -> bool:
        """Return whether a job would not fit on some of its nodes if they were free."""
        demand = job.demands[partition]
        if not demand.nodes & ~nodes:
            return False
        return select(Stock(self.layout), demand, nodes, self.rule) is None

    def within_limits(self, job: QueuedJob, partition: str) -> bool:
        """Return whether no number of jobs is at its limit; an earlier limit is forgotten."""
        reason = self.limits.before(job, partition)
        if reason or is_limit(job.reason):
            job.reason = reason or "None"
        return not reason

    def _limited(
        self, job: QueuedJob, partition: str, now: int, holding: Holding | None = None
    ) -> bool:
        reason = self.limits.after(job, partition, holding, now)
        if reason:
            job.reason = reason
        return bool(reason)

    def begin(self, job: QueuedJob, partition: str, now: int, holding: Holding, by: str) -> None:
        """Let a waiting job begin with what it holds."""
        del self.waiting[job.row]
        self.running[job.row] = job
        job.holding, job.start, job.partition, job.by = holding, now, partition, by
        job.reason = "None"
        self.stock.take(holding)
        self.limits.started(job)
        if job.array >= 0:
            self._tasks[job.array] = self._tasks.get(job.array, 0) + 1
        self.started.append(job)
        self._changed = now

    def _stop(self, job: QueuedJob, now: int) -> None:
        """Stop a job to make room; requeued ones are eligible again after a while."""
        fate, holding = self.preemption.fate(job), job.holding
        self._leave(job, now)
        self.stopped.append(Stopped(job, fate, holding))
        if fate == Preempt.REQUEUE:
            again = _again(job, now, max(self.settings.requeue_delay, 1))
            self.waiting[job.row] = again
            self._weigh(again, now)
        else:
            self.limits.submitted(job, -1)

    def reasons(self) -> Iterator[tuple[QueuedJob, str]]:
        """Yield waiting jobs with the reason that each was given last."""
        for job in self.waiting.values():
            yield job, job.reason


def is_limit(reason: str) -> bool:
    """Return whether a reason is a limit of a QOS or an association."""
    return reason.startswith(("QOS", "Assoc"))


def _again(job: QueuedJob, now: int, delay: int) -> QueuedJob:
    """Return a requeued job as it waits again."""
    return QueuedJob(
        row=job.row, user=job.user, association=job.association, qos=job.qos, limit=job.limit,
        partitions=job.partitions, demands=job.demands, submitted=now, eligible=now + delay,
        array=job.array, task=job.task, throttle=job.throttle, nice=job.nice, requeue=job.requeue,
        reservation=job.reservation, reason="BeginTime",
    )  # fmt: skip
