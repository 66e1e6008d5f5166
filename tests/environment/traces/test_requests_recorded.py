"""Recorded runs of a real Slurm: what jobs ask for, field by field, against the plan's options."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import WORDS, Ask
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import Trace

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

Asked = dict[Ask, int | str]


def planned(path: Path) -> dict[str, Asked]:
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


def names_in(trace: Trace) -> list[str]:
    """Return the names of the jobs of a trace."""
    return [trace.names["executable"][number] for number in trace["executable"].tolist()]


def found_in(trace: Trace) -> list[Asked]:
    """Return what each job of a trace asks for; a moment in s since the plan began."""
    requests = requests_of(trace, np.arange(len(trace)))
    assert requests is not None
    moved = int(trace.header.get("UnixStartTime") or 0) - BEGIN
    columns = {ask: requests.texts(ask) if ask in WORDS else requests[ask].tolist() for ask in Ask}
    rows = [{ask: values[row] for ask, values in columns.items()} for row in range(len(trace))]
    for row in rows:
        if row[Ask.BEGIN] != UNKNOWN:
            row[Ask.BEGIN] += moved
    return rows


def differences(trace: Trace, plan: dict[str, Asked], apart: set[Ask]) -> Counter[str]:
    """Count the jobs that ask for something else than planned, by request.

    A single node at least, and a single core of a task, are what any job has.
    """
    differ = Counter[str]()
    for name, found in zip(names_in(trace), found_in(trace), strict=True):
        for ask, wanted in plan[name].items():
            usual = {UNKNOWN, 1} if ask in (Ask.NODES, Ask.CORES_PER_TASK) else ()
            same = found[ask] == wanted or {found[ask], wanted} <= set(usual)
            if not same and ask not in apart and ask not in (Ask.ARRAY, Ask.TASK):
                differ[ask.name] += 1
    return differ


@pytest.mark.parametrize("run", ["runA", "runB", "runC", "runD", "runF"])
def test_accounting_says_what_the_plan_asked(referee_runs: Path, run: str) -> None:
    """All requests of all jobs are found in the text of sacct, and nothing that nobody asked."""
    folder = referee_runs / run
    trace = read_trace(folder / "sacct-allstates.txt.gz", options=FormatOptions(zone="UTC"))
    plan = planned(folder / "plan.csv")
    assert len(trace) > 570
    assert all(any(one[ask] not in (UNKNOWN, "") for one in plan.values()) for ask in OPTIONS)
    assert Counter() == differences(trace, plan, set())


@pytest.mark.parametrize("run", ["runA", "runC"])
def test_objects_say_what_they_hold(referee_runs: Path, run: str) -> None:
    """Without submit lines GPUs, nodes and names are found; memory in all is what was asked."""
    folder = referee_runs / run
    trace = read_trace(folder / "sacct-allstates.json.gz")
    plan = planned(folder / "plan.csv")
    memory = {Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE}
    differ = differences(trace, plan, NOT_IN_OBJECTS | memory | {Ask.MAX_NODES})
    assert {"THROTTLE"} >= set(differ)  # of an array, only some of its records may have it
    assert differ["THROTTLE"] < len(trace) / 20
    for name, found, cores in zip(
        names_in(trace), found_in(trace), trace["requested_processors"].tolist(), strict=True
    ):
        wanted, nodes = plan[name], max(int(found[Ask.NODES]), 1)
        total = [
            int(asked[Ask.MEMORY_PER_NODE]) * nodes
            if asked[Ask.MEMORY_PER_NODE] != UNKNOWN
            else int(asked[Ask.MEMORY_PER_CORE]) * int(cores)
            for asked in (found, wanted)
        ]
        assert total[0] == total[1], name


@pytest.mark.parametrize("run", ["runA", "runC"])
def test_the_controller_says_what_the_plan_asked(referee_runs: Path, run: str) -> None:
    """``scontrol show job`` has the layout, memory, GPUs, features, whole nodes and throttles."""
    folder = referee_runs / run
    trace = read_trace(folder / "scontrol-job.txt.gz", options=FormatOptions(zone="UTC"))
    assert Counter() == differences(trace, planned(folder / "plan.csv"), NOT_SHOWN)


def test_tasks_of_arrays_belong_together(referee_runs: Path) -> None:
    """Tasks share the array of their submission, and no two submissions share one."""
    trace = read_trace(
        referee_runs / "runA" / "sacct-allstates.txt.gz", options=FormatOptions(zone="UTC")
    )
    with (referee_runs / "runA" / "plan.csv").open(newline="") as file:
        arrays = {f"p{line['id']}" for line in csv.DictReader(file) if line["array"]}
    number: dict[str, set[int | str]] = {}
    for name, found in zip(names_in(trace), found_in(trace), strict=True):
        assert (name in arrays) == (found[Ask.ARRAY] != UNKNOWN)
        if name in arrays:
            number.setdefault(name, set()).add(found[Ask.ARRAY])
    assert all(len(one) == 1 for one in number.values())
    assert len(number) == len(set.union(*number.values())) > 20
