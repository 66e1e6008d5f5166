"""Lublin's jobs and Downey's: formulas and moments, parameters found again, kinds and arrivals."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import generate
from hpcrowd.analysis.models.arrivals.lublin import BATCH, INTERACTIVE, Lublin, LublinTypes
from hpcrowd.analysis.models.jobs.downey import Downey, speedup
from hpcrowd.analysis.models.jobs.lublin import (
    PUBLISHED,
    HyperGamma,
    TwoStage,
    fit_hyper_gamma,
    fit_two_stage,
)
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import QuantityError
from scipy.stats import gamma

from tests.analysis.features.feature_cases import FAR, near, poisson_workload

kinds = pytest.mark.parametrize("kind", PUBLISHED)


def probability(sizes: TwoStage, machine: int) -> np.ndarray:
    """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,)."""
    shares = np.array([sizes.serial, sizes.power, 1 - sizes.serial - sizes.power])
    return shares @ sizes.ways(np.arange(1, machine + 1), machine)


@kinds
@pytest.mark.parametrize("machine", [1, 3, 100, 128])
def test_sizes_are_as_the_formula_says(kind: str, machine: int) -> None:
    """Drawn sizes have the probabilities of the model, which add up to 1; none is too large."""
    model = PUBLISHED[kind].sizes
    expected = probability(model, machine)
    assert 1 == pytest.approx(expected.sum())
    drawn = model.draw(50_000, machine, np.random.default_rng(1))
    found = np.bincount(drawn, minlength=machine + 1)
    assert (0, machine + 1) == (found[0], len(found))
    error = np.sqrt(expected * (1 - expected) / 50_000)
    assert (np.abs(found[1:] / 50_000 - expected) <= FAR * error + 1e-12).all()
    if (kind, machine) == ("batch", 128):  # Serial is what it says; powers of two a little more.
        assert (1.2, 5.0, 7.0) == pytest.approx(model.bounds(128))
        assert 0.2927 == pytest.approx(expected[0])
        powers = expected[[0, 1, 3, 7, 15, 31, 63, 127]].sum()
        assert 0.2927 + 0.6686 < powers < 0.2927 + 0.6686 + 0.02


@kinds
@pytest.mark.parametrize("size", [1, 64])
def test_run_times_are_as_the_formula_says(kind: str, size: int) -> None:
    """Logs of run times are a mixture of two gammas, cut off at the cap; run times are whole."""
    model = PUBLISHED[kind].run_times
    first = float(model.share(np.array([size]))[0])
    parts = ((first, model.a1, model.b1), (1 - first, model.a2, model.b2))

    def below(log: float) -> float:
        return float(sum(share * gamma.cdf(log, a, scale=b) for share, a, b in parts))

    cap = model.longest_log_s
    found = model.draw(np.full(40_000, size), np.random.default_rng(2))
    assert 1 <= found.min() <= found.max() <= np.exp(cap)
    for seconds in (10, 100, 1000, 20_000, 60_000):
        near(below(np.log(seconds + 1)) / below(cap), found <= seconds)
    # The mean of the logs: of each gamma below the cap, x f(x; a) is a b f(x; a + 1).
    logs = sum(share * a * b * gamma.cdf(cap, a + 1, scale=b) for share, a, b in parts)
    assert logs / below(cap) == pytest.approx(np.log(found + 0.5).mean(), abs=0.05)


@pytest.mark.parametrize("machine", [128, 500])
def test_two_stage_is_found_again(machine: int) -> None:
    """Shares and bounds of the sizes come out of what the model draws."""
    made = TwoStage(serial=0.25, power=0.5, low=1.1, med_below_high=2.6, lower_probability=0.85)
    found, _ = fit_two_stage(made.draw(60_000, machine, np.random.default_rng(3)), machine)
    assert (0.25, 0.5) == pytest.approx((found.serial, found.power), abs=0.02)
    assert made.bounds(machine) == pytest.approx(found.bounds(machine), abs=0.15)
    assert made.lower_probability == pytest.approx(found.lower_probability, abs=0.03)


def test_hyper_gamma_is_found_again() -> None:
    """Gammas, and how the first one's probability goes with the size."""
    made = HyperGamma(a1=9, b1=0.5, a2=300, b2=0.033, pa=-0.004, pb=0.8)
    sizes = np.random.default_rng(4).integers(1, 101, 60_000)
    found, notes = fit_hyper_gamma(made.draw(sizes, np.random.default_rng(5)), sizes, 100)
    assert [] == notes
    assert 9 * 0.5 == pytest.approx(found.a1 * found.b1, rel=0.02)
    assert 300 * 0.033 == pytest.approx(found.a2 * found.b2, rel=0.01)
    assert made.pa == pytest.approx(found.pa, abs=4e-4)
    assert made.pb == pytest.approx(found.pb, abs=0.02)


def test_kinds_come_with_their_own_arrivals() -> None:
    """Queue 0 is interactive and 1 batch; each has its share, its sizes and its times."""
    model, arrivals = published("lublin", 128), LublinTypes.published()
    assert arrivals.model_dump() == model.arrivals.model_dump()
    found = generate(model, jobs=40_000).drawn
    assert {INTERACTIVE, BATCH} == set(found.queue.tolist())
    quick = found.queue == INTERACTIVE
    assert arrivals.interactive_share == pytest.approx(quick.mean(), abs=0.05)
    assert found.processors[quick].max() <= 64
    near(0.1541, found.processors[quick] == 1)
    near(0.2927, found.processors[~quick] == 1)
    # Stretched to a load, jobs and kinds stay the same.
    again = generate(model, jobs=40_000, load=0.5).drawn
    assert found.queue.tolist() == again.queue.tolist()
    assert found.run_time.tolist() == again.run_time.tolist()
    # Arrivals that tell no kinds leave it to the share.
    plain = model.jobs.draw(20_000, Lublin.published(), 128, Streams(1))
    near(arrivals.interactive_share, plain.queue == INTERACTIVE)


def test_kinds_are_distinguished_by_the_queue() -> None:
    """With 100 jobs of queue 0 and of others, kinds have their own parameters."""
    random = np.random.default_rng(6)
    queue = (random.random(4000) < 0.7).astype(int) * 3
    times = np.where(queue == 0, 20, 4000) * random.exponential(1, 4000)
    workload = poisson_workload(4000, 300, 1, queue=queue, run_time=times)
    model = fit("lublin", workload)
    assert isinstance(model.arrivals, LublinTypes)
    assert np.mean(queue == 0) == pytest.approx(model.jobs.interactive_share)  # type: ignore[attr-defined]
    drawn = generate(model, jobs=3000).drawn
    quick = drawn.queue == INTERACTIVE
    assert np.median(drawn.run_time[quick]) < 100 < np.median(drawn.run_time[~quick])
    one = fit("lublin", workload, options={"kinds": "one"}).jobs
    same = fit("lublin-typeless", workload)
    assert (None, same.jobs.batch) == (one.interactive, one.batch)  # type: ignore[attr-defined]
    assert {-1} == set(generate(same, jobs=50).drawn.queue.tolist())
    assert isinstance(fit("lublin", poisson_workload(500, 300, 1)).arrivals, Lublin)


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
