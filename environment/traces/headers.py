"""Headers of traces: made for logs without one, and updated when the jobs below them change.

In an existing header only values of existing lines are changed; everything else stays byte for
byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any

import numpy as np

from hpcrowd.environment.clock import DAYS, ZONE_KEYS, Clock, zone_in, zone_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import UNKNOWN_VALUES, Header
from hpcrowd.environment.traces.trace import LINES, Trace

#: Fields whose names the header lists: the keys for their number, and for each name.
LISTED = {"queue": ("MaxQueues", "Queue"), "partition": ("MaxPartitions", "Partition")}

#: Unix time of the end of 2199, s: later moments in a log are mistakes.
LATEST = 7_258_118_399

#: Names of months in header dates.
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

#: Written instead of an unknown date.
UNKNOWN_DATE = "unknown"

_LINE = re.compile(rb"(;\s*([A-Za-z][A-Za-z0-9]*)\s*:(?!//)[^\S\r]*)(.*?)(\r?)$", re.DOTALL)


def with_values(header: Header, values: Mapping[str, str]) -> Header:
    """Return the header with new values for some keys, upper and lower case alike.

    Parameters
    ----------
    header
        The lines.
    values
        New value by key; keys without a line are ignored.
    """
    new = {key.lower(): value for key, value in values.items()}
    lines = []
    for line in header.lines:
        match = _LINE.match(line)
        key = match[2].decode().lower() if match else ""
        if match and key in new:
            before = match[1] if match[1][-1:].isspace() else match[1] + b" "
            line = before + new[key].encode() + match[4]
        lines.append(line)
    return Header(lines)


def header_date(clock: Clock, second: float) -> str:
    """Return a second as a header date: ``Mon Sep 23 14:00:31 CEST 1996``."""
    local = clock.local(int(second))
    if clock.date(int(second)) != f"{local:%Y-%m-%d}":  # beyond the years that have four digits
        return UNKNOWN_DATE
    day, month, zone = DAYS[local.weekday()], MONTHS[local.month - 1], local.tzname() or ""
    return f"{day} {month} {local:%d %H:%M:%S} {zone} {local.year}"


def last_end(trace: Trace) -> float | None:
    """Return the end of the last job, s; None if no job has a submit time.

    An unknown wait or run time counts as 0.
    """
    submit, wait, run = (trace[key].astype(np.float64) for key in ("submit", "wait", "run"))
    known = submit >= 0
    if not known.any():
        return None
    return float((submit + np.maximum(wait, 0) + np.maximum(run, 0))[known].max())


def true_header(before: Trace, after: Trace, *, moved: int, note: str) -> Header:
    """Return the header of ``before``, updated for ``after``.

    Counts of jobs, start and end are updated; the end only if it differs. ``MaxProcs``, queues and
    partitions describe the machine and stay.

    Parameters
    ----------
    before, after
        The trace, and the changed trace.
    moved
        How much later the origin is, in s.
    note
        What was done, for a note at the end.
    """
    jobs = str(len(after))
    values = {"MaxJobs": jobs, "MaxRecords": jobs}
    clock = Clock.of(before.header)
    start = before.header.integer("UnixStartTime")
    dated = not clock.nominal and start is not None

    def date(second: float) -> str:
        return header_date(clock, second) if dated else UNKNOWN_DATE

    if moved:
        values["StartTime"] = date(moved)
        if dated:
            values["UnixStartTime"] = str(clock.unix_start + moved)
    ended, ends = last_end(before), last_end(after)
    if ends is not None and ended is not None and ends + moved != ended:
        values["EndTime"] = date(ends + moved)
    header = with_values(before.header, values)
    tail = b"\r" if before.newline == b"\r\n" else b""
    header.lines.append(f"; Note: {note}".encode() + tail)
    return header


def made_header(
    *,
    jobs: int,
    notes: list[str],
    unix_start: int | None = None,
    last: int = 0,
    zone: tzinfo | None = None,
    processors: int | None = None,
    overuse: bool = True,
    computer: str = "",
    names: dict[str, dict[int, str]] | None = None,
) -> Header:
    """Return the header of a log that was read from another format.

    Parameters
    ----------
    jobs
        Number of jobs.
    notes
        How the trace was made: each becomes a ``Note``.
    unix_start, last
        Unix time of the origin, None if unknown, and of the last event.
    zone
        Time zone of the machine; None if unknown.
    processors
        Processors of the machine; None if unknown.
    overuse
        Whether jobs may run longer than they request, as :meth:`Header.overrun`.
    computer
        Name of the machine.
    names
        As :attr:`hpcrowd.environment.traces.trace.Trace.names`; queues and partitions are listed.
    """
    found: list[tuple[str, Any]] = [("Version", "2.2")]
    if computer:
        found.append(("Computer", computer))
    found += [("MaxJobs", jobs), ("MaxRecords", jobs)]
    if unix_start is not None:
        found.append(("UnixStartTime", unix_start))
        if zone is not None:
            found.append(("TimeZoneString", zone))
        if 0 <= unix_start <= last <= LATEST:
            clock = Clock(unix_start, zone or UTC, known=True)
            found.append(("StartTime", header_date(clock, 0)))
            found.append(("EndTime", header_date(clock, last - unix_start)))
    if processors is not None:
        found.append(("MaxProcs", processors))
    if not overuse:
        found.append(("AllowOveruse", "No"))
    for field, (how_many, each) in LISTED.items():
        listed = (names or {}).get(field, {})
        if listed:
            found.append((how_many, len(listed)))
            found += [(each, f"{number} {listed[number]}") for number in sorted(listed)]
    found += [("Note", note) for note in notes]
    lines = ((key, " ".join(str(value).splitlines())) for key, value in found)
    return Header([f"; {key}: {line}".encode() for key, line in lines])


def unix_origin(header: Header) -> int:
    """Return the Unix time of the origin of a log; 0 if it is unknown."""
    return header.integer("UnixStartTime") or 0


def parse_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by its name; None for no name.

    Raises
    ------
    QuantityError
        If it is not known.
    """
    if name is None:
        return None
    if (zone := zone_of(name)) is None:
        raise QuantityError(
            f"zone {name!r}: not known; use a name such as Europe/Stockholm, UTC or +01:00"
        )
    return zone


def left_out(header: Header) -> dict[str, int]:
    """Return the lines of a header with a size, start or zone that cannot be read.

    They are reasons of :attr:`hpcrowd.environment.traces.trace.Trace.dropped`. Only what would
    count is listed: no ``MaxNodes`` next to a good ``MaxProcs``, no ``TimeZone`` next to a good
    ``TimeZoneString``.
    """
    number = "is not a whole number such as 1024 (a note may follow in brackets)"
    found = []
    if header.unread("MaxProcs"):
        found.append(("MaxProcs", f"{number}; correct it, or give --processors"))
    if header.processors is None and header.unread("MaxNodes"):
        found.append(("MaxNodes", f"{number}; correct it, or give --processors"))
    if header.unread("UnixStartTime"):
        rule = "is not a whole number of seconds such as 1041377305; correct it to have dates"
        found.append(("UnixStartTime", rule))
    for key in ZONE_KEYS:
        value = header.get(key)
        if zone_in(value) is not None:
            break
        if value is not None and value.lower() not in UNKNOWN_VALUES:
            found.append((key, "is not a time zone such as Europe/Stockholm or +01:00; correct it"))
    return {
        f"{LINES}line {header.line(key)}, {key}: {_first_line(header.get(key))!r} {rule}": 1
        for key, rule in found
    }


def _first_line(value: str | None) -> str:
    return (value or "").partition("\n")[0][:80]
