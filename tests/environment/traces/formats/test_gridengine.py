"""The accounting file of Grid Engine is read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_gridengine,
    parse_gridengine,
    parse_swf,
)
from hpcrowd.environment.traces.formats.gridengine import (
    GRIDENGINE,
    moment,
    options_of,
    seconds,
    size,
    slots,
)
from hypothesis import given

from tests.environment.traces.formats.accounting_cases import COLUMNS, losses_are_exact, shown
from tests.support.neighbours import any_trace, damaged, told_in_one_line

#: Records of Son of Grid Engine 8.1.9, as it wrote them for invented users: a job, two tasks of an
#: array, a parallel job and its two tasks, one without a shell, one over its limit, one that asked
#: twice to be run again, a deleted one, one that was rescheduled, a range of slots, requests.
REAL = """\
# Version: 8.1.9
#
# DO NOT MODIFY THIS FILE MANUALLY!
#
all.q:vm:physics:ada:plain1:1:sge:0:1795454077:1795454077:1795454079:0:0:2:0.142282:0.003324:\
4972.000000:0:0:0:0:551:0:0:8.000000:16:0:0:0:12:71:NONE:defaultdepartment:NONE:1:0:0.145606:\
0.000062:0.000030:-l h_rt=3600,h_vmem=4G:0.000000:NONE:1687552.000000:0:0
all.q:vm:chemistry:bob:arr:5:sge:0:1795454078:1795454079:1795454080:0:0:1:0.141257:0.003958:\
4752.000000:0:0:0:0:553:0:0:0.000000:8:0:0:0:12:70:NONE:defaultdepartment:NONE:1:1:0.145215:\
0.000107:0.000037:NONE:0.000000:NONE:3653632.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454080:1795454080:1795454081:0:0:1:0.007969:0.000000:\
4784.000000:0:0:0:0:627:0:0:0.000000:40:0:0:0:8:3:NONE:defaultdepartment:smp:2:0:0.007969:\
0.000000:0.000032:-l h_rt=3600 -pe smp 2,3:0.000000:2.localhost:7700480.000000:0:0
all.q:vm:chemistry:bob:arr:5:sge:0:1795454078:1795454080:1795454081:0:0:1:0.142543:0.003248:\
4888.000000:0:0:0:0:560:0:0:0.000000:8:0:0:0:13:65:NONE:defaultdepartment:NONE:1:2:0.145791:\
0.000107:0.000037:NONE:0.000000:NONE:3661824.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454080:1795454080:1795454083:0:0:3:0.002217:0.006854:\
4908.000000:0:0:0:0:629:0:0:0.000000:48:0:0:0:8:3:NONE:defaultdepartment:smp:2:0:0.009071:\
0.000000:0.000012:-l h_rt=3600 -pe smp 2,3:0.000000:1.localhost:3592192.000000:0:0
all.q:vm:physics:ada:paral:10:sge:0:1795454078:1795454080:1795454084:0:0:4:0.094812:0.021950:\
17916.000000:0:0:0:0:13996:1:0:64.000000:16:0:0:0:298:136:NONE:defaultdepartment:smp:2:0:\
0.116762:0.000000:0.001380:-l h_rt=3600 -pe smp 2,3:0.000000:NONE:19128320.000000:0:0
all.q:vm:physics:ada:fixed:11:sge:0:1795454078:1795454086:1795454087:0:0:1:0.143069:0.004114:\
5008.000000:0:0:0:0:560:0:0:0.000000:8:0:0:0:11:50:physics_p:defaultdepartment:smp:2:0:\
0.147183:0.000111:0.000034:-pe smp 2:0.000000:NONE:3698688.000000:0:0
all.q:vm:physics:ada:noshell:12:sge:0:1795454078:0:0:27:0:0:0.000000:0.000000:0.000000:0:0:0:0:\
0:0:0:0.000000:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:0.000000:0.000000:0.000000:NONE:\
0.000000:NONE:0.000000:0:0
all.q:vm:physics:ada:limit:8:sge:0:1795454078:1795454085:1795454090:37:137:5:0.150362:0.000000:\
4860.000000:0:0:0:0:482:0:0:0.000000:16:0:0:0:8:38:NONE:defaultdepartment:NONE:1:0:0.150362:\
0.000119:0.000037:-l h_rt=4:0.000000:NONE:3690496.000000:0:0
all.q:vm:physics:ada:ex99:16:sge:0:1795454079:1795454091:1795454092:25:99:1:0.154188:0.000000:\
4864.000000:0:0:0:0:551:0:0:0.000000:8:0:0:0:10:49:NONE:defaultdepartment:NONE:1:0:0.154188:\
0.000126:0.000037:NONE:0.000000:NONE:3604480.000000:0:0
all.q:vm:physics:ada:ex99:16:sge:0:1795454093:1795454197:1795454198:25:99:1:0.142306:0.003758:\
4800.000000:0:0:0:0:560:0:0:0.000000:8:0:0:0:13:41:NONE:defaultdepartment:NONE:1:0:0.146064:\
0.000107:0.000037:NONE:0.000000:NONE:3661824.000000:0:0
all.q:vm:chemistry:bob:delrun:26:sge:0:1795454384:1795454384:1795454388:100:137:4:0.146226:\
0.000000:4988.000000:0:0:0:0:476:0:0:0.000000:8:0:0:0:10:48:NONE:defaultdepartment:NONE:1:0:\
0.146226:0.000114:0.000037:NONE:0.000000:NONE:3620864.000000:0:0
all.q:vm:physics:ada:rerun:30:sge:0:0:0:0:25:0:0:0.000000:0.000000:0.000000:0:0:0:0:0:0:0:\
0.000000:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:0.000000:0.000000:0.000000:-l h_rt=600:\
0.000000:NONE:0.000000:0:0
all.q:vm:physics:ada:range1:31:sge:0:1795454401:1795454401:1795454402:0:0:1:0.155789:0.000000:\
4752.000000:0:0:0:0:556:0:0:0.000000:8:0:0:0:12:61:NONE:defaultdepartment:smp:4:0:0.155789:\
0.000124:0.000034:-pe smp 2-8:0.000000:NONE:3629056.000000:0:0
all.q:vm:physics:ada:reqs:35:grant_7:0:1795454402:1795454409:1795454410:0:0:1:0.142524:\
0.004170:4728.000000:0:0:0:0:550:0:0:0.000000:8:0:0:0:11:40:NONE:defaultdepartment:NONE:1:0:\
0.146694:0.000107:0.000037:-q all.q -l h_cpu=1800,mem_free=100m -soft -l h_vmem=1g:0.000000:\
NONE:3620864.000000:0:0
all.q:vm:physics:ada:rerun:30:sge:0:1795454401:1795454407:1795454412:0:0:5:0.140887:0.003726:\
4976.000000:0:0:0:0:552:0:0:0.000000:8:0:0:0:11:42:NONE:defaultdepartment:NONE:1:0:0.144613:\
0.000106:0.000037:-l h_rt=600:0.000000:NONE:3596288.000000:0:0
"""

#: A record of Univa Grid Engine: times in ms, and fields after ar_sub_time.
UNIVA = (
    "long.q:n1:phys:ada:relax:9:sge:0:1706702400123:1706702400623:1706702401873:100:137:1.250:"
    + "0:" * 17
    + "NONE:defaultdepartment:NONE:1:0:1.200:0.1:0.1:NONE:0.000:NONE:1048576:0:0:"
    + "NONE:ada@login:1024:1024:login:/home/ada:qsub -b y relax --at 12%3A00:1.250:3"
)

#: 31 January 2024 12:00:00 UTC.
NOON = 1_706_702_400


def record(**changes: Any) -> str:
    """A record of a job that ran from five past twelve to five past one, with some changes."""
    told: dict[str, Any] = {
        "qname": "all.q", "hostname": "n1", "group": "phys", "owner": "ada", "job_name": "relax",
        "job_number": 7, "account": "sge", "priority": 0, "submission_time": NOON,
        "start_time": NOON + 300, "end_time": NOON + 3900, "failed": 0, "exit_status": 0,
        "ru_wallclock": 3600, **{f"ru{place}": 0 for place in range(17)}, "project": "NONE",
        "department": "defaultdepartment", "granted_pe": "NONE", "slots": 1, "task_number": 0,
        "cpu": "0.000000", "mem": 0, "io": 0, "category": "NONE", "iow": 0, "pe_taskid": "NONE",
        "maxvmem": "0.000000", "arid": 0, "ar_sub_time": 0,
    }  # fmt: skip
    told |= changes
    return ":".join(str(value) for value in told.values()) + "\n"


def test_story_of_real_records() -> None:
    """Times, slots, requests and ends are those that Grid Engine was asked for and gave."""
    trace = parse_gridengine(REAL)
    assert [
        ("1", "ada", "plain1", 0, 0, 2, 1, 3600, 1, "COMPLETED", ""),
        ("5.1", "bob", "arr", 1, 1, 1, 1, -1, 1, "COMPLETED", ""),
        ("5.2", "bob", "arr", 1, 2, 1, 1, -1, 1, "COMPLETED", ""),
        ("10", "ada", "paral", 1, 2, 4, 2, 3600, 1, "COMPLETED", ""),
        ("11", "ada", "fixed", 1, 8, 1, 2, -1, 1, "COMPLETED", ""),
        ("12", "ada", "noshell", 1, -1, -1, 1, -1, 0, "failed 27", ""),
        ("8", "ada", "limit", 1, 7, 5, 1, 4, 0, "failed 37", "137"),
        ("16", "ada", "ex99", 2, 118, 1, 1, -1, 0, "failed 25", "99"),
        ("26", "bob", "delrun", 307, 0, 4, 1, -1, 0, "failed 100", "137"),
        ("30", "ada", "rerun", 324, 6, 5, 1, 600, 1, "COMPLETED", ""),
        ("31", "ada", "range1", 324, 0, 1, 4, -1, 1, "COMPLETED", ""),
        ("35", "ada", "reqs", 325, 7, 1, 1, -1, 1, "COMPLETED", ""),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_time", "status", "final_state", "exit_code",
    )  # fmt: skip
    assert trace["allocated_processors"].tolist() == trace["requested_processors"].tolist()
    assert {1: "physics", 2: "chemistry"} == trace.names["group"]
    assert {1: "all.q"} == trace.names["queue"]
    assert {"run again by the manager: last run and first submission kept": 2} == trace.repaired
    assert {} == trace.dropped
    assert ("", "1") == (trace.extra["restarts"][0], trace.extra["restarts"][7])
    assert "physics_p" == trace.extra["project"][4]
    assert "grant_7" == trace.extra["project"][-1]
    assert {"vm"} == set(trace.extra["node_list"])


def test_header_of_real_records() -> None:
    """It has the first submission, the largest use, and the zone of the options."""
    header = parse_gridengine(REAL, options=FormatOptions(zone="Europe/Stockholm")).header
    assert 1_795_454_077 == header.integer("UnixStartTime")
    assert 4 == header.processors
    assert "Europe/Stockholm" == header.get("TimeZoneString")


def test_memory_and_cpu_time() -> None:
    """They are per slot, with those of a parallel job's tasks; requests are per slot already."""
    trace = parse_gridengine(REAL)
    assert 4 * 2**20 == trace["requested_memory"][0]
    assert 100e6 / 1024 == trace["requested_memory"][-1]  # mem_free=100m; h_vmem was only wished
    assert 1648 == trace["memory"][0]
    assert pytest.approx((0.007969 + 0.009071 + 0.116762) / 2) == trace["average_cpu"][3]
    assert (7700480 + 3592192 + 19128320) / 1024 / 2 == trace["memory"][3]
    assert [-1, -1] == [trace[name][5] for name in ("memory", "average_cpu")]


