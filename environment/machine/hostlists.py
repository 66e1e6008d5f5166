"""Host lists as Slurm writes them, ``n[1-4,7],gpu01``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from hpcrowd.environment.errors import QuantityError

#: Most names of one part of a list, as in Slurm's MAX_RANGE (hostlist.c), and of all its parts.
MOST_NAMES, MOST_OF_ALL = 65_536, 2**18

#: Most characters of a name.
LONGEST_NAME = 255

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_PIECES = re.compile(r"([0-9]+)")
_PART = re.compile(r"\[([^\[\]]*)\]")


def expand(text: str) -> Iterator[str]:
    """Yield the names of a host list.

    Raises
    ------
    QuantityError
        If it is not a host list, or names too many.
    """
    count = 0
    for part in _split(text):
        for name in _expand_one(part):
            count += 1
            if count > MOST_OF_ALL:
                raise QuantityError(f"host list {text!r}: more than {MOST_OF_ALL:,} names")
            yield name


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
        name = "".join(chosen)
        if len(name) > LONGEST_NAME or "=" in name or not name.isprintable():
            raise QuantityError(
                f"host list {part!r}: names have at most {LONGEST_NAME} printable characters and "
                "no ="
            )
        yield name


def _numbers(text: str, whole: str) -> list[str]:
    found: list[str] = []
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        last = last if dash else first
        digits = first.isdecimal() and last.isdecimal() and len(first + last) <= LONGEST_NAME
        if not (digits and int(first) <= int(last)):
            raise QuantityError(f"host list {whole!r}: {piece!r} is not a number or range upwards")
        if len(found) + int(last) - int(first) >= MOST_NAMES:
            raise QuantityError(f"host list {whole!r}: more than {MOST_NAMES:,} names")
        width = len(first)
        found += [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    return found


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return what names are ordered by: n2 comes before n10, as in Slurm's table of nodes."""
    pieces = _PIECES.split(name)
    numbers = [int(one) for one in pieces[1::2]] + [-1]
    return tuple(zip(pieces[0::2], numbers, strict=True))


def collapse(names: Iterable[str]) -> str:
    """Return the shortest host list of names in their order: ``n[1-4,7],gpu01``."""
    groups: list[tuple[str, list[str]]] = []  # beginning, numbers as texts; none for a plain name
    for name in names:
        match = _NUMBERED.fullmatch(name)
        beginning, number = (match[1], match[2]) if match else (name, "")
        if number and groups and groups[-1][0] == beginning and groups[-1][1]:
            groups[-1][1].append(number)
        else:
            groups.append((beginning, [number] if number else []))
    return ",".join(map(_group_text, groups))


def _group_text(group: tuple[str, list[str]]) -> str:
    beginning, numbers = group
    if len(numbers) < 2:
        return beginning + "".join(numbers)
    ranges: list[list[str]] = []
    for number in numbers:
        if ranges and f"{int(ranges[-1][-1]) + 1:0{len(ranges[-1][0])}d}" == number:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return f"{beginning}[{','.join('-'.join(one) for one in ranges)}]"
