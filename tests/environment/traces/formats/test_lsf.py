"""LSF's lsb.acct is read and written."""

from __future__ import annotations

from typing import Any

import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_lsf,
    parse_lsf,
    parse_swf,
)
from hpcrowd.environment.traces.formats.lsf import LSF
from hypothesis import given

from tests.environment.traces.formats.accounting_cases import COLUMNS, losses_are_exact, shown
from tests.support.neighbours import any_trace, damaged, told_in_one_line

#: 31 January 2024 12:00:00 UTC.
NOON = 1_706_702_400

#: What ends a record of LSF 10.1 after the limit, options and average memory, with the run time.
TAIL = '"select[type == any] " "" -1 "" -1 0 "" 0 0 "" {} "/home/ada" 0 "" 0.0 0.0 0.0 0.0 0.0'


def record(**changes: Any) -> str:
    """A record of a job that ran from five past twelve to five past one, with some changes."""
    told: dict[str, Any] = {
        "end": NOON + 3900, "id": 7, "processors": 8, "submit": NOON, "start": NOON + 300,
        "user": '"ada"', "queue": '"normal"', "depend": '""', "asked": "0", "hosts": '1 "8*n1"',
        "status": 64, "name": '"relax"', "command": '"./relax ""a b"" c"', "user_time": "28000.5",
        "project": '"default"', "exit": 0, "index": 0, "memory": 4096, "reservation": '""',
        "why": 0, "extension": "0", "usage": "0", "limit": 7200, "run": 3600,
    }  # fmt: skip
    told |= changes
    t = told
    return (
        f'"JOB_FINISH" "10.1" {t["end"]} {t["id"]} 1001 33554438 {t["processors"]} {t["submit"]} '
        f'0 0 {t["start"]} {t["user"]} {t["queue"]} "rusage[mem=4096]" {t["depend"]} "" "login" '
        f'"/home/ada" "" "out" "" "1706702400.7" {t["asked"]} {t["hosts"]} {t["status"]} 60.0 '
        f"{t['name']} {t['command']} {t['user_time']} 12.5 960 0 -1 0 0 3026 0 0 0 0 -1 0 0 0 12 6 "
        f'-1 "" {t["project"]} {t["exit"]} {t["processors"]} "" "" {t["index"]} {t["memory"]} 0 '
        f'"" "" {t["reservation"]} "" 0 "" {t["why"]} "" -1 "" "" "" "" -1 "" "" 6160 "" '
        f'{t["start"]} "" "" {t["extension"]} {t["usage"]} {t["limit"]} 0 8640 '
        f"{TAIL.format(t['run'])}\n"
    )


#: A job, an element of an array, one that was requeued, one killed while it waited, one that ran
#: too long, and events of other kinds.
LOG = (
    '"EVENT_ADRSV_FINISH" "10.1" 1706702000 1706701000 1 0 "ada" "user#0" "n1"\n'
    + record()
    + record(id=8, index=4, submit=NOON + 60, name='"scan[1-10]%2"', hosts='2 "n1" "n2"',
             processors=2, command='"./scan"', project='"p7"', depend='"done(7)"')
    + record(id=9, user='"bob"', submit=NOON + 90, why=10, status=32, exit=130 << 8)
    + '"JOB_RESIZE" "10.1" 1706702500 9 0 1706702400 1001 "bob" 0 0 1 "n1" 1 "n2" 1 "n1" 1 "n2"\n'
    + record(id=9, user='"bob"', submit=NOON + 90, start=NOON + 4000, end=NOON + 4100,
             hosts='1 "n3"', usage='1 n3 1306 0 1287 242 0', run=40)
    + record(id=10, submit=NOON + 100, start=0, hosts="0", status=32, why=14, end=NOON + 700,
             user_time="-1.0", memory=0, run=0)
    + record(id=11, submit=NOON + 120, name='""', status=32, why=5, exit=140 << 8, limit=3600,
             reservation='"ada#3"', asked='1 "n1"', extension='2 1032 "0" 1033 "0"')
)  # fmt: skip


def test_story() -> None:
    """Times, processors, limits and ends are those of the records."""
    trace = parse_lsf(LOG)
    assert [
        ("7", "ada", "relax", 0, 300, 3600, 8, 8, 7200, 1),
        ("8[4]", "ada", "scan", 60, 240, 3600, 2, 2, 7200, 1),
        ("9", "bob", "relax", 90, 3910, 100, 1, 8, 7200, 1),
        ("10", "ada", "relax", 100, 600, -1, -1, 8, 7200, 5),
        ("11", "ada", "./relax", 120, 180, 3600, 8, 8, 3600, 0),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_processors", "requested_time", "status",
    )  # fmt: skip
    assert [1, 2, 3, 4, 5] == trace["number"].tolist()
    assert {"run again by the manager: last run and first submission kept": 1} == trace.repaired
    assert {1: "normal"} == trace.names["queue"]


