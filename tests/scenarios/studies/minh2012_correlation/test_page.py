"""The page on Minh 2012, chapter 7: made from stored runs, which come out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_correlation.experiments import (
    CASES,
    HPC,
    Plan,
    Task,
    Work,
)
from hpcrowd.scenarios.studies.minh2012_correlation.figures import figures_of
from hpcrowd.scenarios.studies.minh2012_correlation.study import Minh2012Correlation, signs_of
from hpcrowd.scenarios.studies.refresh import (
    page_of,
    pictures_of_page,
    refresh,
    runs_of,
    stored_study,
)
from hpcrowd.scenarios.studies.render import refresh_page

NAME = Minh2012Correlation.name

#: The page, and the folder of its pictures.
PAGE, PICTURES = page_of(NAME), pictures_of_page(NAME)

#: How near a stored figure is to the computed one.
NEAR = 10.0 ** (1 - Minh2012Correlation.stored_digits)


@pytest.fixture(scope="module")
def study() -> Minh2012Correlation:
    """Return the stored study."""
    found: Minh2012Correlation = stored_study(NAME)
    return found


@pytest.fixture(scope="module")
def work(study: Minh2012Correlation, read_trace: Callable[[str], Trace]) -> Work:
    """Return what runs some of its tasks again: one load each."""
    trace = read_trace("HPC2N-2002-2.2-cln")
    plan = replace(Plan(), seed=study.seed, loads=(0.9,), locality_loads=(0.8,))
    model = Locality.fit(Workload.from_trace(trace))
    return Work(plan, {HPC: model}, {HPC: trace.processors}, CASES[:1])


def test_page_is_made_from_the_runs(study: Minh2012Correlation) -> None:
    """Tables are those that the code makes of the stored runs; every picture is there."""
    page = PAGE.read_text()
    assert refresh_page(page, study.page_parts()) == page
    assert {f"{name}.png" for name in figures_of(study)} == {one.name for one in PICTURES.iterdir()}
    assert all(f"{PICTURES.name}/{name}.png" in page for name in figures_of(study))


def test_study_has_its_full_size(study: Minh2012Correlation) -> None:
    """As many workloads and jobs as in the thesis, all policies; what is required is reached."""
    plan = Plan()
    assert (plan.replications, plan.jobs) == (study.replications, study.jobs)
    runs = study.correlation
    assert (plan.policies, plan.degrees, plan.loads) == (runs.policies, runs.degrees, runs.loads)
    assert [(case.log, case.degree) for case in plan.cases] == [
        (runs.log, runs.degree) for runs in study.locality
    ]
    assert study.reached


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(("degree", "replication"), [(0, 3), (8, 11)])
def test_correlation_runs_come_out_again(
    study: Minh2012Correlation, work: Work, degree: int, replication: int
) -> None:
    """A workload run again under every policy gives what is stored."""
    correlation, found = work(Task("correlation", degree, replication))
    runs = study.correlation
    assert pytest.approx(runs.correlation[degree, replication], rel=NEAR) == correlation
    kept = runs.slowdown[:, runs.loads.index(0.9), degree, replication]
    assert np.allclose(kept, found[:, 0], rtol=NEAR)


@pytest.mark.slow
@pytest.mark.traces
def test_locality_runs_come_out_again(study: Minh2012Correlation, work: Work) -> None:
    """A workload run again with and without locality gives what is stored."""
    correlation, found = work(Task("locality", 0, 7))
    runs = study.locality[0]
    assert pytest.approx(runs.correlation[7], rel=NEAR) == correlation
    kept = runs.slowdown[:, :, runs.loads.index(0.8), 7]
    assert np.allclose(kept, found[:, :, 0], rtol=NEAR)


@pytest.mark.slow
@pytest.mark.traces
def test_weeks_come_out_again(study: Minh2012Correlation, kth: Trace) -> None:
    """The weeks of KTH are those that are stored."""
    signs = signs_of(Workload.from_trace(kth))
    assert np.allclose(study.weeks["KTH"].correlation, signs.correlation, rtol=NEAR, equal_nan=True)
    assert study.weeks["KTH"].right == signs.right


def test_runs_are_stored_from_a_folder_of_results(
    study: Minh2012Correlation, tmp_path: Path
) -> None:
    """Runs of a folder are stored, rounded, and the page is made of them."""
    docs = tmp_path / "docs"
    (docs / "studies").mkdir(parents=True)
    page = page_of(NAME, docs)
    page.write_text(page_of(NAME).read_text().replace("yes: ", "?: "))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / f"{NAME}.json").write_text(json.dumps(study.to_json()))
    refresh(NAME, runs=folder, docs=docs)
    assert runs_of(NAME).read_text() == runs_of(NAME, docs).read_text()
    assert page_of(NAME).read_text() == page.read_text()
    new = {one.name for one in pictures_of_page(NAME, docs).iterdir()}
    assert {one.name for one in PICTURES.iterdir()} == new
