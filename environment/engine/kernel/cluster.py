"""What compiled code works on: the jobs, and the state and arrays of one cluster.

Arrays that belong together are passed as one object, since calls copy the description of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import Row, rows
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.kernel.sleeping import Ledger
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64Rows, Int64s
from hpcrowd.environment.stops import FOREVER

#: Mark of what did not happen.
NEVER = UNKNOWN

# Policies; OUTSIDE is any other, whose passes the engine's owner calls.
FCFS, EASY, RECORDED, OUTSIDE = 0, 1, 2, 3

# Phases of an instant.
COMPLETIONS, REACTIONS, ARRIVALS = 0, 1, 2

#: A gap in the queue requests more processors than any machine has.
GAP = FOREVER

#: Places in a block of the queue, as a power of two.
BLOCK = 6

#: Rows of the queue.
QUEUE_ROWS = 5

#: Number of waiting jobs that may be examined per event of the allowance.
LOOKS = 256


@dataclass(eq=False, slots=True)
class Jobs:
    """The columns of the table of jobs, by row of the job; see :class:`Column`."""

    table: Int64Rows  #: shape (columns, jobs)

    user = Row("table", Column.USER)
    group = Row("table", Column.GROUP)
    queue = Row("table", Column.QUEUE)
    processors = Row("table", Column.PROCESSORS)
    run_time = Row("table", Column.RUN_TIME)
    requested_time = Row("table", Column.REQUESTED_TIME)
    recorded_submit = Row("table", Column.RECORDED_SUBMIT)
    recorded_start = Row("table", Column.RECORDED_START)
    submit = Row("table", Column.SUBMIT)
    enqueued = Row("table", Column.ENQUEUED)
    estimate = Row("table", Column.ESTIMATE)
    promised = Row("table", Column.PROMISED)
    start = Row("table", Column.START)
    end = Row("table", Column.END)
    unit = Row("table", Column.UNIT)
    cluster = Row("table", Column.CLUSTER)
    state = Row("table", Column.STATE)
    paused = Row("table", Column.PAUSED)


@dataclass(eq=False, slots=True)
class Queue:
    """Jobs that wait, by submission and number.

    Under a policy outside the loop, jobs that arrived since its last pass.
    """

    table: Int64Rows  #: shape (QUEUE_ROWS, waiting)

    #: Row of the job, its processors (GAP where it has left), its estimate (s); by block of
    #: 2**BLOCK places, bounds that processors and estimates of the jobs in it are not below.
    job, need, length, least_need, least_length = rows("table", QUEUE_ROWS)


@dataclass(eq=False, slots=True)
class Expected:
    """When running jobs are expected to end."""

    table: Int64Rows  #: shape (2, running)

    #: Under EASY, s, and their processors, by time.
    end, processors = rows("table", 2)

    #: Under a policy outside the loop, jobs that ended since its last pass.
    ended = Row("table", 0)


@dataclass(eq=False, slots=True)
class ClusterState:
    """Where a cluster is in time, how much of its arrays is in use, and how it is set."""

    now: int = 0
    phase: int = COMPLETIONS
    policy: int = FCFS
    kill: bool = False  #: stop jobs at their requested time
    capacity: int = 0
    free: int = 0
    sorted_next: int = 0  #: first not yet arrived job of the sorted arrivals
    sorted_end: int = 0
    arriving: int = 0  #: jobs in the heap of arrivals
    queue_head: int = 0
    queue_tail: int = 0
    queue_gaps: int = 0  #: places in the queue left by backfilled jobs
    running: int = 0
    expected_first: int = 0
    expected_end: int = 0
    finished: int = 0  #: units, or jobs, noted in this phase
    stale: bool = True  #: the results of the last EASY pass no longer hold
    shadow: int = 0
    spare: int = 0  #: processors that the head leaves free at the shadow time
    scanned: int = 0  #: the queue before here was refused by the last pass
    allowance: int = 0  #: events until PAUSE
    events: int = 0  #: completions and arrivals so far
    shared: bool = False  #: another object counts the units: jobs are reported, not units
    number: int = 0  #: of the cluster
    waiting: int = 0  #: jobs in the queue
    asked: int = 0  #: processors that they request
    wake: int = FOREVER  #: when a policy wants a pass though nothing ends or arrives
    exact: bool = False  #: estimates are run times
    factor: int = 1  #: else requested times, times this, over ``divisor``
    divisor: int = 1
    change_at: int = 0  #: when the platform changes next
    closed: bool = False  #: there is maintenance: no passes
    closes: int = 0  #: jobs that start must be expected to end by then
    reopens: int = 0  #: when that maintenance ends
    pace: int = 1  #: speed of the nodes, over ``pace_one``, since the beginning
    pace_one: int = 1
    sleeps: bool = False  #: idle nodes are switched off


@dataclass(eq=False, slots=True)
class Cluster:
    """The state and arrays of one cluster; they have room for more columns than are in use."""

    jobs: Jobs
    state: ClusterState
    sorted: Int64s  #: rows of jobs submitted in bulk, by arrival, shape (arrivals,)
    arrivals: Heap  #: arrivals (s) of jobs submitted later
    queue: Queue
    ends: Heap  #: ends (s) of running jobs
    expected: Expected
    finished: Int64s  #: units finished in this phase, or jobs if others count, shape (units,)
    ledger: Ledger  #: of idle nodes, if they are switched off
