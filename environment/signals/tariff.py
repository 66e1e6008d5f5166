"""What electricity costs: prices by hour, day and month, market prices, and a price of the peak.

price per kWh = price of the period that holds, or else the base price
                + market price, if there is one
demand charge = price per kW x highest mean power of each local month
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import DAY, DAYS, HOUR, QUARTER, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Float64s, Int64s
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.steps import Steps, total
from hpcrowd.environment.signals.walls import days_since_epoch, local_steps

ALL_DAYS = tuple(range(7))
ALL_MONTHS = tuple(range(1, 13))

#: s of the mean that a meter takes for the highest power, in most of Europe.
PEAK_WINDOW = QUARTER


@dataclass(frozen=True)
class TariffPeriod:
    """Hours with a price, in local time.

    Attributes
    ----------
    price
        Per kWh.
    opens, closes
        s after local midnight. A period that closes before it opens closes on the next day.
    days
        Days of the week on which it opens, Monday is 0.
    months
        Months of the year in which it opens, January is 1.

    Raises
    ------
    QuantityError
        If it never holds, or the price is not a finite number.
    """

    price: float
    opens: int = 0
    closes: int = DAY
    days: tuple[int, ...] = ALL_DAYS
    months: tuple[int, ...] = ALL_MONTHS

    def __post_init__(self) -> None:
        if not isfinite(self.price):
            raise QuantityError(f"tariff: price {self.price}: must be a finite number")
        if not (0 <= self.opens < DAY and 0 < self.closes <= DAY) or self.opens == self.closes:
            raise QuantityError(
                f"tariff: period {self.opens} to {self.closes} s: both must be times of one day, "
                "and differ"
            )
        if not self.days or not set(self.days) <= set(ALL_DAYS):
            raise QuantityError(f"tariff: days {self.days}: must be days from 0 (Monday) to 6")
        if not self.months or not set(self.months) <= set(ALL_MONTHS):
            raise QuantityError(f"tariff: months {self.months}: must be months from 1 to 12")

    def __str__(self) -> str:
        times = (self.opens, self.closes)
        hours = "-".join(f"{at // HOUR:02}:{at % HOUR // 60:02}" for at in times)
        return f"{hours} {','.join(DAYS[day] for day in self.days)}"

    def holds(self, cuts: Int64s) -> NDArray[np.bool_]:
        """Return when it holds, shape (12, 2, 7, cuts).

        That is by month, whether it is the first day of the month, day of the week, and the s after
        midnight in ``cuts``.
        """
        found = np.zeros((12, 2, 7, len(cuts)), bool)
        months, days = np.array(self.months) - 1, np.array(self.days)
        night = self.closes < self.opens
        evening = np.flatnonzero((self.opens <= cuts) & (cuts < (DAY if night else self.closes)))
        found[np.ix_(months, [0, 1], days, evening)] = True
        if night:
            morning, next_days = np.flatnonzero(cuts < self.closes), (days + 1) % 7
            found[np.ix_(months, [0], next_days, morning)] = True
            found[np.ix_((months + 1) % 12, [1], next_days, morning)] = True
        return found


@dataclass(frozen=True)
class Peak:
    """The highest power of a month.

    Attributes
    ----------
    month
        Such as ``2024-01``, in local time.
    at
        s of the run at which its window begins; the first, if several are as high.
    power
        Mean of the window, W.
    cost
        In the currency of the tariff.
    """

    month: str
    at: int
    power: float
    cost: float


@dataclass(frozen=True)
class Tariff:
    """Prices of energy and of the highest power.

    Attributes
    ----------
    periods
        Hours with a price other than the base price; they must not overlap.
    price
        Base price per kWh, at all other times.
    energy
        A market price per kWh over time, which is added; with a base price of 0 it is the whole
        price. Market prices can be negative.
    peak_price
        Per kW of the highest mean power of each month; a month counts whole, however little of it a
        run covers.
    peak_window
        s of that mean; a part of a day, such as 900.
    currency
        For tables.

    Raises
    ------
    QuantityError
        If periods overlap, or a number is out of range.
    """

    periods: tuple[TariffPeriod, ...] = ()
    price: float = 0.0
    energy: Signal | None = None
    peak_price: float = 0.0
    peak_window: int = PEAK_WINDOW
    currency: str = "EUR"

    def __post_init__(self) -> None:
        if not isfinite(self.price):
            raise QuantityError(f"tariff: price {self.price}: must be a finite number")
        if not 0 <= self.peak_price < float("inf"):
            raise QuantityError(f"tariff: peak_price {self.peak_price:g}: must be 0 or more")
        if not 0 < self.peak_window <= DAY or DAY % self.peak_window:
            raise QuantityError(
                f"tariff: peak_window {self.peak_window} s: must divide a day, such as 900 s"
            )
        if self.energy is not None and self.energy.unit.lower().endswith("/mwh"):
            raise QuantityError(
                f"tariff: {self.energy.source} has {self.energy.unit}, a tariff is per kWh; read "
                "it with factor = 0.001"
            )
        self._prices()  # periods that overlap are an error

    def on(self, clock: Clock, begin: int, end: int) -> Steps:
        """Return the price per kWh over the seconds from ``begin`` to ``end``.

        Raises
        ------
        SignalError
            If the market price does not cover them.
        QuantityError
            If prices change by the hour for longer than can be followed.
        """
        cuts, prices = self._prices()

        def pieces(first: int, last: int) -> tuple[Int64s, Float64s]:
            days = np.arange(first // DAY, (last - 1) // DAY + 1)
            dates = days_since_epoch(days * DAY).astype("datetime64[D]")
            months = dates.astype("datetime64[M]")
            firsts = (dates == months.astype("datetime64[D]")).astype(np.int64)
            starts = (days[:, np.newaxis] * DAY + cuts).ravel()
            values = prices[months.astype(np.int64) % 12, firsts, days % 7].ravel()
            inside = slice(*np.searchsorted(starts, [first + 1, last]) - [1, 0])
            starts, values = starts[inside], values[inside]
            starts[0] = first
            return starts, values

        steps = Steps.constant(self.price, begin, end)
        if self.periods:
            steps = local_steps(clock, begin, end, pieces).merged()
        if self.energy is None:
            return steps
        return total([steps, self.energy.on(clock, begin, end)], steps.begin, steps.end)

    def peaks(self, clock: Clock, power: Steps) -> list[Peak]:
        """Return the highest mean power of each local month, in order.

        Parameters
        ----------
        clock
            The clock; windows begin at local midnight.
        power
            W over the seconds of a run. Outside nothing is drawn: a window that the run covers in
            part counts whole.
        """
        window = self.peak_window

        def windows(first: int, last: int) -> tuple[Int64s, Float64s]:
            starts = np.arange(first // window, (last - 1) // window + 1) * window
            months = days_since_epoch(starts).astype("datetime64[D]").astype("datetime64[M]")
            starts[0] = first
            return starts, months.astype(np.int64).astype(np.float64)

        months = local_steps(clock, power.begin, power.end, windows)
        begins, ends = months.edges[:-1], months.edges[1:]
        # Where clocks change within a long window, its parts are windows.
        means = power.integral(begins, ends) / np.maximum(ends - begins, 1)
        for edge in (0, -1):
            means[edge] = power.integral(begins[edge], ends[edge]) / window
        found = []
        firsts = np.flatnonzero(np.diff(months.values, prepend=np.nan) != 0)
        for one, two in zip(firsts, [*firsts[1:], len(means)], strict=True):
            at = one + int(means[one:two].argmax())
            name = str(np.datetime64(int(months.values[one]), "M"))
            cost = float(means[at]) / 1000 * self.peak_price
            found.append(Peak(name, int(begins[at]), float(means[at]), cost))
        return found

    def _prices(self) -> tuple[Int64s, Float64s]:
        """Return where prices change within a day, and prices by kind of day.

        The first are s after midnight, shape (cuts,). The second have the shape (12, 2, 7, cuts):
        by month, whether it is the first day of the month, day of the week, and cut.
        """
        times = {at for one in self.periods for at in (one.opens, one.closes)}
        cuts = np.array(sorted({0, *times} - {DAY}), np.int64)
        prices = np.full((12, 2, 7, len(cuts)), self.price)
        owners = np.full(prices.shape, -1)
        for number, period in enumerate(self.periods):
            holds = period.holds(cuts)
            taken = owners[holds]
            if taken.max() >= 0:
                other = self.periods[int(taken.max())]
                raise QuantityError(
                    f"tariff: periods {other} and {period} overlap; give each hour of the week one "
                    "price"
                )
            owners[holds], prices[holds] = number, period.price
        return cuts, prices
