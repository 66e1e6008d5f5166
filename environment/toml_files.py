"""Settings in TOML files: their values, and the line of a value for messages."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.inputs import read_bytes


def read_toml(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the values in a TOML file, and its bytes.

    Raises
    ------
    QuantityError
        If it cannot be read or is not TOML.
    """
    try:
        content = read_bytes(path)
        return tomllib.loads(content.decode("utf-8")), content
    except OSError as error:
        raise QuantityError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # also of an integer with thousands of digits
        raise QuantityError(f"{path}: not TOML: {error}") from error
    except RecursionError:
        raise QuantityError(f"{path}: nested too deeply to be read") from None


#: Lines x characters of a file in which the line of a mistake is looked for, half a second.
MOST_SEARCHED = 5_000_000

#: The keys and list indices that lead to a value.
Place = Sequence[str | int]


def line_of(text: str, place: Place) -> int | None:
    """Return the line, from 1, in which a value begins; None if no part of its path exists.

    Parameters
    ----------
    text
        The whole file, valid TOML.
    place
        Keys, and list indices from 0. If the value does not exist, the last existing part of the
        path counts, such as the table in which a key is missing.
    """
    for length in range(len(place), 0, -1):
        found = _first_line(text, place[:length])
        if found is not None:
            return found
    return None


def _first_line(text: str, place: Place) -> int | None:
    """Return the line in which a value begins.

    Neither ``tomllib`` nor ``tomlkit`` gives positions. So ever longer beginnings of the file are
    parsed, line by line: a value is at the end of the first one that contains it.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) * len(text) > MOST_SEARCHED:
        return None
    whole = 0  # lines of the longest valid beginning so far
    for count in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue  # a value continues on the next line
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
