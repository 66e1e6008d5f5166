"""Your own tables: what a mapping may say, and what it does to values."""

from __future__ import annotations

from pathlib import Path

import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    ParseError,
    QuantityError,
    TableMapping,
    generate_mapped,
    parse_mapped,
    read_mapping,
)
from hpcrowd.environment.traces.trace import Trace

NEEDED = {"submit": "at", "run": "took"}


def told(mapping: TableMapping) -> FormatOptions:
    """A mapping as what reading and writing need to know."""
    return FormatOptions(mapping=mapping)


def mapped(text: str, columns: dict[str, object], **more: object) -> Trace:
    """Read a table in text."""
    return parse_mapped(text, "mine.csv", told(TableMapping(columns={**NEEDED, **columns}, **more)))


def test_columns_in_any_order_and_others() -> None:
    """Columns are found by name; those that nobody asks for are passed over."""
    trace = mapped("took,nonsense,at\n60,x,5\n70,y,6\n", {})
    assert ([5, 6], [60, 70], [1, 2]) == tuple(
        trace[name].tolist() for name in ("submit", "run", "number")
    )
    assert {-1} == {int(value) for value in trace["user"]}


@pytest.mark.parametrize(
    ("unit", "text", "seconds"),
    [("s", "90", 90), ("ms", "1500", 1.5), ("min", "2", 120), ("h", "0.5", 1800), ("d", "1", 86400),
     ("clock", "1-02:03:04", 93784), ("clock", "00:01:30.5", 90.5), ("clock", "01:30", 90),
     ("clock", "", -1), ("h", "", -1), ("h", "-1", -1)],
)  # fmt: skip
def test_units_of_durations(unit: str, text: str, seconds: float) -> None:
    """Durations become seconds; what is empty or -1 is unknown."""
    trace = mapped(f"at,took,limit\n0,1,{text}\n", {"requested_time": {"column": "limit",
                                                                        "unit": unit}})  # fmt: skip
    assert [seconds] == trace["requested_time"].tolist()


@pytest.mark.parametrize(
    ("unit", "per", "kilobytes"),
    [
        ("kB", "processor", 8),
        ("MB", "processor", 8192),
        ("GB", "job", 2097152),
        ("B", "job", 0.002),
    ],
)
def test_units_of_memory(unit: str, per: str, kilobytes: float) -> None:
    """Memory becomes kB of 1,024 bytes per processor, also if it is given for the whole job."""
    trace = mapped(
        "at,took,mem,cpus\n0,1,8,4\n",
        {"memory": {"column": "mem", "unit": unit, "per": per}, "allocated_processors": "cpus"},
    )
    assert [kilobytes] == trace["memory"].tolist()


@pytest.mark.parametrize(
    ("how", "first", "second"),
    [
        ("unix", "1704697200", "1704697260"),
        ("unix-ms", "1704697200000", "1704697260000"),
        ("iso", "2024-01-08T08:00:00", "2024-01-08 08:01"),
        ("iso", "2024-01-08T07:00:00Z", "2024-01-08T09:01:00+02:00"),
        ("%d.%m.%Y %H.%M", "8.1.2024 8.00", "08.01.2024 08.01"),
    ],
)
def test_moments(how: str, first: str, second: str) -> None:
    """Moments are counted from the first submission, and the header says when that was."""
    columns = {"submit": {"column": "at", "time": how}}
    trace = mapped(f"at,took\n{second},1\n{first},1\n", columns, zone="Europe/Stockholm")
    assert [60, 0] == trace["submit"].tolist()
    assert 1704697200 == trace.header.integer("UnixStartTime")
    assert "Mon Jan 08 08:00:00 CET 2024" == trace.header.get("StartTime")


def test_start_and_end_instead_of_wait_and_run() -> None:
    """Wait and run come from start and end; who never started has neither."""
    mapping = TableMapping(columns={"submit": "at", "start": "from", "end": "to"})
    trace = parse_mapped("at,from,to\n10,15,75\n20,,\n30,40,\n", options=told(mapping))
    assert ([5, -1, 10], [60, -1, -1]) == (trace["wait"].tolist(), trace["run"].tolist())


