"""What jobs of Slurm ask of a machine, and the objects of ``sacct --json``."""

import gzip
import json
import re
from typing import Any

import numpy as np
import pytest
from hpcrowd import read_trace
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.slurm import json_records
from hpcrowd.environment.traces.formats.slurm.accounting import generate_sacct
from hpcrowd.environment.traces.formats.slurm.submit_lines import Asked, asked_in
from hpcrowd.formats import Losses, find_format, parse_sacct, parse_sacct_json

from tests.environment.state.test_slurm_now import SCONTROL, SQUEUE, objects
from tests.environment.traces.formats.format_cases import ASKED, asked_by, shown
from tests.support.sacct import UTC, text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-N 2 -n 16 -c 4", "asked_nodes=2 asked_max_nodes=2 tasks=16 cores_per_task=4"),
        ("-N2-4", "asked_nodes=2 asked_max_nodes=4"), ("--nodes=some", ""),
        ("--nodes=1,4-8:2", "asked_nodes=1 asked_max_nodes=8"),
        ("--nodes=1k", "asked_nodes=1024 asked_max_nodes=1024"),
        ("--ntasks-per-node=8 --cpus-per-task 2", "tasks_per_node=8 cores_per_task=2"),
        ("--mem=4G", "memory_per_node=4096"), ("--mem=0", "memory_per_node=0"),
        ("--mem-per-cpu=1500K", "memory_per_core=2"), ("--mem=999999999999999T", ""),
        ("--mem-per-gpu=8G --gres=gpu:2", "memory_per_node=16384 gpus_per_node=2"),
        ("--gres=gpu:a100:2,lustre:1", "gpus_per_node=2 gpu_type=a100"),
        ("--gres=gpu", "gpus_per_node=1"), ("-G4", "gpus=4"), ("--gpus=a100:2,v100:1", "gpus=3"),
        ("--gpus-per-node=h100:4 --gres=lustre:1", "gpus_per_node=4 gpu_type=h100"),
        ("--gpus-per-task=1", "gpus_per_task=1"), ("-p short,long", "partitions=short,long"),
        ("-C a&b|c --reservation=night -q high", "constraints=a&b|c reservation=night qos=high"),
        ("--nice", "nice=100"), ("--nice=-5", "nice=-5"), ("--no-requeue", "no_requeue=1"),
        ("--no-requeue --requeue", ""), ("-n 4 script.sh -n 8", "tasks=4"),
        ("-n four --mem=much", ""),
    ],
)  # fmt: skip
def test_options_become_columns(options, expected):
    """Each option is a column; what is malformed says nothing."""
    quoted = options.replace("a&b|c", "'a&b|c'")
    columns = dict(pair.split("=") for pair in expected.split())
    assert columns == asked_in(f"sbatch {quoted} x.sh").columns


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sbatch -d afterok:273 x.sh", Asked("afterok:273")),
        ("sbatch -dafterany:1:2 --begin=now+1hour x.sh -d afterok:9", Asked("afterany:1:2", 3600)),
        ("sbatch --dependency=singleton -a 0-19%2 x.sh", Asked("singleton", 0, 2)),
        ("sbatch --array 1-9 --exclusive x.sh", Asked("", 0, 0, exclusive=True)),
        ("sbatch -b now+30minutes --exclusive=user x.sh", Asked("", 1800, 0, exclusive=True)),
        *((f"sbatch --begin={moment} x.sh", Asked(moment=meaning)) for moment, meaning in (
            ("2026-01-05T16:00:30", "2026-01-05T16:00:30"), ("2026-01-05", "2026-01-05T00:00:00"),
            ("2026-01-05T16:00", "2026-01-05T16:00:00"), ("2026-02-31", ""), ("16:00", ""))),
        ("sbatch -n2 : -d afterok:3 x.sh", Asked(columns={"tasks": "2"})),
        ("sbatch --wrap='unclosed", Asked()), ("sbatch -d", Asked()), ("", Asked()),
    ],
)  # fmt: skip
def test_options_of_submit_lines(line, expected):
    """Options count before the script; those of the script and of later parts do not."""
    assert expected == asked_in(line)


