"""The policy ``slurm``: a machine of nodes under Slurm's controller.

Everything about it is in the description of the machine, :mod:`hpcrowd.environment.machine.model`.
What jobs ask beyond processors is in ``JobTable.requests``; without them, a job asks for its
processors, in the partition that its queue is called after, or else the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, override

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.machine.layout import Layout, bits
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import RULES, Rule
from hpcrowd.environment.schedulers.base import (
    Look,
    ReasonCode,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.outlook import Forecast, Outlook, PartitionState, Standing
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules
from hpcrowd.environment.schedulers.slurm.past import associations_of
from hpcrowd.environment.schedulers.slurm.queue import QueuedJob, Tenure
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.snapshot import (  # circle: for their types only
        SlurmState,
        Snapshot,
    )


class Slurm(Scheduler):
    """Slurm's multifactor priority, limits, main passes, backfilling and preemption on nodes.

    Parameters
    ----------
    placement
        Which nodes a job gets: ``slurm`` (consecutive, small weights first), ``first-fit``,
        ``best-fit`` or ``spread``; or your own function, a
        :data:`~hpcrowd.environment.machine.selection.Rule`.

    Attributes
    ----------
    book
        The compiled form of the controller, while one runs.
    associations
        Places of the associations of the jobs of the table when the run began from a state.
    """

    name = "slurm"
    nodes = True
    drains = True
    compiled_only = True
    controls = True
    compiled: ClassVar[str] = "hpcrowd.environment.engine.passes.slurm.compiled_pass:SlurmPass"
    machine: Machine | None = None
    book: SlurmBook | None = None
    associations: Int64s

    def __init__(self, placement: str | Rule = "slurm") -> None:
        if isinstance(placement, str):
            check_choice("placement", placement, RULES)
        self.placement = placement

    @override
    def at_first(self, cluster: Cluster) -> Scheduler:
        self.machine = None  # of an earlier run
        return self

    @override
    def check_ready(self) -> None:
        if self.machine is None:
            raise QuantityError(
                f"scheduler {self.name}: it needs a machine of nodes; give --machine FILE, such as "
                "a slurm.conf or a TOML file of `hpcrowd machine`"
            )

    @override
    def on_machine(self, machine: Machine, jobs: JobTable) -> None:
        self.machine, self.jobs = machine, jobs
        self.layout = Layout(machine)
        self.book = None

    @override
    def begin(self, total: int) -> None:
        super().begin(total)
        self._follows = self.machine is not None
        if self.machine is None:
            return  # asked for reasons in a finished run, whose machine is not known
        if self.book is None:
            self.rules = SiteRules(self.machine, self.placement)
            self.admission = Admission(self.rules, self.jobs)
        self._outlook: tuple[tuple[int, int, bytes, bytes], Outlook] | None = None

    @property
    def _book(self) -> SlurmBook:
        assert self.book is not None  # the engine has made it
        return self.book

    @property
    def state(self) -> SlurmState:
        """What the controller knows now, to be read until the simulation goes on."""
        return self._book.state()

    @property
    def ledger(self) -> list[Tenure]:
        """What each job held in each of its runs, in the order of their starts."""
        return self._book.tenures()

    @override
    def outlook(self, now: int, waiting: Int64s, running: Int64s) -> Outlook:
        # A pass may plan anew in this second though nobody starts.
        key = now, self._book.controls.passes, waiting.tobytes(), running.tobytes()
        if self._outlook is None or self._outlook[0] != key:  # users often look at the same second
            take = partial(self._book.snapshot, now, waiting, running)
            self._outlook = key, SlurmOutlook(take, self.admission, now)
        return self._outlook[1]

    @override
    def submitted(self, rows: Int64s) -> None:
        self._book.resolve(rows)

    @override
    def learn_users(self) -> None:
        self.associations = associations_of(self.admission)

    @override
    def turns_away(self, row: int) -> str:
        return self._book.refusal(row)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        raise NotImplementedError("its passes are compiled")

    @override
    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        """Give reasons from processors only: a finished run does not hold what Slurm knew."""
        self._follows = False

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        if not self._follows:
            yield from super().reasons(look)
            return
        state = self.state
        rows = self._book.order(look.now).tolist()
        place = {row: count for count, row in enumerate(dict.fromkeys(rows), 1)}
        for job in look.waiting:
            known = state.waiting.get(job.row)
            if known is None:
                code = ReasonCode.ARRIVED
                yield WaitingReason(job.row, code, look.now, job.processors, look.free)
                continue
            yield WaitingReason(
                job.row,
                ReasonCode.SITE,
                look.now,
                job.processors,
                look.free,
                place.get(job.row, len(place) + 1),
                order="by priority",
                lasts=known.limit,
                start=known.planned,
                note=known.reason if known.eligible <= look.now else "BeginTime",
            )


class SlurmOutlook(Outlook):
    """A machine under Slurm at one second.

    A start is foretold by a cycle of backfilling, whatever its interval, in which the job has its
    place by priority. No start is foretold where Slurm shows none: for jobs at a limit, beyond
    ``bf_max_job_test`` or ``bf_window``. The controller as of now is asked for once.
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
            nodes, size = list(bits(layout.nodes_of(name))), layout.tres_of(name)
            asked = cores[where == place]
            found[name] = PartitionState(
                name,
                partition.up,
                size["node"],
                size["cpu"],
                size["gres/gpu"],
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
        limits = [qos.limits for qos in rules]
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
