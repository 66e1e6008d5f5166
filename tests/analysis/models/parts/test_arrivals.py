"""Arrivals by wavelets and of Lublin, the choice of auto, and the weekly cycle."""

import math
from itertools import pairwise
from statistics import variance

import numpy as np
import pytest
import pywt
from hpcrowd.analysis.models.model import arrival_model
from hpcrowd.analysis.models.parts import wavelet
from hpcrowd.analysis.models.parts.base import Cycle, Poisson, operational_times
from hpcrowd.analysis.models.parts.lublin import BUCKET_S, PUBLISHED, Lublin, _mean_gap
from hpcrowd.analysis.models.parts.wavelet import Auto, Evidence, Wavelet, WaveletZeros
from hpcrowd.environment.clock import DAY, HOUR, WEEK, Clock
from hpcrowd.environment.errors import ModelFitError, QuantityError
from hpcrowd.features import Settings, Workload
from scipy.stats import gamma

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload

#: Fresh counts, 37 intervals: cut to 4 x 2^3.
COUNTS, CUT = [int(digit) for digit in "31415926535897932384626433832795"], [0, 2, 8, 8, 4]


def counted(counts, scale=900.0):
    """Return arrivals that are counted so over a time scale; the first is at 0 s."""
    submit = np.repeat(np.arange(len(counts)) * scale, counts)
    return Workload.of(submit, 1, settings=Settings(time_scale_s=scale))


def plain_loop(counts):
    """Return mu_c, sigma_c and p by Eqs. 4.1, 4.2, 4.7 and 4.8, one number after the other."""
    scaling, squares = [float(count) for count in counts], []
    for _ in range(int(math.log2(len(counts) / 4))):
        pairs = list(zip(scaling[0::2], scaling[1::2], strict=True))
        detail = [(one - other) / math.sqrt(2) for one, other in pairs]
        scaling = [(one + other) / math.sqrt(2) for one, other in pairs]
        squares.insert(0, sum(d * d for d in detail) / len(detail))
    multiplier = [d / c for d, c in zip(detail, scaling, strict=True)]
    p = [1 / (2 * variance(multiplier)) - 1 / 2]
    for before, after in pairwise(squares):
        p.append((before / after * (p[-1] + 1) - 1) / 2)
    return sum(scaling) / len(scaling), math.sqrt(variance(scaling)), p


