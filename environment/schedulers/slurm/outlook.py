"""What users may see of a machine under Slurm; starts are foretold by a cycle on a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, override

from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.machine.layout import bits
from hpcrowd.environment.machine.outlook import Forecast, Outlook, PartitionState, Standing
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.engine.passes.slurm.snapshot import Snapshot  # circle: for its type


class SlurmOutlook(Outlook):
    """A machine under Slurm at one second.

    A start is foretold by a cycle of backfilling, whatever its interval, in which the job has its
    place by priority. No start is foretold where Slurm shows none: for jobs at a limit, beyond
    ``bf_max_job_test`` or ``bf_window``.

    Parameters
    ----------
    snapshot
        Returns the controller as of now, which is asked for once.
    admission
        Its admission.
    now
        The present second.
    """

    def __init__(self, snapshot: Callable[[], Snapshot], admission: Admission, now: int) -> None:
        self._take, self._admission, self.now = snapshot, admission, now

    @cached_property
    def _present(self) -> Snapshot:
        return self._take()

    @cached_property
    @override
    def partitions(self) -> Mapping[str, PartitionState]:
        book, (where, cores) = self._present.book, self._present.queue()
        layout, found = book.layout, {}
        free_cores, free_gpus, jobs = self._present.free()
        for place, (name, partition) in enumerate(layout.partitions.items()):
            nodes = list(bits(layout.nodes_of(name)))
            asked = cores[where == place]
            found[name] = PartitionState(
                name,
                partition.up,
                len(nodes),
                sum(layout.cores[node] for node in nodes),
                sum(sum(layout.gpus[node]) for node in nodes),
                int((jobs[nodes] == 0).sum()),
                int(free_cores[nodes].sum()),
                int(free_gpus[nodes].sum()),
                len(asked),
                int(asked.sum()),
                partition.max_time,
                partition.max_nodes,
            )
        return found

    def _peek(self, row: int, partition: str = "") -> QueuedJob:
        return self._admission.peek(row, self.now, partition)

    @override
    def asked(self, row: int) -> tuple[str, ...]:
        return self._peek(row).partitions

    @override
    def standing(self, row: int) -> Standing:
        present, job = self._present, self._peek(row)
        rules = present.book.site_rules.limits.rules(job, job.partitions[0])
        limits = [qos.limits for qos, _ in rules]
        limits.append(job.association.account.limits)
        most = [
            min((most for one in limits if (most := getattr(one, name)) is not None), default=None)
            for name in ("max_jobs", "max_submit")
        ]
        factors, place = present.factors(), job.association.place
        mine = 1.0 if place == UNKNOWN else float(factors[place])
        users = factors[[one.place for one in present.book.shares.all if one.user]]
        running, waiting = present.count(job)
        return Standing(
            job.association.name, job.qos, running, waiting, most[0], most[1],
            mine, 1 + int((users > mine).sum()), len(users),
        )  # fmt: skip

    def _refusal(self, job: QueuedJob) -> str:
        """Return why a job would be rejected; leave out partitions that cannot run it."""
        refusal = self._admission.always_refused(job)
        return refusal or self._present.limit(job, job.partitions[0], "at_submit")

    @override
    def refusal(self, row: int, partition: str = "") -> str:
        return self._refusal(self._peek(row, partition))

    @override
    def limit(self, row: int) -> str:
        job = self._peek(row)
        if self._refusal(job):
            return ""
        found = [self._present.limit(job, name, "before", "after") for name in job.partitions]
        return "" if "" in found else found[0]

    @override
    def forecast(self, row: int, partition: str = "") -> Forecast:
        if not partition and self._present.waits(row):
            return self._present.forecast(row)
        return self._submitted(self._peek(row, partition))

    @override
    def forecast_of(self, processors: int, requested_time: int) -> Forecast:
        one = JobTable()
        one.append(1, processors=processors, requested_time=requested_time)
        job = self._admission.of(one).peek(0, self.now)
        job.row = len(self._admission.jobs)
        return self._submitted(job)

    def _submitted(self, job: QueuedJob) -> Forecast:
        """Return when a job would start that is submitted now."""
        refusal = self._refusal(job)
        if refusal:
            return Forecast(FOREVER, refusal, rejected=True)
        return self._present.forecast_new(job)
