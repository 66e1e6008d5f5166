"""What the jobs of a trace ask of a machine of nodes, from the records of a site.

Columns of :attr:`~hpcrowd.environment.traces.trace.Trace.extra` say it, see
:data:`~hpcrowd.environment.traces.formats.common.site_columns.SITE_COLUMNS`;
:data:`REQUEST_COLUMNS` has the column of each request. What they lack is worked out from the
resources that a job asked for (``req_tres``), or those that it held where these are not known
(``alloc_tres``, ``nodes``), and memory then from the field of a trace that has it per processor.
:func:`request_columns` is the inverse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.limits.numbers import LATEST_MOMENT
from hpcrowd.environment.requests import WORDS, Ask, Requests

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.traces.trace import Trace

#: The column that has each request. Memory is in MB, and ``begin`` counts from the submission.
REQUEST_COLUMNS = {
    **{ask: ask.name.lower() for ask in Ask},
    Ask.NODES: "asked_nodes",  # "nodes" are those that it held
    Ask.MAX_NODES: "asked_max_nodes",
    Ask.FEATURES: "constraints",
    Ask.ACCOUNT: "project",
}

#: Columns any of which makes a trace one of a machine of nodes.
TELLING = (
    *(name for name in REQUEST_COLUMNS.values()
      if name not in ("project", "begin", "array", "task", "throttle")),
    "req_tres", "alloc_tres", "nodes",
)  # fmt: skip

#: Fields that have the text of a request where no column has it.
FIELD_OF = {Ask.PARTITIONS: "queue", Ask.ACCOUNT: "group"}

#: Requests of GPUs, and of memory: one of them says it all.
GPUS = (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK)
MEMORY = (Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE)

#: Words for yes and no, in lower case.
YES, NO = frozenset(("yes", "true")), frozenset(("no", "false"))

#: A count of TRES: a number, with a unit of 1024 for memory.
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")

#: MB of the units of memory; TRES without a unit are in MB.
_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}

#: A task of an array, ``77_3`` of Slurm and ``77[3].host`` of PBS; the rest of one, ``77_[4-9]``.
_TASK = re.compile(r"(\d{1,18})(?:_(?:(\d{1,18})|\[)|\[(\d{1,18})\])", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?", re.ASCII)


#: The state of jobs that were stopped at their limit.
TIMED_OUT = "TIMEOUT"


def outrun_limits(jobs: JobTable, trace: Trace, rows: Int64s, later: int) -> None:
    """Let jobs that were stopped at their limit need more than that.

    A log does not say for how long they would have run. ``rows`` are those of the jobs in the
    trace, and limits are checked every ``later`` s, so that a job runs on for less than that.
    """
    if "final_state" in trace.extra:
        stopped = (trace.extra["final_state"][rows] == TIMED_OUT) & (jobs.requested_time > 0)
        longest = jobs.requested_time[stopped] + later
        jobs.run_time[stopped] = np.maximum(jobs.run_time[stopped], longest)


def requests_of(trace: Trace, rows: Int64s, *, always: bool = False) -> Requests | None:
    """Return what jobs of a trace ask for; None if the trace has no column that says any of it.

    ``rows`` are those of the jobs in the trace, in the order of the table. With ``always`` what
    there is, such as tasks of arrays, is returned also without any such column. Raises TraceError
    if a request that is a number is another text.
    """
    if not always and not any(name in trace.extra for name in TELLING):
        return None
    requests = Requests(len(rows))
    for ask, name in REQUEST_COLUMNS.items():
        if name not in trace.extra:
            continue
        texts = [str(one) for one in trace.extra[name][rows]]
        if ask in WORDS:
            requests.set_texts(ask, texts)
        else:
            requests[ask][:] = _numbers(texts, ask, name, trace, rows)
    for ask, field in FIELD_OF.items():
        _set_names(requests, ask, trace.names.get(field, {}), trace[field][rows])
    begin = requests[Ask.BEGIN]
    begin[:] = np.where(begin > 0, trace["submit"][rows] + begin, UNKNOWN)
    if "job_id" in trace.extra and "array" not in trace.extra:
        _set_arrays(requests, [str(one) for one in trace.extra["job_id"][rows]])
    _share_throttles(requests)
    _set_resources(requests, trace, rows)
    return requests


def _numbers(texts: list[str], ask: Ask, name: str, trace: Trace, rows: Int64s) -> Int64s:
    known = {text: _number(text, ask) for text in set(texts)}
    wrong = {text for text, number in known.items() if number is None}
    if wrong:
        place = next(place for place, text in enumerate(texts) if text in wrong)
        raise TraceError(
            f"{trace.source}: {name} {texts[place]!r} of job {trace['number'][rows[place]]:.0f} is "
            f"not a number from 0 to {LATEST_MOMENT:,}; leave it empty if it is unknown"
        )
    return np.array([known[text] for text in texts], np.int64)


def _number(text: str, ask: Ask) -> int | None:
    """Return a number, rounded up; :data:`UNKNOWN` for an empty text; None if it is neither."""
    word = text.strip()
    if word in ("", str(UNKNOWN)):
        return UNKNOWN
    if word.lower() in YES | NO:
        return 1 if word.lower() in YES else UNKNOWN
    number = -int(-float(word) // 1) if _NUMBER.fullmatch(word) else None
    if number is None or abs(number) > LATEST_MOMENT or (number < 0 and ask is not Ask.NICE):
        return None
    return number


def _set_names(
    requests: Requests, ask: Ask, names: Mapping[int, str], numbers: NDArray[Any]
) -> None:
    """Set the texts of a request that no column has from the names of a field."""
    missing = requests[ask] == UNKNOWN
    if names and missing.any():
        used = np.unique(numbers[missing]).tolist()
        place = {number: requests.number(ask, names.get(int(number), "")) for number in used}
        requests[ask][missing] = [place[number] for number in numbers[missing].tolist()]


def _set_arrays(requests: Requests, identifiers: list[str]) -> None:
    """Set array and task from the identifiers of jobs."""
    arrays, tasks = requests[Ask.ARRAY], requests[Ask.TASK]
    for row, text in enumerate(identifiers):
        match = _TASK.match(text)
        if match:
            arrays[row] = int(match[1])
            tasks[row] = int(match[2] or match[3] or UNKNOWN)


def _share_throttles(requests: Requests) -> None:
    """Set the throttle of every task of an array that some record has."""
    arrays, throttles = requests[Ask.ARRAY], requests[Ask.THROTTLE]
    tasks = np.flatnonzero(arrays != UNKNOWN)
    if not np.any(throttles[tasks] != UNKNOWN):
        return
    found, which = np.unique(arrays[tasks], return_inverse=True)
    most = np.full(len(found), UNKNOWN, np.int64)
    np.maximum.at(most, which, throttles[tasks])
    throttles[tasks] = most[which]


def _set_resources(requests: Requests, trace: Trace, rows: Int64s) -> None:
    """Set what no column says from the resources that jobs asked for, or held."""

    def texts(name: str) -> list[str]:
        found = trace.extra.get(name)
        return [""] * len(rows) if found is None else [str(one) for one in found[rows]]

    asked, held = trace["requested_processors"][rows], trace["allocated_processors"][rows]
    cores = np.where(asked > 0, asked, held).astype(np.int64)
    resources = cache(_resources)
    found = [
        resources(*one)
        for one in zip(texts("req_tres"), texts("alloc_tres"), texts("nodes"), cores.tolist(),
                       strict=True)]  # fmt: skip
    # Nodes that a job held are no request if its tasks are known.
    sure = np.array([text != "" for text in texts("req_tres")], bool)
    open_nodes = (requests[Ask.NODES] == UNKNOWN) & (sure | (requests[Ask.TASKS] == UNKNOWN))
    open_gpus = np.all([requests[ask] == UNKNOWN for ask in GPUS], axis=0)
    open_memory = np.all([requests[ask] == UNKNOWN for ask in MEMORY], axis=0)
    open_rows = dict.fromkeys(GPUS, open_gpus) | dict.fromkeys(MEMORY, open_memory)
    for ask in (Ask.NODES, Ask.MAX_NODES, *MEMORY, *GPUS, Ask.GPU_TYPE):
        values: list[Any] = [one.get(ask, "" if ask in WORDS else UNKNOWN) for one in found]
        if ask is Ask.GPU_TYPE:
            own = requests.texts(ask)
            requests.set_texts(ask, [mine or one for mine, one in zip(own, values, strict=True)])
        else:
            which = open_rows.get(ask, open_nodes)
            requests[ask][which] = np.array(values, np.int64)[which]
    each = trace["requested_memory"][rows]  # kB per processor, the only one of some managers
    unsaid = np.all([requests[ask] == UNKNOWN for ask in MEMORY], axis=0) & (each > 0)
    requests[Ask.MEMORY_PER_CORE][unsaid] = np.ceil(each[unsaid] / 1024)
    # A submit line with --ntasks of a script that says --cpus-per-task.
    tasks, per_task = requests[Ask.TASKS], requests[Ask.CORES_PER_TASK]
    more = (tasks > 0) & (per_task == UNKNOWN) & (cores > np.maximum(tasks, requests[Ask.NODES]))
    more &= cores % np.maximum(tasks, 1) == 0
    per_task[more] = cores[more] // tasks[more]


def tres(text: str) -> dict[str, float]:
    """Return the counts of a text such as ``cpu=4,mem=8G,node=1``; memory in MB."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        match = _COUNT.fullmatch(value.strip())
        if equals and match:
            found[name.strip()] = float(match[1]) * (_MB[match[2]] if name == "mem" else 1)
    return found


