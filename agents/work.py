"""The recorded work of all users of a trace: sessions, and what each waited for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agents.graph import Dependencies, find_dependencies
from agents.sessions import SessionDefinition, Sessions, find_sessions
from environment.jobs import JobTable


@dataclass
class Work:
    """What the users of a trace did: their sessions, and what each session waited for.

    Attributes
    ----------
    sessions
        Sessions and batches of all users.
    """

    sessions: Sessions

    @classmethod
    def of(cls, jobs: JobTable, definition: SessionDefinition | None = None) -> Work:
        """Find the sessions in a table of jobs; see :func:`agents.sessions.find_sessions`."""
        return cls(find_sessions(jobs, definition))

    @cached_property
    def dependencies(self) -> Dependencies:
        """The dependencies of the sessions, found when first asked for."""
        return find_dependencies(self.sessions)
