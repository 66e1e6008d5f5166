"""Slurm's accounting as text: which rows become jobs, how they become fields, what is written."""

import csv
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hpcrowd import jobs_from_trace, read_trace
from hpcrowd.environment.traces.formats.slurm import table as sacct_table
from hpcrowd.environment.traces.formats.slurm.columns import COLUMNS
from hpcrowd.environment.traces.formats.slurm.values import parse_time
from hpcrowd.errors import TraceError
from hpcrowd.formats import FormatOptions, Losses, generate_sacct, parse_sacct
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import by_field, shown
from tests.support.sacct import JOB, NOON, ODD, UTC, job, read, table, text, told

PARIS = FormatOptions(zone="Europe/Paris")


def test_every_oddity_in_one_text(monkeypatch):
    """How much is read at once changes nothing, nor does writing; the header says when it was."""
    odd = parse_sacct(ODD, "odd.txt", PARIS)
    ids = ["100", "101_1", "101_2", "101_[3-8,10%2]", "110", "120", "140", "150"]
    assert ids == odd.extra["job_id"].tolist()
    assert {1: "ada", 2: "zoë", 3: "bob", 4: "1003"} == odd.names["user"]
    assert ([1, 1], [1, 1, 5, 6]) == tuple(
        sorted(counts.values()) for counts in (odd.repaired, odd.dropped)
    )
    made = jobs_from_trace(odd)
    assert (2, 1) == (made.dropped["no run time (never ran)"], made.dropped["state RUNNING"])
    assert 1729965600 == odd.header.integer("UnixStartTime")  # 26 October, 20:00 in Paris
    assert "Sun Oct 27 03:10:00 CET 2024" == odd.header.get("EndTime")
    assert 1024 == odd.processors
    monkeypatch.setattr(sacct_table, "PIECE", 700)
    pieces = parse_sacct(ODD, "odd.txt", PARIS)
    assert (odd.repaired, odd.dropped) == (pieces.repaired, pieces.dropped)
    assert {"components": 1} == lost(odd, PARIS)  # sacct's text has one job in one row
    for trace in (pieces, parse_sacct(generate_sacct(odd, options=PARIS), options=PARIS)):
        assert (table(odd), odd.names) == (table(trace), trace.names)
        assert ids == trace.extra["job_id"].tolist()
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
GIVEN = {
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
def test_values_of_columns(make_trace, fields, queue, expected):
    """Times, states and processor time are as Slurm writes them; columns follow the queue."""
    row = rows(make_trace(GIVEN | fields), FormatOptions(queue=queue))[0]
    assert expected == {name: row[name] for name in expected}


def test_columns_and_values(make_trace):
    """A job is a row with all columns, and a row of a step that gives its memory."""
    trace = make_trace(GIVEN, header="; UnixStartTime: 1706702400\n; TimeZoneString: Asia/Tokyo")
    trace.names["user"] = {7: "ada"}
    first, step = rows(trace)
    assert list(COLUMNS) == list(first)
    assert (
        "1 ada 3 9 2  1 2024-01-31T12:00:00 2024-01-31T12:00:05 2024-01-31T12:01:05 60 COMPLETED 4 "
        "3  2 512Kc   00:00:50" == " ".join(first.values())
    )
    assert ["1.batch", "batch", "2048K", "4"] == [
        step[name] for name in ("JobID", "JobName", "MaxRSS", "NTasks")
    ]
    assert "2024-01-31T13:00:00" == rows(trace, PARIS)[0]["Submit"]


def test_numbers_of_jobs(make_trace):
    """Jobs keep the number that Slurm gave them, else that of the trace, if all differ."""
    trace = make_trace(GIVEN | {"number": 17}, GIVEN | {"number": 4, "submit": 1})
    twice = make_trace(GIVEN | {"number": 17}, GIVEN | {"number": 17})
    late = make_trace(GIVEN | {"submit": 9}, GIVEN, GIVEN | {"submit": 9, "run": 8})
    slurms = read({"JobID": "9_3"}, {"JobID": "12", "Submit": "2024-01-31T12:00:01"})
    assert [["17", "4"], ["1", "2"], ["2", "1", "3"], ["9_3", "12"]] == [
        [row["JobID"] for row in rows(one) if row["User"]] for one in (trace, twice, late, slurms)
    ]
    assert {"number": 2} == lost(late)  # they are put in the order of submissions


def test_what_else_is_counted_or_held(make_trace):
    """Columns of other formats, numbers not of Slurm, and a step of tasks that did not start."""
    trace = make_trace(GIVEN, GIVEN | {"submit": 1})
    trace.extra["project"] = np.array(["", "x"], object)
    trace.extra["job_id"] = np.array(["77.server", "78.server"], object)
    trace.names["user"] = {7: "\ud800"}
    assert {"project": 1, "job_id": 2, "user": 2} == lost(trace)
    trace = read({"JobID": "9_[1,3,...]", "State": "CANCELLED", "MaxRSS": "5K"})
    assert [5] == trace["memory"].tolist()
    assert "9_[1,3,...].batch" == rows(trace, UTC)[1]["JobID"]
    assert {} == lost(trace, UTC)


AGAIN = "requeued after a failure or preemption: an earlier run without start or end left out"
EARLY = "started before it was submitted: wait taken as 0"
FIRST = "ambiguous local time (clocks put back): the first taken"
PARTS = "heterogeneous job: parts merged into one job, processors added up"
REST = "array tasks that never started, in one row: one of them kept"
SECOND = "ambiguous local time (clocks put back): the second taken, which fits the other times"

ENDED = {
    1: ("COMPLETED", "CD"),
    5: ("CANCELLED", "CA", "CANCELLED by 1000", "CANCELLED+", "cancelled"),
    0: ("FAILED", "F", "TIMEOUT", "TO", "NODE_FAIL", "NF", "OUT_OF_MEMORY", "OOM", "BOOT_FAIL",
        "BF", "DEADLINE", "DL", "PREEMPTED", "PR", "LAUNCH_FAILED"),
}  # fmt: skip
GONE = {"State": "CANCELLED by 7", "ElapsedRaw": "0", "AllocCPUS": "0", "TotalCPU": ""}
NEVER = {"wait": 900, "run": -1, "allocated_processors": 0, "average_cpu": -1, "status": 5}

#: Values of the columns of one job ("no": the column is missing), and fields that follow from them.
FIELDS_OF_A_JOB: list[tuple[dict[str, str], dict[str, float]]] = [
    *(({"State": word}, {"status": status}) for status, words in ENDED.items() for word in words),
    # times
    ({}, {"wait": 300, "run": 600, "preceding": -1, "think_time": -1, "memory": -1}),
    ({"ElapsedRaw": "500", "End": ""}, {"run": 500}),
    ({"ElapsedRaw": "no", "Elapsed": "1-00:00:01"}, {"run": 86401}),
    ({"ElapsedRaw": "no", "Elapsed": "05:00", "End": ""}, {"run": 300}),
    # elapsed time is without that for which a job was suspended, whether a column says so or not
    *((more | {"ElapsedRaw": "592"}, {"run": 600})
      for more in ({}, {"Suspended": ""}, {"Suspended": "00:00:08"}, {"Suspended": "00:00:07"})),
    ({"ElapsedRaw": "592", "Suspended": "00:00:00"}, {"run": 592}),
    ({"ElapsedRaw": ""}, {"run": 600}),
    *(({name: "no"}, {"wait": 300, "run": 600}) for name in ("Start", "End", "ElapsedRaw")),
    *(({"Submit": word}, {"submit": -1, "wait": -1, "run": 600})
      for word in ("Unknown", "None", "N/A", "", "UNKNOWN")),
    # jobs that never started, and some that did
    *((GONE | {"Start": start, "ElapsedRaw": elapsed}, NEVER)
      for start in ("None", "Unknown") for elapsed in ("0", "")),
    ({"State": "CANCELLED", "End": "2024-01-31T12:05:00", "ElapsedRaw": "0"},
     {"wait": 300, "run": 0}),
    ({"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "AllocCPUS": "0"},
     {"wait": -1, "run": 0, "status": 1}),
    # processors: the first of the columns that say the same; large counts are shortened by 1024
    ({"AllocCPUS": "no", "NCPUS": "16"}, {"allocated_processors": 16}),
    ({"AllocCPUS": "no", "AllocTRES": "billing=9,cpu=16,mem=4G,node=2"},
     {"allocated_processors": 16}),
    ({"AllocCPUS": "no", "AllocTRES": "gres/gpu=1"}, {"allocated_processors": -1}),
    ({"AllocTRES": "cpu=9", "AllocCPUS": "4"}, {"allocated_processors": 4}),
    *(({"AllocCPUS": word}, {"allocated_processors": count})
      for word, count in (("1K", 1024), ("2.50K", 2560), ("1M", 2**20))),
    ({"ReqCPUS": "no", "ReqTRES": "cpu=8,node=1"}, {"requested_processors": 8}),
    # processor time, to a thousandth of a second
    *(({"TotalCPU": word, "AllocCPUS": "4"}, {"average_cpu": seconds})
      for word, seconds in (("00:40", 10), ("00:40.500", 10.125), ("01:00:40", 910),
                            ("2-00:00:00", 43200), ("", -1))),
    ({"TotalCPU": "00:10", "AllocCPUS": "3"}, {"average_cpu": 3.333}),
    ({"TotalCPU": "00:10", "AllocCPUS": "0"}, {"average_cpu": -1}),
    # requested time: minutes, else a duration; no limit is none
    *(({"TimelimitRaw": word}, {"requested_time": seconds})
      for word, seconds in (("90", 5400), ("0", 0), ("Partition_Limit", -1), ("UNLIMITED", -1),
                            ("", -1), ("INVALID", -1))),
    *(({"TimelimitRaw": "no", "Timelimit": word}, {"requested_time": seconds})
      for word, seconds in (("01:30:00", 5400), ("7-00:00:00", 604800), ("UNLIMITED", -1),
                            ("Partition_Limit", -1), ("", -1))),
    # requested memory: of a CPU, of each of two nodes by eight CPUs, of the job, MB; 0 is all
    *(({"ReqMem": word, "ReqCPUS": "8", "AllocCPUS": "16", "NNodes": "2"},
       {"requested_memory": kilobytes})
      for word, kilobytes in (("4Gc", 4 * 2**20), ("4Gn", 2**20), ("4G", 2**19), ("4000", 512000),
                              ("4000M", 512000), ("1.5T", 201326592), ("8K", 1), ("0", -1),
                              ("0n", -1), ("0c", -1), ("", -1))),
    ({"ReqMem": "8M", "ReqCPUS": "no", "AllocCPUS": "16"}, {"requested_memory": 512}),
    *(({"NNodes": "no", column: "2", "ReqMem": "1Gn"}, {"requested_memory": 2 * 2**20})
      for column in ("AllocNodes", "ReqNodes")),
    ({"NNodes": "no", "ReqMem": "1Gn"}, {"requested_memory": -1}),
    # names that are numbers stand for themselves
    ({"User": "no", "UID": "1000"}, {"user": 1000}),
    ({"Account": "no", "GID": "100"}, {"group": 100}),
    ({"JobName": "42"}, {"executable": 42}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "expected"), FIELDS_OF_A_JOB)
def test_fields_of_a_job(row, expected):
    """Each field follows from its column, else from the next one that says the same."""
    found = told(**row)
    assert expected == {name: found[name] for name in expected}


def clock(submit, start, end, elapsed="", day="2024-10-27"):
    """A row of times of one day, by default of that when clocks were put back in Paris."""
    times = {"Submit": submit, "Start": start, "End": end}
    return {name: f"{day}T{time}:00" if time else "" for name, time in times.items()} | {
        "ElapsedRaw": elapsed
    }


MOVED = "nonexistent local time (clocks put forward): moved to the end of the gap"
ZONELESS = "no time zone given: times taken as UTC"
UNIX = {"Submit": "1706702400", "Start": "1706702700", "End": "0"}


@pytest.mark.parametrize(
    ("row", "zone", "wait", "run", "repaired"),
    [
        (clock("02:10", "02:20", "02:30", "600"), "Europe/Paris", 600, 600, FIRST),
        (clock("02:50", "02:10", "02:20", "600"), "Europe/Paris", 1200, 600, SECOND),
        (clock("01:00", "01:30", "04:00", "5400", "2024-03-31"), None, 1800, 5400, ZONELESS),
        (clock("02:00", "02:50", "02:20"), "Europe/Paris", 3000, 1800, SECOND),
        (clock("02:10", "02:20", "03:00", "2400"), "Europe/Paris", 4200, 2400, SECOND),
        (clock("02:10", "02:20", "03:00", "6000"), "Europe/Paris", 600, 6000, FIRST),
        (clock("01:59", "02:30", "", "600", "2024-03-31"), "Europe/Paris", 60, 600, MOVED),
        ({"Submit": "1729989000", "Start": "1729992600", "End": ""}, "Europe/Paris", 3600, 600, ""),
        (clock("12:06", "12:05", "12:15", "600"), "UTC", 0, 600, EARLY),
        (clock("12:00", "12:05", "12:04"), "UTC", 300, -1,
         "ended before it started: run time unknown"),
    ],
)  # fmt: skip
def test_times_that_need_a_repair(row, zone, wait, run, repaired):
    """Hours shown twice or never, times out of order and times without a zone are counted."""
    trace = read(row, zone=zone)
    assert ([wait], [run]) == (trace["wait"].tolist(), trace["run"].tolist())
    assert ({repaired: 1} if repaired else {}) == trace.repaired
    assert zone == trace.header.get("TimeZoneString")
    note = b"; Note: the log tells no time zone; times were taken as UTC"
    assert (repaired == ZONELESS) == (note in trace.header.lines)


@pytest.mark.parametrize(
    ("row", "zone", "start"),
    [
        (UNIX, None, 1706702400),
        ({"Submit": NOON + "+0100", "Start": "2024-01-31T11:05:00Z"}, "Asia/Tokyo", 1706698800),
        ({"Submit": NOON + "-0330"}, "UTC", 1706702400 + 12600),
        ({}, "Europe/Paris", 1706698800),
    ],
)
def test_first_submission(row, zone, start):
    """An offset or a Unix time is a moment; other times are local ones of the zone, else UTC."""
    assert start == read(row, zone=zone).header.integer("UnixStartTime")


LATER = {"Submit": "2024-01-31T13:00:00", "Start": "2024-01-31T13:10:00", "ElapsedRaw": "60"}
EVE = {"Cluster": "eve"}
ALL = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RQ")
TASKS = {"JobID": "9_[6-10%2]", "State": "CANCELLED by 7", "Start": "None", "ElapsedRaw": "0"}
HELD = {"State": "CANCELLED by 1", "ElapsedRaw": "0", "Start": "2024-01-31T12:10:00",
        "End": "2024-01-31T12:10:00"}  # fmt: skip
WAITING = {
    "PENDING": ("PENDING", "PD"), "RUNNING": ("RUNNING", "R"), "SUSPENDED": ("SUSPENDED", "S"),
    "REQUEUED": ("REQUEUED", "RQ"), "RESIZING": ("RESIZING", "RS"), "REVOKED": ("RV",),
    "CONFIGURING": ("CF",), "COMPLETING": ("CG",), "REQUEUE_HOLD": ("REQUEUE_HOLD",),
    "STOPPED": ("STOPPED",), "SIGNALING": ("SIGNALING",), "STAGE_OUT": ("STAGE_OUT",),
}  # fmt: skip

DOUBLED = "lines: duplicate rows of one run"
METER = {"ConsumedEnergyRaw": ""}
STEP_USED = {"JobID": "1.batch", "MaxRSS": "320K", "ConsumedEnergyRaw": "1040"}

#: Rows, the fields or columns of the jobs that they are, and what was repaired and dropped.
ROWS: list[tuple[list[dict[str, str]], dict[str, list[Any]], dict[str, int], dict[str, int]]] = [
    # what is not over is dropped by its state
    *(([{}, {"JobID": "2", "State": word}, {"JobID": "3", "State": word}], {"job_id": ["1"]}, {},
       {f"state {name}": 2}) for name, words in WAITING.items() for word in words),
    # jobs are in the order of submissions; without a submission they stand first
    ([{"JobID": str(place), "Submit": f"2024-01-31T12:00:{second}"}
      for place, second in enumerate(("05", "00", "05", "01"))],
     {"job_id": ["1", "3", "0", "2"], "number": [1, 2, 3, 4], "submit": [0, 1, 5, 5]}, {}, {}),
    ([{}, {"JobID": "2", "Submit": "Unknown"}], {"job_id": ["2", "1"], "submit": [-1, 0]}, {}, {}),
    # after such an end a row of the same number is the same job: last run, first submission
    *(([{"State": state}, LATER], {"wait": [4200], "run": [60],
                                   "runs": [f"300:900:3600:1:{state.replace('RQ', 'REQUEUED')}"]},
       {}, {}) for state in ALL),
    ([{"State": "PREEMPTED"}, {"State": "PREEMPTED", "Submit": "2024-01-31T12:30:00",
                               "Start": "Unknown"}, LATER],
     {"wait": [4200], "runs": ["300:900:1800:1:PREEMPTED"]}, {}, {}),
    ([{"State": "NODE_FAIL", "Start": "Unknown", "End": "Unknown"}, LATER],
     {"restarts": ["1"], "run": [60]}, {AGAIN: 1}, {}),
    ([{"JobID": "2"}, {"State": "NODE_FAIL"}, {**LATER, "State": "PENDING"}], {"job_id": ["2"]},
     {}, {"state PENDING": 1}),
    # after another end, of another user or in another cluster it is another job
    *(([{"State": state}, LATER], {"run": [600, 60]}, {}, {})
      for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")),
    ([{"State": "NODE_FAIL"}, {**LATER, "User": "bob"}], {"run": [600, 60]}, {}, {}),
    ([{"State": "NODE_FAIL"}, {"JobID": "1.0", "MaxRSS": "1K"}, EVE | LATER,
      {"JobID": "1.0", "MaxRSS": "2K"} | EVE], {"memory": [1, 2]}, {}, {}),
    # the same row of two files counts once
    ([{"State": "RUNNING", "End": "Unknown"}, {}], {"run": [600]}, {},
     {DOUBLED: 1}),
    # it has the steps of all its rows, each once, and is over if one says so
    *((rows, {"memory": [320], "energy": ["1040"], "run": [600]}, {}, {DOUBLED: 1})
      for rows in ([METER, STEP_USED, METER], [METER, METER, STEP_USED, STEP_USED],
                   [METER, STEP_USED, METER, STEP_USED],
                   [METER, STEP_USED, METER | {"State": "RUNNING", "End": "Unknown"}])),
    # memory is the largest of the steps of the last run, wherever they stand
    ([{}, *({"JobID": f"1.{name}", "MaxRSS": size} for name, size in (
        ("batch", "100K"), ("extern", ""), ("0", "3M"), ("interactive", "2048K")))],
     {"memory": [3072]}, {}, {}),
    *(([{}, {"JobID": "1.0", "MaxRSS": word}], {"memory": [kilobytes]}, {}, {})
      for word, kilobytes in (("20480K", 20480), ("1.5G", 1572864), ("2T", 2**31), ("2048", 2),
                              ("512", 0.5), ("0", 0))),
    ([{"AveRSS": ""}, {"JobID": "1.0", "MaxRSS": "", "AveRSS": "7K"},
      {"JobID": "1.1", "MaxRSS": "5K", "AveRSS": "9K"}], {"memory": [7]}, {}, {}),
    ([{"State": "NODE_FAIL"}, {"JobID": "1.batch", "MaxRSS": "900K"}, LATER,
      {"JobID": "1.batch", "MaxRSS": "100K"}], {"memory": [100]}, {}, {}),
    ([{}, {"JobID": "1.0", "MaxRSS": "7K", "Cluster": ""}], {"memory": [7]}, {}, {}),
    # it is shared by the processors: of one task, or each of eight, the larger total
    ([{"AllocCPUS": "8"}, {"JobID": "1.0", "MaxRSS": "3000K", "NTasks": "1"},
      {"JobID": "1.1", "MaxRSS": "1900K", "NTasks": "8"}], {"memory": [1900]}, {}, {}),
    *(([{"AllocCPUS": held, "ReqCPUS": asked}, {"JobID": "1.0", "MaxRSS": "80K", "NTasks": tasks}],
       {"memory": [kilobytes]}, {}, {})
      for held, asked, tasks, kilobytes in (
          ("4", "2", "", 20), ("4", "2", "Unknown", 20), ("", "8", "2", 20), ("", "", "2", 160))),
    ([{}, {"JobID": "9.0"}, {"JobID": "9.batch"}, {"JobID": "11_3.0"}], {"job_id": ["1"]}, {},
     {"steps without a row of their job": 2}),
    # each task of an array is a job with its own steps; of those that never started one is kept
    ([*({"JobID": f"9_{task}"} for task in (1, 2, 10)), {"JobID": "9_2.batch", "MaxRSS": "5K"}],
     {"job_id": ["9_1", "9_2", "9_10"], "memory": [-1, 5, -1]}, {}, {}),
    ([{"JobID": "1"}, TASKS | {"State": "PENDING"}], {"job_id": ["1"]}, {}, {"state PENDING": 5}),
    *(([TASKS | {"JobID": f"9_{listed}"}], {"run": [-1]}, {}, {REST: more} if more else {})
      for listed, more in (("[6-10%2]", 4), ("[1]", 0), ("[1,3,7-8]", 3), ("[1-10:3]", 3),
                           ("[0-99,200%10]", 100), ("[1,3,5,...]", 2), ("[1,3,5,...", 2))),
    # parts of a heterogeneous job are one: sums, first start, last end, the first says who
    ([{"JobID": "9+1", "User": "bob", "AllocCPUS": "6", "ReqCPUS": "3", "TotalCPU": "16:00",
       "ReqMem": "2Mc", "TimelimitRaw": "90"},
      {"JobID": "9+0", "AllocCPUS": "2", "TotalCPU": "04:00", "ReqMem": "6Mc"},
      {"JobID": "9+1.0", "MaxRSS": "8K"}, {"JobID": "9+0.0", "MaxRSS": "7K"}],
     {"allocated_processors": [8], "requested_processors": [4], "average_cpu": [150],
      "memory": [15 / 8], "requested_time": [5400], "requested_memory": [3072], "user": ["ada"],
      "job_id": ["9"]}, {PARTS: 1}, {}),
    ([{"JobID": "9+0"}, {"JobID": "9+1", "Start": "2024-01-31T12:06:00", "ElapsedRaw": "900",
                         "State": "TIMEOUT"}],
     {"wait": [300], "run": [960], "status": [0]}, {PARTS: 1}, {}),
    ([{"JobID": "2"}, {"JobID": "9+0"}, {"JobID": "9+1", "State": "RUNNING"}], {"job_id": ["2"]},
     {}, {"state RUNNING": 1}),
    ([{"JobID": "9+1"}], {"job_id": ["9+1"]}, {}, {}),
    ([{"JobID": f"9+{part}", "AllocCPUS": "4"} | run
      for run in ({"State": "NODE_FAIL"}, LATER) for part in (0, 1)],
     {"allocated_processors": [8], "wait": [4200], "run": [60],
      "runs": ["300:900:3600:8:NODE_FAIL"]}, {PARTS: 1}, {}),
    # sacct lists tasks by the numbers that they got when they started, the last one first
    ([{"JobID": "7_2"}, {"JobID": "8"}, {"JobID": "7_0"}, {"JobID": "7_1"}],
     {"job_id": ["7_0", "7_1", "7_2", "8"]}, {}, {}),
    # a job that was cancelled while it was held may have a start, but no nodes
    ([{"JobID": "1", "NodeList": "None assigned"} | HELD, {"JobID": "2", "NodeList": "n1"} | HELD],
     {"run": [-1, 0], "allocated_processors": [0, 1]}, {}, {}),
    # names
    ([{"UID": "1000"}, {"JobID": "2", "User": "", "UID": "1001"}], {"user": ["ada", "1001"]}, {},
     {}),
    ([{"Account": "", "Group": "staff", "GID": "100"}], {"group": ["staff"]}, {}, {}),
    ([{"JobName": '"fast'}, {"JobID": "2", "JobName": 'say "hi"'}],
     {"executable": ['"fast', 'say "hi"']}, {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected", "repaired", "dropped"), ROWS)
def test_rows_become_jobs(rows, expected, repaired, dropped):
    """Rows are jobs, runs, steps, tasks or parts; what is put together or left out is counted."""
    trace = read(*rows)
    assert expected == {name: [value for (value,) in shown(trace, name)] for name in expected}
    assert (repaired, dropped) == (trace.repaired, trace.dropped)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"JobID": "1.0"}, {"JobID": "1.batch"}], "1 steps without"),
        ([{"JobID": str(place), "State": state} for place, state in enumerate(
            ("PENDING", "RUNNING", "STOPPED", "REVOKED", "REVOKED"))],
         "2 state REVOKED, 1 state PENDING, 1 state RUNNING)"),
    ],
)  # fmt: skip
def test_no_job_has_ended(rows, why):
    """Such a file has no trace; the most frequent reasons are reported."""
    with pytest.raises(TraceError) as caught:
        read(*rows)
    assert f"jobs.txt: contains no jobs that have ended ({why}" in str(caught.value)


def test_names_are_of_the_columns_and_numbered_by_submissions():
    """The header says what queue and partition are; the first user is who submitted first."""
    rows = {"Submit": "2024-02-01T00:00:00"}, {"JobID": "2", "User": "bob"}
    trace = read(*rows)
    assert {1: "bob", 2: "ada"} == trace.names["user"]
    assert ({1: "long"}, {1: "hal"}) == (trace.names["queue"], trace.names["partition"])
    assert b"; Note: queue is Slurm's Partition, partition its Cluster" in trace.header.lines
    assert "hal" == trace.header.get("Computer")
    trace = read(*rows, queue="qos")
    assert ({1: "normal"}, {1: "long"}) == (trace.names["queue"], trace.names["partition"])
    assert b"; Note: queue is Slurm's QOS, partition its Partition" in trace.header.lines
    assert trace.header.get("Computer") is None


def test_columns():
    """Six are enough; without JobID numbers are those of JobIDRaw; others are named."""
    data = f"JobIDRaw|Submit|State|End|Elapsed|NCPUS\n7|{NOON}|CD|2024-01-31T13:00:00|30:00|2\n"
    trace = parse_sacct(data, options=UTC)
    row = job(trace)
    assert ["7"] == trace.extra["job_id"].tolist()
    assert (1, 0, 1800, 1800, 2, -1) == tuple(
        row[name] for name in ("number", "submit", "wait", "run", "allocated_processors", "user")
    )
    assert ("Layout", "AveCPU") == parse_sacct(text({"Layout": "x", "AveCPU": ""})).not_read
    assert () == parse_sacct(text(JOB)).not_read


def test_dependencies_of_several_clusters():
    """Jobs of two clusters with one number are different jobs, whatever the queue is."""
    rows = [
        {"JobID": job_id, "Cluster": cluster, "Submit": f"2024-01-31T12:0{minute}:00",
         "SubmitLine": line}
        for job_id, minute, line in (("1", 0, ""), ("2", 1, "sbatch -d afterany:1 x"))
        for cluster in ("hal", "sal")
    ]  # fmt: skip
    for queue in ("partition", "qos"):
        trace = read(*rows, queue=queue)
        assert [-1, -1, 1, 2] == trace["preceding"].tolist(), queue
