"""Words of a file as numbers, and texts as words that a file can hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from environment.formats.base import LARGEST_EXACT


def parse_numbers(words: Sequence[bytes]) -> NDArray[np.float64] | None:
    """Return words as numbers, or None when one of them is none that is finite and exact."""
    try:
        values = np.array([float(word) for word in words], np.float64)
    except ValueError:
        return None
    good = np.all(np.abs(values) <= LARGEST_EXACT) and b"_" not in b" ".join(words)
    return values if good else None


def is_number(word: bytes) -> bool:
    """Return whether a word is a finite number that is exact as a floating point number."""
    return parse_numbers([word]) is not None


def plain(text: str) -> str:
    """Return a text as one line without control characters and with single blanks."""
    text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.split())
