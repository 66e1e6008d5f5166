"""An accounting whose record is the plan: the log of a real Slurm of eight nodes."""

import json

import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Condition, Parent
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.scenarios.studies.slurm.recorded_logs import load_any
from hpcrowd.scenarios.studies.slurm.records import Key
from hpcrowd.scenarios.studies.slurm.workload import workload_of


def job(number, times, state="COMPLETED", **more):
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
def folder(tmp_path):
    """Return an accounting of four jobs: one requeued, one that depends, one begun later."""
    jobs = [
        job(7, (5000, 5000, 5003, 5009), "REQUEUED"),
        job(7, (5009, 5130, 5131, 5141)),
        job(8, (5010, 5141, 5142, 5150), "FAILED"),
        job(9, (5020, 5080, 5090, 5160), "TIMEOUT"),
        job(10, (5021, 0, 0, 5040), "CANCELLED"),
    ]
    (tmp_path / "dumps").mkdir()
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    (tmp_path / "dumps" / "lines.txt").write_text(
        "JobID|State|SubmitLine\n"
        "7|REQUEUED|sbatch -J a|b --wrap=sleep 10\n"
        "8|FAILED|sbatch -d afterok:7 --exclusive x\n"
    )
    return tmp_path


def test_the_record_is_the_plan(folder):
    """Requests, run times, limits and what held jobs back come from the accounting."""
    record = load_any(folder)
    workload = workload_of(record)
    jobs, asked = workload.jobs, workload.requests
    assert [Key(number, -1) for number in (7, 8, 9, 10)] == list(workload.keys)
    assert [0, 10, 20, 21] == jobs.recorded_submit.tolist()
    assert [10, 8, 70 + 120, 0] == jobs.run_time.tolist()  # a timeout would have gone on
    assert [120] * 4 == jobs.requested_time.tolist()
    assert [2] * 4 == jobs.processors.tolist()
    assert ([200] * 4, [3] * 4) == (asked[Ask.MEMORY_PER_CORE].tolist(), asked[Ask.GPUS].tolist())
    assert [-1, 1, -1, -1] == asked[Ask.EXCLUSIVE].tolist()
    assert {1: (Parent(0, Condition.OK),)} == workload.rules.parents
    assert [0, 0, 60, 0] == workload.rules.delay.tolist()
    assert [False, True, False, False] == workload.rules.failed.tolist()
    assert [-1, -1, -1, 40] == workload.cancel.tolist()
    assert [0, 1] == [one.trial for one in record.jobs[Key(7, -1)]]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"jobs"', '"job"', "not what sacct --json writes"),
        ('"time"', '"times"', "not jobs as sacct --json writes them: KeyError('time')"),
        ('"nodes"', '"node"', "job 1 of the list: KeyError('nodes')"),
    ],
)
def test_another_json_is_one_line(folder, old, new, expected):
    """JSON of another kind is refused with file and what it lacks; so is a folder without it."""
    path = folder / "sacct.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TraceError) as caught:
        load_any(folder)
    assert expected in str(caught.value)
    assert "sacct.json" in str(caught.value)
    with pytest.raises(TraceError, match="neither plan"):
        load_any(folder / "dumps")


def test_the_log_of_eight_nodes_is_read(slurm_dumps):
    """Its 297 plain jobs are compared; each was submitted in the second of its record."""
    record = load_any(slurm_dumps.parent)
    workload = workload_of(record)
    assert (297, 421) == (len(record.compared), len(record.tries))
    off = [
        int(workload.jobs.recorded_submit[workload.row_of[key]]) - record.jobs[key][0].submit
        for key in record.compared
    ]
    assert 1 >= max(map(abs, off))
    assert 290 < off.count(0)
    throttled = {workload.keys[row].plan for row in workload.rules.throttle}
    assert {270, 271} == throttled
    chain = [Key(number, -1) for number in (273, 274, 275)]
    rows = [workload.row_of[key] for key in chain]
    assert (Parent(rows[0], Condition.OK),) == workload.rules.parents[rows[1]]
    assert (Parent(rows[1], Condition.OK),) == workload.rules.parents[rows[2]]
