"""What is not accounting of Slurm gives one line that names file, line, column and value."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    ParseError,
    QuantityError,
    Trace,
    TraceError,
    generate_sacct,
    parse_sacct,
)
from hpcrowd.environment.traces.formats.slurm import table as sacct_table
from hpcrowd.environment.traces.formats.slurm.mending import SURPLUS, UNCLEAR
from hpcrowd.environment.traces.formats.slurm.table import COLUMNS, COMMAND
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import JOB, ODD, STEP, UTC, read, table, text, without

PARIS = FormatOptions(zone="Europe/Paris")


def refused(data: bytes | str) -> TraceError:
    """Return the error that a text gives; it is one short line that names the file."""
    with pytest.raises(TraceError) as caught:
        parse_sacct(data, "logs/jobs.txt", UTC)
    told = str(caught.value)
    assert 1 == len(told.splitlines())
    assert len(told) < 400
    assert told.startswith("logs/jobs.txt")
    return caught.value


def place(error: TraceError) -> tuple[int, str | None, str]:
    """Line, column and value of an error."""
    assert isinstance(error, ParseError)
    return error.line, error.field, error.value


BAD = [
    *(("Submit", word) for word in ("yesterday", "2024-13-01T00:00:00", "2024-02-30T00:00:00")),
    *(("Submit", word) for word in ("2024-01-31", "12:00:00", "2024-01-31T25:00:00", "-1")),
    *(("Submit", word) for word in ("1900-01-01T00:00:00", "2201-01-01T00:00:00", "9" * 20)),
    *(("Start", word) for word in ("31 Jan 12:00", "2024-01-31T12:00:00+1", "1e9", "99999999999")),
    ("End", "2024-01-31T12:00:60"),
    *(("ElapsedRaw", word) for word in ("1h", "-5", "1.5", "9007199254740994", "nan", "00:10:00")),
    *(("AllocCPUS", word) for word in ("two", "1.5", "-1", "1_000", "0x10", "1KK", "9" * 30)),
    *(("ReqCPUS", word) for word in ("inf", " 4", "4 ")),
    *(("TimelimitRaw", word) for word in ("01:00:00", "forever", "9007199254740990")),
    *(("ReqMem", word) for word in ("4X", "4Gx", "Gc", "-4G", "9999999999P")),
    *(("TotalCPU", word) for word in ("1:2:3:4", "10", "10:99", "ten")),
    *(("State", word) for word in ("DONE", "", "CANCELED", "COMPLETED_", "\u0661")),
    *(("JobID", word) for word in ("", "abc", "1x", "1_", "1+", "1_[a]", "-1", "1 2")),
]


@pytest.mark.parametrize(("name", "word"), BAD)
def test_malformed_value(name: str, word: str) -> None:
    """A value that means nothing is a ParseError with line, column as it is spelled, and value."""
    error = refused(text({}, {name: word}, {"JobID": "2"}))
    assert (3, name, word.encode().decode("latin-1")) == place(error)


@pytest.mark.parametrize("word", ["5X", "5Kc", "-5K", "many"])
def test_malformed_memory_of_a_step(word: str) -> None:
    """Rows of steps are checked where they are used."""
    assert (3, "MaxRSS", word) == place(refused(text({}, {"JobID": "1.0", "MaxRSS": word})))


def test_columns_of_steps_that_are_not_used_are_not_checked() -> None:
    """A step may say in other columns what it likes."""
    step = {"JobID": "1.0", "Submit": "?", "State": "?", "ElapsedRaw": "?", "MaxRSS": "3K"}
    assert [3] == read({}, step)["memory"].tolist()


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ("JobID", "not a header of sacct"),
        ("Submit", "no column Submit"),
        ("State", "no column State"),
        ("AllocCPUS", "no column AllocCPUS or NCPUS or AllocTRES or ReqCPUS or ReqTRES"),
        ("Start", "no column Start or End"),
        ("ElapsedRaw", "no column ElapsedRaw or Elapsed or End"),
    ],
)
def test_missing_column(column: str, rule: str) -> None:
    """A column that is needed is named, with a command that writes all that are of use."""
    also = {"AllocCPUS": ["ReqCPUS"], "Start": ["End"], "ElapsedRaw": ["End"]}.get(column, [])
    error = refused(b"\n\n" + without(column, *also))
    assert isinstance(error, ParseError)
    assert 3 == error.line
    assert rule in str(error)
    assert COMMAND in str(error)


def test_command_asks_for_columns_that_are_read() -> None:
    """The command that errors and the guide show asks for what the tests tell of a job."""
    assert set(JOB) == set(COLUMNS)
    assert set(STEP) <= set(JOB)
    assert re.fullmatch(r"sacct -a -D -P -S now-90days --format=[\w,]+", COMMAND)


def test_command_of_the_guide_asks_for_columns_that_are_read(root: Path) -> None:
    """Every column that the guide asks for has a place in the trace."""
    guide = (root / "docs/guides/slurm.md").read_text()
    found = re.search(r"^sacct .* --format=([\w,]+) > jobs.txt$", guide, re.MULTILINE)
    assert found is not None
    layout = sacct_table.find_layout(found[1].replace(",", "|").encode() + b"\n")
    assert layout is not None
    assert [] == layout.unused


def test_row_with_too_few_values() -> None:
    """A row that is cut off is left out, and its line is named; the others are read."""
    data = text({}, {"JobID": "2"}, {"JobID": "3"})
    for cut, line in ((data.replace(b"2|ada|", b"2|"), 3), (data[:-40], 4)):
        trace = parse_sacct(cut, options=UTC)
        assert 2 == len(trace)
        assert {f"cells that cannot be assigned to the columns (line {line})": 1} == trace.dropped
    assert 2 == place(refused(text({})[:-40]))[0]  # nothing is left


def test_first_malformed_line_is_named() -> None:
    """Of several malformed lines the first is reported, with its line, of its columns the first."""
    rows = [{"JobID": str(number)} for number in range(1, 50)]
    data = text(*rows, {"JobName": "a|b"}, {"ElapsedRaw": "?"}, {"State": "?"})
    assert (52, "ElapsedRaw", "?") == place(refused(data))


def test_first_malformed_line_of_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is right also when the text is read in many pieces, and rows were broken before."""
    monkeypatch.setattr(sacct_table, "PIECE", 1000)
    rows = [{"JobID": str(number)} for number in range(1, 200)]
    data = text(*rows, {"ElapsedRaw": "?"}, *rows, {"JobName": "a|b"})
    assert (201, "ElapsedRaw", "?") == place(refused(data))
    data = text(*rows, {"JobName": "a\nb"}, *rows, {"ElapsedRaw": "?"})
    assert (402, "ElapsedRaw", "?") == place(refused(data))


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \n", b"\t\r\n", b"\n \n\n"])
def test_blank_lines_count_as_lines(blank: bytes) -> None:
    """Blank lines are passed over, and are lines of the file."""
    first, rest = text({}, {"JobID": "2", "ElapsedRaw": "?"}).split(b"\n", 1)
    data = first + b"\n" + blank + rest
    assert 3 + blank.count(b"\n") == place(refused(data))[0]
    assert 2 == len(parse_sacct(data.replace(b"|?|", b"|5|"), options=UTC))


