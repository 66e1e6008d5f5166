"""Rows of Slurm's accounting from records of other forms, and what the rows of steps say of jobs.

Such records are objects of JSON, and the log of Slurm's plugin jobcomp/filetxt: a line of
``KEY=VALUE`` for each job that has ended ::

    JobId=501 UserId=ann(1001) GroupId=grp(100) Name=two words JobState=COMPLETED Partition=p
        TimeLimit=60 StartTime=2024-01-31T08:00:10 EndTime=2024-01-31T08:10:10 NodeList=n1
        NodeCnt=1 ProcCnt=4 ... SubmitTime=2024-01-31T08:00:00 ... ExitCode=0:0   (in one line)

It has neither steps nor what jobs used. Names may have blanks.

In the accounting, steps (``77.batch``, ``77.extern``, ``77.0``, ``77.interactive``) have the memory
that their job used, and its energy if the row of the job lacks that. MaxRSS is that of the largest
task of a step, so a step used at most MaxRSS of each of its NTasks; a job used that of its largest
step. Where NTasks is unknown one task counts: the job used at least that. Steps without a row of
their job are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.formats.common.base import OddValues
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT
from hpcrowd.environment.traces.formats.slurm.table import Rows, read_rows

#: The columns of the rows that records become.
COLUMNS = (
    "JobID", "User", "Account", "JobName", "Partition", "QOS", "Cluster", "Submit", "Eligible",
    "Start", "End", "ElapsedRaw", "Suspended", "State", "AllocCPUS", "ReqCPUS", "NNodes",
    "TimelimitRaw", "ReqMem", "MaxRSS", "NTasks", "TotalCPU", "AllocTRES", "ReqTRES", "NodeList",
    "Reservation", "Constraints", "ExitCode", "Priority", "SubmitLine", "ConsumedEnergyRaw",
)  # fmt: skip

#: Between cells, and what stands for it and for line ends inside a cell.
DELIMITER, INSIDE, BROKEN = "\x1f", "\x01", "\x02"

#: Smallest Unix time that means unknown.
NEVER = 2**32 - 2

BACK = {INSIDE.encode(): DELIMITER.encode(), BROKEN.encode(): b"\n"}

_SAFE = str.maketrans({DELIMITER: INSIDE, "\n": BROKEN, "\r": " ", "\0": ""})


def part_of(record: Any, *way: str) -> Any:
    """Return what is at the end of a way through objects; None if a part is missing."""
    for name in way:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def number_in(value: Any) -> int | None:
    """Return a whole number, plain or in an object; None if it is not set."""
    if isinstance(value, dict):
        known = value.get("set", True) and not value.get("infinite")
        value = value.get("number") if known else None
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:19])
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if abs(value) < 2**62 else None


def count_in(value: Any) -> str:
    """Return the text of a whole number that is not negative; empty if it is not set."""
    number = number_in(value)
    return "" if number is None or number < 0 else str(number)


def time_in(value: Any) -> str:
    """Return the text of a Unix time; ``Unknown`` if it is not set."""
    number = number_in(value)
    return str(number) if number is not None and 0 < number < NEVER else "Unknown"


def word_in(value: Any) -> str:
    """Return a text that a cell can hold; empty if it is none."""
    text = value if isinstance(value, str) else ""
    return text.translate(_SAFE)


def rows_of(records: Iterable[Mapping[str, str]], odd: OddValues) -> Rows:
    """Return records with all of :data:`COLUMNS`, in that order, as rows.

    Raises TraceError if there are none, or a value is malformed and that is refused.
    """
    lines = [DELIMITER.join(COLUMNS)]
    lines += [DELIMITER.join(record.values()) for record in records]
    if len(lines) == 1:
        raise TraceError(f"{odd.source}: contains no jobs")
    text = "\n".join(lines).encode("utf-8", "replace") + b"\n"
    del lines
    try:
        return read_rows(text, odd).restored(BACK)
    except ParseError as error:
        raise odd.error(error) from None


#: Columns of sacct and the keys of their values.
KEYS = {
    "Account": "Account", "Partition": "Partition", "QOS": "QOS", "Cluster": "Cluster",
    "Submit": "SubmitTime", "Eligible": "EligibleTime", "Start": "StartTime", "End": "EndTime",
    "State": "JobState", "AllocCPUS": "ProcCnt", "ReqCPUS": "ProcCnt", "NNodes": "NodeCnt",
    "TimelimitRaw": "TimeLimit", "AllocTRES": "Tres", "NodeList": "NodeList",
    "Reservation": "ReservationName", "ExitCode": "ExitCode",
}  # fmt: skip

_BEGIN = re.compile(rb"\s*JobId=\d+ UserId=\S+ GroupId=\S+ Name=")
_LINE = re.compile(r"JobId=(\S+) UserId=(\S*?)(?:\(\d+\))? GroupId=\S* Name=(.*?) (JobState=.*)")
_PAIR = re.compile(r"(\w+)=(.*?)(?= \w+=|$)")
MEMORY = re.compile(r"(?:^|,)mem=([^,]+)")


def is_completions(head: bytes) -> bool:
    """Return whether a text is a log of jobcomp/filetxt."""
    return _BEGIN.match(head) is not None


def completions_in(data: bytes, odd: OddValues) -> Iterator[dict[str, str]]:
    """Yield the rows of ``sacct`` that the lines of a log become."""
    for line, raw in enumerate(data.splitlines(), start=2):  # as the rows of a list of jobs
        text = decode(raw).strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            odd.add(line, None, raw, "not JobId, UserId, GroupId, Name and JobState", left_out=True)
            continue
        known = dict(_PAIR.findall(match[4]))
        row = dict.fromkeys(COLUMNS, "")
        row |= {name: word_in(known.get(key, "")) for name, key in KEYS.items()}
        memory = MEMORY.search(row["AllocTRES"])
        row |= {"JobID": match[1], "User": word_in(match[2]), "JobName": word_in(match[3]),
                "ReqMem": memory[1] if memory else ""}  # fmt: skip
        if row["NodeList"] in ("", "(null)"):
            row["NodeList"] = "None assigned"
        yield row


#: Why rows are dropped.
STEPS_ALONE = "steps without a row of their job"


def job_keys(rows: Rows) -> tuple[Int64s, Int64s]:
    """Return keys, from number and cluster, that rows of one job share: of jobs and of steps."""
    job, step = rows.job, rows.step_job
    if "cluster" not in rows.words:
        return job, step
    codes, names = rows.words["cluster"]
    many = len(names)
    if np.all(codes == codes[:1]):  # one cluster: steps need not name it
        return job, step
    return job * many + codes, step * many + rows.step_cluster


def with_steps(rows: Rows, counts: Int64s) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return what the steps of jobs used, and the number of jobs without a row.

    A step belongs to the last row of its job before it, else to the first after it. Of the rows of
    a run, the one that counts has the steps, see
    :func:`~hpcrowd.environment.traces.formats.slurm.jobs.copies`.

    Returns
    -------
    memory, energy
        Of each job row with its steps: the memory of the largest step, kB per processor; J, see
        :func:`_with_energy`; -1 if unknown.
    alone
        How many jobs have steps but no row.
    """
    processors = held(rows)
    memory, energy = np.full(len(counts), -1.0), np.full(len(counts), -1, np.int64)
    np.maximum.at(memory, counts, _shared(rows.memory, rows.tasks, processors[counts]))
    np.maximum.at(energy, counts, rows.energy)
    keys, step_keys = job_keys(rows)
    if not len(step_keys):
        return memory, energy.astype(np.float64), 0
    key = np.concatenate((keys, step_keys))
    order = np.lexsort((np.concatenate((rows.place, rows.step_place)), key))
    key = key[order]
    jobs = len(keys)
    is_job = order < jobs
    at = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_job, at, -1))
    after = np.minimum.accumulate(np.where(is_job, at, len(order))[::-1])[::-1]
    steps = np.flatnonzero(~is_job)
    before, after = before[steps], np.minimum(after[steps], len(order) - 1)
    has_before = (before >= 0) & (key[before] == key[steps])
    owner = np.where(has_before, before, after)
    owned = is_job[owner] & (key[owner] == key[steps])
    step, row = (order[steps] - jobs)[owned], counts[order[owner[owned]]]
    of_steps = _shared(rows.step_memory[step], rows.step_tasks[step], processors[row])
    np.maximum.at(memory, row, of_steps)
    return memory, _with_energy(rows, energy, step, row), len(np.unique(key[steps[~owned]]))


