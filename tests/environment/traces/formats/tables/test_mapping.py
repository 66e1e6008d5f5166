"""Your own tables: what a mapping may say, and what it does to values."""

import pytest
from hpcrowd.errors import QuantityError
from hpcrowd.formats import (
    FormatOptions,
    Losses,
    TableMapping,
    generate_mapped,
    parse_mapped,
    read_mapping,
)

from tests.environment.traces.formats.format_cases import complaint, shown

NEEDED = {"submit": "at", "run": "took"}


def told(mapping):
    """A mapping as what reading and writing need to know."""
    return FormatOptions(mapping=mapping)


def mapped(text, columns=(), **more):
    """Read a table in text; a column that stands for None is not needed."""
    named = {name: how for name, how in {**NEEDED, **dict(columns)}.items() if how is not None}
    return parse_mapped(text, "some.log", told(TableMapping(columns=named, **more)))


STATES: dict[str, object] = {"status": {"column": "state", "values": {"ok": 1, "bad": 0}}}
ASKED, USED = "requested_time", "memory"


def moments(how, *names):
    """Columns of moments of one kind, named like their fields, without a run time."""
    return {name: {"column": name, "time": how} for name in names} | {"run": None}


#: A table, what the mapping says, and fields of its jobs; with another delimiter in some.
TABLES: list[tuple[str, dict[str, object], dict[str, list[object]]]] = [
    # columns are found by name; others are passed over
    ("took,nonsense,at\n60,x,5\n70,y,6\n", {},
     {"submit": [5, 6], "run": [60, 70], "number": [1, 2], "user": [-1, -1]}),
    # durations become seconds; what is empty or -1 is unknown
    *((f"at,took,limit\n0,1,{text}\n", {ASKED: {"column": "limit", "unit": unit}},
       {ASKED: [seconds]}) for unit, text, seconds in (
        ("s", "90", 90), ("ms", "1500", 1.5), ("min", "2", 120), ("h", "0.5", 1800),
        ("d", "1", 86400), ("clock", "1-02:03:04", 93784), ("clock", "00:01:30.5", 90.5),
        ("clock", "01:30", 90), ("clock", "", -1), ("h", "", -1), ("h", "-1", -1))),
    # memory becomes kB of 1,024 bytes per processor, also if it is given for the whole job
    *(("at,took,mem,cpus\n0,1,8,4\n",
       {USED: {"column": "mem", "unit": unit, "per": per}, "allocated_processors": "cpus"},
       {USED: [kilobytes]}) for unit, per, kilobytes in (
        ("kB", "processor", 8), ("MB", "processor", 8192), ("GB", "job", 2097152),
        ("B", "job", 0.002))),
    # wait and run come from start and end; who never started has neither
    ("at,from,to\n10,15,75\n20,,\n30,40,\n", {"run": None, "start": "from", "end": "to"},
     {"wait": [5, -1, 10], "run": [60, -1, -1]}),
    ("at,took,state\n0,1,ok\n0,1,bad\n0,1,\n", STATES, {"status": [1, 0, -1]}),
    # a Unix time of -1 is unknown, and no second of 1969
    ("submit,start,took\n1700000000,-1,-1\n1700000100,1700000160,5\n",
     {**moments("unix", "submit", "start"), "run": "took"},
     {"submit": [0, 100], "wait": [-1, 60]}),
    # users with names keep them, and numbers are numbers; a gap of pandas is not a name
    ("at,took,who\n0,1,zoe\n0,1,\n0,1,7\n", {"user": "who"}, {"user": ["zoe", -1, "7"]}),
    ("at,took,who\n0,1,12\n0,1,7\n", {"user": "who"}, {"user": [12, 7]}),
    ("at,took,who,where,gpus\n0,1,7.0,a,2.0\n0,1,nan,NaN,\n0,1,12.0,1.0,4.0\n",
     {"user": "who", "queue": "where", "gpus": "gpus"},
     {"user": [7, -1, 12], "queue": ["a", -1, "1.0"], "gpus": ["2", "", "4"]}),
    # with a blank between values, any number of them is one; a value with blanks is quoted
    ('at     took   who\n  0       60   "a  b"\n 10\t\t5  zoe  \n\n', {"user": "who"},
     {"run": [60, 5], "user": ["a  b", "zoe"]}),
    # a column that is optional may be there
    ("at,took,who\n0,1,zoe\n", {"user": {"column": "who", "optional": True}}, {"user": ["zoe"]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns", "expected"), TABLES)
def test_values_of_a_table(text, columns, expected):
    """Columns become fields in the units and words of the mapping."""
    trace = mapped(text, columns, delimiter="," if "," in text else " ")
    assert expected == {name: [value for (value,) in shown(trace, name)] for name in expected}


@pytest.mark.parametrize(
    ("zone", "rows", "wait", "run", "repaired"),
    [
        ("Europe/Berlin",
         [("27T00:10", "27T02:50", "27T02:10"), ("27T02:50", "27T02:10", "27T02:20"),
          ("27T02:10", "27T02:20", "27T02:30")],
         [9600, 1200, 600], [1200, 600, 600], {"clocks put back": 3}),
        (None, [("01T10:00", "01T09:00", "01T08:00")], [0], [-1],
         {"started before": 1, "ended before": 1}),
    ],
)  # fmt: skip
def test_moments_that_need_a_repair(zone, rows, wait, run, repaired):  # fmt: skip
    """Of an hour shown twice the later one fits; what is in the wrong order is unknown; counted."""
    lines = [",".join(f"2024-10-{moment}:00" for moment in row) for row in rows]
    text = "\n".join(["submit,start,end", *lines])
    trace = mapped(text, moments("iso", "submit", "start", "end"), zone=zone)
    assert (wait, run) == (trace["wait"].tolist(), trace["run"].tolist())
    found = sorted(trace.repaired.items())
    assert sorted(repaired.values()) == [count for _, count in found]
    assert all(any(words in reason for reason, _ in found) for words in repaired)


@pytest.mark.parametrize(
    ("how", "first", "second"),
    [
        ("unix-ms", "1704697200000", "1704697260000"),
        ("iso", "2024-01-08T08:00:00", "2024-01-08 08:01"),
        ("%d.%m.%Y %H.%M", "8.1.2024 8.00", "08.01.2024 08.01"),
    ],
)
def test_moments(how, first, second):
    """Moments are counted from the first submission, and the header says when that was."""
    columns = {"submit": {"column": "at", "time": how}}
    trace = mapped(f"at,took\n{second},1\n{first},1\n", columns, zone="Europe/Stockholm")
    assert [60, 0] == trace["submit"].tolist()
    assert 1704697200 == trace.header.integer("UnixStartTime")
    assert "Mon Jan 08 08:00:00 CET 2024" == trace.header.get("StartTime")


GOOD = "[columns]\nsubmit = 's'\nrun = 'r'\n"


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[columns]\nrun = 'r'", ("no submit",)), ("colums = 1", ("col",)),
        ("[columns]\nsubmit = 's'\nstart = 'b'", ("no run", "nor start and end")),
        ("[columns", ("not TOML",)), (GOOD + "userr = 'u'", ("columns.userr", "no such field")),
        (GOOD.replace("'r'", "{column = 'r', unit = 'week'}"), ("unit", "'week'")),
        (GOOD.replace("'r'", "{column = 'r', unit = 'GB'}"), ("run.unit", "'GB'")),
        (GOOD.replace("'s'", "{column = 's', time = 'noon'}"), ("'noon'", "iso")),
        (GOOD.replace("'r'", "{column = 'r', time = 'iso'}"), ("run.time", "not a point in time")),
        ("zone = 'Mars'\n" + GOOD, ("'Mars'", "not known")),
        ("delimiter = ';;'\n" + GOOD, ("delimiter",)),
        ("delimiter = '|'\nthousands = '.'\n" + GOOD, ("give decimal = ','",)),
        ("delimiter = '|'\nthousands = ','\ndecimal = ','\n" + GOOD, ("'.'",)),
        ("thousands = ';'\n" + GOOD, ("thousands",)), ("decimal = ','\n" + GOOD, ("delimiter",)),
        (GOOD + "gpus = {column = 'x', unit = 'GB'}", ("gpus.unit",)),
        (GOOD + "gpus_per_rack = 'x'", ("gpus_per_rack",)),
    ],
)  # fmt: skip
def test_mistakes_of_a_mapping(tmp_path, toml, parts):
    """A mistake in the file is reported in one line with its place."""
    path = tmp_path / "mine.toml"
    path.write_text(toml)
    with pytest.raises(QuantityError) as caught:
        read_mapping(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "columns", "line", "field", "value"),
    [
        ("at,took\n0,1\n\n1,x\n", {}, 4, "took", "x"),
        ('at,took,note\n0,1,"two\nlines"\n1,x,\n', {}, 4, "took", "x"),
        ("at,took\n0,1\n0,1,2\n", {}, 3, None, "0,1,2"),
        ("at,took\n1e300,1\n", {}, 2, "at", "1e300"),
        ("at,took\n0,1\n5,9e15\n", {"run": {"column": "took", "unit": "d"}}, 3, "took", "9e15"),
        ("at,took,state\n0,1,ok\n0,1,lost\n", STATES, 3, "state", "lost"),
    ],
)
def test_malformed_lines(text, columns, line, field, value):
    """The first malformed line is reported, also after blank lines and quoted line ends."""
    error = complaint(lambda data, _: mapped(data, columns), text)
    assert (line, field, value) == (error.line, error.field, error.value)
    assert "'ok', 'bad'" in error.rule or columns is not STATES


