"""Scores of forecasts, and bounds that learn: coverage of bad forecasts, waits that still go on."""

import doctest
import math

import numpy as np
import pytest
from hpcrowd.analysis.forecast import conformal, qbets
from hpcrowd.analysis.forecast.conformal import (
    GRID,
    LEVELS,
    STEPS,
    UNIT,
    OpenForecasts,
    Recalibration,
    TrueLevels,
)
from hpcrowd.analysis.forecast.scores import covered, crps, mean_difference, pinball, quantiles
from hpcrowd.analysis.paired import bootstrap_mean
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

#: Normal quantiles at the levels.
SPREAD = norm.ppf(LEVELS)

#: Waits in a test of coverage, and how many become known together.
JOBS, TOGETHER = 4000, 20


def seconds(space):
    """Return waits from where offsets are added."""
    return UNIT * np.expm1(np.maximum(space, 0))


def forecasts(kind, jobs=JOBS, seed=0):
    """Return bounds, right or wrong in a certain way, and waits."""
    draws = np.random.default_rng(seed)
    centre = draws.normal(4, 1.5, jobs)
    waits = centre + draws.normal(size=jobs)
    share = np.arange(jobs) / jobs
    width = {"narrow": 0.3, "wide": 3.0}.get(kind, 1.0)
    moved = {"drifting": 1.5 * np.sin(6 * share), "jumping": np.where(share < 0.5, -1.0, 1.0)}
    centre += {"low": -1.5, "high": 1.5, **moved}.get(kind, 0)
    return seconds(centre[:, None] + width * SPREAD), seconds(waits)


def played(recalibration, raw, waits, classes=None, late=0):
    """Return the bounds of each job, which becomes known ``late`` jobs after it is forecast."""
    bounds = np.empty_like(raw)
    classes = np.zeros(len(raw), int) if classes is None else classes
    for begin in range(0, len(raw), TOGETHER):
        now = slice(begin, begin + TOGETHER)
        bounds[now] = recalibration.adjusted(raw[now], classes[now])
        ended = slice(max(begin - late, 0), max(begin + TOGETHER - late, 0))
        recalibration.learn(raw[ended], waits[ended], classes=classes[ended])
    return bounds


def missed(bounds, waits):
    """Return how far the share of waits at or below a bound is from its level, at most."""
    return float(np.abs((waits[:, None] <= bounds).mean(axis=0) - LEVELS).max())


def loss(bounds, waits):
    """Return the mean pinball loss of bounds."""
    return pinball(bounds, waits, LEVELS).mean()


