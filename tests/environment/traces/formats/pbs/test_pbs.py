"""Accounting logs of PBS, PBS Professional and Torque, and what their jobs ask for."""

from functools import partial

import numpy as np
import pytest
from hpcrowd import generate_swf, jobs_from_trace, parse_swf
from hpcrowd.environment.holds.recorded import NOT_THERE, recorded_rules
from hpcrowd.environment.holds.rules import Condition, Parent
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.traces.formats.common.accounting import BACKWARD, OTHER_WALLTIME
from hpcrowd.environment.traces.formats.common.base import BEFORE_START
from hpcrowd.environment.traces.formats.pbs.accounting import PBS
from hpcrowd.environment.traces.formats.pbs.records import (
    COLUMNS,
    duration,
    memory,
    of_chunks,
    of_hosts,
    of_vnodes,
    pairs,
)
from hpcrowd.environment.traces.trace import FIELDS
from hpcrowd.errors import ParseError, TraceError
from hpcrowd.formats import FormatOptions, Losses, generate_pbs, parse_pbs

from tests.environment.traces.formats.format_cases import asked_by, losses_are_exact, shown
from tests.environment.traces.formats.format_samples import PROFESSIONAL, TORQUE

#: 04/18/2009 00:00:00 UTC.
DAY = 1_240_012_800


def test_story_of_torque():
    """Times, processors, memory and ends of jobs are put together from all their records."""
    trace = parse_pbs(TORQUE)
    assert [
        (123, 0, 45, 1200, 8, 600, 200, 8, 3600, 2 * 1024**2, 1, "alice", "chem", "p17"),
        (124, 5, 80, 1700, 2, -1, -1, 2, 600, -1, 0, "bob", "chem", ""),
        (125, 15, -1, -1, -1, -1, -1, -1, -1, -1, 5, -1, -1, ""),
        (126, 1845, 5, 60, -1, -1, -1, -1, -1, -1, 5, "bob", -1, ""),
        (127, 2385, -1, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, ""),
    ] == shown(trace, *list(FIELDS)[:13], "project")  # 80 min of processor time on 8 processors
    words = {"queue": {1: "batch", 2: "long"}, "executable": {1: "STDIN", 2: "my long job"}}
    assert words == {name: trace.names[name] for name in words}
    assert "123.server" == trace.extra["job_id"][0]
    assert ({"not ended when the log ends": 2}, {}) == (trace.dropped, trace.repaired)
    header = trace.header
    assert (DAY + 15, 10) == (header.integer("UnixStartTime"), header.processors)
    assert "Sat Apr 18 00:00:15 UTC 2009" == header.get("StartTime")
    assert ["1 batch", "2 long"] == [value for key, value in header.entries() if key == "Queue"]
    note = "local times of records taken as UTC, as no time zone was given"
    assert note in [value for key, value in header.entries() if key == "Note"]


def test_story_of_pbs_professional():
    """Jobs of arrays count, the array does not; of a job that is run again the last run counts."""
    trace = parse_pbs(PROFESSIONAL)
    assert [  # numbers are in order of submission, as an array is there
        ("9[2].ml", 1, 0, 10, 80, 16, 16, 512 * 1024, 1, "a b=c"),
        ("10.ml", 2, 1, 289, 400, 1, 1, -1, 0, -1),
    ] == shown(
        trace, "job_id", "number", "submit", "wait", "run", "allocated_processors",
        "requested_processors", "requested_memory", "status", "executable",
    )  # fmt: skip
    assert {"lines: job array: its jobs count one by one": 1} == trace.dropped
    assert {} == trace.repaired
    assert {
        "job_id": ["9[2].ml", "10.ml"], "project": ["_pbs_project_default", ""],
        "eligible": ["5", ""], "exit_code": ["", "1"], "restarts": ["", "1"],
        "lost_work": ["", "60"], "runs": ["", "149:209:209:1:"], "nodes": ["2", "1"],
        "node_list": ["v1,v2", "v1"], "tasks": ["2", "1"], "cores_per_task": ["8", "1"],
    } == {name: texts.tolist() for name, texts in trace.extra.items()}  # fmt: skip
    losses_are_exact(trace, PBS, FormatOptions())
    lost = Losses()
    generate_pbs(trace, lost)
    assert {(name, "no record holds it"): 1 for name in ("lost_work", "runs")} == lost.counts


END = "04/18/2009 00:01:00;E;{};ctime={} start=50 end=60 Exit_status=0\n"


