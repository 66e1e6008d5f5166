"""Arrays as compiled code takes them: in objects, with more room, and with fewer entries."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, Self

import numpy as np


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
    grown = np.full((*array.shape[:-1], columns), fill, array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def without(heap: Any, size: int, jobs: Any) -> int:
    """Take jobs out of the first ``size`` entries of a heap; return how many entries are left."""
    left = heap[:, :size][:, ~np.isin(heap[1, :size], jobs)]
    count = len(left[0])
    heap[:, :count] = left[:, np.lexsort((left[1], left[0]))]  # a sorted array is a heap
    return count
