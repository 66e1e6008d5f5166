"""Your own tables: what a mapping may say, what it does to values, and each notation of them."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hpcrowd.environment.traces.formats.tables.mapping import read_mapping
from hpcrowd.environment.traces.formats.tables.text import Table
from hpcrowd.environment.traces.formats.tables.values import (
    GROUPING,
    NO_NUMBER,
    Columns,
    parse_clock,
)
from hpcrowd.errors import ParseError, QuantityError
from hpcrowd.formats import FormatOptions, Losses, TableMapping, generate_mapped, parse_mapped
from hypothesis import assume, example, given
from hypothesis import strategies as st

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
    # moments are counted from the first one, in the pattern of the map
    ("submit,took\n08.01.2024 08.01,1\n8.1.2024 8.00,1\n",
     {**moments("%d.%m.%Y %H.%M", "submit"), "run": "took"}, {"submit": [60, 0]}),
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
    columns = {**NEEDED, "requested_time": {"column": "limit", "unit": "h"}}
    options = told(TableMapping(columns=columns, delimiter=";", decimal=","))
    trace = parse_mapped("at;took;limit\n0,5;60;1,5\n1;2;\n", options=options)
    assert [(0.5, 5400), (1, -1)] == shown(trace, "submit", "requested_time")
    assert b"at;took;limit\n0,5;60;1,5\n1;2;\n" == generate_mapped(trace, options=options)


MARKS = [(".", None), (",", None), (".", ","), (",", "."), (",", " "), (".", "_"), (".", "'"),
         (".", " ")]  # fmt: skip


def refuses(read, word):
    """Check that a word in the second line of the column x is refused."""
    with pytest.raises(ParseError) as caught:
        read()
    assert (2, "x", word) == (caught.value.line, caught.value.field, caught.value.value)


def column(*words, decimal=".", thousands=None):
    """A table in text with one column, x."""
    return Columns({"x": pa.array(words)}, "some.log", decimal, thousands)


@given(
    marks=st.sampled_from(MARKS),
    whole=st.integers(-(10**12), 10**12),
    fraction=st.none() | st.integers(0, 999).map("{:03d}".format),
    grouped=st.booleans(),
)
def test_numbers_read_back(marks, whole, fraction, grouped):
    """A number is read in the marks of its table, with or without groups of three digits."""
    decimal, thousands = marks
    for mark in GROUPING[thousands] if thousands and grouped else [""]:
        text = f"{whole:,}".replace(",", mark) + (f"{decimal}{fraction}" if fraction else "")
        found = column(text, decimal=decimal, thousands=thousands).numbers("x")
        expected = float(f"{whole}.{fraction or 0}")
        assert [-1.0 if expected == -1 else expected] == found.tolist()


@given(marks=st.sampled_from(MARKS), text=st.text("0123456789.,' _eE+-", max_size=9))
@example((",", None), "1.024")
@example((",", "."), "10.24")
@example((".", ","), "1,02")
@example((",", "."), "1.0000")
@example((",", "."), "1024.000")
@example((".", " "), "1 2 345")
def test_no_other_number_is_read(marks, text):
    """What is not a number in the marks of its table is refused with its line and column."""
    decimal, thousands = marks
    word = text.strip()
    assume(word.lower() not in NO_NUMBER)
    digits = r"\d+"
    if thousands:
        digits = rf"(\d+|\d{{1,3}}({re.escape(thousands)}\d\d\d)+)"
    number = rf"[+-]?({digits}({re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)([eE][+-]?\d+)?"
    table = column("1", text, decimal=decimal, thousands=thousands)
    plain = word.replace(thousands or "", "").replace(decimal, ".")
    if re.fullmatch(number, word, re.ASCII) and abs(float(plain)) <= 2**53:
        assert float(plain) == table.numbers("x")[1]
        return
    refuses(lambda: table.numbers("x"), word)


@pytest.mark.parametrize(
    ("marks", "word", "cure"),
    [((".", None), "1,024", "thousands = ','"), ((",", None), "1.024.000,5", "thousands = '.'"),
     ((",", "."), "10.24", "decimal ',' and thousands '.'")],
)  # fmt: skip
def test_groups_of_digits_are_never_guessed(marks, word, cure):
    """A point with a decimal comma, or the reverse, is refused with what the map needs."""
    decimal, thousands = marks
    more = {"delimiter": ";", "decimal": decimal, "thousands": thousands}
    text = f"at;took;n\n0;1;4\n0;1;{word}\n"
    error = complaint(lambda data, _: mapped(data, {"allocated_processors": "n"}, **more), text)
    assert (3, "n", word) == (error.line, error.field, error.value)
    assert cure in error.rule


@given(
    seconds=st.integers(0, 10**8),
    fraction=st.sampled_from(["", ".5", ".123456", ",25"]),
    form=st.sampled_from(["slurm", "python", "pandas", "hours", "minutes", "days-h", "bare"]),
)
def test_durations_read_back(seconds, fraction, form):
    """A duration is read as Slurm, Python and pandas write it."""
    days, rest = divmod(seconds, 86400)
    hours, minutes, second = rest // 3600, rest // 60 % 60, rest % 60
    clock, plural = f"{hours:02d}:{minutes:02d}:{second:02d}{fraction}", "s" * (days != 1)
    part = float("0" + fraction.replace(",", ".")) if fraction else 0
    word, expected = {
        "slurm": (f"{days}-{clock}", seconds + part),
        "python": (f"{days} day{plural}, {clock.removeprefix('0')}", seconds + part),
        "pandas": (f"{days} days {clock}", seconds + part),
        "hours": (f"{seconds // 3600}:{minutes:02d}:{second:02d}{fraction}", seconds + part),
        "minutes": (f"{seconds // 60}:{second:02d}{fraction}", seconds + part),
        "days-h": (f"{days}-{hours}", seconds - seconds % 3600),
        "bare": (f"{seconds // 60}", seconds - seconds % 60),
    }[form]
    assert [expected] == column(word).durations("x").tolist()


@given(st.text("0123456789:-. days,", max_size=9))
@example("1 day 5")
@example("2-12.5")
@example("-1 days +23:59:59")
@example("1:2:3:4")
def test_no_other_duration_is_read(word):
    """What is not a duration is refused with its line and column; one has only digits."""
    word = word.strip()
    assume(word.lower() not in (*NO_NUMBER, "-1"))
    form = r"(\d+-\d+(:\d+){0,2}|(\d+:){0,2}\d+|\d+ ?days?(,? (\d+:){2}\d+)?|\d+ ?days?,)([.,]\d+)?"
    table = column("1:00", word)
    if re.fullmatch(form, word) and not re.search(
        r"^\d+-\d+(:\d+)?[.,]|^\d+[.,]|days?[.,]\d", word
    ):
        assert table.durations("x")[1] == parse_clock(word) >= 0
        return
    refuses(lambda: table.durations("x"), word)


ZONES = st.sampled_from([UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/St_Johns")])


@given(
    moments=st.lists(
        st.datetimes(datetime(1925, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=4
    ),
    zone=ZONES,
    form=st.sampled_from(["{}", "{}Z", "{}+09:00", "{}-02", "{} UTC"]),
    odd=st.booleans(),
)
@example([datetime(2024, 10, 27, 2, 30)], ZoneInfo("Europe/Berlin"), "{}", False)
@example([datetime(2024, 3, 31, 2, 30)], ZoneInfo("Europe/Berlin"), "{}", False)
@example([datetime(2011, 11, 5, 23, 1, 30)], ZoneInfo("America/St_Johns"), "{}", False)
def test_moments_read_back(moments, zone, form, odd):  # fmt: skip
    """All at once or one by one, ISO times are what Python's calendar says, in any zone."""
    words = [form.format(moment.isoformat(" ")) for moment in moments]
    aware = [datetime.fromisoformat(word.replace(" UTC", "+00:00")) for word in words]
    both = [[one if one.tzinfo else one.replace(tzinfo=zone, fold=fold) for one in aware]
            for fold in (0, 1)]  # fmt: skip
    first, second = (np.array([one.timestamp() for one in ones]) for ones in both)
    more = [moments[0].strftime("%Y%m%dT%H%M%S")] if odd else []  # Arrow does not read this
    found, again = column(*words, *more).moments("x", "iso", 1.0, zone)
    assert first.tolist() == found[: len(first)].tolist()
    assert np.maximum(second - first, 0).tolist() == again[: len(first)].tolist()