def test_words_of_states() -> None:
    """Words stand for numbers as the mapping says; one that it does not know is reported."""
    columns = {"status": {"column": "state", "values": {"ok": 1, "bad": 0}}}
    assert [1, 0, -1] == mapped("at,took,state\n0,1,ok\n0,1,bad\n0,1,\n", columns)[
        "status"
    ].tolist()
    with pytest.raises(ParseError) as caught:
        mapped("at,took,state\n0,1,ok\n0,1,lost\n", columns)
    assert (3, "state", "lost") == (caught.value.line, caught.value.field, caught.value.value)
    assert "'ok', 'bad'" in str(caught.value)


def test_names_are_numbered_unless_they_are_numbers() -> None:
    """Users with names are numbered as they come; users with numbers keep them."""
    trace = mapped("at,took,who\n0,1,zoe\n0,1,\n0,1,7\n0,1,zoe\n", {"user": "who"})
    assert [1, -1, 2, 1] == trace["user"].tolist()
    assert {1: "zoe", 2: "7"} == trace.names["user"]
    trace = mapped("at,took,who\n0,1,12\n0,1,7\n", {"user": "who"})
    assert [12, 7] == trace["user"].tolist()
    assert {} == trace.names


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[columns]\nrun = 'r'", ("no submit",)),
        ("[columns]\nsubmit = 's'\nstart = 'b'", ("no run", "nor start and end")),
        ("[columns]\nsubmit = 's'\nrun = 'r'\nuserr = 'u'", ("columns.userr", "no such field")),
        ("[columns]\nsubmit = 's'\nrun = {column = 'r', unit = 'week'}", ("unit", "'week'")),
        ("[columns]\nsubmit = 's'\nrun = {column = 'r', unit = 'GB'}", ("run.unit", "'GB'")),
        ("[columns]\nsubmit = {column = 's', time = 'noon'}\nrun = 'r'", ("'noon'", "iso")),
        (
            "[columns]\nsubmit = 's'\nrun = {column = 'r', time = 'iso'}",
            ("run.time", "not a point in time"),
        ),
        ("zone = 'Mars'\n[columns]\nsubmit = 's'\nrun = 'r'", ("'Mars'", "not known")),
        ("delimiter = ';;'\n[columns]\nsubmit = 's'\nrun = 'r'", ("delimiter",)),
        ("colums = 1", ("col",)),
        ("[columns", ("not TOML",)),
    ],
)
def test_mistakes_of_a_mapping(tmp_path: Path, toml: str, parts: tuple[str, ...]) -> None:
    """A mistake in the file is reported in one line with its place."""
    path = tmp_path / "mine.toml"
    path.write_text(toml)
    with pytest.raises(QuantityError) as caught:
        read_mapping(path)
    assert 1 == len(str(caught.value).splitlines())
    for part in (str(path), *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "field", "value"),
    [
        ("at,took\n0,1\n\n1,x\n", 4, "took", "x"),
        ('at,took,note\n0,1,"two\nlines"\n1,x,\n', 4, "took", "x"),
        ("at,took\n0,1\n0,1,2\n", 3, None, "0,1,2"),
        ("at,took\n1e300,1\n", 2, "at", "1e300"),
    ],
)
def test_malformed_lines(text: str, line: int, field: str | None, value: str) -> None:
    """The first malformed line is reported, also after blank lines and quoted line ends."""
    with pytest.raises(ParseError) as caught:
        mapped(text, {})
    error = caught.value
    assert ("mine.csv", line, field, value) == (error.path, error.line, error.field, error.value)


def test_column_that_is_not_there() -> None:
    """A column that the mapping names and the table lacks is reported with those there are."""
    with pytest.raises(QuantityError, match=r"mine.csv: no column 'who'.* it has 'at', 'took'"):
        mapped("at,took\n0,1\n", {"user": "who"})


def test_what_units_cannot_hold_is_counted() -> None:
    """Minutes in a pattern lose seconds: those jobs are counted, and columns without a place."""
    columns = {"submit": {"column": "at", "time": "%Y-%m-%d %H:%M"}, "run": "took"}
    trace = mapped("at,took,who\n0,60,7\n60,61,7\n90,1,8\n", {"user": "who"})
    lost = Losses()
    text = generate_mapped(trace, lost, told(TableMapping(columns=columns)))
    assert b"at,took\n1970-01-01 00:00,60\n1970-01-01 00:01,61\n1970-01-01 00:01,1\n" == text
    assert 1 == lost.counts["submit", "its unit or pattern cannot hold it"]
    assert 3 == lost.counts["user", "the mapping has no column"]


