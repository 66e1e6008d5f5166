"""A trace: the recorded jobs, with a header that describes the machine.

A :class:`Trace` holds the 18 fields of the Standard Workload Format in columns, exactly as
recorded. :func:`jobs_from_trace` turns it into the :class:`~environment.jobs.JobTable` that is
simulated, and counts everything it repairs or drops on the way, by reason.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.errors import (
    QuantityError,
    TraceError,
    check_choice,
    echo,
    no_attribute,
)
from hpcrowd.environment.header import MEASURED, Header, MachineSize, machine_size
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.limits.numbers import LARGEST_TIME, LEAST_SPEED, MOST_SPEED, check_within
from hpcrowd.environment.quantities import notebook_table, plural, round_half_up
from hpcrowd.environment.traces.requested_times import RequestedTimes
from hpcrowd.environment.traces.unfinished import check_unfinished, lengths, not_ended

if TYPE_CHECKING:
    import pandas as pd

#: The 18 fields of a job, in the order of the Standard Workload Format: meaning and unit.
MEANING = {
    "number": "job number",
    "submit": "s since the origin; submission",
    "wait": "s; from submission to start",
    "run": "s; from start to end",
    "allocated_processors": "processors that the job held",
    "average_cpu": "s; processor time used, per processor",
    "memory": "kB per processor; memory used",
    "requested_processors": "processors that the user asked for",
    "requested_time": "s; run time that the user asked for",
    "requested_memory": "kB per processor; memory that the user asked for",
    "status": "1 completed, 0 failed or killed, 5 cancelled; 2 to 4 parts of a job",
    "user": "user number",
    "group": "group number",
    "executable": "executable (application) number",
    "queue": "queue number",
    "partition": "partition number",
    "preceding": "number of the job that this one waited for",
    "think_time": "s; from the end of the preceding job to this submission",
}

#: Names of the fields.
FIELDS = tuple(MEANING)


#: In a comment of a header: no job has a wait, through no fault of the log.
UNSCHEDULED = "the jobs have not been scheduled"


#: Reasons that count lines of the log, not jobs, begin like this.
LINES = "lines: "


def counted(repaired: Mapping[str, int], dropped: Mapping[str, int]) -> list[str]:
    """Return a line for each reason why jobs or lines were dropped, then why they were repaired."""
    return [
        f"{plural(count, 'line' if reason.startswith(LINES) else 'job')} {what}: "
        + reason.removeprefix(LINES)
        for what, reasons in (("dropped", dropped), ("repaired", repaired))
        for reason, count in reasons.items()
    ]


def jobs_in(reasons: Mapping[str, int]) -> int:
    """Return how many jobs were dropped or repaired for these reasons; lines are no jobs."""
    return sum(count for reason, count in reasons.items() if not reason.startswith(LINES))


def not_read(columns: Iterable[str]) -> list[str]:
    """Return a line that names the columns of a log that are not read; none without any."""
    named = ", ".join(columns)
    return [f"columns not read: {named}"] if named else []


def assumed(size: str = "", clock: str = "") -> list[str]:
    """Return a line for each assumption about what the log does not give.

    These are the notes on the size of the machine, see
    :class:`~hpcrowd.environment.header.MachineSize`, and on start and time zone,
    :attr:`hpcrowd.environment.clock.Clock.note`; empty for what it gives.
    """
    return [
        *([f"{size}; set it with --processors"] if size else []),
        *([clock] if clock else []),
    ]


#: A log may be in milliseconds if it has as many run times, all of whole 1,000, and submissions
#: over as many days (our choices).
ENOUGH_RUNS, MANY_DAYS = 5, 2000


@dataclass
class Trace:
    """A recorded or simulated log.

    Attributes
    ----------
    header
        The header.
    columns
        One array per field of :data:`FIELDS`, shape (jobs,), each in the smallest type that holds
        its values exactly; -1 is unknown.
    comments
        Comment lines among the jobs: (the job that follows, line).
    newline
        Line end of the job lines.
    source
        The origin, for messages.
    sha256
        Checksum of the file it was read from, empty otherwise.
    names
        Names of the numbers in the columns, if the log has them, by field and number:
        ``names["user"][3]`` is the name of user 3.
    extra
        Columns of other formats beyond the fields, one array of text each, shape (jobs,); empty
        text means unknown.
    repaired, dropped
        Number of jobs that were repaired or dropped while reading the log, by reason.
    not_read
        Names of columns of the log that are not read.
    read_as
        What columns were taken for by their names, in a line; empty if it is known.
    """

    header: Header
    columns: dict[str, NDArray[Any]]
    comments: list[tuple[int, bytes]] = field(default_factory=list)
    newline: bytes = b"\n"
    source: str = "trace"
    sha256: str = ""
    names: dict[str, dict[int, str]] = field(default_factory=dict)
    extra: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    not_read: tuple[str, ...] = ()
    read_as: str = ""
    _size: tuple[list[bytes], list[NDArray[Any]], MachineSize] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.columns["number"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the columns, which IPython and notebooks offer in brackets."""
        return list(self.columns)

    if not TYPE_CHECKING:  # which would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            """Say in one line how to get what people try."""
            if name.startswith("_"):
                raise AttributeError(name)
            ways = {one: f"it is trace[{one!r}], {MEANING[one]}" for one in FIELDS}
            raise no_attribute(self, name, ways)

    def __repr__(self) -> str:
        return f"<Trace {self.source}: {len(self):,} jobs>"

    def _repr_html_(self) -> str:
        """Return a table of what is in the trace, for notebooks."""
        submit = self["submit"][self["submit"] >= 0]
        rows: list[tuple[str, object]] = [
            ("jobs", f"{len(self):,}"),
            ("users", f"{len(np.unique(self['user'])):,}"),
            ("processors", f"{self.size.processors:,}"),
            ("days of submissions", f"{np.ptp(submit) / DAY if len(submit) else 0:,.1f}"),
            ("begins", Clock.of(self.header).local(0).isoformat(" ")),
            ("repaired", f"{jobs_in(self.repaired):,}"),
            ("dropped", f"{jobs_in(self.dropped):,}"),
        ]
        return notebook_table(repr(self), rows)

    def to_frame(self) -> pd.DataFrame:
        """Return the jobs as recorded in a pandas frame, a column for each field; -1 is unknown.

        Names of users, groups and others are in columns such as ``user_name``, if the log has them;
        columns of other formats follow. As in the frame of a run there are ``processors``
        (allocated, else requested), ``run_time``, ``start`` and ``end`` as well.
        """
        import pandas as pd

        frame = pd.DataFrame({name: self[name] for name in FIELDS}, copy=True)
        held, wait, run = frame["allocated_processors"], frame["wait"], frame["run"]
        start = frame["submit"] + wait.astype(np.float64 if wait.dtype.kind == "f" else np.int64)
        start = start.where((wait >= 0) & (frame["submit"] >= 0), UNKNOWN)
        frame["processors"] = held.where(held > 0, frame["requested_processors"])
        frame["run_time"], frame["start"] = run, start
        frame["end"] = (start + run).where((start >= 0) & (run >= 0), UNKNOWN)
        for name, words in self.names.items():
            frame[f"{name}_name"] = frame[name].map(words)
        return frame.assign(**self.extra)

    @property
    def processors(self) -> int:
        """Processors of the machine: from the header, else the peak of the recorded use.

        :attr:`size` has what the number is worth.

        Raises
        ------
        TraceError
            If neither is known.
        """
        count = self.size.processors
        if count is None:
            raise TraceError(
                f"{self.source}: no MaxProcs in the header and no job with processors; "
                "give their number with --processors"
            )
        return count

    @property
    def size(self) -> MachineSize:
        """The size of the machine, and where it comes from; kept until something is replaced."""
        lines, columns = list(self.header.lines), [self.columns[name] for name in MEASURED]
        if self._size is not None:
            before, held, found = self._size
            if before == lines and all(map(operator.is_, held, columns)):
                return found
        found = machine_size(self.header, self.columns)
        self._size = lines, columns, found
        return found

    @property
    def doubts(self) -> list[str]:
        """What was guessed about the log, and that its times may be milliseconds, in lines."""
        found = [self.read_as] if self.read_as else []
        run = self["run"][self["run"] > 0].astype(np.int64)
        if len(run) < ENOUGH_RUNS or np.any(run % 1000):
            return found
        days = float(np.ptp(self["submit"])) / DAY
        if days < MANY_DAYS:
            return found
        return [
            *found,
            f"all {plural(len(run), 'run time')} are multiples of 1,000 and submissions span "
            f"{days:,.0f} days: are times in milliseconds? Divide them by 1,000, or read a table "
            'with --map and unit = "ms"',
        ]

    @property
    def notes(self) -> list[str]:
        """What reading the log dropped, repaired, left out or assumed, in words, one line each.

        :attr:`Conversions.notes` adds what was dropped and repaired to simulate the jobs.
        """
        return [
            *counted(self.repaired, self.dropped),
            *not_read(self.not_read),
            *self.doubts,
            *assumed(self.size.note, Clock.of(self.header).note),
        ]


