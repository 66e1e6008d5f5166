"""The rules of a site under Slurm, and what it makes of a job when it is submitted.

That is its association, QOS, partitions and demands.

A job that can never run is rejected, with Slurm's word for the reason: ``InvalidPartition``,
``InvalidQOS``, ``AccountNotAllowed``, ``PartitionTimeLimit``, ``PartitionNodeLimit``,
``InvalidReservation``, ``ReservationAccess`` (its user and account may not use the reservation),
``BadConstraints`` (no nodes have what it asks), or a limit such as ``QOSMaxCpuPerUserLimit``. Real
Slurm keeps some of them waiting for ever, unless ``EnforcePartLimits`` is set. With ``all``, every
partition that a job names must be able to run it; otherwise those that cannot are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Protocol, Self

from hpcrowd.environment.jobs import UNKNOWN, JobTable, name_of
from hpcrowd.environment.machine.demand import Demand, demand_of, partitions_asked
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, Partition, Preempt, Qos
from hpcrowd.environment.machine.selection import RULES, Rule, Stock, select
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.past import Phases
from hpcrowd.environment.schedulers.slurm.limits import LimitKeeper
from hpcrowd.environment.schedulers.slurm.queue import Priorities, QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Association, Shares


class SiteRules:
    """Who counts where, how jobs are weighed and placed, and what keeps them off nodes.

    Parameters
    ----------
    placement
        The rule of placement, by its name or a function.
    ranked
        Whether users have their factors of fair share from the beginning.

    Attributes
    ----------
    rule
        The rule of placement; None for Slurm's consecutive nodes.
    shares
        The tree of associations, to which new users are added.
    reservations
        Those of the machine, with the set of nodes of each.
    """

    def __init__(
        self, machine: Machine, placement: str | Rule = "slurm", *, ranked: bool = True
    ) -> None:
        self.layout = Layout(machine)
        self.settings = machine.scheduling
        self.rule = RULES[placement] if isinstance(placement, str) else placement
        if self.rule is None and self.settings.least_loaded:
            self.rule = RULES["spread"]
        self.shares = Shares(machine)
        if ranked:
            self.shares.rank()
        self.limits = LimitKeeper(self.layout)
        self.priorities = Priorities(self.layout)
        self.reservations = [(one, self.layout.nodes_in(one.nodes)) for one in machine.reservations]

    def barred(self, job: QueuedJob, begin: int, lasts: int) -> int:
        """Return the nodes that reservations keep from a job that starts at a second."""
        found, end = 0, begin + lasts
        for one, nodes in self.reservations:
            if job.reservation == one.name:
                if begin < one.start or end > one.end:
                    return self.layout.all_nodes
                found |= 0 if one.flexible else self.layout.all_nodes & ~nodes
            elif one.start < end and one.end > begin:
                found |= nodes
        return found

    def phases_at(self, now: int = 0) -> Phases:
        """Return the phases of a controller that begins at a second: every pass is due.

        Usage was computed last at the end of a calculation period.
        """
        period, phase = self.priorities.settings.calculation_period, self.settings.calculation_phase
        first, looked = -(-phase % period), self.settings.backfill_phase
        return Phases(
            calculated=first + (now - first) // period * period,
            last_main=-(2**40),
            next_full=now,
            looked_at_all=-1,
            last_backfill=0,
            next_backfill=max(now + min(looked, 0), looked),
            changed=now,
        )


def in_turn(every: Sequence[Qos]) -> list[str]:
    """Return the names of all QOS, each behind those that preempt it, unless they go in circles."""
    left, found = {one.name: one for one in every}, []
    while left:
        free = [
            name for name in left
            if not any(name in other.preempts for other in left.values() if other.name != name)
        ] or list(left)[:1]  # fmt: skip
        found += free
        left = {name: one for name, one in left.items() if name not in free}
    return found


def may_suspend(machine: Machine) -> bool:
    """Return whether jobs may be suspended on a machine to make room."""
    modes: set[Preempt | None] = {machine.scheduling.preempt_mode}
    if machine.scheduling.preempt_type == "partition":
        modes |= {one.preempt_mode for one in machine.partitions}
    elif machine.scheduling.preempt_type == "qos":
        modes |= {one.preempt_mode for one in machine.qos}
    else:
        return False
    return Preempt.SUSPEND in modes


#: Limit of jobs without one where the partition has none either, s: a year.
NO_LIMIT = 365 * 86_400


class Manager(Protocol):
    """What admission needs of the manager of a machine."""

    layout: Layout
    shares: Shares
    limits: LimitKeeper


class Admission:
    """Turns jobs of the table into jobs of the manager of a machine, such as Slurm's controller."""

    def __init__(self, controller: Manager, jobs: JobTable) -> None:
        self.controller, self.layout, self.jobs = controller, controller.layout, jobs
        self._empty = Stock(self.layout)
        self._unused = LimitKeeper(self.layout)
        self._known: dict[int, QueuedJob] = {}
        self._arrived: dict[int, QueuedJob] = {}  # accepted, and not queued yet
        self._fits = cache(self._fits_at_all)
        self._qos = {one.name: one for one in self.layout.machine.qos}
        self._accounts = {one.account for one in self.layout.machine.accounts}
        self._reservations = {one.name: one for one in self.layout.machine.reservations}

    def of(self, jobs: JobTable) -> Self:
        """Return an admission to the same manager, of other jobs."""
        other = copy(self)
        other.jobs, other._known, other._arrived = jobs, {}, dict(self._arrived)
        return other

    def _word(self, ask: Ask, row: int) -> str:
        requests = self.jobs.requests
        return "" if requests is None else requests.word(ask, row)

    def _number(self, ask: Ask, row: int, default: int = UNKNOWN) -> int:
        requests = self.jobs.requests
        found = UNKNOWN if requests is None else int(requests[ask][row])
        return default if found == UNKNOWN else found

    def _job(self, row: int) -> QueuedJob:
        """Return a job as it would be queued now; resolved once, when it is submitted."""
        if row not in self._known:
            self._known[row] = self.resolved(row)
        return self._known[row]

    def peek(self, row: int, now: int, partition: str = "") -> QueuedJob:
        """Return a job as it would be queued now, in another partition if one is given.

        Nothing is changed: a user who is new does not join the accounts.
        """
        return self._joining(self.resolved(row, partition, adds=False), row, now)

    def accepted(self, row: int, now: int) -> QueuedJob:
        """Return a copy of an accepted job as it would be queued now."""
        return self._joining(copy(self._job(row)), row, now)

    def _joining(self, job: QueuedJob, row: int, now: int) -> QueuedJob:
        job.submitted, job.eligible = now, max(now, self._number(Ask.BEGIN, row, now))
        return job

    def resolved(self, row: int, partition: str = "", *, adds: bool = True) -> QueuedJob:
        """Return what a job asks for now; ``adds`` its user to the accounts if new."""
        jobs, layout = self.jobs, self.layout
        wanted = (partition,) if partition else partitions_asked(layout, jobs, row)
        user, association = self._whose(row, wanted[0], adds=adds)
        demands = {
            name: demand_of(layout, layout.partitions[name], jobs, row)
            for name in wanted
            if name in layout.partitions
        }
        limit = int(jobs.requested_time[row])
        if limit < 0 and demands:
            first = layout.partitions[next(iter(demands))]
            limit = first.default_time or first.max_time or NO_LIMIT
        return QueuedJob(
            row=row,
            user=user,
            association=association,
            qos=self._word(Ask.QOS, row) or self._default_qos(association),
            limit=limit,
            partitions=wanted,
            demands=demands,
            submitted=UNKNOWN,
            eligible=UNKNOWN,
            array=self._number(Ask.ARRAY, row),
            task=self._number(Ask.TASK, row),
            throttle=max(self._number(Ask.THROTTLE, row, 0), 0),
            nice=self._number(Ask.NICE, row, 0),
            requeue=self._number(Ask.NO_REQUEUE, row, 0) != 1,
            reservation=self._word(Ask.RESERVATION, row),
        )

    def association(self, row: int) -> Association:
        """Return the association of a job; its user is added to the accounts if new."""
        wanted = partitions_asked(self.layout, self.jobs, row)
        return self._whose(row, wanted[0], adds=True)[1]

    def _whose(self, row: int, partition: str, *, adds: bool) -> tuple[str, Association]:
        """Return the user and the association of a job."""
        jobs, shares = self.jobs, self.controller.shares
        user = name_of(jobs.names, "user", int(jobs.user[row]))
        account = self._word(Ask.ACCOUNT, row)
        if not account:
            group = name_of(jobs.names, "group", int(jobs.group[row]))
            account = group if group in self._accounts else ""
        return user, (shares.of if adds else shares.find)(user, account, partition)

    def turns_away(self, row: int) -> str:
        """Return why a job that waits could never run; leave out partitions that cannot run it."""
        return self.always_refused(self._job(row))

    def _default_qos(self, association: Association) -> str:
        for one in association.up():
            if one.account.default_qos:
                return one.account.default_qos
        return "normal" if "normal" in self._qos else ""

    def resize(self, row: int) -> None:
        """Set the processors of a job to those that it occupies: of whole nodes all.

        A job that asks for no time gets that of its partition. Called at each submission, so that
        what it asks for by then counts.
        """
        self._known.pop(row, None)
        self.uncount(row)
        job, jobs = self._job(row), self.jobs
        if jobs.requested_time[row] < 0:
            jobs.requested_time[row] = job.limit
        size, tasks = self.size_of(job)
        if tasks and jobs.requests is not None:
            jobs.requests.set(row, Ask.TASKS, tasks)
        if size:
            jobs.processors[row] = size

    def size_of(self, job: QueuedJob) -> tuple[int, int]:
        """Return the processors that a job occupies, and the tasks to note with them; 0 for none.

        Tasks are kept for another partition, where nodes are shared.
        """
        cores = [job.counted_cores(name, self.layout) for name in job.demands]
        if not cores:
            return 0, 0
        row = job.row
        size, before = max(min(cores), 1), int(self.jobs.processors[row])
        tasks = max(self._number(Ask.TASKS, row), self._number(Ask.TASKS_PER_NODE, row))
        if size == before or tasks >= 1:
            return size, 0
        return size, -(-before // max(self._number(Ask.CORES_PER_TASK, row), 1))

    def refusal(self, row: int) -> str:
        """Return why an arriving job is rejected, in Slurm's words; empty if it is not.

        One that is accepted counts on limits at once, so that they hold within a second too.
        """
        job, limits = self._job(row), self.controller.limits
        reason = self.refusal_of(job)
        if not reason and limits.enforced:
            self._arrived[row] = job
            limits.submitted(job)
        return reason

    def uncount(self, row: int) -> None:
        """Take an accepted job off the limits: it is queued or taken back now, or comes again."""
        job = self._arrived.pop(row, None)
        if job is not None:
            self.controller.limits.submitted(job, -1)

    def refusal_of(self, job: QueuedJob) -> str:
        """Return why a job is rejected; leave out partitions that cannot run it."""
        return self.always_refused(job) or self.controller.limits.at_submission(job)

    def always_refused(self, job: QueuedJob) -> str:
        """Return why a job is rejected whatever runs and waits; leave out partitions likewise."""
        if job.qos and job.qos not in self._qos:
            return "InvalidQOS"
        allowed = job.association.account.qos
        if self.layout.settings.enforce_limits and allowed and job.qos not in allowed:
            return "InvalidQOS"
        if job.reservation and (found := self._no_access(job)):
            return found
        reasons = {name: self._in_partition(job, name) for name in job.partitions}
        able = tuple(name for name, reason in reasons.items() if not reason)
        if not able or (
            len(able) < len(reasons) and self.layout.settings.enforce_part_limits == "all"
        ):
            return next(reason for reason in reasons.values() if reason)
        job.partitions = able
        return ""

    def _no_access(self, job: QueuedJob) -> str:
        """Return why a job may not use the reservation that it names."""
        kept = self._reservations.get(job.reservation)
        if kept is None:
            return "InvalidReservation"
        if kept.partition and kept.partition not in job.partitions:
            return "InvalidReservation"
        accounts = {one.name for one in job.association.up()}
        open_to_all = not kept.users and not kept.accounts
        if open_to_all or job.user in kept.users or accounts & set(kept.accounts):
            return ""
        return "ReservationAccess"

    def _in_partition(self, job: QueuedJob, name: str) -> str:
        layout = self.layout
        if name not in layout.partitions:
            return "InvalidPartition"
        partition, demand = layout.partitions[name], job.demands[name]
        reason = self._barred(job, partition)
        if reason:
            return reason
        if partition.max_time is not None and job.limit > partition.max_time:
            return "PartitionTimeLimit"
        if demand.least_nodes > demand.most_nodes:
            return "PartitionNodeLimit"
        if not self._fits(demand):
            return "BadConstraints"
        return self._unused.always(job, name)

    def _barred(self, job: QueuedJob, partition: Partition) -> str:
        account = job.association.name
        if partition.allow_accounts and account not in partition.allow_accounts:
            return "AccountNotAllowed"
        if account in partition.deny_accounts:
            return "AccountNotAllowed"
        if partition.allow_qos and job.qos not in partition.allow_qos:
            return "QOSNotAllowed"
        return "QOSNotAllowed" if job.qos in partition.deny_qos else ""

    def _fits_at_all(self, demand: Demand) -> bool:
        """Return whether a job would fit if the machine were empty."""
        return select(self._empty, demand, self.layout.all_nodes) is not None

    def queued(self, row: int, now: int) -> QueuedJob:
        """Return a job that joins the queue now."""
        self.uncount(row)
        job = self._known.pop(row, None) or self.resolved(row)
        return self._joining(job, row, now)
