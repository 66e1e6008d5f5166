"""Submissions that are Unix times: one rule for all formats that count them from the first job.

Formats such as SWF count submissions from the start of the log. Some logs hold Unix times instead;
added to the start in the header, or to none, they would give dates decades off.
"""

from __future__ import annotations

from datetime import UTC

import numpy as np

from hpcrowd.environment.clock import DAY, Clock, header_zone
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.headers import header_date, unix_origin, with_values
from hpcrowd.environment.traces.trace import Trace, smallest

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
