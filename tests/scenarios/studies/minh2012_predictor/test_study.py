"""Minh 2012, chapter 8, is reproduced: required figures on the real traces, and small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.prediction import past_jobs
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, published_names
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_predictor import study as study_module
from hpcrowd.scenarios.studies.minh2012_predictor.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_predictor.measures import (
    CUTS,
    MODELS,
    Cut,
    cells_of,
    published_row,
)
from hpcrowd.scenarios.studies.minh2012_predictor.study import (
    TRAINED_HERE,
    Minh2012Predictor,
    model_rows,
    reading_rows,
    reproduce_minh2012_predictor,
    stored_training,
    study_trace,
    table_rows,
    training_rows,
)
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.render import required_rows
from hpcrowd.scenarios.studies.running import run_study
from matplotlib.figure import Figure

from tests.scenarios.studies.study_cases import rows_of_folder, shown

DS_FILE = "SDSC-DS-2004-2.1-cln.swf"
LOG_FILES = {
    "BLUE": "SDSC-BLUE-2000-4.2-cln",
    "SDSC-DS": "SDSC-DS-2004-2.1-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
}
#: Traces with parameters of an earlier training.
TRAINED = [name for name in CUTS if name != "SDSC02"]


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with a small log in the place of SDSC-DS."""
    random = np.random.default_rng(5)
    jobs = []
    for number in range(150):
        user = int(random.integers(1, 5))
        jobs.append(
            {
                "submit": 900 * number,
                "wait": int(random.integers(0, 500)),
                "run": 400 * user + int(random.integers(0, 200)),
                "requested_processors": int(random.integers(1, 9)),
                "requested_time": 3600,
                "status": 1,
                "user": user,
            }
        )
    folder = tmp_path_factory.mktemp("traces")
    write_swf(make_trace(*jobs, header="; MaxProcs: 16\n; UnixStartTime: 1"), folder / DS_FILE)
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Minh2012Predictor:
    """Return the study on the small log."""
    return reproduce_minh2012_predictor(small_folder)


@pytest.fixture(scope="module", params=CUTS)
def real(request: pytest.FixtureRequest, read_trace: Callable[[str], Trace]) -> Minh2012Predictor:
    """Return the study on one real trace."""
    cut = CUTS[request.param]
    past = past_jobs(read_trace(LOG_FILES[cut.log]), cut.years)
    return Minh2012Predictor({request.param: study_trace(request.param, past)})


# ---- on the real traces ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.traces
def test_required_figures_are_reached(real: Minh2012Predictor) -> None:
    """Underestimated within 2 points, WAE within 8 %, own training at least 0.97 as fit."""
    assert 3 == len(real.requirements)
    assert [] == real.failures


@pytest.mark.slow
@pytest.mark.traces
def test_the_predictors_are_in_the_published_order(real: Minh2012Predictor) -> None:
    """The thesis' predictor is better than Tsafrir's by all three measures, as published."""
    (outcomes,) = real.traces.values()
    cells = {(cell.measure, cell.predictor): cell for cell in cells_of(outcomes)}
    for measure in ("underestimated", "mae_min", "wae_min"):
        own, other = cells[measure, "minh"], cells[measure, "tsafrir"]
        assert own.published.value < other.published.value
        assert own.ours is not None
        assert other.ours is not None
        assert own.ours < other.ours


@pytest.mark.slow
@pytest.mark.traces
def test_the_test_part_is_that_of_the_thesis(real: Minh2012Predictor) -> None:
    """The jobs that are tested run as long on average as Table 8.7 says, to the minute."""
    ((name, outcomes),) = real.traces.items()
    row = published_row(name)
    assert int(row["mean_run_min"]) == round(outcomes.mean_run_min)
    assert pytest.approx(int(row["jobs"]), abs=40) == outcomes.jobs


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_figures(real: Minh2012Predictor, root: Path) -> None:
    """Every line of the page's tables is as computed, digit by digit."""
    page = (root / "docs" / "studies" / "minh2012-predictor.md").read_text().splitlines()
    computed = [rows(real) for rows in (table_rows, model_rows, training_rows, reading_rows)]
    for rows in (required_rows(real.requirements), *computed):
        for row in rows:
            assert f"| {' | '.join(row)} |" in page


