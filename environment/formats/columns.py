"""Traces as tables with our columns: what CSV and Parquet have in common.

======================= ==========================================================================
number ... think_time   the 18 fields of :data:`environment.trace.FIELDS`; ``submit`` is needed
user_name ...           names, where the log has some: of users, groups, executables, queues and
                        partitions
start, end              instead of ``wait`` and ``run``, s since the origin
processors              instead of ``allocated_processors`` and ``requested_processors``
run_time                instead of ``run``
state                   instead of ``status``: completed, killed, failed, cancelled ...
anything else           kept as text, :attr:`environment.trace.Trace.extra`
======================= ==========================================================================

The middle rows are the words of ``jobs.parquet``, so that a run's table of jobs is read, too: as
what was simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from environment.errors import TraceError
from environment.formats.base import Losses
from environment.formats.names import NAMED, known, numbered_words
from environment.formats.tables import listed
from environment.jobs import UNKNOWN, Column
from environment.trace import FIELDS, Header, Trace, smallest

#: Status of the Standard Workload Format for what became of a job.
STATUS_OF = {
    "completed": 1,
    "killed": 0,
    "failed": 0,
    "unfinished": -1,
    "rejected": 5,
    "cancelled": 5,
    "renounced": 5,
}

#: Columns that stand for one or two fields under another name.
OTHER_NAMES = {
    "processors": ("allocated_processors", "requested_processors"),
    "run_time": ("run",),
}

#: Columns of a table of jobs that a trace has no place for.
OF_RUNS = frozenset(column.name.lower() for column in Column) - set(FIELDS)

#: Columns with names.
NAME_COLUMNS = {f"{field}_name": field for field in NAMED}


def looks_like_columns(names: list[str]) -> bool:
    """Whether a table with columns of these names is one of jobs in our words."""
    return "submit" in names and bool({"run", "run_time", "end"} & set(names))


def trace_of_columns(
    names: list[str],
    numbers: Callable[[str], NDArray[Any]],
    words: Callable[[str], list[str]],
    source: str,
    header: Header | None = None,
) -> Trace:
    """Return the trace that a table holds.

    Parameters
    ----------
    names
        The columns that there are.
    numbers, words
        Return a column as numbers, -1 where unknown, and as text; shape (jobs,).
    source
        Names the table in messages.
    header
        Its header, if it has one.

    Raises
    ------
    TraceError
        When a column that is needed is missing.
    """
    if not looks_like_columns(names):
        raise TraceError(
            f"{source}: no columns submit and run; it has {listed(names)}. Say what its columns "
            "mean with --map"
        )
    columns = {name: _wide(numbers(name)) for name in FIELDS if name in names}
    jobs = len(columns["submit"])
    for other, fields in OTHER_NAMES.items():
        for field in fields:
            if other in names and field not in columns:
                columns[field] = _wide(numbers(other))
    if "start" in names:
        start = _wide(numbers("start"))
        if "wait" not in columns:
            told = (start != UNKNOWN) & (columns["submit"] != UNKNOWN)
            columns["wait"] = np.where(told, start - columns["submit"], UNKNOWN)
        if "end" in names and "run" not in names:
            end = _wide(numbers("end"))
            told = (start != UNKNOWN) & (end != UNKNOWN)
            columns["run"] = np.where(told, end - start, UNKNOWN)
    if "state" in names and "status" not in columns:
        columns["status"] = np.array([STATUS_OF.get(word, UNKNOWN) for word in words("state")])
    columns.setdefault("number", np.arange(1, jobs + 1))
    for field in FIELDS:
        columns.setdefault(field, np.full(jobs, UNKNOWN))
    trace = Trace(header or Header(), columns, source=source)
    for column, field in NAME_COLUMNS.items():
        if column in names:
            _name(trace, field, words(column), field in names)
    for name in names:
        if name not in FIELDS and name not in OF_RUNS and name not in NAME_COLUMNS and name:
            trace.extra[name] = np.array(words(name), object)
    trace.columns = {name: smallest(np.asarray(columns[name])) for name in FIELDS}
    return trace


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that can be added without running over."""
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def _name(trace: Trace, field: str, words: list[str], given: bool) -> None:
    """Give names to the numbers of a field, or numbers to its names where it has none."""
    if not given:
        trace.columns[field], names = numbered_words(words)
    else:
        pairs = zip(trace.columns[field].tolist(), words, strict=True)
        told = [(int(number), word) for number, word in pairs if word and number != UNKNOWN]
        names = dict(told)
        other = sum(names[number] != word for number, word in told)
        if other:
            trace.repaired[f"{field} with several names: the last one"] = other
    if names:
        trace.names[field] = names


def named_columns(trace: Trace, lost: Losses | None = None) -> dict[str, list[str]]:
    """Return the columns of names and other text that a table of ``trace`` has.

    ``lost`` counts text whose name stands for another column already.
    """
    found: dict[str, list[str]] = {}
    for column, field in NAME_COLUMNS.items():
        if trace.names.get(field):
            names = trace.names[field]
            found[column] = [names.get(value, "") for value in trace[field].tolist()]
    for name, values in trace.extra.items():
        if name not in FIELDS and name not in OF_RUNS and name not in NAME_COLUMNS:
            found[name] = list(values)
        elif lost is not None:
            lost.add(name, known(values), "the name means another column")
    return found
