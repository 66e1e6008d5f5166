"""Correlation of run time and processors: measured, set, and foretold."""

import math

import numpy as np
import pytest
from hpcrowd import fit, generate
from hpcrowd.analysis.models.jobs.locality import control_correlation
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.policies import adaptive
from hpcrowd.environment.schedulers.policies.adaptive import rank_correlation
from hpcrowd.models import with_correlation
from hpcrowd.scenarios.studies.minh2012.correlation_measures import foretold_signs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tests.analysis.features.feature_cases import bursty_workload

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=2, max_size=40)


@given(pairs)
def test_rank_correlation_is_spearmans(values):
    """It is Spearman's with ties, and none where one side is constant, or of one pair."""
    first, second = np.array(values).T
    found = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(found)
    else:
        assert pytest.approx(spearmanr(first, second).statistic, abs=1e-12) == found
    assert math.isnan(rank_correlation(first[:1], second[:1]))


@pytest.mark.parametrize("degree", [-1, -0.6, 0, 0.3, 0.75, 1])
def test_correlation_is_the_largest_times_the_degree(degree):
    """Without ties the correlation, and the share of jobs that keep their place, is the degree."""
    random = np.random.default_rng(5)
    run_time, processors = random.permutation(4000) * 7, random.permutation(4000) + 1
    sign = -1 if degree < 0 else 1
    dealt, found = control_correlation(run_time, processors, [sign, degree], random)
    ranks = np.argsort(np.argsort(run_time))
    assert np.sort(processors)[:: int(sign)][ranks].tolist() == dealt.tolist()
    far = 5 * (1 - abs(degree)) / math.sqrt(4000)
    assert pytest.approx(degree, abs=far) == rank_correlation(run_time, found)
    kept = np.count_nonzero(dealt == found)
    assert abs(degree) * 4000 <= kept < (abs(degree) + 0.05) * 4000 + 1


@given(pairs, st.lists(st.floats(-1, 1), min_size=1, max_size=3), st.integers(0, 99))
def test_processors_are_only_dealt_out_again(values, degrees, seed):
    """Whatever the degree, the same processors are there; what was given is not touched."""
    run_time, processors = np.array(values).T
    before = run_time.tolist(), processors.tolist()
    found = control_correlation(run_time, processors, degrees, np.random.default_rng(seed))
    assert [sorted(processors)] * len(degrees) == [sorted(dealt) for dealt in found]
    assert before == (run_time.tolist(), processors.tolist())


def test_equal_run_times_do_not_go_by_the_order_of_jobs():
    """Among equal run times a draw decides who gets more processors, not the place of the job."""
    random, jobs = np.random.default_rng(3), np.arange(400)
    (dealt,) = control_correlation(np.full(400, 60), jobs, [1], random)
    assert abs(rank_correlation(jobs, dealt)) < 0.25
    with pytest.raises(QuantityError, match=r"degree 1\.5: must be from -1 to 1"):
        control_correlation(jobs, jobs, [0, 1.5], random)
    with pytest.raises(QuantityError, match="processors of 399 jobs, run times of 400"):
        control_correlation(jobs, jobs[1:], [0], random)


def test_generated_jobs_take_a_correlation():
    """It is the largest times the degree, also with a load; run times stay."""
    model = fit("comprehensive", bursty_workload(800, 5), arrivals="poisson")
    drawn = generate(model, jobs=4000).drawn
    ends = [with_correlation(drawn, degree, np.random.default_rng(1)) for degree in (1, -0.5, -1)]
    found = [rank_correlation(one.run_time, one.processors) for one in ends]
    assert found[0] > 0.9
    assert pytest.approx(0.5 * found[2], abs=5 / math.sqrt(4000)) == found[1]
    assert drawn.run_time.tobytes() == ends[1].run_time.tobytes()
    assert sorted(drawn.processors) == sorted(ends[1].processors)
    assert ["processors are reassigned, to -0.5 times the largest correlation"] == ends[1].notes
    for degree in (-0.8, 0.8):
        made = generate(model, jobs=4000, load=0.5, correlation=degree)
        assert pytest.approx(0.5, rel=0.01) == made.load
        found = rank_correlation(made.drawn.run_time, made.drawn.processors)
        assert pytest.approx(degree, abs=0.1) == found
        assert any("reassigned" in note for note in made.notes)


def weeks_of(*correlations):
    """Return submissions, run times and processors of three jobs a week; 0 means all equal."""
    place, signs = np.tile(np.arange(3), len(correlations)), np.repeat(correlations, 3)
    submit = np.repeat(np.arange(len(correlations)) * WEEK, 3) + 1000 * place
    return submit, 100 + place, 5 + signs * place


def test_weeks_have_their_own_correlation():
    """Weeks count from the first submission, or from an origin; equal jobs have no correlation."""
    submit, run, processors = weeks_of(1, -1, 0, 1)
    keep = submit // WEEK != 1
    for some, since, origin, expected in (
        (slice(None), 0, None, [1, -1, "nan", 1]), (keep, 50, None, [1, "nan", "nan", 1]),
        (slice(0), 0, None, []), (slice(None), 0, WEEK, [-1, "nan", 1]),
        (slice(None), 0, -WEEK, ["nan", 1, -1, "nan", 1]), (slice(None), 0, 9 * WEEK, []),
    ):  # fmt: skip
        given = submit[some] + since, run[some], processors[some]
        assert expected == told(adaptive.weekly_correlations(*given, origin=origin))


def told(values):
    """Return rounded numbers, with "nan" where there is none."""
    return ["nan" if math.isnan(value) else round(value, 9) for value in values]


def test_scheduler_knows_no_job_that_has_not_ended():
    """A job that runs on into the next week counts from the week after its end on."""
    weekly = adaptive.WeeklyCorrelation(origin=100)
    submit, run, processors = weeks_of(1)
    submit = submit + 100
    weekly.ended(submit[:2], run[:2], processors[:2])
    assert pytest.approx(1) == weekly.expected(100 + WEEK)
    weekly.ended(submit[2:], run[2:], np.array([1]))  # ends late: few processors, the longest
    assert pytest.approx(1) == weekly.expected(99 + 2 * WEEK)
    assert pytest.approx(-0.5) == weekly.expected(100 + 2 * WEEK)
    assert math.isnan(weekly.expected(100 + 3 * WEEK))


def test_signs_are_compared_where_both_are_known():
    """The mean of the last two known weeks is expected; a single week foretells nothing."""
    for before, expected in (
        ([], "nan"), ([0.5], 0.5), ([0.9, 0.2, -0.4], -0.1), ([0.2, math.nan], 0.2),
        ([math.nan, -0.2], -0.2), ([0.5, math.nan, math.nan], "nan"),
    ):  # fmt: skip
        assert [expected] == told(np.array([adaptive.expected_correlation(before)]))
    signs = foretold_signs(*weeks_of(1, 1, -1, -1, 1, 0))
    assert [1, 1, -1, -1, 1, "nan"] == told(signs.correlation)
    assert ["nan", 1, 1, 0, -1, 0] == told(signs.expected)
    assert (4, 1, 2) == (signs.compared, signs.right, signs.positive)
    assert (0.25, 0.5) == (signs.share, signs.commoner)
    signs = foretold_signs(*weeks_of(1))
    assert (0, None, None) == (signs.compared, signs.share, signs.commoner)
