"""Accounts of users, queues and groups: limits on running jobs, and decaying usage."""

from __future__ import annotations

from typing import NamedTuple

from hpcrowd.environment.compilation import compiled, inlined
from hpcrowd.environment.engine.kernel.places import PROCESSORS
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.schedulers import fair_share
from hpcrowd.environment.schedulers.fair_share import LN2

half = compiled(fair_share.half)

# Rows of ``counts``.
JOBS, HELD, MOST_JOBS, MOST_HELD, SINCE, SEEN, A_COUNT = range(7)

# Rows of ``amounts``.
USED, SHARE, KEY, M_COUNT = range(4)

# Rows of ``of``: the first three are limits.
LIMITS, USAGE, O_COUNT = 3, 3, 4


class Accounts(NamedTuple):
    """The accounts, one column each, and the accounts of each job."""

    #: running jobs, their processors, the limits of both, since when usage stands (s), and the pass
    #: for which KEY was computed, shape (A_COUNT, accounts)
    counts: Int64s
    #: usage at that time (processor-seconds), share, usage over share, shape (M_COUNT, accounts)
    amounts: Float64s
    #: accounts of each job by its row, -1 for none: three with limits, and the one that usage is
    #: charged to, shape (O_COUNT, jobs)
    of: Int64s


@inlined
def allowed(accounts, job, processors):
    """Return whether the job would exceed no limit of its accounts."""
    counts = accounts.counts
    for i in range(LIMITS):
        account = accounts.of[i, job]
        if account >= 0 and (
            counts[JOBS, account] >= counts[MOST_JOBS, account]
            or (
                counts[JOBS, account] > 0
                and counts[HELD, account] + processors > counts[MOST_HELD, account]
            )
        ):
            return False
    return True


@compiled
def hold(accounts, jobs, job, count):
    """Count a job as running on the accounts with limits, or with -1 as no longer running."""
    for i in range(LIMITS):
        account = accounts.of[i, job]
        if account >= 0:
            accounts.counts[JOBS, account] += count
            accounts.counts[HELD, account] += count * jobs[PROCESSORS, job]


@compiled
def usage(accounts, account, now, half_life):
    """Return the decayed usage of an account."""
    left = half(float(now - accounts.counts[SINCE, account]) / half_life)
    held = float(accounts.counts[HELD, account])
    return accounts.amounts[USED, account] * left + held * (half_life / LN2) * (1.0 - left)


@compiled
def change_usage(accounts, jobs, job, count, now, half_life):
    """Note the start (``count`` 1) or end (-1) of a job on the account that it is charged to."""
    account = accounts.of[USAGE, job]
    if account >= 0:
        accounts.amounts[USED, account] = usage(accounts, account, now, half_life)
        accounts.counts[SINCE, account] = now
        accounts.counts[HELD, account] += count * jobs[PROCESSORS, job]


@compiled
def charge_past(accounts, jobs, rows, counts, times, half_life):
    """Note starts and ends of the past, in the order of time."""
    for i in range(len(rows)):
        change_usage(accounts, jobs, rows[i], counts[i], times[i], half_life)
