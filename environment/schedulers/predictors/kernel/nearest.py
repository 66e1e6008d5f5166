"""Nearest neighbours with a weighted average (thesis Eqs. 8.1 to 8.3), compiled."""

from __future__ import annotations

from math import exp, floor, inf, sqrt

from hpcrowd.environment.engine.kernel.places import compiled
from hpcrowd.environment.schedulers.predictors.kernel.experience import (
    BY_SUBMISSION,
    CATEGORY,
    CLASS,
    FRESHEST,
    JOBS_KNOWN,
    KIND,
    LATEST_RANK,
    NOMINAL,
    NONE,
    NUMERIC,
    RAN,
    RANK,
    STALER,
    SUBMITTED,
    consider,
    renew_vectors,
)

#: Distances are compared, and weighed, in whole multiples of one part in so many, so that rounding
#: errors of the last digits do not decide who is latest among equals.
RESOLUTION = 1e9

# Places of the settings; the weights of all attributes come last.
WINDOW, NEIGHBOURS, BANDWIDTH, CAPPED, WEIGHTS = range(5)


@compiled
def estimate(memory, settings, requested, row):
    """Return the estimate of Eq. 8.3 for a job that has arrived, s, not rounded."""
    counters, jobs, classes = memory.counters, memory.jobs, memory.classes
    renew_vectors(memory)
    wanted, weights = int(settings[NEIGHBOURS]), settings[WEIGHTS:]
    own = jobs[row, CLASS]
    high = jobs[row, SUBMITTED] if counters[KIND] == BY_SUBMISSION else counters[JOBS_KNOWN]
    low = high - int(settings[WINDOW])
    found = 0
    limit = inf
    weight = 0.0
    for place in range(NOMINAL + NUMERIC):
        weight += weights[place]
    other = memory.categories[classes[own, CATEGORY], FRESHEST]
    while other != NONE and classes[other, LATEST_RANK] >= low:
        apart = squares(memory, weights, own, other, limit)
        if apart <= limit:
            key = -floor(sqrt(apart / weight) * RESOLUTION + 0.5)
            found = consider(memory, other, key, RANK, low, high, found, wanted)
            if found == wanted:  # who is farther by more than rounding is none of the nearest
                reach = (1 - memory.keys[wanted - 1]) / RESOLUTION
                limit = reach * reach * weight
        other = classes[other, STALER]
    value = float(requested)
    if found > 0:
        value = weighted_mean(memory, found, settings[BANDWIDTH])
    return min(value, float(requested)) if settings[CAPPED] else value


@compiled
def squares(memory, weights, own, other, limit):
    """Return the sum of Eq. 8.1 for two classes, or less of it where that is above the limit."""
    classes, vectors = memory.classes, memory.vectors
    total = 0.0
    for place in range(NOMINAL):
        if classes[own, place] != classes[other, place]:
            total += weights[place]
    if total > limit:
        return total
    for place in range(NUMERIC):
        away = vectors[own, place] - vectors[other, place]
        total += weights[NOMINAL + place] * (away * away)
    return total


@compiled
def weighted_mean(memory, found, bandwidth):
    """Return Eq. 8.3 of the nearest; a bandwidth of 0 stands for the largest of their distances."""
    keys, best, jobs = memory.keys, memory.best, memory.jobs
    width = bandwidth if bandwidth > 0.0 else -keys[found - 1] / RESOLUTION
    # Weights relative to the nearest job's: far from all jobs they do not vanish together.
    nearest = -keys[0] / RESOLUTION / width if width > 0.0 else 0.0
    total = 0.0
    weight = 0.0
    for place in range(found):
        part = 1.0
        if width > 0.0:
            away = -keys[place] / RESOLUTION / width
            part = exp(nearest * nearest - away * away)
        total += part * jobs[best[place], RAN]
        weight += part
    return total / weight
