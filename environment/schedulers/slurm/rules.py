"""The rules of a machine of nodes under Slurm's controller, and its rhythm at the beginning."""

from __future__ import annotations

from collections.abc import Sequence

from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, Preempt, Qos
from hpcrowd.environment.machine.past import Phases
from hpcrowd.environment.machine.selection import RULES, Rule
from hpcrowd.environment.schedulers.slurm.limits import LimitKeeper
from hpcrowd.environment.schedulers.slurm.priority import Priorities
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Shares


class SiteRules:
    """Who counts where, how jobs are weighed and placed, and what keeps them off nodes.

    Parameters
    ----------
    machine
        Its description.
    placement
        The rule of placement, one of :data:`~hpcrowd.environment.machine.selection.RULES`, or a
        function.

    Attributes
    ----------
    layout, settings
        The nodes, and how the controller is set.
    rule
        The rule of placement; None for Slurm's consecutive nodes.
    shares
        The tree of associations, to which new users are added.
    limits, priorities
        What is counted on limits, and how priorities are computed.
    """

    def __init__(self, machine: Machine, placement: str | Rule = "slurm") -> None:
        self.layout = Layout(machine)
        self.settings = machine.scheduling
        self.rule = RULES[placement] if isinstance(placement, str) else placement
        if self.rule is None and self.settings.least_loaded:
            self.rule = RULES["spread"]
        self.shares = Shares(machine)
        self.shares.rank()
        self.limits = LimitKeeper(self.layout)
        self.priorities = Priorities(self.layout)
        self._reservations = [
            (one, self.layout.nodes_in(one.nodes)) for one in machine.reservations
        ]

    def reserved(self, job: QueuedJob) -> int:
        """Return the nodes that reservations keep from a job while it runs."""
        barred, end = 0, job.start + job.limit
        for one, nodes in self._reservations:
            if job.reservation == one.name:
                if job.start < one.start or end > one.end:
                    return self.layout.all_nodes
                if not one.flexible:
                    barred |= self.layout.all_nodes & ~nodes
            elif one.start < end and one.end > job.start:
                barred |= nodes
        return barred

    def phases_at(self, now: int = 0) -> Phases:
        """Return the phases of a controller that begins at a second: every pass is due.

        Usage was computed last at the end of a calculation period.
        """
        period, phase = self.priorities.settings.calculation_period, self.settings.calculation_phase
        first = -(-phase % period)
        return Phases(
            calculated=first + (now - first) // period * period,
            last_main=-(2**40),
            next_full=now,
            looked_at_all=-1,
            last_backfill=0,
            next_backfill=max(float(now), self.settings.backfill_phase),
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
