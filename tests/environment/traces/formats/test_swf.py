"""Reading and writing the Standard Workload Format loses nothing."""

from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hpcrowd.environment import generate_swf, parse_swf, read_swf, write_swf
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.swf import _numbers
from hpcrowd.environment.traces.trace import FIELDS, Trace
from hypothesis import given, settings
from hypothesis import strategies as st

LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1"
ROW = [float(word) for word in LINE.split()]
#: Real traces: jobs, and processors of the machine.
TRACES = {
    "CEA-Curie-2011-2.1-cln": (312_826, 93_312),
    "DAS2-fs1-2003-1": (40_315, 64),
    "HPC2N-2002-2.1-cln": (202_876, 240),
    "HPC2N-2002-2.2-cln": (202_871, 240),
    "KTH-SP2-1996-2.1-cln": (28_476, 100),
    "LANL-CM5-1994-4.1-cln": (122_060, 1_024),
    "LCG-2005-1": (188_041, 24_515),
    "LLNL-Thunder-2007-1.1-cln": (121_039, 4_008),
    "NASA-iPSC-1993-3.1-cln": (18_239, 128),
    "SDSC-DS-2004-2.1-cln": (96_069, 1_664),
}


def rows(trace: Trace) -> list[list[float]]:
    """All fields of all jobs, job by job."""
    return np.column_stack([trace[name] for name in FIELDS]).astype(float).tolist()


def other_reader(text: bytes) -> np.ndarray:
    """Fields of the jobs as another library reads them."""
    frame = pd.read_csv(io.BytesIO(text), sep=r"\s+", comment=";", header=None)
    return frame.to_numpy(float)


def header_lines(text: bytes) -> list[bytes]:
    """Lines before the first job."""
    lines = text.split(b"\n")
    return lines[: next(i for i, line in enumerate(lines) if not line.startswith(b";"))]


@pytest.mark.traces
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if "KTH" in name else pytest.mark.slow) for name in TRACES],
)
def test_real_trace_survives_reading_and_writing(traces: Path, name: str) -> None:
    """Every header line byte for byte and every field of every job are read and written."""
    path = traces / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"no trace {path}")
    text = gzip.decompress(path.read_bytes())
    trace = read_swf(path)
    assert TRACES[name] == (len(trace), trace.processors)
    assert header_lines(text) == trace.header.lines
    recorded = other_reader(text)
    assert (len(recorded), len(FIELDS)) == (len(trace), recorded.shape[1])
    for i, field in enumerate(FIELDS):
        assert np.array_equal(recorded[:, i], trace[field]), field
    written = generate_swf(trace)
    assert header_lines(text) == header_lines(written)
    assert np.array_equal(recorded, other_reader(written))


@pytest.mark.traces
def test_all_traces_of_the_folder_are_tested(traces: Path) -> None:
    """No trace in the folder is left out of the round trip."""
    assert {path.name.removesuffix(".swf.gz") for path in traces.glob("*.swf.gz")} <= set(TRACES)


def test_trace_without_header() -> None:
    """Job lines alone are a trace."""
    trace = parse_swf(LINE + b"\n")
    assert [] == trace.header.lines
    assert [ROW] == rows(trace)


def test_fields_have_their_names() -> None:
    """Each of the 18 values of a line is found under the name of its field."""
    trace = parse_swf(" ".join(str(i) for i in range(1, 19)))
    assert list(range(1, 19)) == [int(trace[name][0]) for name in FIELDS]
    assert 4 == trace["run"][0]
    assert 8 == trace["requested_processors"][0]
    assert 12 == trace["user"][0]
    assert 18 == trace["think_time"][0]


def test_no_final_newline_is_needed() -> None:
    """The last line counts with and without its line feed."""
    assert rows(parse_swf(LINE + b"\n" + LINE + b"\n")) == rows(parse_swf(LINE + b"\n" + LINE))


def test_crlf_lines_are_written_as_they_were_read() -> None:
    """Line ends of other systems survive, in the header and after the jobs."""
    text = b"; Version: 2.2\r\n" + LINE + b"\r\n" + LINE + b"\r\n"
    trace = parse_swf(text)
    assert [ROW, ROW] == rows(trace)
    assert "2.2" == trace.header.get("Version")
    assert text == generate_swf(trace)


def test_latin_1_header_survives() -> None:
    """A header line that is not UTF-8 is read as Latin-1 and written byte for byte."""
    text = b"; Installation: Universit\xe9 de Li\xe8ge\n" + LINE + b"\n"
    trace = parse_swf(text)
    assert "Université de Liège" == trace.header.get("Installation")
    assert text == generate_swf(trace)


def test_comments_among_jobs_keep_their_place() -> None:
    """A comment or blank line between jobs stays between the same jobs."""
    text = b"; Version: 2\n" + LINE + b"\n; outage\n;  of a day\n\n" + LINE + b"\n; end\n"
    trace = parse_swf(text)
    assert [ROW, ROW] == rows(trace)
    assert [(1, b"; outage"), (1, b";  of a day"), (1, b""), (2, b"; end")] == trace.comments
    assert text == generate_swf(trace)


