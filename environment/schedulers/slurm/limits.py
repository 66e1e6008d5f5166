"""Limits of associations and QOS, with Slurm's words for the reason; sacctmgr(1), Resource Limits.

A limit of the partition's QOS goes before one of the job's QOS, unless that has OverPartQOS, and
both before the association's and those above it (resource_limits page of Slurm).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Limits as LimitValues
from hpcrowd.environment.machine.model import Qos
from hpcrowd.environment.machine.selection import Holding, Share
from hpcrowd.environment.machine.units import Tres
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import LN2, Association

NO_LIMITS = LimitValues()

#: How reasons name resources.
GROUP_WORDS = {
    "cpu": "Cpu", "mem": "Mem", "node": "Node", "gres/gpu": "GRES", "billing": "Billing",
}  # fmt: skip

#: How reasons name minutes of a resource where that is irregular.
MINUTES = {
    ("QOS", "cpu"): "CPUMinutesLimit", ("Assoc", "cpu"): "CPUMinutesLimit",
    ("QOS", "mem"): "MemoryMinutes",
}  # fmt: skip


@dataclass
class Use:
    """What runs and waits on one account of a limit, and the decayed usage of each resource."""

    jobs: int = 0
    submitted: int = 0
    tres: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    running: dict[int, tuple[QueuedJob, Tres]] = field(default_factory=dict)

    def change(self, tres: Tres, sign: int) -> None:
        """Note that a job starts (1) or ends (-1)."""
        self.jobs += sign
        for name, amount in tres.items():
            self.tres[name] += sign * amount

    def left(self, name: str, since: int) -> int:
        """Return what running jobs may still use of a resource until their limits, times s.

        That is from a second on, or their starts.
        """
        return sum(
            tres.get(name, 0) * max(job.end - max(since, job.start), 0)
            for job, tres in self.running.values()
        )


#: An account of use, such as ``("qos", "normal", "user", "ada")``.
UseKey = tuple[str, ...]


class Bill(NamedTuple):
    """What a run is charged in a second."""

    association: Association
    rate: float  #: of fair share
    tres: dict[str, float]  #: of limits
    uses: tuple[UseKey, ...]


class Check(NamedTuple):
    """A limit to be checked."""

    kind: int  #: one of those of ``kernel.nodes.site``
    use: UseKey
    resource: str
    limit: int
    reason: str


def resource_word(name: str) -> str:
    """Return how reasons name a resource."""
    return GROUP_WORDS.get(name, "GRES" if name.startswith("gres/") else "TRES")


class LimitKeeper:
    """Keeps all limits of a machine."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.enforced = layout.settings.enforce_limits
        self._qos = {one.name: one for one in layout.machine.qos}
        self._use: dict[tuple[str, ...], Use] = defaultdict(Use)
        every = [one.limits for one in layout.machine.qos]
        every += [one.limits for one in layout.machine.accounts]
        #: Whether decayed usage is limited.
        self.minutes = self.enforced and any(one.group_tres_minutes for one in every)
        self._knows_running = any(one.group_tres_run_minutes for one in every)
        self._knows_running |= self.minutes and layout.settings.safe_limits
        partitions, every_qos = layout.partitions.values(), layout.machine.qos
        #: Whether jobs are charged for more than their cores.
        self.bills = self.minutes or any(one.billing_weights for one in partitions)
        self.bills |= any(one.usage_factor != 1 for one in every_qos)
        self._both: dict[Hashable, tuple[Check, ...]] = {}
        #: Until when usage is known, s; of the plain form.
        self.calculated = 0

    def rules(self, job: QueuedJob, partition: str) -> list[Qos]:
        """Return the QOS whose limits hold, the first to decide first."""
        own = self._qos.get(job.qos)
        both = [self._qos.get(self.layout.partitions[partition].qos), own]
        if own is not None and own.part_qos_overrides:
            both.reverse()
        return list({one.name: one for one in both if one is not None}.values())

    def copy(self) -> LimitKeeper:
        """Return an independent copy."""
        other = copy(self)
        other._use = defaultdict(Use)
        for key, use in self._use.items():
            tres = defaultdict(int, use.tres)
            spent = defaultdict(float, use.spent)
            other._use[key] = Use(use.jobs, use.submitted, tres, spent, dict(use.running))
        return other

    # decayed usage

    def bill(self, job: QueuedJob, partition: str, holding: Holding | None = None) -> Bill:
        """Return what a run of a job is charged that holds something, or what it asks."""
        tres = job.tres(partition, self.layout, holding)
        counts = self.usage_factor(job)
        rate = job.billed(tres, partition, self.layout) * counts
        amounts = {name: amount * counts for name, amount in tres.items()}
        uses = tuple(self.uses(job, partition, limited=True)) if self.minutes else ()
        return Bill(job.association, rate, amounts, uses)

    def usage_factor(self, job: QueuedJob) -> float:
        """Return how often the usage of a job counts."""
        own = self._qos.get(job.qos)
        return 1.0 if own is None else own.usage_factor

    def kept(self, use: UseKey) -> float:
        """Return what is left of the decayed usage of an account after a second."""
        half_life = self.layout.machine.priority.half_life
        forever = not half_life or (use[0] == "qos" and self._qos[use[1]].no_decay)
        return 1.0 if forever else 1 - LN2 / half_life

    def spend(self, bill: Bill, seconds: float) -> None:
        """Charge what ran for the last seconds."""
        for use in bill.uses:
            kept, spent = self.kept(use) ** seconds, self._use[use].spent
            for name, amount in bill.tres.items():
                spent[name] += amount * seconds * kept

    def spent_before(self, bill: Bill, seconds: float, *, decays: bool) -> None:
        """Charge what is left of earlier runs to the accounts whose usage decays, or does not."""
        for use in bill.uses:
            if (self.kept(use) < 1) == decays:
                for name, amount in bill.tres.items():
                    self._use[use].spent[name] += amount * seconds

    def fade(self, seconds: float, *, reset: bool = False) -> None:
        """Let usage decay for some seconds, or begin anew."""
        for key, use in self._use.items():
            if use.spent:
                left = 0.0 if reset else self.kept(key) ** seconds
                use.spent.update({name: amount * left for name, amount in use.spent.items()})

    def spent(self, key: UseKey) -> dict[str, float]:
        """Return the decayed usage of an account by resource, times s."""
        return self._use[key].spent

    def usage_falls(self, job: QueuedJob, partition: str) -> bool:
        """Return whether time alone takes usage below the limits that keep a job waiting."""
        tres = job.tres(partition, self.layout)
        met = [
            self.kept(one.use) < 1 or self.layout.machine.priority.usage_reset != "none"
            for one in self.checks_after(job, partition)
            if one.kind == N.USED_MINUTES and self._is_met(one, job, tres, (), 0)
        ]
        return bool(met) and all(met)

    def uses(self, job: QueuedJob, partition: str, *, limited: bool = False) -> Iterator[UseKey]:
        """Yield all accounts of use that a job counts on, or only those with limits."""
        for qos in self.rules(job, partition):
            if not limited or qos.limits != NO_LIMITS:
                yield "qos", qos.name
                yield "qos", qos.name, "user", job.user
                yield "qos", qos.name, "account", job.association.name
        for one in job.association.up():
            if not limited or one.account.limits != NO_LIMITS:
                yield "assoc", str(one.place)

    def submitted(self, job: QueuedJob, sign: int = 1) -> None:
        """Note that a job joins (1) or has left (-1) the machine."""
        for key in self.uses(job, job.partitions[0]):
            self._use[key].submitted += sign

    def started(self, job: QueuedJob, sign: int = 1) -> None:
        """Note that a job has started (1) or ended (-1) with what it holds."""
        tres = job.tres(job.partition, self.layout, job.holding)
        for use in map(self._use.__getitem__, self.uses(job, job.partition)):
            use.change(tres, sign)
            if self._knows_running and sign > 0:
                use.running[job.row] = job, tres
            elif self._knows_running:
                use.running.pop(job.row, None)

    # what is checked, the first to decide first

    def checks_at_submission(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        """Yield the limits for which a job is rejected when it is submitted."""
        seen: set[str] = set()
        for qos in self.rules(job, partition):
            limits = qos.limits
            for limit, key, reason in (
                (limits.max_submit, ("user", job.user), "QOSMaxSubmitJobPerUserLimit"),
                (
                    limits.max_submit_per_account,
                    ("account", job.association.name),
                    "QOSMaxSubmitJobPerAccountLimit",
                ),
                (limits.group_submit, (), "QOSGrpSubmitJobsLimit"),
            ):
                if limit is not None and reason not in seen:
                    seen.add(reason)
                    yield Check(N.MOST_SUBMITTED, ("qos", qos.name, *key), "", limit, reason)
            if qos.deny_on_limit:
                yield from _of_job(limits, "QOS")
        for one in job.association.up():
            limits, use = one.account.limits, ("assoc", str(one.place))
            if limits.group_submit is not None:
                reason = "AssocGrpSubmitJobsLimit"
                yield Check(N.MOST_SUBMITTED, use, "", limits.group_submit, reason)
            if one.user and limits.max_submit is not None:
                reason = "AssocMaxSubmitJobLimit"
                yield Check(N.MOST_SUBMITTED, use, "", limits.max_submit, reason)

    def checks_before(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        """Yield the limits that hold whatever a job would get: numbers of jobs, and time."""
        seen: set[str] = set()
        for qos in self.rules(job, partition):
            limits = qos.limits
            for limit, key, reason in (
                (limits.group_jobs, (), "QOSGrpJobsLimit"),
                (limits.max_jobs, ("user", job.user), "QOSMaxJobsPerUserLimit"),
                (
                    limits.max_jobs_per_account,
                    ("account", job.association.name),
                    "QOSMaxJobsPerAccountLimit",
                ),
            ):
                if limit is not None and reason not in seen:
                    seen.add(reason)
                    yield Check(N.MOST_RUNNING, ("qos", qos.name, *key), "", limit, reason)
            if limits.max_wall is not None:
                yield Check(N.LONGEST, (), "", limits.max_wall, "QOSMaxWallDurationPerJobLimit")
        for one in job.association.up():
            limits, use = one.account.limits, ("assoc", str(one.place))
            if limits.group_jobs is not None:
                yield Check(N.MOST_RUNNING, use, "", limits.group_jobs, "AssocGrpJobsLimit")
            if one.user and limits.max_jobs is not None:
                yield Check(N.MOST_RUNNING, use, "", limits.max_jobs, "AssocMaxJobsLimit")
            if one.user and limits.max_wall is not None:
                yield Check(N.LONGEST, (), "", limits.max_wall, "AssocMaxWallDurationPerJobLimit")

    def checks_after(self, job: QueuedJob, partition: str) -> Iterator[Check]:
        """Yield the limits on what a job would hold, or asks for."""
        for qos in self.rules(job, partition):
            limits, use = qos.limits, ("qos", qos.name)
            user, account = (*use, "user", job.user), (*use, "account", job.association.name)
            yield from _in_use(limits.group_tres, use, "QOSGrp", "Limit")
            yield from _of_job(limits, "QOS")
            yield from _in_use(limits.max_tres_per_user, user, "QOSMax", "PerUserLimit")
            yield from _in_use(limits.max_tres_per_account, account, "QOSMax", "PerAccountLimit")
            yield from _minutes(limits, use, "QOS")
        for one in job.association.up():
            limits, use = one.account.limits, ("assoc", str(one.place))
            yield from _in_use(limits.group_tres, use, "AssocGrp", "Limit")
            yield from _minutes(limits, use, "Assoc")
            if one.user:
                yield from _of_job(limits, "Assoc")

    # reasons, in Slurm's words; empty for none

    def at_submission(self, job: QueuedJob) -> str:
        """Return why a job is rejected when it is submitted."""
        partition = job.partitions[0]
        return self._first(self.checks_at_submission(job, partition), job, partition)

    def before(self, job: QueuedJob, partition: str) -> str:
        """Return why a job may not start, whatever it would get: numbers of jobs."""
        return self._first(self.checks_before(job, partition), job, partition)

    def always(self, job: QueuedJob, partition: str) -> str:
        """Return why a job may not start with what it asks, if nothing else runs."""
        one = job.association
        key = job.user, one.place, one.name, job.qos, partition
        if key not in self._both:
            both = self.checks_before(job, partition), self.checks_after(job, partition)
            self._both[key] = tuple(
                check
                for checks in both
                for check in checks
                if check.kind != N.MOST_RUNNING or not check.limit  # nothing runs
            )
        return self._first(self._both[key], job, partition) if self._both[key] else ""

    def after(
        self, job: QueuedJob, partition: str, holding: Holding | None = None, now: int = 0
    ) -> str:
        """Return why a job may not start now with what it would hold, or with what it asks."""
        return self._first(self.checks_after(job, partition), job, partition, holding, now)

    def _first(
        self,
        checks: Iterable[Check],
        job: QueuedJob,
        partition: str,
        holding: Holding | None = None,
        now: int = 0,
    ) -> str:
        """Return the reason of the first limit that is in the way."""
        if not self.enforced:
            return ""
        tres = job.tres(partition, self.layout, holding)
        met = (one.reason for one in checks if self._is_met(one, job, tres, holding or (), now))
        return next(met, "")

    def _is_met(self, one: Check, job: QueuedJob, tres: Tres, holding: Holding, now: int) -> bool:
        """Return whether a limit is in the way."""
        use, amount = self._use[one.use], tres.get(one.resource, 0)
        match one.kind:
            case N.MOST_SUBMITTED:
                return use.submitted >= one.limit
            case N.MOST_RUNNING:
                return use.jobs >= one.limit
            case N.LONGEST:
                return job.limit > one.limit
            case N.IN_USE:
                return use.tres[one.resource] + amount > one.limit
            case N.JOB_MOST:
                return amount > one.limit
            case N.JOB_LEAST:
                return amount < one.limit
            case N.NODE_MOST:
                return any(_on_node(share).get(one.resource, 0) > one.limit for share in holding)
            case N.RUN_MINUTES:  # what is left to run counts until time limits
                return use.left(one.resource, now) + amount * job.limit > 60 * one.limit
        spent = use.spent.get(one.resource, 0.0)
        if spent / 60 >= one.limit or not self.layout.settings.safe_limits:
            return spent / 60 >= one.limit
        left = use.left(one.resource, self.calculated)
        return spent + left + amount * job.limit > 60 * one.limit


def _on_node(share: Share) -> dict[str, int]:
    """Return what a job would hold on one node."""
    return {"cpu": share.cores, "mem": share.memory, "gres/gpu": sum(share.gpus)}


def _in_use(limits: Tres, use: UseKey, begin: str, end: str) -> Iterator[Check]:
    for name, limit in limits.items():
        yield Check(N.IN_USE, use, name, limit, f"{begin}{resource_word(name)}{end}")


def _minutes(limits: LimitValues, use: UseKey, whose: str) -> Iterator[Check]:
    for name, most in limits.group_tres_minutes.items():
        word = MINUTES.get((whose, name), f"{resource_word(name)}Minutes")
        yield Check(N.USED_MINUTES, use, name, most, f"{whose}Grp{word}")
    for name, most in limits.group_tres_run_minutes.items():
        reason = f"{whose}GrpCPURunMinutesLimit" if name == "cpu" else f"{whose}GrpTRES"
        yield Check(N.RUN_MINUTES, use, name, most, reason)


def _of_job(limits: LimitValues, whose: str) -> Iterator[Check]:
    kinds: Iterable[tuple[int, Tres, str, str]] = (
        (N.JOB_MOST, limits.max_tres, "Max", "PerJobLimit"),
        (N.JOB_LEAST, limits.min_tres, "Min", ""),
        (N.NODE_MOST, limits.max_tres_per_node, "Max", "PerNode"),
    )
    for kind, values, begin, end in kinds:
        for name, limit in values.items():
            yield Check(kind, (), name, limit, f"{whose}{begin}{resource_word(name)}{end}")
