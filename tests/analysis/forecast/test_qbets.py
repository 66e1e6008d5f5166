"""QBETS: the index of its bounds, change points, clusters, and coverage on waits of known law."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from hpcrowd.analysis.forecast import qbets
from hpcrowd.environment.errors import QuantityError
from scipy.signal import lfilter
from scipy.stats import binom

#: A job of one processor and one hour.
SMALL = qbets.Request(1, 3600)


def fed(waits, **options):
    """Return a forecaster of one cluster that has seen waits, one a minute."""
    forecaster = qbets.QBETS(attribute="none", **options)
    for number, wait in enumerate(waits):
        forecaster.ended_wait(SMALL, float(wait), 1e9 + 60 * number)
    return forecaster


def test_59_waits_are_the_least():
    """The textbook example: of 59 waits the largest bounds the quantile 0.95 with 95 %."""
    assert 59 == qbets.least_history(0.95, 0.95)
    waits = np.random.default_rng(0).permutation(59)
    assert fed(waits[:58]).bound(SMALL) is None
    forecaster = fed(waits)
    assert 58 == forecaster.bound(SMALL)
    other = qbets.Request(1, 3600, "other")
    assert forecaster.bound(other) is None
    waits, submitted, ones = np.arange(100.0), 1000.0 * np.arange(100), np.ones(100)
    for one, first in ((10, 59), (math.inf, 60)):  # one still goes on
        waits[10] = one
        upper = qbets.bounds_over(qbets.QBETS(attribute="none"), submitted, waits, ones, ones)
        assert np.isnan(upper[:first]).all()
        assert first - 1 == upper[first]


@pytest.mark.parametrize("quantile", [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_the_index_is_exact(quantile, confidence):
    """The index is the smallest whose order statistic is above the quantile confidently enough."""
    for count in (1, 2, 5, 20, 59, 60, 93, 94, 124, 200, 333, 500):
        enough = [k for k in range(1, count + 1) if binom.cdf(k - 1, count, quantile) >= confidence]
        assert qbets.index(count, quantile, confidence) == (enough[0] if enough else None)
    for count in (501, 1000, 5000, 200_000) if quantile <= 0.95 else ():
        exact = int(binom.ppf(confidence, count, quantile)) + 1
        assert abs(exact - qbets.approximate_index(count, quantile, confidence)) <= 1
        assert qbets.index(count, quantile, 0.95) == qbets.approximate_index(count, quantile, 0.95)


@pytest.mark.parametrize(("words", "call", "given"), [
    ("quantile 1.*between 0 and 1", qbets.QBETS, (1,)),
    ("confidence nan", qbets.QBETS, (0.5, math.nan)),
    ("did you mean area", partial(qbets.QBETS, attribute="aera"), ()),
    ("wait -1.*0 s or more", qbets.QBETS().ended_wait, (SMALL, -1, 10)),
    ("start 0.*order of starts", fed(np.ones(3)).ended_wait, (SMALL, 1, 0)),
    ("job 1: submitted", qbets.bounds_over, (qbets.QBETS(), [5, 4], [0, 0], [1, 1], [1, 1])),
])  # fmt: skip
def test_parameters_are_checked(words, call, given):
    """A quantile, a confidence, an attribute or a wait out of range is one line."""
    with pytest.raises(QuantityError, match=words):
        call(*given)


LAWS = ("exponential", "lognormal")


@pytest.mark.parametrize(
    ("law", "quantile"), [*product(LAWS, (0.5, 0.75, 0.95)), ("correlated", 0.95)]
)
def test_bounds_cover_waits(law, quantile):
    """At least the quantile is below the bound, hardly more; correlated waits are rarely cut."""
    draws, jobs = np.random.default_rng(7), 20_000
    waits = draws.exponential(3600, jobs) if law == "exponential" else draws.lognormal(6, 1.5, jobs)
    if law == "correlated":
        waits = np.exp(6 + lfilter([0.6], [1, -0.8], draws.normal(size=jobs)))
    submitted, ones = np.cumsum(draws.exponential(600, jobs)), np.ones(jobs)
    forecaster = qbets.QBETS(quantile, attribute="none" if law == "correlated" else "time")
    upper = qbets.bounds_over(forecaster, submitted, waits, ones, ones)
    assert law != "correlated" or forecaster._find(SMALL).cuts < jobs / 4000
    known = ~np.isnan(upper)
    error = 3 * math.sqrt(quantile * (1 - quantile) / jobs)
    assert quantile - error < (waits <= upper)[known].mean() < quantile + 0.03


def test_runs_follow_the_table_by_autocorrelation():
    """For the quantile 0.95 the authors' table; the computed runs are near it, and grow."""
    assert list(qbets.MISSES) == [qbets.longest_run(0.95, step + 0.01) for step in qbets.GRID]
    assert qbets.MISSES[0] == qbets.longest_run(0.95, -0.4) == qbets.longest_run(0.95, math.nan)
    assert qbets.MISSES[-1] == qbets.longest_run(0.95, 1.0)
    assert [3, 4, 4, 5, 5, 6, 7, 9, 12, 23] == [qbets.rare_run(0.95, step) for step in qbets.GRID]
    # Three misses of 0.95 are as rare as 13 of 0.5, which are 2**-13.
    assert 13 == qbets.longest_run(0.5, 0) == math.ceil(3 * math.log(0.05) / math.log(0.5))
    # It is that of the process for a Gaussian one, whatever the scale of the values.
    noise = np.random.default_rng(5).normal(size=50_000)
    values = lfilter([1], [1, -0.6], noise)
    assert qbets.autocorrelation(values) == pytest.approx(0.6, abs=0.02)
    assert qbets.autocorrelation(np.exp(5 * values)) == pytest.approx(qbets.autocorrelation(values))
    assert qbets.autocorrelation(noise) == pytest.approx(0, abs=0.02)
    assert math.isnan(qbets.autocorrelation([1, 2]))


