"""Users: agents with work to do and a behaviour that decides when to submit the next piece."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import DecisionLog, Kind, What, Why, kind_of
from hpcrowd.environment.frame import mesa
from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.quantities import notebook_table
from hpcrowd.environment.registry import Seam
from hpcrowd.environment.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mesa.time import Event

    from hpcrowd.agents.behaviours.hooks import Noting
    from hpcrowd.agents.behaviours.parts import Note
    from hpcrowd.agents.behaviours.user_graph import UserGraph
    from hpcrowd.agents.behaviours.when import Release
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.jobs import Int64s


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
        Numbers of units of work submitted and finished so far.
    notes
        Changes that reactions made to its jobs, see :mod:`hpcrowd.agents.behaviours.reactions`.
    log
        The log of its decisions; None for none.
    after
        The unit that made it submit each unit, by unit, if it generates its work.
    """

    model: Simulation
    after: Mapping[int, int] = MappingProxyType({})

    def __init__(self, model: Simulation, number: int, behaviour: Behaviour[User]) -> None:
        super().__init__(model)
        self.number = number
        self.behaviour = behaviour
        self.submitted = 0
        self.finished = 0
        self.notes: list[Note] = []
        self.log: DecisionLog | None = None
        self._stream: np.random.Generator | None = None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.number}, {type(self.behaviour).__name__}: "
            f"{self.submitted} submitted, {self.finished} over>"
        )

    def _repr_html_(self) -> str:
        """Return a table of what the user does, for notebooks."""
        rows = self._rows()
        states = self.model.jobs.state[rows]
        counts = [
            (f"jobs {state.name.lower()}", f"{count:,}")
            for state in State
            if (count := int((states == state).sum()))
        ]
        told = [
            ("behaviour", repr(self.behaviour)),
            ("units submitted", f"{self.submitted:,}"),
            ("units over", f"{self.finished:,}"),
            ("jobs", f"{len(rows):,}"),
        ]
        return notebook_table(f"user {self.model.jobs.who(self.number)}", [*told, *counts])

    def remove(self) -> None:
        """Leave: submit nothing from now on; what waits or runs goes on.

        Jobs that were still to come are renounced.
        """
        super().remove()
        jobs, rows = self.model.jobs, self._rows()
        to_come = (jobs.submit[rows] == UNKNOWN) | (jobs.submit[rows] > self.model.time)
        left = rows[to_come & (jobs.state[rows] == State.UNFINISHED)]
        self.model.leave_out(left)
        self.behaviour = Gone(self.behaviour.units)

    def _rows(self) -> Int64s:
        """Return the rows of the user's jobs."""
        return np.flatnonzero(self.model.jobs.user == self.number)

    @property
    def stream(self) -> np.random.Generator:
        """The user's own random numbers, ``("user", number)`` of the run."""
        if self._stream is None:
            self._stream = self.model.streams.generator("user", self.number)
        return self._stream

    def on_finished(self, unit: int, now: int) -> None:
        """React to the end of the last job of a unit."""
        self.finished += 1
        self.behaviour.finished(self, unit, now)

    def on_lost(self, rows: Int64s, now: int) -> None:
        """React to running jobs that were stopped and must be submitted again."""
        self.behaviour.lost(self, rows, now)
        # Your own behaviour may decide later when to submit them again.
        again = self.model.jobs.submit[rows].tolist()
        later = [at - now if at >= now else UNKNOWN for at in again]
        self.note_jobs(What.LOST, Why.STOPPED, rows, later)

    def note_jobs(
        self, what: What, why: Why, rows: Int64s, seconds: Iterable[int], name: str = ""
    ) -> None:
        """Note something about single jobs, if there is a log."""
        log, jobs, kind = self.log, self.model.jobs, self._kind
        if log is None:
            return
        units = (jobs.session if kind == Kind.SESSION else jobs.batch)[rows].tolist()
        for unit, job, time in zip(units, jobs.number[rows].tolist(), seconds, strict=True):
            log.note(self.model.time, self.number, what, why, kind, unit, job, time, name)

    @property
    def _kind(self) -> Kind:
        """The kind of its units in the log."""
        return Kind.BATCH


