"""Models of Lublin, Downey and Feitelson: formulas, kinds, repetitions, parameters found again."""

import numpy as np
import pytest
from hpcrowd import Streams, generate
from hpcrowd.analysis.features.jobs import is_power_of_two
from hpcrowd.analysis.models.jobs import feitelson, lublin
from hpcrowd.analysis.models.jobs.downey import Downey, speedup
from hpcrowd.analysis.models.jobs.feitelson import Feitelson1996, find_runs, fit_sizes
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.analysis.models.parts.lublin import INTERACTIVE, Lublin, LublinTypes
from hpcrowd.analysis.models.parts.users import draw_from
from hpcrowd.environment.errors import QuantityError
from hpcrowd.features import Workload
from scipy.stats import gamma

from tests.analysis.features.feature_cases import FAR, bursty_workload, near, poisson_workload

kinds = pytest.mark.parametrize("kind", lublin.PUBLISHED)


def probability(sizes, machine):
    """Return the probability of 1, 2, ..., ``machine`` processors, shape (machine,)."""
    shares = np.array([sizes.serial, sizes.power, 1 - sizes.serial - sizes.power])
    return shares @ sizes.ways(np.arange(1, machine + 1), machine)


@kinds
@pytest.mark.parametrize("machine", [1, 3, 100, 128])
def test_sizes_are_as_the_formula_says(kind, machine):
    """Drawn sizes have the probabilities of the model, which add up to 1; none is too large."""
    model = lublin.PUBLISHED[kind].sizes
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
def test_run_times_are_as_the_formula_says(kind, size):
    """Logs of run times are a mixture of two gammas, cut off at the cap; run times are whole."""
    model = lublin.PUBLISHED[kind].run_times
    first = float(model.share(np.array([size]))[0])
    parts = ((first, model.a1, model.b1), (1 - first, model.a2, model.b2))

    def below(log):
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
def test_two_stage_is_found_again(machine):
    """Shares and bounds of the sizes come out of what the model draws."""
    shares = {"serial": 0.25, "power": 0.5, "lower_probability": 0.85}
    made = lublin.TwoStage(low=1.1, med_below_high=2.6, **shares)
    drawn = made.draw(60_000, machine, np.random.default_rng(3))
    found, _ = lublin.fit_two_stage(drawn, machine)
    assert (0.25, 0.5) == pytest.approx((found.serial, found.power), abs=0.02)
    assert made.bounds(machine) == pytest.approx(found.bounds(machine), abs=0.15)
    assert made.lower_probability == pytest.approx(found.lower_probability, abs=0.03)


def test_mixtures_are_found_again():
    """Gammas, and how the first one's probability goes with the size."""
    made = lublin.HyperGamma(a1=9, b1=0.5, a2=300, b2=0.033, pa=-0.004, pb=0.8)
    sizes = np.random.default_rng(4).integers(1, 101, 60_000)
    found, notes = lublin.fit_hyper_gamma(made.draw(sizes, np.random.default_rng(5)), sizes, 100)
    assert [] == notes
    assert 9 * 0.5 == pytest.approx(found.a1 * found.b1, rel=0.02)
    assert 300 * 0.033 == pytest.approx(found.a2 * found.b2, rel=0.01)
    assert made.pa == pytest.approx(found.pa, abs=4e-4)
    assert made.pb == pytest.approx(found.pb, abs=0.02)
    # Means of the stages, and shares that are linear in the size.
    random = np.random.default_rng(6)
    size = random.random(40_000)
    long = random.random(40_000) < 0.1 + 0.6 * size
    times = random.exponential(np.where(long, 5000.0, 100.0))
    found = lublin.fit_linear_mixture(times, size, lublin.Exponentials(0.5), 2)
    assert found.converged
    assert [100, 5000] == pytest.approx(found.parameters.tolist(), rel=0.05)
    assert [0.9, 0.1] == pytest.approx(found.small.tolist(), abs=0.03)
    assert [0.3, 0.7] == pytest.approx(found.large.tolist(), abs=0.03)


def test_kinds_come_with_their_own_arrivals():
    """Queue 0 is interactive and 1 batch; each has its share, its sizes and its times."""
    model, arrivals = published("lublin", 128), LublinTypes.published()
    assert arrivals.model_dump() == model.arrivals.model_dump()
    found = generate(model, jobs=40_000).drawn
    quick = found.queue == INTERACTIVE
    assert arrivals.interactive_share == pytest.approx(quick.mean(), abs=0.05)
    near(0.1541, found.processors[quick] == 1)
    near(0.2927, found.processors[~quick] == 1)
    # Stretched to a load, jobs and kinds stay the same.
    again = generate(model, jobs=40_000, load=0.5).drawn
    assert found.queue.tolist() == again.queue.tolist()
    assert found.run_time.tolist() == again.run_time.tolist()
    # Arrivals that tell no kinds leave it to the share.
    plain = model.jobs.draw(20_000, Lublin.published(), 128, Streams(1))
    near(arrivals.interactive_share, plain.queue == INTERACTIVE)


