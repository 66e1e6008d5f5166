"""The commands ``hpcrowd clean`` and ``hpcrowd window``: what they show and write, their errors."""

import json
from pathlib import Path

import pytest
from hpcrowd import read_swf, write_swf

DAY = 86400

HEADER = """; MaxJobs: 4
; UnixStartTime: 1072911600
; TimeZoneString: Europe/Stockholm
; MaxProcs: 4"""


@pytest.fixture
def log(make_trace, tmp_path, monkeypatch):
    """Write a log of four days, and go to its folder."""
    monkeypatch.chdir(tmp_path)
    trace = make_trace(
        {"submit": 0, "run": 10, "allocated_processors": 1, "user": 1},
        {"submit": DAY, "run": 10, "allocated_processors": 8, "user": 2},
        {"submit": 2 * DAY, "run": 0, "allocated_processors": 1, "user": 2, "preceding": 2},
        {"submit": 3 * DAY, "run": 10, "allocated_processors": 1, "user": -1},
        header=HEADER,
    )
    write_swf(trace, "log.swf")
    return trace


def test_clean_writes_what_is_left(call, log):
    """A true header; all that is counted as JSON; without MaxProcs the size is no rule."""
    code, out, _ = call("clean", "log.swf", "--larger", "--last", "1", "-o", "out.swf.gz")
    assert (0, "together 2 1 50.0 % 90.0 %") == (code, " ".join(out.splitlines()[-2].split()))
    left = read_swf("out.swf.gz")
    assert ([1, 3], 2) == (left["number"].tolist(), left.header.integer("MaxJobs"))
    code, out, _ = call("clean", "log.swf", "--flurries", "1/2d", "--json")
    told = json.loads(out)
    assert (0, "log.swf", 4, 2) == (code, *(told[key] for key in ("trace", "jobs", "users")))
    assert [{"user": 2, "first": DAY, "last": 2 * DAY, "jobs": 2}] == told["flurries"]
    text = Path("log.swf").read_text().replace("; MaxProcs: 4\n", "")
    Path("log.swf").write_text(text)
    out = call("clean", "log.swf")[1]
    assert "No MaxProcs in the header: jobs too large for the machine cannot be found." in out
    assert "larger than" not in out
    assert "Nothing is written; give rules, and -o FILE." in out
    assert 2 == call("clean", "log.swf", "--larger")[0]


def test_window(call, log):
    """Local dates, or durations from the origin and ranges of users; no date without a start."""
    dates = ("--from", "2004-01-03", "--to", "2004-01-04 12:00")
    assert 0 == call("window", "log.swf", *dates, "-o", "part.swf")[0]
    part = read_swf("part.swf")
    assert ([0, DAY], 1073084400) == (part["submit"].tolist(), part.header.integer("UnixStartTime"))
    edges = ("--from", "1d", "--to", "2d 1h")
    code, out, _ = call("window", "log.swf", *edges, "--only-users", "2-5", "-o", "p.swf", "--json")
    assert 0 == code
    told = json.loads(out)
    assert (2, DAY, 2 * DAY + 3600) == tuple(told[key] for key in ("kept", "begin_s", "end_s"))
    assert {"submitted before the window": 1, "submitted after the window": 1} == told["left_out"]
    text = Path("log.swf").read_text().replace("; UnixStartTime: 1072911600\n", "")
    Path("log.swf").write_text(text)
    out = call("window", "log.swf", "--from", "1d", "-o", "q.swf")[1]
    assert out.endswith(
        "q.swf: 3 jobs, 1 user, origin week 1 Mon 00:00:00\n"
        "  start not in the trace: its origin counts as Monday 00:00\n"
    )
