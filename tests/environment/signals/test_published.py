"""Signals as grid operators publish them: what is detected, filled in, and refused in one line."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment.errors import QuantityError, SignalError
from hpcrowd.environment.signals.published import SignalFile
from hpcrowd.environment.signals.signal import read_signal
from hypothesis import example, given, settings
from hypothesis import strategies as st

HOUR = 3600

# All samples are made up; only names of columns and ways of writing are as published.
MAPS = [
    "Datetime (UTC),Country,Zone name,Carbon intensity gCO\u2082eq/kWh (direct),"
    "Carbon intensity gCO\u2082eq/kWh (Life cycle),Data source",
    "2023-01-01 00:00:00,Nowhere,NO-WHERE,20.5,31,x.org",
    "2023-01-01 01:00:00,Nowhere,NO-WHERE,21.5,32,x.org",
    "2023-01-01 02:00:00,Nowhere,NO-WHERE,22.5,33,x.org",
]
BRITAIN = [
    '"Datetime (UTC)","Actual Carbon Intensity (gCO2/kWh)","Forecast (gCO2/kWh)","Index"',
    '"2023-01-01T00:00Z","120","118","low"',
    '"2023-01-01T00:30Z","130","128","low"',
    '"2023-01-01T01:00Z","125","128","low"',
]
FRANCE = [
    "P\u00e9rim\u00e8tre\tNature\tDate\tHeures\tConsommation\tTaux de Co2\t",
    "France\tDonn\u00e9es\t2023-01-01\t00:00\t50000\t40\t",
    "France\tDonn\u00e9es\t2023-01-01\t00:15\t\t\t",
    "France\tDonn\u00e9es\t2023-01-01\t00:30\t51000\t42\t",
    "France\tDonn\u00e9es\t2023-01-01\t00:45\t\t\t",
    "France\tDonn\u00e9es\t2023-01-01\t01:00\t52000\t43\t",
]
ENTSOE_OLD = [
    '"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","Currency","BZN|XX"',
    '"01.01.2023 00:00 - 01.01.2023 01:00","-5.02","EUR",""',
    '"01.01.2023 01:00 - 01.01.2023 02:00","0.00","EUR",""',
    '"01.01.2023 02:00 - 01.01.2023 03:00","12.50","EUR",""',
]
ENTSOE_NEW = [
    '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)",'
    '"Intraday Period (CET/CEST)","Intraday Price (EUR/MWh)"',
    '"26/10/2025 01:45:00 (CEST) - 26/10/2025 02:00:00 (CEST)","BZN|XX","1","1.5","",""',
    '"26/10/2025 02:00:00 (CEST) - 26/10/2025 02:15:00 (CEST)","BZN|XX","1","2.5","",""',
    '"26/10/2025 02:15:00 (CEST) - 26/10/2025 02:30:00 (CEST)","BZN|XX","1","3.5","",""',
]
SMARD = [
    "Datum von;Datum bis;Deutschland/Luxemburg [\u20ac/MWh] Originalaufl\u00f6sungen",
    "01.01.2023 00:00;01.01.2023 01:00;1.234,50",
    "01.01.2023 01:00;01.01.2023 02:00;-0,10",
    "01.01.2023 02:00;01.01.2023 03:00;95",
]
WEATHER = [
    "latitude,longitude,timezone",
    "59.3,18.1,GMT",
    "",
    "time,temperature_2m (\u00b0C)",
    "2023-01-01T00:00,-3.2",
    "2023-01-01T01:00,-3.4",
    "2023-01-01T02:00,0.0",
]
STATION = [
    "Datum;Tid (UTC);Lufttemperatur;Kvalitet;;Tidsutsnitt:",
    "2023-01-01;00:00:00;1.5;G;;Kvalitetskontrollerade data",
    "2023-01-01;01:00:00;1.7;G;;",
    "2023-01-01;02:00:00;1.2;Y;;",
]
PLAIN = ["STATIONS_ID;MESS_DATUM;TT_TU", "9;2023010100;5.0", "9;2023010101;6.0", "9;2023010102;7"]

NEW_YEAR = int(datetime(2023, 1, 1, tzinfo=UTC).timestamp())
AUTUMN = int(datetime(2025, 10, 25, 23, 45, tzinfo=UTC).timestamp())
SPRING = int(datetime(2024, 3, 31, tzinfo=UTC).timestamp())
AUTUMN_HOUR = int(datetime(2024, 10, 26, 23, 45, tzinfo=UTC).timestamp())


PUBLISHED = {
    "maps": (MAPS, {}, NEW_YEAR, HOUR, [20.5, 21.5, 22.5], "gCO\u2082eq/kWh"),
    "maps, a column": (MAPS, {"column": "Carbon intensity gCO2eq/kWh (Life cycle)"}, NEW_YEAR, HOUR,
                       [31, 32, 33], "gCO\u2082eq/kWh"),
    "britain": (BRITAIN, {}, NEW_YEAR, 1800, [120, 130, 125], "gCO2/kWh"),
    "france": (FRANCE, {"zone": "Europe/Paris"}, NEW_YEAR - HOUR, 1800, [40, 42, 43], ""),
    "entsoe, old": (ENTSOE_OLD, {}, NEW_YEAR - HOUR, HOUR, [-5.02, 0, 12.5], "EUR/MWh"),
    "entsoe, new": (ENTSOE_NEW, {"rows": (("Area", "BZN|XX"),)}, AUTUMN, 900, [1.5, 2.5, 3.5],
                    "EUR/MWh"),
    "smard": (SMARD, {"zone": "Europe/Berlin", "factor": 0.001}, NEW_YEAR - HOUR, HOUR,
              [1.2345, -0.0001, 0.095], ""),
    "weather": (WEATHER, {"zone": "UTC"}, NEW_YEAR, HOUR, [-3.2, -3.4, 0], ""),
    "station": (STATION, {}, NEW_YEAR, HOUR, [1.5, 1.7, 1.2], ""),
    "plain": (PLAIN, {"zone": "UTC", "column": "TT_TU", "time_column": "mess_datum"}, NEW_YEAR,
              HOUR, [5, 6, 7], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files(tmp_path, name):
    """Columns, units, delimiters, decimal commas, dates and zones of published files are found."""
    lines, options, begin, step, values, unit = PUBLISHED[name]
    path = tmp_path / "signal.csv"
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig", newline="")
    signal = read_signal(path, options=SignalFile(path, **options))
    assert [begin + step * place for place in range(len(values))] == signal.times.tolist()
    assert np.array(values) == pytest.approx(signal.values)
    assert signal.absolute
    assert 0 == signal.filled
    assert ("signal.csv", unit) == (signal.source, signal.unit)


@pytest.mark.parametrize(("encoding", "lines"), [("latin-1", FRANCE), ("cp1252", SMARD)])
def test_old_encodings(tmp_path, encoding, lines):
    """A file in Latin-1 or the code page of Windows is read as well."""
    path = tmp_path / "old.csv"
    path.write_text("\n".join(lines), encoding=encoding)
    assert 3 == len(SignalFile(path, zone="Europe/Paris").read().values)


def test_seconds_of_the_run_have_options_too():
    """Gaps of the strict format are filled as well if that is said; quotes do not matter."""
    lines = ['"time","value"', "0,1", "60,2", "120,3", "240,5"]
    signal = SignalFile("s.csv", gaps="interpolate").parse(lines)
    assert ([0, 60, 120, 180, 240], False) == (signal.times.tolist(), signal.absolute)
    assert [1, 2, 3, 4, 5] == signal.values.tolist()
    assert 1 == signal.filled


# ---- local time -------------------------------------------------------------------------------


def local(*walls):
    """Return lines with local times, with values from 0 on."""
    return ["timestamp;price", *(f"{wall};{value},0" for value, wall in enumerate(walls))]


PARIS = SignalFile("s.csv", zone="Europe/Paris")


def refused(lines, least=None, **options):
    """Return the one line with which a file is refused."""
    with pytest.raises(SignalError) as caught:
        SignalFile("s.csv", **options).parse(lines, "s.csv", least=least)
    return str(caught.value)


def test_autumn_hour_that_occurs_once_is_a_gap():
    """If the file has the hour only once, an hour is missing: an error, or filled in."""
    lines = local("2024-10-27 00:00", "2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 03:00")
    assert (
        "s.csv, line 5, field timestamp: '2024-10-27 03:00': 7200 s after the step before, the "
        'usual step is 3600 s: a gap of 1h; fill it in, or say gaps = "hold" or "interpolate"'
    ) == refused(lines, zone="Europe/Paris")
    for gaps, value in (("hold", 2), ("interpolate", 2.5)):
        signal = SignalFile("s", zone="Europe/Paris", gaps=gaps).parse(lines)
        assert ([0, 1, 2, value, 3], 1) == (signal.values.tolist(), signal.filled)


def test_spring_hour_that_does_not_exist():
    """A local time that clocks leave out is an error, unless its value is missing."""
    lines = local("2024-03-31 01:00", "2024-03-31 02:00", "2024-03-31 03:00")
    assert "line 3, field timestamp: '2024-03-31 02:00': does not exist in Europe/Paris" in refused(
        lines, zone="Europe/Paris"
    )
    lines[2] = "2024-03-31 02:00;-"
    assert [HOUR] == np.diff(PARIS.parse(lines).times).tolist()


def test_zone_of_the_place():
    """With times in UTC, ``zone`` says whose hours repeat; local times have that zone anyway."""
    assert None is SignalFile("s").parse(MAPS).zone
    assert ZoneInfo("Europe/Oslo") == SignalFile("s", zone="Europe/Oslo").parse(MAPS).zone
    assert NEW_YEAR == SignalFile("s", zone="Europe/Oslo").parse(MAPS).times[0]
    assert ZoneInfo("Europe/Brussels") == SignalFile("s").parse(ENTSOE_OLD).zone


def test_fixed_offsets_of_columns():
    """A column that says GMT+1 has that offset all year."""
    lines = ["Datum (GMT+1),value", "31.03.2024 02:00,1", "31.03.2024 03:00,2"]
    signal = SignalFile("s").parse(lines)
    assert int(datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp()) == signal.times[0]
    assert HOUR == signal.step


@st.composite
def spans(draw):
    """Return a zone, the beginning of some steps, their length and number."""
    zone = draw(st.sampled_from(["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "UTC"]))
    day = draw(st.integers(0, 4000))
    step = draw(st.sampled_from([900, 1800, 3600]))
    return zone, 1_000_000_800 // HOUR * HOUR + day * 86400, step, draw(st.integers(2, 200))


@settings(max_examples=60)
@given(spans())
@example(("Europe/Paris", SPRING, HOUR, 5))  # clocks leave an hour out: no gap
@example(("Europe/Paris", AUTUMN_HOUR, 900, 10))  # the second pass is standard time, by its order
def test_local_times_are_read_as_they_were_written(span):
    """Local times of any zone, written without offsets, give the same instants, in any season."""
    zone, begin, step, number = span
    times = [begin + step * place for place in range(number)]
    walls = [f"{datetime.fromtimestamp(one, ZoneInfo(zone)):%d.%m.%Y %H:%M}" for one in times]
    if walls[0] == f"{datetime.fromtimestamp(begin - HOUR, ZoneInfo(zone)):%d.%m.%Y %H:%M}":
        return  # begins in the second pass, which the file does not show
    if zone == "Australia/Lord_Howe" and step > 1800:
        return  # clocks change there by half an hour, within such a step
    signal = SignalFile("s", zone=zone).parse(local(*walls))
    assert (times, 0) == (signal.times.tolist(), signal.filled)


# ---- steps and gaps ---------------------------------------------------------------------------


def utc(*steps, values=None):
    """Return lines with times in UTC, one for each length of a step and one more."""
    at = datetime(2025, 9, 30, tzinfo=UTC)
    lines = ["Datetime (UTC),Price"]
    for place, step in enumerate([*steps, 0]):
        lines.append(f"{at:%Y-%m-%d %H:%M},{place if values is None else next(values)}")
        at += timedelta(seconds=step)
    return lines


@pytest.mark.parametrize("place", [10, 60])
def test_gaps_after_a_change_of_steps(place):
    """What is missing is measured by the steps around it: an hour is a gap among quarters."""
    steps = [HOUR] * 30 + [900] * 60
    steps[place] += steps[place]
    with pytest.raises(SignalError, match=f"line {place + 3}, field .*: a gap of "):
        SignalFile("s").parse(utc(*steps))
    assert 1 == SignalFile("s", gaps="hold").parse(utc(*steps)).filled


def test_missing_values_are_gaps():
    """A value that is missing is named, and can be filled in; at the ends the signal is shorter."""
    lines = utc(*[HOUR] * 5, values=iter(["n/e", "1", "N/A", "", "4", "-"]))
    message = "line 4, field Price: 'N/A': missing, a gap of 2h; fill it in, or say gaps ="
    with pytest.raises(SignalError, match=message):
        SignalFile("s").parse([*lines, "2025-09-30 06:00,4", "2025-09-30 07:00,4"])
    signal = SignalFile("s", gaps="interpolate").parse([*lines[:-1], "2025-09-30 05:00,4"])
    assert [1, 2, 3, 4, 4] == signal.values.tolist()
    signal = SignalFile("s", gaps="hold").parse([*lines[:-1], "2025-09-30 05:00,4"])
    assert ([1, 1, 1, 4, 4], 2) == (signal.values.tolist(), signal.filled)


def test_long_gaps_are_never_filled():
    """A gap longer than ``most`` remains an error; other texts for what is missing are named."""
    lines = utc(*[HOUR] * 6, values=iter(["1", "2", "-999", "-999", "3", "4", "5"]))
    file = SignalFile("s", gaps="hold", most=HOUR, missing=("-999",))
    with pytest.raises(SignalError, match=r"'-999': missing, a gap of 2h; longer than most = 1h"):
        file.parse(lines)
    assert 2 == SignalFile("s", gaps="hold", missing=("-999",)).parse(lines).filled


BERLIN = {"zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([], {"zone": "UTC"}, ": empty; a signal has a header"),
        (["0,1", "1,2"], {}, ", line 1: '0,1': not the header of a signal; write time,value"),
        ([*MAPS[:2]], {}, ": 1 step; a signal needs at least 2"),
        ([*MAPS, "2023-01-01 03:00:00,N,N,12..5,1,x"], {},
         ", line 5, field Carbon intensity gCO\u2082eq/kWh (direct): '12..5': not a number"),
        ([*MAPS, "2023-01-01 03:00:00,N,N,-5,1,x"], {},
         ", line 5, field Carbon intensity gCO\u2082eq/kWh (direct): '-5': must be 0 or"),
        ([*MAPS, "2023-01-01 02:00:00,N,N,5,1,x"], {},
         ", line 5, field Datetime (UTC): '2023-01-01 02:00:00': comes again; sort"),
        ([*MAPS, "2023-01-01 00:00:00,N,N,5,1,x"], {},
         ", line 5, field Datetime (UTC): '2023-01-01 00:00:00': comes earlier"),
        ([*MAPS, "Source: x"], {}, ", line 5: 1 column, the header has 6;"),
        ([SMARD[0], "[Ort];[Ort];[EUR]", *SMARD[1:]], BERLIN, ": no column of numbers; name one"),
        ([*MAPS, "total,,,5,,"], {}, ", line 5, field Datetime (UTC): 'total': not a date and"),
        (SMARD, {}, ", line 2, field Datum von: '01.01.2023 00:00': local time without an offset"),
        (["time,a,b", "2023-01-01T00:00Z,1,2"], {}, ": several columns of values; name one"),
        (MAPS, {"column": "price"}, ", field column: 'price': not a column; columns are Date"),
        (MAPS, {"time_column": "when"}, ", field time_column: 'when': not a column in any"),
        (MAPS, {"rows": (("Country", "Atlantis"),)}, ", field rows: 'Country = Atlantis': no"),
        (["date,value", "13/01/2023,1", "01/13/2023,1"], {"zone": "UTC"},
         ", line 3, field date: '01/13/2023': not a date and time such as"),
        (["date,price", "2023-01-01 00:00Z,95,86"], {}, ", line 2: 3 c"),
        (["date;x", "2023-01-01Z;" + "9" * 200_000], {}, ": not CSV: field larger than"),
    ],
)  # fmt: skip
def test_mistakes_give_one_line(lines, options, message):
    """What cannot be used is reported with file, line, field, value, rule and cure."""
    assert refused(lines, least=0, **options).startswith(f"s.csv{message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": "Europe/Atlantis"}, "zone 'Europe/Atlantis': not a time zone; write for example"),
        ({"gaps": "guess"}, "gaps 'guess'"),
        ({"repeat": "month"}, "repeat 'month'"),
        ({"factor": 0.0}, "factor 0: must be more than 0"),
        ({"most": -1}, "most -1: must be 0 s or more"),
    ],
)
def test_options_are_checked(options, message):
    """A wrong option is reported before a file is read."""
    with pytest.raises(QuantityError, match=message):
        SignalFile("s.csv", **options)
