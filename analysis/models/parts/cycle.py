"""A weekly or daily cycle that can be imposed on any arrivals.

Arrivals are events in operational time, which runs faster when the rate is high; the clock time of
an event is where the integral of the rate reaches it. The mean rate stays the same. A daily cycle
is an open point of Minh 2012 (section 4.6).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field

from hpcrowd.analysis.curves import DAY_HOURS, WEEK_HOURS
from hpcrowd.analysis.features.arrivals import hours_of_week, span_s
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.parts.base import Floats, Part
from hpcrowd.environment.clock import HOUR, WEEK
from hpcrowd.environment.errors import ModelFitError, UnavailableError


def _checked(rates: tuple[float, ...]) -> tuple[float, ...]:
    """Check rates; a pydantic validator.

    Raises
    ------
    ValueError
        When one is negative, or all are 0.
    """
    if rates and (min(rates) < 0 or max(rates) <= 0):
        raise ValueError("rates: must not be negative, and at least one must be positive")
    return rates


#: Relative rates in the intervals of a period.
Rates = Annotated[tuple[float, ...], AfterValidator(_checked)]


class Cycle(Part):
    """Relative rates of arrivals in the hours of the week, from Monday 00:00.

    Times begin on a Monday 00:00, as in generated workloads.
    """

    name: ClassVar[str] = "cycle"
    title: ClassVar[str] = "rate of arrivals in each hour of the week"
    source: ClassVar[str] = "our own; an open point in Minh 2012, section 4.6"

    rates: Rates = Field(
        min_length=WEEK_HOURS,
        max_length=WEEK_HOURS,
        description="rate in each hour of the week from Monday 00:00 on, over the mean rate",
    )

    @classmethod
    def fit(cls, workload: Workload, *, weekly: bool = True) -> Self:
        """Return the cycle of a workload, in its local time.

        Parameters
        ----------
        workload
            What to fit to.
        weekly
            Whether days differ; otherwise each gets the mean of all days.

        Raises
        ------
        ModelFitError
            When the workload is shorter than a week.
        """
        try:
            length = span_s(workload)
            hours = hours_of_week(workload)
        except UnavailableError as error:
            raise ModelFitError(f"cycle of {workload.name}", str(error)) from None
        if length < WEEK:
            raise ModelFitError(f"cycle: span {length:,.0f} s", "a week or more is needed")
        if not weekly:
            hours = np.tile(hours.reshape(-1, DAY_HOURS).mean(axis=0), WEEK_HOURS // DAY_HOURS)
        notes = [workload.clock.note] if workload.clock.note else []
        empty = int((hours == 0).sum())
        if empty:
            notes.append(f"cycle: no arrivals in {empty} of {WEEK_HOURS} hours of the week")
        return cls(rates=tuple((hours / hours.mean()).tolist()), notes=tuple(notes))

    def warp(self, times: Floats) -> Floats:
        """Return the clock times (s) of events in operational time, in the same shape and order.

        Whole numbers of weeks do not move, so the mean rate stays the same.
        """
        return clock_times(times, self.rates, HOUR)

    def unwarp(self, times: Floats, start: float = 0) -> Floats:
        """Return the operational times (s) of events at clock times, the inverse of :meth:`warp`.

        Parameters
        ----------
        times
            s, counted from ``start``.
        start
            Second of the week at which times are 0.
        """
        begin = operational_times(np.array([start], np.float64), self.rates, HOUR)
        return operational_times(times + start, self.rates, HOUR) - begin


def clock_times(operational: Floats, rates: ArrayLike, interval: float) -> Floats:
    """Return the times at which the integral of a periodic rate reaches given values.

    Parameters
    ----------
    operational
        The values, from 0 on.
    rates
        Rate in each interval of a period; only their ratios count.
    interval
        Length of an interval, s.

    Returns
    -------
    array
        s, same shape; for a value reached in a stretch without arrivals, the end of the stretch.
    """
    rate, reached, period = _integral(rates, interval)
    turns = np.floor(operational / period)
    rest = operational - turns * period
    place = np.clip(np.searchsorted(reached, rest, side="right") - 1, 0, len(rate) - 1)
    within = np.divide(
        rest - reached[place], rate[place], out=np.zeros(len(rest)), where=rate[place] > 0
    )
    return turns * period + place * interval + np.clip(within, 0, interval)


def operational_times(clock: Floats, rates: ArrayLike, interval: float) -> Floats:
    """Return the integral of a periodic rate up to given times, see :func:`clock_times`."""
    _, reached, period = _integral(rates, interval)
    turns = np.floor(clock / period)
    edges = np.arange(len(reached)) * interval
    return turns * period + np.interp(clock - turns * period, edges, reached)


def _integral(rates: ArrayLike, interval: float) -> tuple[Floats, Floats, float]:
    """Return the rates over their mean, their integral at the ends of intervals, the period."""
    rate = np.asarray(rates, np.float64)
    rate = rate / rate.mean()
    period = len(rate) * interval
    reached = np.concatenate([[0.0], np.cumsum(rate) * interval])
    # The last value is the period, except for rounding.
    return rate, reached * (period / reached[-1]), period
