"""Windows of a trace, parts of it, and headers that are true after a change."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hpcrowd import Clock, generate_swf, parse_swf, replay, window
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.header import MOST_HELD
from hpcrowd.environment.traces.headers import header_date, last_end, true_header
from hpcrowd.environment.traces.trace import take_jobs
from hpcrowd.errors import QuantityError, TraceError
from hypothesis import given
from hypothesis import strategies as st

HEADER = """; MaxJobs: 5
; MaxRecords: 5
; UnixStartTime: 1072911600
; TimeZoneString: Europe/Stockholm
; StartTime: Thu Jan 01 00:00:00 CET 2004
; EndTime: Sat Jan 10 00:00:00 CET 2004
; MaxProcs: 8"""

DAY = 86400


def story(make_trace, header=HEADER):
    """Return five jobs, one a day from the second on, and one without submit time."""
    return make_trace(
        {"submit": DAY, "run": 60, "wait": 5, "user": 1},
        {"submit": 2 * DAY, "run": 60, "user": 2, "preceding": 1, "think_time": 7},
        {"submit": -1, "run": 60, "user": 2},
        {"submit": 3 * DAY, "run": 60, "user": 3, "preceding": 2, "think_time": 8},
        {"submit": 9 * DAY, "run": 0, "user": 2},
        header=header,
    )


def test_two_days(make_trace):
    """The jobs of two days are counted from the first one's midnight, and the header says so."""
    trace = story(make_trace)
    part, done = window(trace, datetime(2004, 1, 3), datetime(2004, 1, 5))
    assert [2, 4] == part["number"].tolist()
    assert [0, DAY] == part["submit"].tolist()
    assert ([-1, 2], [-1, 8]) == (part["preceding"].tolist(), part["think_time"].tolist())
    changed = {
        0: b"; MaxJobs: 2", 1: b"; MaxRecords: 2", 2: b"; UnixStartTime: 1073084400",
        4: b"; StartTime: Sat Jan 03 00:00:00 CET 2004", 5: b"; EndTime: Sun Jan 04 00:01:00 CET "
        b"2004", 7: b"; Note: hpcrowd window: submitted from 2004-01-03 00:00:00 to 2004-01-05 "
        b"00:00:00; 2 of 5 jobs",
    }  # fmt: skip
    assert [*(dict(enumerate(trace.header.lines)) | changed).values()] == part.header.lines
    assert (2 * DAY, 4 * DAY, 2 * DAY, 1) == (done.begin, done.end, done.moved, done.cut)
    assert {"no submit time": 1, "submitted before the window": 1,
            "submitted after the window": 1} == done.left_out  # fmt: skip
    # a date before the origin changes no time either
    part, done = window(trace, datetime(2003, 12, 1), 3 * DAY)
    assert ([DAY, 2 * DAY], 0) == (part["submit"].tolist(), done.moved)


@pytest.mark.parametrize(
    ("only", "numbers", "left_out", "note"),
    [
        ({"only_users": ["ada", range(2, 3)]}, [1, 2], {"of other users": 2}, "of users ada, 2-2"),
        ({"only_queues": "gpu"}, [1, 2], {"of other queues": 2}, "of queues gpu"),
        ({"only_groups": [8]}, [3, 4], {"of other groups": 2}, "of groups 8"),
        ({"only_states": "completed, cancelled"}, [1, 3], {"in other states": 2},
         "in states completed, cancelled"),
        ({"only_states": ["unknown"]}, [4], {"in other states": 3}, "in states unknown"),
        ({"only_processors": "4-"}, [2, 3], {"of other sizes": 2}, "on 4- processors"),
        ({"only_processors": "-4"}, [1, 2, 4], {"of other sizes": 1}, "on -4 processors"),
        ({"only_processors": 4}, [2], {"of other sizes": 3}, "on 4 processors"),
        (
            {"only_queues": "gpu", "only_processors": "1-2"}, [1],
            {"of other queues": 2, "of other sizes": 1}, "of queues gpu, on 1-2 processors",
        ),
    ],
)  # fmt: skip
def test_parts_of_other_kinds(make_trace, only, numbers, left_out, note):
    """By name or number, by state and by size; a job counts for the first reason that applies."""
    trace = make_trace(
        {"user": 1, "group": 7, "queue": 1, "status": 1, "requested_processors": 2},
        {"user": 2, "group": 7, "queue": 1, "status": 0, "requested_processors": 4},
        {"user": 4, "group": 8, "queue": 2, "status": 5, "allocated_processors": 8,
         "requested_processors": -1},
        {"user": 3, "group": 8, "queue": 2, "status": -1, "requested_processors": 1},
    )  # fmt: skip
    trace.names |= {"user": {1: "ada"}, "queue": {1: "gpu", 2: "batch"}}
    trace.extra["final_state"] = np.array(["COMPLETED", "TIMEOUT", "CANCELLED", ""], np.object_)
    part, done = window(trace, **only)
    assert (numbers, left_out) == (part["number"].tolist(), done.left_out)
    assert f"hpcrowd window: {note}; {len(part)} of 4 jobs" == part.header.get("Note")
    assert 0 == done.moved


