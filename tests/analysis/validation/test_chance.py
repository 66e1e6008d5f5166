"""What chance does to the ratio of a month for a model that knows the level of a log."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.validation.chance import by_chance
from hpcrowd.analysis.validation.validation import protocol
from hpcrowd.environment.clock import DAY

#: A quarter of a year's months, evenly spaced, and five origins at shares of the jobs.
MONTHS, SHARES = replace(protocol(), apart=28), protocol()


def months(make_jobs, each):
    """A log with these jobs in each month of 28 days, evenly spaced, and one behind them."""
    at = np.concatenate([k * 28 + np.arange(n) * 28 / n for k, n in enumerate(each)])
    days = [*at, 28 * len(each)]
    return make_jobs(*((int(day * DAY), 3600, 2, 3600, 1) for day in days))


def found(jobs, rules):
    """What chance does, with the same orders each time."""
    return by_chance(jobs, rules, np.random.default_rng(1))


def test_months_that_are_alike_are_met(make_jobs):
    """Where all months are the same, to know the level is to know each of them."""
    for rules in (MONTHS, SHARES):
        chance = found(months(make_jobs, [280] * 12), rules)
        assert ["jobs", "processor_hours"] == list(chance)
        for one in chance.values():
            assert pytest.approx((1, 1, 1)) == tuple(one)


def test_months_that_differ_are_not(make_jobs):
    """Half of the months with three times the jobs: ratios from 2/3 to 2, seldom near 1."""
    one = found(months(make_jobs, [84, 252] * 6), MONTHS)["jobs"]
    assert 2 / 3 - 0.01 <= one.low < 0.8
    assert 1.25 < one.high <= 2.01
    assert one.near < 0.5


def test_origins_at_shares_of_the_jobs_fall_into_busy_months(make_jobs):
    """One busy month of twelve has most origins at shares, and few of those evenly spaced."""
    jobs = months(make_jobs, [28] * 11 + [1400])
    shares, even = (found(jobs, rules)["jobs"] for rules in (SHARES, MONTHS))
    assert shares.low < 0.3
    assert even.low > 3


def test_a_short_log_has_none(make_jobs):
    """With fewer than three months all orders are alike."""
    assert {} == found(months(make_jobs, [28, 28]), MONTHS)
    assert {} != found(months(make_jobs, [28] * 3), MONTHS)