@pytest.mark.slow
@pytest.mark.traces
def test_stored_parameters_are_of_these_traces(real: Minh2012Predictor) -> None:
    """The figures of stored parameters are those that their file noted when they were trained."""
    ((name, outcomes),) = real.traces.items()
    stored = stored_training(name)["provenance"]
    assert stored["trace"]["sha256"] == outcomes.facts["sha256"]
    assert (CUTS[name].training, outcomes.training) == (stored["training_jobs"],) * 2
    assert pytest.approx(stored["training"]["fitness"]) == outcomes.own.training.fitness


# ---- published and stored data ---------------------------------------------------------------


def test_published_tables_are_whole() -> None:
    """Tables 8.3 to 8.7 have the same four traces; a few figures as printed."""
    rows = {row["trace"]: row for row in published_rows("minh2012_tables8")}
    assert published_names() == list(rows)
    assert set(CUTS) == set(rows)
    assert ("29", "48.1", "271") == tuple(
        rows["SDSC04"][f"{measure}_minh"] for measure in ("underestimated", "mae_min", "wae_min")
    )
    assert "2543" == rows["HPC2N05"]["wae_min_li"]


@pytest.mark.parametrize("name", TRAINED)
def test_stored_trainings_are_not_the_published_parameters(name: str) -> None:
    """What is shown as our own training was found by a search, and its file says by which."""
    wire = stored_training(name)
    assert HistoryParameters.published(name).pivot_s != wire["settings"]["parameters"]["pivot_s"]
    assert {"fitness", "seed", "evaluations", "wall_s"} <= set(wire["provenance"]["training"])


# ---- on a small log --------------------------------------------------------------------------


def test_traces_that_are_there_are_studied(small: Minh2012Predictor) -> None:
    """A log that is there becomes its traces; the others are named as absent."""
    assert ["SDSC04"] == list(small.traces)
    assert ["SDSC02", "HPC2N04", "HPC2N05"] == small.absent
    assert set(MODELS) == set(small.traces["SDSC04"].test)


def test_missed_figures_are_named(small: Minh2012Predictor) -> None:
    """A small log misses the published figures, and the study says which."""
    assert not small.reached
    missed = [one.what for one in small.failures]
    assert "WAE, published parameters" in missed


def test_requirements_have_two_sides(small: Minh2012Predictor) -> None:
    """Figures that are too good miss as well; a fitness that is better does not."""
    outcomes = small.traces["SDSC04"]
    for share, error, fits in ((0.29, 271.0, [True, True]), (0.26, 240.0, [False, False])):
        found = replace(outcomes.test["history"], underestimated_share=share, wae_min=error)
        test = outcomes.test | {"history": found}
        needs = list(replace(outcomes, test=test).requirements)
        assert fits == [one.holds for one in needs[:2]]
    better = replace(outcomes.own.training, normalized_error=0.0001)
    worse = replace(outcomes.own.training, normalized_error=9.0)
    for training, holds in ((better, True), (worse, False)):
        own = replace(outcomes.own, training=training)
        assert holds == list(replace(outcomes, own=own).requirements)[2].holds


