"""What a measure saves and what it costs, population by population, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcrowd.analysis.paired import Estimate, t_interval

#: The measure that the others are compared with.
USUAL = "as usual"


@dataclass(frozen=True)
class Measured:
    """One run between two seconds, the same for all measures.

    Attributes
    ----------
    kwh, wasted_kwh
        Energy, and the part that brought nobody a result.
    kg
        Carbon.
    cost
        Price of the energy, without that of monthly peaks.
    peak_kw
        Highest power.
    wait_h, slowdown
        Mean wait and mean bounded slowdown of the jobs submitted between the two seconds.
    work_h
        Processor-hours of jobs that ran to their end, within the two seconds.
    lost
        Part of the work of all users that they gave up, less what came back.
    asked
        Jobs that users changed, as a part of all.
    window_kwh, after_kwh
        Energy in the windows of a call for less load, and in the 24 h after each.
    """

    kwh: float
    wasted_kwh: float
    kg: float
    cost: float
    peak_kw: float
    wait_h: float
    slowdown: float
    work_h: float
    lost: float
    asked: float
    window_kwh: float = 0.0
    after_kwh: float = 0.0

    @property
    def kwh_per_work(self) -> float:
        """kWh for 1,000 processor-hours of finished work."""
        return 1000 * self.kwh / self.work_h

    @property
    def kg_per_work(self) -> float:
        """kg of carbon for 1,000 processor-hours of finished work."""
        return 1000 * self.kg / self.work_h

    @property
    def cost_per_work(self) -> float:
        """Price of the energy for 1,000 processor-hours of finished work."""
        return 1000 * self.cost / self.work_h

    @property
    def kg_per_kwh(self) -> float:
        """Carbon intensity of its energy."""
        return self.kg / self.kwh

    @property
    def cost_per_kwh(self) -> float:
        """Mean price of its energy."""
        return self.cost / self.kwh


@dataclass(frozen=True)
class Savings:
    """The runs of one log by measure, one for each population.

    Attributes
    ----------
    log
        Name of the log.
    runs
        By measure, in the order of the populations; :data:`USUAL` is among them.
    calls
        The same for calls for less load, by what users do; :data:`USUAL` is among them.
    facts
        Of the log and its machine.
    """

    log: str
    runs: Mapping[str, Sequence[Measured]]
    calls: Mapping[str, Sequence[Measured]]
    facts: Mapping[str, Any]

    def saved(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much less of something there is than as usual, percent, with interval.

        Parameters
        ----------
        measure
            Name of the measure.
        what
            Attribute of :class:`Measured`.
        call
            Whether it is a call for less load.
        """
        found = self.calls if call else self.runs
        pairs = zip(found[measure], found[USUAL], strict=True)
        return t_interval(
            [100 * (1 - getattr(one, what) / getattr(usual, what)) for one, usual in pairs]
        )

    def more(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much more of something there is than as usual, with its interval."""
        found = self.calls if call else self.runs
        pairs = zip(found[measure], found[USUAL], strict=True)
        return t_interval([getattr(one, what) - getattr(usual, what) for one, usual in pairs])

    def mean(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return the mean of something with its interval."""
        found = self.calls if call else self.runs
        return t_interval([getattr(one, what) for one in found[measure]])
