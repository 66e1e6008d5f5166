"""The policy ``slurm``: a machine of nodes under Slurm's controller.

Everything about it is in the description of the machine, :mod:`hpcrowd.environment.machine.model`.
What jobs ask beyond processors is in ``JobTable.requests``; without them, a job asks for its
processors, in the partition that its queue is called after, or else the default one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, override

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable, State
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, Preempt
from hpcrowd.environment.machine.outlook import Outlook
from hpcrowd.environment.machine.selection import RULES, Rule
from hpcrowd.environment.schedulers.base import (
    EndedJob,
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from hpcrowd.environment.schedulers.slurm.admission import Admission
from hpcrowd.environment.schedulers.slurm.controller import Controller
from hpcrowd.environment.schedulers.slurm.outlook import SlurmOutlook
from hpcrowd.environment.schedulers.slurm.past import associations_of, go_on
from hpcrowd.environment.schedulers.slurm.plain_outlook import PlainOutlook
from hpcrowd.environment.schedulers.slurm.queue import Tenure
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.book import SlurmBook  # circle: for its type only
    from hpcrowd.environment.engine.passes.slurm.state import SlurmState  # circle: for its type
    from hpcrowd.environment.machine.past import Past


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
        self.controller = Controller(self.machine, self.placement)
        self.admission = Admission(self.controller, self.jobs)
        self._ledger: list[Tenure] = []
        self._last: dict[int, Tenure] = {}
        self._outlook: tuple[tuple[int, bytes, bytes], Outlook] | None = None

    @property
    def state(self) -> SlurmState | Controller:
        """What the controller knows now, to be read until the simulation goes on."""
        return self.controller if self.book is None else self.book.state()

    @property
    def ledger(self) -> list[Tenure]:
        """What each job held in each of its runs, in the order of their starts."""
        return self._ledger if self.book is None else self.book.tenures()

    @override
    def outlook(self, now: int, waiting: Int64s, running: Int64s) -> Outlook:
        key = now, waiting.tobytes(), running.tobytes()
        if self._outlook is None or self._outlook[0] != key:  # users often look at the same second
            if self.book is None:
                made: Outlook = PlainOutlook(self.controller, self.admission, now, waiting, running)
            else:
                take = partial(self.book.snapshot, now, waiting, running)
                made = SlurmOutlook(take, self.admission, now)
            self._outlook = key, made
        return self._outlook[1]

    @override
    def submitted(self, rows: Int64s) -> None:
        if self.book is not None:
            self.book.resolve(rows)
            return
        for row in rows.tolist():
            if row in self.controller.waiting:  # it left the queue, and comes back
                self.controller.withdraw(row)
            self.admission.resize(row)

    @override
    def refuses(self, row: int) -> str:
        return self.admission.refusal(row)

    @override
    def learn_users(self) -> None:
        self.associations = associations_of(self.admission)

    @override
    def turns_away(self, row: int) -> str:
        return self.admission.turns_away(row) if self.book is None else self.book.refusal(row)

    @override
    def go_on(self, past: Past, running: Sequence[RunningJob], ended: Sequence[EndedJob]) -> None:
        go_on(self.controller, self.admission, past, self.associations)
        for job in self.controller.running.values():
            self._last[job.row] = run = Tenure.of(job, job.start)
            self._ledger.append(run)

    @override
    def taken_back(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self.controller.waiting:
                self.controller.withdraw(row)
            self.admission.uncount(row)

    @override
    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        state = self.jobs.column(Column.STATE)
        for job in jobs:
            if job.row in self.controller.running:
                killed = state[job.row] != State.COMPLETED
                self.controller.finish(job.row, job.end, killed=killed)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        controller, now = self.controller, look.now
        here = {job.row: job for job in look.waiting}
        for job in look.waiting:
            if job.row not in controller.waiting:
                controller.submit(self.admission.queued(job.row, now), now)
        controller.run(now)
        for stopped in controller.stopped:
            self._last[stopped.job.row].end = now
            fate = "requeue" if stopped.fate == Preempt.REQUEUE else "fail"
            self.stops.append((stopped.job.row, fate))
        self._note_pauses(now)
        started = [here[job.row] for job in controller.started]
        for begun in controller.started:
            run = Tenure.of(begun, now)
            self._last[begun.row] = run
            self._ledger.append(run)
        controller.stopped.clear()
        controller.started.clear()
        return started

    def _note_pauses(self, now: int) -> None:
        """Note who was suspended, and who goes on."""
        controller = self.controller
        for job in controller.resumed:
            pauses = self._last[job.row].pauses
            pauses[-1] = pauses[-1][0], now
            self.resumes.append(job.row)
        for job in controller.suspended:
            self._last[job.row].pauses.append((now, UNKNOWN))
            self.suspends.append(job.row)
        controller.resumed.clear()
        controller.suspended.clear()

    @override
    def nothing_waits(self, now: int) -> None:
        self.controller.nothing_waits(now)
        self._note_pauses(now)

    @override
    def wake(self, now: int) -> int | None:
        wake = self.controller.next_at(now)
        return None if wake == FOREVER else wake

    @override
    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        """Do nothing: it knows what it started, and takes over from no other policy."""

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
        if isinstance(state, Controller):
            rows = [job.row for job, _ in state.ordered(look.now)]
        else:
            assert self.book is not None
            rows = self.book.order(look.now).tolist()
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
