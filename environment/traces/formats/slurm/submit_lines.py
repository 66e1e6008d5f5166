"""The options of ``sbatch`` in a submit line that the accounting keeps nowhere else.

What a script asks for in its ``#SBATCH`` lines is not in the submit line. :func:`request_columns`
makes columns of a trace from these lines and the accounting.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT
from hpcrowd.environment.traces.formats.slurm.table import Rows
from hpcrowd.environment.traces.formats.slurm.values import (
    NO_TIME,
    parse_requested_memory,
    parse_time,
)

#: Options with an argument, in their short and long forms.
OPTIONS = {
    "-d": "dependency", "--dependency": "dependency", "-b": "begin", "--begin": "begin",
    "-a": "array", "--array": "array", "-N": "nodes", "--nodes": "nodes", "-n": "tasks",
    "--ntasks": "tasks", "--ntasks-per-node": "tasks_per_node", "-c": "cores_per_task",
    "--cpus-per-task": "cores_per_task", "--mem": "memory_per_node",
    "--mem-per-cpu": "memory_per_core", "--mem-per-gpu": "memory_per_gpu", "--gres": "gres",
    "-G": "gpus", "--gpus": "gpus", "--gpus-per-node": "gpus_per_node",
    "--gpus-per-task": "gpus_per_task", "-C": "constraints", "--constraint": "constraints",
    "-p": "partitions", "--partition": "partitions", "--reservation": "reservation", "-q": "qos",
    "--qos": "qos", "--nice": "nice",
}  # fmt: skip

#: Options without an argument; the first word that is neither an option nor its argument is the
#: script. (Man page of ``sbatch``.)
ALONE = frozenset((
    "--exclusive", "--parsable", "-H", "--hold", "--requeue", "--no-requeue", "-Q", "--quiet", "-W",
    "--wait", "-v", "--verbose", "-k", "--no-kill", "-s", "--oversubscribe", "-O", "--overcommit",
    "--contiguous", "--spread-job", "--use-min-nodes", "--get-user-env", "--ignore-pbs", "--reboot",
    "--test-only", "-I", "--immediate", "--nice",
))  # fmt: skip

#: Options that are written for the columns beyond the fields.
WRITTEN = {
    "dependency": "--dependency={}", "begin": "--begin=now+{}", "throttle": "--array=0%{}",
    "exclusive": "--exclusive", "tasks": "--ntasks={}", "tasks_per_node": "--ntasks-per-node={}",
    "cores_per_task": "--cpus-per-task={}", "memory_per_node": "--mem={}",
    "memory_per_core": "--mem-per-cpu={}", "partitions": "--partition={}", "nice": "--nice={}",
    "no_requeue": "--no-requeue",
}  # fmt: skip

#: Columns of GPUs and their options; each is with the type if there is one.
GPUS = {"gpus": "--gpus", "gpus_per_node": "--gpus-per-node", "gpus_per_task": "--gpus-per-task"}

#: Columns of which :func:`line_of` writes options.
HELD = (*WRITTEN, "asked_nodes", "asked_max_nodes", *GPUS, "gpu_type")

#: Columns that a submit line may have.
IN_SUBMIT_LINES = (
    *(name for name in HELD if name not in ("dependency", "begin", "throttle", "exclusive")),
    "constraints", "reservation", "qos",
)  # fmt: skip

#: Seconds of the units of ``--begin=now+COUNT UNIT``.
UNITS = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}

#: MB of the units of memory, and the factors of those of counts.
MEGABYTES = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
THOUSANDS = {"": 1, "K": 1024, "M": 1024**2}

#: Written as the most nodes if only the least are known.
NO_MOST = 999_999_999

_NOW = re.compile(r"now(?:\+(\d{1,9})(second|minute|hour|day|week|)s?)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?", re.ASCII)
_DEPENDENCY = re.compile(r"(?:(?:after\w*:[\d_+:?,*%]+|singleton)[,?]?)+")
_THROTTLE = re.compile(r"%(\d{1,9})$")
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)B?", re.I | re.ASCII)
_COUNT = re.compile(r"(\d{1,9})([KM]?)", re.I | re.ASCII)
_NICE = re.compile(r"-?\d{1,10}", re.ASCII)
_GPU = re.compile(r"(?:gres[:/])?gpu(?:[:=](?P<words>[^,]*))?")
_SAFE = re.compile(r"[\w&|*\[\]().,+:@-]{1,500}")


@dataclass(frozen=True)
class Asked:
    """What a submit line asks for."""

    dependency: str = ""  #: as in ``afterok:17``; empty for none
    begin: int = 0  #: s after the submission; 0 if it is not relative to it, or not given
    throttle: int = 0  #: most tasks of an array at a time; 0 for no limit
    exclusive: bool = False  #: whether whole nodes
    #: The other columns of :data:`IN_SUBMIT_LINES` that it has, by name.
    columns: Mapping[str, str] = field(default_factory=dict)
    #: The earliest start as a local time of sacct; empty if it is counted from the submission.
    moment: str = ""


@lru_cache(maxsize=4096)
def asked_in(line: str) -> Asked:
    """Return what the options before the script ask for; nothing if the line cannot be split."""
    try:
        words = shlex.split(line, posix=True)
    except ValueError:
        words = line.split()
    found: dict[str, str] = {}
    exclusive = False
    place = 1
    while place < len(words) and words[place].startswith("-"):
        name, equals, value = words[place].partition("=")
        place += 1
        short = not name.startswith("--")
        if short and len(name) > 2:
            name, value, equals = name[:2], words[place - 1][2:], "="  # -dafterok:17
        if name == "--exclusive":
            exclusive = True
        elif name in ("--requeue", "--no-requeue"):
            found["no_requeue"] = "1" if name == "--no-requeue" else ""
        elif name == "--nice":
            value = value or "100"  # what sbatch takes without a number
        elif not equals and name not in ALONE:
            value = words[place] if place < len(words) else ""
            place += 1
        if name in OPTIONS:
            found[OPTIONS[name]] = value
    dependency = found.get("dependency", "")
    begin = _NOW.fullmatch(found.get("begin", ""))
    throttle = _THROTTLE.search(found.get("array", ""))
    return Asked(
        dependency if _DEPENDENCY.fullmatch(dependency) else "",
        int(begin[1] or 0) * UNITS[begin[2] or ""] if begin else 0,
        int(throttle[1]) if throttle else 0,
        exclusive,
        {name: text for name, text in _columns(found).items() if text},
        _moment(found.get("begin", "")),
    )


def _moment(text: str) -> str:
    """Return a date, or date and time, as sacct writes a time; empty for anything else."""
    if not _MOMENT.fullmatch(text):
        return ""
    whole = text + "T00:00:00"[len(text) - len("2026-01-05") :]
    try:
        return whole if parse_time(whole.encode()) != NO_TIME else ""
    except ValueError:  # no day of the calendar
        return ""


def _columns(found: Mapping[str, str]) -> dict[str, str]:
    """Return options as texts of columns, without those that are malformed."""
    columns = {
        name: _count(found.get(name, "")) for name in ("tasks", "tasks_per_node", "cores_per_task")
    }
    columns |= {name: _size(found.get(name, "")) for name in ("memory_per_node", "memory_per_core")}
    columns["asked_nodes"], columns["asked_max_nodes"] = _nodes(found.get("nodes", ""))
    types = []
    for name in GPUS:
        parts = filter(None, found.get(name, "").split(","))  # a100:2,v100:1
        columns[name], kind = gpus_in(",".join(f"gpu:{part}" for part in parts))
        types.append(kind)
    if "gres" in found and not columns["gpus_per_node"]:
        columns["gpus_per_node"], kind = gpus_in(found["gres"])
        types.append(kind)
    columns["gpu_type"] = next(filter(None, types), "")
    each = _size(found.get("memory_per_gpu", ""))
    if each and columns["gpus_per_node"] and not columns["memory_per_node"]:
        columns["memory_per_node"] = str(int(each) * int(columns["gpus_per_node"]))
    for name in ("constraints", "partitions", "reservation", "qos"):
        columns[name] = found[name] if _SAFE.fullmatch(found.get(name, "")) else ""
    nice = found.get("nice", "")
    columns["nice"] = nice if _NICE.fullmatch(nice) else ""
    return columns | {"no_requeue": found.get("no_requeue", "")}


def _count(text: str) -> str:
    match = _COUNT.fullmatch(text)
    return str(int(match[1]) * THOUSANDS[match[2].upper()]) if match else ""


def _size(text: str) -> str:
    """Return memory in MB, rounded up; it is in MB without a unit."""
    match = _SIZE.fullmatch(text)
    size = -int(-int(match[1]) * MEGABYTES[match[2].upper()] // 1) if match else -1
    return str(size) if 0 <= size <= LARGEST_EXACT else ""


def _nodes(text: str) -> tuple[str, str]:
    """Return least and most nodes of ``2``, ``2-4`` or a list of sizes such as ``1,4-8``."""
    counts = [_count(part) for one in text.split(",") for part in one.partition(":")[0].split("-")]
    if not all(counts):
        return "", ""
    sizes = [int(one) for one in counts]
    return str(min(sizes)), "" if max(sizes) == NO_MOST else str(max(sizes))


def gpus_in(text: str) -> tuple[str, str]:
    """Return count and type of the GPUs in ``gpu:a100:2,lustre:1``; empty for what it lacks.

    Slurm also writes ``gres:gpu:2`` and ``gres/gpu:a100=2``. Of several types there is no type.
    """
    total, types = 0, set()
    for part in text.split(","):
        match = _GPU.fullmatch(part)
        if match is None:
            continue
        words = re.split("[:=]", match["words"] or "")
        count = words.pop() if words[-1].isdecimal() else "1"
        total += int(count[:9])
        types.add(words[0] if words else "")
    return str(total or ""), types.pop() if len(types) == 1 else ""


def line_of(columns: Mapping[str, str]) -> str:
    """Return a submit line with the options of columns of :data:`HELD`; empty without any."""
    told = {name: text for name, text in columns.items() if text}
    words = [form.format(told[name]) for name, form in WRITTEN.items() if name in told]
    least, most = told.get("asked_nodes"), told.get("asked_max_nodes")
    if least or most:
        least = least or "1"
        words.append(f"--nodes={least if most == least else f'{least}-{most or NO_MOST}'}")
    kind = told.get("gpu_type")
    words += [f"{option}={kind + ':' if kind else ''}{told[name]}"
              for name, option in GPUS.items() if name in told]  # fmt: skip
    return f"sbatch {' '.join(words)}" if words else ""


def with_options(line: str, options: Iterable[str]) -> str:
    """Return a submit line with more options, which come first: those of the line count more."""
    command, _, rest = line.partition(" ")
    more = " ".join(filter(None, options))
    return f"{command or 'sbatch'} {more} {rest}".strip() if more else line


#: Columns that the accounting has itself; it knows better than a submit line.
IN_ACCOUNTING = ("qos", "reservation", "constraints")

Texts = NDArray[np.object_]


def request_columns(
    rows: Rows, row: Int64s, apart: Sequence[int], lines: Sequence[Mapping[str, str]],
    which: Int64s, queue: str,
) -> dict[str, Texts]:  # fmt: skip
    """Return the columns that submit lines have, and those that an older version has.

    Parameters
    ----------
    row, which
        The row and the submit line of each job, shape (jobs,).
    apart
        Heterogeneous jobs; as their parts ask for different things, nothing is said of them.
    queue
        The column of the accounting that is the queue.
    """
    told: dict[str, Texts] = {}
    for name in IN_SUBMIT_LINES:
        texts = [line.get(name, "") for line in lines]
        if any(texts) and not (name in IN_ACCOUNTING and name in rows.words):
            told[name] = np.array(texts, np.object_)[which]
    listed = told.pop("partitions", None)
    if "partition" in rows.words and (listed is not None or queue == "qos"):
        names = _words(rows, "partition", row)
        found = names if queue == "qos" else np.full(len(row), "", np.object_)
        if listed is not None:  # the accounting names the one that it ran in
            pairs = zip(listed.tolist(), names.tolist(), strict=True)
            among = ["," in texts and name in texts.split(",") for texts, name in pairs]
            found = np.where(among, listed, found)
        told["partitions"] = found
    if queue == "qos" and "qos" in rows.words:
        told["qos"] = _words(rows, "qos", row)
    if "reqmem" in rows.words and "memory_per_node" not in told:
        codes, words = rows.words["reqmem"]
        sizes = [parse_requested_memory(word) for word in words]
        texts = [str(max(int(np.ceil(one.kilobytes / 1024)), 0)) if one.of == "n" else ""
                 for one in sizes]  # fmt: skip
        if any(texts):
            told["memory_per_node"] = np.array(texts, np.object_)[codes[row]]
    for column in told.values():
        column[list(apart)] = ""
    return told


def _words(rows: Rows, column: str, row: Int64s) -> Texts:
    """Return a column of words, shape (jobs,)."""
    codes, texts = rows.decoded(column)
    return np.asarray(np.array(texts, np.object_)[codes[row]])
