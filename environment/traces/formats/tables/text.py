"""Text tables: a line of column names, then one row per line, values separated by one character.

Values may be quoted as in CSV. Arrow reads the text in one go; only if a row is malformed does a
slow second pass look for the first such line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.formats.common.files import SHOWN, shown
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT

if TYPE_CHECKING:
    import pyarrow as pa


#: Words for an unknown number, besides the empty one.
NO_NUMBER = ("", "-", "NA", "N/A", "null", "None")


class Table:
    """The columns of a text table.

    Parameters
    ----------
    data
        The text, in UTF-8 or Latin-1.
    source
        Its name in messages.
    delimiter
        The character between values.
    decimal
        The decimal mark: a point or a comma.

    Attributes
    ----------
    columns
        Arrow's arrays of strings, shape (rows,), by name in the order of the text.

    Raises
    ------
    TraceError
        If it is empty, or the first line names a column twice.
    ParseError
        If a row has more or fewer values than the first line has names.
    """

    def __init__(self, data: bytes, source: str, delimiter: str = ",", decimal: str = ".") -> None:
        self.data, self.source, self.delimiter = _utf8(data), source, delimiter
        self.decimal = decimal
        if b"\0" in self.data:
            line = self.data.count(b"\n", 0, self.data.index(b"\0")) + 1
            raise ParseError(source, line, None, "\\0", "a zero byte; not text")
        names = next(self._rows(), (0, []))[1]
        self.names = [name.strip() for name in names]
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if not any(self.names) or twice:
            what = f"names column {listed(twice[:1])} twice" if twice else "is empty"
            raise TraceError(f"{source}: {what}; its first line names the columns")
        self.columns = self._read()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

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
        try:
            table = arrow.read_csv(
                pa.BufferReader(self.data),
                arrow.ReadOptions(column_names=places, skip_rows_after_names=1),
                arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                arrow.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self._explain()
            raise TraceError(f"{self.source}: not a table: {_first_line(error)}") from None
        quotes = self.data.count(b'"')
        if quotes % 2 or (quotes and self.data.count(b"\n") > len(table) + 1):
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
                text = self.delimiter.join(values).encode()
                raise ParseError(self.source, line, None, shown(text), rule)

    def line(self, row: int) -> int:
        """Return the line on which a row begins; the last line if a quote is left open."""
        line = 1
        for place, (begins, _) in enumerate(self._rows()):
            line = begins
            if place == row + 1:
                break
        return line

    def error(self, row: int, field: str, value: str, rule: str) -> ParseError:
        """Return the error for a value in a row."""
        text = value if len(value) < SHOWN else value[: SHOWN - 3] + "..."
        return ParseError(self.source, self.line(row), field, text, rule)

    def words(self, name: str) -> list[str]:
        """Return a column as text, without blanks at the ends; shape (rows,)."""
        import pyarrow.compute as pc

        return list(pc.utf8_trim_whitespace(self.columns[name]).to_pylist())

    def numbers(
        self, name: str, missing: float = UNKNOWN, nothing: Sequence[str] = NO_NUMBER
    ) -> NDArray[np.float64]:
        """Return a column as numbers, ``missing`` for words in ``nothing``; shape (rows,).

        Raises
        ------
        ParseError
            If a value is not a finite, exact number.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = pc.utf8_trim_whitespace(self.columns[name])
        if self.decimal != ".":
            values = pc.replace_substring(values, self.decimal, ".")
        absent = pc.is_in(values, value_set=pa.array(nothing))
        try:
            floats = pc.cast(pc.if_else(absent, None, values), pa.float64())
        except pa.ArrowInvalid:
            floats = pa.array([_number(value) for value in values.to_pylist()], pa.float64())
        found = np.asarray(floats.to_numpy(zero_copy_only=False), np.float64)
        empty = np.asarray(absent.to_numpy(zero_copy_only=False), bool)
        good = empty | (np.abs(np.where(np.isnan(found), np.inf, found)) <= LARGEST_EXACT)
        if not good.all():
            row = int(np.argmin(good))
            rule = "not a number; if unknown, leave it empty or use -1"
            raise self.error(row, name, values[row].as_py(), rule)
        return np.where(empty, missing, found)


def listed(names: Sequence[str]) -> str:
    """Return names for a one-line message: the first ten, with long ones cut."""
    found = [repr(name if len(name) < 24 else f"{name[:21]}...") for name in names[:10]]
    return ", ".join(found) + (" ..." if len(names) > 10 else "")


def write_table(
    columns: Mapping[str, Iterable[str]], delimiter: str = ",", newline: str = "\n"
) -> bytes:
    """Return columns as text: a line of names, then one row per line, quoted where needed."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    # The writer quotes line feeds, but not other line ends.
    odd = any("\r" in word for column in (list(columns), *lists) for word in column)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    rows.writerow(columns)
    rows.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _number(text: str) -> float | None:
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


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
