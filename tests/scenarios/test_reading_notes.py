"""What reading dropped, repaired and assumed: in Python, on the console and in folders."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import hpcrowd as hc
import pytest
from hpcrowd.analysis.results import read_recorded, read_results, write_results
from hpcrowd.environment import Trace
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import assumed, counted, jobs_from_trace, not_read
from hpcrowd.scenarios.kinds.files import scenario_of

from tests.support.populations import small_log
from tests.support.sacct import text

Call = Callable[..., tuple[int, str, str]]

#: A log without machine size, start or zone; one job never ran, one has no requested time.
LOG = """; Version: 2.2
1 0 5 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1
2 1 5 10 3 -1 -1 3 -1 -1 1 2 1 -1 1 -1 -1 -1
3 2 5 -1 3 -1 -1 3 60 -1 5 2 1 -1 1 -1 -1 -1
"""

NEVER_RAN = "1 job dropped: no run time (never ran)"
NO_REQUEST = "1 job repaired: no requested time: the recorded run time used"
NO_SIZE = (
    "the trace does not give the size of the machine; 7 processors, the peak of its recorded use, "
    "is a lower bound; set it with --processors"
)
NO_CLOCK = "start not in the trace: its origin counts as Monday 00:00"

#: Settings of each kind, beside the trace, and the notes of each.
KINDS = {
    "replay": (
        'kind = "replay"\ntrace = "log.swf"', [NEVER_RAN, NO_REQUEST, NO_SIZE, NO_CLOCK]),
    "replay-sized": (
        'kind = "replay"\ntrace = "log.swf"\nprocessors = 9', [NEVER_RAN, NO_REQUEST, NO_CLOCK]),
    "recorded": (
        'kind = "replay"\ntrace = "log.swf"\nscheduler = "recorded"',
        [NEVER_RAN, NO_REQUEST, NO_SIZE, NO_CLOCK]),
    "grid": (
        'kind = "grid"\n[clusters.a]\nprocessors = 8\ntrace = "log.swf"',
        [NEVER_RAN, NO_REQUEST, NO_CLOCK]),
    "grid-made-up": (
        'kind = "grid"\n[clusters.a]\nprocessors = 8\nmodel = "lublin"\ndays = 1\nload = 0.2', []),
    "populate": ('kind = "populate"\nmodel = "lublin"\ndays = 1\nmodel_processors = 64', []),
    "resample": ('kind = "resample"\ntrace = "weeks.swf"\nusers = "rigid"', None),
    "resample-sized": (
        'kind = "resample"\ntrace = "weeks.swf"\nusers = "rigid"\nprocessors = 64', None),
}  # fmt: skip


@pytest.fixture
def folder(
    make_trace: Callable[..., Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of the test, with the log and one of some weeks without machine size."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(LOG)
    weeks = small_log(make_trace)
    weeks.header.lines = [one for one in weeks.header.lines if b"MaxProcs" not in one]
    write_swf(weeks, Path("weeks.swf"))
    return tmp_path


def test_lines() -> None:
    """Dropped jobs come before repaired ones; a line without anything to say is left out."""
    found = counted({"no wait time: taken as 0": 1200}, {"no processors": 1})
    assert [
        "1 job dropped: no processors",
        "1,200 jobs repaired: no wait time: taken as 0",
    ] == found
    assert ([], []) == (not_read(()), assumed())
    assert ["columns not read: A, B"] == not_read(["A", "B"])
    assert ["of it; set it with --processors", "UTC"] == assumed("of it", "UTC")


def test_notes_of_a_trace(folder: Path, make_trace: Callable[..., Trace]) -> None:
    """Reading assumes size and clock; what cannot be simulated is known when jobs are made.

    There are no notes if the log gives everything.
    """
    trace = read_trace("log.swf")
    assert [NO_SIZE, NO_CLOCK] == trace.notes
    assert [NEVER_RAN, NO_REQUEST] == jobs_from_trace(trace).notes
    assert KINDS["replay"][1] == read_recorded("log.swf").notes
    header = "; MaxProcs: 4\n; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm"
    assert [] == make_trace({"submit": 0}, header=header).notes


def test_notes_of_another_format(folder: Path) -> None:
    """Drops, repairs and columns that are not read count, and sacct gives no size."""
    one = {"JobID": "1", "Colour": "red"}
    Path("jobs.txt").write_bytes(text(one, {"JobID": "2", "State": "RUNNING", "Colour": "red"}))
    assert [
        "1 job dropped: state RUNNING",
        "1 job repaired: no time zone given: times taken as UTC",
        "columns not read: Colour",
        NO_SIZE.replace("7 processors", "1 processor"),
        "time zone not in the trace: times are UTC",
    ] == read_trace("jobs.txt").notes


@pytest.mark.parametrize("kind", KINDS)
def test_notes_are_known_before_a_run_and_kept_in_its_folder(folder: Path, kind: str) -> None:
    """The staged simulation, the run and the folder have the same lines."""
    setting, told = KINDS[kind]
    scenario = scenario_of(tomllib.loads(setting), folder)
    staged = scenario.stage(scenario.prepare())
    before = list(staged.notes)
    run = staged.run()
    write_results(run, folder / "run", plots=False)
    assert before == run.notes == read_results(folder / "run").notes
    if told is None:  # there are notes on users who are not in the pool
        assert (kind == "resample") == any("the peak of its recorded use" in one for one in before)
    else:
        assert told == before


def test_console_prints_the_notes(call: Call, folder: Path) -> None:
    """The summary of a run has each line."""
    code, out, _ = call("replay", "log.swf")
    lines, notes = [line.strip() for line in out.splitlines()], KINDS["replay"][1]
    assert (0, notes) == (code, [line for line in lines if line in notes])


def test_names_of_every_field(folder: Path) -> None:
    """Jobs name users, accounts, programs and queues as the accounting of Slurm does."""
    Path("jobs.txt").write_bytes(text({"JobID": "1"}, {"JobID": "2", "Partition": "gpu"}))
    jobs = hc.replay("jobs.txt").jobs
    fields = {"user": "ada", "group": "physics", "executable": "relax", "queue": "long"}
    assert fields == {field: jobs.who(1, field) for field in fields}
    assert {"queue": [1, 2], "queue_name": ["long", "gpu"]} == {
        name: list(values) for name, values in jobs.with_names(jobs.queue, "queue").items()
    }
    assert "3" == jobs.who(3, "queue")
