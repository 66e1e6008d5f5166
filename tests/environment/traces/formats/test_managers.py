"""Accounting of Grid Engine and LSF and the history of HTCondor are read and written."""

from typing import Any

import pytest
from hpcrowd import parse_swf
from hpcrowd.environment.traces.formats.common.base import NO_ZONE
from hpcrowd.environment.traces.formats.common.names import NOTHING
from hpcrowd.environment.traces.formats.gridengine import moment, options_of, seconds, size, slots
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.errors import ParseError
from hpcrowd.formats import FormatOptions, Losses, parse_gridengine, parse_htcondor, parse_lsf
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import losses_are_exact, shown
from tests.environment.traces.formats.format_samples import (
    GRIDENGINE,
    HTCONDOR,
    LSF,
    NOON,
    lsf_record,
)

AGAIN = "run again by the manager: an earlier run without start or end left out"


def losses_of(trace, name):
    """What a format cannot hold of a trace."""
    lost = Losses()
    FORMATS[name].generate(trace, lost, FormatOptions())
    return lost


#: A record of Univa Grid Engine: times in ms, and fields after ar_sub_time.
UNIVA = (
    "long.q:n1:phys:ada:relax:9:sge:0:1706702400123:1706702400623:1706702401873:100:137:1.250:"
    + "0:" * 17
    + "NONE:defaultdepartment:NONE:1:0:1.200:0.1:0.1:NONE:0.000:NONE:1048576:0:0:"
    + "NONE:ada@login:1024:1024:login:/home/ada:qsub -b y relax --at 12%3A00:1.250:3"
)


def record(**changes):
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


def test_story_of_grid_engine():
    """Times, slots, requests and ends are those that Grid Engine was asked for and gave."""
    trace = parse_gridengine(GRIDENGINE)
    assert [
        ("1", "ada", "plain1", 0, 0, 2, 1, 3600, 1, "COMPLETED", "", ""),
        ("5.1", "bob", "arr", 1, 1, 1, 1, -1, 1, "COMPLETED", "", ""),
        ("10", "ada", "paral", 1, 2, 4, 2, 3600, 1, "COMPLETED", "", ""),
        ("11", "ada", "fixed", 1, 8, 1, 2, -1, 1, "COMPLETED", "", "physics_p"),
        ("12", "ada", "noshell", 1, -1, -1, 1, -1, 0, "failed 27", "", ""),
        ("8", "ada", "limit", 1, 7, 5, 1, 4, 0, "failed 37", "137", ""),
        ("16", "ada", "ex99", 2, 118, 1, 1, -1, 0, "failed 25", "99", ""),
        ("26", "bob", "delrun", 307, 0, 4, 1, -1, 0, "failed 100", "137", ""),
        ("30", "ada", "rerun", 324, 6, 5, 1, 600, 1, "COMPLETED", "", ""),
        ("35", "ada", "reqs", 325, 7, 1, 1, -1, 1, "COMPLETED", "", "grant_7"),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_time", "status", "final_state", "exit_code", "project",
    )  # fmt: skip
    assert trace["allocated_processors"].tolist() == trace["requested_processors"].tolist()
    assert ({1: "physics", 2: "chemistry"}, {1: "all.q"}) == (trace.names["group"],
                                                              trace.names["queue"])  # fmt: skip
    assert {AGAIN: 1} == trace.repaired
    assert {} == trace.dropped
    assert [("", ""), ("1", "12:13:14:1:failed_25"), ("1", "")] == [
        shown(trace, "restarts", "runs")[row] for row in (0, 6, 8)
    ]
    assert {"vm"} == set(trace.extra["node_list"])
    assert (1_795_454_077, 3) == (trace.header.integer("UnixStartTime"), trace.header.processors)
    # per slot, with those of a parallel job's tasks; h_vmem was only wished
    assert (4 * 2**20, 100e6 / 1024) == tuple(trace["requested_memory"][[0, -1]])
    assert (7700480 + 3592192 + 19128320) / 1024 / 2 == trace["memory"][2]
    assert pytest.approx((0.007969 + 0.009071 + 0.116762) / 2) == trace["average_cpu"][2]
    assert (1648, -1, -1) == (trace["memory"][0], trace["memory"][4], trace["average_cpu"][4])
    assert "5.1" in losses_are_exact(trace, FORMATS["gridengine"], FormatOptions()).extra["job_id"]
    assert {"restarts", "runs"} == {name for name, _ in losses_of(trace, "gridengine").counts}
    # Univa has times in ms; whoever was deleted by qdel is cancelled
    univa = parse_gridengine(UNIVA)
    assert [("9", 0.123, 0.5, 1.25, 5, "CANCELLED")] == shown(
        univa, "job_id", "submit", "wait", "run", "status", "final_state"
    )
    assert NOON == univa.header.integer("UnixStartTime")


