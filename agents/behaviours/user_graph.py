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

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, override

import networkx as nx
import numpy as np

from hpcrowd.agents.behaviours.when import Reason, Release
from hpcrowd.environment.errors import QuantityError, SimulationError, echo
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.user import ReplayUser

    Base = nx.DiGraph[int]
else:
    Base = nx.DiGraph  # it takes no parameters when it runs


#: Keys of a node that the run fills, and their meaning.
FACTS = {
    "jobs": "rows of its jobs in the table, by submission",
    "batches": "the same rows, a list for each batch",
    "end": "s; recorded end of the last job to end; None without a record",
    "state": "finished, running, queued, free (the user thinks) or waits",
    "waits_for": "the units that it still waits for",
    "submitted": "s; simulated submission of its first job, also if still to come; None unknown",
    "over": "s; when it was over; None before",
}

#: Keys of an edge that say when the unit may come.
TIMES = {
    "think_time": "s from the end of the unit before to the submission",
    "inter_arrival": "s from the last submission of the unit before to the submission",
}

#: Key of an edge with the jobs of the unit that depend on jobs of the unit before: a list of the
#: rows of both, the other one first.
JOBS = "dependency"


class Known(MutableMapping[str, Any]):
    """What the graph of a user knows of a unit or an edge; also anything that is put there.

    Parameters
    ----------
    graph
        The graph.
    *of
        The unit, or the two of the edge.
    **kept
        What is put there.
    """

    word: ClassVar[str]  #: for messages
    facts: ClassVar[Iterable[str]]  #: keys that the run fills
    times: ClassVar[Iterable[str]]  #: keys that decide when a unit is released
    refused: ClassVar[Mapping[str, str]]  #: keys that cannot be set, and why

    def __init__(self, graph: UserGraph, *of: int, **kept: Any) -> None:
        self.graph, self.of, self.kept = graph, of, kept

    def fact(self, key: str) -> Any:
        """Return one of the facts as it is now."""
        raise NotImplementedError

    def name(self, key: str) -> str:
        """Return what messages call something that is known."""
        return f"{key} of {self.word} {' -> '.join(map(str, self.of))}"

    @override
    def __getitem__(self, key: str) -> Any:
        return self.fact(key) if key in self.facts else self.kept[key]

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        if key in self.refused:
            if key in FACTS:
                self.graph.check_open(*self.of)
            raise QuantityError(f"{self.name(key)}: {self.refused[key]}")
        if key in self.times:
            self.graph.check_open(self.of[-1])
            value = seconds(value, self.name(key))
            if value == self.kept.get(key):
                return
            self.graph.touch(self.of[-1])
        self.kept[key] = value

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.kept, *self.facts]))

    @override
    def __len__(self) -> int:
        return len(list(iter(self)))

    @override
    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """Return what is known now, which no longer changes."""
        return dict(self)


class UnitData(Known):
    """What a graph knows of a unit: ``start`` (s; recorded) and :data:`FACTS`."""

    word, facts, times = "unit", FACTS, ("start",)
    refused = dict.fromkeys(
        FACTS, "what the run makes of it; change its start or its edges, or remove it"
    )

    @override
    def fact(self, key: str) -> Any:
        return self.graph.fact(self.of[0], key)

    @override
    def __delitem__(self, key: str) -> None:
        if key in FACTS or key == "start":
            raise QuantityError(f"{self.name(key)}: cannot be left out")
        del self.kept[key]