LINE = "sbatch -C milan --reservation=day -q low x.sh"
PARTS = "sbatch -n 4 --mem=1G : -n 8 --mem=2G x.sh"
NO = UNKNOWN

#: Rows, and the requests or texts of requests of the jobs that they are.
ROWS: list[tuple[list[dict[str, str]], dict[Ask, list[Any]]]] = [
    # a moment is a local time, and counts from the submission; one before it says nothing
    ([{"SubmitLine": "sbatch --begin=2024-01-31T12:02 x.sh"},
      {"SubmitLine": "sbatch --begin=2024-01-31T11:00 x.sh"},
      {"SubmitLine": "sbatch -b now+2hours x.sh"}], {Ask.BEGIN: [120, NO, 7200]}),
    # the accounting names the partition that a job ran in; the list counts if that is one of it
    ([{"Partition": "long", "SubmitLine": "sbatch -p short,long x.sh"},
      {"Partition": "gpu", "SubmitLine": "sbatch -p short,long x.sh"},
      {"Partition": "short", "SubmitLine": "sbatch -p short x.sh"}],
     {Ask.PARTITIONS: ["short,long", "gpu", "short"]}),
    # its columns count more than a submit line, which has neither defaults nor changes
    ([{"QOS": "high", "Constraints": "skylake", "Reservation": "night", "SubmitLine": LINE}],
     {Ask.QOS: ["high"], Ask.FEATURES: ["skylake"], Ask.RESERVATION: ["night"]}),
    ([{"SubmitLine": LINE}], {Ask.FEATURES: ["milan"], Ask.RESERVATION: ["day"]}),
    # memory of older versions is per node or core, else it is worked out from the resources
    ([{"ReqMem": "4Gn", "ReqCPUS": "8", "NNodes": "2", "ReqTRES": ""},
      {"ReqMem": "2Gc", "ReqCPUS": "8", "NNodes": "1", "ReqTRES": ""},
      {"ReqMem": "8G", "ReqTRES": "cpu=4,mem=8G,node=1"}],
     {Ask.MEMORY_PER_NODE: [4096, NO, NO], Ask.MEMORY_PER_CORE: [NO, 2048, 2048]}),
    # parts of a heterogeneous job ask for different things: nothing is said of its layout
    ([{"JobID": "5+0", "SubmitLine": PARTS}, {"JobID": "5+1", "SubmitLine": PARTS},
      {"JobID": "7", "SubmitLine": "sbatch -n 2 x.sh"}],
     {Ask.TASKS: [NO, 2], Ask.MEMORY_PER_NODE: [NO, NO]}),
    # a throttle is that of the whole array, though objects have it in some of its records only
    ([{"JobID": "1_0", "SubmitLine": ""}, {"JobID": "1_1", "SubmitLine": "sbatch -a 0-1%1 x.sh"},
      {"JobID": "2_0", "SubmitLine": ""}, {"JobID": "3", "SubmitLine": "sbatch -n 1 x.sh"}],
     {Ask.THROTTLE: [1, 1, NO, NO], Ask.ARRAY: [1, 1, 2, NO]}),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), ROWS)
def test_rows_ask(rows, expected):
    """What a job asks for follows from columns, submit lines and the other rows of its array."""
    numbered = [{"JobID": str(number)} | row for number, row in enumerate(rows, 1)]
    found = asked_by(parse_sacct(text(*numbered), options=UTC))
    assert expected == {ask: found[ask] for ask in expected}


