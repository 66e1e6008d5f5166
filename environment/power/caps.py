"""A cap on the power of a machine over time, and the clock that running jobs slow down to.

All processors draw their idle power, and each busy one the same number of W more, times a power of
the clock. So a cap is a number of processors that may be busy at a time t,

    n(t) = floor((cap(t) - idle power of what is up) / (W of a busy processor * f^exponent)),

and the scheduler sees a machine of that size. A job that needs more waits until the cap rises; as
behind processors that are down, EASY makes no reservation for it meanwhile.

When the cap falls below what runs, all processors run at a lower clock ("uniform frequency" of
Bodas et al., "Simple Power-Aware Scheduler to Limit Power Consumption by HPC System within a
Budget", E2SC 2014), the highest one at which everything fits; what does not fit at the lowest is
stopped. The clock is chosen again when the cap changes, and lowered earlier if processors come up
and draw idle power again. Requested times do not grow: where jobs are killed at their limit, a low
clock makes that more frequent.

Run times follow Hsu and Kremer ("The design, implementation, and evaluation of a compiler algorithm
for CPU energy reduction", PLDI 2003), as Etinski et al. use them ("Optimizing job performance under
a given power constraint in HPC centers", 2010); neither paper was at hand (unconfirmed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.limits.numbers import MOST_PROCESSORS, check_within
from hpcrowd.environment.signals.signal import Signal

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.power.description import Power

#: Dynamic power of a busy processor grows with this power of its clock, since the voltage falls
#: with the clock (unconfirmed).
EXPONENT = 3.0

#: Relative clocks, highest first (our choice).
LEVELS = (1.0, 0.9, 0.8, 0.7, 0.6)

#: Lowest relative clock, largest exponent, and largest cap in W, that are not taken for mistakes.
LEAST_LEVEL, MOST_EXPONENT, MOST_POWER = 0.05, 10, 10**9

#: What happens to jobs that do not fit at the lowest clock.
STOPS = ("requeue", "fail", "none")


@dataclass(frozen=True)
class SpeedLaw:
    """How run time and power follow the clock of the processors.

    Attributes
    ----------
    beta
        Share of the run time at full clock that scales with the clock, from 0 to 1: at a clock f
        times as fast, a job takes 1 + beta (1 / f - 1) times as long.
    exponent
        The W that a busy processor adds to its idle power are f^exponent times those at full clock.
    levels
        Relative clocks, highest first; the first is 1.

    Raises
    ------
    QuantityError
        If one of them has no meaning.
    """

    beta: float
    exponent: float = EXPONENT
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        check_within("speed law with beta", self.beta, 0, 1)
        check_within("speed law with exponent", self.exponent, 0, MOST_EXPONENT)
        for level in self.levels:
            check_within("speed law with level", level, LEAST_LEVEL, 1)
        if self.levels[:1] != (1,) or any(one <= other for one, other in pairwise(self.levels)):
            shown = ", ".join(f"{level:g}" for level in self.levels)
            raise QuantityError(
                f"speed law with levels {shown or 'none'}: must begin with 1 and fall, as in 1, "
                "0.9, 0.8"
            )

    def pace(self, level: float) -> Fraction:
        """Return the speed of jobs at a level, relative to full clock."""
        return 1 / (1 + _exact(self.beta) * (1 / _exact(level) - 1))

    def share(self, level: float) -> Fraction:
        """Return the dynamic power of a busy processor at a level, relative to full clock."""
        if self.exponent == int(self.exponent):
            return _exact(level) ** int(self.exponent)
        return _exact(level**self.exponent)


@dataclass(frozen=True)
class PowerCap:
    """A limit on what the machine draws.

    Attributes
    ----------
    limit
        W of the machine without cooling: one number, or over time. Before and after the steps of a
        signal the first and the last one hold.
    law
        How processors slow down when the cap falls; None if they cannot.
    stop
        What happens to running jobs that do not fit (at the lowest clock): ``requeue`` and ``fail``
        as for other changes of the platform, the last started first, but none that fits next to
        those started before it. With ``none`` they continue, so that the cap limits starts only and
        what runs may exceed it.

    Raises
    ------
    QuantityError
        If the limit is negative or beyond 1 GW, or the fate not known.
    """

    limit: float | Signal
    law: SpeedLaw | None = None
    stop: Literal["requeue", "fail", "none"] = "requeue"

    def __post_init__(self) -> None:
        check_choice("power cap with stop", self.stop, STOPS)
        least = self.limit.values.min() if isinstance(self.limit, Signal) else self.limit
        most = self.limit.values.max() if isinstance(self.limit, Signal) else self.limit
        for value in (least, most):
            check_within("power cap in W", float(value), 0, MOST_POWER)

    def changes(self, clock: Clock) -> list[tuple[int, float]]:
        """Return the second from which each limit holds, from 0 on, and the limit in W.

        Raises
        ------
        SignalError
            If the limit is by date and the run has none.
        """
        if not isinstance(self.limit, Signal):
            return [(0, float(self.limit))]
        begins, values = self.limit.seconds(clock)[:-1], self.limit.values
        first = max(int(np.searchsorted(begins, 0, side="right")) - 1, 0)
        begins = np.maximum(begins[first:], 0)
        begins[0] = 0
        values = values[first:]
        new = np.append(True, values[1:] != values[:-1])
        return list(zip(begins[new].tolist(), values[new].tolist(), strict=True))

    def of(self, power: Power, jobs: JobTable, clock: Clock) -> CapPlan:
        """Return the cap in terms of a pool of equal processors.

        Where jobs draw differently, every busy processor counts with what the most demanding job
        draws: the cap is never exceeded, but not used up either.

        Raises
        ------
        QuantityError
            If there are several types of nodes.
        """
        node, rows = power.pool, np.arange(len(jobs))
        busy = node.processor
        if power.draw is not None:
            busy = float(np.max(power.draw.watts(jobs, rows), initial=busy))
        limits = tuple((at, _exact(limit)) for at, limit in self.changes(clock))
        return CapPlan(
            limits, _exact(node.idle) / node.processors, _exact(busy), self.law, self.stop
        )


@dataclass(frozen=True)
class CapPlan:
    """A cap in terms of a pool of equal processors; all numbers are exact.

    Attributes
    ----------
    limits
        The second from which each limit holds, the first 0, and the limit in W.
    idle
        W of a processor that is up, busy or not.
    busy
        W that a busy processor adds at full clock.
    law, stop
        See :class:`PowerCap`.
    """

    limits: tuple[tuple[int, Fraction], ...]
    idle: Fraction
    busy: Fraction
    law: SpeedLaw | None = None
    stop: Literal["requeue", "fail", "none"] = "requeue"

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Relative clocks, highest first."""
        return (1.0,) if self.law is None else self.law.levels

    @cached_property
    def _each(self) -> dict[float, Fraction]:
        """W that a busy processor adds, by level."""
        if self.law is None:
            return {1.0: self.busy}
        return {level: self.busy * self.law.share(level) for level in self.levels}

    @cached_property
    def _paces(self) -> dict[float, Fraction]:
        if self.law is None:
            return {1.0: Fraction(1)}
        return {level: self.law.pace(level) for level in self.levels}

    def pace(self, level: float) -> Fraction:
        """Return the speed of jobs at a level, relative to full clock."""
        return self._paces[level]

    def room(self, limit: Fraction, up: int, level: float) -> int:
        """Return how many processors may be busy at a level if that many are up."""
        left, each = limit - self.idle * up, self._each[level]
        if left < 0:
            return 0
        return left // each if each else MOST_PROCESSORS

    def level(self, limit: Fraction, up: int, busy: int) -> float:
        """Return the highest level at which that many processors may be busy, else the lowest."""
        fitting = (one for one in self.levels if busy <= self.room(limit, up, one))
        return next(fitting, self.levels[-1])

    def check(self, sizes: Mapping[int, int]) -> None:
        """Check that the cap is never below the idle power of the machine.

        Parameters
        ----------
        sizes
            Processors of the machine by the second from which it has them, from 0 on; those that
            go down count as up.

        Raises
        ------
        QuantityError
            Names the first second at which it is.
        """
        limits = dict(self.limits)
        processors, limit = sizes[0], limits[0]
        for at in sorted({*sizes, *limits}):
            processors, limit = sizes.get(at, processors), limits.get(at, limit)
            if limit < self.idle * processors:
                raise QuantityError(
                    f"power cap {float(limit):,g} W from {at} s: below the "
                    f"{float(self.idle * processors):,g} W that {processors:,} idle processors "
                    "draw; raise the cap, or shrink the machine with a Resize"
                )


def _exact(value: float) -> Fraction:
    """Return the number as it is written, so that 0.3 W are three times 0.1 W."""
    return Fraction(Decimal(repr(float(value))))
