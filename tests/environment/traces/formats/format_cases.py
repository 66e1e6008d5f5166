"""Traces in all formats: made-up ones, samples of text, and what a round trip keeps."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import Trace, parse_swf
from hpcrowd.environment.header import Header
from hpcrowd.environment.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.formats.common.accounting import submissions
from hpcrowd.environment.traces.formats.common.base import Format
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.environment.traces.formats.slurm.accounting import written
from hpcrowd.environment.traces.formats.tables.mapping import read_mapping
from hpcrowd.environment.traces.requests import requests_of
from hpcrowd.environment.traces.trace import FIELDS
from hpcrowd.errors import ParseError
from hpcrowd.formats import FormatOptions, Losses
from hypothesis import strategies as st

#: An own table that holds most fields, in other units and words.
MAPPING = """
delimiter = ";"
zone = "Europe/Stockholm"
processors = 64

[columns]
number = "Job"
submit = { column = "Submitted", time = "iso" }
start = { column = "Started", time = "iso" }
end = { column = "Ended", time = "iso" }
allocated_processors = "Cores"
requested_processors = "Cores wanted"
requested_time = { column = "Limit", unit = "clock" }
requested_memory = { column = "Memory", unit = "MB", per = "job" }
status = { column = "State", values = { done = 1, failed = 0, withdrawn = 5 } }
user = "Who"
group = "Project"
"""

HEADER = """; Version: 2.2
; Computer: made up
; MaxProcs: 64
; UnixStartTime: 843480000
; TimeZoneString: Europe/Stockholm"""


#: Four jobs of it: one fails, one never ran, one ran for no time, one has fractions.
JOBS = b"""1 0 5 60 4 12 900 4 90 1024 1 7 3 2 1 1 -1 -1
2 30 -1 -1 2 -1 -1 2 60 -1 5 7 3 2 1 1 1 25
3 45 70 600.5 1 -1 -1 -1 -1 -1 0 9 4 5 2 1 -1 -1
4 45 0 0 64 -1 -1 64 86400 -1 1 9 4 5 2 1 -1 -1
"""


#: Formats that are read in the order of submissions.
SORTED = ("sacct", "sacct-json", "gridengine", "lsf", "htcondor")


def options(folder: Path) -> FormatOptions:
    """The options that the formats need."""
    path = folder / "mapping.toml"
    path.write_text(MAPPING)
    return FormatOptions(zone="Europe/Stockholm", mapping=read_mapping(path))


#: Words as in logs, and words that are hard on formats.
HARD = ["alice", "bob", "7", "007", "-1", "", "None", "a b", "x,y", 'q"q', "#", "é", "a|b", "-",
        "two\nlines", "a\rb", "a\tb", "a\x1cb\u2028c"]  # fmt: skip

#: Columns beyond the fields that a trace may have, also those with their own place in some format.
EXTRA = (
    "job_id", "final_state", "node_list", "nodes", "suspended", "restarts", "priority",
    "reservation", "dependency", "project", "exit_code", "orig_site", "job_structure", "metadata",
    "allocated_resources", "profile", "gpu", "res", "constraints",
)  # fmt: skip


#: What three jobs may ask for, by column; only the first submits at 0.
ASKED = {
    "asked_nodes": ["2", "", "1"], "asked_max_nodes": ["4", "", "1"], "tasks": ["16", "1", ""],
    "tasks_per_node": ["8", "", ""], "cores_per_task": ["2", "4", ""],
    "memory_per_node": ["4096", "0", ""], "memory_per_core": ["", "", "500"],
    "gpus": ["", "3", ""], "gpus_per_node": ["2", "", ""], "gpus_per_task": ["", "", "1"],
    "gpu_type": ["a100", "", "h100"], "constraints": ["a&b", "a|b", ""],
    "exclusive": ["yes", "", ""], "partitions": ["short,long", "", "gpu"],
    "reservation": ["", "night", ""], "qos": ["high", "low", ""], "project": ["lab", "", "lab"],
    "nice": ["100", "-5", ""], "array": ["", "7", "7"], "task": ["", "0", "1"],
    "throttle": ["", "4", "4"], "no_requeue": ["1", "", ""], "begin": ["120", "60", ""],
}  # fmt: skip


def found_in(requests: Requests | None) -> dict[Ask, list[int] | list[str]]:
    """Return requests as lists."""
    assert requests is not None
    return {ask: requests.texts(ask) if ask in WORDS else requests[ask].tolist() for ask in Ask}


def asked_by(trace: Trace) -> dict[Ask, list[int] | list[str]]:
    """Return what the jobs of a trace ask for."""
    return found_in(requests_of(trace, np.arange(len(trace))))


@st.composite
def traces(draw: st.DrawFn, wild: bool = True) -> Trace:
    """Traces with names, columns of other formats, unknown values, fractions and odd headers."""
    jobs = draw(st.integers(1, 5))
    most = 2**40 if wild else 10**6
    whole = st.one_of(st.integers(-1, 50), st.integers(-most, most)).map(float)
    moment = st.just(1.3e9) if wild else st.nothing()
    times = st.one_of(whole, st.floats(0, 1e6, allow_subnormal=False), moment)
    words = st.sampled_from(HARD) | (st.text(max_size=6) if wild else st.nothing())
    columns, names, extra = {}, {}, {}
    for field in FIELDS:
        values = whole if field in NAMED or draw(st.booleans()) else times
        drawn = draw(st.lists(values, min_size=jobs, max_size=jobs))
        if field in NAMED and draw(st.booleans()):
            few = st.integers(-1, 3).map(float)
            drawn = draw(st.lists(few, min_size=jobs, max_size=jobs))
            named = words.filter(lambda word: word != "-1")  # which is what stands for no name
            names[field] = draw(st.dictionaries(st.integers(1, 3), named))
        if "memory" in field:  # sizes have few places in accounting of Slurm
            drawn = [round(value, 3) for value in drawn]
        columns[field] = np.array(drawn)
    for name in draw(st.sets(st.sampled_from(EXTRA), max_size=4)):
        extra[name] = np.array(draw(st.lists(words, min_size=jobs, max_size=jobs)), np.object_)
    header = draw(st.lists(st.sampled_from(
        [b"; UnixStartTime: 1000", b"; UnixStartTime: 1729980000", b"; MaxProcs: 40",
         b"; Note: # ;", b";", b"", b"; \xe9"]
    ), max_size=3))  # fmt: skip
    return Trace(Header(header), columns, names=names, extra=extra)


def by_submission(trace: Trace, kind: Format, told: FormatOptions) -> Trace:
    """The trace with its jobs in the order in which logs of some formats are read."""
    if kind.name not in SORTED:
        return trace
    slurm = kind.name.startswith("sacct")
    order = written(trace, told)[1] if slurm else np.argsort(submissions(trace), kind="stable")
    columns = {name: values[order] for name, values in trace.columns.items()}
    extra = {name: values[order] for name, values in trace.extra.items()}
    return replace(trace, columns=columns, extra=extra)


def differences(before: Trace, after: Trace, moves: bool = True) -> Counter[str]:
    """In how many jobs each field or column differs; names by name, submissions by the clock."""
    assert len(before) == len(after)
    found: Counter[str] = Counter()
    now = after.header.integer("UnixStartTime") if moves else None
    moved = 0 if now is None else now - (before.header.integer("UnixStartTime") or 0)
    for field in FIELDS:
        if field in NAMED:
            pairs = zip(worded(before, field), worded(after, field), strict=True)
            found[field] = sum(one != other for one, other in pairs)
            continue
        one, other = before[field].astype(float), after[field].astype(float)
        if field == "submit":
            other = np.where(other == -1, -1, other + moved)
        found[field] = int((one != other).sum())
    nothing = np.array([""] * len(before), np.object_)
    for name, texts in before.extra.items():
        found[name] = int(((texts != "") & (texts != after.extra.get(name, nothing))).sum())
    return +found


def by_field(lost: Losses) -> Counter[str]:
    """Jobs counted as lost, by field."""
    found: Counter[str] = Counter()
    for (field, _), count in lost.counts.items():
        found[field] += count
    return found


def losses_are_exact(trace: Trace, kind: Format, told: FormatOptions) -> Trace:
    """Check that what changed is what was counted, in fields and columns; return what is read."""
    lost = Losses()
    if not kind.holds_names:
        trace.names.clear()  # they are kept in a file next to it
    trace = by_submission(trace, kind, told)
    again = kind.parse(kind.generate(trace, lost, told), f"made.{kind.name}", told)
    assert [1] * len(lost.counts) == [len(line.splitlines()) for line in lost.lines()]
    counted = by_field(lost)
    lines = {line for line in trace.header.lines if line.strip(b"; ")} - {*again.header.lines}
    assert len(lines) <= counted.pop("header", 0)
    counted.pop("comments", 0)
    # Of both formats without dates a submission counts as lost if it is read as a Unix time.
    assert +counted == differences(trace, again, kind.name not in ("swf", "gwf"))
    return again


def sample(name: str, told: FormatOptions) -> bytes:
    """A good file of a format."""
    trace = parse_swf(HEADER.encode() + b"\n" + JOBS)
    trace.names["user"] = {7: "alice", 9: "bob"}
    return FORMATS[name].generate(trace, Losses(), told)


def shown(trace: Trace, *names: str) -> list[tuple[object, ...]]:
    """The values of some fields and columns, job by job; names instead of numbers."""
    found = []
    for name in names:
        if name in trace.extra:
            found.append(trace.extra[name].tolist())
        else:
            words = trace.names.get(name, {})
            found.append([words.get(value, value) for value in trace[name].tolist()])
    return list(zip(*found, strict=True))


def complaint(parse: Callable[..., Trace], data: bytes | str) -> ParseError:
    """Return the error of a malformed file; it is one short line that names the file."""
    with pytest.raises(ParseError) as caught:
        parse(data, "some.log")
    assert "some.log" == caught.value.path
    assert len(str(caught.value)) < 400
    return caught.value
