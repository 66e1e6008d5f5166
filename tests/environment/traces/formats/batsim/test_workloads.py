"""Workloads of Batsim are read, and written so that Batsim can run them and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_batsim,
    generate_swf,
    parse_batsim,
    parse_swf,
)
from hpcrowd.environment.traces.formats.batsim.workloads import run_times
from hypothesis import given

from tests.support.neighbours import any_trace, damaged, round_trip, told_in_one_line

#: As Batsim's own examples are: ids of a workload, profiles of many types, keys for schedulers.
WORKLOAD = """{
  "description": "for a test",
  "nb_res": 8,
  "jobs": [
    {"id": "w0!4", "subtime": 0, "walltime": 30, "res": 1, "profile": "wait"},
    {"id": "w0!2", "subtime": 1.5, "res": 4, "profile": "twice", "user": "ann", "gpu": true},
    {"id": "w0!7", "subtime": 10, "walltime": -1, "res": 8, "profile": "compute", "user": "bo"}
  ],
  "profiles": {
    "wait": {"type": "delay", "delay": 20.25},
    "new": {"type": "DelayProfile", "delay": 3},
    "twice": {"type": "composed", "repeat": 2, "seq": ["wait", "new"]},
    "compute": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 0}
  }
}
"""
SWF = b"""; UnixStartTime: 1000
; Note: \xe9
; MaxProcs: 64
1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1
2 10 -1 -1 -1 -1 -1 -1 -1 -1 5 7 3 -1 -1 -1 1 4
; outage
2 20.5 0 0 3 12.5 -1 4.5 0 -1 0 8 3 -1 -1 -1 -1 -1
"""


def test_story() -> None:
    """Ids, times, resources, profiles and keys of users are where they belong, exactly."""
    trace = parse_batsim(WORKLOAD)
    assert [4, 2, 7] == trace["number"].tolist()
    assert [0, 1.5, 10] == trace["submit"].tolist()
    assert [20.25, 46.5, -1] == trace["run"].tolist()
    assert [1, 4, 8] == trace["requested_processors"].tolist()
    assert [30, -1, -1] == trace["requested_time"].tolist()
    assert [-1, 1, 2] == trace["user"].tolist()
    assert {"user": {1: "ann", 2: "bo"}} == trace.names
    assert {"job_id": ["w0!4", "w0!2", "w0!7"], "gpu": ["", "true", ""]} == {
        name: values.tolist() for name, values in trace.extra.items()
    }
    assert {"profile of type parallel_homogeneous has no run time: unknown": 1} == trace.repaired
    assert 8 == trace.processors
    assert [
        b"; Version: 2.2",
        b"; MaxJobs: 3",
        b"; MaxRecords: 3",
        b"; MaxProcs: 8",
        b"; Note: from a workload of Batsim",
        b"; Note: for a test",
    ] == trace.header.lines


def test_what_batsim_demands_is_written() -> None:
    """Ids are unique texts, resources whole, walltimes and delays positive, whatever the trace."""
    document = json.loads(generate_batsim(parse_swf(SWF)))
    assert 64 == document["nb_res"]
    batsim = ("id", "subtime", "walltime", "res", "profile")
    assert [
        {"id": "1", "subtime": 0, "walltime": 90, "res": 4, "profile": "delay60"},
        {"id": "line2", "subtime": 10, "res": 1, "profile": "delay0.001"},
        {"id": "line3", "subtime": 20.5, "res": 5, "profile": "delay0.001"},
    ] == [{key: job[key] for key in batsim if key in job} for job in document["jobs"]]
    assert {
        "delay60": {"type": "delay", "delay": 60},
        "delay0.001": {"type": "delay", "delay": 0.001},
    } == document["profiles"]
    ours = [{k: v for k, v in job.items() if k not in batsim} for job in document["jobs"]]
    known = {"user": 7, "group": 3}
    assert [
        {"wait": 5, "allocated_processors": 4, "status": 1, **known},
        {"number": 2, "run": -1, "status": 5, "requested_processors": -1, "preceding": 1,
         "think_time": 4, **known},
        {"number": 2, "run": 0, "status": 0, "requested_processors": 4.5, "requested_time": 0,
         "wait": 0, "allocated_processors": 3, "average_cpu": 12.5, "user": 8, "group": 3},
    ] == ours  # fmt: skip


def test_nothing_of_a_trace_is_lost() -> None:
    """Header, comments and all fields come back byte for byte."""
    lost = Losses()
    assert SWF == generate_swf(parse_batsim(generate_batsim(parse_swf(SWF), lost)))
    assert not lost


def test_one_job_a_line() -> None:
    """Each job and each profile has its own line, so that files can be compared."""
    lines = generate_batsim(parse_swf(SWF)).decode().splitlines()
    assert 3 == sum(line.startswith('{"id": ') for line in lines)
    assert 1 == sum(line.startswith('"delay60": ') for line in lines)


@given(any_trace(("job_id", "gpu", "run")))
def test_any_trace_survives_or_is_counted(trace: Trace) -> None:
    """What is not the same after writing and reading is what was counted, field by field."""
    back = round_trip(trace, generate_batsim, parse_batsim)
    assert trace.header.lines == back.header.lines
    json.loads(generate_batsim(back))


def test_losses_are_reported() -> None:
    """Words for nothing and columns with names of Batsim are counted."""
    trace = parse_swf(SWF)
    trace.names["user"] = {7: "None", 8: "x"}
    trace.extra["res"] = np.array(["a", "", ""], np.object_)
    lost = Losses()
    generate_batsim(trace, lost)
    assert {
        ("user", "a word that means unknown"): 2,
        ("res", "the name has another meaning in this format"): 1,
    } == lost.counts


@pytest.mark.parametrize(
    ("ids", "numbers", "job_ids"),
    [
        (["3", 1, "2"], [3, 1, 2], None),
        (["a", "2", "3"], [1, 2, 3], ["a", "", ""]),
        (["w0!1", "w1!1", "w0!2"], [1, 2, 3], ["w0!1", "w1!1", "w0!2"]),
        (["01", "2", "3"], [1, 2, 3], ["01", "", ""]),
        (["9" * 30, "2", "2"], [1, 2, 3], ["9" * 30, "", "2"]),
    ],
)
def test_ids(ids: list[object], numbers: list[int], job_ids: list[str] | None) -> None:
    """Ids that are different numbers are kept; others are counted from 1, and kept as text."""
    jobs = [{"id": one, "subtime": 0, "res": 1, "profile": "p"} for one in ids]
    document = {"jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1}}}
    trace = parse_batsim(json.dumps(document))
    assert numbers == trace["number"].tolist()
    found = trace.extra.get("job_id")
    assert job_ids == (None if found is None else found.tolist())


def test_run_times_of_profiles() -> None:
    """Sequences are summed, also within each other; those that cannot be known are unknown."""
    times, kinds = run_times({
        "d": {"type": "delay", "delay": 2},
        "s": {"type": "composed", "seq": ["d", "d"], "repeat": 3},
        "t": {"type": "SequentialCompositionProfile", "seq": ["s", "d"]},
        "m": {"type": "composed", "seq": ["d", "p"]},
        "p": {"type": "msg_par", "cpu": [1]},
        "self": {"type": "composed", "seq": ["self"]},
        "none": {"type": "composed", "seq": ["missing"]},
        "odd": {"type": "delay", "delay": "2"},
        "big": {"type": "composed", "seq": ["d"], "repeat": 1e300},
        "x": 5,
    })  # fmt: skip
    assert {
        "d": 2, "s": 12, "t": 14, "m": -1, "p": -1, "self": -1, "none": -1, "missing": -1,
        "odd": -1, "big": -1, "x": -1,
    } == times  # fmt: skip
    assert ("msg_par", "composed") == (kinds["m"], kinds["self"])


def test_a_long_chain_of_sequences_is_followed() -> None:
    """Ten thousand sequences within each other need no recursion."""
    chain = {f"s{i}": {"type": "composed", "seq": [f"s{i + 1}"]} for i in range(10_000)}
    times, _ = run_times(chain | {"s10000": {"type": "delay", "delay": 7}})
    assert 7 == times["s0"]


def test_keys_beyond_a_hundred_kinds_are_counted() -> None:
    """A file with ever new keys does not fill the memory with columns."""
    jobs = [
        {"id": str(i), "subtime": 0, "res": 1, "profile": "p", f"key{i}": 1} for i in range(105)
    ]
    document = {"jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1}}}
    trace = parse_batsim(json.dumps(document))
    assert 100 == len(trace.extra)
    assert {"more than 100 different keys: the others ignored": 5} == trace.repaired


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "LCG-2005-1", "NASA-iPSC-1993-3.1-cln"])
def test_real_traces_survive(read_trace: Callable[[str], Trace], name: str) -> None:
    """Real traces come back whole, with header and comments."""
    trace = read_trace(name)
    back = round_trip(trace, generate_batsim, parse_batsim)
    assert trace.header.lines == back.header.lines
    assert trace.comments == back.comments


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "value"),
    [
        ('"res": 4', '"res": "4"', 6, "res", "4"),
        ('"res": 4, ', "", 6, "res", ""),
        ('"subtime": 10', '"subtime": 1e999', 7, "subtime", "Infinity"),
        ('"subtime": 10', f'"subtime": {"9" * 5000}', 7, "subtime", "Infinity"),
        ('"walltime": 30', '"walltime": 0', 5, "walltime", "0"),
        ('"profile": "twice"', '"profile": "thrice"', 6, "profile", "thrice"),
        ('"id": "w0!7"', '"id": null', 7, "id", ""),
        ('"subtime": 1.5', '"subtime": NaN', 6, None, "NaN"),
        ('"wait": {', '"N\\"aN": {}, "wait": -Infinity, "wait": {', 10, None, "-Infinity"),
        ('"res": 8,', '"res": 8', 7, None, '"profile": "compute", "user": "bo"}'),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(
    old: str, new: str, line: int, field: str | None, value: str
) -> None:
    """A malformed workload is a ParseError with the line of the job or of the character."""
    assert old in WORKLOAD
    with pytest.raises(ParseError) as caught:
        parse_batsim(WORKLOAD.replace(old, new), source="a.json")
    error = caught.value
    assert ("a.json", line, field, value) == (error.path, error.line, error.field, error.value)


def test_bytes_that_are_not_text() -> None:
    """Bytes that are not UTF-8 are reported with their line."""
    with pytest.raises(ParseError, match=r"line 2: .*UTF-8"):
        parse_batsim(b'{"jobs":\n["\xff"]}')


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '"jobs"', '{"jobs": 5, "profiles": {}}', '{"jobs": [], "profiles": {}}',
        '{"jobs": [5], "profiles": {}}', "[" * 100_000, '{"jobs":' * 50_000,
    ],
)  # fmt: skip
def test_no_workload(text: str) -> None:
    """JSON that is not a workload, or is nested without end, gives one short line."""
    with pytest.raises(TraceError) as caught:
        parse_batsim(text, source="a.json")
    assert str(caught.value).startswith("a.json")
    assert len(str(caught.value)) < 400


@given(damaged(WORKLOAD.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_batsim, data)
