"""The mean of a user's latest jobs that have ended (Tsafrir et al. 2007), compiled."""

from __future__ import annotations

from hpcrowd.environment.engine.kernel.places import compiled
from hpcrowd.environment.schedulers.predictors.kernel.experience import (
    CLASS,
    JOBS_SEEN,
    RAN,
    RANK,
    consider,
)

# Places of the settings.
JOBS, CAPPED = range(2)


@compiled
def estimate(memory, settings, requested, row):
    """Return the mean run time of the user's latest jobs that have ended, s, not rounded."""
    jobs = memory.jobs
    # A class is a user: all are as near as each other, and the latest come first.
    high = memory.counters[JOBS_SEEN]
    found = consider(memory, jobs[row, CLASS], 0, RANK, 0, high, 0, int(settings[JOBS]))
    value = float(requested)
    if found > 0:
        total = 0
        for place in range(found):
            total += jobs[memory.best[place], RAN]
        value = total / found
    return min(value, float(requested)) if settings[CAPPED] else value
