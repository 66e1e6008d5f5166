"""Traces as tables with hpcrowd's columns, in CSV and Parquet.

======================= ==========================================================================
number ... think_time   the 18 fields of :data:`FIELDS`; ``submit`` is required
user_name ...           names, if the log has them: of users, groups, executables, queues and
                        partitions
start, end              instead of ``wait`` and ``run``, s since the origin
processors              instead of ``allocated_processors`` and ``requested_processors``
run_time                instead of ``run``
state                   instead of ``status``: completed, killed, failed, cancelled ...
asked_nodes ...         what jobs asked of a machine, ``SITE_COLUMNS`` of
                        :mod:`hpcrowd.environment.traces.formats.common.site_columns`
anything else           kept as text, :attr:`hpcrowd.environment.traces.trace.Trace.extra`
======================= ==========================================================================

The rows from ``start`` to ``state`` are the columns of ``jobs.parquet``, so the job table of a run
can be read, too: it gives the simulated jobs. Columns may come in any order; missing ones are
unknown.

CSV is for spreadsheets and data frames. It cannot hold the header of a log: machine and time zone
are lost, and counted as losses ::

    number,submit,wait,run,allocated_processors,...,think_time,user_name
    1,0,5,60,4,...,-1,alice

Parquet holds everything except text columns with odd names, typed and compressed. The metadata of
each column describes its meaning; header, comments and line ends are in the metadata of the file
under :data:`KEY`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, QuantityError, TraceError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN, Column
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, first_line
from hpcrowd.environment.traces.formats.common.names import (
    NAMED,
    elapsed,
    in_blocks,
    known,
    number_text,
    numbered_words,
)
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.tables.common_names import (
    fields_of,
    guessed_mapping,
    read_as,
)
from hpcrowd.environment.traces.formats.tables.mapped import trace_of_mapped
from hpcrowd.environment.traces.formats.tables.text import (
    MAGIC,
    ParquetTable,
    Table,
    listed,
    write_table,
)
from hpcrowd.environment.traces.formats.tables.values import Columns, to_microsecond
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS
from hpcrowd.environment.traces.trace import FIELDS, MEANING, Trace, all_columns

#: Status of the Standard Workload Format for each state of a job.
STATUS_OF = {
    "completed": 1,
    "killed": 0,
    "failed": 0,
    "unfinished": -1,
    "rejected": 5,
    "cancelled": 5,
    "renounced": 5,
}

#: Columns that are one or two fields under another name.
OTHER_NAMES = {
    "processors": ("allocated_processors", "requested_processors"),
    "run_time": ("run",),
}

#: Columns of a job table that a trace cannot hold.
OF_RUNS = {*(column.name.lower() for column in Column), "slowed_run_time"} - set(FIELDS)

#: Columns of a job table with what the jobs ask for.
REQUESTS = {ask.name.lower(): ask for ask in Ask}

#: Columns with names.
NAME_COLUMNS = {f"{field}_name": field for field in NAMED}


#: Key of header, comments and line ends in the metadata: JSON, lines in Base64.
KEY = b"hpcrowd.trace"


def looks_like_columns(names: list[str]) -> bool:
    """Return whether these are names of columns of hpcrowd."""
    return "submit" in names and bool({"run", "run_time", "end"} & set(names))


def trace_of_columns(table: Columns, header: Header | None = None) -> Trace:
    """Return the trace in a table, with its header if it has one.

    Raises TraceError if a required column is missing.
    """
    names, numbers, words, source = table.names, table.numbers, table.words, table.source
    if not looks_like_columns(names):
        raise TraceError(f"{source}: no columns submit and run; it has {listed(names)}")
    columns = {name: _wide(numbers(name)) for name in FIELDS if name in names}
    jobs = len(columns["submit"])
    for other, fields in OTHER_NAMES.items():
        for field in fields:
            if other in names and field not in columns:
                columns[field] = _wide(numbers(other))
    if "start" in names:
        start = _wide(numbers("start"))
        if "wait" not in columns:
            columns["wait"] = to_microsecond(elapsed(columns["submit"], start))
        if "end" in names and "run" not in names:
            columns["run"] = to_microsecond(elapsed(start, _wide(numbers("end"))))
    if "state" in names and "status" not in columns:
        columns["status"] = np.array([STATUS_OF.get(word, UNKNOWN) for word in words("state")])
    columns.setdefault("number", np.arange(1, jobs + 1))
    for field in NAMED:
        columns.setdefault(field, np.full(jobs, UNKNOWN))
    trace = Trace(header or Header(), columns, source=source)
    for column, field in NAME_COLUMNS.items():
        if column in names:
            _name(trace, field, words(column), field in names)
    requests = _requests_of_run(names, columns["submit"], table)
    trace.extra |= requests
    for name in names:
        if requests and name in REQUESTS:
            continue
        if name not in FIELDS and name not in OF_RUNS and name not in NAME_COLUMNS and name:
            trace.extra[name] = np.array(words(name), object)
    trace.columns = all_columns(columns, jobs)
    return trace


def _requests_of_run(
    names: list[str], submit: NDArray[Any], table: Columns
) -> dict[str, NDArray[np.object_]]:
    """Return the columns of a trace for the requests in a job table, whose names are others."""
    found: dict[str, NDArray[np.object_]] = {}
    if "recorded_submit" not in names:
        return found
    for name, ask in REQUESTS.items():
        if name in names:
            texts = ["" if text == str(UNKNOWN) else text for text in table.words(name)]
            if ask is Ask.BEGIN:
                pairs = zip(texts, submit.astype(np.int64).tolist(), strict=True)
                texts = [str(max(int(text) - at, 0)) if text else "" for text, at in pairs]
            elif ask is Ask.EXCLUSIVE:
                texts = ["yes" if text == "1" else "" for text in texts]
            found[REQUEST_COLUMNS[ask]] = np.array(texts, np.object_)
    return found


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of a type that can be added without overflow."""
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def _name(trace: Trace, field: str, words: list[str], given: bool) -> None:
    """Give names to the numbers of a field, or numbers to its names if it has none."""
    if not given:
        trace.columns[field], names = numbered_words(words)
    else:
        pairs = zip(trace.columns[field].tolist(), words, strict=True)
        told = [(int(number), word) for number, word in pairs if word and number != UNKNOWN]
        names = dict(told)
        other = sum(names[number] != word for number, word in told)
        if other:
            trace.repaired[f"{field} with several names: the last one taken"] = other
    if names:
        trace.names[field] = names