def test_what_jobs_ask_for_is_written_and_read_back():
    """The text of sacct has all of it; most nodes are written with the least, then one."""
    rows = {"JobID": "1", "Partition": "long"}, {"JobID": "2_7", "Partition": "gpu"}, {"JobID": "3"}
    trace = parse_sacct(text(*rows), options=UTC)
    of_slurm = {name: ASKED[name] for name in set(ASKED) - {"array", "task", "project"}} | {
        "asked_nodes": ["2", "", ""], "asked_max_nodes": ["4", "3", ""],
        "constraints": ["a&b", "c*2", ""],
        "partitions": ["short,long", "", ""], "throttle": ["", "4", ""],
    }  # fmt: skip
    trace.extra |= {name: np.array(texts, np.object_) for name, texts in of_slurm.items()}
    lost = Losses()
    back = parse_sacct(generate_sacct(trace, lost, UTC), options=UTC)
    kept = {name: back.extra[name].tolist() for name in of_slurm}
    assert of_slurm | {"asked_nodes": ["2", "1", ""]} == kept
    assert not {name for name, _ in lost.counts} & set(SITE_COLUMNS)


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


def is_set(number, *, infinite=False):
    """A number as data parsers from v0.0.39 on print it."""
    return {"set": number is not None, "infinite": infinite, "number": number or 0}


def objects_of_sacct():
    """Submit lines, and memory per node or core apart, are in the objects of newer versions."""
    counts = (("cpu", "", 8), ("mem", "", 8192), ("node", "", 2), ("gres", "gpu", 4))
    tres = [dict(zip(("type", "name", "count"), one, strict=True)) for one in counts]
    job = NEW | {
        "tres": {"requested": tres, "allocated": tres[:1]},
        "submit_line": "sbatch -n 8 --gpus-per-node=2 --no-requeue x.sh",
    }
    return dump(job, plugin="openapi/slurmdbd")


def shown_by_the_controller():
    """``scontrol show job`` has layout, memory, GPUs, features, nice and requeueing by name."""
    return SCONTROL.replace(
        "NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*",
        "NumNodes=2-4 NumCPUs=16 NumTasks=8 CPUs/Task=2 ReqB:S:C:T=0:0:*:*\n"
        "   Socks/Node=* NtasksPerN:B:S:C=4:0:*:* CoreSpec=*\n"
        "   MinCPUsNode=8 MinMemoryNode=1.50G MinTmpDiskNode=0\n"
        "   Features=a&b DelayBoot=00:00:00 Reservation=night\n"
        "   OverSubscribe=NO Requeue=0 TresPerNode=gres:gpu:a100:2",
    ).replace("Priority=650 Nice=0", "Priority=650 Nice=50").replace(
        "Partition=main", "Partition=main,spare"
    )  # fmt: skip


def queue():
    """Columns of ``squeue`` have GPUs, nice, features and reservation."""
    header, *lines = SQUEUE.splitlines()
    more = ["|gres:gpu:2|7|ib|night", "|N/A|0|(null)|(null)", "|N/A|-3|(null)|(null)"]
    rows = [line + cells for line, cells in zip(lines, more, strict=True)]
    return "\n".join([f"{header}|TRES_PER_NODE|NICE|FEATURES|RESERVATION", *rows, ""])


def objects_of_the_queue():
    """Objects of ``squeue --json`` have a name for each request."""
    found = json.loads(objects())
    found["jobs"][2] |= {
        "tasks": is_set(8), "cpus_per_task": 2, "tasks_per_node": 4, "memory_per_cpu": is_set(512),
        "max_nodes": 4, "node_count": 2, "nice": -7, "requeue": False, "features": "a|b",
        "tres_per_job": "gres/gpu:a100=4", "shared": ["none"], "resv_name": "night",
        "tres_req_str": "cpu=16,mem=8G,node=2,gres/gpu=4",
    }  # fmt: skip
    return json.dumps(found).encode()


