r"""Workloads of Batsim: JSON with jobs and profiles.

::

    {"nb_res": 100,
     "jobs": [
      {"id": "1", "subtime": 0, "walltime": 90, "res": 4, "profile": "delay60", "user": 7},
      ...],
     "profiles": {
      "delay60": {"type": "delay", "delay": 60}}}

A profile of the type ``delay`` is a run time, and so is a sequence of them; the other types take
as long as the platform makes them, so they tell no run time.

Batsim passes any other key of a job on to the scheduler. So all that a trace knows is written under
the names of :data:`environment.trace.FIELDS` and of the columns of other formats, and its header as
a list of lines: reading it back gives the same trace. Batsim's own five keys hold what it can run.
Where the trace holds something else (no processors, no time of submission, a run time of 0 or none
at all) the key with our name tells, and it is what counts when the file is read.

Source: documentation of Batsim (Workload), and what its reader demands (``Job::from_json``,
``Profile::from_json``): numbers of resources are whole, walltimes -1 or positive, delays positive.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from environment.errors import TraceError
from environment.formats.base import LONGEST_DOCUMENT, Format, Losses, as_bytes
from environment.formats.batsim_reader import (
    JOB_KEYS,
    LONGEST_NUMBER,
    MOST_COLUMNS,
    WorkloadReader,
)
from environment.formats.files import read_as, write_file
from environment.formats.json_text import parse_json
from environment.formats.names import NAMED, NOTHING, known, number_text, worded
from environment.trace import FIELDS, Trace

#: s; what a job runs in Batsim that did not run at all, or for 0 s: its delays must be positive.
SHORTEST_DELAY = 0.001


def read_batsim(path: str | os.PathLike[str]) -> Trace:
    """Read a workload of Batsim, plain or gzipped.

    Raises
    ------
    TraceError
        When the file is missing, cut short or no workload.
    ParseError
        When it is malformed; it names the line.
    """
    return read_as(path, parse_batsim, LONGEST_DOCUMENT)


def parse_batsim(data: bytes | str, source: str = "trace") -> Trace:
    """Return the trace that ``data`` holds; ``source`` names it in messages.

    Raises
    ------
    TraceError, ParseError
        As :func:`read_batsim`.
    """
    data = as_bytes(data)
    if not data.strip():
        raise TraceError(f"{source}: is empty; a workload of Batsim has jobs and profiles")
    document = parse_json(data, source)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    profiles = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise TraceError(
            f"{source}: no workload of Batsim; that has a list jobs and a map profiles"
        )
    if not jobs:
        raise TraceError(f"{source}: holds no job")
    try:
        return WorkloadReader(data, source, document, jobs, profiles).trace()
    except RecursionError:
        raise TraceError(f"{source}: a job is nested too deeply to be read") from None


def generate_batsim(trace: Trace, lost: Losses | None = None) -> bytes:
    """Return ``trace`` as a workload of Batsim, one job a line, one profile for each run time.

    Parameters
    ----------
    trace
        The trace.
    lost
        Counts what the format cannot hold.
    """
    lost = Losses() if lost is None else lost
    words = {}
    odd = NOTHING - {"-1"}
    for name in NAMED:
        words[name] = worded(trace, name)
        lost.add(name, sum(w in odd for w in words[name]), "a word that stands for unknown")
    extra = {}
    for name, texts in trace.extra.items():
        if name in FIELDS or name in JOB_KEYS:
            lost.add(name, known(texts), "a name that stands for something else")
        elif known(texts).any():
            extra[name] = texts.tolist()
    for name in list(extra)[MOST_COLUMNS:]:
        lost.add(name, known(trace.extra[name]), f"more than {MOST_COLUMNS} columns")
        del extra[name]
    values = {name: trace[name].tolist() for name in FIELDS if name not in NAMED}
    numbers: Counter[float] = Counter(values["number"])
    delays: dict[str, float] = {}
    largest = 1
    jobs = []
    for place in range(len(trace)):
        row = {name: column[place] for name, column in values.items() if column[place] != -1}
        job, delay = _job(row, place, numbers)
        largest = max(largest, job["res"])
        delays[job["profile"]] = delay
        job |= {name: _brief(value) for name, value in row.items()}
        for name in NAMED:
            word = words[name][place]
            if word != "-1":
                job[name] = word if trace.names.get(name) else _brief(trace[name][place].item())
        job |= {name: column[place] for name, column in extra.items() if column[place]}
        jobs.append(json.dumps(job))
    document: dict[str, Any] = {
        "nb_res": trace.header.processors or largest,
        "header": [line.decode("utf-8", "surrogateescape") for line in trace.header.lines],
    }
    if trace.comments:
        comments = [
            (place, line.decode("utf-8", "surrogateescape")) for place, line in trace.comments
        ]
        document["comments"] = comments
    profiles = [
        f"{json.dumps(name)}: " + json.dumps({"type": "delay", "delay": delay})
        for name, delay in delays.items()
    ]
    parts = [json.dumps({key: value})[1:-1] for key, value in document.items()]
    parts.append('"jobs": [\n' + ",\n".join(jobs) + "\n]")
    parts.append('"profiles": {\n' + ",\n".join(profiles) + "\n}")
    return ("{" + ",\n".join(parts) + "}\n").encode()


def _job(
    row: dict[str, float], place: int, numbers: Counter[float]
) -> tuple[dict[str, Any], float]:
    """Return what Batsim reads of a job, with its delay in s.

    What that tells exactly is taken out of ``row``; the rest must be told by our own keys.
    """
    submit, run = row.get("submit", -1), row.get("run", -1)
    number, walltime = row.get("number", -1), row.get("requested_time", -1)
    requested = row.get("requested_processors", -1)
    job: dict[str, Any] = {}
    if 0 <= number < 10**LONGEST_NUMBER and number == int(number) and numbers[number] == 1:
        job["id"] = number_text(row.pop("number"))
    else:
        job["id"] = f"line{place + 1}"
        row["number"] = number
    job["subtime"] = _brief(max(submit, 0))
    row.pop("submit", None)
    if submit < 0:
        row["submit"] = submit
    if walltime > 0:
        job["walltime"] = _brief(row.pop("requested_time"))
    size = requested if requested > 0 else row.get("allocated_processors", -1)
    job["res"] = max(int(-(-size // 1)), 1)
    row.pop("requested_processors", None)
    if job["res"] != requested:
        row["requested_processors"] = requested
    delay = _brief(run if run > 0 else SHORTEST_DELAY)
    job["profile"] = f"delay{number_text(delay)}"
    row.pop("run", None)
    if run <= 0:
        row["run"] = run
    return job, delay


def _brief(value: float) -> float:
    return int(value) if value == int(value) else value


def write_batsim(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write ``trace`` to ``path``, gzipped if that ends in ``.gz``; the file is whole or absent.

    Raises
    ------
    TraceError
        When it cannot be written.
    """
    write_file(generate_batsim(trace), path)


def _looks_like(head: bytes) -> bool:
    """Whether it begins as JSON with a key that workloads have."""
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return head[:1] == b"{" and any(key in head for key in (b'"nb_res"', b'"jobs"', b'"profiles"'))


#: Workloads of Batsim.
BATSIM = Format(
    "batsim",
    "workload of Batsim (JSON)",
    (".json",),
    _looks_like,
    lambda data, source, _: parse_batsim(data, source),
    lambda trace, lost, _: generate_batsim(trace, lost),
    longest_line=LONGEST_DOCUMENT,
    holds_names=True,
)
