"""The tables of a run as Parquet files.

They are jobs, reactions, decisions, visits, attempts, rejections, energy and components. The
metadata of each field has the meaning and unit of the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.decisions import COLUMNS, WORDS, Decisions
from hpcrowd.agents.behaviours.decisions import MEANING as DECISION_MEANING
from hpcrowd.agents.populations.openness import VISIT_MEANING, Happening, Visit
from hpcrowd.analysis.accounts.reactions import MEANING as REACTION_MEANING
from hpcrowd.analysis.accounts.reactions import table
from hpcrowd.analysis.energy.account import JOB_MEANING as ENERGY_MEANING
from hpcrowd.environment.engine.attempts import MEANING as ATTEMPT_MEANING
from hpcrowd.environment.engine.attempts import Attempt
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import (
    SLOWED,
    UNKNOWN,
    Column,
    Float64s,
    Int64s,
    JobTable,
    State,
)
from hpcrowd.environment.machine.requests import WORDS as REQUESTED_WORDS
from hpcrowd.environment.machine.requests import Ask, Requests

if TYPE_CHECKING:
    import pyarrow as pa

    from hpcrowd.agents.behaviours.reactions import Note


#: Required columns of a table of jobs; others may be missing and stay unknown.
NEEDED = (
    Column.NUMBER,
    Column.USER,
    Column.PROCESSORS,
    Column.RECORDED_SUBMIT,
    Column.SUBMIT,
    Column.START,
    Column.END,
    Column.STATE,
)

#: Names of states in the file.
STATES = {state.name.lower(): state for state in State}

#: Metadata key of the number of decisions that were not kept.
DROPPED = b"dropped"

#: The meaning of each column of ``components.parquet``.
COMPONENT_MEANING = {
    "number": "job number of the component, as in jobs.parquet",
    "first": "job number of the first component of its job",
    "processors": "processors of all components of the job",
}

#: The meaning of each column of ``rejections.parquet``.
REJECTION_MEANING = {
    "row": "row of the job in the table of jobs",
    "number": "job number, as in jobs.parquet",
    "reason": "why it can never run, in Slurm's words",
}


def write_table(
    columns: Mapping[str, Any],
    meaning: Mapping[str, str],
    path: Path,
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write columns of equal length, as arrays or anything that pyarrow converts to one.

    Parameters
    ----------
    columns
        Columns by name.
    meaning
        Meaning of each column.
    path
        The file.
    metadata
        Metadata of the whole table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays, fields = [], []
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"meaning": meaning[name]}))
    schema = pa.schema(fields, metadata=metadata)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd")


@contextmanager
def _read_as(what: str, path: Path) -> Iterator[None]:
    """Turn errors in reading a file into a message of one line."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as {what}: {told}") from None


