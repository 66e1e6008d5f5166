"""Reading a trace block by block gives the same as reading it at once, in less memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment import HpcrowdError, Trace, parse_swf, read_swf
from hpcrowd.environment.traces.formats import swf
from hpcrowd.environment.traces.formats.common import files
from hypothesis import given
from hypothesis import strategies as st

LINE = b"1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1"

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


def outcome(data: bytes) -> object:
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
def test_blocks_of_any_size_give_the_same(
    rows: list[bytes], newline: bytes, ended: bool, size: int
) -> None:
    """Header, comments, line ends, columns, their types and errors do not depend on the blocks."""
    data = newline.join(rows) + (newline if ended else b"")
    whole = outcome(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(swf, "BLOCK", size)
        in_blocks = outcome(data)
    if isinstance(whole, str) and isinstance(in_blocks, str):
        return  # the first of several errors may be that of another block
    assert whole == in_blocks


def test_error_in_a_later_block_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are counted over the whole file, with comments and the byte order mark."""
    monkeypatch.setattr(files, "BLOCK", 10)
    monkeypatch.setattr(files, "PIECE", 64)
    path = tmp_path / "bad.swf"
    good = b"; Version: 2\n" + LINE + b"\n; between\n\n" + LINE + b"\n"
    path.write_bytes(files.BYTE_ORDER_MARK + good + LINE.replace(b" 7 ", b" x ") + b"\n")
    with pytest.raises(HpcrowdError, match=r"line 6, field user: 'x'"):
        read_swf(path)
    path.write_bytes(files.BYTE_ORDER_MARK + good)
    assert [b"; Version: 2"] == read_swf(path).header.lines


def test_file_in_pieces_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a file are whole lines, and together the file, however it is read."""
    data = b"\n".join(b"x" * length for length in (0, 5, 40, 0, 0, 7, 90, 3))
    path = tmp_path / "text"
    path.write_bytes(data)
    for piece in (1, 3, 16, 50, 1000):
        for block in (1, 20, 1000):
            monkeypatch.setattr(files, "PIECE", piece)
            monkeypatch.setattr(files, "BLOCK", block)
            blocks = list(files.read_blocks(path))
            assert data == b"".join(blocks)
            assert all(one.endswith(b"\n") for one in blocks[:-1])


MEASURE = """
import sys
from hpcrowd.environment import read_swf

def memory(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return 1024 * int(line.split()[1])

read_swf(sys.argv[1])
before = memory("VmRSS")
trace = read_swf(sys.argv[2])
print((memory("VmHWM") - before) / len(trace))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_reading_needs_less_memory_than_the_table_of_jobs(tmp_path: Path, root: Path) -> None:
    """The peak of reading half a million jobs is below 200 bytes a job; the table takes 250."""
    small, large = tmp_path / "small.swf", tmp_path / "large.swf"
    small.write_bytes(LINE + b"\n")
    numbers = np.arange(500_000)
    large.write_text(
        "; MaxProcs: 9\n"
        + "".join(f"{one} {7 * one} 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1\n" for one in numbers)
    )
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(large)],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 200


def test_columns_have_the_smallest_type_of_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column is as wide as its largest value needs, in whichever block that is."""
    data = LINE + b"\n" + LINE.replace(b" 60 ", b" 70000 ") + b"\n" + LINE + b"\n"
    monkeypatch.setattr(swf, "BLOCK", 5)
    trace: Trace = parse_swf(data)
    assert (np.int32, np.int8) == (trace["run"].dtype, trace["wait"].dtype)
    assert [60, 70000, 60] == trace["run"].tolist()
