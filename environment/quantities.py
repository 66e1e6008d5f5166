"""Parse quantities as people write them: ``60m``, ``2x``, ``+20%``, ``200``.

Durations are whole seconds; sampled or scaled times are always rounded half up, with
:func:`round_half_up`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import (
    LARGEST_TIME,
    LEAST_FACTOR,
    LONGEST_DURATION,
    MOST_FACTOR,
    MOST_PROCESSORS,
    check_within,
)

#: Seconds in each unit of durations.
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

# Longer numbers are mistakes, and would overflow.
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,20})?)\s*([smhdw]?)", re.ASCII)
_FACTOR = re.compile(
    r"(?P<times>\d{1,15}(?:\.\d{1,20})?)\s*x"
    r"|(?P<sign>[+-]?)\s*(?P<percent>\d{1,15}(?:\.\d{1,20})?)\s*%"
    r"|(?P<decimal>\d{1,15}\.\d{0,19}[1-9]\d{0,19})",
    re.ASCII,
)
_COUNT = re.compile(r"\d{1,15}", re.ASCII)
_AMOUNT = re.compile(r"(-?\d{1,15}(?:\.\d{1,20})?)\s*([A-Za-z]*)", re.ASCII)

#: W in each unit of power, and J in each unit of energy.
WATTS = {"W": 1.0, "kW": 1e3, "MW": 1e6}
JOULES = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3.6e3, "kWh": 3.6e6, "MWh": 3.6e9}

#: J in a kWh.
KWH = JOULES["kWh"]


def parse_duration(text: str, what: str = "duration") -> int:
    """Return the whole seconds that ``text`` means: ``90s``, ``60m``, ``1.5h``, ``2d``, ``0``.

    Raises QuantityError when it is not a non-negative number with one of these units.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match or not (match[2] or float(match[1]) == 0):
        cure = f"{match[1]}s or {match[1]}m" if match else "90s, 60m, 2h or 1d"
        raise QuantityError(f"{what} {text!r}: not a number with a unit; write for example {cure}")
    seconds = round_half_up(float(match[1]) * SECONDS[match[2] or "s"])
    if seconds > LONGEST_DURATION:
        raise QuantityError(
            f"{what} {text!r}: more than {LONGEST_DURATION:,} s, which is 317 years"
        )
    return seconds


def parse_power(text: str) -> float:
    """Return the W that ``text`` means: ``90 W``, ``1.2 kW``, ``3 MW``.

    Raises QuantityError when it is not a non-negative number with one of these units.
    """
    return _amount(text, "power", WATTS, "90 W, 1.2 kW or 3 MW")


def parse_energy(text: str) -> float:
    """Return the J that ``text`` means: ``500 J``, ``40 kJ``, ``2 kWh``.

    Raises QuantityError when it is not a non-negative number with one of these units.
    """
    return _amount(text, "energy", JOULES, "500 J, 40 kJ, 2 MJ or 1.5 kWh")


def _amount(text: str, what: str, units: dict[str, float], example: str) -> float:
    match = _AMOUNT.fullmatch(text.strip())
    if not match or match[2] not in units:
        raise QuantityError(
            f"{what} {text!r}: not a number with a unit; write for example {example}"
        )
    if float(match[1]) < 0:
        raise QuantityError(f"{what} {text!r}: must be 0 or more")
    return float(match[1]) * units[match[2]]


def duration_text(seconds: int) -> str:
    """Return the shortest text that :func:`parse_duration` reads as ``seconds``, without weeks."""
    unit = next(unit for unit in "dhms" if seconds % SECONDS[unit] == 0)
    return f"{seconds // SECONDS[unit]}{unit}" if seconds else "0s"


def parse_factor(text: str, what: str = "factor") -> float:
    """Return the positive multiple that ``text`` means: ``2x``, ``1.2``, ``120%``, ``+20%``.

    A percentage without a sign is that share: ``20%`` is a fifth. A whole number needs its ``x``,
    as it may be a count.

    Raises QuantityError when it is none of these.
    """
    factor = _factor(text.strip())
    if factor is None or factor <= 0:
        raise QuantityError(
            f"{what} {text!r}: not a positive multiple; write for example 2x, 0.5x, 1.2 or +20%"
        )
    check_within(what, factor, LEAST_FACTOR, MOST_FACTOR)
    return factor


