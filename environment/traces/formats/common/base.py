"""Trace formats: what a format is, the options of a file, and what a format cannot hold.

Logs of years have a few rows that nobody can read: a negative time, ``16?`` for a size, a line that
was cut. Such a value is unknown, and its row is kept; what cannot be a job is left out. Both are
counted by reason with the first line (:class:`OddValues`), or are refused
(:attr:`FormatOptions.strict`). A log is refused either way if many values of a field are odd and
none can be read: it has another notation.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
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
    shown,
    write_file,
)
from hpcrowd.environment.traces.formats.common.names import NAMED, known, worded
from hpcrowd.environment.traces.formats.common.site_columns import said_by_status
from hpcrowd.environment.traces.headers import unix_origin
from hpcrowd.environment.traces.trace import FIELDS, LINES, Trace, as_trace

#: Odd values of a field, none of which can be read, after which the log is refused.
MANY = 10


class LeftOut(Exception):
    """Raised for a record that cannot be a job; it has been counted."""


class _Kind(NamedTuple):
    """A reason: the field, None for the whole line, and the rule."""

    name: str | None
    rule: str
    left_out: bool


@dataclass
class OddValues:
    """What could not be read of a log so far."""

    source: str  #: the file, for messages
    strict: bool  #: whether to refuse the first odd value
    #: Whether records are lines; else they are objects of a list of jobs, which begin in line 2.
    lines: bool = True
    _first: dict[_Kind, ParseError] = field(default_factory=dict)
    _count: Counter[_Kind] = field(default_factory=Counter)
    _fine: set[str] = field(default_factory=set)

    def read(
        self, line: int, name: str, text: str, convert: Callable[[str], Any], unknown: Any = None
    ) -> Any:
        """Return the value that ``convert`` makes of the text of a field; ``unknown`` if it is odd.

        ``convert`` then raises ``ValueError`` with the rule. If odd values are refused, that
        becomes a ParseError with the line.
        """
        try:
            value = convert(text)
        except ValueError as error:
            self.add(line, name, text, str(error))
            return unknown
        self._fine.add(name)
        return value

    def needed(self, line: int, name: str, text: str, convert: Callable[[str], Any]) -> Any:
        """Return a value without which a record is not a job, as :meth:`read` does.

        Raises LeftOut if it is odd, and ParseError if it is odd, and odd values are refused.
        """
        try:
            return convert(text)
        except ValueError as error:
            self.add(line, name, text, str(error), left_out=True)
            raise LeftOut from None

    @property
    def why(self) -> str:
        """The first record that was left out and the rule, as the end of a message; or empty."""
        found = [error for kind, error in self._first.items() if kind.left_out]
        first = min(found, key=lambda error: error.line, default=None)
        return "" if first is None else f"; line {first.line} is {first.rule}"

    def fine(self, name: str) -> None:
        """Note that a value of a field can be read."""
        self._fine.add(name)

    def add(
        self, line: int, name: str | None, text: str | bytes, rule: str, *, count: int = 1,
        left_out: bool = False,
    ) -> None:  # fmt: skip
        """Count what cannot be read: ``count`` fields, or whole lines without a name.

        ``line`` is that of the first one, ``text`` what is there, and ``rule`` what should be;
        ``left_out`` is whether the record is. Raises ParseError if odd values are refused.
        """
        text = text.encode("ascii", "replace") if isinstance(text, str) else text
        error = ParseError(self.source, line, name, shown(text), rule)
        if self.strict:
            raise error
        kind = _Kind(name, rule, left_out)
        if kind not in self._first or line < self._first[kind].line:
            self._first[kind] = error
        self._count[kind] += count

    def error(self, first: ParseError) -> TraceError:
        """Return the error for a value; objects are counted in the list of jobs."""
        if self.lines:
            return first
        value = shown(str(first.value).encode())
        what = f"job {first.line - 1:,} of the list, {first.field} {value!r}"
        return TraceError(f"{self.source}: {what}: {first.rule}")

    def count_into(self, repaired: Counter[str], dropped: Counter[str]) -> None:
        """Count the values that are unknown, and the records left out, by reason and first line.

        Raises TraceError if a field has :data:`MANY` odd values and none that can be read.
        """
        values = Counter({k: n for k, n in self._count.items() if k.name and not k.left_out})
        for name in {str(kind.name) for kind in values} - self._fine:
            kinds = [kind for kind in values if kind.name == name]
            if sum(values[kind] for kind in kinds) >= MANY:
                raise self.error(
                    min((self._first[kind] for kind in kinds), key=lambda one: one.line)
                )
        for kind, count in self._count.items():
            first = self._first[kind]
            where = f"line {first.line}" if self.lines else f"job {first.line - 1} of the list"
            what = f"{kind.name}: {kind.rule}" if kind.name else kind.rule
            end = "left out" if kind.left_out else "taken as unknown"
            reason = f"{LINES * self.lines}{end}: {what} (first: {where})"
            (dropped if kind.left_out else repaired)[reason] += count


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
    unfinished
        Keep jobs of Slurm's accounting that had not ended; they have the status -1.
    """

    zone: str | None = None
    queue: Literal["partition", "qos"] = "partition"
    mapping: Any = None
    format: str | None = None
    anonymise: bool = False
    strict: bool = False
    unfinished: bool = False


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

    def read_back(
        self, trace: Trace, again: Trace, reasons: Mapping[str, str], order: Int64s
    ) -> None:
        """Count what differs in fields, columns, header and comments when a log is read again.

        Parameters
        ----------
        trace, again, order
            As of :meth:`differences`.
        reasons
            For each of :data:`FIELDS`, ``header`` and ``comments``; for columns that are
            ``missing``, and those that are ``changed``, unless their own name has a reason.
        """
        moved = unix_origin(again.header) - unix_origin(trace.header)
        self.differences(trace, again, reasons, moved=moved, order=order)
        for name, values in trace.extra.items():
            before, back = values[order], again.extra.get(name)
            differ = known(before) & (True if back is None else before != back)
            why = "missing" if back is None else name if name in reasons else "changed"
            self.add(name, differ, reasons[why])
        kept = Counter(again.header.lines)
        gone = Counter(line for line in trace.header.lines if line.strip(b"; \t\r")) - kept
        self.add("header", gone.total(), reasons["header"])
        self.add("comments", len(trace.comments), reasons["comments"])

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
            The trace, or a run.
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
        write_file(self.generate(as_trace(trace), lost, options), path)
        return lost
