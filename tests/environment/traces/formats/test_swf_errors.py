"""What is not a trace is reported in one line that names file, line, field and value."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment import ParseError, Trace, TraceError, parse_swf, read_swf, write_swf

LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1"


def one_line(error: BaseException, *parts: str) -> None:
    """Check that the text is one short line with all ``parts`` in it."""
    text = str(error)
    assert 1 == len(text.splitlines())
    assert len(text) < 400
    for part in parts:
        assert part in text


NO_NUMBERS = (
    *("abc", "nan", "-nan", "inf", "-inf", "1e400", "1_000", "0x10", "1,5", "--1"),
    "9007199254740994",  # not every whole number is exact from 2**53 on
    "\u0661".encode().decode("latin-1"),  # a digit, but not of ASCII
)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_malformed_value(tmp_path: Path, value: str) -> None:
    """A word that is not a finite exact number is a ParseError with path, line, field and value."""
    path = tmp_path / "bad.swf"
    bad = LINE.replace(b" 60 ", b" " + value.encode("latin-1") + b" ")
    path.write_bytes(b"; Version: 2\n" + LINE + b"\n" + bad + b"\n" + LINE + b"\n")
    with pytest.raises(ParseError) as caught:
        read_swf(path)
    error = caught.value
    assert (str(path), 3, "run", value) == (error.path, error.line, error.field, error.value)
    one_line(error, str(path), "line 3", "run", repr(value))


@pytest.mark.parametrize(("line", "count"), [(LINE[:-3], 17), (LINE + b" 4", 19)])
def test_wrong_number_of_fields(line: bytes, count: int) -> None:
    """A line with 17 or 19 fields is a ParseError that says how many there are."""
    with pytest.raises(ParseError) as caught:
        parse_swf(LINE + b"\n" + line + b"\n", source="some.swf")
    assert ("some.swf", 2, None) == (caught.value.path, caught.value.line, caught.value.field)
    assert line.decode() == caught.value.value
    one_line(caught.value, "some.swf", "line 2", f"{count} fields", "18")


def test_fields_moved_to_the_next_line() -> None:
    """Lines of 17 and 19 fields do not make up for each other."""
    with pytest.raises(ParseError) as caught:
        parse_swf(LINE[:-3] + b"\n" + LINE + b" 5\n")
    assert 1 == caught.value.line


def test_line_number_counts_comments_among_jobs() -> None:
    """The line number is that of the file, also after comment and blank lines between jobs."""
    with pytest.raises(ParseError) as caught:
        parse_swf(b"; a\n" + LINE + b"\n; b\n\n" + LINE.replace(b" 7 ", b" x ") + b"\n")
    assert (5, "user", "x") == (caught.value.line, caught.value.field, caught.value.value)


def test_first_malformed_line_is_named() -> None:
    """Of several malformed lines the first is reported."""
    bad = LINE.replace(b" 60 ", b" ? ")
    with pytest.raises(ParseError) as caught:
        parse_swf(b"\n".join([LINE, LINE[:-3], bad]))
    assert 2 == caught.value.line


@pytest.mark.parametrize("blank", [b"\xa0", b"\x1c", b"\x1f", b" \xa0", b" \x1c"])
def test_odd_blank_is_reported_with_its_line(blank: bytes) -> None:
    """A character that is no blank of the format but looks like one is reported with its line."""
    with pytest.raises(ParseError) as caught:
        parse_swf(LINE + b"\n" + LINE.replace(b" 60 ", blank + b"60 "))
    assert 2 == caught.value.line
    one_line(caught.value)


def test_long_word_is_shown_shortened() -> None:
    """A file that is not text still gives one short line."""
    with pytest.raises(TraceError) as caught:
        parse_swf(b"BZh91AY" + bytes(range(128, 256)) * 100)
    one_line(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n"])
def test_empty_file(tmp_path: Path, content: bytes) -> None:
    """An empty file, or one of blanks, is a TraceError that says so."""
    path = tmp_path / "empty.swf"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read_swf(path)
    one_line(caught.value, str(path), "empty")


def test_header_alone() -> None:
    """A file with a header and no job is not a trace."""
    with pytest.raises(TraceError) as caught:
        parse_swf(b"; Version: 2.2\n; MaxProcs: 4\n", source="only.swf")
    one_line(caught.value, "only.swf", "no job")


def test_binary_file(tmp_path: Path) -> None:
    """A binary file is reported as one."""
    path = tmp_path / "picture.swf"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with pytest.raises(TraceError) as caught:
        read_swf(path)
    one_line(caught.value, str(path), "binary")


@pytest.mark.parametrize("length", [2, 5, 12, 40])
def test_truncated_gzip(tmp_path: Path, length: int) -> None:
    """A gzip file that is cut short is reported as cut short, wherever the cut is."""
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(LINE)[:length])
    with pytest.raises(TraceError) as caught:
        read_swf(path)
    one_line(caught.value, str(path), "cut short")


@pytest.mark.parametrize("where", [3, 14, -6])
def test_damaged_gzip(tmp_path: Path, where: int) -> None:
    """A gzip file with a changed byte is reported as damaged: in its head, data or checksum."""
    path = tmp_path / "damaged.swf.gz"
    data = bytearray(gzip.compress(b"\n".join([LINE] * 50), mtime=0))
    if where == 3:
        data[2] = 0xFF  # an unknown method of compression
    else:
        data[where] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(TraceError) as caught:
        read_swf(path)
    one_line(caught.value, str(path), "damaged")


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is a TraceError, which a ValueError handler catches."""
    with pytest.raises(TraceError) as caught:
        read_swf(tmp_path / "none.swf")
    assert isinstance(caught.value, ValueError)
    one_line(caught.value, "none.swf", "No such file")


def test_directory(tmp_path: Path) -> None:
    """A directory is a TraceError that names it."""
    with pytest.raises(TraceError) as caught:
        read_swf(tmp_path)
    one_line(caught.value, str(tmp_path), "directory")


def test_parse_error_is_a_value_error_with_its_parts() -> None:
    """A ParseError carries path, line, field, value and rule in addition to its text."""
    error = ParseError("a.swf", 3, "run", "x", "not a number")
    assert isinstance(error, TraceError)
    assert isinstance(error, ValueError)
    assert ("a.swf", 3, "run", "x", "not a number") == (
        error.path,
        error.line,
        error.field,
        error.value,
        error.rule,
    )
    assert "a.swf, line 3, field run: 'x': not a number" == str(error)


def test_unwritable_place(tmp_path: Path, make_trace: Callable[..., Trace]) -> None:
    """A trace that cannot be written is reported in one line, and nothing is left behind."""
    with pytest.raises(TraceError) as caught:
        write_swf(make_trace({"submit": 0}), tmp_path / "none" / "a.swf")
    one_line(caught.value, "a.swf", "cannot be written")
    assert [] == list(tmp_path.iterdir())


def test_zero_byte_in_a_late_comment() -> None:
    """A zero byte behind the beginning of a file is reported with its line, also in a comment."""
    with pytest.raises(ParseError) as caught:
        parse_swf(b"\n".join([LINE] * 200) + b"\n; odd\0comment\n" + LINE, source="some.swf")
    assert 201 == caught.value.line
    one_line(caught.value, "some.swf", "line 201", "zero byte")
