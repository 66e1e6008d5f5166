"""The history of HTCondor is read and written."""

from __future__ import annotations

from hpcrowd.environment import FormatOptions, Losses, generate_htcondor, parse_htcondor, parse_swf
from hpcrowd.environment.traces.formats.htcondor import HTCONDOR, quoted, unquoted
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import losses_are_exact, shown
from tests.environment.traces.formats.format_samples import HTCONDOR as HISTORY


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
    assert [
        ("COMPLETED", "", "n1", "120", "5", "p7", ""),
        ("FAILED", "3", "", "", "", "", "1"),
        ("CANCELLED", "", "", "", "", "", ""),
    ] == shown(trace, "final_state", "exit_code", "node_list", "suspended", "priority", "project",
               "restarts")[:3]  # fmt: skip
    assert [7, 8, 9, 10, 11] == trace["number"].tolist()
    assert {"run again by the manager: last run and first submission kept": 1} == trace.repaired
    assert {"JobStatus: not ended": 1} == trace.dropped
    assert {1: "physics"} == trace.names["group"]
    # per processor; an expression is unknown
    assert (987648 / 8, 28013 / 8) == (trace["memory"][0], trace["average_cpu"][0])
    assert [4096 * 1024 / 8, -1] == trace["requested_memory"][:2].tolist()
    losses_are_exact(trace, HTCONDOR, FormatOptions())


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


@given(st.text(st.characters(categories=("L", "N", "P", "S"), include_characters=" ")))
def test_any_text_is_read_as_it_was_quoted(text: str) -> None:
    """Quotes and backslashes come back."""
    assert text == unquoted(quoted(text))
