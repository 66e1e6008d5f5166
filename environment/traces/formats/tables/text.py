"""Tables in text and in Parquet.

A text has a line of column names, then one row per line, values separated by one character.

Values may be quoted as in CSV. With a blank between values, several count as one. Arrow reads the
text in one go; only if a row is malformed does a slow second pass look for the first such line.
Of Parquet the columns that are needed are read, batch by batch.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, override

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.limits.inputs import Unreadable, room
from hpcrowd.environment.traces.formats.common.files import shown
from hpcrowd.environment.traces.formats.tables.values import Columns

if TYPE_CHECKING:
    import pyarrow as pa

#: Blanks between values; quoted ones are kept.
_BLANKS = re.compile(rb'("(?:[^"]|"")*")|[ \t]+')


class Table(Columns):
    """The columns of a text table.

    Parameters
    ----------
    data
        The text, in UTF-8 or Latin-1.
    source
        Its name in messages.
    delimiter
        The character between values; a blank is one or more blanks or tabs.
    decimal, thousands
        As of :class:`~hpcrowd.environment.traces.formats.tables.values.Columns`.
    expected
        Names that the line of names has: lines before it that begin with ``#`` are comments, and a
        ``#`` before the names is none of them. Without any, the first line that is not blank.
    numbered
        Whether there is no line of names: columns are called ``1``, ``2`` ...

    Attributes
    ----------
    comments
        The lines of comments before the names.

    Raises
    ------
    TraceError
        If it is empty, or the first line names a column twice.
    ParseError
        If a row has more or fewer values than the first line has.
    """

    def __init__(
        self,
        data: bytes,
        source: str,
        delimiter: str = ",",
        decimal: str = ".",
        thousands: str | None = None,
        *,
        expected: Collection[str] = (),
        numbered: bool = False,
    ) -> None:
        super().__init__({}, source, decimal, thousands)
        self.data, self.delimiter, self.numbered = _utf8(data), delimiter, numbered
        if b"\0" in self.data:
            line = self.data.count(b"\n", 0, self.data.index(b"\0")) + 1
            raise ParseError(source, line, None, "\\0", "a zero byte; not text")
        self.comments: list[bytes] = []
        if expected or numbered:
            self._leave_out_comments(set(expected))
        if delimiter == " ":
            single = _BLANKS.sub(lambda found: found[1] or b" ", self.data)
            self.data = re.sub(rb"(?m)^ | (?=\r?$)", b"", single)
        names = next(self._rows(), (0, []))[1]
        if numbered:
            self.names = [str(place) for place in range(1, len(names) + 1)]
        else:
            self.names = [name.strip() for name in names]
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if not any(self.names) or twice:
            what = f"names column {listed(twice[:1])} twice" if twice else "is empty"
            raise TraceError(f"{source}: {what}; its first line names the columns")
        self.columns = self._read()

    def _leave_out_comments(self, expected: set[str]) -> None:
        """Replace comments before the names by empty lines, so that lines keep their numbers."""
        begin = 0
        while self.data[begin : begin + 1] in (b"#", b"\n", b"\r"):
            end = self.data.find(b"\n", begin) + 1 or len(self.data)
            line = self.data[begin:end].decode().strip()
            told = line[1:].strip()
            told = re.sub(r"[ \t]+", " ", told) if self.delimiter == " " else told
            names: list[str] = []
            with contextlib.suppress(csv.Error):  # a stray line end, or a field without end
                names = next(csv.reader([told], delimiter=self.delimiter), [])
            plain = {name.strip() for name in names}
            if expected and expected <= plain:
                marked = self.data[begin:].replace(b"#", b" ", 1)
                self.data = self.data[:begin] + marked
                break
            if expected and expected <= plain | {f"#{name}" for name in names[:1]}:
                break
            if told:
                self.comments.append(told.encode())
            begin = end
        self.data = b"\n" * self.data.count(b"\n", 0, begin) + self.data[begin:]

    def _rows(self, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, values) of every row that is not blank, the line of names first."""
        text = io.StringIO(self.data.decode("utf-8"), newline="")
        reader = csv.reader(text, delimiter=self.delimiter, strict=strict)
        line = 1
        try:
            for values in reader:
                if values:
                    yield line, values
                line = reader.line_num + 1
        except csv.Error as error:
            raise ParseError(self.source, line, None, "", f"not a table row: {error}") from None

    def _read(self) -> dict[str, pa.Array]:
        import pyarrow as pa
        from pyarrow import csv as arrow

        places = [str(place) for place in range(len(self.names))]  # Arrow may not like the names
        begin = len(self.data) - len(self.data.lstrip(b"\r\n"))
        try:
            table = arrow.read_csv(
                pa.BufferReader(pa.py_buffer(self.data).slice(begin)),
                arrow.ReadOptions(column_names=places, skip_rows_after_names=not self.numbered),
                arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                arrow.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self._explain()
            raise TraceError(f"{self.source}: not a table: {_first_line(error)}") from None
        quotes = self.data.count(b'"')
        if quotes % 2 or (quotes and self.data.count(b"\n", begin) > len(table) + 1):
            # An unclosed quote would swallow all rows up to the next quote.
            for _ in self._rows(strict=True):
                pass
        if not len(table):
            raise TraceError(f"{self.source}: contains no jobs, only a line of column names")
        return {name: table.column(place).combine_chunks() for place, name in enumerate(self.names)}

    def _explain(self) -> None:
        """Raise the error of the first row whose number of values differs from that of names."""
        for line, values in self._rows():
            if len(values) != len(self.names):
                rule = f"{len(values)} values; the first line names {len(self.names)} columns"
                if self.numbered:
                    rule = f"{len(values)} values; the first line has {len(self.names)}"
                text = self.delimiter.join(values).encode()
                raise ParseError(self.source, line, None, shown(text), rule)

    @override
    def line(self, row: int) -> int:
        """Return the line on which a row begins; the last line if a quote is left open."""
        line = 1
        for place, (begins, _) in enumerate(self._rows()):
            line = begins
            if place == row + (not self.numbered):
                break
        return line


def listed(names: Sequence[str]) -> str:
    """Return names for a one-line message: the first ten, with long ones cut."""
    found = [repr(name if len(name) < 24 else f"{name[:21]}...") for name in names[:10]]
    return ", ".join(found) + (" ..." if len(names) > 10 else "")


def write_table(
    columns: Mapping[str, Iterable[str]],
    delimiter: str = ",",
    newline: str = "\n",
    *,
    names: bool = True,
) -> bytes:
    """Return columns as text: a line of names, then one row per line, quoted where needed."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    # The writer quotes line feeds, but not other line ends.
    odd = any("\r" in word for column in (list(columns), *lists) for word in column)
    every = odd or delimiter == " "  # where nothing would be no value
    quoting: Literal[0, 1] = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    if names:
        rows.writerow(columns)
    rows.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _utf8(data: bytes) -> bytes:
    """Return text in UTF-8: as it is, else decoded as Latin-1, which never fails."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1").encode()
    return data


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 200 else f"{text[:197]}..."


