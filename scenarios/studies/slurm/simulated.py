"""The plan of a recorded run under the simulated controller, and priorities on the record itself.

Nothing of the simulation is taken from the record but its plan, the moments at which jobs were
submitted and taken back, and the machine's configuration. :func:`replay` also lets all jobs start
and end as they were recorded, in a controller that decides nothing: what it says of priorities
then can be compared with ``sprio`` and ``sshare`` before any schedule is.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop

import numpy as np

from hpcrowd.environment.engine.kernel.cluster import ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.loop import calculated
from hpcrowd.environment.engine.kernel.nodes.queue import finish, join, occupy, withdraw
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import SlurmState, hold_shares
from hpcrowd.environment.holds.held import hold
from hpcrowd.environment.holds.rules import Rules
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import Share
from hpcrowd.environment.schedulers.on_nodes.in_use import MachineInUse
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.schedulers.slurm.queue import Factors
from hpcrowd.environment.schedulers.slurm.shares import Shares
from hpcrowd.environment.schedulers.slurm.timers import drawn_timers
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.studies.slurm.recorded_logs import machine_of_log
from hpcrowd.scenarios.studies.slurm.records import Key, Record, Try
from hpcrowd.scenarios.studies.slurm.schedules import (
    KEPT,
    KEPT_WORD,
    TOTAL,
    Schedule,
    Simulated,
    Workload,
    schedule_of,
    workload_of,
)


class RecordedRun:
    """A run whose starts and ends are known; priorities and shares are computed."""

    def __init__(self, machine: Machine, jobs: JobTable) -> None:
        rules = SiteRules(machine)
        self._book = SlurmBook(rules, Admission(rules, jobs), "slurm", jobs)
        self._engine = Jobs(jobs.matrix), ClusterState(), Heap(np.zeros((2, 0), np.int64))

    def _site(self, now: int) -> Site:
        while not calculated(site := self._book.site(*self._engine), now):
            self._book.rank()
        return site

    def state(self, now: int) -> SlurmState:
        """Return what the controller knows."""
        self._site(now)
        return self._book.state()

    def _is(self, row: int, *status: int) -> bool:
        return row < self._book.rows.table.shape[1] and self._book.rows.status[row] in status

    def submit(self, row: int, now: int, eligible: int) -> None:
        """Put a job into the queue that may start from a second on, if it does not wait or run."""
        if self._is(row, N.WAITING, N.RUNNING):
            return
        book = self._book
        book.resolve(np.array([row]))
        if not book.rows.count[row]:  # the site refuses it by now
            book.add_entries(row, book.running_like(row))
        book.rows.begin[row] = eligible
        book.grow(1, 1, int(book.rows.count[row]))
        join(self._site(now), row, now)

    def start(self, row: int, now: int, cores: int) -> None:
        """Let a waiting job run with some cores."""
        if self._is(row, N.WAITING):
            book = self._book
            book.grow(1, 1, 0)
            withdraw(self._site(now), row)
            none = (0,) * len(book.layout.gpu_types)
            first, last = hold_shares(book, (Share(0, cores, 0, none),))
            entry = int(book.rows.entry[row])
            occupy(book.site(*self._engine), entry, now, first, last, N.BY_MAIN)

    def end(self, row: int, now: int) -> None:
        """Let a running job end."""
        if self._is(row, N.RUNNING):
            self._book.grow(0, 1, 0)
            finish(self._site(now), row, now, False)

    def take_back(self, row: int) -> None:
        """Take a waiting job out of the queue."""
        if self._is(row, N.WAITING):
            self._book.withdraw(row)


#: s that a job takes beyond its program, from its start to its end: the median of ten thousand
#: records of the referee's runs.
START_LATENCY = 1.0

#: s between two looks at the queue beyond ``bf_interval``: the mean cycle of ``sdiag`` in the
#: referee's runs, 0.04 to 0.06 s, and what a sleep takes longer than asked there.
CYCLE_TIME = 0.06


class Plan:
    """The one who submitted the plan; it waits for nothing."""

    def on_finished(self, unit: int, now: int) -> None:
        """Do nothing."""


def machine_of(record: Record) -> Machine:
    """Return the machine of a recorded run, with the latencies of the referee.

    An accounting has no such latencies: its clock was not accelerated, and most of its jobs take
    no second more than they sleep.
    """
    if record.is_log:
        return machine_of_log(record.folder)
    machine = read_machine([record.folder])
    scheduling = machine.scheduling.model_copy(
        update={"start_latency": START_LATENCY, "cycle_time": CYCLE_TIME}
    )
    return machine.model_copy(update={"scheduling": scheduling})


def replay(record: Record, number: int = 0, seed: int = 0) -> Simulated:
    """Simulate the plan of a recorded run, with phases drawn at random: see ``drawn_timers``.

    Only the first draw has priorities on the record, as they hardly depend on phases.
    """
    machine = machine_of(record)
    timers = drawn_timers(machine, number, seed)
    machine = timers.on(machine)
    workload = workload_of(record, timers.arrived)
    return Simulated(
        schedule_on(record, workload, machine), None if number else on_record(record, machine)
    )


def schedule_on(
    record: Record, workload: Workload, machine: Machine, placement: str = "slurm"
) -> Schedule:
    """Return the schedule of a recorded run's plan on a machine.

    Reasons, priorities and shares are noted at the moments of the run's samples.
    """
    moments = moments_of(record)
    jobs = workload.jobs.copy()
    jobs.requests = workload.requests
    policy = Slurm(placement)
    parts = [MachineInUse(machine)]
    model = Simulation(jobs, machine.cores, policy, overrun="kill", parts=parts)
    # The controller keeps throttles and earliest starts itself.
    rules = workload.rules
    held = Rules(delay=np.zeros(len(jobs), np.int64), failed=rules.failed, parents=rules.parents)
    if held:
        hold(model, held)
    rows = np.arange(len(jobs))
    at = np.floor(workload.submitted).astype(np.int64)
    model.submit(Plan(), rows, at)

    def take_back(row: int) -> None:
        if jobs.state[row] == State.UNFINISHED and jobs.start[row] == UNKNOWN:
            model.cancel(row)

    for row in np.flatnonzero(workload.cancel >= 0).tolist():
        model.call_at(int(workload.cancel[row]), take_back, row)
    reasons: dict[int, dict[Key, str]] = {}
    priorities: dict[int, dict[Key, Mapping[str, float]]] = {}
    shares: dict[int, dict[tuple[str, str], float]] = {}

    def sample(moment: int) -> None:
        state = policy.state
        waiting = state.waiting.values()
        reasons[moment] = {
            workload.keys[job.row]: KEPT_WORD if job.reason.startswith(KEPT) else job.reason
            for job in waiting
        }
        reasons[moment] |= {workload.keys[row]: "Dependency" for row in model.cluster.held}
        priorities[moment] = {
            workload.keys[job.row]: parts_of(next(iter(job.factors.values())))
            for job in waiting
            if job.factors
        }
        shares[moment] = shares_of(state.shares)

    for moment in moments:
        model.call_at(moment, sample, moment)
    end = max((one.end for one in record.tries), default=0) + 1
    model.run(until=end)
    return Schedule("simulated", _tries(workload, policy, model), reasons, priorities, shares)


def moments_of(record: Record) -> list[int]:
    """Return the moments of a recorded run's samples, s."""
    recorded = schedule_of(record)
    return sorted({*recorded.reasons, *recorded.priorities, *recorded.shares})


