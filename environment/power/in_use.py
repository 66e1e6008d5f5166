"""What the jobs of a run draw, as users and accounts ask for it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.jobs import Float64s, Int64s, JobTable
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.quantities import KWH


class PowerInUse:
    """The power of the jobs of a run.

    Parameters
    ----------
    power
        The description of the machine; its draw is fitted already, see ``Draw.fitted``.
    jobs
        The table of jobs.
    clock
        Local time, for cooling by outside temperature.
    measured
        W per processor that was measured of each job; -1 for unknown, or for the jobs of the table
        beyond. None if nothing was measured.
    """

    def __init__(
        self, power: Power, jobs: JobTable, clock: Clock, measured: Float64s | None = None
    ) -> None:
        self.power, self.jobs, self.clock = power, jobs, clock
        self.measured = measured

    @cached_property
    def node(self) -> NodePower:
        """The type of node whose constants count for jobs: that of the nodes not named by others.

        If all are named, the first type. Which nodes a job gets is not known before it starts.
        """
        return next((one for one in self.power.nodes if not one.nodes), self.power.nodes[0])

    @cached_property
    def mean_pue(self) -> float:
        """The mean power usage effectiveness, from the origin to the last end in the record."""
        pue = self.power.pue
        if isinstance(pue, int | float):
            return float(pue)
        end = max(int(self.jobs.recorded_end.max(initial=0)), DAY)
        return float(pue.on(self.clock, 0, end).mean(0, end))

    def watts(self, rows: ArrayLike) -> Float64s:
        """Return W per processor of some jobs, without cooling, shape (rows,)."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        if self.power.draw is None:
            found = np.full(len(rows), self.node.busy_processor)
        else:
            found = self.power.draw.watts(self.jobs, rows, self.node)
        if self.measured is not None:
            inside = rows < len(self.measured)
            known = np.zeros(len(rows), bool)
            known[inside] = self.measured[rows[inside]] > 0
            found[known] = self.measured[rows[known]]
        return found

    def energy(self, rows: ArrayLike) -> Float64s:
        """Return the kWh, with cooling, of some jobs if they run as long as they need now."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        return self._kwh(rows, self.jobs.run_time[rows])

    def requested_energy(self, rows: ArrayLike) -> Float64s:
        """Return the kWh, with cooling, of some jobs if they run for their requested time."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        return self._kwh(rows, self.jobs.requested_time[rows])

    def _kwh(self, rows: Int64s, seconds: Int64s) -> Float64s:
        work = self.jobs.processors[rows] * np.maximum(seconds, 0)
        kwh: Float64s = work * self.watts(rows) * self.mean_pue / KWH
        return kwh
