"""Generate workloads of any size, or a population of users, from a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember
from hpcrowd.analysis.features.workload import NUMBERS, Settings, Workload, whole
from hpcrowd.analysis.models.jobs.locality import with_correlation
from hpcrowd.analysis.models.model import WorkloadModel, model_of
from hpcrowd.analysis.models.parts.base import ArrivalModel, Cycle, Drawn, Floats
from hpcrowd.analysis.models.parts.users import UserShares
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.limits.numbers import (
    LEAST_DAYS,
    LEAST_LOAD,
    MOST_DAYS,
    MOST_JOBS,
    MOST_LOAD,
    MOST_PROCESSORS,
    MOST_USERS,
    check_memory,
    check_within,
)
from hpcrowd.environment.quantities import notebook_table, parse_factor, plural
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.requests import request_columns
from hpcrowd.environment.traces.trace import UNSCHEDULED, Trace, all_columns

if TYPE_CHECKING:
    from hpcrowd.environment.machine.model import Machine

#: Tolerance for meeting a target.
TOLERANCE = 0.01

#: Jobs a day of each user, as a multiple of those in the log, from which a note is worth it.
BUSIER = 1.5

#: Status of a job that completed, in the Standard Workload Format.
COMPLETED = 1

#: Tolerance for reaching a load, and the most steps to get there.
NEAR, MOST_STEPS = 1e-4, 8

#: Jobs drawn first to estimate how many fit into the days, and a safety factor.
FIRST_DRAW, MARGIN = 4096, 1.2

#: Bytes for a job while a workload is generated: the columns, and copies on the way.
BYTES_PER_JOB = 350


@dataclass(frozen=True)
class Generated:
    """A generated workload.

    Attributes
    ----------
    model
        The model.
    drawn
        The jobs; submissions and run times are whole seconds.
    machine
        Processors of the machine.
    seed
        Seed of everything random.
    notes
        Remarks.
    requests
        What the jobs ask of a machine of nodes; None if the model does not know it.
    """

    model: WorkloadModel
    drawn: Drawn
    machine: int
    seed: int
    notes: tuple[str, ...]
    requests: Requests | None = None

    def __len__(self) -> int:
        return len(self.drawn)

    def __repr__(self) -> str:
        jobs = plural(len(self), "job")
        return f"<Generated {self.model.name}: {jobs}, load {self.load:.3g}, seed {self.seed}>"

    def _repr_html_(self) -> str:
        """Return means of its jobs, for notebooks."""
        jobs = self.drawn
        means = ("run time, h", jobs.run_time / HOUR), ("processors", jobs.processors)
        rows = [(f"mean {name}", f"{values.mean():.3g}") for name, values in means]
        days = np.ptp(jobs.submit) / DAY
        notes = (("note", one) for one in self.notes)
        return notebook_table(repr(self), [*rows, ("days", f"{days:.3g}"), *notes])

    @property
    def load(self) -> float:
        """Offered load: run time x processors over the capacity of the machine in the span."""
        return offered_load(self.drawn, self.machine)

    def workload(self, settings: Settings | None = None) -> Workload:
        """Return the workload to measure."""
        jobs = self.drawn
        return Workload.of(
            jobs.submit,
            jobs.run_time,
            jobs.processors,
            name=f"{self.model.name}, seed {self.seed}",
            requested_time=jobs.requested_time,
            **{name: getattr(jobs, name) for name in NUMBERS},
            clock=Clock(known=True),  # its origin is a Monday by definition
            machine=self.machine,
            settings=settings or Settings(),
        )

    def trace(self) -> Trace:
        """Return the workload as a trace that the strict reader accepts.

        The jobs have not been scheduled, so waits are unknown, -1. If the model gives no requested
        time, it is the run time, at least 1 s. Jobs that follow another one refer to it, with think
        time 0. What they ask of a machine is in the columns of a site, and the queue is then the
        partition.
        """
        jobs, size = self.drawn, len(self.drawn)
        run = whole(jobs.run_time)
        requested = np.where(
            jobs.requested_time < 0, np.maximum(run, 1), whole(jobs.requested_time)
        )
        known: dict[str, Any] = {
            "number": np.arange(1, size + 1),
            "submit": whole(jobs.submit),
            "wait": np.full(size, UNKNOWN),
            "run": run,
            "allocated_processors": jobs.processors,
            "requested_processors": jobs.processors,
            "requested_time": requested,
            "status": np.full(size, COMPLETED),
            **{name: getattr(jobs, name) for name in NUMBERS},
            "preceding": np.where(jobs.follows < 0, UNKNOWN, jobs.follows + 1),
            "think_time": np.where(jobs.follows < 0, UNKNOWN, 0),
        }
        source = f"{self.model.name}, generated"
        if self.requests is None:
            return Trace(Header(self._header()), all_columns(known, size), source=source)
        names = {"queue": self.requests.words[Ask.PARTITIONS]}
        known["queue"] = np.where(
            self.requests[Ask.PARTITIONS] < 0, UNKNOWN, self.requests[Ask.PARTITIONS] + 1
        )
        return Trace(
            Header(self._header()),
            all_columns(known, size),
            source=source,
            names={field: dict(enumerate(words, 1)) for field, words in names.items()},
            extra=request_columns(self.requests, known["submit"]),
        )

    def _header(self) -> list[bytes]:
        clock = Clock()
        source = self.model.provenance.get("trace", "published parameters")
        told = [f"waits are -1: {UNSCHEDULED}"]
        if (self.drawn.requested_time < 0).any():
            told.append("requested times are run times where the model gives none")
        return [
            f"; {line}".encode()
            for line in (
                "Version: 2.2",
                f"Computer: generated by hpcrowd, model {self.model.name}, seed {self.seed}",
                f"Note: model from {source}; arrivals {self.model.arrivals.name}",
                *(f"Note: {note}" for note in (*told, *self.notes)),
                f"MaxJobs: {len(self)}",
                f"MaxRecords: {len(self)}",
                f"UnixStartTime: {clock.unix_start}",
                "TimeZoneString: UTC",
                f"MaxProcs: {self.machine}",
            )
        ]


def generate(
    model: WorkloadModel | str,
    *,
    jobs: int | None = None,
    days: float | None = None,
    load: float | None = None,
    processors: int | None = None,
    correlation: float | None = None,
    users: int | str | None = None,
    seed: int = 0,
    machine: Machine | None = None,
) -> Generated:
    """Generate a workload.

    Parameters
    ----------
    model
        Model to generate from: a fitted one, its file, or the name of a published one.
    jobs, days
        Number of jobs, or number of days; give one of the two.
    load
        Offered load to reach by stretching the times between arrivals; None leaves them.
    processors
        Size of the machine; None for the model's.
    correlation
        Reassign processors so that they correlate with run times to this degree, from -1 to 1 as a
        share of the largest possible correlation; None leaves them.
    users
        Number of users, or a multiple of the model's such as ``10x``; None for the model's.
    seed
        Seed of everything random; the same seed gives the same bytes.
    machine
        The machine of nodes that jobs are for. If the model knows what jobs ask of one, each job
        fits into a partition.

    Raises
    ------
    QuantityError
        When a number is out of range.
    """
    if isinstance(model, str):
        model = model_of(model, processors)
    processors = model.machine if processors is None else processors
    check_within("processors", processors, 1, MOST_PROCESSORS)
    if (jobs is None) == (days is None):
        raise QuantityError("generate: give either a number of jobs or a number of days")
    if jobs is not None:
        check_within("jobs", jobs, 1, MOST_JOBS)
    if days is not None:
        check_within("days", days, LEAST_DAYS, MOST_DAYS)
    if load is not None:
        check_within("load", load, LEAST_LOAD, MOST_LOAD, "a usual load is 0.7")
    model, told = _with_users(model, users)
    source = _Source(model, processors, seed, correlation)
    if jobs is not None:
        drawn = _drawn(source, jobs, load)
    else:
        assert days is not None
        drawn = _drawn_days(source, days, load)
    for times in (drawn.submit, drawn.run_time):
        times[:] = whole(times)
    if model.requests is not None:
        random = Streams(seed).generator("requests")
        drawn = replace(drawn, requested_time=model.requests.times(drawn, random))
    asked: Requests | None = None
    fitted: list[str] = []
    if model.machine_requests is not None:
        drawn, asked, fitted = model.machine_requests.draw(
            drawn, Streams(seed).generator("machine requests"), model.jobs.kinds_of(drawn), machine
        )
    notes = [*drawn.notes, *told, *fitted]
    if users is None:
        notes += _busier(model, drawn)
    if load is not None:
        found = offered_load(drawn, processors)
        if abs(found / load - 1) > TOLERANCE:
            notes.append(f"load {found:.3f} instead of {load:g}")
    if days is not None:
        found = float(drawn.submit[-1]) / DAY if len(drawn) else 0.0
        if abs(found / days - 1) > TOLERANCE:
            notes.append(f"the last job comes after {found:.2f} days instead of {days:g}")
    return Generated(model, drawn, processors, seed, tuple(notes), asked)


def _with_users(model: WorkloadModel, users: int | str | None) -> tuple[WorkloadModel, list[str]]:
    """Return a model with another number of users, and what it says about that."""
    if users is None:
        return model, []
    jobs: Any = model.jobs
    if not hasattr(jobs, "users"):
        raise QuantityError(f"users {users}: model {model.name} has no users")
    shared = isinstance(jobs.users, UserShares)
    own = len(jobs.users.weights) if shared else sum(map(len, jobs.users))
    text = str(users).strip()
    wanted = int(text) if text.isascii() and text.isdigit() else 0
    if not wanted:
        wanted = max(1, round(own * parse_factor(text, "users")))
    check_within("users", wanted, 1, MOST_USERS)
    if shared:
        jobs = jobs.model_copy(update={"users": jobs.users.resized(wanted)})
    else:
        jobs = jobs.resized(wanted)
    return replace(model, jobs=jobs), [f"about {wanted:,} users; the model has {own:,}"]


def _busier(model: WorkloadModel, drawn: Drawn) -> list[str]:
    """Return a note if the users of the model submit far more jobs a day than in the log."""
    before: Any = model.provenance.get("jobs")
    span: Any = model.provenance.get("span_s")
    now = float(drawn.submit[-1] - drawn.submit[0]) if len(drawn) else 0.0
    numbers = isinstance(before, int) and isinstance(span, int | float)  # a file may hold anything
    if not (numbers and before > 0 and span > 0 and now > 0):
        return []
    times = (len(drawn) / now) / (before / span)
    if times < BUSIER:
        return []
    return [
        f"{times:.2g} times as many jobs a day as in the log, of the same users; --users "
        f"{times:.2g}x gives each as many as there"
    ]


def offered_load(drawn: Drawn, machine: int) -> float:
    """Return run time x processors over a machine's capacity from the first to the last job."""
    span = float(drawn.submit[-1] - drawn.submit[0]) if len(drawn) else 0.0
    work = float((drawn.run_time * drawn.processors).sum())
    return work / (machine * span) if span > 0 else float("inf")


