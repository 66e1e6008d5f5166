"""The graph that a user holds: its units, what each of them waits for, and how to change that.

``user.graph`` is a networkx graph with a node for each session or batch of the user. Reading it
costs nothing in the run. With the first change it takes the place of the arrays of
:mod:`hpcrowd.agents.behaviours.when` for this user: from then on it decides what is released when.

A unit is released when each unit that it waits for is over (``think_time``) or submitted
(``inter_arrival``), and a unit without edges comes at its ``start``, or now if that has passed.
Where a job depends on a job of another unit, an edge says so (``dependency``); it holds that job
back after its submission, and not the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, override

import networkx as nx
import numpy as np

from hpcrowd.agents.behaviours.graph_data import JOBS, TIMES, UnitData, Wait, seconds
from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.agents.work.graph import Dependencies
from hpcrowd.environment.errors import QuantityError, SimulationError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.work.units import Units

    Base = nx.DiGraph[int]
else:
    Base = nx.DiGraph  # it takes no parameters when it runs


class UserGraph(Base):
    """The units of one user, and what each of them waits for; see the module.

    Copies, such as ``graph.copy()`` or ``graph.subgraph(...)``, are ordinary graphs: to change them
    changes no run.

    Parameters
    ----------
    incoming
        As for ``networkx.DiGraph``.
    user
        The user who holds it; None for an ordinary graph.
    """

    node_attr_dict_factory = UnitData
    edge_attr_dict_factory = Wait

    def __init__(self, incoming: Any = None, user: ReplayUser | None = None, **known: Any) -> None:
        self._user: ReplayUser | None = None
        super().__init__(incoming, **known)
        if user is None:
            return
        self.edited = False  # whether it was changed by hand
        self._rows: dict[int, Int64s] = {}  # of units that are not in the record
        self._fill(user)

    def _fill(self, user: ReplayUser) -> None:
        """Show the units of a user as its behaviour has them, and nothing that has happened."""
        self.graph["user"] = user.number
        units = user.behaviour.units or user.work.by_session
        for unit in user.units:
            super().add_node(unit, start=int(units.start[unit]))
        for before, after, times in user.behaviour.edges(user):
            super().add_edge(before, after, **times)
        for part in user.model.parts.at("awaited"):
            self._show_dependencies(user, part.awaited())
        self._user = user
        self._over: dict[int, int] = {}  # s; when units were over
        self._sent: dict[int, int] = {}  # s; the last submission of units
        self._released: set[int] = set()
        self._touched: set[int] = set()
        self._revises = False  # whether an alarm is set for that
        self._in_order = True  # whether all edges lead to later units
        for unit in self:
            self._bind(self.nodes[unit], unit)
        for before, after in self.edges:
            self._bind(self.succ[before][after], before, after)

    def _show_dependencies(self, user: ReplayUser, awaited: Mapping[int, Sequence[int]]) -> None:
        """Show the edges between units of which a job depends on a job of the other."""
        unit_of = {row: unit for unit in self for row in user.recorded_jobs_of(unit).tolist()}
        for row, parents in awaited.items():
            for parent in parents:
                before, after = unit_of.get(parent), unit_of.get(row)
                if before is None or after is None or before == after:
                    continue
                super().add_edge(before, after)
                self.succ[before][after].setdefault(JOBS, []).append((parent, row))

    def _bind(self, data: Any, *of: int) -> None:
        data.bind(self, *of)

    def __repr__(self) -> str:
        if self._user is None:
            return super().__repr__()
        return (
            f"<UserGraph of user {self._user.number}: {len(self):,} units, "
            f"{self.number_of_edges():,} edges>"
        )

    @override
    def copy(self, as_view: bool = False) -> Any:
        """Return an ordinary graph with what is known now."""
        if as_view:
            return super().copy(as_view=True)
        other: nx.DiGraph[int] = nx.DiGraph(**self.graph)
        other.add_nodes_from((unit, dict(data)) for unit, data in self.nodes(data=True))
        other.add_edges_from((one, two, dict(data)) for one, two, data in self.edges(data=True))
        return other

    @override
    def to_directed_class(self) -> type[nx.DiGraph[int]]:
        return nx.DiGraph

    # What is known of a unit.

    @property
    def added(self) -> list[int]:
        """The units that are not in the record."""
        return [unit for unit in self._rows if unit in self]

    def rows_of(self, unit: int) -> Int64s:
        """Return the rows of the jobs of a unit, by submission."""
        found = self._rows.get(unit)
        return self._holder.recorded_jobs_of(unit) if found is None else found

    def fact(self, unit: int, key: str) -> Any:
        """Return one of :data:`FACTS`."""
        rows, jobs = self.rows_of(unit), self._holder.model.jobs
        match key:
            case "jobs":
                return rows.tolist()
            case "batches":
                cuts = np.flatnonzero(np.diff(jobs.batch[rows])) + 1
                return [piece.tolist() for piece in np.split(rows, cuts)]
            case "end":
                recorded = jobs.recorded_end[rows]
                return None if recorded.min() == UNKNOWN else int(recorded.max())
            case "submitted":
                known = jobs.submit[rows]
                known = known[known != UNKNOWN]
                return int(known.min()) if len(known) else None
            case "over":
                return self.over_at(unit)
            case "waits_for":
                return [one for one in self.pred[unit] if not self._lets_go(one, unit)]
        if (jobs.state[rows] != State.UNFINISHED).all():
            return "finished"
        now = self._holder.model.time
        if np.any((jobs.start[rows] != UNKNOWN) & (jobs.start[rows] <= now)):
            return "running"
        if self._is_submitted(unit):
            return "queued"
        return "waits" if self.fact(unit, "waits_for") else "free"

    @property
    def _holder(self) -> ReplayUser:
        assert self._user is not None
        return self._user

    def over_at(self, unit: int) -> int | None:
        """Return when a unit was over, s; None before."""
        if self._holder.changed_graph is self:
            return self._over.get(unit)
        over = self._holder.behaviour.over_at(self._holder, unit)
        return None if over == UNKNOWN else over

    def _sent_at(self, unit: int) -> int | None:
        """Return the last submission of a unit, s, also if still to come; None if not known."""
        if unit in self._sent:
            return self._sent[unit]
        submit = self._holder.model.jobs.submit[self.rows_of(unit)]
        return self.over_at(unit) if (submit == UNKNOWN).any() else int(submit.max())

    def _lets_go(self, before: int, after: int) -> bool:
        """Return whether a unit no longer waits for another."""
        times = self.succ[before][after]
        over = "think_time" not in times or self.over_at(before) is not None
        return over and ("inter_arrival" not in times or self._sent_at(before) is not None)

    def _is_submitted(self, unit: int) -> bool:
        """Return whether a unit has arrived at its cluster or broker, at least partly."""
        return bool(self.arrived(self.rows_of(unit)).any())

    def arrived(self, rows: Int64s) -> NDArray[np.bool_]:
        """Return which jobs have arrived at their cluster or broker, or are over."""
        jobs = self._holder.model.jobs
        model, now = self._holder.model, self._holder.model.time
        submit, state = jobs.submit[rows], jobs.state[rows]
        there: NDArray[np.bool_] = (submit != UNKNOWN) & (submit < now)
        there |= (jobs.enqueued[rows] != UNKNOWN) | (state != State.UNFINISHED)
        for name in model.places.keys() - model.clusters.keys():
            if (submit == now).any():
                there |= np.isin(rows, model.places[name].waiting)
        return there

    # Changes.

    def check_open(self, unit: int) -> None:
        """Check that what a unit waits for can still be changed.

        Raises
        ------
        QuantityError
            If the user's behaviour waits for nothing.
        SimulationError
            If the unit was submitted, or left out.
        """
        user = self._holder
        if not user.behaviour.by_graph:
            raise QuantityError(
                f"graph of user {user.number}: {user.behaviour!r} does not go by a graph; choose "
                "a behaviour that waits, such as think-time"
            )
        if self._is_submitted(unit):
            was = self.fact(unit, "submitted")
            raise SimulationError(
                f"unit {unit} of user {user.number}: "
                + ("left out or renounced" if was is None else f"submitted at {was} s")
                + f", and it is {user.model.time} s; only what is still to come can be changed"
            )

    def touch(self, unit: int) -> None:
        """Note that a unit may now be released at another time."""
        user = self._holder
        self.edited = True
        self.take_charge()
        if not self._revises:
            user.model.call_at(user.model.time, self.revise)
            self._revises = True
        self._touched.add(unit)

    def add_unit(self, rows: Iterable[int], start: int | None = None, **known: Any) -> int:
        """Add a session or batch with your own jobs, and return its number.

        Parameters
        ----------
        rows
            Rows in the table of jobs that belong to no unit, see ``JobTable.append``. They are
            spaced as their recorded submissions, or come all at once if they have none.
        start
            s; when it comes if it waits for nothing; by default now.
        **known
            Whatever else the graph shall know of it.

        Raises
        ------
        SimulationError
            If a job is not in the table, belongs to another unit or was submitted.
        """
        user = self._holder
        model, jobs = user.model, user.model.jobs
        rows = np.atleast_1d(np.asarray(list(rows), np.int64))
        at = model.time if start is None else seconds(start, "start")
        model.units.check_rows(rows)
        taken = (jobs.unit[rows] != UNKNOWN) | (jobs.submit[rows] != UNKNOWN)
        if taken.any():
            row = int(rows[taken][0])
            raise SimulationError(
                f"job {jobs.number[row]} (row {row}): belongs to another unit; append jobs of "
                "your own to the table first, with jobs.append(count, ...)"
            )
        self.take_charge()
        number = model.add_unit(user, rows)
        unit = number - user.offset
        if user.renumbered is not None:
            unit = max(len(user.behaviour.units or user.work.by_session), max(self, default=0) + 1)
            user.renumbered[number] = unit
        jobs.user[rows] = user.number
        self._rows[unit] = rows
        super().add_node(unit, start=at, **known)
        self._bind(self.nodes[unit], unit)
        self.touch(unit)
        return unit

    @override
    def add_node(self, node_for_adding: Any, **attr: Any) -> None:
        if self._user is not None and node_for_adding not in self:
            raise QuantityError(
                f"unit {echo(node_for_adding)} of user {self._user.number}: there is none; "
                "graph.add_unit(rows) adds one with jobs of your own and returns its number"
            )
        super().add_node(node_for_adding, **attr)

    @override
    def add_nodes_from(self, nodes_for_adding: Iterable[Any], **attr: Any) -> None:
        if self._user is None:
            super().add_nodes_from(nodes_for_adding, **attr)
            return
        for node in nodes_for_adding:
            unit, own = node if isinstance(node, tuple) else (node, {})
            self.add_node(unit, **{**attr, **own})

    @override
    def add_edge(self, u_of_edge: Any, v_of_edge: Any, **attr: Any) -> None:
        before, after, times = u_of_edge, v_of_edge, attr
        if self._user is None:
            super().add_edge(before, after, **times)
            return
        for unit in (before, after):
            if unit not in self:
                raise QuantityError(f"edge {echo(before)} -> {echo(after)}: {self._whose(unit)}")
        if JOBS in times:
            raise QuantityError(
                f"{JOBS} of edge {before} -> {after}: comes from the log; give a think_time"
            )
        self.check_open(after)
        new = after not in self.succ[before]
        if new and not times.keys() & TIMES.keys():
            times["think_time"] = 0
        for key in times.keys() & TIMES.keys():
            times[key] = seconds(times[key], f"{key} of edge {before} -> {after}")
        if new and not (self._in_order and before < after < self._recorded_end):
            self._check_no_cycle(before, after)
        super().add_edge(before, after, **times)
        if new:
            self._bind(self.succ[before][after], before, after)
            self.touch(after)

    @property
    def _recorded_end(self) -> int:
        """Units before this one are in the order of their recorded submission."""
        return self._holder.units.stop

    def _check_no_cycle(self, before: int, after: int) -> None:
        self._in_order = self._in_order and before < after
        if before == after or nx.has_path(self, after, before):
            path = [after] if before == after else nx.shortest_path(self, after, before)
            shown = " -> ".join(map(str, [before, *path]))
            raise QuantityError(
                f"edge {before} -> {after}: closes the cycle {shown}, whose units would wait for "
                "each other for ever; remove another edge of it first"
            )

    def _whose(self, unit: Any) -> str:
        """Return in words why a unit is not in this graph."""
        user = self._holder
        units = user.behaviour.units or user.work.by_session
        if isinstance(unit, int) and 0 <= unit < units.user_first[-1]:
            place = int(np.searchsorted(units.user_first, unit, side="right")) - 1
            if place != user.place:
                return (
                    f"unit {unit} is of user {units.users[place]}; users wait for their own work "
                    f"only, this is the graph of user {user.number}"
                )
        return f"user {user.number} has no unit {echo(unit)}"

    @override
    def add_edges_from(self, ebunch_to_add: Iterable[Any], **attr: Any) -> None:
        if self._user is None:
            super().add_edges_from(ebunch_to_add, **attr)
            return
        for before, after, *own in ebunch_to_add:
            self.add_edge(before, after, **{**attr, **(own[0] if own else {})})

    @override
    def remove_edge(self, u: int, v: int) -> None:
        held = self._user is not None and self.has_edge(u, v)
        if held:
            self.check_open(v)
        pairs = self.succ[u][v].get(JOBS, ()) if held else ()
        super().remove_edge(u, v)
        if held:
            self.forget(pairs)
            self.touch(v)

    def forget(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let jobs no longer depend on others, as (row of the other, row)."""
        for part in self._holder.model.parts.at("let_go"):
            for parent, row in pairs:
                part.let_go(parent, row)

    @override
    def remove_edges_from(self, ebunch: Iterable[Any]) -> None:
        for before, after, *_ in list(ebunch):
            if self.has_edge(before, after):
                self.remove_edge(before, after)

    @override
    def remove_node(self, n: int) -> None:
        """Leave a unit out; its jobs are renounced.

        What waited for it then waits for what it waited for, as far apart as before.
        """
        unit = n
        if self._user is None or unit not in self:
            super().remove_node(unit)
            return
        self.check_open(unit)
        self.edited = True
        self.take_charge()
        self._retract(unit)
        before, after = list(self.pred[unit].items()), list(self.succ[unit].items())
        jobs, rows = self._user.model.jobs, self.rows_of(unit)
        recorded, end = jobs.recorded_submit[rows], self.fact(unit, "end")
        lasted = 0 if end is None else end - int(recorded[0])
        between = {"think_time": lasted, "inter_arrival": int(recorded[-1] - recorded[0])}
        self._user.model.leave_out(rows)
        super().remove_node(unit)
        for follower, left in after:
            for earlier, times in before:
                bridge = {
                    key: times[key] + lasted + left[key]
                    for key, lasted in between.items()
                    if key in times and key in left and not self._leads(earlier, follower, key)
                }
                if bridge:
                    self.add_edge(earlier, follower, **bridge)
            self.touch(follower)

    def _leads(self, before: int, after: int, key: str) -> bool:
        """Return whether edges of one kind lead from a unit to another."""
        found, seen = [before], {before}
        while found:
            for one, times in self.succ[found.pop()].items():
                if key in times and one not in seen:
                    if one == after:
                        return True
                    seen.add(one)
                    found.append(one)
        return False

    @override
    def remove_nodes_from(self, nodes: Iterable[int]) -> None:
        for unit in list(nodes):
            if unit in self:
                self.remove_node(unit)

    @override
    def clear_edges(self) -> None:
        self.remove_edges_from(self.edges)

    @override
    def clear(self) -> None:
        self.remove_nodes_from(self.nodes)

    # In charge of a user.

    def take_charge(self) -> None:
        """Decide from now on what is released, with what has happened so far."""
        user = self._holder
        if user.changed_graph is not None:
            return
        self._over = {unit: over for unit in self if (over := self.over_at(unit)) is not None}
        known = user.model.jobs.submit
        self._released = {
            unit
            for unit in self
            if unit in self._over or unit in user.due or (known[self.rows_of(unit)] >= 0).any()
        }
        user.take_graph(self)

    def submit(self, submit: Callable[[int, int], None], number: int, at: int) -> None:
        """Submit a unit with a number of the engine; ``submit`` does so for those of the record."""
        user = self._holder
        unit = number - user.offset
        rows = self.rows_of(unit)
        known = unit not in self._rows and user.renumbered is None
        if known and user.taken_back.isdisjoint(rows.tolist()):
            submit(number, at)
            return
        recorded = user.model.jobs.recorded_submit[rows]
        user.send(rows, at + recorded - (recorded[0] if recorded.min() != UNKNOWN else recorded))

    def _retract(self, unit: int) -> None:
        """Take back what is planned for a unit that has not arrived."""
        user = self._holder
        if unit not in self._released:
            return
        self._released.discard(unit)
        self._sent.pop(unit, None)
        event = user.due.pop(unit, None)
        if event is not None:
            event.cancel()
        rows = self.rows_of(unit)
        if (user.model.jobs.submit[rows] != UNKNOWN).any():
            user.take_back(rows)
            user.submitted -= 1
            if user.log is not None:
                user.log.forget(user.number, user.unit_kind, {unit}, user.model.time)
        for after, times in self.succ[unit].items():
            if "inter_arrival" in times and after in self._released:
                self._touched.add(after)
                self._retract(after)

    def revise(self) -> None:
        """Release again what has changed."""
        behaviour = self._holder.behaviour
        for unit in sorted(self._touched):
            if unit in self and not self._is_submitted(unit):
                self._retract(unit)
        touched = sorted(self._touched)
        self._touched.clear()
        self._revises = False
        if behaviour.by_graph:  # otherwise the user was removed
            self.release_free(unit for unit in touched if unit in self)

    def release_free(self, units: Iterable[int]) -> None:
        """Submit those of some units that wait for nothing, as the user's behaviour says."""
        user = self._holder
        for unit in units:
            if unit not in self._released and not self._is_submitted(unit):
                release = self._release(unit)
                if release is not None:
                    user.behaviour.release(user, release, user.model.time)

    def start_anew(self, over: Mapping[int, int], begun: Iterable[int], *, refill: bool) -> None:
        """Take the units and edges of a behaviour that the user was given, and decide by them.

        Parameters
        ----------
        over
            s; when units of the behaviour were over.
        begun
            The units that are submitted, at least partly, or over.
        refill
            Whether to take them from the behaviour; otherwise those of now stay.
        """
        user = self._holder
        if refill:
            data: Any = self.nodes
            added = {unit: dict(data[unit].kept) for unit in self.added}
            self._user = None
            super().clear()
            self._fill(user)
            for unit, known in added.items():
                super().add_node(unit, **known)
                self._bind(self.nodes[unit], unit)
        self._over = dict(over)
        self._released = set(begun)
        self._sent = {unit: at for unit, at in self._sent.items() if unit in self._released}
        if refill:
            self._sent.clear()

    def finished(self, unit: int, now: int) -> list[Release]:
        """Return the units that the end of one releases."""
        self._over[unit] = now
        return self._freed(unit, "think_time", unit)

    def sent(self, unit: int, first: int) -> list[Release]:
        """Return the units that the submission of one releases, its first job at ``first``, s."""
        recorded = self._holder.model.jobs.recorded_submit[self.rows_of(unit)]
        self._sent[unit] = first + int(recorded[-1] - recorded[0])
        return self._freed(unit, "inter_arrival", UNKNOWN)

    def _freed(self, unit: int, key: str, awaited: int) -> list[Release]:
        found = []
        for after, times in self.succ[unit].items() if unit in self else ():
            if key in times and after not in self._released:
                release = self._release(after, awaited)
                if release is not None:
                    found.append(release)
        return found

    def _release(self, unit: int, awaited: int = UNKNOWN) -> Release | None:
        """Return how a unit is released; None if it still waits.

        Parameters
        ----------
        unit
            The unit, which was not released.
        awaited
            The unit that is over now, if that releases it.
        """
        ended = sent = ready = last = UNKNOWN
        pause = 0
        for before, times in self.pred[unit].items():
            if "think_time" in times:
                over = self._over.get(before)
                if over is None:
                    return None
                ready = max(ready, over + times["think_time"])
                if over > ended or before == awaited:
                    ended, last = over, before
            if "inter_arrival" in times:
                at = self._sent_at(before)
                if at is None:
                    return None
                if at >= sent:
                    sent, pause = at, times["inter_arrival"]
        self._released.add(unit)
        if ended == sent == UNKNOWN:
            return Release(unit, self.nodes[unit]["start"], Reason.START, 0, UNKNOWN)
        follows = "inter_arrival" in self.pred[unit].get(last, ())
        if ended > sent or (ended == sent and follows):
            return Release(unit, ended, Reason.ENDED, ready - ended, last)
        return Release(unit, sent, Reason.FOLLOWS, pause, last)