def test_other_header_in_the_middle() -> None:
    """A second header with other columns is not a row."""
    other = text({}).replace(b"Submit|Start", b"Start|Submit")
    assert (3, "JobID", "JobID") == place(refused(text({}) + other))
    assert 3 == place(refused(text({}) + without("QOS")))[0]


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t\n"])
def test_empty_file(data: bytes) -> None:
    """An empty file, or one of blanks, says so."""
    assert "is empty" in str(refused(data))


@pytest.mark.parametrize("data", [text({}).split(b"\n")[0], text({}).split(b"\n")[0] + b"\n\n"])
def test_header_alone(data: bytes) -> None:
    """A header without a row is not a trace."""
    assert "contains no jobs" in str(refused(data))


def test_binary_file() -> None:
    """A binary file is reported as one; a zero byte later is reported with its line."""
    assert "binary file" in str(refused(b"\x89PNG\r\n\x1a\n" + bytes(range(256))))
    assert "binary file" in str(refused("JobID|State".encode("utf-16")))
    data = text({}, {"JobName": "a\0b"})
    assert (3, None, "\\0") == place(refused(data))


def test_no_header() -> None:
    """Rows without a header (``-n``) are reported as such."""
    error = refused(text({}).split(b"\n", 1)[1])
    assert "no header with the names of its columns; write it again without -n" in str(error)
    assert 1 == place(error)[0]


def test_columns_apart_by_blanks() -> None:
    """What sacct writes without ``-P`` is cut to the width of its columns, and refused."""
    data = "JobID           Submit      State \n------- -------- ------\n1 2024-01-31T12:00:00 CD\n"
    assert "columns of fixed width, which cut values off; write it again with -P" in str(
        refused(data)
    )


