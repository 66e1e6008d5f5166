"""What is kept of the jobs that a predictor has heard of, compiled.

Jobs that are alike in all that a predictor compares form a *class*, and classes that share the
nominal attributes of its template a *category*. A class keeps its jobs in a chain, latest first; a
category keeps its classes in the order of their latest jobs. So a search looks at classes that
occur in the window, not at jobs, and stops early: it costs what is different, not what is many.

Several places hold linked lists in arrays; :data:`NONE` ends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from hpcrowd.environment.jobs import Column, Float64Rows, Float64s, Int64Rows, Int64s

NONE = -1

REQUESTED_TIME, START = int(Column.REQUESTED_TIME), int(Column.START)

#: Columns of the table that tell jobs apart: nominal ones, then numeric ones.
COMPARED = (
    *(int(column) for column in (Column.USER, Column.GROUP, Column.QUEUE, Column.EXECUTABLE)),
    *(int(Column.PROCESSORS), REQUESTED_TIME, int(Column.REQUESTED_MEMORY)),
)
NOMINAL, NUMERIC = 4, 3

# Which jobs are "the last N".
BY_SUBMISSION, BY_COMPLETION, BY_CATEGORY = 0, 1, 2

# What is kept of a job.
(
    CLASS,
    SUBMITTED,  # its number in the order of submissions
    RANK,  # its number in the history, by submission or completion; NONE when it is not there
    PLACE,  # its number in the history of its category
    OLDER,  # the next older job of its class
    RAN,  # s; NONE until it has ended
    JOB_FIELDS,
) = range(7)

# What is kept of a class: 4 nominal and 3 numeric attributes, then:
(
    CATEGORY,
    LATEST,  # its latest job in the history
    LATEST_RANK,  # and that one's RANK and PLACE
    LATEST_PLACE,
    FRESHER,  # neighbours in the category, by latest job
    STALER,
    NEXT_CLASS,  # in the same bucket
    CLASS_FIELDS,
) = range(7, 15)

# What is kept of a category: 4 nominal attributes, then:
(
    FRESHEST,  # the class with the latest job
    KNOWN,  # jobs of it in the history
    NEXT_CATEGORY,
    CATEGORY_FIELDS,
) = range(4, 8)

# Counters and settings.
(
    KIND,
    CATEGORY_MASK,  # nominal attributes of the template, a bit each
    CLASS_MASK,  # nominal attributes that tell classes apart
    NUMBERS,  # numeric attributes that do: all of them or none
    JOBS_SEEN,
    JOBS_KNOWN,
    CLASSES,
    CATEGORIES,
    WIDENED,  # bounds have changed since vectors were made
    COUNTERS,
) = range(10)


@dataclass(eq=False, slots=True)
class Experience:
    """Arrays of what is kept; the rows of each are jobs, classes, categories and so on."""

    table: Int64Rows  #: the table of jobs
    compared: Int64s  #: see :data:`COMPARED`
    settings: Float64s  #: of the model
    counters: Int64s
    jobs: Int64Rows
    classes: Int64Rows
    categories: Int64Rows
    buckets: Int64Rows  #: heads of hash chains of classes and categories, shape (2, power of two)
    vectors: Float64Rows  #: normalized numeric attributes of classes and their length
    bounds: Float64Rows  #: least and largest value of each numeric attribute, shape (3, 2)
    keys: Int64s  #: the best found, best first: how near
    best: Int64s  #: and the job


def hashed(values: Int64Rows, row: int, count: int, code: int) -> int:
    """Return a hash of the first values of a row, with ``code`` mixed in."""
    for which in range(count):
        value = values[row, which]
        # 32 bits times 31: numpy warns of overflows.
        code = ((code ^ value ^ (value >> 32)) & 0xFFFFFFFF) * 0x4F1BBCDD
        code = code ^ (code >> 29)
    return code


def alike(values: Int64Rows, one: int, other: int, count: int) -> bool:
    """Return whether the first values of two rows are the same."""
    same = True
    for which in range(count):
        same = same and values[one, which] == values[other, which]
    return same


def meet(memory: Experience, row: int) -> None:
    """Take in a job that has arrived: its class, and its place when the history is by submission.

    A job that comes again (it was requeued) keeps its place.
    """
    counters, jobs, bounds = memory.counters, memory.jobs, memory.bounds
    compared = memory.compared
    if jobs[row, SUBMITTED] != NONE:
        return
    for which in range(counters[NUMBERS]):
        value = float(memory.table[compared[NOMINAL + which], row])
        if value < bounds[which, 0]:
            bounds[which, 0] = value
            counters[WIDENED] = 1
        if value > bounds[which, 1]:
            bounds[which, 1] = value
            counters[WIDENED] = 1
    jobs[row, CLASS] = class_of(memory, row)
    jobs[row, SUBMITTED] = counters[JOBS_SEEN]
    counters[JOBS_SEEN] += 1
    if counters[KIND] == BY_SUBMISSION:
        remember(memory, row, jobs[row, SUBMITTED])


def learn(memory: Experience, row: int, ran: int) -> None:
    """Take in that a job has ended after ``ran`` seconds."""
    counters = memory.counters
    if memory.jobs[row, SUBMITTED] == NONE or memory.jobs[row, RAN] != NONE:
        return  # it never arrived, or has ended before
    memory.jobs[row, RAN] = ran
    if counters[KIND] != BY_SUBMISSION:
        remember(memory, row, counters[JOBS_KNOWN])
    counters[JOBS_KNOWN] += 1


def remember(memory: Experience, row: int, rank: int) -> None:
    """Put a job at the end of the history, and its class at the head of its category."""
    jobs, classes, categories = memory.jobs, memory.classes, memory.categories
    which = jobs[row, CLASS]
    category = classes[which, CATEGORY]
    jobs[row, RANK] = rank
    jobs[row, PLACE] = categories[category, KNOWN]
    categories[category, KNOWN] += 1
    jobs[row, OLDER] = classes[which, LATEST]
    classes[which, LATEST] = row
    classes[which, LATEST_RANK], classes[which, LATEST_PLACE] = rank, jobs[row, PLACE]
    first = categories[category, FRESHEST]
    if first == which:
        return
    before, after = classes[which, FRESHER], classes[which, STALER]
    if before != NONE:
        classes[before, STALER] = after
        if after != NONE:
            classes[after, FRESHER] = before
    classes[which, FRESHER] = NONE
    classes[which, STALER] = first
    if first != NONE:
        classes[first, FRESHER] = which
    categories[category, FRESHEST] = which


def class_of(memory: Experience, row: int) -> int:
    """Return the class of a job; it is made when it is new."""
    counters, classes, buckets = memory.counters, memory.classes, memory.buckets
    table, compared = memory.table, memory.compared
    mask, numbers = counters[CLASS_MASK], counters[NUMBERS]
    new = counters[CLASSES]  # there is a row for each job
    for which in range(NOMINAL + NUMERIC):
        counts = mask >> which & 1 if which < NOMINAL else which < NOMINAL + numbers
        classes[new, which] = table[compared[which], row] if counts else 0
    bucket = hashed(classes, new, NOMINAL + NUMERIC, 0) & (buckets.shape[1] - 1)
    found = buckets[0, bucket]
    while found != NONE:
        if alike(classes, found, new, NOMINAL + NUMERIC):
            return found
        found = classes[found, NEXT_CLASS]
    counters[CLASSES] += 1
    classes[new, CATEGORY] = category_of(memory, new)
    classes[new, LATEST_RANK] = classes[new, LATEST_PLACE] = NONE
    classes[new, LATEST] = classes[new, FRESHER] = classes[new, STALER] = NONE
    classes[new, NEXT_CLASS] = buckets[0, bucket]
    buckets[0, bucket] = new
    normalize(memory, new)
    return new


def category_of(memory: Experience, which: int) -> int:
    """Return the category of a class; it is made when it is new."""
    counters, classes, categories = memory.counters, memory.classes, memory.categories
    buckets, mask = memory.buckets, memory.counters[CATEGORY_MASK]
    new = counters[CATEGORIES]  # there is a row for each job
    for place in range(NOMINAL):
        categories[new, place] = classes[which, place] if mask >> place & 1 else 0
    bucket = hashed(categories, new, NOMINAL, 1) & (buckets.shape[1] - 1)
    found = buckets[1, bucket]
    while found != NONE:
        if alike(categories, found, new, NOMINAL):
            return found
        found = categories[found, NEXT_CATEGORY]
    counters[CATEGORIES] += 1
    categories[new, FRESHEST] = NONE
    categories[new, KNOWN] = 0
    categories[new, NEXT_CATEGORY] = buckets[1, bucket]
    buckets[1, bucket] = new
    return new


def normalize(memory: Experience, which: int) -> None:
    """Make the vector of a class: Eq. 8.4 on each numeric attribute, and its length."""
    classes, vectors, bounds = memory.classes, memory.vectors, memory.bounds
    square = 0.0
    for place in range(NUMERIC):
        low, high = bounds[place, 0], bounds[place, 1]
        value = 0.0
        if high > low:
            value = (classes[which, NOMINAL + place] - low) / (high - low)
        vectors[which, place] = value
        square += value * value
    vectors[which, NUMERIC] = sqrt(square)


def renew_vectors(memory: Experience) -> None:
    """Make all vectors anew when the bounds have become wider."""
    if memory.counters[WIDENED]:
        memory.counters[WIDENED] = 0
        for which in range(memory.counters[CLASSES]):
            normalize(memory, which)


def consider(
    memory: Experience,
    which: int,
    key: int,
    order: int,
    low: int,
    high: int,
    found: int,
    wanted: int,
) -> int:
    """Put jobs of a class among the best: those that have ended, with low <= number < high.

    The nearest (largest ``key``) come first, then the latest. Numbers are RANK or PLACE, as
    ``order`` says. Returns how many jobs are among the best now.
    """
    jobs, keys, best = memory.jobs, memory.keys, memory.best
    job = memory.classes[which, LATEST]
    while job != NONE and jobs[job, order] >= low:
        rank = jobs[job, RANK]
        if found == wanted:
            last = wanted - 1
            if key < keys[last] or (key == keys[last] and rank < jobs[best[last], RANK]):
                break
        if jobs[job, order] < high and jobs[job, RAN] != NONE:
            place = found if found < wanted else wanted - 1
            while place > 0 and (
                keys[place - 1] < key
                or (keys[place - 1] == key and jobs[best[place - 1], RANK] < rank)
            ):
                keys[place] = keys[place - 1]
                best[place] = best[place - 1]
                place -= 1
            keys[place] = key
            best[place] = job
            if found < wanted:
                found += 1
        job = jobs[job, OLDER]
    return found


def hash_anew(memory: Experience) -> None:
    """Put all classes and categories into empty buckets."""
    counters, classes, categories = memory.counters, memory.classes, memory.categories
    buckets = memory.buckets
    mask = buckets.shape[1] - 1
    for which in range(counters[CLASSES]):
        bucket = hashed(classes, which, NOMINAL + NUMERIC, 0) & mask
        classes[which, NEXT_CLASS] = buckets[0, bucket]
        buckets[0, bucket] = which
    for which in range(counters[CATEGORIES]):
        bucket = hashed(categories, which, NOMINAL, 1) & mask
        categories[which, NEXT_CATEGORY] = buckets[1, bucket]
        buckets[1, bucket] = which