@dataclass(frozen=True)
class _Stretched:
    """Arrivals stretched by a factor, then warped by a weekly cycle; used like a model."""

    arrivals: ArrivalModel
    factor: float
    cycle: Cycle | None

    def times_and_kinds(
        self, count: int, random: np.random.Generator
    ) -> tuple[Floats, Int64s | None]:
        times, kinds = self.arrivals.times_and_kinds(count, random)
        stretched = times * self.factor
        return (stretched if self.cycle is None else self.cycle.warp(stretched)), kinds


@dataclass(frozen=True)
class _Source:
    """The source of jobs for repeated draws; the same streams give the same jobs each time."""

    model: WorkloadModel
    machine: int
    seed: int
    correlation: float | None

    def draw(self, jobs: int, factor: float = 1.0) -> Drawn:
        check_memory(f"{jobs:,} jobs", jobs * BYTES_PER_JOB, "generate fewer jobs or days")
        arrivals = _Stretched(self.model.arrivals, factor, self.model.cycle)
        streams = Streams(self.seed)
        drawn = self.model.jobs.draw(jobs, arrivals, self.machine, streams)  # type: ignore[arg-type]
        if self.correlation is None:
            return drawn
        return with_correlation(drawn, self.correlation, streams.generator("correlation"))


def _drawn(source: _Source, jobs: int, load: float | None) -> Drawn:
    """Return ``jobs`` jobs; times between first submissions are stretched to reach a load.

    If some jobs follow others, which stretching does not change, this takes more than one step.
    """
    drawn, factor = source.draw(jobs), 1.0
    for _ in range(MOST_STEPS):
        found = offered_load(drawn, source.machine)
        if load is None or not 0 < found < float("inf") or abs(found / load - 1) <= NEAR:
            break
        factor *= found / load
        drawn = source.draw(jobs, factor)
    return drawn