@pytest.mark.parametrize("word", ["0000-01-01", "2020-4-1", "0000-00-00 00:00:00", "noon"])
def test_no_other_moment_is_read(word):
    """What is not in the calendar is refused with its line and column."""
    refuses(lambda: column("2020-01-01", word).moments("x", "iso", 1.0, UTC), word)


UNITS = [("unix", "s", 1), ("unix", "ms", 1000), ("unix-ms", None, 1000), ("unix", "us", 10**6),
         ("unix", "ns", 10**9), ("seconds", "us", 10**6), ("seconds", "min", 1 / 60)]  # fmt: skip


@pytest.mark.parametrize(("time", "unit", "per"), UNITS)
def test_units_of_times(time, unit, per):
    """Times are in any unit; milliseconds are exact also in ns since 1970."""
    begin = 600 if time == "seconds" else 1_617_202_800
    since, took = ([0, 60.123], [2.5, 59.877]) if per > 1 else ([0, 60], [60, 60])
    times = [(begin + at, begin + at + run) for at, run in zip(since, took, strict=True)]
    text = "at,end\n" + "".join(f"{round(at * per)},{round(end * per)}\n" for at, end in times)
    kind = {"time": time, **({"unit": unit} if unit else {})}
    columns = {"submit": {"column": "at", **kind}, "end": {"column": "end", **kind}}
    mapping = TableMapping(columns={"start": columns["submit"], **columns})
    trace = parse_mapped(text, options=told(mapping))
    moved = begin if time == "seconds" else 0
    assert [at + moved for at in since] == trace["submit"].tolist()
    assert took == trace["run"].round(3).tolist()
    with pytest.raises(QuantityError, match="also another field"):
        generate_mapped(trace, options=told(mapping))
    options = told(TableMapping(columns={"run": "took", **columns}))
    again = parse_mapped(generate_mapped(trace, options=options), options=options)
    assert trace["submit"].tolist() == again["submit"].tolist()


