"""Users of a site, whose work is made of jobs that were recorded there."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.agents.behaviours.decisions import Why
from hpcrowd.agents.behaviours.user import Behaviour
from hpcrowd.agents.generative.empirical import Habits, draw, place_of
from hpcrowd.agents.generative.generated import GeneratedUser
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation


#: Columns that a job has in common with the recorded one that it repeats.
COPIED = (
    Column.EXECUTABLE,
    Column.QUEUE,
    Column.PROCESSORS,
    Column.RUN_TIME,
    Column.REQUESTED_TIME,
)


class Doing(StrEnum):
    """What a user does."""

    ASLEEP = "asleep"  #: absent, or gone
    WAITING = "waiting"  #: for the jobs of its batch
    THINKING = "thinking"  #: for a think time or a break


class SiteUser(GeneratedUser):
    """A user who submits batches of jobs from the record of a site.

    Parameters
    ----------
    model, number, behaviour, group, horizon
        See :class:`~hpcrowd.agents.generative.generated.GeneratedUser`.
    habits
        What it draws from.
    wakes
        s; when it is first awake.
    like
        Number of the recorded user that it draws like; its own unless given.

    Attributes
    ----------
    state
        What it does.
    until
        s; when its think time, break or sleep ends; -1 while it waits, and when it has gone.
    think, pauses, gaps, widths, repeats, own_jobs
        What it draws from, see :class:`~hpcrowd.agents.generative.empirical.Habits`.
    attendance
        Probability to come on one of its days.
    turn
        s after local midnight at which its days begin.
    day
        The day on which it came last, counted from a Monday; -1 none.
    batch
        Rows of the jobs that it submitted last.
    """

    unasked = Why.FIRST

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[GeneratedUser],
        habits: Habits,
        *,
        group: int = UNKNOWN,
        horizon: int,
        wakes: int = 0,
        like: int | None = None,
    ) -> None:
        super().__init__(model, number, behaviour, group=group, horizon=horizon)
        self.wakes = wakes
        self.state = Doing.ASLEEP
        self.until = UNKNOWN
        self.like = number if like is None else like
        place = place_of(self.like, habits.users)
        self.think = habits.think.of(place)
        self.pauses = habits.pauses.of(place)
        self.gaps = habits.gaps.of(place)
        self.widths = habits.widths.of(place)
        self.repeats = habits.repeats.of(place)
        self.own_jobs = habits.jobs_of(self.like, group)
        self.attendance = 1.0
        self.turn = 0
        self.day = UNKNOWN
        self._job, self._left = UNKNOWN, 0
        self.batch = slice(0, 0)

    def day_of(self, second: int) -> int:
        """Return the day of a second, counted from a Monday; days begin at :attr:`turn`."""
        return (self.model.clock.wall(second) - self.turn) // DAY

    def begin_of_day(self, day: int) -> int:
        """Return the second at which a day begins."""
        return self.model.clock.second_at(day * DAY + self.turn)

    def next_jobs(self, count: int) -> list[int]:
        """Return the next ``count`` jobs of the user, rows of the record.

        A job comes as often in succession as drawn, also over several batches.
        """
        jobs: list[int] = []
        while len(jobs) < count:
            if not self._left:
                self._job = draw(self.own_jobs, self.stream)
                self._left = draw(self.repeats, self.stream)
            times = min(self._left, count - len(jobs))
            self._left -= times
            jobs += [self._job] * times
        return jobs

    def next_batch(self, now: int) -> tuple[list[int], list[int]]:
        """Return the jobs of the next batch, rows of the record, and when each is submitted, s.

        What would be submitted at the horizon or later is left out.
        """
        count = draw(self.widths, self.stream)
        jobs, at = self.next_jobs(count), [now]
        for _ in range(count - 1):
            at.append(at[-1] + (draw(self.gaps, self.stream) if self.gaps else 0))
        if at[-1] >= self.horizon:
            at = [second for second in at if second < self.horizon]
        return jobs[: len(at)], at

    def submit_batch(
        self, record: Int64s, jobs: Sequence[int], at: Sequence[int], after: int | None = None
    ) -> int:
        """Submit copies of recorded jobs as one unit and return its number.

        Parameters
        ----------
        record
            The columns :data:`COPIED` of the record, shape (recorded jobs, columns).
        jobs
            Rows of the record.
        at
            s, one per job.
        after
            The unit whose end made the user submit this one.
        """
        table, count = self.model.jobs, len(jobs)
        first = len(table)
        number = 1 + (int(table.number[-1]) if first else 0)
        rows = table.append(
            count, number=np.arange(number, number + count), user=self.number, group=self.group
        )
        table.matrix[COPIED, first : first + count] = record[jobs].T
        self.batch = slice(first, first + count)
        return self.hand_in(rows, at, after)
