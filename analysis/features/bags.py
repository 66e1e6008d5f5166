"""Bags of tasks: jobs that follow each other and ask for the same (Minh 2012, section 2.3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.analysis.features import series
from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.errors import QuantityError, UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Mapping


#: What all jobs of a bag have in common; *job name* of the thesis is the executable of a trace.
SAME = ("user", "group", "queue", "executable", "requested_time", "processors")


@dataclass(frozen=True)
class Bags:
    """The bags of a workload in the order of their arrival; single jobs are bags of one.

    Attributes
    ----------
    workload
        Whose jobs they are.
    first
        Place of each bag's first job, shape (bags,).
    size
        Its jobs.
    """

    workload: Workload
    first: Int64s
    size: Int64s

    def __len__(self) -> int:
        return len(self.first)

    @property
    def real(self) -> NDArray[np.bool_]:
        """Which bags have at least two jobs, shape (bags,); the thesis measures these."""
        real: NDArray[np.bool_] = self.size > 1
        return real

    @property
    def in_real(self) -> NDArray[np.bool_]:
        """Which jobs belong to such a bag, shape (jobs,)."""
        return np.repeat(self.real, self.size)

    @property
    def arrival(self) -> Floats:
        """s; submission of each bag's first job."""
        return self.workload.submit[self.first]

    @property
    def duration(self) -> Floats:
        """s; from a bag's first submission to its last."""
        duration: Floats = self.workload.submit[self.first + self.size - 1] - self.arrival
        return duration

    @property
    def run_time(self) -> Floats:
        """s; mean run time of each bag's jobs."""
        mean: Floats = self.total(self.workload.run_time) / self.size
        return mean

    @property
    def run_time_cvs(self) -> Floats:
        """Coefficients of variation, with n, of the run times in the real bags whose mean is not 0.

        The thesis prints n - 1 (section 2.1.1); with n its Table 3.8 is reached.
        """
        mean = self.run_time
        square = (self.workload.run_time - np.repeat(mean, self.size)) ** 2
        sd = np.sqrt(self.total(square) / self.size)
        use = self.real & (mean > 0)
        cvs: Floats = sd[use] / mean[use]
        return cvs

    def total(self, of_jobs: NDArray[np.float64]) -> Floats:
        """Return the sum over the jobs of each bag, shape (bags,)."""
        found: Floats = np.add.reduceat(of_jobs, self.first)
        return found

    def of_first(self, of_jobs: NDArray[np.float64] | Int64s) -> NDArray[np.float64]:
        """Return what the first job of each bag has."""
        return np.asarray(of_jobs[self.first], np.float64)


def bags(workload: Workload) -> Bags:
    """Return the bags of a workload.

    A bag is a longest run of jobs, neighbours in the whole workload by submission, that agree in
    :data:`SAME` and follow each other within ``bag_gap_s`` of the settings.

    Raises
    ------
    UnavailableError
        When there are no jobs.
    """
    return workload.once("bags", lambda: _find(workload))


def _find(workload: Workload) -> Bags:
    if not len(workload):
        raise UnavailableError("no jobs")
    new = np.ones(len(workload), bool)
    new[1:] = np.diff(workload.submit) > workload.settings.bag_gap_s
    for name in SAME:
        column = getattr(workload, name)
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    return Bags(workload, first, np.diff(first, append=len(workload)))


def real_bags(workload: Workload) -> Bags:
    """Return the bags of a workload that has at least one of two jobs or more.

    Raises
    ------
    UnavailableError
        When it has none.
    """
    found = bags(workload)
    if not found.real.any():
        raise UnavailableError("no bag of two jobs or more")
    return found


def same_job_gaps(workload: Workload) -> Floats:
    """Return the times between neighbours that agree in :data:`SAME`, s (section 3.4, Fig. 3.3).

    A pair whose first job had ended before the second arrived is left out, where waits tell when.
    """
    same = np.ones(max(len(workload) - 1, 0), bool)
    for name in SAME:
        column = getattr(workload, name)
        same &= column[1:] == column[:-1]
    end = workload.submit + workload.wait + workload.run_time
    ended = (workload.wait[:-1] >= 0) & (end[:-1] < workload.submit[1:])
    return series.interarrivals(workload.submit)[same & ~ended]


