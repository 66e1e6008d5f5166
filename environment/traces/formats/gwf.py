r"""The Grid Workload Format: one job per line, 29 fields, comments that begin with ``#``.

::

    # MaxProcs: 475
    # JobID SubmitTime WaitTime RunTime NProcs ...
    1 1136070024 203761 138467 1 138371 98652 1 259200 -1 1 U1 G1 -1 Q1 -1 O1 R1 UNITARY -1 ...

Fields are separated by tabs or blanks; -1 means unknown. The first 16 are those of the Standard
Workload Format (users, groups, executables, queues and partitions may be words), followed by

    17 OrigSiteID   18 LastRunSiteID   19 JobStructure     20 JobStructureParams   21 UsedNetwork
    22 UsedLocalDiskSpace   23 UsedResources   24 ReqPlatform   25 ReqNetwork
    26 ReqLocalDiskSpace    27 ReqResources    28 VOID          29 ProjectID

which are kept in :attr:`extra`. There are no fields for preceding jobs and think times.
In memory the ``#`` of comments becomes ``;``, so that header lines such as ``# MaxProcs: 475`` mean
the same in both formats. If submissions are Unix times, the origin is moved to the first one. A
first line of names without ``#`` becomes a comment, too, and is counted.

Source: Grid Workloads Archive (Iosup et al. 2008), fields as they are named in its logs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import MOST_HELD, Header, decode, most_in_use
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses
from hpcrowd.environment.traces.formats.common.files import (
    MARK,
    TITLES,
    explain,
    first_line,
    is_title,
    join_lines,
    mostly,
    rows_in,
    separate,
    without_title,
)
from hpcrowd.environment.traces.formats.common.names import (
    NAMED,
    NOTHING,
    is_number,
    number_text,
    numbered,
    parse_numbers,
    plain,
    worded,
)
from hpcrowd.environment.traces.headers import (
    READ_AS_UNIX,
    count_from_first,
    first_unix_time,
    left_out,
)
from hpcrowd.environment.traces.trace import FIELDS, Trace, all_columns

#: Fields 17 to 29, by their names in :attr:`Trace.extra`.
GRID_FIELDS = (
    "orig_site",
    "last_run_site",
    "job_structure",
    "job_structure_parameters",
    "used_network",
    "used_local_disk",
    "used_resources",
    "requested_platform",
    "requested_network",
    "requested_local_disk",
    "requested_resources",
    "virtual_organization",
    "project",
)

#: Fields 1 to 16.
SHARED_FIELDS = FIELDS[:16]

ALL_FIELDS = SHARED_FIELDS + GRID_FIELDS

#: Fields that must be numbers.
NUMERIC = tuple(name for name in SHARED_FIELDS if name not in (*NAMED, "memory"))

TITLE = "Grid Workload Format"

_COMMENT = b"#"


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if _is_workflow(data[:4096]):
        raise TraceError(
            f"{source}: holds workflows (columns WorkflowID, JobID, ...), not jobs in the {TITLE} "
            f"with its {len(ALL_FIELDS)} fields; hpcrowd cannot read it"
        )
    if not data.strip():
        raise TraceError(f"{source}: is empty; a trace has one line per job")
    if b"\0" in data[:4096]:
        raise TraceError(f"{source}: is a binary file, not a trace in the {TITLE}")
    lines, is_job = separate(data, source, _COMMENT)
    first = is_job.index(True) if any(is_job) else 0
    newline = b"\r\n" if lines[first].endswith(b"\r") else b"\n"
    if titles := is_title(lines[first], len(ALL_FIELDS)):
        lines[first], is_job[first] = _COMMENT + b" " + lines[first], False
    if not any(is_job):
        raise TraceError(f"{source}: contains no jobs; is it a trace in the {TITLE}?")
    # In memory comments are those of the Standard Workload Format.
    lines = [
        line if job else line.replace(_COMMENT, MARK, 1)
        for line, job in zip(lines, is_job, strict=True)
    ]
    before = np.cumsum(is_job).tolist()  # jobs up to and including each line
    others = [place for place, job in enumerate(is_job) if not job and place >= first + titles]
    places = np.flatnonzero(is_job).tolist()
    rows = [_words(lines[place]) for place in places]
    words = dict(zip(ALL_FIELDS, zip(*rows, strict=False), strict=False))
    numbers = {name: parse_numbers(words.get(name, ())) for name in NUMERIC}
    wrong = any(len(row) != len(ALL_FIELDS) for row in rows)
    if wrong or any(values is None for values in numbers.values()) or b"\0" in data:
        explain(rows, ALL_FIELDS, NUMERIC, lambda job: places[job] + 1, source, TITLE)
    repaired: Counter[str] = Counter()
    columns: dict[str, Any] = dict(numbers)
    columns["memory"], odd = _memory(words["memory"])
    if odd:
        repaired["memory is not a number: unknown"] = odd
    names: dict[str, dict[int, str]] = {}
    for name in NAMED:
        columns[name], found = numbered(*_coded(words[name]))
        if found:
            names[name] = found
    extra = {}
    for name in GRID_FIELDS:
        codes, texts = _coded(words[name])
        if any(texts):
            extra[name] = np.array(texts, np.object_)[codes]
    trace = Trace(
        Header(lines[: first + titles]),
        all_columns(columns, len(rows)),
        [(before[place], lines[place]) for place in others],
        newline,
        source,
        names=names,
        extra=extra,
        repaired=repaired,
    )
    trace.dropped.update({TITLES: 1} if titles else {})
    trace.dropped.update(left_out(trace.header))
    if count_from_first(trace) and trace.header.processors is None:
        _add_size(trace)
    return trace


def _is_workflow(head: bytes) -> bool:
    """Return whether a file begins like a workflow of OpenDC; their names also end in .gwf."""
    return first_line(head, _COMMENT).lower().startswith(b"workflowid")


def _words(line: bytes) -> list[bytes]:
    """Return the fields of a line, split at tabs if there are enough of them, else at blanks."""
    if line.count(b"\t") == len(ALL_FIELDS) - 1:
        return [word.strip() or b"-1" for word in line.split(b"\t")]
    return line.split()


def _coded(words: tuple[bytes, ...]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the index of each word among the distinct ones, and these as text, "" if unknown."""
    places: dict[bytes, int] = {}
    codes = np.array([places.setdefault(word, len(places)) for word in words], np.int64)
    return codes, ["" if word == b"-1" else decode(word) for word in places]


