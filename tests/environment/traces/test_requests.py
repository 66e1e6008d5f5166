"""What jobs of a site's records ask of a machine of nodes, and their earlier runs."""

import csv
from typing import Any

import numpy as np
import pytest
from hpcrowd import read_recorded, read_trace, write_trace
from hpcrowd.analysis.features.jobs import offered_load, wait
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.requests import WORDS, Ask
from hpcrowd.environment.traces.formats.common.site_columns import RUNS as COLUMN
from hpcrowd.environment.traces.formats.common.site_columns import (
    EarlierRun,
    earlier_runs,
    in_order,
    text_of,
)
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import take_jobs
from hpcrowd.scenarios.kinds.replay import replay
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import asked_by, shown
from tests.support.sacct import UTC, read, text

SITE = """qos = [{name = "normal"}]
nodes = [{name = "g1", cores = 8, memory = "16GB", gpus = {a100 = 2}}]
partitions = [{name = "long", nodes = ["g1"]}]
"""


def test_a_replay_places_jobs_as_records_say(tmp_path):
    """With one GPU too few a job is rejected; SWF knows processors only."""
    log, site = tmp_path / "jobs.txt", tmp_path / "site.toml"
    rows = ({"JobID": "1", "ReqTRES": "cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1"}, {"JobID": "2"})
    log.write_bytes(text(*({"ReqTRES": ""} | row for row in rows)))
    site.write_text(SITE)
    for machine, completed in ((f"{site}", 2), (f"{site}:nodes.g1.gpus.a100=1", 1)):
        run = replay(log, machine=machine, scheduler="slurm", users="rigid")
        assert completed == run.metrics["jobs_completed"]
    swf = parse_swf("1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert requests_of(swf, np.arange(1)) is None


#: Columns of the plan with the option of each request.
OPTIONS = {
    Ask.NODES: "nodes", Ask.MAX_NODES: "nodes", Ask.TASKS: "ntasks",
    Ask.TASKS_PER_NODE: "ntasks_per_node", Ask.CORES_PER_TASK: "cpus_per_task",
    Ask.MEMORY_PER_NODE: "mem", Ask.GPUS_PER_NODE: "gres", Ask.FEATURES: "constraint",
    Ask.EXCLUSIVE: "exclusive", Ask.PARTITIONS: "partition", Ask.QOS: "qos",
    Ask.ACCOUNT: "account", Ask.THROTTLE: "throttle", Ask.BEGIN: "begin",
}  # fmt: skip

#: MB for each core of jobs that do not ask for memory: DefMemPerCPU of these clusters.
USUAL_MEMORY = 2000

#: The plan begins at this time.
BEGIN = 1_767_600_000

#: ``scontrol show job`` says the nodes only of a job that waits, and no earliest start.
NOT_SHOWN = {Ask.NODES, Ask.MAX_NODES, Ask.BEGIN}


def planned(path):
    """Return what each job of a plan asks for, by its name, and the names of arrays."""
    found: dict[str, dict[Ask, Any]] = {}
    lines = list(csv.DictReader(path.read_text().splitlines()))
    for line in lines:
        asked: dict[Ask, Any] = dict.fromkeys(Ask, UNKNOWN) | dict.fromkeys(WORDS, "")
        for ask, option in OPTIONS.items():
            text = line[option].removeprefix("gpu:")
            asked[ask] = text if ask in WORDS else round(float(text)) if text else UNKNOWN
        if not line["mem"]:
            asked[Ask.MEMORY_PER_CORE] = USUAL_MEMORY
        found[f"p{line['id']}"] = asked
    return found, {f"p{line['id']}" for line in lines if line["array"]}


def found_in(trace):
    """Return the name of each job, and what it asks for; a moment in s since the plan began."""
    columns = asked_by(trace)
    moved = int(trace.header.get("UnixStartTime") or 0) - BEGIN
    columns[Ask.BEGIN] = [int(at) + moved if at != UNKNOWN else at for at in columns[Ask.BEGIN]]
    names = (name for (name,) in shown(trace, "executable"))
    rows = zip(*columns.values(), strict=True)
    return [(name, dict(zip(columns, row, strict=True)))
            for name, row in zip(names, rows, strict=True)]  # fmt: skip


def is_as_planned(ask, found, wanted):
    """Return whether a job asks for what was planned; one node or core is usual."""
    usual = {UNKNOWN, 1} if ask in (Ask.NODES, Ask.CORES_PER_TASK) else set()
    return found == wanted or {found, wanted} <= usual


@pytest.mark.parametrize(
    ("run", "file", "lacking"),
    [
        *((f"run{run}", "sacct-allstates.txt.gz", set()) for run in "ABCDF"),
        *((f"run{run}", "scontrol-job.txt.gz", NOT_SHOWN) for run in "AC"),
    ],
)
def test_texts_say_what_the_plan_asked(referee_runs, run, file, lacking):
    """All requests of all jobs, and nothing else, are found; each array is one submission's."""
    trace = read_trace(referee_runs / run / file, options=UTC)
    (plan, wanted), found = planned(referee_runs / run / "plan.csv"), found_in(trace)
    assert len(found) > 570
    for ask in set(OPTIONS) - lacking:
        assert any(one[ask] not in (UNKNOWN, "") for one in plan.values()), ask
    apart = {Ask.ARRAY, Ask.TASK} | lacking
    assert [] == [
        (name, ask)
        for name, one in found
        for ask in set(Ask) - apart
        if not is_as_planned(ask, one[ask], plan[name][ask])
    ]
    arrays = {(name, one[Ask.ARRAY]) for name, one in found if one[Ask.ARRAY] != UNKNOWN}
    wanted &= {name for name, _ in found}
    assert {name for name, _ in arrays} == wanted
    assert len(arrays) == len({array for _, array in arrays}) == len(wanted) > 20


#: A job of two processors with runs of 100, 200 and 300 s after waits of 10, 20 and 30 s, and one
#: that comes an hour later.
CHAIN = [
    {"JobID": "7", "AllocCPUS": "2", "ReqCPUS": "2", "State": state, "ElapsedRaw": str(run)}
    | {
        name: f"2024-01-31T12:{at // 60:02}:{at % 60:02}"
        for name, at in (("Submit", since), ("Start", start), ("End", start + run))
    }
    for state, since, start, run in (
        ("NODE_FAIL", 0, 10, 100), ("REQUEUED", 110, 130, 200), ("COMPLETED", 330, 360, 300),
    )
]  # fmt: skip
OTHER = {"JobID": "8", "Submit": "2024-01-31T13:00:00", "Start": "2024-01-31T13:05:00",
         "End": "2024-01-31T13:15:00"}  # fmt: skip

RUNS = (EarlierRun(10, 110, 110, 2, "NODE_FAIL"), EarlierRun(130, 330, 330, 2, "REQUEUED"))


def test_all_runs_count(tmp_path):
    """In the record, its size, its waits and its load; in each file that can hold them."""
    path = tmp_path / "jobs.txt"
    path.write_bytes(text(*CHAIN, OTHER))
    run = read_recorded(path, UTC)
    assert [2, 2, 2, 1] == run.runs.processors[np.argsort(run.runs.start)].tolist()
    assert [10, 20, 30, 300] == (run.runs.start - run.runs.submit)[[2, 3, 0, 1]].tolist()
    trace = read_trace(path, options=UTC)
    assert {0: RUNS} == earlier_runs(trace)
    measured = Workload.from_trace(trace)
    assert [10, 20, 30, 300] == sorted(wait(measured).tolist())
    assert pytest.approx((2 * 600 + 600) / (2 * 3600)) == offered_load(measured)
    assert {0: RUNS} == earlier_runs(take_jobs(trace, np.array([0])))
    for name in ("jobs.csv", "jobs.parquet", "jobs.sacct"):
        write_trace(trace, tmp_path / name)
        assert {0: RUNS} == earlier_runs(read_trace(tmp_path / name, options=UTC)), name


@pytest.mark.parametrize("speed", [1, 2])
def test_a_replay_has_all_runs(speed):
    """With their lengths; the recorded schedule has them where they were."""
    trace = read(*CHAIN, OTHER)
    run = replay(trace, scheduler="fcfs", users="rigid", speed=speed)
    assert [100 // speed, 200 // speed] == [one.end - one.start for one in run.attempts]
    assert {"recorded"} == {one.cause for one in run.attempts}
    assert 300 // speed == run.jobs.lasted[0]
    assert 600 // speed + 2 == run.jobs.end[0]
    recorded = replay(trace, scheduler="recorded", users="rigid")
    found = [(one.submit, one.start, one.end) for one in recorded.attempts]
    assert [(0, 10, 110), (110, 130, 330)] == found
    assert recorded.jobs.recorded_start.tolist() == recorded.jobs.start.tolist() == [360, 3900]


moments = st.integers(0, 10**9)


@given(st.lists(st.builds(EarlierRun, moments, moments, moments, st.integers(0, 9),
                          st.sampled_from(("", "REQUEUED"))), min_size=1), moments)  # fmt: skip
def test_texts_are_read_back(runs, submit):
    """Runs are put in order first."""
    found = in_order(runs, submit)
    trace = read({})
    trace.extra[COLUMN] = np.array([text_of(found)], np.object_)
    assert {0: found} == earlier_runs(trace)


@pytest.mark.parametrize(
    "given",
    ["x", "1:2:3:4", "5:2:9:1:A", "1:5:4:1:A", "1:2:9:1:A 3:4:9:1:A", "1:2:3:1:A  4:5:6:1:A"],
)
def test_other_texts_are_refused(given):
    """The line names job, value and rule."""
    trace = read({})
    trace.extra[COLUMN] = np.array([given], np.object_)
    with pytest.raises(TraceError, match=f"jobs.txt: job 1: runs '{given[:3]}.*must be START:END"):
        replay(trace)
