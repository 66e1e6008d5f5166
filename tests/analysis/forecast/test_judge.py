"""Judging forecasts: what they know at a moment, what came, and corrections that learn."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.forecast import hindsight as module
from hpcrowd.analysis.forecast import judge as judging
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.futures import Asked, Outset
from hpcrowd.analysis.forecast.hindsight import (
    FEATURES,
    Hindsight,
    _below,
    features_of,
    log_minutes,
)
from hpcrowd.analysis.forecast.site_bounds import Learned
from hpcrowd.analysis.forecast.verdict import BOUNDS, FORECASTERS, tables
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.scenarios.forecasts.inputs import known_jobs
from hpcrowd.scenarios.forecasts.making import hindcasts_of, judge, site_bounds_of, write
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.forecasts.forecast_cases import CLOCK, PROCESSORS, site_log, state_at, swf_of

pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")

#: A busy site that keeps its own rules, and how it is forecast here.
SITE = judging.Subject(site_log(8, 9), CLOCK, PROCESSORS, users="rigid", futures=5)


def busy_rows(count=1, waiting=3):
    """Return jobs of the sixth week at whose submission some wait."""
    jobs, found = SITE.jobs, []
    for row in np.flatnonzero(jobs.recorded_submit > 5 * WEEK).tolist():
        at = jobs.recorded_submit[row]
        if ((jobs.recorded_submit < at) & (jobs.recorded_start > at)).sum() >= waiting:
            found.append(row)
    assert len(found) >= count
    return found[:: len(found) // count][:count]


def changed_after(now, jobs):
    """Return another record with the same past of a second."""
    other, draw = jobs.copy(), np.random.default_rng(2)
    later = other.recorded_submit > now
    other.recorded_submit[later] += draw.integers(0, DAY, int(later.sum()))
    other.processors[later], other.user[later] = 2, 77
    other.recorded_start[other.recorded_start > now] += DAY
    ends = other.recorded_end > now
    other.recorded_end[ends] += 2 * DAY + draw.integers(0, HOUR, int(ends.sum()))
    other.run_time[ends] = 1
    return other


@pytest.mark.parametrize(
    ("users", "requests"), [("rigid", True), ("think-time", True), ("rigid", False)]
)
def test_a_case_knows_nothing_of_what_comes(users, requests, tmp_path):
    """If the log differs only after the moment, what is forecast is the same; what came is not."""
    (row,) = busy_rows()
    now = int(SITE.jobs.recorded_submit[row])
    subject = replace(SITE, users=users, futures=2)
    if not requests:  # as LANL's: run times do not come in their place
        trace = read_swf(swf_of(SITE.jobs, tmp_path / "log.swf", requests=False))
        subject = replace(subject, jobs=known_jobs(trace))
        assert {UNKNOWN} == set(subject.jobs.requested_time.tolist())
    one = judging.case_at(subject, row)
    two = judging.case_at(replace(subject, jobs=changed_after(now, subject.jobs)), row)
    assert requests or not one.features[:, list(FEATURES).index("request")].any()
    assert one.features.tolist() == two.features.tolist()
    assert one.raw.tolist() == two.raw.tolist()
    for name in judging.MEASURES:
        assert one.members[name] == pytest.approx(two.members[name], nan_ok=True)
        assert one.before[name] == pytest.approx(two.before[name], nan_ok=True)
    assert one.start.tolist() != two.start.tolist()
    assert one.came["load"].tolist() != two.came["load"].tolist()


def test_what_came_is_a_plain_count():
    """Load, queue and mean waits of the record, counted job by job."""
    (row,) = busy_rows()
    case, jobs = judging.case_at(replace(SITE, futures=1), row), SITE.jobs
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    for which, (lead, span) in enumerate(zip(judging.LEADS, (HOUR, 6 * HOUR, DAY), strict=True)):
        at = case.now + lead
        held = np.clip(np.minimum(end, at) - np.maximum(start, at - HOUR), 0, None)
        sent = (submit > at - span) & (submit <= at)
        waits = np.log1p((np.minimum(start, case.now + WEEK) - submit)[sent] / 60)
        expected = {
            "load": (held * jobs.processors).sum() / HOUR / PROCESSORS,
            "queue": ((submit <= at) & (start > at)).sum(),
            "wait": waits.mean() if sent.any() else np.nan,
        }
        found = {name: values[which] for name, values in case.came.items()}
        assert expected == pytest.approx(found, nan_ok=True)


def test_a_case_has_its_own_job_and_some_others():
    """The one just submitted is marked, even if it starts at once; a hindcast is the same job."""
    for row in busy_rows(3):
        case = judging.hindcast_at(SITE, row)
        assert [row] == case.rows[case.fresh].tolist()
        assert len(case.rows) == len(case.start) <= 13
        assert (SITE.jobs.recorded_submit[case.rows] <= case.now).all()
        assert (len(case.rows), len(FEATURES)) == case.features.shape


def test_moments_are_in_the_second_half():
    """A week is left to see what came; those of the warm-up are before, after three weeks."""
    rows = SITE.moments(30, 10)
    at = SITE.jobs.recorded_submit[rows]
    submit = np.sort(SITE.jobs.recorded_submit)
    assert 40 == len(rows)
    assert at[10] == submit[len(submit) // 2]
    assert at[-1] <= submit[-1] - WEEK
    assert submit[0] + 3 * WEEK <= at[0]
    cases = [judging.Case(int(now), rows, rows > 0, np.zeros(0), rows) for now in at[::-1]]
    assert at.tolist() == [one.now for one in judging.in_order(cases)]


@pytest.fixture(scope="module")
def verdict():
    """Of forecasts of the site at 20 moments."""
    seen: list[tuple[int, int]] = []
    found = judge(SITE, 20, 30, processes=1, progress=lambda *done: seen.append(done))
    assert [(n, 50) for n in range(1, 51)] == seen
    return found


def test_a_verdict_says_how_good_forecasts_are(verdict):
    """Bounds cover about what they should; whoever knows all is exactly right at this site."""
    assert (20, set(BOUNDS)) == (verdict.moments, set(verdict.waits))
    for name in ("learned", "recalibrated"):
        scores = verdict.waits[name]["all"]
        assert scores.jobs > 40
        assert 0.75 <= scores.cover90 <= 1, name
        assert 0.3 <= scores.cover50 <= 0.8, name
        assert scores.below50 + scores.cover50 + scores.above50 == pytest.approx(1)
    for kinds in verdict.waits.values():
        assert kinds["waiting"].jobs + kinds["fresh"].jobs == kinds["all"].jobs
    for measure in judging.MEASURES:
        assert set(judging.LEADS) == set(verdict.leads[measure])
        for lead in verdict.leads[measure].values():
            assert set(FORECASTERS) == set(lead.crps)
            assert pytest.approx(0, abs=1e-9) == lead.crps["clairvoyant"]
            gap = lead.crps["corrected"] - lead.crps["last week"]
            assert gap == pytest.approx(lead.gain.mean)
    assert verdict.leads["load"][HOUR].gain.mean < 0
    assert 1 == len({one.jobs for one in verdict.upper.values()})
    assert all(0 <= one.cover <= 1 and 0 <= one.equal < np.inf for one in verdict.upper.values())


def test_a_judgement_is_written(verdict, tmp_path):
    """As plain data without anything that JSON has no word for, and as tables for people."""
    write(verdict, tmp_path / "out", {"moments": 20})
    text = (tmp_path / "out/judgement.json").read_text()
    found = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert {"moments", "levels", "waits", "upper_level", "upper", "leads"} == set(found)
    assert {"3600", "86400", "604800"} == set(found["leads"]["load"])
    assert (tmp_path / "out/provenance.json").exists()
    for title, heading, rows in tables(verdict):
        assert title
        assert rows
        assert {len(heading)} == {len(row) for row in rows}


@pytest.mark.parametrize(("jobs", "moments", "words"), [
    (site_log(5), 20, r"a log of \d\.\d weeks; .* needs 6 weeks: give"),
    (JobTable(), 20, r"a log of 0\.0 weeks"),
    (SITE.jobs, 0, "moments 0"),
])  # fmt: skip
def test_short_logs_are_not_judged(jobs, moments, words):
    """One line says how long it has to be."""
    with pytest.raises(QuantityError, match=words):
        judge(replace(SITE, jobs=jobs), moments)


def test_a_quick_look_is_quick():
    """Corrections learn first from no more than twice the moments that count."""
    seen: list[tuple[int, int]] = []
    found = judge(SITE, 2, processes=1, progress=lambda *done: seen.append(done))
    assert (2, (6, 6)) == (found.moments, seen[-1])


def test_drift_moves_and_widens():
    """By the mean error of earlier forecasts, to the spread of what is left; within a range."""
    rng, drift = np.random.default_rng(0), judging.Drift()
    for learned in range(400):
        members = rng.normal(0, 1, 20)
        if learned < judging.DRIFT_LEAST:
            assert members.tolist() == drift.corrected(members).tolist()
        drift.learn(members, float(3 + 2 * rng.standard_normal()))
    members = rng.normal(0, 1, 2000)
    corrected = drift.corrected(members)
    assert 3 == pytest.approx(corrected.mean(), abs=0.8)
    assert 2 == pytest.approx(corrected.std() / members.std(), abs=0.5)
    assert (2.5, 3.0) == (drift.corrected(members, 2.5, 3.0).min(),
                          drift.corrected(members, 2.5, 3.0).max())  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=12))
def test_shares_are_those_of_kaplan_and_meier(cases):
    """One less the product, over waits, of the shares of those at risk that go on waiting."""
    cases = sorted(cases, key=lambda one: (one[0], not one[1]))
    waited = np.array([wait for wait, _ in cases], float)
    closed = np.array([over for _, over in cases])
    found, left = _below(np.ones(len(cases)), closed), 1.0
    for wait in sorted(set(waited.tolist())):
        left *= 1 - ((waited == wait) & closed).sum() / (waited >= wait).sum()
        last = np.searchsorted(waited, wait, side="right") - 1
        assert 1 - left == pytest.approx(found[last])


def learning(count=400):
    """Return cases, one a minute, that wait about as long as their first feature says."""
    rng, found = np.random.default_rng(1), Hindsight()
    for at in range(0, 60 * count, 60):
        features = np.zeros((1, len(FEATURES)))
        features[0, 0] = rng.choice([1.0, 6.0])
        wait = 60 * np.expm1(features[0, 0]) * rng.uniform(0.8, 1.2)
        found.add(features, at, np.array([at + int(wait)]))
    return found


def test_bounds_are_learned_from_cases_alike():
    """Two kinds of jobs, of which one waits for minutes and the other for hours."""
    found = learning()
    assert found.ready
    features = np.zeros((2, len(FEATURES)))
    features[:, 0] = 1.0, 6.0
    short, long = found.bounds(features, 400 * 60 + DAY)
    for bounds, middle in ((short, 60 * np.expm1(1.0)), (long, 60 * np.expm1(6.0))):
        assert (np.diff(bounds) >= 0).all()
        assert bounds[0] == pytest.approx(0.82 * middle, rel=0.08)
        assert bounds[2] == pytest.approx(middle, rel=0.08)
        assert bounds[4] == pytest.approx(1.18 * middle, rel=0.08)


def test_what_is_learned_from(monkeypatch):
    """Starts that come later are not known; the oldest cases are dropped, and some are too few."""
    found, now, features = learning(), 400 * 60, np.zeros((2, len(FEATURES)))
    hidden = replace(found, start=np.where(found.start > now, UNKNOWN, found.start))
    assert (hidden.start == UNKNOWN).any()
    features[:, 0] = 1.0, 6.0
    assert found.bounds(features, now).tolist() == hidden.bounds(features, now).tolist()
    monkeypatch.setattr(module, "MOST_CASES", 50)
    few = learning(60)
    assert (50, 10 * 60, False) == (len(few), int(few.asked_at[0]), few.ready)


def test_hindcasts_of_a_state_teach_its_bounds():
    """Jobs that wait and those one would submit have bounds; held ones have none."""
    state = state_at(int(SITE.jobs.recorded_submit[busy_rows()[0]]), SITE.jobs)
    held = replace(state, held={int(state.waiting[0]): "JobHeldUser"})
    outset = Outset(held, DAY, users="none", asked=[Asked(1, HOUR, count=2), Asked(16, 12 * HOUR)])
    cases = hindcasts_of(outset, 60, processes=1)
    assert sorted(one.now for one in cases) == [one.now for one in cases]
    for one in cases:
        assert state.record_begin < one.now < state.now
        assert int(state.waiting[0]) not in one.rows
        assert (one.start[one.start != UNKNOWN] <= state.now).all()
    site = site_bounds_of(outset, 60, processes=1)
    learned = Learned(site, outset)
    raw = np.zeros((len(state.waiting) + 2, len(LEVELS)))
    bounds = learned.adjusted(raw)
    assert np.isinf(bounds[0]).all()
    assert np.isfinite(bounds[1:, :4]).all()
    assert (np.diff(bounds[1:, :4], axis=1) >= 0).all()
    chances = np.array([learned.chances(within) for within in (60, HOUR, DAY)])
    assert {0.0} == set(chances[:, 0].tolist())
    assert (np.diff(chances, axis=0) >= 0).all()
    track = site.track(state.now)
    assert 0 <= track.in_50 <= track.in_90 <= track.judged <= sum(len(one.start) for one in cases)
    assert cases[0].now == track.since


def test_features_have_their_meaning():
    """Those that need no simulation, in a state of four jobs."""
    now = 10 * DAY + 6 * HOUR  # a Thursday, 6:00
    jobs = JobTable()
    jobs.append(
        4, user=[1, 1, 2, 1], queue=1, group=1, executable=1, processors=[8, 4, 8, 16],
        requested_time=[2 * HOUR, HOUR, HOUR, UNKNOWN],
        recorded_submit=now - np.arange(4, 0, -1) * HOUR,
        recorded_start=[UNKNOWN, now - HOUR, UNKNOWN, UNKNOWN],
    )  # fmt: skip
    state = replace(state_at(), jobs=jobs, now=now, processors=16)
    by_name = dict(zip(FEATURES, features_of(Outset(state, DAY)).T.tolist(), strict=True))
    for name, values in {
        "waited": log_minutes(np.array([4, 2, 1]) * HOUR),
        "width": [-1, -1, 0],
        "request": log_minutes(np.array([2, 1, 0]) * HOUR),
        "own jobs running": np.log1p([1, 0, 1]),
        "own processors": np.log1p([4, 0, 4]),
        "own jobs ahead": np.log1p([0, 0, 1]),
        "place": np.log1p([0, 1, 2]),
        "free": [0.75] * 3,
        "queue": [np.log(4)] * 3,
        "overtaken": np.log1p([1, 0, 0]),
        "overtaken by larger": [0, 0, 0],
        "work ahead": np.log1p([0, 1, 1.5]),
        "time of day, sine": [1] * 3,
        "weekend": [0] * 3,
        "would fit": [1, 1, 0],
    }.items():
        assert list(values) == pytest.approx(by_name[name]), name
