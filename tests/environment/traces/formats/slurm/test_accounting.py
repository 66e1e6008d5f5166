"""Slurm's accounting as text: one with every oddity, how it is read, and what is written."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from hpcrowd import jobs_from_trace, read_trace
from hpcrowd.environment.traces.formats.slurm import table as sacct_table
from hpcrowd.environment.traces.formats.slurm.columns import COLUMNS
from hpcrowd.environment.traces.formats.slurm.values import parse_time
from hpcrowd.formats import FormatOptions, Losses, generate_sacct, parse_sacct
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import by_field, shown
from tests.support.sacct import ODD, UTC, read, table

PARIS = FormatOptions(zone="Europe/Paris")


@pytest.fixture(scope="module")
def odd():
    """The text with every oddity."""
    return parse_sacct(ODD, "odd.txt", PARIS)


def test_every_oddity_in_one_text(odd):
    """Steps, arrays, requeues, parts, units, states and hours shown twice give these very jobs."""
    expected = [
        # number submit wait run alloc cpu memory req limit reqmem status user group exe queue part
        [1, 0, 3600, 14400, 64, 14400, 2097152 / 64, 64, 129600, 262144, 1, 1, 1, 1, 1, 1],
        [2, 600, 60, 90, 1, 45.5, -1, 1, -1, 2048000, 0, 2, 2, 2, 2, 1],
        [3, 600, 60, 3600, 1, 3540, -1, 1, 3600, 2048000, 0, 2, 2, 2, 2, 1],
        [4, 600, 1200, -1, 0, -1, -1, 1, -1, 2048000, 5, 2, 2, 2, 2, 1],
        [5, 3600, 4205, 3600, 4, 1800, -1, 4, 14400, 4194304, 0, 3, 1, 3, 1, 1],
        [6, 10800, 1800, 3600, 8, 1800, 1024000 / 8, 8, 7200, 2097152, 1, 1, 1, 4, 1, 1],
        [7, 24600, 1200, 3600, 1024, 0, -1, 1024, -1, -1, 1, 4, -1, 5, 1, 1],
        [8, 46800, 3600, -1, 0, -1, -1, 8, 600, 64000, 5, 1, 1, 6, 1, 1],
    ]
    assert [[*row, -1, -1] for row in expected] == table(odd)

    assert {1: "ada", 2: "zoë", 3: "bob", 4: "1003"} == odd.names["user"]
    assert {1: "physics", 2: "chemistry"} == odd.names["group"]
    assert 'relax "fast"' == odd.names["executable"][1]
    assert ({1: "long", 2: "short"}, {1: "hal"}) == (odd.names["queue"], odd.names["partition"])
    ids = ["100", "101_1", "101_2", "101_[3-8,10%2]", "110", "120", "140", "150"]
    assert ids == odd.extra["job_id"].tolist()


def test_what_was_done_to_the_oddities_is_counted(odd, monkeypatch):
    """All that is repaired or dropped is counted by reason; the header says how it was read."""
    assert {
        "heterogeneous job: parts merged into one job, processors added up": 1,
        "ambiguous local time (clocks put back): the second taken, which fits the other times": 1,
    } == odd.repaired
    assert {
        "array tasks that never started, in one row: one of them kept": 6,
        "state PENDING": 5,
        "state RUNNING": 1,
        "steps without a row of their job": 1,
    } == odd.dropped
    made = jobs_from_trace(odd)
    assert (2, 1) == (made.dropped["no run time (never ran)"], made.dropped["state RUNNING"])
    header = odd.header
    assert 1729965600 == header.integer("UnixStartTime")  # 26 October, 20:00 in Paris
    keys = ("TimeZoneString", "Computer", "StartTime", "EndTime")
    assert [
        "Europe/Paris", "hal", "Sat Oct 26 20:00:00 CEST 2024", "Sun Oct 27 03:10:00 CET 2024"
    ] == [header.get(key) for key in keys]  # fmt: skip
    assert 1024 == odd.processors
    assert any("most processors in use" in value for _, value in header.entries())
    monkeypatch.setattr(sacct_table, "PIECE", 700)  # how much is read at once changes nothing
    pieces = parse_sacct(ODD, "odd.txt", PARIS)
    assert (odd.repaired, odd.dropped) == (pieces.repaired, pieces.dropped)
    assert {} == lost(odd, PARIS)
    for trace in (pieces, parse_sacct(generate_sacct(odd, options=PARIS), options=PARIS)):
        assert (table(odd), odd.names) == (table(trace), trace.names)
        assert odd.extra["job_id"].tolist() == trace.extra["job_id"].tolist()
        assert odd.header.lines == trace.header.lines


TIMES = ["{}", "{}Z", "{}+0530", "{}-03:00", "1706702400", "0", "Unknown", "", "None", "NONE"]


ODD_TIMES = ["0x65BA3100", "0000000000", "-170670240", "2024-01-31 12:00:00"]


@given(
    words=st.lists(st.sampled_from(TIMES), max_size=6),
    odd=st.sampled_from(["", *ODD_TIMES]),
    minute=st.integers(0, 59),
)
def test_times_of_a_piece_are_those_of_its_words(words, odd, minute):
    """Times mean the same read all at once as word by word; what is odd is left to the latter."""
    words = [word.format(f"2024-01-31T12:{minute:02}:59") for word in [*words, odd]]
    column = pa.array([word.encode() for word in words], pa.binary())
    found = sacct_table._times(column)
    try:
        expected = [parse_time(word.encode()) for word in words]
    except ValueError:
        assert found is None
    else:
        assert found is None or expected == found.tolist()


COMPLETION = (
    "JobId={} UserId=ann(1001) GroupId=grp(100) Name={} JobState={} Partition=p TimeLimit=60 "
    "StartTime={} EndTime=2024-01-31T12:15:00 NodeList={} NodeCnt=1 ProcCnt=4 WorkDir=/home/a b "
    "ReservationName= Tres=cpu=4,mem=8G,node=1,billing=4 Account=acc QOS=normal WcKey= "
    "Cluster=unknown SubmitTime=2024-01-31T12:00:00 EligibleTime=2024-01-31T12:00:00 "
    "DerivedExitCode=0:0 ExitCode=0:15 \n"
)


def test_log_of_completions(tmp_path):
    """The log of jobcomp/filetxt has a job a line; names have blanks, and odd lines are counted."""
    path = tmp_path / "jobcomp.log"
    text = COMPLETION.format(7, "two words", "TIMEOUT", "2024-01-31T12:05:00", "n[1-2]")
    text += "JobId=8 UserId\n" + COMPLETION.format(9, "x", "CANCELLED", "Unknown", "(null)")
    path.write_text(text)
    trace = read_trace(path, options=FormatOptions(zone="UTC"))
    assert [
        ("7", "ann", "acc", "two words", 0, 300, 600, 4, 4, 3600, 2**21, 0, "TIMEOUT", "0:15"),
        ("9", "ann", "acc", "x", 0, 900, -1, 0, 4, 3600, 2**21, 5, "CANCELLED", "0:15"),
    ] == shown(
        trace, "job_id", "user", "group", "executable", "submit", "wait", "run",
        "allocated_processors", "requested_processors", "requested_time", "requested_memory",
        "status", "final_state", "exit_code",
    )  # fmt: skip
    rule = "left out: not JobId, UserId, GroupId, Name and JobState (first: job 2 of the list)"
    assert {rule: 1} == trace.dropped


#: A job that Slurm's accounting holds as it is.
HELD = {
    "submit": 0, "wait": 5, "run": 60, "allocated_processors": 4, "average_cpu": 12.5,
    "memory": 2048, "requested_processors": 3, "requested_time": 120, "requested_memory": 512,
    "status": 1, "user": 7, "group": 3, "executable": 9, "queue": 2, "partition": 1,
}  # fmt: skip


def rows(trace, options=None):
    """What is written, row by row."""
    text = generate_sacct(trace, options=options).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="|", quoting=csv.QUOTE_NONE))


def lost(trace, options=None):
    """Jobs that are counted as lost, by field."""
    losses = Losses()
    generate_sacct(trace, losses, options)
    return by_field(losses)


@pytest.mark.parametrize(
    ("fields", "queue", "expected"),
    [
        ({}, "partition", {"Submit": "1970-01-01T00:00:00"}),
        ({"run": -1, "status": 5}, "partition",
         {"Start": "Unknown", "End": "1970-01-01T00:00:05", "ElapsedRaw": "0"}),
        ({"status": 4, "average_cpu": 21600.25}, "partition",
         {"State": "FAILED", "TotalCPU": "1-00:00:01"}),
        ({"status": -1, "average_cpu": -1}, "partition", {"State": "COMPLETED", "TotalCPU": ""}),
        ({}, "qos", {"QOS": "2", "Partition": "1", "Cluster": ""}),
    ],
)  # fmt: skip
def test_columns_and_values(make_trace, fields, queue, expected):
    """A job is a row with all columns, and a row of a step that gives its memory."""
    row = rows(make_trace(HELD | fields), FormatOptions(queue=queue))[0]
    assert expected == {name: row[name] for name in expected}
    trace = make_trace(HELD, header="; UnixStartTime: 1706702400\n; TimeZoneString: Asia/Tokyo")
    trace.names["user"] = {7: "ada"}
    first, step = rows(trace)
    assert list(COLUMNS) == list(first)
    assert {
        "JobID": "1", "User": "ada", "Account": "3", "JobName": "9", "Partition": "2", "QOS": "",
        "Cluster": "1", "Submit": "2024-01-31T12:00:00", "Start": "2024-01-31T12:00:05",
        "End": "2024-01-31T12:01:05", "ElapsedRaw": "60", "State": "COMPLETED", "AllocCPUS": "4",
        "ReqCPUS": "3", "NNodes": "", "TimelimitRaw": "2", "ReqMem": "512Kc", "MaxRSS": "",
        "NTasks": "", "TotalCPU": "00:00:50",
    } == first  # fmt: skip
    assert ["1.batch", "batch", "2048K", "4"] == [
        step[name] for name in ("JobID", "JobName", "MaxRSS", "NTasks")
    ]
    assert "2024-01-31T13:00:00" == rows(trace, PARIS)[0]["Submit"]


def test_numbers_of_jobs(make_trace):
    """Jobs keep the number that Slurm gave them, else that of the trace, if all differ."""
    trace = make_trace(HELD | {"number": 17}, HELD | {"number": 4, "submit": 1})
    twice = make_trace(HELD | {"number": 17}, HELD | {"number": 17})
    late = make_trace(HELD | {"submit": 9}, HELD, HELD | {"submit": 9, "run": 8})
    slurms = read({"JobID": "9_3"}, {"JobID": "12", "Submit": "2024-01-31T12:00:01"})
    assert [["17", "4"], ["1", "2"], ["2", "1", "3"], ["9_3", "12"]] == [
        [row["JobID"] for row in rows(one) if row["User"]] for one in (trace, twice, late, slurms)
    ]
    assert {"number": 2} == lost(late)  # they are put in the order of submissions


def test_what_else_is_counted_or_held(make_trace):
    """Columns of other formats, numbers not of Slurm, and a step of tasks that did not start."""
    trace = make_trace(HELD, HELD | {"submit": 1})
    trace.extra["project"] = np.array(["", "x"], object)
    trace.extra["job_id"] = np.array(["77.server", "78.server"], object)
    trace.names["user"] = {7: "\ud800"}
    assert {"project": 1, "job_id": 2, "user": 2} == lost(trace)
    trace = read({"JobID": "9_[1,3,...]", "State": "CANCELLED", "MaxRSS": "5K"})
    assert [5] == trace["memory"].tolist()
    assert "9_[1,3,...].batch" == rows(trace, UTC)[1]["JobID"]
    assert {} == lost(trace, UTC)
