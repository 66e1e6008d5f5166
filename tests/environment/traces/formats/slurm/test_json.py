"""``sacct --json`` gives the jobs that the text of the same cluster gives, whatever the version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    find_format,
    generate_sacct_json,
    parse_sacct_json,
    read_sacct_json,
    read_trace,
)
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.formats.slurm import json_records

from tests.support.sacct import UTC

#: A job as the data parsers of 22.05 and of 23.11 print it.
OLD: dict[str, Any] = {
    "account": "physics", "allocation_nodes": 2, "cluster": "hal", "constraints": "rack1|rack2",
    "array": {
        "job_id": 7, "limits": {"max": {"running": {"tasks": 3}}}, "task": None, "task_id": 5,
    },
    "exit_code": {"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 9, "name": "K"}},
    "het": {"job_id": 0, "job_offset": None}, "job_id": 17, "name": "a\nb\x1fc",
    "kill_request_user": None, "nodes": "n[1-2]", "partition": "long", "priority": 12,
    "qos": "high", "required": {"CPUs": 8, "memory": 100}, "reservation": {"id": 0, "name": 0},
    "state": {"current": "TIMEOUT", "reason": "None"}, "user": "ada",
    "steps": [{"tres": {"requested": {"max": [{"type": "mem", "count": 2048}]}}}],
    "time": {
        "elapsed": 60, "eligible": 1706702410, "end": 1706702480, "start": 1706702420,
        "submission": 1706702400, "suspended": 0, "limit": 1,
        "total": {"seconds": 100, "microseconds": 500000},
    },
    "tres": {
        "allocated": [{"type": "cpu", "name": None, "count": 8},
                      {"type": "gres", "name": "gpu:a100", "count": 2},
                      {"type": "mem", "name": None, "count": 8192}],
        "requested": [{"type": "cpu", "name": None, "count": 8},
                      {"type": "mem", "name": None, "count": 8192}],
    },
}  # fmt: skip


def is_set(number: int | None, *, infinite: bool = False) -> dict[str, Any]:
    """A number as data parsers from v0.0.39 on print it."""
    return {"set": number is not None, "infinite": infinite, "number": number or 0}


NEW: dict[str, Any] = OLD | {
    "array": {
        "job_id": 7, "limits": {"max": {"running": {"tasks": 3}}}, "task": "", "task_id": is_set(5),
    },
    "exit_code": {"status": ["SIGNALED"], "return_code": is_set(None),
                  "signal": {"id": is_set(9), "name": "K"}},
    "het": {"job_id": 0, "job_offset": is_set(None)},
    "kill_request_user": "", "priority": is_set(12),
    "required": {"CPUs": 8, "memory_per_cpu": is_set(None), "memory_per_node": is_set(4096)},
    "state": {"current": ["TIMEOUT"], "reason": "None"},
    "time": OLD["time"] | {"limit": is_set(1), "planned": is_set(20)},
}  # fmt: skip


def dump(*jobs: object, plugin: str = "openapi/dbv0.0.38") -> bytes:
    """Objects as sacct prints them."""
    return json.dumps({"meta": {"plugin": {"type": plugin}}, "errors": [], "jobs": jobs}).encode()


@pytest.mark.parametrize("job", [OLD, NEW], ids=["22.05", "23.11"])
def test_shapes_of_versions(job: dict[str, Any]) -> None:
    """Plain numbers and objects, words and lists of words mean the same."""
    trace = parse_sacct_json(dump(job), options=UTC)
    row = [trace[name][0] for name in ("wait", "run", "allocated_processors", "requested_time")]
    assert [20, 60, 8, 60] == row
    assert (1048576, 2, 12.562) == (trace["requested_memory"][0], trace["memory"][0],
                                    trace["average_cpu"][0])  # fmt: skip
    assert {1: "a\nb\x1fc"} == trace.names["executable"]
    assert {
        "job_id": "7_5", "final_state": "TIMEOUT", "eligible": "10", "nodes": "2", "qos": "high",
        "alloc_tres": "cpu=8,gres/gpu:a100=2,mem=8G", "req_tres": "cpu=8,mem=8G",
        "node_list": "n[1-2]", "constraints": "rack1|rack2", "priority": "12", "throttle": "3",
    }.items() <= {name: values[0] for name, values in trace.extra.items()}.items()  # fmt: skip
    assert "0:9" == trace.extra["exit_code"][0]


def test_no_limit_and_never() -> None:
    """An infinite limit is none, and a time that never comes is unknown."""
    times = OLD["time"] | {"limit": is_set(None, infinite=True), "eligible": 2**32 - 1}
    trace = parse_sacct_json(dump(OLD | {"time": times}), options=UTC)
    assert -1 == trace["requested_time"][0]
    assert "eligible" not in trace.extra


def test_same_as_the_text(slurm_dumps: Path) -> None:
    """The JSON of a real cluster gives what its text gives, without submit lines and CPU times."""
    path = slurm_dumps / "json-D.txt.gz"
    assert "sacct-json" == find_format(path).name
    options = FormatOptions(zone="UTC")
    trace, text = read_trace(path, options=options), read_trace(
        slurm_dumps / "all-D.txt.gz", options=options
    )  # fmt: skip
    place = {job: row for row, job in enumerate(trace.extra["job_id"])}
    rows = [place[job] for job in text.extra["job_id"]]
    assert len(text) == len(trace) == len(rows)
    for name in set(text.columns) - {"number", "average_cpu", "preceding", "think_time"}:
        one, other = (
            np.array(worded(found, name), object) if name in NAMED else found[name]
            for found in (text, trace)
        )
        assert one.tolist() == other[rows].tolist(), name
    for name in ("final_state", "eligible", "suspended", "restarts", "lost_work", "nodes",
                 "alloc_tres", "req_tres", "node_list", "priority", "qos"):  # fmt: skip
        assert text.extra[name].tolist() == trace.extra[name][rows].tolist(), name


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pieces_give_the_same_as_the_whole(size: int) -> None:
    """Objects are found however a text is cut into blocks."""
    data = dump(OLD, NEW | {"job_id": 18, "user": "zoë"}, OLD | {"user": "bob"})
    blocks = (data[begin : begin + size] for begin in range(0, len(data), size))
    found = list(json_records.objects(blocks, "x"))
    assert json.loads(data)["jobs"] == found


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b'{"meta": {"plugin": "openapi"}}', "has no list of jobs; write it with sacct --json"),
        (dump(OLD)[:-30], "ends, or is damaged, after job 0 of the list"),
        (dump(OLD, OLD)[:-30], "ends, or is damaged, after job 1 of the list"),
        (dump(OLD, 5), "job 2 of the list is not an object"),
        (dump(), "contains no jobs"),
        (dump(OLD | {"state": {"current": "DONE"}}), "job 1 of the list, State 'DONE'"),
        (dump(OLD | {"job_id": None, "array": {}}), "job 1 of the list, JobID ''"),
    ],
)
def test_what_is_wrong(data: bytes, rule: str) -> None:
    """One line names the job of the list."""
    with pytest.raises(TraceError) as caught:
        parse_sacct_json(data, "jobs.json", UTC)
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)


def test_written_and_read(slurm_dumps: Path, tmp_path: Path) -> None:
    """What is written of a real cluster's records reads back; the rest is counted."""
    trace = read_trace(slurm_dumps / "all-D.txt.gz", options=UTC)
    lost = Losses()
    (tmp_path / "jobs.sacct.json").write_bytes(generate_sacct_json(trace, lost, UTC))
    again = read_sacct_json(tmp_path / "jobs.sacct.json", UTC)
    assert len(trace) == len(again)
    counts = {field: count for (field, _), count in lost.counts.items()}
    # The last run alone is written; parts of a heterogeneous job share one list of resources.
    parts = {"allocated_processors": 2, "average_cpu": 2, "requested_memory": 2}
    assert {"restarts": 8, "lost_work": 8, "executable": 2} | parts == counts