@pytest.mark.parametrize(
    ("begin", "end", "users", "error", "words"),
    [
        (DAY, DAY, None, QuantityError, "empty; it must end"),
        (2 * DAY, datetime(2004, 1, 1), None, QuantityError, "empty; it must end"),
        (None, None, [8], QuantityError, "user 8: has no job in made"),
        (10**12, None, None, TraceError, "no job is left of 5: 1 no submit time, 4 sub"),
        (datetime(2004, 1, 1), None, None, QuantityError, "has no start time"),
    ],
)
def test_what_cannot_be_asked(make_trace, begin, end, users, error, words):
    """An empty window, a user without jobs and a window without a job are errors."""
    with pytest.raises(error, match=words):
        window(story(make_trace, "" if "start" in words else HEADER), begin, end, only_users=users)


@given(
    submits=st.lists(st.integers(-1, 10**6), min_size=1, max_size=30),
    begin=st.none() | st.integers(0, 10**6),
    length=st.none() | st.integers(1, 10**6),
    dated=st.booleans(),
)
def test_windows_are_true(make_trace, submits, begin, length, dated):
    """Of any jobs, those of the window stay, in order, all else equal; what is written is true."""
    rng = np.random.default_rng(len(submits))
    highest = {"run": 10**5, "user": 4, "preceding": len(submits) + 3, "think_time": 99}
    jobs = [
        {"submit": submit} | {name: rng.integers(-1, most) for name, most in highest.items()}
        for submit in submits
    ]
    trace = make_trace(*jobs, header=HEADER if dated else "; MaxJobs: 0")
    end = None if length is None else (begin or 0) + length
    timed = begin is not None or end is not None
    expected = [
        row
        for row, submit in enumerate(submits)
        if not timed or (submit >= max(begin or 0, 0) and (end is None or submit < end))
    ]
    if not expected:
        with pytest.raises(TraceError, match="no job is left"):
            window(trace, begin, end)
        return
    part, done = window(trace, begin, end)
    read = parse_swf(generate_swf(part))
    assert len(trace) == len(read) + done.left_out.total()
    for name in set(trace.columns) - {"submit", "preceding", "think_time"}:
        assert trace[name][expected].tolist() == read[name].tolist()
    back = np.where(read["submit"] >= 0, read["submit"].astype(np.int64) + done.moved, -1)
    assert trace["submit"][expected].tolist() == back.tolist()
    assert dated or done.moved == (begin or 0) // WEEK * WEEK  # weekdays stay without a date
    assert done.moved == 0 or begin
    numbers, before = set(read["number"].tolist()), trace["preceding"][expected].tolist()
    expected_references = [p if p in numbers or p > len(trace) or p < 1 else -1 for p in before]
    assert expected_references == read["preceding"].tolist()
    assert done.cut == sum(a != b for a, b in zip(expected_references, before, strict=True))
    assert len(read) == read.header.integer("MaxJobs")
    if dated:
        clock, ended = Clock.of(read.header), last_end(read)
        assert header_date(clock, 0) == read.header.get("StartTime")
        if ended is not None and ended + done.moved != last_end(trace):
            assert header_date(clock, ended) == read.header.get("EndTime")


