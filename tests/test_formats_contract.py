"""What holds for every format: round trips keep what it can hold, and count exactly what not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from format_cases import by_field, differences, names_of_formats, options, round_trip, traces
from hpcrowd.environment import FormatOptions, Losses, Trace, find_format, read_trace, write_trace
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.environment.traces.trace import FIELDS
from hypothesis import HealthCheck, given, settings


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> FormatOptions:
    """What the formats want to be told."""
    return options(tmp_path_factory.mktemp("mapping"))


@pytest.mark.parametrize("name", names_of_formats())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(trace=traces())
def test_losses_are_exact(name: str, told: FormatOptions, trace: Trace) -> None:
    """Each field differs after writing and reading in as many jobs as are counted, no more."""
    again, lost = round_trip(trace, FORMATS[name], told)
    counted = by_field(lost)
    assert differences(trace, again) == {f: n for f, n in counted.items() if f in FIELDS}


@pytest.mark.parametrize("name", names_of_formats())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=25)
@given(trace=traces())
def test_a_second_round_trip_loses_nothing(name: str, told: FormatOptions, trace: Trace) -> None:
    """What was read from a format is held by it: no field is lost again."""
    first, _ = round_trip(trace, FORMATS[name], told)
    again, lost = round_trip(first, FORMATS[name], told)
    assert {} == {f: n for f, n in by_field(lost).items() if f in FIELDS}
    assert {} == differences(first, again)


@pytest.mark.parametrize("name", names_of_formats())
@given(trace=traces())
@settings(max_examples=20)
def test_bytes_are_the_same_each_time(name: str, told: FormatOptions, trace: Trace) -> None:
    """Writing the same trace twice gives the same bytes."""
    kind = FORMATS[name]
    assert kind.generate(trace, Losses(), told) == kind.generate(trace, Losses(), told)


@pytest.mark.traces
@pytest.mark.parametrize("name", names_of_formats())
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "NASA-iPSC", "LLNL-Thunder"])
def test_real_traces(name: str, log: str, told: FormatOptions, read_trace: object) -> None:
    """Real logs survive each format but for what is counted."""
    trace = read_trace(log)  # type: ignore[operator]
    again, lost = round_trip(trace, FORMATS[name], told)
    assert len(trace) == len(again)
    assert differences(trace, again) == {f: n for f, n in by_field(lost).items() if f in FIELDS}


@pytest.mark.traces
@pytest.mark.parametrize("name", [name for name in names_of_formats() if name != "table"])
def test_format_is_found_from_content(
    name: str, told: FormatOptions, kth: Trace, tmp_path: Path
) -> None:
    """A file is known by what is in it, gzipped or not, whatever it is called."""
    some = kth.header, {field: kth[field][:50] for field in FIELDS}
    for file in ("trace.anything", "trace.anything.gz"):
        write_trace(Trace(*some), tmp_path / file, FORMATS[name], told)
        assert FORMATS[name] is find_format(tmp_path / file)
        again = read_trace(tmp_path / file, options=told)
        assert 50 == len(again)
        assert np.array_equal(kth["run"][:50], again["run"])
        assert 64 == len(again.sha256)


@pytest.mark.traces
@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
@pytest.mark.parametrize("name", names_of_formats())
def test_replay_gives_the_same_schedule(
    name: str, scheduler: str, told: FormatOptions, kth: Trace, tmp_path: Path
) -> None:
    """Jobs start in the same second when the converted trace is replayed.

    Users who react do so, too, where the format tells who they are.
    """
    from hpcrowd.scenarios import replay

    jobs = 3000
    trace = Trace(kth.header, {field: kth[field][:jobs] for field in FIELDS}, source="kth")
    path = tmp_path / f"kth.{name}"
    lost = by_field(write_trace(trace, path, FORMATS[name], told))
    again = read_trace(path, FORMATS[name], told)
    assert name == "batsim-jobs" or "user" not in lost
    for users in ("rigid",) if "user" in lost else ("rigid", "think-time"):
        change = {"users": users, "scheduler": scheduler, "nodes": "100"}
        first, second = (replay(one, **change).jobs for one in (trace, again))
        moved = int(first.recorded_submit[0] - second.recorded_submit[0])
        assert np.array_equal(first.start, second.start + moved), users
        assert np.array_equal(first.end, second.end + moved), users