def with_changes(units: Units, users: Iterable[ReplayUser]) -> Units:
    """Return units with the edges of users' changed graphs; units that they added come last.

    The added ones are in no user's range of ``user_first``.
    """
    graphs = {user.place: user.changed_graph for user in users if user.changed_graph is not None}
    edges, count = units.dependencies, len(units)
    before, after, think = [], [], []
    added: list[Int64s] = []
    for graph in graphs.values():
        place: dict[int, int] = {}
        for unit in sorted(graph.added):
            place[unit] = count + len(added)
            added.append(graph.rows_of(unit))
        for one, two, times in graph.edges(data=True):
            if "think_time" in times:
                before.append(place.get(one, one))
                after.append(place.get(two, two))
                think.append(times["think_time"])
    kept = ~np.isin(units.user[edges.predecessor], list(graphs))
    predecessor = np.append(edges.predecessor[kept], before).astype(np.int64)
    successor = np.append(edges.successor[kept], after).astype(np.int64)
    order = np.lexsort((successor, predecessor))
    predecessor, successor = predecessor[order], successor[order]
    total = count + len(added)
    sizes = [len(rows) for rows in added]
    return replace(
        units,
        rows=np.concatenate([units.rows, *added]),
        first=np.append(units.first, units.first[-1] + np.cumsum(sizes, dtype=np.int64)),
        session=np.append(units.session, np.full(len(added), UNKNOWN)),
        dependencies=Dependencies(
            first=np.searchsorted(predecessor, np.arange(total + 1)),
            successor=successor,
            think=np.append(edges.think[kept], think).astype(np.int64)[order],
            count=np.bincount(successor, minlength=total),
        ),
    )
