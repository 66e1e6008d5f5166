"""Recorded runs of a real Slurm: the plan that was submitted, and its outcome.

A run is a folder::

    plan.csv               what was submitted and when, one line a submission
    submitted.csv          when sbatch was called and answered, and the number that it returned
    clock.txt              the second at which the plan starts, and when the run was cut
    sacct-allstates.json.gz   every try of every job; else sacct.json.gz, or schedule.csv
    samples-*.txt.gz, slurmctld.log.gz    see samples.py

Times are seconds since the start of the plan. A job is a submission, or one task of its array, and
is named by :class:`Key`: the numbers of jobs differ between runs of a plan.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from hpcrowd.environment.errors import ParseError, QuantityError, TraceError
from hpcrowd.environment.files import json_of
from hpcrowd.environment.holds.rules import Condition
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, read_file

# ---- tries of jobs ---------------------------------------------------------------------------

#: How a try was started, by the flags of the accounting in JSON and in text.
STARTED = {
    "STARTED_ON_SCHEDULE": "main", "STARTED_ON_BACKFILL": "backfill", "STARTED_ON_SUBMIT": "submit",
    "SchedMain": "main", "SchedBackfill": "backfill", "SchedSubmit": "submit",
}  # fmt: skip

_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


class Key(NamedTuple):
    """A job of a plan."""

    plan: int  #: the submission
    task: int  #: the task of its array; -1 for a job of its own

    def __str__(self) -> str:
        return f"{self.plan}" if self.task == UNKNOWN else f"{self.plan}_{self.task}"


@dataclass(frozen=True)
class Try:
    """One try of a job."""

    key: Key  #: The job.
    trial: int  #: Place among its tries, from 0.
    #: s since the start of the plan; -1 if it did not happen, or is not known.
    submit: int
    eligible: int
    start: int
    end: int
    state: str  #: Slurm's word, such as ``COMPLETED``, ``PREEMPTED``.
    cores: int  #: Cores that it had, or asked for.
    nodes: tuple[str, ...]  #: Names of its nodes.
    how: str  #: ``main``, ``backfill`` or ``submit``: the pass that started it; empty if not known.
    job: int = UNKNOWN  #: Its number in that run; -1 if not known.

    @property
    def started(self) -> bool:
        """Whether it started."""
        return self.start != UNKNOWN


def by_job(tries: Iterable[Try]) -> dict[Key, tuple[Try, ...]]:
    """Return the tries of each job, in their order."""
    found: dict[Key, list[Try]] = {}
    for one in tries:
        found.setdefault(one.key, []).append(one)
    return {key: tuple(ones) for key, ones in found.items()}


def counted(tries: Iterable[Try]) -> tuple[Try, ...]:
    """Return tries by job and submission, with their numbers."""
    ordered = sorted(
        tries, key=lambda one: (one.key, one.submit, one.start if one.started else 2**62)
    )
    return tuple(
        replace(one, trial=trial)
        for ones in by_job(ordered).values()
        for trial, one in enumerate(ones)
    )


def tasks_in(text: str) -> tuple[int, ...]:
    """Return the tasks of an array: ``0-3,7,10-20:5``; an end such as ``%2`` is left out.

    Raises ValueError if it is something else.
    """
    found: list[int] = []
    for part in text.partition("%")[0].strip("[]").split(",") if text else ():
        match = _PART.fullmatch(part)
        if not match:
            raise ValueError(part)
        first = int(match[1])
        found += range(first, int(match[2] or first) + 1, int(match[3] or 1))
    return tuple(found)


def nodes_in(text: str) -> tuple[str, ...]:
    """Return the names of the nodes of a try."""
    return () if text in ("", "None assigned") else tuple(expand(text))


def read_jobs(path: Path) -> list[Mapping[str, Any]]:
    """Return the jobs in what ``sacct -D --json`` wrote (data parser 0.0.38, of Slurm 22.05).

    Raises TraceError if the file is something else.
    """
    try:
        jobs = json_of(read_file(path, LONGEST_DOCUMENT)[0].decode("utf-8", "replace"))["jobs"]
    except (ValueError, KeyError, TypeError):
        raise TraceError(f"{path}: not what sacct --json writes") from None
    if not isinstance(jobs, list) or not all(isinstance(one, dict) for one in jobs):
        raise TraceError(f"{path}: jobs: not a list of objects, as sacct --json writes")
    return jobs


def tries_of(
    jobs: Iterable[Mapping[str, Any]],
    plan_of: Callable[[Mapping[str, Any]], int | None],
    origin: int,
    path: Path,
) -> list[Try]:
    """Return the tries in the accounting, of the jobs of :func:`read_jobs`.

    ``plan_of`` returns the submission of a job, and None leaves it out; the origin is the Unix time
    of the start of the plan. Raises TraceError if a job lacks something.
    """

    def since(moment: int) -> int:
        return moment - origin if moment else UNKNOWN

    found = []
    for place, job in enumerate(jobs, 1):
        try:
            plan = plan_of(job)
            if plan is None:
                continue
            time, state = job["time"], job["state"]["current"]
            words = (STARTED[flag] for flag in job["flags"] if flag in STARTED)
            common = Try(
                key=Key(plan, UNKNOWN),
                trial=0,
                submit=since(time["submission"]),
                eligible=since(time["eligible"]),
                start=since(time["start"]),
                end=since(time["end"]),
                state=state if isinstance(state, str) else state[0],
                cores=_cores(job),
                nodes=nodes_in(job["nodes"]),
                how=next(words, ""),
                job=int(job["job_id"]),
            )
            found += [replace(common, key=Key(plan, task)) for task in _tasks(job["array"])]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise TraceError(f"{path}: job {place} of the list: {error!r}") from None
    return found


def _cores(job: Mapping[str, Any]) -> int:
    """Return the cores that a try had; those it asked for if it had none."""
    for one in job.get("tres", {}).get("allocated", ()):
        if one["type"] == "cpu":
            return int(one["count"])
    return int(job["required"]["CPUs"])


def _tasks(array: Mapping[str, Any]) -> list[int]:
    """Return the tasks of a row; tasks that wait together are a bit map, or a list, such as 1-2."""
    text = array.get("task")
    if not text:
        task = array.get("task_id")
        return [UNKNOWN if task is None else int(task)]
    if not text.startswith("0x"):
        return list(tasks_in(text))
    bits = int(text.partition("%")[0], 16)
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


# ---- runs of a plan --------------------------------------------------------------------------

#: Files with every try of every job, the best first.
ACCOUNTING = ("sacct-allstates.json", "sacct.json", "schedule.csv")

#: Columns that a plan must have.
COLUMNS = ("id", "t", "user", "account", "partition", "qos", "limit_min", "run")

_STARTS = re.compile(r"plan starts \(t=0\) at \S+(?: UTC)? = (\d+)")
_ENDED = re.compile(r"ended at \S+ t=(\d+)")
_FACTOR = re.compile(r"factor (\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Submission:
    """A line of a plan: what was asked for, when, and for how long it runs."""

    plan: int  #: Its number.
    #: s; when it was to be submitted, and when sbatch was called and answered; the last two are the
    #: first one if they are not known.
    planned: float
    before: float
    after: float
    #: Names; the partition may be several, separated by commas.
    user: str
    account: str
    partition: str
    qos: str
    #: As asked for, memory in MB on each node, GPUs on each node; -1 if it does not say.
    nodes: int
    tasks: int
    tasks_per_node: int
    cores_per_task: int
    memory: int
    gpus: int
    exclusive: bool  #: Whether whole nodes.
    features: str  #: As in ``skylake|milan``; empty for none.
    limit: int  #: s.
    array: tuple[int, ...]  #: The tasks; empty for a job of its own.
    throttle: int  #: Most tasks at a time; 0 for no limit.
    #: The dependency on another line of the plan; None and -1 without.
    condition: Condition | None
    parent: int
    begin: float  #: s; not before; -1 for at once.
    cancel: float  #: s; when it was taken back if it still waited; -1 for never.
    #: s that each task runs unless it is stopped; one number for a job of its own.
    run: tuple[float, ...]
    #: MB for each core, and GPUs of the whole job; -1 if it does not say.
    memory_per_core: int = UNKNOWN
    all_gpus: int = UNKNOWN
    fails: bool = False  #: Whether it ends without success though it is not stopped.

    @property
    def keys(self) -> list[Key]:
        """Its jobs."""
        return [Key(self.plan, task) for task in self.array or (UNKNOWN,)]

    def content(self) -> tuple[Any, ...]:
        """Return what makes two plans the same: all but when sbatch was really called."""
        return tuple(value for name, value in vars(self).items() if name not in ("before", "after"))


@dataclass(frozen=True)
class Record:
    """A recorded run."""

    folder: Path  #: Where it is.
    plan: tuple[Submission, ...]  #: What was submitted, in the order of the plan.
    tries: tuple[Try, ...]  #: The outcome, by job, then by try.
    origin: int  #: Unix time of the start of the plan.
    end: int  #: s; when the run was cut; -1 if not known.
    factor: float  #: How many times too fast the clock ran.
    numbers: Mapping[int, int]  #: The line of the plan by the number that sbatch returned.
    compared: frozenset[Key] = frozenset()  #: The jobs to compare; all if empty.

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def is_log(self) -> bool:
        """Whether the record itself is the plan."""
        return file_of(self.folder, "plan.csv") is None

    @property
    def checksum(self) -> str:
        """SHA-256 of the tries and the plan, as read."""
        return sha256(repr((self.plan, self.tries)).encode()).hexdigest()

    @cached_property
    def lines(self) -> dict[int, Submission]:
        """The lines of the plan by number."""
        return {line.plan: line for line in self.plan}

    @cached_property
    def jobs(self) -> dict[Key, tuple[Try, ...]]:
        """The tries of each job."""
        return by_job(self.tries)

    @cached_property
    def key_of(self) -> dict[int, Key]:
        """The job by its number; that of an array means its tasks that wait together."""
        found = {one.job: one.key for one in self.tries if one.job != UNKNOWN}
        return found | {number: Key(plan, UNKNOWN) for number, plan in self.numbers.items()}

    def path(self, name: str) -> Path | None:
        """Return a file of the run, plain or gzipped; None if there is none."""
        return file_of(self.folder, name)

    def same_plan(self, other: Record) -> bool:
        """Return whether another run had the same plan."""
        mine, theirs = (sorted(line.content() for line in one.plan) for one in (self, other))
        return mine == theirs


def load(folder: str | os.PathLike[str]) -> Record:
    """Return a recorded run; TraceError if something is missing or malformed."""
    place = Path(folder)
    if not place.is_dir():
        raise TraceError(f"{place}: not a folder; give the folder of a recorded run")
    origin, end, factor = _clock(place)
    called, numbers = _submitted(place)
    plan = _plan(place, called)
    known = {key for line in plan for key in line.keys}
    tries = _tries(place, origin, known)
    return Record(place, plan, tries, origin, end, factor, numbers)


def text_of(folder: Path, name: str) -> str:
    """Return the text of a file of a run, plain or gzipped; TraceError if missing or damaged."""
    path = file_of(folder, name)
    if path is None:
        raise TraceError(f"{folder / name}[.gz]: not found; a recorded run has this file")
    return read_file(path, LONGEST_DOCUMENT)[0].decode("utf-8", "replace")


def file_of(folder: Path, name: str) -> Path | None:
    """Return a file of a folder, plain or gzipped; None if there is none."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def _clock(folder: Path) -> tuple[int, int, float]:
    text = text_of(folder, "clock.txt")
    starts, ended, factor = (one.search(text) for one in (_STARTS, _ENDED, _FACTOR))
    if starts is None:
        raise TraceError(
            f"{folder / 'clock.txt'}: does not say when the plan starts; write for example "
            "'plan starts (t=0) at 2026-01-05T08:00:00 UTC = 1767600000'"
        )
    return (
        int(starts[1]),
        int(ended[1]) if ended else UNKNOWN,
        float(factor[1]) if factor else 1.0,
    )


