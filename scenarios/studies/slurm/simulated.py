"""The ordinary replay of a recorded run, and priorities on the record itself.

A simulation is what ``hpcrowd replay`` does with the run's accounting and configuration; nothing
else is known, not even the plan. :func:`replay` also lets all jobs start and end as they were
recorded, in a controller that decides nothing: what it says of priorities then can be compared with
``sprio`` and ``sshare`` before any schedule is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop
from typing import cast

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.engine.kernel.cluster import ClusterState, Jobs
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.nodes import site as N
from hpcrowd.environment.engine.kernel.nodes.loop import calculated
from hpcrowd.environment.engine.kernel.nodes.queue import finish, join, occupy, withdraw
from hpcrowd.environment.engine.kernel.nodes.site import Site
from hpcrowd.environment.engine.passes.slurm.book import SlurmBook
from hpcrowd.environment.engine.passes.slurm.snapshot import SlurmState, hold_shares
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN, JobTable, State
from hpcrowd.environment.machine.files.reading import read_machine
from hpcrowd.environment.machine.model import Machine
from hpcrowd.environment.machine.selection import Share
from hpcrowd.environment.schedulers.slurm.admission import Admission, SiteRules
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.schedulers.slurm.queue import Factors
from hpcrowd.environment.schedulers.slurm.shares import Shares
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.studies.slurm.recorded_logs import machine_of_log
from hpcrowd.scenarios.studies.slurm.records import Key, Record, Try
from hpcrowd.scenarios.studies.slurm.schedules import (
    KEPT,
    KEPT_WORD,
    TOTAL,
    Schedule,
    Simulated,
    keys_in,
    schedule_of,
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


#: Files with what ``sacct`` printed, the best first; a study has what a site has.
ACCOUNTS = ("sacct-all.txt", "sacct-all.json", "dumps/all-D.txt", "sacct.json", "dumps/json-D.txt")


@dataclass(frozen=True)
class Replayed:
    """The ordinary replay of a recorded run, before it begins."""

    model: Simulation
    keys: dict[int, Key]  #: The job in the plan by row.
    shift: int  #: Second of the simulation at which the plan starts.

    @property
    def jobs(self) -> JobTable:
        """The jobs, with what they ask for."""
        return self.model.jobs

    @cached_property
    def row_of(self) -> dict[Key, int]:
        """The row of each job of the plan."""
        return {key: row for row, key in self.keys.items()}


def machine_of(record: Record) -> Machine:
    """Return the machine of a recorded run."""
    return machine_of_log(record.folder) if record.is_log else read_machine([record.folder])


def replayed(
    record: Record,
    seed: int = 0,
    machine: Machine | None = None,
    without: Iterable[str] = (),
    **settings: str,
) -> Replayed:
    """Return the replay of a recorded run by ``hpcrowd replay``, of what ``sacct`` printed.

    Settings are those of a replay; its users are rigid. Columns of the log may be left out, named
    as in :attr:`~hpcrowd.environment.traces.trace.Trace.extra`. Raises TraceError if the run has
    no such file.
    """
    path = next((found for name in ACCOUNTS if (found := record.path(name)) is not None), None)
    if path is None:
        names = ", ".join(f"{name}[.gz]" for name in ACCOUNTS)
        raise TraceError(f"{record.folder}: none of {names}; one of them is replayed")
    config = ReplayConfig.configure(
        trace=str(path.absolute()), users="rigid", seed=seed, machine=machine or machine_of(record),
        **{"scheduler": "slurm"} | settings,
    )  # fmt: skip
    trace = config.read()
    for name in without:
        trace.extra.pop(name, None)
    model = config.stage(trace).model
    place = {number: row for row, number in enumerate(model.jobs.number.tolist())}
    keys = {}
    for number, text in zip(trace["number"].tolist(), trace.extra["job_id"].tolist(), strict=True):
        known = keys_in(record, text)
        if len(known) == 1 and number in place:
            keys[place[number]] = known[0]
    return Replayed(model, keys, record.origin - Clock.of(trace.header).unix_start)


def replay(record: Record, number: int = 0, seed: int = 0) -> Simulated:
    """Replay a recorded run with the timers of a seed: the study's, and ``number`` more.

    Only the first draw has priorities on the record, as they hardly depend on timers.
    """
    found = schedule_on(record, replayed(record, seed + number))
    return Simulated(found, None if number else on_record(record, replayed(record, seed)))


def schedule_on(record: Record, run: Replayed) -> Schedule:
    """Return the schedule of a replay until the record ends.

    Reasons, priorities and shares are noted at the moments of the run's samples.
    """
    model, keys = run.model, run.keys
    policy = cast("Slurm", model.cluster.engine.scheduler)
    reasons: dict[int, dict[Key, str]] = {}
    priorities: dict[int, dict[Key, Mapping[str, float]]] = {}
    shares: dict[int, dict[tuple[str, str], float]] = {}

    def sample(moment: int) -> None:
        state = policy.state
        waiting = [job for job in state.waiting.values() if job.row in keys]
        reasons[moment] = {
            keys[job.row]: KEPT_WORD if job.reason.startswith(KEPT) else job.reason
            for job in waiting
        }
        held = [row for row in model.cluster.held if row in keys]
        reasons[moment] |= {keys[row]: "Dependency" for row in held}
        priorities[moment] = {
            keys[job.row]: parts_of(next(iter(job.factors.values())))
            for job in waiting
            if job.factors
        }
        shares[moment] = shares_of(state.shares)

    for moment in moments_of(record):
        model.call_at(moment + run.shift, sample, moment)
    model.run(until=max((one.end for one in record.tries), default=0) + 1 + run.shift)
    return Schedule("simulated", _tries(run, policy), reasons, priorities, shares)


def moments_of(record: Record) -> list[int]:
    """Return the moments of a recorded run's samples, s."""
    recorded = schedule_of(record)
    return sorted({*recorded.reasons, *recorded.priorities, *recorded.shares})