def test_minus_one_is_not_a_moment() -> None:
    """A Unix time of -1 is unknown, as every other -1, and no second of 1969."""
    columns = {"submit": {"column": "at", "time": "unix"},
               "start": {"column": "began", "time": "unix"}}  # fmt: skip
    trace = mapped("at,began,took\n1700000000,-1,-1\n1700000100,1700000160,5\n", columns)
    assert ([0, 100], [-1, 60]) == (trace["submit"].tolist(), trace["wait"].tolist())
    assert 1700000000 == trace.header.integer("UnixStartTime")


LOCAL = {"submit": {"column": "at", "time": "iso"}, "start": {"column": "began", "time": "iso"},
         "end": {"column": "over", "time": "iso"}}  # fmt: skip


def test_an_hour_that_clocks_show_twice() -> None:
    """Where clocks are put back between two moments, the second is the later one, and counted."""
    mapping = TableMapping(columns=LOCAL, zone="Europe/Berlin")
    text = (
        "at,began,over\n2024-10-27T00:10:00,2024-10-27T02:50:00,2024-10-27T02:10:00\n"
        "2024-10-27T02:50:00,2024-10-27T02:10:00,2024-10-27T02:20:00\n"
        "2024-10-27T02:10:00,2024-10-27T02:20:00,2024-10-27T02:30:00\n"
    )
    trace = parse_mapped(text, options=told(mapping))
    assert ([9600, 1200, 600], [1200, 600, 600]) == (trace["wait"].tolist(), trace["run"].tolist())
    ((reason, jobs),) = trace.repaired.items()
    assert ("clocks put back" in reason, 3) == (True, jobs)


def test_moments_in_the_wrong_order() -> None:
    """What ends before it starts has no run time, what starts too early no wait; both counted."""
    text = "at,began,over\n2024-01-01T10:00:00,2024-01-01T09:00:00,2024-01-01T08:00:00\n"
    trace = parse_mapped(text, options=told(TableMapping(columns=LOCAL)))
    assert ([0], [-1]) == (trace["wait"].tolist(), trace["run"].tolist())
    assert [1, 1] == list(trace.repaired.values())


def test_what_no_calendar_has_is_lost_and_counted() -> None:
    """Moments beyond the year 9999 and negative durations are left empty when written."""
    columns: dict[str, object] = {"requested_time": {"column": "limit", "unit": "clock"}}
    far = mapped(f"at,took,asks\n0,1,-5\n{2**52},1,60\n", {"requested_time": "asks"})
    iso: dict[str, object] = {"submit": {"column": "at", "time": "iso"}}
    mapping = TableMapping(columns={**NEEDED, **columns, **iso})
    lost = Losses()
    back = parse_mapped(generate_mapped(far, lost, told(mapping)), options=told(mapping))
    assert ([0, -1], [-1, 60]) == (back["submit"].tolist(), back["requested_time"].tolist())
    assert {"submit": 1, "requested_time": 1} == {
        field: count for (field, _), count in lost.counts.items() if field != "header"
    }


def test_numbers_too_large_in_their_unit() -> None:
    """A number that is exact as it stands may be too large in seconds: a message gives its line."""
    with pytest.raises(ParseError, match=r"line 3, field took: '9e15': too large"):
        mapped("at,took\n0,1\n5,9e15\n", {"run": {"column": "took", "unit": "d"}})


def test_decimal_comma() -> None:
    """Numbers with a comma before fractions are read and written so."""
    columns = {"requested_time": {"column": "limit", "unit": "h"}}
    more = {"delimiter": ";", "decimal": ","}
    trace = mapped("at;took;limit\n0,5;60;1,5\n1;2;\n", columns, **more)
    assert [0.5, 1] == trace["submit"].tolist()
    assert [5400, -1] == trace["requested_time"].tolist()
    mapping = TableMapping(columns={**NEEDED, **columns}, **more)
    assert b"at;took;limit\n0,5;60;1,5\n1;2;\n" == generate_mapped(trace, options=told(mapping))
    with pytest.raises(ValueError, match="also the delimiter"):
        TableMapping(columns=NEEDED, decimal=",")