class Wait(Known):
    """What a graph knows of an edge: :data:`TIMES` or :data:`JOBS`, one at least; the ``reason``.

    The reason is made of ``ended``, ``follows`` and ``dependency``, with ``and`` between them.
    """

    word, facts, times = "edge", ("reason",), TIMES
    refused: ClassVar = {
        "reason": "follows from think_time and inter_arrival",
        JOBS: "comes from the log; remove it, or the edge",
    }

    @override
    def fact(self, key: str) -> Any:
        words = {"think_time": "ended", "inter_arrival": "follows", JOBS: "dependency"}
        return " and ".join(word for time, word in words.items() if time in self.kept)

    @override
    def __delitem__(self, key: str) -> None:
        if key in TIMES or key in self.refused:
            self.graph.check_open(self.of[-1])
            if self.kept.keys() & {*TIMES, JOBS} <= {key}:
                raise QuantityError(f"{self.name(key)}: all that it waits for; remove the edge")
            self.graph.forget(self.kept[key] if key == JOBS else ())
            self.graph.touch(self.of[-1])
        del self.kept[key]


def seconds(value: Any, what: str) -> int:
    """Return a whole number of seconds.

    Raises
    ------
    QuantityError
        If it is negative, or not a whole number.
    """
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = UNKNOWN
    if whole < 0 or isinstance(value, str) or whole != value:
        raise QuantityError(f"{what}: {echo(value)}: must be a whole number of seconds, at least 0")
    return whole


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

    def __new__(cls, incoming: Any = None, user: ReplayUser | None = None, **known: Any) -> Any:
        """Return an ordinary graph without a user: so networkx makes copies and views."""
        return nx.DiGraph(incoming, **known) if user is None else object.__new__(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        return object.__new__, (UserGraph,), vars(self)

    def __init__(self, incoming: Any = None, *, user: ReplayUser, **known: Any) -> None:
        super().__init__(incoming, **known)
        self._user = user
        self.edited = False  # whether it was changed by hand
        self._rows: dict[int, Int64s] = {}  # of units that are not in the record
        self._fill()

    def _fill(self) -> None:
        """Show the units of the user as its behaviour has them, and nothing that has happened."""
        user = self._user
        self.graph["user"] = user.number
        units = user.behaviour.units or user.work.by_session
        for unit in user.units:
            self._put(unit, start=int(units.start[unit]))
        for before, after, times in user.behaviour.edges(user):
            self._put(before, after, **times)
        for part in user.model.parts.at("awaited"):
            self._show_dependencies(part.awaited())
        self._over: dict[int, int] = {}  # s; when units were over
        self._sent: dict[int, int] = {}  # s; the last submission of units
        self._released: set[int] = set()
        self._touched: set[int] = set()
        self._revises = False  # whether an alarm is set for that
        self._in_order = True  # whether all edges lead to later units

    def _put(self, *of: int, **kept: Any) -> None:
        """Show a unit, or an edge between two."""
        graph: Any = self  # its arrays, as networkx asks subclasses to fill them
        if len(of) == 1:
            super().add_node(*of)
            graph._node[of[0]] = UnitData(self, *of, **kept)
        else:
            super().add_edge(*of)
            before, after = of
            graph._succ[before][after] = graph._pred[after][before] = Wait(self, *of, **kept)

    def _show_dependencies(self, awaited: Mapping[int, Sequence[int]]) -> None:
        """Show the edges between units of which a job depends on a job of the other."""
        known = self._user.recorded_jobs_of
        unit_of = {row: unit for unit in self for row in known(unit).tolist()}
        for row, parents in awaited.items():
            for parent in parents:
                before, after = unit_of.get(parent), unit_of.get(row)
                if before is None or after is None or before == after:
                    continue
                if not self.has_edge(before, after):
                    self._put(before, after)
                edge: Any = self.edges[before, after]
                edge.kept.setdefault(JOBS, []).append((parent, row))

    def __repr__(self) -> str:
        return (
            f"<UserGraph of user {self._user.number}: {len(self):,} units, "
            f"{self.number_of_edges():,} edges>"
        )

    # What is known of a unit.

    @property
    def added(self) -> list[int]:
        """The units that are not in the record."""
        return [unit for unit in self._rows if unit in self]

    def rows_of(self, unit: int) -> Int64s:
        """Return the rows of the jobs of a unit, by submission."""
        found = self._rows.get(unit)
        return self._user.recorded_jobs_of(unit) if found is None else found

    def fact(self, unit: int, key: str) -> Any:
        """Return one of :data:`FACTS`."""
        rows, jobs = self.rows_of(unit), self._user.model.jobs
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
        now = self._user.model.time
        if np.any((jobs.start[rows] != UNKNOWN) & (jobs.start[rows] <= now)):
            return "running"
        if self._is_submitted(unit):
            return "queued"
        return "waits" if self.fact(unit, "waits_for") else "free"

    def over_at(self, unit: int) -> int | None:
        """Return when a unit was over, s; None before."""
        if self._user.changed_graph is self:
            return self._over.get(unit)
        over = self._user.behaviour.over_at(self._user, unit)
        return None if over == UNKNOWN else over

    def _sent_at(self, unit: int) -> int | None:
        """Return the last submission of a unit, s, also if still to come; None if not known."""
        if unit in self._sent:
            return self._sent[unit]
        submit = self._user.model.jobs.submit[self.rows_of(unit)]
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
        model, now = self._user.model, self._user.model.time
        jobs = model.jobs
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
        user = self._user
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
        user = self._user
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
        user = self._user
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
        self._put(unit, start=at, **known)
        self.touch(unit)
        return unit

    @override
    def add_node(self, node_for_adding: Any, **attr: Any) -> None:
        if node_for_adding not in self:
            raise QuantityError(
                f"unit {echo(node_for_adding)} of user {self._user.number}: there is none; "
                "graph.add_unit(rows) adds one with jobs of your own and returns its number"
            )
        super().add_node(node_for_adding, **attr)

    @override
    def add_nodes_from(self, nodes_for_adding: Iterable[Any], **attr: Any) -> None:
        for node in nodes_for_adding:
            unit, own = node if isinstance(node, tuple) else (node, {})
            self.add_node(unit, **{**attr, **own})

    @override
    def add_edge(self, u_of_edge: Any, v_of_edge: Any, **attr: Any) -> None:
        before, after, times = u_of_edge, v_of_edge, attr
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
        if not new:
            self.edges[before, after].update(times)
            return
        # Units of the record are in the order of their submission.
        if not (self._in_order and before < after < self._user.units.stop):
            self._check_no_cycle(before, after)
        self._put(before, after, **times)
        self.touch(after)

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
        user = self._user
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
        for before, after, *own in ebunch_to_add:
            self.add_edge(before, after, **{**attr, **(own[0] if own else {})})

    @override
    def remove_edge(self, u: int, v: int) -> None:
        if not self.has_edge(u, v):
            super().remove_edge(u, v)  # which says so
        self.check_open(v)
        pairs = self.succ[u][v].get(JOBS, ())
        super().remove_edge(u, v)
        self.forget(pairs)
        self.touch(v)

    def forget(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let jobs no longer depend on others, as (row of the other, row)."""
        for part in self._user.model.parts.at("let_go"):
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
        if unit not in self:
            super().remove_node(unit)  # which says so
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
        user = self._user
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
        user = self._user
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
        user = self._user
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
        behaviour = self._user.behaviour
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
        user = self._user
        for unit in units:
            if unit not in self._released and not self._is_submitted(unit):
                release = self._release(unit)
                if release is not None:
                    user.behaviour.release(user, release, user.model.time)

    def start_anew(self, over: Mapping[int, int], begun: Iterable[int], *, refill: bool) -> None:
        """Decide by what a behaviour that the user was given waits for.

        ``over`` says when its units were over (s), ``begun`` which are submitted, at least partly,
        or over, ``refill`` whether to take units and edges from it; those of now stay otherwise.
        """
        if refill:
            data: Any = self.nodes
            added = {unit: data[unit].kept for unit in self.added}
            super().clear()
            self._fill()
            for unit, known in added.items():
                self._put(unit, **known)
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
        recorded = self._user.model.jobs.recorded_submit[self.rows_of(unit)]
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
        """Return how a unit is released, maybe by ``awaited``, which is over now; None if not."""
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
