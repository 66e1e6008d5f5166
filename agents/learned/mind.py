"""The minds of users who follow a learned model: what they remember, notice and decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.learned.kernel import (
    CHANCES,
    NOTICED,
    SLOTS,
    begin,
    chances_of,
    draw_pause,
    note,
    notice,
)
from hpcrowd.agents.learned.recorded import SIMULATED

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import Floats, LearnedModel
    from hpcrowd.environment.jobs import Int64s, JobTable


class Minds:
    """The minds of the users of a simulation, by number.

    Parameters
    ----------
    model
        The model that they follow.
    """

    def __init__(self, model: LearnedModel) -> None:
        self.model = model
        self.features = np.zeros(NOTICED)
        self._forest = model.forest
        most = int(model.forest.size.max())
        self._pauses, self._active = np.zeros(most, np.int64), np.zeros(most)
        self._memories: dict[int, Floats] = {}

    def knows(self, number: int) -> bool:
        """Return whether a user has a memory already."""
        return number in self._memories

    def memory(self, number: int) -> Floats:
        """Return what a user remembers, shape (slots,)."""
        found = self._memories.get(number)
        if found is None:
            found = self._memories[number] = np.zeros(SLOTS)
            begin(found)
        return found

    def note(
        self, number: int, reason: int, released: int, first: int, last: int, wall: int
    ) -> None:
        """Remember a submission.

        Parameters
        ----------
        number
            Number of the user.
        reason, released
            What released the unit, see :data:`~hpcrowd.agents.learned.recorded.ENDED`, and when, s.
        first, last
            s; its first and last submission.
        wall
            Local time of the first one, s since a Monday, 00:00.
        """
        note(self.memory(number), reason, released, first, last, wall)

    def notice(
        self,
        number: int,
        jobs: JobTable,
        rows: Int64s,
        before: int,
        ended: int,
        at: int,
        wall: int,
        still_open: int,
    ) -> None:
        """Look around, before :meth:`pause` or :meth:`chances`.

        Parameters
        ----------
        number
            Number of the user.
        jobs, rows
            The jobs, and those of the unit that has ended, or else was submitted last.
        before
            Number of jobs of the unit submitted last.
        ended
            1 if the unit has ended, 0 if not.
        at, wall
            When, s; and its local time, s since a Monday, 00:00.
        still_open
            Units of the user that are not over.
        """
        forest = self._forest
        notice(
            self.features, self.memory(number), forest.common, forest.prior, jobs.matrix, rows,
            SIMULATED, before, ended, at, wall, still_open,
        )  # fmt: skip

    def pause(self, number: int, wall: int, stream: np.random.Generator) -> int:
        """Draw a pause for what was noticed last, s."""
        chances = stream.random(CHANCES)
        return int(
            draw_pause(
                self._forest, self.features, self.memory(number), wall, chances, self._pauses,
                self._active,
            )
        )  # fmt: skip

    def chances(self) -> tuple[float, float]:
        """Return the chances to wait for the unit just submitted, and to submit such a one next."""
        waits, again = chances_of(self.model.choices, self.features)
        return waits, again
