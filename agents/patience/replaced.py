"""Changed minds: jobs that their users gave up to submit others in their place.

A job is replaced if its user submits another like it shortly before or after it leaves the queue.
Whoever leaves for good submits none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.agents.patience.submissions import groups
from hpcrowd.environment.jobs import UNKNOWN, Int64s

#: s before and after a job leaves in which another takes its place.
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

    It is of the same user, was submitted later than the job, at most ``within`` s before or after
    that left the queue, and has as many processors, the same requested time or the same executable,
    if known. Each takes one place: that of the job that left nearest to its submission.

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
        at = submit[mine]
        leaving = mine[gone[mine]]
        first = np.searchsorted(at, left[leaving] - within, side="left")
        last = np.searchsorted(at, left[leaving] + within, side="right")
        pairs = [
            (abs(int(submit[other] - left[row])), int(row), int(other))
            for row, low, high in zip(leaving, first, last, strict=True)
            for other in mine[low:high]
            if submit[other] > submit[row]
            and (
                size[other] == size[row]
                or asked[other] == asked[row] > 0
                or program[other] == program[row] > 0
            )
        ]
        taken: set[int] = set()
        for _, row, other in sorted(pairs):
            if found[row] == UNKNOWN and other not in taken:
                found[row] = other
                taken.add(other)
    return found