LAYOUT = {Ask.NODES: 2, Ask.MAX_NODES: 4, Ask.TASKS: 8, Ask.TASKS_PER_NODE: 4,
          Ask.CORES_PER_TASK: 2, Ask.EXCLUSIVE: 1, Ask.NO_REQUEUE: 1}  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (objects_of_sacct, [{Ask.TASKS: 8, Ask.NODES: 2, Ask.MEMORY_PER_NODE: 4096,
         Ask.MEMORY_PER_CORE: NO, Ask.GPUS_PER_NODE: 2, Ask.NO_REQUEUE: 1}]),
        # the first job runs on one node, which it need not have asked for
        (shown_by_the_controller, [{Ask.NODES: NO}, LAYOUT | {
         Ask.MEMORY_PER_NODE: 1536, Ask.GPUS_PER_NODE: 2, Ask.NICE: 50, Ask.THROTTLE: 1,
         Ask.FEATURES: "a&b", Ask.RESERVATION: "night", Ask.GPU_TYPE: "a100",
         Ask.PARTITIONS: "main,spare"}]),
        (queue, [
            {Ask.GPUS_PER_NODE: 2, Ask.NICE: 7, Ask.FEATURES: "ib", Ask.RESERVATION: "night"},
            *[{Ask.GPUS_PER_NODE: NO, Ask.NICE: NO, Ask.FEATURES: "", Ask.RESERVATION: ""}] * 4,
            {Ask.GPUS_PER_NODE: NO, Ask.NICE: -3, Ask.FEATURES: "", Ask.RESERVATION: ""}]),
        (objects_of_the_queue, [*[{}] * 5, LAYOUT | {
         Ask.MEMORY_PER_CORE: 512, Ask.GPUS: 4, Ask.GPUS_PER_NODE: NO, Ask.NICE: -7,
         Ask.FEATURES: "a|b", Ask.RESERVATION: "night"}]),
    ],
)  # fmt: skip
def test_other_dumps_ask(shown, expected):
    """Objects, the queue and the controller have a column or name for each request."""
    data = shown()
    parse = parse_sacct_json if isinstance(data, bytes) else parse_sacct
    found = asked_by(parse(data, options=UTC))
    assert expected == [{a: found[a][row] for a in asks} for row, asks in enumerate(expected)]


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


def dump(*jobs, plugin="openapi/dbv0.0.38"):
    """Objects as sacct prints them."""
    return json.dumps({"meta": {"plugin": {"type": plugin}}, "errors": [], "jobs": jobs}).encode()


@pytest.mark.parametrize("job", [OLD, NEW], ids=["22.05", "23.11"])
def test_shapes_of_versions(job):
    """Plain numbers and objects, words and lists mean the same; what is infinite is unknown."""
    trace = parse_sacct_json(dump(job), options=UTC)
    row = [trace[name][0] for name in ("wait", "run", "allocated_processors", "requested_time")]
    assert [20, 60, 8, 60] == row
    assert (1048576, 2 / 8, 12.562) == (trace["requested_memory"][0], trace["memory"][0],
                                    trace["average_cpu"][0])  # fmt: skip
    assert {1: "a\nb\x1fc"} == trace.names["executable"]
    assert {
        "job_id": "7_5", "final_state": "TIMEOUT", "eligible": "10", "nodes": "2", "qos": "high",
        "alloc_tres": "cpu=8,gres/gpu:a100=2,mem=8G", "req_tres": "cpu=8,mem=8G",
        "node_list": "n[1-2]", "constraints": "rack1|rack2", "priority": "12", "throttle": "3",
    }.items() <= {name: values[0] for name, values in trace.extra.items()}.items()  # fmt: skip
    assert "0:9" == trace.extra["exit_code"][0]
    times = job["time"] | {"limit": is_set(None, infinite=True), "eligible": 2**32 - 1}
    rest = job["array"] | {"task_id": is_set(None) if job is NEW else None, "task": "0x6%2"}
    never = parse_sacct_json(dump(job | {"time": times, "array": rest}), options=UTC)
    assert ["7_[1,2%2]"] == never.extra["job_id"].tolist()
    assert (-1, False) == (never["requested_time"][0], "eligible" in never.extra)


