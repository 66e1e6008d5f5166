"""Accounting logs of batch systems: records of finished jobs as a trace, and a trace as records.

Managers write a record when a run of a job ends. :class:`Jobs` puts the runs of a job together,
and :func:`trace_of` makes the trace. Written times are whole seconds since 1970; what a format
cannot hold is found by reading the text again (:func:`count_losses`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import MOST_HELD, Header, most_in_use
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.formats.common.base import (
    BEFORE_START,
    BEFORE_SUBMIT,
    Format,
    FormatOptions,
    Losses,
    OddValues,
)
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NAMED,
    is_number,
    job_texts,
    numbered_fields,
    plain,
    worded,
)
from hpcrowd.environment.traces.formats.common.site_columns import (
    RUNS,
    SAID_BY_STATUS,
    EarlierRun,
    in_order,
    text_of,
)
from hpcrowd.environment.traces.headers import LATEST, made_header, parse_zone, unix_origin
from hpcrowd.environment.traces.trace import FIELDS, LINES, Trace, all_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Why a record is not a job of its own.
RAN_AGAIN = "run again by the manager: an earlier run without start or end left out"
TWICE = f"{LINES}the same record twice"

#: Repairs of run times, and by how much two of them may differ, s: servers poll what runs, and
#: start and end are noted where the job is, or where it was.
BACKWARD = "ended before it started: the measured run time taken"
OTHER_WALLTIME = "measured run time is another than that from start to end, which is taken"
TOLERANCE = 60

#: Most processors that are accepted.
MOST = 2**31

#: The reason why a field differs after reading back, unless a format has another one.
REASONS = {
    "number": "the job id gives another number",
    "submit": "not a whole second from 1970 to 2199",
    "wait": "not whole seconds, or no record holds it without the other times",
    "run": "not whole seconds, or no record holds it without the other times",
    "allocated_processors": "not a whole number of processors",
    "average_cpu": "finer than a microsecond in total, or unknown like 0",
    "memory": "finer than a byte, or unknown like 0",
    "requested_processors": "not a whole number of processors",
    "requested_time": "not whole seconds, or no limit like 0",
    "requested_memory": "no record holds it",
    "status": "no record holds it",
    "preceding": "no record holds it",
    "think_time": "no record holds it",
    **dict.fromkeys(NAMED, "no record holds the word, or it means unknown"),
    "partition": "no record holds it",
    **dict.fromkeys(("missing", "changed", "header"), "no record holds it"),
    "comments": "no record holds them",
}

_WHOLE = re.compile(r"-?[0-9]{1,15}")


def whole(text: str) -> int:
    """Return a whole number; ``ValueError`` with the rule if the text is something else."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text)


def decimal(text: str) -> float:
    """Return a number; ``ValueError`` with the rule if the text is something else."""
    if not text.isascii() or not is_number(text.encode()):
        raise ValueError("not a number")
    return float(text)


def processors(text: str) -> int:
    """Return a number of processors, -1 for 0 or less, which mean unknown."""
    count = whole(text)
    if count > MOST:
        raise ValueError(f"more than {MOST:,} processors")
    return count if count > 0 else -1


def unix_time(text: str) -> int | None:
    """Return a time in s since 1970; None for 0 or less, which mean unknown."""
    seconds = whole(text)
    if seconds > LATEST:
        raise ValueError("not a Unix time from 1970 to 2199")
    return seconds if seconds > 0 else None


class Values(NamedTuple):
    """Where values are read from: the log with what is odd in it, and the line."""

    odd: OddValues
    line: int

    def read(self, name: str, text: str, convert: Callable[[str], Any], unknown: Any = None) -> Any:
        """Return a value of a field, see :meth:`OddValues.read`."""
        return self.odd.read(self.line, name, text, convert, unknown)

    def needed(self, name: str, text: str, convert: Callable[[str], Any]) -> Any:
        """Return a value without which a record is not a job, see :meth:`OddValues.needed`."""
        return self.odd.needed(self.line, name, text, convert)


