"""The Grid Workload Format is read and written with all that it holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    find_format,
    generate_gwf,
    generate_swf,
    parse_gwf,
    parse_swf,
    read_gwf,
)
from hpcrowd.environment.traces.formats.gwf import ALL_FIELDS, GRID_FIELDS
from hypothesis import given

from tests.support.neighbours import (
    any_trace,
    changes,
    counted,
    damaged,
    round_trip,
    told_in_one_line,
)

#: As in logs of grids: names, sites, times since 1970, memory that is not a number.
LOG = """\
# Grid Workload Format, anonymized
# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs ...
1\t1136070024\t203761\t138467\t1\t138371.5\t98652\t1\t259200\t-1\t1\tU1\tG1\t-1\tQ1\t-1\tO1\tR1\t\
UNITARY\t-1\t-1\t-1\t-1\ti686,Linux 2.4\t-1\t-1\t-1\tVO1\t-1
2\t1136070690\t5\t60\t4\t-1\t12kb\t4\t90\t-1\t0\tU2\tG1\t7\tQ2\t-1\tO1\tR2\t\
BoT\tB17\t0.5\t-1\t-1\t-1\t-1\t-1\t-1\tVO1\tP3
"""
LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"


def test_story() -> None:
    """Each field of a log of a grid is where it belongs, exactly."""
    trace = parse_gwf(LOG)
    assert [1, 2] == trace["number"].tolist()
    assert [0, 666] == trace["submit"].tolist()
    assert [203761, 5] == trace["wait"].tolist()
    assert [138467, 60] == trace["run"].tolist()
    assert [1, 4] == trace["allocated_processors"].tolist()
    assert [138371.5, -1] == trace["average_cpu"].tolist()
    assert [98652, -1] == trace["memory"].tolist()
    assert [259200, 90] == trace["requested_time"].tolist()
    assert [1, 0] == trace["status"].tolist()
    assert {1: "U1", 2: "U2"} == trace.names["user"]
    assert {1: "G1"} == trace.names["group"]
    assert [-1, 7] == trace["executable"].tolist()
    assert {1: "Q1", 2: "Q2"} == trace.names["queue"]
    assert [-1, -1] == trace["preceding"].tolist()
    assert {
        "orig_site": ["O1", "O1"],
        "last_run_site": ["R1", "R2"],
        "job_structure": ["UNITARY", "BoT"],
        "job_structure_parameters": ["", "B17"],
        "used_network": ["", "0.5"],
        "requested_platform": ["i686,Linux 2.4", ""],
        "virtual_organization": ["VO1", "VO1"],
        "project": ["", "P3"],
    } == {name: values.tolist() for name, values in trace.extra.items()}


def test_times_since_1970_are_moved_to_the_first_submission() -> None:
    """The header says when that was; what was done is counted, and how large the machine was."""
    trace = parse_gwf(LOG)
    assert {
        "memory is not a number: unknown": 1,
        "submit is a Unix time: counted from the first one": 2,
    } == trace.repaired
    assert [
        b"; Grid Workload Format, anonymized",
        b"; JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs ...",
        b"; UnixStartTime: 1136070024",
        b"; StartTime: Sat Dec 31 23:00:24 UTC 2005",
        b"; MaxProcs: 4",
        b"; Note: MaxProcs is the most processors that jobs held at one time",
    ] == trace.header.lines
    again = parse_gwf(generate_gwf(trace))
    assert {} == again.repaired
    assert trace.header.lines == again.header.lines
    assert [0, 666] == again["submit"].tolist()


@pytest.mark.parametrize(
    ("header", "first"),
    [(b"# UnixStartTime: 0\n", 1136070024), (b"# Note: x\n", 86400), (b"", 10**10)],
)
def test_times_that_count_otherwise_stay(header: bytes, first: int) -> None:
    """Where the header gives the origin, or times are none of our age, nothing is moved."""
    trace = parse_gwf(header + LINE.replace(b"1 0 ", b"1 %d " % first))
    assert [first] == trace["submit"].tolist()
    assert {} == trace.repaired


def test_header_and_comments_survive_byte_for_byte() -> None:
    """Comments keep bytes and places; in memory they begin as those of the other format do."""
    trace = parse_gwf(b"# MaxProcs: 4\n#; \xe9 #2\n\n" + LINE + b"\n  # x\n" + LINE + b"\n# end\n")
    assert [b"; MaxProcs: 4", b";; \xe9 #2", b""] == trace.header.lines
    assert 4 == trace.processors
    assert [(1, b"  ; x"), (2, b"; end")] == trace.comments
    written = generate_gwf(trace)
    kept = [line for line in written.split(b"\n") if b"\t" not in line]
    assert [b"# MaxProcs: 4", b"#; \xe9 #2", b"", b"  # x", b"# end", b""] == kept
    assert written == generate_gwf(parse_gwf(written))
    crlf = written.replace(b"\n", b"\r\n")
    assert crlf == generate_gwf(parse_gwf(crlf))


def test_blanks_or_tabs_separate_fields() -> None:
    """A line may have any blanks; with 28 tabs a field may be empty or hold blanks."""
    words = LINE.decode().split()
    words[11], words[16], words[17] = "Anna Lind", "", " a  b "
    trace = parse_gwf("\t".join(words) + "\n" + "  ".join(LINE.decode().split()) + "\n")
    assert {1: "Anna Lind", 2: "7"} == trace.names["user"]
    assert {"last_run_site": ["a  b", ""]} == {n: v.tolist() for n, v in trace.extra.items()}


def test_numbers_of_users_stay() -> None:
    """Where all users are numbers they stand for themselves."""
    trace = parse_gwf(LINE)
    assert [7] == trace["user"].tolist()
    assert {} == trace.names


@given(any_trace(("orig_site", "job_structure", "project", "job_id")))
def test_any_trace_survives_or_is_counted(trace: Trace) -> None:
    """What is not the same after writing and reading is what was counted, field by field."""
    back = round_trip(trace, generate_gwf, parse_gwf)
    assert trace.header.lines == back.header.lines[: len(trace.header.lines)]


def test_losses_are_reported() -> None:
    """Preceding jobs, think times, identifiers and odd words are counted with their reasons."""
    trace = parse_swf(
        "1 0 5 60 4 -1 -1 4 90 -1 1 1 3 -1 -1 -1 -1 -1\n2 0 5 60 4 -1 -1 4 90 -1 1 2 3 -1 -1 -1 1 9"
    )
    trace.names["user"] = {1: "a\tb", 2: "None"}
    trace.extra["job_id"] = np.array(["17.server", ""], np.object_)
    lost = Losses()
    back = parse_gwf(generate_gwf(trace, lost))
    assert {
        ("preceding", "no field for it"): 1,
        ("think_time", "no field for it"): 1,
        ("job_id", "no field for it"): 1,
        ("user", "blanks, or characters that a line cannot hold"): 1,
        ("user", "a word that means unknown"): 1,
    } == lost.counts
    assert changes(trace, back) == counted(lost)
    assert {1: "a b"} == back.names["user"]


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "LCG-2005-1", "LANL-CM5-1994-4.1-cln"])
def test_real_traces_survive(read_trace: Callable[[str], Trace], name: str) -> None:
    """Every header line and all fields but the two without place come back, within seconds."""
    trace = read_trace(name)
    begin = time.perf_counter()
    back = round_trip(trace, generate_gwf, parse_gwf)
    assert time.perf_counter() - begin < 30
    assert trace.header.lines == back.header.lines
    assert trace.comments == back.comments
    assert generate_swf(trace).split(b"\n")[:50] == generate_swf(back).split(b"\n")[:50]


@pytest.mark.parametrize("value", [b"abc", b"nan", b"1e400", b"1_0", b"0x1", b"9007199254740994"])
def test_malformed_value(value: bytes) -> None:
    """A word that is not a number is a ParseError with line, field and value."""
    bad = LINE.replace(b" 60 ", b" " + value + b" ")
    with pytest.raises(ParseError) as caught:
        parse_gwf(b"# x\n" + LINE + b"\n" + bad + b"\n" + LINE[:-3], source="a.gwf")
    error = caught.value
    assert ("a.gwf", 3, "run", value.decode()) == (error.path, error.line, error.field, error.value)


@pytest.mark.parametrize(("line", "count"), [(LINE[:-3], 28), (LINE + b" 4", 30), (b"1 0 5", 3)])
def test_wrong_number_of_fields(line: bytes, count: int) -> None:
    """A line with more or fewer fields is reported with their number."""
    with pytest.raises(ParseError, match=f"line 2: .* {count} fields; a job .* has 29"):
        parse_gwf(LINE + b"\n" + line)


def test_nul_byte_in_a_word_is_reported() -> None:
    """A NUL byte far inside a file is an error of its line, in a comment, too."""
    far = b"\n".join([LINE] * 100)
    with pytest.raises(ParseError) as caught:
        parse_gwf(far + b"\n" + LINE.replace(b" 7 ", b" u\0 "))
    assert (101, "user") == (caught.value.line, caught.value.field)
    with pytest.raises(ParseError) as caught:
        parse_gwf(far + b"\n# \0\n")
    assert (101, None) == (caught.value.line, caught.value.field)


def test_workflows_are_refused_in_one_line(tmp_path: Path) -> None:
    """The other format with the same ending is distinguished, with what it is."""
    path = tmp_path / "trace.gwf"
    path.write_text(
        "WorkflowID, JobID , SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies\n"
        "0, 1, 16, 1, 1, 1, \n"
    )
    assert "gwf" == find_format(path).name
    with pytest.raises(TraceError, match=r"trace.gwf: holds workflows \(columns WorkflowID"):
        read_gwf(path)


@pytest.mark.parametrize(
    ("text", "what"), [(b" \n", "empty"), (b"# a\n", "no job"), (b"a\0", "bin")]
)
def test_no_trace_at_all(text: bytes, what: str) -> None:
    """An empty, a jobless and a binary file are each reported as such."""
    with pytest.raises(TraceError, match=what):
        parse_gwf(text)


def test_fields_are_as_many_as_the_format_has() -> None:
    """There are 29 fields, of which 13 are no fields of the other format."""
    assert (29, 13) == (len(ALL_FIELDS), len(GRID_FIELDS))


@given(damaged(LOG.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_gwf, data)


def test_size_of_the_machine_where_times_are_small() -> None:
    """Short waits after late submissions do not run over small integers: jobs never overlap."""
    jobs = ((0, 0, 50, 4), (100, 120, 100, 4))  # one from 0 to 50, one from 220 to 320
    text = "".join(
        "\t".join(map(str, (i, 1136070024 + at, wait, run, held, *[-1] * 24))) + "\n"
        for i, (at, wait, run, held) in enumerate(jobs, start=1)
    )
    assert 4 == parse_gwf(text).header.integer("MaxProcs")