@pytest.mark.parametrize(("length", "coarse", "splits"), [
    (8, 4, 1), (15, 7, 1), (16, 4, 2), (52, 6, 3), (121_760, 7, 14),
])  # fmt: skip
def test_a_length_is_cut_to_a_power_of_two(length, coarse, splits):
    """C of 4 to 7 times 2^S, the longest that fits; the synthesis takes the transform back."""
    scales = wavelet.scales_of(
        counted([1, 3, 2, 5] * (length // 4) + [1] * (length % 4)), "wavelet"
    )
    found = (scales.intervals, len(scales.scaling[0]), len(scales.scaling), len(scales.counts))
    assert (length, coarse, splits, coarse << splits) == found
    again = scales.scaling[0]
    for detail in scales.wavelet:
        again = wavelet.split(again, detail / again)
    np.testing.assert_allclose(again, scales.counts)


@pytest.mark.parametrize("events", ["exact", "poisson"])
def test_long_draws_go_on_with_further_syntheses(events):
    """As many as asked for, rising, at the trace's rate; fewer are the beginning of more."""
    model = Wavelet.fit(counted(COUNTS)).model_copy(update={"events": events})
    many = model.times(20_000, np.random.default_rng(4))
    few = model.times(500, np.random.default_rng(4))
    assert (20_000, few.tolist()) == (len(many), many[:500].tolist())
    assert (np.diff(many, prepend=0) >= 0).all()
    assert many[-1] / len(many) == pytest.approx(900 * 32 / sum(COUNTS), rel=0.05)
    if events == "poisson":
        times = wavelet.random_events(np.tile([0.0, 3.0], 20_000), 60, np.random.default_rng(3))
        assert (np.diff(times) >= 0).all()
        found = np.bincount((times // 60).astype(int), minlength=40_000)
        assert 0 == found[0::2].sum()
        assert found[1::2].mean() == pytest.approx(3, abs=4 * np.sqrt(3 / 20_000))
        assert found[1::2].var() == pytest.approx(3, rel=0.06)


def test_estimation_is_that_of_a_plain_loop():
    """Mean, spread and beta parameters of fresh data; the notes say what was cut."""
    mean, sd, p = plain_loop(COUNTS)
    found = Wavelet.fit(counted(COUNTS + CUT))
    assert 4 == found.coarse
    assert (mean, sd) == pytest.approx((found.mean, found.sd))
    assert p == pytest.approx(found.p)
    assert found.notes == (
        "wavelet: the last 5 of 37 intervals are not used, to get a length of 4 x 2^3",
    )
    again = Wavelet.fit(counted(COUNTS, 60))
    assert (found.p, ()) == (again.p, again.notes)


def test_synthesis_has_the_multipliers_it_is_given():
    """Positive rates; at each scale the variance of multipliers is 1 / (2 p + 1), Eq. 4.6."""
    coarse, betas = 4000, (8.0, 2.0, 0.7, 0.3)
    model = Wavelet(time_scale_s=900, coarse=coarse, mean=50, sd=5, p=betas)
    found = model.rates(np.random.default_rng(1))
    assert coarse << len(betas) == len(found)
    assert (found >= 0).all()
    for p in reversed(betas):
        found, detail = pywt.dwt(found, "haar", mode="periodization")
        multiplier = (detail / found)[found > 1e-9]
        error = (multiplier**2).std() / np.sqrt(len(multiplier))
        assert (multiplier**2).mean() == pytest.approx(1 / (2 * p + 1), abs=5 * error)
    assert found.mean() == pytest.approx(50, abs=5 * 5 / np.sqrt(coarse))
    assert found.std() == pytest.approx(5, rel=0.06)
    # A spread of three times the mean leaves none at 0 or below, but a normal cut off at 0, which
    # has the mean 2.795: mu + sigma phi(a) / (1 - Phi(a)), a = -mu / sigma.
    wide = model.model_copy(update={"coarse": 3000, "mean": 1, "sd": 3, "p": (2.0,)})
    found, _ = pywt.dwt(wide.rates(np.random.default_rng(2)), "haar", mode="periodization")
    assert found.min() > 0
    assert found.mean() == pytest.approx(2.795, abs=4 * found.std() / np.sqrt(3000))


@pytest.mark.parametrize(("counts", "message"), [
    ([1] * 7, "wavelet: 7 intervals of 900 s: at least 8 are needed; take poisson"),
    ([2] * 8, r"p_1, scale 1 .* multipliers of variance 0: p must be positive"),
    ([1, 0, 0, 1] * 2, r"p_1, scale 1 .* has p = -0\.1"),
    ([3, 3, 1, 1, 3, 3, 3, 3, 1, 1, 3, 3, 3, 3, 1, 1], r"p_2, scale 2 .* that are all 0"),
    ([20, 0, 20, 0] * 2 + [1, 1, 0, 0, 0, 0, 1, 1], r"p_2, scale 2 .* has p = -0"),
])  # fmt: skip
def test_a_parameter_that_is_not_positive_is_named(counts, message):
    """Too short, too regular and too rough: the scale and the value are in one line."""
    with pytest.raises(ModelFitError, match=message):
        Wavelet.fit(counted(counts))


def test_events_are_where_the_integral_is_whole():
    """Interpolated inside intervals, none in empty ones; what is left over is carried on."""
    fire, expected = wavelet.integrate_and_fire, np.array([1.5, 0, 0.5, 2.0, 0.25])
    times, left = fire(expected, 10)
    assert [10 / 1.5, 30, 35, 40] == pytest.approx(times.tolist())
    assert left == pytest.approx(0.25)
    parts, carried = [], 0.0
    for place, one in enumerate(expected):
        found, carried = fire(np.array([one]), 10, carried)
        parts += (found + 10 * place).tolist()
    assert times.tolist() == pytest.approx(parts)
    assert fire(np.zeros(0), 10, 0.5)[1] == 0.5
    times, _ = fire(np.array(COUNTS + CUT, np.float64), 900)
    inside = np.bincount(np.ceil(times / 900 - 1e-9).astype(int) - 1, minlength=37)
    assert COUNTS + CUT == inside.tolist()


def test_runs_of_empty_intervals():
    """The example of section 4.4 has runs of 4, 3 and 1; each goes to its scale."""
    data = np.array([0.01, 0.02, 0, 0, 0, 0, 0.09, 0, 0, 0, 0.02, 0.03, 0])
    assert [4, 3, 1] == wavelet.zero_runs(data).tolist()
    # M = 4: runs of 4 and 3 belong to scale 2 (4 - 2 and 4 - 1.58), a single one to scale 4.
    # With M = 2 all are kept in scale 2; a series without empty intervals has no zeros.
    z = 8 / 13
    for values, scales, weighing, expected in (
        (data, 3, "number", (z * 2 / 3, 0, z / 3)), (data, 3, "length", (z * 7 / 8, 0, z / 8)),
        (data, 1, "number", (z,)), (np.ones(8), 2, "length", (0, 0)),
    ):  # fmt: skip
        assert expected == pytest.approx(wavelet.zero_shares(values, scales, weighing))


def test_zeros_are_as_many_and_as_long_as_asked():
    """Each scale turns its share to 0 under parents that are not; nothing that arrives is lost."""
    zeros = (0.1, 0.0, 0.2, 0.05)
    model = WaveletZeros(time_scale_s=900, coarse=50, mean=40, sd=4, p=(5.0,) * 4, zeros=zeros)
    found = model.rates(np.random.default_rng(5))
    assert sum(zeros) == pytest.approx((found == 0).mean())
    for scale in (4, 3, 2, 1):
        share = float((found == 0).mean())
        assert sum(zeros[:scale]) == pytest.approx(share)
        found, _ = pywt.dwt(found, "haar", mode="periodization")
        # The transform adds in another order; what was empty stays so.
        found[found < 1e-12] = 0
    assert found.mean() == pytest.approx(40, abs=5 * 4 / np.sqrt(50))
    # Half of each scale at most can become 0 at once; the model then does what it can.
    most = WaveletZeros(time_scale_s=900, coarse=4, mean=40, sd=4, p=(5.0,), zeros=(0.9,))
    assert 4 == int((most.rates(np.random.default_rng(6)) == 0).sum())


def test_zeros_are_fitted_with_the_wavelets():
    """The modified model has the plain one's parameters and the trace's share of zeros."""
    counts = COUNTS[:20] + [0] * 4 + [5, 0, 6, 7, 0, 0, 9, 8]
    plain, found = (kind.fit(counted(counts)) for kind in (Wavelet, WaveletZeros))
    assert plain.p == found.p
    assert sum(found.zeros) == pytest.approx(7 / 32)
    assert "length" == found.weighing
    assert found.zeros != WaveletZeros.fit(counted(counts), weighing="number").zeros


def test_the_nearest_is_taken_and_the_numbers_are_reported():
    """Notes name the choice and have a line for the trace and each candidate."""
    workload = bursty_workload(6000, 3)
    found = Auto.fit(workload)
    told = [note for note in found.notes if note.startswith("auto: ")]
    assert 4 == len(told)
    assert str(Evidence.of(workload.submit, 900)) in told[0]
    candidates = {
        "wavelet": Wavelet.fit(workload),
        "wavelet-zeros by length": WaveletZeros.fit(workload),
        "wavelet-zeros by number": WaveletZeros.fit(workload, weighing="number"),
    }
    taken = candidates.pop(told[0].split(": ")[1].split(";")[0])
    assert taken.model_copy(update={"notes": found.notes}) == found
    with pytest.raises(TypeError, match="abstract"):
        Auto()
    # Twice the CV counts ln 2, the other two as they are; an unknown Hurst does not count.
    one, other = Evidence(2, 0.5, 0.7), Evidence(4, 0.4, 0.9)
    assert np.log(2) + 0.1 + 0.2 == pytest.approx(one.apart(other))
    assert np.log(2) + 0.1 == pytest.approx(one.apart(Evidence(4, 0.4, None)))
    assert "CV 4.00, Hurst unknown, empty 40%" == str(Evidence(4, 0.4, None))


def test_what_is_too_short_or_too_regular_becomes_poisson():
    """The reason is in the notes; asked for by name, the wavelet model refuses."""
    for submit in (np.arange(0, 3000.0, 100), np.arange(0, 900 * 64, 90.0)):
        workload = Workload.of(submit, 1)
        found = Auto.fit(workload)
        assert isinstance(found, Poisson)
        assert found.notes[0].startswith("auto: poisson, because arrivals wavelet: ")
        for name in ("wavelet", "wavelet-zeros"):
            with pytest.raises(ModelFitError, match=f"arrivals {name}: "):
                arrival_model(name).fit(workload)
    hourly = poisson_workload(3000, 300, 1, settings=Settings(time_scale_s=1800))
    for name in ("wavelet", "wavelet-zeros", "auto"):
        assert 1800 == getattr(arrival_model(name).fit(hourly), "time_scale_s", None)


WEEKLY = Cycle(rates=tuple((np.random.default_rng(5).random(168) + 0.1).tolist()))


def test_weights_are_the_programs():
    """Half hour (i - 1) mod 48 has the gamma's share between i - 0.5 and i + 0.5, i in 11..58."""
    for kind, (_, _, anum, bnum, _) in PUBLISHED.items():
        i = np.arange(11, 59)
        shares = np.zeros(48)
        shares[(i - 1) % 48] = np.diff(gamma.cdf([i - 0.5, i + 0.5], anum, scale=bnum), axis=0)[0]
        found = Lublin.published(kind).day_weights
        assert (shares / shares.mean()).tolist() == pytest.approx(found.tolist())
    used, fresh = Lublin.published("batch"), Lublin.published("batch")
    before = used.times(2000, np.random.default_rng(6))
    assert (used, hash(used)) == (fresh, hash(fresh))
    assert used != WEEKLY
    lower = used.model_copy(update={"cap_log_s": 5.0})
    after = lower.times(2000, np.random.default_rng(6))
    assert after[-1] < 2000 * np.exp(5) < before[-1]


@pytest.mark.parametrize("kind", PUBLISHED)
def test_published_gaps(kind):
    """In the time of the day's pace the logs of gaps are gamma of aarr x arar, below the cap."""
    model = Lublin.published(kind)
    count = 40_000
    times = model.times(count, np.random.default_rng(2))
    logs = np.log(np.diff(operational_times(times, model.day_weights, BUCKET_S)))
    shape, scale = model.aarr * model.arar, model.barr
    assert logs.max() < 13
    # The cap takes next to nothing from the typeless kind; the others are compared below it.
    grid = np.linspace(1, 12.5, 24)
    expected = gamma.cdf(grid, shape, scale=scale) / gamma.cdf(13, shape, scale=scale)
    found = np.searchsorted(np.sort(logs), grid) / len(logs)
    assert np.abs(expected - found).max() < 1.63 / np.sqrt(count)
    error = np.exp(logs).std() / np.sqrt(count)
    assert np.exp(logs).mean() == pytest.approx(model.mean_gap_s, abs=4 * error)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_mean_of_a_capped_gap(scale):
    """Known means: exponential logs below a cap, for scales below, at and above 1."""
    x = np.linspace(0, 6.0, 400_001)
    density = gamma.pdf(x, 3.0, scale=scale)
    expected = np.trapezoid(np.exp(x) * density, x) / np.trapezoid(density, x)
    assert expected == pytest.approx(_mean_gap(3.0, scale, 6.0), rel=1e-5)


def test_a_fit_finds_what_it_was_drawn_from():
    """Weights in local time, at whose pace time goes by, logs of gaps, and the rate come back."""
    model = Lublin.published("typeless")
    submit = model.times(50_000, np.random.default_rng(3))
    found = Lublin.fit(Workload.of(submit, 1))
    expected = model.day_weights
    busy = expected > 0.3
    assert np.array(found.weights)[busy] == pytest.approx(expected[busy], rel=0.25)
    shape = model.aarr * model.arar
    assert shape * model.barr == pytest.approx(found.aarr * found.barr, rel=0.02)
    assert model.barr == pytest.approx(found.barr, rel=0.05)
    assert "counts as Monday 00:00" in found.notes[0]
    submit = np.arange(400) * DAY / 4 + np.random.default_rng(5).uniform(0, 300, 400)
    clock = Clock(unix_start=6 * HOUR, known=True)
    found = Lublin.fit(Workload.of(submit, 1, clock=clock))
    assert [0, 12, 24, 36] == np.flatnonzero(np.array(found.weights) > 0).tolist()


def test_a_cycle_is_fitted():
    """Hours have the rates that jobs were drawn with; short or empty traces are reported."""
    times = np.sort(np.random.default_rng(4).uniform(0, 20 * WEEK, 100_000))
    workload = Workload.of(WEEKLY.warp(times), 1)
    rates = np.array(WEEKLY.rates) / np.mean(WEEKLY.rates)
    found = np.array(Cycle.fit(workload).rates)
    assert rates == pytest.approx(found, abs=5 * np.sqrt(rates.max() * 168 / len(times)))
    daily = np.array(Cycle.fit(workload, weekly=False).rates).reshape(7, 24)
    assert found.reshape(7, 24).mean(axis=0) == pytest.approx(daily[3])
    with pytest.raises(ModelFitError, match="a week or more is needed"):
        Cycle.fit(poisson_workload(100, 300, 1))
    with pytest.raises(ModelFitError, match="fewer than 2 jobs"):
        Cycle.fit(Workload.of([1], 1))
    assert "no arrivals in" in Cycle.fit(bursty_workload(1500, 2)).notes[-1]


def test_what_cannot_be_fitted():
    """Few jobs, one second and equal gaps are one line; a fit that is far off has a note."""
    for submit in ([0.0], [0.0, 5.0], [7.0] * 50, list(np.arange(0, 86_400 * 2, 1800.0))):
        with pytest.raises(ModelFitError, match=r"arrivals lublin: .*poisson"):
            Lublin.fit(Workload.of(submit, 1))
    assert {1.0} == set(Lublin.fit(poisson_workload(200, 30, 1)).weights)
    with pytest.raises(QuantityError, match="kind 'soup': not known; choose batch"):
        Lublin.published("soup")
    submit = np.repeat(np.arange(60) * 2.5 * DAY, 3000)
    found = Lublin.fit(Workload.of(submit, 1))
    assert "mean of ln(gap in s)" in found.notes[-1]
    assert found.mean_gap_s == pytest.approx(np.diff(submit).mean(), rel=0.01)


def test_a_cycle_keeps_the_mean_rate():
    """Whole weeks stay in place, order and inverse hold, and each hour gets its share."""
    times = np.sort(np.random.default_rng(4).uniform(0, 50 * WEEK, 40_000))
    warped = WEEKLY.warp(times)
    assert (np.diff(warped) >= 0).all()
    assert times == pytest.approx(WEEKLY.unwarp(warped))
    weeks = np.arange(5.0) * WEEK
    assert weeks == pytest.approx(WEEKLY.warp(weeks))
    hours = np.bincount((warped % WEEK // HOUR).astype(int), minlength=168) / len(times) * 168
    expected = np.array(WEEKLY.rates) / np.mean(WEEKLY.rates)
    assert np.abs(hours - expected).max() < 5 * np.sqrt(expected.max() * 168 / len(times))
    start, clock = 3.5 * DAY, np.array([0.0, 100.0, 9 * DAY])
    whole = WEEKLY.unwarp(clock + start)
    assert (whole - whole[0]) == pytest.approx(WEEKLY.unwarp(clock, start))
    # Nothing is put into hours of rate 0, whatever rounding does.
    cycle = Cycle(rates=tuple(np.isin(np.arange(168), [10, 30]) * 1.0))
    inside = cycle.warp(np.arange(500.0, 8 * WEEK, 997.0))
    assert {10, 30} == set((inside % WEEK // HOUR).astype(int))
    # Half a week is used up at the end of hour 10, a whole one at the end of hour 30.
    edges = cycle.warp(np.sort(np.r_[np.arange(0, 8 * WEEK, 997.0), np.arange(1, 9) * WEEK / 2]))
    assert {10, 11, 30, 31} >= set((edges % WEEK // HOUR).astype(int))