def test_text_columns() -> None:
    """They have what the Standard Workload Format has no field for."""
    assert [
        ("COMPLETED", "", "n1", "1", "", "", "", "", ""),
        ("COMPLETED", "", "n1,n2", "2", "", "", "", "done(7)", "p7"),
        ("COMPLETED", "", "n3", "1", "60", "1", "", "", ""),
        ("TERM_OWNER", "", "", "", "", "", "", "", ""),
        ("TERM_RUNLIMIT", "140", "n1", "1", "", "", "ada#3", "", ""),
    ] == shown(
        parse_lsf(LOG), "final_state", "exit_code", "node_list", "nodes", "suspended", "restarts",
        "reservation", "dependency", "project",
    )  # fmt: skip


def test_memory_and_cpu_time() -> None:
    """They are per processor; -1 and 0 are unknown."""
    trace = parse_lsf(LOG)
    assert [512, 2048, 4096, -1, 512] == trace["memory"].tolist()
    assert 28013 / 8 == trace["average_cpu"][0]
    assert -1 == trace["average_cpu"][3]


def test_old_records() -> None:
    """Values after maxRSwap may be missing, and then there is no limit."""
    text = record().split(' "" "" "" "" 0 "" 0')[0]
    assert [(-1, 4096 / 8)] == shown(parse_lsf(text), "requested_time", "memory")


@pytest.mark.parametrize(
    ("changes", "field", "value", "rule"),
    [
        ({"id": "x"}, "jobId", "x", "whole number"),
        ({"submit": 10**12}, "submitTime", "1000000000000", "1970 to 2199"),
        ({"processors": "8.5"}, "numProcessors", "8.5", "whole number"),
        ({"hosts": '1 "x*n1"'}, "execHosts", "x*n1", "whole number"),
        ({"hosts": '"n1" "n2"'}, "numExHosts", '"n1"', "whole number"),
        ({"user_time": "long"}, "ru_utime", "long", "not a number"),
        ({"limit": '"x"', "usage": "x"}, "numHostRusage", "x", "whole number"),
    ],
)
def test_malformed_values(changes: dict[str, Any], field: str, value: str, rule: str) -> None:
    """A malformed value is one line with file, line, field, value and rule."""
    with pytest.raises(ParseError, match=rule) as caught:
        parse_lsf(record() + record(**changes), source="lsb.acct")
    error = caught.value
    assert ("lsb.acct", 2, field, value) == (error.path, error.line, error.field, error.value)


@pytest.mark.parametrize(
    "text", ["", '"JOB_NEW" "10.1" 5\n', "a b c\n", record()[:200], record()[:60] + '"open']
)
def test_no_jobs(text: str) -> None:
    """What holds no job, or is cut short, is reported."""
    with pytest.raises(TraceError):
        parse_lsf(text)


def test_a_trace_is_written_as_records() -> None:
    """Quotes are doubled; jobs that never started have no start, and end when they were killed."""
    trace = parse_swf(
        "; UnixStartTime: 1706702400\n"
        "1 0 300 3600 8 3500 512 8 7200 -1 1 7 -1 2 1 -1 -1 -1\n"
        "2 9 60 -1 -1 -1 -1 1 -1 4096 5 7 3 2 1 -1 -1 -1\n"
    )
    trace.names["executable"] = {2: 'say "a b"'}
    lost = Losses()
    lines = generate_lsf(trace, lost).decode().splitlines()
    assert lines[0].startswith(
        '"JOB_FINISH" "10.1" 1706706300 1 0 0 8 1706702400 0 0 1706702700 "7" "1" "" "" "" '
        '"hpcrowd" "" "" "" "" "" 0 1 "8*hpcrowd" 64 1.0 "say ""a b""" "" 28000.000000 0.000000 '
    )
    assert lines[1].startswith('"JOB_FINISH" "10.1" 1706702469 2 0 0 1 1706702409 0 0 0 "7"')
    assert [
        "requested memory of 1 job: no record holds it",
        "group of 1 job: no record holds the word, or it means unknown",
    ] == lost.lines()[:2]


def test_what_was_read_is_written() -> None:
    """Records come back with ids, projects, reasons and exit codes."""
    losses_are_exact(LSF, parse_lsf(LOG))
    lost = Losses()
    generate_lsf(parse_lsf(LOG), lost)
    assert {"node_list", "nodes", "restarts"} == {name for name, _ in lost.counts}


@given(any_trace(COLUMNS))
def test_losses_are_exact(trace: Trace) -> None:
    """Whatever is in a trace and its text columns, what changes is counted."""
    losses_are_exact(LSF, trace)


@given(damaged(LOG.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_lsf, data)
