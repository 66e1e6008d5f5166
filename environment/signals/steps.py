"""Step functions over the seconds of a run, and their exact integrals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Float64s, Int64s


@dataclass(frozen=True, eq=False)
class Steps:
    """A function that is constant between edges.

    Attributes
    ----------
    edges
        Where each step begins, and the end of the last one, s of the run, ascending, shape
        (steps + 1,).
    values
        The value of each step, shape (steps,).

    Raises
    ------
    QuantityError
        If edges do not ascend, or there is not one edge more than values.

    Examples
    --------
    >>> price = Steps([0, 10, 30], [2.0, 5.0])
    >>> price.at([0, 9, 10]).tolist()
    [2.0, 2.0, 5.0]
    >>> price.integral(5, 20).tolist()
    60.0
    """

    edges: Int64s
    values: Float64s

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", np.asarray(self.edges, np.int64))
        object.__setattr__(self, "values", np.asarray(self.values, np.float64))
        if len(self.edges) != len(self.values) + 1 or not len(self.values):
            raise QuantityError(
                f"steps: {len(self.edges)} edges for {len(self.values)} values; give one edge more "
                "than values, and at least one value"
            )
        if np.any(np.diff(self.edges) <= 0):
            raise QuantityError("steps: edges must ascend")

    @classmethod
    def constant(cls, value: float, begin: int, end: int) -> Self:
        """Return one step; it has at least one second."""
        return cls(np.array([begin, max(end, begin + 1)]), np.array([value]))

    @property
    def begin(self) -> int:
        """Its first second."""
        return int(self.edges[0])

    @property
    def end(self) -> int:
        """The second after its last one."""
        return int(self.edges[-1])

    @cached_property
    def _sums(self) -> Float64s:
        """The integral from the first edge to each edge, shape (steps + 1,)."""
        areas = self.values * np.diff(self.edges)
        return np.concatenate([[0.0], np.cumsum(areas)])

    def at(self, seconds: ArrayLike) -> Float64s:
        """Return the values at some seconds; outside, those of the first or last step."""
        place = np.searchsorted(self.edges, np.asarray(seconds), side="right") - 1
        found: Float64s = self.values[np.clip(place, 0, len(self.values) - 1)]
        return found

    def cumulative(self, seconds: ArrayLike) -> Float64s:
        """Return the integral from the first edge to some seconds within the steps."""
        at = np.asarray(seconds)
        place = np.clip(np.searchsorted(self.edges, at, side="right") - 1, 0, len(self.values) - 1)
        found: Float64s = self._sums[place] + self.values[place] * (at - self.edges[place])
        return found

    def integral(self, begin: ArrayLike, end: ArrayLike) -> Float64s:
        """Return the integrals between pairs of seconds within the steps."""
        if len(self.values) == 1:
            constant: Float64s = self.values[0] * (np.asarray(end) - np.asarray(begin))
            return constant
        return self.cumulative(end) - self.cumulative(begin)

    def mean(self, begin: ArrayLike, end: ArrayLike) -> Float64s:
        """Return the means between pairs of seconds; where both are the same, the value there."""
        begin, end = np.asarray(begin), np.asarray(end)
        length = end - begin
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Float64s = np.where(
                length > 0, self.integral(begin, end) / np.maximum(length, 1), self.at(begin)
            )
        return found

    def on(self, edges: Int64s) -> Float64s:
        """Return the values on finer steps, shape (edges - 1,)."""
        return self.at(edges[:-1])

    def merged(self) -> Self:
        """Return the same function with one step where neighbours have the same value."""
        first = np.append(True, self.values[1:] != self.values[:-1])
        return type(self)(np.append(self.edges[:-1][first], self.edges[-1]), self.values[first])

    def periods(
        self, *, above: float | None = None, below: float | None = None
    ) -> list[tuple[int, int]]:
        """Return (from, to), s of the run, of periods with values above or below a threshold."""
        active = np.zeros(len(self.values), bool)
        if above is not None:
            active |= self.values > above
        if below is not None:
            active |= self.values < below
        change = np.diff(np.concatenate([[0], active.astype(np.int64), [0]]))
        begins, ends = self.edges[change == 1].tolist(), self.edges[change == -1].tolist()
        return list(zip(begins, ends, strict=True))


def total(terms: Sequence[Steps], begin: int, end: int) -> Steps:
    """Return the sum of step functions between two seconds, within all of them."""
    return _combined(np.add, terms, begin, end)


def product(factors: Sequence[Steps], begin: int, end: int) -> Steps:
    """Return the product of step functions between two seconds, within all of them."""
    return _combined(np.multiply, factors, begin, end)


def _combined(how: np.ufunc, parts: Sequence[Steps], begin: int, end: int) -> Steps:
    edges = np.unique(np.concatenate([[begin, end], *(one.edges for one in parts)]))
    edges = edges[(edges >= begin) & (edges <= end)]
    return Steps(edges, how.reduce([one.on(edges) for one in parts]))
