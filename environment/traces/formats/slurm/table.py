"""The text of Slurm's accounting as columns: header, delimiter, rows of jobs and rows of steps.

Arrow splits the lines, a piece at a time, and only the columns that are used are extracted. Each
piece is converted to numbers at once; only distinct words are parsed. If anything does not fit,
rows broken by the names in them are repaired, see
:mod:`hpcrowd.environment.traces.formats.slurm.mending`. If there still are odd values, a slow
second pass counts them, or finds the first bad line
(:mod:`hpcrowd.environment.traces.formats.common.base`).
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.base import OddValues
from hpcrowd.environment.traces.formats.common.files import BYTE_ORDER_MARK, LONGEST_LINE, shown
from hpcrowd.environment.traces.formats.slurm import values
from hpcrowd.environment.traces.formats.slurm.columns import (
    COMMAND,
    ENERGY,
    ID,
    MEMORY,
    NEEDED,
    NO_ID,
    OF_STEPS,
    READ_AS,
    STEP,
    SUBMIT_LINE,
    TASKS,
    WORDS,
    Layout,
    explain_header,
    find_layout,
    lines_of,
)
from hpcrowd.environment.traces.formats.slurm.mending import FREE_TEXT, Columns, Mended, mend
from hpcrowd.environment.traces.formats.slurm.values import (
    FIRST_TIME,
    LAST_TIME,
    NO_TIME,
    SINCE_1970,
    parse_duration,
    parse_time,
    parse_used_memory,
)

if TYPE_CHECKING:
    import pyarrow as pa


#: Bytes that Arrow splits at a time; more than a line may have.
PIECE = 2**21

#: Bytes of a time as sacct writes it, of one with its offset (Z, +0100 or +01:00), of a Unix time.
LOCAL, WITH_OFFSET, UNIX = frozenset((19,)), frozenset((20, 24, 25)), frozenset((9, 10))

_ID, _STEP = re.compile(ID.encode(), re.DOTALL), re.compile(STEP.encode())
_SOMETHING = re.compile(rb"\S")
_ZERO = re.compile(rb"[^\r\n]*\0[^\r\n]*")
_BLANK_LINE = re.compile(rb"(?:(?<=[\r\n])|\A)[ \t\v\f]+(?=[\r\n]|\Z)")


class _Piece(NamedTuple):
    """Some rows of the text, and their places in it."""

    rows: pa.RecordBatch
    place: Int64s


class _Refused(Exception):
    """Raised for a malformed piece of the text; the slow pass finds out why."""


class Rows(NamedTuple):
    """The rows of a text, column by column."""

    #: Rows of jobs and of steps, counted from 0 in the order of the text.
    place: Int64s
    step_place: Int64s
    #: Index into ``ids`` of the job number of each row.
    job: Int64s
    step_job: Int64s
    ids: list[str]  #: the distinct job numbers, as text
    #: Columns of job rows by key: s, processors, times as
    #: :func:`~hpcrowd.environment.traces.formats.slurm.values.parse_time` gives them.
    numbers: dict[str, NDArray[Any]]
    #: Columns of job rows by name: index of each row's word, and the words.
    words: dict[str, tuple[NDArray[Any], list[bytes]]]
    #: Largest memory of a task, kB, else the average; -1 if unknown.
    memory: NDArray[np.float64]
    step_memory: NDArray[np.float64]
    #: Number of tasks; -1 if unknown.
    tasks: Int64s
    step_tasks: Int64s
    step_cluster: NDArray[Any]  #: clusters of the steps, as in ``words``
    #: J; -1 if unknown.
    energy: Int64s
    step_energy: Int64s
    #: Names of the steps, such as ``batch``, as in ``words``.
    step_name: tuple[NDArray[Any], list[bytes]]
    mended: Mended | None = None  #: what was repaired in the text; None if nothing
    unused: Sequence[str] = ()  #: columns that are not read, as the header spells them
    odd: OddValues | None = None  #: what could not be read; None if everything could

    def decoded(self, column: str) -> tuple[NDArray[Any], list[str]]:
        """Return a column of words as texts: index of each row's text, and the texts."""
        codes, words = self.words[column]
        return codes, [decode(word) for word in words]

    def restored(self, back: Mapping[bytes, bytes]) -> Rows:
        """Return rows with other bytes in their free text, those in ``back``."""

        def whole(word: bytes) -> bytes:
            for sign, meant in back.items():
                word = word.replace(sign, meant)
            return word

        words = {
            name: (codes, list(map(whole, texts)) if name in FREE_TEXT else texts)
            for name, (codes, texts) in self.words.items()
        }
        return self._replace(words=words)


