"""Recorded runs and accountings of a real Slurm: what is read, and what a simulation gets."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Condition
from hpcrowd.scenarios.studies.slurm.recorded_logs import load_any
from hpcrowd.scenarios.studies.slurm.records import Key, load

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


def test_a_plan_and_its_tries(folder):
    """A requeued task has two tries; a submission has its requests, dependency and run times."""
    record = load(folder)
    assert (1000, 2600, 20) == (record.origin, record.end, record.factor)
    expected = [(1, 0, 0, 12), (1, 0, 1, 180), (1, 1, 0, -1), (1, 2, 0, -1), (3, -1, 0, 500)]
    assert expected == [(*one.key, one.trial, one.start) for one in record.tries]
    first, second, *_ = record.tries
    assert ("main", "backfill") == (first.how, second.how)
    assert (("n1", "n2"), "PREEMPTED", 50) == (first.nodes, first.state, first.end)
    assert Key(1, 0) == record.key_of[8]
    assert Key(1, -1) == record.key_of[7]
    lines = record.lines
    assert ((10.0, 20.6, 30.0), (-1, 900, -1)) == tuple(
        zip(*((line.before, line.cancel) for line in record.plan), strict=True)
    )
    assert [(100, 110, 120), (700,), (60,)] == [line.run for line in record.plan]
    assert ([Key(1, task) for task in range(3)], 1) == (lines[1].keys, lines[1].throttle)
    assert (Condition.OK, 1, 2) == (lines[2].condition, lines[2].parent, lines[2].gpus)
    assert (True, 500, 300) == (lines[3].exclusive, lines[3].begin, lines[3].limit)


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
    off = [record.lines[key.plan].before - tries[0].submit for key, tries in record.jobs.items()]
    assert 1 > max(map(abs, off))
    run = referee_runs / "runC"
    for name in ("plan.csv", "submitted.csv", "clock.txt", "schedule.csv"):
        (tmp_path / name).symlink_to(run / name)
    assert load(run).tries == load(tmp_path).tries


def logged(number, times, state="COMPLETED", **more):
    """Return a job as ``sacct --json`` writes it, of two cores and 400 MB."""
    submission, eligible, start, end = times
    return {
        "job_id": number, "array": {"job_id": 0, "task": None, "task_id": None},
        "user": "u1", "account": "physics", "partition": "main", "qos": "normal",
        "constraints": "", "flags": ["STARTED_ON_BACKFILL"], "nodes": "n[1-2]",
        "state": {"current": state, "reason": "None"},
        "time": {"submission": submission, "eligible": eligible, "start": start, "end": end,
                 "limit": 2},
        "required": {"CPUs": 2, "memory": 200},
        "tres": {"allocated": [], "requested": [
            {"type": "cpu", "name": None, "count": 2}, {"type": "mem", "name": None, "count": 400},
            {"type": "node", "name": None, "count": 1},
            {"type": "gres", "name": "gpu", "count": 3}]},
    } | more  # fmt: skip


@pytest.fixture
def accounting(tmp_path):
    """Return an accounting of four jobs: one requeued, one that depends, one begun later."""
    jobs = [
        logged(7, (5000, 5000, 5003, 5009), "REQUEUED"),
        logged(7, (5009, 5130, 5131, 5141)),
        logged(8, (5010, 5141, 5142, 5150), "FAILED"),
        logged(9, (5020, 5080, 5090, 5160), "TIMEOUT"),
        logged(10, (5021, 0, 0, 5040), "CANCELLED"),
    ]
    (tmp_path / "dumps").mkdir()
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    (tmp_path / "dumps" / "lines.txt").write_text(
        "JobID|State|SubmitLine\n"
        "7|REQUEUED|sbatch -J a|b --wrap=sleep 10\n"
        "8|FAILED|sbatch -d afterok:7 --exclusive x\n"
    )
    return tmp_path


def test_the_record_is_the_plan(accounting):
    """Requests, run times, limits and what held jobs back come from the accounting."""
    record = load_any(accounting)
    assert [7, 8, 9, 10] == [line.plan for line in record.plan]
    assert [0, 10, 20, 21] == [line.before for line in record.plan]
    assert [(10,), (8,), (70 + 120,), (0,)] == [line.run for line in record.plan]
    assert [-1, -1, 80, -1] == [line.begin for line in record.plan]
    assert [-1, -1, -1, 40] == [line.cancel for line in record.plan]
    line = record.lines[8]
    assert (True, Condition.OK, 7, True) == (
        line.exclusive, line.condition, line.parent, line.fails,
    )  # fmt: skip
    assert [0, 1] == [one.trial for one in record.jobs[Key(7, -1)]]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"jobs"', '"job"', "not what sacct --json writes"),
        ('"time"', '"times"', "not jobs as sacct --json writes them: KeyError('time')"),
        ('"nodes"', '"node"', "job 1 of the list: KeyError('nodes')"),
    ],
)
def test_another_json_is_one_line(accounting, old, new, expected):
    """JSON of another kind is refused with file and what it lacks; so is a folder without it."""
    path = accounting / "sacct.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TraceError) as caught:
        load_any(accounting)
    assert expected in str(caught.value)
    assert "sacct.json" in str(caught.value)
    with pytest.raises(TraceError, match="neither plan"):
        load_any(accounting / "dumps")


def test_the_log_of_eight_nodes_is_read(slurm_dumps):
    """Its 297 plain jobs are compared; each was submitted in the second of its record."""
    record = load_any(slurm_dumps.parent)
    assert (297, 421) == (len(record.compared), len(record.tries))
    off = [record.lines[key.plan].before - record.jobs[key][0].submit for key in record.compared]
    assert 1.5 > max(map(abs, off))
    assert {270, 271} == {line.plan for line in record.plan if line.throttle}
    assert [273, 274] == [record.lines[number].parent for number in (274, 275)]
