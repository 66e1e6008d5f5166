"""The text of Slurm's accounting as columns: header, delimiter, rows of jobs and rows of steps.

Arrow splits the lines, a piece at a time, and only the columns that are used are extracted. Each
piece is converted to numbers at once; only distinct words are parsed. If anything does not fit,
rows broken by the names in them are repaired, see
:mod:`hpcrowd.environment.traces.formats.slurm.mending`,
and a slow second pass finds the first bad line if there still is one.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.traces.formats.common.files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    shown,
)
from hpcrowd.environment.traces.formats.slurm import values
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


#: The columns in use, in the order in which they are written.
COLUMNS = (
    *("JobID", "User", "Account", "JobName", "Partition", "QOS", "Cluster", "Submit", "Start"),
    *("End", "ElapsedRaw", "State", "AllocCPUS", "ReqCPUS", "NNodes", "TimelimitRaw", "ReqMem"),
    *("MaxRSS", "TotalCPU"),
)

#: A command that writes them.
COMMAND = f"sacct -a -D -P -S now-90days --format={','.join(COLUMNS)}"

#: Key and parser of each column, by its name in lower case; of several columns with the same key
#: the first one in the header counts.
READ_AS: dict[str, dict[str, Callable[[bytes], Any]]] = {
    "submit": {"submit": parse_time},
    "start": {"start": parse_time},
    "end": {"end": parse_time},
    "eligible": {"eligible": parse_time},
    "suspended": {"suspended": values.parse_seconds},
    "elapsed": {"elapsedraw": values.parse_whole, "elapsed": values.parse_seconds},
    "allocated": {"alloccpus": values.parse_count, "ncpus": values.parse_count,
                  "alloctres": values.parse_cpus},
    "requested": {"reqcpus": values.parse_count, "reqtres": values.parse_cpus},
    "nodes": {"nnodes": values.parse_count, "allocnodes": values.parse_count,
              "reqnodes": values.parse_count},
    "limit": {"timelimitraw": values.parse_limit_minutes, "timelimit": values.parse_limit},
    "total_cpu": {"totalcpu": values.parse_duration},
}  # fmt: skip

#: Columns of words that become columns beyond the fields, and the names of these.
SITE_WORDS = {
    "AllocTRES": "alloc_tres", "ReqTRES": "req_tres", "NodeList": "node_list",
    "Reservation": "reservation", "Constraints": "constraints", "ExitCode": "exit_code",
    "Priority": "priority",
}  # fmt: skip

#: The column of words whose options are searched.
SUBMIT_LINE = "submitline"

#: Columns of words, which are numbered when everything has been read.
WORDS: dict[str, Callable[[bytes], Any]] = {
    "state": values.parse_state,
    "reqmem": values.parse_requested_memory,
    **dict.fromkeys(
        ("user", "uid", "account", "group", "gid", "jobname", "partition", "qos", "cluster"), decode
    ),
    **dict.fromkeys((*map(str.lower, SITE_WORDS), SUBMIT_LINE), decode),
}

#: Columns of steps.
MEMORY = {"maxrss": values.parse_used_memory, "averss": values.parse_used_memory}

#: Columns with the energy of jobs and of steps; the first one in use counts, J.
ENERGY: dict[str, Callable[[bytes], Any]] = {
    "consumedenergyraw": values.parse_energy,
    "consumedenergy": values.parse_energy,
    "alloctres": values.parse_energy_of,
}

#: Columns with job numbers. The second knows neither arrays nor heterogeneous jobs.
IDS = ("jobid", "jobidraw")

#: Groups of columns; one of each group is required.
NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("State",),
    ("Start", "End"),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES"),
)

#: A job, a task of an array, the rest of an array, or a part of a heterogeneous job; a step.
ID = r"^[0-9]{1,18}(_[0-9]{1,18}|_\[[-0-9,:%.]*\]?|\+[0-9]{1,18})?(\.[^.]*)?$"

#: Of these a step: the points in ``77_[1,3,...]`` do not make one.
STEP = r"^[^\[]*\.|\]\."

#: Bytes that Arrow splits at a time; more than a line may have.
PIECE = 2**21

#: Bytes of a time as sacct writes it, of one with its offset (Z, +0100 or +01:00), of a Unix time.
LOCAL, WITH_OFFSET, UNIX = frozenset((19,)), frozenset((20, 24, 25)), frozenset((9, 10))

_ID, _STEP = re.compile(ID.encode(), re.DOTALL), re.compile(STEP.encode())
_SOMETHING = re.compile(rb"\S")
_BLANK_LINE = re.compile(rb"(?:(?<=[\r\n])|\A)[ \t\v\f]+(?=[\r\n]|\Z)")
_FIRST_NAME = re.compile(rb"\s*[A-Za-z]+([^A-Za-z0-9_]+)")
_HEADLESS = re.compile(rb"[0-9]+(?:_[0-9]+|_\[[^\]]*\]|\+[0-9]+)?(?:\.[a-z0-9]+)?([^\w.+\[])")
_RULER = re.compile(rb"[ \t]*-+(?:[ \t]+-+)+[ \t]*")


@dataclass(frozen=True)
class Layout:
    """The layout of a text of Slurm's accounting.

    Attributes
    ----------
    names
        Columns in lower case, "" for the one that ``-p`` leaves empty at the end.
    delimiter
        The character between values.
    line, begin
        Line of the header, from 1, and offset of the first row, in bytes.
    header
        The line itself.
    mark
        The delimiter of the file, if it was replaced by one of a single byte.
    """

    names: tuple[str, ...]
    delimiter: bytes
    line: int
    begin: int
    header: bytes
    mark: bytes = b""

    @cached_property
    def places(self) -> dict[str, int]:
        """Index of each column in use, by name."""
        wanted = {
            *IDS[:1],
            *WORDS,
            *MEMORY,
            *ENERGY,
            *(name for names in READ_AS.values() for name in names),
        }
        if IDS[0] not in self.names:
            wanted.add(IDS[1])
        for names in READ_AS.values():  # the first one in the header counts
            wanted -= set([name for name in names if name in self.names][1:]) - set(WORDS)
        wanted -= {name for name in ENERGY if name != self.energy} - set(WORDS)
        return {name: self.names.index(name) for name in sorted(wanted) if name in self.names}

    @property
    def id(self) -> str:
        """The column with job numbers."""
        return IDS[0] if IDS[0] in self.names else IDS[1]

    @property
    def energy(self) -> str | None:
        """The column with the energy of jobs; None if there is none."""
        return next((name for name in ENERGY if name in self.names), None)

    def key(self, name: str) -> str | None:
        """Return the key of a column; None for words, memory and job numbers."""
        for key, names in READ_AS.items():
            if name in names:
                first = next(one for one in names if one in self.names)
                return key if name == first else None
        return None

    @property
    def unused(self) -> list[str]:
        """Names of the columns that are not read, as the header spells them."""
        return [self.called(name) for name in self.names if name and name not in self.places]

    def called(self, name: str) -> str:
        """Return a column's name as the header spells it."""
        return self.header.split(self.delimiter)[self.names.index(name)].strip().decode("latin-1")


