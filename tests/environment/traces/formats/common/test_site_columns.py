"""What Slurm records beyond the fields of SWF, checked against the same cluster's JSON records."""

import gzip
import json
from collections import Counter
from typing import Any

import pytest
from hpcrowd import read_trace
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.formats import Losses, parse_format

from tests.environment.traces.formats.format_cases import shown
from tests.support.sacct import UTC

Record = dict[str, Any]

SIZES = ("allocated_processors", "requested_processors", "requested_time")


@pytest.fixture(scope="module")
def site(slurm_dumps):
    """The dump with all columns."""
    return read_trace(slurm_dumps / "all-D.txt.gz", options=UTC)


@pytest.fixture(scope="module")
def records(slurm_dumps):
    """The JSON records of each job, by its identifier, in the order of submissions."""
    dump = json.loads(gzip.decompress((slurm_dumps / "json-D.txt.gz").read_bytes()))
    found: dict[str, list[Record]] = {}
    for record in sorted(dump["jobs"], key=lambda one: (one["time"]["submission"], one["job_id"])):
        array, het = record["array"], record["het"]
        name = str(het["job_id"] or record["job_id"])
        if array["job_id"]:
            name = f"{array['job_id']}_{array['task_id']}"
        found.setdefault(name, []).append(record)
    return found


def processors(record):
    """Processors that a record's job got."""
    return sum(one["count"] for one in record["tres"]["allocated"] if one["type"] == "cpu")


def test_times_sizes_limits_states_and_names(site, records):
    """Every job equals its records, second for second: runs of a job, or parts of one."""
    assert 421 == sum(map(len, records.values()))
    assert set(records) == set(site.extra["job_id"])
    assert {} == site.dropped
    origin = int(site.header.get("UnixStartTime") or 0)
    differ = Counter[str]()
    columns = ("job_id", "eligible", "suspended", "lost_work", "priority", "final_state", "qos",
               "user", "group", "executable", "queue", "submit", "wait", "run", *SIZES)  # fmt: skip
    for row in shown(site, *columns):
        told = dict(zip(columns, row, strict=True))
        some = records[told["job_id"]]
        first, last = some[0], some[-1]
        parts = some if first["het"]["job_id"] else [last]
        earlier = [one for one in some[:-1] if one["state"]["current"] != "RESIZING"]
        start = min(part["time"]["start"] for part in parts)
        expected = {
            "submit": first["time"]["submission"] - origin,
            "eligible": first["time"]["eligible"] - first["time"]["submission"],
            "wait": start - first["time"]["submission"],
            "run": max(part["time"]["end"] for part in parts) - start,
            "allocated_processors": sum(map(processors, parts)),
            "requested_processors": sum(part["required"]["CPUs"] for part in parts),
            "requested_time": max(60 * (part["time"]["limit"] or 0) or -1 for part in parts),
            "final_state": last["state"]["current"], "user": last["user"], "qos": last["qos"],
            "group": last["account"], "executable": parts[0]["name"],
            "queue": parts[0]["partition"], "suspended": last["time"]["suspended"],
            "lost_work": 0 if len(parts) > 1
            else sum(one["time"]["elapsed"] * processors(one) for one in earlier),
            "priority": parts[0]["priority"],
        }  # fmt: skip
        for what, wanted in expected.items():
            found = int(told[what] or 0) if isinstance(wanted, int) else told[what]
            if found != wanted:
                differ[f"{what} {told['job_id']}: {found} != {wanted}"] += 1
    assert {} == differ


def test_what_is_lost_or_rounded_is_counted(site, slurm_dumps):
    """SWF loses the columns, but for states that its status says; ``--units`` rounds memory."""
    lost = Losses()
    parse_format("swf").generate(site, lost)
    counts = {field: count for (field, _), count in lost.counts.items()}
    said = ("COMPLETED", "FAILED", "CANCELLED")
    assert counts["final_state"] == sum(state not in said for state in site.extra["final_state"])
    assert set(site.extra) <= set(counts) & set(SITE_COLUMNS)
    rounded = read_trace(slurm_dumps / "guide-unitsG.txt", options=UTC).repaired.items()
    assert 408 == sum(count for reason, count in rounded if "--units" in reason)


def test_odd_jobs_of_the_cluster(slurm_dumps):
    """Suspended, requeued, a chain, an array with a limit, and one that never started."""
    trace = read_trace(slurm_dumps / "lines.txt", options=UTC)
    rows = {name: row for row, name in enumerate(trace.extra["job_id"])}
    expected = {
        "406": {"suspended": "8"}, "146": {"restarts": "1", "lost_work": "176"},
        "274": {"dependency": "afterok:273", "eligible": "123"}, "270_7": {"throttle": "2"},
        "325": {"begin": "3600", "eligible": "3600", "cancelled_by": "2006"},
        "289": {"final_state": "TIMEOUT"},
    }  # fmt: skip
    assert expected == {
        name: {column: str(trace.extra[column][rows[name]]) for column in told}
        for name, told in expected.items()
    }
    assert 25 == trace["run"][rows["406"]]  # 17 s and 8 s suspended
    assert (4, 30) == (trace["wait"][rows["408"]], trace["run"][rows["408"]])
    rest = rows["271_[3-19%1]"]
    assert (-1, 0) == (trace["run"][rest], trace["allocated_processors"][rest])
    assert "gres/gpu=2" in trace.extra["alloc_tres"][rows["303"]]
