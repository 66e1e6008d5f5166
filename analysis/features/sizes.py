"""Features of single jobs: run times, processors, requested times, waits, and how they correlate.

Definitions of Minh 2012, sections 2.1 and 2.3.2, where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Feature, Group, statistics_of
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s


def requested_times(workload: Workload) -> Floats:
    """Return the requested times that are known, s."""
    return workload.requested_time[_asked(workload)]


def waits(workload: Workload) -> Floats:
    """Return the waits that are known, s."""
    known = workload.wait >= 0
    if not known.any():
        raise UnavailableError("no waits recorded")
    return workload.wait[known]


def use_of_requests(workload: Workload) -> float:
    """Return the mean over jobs of run time over requested time, where that is known."""
    asked = _asked(workload)
    return float((workload.run_time[asked] / workload.requested_time[asked]).mean())


def normalized_entropy(workload: Workload) -> float:
    """Return the spatial burstiness, Eq. 2.5 with p_i = TR_i / TR; 0 bursty, 1 uniform.

    TR_i is the total run time of all jobs that got i processors. N is the processors of the
    largest job.
    """
    processors, run_time = workload.allocated, workload.run_time
    largest = int(processors.max(initial=1))
    if largest == 1:
        raise UnavailableError("all jobs have one processor")
    total = np.bincount(processors, weights=run_time, minlength=2)
    if total.sum() <= 0:
        raise UnavailableError("all run times are 0")
    share = total[total > 0] / total.sum()
    entropy = float(-(share * np.log(share)).sum() / np.log(largest))
    return max(entropy, 0.0)  # a sum of one term of log 1 may come out as -0


def power_of_two_share(workload: Workload) -> float:
    """Return the share of parallel jobs whose processors are a power of two."""
    parallel = workload.processors[workload.processors > 1]
    if not len(parallel):
        raise UnavailableError("all jobs have one processor")
    return float(np.mean(is_power_of_two(parallel)))


def is_power_of_two(processors: Int64s) -> NDArray[np.bool_]:
    """Return which numbers of processors, each at least 1, are powers of two; 1 is one."""
    found: NDArray[np.bool_] = (processors & (processors - 1)) == 0
    return found


def _share(of_jobs: NDArray[np.bool_]) -> float:
    """Return the share of jobs that something is true of."""
    if not len(of_jobs):
        raise UnavailableError("no jobs")
    return float(of_jobs.mean())


def _asked(workload: Workload) -> NDArray[np.bool_]:
    asked: NDArray[np.bool_] = workload.requested_time > 0
    if not asked.any():
        raise UnavailableError("no requested times recorded")
    return asked


def _moments(
    name: str,
    title: str,
    of: Callable[[Workload], Floats | NDArray[np.int64]],
    unit: str,
    definition: str,
) -> tuple[Feature, ...]:
    """Return mean, standard deviation, CV, median and maximum of a column."""

    def moment(workload: Workload, kind: str) -> float:
        found = workload.once(f"{name} moments", lambda: series.moments(of(workload)))
        return float(getattr(found, kind))

    kinds = {"mean": "mean", "sd": "sd", "cv": "cv", "median": "median", "max": "largest"}
    measures = {kind: partial(moment, kind=attribute) for kind, attribute in kinds.items()}
    return statistics_of(name, title, definition, "Minh 2012, section 2.1.1", measures, unit)


GROUP = Group(
    "jobs",
    "Run times and processors",
    (
        *_moments("run_time", "run time", lambda w: w.run_time, "s", "as recorded"),
        *_moments(
            "processors", "processors", lambda w: w.processors, "", "requested, else allocated"
        ),
        Feature(
            "serial_share",
            "share of serial jobs",
            "jobs of one processor",
            "Song et al. 2005, section II",
            lambda w: _share(w.processors == 1),
        ),
        Feature(
            "power_of_two_share",
            "share of powers of two",
            "parallel jobs whose processors are a power of two",
            "Song et al. 2005, section II",
            power_of_two_share,
        ),
        Feature(
            "run_time_processors_spearman",
            "run time and processors (Spearman)",
            "correlation of ranks, with requested processors",
            "Minh 2012, section 2.3.2, Table 3.4",
            lambda w: series.spearman(w.run_time, w.processors),
        ),
        Feature(
            "run_time_processors_pearson",
            "run time and processors (Pearson)",
            "correlation of the values, with requested processors",
            "Minh 2012, Eq. 2.2; Song et al. 2005, Table V",
            lambda w: series.pearson(w.run_time, w.processors),
        ),
        Feature(
            "normalized_entropy",
            "spatial burstiness (entropy)",
            "normalized entropy of run time over allocated processors: 0 bursty, 1 uniform",
            "Minh 2012, Eq. 2.5, Table 3.6",
            normalized_entropy,
        ),
        Feature(
            "requested_time_share",
            "share of jobs with a requested time",
            "jobs whose user asked for a run time",
            "Minh 2012, section 3.6, footnote 3",
            lambda w: _share(w.requested_time > 0),
        ),
        *_moments(
            "requested_time", "requested time", requested_times, "s", "of jobs that have one"
        ),
        Feature(
            "use_of_requests",
            "use of requested times",
            "mean over jobs of run time over requested time",
            "our own",
            use_of_requests,
        ),
        *_moments("wait", "wait", waits, "s", "from submission to start, where recorded"),
    ),
)
