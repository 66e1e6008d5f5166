r"""Slurm's accounting as ``sacct --json`` prints it: one object a job, read one after the other.

Each object becomes a row with the columns of ``sacct``, and these become a trace as in
:mod:`hpcrowd.environment.traces.formats.slurm.accounting`. Times are Unix times. Numbers are plain,
or objects that say whether they are set (``{"set": true, "infinite": false, "number": 60}``, from
Slurm 23.02 on); a state is a word or a list of words.

The objects of ``squeue --json`` are others, see
:mod:`hpcrowd.environment.traces.formats.slurm.snapshot`.

Source: the records of Slurm 22.05 (data parser v0.0.38), and the OpenAPI documents of Slurm for
v0.0.37 to v0.0.42.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses, OddValues
from hpcrowd.environment.traces.formats.common.files import LONGEST_DOCUMENT, json_keys
from hpcrowd.environment.traces.formats.slurm.accounting import (
    REASONS,
    trace_of,
    trace_of_queue,
    written,
)
from hpcrowd.environment.traces.formats.slurm.records import (
    count_in,
    number_in,
    part_of,
    rows_of,
    time_in,
    word_in,
)
from hpcrowd.environment.traces.formats.slurm.snapshot import row_of_queue
from hpcrowd.environment.traces.formats.slurm.submit_lines import with_options
from hpcrowd.environment.traces.formats.slurm.values import (
    MOST,
    NO_TIME,
    SINCE_1970,
    duration_text,
    parse_duration,
    parse_energy,
    parse_time,
)
from hpcrowd.environment.traces.trace import Trace

#: MB in units of memory.
UNITS = {"M": 1, "G": 2**10, "T": 2**20, "P": 2**30}

_BEGIN = re.compile(r'"jobs"\s*:\s*\[')
_BITS = re.compile(r"0x([0-9a-fA-F]{1,4000})")
_BETWEEN = re.compile(r"[\s,]*")


def _looks_like(head: bytes) -> bool:
    """Return whether it is JSON with jobs as Slurm has them, or made by a plugin of Slurm."""
    keys = json_keys(head)
    jobs = keys.get("jobs")
    if jobs is not None:
        return "job_id" in jobs and not jobs.isdisjoint(("job_state", "state", "time"))
    return "meta" in keys.get("", ()) and (b"openapi" in head or b"data_parser" in head)


def _nearly(head: bytes) -> str:
    """Return which objects of JSON it has instead of jobs; empty if it has no list of jobs."""
    keys = json_keys(head).get("jobs", frozenset())
    return f"its jobs have {', '.join(sorted(keys)[:4])}, but no job_id" if keys else ""


def objects(blocks: Iterable[bytes], source: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in the list ``jobs``, with few of them in memory at a time.

    Raises TraceError if the list is missing or damaged.
    """
    decoder, utf8 = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")("replace")
    coming, text, place, count = iter(blocks), "", -1, 0
    while True:
        piece = next(coming, None)
        text += utf8.decode(piece or b"", final=piece is None)
        if place < 0:
            match = _BEGIN.search(text)
            place = match.end() if match else -1
        while place >= 0:
            between = _BETWEEN.match(text, place)
            assert between is not None
            place = between.end()
            if text.startswith("]", place):
                return
            try:
                found, end = decoder.raw_decode(text, place)
            except ValueError:
                break  # goes on in the next block
            except RecursionError:
                raise TraceError(f"{source}: a job is nested too deeply to be read") from None
            if end == len(text) and piece is not None:
                break  # a number may go on
            count += 1
            if not isinstance(found, dict):
                raise TraceError(f"{source}: job {count:,} of the list is not an object")
            yield found
            place = end
        if piece is None:
            break
        if place > 0:
            text, place = text[place:], 0
    if place < 0:
        raise TraceError(f"{source}: has no list of jobs; write it with sacct --json")
    raise TraceError(f"{source}: ends, or is damaged, after job {count:,} of the list")


def _resources(found: Any) -> dict[str, int]:
    """Return resources by their names in Slurm, such as ``gres/gpu:a100``, in sacct's order."""
    counts = {}
    for one in found if isinstance(found, list) else ():
        kind, name = part_of(one, "type"), part_of(one, "name")
        number = number_in(part_of(one, "count"))
        if isinstance(kind, str) and number is not None and number >= 0:
            counts[word_in(f"{kind}/{name}" if isinstance(name, str) and name else kind)] = number
    return dict(sorted(counts.items()))


