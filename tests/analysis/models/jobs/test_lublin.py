"""Lublin's jobs and Downey's: formulas and moments, parameters found again, kinds and arrivals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import generate
from hpcrowd.analysis.models.arrivals.lublin import BATCH, INTERACTIVE, Lublin, LublinTypes
from hpcrowd.analysis.models.jobs.downey import Downey, speedup
from hpcrowd.analysis.models.jobs.lublin import (
    PUBLISHED,
    HyperGamma,
    LublinJobs,
    LublinOneKind,
    TwoStage,
    fit_hyper_gamma,
    fit_two_stage,
)
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.environment import Streams
from hpcrowd.environment.errors import ModelFitError, QuantityError
from scipy.stats import gamma

from tests.analysis.features.feature_cases import poisson_workload

#: Standard errors that a mean may be off.
FAR = 5

kinds = pytest.mark.parametrize("kind", PUBLISHED)


def near(expected: float, values: Any) -> None:
    """Check that a mean is as expected, within its standard error."""
    values = np.asarray(values, np.float64)
    error = float(values.std()) / np.sqrt(len(values))
    assert expected == pytest.approx(values.mean(), abs=FAR * error)


def probability(sizes: TwoStage, machine: int) -> np.ndarray:
    """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,)."""
    shares = np.array([sizes.serial, sizes.power, 1 - sizes.serial - sizes.power])
    return shares @ sizes.ways(np.arange(1, machine + 1), machine)


@kinds
@pytest.mark.parametrize("machine", [1, 3, 100, 128, 1000])
def test_sizes_are_as_the_formula_says(kind: str, machine: int) -> None:
    """Drawn sizes have the probabilities of the model, which add up to 1; none is too large."""
    model = PUBLISHED[kind].sizes
    expected = probability(model, machine)
    assert 1 == pytest.approx(expected.sum())
    found = np.bincount(
        model.draw(50_000, machine, np.random.default_rng(1)), minlength=machine + 1
    )
    assert 0 == found[0]
    assert machine + 1 == len(found)
    error = np.sqrt(expected * (1 - expected) / 50_000)
    assert (np.abs(found[1:] / 50_000 - expected) <= FAR * error + 1e-12).all()


def test_shares_of_sizes_on_128_processors() -> None:
    """Where log2 is never rounded to 0, serial is what it says; powers of two a little more."""
    sizes = PUBLISHED["batch"].sizes
    assert (1.2, 5.0, 7.0) == pytest.approx(sizes.bounds(128))
    found = probability(sizes, 128)
    assert 0.2927 == pytest.approx(found[0])
    powers = found[[0, 1, 3, 7, 15, 31, 63, 127]].sum()
    assert 0.2927 + 0.6686 < powers < 0.2927 + 0.6686 + 0.02
    interactive = PUBLISHED["interactive"].sizes
    assert (1.0, 3.0, 5.5) == pytest.approx(interactive.bounds(128))
    assert 0 == probability(interactive, 128)[64:].sum()


@kinds
@pytest.mark.parametrize("size", [1, 64])
def test_run_times_are_as_the_formula_says(kind: str, size: int) -> None:
    """Logs of run times are a mixture of two gammas, cut off at the cap; run times are whole."""
    model = PUBLISHED[kind].run_times
    first = float(model.share(np.array([size]))[0])
    parts = (first, gamma(model.a1, scale=model.b1)), (1 - first, gamma(model.a2, scale=model.b2))

    def below(log: float) -> float:
        return float(sum(share * law.cdf(log) for share, law in parts))

    cap = model.longest_log_s
    found = model.draw(np.full(40_000, size), np.random.default_rng(2))
    assert 1 <= found.min() <= found.max() <= np.exp(cap)
    for seconds in (10, 100, 1000, 20_000, 60_000):
        near(below(np.log(seconds + 1)) / below(cap), found <= seconds)
    # The mean of the logs: of each gamma below the cap, x f(x; a) is a b f(x; a + 1).
    logs = sum(
        share * a * b * gamma.cdf(cap, a + 1, scale=b)
        for share, a, b in ((first, model.a1, model.b1), (1 - first, model.a2, model.b2))
    )
    assert logs / below(cap) == pytest.approx(np.log(found + 0.5).mean(), abs=0.05)
    if below(cap) > 0.999:
        first = float(model.share(np.array([size]))[0])
        expected = first * model.a1 * model.b1 + (1 - first) * model.a2 * model.b2
        assert logs == pytest.approx(expected, rel=0.01)


def test_two_stage_is_found_again() -> None:
    """Shares and bounds of the sizes come out of what the model draws."""
    made = TwoStage(serial=0.25, power=0.5, low=1.1, med_below_high=2.6, lower_probability=0.85)
    for machine in (128, 500):
        sizes = made.draw(60_000, machine, np.random.default_rng(3))
        found, _ = fit_two_stage(sizes, machine)
        assert made.serial == pytest.approx(found.serial, abs=0.02)
        assert made.power == pytest.approx(found.power, abs=0.02)
        assert made.bounds(machine) == pytest.approx(found.bounds(machine), abs=0.15)
        assert made.lower_probability == pytest.approx(found.lower_probability, abs=0.03)


def test_hyper_gamma_is_found_again() -> None:
    """Gammas, and how the first one's probability goes with the size."""
    made = HyperGamma(a1=9, b1=0.5, a2=300, b2=0.033, pa=-0.004, pb=0.8)
    sizes = np.random.default_rng(4).integers(1, 101, 60_000)
    times = made.draw(sizes, np.random.default_rng(5))
    found, notes = fit_hyper_gamma(times, sizes, 100)
    assert [] == notes
    assert made.a1 * made.b1 == pytest.approx(found.a1 * found.b1, rel=0.02)
    assert made.a2 * made.b2 == pytest.approx(found.a2 * found.b2, rel=0.01)
    assert made.pa == pytest.approx(found.pa, abs=4e-4)
    assert made.pb == pytest.approx(found.pb, abs=0.02)


