"""Constants of compiled code: columns, states, policies, places in the scalars, groups of arrays.

Numbers become literals when a module is compiled, and arrays that belong together are passed as one
object, since calls copy the description of each array.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.jobs import UNKNOWN, Column, Int64Rows, Int64s, State
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


@dataclass(eq=False, slots=True)
class Cluster:
    """The arrays of one cluster; they have room for more columns than are in use."""

    jobs: Int64Rows  #: the table of jobs, a row for each column of it, shape (columns, jobs)
    s: Int64s  #: the scalars, shape (COUNT,), and a ledger behind them, see ``sleeping.py``
    sorted: Int64s  #: rows of jobs submitted in bulk, by arrival, shape (arrivals,)
    heap: Int64Rows  #: arrival (s) and row of jobs submitted later, a heap, shape (2, arrivals)
    #: by submission and job number, see ROW, shape (QUEUE_ROWS, waiting); for a policy outside the
    #: jobs that arrived since its last pass
    queue: Int64Rows
    ends: Int64Rows  #: end (s) and row of running jobs, a heap, shape (2, running)
    #: under EASY expected end (s) and processors of running jobs, by time, shape (2, running); for
    #: a policy outside the rows of jobs that ended since its last pass in the first row
    expected: Int64Rows
    finished: Int64s  #: units finished in this phase, or jobs if others count, shape (units,)
