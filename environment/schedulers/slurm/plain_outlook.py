"""What users may see of a machine under Slurm; starts are foretold by a cycle on a copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import override

from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.outlook import Forecast, Outlook, PartitionState, Standing
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.backfill import BackfillCycle
from hpcrowd.environment.schedulers.slurm.controller import Controller
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.stops import FOREVER


class PlainOutlook(Outlook):
    """A machine under Slurm at one second.

    A start is foretold by a cycle of backfilling, whatever its interval, in which the job has its
    place by priority. No start is foretold where Slurm shows none: for jobs at a limit, beyond
    ``bf_max_job_test`` or ``bf_window``.

    Parameters
    ----------
    live
        The controller, which is read and never changed.
    admission
        Its admission.
    now
        The present second.
    waiting, running
        Rows of the jobs that wait and run. The controller learns of what happens now only later.
    """

    def __init__(
        self, live: Controller, admission: Admission, now: int, waiting: Int64s, running: Int64s
    ) -> None:
        self.now = now
        self._live, self._admission = live, admission
        self._waiting, self._running = waiting.tolist(), set(running.tolist())

    @cached_property
    def _state(self) -> Controller:
        """The controller as of now: the live one, or a copy that knows of what has happened."""
        live, now = self._live, self.now
        gone = [row for row in live.running if row not in self._running]
        if not gone and live.waiting.keys() == set(self._waiting) and live.is_current(now):
            return live
        state = live.copy()
        state.calculate(now)
        for row in gone:
            state.finish(row, now)
        for row in live.waiting.keys() - set(self._waiting):
            state.withdraw(row)
        admission = self._admission.of(state)
        for row in self._waiting:
            if row not in state.waiting:
                admission.uncount(row)
                job = self._admission.accepted(row, now)
                job.association = state.shares.all[job.association.place]
                state.submit(job, now)
        return state

    @cached_property
    def _asking(self) -> Admission:
        return self._admission.of(self._state)

    @cached_property
    @override
    def partitions(self) -> Mapping[str, PartitionState]:
        state, found = self._state, {}
        layout, stock = state.layout, state.stock
        for name, partition in layout.partitions.items():
            nodes = list(bits(layout.nodes_of(name) & state.up))
            jobs = [job for job in state.waiting.values() if name in job.partitions]
            found[name] = PartitionState(
                name,
                partition.up,
                len(nodes),
                sum(layout.cores[node] for node in nodes),
                sum(sum(layout.gpus[node]) for node in nodes),
                sum(not stock.jobs[node] for node in nodes),
                sum(stock.cores[node] for node in nodes),
                sum(sum(stock.gpus[node]) for node in nodes),
                len(jobs),
                sum(job.counted_cores(name, layout) for job in jobs),
                partition.max_time,
                partition.max_nodes,
            )
        return found

    @override
    def asked(self, row: int) -> tuple[str, ...]:
        return self._asking.peek(row, self.now).partitions

    @override
    def standing(self, row: int) -> Standing:
        state, job = self._state, self._asking.peek(row, self.now)
        limits = [qos.limits for qos, _ in state.limits.rules(job, job.partitions[0])]
        limits.append(job.association.account.limits)
        most = [
            min((most for one in limits if (most := getattr(one, name)) is not None), default=None)
            for name in ("max_jobs", "max_submit")
        ]
        users = [one.factor for one in state.shares.all if one.user]
        mine = job.association.factor
        running, waiting = (
            sum(other.user == job.user and other.qos == job.qos for other in jobs.values())
            for jobs in (state.running, state.waiting)
        )
        return Standing(
            job.association.name, job.qos, running, waiting, most[0], most[1],
            mine, 1 + sum(factor > mine for factor in users), len(users),
        )  # fmt: skip

    @override
    def refusal(self, row: int, partition: str = "") -> str:
        return self._asking.refusal_of(self._asking.peek(row, self.now, partition))

    @override
    def limit(self, row: int) -> str:
        job, limits = self._asking.peek(row, self.now), self._state.limits
        if self._asking.refusal_of(job):
            return ""
        found = [
            limits.before(job, name) or limits.after(job, name, now=self.now)
            for name in job.partitions
        ]
        return "" if "" in found else found[0]

    @override
    def forecast(self, row: int, partition: str = "") -> Forecast:
        if row in self._state.waiting and not partition:
            future = self._state.copy()
            return self._foretold(future, future.waiting[row])
        return self._as_submitted(self._asking, row, row, partition)

    @override
    def forecast_of(self, processors: int, requested_time: int) -> Forecast:
        one = JobTable()
        one.append(1, processors=processors, requested_time=requested_time)
        behind = len(self._admission.jobs)
        return self._as_submitted(self._admission.of(self._state, one), 0, behind, "")

    def _as_submitted(self, asking: Admission, row: int, known_as: int, partition: str) -> Forecast:
        """Return when a job would start that is submitted now."""
        job = asking.peek(row, self.now, partition)
        reason = asking.refusal_of(job)
        if reason:
            return Forecast(FOREVER, reason, rejected=True)
        future = self._state.copy()
        if known_as in future.waiting:
            future.withdraw(known_as)
        job.row = known_as
        future.submit(job, self.now)
        return self._foretold(future, job)

    def _foretold(self, future: Controller, job: QueuedJob) -> Forecast:
        """Return when a job of the queue starts; the controller is used up."""
        begin, job.eligible = job.eligible, min(job.eligible, self.now)
        order = [other.row for other, _ in future.ordered(self.now)]
        # What comes behind it in all its partitions does not matter.
        last = len(order) - order[::-1].index(job.row)
        future.waiting = {row: future.waiting[row] for row in dict.fromkeys(order[:last])}
        job.planned = -1
        BackfillCycle(future, self.now).run()
        start = job.start if job.holding else job.planned
        if start < 0:
            return Forecast(FOREVER, "Priority" if job.reason == "None" else job.reason)
        return Forecast(max(start, begin))
