"""Host lists as Slurm writes them, ``n[1-4,7],gpu01``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from hpcrowd.environment.errors import QuantityError

#: Most names of one list, as in Slurm's MAX_RANGE (hostlist.c).
MOST_NAMES = 65_536

_PART = re.compile(r"\[([^\[\]]*)\]")


def expand(text: str) -> Iterator[str]:
    """Yield the names of a host list.

    Raises
    ------
    QuantityError
        If it is not a host list, or names too many.
    """
    for part in _split(text):
        yield from _expand_one(part)


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise QuantityError(f"host list {text!r}: brackets do not match, as in n[1-4,7]")
        if letter == "," and not depth:
            parts.append(text[begin:place])
            begin = place + 1
    if depth:
        raise QuantityError(f"host list {text!r}: brackets do not match, as in n[1-4,7]")
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def _expand_one(part: str) -> Iterator[str]:
    pieces = _PART.split(part)
    choices = [
        _numbers(piece, part) if place % 2 else [piece] for place, piece in enumerate(pieces)
    ]
    size = 1
    for one in choices:
        size *= len(one)
    if size > MOST_NAMES:
        raise QuantityError(f"host list {part!r}: {size:,} names; at most {MOST_NAMES:,}")
    for chosen in product(*choices):
        yield "".join(chosen)


def _numbers(text: str, whole: str) -> list[str]:
    found: list[str] = []
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise QuantityError(f"host list {whole!r}: {piece!r} is not a number or range upwards")
        if int(last) - int(first) >= MOST_NAMES:
            raise QuantityError(f"host list {whole!r}: more than {MOST_NAMES:,} names")
        width = len(first)
        found += [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    return found