def test_univa() -> None:
    """Times in ms keep their fractions, and whoever was deleted by qdel is cancelled."""
    trace = parse_gridengine(UNIVA)
    assert [("9", 0.123, 0.5, 1.25, 5, "CANCELLED")] == shown(
        trace, "job_id", "submit", "wait", "run", "status", "final_state"
    )
    assert NOON == trace.header.integer("UnixStartTime")


def test_runs_of_a_job_and_numbers_used_again() -> None:
    """A run that was rescheduled belongs to the next one; one that ended does not."""
    again = {"submission_time": 0, "start_time": 0, "end_time": 0, "failed": 25, "ru_wallclock": 0}
    later = {"submission_time": NOON + 100}
    trace = parse_gridengine(record(**again) + record(**later) + record(submission_time=NOON + 200))
    assert [("7", 0, 200), ("7", 100, 100)] == shown(trace, "job_id", "submit", "wait")
    assert [1, 2] == trace["number"].tolist()
    trace = parse_gridengine(record(failed=25) + record(owner="bob"))
    assert {} == trace.repaired
    assert {"the same record twice": 1} == parse_gridengine(record() * 2).dropped


def test_tasks_of_parallel_jobs() -> None:
    """They are part of their job, before or after its record; without one they are dropped."""
    job = record(granted_pe="mpi", slots=4, category="-pe mpi 4", cpu="8.0")
    task = record(granted_pe="mpi", slots=4, pe_taskid="1.n2", cpu="16.0", hostname="n2")
    for text in (task + job, job + task):
        trace = parse_gridengine(text)
        assert [(6, "n1,n2")] == shown(trace, "average_cpu", "node_list")
    trace = parse_gridengine(job + task.replace(":7:", ":8:", 1))
    assert {"task of a parallel job without a record of the job": 1} == trace.dropped