def _submitted(folder: Path) -> tuple[dict[int, tuple[float, float]], dict[int, int]]:
    """Return when sbatch was called and answered by line of the plan, and lines by job number."""
    called, numbers = {}, {}
    for row in Rows(folder, "submitted.csv", ("id", "jobid", "before", "after", "command")):
        if row.text("command").startswith("sbatch") and row.text("jobid").isdecimal():
            called[row.whole("id")] = row.number("before"), row.number("after")
            numbers[row.whole("jobid")] = row.whole("id")
    return called, numbers


def _plan(folder: Path, called: Mapping[int, tuple[float, float]]) -> tuple[Submission, ...]:
    lines = [_submission(row, called) for row in Rows(folder, "plan.csv", COLUMNS)]
    if not lines:
        raise TraceError(f"{folder / 'plan.csv'}: contains no submissions")
    return tuple(lines)


def _submission(row: Row, called: Mapping[int, tuple[float, float]]) -> Submission:
    plan, planned = row.whole("id"), row.number("t")
    before, after = called.get(plan, (planned, planned))
    array = row.parsed("array", tasks_in, "tasks of an array, such as 0-7")
    run = row.parsed("run", _seconds, "seconds, one number for each task, with blanks between")
    if len(run) != max(len(array), 1):
        raise row.wrong("run", f"{len(run)} run times for {max(len(array), 1)} jobs")
    depends = bool(row.text("dep")) and bool(row.text("dep_on"))
    return Submission(
        plan=plan,
        planned=planned,
        before=before,
        after=after,
        user=row.text("user"),
        account=row.text("account"),
        partition=row.text("partition"),
        qos=row.text("qos"),
        nodes=row.whole("nodes"),
        tasks=row.whole("ntasks"),
        tasks_per_node=row.whole("ntasks_per_node"),
        cores_per_task=row.whole("cpus_per_task"),
        memory=row.whole("mem"),
        gpus=row.parsed("gres", _gpus, "GPUs on each node, such as gpu:2"),
        exclusive=bool(row.text("exclusive")),
        features=row.text("constraint"),
        limit=60 * row.whole("limit_min"),
        array=array,
        throttle=max(row.whole("throttle"), 0),
        condition=row.parsed("dep", Condition, "afterok, afterany or afternotok")
        if depends
        else None,
        parent=row.whole("dep_on") if depends else UNKNOWN,
        begin=row.number("begin"),
        cancel=row.number("cancel"),
        run=run,
    )


