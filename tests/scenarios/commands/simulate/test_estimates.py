"""Predictors as ``--estimates`` of the command line, of configurations and of populations."""

import json
from hashlib import sha256

import numpy as np
import pytest
from hpcrowd import ReplayConfig, replay
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.predictors import (
    HistoryParameters,
    HistoryPredictor,
    LastTwo,
    Nearest,
    write_predictor,
)
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.kinds.population_files import PopulationConfig
from typer.testing import CliRunner

from tests.scenarios.studies.study_cases import job


@pytest.fixture
def log(make_trace, tmp_path):
    """Return a log of 60 jobs by two users who ask for far more than they need."""
    random = np.random.default_rng(1)
    jobs = []
    for number in range(60):
        run = 300 * (1 + number % 2) + int(random.integers(0, 30))
        processors = int(random.integers(1, 9))
        jobs.append(job(200 * number, run, processors, number % 2, requested_time=7200))
    path = tmp_path / "log.swf"
    write_swf(make_trace(*jobs, header="; MaxProcs: 8\n; UnixStartTime: 1072911600"), path)
    return path


@pytest.fixture
def model(tmp_path):
    """Return a file of a predictor."""
    path = tmp_path / "model.json"
    write_predictor(HistoryPredictor(HistoryParameters.published("SDSC04")), path)
    return path


def run(command, *words):
    """Run the command line in this process."""
    return CliRunner().invoke(app, [command, *map(str, words)])


@pytest.mark.parametrize("text", ["last-two:cap=yes", "nearest:k=3", "history:SDSC04", "FILE"])
def test_one_spelling_for_both_commands(log, model, text):
    """What `hpcrowd predict` takes as a model, `hpcrowd replay` takes as estimates."""
    text = str(model) if text == "FILE" else text
    assert 0 == run("predict", log, "--model", text, "--json").exit_code
    for scheduler in ("easy", "conservative"):
        found = run("replay", log, "--estimates", text, "--scheduler", scheduler, "--json")
        assert (0, 60) == (found.exit_code, json.loads(found.stdout)["jobs_completed"])


def test_models_are_in_the_provenance(log, model, tmp_path):
    """With their checksums; clusters of a population name theirs, next to its file."""
    out = tmp_path / "run"
    assert 0 == run("replay", log, "--estimates", model, "--out", out).exit_code
    told = json.loads((out / "provenance.json").read_text())["configuration"]
    assert str(model) == told["estimates"]
    assert {str(model): sha256(model.read_bytes()).hexdigest()} == told["files_sha256"]
    path = tmp_path / "population.toml"
    text = '[[users]]\nbehaviour = "rigid"\n[clusters.big]\nprocessors = 9\nestimates = "{}"\n'
    path.write_text(text.format(model.name))
    found = PopulationConfig.read(path)
    assert str(model) == found.others()["big"].estimates
    assert {model.name: sha256(model.read_bytes()).hexdigest()} == found.sums()
    path.write_text(text.format("absent.json"))
    with pytest.raises(QuantityError, match=r"absent\.json: cannot be read"):
        PopulationConfig.read(path)


def test_predictors_from_python(make_trace):
    """A predictor object is in the configuration with its settings, and in the label by name.

    It starts again with each run.
    """
    one = {"run": 5, "requested_processors": 1, "requested_time": 90, "status": 1, "user": 1}
    trace = make_trace(*(one | {"submit": at} for at in (0, 10, 20)))
    predictor = Nearest(k=3)
    runs = [replay(trace, estimates=predictor) for _ in range(2)]
    assert [[90, 5, 5]] * 2 == [run.jobs.estimate.tolist() for run in runs]
    told = runs[0].configuration["estimates"]
    assert ("nearest", 3, "submission") == (told["name"], told["k"], told["history"])
    assert runs[0].label.endswith("estimates nearest")
    assert "last-two" == ReplayConfig.configure(estimates=LastTwo()).plain()["estimates"]["name"]
