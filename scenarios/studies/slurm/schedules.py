"""Schedules of a plan, with what was said while they were made, and the plan as jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Parent, Rules
from hpcrowd.environment.jobs import UNKNOWN, Float64s, Int64s, JobTable
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.schedulers.slurm.timers import ARRIVED
from hpcrowd.scenarios.studies.slurm.records import (
    Key,
    Record,
    Submission,
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
                here |= dict.fromkeys(_keys(record, cells["JOBID"]), start)
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


# ---- a plan as jobs ---------------------------------------------------------------------------
# What a simulation of a recorded plan needs; nothing of it is a start that was recorded. One row
# per job, that is, per task of an array, in the order of the submissions.


@dataclass(frozen=True)
class Workload:
    """A plan as jobs; all arrays have shape (jobs,)."""

    #: User, group (the account), partition as ``queue``, cores, submission, limit as
    #: ``requested_time``, and ``run_time``: s that the job takes if it is not stopped at its limit.
    #: Times are s since the start of the plan.
    jobs: JobTable
    requests: Requests  #: What the jobs ask of the machine.
    rules: Rules  #: Dependencies, throttles of arrays, and earliest starts.
    keys: tuple[Key, ...]  #: The job in the plan.
    submitted: Float64s  #: s since the start of the plan, with fractions.
    #: s since the start of the plan, when the job is taken back if it still waits; -1 for never.
    cancel: Float64s

    @cached_property
    def row_of(self) -> dict[Key, int]:
        """The row of each job."""
        return {key: row for row, key in enumerate(self.keys)}


def workload_of(record: Record, arrived: float = ARRIVED) -> Workload:
    """Return the plan of a recorded run as jobs, submitted when they were in that run.

    ``arrived`` is the share of the time that sbatch took until the controller had a job.
    """
    lines = sorted(record.plan, key=lambda line: (arrival(line, arrived), line.plan))
    keys = [key for line in lines for key in line.keys]
    line_of = [line for line in lines for _ in line.keys]
    row_of = {key: row for row, key in enumerate(keys)}
    submitted = np.array([arrival(line, arrived) for line in line_of])
    return Workload(
        jobs=_jobs(line_of, keys, submitted),
        requests=_requests(line_of, keys),
        rules=_rules(lines, row_of, submitted),
        keys=tuple(keys),
        submitted=submitted,
        cancel=np.array([line.cancel for line in line_of]),
    )


def arrival(line: Submission, arrived: float = ARRIVED) -> float:
    """Return when the controller had a submission, s since the start of the plan."""
    return line.before + arrived * (line.after - line.before)


def _jobs(lines: list[Submission], keys: list[Key], submitted: Float64s) -> JobTable:
    names = {
        field: sorted({getattr(line, source) for line in lines})
        for field, source in (("user", "user"), ("group", "account"), ("queue", "partition"))
    }

    def numbers(field: str, values: list[str]) -> Int64s:
        return np.array([names[field].index(value) for value in values], np.int64)

    jobs = JobTable()
    second = np.floor(submitted).astype(np.int64)  # as in Slurm's records
    jobs.append(
        len(keys),
        user=numbers("user", [line.user for line in lines]),
        group=numbers("group", [line.account for line in lines]),
        queue=numbers("queue", [line.partition for line in lines]),
        processors=[cores_of(line) for line in lines],
        run_time=[
            round(line.run[line.array.index(key.task) if line.array else 0])
            for line, key in zip(lines, keys, strict=True)
        ],
        requested_time=[line.limit for line in lines],
        recorded_submit=second,
    )
    jobs.names = {field: dict(enumerate(known)) for field, known in names.items()}
    return jobs


def cores_of(line: Submission) -> int:
    """Return the cores that a job asks for, without those that whole nodes add."""
    tasks = line.tasks
    if tasks == UNKNOWN:
        tasks = max(line.nodes, 1) * max(line.tasks_per_node, 1)
    return tasks * max(line.cores_per_task, 1)


def _requests(lines: list[Submission], keys: list[Key]) -> Requests:
    requests = Requests(len(keys))
    for row, (line, key) in enumerate(zip(lines, keys, strict=True)):
        asked: dict[Ask, int | str] = {
            Ask.NODES: line.nodes,
            Ask.MAX_NODES: line.nodes,  # sbatch --nodes=N is least and most
            Ask.TASKS: line.tasks,
            Ask.TASKS_PER_NODE: line.tasks_per_node,
            Ask.CORES_PER_TASK: line.cores_per_task,
            Ask.MEMORY_PER_NODE: line.memory,
            Ask.MEMORY_PER_CORE: line.memory_per_core,
            Ask.GPUS: line.all_gpus,
            Ask.GPUS_PER_NODE: line.gpus,
            Ask.EXCLUSIVE: 1 if line.exclusive else UNKNOWN,
            Ask.FEATURES: line.features,
            Ask.PARTITIONS: line.partition,
            Ask.QOS: line.qos,
            Ask.ACCOUNT: line.account,
            Ask.BEGIN: UNKNOWN if line.begin == UNKNOWN else int(line.begin),
        }
        if line.array:
            asked |= {Ask.ARRAY: line.plan, Ask.TASK: key.task}
            asked[Ask.THROTTLE] = line.throttle or UNKNOWN
        for ask, value in asked.items():
            requests.set(row, ask, value)
    return requests


def _rules(lines: list[Submission], row_of: Mapping[Key, int], submitted: Float64s) -> Rules:
    known = {line.plan: line for line in lines}
    delay, failed = np.zeros(len(submitted), np.int64), np.zeros(len(submitted), bool)
    parents: dict[int, tuple[Parent, ...]] = {}
    array: dict[int, int] = {}
    throttle: dict[int, int] = {}
    for line in lines:
        rows = [row_of[key] for key in line.keys]
        failed[rows] = line.fails
        if line.begin != UNKNOWN:
            delay[rows] = max(int(line.begin) - int(submitted[rows[0]]), 0)
        if line.condition is not None and line.parent in known:
            others = [row_of[key] for key in known[line.parent].keys]
            found = tuple(Parent(other, line.condition) for other in others)
            parents |= dict.fromkeys(rows, found)
        if line.throttle:
            array |= dict.fromkeys(rows, rows[0])
            throttle[rows[0]] = line.throttle
    return Rules(delay=delay, failed=failed, parents=parents, array=array, throttle=throttle)
