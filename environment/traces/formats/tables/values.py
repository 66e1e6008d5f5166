"""The values in the columns of a table: numbers, words, moments and durations.

Columns are Arrow's arrays, of text or typed. A table in text and the same table in Parquet are read
alike.

=============== ==================================================================================
numbers         ``1024``, ``-1``, ``0.5``, ``1e3``; with ``decimal`` and ``thousands`` of a map also
                ``1.024,5``. Groups have three digits, and what groups digits is never guessed
moments         ISO 8601, a pattern as for ``strptime``, or a number; typed ones as they are
durations       ``[[hours:]minutes:]seconds`` and more, see :func:`parse_clock`
unknown         empty, or one of :data:`NO_NUMBER`; of durations also one of :data:`NO_LIMIT`
=============== ==================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import EPOCH, offsets
from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.formats.common.files import SHOWN
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT, number_text

Numbers = NDArray[np.float64]

#: Words for an unknown value, in lower case.
NO_NUMBER = ("", "-", "na", "n/a", "nan", "nat", "null", "none", "<na>", "unknown", "(null)")

#: Words for a duration without a limit, in lower case: nothing that a field could hold.
NO_LIMIT = ("unlimited", "infinite", "partition_limit", "not_set")

#: Characters that each mark between groups of three digits stands for.
GROUPING = {".": ".", ",": ",", "_": "_", "'": "'\u2019", " ": " \u00a0\u202f"}

#: Numbers with a decimal point, as Arrow parses them.
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

#: Digits in groups of three.
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([.,_' \u2019\u00a0\u202f])\d{3})+(?:[.,]\d*)?", re.ASCII)

#: Days, hours, minutes and seconds, with what separates days from the rest.
_CLOCK = re.compile(
    r"(?:(\d{1,9})(?:(-)|\s?days?(?:,?\s|$)))?((?:\d{1,9}:){0,2}\d{1,9})?(?:[.,](\d{1,9}))?",
    re.ASCII,
)

#: The first day of the calendar, in microseconds since 1970.
FIRST_DAY = (datetime(1, 1, 1) - EPOCH) // timedelta(microseconds=1)


class Columns:
    """The columns of a table, by name.

    Parameters
    ----------
    columns
        Arrow's arrays, shape (rows,), in the order of the table. Text has no nulls.
    source
        The name of the table in messages.
    decimal, thousands
        The decimal mark in text; and the mark between groups of three digits, if there is one.
    """

    def __init__(
        self,
        columns: dict[str, Any],
        source: str,
        decimal: str = ".",
        thousands: str | None = None,
    ) -> None:
        self.columns, self.source = columns, source
        self.decimal, self.thousands = decimal, thousands
        self.names = list(columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def line(self, row: int) -> int:
        """Return the line of a row, from 1; of a table without lines the row."""
        return row + 1

    def error(self, row: int, field: str, value: str, rule: str) -> ParseError:
        """Return the error for a value in a row."""
        text = value if len(value) < SHOWN else value[: SHOWN - 3] + "..."
        return ParseError(self.source, self.line(row), field, text, rule)

    def is_text(self, name: str) -> bool:
        """Return whether a column holds text."""
        import pyarrow as pa

        kind = self.columns[name].type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def is_duration(self, name: str) -> bool:
        """Return whether a column holds typed durations."""
        import pyarrow as pa

        return bool(pa.types.is_duration(self.columns[name].type))

    def text(self, name: str) -> Any:
        """Return a column as Arrow's text, without blanks at the ends; empty where unknown."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.columns[name]
        if not self.is_text(name):
            values = pa.array([_text_of(value) for value in values.to_pylist()], pa.string())
        return pc.utf8_trim_whitespace(values)

    def words(self, name: str) -> list[str]:
        """Return a column as text, without blanks at the ends; shape (rows,)."""
        return list(self.text(name).to_pylist())

    def each(
        self,
        name: str,
        read: Callable[[str], Any],
        rule: str,
        missing: Any = UNKNOWN,
        nothing: Collection[str] = NO_NUMBER,
    ) -> Numbers:
        """Return what ``read`` makes of each word of a column, ``missing`` for ``nothing``.

        ``read`` returns a number or a tuple of them.

        Raises
        ------
        ParseError
            With this rule, where ``read`` raises a ValueError.
        """
        coded = self.text(name).dictionary_encode()
        codes = np.asarray(coded.indices)
        found = []
        for code, word in enumerate(coded.dictionary.to_pylist()):
            try:
                found.append(read(word))
            except (ValueError, OverflowError, OSError):
                if word.lower() not in nothing:
                    row = int(np.argmax(codes == code))
                    raise self.error(row, name, word, rule) from None
                found.append(missing)
        return np.array(found, np.float64)[codes]

    def numbers(
        self,
        name: str,
        missing: float = UNKNOWN,
        nothing: Collection[str] = NO_NUMBER,
        most: float = LARGEST_EXACT,
    ) -> NDArray[Any]:
        """Return a column as numbers of at most ``most``, ``missing`` for ``nothing``.

        Raises ParseError if a value is not a finite, exact number, or not in the notation of the
        table, and TraceError if the column holds something else, such as times.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.columns[name]
        if self.is_text(name):
            values = pc.utf8_trim_whitespace(values)
            empty = pc.is_in(pc.ascii_lower(values), pa.array(list(nothing), values.type))
            absent = np.asarray(empty.to_numpy(zero_copy_only=False), bool)
            found = self._parsed(name, pc.if_else(empty, None, values))
        else:
            found = self._typed(name)
            absent = np.isnan(found) if found.dtype.kind == "f" else np.zeros(len(found), bool)
        size = np.abs(np.where(absent, 0, found).astype(np.float64))
        good = np.where(np.isnan(size), np.inf, size) <= most
        if not good.all():
            row = int(np.argmin(good))
            value = values[row].as_py()
            raise self.error(row, name, str(value), self._rule(str(value)))
        return np.where(absent, missing, found) if absent.any() else found

    def _parsed(self, name: str, values: Any) -> Numbers:
        """Return the numbers in text; NaN for what is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.decimal != "." or self.thousands is not None:
            marks = GROUPING[self.thousands] if self.thousands else ""
            group = f"[{re.escape(marks)}]"
            digits = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if marks else "[0-9]+"
            mark = re.escape(self.decimal)
            # A number in groups is one with groups of three, not "10.24" or "1.0".
            shape = f"^[+-]?(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?$"
            values = pc.if_else(pc.match_substring_regex(values, shape), values, "nan")
            if marks:
                values = pc.replace_substring_regex(values, group, "")
            values = pc.replace_substring(values, self.decimal, ".")
        try:
            floats = pc.cast(values, pa.float64())
        except pa.ArrowInvalid:
            floats = pa.array([_number(value) for value in values.to_pylist()], pa.float64())
        return np.asarray(floats.to_numpy(zero_copy_only=False), np.float64)

    def _typed(self, name: str) -> NDArray[Any]:
        """Return a column of numbers; NaN for nulls."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.columns[name]
        kind = values.type
        if pa.types.is_float16(kind) or pa.types.is_float32(kind):
            # 0.123 was meant, not 0.12300000339746475, which is the closest of these.
            values = pc.cast(pc.cast(pc.cast(values, pa.float32()), pa.string()), pa.float64())
        elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
            values = pc.cast(values, pa.float64())
        elif not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
            raise TraceError(f"{self.source}: column {name} holds {kind}, not numbers")
        found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return found

    def _rule(self, text: str) -> str:
        """Return why a text is not a number, and the cure."""
        rule = "not a number; if unknown, leave it empty or use -1"
        if self.decimal != "." or self.thousands is not None:
            marks = f"decimal {self.decimal!r}" + (
                f" and thousands {self.thousands!r}" if self.thousands else ""
            )
            rule = f"not a number with {marks}"
        grouped = _GROUPED.fullmatch(text)
        if grouped and self.thousands is None:
            mark = next(mark for mark, all_ in GROUPING.items() if grouped[1] in all_)
            also = "" if self.decimal != mark else ' and decimal = ","'
            return f"{rule}; if {mark!r} groups digits, the map needs thousands = {mark!r}{also}"
        return rule

    def moments(self, name: str, how: str, per: float, zone: tzinfo) -> tuple[Numbers, Numbers]:
        """Return times in s, and the delay until clocks show each of them a second time, s.

        Parameters
        ----------
        name
            The column.
        how
            ``iso``, a pattern, or anything else for numbers.
        per
            Units of numbers in a second.
        zone
            Zone of times without one.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = self.columns[name].type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            if how == "seconds":
                raise TraceError(
                    f'{self.source}: column {name} holds {kind}; the map needs time = "iso"'
                )
            return _since_1970(self.columns[name], zone)
        if how != "iso" and "%" not in how:
            values = self.numbers(name, np.nan, most=LARGEST_EXACT * max(per, 1.0))
            values = np.where(values == UNKNOWN, np.nan, values) / per
            return values, np.zeros(len(values))
        if how == "iso" and self.is_text(name):
            values = self.text(name)
            empty = pc.is_in(pc.ascii_lower(values), pa.array([*NO_NUMBER, "-1"], values.type))
            known = pc.if_else(empty, None, values)
            for typed in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
                try:
                    moments = pc.cast(known, typed)
                except pa.ArrowInvalid:  # zones in some of them only, or forms that Arrow lacks
                    continue
                first = pc.min(moments.cast(pa.int64())).as_py()
                if first is None or first >= FIRST_DAY:  # Arrow has a year 0
                    return _since_1970(moments, zone)
        expected = "2024-01-31T13:45:00" if how == "iso" else how
        found = self.each(
            name,
            lambda word: _moment(word, how, zone),
            f"not a time; the mapping expects {expected}",
            (np.nan, 0.0),
            (*NO_NUMBER, "-1"),
        )
        return found[:, 0], found[:, 1]

    def durations(self, name: str) -> Numbers:
        """Return durations in s, typed or as :func:`parse_clock` reads them; -1 where unknown."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = self.columns[name].type
        if pa.types.is_duration(kind):
            whole = pc.cast(self.columns[name], pa.duration("us"), safe=False).cast(pa.int64())
            found = whole.to_numpy(zero_copy_only=False).astype(np.float64) / 1e6
            return np.where(np.isnan(found), UNKNOWN, found)
        forms = "[days-]h:mm:ss, days-h, minutes, or 1 day, h:mm:ss"
        rule = f"not a duration; the mapping expects {forms}"
        return self.each(name, parse_clock, rule, nothing=(*NO_NUMBER, *NO_LIMIT, "-1"))


def to_microsecond(seconds: NDArray[Any]) -> NDArray[Any]:
    """Return what was meant by a difference of dates, which floats hold no finer than that."""
    if seconds.dtype.kind != "f":
        return seconds
    return np.where(np.abs(seconds) < LARGEST_EXACT / 1e6, np.round(seconds, 6), seconds)


def parse_clock(word: str) -> float:
    """Return a duration in s.

    ``[hours:]minutes:seconds`` or ``minutes``, with days ``days-hours[:minutes[:seconds]]`` as
    Slurm writes limits, or ``1 day, 2:03:04`` and ``0 days 01:00:00`` as Python and pandas do.
    Seconds may have a fraction. Raises ValueError if it is something else, or too long to be an
    exact number.
    """
    match = _CLOCK.fullmatch(word)
    if match is None or not (match[1] or match[3]):
        raise ValueError(word)
    days, dash, clock, fraction = match.groups()
    parts = [int(part) for part in clock.split(":")] if clock else []
    if dash:
        told = 1 <= len(parts) <= 3
        parts += [0] * (3 - len(parts))
        whole = clock is not None and clock.count(":") == 2
    else:
        told = len(parts) in (0, 3) if days else True
        whole = len(parts) >= 2
        parts = [0, *parts, 0][-3:] if len(parts) == 1 else [0] * (3 - len(parts)) + parts
    hours, minutes, seconds = parts
    found = int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds
    if not told or (fraction and not whole) or found > LARGEST_EXACT:
        raise ValueError(word)
    return float(f"{found}.{fraction or 0}")


def _moment(word: str, how: str, zone: tzinfo) -> tuple[float, float]:
    """Return a time in s, and the delay until clocks show it a second time."""
    if word.endswith(" UTC"):
        word = f"{word[:-4]}+00:00"
    moment = datetime.fromisoformat(word) if how == "iso" else datetime.strptime(word, how)
    if moment.tzinfo:
        return moment.timestamp(), 0.0
    first, second = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    return first, max(second - first, 0.0)  # < 0 where clocks are put forward


def _since_1970(values: Any, zone: tzinfo) -> tuple[Numbers, Numbers]:
    """Return Arrow's timestamps in s, as :func:`_moment` returns each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    local = values.type.tz is None if pa.types.is_timestamp(values.type) else True
    whole = pc.cast(values, pa.timestamp("us", None if local else "UTC"), safe=False)
    told = np.asarray(whole.is_valid())
    micros = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    again = np.zeros(len(micros))
    if local and zone is not UTC:
        # Offsets change at whole minutes, and a log has fewer minutes than jobs.
        minutes, places = np.unique(micros // 60_000_000, return_inverse=True)
        table = np.array([offsets(zone, 60 * minute) for minute in minutes.tolist()], np.int64)
        first, second = table.reshape(-1, 2)[places].T
        micros = micros - first * 1_000_000
        again = np.maximum(first - second, 0).astype(np.float64)
    return np.where(told, micros / 1e6, np.nan), np.where(told, again, 0.0)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _DECIMAL.fullmatch(text) else None


def _text_of(value: Any) -> str:
    """Return a typed value as text: nothing for none, 7 for 7.0, and lists with commas."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return number_text(value) if abs(value) <= LARGEST_EXACT else repr(value)
    return ",".join(map(_text_of, value)) if isinstance(value, list) else str(value)
