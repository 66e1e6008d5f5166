"""Populations drawn from KTH-SP2: as many jobs, the same rhythm, the same think times."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.environment import Trace
from hpcrowd.scenarios.kinds.resample import ResampleConfig, pool_of, resample
from hpcrowd.scenarios.studies.rebound.draws import SHUFFLED, Draws, draws_of

pytestmark = [pytest.mark.traces, pytest.mark.slow]


@pytest.fixture(scope="module")
def draws(kth: Trace) -> Draws:
    """Return ten draws, and ten that are shuffled in the week."""
    return draws_of(kth, {"draw": {"users": "rigid", "scheduler": "recorded"}}, seeds=10)


def test_pool_of_kth(kth: Trace) -> None:
    """188 of 214 users, 72 of them long-term; few jobs are lost."""
    pool, _ = pool_of(kth, ResampleConfig())
    assert (72, 116, 48) == (len(pool.long_term), len(pool.temporary), pool.weeks)
    assert (26, 176) == (pool.dropped_users.total(), pool.dropped_jobs.total())
    assert 28_475 == pool.jobs + pool.dropped_jobs.total()


def test_draws_are_like_the_log(draws: Draws) -> None:
    """Jobs per week are within 10 % of the log's on average, and within 15 % in each draw."""
    made, shuffled = draws.kinds["draw"], draws.kinds[SHUFFLED]
    jobs = np.array([draw.jobs_per_week for draw in made])
    assert pytest.approx(draws.jobs_per_week, rel=0.1) == jobs.mean()
    assert (abs(jobs / draws.jobs_per_week - 1) < 0.15).all()
    assert jobs.std(ddof=1) > 0
    pairs = zip(made, shuffled, strict=True)
    assert [True] * 10 == [draw.week < other.week / 2 for draw, other in pairs]
    assert max(draw.think for draw in made) < 0.03


def test_a_faster_machine_is_used_for_more(kth: Trace) -> None:
    """Twice as fast: rigid users submit the same, closed loops more, semi-open ones most."""
    kinds = {
        "rigid": {"users": "rigid"},
        "closed": {"users": "think-time-windows"},
        "semi-open": {"users": "think-time-windows", "satisfaction": "habit"},
    }
    more = {}
    for name, choices in kinds.items():
        runs = [resample(kth, speed=speed, seed=1, **choices) for speed in ("1x", "2x")]
        before, after = (run.population["work_recorded_node_h_per_week"] for run in runs)
        more[name] = after / before
    assert pytest.approx(1, abs=0.02) == more["rigid"]
    assert more["rigid"] < more["closed"] < more["semi-open"]
