"""Weekly rhythm as numbers: in which hours of the week work arrives, and how far two weeks differ.

:func:`analysis.curves.weekly_profile` has the rates behind the pictures; here the shares of jobs,
which may be compared between runs of different lengths.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.curves import WEEK_HOURS, Floats
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: Shares of a profile have to add up to 1 within this; what is beyond cannot be rounding.
SUM_TOLERANCE = 1e-9

#: Hours of a day.
DAY_HOURS = DAY // HOUR


def weekly_profile(submit: Int64s, clock: Clock) -> Floats:
    """Return the share of submissions in each local hour of the week, from Monday 00:00.

    Parameters
    ----------
    submit
        s, in any order; unknown ones (-1) do not count.
    clock
        Local time.

    Returns
    -------
    array
        Shape (168,); adds up to 1, or all 0 where nothing was submitted.
    """
    known = submit[submit != UNKNOWN]
    counts = np.bincount(clock.second_of_week(known) // HOUR, minlength=WEEK_HOURS)
    shares: Floats = counts / max(len(known), 1)
    return shares


def profile_distance(a: Floats, b: Floats) -> float:
    """Return the total variation distance of two profiles, from 0 (equal) to 1.

    It is half the sum of the absolute differences: the share of jobs that would have to move to
    other hours to turn one profile into the other.

    Parameters
    ----------
    a, b
        Shares, of the same shape; each adds up to 1.

    Raises
    ------
    QuantityError
        When a profile does not add up to 1, as that of nobody, or the shapes differ.
    """
    if np.shape(a) != np.shape(b):
        raise QuantityError(f"profiles of shapes {np.shape(a)} and {np.shape(b)}: must be the same")
    for profile in (a, b):
        total = float(np.sum(profile))
        if abs(total - 1) > SUM_TOLERANCE:
            raise QuantityError(f"profile with a sum of {total:g}: shares must add up to 1")
    return float(np.abs(np.asarray(a) - b).sum() / 2)


def daily_profile(profile: Floats) -> Floats:
    """Return the share in each hour of the day of a weekly profile, shape (24,)."""
    hours: Floats = np.asarray(profile).reshape(-1, DAY_HOURS).sum(axis=0)
    return hours


def unevenness(profile: Floats) -> float:
    """Return the distance of a profile from one with equal hours: 0 flat, towards 1 all at once."""
    return profile_distance(profile, np.full(np.shape(profile), 1 / np.size(profile)))
