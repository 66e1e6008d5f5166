"""Bags of tasks: successive jobs with the same requests (Minh 2012, section 2.3.3).

The features are those of Tables 3.7 to 3.20. Only bags of at least two jobs count, except for the
arrivals of bags (chapter 3, introduction).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.feature import Group
from hpcrowd.analysis.features.jobs import DAILY, WEEKLY, cycle, long_correlation
from hpcrowd.analysis.features.series import Hurst, hurst
from hpcrowd.analysis.features.workload import Floats, Workload, once
from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Columns that are equal for all jobs of a bag; the thesis's *job name* is a trace's executable.
SAME = ("user", "group", "queue", "executable", "requested_time", "processors")


@dataclass(frozen=True)
class Bags:
    """The bags of a workload in order of arrival; single jobs are bags of one.

    Attributes
    ----------
    workload
        The workload.
    first
        Index of each bag's first job, shape (bags,).
    size
        Number of jobs of each bag.
    """

    workload: Workload
    first: Int64s
    size: Int64s

    def __len__(self) -> int:
        return len(self.first)

    @property
    def real(self) -> NDArray[np.bool_]:
        """Which bags have at least two jobs, shape (bags,); the thesis measures these."""
        return self.size > 1

    @property
    def in_real(self) -> NDArray[np.bool_]:
        """Which jobs belong to such a bag, shape (jobs,)."""
        return np.repeat(self.real, self.size)

    @property
    def arrival(self) -> Floats:
        """Submission of each bag's first job, s."""
        return self.workload.submit[self.first]

    @property
    def duration(self) -> Floats:
        """Time from a bag's first to its last submission, s."""
        duration: Floats = self.workload.submit[self.first + self.size - 1] - self.arrival
        return duration

    @property
    def run_time(self) -> Floats:
        """Mean run time of each bag's jobs, s."""
        return self.total(self.workload.run_time) / self.size

    def total(self, of_jobs: NDArray[np.float64]) -> Floats:
        """Return the sum over the jobs of each bag, shape (bags,)."""
        return np.add.reduceat(of_jobs, self.first)


@once
def bags(workload: Workload) -> Bags:
    """Return the bags of a workload.

    A bag is a maximal sequence of jobs, successive in the whole workload by submission, that agree
    in :data:`SAME` and follow each other within ``bag_gap_s`` of the settings.

    Raises
    ------
    UnavailableError
        When there are no jobs.
    """
    if not len(workload):
        raise UnavailableError("no jobs")
    first = np.flatnonzero(begins_bag(workload, np.arange(len(workload))))
    return Bags(workload, first, np.diff(first, append=len(workload)))


def begins_bag(workload: Workload, order: Int64s) -> NDArray[np.bool_]:
    """Return which jobs begin a bag if they come in the given order, shape (jobs,)."""
    new = np.ones(len(order), bool)
    new[1:] = np.diff(workload.submit[order]) > workload.settings.bag_gap_s
    for name in SAME:
        new[1:] |= np.diff(getattr(workload, name)[order]) != 0
    return new


def real_bags(workload: Workload) -> Bags:
    """Return the bags of a workload, at least one of which has two jobs or more.

    Raises
    ------
    UnavailableError
        When there is no such bag.
    """
    found = bags(workload)
    if not found.real.any():
        raise UnavailableError("no bag of two jobs or more")
    return found


def same_job_gaps(workload: Workload) -> Floats:
    """Return the times between neighbours equal in :data:`SAME`, s (section 3.4, Fig. 3.3).

    If waits are known, pairs whose first job had ended before the second arrived are left out.
    """
    same = np.ones(max(len(workload) - 1, 0), bool)
    for name in SAME:
        same &= np.diff(getattr(workload, name)) == 0
    end = workload.submit + workload.wait + workload.run_time
    ended = (workload.wait[:-1] >= 0) & (end[:-1] < workload.submit[1:])
    return series.interarrivals(workload.submit)[same & ~ended]


#: s; replaces a time of 0 between bags, since densities at 0 may be infinite (with this value,
#: Table 3.9 is reproduced).
NO_GAP_S = 1e-7

#: Relative tolerance of the search for the largest likelihood; scipy's 1e-4 is not enough for the
#: four digits of Table 3.9.
SEARCH_WITHIN = 1e-9

#: Most steps of a search; it takes about two hundred.
MOST_STEPS = 10_000

#: Parameters of the distributions, in the order of Table 3.9; those ending in ``_s`` are in s.
PARAMETERS = {
    "generalized_pareto": ("shape", "scale_s"),
    "weibull": ("shape", "scale_s"),
    "lognormal": ("mu", "sigma"),
    "gamma": ("shape", "scale_s"),
    "exponential": ("mean_s",),
}


