"""What jobs of PBS and Torque ask of a machine: read, written, and what replays see of it."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.traces.formats.common.base import Losses
from hpcrowd.environment.traces.formats.pbs.accounting import generate_pbs, parse_pbs
from hpcrowd.environment.traces.formats.pbs.requests import COLUMNS
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import Trace

RECORD = (
    "04/18/2009 00:01:00;E;{};user=u queue=long account=lab ctime=10 start=20 end=60 "
    "exec_host=a/0 Exit_status=0 {}\n"
)


def told(resources: str) -> dict[str, str]:
    """Return the columns of requests of a job with some resources."""
    asked = " ".join(f"Resource_List.{one}" for one in resources.split())
    extra = parse_pbs(RECORD.format("1.s", asked)).extra
    return {name: extra[name][0] for name in COLUMNS if name in extra}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("select=2:ncpus=8:mem=4gb:ngpus=1",
         {"tasks": "2", "cores_per_task": "8", "gpus_per_task": "1"}),
        ("select=4:ncpus=2 place=scatter:excl",
         {"tasks": "4", "cores_per_task": "2", "tasks_per_node": "1", "asked_nodes": "4",
          "asked_max_nodes": "4"}),
        ("select=4:ncpus=2:bigmem=True:ib=true:ssd=False place=pack",
         {"tasks": "4", "cores_per_task": "2", "asked_nodes": "1", "asked_max_nodes": "1",
          "constraints": "bigmem&ib"}),
        ("select=1:ncpus=8:ngpus=2+1:ncpus=4 place=scatter",
         {"asked_nodes": "2", "asked_max_nodes": "2", "gpus": "2"}),
        ("select=1:ncpus=8+1:ncpus=8 place=free", {"tasks": "2", "cores_per_task": "8"}),
        ("select=1:ncpus=0", {}),
        ("nodes=2:ppn=4:gpus=1:bigmem",
         {"tasks": "8", "tasks_per_node": "4", "asked_nodes": "2", "asked_max_nodes": "2",
          "gpus_per_node": "1", "constraints": "bigmem"}),
        ("nodes=2:ppn=4+n17:ppn=2:gpus=3:shared",
         {"asked_nodes": "3", "asked_max_nodes": "3", "gpus": "3"}),
        ("nodes=n17", {"tasks": "1", "tasks_per_node": "1", "asked_nodes": "1",
                       "asked_max_nodes": "1"}),
        ("nodes=1:ppn=2 select=3:ncpus=4", {"tasks": "3", "cores_per_task": "4"}),
        ("ncpus=8 ngpus=2", {"gpus": "2"}),
        ("ncpus=8", {}),
    ],
)  # fmt: skip
def test_resources_become_columns(resources: str, expected: dict[str, str]) -> None:
    """Chunks are tasks, nodes are nodes; of different ones only the sums are known."""
    assert expected == told(resources)


def written_again(*resources: str) -> tuple[Trace, Trace, Losses]:
    """Return the trace of jobs with some resources, the same after writing, and what was lost."""
    records = [
        RECORD.format(f"{number}.s", " ".join(f"Resource_List.{one}" for one in words.split()))
        for number, words in enumerate(resources, 1)
    ]
    trace, lost = parse_pbs("".join(records)), Losses()
    return trace, parse_pbs(generate_pbs(trace, lost)), lost


def test_requests_are_written_and_read_back() -> None:
    """What one kind of chunk or node says comes back as it was, and nothing is counted as lost."""
    trace, back, lost = written_again(
        "select=2:ncpus=8:ngpus=1:ib=True place=free",
        "select=4:ncpus=2 place=scatter:excl",
        "select=4:ncpus=2 place=pack",
        "nodes=2:ppn=4:gpus=1:bigmem",
        "ncpus=8 ngpus=2",
        "ncpus=8 place=excl",
    )
    assert not lost.counts
    for name in (*COLUMNS, "exclusive"):
        assert trace.extra[name].tolist() == back.extra[name].tolist()
    assert trace["requested_processors"].tolist() == back["requested_processors"].tolist()


def test_what_no_resources_say_is_counted() -> None:
    """Nodes of which nothing else is known, and features with or, are not in a record."""
    trace, _, _ = written_again("select=1:ncpus=8+1:ncpus=4 place=scatter", "select=2:ncpus=4")
    trace.extra["constraints"] = np.array(["", "a|b"], np.object_)
    lost = Losses()
    back = parse_pbs(generate_pbs(trace, lost))
    assert {
        ("asked_nodes", "no record holds it so"): 1,
        ("asked_max_nodes", "no record holds it so"): 1,
        ("constraints", "no record holds it so"): 1,
    } == lost.counts
    assert ["", "2"] == back.extra["tasks"].tolist()
    assert "constraints" not in back.extra


def test_memory_of_chunks() -> None:
    """Without a sum the memory of all chunks counts, on each processor; not if some have none."""
    trace, _, _ = written_again(
        "select=2:ncpus=4:mem=8gb+1:ncpus=8:mem=16gb",
        "select=2:ncpus=4:mem=8gb mem=64gb",
        "select=2:ncpus=4:mem=8gb+1:ncpus=8",
    )
    assert [2 * 1024**2, 8 * 1024**2, UNKNOWN] == trace["requested_memory"].tolist()


def test_a_machine_of_nodes_sees_them() -> None:
    """Layout, memory, GPUs, queue, account, whole nodes and arrays are requests of the jobs."""
    records = (
        RECORD.format("7[3].s", "Resource_List.select=2:ncpus=8:ngpus=1:ib=True "
                      "Resource_List.place=excl Resource_List.mem=32gb")
        + RECORD.format("8.s", "Resource_List.nodes=2:ppn=4:gpus=1")
    )  # fmt: skip
    requests = requests_of(parse_pbs(records), np.arange(2))
    assert requests is not None
    expected = {
        Ask.TASKS: [2, 8], Ask.CORES_PER_TASK: [8, UNKNOWN], Ask.TASKS_PER_NODE: [UNKNOWN, 4],
        Ask.NODES: [UNKNOWN, 2], Ask.MAX_NODES: [UNKNOWN, 2], Ask.MEMORY_PER_CORE: [2048, UNKNOWN],
        Ask.GPUS_PER_TASK: [1, UNKNOWN], Ask.GPUS_PER_NODE: [UNKNOWN, 1],
        Ask.EXCLUSIVE: [1, UNKNOWN], Ask.ARRAY: [7, UNKNOWN], Ask.TASK: [3, UNKNOWN],
    }  # fmt: skip
    assert expected == {ask: requests[ask].tolist() for ask in expected}
    assert ["ib", ""] == requests.texts(Ask.FEATURES)
    assert ["long", "long"] == requests.texts(Ask.PARTITIONS)
    assert ["lab", "lab"] == requests.texts(Ask.ACCOUNT)
