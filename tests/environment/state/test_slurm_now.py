"""What waits and runs in Slurm now, in the forms in which Slurm shows it."""

import json
from typing import Any

import pytest
from hpcrowd import read_trace
from hpcrowd.environment.errors import TraceError
from hpcrowd.formats import FormatOptions, parse_sacct

UTC = FormatOptions(zone="UTC")

#: One job that runs, one of an array, and one that waits for the first, as Slurm 22.05 shows them.
SCONTROL = """JobId=23 JobName=a name=with
   NumCPUs=99 in it
   UserId=ada(5) GroupId=users(60) MCS_label=N/A
   Priority=700 Nice=0 Account=science QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:00:04 TimeLimit=00:01:30 TimeMin=N/A
   SubmitTime=2024-01-31T12:00:00 EligibleTime=2024-01-31T12:00:00
   StartTime=2024-01-31T12:00:10 EndTime=2024-01-31T12:01:40 Deadline=N/A
   Partition=main AllocNode:Sid=localhost:25014
   NodeList=n1
   NumNodes=1 NumCPUs=4 NumTasks=4 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=4,mem=8M,node=1,billing=4

JobId=27 ArrayJobId=27 ArrayTaskId=0-4:2,9%1 ArrayTaskThrottle=1 JobName=scan
   UserId=bob(6) GroupId=users(60) MCS_label=N/A
   Priority=650 Nice=0 Account=science QOS=normal
   JobState=PENDING Reason=Resources Dependency=(null)
   RunTime=00:00:00 TimeLimit=UNLIMITED TimeMin=N/A
   SubmitTime=2024-01-31T12:00:05 EligibleTime=2024-01-31T12:00:07
   StartTime=2024-01-31T12:22:00 EndTime=2024-01-31T12:23:00 Deadline=N/A
   Partition=main AllocNode:Sid=localhost:25014
   NodeList= SchedNodeList=n2
   NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=1,mem=1M,node=1,billing=1

JobId=28 JobName=after
   UserId=ada(5) GroupId=users(60) MCS_label=N/A
   Priority=0 Nice=0 Account=science QOS=normal
   JobState=PENDING Reason=Dependency Dependency=afterok:23(unfulfilled)
   RunTime=00:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   SubmitTime=2024-01-31T12:00:06 EligibleTime=Unknown
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   Partition=main AllocNode:Sid=localhost:25014
   NodeList=
   NumNodes=2 NumCPUs=8 NumTasks=8 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=8,mem=8M,node=2,billing=8
"""

SQUEUE = """ACCOUNT|JOBID|NAME|PRIORITY|TIME_LIMIT|JOBID|USER|CPUS|NODES|DEPENDENCY|TIME|PARTITION|PRIORITY|START_TIME|STATE|SUBMIT_TIME
science|23|a|b|0.9|1:30|23|ada|4|1|(null)|0:04|main|700|2024-01-31T12:00:10|RUNNING|2024-01-31T12:00:00
science|27_[0-4:2,9%1]|scan|0.8|UNLIMITED|27|bob|1|1|(null)|0:00|main|650|2024-01-31T12:22:00|PENDING|2024-01-31T12:00:05
science|28|after|0.0|1-00:00:00|28|ada|8|2|afterok:23(unfulfilled)|0:00|main|0|N/A|PENDING|2024-01-31T12:00:06
"""  # noqa: E501


