"""How much longer users pause after longer responses, in a log."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.agents import Work
from hpcrowd.agents.work.units import Units
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.scenarios.studies.rebound.pauses import pause_slope

from tests.support.populations import record


def pausing(slope: float, *, users: int = 3, scale: float = 1.0) -> Units:
    """Return sessions of users who pause by a power of the response before; each at its level."""
    rows, random = [], np.random.default_rng(2)
    for user in range(1, users + 1):
        at = 0
        for _ in range(30):
            run = int(random.integers(4000, 50_000))
            rows.append((user, at, run, 1, 0))
            at += run + round(scale * user * 4000 * (run / 4000) ** slope)
    rows.sort(key=lambda row: row[1])
    return Work.of(record(rows)).by_session


@pytest.mark.parametrize("slope", [0.3, 0.5, 0.8])
def test_the_slope_is_found_again(slope: float) -> None:
    """Whatever the level of each user."""
    assert pytest.approx(slope, abs=0.01) == pause_slope(pausing(slope), grace=0)


def test_absences_do_not_count() -> None:
    """Pauses of a week and more are left out; here that leaves those after short responses."""
    units = pausing(0.8, users=1, scale=30)
    assert (units.think_time >= WEEK).any()
    assert pytest.approx(0.8, abs=0.01) == pause_slope(units, grace=0)


def test_without_different_responses_there_is_no_slope() -> None:
    """One line that says so."""
    rows = [(1, k * 100_000, 5000, 1, 0) for k in range(5)]
    with pytest.raises(ModelFitError, match="pauses: 4 of them: no user paused after two"):
        pause_slope(Work.of(record(rows)).by_session)