def find_layout(head: bytes) -> Layout | None:
    """Return the layout of a text from its beginning; None if it has no header of sacct."""
    begin, line = 0, 1
    for raw in head.splitlines(keepends=True):
        if raw.strip():
            break
        begin, line = begin + len(raw), line + 1
    else:
        return None
    match = _FIRST_NAME.match(raw)
    if match is None or not match[1].strip(b" \r\n"):
        return None
    header = raw.rstrip(b"\r\n")
    names = tuple(name.strip().lower().decode("latin-1") for name in header.split(match[1]))
    if not set(IDS) & set(names) or not {"submit", "state", "start", "end"} & set(names):
        return None
    return Layout(names, match[1], line, begin + len(raw), header)


def is_cut(head: bytes) -> str | None:
    """Return why output of sacct cannot be read, and the cure; None if this is none of it."""
    lines = [line for line in head.splitlines()[:50] if line.strip()]
    if not lines:
        return None
    if len(lines) > 1 and b"JobID" in lines[0] and _RULER.fullmatch(lines[1]):
        return "columns of fixed width, which cut values off; write it again with -P"
    match = _HEADLESS.match(lines[0])
    cells = lines[0].split(match[1]) if match and match[1].strip() else []
    states = {name.encode() for name in values.STATES}
    if len(cells) > 3 and any(cell.partition(b" ")[0] in states for cell in cells):
        return "no header with the names of its columns; write it again without -n (--noheader)"
    return None


class _Refused(Exception):
    """Raised for a malformed piece of the text; the slow pass finds out why."""


class Rows(NamedTuple):
    """The rows of a text, column by column.

    Attributes
    ----------
    place, step_place
        Rows of jobs and of steps, counted from 0 in the order of the text.
    job, step_job
        Index into ``ids`` of the job number of each row.
    ids
        The distinct job numbers, as text.
    numbers
        Columns of job rows by key: s, processors, times as
        :func:`~hpcrowd.environment.traces.formats.slurm.values.parse_time` gives them.
    words
        Columns of job rows by name: index of each row's word, and the words.
    memory, step_memory
        Largest memory, kB, else the average; -1 if unknown.
    step_cluster
        Clusters of the steps, as in ``words``.
    energy, step_energy
        J; -1 if unknown.
    step_name
        Names of the steps, such as ``batch``, as in ``words``.
    mended
        What was repaired in the text; None if nothing.
    unused
        Columns that are not read, as the header spells them.
    """

    place: Int64s
    step_place: Int64s
    job: Int64s
    step_job: Int64s
    ids: list[str]
    numbers: dict[str, NDArray[Any]]
    words: dict[str, tuple[NDArray[Any], list[bytes]]]
    memory: NDArray[np.float64]
    step_memory: NDArray[np.float64]
    step_cluster: NDArray[Any]
    energy: Int64s
    step_energy: Int64s
    step_name: tuple[NDArray[Any], list[bytes]]
    mended: Mended | None = None
    unused: Sequence[str] = ()

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


