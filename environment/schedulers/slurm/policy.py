"""The policy ``slurm``: a machine of nodes under Slurm's controller.

Everything about it is in the description of the machine, :mod:`hpcrowd.environment.machine.model`.
What jobs ask beyond processors is in ``JobTable.requests``; without them, a job asks for its
processors, in the partition that its queue is called after, or else the default one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, override

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.outlook import Outlook
from hpcrowd.environment.machine.selection import RULES, Rule
from hpcrowd.environment.schedulers.base import (
    Look,
    ReasonCode,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.outlook import SlurmOutlook
from hpcrowd.environment.schedulers.slurm.past import associations_of
from hpcrowd.environment.schedulers.slurm.queue import Tenure
from hpcrowd.environment.schedulers.slurm.rules import SiteRules

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.state import SlurmState  # circle: for its type


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
