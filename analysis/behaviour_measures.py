"""What a behaviour keeps of the trace it replays, in a few numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.profiles import profile_distance, unevenness, weekly_profile
from analysis.run import Run
from environment.jobs import UNKNOWN, Int64s


class Measures(NamedTuple):
    """A run against the record; lengths are ratios to recorded ones, 1 is as recorded."""

    wait_mean_s: float  #: mean wait of the jobs that ran, s
    makespan_s: float  #: from the first submission to the last end, s
    lateness_mean_s: float  #: mean of simulated minus recorded submission, s
    profile_distance: float  #: of the weekly profiles of submissions, 0 equal to 1
    unevenness: float  #: of the weekly profile, 0 flat to 1
    activity_p50: float  #: half of the users have a shorter activity length, as a ratio
    activity_p90: float  #: nine tenths of the users have


def measure(run: Run) -> Measures:
    """Return the measures of a run that replays a trace.

    Users whose recorded jobs were all submitted in one second have no activity length to compare
    with, and are left out of the last two.
    """
    jobs = run.jobs
    simulated = weekly_profile(jobs.submit, run.clock)
    recorded = weekly_profile(jobs.recorded_submit, run.clock)
    before = activity_lengths(jobs.user, jobs.recorded_submit)
    after = activity_lengths(jobs.user, jobs.submit)
    ratio = after[before > 0] / before[before > 0]
    return Measures(
        wait_mean_s=run.metrics["wait_mean_s"],
        makespan_s=run.metrics["makespan_s"],
        lateness_mean_s=run.metrics["lateness_mean_s"],
        profile_distance=profile_distance(simulated, recorded),
        unevenness=unevenness(simulated),
        activity_p50=float(np.percentile(ratio, 50)),
        activity_p90=float(np.percentile(ratio, 90)),
    )


def activity_lengths(user: Int64s, submit: Int64s) -> Int64s:
    """Return the time from each user's first to its last submission, s, shape (users,).

    The activity length of Zakay and Feitelson 2015, section VII: the jobs are given, so a user who
    is active for longer has a lower throughput.

    Parameters
    ----------
    user
        Number of the user of each job, shape (jobs,).
    submit
        s; unknown ones (-1) do not count.

    Returns
    -------
    array
        By user number, ascending; 0 for a user who submitted nothing.
    """
    numbers, place = np.unique(user, return_inverse=True)
    known = submit != UNKNOWN
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    last = np.full(len(numbers), UNKNOWN)
    np.minimum.at(first, place[known], submit[known])
    np.maximum.at(last, place[known], submit[known])
    lengths: Int64s = last - np.minimum(first, last)
    return lengths