def _tries(workload: Workload, policy: Slurm, model: Simulation) -> tuple[Try, ...]:
    """Return all tries of all jobs."""
    jobs, found = model.jobs, []
    counts: dict[int, int] = {}
    for run in policy.ledger:
        key = workload.keys[run.row]
        trial = counts[run.row] = counts.get(run.row, -1) + 1
        last = run.end == UNKNOWN
        state = {
            State.COMPLETED: "COMPLETED", State.KILLED: "TIMEOUT", State.UNFINISHED: "RUNNING",
            State.CANCELLED: "CANCELLED", State.FAILED: "PREEMPTED",
        }.get(State(jobs.state[run.row]), "CANCELLED")  # fmt: skip
        found.append(
            Try(
                key=key,
                trial=trial,
                submit=int(jobs.submit[run.row]) if trial == 0 else run.submitted,
                eligible=run.eligible,
                start=run.start,
                end=int(jobs.end[run.row]) if last else run.end,
                state=state if last else "PREEMPTED",
                cores=sum(share.cores for share in run.holding),
                nodes=tuple(policy.layout.names[share.node] for share in run.holding),
                how=run.by,
                job=run.row + 1,
            )
        )
    return tuple(found)


def parts_of(factors: Factors) -> dict[str, float]:
    """Return the parts of a priority as ``sprio`` calls them."""
    return {
        TOTAL: float(factors.total),
        "AGE": factors.age,
        "FAIRSHARE": factors.fair_share,
        "JOBSIZE": factors.size,
        "PARTITION": factors.partition,
        "QOS": factors.qos,
    }


def shares_of(shares: Shares) -> dict[tuple[str, str], float]:
    """Return the fair-share factors by account and user."""
    return {(one.name, one.user): one.factor for one in shares.all if one.user}


def on_record(record: Record, machine: Machine) -> Schedule:
    """Return priorities and shares if all jobs are submitted, start and end as recorded."""
    workload, moments = workload_of(record), moments_of(record)
    jobs = workload.jobs.copy()
    jobs.requests = workload.requests
    ledger = RecordedRun(machine, jobs)
    events: list[tuple[int, int, int, int]] = []
    tries: list[Try] = [one for one in record.tries if one.key in workload.row_of]
    # The accounting says when throttles let go; a job gathers age from its submission on.
    since: dict[int, int] = {}
    for one in tries:
        if one.trial == 0 and one.eligible >= 0:
            since[one.key.plan] = min(one.eligible, since.get(one.key.plan, one.eligible))
    for count, one in enumerate(tries):
        row = workload.row_of[one.key]
        events.append((one.submit, 1, row, count))
        if one.started:
            events.append((one.start, 2, row, count))
            if one.end >= one.start:
                events.append((one.end, 0, row, count))
        elif one.end >= 0:
            events.append((max(one.end, one.submit), 3, row, count))
    events += [(moment, 4, 0, 0) for moment in moments]
    heapify(events)
    priorities: dict[int, dict[Key, Mapping[str, float]]] = {}
    shares: dict[int, dict[tuple[str, str], float]] = {}
    while events:
        now, kind, row, count = heappop(events)
        if kind == 4:
            state = ledger.state(now)
            priorities[now] = {
                workload.keys[job.row]: parts_of(next(iter(job.factors.values())))
                for job in state.waiting.values()
                if job.eligible <= now
            }
            shares[now] = shares_of(state.shares)
        elif kind == 1:
            eligible = now + machine.scheduling.requeue_delay
            if tries[count].trial == 0:
                eligible = since.get(tries[count].key.plan, 2**40)
            ledger.submit(row, now, eligible)
        elif kind == 2:
            ledger.start(row, now, tries[count].cores)
        elif kind == 0:
            ledger.end(row, now)
        else:
            ledger.take_back(row)
    return Schedule("on the record", record.tries, {}, priorities, shares)
