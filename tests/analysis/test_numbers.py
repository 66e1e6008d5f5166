"""Numbers as tables and pictures show them."""

import numpy as np
import pytest
from hpcrowd.analysis.numbers import (
    amount_text,
    mean_of,
    number_text,
    share_text,
    time_text,
    time_unit,
)
from hpcrowd.analysis.paired import t_interval


@pytest.mark.parametrize("form", [number_text, share_text, time_text])
def test_an_unknown_number_is_a_dash(form):
    """Whatever it would be."""
    assert form(None) == "-"


@pytest.mark.parametrize(
    ("expected", "value"),
    [("0.00", 0.0), ("9.99", 9.99), ("-9.99", -9.99), ("10.0", 10), ("1,234", 1234.4)],
)
def test_numbers_have_about_three_digits(expected, value):
    """Two decimals below 10, one below 100, and thousands are separated."""
    assert expected == number_text(value)


def test_each_has_its_unit():
    """Shares are in percent, times and amounts in the unit that suits their size."""
    assert ("12.3 %", "2.0 h") == (share_text(0.1234), time_text(7200))
    assert [(86400, "days"), (3600, "h"), (60, "min"), (1, "s")] == [
        time_unit(largest) for largest in (3 * 86400, 7200, 120, 119)
    ]
    assert ("0.250 kWh", "25.0 t") == (
        amount_text(0.25, "kWh", "MWh"),
        amount_text(25_000, "kg", "t"),
    )


def test_nothing_has_no_mean():
    """The mean of no numbers is not known."""
    assert (2.0, None) == (mean_of(np.array([1, 3])), mean_of(np.zeros(0)))


@pytest.mark.parametrize(
    ("values", "written", "expected"),
    [((0.5, 0.7), (0, 0.01), "60 ± 127"), ((-0.001,), (2,), "0.00"), ((1234.0,), (), "1,234.0")],
)
def test_estimates_have_half_their_interval(values, written, expected):
    """A single value has none, a small negative one no sign, and a share may be in percent."""
    assert expected == t_interval(values).text(*written)