def test_what_units_or_columns_cannot_hold():
    """Minutes in a pattern lose seconds: those jobs are counted, and columns without a place."""
    columns = {"submit": {"column": "at", "time": "%Y-%m-%d %H:%M"}, "run": "took"}
    trace = mapped("at,took,who\n0,60,7\n60,61,7\n90,1,8\n", {"user": "who"})
    lost = Losses()
    text = generate_mapped(trace, lost, told(TableMapping(columns=columns)))
    assert b"at,took\n1970-01-01 00:00,60\n1970-01-01 00:01,61\n1970-01-01 00:01,1\n" == text
    assert 1 == lost.counts["submit", "its unit or pattern cannot hold it"]
    assert 3 == lost.counts["user", "the mapping has no column"]
    with pytest.raises(QuantityError, match=r"some.log: no column 'who'.* it has 'at', 'took'"):
        mapped("at,took\n0,1\n", {"user": "who"})


def test_decimal_comma():
    """Numbers with a comma before fractions are read and written so."""
    columns = {"requested_time": {"column": "limit", "unit": "h"}}
    more = {"delimiter": ";", "decimal": ","}
    trace = mapped("at;took;limit\n0,5;60;1,5\n1;2;\n", columns, **more)
    assert [0.5, 1] == trace["submit"].tolist()
    assert [5400, -1] == trace["requested_time"].tolist()
    mapping = TableMapping(columns={**NEEDED, **columns}, **more)
    assert b"at;took;limit\n0,5;60;1,5\n1;2;\n" == generate_mapped(trace, options=told(mapping))
