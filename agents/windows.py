"""When people work: windows of the local week that are open or closed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from environment.clock import DAY, HOUR, WEEK, Clock
from environment.errors import QuantityError

#: Days of the week, Monday is 0.
WORKING_DAYS = (0, 1, 2, 3, 4)
WEEKEND = (5, 6)
ALL_DAYS = (0, 1, 2, 3, 4, 5, 6)


class WeeklyWindow:
    """Pieces of the local week in which a user may submit.

    Parameters
    ----------
    pieces
        (opens, closes), s after Monday 00:00 local time; open from ``opens`` on and before
        ``closes``, at most a week later. Pieces may touch or overlap.

    Raises
    ------
    QuantityError
        When it would never open.
    """

    def __init__(self, pieces: Iterable[tuple[int, int]]) -> None:
        flat = []
        for opens, closes in pieces:
            if not 0 <= opens < WEEK or not opens < closes <= opens + WEEK:
                raise QuantityError(
                    f"window {opens} to {closes} s of the week: must open within the week, before "
                    "it closes, and close within a week"
                )
            flat.append((opens, min(closes, WEEK)))
            if closes > WEEK:
                flat.append((0, closes - WEEK))
        if not flat:
            raise QuantityError("window without hours: never opens; give hours and days")
        self._opens: list[int] = []
        self._closes: list[int] = []
        for opens, closes in sorted(flat):
            if self._closes and opens <= self._closes[-1]:
                self._closes[-1] = max(self._closes[-1], closes)
            else:
                self._opens.append(opens)
                self._closes.append(closes)
        self._first_again = self._opens[0] + WEEK

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """The pieces in order, none touching another, s after Monday 00:00."""
        return list(zip(self._opens, self._closes, strict=True))

    def is_open(self, clock: Clock, second: int) -> bool:
        """Return whether the window is open at ``second``."""
        of_week = clock.wall(second) % WEEK
        piece = bisect_right(self._opens, of_week) - 1
        return piece >= 0 and of_week < self._closes[piece]

    def next_open(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is open then, else the second at which it next opens."""
        while True:
            of_week = clock.wall(second) % WEEK
            piece = bisect_right(self._opens, of_week) - 1
            if piece >= 0 and of_week < self._closes[piece]:
                return second
            later = self._opens[piece + 1] if piece + 1 < len(self._opens) else self._first_again
            opens = second + later - of_week
            change = clock.next_change(second, opens)
            if change is None:
                return opens
            second = change  # clocks may skip the opening, or show it a second time

    def next_closed(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is closed then, else the second at which it closes.

        Raises
        ------
        QuantityError
            When it is open all week.
        """
        if self.pieces == [(0, WEEK)]:
            raise QuantityError("window of the whole week: never closes")
        while self.is_open(clock, second):
            wall = clock.wall(second)
            of_week = wall % WEEK
            left = self._closes[bisect_right(self._opens, of_week) - 1] - of_week
            closes = clock.second_at(wall + left)
            # Clocks put back show an hour twice: the first time may be over.
            second = closes if closes > second else second + left
        return second


@dataclass(frozen=True)
class ActivityWindow:
    """The same hours on some days of the week, in local time.

    Attributes
    ----------
    opens, closes
        s after local midnight; active from ``opens`` on and before ``closes``. A window that closes
        before it opens is open at night, on each of the days until ``closes`` and from ``opens``.
    days
        Days of the week, Monday is 0.

    Raises
    ------
    QuantityError
        When it would never open.
    """

    opens: int = 8 * HOUR
    closes: int = 18 * HOUR
    days: tuple[int, ...] = WORKING_DAYS

    def __post_init__(self) -> None:
        if not (0 <= self.opens < DAY and 0 < self.closes <= DAY) or self.opens == self.closes:
            raise QuantityError(
                f"window {self.opens} to {self.closes} s: both must be times of one day, and differ"
            )
        if not self.days:
            raise QuantityError("window without days: never opens; name days of the week")
        if not set(self.days) <= set(ALL_DAYS):
            raise QuantityError(f"days {self.days}: days of the week from 0 (Monday) to 6")

    def shifted(self, by: int) -> ActivityWindow:
        """Return the window ``by`` seconds later (or earlier); a day's window stays on one day."""
        if self.opens > self.closes:
            opens, closes = (self.opens + by) % DAY, (self.closes + by - 1) % DAY + 1
            return replace(self, opens=opens, closes=closes)
        by = max(-self.opens, min(DAY - self.closes, by))
        return replace(self, opens=self.opens + by, closes=self.closes + by)

    @cached_property
    def week(self) -> WeeklyWindow:
        """The window as pieces of the week."""
        if self.opens < self.closes:
            hours: Sequence[tuple[int, int]] = [(self.opens, self.closes)]
        else:
            hours = [(0, self.closes), (self.opens, DAY)]
        return WeeklyWindow((day * DAY + a, day * DAY + b) for day in self.days for a, b in hours)

    def next_open(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is open then, else the second at which it next opens."""
        return self.week.next_open(clock, second)

    def is_open(self, clock: Clock, second: int) -> bool:
        """Return whether the window is open at ``second``."""
        return self.week.is_open(clock, second)
