"""The commands models, fit, generate, judge and populate: what they print, write and refuse."""

import json
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import read_swf, write_swf
from hpcrowd.features import FEATURES
from hpcrowd.models import ARRIVALS, MODELS, read_model


@pytest.fixture(scope="module")
def written(make_trace, tmp_path_factory):
    """A folder with a trace of four weeks."""
    folder = tmp_path_factory.mktemp("models")
    random = np.random.default_rng(3)
    submit = np.cumsum(random.exponential(4000, 600)).astype(int)
    trace = make_trace(
        *(
            {
                "submit": at,
                "run": 1 + at % 3001,
                "allocated_processors": 1 + at % 8,
                "requested_time": 3600 * (1 + at % 3),
                "user": 1 + at % 5,
                "status": 1 if at % 9 else 0,
            }
            for at in submit
        ),
        header="; MaxProcs: 16\n; UnixStartTime: 852076800\n; TimeZoneString: Europe/Stockholm",
    )
    write_swf(trace, folder / "log.swf")
    return folder


@pytest.fixture
def call(call, written, tmp_path, monkeypatch):
    """Call ``hpcrowd`` in an empty folder with the trace."""
    (tmp_path / "log.swf").symlink_to(written / "log.swf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return call


def test_models_and_arrivals_are_listed(call):
    """Every one with what it is and its source; the same for programs."""
    code, out, _ = call("models")
    assert 0 == code
    assert [] == [name for name in (*MODELS, *ARRIVALS) if name not in out]
    wire = json.loads(call("models", "--json")[1])
    assert (set(MODELS), set(ARRIVALS)) == (set(wire["models"]), set(wire["arrivals"]))


def test_fit_then_generate(call):
    """A model file with provenance; a trace as large as the original, at the asked load.

    The file keeps the week; arrivals may be others than the model's. Without a fit, --processors
    and --jobs or --days are needed.
    """
    code, out, err = call("fit", "feitelson97", "log.swf", "-o", "m.json")
    assert (0, "") == (code, err)
    model = read_model("m.json")
    assert f"fitted to {model.provenance['jobs']} jobs of log.swf, on 16 processors" in out
    assert ("feitelson97", 16) == (model.name, model.machine)
    assert model.requests is not None
    assert {"not completed (status other than 1)"} == set(model.provenance["left_out"])
    out = call("generate", "m.json", "-o", "x.swf.gz", "--load", "0.5", "--json")[1]
    wire = json.loads(out)
    assert model.provenance["jobs"] == wire["jobs"] == len(read_swf("x.swf.gz"))
    assert wire["offered_load"] == pytest.approx(0.5, rel=0.01)
    weekly = ("--cycle", "weekly", "--arrivals", "lublin")
    assert 0 == call("fit", "feitelson97", "log.swf", "-o", "w.json", *weekly)[0]
    model = read_model("w.json")
    assert model.cycle is not None
    assert "lublin" == model.arrivals.name
    size = ("--processors", "32", "--days", "2")
    assert "on 32 processors" in call("generate", "feitelson96", *size, "-o", "x.swf")[1]
    assert "feitelson96" in read_swf("x.swf").header.get("Computer")


def test_a_correlation_can_be_chosen(call):
    """Processors are dealt out again to the degree; run times stay."""
    for degree, name in (("1", "a.swf"), ("-1", "b.swf")):
        code, _, err = call(
            "generate", "lublin", "--processors", "64", "--jobs", "400", "-o", name,
            "--correlation", degree,
        )  # fmt: skip
        assert 0 == code
        assert "reassigned" in err
    one, other = read_swf("a.swf"), read_swf("b.swf")
    assert one["run"].tolist() == other["run"].tolist()
    found = [
        np.corrcoef(trace["run"], trace["allocated_processors"])[0, 1] for trace in (one, other)
    ]
    assert found[0] > 0 > found[1]


@pytest.mark.slow
def test_a_judgement_sets_trace_and_model_side_by_side(call):
    """Tables, a report, one object for programs, the same with more processes."""
    call("fit", "feitelson97", "log.swf", "-o", "m.json")
    command = ("judge", "m.json", "log.swf", "--seeds", "2", "--workers")
    code, out, err = call(*command, "1", "--out", "j.html")
    assert (0, "The report is j.html\n") == (code, err)
    assert [] == [one.title for one in FEATURES.values() if one.title.strip() not in out]
    assert "Distances of distributions" in out
    assert Path("j.html").read_text().startswith("<!DOCTYPE html>")
    out = call(*command, "1", "--json")[1]
    assert out == call(*command, "2", "--json")[1]
    wire = json.loads(out)
    assert [0, 1] == wire["replications"]
    assert set(FEATURES) == set(wire["features"])
    found = wire["features"]["run_time_mean_s"]["generated"]
    assert 2 == found["count"]
    assert found["least"] <= found["mean"] <= found["most"]
    waits = wire["features"]["wait_mean_s"]
    assert (None, "no waits recorded") == (waits["generated"], waits["not_available"])


def test_a_population_works(call):
    """Users from the model, a summary, and a folder of results."""
    call("fit", "feitelson97", "log.swf", "-o", "m.json")
    code, out, err = call("populate", "m.json", "--days", "7", "--out", "run")
    assert 0 == code
    assert "feitelson97, users who wait, easy, processors 1x" in out
    assert "Results are in run" in err
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["jobs_completed"] == summary["jobs_in"] > 0
