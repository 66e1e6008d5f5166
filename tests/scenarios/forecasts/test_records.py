"""Bounds of starts with records of a certain length, and what is printed without any."""

import json

import numpy as np
import pytest
from hpcrowd.analysis.forecast.judge import Subject, situation_at
from hpcrowd.analysis.forecast.prior import known_prior
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.forecasts.forecast import Forecast
from hpcrowd.scenarios.forecasts.records import _interval, recorded, scores, seen_in

from tests.scenarios.forecasts.forecast_cases import (
    CLOCK,
    PROCESSORS,
    busy_moment,
    site_log,
    state_at,
    swf_of,
)

LOG = site_log(8, 9)
SITE = Subject(LOG, CLOCK, PROCESSORS, users="none")


def test_a_record_begins_where_its_accounting_does():
    """Jobs that were over before are not known; those that ran or waited then are."""
    row = len(LOG) // 2
    now = int(LOG.recorded_submit[row])
    whole, _ = SITE.state_at(row)
    short, rows = Subject(LOG, CLOCK, PROCESSORS, record=DAY).state_at(row)
    assert len(short.running) == len(whole.running)
    assert len(short.waiting) == len(whole.waiting)
    assert now - DAY < short.record_begin < now - DAY / 2
    ended = LOG.recorded_end[rows]
    assert (ended > now - DAY).all()
    assert (LOG.recorded_submit[rows] < now - DAY).any()


def test_hindcasts_know_their_record_only():
    """They are within it, and later ends are not known to them."""
    (one,) = recorded(SITE, DAY, moments=1, hindcasts=8, processes=1)
    assert 1 <= len(one.hindcasts) <= 8
    for case in one.hindcasts:
        assert one.case.now - 2 * DAY < case.now < one.case.now
        assert (case.start[case.start != UNKNOWN] <= one.case.now).all()
    again, *_ = situation_at(Subject(LOG, CLOCK, PROCESSORS, users="none", record=DAY),
                             SITE.moments(1, 0).tolist()[0])  # fmt: skip
    assert np.array_equal(again.features, one.case.features)


def test_bounds_hold_what_they_promise():
    """On a site that no other log is like, with records of two days."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    found = recorded(SITE, 2 * DAY, moments=40, hindcasts=15, processes=1)
    known = scores(found)["all"]
    assert known.jobs == sum(len(one.case.start) for one in found)
    assert known.cover90 > 0.8
    assert known.between90[0] <= known.cover90 <= known.between90[1] <= 1
    assert known.between50[0] < known.cover50 < known.between50[1]
    seen = seen_in(found)
    assert len(seen.wait) == len(seen.features) == len(seen.fresh) == len(seen.weight)
    assert (seen.wait >= 0).all()


def test_jobs_of_a_moment_count_as_one_that_is_sure():
    """Jobs that are alike within their moment say as little as one job of each moment."""
    random = np.random.default_rng(0)
    moment, inside = np.arange(200), random.random(200) < 0.8
    low, high = _interval(inside, moment, 0)
    share = inside.mean()
    # The binomial interval, with a tolerance for blocks and draws.
    assert 1.96 * np.sqrt(share * (1 - share) / 200) == pytest.approx((high - low) / 2, rel=0.25)
    assert (low, high) == pytest.approx(
        _interval(np.repeat(inside, 10), np.repeat(moment, 10), 0), abs=1e-9
    )
    assert _interval(inside[:3], moment[:3], 0) is None


def test_the_command_judges_records(tmp_path, monkeypatch, call):
    """A table by kind of jobs, or JSON; a log that is too short and a forecast are refused."""
    monkeypatch.chdir(tmp_path)
    swf_of(LOG, tmp_path / "log.swf")
    words = (
        "forecast",
        "log.swf",
        "--judge",
        "--moments",
        "3",
        "--hindcasts",
        "4",
        "--workers",
        "1",
    )
    code, out, err = call(*words, "--record", "1d")
    assert (0, True) == (code, "with a record of 24.0 h" in out), err
    code, out, err = call(*words, "--record", "12h", "--json")
    wire = json.loads(out)
    assert (12 * HOUR, 3) == (wire["record_s"], wire["fresh"]["jobs"])
    code, _, err = call(*words, "--record", "30d")
    assert 2 == code
    assert "--record 30.0 days: a log of" in err
    code, _, err = call("forecast", "log.swf", "--record", "1d")
    assert 2 == code
    assert "--record: is for --judge" in err


def test_no_bounds_without_a_record():
    """Only medians are printed, and a line says what is needed; pictures and tables are made."""
    now = busy_moment(LOG)
    state = state_at(now, LOG)
    rows = np.flatnonzero(state.jobs.recorded_end == UNKNOWN)
    state.jobs = state.jobs.take(rows)
    answers = Forecast(state, users="none", futures=3, days=0.5, executor="inline").run().answers
    assert "No bounds of starts" in answers.promise
    assert "with --past" in answers.promise
    from hpcrowd.analysis.forecast import report

    assert answers.jobs
    for one, row in zip(answers.jobs, report.job_rows(answers), strict=True):
        assert np.isnan(one.start[[0, 1, 3, 4]]).all()
        assert not np.isnan(one.start[2])
        assert ["", ""] == row[4:6]
    wire = answers.to_dict()["jobs"][0]["start_s"]
    assert [None, None] == [wire["p5"], wire["p95"]]
    assert "starts" in report.pictures(answers)


def test_what_backs_the_bounds_is_printed():
    """How many of the starts here they held, in words and numbers."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    state = state_at(busy_moment(LOG), LOG)
    given = Forecast(state, users="none", futures=3, days=0.5, executor="inline", hindcasts=30)
    answers = given.run().answers
    track = answers.track
    assert track is not None
    assert f"held {track.in_90:,} of {track.judged:,} starts here" in answers.promise
    assert track._asdict() == answers.to_dict()["track"]
    assert known_prior().share_held(HOUR) > 0.5
