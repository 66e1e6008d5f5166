"""Constants of compiled code: columns, states, policies, places in the scalars, groups of arrays.

Compiled functions take the numbers as constants. Arrays that belong together are passed in a named
tuple. Functions called from Python take a plain tuple in the same order and make the named one
themselves: numba needs microseconds per call to unpack a named one from Python.
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
RENOUNCED, UNFINISHED = int(State.RENOUNCED), int(State.UNFINISHED)
FAILED = int(State.FAILED)

#: Mark of what did not happen.
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
    STALE,  # the results of the last EASY pass no longer hold
    SHADOW,
    SPARE,  # processors that the head leaves free at the shadow time
    SCANNED,  # the queue before here was refused by the last pass
    ALLOWANCE,  # events until PAUSE
    EVENTS,  # completions and arrivals so far
    SHARED,  # another object counts the units: jobs are reported, not units
    NUMBER,  # of the cluster
    WAITING,  # jobs in the queue
    ASKED,  # processors that they request
    WAKE,  # when a policy wants a pass though nothing ends or arrives
    EXACT,  # estimates are run times
    FACTOR,  # else requested times, times FACTOR, over DIVISOR
    DIVISOR,
    CHANGE_AT,  # when the platform changes next
    CLOSED,  # there is maintenance: no passes
    CLOSES,  # jobs that start must be expected to end by then
    REOPENS,  # when that maintenance ends
    PACE,  # speed of the nodes, over PACE_ONE, since the beginning
    PACE_ONE,
    SLEEPS,  # idle nodes are switched off: a ledger of them follows the scalars
    COUNT,
) = range(38)

#: A gap in the queue requests more processors than any machine has.
GAP = FOREVER

# Rows of the queue: job, processors, estimate (s); then, by block of 2**BLOCK places, bounds that
# processors and estimates of the jobs in it are not below.
ROW, NEED, LENGTH, LEAST_NEED, LEAST_LENGTH = range(5)
QUEUE_ROWS = 5
BLOCK = 6

#: Number of waiting jobs that may be examined per event of the allowance.
LOOKS = 256


class Cluster(NamedTuple):
    """The arrays of one cluster; they have room for more columns than are in use."""

    jobs: Int64s  #: the table of jobs, a row for each column of it, shape (columns, jobs)
    s: Int64s  #: the scalars, shape (COUNT,), and a ledger behind them, see ``sleeping.py``
    sorted: Int64s  #: rows of jobs submitted in bulk, by arrival, shape (arrivals,)
    heap: Int64s  #: arrival (s) and row of jobs submitted later, a heap, shape (2, arrivals)
    #: by submission and job number, see ROW, shape (QUEUE_ROWS, waiting); for a policy outside the
    #: jobs that arrived since its last pass
    queue: Int64s
    ends: Int64s  #: end (s) and row of running jobs, a heap, shape (2, running)
    #: under EASY expected end (s) and processors of running jobs, by time, shape (2, running); for
    #: a policy outside the rows of jobs that ended since its last pass in the first row
    expected: Int64s
    finished: Int64s  #: units finished in this phase, or jobs if others count, shape (units,)


def with_room(array: Int64s, columns: int) -> Int64s:
    """Return the array, widened if it has fewer columns than needed."""
    return array if array.shape[-1] >= columns else wider(array, columns)


def wider(array: Any, columns: int, fill: int = 0) -> Any:
    """Return the array with that many columns; new ones hold ``fill``."""
    grown = np.full((*array.shape[:-1], columns), fill, array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def without(heap: Int64s, size: int, jobs: Int64s) -> int:
    """Take jobs out of the first ``size`` entries of a heap; return how many entries are left."""
    left = heap[:, :size][:, ~np.isin(heap[1, :size], jobs)]
    count = len(left[0])
    heap[:, :count] = left[:, np.lexsort((left[1], left[0]))]  # a sorted array is a heap
    return count
