"""The page on Minh 2012, chapter 7: made from stored runs, which come out again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_correlation.figures import figures_of
from hpcrowd.scenarios.studies.minh2012_correlation.foretold import foretold_signs
from hpcrowd.scenarios.studies.minh2012_correlation.page import DIGITS, PAGE, PICTURES, main, stored
from hpcrowd.scenarios.studies.minh2012_correlation.plan import CASES, HPC, Plan
from hpcrowd.scenarios.studies.minh2012_correlation.report import page_parts
from hpcrowd.scenarios.studies.minh2012_correlation.run import Task, Work, completed_jobs
from hpcrowd.scenarios.studies.minh2012_correlation.study import Experiments
from hpcrowd.scenarios.studies.pages import refresh_page

#: How near a stored figure is to the computed one.
NEAR = 10.0 ** (1 - DIGITS)


@pytest.fixture(scope="module")
def study() -> Experiments:
    """Return the stored study."""
    return stored()


@pytest.fixture(scope="module")
def work(study: Experiments, read_trace: Callable[[str], Trace]) -> Work:
    """Return what runs some of its tasks again: one load each."""
    trace = read_trace("HPC2N-2002-2.2-cln")
    plan = replace(Plan(), seed=study.seed, loads=(0.9,), locality_loads=(0.8,))
    submit, sample = completed_jobs(trace)
    model = Locality.fit(Workload.of(submit, *sample))
    return Work(plan, {HPC: model}, {HPC: trace.processors}, CASES[:1])


def test_page_is_made_from_the_runs(study: Experiments) -> None:
    """Tables are those that the code makes of the stored runs; every picture is there."""
    page = PAGE.read_text()
    assert refresh_page(page, page_parts(study)) == page
    assert {f"{name}.png" for name in figures_of(study)} == {one.name for one in PICTURES.iterdir()}
    assert all(f"{PICTURES.name}/{name}.png" in page for name in figures_of(study))


def test_study_has_its_full_size(study: Experiments) -> None:
    """As many workloads and jobs as in the thesis, all policies; what is required is reached."""
    plan = Plan()
    assert (plan.replications, plan.jobs) == (study.replications, study.jobs)
    runs = study.correlation
    assert (plan.policies, plan.degrees, plan.loads) == (runs.policies, runs.degrees, runs.loads)
    assert [(case.log, case.degree) for case in plan.cases] == [
        (runs.log, runs.degree) for runs in study.locality
    ]
    assert study.reached


@pytest.mark.traces
@pytest.mark.parametrize(("degree", "replication"), [(0, 3), (8, 11)])
def test_correlation_runs_come_out_again(
    study: Experiments, work: Work, degree: int, replication: int
) -> None:
    """A workload run again under every policy gives what is stored."""
    correlation, found = work(Task("correlation", degree, replication))
    runs = study.correlation
    assert pytest.approx(runs.correlation[degree, replication], rel=NEAR) == correlation
    kept = runs.slowdown[:, runs.loads.index(0.9), degree, replication]
    assert np.allclose(kept, found[:, 0], rtol=NEAR)


@pytest.mark.traces
def test_locality_runs_come_out_again(study: Experiments, work: Work) -> None:
    """A workload run again with and without locality gives what is stored."""
    correlation, found = work(Task("locality", 0, 7))
    runs = study.locality[0]
    assert pytest.approx(runs.correlation[7], rel=NEAR) == correlation
    kept = runs.slowdown[:, :, runs.loads.index(0.8), 7]
    assert np.allclose(kept, found[:, :, 0], rtol=NEAR)


@pytest.mark.traces
def test_weeks_come_out_again(study: Experiments, kth: Trace) -> None:
    """The weeks of KTH are those that are stored."""
    submit, sample = completed_jobs(kth)
    signs = foretold_signs(submit, *sample)
    assert np.allclose(study.weeks["KTH"].weeks, signs.weeks, rtol=NEAR, equal_nan=True)
    assert study.weeks["KTH"].right == signs.right


def test_page_takes_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """With more than that the usage is told, and nothing is written."""
    assert 2 == main(["a", "b"])
    assert (
        "usage: python -m hpcrowd.scenarios.studies.minh2012_correlation.page [RUNS]"
        in capsys.readouterr().err
    )