def test_a_level_shift_cuts_the_history():
    """After the waits have grown tenfold, the bound follows within some 59 waits."""
    draws = np.random.default_rng(2)
    waits = np.concatenate((draws.exponential(100, 2000), draws.exponential(1000, 59 + 10)))
    adaptive, fixed = (fed(waits, adapts=adapts) for adapts in (True, False))
    assert 1 <= adaptive._find(SMALL).cuts <= 3
    assert adaptive.bound(SMALL) > 1000 * math.log(20)
    assert (0, True) == (fixed._find(SMALL).cuts, fixed.bound(SMALL) < 600)


def test_the_history_slides_until_it_is_new():
    """A cut keeps the last 59 waits; then old waits leave as new ones come."""
    waits = np.random.default_rng(8).uniform(0, 10, 120)
    forecaster = fed(np.concatenate((waits, [50.0, 51.0, 52.0])))
    history = forecaster._find(SMALL)
    assert (1, 60) == (history.cuts, len(history.sorted))
    recent = np.random.default_rng(9).uniform(40, 50, 80).tolist()
    for number, wait in enumerate(recent):
        forecaster.ended_wait(SMALL, wait, 2e9 + number * 1000)
        if number < 50:
            assert sorted([*waits, 50, 51, 52, *recent[: number + 1]][-60:]) == history.sorted
    assert 1 == history.cuts


def test_misses_are_of_the_bound_at_submission():
    """A wait that began before the bound rose is a miss of the bound it got."""
    low = fed(np.random.default_rng(8).uniform(0, 10, 120))
    for number in range(9):
        low.ended_wait(SMALL, 500.0 + number, 1e9 + 7200 + number, promised=1000.0)
    # The bound is above 500 s now, but was below 10 s when the next ones were submitted.
    assert (0, True) == (low._find(SMALL).cuts, low.bound(SMALL) > 500)
    for number in range(20):
        low.ended_wait(SMALL, 400.0 + number, 1e9 + 7300 + number)
    assert 1 == low._find(SMALL).cuts


def test_clusters_separate_two_classes():
    """Jobs of two classes get two bounds, each with the coverage wanted."""
    jobs, draws = 6000, np.random.default_rng(9)
    processors = np.where(draws.random(jobs) < 0.7, draws.integers(1, 9, jobs), 256)
    waits = draws.exponential(np.where(processors > 100, 36_000.0, 60.0))
    submitted = np.cumsum(draws.exponential(600, jobs))
    forecaster = qbets.QBETS(attribute="area")
    upper = qbets.bounds_over(forecaster, submitted, waits, processors, np.full(jobs, 3600))
    assert (8 * 3600,) == forecaster._queues[0].clusters[-1].edges
    settled = np.arange(jobs) > 500
    for large in (False, True):
        chosen = settled & ((processors > 100) == large)
        assert 0.94 < (waits <= upper)[chosen].mean() < 0.985


def test_clusters_need_differences_and_jobs():
    """Waits that do not depend on the request are not split; equal waits are no error."""
    draws = np.random.default_rng(4)
    sides = [(draws.integers(1, 65, 1000), draws.lognormal(5, 2, 1000)) for _ in range(40)]
    assert sum(bool(qbets.cluster_edges(*both, 59)) for both in sides) <= 4
    forecaster = qbets.QBETS(attribute="processors")
    for number in range(500):
        forecaster.ended_wait(qbets.Request(number % 7, 3600), 0, number)
    assert 0 == forecaster.bound(SMALL)
    # No cluster is smaller than the least history, and there are at most three.
    draws = np.random.default_rng(6)
    attribute = draws.integers(0, 400, 3000)
    waits = draws.exponential(1 + attribute**2.0)
    edges = qbets.cluster_edges(attribute, waits, 59)
    assert 2 == len(edges)
    assert list(edges) == sorted(edges)
    assert min(np.bincount(np.searchsorted(edges, attribute))) >= 59
    assert () == qbets.cluster_edges(attribute[:117], waits[:117], 59)
    assert () == qbets.cluster_edges(np.ones(500), waits[:500], 59)