def _resources(asked: str, held: str, nodes: str, cores: int) -> dict[Ask, int | str]:
    """Return what a job asked for, as far as the resources in all show it.

    Slurm multiplies what is asked for each core or node out. Of the ways to divide it, one counts
    that also gives what the job held: memory per core before per node, GPUs per node before GPUs of
    the job. As many nodes held as asked for, if more than one, are the most, too.
    """
    got = tres(held)
    wanted = tres(asked) or got
    found: dict[Ask, int | str] = {}
    least = int(wanted.get("node", 0))
    if not asked and not least and nodes.isdecimal():
        least = int(nodes)
    if least > 0:
        found[Ask.NODES] = least
    if 1 < least == got.get("node"):
        found[Ask.MAX_NODES] = least
    count, held_nodes = max(least, 1), got.get("node", 0) or max(least, 1)
    memory, held_memory = wanted.get("mem", 0), got.get("mem", 0)
    if memory > 0:
        cores = int(wanted.get("cpu", 0)) or max(cores, 1)  # of one part of a heterogeneous job
        by_core = memory * got.get("cpu", cores) == (held_memory or memory) * cores
        by_node = memory * held_nodes == (held_memory or memory) * count
        if (by_node and not by_core) or memory % cores:
            found[Ask.MEMORY_PER_NODE] = -int(-memory / count // 1)
        else:
            found[Ask.MEMORY_PER_CORE] = max(int(memory / cores), 1)
    kinds = {name.partition(":")[2]: one for name, one in wanted.items()
             if name.startswith("gres/gpu:")}  # fmt: skip
    gpus, held_gpus = (
        int(one.get("gres/gpu", 0) or sum(n for k, n in one.items() if k.startswith("gres/gpu:")))
        for one in (wanted, got)
    )
    if gpus > 0:
        even = gpus % count == 0 and gpus * held_nodes == (held_gpus or gpus) * count
        found[Ask.GPUS_PER_NODE if even else Ask.GPUS] = gpus // count if even else gpus
        if asked and len(kinds) == 1:
            found[Ask.GPU_TYPE] = next(iter(kinds))
    return found


def request_columns(requests: Requests, submit: Int64s) -> dict[str, NDArray[np.object_]]:
    """Return requests as columns for :attr:`~hpcrowd.environment.traces.trace.Trace.extra`.

    Their shape is (jobs,). Columns in which no job has a text are left out. The partition is the
    queue of a job if it asks for one only, so only several ones are in a column. A begin counts
    from the submission, s.
    """
    columns: dict[str, list[str]] = {}
    for ask in requests.asked():
        numbers = requests[ask]
        if ask is Ask.PARTITIONS:
            texts = [text if "," in text else "" for text in requests.texts(ask)]
        elif ask in WORDS:
            texts = requests.texts(ask)
        elif ask is Ask.EXCLUSIVE:
            texts = ["yes" if number == 1 else "" for number in numbers.tolist()]
        else:
            known = numbers != UNKNOWN
            if ask is Ask.BEGIN:
                numbers = np.maximum(numbers - submit, 0)
            texts = np.where(known, numbers.astype(np.str_), "").tolist()
        columns[REQUEST_COLUMNS[ask]] = texts
    return {name: np.array(texts, np.object_) for name, texts in columns.items() if any(texts)}
