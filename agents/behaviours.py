"""Behaviours of users who replay a recorded trace.

:class:`Rigid` keeps the recorded submissions. :class:`ThinkTime` keeps the think times instead
(Madon et al. 2024, section 4): users wait for what they waited for, and submit earlier or later as
the cluster is faster or slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agents.user import Behaviour, ReplayUser

if TYPE_CHECKING:
    from agents.work import Work


class Rigid(Behaviour[ReplayUser]):
    """Submit every job at its recorded second (Madon et al. 2024, Definition 8)."""

    reacts = False

    def begin(self, user: ReplayUser) -> None:
        """Submit everything."""
        sessions = user.work.sessions
        first, last = user.sessions.start, user.sessions.stop
        rows = sessions.rows[sessions.session_first[first] : sessions.session_first[last]]
        user.submitted = len(user.sessions)
        user.model.cluster.submit(rows, user.model.jobs.recorded_submit[rows])


class ThinkTime(Behaviour[ReplayUser]):
    """Start a session its think time after the sessions it depends on are over.

    Sessions that depend on none start at their recorded second. A session with several
    predecessors starts when the think time after each of them has passed. Inside a session jobs
    are as far apart as recorded (Madon et al. 2024, section 4.2).

    Parameters
    ----------
    work
        The sessions and their dependencies.
    """

    def __init__(self, work: Work) -> None:
        dependencies = work.dependencies
        # Views that yield plain integers: several times faster to index than arrays.
        self._first = memoryview(dependencies.first)
        self._successor = memoryview(dependencies.successor)
        self._think = memoryview(dependencies.think)
        self._missing = memoryview(dependencies.count.copy())
        free = dependencies.count == 0
        self._free = np.flatnonzero(free)
        self._earliest = memoryview(np.where(free, work.sessions.start, 0))

    def begin(self, user: ReplayUser) -> None:
        """Submit the sessions that wait for none."""
        first, last = np.searchsorted(self._free, (user.sessions.start, user.sessions.stop))
        for session in self._free[first:last].tolist():
            user.submit(session, self._earliest[session])

    def finished(self, user: ReplayUser, session: int, now: int) -> None:
        """Submit the sessions that waited for this one last."""
        missing, earliest = self._missing, self._earliest
        for edge in range(self._first[session], self._first[session + 1]):
            after = self._successor[edge]
            ready = now + self._think[edge]
            if ready > earliest[after]:
                earliest[after] = ready
            missing[after] -= 1
            if not missing[after]:
                user.submit(after, earliest[after])
