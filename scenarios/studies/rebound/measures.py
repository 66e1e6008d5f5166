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

from hpcrowd.analysis.paired import Estimate, t_interval

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

    Parameters
    ----------
    used, base
        Node-hours in use at ``speed``, and at speed 1.
    speed
        Above 1.
    """
    return 1 - (base - used) / (base - base / speed)
