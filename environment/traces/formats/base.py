"""What a format of traces is, what may be told of a file, and what a format cannot hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.trace import Trace

#: What the path of a trace begins with when it names a log of the archive.
ARCHIVE_PREFIX = "archive:"

#: Bytes; a longer line is no line of a trace. Comments of accounting logs hold some thousand.
LONGEST_LINE = 2**20

#: Bytes; the same for formats that may stand in one line, such as JSON.
LONGEST_DOCUMENT = 2**28

#: Integers up to here are exact in the floating point numbers that fields are read as.
LARGEST_EXACT = 2**53

#: Bytes from the beginning of a file, unpacked, by which its format is found.
HEAD = 2**16


@dataclass(frozen=True)
class FormatOptions:
    """What a file does not say of itself.

    Attributes
    ----------
    zone
        Time zone of local times, such as ``Europe/Stockholm``; None is told as UTC.
    queue
        What of Slurm's accounting becomes the queue, field 15.
    mapping
        Names and units of the columns of a table of somebody's own.
    """

    zone: str | None = None
    queue: Literal["partition", "qos"] = "partition"
    mapping: Any = None


@dataclass
class Losses:
    """What a format could not hold of a trace, in jobs (or lines) by field and reason.

    Attributes
    ----------
    counts
        How many jobs hold something else after reading back, by (field, reason). Beside the fields
        of :data:`FIELDS` there are ``header`` and ``comments``, in lines, and the
        names of :attr:`hpcrowd.environment.traces.trace.Trace.extra`.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, what: str, which: NDArray[np.bool_] | int, reason: str) -> None:
        """Count the jobs of ``which`` (a mask, or how many) for a field; none are not told."""
        count = int(np.count_nonzero(which)) if isinstance(which, np.ndarray) else int(which)
        if count:
            self.counts[what, reason] += count

    def unheld(self, trace: Trace, fields: tuple[str, ...], reason: str) -> None:
        """Count the jobs with a value in one of ``fields``, which the format has no place for."""
        for name in fields:
            self.add(name, trace[name] != -1, reason)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def lines(self) -> list[str]:
        """Return one line for each: what, of how many jobs, and why."""
        found = []
        for (what, reason), count in self.counts.items():
            if what in ("header", "comments"):
                found.append(f"{plural(count, 'line')} of the {what}: {reason}")
            else:
                found.append(f"{what.replace('_', ' ')} of {plural(count, 'job')}: {reason}")
        return found


@dataclass(frozen=True)
class Format:
    """One format of traces.

    Attributes
    ----------
    name
        What it is called on the command line.
    title
        What it is.
    suffixes
        How names of its files end, without ``.gz``.
    looks_like
        Whether a file that begins with these bytes (:data:`HEAD` at most, unpacked) is of it.
    parse
        From (bytes, name for messages, options) to the trace.
    generate
        From (trace, losses to count, options) to bytes.
    longest_line
        Bytes; longer lines are refused before they are read whole.
    holds_names
        Whether it holds the names of users and the like, or numbers alone.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    looks_like: Callable[[bytes], bool]
    parse: Callable[[bytes, str, FormatOptions], Trace]
    generate: Callable[[Trace, Losses, FormatOptions], bytes]
    longest_line: int = LONGEST_LINE
    holds_names: bool = False


def first_line(head: bytes, comments: bytes = b"") -> bytes:
    """Return the first line that is not blank and begins with none of ``comments``, stripped."""
    for raw in head.splitlines():
        line = raw.strip()
        if line and line[:1] not in {comments[i : i + 1] for i in range(len(comments))}:
            return line
    return b""


def as_bytes(data: Any) -> bytes:
    """Return text as bytes, in UTF-8; bytes as they are, without the mark that some begin with."""
    return (data.encode() if isinstance(data, str) else bytes(data)).removeprefix(b"\xef\xbb\xbf")
