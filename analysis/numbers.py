"""Numbers as tables and pictures show them; ``-`` is an unknown one.

Durations and counts are in :mod:`hpcrowd.environment.quantities`.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.quantities import format_duration

#: What stands for an unknown number.
UNKNOWN_NUMBER = "-"

#: Units of times in tables and on axes: smallest time shown in it (s), its length (s), name.
TIME_UNITS = ((3 * DAY, DAY, "days"), (2 * HOUR, HOUR, "h"), (120, 60, "min"), (0, 1, "s"))


def mean_of(values: NDArray[Any]) -> float | None:
    """Return the mean of numbers; None if there are none."""
    return float(values.mean()) if len(values) else None


def number_text(value: float | None) -> str:
    """Return a number with two decimals below 10, one below 100, and else none."""
    if value is None:
        return UNKNOWN_NUMBER
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def share_text(share: float | None) -> str:
    """Return a share in percent: ``12.3 %``."""
    return UNKNOWN_NUMBER if share is None else f"{100 * share:.1f} %"


def time_text(seconds: float | None) -> str:
    """Return a duration in a readable unit, see ``format_duration``."""
    return UNKNOWN_NUMBER if seconds is None else format_duration(seconds)


def time_unit(largest: float) -> tuple[int, str]:
    """Return the unit of times up to ``largest`` s: its length (s) and its name."""
    return next((size, unit) for least, size, unit in TIME_UNITS if largest >= least)


def amount_text(value: float, unit: str, thousands: str) -> str:
    """Return an amount in a unit; from 10,000 on, thousands of it have their own.

    Examples
    --------
    >>> amount_text(0.25, "kWh", "MWh"), amount_text(1234.5, "kWh", "MWh")
    ('0.250 kWh', '1,234 kWh')
    >>> amount_text(56_000, "kWh", "MWh"), amount_text(25_000, "kg", "t")
    ('56.0 MWh', '25.0 t')
    """
    if abs(value) >= 10_000:
        return f"{value / 1000:,.1f} {thousands}"
    return f"{value:,.{3 if abs(value) < 1 else 1 if abs(value) < 100 else 0}f} {unit}"


def letter(place: int) -> str:
    """Return the letter of a group in tables: A to Z, then A2 to Z2 and so on."""
    again, which = divmod(place, 26)
    return chr(ord("A") + which) + (str(again + 1) if again else "")
