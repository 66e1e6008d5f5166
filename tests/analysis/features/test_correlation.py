"""Correlation of run time and processors: measured, set, and foretold."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models import WorkloadModel, fit, generate, with_correlation
from hpcrowd.analysis.models.jobs.locality import control_correlation
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.schedulers.correlation import (
    WeeklyCorrelation,
    expected_correlation,
    rank_correlation,
    weekly_correlations,
)
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_correlation.measures import foretold_signs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tests.analysis.features.feature_cases import bursty_workload

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=2, max_size=40)


# ---- measured --------------------------------------------------------------------------------


@given(pairs)
def test_rank_correlation_is_spearmans(values: list[tuple[int, int]]) -> None:
    """It is Spearman's with ties, and none where one side is constant."""
    first, second = np.array(values).T
    found = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(found)
    else:
        assert pytest.approx(spearmanr(first, second).statistic, abs=1e-12) == found


def test_nothing_has_no_correlation() -> None:
    """For no pair, and for one, there is no correlation."""
    assert math.isnan(rank_correlation([], []))
    assert math.isnan(rank_correlation([1], [2]))


# ---- set -------------------------------------------------------------------------------------


def random_jobs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return run times, all different, and processors, all different."""
    random = np.random.default_rng(5)
    return random.permutation(count) * 7, random.permutation(count) + 1


@pytest.mark.parametrize("degree", [-1, -0.6, -0.2, 0, 0.3, 1])
def test_correlation_is_the_largest_times_the_degree(degree: float) -> None:
    """Without ties the correlation is the degree, within five standard deviations."""
    run_time, processors = random_jobs(4000)
    (found,) = control_correlation(run_time, processors, [degree], np.random.default_rng(1))
    assert pytest.approx(degree, abs=5 * (1 - abs(degree)) / math.sqrt(4000)) == rank_correlation(
        run_time, found
    )


@given(pairs, st.lists(st.floats(-1, 1), min_size=1, max_size=3), st.integers(0, 99))
def test_processors_are_only_dealt_out_again(
    values: list[tuple[int, int]], degrees: list[float], seed: int
) -> None:
    """Whatever the degree, the same processors are there; what was given is not touched."""
    run_time, processors = np.array(values).T
    before = run_time.copy(), processors.copy()
    found = control_correlation(run_time, processors, degrees, np.random.default_rng(seed))
    assert len(degrees) == len(found)
    for dealt in found:
        assert sorted(processors) == sorted(dealt)
    assert before[0].tolist() == run_time.tolist()
    assert before[1].tolist() == processors.tolist()


def test_share_of_the_jobs_is_permuted() -> None:
    """At 0.75, at least three quarters keep the processors that the rank of the run time deals."""
    run_time, processors = random_jobs(1000)
    dealt, some = control_correlation(run_time, processors, [1, 0.75], np.random.default_rng(2))
    assert np.sort(processors)[np.argsort(np.argsort(run_time))].tolist() == dealt.tolist()
    assert 750 <= np.count_nonzero(dealt == some) < 800


def test_same_stream_same_processors() -> None:
    """What is dealt depends on the named stream only."""
    run_time, processors = random_jobs(100)
    first, again, other = (
        control_correlation(run_time, processors, [0.5], Streams(seed).generator("control"))[0]
        for seed in (0, 0, 1)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_equal_run_times_do_not_go_by_the_order_of_jobs() -> None:
    """Among equal run times a draw decides who gets more processors, not the place of the job."""
    run_time, processors = np.full(400, 60), np.arange(400)
    (dealt,) = control_correlation(run_time, processors, [1], np.random.default_rng(3))
    assert abs(rank_correlation(np.arange(400), dealt)) < 0.25


def test_degree_out_of_range_is_refused() -> None:
    """A degree of 1.5 is not a correlation, and every job needs processors."""
    with pytest.raises(QuantityError, match=r"degree 1\.5: must be from -1 to 1"):
        control_correlation(np.arange(3), np.arange(3), [0, 1.5], np.random.default_rng(0))
    with pytest.raises(QuantityError, match="processors of 2 jobs, run times of 3"):
        control_correlation(np.arange(3), np.arange(2), [0], np.random.default_rng(0))


@pytest.mark.traces
def test_line_of_hpc2n(read_trace: Callable[[str], Trace]) -> None:
    """On HPC2N the ends are 0.957, and every tenth lies on the line (Minh 2012, Fig. 7.2).

    No correlation is further off than 0.01; run times stay, to the byte.
    """
    recorded = Workload.from_trace(read_trace("HPC2N-2002-2.1-cln"))
    run_time, processors = recorded.run_time.astype(np.int64), recorded.processors
    before = run_time.tobytes()
    degrees = np.round(np.arange(-10, 11) / 10, 1).tolist()
    found = [
        rank_correlation(run_time, dealt)
        for dealt in control_correlation(
            run_time, processors, degrees, Streams(0).generator("control")
        )
    ]
    assert pytest.approx([-0.957, 0.957], abs=0.002) == [found[0], found[-1]]
    assert np.abs(found - found[-1] * np.array(degrees)).max() < 0.01
    assert before == run_time.tobytes()


# ---- of generated workloads ------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> WorkloadModel:
    """Return a model of jobs in bags."""
    return fit("comprehensive", bursty_workload(800, 5), arrivals="poisson")


def test_generated_jobs_take_a_correlation(model: WorkloadModel) -> None:
    """It is the largest times the degree; run times stay, and the processors there are."""
    drawn = generate(model, jobs=4000).drawn
    ends = with_correlation(drawn, 1, np.random.default_rng(1))
    other = with_correlation(drawn, -0.5, np.random.default_rng(1))
    largest = rank_correlation(ends.run_time, ends.processors)
    lowest = with_correlation(drawn, -1, np.random.default_rng(1))
    least = rank_correlation(lowest.run_time, lowest.processors)
    assert largest > 0.9
    assert pytest.approx(0.5 * least, abs=5 / math.sqrt(4000)) == rank_correlation(
        other.run_time, other.processors
    )
    assert drawn.run_time.tobytes() == other.run_time.tobytes()
    assert drawn.submit.tobytes() == other.submit.tobytes()
    assert sorted(drawn.processors) == sorted(other.processors)
    assert ["processors are reassigned, to -0.5 times the largest correlation"] == other.notes


def test_a_workload_is_generated_with_a_correlation(model: WorkloadModel) -> None:
    """Also with a load, which is met with the processors that are dealt out; notes say."""
    for degree in (-0.8, 0.8):
        made = generate(model, jobs=4000, load=0.5, correlation=degree)
        assert pytest.approx(0.5, rel=0.01) == made.load
        found = rank_correlation(made.drawn.run_time, made.drawn.processors)
        assert pytest.approx(degree, abs=0.1) == found
        assert any("reassigned" in note for note in made.notes)
    with pytest.raises(QuantityError, match="degree 2: must be from -1 to 1"):
        generate(model, jobs=10, correlation=2)


# ---- foretold --------------------------------------------------------------------------------


def weeks_of(*correlations: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return submissions, run times and processors of three jobs a week; 0 means all equal."""
    submit, run, processors = [], [], []
    for week, sign in enumerate(correlations):
        for place in range(3):
            submit.append(week * WEEK + 1000 * place)
            run.append(100 + place)
            processors.append(5 + sign * place)
    return np.array(submit), np.array(run), np.array(processors)


