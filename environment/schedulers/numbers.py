"""Numbers by number in one option: ``3:2+17:0.5``."""

from __future__ import annotations

from math import isfinite

from environment.errors import QuantityError


def parse_numbers(text: str, what: str, *, positive: bool = False) -> dict[int, float]:
    """Return the values by number that ``text`` means; none for an empty text.

    Raises
    ------
    QuantityError
        When it is not made of number, colon and value, joined by plus signs.
    """
    values: dict[int, float] = {}
    for part in text.split("+") if text else ():
        number, _, value = part.partition(":")
        try:
            who, amount = int(number), float(value)
        except ValueError:
            raise QuantityError(
                f"{what} {text!r}: {part!r} is not number:value; write for example 3:2+17:0.5"
            ) from None
        if not isfinite(amount) or (positive and amount <= 0):
            rule = "positive" if positive else "finite"
            raise QuantityError(f"{what} {text!r}: the value of {who} must be {rule}")
        if who in values:
            raise QuantityError(f"{what} {text!r}: {who} is named twice; leave one")
        values[who] = amount
    return values
