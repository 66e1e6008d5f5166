"""``hpcrowd replay --gantt``: which picture is drawn, and mistakes told before anything runs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.environment import HpcrowdError, QuantityError
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.scenarios.commands.simulate.replay import GanttOption, parse_window

#: Two users on four processors, one job on each of three days; the second day has the largest.
TRACE = """\
; UnixStartTime: 978307200
; TimeZoneString: Europe/Stockholm
; MaxProcs: 4
1      0 0 3600 1 -1 -1 1 3600 -1 1 1 1 1 1 1 -1 -1
2  90000 0 7200 4 -1 -1 4 7200 -1 1 2 1 1 1 1 -1 -1
3 180000 0 3600 2 -1 -1 2 3600 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A tiny trace on disk."""
    path = tmp_path / "tiny.swf"
    path.write_text(TRACE)
    return path


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_busiest_day_is_drawn_and_named(
    call: Any, trace: Path, tmp_path: Path, suffix: str, begins: bytes
) -> None:
    """Without a window the busiest day is drawn; standard error says which, output stays JSON."""
    path = tmp_path / f"a.{suffix}"
    code, out, err = call("replay", trace, "--users", "rigid", "--json", "--gantt", path)
    assert (0, 3) == (code, json.loads(out)["jobs_completed"])
    assert f"The Gantt picture is {path} (Tue 2 Jan 2001, the busiest day)" in err
    assert begins == path.read_bytes()[: len(begins)]
    assert {"tiny.swf", path.name} == {entry.name for entry in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("..", "2001-01-01 01:00 to 2001-01-03 04:00, the whole run"),
        ("0..1d", "2001-01-01 01:00 to 2001-01-02 01:00"),
        ("2001-01-02..2001-01-03", "Tue 2 Jan 2001"),
        ("1d 1h..90000", ""),
        ("2d..", "2001-01-03 01:00 to 2001-01-03 04:00"),
    ],
)
def test_windows(call: Any, trace: Path, tmp_path: Path, window: str, told: str) -> None:
    """A window is given in s, durations or dates, and may be open; an empty one is refused."""
    path = tmp_path / "a.png"
    code, _, err = call("replay", trace, "--users", "rigid", "--gantt", path, "--window", window)
    assert (0 if told else 2, bool(told)) == (code, path.exists())
    assert (f"({told})" if told else "is empty") in err


def test_drawing_next_to_results(call: Any, trace: Path, tmp_path: Path) -> None:
    """A picture may go into the folder of results once that is there."""
    out = tmp_path / "out"
    assert 0 == call("replay", trace, "--out", out)[0]
    assert 0 == call("replay", trace, "--out", out, "--gantt", out / "gantt.png")[0]
    assert (out / "gantt.png").exists()
    assert (out / "jobs.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gantt", "a.txt"], ["a.txt", ".png, .svg, .pdf"]),
        (["--gantt", "a"], [".png, .svg, .pdf"]),
        (["--gantt", "nowhere/a.png"], ["nowhere/a.png", "no folder nowhere"]),
        (["--gantt", "folder.png"], ["folder.png", "is a folder"]),
        (["--gantt", "/proc/a.png"], ["/proc/a.png", "cannot be written"]),
        (["--window", "1..2"], ["--gantt FILE"]),
        (["--gantt", "a.png", "--window", "5"], ["'5'", "FROM..TO"]),
        (["--gantt", "a.png", "--window", "1..2..3"], ["'1..2..3'", "FROM..TO"]),
        (["--gantt", "a.png", "--window", "soon..2d"], ["'soon'", "1996-10-14 16:00"]),
        (["--gantt", "a.png", "--window", "2d..1d"], ["'2d..1d'", "is empty"]),
        (["--gantt", "a.png", "--window", "2001-01-03..1d"], ["is empty"]),
    ],
)
def test_mistakes_are_reported_before_the_run(
    monkeypatch: pytest.MonkeyPatch,
    call: Any,
    trace: Path,
    tmp_path: Path,
    arguments: list[str],
    words: list[str],
) -> None:
    """One line on standard error, exit code 2; no simulation is begun and no file is left."""
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hpcrowd.environment.simulation.Simulation.run", lambda *_, **__: 1 / 0)
    code, out, err = call("replay", trace, *arguments)
    assert (2, "") == (code, out)
    assert 1 == len([line for line in err.splitlines() if "Compiling" not in line])
    assert [] == [word for word in words if word not in err]
    assert {"tiny.swf", "folder.png"} == {entry.name for entry in tmp_path.iterdir()}


def test_dates_need_a_date_in_the_trace(tmp_path: Path) -> None:
    """Where the trace does not say when it began, a window in dates is refused."""
    option = GanttOption.of(tmp_path / "a.png", "2001-01-02..2001-01-03")
    assert option is not None
    with pytest.raises(QuantityError, match="has no start time"):
        option.check(Clock())


def test_moments_of_a_window() -> None:
    """Moments are s, durations or dates; an open end is None."""
    assert (0, 2 * DAY) == parse_window("0..2d")
    assert (None, datetime(1996, 10, 14, 16)) == parse_window("..1996-10-14 16:00")
    assert GanttOption.of(None, None) is None


def test_a_folder_that_goes_away(trace: Path, tmp_path: Path) -> None:
    """A file that cannot be written after all is reported in one line."""
    from hpcrowd.analysis import read_run

    folder = tmp_path / "there"
    folder.mkdir()
    option = GanttOption.of(folder / "a.png", None)
    folder.rmdir()
    assert option is not None
    with pytest.raises(HpcrowdError, match="no folder"):
        option.draw(read_run(trace))
