"""Workloads of Minh 2012, chapter 7: a log's, with a given correlation, locality and load.

As in the thesis run times and processors come from a model that keeps their distributions,
correlation and locality, see :mod:`hpcrowd.analysis.models.jobs.locality`; arrivals are Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.streams import Streams


@dataclass(frozen=True)
class RandomJobs:
    """Jobs whose arrivals are chosen when they are submitted.

    Attributes
    ----------
    run_time
        s on nodes of speed 1, shape (jobs,).
    processors
        Of the same jobs.
    """

    run_time: Int64s
    processors: Int64s

    def __len__(self) -> int:
        return len(self.run_time)

    def mean_gap(self, load: float, processors: float, speed: float = 1.0) -> float:
        """Return the mean time between arrivals, s, that makes a load.

        Load is arrival rate x E[run time x processors] / processors (sections 5.2.5 and 6.2).

        Parameters
        ----------
        load
            1 is all of the processors.
        processors
            Of the machine, or those free in all clusters of a grid.
        speed
            Of the nodes: run times are divided by it.

        Raises
        ------
        QuantityError
            When the load is not positive.
        """
        if not 0 < load < float("inf"):
            raise QuantityError(f"load {load}: must be positive, for example 0.8")
        work = float((self.run_time * self.processors).mean()) / speed
        return work / (load * processors)

    def table(self, submits: Int64s) -> JobTable:
        """Return the table of the jobs; requested times are run times (section 7.2.2)."""
        jobs = JobTable()
        self.append_to(jobs, submits)
        return jobs

    def append_to(self, jobs: JobTable, submits: Int64s) -> Int64s:
        """Add the jobs to a table and return their rows."""
        return jobs.append(
            len(self),
            processors=self.processors,
            run_time=self.run_time,
            requested_time=self.run_time,
            recorded_submit=submits,
            user=1,
        )


@dataclass(frozen=True)
class Workload(RandomJobs):
    """Jobs that arrive at random, at a rate given by a load.

    Attributes
    ----------
    gaps
        Times between arrivals in units of their mean, shape (jobs,).
    """

    gaps: NDArray[np.float64]

    def jobs(self, load: float, machine: int) -> JobTable:
        """Return the table of jobs that arrive at a system load on a machine of this size.

        Raises
        ------
        QuantityError
            When the load is not positive, or a job does not fit on the machine.
        """
        arrivals = round_half_up(np.cumsum(self.gaps * self.mean_gap(load, machine)))
        largest = int(self.processors.max(initial=0))
        if largest > machine:
            raise QuantityError(f"machine {machine}: a job needs {largest:,} processors")
        return self.table(arrivals)

    def with_processors(self, processors: Int64s) -> Workload:
        """Return the same jobs with other processors."""
        return replace(self, processors=processors)

    def with_run_times_shuffled(self, random: np.random.Generator) -> Workload:
        """Return the workload without locality and correlation: run times in random order."""
        return replace(self, run_time=self.run_time[random.permutation(len(self))])

    def shuffled(self, random: np.random.Generator) -> Workload:
        """Return the workload without locality: its jobs in random order, arrivals as before."""
        order = random.permutation(len(self))
        return replace(self, run_time=self.run_time[order], processors=self.processors[order])


def modelled(model: Locality, size: int, machine: int, streams: Streams) -> Workload:
    """Return a workload of a model, with the locality and the correlation of its log.

    Parameters
    ----------
    model
        The model of a log.
    size
        Number of jobs to draw.
    machine
        Processors of the machine.
    streams
        Random streams.
    """
    # The model does not use arrivals; they depend on the load.
    jobs = model.jobs(np.zeros(size), machine, streams)
    gaps = streams.generator("gaps").standard_exponential(size)
    return Workload(jobs.run_time.astype(np.int64), jobs.processors, gaps)
