"""Signals over time: what a file means, and what is refused before anything runs."""

from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.errors import SignalError
from hpcrowd.power import Signal, parse_signal, read_signal
from hypothesis import given
from hypothesis import strategies as st

HOURLY = ["time,value", "0,310", "3600,295.5", "7200,320", "10800,320"]


def test_dates_with_offsets_are_seconds_of_the_run():
    """Dates count from the origin of the trace, whatever offset they are written with."""
    clock = Clock(1704697200, ZoneInfo("Europe/Stockholm"), known=True)  # 2024-01-08 08:00 there
    signal = parse_signal(["time,value", "2024-01-08T08:00+01:00,1", "2024-01-08T08:00:00Z,2"])
    assert [0, 3600, 7200] == signal.seconds(clock).tolist()


def test_dates_need_a_trace_with_a_beginning():
    """Without UnixStartTime in the trace dates mean nothing; their clocks may change."""
    dates = ["2024-03-31T01:00+01:00", "2024-03-31T03:00+02:00", "2024-03-31T04:00+02:00"]
    signal = parse_signal(["time,value", *(f"{one},1" for one in dates)])
    assert 3600 == signal.step
    with pytest.raises(SignalError, match="has no start time; give times in s"):
        signal.seconds(Clock())


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], ": empty; a signal has a header time,value and a line per step"),
        (["0,310", "3600,295"], ", line 1: '0,310': not the header of a signal; write time,value"),
        (["time,value", "0,1"], ": 1 step; a signal needs at least 2"),
        (["time,value", "2024-01-08T08:00:00.5Z,1"],
         ", line 2, field time: '2024-01-08T08:00:00.5Z': not a whole second"),
        *(([*HOURLY, line], f", line 6, field {told}") for line, told in (
            ("14400,lots", "value: 'lots': not a number; write for example 312.5"),
            ("14400,nan", "value: 'nan': not a number; write for example 312.5"),
            ("18000,1", "time: '18000': 7200 s after the step before, the usual step is 3600 s: a"),
            ("10800,1", "time: '10800': comes again; sort"),
            ("7000,1", "time: '7000': comes earlier than the step"),
            ("1.5,1", "time: '1.5': not whole seconds of the run, as the first time is"),
            ("2024-01-08T08:00Z,1", "time: '2024-01-08T08:00Z': not whole seconds of the run"),
        )),
        (["time,value", "2024-01-08T08:00,1"],
         ", line 2, field time: '2024-01-08T08:00': local time without an offset"),
        ([*HOURLY, "14400,1,2"], ", line 6: 3 columns, the header has 2"),
    ],
)  # fmt: skip
def test_mistakes_give_one_line(lines, told):
    """A file that cannot be used is reported with file, line, field, value, rule and cure."""
    with pytest.raises(SignalError) as caught:
        parse_signal(lines, "s.csv")
    assert str(caught.value).startswith(f"s.csv{told}")


def test_files_that_cannot_be_read(tmp_path):
    """A missing file and one that is not text are named."""
    with pytest.raises(SignalError, match=r"none\.csv: cannot be read: No such file"):
        read_signal(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SignalError, match=r"b\.csv: not a text file"):
        read_signal(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("values", "message"),
    [([1, np.inf], "step 2, field value: 'inf': not a finite number"), ([1], "2 times and 1 val")],
)
def test_arrays_are_checked_alike(values, message):
    """A signal that is made from arrays keeps the same rules."""
    with pytest.raises(SignalError, match=message):
        Signal(np.array([0, 1]), np.array(values))


@given(
    st.lists(st.integers(-5, 5), min_size=2, max_size=40),
    st.integers(-5, 5),
    st.integers(1, 7),
    st.integers(-50, 50),
    st.booleans(),
)
def test_periods_are_the_seconds_above_or_below(values, threshold, step, first, above):
    """A second lies in a period if, and only if, the value that holds then is beyond the limit."""
    times = first + step * np.arange(len(values))
    limit = {"above" if above else "below": float(threshold)}
    periods = Signal(times, np.array(values)).periods(Clock(), **limit)
    inside = {second for begin, end in periods for second in range(begin, end)}
    expected = {
        first + step * place + second
        for place, value in enumerate(values)
        if (value > threshold if above else value < threshold)
        for second in range(step)
    }
    assert expected == inside
    assert all(end < begin for (_, end), (begin, _) in pairwise(periods))