def test_runs_of_a_job_and_numbers_used_again():
    """A run that was rescheduled belongs to the next one; one that ended does not."""
    again = {"submission_time": 0, "start_time": 0, "end_time": 0, "failed": 25, "ru_wallclock": 0}
    later = {"submission_time": NOON + 100}
    trace = parse_gridengine(record(**again) + record(**later) + record(submission_time=NOON + 200))
    assert [("7", 0, 200), ("7", 100, 100)] == shown(trace, "job_id", "submit", "wait")
    assert [1, 2] == trace["number"].tolist()
    trace = parse_gridengine(record(failed=25) + record(owner="bob"))
    assert {} == trace.repaired
    assert {"lines: the same record twice": 1} == parse_gridengine(record() * 2).dropped


def test_tasks_of_parallel_jobs():
    """They are part of their job, before or after its record; without one they are dropped."""
    job = record(granted_pe="mpi", slots=4, category="-pe mpi 4", cpu="8.0")
    task = record(granted_pe="mpi", slots=4, pe_taskid="1.n2", cpu="16.0", hostname="n2")
    for text in (task + job, job + task):
        trace = parse_gridengine(text)
        assert [(6, "n1,n2")] == shown(trace, "average_cpu", "node_list")
    trace = parse_gridengine(job + task.replace(":7:", ":8:", 1))
    assert {"lines: task of a parallel job without a record of the job": 1} == trace.dropped


#: Output of qacct -j, with a date of another version and a job that never started.
QACCT = """==============================================================
qname        all.q
owner        ada
jobname      two words
jobnumber    7
taskid       4
qsub_time    Wed Jan 31 12:00:00 2024
start_time   01/31/2024 12:05:00.250
end_time     Wed Jan 31 12:15:00 2024
granted_pe   mpi
slots        2
failed       100 : assumedly after job
exit_status  137                  (Killed)
ru_wallclock 600s
cpu          590.1s
category     -l h_rt=7200 -pe mpi 2
maxvmem      1.5G
==============================================================
qname        all.q
owner        bob
jobname      x
jobnumber    8
taskid       undefined
qsub_time    Wed Jan 31 12:00:10 2024
start_time   -/-
slots        1
failed       26  : opening input/output file
ru_wallclock soon
maxvmem      0.000B
"""


def test_output_of_qacct():
    """What qacct prints gives what the accounting file says; odd values are counted."""
    trace = parse_gridengine(QACCT, options=FormatOptions(zone="Europe/Paris"))
    assert [
        ("7.4", "ada", "two words", 0, 300, 600, 2, 7200, 295.05, 786432, 0, "failed 100", "137"),
        ("8", "bob", "x", 10, -1, -1, 1, -1, -1, -1, 0, "failed 26", ""),
    ] == shown(
        trace, "job_id", "user", "executable", "submit", "wait", "run", "allocated_processors",
        "requested_time", "average_cpu", "memory", "status", "final_state", "exit_code",
    )  # fmt: skip
    assert NOON - 3600 == trace.header.integer("UnixStartTime")
    told = [reason for reason in trace.repaired if "taken as unknown: " in reason]
    assert ["lines: taken as unknown: ru_wallclock: not a number (first: line 19)"] == told
    assert 2 == parse_gridengine(QACCT).repaired[NO_ZONE]


