"""Who of the users of a record replays it, and who makes up work of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.behaviours.hooks import note_generating
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.generative.generated import GeneratedUser, Generating
from hpcrowd.agents.populations.mixture import Mixture, Part
from hpcrowd.agents.populations.population import add_users, maker_of
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams

#: A name of a preset, or what makes a behaviour from the recorded work.
Maker = str | Callable[..., Any]


@dataclass(frozen=True)
class Casting:
    """The users of a run before it begins, and the table of jobs that it begins with.

    Attributes
    ----------
    record
        The recorded work of all users.
    rows
        Recorded jobs that are replayed, rows in the table of the record.
    jobs
        The table to simulate: the replayed jobs; users who generate add theirs to it.
    replayed
        The work of those who replay, in ``jobs``; None where nobody does.
    behaviour
        Of those who replay; None where nobody does.
    generating
        Behaviours of those who generate, each with the places of its users in the record.
    """

    record: Work
    rows: Int64s
    jobs: JobTable
    replayed: Work | None
    behaviour: Maker | Mixture | None
    generating: tuple[tuple[Generating, Int64s], ...] = ()

    @classmethod
    def of(cls, work: Work, behaviour: Maker | Mixture, streams: Streams) -> Casting:
        """Decide who does what.

        A maker with an attribute ``generates`` that is true makes a
        :class:`~hpcrowd.agents.generative.generated.Generating`.

        Parameters
        ----------
        work
            The record.
        behaviour
            See :func:`hpcrowd.agents.populations.population.add_users`.
        streams
            Of the run: a mixture draws from them.

        Raises
        ------
        QuantityError
            When a behaviour is not known.
        """
        sessions = work.sessions
        if isinstance(behaviour, Mixture):
            makers = [part.behaviour for part in behaviour.parts]
        else:
            makers = [behaviour]
        generates = np.array([getattr(maker_of(maker), "generates", False) for maker in makers])
        if not generates.any():
            return cls(work, np.arange(len(work.jobs)), work.jobs, work, behaviour)
        assigned = (
            behaviour.assign(work, streams)
            if isinstance(behaviour, Mixture)
            else np.zeros(len(sessions.users), np.int64)
        )
        generating = tuple(
            (cast(Generating, maker_of(makers[which])(work)), np.flatnonzero(assigned == which))
            for which in np.flatnonzero(generates).tolist()
        )
        per_user = np.diff(sessions.session_first[sessions.user_first])
        rows = np.sort(sessions.rows[np.repeat(~generates[assigned], per_user)])
        jobs = work.jobs.take(rows)
        parts = [
            Part(makers[which], users=sessions.users[assigned == which].tolist())
            for which in np.flatnonzero(~generates).tolist()
            if (assigned == which).any()
        ]
        if not parts:
            return cls(work, rows, jobs, None, None, generating)
        chains = None if work.chains is None else work.chains.take(rows)
        replayed = Work.of(jobs, sessions.definition, chains)
        return cls(work, rows, jobs, replayed, Mixture(parts), generating)

    def join(
        self, model: Simulation, *, compiled: bool = False, log: DecisionLog | None = None
    ) -> tuple[list[ReplayUser], list[GeneratedUser]]:
        """Put all users into the model and let each begin; return those who replay, and the others.

        Parameters
        ----------
        model
            The simulation, over :attr:`jobs`.
        compiled, log
            See :func:`hpcrowd.agents.populations.population.add_users`.

        Raises
        ------
        QuantityError
            When the behaviour cannot be compiled.
        """
        if compiled and self.generating:
            raise QuantityError(
                "compiled users: who generates its work cannot run compiled; leave out "
                "compiled=True"
            )
        replaying: list[ReplayUser] = []
        if self.replayed is not None and self.behaviour is not None:
            replaying = add_users(model, self.replayed, self.behaviour, compiled=compiled, log=log)
        generated = [
            behaviour.join(model, place)
            for behaviour, places in self.generating
            for place in places.tolist()
        ]
        if log is not None:
            note_generating(log, generated)
        for user in generated:
            user.behaviour.begin(user)
        return replaying, generated


def units_after(model: Simulation, users: list[GeneratedUser]) -> Int64s:
    """Return the unit that made a user submit each unit, shape (units,), -1 none."""
    after = np.full(len(model.units), UNKNOWN)
    for user in users:
        for unit, before in user.after.items():
            after[unit] = before
    return after
