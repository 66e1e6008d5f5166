"""The workload to measure: columns of jobs by submission, from a trace, a run or a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.errors import QuantityError, TraceError, UnavailableError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, State
from hpcrowd.environment.quantities import format_duration, plural, round_half_up
from hpcrowd.environment.traces.trace import Trace, counted, gave_up, tally

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.requests import Requests
    from hpcrowd.environment.traces.formats.common.site_columns import Runs


Floats = NDArray[np.float64]

#: Which jobs of a trace are measured.
Which = Literal["completed", "all"]

#: Most components of a mixture. The thesis leaves the number to BIC alone, but BIC keeps falling
#: with more components, because recorded times pile up on single values (unconfirmed; about 20 come
#: close to its Table 3.5).
MOST_COMPONENTS = 20

#: s; rounding of times.
RESOLUTION_S = 1.0

#: Status of a job that completed, in the Standard Workload Format.
COMPLETED = 1


@dataclass(frozen=True)
class Settings:
    """Scales for measuring a workload.

    Attributes
    ----------
    time_scale_s
        s; T, the interval in which arrivals are counted (Minh 2012, Table 3.2: 900 s).
    bag_gap_s
        s; Delta, the longest time between two jobs of a bag (section 3.4: 100 s).
    session_gap_s
        s; the longest time between two submissions of a session (Zakay and Feitelson 2012: 1 h).
    resolution_s
        s; rounding of times.
    components
        Most components of the mixture that classifies run times.
    """

    time_scale_s: float = 900
    bag_gap_s: float = 100
    session_gap_s: float = ARRIVAL_THRESHOLD
    resolution_s: float = RESOLUTION_S
    components: int = MOST_COMPONENTS

    def __post_init__(self) -> None:
        for name in vars(self):
            if not 0 < getattr(self, name) < float("inf"):
                raise QuantityError(f"{name} {getattr(self, name)}: must be positive")


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs in the order of submission, ties by job number.

    Attributes
    ----------
    name
        Printed name.
    submit
        s since the origin, shape (jobs,).
    run_time
        s, at least 0.
    processors
        Requested, else allocated; at least 1.
    allocated
        Allocated, else requested; at least 1.
    requested_time, wait
        s; -1 unknown.
    user, group, executable, queue
        Numbers; -1 unknown.
    row
        Row of each job in ``trace``; -1 unknown.
    clock
        Local time.
    trace
        The trace, if it may say what jobs ask of a machine of nodes, or that they were run again;
        None otherwise.
    machine
        Processors of the machine; None if unknown.
    sha256
        Checksum of the trace; empty if there is none.
    left_out
        Number of jobs left out, by reason.
    work_of_all, span_of_all
        Processor-seconds of all jobs that ran, whatever their status, and s from the first to the
        last submission of one; None if they are these jobs.
    given_up
        Jobs that were cancelled in the queue, which are none of these; see :func:`given_up_in`.
    notes
        Further remarks on how the jobs were chosen.
    settings
        Scales for measuring.
    remarks
        Remarks on how it was measured; measuring adds to them.
    """

    name: str
    submit: Floats
    run_time: Floats
    processors: Int64s
    allocated: Int64s
    requested_time: Floats
    wait: Floats
    user: Int64s
    group: Int64s
    executable: Int64s
    queue: Int64s
    row: Int64s
    clock: Clock = field(default_factory=Clock)
    trace: Trace | None = field(default=None, repr=False)
    machine: int | None = None
    sha256: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    work_of_all: float | None = None
    span_of_all: float | None = None
    given_up: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    remarks: list[str] = field(default_factory=list, repr=False)
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.submit)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self):,} jobs>"

    def take(self, places: Int64s) -> Workload:
        """Return the jobs at ``places``, whose submissions must stay in order."""
        columns: dict[str, Any] = {
            name: values[places]
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(self, **columns, work_of_all=None, span_of_all=None, remarks=[], _known={})

    def earlier_runs(self) -> dict[int, Runs]:
        """Return the earlier runs of jobs that were run again, by their places.

        Raises
        ------
        TraceError
            If the trace has some that cannot be read.
        """
        if self.trace is None:
            return {}
        from hpcrowd.environment.traces.formats.common.site_columns import of_jobs

        return of_jobs(self.trace, self.row)

    def requests(self) -> Requests | None:
        """Return what the jobs ask of a machine of nodes; None if their trace does not say it.

        Raises
        ------
        TraceError
            If the trace has a request that cannot be read.
        """
        if self.trace is None:
            return None
        from hpcrowd.environment.traces.requests import requests_of

        return requests_of(self.trace, self.row)

    @classmethod
    def of(
        cls,
        submit: ArrayLike,
        run_time: ArrayLike,
        processors: ArrayLike = 1,
        *,
        name: str = "workload",
        number: ArrayLike | None = None,
        allocated: ArrayLike | None = None,
        requested_time: ArrayLike = UNKNOWN,
        wait: ArrayLike = UNKNOWN,
        user: ArrayLike = UNKNOWN,
        group: ArrayLike = UNKNOWN,
        executable: ArrayLike = UNKNOWN,
        queue: ArrayLike = UNKNOWN,
        row: ArrayLike = UNKNOWN,
        **others: Any,
    ) -> Workload:
        """Return the workload of arrays, in any order; a scalar applies to all jobs.

        Parameters
        ----------
        submit, run_time
            s, shape (jobs,).
        processors, allocated
            Requested and allocated; by default ``allocated`` is the same.
        number
            Job numbers, which decide ties; by default the order of the arrays.
        name, requested_time, wait, user, group, executable, queue, row, **others
            As the attributes.

        Raises
        ------
        QuantityError
            When the arrays differ in length, a time is not finite, a run time is negative, or
            a job has no processors.
        """
        given = {
            "submit": submit,
            "run_time": run_time,
            "processors": processors,
            "allocated": processors if allocated is None else allocated,
            "requested_time": requested_time,
            "wait": wait,
            "user": user,
            "group": group,
            "executable": executable,
            "queue": queue,
            "row": row,
        }
        size = len(np.atleast_1d(np.asarray(submit)))
        columns: dict[str, Any] = {}
        for column, values in given.items():
            kind = np.float64 if column in TIMES else np.int64
            found = np.asarray(values, kind)
            if found.shape not in ((), (size,)):
                raise QuantityError(
                    f"{column}: shape {found.shape} for {size} jobs; give one value per job"
                )
            columns[column] = np.broadcast_to(found, (size,))
        for column in TIMES:
            if not np.isfinite(columns[column]).all():
                raise QuantityError(f"{column}: a value is not finite; leave such jobs out")
        if (columns["run_time"] < 0).any():
            raise QuantityError("run_time: a value is negative; leave such jobs out")
        if size and min(columns["processors"].min(), columns["allocated"].min()) < 1:
            raise QuantityError("processors: a job has none; leave such jobs out")
        numbers = np.arange(size) if number is None else np.asarray(number)
        order = np.lexsort((numbers, columns["submit"]))
        return cls(
            name=name, **{column: values[order] for column, values in columns.items()}, **others
        )

    @classmethod
    def from_trace(
        cls,
        trace: Trace,
        which: Which = "completed",
        *,
        name: str | None = None,
        settings: Settings | None = None,
    ) -> Workload:
        """Return the workload that a trace recorded.

        Parameters
        ----------
        trace
            What was recorded.
        which
            ``completed``: jobs of status 1 (Minh 2012, section 3.1); if no job has that status, all
            jobs, with a note. ``all``: jobs of any status.
        name
            Printed name; by default the source of the trace.
        settings
            Scales for measuring.

        Raises
        ------
        TraceError
            When no job is left.
        """
        keep = np.ones(len(trace), bool)
        left_out: Counter[str] = Counter()
        notes = counted(trace.repaired, trace.dropped)

        def leave_out(reason: str, those: NDArray[np.bool_]) -> None:
            tally(left_out, reason, those & keep)
            keep[those] = False

        completed = trace["status"] == COMPLETED
        if which == "completed" and completed.any():
            leave_out("not completed (status other than 1)", ~completed)
        elif which == "completed":
            notes.append("no job has status 1: jobs of any status are measured")
        leave_out("no submit time", trace["submit"] < 0)
        leave_out("no run time", trace["run"] < 0)
        requested, allocated = trace["requested_processors"], trace["allocated_processors"]
        unknown = (requested <= 0) & (allocated <= 0)
        leave_out("no processors", unknown)
        if not keep.any():
            told = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
            raise TraceError(
                f"{trace.source}: no job to measure ({told or 'it has none'})"
                + ("; measure all with --jobs all" if which == "completed" else "")
            )
        size = trace.size
        if size.note:
            notes.append(size.note)
        given_up = given_up_in(trace)
        if given_up:
            notes.append(
                f"{plural(given_up['jobs'], 'job')} given up in the queue "
                f"({given_up['share_of_jobs']:.1%}), half of them within "
                f"{format_duration(given_up['wait_median_s'])}"
            )
        ran = (trace["submit"] >= 0) & (trace["run"] >= 0) & ~unknown
        size_of = np.where(requested > 0, requested, allocated)[ran]
        found = cls.of(
            trace["submit"][keep],
            trace["run"][keep],
            np.maximum(whole(np.where(requested > 0, requested, allocated)[keep]), 1),
            name=name or trace.source,
            number=trace["number"][keep],
            allocated=np.maximum(whole(np.where(allocated > 0, allocated, requested)[keep]), 1),
            requested_time=_or_unknown(trace["requested_time"][keep]),
            wait=_or_unknown(trace["wait"][keep]),
            **{name: trace[name][keep] for name in NUMBERS},
            row=np.flatnonzero(keep),
            clock=Clock.of(trace.header),
            trace=trace if trace.extra else None,
            machine=size.processors,
            sha256=trace.sha256,
            left_out=left_out,
            given_up=given_up,
            notes=tuple(notes),
            settings=settings or Settings(),
        )
        if len(found) == len(size_of):
            return found
        earlier = replace(found, row=np.flatnonzero(ran)).earlier_runs().values()
        work = float((trace["run"][ran].astype(np.float64) * size_of).sum())
        work += sum(one.processor_seconds for runs in earlier for one in runs)
        return replace(found, work_of_all=work, span_of_all=float(np.ptp(trace["submit"][ran])))

    @classmethod
    def from_run(
        cls,
        run: Run,
        which: Which = "completed",
        *,
        name: str | None = None,
        settings: Settings | None = None,
    ) -> Workload:
        """Return the workload submitted in a run; waits are the simulated ones.

        Parameters
        ----------
        run
            The run.
        which
            ``completed``: jobs that ran to their end; ``all``: also jobs that were stopped at
            their requested time.
        name, settings
            As for :meth:`from_trace`.

        Raises
        ------
        TraceError
            When no job is left.
        """
        jobs = run.jobs
        keep = jobs.over if which == "all" else jobs.state == State.COMPLETED
        left_out = Counter(
            {
                f"{state.name.lower()} in the run": count
                for state in State
                if (count := int(np.count_nonzero((jobs.state == state) & ~keep)))
            }
        )
        label = name or run.label
        if not keep.any():
            raise TraceError(f"{label}: no job of the run ended; nothing to measure")
        ran = jobs.take(np.flatnonzero(jobs.over))
        return cls.from_jobs(
            jobs.take(np.flatnonzero(keep)),
            name=label,
            clock=run.clock,
            machine=run.processors,
            left_out=left_out,
            work_of_all=float(((ran.end - ran.start).astype(np.float64) * ran.processors).sum()),
            span_of_all=float(np.ptp(ran.submit)),
            settings=settings or Settings(),
        )

    @classmethod
    def from_jobs(cls, jobs: JobTable, **others: Any) -> Workload:
        """Return the workload of simulated jobs; see :meth:`of` for ``others``."""
        return cls.of(
            jobs.submit,
            jobs.end - jobs.start,
            jobs.processors,
            number=jobs.number,
            requested_time=jobs.requested_time,
            wait=jobs.start - jobs.submit,
            **{name: getattr(jobs, name) for name in NUMBERS},
            **others,
        )


def given_up_in(trace: Trace) -> dict[str, Any]:
    """Return how many jobs of a trace were given up in the queue, and by whom, fit for JSON.

    Empty without any. Waits until they left are in s, processors are those asked for; by user, and
    by local hour of the submission, are numbers of jobs.
    """
    left = gave_up(trace)
    if not left.any():
        return {}
    waits, clock = trace["wait"][left].astype(np.int64), Clock.of(trace.header)
    asked = trace["requested_processors"][left]
    asked = np.where(asked > 0, asked, trace["allocated_processors"][left])
    hours = clock.walls(trace["submit"][left].astype(np.int64)) // HOUR % 24
    users, jobs = np.unique(trace["user"][left], return_counts=True)
    return {
        "jobs": len(waits),
        "share_of_jobs": len(waits) / len(trace),
        "processors_mean": float(asked[asked > 0].mean()) if (asked > 0).any() else None,
        "wait_mean_s": float(waits.mean()),
        "wait_median_s": float(np.median(waits)),
        "wait_p90_s": float(np.percentile(waits, 90)),
        "by_user": dict(zip(map(str, users.tolist()), jobs.tolist(), strict=True)),
        "by_hour": np.bincount(hours, minlength=24).tolist(),
    }


def once[**Which, Found](
    find: Callable[Concatenate[Workload, Which], Found],
) -> Callable[Concatenate[Workload, Which], Found]:
    """Cache a result per workload, including the reason if there is none."""

    @wraps(find)
    def kept(workload: Workload, /, *which: Which.args, **named: Which.kwargs) -> Found:
        place = (find.__module__, find.__qualname__, *which, *named.items())
        if place not in workload._known:
            try:
                workload._known[place] = find(workload, *which, **named)
            except UnavailableError as error:
                workload._known[place] = error
        found = workload._known[place]
        if isinstance(found, UnavailableError):
            raise UnavailableError(str(found))
        return found  # type: ignore[no-any-return]

    return kept


#: Columns that are times.
TIMES = ("submit", "run_time", "requested_time", "wait")

#: Columns that identify a job's user, group, executable and queue.
NUMBERS = ("user", "group", "executable", "queue")


def whole(values: ArrayLike) -> Int64s:
    """Return the whole numbers closest to values, rounded half up."""
    return np.asarray(round_half_up(np.asarray(values, np.float64)))


def _or_unknown(times: NDArray[Any]) -> NDArray[Any]:
    """Return times, with negative ones as unknown."""
    return np.where(times < 0, UNKNOWN, times)
