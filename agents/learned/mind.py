"""The minds of users who follow a learned model: what they remember, notice and decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.learned.kernel import (
    CHANCES,
    NOTICED,
    ChoiceForest,
    Jobs,
    Memory,
    PauseForest,
    notice,
)
from hpcrowd.agents.learned.recorded import SIMULATED, jobs_seen

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
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
        self._forest = PauseForest(model.forest)
        self._choices = ChoiceForest(model.choices)
        self._memories: dict[int, Memory] = {}
        self._matrix: object = None
        self._jobs: Jobs | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the columns of a table, which are another table's in a copy."""
        return self.__dict__ | {"_matrix": None, "_jobs": None}

    def knows(self, number: int) -> bool:
        """Return whether a user has a memory already."""
        return number in self._memories

    def memory(self, number: int) -> Memory:
        """Return what a user remembers."""
        found = self._memories.get(number)
        if found is None:
            found = self._memories[number] = Memory()
        return found

    def _seen(self, jobs: JobTable) -> Jobs:
        """Return the columns that users look at; the table has new ones when it has grown."""
        if self._jobs is None or self._matrix is not jobs.matrix:
            self._matrix, self._jobs = jobs.matrix, jobs_seen(jobs, SIMULATED)
        return self._jobs

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
        self.memory(number).note(reason, released, first, last, wall)

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
        notice(
            self.features, self.memory(number), self._forest.rhythm, self._seen(jobs), rows, before,
            bool(ended), at, wall, still_open,
        )  # fmt: skip

    def pause(self, number: int, wall: int, stream: np.random.Generator) -> int:
        """Draw a pause for what was noticed last, s."""
        return self._forest.draw(self.features, self.memory(number), wall, stream.random(CHANCES))

    def chances(self) -> tuple[float, float]:
        """Return the chances to wait for the unit just submitted, and to submit such a one next."""
        return self._choices.chances(self.features)
