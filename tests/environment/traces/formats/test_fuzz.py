"""Garbage in any format gives a trace or one clear line, never anything else."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hpcrowd.environment import (
    FormatOptions,
    HpcrowdError,
    ParseError,
    Trace,
    TraceError,
    jobs_from_trace,
    read_trace,
)
from hpcrowd.environment.traces.formats.registry import FORMATS

from tests.environment.traces.formats.format_cases import names_of_formats, options, sample
from tests.environment.traces.formats.format_samples import NATIVE, lsf_record

#: Broken files of each format in the quick test, and in each part of the slow one. The seeds are
#: fixed, so the files are, too.
QUICK, CASES = 400, 2_800

#: Parts of the slow test, which run in parallel.
PARTS = 4

#: Characters that an error's text may have at most.
LONGEST_TEXT = 600

#: Words that are put where others stood.
NASTY = (
    b"abc", b"nan", b"-inf", b"1e400", b"9" * 40, b"-", b"", b"\0", b"1_000", b"0x10", b"1,5",
    "\u0663".encode(), b"\xff\xfe", b"--1", b"1e308", b"9007199254740993", b"-9007199254740992",
    b'"', b"'", b"|", b";", b",", b"\t", b"{", b"[" * 50, b"null", b"true", b"#", b"2024-13-45T99",
    b"0001-01-01T00:00:00", b"9999-12-31T23:59:59", b"99999999-00:00:00", b"UNLIMITED", b"1.5.2",
    b"\r", b"\x1a", b"\xa0", b"-0", b"+5", b"\xe2\x80\xa8", b"99999999999G", b"=", b"1" * 5000,
)  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> FormatOptions:
    """The options that the formats need."""
    return options(tmp_path_factory.mktemp("mapping"))


def broken(data: bytes, draw: random.Random) -> bytes:
    """A file after one to four mishaps."""
    found = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(found) + 1)
        length = draw.choice((1, 1, 2, 5, 20, 200))
        kind = draw.randrange(10)
        if kind == 0:
            found[place : place + 1] = draw.randbytes(length)
        elif kind == 1:
            del found[place : place + length]
        elif kind == 2:
            found[place:place] = found[max(0, place - length) : place]
        elif kind == 3:
            found = bytearray(found[:place])
        elif kind == 4:
            old, new = draw.choice(((b"\n", b"\r"), (b"\n", b"\r\n"), (b"\n", b" "), (b" ", b"\n")))
            found = bytearray(bytes(found).replace(old, new, draw.randint(1, 3)))
        elif kind == 5:
            found[place:place] = draw.choice(NASTY)
        elif kind == 6:
            lines = bytes(found).split(b"\n")
            draw.shuffle(lines)
            found = bytearray(b"\n".join(lines))
        else:  # a word becomes another
            words = bytes(found).replace(b",", b" ").replace(b"|", b" ").replace(b";", b" ").split()
            if words:
                word = draw.choice(words)
                found = bytearray(bytes(found).replace(word, draw.choice(NASTY), 1))
    return bytes(found)


def refusal(name: str, data: bytes, told: FormatOptions) -> HpcrowdError | None:
    """Read a file and make jobs of it; return why it was refused, None if it was not."""
    try:
        trace = FORMATS[name].parse(data, f"broken.{name}", told)
        assert isinstance(trace, Trace)
        jobs_from_trace(trace)
    except HpcrowdError as error:
        return error
    return None


def check(name: str, data: bytes, told: FormatOptions) -> bool:
    """Read a file; return whether it was refused. Anything but jobs or a clear line fails."""
    error = refusal(name, data, told)
    if error is None:
        return False
    text = str(error)
    assert isinstance(error, ValueError)
    assert 1 == len(text.splitlines())
    assert f"broken.{name}" in text
    assert len(text) < LONGEST_TEXT, text
    if isinstance(error, ParseError):
        lines = data.count(b"\n") + data.count(b"\r") + 1
        assert 1 <= error.line <= lines, (text, data)
    return True


def refused(name: str, part: int, count: int, told: FormatOptions) -> int:
    """Read broken files of one format; return how many were refused."""
    good = [sample(name, told), *(text.encode() for text in NATIVE.get(name, ()))]
    draw = random.Random(f"{name} {part}")
    return sum(check(name, broken(good[i % len(good)], draw), told) for i in range(count))


@pytest.mark.parametrize("name", names_of_formats())
def test_broken_files(name: str, told: FormatOptions) -> None:
    """A few thousand broken files, over all formats: each a trace or one clear line."""
    assert refused(name, PARTS, QUICK, told) > QUICK // 20  # the mishaps do harm


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", names_of_formats())
def test_many_broken_files(name: str, part: int, told: FormatOptions) -> None:
    """A hundred thousand broken files, over all formats."""
    assert refused(name, part, CASES, told) > CASES // 20


@pytest.mark.parametrize("name", names_of_formats())
def test_good_files_are_read(name: str, told: FormatOptions) -> None:
    """What the mishaps begin from are good files."""
    for good in (sample(name, told), *(text.encode() for text in NATIVE.get(name, ()))):
        assert not check(name, good, told)


#: What holds no job that has ended, or is cut short, or is something else.
NO_JOBS = {
    "swf": ("; Version: 2.2\n; MaxProcs: 4\n", "\x89PNG\r\n\x1a\n" + "\0\1\2" * 9),
    "gwf": ("# a\n", "a\0"),
    "pbs": ("a\n", "04/18/2009 00:00:15;Q;1.s;queue=q\n"),
    "gridengine": ("# Version: 8.1.9\n#\n", "a:b:c\n", "all.q:n1:phys:ada:relax:7:sge:0:17067"),
    "lsf": ('"JOB_NEW" "10.1" 5\n', "a b c\n", lsf_record()[:200], lsf_record()[:60] + '"open'),
    "htcondor": ("ClusterId = 1\nJobStatus = 2\n", "a b c\n", "*** 1\n"),
    "batsim-jobs": ("job_id\n1\n", "job_id,submission_time\n", "a,b\n1,2"),
    "batsim": ("[]", "{}", '"jobs"', '{"jobs": 5, "profiles": {}}', '{"jobs": [], "profiles": {}}',
               '{"jobs": [5], "profiles": {}}', "[" * 100_000, '{"jobs":' * 50_000),
    "csv": ("submit,run\n",),
}  # fmt: skip
NOTHING = [b"", b"\n", b" \r\n\t\n", b"\0", b"\0" * 9000, b"\xff" * 9000, b"(" * 9000]


@pytest.mark.parametrize("name", names_of_formats())
def test_nothing_in_it(name: str, told: FormatOptions) -> None:
    """An empty file, zeros, noise and files without jobs are refused in every format."""
    texts = [*NOTHING, *(text.encode() for text in NO_JOBS.get(name, ()))]
    assert [] == [text[:80] for text in texts if not check(name, text, told)]


#: Reads a file in its own process, and prints the error and its peak memory, MB.
READER = """
import resource, sys
from hpcrowd.environment import HpcrowdError, read_trace
from hpcrowd.environment.traces.formats.registry import FORMATS
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_trace(sys.argv[1], FORMATS[sys.argv[2]])
except HpcrowdError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("name", names_of_formats())
def test_line_of_two_gigabytes(name: str, root: Path, tmp_path: Path) -> None:
    """A line without end is refused with file and line, and costs no more than what is allowed."""
    path = tmp_path / f"endless.{name}.gz"
    # 16 MB of a letter, again and again: gzip members add up.
    path.write_bytes(gzip.compress(b"ab\n", 1) + gzip.compress(b"a" * 2**24, 1) * 128)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", READER, str(path), name],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "" == done.stderr
    text, memory = done.stdout.splitlines()
    limit = FORMATS[name].longest_line
    assert f"{path}, line 2: 'aaa" in text
    assert f"longer than {limit:,} bytes" in text
    assert int(memory) < 40 + 1.5 * limit / 2**20


@pytest.mark.parametrize(
    ("data", "cure"),
    [
        (b"\xfd7zXZ\0" + bytes(range(200)), "xz -d"),
        (b"BZh9" + bytes(range(200)), "bunzip2"),
        (b"So much depends\nupon a red wheel\n", r"not in a known format; .* --input-format"),
    ],
)
def test_unknown_files(tmp_path: Path, data: bytes, cure: str) -> None:
    """A file in no known format, or packed otherwise than by gzip, is one line with a cure."""
    path = tmp_path / "poem"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=cure) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