def read_rows(data: bytes, odd: OddValues) -> Rows:
    """Read a text of Slurm's accounting; ``odd`` counts or refuses what cannot be read.

    Raises TraceError if it contains no jobs, and ParseError, which names the first such line, if
    the header lacks columns, or a row is malformed and that is refused.
    """
    source = odd.source
    layout = find_layout(data[: 2 * LONGEST_LINE])
    if layout is None:
        explain_header(data, source)
    assert layout is not None
    for names in NEEDED:
        if not {name.lower() for name in names} & set(layout.names):
            rule = f"no column {' or '.join(names)}; write the file with {COMMAND}"
            raise ParseError(source, layout.line, None, shown(layout.header)[:40], rule)
    if (zero := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, zero) + 1
        rule = "a zero byte; not text"
        if odd.strict or zero < layout.begin:
            raise ParseError(source, line, None, "\\0", rule)
        lines = [number for number, text in lines_of(data, 0, 1) if b"\0" in text]
        odd.add(lines[0], None, b"", rule, count=len(lines), left_out=True)
        data = _ZERO.sub(b"", data)
    if not _SOMETHING.search(data, layout.begin):
        raise TraceError(f"{source}: contains no jobs, only a header")
    body = data[layout.begin :]
    if len(layout.delimiter) > 1:
        layout, body = _single(layout, body)
    reading = _Reading(layout, _line_ends(body))
    try:
        reading.read(memoryview(body))
    except _Refused:
        return _mended(body, layout, odd, reading.rows)._replace(odd=odd)
    return reading.finished()._replace(odd=odd if zero >= 0 else None)


def _line_ends(body: bytes) -> int:
    """Return an upper bound of the number of lines."""
    return body.count(b"\n") + body.count(b"\r") + 1


def _single(layout: Layout, body: bytes) -> tuple[Layout, bytes]:
    """Return a text whose delimiter is one byte, which it does not contain otherwise."""
    byte = next(one for one in map(chr, range(31, 0, -1)) if one not in "\t\n\v\f\r"
                and one.encode() not in body).encode()  # fmt: skip
    header = layout.header.replace(layout.delimiter, byte)
    single = replace(layout, delimiter=byte, header=header, mark=layout.delimiter)
    return single, body.replace(layout.delimiter, byte)


def _mended(body: bytes, layout: Layout, odd: OddValues, rows: int) -> Rows:
    """Return the rows of a text that cannot be read as it is.

    Raises ParseError if a row is malformed, and not only broken, and that is refused, or if none
    can be read; the error names the first such line.
    """
    source = odd.source
    checks = _checks(layout)
    used = [name for name in layout.places if name != SUBMIT_LINE]  # only searched for options
    columns = Columns(
        layout.names, used, checks, _ID.fullmatch, layout.id,
        lambda words: _fault(words, layout, checks) is None,
    )  # fmt: skip
    mended = None
    lines: Iterable[tuple[int, bytes]] = enumerate(body.splitlines(), layout.line + 1)
    for thorough in (False, True):
        mended = mend(body, layout.line + 1, layout.delimiter, columns, thorough=thorough)
        if mended is None:
            continue
        if not any(mended.rows) and mended.left_out:
            _explain(lines, layout, source, 0, checks)
        repaired = b"\n".join(mended.rows)
        reading = _Reading(layout, _line_ends(repaired))
        with contextlib.suppress(_Refused):
            reading.read(memoryview(repaired))
            break
    else:
        if mended is not None:
            lines = zip(mended.lines, mended.rows, strict=True)
            body = repaired
        if odd.strict:
            _explain(lines, layout, source, rows if mended is None else reading.rows, checks)
            reading = _Reading(layout, _line_ends(body))  # only blank lines can be wrong
            body = _BLANK_LINE.sub(b"", body)
        else:
            lines = list(lines)
            numbers, kept = _readable(lines, layout, odd)
            if not kept:
                _explain(lines, layout, source, 0, checks)
            reading = _Reading(layout, len(kept), odd, np.array(numbers, np.int64))
            body = b"\n".join(kept)
        try:
            reading.read(memoryview(body))
        except _Refused:
            raise TraceError(f"{source}: cannot be read as Slurm's accounting") from None
    found = reading.finished()
    return found if mended is None else found.restored(mended.back)._replace(mended=mended)


