"""Headers that stay true when the jobs below them change.

Only lines that are there are changed, and of those only the value; all others stay byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import numpy as np

from hpcrowd.environment.clock import DAYS, Clock
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.trace import Trace

#: Months as dates in headers name them.
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

#: Stands where a line asks for a date that nobody can tell.
UNKNOWN_DATE = "unknown"

_LINE = re.compile(rb"(;\s*([A-Za-z][A-Za-z0-9]*)\s*:(?!//)[^\S\r]*)(.*?)(\r?)$", re.DOTALL)


def with_values(header: Header, values: Mapping[str, str]) -> Header:
    """Return the header with other values of some keys, upper and lower case alike.

    Parameters
    ----------
    header
        The lines.
    values
        New value by key; keys without a line are left out.
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
    """Return a second as headers write dates: ``Mon Sep 23 14:00:31 CEST 1996``."""
    try:
        local: datetime = clock.local(int(second))
    except (OverflowError, ValueError):  # beyond what a calendar has
        return UNKNOWN_DATE
    day, month, zone = DAYS[local.weekday()], MONTHS[local.month - 1], local.tzname() or ""
    return f"{day} {month} {local:%d %H:%M:%S} {zone} {local.year}"


def last_end(trace: Trace) -> float | None:
    """Return when the last job was over, s; None where no job has a submit time.

    What a job lacks, wait or run time, counts as 0.
    """
    submit, wait, run = (trace[key].astype(np.float64) for key in ("submit", "wait", "run"))
    known = submit >= 0
    if not known.any():
        return None
    return float((submit + np.maximum(wait, 0) + np.maximum(run, 0))[known].max())


def true_header(before: Trace, after: Trace, *, moved: int, note: str) -> Header:
    """Return the header of ``before`` made true for ``after``.

    Counts of jobs, start and end are told anew; the end only if it is another. ``MaxProcs``, queues
    and partitions say what the machine is like and stay.

    Parameters
    ----------
    before, after
        The trace, and what became of it.
    moved
        How much later the origin is, s.
    note
        What was done, for a line at the end.
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
