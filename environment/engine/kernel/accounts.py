"""What users, queues and groups hold: limits on it, and usage that decays.

Rows of ``accounts``, one column an account: running jobs, their processors, the limits of both,
since when usage stands, and the pass for which KEY was computed. Rows of ``amounts``: usage at that
time, share, and usage over share. ``of`` names the accounts of each job by its row, -1 for none:
three with limits, and the one that usage is charged to.
"""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.places import PROCESSORS, compiled, inlined

# Rows of ``accounts``.
JOBS, HELD, MOST_JOBS, MOST_HELD, SINCE, SEEN, A_COUNT = range(7)

# Rows of ``amounts``.
USED, SHARE, KEY, M_COUNT = range(4)

# Rows of ``of``: the first three are limits.
LIMITS, USAGE, O_COUNT = 3, 3, 4

#: As in ``hpcrowd.environment.schedulers.fair_share``.
LN2 = 0.6931471805599453
GONE = 1100
TERMS = 18


@inlined
def allowed(accounts, of, job, processors):
    """Return whether no account of the job would be over a limit with it."""
    for i in range(LIMITS):
        account = of[i, job]
        if account >= 0 and (
            accounts[JOBS, account] >= accounts[MOST_JOBS, account]
            or (
                accounts[JOBS, account] > 0
                and accounts[HELD, account] + processors > accounts[MOST_HELD, account]
            )
        ):
            return False
    return True


@compiled
def hold(jobs, accounts, of, job, count):
    """Count a job as running on the accounts with limits, or with -1 as not running any more."""
    for i in range(LIMITS):
        account = of[i, job]
        if account >= 0:
            accounts[JOBS, account] += count
            accounts[HELD, account] += count * jobs[PROCESSORS, job]


@compiled
def half(lives):
    """Return 2^-lives; the same sums as ``hpcrowd.environment.schedulers.fair_share.half``."""
    if lives >= GONE:
        return 0.0
    whole = int(lives)
    x = (lives - float(whole)) * LN2
    left = 1.0
    for term in range(TERMS, 0, -1):
        left = 1.0 - x * left / float(term)
    for _ in range(whole):
        left *= 0.5
    return left


@compiled
def usage(accounts, amounts, account, now, half_life):
    """Return the decayed usage of an account."""
    left = half(float(now - accounts[SINCE, account]) / half_life)
    held = float(accounts[HELD, account])
    return amounts[USED, account] * left + held * (half_life / LN2) * (1.0 - left)


@compiled
def change_usage(jobs, accounts, amounts, of, job, count, now, half_life):
    """Let a job start (``count`` 1) or end (-1) on the account that it is charged to."""
    account = of[USAGE, job]
    if account >= 0:
        amounts[USED, account] = usage(accounts, amounts, account, now, half_life)
        accounts[SINCE, account] = now
        accounts[HELD, account] += count * jobs[PROCESSORS, job]