class ReplayUser(User):
    """A user of a recorded trace, whose units of work are its recorded sessions or batches.

    Parameters
    ----------
    model, number, behaviour
        See :class:`User`.
    work
        The recorded work of all users.
    place
        Its index among the users of the trace, from 0.
    offset
        The engine's number of a unit minus its number in ``behaviour.units``.
    site
        The cluster that it submits to, by name, or ``grid``; None for the first cluster.

    Attributes
    ----------
    sessions
        This user's sessions in ``work``.
    units
        This user's units in the record.
    due
        The alarms of units about which reactions decide when they are due.
    leaving
        Its patience with jobs that wait, a ``Leaving``; None if it lets them wait.
    changed_graph
        :attr:`graph`, once it was changed and decides what is released.
    taken_back
        Rows of jobs that were to come and were taken back; their run times are already those of
        the cluster.
    given
        Behaviours that it was given during the run: the second, and the name of each.
    counted
        The units by whose numbers the engine knows its jobs, once it was given a behaviour.
    renumbered
        Its units by the engine's numbers, after it was given a behaviour with other units.
    preceded
        The row of the piece before, by row of a piece of a task that is done one after the other.
    """

    leaving: Any = None
    changed_graph: UserGraph | None = None
    renumbered: dict[int, int] | None = None
    counted: Units | None = None

    def __init__(
        self,
        model: Simulation,
        number: int,
        behaviour: Behaviour[ReplayUser],
        work: Work,
        place: int,
        offset: int = 0,
        site: str | None = None,
    ) -> None:
        super().__init__(model, number, behaviour)
        self.work = work
        self.place = place
        self.offset = offset
        first, last = work.sessions.user_first[place : place + 2].tolist()
        self.sessions = range(first, last)
        self.units = self.sessions
        if behaviour.units is not None:
            self.units = range(*behaviour.units.user_first[place : place + 2].tolist())
        self.site = model.place(site)
        self.due: dict[int, Event] = {}
        self.taken_back: set[int] = set()
        self.given: list[tuple[int, str]] = []
        self.preceded: dict[int, int] = {}
        self._graph: UserGraph | None = None
        self._submit_unit = self.site.submit_unit

    @override
    def _rows(self) -> Int64s:
        sessions = self.work.sessions
        first, last = sessions.session_first[[self.sessions.start, self.sessions.stop]]
        return sessions.rows[first:last]

    @override
    def remove(self) -> None:
        super().remove()
        self.leaving = None

    @property
    def recorded_rows(self) -> Int64s:
        """The rows of its recorded jobs."""
        return self._rows()

    def jobs_of(self, unit: int) -> Int64s:
        """Return the rows of the jobs of a unit, by submission."""
        # Units that were added to the graph are in it, even if it decides no longer.
        return self.recorded_jobs_of(unit) if self._graph is None else self._graph.rows_of(unit)

    def recorded_jobs_of(self, unit: int) -> Int64s:
        """Return the rows of the jobs of a unit of the record, by submission."""
        units = self.behaviour.units or self.work.by_session
        return units.rows[units.first[unit] : units.first[unit + 1]]

    def submit(self, unit: int, at: int) -> None:
        """Submit a unit: its first job at second ``at``, the others spaced as recorded."""
        self.submitted += 1
        self._submit_unit(unit + self.offset, at)

    def send(self, rows: Int64s, at: Int64s) -> None:
        """Submit jobs at the seconds ``at``, shape (jobs,); also such as were taken back."""
        again = np.array([row in self.taken_back for row in rows.tolist()], bool)
        if not again.all():
            self.site.submit(rows[~again], at[~again])
        if again.any():
            self.model.jobs.cluster[rows[again]] = self.site.number
            self.site.submit_again(rows[again], at[again])

    @property
    def unit_kind(self) -> Kind:
        """The kind of its units."""
        return self._kind

    def take_back(self, rows: Int64s) -> None:
        """Let jobs not arrive that were submitted for later."""
        rows = rows[self.model.jobs.submit[rows] != UNKNOWN]
        if len(rows):
            self.model.withdraw(rows)
            self.taken_back.update(rows.tolist())

    @override
    def on_finished(self, unit: int, now: int) -> None:
        mine = unit - self.offset
        if self.renumbered is not None:
            found = self.renumbered.get(unit)
            if found is None:  # a unit of an earlier behaviour, whose end is known already
                return
            mine = found
        self.finished += 1
        self.behaviour.finished(self, mine, now)

    @property
    def _kind(self) -> Kind:
        return kind_of(self.behaviour.units, self.work)

    def note_submissions(self, log: DecisionLog, others: Noting | None = None) -> None:
        """Note the user's submissions without a reason, except those that ``others`` notes."""
        self._submit_unit = partial(self._submit_noted, self._submit_unit, log, others)

    def _submit_noted(
        self,
        submit: Callable[[int, int], None],
        log: DecisionLog,
        others: Noting | None,
        unit: int,
        at: int,
    ) -> None:
        mine = unit - self.offset
        if others is None or not others.notes(mine):
            log.note(at, self.number, What.SUBMITTED, Why.OWN, self._kind, mine)
        submit(unit, at)

    @property
    def graph(self) -> UserGraph:
        """The user's sessions or batches, and what each of them waits for; change it as you like.

        See :class:`~hpcrowd.agents.behaviours.user_graph.UserGraph`. Made at first use, and the
        same object from then on.
        """
        if self._graph is None:
            from hpcrowd.agents.behaviours.user_graph import UserGraph

            self._graph = UserGraph(user=self)
        return self._graph

    @property
    def edited(self) -> bool:
        """Whether :attr:`graph` was changed by hand."""
        return self._graph is not None and self._graph.edited

    def take_graph(self, graph: UserGraph) -> None:
        """Let a graph decide from now on what is released."""
        self.changed_graph = graph
        self._submit_unit = partial(graph.submit, self._submit_unit)

    def leave_graph(self) -> None:
        """Let the behaviour alone decide again, without notes of single submissions."""
        self.changed_graph = None
        self._submit_unit = self.site.submit_unit