def _drawn_days(source: _Source, days: float, load: float | None) -> Drawn:
    """Return the jobs of a number of days: draw more than fit, and leave out the rest."""
    wanted = days * DAY
    jobs = FIRST_DRAW
    while True:
        drawn = source.draw(jobs)
        if load is None:
            share = float(drawn.submit[-1]) / wanted
        else:
            work = float((drawn.run_time * drawn.processors).sum())
            share = work / (load * source.machine * wanted)
        if share >= 1 or jobs >= MOST_JOBS:
            break
        jobs = min(MOST_JOBS, int(jobs * max(2.0, MARGIN / max(share, 1e-3))))
    factor, nearest = 1.0, (float("inf"), drawn)
    for _ in range(MOST_STEPS if load is not None else 0):
        # Take the jobs whose work makes the load, and stretch them over the days. This needs more
        # than one step if jobs depend on arrivals.
        so_far = np.cumsum(drawn.run_time * drawn.processors)
        count = int(np.searchsorted(so_far, (load or 0.0) * source.machine * wanted)) + 1
        last = float(drawn.submit[min(count, jobs) - 1])
        off = abs(last / wanted - 1)
        if off < nearest[0]:
            nearest = off, drawn
        if last <= 0 or off <= NEAR:
            break
        factor *= wanted / last
        drawn = source.draw(jobs, factor)
    drawn = nearest[1]
    return drawn.first(max(1, int(np.searchsorted(drawn.submit, wanted, side="right"))))


