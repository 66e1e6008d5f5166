"""What the page asks to see: the time it shows, and what is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcrowd.environment.clock import HOUR

#: Types of saved files by their ending.
SAVED_TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv"}


@dataclass(frozen=True)
class Asked:
    """What a picture of the page is of.

    Attributes
    ----------
    first, last
        The time shown, s since the origin.
    user
        Number of the chosen user; None if none is.
    job
        Number of the chosen job; None if none is.
    most
        Most jobs that a Gantt chart draws one by one.
    """

    first: int
    last: int
    user: int | None = None
    job: int | None = None
    most: int = 20_000

    @classmethod
    def of(cls, message: Mapping[str, Any], now: int) -> Asked:
        """Return what a message asks for; by default the week before second ``now``."""
        last = now if message.get("to") is None else int(message["to"])
        first = last - 7 * 24 * HOUR if message.get("from") is None else int(message["from"])
        user, job, most = (message.get(name) for name in ("user", "job", "most"))
        return cls(min(first, last - 1), last, user, job, 20_000 if most is None else most)

    def window(self, now: int) -> int:
        """Return the length of the shown time before second ``now``, s."""
        return max(min(self.last, now) - self.first, HOUR)

    def since(self, now: int) -> int:
        """Return the time from the beginning of the shown time until second ``now``, s."""
        return max(now - self.first, HOUR)