TEXT = b"""; Version: 2.2
;  MaxJobs:  4
;maxrecords:4
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


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_header_and_comments_of_a_part(end):
    """Only values of what has changed are replaced; comments stay before the next job kept."""
    trace = parse_swf(TEXT.replace(b"\n", end))
    tail = end.removesuffix(b"\n")
    part = take_jobs(trace, np.array([True, False, True, False]))
    changed = {1: b";  MaxJobs:  2", 2: b";maxrecords: 2", 10: b"; Note: cut",
               6: b"; EndTime:   Mon Sep 23 14:01:31 CEST 1996"}  # fmt: skip
    expected = dict(enumerate(trace.header.lines)) | {n: line + tail for n, line in changed.items()}
    assert [*expected.values()] == true_header(trace, part, moved=0, note="cut").lines
    lines = generate_swf(part).splitlines()[len(trace.header.lines) :]
    assert [b"1 0", b"; between", b"3 60", b"; before", b"; the"] == [
        b" ".join(line.split()[:2]) for line in lines
    ]


@pytest.mark.parametrize(
    ("rows", "moved", "start", "end"),
    [([0], 0, True, False), ([3], 0, True, True), (range(4), 604800, False, False)],
)
def test_dates_that_nobody_can_tell(rows, moved, start, end):
    """Without UnixStartTime, dates that have changed are unknown; those that have not, stay."""
    trace = parse_swf(TEXT.replace(b"; UnixStartTime: 843480031\n", b""))
    header = true_header(trace, take_jobs(trace, np.array(rows)), moved=moved, note="")
    for key, stays in (("StartTime", start), ("EndTime", end)):
        assert (trace.header.get(key) if stays else "unknown") == header.get(key)
    assert header.get("UnixStartTime") is None


def test_last_end(make_trace):
    """The last job to be over counts, also one that never ran; without submit times, none does."""
    assert 110 == last_end(parse_swf(TEXT))
    assert last_end(make_trace({"run": 5})) is None
    assert "Mon Jan 05 00:00:00 UTC 1970" == header_date(Clock(0, UTC), 4 * 86400)
    assert "unknown" == header_date(Clock(0, UTC), 2**53)  # no calendar has it
    assert 2.0**40 + 2.0**30 == last_end(make_trace({"submit": 2.0**40, "run": 2.0**30}))


def test_header_of_a_simulated_log():
    """It ends when the simulation ended; notes are of the original log, but not on its size."""
    notes = f"\n; Note: uses FCFS\n;       on Sundays\n; Note: {MOST_HELD}\n; Note: "
    jobs = "\n".join(f"{n} 0 0 86400 8 -1 -1 8 -1 -1 1 1 -1 -1 -1 -1 -1 -1" for n in (1, 2, 3))
    log = parse_swf(HEADER + notes + "\n" + jobs)
    made = replay(log, scheduler="fcfs").to_trace()
    assert "Sun Jan 04 00:00:00 CET 2004" == made.header.get("EndTime")
    assert "Thu Jan 01 00:00:00 CET 2004" == made.header.get("StartTime")
    expected = [
        "of the original log: uses FCFS\non Sundays", MOST_HELD, "",
        "simulated by hpcrowd: think-time, fcfs",
    ]  # fmt: skip
    assert expected == [value for key, value in made.header.entries() if key == "Note"]
    again = replay(made, processors="2x").to_trace()
    found = [value for key, value in again.header.entries() if key == "Note"]
    assert [expected[0], "", f"of the original log: {expected[-1]}"] == found[:-1]
    undated = parse_swf("; EndTime: Friday\n; MaxProcs: 8\n" + jobs)
    assert "unknown" == replay(undated).to_trace().header.get("EndTime")
