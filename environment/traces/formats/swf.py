r"""The Standard Workload Format, version 2.2, read and written without loss.

::

    ; Version: 2.2                          header: comment lines, "; Key: value"
    ; Information: http://www.pdc.kth.se/
    ;              continued value
    ;
       15   599850 192180   3477    4 ...   one job a line, 18 fields, -1 unknown

Fields beyond the 18th, as in logs of the simulator Alea, are not read, nor is a first line that
names the fields; both are counted. The fields are those of
:data:`environment.traces.trace.FIELDS`. Reading and writing again keeps every header line byte for
byte and every value of every job. If submissions are Unix times, they are counted from the first.

Source: Parallel Workloads Archive, definition of the Standard Workload Format.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import (
    BLOCK,
    MARK,
    TITLES,
    explain,
    is_title,
    join_lines,
    mostly,
    rows_in,
    separate,
    without_title,
)
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    in_blocks,
    is_number,
    number_text,
)
from hpcrowd.environment.traces.headers import (
    READ_AS_UNIX,
    count_from_first,
    first_unix_time,
    left_out,
)
from hpcrowd.environment.traces.trace import FIELDS, Trace, smallest

TITLE = "Standard Workload Format"

#: Fields of a job in the Grid Workload Format, which begins like this one.
OF_GWF = 29

#: Numbers of a line from which on it is nearly a job.
LEAST = 10

#: What is passed over.
MORE = f"more than {len(FIELDS)} fields: the first {len(FIELDS)} read"


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    return _parse_blocks(_blocks_of(data), source, options)


def _blocks_of(data: bytes) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin + BLOCK) + 1 or len(data)
        yield data[begin:end]
        begin = end


def _parse_blocks(blocks: Iterable[bytes], source: str, options: FormatOptions) -> Trace:
    """Return the trace in blocks of whole lines; only one block of text is kept at a time."""
    read = _Columns(source)
    for block in blocks:
        read.add(block)
    return read.trace()


class _Columns:
    """What was read of a trace so far: header, comments, and the columns block by block.

    Parameters
    ----------
    source
        The file, for messages.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.header: list[bytes] = []
        self.comments: list[tuple[int, bytes]] = []
        self.newline = b""
        self.parts: list[list[NDArray[Any]]] = [[] for _ in FIELDS]
        self.jobs = self.lines = self.titles = self.wide = 0
        self.empty = True

    def add(self, block: bytes) -> None:
        """Read the next lines."""
        if self.lines == 0 and b"\0" in block[:4096]:
            raise TraceError(f"{self.source}: is a binary file, not a trace in the {TITLE}")
        self.empty = self.empty and not block.strip()
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        # Most blocks hold jobs only, and are never split into lines.
        values = None if MARK in block else _numbers(block.removesuffix(b"\n"), lines)
        if values is None:
            values = self._separated(block)
        elif not self.newline:
            self.newline = b"\r\n" if block[: block.find(b"\n")].endswith(b"\r") else b"\n"
        table = values.reshape(-1, len(FIELDS))
        self.lines += lines
        self.jobs += len(table)
        if len(table):
            for i, parts in enumerate(self.parts):
                parts.append(smallest(table[:, i].copy()))

    def _separated(self, block: bytes) -> NDArray[np.float64]:
        """Return the numbers of the jobs in a block, and keep its other lines."""
        lines, is_job = separate(block, self.source, before=self.lines)
        jobs = list(compress(lines, is_job))
        if not self.newline and jobs:
            self.newline = b"\r\n" if jobs[0].endswith(b"\r") else b"\n"
        if jobs and not self.jobs and not self.titles and is_title(jobs[0], len(FIELDS)):
            place = is_job.index(True)
            lines[place], is_job[place], jobs = MARK + b" " + lines[place], False, jobs[1:]
            self.titles = 1
        seen = self.jobs
        for line, job in zip(lines, is_job, strict=True):
            if job:
                seen += 1
            elif seen:
                self.comments.append((seen, line))
            else:
                self.header.append(line)
        values = _numbers(b"\n".join(jobs), len(jobs))
        if values is None:
            places = np.flatnonzero(is_job) + self.lines + 1
            rows = [line.split() for line in jobs]  # as bytes, only ASCII blanks separate
            wide = sum(len(row) > len(FIELDS) for row in rows)
            rows = [row[: len(FIELDS)] for row in rows]
            values = _numbers(b"\n".join(map(b" ".join, rows)), len(rows)) if wide else None
            self.wide += wide
        if values is None:
            explain(rows, FIELDS, FIELDS, lambda job: int(places[job]), self.source, TITLE)
            raise TraceError(f"{self.source}: cannot be read as a trace")  # pragma: no cover
        return values

    def trace(self) -> Trace:
        """Return the trace of all lines."""
        if self.empty:
            raise TraceError(f"{self.source}: is empty; a trace has one line per job")
        if not self.jobs:
            raise TraceError(f"{self.source}: contains no jobs; is it a trace in the {TITLE}?")
        columns = {}
        for name, parts in zip(FIELDS, self.parts, strict=True):
            # The smallest type of the whole is the largest of the smallest types of its parts.
            columns[name] = np.concatenate(parts) if len(parts) > 1 else parts[0]
            parts.clear()
        trace = Trace(Header(self.header), columns, self.comments, self.newline, self.source)
        trace.repaired.update({MORE: self.wide} if self.wide else {})
        trace.dropped.update({TITLES: self.titles} if self.titles else {})
        trace.dropped.update(left_out(trace.header))
        count_from_first(trace)
        return trace


def _numbers(body: bytes, lines: int) -> NDArray[np.float64] | None:
    """Return all fields of all job lines, or None if a line is malformed or no job."""
    if not lines:
        return np.zeros(0)
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
    if first_unix_time(trace):
        lost.add("submit", trace["submit"] != UNKNOWN, READ_AS_UNIX)
    texts = [map(number_text, in_blocks(trace[name])) for name in FIELDS]
    jobs = (" ".join(words).encode() for words in zip(*texts, strict=True))
    return join_lines(trace, jobs)


def _looks_like(head: bytes) -> bool:
    """Return whether most lines have the fields of a job, or more, and most of them are numbers."""
    return mostly(_rows(head), lambda row: len(row) >= len(FIELDS) and len(row) != OF_GWF)


def _nearly(head: bytes) -> str:
    """Return how many numbers its lines have instead; empty if they are not numbers."""
    rows = _rows(head)
    counts = {len(row) for row in rows}
    if len(rows) < 1 or counts == {0} or len(counts) > 1 or not LEAST <= max(counts) < len(FIELDS):
        return ""
    return f"its lines have {max(counts)} numbers, those of a job {len(FIELDS)}"


def _rows(head: bytes) -> list[list[bytes]]:
    """Return the words of lines, without a line of names; none where most are not numbers."""
    rows = [line.split() for line in without_title(rows_in(head, MARK))]
    return [
        row if 2 * sum(map(is_number, row[: len(FIELDS)])) > len(FIELDS) else [] for row in rows
    ]


#: The Standard Workload Format.
SWF = Format(
    "swf",
    f"{TITLE} 2.2",
    (".swf",),
    _looks_like,
    _parse,
    _generate,
    holds_names=False,
    nearly=_nearly,
    block_reader=_parse_blocks,
)

parse_swf, generate_swf = SWF.parse, SWF.generate
read_swf, write_swf = SWF.read, SWF.write
