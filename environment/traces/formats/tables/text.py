"""Tables in text: a line of names, then one row a line, values apart by one character.

Values may be quoted as in CSV. Reading goes through Arrow at once; only where a row is malformed a
slow second pass finds the first such line.
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


#: What stands for an unknown number, besides nothing at all.
NO_NUMBER = ("", "-", "NA", "N/A", "null", "None")


class Table:
    """The columns of a table in text.

    Parameters
    ----------
    data
        The text, in UTF-8 or Latin-1.
    source
        What names it in messages.
    delimiter
        The character between values.
    decimal
        What stands before fractions: a point, or a comma.

    Attributes
    ----------
    columns
        By name, in the order of the text, Arrow's arrays of strings of shape (rows,).

    Raises
    ------
    TraceError
        When it is empty, or the first line names a column twice.
    ParseError
        When a row has other columns than the first line.
    """

    def __init__(self, data: bytes, source: str, delimiter: str = ",", decimal: str = ".") -> None:
        self.data, self.source, self.delimiter = _utf8(data), source, delimiter
        self.decimal = decimal
        if b"\0" in self.data:
            line = self.data.count(b"\n", 0, self.data.index(b"\0")) + 1
            raise ParseError(source, line, None, "\\0", "a zero byte; text holds none")
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
            raise ParseError(self.source, line, None, "", f"no row of a table: {error}") from None

    def _read(self) -> dict[str, pa.Array]:
        import pyarrow as pa
        from pyarrow import csv as arrow

        places = [str(place) for place in range(len(self.names))]  # names may be odd
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
            raise TraceError(f"{self.source}: no table: {_first_line(error)}") from None
        quotes = self.data.count(b'"')
        if quotes % 2 or (quotes and self.data.count(b"\n") > len(table) + 1):
            # A quote that is never closed would swallow all rows after it, up to the next such.
            for _ in self._rows(strict=True):
                pass
        if not len(table):
            raise TraceError(f"{self.source}: holds no job; it has a line of names alone")
        return {name: table.column(place).combine_chunks() for place, name in enumerate(self.names)}

    def _explain(self) -> None:
        """Raise the error of the first row that has other columns than there are names."""
        for line, values in self._rows():
            if len(values) != len(self.names):
                rule = f"{len(values)} values where {len(self.names)} columns are named"
                text = self.delimiter.join(values).encode()
                raise ParseError(self.source, line, None, shown(text), rule)

    def line(self, row: int) -> int:
        """Return the line on which a row begins; the last one where quotes are left open."""
        line = 1
        for place, (begins, _) in enumerate(self._rows()):
            line = begins
            if place == row + 1:
                break
        return line

    def error(self, row: int, field: str, value: str, rule: str) -> ParseError:
        """Return what is wrong with a value in a row."""
        text = value if len(value) < SHOWN else value[: SHOWN - 3] + "..."
        return ParseError(self.source, self.line(row), field, text, rule)

    def words(self, name: str) -> list[str]:
        """Return a column as text, without blanks around; shape (rows,)."""
        import pyarrow.compute as pc

        return list(pc.utf8_trim_whitespace(self.columns[name]).to_pylist())

    def numbers(
        self, name: str, missing: float = UNKNOWN, nothing: Sequence[str] = NO_NUMBER
    ) -> NDArray[np.float64]:
        """Return a column as numbers, ``missing`` where one of ``nothing`` is; shape (rows,).

        Raises
        ------
        ParseError
            When a value is no finite number that is exact.
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
            rule = "not a number; leave it empty, or -1, where unknown"
            raise self.error(row, name, values[row].as_py(), rule)
        return np.where(empty, missing, found)


def listed(names: Sequence[str]) -> str:
    """Return names for a message of one line: the first ones, and not all of long ones."""
    found = [repr(name if len(name) < 24 else f"{name[:21]}...") for name in names[:10]]
    return ", ".join(found) + (" ..." if len(names) > 10 else "")


def write_table(
    columns: Mapping[str, Iterable[str]], delimiter: str = ",", newline: str = "\n"
) -> bytes:
    """Return columns as text: a line of names, then one row a line, quoted where needed."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    # The writer quotes line feeds, but no other line ends.
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
    """Return text in UTF-8: as it is, else taken as Latin-1, which never fails."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1").encode()
    return data


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 200 else f"{text[:197]}..."
