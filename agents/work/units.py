"""Units of work that users of a trace submit, and the units that each one waits for.

A unit is a session (Madon et al. 2024) or a batch (Zakay and Feitelson 2015). For every unit this
module knows the units it *depends on*, its think time since the last of them was over, and its
inter-arrival time since the unit before it, which it *follows*, was submitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from hpcrowd.agents.work.graph import Dependencies, find_dependencies
from hpcrowd.agents.work.sessions import Sessions
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable

#: Columns that a job has from the recorded one that it repeats, the last ones moved in time; they
#: stand side by side in tables.
REPEATED = slice(Column.EXECUTABLE, Column.RECORDED_END + 1)

#: How many of them are times that are moved: recorded submission, start and end.
MOVED = 3


@dataclass(frozen=True)
class Units:
    """The units of all users, user by user, in the order of their submission.

    Attributes
    ----------
    jobs
        The table they are found in.
    rows
        Rows in the table of jobs, user by user, by submission, shape (jobs,).
    first
        Unit u is ``rows[first[u]:first[u + 1]]``, shape (units + 1,).
    users
        The users' numbers, ascending, shape (users,).
    user_first
        Which unit each user begins with, and the end, shape (users + 1,).
    session
        The session that each unit is (part of), shape (units,).
    dependencies
        Which unit waits for which, without redundant edges.
    """

    jobs: JobTable
    rows: Int64s
    first: Int64s
    users: Int64s
    user_first: Int64s
    session: Int64s
    dependencies: Dependencies

    def __len__(self) -> int:
        return len(self.session)

    @cached_property
    def start(self) -> Int64s:
        """Recorded first submission of each unit, s, shape (units,)."""
        return self.jobs.recorded_submit[self.rows[self.first[:-1]]]

    @cached_property
    def last(self) -> Int64s:
        """Recorded last submission of each unit, s, shape (units,)."""
        return self.jobs.recorded_submit[self.rows[self.first[1:] - 1]]

    @cached_property
    def end(self) -> Int64s:
        """Recorded end of the last job of each unit to end, s, shape (units,)."""
        end: Int64s = np.maximum.reduceat(self.jobs.recorded_end[self.rows], self.first[:-1])
        return end

    @cached_property
    def edges(self) -> list[int]:
        """:attr:`first` as a list, which is read faster one by one."""
        edges: list[int] = self.first.tolist()
        return edges

    @cached_property
    def repeated(self) -> Int64s:
        """What jobs have from the recorded ones, in the order of :attr:`rows`.

        Shape (jobs, columns of :data:`REPEATED`), so that what belongs to a job stands together.
        """
        return np.ascontiguousarray(self.jobs.matrix[REPEATED, self.rows].T)

    @cached_property
    def successors(self) -> list[list[tuple[int, int]]]:
        """For each unit those that wait for it, with their think times, s."""
        edges = self.dependencies
        after, think = edges.successor.tolist(), edges.think.tolist()
        return [
            list(zip(after[a:b], think[a:b], strict=True))
            for a, b in pairwise(edges.first.tolist())
        ]

    @cached_property
    def user(self) -> Int64s:
        """Place of each unit's user among all users, shape (units,)."""
        return np.repeat(np.arange(len(self.user_first) - 1), np.diff(self.user_first))

    @cached_property
    def response(self) -> Int64s:
        """Recorded response time of the job of each unit that ended last, s, shape (units,)."""
        unit = np.repeat(np.arange(len(self)), np.diff(self.first))
        end = self.jobs.recorded_end[self.rows]
        order = np.lexsort((np.arange(len(end)), end, unit))
        decisive = self.rows[order[self.first[1:] - 1]]
        response: Int64s = self.jobs.recorded_end[decisive] - self.jobs.recorded_submit[decisive]
        return response

    @cached_property
    def awaited(self) -> Int64s:
        """Of the units that each unit depends on, the one that ended last, -1 none, (units,)."""
        edges = self.dependencies
        awaited = np.full(len(self), UNKNOWN)
        predecessor = edges.predecessor
        order = np.lexsort((predecessor, self.end[predecessor], edges.successor))
        awaited[edges.successor[order]] = predecessor[order]  # the last one written stays
        return awaited

    @cached_property
    def think_time(self) -> Int64s:
        """Start minus the latest end of its dependencies, s; -1 without any, shape (units,)."""
        waits = self.awaited >= 0
        think: Int64s = np.where(waits, self.start - self.end[self.awaited], UNKNOWN)
        return think

    @cached_property
    def inter_arrival(self) -> Int64s:
        """Start minus the last submission of the user's unit before, s; -1 if first, (units,)."""
        gap = np.full(len(self), UNKNOWN)
        gap[1:] = self.start[1:] - self.last[:-1]
        gap[self.user_first[:-1]] = UNKNOWN
        return gap

    @cached_property
    def continues(self) -> Int64s:
        """1 if a unit continues the session of the unit before, else 0, shape (units,)."""
        inside = np.zeros(len(self), np.int64)
        inside[1:] = self.session[1:] == self.session[:-1]
        return inside


