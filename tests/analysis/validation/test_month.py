"""Weeks after an origin foreseen from the record before it, on made-up logs."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.analysis.validation.month import (
    REPEATED,
    SOURCES,
    Cut,
    Month,
    autocorrelation,
    cuts_of,
    draws,
    judge,
    measured,
)
from hpcrowd.analysis.validation.month_report import ratio_headings, ratio_rows
from hpcrowd.analysis.validation.validation import protocol
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError, TraceError

#: One origin and few draws.
RULES = replace(protocol(), origins=(0.6,), days=14, month_draws=6)


def weekly(make_jobs, users=4, weeks=12, busier=1):
    """Jobs of users who do the same in all weeks, from the last third on several times as much."""
    rows = []
    for week in range(weeks):
        for user in range(1, users + 1):
            for day in range(5):
                for _ in range(busier if week >= 2 * weeks // 3 else 1):
                    at = week * WEEK + day * DAY + 9 * HOUR + 600 * user
                    rows.append((at, 1800, 1, 3600, user))
    return make_jobs(*sorted(rows))


def month(submit, run_time=HOUR, processors=2, user=1):
    """A month of jobs."""
    submit = np.asarray(submit, np.int64)
    full = [np.broadcast_to(np.int64(one), submit.shape) for one in (run_time, processors, user)]
    return Month(submit, full[0], full[1], full[0], full[2])


def test_measures_of_a_month_that_is_known():
    """Jobs, load, users and sessions fall on their days, shares on their local hours."""
    jobs = month([0, 1800, 3 * HOUR, DAY + 5], user=np.array([1, 1, 1, 2]))
    found = measured(jobs, 0, 3, Clock())
    assert [2, 1, 0] == found["sessions_by_day"].tolist()
    assert [3, 1, 0] == found["jobs_by_day"].tolist()
    assert [6, 2, 0] == found["load_by_day"].tolist()
    assert [1, 1, 0] == found["users_by_day"].tolist()
    assert (4, 8, 2) == tuple(float(found[n][0]) for n in ("jobs", "processor_hours", "users"))
    assert [0.75, 0.25] == [found["rhythm_of_day"][0], found["rhythm_of_day"][3]]
    assert [0.75, 0.25] == found["rhythm_of_week"][:2].tolist()
    assert "waits" not in found


def test_measures_of_nothing():
    """A month without jobs has zeros, and nothing fails."""
    found = measured(month([]), 0, 2, Clock())
    assert all((values == 0).all() for values in found.values())


def test_autocorrelation_of_a_daily_rhythm():
    """What repeats each day is correlated with the day before, and less with the hour before."""
    series = np.tile((np.arange(24) == 12).astype(float), 28)
    hour, day, week = autocorrelation(series)
    assert hour < 0.1 < 0.7 < week < day < 1


def test_a_stationary_log_is_foreseen(make_jobs):
    """Where all weeks are alike, all that is drawn from the past is right, and covers it."""
    found = judge(weekly(make_jobs), Clock(), 8, RULES, ["rigid", "think-time"])
    assert [REPEATED, "rigid", "think-time"] == found.sources
    for source in found.sources:
        assert found.ratios(source, "jobs") == pytest.approx([1], abs=0.06)
        assert found.ratios(source, "processor_hours") == pytest.approx([1], abs=0.06)
        assert found.ratios(source, "users").tolist() == [1]
        assert found.score(source, "jobs_by_day") < 0.3
    assert found.coverage(REPEATED, "jobs") is None
    assert found.coverage("rigid", "users") == 1


def test_origins_of_all_months(make_jobs):
    """Each day from the first quarter on is judged once; the sums say what is missing in all."""
    jobs = weekly(make_jobs, weeks=20, busier=2)
    rules = replace(RULES, apart=RULES.days, month_draws=2)
    found = judge(jobs, Clock(), 8, rules, ["rigid"])
    apart = np.diff(found.origins)
    begin, end = (int(edge(jobs.recorded_submit)) for edge in (np.min, np.max))
    assert set(apart.tolist()) == {14 * DAY}
    assert found.origins[0] == begin + round((end - begin) / 4)
    assert end - 28 * DAY < found.origins[-1] <= end - 14 * DAY
    recorded, drawn = (
        sum(float(one["jobs"].mean()) for one in of)
        for of in (found.record, [one["rigid"] for one in found.drawn])
    )
    assert drawn / recorded == pytest.approx(found.whole("rigid", "jobs"))
    assert found.settings["origins"] == "months"
    heads, rows = ratio_headings(found), ratio_rows(found)
    assert f"lowest of {len(found.origins)} origins" in heads
    assert all(len(heads) == len(row) for row in rows)


def test_all_origins_share_the_model_of_the_first(make_jobs):
    """Learned pauses are fitted once, to what comes before the first origin."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    jobs, rules = weekly(make_jobs), replace(RULES, origins=(0.5, 0.6))
    (first, second), _ = cuts_of(jobs, Clock(), 8, rules)
    assert first.now < second.now
    assert first.learned is second.learned
    alone = cuts_of(jobs, Clock(), 8, replace(rules, origins=(0.5,)))[0][0].learned
    assert np.array_equal(alone.forest.pause, first.learned.forest.pause)


def test_nobody_knows_what_comes_after_the_origin(make_jobs):
    """A log that is three times as busy after the origin is foreseen just like one that is not."""
    now = 8 * WEEK - DAY
    usual, busier = (
        Cut(weekly(make_jobs, busier=times), Clock(), 8, now, 14) for times in (1, 3)
    )  # fmt: skip
    assert 3 * len(usual.recorded().submit) == len(busier.recorded().submit)
    for source in (REPEATED, "rigid", "learned", "lublin"):
        here, there = (
            [(one.submit.tolist(), one.run_time.tolist()) for one in draws(cut, source, 2)]
            for cut in (usual, busier)
        )
        assert here == there
        assert here[0][0]


def test_the_account_is_by_what_users_were(make_jobs):
    """Jobs and hours are those of users who were active, silent, long silent, or not known."""
    before = [(0, 60, 1, 60, 1), (40 * DAY, 60, 1, 60, 2), (59 * DAY, 60, 1, 60, 3)]
    after = [(61 * DAY + k, HOUR * user, 2, 60, user) for k in range(7) for user in (1, 2, 3, 4)]
    cut = Cut(make_jobs(*before, *after), Clock(), 8, 60 * DAY, 7)
    found = cut.account(cut.recorded())
    assert [1, 1, 1, 1] == found["jobs_by_state"].tolist()
    assert [6, 4, 2, 8] == found["hours_by_state"].tolist()


def test_what_cannot_be_judged(make_jobs):
    """Unknown names and short logs are refused, with the cure."""
    jobs = weekly(make_jobs)
    with pytest.raises(QuantityError, match=r"users 'learnd': .*learned"):
        judge(jobs, Clock(), 8, RULES, ["learnd"])
    with pytest.raises(TraceError, match=r"origin 0.9: the log has .* 14 are needed on both sides"):
        judge(jobs, Clock(), 8, replace(RULES, origins=(0.9,)), ["rigid"])
    found = judge(jobs, Clock(), 8, replace(RULES, origins=(0.6, 0.9), month_draws=2), ["rigid"])
    assert len(found.origins) == len(found.record) == 1
    assert "origin 0.9" in found.settings["left_out"][0]
    assert REPEATED == SOURCES[0]
