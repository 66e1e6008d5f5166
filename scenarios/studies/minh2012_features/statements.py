"""Minh 2012, chapter 3: statements of the text on the traces, checked on each trace.

Statements on all traces are checked on every available trace, including those not in the
thesis. The bounds of the rules are ours, each with its reason; most were set after the features of
HPC, LLN, SDD and FS1 had been seen, so on these four they do not test the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.arrivals import arrival_counts, arrival_hurst, gaps
from hpcrowd.analysis.features.bags import PARAMETERS, TITLES, bag_fit, bag_hurst, bags, real_bags
from hpcrowd.analysis.features.locality import Zipf, bag_zipf, repetition_zipf, repetitions
from hpcrowd.analysis.features.stats import FEATURES
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.jobs import Int64s
from hpcrowd.scenarios.studies.study import Finding, Rule

#: Lags over which correlation is measured: one day of the rate process at T = 900 s.
LAGS = 96

#: A correlation below this is negligible: it explains less than 1 % of the variance.
NONE = 0.1

#: The autocorrelation of white noise of n values lies within this over the root of n, 19 of 20
#: times.
WHITE_NOISE = 1.96

#: "Much larger" than a CV of 1: four times the variance of Poisson arrivals of the same rate.
MUCH_LARGER = 2.0

#: A cycle counts from here on: a smaller one cannot be seen on an axis from 0 to 1. A clear one has
#: twice that. Measured is the autocorrelation at the cycle's length less that around it.
CYCLE, CLEAR_CYCLE = 0.05, 0.1

#: "Most": more than half. "Almost 100 %": at least 95 %.
MOST, ALMOST_ALL = 0.5, 0.95

#: Bags are "common" from the smallest share of Table 3.7 on, roughly: a third of the jobs.
COMMON = 1 / 3

#: "Hundreds of jobs" in the largest bag.
HUNDREDS = 100

#: KS distances "close to 0": the thesis says so of 0.074 and 0.054.
CLOSE = 0.1

#: Measures a workload.
Check = Callable[[Workload], Finding]


def _number(workload: Workload, name: str) -> float:
    return float(FEATURES[name].measure(workload))


def _bound(name: str, holds: Callable[[float], bool], digits: int = 2) -> Check:
    """Return a check of one feature of the catalogue."""

    def check(workload: Workload) -> Finding:
        number = _number(workload, name)
        percent = name.endswith("_share")
        text = f"{100 * number:.1f} %" if percent else f"{number:.{digits}f}"
        return {name: number}, text, holds(number)

    return check


def _mean_correlation(values: Floats) -> float:
    return float(np.abs(series.autocorrelation(values, LAGS)[1:]).mean())


def _uncorrelated(workload: Workload) -> Finding:
    times, rate = _mean_correlation(gaps(workload)), _mean_correlation(arrival_counts(workload))
    band = WHITE_NOISE / len(arrival_counts(workload)) ** 0.5
    numbers = {"interarrival_times": times, "rates": rate, "white_noise_of_rates": band}
    words = f"{times:.3f}, rates {rate:.3f} (noise {band:.3f})"
    return numbers, words, times < NONE and rate > max(band, times)


def _dependent(workload: Workload) -> Finding:
    found = arrival_hurst(workload)
    words = f"{found.mean:.2f} ± {found.sd:.2f}"
    return {"mean": found.mean, "sd": found.sd}, words, found.mean - found.sd > 0.5


def _pareto(workload: Workload) -> Finding:
    ks = {name: bag_fit(workload, name).ks for name in PARAMETERS}
    best = min(ks, key=lambda name: ks[name])
    words = f"{ks['generalized_pareto']:.3f}; best {TITLES[best]}"
    words += "" if best == "generalized_pareto" else f", {ks[best]:.3f}"
    return ks, words, ks["generalized_pareto"] <= max(ks[best], CLOSE * (best == "weibull"))


def _zipf(lengths: Int64s, fitted: Zipf) -> Finding:
    """Return the distance of the lengths from the likeliest Zipf distribution."""
    x = np.arange(1, int(lengths.max()) + 1)
    data = np.cumsum(np.bincount(lengths)[1:]) / len(lengths)
    ks = float(np.abs(data - np.cumsum(fitted.probability(x))).max())
    numbers = {"ks": ks, "exponent": fitted.exponent}
    return numbers, f"{ks:.3f} (exponent {fitted.exponent:.2f})", ks < CLOSE


def _run_lengths(workload: Workload) -> Finding:
    return _zipf(repetitions(workload), repetition_zipf(workload))


def _bag_sizes(workload: Workload) -> Finding:
    return _zipf(bags(workload).size, bag_zipf(workload))


def _cycles(workload: Workload, expected: Mapping[str, Callable[[float], bool]]) -> Finding:
    numbers = {name: _number(workload, name) for name in expected}
    words = ", ".join(f"{_SHORT[name]} {number:.2f}" for name, number in numbers.items())
    return numbers, words, all(expected[name](number) for name, number in numbers.items())


#: Cycles in few words.
_SHORT = {
    "daily_cycle": "jobs daily",
    "weekly_cycle": "jobs weekly",
    "bag_daily_cycle": "bags daily",
    "bag_weekly_cycle": "bags weekly",
}


def _absent(number: float) -> bool:
    return number < CYCLE


def _there(number: float) -> bool:
    return number >= CYCLE


def _clear(number: float) -> bool:
    return number >= CLEAR_CYCLE


def _cycle_rule(
    name: str, what: str, traces: tuple[str, ...], **expected: Callable[[float], bool]
) -> Rule:
    return Rule(name, "3.5.2", what, partial(_cycles, expected=expected), traces)


def _compared(workload: Workload, larger: str) -> Finding:
    jobs, bags = arrival_hurst(workload), bag_hurst(workload)
    numbers = {"jobs": jobs.mean, "jobs_sd": jobs.sd, "bags": bags.mean, "bags_sd": bags.sd}
    words = f"jobs {jobs.mean:.2f} ± {jobs.sd:.2f}, bags {bags.mean:.2f} ± {bags.sd:.2f}"
    if larger == "none":
        return numbers, words, abs(bags.mean - jobs.mean) <= jobs.sd + bags.sd
    return numbers, words, (bags.mean > jobs.mean) is (larger == "bags")


def _bag_run_times(workload: Workload) -> Finding:
    bags = int(np.count_nonzero(real_bags(workload).real))
    number, band = _number(workload, "bag_run_time_acf1"), WHITE_NOISE / bags**0.5
    return {"lag_1": number, "noise": band}, f"{number:.2f} (noise {band:.2f})", number > band


def _jobs_more_than_bags(workload: Workload) -> Finding:
    jobs = float(series.autocorrelation(workload.run_time, 1)[1])
    bags = _number(workload, "bag_run_time_acf1")
    return {"jobs": jobs, "bags": bags}, f"jobs {jobs:.2f}, bags {bags:.2f}", jobs > bags


def _waits(workload: Workload) -> Finding:
    wait, work = _number(workload, "bag_wait_share"), _number(workload, "bag_occupation_share")
    words = f"{100 * wait:.0f} % of waits, {100 * work:.0f} % of occupation"
    return {"waits": wait, "occupation": work}, words, wait > MOST and wait > work


def _short_bag_jobs(workload: Workload) -> Finding:
    inside, every = (_number(workload, f"{name}run_time_mean_s") for name in ("bag_job_", ""))
    numbers = {"in_bags_s": inside, "all_s": every}
    return numbers, f"{inside / 60:.1f} min, all {every / 60:.1f} min", inside < every / 2


#: Every statement that is checked, in the order of the text.
RULES = (
    Rule(
        "rates are correlated, interarrival times are not", "3.2",
        "Interarrival times have no correlation structure, rates (T = 900 s) have: mean "
        "size of R(1..96); below 0.1, and that of rates larger and beyond white noise",
        _uncorrelated,
    ),
    Rule(
        "long range dependence", "3.2",
        "Strongly present in job arrivals: Hurst parameter; above 0.5 by more than its spread",
        _dependent,
    ),
    Rule(
        "jobs are bursty", "3.2",
        "CV of interarrival times much larger than 1; at least 2",
        _bound("interarrival_cv", lambda number: number >= MUCH_LARGER),
    ),
    Rule(
        "negative correlation", "3.3.2",
        "Negative correlations of run time and parallelism concentrate around -0.2; at most -0.1",
        _bound("run_time_processors_spearman", lambda number: number <= -NONE, 3),
        ("FS3", "HPC", "FS4", "OSC"),
    ),
    Rule(
        "no correlation", "3.3.2",
        "No correlation of run time and parallelism on two traces; nearer to 0 than 0.1",
        _bound("run_time_processors_spearman", lambda number: abs(number) < NONE, 3),
        ("FS0", "SDD"),
    ),
    Rule(
        "positive correlation", "3.3.2",
        "Positive correlations of run time and parallelism concentrate around +0.4; at least 0.1",
        _bound("run_time_processors_spearman", lambda number: number >= NONE, 3),
        ("FS1", "SDB", "LLA", "LLU", "LLN", "FS2"),
    ),
    Rule(
        "run lengths are Zipf's", "3.3.3, Fig. 3.2",
        "Lengths of repetitions of like run times are fitted well by Zipf distributions: KS "
        "distance of the likeliest; below 0.1", _run_lengths,
    ),
    Rule(
        "spatial burstiness", "3.3.4",
        "Normalized entropy closer to 0 than to 1; below 0.5",
        _bound("normalized_entropy", lambda number: number < 0.5, 3),
    ),
    Rule(
        "like neighbours follow soon", "3.4, Fig. 3.3",
        "Most times between like neighbours do not exceed 100 s; more than half",
        _bound("bag_same_job_gap_share", lambda number: number > MOST),
    ),
    Rule(
        "bags are common", "3.4, Table 3.7",
        "Bag submissions are common: share of jobs in bags; at least a third",
        _bound("jobs_in_bags_share", lambda number: number >= COMMON),
    ),
    Rule(
        "like run times in a bag", "3.4, Table 3.8",
        "Mean CV in a bag smaller than 1 and closer to 0; below 0.5",
        _bound("bag_run_time_cv_mean", lambda number: number < 0.5),
    ),
    Rule(
        "bags are submitted soon", "3.4, Fig. 3.4",
        "Almost 100 % of the bags are submitted in 15 minutes; at least 95 %",
        _bound("bag_duration_short_share", lambda number: number >= ALMOST_ALL),
    ),
    Rule(
        "bag sizes are Zipf's", "3.4, Fig. 3.5",
        "A Zipf distribution can be applied to bag sizes, single jobs among them: KS distance of "
        "the likeliest; below 0.1", _bag_sizes,
    ),
    Rule(
        "generalized Pareto", "3.5.1, Table 3.10",
        "The best of five fits to times between bags, or close to 0 next to Weibull: KS distance; "
        "the smallest, or below 0.1 and only Weibull's smaller", _pareto,
    ),
    Rule(
        "bags are bursty", "3.5.1",
        "CV of times between bags; at least 2, as for jobs",
        _bound("bag_interarrival_cv", lambda number: number >= MUCH_LARGER),
    ),
    _cycle_rule(
        "LLN: weekly cycles", "Jobs and bags have a weekly cycle; each at least 0.05", ("LLN",),
        weekly_cycle=_there, bag_weekly_cycle=_there,
    ),
    _cycle_rule(
        "HPC: daily cycle of bags",
        "Jobs have no cycle, below 0.05; bags a clear daily one, at least 0.1", ("HPC",),
        daily_cycle=_absent, weekly_cycle=_absent, bag_daily_cycle=_clear,
    ),
    _cycle_rule(
        "FS3: daily cycle of bags",
        "Jobs have no daily cycle, below 0.05; bags have one, at least 0.05", ("FS3",),
        daily_cycle=_absent, bag_daily_cycle=_there,
    ),
    _cycle_rule(
        "FS2: daily cycle of jobs",
        "Jobs have a weak daily cycle, 0.05 to 0.1; bags have none, below 0.05", ("FS2",),
        daily_cycle=lambda number: _there(number) and not _clear(number),
        bag_daily_cycle=_absent, bag_weekly_cycle=_absent,
    ),
    _cycle_rule(
        "FS0: weekly of jobs, daily of bags",
        "Jobs have a weekly cycle, bags a daily one; each at least 0.05", ("FS0",),
        weekly_cycle=_there, bag_daily_cycle=_there,
    ),
    Rule(
        "jobs and bags equally dependent", "3.5.2",
        "Hurst parameters of jobs and bags are the same; within the sum of their spreads",
        partial(_compared, larger="none"), ("LLN", "FS3"),
    ),
    Rule(
        "bags more dependent", "3.5.2", "The Hurst parameter of bags is larger than that of jobs",
        partial(_compared, larger="bags"), ("HPC", "FS2"),
    ),
    Rule(
        "jobs more dependent", "3.5.2", "The Hurst parameter of jobs is larger than that of bags",
        partial(_compared, larger="jobs"), ("FS0",),
    ),
    Rule(
        "run times of bags", "3.6, Fig. 3.8",
        "Weakly to strongly autocorrelated: R(1); beyond white noise", _bag_run_times,
    ),
    Rule(
        "run times of jobs", "3.6",
        "Repetitions in bags make the autocorrelation of jobs larger: R(1); more than that of bags",
        _jobs_more_than_bags,
    ),
    Rule(
        "bags are large", "3.6, Table 3.13",
        "The largest bag is rather large, hundreds to thousands of jobs; at least 100",
        _bound("bag_size_max", lambda number: number >= HUNDREDS, 0),
    ),
    Rule(
        "large bags run longer", "3.6, Table 3.14", "Bag size and run time; positive",
        _bound("bag_size_run_time_spearman", lambda number: number > 0, 3), ("FS0", "FS3", "HPC"),
    ),
    Rule(
        "large bags of small jobs", "3.6, Table 3.15", "Bag size and parallelism; negative",
        _bound("bag_size_processors_spearman", lambda number: number < 0, 3),
        ("FS0", "FS2", "FS3", "HPC", "LLN"),
    ),
    Rule(
        "large bags ask for less", "3.6, Table 3.16", "Bag size and estimate; at most -0.1",
        _bound("bag_size_requested_time_spearman", lambda number: number <= -NONE, 3),
        ("FS2", "FS3"),
    ),
    Rule(
        "large bags ask for more", "3.6, Table 3.16", "Bag size and estimate; at least 0.1",
        _bound("bag_size_requested_time_spearman", lambda number: number >= NONE, 3), ("HPC",),
    ),
    Rule(
        "estimates of LLN", "3.6, footnote 3",
        "65 % of its jobs have none: share of jobs with one; 35 % to the printed digit",
        _bound("requested_time_share", lambda number: abs(number - 0.35) <= 0.005), ("LLN",),
    ),
    Rule(
        "short jobs in bags", "3.7",
        "The mean run time of jobs in bags is relatively small: against all jobs; less than half",
        _short_bag_jobs, ("LLN",),
    ),
    Rule(
        "bags wait", "3.7",
        "Bags wait for most of all waits, more than they occupy; more than half", _waits, ("HPC",),
    ),
)  # fmt: skip
