"""Handover: a user goes on with another behaviour, which :func:`give_behaviour` gives it in a run.

What has arrived at the machine stays there. What is still to come is taken back and submitted as
the new behaviour says, from what has happened so far:

=================== ============================================================================
new behaviour       what is still to come
=================== ============================================================================
rigid               each job comes at its recorded second, or now if that has passed
sessions or batches each unit that has not begun comes when the behaviour releases it, or now if
                    that has passed (when the user is next at work, if it has a window); the rest
                    of a unit that has begun comes spaced as recorded
=================== ============================================================================

A job that left the queue to come back comes back as planned, and so does one that a reaction sent
to another cluster. Changes that reactions made to jobs stay. Pauses, hours and reactions that are
drawn at random are drawn again for what is still to come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.agents.behaviours.composed import Composed, Rigid
from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.agents.behaviours.reactions import Switch
from hpcrowd.agents.behaviours.user import Behaviour, Gone, ReplayUser
from hpcrowd.agents.populations.population import Factory, maker_of
from hpcrowd.environment.errors import QuantityError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user_graph import UserGraph
    from hpcrowd.agents.work.units import Units
    from hpcrowd.environment.simulation import Simulation


def give_behaviour(
    model: Simulation, user: ReplayUser | int, behaviour: str | Factory | Behaviour[ReplayUser]
) -> Behaviour[ReplayUser]:
    """Let a user of a recorded trace follow another behaviour from now on, and return it.

    To be called between two calls of ``model.run(until=...)``. What has arrived at the machine
    stays; what is still to come is taken back and submitted as the new behaviour says, see
    the module. The name of the behaviour that the user has, or the same object, changes nothing.

    Parameters
    ----------
    model
        The simulation.
    user
        The user, or its number.
    behaviour
        A name of :data:`hpcrowd.agents.presets.PRESETS`, such as ``rigid``, or FILE.py:NAME; a
        function from the recorded work to a behaviour, such as a :class:`Recipe`; or a behaviour.
        A name that other users of the run have gives the user their object.

    Raises
    ------
    QuantityError
        In one line, and nothing is changed: if there is no such user or behaviour; if the user has
        left; if the user, or users with this behaviour, generate their work; if the behaviour is a
        class with ``begin`` or ``finished`` of its own, or has a ``when`` part without a graph; if
        the graph of the user was changed by hand and the new behaviour waits for other units (not
        if it is rigid); if the old behaviour is a class of your own that has set an alarm for the
        user; or if the behaviour switches jobs to other clusters and the speed of the user's
        cluster is not 1.

    Examples
    --------
    >>> import hpcrowd as hc
    >>> jobs = hc.JobTable()
    >>> rows = jobs.append(2, user=1, processors=1, run_time=60, requested_time=60,
    ...     recorded_submit=[0, 5000], recorded_start=[0, 5000], recorded_end=[1000, 5060])
    >>> model = hc.Simulation(jobs, 4)
    >>> users = hc.add_users(model, hc.Work.of(jobs), "rigid")
    >>> give_behaviour(model.run(until=100), 1, "think-time")
    <ThinkTime SessionGraph x RecordedPauses>
    >>> model.run().jobs.submit.tolist()
    [0, 4060]
    """
    agent = _user(model, user)
    name = behaviour if isinstance(behaviour, str) else _name(behaviour)
    if isinstance(behaviour, str) and behaviour == agent.behaviour.named:
        return agent.behaviour
    made = behaviour if isinstance(behaviour, Behaviour) else _made(model, agent, behaviour)
    if getattr(made, "generates", False):
        raise QuantityError(
            f"behaviour {name} for user {agent.number}: its users make up their work, and this one "
            "replays a record; start another run with it"
        )
    hand_over(agent, made, name)
    return agent.behaviour


def _user(model: Simulation, user: Any) -> ReplayUser:
    """Return a user who replays a record, given itself or its number."""
    agent = user
    if not hasattr(user, "behaviour"):
        found = [one for one in model.agents if getattr(one, "number", None) == user]
        found = [one for one in found if hasattr(one, "behaviour")]
        if not found:
            raise QuantityError(
                f"user {echo(user)}: not in this run; give the number of a user, or the user"
            )
        agent = found[0]
    if not isinstance(agent, ReplayUser):
        raise QuantityError(
            f"user {agent.number}: a {type(agent).__name__}, who makes up the work as it goes, by "
            "alarms of its own behaviour; start another run with another population"
        )
    if agent.model is not model:
        raise QuantityError(
            f"user {agent.number}: of another simulation; give its number, or the user of this one"
        )
    return agent


def _made(model: Simulation, user: ReplayUser, maker: str | Factory) -> Behaviour[ReplayUser]:
    """Return the behaviour of other users of the run by that name, or a new one."""
    if isinstance(maker, str):
        for other in model.agents:
            if isinstance(other, ReplayUser) and other.work is user.work:
                shared: Behaviour[ReplayUser] = other.behaviour
                if shared.named == maker:
                    return shared
    made = maker_of(maker)(user.work)
    made.named = maker if isinstance(maker, str) else None
    return made


def _name(behaviour: Any) -> str:
    """Return what messages and results call a behaviour without a name."""
    if isinstance(behaviour, Behaviour):
        return behaviour.named or repr(behaviour)
    return getattr(behaviour, "__qualname__", None) or type(behaviour).__name__


def hand_over(user: ReplayUser, behaviour: Behaviour[ReplayUser], name: str) -> None:
    """Let a user follow another behaviour from now on; see the module.

    Parameters
    ----------
    user
        A user of a simulation between two calls of ``run``, or in one of its events.
    behaviour
        The behaviour, made from the work that the user replays; it may be that of other users.
    name
        What messages call it.

    Raises
    ------
    QuantityError
        If this cannot be done in the middle of a run. Nothing is changed then.
    """
    if behaviour is user.behaviour:
        return
    check(user, behaviour, name)
    graph = user.graph
    graph.revise()
    Handover(user, behaviour, name, graph).do()


def units_of(user: ReplayUser, behaviour: Behaviour[ReplayUser]) -> Units:
    """Return the units that a user has under a behaviour."""
    return behaviour.units or user.work.by_session


def check(user: ReplayUser, behaviour: Behaviour[ReplayUser], name: str) -> None:
    """Check that a user can go on with a behaviour in the middle of a run.

    Raises
    ------
    QuantityError
        If not.
    """
    what, old = f"behaviour {name} for user {user.number}", user.behaviour
    if isinstance(old, Gone) or user not in user.model.agents:
        raise QuantityError(f"{what}: the user has left the run; give it before that")
    if not isinstance(behaviour, Rigid):
        kind = type(behaviour)
        if not isinstance(behaviour, Composed) or (
            (kind.begin, kind.finished) != (Composed.begin, Composed.finished)
        ):
            raise QuantityError(
                f"{what}: {kind.__name__} begins with the run, as only its own begin() and "
                "finished() know what comes next; compose it of parts, or start another run with it"
            )
        if not behaviour.when.by_graph:
            raise QuantityError(
                f"{what}: {type(behaviour.when).__name__} has no graph to go on by in the middle "
                "of a run; choose sessions or batches, or start another run with it"
            )
        if behaviour.units is not None and behaviour.units.jobs is not user.model.jobs:
            raise QuantityError(
                f"{what}: it was made from the work of other jobs; make it from user.work"
            )
        speed = getattr(getattr(user.site, "engine", None), "speed", 1)
        if speed != 1 and any(isinstance(one, Switch) for one in behaviour.reactions):
            raise QuantityError(
                f"{what}: it switches jobs to other clusters, and run times are already those of "
                f"{user.site.name}, whose speed is {speed:g}; give it before the run"
            )
    if any(reaction.is_busy(user) for reaction in getattr(old, "reactions", ())):
        raise QuantityError(
            f"{what}: the user has begun tasks of which pieces are still to come; give it when "
            "they are over, or start another run with it"
        )
    for at, function, arguments in user.model.due():
        if getattr(function, "__self__", None) is old and user in arguments:
            raise QuantityError(
                f"{what}: {type(old).__name__} has set an alarm for {at} s, which nobody else can "
                "take over; give it after that, or start another run"
            )


class Handover:
    """What it takes to give a behaviour to a user.

    Parameters
    ----------
    user, behaviour, name
        See :func:`hand_over`.
    graph
        The user's graph, with all changes carried out.
    """

    def __init__(
        self, user: ReplayUser, behaviour: Behaviour[ReplayUser], name: str, graph: UserGraph
    ) -> None:
        self.user, self.behaviour, self.name, self.graph = user, behaviour, name, graph
        self.model, self.jobs, self.now = user.model, user.model.jobs, user.model.time
        self.old = user.behaviour
        self.units_before = units_of(user, self.old)
        self.units = units_of(user, behaviour)
        self.rigid = isinstance(behaviour, Rigid)
        same = self.units is self.units_before and not isinstance(self.old, Rigid)
        self.same_edges = same and _edges(user, self.old) == _edges(user, behaviour)
        if graph.edited and not self.rigid and not self.same_edges and _edges(user, self.old):
            raise QuantityError(
                f"behaviour {name} for user {user.number}: its graph was changed, and this "
                "behaviour waits for other things; give the behaviour first, and then change the "
                "graph"
            )

    def do(self) -> None:
        """Take back what is still to come, and submit it as the behaviour says."""
        user, graph = self.user, self.graph
        over = {unit: at for unit in graph if (at := graph.over_at(unit)) is not None}
        rows_before = {unit: graph.rows_of(unit) for unit in graph}
        starts = {unit: int(graph.nodes[unit]["start"]) for unit in graph.added}
        rows = np.concatenate([user.recorded_rows, *(graph.rows_of(one) for one in graph.added)])
        stays = self._stays(rows)
        counted = user.counted
        if counted is None and self.model.unit_of(int(rows[0])) != UNKNOWN:
            counted = self.units_before
        self._prepare()
        for event in user.due.values():
            event.cancel()
        user.due.clear()
        if user.log is not None:
            here = set(rows[stays].tolist())
            to_come = {unit for unit, mine in rows_before.items() if here.isdisjoint(mine.tolist())}
            user.log.forget(user.number, self.kind_before, to_come, self.now)
        user.given.append((self.now, self.name))
        user.leave_graph()
        user.counted = counted
        if self.rigid:
            user.take_back(rows[~stays])
            graph.start_anew({}, (), refill=True)
            self._submit_rigid(rows[~stays], starts)
        else:
            self._submit_by_graph(rows[stays], over, rows_before)
        self.model.running = not self.model.over

    def _stays(self, rows: Int64s) -> NDArray[np.bool_]:
        """Return which jobs are not taken back: the module says which."""
        user, jobs = self.user, self.jobs
        elsewhere = (jobs.submit[rows] != UNKNOWN) & (jobs.cluster[rows] != user.site.number)
        stays: NDArray[np.bool_] = self.graph.arrived(rows) | elsewhere
        if user.leaving is not None:
            stays |= [user.leaving.comes_back(row) for row in rows.tolist()]
        return stays

    def _prepare(self) -> None:
        """Let the user follow the behaviour, whose parts prepare for it."""
        user, before = self.user, (self.user.behaviour, self.user.units, self.user.leaving)
        self.kind_before = user.unit_kind
        user.behaviour, user.leaving = self.behaviour, None
        user.units = range(*self.units.user_first[user.place : user.place + 2].tolist())
        if not isinstance(self.behaviour, Composed):
            return
        if user.log is not None and self.behaviour.noting is None:
            from hpcrowd.agents.behaviours.hooks import Noting

            self.behaviour.note_in(Noting(user.log, self.behaviour))
        try:
            self.behaviour.prepare(user)
        except QuantityError:
            user.behaviour, user.units, user.leaving = before
            raise

    def _submit_rigid(self, rows: Int64s, starts: dict[int, int]) -> None:
        """Submit jobs at their recorded seconds, or now."""
        user, jobs, graph = self.user, self.jobs, self.graph
        at = jobs.recorded_submit[rows].copy()
        for unit, start in starts.items():
            mine = np.isin(rows, graph.rows_of(unit)) & (at == UNKNOWN)
            at[mine] = start
        at = np.maximum(at, self.now)
        user.submitted = len(graph)
        if not len(rows):
            return
        user.send(rows, at)
        if user.log is None:
            return
        when = dict(zip(rows.tolist(), at.tolist(), strict=True))
        for unit in graph:
            mine = graph.rows_of(unit).tolist()
            if all(row in when for row in mine):
                first = min(when[row] for row in mine)
                user.log.note(
                    first, user.number, What.SUBMITTED, Why.RECORDED, user.unit_kind, unit
                )

    def _submit_by_graph(
        self, stay: Int64s, over: dict[int, int], rows_before: dict[int, Int64s]
    ) -> None:
        """Submit what is still to come when the graph releases it."""
        user, graph, jobs = self.user, self.graph, self.jobs
        here = set(stay.tolist())
        if not self.same_edges:
            graph.start_anew({}, (), refill=True)
        rows_of = {unit: graph.rows_of(unit) for unit in graph}
        begun = {unit for unit, rows in rows_of.items() if not here.isdisjoint(rows.tolist())}
        regrouped = self.units is not self.units_before
        renumbers = user.counted is not self.units
        if regrouped or renumbers:
            ends = {row: at for unit, at in over.items() for row in rows_before[unit].tolist()}
            found = {unit: self._over_at(rows, ends) for unit, rows in rows_of.items()}
            same = {} if regrouped else over
            over = same | {unit: at for unit, at in found.items() if at is not None}
        if renumbers:
            self._renumber(rows_of)
        respaced = regrouped or not isinstance(self.old, Composed)
        for unit, rows in rows_of.items():
            if unit not in begun:
                user.take_back(rows)
            elif respaced and (rest := [row for row in rows.tolist() if row not in here]):
                self._send_rest(rows, np.array(rest, np.int64), here)
        graph.start_anew(over, begun | set(over), refill=False)
        user.take_graph(graph)
        user.submitted = len(begun | (over.keys() & rows_of.keys()))
        if user.leaving is not None:
            mine = np.concatenate([np.zeros(0, np.int64), *rows_of.values()])
            waits = (jobs.submit[mine] != UNKNOWN) & (jobs.start[mine] == UNKNOWN)
            user.leaving.submitted(user, mine[waits])
        graph.release_free(sorted(rows_of.keys() - begun))

    def _over_at(self, rows: Int64s, ends: dict[int, int]) -> int | None:
        """Return when a unit with these jobs was over, s; None before.

        Parameters
        ----------
        rows
            Its jobs.
        ends
            When units of before were over, s, by their jobs.
        """
        jobs = self.jobs
        if (jobs.state[rows] == State.UNFINISHED).any():
            return None
        at = int(np.maximum(jobs.end[rows], jobs.submit[rows]).max())
        if at == UNKNOWN:  # all of it was renounced
            at = max(ends.get(row, self.now) for row in rows.tolist())
        return at

    def _send_rest(self, rows: Int64s, rest: Int64s, here: set[int]) -> None:
        """Submit the other jobs of a unit that has begun, spaced as recorded after the last one."""
        user, jobs = self.user, self.jobs
        user.take_back(rest)
        sent = [row for row in rows.tolist() if row in here and jobs.submit[row] != UNKNOWN]
        recorded = jobs.recorded_submit
        if sent:
            last = sent[-1]
            at = jobs.submit[last] + recorded[rest] - recorded[last]
        else:
            at = self.now + recorded[rest] - recorded[rest[0]]
        user.send(rest, np.maximum(at, self.now))

    def _renumber(self, rows_of: dict[int, Int64s]) -> None:
        """Let the engine count the jobs of each unit that is not over."""
        user, jobs, model = self.user, self.jobs, self.model
        numbers: dict[int, int] = {}
        added = set(self.graph.added)
        for unit, rows in rows_of.items():
            left = rows[jobs.state[rows] == State.UNFINISHED]
            if len(left):
                number = (
                    model.unit_of(int(left[0])) if unit in added else model.add_unit(user, left)
                )
                numbers[number] = unit
        user.renumbered = numbers
        user.counted = self.units
        user.finished = len(rows_of) - len(numbers)


def _edges(user: ReplayUser, behaviour: Behaviour[ReplayUser]) -> dict[tuple[int, int], Any]:
    """Return the edges of a user under a behaviour."""
    return {(before, after): times for before, after, times in behaviour.edges(user)}
