"""Recorded runs of a real Slurm: what is read of them, and what a simulation gets."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Condition, Parent
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.scenarios.studies.slurm.records import Key, load
from hpcrowd.scenarios.studies.slurm.workload import workload_of

PLAN = """id,t,user,account,partition,qos,nodes,ntasks,cpus_per_task,ntasks_per_node,mem,gres,\
exclusive,constraint,limit_min,array,throttle,dep,dep_on,begin,cancel,run
1,10.0,u1,physics,normal,low,2,4,,2,,,,skylake|milan,20,0-2,1,,,,,100 110 120
2,20.5,u2,biology,gpu,normal,,1,4,,12000,gpu:2,,,10,,,afterok,1,,900,700
3,30.0,u1,physics,normal,high,1,,,,,,1,,5,,,,,500,,60
"""

SUBMITTED = """id,jobid,before,after,error,command
1,7,10.0,10.4,,sbatch -J p1
2,10,20.6,21.6,,sbatch -J p2
3,11,30.0,30.2,,sbatch -J p3
2,10,900.0,900.1,,scancel --state=PENDING 10
"""


def job(name, number, state, times, **more):
    """Return a job as ``sacct --json`` writes it; times are seconds since the origin."""
    submission, eligible, start, end = (1000 + one if one >= 0 else 0 for one in times)
    return {
        "name": name,
        "job_id": number,
        "array": {"task": more.get("waiting"), "task_id": more.get("task")},
        "time": {"submission": submission, "eligible": eligible, "start": start, "end": end},
        "state": {"current": state, "reason": "None"},
        "flags": more.get("flags", []),
        "nodes": more.get("nodes", "None assigned"),
        "required": {"CPUs": 4, "memory": 1},
    }


JOBS = [
    job("p1", 8, "PREEMPTED", (10, 10, 12, 50), task=0, nodes="n[1-2]",
        flags=["CLEAR_SCHEDULING", "STARTED_ON_SCHEDULE"]),
    job("p1", 8, "COMPLETED", (50, 171, 180, 280), task=0, nodes="n[1-2]",
        flags=["STARTED_ON_BACKFILL"]),
    job("p1", 7, "PENDING", (10, 10, -1, -1), waiting="0x6"),
    job("p3", 11, "RUNNING", (30, 500, 500, -1), nodes="n3"),
    job("other", 12, "COMPLETED", (30, 30, 30, 40)),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Return a recorded run of three submissions."""
    (tmp_path / "plan.csv").write_text(PLAN)
    (tmp_path / "submitted.csv").write_text(SUBMITTED)
    (tmp_path / "clock.txt").write_text(
        "factor 20; plan starts (t=0) at 1970-01-01T00:16:40 UTC = 1000\n"
        "ended at 1970-01-01T01:00:00 t=2600; jobs not over: 1 7\n"
    )
    packed = gzip.compress(json.dumps({"jobs": JOBS}).encode())
    (tmp_path / "sacct-allstates.json.gz").write_bytes(packed)
    return tmp_path