def test_long_line() -> None:
    """A line that is longer than any is refused; what is shown of it is short."""
    error = refused(text({}, {"JobName": "x" * 2**24}))
    assert "longer than 1,048,576 bytes" in str(error)
    assert 3 == place(error)[0]
    assert "longer than" in str(refused(text({"JobName": "x" * (2**20 + 1), "State": "?"})))


def test_long_path_and_value() -> None:
    """A long value is shown cut off."""
    assert "..." in place(refused(text({"ElapsedRaw": "7" * 5000})))[2]


def test_unknown_zone() -> None:
    """A time zone that is not known is reported."""
    with pytest.raises(QuantityError, match="Mars/Olympus"):
        parse_sacct(text({}), options=FormatOptions(zone="Mars/Olympus"))


def test_malformed_file_by_path(tmp_path: Path) -> None:
    """The path that was read is the one that is named."""
    from hpcrowd.environment import read_sacct

    path = tmp_path / "jobs.txt"
    path.write_bytes(text({"State": "DONE"}))
    with pytest.raises(ParseError, match="not a known job state") as caught:
        read_sacct(path)
    assert (str(path), 2, "State", "DONE") == (caught.value.path, *place(caught.value))


def trace_or_error(data: bytes, options: FormatOptions = PARIS) -> Trace | TraceError:
    """What comes of a text."""
    try:
        return parse_sacct(data, "odd.txt", options)
    except TraceError as error:
        return error


#: What tears a text apart.
PIECES = (
    *(b"\r", b"\n", b"\r\n", b"\0", b"|", b"||", b" ", b"\t", b"-1", b"nan", b"\xff", b"\xc3"),
    *(b"9" * 20, b"1e400", b"Unknown", b"9999-01-01T00:00:00", b"[", b"+1", b"_[", b".", b".0"),
    *(b"\xef\xbb\xbf", b'"', b"JobID", b"\x0b", b"\x85", b"\xe2\x80\xa8", b"12K", b"RUNNING"),
)


@given(
    changes=st.lists(
        st.tuples(
            st.integers(0, len(ODD)),
            st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)),
            st.integers(0, 60),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_stands_there(changes: list[tuple[int, bytes, int]]) -> None:
    """A text torn apart is a trace, or one clear error; both ways of looking at it agree."""
    data = ODD
    for where, what, gone in changes:
        data = data[:where] + what + data[where + gone :]
    trace = trace_or_error(data)
    if isinstance(trace, TraceError):
        assert 1 == len(str(trace).splitlines())
        assert len(str(trace)) < 400
        assert "cannot be read as" not in str(trace)
        return
    assert np.array_equal(np.arange(1, len(trace) + 1), trace["number"])
    layout = sacct_table.find_layout(data)
    mended = trace.repaired[SURPLUS] or any(UNCLEAR in reason for reason in trace.dropped)
    if layout is not None and not mended:  # else the mark at the beginning was taken off
        lines = enumerate(data[layout.begin :].splitlines(), layout.line + 1)
        sacct_table._explain(lines, layout, "odd.txt", 0, sacct_table._checks(layout))


#: Values that mean something in some column.
WORDS = (b"", b"0", b"1", b"Unknown", b"PENDING", b"CANCELLED", b"NODE_FAIL", b"101_1", b"120+1",
         b"120+0.1", b"100", b"2024-10-27T02:10:00", b"9007199254740992")  # fmt: skip
HEAD, *LINES = [line.split(b"|") for line in ODD.split(b"\r\n") if line]


@given(
    lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=6),
    changes=st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 22)), st.sampled_from(WORDS), max_size=3
    ),
    zone=st.sampled_from([None, "Europe/Paris"]),
)
def test_whatever_rows_stand_together(
    lines: list[list[bytes]], changes: dict[tuple[int, int], bytes], zone: str | None
) -> None:
    """Rows of all kinds in any order are a trace that reads back, or one clear error."""
    rows = [HEAD, *map(list, lines)]
    for (row, column), word in changes.items():
        rows[1 + row % len(lines)][column] = word
    options = FormatOptions(zone=zone)
    trace = trace_or_error(b"\n".join(map(b"|".join, rows)), options)
    if isinstance(trace, TraceError):
        assert "cannot be read as" not in str(trace)
        return
    lost = Losses()
    again = trace_or_error(generate_sacct(trace, lost, options), options)
    assert isinstance(again, Trace)
    assert table(trace) == table(again)
    allowed = {"header", "job_id", "executable", "restarts", "lost_work", "final_state"}
    assert allowed >= {field for field, _ in lost.counts}