def _seconds(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())


def _gpus(text: str) -> int:
    if not text:
        return UNKNOWN
    name, *more = text.split(":")
    if name != "gpu":
        raise ValueError(text)
    return int(more[-1]) if more and more[-1].isdecimal() else 1


def _tries(folder: Path, origin: int, known: set[Key]) -> tuple[Try, ...]:
    for name in ACCOUNTING:
        path = file_of(folder, name)
        if path is not None:
            rows = (
                _of_schedule(folder)
                if name == "schedule.csv"
                else tries_of(read_jobs(path), _line_of, origin, path)
            )
            break
    else:
        names = ", ".join(f"{name}[.gz]" for name in ACCOUNTING)
        raise TraceError(f"{folder}: none of {names}; one of them says when the jobs started")
    rows = [row for row in rows if row.key in known]
    if not rows:
        raise TraceError(f"{folder / name}: no job of the plan; their names are p1, p2 and so on")
    return counted(rows)


def _line_of(job: Mapping[str, Any]) -> int | None:
    """Return the line of the plan of a job, which is in its name; None if it is of no plan."""
    match = re.fullmatch(r"p(\d+)", str(job["name"]))
    return int(match[1]) if match else None


def _of_schedule(folder: Path) -> list[Try]:
    """Return the tries in a table: plan_id, task, jobid, submit, eligible, start, end, state."""
    found = []
    needed = ("plan_id", "task", "submit", "start", "end", "state", "nodes")
    for row in Rows(folder, "schedule.csv", needed):
        words = [word for word in row.text("flags").split(",") if word in STARTED]
        tasks = row.parsed("task", tasks_in, "a task of an array, or several") or (UNKNOWN,)
        found += [
            Try(
                key=Key(row.whole("plan_id"), task),
                trial=0,
                submit=row.whole("submit"),
                eligible=row.whole("eligible"),
                start=row.whole("start"),
                end=row.whole("end"),
                state=row.text("state").partition(" ")[0],
                cores=row.whole("cpus"),
                nodes=row.parsed("nodes", nodes_in, "a host list"),
                how=STARTED[words[0]] if words else "",
                job=row.whole("jobid"),
            )
            for task in tasks
        ]
    return found


