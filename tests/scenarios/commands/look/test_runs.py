"""The commands ``hpcrowd compare`` and ``hpcrowd report``: what they print, write and replace."""

import json
import shutil

import pandas as pd
import pytest
from hpcrowd import read_results, write_results, write_swf
from hpcrowd.analysis.comparison.report import PICTURES
from hpcrowd.analysis.numbers import letter
from hpcrowd.analysis.report.figures import RUN_FIGURES
from hpcrowd.scenarios.commands.look.report import command_of
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import Page, busy_trace


@pytest.fixture(scope="module")
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


def test_three_groups_on_a_narrow_terminal(call, runs, monkeypatch):
    """Differences have their own table; all fits into 60 columns; a trace is what was recorded."""
    monkeypatch.setenv("COLUMNS", "60")
    out = call("compare", "both/rigid", "d0", "d1", "both/rigid")[1]
    assert max(map(len, out.splitlines())) <= 60
    for text in ("A  rigid, easy, processors 2x (1)", "C  rigid, easy", "C - A", "mean wait",
                 " ± "):  # fmt: skip
        assert text in out
    out = " ".join(call("compare", "log.swf", "both/rigid")[1].split())
    assert "A recorded, on 4 processors" in out


def test_json_and_a_folder(call, runs):
    """--json prints one object; --out leaves tables and pictures."""
    code, out, err = call("compare", "both/rigid", "d0", "d1", "--json", "--out", "difference")
    assert (0, 1) == (code, len(err.splitlines()))
    assert "are in difference; hpcrowd report makes a page" in err
    wire = json.loads(out)
    assert [[0], [0, 1]] == [[run["seed"] for run in group["runs"]] for group in wire["groups"]]
    assert set(PICTURES) < {path.name for path in (runs / "difference").iterdir()}
    again = call("compare", "both/rigid", "d0", "d1", "--json", "--out", "difference")
    assert (0, out) == again[:2]
    assert [] == [path.name for path in runs.iterdir() if path.name.endswith(".tmp")]
    (runs / "provenance.json").write_text("{}")
    code, _, err = call("compare", "both/rigid", "d0", "--out", runs)
    assert (2, True) == (code, "would replace both" in err)
    assert ["A", "Z", "A2", "B3"] == [letter(place) for place in (0, 25, 26, 53)]


def test_report_is_written_and_replaced(call, runs):
    """The page appears, with where and how large; as JSON, the metrics of each run."""
    for replaced in ("", "report.html: replaced the one that was there\n"):
        code, out, err = call("report", "both/rigid")
        assert (0, "") == (code, out)
        size = (runs / "report.html").stat().st_size / 1e6
        assert f"The report is report.html ({size:.1f} MB)\n{replaced}" == err
    page = Page((runs / "report.html").read_text())
    assert "log.swf: rigid, easy, processors 2x" in page.text
    assert "Again: hpcrowd report both/rigid -o report.html" in page.text
    assert (
        "Again: hpcrowd replay log.swf --users rigid --scheduler easy --processors 2x" in page.text
    )
    assert {"both", "d0", "d1", "log.swf", "report.html"} == {one.name for one in runs.iterdir()}
    code, out, _ = call("report", "both/rigid", "log.swf", "--json")
    wire = json.loads(out)
    assert (0, "report.html", None) == (code, wire["report"], wire["figures"])
    assert ["rigid, easy, processors 2x", "recorded"] == [one["label"] for one in wire["runs"]]
    assert 30 == wire["runs"][0]["metrics"]["jobs_in"]


@pytest.mark.slow
def test_pictures_and_data(call, runs):
    """--figures leaves every picture as PNG and SVG, its data as CSV; a folder is all its runs."""
    code, _, err = call("report", "both/think-time", "--figures", "pictures")
    assert (0, True) == (code, "Pictures and their data are in pictures" in err)
    names = {path.name for path in (runs / "pictures").iterdir()}
    # Nobody comes or goes, the log ends within a day, and nothing is known of power.
    drawn = set(RUN_FIGURES) - {"visits", "whole", "power"}
    suffixes = ("png", "svg", "csv")
    assert names == {f"{name}.{end}" for name in drawn for end in suffixes} | {"provenance.json"}
    table = pd.read_csv(runs / "pictures" / "users.csv")
    assert ([10, 11, 12], 30) == (sorted(table["user"]), table["jobs"].sum())
    provenance = json.loads((runs / "pictures" / "provenance.json").read_text())
    assert ["think-time, easy, processors 2x"] == provenance["runs"]
    title = ("--title", "Does it matter?")
    assert 0 == call("report", "log.swf", "both", "--figures", "pictures", "--force", *title)[0]
    text = Page((runs / "report.html").read_text()).text
    for word in ("Does it matter?", "--title", "A: recorded", "B: rigid, easy", "C: think-time"):
        assert word in text
    folders = {path.name for path in (runs / "pictures").iterdir() if path.is_dir()}
    assert {"A", "B", "C"} == folders
    assert {"glance.svg", "course.png", "metrics.csv"} < {
        path.name for path in (runs / "pictures").iterdir()
    }


def test_command_of_a_run(make_trace, written):
    """A replay names its command with what differs from the defaults; other runs have none."""
    trace = busy_trace(make_trace, 10)
    trace.source = "logs/my log.swf"
    run = replay(trace, users="fluid", scheduler="easy:backfill=sjbf", seed=3, overrun="kill")
    assert (
        "hpcrowd replay 'my log.swf' --users fluid --scheduler easy:backfill=sjbf "
        "--overrun kill --seed 3"
    ) == command_of(run)
    run.configuration["users"] = {"name": "mixed", "users": []}
    assert "--users USERS.toml" in command_of(run)
    stored = read_results(written / "both" / "rigid")
    assert "hpcrowd replay log.swf --users rigid --scheduler easy --processors 2x" == command_of(
        stored
    )
    stored.configuration["kind"] = "populate"
    assert "" == command_of(stored)