def named_columns(trace: Trace, lost: Losses) -> dict[str, list[str]]:
    """Return the columns of names and other text in a table of ``trace``.

    ``lost`` counts text whose name already belongs to another column.
    """
    found: dict[str, list[str]] = {}
    for column, field in NAME_COLUMNS.items():
        if trace.names.get(field):
            names = trace.names[field]
            found[column] = [names.get(value, "") for value in trace[field].tolist()]
    for name, values in trace.extra.items():
        if name not in FIELDS and name not in OF_RUNS and name not in NAME_COLUMNS:
            found[name] = list(values)
        else:
            lost.add(name, known(values), "another column has this name")
    return found


def _parse_csv(data: bytes, source: str, options: FormatOptions) -> Trace:
    table = Table(data, source)
    try:
        return trace_of_columns(table)
    except TraceError as error:
        # Your own table, with common names of columns or with words where numbers belong.
        cure = "--map FILE describes the columns of your own table"
        try:
            mapping = guessed_mapping(table)
            if mapping is not None:
                found = replace(options, mapping=mapping)
                return trace_of_mapped(table, found, read_as(mapping))
        except (TraceError, QuantityError) as other:
            raise TraceError(f"{other}; {cure}") from None
        if isinstance(error, ParseError):
            where = (error.path, error.line, error.field, error.value)
            raise ParseError(*where, f"{error.rule}; {cure}") from None
        raise TraceError(f"{error}; {cure}") from None


