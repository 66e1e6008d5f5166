"""Tariffs: prices by local hour, market prices, and the price of the highest power."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment import Clock, Signal
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, SignalError
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.signals.tariff import Tariff, TariffPeriod
from hypothesis import example, given, settings
from hypothesis import strategies as st

PARIS = ZoneInfo("Europe/Paris")
NIGHT = TariffPeriod(0.10, opens=22 * HOUR, closes=6 * HOUR)


def clock(*date: int) -> Clock:
    """Return the clock of a trace that begins at a date in Paris."""
    return Clock(int(datetime(*date, tzinfo=PARIS).timestamp()), PARIS, known=True)


def test_one_price() -> None:
    """Without periods a tariff is one step, also of a run without a second."""
    steps = Tariff(price=0.15).on(Clock(), 100, 10 * DAY)
    assert ([100, 10 * DAY], [0.15]) == (steps.edges.tolist(), steps.values.tolist())
    assert [7, 8] == Tariff(price=0.15).on(Clock(), 7, 7).edges.tolist()


@pytest.mark.parametrize(("date", "hours"), [((2024, 3, 31), 7), ((2024, 10, 27), 9)])
def test_nights_when_clocks_change(date: tuple[int, int, int], hours: int) -> None:
    """The night in which clocks are put forward is an hour shorter, the other one longer."""
    steps = Tariff((NIGHT,), price=0.2).on(clock(*date), -2 * HOUR, DAY)
    assert [-2 * HOUR, (hours - 2) * HOUR] == steps.edges[:2].tolist()


def test_market_prices_are_added() -> None:
    """A market price, which may be negative, comes on top of the base price."""
    market = Signal(np.array([0, HOUR, 2 * HOUR]), np.array([0.1, -0.3, 0.2]))
    steps = Tariff(price=0.05, energy=market).on(Clock(), 0, 2 * HOUR + 1)
    assert [0.15, -0.25, 0.25] == pytest.approx(steps.values)
    assert [0.1, -0.3] == Tariff(energy=market).on(Clock(), 0, 2 * HOUR).values.tolist()
    with pytest.raises(SignalError, match="covers 0 to 10800 s"):
        Tariff(energy=market).on(Clock(), 0, 4 * HOUR)


def test_peaks_of_months() -> None:
    """Each local month has its highest mean over a quarter of an hour: bursts count less."""
    power = Steps(
        [0, 900, 1000, DAY, DAY + 450, DAY + 900, DAY + 1350, 2 * DAY],
        [100.0, 10_000.0, 0.0, 0.0, 2000.0, 4000.0, 0.0],
    )
    january, february = Tariff(peak_price=12.0).peaks(clock(2024, 1, 31), power)
    assert ("2024-01", 900) == (january.month, january.at)
    assert 10_000 / 9 == pytest.approx(january.power)
    assert 12 * 10 / 9 == pytest.approx(january.cost)
    assert ("2024-02", DAY + 900, 2000) == (february.month, february.at, february.power)
    assert 24 == february.cost


def test_windows_of_meters() -> None:
    """Windows begin at local quarters of an hour, whenever the run does; its ends count whole."""
    begin = Clock(clock(2024, 1, 31).unix_start + 100, PARIS, known=True)
    (peak,) = Tariff().peaks(begin, Steps.constant(900.0, 0, 1000))
    assert (0, 800) == (peak.at, peak.power)
    (peak,) = Tariff().peaks(begin, Steps.constant(900.0, 0, 90))
    assert 90 == peak.power
    (peak,) = Tariff(peak_window=HOUR).peaks(begin, Steps.constant(900.0, 0, DAY // 2))
    assert (3500, 900) == (peak.at, peak.power)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Tariff((NIGHT, TariffPeriod(0.3, 5 * HOUR, 8 * HOUR, days=(6,)))),
            "tariff: periods 22:00-06:00 Mon,.* and 05:00-08:00 Sun overlap; give each hour",
        ),
        (lambda: TariffPeriod(0.1, 0, 0), "tariff: period 0 to 0 s: both must be times of one day"),
        (lambda: TariffPeriod(0.1, 0, DAY + 1), "tariff: period 0 to 86401 s"),
        (lambda: TariffPeriod(0.1, days=()), r"tariff: days \(\): must be days from 0"),
        (lambda: TariffPeriod(0.1, months=(0,)), r"tariff: months \(0,\): must be months from 1"),
        (lambda: TariffPeriod(float("nan")), "tariff: price nan: must be a finite number"),
        (lambda: Tariff(price=float("inf")), "tariff: price inf: must be a finite number"),
        (lambda: Tariff(peak_price=-1.0), "tariff: peak_price -1: must be 0 or more"),
        (lambda: Tariff(peak_window=700), "tariff: peak_window 700 s: must divide a day"),
        (
            lambda: Tariff(energy=Signal([0, 1], [1, 2], source="p.csv", unit="EUR/MWh")),
            "tariff: p.csv has EUR/MWh, a tariff is per kWh; read it with factor = 0.001",
        ),
    ],
)
def test_wrong_tariffs(made: type, message: str) -> None:
    """What cannot be is refused with the value, the rule and the cure."""
    with pytest.raises(QuantityError, match=message):
        made()


@settings(max_examples=40)
@given(
    st.tuples(st.integers(0, 47), st.integers(1, 48)).filter(lambda pair: pair[0] != pair[1]),
    st.sets(st.integers(0, 6), min_size=1),
    st.sets(st.integers(1, 12), min_size=1),
    st.integers(0, 800),
    st.integers(1, 4 * DAY),
)
@example((44, 12), {4}, {*range(1, 13)}, 369, 3 * DAY)  # Friday's night closes on Saturday,
@example((44, 12), {*range(7)}, {1}, 395, 3 * DAY)  # that of 31 January in February
def test_every_second_has_the_price_of_its_local_time(
    pair: tuple[int, int], days: set[int], months: set[int], first: int, length: int
) -> None:
    """The price at any second is that of the period which holds on the clock of that moment."""
    opens, closes = pair[0] * 1800, pair[1] * 1800
    tariff = Tariff((TariffPeriod(1.0, opens, closes, tuple(days), tuple(months)),))
    when = clock(2023, 1, 1)
    begin = first * DAY + 17
    steps = tariff.on(when, begin, begin + length)
    for second in range(begin, begin + length, 1799):
        local = when.local(second)
        of_day = local.hour * HOUR + local.minute * 60 + local.second
        day = local - timedelta(days=1) if closes < opens and of_day < closes else local
        hours = opens <= of_day < closes if opens < closes else not closes <= of_day < opens
        assert float(hours and day.weekday() in days and day.month in months) == steps.at(second)