@pytest.mark.parametrize(
    ("text", "zone", "expected", "repaired"),
    [
        # with two servers, numbers are places in the order of submission
        (END.format("5.a", 30) + END.format("5.b", 10) + END.format("6.a", 20), None,
         {"number": [3, 1, 2], "submit": [20, 0, 10]}, {}),
        # what was deleted while it ran, without a record of its end, ended then
        ("04/18/2009 00:00:10;S;1.s;ctime=1240012800 start=1240012810\n"
         "04/18/2009 00:01:00;D;1.s;requestor=a@b\n", None,
         {"wait": [10], "run": [50], "status": [5]},
         {"no end record: deletion or abort taken as the end": 1}),
        # a job that never started was submitted when its record says, in the zone of the server
        (TORQUE, "Europe/Stockholm", {"submit": [7185, 7190, 0, 9030, 2370]}, {}),
    ],
)  # fmt: skip
def test_numbers_times_and_ends(text, zone, expected, repaired):
    """They follow from other records where their own lack them."""
    trace = parse_pbs(text, options=FormatOptions(zone=zone))
    assert expected == {name: trace[name].tolist() for name in expected}
    assert repaired == trace.repaired
    assert zone == trace.header.get("TimeZoneString")


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
        (duration, "100:00:00.5", 360_000), (memory, "2gb", 2 * 1024**2), (memory, "128w", 1),
        (memory, "2048b", 2), (memory, "1.5GB", 1.5 * 1024**2), (memory, "1024", 1),
        (pairs, "a='x \"y' b= c=x=y", [("a", 'x "y'), ("b", ""), ("c", "x=y")]),
        (pairs, "stray a=1", [("a", "1")]), (pairs, "", []),
    ],
)  # fmt: skip
def test_quantities(read, text, value):
    """Processors, durations, sizes and pairs of keys and values are understood in all forms."""
    assert value == read(text)


def test_records_are_written_by_time():
    """A trace becomes the records of a server: header, submissions, starts, deletions, ends."""
    trace = parse_swf(
        "; UnixStartTime: 1240012800\n; Note: a=b; 100 %\n"
        "1 0 5 60 4 30 -1 4 90 512 1 7 3 -1 -1 -1 -1 -1\n"
        "2 1 2 9 2 -1 -1 2 -1 -1 5 7 3 -1 -1 -1 -1 -1\n"
        "3 2 -1 -1 -1 -1 -1 1 -1 -1 5 7 3 -1 -1 -1 -1 -1\n"
        "4 9 -1 -1 -1 -1 -1 1 -1 -1 0 7 3 -1 -1 -1 -1 -1\n"
    )
    trace.names["user"] = {7: "Ann Lind"}
    stockholm = FormatOptions(zone="Europe/Stockholm")
    lines = generate_pbs(trace, options=stockholm).decode().splitlines()
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
    assert generate_swf(trace) == generate_swf(back).replace(b" 1 3 ", b" 7 3 ")
    trace.columns["number"] = np.array([1, 1, 1, 4])
    ids = parse_pbs(generate_pbs(trace)).extra["job_id"].tolist()
    assert ["1.hpcrowd", "1.hpcrowd.1", "1.hpcrowd.2", "4.hpcrowd"] == ids


RECORD = (
    "04/18/2009 00:01:00;E;{};user=u queue=long account=lab ctime=10 start=20 end=60 "
    "exec_host=a/0 Exit_status=0 {}\n"
)


def test_columns_beyond_the_fields():
    """Dependencies and reservations are kept, and hold jobs back."""
    later = "start=60 depend=afterok:1.s@s,afterany:9[4].s@s resvname=R5.s"
    trace = parse_pbs(RECORD.format("1.s", "") + RECORD.format("2.s", later))
    assert [("", ""), ("afterok:1.s@s,afterany:9[4].s@s", "R5.s")] == shown(
        trace, "dependency", "reservation"
    )
    made = jobs_from_trace(trace)
    rules = recorded_rules(trace, made.jobs, made.source_row)
    assert rules is not None
    assert {1: (Parent(0, Condition.OK),)} == rules.parents
    assert {NOT_THERE: 1} == rules.notes


#: Why a request is lost.
NO_PLACE = "no record holds it so"


def written_again(*resources):
    """Return the trace of jobs with some resources, the same after writing, and what was lost."""
    records = [
        RECORD.format(f"{number}.s", " ".join(f"Resource_List.{one}" for one in words.split()))
        for number, words in enumerate(resources, 1)
    ]
    trace, lost = parse_pbs("".join(records)), Losses()
    return trace, parse_pbs(generate_pbs(trace, lost)), lost


