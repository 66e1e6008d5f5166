"""The minds of users who follow a learned model: what they remember, notice and decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.learned.features import ENDED, FOLLOWS, NOTHING
from hpcrowd.agents.learned.heldout import Releases, recorded_releases
from hpcrowd.agents.learned.kernel import (
    CHANCES,
    NOTICED,
    WEEKEND,
    ChoiceForest,
    Jobs,
    Memory,
    PauseForest,
    Rhythm,
    Units,
    notice,
)
from hpcrowd.agents.learned.trees import HOURS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel


Floats = NDArray[np.float64]

#: Most draws of a pause that is known not to be longer; then it is as long as it may be.
TRIES = 20

#: Columns of submission, start and end, recorded and simulated.
RECORDED = (int(Column.RECORDED_SUBMIT), int(Column.RECORDED_START), int(Column.RECORDED_END))
SIMULATED = (int(Column.SUBMIT), int(Column.START), int(Column.END))


@dataclass(frozen=True)
class Noticed:
    """What users noticed at the releases of a record.

    Attributes
    ----------
    features
        Shape (units, features); rows of units that nothing released mean nothing.
    memory
        What the user of each unit remembered at its release, None where nothing released it.
    after
        What it noticed when it had submitted each unit, shape (units, features).
    releases
        The recorded releases.
    user
        Index of the user of each unit, shape (units,).
    wall
        Local time of each release, s since a Monday, 00:00, shape (units,).
    """

    features: Floats
    memory: list[Memory]
    after: Floats
    releases: Releases
    user: Int64s
    wall: Int64s

    @classmethod
    def of(cls, work: Work, clock: Clock, common: Floats, prior: float) -> Noticed:
        """Let all users live through the record.

        Parameters
        ----------
        work
            The record; its batches are the units.
        clock
            Local time.
        common, prior
            The rhythm of everybody, and its weight, see
            :class:`~hpcrowd.agents.learned.model.LearnedModel`.
        """
        units = work.by_batch
        releases = recorded_releases(BatchOrder(work))
        count = len(units)
        reason = np.full(count, NOTHING)
        reason[releases.reason == Reason.ENDED] = ENDED
        reason[releases.reason == Reason.FOLLOWS] = FOLLOWS
        source = np.arange(count) - 1
        waited = (reason == ENDED) & (releases.awaited != UNKNOWN)
        source[waited] = releases.awaited[waited]
        wall = clock.walls(releases.at)
        columns = (
            releases.at, reason, source, units.start, units.last, units.end, wall,
            clock.walls(units.start), clock.walls(units.last),
        )  # fmt: skip
        features, after = np.zeros((count, NOTICED)), np.zeros((count, NOTICED))
        memory: list[Any] = [None] * count
        jobs, rhythm = jobs_seen(work.jobs, RECORDED), Rhythm(common, prior)
        recorded = Units(columns, units.rows, units.first, features, after)
        for low, high in zip(
            units.user_first[:-1].tolist(), units.user_first[1:].tolist(), strict=True
        ):
            recorded.walk(memory, rhythm, jobs, low, high)
        return cls(features, memory, after, releases, units.user, wall)

    @property
    def released(self) -> Int64s:
        """The units that something released."""
        return np.flatnonzero(self.releases.reason != Reason.START)

    def lift(self, common: Floats, prior: float, rows: Int64s) -> Floats:
        """Return how active users were at the ends of some pauses, relative to their begins."""
        found, rhythm = np.zeros(len(rows)), Rhythm(common, prior)
        for place, row in enumerate(rows.tolist()):
            memory, wall = self.memory[row], int(self.wall[row])
            now = memory.activity(rhythm, wall)
            pause = int(self.releases.pause[row])
            found[place] = memory.activity(rhythm, wall + pause) / now
        return found


def jobs_seen(jobs: JobTable, times: tuple[int, int, int]) -> Jobs:
    """Return what users see of a table, with its columns of submission, start and end."""
    columns = (Column.PROCESSORS, Column.REQUESTED_TIME, *times)
    return Jobs(*(jobs.matrix[column] for column in columns))


def rhythm_of(work: Work, clock: Clock) -> Floats:
    """Return the hours in which batches of a record were submitted, mean 1, shape (hours,).

    Hours of weekdays come first, then those of the weekend; per day, so that both are alike.
    """
    walls = clock.walls(work.by_batch.start)
    weekend = (walls // DAY) % 7 >= 5
    hour = walls // HOUR % 24 + 24 * weekend
    counts = np.bincount(hour, minlength=HOURS).astype(np.float64) + 1
    counts[24:] *= WEEKEND
    return counts / counts.mean()


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
            What released the unit, see :data:`~hpcrowd.agents.learned.features.ENDED`, and when, s.
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

    def pause_within(self, number: int, wall: int, stream: np.random.Generator, most: int) -> int:
        """Draw a pause of at most ``most`` s, given that it is that short."""
        for _ in range(TRIES):
            if (pause := self.pause(number, wall, stream)) <= most:
                return pause
        return most

    def chances(self) -> tuple[float, float]:
        """Return the chances to wait for the unit just submitted, and to submit such a one next."""
        return self._choices.chances(self.features)
