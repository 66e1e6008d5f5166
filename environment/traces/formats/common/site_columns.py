"""Columns of a site's own records that the Standard Workload Format has no field for.

They are texts in :attr:`hpcrowd.environment.traces.trace.Trace.extra`, by these names whatever the
resource manager; numbers are written in decimal, and an empty text means unknown or 0. Times are
counted from the submission of the job, so that they stay right when the origin of a trace moves.

The fields of a job in a trace are those of its last run, from its first submission on. The runs
before that, which a failure, a preemption or an operator ended, are in the column ``runs``, as
texts such as ``60:3949:3949:1:REQUEUED``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.trace import Trace

#: Meaning and unit of each column.
SITE_COLUMNS = {
    "job_id": "identifier of the job in the resource manager",
    "final_state": "final state as the resource manager calls it, such as TIMEOUT or NODE_FAIL",
    "cancelled_by": "user number of whoever cancelled it",
    "exit_code": "exit code, and the signal behind a colon",
    "qos": "quality of service",
    "cluster_name": "name of its cluster",
    "eligible": "s after the submission; from then on the job could start",
    "begin": "s after the submission; the earliest start that its user asked for",
    "elapsed": "s for which it has run so far, of a job that runs",
    "suspended": "s for which it was suspended",
    "restarts": "how often it was run again after a failure, a preemption or a requeue",
    "lost_work": "processor-seconds of runs after which it was run again",
    "runs": "these runs: start, end and next submission in s after the first one, processors and "
    "final state, separated by colons; a blank between runs",
    "energy": "J that were measured of it, without cooling",
    "nodes": "nodes that it held",
    "node_list": "their names",
    "alloc_tres": "resources that it held, as TYPE=COUNT separated by commas",
    "req_tres": "resources that its user asked for, in the same form",
    "reservation": "reservation that it ran in",
    "constraints": "properties of nodes that its user asked for",
    "exclusive": "yes if its user asked for whole nodes",
    "priority": "priority when it was started",
    "project": "project, or account, that it is charged to",
    "dependency": "jobs that it waited for, such as afterok:17",
    "throttle": "most tasks of the array that run at the same time",
    "partitions": "partitions that its user asked for, separated by commas, if more than one",
    "asked_nodes": "least nodes that its user asked for",
    "asked_max_nodes": "most nodes that its user asked for",
    "tasks": "tasks that its user asked for",
    "tasks_per_node": "tasks on a node that its user asked for",
    "cores_per_task": "cores of a task that its user asked for",
    "memory_per_node": "MB on each node that its user asked for; 0 for all of it",
    "memory_per_core": "MB for each core that its user asked for",
    "gpus": "GPUs of the job that its user asked for",
    "gpus_per_node": "GPUs on each node that its user asked for",
    "gpus_per_task": "GPUs of each task that its user asked for",
    "gpu_type": "type of GPU that its user asked for",
    "nice": "what its user took off its priority",
    "no_requeue": "1 if its user does not want it run again",
    "components": "components of a heterogeneous job",
}

#: The last of them.
COMPONENTS = "components"

#: Columns of whole numbers.
NUMBERS = frozenset(
    ("cancelled_by", "eligible", "begin", "elapsed", "suspended", "restarts", "lost_work", "energy",
     "nodes", "priority", "throttle", "components")
)  # fmt: skip

#: States that the status of a job already says, by status.
SAID_BY_STATUS = {1: "COMPLETED", 0: "FAILED", 5: "CANCELLED"}


def said_by_status(trace: Trace) -> NDArray[np.bool_]:
    """Return for which jobs the status says the state as well, shape (jobs,)."""
    status, states = trace["status"].tolist(), trace.extra["final_state"].tolist()
    same = [SAID_BY_STATUS.get(one) == text for one, text in zip(status, states, strict=True)]
    return np.array(same, bool)


def site_numbers(extra: dict[str, NDArray[Any]], name: str, jobs: int) -> Int64s:
    """Return a column of :data:`NUMBERS`; 0 where nothing is known, shape (jobs,)."""
    if name not in extra:
        return np.zeros(jobs, np.int64)
    texts = extra[name].tolist()
    return np.array([int(text) if text.isdecimal() else 0 for text in texts], np.int64)


def texts_of(values: NDArray[Any]) -> NDArray[np.object_]:
    """Return whole numbers as texts, empty for 0 and :data:`UNKNOWN`."""
    whole = values.astype(np.int64).tolist()
    return np.array(["" if one in (0, UNKNOWN) else str(one) for one in whole], np.object_)


def filled(columns: dict[str, NDArray[np.object_]]) -> dict[str, NDArray[np.object_]]:
    """Return the columns in which some job has a text."""
    return {name: texts for name, texts in columns.items() if any(texts.tolist())}


#: The column.
RUNS = "runs"

_RUN = re.compile(r"(\d{1,15}):(\d{1,15}):(\d{1,15}):(\d{1,10}):(\w*)", re.ASCII)


class EarlierRun(NamedTuple):
    """A run after which a job was run again; times in s after the first submission of the job."""

    start: int
    end: int
    again: int  #: when the job was submitted again; its next wait counts from here
    processors: int
    state: str  #: final state as the resource manager calls it

    @property
    def processor_seconds(self) -> int:
        """Lost processor-seconds."""
        return (self.end - self.start) * self.processors


Runs = tuple[EarlierRun, ...]


def in_order(runs: Iterable[EarlierRun], submit: int = 0) -> Runs:
    """Return runs with times after ``submit``, none of which begins before the last one is over."""
    found: list[EarlierRun] = []
    since = 0
    for run in sorted(runs):
        start = max(run.start - submit, since)
        end = max(run.end - submit, start)
        since = max(run.again - submit, end)
        found.append(run._replace(start=start, end=end, again=since))
    return tuple(found)


def text_of(runs: Runs) -> str:
    """Return runs as a text for :data:`RUNS`."""
    return " ".join(":".join(map(str, run)) for run in runs)


def earlier_runs(trace: Trace) -> dict[int, Runs]:
    """Return the earlier runs of the jobs that have any, by row.

    Raises TraceError if a text says something else.
    """
    texts: NDArray[np.object_] = trace.extra.get(RUNS, np.zeros(0, np.object_))
    return {
        row: _runs_in(text, f"{trace.source}: job {trace['number'][row]}")
        for row, text in enumerate(texts.tolist())
        if text
    }


def _runs_in(text: str, where: str) -> Runs:
    found = [_RUN.fullmatch(one) for one in text.split(" ")]
    runs = tuple(
        EarlierRun(int(one[1]), int(one[2]), int(one[3]), int(one[4]), one[5])
        for one in found
        if one is not None
    )
    since = (0, *(run.again for run in runs))
    ordered = (
        at <= run.start <= run.end <= run.again for at, run in zip(since, runs, strict=False)
    )
    if len(runs) < len(found) or not all(ordered):
        raise TraceError(
            f"{where}: {RUNS} {echo(text)}: must be START:END:AGAIN:PROCESSORS:STATE for each "
            "run, in their order, separated by blanks, in s after the submission; correct it or "
            "remove the column"
        )
    return runs


def of_jobs(trace: Trace, source_row: Int64s) -> dict[int, Runs]:
    """Return the earlier runs by row of a table, given the row of each job in the log, or -1."""
    known = earlier_runs(trace)
    if not known:
        return {}
    rows = np.flatnonzero(np.isin(source_row, list(known)) & (source_row != UNKNOWN))
    return {row: known[int(source_row[row])] for row in rows.tolist()}
