"""Values of tables: each notation reads back as what was written, anything else is refused."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hpcrowd.environment.traces.formats.tables.text import Table
from hpcrowd.environment.traces.formats.tables.values import (
    GROUPING,
    NO_NUMBER,
    Columns,
    parse_clock,
)
from hpcrowd.errors import ParseError, QuantityError, TraceError
from hpcrowd.formats import (
    FormatOptions,
    Losses,
    TableMapping,
    generate_mapped,
    parse_csv,
    parse_mapped,
    parse_parquet,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import complaint
from tests.environment.traces.formats.tables.test_columns import parquet_of

NEEDED = {"submit": "at", "run": "took"}
MARKS = [(".", None), (",", None), (".", ","), (",", "."), (",", " "), (".", "_"), (".", "'"),
         (".", " ")]  # fmt: skip


def mapped(text, columns=(), **more):
    """Read a table in text."""
    mapping = TableMapping(columns={**NEEDED, **dict(columns)}, **more)
    return parse_mapped(text, "some.log", FormatOptions(mapping=mapping))


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
    with pytest.raises(ParseError) as caught:
        table.numbers("x")
    assert (2, "x", word) == (caught.value.line, caught.value.field, caught.value.value)


@pytest.mark.parametrize(
    ("marks", "word", "cure"),
    [((".", None), "1,024", "thousands = ','"), ((",", None), "1.024", "thousands = '.'"),
     ((".", None), "1 024", "thousands = ' '"), ((",", None), "1.024.000,5", "thousands = '.'"),
     ((",", "."), "10.24", "decimal ',' and thousands '.'")],
)  # fmt: skip
def test_groups_of_digits_are_never_guessed(marks, word, cure):
    """A point with a decimal comma, or the reverse, is refused with what the map needs."""
    decimal, thousands = marks
    more = {"delimiter": ";", "decimal": decimal, "thousands": thousands}
    text = f"at;took;n\n0;1;4\n0;1;{word}\n"
    error = complaint(
        lambda data, source: mapped(data, {"allocated_processors": "n"}, **more), text
    )
    assert (3, "n", word) == (error.line, error.field, error.value)
    assert cure in error.rule


@pytest.mark.parametrize(
    ("more", "words"),
    [({"thousands": "."}, "give decimal = ','"), ({"thousands": ",", "decimal": ","}, "'.'"),
     ({"thousands": ";"}, "thousands")],
)  # fmt: skip
def test_marks_differ(more, words):
    """The mark between groups of digits is not the decimal mark."""
    with pytest.raises(ValueError, match=re.escape(words)):
        TableMapping(columns=NEEDED, delimiter="|", **more)


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
    """What is no duration is refused with its line and column, and what is has only digits."""
    word = word.strip()
    assume(word.lower() not in (*NO_NUMBER, "-1"))
    form = r"(\d+-\d+(:\d+){0,2}|(\d+:){0,2}\d+|\d+ ?days?(,? (\d+:){2}\d+)?|\d+ ?days?,)([.,]\d+)?"
    table = column("1:00", word)
    if re.fullmatch(form, word) and not re.search(
        r"^\d+-\d+(:\d+)?[.,]|^\d+[.,]|days?[.,]\d", word
    ):
        assert table.durations("x")[1] == parse_clock(word) >= 0
        return
    with pytest.raises(ParseError) as caught:
        table.durations("x")
    assert (2, "x", word) == (caught.value.line, caught.value.field, caught.value.value)


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
    with pytest.raises(ParseError) as caught:
        column("2020-01-01", word).moments("x", "iso", 1.0, UTC)
    assert (2, "x", word) == (caught.value.line, caught.value.field, caught.value.value)


UNITS = [("unix", "s", 1), ("unix", "ms", 1000), ("unix-ms", None, 1000), ("unix", "us", 10**6),
         ("unix", "ns", 10**9), ("seconds", "us", 10**6), ("seconds", "min", 1 / 60)]  # fmt: skip


@pytest.mark.parametrize(("time", "unit", "per"), UNITS)
def test_units_of_times(time, unit, per):
    """Times are in any unit; milliseconds are exact also in ns since 1970."""
    begin = 1_617_202_800 if time != "seconds" else 600
    rows = [(begin, begin + 2.5), (begin + 60.123, begin + 120)] if per > 1 else [
        (begin, begin + 60), (begin + 60, begin + 120)]  # fmt: skip
    text = "".join(f"{round(at * per)},{round(end * per)}\n" for at, end in rows)
    kind = {"time": time, **({"unit": unit} if unit else {})}
    columns = {"start": {"column": "at", **kind}, "end": {"column": "end", **kind}}
    mapping = TableMapping(columns={"submit": columns["start"], **columns})
    trace = parse_mapped("at,end\n" + text, options=FormatOptions(mapping=mapping))
    since = rows[0][0] if time != "seconds" else 0
    assert [round(at - since, 3) for at, _ in rows] == trace["submit"].tolist()
    assert [round(end - at, 3) for at, end in rows] == trace["run"].tolist()
    with pytest.raises(QuantityError, match="also another field"):
        generate_mapped(trace, options=FormatOptions(mapping=mapping))
    columns.pop("start")
    mapping = TableMapping(columns={"submit": {"column": "at", **kind}, "run": "took", **columns})
    told = FormatOptions(mapping=mapping)
    again = parse_mapped(generate_mapped(trace, options=told), options=told)
    assert trace["submit"].tolist() == again["submit"].tolist()


@pytest.mark.parametrize("word", ["nan", "NaN", "NaT", "NA", "N/A", "null", "None", "<NA>", "", "-",
                                  "Unknown"])  # fmt: skip
def test_words_for_unknown(word):
    """The words of pandas, R and SQL for a value that is not there are read in every column."""
    text = f"at,took,from,limit,n,state,unlimited\n0,1,2020-01-01,1:00,4,ok,UNLIMITED\n0,{word},{word},{word},{word},{word},INFINITE\n"  # noqa: E501
    kinds = {
        "run": {"column": "took", "unit": "min"},
        "requested_time": {"column": "limit", "unit": "clock"},
        "think_time": {"column": "unlimited", "unit": "clock"},
        "average_cpu": "unlimited", "allocated_processors": "n",
        "status": {"column": "state", "values": {"ok": 1}},
    }  # fmt: skip
    trace = mapped(text, kinds)
    for field in kinds:
        assert -1 == trace[field][1]
    assert (-1, -1) == (trace["average_cpu"][0], trace["think_time"][0])
    begin = {"submit": {"column": "from", "time": "iso"}}
    assert [0, -1] == mapped(text, {**kinds, **begin})["submit"].tolist()


def test_names_of_pandas():
    """A gap is no name, and 7.0 of a column with gaps is the user 7."""
    text = "at,took,who,where,gpus\n0,1,7.0,a,2.0\n0,1,nan,NaN,\n0,1,12.0,1.0,4.0\n"
    trace = mapped(text, {"user": "who", "queue": "where", "gpus": "gpus"})
    assert [7, -1, 12] == trace["user"].tolist()
    assert {1: "a", 2: "1.0"} == trace.names["queue"]
    assert ["2", "", "4"] == trace.extra["gpus"].tolist()


def test_columns_by_number():
    """A table without a line of names is read from its first line, and written so."""
    columns = {"submit": 3, "run": 1, "user": {"column": 4}}
    mapping = TableMapping(columns=columns)
    told = FormatOptions(mapping=mapping)
    trace = parse_mapped("60,x,5,zoe\n70,,6,amy\n", "some.log", told)
    assert ([5, 6], [60, 70]) == (trace["submit"].tolist(), trace["run"].tolist())
    text = generate_mapped(trace, options=told)
    assert b"60,,5,zoe\n70,,6,amy\n" == text
    for broken, line in (
        ("x,,6,amy\n60,x,5,zoe\n70,,6,amy\n", 1),
        ("# a\nx,,5,zoe\n", 2),
        ("1,2,3,4\n1\n", 2),
    ):
        error = complaint(lambda data, source: parse_mapped(data, source, told), broken)
        assert line == error.line
    with pytest.raises(QuantityError, match=r"no column 4, .* user; its first line has 3 values"):
        parse_mapped("60,x,5\n", "some.log", told)
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
    error = complaint(lambda data, source: mapped(data), broken)
    assert len(broken.splitlines()) == error.line
    with pytest.raises(QuantityError, match="no column 'at'"):
        mapped("# only\nbegin,took\n0,60\n")


def test_aligned_columns():
    """With a blank between values, any number of them is one; a value with blanks is quoted."""
    text = 'at     took   who\n  0       60   "a  b"\n 10\t\t5  zoe  \n\n'
    trace = mapped(text, {"user": "who"}, delimiter=" ")
    assert ([60, 5], {1: "a  b", 2: "zoe"}) == (trace["run"].tolist(), trace.names["user"])
    mapping = TableMapping(columns={**NEEDED, "user": "who", "queue": "q"}, delimiter=" ")
    told = FormatOptions(mapping=mapping)
    again = parse_mapped(generate_mapped(trace, options=told), options=told)
    assert trace.names == again.names
    error = complaint(lambda data, source: mapped(data, delimiter=" "), "at took\n1  2\n1  2  3\n")
    assert 3 == error.line
    assert ["a", "b"] == Table(b"# c\n#  a   b\n1 2", "x", " ", expected=("a", "b")).names


def test_optional_columns():
    """A table may lack an optional column, but not what a trace needs; the header says it."""
    user = {"column": "who", "optional": True}
    trace = mapped("at,took\n0,1\n", {"user": user})
    assert [-1] == trace["user"].tolist()
    assert b"; Note: no column who in the table: user is unknown" in trace.header.lines
    assert {1: "zoe"} == mapped("at,took,who\n0,1,zoe\n", {"user": user}).names["user"]
    with pytest.raises(QuantityError, match="no column 'when'"):
        mapped("at,took\n0,1\n", {"submit": {"column": "when", "optional": True}})


def test_zone_of_the_map_or_of_the_command():
    """A zone next to the map counts where the map has none, and not for what is written."""
    columns = {"submit": {"column": "at", "time": "iso"}, "run": "took"}
    text, found = "at,took\n2024-01-08 08:00:00,1\n", {}
    for zone in (None, "Europe/Stockholm"):
        told = FormatOptions(zone="Asia/Tokyo", mapping=TableMapping(columns=columns, zone=zone))
        trace = parse_mapped(text, options=told)
        found[zone] = trace.header.integer("UnixStartTime")
        lost = Losses()
        written = generate_mapped(trace, lost, told)
        assert {"header"} == {field for field, _ in lost.counts}
        assert ("2024-01-08T08:00:00" in written.decode()) == (zone is not None)
    assert {None: 1704668400, "Europe/Stockholm": 1704697200} == found


def test_digits_of_tables():
    """Milliseconds are exact in differences of large times, and in floats of 32 bits."""
    text = "submit,start,end\n1617202800,1617202800.123,1617202801.25\n"
    trace = parse_csv(text)
    assert ([0.123], [1.127]) == (trace["wait"].tolist(), trace["run"].tolist())
    short = pa.array([0.123, 7.5], pa.float32())
    trace = parse_parquet(parquet_of(submit=short, run=pa.array([1.5, None], pa.float16())))
    assert ([0.123, 7.5], [1.5, -1]) == (trace["submit"].tolist(), trace["run"].tolist())


def test_columns_of_other_kinds():
    """What is no number, or a duration or time where none belongs, is refused with its column."""
    lasting = pa.array([timedelta(seconds=1)])
    table = Columns({"x": lasting, "t": pa.array([datetime(2020, 1, 1)])}, "some.log")
    with pytest.raises(TraceError, match=r"column x holds duration\[us\], not numbers"):
        table.numbers("x")
    with pytest.raises(TraceError, match=r'column t holds .*; the map needs time = "iso"'):
        table.moments("t", "seconds", 1.0, UTC)
