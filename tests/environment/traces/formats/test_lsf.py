"""LSF's lsb.acct is read and written."""

from __future__ import annotations

from hpcrowd.environment import FormatOptions, Losses, generate_lsf, parse_lsf, parse_swf
from hpcrowd.environment.traces.formats.lsf import LSF

from tests.environment.traces.formats.format_cases import losses_are_exact, shown
from tests.environment.traces.formats.format_samples import LSF as SAMPLE
from tests.environment.traces.formats.format_samples import lsf_record


def test_story() -> None:
    """Times, processors, limits and ends are those of the records."""
    trace = parse_lsf(SAMPLE)
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
    assert [
        ("COMPLETED", "", "n1", "1", "", "", "", "", ""),
        ("COMPLETED", "", "n1,n2", "2", "", "", "", "done(7)", "p7"),
        ("COMPLETED", "", "n3", "1", "60", "1", "", "", ""),
        ("TERM_OWNER", "", "", "", "", "", "", "", ""),
        ("TERM_RUNLIMIT", "140", "n1", "1", "", "", "ada#3", "", ""),
    ] == shown(
        trace, "final_state", "exit_code", "node_list", "nodes", "suspended", "restarts",
        "reservation", "dependency", "project",
    )  # fmt: skip
    assert [1, 2, 3, 4, 5] == trace["number"].tolist()
    assert {"run again by the manager: last run and first submission kept": 1} == trace.repaired
    assert {1: "normal"} == trace.names["queue"]
    # per processor; -1 and 0 are unknown
    assert [512, 2048, 4096, -1, 512] == trace["memory"].tolist()
    assert (28013 / 8, -1) == (trace["average_cpu"][0], trace["average_cpu"][3])
    # values after maxRSwap may be missing, and then there is no limit
    old = lsf_record().split(' "" "" "" "" 0 "" 0')[0]
    assert [(-1, 4096 / 8)] == shown(parse_lsf(old), "requested_time", "memory")
    losses_are_exact(trace, LSF, FormatOptions())
    lost = Losses()
    generate_lsf(trace, lost)
    assert {"node_list", "nodes", "restarts"} == {name for name, _ in lost.counts}


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
