"""Features of jobs: their arrivals, then their run times, processors, requested times and waits.

Definitions are those of Minh 2012, sections 2.1 to 2.3.2, unless stated otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.curves import DAY_HOURS, weekly_rates
from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Group, Kinds
from hpcrowd.analysis.features.series import Hurst, hurst
from hpcrowd.analysis.features.workload import Floats, Workload, once
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import check_memory

#: Lag of a cycle, and two lags off the cycle, in days. The pair is symmetric around the first, so
#: that a slow decay cancels out.
DAILY, WEEKLY = (1, (0.5, 1.5)), (7, (4, 10))

#: Days from Monday to Friday.
WORKING_DAYS = 5

ARRIVALS = Group("arrivals", "Arrivals")

_MARGINAL = "Minh 2012, section 2.1.1"
_RATE = "Minh 2012, sections 2.2, 2.3.1 and 3.2, Table 3.2"
_CYCLES = "Minh 2012, sections 2.3.1 and 3.5.2"


@once
def gaps(workload: Workload) -> Floats:
    """Return the interarrival times of jobs, s, shape (jobs - 1,)."""
    return series.interarrivals(workload.submit)


@once
def gap_moments(workload: Workload) -> series.Moments:
    """Return the marginal statistics of interarrival times (s)."""
    return series.moments(gaps(workload))


@once
def arrival_counts(workload: Workload) -> Floats:
    """Return the number of jobs in each interval of the time scale, from the first submission."""
    return series.counts(workload.submit, workload.settings.time_scale_s)


@once
def arrival_hurst(workload: Workload) -> Hurst:
    """Return the Hurst parameter of the rate process (Table 3.2)."""
    return hurst(arrival_counts(workload))


@once
def arrival_correlation(workload: Workload) -> Floats:
    """Return the autocorrelation of the counts up to the lags of :data:`WEEKLY`, if long enough."""
    return long_correlation(workload, arrival_counts(workload))


def long_correlation(workload: Workload, counted: Floats) -> Floats:
    """Return the autocorrelation of counts up to ten days, or up to half their length."""
    wanted = round(WEEKLY[1][1] * DAY / workload.settings.time_scale_s)
    return series.autocorrelation(counted, min(wanted, len(counted) // 2))


def correlation_at(workload: Workload, found: Floats, days: float) -> float:
    """Return the autocorrelation at a lag in days."""
    lag = round(days * DAY / workload.settings.time_scale_s)
    if lag < 1:
        raise UnavailableError("the time scale is longer than the cycle")
    if lag >= len(found):
        raise UnavailableError(f"shorter than {2 * days:g} days")
    return float(found[lag])


def cycle(workload: Workload, found: Floats, lags: tuple[float, tuple[float, float]]) -> float:
    """Return by how much the autocorrelation at a cycle's length exceeds that around it.

    ``found`` is the autocorrelation of the counts of the workload; the lags are :data:`DAILY` or
    :data:`WEEKLY`.
    """
    length, (before, after) = lags
    around = correlation_at(workload, found, after) + correlation_at(workload, found, before)
    return correlation_at(workload, found, length) - around / 2


@once
def hours_of_week(workload: Workload) -> Floats:
    """Return mean submissions per h in each local hour of the week from Monday, shape (168,)."""
    seconds = np.floor(workload.submit).astype(np.int64)
    found = weekly_rates(seconds[seconds >= 0], workload.clock)
    if found is None:
        raise UnavailableError("no submit times")
    return found


@ARRIVALS.feature("jobs", "Minh 2012, Table 3.1", least=0)
def jobs(workload: Workload) -> int:
    """Number of jobs measured."""
    return len(workload)


@ARRIVALS.feature("span", "Minh 2012, Table 3.1")
def span_s(workload: Workload) -> float:
    """Time from the first to the last submission."""
    if len(workload) < 2:
        raise UnavailableError("fewer than 2 jobs")
    length = float(workload.submit[-1] - workload.submit[0])
    if length == 0:
        raise UnavailableError("all jobs were submitted in the same second")
    return length


@ARRIVALS.feature("jobs per hour", _MARGINAL, unit="1/h")
def jobs_per_hour(workload: Workload) -> float:
    """Jobs after the first one, over the span."""
    return (len(workload) - 1) / span_s(workload) * HOUR


@ARRIVALS.feature("offered load, all jobs", "Minh 2012, section 5.2.5")
def offered_load_all(workload: Workload) -> float:
    """The same as the next one, of all jobs that ran, also of those that are not measured."""
    if workload.work_of_all is None or workload.span_of_all is None:
        return offered_load(workload)
    if not workload.machine:
        raise UnavailableError("processors of the machine not known")
    if not workload.span_of_all:
        raise UnavailableError("all jobs were submitted in the same second")
    return workload.work_of_all / (workload.machine * workload.span_of_all)


@ARRIVALS.feature("offered load, of these jobs", "Minh 2012, section 5.2.5")
def offered_load(workload: Workload) -> float:
    """Run time x processors of all jobs and their earlier runs over processors x span."""
    if not workload.machine:
        raise UnavailableError("processors of the machine not known")
    work = float((workload.run_time * workload.processors).sum())
    work += sum(one.processor_seconds for runs in workload.earlier_runs().values() for one in runs)
    return work / (workload.machine * span_s(workload))


@ARRIVALS.feature("interarrival time, mean", _MARGINAL)
def interarrival_mean_s(workload: Workload) -> float:
    """Time between two successive submissions."""
    return gap_moments(workload).mean


@ARRIVALS.feature("interarrival time, median", _MARGINAL)
def interarrival_median_s(workload: Workload) -> float:
    """Half of the times are not longer."""
    return gap_moments(workload).median


@ARRIVALS.feature("interarrival time, longest", _MARGINAL)
def interarrival_max_s(workload: Workload) -> float:
    """The longest pause between two submissions."""
    return gap_moments(workload).largest


@ARRIVALS.feature("temporal burstiness (CV)", "Minh 2012, section 2.3.1, Table 3.3")
def interarrival_cv(workload: Workload) -> float:
    """CV of interarrival times: 1 for Poisson arrivals, more if they come in bursts."""
    return gap_moments(workload).cv


@ARRIVALS.feature("Hurst parameter, mean", _RATE)
def hurst_mean(workload: Workload) -> float:
    """Mean of three estimates for the rate process: 0.5 without long range dependence."""
    return arrival_hurst(workload).mean


@ARRIVALS.feature("Hurst parameter, spread", _RATE)
def hurst_sd(workload: Workload) -> float:
    """Standard deviation of the three estimates."""
    return arrival_hurst(workload).sd


@ARRIVALS.feature("  by aggregated variance", _RATE)
def hurst_aggregated_variance(workload: Workload) -> float:
    """Slope of the variance of block means against their size."""
    return arrival_hurst(workload).aggregated_variance


@ARRIVALS.feature("  by R/S", _RATE)
def hurst_rescaled_range(workload: Workload) -> float:
    """Slope of the rescaled range against the size of blocks."""
    return arrival_hurst(workload).rescaled_range


@ARRIVALS.feature("  by periodogram", _RATE)
def hurst_periodogram(workload: Workload) -> float:
    """Slope of the power of the lowest frequencies."""
    return arrival_hurst(workload).periodogram


@ARRIVALS.feature("autocorrelation at a day", _CYCLES, calendar=True)
def acf_day(workload: Workload) -> float:
    """Autocorrelation of the counts at a lag of 24 h."""
    return correlation_at(workload, arrival_correlation(workload), DAILY[0])


@ARRIVALS.feature("autocorrelation at a week", _CYCLES, calendar=True)
def acf_week(workload: Workload) -> float:
    """Autocorrelation of the counts at a lag of 7 days."""
    return correlation_at(workload, arrival_correlation(workload), WEEKLY[0])


@ARRIVALS.feature("daily cycle", f"{_CYCLES}; the measure is our own", calendar=True)
def daily_cycle(workload: Workload) -> float:
    """Autocorrelation at 1 day minus its mean at 0.5 and 1.5 days; 0 without a cycle."""
    return cycle(workload, arrival_correlation(workload), DAILY)


@ARRIVALS.feature("weekly cycle", f"{_CYCLES}; the measure is our own", calendar=True)
def weekly_cycle(workload: Workload) -> float:
    """Autocorrelation at 7 days minus its mean at 4 and 10 days; 0 without a cycle."""
    return cycle(workload, arrival_correlation(workload), WEEKLY)


@ARRIVALS.feature("busiest hour over the mean hour", "our own", calendar=True)
def daily_peak(workload: Workload) -> float:
    """Mean submissions in the busiest local hour of the day over the mean of all hours."""
    if span_s(workload) < DAY:
        raise UnavailableError("shorter than a day")
    hours = hours_of_week(workload).reshape(-1, DAY_HOURS).mean(axis=0)
    return float(hours.max() / hours.mean())


@ARRIVALS.feature("share of jobs at weekends", "our own", calendar=True)
def weekend_share(workload: Workload) -> float:
    """Share of submissions on Saturday and Sunday, local time; 0.286 without a weekly cycle."""
    if workload.clock.nominal:
        raise UnavailableError("the trace does not say when it began")
    if span_s(workload) < WEEK:
        raise UnavailableError("shorter than a week")
    days = hours_of_week(workload).reshape(-1, DAY_HOURS).sum(axis=1)
    return float(days[WORKING_DAYS:].sum() / days.sum())


JOBS = Group("jobs", "Run times and processors")

#: Marginal statistics of a column.
_MOMENTS: Kinds = {
    "mean": lambda values: series.moments(values).mean,
    "sd": lambda values: series.moments(values).sd,
    "cv": lambda values: series.moments(values).cv,
    "median": lambda values: series.moments(values).median,
    "max": lambda values: series.moments(values).largest,
}


@JOBS.statistics("run time", _MARGINAL, _MOMENTS, "s")
def run_time(workload: Workload) -> Floats:
    """Run time as recorded."""
    return workload.run_time


@JOBS.statistics("processors", _MARGINAL, _MOMENTS)
def processors(workload: Workload) -> Int64s:
    """Requested processors, else allocated."""
    return workload.processors


@JOBS.feature("share of serial jobs", "Song et al. 2005, section II")
def serial_share(workload: Workload) -> float:
    """Share of jobs of one processor."""
    return float((workload.processors == 1).mean())


@JOBS.feature("share of powers of two", "Song et al. 2005, section II")
def power_of_two_share(workload: Workload) -> float:
    """Share of parallel jobs whose number of processors is a power of two."""
    parallel = workload.processors[workload.processors > 1]
    if not len(parallel):
        raise UnavailableError("all jobs have one processor")
    return float(np.mean(is_power_of_two(parallel)))


@JOBS.feature("run time and processors (Spearman)", "Minh 2012, section 2.3.2, Table 3.4")
def run_time_processors_spearman(workload: Workload) -> float:
    """Rank correlation with requested processors."""
    return series.spearman(workload.run_time, workload.processors)


@JOBS.feature("run time and processors (Pearson)", "Minh 2012, Eq. 2.2; Song et al. 2005, Table V")
def run_time_processors_pearson(workload: Workload) -> float:
    """Correlation of the values with requested processors."""
    return series.pearson(workload.run_time, workload.processors)


@JOBS.feature("spatial burstiness (entropy)", "Minh 2012, Eq. 2.5, Table 3.6")
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


@JOBS.feature("share of jobs with a requested time", "Minh 2012, section 3.6, footnote 3")
def requested_time_share(workload: Workload) -> float:
    """Share of jobs with a requested time."""
    return float((workload.requested_time > 0).mean())


@JOBS.statistics("requested time", _MARGINAL, _MOMENTS, "s")
def requested_time(workload: Workload) -> Floats:
    """Requested time of jobs that have one."""
    return workload.requested_time[_asked(workload)]


@JOBS.feature("use of requested times", "our own")
def use_of_requests(workload: Workload) -> float:
    """Mean over jobs of run time over requested time."""
    asked = _asked(workload)
    return float((workload.run_time[asked] / workload.requested_time[asked]).mean())


@JOBS.statistics("wait", _MARGINAL, _MOMENTS, "s")
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