def test_kinds_are_distinguished_by_the_queue():
    """With 100 jobs of queue 0 and of others, kinds have their own parameters."""
    random = np.random.default_rng(6)
    queue = (random.random(4000) < 0.7).astype(int) * 3
    times = np.where(queue == 0, 20, 4000) * random.exponential(1, 4000)
    workload = poisson_workload(4000, 300, 1, queue=queue, run_time=times)
    model = fit("lublin", workload)
    assert isinstance(model.arrivals, LublinTypes)
    assert np.mean(queue == 0) == pytest.approx(model.jobs.interactive_share)
    drawn = generate(model, jobs=3000).drawn
    quick = drawn.queue == INTERACTIVE
    assert np.median(drawn.run_time[quick]) < 100 < np.median(drawn.run_time[~quick])
    one = fit("lublin", workload, options={"kinds": "one"}).jobs
    assert (None, fit("lublin-typeless", workload).jobs.batch) == (one.interactive, one.batch)
    assert isinstance(fit("lublin", poisson_workload(500, 300, 1)).arrivals, Lublin)


@pytest.mark.parametrize("sigma", [0.0, 0.3, 1.0, 1.7, 3.0])
def test_speedup_is_continuous(sigma):
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


def test_jobs_are_log_uniform():
    """Parallelism and work are, and the load is the one that was chosen."""
    model = published("downey", 256)
    jobs = generate(model, jobs=50_000)
    for size in (4, 16, 100):
        near(np.log(size + 0.5) / np.log(256), jobs.drawn.processors <= size)
    kind = model.jobs
    one = kind.model_copy(update={"parallelism_max": 1.0})
    drawn = one.jobs(np.arange(20_000.0), 256, Streams(0))
    near(one.mean_work, drawn.run_time)
    near(np.log(100) / np.log(1e5), drawn.run_time <= 1000)
    near(kind.mean_demand(256), jobs.drawn.run_time * jobs.drawn.processors)
    assert 0.7 == pytest.approx(jobs.load, rel=0.05)


def test_ranges_are_found_again():
    """Both ranges come out of what the model draws; sigma is kept."""
    made = Downey.published(128).model_copy(update={"work_min": 500.0, "work_max": 5e5})
    drawn = made.jobs(np.arange(50_000.0), 128, Streams(2))
    found = Downey.fit(Workload.of(drawn.submit, drawn.run_time, drawn.processors))
    assert 1.0 == pytest.approx(found.parallelism_min, abs=0.1)
    for name, far in (("parallelism_max", 0.1), ("work_min", 0.15), ("work_max", 0.15)):
        assert getattr(made, name) == pytest.approx(getattr(found, name), rel=far)
    assert (0, 2) == (found.sigma_min, found.sigma_max)
    with pytest.raises(QuantityError, match="model downey: published_gap_s is unknown"):
        found.published_arrivals()


def test_shares_of_sizes_and_run_lengths():
    """Of n^-1.5 over 1 to 128, 0.4105 is serial; r^-2.5 has a known beginning and mean."""
    sizes, lengths = feitelson.size_shares, feitelson.length_shares
    assert 0.4105 == pytest.approx(sizes(128, 1.5, 9, 1.0, 1.0)[0], abs=5e-5)
    found = lengths(2.5, 100_000)[:5].tolist()
    assert [0.745, 0.132, 0.048, 0.023, 0.013] == pytest.approx(found, abs=5e-4)
    mean = lengths(2.5, 10**6) @ np.arange(1, 10**6 + 1)
    assert 1.9473 == pytest.approx(mean, abs=2e-3)
    assert [1.0] == lengths(2.5, 1).tolist()
    odds = sizes(100, 1.5, 4, 2, 3) / sizes(100, 1.5, 4, 1, 1)
    expected = np.where(np.arange(1, 101) <= 4, 2.0, 1.0)
    expected[[0, 1, 3, 7, 15, 31, 63]] *= 3
    assert (expected * odds[4]).tolist() == pytest.approx(odds.tolist())


@pytest.mark.parametrize("repeats", ["same", "new"])
def test_a_repetition_follows_at_once(repeats):
    """It comes when the one before ends without waiting, and is the same but for a new run time."""
    model = published("feitelson97", 32)
    kind = model.jobs.model_copy(update={"repeats": repeats})
    jobs = kind.draw(5000, model.arrivals, 32, Streams(1))
    after = np.flatnonzero(jobs.follows >= 0)
    before = jobs.follows[after]
    assert len(after) > 1000
    assert (jobs.submit[before] + jobs.run_time[before]).tolist() == jobs.submit[after].tolist()
    for column in (jobs.user, jobs.group, jobs.executable, jobs.processors):
        assert column[before].tolist() == column[after].tolist()
    # All of a series ask for the same time, where they take the same time.
    assert (repeats == "same") == (jobs.bag[before].tolist() == jobs.bag[after].tolist())
    assert (repeats == "same") == (jobs.run_time[before].tolist() == jobs.run_time[after].tolist())
    # Fields 17 and 18 of the trace hold the preceding job and a think time of 0, else -1.
    found = generate(model, jobs=500)
    trace, follows = found.trace(), found.drawn.follows
    assert np.where(follows < 0, -1, follows + 1).tolist() == trace["preceding"].tolist()
    assert np.where(follows < 0, -1, 0).tolist() == trace["think_time"].tolist()


