"""What users noticed in a record: features and memories at each recorded release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.heldout import Releases, recorded_releases
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.learned.features import ENDED, FOLLOWS, NOTHING
from hpcrowd.agents.learned.kernel import NOTICED, WEEKEND, Jobs, Memory, Rhythm, Units
from hpcrowd.agents.learned.trees import HOURS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

Floats = NDArray[np.float64]

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