def held(rows: Rows) -> Int64s:
    """Return over how many processors the memory of job rows is averaged: at least 1."""
    nothing = np.zeros(len(rows.job), np.int64)
    allocated, requested = (rows.numbers.get(key, nothing) for key in ("allocated", "requested"))
    return np.maximum(np.where(allocated > 0, allocated, requested), 1)


def _shared(memory: NDArray[Any], tasks: Int64s, processors: Int64s) -> NDArray[np.float64]:
    """Return memory per processor, given that of the largest task; -1 if unknown."""
    tasks = np.maximum(tasks, 1)
    shared = np.where(tasks == processors, memory, memory * tasks / processors)
    return np.where((memory >= 0) & (shared <= LARGEST_EXACT), shared, -1.0)


def _with_energy(rows: Rows, own: Int64s, step: Int64s, row: Int64s) -> NDArray[np.float64]:
    """Return the energy of each job row, J: its own, else that of its steps; -1 if unknown.

    Steps are added up, but where there is a step ``extern`` it counts alone: it lasts as long as
    the job, and meters are read per node (``_internal_step_complete`` in Slurm's ``step_mgr.c``). A
    step that is there twice counts once. ``step`` and ``row`` are the places of steps, and the job
    row of each.
    """
    codes, names = rows.step_name
    once, which = np.unique(row * len(names) + codes[step], return_inverse=True)
    joules = np.zeros(len(once))
    np.maximum.at(joules, which, rows.step_energy[step])
    row, name = once // len(names), once % len(names)
    total = np.bincount(row, joules, len(own))
    is_extern = np.array([one == b"extern" for one in names], bool)[name]
    extern = np.bincount(row, np.where(is_extern, joules, 0), len(own))
    of_steps = np.where(extern > 0, extern, total)
    energy = np.where(own > 0, own, of_steps)
    return np.where(energy > 0, energy, float(UNKNOWN))
