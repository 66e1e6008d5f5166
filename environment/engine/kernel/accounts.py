"""Accounts of users, queues and groups: limits on running jobs, and decaying usage."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.places import PROCESSORS
from hpcrowd.environment.jobs import Float64Rows, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import LN2, half

# Rows of ``counts``.
JOBS, HELD, MOST_JOBS, MOST_HELD, SINCE, SEEN, A_COUNT = range(7)

# Rows of ``amounts``.
USED, SHARE, KEY, M_COUNT = range(4)

# Rows of ``of``: the first three are limits.
LIMITS, USAGE, O_COUNT = 3, 3, 4


@dataclass(eq=False, slots=True)
class Accounts:
    """The accounts, one column each, and the accounts of each job."""

    #: running jobs, their processors, the limits of both, since when usage stands (s), and the pass
    #: for which KEY was computed, shape (A_COUNT, accounts)
    counts: Int64Rows
    #: usage at that time (processor-seconds), share, usage over share, shape (M_COUNT, accounts)
    amounts: Float64Rows
    #: accounts of each job by its row, -1 for none: three with limits, and the one that usage is
    #: charged to, shape (O_COUNT, jobs)
    of: Int64Rows


def allowed(accounts: Accounts, job: int, processors: int) -> bool:
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


def hold(accounts: Accounts, jobs: Int64Rows, job: int, count: int) -> None:
    """Count a job as running on the accounts with limits, or with -1 as no longer running."""
    for i in range(LIMITS):
        account = accounts.of[i, job]
        if account >= 0:
            accounts.counts[JOBS, account] += count
            accounts.counts[HELD, account] += count * jobs[PROCESSORS, job]


def usage(accounts: Accounts, account: int, now: int, half_life: float) -> float:
    """Return the decayed usage of an account."""
    left = half(float(now - accounts.counts[SINCE, account]) / half_life)
    held = float(accounts.counts[HELD, account])
    return accounts.amounts[USED, account] * left + held * (half_life / LN2) * (1.0 - left)


def change_usage(
    accounts: Accounts, jobs: Int64Rows, job: int, count: int, now: int, half_life: float
) -> None:
    """Note the start (``count`` 1) or end (-1) of a job on the account that it is charged to."""
    account = accounts.of[USAGE, job]
    if account >= 0:
        accounts.amounts[USED, account] = usage(accounts, account, now, half_life)
        accounts.counts[SINCE, account] = now
        accounts.counts[HELD, account] += count * jobs[PROCESSORS, job]


def charge_past(
    accounts: Accounts,
    jobs: Int64Rows,
    rows: Int64s,
    counts: Int64s,
    times: Int64s,
    half_life: float,
) -> None:
    """Note starts and ends of the past, in the order of time."""
    for i in range(len(rows)):
        change_usage(accounts, jobs, rows[i], counts[i], times[i], half_life)
