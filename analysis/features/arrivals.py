"""Features of arrivals: rate, temporal burstiness, long range dependence, daily and weekly cycles.

Definitions are those of Minh 2012, sections 2.2 and 2.3.1, unless stated otherwise.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.curves import DAY_HOURS, weekly_rates
from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Group
from hpcrowd.analysis.features.series import Hurst, hurst
from hpcrowd.analysis.features.workload import Floats, Workload, once
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import UnavailableError

#: Lag of a cycle, and two lags off the cycle, in days. The pair is symmetric around the first, so
#: that a slow decay cancels out.
DAILY, WEEKLY = (1, (0.5, 1.5)), (7, (4, 10))

#: Days from Monday to Friday.
WORKING_DAYS = 5

GROUP = Group("arrivals", "Arrivals")

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


@GROUP.feature("jobs", "Minh 2012, Table 3.1", least=0)
def jobs(workload: Workload) -> int:
    """Number of jobs measured."""
    return len(workload)


@GROUP.feature("span", "Minh 2012, Table 3.1")
def span_s(workload: Workload) -> float:
    """Time from the first to the last submission."""
    if len(workload) < 2:
        raise UnavailableError("fewer than 2 jobs")
    length = float(workload.submit[-1] - workload.submit[0])
    if length == 0:
        raise UnavailableError("all jobs were submitted in the same second")
    return length


@GROUP.feature("jobs per hour", _MARGINAL, unit="1/h")
def jobs_per_hour(workload: Workload) -> float:
    """Jobs after the first one, over the span."""
    return (len(workload) - 1) / span_s(workload) * HOUR


@GROUP.feature("offered load", "Minh 2012, section 5.2.5")
def offered_load(workload: Workload) -> float:
    """Run time x processors of all jobs and their earlier runs over processors x span."""
    if not workload.machine:
        raise UnavailableError("processors of the machine not known")
    work = float((workload.run_time * workload.processors).sum())
    work += sum(one.processor_seconds for runs in workload.earlier_runs().values() for one in runs)
    return work / (workload.machine * span_s(workload))


@GROUP.feature("interarrival time, mean", _MARGINAL)
def interarrival_mean_s(workload: Workload) -> float:
    """Time between two successive submissions."""
    return gap_moments(workload).mean


@GROUP.feature("interarrival time, median", _MARGINAL)
def interarrival_median_s(workload: Workload) -> float:
    """Half of the times are not longer."""
    return gap_moments(workload).median


@GROUP.feature("interarrival time, longest", _MARGINAL)
def interarrival_max_s(workload: Workload) -> float:
    """The longest pause between two submissions."""
    return gap_moments(workload).largest


@GROUP.feature("temporal burstiness (CV)", "Minh 2012, section 2.3.1, Table 3.3")
def interarrival_cv(workload: Workload) -> float:
    """CV of interarrival times: 1 for Poisson arrivals, more if they come in bursts."""
    return gap_moments(workload).cv


@GROUP.feature("Hurst parameter, mean", _RATE)
def hurst_mean(workload: Workload) -> float:
    """Mean of three estimates for the rate process: 0.5 without long range dependence."""
    return arrival_hurst(workload).mean


@GROUP.feature("Hurst parameter, spread", _RATE)
def hurst_sd(workload: Workload) -> float:
    """Standard deviation of the three estimates."""
    return arrival_hurst(workload).sd


@GROUP.feature("  by aggregated variance", _RATE)
def hurst_aggregated_variance(workload: Workload) -> float:
    """Slope of the variance of block means against their size."""
    return arrival_hurst(workload).aggregated_variance


@GROUP.feature("  by R/S", _RATE)
def hurst_rescaled_range(workload: Workload) -> float:
    """Slope of the rescaled range against the size of blocks."""
    return arrival_hurst(workload).rescaled_range


@GROUP.feature("  by periodogram", _RATE)
def hurst_periodogram(workload: Workload) -> float:
    """Slope of the power of the lowest frequencies."""
    return arrival_hurst(workload).periodogram


@GROUP.feature("autocorrelation at a day", _CYCLES, calendar=True)
def acf_day(workload: Workload) -> float:
    """Autocorrelation of the counts at a lag of 24 h."""
    return correlation_at(workload, arrival_correlation(workload), DAILY[0])


@GROUP.feature("autocorrelation at a week", _CYCLES, calendar=True)
def acf_week(workload: Workload) -> float:
    """Autocorrelation of the counts at a lag of 7 days."""
    return correlation_at(workload, arrival_correlation(workload), WEEKLY[0])


@GROUP.feature("daily cycle", f"{_CYCLES}; the measure is our own", calendar=True)
def daily_cycle(workload: Workload) -> float:
    """Autocorrelation at 1 day minus its mean at 0.5 and 1.5 days; 0 without a cycle."""
    return cycle(workload, arrival_correlation(workload), DAILY)


@GROUP.feature("weekly cycle", f"{_CYCLES}; the measure is our own", calendar=True)
def weekly_cycle(workload: Workload) -> float:
    """Autocorrelation at 7 days minus its mean at 4 and 10 days; 0 without a cycle."""
    return cycle(workload, arrival_correlation(workload), WEEKLY)


@GROUP.feature("busiest hour over the mean hour", "our own", calendar=True)
def daily_peak(workload: Workload) -> float:
    """Mean submissions in the busiest local hour of the day over the mean of all hours."""
    if span_s(workload) < DAY:
        raise UnavailableError("shorter than a day")
    hours = hours_of_week(workload).reshape(-1, DAY_HOURS).mean(axis=0)
    return float(hours.max() / hours.mean())


@GROUP.feature("share of jobs at weekends", "our own", calendar=True)
def weekend_share(workload: Workload) -> float:
    """Share of submissions on Saturday and Sunday, local time; 0.286 without a weekly cycle."""
    if workload.clock.nominal:
        raise UnavailableError("the trace does not say when it began")
    if span_s(workload) < WEEK:
        raise UnavailableError("shorter than a week")
    days = hours_of_week(workload).reshape(-1, DAY_HOURS).sum(axis=1)
    return float(days[WORKING_DAYS:].sum() / days.sum())
