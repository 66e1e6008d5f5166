"""The recorded work of all users of a trace: sessions and their dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcrowd.agents.work.graph import Chains, Dependencies, chain_dependencies, find_dependencies
from hpcrowd.agents.work.sessions import SessionDefinition, Sessions, find_sessions
from hpcrowd.agents.work.units import Units, batch_units
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.traces.trace import Conversions, Trace


@dataclass
class Work:
    """The recorded work of the users of a trace: sessions, batches and their dependencies.

    Attributes
    ----------
    jobs
        The table of jobs.
    sessions
        Sessions and batches of all users.
    chains
        The job that each job follows, if known and sessions are separated by ``preceding``.
    """

    jobs: JobTable
    sessions: Sessions
    chains: Chains | None = None

    def __repr__(self) -> str:
        return f"<Work of {self.sessions!r}>"

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        definition: SessionDefinition | str | None = None,
        chains: Chains | None = None,
    ) -> Work:
        """Find the sessions in a table of jobs; see :func:`agents.work.sessions.find_sessions`.

        Parameters
        ----------
        jobs
            The table.
        definition
            The definition of sessions.
        chains
            The job that each job follows; needed with the definition ``preceding``, and only then.

        Raises
        ------
        QuantityError
            If only one of the two is given, or jobs cannot follow as given.
        """
        if isinstance(definition, str):
            definition = SessionDefinition.parse(definition)
        known = definition is not None and definition.kind == "preceding"
        if known and chains is None:
            raise QuantityError(
                "sessions preceding: the preceding jobs are not known here; choose another "
                "definition, for example arrival:60m"
            )
        if chains is not None:
            if not known:
                raise QuantityError(f"sessions {definition}: chains need the definition preceding")
            chains.check(jobs)
        return cls(jobs, find_sessions(jobs, definition), chains)

    @classmethod
    def recorded(
        cls,
        trace: Trace,
        converted: Conversions,
        definition: SessionDefinition,
        *,
        strict: bool = False,
    ) -> Work:
        """Find the sessions of a trace; preceding jobs are used only with ``preceding``.

        Parameters
        ----------
        trace
            What was recorded.
        converted
            The jobs made from it; repairs of preceding jobs are added to its repairs.
        definition
            How sessions are separated.
        strict
            Make the first repair an error.

        Raises
        ------
        TraceError
            As :meth:`hpcrowd.agents.work.graph.Chains.of`.
        """
        if definition.kind != "preceding":
            return cls.of(converted.jobs, definition)
        chains = Chains.of(trace, converted, strict=strict)
        converted.repaired.update(chains.repaired)
        return cls.of(converted.jobs, definition, chains)

    @cached_property
    def last_submission(self) -> int:
        """The last recorded submission, s."""
        return int(self.jobs.recorded_submit.max())

    @cached_property
    def dependencies(self) -> Dependencies:
        """The dependencies of the sessions, computed at first use."""
        if self.chains is not None:
            return chain_dependencies(self.jobs, self.sessions, self.chains)
        return find_dependencies(self.sessions)

    @cached_property
    def by_session(self) -> Units:
        """Sessions as units of work (Madon et al. 2024, Definition 5)."""
        sessions = self.sessions
        return Units(
            jobs=self.jobs,
            rows=sessions.rows,
            first=sessions.session_first,
            users=sessions.users,
            user_first=sessions.user_first,
            session=np.arange(len(sessions)),
            dependencies=self.dependencies,
        )

    @cached_property
    def by_batch(self) -> Units:
        """Batches as units of work, :func:`hpcrowd.agents.work.units.batch_units`.

        Raises
        ------
        QuantityError
            If single jobs follow each other.
        """
        if self.chains is not None:
            raise QuantityError(
                "sessions preceding: single jobs follow each other, there are no batches; choose "
                "users think-time, think-time-windows or rigid"
            )
        in_order = find_dependencies(self.sessions, in_order=True)
        return batch_units(self.jobs, self.sessions, in_order)