def run_time(
    start: float | None, end: float | None, walltime: float | None, repaired: Counter[str]
) -> float | None:
    """Return the run time of a job, s; None if unknown.

    It is that from start to end, as processors are held so long. The run time that the manager
    measured counts where that is not known, or negative.
    """
    if start is None or end is None:
        return walltime
    if end < start:
        repaired[BEFORE_START if walltime is None else BACKWARD] += 1
        return walltime
    if walltime is not None and abs(end - start - walltime) > TOLERANCE:
        repaired[OTHER_WALLTIME] += 1
    return end - start


@dataclass
class Job:
    """A job, or a run of a job, as an accounting log has it."""

    identifier: str  #: its number in the manager
    #: Times in s since 1970; None if unknown.
    submit: float | None = None
    start: float | None = None
    end: float | None = None
    fields: dict[str, float] = field(default_factory=dict)  #: known values of other :data:`FIELDS`
    words: dict[str, str] = field(default_factory=dict)  #: names by field of :data:`NAMED`
    extra: dict[str, str] = field(default_factory=dict)  #: texts by column of :attr:`Trace.extra`
    runs_again: bool = False  #: whether the manager runs the job again after this record
    #: Its earlier runs, with times in s since 1970.
    runs: list[EarlierRun] = field(default_factory=list)
    walltime: float | None = None  #: its run time as the manager measured it, s; None if unknown

    @property
    def processors(self) -> float:
        """The processors over which CPU time and memory are averaged; at least 1."""
        held = self.fields.get("allocated_processors", -1)
        return max(held if held > 0 else self.fields.get("requested_processors", -1), 1)

    def average(self, name: str, total: float) -> None:
        """Set a field that is per processor from the total of the job."""
        self.fields[name] = total / self.processors

    def times(self, repaired: Counter[str]) -> None:
        """Set submission (s since 1970), wait and run time from the times that are known.

        A job that never started waited until it ended.
        """
        if self.submit is not None:
            self.fields["submit"] = self.submit
            until = self.end if self.start is None else self.start
            if until is not None:
                self.fields["wait"] = round(max(until - self.submit, 0), 3)
                repaired[BEFORE_SUBMIT] += until < self.submit
        if self.submit is not None and self.runs:
            self.extra[RUNS] = text_of(in_order(self.runs, round(self.submit)))
        if (run := run_time(self.start, self.end, self.walltime, repaired)) is not None:
            self.fields["run"] = round(run, 3)


class Jobs:
    """The jobs of a log, collected from its records.

    Attributes
    ----------
    odd
        What could not be read of it.
    repaired, dropped
        As of a :class:`Trace`.
    """

    def __init__(self, odd: OddValues) -> None:
        self.odd = odd
        self.found: list[Job] = []
        self.repaired: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self._latest: dict[Hashable, int] = {}

    def add(self, key: Hashable, job: Job) -> None:
        """Add a record; ``key`` is what runs of one job have in common.

        Of a job that the manager ran again the last run counts, from the first submission, and the
        earlier runs are kept in a column of their own. Otherwise a job with the same key is a new
        one, as managers use numbers again.
        """
        place = self._latest.get(key)
        earlier = None if place is None else self.found[place]
        if earlier == job:
            self.dropped[TWICE] += 1
        elif earlier is not None and place is not None and earlier.runs_again:
            job.runs = earlier.runs
            if earlier.start is None or earlier.end is None:
                self.repaired[RAN_AGAIN] += 1
            else:
                start, end = round(earlier.start), round(earlier.end)
                held = max(int(earlier.fields.get("allocated_processors", 0)), 0)
                state = re.sub(r"\W+", "_", earlier.extra.get("final_state", ""), flags=re.ASCII)
                again = end if job.submit is None else round(job.submit)
                job.runs.append(EarlierRun(start, end, again, held, state))
            job.submit = job.submit if earlier.submit is None else earlier.submit
            job.extra["restarts"] = str(int(earlier.extra.get("restarts", 0)) + 1)
            self.found[place] = job
        else:
            self._latest[key] = len(self.found)
            self.found.append(job)

    def latest(self, key: Hashable) -> Job | None:
        """Return the last job with a key."""
        place = self._latest.get(key)
        return None if place is None else self.found[place]

    def trace(self, options: FormatOptions, log: str, not_read: tuple[str, ...]) -> Trace:
        """Return the trace of the jobs, in the order of their submissions.

        ``log`` is the kind of the log, for a note in the header, which also has the zone. Raises
        TraceError if there are no jobs, or a field is odd throughout.
        """
        if not self.found:
            raise TraceError(f"{self.odd.source}: contains no jobs that have ended{self.odd.why}")
        for job in self.found:
            job.times(self.repaired)
            said = SAID_BY_STATUS.get(int(job.fields.get("status", -1)), "")
            job.extra["final_state"] = job.extra.get("final_state") or said
        jobs = sorted(self.found, key=lambda job: job.fields.get("submit", -1))
        trace = trace_of(jobs, log, parse_zone(options.zone))
        self.odd.count_into(self.repaired, self.dropped)
        trace.source, trace.not_read = self.odd.source, not_read
        trace.repaired, trace.dropped = +self.repaired, self.dropped
        return trace


def trace_of(
    jobs: Sequence[Job], log: str, zone: tzinfo | None, lines: list[bytes] | None = None,
    notes: Sequence[str] = (),
) -> Trace:  # fmt: skip
    """Return the trace of jobs, whose fields have submissions in s since 1970, in their order.

    ``lines`` are the header if the log has one, which gives the origin. Else one is made, which
    names the kind of ``log``, with further notes.
    """
    columns: dict[str, Any] = {
        name: np.array([job.fields.get(name, -1) for job in jobs], np.float64) for name in FIELDS
    }
    submit = columns["submit"]
    dated = submit != -1
    origin = int(submit[dated].min(initial=np.inf)) if dated.any() else 0
    if lines is not None:
        origin = unix_origin(Header(lines))
    columns["submit"] = np.where(dated, np.round(submit - origin, 3), -1)
    columns["number"] = job_numbers([job.identifier for job in jobs], columns["submit"])
    words, names = numbered_fields(
        {name: [job.words.get(name, "") for job in jobs] for name in NAMED}
    )
    columns |= words
    extra = {"job_id": np.array([job.identifier for job in jobs], np.object_)}
    for name in dict.fromkeys(name for job in jobs for name, text in job.extra.items() if text):
        extra[name] = np.array([job.extra.get(name, "") for job in jobs], np.object_)
    header = Header(lines or [])
    if lines is None:
        header = _header(columns, origin if dated.any() else None, names, zone, log, notes)
    return Trace(header, all_columns(columns, len(jobs)), names=names, extra=extra)


def job_numbers(identifiers: Sequence[str], submit: NDArray[Any]) -> NDArray[np.float64]:
    """Return job numbers, shape (jobs,).

    Those of the manager, as in ``123`` and ``123.server``, if they are distinct. If not, as with
    job arrays or several servers, jobs are numbered from 1 in the order of submission.
    """
    found = [re.match(r"([0-9]{1,15})(?:\.|$)", text) for text in identifiers]
    numbers = [int(match[1]) for match in found if match]
    if len(set(numbers)) == len(identifiers):
        return np.array(numbers, np.float64)
    ranks = np.empty(len(identifiers))
    ranks[np.argsort(submit, kind="stable")] = np.arange(1, len(identifiers) + 1)
    return ranks


def _header(
    columns: dict[str, Any],
    origin: int | None,
    names: dict[str, dict[int, str]],
    zone: tzinfo | None,
    log: str,
    notes: Sequence[str],
) -> Header:
    """Return a header for a log without one: when it begins, and the size of the machine."""
    start = columns["submit"] + np.maximum(columns["wait"], 0)
    end = start + np.maximum(columns["run"], 0)
    size = columns["allocated_processors"]
    size = np.where(size > 0, size, columns["requested_processors"])
    ran = (columns["submit"] >= 0) & (columns["wait"] >= 0) & (columns["run"] > 0) & (size > 0)
    most = most_in_use(*(one[ran].astype(np.int64) for one in (start, end, size)))
    lines = [f"from {log}", *notes]
    if most:
        lines.append(MOST_HELD)
    return made_header(
        jobs=len(size),
        notes=lines,
        unix_start=origin,
        last=int(end.max()) + (origin or 0),
        zone=zone,
        processors=most or None,
        names=names,
    )


@dataclass(frozen=True)
class Written:
    """A job of a trace in the numbers of accounting logs."""

    identifier: str  #: its number in the manager
    #: As of :class:`Job`, on one line each; empty if unknown.
    words: dict[str, str]
    extra: dict[str, str]
    #: s since 1970; 0 if unknown.
    submit: int
    start: int
    #: s; ``limit`` is the requested time. Like all that follows -1 if unknown.
    wait: int
    run: int
    limit: int
    #: Processors.
    allocated: int
    requested: int
    #: CPU time, s, and memory, bytes, of the whole job; requested memory, bytes per processor.
    cpu: float
    memory: int
    requested_memory: int
    status: int  #: as in the trace

    @property
    def end(self) -> int:
        """The end in s since 1970, 0 if unknown."""
        return self.start + self.run if self.start and self.run >= 0 else 0


def written_jobs(trace: Trace, identifier: re.Pattern[str]) -> Iterator[Written]:
    """Yield the jobs of a trace as records can hold them; identifiers have the manager's form."""

    def rounded(name: str, least: int = 0, most: float = LATEST) -> Int64s:
        values = np.floor(trace[name].astype(np.float64))
        return np.where((values >= least) & (values <= most), values, -1).astype(np.int64)

    submit = submissions(trace)
    wait, run = rounded("wait"), rounded("run")
    wait = np.where((submit > 0) & (submit + wait <= LATEST), wait, -1)
    start = np.where(wait >= 0, submit + wait, 0)
    run = np.where(start + run <= LATEST, run, -1)
    allocated = rounded("allocated_processors", 1, MOST)
    requested = rounded("requested_processors", 1, MOST)
    size = np.maximum(np.where(allocated > 0, allocated, requested), 1)

    def total(name: str, scale: float, of: NDArray[Any] | int = size) -> Any:
        values = np.round(trace[name].astype(np.float64) * of * scale)
        return np.where((trace[name] >= 0) & (values <= LARGEST_EXACT), values, -1)

    cpu = total("average_cpu", 1e6)
    columns = {
        "submit": submit, "start": start, "wait": wait, "run": run,
        "limit": rounded("requested_time"), "allocated": allocated, "requested": requested,
        "cpu": np.where(cpu >= 0, cpu / 1e6, -1), "memory": total("memory", 1024).astype(np.int64),
        "requested_memory": total("requested_memory", 1024, 1).astype(np.int64),
        "status": trace["status"].astype(np.int64),
    }  # fmt: skip
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    words = {name: list(map(plain, worded(trace, name, ""))) for name in NAMED}
    extra = {name: list(map(plain, texts)) for name, texts in trace.extra.items()}
    for place, (one, row) in enumerate(zip(_identifiers(trace, identifier), rows, strict=True)):
        named = {name: texts[place] for name, texts in words.items()}
        yield Written(one, named, {name: texts[place] for name, texts in extra.items()}, *row)


def submissions(trace: Trace) -> Int64s:
    """Return the submissions in whole s since 1970, shape (jobs,); 0 if unknown."""
    origin = unix_origin(trace.header)
    origin = origin if 0 <= origin <= LATEST else 0
    submit = trace["submit"].astype(np.float64)
    seconds = np.floor(submit) + origin
    return np.where((submit != -1) & (seconds > 0) & (seconds <= LATEST), seconds, 0).astype(
        np.int64
    )


def _identifiers(trace: Trace, form: re.Pattern[str]) -> list[str]:
    """Return the job numbers of the manager: those in the trace, else its numbers, else places."""
    found = [str(one) for one in trace.extra.get("job_id", ())]
    if found and len(set(found)) == len(found) and all(map(form.fullmatch, found)):
        return found
    return job_texts(trace, 10**15 - 1)


def generated(
    kind: Format,
    trace: Trace,
    lost: Losses,
    options: FormatOptions,
    record: Callable[[Written], str],
    identifier: re.Pattern[str],
    reasons: Mapping[str, str],
) -> bytes:
    """Return the text of a log, and count what differs when it is read again.

    ``record`` returns the record of a job, and ``identifier`` is the form of the manager's job
    numbers. ``reasons`` say why fields differ, where it is not one of :data:`REASONS`.
    """
    data = b"".join(
        record(job).encode("utf-8", "replace") for job in written_jobs(trace, identifier)
    )
    if lost.asked and len(trace):
        again = kind.parse(data, trace.source, options)
        order = np.argsort(submissions(trace), kind="stable")
        lost.read_back(trace, again, {**REASONS, **reasons}, order)
    return data