def test_weeks_have_their_own_correlation() -> None:
    """Weeks count from the first submission; a week of equal jobs, or of none, has none."""
    submit, run, processors = weeks_of(1, -1, 0, 1)
    keep = submit // WEEK != 1
    assert [1, -1, "nan", 1] == told(weekly_correlations(submit, run, processors))
    assert [1, "nan", "nan", 1] == told(
        weekly_correlations(submit[keep] + 50, run[keep], processors[keep])
    )
    assert [] == told(weekly_correlations(submit[:0], run[:0], processors[:0]))


def test_weeks_may_begin_elsewhere() -> None:
    """With an origin, weeks count from there, and jobs before it are left out."""
    submit, run, processors = weeks_of(1, -1)
    assert [-1] == told(weekly_correlations(submit, run, processors, origin=WEEK))
    assert ["nan", 1, -1] == told(weekly_correlations(submit, run, processors, origin=-WEEK))
    assert [] == told(weekly_correlations(submit, run, processors, origin=9 * WEEK))


def told(values: np.ndarray) -> list[object]:
    """Return rounded numbers, with "nan" where there is none."""
    return ["nan" if math.isnan(value) else round(value, 9) for value in values]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], None),
        ([0.5], 0.5),
        ([0.9, 0.2, -0.4], -0.1),
        ([0.2, math.nan], 0.2),
        ([math.nan, -0.2], -0.2),
        ([0.5, math.nan, math.nan], None),
    ],
)
def test_mean_of_the_last_two_weeks_is_expected(
    before: list[float], expected: float | None
) -> None:
    """Older weeks do not count; of one week alone it is that week's, of none there is nothing."""
    found = expected_correlation(before)
    assert math.isnan(found) if expected is None else pytest.approx(expected) == found


def test_signs_are_compared_where_both_are_known() -> None:
    """Week 2 follows +1, week 3 the mean 0 of +1 and -1, week 4 is expected negative and is not."""
    signs = foretold_signs(*weeks_of(1, 1, -1, -1, 1, 0))
    assert [1, 1, -1, -1, 1, "nan"] == told(signs.correlation)
    assert ["nan", 1, 1, 0, -1, 0] == told(signs.expected)
    assert (4, 1, 2) == (signs.compared, signs.right, signs.positive)
    assert (0.25, 0.5) == (signs.share, signs.commoner)


def test_nothing_compared_has_no_share() -> None:
    """A single week foretells nothing."""
    signs = foretold_signs(*weeks_of(1))
    assert (0, None, None) == (signs.compared, signs.share, signs.commoner)


def test_scheduler_expects_the_same_when_jobs_end_in_their_week() -> None:
    """Told of each week's jobs before the next begins, it expects what the weeks let expect."""
    submit, run, processors = weeks_of(1, -1, -1, 0, 1, 1)
    signs = foretold_signs(submit, run, processors)
    weekly = WeeklyCorrelation()
    found = []
    for week in range(len(signs.correlation)):
        found.append(weekly.expected(week * WEEK + 7))
        now = submit // WEEK == week
        for part in np.split(np.flatnonzero(now), 3):
            weekly.ended(submit[part], run[part], processors[part])
    assert told(signs.expected) == told(np.array(found))


def test_scheduler_knows_no_job_that_has_not_ended() -> None:
    """A job that runs on into the next week counts from the week after its end on."""
    weekly = WeeklyCorrelation(origin=100)
    submit, run, processors = weeks_of(1)
    submit = submit + 100
    weekly.ended(submit[:2], run[:2], processors[:2])
    assert pytest.approx(1) == weekly.expected(100 + WEEK)
    weekly.ended(submit[2:], run[2:], np.array([1]))  # ends late: few processors, the longest
    assert pytest.approx(1) == weekly.expected(99 + 2 * WEEK)
    assert pytest.approx(-0.5) == weekly.expected(100 + 2 * WEEK)
    assert math.isnan(weekly.expected(100 + 3 * WEEK))