def as_trace(given: Any) -> Trace:
    """Return a trace; of a run, which has ``to_trace``, its own.

    Raises TraceError when it is something else.
    """
    if isinstance(given, Trace):
        return given
    if hasattr(given, "to_trace"):
        return given.to_trace()  # type: ignore[no-any-return]
    what = echo(given) if isinstance(given, str | int | None) else f"a {type(given).__name__}"
    raise TraceError(f"{what}: neither a trace nor a run; hc.read_trace(path) reads a trace")


def smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``values`` in the smallest integer type that holds them exactly, else unchanged."""
    if len(values) == 0:
        return values.astype(np.int64)
    low, high = values.min(), values.max()
    for kind in (np.int8, np.int16, np.int32, np.int64):
        info = np.iinfo(kind)
        if info.min <= low and high < info.max + 1:  # which as a float is no larger
            whole = values.astype(kind)
            return whole if np.array_equal(whole, values) else values
    return values


def tally(counts: Counter[str], reason: str, which: NDArray[np.bool_]) -> None:
    """Count the jobs of ``which``, shape (jobs,), for a reason; zero adds no entry."""
    if count := int(np.count_nonzero(which)):
        counts[reason] += count


def all_columns(told: Mapping[str, NDArray[Any] | None], jobs: int) -> dict[str, NDArray[Any]]:
    """Return the columns of all fields, each in the smallest type; -1 for missing ones."""
    columns = {}
    for name in FIELDS:
        values = told.get(name)
        columns[name] = np.full(jobs, UNKNOWN, np.int8) if values is None else smallest(values)
    return columns


#: Status of a job that was cancelled, in the Standard Workload Format.
CANCELLED = 5

#: What is done with jobs that were given up in the queue.
GIVEN_UP = ("recorded", "drop")


def gave_up(trace: Trace) -> NDArray[np.bool_]:
    """Return which jobs were cancelled while they waited, after a known wait; shape (jobs,).

    They have status 5, and a run time of 0 s or none (fields 11 and 4). Their wait (field 3) ends
    when they leave the queue.
    """
    left: NDArray[np.bool_] = (trace["status"] == CANCELLED) & (trace["run"] <= 0)
    return left & (trace["wait"] >= 0) & (trace["submit"] >= 0)


@dataclass(frozen=True)
class Conversion:
    """How a trace is converted to jobs to simulate.

    Attributes
    ----------
    job_processors
        ``requested`` (field 8, else 5) or ``allocated`` (field 5, else 8).
    requested
        ``given`` (field 9, else the recorded run time); ``at-least:2x``: the larger of that and
        twice the recorded run time; ``missing:7d``: 7 days where it is missing, ``missing:queue``:
        the longest one in the queue of the job; ``tsafrir:18h``: missing ones are drawn from the
        :class:`RequestModel` with this longest request, or with ``tsafrir:fitted`` from a model
        fitted to the other jobs; with ``+all`` those of all jobs are drawn.
    speed
        Speed of the nodes relative to the recorded ones; run times are divided by it (Madon et al.
        2024, section 4.1), requested times are not.
    seed
        Seed of random numbers; the same as that of the run.
    given_up
        For jobs that their users gave up in the queue, see :func:`gave_up`.
        ``recorded`` keeps them, with a run time of 0 s at the end of their wait. ``drop`` leaves
        out those without a run time; where the log has a run time of 0 s, they are jobs as others.
    unfinished
        How long jobs run that had not ended when the log was written, as
        :func:`~hpcrowd.environment.traces.unfinished.lengths` has it; ``drop`` leaves them out.
    """

    job_processors: Literal["requested", "allocated"] = "requested"
    requested: str = "given"
    speed: float = 1.0
    seed: int = 0
    given_up: Literal["drop", "recorded"] = "drop"
    unfinished: str = "drop"

    def __post_init__(self) -> None:
        check_choice("job-processors", self.job_processors, ("requested", "allocated"))
        check_choice("given-up", self.given_up, GIVEN_UP)
        check_unfinished(self.unfinished)
        check_within("speed", self.speed, LEAST_SPEED, MOST_SPEED)
        RequestedTimes.parse(self.requested)

    def run_time(self, recorded: Int64s) -> Int64s:
        """Return the run times that jobs need at the speed of the nodes, s."""
        if self.speed == 1:
            return recorded
        return np.asarray(round_half_up(recorded / self.speed))


@dataclass
class Conversions:
    """The outcome of :func:`jobs_from_trace`.

    Attributes
    ----------
    jobs
        The jobs to simulate.
    source_row
        Index of each job in the trace, shape (jobs,).
    repaired, dropped
        Number of jobs that were repaired or dropped, by reason, including while reading the trace.
    """

    jobs: JobTable
    source_row: Int64s
    repaired: Counter[str]
    dropped: Counter[str]

    @property
    def notes(self) -> list[str]:
        """What was dropped and repaired, in words, one line for each reason."""
        return counted(self.repaired, self.dropped)


def jobs_from_trace(
    trace: Trace,
    conversion: Conversion | None = None,
    *,
    strict: bool = False,
    runnable: bool = True,
) -> Conversions:
    """Turn a trace into the table of jobs to simulate.

    Parameters
    ----------
    trace
        The trace.
    conversion
        How to convert it; by default requested processors and times are taken as given.
    strict
        Make any repair or drop an error, also one that happened while reading the trace.
    runnable
        False keeps jobs without processors: they cannot run, but a user did submit them, so they
        count when sessions are detected.

    Raises
    ------
    TraceError
        If no job is left, or if ``strict`` and a job had to be repaired or dropped.
    """
    conversion = conversion or Conversion()
    repaired = Counter(trace.repaired)
    dropped = Counter(trace.dropped)

    first, second = "requested_processors", "allocated_processors"
    if conversion.job_processors == "allocated":
        first, second = second, first
    exact = np.where(trace[first] > 0, trace[first], trace[second])
    processors = np.asarray(round_half_up(exact.astype(np.float64)))

    keep = np.ones(len(trace), bool)

    def drop(reason: str, which: NDArray[np.bool_]) -> None:
        tally(dropped, reason, which & keep)
        keep[which] = False

    repair = partial(tally, repaired)

    kept = gave_up(trace) & (conversion.given_up == "recorded")
    going = not_ended(trace.columns, trace.extra)
    if conversion.unfinished == "drop":
        drop("had not ended", going)
    else:
        expected = np.full(len(trace), UNKNOWN)
        expected[going] = lengths(trace.columns, going, conversion.unfinished)
        drop("had not ended, no limit to run to", going & (expected < 0))
    kept |= going
    drop("no submit time", trace["submit"] < 0)
    drop("no run time (never ran)", (trace["run"] < 0) & ~kept)
    unasked = kept & ~going & (processors <= 0)
    processors[unasked] = 1
    repair("given up, no processors: 1 assumed", unasked)
    if runnable:
        drop("no processors", processors <= 0)

    rows = np.flatnonzero(keep)
    numbers = trace["number"][rows]
    rows = rows[np.argsort(numbers, kind="stable")]  # ties in time go by job number
    same = len(rows) - len(np.unique(numbers))
    if same:
        repaired["job number used before: order of the lines kept"] = same

    def take(name: str) -> NDArray[Any]:
        return trace[name][rows]

    def whole(name: str) -> Int64s:
        values = take(name)
        if values.dtype.kind == "f":
            repair(f"{name} with a fraction: rounded half up", values != np.floor(values))
            return np.asarray(round_half_up(values))
        return values.astype(np.int64)

    jobs = JobTable(len(rows))
    jobs.names = trace.names
    jobs.number[:] = whole("number")
    jobs.user[:] = whole("user")
    jobs.group[:] = whole("group")
    jobs.executable[:] = whole("executable")
    jobs.queue[:] = whole("queue")
    jobs.processors[:] = processors[rows]
    repair("processors with a fraction: rounded half up", ((processors != exact) & ~unasked)[rows])
    repair(f"no {first.replace('_', ' ')}: {second.replace('_', ' ')} used", take(first) <= 0)
    repair("no user: all such jobs assigned to one user", jobs.user < 0)

    submit, run, wait = whole("submit"), np.maximum(whole("run"), 0), whole("wait")
    going = going[rows]
    if going.any():
        run[going] = expected[rows][going]
        repair("had not ended: an end assumed, see --unfinished", going)
        wait[going] = np.maximum(wait[going], 0)
    if not any(UNSCHEDULED.encode() in line for line in trace.header.lines):
        repair("no wait time: taken as 0", wait < 0)
    wait = np.maximum(wait, 0)
    jobs.recorded_submit[:] = submit
    jobs.recorded_start[:] = submit + wait
    jobs.recorded_end[:] = submit + wait + run
    jobs.run_time[:] = conversion.run_time(run)

    requested = whole("requested_time")
    rule = RequestedTimes.parse(conversion.requested)
    try:
        jobs.requested_time[:] = rule.times(
            requested, run, conversion.seed, repair, jobs.queue, trace.names
        )
    except QuantityError as error:
        raise TraceError(f"{trace.source}: {error}") from None
    jobs.requested_memory[:] = np.floor(take("requested_memory"))

    _check_sums(jobs, trace.source)

    if strict and (repaired or dropped):
        what = counted(repaired, dropped)[0]
        raise TraceError(f"{trace.source}: {what}; leave out --strict to accept that")
    if not len(jobs):
        raise TraceError(
            f"{trace.source}: none of its {plural(len(trace), 'job')} can be simulated"
        )
    return Conversions(jobs, rows.astype(np.int64), repaired, dropped)


def _check_sums(jobs: JobTable, source: str) -> None:
    """Check that no sum of times or of processor-seconds overflows.

    Raises
    ------
    TraceError
        Names the job with the largest share.
    """
    if not len(jobs):
        return
    longest = np.maximum(jobs.run_time, jobs.requested_time).astype(np.float64)
    for what, values in (
        ("processor-seconds", longest * np.maximum(jobs.processors, 1)),
        ("seconds of run times and requested times", longest),
    ):
        if float(values.sum()) + float(jobs.recorded_end.max()) > LARGEST_TIME:
            row = int(np.argmax(values))
            raise TraceError(
                f"{source}: its jobs have {values.sum():.2g} {what}, too many to add; the largest "
                f"is job {jobs.number[row]} with {jobs.processors[row]:,} processors for "
                f"{longest[row]:,.0f} s: correct or remove it"
            )


def take_jobs(trace: Trace, rows: Int64s | NDArray[np.bool_]) -> Trace:
    """Return a trace of some jobs, unchanged and in their order.

    Header and line ends stay; a comment among the jobs stays before the next job that is kept.
    Names that no job is left of go. ``rows`` are indices in ascending order, or a mask of shape
    (jobs,).
    """
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    columns = {name: smallest(values[rows]) for name, values in trace.columns.items()}
    extra = {name: values[rows] for name, values in trace.extra.items()}
    comments = [(int(np.searchsorted(rows, job)), line) for job, line in trace.comments]
    names = {}
    for name, words in trace.names.items():
        left = set(columns[name].tolist())
        names[name] = {number: word for number, word in words.items() if number in left}
    return replace(trace, columns=columns, extra=extra, comments=comments, names=names, sha256="")


def cut_references(whole: Trace, part: Trace) -> tuple[Trace, int]:
    """Return ``part`` without references to jobs that are only in ``whole``, and their number.

    If the preceding job (field 17) was removed, the field becomes -1, and so does the think time
    since its end (field 18). References that were already dangling in ``whole`` stay.
    """
    preceding = part["preceding"]
    lost = np.isin(preceding, whole["number"]) & ~np.isin(preceding, part["number"])
    lost &= preceding != UNKNOWN
    if not lost.any():
        return part, 0
    changed: dict[str, NDArray[Any]] = {
        name: smallest(np.where(lost, UNKNOWN, part[name])) for name in ("preceding", "think_time")
    }
    return replace(part, columns=part.columns | changed), int(np.count_nonzero(lost))