@pytest.mark.parametrize(("kind", "late", "settled"), [
    *((kind, 0, JOBS // 2) for kind in ("narrow", "wide", "low", "high")),
    ("drifting", 0, 0), ("jumping", 0, 0), ("narrow", 200, 1200), ("low", 1000, 2000),
])  # fmt: skip
def test_bad_forecasts_get_the_coverage(kind, late, settled):
    """Each level covers its share, however wrong the forecast and late the outcomes are."""
    raw, waits = forecasts(kind, 6000 if late else JOBS)
    assert missed(raw, waits) > 0.09
    bounds = played(Recalibration(), raw, waits, late=late)
    assert missed(bounds[settled:], waits[settled:]) < 0.035
    assert late or missed(bounds, waits) < 0.035
    assert late or loss(bounds, waits) < 0.9 * loss(raw, waits)


def test_calibrated_forecasts_stay_nearly_as_they_are():
    """Right bounds are off by less than a tenth of the spread, and score as well within 2 %."""
    raw, waits = forecasts("right")
    assert (np.sort(raw, axis=1) == Recalibration(classes=3).adjusted(raw)).all()
    bounds = played(Recalibration(), raw, waits)
    moved = np.log1p(bounds / UNIT) - np.log1p(raw / UNIT)
    assert np.abs(moved).mean() < 0.1
    assert missed(bounds, waits) < 0.02
    assert loss(bounds, waits) < 1.02 * loss(raw, waits)


@pytest.mark.parametrize("wrong", [False, True])
def test_waits_of_zero(wrong):
    """With 60 % waits of 0 the lower bounds are 0 or nearly so, and the upper ones cover."""
    draws = np.random.default_rng(2)
    centre = draws.normal(4, 1.5, JOBS)
    none = draws.random(JOBS) < 0.6
    waits = np.where(none, 0, seconds(centre + draws.normal(size=JOBS)))
    inner = norm.ppf((np.array(LEVELS[3:]) - 0.6) / 0.4)
    raw = np.concatenate((np.zeros((JOBS, 3)), seconds(centre[:, None] + inner)), axis=1)
    if wrong:
        raw = raw / 3 + 60
    bounds = played(Recalibration(), raw, waits)
    assert ((waits[:, None] < bounds).mean(axis=0) <= np.array(LEVELS) + 0.02).all()
    assert ((waits[:, None] <= bounds).mean(axis=0) >= np.array(LEVELS) - 0.02).all()
    # Half a minute at most, where the bound was a minute off.
    assert (np.median(bounds[JOBS // 2 :, :3], axis=0) < 5).all()


def test_classes_get_the_coverage_each():
    """Opposite errors in two classes cancel in one offset, not with one for each class."""
    medians = [0, 1799, 1800, 7199, 7200, 43_199, 43_200, math.inf]
    ends = (1800, 7200, 43_200)
    assert [0, 0, 1, 1, 2, 2, 3, 3] == conformal.wait_classes(medians, ends).tolist()
    raw, waits = forecasts("right", 8000)
    classes = np.arange(8000) % 2
    raw = np.where(classes[:, None] == 0, raw * 3, raw / 3)
    one = played(Recalibration(), raw, waits)
    two = played(Recalibration(classes=2), raw, waits, classes)
    for kind in (0, 1):
        chosen = (classes == kind) & (np.arange(8000) > 1000)
        assert missed(one[chosen], waits[chosen]) > 0.2
        assert missed(two[chosen], waits[chosen]) < 0.03


def test_rare_classes_follow_the_common_offset():
    """A class without outcomes has the common offset; with a few it has nearly that."""
    raw, waits = forecasts("low", 2000)
    recalibration = Recalibration(classes=3)
    played(recalibration, raw, waits, np.zeros(2000, int))
    common, before, new = (row.copy() for row in recalibration.offsets())
    assert new == pytest.approx(recalibration.common)
    assert new == pytest.approx(common, abs=0.4)
    recalibration.learn(raw[:1], [1e6], classes=[1])
    moved = recalibration.offsets()[1] - before
    assert ((moved > 0) & (moved < 0.1)).all()


def test_a_waiting_job_is_a_miss_of_the_bounds_that_passed():
    """Bounds below the elapsed wait learn at once, the others when more is known; each once."""
    recalibration, raw = Recalibration(), [[60.0, 300, 600, 1200, 3600]]
    known = recalibration.learn(raw, [700], [True])
    assert [[True, True, True, False, False]] == known.tolist()
    offsets = recalibration.common.copy()
    assert [1, 1, 1, 0, 0] == np.sign(offsets).tolist()
    assert known.tolist() == recalibration.learn(raw, [800], [True], known=known).tolist()
    assert (offsets == recalibration.common).all()
    assert recalibration.learn(raw, [1300], [False], known=known).all()
    assert (offsets[:3] == recalibration.common[:3]).all()
    assert recalibration.common[3] > 0 > recalibration.common[4]
    # A bound beyond the horizon is neither moved nor learned from.
    open_ended, raw = Recalibration(), [[60.0, 300, 600, math.inf, math.inf]]
    assert [[True, True, True, False, False]] == open_ended.learn(raw, [50]).tolist()
    assert not open_ended.common[3:].any()
    assert np.isinf(open_ended.adjusted(raw)[0, 3:]).all()


def test_censored_waits_give_the_coverage():
    """Jobs asked after every hour while they wait, and learned when they start, are covered."""
    raw, waits = forecasts("low", JOBS, seed=4)
    recalibration, bounds = Recalibration(), np.empty_like(raw)
    opened = OpenForecasts(recalibration)
    for job in range(JOBS):
        now, one = 300 * job, raw[job : job + 1]  # submitted every five minutes
        bounds[job] = recalibration.adjusted(one)[0]
        opened.add(one, now, np.array([now + int(waits[job])]))
        if job % 12 == 0:
            opened.learn(now)
    assert missed(bounds[JOBS // 2 :], waits[JOBS // 2 :]) < 0.03


@given(st.lists(st.lists(st.floats(0, 1e7), min_size=6, max_size=6), min_size=1, max_size=12))
def test_bounds_are_monotone_and_not_negative(rows):
    """Whatever was learned, bounds ascend with the level, and no wait is below 0."""
    table = np.array(rows)
    recalibration = Recalibration(classes=2, rate=1)
    kinds = np.arange(len(table)) % 2
    recalibration.learn(table[:, :5], table[:, 5], classes=kinds)
    bounds = recalibration.adjusted(table[:, :5], kinds)
    assert ((bounds >= 0) & np.isfinite(bounds)).all()
    assert (np.diff(bounds, axis=1) >= 0).all()


@pytest.mark.parametrize("module", [conformal, qbets])
def test_examples(module):
    """The examples in modules are right."""
    found = doctest.testmod(module)
    assert 0 == found.failed < found.attempted


#: s between two forecasts.
EVERY = 1000


@pytest.mark.parametrize("width", [0.7, 1.0, 2.0])
def test_exchanged_levels_get_the_coverage(width):
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
    draws, found, bounds, waits = np.random.default_rng(2), TrueLevels(), [], []
    said = np.where(GRID <= 0.55, 0.0, 600 * (GRID - 0.5))[None, :]  # 55 % are said not to wait
    for job in range(900):
        waits.append(0 if draws.random() < 0.4 else int(draws.integers(30, 300)))
        bounds.append(found.bounds(said, job * EVERY)[0])
        found.add(said, job * EVERY, [job * EVERY + waits[-1]])
    came, quartiles = np.array(waits[400:]), np.array(bounds)[400:, [1, 3]]
    assert not (came < quartiles[:, 0]).any()
    assert 0.2 < (came > quartiles[:, 1]).mean() < 0.3
    # Without cases, bounds are the quantiles of the forecast.
    said = np.arange(1.0, STEPS + 1)[None, :]
    assert TrueLevels().bounds(said, 0).tolist() == [[10, 50, 100, 150, 190]]


def test_jobs_that_still_wait_count_as_long_as_they_have_waited():
    """A third of the jobs waits for ever: the upper levels move up, before any of them starts."""
    said, found = 600.0 * GRID[None, :], TrueLevels(trust=1)
    for job in range(300):
        start = UNKNOWN if job % 3 == 0 else job * EVERY + 100 + job % 400
        found.add(said, job * EVERY, [start])
    lower, _, _, upper, most = found.exchanged(10**8)
    assert lower < 0.3
    assert upper > 0.8
    assert most > 0.99
    # What lies in the future of the question does not count.
    assert found.exchanged(0) == pytest.approx(LEVELS)


#: Values that often tie, as waits of whole seconds do.
VALUES = st.integers(0, 20).map(float)


@given(st.lists(VALUES, min_size=2, max_size=8), VALUES)
def test_crps_is_what_its_definition_says(members, outcome):
    """Error minus half the mean distance of pairs of different members."""
    apart = np.abs(np.subtract.outer(members, members)).sum() / 2 / len(members)
    fair = np.abs(np.array(members) - outcome).mean() - apart / (len(members) - 1)
    assert crps([members], [outcome]) == pytest.approx([fair])


@given(st.lists(VALUES, min_size=1, max_size=9), st.floats(0.01, 0.99), VALUES)
def test_quantiles_are_the_inverse_distribution(members, level, other):
    """The same as numpy's, with and without equal weights; no other value has a smaller loss."""
    expected = np.quantile(members, level, method="inverted_cdf")
    assert expected == quantiles([members], [level])[0, 0]
    assert expected == quantiles([members], [level], np.full(len(members), 2.0))[0, 0]
    best, worse = (
        pinball(np.full((len(members), 1), value), members, [level]).mean()
        for value in (expected, other)
    )
    assert best <= worse + 1e-9


def test_scores_by_hand():
    """Quantiles and pinball losses; what is beyond the horizon is infinite."""
    found = quantiles([[3, math.inf, 1, math.inf]], [0.25, 0.5, 0.51, 0.95])
    assert [[1, 3, math.inf, math.inf]] == found.tolist()
    assert [[1, 5]] == quantiles([[1, 5]], [0.75, 0.76], [3, 1]).tolist()
    for bounds, waited, losses in (
        ([6, 8], 10, [0.5 * 4, 0.9 * 2]), ([6, 15], 10, [0.5 * 4, 0.1 * 5]),
        ([5, math.inf], math.inf, [math.inf, 0]),
    ):  # fmt: skip
        assert losses == pytest.approx(pinball([bounds], [waited], [0.5, 0.9])[0].tolist())
    # Ends of an interval belong to it.
    assert 0.75 == covered(np.zeros(4), np.full(4, 9.0), np.array([0, 9, 10, 3]))


def test_intervals_of_differences_cover_dependent_scores():
    """Blocks cover the mean of correlated differences far better than single cases do."""
    draws = np.random.default_rng(8)
    hits = {"blocks": 0, "single": 0}
    for _ in range(100):
        series = np.convolve(draws.normal(size=420), np.ones(6), "valid")[:400]
        for name, found in (
            ("blocks", mean_difference(series + 1, np.ones(400), draws)),
            ("single", bootstrap_mean(series, draws)),
        ):
            hits[name] += found.low <= 0 <= found.high
    assert hits["single"] < 72 < 83 < hits["blocks"]


def test_differences_are_paired():
    """What the cases share leaves no trace; the mean is exact, the block length by default."""
    draws = np.random.default_rng(9)
    shared = draws.exponential(1000, 300)
    found = mean_difference(shared + 2 + draws.normal(size=300), shared, draws)
    assert found.low < 2 < found.high
    assert (300, True) == (found.count, found.half_width < 0.2)
    few = mean_difference([1, 2, 3], [0, 0, 0], draws)
    assert (2, None, None, 3) == (few.mean, few.low, few.high, few.count)


ONE = Recalibration((0.5,))


@pytest.mark.parametrize(("words", "call"), [
    (r"levels \[0.5, 0.5\]: ascending", lambda: Recalibration((0.5, 0.5))),
    ("rate 0", lambda: Recalibration(rate=0)),
    ("classes 0", lambda: Recalibration(classes=0)),
    (r"shape \(1, 2\): give \(jobs, 1\)", lambda: ONE.adjusted([[1, 2]])),
    ("bounds that are negative", lambda: ONE.adjusted([[-1]])),
    ("from 0 to 0", lambda: ONE.adjusted([[1]], [1])),
    ("one wait of 0 s or more", lambda: ONE.learn([[1]], [-1])),
    ("pass it as censored", lambda: ONE.learn([[1]], [math.inf])),
    ("censored of shape", lambda: ONE.learn([[1]], [1], [True, False])),
    ("known of shape", lambda: ONE.learn([[1]], [1], known=[True])),
    ("between 0 and 1", lambda: TrueLevels((0.5, 1.0))),
    ("infinite values", lambda: crps([[10, math.inf]], [3])),
    ("one member", lambda: crps([[3]], [3])),
    (r"members of shape \(2,\)", lambda: crps([1, 2], [1])),
    ("one for each of 1", lambda: crps([[1, 2]], [1, 2])),
    ("not numbers", lambda: crps([[1, math.nan]], [1])),
    ("weights of members", lambda: quantiles([[1, 2]], [0.5], [0, 0])),
    (r"levels \[0.9, 0.5\]: ascending", lambda: pinball([[6, 8]], [10], [0.9, 0.5])),
    (r"shape \(1, 2\): give \(cases, 1\)", lambda: pinball([[6, 8]], [10], [0.9])),
    ("one of each case", lambda: mean_difference([1, 2], [1], np.random.default_rng(0))),
    ("leave such cases", lambda: mean_difference([math.inf], [1], np.random.default_rng(0))),
])  # fmt: skip
def test_wrong_input_is_one_line(words, call):
    """What does not fit says what does."""
    with pytest.raises(QuantityError, match=words):
        call()
