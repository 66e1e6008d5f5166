"""Your own table, in text or Parquet: a mapping gives the names and units of its columns.

:mod:`hpcrowd.environment.traces.formats.tables.mapping` describes the mapping file. Times may be
local times: the origin is then the first submission, and the header has its Unix time.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import MOST_IN_USE, Header, most_in_use
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.limits.inputs import opened
from hpcrowd.environment.quantities import JOULES
from hpcrowd.environment.traces.formats.common.base import (
    BEFORE_START,
    BEFORE_SUBMIT,
    LAST_SHOWN,
    Format,
    FormatOptions,
    Losses,
)
from hpcrowd.environment.traces.formats.common.files import (
    LONGEST_DOCUMENT,
    MARK,
    checksum,
    read_file,
    read_head,
)
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NAMED,
    number_text,
    numbered_fields,
    worded,
)
from hpcrowd.environment.traces.formats.common.site_columns import site_numbers, texts_of
from hpcrowd.environment.traces.formats.tables.text import (
    MAGIC,
    ParquetTable,
    Table,
    listed,
    write_table,
)
from hpcrowd.environment.traces.formats.tables.values import (
    NO_LIMIT,
    NO_NUMBER,
    Columns,
    Numbers,
    to_microsecond,
)
from hpcrowd.environment.traces.headers import LATEST, made_header, parse_zone, unix_origin
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS
from hpcrowd.environment.traces.trace import FIELDS, Trace, all_columns, tally

if TYPE_CHECKING:  # pydantic is slow to import: it is loaded together with a mapping
    from collections.abc import Mapping

    from hpcrowd.environment.traces.formats.tables.mapping import ColumnMapping, TableMapping

#: Seconds of each unit of durations.
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

#: Units in a second, whole where they are.
PER_SECOND = {unit: 1 / size if size >= 1 else round(1 / size) for unit, size in SECONDS.items()}

#: Kilobytes of 1,024 bytes, the unit of fields 7 and 10, in each unit of memory.
KILOBYTES = {"B": 1 / 1024, "kB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}

#: Columns of what jobs asked of a machine of nodes.
REQUESTED = frozenset(REQUEST_COLUMNS.values())

#: The column of measured energy, J, among those beyond the fields.
ENERGY = "energy"

#: Columns of times, s since the origin, some of which are not fields.
MOMENTS = ("submit", "start", "end")

#: Durations, in s; with ``unit = "clock"`` they are ``[days-]hours:minutes:seconds``.
LASTING = ("wait", "run", "average_cpu", "requested_time", "think_time")

#: Fields in kB per processor.
OF_MEMORY = ("memory", "requested_memory")

#: Columns of requests in MB.
REQUESTED_MEMORY = ("memory_per_node", "memory_per_core")

#: Whole numbers as pandas writes columns with gaps, and what is a gap there.
_WHOLE = re.compile(r"-?[0-9]+\.0|")
_GAP = frozenset(("nan", "NaN", "NaT", "<NA>"))


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    mapping = _mapping(options)
    if data.startswith(MAGIC):
        import pyarrow as pa

        return _parse_parquet(pa.BufferReader(data), source, options)
    needed = {column.name for column in mapping.columns.values() if not column.optional}
    table = Table(
        data, source, mapping.delimiter, mapping.decimal, mapping.thousands,
        expected=() if mapping.numbered else needed, numbered=mapping.numbered,
    )  # fmt: skip
    trace = _trace(table, options)
    trace.comments = [(0, MARK + b" " + line) for line in table.comments]
    return trace


def _parse_parquet(file: Any, source: str, options: FormatOptions) -> Trace:
    mapping = _mapping(options)
    if mapping.numbered:
        raise QuantityError(f"{source}: columns in Parquet have names; the mapping gives numbers")
    wanted = {column.name for column in mapping.columns.values()}
    table = ParquetTable(file, source, wanted)
    table.decimal, table.thousands = mapping.decimal, mapping.thousands  # of numbers in text
    return _trace(table, options)


def trace_of_mapped(table: Columns, options: FormatOptions, read_as: str = "") -> Trace:
    """Return the trace in a table; ``read_as`` is that of the trace."""
    trace = _trace(table, options)
    trace.read_as = read_as
    return trace


def _trace(table: Columns, options: FormatOptions) -> Trace:
    """Return the trace in a table."""
    given, source = _mapping(options), table.source
    mapping = _in_table(table, given)
    zone = mapping.zone or options.zone
    again: dict[str, Numbers] = {}
    repaired: Counter[str] = Counter()
    words: dict[str, list[str]] = {}
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for field, column in mapping.columns.items():
        if field in REQUESTED:
            extra[field] = np.array(_requested(table, field, mapping), np.object_)
        elif field == ENERGY:
            joules = _numbers(table, field, mapping)
            extra[field] = texts_of(np.where(joules > 0, np.round(joules), UNKNOWN))
        elif field in NAMED and column.values is None:
            words[field] = _words(table, column.name)
        elif field in MOMENTS:
            found[field], again[field] = _moments(table, column, zone)
        else:
            found[field] = _numbers(table, field, mapping)
    numbers, names = numbered_fields(words)
    found |= numbers
    _set_order(found, again, repaired)
    origin = _origin(mapping, found)
    for field in MOMENTS:
        if field in found:
            since = found[field] if origin is None else to_microsecond(found[field] - origin)
            found[field] = np.where(np.isnan(since), UNKNOWN, since)
    for field in OF_MEMORY:
        if field in found and mapping.columns[field].per == "job":
            found[field] = _per_processor(found, field, 1)
    _fill(found, repaired)
    trace = Trace(
        Header(), all_columns(found, len(table)), source=source, names=names, extra=extra,
        repaired=repaired,
    )  # fmt: skip
    lacking = [
        f"no column {column.name} in the table: {field} is unknown"
        for field, column in given.columns.items()
        if field not in mapping.columns
    ]
    trace.header = _header(trace, mapping, origin, zone, lacking)
    return trace


def _in_table(table: Columns, mapping: TableMapping) -> TableMapping:
    """Return the mapping of the columns that a table has.

    Raises QuantityError if it lacks one that is not optional, or that a field needs.
    """
    held = set(table.names)
    missing = {field: one for field, one in mapping.columns.items() if one.name not in held}
    for field, column in missing.items():
        if not column.optional or field in ("submit", "run", "start", "end"):
            has = f"it has {listed(table.names)}"
            if mapping.numbered:
                has = f"its first line has {len(table.names)} values"
            raise QuantityError(
                f"{table.source}: no column {column.column!r}, which the mapping gives for "
                f"{field}; {has}"
            )
    columns = {field: one for field, one in mapping.columns.items() if field not in missing}
    return mapping.model_copy(update={"columns": columns})


def _words(table: Columns, name: str) -> list[str]:
    """Return a column of names, empty where there is none, and 7 for 7.0 as in all others."""
    words = list(map(str.strip, table.words(name)))
    told = set(words)
    if told & _GAP:
        words = ["" if word in _GAP else word for word in words]
        told = told - _GAP
    if any(told) and all(map(_WHOLE.fullmatch, told)):
        words = [word.removesuffix(".0") for word in words]
    return words


def _requested(table: Columns, field: str, mapping: TableMapping) -> list[str]:
    """Return a column of requests as texts, memory in MB."""
    column = mapping.columns[field]
    if column.values is not None:
        return [number_text(one) for one in _numbers(table, field, mapping).tolist()]
    if field not in REQUESTED_MEMORY:
        return _words(table, column.name)
    sizes = table.numbers(column.name) * KILOBYTES[column.unit or "MB"] / KILOBYTES["MB"]
    return ["" if one < 0 else number_text(one) for one in np.round(sizes, 3).tolist()]


def _numbers(table: Columns, field: str, mapping: TableMapping) -> Numbers:
    """Return a column in the unit of its field."""
    column = mapping.columns[field]
    name, values = column.name, column.values
    if values is not None:
        rule = f"not in the mapping's values, {listed(list(values))}"
        return table.each(name, lambda word: _value_of(word, values), rule)
    lasting = field in LASTING
    if column.unit == "clock" or (lasting and table.is_duration(name)):
        return table.durations(name)
    scale = SECONDS[column.unit or "s"] if lasting else 1.0
    if field in OF_MEMORY:
        scale = KILOBYTES[column.unit or "kB"]
    if field == ENERGY:
        scale = JOULES[column.unit or "J"]
    numbers = table.numbers(
        name, nothing=(*NO_NUMBER, *NO_LIMIT) if lasting else NO_NUMBER,
        most=LARGEST_EXACT / min(scale, 1.0),
    )  # fmt: skip
    if scale == 1.0:
        return numbers
    # Decimal fractions of hours are not exact: whole seconds and kilobytes were meant.
    scaled = np.round(numbers * scale, 6 if column.unit in ("us", "ns") else 3)
    scaled = np.where(numbers == UNKNOWN, UNKNOWN, scaled)
    large = np.abs(scaled) > LARGEST_EXACT
    if large.any():
        row = int(np.argmax(large))
        value = table.words(name)[row]
        raise table.error(row, name, value, "too large to be an exact number")
    return scaled


def _value_of(word: str, values: Mapping[str, int]) -> int:
    try:
        return values[word]
    except KeyError as error:
        raise ValueError(word) from error


def _moments(table: Columns, column: ColumnMapping, zone: str | None) -> tuple[Numbers, Numbers]:
    """Return times, and the delay until clocks show each of them a second time, s."""
    per = PER_SECOND["ms" if column.time == "unix-ms" else column.unit or "s"]
    found = table.moments(column.name, column.time, per, parse_zone(zone) or UTC)
    late = np.abs(found[0]) > LATEST
    if late.any() and column.time in ("unix", "unix-ms"):
        row = int(np.argmax(late))
        value = table.words(column.name)[row]
        raise table.error(row, column.name, value, "not a Unix time of this age")
    return found


def _set_order(found: dict[str, Any], again: dict[str, Numbers], repaired: Counter[str]) -> None:
    """Of two moments with the same local time, take the second where the first is too early."""
    for earlier, later in pairwise(field for field in MOMENTS if field in found):
        second = found[later] + again[later]
        early = (found[later] < found[earlier]) & (found[earlier] <= second)
        found[later] = np.where(early, second, found[later])
        tally(repaired, LAST_SHOWN, early)


def _origin(mapping: TableMapping, found: dict[str, Any]) -> int | None:
    """Return the Unix time of the first submission, None if times count from an origin."""
    if mapping.columns["submit"].time == "seconds":
        return None
    known = found["submit"][~np.isnan(found["submit"])]
    return int(np.floor(known.min())) if len(known) else None


def _per_processor(found: dict[str, Any], field: str, sign: int) -> Numbers:
    """Convert memory per job to memory per processor (``sign`` 1), or back (-1)."""
    unknown = np.full(len(found[field]), float(UNKNOWN))
    processors = found.get("allocated_processors", unknown)
    other = found.get("requested_processors", unknown)
    count = np.maximum(np.where(processors > 0, processors, other), 1)
    scaled = found[field] / count if sign > 0 else found[field] * count
    return np.where(found[field] == UNKNOWN, UNKNOWN, np.round(scaled, 3))


def _fill(found: dict[str, Any], repaired: Counter[str]) -> None:
    """Compute wait and run from start and end, and number the jobs if the table does not."""
    submit, start, end = found["submit"], found.pop("start", None), found.pop("end", None)
    if start is not None and "wait" not in found:
        told = (start != UNKNOWN) & (submit != UNKNOWN)
        tally(repaired, BEFORE_SUBMIT, told & (start < submit))
        found["wait"] = np.where(told, np.maximum(to_microsecond(start - submit), 0), UNKNOWN)
    if start is not None and end is not None and "run" not in found:
        told = (start != UNKNOWN) & (end != UNKNOWN)
        tally(repaired, BEFORE_START, told & (end < start))
        found["run"] = np.where(told & (end >= start), to_microsecond(end - start), UNKNOWN)
    found.setdefault("number", np.arange(1, len(submit) + 1))


def _header(
    trace: Trace, mapping: TableMapping, origin: int | None, zone: str | None, lacking: list[str]
) -> Header:
    notes = ["read from a table; what is not given below is unknown", *lacking]
    processors = mapping.processors
    start = trace["submit"] + np.maximum(trace["wait"], 0.0)
    end = start + np.maximum(trace["run"], 0.0)
    held = trace["allocated_processors"]
    if processors is None and (held > 0).any():
        ran = (trace["run"] >= 0) & (held > 0)
        processors = most_in_use(start[ran], end[ran], held[ran]) or None
        notes.append(f"{MOST_IN_USE}; the table tells no size")
    return made_header(
        jobs=len(trace),
        notes=notes,
        unix_start=origin,
        last=0 if origin is None else origin + int(end.max()),
        zone=None if origin is None else parse_zone(zone),
        processors=processors,
        names=trace.names,
    )


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    mapping = _mapping(options)
    columns: dict[str, list[str]] = {}
    for field, column in mapping.columns.items():
        if column.name in columns:
            raise QuantityError(
                f"columns.{field}: column {column.column!r} is also another field; such a mapping "
                "is only for reading"
            )
        columns[column.name] = _written(trace, field, mapping)
    if mapping.numbered:
        last = max(map(int, columns))
        places = map(str, range(1, last + 1))
        columns = {place: columns.get(place, [""] * len(trace)) for place in places}
    data = write_table(columns, mapping.delimiter, names=not mapping.numbered)
    if lost.asked:
        # The zone of the options is that of what is read.
        again = TABLE.parse(data, options=replace(options, zone=None))
        _count(trace, again, mapping, lost)
    return data


def _count(trace: Trace, again: Trace, mapping: TableMapping, lost: Losses) -> None:
    """Count what a table does not hold. Units and patterns are free, so it is read back."""
    lost.add("header", len(trace.header.lines), "a mapped table cannot hold it")
    lost.add("comments", len(trace.comments), "a mapped table cannot hold them")
    held = [field for field in mapping.columns if field in REQUESTED or field == ENERGY]
    lost.unheld_extra(trace, held, "the mapping has no column for it")
    for field in set(held) & set(trace.extra):
        differ = trace.extra[field] != again.extra[field]
        lost.add(field, differ, "its unit or words cannot hold it")
    moved = 0
    if mapping.columns["submit"].time != "seconds":
        moved = unix_origin(again.header) - unix_origin(trace.header)
    reasons = dict.fromkeys(FIELDS, "the mapping has no column")
    for field in (*mapping.columns, "wait", "run", "number"):
        reasons[field] = "its unit or pattern cannot hold it"
    lost.differences(trace, again, reasons, moved=moved)


def _written(trace: Trace, field: str, mapping: TableMapping) -> list[str]:
    """Return a column of the table as text."""
    column = mapping.columns[field]
    if field in REQUESTED:
        return _requested_written(trace, field, mapping)
    if field == ENERGY:
        scale = JOULES[column.unit or "J"]
        joules = site_numbers(trace.extra, field, len(trace)).tolist()
        return [_number_text(one / scale, mapping) if one else "" for one in joules]
    if column.values is not None:
        words = {number: word for word, number in reversed(column.values.items())}
        return [words.get(value, "") for value in trace[field].tolist()]
    if field in NAMED:
        return worded(trace, field, "")
    if field in MOMENTS:
        return _moments_written(trace, field, mapping)
    values = trace[field].astype(np.float64)
    if field in OF_MEMORY and column.per == "job":
        values = _per_processor({name: trace[name] for name in FIELDS} | {field: values}, field, -1)
    scale = KILOBYTES[column.unit or "kB"] if field in OF_MEMORY else 1.0
    if field in LASTING and column.unit == "clock":
        return ["" if value < 0 else _clock_text(value) for value in values.tolist()]
    scale = SECONDS[column.unit or "s"] if field in LASTING else scale
    held = (values != UNKNOWN) & (np.abs(values) <= LARGEST_EXACT)
    held &= np.abs(values / scale) <= LARGEST_EXACT
    pairs = zip((values / scale).tolist(), held.tolist(), strict=True)
    return [_number_text(value, mapping) if fits else "" for value, fits in pairs]


def _requested_written(trace: Trace, field: str, mapping: TableMapping) -> list[str]:
    """Return a column of requests in the units and words of the table."""
    column = mapping.columns[field]
    texts = trace.extra[field].tolist() if field in trace.extra else [""] * len(trace)
    if column.values is not None:
        words = {str(number): word for word, number in reversed(column.values.items())}
        return [words.get(text, "") for text in texts]
    scale = KILOBYTES["MB"] / KILOBYTES[column.unit or "MB"]
    if field not in REQUESTED_MEMORY or scale == 1:
        return texts
    return [_number_text(float(text) * scale, mapping) if text.isdecimal() else ""
            for text in texts]  # fmt: skip


def _moments_written(trace: Trace, field: str, mapping: TableMapping) -> list[str]:
    how, unit = mapping.columns[field].time, mapping.columns[field].unit or "s"
    per = PER_SECOND["ms" if how == "unix-ms" else unit]
    submit, wait, run = (
        np.where(trace[name] == UNKNOWN, np.nan, trace[name]) for name in ("submit", "wait", "run")
    )
    moments = {"submit": submit, "start": submit + wait, "end": submit + wait + run}[field]
    if how == "seconds":
        return _numbers_text(moments * per, mapping)
    unix = moments + unix_origin(trace.header)
    if how in ("unix", "unix-ms"):
        return _numbers_text(unix * per, mapping)
    zone = parse_zone(mapping.zone) or UTC
    found = []
    for value in unix.tolist():
        if np.isnan(value):
            found.append("")
            continue
        try:
            local = datetime.fromtimestamp(value, zone)
        except (ValueError, OverflowError, OSError):  # beyond what a calendar has
            found.append("")
            continue
        found.append(
            local.replace(tzinfo=None).isoformat() if how == "iso" else local.strftime(how)
        )
    return found


def _number_text(value: float, mapping: TableMapping) -> str:
    return number_text(value).replace(".", mapping.decimal)


def _numbers_text(values: Numbers, mapping: TableMapping) -> list[str]:
    """Return numbers as text, empty where unknown."""
    return ["" if np.isnan(value) else _number_text(value, mapping) for value in values.tolist()]


def _clock_text(seconds: float) -> str:
    days, rest = divmod(seconds, SECONDS["d"])
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    second = f"{int(rest):02d}" if rest == int(rest) else f"{rest:06.3f}"
    text = f"{int(hours):02d}:{int(minutes):02d}:{second}"
    return f"{int(days)}-{text}" if days else text


def _mapping(options: FormatOptions) -> TableMapping:
    if options.mapping is None:
        raise QuantityError("format table: needs --map FILE, which describes its columns")
    found: TableMapping = options.mapping
    return found


class MappedTable(Format):
    """The format of your own table, of which Parquet is not read as a whole."""

    @override
    def read(self, path: str | os.PathLike[str], options: FormatOptions | None = None) -> Trace:
        if not read_head(path).startswith(MAGIC):
            return super().read(path, options)
        import pyarrow as pa

        with opened(path) as file:
            gzipped = file.read(len(MAGIC)) != MAGIC
            file.seek(0)
            whole = pa.BufferReader(read_file(path, LONGEST_DOCUMENT)[0]) if gzipped else file
            trace = _parse_parquet(whole, os.fspath(path), options or FormatOptions())
        trace.sha256 = checksum(path)
        return trace

    read.__doc__ = Format.read.__doc__


#: Your own table.
TABLE = MappedTable(
    "table",
    "any table in text or Parquet, with --map",
    (),
    lambda head: False,
    _parse,
    _generate,
)

parse_mapped, generate_mapped = TABLE.parse, TABLE.generate
read_mapped, write_mapped = TABLE.read, TABLE.write
