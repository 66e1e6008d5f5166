"""Features of single jobs: run times, processors, requested times, waits, correlations.

Definitions are those of Minh 2012, sections 2.1 and 2.3.2, unless stated otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Group, Kinds
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory

GROUP = Group("jobs", "Run times and processors")

_MARGINAL = "Minh 2012, section 2.1.1"

#: Marginal statistics of a column.
_MOMENTS: Kinds = {
    "mean": lambda values: series.moments(values).mean,
    "sd": lambda values: series.moments(values).sd,
    "cv": lambda values: series.moments(values).cv,
    "median": lambda values: series.moments(values).median,
    "max": lambda values: series.moments(values).largest,
}


@GROUP.statistics("run time", _MARGINAL, _MOMENTS, "s")
def run_time(workload: Workload) -> Floats:
    """Run time as recorded."""
    return workload.run_time


@GROUP.statistics("processors", _MARGINAL, _MOMENTS)
def processors(workload: Workload) -> Int64s:
    """Requested processors, else allocated."""
    return workload.processors


@GROUP.feature("share of serial jobs", "Song et al. 2005, section II")
def serial_share(workload: Workload) -> float:
    """Share of jobs of one processor."""
    return float((workload.processors == 1).mean())


@GROUP.feature("share of powers of two", "Song et al. 2005, section II")
def power_of_two_share(workload: Workload) -> float:
    """Share of parallel jobs whose number of processors is a power of two."""
    parallel = workload.processors[workload.processors > 1]
    if not len(parallel):
        raise UnavailableError("all jobs have one processor")
    return float(np.mean(is_power_of_two(parallel)))


@GROUP.feature("run time and processors (Spearman)", "Minh 2012, section 2.3.2, Table 3.4")
def run_time_processors_spearman(workload: Workload) -> float:
    """Rank correlation with requested processors."""
    return series.spearman(workload.run_time, workload.processors)


@GROUP.feature("run time and processors (Pearson)", "Minh 2012, Eq. 2.2; Song et al. 2005, Table V")
def run_time_processors_pearson(workload: Workload) -> float:
    """Correlation of the values with requested processors."""
    return series.pearson(workload.run_time, workload.processors)


@GROUP.feature("spatial burstiness (entropy)", "Minh 2012, Eq. 2.5, Table 3.6")
def normalized_entropy(workload: Workload) -> float:
    """Normalized entropy of run time over allocated processors: 0 bursty, 1 uniform.

    Eq. 2.5 with p_i = TR_i / TR. TR_i is the total run time of all jobs on i processors. N is the
    number of processors of the largest job.
    """
    processors, run_time = workload.allocated, workload.run_time
    largest = int(processors.max(initial=1))
    if largest == 1:
        raise UnavailableError("all jobs have one processor")
    check_memory(f"a job with {largest:,} processors", 8 * largest, "correct the trace")
    total = np.bincount(processors, weights=run_time, minlength=2)
    if total.sum() <= 0:
        raise UnavailableError("all run times are 0")
    share = total[total > 0] / total.sum()
    entropy = float(-(share * np.log(share)).sum() / np.log(largest))
    return max(entropy, 0.0)  # a sum of one term of log 1 may come out as -0


@GROUP.feature("share of jobs with a requested time", "Minh 2012, section 3.6, footnote 3")
def requested_time_share(workload: Workload) -> float:
    """Share of jobs with a requested time."""
    return float((workload.requested_time > 0).mean())


@GROUP.statistics("requested time", _MARGINAL, _MOMENTS, "s")
def requested_time(workload: Workload) -> Floats:
    """Requested time of jobs that have one."""
    return workload.requested_time[_asked(workload)]


@GROUP.feature("use of requested times", "our own")
def use_of_requests(workload: Workload) -> float:
    """Mean over jobs of run time over requested time."""
    asked = _asked(workload)
    return float((workload.run_time[asked] / workload.requested_time[asked]).mean())


@GROUP.statistics("wait", _MARGINAL, _MOMENTS, "s")
def wait(workload: Workload) -> Floats:
    """Time from submission to start, if recorded, also of runs after which a job was run again."""
    known = workload.wait >= 0
    if not known.any():
        raise UnavailableError("no waits recorded")
    waits, earlier = workload.wait.copy(), []
    for place, runs in workload.earlier_runs().items():
        if known[place]:
            again = [0, *(run.again for run in runs)]
            earlier += [run.start - since for run, since in zip(runs, again, strict=False)]
            waits[place] = max(waits[place] - again[-1], 0)
    return np.append(waits[known], earlier)


def is_power_of_two(processors: Int64s) -> NDArray[np.bool_]:
    """Return which numbers of processors, each at least 1, are powers of two (1 is one)."""
    found: NDArray[np.bool_] = (processors & (processors - 1)) == 0
    return found


def _asked(workload: Workload) -> NDArray[np.bool_]:
    asked: NDArray[np.bool_] = workload.requested_time > 0
    if not asked.any():
        raise UnavailableError("no requested times recorded")
    return asked
