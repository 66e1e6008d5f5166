"""The page on Minh 2012, chapter 6: made from stored runs, which come out again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.scenarios.studies.minh2012_arrivals.experiments import Plan, Task, Work
from hpcrowd.scenarios.studies.minh2012_arrivals.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import MEASURES
from hpcrowd.scenarios.studies.minh2012_arrivals.study import Minh2012Arrivals
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import PATTERNS, stored_arrivals
from hpcrowd.scenarios.studies.refresh import page_of, pictures_of_page, stored_study
from hpcrowd.scenarios.studies.render import refresh_page

NAME = Minh2012Arrivals.name

#: The page, and the folder of its pictures.
PAGE, PICTURES = page_of(NAME), pictures_of_page(NAME)

#: How near a stored figure is to the computed one.
NEAR = 10.0 ** (1 - Minh2012Arrivals.stored_digits)


@pytest.fixture(scope="module")
def study() -> Minh2012Arrivals:
    """Return the stored study."""
    found: Minh2012Arrivals = stored_study(NAME)
    return found


def test_page_is_made_from_the_runs(study: Minh2012Arrivals) -> None:
    """Tables are those that the code makes of the stored runs; every picture is there."""
    page = PAGE.read_text()
    assert refresh_page(page, study.page_parts()) == page
    assert {f"{name}.png" for name in FIGURES} == {one.name for one in PICTURES.iterdir()}
    assert all(f"{PICTURES.name}/{name}.png" in page for name in FIGURES)


def test_study_has_its_full_size(study: Minh2012Arrivals) -> None:
    """As many workloads and jobs as in the thesis; what is required is reached."""
    plan = Plan()
    assert (plan.cluster_replications, plan.grid_replications, plan.jobs) == (
        study.cluster_replications, study.grid_replications, study.jobs,
    )  # fmt: skip
    assert (plan.loads, plan.grid_loads) == (study.cluster.loads, study.grid.loads)
    assert plan.settings() == study.settings
    assert dict(stored_arrivals().log) == study.log
    assert study.reached


@pytest.mark.parametrize(("pattern", "replication"), [("N", 3), ("LB", 40)])
def test_cluster_runs_come_out_again(
    study: Minh2012Arrivals, pattern: str, replication: int
) -> None:
    """A workload run again under every policy at a load gives what is stored."""
    work = Work(replace(Plan(), loads=(0.7,)), stored_arrivals())
    number = [*PATTERNS].index(pattern)
    found = np.array(work(Task("cluster", number, replication)))
    kept = study.cluster.slowdown[:, study.cluster.loads.index(0.7), number, replication]
    assert np.allclose(kept, found[:, 0], rtol=NEAR)


@pytest.mark.slow
def test_grid_runs_come_out_again(study: Minh2012Arrivals) -> None:
    """All combinations of a replication at a load, run again, give what is stored."""
    work = Work(Plan(), stored_arrivals())
    found = np.array(work(Task("grid", 0, 7)))
    assert (len(MEASURES), 3, 3) == found.shape
    assert np.allclose(study.grid.slowdown[:, 0, :, :, 7], found, rtol=NEAR)
