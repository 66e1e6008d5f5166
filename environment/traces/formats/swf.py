r"""The Standard Workload Format, version 2.2, read and written without loss.

::

    ; Version: 2.2                          header: comment lines, "; Key: value"
    ; Information: http://www.pdc.kth.se/
    ;              continued value
    ;
       15   599850 192180   3477    4 ...   one job a line, 18 fields, -1 unknown

The fields are those of :data:`environment.traces.trace.FIELDS`. Reading and writing again keeps
every header line byte for byte and every value of every job.

Source: Parallel Workloads Archive, definition of the Standard Workload Format.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import (
    first_line,
    join_lines,
    split_lines,
)
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT, in_blocks, number_text
from hpcrowd.environment.traces.trace import FIELDS, Trace, smallest

TITLE = "Standard Workload Format"


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    lines = split_lines(data, source, TITLE)
    values = _numbers(b"\n".join(lines.jobs), len(lines.jobs))
    if values is None:
        rows = [line.split() for line in lines.jobs]  # as bytes, only ASCII blanks separate
        lines.explain(rows, FIELDS, FIELDS)
        raise TraceError(f"{source}: cannot be read as a trace")  # pragma: no cover
    table = values.reshape(-1, len(FIELDS))
    columns = {name: smallest(table[:, i].copy()) for i, name in enumerate(FIELDS)}
    return Trace(lines.header, columns, lines.comments, lines.newline, source)


def _numbers(body: bytes, lines: int) -> NDArray[np.float64] | None:
    """Return all fields of all job lines, or None if a line is malformed."""
    characters = np.frombuffer(body + b"\n", np.uint8)
    blank = characters <= ord(" ")
    begins = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    if not blank[0]:
        begins = np.concatenate(([0], begins))
    ends = np.flatnonzero(characters == ord("\n"))
    fields = np.diff(np.searchsorted(begins, ends), prepend=0)
    if np.any(fields != len(FIELDS)):
        return None
    # Whole numbers are read three times as fast as such; most traces have no others.
    count, values = lines * len(FIELDS), None
    if b"." not in body and _signs_begin_numbers(characters):
        values = _read(body, np.int64)
    if values is None or len(values) != count:
        values = _read(body, np.float64)
    if values is None or len(values) != count:
        return None
    values = values.astype(np.float64, copy=False)
    return values if np.all(np.abs(values) <= LARGEST_EXACT) else None


def _read(body: bytes, kind: type[np.number[Any]]) -> NDArray[Any] | None:
    """Return the numbers of a text; None when something in it is none of this kind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.fromstring(body.decode("ascii"), dtype=kind, sep=" ")
    except (ValueError, DeprecationWarning):
        return None


def _signs_begin_numbers(characters: NDArray[np.uint8]) -> bool:
    """Return whether each sign has a blank before it and a digit after it."""
    signs = np.flatnonzero((characters == ord("-")) | (characters == ord("+")))
    after = characters[signs + 1]
    return bool(
        np.all(characters[signs[signs > 0] - 1] <= ord(" "))
        and np.all((ord("0") <= after) & (after <= ord("9")))
    )


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    lost.unheld_extra(trace, (), "no field for it")
    texts = [map(number_text, in_blocks(trace[name])) for name in FIELDS]
    jobs = [" ".join(words).encode() for words in zip(*texts, strict=True)]
    return join_lines(trace, jobs)


def _looks_like(head: bytes) -> bool:
    """Return whether the first line that is not a comment has 18 fields, the first a number."""
    words = first_line(head, b";").split()
    return len(words) == len(FIELDS) and words[0].lstrip(b"-").isdigit()


#: The Standard Workload Format.
SWF = Format("swf", f"{TITLE} 2.2", (".swf",), _looks_like, _parse, _generate, holds_names=False)

parse_swf, generate_swf = SWF.parse, SWF.generate
read_swf, write_swf = SWF.read, SWF.write