def _tries(run: Replayed, policy: Slurm) -> tuple[Try, ...]:
    """Return all tries of all jobs of the plan, in s since its start."""
    jobs, found = run.jobs, []
    counts: dict[int, int] = {}

    def since(second: int) -> int:
        return UNKNOWN if second == UNKNOWN else second - run.shift

    for one in policy.ledger:
        if one.row not in run.keys or jobs.start[one.row] == UNKNOWN:
            continue  # what was given up at its turn did not start
        trial = counts[one.row] = counts.get(one.row, -1) + 1
        last = one.end == UNKNOWN
        state = {
            State.COMPLETED: "COMPLETED", State.KILLED: "TIMEOUT", State.UNFINISHED: "RUNNING",
            State.CANCELLED: "CANCELLED", State.FAILED: "PREEMPTED",
        }.get(State(jobs.state[one.row]), "CANCELLED")  # fmt: skip
        found.append(
            Try(
                key=run.keys[one.row],
                trial=trial,
                submit=since(int(jobs.submit[one.row]) if trial == 0 else one.submitted),
                eligible=since(one.eligible),
                start=since(one.start),
                end=since(int(jobs.end[one.row]) if last else one.end),
                state=state if last else "PREEMPTED",
                cores=sum(share.cores for share in one.holding),
                nodes=tuple(policy.layout.names[share.node] for share in one.holding),
                how=one.by,
                job=one.row + 1,
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


def on_record(record: Record, run: Replayed) -> Schedule:
    """Return priorities and shares if all jobs are submitted, start and end as recorded."""
    machine, moments = machine_of(record), moments_of(record)
    ledger = RecordedRun(machine, run.jobs)
    events: list[tuple[int, int, int, int]] = []
    tries: list[Try] = [one for one in record.tries if one.key in run.row_of]
    # The accounting says when throttles let go; a job gathers age from its submission on.
    since: dict[int, int] = {}
    for one in tries:
        if one.trial == 0 and one.eligible >= 0:
            since[one.key.plan] = min(one.eligible, since.get(one.key.plan, one.eligible))
    for count, one in enumerate(tries):
        row = run.row_of[one.key]
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
                run.keys[job.row]: parts_of(next(iter(job.factors.values())))
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