@pytest.mark.parametrize(
    ("changes", "requested"),
    [
        ({}, 1),
        ({"granted_pe": "mpi", "slots": 4, "category": "-pe mpi 8"}, 8),
        ({"granted_pe": "mpi", "slots": 4, "category": "-pe mpi 2-9999999"}, 4),
        ({"granted_pe": "mpi", "slots": 0, "category": "-pe mpi 2,3"}, 2),
        ({"granted_pe": "mpi", "slots": 4}, -1),
    ],
)
def test_requested_slots(changes: dict[str, Any], requested: int) -> None:
    """A number is what was requested; of a range it is what was granted."""
    assert [requested] == parse_gridengine(record(**changes))["requested_processors"].tolist()


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (moment, "0", None), (moment, "1706702400", NOON), (moment, "1706702400250", NOON + 0.25),
        (seconds, "3600", 3600), (seconds, "1:00:00", 3600), (seconds, "10:00", 600),
        (seconds, "INFINITY", -1), (size, "4G", 4 * 2**20), (size, "1024", 1), (size, "512k", 500),
        (size, "1.5M", 1536), (size, "INFINITY", -1), (slots, "8", (8,)), (slots, "2-8", (2, 8)),
        (slots, "2,3", (2, 3)),
    ],
)  # fmt: skip
def test_values(read: Callable[[str], Any], text: str, value: Any) -> None:
    """Times, sizes and slots are understood in all their forms."""
    assert value == read(text)