@dataclass(frozen=True)
class Population:
    """Users, and by group the batches that the users of each group submit."""

    members: tuple[PoolMember, ...]
    pools: dict[int, BatchPool]


def population(made: Generated) -> Population:
    """Return the users of a generated workload, as the basis for agents.

    Each user of the workload becomes a member of the same group. It submits its first batch as in
    the workload, and draws the others from the batches of all users of its group. Its pauses are
    those between its own batches in the workload, from the end of a batch without waits to the next
    submission; 0 if they overlap. After its last batch it pauses until its first one comes again,
    as if the workload wrapped around. On a machine without waits it therefore submits about as
    often as in the workload, and less often if it has to wait.

    Raises
    ------
    QuantityError
        When jobs of the workload have no user.
    """
    jobs = made.drawn
    if not len(jobs) or (jobs.user < 1).any():
        raise QuantityError(f"model {made.model.name}: its jobs have no users to make agents of")
    # Group the jobs of a bag: bags may interleave in the workload.
    order = np.lexsort((np.arange(len(jobs)), jobs.bag))
    new = np.ones(len(order), bool)
    new[1:] = np.diff(jobs.bag[order]) != 0
    first = np.append(np.flatnonzero(new), len(order))
    run = whole(jobs.run_time)[order]
    submit = whole(jobs.submit)[order]
    asked = np.where(jobs.requested_time < 0, jobs.run_time, jobs.requested_time)
    requested = np.maximum(whole(asked)[order], 1)
    processors = jobs.processors[order]
    start = submit[first[:-1]]
    end = np.maximum.reduceat(submit + run, first[:-1])
    user, group = jobs.user[order][first[:-1]], jobs.group[order][first[:-1]]

    pools, sizes = {}, np.diff(first)
    for number in np.unique(group).tolist():
        rows = np.flatnonzero(np.repeat(group, sizes) == number)
        pools[number] = BatchPool(
            np.append(0, np.cumsum(sizes[group == number])).astype(np.int64),
            run[rows],
            requested[rows],
            processors[rows],
            None if made.requests is None else made.requests.take(order[rows]),
        )
    by_user = np.lexsort((start, user))
    edges = np.append(np.flatnonzero(np.diff(user[by_user], prepend=-1)), len(by_user))
    length = int(submit.max() - submit.min()) if len(submit) else 0
    members = []
    for one, other in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        mine = by_user[one:other]
        # The workload wraps around: after its last batch a user pauses until its first comes again.
        again = np.append(start[mine][1:], start[mine[0]] + length)
        pauses = np.maximum(again - end[mine], 0)
        members.append(
            PoolMember(
                number=int(user[mine[0]]),
                group=int(group[mine[0]]),
                wakes=int(start[mine[0]]),
                pauses=pauses,
                submits=start[mine],
            )
        )
    return Population(tuple(members), pools)
