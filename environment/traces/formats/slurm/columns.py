"""The columns of Slurm's accounting: which are read and as what, and the header of a text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hpcrowd.environment.errors import ParseError, TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.files import LONGEST_LINE, shown
from hpcrowd.environment.traces.formats.slurm import values
from hpcrowd.environment.traces.formats.slurm.values import parse_time

#: The columns in use, in the order in which they are written.
COLUMNS = (
    *("JobID", "User", "Account", "JobName", "Partition", "QOS", "Cluster", "Submit", "Start"),
    *("End", "ElapsedRaw", "State", "AllocCPUS", "ReqCPUS", "NNodes", "TimelimitRaw", "ReqMem"),
    *("MaxRSS", "NTasks", "TotalCPU"),
)

#: A command that writes them.
COMMAND = f"sacct -a -D -P -S now-90days --format={','.join(COLUMNS)}"

#: Key and parser of each column, by its name in lower case; of several columns with the same key
#: the first one in the header counts.
READ_AS: dict[str, dict[str, Callable[[bytes], Any]]] = {
    "submit": {"submit": parse_time},
    "start": {"start": parse_time},
    "end": {"end": parse_time},
    "eligible": {"eligible": parse_time},
    "suspended": {"suspended": values.parse_seconds},
    "elapsed": {"elapsedraw": values.parse_whole, "elapsed": values.parse_seconds},
    "allocated": {"alloccpus": values.parse_count, "ncpus": values.parse_count,
                  "alloctres": values.parse_cpus},
    "requested": {"reqcpus": values.parse_count, "reqtres": values.parse_cpus},
    "nodes": {"nnodes": values.parse_count, "allocnodes": values.parse_count,
              "reqnodes": values.parse_count},
    "limit": {"timelimitraw": values.parse_limit_minutes, "timelimit": values.parse_limit},
    "total_cpu": {"totalcpu": values.parse_duration},
}  # fmt: skip

#: Columns of words that become columns beyond the fields, and the names of these.
SITE_WORDS = {
    "AllocTRES": "alloc_tres", "ReqTRES": "req_tres", "NodeList": "node_list",
    "Reservation": "reservation", "Constraints": "constraints", "ExitCode": "exit_code",
    "Priority": "priority",
}  # fmt: skip

#: The column of words whose options are searched.
SUBMIT_LINE = "submitline"

#: Columns of words, which are numbered when everything has been read.
WORDS: dict[str, Callable[[bytes], Any]] = {
    "state": values.parse_state,
    "reqmem": values.parse_requested_memory,
    **dict.fromkeys(
        ("user", "uid", "account", "group", "gid", "jobname", "partition", "qos", "cluster"), decode
    ),
    **dict.fromkeys((*map(str.lower, SITE_WORDS), SUBMIT_LINE), decode),
}

#: Columns of steps.
MEMORY = {"maxrss": values.parse_used_memory, "averss": values.parse_used_memory}

#: The column with the number of tasks of a step, each of which has its own memory.
TASKS = "ntasks"

#: Columns with the energy of jobs and of steps; the first one in use counts, J.
ENERGY: dict[str, Callable[[bytes], Any]] = {
    "consumedenergyraw": values.parse_energy,
    "consumedenergy": values.parse_energy,
    "alloctres": values.parse_energy_of,
}

#: Columns that are read of steps.
OF_STEPS = frozenset((*MEMORY, TASKS, *ENERGY, "cluster"))

#: Columns with job numbers. The second knows neither arrays nor heterogeneous jobs.
IDS = ("jobid", "jobidraw")

#: Groups of columns; one of each group is required.
NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("State",),
    ("Start", "End"),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES"),
)

#: A job, a task of an array, the rest of an array, or a part of a heterogeneous job; a step.
ID = r"^[0-9]{1,18}(_[0-9]{1,18}|_\[[-0-9,:%.]*\]?|\+[0-9]{1,18})?(\.[^.]*)?$"

#: Of these a step: the points in ``77_[1,3,...]`` do not make one.
STEP = r"^[^\[]*\.|\]\."

#: The rule for job numbers.
NO_ID = "not a job or step number, such as 1234, 1234_5, 1234+0 or 1234.batch"

_FIRST_NAME = re.compile(rb"\s*[A-Za-z]+([^A-Za-z0-9_]+)")
_HEADLESS = re.compile(rb"[0-9]+(?:_[0-9]+|_\[[^\]]*\]|\+[0-9]+)?(?:\.[a-z0-9]+)?([^\w.+\[])")
_RULER = re.compile(rb"[ \t]*-+(?:[ \t]+-+)+[ \t]*")


@dataclass(frozen=True)
class Layout:
    """The layout of a text of Slurm's accounting."""

    #: Columns in lower case, "" for the one that ``-p`` leaves empty at the end.
    names: tuple[str, ...]
    delimiter: bytes  #: the character between values
    #: Line of the header, from 1, and offset of the first row, in bytes.
    line: int
    begin: int
    header: bytes  #: the line itself
    mark: bytes = b""  #: the delimiter of the file, if it was replaced by one of a single byte

    @cached_property
    def places(self) -> dict[str, int]:
        """Index of each column in use, by name."""
        wanted = {
            *IDS[:1],
            *WORDS,
            *MEMORY,
            TASKS,
            *ENERGY,
            *(name for names in READ_AS.values() for name in names),
        }
        if IDS[0] not in self.names:
            wanted.add(IDS[1])
        for names in READ_AS.values():  # the first one in the header counts
            wanted -= set([name for name in names if name in self.names][1:]) - set(WORDS)
        wanted -= {name for name in ENERGY if name != self.energy} - set(WORDS)
        return {name: self.names.index(name) for name in sorted(wanted) if name in self.names}

    @property
    def id(self) -> str:
        """The column with job numbers."""
        return IDS[0] if IDS[0] in self.names else IDS[1]

    @property
    def energy(self) -> str | None:
        """The column with the energy of jobs; None if there is none."""
        return next((name for name in ENERGY if name in self.names), None)

    def key(self, name: str) -> str | None:
        """Return the key of a column; None for words, memory and job numbers."""
        for key, names in READ_AS.items():
            if name in names:
                first = next(one for one in names if one in self.names)
                return key if name == first else None
        return None

    @property
    def unused(self) -> list[str]:
        """Names of the columns that are not read, as the header spells them."""
        return [self.called(name) for name in self.names if name and name not in self.places]

    def called(self, name: str) -> str:
        """Return a column's name as the header spells it."""
        return self.header.split(self.delimiter)[self.names.index(name)].strip().decode("latin-1")