#: s; what stands for two bags in the same second, as densities at 0 may be infinite (the value
#: that reaches Table 3.9).
NO_GAP_S = 1e-7

#: How far a search for the largest likelihood may end from it, relative; four digits of Table 3.9
#: need more than scipy's own 1e-4.
SEARCH_WITHIN = 1e-9

#: Most steps of such a search; it takes some two hundred.
MOST_STEPS = 10_000

#: Names of the distributions' parameters, in the order of Table 3.9; with ``_s`` they are in s.
PARAMETERS = {
    "generalized_pareto": ("shape", "scale_s"),
    "weibull": ("shape", "scale_s"),
    "lognormal": ("mu", "sigma"),
    "gamma": ("shape", "scale_s"),
    "exponential": ("mean_s",),
}


@dataclass(frozen=True)
class Fit:
    """A distribution fitted to data.

    Attributes
    ----------
    distribution
        A name of :data:`PARAMETERS`.
    parameters
        By name.
    ks
        Largest distance between its distribution function and that of the data.
    """

    distribution: str
    parameters: dict[str, float]
    ks: float

    def cdf(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return its distribution function at times in s, same shape."""
        return np.asarray(cdf_of(self.distribution, self.parameters)(np.asarray(times, float)))


def fit(values: ArrayLike, distribution: str) -> Fit:
    """Return a distribution fitted to times between bags.

    Parameters
    ----------
    values
        s, at least 0, shape (n,); zeros count as :data:`NO_GAP_S`.
    distribution
        A name of :data:`PARAMETERS`.

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
        raise QuantityError(f"times between bags: {times.min():g} s; they must not be negative")
    if len(times) < 3:
        raise UnavailableError(f"{plural(len(times), 'time')} between bags, at least 3 are needed")
    if (times == times[0]).all():
        raise UnavailableError("all times between bags are equal")
    # In units of their mean: the search does not depend on the unit then.
    unit = float(times.mean())
    scaled = np.where(times > 0, times, NO_GAP_S) / unit
    with np.errstate(all="ignore"):  # the search may try what has no likelihood
        found: tuple[float, ...]
        if distribution == "exponential":
            found = (scaled.mean() * unit,)
        else:
            family = _families()[distribution]
            shape, _, scale = family.fit(scaled, floc=0, optimizer=_search)
            found = (shape, scale * unit)
            if distribution == "lognormal":
                found = (np.log(scale * unit), shape)
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
    """Return the largest distance between the distribution functions of a fit and of data.

    Parameters
    ----------
    values, distribution
        As for :func:`fit`.
    parameters
        By the names of :data:`PARAMETERS`.
    """
    from scipy import stats

    times = np.asarray(values, np.float64)
    times = np.where(times > 0, times, NO_GAP_S)
    return float(stats.ks_1samp(times, cdf_of(distribution, parameters), method="asymp").statistic)


def cdf_of(distribution: str, parameters: Mapping[str, float]) -> Callable[[Any], NDArray[Any]]:
    """Return the distribution function of times in s; ``parameters`` as for :func:`distance`."""
    from scipy import stats

    first, *others = (parameters[name] for name in PARAMETERS[distribution])
    if distribution == "exponential":
        made = stats.expon(scale=first)
    elif distribution == "lognormal":
        made = stats.lognorm(others[0], scale=np.exp(first))
    else:
        made = _families()[distribution](first, scale=others[0])
    return made.cdf  # type: ignore[no-any-return]


def _families() -> dict[str, Any]:
    """Return the distributions with a shape and a scale, as scipy has them."""
    from scipy import stats

    return {
        "generalized_pareto": stats.genpareto,
        "weibull": stats.weibull_min,
        "lognormal": stats.lognorm,
        "gamma": stats.gamma,
    }


def _search(
    negative: Callable[..., float], start: ArrayLike, args: tuple[Any, ...] = (), disp: int = 0
) -> Any:
    """Search as scipy does, but on until nothing moves."""
    from scipy.optimize import fmin

    ends = {"xtol": SEARCH_WITHIN, "ftol": SEARCH_WITHIN, "maxiter": MOST_STEPS}
    return fmin(negative, start, args=args, disp=disp, **ends)
