"""Idle nodes that are switched off: what the passes of the engine do about them.

The ledger of idle processors, ``environment/power/kernel/ledger.py``, is behind the scalars of the
engine. A pass decides as if all nodes were on. A job whose nodes are off holds its processors from
then on and starts when they are on; after the pass its expected end is set right.
"""

from __future__ import annotations

from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.power.kernel.ledger import (
    DELAYED,
    HEAD,
    ROOM,
    SEEN,
    balance,
    make_room,
    note_start,
    on_now,
    settle,
    take,
)


@compiled
def prepare(s):
    """Take note of processors that are free again; return whether a pass has room in the ledger."""
    ledger = s[S.COUNT :]
    if not make_room(ledger, s[S.WAITING]):
        return False
    balance(ledger, s[S.NOW], s[S.FREE])
    return True


@compiled
def switch_on(jobs, s, job):
    """Take idle processors for a job that starts; return how many s it waits for its nodes.

    A job without length leaves the nodes that are on as they are, however many such jobs run
    within a second.
    """
    ledger, now, need = s[S.COUNT :], s[S.NOW], jobs[S.PROCESSORS, job]
    run = jobs[S.RUN_TIME, job]
    if s[S.KILL]:
        run = min(run, jobs[S.REQUESTED_TIME, job])
    if run == 0:
        settle(ledger, now, ledger[:0])
        if on_now(ledger, now) >= need:
            return 0
    delay = take(ledger, now, need, ledger[:0])
    if delay:
        note_start(ledger, job, now, now + delay)
    return delay


@compiled
def pending(s):
    """Return how many delayed starts the policy has not taken note of."""
    return s[S.COUNT + DELAYED] - s[S.COUNT + SEEN]


@compiled
def next_pending(s):
    """Return the row of the next of them, which then counts as noted."""
    ledger = s[S.COUNT :]
    place = HEAD + 4 * ledger[ROOM] + 3 * ledger[SEEN]
    ledger[SEEN] += 1
    return ledger[place]
