"""What users see of a machine under :class:`BruteSlurm`, from copies that it goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.schedulers.outlook import Forecast, Outlook, PartitionState, Standing
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.stops import FOREVER

from tests.environment.schedulers.slurm.brute import BruteSlurm
from tests.environment.schedulers.slurm.brute_cycle import Cycle


class BruteOutlook(Outlook):
    """A machine under Slurm at one second; a start is foretold by a cycle of backfilling on a copy.

    Parameters
    ----------
    live
        The scheduler, which is read and never changed.
    now
        The present second.
    waiting, running
        Rows of the jobs that wait and run. The scheduler learns of what happens now only later.
    """

    def __init__(
        self, live: BruteSlurm, now: int, waiting: Sequence[int], running: Sequence[int]
    ) -> None:
        self.now, self.site = now, live.copy()
        site = self.site
        site.calculate(now)
        for row in set(site.running) - set(running):
            site.finish(row, now)
        for row in set(site.waiting) - set(waiting):
            site.withdraw(row)
        for row in waiting:
            if row not in site.waiting:
                site.admission.uncount(row)
                job = live.admission.accepted(row, now)
                job.association = site.shares.all[job.association.place]
                site.submit(job, now)

    @property
    @override
    def partitions(self) -> dict[str, PartitionState]:
        site, found = self.site, {}
        layout, stock = site.layout, site.stock
        for name, one in layout.partitions.items():
            nodes = list(bits(layout.nodes_of(name)))
            jobs = [job for job in site.waiting.values() if name in job.partitions]
            found[name] = PartitionState(
                name=name,
                up=one.up,
                nodes=len(nodes),
                cores=sum(layout.cores[node] for node in nodes),
                gpus=sum(sum(layout.gpus[node]) for node in nodes),
                free_nodes=sum(not stock.jobs[node] for node in nodes),
                free_cores=sum(stock.cores[node] for node in nodes),
                free_gpus=sum(sum(stock.gpus[node]) for node in nodes),
                waiting=len(jobs),
                asked=sum(job.counted_cores(name, layout) for job in jobs),
                max_time=one.max_time,
                max_nodes=one.max_nodes,
            )
        return found

    def _peek(self, row: int, partition: str = "") -> QueuedJob:
        return self.site.admission.peek(row, self.now, partition)

    @override
    def asked(self, row: int) -> tuple[str, ...]:
        return self._peek(row).partitions

    @override
    def standing(self, row: int) -> Standing:
        site, job = self.site, self._peek(row)
        own = [qos.limits for qos in site.limits.rules(job, job.partitions[0])]
        own.append(job.association.account.limits)
        factors = [one.factor for one in site.shares.all if one.user]

        def mine(jobs: dict[int, QueuedJob]) -> int:
            return sum(one.user == job.user and one.qos == job.qos for one in jobs.values())

        return Standing(
            account=job.association.name,
            qos=job.qos,
            running=mine(site.running),
            waiting=mine(site.waiting),
            most_running=min((n for one in own if (n := one.max_jobs) is not None), default=None),
            most_submitted=min(
                (n for one in own if (n := one.max_submit) is not None), default=None
            ),
            fair_share=job.association.factor,
            rank=1 + sum(factor > job.association.factor for factor in factors),
            users=len(factors),
        )

    @override
    def refusal(self, row: int, partition: str = "") -> str:
        return self.site.admission.refusal_of(self._peek(row, partition))

    @override
    def limit(self, row: int) -> str:
        job, limits = self._peek(row), self.site.limits
        if self.site.admission.refusal_of(job):
            return ""
        found = [
            limits.before(job, name) or limits.after(job, name, now=self.now)
            for name in job.partitions
        ]
        return "" if "" in found else found[0]

    @override
    def forecast(self, row: int, partition: str = "") -> Forecast:
        future = self.site.copy()
        if row in future.waiting and not partition:
            return self._foretold(future, future.waiting[row])
        return self._as_submitted(future, future.admission, row, row, partition)

    @override
    def forecast_of(self, processors: int, requested_time: int) -> Forecast:
        one, future = JobTable(), self.site.copy()
        one.append(1, processors=processors, requested_time=requested_time)
        return self._as_submitted(future, Admission(future, one), 0, len(future.jobs), "")

    def _as_submitted(
        self, future: BruteSlurm, asking: Admission, row: int, known_as: int, partition: str
    ) -> Forecast:
        """Return when a job would start that is submitted now."""
        job = asking.peek(row, self.now, partition)
        reason = asking.refusal_of(job)
        if reason:
            return Forecast(FOREVER, reason, rejected=True)
        if known_as in future.waiting:
            future.withdraw(known_as)
        job.row = known_as
        future.submit(job, self.now)
        return self._foretold(future, job)

    def _foretold(self, future: BruteSlurm, job: QueuedJob) -> Forecast:
        """Return when a job of the queue starts."""
        begin, job.eligible = job.eligible, min(job.eligible, self.now)
        order = [other.row for other, _ in future.ordered(self.now)]
        # What comes behind it in all its partitions does not matter.
        last = len(order) - order[::-1].index(job.row)
        future.waiting = {row: future.waiting[row] for row in dict.fromkeys(order[:last])}
        job.planned = -1
        Cycle(future, self.now).run()
        start = job.start if job.holding else job.planned
        if start < 0:
            return Forecast(FOREVER, "Priority" if job.reason == "None" else job.reason)
        return Forecast(max(start, begin))