def find_layout(head: bytes) -> Layout | None:
    """Return the layout of a text from its beginning; None if it has no header of sacct."""
    begin, line = 0, 1
    for raw in head.splitlines(keepends=True):
        if raw.strip():
            break
        begin, line = begin + len(raw), line + 1
    else:
        return None
    match = _FIRST_NAME.match(raw)
    if match is None or not match[1].strip(b" \r\n"):
        return None
    header = raw.rstrip(b"\r\n")
    names = tuple(name.strip().lower().decode("latin-1") for name in header.split(match[1]))
    if not set(IDS) & set(names) or not {"submit", "state", "start", "end"} & set(names):
        return None
    return Layout(names, match[1], line, begin + len(raw), header)


def is_cut(head: bytes) -> str | None:
    """Return why output of sacct cannot be read, and the cure; None if this is none of it."""
    lines = [line for line in head.splitlines()[:50] if line.strip()]
    if not lines:
        return None
    if len(lines) > 1 and b"JobID" in lines[0] and _RULER.fullmatch(lines[1]):
        return "columns of fixed width, which cut values off; write it again with -P"
    match = _HEADLESS.match(lines[0])
    cells = lines[0].split(match[1]) if match and match[1].strip() else []
    states = {name.encode() for name in values.STATES}
    if len(cells) > 3 and any(cell.partition(b" ")[0] in states for cell in cells):
        return "no header with the names of its columns; write it again without -n (--noheader)"
    return None


def lines_of(data: bytes, begin: int, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, text) from offset ``begin`` on; ``first`` is the first line number."""
    text = io.BytesIO(data)
    text.seek(begin)
    number = first
    for raw in text:
        for line in raw.splitlines():
            yield number, line
            number += 1


def explain_header(data: bytes, source: str) -> None:
    """Raise the error for a text that does not begin with a header of sacct."""
    if not data.strip():
        raise TraceError(f"{source}: is empty; Slurm's accounting has a header and a line per job")
    if b"\0" in data[:4096]:
        raise TraceError(f"{source}: is a binary file, not output of sacct")
    number, line = next((n, text) for n, text in lines_of(data, 0, 1) if text.strip())
    if (why := is_cut(data[: 2 * LONGEST_LINE])) is not None:
        raise ParseError(source, number, None, shown(line)[:40], why)
    rule = (
        f"not a header of sacct with JobID, Submit and State, separated by one character; "
        f"write the file with {COMMAND}"
    )
    raise ParseError(source, number, None, shown(line)[:40], rule)
