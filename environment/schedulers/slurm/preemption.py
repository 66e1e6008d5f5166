"""Preemption by partition tier or QOS; slurm.conf(5), PreemptType and PreemptMode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.environment.machine.selection import Rule, select
from hpcrowd.environment.machine.stock import Holding, Stock
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob


class Preemption:
    """Who may preempt whom, and whom to choose.

    Parameters
    ----------
    layout
        The machine.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.settings = layout, layout.settings
        self._qos = {one.name: one for one in layout.machine.qos}

    def fate(self, job: QueuedJob) -> Preempt:
        """Return what happens to a running job that is preempted; OFF if it cannot be."""
        settings = self.settings
        found: Preempt | None = None
        if settings.preempt_type == "partition":
            found = self.layout.partitions[job.partition].preempt_mode
        elif settings.preempt_type == "qos" and job.qos in self._qos:
            found = self._qos[job.qos].preempt_mode
        found = settings.preempt_mode if found is None else found
        if found == Preempt.REQUEUE and not (job.requeue and settings.requeue):
            return Preempt.CANCEL
        return found

    def candidates(
        self, job: QueuedJob, partition: str, running: Iterable[QueuedJob], now: int
    ) -> list[QueuedJob]:
        """Return running jobs that a waiting one may preempt, the first to go first."""
        kind, layout = self.settings.preempt_type, self.layout
        if kind == "none":
            return []
        tier, usable = layout.partitions[partition].priority_tier, job.demands[partition].nodes
        preempts = self._qos[job.qos].preempts if job.qos in self._qos else ()
        found = []
        for other in running:
            if kind == "partition":
                lower = layout.partitions[other.partition].priority_tier < tier
            else:
                lower = other.qos in preempts
            if (
                lower
                and other.nodes & usable
                and now - other.start >= max(self.settings.preempt_exempt_time, 1)
                and self.fate(other) != Preempt.OFF
            ):
                found.append(other)
        if self.settings.preempt_youngest_first:
            return sorted(found, key=lambda other: (-other.start, other.row))
        return sorted(found, key=lambda other: (self._rank(other), len(other.holding)))

    def _rank(self, job: QueuedJob) -> int:
        if self.settings.preempt_type == "partition":
            return self.layout.partitions[job.partition].priority_tier
        return self._qos[job.qos].priority

    def choose(
        self,
        stock: Stock,
        demand: Demand,
        allowed: int,
        candidates: Sequence[QueuedJob],
        rule: Rule | None,
    ) -> tuple[Holding, list[QueuedJob]] | None:
        """Return what a job would hold, and whom it would preempt for it.

        Candidates go one by one until it fits; then those that hold most of the chosen nodes are
        tried first, ``reorder_count`` times (SchedulerParameters, preempt_reorder_count).
        """
        order, holding = list(candidates), None
        removed: list[QueuedJob] = []
        chosen = 0
        for again in range(self.settings.reorder_count + 2):
            future = stock.copy()
            removed, holding = [], None
            for other in order:
                future.give(other.holding)
                removed.append(other)
                holding = select(future, demand, allowed, rule)
                if holding is not None:
                    break
            if holding is None:
                return None
            chosen = 0
            for share in holding:
                chosen |= 1 << share.node
            if again > self.settings.reorder_count or len(order) <= again + 1:
                break
            last = removed[-1]
            before = removed[:-1]
            before.sort(key=lambda other: -((other.nodes & chosen).bit_count()))
            order = [last, *before, *order[len(removed) :]]
        assert holding is not None
        return holding, [other for other in removed if other.nodes & chosen]
