"""Your own table, in text: a mapping gives the names and units of its columns.

:mod:`hpcrowd.environment.traces.formats.tables.mapping` describes the mapping file. Times may be
local times: the origin is then the first submission, and the header has its Unix time.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.quantities import JOULES
from hpcrowd.environment.traces.formats.common.base import (
    BEFORE_START,
    BEFORE_SUBMIT,
    LAST_SHOWN,
    Format,
    FormatOptions,
    Losses,
)
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NAMED,
    number_text,
    numbered_fields,
    worded,
)
from hpcrowd.environment.traces.formats.common.site_columns import site_numbers, texts_of
from hpcrowd.environment.traces.formats.tables.text import Table, listed, write_table
from hpcrowd.environment.traces.headers import (
    LATEST,
    made_header,
    parse_zone,
    unix_origin,
)
from hpcrowd.environment.traces.machine_size import MOST_IN_USE, most_in_use
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS
from hpcrowd.environment.traces.trace import FIELDS, Trace, all_columns, tally

if TYPE_CHECKING:  # pydantic is slow to import: it is loaded together with a mapping
    from hpcrowd.environment.traces.formats.tables.mapping import TableMapping

#: Seconds of each unit of durations.
SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

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

Numbers = NDArray[np.float64]


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    mapping = _mapping(options)
    table = Table(data, source, mapping.delimiter, mapping.decimal)
    for field, column in mapping.columns.items():
        if column.column not in table.names:
            raise QuantityError(
                f"{source}: no column {column.column!r}, which the mapping gives for {field}; it "
                f"has {listed(table.names)}"
            )
    again: dict[str, Numbers] = {}
    repaired: Counter[str] = Counter()
    words: dict[str, list[str]] = {}
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for field, column in mapping.columns.items():
        if field in REQUESTED:
            extra[field] = np.array(_requested(table, field, mapping), np.object_)
        elif field == ENERGY:
            joules = _numbers(table, field, mapping, again)
            extra[field] = texts_of(np.where(joules > 0, np.round(joules), UNKNOWN))
        elif field in NAMED and column.values is None:
            words[field] = table.words(column.column)
        else:
            found[field] = _numbers(table, field, mapping, again)
    numbers, names = numbered_fields(words)
    found |= numbers
    _set_order(found, again, repaired)
    origin = _origin(mapping, found)
    for field in MOMENTS:
        if field in found:
            since = found[field] if origin is None else _to_microsecond(found[field] - origin)
            found[field] = np.where(np.isnan(since), UNKNOWN, since)
    for field in OF_MEMORY:
        if field in found and mapping.columns[field].per == "job":
            found[field] = _per_processor(found, field, 1)
    _fill(found, repaired)
    trace = Trace(
        Header(), all_columns(found, len(table)), source=source, names=names, extra=extra,
        repaired=repaired,
    )  # fmt: skip
    trace.header = _header(trace, mapping, origin)
    return trace


def _requested(table: Table, field: str, mapping: TableMapping) -> list[str]:
    """Return a column of requests as texts, memory in MB."""
    column = mapping.columns[field]
    if column.values is not None:
        return [number_text(one) for one in _numbers(table, field, mapping, {}).tolist()]
    if field not in REQUESTED_MEMORY:
        return table.words(column.column)
    sizes = table.numbers(column.column) * KILOBYTES[column.unit or "MB"] / KILOBYTES["MB"]
    return ["" if one < 0 else number_text(one) for one in np.round(sizes, 3).tolist()]


def _numbers(table: Table, field: str, mapping: TableMapping, again: dict[str, Numbers]) -> Numbers:
    """Return a column in the unit of its field; unknown times are NaN.

    For columns of times, ``again`` gets the delay until clocks show the same time a second time,
    s; 0 if they do not.
    """
    column = mapping.columns[field]
    words = table.words(column.column)
    if column.values is not None:
        for row, word in enumerate(words):
            if word and word not in column.values:
                rule = f"not in the mapping's values, {listed(list(column.values))}"
                raise table.error(row, column.column, word, rule)
        return np.array([column.values.get(word, UNKNOWN) for word in words], np.float64)
    if field in MOMENTS:
        found, again[field] = _moments(table, field, mapping, words)
        return found
    if column.unit == "clock":
        return np.array([_clock(table, row, column.column, word) for row, word in enumerate(words)])
    values = table.numbers(column.column)
    scale = SECONDS[column.unit or "s"] if field in LASTING else 1.0
    if field in OF_MEMORY:
        scale = KILOBYTES[column.unit or "kB"]
    if field == ENERGY:
        scale = JOULES[column.unit or "J"]
    if scale == 1.0:
        return values
    # Decimal fractions of hours are not exact: whole seconds and kilobytes were meant.
    scaled = np.where(values == UNKNOWN, UNKNOWN, np.round(values * scale, 3))
    large = np.abs(scaled) > LARGEST_EXACT
    if large.any():
        row = int(np.argmax(large))
        raise table.error(row, column.column, words[row], "too large to be an exact number")
    return scaled


def _moments(
    table: Table, field: str, mapping: TableMapping, words: list[str]
) -> tuple[Numbers, Numbers]:
    """Return times, and the delay until clocks show each of them a second time, s."""
    column = mapping.columns[field]
    if column.time in ("seconds", "unix", "unix-ms"):
        values = table.numbers(column.column, np.nan)
        values = np.where(values == UNKNOWN, np.nan, values)
        values = values / 1000 if column.time == "unix-ms" else values
        late = np.abs(values) > LATEST
        if late.any() and column.time != "seconds":
            row = int(np.argmax(late))
            raise table.error(row, column.column, words[row], "not a Unix time of this age")
        return values, np.zeros(len(values))
    zone = parse_zone(mapping.zone) or UTC
    nothing = np.nan, 0.0
    known = {"": nothing, "Unknown": nothing, "None": nothing, "-": nothing, "-1": nothing}
    for row, word in enumerate(words):
        if word not in known:
            known[word] = _moment(table, row, column.column, word, column.time, zone)
    told = np.array([known[word] for word in words], np.float64).reshape(-1, 2)
    return told[:, 0], told[:, 1]


def _moment(
    table: Table, row: int, name: str, word: str, how: str, zone: tzinfo
) -> tuple[float, float]:
    try:
        moment = datetime.fromisoformat(word) if how == "iso" else datetime.strptime(word, how)
        if moment.tzinfo:
            return moment.timestamp(), 0.0
        first, second = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
        return first, max(second - first, 0.0)  # < 0 where clocks are put forward
    except (ValueError, OverflowError, OSError):
        expected = "2024-01-31T13:45:00" if how == "iso" else how
        raise table.error(row, name, word, f"not a time; the mapping expects {expected}") from None


def _set_order(found: dict[str, Any], again: dict[str, Numbers], repaired: Counter[str]) -> None:
    """Of two moments with the same local time, take the second where the first is too early."""
    for earlier, later in pairwise(field for field in MOMENTS if field in found):
        second = found[later] + again[later]
        early = (found[later] < found[earlier]) & (found[earlier] <= second)
        found[later] = np.where(early, second, found[later])
        tally(repaired, LAST_SHOWN, early)


def _clock(table: Table, row: int, name: str, word: str) -> float:
    """Return the duration ``[days-]hours:minutes:seconds`` in s."""
    if word in ("", "-1"):
        return UNKNOWN
    days, _, rest = word.rpartition("-")
    parts = rest.split(":")
    if not all(part.replace(".", "", 1).isdecimal() for part in (*parts, days or "0")) or not (
        2 <= len(parts) <= 3
    ):
        raise table.error(row, name, word, "not a duration; the mapping expects [days-]h:mm:ss")
    seconds = 0.0
    for part in parts:
        seconds = 60 * seconds + float(part)
    found = float(days or 0) * SECONDS["d"] + seconds
    if found > LARGEST_EXACT:
        raise table.error(row, name, word, "too long to be an exact number")
    return found


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
        found["wait"] = np.where(told, np.maximum(_to_microsecond(start - submit), 0), UNKNOWN)
    if start is not None and end is not None and "run" not in found:
        told = (start != UNKNOWN) & (end != UNKNOWN)
        tally(repaired, BEFORE_START, told & (end < start))
        found["run"] = np.where(told & (end >= start), _to_microsecond(end - start), UNKNOWN)
    found.setdefault("number", np.arange(1, len(submit) + 1))


def _to_microsecond(seconds: Numbers) -> Numbers:
    """Return what was meant by a difference of dates, which floats hold no finer than that."""
    return np.where(np.abs(seconds) < LARGEST_EXACT / 1e6, np.round(seconds, 6), seconds)


def _header(trace: Trace, mapping: TableMapping, origin: int | None) -> Header:
    notes = ["read from a table; what is not told below is unknown"]
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
        zone=None if origin is None else parse_zone(mapping.zone),
        processors=processors,
        names=trace.names,
    )


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    mapping = _mapping(options)
    columns = {
        column.column: _written(trace, field, mapping) for field, column in mapping.columns.items()
    }
    data = write_table(columns, mapping.delimiter)
    if lost.asked:
        _count(trace, TABLE.parse(data, options=options), mapping, lost)
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
    how = mapping.columns[field].time
    submit, wait, run = (
        np.where(trace[name] == UNKNOWN, np.nan, trace[name]) for name in ("submit", "wait", "run")
    )
    moments = {"submit": submit, "start": submit + wait, "end": submit + wait + run}[field]
    if how == "seconds":
        return _numbers_text(moments, mapping)
    unix = moments + unix_origin(trace.header)
    if how in ("unix", "unix-ms"):
        scale = 1000 if how == "unix-ms" else 1
        return _numbers_text(unix * scale, mapping)
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


#: Your own table.
TABLE = Format(
    "table",
    "any table in text, with --map",
    (),
    lambda head: False,
    _parse,
    _generate,
)

parse_mapped, generate_mapped = TABLE.parse, TABLE.generate
read_mapped, write_mapped = TABLE.read, TABLE.write
