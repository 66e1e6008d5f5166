"""The command ``hpcrowd compare``: what is printed where, exit codes, one-line errors."""

import json
import shutil
from functools import partial

import pytest
from hpcrowd import write_results, write_swf
from hpcrowd.analysis.comparison.report import PICTURES, letter
from hpcrowd.scenarios.kinds.replay import replay


@pytest.fixture(scope="module")
def written(make_trace, tmp_path_factory):
    """A folder with a trace and results: rigid, and fluid with two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    trace = make_trace(
        *(
            {"submit": 1800 * n, "run": 7200, "requested_processors": 3, "user": n % 3}
            for n in range(60)
        ),
        header="; MaxProcs: 4",
    )
    write_swf(trace, folder / "log.swf")
    trace.sha256 = "1"
    for name, users, seed in (
        ("rigid", "rigid", 0), ("d0", "distribution", 0), ("d1", "distribution", 1),
    ):  # fmt: skip
        write_results(replay(trace, users=users, seed=seed), folder / name, plots=False)
    return folder


@pytest.fixture
def runs(written, tmp_path, monkeypatch):
    """Go to a copy of that folder; the terminal is 100 wide."""
    shutil.copytree(written, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "runs"


@pytest.fixture
def call(call):
    """Call ``hpcrowd compare``."""
    return partial(call, "compare")


def test_two_runs_and_seeds(call, runs):
    """Metrics with their difference, users, what is compared; seeds are one column with ±."""
    code, out, err = call("rigid", "d0")
    assert (0, "") == (code, err)
    for text in (
        "A  rigid, easy, on 4 processors", "B  distribution, easy, on 4 processors",
        "All runs use made: 60 jobs of 3 users.", "B - A", "mean wait", "better off",
    ):  # fmt: skip
        assert text in out
    assert "±" not in out
    assert max(map(len, out.splitlines())) <= 100
    out = call("rigid", "d0", "d1")[1]
    for text in (
        "B  distribution, easy, 2 seeds, on 4 processors",
        "distribution, easy: 2 runs with seeds 0 and 1.",
        "have no interval, as one side has a single run", " ± ",
    ):  # fmt: skip
        assert text in out
    assert "\nC " not in out


def test_three_groups_on_a_narrow_terminal(call, runs, monkeypatch):
    """Differences have their own table; all fits into 60 columns; a trace is what was recorded."""
    monkeypatch.setenv("COLUMNS", "60")
    out = call("rigid", "d0", "rigid")[1]
    assert max(map(len, out.splitlines())) <= 60
    for text in ("A  rigid, easy (1)", "C  rigid, easy (2)", "C - A", "mean wait"):
        assert text in out
    out = " ".join(call("log.swf", "rigid")[1].split())
    assert "A recorded, on 4 processors" in out
    assert "users are not paired" in out


def test_json_is_one_object(call, runs):
    """--json prints one object, the same every time; after Z come A2, B2 and so on."""
    code, out, err = call("rigid", "d0", "d1", "--json")
    assert (0, "") == (code, err)
    wire = json.loads(out)
    assert ["rigid, easy", "distribution, easy"] == [group["label"] for group in wire["groups"]]
    assert [[0], [0, 1]] == [[run["seed"] for run in group["runs"]] for group in wire["groups"]]
    assert out == call("rigid", "d0", "d1", "--json")[1]
    assert ["A", "Z", "A2", "B3"] == [letter(place) for place in (0, 25, 26, 53)]


def test_folder(call, runs):
    """--out leaves tables and pictures, may be written again, and never over the runs inside."""
    code, _, err = call("rigid", "d0", "--out", "both")
    assert (0, 1) == (code, len(err.splitlines()))
    assert "are in both; hpcrowd report makes a page" in err
    assert set(PICTURES) < {path.name for path in (runs / "both").iterdir()}
    assert 0 == call("rigid", "d0", "--out", "both")[0]
    assert [] == [path.name for path in runs.iterdir() if path.name.endswith(".tmp")]
    (runs / "provenance.json").write_text("{}")
    code, _, err = call("rigid", "d0", "--out", str(runs))
    assert (2, True) == (code, "would replace rigid" in err)
    assert (runs / "rigid" / "jobs.parquet").exists()
