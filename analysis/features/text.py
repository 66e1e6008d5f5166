"""Features as text for people: each value by the unit of its feature."""

from __future__ import annotations

from analysis.features.feature import Feature, Value
from environment.quantities import format_duration

#: s; shorter times are told in seconds with digits after the point.
SHORT_S = 120

#: Numbers nearer to 0 are told with as many digits as they need.
SMALL = 0.001


def format_value(feature: Feature, value: Value) -> str:
    """Return what a feature is, for people, with its unit; or ``not available: reason``.

    Times are told in the unit that suits them (``12.4 min``), shares in percent, whole numbers
    with separators of thousands, others with three or four digits.
    """
    number = value.number
    if number is None:
        return str(value)
    if feature.unit == "s":
        return _time(number)
    if feature.name.endswith("_share"):
        return f"{_digits(100 * number, most=1)} %"
    if feature.unit.startswith("1/"):
        return f"{_digits(number)} per {feature.unit.removeprefix('1/')}"
    return " ".join(filter(None, (_digits(number), feature.unit)))


def _time(seconds: float) -> str:
    if abs(seconds) >= SHORT_S or float(seconds).is_integer():
        return format_duration(seconds)
    return f"{_digits(seconds, most=2 if abs(seconds) < 10 else 1)} s"


def _digits(number: float, most: int = 3) -> str:
    """Return a number with three or four digits; ``most`` digits after the point, if not tiny."""
    if float(number).is_integer():
        return f"{number:,.0f}"
    size = abs(number)
    if size < SMALL:
        return f"{number:.2g}"
    wanted = 3 if size < 1 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{number:,.{min(wanted, most)}f}"
