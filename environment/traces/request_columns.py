"""What jobs ask of a machine of nodes, as columns of a trace.

The inverse of :func:`hpcrowd.environment.traces.requests.requests_of`: resources are written as
Slurm's accounting has them (``req_tres``), and the rest in columns of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.machine.requests import WORDS, Ask, Requests

#: Columns that are called differently from the request.
CALLED = {
    Ask.NODES: "asked_nodes",  # "nodes" are those that a job held
    Ask.MAX_NODES: "asked_max_nodes",
    Ask.FEATURES: "constraints",
    Ask.ACCOUNT: "project",
}


def request_columns(requests: Requests, processors: Int64s) -> dict[str, NDArray[np.object_]]:
    """Return columns for :attr:`~hpcrowd.environment.traces.trace.Trace.extra`, shape (jobs,).

    Columns in which no job has a text are left out. The partition is the queue of a job if it asks
    for one only, so only several ones are in a column. Dates are not written.

    Parameters
    ----------
    requests
        What the jobs ask for.
    processors
        Of each job.
    """
    texts: dict[str, list[str]] = {"req_tres": _resources(requests, processors)}
    for ask in requests.asked():
        name = CALLED.get(ask, ask.name.lower())
        if ask is Ask.PARTITIONS:
            texts[name] = [text if "," in text else "" for text in requests.texts(ask)]
        elif ask is Ask.EXCLUSIVE:
            texts[name] = ["yes" if number == 1 else "" for number in requests[ask].tolist()]
        elif ask in WORDS:
            texts[name] = requests.texts(ask)
        elif ask is not Ask.BEGIN:
            known = requests[ask].tolist()
            texts[name] = ["" if number == -1 else str(number) for number in known]
    return {name: np.array(column, np.object_) for name, column in texts.items() if any(column)}


def _resources(requests: Requests, processors: Int64s) -> list[str]:
    """Return what each job asks for in all, such as ``cpu=8,mem=16384M,node=1,gres/gpu=2``."""
    nodes = np.maximum(requests[Ask.NODES], 1)
    memory = np.maximum(
        requests[Ask.MEMORY_PER_CORE] * processors, requests[Ask.MEMORY_PER_NODE] * nodes
    )
    width = np.maximum(requests[Ask.CORES_PER_TASK], 1)
    tasks = np.where(requests[Ask.TASKS] > 0, requests[Ask.TASKS], -(-processors // width))
    gpus = np.maximum.reduce(
        [
            requests[Ask.GPUS],
            requests[Ask.GPUS_PER_NODE] * nodes,
            requests[Ask.GPUS_PER_TASK] * tasks,
        ]
    )
    rows: Any = zip(
        processors.tolist(), memory.tolist(), requests[Ask.NODES].tolist(), gpus.tolist(),
        requests.texts(Ask.GPU_TYPE), strict=True,
    )  # fmt: skip
    found = []
    for cores, megabytes, least, cards, kind in rows:
        parts = [f"cpu={cores}"]
        if megabytes > 0:
            parts.append(f"mem={megabytes}M")
        if least > 0:
            parts.append(f"node={least}")
        if cards > 0:
            parts.append(f"gres/gpu={cards}")
            if kind:
                parts.append(f"gres/gpu:{kind}={cards}")
        found.append(",".join(parts))
    return found
