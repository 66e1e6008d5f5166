r"""What waits and runs in Slurm now: ``squeue`` and ``scontrol show job``.

::

    squeue --json        scontrol show job --json (from 23.02 on)     objects
    squeue -a -r -o %all                                              columns by name
    scontrol -a show job (-o)                                         KEY=VALUE

Each job becomes a row with the columns of ``sacct``. Jobs that wait have no start, whatever is
expected of them, and jobs that run have no end. Slurm shows jobs that are over for some minutes;
they are read, too.

Source: man pages of ``squeue`` and ``scontrol``, and what Slurm 22.05 prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.slurm.records import (
    COLUMNS,
    MEMORY,
    count_in,
    number_in,
    time_in,
    word_in,
)
from hpcrowd.environment.traces.formats.slurm.submit_lines import MEGABYTES, gpus_in, line_of
from hpcrowd.environment.traces.formats.slurm.values import (
    ENDED,
    STATES,
    parse_duration,
    parse_state,
)

#: States of jobs that have not started.
WAITING = frozenset(
    ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
)

#: Columns of ``squeue`` that are needed.
NEEDED = ("JOBID", "STATE", "SUBMIT_TIME", "CPUS")

#: Columns that ``squeue`` has and ``sacct`` has not.
ITS_OWN = frozenset(
    (b"ST", b"CPUS", b"TIME", b"NODES", b"SUBMIT_TIME", b"START_TIME", b"TIME_LIMIT")
)

#: The command whose output has all columns.
ALL = "squeue -a -r -o %all, or squeue --json"

#: Words for nothing.
NOTHING = frozenset(("", "(null)", "N/A", "None", "n/a", "Unknown"))

#: How jobs share nodes if their users asked for whole ones: in text, and in objects.
NOT_SHARED = frozenset(("no", "none"))

#: The reason of jobs that may not start before a time.
NOT_YET = "BeginTime"

#: Most tasks of arrays in a list such as ``0-999`` that become jobs of their own, in all: a short
#: line could fill the memory (our choice).
MOST_TASKS = 250_000

#: Columns of sacct, and their keys in objects and ``scontrol``, and columns of ``squeue``.
OF_OBJECTS = {
    "User": "user_name", "Account": "account", "JobName": "name", "Partition": "partition",
    "QOS": "qos", "Cluster": "cluster", "Submit": "submit_time", "Eligible": "eligible_time",
    "Start": "start_time", "End": "end_time", "NNodes": "node_count", "NodeList": "nodes",
    "Reservation": "resv_name", "Constraints": "features", "Priority": "priority",
}  # fmt: skip
OF_PAIRS = {
    "Account": "Account", "Partition": "Partition", "QOS": "QOS", "Submit": "SubmitTime",
    "Eligible": "EligibleTime", "Start": "StartTime", "End": "EndTime", "NodeList": "NodeList",
    "Reservation": "Reservation", "Constraints": "Features", "ExitCode": "ExitCode",
    "Priority": "Priority",
}  # fmt: skip
OF_CELLS = {
    "User": "USER", "Account": "ACCOUNT", "Partition": "PARTITION", "QOS": "QOS",
    "Submit": "SUBMIT_TIME", "Start": "START_TIME", "End": "END_TIME", "NNodes": "NODES",
    "NodeList": "NODELIST", "Reservation": "RESERVATION", "Constraints": "FEATURES",
}  # fmt: skip

#: How values of objects are read that are no words.
READ_AS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), time_in),
    **dict.fromkeys(("NNodes", "Priority"), count_in),
}

_SCONTROL = re.compile(rb"\s*JobId=\d+ ")
_RECORD = re.compile(r"^[ \t]*JobId=(?=\d+ )", re.M)
_HEAD = re.compile(
    r"(\d+) (.*?)JobName=(.*?)\s+(?:HetJobIdSet=\S+\s+)?"
    r"UserId=([^\s(]+)(?:\(\d+\))?\s+GroupId=(.*)",
    re.S,
)
_PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/]*)=(\S*)")
_MEGABYTES = re.compile(r"(\d{1,12})(?:\.(\d{1,2}))?([KMGT]?)")
_FULFILLED = re.compile(r"\([^)]*\)")
_NODES = re.compile(r"(?:^|,)node=\d+")
_TASKS = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?")


class Queued(NamedTuple):
    """A job of a snapshot."""

    row: dict[str, str]  #: as sacct would print it
    elapsed: int | None  #: s for which it has run so far; None if that is not known
    seen: int  #: Unix time of what happened to it last, of objects; 0 if that is not known
    reason: str = ""  #: why it waits, in Slurm's words
    line: int = 0  #: the line of the text in which it begins; 0 if that is not known


def is_queue(head: bytes) -> bool:
    """Return whether a text begins as those of ``scontrol show job`` and ``squeue -o %all``."""
    if _SCONTROL.match(head):
        return True
    header = head.lstrip().partition(b"\n")[0]
    names = header.replace(b"|", b" ").split()
    return b"JOBID" in names and not ITS_OWN.isdisjoint(names)


def queued_in(data: bytes, source: str) -> list[Queued]:
    """Return the jobs of a text.

    Raises TraceError if it lacks a column, or lines are broken.
    """
    text = data.decode("utf-8", "replace")
    return list(_of_scontrol(text, source) if _SCONTROL.match(data) else _of_squeue(text, source))


def row_of_queue(record: Mapping[str, Any], source: str = "queue") -> Queued:
    """Return an object of ``squeue --json`` as a job.

    Raises TraceError if its state is not known; ``source`` is the file in the message.
    """
    state = record.get("job_state")
    limit = record.get("time_limit")
    endless = isinstance(limit, dict) and limit.get("infinite")
    array, het = number_in(record.get("array_job_id")), number_in(record.get("het_job_id"))
    task, rest = number_in(record.get("array_task_id")), word_in(record.get("array_task_string"))
    most = number_in(record.get("array_max_tasks"))
    identifier = count_in(record.get("job_id"))
    if array:
        identifier = f"{array}_{task}" if task is not None else f"{array}_[{rest}]"
    elif het:
        identifier = f"{het}+{number_in(record.get('het_job_offset')) or 0}"
    shared = record.get("shared")
    known = {column: READ_AS.get(column, word_in)(record.get(key))
             for column, key in OF_OBJECTS.items()}  # fmt: skip
    times = [number_in(record.get(name)) or 0 for name in (
        "submit_time", "last_sched_evaluation", "suspend_time")]  # fmt: skip
    row = _row(
        where=f"{source}, job {identifier}",
        identifier=identifier,
        state=word_in(state[0] if isinstance(state, list) and state else state),
        cpus=count_in(record.get("cpus")),
        tres=word_in(record.get("tres_alloc_str")) or word_in(record.get("tres_req_str")),
        wanted=word_in(record.get("tres_req_str")),
        dependency=word_in(record.get("dependency")),
        throttle=str(most) if array and most else "",
        shared=word_in(shared[0] if isinstance(shared, list) and shared else shared),
        asked=_asked_of_object(record),
        known=known | {"TimelimitRaw": "UNLIMITED" if endless else count_in(limit)},
    )
    times += [int(row[name]) for name in ("Start", "End") if row[name].isdecimal()]
    return Queued(row, None, max(times), word_in(record.get("state_reason")))


def expanded(jobs: list[Queued]) -> tuple[list[Queued], int]:
    """Return jobs with one for each task that waits, and how many arrays are not listed whole.

    Raises TraceError if there are too many tasks.
    """
    found, cut = [], 0
    tasks = 0
    for one in jobs:
        number, bracket, rest = one.row["JobID"].partition("_[")
        if not bracket:
            found.append(one)
            continue
        listed, _, throttle = rest.rstrip("]").partition("%")
        cut += "..." in listed
        line = one.row["SubmitLine"] or ("sbatch" if throttle.isdecimal() else "")
        if throttle.isdecimal() and "--array" not in line:
            line += f" --array=0%{throttle}"
        for task in _tasks(listed):
            tasks += 1
            if tasks > MOST_TASKS:
                raise TraceError(
                    f"job {number}: with it, more than {MOST_TASKS:,} tasks of arrays that wait; "
                    f"print each as a job: {ALL}"
                )
            row = one.row | {"JobID": f"{number}_{task}", "SubmitLine": line}
            found.append(one._replace(row=row))
    return found, cut


def _tasks(listed: str) -> Iterator[int]:
    """Yield the numbers in a list such as ``0-4,9,10-20:2``."""
    for part in listed.split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        yield from range(first, last + 1, max(1, int(match[3] or 1)))


def _row(
    *, where: str, identifier: str, state: str, cpus: str, tres: str, wanted: str, dependency: str,
    throttle: str, shared: str, asked: Mapping[str, str], known: dict[str, str],
) -> dict[str, str]:  # fmt: skip
    """Return a row of sacct, with what is so of any job in its state.

    Where ``wanted`` is empty the resources are those that it has or would get; on how many nodes,
    its user may not have asked. ``where`` is its place in the file, for messages.
    """
    whole = _known_state(state, where)
    waits, over = whole in WAITING, whole in ENDED
    known = {name: "" if text in NOTHING else text for name, text in known.items()}
    if waits:
        known["Start"] = "Unknown"
    if not over:
        known["End"] = "Unknown"
    if over and not known["NodeList"]:
        known["NodeList"] = "None assigned"
    memory = MEMORY.search(tres)
    options = [
        f"--dependency={_FULFILLED.sub('', dependency)}" if dependency not in NOTHING else "",
        f"--array=0%{throttle}" if throttle else "",
        "--exclusive" if shared.lower() in NOT_SHARED else "",
        line_of(asked).removeprefix("sbatch "),
    ]
    line = " ".join(filter(None, options))
    made = {
        "JobID": identifier, "State": state, "ReqCPUS": cpus, "AllocCPUS": "0" if waits else cpus,
        "AllocTRES": "" if waits else tres, "ReqTRES": wanted or _NODES.sub("", tres).strip(","),
        "ReqMem": memory[1] if memory else "", "SubmitLine": f"sbatch {line}" if line else "",
    }  # fmt: skip
    return {name: known.get(name, made.get(name, "")) for name in COLUMNS}


def _asked_of_object(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what an object of ``squeue --json`` says of its requests, by column."""
    names = {
        "tasks": "tasks", "tasks_per_node": "tasks_per_node", "cores_per_task": "cpus_per_task",
        "memory_per_node": "memory_per_node", "memory_per_core": "memory_per_cpu",
        "asked_max_nodes": "max_nodes", "nice": "nice",
    }  # fmt: skip
    numbers = {column: number_in(record.get(name)) for column, name in names.items()}
    found = {
        column: str(number)
        for column, number in numbers.items()
        if number is not None and (number > 0 or (column == "nice" and number))
    }
    if found.get("asked_max_nodes"):
        found["asked_nodes"] = count_in(record.get("node_count"))
    if record.get("requeue") is False:
        found["no_requeue"] = "1"
    return found | _gpus(
        gpus_per_node=word_in(record.get("tres_per_node")),
        gpus=word_in(record.get("tres_per_job")),
        gpus_per_task=word_in(record.get("tres_per_task")),
    )