def _checks(layout: Layout) -> dict[str, Callable[[bytes], Any]]:
    """Return the parsers of the columns in use."""
    checks: dict[str, Callable[[bytes], Any]] = {**WORDS, **MEMORY, TASKS: values.parse_count}
    for name in layout.places:
        if (key := layout.key(name)) is not None:
            checks[name] = READ_AS[key][name]
        elif name in ENERGY and name not in WORDS:
            checks[name] = ENERGY[name]
    return checks


@dataclass
class _Reading:
    """The rows read so far, piece by piece."""

    layout: Layout
    most: int  # upper bound of the number of rows
    odd: OddValues | None = None  # counts values that cannot be read, which else are refused
    lines: Int64s | None = None  # the line of each row
    rows: int = 0
    ids: list[pa.Array] = field(default_factory=list)
    step_ids: list[pa.Array] = field(default_factory=list)
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    codes: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def read(self, body: memoryview) -> None:
        """Read all rows.

        Raises _Refused if one is malformed; ``rows`` is the number of rows read before its piece.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow

        names = [str(place) for place in range(len(self.layout.names))]
        used = {name: str(place) for name, place in self.layout.places.items()}
        try:
            reader = arrow.open_csv(
                pa.BufferReader(pa.py_buffer(body)),
                arrow.ReadOptions(use_threads=False, block_size=PIECE, column_names=names),
                arrow.ParseOptions(
                    delimiter=self.layout.delimiter.decode("latin-1"),
                    quote_char=False,
                    double_quote=False,
                    escape_char=False,
                ),
                arrow.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(used.values(), pa.binary()),
                    include_columns=list(used.values()),
                    strings_can_be_null=False,
                ),
            )
            for batch in reader:
                self._add(batch.rename_columns(list(used)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _Refused from None

    def _add(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        place = np.arange(self.rows, self.rows + len(batch))
        ids = batch.column(self.layout.id)
        step = np.asarray(pc.match_substring_regex(ids, STEP))
        header = np.asarray(pc.equal(ids, self.layout.called(self.layout.id).encode()))
        if header.any():
            self._check_headers(batch.filter(pa.array(header)))
        fine = np.asarray(pc.match_substring_regex(ids, ID))
        if not np.all(fine | header):
            raise _Refused
        jobs = _Piece(batch.filter(pa.array(~step & ~header)), place[~step & ~header])
        steps = _Piece(batch.filter(pa.array(step)), place[step])
        for name in self.layout.places:
            key = self.layout.key(name)
            if key in ("submit", "start", "end", "eligible"):
                self._keep(key, self._times(jobs, name))
            elif key is not None:
                self._keep(key, self._numbers(jobs, name, READ_AS[key][name]))
            if name in WORDS:
                self._keep(name, self._coded(name, jobs.rows.column(name), jobs.place))
        for rows, which in ((jobs, ""), (steps, "step_")):
            self._keep(f"{which}memory", self._memory(rows))
            self._keep(f"{which}tasks", self._of_column(rows, TASKS, values.parse_count))
            energy = self.layout.energy
            self._keep(f"{which}energy", self._of_column(rows, energy, ENERGY.get(energy or "")))
            self._keep(f"{which}place", rows.place)
        if "cluster" in self.layout.places:
            column = steps.rows.column("cluster")
            self._keep("step_cluster", self._coded("cluster", column, steps.place))
        self.ids.append(jobs.rows.column(self.layout.id))
        numbers = steps.rows.column(self.layout.id)
        numbers = pc.split_pattern(numbers, ".", max_splits=1, reverse=True)
        self.step_ids.append(pc.list_element(numbers, 0))
        names = pc.list_element(numbers, 1)
        self._keep("step_name", self._coded("step_name", names, steps.place))
        self.rows += len(batch)

    def _check_headers(self, lines: pa.RecordBatch) -> None:
        """Refuse lines that begin like the header but differ from it."""
        for name in self.layout.places:
            if set(lines.column(name).to_pylist()) != {self.layout.called(name).encode("latin-1")}:
                raise _Refused

    def _keep(self, name: str, part: NDArray[Any]) -> None:
        """Append a piece to a column.

        A column has its largest possible length from the beginning: memory that is never written
        to costs nothing, and many small arrays would fragment the heap.
        """
        if name not in self.columns:
            self.columns[name] = np.empty(self.most, part.dtype)
        begin = self.held[name]
        self.columns[name][begin : begin + len(part)] = part
        self.held[name] += len(part)

    def _memory(self, rows: _Piece) -> NDArray[np.float64]:
        memory = np.full(len(rows.place), -1.0)
        for name in MEMORY:
            if name in self.layout.places:
                found = self._numbers(rows, name, MEMORY[name])
                memory = np.where(memory < 0, found, memory)
        return memory

    def _of_column(
        self, rows: _Piece, name: str | None, convert: Callable[[bytes], Any] | None
    ) -> Int64s:
        """Return a column as numbers; -1 for all if there is none."""
        if name not in self.layout.places or convert is None:
            return np.full(len(rows.place), -1)
        return self._numbers(rows, name, convert)

    def _coded(self, name: str, column: pa.Array, place: Int64s) -> NDArray[np.int32]:
        """Return the index of each word among the distinct ones so far."""
        table = self.codes.setdefault(name, {})
        encoded = column.dictionary_encode()
        words, codes = (
            encoded.dictionary.to_pylist(),
            encoded.indices.to_numpy(zero_copy_only=False),
        )
        check = WORDS.get(name, decode)
        numbers = []
        for code, word in enumerate(words):
            if word not in table:
                try:
                    check(word)
                except ValueError as error:
                    self._count(name, word, error, place[codes == code])
                    word = b""
            numbers.append(table.setdefault(word, len(table)))
        if check is not decode and any(words):
            self._fine(name)
        return np.asarray(np.array(numbers, np.int32)[codes])

    def _numbers(self, rows: _Piece, name: str, convert: Callable[[bytes], Any]) -> NDArray[Any]:
        """Return a column as numbers; each distinct word is parsed once."""
        encoded = rows.rows.column(name).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        kind = np.float64 if convert in (parse_duration, parse_used_memory) else np.int64
        found = []
        unknown = NO_TIME if convert is parse_time else -1
        for code, word in enumerate(encoded.dictionary.to_pylist()):
            try:
                found.append(convert(word))
            except ValueError as error:
                self._count(name, word, error, rows.place[codes == code])
                found.append(unknown)
        table = np.array(found, kind)
        if np.any(table != unknown):
            self._fine(name)
        return np.asarray(table[codes])

    def _times(self, rows: _Piece, name: str) -> Int64s:
        """Return a column as times: all at once in sacct's notation, else word by word."""
        found = _times(rows.rows.column(name))
        return self._numbers(rows, name, parse_time) if found is None else found

    def _fine(self, name: str) -> None:
        if self.odd is not None:
            self.odd.fine(self.layout.called(name))

    def _count(self, name: str, word: bytes, error: ValueError, place: Int64s) -> None:
        """Count rows with a word that cannot be read.

        Raises _Refused if such words are not counted.
        """
        if self.odd is None or self.lines is None:
            raise _Refused from None
        line = int(self.lines[place[0]])
        self.odd.add(line, self.layout.called(name), word, str(error), count=len(place))

    def finished(self) -> Rows:
        """Return all rows that were read."""
        import pyarrow as pa

        ids = pa.chunked_array([*self.ids, *self.step_ids], pa.binary()).dictionary_encode()
        ids = ids.combine_chunks()
        ids = ids.chunk(0) if isinstance(ids, pa.ChunkedArray) else ids
        codes = ids.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        jobs = sum(map(len, self.ids))
        whole = {name: column[: self.held[name]] for name, column in self.columns.items()}
        words = {
            name: (whole[name], list(table)) for name, table in self.codes.items() if name in whole
        }
        nothing = np.full(len(codes) - jobs, -1, np.int32)
        return Rows(
            whole["place"],
            whole["step_place"],
            codes[:jobs],
            codes[jobs:],
            [decode(word) for word in ids.dictionary.to_pylist()],
            {key: whole[key] for key in READ_AS if key in whole},
            words,
            whole["memory"],
            whole["step_memory"],
            whole["tasks"],
            whole["step_tasks"],
            whole.get("step_cluster", nothing),
            whole["energy"],
            whole["step_energy"],
            words.pop("step_name"),
            unused=self.layout.unused,
        )