def test_arrivals_are_those_of_first_executions():
    """A fit takes the rate of first executions: repetitions are not to be counted twice."""
    workload = bursty_workload(3000, 2)
    model = fit("feitelson97", workload, options={"repeats": "new"})
    assert "new" == model.jobs.repeats
    submit = workload.submit[find_runs(workload).first]
    expected = (submit[-1] - submit[0]) / (len(submit) - 1)
    assert expected == pytest.approx(model.arrivals.mean_gap_s)
    assert len(workload) > 1.5 * len(submit)
    with pytest.raises(QuantityError, match="published_gap_s is unknown"):
        model.jobs.published_arrivals()
    # A run ends where the user asks for something else; others in between do not matter.
    columns = {"user": [1, 2, 1, 1, 2, 1, 2, 2], "executable": [1, 1, 1, 1, 1, 1, 1, 2]}
    found = find_runs(Workload.of(np.arange(8), 1, [4, 4, 4, 2, 4, 4, 1, 1], **columns))
    assert [0, 1, 3, 5, 6, 7] == found.first.tolist()
    assert [2, 2, 1, 1, 1, 1] == found.lengths.tolist()


def test_generated_jobs_are_as_the_formulas_say():
    """First executions have the sizes, mean run times and run lengths of the model."""
    model = published("feitelson96", 64)
    jobs = generate(model, jobs=60_000, seed=3).drawn
    first, kind = jobs.follows < 0, model.jobs
    size = jobs.processors[first]
    near(kind.size_shares(64)[0], size == 1)
    near(kind.size_shares(64)[[0, 1, 3, 7, 15, 31, 63]].sum(), is_power_of_two(size))
    for processors in (1, 2, 4):
        expected = float(kind.mean_run_time(np.array([processors]), 64)[0])
        near(expected, jobs.run_time[first & (jobs.processors == processors)])
    serial = float(kind.mean_run_time(np.array([1]), 64)[0])
    assert 1000 * (0.95 + 0.05 * 7 + 6 * 0.2 / 64) == pytest.approx(serial)


@pytest.mark.parametrize("name", ["feitelson96", "feitelson97"])
def test_a_load_stretches_first_executions_only(name):
    """Series stay the same, and first executions come to the end, without a tail of repetitions."""
    model = published(name, 64)
    assert 0.7 == pytest.approx(model.jobs.work(64) / (64 * model.arrivals.mean_gap_s))
    low, high = (generate(model, jobs=20_000, load=load) for load in (0.4, 0.8))
    assert (0.4, 0.8) == pytest.approx((low.load, high.load), rel=0.01)
    one, other = (
        dict(zip(each.drawn.executable, each.drawn.run_time, strict=True)) for each in (low, high)
    )
    both = one.keys() & other.keys()
    assert len(both) > 0.95 * len(one)
    assert [] == [series for series in both if one[series] != other[series]]
    found = generate(model, days=60, load=0.7)
    assert 0.7 == pytest.approx(found.load, rel=0.1)
    assert 60 * 86400 == pytest.approx(found.drawn.submit[found.drawn.follows < 0][-1], rel=0.05)


def test_fitted_to_itself():
    """Parameters are found again in what the model makes up, within what chance leaves."""
    made = Feitelson1996.published(128).model_copy(
        update={"order": 1.2, "small_factor": 2.0, "power_factor": 5.0, "repetitions": 2.2}
    )
    jobs = made.draw(60_000, published("feitelson96", 128).arrivals, 128, Streams(5))
    # Every series has its own user, as where users seldom mix what they do.
    columns = {"user": jobs.bag, "executable": jobs.bag, "machine": 128}
    again = Feitelson1996.fit(Workload.of(jobs.submit, jobs.run_time, jobs.processors, **columns))
    assert made.repetitions == pytest.approx(again.repetitions, abs=0.05)
    # Repetitions have no say of their own: take the model without them for what jobs are like.
    size = draw_from(made.size_shares(128), 60_000, np.random.default_rng(4)) + 1
    found, notes = fit_sizes(size, 128, 9)
    assert [] == notes
    assert made.order == pytest.approx(found["order"], abs=0.05)
    assert made.power_factor == pytest.approx(found["power_factor"], rel=0.1)
    assert made.small_factor == pytest.approx(found["small_factor"], rel=0.15)
