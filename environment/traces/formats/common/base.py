"""What a format of traces is, what may be said of a file, and what a format cannot hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    read_file,
    write_file,
)
from hpcrowd.environment.traces.formats.common.names import NAMED, known, worded
from hpcrowd.environment.traces.trace import FIELDS, Trace

#: What is repaired in times, as several formats count it.
LAST_SHOWN = "a time that clocks showed twice: the second taken, which fits the other times"
BEFORE_SUBMIT = "started before it was submitted: wait taken as 0"
BEFORE_START = "ended before it started: run time unknown"


@dataclass(frozen=True)
class FormatOptions:
    """What a file does not say of itself.

    Attributes
    ----------
    zone
        Time zone of local times, such as ``Europe/Stockholm``; None means UTC.
    queue
        What of Slurm's accounting becomes the queue, field 15.
    mapping
        Names and units of the columns of a table of your own, a
        :class:`~hpcrowd.environment.traces.formats.tables.mapping.TableMapping`.
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
    asked
        Whether anybody wants to know; what takes long to find is left out otherwise.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: bool = True

    def add(self, what: str, which: NDArray[np.bool_] | int, reason: str) -> None:
        """Count the jobs of ``which`` (a mask, or how many) for a field; none are not listed."""
        count = int(np.count_nonzero(which)) if isinstance(which, np.ndarray) else int(which)
        if count:
            self.counts[what, reason] += count

    def unheld(self, trace: Trace, fields: Collection[str], reason: str) -> None:
        """Count the jobs with a value in one of ``fields``, which the format has no place for."""
        for name in fields:
            self.add(name, trace[name] != UNKNOWN, reason)

    def unheld_extra(self, trace: Trace, held: Collection[str], reason: str) -> None:
        """Count the jobs with text in columns of other formats, but for those that are ``held``."""
        for name, values in trace.extra.items():
            if name not in held:
                self.add(name, known(values), reason)

    def unheld_lines(self, trace: Trace, reason: str) -> None:
        """Count the lines of the header and the comments, which the format has no place for."""
        self.add("header", len(trace.header.lines), reason)
        self.add("comments", len(trace.comments), reason)

    def respelled(
        self,
        name: str,
        words: list[str],
        spell: Callable[[str], str],
        reason: str,
        read_back: Callable[[str], str] = str,
    ) -> list[str]:
        """Return words as a format can hold them, and count the jobs whose word that changes.

        Parameters
        ----------
        name
            The field that the words are of.
        words
            Shape (jobs,).
        spell
            From a word to how it is written.
        reason
            Why some are written otherwise.
        read_back
            From what is written to what is read.
        """
        table = {word: spell(word) for word in set(words)}
        changed = {word for word, text in table.items() if word and read_back(text) != word}
        self.add(name, sum(word in changed for word in words), reason)
        return [table[word] for word in words]

    def differences(
        self,
        trace: Trace,
        again: Trace,
        reasons: Mapping[str, str],
        *,
        moved: int = 0,
        order: Int64s | slice = slice(None),
    ) -> None:
        """Count the jobs whose fields differ after reading back what was written.

        Parameters
        ----------
        trace, again
            Before and after.
        reasons
            Why a field may differ, for each of :data:`FIELDS`.
        moved
            How much later the origin of ``again`` is, s.
        order
            The jobs of ``trace`` in the order of ``again``.
        """
        for name in FIELDS:
            if name in NAMED:
                words, back = (np.array(worded(one, name), object) for one in (trace, again))
                self.add(name, words[order] != back, reasons[name])
                continue
            before, after = trace[name][order].astype(np.float64), again[name].astype(np.float64)
            if name == "submit":
                after = np.where(after == UNKNOWN, UNKNOWN, after + moved)
            self.add(name, before != after, reasons[name])

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
    """One format of traces: what recognises its files, and how they are read and written.

    Reading and writing comes in pairs: :meth:`parse` and :meth:`generate` on bytes, :meth:`read`
    and :meth:`write` on paths.

    Attributes
    ----------
    name
        What it is called on the command line.
    title
        What it is.
    suffixes
        How names of its files end, without ``.gz``.
    looks_like
        Whether a file that begins with these bytes
        (:data:`~hpcrowd.environment.traces.formats.common.files.HEAD` at most, unpacked) is of it.
    reader
        From (bytes, name for messages, options) to the trace.
    writer
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
    reader: Callable[[bytes, str, FormatOptions], Trace]
    writer: Callable[[Trace, Losses, FormatOptions], bytes]
    longest_line: int = LONGEST_LINE
    holds_names: bool = True

    def parse(
        self, data: bytes | str, source: str = "trace", options: FormatOptions | None = None
    ) -> Trace:
        """Return the trace that data in this format hold.

        Parameters
        ----------
        data
            The content of a file, unpacked.
        source
            What messages call it.
        options
            What it does not say of itself.

        Raises
        ------
        TraceError
            When it is empty, damaged or something else.
        ParseError
            When a line is malformed; it names line, field and value.
        QuantityError
            When the options say something that cannot be.
        """
        content = data.encode() if isinstance(data, str) else bytes(data)
        content = content.removeprefix(BYTE_ORDER_MARK)
        return self.reader(content, source, options or FormatOptions())

    def generate(
        self, trace: Trace, lost: Losses | None = None, options: FormatOptions | None = None
    ) -> bytes:
        """Return a trace as data in this format.

        Parameters
        ----------
        trace
            The trace.
        lost
            Counts what the format cannot hold.
        options
            What writing needs to know beside the trace.

        Raises
        ------
        QuantityError
            When the options say something that cannot be.
        """
        lost = Losses(asked=False) if lost is None else lost
        return self.writer(trace, lost, options or FormatOptions())

    def read(self, path: str | os.PathLike[str], options: FormatOptions | None = None) -> Trace:
        """Read a trace in this format, plain or gzipped.

        Parameters
        ----------
        path
            The file.
        options
            What it does not say of itself.

        Raises
        ------
        TraceError
            When the file is missing, empty, damaged or something else.
        ParseError
            When a line is malformed; it names line, field and value.
        QuantityError
            When the options say something that cannot be.
        """
        data, checksum = read_file(path, self.longest_line)
        trace = self.parse(data, os.fspath(path), options)
        trace.sha256 = checksum
        return trace

    def write(
        self, trace: Trace, path: str | os.PathLike[str], options: FormatOptions | None = None
    ) -> Losses:
        """Write a trace in this format, gzipped if the name ends in ``.gz``.

        Parameters
        ----------
        trace
            The trace.
        path
            The file; it is whole or absent.
        options
            What writing needs to know beside the trace.

        Returns
        -------
        Losses
            What the format could not hold.

        Raises
        ------
        TraceError
            When it cannot be written.
        QuantityError
            When the options say something that cannot be.
        """
        lost = Losses()
        write_file(self.generate(trace, lost, options), path)
        return lost
