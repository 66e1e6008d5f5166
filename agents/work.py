"""The recorded work of all users of a trace: sessions, and what each waited for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agents.graph import Dependencies, find_dependencies
from agents.sessions import SessionDefinition, Sessions, find_sessions
from agents.units import Units, batch_units, session_units
from environment.jobs import JobTable


@dataclass
class Work:
    """What the users of a trace did: their sessions and batches, and what each waited for.

    Attributes
    ----------
    jobs
        The table of jobs.
    sessions
        Sessions and batches of all users.
    """

    jobs: JobTable
    sessions: Sessions

    @classmethod
    def of(cls, jobs: JobTable, definition: SessionDefinition | None = None) -> Work:
        """Find the sessions in a table of jobs; see :func:`agents.sessions.find_sessions`."""
        return cls(jobs, find_sessions(jobs, definition))

    @cached_property
    def dependencies(self) -> Dependencies:
        """The dependencies of the sessions, found when first asked for."""
        return find_dependencies(self.sessions)

    @cached_property
    def by_session(self) -> Units:
        """Sessions as units of work, :func:`agents.units.session_units`."""
        return session_units(self.jobs, self.sessions, self.dependencies)

    @cached_property
    def by_batch(self) -> Units:
        """Batches as units of work, :func:`agents.units.batch_units`."""
        in_order = find_dependencies(self.sessions, in_order=True)
        return batch_units(self.jobs, self.sessions, in_order)
