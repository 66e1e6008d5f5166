"""What the jobs of a trace ask of a machine of nodes, from the records of a site.

The fields of a trace and its :attr:`~hpcrowd.environment.traces.trace.Trace.extra` columns say it,
see :data:`~hpcrowd.environment.traces.formats.common.site_columns.SITE_COLUMNS`: what a job asked
for (``req_tres``), or what it held where that is not known (``alloc_tres``, ``nodes``), QOS,
account, reservation, constraints, whole nodes and arrays. How tasks are laid out is not recorded:
a job's cores may be spread over its nodes in any way. Throttles, earliest starts and dependencies
hold jobs back before they are in the queue, see :mod:`hpcrowd.environment.holds`.
"""

from __future__ import annotations

import re

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Int64s, name_of
from hpcrowd.environment.machine.requests import Ask, Requests
from hpcrowd.environment.traces.trace import Trace

#: Columns of a trace any of which makes it one of a machine of nodes.
TELLING = ("req_tres", "alloc_tres", "nodes", "qos", "constraints", "reservation", "exclusive")

#: A count of TRES: a number, with a unit of 1024 for memory.
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")

#: MB of the units of memory; TRES without a unit are in MB.
_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}

#: A task of an array.
_TASK = re.compile(r"(\d+)_(\d+)$")


def requests_of(trace: Trace, rows: Int64s) -> Requests | None:
    """Return what jobs of a trace ask for; None if the trace has no column that says any of it.

    Parameters
    ----------
    trace
        The trace.
    rows
        The rows of the jobs in the trace, in the order of the table.
    """
    extra = trace.extra
    if not any(name in extra for name in TELLING):
        return None
    requests = Requests(len(rows))

    def texts(name: str) -> list[str]:
        found = extra.get(name)
        return [""] * len(rows) if found is None else [str(one) for one in found[rows]]

    for ask, name in (
        (Ask.QOS, "qos"),
        (Ask.RESERVATION, "reservation"),
        (Ask.FEATURES, "constraints"),
        (Ask.ACCOUNT, "project"),
    ):
        for row, text in enumerate(texts(name)):
            if text:
                requests.set(row, ask, text)
    if "project" not in extra:
        for row, number in enumerate(trace["group"][rows].tolist()):
            if int(number) in trace.names.get("group", {}):
                requests.set(row, Ask.ACCOUNT, name_of(trace.names, "group", int(number)))
    for row, number in enumerate(trace["queue"][rows].tolist()):
        if int(number) in trace.names.get("queue", {}):
            requests.set(row, Ask.PARTITIONS, name_of(trace.names, "queue", int(number)))
    cores = np.where(
        trace["requested_processors"] > 0,
        trace["requested_processors"],
        trace["allocated_processors"],
    )[rows]
    nodes = _nodes(texts("req_tres"), texts("alloc_tres"), texts("nodes"))
    for row, (asked, held) in enumerate(zip(texts("req_tres"), texts("alloc_tres"), strict=True)):
        _take_tres(requests, row, _tres(asked) or _tres(held), int(cores[row]), nodes[row])
    for row, text in enumerate(texts("exclusive")):
        if text == "yes":
            requests.set(row, Ask.EXCLUSIVE, 1)
    arrays: dict[str, int] = {}
    for row, text in enumerate(texts("job_id")):
        found = _TASK.match(text)
        if found:
            requests.set(row, Ask.ARRAY, arrays.setdefault(found[1], len(arrays)))
            requests.set(row, Ask.TASK, int(found[2]))
    return requests


def _nodes(asked: list[str], held: list[str], counts: list[str]) -> list[int]:
    """Return the nodes of each job, asked for or held; -1 where neither is known."""
    found = []
    for wanted, had, count in zip(asked, held, counts, strict=True):
        tres = _tres(wanted) or _tres(had)
        number = int(tres.get("node", 0)) or (int(count) if count.isdecimal() else 0)
        found.append(number or UNKNOWN)
    return found


def _tres(text: str) -> dict[str, float]:
    """Return the counts of a text such as ``cpu=4,mem=8G,node=1``; memory in MB."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        match = _COUNT.fullmatch(value.strip())
        if equals and match:
            found[name.strip()] = float(match[1]) * (_MB[match[2]] if name == "mem" else 1)
    return found


def _take_tres(
    requests: Requests, row: int, tres: dict[str, float], cores: int, nodes: int
) -> None:
    """Note what the counts of resources say of a job."""
    if nodes > 0:
        requests.set(row, Ask.NODES, nodes)
    if (memory := tres.get("mem", 0)) > 0:
        # Slurm multiplies memory of cores or nodes out; per core it fits any layout.
        requests.set(row, Ask.MEMORY_PER_CORE, max(round(memory / max(cores, 1)), 1))
    kinds = {name.partition(":")[2]: count for name, count in tres.items()
             if name.startswith("gres/gpu:")}  # fmt: skip
    gpus = int(tres.get("gres/gpu", sum(kinds.values())))
    if gpus > 0:
        requests.set(row, Ask.GPUS, gpus)
        if len(kinds) == 1:
            requests.set(row, Ask.GPU_TYPE, next(iter(kinds)))
