"""What jobs of Slurm ask of a machine: submit lines, older columns, objects and snapshots."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import Losses, parse_sacct, parse_sacct_json
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.slurm.accounting import generate_sacct
from hpcrowd.environment.traces.formats.slurm.submit_lines import asked_in, gpus_in, line_of
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import Trace

from tests.environment.state.test_slurm_now import SCONTROL, SQUEUE, objects
from tests.support.sacct import UTC, text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-N 2 -n 16 -c 4", {"asked_nodes": "2", "asked_max_nodes": "2", "tasks": "16",
                             "cores_per_task": "4"}),
        ("-N2-4", {"asked_nodes": "2", "asked_max_nodes": "4"}),
        ("--nodes=1,4-8:2", {"asked_nodes": "1", "asked_max_nodes": "8"}),
        ("--nodes=1k", {"asked_nodes": "1024", "asked_max_nodes": "1024"}),
        ("--nodes=some", {}),
        ("--ntasks-per-node=8 --cpus-per-task 2", {"tasks_per_node": "8", "cores_per_task": "2"}),
        ("--mem=4G", {"memory_per_node": "4096"}),
        ("--mem=0", {"memory_per_node": "0"}),
        ("--mem-per-cpu=1500K", {"memory_per_core": "2"}),
        ("--mem-per-gpu=8G --gres=gpu:2", {"memory_per_node": "16384", "gpus_per_node": "2"}),
        ("--gres=gpu:a100:2,lustre:1", {"gpus_per_node": "2", "gpu_type": "a100"}),
        ("--gres=gpu", {"gpus_per_node": "1"}),
        ("-G4", {"gpus": "4"}),
        ("--gpus=a100:2,v100:1", {"gpus": "3"}),
        ("--gpus-per-node=h100:4 --gres=lustre:1", {"gpus_per_node": "4", "gpu_type": "h100"}),
        ("--gpus-per-task=1", {"gpus_per_task": "1"}),
        ("-C a&b|c --reservation=night -q high", {"constraints": "a&b|c", "reservation": "night",
                                                  "qos": "high"}),
        ("-p short,long", {"partitions": "short,long"}),
        ("--nice", {"nice": "100"}),
        ("--nice=-5", {"nice": "-5"}),
        ("--no-requeue", {"no_requeue": "1"}),
        ("--no-requeue --requeue", {}),
        ("-n 4 script.sh -n 8", {"tasks": "4"}),
        ("-n four --mem=much", {}),
        ("--mem=999999999999999T", {}),
    ],
)  # fmt: skip
def test_options_become_columns(options: str, expected: dict[str, str]) -> None:
    """Each option is a column; what is malformed says nothing."""
    quoted = options.replace("a&b|c", "'a&b|c'")
    assert expected == asked_in(f"sbatch {quoted} x.sh").columns


@pytest.mark.parametrize(
    ("written", "moment"),
    [("2026-01-05T16:00:30", "2026-01-05T16:00:30"), ("2026-01-05T16:00", "2026-01-05T16:00:00"),
     ("2026-01-05", "2026-01-05T00:00:00"), ("2026-02-31", ""), ("16:00", ""), ("now+60", "")],
)  # fmt: skip
def test_moments_of_submit_lines(written: str, moment: str) -> None:
    """A date, or a date with a time, is a moment; anything else is none."""
    assert moment == asked_in(f"sbatch --begin={written} x.sh").moment


def test_earliest_starts_count_from_the_submission() -> None:
    """A moment is a local time; one before the submission says nothing."""
    trace = parse_sacct(
        text(
            {"JobID": "1", "SubmitLine": "sbatch --begin=2024-01-31T12:02 x.sh"},
            {"JobID": "2", "SubmitLine": "sbatch --begin=2024-01-31T11:00 x.sh"},
            {"JobID": "3", "SubmitLine": "sbatch -b now+2hours x.sh"},
        ),
        options=UTC,
    )
    assert ["120", "", "7200"] == trace.extra["begin"].tolist()
    assert [120, UNKNOWN, 7200] == asked(trace, Ask.BEGIN)


@pytest.mark.parametrize(
    ("told", "count", "kind"),
    [("gres:gpu:2", "2", ""), ("gres/gpu:a100=4", "4", "a100"), ("gpu:a100:2,gpu:v100:1", "3", ""),
     ("gres:gpu:2,gres:lustre:1", "2", ""), ("lustre:1", "", ""), ("", "", "")],
)  # fmt: skip
def test_gpus_in_the_forms_of_slurm(told: str, count: str, kind: str) -> None:
    """Generic resources are written in three ways; of several types none is the type."""
    assert (count, kind) == gpus_in(told)


def asked(trace: Trace, ask: Ask) -> list[int]:
    """Return the numbers that the jobs of a trace ask for."""
    requests = requests_of(trace, np.arange(len(trace)))
    assert requests is not None
    numbers: list[int] = requests[ask].tolist()
    return numbers


def told(trace: Trace, *names: str) -> list[list[str]]:
    """Return columns of a trace, empty ones if it lacks them."""
    return [
        trace.extra[name].tolist() if name in trace.extra else [""] * len(trace) for name in names
    ]


def test_lists_of_partitions() -> None:
    """The accounting names the one that a job ran in; the list counts if that is one of it."""
    trace = parse_sacct(
        text(
            {"JobID": "1", "Partition": "long", "SubmitLine": "sbatch -p short,long x.sh"},
            {"JobID": "2", "Partition": "gpu", "SubmitLine": "sbatch -p short,long x.sh"},
            {"JobID": "3", "Partition": "short", "SubmitLine": "sbatch -p short x.sh"},
        ),
        options=UTC,
    )
    assert [["short,long", "", ""]] == told(trace, "partitions")
    requests = requests_of(trace, np.arange(3))
    assert requests is not None
    assert ["short,long", "gpu", "short"] == requests.texts(Ask.PARTITIONS)


def test_the_accounting_knows_better() -> None:
    """Its columns count more than a submit line, which has neither defaults nor changes."""
    line = "sbatch -C milan --reservation=day -q low x.sh"
    rows = {"QOS": "high", "Constraints": "skylake", "Reservation": "night", "SubmitLine": line}
    assert [["high"], ["skylake"], ["night"]] == told(
        parse_sacct(text(rows), options=UTC), "qos", "constraints", "reservation"
    )
    assert [["milan"], ["day"]] == told(
        parse_sacct(text({"SubmitLine": line}), options=UTC), "constraints", "reservation"
    )


def test_memory_of_older_versions() -> None:
    """``4Gn`` is per node, ``2Gc`` per core; without either it is worked out from the resources."""
    trace = parse_sacct(
        text(
            {"JobID": "1", "ReqMem": "4Gn", "ReqCPUS": "8", "NNodes": "2", "ReqTRES": ""},
            {"JobID": "2", "ReqMem": "2Gc", "ReqCPUS": "8", "NNodes": "1", "ReqTRES": ""},
            {"JobID": "3", "ReqMem": "8G", "ReqTRES": "cpu=4,mem=8G,node=1"},
        ),
        options=UTC,
    )
    assert [4096, UNKNOWN, UNKNOWN] == asked(trace, Ask.MEMORY_PER_NODE)
    assert [UNKNOWN, 2048, 2048] == asked(trace, Ask.MEMORY_PER_CORE)


def test_parts_of_heterogeneous_jobs_ask_for_different_things() -> None:
    """Nothing is said of the layout of such a job, whose parts are one job here."""
    line = "sbatch -n 4 --mem=1G : -n 8 --mem=2G x.sh"
    trace = parse_sacct(
        text({"JobID": "5+0", "SubmitLine": line}, {"JobID": "5+1", "SubmitLine": line},
             {"JobID": "7", "SubmitLine": "sbatch -n 2 x.sh"}),
        options=UTC,
    )  # fmt: skip
    assert [["", "2"], ["", ""]] == told(trace, "tasks", "memory_per_node")


#: What three jobs may ask for, by column.
EVERYTHING = {
    "asked_nodes": ["2", "", ""], "asked_max_nodes": ["4", "3", ""], "tasks": ["16", "1", "2"],
    "tasks_per_node": ["8", "", ""], "cores_per_task": ["2", "4", ""],
    "memory_per_node": ["4096", "0", ""], "memory_per_core": ["", "", "500"],
    "gpus_per_node": ["2", "", ""], "gpus": ["", "3", ""], "gpus_per_task": ["", "", "1"],
    "gpu_type": ["a100", "", "h100"], "nice": ["100", "-5", ""], "no_requeue": ["1", "", ""],
    "partitions": ["short,long", "", ""], "constraints": ["a&b", "c*2", ""],
    "exclusive": ["yes", "", ""], "begin": ["120", "", ""], "throttle": ["", "4", ""],
    "qos": ["high", "low", ""], "reservation": ["", "night", ""],
}  # fmt: skip


def test_what_jobs_ask_for_is_written_and_read_back() -> None:
    """The text of sacct has all of it in its columns and submit lines.

    Most nodes are written with the least, which are then one.
    """
    trace = parse_sacct(
        text(
            {"JobID": "1", "Partition": "long"},
            {"JobID": "2_7", "Partition": "gpu"},
            {"JobID": "3"},
        ),
        options=UTC,
    )
    trace.extra |= {name: np.array(texts, np.object_) for name, texts in EVERYTHING.items()}
    lost = Losses()
    back = parse_sacct(generate_sacct(trace, lost, UTC), options=UTC)
    kept = {name: back.extra[name].tolist() for name in EVERYTHING}
    assert EVERYTHING | {"asked_nodes": ["2", "1", ""]} == kept
    assert not {name for name, _ in lost.counts} & set(SITE_COLUMNS)


def test_an_empty_line_asks_for_nothing() -> None:
    """No column, no line."""
    assert "" == line_of({"tasks": "", "gpu_type": "a100"})
    assert "sbatch --gpus=a100:2" == line_of({"gpus": "2", "gpu_type": "a100"})


def test_objects_of_sacct() -> None:
    """Submit lines, and memory per node or core apart, are in the objects of newer versions."""
    numbered = {"set": True, "infinite": False}
    job: dict[str, Any] = {
        "job_id": 4, "name": "a", "user": "ada", "partition": "long", "qos": "normal",
        "array": {"job_id": 0, "task_id": {"set": False, "number": 0}},
        "time": {"submission": 1706702400, "start": 1706702500, "end": 1706702600, "elapsed": 100,
                 "limit": numbered | {"number": 60}},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "required": {"CPUs": 8, "memory_per_node": numbered | {"number": 4096},
                     "memory_per_cpu": {"set": False, "number": 0}},
        "tres": {"requested": [{"type": "cpu", "name": "", "count": 8},
                               {"type": "mem", "name": "", "count": 8192},
                               {"type": "node", "name": "", "count": 2},
                               {"type": "gres", "name": "gpu", "count": 4}],
                 "allocated": [{"type": "cpu", "name": "", "count": 8}]},
        "submit_line": "sbatch -n 8 --gpus-per-node=2 --no-requeue x.sh",
    }  # fmt: skip
    meta = {"plugin": {"type": "openapi/slurmdbd", "data_parser": "data_parser/v0.0.41"}}
    trace = parse_sacct_json(json.dumps({"jobs": [job], "meta": meta}), options=UTC)
    assert [8] == asked(trace, Ask.TASKS)
    assert [2] == asked(trace, Ask.NODES)
    assert [4096] == asked(trace, Ask.MEMORY_PER_NODE)
    assert [UNKNOWN] == asked(trace, Ask.MEMORY_PER_CORE)
    assert [2] == asked(trace, Ask.GPUS_PER_NODE)
    assert [1] == asked(trace, Ask.NO_REQUEUE)


def test_snapshot_of_the_controller() -> None:
    """``scontrol show job`` has layout, memory, GPUs, features, nice and requeueing by name."""
    shown = SCONTROL.replace(
        "NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*",
        "NumNodes=2-4 NumCPUs=16 NumTasks=8 CPUs/Task=2 ReqB:S:C:T=0:0:*:*\n"
        "   Socks/Node=* NtasksPerN:B:S:C=4:0:*:* CoreSpec=*\n"
        "   MinCPUsNode=8 MinMemoryNode=1.50G MinTmpDiskNode=0\n"
        "   Features=a&b DelayBoot=00:00:00 Reservation=night\n"
        "   OverSubscribe=NO Requeue=0 TresPerNode=gres:gpu:a100:2",
    ).replace("Priority=650 Nice=0", "Priority=650 Nice=50")
    shown = shown.replace("Partition=main", "Partition=main,spare")
    trace = parse_sacct(shown, options=UTC)
    expected = {
        Ask.NODES: 2, Ask.MAX_NODES: 4, Ask.TASKS: 8, Ask.TASKS_PER_NODE: 4, Ask.CORES_PER_TASK: 2,
        Ask.MEMORY_PER_NODE: 1536, Ask.GPUS_PER_NODE: 2, Ask.EXCLUSIVE: 1, Ask.NICE: 50,
        Ask.NO_REQUEUE: 1, Ask.THROTTLE: 1,
    }  # fmt: skip
    assert expected == {ask: asked(trace, ask)[1] for ask in expected}
    requests = requests_of(trace, np.arange(len(trace)))
    assert requests is not None
    words = (Ask.FEATURES, Ask.RESERVATION, Ask.GPU_TYPE, Ask.PARTITIONS)
    assert ["a&b", "night", "a100", "main,spare"] == [requests.word(ask, 1) for ask in words]
    assert UNKNOWN == asked(trace, Ask.NODES)[0]  # it runs on one, which it need not have asked for


def test_snapshot_of_the_queue() -> None:
    """Columns of ``squeue`` have GPUs, nice, features and reservation."""
    header, *lines = SQUEUE.splitlines()
    more = ["|gres:gpu:2|7|ib|night", "|N/A|0|(null)|(null)", "|N/A|-3|(null)|(null)"]
    shown = f"{header}|TRES_PER_NODE|NICE|FEATURES|RESERVATION\n" + "".join(
        f"{line}{cells}\n" for line, cells in zip(lines, more, strict=True)
    )
    trace = parse_sacct(shown, options=UTC)
    assert [2] + [UNKNOWN] * 5 == asked(trace, Ask.GPUS_PER_NODE)
    assert [7, *[UNKNOWN] * 4, -3] == asked(trace, Ask.NICE)
    assert [["ib", *[""] * 5], ["night", *[""] * 5]] == told(trace, "constraints", "reservation")


def test_objects_of_the_queue() -> None:
    """Objects of ``squeue --json`` have a name for each request."""
    dump = json.loads(objects())
    dump["jobs"][2] |= {
        "tasks": {"set": True, "infinite": False, "number": 8}, "cpus_per_task": 2,
        "tasks_per_node": 4, "memory_per_cpu": {"set": True, "infinite": False, "number": 512},
        "max_nodes": 4, "node_count": 2, "nice": -7, "requeue": False, "features": "a|b",
        "tres_per_job": "gres/gpu:a100=4", "shared": ["none"], "resv_name": "night",
        "tres_req_str": "cpu=16,mem=8G,node=2,gres/gpu=4",
    }  # fmt: skip
    trace = parse_sacct_json(json.dumps(dump), options=UTC)
    expected = {
        Ask.NODES: 2, Ask.MAX_NODES: 4, Ask.TASKS: 8, Ask.TASKS_PER_NODE: 4, Ask.CORES_PER_TASK: 2,
        Ask.MEMORY_PER_CORE: 512, Ask.GPUS: 4, Ask.GPUS_PER_NODE: UNKNOWN, Ask.EXCLUSIVE: 1,
        Ask.NICE: -7, Ask.NO_REQUEUE: 1,
    }  # fmt: skip
    assert expected == {ask: asked(trace, ask)[-1] for ask in expected}
    assert ["a|b", "night"] == [texts[-1] for texts in told(trace, "constraints", "reservation")]


def test_a_throttle_is_that_of_the_whole_array() -> None:
    """Objects have it in some of the records of an array only."""
    trace = parse_sacct(
        text(
            {"JobID": "1_0", "SubmitLine": ""},
            {"JobID": "1_1", "SubmitLine": "sbatch --array=0-1%1 x.sh"},
            {"JobID": "2_0", "SubmitLine": ""},
            {"JobID": "3", "SubmitLine": "sbatch -n 1 x.sh"},
        ),
        options=UTC,
    )
    assert [1, 1, UNKNOWN, UNKNOWN] == asked(trace, Ask.THROTTLE)
    assert [1, 1, 2, UNKNOWN] == asked(trace, Ask.ARRAY)
