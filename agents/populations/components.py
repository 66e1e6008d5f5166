"""The pool of a trace: the work of each of its users, to be used again.

A *component* is the work of one user: its sessions or batches, what each waited for, and its time,
counted from the Monday before the first submission of the trace. Users are *long-term* if they were
present for more than half of the log, else *temporary*. Users with activity only at the very
beginning or end of the log are dropped, since most of their work lies outside the log.

Source: resampling with feedback, Zakay and Feitelson (ICPE 2013; CCPE 26(12), 2014; SYSTOR 2016).
The exact rules were not found: the numbers here are those of a secondary source, and parameters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from hpcrowd.agents.behaviours.profiles import Profiles
from hpcrowd.agents.populations.openness import PoolRules
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.units import Units
from hpcrowd.environment.clock import DAY, WEEK, Clock
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.limits.numbers import MOST_DAYS, check_within

#: Shortest log that users are cut from, s: two weeks, so that some week has one after it.
SHORTEST_LOG = 2 * WEEK

#: Why users are not in the pool.
AT_BEGINNING = "active only at the beginning of the log"
AT_END = "active only at the end of the log"


@dataclass(frozen=True)
class Component:
    """The work of one user.

    Attributes
    ----------
    user, group
        Their numbers in the trace; the group is that of its first job.
    long_term
        Whether the user was present for more than half of the log, see :class:`PoolRules`.
    units
        Its units of work in :attr:`Pool.units`.
    first_week, last_week
        Weeks in which its first and its last unit begin, from 0.
    jobs
        How many.
    """

    user: int
    group: int
    long_term: bool
    units: range
    first_week: int
    last_week: int
    jobs: int

    @property
    def weeks(self) -> int:
        """Calendar weeks from its first to its last unit, both counted."""
        return self.last_week - self.first_week + 1


@dataclass(frozen=True)
class Pool:
    """The components of a trace.

    Attributes
    ----------
    work
        The record.
    units
        The units that users submit: sessions or batches of the record.
    clock
        Local time of a run made from the pool: its second 0 is the Monday, 00:00, at or before the
        first submission of the trace.
    recorded_clock
        Local time of the record.
    weeks
        Calendar weeks from the first to the last submission of the trace, both counted.
    walls
        Local time of the start of each unit, s since that Monday, shape (units,).
    components
        By user number.
    dropped_users, dropped_jobs
        Numbers that are not in the pool, by reason.
    """

    work: Work
    units: Units
    clock: Clock
    recorded_clock: Clock
    weeks: int
    walls: Int64s
    components: tuple[Component, ...]
    dropped_users: Counter[str]
    dropped_jobs: Counter[str]

    @classmethod
    def of(
        cls,
        work: Work,
        clock: Clock,
        rules: PoolRules | None = None,
        *,
        unit: Literal["sessions", "batches"] = "sessions",
        source: str = "trace",
    ) -> Pool:
        """Cut a record into components.

        Parameters
        ----------
        work, clock
            The record and its local time.
        rules
            The rules for users to include.
        unit
            The unit that users submit and wait for.
        source
            Name of the trace, for messages.

        Raises
        ------
        TraceError
            If the trace is shorter than :data:`SHORTEST_LOG`, or too few users are left.
        """
        rules = rules or PoolRules()
        units = work.by_batch if unit == "batches" else work.by_session
        begin, end = int(units.start.min()), int(units.last.max())
        length = end - begin
        if length < SHORTEST_LOG:
            raise TraceError(
                f"{source}: {length / DAY:.1f} days from the first to the last submission; users "
                f"are moved by whole weeks, which needs at least {SHORTEST_LOG // DAY} days: "
                "take a longer trace, or `hpcrowd replay`"
            )
        walls = clock.walls(units.start)
        monday = int(walls.min()) // WEEK * WEEK
        # Where the origin only counts as a Monday it goes on doing so.
        moved = clock
        if not clock.nominal:
            moved = replace(clock, unix_start=clock.unix_start + clock.second_at(monday))
        walls = walls - monday
        first, last = units.user_first[:-1], units.user_first[1:] - 1
        arrived, left = units.start[first], units.last[last]
        # Of units that overlap the last to begin need not be the last to submit.
        left = np.maximum.reduceat(units.last, first)
        latest = np.maximum.reduceat(walls, first)
        jobs = units.first[last + 1] - units.first[first]
        at_beginning = left <= begin + rules.edge * length
        at_end = ~at_beginning & (arrived >= end - rules.edge * length)
        dropped_users, dropped_jobs = Counter[str](), Counter[str]()
        for reason, which in ((AT_BEGINNING, at_beginning), (AT_END, at_end)):
            if which.any():
                dropped_users[reason] = int(which.sum())
                dropped_jobs[reason] = int(jobs[which].sum())
        components = tuple(
            Component(
                user=int(units.users[place]),
                group=int(work.jobs.group[units.rows[units.first[first[place]]]]),
                long_term=bool(left[place] - arrived[place] > rules.long_term * length),
                units=range(int(first[place]), int(last[place]) + 1),
                first_week=int(walls[first[place]]) // WEEK,
                last_week=int(latest[place]) // WEEK,
                jobs=int(jobs[place]),
            )
            for place in np.flatnonzero(~(at_beginning | at_end)).tolist()
        )
        if len(components) < rules.least:
            dropped = ", ".join(f"{count} {why}" for why, count in dropped_users.items())
            raise TraceError(
                f"{source}: a pool of {len(components)} users"
                + (f" (dropped: {dropped})" if dropped else "")
                + f"; at least {rules.least} are needed: take a larger trace"
            )
        # Even two weeks from one Monday to the next but one are two calendar weeks.
        weeks = int(clock.walls(units.last).max() - monday) // WEEK + 1
        final = int(np.argmax(work.jobs.recorded_submit))
        check_within(
            f"job {work.jobs.number[final]} is submitted in week",
            weeks,
            0,
            MOST_DAYS // 7,
            "users are drawn for every week until then; correct or remove it",
        )
        return cls(work, units, moved, clock, weeks, walls, components, dropped_users, dropped_jobs)

    def __repr__(self) -> str:
        return (
            f"<Pool of {len(self.long_term)} long-term and {len(self.temporary)} temporary users, "
            f"{self.weeks} weeks>"
        )

    @cached_property
    def long_term(self) -> tuple[int, ...]:
        """Places of the long-term users in :attr:`components`."""
        return tuple(place for place, one in enumerate(self.components) if one.long_term)

    @cached_property
    def temporary(self) -> tuple[int, ...]:
        """Places of the temporary users in :attr:`components`."""
        return tuple(place for place, one in enumerate(self.components) if not one.long_term)

    @property
    def arrivals_per_week(self) -> float:
        """Temporary users that arrived per week of the log, on average."""
        return len(self.temporary) / self.weeks

    @property
    def jobs(self) -> int:
        """Jobs of all components."""
        return sum(one.jobs for one in self.components)

    @cached_property
    def profiles(self) -> Profiles:
        """Weekly profiles of all users of the record, by user number."""
        return Profiles.fit(self.units, self.recorded_clock)

    def second(self, unit: int, weeks: int, later: int = 0) -> int:
        """Return the second of a run at which a unit, moved by whole weeks, starts.

        Its day of the week and its local time stay, even across clock changes.

        Parameters
        ----------
        unit
            A unit.
        weeks
            How many weeks later; negative for earlier.
        later
            Further shift, s, which changes day and hour; for comparisons.
        """
        wall = int(self.walls[unit]) + weeks * WEEK + later
        return self.clock.second_at(self.clock.wall(0) + wall)
