"""A cycle of Slurm's backfill scheduler by brute force; a part of ``brute``."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.environment.machine.selection import Holding, Stock, select
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob

if TYPE_CHECKING:
    from tests.environment.schedulers.slurm.brute import BruteSlurm

TIME_WINDOW = 30  #: s within which ends count as one when a start is foretold, at first
MOST_TAKEN_OUT = 200  #: jobs that are taken out before a fit is tried again
KILL_WAIT = 30  #: s that a job beyond its limit is expected to go on


class Cycle:
    """One cycle of the backfill scheduler.

    A planned job keeps whole nodes, in time rounded to ``bf_resolution``. A waiting job starts if
    it can with nodes that nobody keeps until its limit; otherwise its start is foretold by letting
    running jobs end at their limits, and its nodes are kept from then on.
    """

    def __init__(self, site: BruteSlurm, now: int) -> None:
        self.site, self.now, self.settings = site, now, site.settings
        self.window = self._rounded(now + self.settings.bf_window)
        self.kept: list[tuple[int, int, int]] = []  # from when to when, and which nodes
        self.counts: Counter[tuple[str, str]] = Counter()
        self.tested = self.started = self.marked = 0

    def _rounded(self, time: int) -> int:
        return time // self.settings.bf_resolution * self.settings.bf_resolution

    def run(self) -> None:
        """Start what can start, and plan the others."""
        site, settings, most = self.site, self.settings, self.settings.bf_max_job_start
        rejected: dict[tuple[int, str], QueuedJob] = {}
        planned_tasks: Counter[int] = Counter()
        queue = site.ordered(self.now)
        for job, _ in queue:
            job.planned = UNKNOWN
        for job, partition in queue:
            key = job.array, partition
            if self.tested >= settings.bf_max_job_test or (most and self.started >= most):
                break
            if job.holding:
                continue
            if not settings.assoc_limit_stop and not site.within_limits(job, partition):
                continue
            if job.array >= 0:
                if key in rejected:
                    job.reason = rejected[key].reason
                    continue
                if planned_tasks[job.array] >= settings.bf_max_job_array_resv:
                    continue
                rejected[key] = job
                if site.throttled(job):
                    continue
            if self._too_many(job, partition) or not site.layout.partitions[partition].up:
                continue
            if self._try(job, partition):
                rejected.pop(key, None)
                planned_tasks[job.array] += not job.holding
        site.at.planned = any(site.stock.cores[node] > 0 for node in bits(self.marked))
        site.at.changed = self.now if site.at.planned else site.at.changed

    def _too_many(self, job: QueuedJob, partition: str) -> bool:
        """Count jobs of a user, partition or association, and return whether there are too many."""
        limits = {
            ("user", job.user): self.settings.bf_max_job_user,
            ("partition", partition): self.settings.bf_max_job_part,
            ("association", str(job.association.place)): self.settings.bf_max_job_assoc,
        }
        if any(limit and self.counts[key] >= limit for key, limit in limits.items()):
            return True
        self.counts.update(limits.keys())
        return False

    def _try(self, job: QueuedJob, partition: str) -> bool:
        """Start or plan a job; return whether it did either."""
        site, now, settings, demand = self.site, self.now, self.settings, job.demands[partition]
        counted, later = False, now
        while True:
            start = max(later, now)
            if start > self.window:
                return False
            barred, ends = site.barred(job, start)
            free, later = self._usable(demand.nodes & ~barred, start, start + job.limit)
            later = ends if ends and (not later or ends < later) else later
            foretold = None
            if free.bit_count() >= demand.least_nodes:
                self.tested += not counted
                counted = True
                foretold = self._foretell(job, partition, free)
            if foretold is None:
                if not later:
                    return False
                continue
            begin, nodes = max(foretold[0], start), nodes_of(foretold[1])
            if foretold[0] < start:
                site.at.changed = now  # Slurm notes a job as changed that other plans put off
            first = self._rounded(begin)
            last = self._rounded(begin + job.limit + settings.bf_resolution - 1)
            clashes = self._clashes(first, last, nodes)
            if begin > now and clashes:
                later = begin + (settings.bf_resolution if begin == start else 0)
                continue
            if begin == now:
                outcome = site.try_now(job, partition, now, free, "backfill")
                self.started += outcome == "started"
                if outcome != "busy":
                    return outcome == "started"
                later = 0  # it preempts, or nodes are still in use: keep them
            if later and begin > later:
                continue
            if begin > now + settings.bf_window:
                job.planned = begin
                return False
            reason = site.limits.after(job, partition, now=now)
            if reason:
                job.reason = reason
                return False
            if clashes:
                later = begin
                continue
            no_reserve = any(qos.no_reserve for qos in site.limits.rules(job, partition))
            if no_reserve or site.keeps_nothing(job, partition, now):
                job.planned = begin
                return False
            self.kept.append((first, last, nodes))
            if job.planned < 0 or begin < job.planned:
                job.planned = begin
                self.marked |= nodes
            return True

    def _spans(self) -> list[tuple[int, int, int]]:
        """Return the kept nodes between any two seconds at which plans begin or end."""
        begin = self._rounded(self.now)
        cuts = {time for one in self.kept for time in one[:2] if begin < time < self.window}
        found = []
        for since, to in pairwise([begin, *sorted(cuts), self.window]):
            kept = 0
            for first, last, nodes in self.kept:
                kept |= nodes if first < to and last > since else 0
            found.append((since, to, kept))
        return found

    def _clashes(self, begin: int, end: int, nodes: int) -> bool:
        """Return whether some of the nodes are kept for others within a time."""
        return any(since < end and to > begin and kept & nodes for since, to, kept in self._spans())

    def _usable(self, nodes: int, start: int, end: int) -> tuple[int, int]:
        """Return the nodes that nobody keeps from start to end, and when to try later, or 0."""
        found, later, spans = nodes, 0, self._spans()
        for (since, to, kept), following in zip(spans, [*spans[1:], None], strict=True):
            # Later spans are worth trying if they have nodes that this one lacks.
            if to > start and following and not later and nodes & ~following[2] & ~(found & ~kept):
                later = to
            if since > end:
                return found, later or (following[1] if following else 0)
            found &= ~kept if to > start else found
        return found, later

    def _foretell(self, job: QueuedJob, partition: str, free: int) -> tuple[int, Holding] | None:
        """Return when a job could start on some nodes, and what it would hold; None for never.

        Running jobs end at their limits; ends close to each other count as one.
        """
        site, now, demand = self.site, self.now, job.demands[partition]
        future, victims = site.stock, list[QueuedJob]()
        holding = select(future, demand, free, site.rule)
        if holding is None:
            victims = site.candidates(job, partition, now)
            for other in victims:
                if site.fate(other) == Preempt.SUSPEND:
                    lend(future, other.holding)
                else:
                    future.give(other.holding)
            holding = select(future, demand, free, site.rule) if victims else None
        if holding is not None:
            return now, holding
        left = [one for one in site.running.values() if one not in victims]
        left.sort(key=lambda one: (one.end, one.row))
        while left and not nodes_of(left[0].holding) & free:
            left.pop(0)
        window = TIME_WINDOW
        barrier = left[0].end + window - left[0].end % window if left else 0
        while left:
            taken, last = 0, None
            while left:
                one = left.pop(0)
                if not nodes_of(one.holding) & free:
                    continue
                last, taken = one, taken + 1
                future.give(one.holding)
                # Whoever ends next counts, on whatever nodes.
                if left and (left[0].end > barrier + window or taken > MOST_TAKEN_OUT):
                    break
            if last is None:
                return None
            window *= 2
            while left and left[0].end > barrier + window:
                window *= 2
            holding = select(future, demand, free, site.rule)
            if holding is not None:
                return last.end if last.end > now else now + KILL_WAIT, holding
        return None


def nodes_of(holding: Holding) -> int:
    """Return the set of nodes of a holding."""
    return sum(1 << share.node for share in holding)


def lend(stock: Stock, holding: Holding) -> None:
    """Let others use the cores of a job that is suspended; it keeps its memory and GPUs."""
    for share in holding:
        stock.cores[share.node] += share.cores
        stock.jobs[share.node] -= not any(share.gpus)  # with some, nobody has the whole node
