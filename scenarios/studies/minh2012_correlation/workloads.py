"""Workloads of Minh 2012, chapter 7: a log's, with a given correlation, locality and load.

As in the thesis run times and processors come from a model that keeps their distributions,
correlation and locality, see :mod:`hpcrowd.analysis.models.jobs.locality`; arrivals are Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.models.jobs.locality import Locality
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s, JobTable
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.streams import Streams


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
        How many jobs to draw.
    machine
        Processors of the machine.
    streams
        Where randomness comes from.
    """
    # The model does not look at arrivals; when jobs arrive depends on the load that is asked for.
    jobs = model.jobs(np.zeros(size), machine, streams)
    gaps = streams.generator("gaps").standard_exponential(size)
    return Workload(jobs.run_time.astype(np.int64), jobs.processors, gaps)
