"""Trace formats: what a format is, the options of a file, and what a format cannot hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    checksum,
    named_json,
    read_blocks,
    read_file,
    read_head,
    write_file,
)
from hpcrowd.environment.traces.formats.common.names import NAMED, known, worded
from hpcrowd.environment.traces.formats.common.site_columns import said_by_status
from hpcrowd.environment.traces.trace import FIELDS, Trace

#: Repairs of times that several formats count.
LAST_SHOWN = "ambiguous local time (clocks put back): the second taken, which fits the other times"
NO_ZONE = "no time zone given: times taken as UTC"
BEFORE_SUBMIT = "started before it was submitted: wait taken as 0"
BEFORE_START = "ended before it started: run time unknown"


@dataclass(frozen=True)
class FormatOptions:
    """What a reader or writer must know that is not in the file.

    Attributes
    ----------
    zone
        Time zone of local times, such as ``Europe/Stockholm``; None means UTC.
    queue
        The column of Slurm's accounting that becomes the queue, field 15.
    mapping
        Names and units of the columns of your own table, a
        :class:`~hpcrowd.environment.traces.formats.tables.mapping.TableMapping`.
    format
        Name of the format of a file that is read; recognised from its content unless given.
    anonymise
        Give users, groups and programs numbers in place of names when a trace is read.
    strict
        Refuse accounting with values that cannot be read, which otherwise are unknown and counted.
    """

    zone: str | None = None
    queue: Literal["partition", "qos"] = "partition"
    mapping: Any = None
    format: str | None = None
    anonymise: bool = False
    strict: bool = False


@dataclass
class Losses:
    """What a format could not hold of a trace: jobs (or lines) by field and reason.

    Attributes
    ----------
    counts
        Number of jobs that differ after reading back, by (field, reason). Apart from the fields of
        :data:`FIELDS` there are ``header`` and ``comments``, counted in lines, and the
        names of :attr:`hpcrowd.environment.traces.trace.Trace.extra`.
    asked
        Whether the caller needs the counts; if not, checks that take long are skipped.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: bool = True

    def add(self, what: str, which: NDArray[np.bool_] | int, reason: str) -> None:
        """Count the jobs of ``which`` (a mask or a number) for a field; zero adds no entry."""
        count = int(np.count_nonzero(which)) if isinstance(which, np.ndarray) else int(which)
        if count:
            self.counts[what, reason] += count

    def unheld(self, trace: Trace, fields: Collection[str], reason: str) -> None:
        """Count the jobs with a value in one of ``fields``, which the format cannot hold."""
        for name in fields:
            self.add(name, trace[name] != UNKNOWN, reason)

    def unheld_extra(self, trace: Trace, held: Collection[str], reason: str) -> None:
        """Count the jobs with text in columns of other formats, except the columns in ``held``.

        States that the status says as well are not lost.
        """
        for name, values in trace.extra.items():
            if name not in held:
                said = said_by_status(trace) if name == "final_state" else False
                self.add(name, known(values) & ~np.asarray(said), reason)

    def unheld_lines(self, trace: Trace, reason: str) -> None:
        """Count the lines of the header and the comments, which the format cannot hold."""
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
        """Return words as a format can hold them, and count the jobs whose word changes.

        Parameters
        ----------
        name
            The field of the words.
        words
            Shape (jobs,).
        spell
            Returns a word as it is written.
        reason
            Why some words are written differently.
        read_back
            Returns a written word as it is read back.
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
            How much later the origin of ``again`` is, in s.
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
        """Return one line for each loss: the field, the number of jobs, and the reason."""
        found = []
        for (what, reason), count in self.counts.items():
            if what in ("header", "comments"):
                found.append(f"{plural(count, 'line')} of the {what}: {reason}")
            else:
                found.append(f"{what.replace('_', ' ')} of {plural(count, 'job')}: {reason}")
        return found


def without_mark(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks without the byte order mark at the beginning of the first."""
    for number, block in enumerate(blocks):
        yield block if number else block.removeprefix(BYTE_ORDER_MARK)


@dataclass(frozen=True)
class Format:
    """A trace format: how its files are recognised, read and written.

    Reading and writing comes in pairs: :meth:`parse` and :meth:`generate` on bytes, :meth:`read`
    and :meth:`write` on paths.

    Attributes
    ----------
    name
        Its name on the command line.
    title
        A short description.
    suffixes
        The endings of its file names, without ``.gz``.
    looks_like
        Returns whether a file that begins with these bytes
        (at most :data:`~hpcrowd.environment.traces.formats.common.files.HEAD`, unpacked) has this
        format.
    reader
        Makes a trace of (bytes, name for messages, options).
    writer
        Makes bytes of (trace, losses to count, options).
    longest_line
        Longest line, in bytes; longer lines are refused before they are read to their end.
    holds_names
        Whether it holds the names of users, groups and so on, or only numbers.
    nearly
        Returns why a file that begins with these bytes, and looks like something close to this
        format, is none of it, and the cure; empty for other files.
    block_reader
        Makes a trace of (blocks of whole lines, name for messages, options), for formats that need
        not have all text in memory at once; it gives the same as ``reader``.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    looks_like: Callable[[bytes], bool]
    reader: Callable[[bytes, str, FormatOptions], Trace]
    writer: Callable[[Trace, Losses, FormatOptions], bytes]
    longest_line: int = LONGEST_LINE
    holds_names: bool = True
    nearly: Callable[[bytes], str] = field(default=lambda head: "", kw_only=True)
    block_reader: Callable[[Iterable[bytes], str, FormatOptions], Trace] | None = None

    def parse(
        self, data: bytes | str, source: str = "trace", options: FormatOptions | None = None
    ) -> Trace:
        """Return the trace in ``data``.

        Parameters
        ----------
        data
            The content of a file, unpacked.
        source
            Its name in messages.
        options
            What the file itself does not say.

        Raises
        ------
        TraceError
            If it is empty, damaged or not in this format.
        ParseError
            If a line is malformed; the error names line, field and value.
        QuantityError
            If an option is not valid.
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
            What is needed besides the trace.

        Raises
        ------
        QuantityError
            If an option is not valid.
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
            What the file itself does not say.

        Raises
        ------
        TraceError
            If the file is missing, empty, damaged or not in this format.
        ParseError
            If a line is malformed; the error names line, field and value.
        QuantityError
            If an option is not valid.
        """
        try:
            if self.block_reader is None:
                data, digest = read_file(path, self.longest_line)
                trace = self.parse(data, os.fspath(path), options)
            else:
                blocks = without_mark(read_blocks(path, self.longest_line))
                trace = self.block_reader(blocks, os.fspath(path), options or FormatOptions())
                digest = checksum(path)
        except TraceError:
            if Path(path).is_file() and (what := named_json(read_head(path))):
                raise TraceError(f"{os.fspath(path)}: is {what}") from None
            raise
        trace.sha256 = digest
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
            The file; it is complete or absent.
        options
            What is needed besides the trace.

        Returns
        -------
        Losses
            What the format could not hold.

        Raises
        ------
        TraceError
            If it cannot be written.
        QuantityError
            If an option is not valid.
        """
        lost = Losses()
        write_file(self.generate(trace, lost, options), path)
        return lost