def batch_units(jobs: JobTable, sessions: Sessions, dependencies: Dependencies) -> Units:
    """Return the batches as units, with the dependencies of Zakay and Feitelson 2015.

    A batch depends on the one before in its session; the first batch of a session depends on the
    last one of each session that had ended before (Definition 12). Sessions that another session
    in between waits for are left out, as in :func:`find_dependencies`: their batches
    are always over earlier. The think time on each edge is that of the batch that waits.

    Where sessions are separated by ``last``, a batch may begin before the one before it has ended.
    Then it depends on those of its session that had ended, and who waits for a session waits for
    all batches of it that no other one waits for. For other definitions that is the same.

    Parameters
    ----------
    jobs, sessions
        The table and its sessions.
    dependencies
        Of the sessions.
    """
    batches = sessions.batches
    first_batch = np.searchsorted(sessions.batch_first[:-1], sessions.session_first)
    session = np.repeat(np.arange(len(sessions)), np.diff(first_batch))
    inside = _inside_sessions(jobs, sessions, first_batch)
    awaited_last = np.flatnonzero(np.diff(inside.first) == 0)  # in their sessions
    first_last = np.searchsorted(awaited_last, first_batch)
    count = np.diff(first_last)[dependencies.predecessor]
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    between = np.repeat(first_last[dependencies.predecessor], count) + place
    predecessor = np.concatenate([inside.predecessor, awaited_last[between]])
    successor = np.concatenate(
        [inside.successor, np.repeat(first_batch[dependencies.successor], count)]
    )
    order = np.lexsort((successor, predecessor))
    predecessor, successor = predecessor[order], successor[order]
    count = np.bincount(successor, minlength=batches)
    found = Units(
        jobs=jobs,
        rows=sessions.rows,
        first=sessions.batch_first,
        users=sessions.users,
        user_first=first_batch[sessions.user_first],
        session=session,
        dependencies=Dependencies(
            first=np.searchsorted(predecessor, np.arange(batches + 1)),
            successor=successor,
            think=np.zeros(len(successor), np.int64),
            count=count,
        ),
    )
    found.dependencies.think[:] = found.think_time[successor]
    return found


def _inside_sessions(jobs: JobTable, sessions: Sessions, first_batch: Int64s) -> Dependencies:
    """Return which batch waits for which inside each session, without redundant edges."""
    first = sessions.batch_first[:-1]
    pieces = replace(
        sessions,
        session_first=sessions.batch_first,
        user_first=first_batch,
        users=np.arange(len(sessions)),
        start=jobs.recorded_submit[sessions.rows[first]],
        end=np.maximum.reduceat(jobs.recorded_end[sessions.rows], first),
    )
    return find_dependencies(pieces, in_order=True)
