"""Signals that repeat: a year of prices for a log of any year, a week for all weeks.

A signal repeats in local time: what it has in its evening comes in the evening of the cluster, also
when clocks change on other dates there. It moves by whole weeks, so that days of the week fit. With
``year``, each repetition begins at the whole week that is nearest to a whole number of years: 52 or
53 weeks after the one before. So the season fits within half a week, in a log of 1996 with a signal
of 2023 too. Where a repetition is longer than the signal, the last week comes again. What the
signal covers itself is not moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from hpcrowd.environment.clock import CYCLE, DAY, WEEK
from hpcrowd.environment.errors import SignalError
from hpcrowd.environment.jobs import Float64s, Int64s

#: Whether and how a signal repeats.
Repeat = Literal["no", "week", "year"]

REPEATS: tuple[Repeat, ...] = ("no", "week", "year")

#: s of a mean year of the Gregorian calendar.
YEAR = CYCLE // 400

#: s of the shortest signal that repeats by the year: 52 weeks.
SHORTEST_YEAR = 364 * DAY


class Repeated:
    """A step function of local time that repeats; it gives the pieces of :func:`local_steps`.

    Parameters
    ----------
    walls
        Local times at which the steps begin, and the end of the last one, shape (steps + 1,). When
        clocks are put back they go back, too: of an hour that occurs twice, the first counts.
    values
        Of the steps, shape (steps,).
    repeat
        By ``week``, the largest whole number of weeks that it has, or by ``year``.
    source
        Its origin, for messages.

    Raises
    ------
    SignalError
        If it is shorter than a week, or than 364 days.
    """

    def __init__(
        self, walls: Int64s, values: Float64s, repeat: Literal["week", "year"], source: str
    ) -> None:
        latest = np.maximum.accumulate(walls[:-1])
        forward = np.append(True, walls[1:-1] > latest[:-1])
        self._starts, self._values = walls[:-1][forward], values[forward]
        self._begin = int(self._starts[0])
        self._end = max(int(walls[-1]), int(self._starts[-1]) + 1)
        length = self._end - self._begin
        least = WEEK if repeat == "week" else SHORTEST_YEAR
        if length < least:
            cure = ', or repeat = "week"' if repeat == "year" and length >= WEEK else ""
            raise SignalError(
                source,
                f'{length / DAY:.4g} days long, but repeat = "{repeat}" needs at least '
                f"{least // DAY}; give a longer signal{cure}",
            )
        # A signal that is some days short of whole years still counts as these.
        years = (length + WEEK) // YEAR
        self._period = length // WEEK * WEEK if repeat == "week" else years * YEAR

    def __call__(self, begin: int, end: int) -> tuple[Int64s, Float64s]:
        """Return the beginnings and the values of the steps between two local times."""
        starts, values = [], []
        for first, last, later in self._segments(begin, end):
            one = int(np.searchsorted(self._starts, first - later, side="right")) - 1
            two = int(np.searchsorted(self._starts, last - later, side="left"))
            starts.append(self._starts[one:two] + later)
            starts[-1][0] = first
            values.append(self._values[one:two])
        return np.concatenate(starts), np.concatenate(values)

    def _segments(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield (from, to, how much later than in the signal) for the parts of local times."""
        number = (begin - self._begin) // self._period - 1
        at = begin
        while at < end:
            if self._begin <= at < self._end:
                last, later = self._end, 0
            else:
                while self._first(number + 1) <= at:
                    number += 1
                first, last = self._first(number), self._first(number + 1)
                if number < 0:
                    last = min(last, self._begin)
                later = first - self._begin
                while at - later >= self._end:
                    later += WEEK
                last = min(last, later + self._end)
            yield at, min(last, end), later
            at = last

    def _first(self, number: int) -> int:
        """Return when a repetition begins: whole weeks before or after the signal itself."""
        return self._begin + (2 * number * self._period + WEEK) // (2 * WEEK) * WEEK
