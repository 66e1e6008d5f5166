"""Limits of associations and QOS, with Slurm's words for the reason; sacctmgr(1), Resource Limits.

A limit of the partition's QOS goes before one of the job's QOS, unless that has OverPartQOS, and
both before the association's and those above it (resource_limits page of Slurm).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field

from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Limits as LimitValues
from hpcrowd.environment.machine.model import Qos
from hpcrowd.environment.machine.stock import Holding
from hpcrowd.environment.machine.units import Tres
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob

#: How reasons name resources.
GROUP_WORDS = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "gres/gpu": "GRES"}


@dataclass
class Use:
    """What runs and waits on one account of a limit."""

    jobs: int = 0
    submitted: int = 0
    tres: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    running: dict[int, tuple[QueuedJob, Tres]] = field(default_factory=dict)

    def change(self, tres: Tres, sign: int) -> None:
        """Note that a job starts (1) or ends (-1)."""
        self.jobs += sign
        for name, amount in tres.items():
            self.tres[name] += sign * amount

    def left(self, name: str, now: int) -> int:
        """Return what running jobs may still use of a resource until their limits, times s."""
        return sum(tres.get(name, 0) * max(job.end - now, 0) for job, tres in self.running.values())


def resource_word(name: str) -> str:
    """Return how reasons name a resource."""
    return GROUP_WORDS.get(name, "GRES" if name.startswith("gres/") else "TRES")


class LimitKeeper:
    """Keeps all limits of a machine.

    Parameters
    ----------
    layout
        The machine.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.enforced = layout.settings.enforce_limits
        self._qos = {one.name: one for one in layout.machine.qos}
        self._use: dict[tuple[str, ...], Use] = defaultdict(Use)
        every = [one.limits for one in layout.machine.qos]
        every += [one.limits for one in layout.machine.accounts]
        self._knows_running = any(one.group_tres_run_minutes for one in every)

    def rules(self, job: QueuedJob, partition: str) -> Iterator[tuple[Qos, str]]:
        """Yield the QOS whose limits hold, the first to decide first."""
        own = self._qos.get(job.qos)
        of_partition = self._qos.get(self.layout.partitions[partition].qos)
        both = [of_partition, own]
        if own is not None and own.part_qos_overrides:
            both.reverse()
        yield from {one.name: (one, one.name) for one in both if one is not None}.values()

    def copy(self) -> LimitKeeper:
        """Return an independent copy."""
        other = copy(self)
        other._use = defaultdict(Use)
        for key, use in self._use.items():
            tres = defaultdict(int, use.tres)
            other._use[key] = Use(use.jobs, use.submitted, tres, dict(use.running))
        return other

    def _accounts(self, job: QueuedJob, partition: str) -> Iterator[Use]:
        """Yield all accounts that a job counts on."""
        name = job.association.name
        for _, qos in self.rules(job, partition):
            yield self._use["qos", qos]
            yield self._use["qos", qos, "user", job.user]
            yield self._use["qos", qos, "account", name]
        for one in job.association.up():
            yield self._use["assoc", str(one.place)]

    def submitted(self, job: QueuedJob, sign: int = 1) -> None:
        """Note that a job joins (1) or has left (-1) the machine."""
        for use in self._accounts(job, job.partitions[0]):
            use.submitted += sign

    def started(self, job: QueuedJob, sign: int = 1) -> None:
        """Note that a job has started (1) or ended (-1) with what it holds."""
        tres = job.tres(job.partition, self.layout, job.holding)
        for use in self._accounts(job, job.partition):
            use.change(tres, sign)
            if self._knows_running and sign > 0:
                use.running[job.row] = job, tres
            elif self._knows_running:
                use.running.pop(job.row, None)

    # reasons, in Slurm's words; empty for none

    def at_submission(self, job: QueuedJob) -> str:
        """Return why a job is rejected when it is submitted."""
        if not self.enforced:
            return ""
        partition = job.partitions[0]
        seen = set()
        for qos, name in self.rules(job, partition):
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
                    if self._use["qos", name, *key].submitted >= limit:
                        return reason
            if qos.deny_on_limit:
                found = self._of_job(job, partition, limits, "QOS")
                if found:
                    return found
        for one in job.association.up():
            limits, use = one.account.limits, self._use["assoc", str(one.place)]
            if limits.group_submit is not None and use.submitted >= limits.group_submit:
                return "AssocGrpSubmitJobsLimit"
            if one.user and limits.max_submit is not None and use.submitted >= limits.max_submit:
                return "AssocMaxSubmitJobLimit"
        return ""

    def before(self, job: QueuedJob, partition: str) -> str:
        """Return why a job may not start, whatever it would get: numbers of jobs."""
        if not self.enforced:
            return ""
        seen = set()
        for qos, name in self.rules(job, partition):
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
                    if self._use["qos", name, *key].jobs >= limit:
                        return reason
            if limits.max_wall is not None and job.limit > limits.max_wall:
                return "QOSMaxWallDurationPerJobLimit"
        for one in job.association.up():
            limits, use = one.account.limits, self._use["assoc", str(one.place)]
            if limits.group_jobs is not None and use.jobs >= limits.group_jobs:
                return "AssocGrpJobsLimit"
            if one.user and limits.max_jobs is not None and use.jobs >= limits.max_jobs:
                return "AssocMaxJobsLimit"
            if one.user and limits.max_wall is not None and job.limit > limits.max_wall:
                return "AssocMaxWallDurationPerJobLimit"
        return ""

    def after(
        self, job: QueuedJob, partition: str, holding: Holding | None = None, now: int = 0
    ) -> str:
        """Return why a job may not start now with what it would hold, or with what it asks."""
        if not self.enforced:
            return ""
        tres = job.tres(partition, self.layout, holding)
        for qos, name in self.rules(job, partition):
            limits = qos.limits
            found = (
                self._beyond(tres, limits.group_tres, self._use["qos", name], "QOSGrp", "Limit")
                or self._of_job(job, partition, limits, "QOS", tres, holding)
                or self._beyond(
                    tres,
                    limits.max_tres_per_user,
                    self._use["qos", name, "user", job.user],
                    "QOSMax",
                    "PerUserLimit",
                )
                or self._beyond(
                    tres,
                    limits.max_tres_per_account,
                    self._use["qos", name, "account", job.association.name],
                    "QOSMax",
                    "PerAccountLimit",
                )
                or self._minutes(job, tres, limits, self._use["qos", name], "QOS", now)
            )
            if found:
                return found
        for one in job.association.up():
            limits, use = one.account.limits, self._use["assoc", str(one.place)]
            found = self._beyond(tres, limits.group_tres, use, "AssocGrp", "Limit")
            found = found or self._minutes(job, tres, limits, use, "Assoc", now, one.usage)
            if not found and one.user:
                found = self._of_job(job, partition, limits, "Assoc", tres, holding)
            if found:
                return found
        return ""

    def _of_job(
        self,
        job: QueuedJob,
        partition: str,
        limits: LimitValues,
        whose: str,
        tres: Tres | None = None,
        holding: Holding | None = None,
    ) -> str:
        """Return a reason if one job asks for too much, or too little."""
        if tres is None:
            tres = job.tres(partition, self.layout)
        for name, limit in limits.max_tres.items():
            if tres.get(name, 0) > limit:
                return f"{whose}Max{resource_word(name)}PerJobLimit"
        for name, limit in limits.min_tres.items():
            if tres.get(name, 0) < limit:
                return f"{whose}Min{resource_word(name)}"
        if limits.max_tres_per_node and holding:
            for share in holding:
                on_node = {"cpu": share.cores, "mem": share.memory, "gres/gpu": sum(share.gpus)}
                for name, limit in limits.max_tres_per_node.items():
                    if on_node.get(name, 0) > limit:
                        return f"{whose}Max{resource_word(name)}PerNode"
        return ""

    @staticmethod
    def _beyond(tres: Tres, limits: Tres, use: Use, begin: str, end: str) -> str:
        """Return a reason if a job would exceed what is in use at most."""
        for name, limit in limits.items():
            if use.tres[name] + tres.get(name, 0) > limit:
                return f"{begin}{resource_word(name)}{end}"
        return ""

    @staticmethod
    def _minutes(
        job: QueuedJob,
        tres: Tres,
        limits: LimitValues,
        use: Use,
        whose: str,
        now: int,
        usage: float | None = None,
    ) -> str:
        """Return a reason if decayed usage is at its limit, or what is left to run beyond its own.

        Usage is known in processors only. What is left to run counts until time limits.
        """
        limit = limits.group_tres_minutes.get("cpu")
        if limit is not None and usage is not None and usage / 60 >= limit:
            return f"{whose}GrpCPUMinutesLimit"
        for name, most in limits.group_tres_run_minutes.items():
            left = use.left(name, now) + tres.get(name, 0) * job.limit
            if left > 60 * most:
                return f"{whose}GrpCPURunMinutesLimit" if name == "cpu" else f"{whose}GrpTRES"
        return ""
