"""Options of a replay: predictors as ``--estimates``, and which picture ``--gantt`` draws."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hpcrowd import ReplayConfig, replay
from hpcrowd.environment.errors import QuantityError
from hpcrowd.predictors import (
    HistoryParameters,
    HistoryPredictor,
    LastTwo,
    Nearest,
    write_predictor,
)
from hpcrowd.scenarios.kinds.population_files import PopulationConfig
from matplotlib.figure import Figure

from tests.scenarios.commands.test_contract import LOG


@pytest.fixture
def log(tmp_path):
    """Return a log of 60 jobs by users who ask for more than they need."""
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


@pytest.fixture
def model(tmp_path):
    """Return a file of a predictor."""
    path = tmp_path / "model.json"
    write_predictor(HistoryPredictor(HistoryParameters.published("SDSC04")), path)
    return path


@pytest.mark.parametrize("text", ["last-two:cap=yes", "nearest:k=3", "history:SDSC04", "FILE"])
def test_one_spelling_for_both_commands(call, log, model, text):
    """What `hpcrowd predict` takes as a model, `hpcrowd replay` takes as estimates."""
    text = str(model) if text == "FILE" else text
    assert 0 == call("predict", log, "--model", text, "--json")[0]
    for scheduler in ("easy", "conservative"):
        words = ("--estimates", text, "--scheduler", scheduler, "--json")
        code, out, _ = call("replay", log, *words)
        assert (0, 60) == (code, json.loads(out)["jobs_completed"])


def test_models_are_in_the_provenance(call, log, model, tmp_path):
    """With their checksums; clusters of a population name theirs, next to its file."""
    out = tmp_path / "run"
    assert 0 == call("replay", log, "--estimates", model, "--out", out)[0]
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
    """A predictor object is in the configuration with its settings, and in the label by name."""
    one = {"run": 5, "requested_processors": 1, "requested_time": 90, "status": 1, "user": 1}
    trace = make_trace(*(one | {"submit": at} for at in (0, 10, 20)))
    predictor = Nearest(k=3)
    runs = [replay(trace, estimates=predictor) for _ in range(2)]
    assert [[90, 5, 5]] * 2 == [run.jobs.estimate.tolist() for run in runs]
    told = runs[0].configuration["estimates"]
    assert ("nearest", 3, "submission") == (told["name"], told["k"], told["history"])
    assert runs[0].label.endswith("estimates nearest")
    assert "last-two" == ReplayConfig.configure(estimates=LastTwo()).plain()["estimates"]["name"]


#: Two users on four processors, one job on each of three days; the second day has the largest.
TRACE = """\
; UnixStartTime: 978307200
; TimeZoneString: Europe/Stockholm
; MaxProcs: 4
1      0 0 3600 1 -1 -1 1 3600 -1 1 1 1 1 1 1 -1 -1
2  90000 0 7200 4 -1 -1 4 7200 -1 1 2 1 1 1 1 -1 -1
3 180000 0 3600 2 -1 -1 2 3600 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def trace(tmp_path):
    """A tiny trace on disk."""
    path = tmp_path / "tiny.swf"
    path.write_text(TRACE)
    return path


@pytest.mark.parametrize(
    ("window", "told"),
    [
        (None, "Tue 2 Jan 2001, the busiest day"),
        ("..", "2001-01-01 01:00 to 2001-01-03 04:00, the whole run"),
        ("0..1d", "2001-01-01 01:00 to 2001-01-02 01:00"),
        ("2001-01-02..2001-01-03", "Tue 2 Jan 2001"),
        ("2d..", "2001-01-03 01:00 to 2001-01-03 04:00"),
    ],
)
def test_what_is_drawn_is_named(call, monkeypatch, trace, tmp_path, window, told):
    """The busiest day, or a window in s, durations or dates, which may be open; JSON stays JSON."""
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: Path(path).write_bytes(b"drawn"))
    path = tmp_path / "a.png"
    more = () if window is None else ("--window", window)
    code, out, err = call("replay", trace, "--users", "rigid", "--json", "--gantt", path, *more)
    assert (0, 3) == (code, json.loads(out)["jobs_completed"])
    assert f"The Gantt picture is {path} ({told})" in err
    assert {"tiny.swf", path.name} == {entry.name for entry in tmp_path.iterdir()}


def test_drawing_next_to_results(call, trace, tmp_path):
    """A picture may go into a folder of results once that is there."""
    out = tmp_path / "out"
    for inside in ((), ("--gantt", out / "a.png")):
        assert 0 == call("replay", trace, "--out", out, *inside)[0]
    assert {"a.png", "jobs.parquet"} < {entry.name for entry in out.iterdir()}
