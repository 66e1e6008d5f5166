"""Slurm's backfill scheduler: one cycle, in plain Python; sched/backfill of Slurm.

The plan is a list of spans of time with the nodes that no planned job holds; a planned job holds
whole nodes, rounded to ``bf_resolution``. A waiting job, by priority, starts if it can with nodes
that are free of plans until its limit; otherwise its start is foretold by letting running jobs end
in order of their limits, and its nodes are kept from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.environment.machine.selection import select
from hpcrowd.environment.machine.stock import Holding
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.schedulers.slurm.timing import KILL_WAIT, MOST_TAKEN_OUT, TIME_WINDOW

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.slurm.controller import Controller

#: A year, s: the limit of jobs without one.
YEAR = 365 * 86_400


@dataclass
class Span:
    """A time span of the plan, and the nodes that nothing planned holds."""

    begin: int
    end: int
    nodes: int


class Plan:
    """The table of planned nodes over time.

    Parameters
    ----------
    begin, end
        s; the window.
    nodes
        The nodes that are up.
    """

    def __init__(self, begin: int, end: int, nodes: int) -> None:
        self.spans = [Span(begin, end, nodes)]

    def keep(self, begin: int, end: int, nodes: int) -> None:
        """Keep nodes for a job from one second to another."""
        self._split(begin)
        self._split(end)
        for span in self.spans:
            if span.end > begin and span.begin < end:
                span.nodes &= ~nodes

    def _split(self, at: int) -> None:
        for place, span in enumerate(self.spans):
            if span.begin < at < span.end:
                self.spans.insert(place + 1, Span(at, span.end, span.nodes))
                span.end = at
                return

    def clashes(self, begin: int, end: int, nodes: int) -> bool:
        """Return whether some of the nodes are kept for others within a time."""
        return any(
            span.begin < end and span.end > begin and nodes & ~span.nodes for span in self.spans
        )

    def usable(self, nodes: int, start: int, end: int) -> tuple[int, int]:
        """Return the nodes that are free of plans from start to end, and when to try later.

        The second is 0 if nothing changes later.
        """
        later, found = 0, nodes
        for place, span in enumerate(self.spans):
            following = self.spans[place + 1] if place + 1 < len(self.spans) else None
            # Later spans are worth trying if they have nodes that this one lacks.
            if (
                span.end > start
                and following is not None
                and not later
                and nodes & following.nodes & ~(found & span.nodes)
            ):
                later = span.end
            if span.end <= start:
                continue
            if span.begin > end:
                if not later and following is not None:
                    later = following.end
                break
            found &= span.nodes
        return found, later


class BackfillCycle:
    """One cycle of the backfill scheduler.

    Parameters
    ----------
    controller
        Whose queue is planned.
    now
        The present second.
    """

    def __init__(self, controller: Controller, now: int) -> None:
        self.controller, self.now = controller, now
        self.settings = controller.layout.settings
        resolution = self.settings.bf_resolution
        begin = now // resolution * resolution
        self.window = (now + self.settings.bf_window) // resolution * resolution
        self.plan = Plan(begin, self.window, controller.up)
        self.tested = self.started = 0
        self.planned = 0  # nodes of plans

    def run(self) -> None:
        """Start what can start, and plan the others."""
        controller, settings = self.controller, self.settings
        rejected: dict[tuple[int, str], QueuedJob] = {}
        planned_tasks: dict[int, int] = {}
        counts: dict[tuple[str, str], int] = {}
        queue = controller.ordered(self.now, backfill=True)
        for job, _ in queue:
            job.planned = -1
        for job, partition in queue:
            if self.tested >= settings.bf_max_job_test or (
                settings.bf_max_job_start and self.started >= settings.bf_max_job_start
            ):
                break
            if job.holding:
                continue
            if not settings.assoc_limit_stop and not controller.within_limits(job, partition):
                continue
            if job.array >= 0:
                if (job.array, partition) in rejected:
                    job.reason = rejected[job.array, partition].reason
                    continue
                if planned_tasks.get(job.array, 0) >= settings.bf_max_job_array_resv:
                    continue
                rejected[job.array, partition] = job
                if controller.throttled(job):
                    continue
            if self._too_many(job, partition, counts):
                continue
            if not controller.layout.partitions[partition].up:
                continue
            if self._try(job, partition):
                rejected.pop((job.array, partition), None)
                if not job.holding and job.array >= 0:
                    planned_tasks[job.array] = planned_tasks.get(job.array, 0) + 1

        controller.plan_on(self.planned, self.now)

    def _too_many(self, job: QueuedJob, partition: str, counts: dict[tuple[str, str], int]) -> bool:
        """Count jobs of a user, partition or association, and return whether there are too many."""
        settings = self.settings
        keys = (
            (settings.bf_max_job_user, ("user", job.user)),
            (settings.bf_max_job_part, ("part", partition)),
            (settings.bf_max_job_assoc, ("assoc", str(job.association.place))),
        )
        for limit, key in keys:
            if limit and counts.get(key, 0) >= limit:
                return True
        for limit, key in keys:
            if limit:
                counts[key] = counts.get(key, 0) + 1
        return False

    def _try(self, job: QueuedJob, partition: str) -> bool:
        """Start or plan a job; return whether it did either."""
        controller, now, demand = self.controller, self.now, job.demands[partition]
        counted = False
        later = now
        limit = job.limit
        while True:
            start = max(later, now)
            barred, resv_end = controller.reserved(job, start, limit)
            if start > self.window:
                return False
            free = demand.nodes & controller.up & ~barred
            free, later = self.plan.usable(free, start, start + limit)
            if barred and resv_end and (not later or resv_end < later):
                later = resv_end
            if free.bit_count() < demand.least_nodes:
                if not later:
                    return False
                continue
            if not counted:
                counted = True
                self.tested += 1
            foretold = self._foretell(job, partition, free)
            if foretold is None:
                if not later:
                    return False
                continue
            begin, holding = foretold
            nodes = 0
            for share in holding:
                nodes |= 1 << share.node
            if begin < start:
                # Slurm notes a job as changed that other plans put off.
                controller.note_change(now)
                begin = start
            if begin > now:
                first, last = self._slot(begin, limit)
                if self.plan.clashes(first, last, nodes):
                    later = begin + (self.settings.bf_resolution if begin == start else 0)
                    continue
            else:
                outcome = controller.start(job, partition, now, free, "backfill")
                if outcome == "started":
                    self.started += 1
                    return True
                if outcome == "limit":
                    return False
                later = 0  # it preempts, or nodes are still in use: keep them
            if later and begin > later:
                continue
            if begin > now + self.settings.bf_window:
                job.planned = begin
                return False
            reason = controller.limits.after(job, partition, now=now)
            if reason:
                job.reason = reason
                return False
            first, last = self._slot(begin, limit)
            if self.plan.clashes(first, last, nodes):
                later = begin
                continue
            if self._not_kept(job, partition):
                job.planned = begin
                return False
            self.plan.keep(first, last, nodes)
            if job.planned < 0 or begin < job.planned:
                job.planned = begin
                self.planned |= nodes
            return True

    def _slot(self, begin: int, limit: int) -> tuple[int, int]:
        """Return begin and end in the plan, rounded to its resolution."""
        resolution = self.settings.bf_resolution
        end = begin + limit + resolution - 1
        return begin // resolution * resolution, end // resolution * resolution

    def _not_kept(self, job: QueuedJob, partition: str) -> bool:
        """Return whether nothing is kept for a job: too young, unimportant, or by its QOS."""
        settings = self.settings
        if settings.bf_min_age_reserve and self.now - job.eligible < settings.bf_min_age_reserve:
            return True
        if job.priority.get(partition, 0) < settings.bf_min_prio_reserve:
            return True
        return any(qos.no_reserve for qos, _ in self.controller.limits.rules(job, partition))

    def _foretell(self, job: QueuedJob, partition: str, free: int) -> tuple[int, Holding] | None:
        """Return when a job could start on some nodes, and what it would hold; None for never.

        Running jobs end at their limits; ends close to each other count as one.
        """
        controller, now, demand = self.controller, self.now, job.demands[partition]
        rule = controller.rule
        holding = select(controller.stock, demand, free, rule)
        if holding is not None:
            return now, holding
        future = controller.stock.copy()
        victims = controller.preemption.candidates(job, partition, controller.running.values(), now)
        if victims:
            for other in victims:
                if controller.preemption.fate(other) == Preempt.SUSPEND:
                    future.lend(other.holding)
                else:
                    future.give(other.holding)
            holding = select(future, demand, free, rule)
            if holding is not None:
                return now, holding
        gone = {other.row for other in victims}
        running = [
            other
            for other in sorted(controller.running.values(), key=lambda one: (one.end, one.row))
            if other.row not in gone and other.nodes & free
        ]
        window, place, barrier = TIME_WINDOW, 0, 0
        while place < len(running):
            if not barrier:
                first = running[0].end
                barrier = first + window - first % window
            taken = 0
            while True:
                last = running[place]
                future.give(last.holding)
                place += 1
                if place == len(running) or running[place].end > barrier + window:
                    break
                taken += 1
                if taken > MOST_TAKEN_OUT:
                    break
            while True:
                window *= 2
                if place == len(running) or running[place].end <= barrier + window:
                    break
            holding = select(future, demand, free, rule)
            if holding is not None:
                end = last.end if last.end > now else now + KILL_WAIT
                return end, holding
        return None


def nodes_of(holding: Holding) -> int:
    """Return the set of nodes of a holding."""
    found = 0
    for share in holding:
        found |= 1 << share.node
    return found


__all__ = ["BackfillCycle", "Plan", "Span", "bits", "nodes_of"]
