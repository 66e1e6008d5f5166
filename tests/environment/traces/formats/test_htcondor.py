"""The history of HTCondor is read and written."""

from __future__ import annotations

import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_htcondor,
    parse_htcondor,
    parse_swf,
)
from hpcrowd.environment.traces.formats.htcondor import HTCONDOR, quoted, unquoted
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.accounting_cases import COLUMNS, losses_are_exact, shown
from tests.support.neighbours import any_trace, damaged, told_in_one_line

#: A history: a job that ended well, one of a cluster that was evicted once and failed, one that was
#: removed while it ran, one removed while it waited, one while it waited again, and one on hold.
HISTORY = r"""
AcctGroup = "physics"
AllowedJobDuration = 7200
ClusterId = 7
Cmd = "/home/ada/relax"
CompletionDate = 1706706300
CpusProvisioned = 8
CumulativeSuspensionTime = 120
EnteredCurrentStatus = 1706706300
ExitBySignal = false
ExitCode = 0
JobCurrentStartDate = 1706702700
JobPrio = 5
JobStartDate = 1706702700
JobStatus = 4
LastRemoteHost = "slot1_1@n1"
MemoryUsage = ( ( ResidentSetSize + 1023 ) / 1024 )
NumJobStarts = 1
Owner = "ada"
ProcId = 0
ProjectName = "p7"
QDate = 1706702400
RemoteSysCpu = 12.5
RemoteUserCpu = 28000.5
RemoteWallClockTime = 3600.0
RequestCpus = 8
RequestMemory = 4096
Requirements = ( TARGET.Arch == "X86_64" ) && ( TARGET.Memory >= RequestMemory )
ResidentSetSize = 1000000
ResidentSetSize_RAW = 987648
*** Offset = 0 ClusterId = 7 ProcId = 0 Owner = "ada" CompletionDate = 1706706300
clusterid = 8
procid = 1
Owner = "bob"
QDate = 1706702460
JobStartDate = 1706702500
JobCurrentStartDate = 1706703000
NumJobStarts = 2
CompletionDate = 1706703060
JobStatus = 4
ExitCode = 3
RequestCpus = 1
RequestMemory = ifthenelse(MemoryUsage =!= undefined,MemoryUsage,1)
MaxWallTime = 60
Cmd = "/bin/say \"a b\""

ClusterId = 9
ProcId = 0
Owner = "bob"
QDate = 1706702500
JobCurrentStartDate = 1706702600
EnteredCurrentStatus = 1706702700
CompletionDate = 0
JobStatus = 3
LastJobStatus = 2
RequestCpus = 1
*** Offset = 4000 ClusterId = 9 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 10
ProcId = 0
Owner = "bob"
QDate = 1706702600
EnteredCurrentStatus = 1706702900
JobStatus = 3
LastJobStatus = 1
RequestCpus = 1
*** Offset = 5000 ClusterId = 10 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 11
ProcId = 0
Owner = "bob"
QDate = 1706702700
JobCurrentStartDate = 1706702800
EnteredCurrentStatus = 1706709000
RemoteWallClockTime = 50.0
JobStatus = 3
LastJobStatus = 5
ExitBySignal = true
RequestCpus = 1
*** Offset = 6000 ClusterId = 11 ProcId = 0 Owner = "bob" CompletionDate = 0
ClusterId = 12
ProcId = 0
JobStatus = 5
"""


def test_story() -> None:
    """Times, processors, limits and ends are those of the ads; a job on hold has not ended."""
    trace = parse_htcondor(HISTORY)
    assert [
        ("7.0", "ada", "/home/ada/relax", 0, 300, 3600, 8, 8, 7200, 1),
        ("8.1", "bob", '/bin/say "a b"', 60, 540, 60, -1, 1, 3600, 0),
        ("9.0", "bob", -1, 100, 100, 100, -1, 1, -1, 5),
        ("10.0", "bob", -1, 200, 300, -1, -1, 1, -1, 5),
        ("11.0", "bob", -1, 300, 100, 50, -1, 1, -1, 5),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_processors", "requested_time", "status",
    )  # fmt: skip
    assert [7, 8, 9, 10, 11] == trace["number"].tolist()
    assert {"run again by the manager: last run and first submission kept": 1} == trace.repaired
    assert {"JobStatus: not ended": 1} == trace.dropped
    assert {1: "physics"} == trace.names["group"]


