"""On which days people come to work at all, as far as a record tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from agents.work import Work
from environment.clock import DAY, Clock
from environment.jobs import UNKNOWN, Int64s

#: Days of a week.
DAYS = 7


@dataclass(frozen=True)
class Attendance:
    """Days that the users of a record were active on.

    Attributes
    ----------
    active
        Local days with a submission, shape (users,).
    present
        Local days from the first to the last of them, both counted, shape (users,).
    """

    active: Int64s
    present: Int64s

    @classmethod
    def fit(cls, work: Work, clock: Clock) -> Self:
        """Count the days of each user of a record."""
        sessions = work.sessions
        first = sessions.session_first[sessions.user_first]
        day = clock.walls(work.jobs.recorded_submit[sessions.rows]) // DAY
        user = np.repeat(np.arange(len(sessions.users)), np.diff(first))
        new = np.ones(len(day), bool)
        # Clocks put back at midnight would make a day come twice: days only count forward.
        day = np.maximum.accumulate(day - day.min() + user * (np.ptp(day) + 1))
        new[1:] = day[1:] != day[:-1]
        return cls(
            active=np.add.reduceat(new.astype(np.int64), first[:-1]),
            present=day[first[1:] - 1] - day[first[:-1]] + 1,
        )

    def probability(self, place: int, open_days: int) -> float:
        """Return how likely a user comes on one of its days, so that it comes as often as recorded.

        Parameters
        ----------
        place
            Of the user in the record; -1 for one without a record, who comes as often as all.
        open_days
            Days of the week on which it has hours.
        """
        of = slice(None) if place == UNKNOWN else slice(place, place + 1)
        share = float(self.active[of].sum() / self.present[of].sum())
        return min(1.0, share * DAYS / open_days)
