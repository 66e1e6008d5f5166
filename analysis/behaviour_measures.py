"""What a behaviour keeps of the trace it replays, in a few numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.curves import activity_lengths
from analysis.profiles import profile_distance, unevenness, weekly_profile
from analysis.run import Run


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
