"""How good forecasts were: proper scores, coverage, and intervals for differences of scores.

A forecast of a number, such as a wait, is an ensemble (one value from each future), or a few of its
quantiles. All scores are losses: the smaller, the better, and each is smallest in the mean for the
forecaster who gives the true distribution. Values that lie beyond the horizon of the futures are
infinite; quantiles take them as they are.

Sources:

- CRPS and quantile scores: Gneiting and Raftery 2007, JASA 102, sections 4.2 and 6.
- Fair CRPS of an ensemble: Ferro 2014, Q. J. R. Meteorol. Soc. 140, for members that are draws.
- Block bootstrap: Politis and Romano 1992, circular blocks, for scores that depend on those before.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.curves import Floats
from hpcrowd.analysis.paired import AT_ONCE, CONFIDENCE, RESAMPLES, Estimate
from hpcrowd.environment.errors import QuantityError, echo

#: Weights of a member that rounding may add up to beyond a level of a quantile (our choice).
ROUNDING = 1e-12

#: Fewest scores that an interval is given for (our choice).
FEWEST = 10


# ---- quantiles -----------------------------------------------------------------------------------


def quantiles(members: ArrayLike, levels: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return quantiles of ensembles: the smallest member with at least the level at or below it.

    Members have shape (cases, members), infinite beyond the horizon; levels lie between 0 and 1.
    Weights of members are 0 or more, of the same shape or (members,); None is equal. Quantiles have
    shape (cases, levels); infinite where the level is only reached beyond the horizon.
    """
    members, weights = _ensemble(members, weights)
    levels = checked_levels(levels)
    order = np.argsort(members, axis=1, kind="stable")
    ordered = np.take_along_axis(members, order, 1)
    total = np.cumsum(np.take_along_axis(weights, order, 1), axis=1)
    # How many cumulative weights are below the level is the place of the quantile.
    place = (total[:, :, None] < levels - ROUNDING).sum(axis=1)
    return np.take_along_axis(ordered, np.minimum(place, members.shape[1] - 1), 1)


# ---- scores --------------------------------------------------------------------------------------


def crps(members: ArrayLike, outcomes: ArrayLike) -> Floats:
    """Return the continuous ranked probability score of ensembles, in units of the outcomes.

    Members are draws from the forecast, whose score is estimated without bias; it can be negative.
    A case has two or more finite ones, shape (cases, members), and an outcome, shape (cases,).
    """
    members, weights = _ensemble(members, None)
    outcomes = _outcomes(outcomes, len(members))
    if not (np.isfinite(members).all() and np.isfinite(outcomes).all()):
        raise QuantityError("CRPS of infinite values: leave them out")
    if members.shape[1] < 2:
        raise QuantityError("CRPS of one member: give two or more")
    error = (weights * np.abs(members - outcomes[:, None])).sum(axis=1)
    # Half the mean distance of two members is the integral of F (1 - F), by steps.
    below = np.cumsum(weights, axis=1)[:, :-1]
    spread = (below * (1 - below) * np.diff(np.sort(members, axis=1), axis=1)).sum(axis=1)
    # A member drawn twice is no distance; two different ones are what the spread means.
    return error - spread / (1 - (weights**2).sum(axis=1))


def pinball(predicted: ArrayLike, outcomes: ArrayLike, levels: ArrayLike) -> Floats:
    """Return the pinball (quantile) loss of quantiles; shape (cases, levels), as predicted.

    An outcome above the quantile of a level costs level times the distance, one below costs 1 -
    level times the distance. It is infinite if one of them is, and 0 if both are. Outcomes have
    shape (cases,); levels are ascending, between 0 and 1.
    """
    levels = checked_levels(levels)
    predicted = np.asarray(predicted, float)
    if predicted.ndim != 2 or predicted.shape[1] != len(levels):
        raise QuantityError(
            f"quantiles of shape {predicted.shape}: give (cases, {len(levels)}), one for each level"
        )
    outcomes = _outcomes(outcomes, len(predicted))[:, None]
    # Both beyond the horizon is a hit.
    distance = np.subtract(
        outcomes, predicted, out=np.zeros(predicted.shape), where=outcomes != predicted
    )
    found: Floats = np.maximum(levels * distance, (levels - 1) * distance)
    return found


