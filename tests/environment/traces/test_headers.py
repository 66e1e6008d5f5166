"""Headers that are true after a change, and parts of traces with all that belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment import Clock, Header, Trace, generate_swf, parse_swf
from hpcrowd.environment.traces.headers import header_date, last_end, true_header, with_values
from hpcrowd.environment.traces.trace import cut_references, take_jobs

Make = Callable[..., Trace]

TEXT = b"""; Version: 2.2
;  MaxJobs:  4
;MaxRecords:4
; UnixStartTime: 843480031
; TimeZoneString: Europe/Stockholm
; StartTime: Mon Sep 23 14:00:31 CEST 1996
; EndTime:   Mon Sep 23 14:02:21 CEST 1996
; MaxProcs: 4 (dual)
; Queue:  1  MaxJobs
; Information: http://maxjobs: 7
1 0 0 10 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1
; between
2 50 5 10 1 -1 -1 1 -1 -1 1 2 -1 -1 -1 -1 1 40
3 60 -1 -1 1 -1 -1 1 -1 -1 5 1 -1 -1 -1 -1 2 3
; before the last
4 100 -1 10 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 9 3
; the end
"""


def test_only_values_are_replaced() -> None:
    """Marks, blanks and line ends around a value stay, and so does every other line."""
    header = Header([b"; Version: 2.2", b";  MaxJobs:  4\r", b";maxjobs:4", b"; Note: MaxJobs: 4"])
    assert [b"; Version: 2.2", b";  MaxJobs:  12\r", b";maxjobs: 12", b"; Note: MaxJobs: 4"] == (
        with_values(header, {"MaxJobs": "12", "Other": "1"}).lines
    )


def test_header_of_a_part() -> None:
    """Counts and end are those of the jobs that are left; a note says what was done."""
    trace = parse_swf(TEXT)
    part = take_jobs(trace, np.array([0, 1]))
    assert [
        b"; Version: 2.2",
        b";  MaxJobs:  2",
        b";MaxRecords: 2",
        b"; UnixStartTime: 843480031",
        b"; TimeZoneString: Europe/Stockholm",
        b"; StartTime: Mon Sep 23 14:00:31 CEST 1996",
        b"; EndTime:   Mon Sep 23 14:01:36 CEST 1996",
        b"; MaxProcs: 4 (dual)",
        b"; Queue:  1  MaxJobs",
        b"; Information: http://maxjobs: 7",
        b"; Note: cut",
    ] == true_header(trace, part, moved=0, note="cut").lines


def test_end_that_is_the_same_stays_as_it_was_written() -> None:
    """Where the last job is still there, the line of the end stays byte for byte."""
    trace = parse_swf(TEXT)
    part = take_jobs(trace, np.array([3]))
    assert trace.header.lines[6] == true_header(trace, part, moved=0, note="").lines[6]


def test_origin_that_moves() -> None:
    """Start and UnixStartTime move along, over a change of the clocks."""
    trace = parse_swf(TEXT)
    month = 35 * 86400
    header = true_header(trace, trace, moved=month, note="")
    assert 843480031 + month == header.integer("UnixStartTime")
    assert "Mon Oct 28 13:00:31 CET 1996" == header.get("StartTime")


def test_dates_that_nobody_can_tell() -> None:
    """Without UnixStartTime, dates that have changed are unknown; those that have not, stay."""
    trace = parse_swf(TEXT.replace(b"; UnixStartTime: 843480031\n", b""))
    part = take_jobs(trace, np.array([0]))
    header = true_header(trace, part, moved=0, note="")
    assert "Mon Sep 23 14:00:31 CEST 1996" == header.get("StartTime")
    assert "unknown" == header.get("EndTime")
    assert "unknown" == true_header(trace, trace, moved=604800, note="").get("StartTime")
    assert header.get("UnixStartTime") is None


def test_note_has_the_line_end_of_the_file() -> None:
    """In a file with Windows line ends, the new line has one, too."""
    trace = parse_swf(TEXT.replace(b"\n", b"\r\n"))
    header = true_header(trace, trace, moved=0, note="x")
    assert b"; Note: x\r" == header.lines[-1]
    assert {b"\r"} == {line[-1:] for line in header.lines}


@pytest.mark.parametrize(
    ("clock", "second", "expected"),
    [
        (Clock(843480031, ZoneInfo("Europe/Stockholm"), True), 0, "Mon Sep 23 14:00:31 CEST 1996"),
        (Clock(0, UTC), 4 * 86400, "Mon Jan 05 00:00:00 UTC 1970"),
        (Clock(0, UTC), 2**53, "unknown"),
    ],
)
def test_dates(clock: Clock, second: int, expected: str) -> None:
    """Dates are written as the archive does; what no calendar has is unknown."""
    assert expected == header_date(clock, second)


def test_last_end(make_trace: Make) -> None:
    """The last job to be over counts, also one that never ran; without submit times, none does."""
    assert 110 == last_end(parse_swf(TEXT))
    assert last_end(make_trace({"run": 5})) is None
    assert 2.0**40 + 2.0**30 == last_end(make_trace({"submit": 2.0**40, "run": 2.0**30}))


def test_comments_keep_their_places() -> None:
    """A comment stays before the next job that is kept, with or without the job it stood before."""
    trace = parse_swf(TEXT)
    part = take_jobs(trace, np.array([True, False, True, False]))
    lines = generate_swf(part).splitlines()[len(trace.header.lines) :]
    assert [b"1", b";", b"3", b";", b";"] == [line.split()[0] for line in lines]
    assert b"; before the last" == lines[3]
    assert len(parse_swf(generate_swf(part))) == 2


def test_references_to_jobs_that_are_gone() -> None:
    """They become -1 with their think time; a reference that led nowhere before stays."""
    trace = parse_swf(TEXT)
    part, count = cut_references(trace, take_jobs(trace, np.array([1, 2, 3])))
    assert 1 == count
    assert ([-1, 2, 9], [-1, 3, 3]) == (part["preceding"].tolist(), part["think_time"].tolist())
    same, count = cut_references(trace, trace)
    assert (0, trace["preceding"].tolist()) == (count, same["preceding"].tolist())
