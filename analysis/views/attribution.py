"""Dividing what was waited on a cluster among the users who run there, compiled."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.jobs import Float64Rows, Int64Rows

# Rows of runs and waits.
AT, CHANGE, SINCE, USER, COUNTED = range(5)

# Rows by user: processors held, when it stopped, who runs, the place there, and the chain.
HELD, STOPPED, LISTED, PLACE, AFTER, BEFORE = range(6)

# Rows by user: the integral of the share, and the growth up to which it is known.
AREA, AT_GROWTH = range(2)

# Rows by who waits: processors, and the last second that was charged.
ASKED, LAST = range(2)


@dataclass(eq=False, slots=True)
class Course:
    """Where it is in time."""

    now: int = 0
    event: int = 0  #: the next change of who runs
    running: int = 0  #: users in the list
    total: int = 0  #: processors in use
    growth: float = 0.0  #: the integral of one over them
    idle: float = 0.0  #: s without any
    idle_until: int = 0


def attribute(
    runs: Int64Rows,
    waits: Int64Rows,
    places: Int64Rows,
    times: Float64Rows,
    own: Int64Rows,
    seen: Float64Rows,
    spent: Float64Rows,
    jobs: Int64Rows,
) -> None:
    """Add what the waits on one cluster owe to the users who run there.

    With A_X(t) the integral of the share of X, a wait of p processors from s to e owes X
    p (A_X(e) - A_X(s)). So the processors that Y waits for are multiplied by what A_X has grown
    whenever one of its waits begins or ends, for those X only that ran since the last time. A_X
    itself is R_X times the growth of g, the integral of one over all processors in use: it is
    brought up to date when R_X changes, or when somebody reads it.

    Users who run are listed; those who ran are in a chain, the last to stop first, so that no time
    is spent on the others.

    Parameters
    ----------
    runs, waits
        Starts and ends of jobs, and of waits, in the order of time, shape (columns, events).
        Columns are the second, the processors added, the second of the begin, the user and, of
        waits, whether the wait counts as due to nobody already.
    places, times, own, seen
        Zeros, of shapes (6, by + 1), (2, by), (2, delayed) and (delayed, by + 1).
    spent, jobs
        Processor-seconds and jobs that are added to, shape (delayed, by + 1); the last column is
        nobody's.
    """
    nobody, course = times.shape[1], Course()
    for user in range(nobody + 1):
        places[AFTER, user] = places[BEFORE, user] = nobody  # the chain begins and ends at nobody
        places[PLACE, user] = -1
    for user in range(own.shape[1]):
        own[LAST, user] = -1
    for wait in range(waits.shape[1]):
        at, mine, change = waits[AT, wait], waits[USER, wait], waits[CHANGE, wait]
        _go_to(course, runs, places, times, at)
        if at > own[LAST, mine]:
            _charge(course, places, times, own, seen, spent, mine)
            own[LAST, mine] = at
        own[ASKED, mine] += change
        if change < 0:
            counts = waits[COUNTED, wait] == 0
            _count(course, places, jobs, mine, waits[SINCE, wait], counts)


def _go_to(course: Course, runs: Int64Rows, places: Int64Rows, times: Float64Rows, at: int) -> None:
    """Let users begin and stop to run before a second."""
    while True:
        # Changes of this very second matter only to what comes after it.
        changes = course.event < runs.shape[1] and runs[AT, course.event] < at
        until = runs[AT, course.event] if changes else at
        if until > course.now:
            if course.total > 0:
                course.growth += (until - course.now) / course.total
            else:
                course.idle += until - course.now
                course.idle_until = until
            course.now = until
        if not changes:
            break
        user = runs[USER, course.event]
        _grow(course, places, times, user)
        if places[HELD, user] == 0:
            _list(course, places, user)
        places[HELD, user] += runs[CHANGE, course.event]
        course.total += runs[CHANGE, course.event]
        if places[HELD, user] == 0:
            _chain(course, places, user)
        if course.total == 0:
            course.growth = 0.0  # nobody looks back: all areas are up to date
        course.event += 1


def _grow(course: Course, places: Int64Rows, times: Float64Rows, user: int) -> None:
    """Bring the integral of the share of a user up to date."""
    times[AREA, user] += places[HELD, user] * (course.growth - times[AT_GROWTH, user])
    times[AT_GROWTH, user] = course.growth


def _list(course: Course, places: Int64Rows, user: int) -> None:
    """Put a user who begins to run into the list, and take it out of the chain."""
    nobody = places.shape[1] - 1
    places[LISTED, course.running] = user
    places[PLACE, user] = course.running
    course.running += 1
    before, after = places[BEFORE, user], places[AFTER, user]
    if before != nobody or places[AFTER, nobody] == user:  # in the chain
        places[AFTER, before] = after
        places[BEFORE, after] = before
        places[AFTER, user] = places[BEFORE, user] = nobody


def _chain(course: Course, places: Int64Rows, user: int) -> None:
    """Take a user who stops to run out of the list, and put it first into the chain."""
    nobody = places.shape[1] - 1
    course.running -= 1
    moved, place = places[LISTED, course.running], places[PLACE, user]
    places[LISTED, place], places[PLACE, moved] = moved, place
    places[STOPPED, user] = course.now
    first = places[AFTER, nobody]
    places[AFTER, user], places[BEFORE, user] = first, nobody
    places[BEFORE, first] = places[AFTER, nobody] = user


def _charge(
    course: Course,
    places: Int64Rows,
    times: Float64Rows,
    own: Int64Rows,
    seen: Float64Rows,
    spent: Float64Rows,
    mine: int,
) -> None:
    """Charge what a user waits for to those who ran since the last time."""
    nobody, weight = places.shape[1] - 1, own[ASKED, mine]
    for i in range(course.running):
        user = places[LISTED, i]
        _grow(course, places, times, user)
        spent[mine, user] += weight * (times[AREA, user] - seen[mine, user])
        seen[mine, user] = times[AREA, user]
    user = places[AFTER, nobody]
    while user != nobody and places[STOPPED, user] > own[LAST, mine]:
        spent[mine, user] += weight * (times[AREA, user] - seen[mine, user])
        seen[mine, user] = times[AREA, user]
        user = places[AFTER, user]
    spent[mine, nobody] += weight * (course.idle - seen[mine, nobody])
    seen[mine, nobody] = course.idle


def _count(
    course: Course, places: Int64Rows, jobs: Int64Rows, mine: int, since: int, counts_idle: bool
) -> None:
    """Count a job that waited for those who ran since a second."""
    nobody = places.shape[1] - 1
    for i in range(course.running):
        jobs[mine, places[LISTED, i]] += 1
    user = places[AFTER, nobody]
    while user != nobody and places[STOPPED, user] > since:
        jobs[mine, user] += 1
        user = places[AFTER, user]
    if course.idle_until > since and counts_idle:
        jobs[mine, nobody] += 1
