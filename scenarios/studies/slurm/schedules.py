"""Schedules of a plan, with what was said while they were made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.studies.slurm.records import (
    Key,
    Record,
    Try,
    by_job,
    tasks_in,
    text_of,
)

# ---- samples and logs ------------------------------------------------------------------------
# The files ``samples-*.txt.gz`` hold what ``squeue -r``, ``sprio -l`` and ``sshare -a -l`` printed
# at each moment, behind a line such as ``=== 2026-01-05T08:15:00 t=900 sprio -l``. A missing file
# gives no samples.

_MOMENT = re.compile(r"=== \S+ t=(\d+)")
_JOB = r"JobId=(\d+)(?:_(\d+))?(?:\(\d+\))?"

#: A line of the controller's log about a preempted job, and for whom.
_PREEMPTED = re.compile(rf"preempted {_JOB} has been \w+ to reclaim resources for {_JOB}")

#: The sentence that squeue prints for jobs that wait for nodes which are kept for jobs in
#: partitions of a higher tier, and a word for it.
KEPT, KEPT_WORD = "Nodes required for job are DOWN, DRAINED or reserved", "NodesKept"


@dataclass(frozen=True)
class Queued:
    """A job in a sample of ``squeue``; ``expected`` is its start there, s, -1 for none.

    Of a job that runs, ``expected`` is when it started. ``submit`` is its submission, s; that of a
    requeued job is when it was requeued.
    """

    moment: int
    key: Key
    state: str
    reason: str
    expected: int
    nodes: str
    submit: int
    partition: str


def reason_word(text: str) -> str:
    """Return the reason in a sample as one word, without the nodes that it names.

    The sentence about nodes for partitions of a higher tier is :data:`KEPT_WORD`.
    """
    return KEPT_WORD if text.startswith(KEPT) else text.partition(",")[0].strip()


def read_queue(record: Record) -> list[Queued]:
    """Return the jobs in the samples of ``squeue -r``, one row for each task of an array."""
    found = []
    for moment, lines in _samples(record, "squeue"):
        for cells in _cells(lines):
            key = _key(record, cells["JOBID"])
            if key is not None:
                found.append(
                    Queued(
                        moment,
                        key,
                        cells["STATE"],
                        reason_word(cells["REASON"]),
                        _second(cells["START_TIME"], record.origin),
                        cells["NODELIST"],
                        _second(cells["SUBMIT_TIME"], record.origin),
                        cells["PARTITION"],
                    )
                )
    return found


def read_expected(record: Record) -> dict[int, dict[Key, int]]:
    """Return when Slurm expected waiting jobs to start, by moment, from ``squeue --start``; s.

    Tasks of an array that wait together have the same start there. Jobs without one are left out.
    """
    found: dict[int, dict[Key, int]] = {}
    for moment, lines in _samples(record, "squeue-start"):
        here = found.setdefault(moment, {})
        for cells in _cells(lines):
            start = _second(cells["START_TIME"], record.origin)
            if start != UNKNOWN:
                here |= dict.fromkeys(keys_in(record, cells["JOBID"]), start)
    return found


def read_priorities(record: Record) -> dict[int, dict[Key, Mapping[str, float]]]:
    """Return priorities and their parts, such as ``AGE``, in points, by moment, from ``sprio -l``.

    The priority itself is :data:`TOTAL`. Tasks of an array that wait together have one row, with
    the task -1.
    """
    found: dict[int, dict[Key, Mapping[str, float]]] = {}
    for moment, lines in _samples(record, "sprio"):
        # PARTITION is there twice: the name, and its part of the priority.
        names = lines[0].split()[4:]
        for line in lines[1:]:
            number, _, _, total, *values = line.split()
            key = _key(record, number)
            if key is not None:
                parts = dict(zip(names, map(float, values), strict=False))
                found.setdefault(moment, {})[key] = {TOTAL: float(total), **parts}
    return found


def read_shares(record: Record) -> dict[int, dict[tuple[str, str], float]]:
    """Return the fair-share factor of each user, by account and user, from ``sshare -a -l``."""
    found: dict[int, dict[tuple[str, str], float]] = {}
    for moment, lines in _samples(record, "sshare"):
        if len(lines) < 2:
            continue
        edges = [0, *(match.end() + 1 for match in re.finditer(r"-+", lines[1]))]
        names = [lines[0][begin:end].strip() for begin, end in pairwise(edges)]
        for line in lines[2:]:
            texts = [line[begin:end].strip() for begin, end in pairwise(edges)]
            cells = dict(zip(names, texts, strict=True))
            if cells["User"]:
                factor = float(cells.get("FairShare") or "nan")
                found.setdefault(moment, {})[cells["Account"], cells["User"]] = factor
    return found


def _samples(record: Record, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the moments of a file of samples, s, and the lines of each."""
    if record.path(f"samples-{name}.txt") is None:
        return
    moment, lines = UNKNOWN, list[str]()
    for line in text_of(record.folder, f"samples-{name}.txt").splitlines():
        if match := _MOMENT.match(line):
            if lines:
                yield moment, lines
            moment, lines = int(match[1]), []
        elif line.strip():
            lines.append(line)
    if lines:
        yield moment, lines


