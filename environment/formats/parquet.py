"""Traces as Parquet with our columns: all of a trace, typed and packed, for data frames.

The columns are those of :mod:`environment.formats.columns`; each says in its metadata what it
means. Header, comments and line ends stand in the metadata of the file under :data:`KEY`, so that
nothing is lost.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from environment.errors import ParseError, TraceError
from environment.formats.base import LARGEST_EXACT, LONGEST_DOCUMENT, Format, Losses
from environment.formats.columns import named_columns, trace_of_columns
from environment.formats.files import read_as, write_file
from environment.jobs import UNKNOWN
from environment.trace import FIELDS, Header, Trace

#: What a Parquet file begins and ends with.
MAGIC = b"PAR1"

#: Where header, comments and line ends stand in the metadata: JSON, lines in Base64.
KEY = b"hpcrowd.trace"


def read_parquet(path: str | os.PathLike[str]) -> Trace:
    """Read a trace in Parquet with our columns.

    Raises
    ------
    TraceError
        When it cannot be read, or a column that is needed is missing.
    """
    return read_as(path, parse_parquet, LONGEST_DOCUMENT)


def parse_parquet(data: bytes, source: str = "trace") -> Trace:
    """Return the trace that a Parquet file holds; ``source`` names it in messages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError, ValueError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())[:160]
        raise TraceError(f"{source}: the Parquet file is damaged ({text})") from None
    if not len(table):
        raise TraceError(f"{source}: holds no job")

    def numbers(name: str) -> NDArray[Any]:
        return _numbers(table.column(name), name, source)

    def words(name: str) -> list[str]:
        values = table.column(name).to_pylist()
        return ["" if value is None else str(value) for value in values]

    kept = _kept(table.schema.metadata or {}, source)
    trace = trace_of_columns(table.column_names, numbers, words, source, Header(kept[0]))
    trace.comments, trace.newline = kept[1], kept[2]
    return trace


def _numbers(column: Any, name: str, source: str) -> NDArray[Any]:
    """Return a column as numbers, -1 where there is none."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise TraceError(f"{source}: column {name} holds {kind}, not numbers")
    values = column.to_numpy()
    if values.dtype.kind not in "iu":
        values = values.astype(np.float64)
        values = np.where(np.isnan(values), UNKNOWN, values)
    good = np.abs(values.astype(np.float64)) <= LARGEST_EXACT
    if not good.all():
        row = int(np.argmin(good))
        rule = "in this row; numbers are finite and exact"
        raise ParseError(source, row + 1, name, str(values[row]), rule)
    found: NDArray[Any] = values
    return found


def _kept(
    metadata: dict[bytes, bytes], source: str
) -> tuple[list[bytes], list[tuple[int, bytes]], bytes]:
    """Return header, comments and line end from the metadata of a file."""
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


def generate_parquet(trace: Trace, lost: Losses | None = None) -> bytes:
    """Return ``trace`` as a Parquet file, which holds all of it but odd names of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from environment.trace import MEANING

    fields, arrays = [], []
    for name in FIELDS:
        arrays.append(pa.array(trace[name]))
        fields.append(pa.field(name, arrays[-1].type, metadata={"meaning": MEANING[name]}))
    for name, words in named_columns(trace, lost).items():
        arrays.append(pa.array(words, pa.string()).dictionary_encode())
        fields.append(pa.field(name, arrays[-1].type))
    kept = {
        "header": [base64.b64encode(line).decode() for line in trace.header.lines],
        "comments": [[place, base64.b64encode(line).decode()] for place, line in trace.comments],
        "newline": "crlf" if trace.newline == b"\r\n" else "lf",
    }
    schema = pa.schema(fields, metadata={KEY: json.dumps(kept).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return bytes(sink.getvalue())


def write_parquet(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write ``trace`` as Parquet; the file is whole or absent.

    Raises
    ------
    TraceError
        When it cannot be written.
    """
    write_file(generate_parquet(trace), path)


#: Parquet with our columns.
PARQUET = Format(
    "parquet",
    "Parquet with the columns of hpcrowd",
    (".parquet",),
    lambda head: head.startswith(MAGIC),
    lambda data, source, _: parse_parquet(data, source),
    lambda trace, lost, _: generate_parquet(trace, lost),
    longest_line=LONGEST_DOCUMENT,
    holds_names=True,
)
