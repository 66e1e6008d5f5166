"""The Grid Workload Format is read and written with all that it holds."""

import pytest
from hpcrowd import read_trace
from hpcrowd.errors import TraceError
from hpcrowd.formats import generate_gwf, parse_gwf

from tests.environment.traces.formats.format_cases import complaint, shown
from tests.environment.traces.formats.format_samples import GWF

LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"


def test_story():
    """Each field of a log of a grid is where it belongs, exactly; times begin with the first."""
    trace = parse_gwf(GWF)
    assert [
        (1, 0, 203761, 138467, 1, 138371.5, 98652, 259200, 1, "U1", "G1", -1, "Q1", -1),
        (2, 666, 5, 60, 4, -1, -1, 90, 0, "U2", "G1", 7, "Q2", -1),
    ] == shown(
        trace, "number", "submit", "wait", "run", "allocated_processors", "average_cpu", "memory",
        "requested_time", "status", "user", "group", "executable", "queue", "preceding",
    )  # fmt: skip
    assert {
        "orig_site": ["O1", "O1"], "last_run_site": ["R1", "R2"],
        "job_structure": ["UNITARY", "BoT"], "job_structure_parameters": ["", "B17"],
        "used_network": ["", "0.5"], "requested_platform": ["i686,Linux 2.4", ""],
        "virtual_organization": ["VO1", "VO1"], "project": ["", "P3"],
    } == {name: values.tolist() for name, values in trace.extra.items()}  # fmt: skip
    assert {
        "memory is not a number: unknown": 1,
        "submit is a Unix time: counted from the first one": 2,
    } == trace.repaired
    assert [
        b"; Grid Workload Format, anonymized",
        b"; JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs ...",
        b"; UnixStartTime: 1136070024", b"; StartTime: Sat Dec 31 23:00:24 UTC 2005",
        b"; MaxProcs: 4", b"; Note: MaxProcs is the most processors that jobs held at one time",
    ] == trace.header.lines  # fmt: skip
    again = parse_gwf(generate_gwf(trace))
    assert {} == again.repaired
    assert trace.header.lines == again.header.lines
    assert [0, 666] == again["submit"].tolist()
    assert ({}, [7]) == (parse_gwf(LINE).names, parse_gwf(LINE)["user"].tolist())


def test_header_and_comments_survive_byte_for_byte():
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


WORDS = LINE.decode().split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # where times are none of our age, nothing is moved
        (LINE.replace(b"1 0 ", b"1 %d " % 10**10), (10**10, 7, "")),
        # a line may have any blanks; with 28 tabs a field may be empty or hold blanks
        ("\t".join([*WORDS[:11], "Anna Lind", *WORDS[12:17], " a  b ", *WORDS[18:]]),
         (0, "Anna Lind", "a  b")),
        ("  ".join(WORDS), (0, 7, "")),
    ],
)  # fmt: skip
def test_lines(text, expected):
    """Submission, user and site of the last run are those of the line."""
    trace = parse_gwf(text)
    site = trace.extra.get("last_run_site", [""])[0]
    assert expected == (*shown(trace, "submit", "user")[0], site)
    assert {} == trace.repaired


NAMES = b" ".join(b"Field%c" % (65 + i) for i in range(29))


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("before", [b"", b"# MaxProcs: 4\n\n"])
def test_a_first_line_of_names(tmp_path, before, jobs):
    """Names of the fields without a mark become a comment, and are counted; the format is found."""
    path = tmp_path / "log"
    path.write_bytes(before + NAMES + b"\n# x\n" + (LINE + b"\n") * jobs)
    trace = read_trace(path)
    assert [7] * jobs == trace["user"].tolist()
    assert {"lines: names of the fields, no job": 1} == trace.dropped
    assert [(0, b"; x")] == trace.comments
    assert b"; " + NAMES == trace.header.lines[-1]
    again = parse_gwf(generate_gwf(trace))
    assert ({}, trace["user"].tolist()) == (again.dropped, again["user"].tolist())
    bad = complaint(parse_gwf, before + NAMES + b"\n" + LINE.replace(b" 60 ", b" ? "))
    assert (before.count(b"\n") + 2, "run") == (bad.line, bad.field)
    assert 1 == complaint(parse_gwf, NAMES[:50] + b"\n" + LINE).line
    with pytest.raises(TraceError, match="contains no jobs"):
        parse_gwf(NAMES)


def test_size_of_the_machine_where_times_are_small():
    """Short waits after late submissions do not run over small integers: jobs never overlap."""
    jobs = ((0, 0, 50, 4), (100, 120, 100, 4))  # one from 0 to 50, one from 220 to 320
    text = "".join(
        "\t".join(map(str, (i, 1136070024 + at, wait, run, held, *[-1] * 24))) + "\n"
        for i, (at, wait, run, held) in enumerate(jobs, start=1)
    )
    assert 4 == parse_gwf(text).header.integer("MaxProcs")


def test_what_is_wrong_far_inside():
    """A zero byte of a comment is reported with its line; workflows are another format."""
    far = b"\n".join([LINE] * 100) + b"\n# \0\n"
    assert 101 == complaint(parse_gwf, far).line
    with pytest.raises(TraceError, match=r"holds workflows \(columns WorkflowID"):
        parse_gwf("WorkflowID, JobID , SubmitTime, RunTime, Dependencies\n0, 1, 16, 1, \n")