@given(st.text("ab1:0 _.", min_size=1, max_size=12), st.integers(1, 999), st.sampled_from([0, 3]))
def test_colons_in_job_names(name, number, task):
    """A job name reads back whatever colons it has; a record that is unclear is left out."""
    text = record(job_name=name, job_number=number, task_number=task, priority=0)
    trace = parse_gridengine(record(job_number=1000) + text)
    reason = "lines: colons in a job name: fields assigned by their kinds"
    assert {"1000", f"{number}.{task}" if task else str(number)} == {*trace.extra["job_id"]}
    names = trace.names["executable"].values()
    assert name in names or name in NOTHING
    assert trace.repaired[reason] == (":" in name)
    if ":" in name:
        with pytest.raises(ParseError):
            parse_gridengine(text, options=FormatOptions(strict=True))


def of_univa(asked, granted=16):
    """A record of a parallel job that asked for something."""
    return record(granted_pe="mpi", slots=granted, category=asked)


def of_lsf(asked):
    """A record of LSF with requirements of resources, the effective ones first."""
    return lsf_record().replace('"rusage[mem=4096]"', f'"rusage[{asked}]"', 1)


#: An ad of HTCondor: of parallel jobs the hosts count, each with what is requested of it.
AD = f"""ClusterId = 9\nQDate = {NOON}\nJobStatus = 4\nJobCurrentStartDate = {NOON}
CompletionDate = {NOON + 60}\nRequestCpus = 2\nRequestMemory = 1024\n"""
HOSTS = "MinHosts = 4\nMaxHosts = 4\nCpusProvisioned = 3\n"
SIZE = ("requested_processors", "allocated_processors", "requested_memory")


@pytest.mark.parametrize(
    ("parse", "text", "fields", "expected"),
    [
        *((parse_gridengine, of_univa(asked, granted), ["requested_processors"], (requested,))
          for asked, granted, requested in (
              ("-pe mpi 8", 4, 8), ("-pe mpi 2-9999999", 4, 4), ("-pe mpi 2,3", 0, 2),
              ("NONE", 4, -1))),
        (parse_gridengine, of_univa("-l gpu=2,m_mem_free=4.000G -pe mpi 16"),
         ["requested_memory", "gpus", "requested_processors"], (4 * 2**20, "2", 16)),
        (parse_lsf, of_lsf("mem=4096,ngpus_physical=2.00"), ["gpus_per_node"], ("2",)),
        (parse_lsf, of_lsf("ngpus_physical=4"), ["gpus_per_node"], ("4",)),
        *((parse_htcondor, f"{AD}{more}JobUniverse = 11\n", SIZE, (8, held, 512 * 1024))
          for more, held in (
              (f"{HOSTS}CurrentHosts = 0\n", 12), (f"{HOSTS}CurrentHosts = 3\n", 9), (HOSTS, 12))),
        (parse_htcondor, f"{AD}{HOSTS}JobUniverse = 5\n", SIZE, (2, 3, 512 * 1024)),
        (parse_htcondor, f"{AD}JobUniverse = 11\n", SIZE, (2, -1, 512 * 1024)),
    ],
)  # fmt: skip
def test_what_jobs_ask_for(parse, text, fields, expected):
    """Processors, memory and GPUs are those of ranges, hosts and the names that sites give them."""
    assert [expected] == shown(parse(text), *fields)


def test_gpus_of_grid_engine():
    """They are written, and zero of them are none."""
    trace = parse_gridengine(of_univa("-l gpu=2 -pe mpi 16"))
    assert ["2"] == parse_gridengine(FORMATS["gridengine"].generate(trace)).extra["gpus"].tolist()
    assert "gpus" not in parse_gridengine(of_univa("-l gpu=0 -pe mpi 16")).extra


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
def test_values(read, text, value):
    """Times, sizes and slots are understood in all their forms."""
    assert value == read(text)


