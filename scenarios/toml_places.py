"""Where something stands in a TOML file: the line of a key, for messages.

Neither ``tomllib`` nor ``tomlkit`` tells positions. Here the file is read again from its beginning,
one line more each time: a key stands where the first text ends that has it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

#: Names and places in lists that lead to a value.
Place = Sequence[str | int]


def line_of(text: str, place: Place) -> int | None:
    """Return the line, from 1, in which a value begins; None where nothing of the way is there.

    Parameters
    ----------
    text
        The whole file, valid TOML.
    place
        Keys, and numbers of elements from 0. Of what is not there the last that is counts, such as
        the table that a key is missing in.
    """
    for length in range(len(place), 0, -1):
        found = _first_line(text, place[:length])
        if found is not None:
            return found
    return None


def _first_line(text: str, place: Place) -> int | None:
    lines = text.splitlines(keepends=True)
    whole = 0  # lines of the longest beginning so far that is TOML
    for count in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue  # a value goes on in the next line
        if _has(values, place):
            return whole + 1
        whole = count
    return None


def _has(values: Any, place: Place) -> bool:
    for part in place:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
