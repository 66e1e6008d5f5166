"""Downey's jobs: speedup, log-uniform parallelism and work, ranges found again."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import generate
from hpcrowd.analysis.models.jobs.downey import Downey, speedup
from hpcrowd.analysis.models.model import published
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import QuantityError

from tests.analysis.models.jobs.job_cases import near


@pytest.mark.parametrize("sigma", [0.0, 0.3, 1.0, 1.7, 3.0])
def test_speedup_is_continuous(sigma: float) -> None:
    """Branches meet; one processor has speedup 1, none is above parallelism or processors."""
    a = np.array([1.0, 1.5, 2.0, 7.3, 64.0])[:, None]
    for edge in (a, 2 * a - 1, a + a * sigma - sigma):
        around = speedup(np.maximum(edge, 1) * np.array([1 - 1e-9, 1, 1 + 1e-9]), a, sigma)
        assert np.ptp(around, axis=1) == pytest.approx(0, abs=1e-6)
    assert 1 == pytest.approx(speedup(1, a, sigma))
    n = np.arange(1, 300)
    found = speedup(n, a, sigma)
    assert (found <= np.minimum(n, a) + 1e-9).all()
    assert (np.diff(found, axis=1) >= -1e-9).all()
    assert speedup(1e9, a, sigma) == pytest.approx(a)
    # With sigma 1 both formulas are the same; without variance it is linear up to parallelism.
    assert speedup(n, 20, 1.0) == pytest.approx(speedup(n, 20, 1 + 1e-12))
    assert np.minimum(n, 20) == pytest.approx(speedup(n, 20, 0))


def test_jobs_are_log_uniform() -> None:
    """Parallelism and work are, and the load is the one that was chosen."""
    model = published("downey", 256)
    jobs = generate(model, jobs=50_000)
    for size in (4, 16, 100):
        near(np.log(size + 0.5) / np.log(256), jobs.drawn.processors <= size)
    kind = model.jobs
    one = kind.model_copy(update={"parallelism_max": 1.0})
    drawn = one.jobs(np.arange(20_000.0), 256, Streams(0))
    assert 1 == drawn.processors.max()
    near(one.mean_work, drawn.run_time)
    near(np.log(100) / np.log(1e5), drawn.run_time <= 1000)
    near(kind.mean_demand(256), jobs.drawn.run_time * jobs.drawn.processors)
    assert 0.7 == pytest.approx(jobs.load, rel=0.05)


def test_ranges_are_found_again() -> None:
    """Both ranges come out of what the model draws; sigma is kept."""
    made = Downey.published(128).model_copy(update={"work_min": 500.0, "work_max": 5e5})
    drawn = made.jobs(np.arange(50_000.0), 128, Streams(2))
    found = Downey.fit(Workload.of(drawn.submit, drawn.run_time, drawn.processors))
    assert made.parallelism_max == pytest.approx(found.parallelism_max, rel=0.1)
    assert 1.0 == pytest.approx(found.parallelism_min, abs=0.1)
    assert made.work_min == pytest.approx(found.work_min, rel=0.15)
    assert made.work_max == pytest.approx(found.work_max, rel=0.15)
    assert (0, 2) == (found.sigma_min, found.sigma_max)
    with pytest.raises(QuantityError, match="model downey: published_gap_s is unknown"):
        found.published_arrivals()
