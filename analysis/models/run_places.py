"""Runs of jobs of one class after each other, drawn from tables; compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.analysis.models.part import Floats
from hpcrowd.environment.compilation import compiled
from hpcrowd.environment.jobs import Int64s


@dataclass(frozen=True)
class Table:
    """Values to draw for each class, by how often each comes.

    Attributes
    ----------
    values
        Of all classes, in the order of the classes.
    ends
        Sum of the counts up to each value, over all classes.
    bounds
        Sum of the counts up to the end of each class, after a 0, shape (classes + 1,).
    """

    values: Int64s
    ends: Int64s
    bounds: Int64s

    @classmethod
    def of(cls, counts: ArrayLike) -> Self:
        """Return the table of rows of class, value and count; every class has some."""
        rows = np.asarray(counts, np.int64)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        of_class = np.bincount(rows[:, 0], rows[:, 2])
        bounds = np.append(0, np.cumsum(of_class)).astype(np.int64)
        return cls(np.ascontiguousarray(rows[:, 1]), np.cumsum(rows[:, 2]), bounds)


@compiled  # type: ignore[untyped-decorator]
def _one(chance: float, begin: int, end: int, ends: Int64s) -> int:
    """Return the place in a table of one of the counts from ``begin`` to ``end``."""
    wanted = begin + min(int(chance * (end - begin)), end - begin - 1)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if ends[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@compiled  # type: ignore[untyped-decorator]
def _fill(
    chances: Floats,
    lengths: Int64s,
    length_ends: Int64s,
    length_bounds: Int64s,
    follows: Int64s,
    follow_ends: Int64s,
    follow_bounds: Int64s,
    label: Int64s,
    run: Int64s,
) -> None:
    """Fill class and run of each job; ``chances`` has three rows, the first for the beginning."""
    size = len(label)
    begun = follows[_one(chances[0, 0], 0, follow_ends[-1], follow_ends)]
    place, number = 0, 0
    while place < size:
        length = lengths[
            _one(chances[1, number], length_bounds[begun], length_bounds[begun + 1], length_ends)
        ]
        end = min(place + length, size)
        label[place:end] = begun
        run[place:end] = number
        begun = follows[
            _one(chances[2, number], follow_bounds[begun], follow_bounds[begun + 1], follow_ends)
        ]
        place = end
        number += 1


def runs_of(
    size: int, lengths: Table, follows: Table, random: np.random.Generator
) -> tuple[Int64s, Int64s]:
    """Return the class of each job, and the number of its run from 0 on, each of shape (size,).

    Parameters
    ----------
    size
        How many jobs.
    lengths
        Lengths of the runs of each class.
    follows
        Class of the run after those of each class.
    random
        The stream to draw from.
    """
    label, run = np.zeros(size, np.int64), np.zeros(size, np.int64)
    if size:
        _fill(
            random.random((3, size)),
            lengths.values, lengths.ends, lengths.bounds,
            follows.values, follows.ends, follows.bounds,
            label, run,
        )  # fmt: skip
    return label, run
