"""Commands of models: models, fit, generate, judge, populate and predict."""

import json
import re

import pytest
from hpcrowd import read_swf, write_swf
from hpcrowd.environment.schedulers.predictors.models import read_predictor
from hpcrowd.features import FEATURES
from hpcrowd.models import ARRIVALS, MODELS, read_model

from tests.scenarios.commands.test_contract import LOG
from tests.support.populations import small_log


@pytest.fixture
def call(call, make_trace, tmp_path, monkeypatch):
    """Call ``hpcrowd`` in a folder with a trace of eight weeks."""
    trace = small_log(make_trace)
    trace["status"][::9] = 0
    write_swf(trace, tmp_path / "log.swf")
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
    """A model file with provenance; a trace as large as the original, at the asked load."""
    code, out, err = call("fit", "feitelson97", "log.swf", "-o", "m.json")
    assert (0, "") == (code, err)
    model = read_model("m.json")
    assert f"fitted to {model.provenance['jobs']} jobs of log.swf, on 8 processors" in out
    assert ("feitelson97", 8) == (model.name, model.machine)
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
    _, out, err = call("generate", "feitelson96", *size, "-o", "x.swf", "--correlation", "1")
    assert ("on 32 processors" in out, "reassigned" in err) == (True, True)
    assert "feitelson96" in read_swf("x.swf").header.get("Computer")


@pytest.mark.slow
def test_a_judgement_sets_trace_and_model_side_by_side(call):
    """Tables, a report, one object for programs, the same with more processes."""
    call("fit", "feitelson97", "log.swf", "-o", "m.json")
    command = ("judge", "m.json", "log.swf", "--seeds", "2", "--workers")
    code, out, err = call(*command, "1", "--out", "j.html")
    assert (0, "The report is j.html\n") == (code, err)
    assert "Distances of distributions" in out
    out = call(*command, "1", "--json")[1]
    assert out == call(*command, "2", "--json")[1]
    wire = json.loads(out)
    assert [0, 1] == wire["replications"]
    assert set(FEATURES) == set(wire["features"])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return a log of 60 jobs by three users, one of which failed."""
    path = tmp_path_factory.mktemp("log") / "log.swf"
    path.write_text(re.sub(r"(?m)^(7 .* 7200 -1) 1", r"\1 0", LOG))
    return path


def test_predictors_side_by_side(call, log):
    """The table has the requested time and each model; JSON is one object with units in names."""
    out = call("predict", log, "--model", "last-two")[1]
    assert "1 job left out: status is not 1" == out.splitlines()[1].strip()
    words = ("--split", "20", "--model", "nearest:k=3", "--history", "completion")
    found = json.loads(call("predict", log, *words, "--model", "history:SDSC04", "--json")[1])
    assert (20, 39) == (found["training_jobs"], found["test_jobs"])
    names = [model["model"] for model in found["models"]]
    assert ["requested time", "nearest:k=3", "history:SDSC04"] == names
    assert 3 == found["models"][1]["settings"]["k"]
    assert {"completion"} == {one["settings"]["history"] for one in found["models"][1:]}
    figures = {"jobs", "underestimated_share", "mae_min", "wae_min", "normalized_error", "fitness"}
    assert figures == set(found["models"][0]["test"])
    assert 39 == found["models"][0]["test"]["jobs"]
    assert found["models"][0]["test"]["mae_min"] > found["models"][1]["test"]["mae_min"]


def test_trained_predictors_are_written_and_read(call, log, tmp_path):
    """What --train --out writes predicts the same when it is given as --model."""
    path = tmp_path / "model.json"
    words = ("predict", log, "--train", "--evaluations", 30, "--seeds", 2)
    out = call(*words, "--years", "2003-2004")[1]
    assert "history, trained here" in out
    assert "60 sets of parameters: template" in out
    trained = json.loads(call(*words, "--out", path, "--json")[1])
    assert 60 == trained["training"]["evaluations"]
    again = json.loads(call("predict", log, "--model", path, "--json")[1])
    assert trained["models"][-1]["test"] == again["models"][-1]["test"]
    assert trained["training"]["fitness"] == trained["models"][-1]["training"]["fitness"]
    stored = json.loads(path.read_text())["provenance"]
    assert ("log.swf", 29, True) == (
        stored["trace"]["source"], stored["training_jobs"], stored["repeatable"]
    )  # fmt: skip
    assert read_predictor(path).to_json() == trained["models"][-1]["settings"]
