"""Levels that are exchanged: coverage of bad forecasts, equal waits, jobs that still wait."""

import doctest

import numpy as np
import pytest
from hpcrowd.analysis.forecast import levels
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.levels import GRID, STEPS, TrueLevels
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from scipy.stats import norm

#: s between two forecasts.
EVERY = 1000


@pytest.mark.parametrize("width", [0.7, 1.0, 2.0])
def test_bad_forecasts_get_the_coverage(width):
    """Each level covers its share, whether forecasts are too narrow, right, or too wide."""
    draws = np.random.default_rng(1)
    jobs, found = 1000, TrueLevels()
    spread = norm.ppf(np.minimum(GRID, 1 - 0.5 / STEPS))
    waits, bounds = np.zeros(jobs), np.zeros((jobs, len(LEVELS)))
    for job in range(jobs):
        centre = draws.normal(7, 1)
        said = np.exp(centre + width * spread)[None, :]
        bounds[job] = found.bounds(said, job * EVERY)[0]
        waits[job] = round(np.exp(centre + draws.normal()))
        found.add(said, job * EVERY, [job * EVERY + int(waits[job])])
    covered = (waits[200:, None] <= bounds[200:]).mean(axis=0)
    # A distribution that is too narrow cannot reach the outer levels.
    inner = slice(1, 4) if width < 1 else slice(None)
    assert np.abs(covered - LEVELS)[inner] == pytest.approx(0, abs=0.05)
    if width == 1:
        assert found.exchanged(10**9) == pytest.approx(LEVELS, abs=0.03)


def test_lower_bounds_stay_at_equal_waits():
    """Where most waits are 0, none is below the lower quartile, and few are above the upper one."""
    draws = np.random.default_rng(2)
    said = np.where(GRID <= 0.55, 0.0, 600 * (GRID - 0.5))[None, :]  # 55 % are said not to wait
    found, bounds, waits = TrueLevels(), [], []
    for job in range(900):
        now = job * EVERY
        wait = 0 if draws.random() < 0.4 else int(draws.integers(30, 300))
        bounds.append(found.bounds(said, now)[0])
        found.add(said, now, [now + wait])
        waits.append(wait)
    came = np.array(waits[400:])
    quartiles = np.array(bounds)[400:, [1, 3]]
    assert not (came < quartiles[:, 0]).any()
    assert 0.2 < (came > quartiles[:, 1]).mean() < 0.3


def test_jobs_that_still_wait_count_as_long_as_they_have_waited():
    """A third of the jobs waits for ever: the upper levels move up, before any of them starts."""
    said = 600.0 * GRID[None, :]
    found = TrueLevels(trust=1)
    for job in range(300):
        start = UNKNOWN if job % 3 == 0 else job * EVERY + 100 + job % 400
        found.add(said, job * EVERY, [start])
    lower, _, _, upper, most = found.exchanged(10**8)
    assert lower < 0.3
    assert upper > 0.8
    assert most > 0.99
    # What lies in the future of the question does not count.
    assert found.exchanged(0) == pytest.approx(LEVELS)


def test_nothing_known_changes_nothing():
    """Without cases, bounds are the quantiles of the forecast."""
    said = np.arange(1.0, STEPS + 1)[None, :]
    assert TrueLevels().bounds(said, 0).tolist() == [[10, 50, 100, 150, 190]]


def test_levels_are_shares():
    """A level of 1 has no bound."""
    with pytest.raises(QuantityError, match="between 0 and 1"):
        TrueLevels((0.5, 1.0))


def test_the_example_holds():
    """The example of the docstring runs."""
    assert doctest.testmod(levels).failed == 0