#: The first and last bytes of a Parquet file.
MAGIC = b"PAR1"

#: Rows that are unpacked at a time.
BATCH = 2**16

#: Bytes of a value in a column, at least.
VALUE = 8


class ParquetTable(Columns):
    """The columns of a Parquet file.

    Parameters
    ----------
    file
        The file, open or as Arrow's buffer.
    source
        Its name in messages.
    wanted
        The columns to read; all unless given. Others are not unpacked.

    Attributes
    ----------
    names
        All columns of the file.
    metadata
        The metadata of the file.

    Raises
    ------
    TraceError
        If it is damaged, has no rows, or is too large for the memory.
    """

    def __init__(self, file: Any, source: str, wanted: Collection[str] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            whole = pq.ParquetFile(file, pre_buffer=False)
            schema = whole.schema_arrow
            for kind in schema.types:
                getattr(kind, "tz", None)  # decodes time zones
            places = [
                place for place, name in enumerate(schema.names) if wanted is None or name in wanted
            ]
            self.rows = int(whole.metadata.num_rows)
            room()(self.rows * len(places) * VALUE)
            kept = [schema.names[place] for place in places]
            pieces: list[list[Any]] = [[] for _ in kept]
            for batch in whole.iter_batches(BATCH, columns=kept, use_threads=False):
                for piece, name in zip(pieces, kept, strict=True):
                    batch.column(name).validate(full=True)
                    piece.append(_plain(batch.column(name)))
                    piece[-1].validate(full=True)  # dictionaries are not looked into before
            columns = {
                name: pa.chunked_array(piece, None if piece else pa.null()).combine_chunks()
                for name, piece in zip(kept, pieces, strict=True)
            }
            if self.rows < 0 or any(len(column) != self.rows for column in columns.values()):
                raise ValueError("not as many rows as it says")
        except Unreadable as error:
            raise TraceError(f"{source}: {error.strerror}") from None
        except (
            pa.ArrowException, OSError, MemoryError, KeyError, ValueError, UnicodeDecodeError
        ) as error:  # fmt: skip
            text = " ".join(str(error).split())[:160]
            raise TraceError(f"{source}: the Parquet file is damaged ({text})") from None
        if not self.rows:
            raise TraceError(f"{source}: contains no jobs")
        super().__init__(columns, source)
        self.names = list(schema.names)
        self.metadata: dict[bytes, bytes] = schema.metadata or {}

    @override
    def words(self, name: str) -> list[str]:
        """Return a column as text, with its blanks; shape (rows,)."""
        return list((self.columns[name] if self.is_text(name) else self.text(name)).to_pylist())

    @override
    def __len__(self) -> int:
        return self.rows


def _plain(values: Any) -> Any:
    """Return a column without dictionaries, and text without nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return pc.fill_null(values.cast(pa.large_string()), "")
    return values