def test_kinds_come_with_their_own_arrivals() -> None:
    """Queue 0 is interactive and 1 batch; each has its share, its sizes and its times."""
    model = published("lublin", 128)
    found = generate(model, jobs=40_000).drawn
    assert {INTERACTIVE, BATCH} == set(found.queue.tolist())
    arrivals = LublinTypes.published()
    assert arrivals.model_dump() == model.arrivals.model_dump()
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
    jobs = model.jobs
    assert isinstance(jobs, LublinJobs)
    assert jobs.interactive is not None
    assert float(np.mean(queue == 0)) == pytest.approx(jobs.interactive_share)
    assert isinstance(model.arrivals, LublinTypes)
    drawn = generate(model, jobs=3000).drawn
    quick = drawn.queue == INTERACTIVE
    assert np.median(drawn.run_time[quick]) < 100 < np.median(drawn.run_time[~quick])
    one = fit("lublin", workload, options={"kinds": "one"}).jobs
    assert one.interactive is None  # type: ignore[attr-defined]
    same = fit("lublin-typeless", workload)
    assert isinstance(same.jobs, LublinOneKind)
    assert one.batch == same.jobs.batch  # type: ignore[attr-defined]
    assert {-1} == set(generate(same, jobs=50).drawn.queue.tolist())
    assert isinstance(fit("lublin", poisson_workload(500, 300, 1)).arrivals, Lublin)


def test_speedup_is_continuous() -> None:
    """Branches meet; one processor has speedup 1, none is above parallelism or processors."""
    a = np.array([1.0, 1.5, 2.0, 7.3, 64.0])[:, None]
    for sigma in (0.0, 0.3, 1.0, 1.7, 3.0):
        edges = [a, 2 * a - 1, a + a * sigma - sigma]
        for edge in edges:
            edge = np.maximum(edge, 1)
            around = speedup(edge * np.array([1 - 1e-9, 1, 1 + 1e-9]), a, sigma)
            assert np.ptp(around, axis=1) == pytest.approx(0, abs=1e-6)
        assert 1 == pytest.approx(speedup(1, a, sigma))
        n = np.arange(1, 300)
        found = speedup(n, a, sigma)
        assert (found <= np.minimum(n, a) + 1e-9).all()
        assert (np.diff(found, axis=1) >= -1e-9).all()
        assert speedup(1e9, a, sigma) == pytest.approx(a)
    # With sigma 1 both formulas are the same.
    n = np.arange(1, 200)
    assert speedup(n, 20, 1.0) == pytest.approx(speedup(n, 20, 1 + 1e-12))
    # Without variance the speedup is linear up to the parallelism.
    assert np.minimum(n, 20) == pytest.approx(speedup(n, 20, 0))