def test_story_of_lsf():
    """Times, processors, limits and ends are those of the records."""
    trace = parse_lsf(LSF)
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
    assert {} == trace.repaired
    assert "210:3810:3810:8:TERM_REQUEUE_OWNER" == trace.extra["runs"][2]
    assert {1: "normal"} == trace.names["queue"]
    # per processor; -1 and 0 are unknown
    assert [512, 2048, 4096, -1, 512] == trace["memory"].tolist()
    assert (28013 / 8, -1) == (trace["average_cpu"][0], trace["average_cpu"][3])
    # values after maxRSwap may be missing, and then there is no limit
    old = lsf_record().split(' "" "" "" "" 0 "" 0')[0]
    assert [(-1, 4096 / 8)] == shown(parse_lsf(old), "requested_time", "memory")
    losses_are_exact(trace, FORMATS["lsf"], FormatOptions())
    lost = {name for name, _ in losses_of(trace, "lsf").counts}
    assert {"node_list", "nodes", "restarts", "runs"} == lost


def test_story_of_htcondor():
    """Times, processors, limits and ends are those of the ads; a job on hold has not ended."""
    trace = parse_htcondor(HTCONDOR)
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
    assert {AGAIN: 1} == trace.repaired
    assert {"JobStatus: not ended": 1} == trace.dropped
    assert {1: "physics"} == trace.names["group"]
    # per processor; an expression is unknown
    assert (987648 / 8, 28013 / 8) == (trace["memory"][0], trace["average_cpu"][0])
    assert [4096 * 1024 / 8, -1] == trace["requested_memory"][:2].tolist()
    losses_are_exact(trace, FORMATS["htcondor"], FormatOptions())


#: A job that ended well, and one that was cancelled while it waited.
TWO_JOBS = """; UnixStartTime: 1706702400
1 0 300 3600 8 3500 512 8 7200 4096 1 7 3 2 1 -1 -1 -1
2 9 60 -1 -1 -1 -1 1 -1 -1 5 7 3 2 1 -1 -1 -1
"""
#: What records of them have in them, in the order of the text, and the first losses.
WRITTEN = {
    # fields of the manual; qdel_info is added for jobs that were cancelled
    "gridengine": ([
        "1:hpcrowd:3:a_b:say \"a b\":1:sge:0:1706702400:1706702700:1706706300:0:0:3600:"
        + "0:" * 17 + "NONE:defaultdepartment:hpcrowd:8:0:28000.000000:0:0:"
        "-l h_rt=7200,h_vmem=4194304 -pe hpcrowd 8:0:NONE:4194304:0:0\n",
        ":NONE:hpcrowd@hpcrowd\n",
    ], "user of 2 jobs: no record holds the word"),
    # quotes are doubled; jobs that never started have no start, and end when they were killed
    "lsf": ([
        '"JOB_FINISH" "10.1" 1706706300 1 0 0 8 1706702400 0 0 1706702700 "a:b" "1" "" "" "" '
        '"hpcrowd" "" "" "" "" "" 0 1 "8*hpcrowd" 64 1.0 "say ""a b""" "" 28000.000000 0.000000 ',
        '\n"JOB_FINISH" "10.1" 1706702469 2 0 0 1 1706702409 0 0 0 "a:b"',
    ], "requested memory of 1 job: no record holds it"),
    # the attributes that are known, and a banner
    "htcondor": ([
        "ClusterId = 1\n", "CompletionDate = 1706706300\n", 'Owner = "a:b"\n',
        "*** Offset = 0 ClusterId = 1 ProcId = 0\n",
        "JobStatus = 3\nEnteredCurrentStatus = 1706702469\nCompletionDate = 0\n",
    ], "queue of 2 jobs: no record holds the word"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_trace_is_written_as_records(name):
    """They have what manuals say, job by job; what they cannot hold is counted."""
    trace, lost = parse_swf(TWO_JOBS), Losses()
    trace.names |= {"user": {7: "a:b"}, "executable": {2: 'say "a b"'}}
    text = FORMATS[name].generate(trace, lost, FormatOptions()).decode()
    expected, line = WRITTEN[name]
    places = [text.find(part) for part in expected]
    assert -1 not in places, text
    assert (0, sorted(places)) == (places[0], places)
    assert lost.lines()[0].startswith(line)
