"""What holds for every format: round trips keep what it can hold, and count exactly what not."""

import gzip
import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hpcrowd import Trace, read_trace, replay, write_trace
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.common.base import Format
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.environment.traces.trace import FIELDS
from hpcrowd.formats import Losses, find_format, parse_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.environment.traces.formats import format_cases as cases
from tests.environment.traces.formats.format_cases import by_field, differences, losses_are_exact

ZONES = (None, "Europe/Stockholm", "America/New_York", "Asia/Kathmandu")


@pytest.fixture(scope="session")
def told(tmp_path_factory):
    """The options that the formats need."""
    return cases.options(tmp_path_factory.mktemp("mapping"))


@pytest.mark.parametrize("name", FORMATS)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=80)
@given(data=st.data(), zone=st.sampled_from(ZONES), wild=st.booleans())
def test_losses_are_exact(name, told, data, zone, wild):
    """Each field and column differs after writing and reading in as many jobs as are counted.

    What was read is held: written and read again it is the same, in the same bytes each time.
    """
    # Objects of sacct have the memory of a whole job, which else were more than any.
    wild = wild and name != "sacct-json"
    kind, told = FORMATS[name], replace(told, zone=zone)
    first = losses_are_exact(data.draw(cases.traces(wild=wild)), kind, told)
    if wild or "sacct" in name:  # which lose odd run times again, and times beyond the calendar
        return
    lost = Losses()
    written = kind.generate(first, lost, told)
    again = kind.parse(written, "again", told)
    assert {} == {f: n for f, n in by_field(lost).items() if f in FIELDS}
    assert {} == differences(first, again)
    assert written == kind.generate(again, Losses(), told) == kind.generate(first, Losses(), told)


@pytest.mark.parametrize("name", FORMATS)
def test_job_numbers_that_read_alike_stay_two_jobs(name, told):
    """Managers count in numbers: 7 and 007, or 7 and 7.0 of HTCondor, would be one job."""
    nothing = {field: np.zeros(2) for field in FIELDS}
    for pair in combinations(["7", "007", "7.0", "7.00", "7[1]", "07[1]", "7_1", "7_01", "7+0"], 2):
        for times in ([0, 0], [0, 1]):
            columns = nothing | {"submit": np.array(times, float)}
            trace = Trace(Header([]), columns, extra={"job_id": np.array(pair, object)})
            first = losses_are_exact(trace, FORMATS[name], told)
            again = FORMATS[name].parse(FORMATS[name].generate(first, Losses(), told), "a", told)
            assert {} == differences(first, again)


ROWS_OF_JOBS = [(name, b"01/02/2020 00" if name == "pbs" else b"3 4") for name in (
    "swf", "gwf", "pbs", "gridengine", "lsf")]  # fmt: skip


@pytest.mark.parametrize(("name", "cut"), ROWS_OF_JOBS)
def test_a_line_that_is_cut_hides_no_format(name, cut, told):
    """Many lines show the format, whatever the first one is."""
    data = cut + b"\n" + cases.sample(name, told) * 3
    assert [name] == [one.name for one in FORMATS.values() if one.looks_like(data)]


#: What editors, mail and downloads do to a file of text.
ODDITIES = (
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: b"\n\n" + data + b"\n\n",
    lambda data: data.rstrip(b"\n"),
    lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_odd_files_are_read_as_the_plain_one(name, told, tmp_path):
    """Other ends of lines, a byte order mark, empty lines, no last line end, pieces of gzip."""
    expected, path = FORMATS[name].parse(cases.sample(name, told), options=told), tmp_path / "odd"
    for odd in ODDITIES:
        path.write_bytes(odd(cases.sample(name, told)))
        read = read_trace(path, options=replace(told, format="table" if name == "table" else None))
        assert {} == differences(expected, read)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "table"])
def test_format_is_found_from_content(name, told, tmp_path):
    """A file is known by what is in it, whatever is tried first, packed or not, and its name."""
    kind, data = FORMATS[name], cases.sample(name, told)
    assert [name] == [one.name for one in FORMATS.values() if one.looks_like(data)]
    for suffix in FORMATS:
        path = tmp_path / f"wrong.{suffix}"
        path.write_bytes(data)
        assert kind is find_format(path)
    expected = kind.parse(data, options=told)
    for file in ("20090418", "trace.anything", "trace.anything.gz"):
        kind.write(expected, tmp_path / file, told)
        assert kind is find_format(tmp_path / file)
        again = read_trace(tmp_path / file, options=told)
        assert 64 == len(again.sha256)
        assert {} == differences(expected, again)


def test_a_format_is_declared_in_one_place(monkeypatch, tmp_path, call):
    """A format in the registry is found, read and written everywhere, also by commands."""

    def parse(data, source, options):
        return FORMATS["swf"].parse(data.split(b"\n", 1)[1], source, options)

    def generate(trace, lost, options):
        return b"%made up\n" + FORMATS["swf"].generate(trace, lost, options)

    mine = Format("mine", "a format", (".mine",), lambda h: h[:8] == b"%made up", parse, generate)
    monkeypatch.setitem(FORMATS, "mine", mine)
    trace = mine.parse(b"%made up\n1 0 5 60 4 -1 -1 4 90 -1 1 1 3 -1 -1 -1 -1 -1\n")
    assert mine is parse_format("mine")
    assert not write_trace(trace, tmp_path / "a.mine.gz")
    assert mine is find_format(tmp_path / "a.mine.gz")
    assert [60] == read_trace(tmp_path / "a.mine.gz")["run"].tolist()
    assert [*FORMATS] == [*json.loads(call("convert", "--list", "--json")[1])]


@pytest.mark.traces
@pytest.mark.parametrize("name", FORMATS)
def test_replay_gives_the_same_schedule(name, told, kth, tmp_path):
    """Jobs of a converted trace start in the same second, also of users who react, if it has."""
    columns = {field: kth[field][:2000] for field in FIELDS}
    trace, path = Trace(kth.header, columns, source="kth"), tmp_path / f"kth.{name}"
    lost = by_field(write_trace(trace, path, FORMATS[name], told))
    again = read_trace(path, FORMATS[name], told)
    assert name == "batsim-jobs" or "user" not in lost
    for users in ("rigid",) if "user" in lost else ("rigid", "think-time"):
        change = {"users": users, "scheduler": "easy", "processors": "100"}
        first, second = (replay(one, **change).jobs for one in (trace, again))
        moved = int(first.recorded_submit[0] - second.recorded_submit[0])
        assert np.array_equal(first.start, second.start + moved), users
        assert np.array_equal(first.end, second.end + moved), users
