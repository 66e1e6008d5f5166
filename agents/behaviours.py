"""Behaviours of users who replay a recorded trace, ready to be used or to be subclassed.

:class:`Rigid` keeps the recorded submissions. :class:`ThinkTime` keeps the think times instead
(Madon et al. 2024, section 4): users wait for what they waited for, and submit earlier or later as
the cluster is faster or slower. All others are put together from parts in :mod:`agents.presets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.composed import Composed
from agents.user import Behaviour, ReplayUser
from agents.when import SessionGraph

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
        user.site.submit(rows, user.model.jobs.recorded_submit[rows])


class ThinkTime(Composed):
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
        super().__init__(SessionGraph(work))