# ---- coverage ------------------------------------------------------------------------------------


def covered(lower: ArrayLike, upper: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of outcomes in closed intervals.

    With atoms, such as waits of 0, a good interval covers more than its nominal share.
    """
    lower, upper, outcomes = (np.asarray(one, float) for one in (lower, upper, outcomes))
    return float(((lower <= outcomes) & (outcomes <= upper)).mean())


# ---- differences ---------------------------------------------------------------------------------


def mean_difference(
    first: ArrayLike,
    second: ArrayLike,
    generator: np.random.Generator,
) -> Estimate:
    """Return the mean of ``first - second`` for scores of the same cases, with its interval.

    Scores of the two forecasters are in the order of time, shape (cases,). The interval is the
    percentile interval of a circular block bootstrap, None for fewer than :data:`FEWEST` cases.
    Cases in a row depend on each other; blocks have the cube root of the number of cases (Hall,
    Horowitz and Jing 1995, in order of magnitude).
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape or first.ndim != 1:
        raise QuantityError(
            f"scores of shape {first.shape} and {second.shape}: give one of each case from both"
        )
    difference = first - second
    cases = len(difference)
    if not cases or not np.isfinite(difference).all():
        raise QuantityError(
            "scores that are infinite, not numbers, or none: leave such cases out of both"
        )
    block = math.ceil(cases ** (1 / 3) - 1e-9)
    mean = float(difference.mean())
    if cases < FEWEST:
        return Estimate(mean, None, None, cases)
    # Sums of all circular blocks; the last block of a resample is as short as needed.
    blocks, rest = divmod(cases, block)
    total = np.concatenate(([0.0], np.cumsum(np.concatenate((difference, difference[:block])))))
    whole, part = total[block : block + cases] - total[:cases], total[rest:][:cases] - total[:cases]
    sums = []
    step = max(1, AT_ONCE // (blocks + 1))
    for begin in range(0, RESAMPLES, step):
        drawn = generator.integers(0, cases, (min(step, RESAMPLES - begin), blocks + 1))
        sums.append(whole[drawn[:, 1:]].sum(axis=1) + part[drawn[:, 0]])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(sums) / cases, [tail, 1 - tail])
    return Estimate(mean, float(low), float(high), cases)


# ---- checks --------------------------------------------------------------------------------------


def _ensemble(members: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return members, and weights of the same shape that add up to 1."""
    members = np.asarray(members, float)
    if members.ndim != 2 or not members.shape[1]:
        raise QuantityError(f"members of shape {members.shape}: give (cases, members)")
    if np.isnan(members).any():
        raise QuantityError("members that are not numbers: leave them out")
    if weights is None:
        return members, np.full(members.shape, 1 / members.shape[1])
    weights = np.broadcast_to(np.asarray(weights, float), members.shape)
    total = weights.sum(axis=1, keepdims=True)
    if not ((weights >= 0).all() and (total > 0).all() and np.isfinite(total).all()):
        raise QuantityError("weights of members: each is 0 or more, and one of each case above 0")
    return members, weights / total


def _outcomes(outcomes: ArrayLike, cases: int) -> Floats:
    outcomes = np.asarray(outcomes, float)
    if outcomes.shape != (cases,):
        raise QuantityError(f"outcomes of shape {outcomes.shape}: give one for each of {cases}")
    if np.isnan(outcomes).any():
        raise QuantityError("outcomes that are not numbers: leave their cases out")
    return outcomes


def checked_levels(levels: ArrayLike) -> Floats:
    """Return levels, shape (levels,); a QuantityError unless ascending, between 0 and 1."""
    levels = np.atleast_1d(np.asarray(levels, float))
    if not ((levels > 0) & (levels < 1)).all() or (np.diff(levels) <= 0).any():
        raise QuantityError(f"levels {echo(levels.tolist())}: ascending, between 0 and 1")
    return levels