@pytest.mark.parametrize("word", ["nan", "NaN", "NaT", "NA", "N/A", "null", "None", "<NA>", "", "-",
                                  "Unknown"])  # fmt: skip
def test_words_for_unknown(word):
    """The words of pandas, R and SQL for a value that is not there are read in every column."""
    text = "at,took,from,limit,n,state,unlimited\n0,1,2020-01-01,1:00,4,ok,UNLIMITED\n"
    text += f"0,{','.join([word] * 5)},INFINITE\n"
    kinds = {
        "run": {"column": "took", "unit": "min"}, "average_cpu": "unlimited",
        "requested_time": {"column": "limit", "unit": "clock"}, "allocated_processors": "n",
        "think_time": {"column": "unlimited", "unit": "clock"},
        "status": {"column": "state", "values": {"ok": 1}},
    }  # fmt: skip
    trace = mapped(text, kinds)
    for field in kinds:
        assert -1 == trace[field][1]
    assert (-1, -1) == (trace["average_cpu"][0], trace["think_time"][0])
    begin = {"submit": {"column": "from", "time": "iso"}}
    assert [0, -1] == mapped(text, {**kinds, **begin})["submit"].tolist()


def test_columns_by_number():
    """A table without a line of names is read from its first line, and written so."""
    columns = {"submit": 3, "run": 1, "user": {"column": 4}}
    options = told(TableMapping(columns=columns))
    trace = parse_mapped("60,x,5,zoe\n70,,6,amy\n", "some.log", options)
    assert ([5, 6], [60, 70]) == (trace["submit"].tolist(), trace["run"].tolist())
    assert b"60,,5,zoe\n70,,6,amy\n" == generate_mapped(trace, options=options)
    for broken, line in (("x,,6,amy\n60,x,5,zoe\n", 1), ("# a\nx,,5,zoe\n", 2),
                         ("1,2,3,4\n1\n", 2)):  # fmt: skip
        assert line == complaint(lambda *text: parse_mapped(*text, options), broken).line
    with pytest.raises(QuantityError, match=r"no column 4, .* user; its first line has 3 values"):
        parse_mapped("60,x,5\n", "some.log", options)
    with pytest.raises(ValueError, match="all in one way"):
        TableMapping(columns={**columns, "group": "who"})
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="column"):
            TableMapping(columns={**columns, "user": {"column": wrong}})


