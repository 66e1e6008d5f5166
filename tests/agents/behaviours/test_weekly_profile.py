"""Weekly profiles as shares, and the distance between two of them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.analysis.curves import profile_distance, unevenness, weekly_profile
from hpcrowd.environment import Clock
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.lists(st.integers(0, 10 * WEEK), min_size=1).map(np.array)


def test_shares_are_in_local_hours_of_the_week() -> None:
    """Monday 1 January 2001, 00:00 UTC, is 1:00 in Stockholm; unknown submissions do not count."""
    clock = Clock(zone=ZoneInfo("Europe/Stockholm"), known=True)
    profile = weekly_profile(np.array([0, 1800, WEEK, 3 * HOUR, -1]), clock)
    assert (168,) == profile.shape
    assert {1: 0.75, 4: 0.25} == {int(hour): profile[hour] for hour in np.flatnonzero(profile)}


def test_what_cannot_be_compared() -> None:
    """Without submissions all shares are 0 and no distance is made up; nor of a day and a week."""
    nobody = weekly_profile(np.array([-1]), Clock())
    assert 0.0 == nobody.sum()
    with pytest.raises(QuantityError, match="profile with a sum of 0: shares must add up to 1"):
        profile_distance(nobody, nobody)
    with pytest.raises(QuantityError, match=r"shapes \(1,\) and \(2,\): must be the same"):
        profile_distance(np.array([1.0]), np.array([0.5, 0.5]))


@given(TIMES, TIMES, TIMES)
def test_distance_is_a_metric(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """It is 0 for the same, the same both ways, at most 1, and no detour is shorter."""
    p, q, r = (weekly_profile(times, Clock()) for times in (a, b, c))
    assert 0.0 == profile_distance(p, p)
    assert profile_distance(p, q) == profile_distance(q, p)
    assert profile_distance(p, q) <= 1 + 1e-12
    assert profile_distance(p, r) <= profile_distance(p, q) + profile_distance(q, r) + 1e-12


def test_distance_is_the_share_that_moved() -> None:
    """Of four jobs in one hour, those that move to another hour are the distance."""
    profiles = [
        weekly_profile(np.where(np.arange(4) < moved, 5 * HOUR, 0), Clock()) for moved in (0, 1, 4)
    ]
    assert [0.0, 0.25, 1.0] == [profile_distance(profiles[0], other) for other in profiles]


def test_unevenness_from_flat_to_one_hour() -> None:
    """A job in every hour of the week is flat; all jobs in one hour are as uneven as can be."""
    flat = weekly_profile(np.arange(168) * HOUR, Clock())
    assert pytest.approx(0, abs=1e-12) == unevenness(flat)
    assert pytest.approx(167 / 168) == unevenness(weekly_profile(np.array([7]), Clock()))
