"""Text tables: a line of column names, then one row per line, values separated by one character.

Values may be quoted as in CSV. With a blank between values, several count as one. Arrow reads the
text in one go; only if a row is malformed does a slow second pass look for the first such line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, override

from hpcrowd.environment.errors import ParseError, TraceError
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