def _read_table(what: str, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    import pyarrow.parquet as pq

    with _read_as(what, path):
        return pq.read_table(path, columns=columns)


def write_jobs(jobs: JobTable, path: Path) -> None:
    """Write the table of jobs."""
    import pyarrow as pa

    columns: dict[str, Any] = {column.name.lower(): jobs.column(column) for column in Column}
    columns["state"] = pa.DictionaryArray.from_arrays(
        pa.array(jobs.state, pa.int8()), pa.array(list(STATES))
    )
    meaning = {column.name.lower(): column.meaning for column in Column}
    if jobs.slowed_run_time is not None:
        columns["slowed_run_time"], meaning["slowed_run_time"] = jobs.slowed_run_time, SLOWED
    if jobs.requests is not None:
        for ask in jobs.requests.asked():
            name, values = ask.name.lower(), jobs.requests[ask]
            if ask in REQUESTED_WORDS:
                values = pa.array(jobs.requests.texts(ask), pa.string()).dictionary_encode()
            columns[name], meaning[name] = values, ask.meaning
    write_table(columns, meaning, path)


def read_jobs(path: Path) -> JobTable:
    """Return the table of jobs in a file of :func:`write_jobs`.

    Raises
    ------
    ResultsError
        When it is not such a table.
    """

    found = _read_table("Parquet", path)
    missing = [c.name.lower() for c in NEEDED if c.name.lower() not in found.column_names]
    if missing:
        raise ResultsError(f"{path}: no column {missing[0]!r}, which a table of jobs must have")
    jobs = JobTable(found.num_rows)
    for column in Column:
        name = column.name.lower()
        if name not in found.column_names:
            continue
        if column is Column.STATE:
            jobs.column(Column.STATE)[:] = _states(_full(found, name, path), path)
        else:
            jobs.column(column)[:] = _whole_numbers(found, name, path)
    if "slowed_run_time" in found.column_names:
        jobs.slowed_run_time = _whole_numbers(found, "slowed_run_time", path)
    jobs.requests = _requests(found, path)
    return jobs


def _full(found: pa.Table, name: str, path: Path) -> pa.Array:
    """Return a column, all of whose cells must have a value."""
    values = found.column(name).combine_chunks()
    if values.null_count:
        raise ResultsError(f"{path}, column {name}: empty cells; -1 stands for unknown")
    return values


def _whole_numbers(found: pa.Table, name: str, path: Path) -> Int64s:
    """Return a column of whole numbers."""
    import pyarrow as pa

    values = _full(found, name, path)
    if not pa.types.is_integer(values.type):
        raise ResultsError(f"{path}, column {name}: {values.type} instead of whole numbers")
    numbers: Int64s = values.to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def _requests(found: pa.Table, path: Path) -> Requests | None:
    """Return what the jobs of a table ask for; None if it has no column of requests."""
    import pyarrow as pa

    asks = [ask for ask in Ask if ask.name.lower() in found.column_names]
    if not asks:
        return None
    requests = Requests(found.num_rows)
    for ask in asks:
        values = found.column(ask.name.lower()).combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        fits = pa.types.is_string if ask in REQUESTED_WORDS else pa.types.is_integer
        if values.null_count or not fits(values.type):
            what = "texts" if ask in REQUESTED_WORDS else "whole numbers"
            raise ResultsError(
                f"{path}, column {ask.name.lower()}: {values.type} instead of {what} without "
                "empty cells"
            )
        if ask in REQUESTED_WORDS:
            requests.set_texts(ask, values.to_pylist())
        else:
            requests[ask][:] = values.to_numpy(zero_copy_only=False)
    return requests


def _states(values: pa.Array, path: Path) -> Int64s:
    """Return the numbers of states, whatever their order in the file."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = [str(word) for word in values.dictionary.to_pylist()]
    codes = values.indices.to_numpy(zero_copy_only=False)
    used = {words[code] for code in np.unique(codes)}
    unknown = sorted(used - set(STATES))
    if unknown:
        raise ResultsError(
            f"{path}, column state: {unknown[0]!r} is not a state of jobs; choose "
            + ", ".join(STATES)
        )
    states: Int64s = np.array([STATES.get(word, UNKNOWN) for word in words], np.int64)[codes]
    return states


def write_reactions(jobs: JobTable, notes: Sequence[Note], path: Path) -> None:
    """Write the effects of reactions, see :func:`hpcrowd.analysis.accounts.reactions.table`."""
    import pyarrow as pa

    columns = {
        name: pa.array(values, pa.string()).dictionary_encode()
        if isinstance(values, list)
        else values
        for name, values in table(jobs, notes).items()
    }
    write_table({name: columns[name] for name in REACTION_MEANING}, REACTION_MEANING, path)


def read_reactions(path: Path, jobs: JobTable) -> list[Note]:
    """Return the notes in a file of :func:`write_reactions`, for the jobs of the same run.

    Raises
    ------
    ResultsError
        When it is not such a file, or has jobs that are not in the table.
    """
    import pyarrow.parquet as pq

    from hpcrowd.agents.behaviours.reactions import Note

    with _read_as("reactions", path):
        there = pq.read_schema(path).names
    # Files of earlier versions know of no requests.
    names = [name for name in REACTION_MEANING if name in there or "request" not in name]
    found = _read_table("reactions", path, names)
    columns: dict[str, list[Any]] = dict.fromkeys(REACTION_MEANING, [""] * found.num_rows)
    columns |= {name: found.column(name).to_pylist() for name in names}
    row_of = {number: row for row, number in enumerate(jobs.number.tolist())}
    missing = [number for number in columns["number"] if number not in row_of]
    if missing:
        raise ResultsError(f"{path}: job {missing[0]} is not in jobs.parquet; run it again")
    columns["row"] = [row_of[number] for number in columns["number"]]
    return [Note(*values) for values in zip(*(columns[name] for name in Note._fields), strict=True)]


def word(name: str) -> str:
    """Return the name of a decision or reason in the file: ``gave up`` for ``GAVE_UP``."""
    return name.lower().replace("_", " ")


def write_decisions(decisions: Decisions, path: Path) -> None:
    """Write the log of decisions."""
    import pyarrow as pa

    columns = dict(decisions.columns)
    for name, words in WORDS.items():
        columns[name] = pa.DictionaryArray.from_arrays(
            pa.array(columns[name]), pa.array([word(one.name) for one in words])
        )
    columns["name"] = pa.DictionaryArray.from_arrays(
        pa.array(columns["name"]), pa.array(decisions.names)
    )
    write_table(columns, DECISION_MEANING, path, {DROPPED: str(decisions.dropped).encode()})


def read_decisions(path: Path) -> Decisions:
    """Return the decisions in a file of :func:`write_decisions`.

    Raises
    ------
    ResultsError
        When it is not such a file.
    """
    columns: dict[str, np.ndarray] = {}
    names: dict[str, int] = {"": 0}
    found = _read_table("decisions", path, list(DECISION_MEANING))
    try:
        for name, (code, _) in COLUMNS.items():
            if name in WORDS:
                number = {word(one.name): one.value for one in WORDS[name]}
                values = [number[one] for one in found.column(name).to_pylist()]
            elif name == "name":
                values = [
                    names.setdefault(one, len(names)) for one in found.column(name).to_pylist()
                ]
            else:
                values = found.column(name).to_numpy()
            columns[name] = np.array(values, code)
    except KeyError as error:
        raise ResultsError(f"{path}: {error} is not known; run it again") from None
    dropped = int((found.schema.metadata or {}).get(DROPPED, b"0"))
    return Decisions(columns, tuple(names), dropped)


def write_visits(visits: Sequence[Visit], path: Path) -> None:
    """Write arrivals and departures of users."""
    import pyarrow as pa

    columns = {
        "at": pa.array([visit.at for visit in visits], pa.int64()),
        "user": pa.array([visit.user for visit in visits], pa.int64()),
        "what": pa.array([visit.what.value for visit in visits]).dictionary_encode(),
    }
    write_table(columns, VISIT_MEANING, path)


def read_visits(path: Path) -> list[Visit]:
    """Return the visits in a file of :func:`write_visits`.

    Raises
    ------
    ResultsError
        When it is not such a file.
    """
    found = _read_table("visits", path, list(VISIT_MEANING))
    columns = (found.column(name).to_pylist() for name in VISIT_MEANING)
    with _read_as("visits", path):
        return [Visit(at, user, Happening(what)) for at, user, what in zip(*columns, strict=True)]


def write_attempts(attempts: Sequence[Attempt], path: Path) -> None:
    """Write the runs that the platform stopped."""
    columns = {name: [getattr(one, name) for one in attempts] for name in ATTEMPT_MEANING}
    write_table(columns, ATTEMPT_MEANING, path)


def read_attempts(path: Path) -> list[Attempt]:
    """Return the stopped runs in a file of :func:`write_attempts`."""
    return [Attempt(**row) for row in _read_table("attempts", path).to_pylist()]


def write_rejections(jobs: JobTable, rejections: Mapping[int, str], path: Path) -> None:
    """Write why jobs can never run."""
    rows = np.array(list(rejections), np.int64)
    columns = {"row": rows, "number": jobs.number[rows], "reason": list(rejections.values())}
    write_table(columns, REJECTION_MEANING, path)


def read_rejections(path: Path) -> dict[int, str]:
    """Return the reasons by row in a file of :func:`write_rejections`."""
    found = _read_table("rejections", path, list(REJECTION_MEANING))
    with _read_as("rejections", path):
        return {int(one["row"]): str(one["reason"]) for one in found.to_pylist()}


def write_energy(jobs: JobTable, columns: Mapping[str, Float64s], path: Path) -> None:
    """Write energy, carbon and cost of every job."""
    write_table({"number": jobs.number, **columns}, ENERGY_MEANING, path)


def read_energy(path: Path) -> dict[str, Float64s]:
    """Return the columns in a file of :func:`write_energy`, without the numbers of jobs."""
    found = _read_table("energy", path)
    with _read_as("energy", path):
        known = [name for name in found.column_names if name in ENERGY_MEANING and name != "number"]
        return {name: found[name].to_numpy().astype(np.float64) for name in known}


def write_components(jobs: JobTable, first: Int64s, path: Path) -> None:
    """Write which rows are components of one job.

    Parameters
    ----------
    jobs
        The table.
    first
        Row of the first component of each row's job, shape (jobs,).
    path
        The file.
    """
    count = np.bincount(first, minlength=len(jobs))
    width = np.zeros(len(jobs), np.int64)
    np.add.at(width, first, jobs.processors)
    rows = np.flatnonzero(count[first] > 1)
    columns = {
        "number": jobs.number[rows],
        "first": jobs.number[first[rows]],
        "processors": width[first[rows]],
    }
    write_table(columns, COMPONENT_MEANING, path)
