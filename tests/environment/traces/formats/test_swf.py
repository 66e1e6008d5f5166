"""The Standard Workload Format: nothing is lost, and what is no trace is one clear line."""

import gzip
import hashlib
import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hpcrowd import generate_swf, jobs_from_trace, parse_swf, read_swf, read_trace, write_swf
from hpcrowd.environment.errors import HpcrowdError, TraceError
from hpcrowd.environment.traces.formats import swf
from hpcrowd.environment.traces.formats.common import files
from hpcrowd.environment.traces.formats.swf import _numbers
from hpcrowd.environment.traces.trace import FIELDS
from hpcrowd.traces import archive_logs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import complaint

LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1"
TITLE_LINE = " ".join(FIELDS).encode()
#: Real traces of the archive.
TRACES = {log.name: log for log in archive_logs()}


def other_reader(text):
    """Fields of the jobs as another library reads them."""
    frame = pd.read_csv(io.BytesIO(text), sep=r"\s+", comment=";", header=None)
    return frame.to_numpy(float)


def header_lines(text):
    """Lines before the first job."""
    lines = text.split(b"\n")
    return lines[: next(i for i, line in enumerate(lines) if not line.startswith(b";"))]


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if "KTH" in name else pytest.mark.slow) for name in TRACES]
)
def test_real_trace_survives_reading_and_writing(traces, name):
    """Every header line byte for byte and every field of every job are read and written."""
    assert {path.name.removesuffix(".swf.gz") for path in traces.glob("*.swf.gz")} <= set(TRACES)
    path = traces / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"no trace {path}")
    text = gzip.decompress(path.read_bytes())
    trace = read_swf(path)
    assert (TRACES[name].jobs, TRACES[name].processors) == (len(trace), trace.processors)
    assert header_lines(text) == trace.header.lines
    recorded = other_reader(text)
    assert (len(recorded), len(FIELDS)) == (len(trace), recorded.shape[1])
    for i, field in enumerate(FIELDS):
        assert np.array_equal(recorded[:, i], trace[field]), field
    written = generate_swf(trace)
    assert header_lines(text) == header_lines(written)
    assert np.array_equal(recorded, other_reader(written))


LATE, EARLY = LINE.replace(b"1 0 ", b"1 900 ", 1), LINE.replace(b"1 0 ", b"2 30 ", 1)


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        (LINE + b"\n", []),
        (LATE + b"\n" + EARLY + b"\n", []),
        (b"; Version: 2.2\r\n" + LINE + b"\r\n" + LINE + b"\r\n", []),
        (b"; Installation: Universit\xe9 de Li\xe8ge\n" + LINE + b"\n", []),
        (b"; Version: 2\n" + LINE + b"\n; outage\n;  of a day\n\n" + LINE + b"\n; end\n",
         [(1, b"; outage"), (1, b";  of a day"), (1, b""), (2, b"; end")]),
        (b"9007199254740992 -5 0.5 969.56 1000 -0.1 7" + b" -1" * 11 + b"\n", []),
        # without a line end, and with blanks, tabs, a mark of UTF-8 and other numbers
        *((odd, [LINE + b"\n"]) for odd in (
            LINE, b"  \t " + LINE.replace(b" ", b"\t  ") + b"  \n", b"\xef\xbb\xbf" + LINE,
            LINE.replace(b" 90 ", b" +9e1 "))),
    ],
    ids=range(10),
)  # fmt: skip
def test_texts_are_written_as_they_were_read(text, comments):
    """Line ends, bytes, order and places of comments survive, and numbers are exact."""
    trace, normal = parse_swf(text), [one for one in comments if isinstance(one, bytes)]
    assert (normal[0] if normal else text) == generate_swf(trace)
    assert ([] if normal else comments) == trace.comments


def test_files(tmp_path):
    """Gzip is found from content and written by name, always to the same bytes, with its sum."""
    trace = parse_swf(b"; Version: 2\n" + LINE)
    for name in ("a.swf", "b.swf.gz"):
        write_swf(trace, tmp_path / name)
    plain, packed = ((tmp_path / name).read_bytes() for name in ("a.swf", "b.swf.gz"))
    assert b"; Version: 2\n" + LINE + b"\n" == plain == gzip.decompress(packed)
    assert bytes(4) == packed[4:8]  # no time
    for name, data in (("packed.swf", packed), ("plain.swf.gz", plain)):
        (tmp_path / name).write_bytes(data)
        read = read_swf(tmp_path / name)
        assert b"; Version: 2\n" + LINE + b"\n" == generate_swf(read)
        assert hashlib.sha256(data).hexdigest() == read.sha256


