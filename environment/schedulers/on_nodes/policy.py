"""A policy of a pool of processors on a machine of nodes.

The policy keeps its order of the queue, its limits and its kind of backfilling. Policies with an
order (``OrderedScheduler``, ``Priority``) and those with a plan (``PlanningScheduler``) ask the
nodes for room where they count processors in a pool, see :mod:`.walk` and :mod:`.plan`. Any other
scheduler names jobs as ever, and each gets nodes as it is named; ``look.nodes`` shows it the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, override

from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import Snapshot, snapshot_with
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.schedulers.base import (
    EndedJob,
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
    explain,
)
from hpcrowd.environment.schedulers.on_nodes.nodes import Nodes
from hpcrowd.environment.schedulers.outlook import Outlook
from hpcrowd.environment.schedulers.slurm.admission import SiteRules
from hpcrowd.environment.schedulers.slurm.past import (
    Seating,
    associations_of,
    running_job,
    seat_running,
)
from hpcrowd.environment.schedulers.slurm.policy import SlurmOutlook
from hpcrowd.environment.schedulers.slurm.queue import Tenure
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.past import Past

#: Reasons of the pool that hold only if nodes have room for the job.
PASSING = frozenset({ReasonCode.NO_ROOM, ReasonCode.NOT_CHOSEN, ReasonCode.CAN_START})


class OnNodes(Scheduler):
    """Runs a policy that knows only processors on a machine of nodes.

    It takes over from the scheduler ``before``, if there is one, with its nodes, which are
    ``nodes_now`` with what waits and runs.
    """

    nodes = True
    drains = True

    def __init__(self, policy: Scheduler, before: OnNodes | None = None) -> None:
        if policy.nodes:
            raise QuantityError(
                f"scheduler {policy.name}: it runs a machine of nodes from the beginning; give it "
                "as the scheduler"
            )
        self.policy = policy
        self.name, self.names = policy.name, policy.names
        self.plans, self.remembers = policy.plans, policy.remembers
        self._before = before
        self.machine: Machine
        self.jobs: JobTable
        if before is not None:
            self.machine, self.jobs = before.machine, before.jobs

    @override
    def on_machine(self, machine: Machine, jobs: JobTable) -> None:
        self.machine, self.jobs = machine, jobs
        self.nodes_now = Nodes(machine, jobs)

    @override
    def successor(self, other: Scheduler) -> Scheduler:
        return OnNodes(other, self)

    @override
    def begin(self, total: int) -> None:
        self.policy.begin(total)
        self._outlook: tuple[tuple[int, bytes, bytes], Outlook] | None = None
        self.promises, self.stops = self.policy.promises, []
        self.suspends, self.resumes = [], []
        if self._before is None:
            self.nodes_now = Nodes(self.machine, self.jobs)
        else:
            self.nodes_now = self._before.nodes_now

    @property
    def layout(self) -> Layout:
        """The nodes of the machine."""
        return self.nodes_now.layout

    @property
    def ledger(self) -> Sequence[Tenure]:
        """What each job held, in the order of their starts."""
        return self.nodes_now.ledger

    @override
    def submitted(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self.nodes_now.waiting:  # it left the queue, and comes back
                self.nodes_now.withdraw(row)
            self.nodes_now.admission.resize(row)

    @override
    def outlook(self, now: int, waiting: Int64s, running: Int64s) -> Outlook:
        key = now, waiting.tobytes(), running.tobytes()
        if self._outlook is None or self._outlook[0] != key:
            nodes = self.nodes_now
            take = partial(_plan, nodes, now, waiting, running)
            self._outlook = key, QueueOutlook(take, nodes.admission, now)
        return self._outlook[1]

    @override
    def refuses(self, row: int) -> str:
        return self.nodes_now.admission.refusal(row)

    @override
    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        """Take note of the running jobs; those that were started by others get nodes now."""
        nodes = self.nodes_now
        nodes.now = now
        for row in set(nodes.running).difference(job.row for job in running):
            nodes.finish(row)
        for job in running:
            if job.row not in nodes.running:
                if job.row not in nodes.waiting:
                    nodes.join(job.row)
                self._give_nodes(nodes, job.row, job.expected_end - now)
        self.policy.take_over(now, running)

    @override
    def learn_users(self) -> None:
        associations_of(self.nodes_now.admission)

    @override
    def turns_away(self, row: int) -> str:
        return self.nodes_now.admission.turns_away(row)

    @override
    def go_on(self, past: Past, running: Sequence[RunningJob], ended: Sequence[EndedJob]) -> None:
        nodes = self.nodes_now
        nodes.now = past.now
        how, job_of = Seating(nodes.admission, nodes), partial(running_job, nodes.admission)
        for job in seat_running(past, how, nodes.stock, job_of).values():
            nodes.seat(job)
        self.policy.go_on(past, running, ended)

    @override
    def changed(self, now: int) -> None:
        self.policy.changed(now)

    @override
    def taken_back(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self.nodes_now.waiting:
                self.nodes_now.withdraw(row)
            self.nodes_now.admission.uncount(row)
        self.policy.taken_back(rows)

    @override
    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        for job in jobs:
            if job.row in self.nodes_now.running:
                self.nodes_now.finish(job.row)
        self.policy.ended(now, jobs)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        nodes, self._outlook = self.nodes_now, None  # seen before this pass
        shown = nodes.update(look.waiting, look.now)
        if not shown:
            return ()
        found: Any = self.policy.select(look._replace(waiting=shown, nodes=nodes))
        if found is not None:
            found = self._placed(found, {job.row: job for job in shown})
        return found  # type: ignore[no-any-return]

    @override
    def nothing_waits(self, now: int) -> None:
        self.nodes_now.update((), now)

    def _placed(self, found: Iterable[Any], shown: dict[int, WaitingJob]) -> Iterator[WaitingJob]:
        """Yield what the policy starts; jobs get nodes if it has not chosen them itself."""
        nodes = self.nodes_now
        for job in found:
            row = getattr(job, "row", None)
            if row in shown and row not in nodes.running:
                self._give_nodes(nodes, job.row, shown[job.row].estimate)
            yield job

    def _give_nodes(self, nodes: Nodes, row: int, lasts: int) -> None:
        """Let a job start on nodes that have room for it; an error if none have, or at a limit."""
        asks = nodes.waiting[row]
        place = nodes.room(asks, nodes.stock, nodes.now, lasts)
        word = nodes.limited(asks, place) if place is not None else nodes.why(asks, lasts)
        if place is None or word:
            raise SchedulerError(
                f"{self.name}: job in row {row} cannot start at {nodes.now} s: {word}; start only "
                "jobs for which look.nodes.fits(job) is true"
            )
        nodes.start(row, place)

    @override
    def wake(self, now: int) -> int | None:
        self.promises = self.policy.promises
        nodes = self.nodes_now
        times = [job.eligible for row in nodes.shut_out if (job := nodes.waiting.get(row))]
        times = [time for time in times if time > now]
        own = self.policy.wake(now)
        if own is not None:
            times.append(own)
        if nodes.waiting:
            times += nodes.turns[:1]
        return min(times, default=None)

    @override
    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        """Return the reasons of the policy, in Slurm's words where those of the pool do not hold.

        ``Resources`` if no nodes have room, ``ReqNodeNotAvail`` if a reservation keeps them.
        """
        if not hasattr(self, "nodes_now"):  # of a finished run only processors are known
            yield from explain(self.policy, look)
            return
        nodes = self.nodes_now.sketch()
        nodes.now = look.now
        known = [job for job in look.waiting if job.row in nodes.waiting]
        shown = [job for job in known if not nodes.shut(nodes.waiting[job.row])]
        estimates = {job.row: job.estimate for job in shown}
        limits = {job.row: nodes.limited(nodes.waiting[job.row]) for job in shown}
        for reason in explain(self.policy, look._replace(waiting=tuple(shown), nodes=nodes)):
            word = limits[reason.row] if reason.code in PASSING else ""
            waits = reason.row in nodes.waiting and reason.asks <= look.free
            if reason.code in PASSING and waits and not word:
                word = nodes.why(nodes.waiting[reason.row], estimates[reason.row])
            yield reason._replace(code=ReasonCode.SITE, note=word) if word else reason
        for job in look.waiting:
            if job.row in estimates:
                continue
            found = self.reason(job, look)
            asks = nodes.waiting.get(job.row)
            if asks is None:
                yield found._replace(code=ReasonCode.ARRIVED, note="")
            else:
                yield found._replace(code=ReasonCode.SITE, note=nodes.shut(asks))

    @override
    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        self.policy.recall(now, jobs, ended, running, waiting)

    def __str__(self) -> str:
        return str(self.policy)


class QueueOutlook(SlurmOutlook):
    """A machine of nodes at one second; a start is the place in a conservative plan.

    That is behind all that wait, each as early as it can without delaying one before it, with
    requested times. No start is foretold for jobs at a limit.
    """

    has_shares = False


def _plan(nodes: Nodes, now: int, waiting: Int64s, running: Int64s) -> Snapshot:
    """Return a controller that plans the whole queue in the order in which it waits."""
    admission = nodes.admission
    here, runs = set(waiting.tolist()), set(running.tolist())
    if nodes.planner is None:
        rules = SiteRules(_planned(nodes.layout.machine), ranked=False)
        rules.shares = nodes.shares
        nodes.planner = SlurmBook(rules, admission, "slurm", admission.jobs)
    return snapshot_with(
        nodes.planner,
        now,
        [job for row, job in nodes.running.items() if row in runs],
        [job for row, job in nodes.waiting.items() if row in here],
        [admission.accepted(row, now) for row in waiting.tolist() if row not in nodes.waiting],
    )


def _planned(machine: Machine) -> Machine:
    """Return a machine on which a cycle of backfilling plans the whole queue in its order."""
    scheduling = machine.scheduling.model_copy(
        update={
            "bf_window": FOREVER // 4, "bf_max_job_test": FOREVER, "bf_resolution": 1,
            "bf_max_job_user": 0, "bf_max_job_part": 0, "bf_max_job_assoc": 0,
            "bf_max_job_start": 0, "bf_min_age_reserve": 0, "preempt_type": "none",
        }
    )  # fmt: skip
    partitions = [one.model_copy(update={"priority_tier": 1}) for one in machine.partitions]
    basic = machine.priority.model_copy(update={"kind": "basic"})
    return machine.model_copy(
        update={"scheduling": scheduling, "partitions": tuple(partitions), "priority": basic}
    )
