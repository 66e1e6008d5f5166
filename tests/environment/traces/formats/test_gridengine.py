"""The accounting file of Grid Engine is read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
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

from tests.environment.traces.formats.format_cases import losses_are_exact, shown
from tests.environment.traces.formats.format_samples import GRIDENGINE as REAL
from tests.environment.traces.formats.format_samples import NOON

#: A record of Univa Grid Engine: times in ms, and fields after ar_sub_time.
UNIVA = (
    "long.q:n1:phys:ada:relax:9:sge:0:1706702400123:1706702400623:1706702401873:100:137:1.250:"
    + "0:" * 17
    + "NONE:defaultdepartment:NONE:1:0:1.200:0.1:0.1:NONE:0.000:NONE:1048576:0:0:"
    + "NONE:ada@login:1024:1024:login:/home/ada:qsub -b y relax --at 12%3A00:1.250:3"
)


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
        ("1", "ada", "plain1", 0, 0, 2, 1, 3600, 1, "COMPLETED", "", ""),
        ("5.1", "bob", "arr", 1, 1, 1, 1, -1, 1, "COMPLETED", "", ""),
        ("5.2", "bob", "arr", 1, 2, 1, 1, -1, 1, "COMPLETED", "", ""),
        ("10", "ada", "paral", 1, 2, 4, 2, 3600, 1, "COMPLETED", "", ""),
        ("11", "ada", "fixed", 1, 8, 1, 2, -1, 1, "COMPLETED", "", "physics_p"),
        ("12", "ada", "noshell", 1, -1, -1, 1, -1, 0, "failed 27", "", ""),
        ("8", "ada", "limit", 1, 7, 5, 1, 4, 0, "failed 37", "137", ""),
        ("16", "ada", "ex99", 2, 118, 1, 1, -1, 0, "failed 25", "99", ""),
        ("26", "bob", "delrun", 307, 0, 4, 1, -1, 0, "failed 100", "137", ""),
        ("30", "ada", "rerun", 324, 6, 5, 1, 600, 1, "COMPLETED", "", ""),
        ("31", "ada", "range1", 324, 0, 1, 4, -1, 1, "COMPLETED", "", ""),
        ("35", "ada", "reqs", 325, 7, 1, 1, -1, 1, "COMPLETED", "", "grant_7"),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_time", "status", "final_state", "exit_code", "project",
    )  # fmt: skip
    assert trace["allocated_processors"].tolist() == trace["requested_processors"].tolist()
    assert ({1: "physics", 2: "chemistry"}, {1: "all.q"}) == (trace.names["group"],
                                                              trace.names["queue"])  # fmt: skip
    assert {"run again by the manager: last run and first submission kept": 2} == trace.repaired
    assert {} == trace.dropped
    assert ("", "1") == (trace.extra["restarts"][0], trace.extra["restarts"][7])
    assert {"vm"} == set(trace.extra["node_list"])
    assert (1_795_454_077, 4) == (trace.header.integer("UnixStartTime"), trace.header.processors)
    # per slot, with those of a parallel job's tasks; h_vmem was only wished
    assert (4 * 2**20, 100e6 / 1024) == tuple(trace["requested_memory"][[0, -1]])
    assert (7700480 + 3592192 + 19128320) / 1024 / 2 == trace["memory"][3]
    assert pytest.approx((0.007969 + 0.009071 + 0.116762) / 2) == trace["average_cpu"][3]
    assert (1648, -1, -1) == (trace["memory"][0], trace["memory"][5], trace["average_cpu"][5])
    assert "5.2" in losses_are_exact(trace, GRIDENGINE, FormatOptions()).extra["job_id"]
    lost = Losses()
    generate_gridengine(trace, lost)
    assert ["restarts of 2 jobs: no record holds it"] == lost.lines()
    # Univa has times in ms; whoever was deleted by qdel is cancelled
    univa = parse_gridengine(UNIVA)
    assert [("9", 0.123, 0.5, 1.25, 5, "CANCELLED")] == shown(
        univa, "job_id", "submit", "wait", "run", "status", "final_state"
    )
    assert NOON == univa.header.integer("UnixStartTime")


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
    """They are part of their job, before or after its record; without one they are dropped.

    A number of slots is what was requested; of a range it is what was granted.
    """
    job = record(granted_pe="mpi", slots=4, category="-pe mpi 4", cpu="8.0")
    task = record(granted_pe="mpi", slots=4, pe_taskid="1.n2", cpu="16.0", hostname="n2")
    for text in (task + job, job + task):
        trace = parse_gridengine(text)
        assert [(6, "n1,n2")] == shown(trace, "average_cpu", "node_list")
    trace = parse_gridengine(job + task.replace(":7:", ":8:", 1))
    assert {"task of a parallel job without a record of the job": 1} == trace.dropped
    for asked, granted, requested in (
        ("-pe mpi 8", 4, 8), ("-pe mpi 2-9999999", 4, 4), ("-pe mpi 2,3", 0, 2), ("NONE", 4, -1),
    ):  # fmt: skip
        trace = parse_gridengine(record(granted_pe="mpi", slots=granted, category=asked))
        assert [(requested,)] == shown(trace, "requested_processors"), asked


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (moment, "0", None), (moment, "1706702400", NOON), (moment, "1706702400250", NOON + 0.25),
        (seconds, "3600", 3600), (seconds, "1:00:00", 3600), (seconds, "10:00", 600),
        (seconds, "INFINITY", -1), (size, "4G", 4 * 2**20), (size, "1024", 1), (size, "512k", 500),
        (size, "1.5M", 1536), (size, "INFINITY", -1), (slots, "8", (8,)), (slots, "2-8", (2, 8)),
        (slots, "2,3", (2, 3)),
        (lambda text: list(options_of(text)), "-U staff -q all.q -l h_cpu=1800,mem_free=100m -soft "
         "-l h_vmem=1g -pe smp 2-8", [("h_cpu", "1800"), ("mem_free", "100m"), ("-pe", "2-8")]),
    ],
)  # fmt: skip
def test_values(read: Callable[[str], Any], text: str, value: Any) -> None:
    """Times, sizes and slots are understood in all their forms."""
    assert value == read(text)


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
    assert {("user", "no record holds the word, or it means unknown"): 2} == lost.counts