#: Words of a job: numbers, large ones around what a float holds exactly, and other words.
WORDS = st.one_of(
    st.integers(-3, 10**6).map(str),
    st.integers(2**53 - 3, 2**53 + 3).flatmap(lambda n: st.sampled_from([str(n), str(-n)])),
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(["-0", "007", "+5", "1.5", "5.", "1e3", "nan", "-inf", "0x10", "1_0", "1e400"]),
    st.sampled_from(["-", "+", "--5", "5-6", "5+6", "-9223372036854775808", "\0005", "5\0"]),
    st.text("0123456789-+.e", min_size=1, max_size=5),
)
BLANKS = st.sampled_from([" ", "  ", "\t", "\x0b", "\x0c", "\x01", "\x1c", " \r", ""])


@st.composite
def job_lines(draw):
    """Lines of jobs, most of them good but for a word or two."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        words = LINE.decode().split()
        for place in draw(st.lists(st.integers(0, len(words) - 1), max_size=3)):
            words[place] = draw(WORDS) + draw(BLANKS)
        lines.append(" ".join(words).encode() + draw(st.sampled_from([b"", b"\r", b" "])))
    return lines


def as_floats(lines):
    """The words of jobs read as floats, one at a time; None if one is not a number to keep."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = np.fromstring(b"\n".join(lines).decode(), sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    blanks = bytes(range(33))
    words = [line.translate(bytes.maketrans(blanks, b" " * 33)).split() for line in lines]
    if any(len(FIELDS) != len(one) for one in words) or len(values) != len(FIELDS) * len(lines):
        return None
    return values if np.all(np.abs(values) <= 2**53) else None


@settings(max_examples=300)
@given(job_lines())
def test_whole_numbers_are_read_as_floats_are(lines):
    """Reading whole numbers as such accepts, refuses and returns what reading floats does."""
    expected, found = as_floats(lines), _numbers(b"\n".join(lines), len(lines))
    assert (expected is None) == (found is None)
    if expected is not None and found is not None:
        assert np.float64 == found.dtype
        assert np.array_equal(expected, found)


lines = st.one_of(
    st.builds(
        lambda number, run, user: (
            LINE.replace(b"1", number, 1).replace(b"60", run).replace(b" 7 ", user)
        ),
        st.sampled_from([b"1", b"  200", b"70000", b"-1", b"+3"]),
        st.sampled_from([b"60", b"60.0", b"2.5", b"1e3", b"4294967296"]),
        st.sampled_from([b" 7 ", b"\t8  ", b" -1 "]),
    ),
    st.sampled_from([b"", b"  ", b"; a comment", b" ; indented", b"; MaxProcs: 8"]),
    st.sampled_from([LINE + b" 9", LINE[:-3], LINE.replace(b"60", b"x"), b"; a \0", LINE + b"\0"]),
)


def outcome(data):
    """Return everything in a trace, or the message why there is none."""
    try:
        trace = parse_swf(data)
    except HpcrowdError as error:
        return str(error)
    columns = {name: (values.dtype, values.tolist()) for name, values in trace.columns.items()}
    return trace.header.lines, trace.comments, trace.newline, columns


