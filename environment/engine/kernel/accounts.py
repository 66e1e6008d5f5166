"""Accounts of users, queues and groups: limits on running jobs, and decaying usage."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import Row, rows
from hpcrowd.environment.engine.kernel.cluster import Jobs
from hpcrowd.environment.jobs import Float64Rows, Int64Rows, Int64s
from hpcrowd.environment.schedulers.arithmetic import LN2, half

#: Rows of ``counts`` and of ``amounts``.
COUNT_ROWS, AMOUNT_ROWS = 6, 3

#: Accounts with limits that a job may have.
LIMITS = 3


@dataclass(eq=False, slots=True)
class Accounts:
    """The accounts, one column each, and the accounts of each job."""

    counts: Int64Rows  #: shape (COUNT_ROWS, accounts)
    amounts: Float64Rows  #: shape (AMOUNT_ROWS, accounts)
    #: accounts of each job by its row, -1 for none: those with limits, then the one that usage is
    #: charged to, shape (LIMITS + 1, jobs)
    of: Int64Rows

    #: Running jobs, their processors, the limits of both, since when usage stands (s), and the pass
    #: for which ``key`` was computed.
    jobs, held, most_jobs, most_held, since, seen = rows("counts", COUNT_ROWS)
    #: Usage at that time (processor-seconds), share, usage over share.
    used, share, key = rows("amounts", AMOUNT_ROWS)
    charged = Row("of", LIMITS)


def allowed(accounts: Accounts, job: int, processors: int) -> bool:
    """Return whether the job would exceed no limit of its accounts."""
    for i in range(LIMITS):
        account = accounts.of[i, job]
        if account >= 0 and (
            accounts.jobs[account] >= accounts.most_jobs[account]
            or (
                accounts.jobs[account] > 0
                and accounts.held[account] + processors > accounts.most_held[account]
            )
        ):
            return False
    return True


def hold(accounts: Accounts, jobs: Jobs, job: int, count: int) -> None:
    """Count a job as running on the accounts with limits, or with -1 as no longer running."""
    for i in range(LIMITS):
        account = accounts.of[i, job]
        if account >= 0:
            accounts.jobs[account] += count
            accounts.held[account] += count * jobs.processors[job]


def usage(accounts: Accounts, account: int, now: int, half_life: float) -> float:
    """Return the decayed usage of an account."""
    left = half(float(now - accounts.since[account]) / half_life)
    held = float(accounts.held[account])
    return accounts.used[account] * left + held * (half_life / LN2) * (1.0 - left)


def change_usage(
    accounts: Accounts, jobs: Jobs, job: int, count: int, now: int, half_life: float
) -> None:
    """Note the start (``count`` 1) or end (-1) of a job on the account that it is charged to."""
    account = accounts.charged[job]
    if account >= 0:
        accounts.used[account] = usage(accounts, account, now, half_life)
        accounts.since[account] = now
        accounts.held[account] += count * jobs.processors[job]


def charge_past(
    accounts: Accounts,
    jobs: Jobs,
    rows: Int64s,
    counts: Int64s,
    times: Int64s,
    half_life: float,
) -> None:
    """Note starts and ends of the past, in the order of time."""
    for i in range(len(rows)):
        change_usage(accounts, jobs, rows[i], counts[i], times[i], half_life)
