"""Predictions of run times, compiled: of jobs that have arrived, and along a recorded trace.

There are three models: the mean of a user's latest jobs that have ended (Tsafrir et al. 2007),
nearest neighbours with a weighted average (thesis Eqs. 8.1 to 8.3), and the history-based predictor
of Minh 2012, chapter 8.
"""

from __future__ import annotations

from math import exp, floor, inf, sqrt

from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.predictors.kernel.experience import (
    BY_CATEGORY,
    BY_SUBMISSION,
    CATEGORY,
    CLASS,
    CLASSES,
    FRESHEST,
    JOBS_KNOWN,
    JOBS_SEEN,
    KIND,
    KNOWN,
    LATEST,
    LATEST_PLACE,
    LATEST_RANK,
    NOMINAL,
    NONE,
    NUMERIC,
    PLACE,
    RAN,
    RANK,
    REQUESTED_TIME,
    STALER,
    START,
    SUBMITTED,
    Experience,
    consider,
    learn,
    meet,
    renew_vectors,
)

# Models.
LAST_TWO, NEAREST, HISTORY = range(3)

#: Similarities and distances are compared, and distances weighed, in whole multiples of one part in
#: so many, so that rounding errors of the last digits do not decide who is latest among equals.
RESOLUTION = 1e9

# Places of the settings of the mean of a user's latest jobs.
JOBS, CAPPED = range(2)


def from_last_two(memory: Experience, requested: int, row: int) -> float:
    """Return the mean run time of the user's latest jobs that have ended, s, not rounded."""
    jobs, settings = memory.jobs, memory.settings
    # A class is a user: all are as near as each other, and the latest come first.
    high = memory.counters[JOBS_SEEN]
    found = consider(memory, jobs[row, CLASS], 0, RANK, 0, high, 0, int(settings[JOBS]))
    value = float(requested)
    if found > 0:
        total = 0
        for place in range(found):
            total += jobs[memory.best[place], RAN]
        value = total / found
    return min(value, float(requested)) if settings[CAPPED] else value


# Places of the settings of nearest neighbours; the weights of all attributes come last.
WINDOW, NEIGHBOURS, BANDWIDTH, CAP, WEIGHTS = range(5)


def from_nearest(memory: Experience, requested: int, row: int) -> float:
    """Return the estimate of Eq. 8.3 for a job that has arrived, s, not rounded."""
    counters, jobs, classes = memory.counters, memory.jobs, memory.classes
    settings = memory.settings
    renew_vectors(memory)
    wanted = int(settings[NEIGHBOURS])
    own = jobs[row, CLASS]
    high = jobs[row, SUBMITTED] if counters[KIND] == BY_SUBMISSION else counters[JOBS_KNOWN]
    low = high - int(settings[WINDOW])
    found = 0
    limit = inf
    weight = 0.0
    for place in range(NOMINAL + NUMERIC):
        weight += settings[WEIGHTS + place]
    other = memory.categories[classes[own, CATEGORY], FRESHEST]
    while other != NONE and classes[other, LATEST_RANK] >= low:
        apart = squares(memory, own, other, limit)
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
    return min(value, float(requested)) if settings[CAP] else value


def squares(memory: Experience, own: int, other: int, limit: float) -> float:
    """Return the sum of Eq. 8.1 for two classes, or less of it where that is above the limit."""
    classes, vectors, settings = memory.classes, memory.vectors, memory.settings
    total = 0.0
    for place in range(NOMINAL):
        # Who differs is hard to foresee, so no branch.
        total += settings[WEIGHTS + place] * (classes[own, place] != classes[other, place])
    if total > limit:
        return total
    for place in range(NUMERIC):
        away = vectors[own, place] - vectors[other, place]
        total += settings[WEIGHTS + NOMINAL + place] * (away * away)
    return total


def weighted_mean(memory: Experience, found: int, bandwidth: float) -> float:
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


# Places of the settings of the history-based predictor: the pivot, then those of the small and
# those of the big jobs.
PIVOT, SMALL, BIG = 0, 1, 5
LAST, SIMILAR, ALPHA, BETA = range(4)


def from_history(memory: Experience, requested: int, row: int) -> float:
    """Return the estimate of Eq. 8.8 for a job that has arrived, s, not rounded."""
    counters, jobs, classes = memory.counters, memory.jobs, memory.classes
    settings = memory.settings
    renew_vectors(memory)
    group = SMALL if requested < settings[PIVOT] else BIG
    window, wanted = int(settings[group + LAST]), int(settings[group + SIMILAR])
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


def similarity(memory: Experience, own: int, other: int) -> int:
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


def mean_and_spread(memory: Experience, found: int, alpha: float) -> float:
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


def predict(model: int, memory: Experience, row: int) -> int:
    """Return what a model predicts of a job that has arrived: s, rounded half up, at least 1."""
    requested = memory.table[REQUESTED_TIME, row]
    if model == LAST_TWO:
        value = from_last_two(memory, requested, row)
    elif model == NEAREST:
        value = from_nearest(memory, requested, row)
    else:
        value = from_history(memory, requested, row)
    return max(floor(value + 0.5), 1)


def predict_all(model: int, memory: Experience, rows: Int64s, predicted: Int64s) -> int:
    """Fill in the predictions of jobs; return the first that has not arrived, or NONE."""
    for place in range(len(rows)):
        if memory.jobs[rows[place], SUBMITTED] == NONE:
            return rows[place]
        predicted[place] = predict(model, memory, rows[place])
    return NONE


def meet_all(memory: Experience, rows: Int64s) -> None:
    """Take in jobs that have arrived."""
    for place in range(len(rows)):
        meet(memory, rows[place])


def learn_all(memory: Experience, rows: Int64s, now: int) -> None:
    """Take in that jobs have ended now."""
    for place in range(len(rows)):
        learn(memory, rows[place], now - memory.table[START, rows[place]])


def follow(
    model: int, memory: Experience, time: Int64s, row: Int64s, kind: Int64s, predicted: Int64s
) -> None:
    """Go through events and fill in what is predicted of each job at its arrival, s."""
    at = 0
    while at < len(time):
        until = at + 1
        while until < len(time) and time[until] == time[at] and kind[until] == kind[at]:
            until += 1
        rows = row[at:until]
        if kind[at] == 0:
            learn_all(memory, rows, time[at])
        else:
            meet_all(memory, rows)
            for job in rows:
                predicted[job] = predict(model, memory, job)
        at = until