def _asked_of_pairs(known: Mapping[str, str]) -> dict[str, str]:
    """Return what the keys of ``scontrol show job`` say of its requests, by column."""
    found = {
        "tasks": known.get("NumTasks", ""),
        "cores_per_task": known.get("CPUs/Task", ""),
        "tasks_per_node": known.get("NtasksPerN:B:S:C", "").partition(":")[0],
        "nice": known.get("Nice", ""),
        "no_requeue": "1" if known.get("Requeue") == "0" else "",
    }
    for name, key in (("memory_per_node", "MinMemoryNode"), ("memory_per_core", "MinMemoryCPU")):
        match = _MEGABYTES.fullmatch(known.get(key, ""))
        if match:
            size = float(f"{match[1]}.{match[2] or 0}") * MEGABYTES[match[3]]
            found[name] = str(int(-(-size // 1)))
    least, dash, most = known.get("NumNodes", "").partition("-")
    if dash:  # of a job that waits; else it is what it got, or would need
        found |= {"asked_nodes": least, "asked_max_nodes": most}
    for name, text in list(found.items()):
        if not text.removeprefix("-").isdecimal() or (text == "0" and name != "memory_per_node"):
            del found[name]
    return found | _gpus(
        gpus_per_node=known.get("TresPerNode", ""),
        gpus=known.get("TresPerJob", ""),
        gpus_per_task=known.get("TresPerTask", ""),
    )


def _asked_of_cells(found: Mapping[str, str]) -> dict[str, str]:
    """Return what a line of ``squeue -o %all`` says of its requests, by column.

    MIN_MEMORY is left out: it is for each node or for each core, and the line does not say which.
    """
    nice = found.get("NICE", "")
    asked = {"nice": nice} if nice.removeprefix("-").isdecimal() and nice != "0" else {}
    return asked | _gpus(gpus_per_node=found.get("TRES_PER_NODE", ""))


def _gpus(**texts: str) -> dict[str, str]:
    """Return columns of GPUs and their type from texts such as ``gres:gpu:a100:2``."""
    parsed = {column: gpus_in(text) for column, text in texts.items()}
    found = {column: count for column, (count, _) in parsed.items() if count}
    return found | {"gpu_type": next((kind for _, kind in parsed.values() if kind), "")}


def _known_state(state: str, where: str) -> str:
    """Return a state in its long form; empty for none."""
    try:
        return parse_state(state.encode()) if state else ""
    except ValueError as error:
        raise TraceError(f"{where}: state {state!r}: {error}") from None


def _minutes(limit: str, where: str) -> str:
    """Return a time limit as minutes, rounded up."""
    if limit in NOTHING or not limit[:1].isdecimal():
        return limit if limit == "UNLIMITED" else ""
    try:
        return str(-(-int(parse_duration(limit.encode())) // 60))
    except ValueError:
        raise TraceError(f"{where}: time limit {limit!r}; expected like 1-00:00:00") from None


def _elapsed(state: str, text: str, where: str) -> int | None:
    """Return for how long a job has run, s."""
    name = _known_state(state, where)
    if name in WAITING or name in ENDED or name not in STATES or not text[:1].isdecimal():
        return None
    try:
        return int(parse_duration(text.encode()))
    except ValueError as error:
        raise TraceError(f"{where}: run time {text!r}: {error}") from None


def _used(found: Mapping[str, str], where: str) -> int | None:
    """Return for how long a job has run where only its limit and what is left of it are known."""
    state, limit, left = (found.get(name, "") for name in ("STATE", "TIME_LIMIT", "TIME_LEFT"))
    whole, rest = _elapsed(state, limit, where), _elapsed(state, left, where)
    return whole - rest if whole and rest and whole >= rest else None


def _of_squeue(text: str, source: str) -> Iterator[Queued]:
    """Yield the jobs of a text with columns by name."""
    (_, header), *lines = [
        (number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()
    ]
    names = header.strip().split("|")
    if len(names) == 1:
        raise TraceError(f"{source}: columns cut to a width; print them with {ALL}")
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise TraceError(
            f"{source}: squeue without {', '.join(missing)}; print all columns with {ALL}"
        )
    name_at = names.index("NAME") if "NAME" in names else 0
    for number, line in lines:
        cells = line.split("|")
        surplus = len(cells) - len(names)
        if surplus > 0 and name_at:
            end = name_at + surplus + 1
            cells[name_at:end] = ["|".join(cells[name_at:end])]
        if len(cells) != len(names):
            raise TraceError(
                f"{source}, line {number}: {len(cells)} columns, the header has {len(names)}; "
                "a name has a line end: print objects with squeue --json"
            )
        found: dict[str, str] = {}
        for name, cell in zip(names, cells, strict=True):
            # Two columns are called PRIORITY; one is a share of the largest.
            if name not in found or (name == "PRIORITY" and cell.isdecimal()):
                found[name] = cell.strip()
        where = f"{source}, line {number}"
        state, reason = found["STATE"], found.get("REASON", "")
        priority = found.get("PRIORITY", "")
        # The start that is expected of a job with --begin is that time.
        begin = found.get("START_TIME", "") if reason == NOT_YET else ""
        yield Queued(
            _row(
                where=where, identifier=found["JOBID"], state=state, cpus=found["CPUS"],
                tres="", wanted="",
                dependency=found.get("DEPENDENCY", ""), throttle="",
                shared=found.get("OVER_SUBSCRIBE", ""),
                asked=_asked_of_cells(found),
                known={column: found.get(name, "") for column, name in OF_CELLS.items()} | {
                    "JobName": word_in(found.get("NAME", "")), "Eligible": begin,
                    "TimelimitRaw": _minutes(found.get("TIME_LIMIT", ""), where),
                    "Priority": priority if priority.isdecimal() else "",
                },
            ),
            _elapsed(state, found["TIME"], where) if "TIME" in found else _used(found, where),
            0,
            reason,
            number,
        )  # fmt: skip


def _of_scontrol(text: str, source: str) -> Iterator[Queued]:
    """Yield the jobs of a text with ``KEY=VALUE``."""
    before_it, *records = _RECORD.split(text)
    line = 1 + before_it.count("\n")
    for number, record in enumerate(records, 1):
        match = _HEAD.match(record)
        if match is None:
            raise TraceError(
                f"{source}, job {number:,}: no JobName, UserId and GroupId; print jobs with "
                "scontrol -a show job"
            )
        job, before, name, user, after = match.groups()
        known = dict(_PAIR.findall(before)) | dict(_PAIR.findall(f"GroupId={after}"))
        identifier = job
        if "ArrayJobId" in known:
            task = known.get("ArrayTaskId", "")
            task = task if task.isdecimal() else f"[{task}]"
            identifier = f"{known['ArrayJobId']}_{task}"
        elif "HetJobId" in known:
            identifier = f"{known['HetJobId']}+{known.get('HetJobOffset', '0')}"
        where, state = f"{source}, line {line}", known.get("JobState", "")
        yield Queued(
            _row(
                where=where, identifier=identifier, state=state, cpus=known.get("NumCPUs", ""),
                tres=known.get("AllocTRES") or known.get("TRES", ""),
                wanted=known.get("ReqTRES", ""), dependency=known.get("Dependency", ""),
                throttle=known.get("ArrayTaskThrottle", ""), shared=known.get("OverSubscribe", ""),
                asked=_asked_of_pairs(known),
                known={column: known.get(key, "") for column, key in OF_PAIRS.items()} | {
                    "User": user, "JobName": word_in(name),
                    "NNodes": known.get("NumNodes", "").partition("-")[0],
                    "TimelimitRaw": _minutes(known.get("TimeLimit", ""), where),
                },
            ),
            _elapsed(state, known.get("RunTime", ""), where),
            0,
            known.get("Reason", ""),
            line,
        )  # fmt: skip
        line += record.count("\n")