def _tres(counts: Mapping[str, int]) -> str:
    """Return resources as sacct writes them."""
    words = []
    for name, number in counts.items():
        unit = ""
        if name == "mem":  # MB
            unit = next(units := iter("MGTP"))
            while number and number % 1024 == 0 and unit != "P":
                number, unit = number // 1024, next(units)
        if name != "energy":
            words.append(f"{name}={number}{unit}")
    return ",".join(words)


def _identifier(record: Mapping[str, Any]) -> str:
    array, het = (
        number_in(part_of(record, "array", "job_id")),
        number_in(part_of(record, "het", "job_id")),
    )
    if array:
        task, rest = (
            number_in(part_of(record, "array", "task_id")),
            part_of(record, "array", "task"),
        )
        if task is None and isinstance(rest, str) and rest:
            return f"{array}_[{_tasks_in(word_in(rest))}]"
        return f"{array}_{task or 0}"
    if het:
        return f"{het}+{number_in(part_of(record, 'het', 'job_offset')) or 0}"
    return count_in(record.get("job_id"))


def _tasks_in(rest: str) -> str:
    """Return the tasks of the rest of an array, which may be the bits of a number: ``0x6``."""
    match = _BITS.match(rest)
    if match is None:
        return rest
    bits = int(match[1], 16)
    listed = ",".join(str(task) for task in range(bits.bit_length()) if bits >> task & 1)
    return f"{listed}{rest[match.end() :]}"


def _state(record: Mapping[str, Any]) -> str:
    state = part_of(record, "state", "current")
    state = word_in(state[0] if isinstance(state, list) and state else state)
    by = part_of(record, "kill_request_user")
    by = word_in(by) or count_in(by)
    return f"{state} by {by}" if state == "CANCELLED" and by else state


def _line(record: Mapping[str, Any], requested: Mapping[str, int]) -> str:
    """Return the submit line, with what is in other places of the object.

    Without a unit that it is for, memory is per node if only that gives the memory in all.
    """
    line = word_in(record.get("submit_line"))
    most = number_in(part_of(record, "array", "limits", "max", "running", "tasks"))
    options = [f"--array=0%{most}" if not line and most and most > 0 else ""]
    if "--mem" not in line:
        node, core, either = (
            number_in(part_of(record, "required", name))
            for name in ("memory_per_node", "memory_per_cpu", "memory")
        )
        total = requested.get("mem", 0)
        if either and either * requested.get("node", 1) == total != either * requested.get(
            "cpu", 0
        ):
            node = either
        options += [f"--mem={node}" if node else "", f"--mem-per-cpu={core}" if core else ""]
    return with_options(line, options)