def _generate_csv(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    lost.add("header", len(trace.header.lines), "CSV cannot hold it")
    lost.add("comments", len(trace.comments), "CSV cannot hold them")
    numbers: dict[str, Iterable[str]] = {
        name: map(number_text, in_blocks(trace[name])) for name in FIELDS
    }
    return write_table(numbers | _texts(trace, lost))


def _texts(trace: Trace, lost: Losses) -> dict[str, Iterable[str]]:
    """Return columns of text as CSV holds them, and count what it cannot hold."""
    found: dict[str, Iterable[str]] = {}
    for name, words in named_columns(trace, lost).items():
        if not name.isprintable() or name != name.strip() or not name:
            lost.add(name, sum(map(bool, words)), "the first line cannot hold this name")
            continue
        field = NAME_COLUMNS.get(name, name)
        reason = "blanks at the ends, or zero bytes"
        found[name] = lost.respelled(field, words, lambda w: w.replace("\0", "").strip(), reason)
    return found


def _looks_like(head: bytes) -> bool:
    line = first_line(head).decode("latin-1").split(",")
    names = [name.strip().strip('"') for name in line]
    of_slurm = {"JobID", "State"} <= set(names)
    return looks_like_columns(names) or (not of_slurm and bool(fields_of(names)))


#: CSV with the columns of hpcrowd.
CSV = Format(
    "csv",
    "CSV with the columns of hpcrowd",
    (".csv",),
    _looks_like,
    _parse_csv,
    _generate_csv,
)

parse_csv, generate_csv = CSV.parse, CSV.generate
read_csv, write_csv = CSV.read, CSV.write


def _parse_parquet(data: bytes, source: str, options: FormatOptions) -> Trace:
    import pyarrow as pa

    table = ParquetTable(pa.BufferReader(data), source)
    kept = _kept(table.metadata, source)
    trace = trace_of_columns(table, Header(kept[0]))
    trace.comments, trace.newline = kept[1], kept[2]
    return trace


def _kept(
    metadata: dict[bytes, bytes], source: str
) -> tuple[list[bytes], list[tuple[int, bytes]], bytes]:
    """Return the header, comments and line end in the metadata of a file."""
    if KEY not in metadata:
        return [], [], b"\n"
    try:
        kept = json.loads(metadata[KEY])
        header = [base64.b64decode(line, validate=True) for line in kept["header"]]
        comments = [
            (int(place), base64.b64decode(line, validate=True)) for place, line in kept["comments"]
        ]
        return header, comments, b"\r\n" if kept["newline"] == "crlf" else b"\n"
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        what = type(error).__name__
        raise TraceError(f"{source}: metadata {KEY.decode()} is damaged ({what})") from None


def _generate_parquet(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields, arrays = [], []
    for name in FIELDS:
        arrays.append(pa.array(trace[name]))
        fields.append(pa.field(name, arrays[-1].type, metadata={"meaning": MEANING[name]}))
    for name, words in named_columns(trace, lost).items():
        arrays.append(pa.array(words, pa.string()).dictionary_encode())
        meaning = {"meaning": SITE_COLUMNS[name]} if name in SITE_COLUMNS else None
        fields.append(pa.field(name, arrays[-1].type, metadata=meaning))
    kept = {
        "header": [base64.b64encode(line).decode() for line in trace.header.lines],
        "comments": [[place, base64.b64encode(line).decode()] for place, line in trace.comments],
        "newline": "crlf" if trace.newline == b"\r\n" else "lf",
    }
    schema = pa.schema(fields, metadata={KEY: json.dumps(kept).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return bytes(sink.getvalue())


#: Parquet with the columns of hpcrowd.
PARQUET = Format(
    "parquet",
    "Parquet with the columns of hpcrowd",
    (".parquet",),
    lambda head: head.startswith(MAGIC),
    _parse_parquet,
    _generate_parquet,
    longest_line=LONGEST_DOCUMENT,
)

parse_parquet, generate_parquet = PARQUET.parse, PARQUET.generate
read_parquet, write_parquet = PARQUET.read, PARQUET.write