class Behaviour[U: User]:
    """A submission policy. Subclass it and define :meth:`begin` and, to react, :meth:`finished`."""

    def _repr_html_(self) -> str:
        """Return what it is made of, for notebooks."""
        names = ("when", "think", "window", "reactions", "patience")
        parts = [(name, part) for name in names if (part := getattr(self, name, None))]
        plain = "object at"
        rows = [
            (name, type(part).__name__ if plain in repr(part) else repr(part))
            for name, part in parts
        ]
        return notebook_table(type(self).__name__, rows)

    seam: ClassVar = Seam(
        "Behaviour", 'hpcrowd replay LOG --users {0}, or behaviour = "{0}" in a file of users', 1
    )

    #: False if events in the cluster do not matter: users are then not notified.
    reacts = True

    #: The units that users of a trace submit; None for sessions.
    units: Units | None = None

    #: Whether the graphs of users can be changed.
    by_graph = False

    #: Its name in :data:`hpcrowd.agents.presets.PRESETS` or FILE.py:NAME; None if made in Python.
    named: str | None = None

    def begin(self, user: U) -> None:
        """Submit the first work; called once for each user before the run begins."""
        raise NotImplementedError(f"{type(self).__name__} must define begin()")

    def finished(self, user: U, unit: int, now: int) -> None:
        """React to the end of the last job of ``unit``."""

    def edges(self, user: U) -> Iterable[tuple[int, int, dict[str, int]]]:
        """Yield what users wait for: unit before, unit after, and think time or inter-arrival."""
        return ()

    def over_at(self, user: ReplayUser, unit: int) -> int:
        """Return when a unit was over, s; -1 before."""
        jobs, rows = user.model.jobs, user.jobs_of(unit)
        if (jobs.state[rows] == State.UNFINISHED).any():
            return UNKNOWN
        return int(np.maximum(jobs.end[rows], jobs.submit[rows]).max())

    def release(self, user: U, release: Release, earliest: int) -> None:
        """Submit a unit that a changed graph releases, not before second ``earliest``."""
        raise NotImplementedError(f"{type(self).__name__} does not go by a graph")

    def lost(self, user: U, rows: Int64s, now: int) -> None:
        """Submit jobs again that were stopped before they ended.

        By default after ``user.model.resubmit_after`` s, at any hour.
        """
        user.model.resubmit(rows, now + user.model.resubmit_after)

    def at_work(self, user: U, now: int, pause: int) -> int:
        """Return when the user is at work, not before a pause (s) from ``now`` on."""
        return now + pause


class Gone(Behaviour[User]):
    """Of users who were removed: they submit nothing.

    Parameters
    ----------
    units
        The units that they submitted before.
    """

    def __init__(self, units: Units | None) -> None:
        self.units = units

    @override
    def begin(self, user: User) -> None:
        """Submit nothing."""

    @override
    def lost(self, user: User, rows: Int64s, now: int) -> None:
        """Leave jobs that were stopped."""
        user.model.jobs.column(Column.STATE)[rows] = State.FAILED