def test_jobs_before_what_made_them(tmp_path):
    """Slurm 23.11 prints its jobs first: they are known by their keys, not by the first bytes."""
    jobs = [NEW | {"job_id": 9, "array": {}, "comment": {"job": "x" * 70_000}}]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": jobs, "meta": {"Slurm": {"release": "23.11.5"}}}))
    assert [60] == read_trace(path, options=UTC)["run"].tolist()


def test_text_is_as_the_records(slurm_dumps):
    """Every job equals its records, second for second: runs of a job, or parts of one."""
    site = read_trace(slurm_dumps / "all-D.txt.gz", options=UTC)
    records: dict[str, list[dict[str, Any]]] = {}
    jobs = json.loads(gzip.decompress((slurm_dumps / "json-D.txt.gz").read_bytes()))["jobs"]
    for record in sorted(jobs, key=lambda one: (one["time"]["submission"], one["job_id"])):
        array, number = record["array"], record["het"]["job_id"] or record["job_id"]
        name = f"{array['job_id']}_{array['task_id']}" if array["job_id"] else f"{number}"
        records.setdefault(name, []).append(record)
    assert 421 == sum(map(len, records.values()))
    assert set(records) == set(site.extra["job_id"])
    assert {} == site.dropped

    def processors(record):
        return sum(one["count"] for one in record["tres"]["allocated"] if one["type"] == "cpu")

    for job_id, *found in shown(
        site, "job_id", "submit", "eligible", "wait", "run", "allocated_processors",
        "requested_processors", "requested_time", "suspended", "lost_work", "priority",
        "final_state", "qos", "user", "group", "executable", "queue",
    ):  # fmt: skip
        some = records[job_id]
        first, last = some[0], some[-1]
        parts = some if first["het"]["job_id"] else [last]
        lost = [one for one in some[:-1] if one["state"]["current"] != "RESIZING"]
        start = min(part["time"]["start"] for part in parts)
        submit = first["time"]["submission"]
        assert [
            submit - int(site.header.get("UnixStartTime") or 0), first["time"]["eligible"] - submit,
            start - submit, max(part["time"]["end"] for part in parts) - start,
            sum(map(processors, parts)), sum(part["required"]["CPUs"] for part in parts),
            max(60 * (part["time"]["limit"] or 0) or -1 for part in parts),
            last["time"]["suspended"],
            sum(one["time"]["elapsed"] * processors(one) for one in lost if len(parts) == 1),
            parts[0]["priority"],
        ] == [int(value or 0) for value in found[:10]], job_id  # fmt: skip
        assert [
            last["state"]["current"], last["qos"], last["user"], last["account"], parts[0]["name"],
            parts[0]["partition"],
        ] == found[10:], job_id  # fmt: skip


def test_same_as_the_text(slurm_dumps):
    """JSON of a real cluster gives what its text gives, without CPU times."""
    path = slurm_dumps / "json-D.txt.gz"
    assert "sacct-json" == find_format(path).name
    trace, text = (read_trace(one, options=UTC) for one in (path, slurm_dumps / "all-D.txt.gz"))
    place = {job: row for row, job in enumerate(trace.extra["job_id"])}
    rows = [place[job] for job in text.extra["job_id"]]
    assert len(text) == len(trace) == len(rows)
    for name in set(text.columns) - {"number", "average_cpu", "preceding", "think_time"}:
        one, other = (
            np.array(worded(found, name), object) if name in NAMED else found[name]
            for found in (text, trace)
        )
        assert one.tolist() == other[rows].tolist(), name
    for name in ("final_state", "eligible", "suspended", "restarts", "lost_work", "runs", "nodes",
                 "alloc_tres", "req_tres", "node_list", "priority", "qos"):  # fmt: skip
        assert text.extra[name].tolist() == trace.extra[name][rows].tolist(), name


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pieces_give_the_same_as_the_whole(size):
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
def test_what_is_wrong(data, rule):
    """One line names the job of the list."""
    with pytest.raises(TraceError, match=re.escape(rule)):
        parse_sacct_json(data, "jobs.json", UTC)
