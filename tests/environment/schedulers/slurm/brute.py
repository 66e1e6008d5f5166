"""Slurm's controller by brute force: the oracle of the compiled one, second for second.

What is free is counted from the running jobs each time, and so are the tasks of an array; the plan
of backfilling is a list of what is kept from when to when. What a job asks for, limits, shares,
factors of priority and the choice of nodes are the product's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import override

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, Partition, Preempt, Qos
from hpcrowd.environment.machine.selection import RULES, Holding, Rule, Stock, select
from hpcrowd.environment.schedulers.base import EndedJob, Look, RunningJob, Scheduler, WaitingJob
from hpcrowd.environment.schedulers.outlook import Outlook
from hpcrowd.environment.schedulers.past import Past, Phases, Placed
from hpcrowd.environment.schedulers.slurm import past as pasts
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.billing import reset_around
from hpcrowd.environment.schedulers.slurm.limits import Bill, LimitKeeper
from hpcrowd.environment.schedulers.slurm.queue import Priorities, QueuedJob, Tenure
from hpcrowd.environment.schedulers.slurm.shares import LN2, Association, Shares

from tests.environment.schedulers.slurm.brute_cycle import Cycle, lend, nodes_of

LOOK_EVERY = 1  #: s between looks of backfilling for changes
MOST_PASSES = 8  #: main passes in one second, each after a preemption

NODES_KEPT = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)


class BruteSlurm(Scheduler):
    """A machine of nodes under Slurm; ``placement`` is as of the product's.

    Attributes
    ----------
    waiting, running
        Jobs by row, in the order in which they came.
    ledger
        What each job held in each of its runs, in the order of their starts.
    over
        Bill, start and end of the runs that ended since the last calculation.
    at
        When it did what last, and what comes next: the fields of ``Phases``.
    """

    nodes = True
    drains = True

    def __init__(self, placement: str | Rule = "slurm") -> None:
        self.placement = placement

    # ---- what the engine calls -----------------------------------------------------------------

    @override
    def on_machine(self, machine: Machine, jobs: JobTable) -> None:
        self.machine, self.jobs, self.settings = machine, jobs, machine.scheduling

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        machine, settings = self.machine, self.settings
        self.layout, self.shares = Layout(machine), Shares(machine)
        self.limits, self.priorities = LimitKeeper(self.layout), Priorities(self.layout)
        self.admission = Admission(self, self.jobs)
        self.qos = {one.name: one for one in machine.qos}
        self.rule = RULES[self.placement] if isinstance(self.placement, str) else self.placement
        if self.rule is None and settings.least_loaded:
            self.rule = RULES["spread"]
        self.waiting: dict[int, QueuedJob] = {}
        self.running: dict[int, QueuedJob] = {}
        self.begun: list[int] = []
        self.ledger: list[Tenure] = []
        self.over: list[tuple[Bill, int, int]] = []
        self.period = machine.priority.calculation_period
        self.at = SimpleNamespace(
            calculated=-(-settings.calculation_phase % self.period), last_main=-(2**40),
            next_full=-1, looked_at_all=-1, last_backfill=0, next_backfill=settings.backfill_phase,
            changed=-1, planned=False, wanted=False, urgent=False,
        )  # fmt: skip
        self.shares.rank()

    @property
    def state(self) -> BruteSlurm:
        """What it knows now: itself."""
        return self

    @property
    def phases(self) -> Phases:
        """What it did last when, and what comes next."""
        return Phases(**vars(self.at))

    @property
    def stock(self) -> Stock:
        """What running jobs leave, also those that are suspended."""
        return self._left_by(self.running.values())

    def _left_by(self, jobs: Iterable[QueuedJob]) -> Stock:
        stock = Stock(self.layout)
        for job in jobs:
            stock.take(job.holding)
        return stock

    def copy(self) -> BruteSlurm:
        """Return a copy to foretell with; what never changes is shared."""
        jobs, other = [*self.waiting.values(), *self.running.values()], copy(self)
        kept = [self.layout, self.machine, *self.machine.qos, self.shares.settings]
        memo = {id(one): one for one in [*kept, *(one.account for one in self.shares.all)]}
        memo |= {id(job): copy(job) for job in jobs}
        mine = self.shares, self.limits, self.at, self.over, self.waiting, self.running
        copied = deepcopy(mine, memo)
        other.shares, other.limits, other.at, other.over, other.waiting, other.running = copied
        for job in [*other.waiting.values(), *other.running.values()]:
            job.association = deepcopy(job.association, memo)
        other.begun, other.ledger, other.stops = [], [], []
        other.admission = self.admission.of(self.jobs)
        other.admission.controller = other
        return other

    @override
    def outlook(self, now: int, waiting: Int64s, running: Int64s) -> Outlook:
        from tests.environment.schedulers.slurm.brute_outlook import BruteOutlook  # circle

        return BruteOutlook(self, now, waiting.tolist(), running.tolist())

    @override
    def submitted(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self.waiting:  # it left the queue, and comes back
                self.withdraw(row)
            self.admission.resize(row)

    @override
    def refuses(self, row: int) -> str:
        return self.admission.refusal(row)

    @override
    def turns_away(self, row: int) -> str:
        return self.admission.turns_away(row)

    @override
    def learn_users(self) -> None:
        self.places = pasts.associations_of(self.admission)

    @override
    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        """Do nothing: it knows what it started."""

    @override
    def go_on(self, past: Past, running: Sequence[RunningJob], ended: Sequence[EndedJob]) -> None:
        jobs, now, enqueued = self.jobs, past.now, self.jobs.enqueued.tolist()
        phases = past.phases or self.phases._replace(
            calculated=now - (now - self.at.calculated) % self.period, next_full=now, changed=now,
            next_backfill=max(float(now), self.settings.backfill_phase), wanted=True,
        )  # fmt: skip
        self.at = SimpleNamespace(**phases._asdict())
        mine = self.shares, self.limits, self.admission
        pasts.use_past(*mine, past, self.places, phases.calculated)
        rules = SimpleNamespace(rule=self.rule, barred=lambda job, at, _: self.barred(job, at)[0])
        how, job_of = (
            pasts.Seating(self.admission, rules),
            partial(pasts.running_job, self.admission),
        )
        self.running = pasts.seat_running(past, how, Stock(self.layout), job_of)
        for job in self.running.values():
            self.limits.submitted(job)
            self.limits.started(job)
            self.ledger.append(Tenure.of(job, job.start))
        weighed = pasts.weighed_at(jobs, past, phases).tolist()
        for row, time in zip(past.waiting.tolist(), weighed, strict=True):
            job, known = self.admission.queued(row, enqueued[row]), past.placed.get(row, Placed())
            job.reason = known.reason or job.reason
            job.eligible = job.eligible if known.eligible == UNKNOWN else known.eligible
            self.waiting[row] = job
            self.limits.submitted(job)
            self.weigh(job, time)
        recent = pasts.just_over(jobs, past, phases)
        charges = pasts.charged(self.admission, self.limits, recent, past)
        for place, row in enumerate(recent.tolist()):
            association = self.admission.queued(row, enqueued[row]).association
            rate, scale = float(charges.rate[place]), float(charges.scale[place])
            like = (
                charges.bills[charges.of[place]] if charges.bills else Bill(association, 0, {}, ())
            )
            amounts = {name: amount * scale for name, amount in like.tres.items()}
            bill = Bill(association, rate, amounts, like.uses)
            self.over.append((bill, int(jobs.start[row]), int(jobs.end[row])))

    @override
    def taken_back(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self.waiting:
                self.withdraw(row)
            self.admission.uncount(row)

    @override
    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        for job in jobs:
            if job.row in self.running:
                self.finish(job.row, job.end)
                self.at.urgent |= self.jobs.matrix[Column.STATE, job.row] != State.COMPLETED
                self._pass_over_nothing(job.end)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        now, here, paused = look.now, {job.row: job for job in look.waiting}, self._paused()
        for row in here:
            if row not in self.waiting:
                self.submit(self.admission.queued(row, now), now)
        self.begun = []
        self.run(now)
        for row, _ in self.stops:
            self._last_run(row).end = now
        self._tell_pauses(paused, now)
        return [here[row] for row in self.begun]

    @override
    def nothing_waits(self, now: int) -> None:
        paused = self._paused()
        self.resume(now)
        self._tell_pauses(paused, now)
        self._pass_over_nothing(now)

    def _paused(self) -> set[int]:
        return {row for row, job in self.running.items() if job.suspended >= 0}

    def _tell_pauses(self, before: set[int], now: int) -> None:
        """Tell the engine who was suspended in this second, and who goes on."""
        after = self._paused()
        self.suspends, self.resumes = sorted(after - before), sorted(before - after)
        for row in self.suspends:
            self._last_run(row).pauses.append((now, UNKNOWN))
        for row in self.resumes:
            pauses = self._last_run(row).pauses
            pauses[-1] = pauses[-1][0], now

    def _last_run(self, row: int) -> Tenure:
        return next(run for run in reversed(self.ledger) if run.row == row)

    @override
    def wake(self, now: int) -> int | None:
        at, times = self.at, [job.eligible for job in self.waiting.values() if job.eligible > now]
        if self._is_stuck():
            return None
        if self.settings.backfill and at.changed >= at.last_backfill:
            times.append(max(math.ceil(at.next_backfill), now + 1))
        if at.wanted:
            times.append(max(int(at.last_main + self.settings.batch_sched_delay), now + 1))
        if self.settings.sched_interval > 0:
            times.append(max(at.next_full, now + 1))
        return min(times, default=now + 1)

    def _is_stuck(self) -> bool:
        """Return whether the jobs wait for submissions only, after a pass over the whole queue."""
        seen, jobs = self.at.looked_at_all, self.waiting.values()
        busy = self.running or self.at.wanted
        comes = any(one.end > seen for one in self.machine.reservations)
        comes |= any(job.eligible > seen for job in jobs)
        if self.limits.minutes:
            falls = self.limits.usage_falls
            comes |= any(falls(job, partition) for job in jobs for partition in job.partitions)
        return not busy and not comes

    # ---- jobs come and go ----------------------------------------------------------------------

    def submit(self, job: QueuedJob, now: int) -> None:
        """Put a job into the queue."""
        self._pass_quietly(now)
        self.calculate(now)
        self.waiting[job.row] = job
        self.limits.submitted(job)
        if self.at.next_full < 0:
            self.at.next_full = now + self.settings.full_pass_phase
        self.weigh(job, now)
        self.at.wanted, self.at.changed, self.at.looked_at_all = True, now, -1

    def withdraw(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        self.limits.submitted(self.waiting.pop(row), -1)

    def start(self, job: QueuedJob, partition: str, now: int, holding: Holding, by: str) -> None:
        """Let a waiting job begin with what it holds."""
        self.running[job.row] = self.waiting.pop(job.row)
        job.holding, job.start, job.partition, job.by = holding, now, partition, by
        job.reason, self.at.changed = "None", now
        self.limits.started(job)
        self.begun.append(job.row)
        self.ledger.append(Tenure.of(job, now))

    def finish(self, row: int, now: int) -> None:
        """Note that a running job has ended."""
        self._pass_quietly(now)
        self.calculate(now)
        self.limits.submitted(self._leave(row, now), -1)
        self.at.wanted, self.at.changed, self.at.looked_at_all = True, now, -1

    def _leave(self, row: int, now: int) -> QueuedJob:
        job = self.running.pop(row)
        self.limits.started(job, -1)
        self.over.append((self._bill(job), job.start, now))
        return job

    def stop(self, job: QueuedJob, now: int) -> None:
        """Stop a job to make room; a requeued one is eligible again after a while."""
        fate = self.fate(job)
        self._leave(job.row, now)
        self.stops.append((job.row, "requeue" if fate == Preempt.REQUEUE else "fail"))
        if fate == Preempt.REQUEUE:
            eligible = now + max(self.settings.requeue_delay, 1)
            again = replace(
                job, submitted=now, eligible=eligible, reason="BeginTime", planned=UNKNOWN,
                holding=(), start=UNKNOWN, partition="", by="", paused=0,
            )  # fmt: skip
            self.waiting[job.row] = again
            self.weigh(again, now)
        else:
            self.limits.submitted(job, -1)

    # ---- usage and priorities ------------------------------------------------------------------

    def calculate(self, now: int) -> None:
        """Compute usage and priorities for each calculation period that has ended."""
        begin, resets = self.at.calculated, self.machine.priority.usage_reset
        while (until := self.at.calculated + self.period) <= now:
            # What ran in this period counts wholly, even if usage is reset in it.
            first, _ = reset_around(resets, until, *self.machine.began)
            reset = first > self.at.calculated
            decay(self.shares, self.period, reset=reset)
            self.limits.fade(float(self.period), reset=reset)
            ran = [(self._bill(job), job.start, until) for job in self.running.values()]
            for bill, start, end in self.over + ran:
                seconds = min(end, until) - max(start, self.at.calculated)
                if seconds > 0:
                    charge(self.shares, bill.association, bill.rate, seconds)
                    self.limits.spend(bill, float(seconds))
            self.over = [one for one in self.over if one[2] > until]
            self.at.calculated = self.limits.calculated = until
        if self.at.calculated > begin:
            self.shares.rank()
            for job in self.waiting.values():
                self.at.changed = now
                self.weigh(job, self.at.calculated)

    def _bill(self, job: QueuedJob) -> Bill:
        return self.limits.bill(job, job.partition, job.holding)

    def weigh(self, job: QueuedJob, now: int) -> None:
        """Compute the priority of a job in each of its partitions."""
        job.factors = {name: self.priorities.of(job, name, now) for name in job.partitions}
        job.priority = {name: factors.total for name, factors in job.factors.items()}

    # ---- when passes come ----------------------------------------------------------------------

    def run(self, now: int) -> None:
        """Do the passes that are due at a second."""
        at, settings = self.at, self.settings
        self.calculate(now)
        self.resume(now)
        full = settings.sched_interval > 0 and now >= at.next_full
        due = full or (at.wanted and now - at.last_main >= settings.batch_sched_delay)
        if due or at.urgent:
            at.last_main = now if due else at.last_main
            at.next_full = now + settings.sched_interval if full else at.next_full
            for _ in range(MOST_PASSES):
                at.wanted, at.urgent, stopped = False, False, len(self.stops)
                self.main_pass(now, full)
                if len(self.stops) == stopped:
                    break
            at.looked_at_all = now if full else -1
        if settings.backfill and now >= at.next_backfill and at.changed >= at.last_backfill:
            stopped = len(self.stops)
            self._cycle_at(now)
            Cycle(self, now).run()
            if len(self.stops) > stopped:
                self.main_pass(now, False)
        self.resume(now)  # those suspended in this pass may have freed more than was needed

    def _pass_over_nothing(self, now: int) -> None:
        """Note a pass of this second, if one is due, that finds an empty queue."""
        at, delay = self.at, self.settings.batch_sched_delay
        if not self.waiting and at.wanted and (at.urgent or now - at.last_main >= delay):
            at.last_main, at.wanted, at.urgent = now, False, False

    def _pass_quietly(self, now: int) -> None:
        """Note passes and cycles until now on an empty queue: the next ones come after them."""
        at, every = self.at, self.settings.sched_interval
        due = math.ceil(at.last_main + self.settings.batch_sched_delay)
        if self.waiting:
            return
        if at.wanted and due < now:
            at.last_main, at.wanted, at.urgent = due, False, False
        while every > 0 and 0 <= at.next_full < now:
            at.last_main = max(at.last_main, at.next_full)
            at.next_full += every
        while self.settings.backfill and at.changed >= at.last_backfill:
            time = max(math.ceil(at.next_backfill), at.changed)
            if time >= now:
                break
            self._cycle_at(time)

    def _cycle_at(self, now: int) -> None:
        """Note a cycle of backfilling; after a quiet time the rhythm begins anew."""
        at, late = self.at, max(now - self.at.next_backfill, 0)
        at.next_backfill += late // LOOK_EVERY * LOOK_EVERY
        at.next_backfill += self.settings.bf_interval + self.settings.cycle_time
        at.last_backfill = now
        if at.planned:  # the marks of the last cycle are removed
            at.changed, at.planned = now, False

    # ---- the queue -----------------------------------------------------------------------------

    def ordered(self, now: int) -> list[tuple[QueuedJob, str]]:
        """Return waiting jobs with a partition each, in the order in which they are tried."""
        for job in self.waiting.values():
            job.reason = "BeginTime" if job.eligible > now else job.reason

        def key(one: tuple[QueuedJob, str]) -> tuple[bool, int, int, int]:
            job, name = one
            tier = self.layout.partitions[name].priority_tier
            return not job.reservation, -tier, -job.priority[name], job.row

        jobs = [job for job in self.waiting.values() if job.eligible <= now]
        queue = sorted(((job, name) for job in jobs for name in job.partitions), key=key)
        return self._preemptors_first(queue) if self.settings.preempt_type == "qos" else queue

    def _preemptors_first(self, queue: list[tuple[QueuedJob, str]]) -> list[tuple[QueuedJob, str]]:
        """Return the queue with each job behind those whose QOS may preempt it."""
        keys = [(place, 0, place) for place in range(len(queue))]
        last: dict[str, int] = {}
        turns = in_turn(self.machine.qos)
        for turn, name in enumerate(turns, 1):
            above = [one for one in turns[: turn - 1] if name in self.qos[one].preempts]
            after = max((last.get(one, -1) for one in above), default=-1)
            for place, (job, _) in enumerate(queue):
                if job.qos == name:
                    keys[place] = (after, turn, place) if after > place else keys[place]
                    last[name] = max(last.get(name, -1), keys[place][0])
        return [queue[place] for _, _, place in sorted(keys)]

    def throttled(self, job: QueuedJob) -> bool:
        """Return whether as many tasks of its array run as may."""
        if not 0 < job.throttle <= sum(job.array == one.array for one in self.running.values()):
            return False
        job.reason = "JobArrayTaskLimit"
        return True

    def barred(self, job: QueuedJob, start: int) -> tuple[int, int]:
        """Return the nodes that reservations keep from a job, and when the first of them ends."""
        barred, ends, everything = 0, [], self.layout.all_nodes
        for one in self.machine.reservations:
            nodes = self.layout.nodes_in(one.nodes)
            if job.reservation == one.name:
                if start < one.start or start + job.limit > one.end:
                    return everything, 0
                barred |= 0 if one.flexible else everything & ~nodes
            elif one.start < start + job.limit and one.end > start:
                barred |= nodes
                ends.append(one.end)
        return barred, min(ends, default=0)

    def within_limits(self, job: QueuedJob, partition: str) -> bool:
        """Return whether no number of jobs is at its limit; an earlier limit is forgotten."""
        reason = self.limits.before(job, partition)
        if reason or is_limit(job.reason):
            job.reason = reason or "None"
        return not reason

    # ---- the main scheduler --------------------------------------------------------------------

    def main_pass(self, now: int, full: bool) -> None:
        """Go through the queue by priority; the first that does not fit blocks its partition."""
        settings, layout, available = self.settings, self.layout, self.layout.all_nodes
        blocked: set[str] = set()
        tried: set[str] = set()  # reservations in which a job did not fit
        rejected: dict[tuple[int, str], QueuedJob] = {}
        counts: Counter[str] = Counter()
        depth = 0
        for job, partition in self.ordered(now):
            if job.holding:  # it has started in another partition
                continue
            if job.array >= 0:
                first = rejected.setdefault((job.array, partition), job)
                if first is not job:
                    job.reason = first.reason  # an array has one reason
                    continue
                if self.throttled(job):
                    continue
            counts[partition] += 1
            if settings.partition_job_depth and counts[partition] > settings.partition_job_depth:
                job.reason = "Priority" if job.reason == "None" else job.reason
                continue
            if not full and depth > settings.default_queue_depth:
                break
            depth += 1
            if job.reservation in tried:
                job.reason = "Priority"
                continue
            if partition in blocked and not job.reservation:
                self.at.changed = now  # Slurm notes that it has looked at the job
                if job.reason in ("None", "Resources", NODES_KEPT):
                    job.reason = "Priority"
                continue
            if not layout.partitions[partition].up:
                job.reason = "PartitionDown"
                continue
            # Only a job that was at a limit is asked again before its nodes are counted.
            if is_limit(job.reason) and not self.within_limits(job, partition):
                continue
            there = (available & layout.nodes_of(partition)).bit_count()
            if there < job.demands[partition].least_nodes:
                job.reason, outcome = NODES_KEPT, "busy"
            else:
                outcome = self.try_now(job, partition, now, available, "main")
            waits = outcome == "busy" or (outcome == "limit" and settings.assoc_limit_stop)
            if outcome == "started":
                rejected.pop((job.array, partition), None)
            elif outcome == "busy" and job.reservation:
                tried.add(job.reservation)
            elif waits and not self.keeps_nothing(job, partition, now):
                blocked.add(partition)
                available &= ~layout.nodes_of(partition)

    def keeps_nothing(self, job: QueuedJob, partition: str, now: int) -> bool:
        """Return whether nothing is kept for a job that is too young or unimportant."""
        young = now - job.eligible < self.settings.bf_min_age_reserve
        return young or job.priority[partition] < self.settings.bf_min_prio_reserve

    def try_now(self, job: QueuedJob, partition: str, now: int, allowed: int, by: str) -> str:
        """Start a job if it can on some nodes: ``started``, ``limit``, ``never`` or ``busy``."""
        if not self.within_limits(job, partition):
            return "limit"
        demand, stock, victims = job.demands[partition], self.stock, list[QueuedJob]()
        nodes = allowed & ~self.barred(job, now)[0]
        holding = select(stock, demand, nodes, self.rule)
        if holding is None:
            candidates = self.candidates(job, partition, now)
            holding, victims = self.choose(stock, demand, nodes, candidates)
        # A limit that it would exceed goes before what it would have to wait for.
        reason = self.limits.after(job, partition, holding, now)
        if reason:
            job.reason = reason
            return "limit"
        if (
            holding is None and by == "main" and nodes == allowed and demand.nodes & ~nodes
            and select(Stock(self.layout), demand, nodes, self.rule) is None
        ):  # fmt: skip
            job.reason = "ReqNodeNotAvail"
            return "never"
        leaving = [other for other in victims if self.fate(other) != Preempt.SUSPEND]
        for other in leaving:
            self.stop(other, now)
        if holding is None or leaving:
            job.reason = "Resources"
            return "busy"
        for other in self._in_the_way(holding, victims):
            other.suspended = self.at.changed = now
        self.start(job, partition, now, holding, by)
        return "started"

    # ---- preemption ----------------------------------------------------------------------------

    def _class_of(self, job: QueuedJob) -> Partition | Qos:
        """Return what says by whom a running job may be preempted."""
        by_partition = self.settings.preempt_type == "partition"
        return self.layout.partitions[job.partition] if by_partition else self.qos[job.qos]

    def fate(self, job: QueuedJob) -> Preempt:
        """Return what happens to a running job that is preempted; OFF if it cannot be."""
        own, settings = self._class_of(job).preempt_mode, self.settings
        found = settings.preempt_mode if own is None else own
        requeued = job.requeue and settings.requeue
        return Preempt.CANCEL if found == Preempt.REQUEUE and not requeued else found

    def rank(self, job: QueuedJob) -> int:
        """Return what a running job is worth: its tier, or the priority of its QOS."""
        one = self._class_of(job)
        return one.priority_tier if isinstance(one, Partition) else one.priority

    def candidates(self, job: QueuedJob, partition: str, now: int) -> list[QueuedJob]:
        """Return running jobs that a waiting one may preempt, the first to go first."""
        settings, kind = self.settings, self.settings.preempt_type
        tier = self.layout.partitions[partition].priority_tier
        preempts = self.qos[job.qos].preempts if job.qos in self.qos else ()

        def may_go(other: QueuedJob) -> bool:
            lower = other.qos in preempts if kind == "qos" else self.rank(other) < tier
            ran = now - other.start >= max(settings.preempt_exempt_time, 1)
            near = nodes_of(other.holding) & job.demands[partition].nodes
            return bool(lower and near) and (ran or other.suspended >= 0) and (
                self.fate(other) != Preempt.OFF
            )  # fmt: skip

        found = [] if kind == "none" else [one for one in self.running.values() if may_go(one)]
        if settings.preempt_youngest_first:
            return sorted(found, key=lambda other: (-other.start, other.row))
        return sorted(found, key=lambda other: (self.rank(other), len(other.holding)))

    def choose(
        self, stock: Stock, demand: Demand, nodes: int, candidates: list[QueuedJob]
    ) -> tuple[Holding | None, list[QueuedJob]]:
        """Return what a job would hold, and whom it would preempt for it.

        Those that would be suspended lend their cores first, all of them. If that is not enough,
        the others go one by one until it fits; then those with most of the chosen nodes are tried
        first, ``reorder_count`` times.
        """
        lenders = [other for other in candidates if self.fate(other) == Preempt.SUSPEND]
        order = [other for other in candidates if other not in lenders]
        for other in lenders:
            lend(stock, other.holding)
        holding = select(stock, demand, nodes, self.rule) if lenders else None
        if holding is not None:
            return holding, lenders
        for again in range(1, self.settings.reorder_count + 3):
            future, left, holding = stock.copy(), list(order), None
            while left and holding is None:
                future.give(left.pop(0).holding)
                holding = select(future, demand, nodes, self.rule)
            if holding is None:
                return None, []
            chosen, gone = nodes_of(holding), order[: len(order) - len(left)]
            if len(order) <= again:
                break
            most = sorted(
                gone[:-1], key=lambda other: -(nodes_of(other.holding) & chosen).bit_count()
            )
            order = [gone[-1], *most, *left]
        return holding, [other for other in gone if nodes_of(other.holding) & chosen]

    def _left_by_active(self) -> Stock:
        return self._left_by(job for job in self.running.values() if job.suspended < 0)

    def _in_the_way(self, holding: Holding, lenders: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs to be suspended so that another may have its cores, and no more."""
        stock, found = self._left_by_active(), []
        stock.take(holding)
        for other in lenders:
            if other.suspended < 0 and any(stock.cores[one.node] < 0 for one in other.holding):
                found.append(other)
                stock.give(other.holding)
        return [other for other in found if not goes_on(other, stock)]

    def resume(self, now: int) -> None:
        """Let suspended jobs go on whose cores nobody uses any more: high tiers first."""
        stock, paused = self._left_by_active(), [self.running[row] for row in self._paused()]
        for job in sorted(paused, key=lambda one: (-self.rank(one), one.start, one.row)):
            if goes_on(job, stock):
                job.paused += now - job.suspended
                job.suspended, self.at.changed = UNKNOWN, now


