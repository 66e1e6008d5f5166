"""What compiled code names by number: columns, states, policies, and places in the scalars.

Compiled functions take these as constants. The decorators :data:`compiled`,
:data:`released` and :data:`inlined` stand here too.
"""

from __future__ import annotations

from numba import njit

from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.stops import FOREVER, Stop

#: No reference counting: the functions only work on arrays that their caller holds, and counting
#: at every inner call made a run five times slower (1.0 against 0.2 microseconds a job, KTH-SP2).
compiled = njit(cache=True, _nrt=False)  # type: ignore[call-overload]

#: The same for what is long and may run beside others in threads: it lets Python go meanwhile.
released = njit(cache=True, _nrt=False, nogil=True)  # type: ignore[call-overload]

#: The same for what runs at every event: put into its caller, which then need not hand over a
#: dozen arrays (0.12 against 0.19 microseconds a job, KTH-SP2).
inlined = njit(cache=True, _nrt=False, inline="always")  # type: ignore[call-overload]

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
