"""The command ``hpcrowd predict``: what it prints, writes and refuses."""

import json

import numpy as np
import pytest
from hpcrowd.environment.schedulers.predictors.models import read_predictor
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.cli import app
from typer.testing import CliRunner

from tests.scenarios.studies.study_cases import job


@pytest.fixture(scope="module")
def log(make_trace, tmp_path_factory):
    """Return a log of 120 jobs by three users, one of which failed."""
    random = np.random.default_rng(1)
    jobs = []
    for number in range(120):
        user = int(random.integers(1, 4))
        more = {"wait": int(random.integers(0, 60)), "status": 0 if number == 7 else 1}
        run = 300 * user + int(random.integers(0, 30))
        jobs.append(job(600 * number, run, int(random.integers(1, 5)), user, **more))
    path = tmp_path_factory.mktemp("log") / "log.swf"
    write_swf(make_trace(*jobs, header="; MaxProcs: 8\n; UnixStartTime: 1072911600"), path)
    return path


def run(*words):
    """Run the command line in this process."""
    return CliRunner().invoke(app, ["predict", *map(str, words)])


def test_models_side_by_side(log):
    """The table has the requested time and each model; JSON is one object with units in names."""
    result = run(log, "--model", "last-two", "--model", "history:SDSC04,history=completion")
    assert 0 == result.exit_code
    lines = result.stdout.splitlines()
    assert "log.swf: 119 jobs, the first 59 for training, 60 for testing" == lines[0]
    assert "1 job left out: status is not 1" == lines[1].strip()
    assert ["requested", "last-two", "history:SDSC04,history=completion"] == [
        line.split()[0] for line in lines[3:6]
    ]
    found = json.loads(run(log, "--split", "20", "--model", "nearest:k=3", "--json").stdout)
    assert (20, 99) == (found["training_jobs"], found["test_jobs"])
    names = [model["model"] for model in found["models"]]
    assert ["requested time", "nearest:k=3"] == names
    assert 3 == found["models"][1]["settings"]["k"]
    figures = {"jobs", "underestimated_share", "mae_min", "wae_min", "normalized_error", "fitness"}
    assert figures == set(found["models"][0]["test"])
    assert 99 == found["models"][0]["test"]["jobs"]
    assert found["models"][0]["test"]["mae_min"] > found["models"][1]["test"]["mae_min"]


def test_trained_models_are_written_and_read(log, tmp_path):
    """What --train --out writes predicts the same when it is given as --model."""
    path = tmp_path / "model.json"
    words = (log, "--train", "--evaluations", 30, "--seeds", 2, "--out", path, "--json")
    trained = json.loads(run(*words).stdout)
    assert 60 == trained["training"]["evaluations"]
    again = json.loads(run(log, "--model", path, "--json").stdout)
    assert trained["models"][-1]["test"] == again["models"][-1]["test"]
    assert trained["training"]["fitness"] == trained["models"][-1]["training"]["fitness"]
    stored = json.loads(path.read_text())["provenance"]
    assert ("log.swf", 59, True) == (
        stored["trace"]["source"], stored["training_jobs"], stored["repeatable"]
    )  # fmt: skip
    assert read_predictor(path).to_json() == trained["models"][-1]["settings"]


def test_training_is_reported(log):
    """What was found, of which years; --history sets the kind of history of every model."""
    words = ("--model", "history", "--train", "--evaluations", 5, "--seeds", 1)
    result = run(log, *words, "--years", "2003-2004")
    assert "history, trained here" in result.stdout
    assert "5 sets of parameters: template" in result.stdout
    words = (log, "--history", "completion", "--model", "last-two", "--model", "history:SDSC04")
    found = json.loads(run(*words, "--json").stdout)
    kinds = [model["settings"]["history"] for model in found["models"][1:]]
    assert ["completion", "completion"] == kinds
