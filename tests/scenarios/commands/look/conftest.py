"""Results that the commands look at: two behaviours, and two seeds of a third."""

import shutil

import pytest
from hpcrowd import write_results, write_swf
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import busy_trace


@pytest.fixture(scope="session")
def written(make_trace, tmp_path_factory):
    """A folder with a trace and results of it on twice the machine."""
    folder = tmp_path_factory.mktemp("runs")
    trace = busy_trace(make_trace, 30)
    write_swf(trace, folder / "log.swf")
    trace.source, trace.sha256 = "log.swf", "1"
    (folder / "both").mkdir()
    for name, users, seed in (
        ("both/rigid", "rigid", 0), ("both/think-time", "think-time", 0),
        ("d0", "distribution", 0), ("d1", "distribution", 1),
    ):  # fmt: skip
        run = replay(trace, users=users, seed=seed, processors="2x")
        write_results(run, folder / name, plots=False)
    return folder


@pytest.fixture
def runs(written, tmp_path, monkeypatch):
    """Go to a copy of that folder; the terminal is 100 wide."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path