@given(
    st.lists(lines, max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.integers(1, 300),
)
def test_blocks_of_any_size_give_the_same(rows, newline, ended, size):
    """Header, comments, line ends, columns, their types and errors do not depend on the blocks."""
    data = newline.join(rows) + (newline if ended else b"")
    whole = outcome(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(swf, "BLOCK", size)
        in_blocks = outcome(data)
    if isinstance(whole, str) and isinstance(in_blocks, str):
        return  # the first of several errors may be that of another block
    assert whole == in_blocks


@pytest.mark.parametrize(("block", "piece"), [(10, 64), (1, 1), (20, 3), (1000, 50), (20, 1000)])
def test_files_are_read_in_blocks(tmp_path, monkeypatch, block, piece):
    """Blocks are whole lines, and together the file; errors name the line of the whole file."""
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(files, "PIECE", piece)
    path = tmp_path / "bad.swf"
    good = b"; Version: 2\n" + LINE + b"\n; between\n\n" + LINE + b"\n"
    path.write_bytes(files.BYTE_ORDER_MARK + good + LINE.replace(b" 7 ", b" x ") + b"\n")
    with pytest.raises(HpcrowdError, match=r"line 6, field user: 'x'"):
        read_swf(path)
    path.write_bytes(files.BYTE_ORDER_MARK + good)
    assert [b"; Version: 2"] == read_swf(path).header.lines
    path.write_bytes(b"\n".join(b"x" * length for length in (0, 5, 40, 0, 0, 7, 90, 3)))
    blocks = list(files.read_blocks(path))
    assert path.read_bytes() == b"".join(blocks)
    assert all(one.endswith(b"\n") for one in blocks[:-1])


def bad(old, new, before=b"; a\n"):
    """Three jobs of which the second is malformed, the third, too."""
    return b"\n".join([before + LINE, LINE.replace(old, new), LINE.replace(b" 60 ", b" ? ")])


@pytest.mark.parametrize(
    ("data", "line", "field", "value"),
    [
        *((bad(b" 60 ", b" " + word + b" "), 3, "run", word.decode()) for word in (
            b"abc", b"-nan", b"1e400", b"1_000", b"0x10", b"9007199254740994", "\u0661".encode())),
        (bad(b" 7 ", b" x ", b"; a\n\n; b\n\n"), 6, "user", "x"),
        (LINE[:-3] + b"\n" + LINE + b" 5\n", 1, None, "17 fields"),
        (LINE + b"\n" + TITLE_LINE, 2, "number", "'number'"),
        *((bad(b" 60 ", blank + b"60 "), 3, None, "") for blank in (
            b"\xa0", b"\x1c", b"\x1f", b" \xa0", b" \x1c")),
        (b"\n".join([LINE] * 200) + b"\n; odd\0comment\n" + LINE, 201, None, "zero byte"),
    ],
)  # fmt: skip
def test_malformed_lines(data, line, field, value):
    """The first one is named, counted with comments, with its field and value or fault."""
    error = complaint(parse_swf, data)
    assert line == error.line
    assert field in (None, error.field)
    assert value in str(error)


@pytest.mark.parametrize("more", [b" -1 -1 -1", b" n1:ppn=4 -1 1.5", b" 9"])
@pytest.mark.parametrize("title", [b"", TITLE_LINE + b"\n", b"; c\n" + TITLE_LINE + b" DAG\n"])
@pytest.mark.parametrize("rows", [1, 4])
def test_more_fields_than_a_job_has(tmp_path, more, title, rows):
    """18 fields are read, with or without their names; what else is there is counted or refused."""
    path = tmp_path / "log"
    path.write_bytes(title + (LINE + more + b"\n") * rows + LINE + b"\n")
    trace = read_trace(path)
    one = parse_swf(LINE)
    assert all(trace[name].tolist() == one[name].tolist() * (rows + 1) for name in FIELDS)
    assert {"more than 18 fields: the first 18 read": rows} == trace.repaired
    assert ({"lines: names of the fields, no job": 1} if title else {}) == trace.dropped
    assert not title or trace.header.lines[-1].startswith(b"; " + TITLE_LINE)
    with pytest.raises(TraceError, match="leave out --strict"):
        jobs_from_trace(trace, strict=True)


def flipped(place, value=255):
    """A gzip file of which one byte is another."""
    data = bytearray(gzip.compress(b"\n".join([LINE] * 50), mtime=0))
    data[place] ^= value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *((gzip.compress(LINE, mtime=0)[:length], "cut short") for length in (2, 5, 12, 40)),
        *((flipped(place), "damaged") for place in (2, 14, -6)),  # in head, data or checksum
        (None, "No such file"),
    ],
)
def test_files_that_are_no_trace(tmp_path, data, words):
    """Each is a message with the file and the reason, which a ValueError handler catches."""
    path = tmp_path / "bad.swf.gz"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read_swf(path)
    assert isinstance(caught.value, ValueError)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    with pytest.raises(TraceError, match="is a folder"):
        read_swf(tmp_path)
    before = list(tmp_path.iterdir())
    with pytest.raises(TraceError, match=r"a\.swf: cannot be written"):
        write_swf(parse_swf(LINE), tmp_path / "none" / "a.swf")
    assert before == list(tmp_path.iterdir())