def test_order_of_lines_is_kept() -> None:
    """Jobs are in the order of their lines, sorted by submission or not."""
    late, early = LINE.replace(b"1 0 ", b"1 900 ", 1), LINE.replace(b"1 0 ", b"2 30 ", 1)
    trace = parse_swf(late + b"\n" + early + b"\n")
    assert [900, 30] == trace["submit"].tolist()
    assert [1, 2] == trace["number"].tolist()


def test_fractions_large_and_negative_values_survive() -> None:
    """Fractional, negative and very large values are kept exactly."""
    values = ["9007199254740992", "-5", "0.5", "969.56", "1e3", "-0.1", "+7"] + ["-1"] * 11
    trace = parse_swf(" ".join(values))
    expected = [float(value) for value in values]
    assert [expected] == rows(trace)
    assert [expected] == rows(parse_swf(generate_swf(trace)))


def test_tabs_and_leading_blanks_separate_fields() -> None:
    """Fields may be apart by any number of blanks and tabs."""
    assert [ROW] == rows(parse_swf(b"  \t " + LINE.replace(b" ", b"\t  ") + b"  \n"))


def test_gzip_is_found_from_content(tmp_path: Path) -> None:
    """A gzipped file is read whatever its name, and so is a plain one that ends in .gz."""
    packed, plain = tmp_path / "packed.swf", tmp_path / "plain.swf.gz"
    packed.write_bytes(gzip.compress(LINE))
    plain.write_bytes(LINE)
    assert [ROW] == rows(read_swf(packed))
    assert [ROW] == rows(read_swf(plain))


def test_gzip_is_written_by_name(tmp_path: Path) -> None:
    """Writing packs when the name ends in .gz, always to the same bytes, and leaves no rest."""
    trace = parse_swf(b"; Version: 2\n" + LINE)
    for name in ("a.swf", "b.swf.gz", "c.swf.gz"):
        write_swf(trace, tmp_path / name)
    assert b"; Version: 2\n" + LINE + b"\n" == (tmp_path / "a.swf").read_bytes()
    assert (tmp_path / "b.swf.gz").read_bytes() == (tmp_path / "c.swf.gz").read_bytes()
    assert generate_swf(trace) == gzip.decompress((tmp_path / "b.swf.gz").read_bytes())
    assert bytes(4) == (tmp_path / "b.swf.gz").read_bytes()[4:8]  # no time of writing
    assert ["a.swf", "b.swf.gz", "c.swf.gz"] == sorted(p.name for p in tmp_path.iterdir())


def test_checksum_is_that_of_the_file(tmp_path: Path) -> None:
    """The checksum of a trace is the SHA-256 of the bytes on disk."""
    import hashlib

    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress(LINE))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == read_swf(path).sha256


numbers = st.one_of(
    st.integers(-(2**53), 2**53).map(float),
    st.integers(-1, 100).map(float),
    st.floats(-1e9, 1e9, allow_subnormal=False),
)
comment_lines = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f\x85"), max_size=20
).map(lambda text: b";" + text.encode("latin-1"))


@given(
    jobs=st.lists(st.lists(numbers, min_size=18, max_size=18), min_size=1, max_size=6),
    header=st.lists(comment_lines, max_size=4),
    newline=st.sampled_from([b"\n", b"\r\n"]),
)
def test_any_table_survives(jobs: list[list[float]], header: list[bytes], newline: bytes) -> None:
    """Any numbers and any comment lines come back as they were after writing and reading."""
    columns = {name: np.array([job[i] for job in jobs]) for i, name in enumerate(FIELDS)}
    again = parse_swf(generate_swf(Trace(Header(header), columns, newline=newline)))
    assert jobs == rows(again)
    assert header == again.header.lines
    assert newline == again.newline


def test_mark_of_utf_8_is_passed_over() -> None:
    """Some editors begin a file with a byte order mark: it belongs to no field and no comment."""
    data = b"\xef\xbb\xbf; MaxProcs: 4\n1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1\n"
    assert 4 == parse_swf(data).header.processors


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
def job_lines(draw: st.DrawFn) -> list[bytes]:
    """Lines of jobs, most of them good but for a word or two."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        words = LINE.decode().split()
        for place in draw(st.lists(st.integers(0, len(words) - 1), max_size=3)):
            words[place] = draw(WORDS) + draw(BLANKS)
        lines.append(" ".join(words).encode() + draw(st.sampled_from([b"", b"\r", b" "])))
    return lines


def as_floats(lines: list[bytes]) -> np.ndarray | None:
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


@settings(max_examples=1000)
@given(job_lines())
def test_whole_numbers_are_read_as_floats_are(lines: list[bytes]) -> None:
    """Reading whole numbers as such accepts, refuses and returns what reading floats does."""
    expected, found = as_floats(lines), _numbers(b"\n".join(lines), len(lines))
    assert (expected is None) == (found is None)
    if expected is not None and found is not None:
        assert np.float64 == found.dtype
        assert np.array_equal(expected, found)
