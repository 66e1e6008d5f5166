"""What jobs of a site's records ask of a machine of nodes; of recorded runs, as was planned."""

import csv
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import WORDS, Ask
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.formats.swf import parse_swf
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.scenarios.kinds.replay import replay

from tests.environment.traces.formats.format_cases import asked_by, shown
from tests.support.sacct import UTC, text

#: What three jobs of a site ask for: GPUs, nodes with a feature, and a task of an array.
ROWS = (
    {"JobID": "1", "Partition": "gpu", "QOS": "high", "AllocCPUS": "4", "ReqCPUS": "4",
     "ReqTRES": "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8G,node=1"},
    {"JobID": "2", "Partition": "normal", "AllocCPUS": "8", "ReqCPUS": "8", "Constraints": "milan",
     "ReqTRES": "cpu=8,mem=4000M,node=2"},
    {"JobID": "3_1", "Partition": "normal", "ReqTRES": "cpu=1,node=1"},
)  # fmt: skip

SITE = """\
nodes = [
  {name = "n[1-2]", cores = 8, memory = "16GB", features = ["milan"]},
  {name = "g1", cores = 8, memory = "16GB", gpus = {a100 = 2}},
]
partitions = [{name = "normal", nodes = ["n[1-2]"]}, {name = "gpu", nodes = ["g1"]}]
qos = [{name = "normal"}, {name = "high"}]
"""


def test_records_say_what_jobs_ask_for_and_a_replay_places_them_so(tmp_path):
    """GPUs, nodes, memory, names and arrays; with one GPU too few the first job is rejected."""
    log, site = tmp_path / "jobs.txt", tmp_path / "site.toml"
    more = {"ReqTRES": "", "Constraints": "", "ReqMem": ""}
    log.write_bytes(text(*(more | row for row in ROWS)))
    found = asked_by(read_trace(log, options=UTC))
    expected: dict[Ask, list[Any]] = {
        Ask.GPUS_PER_NODE: [2, UNKNOWN, UNKNOWN], Ask.NODES: [1, 2, 1],
        Ask.MEMORY_PER_CORE: [2048, 500, UNKNOWN], Ask.TASK: [UNKNOWN, UNKNOWN, 1],
        Ask.GPU_TYPE: ["a100", "", ""], Ask.PARTITIONS: ["gpu", "normal", "normal"],
        Ask.QOS: ["high", "normal", "normal"], Ask.ACCOUNT: ["physics"] * 3,
        Ask.FEATURES: ["", "milan", ""],
    }  # fmt: skip
    assert expected == {ask: found[ask] for ask in expected}
    swf = parse_swf("1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert requests_of(swf, np.arange(1)) is None  # it knows processors only
    site.write_text(SITE)
    for machine, completed in ((f"{site}", 3), (f"{site}:nodes.g1.gpus.a100=1", 2)):
        run = replay(log, machine=machine, scheduler="slurm", users="rigid")
        assert completed == run.metrics["jobs_completed"]


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

#: What records lack: the JSON of Slurm 22.05 has no submit line, and ``scontrol show job`` says the
#: nodes only of a job that waits. Neither has an earliest start.
NOT_IN_OBJECTS = {Ask.TASKS, Ask.TASKS_PER_NODE, Ask.CORES_PER_TASK, Ask.EXCLUSIVE, Ask.BEGIN}
NOT_SHOWN = {Ask.NODES, Ask.MAX_NODES, Ask.BEGIN}

Asked = dict[Ask, Any]


def planned(path):
    """Return what each job of a plan asks for, by its name."""
    found: dict[str, Asked] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            asked: Asked = dict.fromkeys(Ask, UNKNOWN) | dict.fromkeys(WORDS, "")
            for ask, option in OPTIONS.items():
                text = line[option].removeprefix("gpu:")
                asked[ask] = text if ask in WORDS else round(float(text)) if text else UNKNOWN
            if not line["mem"]:
                asked[Ask.MEMORY_PER_CORE] = USUAL_MEMORY
            found[f"p{line['id']}"] = asked
    return found


def found_in(trace):
    """Return the name of each job, and what it asks for; a moment in s since the plan began."""
    columns = asked_by(trace)
    moved = int(trace.header.get("UnixStartTime") or 0) - BEGIN
    columns[Ask.BEGIN] = [int(at) + moved if at != UNKNOWN else at for at in columns[Ask.BEGIN]]
    names = (name for (name,) in shown(trace, "executable"))
    rows = zip(*columns.values(), strict=True)
    return [(name, dict(zip(columns, row, strict=True)))
            for name, row in zip(names, rows, strict=True)]  # fmt: skip


def differences(trace, plan, apart):
    """Count the jobs that ask for something else than planned, by request.

    A single node at least, and a single core of a task, are what any job has.
    """
    differ = Counter[str]()
    for name, found in found_in(trace):
        for ask, wanted in plan[name].items():
            usual = {UNKNOWN, 1} if ask in (Ask.NODES, Ask.CORES_PER_TASK) else ()
            same = found[ask] == wanted or {found[ask], wanted} <= set(usual)
            if not same and ask not in apart and ask not in (Ask.ARRAY, Ask.TASK):
                differ[ask.name] += 1
    return differ


@pytest.mark.parametrize(
    ("run", "file", "lacking"),
    [
        *((f"run{run}", "sacct-allstates.txt.gz", set()) for run in "ABCDF"),
        *((f"run{run}", "scontrol-job.txt.gz", NOT_SHOWN) for run in "AC"),
    ],
)
def test_texts_say_what_the_plan_asked(referee_runs, run, file, lacking):
    """All requests of all jobs are found in the text of sacct and scontrol, and nothing else.

    Tasks share the array of their submission, and no two submissions share one.
    """
    trace = read_trace(referee_runs / run / file, options=UTC)
    plan = planned(referee_runs / run / "plan.csv")
    assert len(trace) > 570
    assert all(any(one[ask] not in (UNKNOWN, "") for one in plan.values()) for ask in OPTIONS)
    assert Counter() == differences(trace, plan, lacking)
    arrays = {(name, one[Ask.ARRAY]) for name, one in found_in(trace) if one[Ask.ARRAY] != UNKNOWN}
    with (referee_runs / run / "plan.csv").open(newline="") as lines:
        planned_arrays = {f"p{line['id']}" for line in csv.DictReader(lines) if line["array"]}
    found = {name for name, _ in found_in(trace)}
    assert {name for name, _ in arrays} == planned_arrays & found
    assert len(arrays) == len({array for _, array in arrays}) == len(planned_arrays & found) > 20


@pytest.mark.parametrize("run", ["runA", "runC"])
def test_objects_say_what_they_hold(referee_runs, run):
    """Without submit lines GPUs, nodes and names are found; memory in all is what was asked."""
    folder = referee_runs / run
    trace = read_trace(folder / "sacct-allstates.json.gz")
    plan = planned(folder / "plan.csv")
    memory = {Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE}
    differ = differences(trace, plan, NOT_IN_OBJECTS | memory | {Ask.MAX_NODES})
    assert {"THROTTLE"} >= set(differ)  # of an array, only some of its records may have it
    assert differ["THROTTLE"] < len(trace) / 20
    cores = trace["requested_processors"].tolist()
    for (name, found), count in zip(found_in(trace), cores, strict=True):
        total = [
            asked[Ask.MEMORY_PER_CORE] * count
            if asked[Ask.MEMORY_PER_NODE] == UNKNOWN
            else asked[Ask.MEMORY_PER_NODE] * max(found[Ask.NODES], 1)
            for asked in (found, plan[name])
        ]
        assert total[0] == total[1], name
