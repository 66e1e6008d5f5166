"""Accounting logs of PBS, PBS Professional and Torque are read and written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    ParseError,
    QuantityError,
    Trace,
    TraceError,
    generate_pbs,
    generate_swf,
    jobs_from_trace,
    parse_pbs,
    parse_swf,
    read_pbs,
    read_trace,
    write_pbs,
)
from hpcrowd.environment.holds.recorded import NOT_THERE, recorded_rules
from hpcrowd.environment.holds.rules import Condition, Parent
from hpcrowd.environment.traces.formats.pbs.records import (
    duration,
    memory,
    of_chunks,
    of_hosts,
    of_vnodes,
    pairs,
    quoted,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.support.neighbours import any_trace, damaged, round_trip, told_in_one_line

#: 04/18/2009 00:00:00 UTC.
DAY = 1_240_012_800
#: A day of Torque: it ends well, fails, is deleted in the queue, deleted, aborted, and is not over.
TORQUE = """\
04/18/2009 00:00:00;L;license;floating license hour:3 day:3
04/18/2009 00:00:15;Q;123.server;queue=batch
04/18/2009 00:00:20;Q;124.server;queue=long
04/18/2009 00:00:30;Q;125.server;queue=batch
04/18/2009 00:01:00;S;123.server;user=alice group=chem jobname=STDIN queue=batch \
ctime=1240012815 qtime=1240012815 etime=1240012815 start=1240012860 owner=alice@login \
exec_host=n1/3+n1/2+n1/1+n1/0+n2/3+n2/2+n2/1+n2/0 Resource_List.nodes=2:ppn=4 \
Resource_List.walltime=01:00:00 Resource_List.pmem=2gb
04/18/2009 00:02:00;D;125.server;requestor=bob@login
04/18/2009 00:21:00;E;123.server;user=alice group=chem account=p17 jobname=STDIN queue=batch \
ctime=1240012815 qtime=1240012815 etime=1240012815 start=1240012860 owner=alice@login \
exec_host=n1/3+n1/2+n1/1+n1/0+n2/3+n2/2+n2/1+n2/0 Resource_List.nodes=2:ppn=4 \
Resource_List.walltime=01:00:00 Resource_List.pmem=2gb session=31 end=1240014060 Exit_status=0 \
resources_used.cput=01:20:00 resources_used.mem=1600kb resources_used.vmem=9mb \
resources_used.walltime=00:20:00
04/18/2009 00:30:00;E;124.server;user=bob group=chem jobname=my long job queue=long \
ctime=1240012820 qtime=1240012820 etime=1240012820 start=1240012900 exec_host=n3/0-1 \
Resource_List.ncpus=2 Resource_List.walltime=600 end=1240014600 Exit_status=271
04/18/2009 00:31:00;Q;126.server;queue=batch
04/18/2009 00:31:05;S;126.server;user=bob queue=batch ctime=1240014660 start=1240014665
04/18/2009 00:32:00;D;126.server;requestor=bob@login
04/18/2009 00:32:05;E;126.server;user=bob queue=batch ctime=1240014660 start=1240014665 \
end=1240014725 Exit_status=271
04/18/2009 00:40:00;Q;127.server;queue=batch
04/18/2009 00:40:01;A;127.server;
04/18/2009 00:50:00;Q;128.server;queue=batch
04/18/2009 00:51:00;Q;129.server;queue=batch
04/18/2009 00:51:05;S;129.server;user=bob queue=batch ctime=1240015860 start=1240015865
"""
#: PBS Professional: arrays, chunks, reruns, reservations, quotes.
PROFESSIONAL = """\
03/06/2023 01:38:30;Q;9[].ml;user=ann queue=workq ctime=1678066710
03/06/2023 01:38:31;U;R5.ml;requestor=root@ml
03/06/2023 01:40:00;E;9[2].ml;user=ann group=g project=_pbs_project_default jobname="a b=c" \
queue=workq ctime=1678066710 qtime=1678066710 etime=1678066715 start=1678066720 \
exec_host=v1/0*8+v2/0*8 exec_vnode=(v1:ncpus=8:mem=4gb)+(v2:ncpus=8) Resource_List.mem=8gb \
Resource_List.ncpus=16 Resource_List.nodect=2 Resource_List.place=free \
Resource_List.select=2:ncpus=8:mem=4gb end=1678066800 Exit_status=0 run_count=1
03/06/2023 01:41:00;S;10.ml;user=ann ctime=1678066711 start=1678066860 exec_vnode=(v1:ncpus=1)
03/06/2023 01:42:00;R;10.ml;user=ann ctime=1678066711 start=1678066860 \
end=1678066920 Exit_status=-11
03/06/2023 01:50:00;E;10.ml;user=ann ctime=1678066711 start=1678067000 exec_host=v1/0 \
exec_vnode=(v1:ncpus=1) Resource_List.select=1 end=1678067400 Exit_status=1
03/06/2023 01:51:00;E;9[].ml;user=ann queue=workq ctime=1678066710 end=1678067460 Exit_status=0
"""


def test_story_of_torque() -> None:
    """Times, processors, memory and ends of jobs are put together from all their records."""
    trace = parse_pbs(TORQUE)
    assert [123, 124, 125, 126, 127] == trace["number"].tolist()
    assert [0, 5, 15, 1845, 2385] == trace["submit"].tolist()
    assert [45, 80, -1, 5, -1] == trace["wait"].tolist()
    assert [1200, 1700, -1, 60, -1] == trace["run"].tolist()
    assert [8, 2, -1, -1, -1] == trace["allocated_processors"].tolist()
    assert [8, 2, -1, -1, -1] == trace["requested_processors"].tolist()
    assert [600, -1, -1, -1, -1] == trace["average_cpu"].tolist()  # 80 min on 8 processors
    assert [200, -1, -1, -1, -1] == trace["memory"].tolist()
    assert [3600, 600, -1, -1, -1] == trace["requested_time"].tolist()
    assert [2 * 1024**2, -1, -1, -1, -1] == trace["requested_memory"].tolist()
    assert [1, 0, 5, 5, 0] == trace["status"].tolist()
    assert [1, 2, -1, 2, -1] == trace["user"].tolist()
    assert {
        "user": {1: "alice", 2: "bob"},
        "group": {1: "chem"},
        "executable": {1: "STDIN", 2: "my long job"},
        "queue": {1: "batch", 2: "long"},
    } == trace.names
    assert ["p17", "", "", "", ""] == trace.extra["project"].tolist()
    assert "123.server" == trace.extra["job_id"][0]
    assert {"not ended when the log ends": 2} == trace.dropped
    assert {} == trace.repaired


def test_header_shows_how_it_was_read() -> None:
    """The beginning, the zone, the largest use of the machine and the queues are there."""
    header = parse_pbs(TORQUE).header
    assert DAY + 15 == header.integer("UnixStartTime")
    assert "Sat Apr 18 00:00:15 UTC 2009" == header.get("StartTime")
    assert 10 == header.processors
    assert ["1 batch", "2 long"] == [value for key, value in header.entries() if key == "Queue"]
    assert "local times of records taken as UTC, as no time zone was given" in [
        value for key, value in header.entries() if key == "Note"
    ]


def test_story_of_pbs_professional() -> None:
    """Jobs of arrays count, the array does not; of a job that is run again the last run counts."""
    trace = parse_pbs(PROFESSIONAL)
    assert ["9[2].ml", "10.ml"] == trace.extra["job_id"].tolist()
    assert [1, 2] == trace["number"].tolist()  # in order of submission, as an array is there
    assert [0, 1] == trace["submit"].tolist()
    assert [10, 289] == trace["wait"].tolist()
    assert [80, 400] == trace["run"].tolist()
    assert [16, 1] == trace["allocated_processors"].tolist()
    assert [16, 1] == trace["requested_processors"].tolist()
    assert [512 * 1024, -1] == trace["requested_memory"].tolist()
    assert [1, 0] == trace["status"].tolist()
    assert {1: "a b=c"} == trace.names["executable"]
    assert {"job array: its jobs count one by one": 1} == trace.dropped
    assert {"run again: the last run kept": 1} == trace.repaired


def test_numbers_follow_submissions_where_ids_do_not_tell() -> None:
    """With two servers, numbers are places in the order of submission."""
    message = "ctime={} start=50 end=60 Exit_status=0"
    trace = parse_pbs("\n".join(
        f"01/01/1970 00:01:00;E;{job};{message.format(created)}"
        for job, created in (("5.a", 30), ("5.b", 10), ("6.a", 20))
    ))  # fmt: skip
    assert [3, 1, 2] == trace["number"].tolist()
    assert [20, 0, 10] == trace["submit"].tolist()


def test_local_times_of_records_are_used_where_there_are_no_others() -> None:
    """A job that never started was submitted when its record says, in the zone of the server."""
    text = "04/18/2009 00:00:10;Q;1.s;queue=q\n04/18/2009 02:00:00;D;1.s;requestor=a@b\n"
    assert DAY + 10 == parse_pbs(text).header.integer("UnixStartTime")
    swedish = parse_pbs(text, options=FormatOptions(zone="Europe/Stockholm"))
    assert DAY + 10 - 7200 == swedish.header.integer("UnixStartTime")
    assert "Europe/Stockholm" == swedish.header.get("TimeZoneString")
    with pytest.raises(QuantityError, match="zone 'Sweden'"):
        parse_pbs(text, options=FormatOptions(zone="Sweden"))


def test_a_start_without_an_end() -> None:
    """A job that was deleted while it ran, without a record of its end, ended then."""
    trace = parse_pbs(
        "04/18/2009 00:00:10;S;1.s;ctime=1240012800 start=1240012810\n"
        "04/18/2009 00:01:00;D;1.s;requestor=a@b\n"
    )
    assert ([10], [50], [5]) == tuple(trace[n].tolist() for n in ("wait", "run", "status"))
    assert {"no end record: deletion or abort taken as the end": 1} == trace.repaired


OF_SELECT, OF_NODES = (partial(of_chunks, per_chunk=key) for key in ("ncpus", "ppn"))


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (of_hosts, "n1/0+n1/1", 2), (of_hosts, "n1/0*8+n2/0*4", 12), (of_hosts, "n1/0-7,9", 9),
        (of_hosts, "n1+n2", 2), (of_vnodes, "(a:ncpus=8:mem=1kb)+(b:ncpus=2+c:ncpus=1)", 11),
        (of_vnodes, "(a)", 0), (OF_SELECT, "2:ncpus=8:mem=4gb+1:ncpus=4", 20),
        (OF_SELECT, "3", 3), (OF_SELECT, "ncpus=4", 1), (OF_NODES, "2:ppn=4+n17:ppn=2", 10),
        (OF_NODES, "n17", 1), (OF_NODES, "1:ppn=8:bigmem", 8), (OF_NODES, "n1+n2:ppn=2", 3),
        (duration, "01:02:03", 3723), (duration, "02:03", 123), (duration, "90", 90),
        (duration, "100:00:00.5", 360_000), (memory, "2gb", 2 * 1024**2), (memory, "512kb", 512),
        (memory, "2048b", 2), (memory, "128w", 1), (memory, "1024", 1), (memory, "1GB", 1024**2),
    ],
)  # fmt: skip
def test_quantities(read: Callable[[str], float], text: str, value: float) -> None:
    """Processors, durations and sizes are understood in all their forms."""
    assert value == read(text)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a=1 b=2", [("a", "1"), ("b", "2")]),
        ("a=x=y b=", [("a", "x=y"), ("b", "")]),
        ("jobname=my job queue=q", [("jobname", "my job"), ("queue", "q")]),
        ('a="x y=z" b=2', [("a", "x y=z"), ("b", "2")]),
        ("a='x \"y' b=2", [("a", 'x "y'), ("b", "2")]),
        ("stray a=1", [("a", "1")]),
        ("", []),
    ],
)
def test_pairs(message: str, expected: list[tuple[str, str]]) -> None:
    """Messages are keys and values, which may have blanks and equals signs."""
    assert expected == pairs(message)


@given(st.text(st.characters(categories=("L", "N", "P", "S"), include_characters=" "), min_size=1))
def test_any_text_is_read_as_it_was_quoted(text: str) -> None:
    """What is quoted comes back, but for one kind of quotes where there are both."""
    text = " ".join(text.split()) or "x"
    expected = text.replace('"', "'") if '"' in text and "'" in text else text
    assert [("a", expected), ("b", "1")] == pairs(f"a={quoted(text)} b=1")


@given(any_trace(("job_id", "project", "orig_site")))
def test_any_trace_survives_or_is_counted(trace: Trace) -> None:
    """What is not the same after writing and reading is what was counted, field by field."""
    back = round_trip(trace, generate_pbs, parse_pbs)
    assert trace.header.lines == back.header.lines


def test_records_are_written_by_time() -> None:
    """A trace becomes the records of a server: header, submissions, starts, deletions, ends."""
    trace = parse_swf(
        "; UnixStartTime: 1240012800\n; Note: a=b; 100 %\n"
        "1 0 5 60 4 30 -1 4 90 512 1 7 3 -1 -1 -1 -1 -1\n"
        "2 1 2 9 2 -1 -1 2 -1 -1 5 7 3 -1 -1 -1 -1 -1\n"
        "3 2 -1 -1 -1 -1 -1 1 -1 -1 5 7 3 -1 -1 -1 -1 -1\n"
        "4 9 -1 -1 -1 -1 -1 1 -1 -1 0 7 3 -1 -1 -1 -1 -1\n"
    )
    trace.names["user"] = {7: "Ann Lind"}
    lines = (
        generate_pbs(trace, options=FormatOptions(zone="Europe/Stockholm")).decode().splitlines()
    )
    assert "04/18/2009 02:00:00;L;hpcrowd; UnixStartTime: 1240012800" == lines[0]
    assert "04/18/2009 02:00:00;L;hpcrowd; Note: a%3Db%3B 100 %25" == lines[1]
    assert [
        "00 Q 1", "01 Q 2", "02 Q 3", "02 D 3", "03 S 2", "05 S 1", "09 Q 4", "09 A 4", "12 D 2",
        "12 E 2", "05 E 1",
    ] == [
        f"{time[-2:]} {kind} {job[0]}" for time, kind, job, _ in
        (line.split(";", 3) for line in lines[2:])
    ]  # fmt: skip
    assert (
        '04/18/2009 02:01:05;E;1.hpcrowd;user="Ann Lind" group=3 ctime=1240012800 '
        "qtime=1240012800 etime=1240012800 Resource_List.ncpus=4 Resource_List.walltime=00:01:30 "
        "Resource_List.pmem=512kb start=1240012805 exec_host=hpcrowd/0*4 end=1240012865 "
        "resources_used.cput=00:02:00 resources_used.walltime=00:01:00 Exit_status=0" == lines[-1]
    )
    back = parse_pbs("\n".join(lines))
    del back.extra["job_id"]
    again = generate_swf(back).replace(b" 1 3 ", b" 7 3 ")
    assert generate_swf(trace) == again


def test_what_was_read_is_written_with_its_ids() -> None:
    """Identifiers of a server and accounts come back."""
    trace = parse_pbs(PROFESSIONAL)
    lost = Losses()
    back = parse_pbs(generate_pbs(trace, lost))
    assert ["9[2].ml", "10.ml"] == back.extra["job_id"].tolist()
    assert ["_pbs_project_default", ""] == back.extra["project"].tolist()
    assert {("lost_work", "no record holds it"): 1} == lost.counts
    assert generate_swf(trace) == generate_swf(back)
    del trace.extra["lost_work"]
    assert {name: texts.tolist() for name, texts in trace.extra.items()} == {
        name: texts.tolist() for name, texts in back.extra.items()
    }


def test_columns_beyond_the_fields() -> None:
    """Eligible times, exit codes, hosts, runs, dependencies and whole nodes are kept."""
    extra = parse_pbs(PROFESSIONAL).extra
    assert {
        "job_id": ["9[2].ml", "10.ml"],
        "project": ["_pbs_project_default", ""],
        "eligible": ["5", ""],
        "exit_code": ["", "1"],
        "restarts": ["", "1"],
        "lost_work": ["", "60"],
        "nodes": ["2", "1"],
        "node_list": ["v1,v2", "v1"],
        "tasks": ["2", "1"],
        "cores_per_task": ["8", "1"],
    } == {name: texts.tolist() for name, texts in extra.items()}
    record = "04/18/2009 00:01:00;E;{};user=u ctime=10 start={} end=60 exec_host=a/0 {}\n"
    trace = parse_pbs(
        record.format("1.s", 20, "Exit_status=0 Resource_List.place=scatter:excl")
        + record.format("2.s", 60, "depend=afterok:1.s@s,afterany:9[4].s@s resvname=R5.s")
    )
    assert ["yes", ""] == trace.extra["exclusive"].tolist()
    assert ["", "afterok:1.s@s,afterany:9[4].s@s"] == trace.extra["dependency"].tolist()
    assert ["", "R5.s"] == trace.extra["reservation"].tolist()
    made = jobs_from_trace(trace)
    rules = recorded_rules(trace, made.jobs, made.source_row)
    assert rules is not None
    assert {1: (Parent(0, Condition.OK),)} == rules.parents
    assert {NOT_THERE: 1} == rules.notes


def test_losses_are_reported() -> None:
    """Fractions, states, fields and texts that no record has are counted."""
    trace = parse_swf("; a\n1 0.5 5 60 4 -1 -1 4 90 -1 3 7 3 -1 -1 2 1 9\n; b\n")
    trace.extra["job_id"] = np.array(["a b"], np.object_)
    trace.extra["orig_site"] = np.array(["x"], np.object_)
    lost = Losses()
    generate_pbs(trace, lost)
    reason = "times and sizes must be whole and not negative, states those of PBS"
    assert {
        ("partition", "no record holds it"): 1,
        ("preceding", "no record holds it"): 1,
        ("think_time", "no record holds it"): 1,
        ("orig_site", "no record holds it"): 1,
        ("comments", "no record holds them"): 1,
        ("submit", reason): 1,
        ("status", reason): 1,
        ("job_id", "not an identifier of PBS"): 1,
    } == lost.counts


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "SDSC-DS-2004-2.1-cln"])
def test_real_traces_survive(read_trace: Callable[[str], Trace], name: str) -> None:
    """Real traces come back but for what is counted, with their headers."""
    trace = read_trace(name)
    back = round_trip(trace, generate_pbs, parse_pbs)
    assert trace.header.lines == back.header.lines


def test_local_times_are_of_the_zone_of_the_options(tmp_path: Path) -> None:
    """A file is read with the zone that it does not say, and written in one."""
    trace = parse_pbs(TORQUE)
    write_pbs(trace, tmp_path / "a.pbs.gz", FormatOptions(zone="Europe/Stockholm"))
    assert generate_swf(trace) == generate_swf(read_pbs(tmp_path / "a.pbs.gz"))
    (tmp_path / "b").write_text(TORQUE)
    swedish = read_trace(tmp_path / "b", options=FormatOptions(zone="Europe/Stockholm"))
    assert [7185, 7190, 0, 9030, 2370] == swedish["submit"].tolist()


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "value"),
    [
        ("start=1240012900", "start=soon", 8, "start", "soon"),
        ("ncpus=2", "ncpus=two", 8, "Resource_List.ncpus", "two"),
        ("exec_host=n3/0-1", "exec_host=n3/0-x", 8, "exec_host", "n3/0-x"),
        ("exec_host=n3/0-1", f"exec_host=n3/0-{'9' * 30}", 8, "exec_host", f"n3/0-{'9' * 30}"),
        ("walltime=600", "walltime=-600", 8, "Resource_List.walltime", "-600"),
        ("start=1240012900", "start=1240012900000", 8, "start", "1240012900000"),
        ("mem=1600kb", "mem=big", 7, "resources_used.mem", "big"),
        ("00:00:15;Q", "25:00:15;Q", 2, "time", "04/18/2009 25:00:15"),
        ("04/18/2009 00:00:20;Q;124.server;queue=long", "garbage", 3, None, "garbage"),
        ("124.server;queue=long", "124.ser\0ver;queue=long", 3, None, None),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(
    old: str, new: str, line: int, field: str | None, value: str | None
) -> None:
    """A malformed record is a ParseError with line, key and value."""
    assert old in TORQUE
    with pytest.raises(ParseError) as caught:
        parse_pbs(TORQUE.replace(old, new, 1), source="a.pbs")
    error = caught.value
    assert ("a.pbs", line, field) == (error.path, error.line, error.field)
    if value is not None:
        assert value == error.value


@pytest.mark.parametrize("text", ["", " \n", "a\n", "04/18/2009 00:00:15;Q;1.s;queue=q\n"])
def test_no_jobs(text: str) -> None:
    """What holds no job that has ended, or is something else, is reported."""
    with pytest.raises(TraceError):
        parse_pbs(text)


@given(damaged(TORQUE.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_pbs, data)


@given(damaged(PROFESSIONAL.encode()))
def test_damaged_arrays_give_one_line(data: bytes) -> None:
    """The same of records of PBS Professional."""
    told_in_one_line(parse_pbs, data)
