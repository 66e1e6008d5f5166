"""The command ``hpcrowd stats``: tables, JSON, distance, the list of features, mistakes."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import write_swf
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.errors import UnavailableError, missing
from hpcrowd.features import FEATURES, GROUPS
from hpcrowd.scenarios.kinds.replay import replay


@pytest.fixture(scope="module")
def written(make_trace, tmp_path_factory):
    """A folder with two traces, one without waits, requests and status, and results of a run."""
    folder = tmp_path_factory.mktemp("stats")
    random = np.random.default_rng(1)
    submit = np.cumsum(random.exponential(700, 400)).astype(int)
    jobs = [
        {
            "submit": at,
            "run": 1 + at % 977,
            "wait": at % 61,
            "allocated_processors": 1 + at % 4,
            "requested_time": 1200,
            "user": at % 7,
            "status": 1 if at % 11 else 0,
        }
        for at in submit
    ]
    trace = make_trace(*jobs, header="; MaxProcs: 8\n; UnixStartTime: 852076800")
    write_swf(trace, folder / "log.swf")
    trace.sha256 = "1"
    write_results(replay(trace, users="rigid"), folder / "run", plots=False)
    bare = [{name: job[name] for name in ("submit", "run", "allocated_processors")} for job in jobs]
    write_swf(make_trace(*bare, header="; MaxProcs: 8"), folder / "bare.swf")
    return folder


@pytest.fixture
def call(call, written, monkeypatch):
    """Call ``hpcrowd stats`` in that folder, on a terminal 100 wide."""
    monkeypatch.chdir(written)
    monkeypatch.setenv("COLUMNS", "100")
    return partial(call, "stats")


def test_every_feature_has_a_line(call):
    """Tables by group; two traces side by side, a mark where one has none, and the reason."""
    code, out, err = call("log.swf")
    assert (0, "") == (code, err)
    lines = [line.strip() for line in out.splitlines()]
    for group in GROUPS:
        assert group.title in lines
        for feature in group.features:
            assert [line for line in lines if line.startswith(feature.title.strip())], feature.name
    assert "jobs left out: not completed (status other than 1)" in out
    assert "nan" not in out
    code, out, _ = call("log.swf", "bare.swf")
    assert 0 == code
    assert "A  log.swf: " in out
    assert "B  bare.swf: 400 jobs measured" in out
    assert "no job has status 1: jobs of any status are measured" in out
    waits = next(line for line in out.splitlines() if line.startswith("wait, mean"))
    mark = waits.rpartition("n/a ")[2]
    assert f"{mark} not available: no waits recorded" in out.splitlines()


def test_an_extra_that_is_missing_is_named_whole(call, monkeypatch):
    """Brackets are no markup: neither those of an extra nor those of a file's name."""

    def unavailable(workload):
        raise UnavailableError(missing("scikit-learn"))

    monkeypatch.setattr("hpcrowd.analysis.features.locality.classes_of_run_times", unavailable)
    Path("a[red]b.swf").write_bytes(Path("log.swf").read_bytes())
    code, out, _ = call("a[red]b.swf")
    assert 0 == code
    assert out.startswith("a[red]b.swf: 365 jobs measured")
    assert 'scikit-learn is not installed; pip install "hpcrowd[fits]"' in out


def test_json_is_one_object_with_every_feature(call):
    """Numbers by name; null with a reason where there is none; what was measured and how."""
    code, out, err = call("log.swf", "bare.swf", "--json", "--bag-gap", "5m")
    assert (0, "") == (code, err)
    first, second = json.loads(out)["traces"]
    for wire in (first, second):
        assert list(FEATURES) == list(wire["features"])
        missing = {name for name, number in wire["features"].items() if number is None}
        assert missing == set(wire["not_available"])
        assert 300 == wire["settings"]["bag_gap_s"]
    assert "no waits recorded" == second["not_available"]["wait_mean_s"]
    assert first["jobs"] + sum(first["left_out"].values()) == 400


def test_a_folder_of_results_is_measured_as_it_was_simulated(call, written):
    """A run is next to the trace it replays; its waits are the simulated ones."""
    code, out, _ = call("log.swf", "run", "--json", "--which", "all")
    assert 0 == code
    log, run = (wire["features"] for wire in json.loads(out)["traces"])
    assert 400 == log["jobs"] == run["jobs"]
    assert log["interarrival_cv"] == run["interarrival_cv"]
    wait = json.loads((written / "run" / "summary.json").read_text())["wait_mean_s"]
    assert run["wait_mean_s"] == pytest.approx(wait)


@pytest.mark.slow
def test_the_report_is_one_whole_file(call, written, tmp_path):
    """--out writes a page with pictures next to what is printed, and names the file."""
    page = tmp_path / "report.html"
    code, out, err = call("log.swf", "bare.swf", "--out", page, "--json")
    assert 0 == code
    assert 2 == len(json.loads(out)["traces"])
    assert f"The report is {page}\n" == err
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "data:image/png" in text
    assert [page] == list(tmp_path.iterdir())


def test_distances_and_the_list(call):
    """Distributions, then features, against the first; definition and source of each feature."""
    code, out, _ = call("log.swf", "run", "--distance")
    assert 0 == code
    assert "Distances of distributions" in out
    wire = json.loads(call("log.swf", "log.swf", "--distance", "--json")[1])
    assert {0.0} == {one["ks"] for one in wire["distributions"].values()}
    assert {0.0} == {one["difference"] for one in wire["features"].values()}
    code, out, _ = call("--list")
    assert 0 == code
    assert [] == [name for name in FEATURES if name not in out]
    listed = json.loads(call("--list", "--json")[1])
    assert list(FEATURES) == list(listed)
    assert "Minh 2012, section 2.3.1, Table 3.3" == listed["interarrival_cv"]["source"]
