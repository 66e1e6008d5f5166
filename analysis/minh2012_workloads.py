"""Workloads of Minh 2012, chapter 7: drawn from a log, with a given correlation, locality and load.

The thesis takes run times and processors from a model that keeps their distributions, correlation
and locality (its reference 67). Here they come from the log itself: drawn job by job where there
is to be no locality, in the recorded order where there is. Arrivals are Poisson as in the thesis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from environment.errors import QuantityError
from environment.jobs import Int64s, JobTable
from environment.quantities import round_half_up


class Sample(NamedTuple):
    """Run times, s, and processors of the jobs of a log, in their order, shape (jobs,)."""

    run_time: Int64s
    processors: Int64s


@dataclass(frozen=True)
class Workload:
    """Jobs that arrive at random, at a rate that a load decides.

    Attributes
    ----------
    run_time
        s, shape (jobs,).
    processors
        Of the same jobs.
    gaps
        Times between arrivals in units of their mean, shape (jobs,).
    """

    run_time: Int64s
    processors: Int64s
    gaps: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.run_time)

    def mean_gap(self, load: float, machine: int) -> float:
        """Return the mean time between arrivals, s, that makes a system load.

        System load is arrival rate x E[run time x processors] / machine size (section 5.2.5).
        """
        work = float((self.run_time * self.processors).mean())
        return work / (load * machine)

    def jobs(self, load: float, machine: int) -> JobTable:
        """Return the table of jobs that arrive at a system load on a machine of so many processors.

        Requested times are the run times (section 7.2.2).

        Raises
        ------
        QuantityError
            When the load is not positive, or a job does not fit on the machine.
        """
        if not 0 < load < float("inf"):
            raise QuantityError(f"load {load}: must be positive, for example 0.8")
        largest = int(self.processors.max(initial=0))
        if largest > machine:
            raise QuantityError(f"machine {machine}: a job needs {largest:,} processors")
        arrivals = round_half_up(np.cumsum(self.gaps * self.mean_gap(load, machine)))
        jobs = JobTable()
        jobs.append(
            len(self),
            processors=self.processors,
            run_time=self.run_time,
            requested_time=self.run_time,
            recorded_submit=arrivals,
            user=1,
        )
        return jobs

    def with_processors(self, processors: Int64s) -> Workload:
        """Return the same jobs with other processors."""
        return replace(self, processors=processors)

    def shuffled(self, random: np.random.Generator) -> Workload:
        """Return the workload without locality: its jobs in random order, arrivals as before."""
        order = random.permutation(len(self))
        return replace(self, run_time=self.run_time[order], processors=self.processors[order])


def drawn(sample: Sample, size: int, random: np.random.Generator) -> Workload:
    """Return a workload without locality: run times and processors drawn from a log, each alone.

    Parameters
    ----------
    sample
        The jobs of the log.
    size
        How many jobs to draw.
    random
        The stream to draw from.
    """
    count = len(sample.run_time)
    return Workload(
        sample.run_time[random.integers(count, size=size)],
        sample.processors[random.integers(count, size=size)],
        random.standard_exponential(size),
    )


def in_order(sample: Sample, size: int, random: np.random.Generator) -> Workload:
    """Return a workload with the locality of a log: its jobs in their order.

    It begins at a random job; after the last one it goes on with the first.

    Parameters
    ----------
    sample, size, random
        As for :func:`drawn`.
    """
    count = len(sample.run_time)
    places = (int(random.integers(count)) + np.arange(size)) % count
    return Workload(
        sample.run_time[places], sample.processors[places], random.standard_exponential(size)
    )
