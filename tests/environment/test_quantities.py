"""Quantities as people write them."""

import re

import numpy as np
import pytest
from hpcrowd.environment.quantities import (
    format_duration,
    parse_duration,
    parse_factor,
    parse_processors,
    round_half_up,
)
from hpcrowd.errors import QuantityError
from hypothesis import given
from hypothesis import strategies as st


def of_100(text):
    """Read processors, of 100."""
    return parse_processors(text, 100)


READ = [
    (parse_duration, "0", 0), (parse_duration, "90s", 90),
    (parse_duration, "60m", 3600), (parse_duration, "1.5h", 5400), (parse_duration, "2d", 172_800),
    (parse_duration, "1w", 604_800), (parse_duration, " 20 m ", 1200), (parse_duration, "0.5s", 1),
    (parse_duration, "0.4s", 0), (parse_duration, "2.5s", 3),
    (parse_factor, "2x", 2.0), (parse_factor, "0.5x", 0.5), (parse_factor, " 1.25 x", 1.25),
    (parse_factor, "1.2", 1.2), (parse_factor, "+20%", 1.2), (parse_factor, "120 %", 1.2),
    (parse_factor, "20%", 0.2), (parse_factor, "-12.5%", 0.875), (parse_factor, "133.3%", 1.333),
    (of_100, "+20%", 120), (of_100, "20%", 20), (of_100, "1.2", 120), (of_100, "-10%", 90),
    (of_100, "200", 200), (of_100, "1x", 100), (of_100, "0.5x", 50), (of_100, "0.005x", 1),
    (of_100, "1.5x", 150),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "value"), READ)
def test_quantities(parse, text, value):
    """Durations are whole seconds, processors a number or a multiple, halves rounded up."""
    assert value == parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_duration, text) for text in ("", "m", "60", "2.5", "-5m", "5 minutes", "1h30m")),
        *(
            (parse_duration, text)
            for text in ("1e3", "nan", "5M", "\u0665m", "1_000", ".5h", "5.", "+5")
        ),
        *(
            (parse_factor, text)
            for text in ("", "2", "2.0", "-100%", "+2x", "x", "0x", "0.0x", "-1x", "x2", "nanx")
        ),
        (parse_factor, "9" * 400 + "x"),
        *((of_100, text) for text in ("0", "0.001x", "-3", "", "many", "64.0", "8x8")),
        (of_100, "\u0665"),
    ],
)
def test_quantity_that_cannot_be_understood(parse, text):
    """What is not a quantity is reported in one line, with what was written and an example."""
    with pytest.raises(QuantityError, match=re.escape(repr(text)[:50])):
        parse(text)


def test_error_names_what_was_meant():
    """The message begins with what the quantity was for."""
    with pytest.raises(QuantityError, match=r"^speed 'fast': "):
        parse_factor("fast", "speed")


@given(st.integers(-(10**6), 10**6))
def test_halves_are_rounded_up(number):
    """Halves go up, also below zero, for numbers and arrays alike."""
    values = [number - 0.5, number - 0.25, float(number), number + 0.25, number + 0.5]
    expected = [number, number, number, number, number + 1]
    assert expected == [round_half_up(value) for value in values]
    rounded = round_half_up(np.array(values))
    assert (np.int64, expected) == (rounded.dtype, rounded.tolist())


SHOWN = [
    (0, "0 s"), (119, "119 s"), (120, "2.0 min"), (7199, "120.0 min"), (7200, "2.0 h"),
    (172_800, "2.0 days"), (8.64e9, "100,000.0 days"), (-90, "-90 s"), (-3 * 86_400, "-3.0 days"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), SHOWN)
def test_durations_for_people(seconds, text):
    """Seconds are shown in the unit that people would choose."""
    assert text == format_duration(seconds)


@pytest.mark.parametrize("digits", [30, 400, 5000])
def test_endless_numbers_are_refused(digits):
    """A number of hundreds of digits is a mistake like another, wherever it stands."""
    number = "9" * digits
    for refused in (
        lambda: parse_duration(f"{number}s"),
        lambda: parse_duration(f"{number}.5w"),
        lambda: parse_factor(f"{number}x"),
        lambda: parse_processors(number, 4),
    ):
        with pytest.raises(QuantityError):
            refused()
