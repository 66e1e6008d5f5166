"""Minh 2012, chapter 8, is reproduced: required figures on the real traces, and small logs."""

from dataclasses import replace
from itertools import chain

import pytest
from hpcrowd.analysis.prediction import past_jobs
from hpcrowd.environment.schedulers.predictors.history import HistoryParameters, published_names
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.studies.minh2012 import predictor as study
from hpcrowd.scenarios.studies.minh2012.predictor import (
    CUTS,
    MODELS,
    Cut,
    reproduce_minh2012_predictor,
)
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.render import required_table, study_page

from tests.scenarios.studies.study_cases import DS_FILE, job, shown

LOG_FILES = {
    "BLUE": "SDSC-BLUE-2000-4.2-cln",
    "SDSC-DS": "SDSC-DS-2004-2.1-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
}
#: Traces with parameters of an earlier training.
TRAINED = [name for name in CUTS if name != "SDSC02"]


@pytest.fixture(scope="module", params=CUTS)
def real(request, read_trace):
    """Return the study on one real trace."""
    cut = CUTS[request.param]
    past = past_jobs(read_trace(LOG_FILES[cut.log]), cut.years)
    return study.Minh2012Predictor({request.param: study.study_trace(request.param, past)})


@pytest.mark.slow
@pytest.mark.traces
def test_the_study_on_a_trace(real, page):
    """Required figures, the order of predictors, the test part, stored parameters, and the page."""
    ((name, outcomes),) = real.traces.items()
    assert 3 == len(real.requirements)
    assert [] == real.failures
    cells = {(cell.measure, cell.predictor): cell for cell in study.cells_of(outcomes)}
    for measure in ("underestimated", "mae_min", "wae_min"):
        assert cells[measure, "minh"].ours < cells[measure, "tsafrir"].ours
    row = study.published_row(name)  # of Table 8.7
    assert int(row["mean_run_min"]) == round(outcomes.mean_run_min)
    assert pytest.approx(int(row["jobs"]), abs=40) == outcomes.jobs
    stored = study.stored_training(name)["provenance"]
    assert stored["trace"]["sha256"] == outcomes.facts["sha256"]
    assert (CUTS[name].training, outcomes.training) == (stored["training_jobs"],) * 2
    assert pytest.approx(stored["training"]["fitness"]) == outcomes.own.training.fitness
    tables = study.table_rows, study.model_rows, study.training_rows, study.reading_rows
    for row in chain(required_table(real.requirements, "trace").rows, *(of(real) for of in tables)):
        assert f"| {' | '.join(row)} |" in page.splitlines()


@pytest.mark.parametrize("name", TRAINED)
def test_stored_trainings_are_not_the_published_parameters(name):
    """What is shown as our own training was found by a search, and its file says by which."""
    rows = [row["trace"] for row in published_rows("minh2012_tables8")]
    assert [*published_names()] == rows
    assert set(CUTS) == set(rows)
    wire = study.stored_training(name)
    assert HistoryParameters.published(name).pivot_s != wire["settings"]["parameters"]["pivot_s"]
    assert {"fitness", "seed", "evaluations", "wall_s"} <= set(wire["provenance"]["training"])


def test_what_is_told_of_a_small_log(small):
    """What it misses is named; figures that are too good miss, a better fitness does not."""
    assert ["SDSC04"] == list(small.traces)
    assert set(MODELS) == set(small.traces["SDSC04"].test)
    assert not small.reached
    assert "WAE, published parameters" in [one.what for one in small.failures]
    assert "Li&#x27;s column cannot be run" in study_page(small, [])
    outcomes = small.traces["SDSC04"]
    for share, error, fits in ((0.29, 271.0, [True, True]), (0.26, 240.0, [False, False])):
        found = replace(outcomes.test["history"], underestimated_share=share, wae_min=error)
        test = outcomes.test | {"history": found}
        needs = list(replace(outcomes, test=test).requirements)
        assert fits == [one.holds for one in needs[:2]]
    for error, holds in ((0.0001, True), (9.0, False)):
        training = replace(outcomes.own.training, normalized_error=error)
        own = replace(outcomes.own, training=training)
        assert holds == list(replace(outcomes, own=own).requirements)[2].holds


def test_training_is_run_when_asked_for(input_of, monkeypatch):
    """With training the parameters are those of this run, and the steps are reported."""
    monkeypatch.setitem(study.CUTS, "SDSC04", Cut("SDSC-DS", None, 75))
    told: list[tuple[str, int, int]] = []
    found = reproduce_minh2012_predictor(
        input_of("minh2012-predictor"),
        lambda *news: told.append(news),
        training=True,
        budget_s=0.5,
        seeds=2,
    )
    own = found.traces["SDSC04"].own
    assert study.TRAINED_HERE == own.origin
    assert own.details["evaluations"] >= 2
    assert [f"SDSC04: {DS_FILE}", "SDSC04: training, 0.5 s", "SDSC04: models", "done"] == [
        label for label, _, _ in told
    ]
    assert told[-1][1] == told[-1][2]


def test_sdsc02_is_the_year_2002_of_blue(make_trace, tmp_path):
    """Where SDSC-BLUE is there, its jobs of 2002 in local time are SDSC02, without own training."""
    day, new_year = 86_400, 1_009_872_000  # 2002 began in California 8 h later than in UTC
    log = make_trace(
        *(job(n * day, 60 + n, 2, n % 3 + 1, wait=5) for n in range(500)),
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
    assert "SDSC02: no parameters of an earlier training" in shown(found)
    assert None is found.to_json()["traces"]["SDSC02"]["own_training"]
