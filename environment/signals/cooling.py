"""Cooling: how much more than its computers a machine draws, by outside temperature.

Power usage effectiveness (PUE) is the power of the whole divided by that of the computers. With
free cooling it is low in winter and high in summer; a few points, read off a provider's figure,
describe it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SignalError
from hpcrowd.environment.limits.numbers import MOST_PUE
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.steps import Steps

#: degC, beyond what was ever measured outside (-89 in Antarctica, 57 in Death Valley).
COLDEST, HOTTEST = -100.0, 70.0


@dataclass(frozen=True)
class Cooling:
    """Power usage effectiveness by outside temperature.

    Attributes
    ----------
    temperature
        Outside, degC.
    points
        Pairs of temperature, degC, ascending, and PUE; linear between them, constant beyond.

    Raises
    ------
    QuantityError
        Without points, or if temperatures do not ascend, or a PUE is not from 1 to 10.
    SignalError
        If a temperature cannot be in degC.

    Examples
    --------
    >>> from hpcrowd.environment.signals.signal import parse_signal
    >>> outside = parse_signal(["time,value", "0,5", "3600,20", "7200,40"])
    >>> cooling = Cooling(outside, ((10, 1.1), (30, 1.5)))
    >>> cooling.on(Clock(), 0, 10800).values.round(6).tolist()
    [1.1, 1.3, 1.5]
    """

    temperature: Signal
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise QuantityError("cooling: no points; give pairs of temperature (degC) and PUE")
        for degrees, pue in self.points:
            if not COLDEST <= degrees <= HOTTEST:
                raise QuantityError(
                    f"cooling: temperature {degrees:g} degC: must be from {COLDEST:g} to "
                    f"{HOTTEST:g}"
                )
            if not 1 <= pue <= MOST_PUE:
                raise QuantityError(
                    f"cooling: PUE {pue:g} at {degrees:g} degC: must be from 1 to {MOST_PUE:g}"
                )
        for (first, _), (second, _) in pairwise(self.points):
            if first >= second:
                raise QuantityError(
                    f"cooling: temperature {second:g} after {first:g} degC: must ascend; sort the "
                    "points, each temperature once"
                )
        values = self.temperature.values
        wrong = np.flatnonzero((values < COLDEST) | (values > HOTTEST))
        if len(wrong):
            raise SignalError(
                f"{self.temperature.source}, step {wrong[0] + 1}",
                f"not an outside temperature in degC, from {COLDEST:g} to {HOTTEST:g}; convert it, "
                "or name what means missing: missing",
                "value",
                f"{values[wrong[0]]:g}",
            )

    def on(self, clock: Clock, begin: int, end: int) -> Steps:
        """Return the PUE over the seconds from ``begin`` to ``end``.

        Raises
        ------
        SignalError
            If the temperatures do not cover them.
        """
        outside = self.temperature.on(clock, begin, end)
        degrees, pue = np.array(self.points, np.float64).T
        return Steps(outside.edges, np.interp(outside.values, degrees, pue))
