"""Preemption by partition tier or QOS; slurm.conf(5), PreemptType and PreemptMode.

A suspended job keeps its memory and GPUs, and its cores against all that may not preempt it; it
goes on once those that hold its cores have ended (slurm.conf(5), PreemptMode, SUSPEND). The rest of
gang scheduling is not simulated: jobs of one partition do not take turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpcrowd.environment.machine.demand import Demand
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, Preempt, Qos
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
        self.suspends = may_suspend(layout.machine)
        self.qos_in_turn = _in_turn(layout.machine.qos)
        self._above = {
            name: [above for above in self.qos_in_turn[:turn] if name in self._qos[above].preempts]
            for turn, name in enumerate(self.qos_in_turn)
        }

    def preemptors_first(self, queue: list[tuple[QueuedJob, str]]) -> list[tuple[QueuedJob, str]]:
        """Return the queue with each job behind those whose QOS may preempt it.

        Slurm's order of the queue compares two jobs by this before anything else.
        """
        if self.settings.preempt_type != "qos":
            return queue
        behind, moved = list(range(len(queue))), [0] * len(queue)
        last: dict[str, int] = {}
        for turn, name in enumerate(self.qos_in_turn, 1):
            after = max((last.get(above, -1) for above in self._above[name]), default=-1)
            for place, (job, _) in enumerate(queue):
                if job.qos == name:
                    if after > place:
                        behind[place], moved[place] = after, turn
                    last[name] = max(last.get(name, -1), behind[place])
        order = sorted(range(len(queue)), key=lambda one: (behind[one], moved[one], one))
        return [queue[place] for place in order]

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
                and (
                    other.suspended >= 0
                    or now - other.start >= max(self.settings.preempt_exempt_time, 1)
                )
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

        Those that would be suspended lend their cores first, all of them. If that is not enough,
        the other candidates go one by one until it fits; then those that hold most of the chosen
        nodes are tried first, ``reorder_count`` times (SchedulerParameters, preempt_reorder_count).
        """
        lenders = [other for other in candidates if self.fate(other) == Preempt.SUSPEND]
        if lenders:
            stock = stock.copy()
            for other in lenders:
                stock.lend(other.holding)
            holding = select(stock, demand, allowed, rule)
            if holding is not None:
                return holding, lenders
        order = [other for other in candidates if self.fate(other) != Preempt.SUSPEND]
        holding = None
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

    def in_the_way(
        self, holding: Holding, lenders: Iterable[QueuedJob], running: Iterable[QueuedJob]
    ) -> list[QueuedJob]:
        """Return the jobs to be suspended so that another may have its cores, and no more of them.

        The lenders are gone through in their order.
        """
        busy, cores = self.busy(running), self.layout.cores
        for share in holding:
            busy[share.node] = busy.get(share.node, 0) + share.cores
        wanted = {share.node for share in holding}
        found = []
        for other in lenders:
            if (
                other.suspended < 0
                and any(one.node in wanted and busy[one.node] > cores[one.node]
                        for one in other.holding)
            ):  # fmt: skip
                found.append(other)
                for share in other.holding:
                    busy[share.node] -= share.cores
        return [other for other in found if not _goes_on(other, busy, cores)]

    def may_go_on(self, running: Iterable[QueuedJob]) -> list[QueuedJob]:
        """Return the suspended jobs whose cores nobody uses any more: high tiers first."""
        paused = [job for job in running if job.suspended >= 0]
        if not paused:
            return []
        busy, cores = self.busy(running), self.layout.cores
        order = sorted(paused, key=lambda one: (-self._rank(one), one.start, one.row))
        return [job for job in order if _goes_on(job, busy, cores)]

    @staticmethod
    def busy(running: Iterable[QueuedJob]) -> dict[int, int]:
        """Return the cores by node of the jobs that are not suspended."""
        found: dict[int, int] = {}
        for job in running:
            if job.suspended < 0:
                for share in job.holding:
                    found[share.node] = found.get(share.node, 0) + share.cores
        return found


def _in_turn(every: Sequence[Qos]) -> list[str]:
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


def _goes_on(job: QueuedJob, busy: dict[int, int], cores: Sequence[int]) -> bool:
    """Return whether the cores of a job are free; they are busy then."""
    if any(busy.get(one.node, 0) + one.cores > cores[one.node] for one in job.holding):
        return False
    for share in job.holding:
        busy[share.node] = busy.get(share.node, 0) + share.cores
    return True


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
