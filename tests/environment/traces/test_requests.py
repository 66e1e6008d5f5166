"""What jobs of a site's records ask of a machine of nodes; of recorded runs, as was planned."""

import csv
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


def test_a_replay_places_jobs_as_records_say(tmp_path):
    """With one GPU too few the first job is rejected; SWF knows processors only."""
    log, site = tmp_path / "jobs.txt", tmp_path / "site.toml"
    more = {"ReqTRES": "", "Constraints": "", "ReqMem": ""}
    log.write_bytes(text(*(more | row for row in ROWS)))
    swf = parse_swf("1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert requests_of(swf, np.arange(1)) is None
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

#: ``scontrol show job`` says the nodes only of a job that waits, and no earliest start.
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
    plan, found = planned(referee_runs / run / "plan.csv"), found_in(trace)
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
    with (referee_runs / run / "plan.csv").open(newline="") as lines:
        wanted = {f"p{line['id']}" for line in csv.DictReader(lines) if line["array"]}
    wanted &= {name for name, _ in found}
    assert {name for name, _ in arrays} == wanted
    assert len(arrays) == len({array for _, array in arrays}) == len(wanted) > 20