def test_memory_and_cpu_time() -> None:
    """They are per processor; an expression is unknown."""
    trace = parse_htcondor(HISTORY)
    assert 987648 / 8 == trace["memory"][0]
    assert 28013 / 8 == trace["average_cpu"][0]
    assert [4096 * 1024 / 8, -1] == trace["requested_memory"][:2].tolist()


def test_text_columns() -> None:
    """They have what the Standard Workload Format has no field for."""
    assert [
        ("COMPLETED", "", "n1", "120", "5", "p7", ""),
        ("FAILED", "3", "", "", "", "", "1"),
        ("CANCELLED", "", "", "", "", "", ""),
    ] == shown(
        parse_htcondor(HISTORY), "final_state", "exit_code", "node_list", "suspended", "priority",
        "project", "restarts",
    )[:3]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "rule"),
    [
        ("QDate = 1706702400", "QDate = 17067024000", 22, "qdate", "1970 to 2199"),
        ("RequestCpus = 8", "RequestCpus = 8x", 26, "requestcpus", "whole number"),
        ("RemoteUserCpu = 28000.5", "RemoteUserCpu = 2_8", 24, "remoteusercpu", "not a number"),
        ('Owner = "ada"', 'Owner = "ada', 19, "owner", "double quotes"),
        ("JobPrio = 5", "JobPrio 5", 13, None, "name = value"),
    ],
)
def test_malformed_values(old: str, new: str, line: int, field: str | None, rule: str) -> None:
    """A malformed value is one line with file, line, field, value and rule."""
    with pytest.raises(ParseError, match=rule) as caught:
        parse_htcondor(HISTORY.replace(old, new, 1), source="history")
    error = caught.value
    assert ("history", line, field) == (error.path, error.line, error.field)


@pytest.mark.parametrize("text", ["", "ClusterId = 1\nJobStatus = 2\n", "a b c\n", "*** 1\n"])
def test_no_jobs(text: str) -> None:
    """What holds no job that has ended is reported."""
    with pytest.raises(TraceError):
        parse_htcondor(text)


def test_a_trace_is_written_as_ads() -> None:
    """Each job has the attributes that are known, and its banner."""
    trace = parse_swf(
        "; UnixStartTime: 1706702400\n"
        "1 0 300 3600 8 3500 512 8 7200 4096 1 7 3 2 1 -1 -1 -1\n"
        "2 9 60 -1 -1 -1 -1 1 -1 -1 5 7 3 2 1 -1 -1 -1\n"
    )
    lost = Losses()
    first, second = generate_htcondor(trace, lost).decode().split("***")[:2]
    for line in (
        "ClusterId = 1", "QDate = 1706702400", "JobStatus = 4", "CompletionDate = 1706706300",
        "JobCurrentStartDate = 1706702700", "RequestCpus = 8", "RequestMemory = 32.0",
        "RemoteUserCpu = 28000.000000", 'Owner = "7"', "AllowedJobDuration = 7200",
    ):  # fmt: skip
        assert line in first.splitlines()
    assert "JobStatus = 3\nEnteredCurrentStatus = 1706702469\nCompletionDate = 0\n" in second
    assert ["queue of 2 jobs: no record holds the word, or it means unknown"] == lost.lines()[:1]


def test_what_was_read_is_written() -> None:
    """Ads come back with ids, projects and exit codes."""
    losses_are_exact(HTCONDOR, parse_htcondor(HISTORY))


@given(st.text(st.characters(categories=("L", "N", "P", "S"), include_characters=" ")))
def test_any_text_is_read_as_it_was_quoted(text: str) -> None:
    """Quotes and backslashes come back."""
    assert text == unquoted(quoted(text))


@given(any_trace(COLUMNS))
def test_losses_are_exact(trace: Trace) -> None:
    """Whatever is in a trace and its text columns, what changes is counted."""
    losses_are_exact(HTCONDOR, trace)


@given(damaged(HISTORY.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_htcondor, data)