def number(value):
    """A number as the data parser of Slurm 23.02 and later writes it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def objects():
    """The same jobs as ``squeue --json`` prints them."""
    noon = 1706702400
    same: dict[str, Any] = {"account": "science", "partition": "main", "qos": "normal",
                            "cluster": "cell", "array_job_id": number(0)}  # fmt: skip
    jobs = [
        same | {"job_id": 23, "job_state": ["RUNNING"], "user_name": "ada", "name": "a|b",
                "submit_time": number(noon), "start_time": number(noon + 10),
                "end_time": number(noon + 100), "eligible_time": number(noon),
                "cpus": number(4), "node_count": number(1), "nodes": "n1",
                "time_limit": number(2), "priority": number(700), "dependency": "",
                "last_sched_evaluation": number(noon + 14),
                "tres_alloc_str": "cpu=4,mem=8M,node=1,billing=4"},
        same | {"job_id": 27, "array_job_id": number(27), "array_task_id": number(None),
                "array_task_string": "0-4:2,9", "array_max_tasks": number(1),
                "job_state": ["PENDING"], "user_name": "bob", "name": "scan",
                "submit_time": number(noon + 5), "start_time": number(noon + 1320),
                "end_time": number(0), "eligible_time": number(noon + 7), "cpus": number(1),
                "time_limit": {"set": False, "infinite": True, "number": 0}, "nodes": "",
                "priority": number(650), "dependency": ""},
        same | {"job_id": 28, "job_state": ["PENDING"], "user_name": "ada", "name": "after",
                "submit_time": number(noon + 6), "start_time": number(0), "end_time": number(0),
                "eligible_time": number(0), "cpus": number(8), "time_limit": number(1440),
                "nodes": "", "priority": number(0), "dependency": "afterok:23(unfulfilled)"},
    ]  # fmt: skip
    meta = {"plugin": {"type": "openapi/slurmctld", "data_parser": "data_parser/v0.0.41"}}
    return json.dumps({"jobs": jobs, "meta": meta}).encode()


def forms():
    """The jobs in each form; with ``-o``, the records of ``scontrol`` are in a line each."""
    jobs = SCONTROL.split("\n\n")
    lines = [" ".join(line.strip() for line in job.splitlines()) for job in jobs]
    names = SCONTROL.replace("(5)", "").replace("(6)", "").replace("\nJobId=", "\n  JobId=")
    return {"scontrol": SCONTROL, "scontrol -o": "\n".join(lines), "squeue": SQUEUE,
            "json": objects(), "scontrol, indented, names alone": names}  # fmt: skip


#: A name that looks like other keys, or has delimiters, is a name.
FORMS = {"scontrol": "a name=with\n   NumCPUs=99 in it", "json": "a|b",
         "scontrol -o": "a name=with NumCPUs=99 in it", "squeue": "a|b",
         "scontrol, indented, names alone": "a name=with\n   NumCPUs=99 in it"}  # fmt: skip


@pytest.mark.parametrize(("form", "name"), FORMS.items())
def test_all_forms_give_the_same(tmp_path, form, name):
    """Each task that waits is a job; what has not ended has neither run time nor status."""
    text = forms()[form]
    (tmp_path / "now").write_bytes(text if isinstance(text, bytes) else text.encode())
    trace = read_trace(tmp_path / "now", options=UTC)
    tasks = [f"27_{task}" for task in (0, 2, 4, 9)]
    assert ["23", *tasks, "28"] == trace.extra["job_id"].tolist()
    assert {
        "submit": [0, 5, 5, 5, 5, 6],
        "wait": [10, -1, -1, -1, -1, -1],
        "run": [-1] * 6,
        "status": [-1] * 6,
        "allocated_processors": [4, 0, 0, 0, 0, 0],
        "requested_processors": [4, 1, 1, 1, 1, 8],
        "requested_time": [120, -1, -1, -1, -1, 86400],
    } == {field: trace[field].tolist() for field in (
        "submit", "wait", "run", "status", "allocated_processors", "requested_processors",
        "requested_time")}  # fmt: skip
    expected = {
        "final_state": ["RUNNING", *["PENDING"] * 5],
        "elapsed": ["4", "", "", "", "", ""],
        "dependency": ["", "", "", "", "", "afterok:23"],
        "throttle": ["", "1", "1", "1", "1", ""],
        "priority": ["700", *["650"] * 4, "0"],
    } | ({} if form == "squeue" else {"eligible": ["", "2", "2", "2", "2", ""]})
    assert expected == {field: trace.extra[field].tolist() for field in expected}
    assert {"ada", "bob"} == set(trace.names["user"].values())
    assert name == trace.names["executable"][int(trace["executable"][0])]


def test_long_lists_of_tasks():
    """Slurm cuts them; that is counted, with the cure."""
    trace = parse_sacct(SQUEUE.replace("0-4:2,9%1", "1,3,..."), options=UTC)
    assert ["23", "27_1", "27_3", "28"] == trace.extra["job_id"].tolist()
    (reason,) = trace.dropped
    assert "SLURM_BITSTR_LEN=0" in reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SQUEUE.replace("28|after", "28|af\nter"), "columns, the header has 16; a name has a line"),
        (SQUEUE.replace("1:30", "1:3x"), "1:3x"),
        (
            SQUEUE.replace("0-4:2,9%1", "0-9007199254"),
            "job 27: with it, more than 250,000 tasks",
        ),
        ("JobId=1 JobName=x\n", "print jobs with scontrol -a show job"),
    ],
)
def test_refused_with_a_cure(text, message):
    """What cannot be read says how to print it."""
    with pytest.raises(TraceError, match=message):
        parse_sacct(text, options=UTC)


def test_same_as_the_accounting(slurm_dumps):
    """Of a real cluster: what is over is as in its accounting, but for what only that knows."""
    now = read_trace(slurm_dumps / "scontrol-jobs.txt.gz", options=UTC)
    whole = read_trace(slurm_dumps / "all-D.txt.gz", options=UTC)
    place, other = (
        {one: row for row, one in enumerate(trace.extra["job_id"].tolist())}
        for trace in (now, whole)
    )
    # The tasks of a cancelled array one by one, a job that is held, and jobs that never ran.
    more = {f"271_{task}" for task in range(3, 20)} | {"277", "286", "325", "327", "330"}
    assert set(place) - set(other) == more
    assert not set(other) - set(place)
    assert {"PENDING"} == {now.extra["final_state"][place[one]] for one in ("327",)}
    again = [one for one in other if whole.extra["restarts"][other[one]]]
    for field in ("submit", "wait", "run", "allocated_processors", "requested_time", "status"):
        differ = {one for one in other if now[field][place[one]] != whole[field][other[one]]}
        assert differ <= (set(again) if field in ("submit", "wait") else set()), field
    assert 8 == len(again)