def decay(shares: Shares, seconds: float, *, reset: bool) -> None:
    """Let usage decay for some seconds, or begin anew."""
    half_life = shares.settings.half_life
    for one in shares.all if half_life or reset else ():
        one.usage *= 0.0 if reset else (1 - LN2 / half_life) ** seconds


def charge(shares: Shares, association: Association, amount: float, seconds: float) -> None:
    """Charge processors that ran for the last seconds to an association and all above it."""
    half_life = shares.settings.half_life
    kept = (1 - LN2 / half_life) ** seconds if half_life else 1.0
    for one in association.up():
        one.usage += amount * seconds * kept


def goes_on(job: QueuedJob, stock: Stock) -> bool:
    """Return whether the cores of a suspended job are free; they are taken then."""
    if any(stock.cores[one.node] < one.cores for one in job.holding):
        return False
    stock.take(job.holding)
    return True


def in_turn(every: Sequence[Qos]) -> list[str]:
    """Return the names of all QOS, each behind those that preempt it, unless they go in circles."""
    left, found = {one.name: one for one in every}, list[str]()
    while left:
        taken = {name for other in left.values() for name in other.preempts if name != other.name}
        free = [name for name in left if name not in taken] or list(left)[:1]
        found += free
        left = {name: one for name, one in left.items() if name not in free}
    return found


def is_limit(reason: str) -> bool:
    """Return whether a reason is a limit of a QOS or an association."""
    return reason.startswith(("QOS", "Assoc"))