def _factor(text: str) -> float | None:
    """Return the multiple that a text means; None for none."""
    match = _FACTOR.fullmatch(text)
    if match is None:
        return None
    if not match["percent"]:
        return float(match["times"] or match["decimal"])
    share = Decimal(match["percent"]) / 100
    return float({"": share, "+": 1 + share, "-": 1 - share}[match["sign"]])


def is_multiple(text: str) -> bool:
    """Return whether a number of processors is given as a multiple, not as a whole number."""
    return not _COUNT.fullmatch(text.strip())


def parse_processors(text: str, original: int) -> int:
    """Return a number of processors: ``200``, or a multiple of ``original``.

    Multiples are those of :func:`parse_factor`, such as ``0.5x`` or ``+20%``.
    """
    text = text.strip()
    if not is_multiple(text):
        count = int(text)
    elif _factor(text) is None:
        raise QuantityError(
            f"processors {text!r}: neither a whole number such as 200, nor a multiple of the "
            "machine such as 2x, 1.2 or +20%"
        )
    else:
        count = round_half_up(parse_factor(text, "processors") * original)
    if count < 1:
        raise QuantityError(f"processors {text!r}: gives {count}; at least 1 is needed")
    check_within("processors", count, 1, MOST_PROCESSORS)
    return count


def format_duration(seconds: float) -> str:
    """Return ``seconds`` in a readable unit: ``35 s``, ``12.4 min``, ``3.1 h``, ``2.5 days``."""
    size = abs(seconds)
    if size < 120:
        return f"{round(seconds)} s"
    if size < 7200:
        return f"{seconds / 60:.1f} min"
    if size < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:,.1f} days"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 job``, ``2 jobs``, ``2 batches``."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


_TOO_LARGE = (
    "a time or a number of processors becomes larger than 2^61; a factor, a speed or a time in the "
    "input is too large"
)


@overload
def round_half_up(value: float) -> int: ...


@overload
def round_half_up(value: NDArray[np.floating]) -> NDArray[np.int64]: ...


def round_half_up(value: float | NDArray[np.floating]) -> int | NDArray[np.int64]:
    """Round to whole numbers, halves up: an int for a number, an int64 array for an array.

    Raises QuantityError when a number is not finite, or too large for sums of such numbers.
    """
    if isinstance(value, np.ndarray):
        whole = np.floor(value + 0.5)
        if whole.size and not -LARGEST_TIME <= whole.min() <= whole.max() <= LARGEST_TIME:
            raise QuantityError(_TOO_LARGE)
        return whole.astype(np.int64)
    if not -LARGEST_TIME <= value <= LARGEST_TIME:
        raise QuantityError(_TOO_LARGE)
    return math.floor(value + 0.5)


def time_at_speed(times: NDArray[np.int64], speed: float) -> NDArray[np.int64]:
    """Return run times on nodes ``speed`` times as fast, s: rounded half up.

    Positive times become at least 1 s; 0 and unknown (-1) stay.
    """
    scaled = np.maximum(round_half_up(times / speed), 1)
    return np.where(times > 0, scaled, times)


def time_at_pace(times: NDArray[np.int64], pace: Fraction) -> NDArray[np.int64]:
    """Return run times on nodes ``pace`` times as fast, s, as :func:`time_at_speed` but exact."""
    over, under = pace.denominator, pace.numerator
    exact = np.asarray(times).astype(object)  # Python's integers do not overflow
    scaled = np.asarray((2 * exact * over + under) // (2 * under)).astype(np.int64)
    return np.where(times > 0, np.maximum(scaled, 1), times)


#: Most rows, or groups in one, of a table in a notebook, which stays small (our choice).
MOST_SHOWN = 30


def notebook_table(title: str, rows: Iterable[tuple[object, ...]]) -> str:
    """Return an HTML table for notebooks: a title, and rows of name, value and maybe meaning."""
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{lines}</tbody></table>"