def _times(column: pa.Array) -> Int64s | None:
    """Return a column as times; None if they are not all in one of sacct's notations."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known_texts = pc.invert(pc.is_in(column, value_set=pa.array([b"Unknown", b"None", b""])))
    lengths = set(pc.unique(pc.binary_length(column.filter(known_texts))).to_pylist())
    kind, first, add = pa.timestamp("s"), FIRST_TIME, 0
    if lengths <= WITH_OFFSET:
        kind, add = pa.timestamp("s", "UTC"), SINCE_1970
    elif lengths <= UNIX:
        kind, first, add = pa.int64(), 1, SINCE_1970
    elif not lengths <= LOCAL:
        return None
    try:
        texts = pc.if_else(known_texts, column, pa.scalar(None, pa.binary())).cast(pa.string())
        if lengths <= UNIX and not pc.all(pc.ascii_is_decimal(texts)).as_py():
            return None
        seconds = texts.cast(kind).cast(pa.int64()).fill_null(NO_TIME)
    except pa.ArrowInvalid:
        return None
    times = seconds.to_numpy(zero_copy_only=False)
    known = times != NO_TIME
    if np.all(~known | ((times >= first) & (times < LAST_TIME))):
        return np.asarray(np.where(known, times + add, NO_TIME))
    return None


def _explain(
    lines: Iterable[tuple[int, bytes]], layout: Layout, source: str, rows: int,
    checks: dict[str, Callable[[bytes], Any]],
) -> None:  # fmt: skip
    """Raise the error for the first malformed line after ``rows`` rows, if there is one."""
    header = {name: layout.called(name).encode("latin-1") for name in layout.places}
    row = 0
    for number, line in lines:
        if not line.strip(b" \t\v\f"):
            continue
        row += 1
        if row == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)  # as Arrow does
        if row <= rows:
            continue
        words = line.split(layout.delimiter)
        if (rule := _misshapen(line, words, layout)) is not None:
            text = layout.mark.join(words) if layout.mark else line
            raise ParseError(source, number, None, shown(text), rule)
        if all(words[place] == header[name] for name, place in layout.places.items()):
            continue  # a repeated header
        if (fault := _fault(words, layout, checks)) is not None:
            name, word, rule = fault
            raise ParseError(source, number, layout.called(name), shown(word), rule)


def _misshapen(line: bytes, words: Sequence[bytes], layout: Layout) -> str | None:
    """Return why a line is not a row of the header; None if it is one."""
    if len(line) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE:,} bytes, the limit for a line of a trace"
    if len(words) == len(layout.names):
        return None
    found, mark = plural(len(words), "value"), layout.mark or layout.delimiter
    return f"{found}, but the header has {len(layout.names)}, separated by {shown(mark)!r}"


def _readable(
    lines: Iterable[tuple[int, bytes]], layout: Layout, odd: OddValues
) -> tuple[list[int], list[bytes]]:
    """Return the lines that may be of a job or step, with their numbers; count the others.

    Raises ParseError if a second header has other columns: what follows would be taken for
    something else.
    """
    at, state = layout.names.index(layout.id), layout.names.index("state")
    check = cache(_is_state)
    header = layout.called(layout.id).lower().encode("latin-1")
    numbers: list[int] = []
    kept: list[bytes] = []
    for number, line in lines:
        line = line if kept else line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip(b" \t\v\f"):
            continue
        words = line.split(layout.delimiter)
        rule, name = _misshapen(line, words, layout), None
        if rule is None and not _ID.fullmatch(words[at]):
            if line == layout.header:
                continue
            if header in [word.strip().lower() for word in words]:
                rule = "a second header with other columns; read the files one by one"
                raise ParseError(odd.source, number, layout.called(layout.id), shown(line), rule)
            rule, name = NO_ID, layout.id
        elif rule is None and not _STEP.search(words[at]) and not check(words[state]):
            rule, name = "not a known job state", "state"
        if rule is None:
            numbers.append(number)
            kept.append(line)
        else:
            word = line if name is None else words[layout.names.index(name)]
            odd.add(number, name and layout.called(name), word, rule, left_out=True)
    return numbers, kept


def _is_state(word: bytes) -> bool:
    try:
        values.parse_state(word)
    except ValueError:
        return False
    return True


def _fault(
    words: Sequence[bytes], layout: Layout, checks: Mapping[str, Callable[[bytes], Any]]
) -> tuple[str, bytes, str] | None:
    """Return column, word and rule of the first malformed word of a row; None if all are fine."""
    job_id = words[layout.names.index(layout.id)]
    if not _ID.fullmatch(job_id):
        return layout.id, job_id, NO_ID
    step = _STEP.search(job_id)
    for name, place in layout.places.items():
        if step and name not in OF_STEPS:
            continue
        try:
            checks.get(name, decode)(words[place])
        except ValueError as error:
            return name, words[place], str(error)
    return None