@pytest.mark.parametrize(
    "text",
    ["# made by me\n#\n\nat,took\n0,60\n", "#at,took\n0,60\n", "# made\n# at,took\n0,60\n",
     "\n\nat,took\n0,60\n", "# a,b,c\r\nat,took\r\n0,60\r\n"],
)  # fmt: skip
def test_comments_before_the_names(text):
    """Comments before the line of names are kept; the names may be behind a # themselves."""
    trace = mapped(text)
    assert [60] == trace["run"].tolist()
    told = [line for line in text.splitlines() if line.startswith("#") and "took" not in line]
    comments = [(0, line.replace("#", ";").encode()) for line in told if line != "#"]
    assert comments == trace.comments
    broken = text.replace("60", "x")
    error = complaint(lambda data, _: mapped(data), broken)
    assert len(broken.splitlines()) == error.line
    with pytest.raises(QuantityError, match="no column 'at'"):
        mapped("# only\nbegin,took\n0,60\n")


def test_aligned_columns():
    """With blanks between values they read back as written; lines and names are found."""
    columns = {**NEEDED, "user": "who", "queue": "q"}
    options = told(TableMapping(columns=columns, delimiter=" "))
    trace = mapped('at took who\n0 60 "a  b"\n', {"user": "who"}, delimiter=" ")
    again = parse_mapped(generate_mapped(trace, options=options), options=options)
    assert {"user": {1: "a  b"}} == trace.names == again.names
    error = complaint(lambda data, _: mapped(data, delimiter=" "), "at took\n1  2\n1  2  3\n")
    assert 3 == error.line
    assert ["a", "b"] == Table(b"# c\n#  a   b\n1 2", "x", " ", expected=("a", "b")).names


def test_optional_columns():
    """A table may lack an optional column, but not what a trace needs; the header says it."""
    trace = mapped("at,took\n0,1\n", {"user": {"column": "who", "optional": True}})
    assert [-1] == trace["user"].tolist()
    assert b"; Note: no column who in the table: user is unknown" in trace.header.lines
    with pytest.raises(QuantityError, match="no column 'when'"):
        mapped("at,took\n0,1\n", {"submit": {"column": "when", "optional": True}})


def test_zone_of_the_map_or_of_the_command():
    """A zone next to the map counts where the map has none, and not for what is written."""
    columns = {"submit": {"column": "at", "time": "iso"}, "run": "took"}
    for zone, unix in ((None, 1704668400), ("Europe/Stockholm", 1704697200)):
        mapping, lost = TableMapping(columns=columns, zone=zone), Losses()
        options = FormatOptions(zone="Asia/Tokyo", mapping=mapping)
        trace = parse_mapped("at,took\n2024-01-08 08:00:00,1\n", options=options)
        assert unix == trace.header.integer("UnixStartTime")
        written = generate_mapped(trace, lost, options)
        assert {"header"} == {field for field, _ in lost.counts}
        assert (b"2024-01-08T08:00:00" in written) == (zone is not None)
