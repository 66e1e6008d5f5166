"""Throughput against the speed of the machine, for several kinds of users: the rebound effect.

A faster machine needs less time for the same work. If users then submit more, part of the expected
saving is used up; that part is the *rebound*:

    rebound = 1 - (N(1) - N(s)) / (N(1) - N(1) / s)

with N(s) the node-hours in use per week at s times the speed. It is 0 if the same work is done
in less time, and 1 if the machine is as busy as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcrowd.agents.work.units import Units
from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import ModelFitError

#: Measures of each run, by their accounts, with their titles on a page.
MEASURES = {
    "throughput_jobs_per_week": "jobs ended per week",
    "work_recorded_node_h_per_week": "work per week, node-hours at recorded speed",
    "throughput_node_h_per_week": "node-hours in use per week",
    "utilization_weeks": "processors in use",
}


@dataclass(frozen=True)
class Rebound:
    """The results by kind of users, speed and seed.

    Attributes
    ----------
    trace
        Name of the trace.
    accounts
        For each kind of users and each speed the accounts of a run by each seed, see
        :mod:`hpcrowd.analysis.accounts.population`.
    settings
        The settings of all runs.
    """

    trace: str
    accounts: Mapping[str, Mapping[float, Sequence[Mapping[str, Any]]]]
    settings: Mapping[str, Any]

    @property
    def speeds(self) -> list[float]:
        """The speeds, as multiples of the recorded one."""
        return sorted({speed for runs in self.accounts.values() for speed in runs})

    def values(self, users: str, speed: float, measure: str) -> list[float]:
        """Return a measure by seed."""
        return [float(one[measure]) for one in self.accounts[users][speed]]

    def estimate(self, users: str, speed: float, measure: str) -> Estimate:
        """Return the mean over seeds with its interval."""
        return t_interval(self.values(users, speed, measure))

    def relative(self, users: str, speed: float, measure: str) -> Estimate:
        """Return a measure as a multiple of that at speed 1, seed by seed, with its interval."""
        pairs = zip(
            self.values(users, speed, measure), self.values(users, 1.0, measure), strict=True
        )
        return t_interval([value / base for value, base in pairs])

    def rebound(self, users: str, speed: float) -> Estimate:
        """Return the rebound at a speed above 1, seed by seed, with its interval."""
        used = "throughput_node_h_per_week"
        pairs = zip(self.values(users, speed, used), self.values(users, 1.0, used), strict=True)
        return t_interval([rebound_of(there, base, speed) for there, base in pairs])

    def mean_count(self, users: str, speed: float, account: str) -> float:
        """Return an account that counts, averaged over seeds."""
        found = self.values(users, speed, account)
        return sum(found) / len(found)


def rebound_of(used: float, base: float, speed: float) -> float:
    """Return the part of the expected saving that is used up; see the module's docstring.

    Node-hours in use are those at a speed above 1, and at speed 1.
    """
    return 1 - (base - used) / (base - base / speed)


# ---- pauses after responses ------------------------------------------------------------------
# The slope of log2(pause + grace) over log2(response + grace) within users: at 0.5 a user pauses
# 1.4 times as long after a response twice as long. It corresponds to the elasticity of
# :class:`hpcrowd.agents.populations.openness.Consequences` for a user who reacts to the machine; in
# a log it also contains how the length of jobs depends on the hour and on the work.

#: s; added to pauses and responses, so that a few seconds do not count as a multiple; as in
#: :class:`hpcrowd.agents.populations.satisfaction.Habit`.
GRACE = 600


#: s; pauses from this on are absences; as in :class:`Consequences`.
ABSENCE = WEEK


def pause_slope(units: Units, grace: int = GRACE, absence: int = ABSENCE) -> float:
    """Return the slope of pauses over the responses before them, within users, least squares.

    Pauses are the think times of recorded sessions or batches, and responses those of the last job
    to end among those that they waited for; see :data:`GRACE` and :data:`ABSENCE`. Raises
    ModelFitError when no user paused after two different responses.
    """
    there = (units.think_time >= 0) & (units.think_time < absence)
    pause = np.log2(grace + units.think_time[there])
    response = np.log2(grace + units.response[units.awaited[there]])
    user = units.user[there]
    count = np.maximum(np.bincount(user, minlength=1), 1)
    x = response - (np.bincount(user, response, minlength=1) / count)[user]
    y = pause - (np.bincount(user, pause, minlength=1) / count)[user]
    spread = float(x @ x)
    if spread <= 1e-9 * max(len(x), 1):  # rounding errors of equal numbers
        raise ModelFitError(
            f"pauses: {len(x)} of them",
            "no user paused after two different responses; take a longer trace",
        )
    return float(x @ y) / spread
