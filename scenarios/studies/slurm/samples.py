"""What Slurm's commands said during a recorded run, and what its controller logged.

The files ``samples-*.txt.gz`` hold what ``squeue -r``, ``sprio -l`` and ``sshare -a -l`` printed at
each moment, behind a line such as ``=== 2026-01-05T08:15:00 t=900 sprio -l``. A missing file
gives no samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.studies.slurm.records import Record, text_of
from hpcrowd.scenarios.studies.slurm.tries import Key, tasks_in

_MOMENT = re.compile(r"=== \S+ t=(\d+)")
_JOB = r"JobId=(\d+)(?:_(\d+))?(?:\(\d+\))?"

#: Lines of the controller's log, and what they say.
LINES = {
    "main": re.compile(rf"sched: Allocate {_JOB}"),
    "backfill": re.compile(rf"sched/backfill: _start_job: Started {_JOB}"),
    "preempted": re.compile(rf"preempted {_JOB} has been \w+ to reclaim resources for {_JOB}"),
    "timeout": re.compile(rf"Time limit exhausted for {_JOB}"),
    "over": re.compile(rf"_job_complete: {_JOB} done"),
}

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
    priority: int
    reason: str
    expected: int
    nodes: str
    submit: int
    partition: str


@dataclass(frozen=True)
class Priority:
    """A job in a sample of ``sprio``: priority and its parts, such as ``AGE``, in points.

    Tasks of an array that wait together have one row, with the task -1.
    """

    moment: int
    key: Key
    user: str
    total: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Share:
    """A user or an account in a sample of ``sshare``; ``factor`` is nan for accounts."""

    moment: int
    account: str
    user: str
    usage: float
    normal_usage: float
    effective_usage: float
    factor: float


@dataclass(frozen=True)
class Event:
    """A line of the controller's log: a name of :data:`LINES`, s, the job, and for whom."""

    what: str
    time: float
    key: Key
    by: Key | None = None


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
                        int(cells["PRIORITY"]),
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
                here |= dict.fromkeys(_keys(record, cells["JOBID"]), start)
    return found


def read_priorities(record: Record) -> list[Priority]:
    """Return the jobs in the samples of ``sprio -l``."""
    found = []
    for moment, lines in _samples(record, "sprio"):
        # PARTITION is there twice: the name, and its part of the priority.
        names = lines[0].split()[4:]
        for line in lines[1:]:
            number, _, user, total, *values = line.split()
            key = _key(record, number)
            if key is not None:
                parts = dict(zip(names, map(float, values), strict=False))
                found.append(Priority(moment, key, user, float(total), parts))
    return found


def read_shares(record: Record) -> list[Share]:
    """Return the users and accounts in the samples of ``sshare -a -l``."""
    found = []
    for moment, lines in _samples(record, "sshare"):
        if len(lines) < 2:
            continue
        edges = [0, *(match.end() + 1 for match in re.finditer(r"-+", lines[1]))]
        names = [lines[0][begin:end].strip() for begin, end in pairwise(edges)]
        for line in lines[2:]:
            texts = [line[begin:end].strip() for begin, end in pairwise(edges)]
            cells = dict(zip(names, texts, strict=True))

            def number(name: str, cells: Mapping[str, str] = cells) -> float:
                return float(cells.get(name) or "nan")

            found.append(
                Share(
                    moment,
                    cells["Account"],
                    cells["User"],
                    number("RawUsage"),
                    number("NormUsage"),
                    number("EffectvUsage"),
                    number("FairShare"),
                )
            )
    return found


def read_log(record: Record) -> list[Event]:
    """Return what the controller's log says about jobs of the plan; nothing without a log."""
    if record.path("slurmctld.log") is None:
        return []
    found = []
    for line in text_of(record.folder, "slurmctld.log").splitlines():
        stamp, bracket, rest = line.partition("] ")
        for what, pattern in LINES.items() if bracket else ():
            if match := pattern.match(rest):
                time = datetime.fromisoformat(f"{stamp[1:]}+00:00").timestamp() - record.origin
                jobs = [
                    _key(record, number + (f"_{task}" if task else ""))
                    for number, task in zip(*[iter(match.groups())] * 2, strict=True)
                ]
                if jobs[0] is not None:
                    found.append(Event(what, time, jobs[0], jobs[1] if len(jobs) > 1 else None))
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


def _keys(record: Record, text: str) -> list[Key]:
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
