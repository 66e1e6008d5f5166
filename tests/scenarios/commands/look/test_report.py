"""The command ``hpcrowd report``: what it writes and replaces, what it says, one-line errors."""

import csv
import json
from functools import partial

import pytest
from hpcrowd import read_results, write_results, write_swf
from hpcrowd.analysis.report.figures import RUN_FIGURES
from hpcrowd.scenarios.commands.look.report import command_of
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import Page, busy_trace


@pytest.fixture(scope="module")
def written(make_trace, tmp_path_factory):
    """A folder with a trace and two results."""
    folder = tmp_path_factory.mktemp("runs")
    trace = busy_trace(make_trace, 30)
    write_swf(trace, folder / "log.swf")
    trace.source, trace.sha256 = "log.swf", "1"
    (folder / "both").mkdir()
    for users in ("rigid", "think-time"):
        write_results(
            replay(trace, users=users, processors="2x"), folder / "both" / users, plots=False
        )
    return folder


@pytest.fixture
def runs(written, tmp_path, monkeypatch):
    """Go to an empty folder with links to those runs."""
    for path in written.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(call):
    """Call ``hpcrowd report``."""
    return partial(call, "report")


def test_report_is_written_and_replaced(call, runs):
    """The page appears, with where and how large; as JSON, the metrics of each run."""
    for replaced in ("", "report.html: replaced the one that was there\n"):
        code, out, err = call("both/rigid")
        assert (0, "") == (code, out)
        size = (runs / "report.html").stat().st_size / 1e6
        assert f"The report is report.html ({size:.1f} MB)\n{replaced}" == err
    page = Page((runs / "report.html").read_text())
    assert "log.swf: rigid, easy, processors 2x" in page.text
    assert "Again: hpcrowd report both/rigid -o report.html" in page.text
    assert (
        "Again: hpcrowd replay log.swf --users rigid --scheduler easy --processors 2x" in page.text
    )
    assert {"both", "log.swf", "report.html"} == {path.name for path in runs.iterdir()}
    code, out, _ = call("both/rigid", "log.swf", "--json")
    wire = json.loads(out)
    assert (0, "report.html", None) == (code, wire["report"], wire["figures"])
    assert ["rigid, easy, processors 2x", "recorded"] == [one["label"] for one in wire["runs"]]
    assert 30 == wire["runs"][0]["metrics"]["jobs_in"]


@pytest.mark.slow
def test_folder_of_runs_is_a_comparison(call, runs):
    """A folder that holds runs stands for all of them, a trace for what was recorded."""
    for out, words, wanted in (
        ("a", ("both", "--title", "Does it matter?"), ("A: rigid, easy", "B: think-time, easy")),
        ("c", ("log.swf", "both/rigid", "--title", "Does it matter?"), ("A: recorded",)),
        ("b", ("both", "--title", "Does it matter?"), ("--title",)),
    ):
        assert 0 == call(*words, "-o", f"{out}.html")[0]
        text = Page((runs / f"{out}.html").read_text()).text
        for word in ("Does it matter?", *wanted):
            assert word in text
    one, other = ((runs / f"{name}.html").read_text() for name in ("a", "b"))
    assert one == other.replace("b.html", "a.html")  # the same bytes, but for its own name


@pytest.mark.slow
def test_pictures_and_data(call, runs):
    """--figures leaves every picture as PNG and SVG, and its data as CSV with units in names."""
    code, _, err = call("both/think-time", "--figures", "pictures")
    assert (0, True) == (code, "Pictures and their data are in pictures" in err)
    names = {path.name for path in (runs / "pictures").iterdir()}
    # Nobody comes or goes, the log ends within a day, and nothing is known of power.
    drawn = set(RUN_FIGURES) - {"visits", "whole", "power"}
    suffixes = ("png", "svg", "csv")
    assert names == {f"{name}.{end}" for name in drawn for end in suffixes} | {"provenance.json"}
    tables = {
        name: list(csv.DictReader((runs / "pictures" / f"{name}.csv").read_text().splitlines()))
        for name in drawn
    }
    assert ["10", "11", "12"] == sorted(row["user"] for row in tables["users"])
    assert 30 == sum(int(row["jobs"]) for row in tables["users"])
    assert 168 == len(tables["week"])
    assert "30" == tables["submissions"][-1]["submitted_until_then"]
    assert all(row["begin_local_time"].startswith("2000-03-2") for row in tables["use"])
    provenance = json.loads((runs / "pictures" / "provenance.json").read_text())
    assert ["think-time, easy, processors 2x"] == provenance["runs"]
    code, _, _ = call("both", "--figures", "pictures", "--force")
    assert 0 == code
    folders = {path.name for path in (runs / "pictures").iterdir() if path.is_dir()}
    assert {"A", "B"} == folders
    assert {"glance.svg", "course.png", "metrics.csv"} < {
        path.name for path in (runs / "pictures").iterdir()
    }


@pytest.mark.slow
def test_interrupted_report_leaves_the_old_one(call, runs, monkeypatch):
    """Ctrl-C while pictures are written leaves the report and the folder as they were."""
    assert 0 == call("both/rigid", "--figures", "pictures")[0]
    before = (runs / "report.html").read_bytes()

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcrowd.analysis.report.runs.write_origin", stop)
    code, _, err = call("both/think-time", "--figures", "pictures", "--force")
    assert (130, True) == (code, "nothing was written" in err)
    assert before == (runs / "report.html").read_bytes()
    assert ["rigid, easy, processors 2x"] == json.loads(
        (runs / "pictures" / "provenance.json").read_text()
    )["runs"]
    assert [] == [path.name for path in runs.iterdir() if path.name.startswith(".")]


def test_command_of_a_run(make_trace, written):
    """A replay tells its command with what differs from the defaults; other runs tell none."""
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
