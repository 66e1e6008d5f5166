r"""The Standard Workload Format, version 2.2: read and write it without loss.

::

    ; Version: 2.2                          header: comment lines, "; Key: value"
    ; Information: http://www.pdc.kth.se/
    ;              continued value
    ;
       15   599850 192180   3477    4 ...   one job a line, 18 fields, -1 unknown

The fields are those of :data:`environment.traces.trace.FIELDS`. Text pairs: :func:`parse_swf` and
:func:`generate_swf` on bytes, :func:`read_swf` and :func:`write_swf` on paths (gzip is found from
the content when reading, and written when the name ends in ``.gz``). Reading and writing again
keeps every header line byte for byte and every value of every job.

Source: Parallel Workloads Archive, definition of the Standard Workload Format.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.traces.formats.base import (
    LARGEST_EXACT,
    Format,
    Losses,
    as_bytes,
    first_line,
)
from hpcrowd.environment.traces.formats.files import (
    join_lines,
    read_as,
    shown,
    split_lines,
    write_file,
)
from hpcrowd.environment.traces.formats.names import in_blocks, known, number_text
from hpcrowd.environment.traces.trace import FIELDS, Trace, smallest


def read_swf(path: str | os.PathLike[str]) -> Trace:
    """Read a trace in the Standard Workload Format, plain or gzipped.

    Raises
    ------
    TraceError
        When the file is missing, empty, cut short or no trace.
    ParseError
        When a line is malformed; it names line, field and value.
    """
    return read_as(path, parse_swf)


def parse_swf(data: bytes | str, source: str = "trace") -> Trace:
    """Return the trace that ``data`` holds; ``source`` names it in messages."""
    data = as_bytes(data)
    lines = split_lines(data, source, "Standard Workload Format")
    body = b"\n".join(lines.jobs)
    values = _numbers(body, len(lines.jobs))
    if values is None:
        _explain(lines.jobs, lines.line_number, source)
        raise AssertionError("unreachable")  # pragma: no cover
    table = values.reshape(-1, len(FIELDS))
    columns = {name: smallest(table[:, i].copy()) for i, name in enumerate(FIELDS)}
    return Trace(lines.header, columns, lines.comments, lines.newline, source)


def _numbers(body: bytes, lines: int) -> NDArray[np.float64] | None:
    """Return all fields of all job lines, or None when a line is malformed."""
    characters = np.frombuffer(body + b"\n", np.uint8)
    blank = characters <= ord(" ")
    begins = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    if not blank[0]:
        begins = np.concatenate(([0], begins))
    ends = np.flatnonzero(characters == ord("\n"))
    fields = np.diff(np.searchsorted(begins, ends), prepend=0)
    if np.any(fields != len(FIELDS)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = np.fromstring(body.decode("ascii"), sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    if len(values) != lines * len(FIELDS) or not np.all(np.abs(values) <= LARGEST_EXACT):
        return None
    return values


def _explain(body_lines: list[bytes], line_number: Any, source: str) -> None:
    """Raise the error of the first malformed job line."""
    for job, raw in enumerate(body_lines):
        words = raw.split()  # as bytes, where only the blanks of ASCII separate
        for name, word in zip(FIELDS, words, strict=False):
            try:
                good = abs(float(word)) <= LARGEST_EXACT and b"_" not in word
            except ValueError:
                good = False
            if not good:
                rule = "not a number; -1 stands for unknown"
                raise ParseError(source, line_number(job), name, shown(word), rule)
        if len(words) != len(FIELDS):
            rule = f"{len(words)} fields; a job of the Standard Workload Format has {len(FIELDS)}"
            raise ParseError(source, line_number(job), None, shown(b" ".join(words)), rule)
    raise TraceError(f"{source}: cannot be read as a trace")  # pragma: no cover


def generate_swf(trace: Trace, lost: Losses | None = None) -> bytes:
    """Return ``trace`` as text in the Standard Workload Format.

    Parameters
    ----------
    trace
        The trace.
    lost
        Counts what the format cannot hold: columns of other formats, :attr:`Trace.extra`.
    """
    if lost is not None:
        for name, values in trace.extra.items():
            lost.add(name, known(values), "no field for it")
    texts = [map(number_text, in_blocks(trace[name])) for name in FIELDS]
    jobs = [" ".join(words).encode() for words in zip(*texts, strict=True)]
    return join_lines(trace, jobs)


def write_swf(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write ``trace`` to ``path``, gzipped if that ends in ``.gz``; the file is whole or absent.

    Raises
    ------
    TraceError
        When it cannot be written.
    """
    write_file(generate_swf(trace), path)


def _looks_like(head: bytes) -> bool:
    """Whether the first line that is no comment has as many fields, the first a number."""
    words = first_line(as_bytes(head), b";").split()
    return len(words) == len(FIELDS) and words[0].lstrip(b"-").isdigit()


#: The Standard Workload Format.
SWF = Format(
    "swf",
    "Standard Workload Format 2.2",
    (".swf",),
    _looks_like,
    lambda data, source, _: parse_swf(data, source),
    lambda trace, lost, _: generate_swf(trace, lost),
)
