"""Habits of users in a record, as empirical distributions to draw from.

========= ========================================================================================
think     s from the end of a batch to the next batch of the session
pauses    s from the end of a batch to the next session, where that is a break and not an absence
gaps      s between two submissions of a batch
widths    jobs of a batch
repeats   number of consecutive repetitions of the same job
jobs      rows of the recorded jobs
========= ========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.agents.behaviours.think import LONGEST_BREAK
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable

#: Longest gap, s, within a batch that reflects typing speed; as in simulators of the model (the
#: distribution of gaps in STARS ends there).
LONGEST_GAP = HOUR


def draw(values: Sequence[int], stream: np.random.Generator) -> int:
    """Return one of ``values``, each as likely as any other."""
    return values[int(stream.random() * len(values))]


class Empirical:
    """Recorded values with the users who made them; all are equally likely.

    Parameters
    ----------
    values
        Shape (values,).
    owner
        Index of the user who made each value, ascending, shape (values,); None for no owners.
    least
        A user with at least this many values has their own distribution, otherwise that of all
        users; None for always that of all users.

    Raises
    ------
    QuantityError
        If ``least`` is less than 1.
    """

    def __init__(
        self, values: ArrayLike, owner: Int64s | None = None, least: int | None = None
    ) -> None:
        if least is not None and least < 1:
            raise QuantityError(f"least {least}: must be 1 value or more")
        self.values: Int64s = np.ascontiguousarray(values, np.int64)
        self.owner = np.full(len(self.values), UNKNOWN) if owner is None else owner
        self.least = least

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} values>"

    def of(self, place: int) -> Sequence[int]:
        """Return the values for the user at an index; index -1 for a user without a record."""
        first = last = 0
        if self.least is not None and place != UNKNOWN:
            first, last = np.searchsorted(self.owner, (place, place + 1)).tolist()
        if last - first < (self.least or 1):
            first, last = 0, len(self.values)
        # A view that yields plain integers: several times faster to index than an array.
        return memoryview(self.values)[first:last]


@dataclass(frozen=True)
class Habits:
    """The habits of the users of a site, from its record.

    Attributes
    ----------
    think
        Think times within sessions, s.
    pauses
        Breaks between sessions, s.
    gaps
        Between the submissions of a batch, s.
    widths
        Jobs of a batch.
    repeats
        Lengths of sequences of the same job.
    table
        The recorded jobs, which users submit again.
    by_user, by_group
        Rows of the table, by place of the user among ``users``, and of the group among ``groups``.
    users, groups
        Numbers, ascending.
    """

    think: Empirical
    pauses: Empirical
    gaps: Empirical
    widths: Empirical
    repeats: Empirical
    table: JobTable
    by_user: Empirical
    by_group: Empirical
    users: Int64s = field(repr=False)
    groups: Int64s = field(repr=False)

    @classmethod
    def fit(
        cls,
        work: Work,
        *,
        longest_break: int = LONGEST_BREAK,
        longest_gap: int | None = LONGEST_GAP,
        least: int | None = None,
    ) -> Habits:
        """Take the distributions from recorded work.

        Pauses count from the end that separates batches in the definition of the sessions: the end
        of the job before (Last), else the latest end of the batches before. Negative ones do not
        count.

        Parameters
        ----------
        work
            The record, cut into sessions and batches.
        longest_break
            s; pauses between sessions are breaks if they are shorter than this and longer than 0.
        longest_gap
            s; gaps inside batches count up to this; None for all.
        least
            See :class:`Empirical`; jobs are the user's own where it has any.

        Raises
        ------
        QuantityError
            If a limit is not positive.
        """
        if longest_break <= 0:
            raise QuantityError(f"longest break {longest_break} s: must be more than 0")
        if longest_gap is not None and longest_gap < 0:
            raise QuantityError(f"longest gap {longest_gap} s: must be 0 or more")
        jobs, sessions = work.jobs, work.sessions
        rows = sessions.rows
        user = np.repeat(
            np.arange(len(sessions.users)),
            np.diff(sessions.session_first[sessions.user_first]),
        )
        begins = sessions.batch_first[1:-1]  # where a batch begins that has one before it
        begins = begins[user[begins] == user[begins - 1]]
        pause = jobs.recorded_submit[rows[begins]] - _end_before(work, begins)
        inside = np.isin(begins, sessions.session_first, invert=True)
        think = inside & (pause >= 0)
        away = ~inside & (pause > 0) & (pause < longest_break)

        gap = np.diff(jobs.recorded_submit[rows])
        same = np.ones(len(rows) - 1, bool)
        same[sessions.batch_first[1:-1] - 1] = False
        if longest_gap is not None:
            same &= gap <= longest_gap
        repeated = runs_of_same_jobs(jobs, rows)

        number = jobs.user[rows]
        group = jobs.group[rows]
        order = np.lexsort((rows, group))
        groups, group_place = np.unique(group[order], return_inverse=True)
        return cls(
            think=Empirical(pause[think], user[begins[think]], least),
            pauses=Empirical(pause[away], user[begins[away]], least),
            gaps=Empirical(gap[same], user[1:][same], least),
            widths=Empirical(np.diff(sessions.batch_first), user[sessions.batch_first[:-1]], least),
            repeats=Empirical(np.diff(repeated), user[repeated[:-1]], least),
            table=jobs,
            by_user=Empirical(rows, user, 1),
            by_group=Empirical(rows[order], group_place, 1),
            users=number[sessions.session_first[sessions.user_first[:-1]]],
            groups=groups,
        )

    def jobs_of(self, number: int, group: int) -> Sequence[int]:
        """Return the rows that a user draws from: its own, else its group's, else all users'."""
        place = place_of(number, self.users)
        if place != UNKNOWN:
            return self.by_user.of(place)
        return self.by_group.of(UNKNOWN if group == UNKNOWN else place_of(group, self.groups))


def place_of(number: int, numbers: Int64s) -> int:
    """Return the index of ``number`` in ascending ``numbers``, -1 if it is not there."""
    place = int(np.searchsorted(numbers, number))
    return place if place < len(numbers) and numbers[place] == number else UNKNOWN


def runs_of_same_jobs(jobs: JobTable, rows: Int64s) -> Int64s:
    """Return where in ``rows`` sequences of the same job begin, and the end.

    Two consecutive jobs of a user are the same if they request the same processors and the same
    time, and have the same executable if both are known.

    Parameters
    ----------
    jobs
        The table.
    rows
        User by user, by submission.
    """
    program = jobs.executable[rows]
    unlike: NDArray[np.bool_] = np.zeros(len(rows) - 1, bool)
    for column in (jobs.user, jobs.processors, jobs.requested_time):
        values = column[rows]
        unlike |= values[1:] != values[:-1]
    known = (program[1:] != UNKNOWN) & (program[:-1] != UNKNOWN)
    unlike |= known & (program[1:] != program[:-1])
    return np.concatenate([[0], np.flatnonzero(unlike) + 1, [len(rows)]]).astype(np.int64)


def _end_before(work: Work, begins: Int64s) -> Int64s:
    """Return the end that the pause before each batch counts from, s; it begins at ``begins``."""
    jobs, sessions = work.jobs, work.sessions
    end = jobs.recorded_end[sessions.rows]
    if sessions.definition.kind == "last":
        return end[begins - 1]
    # The latest end so far of the same user: batches stand user by user.
    batch = np.searchsorted(sessions.batch_first, begins)
    latest = np.maximum.reduceat(end, sessions.batch_first[:-1])
    of_user = np.searchsorted(
        sessions.session_first[sessions.user_first], sessions.batch_first[:-1], side="right"
    )
    low, step = latest.min(), int(np.ptp(latest)) + 1
    latest = np.maximum.accumulate(latest - low + of_user * step) - of_user * step + low
    before: Int64s = latest[batch - 1]
    return before


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
        # Clocks put back at midnight would repeat a day: days only count forward.
        day = np.maximum.accumulate(day - day.min() + user * (np.ptp(day) + 1))
        new[1:] = day[1:] != day[:-1]
        return cls(
            active=np.add.reduceat(new.astype(np.int64), first[:-1]),
            present=day[first[1:] - 1] - day[first[:-1]] + 1,
        )

    def probability(self, place: int, open_days: int) -> float:
        """Return the probability that a user comes on a possible day, to match the recorded days.

        Parameters
        ----------
        place
            Index of the user in the record; -1 for a user without a record, who comes as often as
            all users on average.
        open_days
            Number of days of the week with working hours.
        """
        of = slice(None) if place == UNKNOWN else slice(place, place + 1)
        share = float(self.active[of].sum() / self.present[of].sum())
        return min(1.0, share * DAYS / open_days)
