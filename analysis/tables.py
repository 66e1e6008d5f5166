"""Tables as Parquet files: jobs, runs of jobs that were stopped, and how parts write theirs.

The metadata of each field has the meaning and unit of the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.engine.attempts import MEANING as ATTEMPT_MEANING
from hpcrowd.environment.engine.attempts import Attempt
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import (
    SLOWED,
    UNKNOWN,
    Column,
    Int64s,
    JobTable,
    State,
)
from hpcrowd.environment.machine.requests import WORDS as REQUESTED_WORDS
from hpcrowd.environment.machine.requests import Ask, Requests

if TYPE_CHECKING:
    import pyarrow as pa

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
def read_as(what: str, path: Path) -> Iterator[None]:
    """Turn errors in reading a file into a message of one line."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as {what}: {told}") from None


def read_table(what: str, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in a file, all of its columns or some.

    Raises
    ------
    ResultsError
        When it cannot be read as ``what``.
    """
    import pyarrow.parquet as pq

    with read_as(what, path):
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

    found = read_table("Parquet", path)
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


def write_attempts(attempts: Sequence[Attempt], path: Path) -> None:
    """Write the runs that the platform stopped."""
    columns = {name: [getattr(one, name) for one in attempts] for name in ATTEMPT_MEANING}
    write_table(columns, ATTEMPT_MEANING, path)


def read_attempts(path: Path) -> list[Attempt]:
    """Return the stopped runs in a file of :func:`write_attempts`."""
    return [Attempt(**row) for row in read_table("attempts", path).to_pylist()]
