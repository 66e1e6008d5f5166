"""Bags of tasks: jobs that follow each other and ask for the same (Minh 2012, section 2.3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.features import series
from analysis.features.workload import Floats, Workload
from environment.errors import UnavailableError
from environment.jobs import Int64s

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
