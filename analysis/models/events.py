"""From a rate process to arrival times.

A rate process tells how many arrivals each interval expects, not when they are. Minh 2012 (section
4.5.2) converts it by *integrate-and-fire*: the rate is added up, and each time the sum reaches the
next whole number, a job arrives.
"""

from __future__ import annotations

import numpy as np

from analysis.models.part import Floats


def integrate_and_fire(
    expected: Floats, interval_s: float, carried: float = 0.0
) -> tuple[Floats, float]:
    """Return when the integral of a piecewise constant rate reaches whole numbers.

    Parameters
    ----------
    expected
        Arrivals that each interval expects, not negative, shape (intervals,).
    interval_s
        Length of an interval, s.
    carried
        What has added up before the first interval, 0 to 1.

    Returns
    -------
    tuple
        Arrival times, s from the beginning of the first interval on, rising; and what is left
        over, below 1.

    Notes
    -----
    Within an interval the integral is a line, so the times are exact. Nothing arrives in an
    interval that expects nothing: a whole number that is reached at the end of one interval counts
    there, however long the pause is that follows.
    """
    if not len(expected):
        return np.zeros(0), carried
    reached = carried + np.cumsum(expected)
    whole = np.arange(1.0, np.floor(reached[-1]) + 1)
    place = np.searchsorted(reached, whole, side="left")
    before = np.where(place > 0, reached[place - 1], carried)
    part = ((whole - before) / expected[place]).clip(0, 1)
    return (place + part) * interval_s, float(reached[-1] - len(whole))


def random_events(expected: Floats, interval_s: float, random: np.random.Generator) -> Floats:
    """Return arrivals at random with a piecewise constant rate: Poisson in each interval.

    Parameters
    ----------
    expected, interval_s
        As for :func:`integrate_and_fire`.
    random
        The stream to draw from.

    Returns
    -------
    array
        Arrival times, s from the beginning of the first interval on, rising.
    """
    number = random.poisson(expected)
    place = np.repeat(np.arange(len(expected)), number)
    return np.sort(place + random.random(len(place))) * interval_s
