"""A cap on the power of a machine over time, and the clock that running jobs slow down to.

All processors draw their idle power, and each busy one the same number of W more, times a power of
the clock. So a cap is a number of processors that may be busy at a time t,

    n(t) = floor((cap(t) - idle power of what is up) / (W of a busy processor * f^exponent)),

and the scheduler sees a machine of that size. A job that needs more waits until the cap rises; as
behind processors that are down, EASY makes no reservation for it meanwhile. Under a cap that never
changes, one that needs more is rejected, as one larger than the machine.

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
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.limits.numbers import MOST_PROCESSORS, check_within
from hpcrowd.environment.signals.signal import Signal

if TYPE_CHECKING:
    from hpcrowd.environment.power.in_use import PowerInUse

#: Dynamic power of a busy processor grows with this power of its clock, since the voltage falls
#: with the clock (unconfirmed).
EXPONENT = 3.0

#: Relative clocks, highest first (our choice).
LEVELS = (1.0, 0.9, 0.8, 0.7, 0.6)

#: Lowest relative clock, largest exponent, and largest cap in W, that are not taken for mistakes.
LEAST_LEVEL, MOST_EXPONENT, MOST_POWER = 0.05, 10, 10**9

#: Largest relative error of a sum of W.
ROUNDING = 1e-12

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
        signal that does not repeat, the first and the last one hold.
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

    def changes(self, in_use: PowerInUse) -> list[tuple[int, float]]:
        """Return the second from which each limit holds, the first 0, and the limit in W.

        A signal that repeats does so until twice the length of the record, or for some years.

        Raises
        ------
        SignalError
            If the limit is by date and the run has none, or ends before the run begins.
        """
        if not isinstance(self.limit, Signal):
            return [(0, float(self.limit))]
        begin, end = 0, in_use.foreseen
        if self.limit.repeat == "no":
            edges = self.limit.seconds(in_use.clock)
            begin, end = max(0, int(edges[0])), int(edges[-1])
        steps = self.limit.on(in_use.clock, begin, end).merged()
        return list(zip([0, *steps.edges[1:-1].tolist()], steps.values.tolist(), strict=True))

    def of(self, in_use: PowerInUse) -> CapPlan:
        """Return the cap for the pool of equal processors whose jobs draw as ``in_use`` says.

        Raises
        ------
        QuantityError
            If there are several types of nodes.
        """
        return CapPlan(self.changes(in_use), in_use, self.law, self.stop)


class CapPlan:
    """A cap for a pool of equal processors, computed without rounding errors.

    Where jobs draw differently, a start counts with what the most demanding job of all draws, so
    that the cap is never exceeded, but not used up either. What runs counts with what it draws
    when the cap falls.

    Parameters
    ----------
    limits
        The second from which each limit holds, the first 0, and the limit in W.
    in_use
        What processors and jobs draw.
    law, stop
        See :class:`PowerCap`.

    Attributes
    ----------
    levels
        Relative clocks, highest first.
    """

    def __init__(
        self,
        limits: list[tuple[int, float]],
        in_use: PowerInUse,
        law: SpeedLaw | None = None,
        stop: Literal["requeue", "fail", "none"] = "requeue",
    ) -> None:
        self.limits, self.law, self.stop = limits, law, stop
        self._in_use, self._node = in_use, in_use.power.pool
        self.levels = (1.0,) if law is None else law.levels
        self._idle = _exact(self._node.idle) / self._node.processors
        self._most = _exact(self._node.processor)
        self._learned = 0
        self._shares = {level: law.share(level) if law else Fraction(1) for level in self.levels}
        self._paces = {level: law.pace(level) if law else Fraction(1) for level in self.levels}

    @property
    def uniform(self) -> bool:
        """Whether all jobs draw the same."""
        return self._in_use.power.draw is None and self._in_use.measured is None

    def learn(self) -> bool:
        """Look at jobs that are new in the table; return whether one draws more than any before."""
        jobs, before = self._in_use.jobs, self._most
        if len(jobs) > self._learned and not self.uniform:
            added = self._added(np.arange(self._learned, len(jobs)))
            self._most, self._learned = max(before, _exact(added.max())), len(jobs)
        return self._most > before

    def _added(self, rows: Int64s) -> Float64s:
        """Return W that each processor of some jobs adds to its idle power at full clock."""
        watts = self._in_use.watts(rows)
        return np.maximum(watts - self._node.idle_processor, 0)

    def pace(self, level: float) -> Fraction:
        """Return the speed of jobs at a level, relative to full clock."""
        return self._paces[level]

    def share(self, level: float) -> Fraction:
        """Return what busy processors add at a level, relative to full clock."""
        return self._shares[level]

    def left(self, limit: float, up: int) -> Fraction:
        """Return the W that a limit leaves for busy processors; negative if for none."""
        return _exact(limit) - self._idle * up

    def room(self, left: Fraction, level: float) -> int:
        """Return how many processors may be busy at a level, whatever runs there."""
        each = self._most * self._shares[level]
        if left < 0:
            return 0
        return left // each if each else MOST_PROCESSORS

    def most(self, up: int) -> int:
        """Return how many processors the first limit lets be busy at full clock."""
        self.learn()
        return self.room(self.left(self.limits[0][1], up), self.levels[0])

    def needs(self, rows: Int64s) -> Fraction:
        """Return the W that running jobs add at full clock."""
        processors = self._in_use.jobs.processors[rows]
        if self.uniform:
            return self._most * int(processors.sum())
        return Fraction(float(processors @ self._added(rows)) * (1 + ROUNDING))

    def level(self, left: Fraction, needs: Fraction) -> float:
        """Return the highest level at which jobs with these needs fit, else the lowest."""
        fitting = (one for one in self.levels if needs * self._shares[one] <= left)
        return next(fitting, self.levels[-1])

    def beyond(self, left: Fraction, running: Int64s) -> Int64s:
        """Return the running jobs that do not fit at the lowest level, see :class:`PowerCap`."""
        jobs, lowest = self._in_use.jobs, self._shares[self.levels[-1]]
        if self.needs(running) * lowest <= left:
            return running[:0]
        found = []
        for row in running[np.lexsort((running, jobs.start[running]))]:
            need = self.needs(np.array([row])) * lowest
            if need <= left:
                left -= need
            else:
                found.append(row)
        return np.sort(np.array(found, np.int64))

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
            if self.left(limit, processors) < 0:
                raise QuantityError(
                    f"power cap {limit:,g} W from {at} s: below the "
                    f"{float(self._idle * processors):,g} W that {processors:,} idle processors "
                    "draw; raise the cap, or shrink the machine with a Resize"
                )


def _exact(value: float) -> Fraction:
    """Return the number as it is written, so that 0.3 W are three times 0.1 W."""
    return Fraction(Decimal(repr(float(value))))
