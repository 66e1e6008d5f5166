"""Users: agents with work to do and a behaviour that decides when to submit the next piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mesa

from environment.simulation import Simulation

if TYPE_CHECKING:
    import networkx as nx

    from agents.work import Work


class User(mesa.Agent):  # type: ignore[misc]
    """One user of the cluster.

    Parameters
    ----------
    model
        The simulation.
    number
        The user's number.
    behaviour
        Decides when work is submitted; may be shared by many users.

    Attributes
    ----------
    submitted, finished
        How many units of work were submitted so far, and how many are over.
    """

    model: Simulation

    def __init__(self, model: Simulation, number: int, behaviour: Behaviour[User]) -> None:
        super().__init__(model)
        self.number = number
        self.behaviour = behaviour
        self.submitted = 0
        self.finished = 0

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.number}, {type(self.behaviour).__name__}: "
            f"{self.submitted} submitted, {self.finished} over>"
        )

    def on_finished(self, unit: int, now: int) -> None:
        """Hear that all jobs of a unit are over."""
        self.finished += 1
        self.behaviour.finished(self, unit, now)


class ReplayUser(User):
    """A user of a recorded trace, whose units of work are its recorded sessions.

    Parameters
    ----------
    model, number, behaviour
        See :class:`User`.
    work
        The recorded sessions of all users and their dependencies.
    sessions
        Which of them are this user's.
    """

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[ReplayUser],
        work: Work,
        sessions: range,
    ) -> None:
        super().__init__(model, number, behaviour)
        self.work = work
        self.sessions = sessions
        self._submit_unit = model.cluster.engine.submit_unit

    def submit(self, session: int, at: int) -> None:
        """Submit a session: its first job at second ``at``, the others as far apart as recorded."""
        self.submitted += 1
        self._submit_unit(session, at)

    def graph(self) -> nx.DiGraph[int]:
        """Return the dependency graph of the user's sessions, :func:`agents.graph.user_graph`."""
        from agents.graph import user_graph

        return user_graph(self.model.jobs, self.work.sessions, self.work.dependencies, self.number)


class Behaviour[U: User]:
    """A submission policy. Subclass it and write :meth:`begin` and, to react, :meth:`finished`."""

    #: False when nothing that happens in the cluster matters: nobody is told then.
    reacts = True

    def begin(self, user: U) -> None:
        """Submit the first work; called once for each user before time begins to run."""
        raise NotImplementedError(f"{type(self).__name__} has to define begin()")

    def finished(self, user: U, unit: int, now: int) -> None:
        """React to the end of the last job of ``unit``."""