def test_soft_requests_are_wishes() -> None:
    """Of a category the hard requests and the parallel environment count."""
    category = "-U staff -q all.q -l h_cpu=1800,mem_free=100m -soft -l h_vmem=1g -pe smp 2-8"
    found = [("h_cpu", "1800"), ("mem_free", "100m"), ("-pe", "2-8")]
    assert found == list(options_of(category))


@pytest.mark.parametrize(
    ("changes", "field", "value", "rule"),
    [
        ({"job_number": "x"}, "job_number", "x", "whole number"),
        ({"submission_time": "1.5"}, "submission_time", "1.5", "whole number"),
        ({"start_time": 10**14}, "start_time", "100000000000000", "1970 to 2199"),
        ({"slots": 2**40}, "slots", str(2**40), "more than"),
        ({"cpu": "much"}, "cpu", "much", "not a number"),
        ({"category": "-l h_rt=long"}, "category", "long", "3600"),
        ({"category": "-l h_vmem=big"}, "category", "big", "4G"),
        ({"category": "-pe mpi many"}, "category", "many", "2-8"),
    ],
)
def test_malformed_values(changes: dict[str, Any], field: str, value: str, rule: str) -> None:
    """A malformed value is one line with file, line, field, value and rule."""
    with pytest.raises(ParseError, match=rule) as caught:
        parse_gridengine("# a comment\n" + record() + record(**changes), source="accounting")
    error = caught.value
    assert ("accounting", 3, field, value) == (error.path, error.line, error.field, error.value)


@pytest.mark.parametrize("text", ["", "# Version: 8.1.9\n#\n", "a:b:c\n", record()[:60]])
def test_no_jobs(text: str) -> None:
    """What holds no job, or is cut short, is reported."""
    with pytest.raises(TraceError):
        parse_gridengine(text)


def test_a_trace_is_written_as_records() -> None:
    """A record has the fields of the manual; qdel_info is added for jobs that were cancelled."""
    trace = parse_swf(
        "; UnixStartTime: 1706702400\n"
        "1 0 300 3600 8 3500 512 8 7200 4096 1 7 3 2 1 -1 -1 -1\n"
        "2 9 -1 -1 -1 -1 -1 1 -1 -1 5 7 3 2 1 -1 -1 -1\n"
    )
    trace.names["user"] = {7: "a:b"}
    lost = Losses()
    lines = generate_gridengine(trace, lost).decode().splitlines()
    assert (
        "1:hpcrowd:3:a_b:2:1:sge:0:1706702400:1706702700:1706706300:0:0:3600:0:0:0:0:0:0:0:0:0:0:0:"
        "0:0:0:0:0:0:NONE:defaultdepartment:hpcrowd:8:0:28000.000000:0:0:"
        "-l h_rt=7200,h_vmem=4194304 -pe hpcrowd 8:0:NONE:4194304:0:0" == lines[0]
    )
    assert lines[1].endswith(":NONE:hpcrowd@hpcrowd")
    assert {
        ("user", "no record holds the word, or it means unknown"): 2,
        ("header", "no record holds it"): 0,
    } == lost.counts | {("header", "no record holds it"): 0}


def test_what_was_read_is_written() -> None:
    """Real records come back with ids, projects, accounts and exit codes."""
    again = losses_are_exact(GRIDENGINE, parse_gridengine(REAL))
    assert "5.2" in again.extra["job_id"]
    lost = Losses()
    generate_gridengine(parse_gridengine(REAL), lost)
    assert ["restarts of 2 jobs: no record holds it"] == lost.lines()


@given(any_trace(COLUMNS))
def test_losses_are_exact(trace: Trace) -> None:
    """Whatever is in a trace and its text columns, what changes is counted."""
    losses_are_exact(GRIDENGINE, trace)


@given(damaged(REAL.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_gridengine, data)
