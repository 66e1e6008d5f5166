"""What compiled code names: columns, states, policies, places in the scalars, groups of arrays.

Compiled functions take the numbers as constants. Arrays that belong together are handed from one to
the next in a named tuple. What Python calls takes a plain tuple in the same order and makes the
named one itself: numba looks at a named one from Python for microseconds at every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, State
from hpcrowd.environment.stops import FOREVER, Stop

USER = int(Column.USER)
GROUP = int(Column.GROUP)
QUEUE = int(Column.QUEUE)
PROCESSORS = int(Column.PROCESSORS)
RUN_TIME = int(Column.RUN_TIME)
REQUESTED_TIME = int(Column.REQUESTED_TIME)
RECORDED_SUBMIT = int(Column.RECORDED_SUBMIT)
RECORDED_START = int(Column.RECORDED_START)
SUBMIT = int(Column.SUBMIT)
ENQUEUED = int(Column.ENQUEUED)
ESTIMATE = int(Column.ESTIMATE)
PROMISED = int(Column.PROMISED)
START = int(Column.START)
END = int(Column.END)
UNIT = int(Column.UNIT)
CLUSTER = int(Column.CLUSTER)
STATE = int(Column.STATE)

COMPLETED, KILLED, REJECTED = int(State.COMPLETED), int(State.KILLED), int(State.REJECTED)
RENOUNCED = int(State.RENOUNCED)

#: What did not happen.
NEVER = UNKNOWN

DONE, FINISHED, HALT, PAUSE, ROOM, PASS, CHANGE = (int(stop) for stop in Stop)

# Policies; OUTSIDE is any other, whose passes the engine's owner calls.
FCFS, EASY, RECORDED, OUTSIDE = 0, 1, 2, 3

# Phases of an instant.
COMPLETIONS, REACTIONS, ARRIVALS = 0, 1, 2

# Places in the array of scalars.
(
    NOW,
    PHASE,
    POLICY,
    KILL,  # stop jobs at their requested time
    CAPACITY,
    FREE,
    SORTED_NEXT,  # first not yet arrived job of the sorted arrivals
    SORTED_END,
    HEAP_SIZE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUE_GAPS,  # places in the queue left by backfilled jobs
    RUNNING,
    EXPECTED_FIRST,
    EXPECTED_END,
    FINISHED_COUNT,
    STALE,  # what the last EASY pass learned does not hold any more
    SHADOW,
    SPARE,  # processors that the head leaves free at the shadow time
    SCANNED,  # the queue before here was refused by the last pass
    ALLOWANCE,  # events until PAUSE
    EVENTS,  # completions and arrivals so far
    RELEASE,  # dependencies are followed here instead of by users
    SHARED,  # others count the units: jobs are told, not units
    NUMBER,  # of the cluster
    WAITING,  # jobs in the queue
    ASKED,  # processors that they ask for
    WAKE,  # when a policy wants a pass though nothing ends or arrives
    EXACT,  # estimates are run times
    FACTOR,  # else requested times, times FACTOR, over DIVISOR
    DIVISOR,
    CHANGE_AT,  # when the platform changes next
    CLOSED,  # there is maintenance: no passes
    CLOSES,  # jobs that start must be believed to end by then
    REOPENS,  # when that maintenance ends
    PACE,  # speed of the nodes, over PACE_ONE, since the beginning
    PACE_ONE,
    COUNT,
) = range(38)

#: A gap in the queue asks for more processors than any machine has.
GAP = FOREVER

#: Waiting jobs that one event of the allowance pays for looking at.
LOOKS = 256


class Cluster(NamedTuple):
    """What one cluster holds; arrays have room for more columns than are in use."""

    jobs: Int64s  #: the table of jobs, a row for each column of it, shape (columns, jobs)
    s: Int64s  #: the scalars, shape (COUNT,)
    sorted: Int64s  #: rows of jobs submitted in bulk, by arrival, shape (arrivals,)
    heap: Int64s  #: arrival (s) and row of jobs submitted later, a heap, shape (2, arrivals)
    #: row, processors and estimate (s) by submission and job number, shape (3, waiting); for a
    #: policy outside the jobs that arrived since its last pass
    queue: Int64s
    ends: Int64s  #: end (s) and row of running jobs, a heap, shape (2, running)
    #: under EASY expected end (s) and processors of running jobs, by time, shape (2, running); for
    #: a policy outside the rows of jobs that ended since its last pass in the first row
    expected: Int64s
    finished: Int64s  #: units over in this phase, or jobs where others count, shape (units,)


class Units(NamedTuple):
    """What users wait for, and how finished units release others; see ``loop._release``."""

    remaining: Int64s  #: jobs of each unit that are not over yet, shape (units,)
    #: of each unit first edge, dependencies left, earliest start (s), first of ``rows``; what is
    #: used together stands together, since users' units are far apart in memory, shape (units, 4)
    links: Int64s
    edges: Int64s  #: successor and think time (s) of each dependency, shape (edges, 2)
    rows: Int64s  #: rows of jobs, unit after unit, shape (jobs of units,)


def with_room(array: Int64s, columns: int) -> Int64s:
    """Return the array, wider where it has fewer columns than that."""
    return array if array.shape[-1] >= columns else wider(array, columns)


def wider(array: Any, columns: int, fill: int = 0) -> Any:
    """Return the array with so many columns; ``fill`` comes behind what was there."""
    grown = np.full((*array.shape[:-1], columns), fill, array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown
