"""Garbage in any format gives a trace or one clear line, never anything else."""

import gzip
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from hpcrowd import HpcrowdError, Trace, jobs_from_trace, read_trace
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.errors import ParseError, TraceError
from hpcrowd.formats import FormatOptions

from tests.environment.traces.formats.format_cases import complaint, options, sample
from tests.environment.traces.formats.format_samples import NATIVE, lsf_record
from tests.support.sacct import ODD as ODDITIES

#: Broken files of each format in the quick test, and in each part of the slow one. The seeds are
#: fixed, so the files are, too.
QUICK, CASES = 400, 2_000

#: Parts of the slow test, which run in parallel.
PARTS = 2

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


#: Formats of accounting that count what cannot be read.
ACCOUNTING = ("sacct", "sacct-json", "pbs", "gridengine", "lsf", "htcondor")

#: What reasons for odd values have in them.
ODD = ("taken as unknown: ", "left out: ", "fields assigned by their kinds")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The options that the formats need."""
    return options(tmp_path_factory.mktemp("mapping"))


def broken(data, draw):
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


def refusal(name, data, told):
    """Read a file and make jobs of it; return why it was refused, None if it was not."""
    try:
        trace = FORMATS[name].parse(data, f"broken.{name}", told)
        assert isinstance(trace, Trace)
        jobs_from_trace(trace)
    except HpcrowdError as error:
        return error
    return None


def check(name, data, told):
    """Read a file; return whether it was refused. Anything but jobs or a clear line fails."""
    error = refusal(name, data, told)
    if error is None:
        if name not in ACCOUNTING or refusal(name, data, replace(told, strict=True)) is None:
            return False
        trace = FORMATS[name].parse(data, f"broken.{name}", told)
        counts = trace.repaired + trace.dropped
        assert any(part in reason for reason in counts for part in ODD), (counts, data)
        return True
    text = str(error)
    assert isinstance(error, ValueError)
    assert f"broken.{name}" in text
    assert len(text) < LONGEST_TEXT, text
    assert "cannot be read as" not in text  # some line is at fault
    if isinstance(error, ParseError):
        lines = data.count(b"\n") + data.count(b"\r") + 1
        assert 1 <= error.line <= lines, (text, data)
    return True


def refused(name, part, count, told):
    """Read broken files of one format; return how many were refused, or had something counted."""
    good = [sample(name, told), *(text.encode() for text in NATIVE.get(name, ()))]
    good += [ODDITIES] if name == "sacct" else []
    assert not any(check(name, one, told) for one in good)
    draw = random.Random(f"{name} {part}")
    return sum(check(name, broken(good[i % len(good)], draw), told) for i in range(count))


@pytest.mark.parametrize(
    "part", [PARTS, *(pytest.param(part, marks=pytest.mark.slow) for part in range(PARTS))]
)
@pytest.mark.parametrize("name", FORMATS)
def test_broken_files(name, part, told):
    """A few thousand broken files, or fifty thousand: each a trace or one clear line."""
    count = QUICK if part == PARTS else CASES
    assert refused(name, part, count, told) > count // 20  # the mishaps do harm


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


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_in_it(name, told):
    """An empty file, zeros, noise and files without jobs are refused in every format."""
    texts = [*NOTHING, *(text.encode() for text in NO_JOBS.get(name, ()))]
    assert [] == [text[:80] for text in texts if not check(name, text, told)]


#: What becomes another text in a good file, and the line, field and words of the complaint.
MALFORMED = {
    "pbs": [
        ("start=1240012900", "start=soon", 8, "start", "soon"),
        ("ncpus=2", "ncpus=two", 8, "Resource_List.ncpus", "two"),
        ("exec_host=n3/0-1", "exec_host=n3/0-x", 8, "exec_host", "n3/0-x"),
        ("exec_host=n3/0-1", f"exec_host=n3/0-{'9' * 30}", 8, "exec_host", f"n3/0-{'9' * 30}"),
        ("00:00:15;Q", "25:00:15;Q", 2, "time", "04/18/2009 25:00:15"),
        ("start=1240012900", "start=1240012900000", 8, "start", "1240012900000"),
        ("mem=1600kb", "mem=big", 7, "resources_used.mem", "big"),
        ("04/18/2009 00:00:20;Q;124.server;queue=long", "garbage", 3, None, "garbage"),
        ("124.server;queue=long", "124.ser\0ver;queue=long", 3, None, ""),
    ],
    "gridengine": [
        ("plain1:1:sge", "plain1:x:sge", 5, "job_number", "'x': not a whole number"),
        (":1795454077:1795454079:", f":{10**14}:5:", 5, "start_time", "1970 to 2199"),
        ("NONE:1:0:0.145606", f"NONE:{2**40}:0:0.145606", 5, "slots", "more than"),
        ("-l h_rt=3600,", "-l h_rt=long,", 5, "category", "3600"),
        ("h_vmem=4G", "h_vmem=big", 5, "category", "4G"),
    ],
    "lsf": [
        ("1706706300 7 ", "1706706300 x ", 2, "jobId", "'x': not a whole number"),
        ("33554438 8 1706702400", f"33554438 8 {10**12}", 2, "submitTime", "1970 to 2199"),
        ('1 "8*n1"', '"n1" "n2"', 2, "numExHosts", "whole number"),
        (" 28000.5 ", " long ", 2, "ru_utime", "'long': not a number"),
        (" 0 0 7200 ", ' 0 x "x" ', 2, "numHostRusage", "'x': not a whole number"),
    ],
    "htcondor": [
        ("QDate = 1706702400", "QDate = 17067024000", 22, "qdate", "1970 to 2199"),
        ('Owner = "ada"', 'Owner = "ada', 19, "owner", "double quotes"),
        ("JobPrio = 5", "JobPrio 5", 13, None, "name = value"),
    ],
    "gwf": [
        *(("\t60\t", f"\t{word}\t", 4, "run", repr(word))
          for word in ("abc", "nan", "1e400", "1_0", "0x1", "9007199254740994")),
        ("\tVO1\tP3", "\tVO1", 4, None, "28 fields; a job"),
        ("2\t1136070690", "1 0 5\n2\t1136070690", 4, None, "3 fields; a job"),
    ],
    "batsim-jobs": [
        ("1.500000,2", "soon,2", 3, "submission_time", "soon"),
        (",3-4,", ",3-4x,", 3, "allocated_resources", "3-4x"),
        (",400,", ",4,0,0,", 4, None, ""),
        (' c"', " c", 3, None, ""),
    ],
    "batsim": [
        ('"subtime": 10', '"subtime": 1e999', 7, "subtime", "Infinity"),
        ('"profile": "twice"', '"profile": "thrice"', 6, "profile", "thrice"),
        ('"id": "w0!7"', '"id": null', 7, "id", ""),
        ('"subtime": 1.5', '"subtime": NaN', 6, None, "NaN"),
        ('"wait": {', '"N\\"aN": {}, "wait": -Infinity, "wait": {', 10, None, "-Infinity"),
        ('"res": 8,', '"res": 8', 7, None, '"profile": "compute", "user": "bo"}'),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "field", "words"),
    [(name, *row) for name, rows in MALFORMED.items() for row in rows],
)
def test_malformed_values(name, old, new, line, field, words):
    """A malformed value is one line with file, line, field, value or rule."""
    good = NATIVE[name][0]
    assert old in good
    data = good.replace(old, new, 1)
    strict = FormatOptions(strict=True)
    error = complaint(lambda *text: FORMATS[name].parse(*text, strict), data)
    assert (line, field) == (error.line, error.field)
    assert words in str(error)
    if name not in ACCOUNTING:
        return
    # by default the others are read, and it is counted
    trace, whole = FORMATS[name].parse(data), FORMATS[name].parse(good)
    counts = trace.repaired + trace.dropped
    told = [reason for reason in counts if reason.endswith(f"(first: line {line})")]
    assert [1] == [counts[reason] for reason in told], counts
    lost = "left out" in told[0]
    assert len(whole) - lost <= len(trace) <= len(whole)
    assert set(trace.extra["job_id"]) <= set(whole.extra["job_id"])


#: Reads a file in its own process, and prints the error and its peak memory, MB.
READER = """
import resource, sys
from hpcrowd import HpcrowdError, read_trace
from hpcrowd.environment.traces.formats.registry import FORMATS
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_trace(sys.argv[1], FORMATS[sys.argv[2]])
except HpcrowdError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("name", FORMATS)
def test_line_of_two_gigabytes(name, root, tmp_path):
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
        # what is nearly of a format is named
        (b"1 0 5 60 4 -1 -1 4 90 -1 1 7\n" * 3, "nearly swf: its lines have 12 numbers"),
        (b'{"jobs": [{"name": "a", "size": 3}]}', "nearly sacct-json: its jobs have name, size"),
    ],
    ids=range(5),
)
@pytest.mark.parametrize("name", ["poem", "poem.json", "poem.csv"])
def test_unknown_files(tmp_path, data, cure, name):
    """A file in no known format, or packed otherwise than by gzip, is one line with a cure."""
    path = tmp_path / (name if "nearly" in cure else "poem")
    path.write_bytes(data)
    with pytest.raises(TraceError, match=cure) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
