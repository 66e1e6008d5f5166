r"""Job table of a Batsim run, ``out_jobs.csv``, which evalys can draw.

::

    job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,
    success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,
    stretch,allocated_resources,consumed_energy,metadata

One line of names (three lines here), then one line per job. When a file is read, columns may come
in any order, and others are ignored; older names of the same columns (``jobID``,
``requested_number_of_processors``, ``allocated_processors``) are known. Times are in s since the
beginning.
Resources are numbers from 0 on, written as ``0-3 5``. A job that never ran has only its submission
time, and no resources.

A cluster of hpcrowd is a pool of processors, so a written trace gets its processors assigned by
first fit (:mod:`environment.platform.placement`). States of jobs are those of Batsim:

    status 1   COMPLETED_SUCCESSFULLY
    status 0   COMPLETED_WALLTIME_REACHED if it ran for its walltime, else COMPLETED_FAILED
    status 5   COMPLETED_KILLED if it ran (Batsim's scheduler killed it), else REJECTED

Source: documentation of Batsim (Jobs; Interval set).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import AS_JOBS_TELL, most_in_use
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.platform.placement import place
from hpcrowd.environment.traces.formats.batsim.workloads import (
    LONGEST_NUMBER,
    first_repeat,
    numbered_ids,
)
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import first_line
from hpcrowd.environment.traces.formats.common.names import (
    NAMED,
    elapsed,
    known,
    number_text,
    plain,
)
from hpcrowd.environment.traces.formats.tables.text import Table
from hpcrowd.environment.traces.headers import made_header
from hpcrowd.environment.traces.trace import Trace, all_columns

#: The columns, in the order of Batsim.
COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
)  # fmt: skip

#: Names of columns in older files, and their present names.
OLDER = {"jobID": "job_id", "workload": "workload_name",
         "requested_number_of_processors": "requested_number_of_resources",
         "allocated_processors": "allocated_resources"}  # fmt: skip

#: Columns that a trace keeps as they are, in :attr:`Trace.extra`.
KEPT = ("workload_name", "profile", "allocated_resources", "consumed_energy", "metadata")

#: Status by final state; in all other states a job has not ended.
STATUS = {"COMPLETED_SUCCESSFULLY": 1, "COMPLETED_FAILED": 0, "COMPLETED_WALLTIME_REACHED": 0,
          "COMPLETED_KILLED": 5, "REJECTED": 5}  # fmt: skip

#: States of a job that has not finished or has no state.
UNFINISHED = ("", "NOT_SUBMITTED", "SUBMITTED", "RUNNING")

#: Words for a missing number.
NO_NUMBER = ("", "nan", "-nan", "NaN")

#: Longest line, in bytes; fragmented resources make long lines.
LONGEST_ROW = 2**24

# Numbers of resources have 15 digits at most, so that their counts are exact.
_SETS = re.compile(r"[0-9]{1,15}(-[0-9]{1,15})?( [0-9]{1,15}(-[0-9]{1,15})?)*", re.ASCII)


def count_of(text: str) -> int | None:
    """Return the number of resources in a set, 0 for empty text, None if it is not a set."""
    if not text:
        return 0
    if not _SETS.fullmatch(text):
        return None
    count, done = 0, -1  # resources up to ``done`` have been counted
    for first, last in sorted(_intervals(text)):
        if last < first:
            return None
        count += max(0, last - max(first - 1, done))
        done = max(done, last)
    return count


def last_of(text: str) -> int:
    """Return the resource with the largest number of a set, -1 if it is empty."""
    return max((last for _, last in _intervals(text)), default=-1)


def _intervals(text: str) -> list[tuple[int, int]]:
    found = []
    for word in text.split():
        first, _, last = word.partition("-")
        found.append((int(first), int(last or first)))
    return found


def interval_texts(trace: Trace, placed: NDArray[np.bool_], size: Int64s) -> list[str]:
    """Return the processors assigned to jobs by first fit, shape (jobs,).

    Only those that are ``placed`` run; the others get empty sets. ``size`` has the processors of
    each job.
    """
    rows = np.flatnonzero(placed)
    begin: Any = (trace["submit"].astype(np.float64) + trace["wait"])[rows]
    end = begin + trace["run"][rows]
    machine = trace.size.processors or 1
    found = place(begin, end, size[rows], machine)
    pieces: list[list[tuple[int, int]]] = [[] for _ in rows]
    for job, row, height in zip(
        found.job.tolist(), found.row.tolist(), found.height.tolist(), strict=True
    ):
        pieces[job].append((row, row + height - 1))
    texts = [""] * len(trace)
    for job, row in enumerate(rows.tolist()):
        texts[row] = _text(sorted(pieces[job]))
    return texts


def _text(pieces: list[tuple[int, int]]) -> str:
    """Return disjoint pieces as text, merged into the largest possible intervals."""
    joined: list[tuple[int, int]] = []
    for first, last in pieces:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return " ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in joined)


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    table = Table(data, source)
    columns = {OLDER.get(name, name): name for name in table.names}
    for name in ("job_id", "submission_time"):
        if name not in columns:
            raise TraceError(f"{source}: no column {name}; not a job table of Batsim")

    def column(name: str) -> NDArray[np.float64] | None:
        return table.numbers(columns[name], nothing=NO_NUMBER) if name in columns else None

    submit, start = column("submission_time"), None
    assert submit is not None
    wait, run = column("waiting_time"), column("execution_time")
    if wait is None or run is None:
        start = column("starting_time")
    if wait is None and start is not None:
        wait = elapsed(submit, start)
    if run is None and start is not None and (finish := column("finish_time")) is not None:
        run = elapsed(start, finish)
    texts = {name: table.words(columns[name]) for name in KEPT if name in columns}
    resources = texts.get("allocated_resources", [""] * len(table))
    counts = [count_of(text) for text in resources]
    if None in counts:
        wrong = counts.index(None)
        rule = "not a set of resources, such as 0-3 5"
        raise table.error(wrong, columns["allocated_resources"], resources[wrong], rule)
    repaired: Counter[str] = Counter()
    states = table.words(columns["final_state"]) if "final_state" in columns else None
    words = table.words(columns["job_id"])
    if again := first_repeat(list(zip(texts.get("workload_name", words), words, strict=True))):
        before, row = again
        rule = f"the id of another job, too: line {table.line(before)}; ids are unique"
        raise table.error(row, columns["job_id"], words[row], rule)
    number, ids = numbered_ids(words)
    told = {
        "number": number,
        "submit": submit,
        "wait": wait,
        "run": run,
        "allocated_processors": np.array([count or -1 for count in counts], np.float64),
        "requested_processors": column("requested_number_of_resources"),
        "requested_time": column("requested_time"),
        "status": _status(states, column("success"), repaired),
    }
    fields = all_columns(told, len(table))
    texts["job_id"] = ids
    extra = {name: np.array(found, np.object_) for name, found in texts.items() if any(found)}
    header = made_header(
        jobs=len(table),
        notes=["from the jobs of a run of Batsim", AS_JOBS_TELL],
        processors=_machine(resources, fields),
    )
    return Trace(header, fields, source=source, extra=extra, repaired=repaired)


def _status(
    words: list[str] | None, success: NDArray[np.float64] | None, repaired: Counter[str]
) -> NDArray[np.float64] | None:
    """Return the status of jobs from their final state, else from their success."""
    if words is None:
        return success if success is None else np.where(np.isin(success, (0, 1)), success, -1)
    odd = sum(word not in STATUS and word not in UNFINISHED for word in words)
    if odd:
        repaired["final state not recognised: status unknown"] = odd
    status = np.array([STATUS.get(word, -1) for word in words], np.float64)
    if success is None:
        return status
    empty = np.array([word == "" for word in words], bool)
    return np.where(empty & np.isin(success, (0, 1)), success, status)


def _machine(resources: list[str], columns: dict[str, NDArray[Any]]) -> int | None:
    """Return the least number of processors that the machine must have, None if unknown."""
    last = max(map(last_of, set(resources)))
    if last >= 0:
        return last + 1
    ran = (columns["submit"] != -1) & (columns["wait"] >= 0) & (columns["run"] > 0)
    ran &= columns["requested_processors"] > 0
    start = np.floor(columns["submit"] + columns["wait"])[ran].astype(np.int64)
    end = start + np.ceil(columns["run"])[ran].astype(np.int64)
    size = np.ceil(columns["requested_processors"])[ran].astype(np.int64)
    return most_in_use(start, end, size) or None


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    unheld = ("average_cpu", "memory", "requested_memory", *NAMED, "preceding", "think_time")
    lost.unheld(trace, unheld, "no column for it")
    lost.unheld_lines(trace, "the format cannot hold it")
    submit, wait, run = (trace[name].astype(np.float64) for name in ("submit", "wait", "run"))
    requested, allocated = trace["requested_processors"], trace["allocated_processors"]
    placed = (submit != -1) & (wait >= 0) & (run >= 0) & ((allocated > 0) | (requested > 0))
    size = np.where(placed, np.ceil(np.where(allocated > 0, allocated, requested)), -1)
    lost.add("allocated_processors", allocated != size, "not those that it is placed on")
    asked = np.where((requested == -1) & (allocated > 0), allocated, requested)
    lost.add("requested_processors", asked != requested, "unknown: the allocated ones written")
    resources = interval_texts(trace, placed, size.astype(np.int64))
    numbers = _ids(trace, lost)
    status = trace["status"]
    lost.add("status", ~np.isin(status, (-1, 0, 1, 5)), "no state for it")
    texts = {name: _kept(trace, name, resources, lost) for name in KEPT}
    lost.unheld_extra(trace, KEPT, "no column for it")
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    told = zip(
        submit.tolist(), wait.tolist(), run.tolist(), asked.tolist(),
        trace["requested_time"].tolist(), status.tolist(), strict=True,
    )  # fmt: skip
    for row, (at, waited, ran, processors, walltime, ended) in enumerate(told):
        begins = at + waited if waited != -1 and at != -1 else None
        over = begins is not None and ran != -1
        table.writerow((
            numbers[row], texts["workload_name"][row], texts["profile"][row], number_text(at),
            number_text(processors), number_text(walltime), {1: "1", 0: "0", 5: "0"}.get(ended, ""),
            _state(ended, ran, walltime), _time(begins), _time(ran if ran != -1 else None),
            _time(begins + ran if over else None), _time(waited if waited != -1 else None),
            _time(waited + ran if over else None),
            _time((waited + ran) / ran if over and ran > 0 else None),
            texts["allocated_resources"][row], texts["consumed_energy"][row],
            texts["metadata"][row],
        ))  # fmt: skip
    return out.getvalue().encode()


def _ids(trace: Trace, lost: Losses) -> list[str]:
    """Return job ids: the job numbers if these are whole and distinct, else their places."""
    numbers = trace["number"]
    good = np.all((numbers >= 0) & (numbers < 10**LONGEST_NUMBER) & (numbers % 1 == 0))
    if not good or len(np.unique(numbers)) < len(numbers):
        places = np.arange(1, len(numbers) + 1)
        lost.add("number", numbers != places, "ids must be whole and distinct: numbered from 1")
        numbers = places
    return [number_text(number) for number in numbers.tolist()]


def _kept(trace: Trace, name: str, resources: list[str], lost: Losses) -> list[str]:
    """Return a text column; resources are those of the trace if they fit all its jobs."""
    given = trace.extra.get(name)
    if name != "allocated_resources":
        texts = [""] * len(trace) if given is None else [plain(text) for text in given]
    elif given is None or any(
        (text == "") != (new == "") or count_of(text) != count_of(new)
        for text, new in zip(given, resources, strict=True)
    ):
        texts = resources
    else:
        texts = given.tolist()
    if given is not None:
        changed = known(given) & np.array([t != g for t, g in zip(texts, given, strict=True)], bool)
        lost.add(name, changed, "cannot be written as it is")
    return texts


def _state(status: float, run: float, walltime: float) -> str:
    match status:
        case 1:
            return "COMPLETED_SUCCESSFULLY"
        case 0:
            limit = 0 < walltime <= run
            return "COMPLETED_WALLTIME_REACHED" if limit else "COMPLETED_FAILED"
        case 5:
            return "REJECTED" if run == -1 else "COMPLETED_KILLED"
    return ""


def _time(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else number_text(value)


def _looks_like(head: bytes) -> bool:
    """Return whether the first line names an id and a submission as Batsim does."""
    names = {word.strip() for word in first_line(head).split(b",")}
    return b"submission_time" in names and not names.isdisjoint((b"job_id", b"jobID"))


#: Job table of Batsim.
BATSIM_JOBS = Format(
    "batsim-jobs",
    "jobs of a run of Batsim (CSV)",
    ("_jobs.csv",),
    _looks_like,
    _parse,
    _generate,
    longest_line=LONGEST_ROW,
    holds_names=False,
)

parse_batsim_jobs, generate_batsim_jobs = BATSIM_JOBS.parse, BATSIM_JOBS.generate
read_batsim_jobs, write_batsim_jobs = BATSIM_JOBS.read, BATSIM_JOBS.write
