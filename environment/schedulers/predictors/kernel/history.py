"""The history-based predictor of Minh 2012, chapter 8, compiled."""

from __future__ import annotations

from math import floor, sqrt

from hpcrowd.environment.engine.kernel.places import compiled
from hpcrowd.environment.schedulers.predictors.kernel.experience import (
    BY_CATEGORY,
    BY_SUBMISSION,
    CATEGORY,
    CLASS,
    CLASSES,
    FRESHEST,
    JOBS_KNOWN,
    KIND,
    KNOWN,
    LATEST,
    LATEST_PLACE,
    LATEST_RANK,
    NONE,
    NUMERIC,
    PLACE,
    RAN,
    RANK,
    STALER,
    SUBMITTED,
    consider,
    renew_vectors,
)

#: Similarities are compared in whole multiples of one part in so many, so that rounding errors of
#: the last digits do not decide who is latest among equals.
RESOLUTION = 1e9

# Places of the settings: the pivot, then those of the small and those of the big jobs.
PIVOT, SMALL, BIG = 0, 1, 5
WINDOW, NEIGHBOURS, ALPHA, BETA = range(4)


@compiled
def estimate(memory, settings, requested, row):
    """Return the estimate of Eq. 8.8 for a job that has arrived, s, not rounded."""
    counters, jobs, classes = memory.counters, memory.jobs, memory.classes
    renew_vectors(memory)
    group = SMALL if requested < settings[PIVOT] else BIG
    window, wanted = int(settings[group + WINDOW]), int(settings[group + NEIGHBOURS])
    own = jobs[row, CLASS]
    category = classes[own, CATEGORY]
    high = jobs[row, SUBMITTED] if counters[KIND] == BY_SUBMISSION else counters[JOBS_KNOWN]
    low = high - window

    order, latest, first, end = RANK, LATEST_RANK, low, high
    if counters[KIND] == BY_CATEGORY:
        order, latest, end = PLACE, LATEST_PLACE, memory.categories[category, KNOWN]
        first = end - window
    found = 0
    other = memory.categories[category, FRESHEST]
    while other != NONE and classes[other, latest] >= first:
        key = similarity(memory, own, other)
        if found < wanted or key >= memory.keys[wanted - 1]:
            found = consider(memory, other, key, order, first, end, found, wanted)
        other = classes[other, STALER]
    if found == 0:  # no job of the category: the empty template
        for other in range(counters[CLASSES]):
            if classes[other, LATEST_RANK] >= low and classes[other, LATEST] != NONE:
                key = similarity(memory, own, other)
                found = consider(memory, other, key, RANK, low, high, found, wanted)
    limit = settings[group + BETA] * requested
    if found == 0:
        return limit
    return min(mean_and_spread(memory, found, settings[group + ALPHA]), limit)


@compiled
def similarity(memory, own, other):
    """Return Eq. 8.5 of two classes, in whole multiples of one part in :data:`RESOLUTION`.

    A job that asks for the least of everything has no direction: its similarity is 0.
    """
    vectors = memory.vectors
    length = vectors[own, NUMERIC] * vectors[other, NUMERIC]
    if length == 0.0:
        return 0
    product = 0.0
    for place in range(NUMERIC):
        product += vectors[own, place] * vectors[other, place]
    return floor(product / length * RESOLUTION + 0.5)


@compiled
def mean_and_spread(memory, found, alpha):
    """Return Eq. 8.7: mean of the run times plus alpha times their sample deviation."""
    jobs, best = memory.jobs, memory.best
    total = 0
    for place in range(found):
        total += jobs[best[place], RAN]
    mean = total / found
    if found == 1:
        return mean
    squares = 0.0
    for place in range(found):
        away = jobs[best[place], RAN] - mean
        squares += away * away
    return mean + alpha * sqrt(squares / (found - 1))
