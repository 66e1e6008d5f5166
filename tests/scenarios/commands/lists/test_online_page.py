"""What the page of predictors shows about replays with them."""

import csv
import runpy
from typing import Any

import pytest
from hpcrowd import State
from hpcrowd.analysis.prediction import estimate_accuracy

from tests.support.places import ROOT

measured: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "online_predictors.py"))


@pytest.mark.slow
def test_page_shows_what_is_measured(kth):
    """The tables of the page are those that are measured now on KTH-SP2."""
    with measured["TABLE"].open(newline="") as file:
        assert list(csv.DictReader(file)) == list(measured["rows"](kth))


def test_accuracy_counts_jobs_that_ended(make_jobs):
    """Jobs that were killed or never ran do not count; time is that on the machine."""
    jobs = make_jobs((0, 60, 1), (0, 120, 3), (0, 9, 1))
    jobs.estimate[:] = 120, 60, 999
    jobs.start[:] = 10
    jobs.end[:] = 70, 130, 999
    jobs.state[:] = State.COMPLETED, State.COMPLETED, State.KILLED
    found = estimate_accuracy(jobs)
    assert (2, 0.5, 1.0, 1.0) == (
        found.jobs, found.underestimated_share, found.mae_min, found.wae_min
    )  # fmt: skip
