"""When people work: windows of the local day and week."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from environment.clock import DAY, HOUR, Clock
from environment.errors import QuantityError

#: Days of the week, Monday is 0.
WORKING_DAYS = (0, 1, 2, 3, 4)
ALL_DAYS = (0, 1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class ActivityWindow:
    """The same hours on some days of the week, in local time.

    Attributes
    ----------
    opens, closes
        s after local midnight; active from ``opens`` on and before ``closes``.
    days
        Days of the week, Monday is 0.
    """

    opens: int = 8 * HOUR
    closes: int = 18 * HOUR
    days: tuple[int, ...] = WORKING_DAYS

    def __post_init__(self) -> None:
        if not 0 <= self.opens < self.closes <= DAY:
            raise QuantityError(
                f"window {self.opens} to {self.closes} s: must open before it closes, on one day"
            )
        if not self.days or not set(self.days) <= set(ALL_DAYS):
            raise QuantityError(f"days {self.days}: days of the week from 0 (Monday) to 6")

    def shifted(self, by: int) -> ActivityWindow:
        """Return the window ``by`` seconds later (or earlier), still on one day."""
        by = max(-self.opens, min(DAY - self.closes, by))
        return replace(self, opens=self.opens + by, closes=self.closes + by)

    def next_open(self, clock: Clock, second: int) -> int:
        """Return ``second`` if the window is open then, else the second at which it next opens."""
        local = clock.local(second)
        since_midnight = local.hour * HOUR + local.minute * 60 + local.second
        today = local.weekday() in self.days
        if today and self.opens <= since_midnight < self.closes:
            return second
        ahead = 0 if today and since_midnight < self.opens else 1
        while (local.weekday() + ahead) % 7 not in self.days:
            ahead += 1
        date = local.date() + timedelta(days=ahead)
        hour, rest = divmod(self.opens, HOUR)
        moment = datetime(
            date.year, date.month, date.day, hour, *divmod(rest, 60), tzinfo=clock.zone
        )
        return round(moment.timestamp()) - clock.unix_start

    def is_open(self, clock: Clock, second: int) -> bool:
        """Return whether the window is open at ``second``."""
        return self.next_open(clock, second) == second