@dataclass(frozen=True)
class Fit:
    """A distribution of :data:`PARAMETERS` fitted to data.

    ``ks`` is the largest distance between its distribution function and that of the data.
    """

    distribution: str
    parameters: dict[str, float]
    ks: float

    def cdf(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the distribution function at times in s, same shape."""
        return np.asarray(cdf_of(self.distribution, self.parameters)(np.asarray(times, float)))


def fit(values: ArrayLike, distribution: str) -> Fit:
    """Return a distribution fitted to times between bags (Minh 2012, section 3.5.1).

    It is one of :data:`PARAMETERS`, which are estimated by maximum likelihood, with the threshold
    at 0, and named and parametrized as in the thesis (Tables 3.9 and 3.10). Values are s, at least
    0; zeros count as :data:`NO_GAP_S`.

    Raises
    ------
    UnavailableError
        When there are fewer than three values, or all are equal.
    QuantityError
        When the distribution is not known, or a value is negative.
    """
    if distribution not in PARAMETERS:
        raise QuantityError(f"distribution {distribution!r}: choose {', '.join(PARAMETERS)}")
    times = np.asarray(values, np.float64)
    if (times < 0).any():
        raise QuantityError(f"times between bags: {times.min():g} s; must not be negative")
    if len(times) < 3:
        raise UnavailableError(f"{plural(len(times), 'time')} between bags, at least 3 are needed")
    if (times == times[0]).all():
        raise UnavailableError("all times between bags are equal")
    # Scaled by their mean, so that the search does not depend on the unit.
    unit = float(times.mean())
    scaled = np.where(times > 0, times, NO_GAP_S) / unit
    with np.errstate(all="ignore"):  # the search may try parameters without a likelihood
        *shape, _, scale = _family(distribution).fit(scaled, floc=0, optimizer=_search)
        found = (*shape, scale * unit)
        if distribution == "lognormal":
            found = (np.log(scale * unit), *shape)
        named = {
            name: float(number)
            for name, number in zip(PARAMETERS[distribution], found, strict=True)
        }
        if not np.isfinite([*named.values()]).all():
            raise UnavailableError("the fit has no finite parameters")
        ks = distance(times, distribution, named)
    if not np.isfinite(ks):
        raise UnavailableError("the fit has no finite parameters")
    return Fit(distribution, named, ks)


def distance(values: ArrayLike, distribution: str, parameters: Mapping[str, float]) -> float:
    """Return the Kolmogorov-Smirnov distance between a fit and data.

    That is the largest distance between their distribution functions. Otherwise as :func:`fit`.
    """
    from scipy import stats

    times = np.asarray(values, np.float64)
    times = np.where(times > 0, times, NO_GAP_S)
    return float(stats.ks_1samp(times, cdf_of(distribution, parameters), method="asymp").statistic)


def cdf_of(distribution: str, parameters: Mapping[str, float]) -> Callable[[Any], NDArray[Any]]:
    """Return a distribution function of times in s; ``parameters`` as for :func:`distance`."""
    *shape, scale = (parameters[name] for name in PARAMETERS[distribution])
    if distribution == "lognormal":
        mu, sigma = shape[0], scale
        shape, scale = [sigma], np.exp(mu)
    return _family(distribution)(*shape, scale=scale).cdf  # type: ignore[no-any-return]


def _family(distribution: str) -> Any:
    """Return scipy's distribution of this name."""
    from scipy import stats

    return {
        "generalized_pareto": stats.genpareto,
        "weibull": stats.weibull_min,
        "lognormal": stats.lognorm,
        "gamma": stats.gamma,
        "exponential": stats.expon,
    }[distribution]


def _search(
    negative: Callable[..., float], start: ArrayLike, args: tuple[Any, ...] = (), disp: int = 0
) -> Any:
    """Search like scipy, but until convergence."""
    from scipy.optimize import fmin

    ends = {"xtol": SEARCH_WITHIN, "ftol": SEARCH_WITHIN, "maxiter": MOST_STEPS}
    return fmin(negative, start, args=args, disp=disp, **ends)


#: s; the longest duration of a bag's submissions that the thesis calls short (section 3.4: 15 min).
SHORT_S = 900

#: Printed names.
TITLES = {
    "generalized_pareto": "generalized Pareto",
    "weibull": "Weibull",
    "lognormal": "lognormal",
    "gamma": "gamma",
    "exponential": "exponential",
}


GROUP = Group("bags", "Bags of tasks", by_order=True)


def bag_sizes(workload: Workload) -> Int64s:
    """Return the sizes of real bags, in the order of their arrival."""
    found = real_bags(workload)
    return found.size[found.real]


@once
def bag_gaps(workload: Workload) -> Floats:
    """Return the times between arrivals of bags, including single jobs, s."""
    return series.interarrivals(bags(workload).arrival)


@once
def bag_counts(workload: Workload) -> Floats:
    """Return the bags in each interval of the time scale, including single jobs."""
    return series.counts(bags(workload).arrival, workload.settings.time_scale_s)


@once
def bag_hurst(workload: Workload) -> Hurst:
    """Return the Hurst parameter of the rate process of bags."""
    return hurst(bag_counts(workload))


@once
def bag_correlation(workload: Workload) -> Floats:
    """Return the autocorrelation of the counts of bags."""
    return long_correlation(workload, bag_counts(workload))


@once
def bag_fit(workload: Workload, distribution: str) -> Fit:
    """Return a distribution fitted to the times between bags; Tables 3.9 and 3.10."""
    return fit(bag_gaps(workload), distribution)


@GROUP.feature("share of jobs in bags", "Minh 2012, Table 3.7")
def jobs_in_bags_share(workload: Workload) -> float:
    """Share of jobs in bags of two or more."""
    return float(bags(workload).in_real.mean())


@GROUP.feature("similar neighbours within the gap", "Minh 2012, section 3.4, Fig. 3.3")
def bag_same_job_gap_share(workload: Workload) -> float:
    """Share of times between neighbours with the same requests that are not above the gap."""
    found = same_job_gaps(workload)
    if not len(found):
        raise UnavailableError("no two neighbours have the same requests")
    return float(np.mean(found <= workload.settings.bag_gap_s))


@GROUP.feature("run times in a bag, mean CV", "Minh 2012, Table 3.8")
def bag_run_time_cv_mean(workload: Workload) -> float:
    """Mean over bags of the CV (with n) of their run times, without bags that took 0 s.

    The thesis prints n - 1 (section 2.1.1), but only n reproduces its Table 3.8.
    """
    found = real_bags(workload)
    mean = found.run_time
    square = (workload.run_time - np.repeat(mean, found.size)) ** 2
    sd = np.sqrt(found.total(square) / found.size)
    use = found.real & (mean > 0)
    if not use.any():
        raise UnavailableError("all run times are 0")
    return float((sd[use] / mean[use]).mean())


@GROUP.feature("bag size, mean", "Minh 2012, Table 3.13")
def bag_size_mean(workload: Workload) -> float:
    """Jobs per bag, of bags of two or more."""
    return float(bag_sizes(workload).mean())


@GROUP.feature("bag size, largest", "Minh 2012, Table 3.13")
def bag_size_max(workload: Workload) -> int:
    """Jobs of the largest bag."""
    return int(bag_sizes(workload).max())


@GROUP.feature("bags submitted in 15 minutes", "Minh 2012, section 3.4, Fig. 3.4", calendar=True)
def bag_duration_short_share(workload: Workload) -> float:
    """Share of bags whose last job follows their first within 15 minutes."""
    found = real_bags(workload)
    return float(np.mean(found.duration[found.real] <= SHORT_S))


@GROUP.feature("bag submission, mean", "Minh 2012, section 3.4, Fig. 3.4")
def bag_duration_mean_s(workload: Workload) -> float:
    """Time from a bag's first to its last submission."""
    found = real_bags(workload)
    return float(found.duration[found.real].mean())


@GROUP.feature("time between bags, mean", "Minh 2012, section 3.5.1")
def bag_interarrival_mean_s(workload: Workload) -> float:
    """Time between arrivals of bags, including single jobs."""
    return series.moments(bag_gaps(workload)).mean


@GROUP.feature("temporal burstiness of bags (CV)", "Minh 2012, Table 3.11")
def bag_interarrival_cv(workload: Workload) -> float:
    """Coefficient of variation of times between bags, including single jobs."""
    return series.moments(bag_gaps(workload)).cv


def _parameter(workload: Workload, distribution: str, name: str) -> float:
    return bag_fit(workload, distribution).parameters[name]


def _distance(workload: Workload, distribution: str) -> float:
    return bag_fit(workload, distribution).ks


for _distribution, _names in PARAMETERS.items():
    for _name in _names:
        GROUP.add(
            f"bag_interarrival_{_distribution}_{_name}",
            f"  {TITLES[_distribution]}: {_name.removesuffix('_s')}",
            "fitted to times between bags by maximum likelihood, threshold 0",
            "Minh 2012, Table 3.9",
            partial(_parameter, distribution=_distribution, name=_name),
            # The mean of a logarithm: a change of unit adds to it instead of multiplying.
            calendar=_name == "mu",
        )
for _distribution in PARAMETERS:
    GROUP.add(
        f"bag_interarrival_{_distribution}_ks",
        f"  {TITLES[_distribution]}: KS distance",
        "largest distance between the distribution functions of fit and data",
        "Minh 2012, Table 3.10",
        partial(_distance, distribution=_distribution),
    )


@GROUP.feature(
    "Hurst parameter of bags, mean", "Minh 2012, Table 3.12 (whose estimator is not known)"
)
def bag_hurst_mean(workload: Workload) -> float:
    """Mean of three estimates for the rate process of bags."""
    return bag_hurst(workload).mean


@GROUP.feature(
    "Hurst parameter of bags, spread", "Minh 2012, Table 3.12 (whose estimator is not known)"
)
def bag_hurst_sd(workload: Workload) -> float:
    """Standard deviation of the three estimates."""
    return bag_hurst(workload).sd


@GROUP.feature(
    "daily cycle of bags", "Minh 2012, section 3.5.2; the measure is our own", calendar=True
)
def bag_daily_cycle(workload: Workload) -> float:
    """The daily cycle, from counts of bags."""
    return cycle(workload, bag_correlation(workload), DAILY)


@GROUP.feature(
    "weekly cycle of bags", "Minh 2012, section 3.5.2; the measure is our own", calendar=True
)
def bag_weekly_cycle(workload: Workload) -> float:
    """The weekly cycle, from counts of bags."""
    return cycle(workload, bag_correlation(workload), WEEKLY)


@GROUP.feature("run times of successive bags", "Minh 2012, section 3.6, Fig. 3.8")
def bag_run_time_acf1(workload: Workload) -> float:
    """Autocorrelation of the mean run times of bags at lag 1."""
    found = real_bags(workload)
    return float(series.autocorrelation(found.run_time[found.real], 1)[1])


@GROUP.feature("bag size and run time (Spearman)", "Minh 2012, Table 3.14")
def bag_size_run_time_spearman(workload: Workload) -> float:
    """Rank correlation of a bag's size and mean run time."""
    found = real_bags(workload)
    return series.spearman(found.size[found.real], found.run_time[found.real])


@GROUP.feature("bag size and processors (Spearman)", "Minh 2012, Table 3.15")
def bag_size_processors_spearman(workload: Workload) -> float:
    """Rank correlation of a bag's size and requested processors."""
    found = real_bags(workload)
    return series.spearman(found.size[found.real], workload.processors[found.first][found.real])


@GROUP.feature("bag size and estimate (Spearman)", "Minh 2012, Table 3.16")
def bag_size_requested_time_spearman(workload: Workload) -> float:
    """Rank correlation of a bag's size and requested time, of bags that have one."""
    found = real_bags(workload)
    asked = workload.requested_time[found.first]
    use = found.real & (asked > 0)
    if not use.any():
        raise UnavailableError("no requested times recorded")
    return series.spearman(found.size[use], asked[use])


@GROUP.feature("use of estimates by bags", "Minh 2012, Table 3.17")
def bag_use_of_estimates(workload: Workload) -> float:
    """Run time x processors over requested time x processors, of bags that have a request."""
    asked = real_bags(workload).in_real & (workload.requested_time > 0)
    if not asked.any():
        raise UnavailableError("no requested times recorded")
    processors = workload.processors[asked]
    occupied = (workload.run_time[asked] * processors).sum()
    return float(occupied / (workload.requested_time[asked] * processors).sum())


@GROUP.feature("share of occupation by bags", "Minh 2012, Table 3.18")
def bag_occupation_share(workload: Workload) -> float:
    """Share of jobs in bags in the run time x processors of all jobs."""
    inside = real_bags(workload).in_real
    occupation = workload.run_time * workload.processors
    if occupation.sum() <= 0:
        raise UnavailableError("all run times are 0")
    return float(occupation[inside].sum() / occupation.sum())


@GROUP.feature("run time of jobs in bags, mean", "Minh 2012, Table 3.19")
def bag_job_run_time_mean_s(workload: Workload) -> float:
    """Mean run time of jobs in bags of two or more, to compare with that of all jobs."""
    return float(workload.run_time[real_bags(workload).in_real].mean())


@GROUP.feature("share of waits by bags", "Minh 2012, Table 3.20")
def bag_wait_share(workload: Workload) -> float:
    """Share of jobs in bags in the wait of all jobs whose wait is known."""
    inside = real_bags(workload).in_real
    known = workload.wait >= 0
    if not known.any():
        raise UnavailableError("no waits recorded")
    wait = np.where(known, workload.wait, 0.0)
    if wait.sum() <= 0:
        raise UnavailableError("all waits are 0")
    return float(wait[inside].sum() / wait.sum())