def test_training_is_run_when_asked_for(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With training the parameters are those of this run, and the steps are reported."""
    monkeypatch.setitem(study_module.CUTS, "SDSC04", Cut("SDSC-DS", None, 75))
    told: list[tuple[str, int, int]] = []
    found = reproduce_minh2012_predictor(
        small_folder, lambda *news: told.append(news), training=True, budget_s=0.5, seeds=2
    )
    own = found.traces["SDSC04"].own
    assert TRAINED_HERE == own.origin
    assert own.details["evaluations"] >= 2
    assert [f"SDSC04: {DS_FILE}", "SDSC04: training, 0.5 s", "SDSC04: models", "done"] == [
        label for label, _, _ in told
    ]
    assert told[-1][1] == told[-1][2]


def test_folder_is_whole(small: Minh2012Predictor, tmp_path: Path) -> None:
    """The folder holds data, table, pictures, page and provenance."""
    rows = rows_of_folder(small, tmp_path)
    assert len(small.to_json()["tables"]) == len(rows) == 9
    pictures = {path.name for path in (tmp_path / "study").glob("*.png")}
    assert {f"{name}.png" for name in FIGURES} == pictures
    assert "Li&#x27;s column cannot be run" in (tmp_path / "study" / "report.html").read_text()


def test_tables_on_a_terminal(small: Minh2012Predictor) -> None:
    """The terminal shows ours next to published, what is required, and what is absent."""
    text = shown(small)
    assert "Tables 8.4 to 8.6" in text
    assert "not available: SDSC02, HPC2N04, HPC2N05" in text
    assert "history, own training" in text


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_are_drawn(name: str, small: Minh2012Predictor) -> None:
    """Every picture has a title and axes with something on them."""
    figure = FIGURES[name](list(small.traces.values()))
    assert isinstance(figure, Figure)
    assert figure.texts[0].get_text()
    assert all(axes.has_data() for axes in figure.axes)


def test_parts_of_the_page_are_marked(small: Minh2012Predictor, root: Path) -> None:
    """Every generated part has its place on the page."""
    page = (root / "docs" / "studies" / "minh2012-predictor.md").read_text()
    for name in small.page_parts().keys() - {"summary"}:
        assert 1 == page.count(f"<!-- generated: {name} -->")
        assert 1 == page.count(f"<!-- end of {name} -->")


def test_command_line(
    small_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes the folder, prints one JSON object, and shows whether all is reached."""
    out = tmp_path / "out"
    reached = run_study(
        lambda progress: reproduce_minh2012_predictor(
            small_folder, progress, training=False, budget_s=1.0, seeds=1
        ),
        out=out,
        as_json=True,
    )
    assert not reached
    assert "minh2012-predictor" == json.loads(capsys.readouterr().out)["study"]
    assert (out / "provenance.json").exists()


def test_no_trace_is_reported(tmp_path: Path) -> None:
    """Without any log the message names one and where it is."""
    with pytest.raises(HpcrowdError, match="no trace of BLUE, SDSC-DS, HPC2N; fetch one"):
        reproduce_minh2012_predictor(tmp_path)
    with pytest.raises(QuantityError, match="budget 0 s, seeds 4: both must be more than 0"):
        reproduce_minh2012_predictor(tmp_path, budget_s=0)


def test_sdsc02_is_the_year_2002_of_blue(make_trace: Callable[..., Trace], tmp_path: Path) -> None:
    """Where SDSC-BLUE is there, its jobs of 2002 in local time are SDSC02, without own training."""
    day, new_year = 86_400, 1_009_872_000  # 2002 began in California 8 h later than in UTC
    job = {"wait": 5, "requested_processors": 2, "requested_time": 3600, "status": 1}
    log = make_trace(
        *(job | {"submit": n * day, "run": 60 + n, "user": n % 3 + 1} for n in range(500)),
        header="; MaxProcs: 8\n; TimeZoneString: US/Pacific\n"
        f"; UnixStartTime: {new_year - 50 * day}",
    )
    write_swf(log, tmp_path / "SDSC-BLUE-2000-4.2-cln.swf")
    found = reproduce_minh2012_predictor(tmp_path)
    assert ["SDSC02"] == list(found.traces)
    one = found.traces["SDSC02"]
    assert (365, None) == (one.jobs, one.own)
    assert ["underestimated, published parameters", "WAE, published parameters"] == [
        need.what for need in found.requirements
    ]
    text = shown(found)
    assert "SDSC02: 365 jobs, 80,756 in Table 8.1: another version of the log" in text
    assert "SDSC02: no parameters of an earlier training" in text
    assert None is found.to_json()["traces"]["SDSC02"]["own_training"]
