"""The command ``hpcrowd stats``: tables, JSON, distance, the list of features, mistakes."""

import json
from functools import partial
from pathlib import Path

import pytest
from hpcrowd import write_swf
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.errors import UnavailableError, missing
from hpcrowd.features import FEATURES, GROUPS
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.populations import small_log


@pytest.fixture(scope="module")
def written(make_trace, tmp_path_factory):
    """A folder with two logs, one without waits, requests and status, and results of a run."""
    folder, trace = tmp_path_factory.mktemp("stats"), small_log(make_trace)
    trace["status"][::11] = 0
    write_swf(trace, folder / "log.swf")
    trace.sha256 = "1"
    write_results(replay(trace, users="rigid"), folder / "run", plots=False)
    for name in ("wait", "requested_time", "status"):
        trace[name][:] = -1
    write_swf(trace, folder / "bare.swf")
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
    assert "B  bare.swf: " in out
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
    assert out.startswith("a[red]b.swf: ")
    assert 'scikit-learn is not installed; pip install "hpcrowd[fits]"' in out


def test_json_is_one_object_with_every_feature(call):
    """Numbers by name; null with a reason where there is none; what was measured and how."""
    code, out, err = call("log.swf", "bare.swf", "run", "--json", "--bag-gap", "5m")
    assert (0, "") == (code, err)
    first, second, run = json.loads(out)["traces"]
    for wire in (first, second, run):
        assert list(FEATURES) == list(wire["features"])
        missing = {name for name, number in wire["features"].items() if number is None}
        assert missing == set(wire["not_available"])
        assert 300 == wire["settings"]["bag_gap_s"]
    assert "no waits recorded" == second["not_available"]["wait_mean_s"]
    assert second["jobs"] == first["jobs"] + sum(first["left_out"].values()) > first["jobs"]
    wait = json.loads(Path("run/summary.json").read_text())["wait_mean_s"]
    assert run["features"]["wait_mean_s"] == pytest.approx(wait)  # those that were simulated


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