def asked_in(trace):
    """Return the columns of requests of a job."""
    columns = (*COLUMNS, "exclusive")
    return {name: trace.extra[name][0] for name in columns if name in trace.extra}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("select=2:ncpus=8:mem=4gb:ngpus=1",
         {"tasks": "2", "cores_per_task": "8", "gpus_per_task": "1"}),
        ("select=4:ncpus=2 place=scatter:excl",
         {"tasks": "4", "cores_per_task": "2", "tasks_per_node": "1", "asked_nodes": "4",
          "asked_max_nodes": "4", "exclusive": "yes"}),
        ("select=4:ncpus=2:bigmem=True:ib=true:ssd=False place=pack",
         {"tasks": "4", "cores_per_task": "2", "asked_nodes": "1", "asked_max_nodes": "1",
          "constraints": "bigmem&ib"}),
        ("select=1:ncpus=8:ngpus=2+1:ncpus=4 place=scatter",
         {"asked_nodes": "2", "asked_max_nodes": "2", "gpus": "2"}),
        ("select=1:ncpus=8+1:ncpus=8 place=free", {"tasks": "2", "cores_per_task": "8"}),
        ("select=1:ncpus=0", {}),
        ("nodes=2:ppn=4:gpus=1:bigmem",
         {"tasks": "8", "tasks_per_node": "4", "asked_nodes": "2", "asked_max_nodes": "2",
          "gpus_per_node": "1", "constraints": "bigmem"}),
        ("nodes=2:ppn=4+n17:ppn=2:gpus=3:shared",
         {"asked_nodes": "3", "asked_max_nodes": "3", "gpus": "3"}),
        ("nodes=n17", {"tasks": "1", "tasks_per_node": "1", "asked_nodes": "1",
                       "asked_max_nodes": "1"}),
        ("nodes=1:ppn=2 select=3:ncpus=4", {"tasks": "3", "cores_per_task": "4"}),
        ("ncpus=8 ngpus=2", {"gpus": "2"}),
        ("ncpus=8 place=excl", {"exclusive": "yes"}),
    ],
)  # fmt: skip
def test_resources_become_columns(resources, expected):
    """Chunks are tasks, nodes are nodes; they come back or, as nodes alone, are counted."""
    trace, back, lost = written_again(resources)
    assert expected == asked_in(trace)
    nodes = {"asked_nodes", "asked_max_nodes"} if "gpus" in expected else set()
    assert {(name, NO_PLACE): 1 for name in nodes & set(expected)} == lost.counts
    assert {name: expected[name] for name in expected if name not in nodes} == asked_in(back)
    sizes = trace["requested_processors"].tolist(), back["requested_processors"].tolist()
    assert sizes[0] == sizes[1]


ENDED = "04/18/2009 01:00:00;E;{}.s;ctime=1240012800 start=1240012860 {}\n"


@pytest.mark.parametrize(
    ("used", "run", "memory_used", "reason"),
    [
        ("end=1240012960 resources_used.walltime=00:01:40", 100, -1, None),
        ("end=1240012960 resources_used.mem=0b", 100, -1, None),
        ("end=1240012960 resources_used.mem=12.27M", 100, 12.27 * 1024, None),
        ("end=1240012960 resources_used.walltime=00:59:00", 100, -1, OTHER_WALLTIME),
        ("end=1240012850 resources_used.walltime=00:01:40", 100, -1, BACKWARD),
        ("end=1240012850", -1, -1, BEFORE_START),
        ("resources_used.walltime=00:01:40", 100, -1, None),
    ],
)
def test_run_times_and_memory(used, run, memory_used, reason):
    """Start and end count; a measured time that differs is said, and taken where they are odd."""
    trace = parse_pbs(ENDED.format(1, used))
    assert [(run, memory_used)] == shown(trace, "run", "memory")
    assert ({reason: 1} if reason else {}) == trace.repaired


def test_what_is_no_log_is_refused():
    """Its first line is named, as is that of many odd values, none of which can be read."""
    odd = ENDED.format(1, "end=1240012960 Resource_List.walltime=soon")
    with pytest.raises(ParseError, match=r"line 10.*, field Resource_List.walltime: 'soon'"):
        parse_pbs("\n" * 9 + odd * 10)
    with pytest.raises(TraceError, match="no jobs that have ended; line 1 is not a record"):
        parse_pbs("grep:" + odd)


def test_requests_of_a_machine():
    """A machine of nodes sees them, and also memory, queue, account and arrays."""
    asked = "Resource_List.select=2:ncpus=8:ib=True Resource_List.mem=32gb Resource_List.place=excl"
    found = asked_by(parse_pbs(RECORD.format("7[3].s", asked)))
    expected = {
        Ask.TASKS: [2], Ask.CORES_PER_TASK: [8], Ask.TASKS_PER_NODE: [UNKNOWN],
        Ask.MEMORY_PER_CORE: [2048], Ask.EXCLUSIVE: [1], Ask.ARRAY: [7], Ask.TASK: [3],
        Ask.FEATURES: ["ib"], Ask.PARTITIONS: ["long"], Ask.ACCOUNT: ["lab"],
    }  # fmt: skip
    assert expected == {ask: found[ask] for ask in expected}


def test_what_no_resources_say():
    """Features with or are in no record; memory counts if all chunks have it."""
    trace, lost = written_again("select=2:ncpus=4")[0], Losses()
    trace.extra["constraints"] = np.array(["a|b"], np.object_)
    back = parse_pbs(generate_pbs(trace, lost))
    assert {("constraints", NO_PLACE): 1} == lost.counts
    assert {"tasks": "2", "cores_per_task": "4"} == asked_in(back)
    trace, _, _ = written_again(
        "select=2:ncpus=4:mem=8gb+1:ncpus=8:mem=16gb",
        "select=2:ncpus=4:mem=8gb mem=64gb",
        "select=2:ncpus=4:mem=8gb+1:ncpus=8",
    )
    assert [2 * 1024**2, 8 * 1024**2, UNKNOWN] == trace["requested_memory"].tolist()
