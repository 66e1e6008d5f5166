"""Signals over a run: how they repeat in local time; cooling and tariffs that follow them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.signals.cooling import Cooling
from hpcrowd.environment.signals.steps import Steps
from hpcrowd.environment.signals.tariff import Tariff, TariffPeriod
from hpcrowd.errors import SignalError
from hpcrowd.power import Signal
from hypothesis import example, given, settings
from hypothesis import strategies as st

STOCKHOLM, PARIS, CHICAGO = (
    ZoneInfo(name) for name in ("Europe/Stockholm", "Europe/Paris", "America/Chicago")
)


def clock(zone, *date):
    """Return the clock of a trace that begins at a local date."""
    return Clock(int(datetime(*date, tzinfo=zone).timestamp()), zone, known=True)


def year(zone, number=2023, days=365):
    """Return hourly values from the beginning of a year on: local hour + 100 day of the week."""
    begin = datetime(number, 1, 1, tzinfo=zone or UTC)
    times = int(begin.timestamp()) + HOUR * np.arange(24 * days)
    walls = [datetime.fromtimestamp(int(time), zone or UTC) for time in times]
    values = [wall.hour + 100.0 * wall.weekday() for wall in walls]
    return Signal(times, np.array(values), absolute=True, zone=zone)


def test_a_run_is_covered_or_not():
    """A run has the steps of the signal, cut at its ends; else both ranges and a cure are named."""
    signal = Signal(np.array([0, 10, 20]), np.array([1.0, 2.0, 3.0]), source="s.csv")
    steps = signal.on(Clock(), 5, 21)
    assert ([5, 10, 20, 21], [1, 2, 3]) == (steps.edges.tolist(), steps.values.tolist())
    assert [10, 11] == signal.on(Clock(), 10, 10).edges.tolist()
    with pytest.raises(SignalError) as caught:
        signal.on(Clock(), 5, 31)
    assert (
        "s.csv: covers 0 to 30 s of the run, the run goes from 5 to 31 s of the run; give a longer "
        'signal, or let it repeat: repeat = "year" or "week"'
    ) == str(caught.value)
    with pytest.raises(SignalError, match=r"covers Sun 2023-01-01 .* to Mon 2024-01-01 "):
        year(PARIS).on(clock(PARIS, 1996, 9, 23), 0, DAY)


def test_a_trace_without_a_start():
    """Dates need a signal that repeats; then the origin of the trace is a Monday in January."""
    with pytest.raises(SignalError, match="no start time; let the signal repeat: repeat = "):
        year(None).on(Clock(), 0, DAY)
    steps = year(None).on(Clock(), 0, 2 * DAY, repeat="year")
    assert [day * 100 + hour for day in (0, 1) for hour in range(24)] == steps.values.tolist()


def test_too_short_to_repeat():
    """A year needs 364 days, a week 7; the message gives the cure."""
    when = clock(PARIS, 1996, 9, 23)
    with pytest.raises(SignalError, match=r"363 days long, .* at least 364; .* repeat = \"week\""):
        year(PARIS, days=363).on(when, 0, DAY, repeat="year")
    with pytest.raises(SignalError, match=r"6 days long, but .* at least 7; give a longer signal$"):
        year(PARIS, days=6).on(when, 0, DAY, repeat="week")
    year(PARIS, days=364).on(when, 0, DAY, repeat="year")


@pytest.mark.parametrize("zone", [PARIS, CHICAGO, None])
@pytest.mark.parametrize("repeat", ["week", "year"])
def test_hours_and_days_stay(zone, repeat):
    """Over ten years each local hour of the week has its own value, with daylight saving too."""
    when = clock(STOCKHOLM, 1996, 9, 23)
    signal = year(zone or STOCKHOLM)
    if zone is None:  # times in UTC have the zone of the cluster
        signal = Signal(signal.times, signal.values, absolute=True)
    seconds = np.arange(0, 10 * 365 * DAY, HOUR)
    steps = signal.on(when, 0, 10 * 365 * DAY, repeat=repeat)
    walls = when.walls(seconds)
    expected = walls % DAY // HOUR + walls // DAY % 7 * 100
    wrong = seconds[expected != steps.at(seconds)]
    # An hour that the signal's own clocks left out has the value before it.
    assert len(wrong) <= 10
    assert set(walls[expected != steps.at(seconds)] % DAY // HOUR) <= {2}
    assert (0, 10 * 365 * DAY) == (steps.begin, steps.end)


def test_seasons_stay():
    """A year of another decade comes at its own season: within half a week, in every year."""
    begin = int(datetime(2023, 1, 1, tzinfo=PARIS).timestamp())
    days = Signal(begin + DAY * np.arange(365), np.arange(365.0), absolute=True, zone=PARIS)
    when = clock(PARIS, 1970, 1, 5)
    steps = days.on(when, 0, 40 * 365 * DAY, repeat="year")
    for place in range(0, 40 * 365, 13):
        date = when.local(place * DAY + 12 * HOUR)
        day = steps.at(place * DAY + 12 * HOUR)
        apart = (date.timetuple().tm_yday - 1 - day + 182) % 365 - 182
        assert abs(apart) <= 5 or date.month in (1, 12)
        assert abs(apart) <= 12


def test_own_time_is_not_moved():
    """What the signal covers itself comes as it is, and the rest from other years."""
    begin = int(datetime(2023, 1, 1, tzinfo=PARIS).timestamp())
    days = begin + DAY * np.arange(365)
    signal = Signal(days, np.arange(365.0), absolute=True, zone=PARIS, repeat="year")
    when = clock(PARIS, 2023, 12, 30)
    assert [363, 364, 1, 2] == signal.on(when, 0, 4 * DAY).values.tolist()
    assert [363, 364] == signal.on(when, 0, 2 * DAY).values.tolist()
    when = clock(PARIS, 2022, 12, 30)
    assert [362, 363, 0, 1] == signal.on(when, 0, 4 * DAY).values.tolist()


def test_the_same_clocks_under_another_name():
    """A zone with the same clocks is not another one: both passes of the autumn hour stay apart."""
    begin = int(datetime(2023, 10, 29, tzinfo=PARIS).timestamp())
    times = begin + HOUR * np.arange(8 * 24)
    signal = Signal(times, np.arange(8.0 * 24), absolute=True, zone=PARIS, repeat="week")
    steps = signal.on(clock(STOCKHOLM, 2023, 10, 29), 0, 5 * HOUR)
    assert [0, 1, 2, 3, 4] == steps.values.tolist()


@settings(max_examples=80)
@given(
    st.integers(HOUR, 4 * DAY),
    st.integers(2, 60),
    st.integers(-3 * WEEK, 3 * WEEK),
    st.integers(-8 * WEEK, 8 * WEEK),
    st.integers(1, 4 * WEEK),
)
def test_weeks_repeat(step, number, first, begin, length):
    """Any second has the value of the second that is the right number of whole weeks away."""
    signal = Signal(first + step * np.arange(number), np.arange(float(number)))
    own = step * number
    if own < WEEK:
        return
    steps = signal.on(Clock(), begin, begin + length, repeat="week")
    assert (begin, begin + length) == (steps.begin, steps.end)
    period = own // WEEK * WEEK
    for second in np.linspace(begin, begin + length - 1, 50, dtype=int):
        inside = first <= second < first + own
        source = second if inside else first + (second - first) % period
        assert (source - first) // step == steps.at(second)


# ---- cooling ----------------------------------------------------------------------------------


def outside(*degrees):
    """Return hourly temperatures from the beginning of the run on."""
    return Signal(HOUR * np.arange(len(degrees)), np.array(degrees), source="out.csv")


def test_cooling_by_temperature():
    """PUE is linear between points and constant beyond them."""
    cooling = Cooling(outside(-20, 10, 15, 20, 45), ((10, 1.1), (20, 1.3)))
    steps = cooling.on(Clock(), HOUR, 5 * HOUR)
    assert [1.1, 1.2, 1.3, 1.3] == pytest.approx(steps.values)
    assert [1.25] == Cooling(outside(1, 2), ((0, 1.25),)).on(Clock(), 0, 60).values.tolist()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ((), "cooling: no points; give pairs of temperature"),
        (((10, 0.9),), "cooling: PUE 0.9 at 10 degC: must be from 1 to 10"),
        (((10, 11.0),), "cooling: PUE 11 at 10 degC: must be from 1 to 10"),
        (((10, 1.2), (10, 1.1)), "cooling: temperature 10 after 10 degC: must ascend"),
        (((300, 1.2),), "cooling: temperature 300 degC: must be from -100 to 70"),
    ],
)
def test_wrong_points(points, message):
    """Points that cannot be are refused with the value and the rule."""
    with pytest.raises(QuantityError, match=message):
        Cooling(outside(1, 2), points)


def test_values_that_cannot_be():
    """A value below the least is named; what no place on Earth has is not in degrees Celsius."""
    with pytest.raises(SignalError, match=r"out\.csv, step 2, field value: '-1': must be 0"):
        outside(0, -1).check_least(0)
    with pytest.raises(SignalError, match=r"out\.csv, step 2, field value: '-999': not an out"):
        Cooling(outside(1, -999, 3), ((10, 1.1),))


# ---- tariffs -----------------------------------------------------------------------------------

NIGHT = TariffPeriod(0.10, opens=22 * HOUR, closes=6 * HOUR)


def test_market_prices_are_added():
    """A market price, which may be negative, comes on top of the base price."""
    market = Signal(np.array([0, HOUR, 2 * HOUR]), np.array([0.1, -0.3, 0.2]))
    steps = Tariff(price=0.05, energy=market).on(Clock(), 0, 2 * HOUR + 1)
    assert [0.15, -0.25, 0.25] == pytest.approx(steps.values)
    assert [0.1, -0.3] == Tariff(energy=market).on(Clock(), 0, 2 * HOUR).values.tolist()
    with pytest.raises(SignalError, match="covers 0 to 10800 s"):
        Tariff(energy=market).on(Clock(), 0, 4 * HOUR)


def test_peaks_of_months():
    """Each local month has its highest mean over a quarter of an hour: bursts count less."""
    power = Steps(
        [0, 900, 1000, DAY, DAY + 450, DAY + 900, DAY + 1350, 2 * DAY],
        [100.0, 10_000.0, 0.0, 0.0, 2000.0, 4000.0, 0.0],
    )
    january, february = Tariff(peak_price=12.0).peaks(clock(PARIS, 2024, 1, 31), power)
    assert ("2024-01", 900) == (january.month, january.at)
    assert 10_000 / 9 == pytest.approx(january.power)
    assert 12 * 10 / 9 == pytest.approx(january.cost)
    assert ("2024-02", DAY + 900, 2000) == (february.month, february.at, february.power)
    assert 24 == february.cost


def test_windows_of_meters():
    """Windows begin at local quarters of an hour, whenever the run does; its ends count whole."""
    begin = Clock(clock(PARIS, 2024, 1, 31).unix_start + 100, PARIS, known=True)
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
def test_wrong_tariffs(made, message):
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
@example((44, 12), {*range(7)}, {*range(1, 13)}, 83, 3 * DAY)  # clocks are put forward, and back
@example((44, 12), {*range(7)}, {*range(1, 13)}, 300, 3 * DAY)
def test_every_second_has_the_price_of_its_local_time(pair, days, months, first, length):
    """The price at any second is that of the period which holds on the clock of that moment."""
    opens, closes = pair[0] * 1800, pair[1] * 1800
    tariff = Tariff((TariffPeriod(1.0, opens, closes, tuple(days), tuple(months)),))
    when = clock(PARIS, 2023, 1, 1)
    begin = first * DAY + 17
    steps = tariff.on(when, begin, begin + length)
    for second in range(begin, begin + length, 1799):
        local = when.local(second)
        of_day = local.hour * HOUR + local.minute * 60 + local.second
        day = local - timedelta(days=1) if closes < opens and of_day < closes else local
        hours = opens <= of_day < closes if opens < closes else not closes <= of_day < opens
        assert float(hours and day.weekday() in days and day.month in months) == steps.at(second)
