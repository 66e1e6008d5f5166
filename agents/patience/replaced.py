"""Changed minds: jobs that their users gave up to submit others in their place.

A job is replaced if its user submits another like it shortly after it leaves the queue. Whoever
leaves for good submits none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.patience.submissions import groups
from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: s after a job leaves in which another takes its place. Our choice, by the first half of SDSC-DS:
#: users submit a job like it within 600 s after 59 % of the jobs that they give up, and after 18 %
#: of those that start. Of shorter and longer times none has a larger difference. Before a job
#: leaves, and it starts, the shares hardly differ (25 % both within 300 s).
WITHIN = 600


def replacements(
    user: ArrayLike,
    processors: ArrayLike,
    requested_time: ArrayLike,
    executable: ArrayLike,
    submit: ArrayLike,
    wait: ArrayLike,
    gave_up: ArrayLike,
    within: int = WITHIN,
) -> Int64s:
    """Return the job that took the place of each that was given up, -1 if none did; shape (jobs,).

    It is of the same user, was submitted at most ``within`` s after the job left the queue, and has
    as many processors, the same requested time or the same executable, if known. Each takes one
    place: jobs that left get theirs in the order in which they left, each the first that is free.

    Parameters are of shape (jobs,), with times in s and -1 for what is unknown.
    """
    user, size, asked, program, submit, wait = (
        np.asarray(one).astype(np.int64)
        for one in (user, processors, requested_time, executable, submit, wait)
    )
    left, gone = submit + wait, np.asarray(gave_up, bool)
    found = np.full(len(submit), UNKNOWN)
    for rows in groups(user):
        mine = rows[np.argsort(submit[rows], kind="stable")]
        leaving = mine[gone[mine]]
        leaving = leaving[np.argsort(left[leaving], kind="stable")]
        first = np.searchsorted(submit[mine], left[leaving], side="left")
        last = np.searchsorted(submit[mine], left[leaving] + within, side="right")
        taken: set[int] = set()
        for row, low, high in zip(leaving.tolist(), first.tolist(), last.tolist(), strict=True):
            others = mine[low:high]
            alike = (size[others] == size[row]) | ((asked[others] == asked[row]) & (asked[row] > 0))
            alike |= (program[others] == program[row]) & (program[row] > 0)
            alike &= others != row
            for other in others[alike].tolist():
                if other not in taken:
                    found[row] = other
                    taken.add(other)
                    break
    return found
