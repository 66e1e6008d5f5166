"""Features of arrivals: rate, temporal burstiness, long range dependence, daily and weekly cycles.

Definitions of Minh 2012, sections 2.2 and 2.3.1, where nothing else is said.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.curves import DAY_HOURS, weekly_rates
from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Feature, Group
from hpcrowd.analysis.features.hurst import Hurst, hurst
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import UnavailableError

#: Lags at which a cycle shows, and between which it does not, in days: the second pair lies
#: evenly around the first, so that a slow decay cancels out.
DAILY, WEEKLY = (1, (0.5, 1.5)), (7, (4, 10))

#: Days from Monday to Friday.
WORKING_DAYS = 5


def span(workload: Workload) -> float:
    """Return the time from the first submission to the last, s."""
    if len(workload) < 2:
        raise UnavailableError("fewer than 2 jobs")
    length = float(workload.submit[-1] - workload.submit[0])
    if length == 0:
        raise UnavailableError("all jobs were submitted in the same second")
    return length


def offered_load(workload: Workload) -> float:
    """Return run time x processors of all jobs over what the machine offers in the span."""
    if not workload.machine:
        raise UnavailableError("processors of the machine not known")
    work = float((workload.run_time * workload.processors).sum())
    return work / (workload.machine * span(workload))


def gaps(workload: Workload) -> Floats:
    """Return the interarrival times of jobs, s, shape (jobs - 1,)."""
    return workload.once("gaps", lambda: series.interarrivals(workload.submit))


def gap_moments(workload: Workload) -> series.Moments:
    """Return the marginal statistics of interarrival times, s."""
    return workload.once("gap moments", lambda: series.moments(gaps(workload)))


def arrival_counts(workload: Workload) -> Floats:
    """Return jobs in each interval of the time scale, from the first submission on."""
    return workload.once(
        "counts", lambda: series.counts(workload.submit, workload.settings.time_scale_s)
    )


def arrival_hurst(workload: Workload) -> Hurst:
    """Return the Hurst parameter of the rate process; Table 3.2."""
    return workload.once("hurst", lambda: hurst(arrival_counts(workload)))


def arrival_correlation(workload: Workload) -> Floats:
    """Return the autocorrelation of the counts up to the lags of :data:`WEEKLY`, or to the end."""
    return workload.once("acf", lambda: long_correlation(workload, arrival_counts(workload)))


def long_correlation(workload: Workload, counted: Floats) -> Floats:
    """Return the autocorrelation of counts up to ten days, or to half their length."""
    wanted = round(WEEKLY[1][1] * DAY / workload.settings.time_scale_s)
    return series.autocorrelation(counted, min(wanted, len(counted) // 2))


def correlation_at(workload: Workload, found: Floats, days: float) -> float:
    """Return the autocorrelation at a lag of so many days."""
    lag = round(days * DAY / workload.settings.time_scale_s)
    if lag < 1:
        raise UnavailableError("the time scale is longer than the cycle")
    if lag >= len(found):
        raise UnavailableError(f"shorter than {2 * days:g} days")
    return float(found[lag])


def cycle(workload: Workload, found: Floats, lags: tuple[float, tuple[float, float]]) -> float:
    """Return how far the autocorrelation at a cycle's length stands above that around it.

    Parameters
    ----------
    workload
        Whose time scale it is.
    found
        Autocorrelation of its counts.
    lags
        :data:`DAILY` or :data:`WEEKLY`.
    """
    length, (before, after) = lags
    around = correlation_at(workload, found, after) + correlation_at(workload, found, before)
    return correlation_at(workload, found, length) - around / 2


def hours_of_week(workload: Workload) -> Floats:
    """Return mean submissions in each local hour of the week, from Monday, per h, shape (168,)."""

    def find() -> Floats:
        seconds = np.floor(workload.submit).astype(np.int64)
        found = weekly_rates(seconds[seconds >= 0], workload.clock)
        if found is None:
            raise UnavailableError("no submit times")
        return found

    return workload.once("week", find)


def daily_peak(workload: Workload) -> float:
    """Return submissions in the busiest local hour of the day over the mean hour."""
    if span(workload) < DAY:
        raise UnavailableError("shorter than a day")
    hours = hours_of_week(workload).reshape(-1, DAY_HOURS).mean(axis=0)
    return float(hours.max() / hours.mean())


def weekend_share(workload: Workload) -> float:
    """Return the share of submissions on Saturday and Sunday, 2/7 without a weekly cycle."""
    if workload.clock.nominal:
        raise UnavailableError("the trace does not say when it began")
    if span(workload) < WEEK:
        raise UnavailableError("shorter than a week")
    days = hours_of_week(workload).reshape(-1, DAY_HOURS).sum(axis=1)
    return float(days[WORKING_DAYS:].sum() / days.sum())


_MARGINAL = "Minh 2012, section 2.1.1"
_RATE = "Minh 2012, sections 2.2, 2.3.1 and 3.2, Table 3.2"
_CYCLES = "Minh 2012, sections 2.3.1 and 3.5.2"

GROUP = Group(
    "arrivals",
    "Arrivals",
    (
        Feature("jobs", "jobs", "jobs measured", "Minh 2012, Table 3.1", lambda w: len(w), least=0),
        Feature(
            "span_s", "span", "first submission to last", "Minh 2012, Table 3.1", span, "s", "time"
        ),
        Feature(
            "jobs_per_hour",
            "jobs per hour",
            "jobs after the first one, over the span",
            _MARGINAL,
            lambda w: (len(w) - 1) / span(w) * HOUR,
            "1/h",
            "rate",
        ),
        Feature(
            "offered_load",
            "offered load",
            "run time x processors of all jobs over the machine's processors x span",
            "Minh 2012, section 5.2.5",
            offered_load,
        ),
        Feature(
            "interarrival_mean_s",
            "interarrival time, mean",
            "time between two submissions after each other",
            _MARGINAL,
            lambda w: gap_moments(w).mean,
            "s",
            "time",
        ),
        Feature(
            "interarrival_median_s",
            "interarrival time, median",
            "half are not longer",
            _MARGINAL,
            lambda w: gap_moments(w).median,
            "s",
            "time",
        ),
        Feature(
            "interarrival_max_s",
            "interarrival time, longest",
            "the longest pause between two submissions",
            _MARGINAL,
            lambda w: gap_moments(w).largest,
            "s",
            "time",
        ),
        Feature(
            "interarrival_cv",
            "temporal burstiness (CV)",
            "CV of interarrival times: 1 for Poisson arrivals, more where they come in bursts",
            "Minh 2012, section 2.3.1, Table 3.3",
            lambda w: gap_moments(w).cv,
        ),
        Feature(
            "hurst_mean",
            "Hurst parameter, mean",
            "of the rate process, mean of three estimators: 0.5 without long range dependence",
            _RATE,
            lambda w: arrival_hurst(w).mean,
        ),
        Feature(
            "hurst_sd",
            "Hurst parameter, spread",
            "standard deviation of the three estimates",
            _RATE,
            lambda w: arrival_hurst(w).sd,
        ),
        Feature(
            "hurst_aggregated_variance",
            "  by aggregated variance",
            "slope of the variance of block means against their size",
            _RATE,
            lambda w: arrival_hurst(w).aggregated_variance,
        ),
        Feature(
            "hurst_rescaled_range",
            "  by R/S",
            "slope of the rescaled range against the size of blocks",
            _RATE,
            lambda w: arrival_hurst(w).rescaled_range,
        ),
        Feature(
            "hurst_periodogram",
            "  by periodogram",
            "slope of the power of the lowest frequencies",
            _RATE,
            lambda w: arrival_hurst(w).periodogram,
        ),
        Feature(
            "acf_day",
            "autocorrelation at a day",
            "of the counts, at a lag of 24 h",
            _CYCLES,
            lambda w: correlation_at(w, arrival_correlation(w), DAILY[0]),
            scaling="calendar",
        ),
        Feature(
            "acf_week",
            "autocorrelation at a week",
            "of the counts, at a lag of 7 days",
            _CYCLES,
            lambda w: correlation_at(w, arrival_correlation(w), WEEKLY[0]),
            scaling="calendar",
        ),
        Feature(
            "daily_cycle",
            "daily cycle",
            "autocorrelation at 1 day less the mean of that at 0.5 and 1.5 days; 0 without a cycle",
            f"{_CYCLES}; the measure is our own",
            lambda w: cycle(w, arrival_correlation(w), DAILY),
            scaling="calendar",
        ),
        Feature(
            "weekly_cycle",
            "weekly cycle",
            "autocorrelation at 7 days less the mean of that at 4 and 10 days; 0 without a cycle",
            f"{_CYCLES}; the measure is our own",
            lambda w: cycle(w, arrival_correlation(w), WEEKLY),
            scaling="calendar",
        ),
        Feature(
            "daily_peak",
            "busiest hour over the mean hour",
            "mean submissions in the busiest local hour of the day over those of all hours",
            "our own",
            daily_peak,
            scaling="calendar",
        ),
        Feature(
            "weekend_share",
            "share of jobs at weekends",
            "submissions on Saturday and Sunday, local time; 0.286 without a weekly cycle",
            "our own",
            weekend_share,
            scaling="calendar",
        ),
    ),
)