def _cells(lines: list[str]) -> Iterator[dict[str, str]]:
    """Yield the cells of each line below the heading."""
    names = lines[0].split("|")
    for line in lines[1:]:
        yield dict(zip(names, line.split("|"), strict=False))


def _key(record: Record, text: str) -> Key | None:
    """Return the job of ``17`` or ``17_3``; None if it is not of the plan."""
    number, _, task = text.partition("_")
    if not number.isdecimal():
        raise TraceError(f"{record.folder}: sample of job {text!r}: not a number of a job")
    if not task:
        return record.key_of.get(int(number))
    plan = record.numbers.get(int(number))
    return None if plan is None else Key(plan, int(task))


def keys_in(record: Record, text: str) -> list[Key]:
    """Return the jobs of ``17``, ``17_3`` or ``17_[3-7%2]``; none if it is not of the plan."""
    number, _, tasks = text.partition("_")
    if not tasks.startswith("["):
        key = _key(record, text)
        return [] if key is None else [key]
    try:
        plan, places = record.numbers.get(int(number)), tasks_in(tasks)
    except ValueError:
        raise TraceError(f"{record.folder}: sample of job {text!r}: not tasks of a job") from None
    return [] if plan is None else [Key(plan, task) for task in places]


def _second(text: str, origin: int) -> int:
    """Return a time of a sample in s since the start of the plan; -1 for none."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return UNKNOWN
    return int(moment.timestamp()) - origin


# ---- schedules -------------------------------------------------------------------------------

#: s by which samples of two runs may be apart and still be of the same moment.
APART = 60

#: Name of the priority itself among its parts.
TOTAL = "PRIORITY"

type At[Value] = Mapping[int, Mapping[Key, Value]]


@dataclass(frozen=True)
class Schedule:
    """The outcome of a plan; times are s since its start."""

    name: str  #: What tables call it.
    tries: tuple[Try, ...]  #: Every try of every job, by job, then by try.
    #: By moment: the reason, as one word, of each job that waited then.
    reasons: At[str] = field(default_factory=dict)
    #: By moment: the parts of each waiting job's priority in points, named as in ``sprio``, and
    #: :data:`TOTAL`. Tasks of an array that wait together may have the task -1.
    priorities: At[Mapping[str, float]] = field(default_factory=dict)
    #: By moment: the fair-share factor of each user, by account and user.
    shares: Mapping[int, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    #: For whom a job was preempted, by job and number of the try.
    preempted_for: Mapping[tuple[Key, int], Key] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> dict[Key, tuple[Try, ...]]:
        """The tries of each job."""
        return by_job(self.tries)

    @cached_property
    def first(self) -> dict[Key, Try]:
        """The first try of each job that started."""
        return {key: ones[0] for key, ones in self.jobs.items() if ones[0].started}


class Simulated(NamedTuple):
    """A simulation of a plan."""

    schedule: Schedule  #: Its outcome.
    #: Priorities and fair-share factors at the record's samples if all jobs start and end as
    #: recorded; None if that was not simulated.
    on_record: Schedule | None = None


def schedule_of(record: Record) -> Schedule:
    """Return a recorded run as a schedule."""
    reasons: dict[int, dict[Key, str]] = {}
    for queued in read_queue(record):
        if queued.state == "PENDING":
            reasons.setdefault(queued.moment, {})[queued.key] = queued.reason
    priorities, shares = read_priorities(record), read_shares(record)
    return Schedule(record.name, record.tries, reasons, priorities, shares, _preempted(record))


def _preempted(record: Record) -> dict[tuple[Key, int], Key]:
    """Return for whom tries were preempted: the last try that had started by then.

    The controller's log says so; nothing without one.
    """
    found: dict[tuple[Key, int], Key] = {}
    if record.path("slurmctld.log") is None:
        return found
    for line in text_of(record.folder, "slurmctld.log").splitlines():
        stamp, bracket, rest = line.partition("] ")
        match = _PREEMPTED.match(rest) if bracket else None
        if match is None:
            continue
        time = datetime.fromisoformat(f"{stamp[1:]}+00:00").timestamp() - record.origin
        key, by = (
            _key(record, number + (f"_{task}" if task else ""))
            for number, task in (match.groups()[:2], match.groups()[2:])
        )
        if key is not None and by is not None:
            begun = [
                one.trial for one in record.jobs.get(key, ()) if one.started and one.start <= time
            ]
            if begun:
                found[key, begun[-1]] = by
    return found


def nearest(moments: Mapping[int, object], moment: int) -> int:
    """Return the moment of a sample that is nearest; -1 if none is near enough."""
    found = min(moments, key=lambda one: abs(one - moment), default=UNKNOWN)
    return found if abs(found - moment) <= APART else UNKNOWN