def read_rows(data: bytes, source: str) -> Rows:
    """Read a text of Slurm's accounting.

    Raises
    ------
    TraceError
        If it contains no jobs.
    ParseError
        If the header lacks columns or a row is malformed; the error names the first such line.
    """
    layout = find_layout(data[: 2 * LONGEST_LINE])
    if layout is None:
        _explain_header(data, source)
    assert layout is not None
    for names in NEEDED:
        if not {name.lower() for name in names} & set(layout.names):
            rule = f"no column {' or '.join(names)}; write the file with {COMMAND}"
            raise ParseError(source, layout.line, None, shown(layout.header)[:40], rule)
    if (zero := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise ParseError(source, line, None, "\\0", "a zero byte; not text")
    if not _SOMETHING.search(data, layout.begin):
        raise TraceError(f"{source}: contains no jobs, only a header")
    body = data[layout.begin :]
    if len(layout.delimiter) > 1:
        layout, body = _single(layout, body)
    reading = _Reading(layout, _line_ends(body))
    try:
        reading.read(memoryview(body))
    except _Refused:
        return _mended(body, layout, source, reading.rows)
    return reading.finished()


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


def _mended(body: bytes, layout: Layout, source: str, rows: int) -> Rows:
    """Return the rows of a text that cannot be read as it is.

    Raises
    ------
    ParseError
        If a row is malformed, and not only broken; the error names the first such line.
    """
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
        _explain(lines, layout, source, rows if mended is None else reading.rows, checks)
        reading = _Reading(layout, _line_ends(body))  # only blank lines can be wrong
        try:
            reading.read(memoryview(_BLANK_LINE.sub(b"", body)))
        except _Refused:
            raise TraceError(f"{source}: cannot be read as Slurm's accounting") from None
    found = reading.finished()
    return found if mended is None else found.restored(mended.back)._replace(mended=mended)


def _checks(layout: Layout) -> dict[str, Callable[[bytes], Any]]:
    """Return the parsers of the columns in use."""
    checks: dict[str, Callable[[bytes], Any]] = {**WORDS, **MEMORY}
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
    rows: int = 0
    ids: list[pa.Array] = field(default_factory=list)
    step_ids: list[pa.Array] = field(default_factory=list)
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    codes: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def read(self, body: memoryview) -> None:
        """Read all rows.

        Raises
        ------
        _Refused
            If one is malformed; ``rows`` is the number of rows read before its piece.
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
        jobs, steps = batch.filter(pa.array(~step & ~header)), batch.filter(pa.array(step))
        for name in self.layout.places:
            key = self.layout.key(name)
            if key in ("submit", "start", "end", "eligible"):
                self._keep(key, _times(jobs.column(name)))
            elif key is not None:
                self._keep(key, _numbers(jobs.column(name), READ_AS[key][name]))
            if name in WORDS:
                self._keep(name, self._coded(name, jobs.column(name)))
        self._keep("memory", self._memory(jobs))
        self._keep("step_memory", self._memory(steps))
        self._keep("energy", self._energy(jobs))
        self._keep("step_energy", self._energy(steps))
        if "cluster" in self.layout.places:
            self._keep("step_cluster", self._coded("cluster", steps.column("cluster")))
        self._keep("place", place[~step & ~header])
        self._keep("step_place", place[step])
        self.ids.append(jobs.column(self.layout.id))
        numbers = pc.split_pattern(steps.column(self.layout.id), ".", max_splits=1, reverse=True)
        self.step_ids.append(pc.list_element(numbers, 0))
        self._keep("step_name", self._coded("step_name", pc.list_element(numbers, 1)))
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

    def _memory(self, rows: pa.RecordBatch) -> NDArray[np.float64]:
        memory = np.full(len(rows), -1.0)
        for name in MEMORY:
            if name in self.layout.places:
                found = _numbers(rows.column(name), MEMORY[name])
                memory = np.where(memory < 0, found, memory)
        return memory

    def _energy(self, rows: pa.RecordBatch) -> Int64s:
        name = self.layout.energy
        if name is None:
            return np.full(len(rows), -1)
        return np.asarray(_numbers(rows.column(name), ENERGY[name]))

    def _coded(self, name: str, column: pa.Array) -> NDArray[np.int32]:
        """Return the index of each word among the distinct ones so far."""
        table = self.codes.setdefault(name, {})
        encoded = column.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        for word in words:
            if word not in table:
                _checked(WORDS.get(name, decode), word)
                table[word] = len(table)
        codes = np.array([table[word] for word in words], np.int32)
        return np.asarray(codes[encoded.indices.to_numpy(zero_copy_only=False)])

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
            whole.get("step_cluster", nothing),
            whole["energy"],
            whole["step_energy"],
            words.pop("step_name"),
            unused=self.layout.unused,
        )


def _checked(convert: Callable[[bytes], Any], word: bytes) -> Any:
    try:
        return convert(word)
    except ValueError:
        raise _Refused from None


def _numbers(column: pa.Array, convert: Callable[[bytes], Any]) -> NDArray[Any]:
    """Return a column as numbers; each distinct word is parsed once."""
    encoded = column.dictionary_encode()
    kind = np.float64 if convert in (parse_duration, parse_used_memory) else np.int64
    words = encoded.dictionary.to_pylist()
    table = np.array([_checked(convert, word) for word in words], kind)
    return np.asarray(table[encoded.indices.to_numpy(zero_copy_only=False)])


def _times(column: pa.Array) -> Int64s:
    """Return a column as times: all at once if they are in sacct's notation, else word by word."""
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
        return np.asarray(_numbers(column, parse_time))
    try:
        texts = pc.if_else(known_texts, column, pa.scalar(None, pa.binary())).cast(pa.string())
        if lengths <= UNIX and not pc.all(pc.ascii_is_decimal(texts)).as_py():
            return np.asarray(_numbers(column, parse_time))
        seconds = texts.cast(kind).cast(pa.int64()).fill_null(NO_TIME)
    except pa.ArrowInvalid:
        return np.asarray(_numbers(column, parse_time))
    times = seconds.to_numpy(zero_copy_only=False)
    known = times != NO_TIME
    if np.all(~known | ((times >= first) & (times < LAST_TIME))):
        return np.asarray(np.where(known, times + add, NO_TIME))
    return np.asarray(_numbers(column, parse_time))


def _lines(data: bytes, begin: int, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, text) from offset ``begin`` on; ``first`` is the first line number."""
    text = io.BytesIO(data)
    text.seek(begin)
    number = first
    for raw in text:
        for line in raw.splitlines():
            yield number, line
            number += 1


def _explain_header(data: bytes, source: str) -> None:
    """Raise the error for a text that does not begin with a header of sacct."""
    if not data.strip():
        raise TraceError(f"{source}: is empty; Slurm's accounting has a header and a line per job")
    if b"\0" in data[:4096]:
        raise TraceError(f"{source}: is a binary file, not output of sacct")
    number, line = next((n, text) for n, text in _lines(data, 0, 1) if text.strip())
    if (why := is_cut(data[: 2 * LONGEST_LINE])) is not None:
        raise ParseError(source, number, None, shown(line)[:40], why)
    rule = (
        f"not a header of sacct with JobID, Submit and State, separated by one character; "
        f"write the file with "
        f"{COMMAND}"
    )
    raise ParseError(source, number, None, shown(line)[:40], rule)


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
        if len(line) > LONGEST_LINE:
            rule = f"longer than {LONGEST_LINE:,} bytes, the limit for a line of a trace"
            raise ParseError(source, number, None, shown(line), rule)
        words = line.split(layout.delimiter)
        if len(words) != len(layout.names):
            found, mark = plural(len(words), "value"), layout.mark or layout.delimiter
            rule = f"{found}, but the header has {len(layout.names)}, separated by {shown(mark)!r}"
            raise ParseError(source, number, None, shown(mark.join(words)), rule)
        if all(words[place] == header[name] for name, place in layout.places.items()):
            continue  # a repeated header
        if (fault := _fault(words, layout, checks)) is not None:
            name, word, rule = fault
            raise ParseError(source, number, layout.called(name), shown(word), rule)


def _fault(
    words: Sequence[bytes], layout: Layout, checks: Mapping[str, Callable[[bytes], Any]]
) -> tuple[str, bytes, str] | None:
    """Return column, word and rule of the first malformed word of a row; None if all are fine."""
    job_id = words[layout.names.index(layout.id)]
    if not _ID.fullmatch(job_id):
        rule = "not a job or step number, such as 1234, 1234_5, 1234+0 or 1234.batch"
        return layout.id, job_id, rule
    step = _STEP.search(job_id)
    for name, place in layout.places.items():
        if step and name not in {*MEMORY, *ENERGY, "cluster"}:
            continue
        try:
            checks.get(name, decode)(words[place])
        except ValueError as error:
            return name, words[place], str(error)
    return None