def _memory(words: tuple[bytes, ...]) -> tuple[NDArray[np.float64], int]:
    """Return the memory used, and the number of jobs where it is not a number, as in some logs."""
    values = parse_numbers(words)
    if values is not None:
        return values, 0
    good = [is_number(word) for word in words]
    texts = [word if fine else b"-1" for word, fine in zip(words, good, strict=True)]
    values = parse_numbers(texts)
    assert values is not None
    return values, len(words) - sum(good)


def _add_size(trace: Trace) -> None:
    """Put the most processors that jobs held at one time into the header."""
    submit = trace["submit"]
    waited = np.maximum(trace["wait"], 0).astype(np.float64)  # small integers would overflow
    start = np.floor(submit + waited).astype(np.int64)
    run, processors = trace["run"], trace["allocated_processors"]
    ran = (submit != UNKNOWN) & (run > 0) & (processors > 0)
    end = np.ceil(start + np.maximum(run, 0)).astype(np.int64)
    most = most_in_use(start[ran], end[ran], np.ceil(processors[ran]).astype(np.int64))
    if most:
        lines = (f"; MaxProcs: {most}", f"; Note: {MOST_HELD}")
        trace.header.lines += [line.encode() for line in lines]


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    lost.unheld(trace, FIELDS[16:], "no field for it")
    if first_unix_time(trace):
        lost.add("submit", trace["submit"] != UNKNOWN, READ_AS_UNIX)
    lost.unheld_extra(trace, GRID_FIELDS, "no field for it")
    columns = []
    for name in SHARED_FIELDS:
        if name in NAMED:
            columns.append(_written(worded(trace, name), name, lost, NOTHING - {"-1"}))
        else:
            columns.append(list(map(number_text, trace[name].tolist())))
    for name in GRID_FIELDS:
        if name in trace.extra:
            texts = list(trace.extra[name])
            columns.append(_written(texts, name, lost, frozenset(("-1",))))
        else:
            columns.append(["-1"] * len(trace))
    jobs = ["\t".join(words).encode() for words in zip(*columns, strict=True)]
    return join_lines(trace, jobs, _COMMENT)


def _written(words: list[str], name: str, lost: Losses, nothing: frozenset[str]) -> list[str]:
    """Return words as the format can hold them, and count those that are read back differently."""
    reason = "blanks, or characters that a line cannot hold"
    written = lost.respelled(name, words, lambda word: plain(word) or "-1", reason)
    lost.add(name, sum(word in nothing for word in words), "a word that means unknown")
    return written


def _looks_like(head: bytes) -> bool:
    """Return whether most lines have 29 fields, the first a number, or it names workflows."""

    def is_job(row: bytes) -> bool:
        words = _words(row)
        return len(words) == len(ALL_FIELDS) and is_number(words[0])

    return mostly(without_title(rows_in(head, _COMMENT)), is_job) or _is_workflow(head)


#: The Grid Workload Format.
GWF = Format("gwf", TITLE, (".gwf",), _looks_like, _parse, _generate)

parse_gwf, generate_gwf = GWF.parse, GWF.generate
read_gwf, write_gwf = GWF.read, GWF.write
