"""Minh 2012, section 5.2.5: slowdown against load, of a trace and of generated workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.features.workload import Floats, Workload
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.quantities import round_half_up

#: Policies of Fig. 5.3 by our names, with their names in the thesis.
POLICIES = {"fcfs": "FIFO", "easy": "EASY"}

#: System loads that are simulated; those of the thesis are not given (chosen here).
LOADS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

#: System loads at which the trace has to lie in the band: those of our study of chapter 7, and
#: between. Below, Thunder's record is smoother than any workload, because its submit times are
#: start times: it has no waits. Beyond, responses take weeks under FIFO, in a log of months.
REQUIRED_LOADS = (0.7, 0.75, 0.8, 0.85, 0.9)


#: Largest share of the jobs that may be left out because they are wider than the system: with more,
#: the workload would be another one. For LLN it is less than 0.1 %.
MOST_LEFT_OUT = 0.05


class System(NamedTuple):
    """A system of the size that gives a load."""

    processors: int
    fits: NDArray[np.bool_]  #: the jobs that fit; the others are left out


def system_of(workload: Workload, load: float, widest: int | None = None) -> System:
    """Return the system on which a workload has a load (arrival rate x E[run x size] / N).

    Jobs wider than the system are left out, also from the load: it is the largest system on which
    the jobs that fit make the load.

    Parameters
    ----------
    workload
        Its jobs.
    load
        System load; 1 is all of the system.
    widest
        Processors beyond which jobs are left out at any load; None for none.

    Raises
    ------
    UnavailableError
        When all jobs have the same submit time, or more than :data:`MOST_LEFT_OUT` do not fit.
    """
    span = float(workload.submit[-1] - workload.submit[0]) if len(workload) else 0.0
    if span <= 0:
        raise UnavailableError("all jobs were submitted in the same second")
    work = workload.run_time * workload.processors
    processors = int(workload.processors.max()) if widest is None else widest
    fits = workload.processors <= processors
    while fits.mean() >= 1 - MOST_LEFT_OUT:
        found = max(int(round_half_up(float(work[fits].sum()) / (span * load))), 1)
        holds = fits & (workload.processors <= found)
        if (holds == fits).all():
            return System(found, fits)
        fits = holds
    raise UnavailableError(
        f"more than {100 * MOST_LEFT_OUT:g} % of the jobs are wider than a system of load {load:g}"
    )


def slowdown_text(number: float) -> str:
    """Return a slowdown with three digits or so."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


class Points(NamedTuple):
    """Results of simulating one workload; shapes (policies, loads) and (loads,)."""

    slowdown: Floats  #: mean response time / mean run time; not a number without a system
    processors: Int64s  #: of the systems; 0 without one
    left_out: Floats  #: share of the jobs wider than the system


@dataclass(frozen=True)
class Schedule:
    """A trace and generated workloads in simulations.

    Attributes
    ----------
    trace
        Results of the trace.
    workloads
        Results of each generated workload.
    """

    trace: Points
    workloads: Sequence[Points]

    @property
    def slowdowns(self) -> Floats:
        """Slowdowns of the generated workloads, shape (workloads, policies, loads)."""
        return np.array([one.slowdown for one in self.workloads])

    @property
    def least(self) -> Floats:
        """The smallest of them, shape (policies, loads)."""
        found: Floats = self.slowdowns.min(axis=0)
        return found

    @property
    def mean(self) -> Floats:
        """Their mean, shape (policies, loads)."""
        found: Floats = self.slowdowns.mean(axis=0)
        return found

    @property
    def most(self) -> Floats:
        """The largest of them, shape (policies, loads)."""
        found: Floats = self.slowdowns.max(axis=0)
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether trace and workloads could be simulated, shape (policies, loads)."""
        every = np.concatenate([self.trace.slowdown[None], self.slowdowns])
        known: NDArray[np.bool_] = np.isfinite(every).all(axis=0)
        return known

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether the trace lies in the band of the workloads, shape (policies, loads)."""
        trace = self.trace.slowdown
        inside: NDArray[np.bool_] = self.known & (self.least <= trace) & (trace <= self.most)
        return inside

    def points(self) -> Iterator[tuple[str, float, int, int]]:
        """Yield policy, load and their places."""
        for row, policy in enumerate(POLICIES):
            for column, load in enumerate(LOADS):
                yield policy, load, row, column

    def count_inside(self, loads: Sequence[float] = LOADS) -> tuple[int, int]:
        """Return the number of points of the trace in the band, and of all known points."""
        columns = [LOADS.index(load) for load in loads]
        return int(self.inside[:, columns].sum()), int(self.known[:, columns].sum())
