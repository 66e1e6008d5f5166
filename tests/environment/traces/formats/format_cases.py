"""Traces in all formats: made-up ones, samples of text, and what a round trip keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hpcrowd.environment import FormatOptions, Losses, Trace, parse_swf
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.common.base import Format
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.environment.traces.formats.tables.mapping import read_mapping
from hpcrowd.environment.traces.trace import FIELDS, smallest
from hypothesis import strategies as st

#: A table of one's own that holds most fields, in other units and words.
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


def options(folder: Path) -> FormatOptions:
    """The options that the formats need."""
    path = folder / "mapping.toml"
    path.write_text(MAPPING)
    return FormatOptions(zone="Europe/Stockholm", mapping=read_mapping(path))


def _field(values: Any) -> Any:
    return st.one_of(st.just(-1), values)


@st.composite
def traces(draw: Any, fractions: bool = True) -> Trace:
    """Any small trace that a machine may have recorded."""
    jobs = draw(st.integers(1, 8))

    def column(values: Any) -> list[float]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    seconds = st.integers(0, 10**6)
    if fractions:
        seconds = st.one_of(seconds, st.integers(0, 10**5).map(lambda value: value / 4))
    counts = st.integers(1, 64)
    ids = st.integers(0, 40)
    columns: dict[str, Any] = {
        "number": np.array(
            draw(st.lists(st.integers(1, 99), min_size=jobs, max_size=jobs, unique=True))
        ),
        "submit": np.sort(np.array(column(_field(seconds)))),
        "wait": column(_field(seconds)),
        "run": column(_field(seconds)),
        "allocated_processors": column(_field(counts)),
        "average_cpu": column(_field(seconds)),
        "memory": column(_field(st.integers(0, 10**7))),
        "requested_processors": column(_field(counts)),
        "requested_time": column(_field(seconds)),
        "requested_memory": column(_field(st.integers(0, 10**7))),
        "status": column(st.sampled_from([1, 1, 0, 5, -1, 2, 3, 4])),
        **{name: column(_field(ids)) for name in NAMED},
        "preceding": column(_field(st.integers(1, 99))),
        "think_time": column(_field(seconds)),
    }
    trace = Trace(
        Header([line.encode() for line in HEADER.splitlines()[: draw(st.integers(0, 5))]]),
        {name: smallest(np.array(columns[name], float)) for name in FIELDS},
        comments=draw(st.sampled_from([[], [(0, b"; an outage")], [(jobs, b"; the end")]])),
        source="made",
    )
    for name in NAMED:
        if draw(st.booleans()):
            trace.names[name] = {
                number: f"{name} {number}" for number in map(int, set(trace[name])) if number >= 0
            }
    return trace


def _moved(before: Trace, after: Trace) -> int:
    """How much later the origin is, s; nothing where the later header does not tell one."""
    now = after.header.integer("UnixStartTime")
    return 0 if now is None else now - (before.header.integer("UnixStartTime") or 0)


def differences(before: Trace, after: Trace) -> Counter[str]:
    """In how many jobs each field differs; named fields by name, submissions by the clock."""
    assert len(before) == len(after)
    order = np.arange(len(after))
    if "job_id" in after.extra and "job_id" not in before.extra:
        place = {name.split(".")[0]: row for row, name in enumerate(after.extra["job_id"])}
        order = np.array([place[str(int(number))] for number in before["number"]])
    found: Counter[str] = Counter()
    for field in FIELDS:
        if field in NAMED:
            words = worded(after, field)
            pairs = zip(worded(before, field), [words[row] for row in order], strict=True)
            found[field] = sum(one != other for one, other in pairs)
            continue
        one, other = before[field].astype(float), after[field][order].astype(float)
        if field == "submit":
            other = np.where(other == -1, -1, other + _moved(before, after))
        found[field] = int((one != other).sum())
    return +found


def by_field(lost: Losses) -> Counter[str]:
    """Jobs counted as lost, by field."""
    found: Counter[str] = Counter()
    for (field, _), count in lost.counts.items():
        found[field] += count
    return found


def round_trip(trace: Trace, kind: Format, told: FormatOptions) -> tuple[Trace, Losses]:
    """The trace after writing and reading in a format, and what was counted as lost."""
    lost = Losses()
    if not kind.holds_names:
        trace.names.clear()  # they are kept in a file next to it
    data = kind.generate(trace, lost, told)
    return kind.parse(data, f"made.{kind.name}", told), lost


def remembered(parse: Callable[..., Trace]) -> Callable[..., Trace]:
    """A ``Format.parse`` that reads the same data in a row only once."""
    last: list[Any] = []

    def read(
        kind: Format, data: bytes, source: str = "trace", options: FormatOptions | None = None
    ) -> Trace:
        if [kind, options, data] != last[:-1]:
            last[:] = kind, options, data, parse(kind, data, source, options)
        return last[-1]

    return read


def names_of_formats() -> list[str]:
    """All formats, for parameters of tests."""
    return list(FORMATS)


def sample(name: str, told: FormatOptions) -> bytes:
    """A good file of a format."""
    trace = parse_swf(HEADER.encode() + b"\n" + JOBS)
    trace.names["user"] = {7: "alice", 9: "bob"}
    return FORMATS[name].generate(trace, Losses(), told)
