"""Arrays as compiled code takes them: in objects, with names for rows, and with more room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Row:
    """A name for a row of an array of an object, or with ``...`` before the number for a column.

    ``start = Row("table", 16)`` in a class lets ``jobs.start[job]`` stand for
    ``jobs.table[16, job]``. Compiled code has the latter, so that a name costs nothing.
    """

    def __init__(self, array: str, *at: Any) -> None:
        self._array, self._at = array, at

    def __get__(self, one: Any, owner: type) -> NDArray[Any]:
        """Return the row."""
        return getattr(one, self._array)[self._at]


def rows(array: str, count: int) -> Iterator[Row]:
    """Yield names for the first rows, one after the other."""
    return (Row(array, at) for at in range(count))


def fields(array: str, count: int) -> Iterator[Row]:
    """Yield names for the first columns, one after the other."""
    return (Row(array, ..., at) for at in range(count))


class Groups:
    """Objects that compiled functions take, each made again when one of its arrays is replaced."""

    def __init__(self) -> None:
        self._made: dict[Any, tuple[tuple[Any, ...], Any]] = {}

    def of[T](self, kind: Callable[..., T], *arrays: Any) -> T:
        """Return ``kind(*arrays)``, the same object as long as the arrays are the same."""
        before = self._made.get(kind)
        if before is not None and all(map(is_, before[0], arrays)):
            found: T = before[1]
            return found
        made = kind(*arrays)
        self._made[kind] = arrays, made
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """Let copies make their own: arrays of a copy are others."""
        return type(self), ()


def with_room(array: Any, columns: int) -> Any:
    """Return the array, widened if it has fewer columns than needed."""
    return array if array.shape[-1] >= columns else wider(array, columns)


def wider(array: Any, columns: int, fill: int = 0) -> Any:
    """Return the array with that many columns; new ones hold ``fill``."""
    array = np.asarray(array)
    grown = np.full((*array.shape[:-1], columns), fill, array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def without(heap: Any, size: int, jobs: Any) -> int:
    """Take jobs out of a heap of ``size`` entries; return how many entries are left."""
    table = np.asarray(heap.table)
    left = table[:, :size][:, ~np.isin(heap.job[:size], jobs)]
    count = len(left[0])
    table[:, :count] = left[:, np.lexsort((left[1], left[0]))]  # a sorted array is a heap
    return count