def _used_memory(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the largest memory of a task, bytes, and the tasks, of the step that used most."""
    steps = record.get("steps")
    found = [
        (_resources(part_of(step, "tres", "requested", "max")).get("mem", 0),
         min(max(number_in(part_of(step, "tasks", "count")) or 1, 1), MOST))
        for step in (steps if isinstance(steps, list) else ())
    ]  # fmt: skip
    size, tasks = max(found, key=lambda step: step[0] * step[1], default=(0, 0))
    return (str(size), str(tasks)) if size else ("", "")


def _energy(record: Mapping[str, Any], allocated: Mapping[str, int]) -> str:
    """Return the energy of a job, J: its own, else that of its steps; empty if unknown.

    As in :func:`hpcrowd.environment.traces.formats.slurm.records.with_steps`.
    """
    steps = record.get("steps")
    joules = {True: 0, False: 0}
    for step in steps if isinstance(steps, list) else ():
        name = word_in(part_of(step, "step", "name"))
        found = _resources(part_of(step, "tres", "requested", "total")).get("energy", 0)
        # In older records this one has 32 bits only.
        found = found or number_in(part_of(step, "statistics", "energy", "consumed")) or 0
        joules[name == "extern"] += max(parse_energy(str(max(found, 0)).encode()), 0)
    own = allocated.get("energy", 0)
    return str(own or joules[True] or joules[False] or "")


def row_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return an object as a row of ``sacct``, by the names in :data:`COLUMNS`."""
    allocated = _resources(part_of(record, "tres", "allocated"))
    requested = _resources(part_of(record, "tres", "requested"))
    used = (number_in(part_of(record, "time", "total", "seconds")) or 0) * 1000
    used += (number_in(part_of(record, "time", "total", "microseconds")) or 0) // 1000
    limit = part_of(record, "time", "limit")
    memory, tasks = _used_memory(record)
    idle, elapsed = (number_in(part_of(record, "time", name)) for name in ("suspended", "elapsed"))
    asked = number_in(part_of(record, "required", "CPUs"))
    code, signal = (
        part_of(record, "exit_code", "return_code"),
        part_of(record, "exit_code", "signal"),
    )
    for key in ("signal_id", "id"):
        signal = signal[key] if isinstance(signal, dict) and key in signal else signal
    return {
        "JobID": _identifier(record),
        "User": word_in(record.get("user")) or word_in(part_of(record, "association", "user")),
        "Account": word_in(record.get("account")),
        "JobName": word_in(record.get("name")),
        "Partition": word_in(record.get("partition")),
        "QOS": word_in(record.get("qos")),
        "Cluster": word_in(record.get("cluster")),
        "Submit": time_in(part_of(record, "time", "submission")),
        "Eligible": time_in(part_of(record, "time", "eligible")),
        "Start": time_in(part_of(record, "time", "start")),
        "End": time_in(part_of(record, "time", "end")),
        "ElapsedRaw": "" if elapsed is None else str(elapsed),  # a negative one is odd
        "Suspended": "" if idle is None else duration_text(1000 * max(idle, 0)),
        "State": _state(record),
        "AllocCPUS": str(allocated.get("cpu", 0)),
        "ReqCPUS": str(asked) if asked else str(requested.get("cpu", "")),
        "NNodes": count_in(record.get("allocation_nodes")),
        "TimelimitRaw": "UNLIMITED" if part_of(limit, "infinite") else count_in(limit),
        "ReqMem": f"{requested['mem']}M" if requested.get("mem") else "",
        "MaxRSS": memory,
        "NTasks": tasks,
        "TotalCPU": duration_text(max(used, 0)),
        "AllocTRES": _tres(allocated),
        "ReqTRES": _tres(requested),
        "NodeList": word_in(record.get("nodes")),
        "Reservation": word_in(part_of(record, "reservation", "name")),
        "Constraints": word_in(record.get("constraints")),
        "ExitCode": f"{number_in(code) or 0}:{number_in(signal) or 0}",
        "Priority": count_in(record.get("priority")),
        "SubmitLine": _line(record, requested),
        "ConsumedEnergyRaw": _energy(record, allocated),
    }


def _read(blocks: Iterable[bytes], source: str, options: FormatOptions) -> Trace:
    found = objects(blocks, source)
    first = next(found, {})
    if "job_state" in first:  # what squeue and scontrol print
        jobs = [row_of_queue(one, source) for one in chain([first], found)]
        return trace_of_queue(jobs, source, options)
    odd = OddValues(source, options.strict, lines=False)
    rows = rows_of(map(row_of, chain([first] if first else [], found)), odd)
    return trace_of(rows, source, options)


def _record(row: Mapping[str, str], memory: str, tasks: str) -> dict[str, Any]:
    """Return a row of ``sacct`` as an object of the data parser v0.0.38.

    Memory is that of a task, kB; all of it is written as that of one.
    """

    def number(name: str) -> int | None:
        text = row.get(name, "")
        return int(text) if text.isdecimal() else None

    def time(name: str) -> int:
        seconds = parse_time(row.get(name, "").encode())
        if seconds == NO_TIME:
            return 0
        return seconds - SINCE_1970 if seconds >= SINCE_1970 // 2 else seconds

    state, _, by = row["State"].partition(" by ")
    job, _, task = row["JobID"].partition("_")
    leader, plus, offset = job.partition("+")
    cpu = max(parse_duration(row.get("TotalCPU", "").encode()), 0)
    requested, allocated = number("ReqCPUS"), number("AllocCPUS")
    asked = row.get("ReqMem", "")
    most = {"type": "mem", "count": round(float(memory or 0) * int(tasks or 1) * 1024)}
    steps = [{"tasks": {"count": 1}, "tres": {"requested": {"max": [most]}}}]
    code, _, signal = row.get("ExitCode", "").partition(":")
    joules = [one for one in [number("ConsumedEnergyRaw")] if one]
    found = {
        "account": row["Account"],
        "allocation_nodes": number("NNodes"),
        "array": {
            "job_id": int(job) if task else 0,
            "task": task.strip("[]") if task.startswith("[") else None,
            "task_id": int(task) if task.isdecimal() else None,
        },
        "cluster": row["Cluster"],
        "constraints": row.get("Constraints", ""),
        "exit_code": {
            "return_code": int(code) if code.isdecimal() else 0,
            "signal": int(signal) if signal.isdecimal() else 0,
        },
        "het": {"job_id": int(leader) if plus else 0, "job_offset": int(offset) if plus else None},
        "job_id": int(leader),
        "kill_request_user": by or None,
        "name": row["JobName"],
        "nodes": row.get("NodeList", ""),
        "partition": row["Partition"],
        "priority": number("Priority"),
        "qos": row["QOS"],
        "required": {"CPUs": requested},
        "reservation": {"name": row.get("Reservation", "")},
        "state": {"current": state},
        "steps": steps if memory else [],
        "submit_line": row.get("SubmitLine", ""),
        "time": {
            "elapsed": number("ElapsedRaw"),
            "eligible": time("Eligible"),
            "end": time("End"),
            "limit": number("TimelimitRaw"),
            "start": time("Start"),
            "submission": time("Submit"),
            "suspended": int(max(parse_duration(row.get("Suspended", "").encode()), 0)),
            "total": {"seconds": int(cpu), "microseconds": round(cpu % 1 * 1_000_000)},
        },
        "tres": {
            "allocated": _listed(row.get("AllocTRES", ""), allocated, "")
            + [{"type": "energy", "name": None, "count": one} for one in joules],
            "requested": _listed(row.get("ReqTRES", ""), requested, asked),
        },
        "user": row["User"],
    }
    return found


def _listed(tres: str, processors: int | None, memory: str) -> list[dict[str, Any]]:
    """Return resources as a list, with the processors and memory if they are missing."""
    counts: dict[str, int] = {}
    for part in tres.split(","):
        name, equals, text = part.rpartition("=")
        unit = text[-1:] if name == "mem" else ""
        number = text[:-1] if unit in UNITS else text
        if equals and number.isdecimal():
            counts[name] = int(number) * UNITS.get(unit, 1)
    if processors is not None:
        counts.setdefault("cpu", processors)
    match = re.fullmatch(r"([0-9]+)Kc", memory)
    if match and processors and int(match[1]) * processors % 1024 == 0:
        counts.setdefault("mem", int(match[1]) * processors // 1024)
    found = []
    for name, count in counts.items():
        kind, _, more = name.partition("/")
        found.append({"type": kind, "name": more or None, "count": count})
    return found


def _write(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    text, order = written(trace, FormatOptions(queue=options.queue))
    header, *lines = text.decode().removesuffix("\n").split("\n")  # names may hold \x1c
    names = header.split("|")
    rows: list[tuple[dict[str, str], str, str]] = []
    for line in lines:
        row = dict(zip(names, line.split("|"), strict=True))
        if row["JobID"].endswith(".batch"):
            rows[-1] = rows[-1][0], row["MaxRSS"].removesuffix("K"), row["NTasks"]
        else:
            rows.append((row, "", ""))
    jobs = [json.dumps(_record(*row), separators=(",", ":")) for row in rows]
    meta = {"plugin": {"type": "openapi/dbv0.0.38", "name": "hpcrowd"}}
    data = f'{{"meta":{json.dumps(meta)},"errors":[],"jobs":[\n{",\n".join(jobs)}\n]}}\n'.encode()
    if lost.asked and len(trace):
        lost.read_back(trace, SACCT_JSON.parse(data, trace.source, options), REASONS, order)
    return data


#: The output of ``sacct --json``.
SACCT_JSON = Format(
    "sacct-json",
    "Slurm's accounting, sacct --json; squeue --json",
    (".sacct.json",),
    _looks_like,
    lambda data, source, options: _read([data], source, options),
    _write,
    longest_line=LONGEST_DOCUMENT,
    nearly=_nearly,
    block_reader=_read,
)

parse_sacct_json, generate_sacct_json = SACCT_JSON.parse, SACCT_JSON.generate
read_sacct_json, write_sacct_json = SACCT_JSON.read, SACCT_JSON.write
