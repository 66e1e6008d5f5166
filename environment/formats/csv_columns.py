r"""Traces as CSV with our columns, for spreadsheets and data frames.

::

    number,submit,wait,run,allocated_processors,...,think_time,user_name
    1,0,5,60,4,...,-1,alice

The columns are those of :mod:`environment.formats.columns`, in any order when read; columns that
are not there are unknown. CSV has no place for the header of a log: machine and time zone are lost,
and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from environment.formats.base import Format, Losses, as_bytes, first_line
from environment.formats.columns import (
    NAME_COLUMNS,
    looks_like_columns,
    named_columns,
    trace_of_columns,
)
from environment.formats.files import read_as, write_file
from environment.formats.names import in_blocks, number_text
from environment.formats.tables import Table, write_table
from environment.trace import FIELDS, Trace


def read_csv(path: str | os.PathLike[str]) -> Trace:
    """Read a trace in CSV with our columns, plain or gzipped.

    Raises
    ------
    TraceError
        When it cannot be read, or a column that is needed is missing.
    ParseError
        When a line is malformed; it names line, field and value.
    """
    return read_as(path, parse_csv)


def parse_csv(data: bytes | str, source: str = "trace") -> Trace:
    """Return the trace that text in CSV holds; ``source`` names it in messages."""
    table = Table(as_bytes(data), source)
    return trace_of_columns(table.names, table.numbers, table.words, source)


def generate_csv(trace: Trace, lost: Losses | None = None) -> bytes:
    """Return ``trace`` as CSV; ``lost`` counts the lines of the header and comments."""
    if lost is not None:
        lost.add("header", len(trace.header.lines), "CSV has no place for it")
        lost.add("comments", len(trace.comments), "CSV has no place for them")
    numbers: dict[str, Iterable[str]] = {
        name: map(number_text, in_blocks(trace[name])) for name in FIELDS
    }
    return write_table(numbers | _texts(trace, lost))


def _texts(trace: Trace, lost: Losses | None) -> dict[str, Iterable[str]]:
    """Return columns of text as CSV holds them; what it does not hold of them is counted."""
    found: dict[str, Iterable[str]] = {}
    lost = Losses() if lost is None else lost
    for name, words in named_columns(trace, lost).items():
        if not name.isprintable() or name != name.strip() or not name:
            lost.add(name, sum(map(bool, words)), "no name that a line of names can hold")
            continue
        table = {word: word.replace("\0", "").strip() for word in set(words)}
        changed = {word for word, text in table.items() if text != word}
        field = NAME_COLUMNS.get(name, name)
        lost.add(field, sum(word in changed for word in words), "blanks around, or zero bytes")
        found[name] = [table[word] for word in words] if changed else words
    return found


def write_csv(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write ``trace`` as CSV, gzipped if the name ends in ``.gz``; the file is whole or absent.

    Raises
    ------
    TraceError
        When it cannot be written.
    """
    write_file(generate_csv(trace), path)


def _looks_like(head: bytes) -> bool:
    names = first_line(head).removeprefix(b"\xef\xbb\xbf").decode("latin-1").split(",")
    return looks_like_columns([name.strip().strip('"') for name in names])


#: CSV with our columns.
CSV = Format(
    "csv",
    "CSV with the columns of hpcrowd",
    (".csv",),
    _looks_like,
    lambda data, source, _: parse_csv(data, source),
    lambda trace, lost, _: generate_csv(trace, lost),
    holds_names=True,
)
