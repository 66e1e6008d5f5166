"""``hpcrowd replay --gantt``: which picture is drawn, and mistakes told before anything runs."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from hpcrowd import HpcrowdError
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.commands.simulate.replay import GanttOption, parse_window
from matplotlib.figure import Figure

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
def trace(tmp_path):
    """A tiny trace on disk."""
    path = tmp_path / "tiny.swf"
    path.write_text(TRACE)
    return path


@pytest.mark.parametrize(
    ("window", "told"),
    [
        (None, "Tue 2 Jan 2001, the busiest day"),
        ("..", "2001-01-01 01:00 to 2001-01-03 04:00, the whole run"),
        ("0..1d", "2001-01-01 01:00 to 2001-01-02 01:00"),
        ("2001-01-02..2001-01-03", "Tue 2 Jan 2001"),
        ("2d..", "2001-01-03 01:00 to 2001-01-03 04:00"),
    ],
)
def test_what_is_drawn_is_named(call, monkeypatch, trace, tmp_path, window, told):
    """The busiest day, or a window in s, durations or dates, which may be open; JSON stays JSON."""
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: Path(path).write_bytes(b"drawn"))
    path = tmp_path / "a.png"
    more = () if window is None else ("--window", window)
    code, out, err = call("replay", trace, "--users", "rigid", "--json", "--gantt", path, *more)
    assert (0, 3) == (code, json.loads(out)["jobs_completed"])
    assert f"The Gantt picture is {path} ({told})" in err
    assert {"tiny.swf", path.name} == {entry.name for entry in tmp_path.iterdir()}


def test_drawing_next_to_results(call, trace, tmp_path):
    """A picture may go into the folder of results once that is there."""
    out = tmp_path / "out"
    assert 0 == call("replay", trace, "--out", out)[0]
    assert 0 == call("replay", trace, "--out", out, "--gantt", out / "gantt.png")[0]
    assert b"\x89PNG" == (out / "gantt.png").read_bytes()[:4]
    assert (out / "jobs.parquet").exists()


def test_windows_in_python(trace, tmp_path):
    """Open ends are None; dates need a date in the trace; a folder may go away before the end."""
    from hpcrowd import read_run

    assert (0, 2 * DAY) == parse_window("0..2d")
    assert (None, datetime(1996, 10, 14, 16)) == parse_window("..1996-10-14 16:00")
    assert GanttOption.of(None, None) is None
    (tmp_path / "there").mkdir()
    dated, whole = (
        GanttOption.of(tmp_path / "there" / "a.png", window)
        for window in ("2001-01-02..2001-01-03", None)
    )
    assert dated is not None
    assert whole is not None
    with pytest.raises(QuantityError, match="has no start time"):
        dated.check(Clock())
    (tmp_path / "there").rmdir()
    with pytest.raises(HpcrowdError, match="no folder"):
        whole.draw(read_run(trace))