def test_a_plan_becomes_jobs(folder):
    """A requeued task has two tries; every task is a row with requests, limit and dependencies."""
    record = load(folder)
    assert (1000, 2600, 20) == (record.origin, record.end, record.factor)
    expected = [(1, 0, 0, 12), (1, 0, 1, 180), (1, 1, 0, -1), (1, 2, 0, -1), (3, -1, 0, 500)]
    assert expected == [(*one.key, one.trial, one.start) for one in record.tries]
    first, second, *_ = record.tries
    assert ("main", "backfill") == (first.how, second.how)
    assert (("n1", "n2"), "PREEMPTED", 50) == (first.nodes, first.state, first.end)
    assert Key(1, 0) == record.key_of[8]
    assert Key(1, -1) == record.key_of[7]
    workload = workload_of(load(folder))
    jobs, asked = workload.jobs, workload.requests
    assert [Key(1, 0), Key(1, 1), Key(1, 2), Key(2, -1), Key(3, -1)] == list(workload.keys)
    for expected, found in (
        ([10, 10, 10, 21, 30], jobs.recorded_submit), ([100, 110, 120, 700, 60], jobs.run_time),
        ([1200, 1200, 1200, 600, 300], jobs.requested_time), ([4, 4, 4, 4, 1], jobs.processors),
        ([2, 2, 2, -1, 1], asked[Ask.NODES]), ([0, 1, 2, -1, -1], asked[Ask.TASK]),
        ([1, 1, 1, -1, -1], asked[Ask.THROTTLE]), ([-1, -1, -1, 2, -1], asked[Ask.GPUS_PER_NODE]),
        ([-1, -1, -1, -1, 500], asked[Ask.BEGIN]), ([-1, -1, -1, -1, 1], asked[Ask.EXCLUSIVE]),
        ([-1, -1, -1, 900, -1], workload.cancel), ([0, 0, 0, 0, 470], workload.rules.delay),
    ):  # fmt: skip
        assert expected == found.tolist()
    assert ["u1", "u2"] == [jobs.who(jobs.user[row]) for row in (0, 3)]
    assert "skylake|milan" == asked.word(Ask.FEATURES, 0)
    assert {3: tuple(Parent(row, Condition.OK) for row in range(3))} == workload.rules.parents
    assert {0: 1} == workload.rules.throttle
    # Recorded starts do not reach the workload.
    assert {-1} == set(jobs.recorded_start) | set(jobs.recorded_end) | set(jobs.start)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("plan.csv", "20.5", "soon", "line 3, field t: 'soon': not a number"),
        ("plan.csv", "100 110 120", "100 110", "field run: '100 110': 2 run times for 3 jobs"),
        ("plan.csv", "limit_min", "limit", "no column limit_min"),
        ("plan.csv", "gpu:2", "fpga:2", "GPUs on each node, such as gpu:2"),
        ("plan.csv", "afterok", "after", "afterok, afterany or afternotok"),
        ("clock.txt", "t=0", "t=1", "does not say when the plan starts"),
        ("submitted.csv", "jobid", "job", "no column jobid"),
        ("plan.csv", None, None, "plan.csv"),
        ("submitted.csv", None, None, "submitted.csv"),
        ("clock.txt", None, None, "clock.txt"),
        ("sacct-allstates.json", None, None, "sacct-allstates.json"),
    ],
)
def test_what_is_malformed_or_missing_is_one_line(folder, name, old, new, expected):
    """A malformed cell is named with file, line, field, value and rule; a missing file is named."""
    (path,) = folder.glob(f"{name}*")
    if old is None or new is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TraceError) as caught:
        load(folder)
    assert expected in str(caught.value)
    assert name in str(caught.value)
    with pytest.raises(TraceError, match="give the folder of a recorded run"):
        load(Path(__file__))


def test_recorded_runs_are_read_whole(referee_runs, tmp_path):
    """All jobs belong to the plan, and came within a second of it; so does the table of a run.

    A run without the accounting in JSON is read from schedule.csv, with the same tries.
    """
    record = load(referee_runs / "runA")
    assert (380, 649, 39661) == (len(record.plan), len(record.tries), record.end)
    states = Counter(one.state for one in record.tries)
    expected = {"TIMEOUT": 12, "COMPLETED": 596, "CANCELLED": 3, "PREEMPTED": 34, "RUNNING": 3,
                "PENDING": 1}  # fmt: skip
    assert expected == states
    assert record.same_plan(load(referee_runs / "runB"))
    assert not record.same_plan(load(referee_runs / "runC"))
    workload = workload_of(record)
    off = [
        int(workload.jobs.recorded_submit[workload.row_of[key]]) - tries[0].submit
        for key, tries in record.jobs.items()
    ]
    assert {0, 1} >= {abs(one) for one in off}
    assert 0.95 < off.count(0) / len(off)
    run = referee_runs / "runC"
    for name in ("plan.csv", "submitted.csv", "clock.txt", "schedule.csv"):
        (tmp_path / name).symlink_to(run / name)
    assert load(run).tries == load(tmp_path).tries