def test_downey_is_log_uniform() -> None:
    """Parallelism and work are, and the load is the one that was chosen."""
    model = published("downey", 256)
    jobs = generate(model, jobs=50_000)
    for size in (4, 16, 100):
        near(np.log(size + 0.5) / np.log(256), jobs.drawn.processors <= size)
    kind = model.jobs
    assert isinstance(kind, Downey)
    one = kind.model_copy(update={"parallelism_max": 1.0})
    drawn = one.jobs(np.arange(20_000.0), 256, Streams(0))
    assert 1 == drawn.processors.max()
    near(one.mean_work, drawn.run_time)
    near(np.log(100) / np.log(1e5), drawn.run_time <= 1000)
    demand = generate(model, jobs=50_000).drawn
    near(kind.mean_demand(256), demand.run_time * demand.processors)
    assert 0.7 == pytest.approx(jobs.load, rel=0.05)


def test_downey_is_found_again() -> None:
    """Both ranges come out of what the model draws; sigma is kept."""
    made = Downey.published(128).model_copy(update={"work_min": 500.0, "work_max": 5e5})
    drawn = made.jobs(np.arange(50_000.0), 128, Streams(2))
    found = Downey.fit(Workload.of(drawn.submit, drawn.run_time, drawn.processors))
    assert made.parallelism_max == pytest.approx(found.parallelism_max, rel=0.1)
    assert 1.0 == pytest.approx(found.parallelism_min, abs=0.1)
    assert made.work_min == pytest.approx(found.work_min, rel=0.15)
    assert made.work_max == pytest.approx(found.work_max, rel=0.15)
    assert (0, 2) == (found.sigma_min, found.sigma_max)


@pytest.mark.parametrize("name", ["lublin", "lublin-typeless", "downey"])
@pytest.mark.parametrize(
    "columns",
    [
        {"run_time": 0.0},
        {"run_time": 500.0, "processors": 1},
        {"processors": 128},
        {"processors": 127},
        {"processors": 1, "machine": 1},
        {"processors": 3, "machine": None},
    ],
)
def test_poor_workloads_can_be_fitted(name: str, columns: dict[str, Any]) -> None:
    """Whatever does not vary, a model of the jobs comes out and generates."""
    for jobs in (1, 3, 50):
        workload = poisson_workload(jobs, 60, 1, **columns)
        model = fit(name, workload, arrivals="poisson") if jobs > 1 else published(name, 4)
        kind = type(model.jobs).fit(workload)
        found = kind.jobs(np.arange(30.0), 4, Streams(0))
        assert 1 <= found.processors.min() <= found.processors.max() <= 4
        assert np.isfinite(found.run_time).all()
        assert found.user.min() >= 1


def test_what_cannot_be() -> None:
    """No jobs, numbers that do not fit together, names that are not known."""
    empty = Workload.of([], [], [])
    for model in (LublinJobs, Downey):
        with pytest.raises(ModelFitError, match="0 jobs: one or more are needed"):
            model.fit(empty)
    with pytest.raises(QuantityError, match="kinds 'soup': not known; choose by-queue, one"):
        LublinJobs.fit(poisson_workload(9, 1, 1), kinds="soup")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="more than 1 together"):
        TwoStage(serial=0.6, power=0.6, low=1, med_below_high=2, lower_probability=0.8)
    with pytest.raises(ValueError, match="work_min 5: must not be above work_max 4"):
        Downey.model_validate(Downey.published(8).model_dump() | {"work_min": 5, "work_max": 4})
    with pytest.raises(QuantityError, match="model downey: published_gap_s is unknown"):
        Downey.fit(poisson_workload(9, 1, 1)).published_arrivals()
