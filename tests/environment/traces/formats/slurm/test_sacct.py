"""Slurm's accounting becomes a trace: one text with every oddity, and the sides of the format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hpcrowd.environment import (
    FormatOptions,
    Trace,
    find_format,
    jobs_from_trace,
    parse_format,
    parse_sacct,
    read_sacct,
    read_trace,
    write_trace,
)
from hpcrowd.environment.traces.formats.slurm import table as sacct_table
from hpcrowd.environment.traces.formats.slurm.values import parse_time
from hpcrowd.environment.traces.trace import FIELDS
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import JOB, ODD, job, read, table, text

PARIS = FormatOptions(zone="Europe/Paris")


@pytest.fixture(scope="module")
def odd() -> Trace:
    """The text with every oddity."""
    return parse_sacct(ODD, "odd.txt", PARIS)


def test_every_oddity_in_one_text(odd: Trace) -> None:
    """Steps, arrays, requeues, parts, units, states and hours shown twice give these very jobs."""
    expected = [
        # number submit wait run alloc cpu memory req limit reqmem status user group exe queue part
        [1, 0, 3600, 14400, 64, 14400, 2097152, 64, 129600, 262144, 1, 1, 1, 1, 1, 1],
        [2, 600, 60, 90, 1, 45.5, -1, 1, -1, 2048000, 0, 2, 2, 2, 2, 1],
        [3, 600, 60, 3600, 1, 3540, -1, 1, 3600, 2048000, 0, 2, 2, 2, 2, 1],
        [4, 600, 1200, -1, 0, -1, -1, 1, -1, 2048000, 5, 2, 2, 2, 2, 1],
        [5, 3600, 4205, 3600, 4, 1800, -1, 4, 14400, 4194304, 0, 3, 1, 3, 1, 1],
        [6, 10800, 1800, 3600, 8, 1800, 1024000, 8, 7200, 2097152, 1, 1, 1, 4, 1, 1],
        [7, 24600, 1200, 3600, 1024, 0, -1, 1024, -1, -1, 1, 4, -1, 5, 1, 1],
        [8, 46800, 3600, -1, 0, -1, -1, 8, 600, 64000, 5, 1, 1, 6, 1, 1],
    ]
    assert [[*row, -1, -1] for row in expected] == table(odd)


def test_names_of_the_oddities(odd: Trace) -> None:
    """Names are kept as they are: Latin-1, a quotation mark, a number where a name is missing."""
    assert {1: "ada", 2: "zoë", 3: "bob", 4: "1003"} == odd.names["user"]
    assert {1: "physics", 2: "chemistry"} == odd.names["group"]
    assert 'relax "fast"' == odd.names["executable"][1]
    assert {1: "long", 2: "short"} == odd.names["queue"]
    assert {1: "hal"} == odd.names["partition"]
    ids = ["100", "101_1", "101_2", "101_[3-8,10%2]", "110", "120", "140", "150"]
    assert ids == odd.extra["job_id"].tolist()


def test_what_was_done_to_the_oddities_is_counted(odd: Trace) -> None:
    """Everything that is repaired or dropped is counted, by reason."""
    assert {
        "requeued after a failure or preemption: last run and first submission kept": 1,
        "heterogeneous job: parts merged into one job, processors added up": 1,
        "ambiguous local time (clocks put back): the second taken, which fits the other times": 1,
    } == odd.repaired
    assert {
        "array tasks that never started, in one row: one of them kept": 6,
        "state PENDING": 5,
        "state RUNNING": 1,
        "steps without a row of their job": 1,
    } == odd.dropped
    table = jobs_from_trace(odd)
    assert 2 == table.dropped["no run time (never ran)"]
    assert 1 == table.dropped["state RUNNING"]


def test_header_says_how_it_was_made(odd: Trace) -> None:
    """The header has what is known of the machine, and how the log was read."""
    header = odd.header
    assert 1729965600 == header.integer("UnixStartTime")  # 26 October, 20:00 in Paris
    assert "Europe/Paris" == header.get("TimeZoneString")
    assert "hal" == header.get("Computer")
    assert "Sat Oct 26 20:00:00 CEST 2024" == header.get("StartTime")
    assert "Sun Oct 27 03:10:00 CET 2024" == header.get("EndTime")
    assert 1024 == odd.processors
    notes = [value for key, value in header.entries() if key == "Note"]
    assert "queue is Slurm's Partition, partition its Cluster" in notes
    assert any("most processors in use" in note for note in notes)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "|"])
def test_line_ends_and_last_columns(end: str, tail: str) -> None:
    """``-p`` and ``-P``, Unix and Windows are the same; the last line needs no end."""
    data = text({"JobID": "7"}, {"JobID": "8", "Submit": "2024-01-31T12:00:01"}, end=end, tail=tail)
    for told in (
        data,
        data.removesuffix(end.encode()),
        end.encode() + data,
        b"\xef\xbb\xbf" + data,
    ):
        trace = parse_sacct(told, options=FormatOptions(zone="UTC"))
        assert ["7", "8"] == trace.extra["job_id"].tolist()
        assert [0, 1] == trace["submit"].tolist()


@pytest.mark.parametrize("delimiter", ["|", ",", ";", "\t", "\x1f", ":", "%", "\\", "'"])
def test_delimiters(delimiter: str) -> None:
    """The separator of the values is found from the header."""
    row = {"TotalCPU": "", "Submit": "1706702400", "Start": "1706702700", "End": "1706703300"}
    trace = parse_sacct(text(row, delimiter=delimiter))
    assert 300 == trace["wait"][0]
    assert {1: "ada"} == trace.names["user"]


def test_quotation_marks_are_letters() -> None:
    """A name with a quotation mark takes in no rows after it."""
    trace = read({"JobName": '"fast'}, {"JobID": "2", "JobName": 'say "hi"'})
    assert {1: '"fast', 2: 'say "hi"'} == trace.names["executable"]


@given(order=st.permutations(list(JOB)), more=st.lists(st.sampled_from(["ExitCode", "WCKey"])))
def test_columns_stand_in_any_order(order: list[str], more: list[str]) -> None:
    """Any order of columns gives the same trace, and columns that are not used change nothing."""
    values = JOB | dict.fromkeys(more, "0:0")
    names = [*order, *more]
    data = f"{'|'.join(names)}\n{'|'.join(values[name] for name in names)}\n"
    trace = parse_sacct(data, options=FormatOptions(zone="UTC"))
    assert job(read({})) == job(trace)


def test_names_of_columns_in_any_case() -> None:
    """Names of columns are the same in upper and lower case, as they are for sacct."""
    head, row = text({}).decode().splitlines()
    assert job(read({})) == job(parse_sacct(f"{head.upper()}\n{row}", options=FormatOptions("UTC")))


def test_job_without_nodes_never_ran() -> None:
    """A job that is cancelled while it is held may have a start and processors, but no nodes."""
    at = "2024-01-31T12:10:00"
    gone = {"State": "CANCELLED by 1", "Start": at, "End": at, "ElapsedRaw": "0", "AllocCPUS": "1"}
    trace = read(
        {"JobID": "1", "NodeList": "None assigned", **gone},
        {"JobID": "2", "NodeList": "n1", **gone},
        {"JobID": "3", "NodeList": "None assigned", **gone, "End": "2024-01-31T12:20:00"},
    )
    assert [-1, 0, -1] == trace["run"].tolist()
    assert [0, 1, 0] == trace["allocated_processors"].tolist()


def test_dependencies_of_several_clusters() -> None:
    """Jobs of two clusters with one number are different jobs, whatever the queue is."""
    rows = [
        {"JobID": "1", "Cluster": "hal", "End": "2024-01-31T12:15:00", "ElapsedRaw": "600",
         "SubmitLine": ""},
        {"JobID": "1", "Cluster": "sal", "End": "2024-01-31T12:25:00", "ElapsedRaw": "1200",
         "SubmitLine": ""},
        {"JobID": "2", "Cluster": "hal", "Submit": "2024-01-31T12:01:00",
         "SubmitLine": "sbatch -d afterany:1 x"},
        {"JobID": "2", "Cluster": "sal", "Submit": "2024-01-31T12:01:00",
         "SubmitLine": "sbatch -d afterany:1 x"},
    ]  # fmt: skip
    for queue in ("partition", "qos"):
        trace = parse_sacct(text(*rows), options=FormatOptions(zone="UTC", queue=queue))
        assert [-1, -1, 1, 2] == trace["preceding"].tolist(), queue


def test_files_put_together() -> None:
    """The header of a second file is passed over; a run that both files hold counts once."""
    running = {"JobID": "1", "State": "RUNNING", "End": "Unknown", "ElapsedRaw": "300"}
    january = text(running, {"JobID": "2", "Submit": "2024-01-31T12:00:01"})
    february = text({"JobID": "1"}, {"JobID": "3", "Submit": "2024-02-01T00:00:00"})
    trace = parse_sacct(january + february, options=FormatOptions(zone="UTC"))
    assert ["1", "2", "3"] == trace.extra["job_id"].tolist()
    assert [600, 600, 600] == trace["run"].tolist()
    assert {"duplicate rows of one run": 1} == trace.dropped


def test_jobs_are_ordered_by_submission() -> None:
    """Jobs are numbered as they were submitted, those of one second as they are in the file."""
    times = ["12:00:05", "12:00:00", "12:00:05", "12:00:01"]
    rows = [
        {"JobID": str(place), "Submit": f"2024-01-31T{time}"} for place, time in enumerate(times)
    ]
    trace = read(*rows)
    assert ["1", "3", "0", "2"] == trace.extra["job_id"].tolist()
    assert [1, 2, 3, 4] == trace["number"].tolist()
    assert [0, 1, 5, 5] == trace["submit"].tolist()


def test_file_plain_and_gzipped(tmp_path: Path) -> None:
    """A file is known by its header whatever it is called, gzipped or not."""
    for name, data in (("a.txt", ODD), ("b.dat", gzip.compress(ODD))):
        path = tmp_path / name
        path.write_bytes(data)
        assert parse_format("sacct") is find_format(path)
        trace, other = read_trace(path, options=PARIS), read_sacct(path, PARIS)
        assert table(trace) == table(other)
        assert trace.sha256 == other.sha256 != ""
        assert str(path) == trace.source


def test_written_by_name(tmp_path: Path) -> None:
    """A name that ends in .sacct or .sacct.gz is written as accounting."""
    trace = parse_sacct(ODD, "odd.txt", PARIS)
    for name in ("a.sacct", "a.sacct.gz"):
        lost = write_trace(trace, tmp_path / name, options=PARIS)
        assert [] == [field for field, _ in lost.counts if field in FIELDS]
        assert table(trace) == table(read_trace(tmp_path / name, options=PARIS))


def test_pieces_give_the_same_as_the_whole(monkeypatch: pytest.MonkeyPatch, odd: Trace) -> None:
    """How many bytes are read at once changes nothing."""
    monkeypatch.setattr("hpcrowd.environment.traces.formats.slurm.table.PIECE", 700)
    trace = parse_sacct(ODD, "odd.txt", PARIS)
    assert table(odd) == table(trace)
    assert odd.names == trace.names
    assert np.array_equal(odd.extra["job_id"], trace.extra["job_id"])
    assert (odd.repaired, odd.dropped) == (trace.repaired, trace.dropped)


TIMES = ["{}", "{}Z", "{}+0530", "{}-03:00", "1706702400", "0", "Unknown", "", "None", "NONE"]


@given(words=st.lists(st.sampled_from(TIMES), min_size=1, max_size=6), minute=st.integers(0, 59))
def test_times_of_a_piece_are_those_of_its_words(words: list[str], minute: int) -> None:
    """Times are the same read all at once as word by word, whichever stand together."""
    words = [word.format(f"2024-01-31T12:{minute:02}:59") for word in words]
    column = pa.array([word.encode() for word in words], pa.binary())
    assert [parse_time(word.encode()) for word in words] == sacct_table._times(column).tolist()


@pytest.mark.parametrize("word", ["0x65BA3100", "0000000000", "-170670240", "2024-01-31 12:00:00"])
def test_odd_times_of_a_piece(word: str) -> None:
    """Words that Arrow takes for times mean what they mean alone, or are refused."""
    column = pa.array([word.encode()], pa.binary())
    try:
        expected = [parse_time(word.encode())]
    except ValueError:
        with pytest.raises(sacct_table._Refused):
            sacct_table._times(column)
    else:
        assert expected == sacct_table._times(column).tolist()
