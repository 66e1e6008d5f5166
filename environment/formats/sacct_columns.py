"""The header of Slurm's accounting: which columns there are, and what each of them is read as."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from environment.formats import sacct_values as values
from environment.formats.sacct_times import parse_time
from environment.trace import decode

#: Columns that are of use, in the order in which they are written.
COLUMNS = (
    *("JobID", "User", "Account", "JobName", "Partition", "QOS", "Cluster", "Submit", "Start"),
    *("End", "ElapsedRaw", "State", "AllocCPUS", "ReqCPUS", "NNodes", "TimelimitRaw", "ReqMem"),
    *("MaxRSS", "TotalCPU"),
)

#: A command that writes them.
COMMAND = f"sacct -a -D -P -S 2024-01-01 --format={','.join(COLUMNS)}"

#: What each value is read as, by what columns are called in lower case; of those of the same key
#: the first that the header has counts.
READ_AS: dict[str, dict[str, Callable[[bytes], Any]]] = {
    "submit": {"submit": parse_time},
    "start": {"start": parse_time},
    "end": {"end": parse_time},
    "elapsed": {"elapsedraw": values.parse_whole, "elapsed": values.parse_seconds},
    "allocated": {"alloccpus": values.parse_count, "ncpus": values.parse_count,
                  "alloctres": values.parse_cpus},
    "requested": {"reqcpus": values.parse_count, "reqtres": values.parse_cpus},
    "nodes": {"nnodes": values.parse_count, "allocnodes": values.parse_count,
              "reqnodes": values.parse_count},
    "limit": {"timelimitraw": values.parse_limit_minutes, "timelimit": values.parse_limit},
    "total_cpu": {"totalcpu": values.parse_duration},
}  # fmt: skip

#: Columns of words, of which numbers are made when all is read.
WORDS: dict[str, Callable[[bytes], Any]] = {
    "state": values.parse_state,
    "reqmem": values.parse_requested_memory,
    **dict.fromkeys(
        ("user", "uid", "account", "group", "gid", "jobname", "partition", "qos", "cluster"), decode
    ),
}

#: Columns of steps.
MEMORY = {"maxrss": values.parse_used_memory, "averss": values.parse_used_memory}

#: Columns that number the jobs. The second tells neither arrays nor heterogeneous jobs.
IDS = ("jobid", "jobidraw")

#: Groups of columns of which one is needed.
NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("State",),
    ("Start", "End"),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES"),
)

_FIRST_NAME = re.compile(rb"\s*[A-Za-z]+([^A-Za-z0-9_])")


@dataclass(frozen=True)
class Layout:
    """How a text of Slurm's accounting is laid out.

    Attributes
    ----------
    names
        Columns in lower case, "" for the one that ``-p`` leaves empty at the end.
    delimiter
        The character between values.
    line, begin
        Line of the header, from 1, and where the rows begin, in bytes.
    header
        The line itself.
    """

    names: tuple[str, ...]
    delimiter: bytes
    line: int
    begin: int
    header: bytes

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each of the columns that are used stands, by name."""
        wanted = {
            *IDS[:1],
            *WORDS,
            *MEMORY,
            *(name for names in READ_AS.values() for name in names),
        }
        if IDS[0] not in self.names:
            wanted.add(IDS[1])
        for names in READ_AS.values():  # the first that there is counts
            wanted -= set([name for name in names if name in self.names][1:])
        return {name: self.names.index(name) for name in sorted(wanted) if name in self.names}

    @property
    def id(self) -> str:
        """The column that numbers the jobs."""
        return IDS[0] if IDS[0] in self.names else IDS[1]

    def key(self, name: str) -> str | None:
        """Return what a column is read as; None for words, memory and numbers of jobs."""
        return next((key for key, names in READ_AS.items() if name in names), None)

    def called(self, name: str) -> str:
        """Return a column's name as the header spells it."""
        return self.header.split(self.delimiter)[self.names.index(name)].strip().decode("latin-1")


def find_layout(head: bytes) -> Layout | None:
    """Return the layout of a text by its beginning; None if it has no header of sacct."""
    begin, line = 0, 1
    for raw in head.splitlines(keepends=True):
        if raw.strip():
            break
        begin, line = begin + len(raw), line + 1
    else:
        return None
    match = _FIRST_NAME.match(raw)
    if match is None or match[1] in b" \r\n":
        return None
    header = raw.rstrip(b"\r\n")
    names = tuple(name.strip().lower().decode("latin-1") for name in header.split(match[1]))
    if not set(IDS) & set(names) or not {"submit", "state", "start", "end"} & set(names):
        return None
    return Layout(names, match[1], line, begin + len(raw), header)
