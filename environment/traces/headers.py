"""Headers of traces: made for logs without one, and updated when the jobs below them change.

In an existing header only values of existing lines are changed; everything else stays byte for
byte.

Formats such as SWF count submissions from the start of the log. Some logs hold Unix times instead;
added to the start in the header, or to none, they would give dates decades off. One rule for all
formats, :func:`count_from_first`, finds them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any

import numpy as np

from hpcrowd.environment.clock import DAY, DAYS, ZONE_KEYS, Clock, header_zone, zone_in, zone_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.header import FOUND, UNKNOWN_VALUES, Header
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.trace import LINES, Trace, smallest

#: Fields whose names the header lists: the keys for their number, and for each name.
LISTED = {"queue": ("MaxQueues", "Queue"), "partition": ("MaxPartitions", "Partition")}

#: Unix time of the end of 2199, s: later moments in a log are mistakes.
LATEST = 7_258_118_399

#: Names of months in header dates.
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

#: Written instead of an unknown date.
UNKNOWN_DATE = "unknown"

#: Begins the notes of a log of which a simulated one was made.
OF_LOG = "of the original log: "

_LINE = re.compile(rb"(;\s*([A-Za-z][A-Za-z0-9]*)\s*:(?!//)[^\S\r]*)(.*?)(\r?)$", re.DOTALL)


def with_values(header: Header, values: Mapping[str, str]) -> Header:
    """Return the header with new values by key, upper and lower case alike.

    Keys without a line are ignored.
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


def is_dated(header: Header, clock: Clock) -> bool:
    """Return whether a header says on which day its log began."""
    return not clock.nominal and header.integer("UnixStartTime") is not None


def date_in(header: Header, clock: Clock, second: float) -> str:
    """Return a second as a date of a header; unknown if the header has no dates."""
    return header_date(clock, second) if is_dated(header, clock) else UNKNOWN_DATE


def notes_marked(header: Header) -> Header:
    """Return the header of a simulated log: notes are of the log that was recorded, and say so.

    Those on the size of the machine stay.
    """
    lines, kept = [], tuple(one.encode() for one in (*FOUND, OF_LOG))
    for line in header.lines:
        match = _LINE.match(line)
        note = match[3].strip() if match and match[2].lower() == b"note" else b""
        if match and note and not note.startswith(kept):
            line = match[1] + OF_LOG.encode() + match[3] + match[4]
        lines.append(line)
    return Header(lines)


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
    """Return the header of ``before``, updated for ``after``, whose origin is ``moved`` s later.

    Counts of jobs, start and end are updated; the end only if it differs. ``MaxProcs``, queues and
    partitions describe the machine and stay. A note of what was done comes at the end.
    """
    jobs = str(len(after))
    values = {"MaxJobs": jobs, "MaxRecords": jobs}
    clock = Clock.of(before.header)
    if moved:
        values["StartTime"] = date_in(before.header, clock, moved)
        if is_dated(before.header, clock):
            values["UnixStartTime"] = str(clock.unix_start + moved)
    ended, ends = last_end(before), last_end(after)
    if ends is not None and ended is not None and ends + moved != ended:
        values["EndTime"] = date_in(before.header, clock, ends + moved)
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

    Raises QuantityError if it is not known.
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


#: Unix times of the beginnings of 1980 and 2100: first submissions in between may be Unix times.
PLAUSIBLE = (315_532_800, 4_102_444_800)

#: Longest time from the start in the header to the first submission, s: ten years. No log begins
#: with ten years without a submission.
LONGEST_START = PLAUSIBLE[0]

#: Why submissions are moved.
COUNTED = "submit is a Unix time: counted from the first one"

#: Why submissions of a trace are read back as others.
READ_AS_UNIX = "later than 1980: will be read as a Unix time"

#: Decimal places of a fraction: as many as Unix times have as floating point numbers.
PLACES = 6


def first_unix_time(trace: Trace) -> int:
    """Return the first submission, s, if submissions are Unix times; else 0.

    They are if the first one is a moment between 1980 and 2100, more than ten years after the
    origin. If the header gives a start, the first submission must also be at most a day before it,
    or ten years after it: as seconds since the start it would be decades away.
    """
    submit = trace["submit"]
    told = submit[submit != UNKNOWN]
    first = int(np.floor(told.min())) if len(told) else 0
    start = unix_origin(trace.header)
    near = start <= 0 or -DAY <= first - start <= LONGEST_START
    return first if PLAUSIBLE[0] < first < PLAUSIBLE[1] and near else 0


def count_from_first(trace: Trace) -> bool:
    """Count submissions from the first one if they are Unix times, and put it into the header.

    Returns whether they were, which is counted as a repair.
    """
    origin = first_unix_time(trace)
    if not origin:
        return False
    submit, header = trace["submit"], trace.header
    moved = submit != UNKNOWN
    # A Unix time with a fraction is exact to a microsecond; the digits beyond are not in the log.
    since = np.round(submit - np.float64(origin), PLACES)
    trace.columns["submit"] = smallest(np.where(moved, since, submit))
    trace.repaired[COUNTED] = int(moved.sum())
    date = header_date(Clock(origin, header_zone(header) or UTC), 0)
    if header.get("UnixStartTime") is None:
        lines = [f"; UnixStartTime: {origin}"]
        if header.get("StartTime") is None:
            lines.append(f"; StartTime: {date}")
        tail = b"\r" if trace.newline == b"\r\n" else b""
        header.lines += [line.encode() + tail for line in lines]
    elif unix_origin(header) != origin:
        trace.header = with_values(header, {"UnixStartTime": str(origin), "StartTime": date})
    return True