class Rows:
    """The rows of a table of a run, with the line of each for messages."""

    def __init__(self, folder: Path, name: str, needed: tuple[str, ...]) -> None:
        self.path = folder / name
        self.reader = csv.DictReader(StringIO(text_of(folder, name), newline=""))
        missing = [one for one in needed if one not in (self.reader.fieldnames or ())]
        if missing:
            raise TraceError(f"{self.path}: no column {', '.join(missing)}")

    def __iter__(self) -> Any:
        for cells in self.reader:
            yield Row(cells, self.path, self.reader.line_num)


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells by column, and where it is."""

    cells: Mapping[str, str | None]
    path: Path
    line: int

    def text(self, column: str) -> str:
        """Return a cell; empty if there is none."""
        return (self.cells.get(column) or "").strip()

    def wrong(self, column: str, rule: str) -> ParseError:
        """Return the error about a cell."""
        return ParseError(str(self.path), self.line, column, self.text(column), rule)

    def parsed[Value](self, column: str, parse: Callable[[str], Value], rule: str) -> Value:
        """Return what a function makes of a cell."""
        try:
            return parse(self.text(column))
        except (ValueError, QuantityError):
            raise self.wrong(column, rule) from None

    def number(self, column: str) -> float:
        """Return a number; -1 for an empty cell."""
        return self.parsed(column, lambda text: float(text or UNKNOWN), "not a number")

    def whole(self, column: str) -> int:
        """Return a whole number; -1 for an empty cell."""
        return self.parsed(column, lambda text: int(text or UNKNOWN), "not a whole number")
